//! Where each slot is in the set that it is in.

const NOWHERE: u32 = u32::MAX;

/// Positions by slot: one list for all sets, as a slot is in one of them only.
#[derive(Clone, Debug, Default)]
pub(super) struct Positions(Vec<u32>);

impl Positions {
    pub(super) fn set(&mut self, slot: u32, at: usize) {
        if slot as usize >= self.0.len() {
            self.0.resize(slot as usize + 1, NOWHERE);
        }
        if let Some(position) = self.0.get_mut(slot as usize) {
            *position = at as u32;
        }
    }

    /// The position of a slot that leaves its set; beyond all if it is in none.
    pub(super) fn take(&mut self, slot: u32) -> usize {
        self.0.get_mut(slot as usize).map_or(NOWHERE, |position| std::mem::replace(position, NOWHERE))
            as usize
    }
}
