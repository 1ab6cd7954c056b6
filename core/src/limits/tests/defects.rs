//! What other limiters do wrong, by name.

use super::scene::{HOUR, START, Scene, all, charge, rates};
use crate::limits::{Act, MAX_CELLS, Rule};
use crate::{MILLISECOND, Micros, SECOND};

// TrafficJam 1: EXPIRE got milliseconds.
#[test]
fn trafficjam_1_keys_do_not_outlive_their_use() {
    for rule in all(10, HOUR).into_iter().filter(|rule| !matches!(rule, Rule::Lifetime { .. })) {
        let mut scene = Scene::new();
        scene.take(rule, 1);
        // A budget's is used to the end of the next period: see there.
        let used = if matches!(rule, Rule::Budget { .. }) { 2 * HOUR } else { HOUR };
        scene.pass(used + 2 * MILLISECOND).judge(Act::Peek, &[charge("other", rule, 0)]);
        assert_eq!(scene.ledger.size(), (0, 0), "{rule:?}");
    }
}

// TrafficJam 2: a host whose clock lagged was allowed 100 of 100 requests of an exhausted limit. Hosts have no say here; a
// server's clock that is set back changes nothing either.
#[test]
fn trafficjam_2_a_clock_that_lags_allows_nothing() {
    for rule in rates(10, 10 * SECOND) {
        for back in [SECOND, HOUR, 1_000 * HOUR] {
            let mut scene = Scene::new();
            assert_eq!(scene.allowed(rule, 10), 10);
            scene.wall = START - back;
            assert_eq!(scene.allowed(rule, 100), 0, "{rule:?}");
            // It goes on from where it was, at half its pace until the wall clock has caught up.
            let left = if matches!(rule, Rule::Rolling { .. }) { 0 } else { 1 };
            assert_eq!(scene.pass(2 * SECOND).allowed(rule, 100), left, "{rule:?}");
            scene.pass(if back == SECOND { 9 } else { 18 } * SECOND);
            assert_eq!(scene.allowed(rule, 100), 10 - left, "{rule:?}");
        }
    }
}

// Nobody can tell a jump from a quiet time; it gives no more than one.
#[test]
fn a_clock_that_jumps_ahead_allows_one_burst() {
    for rule in rates(10, HOUR) {
        let mut scene = Scene::new();
        assert_eq!(scene.allowed(rule, 100), 10);
        assert_eq!(scene.pass(1_000 * HOUR).allowed(rule, 100), 10);
        scene.wall -= 1_000 * HOUR;
        assert_eq!(scene.allowed(rule, 100), 0);
    }
}

#[test]
fn a_clock_that_stands_still_refills_nothing() {
    for rule in rates(10, 1) {
        assert_eq!(Scene::new().allowed(rule, 100), 10, "{rule:?}");
    }
}

// TrafficJam 3: 600 in a second admitted 2,999 in two, and more than 1,000 were an error.
#[test]
fn trafficjam_3_rates_above_one_in_a_millisecond_are_exact() {
    for (max, period) in [(600, SECOND), (10_000, SECOND), (1_000_000, SECOND), (3_000_000, SECOND), (7, 13)]
    {
        for rule in [Rule::Refill { max, period }, Rule::Gcra { max, period, burst: max }] {
            let mut scene = Scene::new();
            assert!(scene.take(rule, max).allowed);
            let (mut admitted, step) = (0, (period / 997).max(1));
            while scene.wall < START + 2 * period {
                scene.pass(step.min(START + 2 * period - scene.wall));
                let left = scene.remaining(rule);
                assert!(scene.take(rule, left).allowed);
                admitted += left;
            }
            assert_eq!(admitted, 2 * max, "{rule:?}");
        }
    }
}

// TrafficJam 5: the first increment was not checked.
#[test]
fn trafficjam_5_the_first_increment_is_checked() {
    for rule in all(3, SECOND).into_iter().chain([Rule::InFlight { max: 3 }]) {
        let verdict = Scene::new().take(rule, 10);
        assert_eq!((verdict.allowed, verdict.remaining), (false, 3u64.into()), "{rule:?}");
        assert_eq!(verdict.retry_after, None, "{rule:?}: there is no such time");
    }
}

// TrafficJam 6: a group that held a GCRA limit raised an error when it was rolled back, and left the first one charged.
#[test]
fn trafficjam_6_a_group_with_every_kind_is_charged_whole_or_not_at_all() {
    for (at, last) in all(2, HOUR).into_iter().enumerate() {
        let mut scene = Scene::new();
        let names = ["a", "b", "c", "d", "e", "f"];
        let mut group: Vec<_> =
            all(5, HOUR).iter().zip(names).map(|(rule, name)| charge(name, *rule, 3)).collect();
        group.push(charge("last", last, 3));
        let verdict = scene.judge(Act::Take, &group);
        assert_eq!((verdict.allowed, verdict.binding), (false, 6), "{at}");
        assert_eq!(scene.ledger.size(), (0, 0));
        assert!(scene.judge(Act::Take, &group[..6]).allowed);
    }
}

// TrafficJam 7: no time was told.
#[test]
fn trafficjam_7_a_refusal_tells_when_why_and_what_remains() {
    let (mut scene, rule) = (Scene::new(), Rule::Refill { max: 10, period: 10 * SECOND });
    scene.take(rule, 9);
    let verdict = scene.take(rule, 4);
    assert_eq!((verdict.remaining, verdict.retry_after), (1u64.into(), Some(3 * SECOND)));
    assert_eq!((verdict.binding, verdict.reset_after), (0, Some(9 * SECOND)));
}

// rate-limiter-flexible, limits and upstash count what they refuse.
#[test]
fn refused_attempts_are_not_charged() {
    for rule in rates(10, 10 * SECOND) {
        let mut scene = Scene::new();
        assert_eq!(scene.allowed(rule, 10), 10);
        // One who keeps asking waits no longer than one who waits.
        for _ in 0..1_000 {
            scene.pass(9 * MILLISECOND).take(rule, 10);
        }
        assert!(scene.pass(SECOND).take(rule, 10).allowed, "{rule:?}");
    }
}

// rate-limiter-flexible: half a second was cut to none, and the key never expired.
#[test]
fn rate_limiter_flexible_fractions_of_seconds_are_kept() {
    for period in [500 * MILLISECOND, 1, 999, 1_500_001] {
        for rule in rates(3, period) {
            let mut scene = Scene::new();
            assert_eq!(scene.allowed(rule, 9), 3);
            assert_eq!(scene.pass(period).allowed(rule, 9), 3, "{rule:?}");
            scene.pass(period + 3 * MILLISECOND).judge(Act::Peek, &[charge("b", rule, 0)]);
            assert_eq!(scene.ledger.size(), (0, 0), "{rule:?}");
        }
    }
}

// rate-limiter-flexible: its union asks several limits side by side, and what one of them refuses the others have charged.
#[test]
fn rate_limiter_flexible_a_union_that_is_refused_charges_none_of_its_members() {
    for refusing in 0..3 {
        for rule in rates(2, HOUR) {
            let mut scene = Scene::new();
            let names = ["a", "b", "c"];
            let each = |cost: [u64; 3]| -> Vec<_> {
                names.iter().zip(cost).map(|(name, cost)| charge(name, rule, cost)).collect()
            };
            scene.judge(Act::Take, &[charge(names[refusing], rule, 2)]);
            for _ in 0..10 {
                let verdict = scene.judge(Act::Take, &each([1; 3]));
                assert_eq!((verdict.allowed, verdict.binding), (false, refusing), "{rule:?}");
            }
            for (at, name) in names.iter().enumerate() {
                let left = scene.judge(Act::Peek, &[charge(name, rule, 0)]).remaining;
                assert_eq!(left, if at == refusing { 0u64 } else { 2 }.into(), "{rule:?} {name}");
            }
        }
    }
}

// limits (PyPI): a moving window keeps the time of every hit, so that its memory grows with what it allows.
#[test]
fn limits_a_moving_window_needs_no_more_room_for_more_hits() {
    let (mut scene, rule) = (Scene::new(), Rule::Rolling { max: 100_000, period: HOUR });
    let mut largest = 0;
    for _ in 0..20_000 {
        assert!(scene.pass(HOUR / 20_000).take(rule, 1).allowed);
        largest = largest.max(scene.cells());
    }
    // So many cells, however many hits there were.
    assert!((1..=MAX_CELLS).contains(&largest), "{largest}");
}

// limits (PyPI): its moving window goes by the hosts' clocks, and a fixed one allows twice its maximum around its edge.
#[test]
fn limits_no_moment_begins_a_window_anew() {
    for rule in rates(10, 10 * SECOND) {
        for wait in [SECOND, 5 * SECOND, 9_999 * MILLISECOND] {
            let mut scene = Scene::new();
            // As late in a fixed window as can be, and again as soon as the next begins.
            scene.pass(wait);
            let first = scene.allowed(rule, 20);
            let second = scene.pass(MILLISECOND).allowed(rule, 20);
            assert_eq!((first, second), (10, 0), "{rule:?}");
        }
    }
}

// upstash: the check of the sliding window left the size of the batch out.
#[test]
fn upstash_the_size_of_a_batch_is_part_of_the_check() {
    for rule in all(10, HOUR) {
        let mut scene = Scene::new();
        assert!(scene.take(rule, 6).allowed);
        assert_eq!(scene.take(rule, 6).allowed, matches!(rule, Rule::Each { .. }), "{rule:?}");
    }
}

#[test]
fn a_cost_above_the_maximum_is_never_allowed_and_says_so() {
    for rule in all(10, SECOND) {
        for cost in [11, u64::MAX] {
            let mut scene = Scene::new();
            let verdict = scene.take(rule, cost);
            assert_eq!((verdict.allowed, verdict.retry_after), (false, None), "{rule:?}");
            assert_eq!(scene.remaining(rule), 10);
        }
    }
}

#[test]
fn a_period_of_nothing_limits_each_request() {
    let no_time: Micros = 0;
    for rule in all(10, no_time).into_iter().filter(|rule| !matches!(rule, Rule::Lifetime { .. })) {
        let mut scene = Scene::new();
        assert_eq!(scene.allowed(rule, 100), 100, "{rule:?}");
        assert!(scene.take(rule, 10).allowed && !scene.take(rule, 11).allowed);
        assert_eq!(scene.ledger.size(), (0, 0));
    }
    for rule in all(0, SECOND) {
        assert_eq!(Scene::new().allowed(rule, 3), 0, "{rule:?}");
        assert!(Scene::new().take(rule, 0).allowed);
    }
}
