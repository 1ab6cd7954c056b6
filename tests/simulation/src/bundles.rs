//! Names that are locked together: granted all or none (rule N1), and known to their holder by one fence.

use std::collections::{BTreeSet, HashMap};

use crate::checker::Breach;
use crate::history::{Bid, Fact, Wish};

/// All that were granted together.
#[derive(Debug, Default)]
pub struct Bundles {
    /// By the highest fence, which is the one that its holder is told: the names with their own.
    leases: HashMap<u64, Vec<(String, u64)>>,
}

impl Bundles {
    /// Reads what was granted for claims of names.
    pub fn read(&mut self, facts: &[Fact]) -> Result<(), Breach> {
        for (fact, at) in facts.iter().zip(1..) {
            if let Fact::Served(bid) = fact
                && let Wish::Names(names) = &bid.wish
            {
                self.grant(bid, names, &facts[at..])?;
            }
        }
        Ok(())
    }

    /// The fence under which the store knows a slot whose holder knows it by this one.
    pub fn lease(&self, slot: &str, fence: u64) -> u64 {
        let found = self.leases.get(&fence).and_then(|leases| leases.iter().find(|(name, _)| name == slot));
        found.map_or(fence, |&(_, fence)| fence)
    }

    /// The fences of all leases that their holder knows by this one.
    pub fn leases(&self, fence: u64) -> Vec<u64> {
        let bundle = self.leases.get(&fence);
        bundle.map_or_else(|| vec![fence], |leases| leases.iter().map(|&(_, fence)| fence).collect())
    }

    fn grant(&mut self, bid: &Bid, names: &[String], facts: &[Fact]) -> Result<(), Breach> {
        let (mut leases, mut ends) = (Vec::new(), BTreeSet::new());
        for fact in facts {
            let Fact::Granted { holder, slot, fence, deadline, .. } = fact else { break };
            if *holder != bid.holder {
                break;
            }
            leases.push((slot.clone(), *fence));
            ends.insert(deadline);
        }
        let wanted: BTreeSet<_> = names.iter().collect();
        let granted: BTreeSet<_> = leases.iter().map(|(name, _)| name).collect();
        if wanted != granted || granted.len() != leases.len() || ends.len() != 1 {
            let text = format!("{} wants {wanted:?} and was granted {leases:?} until {ends:?}", bid.holder);
            return Err(Breach::new("N1", text));
        }
        if let Some(highest) = leases.iter().map(|&(_, fence)| fence).max() {
            self.leases.insert(highest, leases);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_names_are_granted_or_none() {
        let bid = |names: &[&str]| Bid {
            holder: "1".to_owned(),
            wish: Wish::Names(names.iter().map(|&name| name.to_owned()).collect()),
            priority: 0,
            ageing: 0,
            waited: 0,
            waits: false,
            steal: None,
        };
        let lease = |slot: &str, fence, deadline| Fact::Granted {
            holder: "1".to_owned(),
            slot: slot.to_owned(),
            fence,
            deadline,
            max_hold: 0,
            known: false,
        };
        let read = |facts: &[Fact]| {
            let mut bundles = Bundles::default();
            bundles.read(facts).map(|()| bundles)
        };
        // One that is named twice counts once.
        let facts = [Fact::Served(bid(&["a", "b", "a"])), lease("a", 7, 9), lease("b", 8, 9)];
        let bundles = read(&facts).expect("all");
        assert_eq!((bundles.lease("a", 8), bundles.lease("b", 8), bundles.lease("c", 5)), (7, 8, 5));
        assert_eq!((bundles.leases(8), bundles.leases(7)), (vec![7, 8], vec![7]));
        assert!(read(&facts[..2]).is_err(), "a part");
        assert!(read(&[Fact::Served(bid(&["a"])), lease("a", 7, 9), lease("b", 8, 9)]).is_err(), "more");
        assert!(read(&[facts[0].clone(), lease("a", 7, 9), lease("b", 8, 10)]).is_err(), "two ends");
    }
}
