//! What the store does as one.

use crate::history::{Fact, Wish};
use crate::line_model::LineModel;
use crate::thefts::Thief;

/// What is done as one.
pub struct Turn {
    /// Those whose holders are called at its end.
    pub called: Vec<u64>,
    /// All who may claim them. One of these may have left the line again by then.
    thieves: Vec<(Wish, Thief)>,
    /// The leases that were given back or broken: their holders are called in vain.
    pub ended: Vec<u64>,
    /// Those whose slots an administrator changed. That they were claimed before is told at its end.
    pub changed: Vec<u64>,
}

impl Turn {
    /// A turn in which these things were done, before the first of them.
    pub fn of(facts: &[Fact], line: &LineModel) -> Self {
        let called =
            |fact: &Fact| if let Fact::Called { fences } = fact { fences.clone() } else { Vec::new() };
        let called: Vec<u64> = facts.iter().flat_map(called).collect();
        let thieves = if called.is_empty() { Vec::new() } else { line.thieves() };
        Turn { called, thieves, ended: Vec::new(), changed: Vec::new() }
    }

    /// One of them was done.
    pub fn hear(&mut self, fact: &Fact, line: &LineModel) {
        if let Fact::Released { fence, .. } = fact {
            self.ended.push(*fence);
        }
        if let Fact::Refused { bid, .. } = fact
            && !self.called.is_empty()
        {
            self.thieves.extend(line.thief(&bid.holder).map(|thief| (bid.wish.clone(), thief)));
        }
    }

    /// Those who may claim this slot, and what they wish for.
    pub fn wanting(&self, slot: &str) -> impl Iterator<Item = &(Wish, Thief)> {
        self.thieves.iter().filter(|(wish, _)| wish.is_for(slot))
    }

    /// Those who may have claimed this lease in this turn: of any slots it is told at its end only which are claimed.
    pub fn claimants(&self, slot: &str, fence: u64) -> Vec<&Thief> {
        let called = self.called.contains(&fence);
        self.wanting(slot).filter(|_| called).map(|(_, thief)| thief).collect()
    }
}
