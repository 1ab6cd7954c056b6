//! Seeded draws that a script can repeat: every product stays below 2^53, so that doubles are exact.

/// A sequence of draws (a linear congruential generator; its first value is the seed, which is random).
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw {
    state: u32,
    rank: Option<u32>,
}

impl Draw {
    pub(super) fn new(seed: u32) -> Self {
        Draw { state: seed, rank: None }
    }

    /// A number from 0 to `bound` - 1, for bounds to 2^20.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.next()) * u64::from(bound)) >> 32) as u32
    }

    /// A rank below `bound`, as [`Self::below`] once: those that are asked for later are the same, so that they take what
    /// comes next in the order, which can be read together. Beyond the end it begins again.
    pub(super) fn rank(&mut self, bound: u32) -> u32 {
        let rank = match self.rank {
            None => self.below(bound),
            Some(rank) if rank < bound => rank,
            Some(_) => 0,
        };
        self.rank = Some(rank);
        rank
    }

    /// A number from 0 to `bound` - 1, for bounds to 2^29; in steps of 2^-24 of the bound.
    pub(super) fn below_large(&mut self, bound: u64) -> u64 {
        (u64::from(self.next() >> 8) * bound) >> 24
    }

    fn next(&mut self) -> u32 {
        let value = self.state;
        self.state = value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        value
    }
}
