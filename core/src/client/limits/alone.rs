//! What this process would be allowed if it were alone, for limits that are open while their store cannot be used.
//!
//! Of rates that are open then it counts what the store allowed this process, and what this process allowed itself. Of limits of money it
//! begins with all that the process has seen of them, of others too. The store is not told what was allowed without it.

use std::sync::Mutex;

use crate::limits::{Act, Answer, Charge, Envelope, Ledger, Moment, Reply, Request, Rule, Verdict};
use crate::poison::unpoisoned;
use crate::{Micros, SECOND};

/// By how much what is known of the store's time may tremble. What is further ahead was wrong, or the clock was set back.
const TREMOR: Micros = 2 * SECOND;

/// The limits of one scope, as this process knows them.
pub(super) struct Alone {
    /// By which what is charged here is told from what the store charged.
    incarnation: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ledger: Ledger,
    /// The latest time that it was told, but for tremors. One for all limits: what is known of the store's time trembles, and a limit's own
    /// clock that is set back goes on from where it was, so that each tremor would be time that passes.
    wall: Micros,
}

impl Alone {
    pub fn new(incarnation: u128) -> Self {
        let incarnation = format!("{incarnation:032x}");
        Alone { incarnation, state: Mutex::default() }
    }

    /// The store did this for this process, at this time by its clock.
    pub fn hear(&self, wall: impl FnOnce() -> Micros, request: &Request) {
        let act = request.act;
        if matches!(act, Act::Peek) {
            return;
        }
        // Who resets a limit may have it as one that is closed. What was taken here before counts no more; of what is charged from then on
        // it is told, of limits of money, what was seen.
        if matches!(act, Act::Reset) {
            let limits = request.charges.iter().map(|charge| (charge.rule, &charge.limit));
            return unpoisoned(&self.state).ledger.forget_all(limits);
        }
        let counts = |charge: &&Charge| match charge.rule {
            Rule::InFlight { .. } => false,
            rule => charge.open && !rule.is_of_money(),
        };
        let charges: Vec<Charge> = request.charges.iter().filter(counts).cloned().collect();
        if charges.is_empty() {
            return;
        }
        let request = Request { act, charges };
        // Also what would be refused here: the store's time is ahead of what is known of it, and it was not told what this
        // process allowed itself.
        self.with(wall(), |ledger, wall| ledger.count(wall, &request));
    }

    /// Whether it has counted anything that counts still.
    pub fn remembers(&self, wall: impl FnOnce() -> Micros) -> bool {
        self.with(wall(), |ledger, wall| ledger.remembers(wall))
    }

    /// What it says at this time to the one request of an envelope, which has what the process has seen of limits of money.
    pub fn judge(&self, wall: Micros, envelope: &Envelope) -> Option<Verdict> {
        let answer = self.with(wall, |ledger, wall| {
            ledger.apply(Moment { wall, incarnation: &self.incarnation }, envelope)
        });
        let Answer::Performed(performed) = answer else { return None };
        performed.replies.first().and_then(|reply| match reply {
            Reply::Judged(verdict) => Some(*verdict),
            Reply::Settled(_) => None,
        })
    }

    /// How many limits and reservations it counts.
    #[cfg(test)]
    pub fn size(&self) -> (usize, usize) {
        unpoisoned(&self.state).ledger.size()
    }

    fn with<T>(&self, wall: Micros, work: impl FnOnce(&mut Ledger, Micros) -> T) -> T {
        let mut state = unpoisoned(&self.state);
        if wall > state.wall || state.wall - wall > TREMOR {
            state.wall = wall;
        }
        let wall = state.wall;
        work(&mut state.ledger, wall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MILLISECOND;
    use crate::id::Name;

    const NOW: Micros = 1_700_000_000 * SECOND;
    const MINUTE: Micros = 60 * SECOND;

    fn take(rule: Rule, cost: u64) -> Request {
        take_of("a", rule, cost)
    }

    fn take_of(limit: &str, rule: Rule, cost: u64) -> Request {
        let charge = Charge { limit: Name::new(limit).unwrap(), rule, cost: cost.into(), open: true };
        Request { act: Act::Take, charges: vec![charge] }
    }

    fn allows(alone: &Alone, wall: Micros, request: Request) -> bool {
        alone.judge(wall, &Envelope { requests: vec![request], ..Envelope::default() }).unwrap().allowed
    }

    // What it would have refused itself, by a time that was heard late, it forgot: an outage allowed the whole once more.
    #[test]
    fn what_the_store_allowed_counts_however_late_it_was_heard_of() {
        for rule in [Rule::Rolling { max: 100, period: MINUTE }, Rule::Refill { max: 100, period: MINUTE }] {
            let alone = Alone::new(1);
            alone.hear(|| NOW + SECOND * 3 / 10, &take(rule, 100));
            alone.hear(|| NOW + MINUTE, &take(rule, 100));
            assert!(!allows(&alone, NOW + MINUTE + SECOND, take(rule, 50)), "{rule:?}");
        }
    }

    // The store knows nothing of what was allowed without it; what it allowed after that was counted nowhere.
    #[test]
    fn what_the_store_allowed_counts_also_where_all_was_taken_without_it() {
        for rule in [Rule::Rolling { max: 100, period: MINUTE }, Rule::Refill { max: 100, period: MINUTE }] {
            let alone = Alone::new(1);
            assert!(allows(&alone, NOW, take(rule, 100)));
            alone.hear(|| NOW + 10 * SECOND, &take(rule, 100));
            assert!(!allows(&alone, NOW + MINUTE + SECOND, take(rule, 20)), "{rule:?}");
        }
    }

    // What the store allowed of one, and would have been refused here, moved the time of all: others were as if refilled in
    // no time, or not at all.
    #[test]
    fn one_limit_says_nothing_of_the_time_of_others() {
        let refill = |max, period| Rule::Refill { max, period };
        let rolling = Rule::Rolling { max: 100, period: MINUTE };
        for busy in [refill(100, MINUTE), rolling] {
            for idle in [refill(100, MINUTE), rolling] {
                let alone = Alone::new(1);
                alone.hear(|| NOW, &take_of("idle", idle, 100));
                alone.hear(|| NOW, &take_of("busy", busy, 100));
                alone.hear(|| NOW, &take_of("brief", refill(10, SECOND), 10));
                for _ in 0..100 {
                    alone.hear(|| NOW + MILLISECOND, &take_of("busy", busy, 1));
                }
                assert!(!allows(&alone, NOW + SECOND / 2, take_of("idle", idle, 1)), "{busy:?} {idle:?}");
                assert!(allows(&alone, NOW + SECOND, take_of("brief", refill(10, SECOND), 10)));
            }
        }
    }

    // Until the time was caught up with nothing was refilled, and all was counted.
    #[test]
    fn a_time_that_was_set_back_goes_on() {
        for rule in [Rule::Rolling { max: 10, period: SECOND }, Rule::Refill { max: 10, period: SECOND }] {
            let alone = Alone::new(1);
            alone.hear(|| NOW + 60 * MINUTE, &take(rule, 1));
            for second in 0..4 {
                alone.hear(|| NOW + second * SECOND, &take(rule, 10));
            }
            assert!(!allows(&alone, NOW + 3 * SECOND, take(rule, 1)), "{rule:?}");
            assert!(allows(&alone, NOW + 10 * SECOND, take(rule, 10)), "{rule:?}");
        }
    }

    #[test]
    fn a_time_that_trembles_does_not_run_ahead() {
        let alone = Alone::new(1);
        let rule = Rule::Refill { max: 100, period: MINUTE };
        alone.hear(|| NOW, &take(rule, 100));
        for tremor in 0..10_000 {
            alone.hear(|| NOW + tremor % 2 * MILLISECOND, &take(rule, 0));
        }
        assert!(!allows(&alone, NOW + SECOND / 2, take(rule, 1)));
    }
}
