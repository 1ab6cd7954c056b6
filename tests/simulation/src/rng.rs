//! Randomness that repeats from a seed.

/// A stream of random numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Self {
        Rng(seed)
    }

    /// A stream of its own, so that more draws here do not change what is drawn there.
    pub fn fork(&mut self, label: u64) -> Self {
        Rng(self.bits() ^ label.wrapping_mul(0xA24B_AED4_963E_E407))
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from 0 to `bound` - 1; 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.bits() % bound }
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True `count` times in a thousand.
    pub fn in_thousand(&mut self, count: u64) -> bool {
        self.below(1_000) < count
    }

    /// In half of all worlds nothing, and else less than `most`.
    pub fn perhaps(&mut self, most: u64) -> u64 {
        if self.in_thousand(500) { self.below(most) } else { 0 }
    }

    /// One of these.
    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len() as u64) as usize]
    }

    /// A time whose size is spread evenly over the orders of magnitude from `low` to `high`.
    pub fn spread(&mut self, low: u64, high: u64) -> u64 {
        let steps = (high / low.max(1)).max(1).ilog2() as u64 + 1;
        let base = low << self.below(steps);
        self.between(base, base * 2).min(high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_streams_within_bounds() {
        let (mut one, mut other) = (Rng::new(5), Rng::new(5));
        for _ in 0..1_000 {
            let time = one.spread(100, 5_000);
            assert!((100..=5_000).contains(&time));
            assert_eq!(time, other.spread(100, 5_000));
        }
    }
}
