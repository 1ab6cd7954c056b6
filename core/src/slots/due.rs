//! Slots that something will happen to: the end of a lease or of a rest.

use super::slot::Slot;
use crate::Micros;

const NOWHERE: u32 = u32::MAX;

/// Slots ordered by their time, those of one time by their id, as in a sorted set of Redis.
#[derive(Clone, Debug, Default)]
pub(super) struct DueSet {
    /// A heap of times and slots: nothing is due before what is at half its index.
    heap: Vec<(Micros, u32)>,
    /// Where in the heap each slot is.
    places: Vec<u32>,
}

impl DueSet {
    pub(super) fn insert(&mut self, at: Micros, slot: u32) {
        let index = self.heap.len();
        self.heap.push((at, slot));
        if self.places.len() <= slot as usize {
            self.places.resize(slot as usize + 1, NOWHERE);
        }
        self.note(index);
        self.rise(index);
    }

    pub(super) fn remove(&mut self, slot: u32) {
        let Some(place) = self.places.get_mut(slot as usize) else { return };
        let index = std::mem::replace(place, NOWHERE) as usize;
        if index >= self.heap.len() {
            return;
        }
        self.heap.swap_remove(index);
        if index < self.heap.len() {
            self.note(index);
            self.rise(index);
            self.sink(index);
        }
    }

    /// Takes the first slot whose time has come.
    pub(super) fn pop(&mut self, now: Micros, slots: &[Slot]) -> Option<u32> {
        let at = self.next().filter(|&at| at <= now)?;
        let slot = self.least(0, at, slots)?;
        self.remove(slot);
        Some(slot)
    }

    /// The time of the first slot.
    pub(super) fn next(&self) -> Option<Micros> {
        self.heap.first().map(|&(at, _)| at)
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    /// The slot with the least id of those of this time, the earliest, from this index on.
    fn least(&self, index: usize, at: Micros, slots: &[Slot]) -> Option<u32> {
        let &(_, slot) = self.heap.get(index).filter(|&&(time, _)| time == at)?;
        let below = [2 * index + 1, 2 * index + 2].map(|index| self.least(index, at, slots));
        let id = |&slot: &u32| slots.get(slot as usize).map(|slot| &slot.id);
        below.into_iter().flatten().chain([slot]).min_by_key(id)
    }

    fn rise(&mut self, mut index: usize) {
        while index > 0 && self.time(index) < self.time((index - 1) / 2) {
            self.exchange(index, (index - 1) / 2);
            index = (index - 1) / 2;
        }
    }

    fn sink(&mut self, mut index: usize) {
        loop {
            let (left, right) = (2 * index + 1, 2 * index + 2);
            let child = if self.time(right) < self.time(left) { right } else { left };
            if self.time(child) >= self.time(index) {
                return;
            }
            self.exchange(index, child);
            index = child;
        }
    }

    /// The time at an index; beyond the end, later than any.
    fn time(&self, index: usize) -> Micros {
        self.heap.get(index).map_or(Micros::MAX, |&(at, _)| at)
    }

    fn exchange(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        self.note(one);
        self.note(other);
    }

    /// Notes where the slot at an index is.
    fn note(&mut self, index: usize) {
        let place = self.heap.get(index).and_then(|&(_, slot)| self.places.get_mut(slot as usize));
        if let Some(place) = place {
            *place = index as u32;
        }
    }
}
