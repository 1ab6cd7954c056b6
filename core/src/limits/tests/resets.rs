//! Limits of money that somebody has reset, and those who have not heard of it.

use super::losses::{Client, SPEND, Server, daily};
use super::scene::{DAY, HOUR, charge};
use crate::SECOND;
use crate::limits::{Act, Amount, MAX_PERIOD, Reply, Rule, Settlement, Standing};

// It was told as done, and stayed charged for good: who had seen the limit before was taken for one whose store has forgotten.
#[test]
fn who_has_not_heard_of_a_reset_gives_back_what_was_taken_since() {
    let rule = Rule::Lifetime { max: 10u64.into() };
    let five = [charge("a", rule, 5)];
    for reserved in [true, false] {
        let (mut server, mut idle, mut other) = (Server::new(), Client::default(), Client::default());
        assert!(idle.takes(&mut server, rule, 1));
        server.wall += SECOND;
        Client::default().judge(&mut server, Act::Reset, rule, 0);
        let (take, back) = match reserved {
            true => (Act::Reserve { id: 1, ttl: HOUR, waited: None }, Act::GiveBack { id: 1 }),
            false => (Act::Take, Act::Refund),
        };
        other.ask(&mut server, take, &five);
        let told = idle.ask(&mut server, back, &five);
        assert!(!reserved || told == Reply::Settled(Settlement::Done));
        assert_eq!(other.used(&mut server, rule), Amount::ZERO, "{reserved}");
        // Of what was forgotten since, nobody knows whether it was given back before.
        other.ask(&mut server, Act::Take, &five);
        let mut late = Client { seen: other.seen.clone() };
        server.wipe();
        assert_eq!(other.used(&mut server, rule), 5u64.into());
        late.judge(&mut server, Act::Refund, rule, 5);
        assert_eq!(other.used(&mut server, rule), 5u64.into());
    }
}

// One stray long period locked it for up to two years: whoever reset it found it as long as before.
#[test]
fn a_budget_that_is_reset_is_of_the_calendar_of_who_resets_it() {
    let stray = Rule::Budget { max: 100u64.into(), period: MAX_PERIOD, offset: 0 };
    let (mut server, mut idle, mut admin) = (Server::new(), Client::default(), Client::default());
    server.wall += 9 * HOUR;
    assert!(idle.takes(&mut server, daily(100), 40));
    assert!(idle.takes(&mut server, stray, 60));
    let before = idle.seen.clone().unwrap();
    server.wall += SECOND;
    admin.judge(&mut server, Act::Reset, daily(100), 0);
    let left = 15 * HOUR - SECOND;
    assert!(admin.takes(&mut server, daily(100), 30));
    assert_eq!(admin.judge(&mut server, Act::Take, daily(100), 90).retry_after, Some(left));
    // Whoever has seen how long it was, on another server too.
    for moves in [false, true] {
        if moves {
            server.promote(server.ledger.clone());
        }
        let mut late = Client { seen: Some(before.clone()) };
        let told = late.judge(&mut server, Act::Take, daily(100), 90);
        assert_eq!((told.remaining, told.retry_after), (70u64.into(), Some(left - u64::from(moves))));
        // It has heard of it by now, and does not go back to what it is told late.
        assert_eq!(late.seen, admin_seen(&mut admin, &mut server));
        let heard = late.seen.clone();
        late.seen.as_mut().unwrap().update(&before);
        assert_eq!(late.seen, heard);
    }
    server.wall += left;
    assert!(admin.takes(&mut server, daily(100), 100));
    assert_eq!(admin.judge(&mut server, Act::Take, daily(100), 1).retry_after, Some(DAY - 1));
}

fn admin_seen(admin: &mut Client, server: &mut Server) -> Option<Standing> {
    admin.used(server, daily(100));
    admin.seen.clone()
}

#[test]
fn a_lifetime_that_is_reset_stays_one() {
    let (mut server, mut client) = (Server::new(), Client::default());
    assert!(client.takes(&mut server, SPEND, 5));
    let told = client.judge(&mut server, Act::Reset, SPEND, 0);
    assert_eq!((told.retry_after, told.reset_after), (Some(0), Some(0)));
    assert_eq!(client.seen.unwrap().ends(), 0);
}

// In the next period nothing said that there had been a reset, and who had slept through it brought back what was used before, and
// until when: a whole year, for everybody.
#[test]
fn nor_does_who_sleeps_through_it_bring_back_in_a_later_period_what_was_before() {
    let stray = Rule::Budget { max: 100u64.into(), period: MAX_PERIOD, offset: 0 };
    for (asked, awake) in [(stray, true), (stray, false), (daily(100), true)] {
        let hourly = Rule::Budget { max: 100u64.into(), period: HOUR, offset: 0 };
        let (mut server, mut idle, mut admin) = (Server::new(), Client::default(), Client::default());
        server.wall += 9 * HOUR + HOUR / 2;
        assert!(idle.takes(&mut server, hourly, 40) && idle.takes(&mut server, asked, 60));
        let before = idle.seen.clone();
        server.wall += SECOND;
        admin.judge(&mut server, Act::Reset, hourly, 0);
        // Within the hour after, and as long after as anybody remembers.
        for pass in [HOUR, 3 * HOUR, 19 * HOUR] {
            server.wall += pass;
            if awake {
                assert!(admin.takes(&mut server, hourly, 1));
            }
            let mut late = Client { seen: before.clone() };
            let told = late.judge(&mut server, Act::Peek, hourly, 100 - u64::from(awake));
            assert!(told.allowed, "{pass} after a reset of {asked:?}: {told:?}");
            // It has heard of it, unless there is nothing to be told.
            assert!(!awake || late.seen != before, "{pass}");
        }
    }
}

// It was, where who had reset it asked first, and was not where somebody else did.
#[test]
fn a_reset_of_which_a_lagging_replica_has_not_heard_is_not_undone_while_somebody_knows_of_it() {
    for other_first in [false, true] {
        let (mut server, mut client, mut admin) = (Server::new(), Client::default(), Client::default());
        assert!(client.takes(&mut server, SPEND, 80));
        let lags = server.ledger.clone();
        server.wall += SECOND;
        admin.judge(&mut server, Act::Reset, SPEND, 0);
        server.promote(lags);
        if other_first {
            assert!(Client::default().takes(&mut server, SPEND, 7));
        }
        let left = if other_first { 7u64 } else { 0 };
        assert_eq!(admin.used(&mut server, SPEND), left.into(), "{other_first}");
        assert_eq!(client.used(&mut server, SPEND), left.into(), "{other_first}");
    }
}
