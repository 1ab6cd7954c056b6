//! Limits whose server's clock jumps.

use super::losses::{Client, Server, daily};
use super::scene::{DAY, HOUR, START, Scene, all, charge, rates};
use crate::limits::clock::Clock;
use crate::limits::{Act, Amount, Rule, Standing};
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

// As if the store had forgotten the day before: what had been used of that counted for another whole day, and for everybody.
#[test]
fn a_day_that_begins_while_the_clock_is_set_back_begins_with_nothing() {
    let rule = daily(100);
    for (back, reset) in [(SECOND, true), (300 * SECOND, false), (10 * HOUR, false), (14 * HOUR, true)] {
        let (mut server, mut client, mut idle) = (Server::new(), Client::default(), Client::default());
        server.wall = START + DAY - SECOND / 2;
        if reset {
            client.judge(&mut server, Act::Reset, rule, 0);
        }
        assert!(idle.takes(&mut server, rule, 10) && client.takes(&mut server, rule, 80));
        let before = client.seen.clone().unwrap();
        server.wall -= back;
        server.wall += client.judge(&mut server, Act::Take, rule, 90).retry_after.unwrap();
        assert!(server.wall < START + DAY, "by its own time the day is over");
        for round in 1..=2u64 {
            assert!(client.takes(&mut server, rule, 10), "{back} {round}");
            assert_eq!(client.seen.as_ref().unwrap().used(), (10 * round).into(), "{back}");
            client.seen.as_mut().unwrap().update(&before);
        }
        assert!(idle.takes(&mut server, rule, 80), "{back}");
        assert_eq!(client.judge(&mut server, Act::Take, rule, 1).remaining, Amount::ZERO);
        // What it has seen of that day outlasts a loss.
        server.wipe();
        assert_eq!(client.used(&mut server, rule), 100u64.into(), "{back}");
    }
}

/// What one knows that has heard of both, in either order.
fn heard(first: &Standing, second: &Standing) -> Amount {
    let (mut seen, mut late) = (first.clone(), second.clone());
    seen.update(second);
    late.update(first);
    assert_eq!(seen, late);
    seen.used()
}

// Answers of before and after it, of which none knew of the other, are told from those of two days.
#[test]
fn a_loss_is_noticed_whatever_the_clock_says_after_it() {
    let forgets = |mut server: Server, mut first: Client, wall: Micros, period: Micros, told: bool| {
        let of = |max: u64| Rule::Budget { max: max.into(), period, offset: 0 };
        server.wipe();
        server.wall = START + wall;
        let mut second = Client::default();
        assert!(second.takes(&mut server, of(100), 60));
        let both = heard(first.seen.as_ref().unwrap(), second.seen.as_ref().unwrap());
        assert_eq!(both, if told { 120u64 } else { 60 }.into(), "{wall} {period}");
        assert_eq!(first.used(&mut server, of(1_000)), 120u64.into(), "{wall} {period}");
    };
    let noon = 12 * HOUR;
    for period in [HOUR, DAY, 2 * DAY] {
        for wall in [HOUR / 2, 11 * HOUR, noon - 1, noon + 1, noon + HOUR / 2, 23 * HOUR] {
            for reset in [false, true] {
                let (mut server, mut first) = (Server::new(), Client::default());
                server.wall = START + noon;
                if reset {
                    first.judge(&mut server, Act::Reset, daily(100), 0);
                }
                assert!(first.takes(&mut server, daily(100), 60));
                // What seems older than a reset, or of an hour before, is left to the store, which counts it.
                let told = wall > noon || !reset && period > HOUR;
                forgets(server, first, wall, period, told);
            }
        }
    }
    // In a day that has begun while the clock was set back.
    for period in [HOUR, DAY, 2 * DAY] {
        for wall in [19 * HOUR + 2, 20 * HOUR, DAY - 1, DAY, 30 * HOUR] {
            let (mut server, mut first) = (Server::new(), Client::default());
            server.wall = START + 19 * HOUR;
            assert!(first.takes(&mut server, daily(100), 60));
            server.wall -= 10 * HOUR;
            assert_eq!(first.used(&mut server, daily(100)), 60u64.into());
            server.wall += 10 * HOUR;
            assert!(first.takes(&mut server, daily(100), 60));
            forgets(server, first, wall, period, true);
        }
    }
}

// A day that has begun while the clock was set back goes on through two failovers: what the server between them counted is of that
// day, not of the one before, and was admitted again.
#[test]
fn what_is_counted_between_two_failovers_is_of_the_day_that_began_before_them() {
    let (mut server, mut client, mut idle) = (Server::new(), Client::default(), Client::default());
    let hourly = |max: u64| Rule::Budget { max: max.into(), period: HOUR, offset: 0 };
    for wall in [HOUR / 12, HOUR - HOUR / 6] {
        server.wall = START + wall;
        assert!(idle.takes(&mut server, hourly(100), 25));
    }
    server.wall = START + HOUR / 6;
    assert_eq!(idle.used(&mut server, hourly(100)), 50u64.into());
    // By its own time, which runs on at half pace, the hour is over.
    server.wall += HOUR / 2;
    assert!(idle.takes(&mut server, hourly(100), 60));
    let before = server.ledger.clone();
    server.wipe();
    server.wall += 1;
    assert!(client.takes(&mut server, hourly(100), 30));
    server.promote(before);
    server.wall += 1;
    assert!(idle.takes(&mut server, hourly(100), 5));
    let both = heard(client.seen.as_ref().unwrap(), idle.seen.as_ref().unwrap());
    assert_eq!(both, 95u64.into());
    // By the server's time what it brings first is of an hour that is over; the answer says that this one had begun before.
    client.used(&mut server, hourly(100));
    assert_eq!(client.used(&mut server, hourly(100)), 95u64.into());
}

#[test]
fn who_has_reset_a_budget_hears_of_the_days_that_follow() {
    let (mut server, mut admin) = (Server::new(), Client::default());
    server.wall = START + 10 * DAY;
    assert!(admin.takes(&mut server, daily(100), 60));
    // It was wrong by ten days.
    server.wall = START + HOUR;
    admin.judge(&mut server, Act::Reset, daily(100), 0);
    for _ in 0..3 {
        assert!(admin.takes(&mut server, daily(100), 60));
        assert_eq!(admin.seen.as_ref().unwrap().used(), 60u64.into());
        server.wipe();
        assert!(!admin.takes(&mut server, daily(100), 41));
        server.wall += DAY;
    }
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

// Its record ended before the memory of those who had seen it, and the limit's own time with it: an hour's budget was shut for ten days.
#[test]
fn a_budget_is_not_shut_until_a_time_that_was_wrong_once() {
    let hourly = Rule::Budget { max: 10u64.into(), period: HOUR, offset: 0 };
    let (mut server, mut client) = (Server::new(), Client::default());
    server.wall += 10 * DAY;
    assert!(client.takes(&mut server, hourly, 3));
    server.wall -= 10 * DAY;
    assert!(client.takes(&mut server, hourly, 7));
    assert!(!client.takes(&mut server, hourly, 1));
    for hours in [5, 18] {
        server.wall += hours * HOUR;
        assert!(client.takes(&mut server, hourly, 10), "{hours}");
    }
}
