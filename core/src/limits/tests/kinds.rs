//! What each kind allows, and when.

use super::scene::{DAY, HOUR, START, Scene, all, charge, charge_of, rates};
use crate::limits::{Act, Amount, MAX_AMOUNT, MAX_PERIOD, Rule};
use crate::{Micros, SECOND};

fn refill(max: u64, period: Micros) -> Rule {
    Rule::Refill { max, period }
}

#[test]
fn the_seeds_example_ten_attempts_an_hour() {
    let (mut scene, rule) = (Scene::new(), refill(10, HOUR));
    assert_eq!(scene.allowed(rule, 12), 10);
    let refused = scene.take(rule, 1);
    assert_eq!((refused.retry_after, refused.reset_after), (Some(HOUR / 10), Some(HOUR)));
    // A new attempt every six minutes.
    assert_eq!(scene.pass(HOUR / 10 - 1).remaining(rule), 0);
    assert_eq!(scene.pass(1).remaining(rule), 1);
    assert_eq!(scene.pass(HOUR / 10 * 8).remaining(rule), 9);
    assert_eq!(scene.pass(HOUR).remaining(rule), 10);
    assert_eq!(scene.ledger.size(), (0, 0));
}

#[test]
fn told_times_are_true_to_the_microsecond() {
    for rule in [refill(7, 1_000_003), Rule::Gcra { max: 7, period: 1_000_003, burst: 5 }] {
        let mut scene = Scene::new();
        assert!(scene.take(rule, 5).allowed);
        for cost in [3, 4, 5] {
            let refused = scene.judge(Act::Peek, &[charge("a", rule, cost)]);
            let Some(retry @ 1..) = refused.retry_after else { continue };
            assert!(!scene.clone().pass(retry - 1).take(rule, cost).allowed, "{rule:?} {cost}");
            assert!(scene.clone().pass(retry).take(rule, cost).allowed, "{rule:?} {cost}");
        }
        let reset = scene.take(rule, 0).reset_after.unwrap();
        let whole = Scene::new().remaining(rule);
        assert!(
            scene.clone().pass(reset - 1).judge(Act::Peek, &[charge("a", rule, 0)]).reset_after > Some(0)
        );
        assert_eq!(scene.pass(reset).remaining(rule), whole);
    }
}

#[test]
fn gcra_spaces_what_goes_beyond_its_burst() {
    let (mut scene, rule) = (Scene::new(), Rule::Gcra { max: 600, period: SECOND, burst: 1 });
    assert_eq!(scene.allowed(rule, 5), 1);
    assert_eq!(scene.take(rule, 1).retry_after, Some(1_667));
    assert!(!scene.pass(1_666).take(rule, 1).allowed);
    assert!(scene.pass(1).take(rule, 1).allowed);
    // A third of a microsecond was waited too long, which is not lost.
    assert_eq!(scene.take(rule, 1).retry_after, Some(1_667));
    let wide = Rule::Gcra { max: 10, period: SECOND, burst: 30 };
    assert_eq!(Scene::new().allowed(wide, 40), 30);
}

#[test]
fn a_rolling_window_lets_go_what_is_a_period_old() {
    let (mut scene, rule) = (Scene::new(), Rule::Rolling { max: 10, period: 32 * SECOND });
    assert!(scene.take(rule, 4).allowed);
    assert!(scene.pass(10 * SECOND).take(rule, 5).allowed);
    let refused = scene.pass(10 * SECOND).take(rule, 2);
    assert_eq!((refused.remaining, refused.retry_after), (1u64.into(), Some(12 * SECOND)));
    assert_eq!(refused.reset_after, Some(22 * SECOND));
    assert_eq!(scene.judge(Act::Peek, &[charge("a", rule, 6)]).retry_after, Some(22 * SECOND));
    assert_eq!(scene.judge(Act::Peek, &[charge("a", rule, 11)]).retry_after, None);
    assert!(!scene.pass(12 * SECOND - 1).take(rule, 2).allowed);
    assert!(scene.pass(1).take(rule, 2).allowed);
}

#[test]
fn a_window_of_many_takes_stays_small() {
    let (mut scene, rule) = (Scene::new(), Rule::Rolling { max: MAX_AMOUNT, period: 1_000 });
    for _ in 0..10_000 {
        assert!(scene.pass(7).take(rule, 1).allowed);
    }
    let left = MAX_AMOUNT - scene.remaining(rule);
    assert!((1_000 / 7..=1_032 / 7 + 6).contains(&left), "{left}");
}

#[test]
fn a_budget_is_for_a_day_of_the_calendar() {
    let rule = Rule::Budget { max: 100u64.into(), period: DAY, offset: 6 * HOUR };
    let mut scene = Scene::new();
    assert!(scene.take(rule, 100).allowed);
    let refused = scene.take(rule, 1);
    assert_eq!((refused.retry_after, refused.reset_after), (Some(6 * HOUR), Some(6 * HOUR)));
    assert_eq!(scene.take(rule, 101).retry_after, None);
    assert!(!scene.pass(6 * HOUR - 1).take(rule, 1).allowed);
    assert!(scene.pass(1).take(rule, 1).allowed);
    assert_eq!(scene.take(rule, 100).retry_after, Some(DAY));
    assert_eq!(scene.pass(3 * DAY).remaining(rule), 100);
}

#[test]
fn amounts_of_256_bits_keep_their_digits() {
    let amount = |text: &str| text.parse::<Amount>().unwrap();
    let wei = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    for rule in
        [Rule::Lifetime { max: amount(wei) }, Rule::Budget { max: amount(wei), period: DAY, offset: 0 }]
    {
        let mut scene = Scene::new();
        let mut take = |cost: &str| scene.judge(Act::Take, &[charge_of("a", rule, amount(cost))]);
        let taken = take("9007199254740993");
        let left = "115792089237316195423570985008687907853269984665640564039457575000713874898942";
        assert_eq!(taken.remaining.to_string(), left);
        assert!(!take(wei).allowed);
        assert!(take(left).allowed);
        assert!(!take("1").allowed);
        let refund = scene.judge(Act::Refund, &[charge("a", rule, 1u64)]);
        assert_eq!(refund.remaining, 1u64.into());
    }
}

#[test]
fn a_lifetime_ends_only_by_what_is_given_back() {
    let (mut scene, rule) = (Scene::new(), Rule::Lifetime { max: 3u64.into() });
    assert_eq!(scene.allowed(rule, 9), 3);
    let refused = scene.pass(500 * MAX_PERIOD).take(rule, 1);
    assert_eq!((refused.allowed, refused.retry_after, refused.reset_after), (false, None, None));
    scene.judge(Act::Refund, &[charge("a", rule, 2u64)]);
    assert_eq!(scene.remaining(rule), 2);
    scene.judge(Act::Refund, &[charge("a", rule, 9u64)]);
    assert_eq!((scene.remaining(rule), scene.ledger.size()), (3, (0, 0)), "never more than its whole");
}

#[test]
fn a_maximum_changes_at_run_time_and_usage_stays() {
    let mut scene = Scene::new();
    for [small, large] in
        rates(10, HOUR).into_iter().zip(rates(20, HOUR)).map(|(small, large)| [small, large])
    {
        scene.judge(Act::Reset, &[charge("a", small, 0u64)]);
        assert!(scene.take(small, 8).allowed);
        let more = scene.remaining(large);
        // An amount is kept of the one, a time of the other.
        let expected = if matches!(large, Rule::Gcra { .. }) { 4 } else { 12 };
        assert_eq!(more, expected, "{large:?}");
        assert_eq!(scene.remaining(small), 2);
    }
    let lower = refill(5, HOUR);
    assert_eq!((scene.remaining(lower), scene.take(lower, 1).retry_after), (0, Some(HOUR / 5)));
    // Based anew, so that what passed until now is counted by the rule of until now.
    let (before, after) = (refill(10, HOUR), refill(100, HOUR));
    scene.pass(HOUR / 10);
    assert!(scene.take(before, 0).allowed);
    assert_eq!(scene.remaining(after), 93);
    // A part of another period counts as a whole.
    assert!(scene.pass(1).take(before, 0).allowed);
    assert_eq!(scene.remaining(refill(10, HOUR / 2)), 3);
}

#[test]
fn a_cost_of_nothing_is_always_allowed() {
    for rule in all(5, SECOND).into_iter().chain([Rule::InFlight { max: 5 }]) {
        let mut scene = Scene::new();
        scene.judge(Act::Reserve { id: 1, ttl: SECOND }, &[charge("a", rule, 5)]);
        assert!(scene.take(rule, 0).allowed, "{rule:?}");
    }
    // Also where less is allowed than was.
    let mut scene = Scene::new();
    for [before, now] in all(5, SECOND).into_iter().zip(all(2, SECOND)).map(|(before, now)| [before, now]) {
        scene.take(before, 5);
        assert!(scene.take(now, 0).allowed, "{now:?}");
        scene.judge(Act::Reset, &[charge("a", now, 0u64)]);
    }
}

#[test]
fn rules_that_could_not_be_kept_exactly_are_refused() {
    let field = |rule: Rule| rule.check().err().and_then(|error| error.field().map(str::to_owned));
    for rule in rates(MAX_AMOUNT, MAX_PERIOD) {
        assert_eq!(field(rule), None, "{rule:?}");
    }
    assert_eq!(field(refill(MAX_AMOUNT + 1, 1)).as_deref(), Some("max"));
    assert_eq!(field(refill(1, MAX_PERIOD + 1)).as_deref(), Some("period"));
    assert_eq!(field(Rule::Gcra { max: 1, period: MAX_PERIOD, burst: 100 }).as_deref(), Some("burst"));
    assert_eq!(field(Rule::InFlight { max: 1_001 }).as_deref(), Some("max"));
}

#[test]
fn what_was_used_is_forgotten_when_it_says_nothing_any_more() {
    let mut scene = Scene::new();
    for (at, rule) in all(9, SECOND).into_iter().enumerate() {
        scene.judge(Act::Take, &[charge(&at.to_string(), rule, 1)]);
    }
    let ttl = SECOND;
    scene.judge(Act::Reserve { id: 1, ttl }, &[charge("f", Rule::InFlight { max: 2 }, 1)]);
    assert_eq!(scene.ledger.size(), (6, 1));
    scene.pass(SECOND + 2_000).judge(Act::Peek, &[charge("other", refill(1, 1), 0)]);
    assert_eq!(scene.ledger.size(), (1, 0), "a lifetime stays");
    assert_eq!(scene.wall, START + SECOND + 2_000);
}
