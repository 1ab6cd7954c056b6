//! What this process would be allowed if it were alone, for limits that are open while their store cannot be used.
//!
//! Of rates it counts what the store allowed this process, and what this process allowed itself. Of limits of money it
//! begins with all that the process has seen of them, of others too. The store is not told what was allowed without it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::limits::{Act, Answer, Charge, Envelope, Ledger, Moment, Reply, Request, Rule, Verdict};
use crate::{Micros, SECOND};

/// By how much the store's time may be ahead of what is known of it: as long as an answer is on its way.
const LAG: Micros = 2 * SECOND;

/// The limits of one scope, as this process knows them.
pub(super) struct Alone {
    /// Whether any limit of the scope is open in an outage: for others nothing is counted.
    counts: AtomicBool,
    /// By which what is charged here is told from what the store charged.
    incarnation: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    ledger: Ledger,
    /// The latest time that it was told.
    wall: Micros,
}

impl Alone {
    pub fn new(incarnation: u128) -> Self {
        let incarnation = format!("{incarnation:032x}");
        Alone { counts: AtomicBool::new(false), incarnation, state: Mutex::default() }
    }

    /// From now on it counts.
    pub fn count(&self) {
        self.counts.store(true, Relaxed);
    }

    /// The store did this for this process, at this time by its clock.
    pub fn hear(&self, wall: impl FnOnce() -> Micros, request: &Request) {
        let act = request.act;
        if !self.counts.load(Relaxed) || matches!(act, Act::Peek) {
            return;
        }
        let is_rate =
            |charge: &&Charge| !charge.rule.is_of_money() && !matches!(charge.rule, Rule::InFlight { .. });
        let charges: Vec<Charge> = request.charges.iter().filter(is_rate).cloned().collect();
        if charges.is_empty() {
            return;
        }
        let request = Request { act, charges };
        let (wall, reply) = self.with(wall(), |ledger, wall| (wall, ledger.apply_one(wall, &request)));
        // The store allowed it by a later time than is known here, or of an earlier take it was heard late: else this would be
        // counted nowhere.
        if let Reply::Judged(Verdict { allowed: false, retry_after: Some(lag), .. }) = reply
            && lag <= LAG
        {
            self.with(wall + lag, |ledger, wall| ledger.apply_one(wall, &request));
        }
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

    fn with<T>(&self, wall: Micros, work: impl FnOnce(&mut Ledger, Micros) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.wall = state.wall.max(wall);
        let wall = state.wall;
        work(&mut state.ledger, wall)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::Name;

    const NOW: Micros = 1_700_000_000 * SECOND;

    // What it would have refused itself, by a time that was heard late, it forgot: an outage allowed the whole once more.
    #[test]
    fn what_the_store_allowed_counts_however_late_it_was_heard_of() {
        let rules =
            [Rule::Rolling { max: 100, period: 60 * SECOND }, Rule::Refill { max: 100, period: 60 * SECOND }];
        for rule in rules {
            let alone = Alone::new(1);
            alone.count();
            let charge = Charge { limit: Name::new("a").unwrap(), rule, cost: 100u64.into() };
            let take = |cost: u64| Request {
                act: Act::Take,
                charges: vec![Charge { cost: cost.into(), ..charge.clone() }],
            };
            let late = SECOND * 3 / 10;
            alone.hear(|| NOW + late, &take(100));
            alone.hear(|| NOW + 60 * SECOND, &take(100));
            let envelope = Envelope { requests: vec![take(50)], ..Envelope::default() };
            let verdict = alone.judge(NOW + 61 * SECOND, &envelope).unwrap();
            assert!(!verdict.allowed, "{verdict:?}");
        }
    }
}
