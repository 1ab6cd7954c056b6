//! Budgets of several calendars on servers that forget.

use super::losses::{Client, Server, daily};
use super::scene::{DAY, HOUR, START};
use crate::Micros;
use crate::limits::{Act, Amount, Rule};

fn of(max: u64, period: Micros, offset: Micros) -> Rule {
    Rule::Budget { max: max.into(), period, offset }
}

// What was told ended before it did: a loss after that let it hold nearly twice its maximum.
#[test]
fn a_day_that_goes_on_outlasts_a_loss() {
    for (first, second, passed) in [
        // Nobody says the one by which it began: it goes on to noon.
        (of(100, DAY, 0), of(100, DAY, 12 * HOUR), DAY),
        // The longest ends in between.
        (of(100, 2 * DAY, 0), of(100, 3 * DAY, 0), 0),
    ] {
        for lost in [false, true] {
            let (mut server, mut client) = (Server::new(), Client::default());
            assert!(Client::default().takes(&mut server, first, 1));
            server.wall = START + passed + HOUR;
            assert!(client.takes(&mut server, second, 90));
            server.wall = START + 2 * DAY + HOUR;
            if lost {
                server.wipe();
            }
            let refused = client.judge(&mut server, Act::Take, second, 11);
            assert!(!refused.allowed, "{second:?} {lost}");
            server.wall += refused.retry_after.unwrap();
            assert!(client.takes(&mut server, second, 100), "{second:?} {lost}");
        }
    }
}

// Who had heard of it before, as it was to end later, would have counted it in the next one.
#[test]
fn a_day_that_ends_sooner_than_was_told_counts_no_longer() {
    let [midnight, noon] = [daily(100), of(100, DAY, 12 * HOUR)];
    for first in [false, true] {
        let (mut server, mut client, mut other) = (Server::new(), Client::default(), Client::default());
        assert!(other.takes(&mut server, midnight, 1));
        server.wall = START + DAY + HOUR;
        assert!(client.takes(&mut server, noon, 80));
        let before = client.seen.clone().unwrap();
        server.wall += HOUR;
        assert!(other.takes(&mut server, midnight, 20));
        server.wall = START + 2 * DAY + HOUR;
        let rest = if first { 100u64 } else { 91 };
        if !first {
            assert!(other.takes(&mut server, midnight, 9));
        }
        assert!(client.takes(&mut server, noon, rest));
        assert!(!other.takes(&mut server, midnight, 1));
        client.seen.as_mut().unwrap().update(&before);
        assert_eq!(client.seen.as_ref().unwrap().used(), Amount::from(100u64));
        server.wipe();
        assert!(!client.takes(&mut server, noon, 1) && !other.takes(&mut server, midnight, 1));
    }
}
