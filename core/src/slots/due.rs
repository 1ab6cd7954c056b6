//! Slots that something will happen to: the end of a lease or of a rest.

use std::collections::BTreeSet;

use crate::Micros;
use crate::id::SlotId;

/// Slots ordered by their time, those of one time by their id, as in a sorted set of Redis.
#[derive(Debug, Default)]
pub(super) struct DueSet(BTreeSet<(Micros, SlotId, u32)>);

impl DueSet {
    pub(super) fn insert(&mut self, at: Micros, id: &SlotId, slot: u32) {
        self.0.insert((at, id.clone(), slot));
    }

    pub(super) fn remove(&mut self, at: Micros, id: &SlotId, slot: u32) {
        self.0.remove(&(at, id.clone(), slot));
    }

    /// Takes the first slot whose time has come.
    pub(super) fn pop(&mut self, now: Micros) -> Option<u32> {
        if self.next()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, _, slot)| slot)
    }

    /// The time of the first slot.
    pub(super) fn next(&self) -> Option<Micros> {
        self.0.first().map(|&(at, _, _)| at)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}
