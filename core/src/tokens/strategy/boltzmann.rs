//! Random tokens, the larger the likelier.

use super::Strategy;
use crate::tokens::{Amount, Draw};

/// Draws tokens one by one, each with a weight that doubles with every `heat` hundredths of the mean amount that it is worth
/// (a Boltzmann distribution, in powers of two). A low heat comes near to the largest first, a high one to chance.
#[derive(Clone, Copy, Debug)]
pub struct Boltzmann {
    /// In hundredths of the mean amount of what is offered; 1 at least.
    pub heat: u32,
}

impl Default for Boltzmann {
    fn default() -> Self {
        Boltzmann { heat: 100 }
    }
}

/// The steps in which a weight is reckoned, within one doubling.
const STEPS: u64 = 1 << 16;
/// The power of two that the largest weighs: what is as many doublings below it is as unlikely as all below that.
const HIGHEST: u64 = 40;

impl Strategy for Boltzmann {
    fn least(&self) -> usize {
        256
    }

    fn choose(&self, offered: &[Amount], target: Amount, most: usize, draw: &mut Draw) -> Option<Vec<usize>> {
        // Amounts in 32 bits, so that nothing of what follows passes 64.
        let largest = offered.iter().max().copied()?;
        let shift = largest.bits().saturating_sub(32);
        let values: Vec<u64> = offered.iter().map(|amount| amount.shifted(shift)).collect();
        let sum = values.iter().fold(0u128, |sum, &value| sum + u128::from(value));
        let mean = (sum / values.len().max(1) as u128).max(1);
        let highest = values.iter().max().copied()?;
        // Measured from the largest down, so that what is far below it weighs next to nothing, and no number grows.
        let weight = |value: u64| {
            let below =
                u128::from(highest - value) * u128::from(100 * STEPS) / (mean * u128::from(self.heat.max(1)));
            let below = u64::try_from(below).unwrap_or(u64::MAX);
            let doublings = (HIGHEST * STEPS).saturating_sub(below);
            // Between two powers in a straight line.
            (STEPS + doublings % STEPS) << (doublings / STEPS)
        };
        let mut left: Vec<(usize, u64)> = values.iter().map(|&value| weight(value)).enumerate().collect();
        let mut weights: u128 = left.iter().map(|&(_, weight)| u128::from(weight)).sum();
        let (mut chosen, mut sum) = (Vec::new(), Amount::ZERO);
        while sum < target {
            if chosen.len() >= most || left.is_empty() {
                return None;
            }
            let bits = (u128::from(draw.bits()) << 32) | u128::from(draw.bits() >> 32);
            let mut point = bits % weights;
            let drawn = left.iter().position(|&(_, weight)| {
                let here = point < u128::from(weight);
                point = point.saturating_sub(u128::from(weight));
                here
            })?;
            let (at, weight) = left.swap_remove(drawn);
            weights -= u128::from(weight);
            sum = sum.saturating_add(offered.get(at).copied()?);
            chosen.push(at);
        }
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_double_with_each_mean() {
        // The mean is 10: 0 and 20 weigh 1 and 4.
        let offered = [0u64, 20].map(Amount::from);
        let mut draw = Draw::new(1);
        let first =
            |draw: &mut Draw| Boltzmann::default().choose(&offered, 20u64.into(), 9, draw).unwrap()[0];
        let zeros = (0..10_000).filter(|_| first(&mut draw) == 0).count();
        assert!((1_850..2_150).contains(&zeros), "{zeros}: a fifth");
    }

    #[test]
    fn the_heat_says_how_much_amounts_count() {
        let offered: Vec<Amount> = (1u64..=100).map(Amount::from).collect();
        let mean_of = |heat| {
            let mut draw = Draw::new(5);
            let drawn =
                (0..500).map(|_| Boltzmann { heat }.choose(&offered, 1u64.into(), 9, &mut draw).unwrap()[0]);
            drawn.sum::<usize>() / 500
        };
        assert!(
            mean_of(1) > 95 && (45..55).contains(&mean_of(1_000_000)),
            "{} {}",
            mean_of(1),
            mean_of(1_000_000)
        );
        let huge = [Amount::MAX, 1u64.into()];
        assert!(Boltzmann::default().choose(&huge, Amount::MAX, 2, &mut Draw::new(1)).is_some());
    }
}
