//! Which slots are ready for sure, whoever may take them.
//!
//! A slot is if it was defined and never leased, or if it was given back in order: its nonce used and named, or not
//! used and known before. Of others the store may keep a rest of doubt that nobody is told of, as of a lease that ran
//! out; and nobody is told what an administrator's change comes to, or which changes a replica had. They are not
//! counted until they have been leased again and given back in order.

use std::collections::BTreeMap;

use crate::history::Fact;

/// The slots of a pool.
#[derive(Debug, Default)]
pub struct Readiness(BTreeMap<String, Stand>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stand {
    /// Ready from this store time on.
    Ready(u64),
    Leased {
        /// Whether its nonce is known.
        known: bool,
    },
    Unsure,
}

impl Readiness {
    /// How many are ready at the store's time `now`; some of them may be kept for somebody.
    pub fn count(&self, now: u64) -> u64 {
        self.0.values().filter(|stand| matches!(stand, Stand::Ready(since) if *since <= now)).count() as u64
    }

    /// Whether this one is.
    pub fn is_ready(&self, slot: &str, now: u64) -> bool {
        matches!(self.0.get(slot), Some(Stand::Ready(since)) if *since <= now)
    }

    /// The store forgot everything.
    pub fn wipe(&mut self) {
        self.0.clear();
    }

    /// The replica took over.
    pub fn promote(&mut self) {
        self.0.values_mut().for_each(|stand| *stand = Stand::Unsure);
    }

    /// The store did this at its time `now`.
    pub fn apply(&mut self, now: u64, fact: &Fact) {
        let (slot, stand) = match fact {
            Fact::Defined { slots, .. } => {
                for slot in slots {
                    self.0.entry(slot.clone()).or_insert(Stand::Ready(now));
                }
                return;
            }
            Fact::Granted { slot, known, .. } => (slot, Stand::Leased { known: *known }),
            Fact::Resynced { slot, .. } if self.is_leased(slot) => (slot, Stand::Leased { known: true }),
            Fact::Released { slot, rest, outcome, named, .. } => {
                let known = self.0.get(slot) == Some(&Stand::Leased { known: true });
                let in_order = match outcome.as_str() {
                    "used" => *named && self.is_leased(slot),
                    "unused" => known,
                    _ => false,
                };
                (slot, if in_order { Stand::Ready(now + rest) } else { Stand::Unsure })
            }
            Fact::Changed { slot, .. } => (slot, Stand::Unsure),
            _ => return,
        };
        self.0.insert(slot.clone(), stand);
    }

    fn is_leased(&self, slot: &str) -> bool {
        matches!(self.0.get(slot), Some(Stand::Leased { .. }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_given_back_in_order_is_ready_for_sure() {
        let slot = || "a".to_owned();
        let grant =
            |known| Fact::Granted { holder: slot(), slot: slot(), fence: 1, deadline: 9, max_hold: 0, known };
        let release = |outcome: &str, named| Fact::Released {
            slot: slot(),
            fence: 1,
            rest: 5,
            outcome: outcome.to_owned(),
            named,
        };
        let resynced = Fact::Resynced { slot: slot(), fence: 1 };
        let changed = Fact::Changed { slot: slot(), change: "quarantine".to_owned() };
        for (facts, ready) in [
            (vec![], 1),
            (vec![grant(true)], 0),
            (vec![grant(true), release("unused", false)], 1),
            (vec![grant(false), release("unused", false)], 0),
            (vec![grant(false), resynced.clone(), release("unused", false)], 1),
            (vec![grant(false), release("used", true)], 1),
            (vec![grant(true), release("used", false)], 0),
            (vec![grant(true), release("unknown", false)], 0),
            (vec![grant(true), changed.clone(), release("used", true)], 0),
            (vec![grant(true), changed.clone(), resynced, release("used", true)], 0),
            (vec![changed, grant(true), release("used", true)], 1),
        ] {
            let mut readiness = Readiness::default();
            readiness.apply(3, &Fact::Defined { slots: vec![slot()], longest: 1 });
            facts.iter().for_each(|fact| readiness.apply(4, fact));
            assert_eq!(readiness.count(9), ready, "{facts:?}");
            assert!(readiness.count(8) == 0 || facts.is_empty());
        }
    }
}
