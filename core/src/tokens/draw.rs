//! Seeded draws: the same seed gives the same choices on every machine, as no floating point is involved.

/// A sequence of draws (splitmix64).
#[derive(Clone, Debug)]
pub struct Draw(u64);

impl Draw {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Self {
        Draw(seed)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        scattered(self.0)
    }

    /// A number from 0 to `bound` - 1; 0 if there is none.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// Puts a list into a random order.
    pub fn shuffle<T>(&mut self, list: &mut [T]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

/// Scatters the bits of a number.
pub(super) fn scattered(value: u64) -> u64 {
    let mut bits = value;
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_as_likely() {
        let mut draw = Draw::new(7);
        let mut counts = std::collections::BTreeMap::<[u8; 3], u32>::new();
        for _ in 0..6_000 {
            let mut list = [0, 1, 2];
            draw.shuffle(&mut list);
            *counts.entry(list).or_default() += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|&count| (850..1_150).contains(&count)), "{counts:?}");
        assert_eq!(Draw::new(1).below(0), 0);
    }
}
