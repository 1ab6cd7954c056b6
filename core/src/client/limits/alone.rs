//! What this process would be allowed if it were alone, for limits that are open while their store cannot be used.
//!
//! Of rates it counts what the store allowed this process, and what this process allowed itself. Of limits of money it
//! begins with all that the process has seen of them, of others too. The store is not told what was allowed without it.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use crate::Micros;
use crate::limits::{Act, Answer, Charge, Envelope, Ledger, Moment, Reply, Request, Rule, Verdict};

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
        if !charges.is_empty() {
            self.with(wall(), |ledger, wall| ledger.apply_one(wall, &Request { act, charges }));
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
