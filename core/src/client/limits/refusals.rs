//! Refusals that the store told a moment ago, so that those who ask again at once do not ask the store.

use rustc_hash::FxHashMap;

use super::answer::{LimitAnswer, Said};
use crate::id::Name;
use crate::limits::{Amount, Charge, Rule};
use crate::{Micros, SECOND};

/// How long a refusal is believed at most. Another process may give back meanwhile, or an administrator reset the limit;
/// and who asks once a second costs the store nothing.
const BELIEVED: Micros = SECOND;
/// How many are kept before those whose time has passed are dropped.
const CROWD: usize = 10_000;

/// What was refused, by limit.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    known: FxHashMap<Name, Refusal>,
    /// How often something was given back or reset here.
    changes: u64,
}

#[derive(Debug)]
struct Refusal {
    rule: Rule,
    cost: Amount,
    until: Micros,
    /// When it would be allowed, and as if never used, on the local clock.
    retry: Micros,
    reset: Option<Micros>,
    remaining: Amount,
}

impl Refusals {
    /// A refusal of one of these charges, by the same rule. One of less would be as sure, but its time would be too soon.
    pub fn recall(&self, charges: &[Charge], now: Micros) -> Option<LimitAnswer> {
        charges.iter().find_map(|charge| {
            let refusal = self.known.get(&charge.limit)?;
            let covers = refusal.rule == charge.rule && charge.cost == refusal.cost && now < refusal.until;
            covers.then(|| LimitAnswer {
                allowed: false,
                limit: Some(charge.limit.clone()),
                remaining: refusal.remaining,
                retry_after_micros: Some(refusal.retry.saturating_sub(now)),
                reset_after_micros: refusal.reset.map(|reset| reset.saturating_sub(now)),
                said: Said::Memory,
            })
        })
    }

    /// How often something has changed here: what is asked before a change says nothing of what is after it.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Keeps a refusal of a request that was sent at `sent`, unless something has changed since `changes` was told.
    pub fn keep(&mut self, charge: &Charge, answer: &LimitAnswer, sent: Micros, changes: u64) {
        let Some(retry @ 1..) = answer.retry_after_micros else { return };
        // What is in flight may be given back at any time.
        if changes != self.changes || matches!(charge.rule, Rule::InFlight { .. }) {
            return;
        }
        if self.known.len() >= CROWD {
            self.known.retain(|_, refusal| refusal.until > sent);
            if self.known.len() >= CROWD {
                return;
            }
        }
        // Counted from before it was asked: the store's answer holds for longer than that.
        let refusal = Refusal {
            rule: charge.rule,
            cost: charge.cost,
            until: sent + retry.min(BELIEVED),
            retry: sent + retry,
            reset: answer.reset_after_micros.map(|time| sent + time),
            remaining: answer.remaining,
        };
        self.known.insert(charge.limit.clone(), refusal);
    }

    /// Something is given back to these limits, or they are reset.
    pub fn forget(&mut self, charges: &[Charge]) {
        self.changes += 1;
        for charge in charges {
            self.known.remove(&charge.limit);
        }
    }
}
