//! Several limits charged as one.

use super::scene::{HOUR, Scene, all, charge};
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
