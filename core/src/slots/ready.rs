//! A queue of slots from which any rank can be taken: the n-th oldest as cheaply as the oldest.

use super::positions::Positions;

const WORD: usize = 64;
/// Counts that are counted together.
const FAN: usize = 16;
/// How many places a count of each level is of.
const LEVELS: [usize; 4] = [WORD, WORD * FAN, WORD * FAN * FAN, WORD * FAN * FAN * FAN];

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
        // Of the whole, then of ever shorter stretches; the last one is a word.
        let (mut stretch, mut rank) = (0, rank);
        for counts in self.counts.iter().rev() {
            (stretch, rank) = descend(counts, stretch * FAN, rank);
        }
        let bits = *self.words.get(stretch)?;
        self.slots.get(stretch * WORD + select(bits, rank)).copied()
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
        for (stretch, &word) in old.chunks(WORD).zip(&self.words) {
            let mut bits = word;
            while let Some(&slot) = stretch.get(bits.trailing_zeros() as usize) {
                positions.set(slot, self.slots.len());
                self.slots.push(slot);
                bits &= bits - 1;
            }
        }
        let len = self.slots.len();
        self.words.clear();
        self.words.resize(len / WORD, u64::MAX);
        if !len.is_multiple_of(WORD) {
            self.words.push((1 << (len % WORD)) - 1);
        }
        for (counts, places) in self.counts.iter_mut().zip(LEVELS) {
            counts.clear();
            counts.resize(len / places, places as u32);
            if !len.is_multiple_of(places) {
                counts.push((len % places) as u32);
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

/// The position of the `rank`-th set bit, of more than `rank` (S. Vigna, "Broadword implementation of rank/select queries",
/// 2008): which byte it is in is found without a branch.
fn select(bits: u64, rank: u32) -> usize {
    if cfg!(target_family = "wasm") {
        return select_in(bits, u64::from(rank)) as usize;
    }
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = ONES << 7;
    let pairs = bits - ((bits >> 1) & (0x55 * ONES));
    let nibbles = (pairs & (0x33 * ONES)) + ((pairs >> 2) & (0x33 * ONES));
    // In each byte, how many bits are set in it and in those below.
    let sums = ((nibbles + (nibbles >> 4)) & (0x0F * ONES)).wrapping_mul(ONES);
    let rank = u64::from(rank.min(WORD as u32 - 1));
    let passed = (((rank * ONES) | HIGHS) - sums) & HIGHS;
    let below = ((passed >> 7).wrapping_mul(ONES) >> 56).min(7) as u32 * 8;
    let rest = rank.saturating_sub(((sums << 8) >> below) & 0xFF);
    (below + select_in(bits >> below, rest)) as usize
}

/// The same, bit by bit: for few, and in a wasm module, which is judged by its size.
fn select_in(mut bits: u64, rank: u64) -> u32 {
    for _ in 0..rank {
        bits &= bits.wrapping_sub(1);
    }
    bits.trailing_zeros()
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
    fn every_set_bit_is_found_by_its_rank() {
        let mut words = vec![u64::MAX, 1, 1 << 63, 0x8000_0000_0000_0001, 0x0101_0101_0101_0101, 0xFF << 56];
        words.extend((1..200u64).map(|number| number.wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        for word in words {
            let set = (0..WORD).filter(|bit| word >> bit & 1 == 1);
            set.zip(0..).for_each(|(bit, rank)| assert_eq!(select(word, rank), bit, "{word:x}, {rank}"));
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
