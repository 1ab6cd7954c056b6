//! Who was called as its turn came, and what it made of that (rule Q5).
//!
//! What is offered to a ticket is kept from all others for a second. Whoever is awake and can be reached claims it, or
//! says that it wants it no more, before that has passed for long: else each slot that comes free stands idle for a
//! second, and those who wait are served as they ask again now and then.

use std::collections::{BTreeMap, HashMap};

use crate::history::Fact;
use crate::world::{Instant, ProcessId};

/// Those who wait, and those of them who were called.
#[derive(Debug, Default)]
pub struct Turns {
    /// By the id of a claim: who asks.
    whose: HashMap<String, ProcessId>,
    /// Those who were called and have not asked since: when, and by when they must.
    called: BTreeMap<String, (Instant, Instant)>,
}

impl Turns {
    /// The store did this for a process. Whoever is called by it asks within so long, if that is certain.
    pub fn read(&mut self, at: Instant, process: ProcessId, facts: &[Fact], prompt: Option<u64>) {
        // What an answer says of calls stands behind all that it says of claims.
        let is_served = |called: &String| {
            facts.iter().any(|fact| matches!(fact, Fact::Served(bid) if bid.holder == *called))
        };
        for fact in facts {
            match fact {
                Fact::Served(bid) | Fact::Refused { bid, .. } => {
                    self.called.remove(&bid.holder);
                    self.whose.insert(bid.holder.clone(), process);
                }
                Fact::Withdrawn { holder } => {
                    self.called.remove(holder);
                }
                // Who is called and served by one envelope has had its turn.
                Fact::Offered { holder } if !is_served(holder) => {
                    self.called.extend(prompt.map(|prompt| (holder.clone(), (at, at + prompt))));
                }
                _ => {}
            }
        }
    }

    /// Who asks with this claim.
    pub fn whose(&self, holder: &str) -> Option<ProcessId> {
        self.whose.get(holder).copied()
    }

    /// Those who should have asked by now, of which process each is, and since when: each is told of once.
    pub fn late(&mut self, at: Instant) -> Vec<(String, ProcessId, Instant)> {
        let mut late = Vec::new();
        self.called.retain(|holder, &mut (since, by)| {
            if by < at {
                late.extend(self.whose.get(holder).map(|&process| (holder.clone(), process, since)));
            }
            by >= at
        });
        late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::{Bid, Wish};

    #[test]
    fn who_is_called_asks_or_withdraws_in_time() {
        let bid = Bid {
            holder: "1".to_owned(),
            wish: Wish::Any(1),
            priority: 0,
            ageing: 0,
            waited: 0,
            waits: true,
            steal: None,
        };
        let (holder, why) = (bid.holder.clone(), "exhausted".to_owned());
        let refused = Fact::Refused { bid: bid.clone(), why };
        let offered = Fact::Offered { holder: holder.clone() };
        for (answer, late) in [
            (None, 1),
            (Some(Fact::Served(bid.clone())), 0),
            (Some(refused.clone()), 0),
            (Some(Fact::Withdrawn { holder: holder.clone() }), 0),
        ] {
            let mut turns = Turns::default();
            turns.read(1, 7, std::slice::from_ref(&refused), Some(10));
            turns.read(5, 8, std::slice::from_ref(&offered), Some(10));
            answer.into_iter().for_each(|answer| turns.read(15, 7, &[answer], Some(10)));
            assert_eq!(turns.late(15), []);
            let told = [(holder.clone(), 7, 5)];
            assert_eq!(turns.late(16), told[..late]);
            assert_eq!(turns.late(17), []);
        }
        let mut turns = Turns::default();
        turns.read(1, 7, &[refused], Some(10));
        turns.read(5, 7, &[Fact::Served(bid), offered], Some(10));
        assert_eq!(turns.late(16), [], "it was called as others asked before it, and served as it did");
    }
}
