//! Limits whose server's clock jumps.

use super::scene::{DAY, HOUR, Scene, all, charge, rates};
use crate::limits::clock::Clock;
use crate::limits::{Act, Rule};
use crate::{Micros, SECOND};
use proptest::prelude::*;

// For ever: each day began ten hours early, and from one midnight to the next there was room for two.
#[test]
fn a_day_begins_at_midnight_again_after_a_clock_that_was_wrong() {
    let rule = Rule::Budget { max: 100u64.into(), period: DAY, offset: 0 };
    let mut scene = Scene::new();
    assert!(scene.pass(9 * HOUR).take(rule, 1).allowed);
    assert!(scene.pass(10 * HOUR).take(rule, 1).allowed);
    scene.wall -= 10 * HOUR;
    assert_eq!(scene.take(rule, 100).remaining, 98u64.into());
    assert!(scene.pass(4 * HOUR).take(rule, 98).allowed);
    assert!(!scene.pass(2 * HOUR).take(rule, 1).allowed);
    for _ in 0..3 {
        assert!(scene.pass(22 * HOUR).take(rule, 100).allowed);
        assert_eq!(scene.pass(2 * HOUR).take(rule, 1).retry_after, Some(9 * HOUR));
    }
}

// Each time that it went back and forth was as if so much had passed.
#[test]
fn a_clock_that_jumps_by_less_than_the_time_between_gives_nothing_away() {
    for rule in rates(10, 10 * SECOND) {
        let mut scene = Scene::new();
        let mut taken = scene.allowed(rule, 20);
        for _ in 0..100 {
            scene.wall -= SECOND;
            taken += scene.pass(2 * SECOND).allowed(rule, 20);
            scene.wall += SECOND;
            taken += scene.pass(2 * SECOND).allowed(rule, 20);
        }
        assert!((300..=400 + 11).contains(&taken), "{taken} of {rule:?}");
    }
}

#[test]
fn what_is_told_is_true_while_a_clock_falls_back() {
    for rule in all(10, HOUR).into_iter().take(5).filter(|rule| !matches!(rule, Rule::Lifetime { .. })) {
        for (back, passed) in [(SECOND, 0), (10 * HOUR, 0), (10 * HOUR, HOUR / 7), (HOUR, 1)] {
            let mut scene = Scene::new();
            assert!(scene.pass(HOUR / 3).take(rule, 10).allowed);
            scene.wall -= back;
            let refused = scene.pass(passed).take(rule, 10);
            let (retry, reset) = (refused.retry_after.unwrap(), refused.reset_after.unwrap());
            // To the last microsecond but one.
            for time in [retry, reset] {
                assert!(!scene.clone().pass(time - 2).take(rule, 10).allowed, "{rule:?} {back}");
                assert!(scene.clone().pass(time).take(rule, 10).allowed, "{rule:?} {back}");
            }
        }
    }
}

#[test]
fn a_budget_that_is_reset_is_of_the_servers_time_again() {
    let rule = Rule::Budget { max: 100u64.into(), period: DAY, offset: 0 };
    let mut scene = Scene::new();
    assert!(scene.pass(19 * HOUR).take(rule, 100).allowed);
    scene.wall -= 10 * HOUR;
    scene.judge(Act::Reset, &[charge("a", rule, 0)]);
    assert!(scene.take(rule, 100).allowed);
    assert_eq!(scene.take(rule, 1).retry_after, Some(15 * HOUR));
}

proptest! {
    // Whatever the server's clock does: a limit's runs forward, and no faster than that; and it is that again in time.
    #[test]
    fn a_limits_time_is_the_servers_in_the_end(
        steps in prop::collection::vec((0..100_000u64, 0..3u8, 0..1_000_000u64, any::<bool>()), 1..60),
    ) {
        let mut wall: Micros = 1 << 40;
        let mut clock = Clock::new(wall);
        let mut before = (wall, wall);
        for (passes, jumps, far, written) in steps {
            wall = match jumps {
                0 => wall + passes,
                1 => wall - far,
                _ => wall + far,
            };
            let now = clock.now(wall);
            prop_assert!(now >= before.1.max(wall));
            prop_assert!(now - before.1 <= wall.saturating_sub(before.0));
            if written || clock.is_behind(wall) {
                (clock, before) = (clock.written(wall), (wall, now));
            }
            let told = clock.lasts(wall, passes);
            prop_assert!(clock.now(wall + told) >= now + passes);
            prop_assert!(told < 2 || clock.now(wall + told - 2) < now + passes);
        }
        let ahead = clock.now(wall) - wall;
        wall += 2 * ahead + 1;
        prop_assert_eq!(clock.now(wall), wall);
    }
}
