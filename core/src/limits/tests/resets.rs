//! Limits of money that somebody has reset, and those who have not heard of it.

use super::losses::{Client, Server};
use super::scene::{HOUR, charge};
use crate::SECOND;
use crate::limits::{Act, Amount, Reply, Rule, Settlement};

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
