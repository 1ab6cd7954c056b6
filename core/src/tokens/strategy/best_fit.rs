//! The fewest tokens, and of those so few little change.

use super::Strategy;
use super::smallest_sufficient::{fewest, single};
use crate::tokens::{Amount, Draw, Order};

/// Takes as few tokens as suffice, and then, one after the other, the smallest in the place of each with which they
/// still do.
#[derive(Clone, Copy, Debug, Default)]
pub struct BestFit;

impl Strategy for BestFit {
    fn order(&self) -> Order {
        Order::Around
    }

    fn choose(&self, offered: &[Amount], target: Amount, most: usize, draw: &mut Draw) -> Option<Vec<usize>> {
        if let Some(at) = single(offered, target).filter(|_| most > 0) {
            return Some(vec![at]);
        }
        let mut chosen = fewest(offered, target, most, draw)?;
        let amount = |at: usize| offered.get(at).copied().unwrap_or_default();
        let mut others: Vec<usize> = (0..offered.len()).filter(|at| !chosen.contains(at)).collect();
        others.sort_unstable_by_key(|&at| amount(at));
        let mut sum: Amount = chosen.iter().map(|&at| amount(at)).sum();
        for place in &mut chosen {
            // What this one has to bring at least.
            let missing = target.saturating_sub(sum.saturating_sub(amount(*place)));
            let first = others.partition_point(|&at| amount(at) < missing);
            let Some(other) = others.get_mut(first).filter(|other| amount(**other) < amount(*place)) else {
                continue;
            };
            sum = sum.saturating_sub(amount(*place)).saturating_add(amount(*other));
            std::mem::swap(place, other);
            others.sort_unstable_by_key(|&at| amount(at));
        }
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_ones_take_the_place_of_larger_ones_while_they_suffice() {
        let offered = [90u64, 80, 70, 40, 15, 5].map(Amount::from);
        let chosen = BestFit.choose(&offered, 105u64.into(), 9, &mut Draw::new(1)).unwrap();
        let mut sum: Vec<_> = chosen.iter().map(|&at| offered[at]).collect();
        sum.sort_unstable();
        assert_eq!(sum, [40u64.into(), 70u64.into()], "and not 90 with 80");
    }
}
