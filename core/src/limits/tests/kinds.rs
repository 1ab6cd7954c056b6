//! What each kind allows, and when.

use super::scene::{DAY, HOUR, START, Scene, all, charge, charge_of, rates};
use crate::limits::{Act, Amount, Charge, MAX_AMOUNT, MAX_BACKLOG, MAX_PERIOD, Rule};
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

// The shorter one began each period, and in each all of the longer one's could be taken once more.
#[test]
fn a_budget_of_several_periods_is_spent_once_in_the_longest() {
    let daily = Rule::Budget { max: 100u64.into(), period: DAY, offset: 0 };
    let hourly = Rule::Budget { max: 10u64.into(), period: HOUR, offset: 0 };
    let mut scene = Scene::new();
    // A longer one lengthens the period that a shorter one began.
    assert!(scene.take(hourly, 10).allowed);
    assert_eq!(scene.take(hourly, 1).retry_after, Some(HOUR));
    assert_eq!(scene.remaining(daily), 90);
    assert_eq!(scene.take(hourly, 1).retry_after, Some(HOUR), "to look says nothing");
    assert!(scene.take(daily, 80).allowed);
    assert_eq!(scene.take(hourly, 1).retry_after, Some(DAY));
    // Also where it is refused, and a shorter one cuts nothing off.
    assert!(!scene.pass(5 * HOUR).take(daily, 11).allowed);
    assert_eq!(scene.take(hourly, 1).retry_after, Some(19 * HOUR));
    assert_eq!(scene.take(daily, 11).retry_after, Some(19 * HOUR));
    // The next is as long as the longest that was said in this one.
    scene.pass(19 * HOUR);
    assert!(scene.take(hourly, 10).allowed);
    assert_eq!(scene.take(hourly, 1).retry_after, Some(DAY));
    assert_eq!(scene.pass(HOUR).remaining(daily), 90);
    // Nobody has said it in that one: the one after is of those who did.
    scene.pass(23 * HOUR);
    assert!(scene.take(hourly, 10).allowed);
    assert_eq!(scene.take(hourly, 1).retry_after, Some(HOUR));
    // Refused it lengthens too, and of what was never used nothing is kept.
    assert!(!scene.take(daily, 91).allowed);
    assert_eq!(scene.take(hourly, 1).retry_after, Some(DAY));
    assert!(scene.pass(3 * DAY).take(hourly, 0).allowed);
    assert_eq!(scene.ledger.size(), (0, 0));
}

#[test]
fn that_a_period_was_said_is_known_to_the_end_of_the_next() {
    let daily = Rule::Budget { max: 100u64.into(), period: DAY, offset: 0 };
    let hourly = Rule::Budget { max: 10u64.into(), period: HOUR, offset: 0 };
    for (pass, whole) in [(DAY, DAY), (2 * DAY - HOUR, HOUR), (2 * DAY, HOUR)] {
        let mut scene = Scene::new();
        assert!(scene.take(daily, 1).allowed);
        // Who takes nothing does not have it forgotten.
        scene.pass(pass);
        assert!(scene.take(hourly, 0).allowed);
        scene.take(hourly, 10);
        assert_eq!(scene.take(hourly, 1).retry_after, Some(whole), "{pass}");
    }
}

// The calendar that was there first stayed as long as anybody asked: in each day of who asks all could be taken twice.
#[test]
fn a_calendar_that_nobody_says_any_more_is_left_at_the_end_of_a_day_that_somebody_says() {
    let of = |offset| Rule::Budget { max: 100u64.into(), period: DAY, offset };
    let [midnight, noon] = [of(0), of(12 * HOUR)];
    let mut scene = Scene::new();
    assert!(scene.take(midnight, 100).allowed);
    assert_eq!(scene.pass(23 * HOUR).take(noon, 1).retry_after, Some(HOUR));
    // Who asks by the old one may come yet, by whom it ends at midnight.
    assert!(scene.pass(2 * HOUR).take(noon, 90).allowed);
    assert_eq!(scene.take(noon, 100).retry_after, Some(35 * HOUR));
    assert_eq!(scene.clone().take(midnight, 100).retry_after, Some(23 * HOUR));
    // None did: that day goes on to noon, and so is every day of who asks within one of its own.
    assert_eq!(scene.pass(23 * HOUR).take(noon, 11).retry_after, Some(12 * HOUR));
    assert!(scene.take(noon, 10).allowed);
    assert_eq!(scene.pass(12 * HOUR - 1).take(noon, 1).retry_after, Some(1));
    assert!(scene.pass(1).take(noon, 100).allowed);
    assert_eq!(scene.take(noon, 1).retry_after, Some(DAY));
    assert_eq!(scene.pass(DAY - 1).take(noon, 1).retry_after, Some(1));
    assert!(scene.pass(1).take(noon, 100).allowed);
}

// In turn they would cut each other off.
#[test]
fn of_two_calendars_that_are_both_said_the_first_stays() {
    let of = |offset| Rule::Budget { max: 100u64.into(), period: DAY, offset };
    let [midnight, noon] = [of(0), of(12 * HOUR)];
    for first in [midnight, noon] {
        let mut scene = Scene::new();
        assert!(scene.take(midnight, 100).allowed);
        for _ in 0..5 {
            // Whoever asks first of a day, and where it is refused.
            scene.pass(23 * HOUR);
            assert_eq!(scene.take(midnight, 1).retry_after, Some(HOUR));
            assert_eq!(scene.take(noon, 1).retry_after, Some(HOUR));
            assert!(scene.pass(HOUR).take(first, 100).allowed);
        }
    }
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
    assert_eq!(scene.remaining(rule), 3, "never more than its whole");
    assert_eq!(scene.size_when_forgotten(), (0, 0));
}

#[test]
fn a_maximum_changes_at_run_time_and_usage_stays() {
    let mut scene = Scene::new();
    for [small, large] in
        rates(10, HOUR).into_iter().zip(rates(20, HOUR)).map(|(small, large)| [small, large])
    {
        scene.judge(Act::Reset, &[charge("a", small, 0u64)]);
        assert!(scene.take(small, 8).allowed);
        assert_eq!(scene.remaining(large), 12, "{large:?}");
        assert_eq!(scene.remaining(small), 2);
    }
    // Based anew, so that what passed until now is counted by the rule of until now.
    let (before, after) = (refill(10, HOUR), refill(100, HOUR));
    scene.pass(HOUR / 10);
    assert!(scene.take(before, 0).allowed);
    assert_eq!(scene.remaining(after), 93);
    // And what is left of one is as much of it by another period.
    assert!(scene.pass(1).take(before, 0).allowed);
    assert_eq!(scene.remaining(refill(10, HOUR / 2)), 3);
}

// Each of them made a whole one of what was left of one, also where it was refused: nothing was ever refilled.
#[test]
fn what_is_asked_by_two_periods_in_turn_is_refilled() {
    for (one, other) in rates(10, 20 * SECOND).into_iter().zip(rates(10, 21 * SECOND)).take(2) {
        let mut scene = Scene::new();
        assert_eq!(scene.allowed(one, 10), 10);
        let turns = [one, other].into_iter().cycle().take(100);
        let allowed = turns.filter(|rule| scene.pass(SECOND / 10).take(*rule, 1).allowed).count();
        // Of ten seconds each counts half.
        assert_eq!(allowed, 4, "{one:?}");
    }
}

#[test]
fn what_is_used_above_a_lowered_maximum_is_worked_off_and_not_lost() {
    let large = [refill(10, HOUR), Rule::Gcra { max: 10, period: HOUR, burst: 10 }];
    for (large, small) in
        large.into_iter().zip([refill(5, HOUR), Rule::Gcra { max: 5, period: HOUR, burst: 5 }])
    {
        let mut scene = Scene::new();
        assert!(scene.take(large, 10).allowed);
        let refused = scene.take(small, 1);
        assert_eq!((refused.remaining, refused.retry_after), (0u64.into(), Some(HOUR / 5 * 6)), "{small:?}");
        assert_eq!(refused.reset_after, Some(2 * HOUR));
        // It is kept for as long as that, although the maximum by which it was taken would have refilled it sooner.
        assert!(!scene.clone().pass(HOUR / 5 * 6 - 1).take(small, 1).allowed);
        assert!(scene.clone().pass(HOUR / 5 * 6).take(small, 1).allowed);
        assert_eq!(scene.clone().pass(2 * HOUR - 1).allowed(small, 9), 4);
        // Whoever raises it again finds what is left.
        assert_eq!(scene.pass(HOUR / 5).take(small, 0).remaining, 0u64.into());
        assert_eq!(scene.remaining(large), 1);
        assert_eq!(scene.allowed(large, 9), 1);
        // And in time it is gone.
        scene.pass(2 * HOUR + 1_000).judge(Act::Peek, &[charge("b", small, 0)]);
        assert_eq!(scene.ledger.size(), (0, 0));
    }
}

// Each lowered what the other had used, and so they were allowed both maxima again and again.
#[test]
fn processes_of_different_maxima_are_allowed_the_larger_one() {
    for (large, small) in all(10, HOUR).into_iter().zip(all(4, HOUR)) {
        if matches!(large, Rule::Each { .. }) {
            continue;
        }
        let mut scene = Scene::new();
        let admitted: u64 = (0..50).map(|_| scene.allowed(small, 2) + scene.allowed(large, 1)).sum();
        assert_eq!(admitted, 10, "{large:?}");
    }
    // Of GCRA also where the bursts are no measure of the maxima.
    let mut scene = Scene::new();
    let [fast, slow] = [100, 10].map(|max| Rule::Gcra { max, period: HOUR, burst: 10 });
    let admitted: u64 = (0..50).map(|_| scene.allowed(fast, 1) + scene.allowed(slow, 1)).sum();
    assert_eq!(admitted, 10);
}

#[test]
fn a_maximum_that_falls_as_far_as_it_can_tells_the_longest_time() {
    let (large, small) = (refill(MAX_AMOUNT, MAX_PERIOD), refill(1, MAX_PERIOD));
    let mut scene = Scene::new();
    assert!(scene.take(large, MAX_AMOUNT).allowed);
    let refused = scene.take(small, 1);
    assert_eq!((refused.retry_after, refused.reset_after), (Some(MAX_BACKLOG), Some(MAX_BACKLOG)));
    assert_eq!(scene.pass(MAX_PERIOD).take(small, 1).retry_after, Some(MAX_BACKLOG));
    assert_eq!(scene.take(small, 2).retry_after, None);
    // One has been refilled, and all the rest is found again.
    assert_eq!(scene.remaining(large), 1);
    let mut scene = Scene::new();
    let lifetime = |max| charge_of("a", Rule::Lifetime { max }, max);
    assert!(scene.judge(Act::Take, &[lifetime(Amount::MAX)]).allowed);
    assert!(!scene.judge(Act::Take, &[lifetime(1u64.into())]).allowed);
    assert_eq!(scene.judge(Act::Refund, &[lifetime(1u64.into())]).remaining, Amount::ZERO);
    let again = Charge { cost: 1u64.into(), ..lifetime(Amount::MAX) };
    assert!(scene.judge(Act::Take, std::slice::from_ref(&again)).allowed);
    assert!(!scene.judge(Act::Take, &[again]).allowed);
}

// A record is kept for as long as the rule needs by which it was written: it does not matter when the server forgets it.
#[test]
fn until_a_maximum_is_asked_with_time_counts_by_the_one_before() {
    for kind in [|max| refill(max, HOUR), |max| Rule::Gcra { max, period: HOUR, burst: max }] {
        let mut scene = Scene::new();
        assert!(scene.take(kind(20), 10).allowed);
        assert_eq!(scene.pass(HOUR / 2 - 1).remaining(kind(2)), 1);
        assert_eq!(scene.pass(1).remaining(kind(2)), 2);
        assert_eq!(scene.take(kind(2), 0).reset_after, Some(0));
        // A refusal tells it too, in a group also, by the limit that refuses.
        assert!(scene.take(kind(20), 10).allowed);
        let both = [charge("a", kind(2), 1), charge("b", kind(2), 1)];
        assert!(!scene.judge(Act::Take, &both).allowed);
        assert_eq!(scene.pass(HOUR).remaining(kind(20)), 12);
        // To look says nothing.
        assert!(scene.take(kind(20), 0).allowed);
        assert!(!scene.judge(Act::Peek, &both).allowed);
        assert_eq!(scene.pass(HOUR / 20).remaining(kind(20)), 13);
    }
}

#[test]
fn a_cost_of_nothing_is_always_allowed() {
    for rule in all(5, SECOND).into_iter().chain([Rule::InFlight { max: 5 }]) {
        let mut scene = Scene::new();
        scene.judge(Act::Reserve { id: 1, ttl: SECOND, waited: None }, &[charge("a", rule, 5)]);
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
    scene.judge(Act::Reserve { id: 1, ttl, waited: None }, &[charge("f", Rule::InFlight { max: 2 }, 1)]);
    assert_eq!(scene.ledger.size(), (6, 1));
    scene.pass(SECOND + 2_000).judge(Act::Peek, &[charge("other", refill(1, 1), 0)]);
    assert_eq!(scene.ledger.size(), (2, 0), "a lifetime stays, and a budget to the end of the next period");
    assert_eq!(scene.wall, START + SECOND + 2_000);
    scene.pass(SECOND).judge(Act::Peek, &[charge("other", refill(1, 1), 0)]);
    assert_eq!(scene.ledger.size(), (1, 0));
}

/// Its record stood where another's stands now.
#[test]
fn a_limit_that_was_forgotten_is_not_taken_for_the_one_in_its_place() {
    let mut scene = Scene::new();
    let take = |scene: &mut Scene, limit: &str, period| {
        let verdict = scene.judge(Act::Take, &[charge(limit, refill(3, period), 1)]);
        (verdict.allowed, verdict.remaining.saturating_u64(), scene.ledger.size().0)
    };
    assert_eq!(take(&mut scene, "brief", SECOND), (true, 2, 1));
    scene.pass(SECOND + 2_000);
    assert_eq!(take(&mut scene, "other", HOUR), (true, 2, 1), "in its place");
    assert_eq!(take(&mut scene, "other", HOUR), (true, 1, 1));
    assert_eq!(take(&mut scene, "brief", SECOND), (true, 2, 2));
    assert_eq!(take(&mut scene, "brief", SECOND), (true, 1, 2));
    assert_eq!(take(&mut scene, "other", HOUR), (true, 0, 2));
}
