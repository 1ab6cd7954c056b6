//! Seeded draws that a script can repeat: every product stays below 2^53, so that doubles are exact.

/// A sequence of draws (a linear congruential generator; its first value is the seed, which is random).
#[derive(Clone, Copy, Debug)]
pub(super) struct Draw(u32);

impl Draw {
    pub(super) fn new(seed: u32) -> Self {
        Draw(seed)
    }

    /// A number from 0 to `bound` - 1, for bounds to 2^20.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.next()) * u64::from(bound)) >> 32) as u32
    }

    /// A number from 0 to `bound` - 1, for bounds to 2^29; in steps of 2^-24 of the bound.
    pub(super) fn below_large(&mut self, bound: u64) -> u64 {
        (u64::from(self.next() >> 8) * bound) >> 24
    }

    fn next(&mut self) -> u32 {
        let value = self.0;
        self.0 = value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        value
    }
}
