//! A queue of slots from which any rank can be taken: the n-th oldest as cheaply as the oldest.

const NOWHERE: u32 = u32::MAX;
const WORD: usize = 64;
/// Words in a block, and blocks in a district.
const FAN: usize = 64;

/// Slots in the order of their arrival. Taking one by rank costs a scan of three short counts
/// (districts of 2^18 places, blocks of 2^12, words of 2^6), whatever the queue's length.
#[derive(Clone, Debug, Default)]
pub(super) struct ReadyQueue {
    /// The slot at each place; places are used once, then the queue is packed anew.
    slots: Vec<u32>,
    /// A bit for each place that still holds its slot.
    words: Vec<u64>,
    blocks: Vec<u32>,
    districts: Vec<u32>,
    /// Where each slot is.
    places: Vec<u32>,
    len: u32,
}

impl ReadyQueue {
    pub(super) fn len(&self) -> u32 {
        self.len
    }

    pub(super) fn push(&mut self, slot: u32) {
        if self.slots.len() >= 2 * self.len as usize + 2 * WORD {
            self.pack();
        }
        self.append(slot);
    }

    /// Whether the slot was there.
    pub(super) fn remove(&mut self, slot: u32) -> bool {
        let Some(place) = self.places.get_mut(slot as usize) else { return false };
        let at = std::mem::replace(place, NOWHERE) as usize;
        if at == NOWHERE as usize {
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
        let (district, rank) = descend(&self.districts, 0, rank);
        let (block, rank) = descend(&self.blocks, district * FAN, rank);
        let mut rank = rank;
        let mut word = block * FAN;
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

    fn append(&mut self, slot: u32) {
        let at = self.slots.len();
        self.slots.push(slot);
        if at.is_multiple_of(WORD) {
            self.words.push(0);
        }
        if at.is_multiple_of(WORD * FAN) {
            self.blocks.push(0);
        }
        if at.is_multiple_of(WORD * FAN * FAN) {
            self.districts.push(0);
        }
        if let Some(word) = self.words.last_mut() {
            *word |= 1 << (at % WORD);
        }
        let index = slot as usize;
        if index >= self.places.len() {
            self.places.resize(index + 1, NOWHERE);
        }
        if let Some(place) = self.places.get_mut(index) {
            *place = at as u32;
        }
        self.count(at, u32::wrapping_add);
    }

    fn count(&mut self, at: usize, change: fn(u32, u32) -> u32) {
        self.len = change(self.len, 1);
        if let Some(block) = self.blocks.get_mut(at / (WORD * FAN)) {
            *block = change(*block, 1);
        }
        if let Some(district) = self.districts.get_mut(at / (WORD * FAN * FAN)) {
            *district = change(*district, 1);
        }
    }

    /// Closes the gaps. Happens once in so many pushes as there are slots, so a push stays cheap.
    fn pack(&mut self) {
        let old = std::mem::take(&mut self.slots);
        let words = std::mem::take(&mut self.words);
        self.blocks.clear();
        self.districts.clear();
        self.len = 0;
        for (slot, at) in old.into_iter().zip(0..) {
            if words.get(at / WORD).is_some_and(|word| word >> (at % WORD) & 1 == 1) {
                self.append(slot);
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
            let mut queue = ReadyQueue::default();
            let mut list: Vec<u32> = Vec::new();
            for (kind, number) in steps {
                match kind {
                    0 if !list.contains(&number) => { queue.push(number); list.push(number); }
                    1 => {
                        prop_assert_eq!(queue.remove(number), list.contains(&number));
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
    fn ranks_are_right_across_districts() {
        let mut queue = ReadyQueue::default();
        let n = 600_000;
        (0..n).for_each(|slot| queue.push(slot));
        (0..n).filter(|slot| slot % 3 != 0).for_each(|slot| assert!(queue.remove(slot)));
        for rank in (0..n / 3).step_by(997) {
            assert_eq!(queue.at(rank), Some(rank * 3));
        }
        assert_eq!(queue.at(n / 3), None);
    }
}
