//! Slots that something will happen to: the end of a lease or of a rest.

use super::positions::Positions;
use super::slot::Slot;
use crate::Micros;
use crate::id::SlotId;

/// Slots ordered by their time, those of one time by their id, as in a sorted set of Redis.
#[derive(Clone, Debug, Default)]
pub(super) struct DueSet {
    /// A heap of times and slots: nothing is due before what is at half its index.
    heap: Vec<(Micros, u32)>,
}

impl DueSet {
    pub(super) fn insert(&mut self, at: Micros, slot: u32, positions: &mut Positions) {
        let index = self.heap.len();
        self.heap.push((at, slot));
        self.note(index, positions);
        self.rise(index, positions);
    }

    pub(super) fn remove(&mut self, slot: u32, positions: &mut Positions) {
        let index = positions.take(slot);
        if self.heap.get(index).is_none_or(|&(_, found)| found != slot) {
            return;
        }
        self.heap.swap_remove(index);
        if index < self.heap.len() {
            self.note(index, positions);
            self.rise(index, positions);
            self.sink(index, positions);
        }
    }

    /// Takes the first slot whose time has come.
    pub(super) fn pop(&mut self, now: Micros, slots: &[Slot], positions: &mut Positions) -> Option<u32> {
        let at = self.next().filter(|&at| at <= now)?;
        let slot = self.least(0, at, slots)?;
        self.remove(slot, positions);
        Some(slot)
    }

    /// The time of the first slot.
    pub(super) fn next(&self) -> Option<Micros> {
        self.heap.first().map(|&(at, _)| at)
    }

    /// The first `count` slots, in their order.
    pub(super) fn first(&self, count: usize, slots: &[Slot]) -> Vec<u32> {
        let mut first: Vec<(Micros, &SlotId, u32)> = Vec::new();
        let mut open = vec![0];
        while let Some(index) = open.pop() {
            let Some(&(at, place)) = self.heap.get(index) else { continue };
            // Nothing below it is earlier.
            if first.len() >= count && first.last().is_some_and(|last| last.0 < at) {
                continue;
            }
            let Some(slot) = slots.get(place as usize) else { continue };
            let entry = (at, &slot.id, place);
            first.insert(first.partition_point(|before| *before < entry), entry);
            first.truncate(count);
            open.extend([2 * index + 1, 2 * index + 2]);
        }
        first.into_iter().map(|(_, _, place)| place).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// How many are not due yet.
    pub(super) fn count_after(&self, now: Micros) -> usize {
        self.heap.iter().filter(|&&(at, _)| at > now).count()
    }

    /// The slot with the least id of those of this time, the earliest, from this index on.
    fn least(&self, index: usize, at: Micros, slots: &[Slot]) -> Option<u32> {
        let &(_, slot) = self.heap.get(index).filter(|&&(time, _)| time == at)?;
        let below = [2 * index + 1, 2 * index + 2].map(|index| self.least(index, at, slots));
        let id = |&slot: &u32| slots.get(slot as usize).map(|slot| &slot.id);
        below.into_iter().flatten().chain([slot]).min_by_key(id)
    }

    fn rise(&mut self, mut index: usize, positions: &mut Positions) {
        while index > 0 && self.time(index) < self.time((index - 1) / 2) {
            self.exchange(index, (index - 1) / 2, positions);
            index = (index - 1) / 2;
        }
    }

    fn sink(&mut self, mut index: usize, positions: &mut Positions) {
        loop {
            let (left, right) = (2 * index + 1, 2 * index + 2);
            let child = if self.time(right) < self.time(left) { right } else { left };
            if self.time(child) >= self.time(index) {
                return;
            }
            self.exchange(index, child, positions);
            index = child;
        }
    }

    /// The time at an index; beyond the end, later than any.
    fn time(&self, index: usize) -> Micros {
        self.heap.get(index).map_or(Micros::MAX, |&(at, _)| at)
    }

    fn exchange(&mut self, one: usize, other: usize, positions: &mut Positions) {
        self.heap.swap(one, other);
        self.note(one, positions);
        self.note(other, positions);
    }

    /// Notes where the slot at an index is.
    fn note(&self, index: usize, positions: &mut Positions) {
        if let Some(&(_, slot)) = self.heap.get(index) {
            positions.set(slot, index);
        }
    }
}
