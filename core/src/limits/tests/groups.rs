//! Several limits charged as one.

use super::scene::{DAY, HOUR, Scene, all, charge};
use crate::SECOND;
use crate::limits::{Act, Rule};

#[test]
fn all_or_none_are_charged_and_the_one_that_binds_is_named() {
    let (key, chain) =
        (Rule::Refill { max: 5, period: HOUR }, Rule::Budget { max: 3u64.into(), period: HOUR, offset: 0 });
    let mut scene = Scene::new();
    let group = |cost: u64| [charge("key", key, cost), charge("chain", chain, cost), charge("all", key, 1)];
    let verdict = scene.judge(Act::Take, &group(2));
    assert_eq!((verdict.allowed, verdict.binding, verdict.remaining), (true, 1, 1u64.into()));
    let verdict = scene.judge(Act::Take, &group(2));
    assert_eq!((verdict.allowed, verdict.binding, verdict.retry_after), (false, 1, Some(HOUR)));
    for (name, rule, left) in [("key", key, 3u64), ("chain", chain, 1), ("all", key, 4)] {
        let verdict = scene.judge(Act::Peek, &[charge(name, rule, 0)]);
        assert_eq!(verdict.remaining, left.into(), "{name}: the refused attempt is not charged");
    }
}

#[test]
fn of_those_that_refuse_the_one_that_does_so_longest_binds() {
    let rules = [
        Rule::Refill { max: 1, period: SECOND },
        Rule::Rolling { max: 1, period: HOUR },
        Rule::Refill { max: 1, period: 2 * SECOND },
    ];
    let mut scene = Scene::new();
    let group: Vec<_> =
        rules.iter().zip(["a", "b", "c"]).map(|(rule, name)| charge(name, *rule, 1)).collect();
    assert!(scene.judge(Act::Take, &group).allowed);
    let verdict = scene.judge(Act::Take, &group);
    assert_eq!((verdict.binding, verdict.retry_after), (1, Some(HOUR)));
    let with_never = [&group[..], &[charge("d", Rule::Each { max: 0u64.into() }, 1)]].concat();
    let verdict = scene.judge(Act::Take, &with_never);
    assert_eq!((verdict.binding, verdict.retry_after), (3, None));
    let verdict = scene.pass(SECOND).judge(Act::Peek, &group[..1]);
    assert!(verdict.allowed);
}

// Whoever asked by the shorter one began each period meanwhile, and in its day the longer one found all that was left of an hour.
#[test]
fn a_budget_hears_of_what_another_limit_of_its_group_refuses() {
    let budget = |max: u64, period| Rule::Budget { max: max.into(), period, offset: 0 };
    let [hourly, daily, none] = [budget(10, HOUR), budget(100, DAY), Rule::Each { max: 0u64.into() }];
    let group = [charge("a", daily, 20), charge("b", none, 1)];
    let mut scene = Scene::new();
    assert!(scene.take(hourly, 10).allowed);
    assert_eq!(scene.judge(Act::Peek, &group).binding, 1);
    assert_eq!(scene.take(hourly, 1).retry_after, Some(HOUR), "to look says nothing");
    // Nothing is charged, of what is used and of what is not.
    for left in [90, 100, 100] {
        let verdict = scene.judge(Act::Take, &group);
        assert_eq!((verdict.allowed, verdict.binding), (false, 1));
        assert_eq!(scene.remaining(daily), left);
        scene.take(hourly, 10);
        assert_eq!(scene.take(hourly, 1).retry_after, Some(DAY));
        scene.pass(DAY);
    }
    // One that was never used is not kept for that.
    let mut scene = Scene::new();
    scene.judge(Act::Take, &group);
    assert_eq!(scene.ledger.size(), (0, 0));
}

#[test]
fn a_group_of_every_kind_refunds_and_resets() {
    let mut scene = Scene::new();
    let group: Vec<_> = all(4, HOUR)
        .iter()
        .zip(["a", "b", "c", "d", "e", "f"])
        .map(|(rule, name)| charge(name, *rule, 3))
        .collect();
    assert!(scene.judge(Act::Take, &group).allowed);
    assert!(!scene.judge(Act::Take, &group).allowed);
    assert_eq!(scene.judge(Act::Refund, &group).remaining, 4u64.into());
    assert_eq!(scene.size_when_forgotten(), (0, 0));
    assert!(scene.judge(Act::Take, &group).allowed);
    assert_eq!(scene.judge(Act::Reset, &group).remaining, 4u64.into());
    assert!(scene.judge(Act::Take, &group).allowed);
}
