//! A queue of slots from which any rank can be taken: the n-th oldest as cheaply as the oldest.

use super::positions::Positions;

const WORD: usize = 64;
/// Words that are counted together, and counts that are.
const FAN: usize = 16;
/// How many places a count of each level is of.
const LEVELS: [usize; 3] = [WORD * FAN, WORD * FAN * FAN, WORD * FAN * FAN * FAN];

/// Slots in the order of their arrival. Taking one by rank costs a few short scans, whatever the queue's length.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadyQueue {
    /// The slot at each place; places are used once, then the queue is packed anew.
    slots: Vec<u32>,
    /// A bit for each place that still holds its slot.
    words: Vec<u64>,
    /// How many slots there are in each stretch of places, by levels.
    counts: [Vec<u32>; LEVELS.len()],
    len: u32,
}

impl ReadyQueue {
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn push(&mut self, slot: u32, positions: &mut Positions) {
        if self.slots.len() >= 2 * self.len as usize + 2 * WORD {
            self.pack(positions);
        }
        self.append(slot, positions);
    }

    /// Whether the slot was there.
    pub(super) fn remove(&mut self, slot: u32, positions: &mut Positions) -> bool {
        let at = positions.take(slot);
        if self.slots.get(at) != Some(&slot) {
            return false;
        }
        if let Some(word) = self.words.get_mut(at / WORD) {
            *word &= !(1 << (at % WORD));
        }
        self.count(at, u32::wrapping_sub);
        true
    }

    /// The slot with `rank` older ones before it.
    pub(super) fn at(&self, rank: u32) -> Option<u32> {
        if rank >= self.len {
            return None;
        }
        let (mut stretch, mut rank) = (0, rank);
        for counts in self.counts.iter().rev() {
            (stretch, rank) = descend(counts, stretch * FAN, rank);
        }
        let mut word = stretch * FAN;
        loop {
            let bits = *self.words.get(word)?;
            let ones = bits.count_ones();
            if rank < ones {
                return self.slots.get(word * WORD + select(bits, rank)).copied();
            }
            rank -= ones;
            word += 1;
        }
    }

    fn append(&mut self, slot: u32, positions: &mut Positions) {
        let at = self.slots.len();
        self.slots.push(slot);
        if at.is_multiple_of(WORD) {
            self.words.push(0);
        }
        for (counts, places) in self.counts.iter_mut().zip(LEVELS) {
            if at.is_multiple_of(places) {
                counts.push(0);
            }
        }
        if let Some(word) = self.words.last_mut() {
            *word |= 1 << (at % WORD);
        }
        positions.set(slot, at);
        self.count(at, u32::wrapping_add);
    }

    fn count(&mut self, at: usize, change: fn(u32, u32) -> u32) {
        self.len = change(self.len, 1);
        for (counts, places) in self.counts.iter_mut().zip(LEVELS) {
            if let Some(count) = counts.get_mut(at / places) {
                *count = change(*count, 1);
            }
        }
    }

    /// Closes the gaps. Happens once in so many pushes as there are slots, so a push stays cheap.
    fn pack(&mut self, positions: &mut Positions) {
        // There is room for all that comes until the next time.
        let room = Vec::with_capacity(2 * self.len as usize + 2 * WORD);
        let old = std::mem::replace(&mut self.slots, room);
        let words = std::mem::take(&mut self.words);
        self.counts.iter_mut().for_each(Vec::clear);
        self.len = 0;
        for (slot, at) in old.into_iter().zip(0..) {
            if words.get(at / WORD).is_some_and(|word| word >> (at % WORD) & 1 == 1) {
                self.append(slot, positions);
            }
        }
    }
}

/// The index, from `start` on, of the count in which `rank` falls, and the rank within it.
fn descend(counts: &[u32], start: usize, mut rank: u32) -> (usize, u32) {
    let mut index = start;
    for &count in counts.iter().skip(start) {
        if rank < count {
            break;
        }
        rank -= count;
        index += 1;
    }
    (index, rank)
}

/// The position of the `rank`-th set bit.
fn select(mut bits: u64, rank: u32) -> usize {
    for _ in 0..rank {
        bits &= bits - 1;
    }
    bits.trailing_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_as_a_plain_list(steps in prop::collection::vec((0u8..3, 0u32..2000), 1..2000)) {
            let (mut queue, mut positions) = (ReadyQueue::default(), Positions::default());
            let mut list: Vec<u32> = Vec::new();
            for (kind, number) in steps {
                match kind {
                    0 if !list.contains(&number) => { queue.push(number, &mut positions); list.push(number); }
                    1 => {
                        prop_assert_eq!(queue.remove(number, &mut positions), list.contains(&number));
                        list.retain(|&slot| slot != number);
                    }
                    _ => {
                        let rank = number as usize % (list.len() + 1);
                        prop_assert_eq!(queue.at(rank as u32), list.get(rank).copied());
                    }
                }
                prop_assert_eq!(queue.len() as usize, list.len());
            }
        }
    }

    #[test]
    fn ranks_are_right_across_stretches() {
        let (mut queue, mut positions) = (ReadyQueue::default(), Positions::default());
        let n = 600_000;
        (0..n).for_each(|slot| queue.push(slot, &mut positions));
        (0..n).filter(|slot| slot % 3 != 0).for_each(|slot| assert!(queue.remove(slot, &mut positions)));
        for rank in (0..n / 3).step_by(997) {
            assert_eq!(queue.at(rank), Some(rank * 3));
        }
        assert_eq!(queue.at(n / 3), None);
    }
}
