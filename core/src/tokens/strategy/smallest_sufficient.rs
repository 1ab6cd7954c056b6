//! One token, the smallest that suffices.

use super::{FewestInputs, Strategy};
use crate::tokens::{Amount, Draw, Order};

/// Takes the smallest token that suffices by itself, and the fewest where none does.
#[derive(Clone, Copy, Debug, Default)]
pub struct SmallestSufficient;

impl Strategy for SmallestSufficient {
    fn order(&self) -> Order {
        Order::Around
    }

    fn choose(&self, offered: &[Amount], target: Amount, most: usize, draw: &mut Draw) -> Option<Vec<usize>> {
        match single(offered, target).filter(|_| most > 0) {
            Some(at) => Some(vec![at]),
            None => fewest(offered, target, most, draw),
        }
    }
}

/// The smallest that suffices by itself.
pub(super) fn single(offered: &[Amount], target: Amount) -> Option<usize> {
    let sufficient = offered.iter().enumerate().filter(|(_, amount)| **amount >= target);
    sufficient.min_by_key(|(_, amount)| **amount).map(|(at, _)| at)
}

/// The fewest of what is in no order.
pub(super) fn fewest(offered: &[Amount], target: Amount, most: usize, draw: &mut Draw) -> Option<Vec<usize>> {
    let mut order: Vec<_> = offered.iter().copied().enumerate().collect();
    order.sort_by_key(|&(_, amount)| std::cmp::Reverse(amount));
    let amounts: Vec<_> = order.iter().map(|&(_, amount)| amount).collect();
    let chosen = FewestInputs.choose(&amounts, target, most, draw)?;
    Some(chosen.into_iter().filter_map(|at| order.get(at).map(|&(place, _)| place)).collect())
}
