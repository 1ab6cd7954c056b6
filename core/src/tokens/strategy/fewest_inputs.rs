//! The largest tokens first.

use super::{Strategy, first_to_cover};
use crate::tokens::{Amount, Draw, Order};

/// Takes the largest tokens: no choice has fewer.
#[derive(Clone, Copy, Debug, Default)]
pub struct FewestInputs;

impl Strategy for FewestInputs {
    fn order(&self) -> Order {
        Order::Largest
    }

    fn choose(&self, offered: &[Amount], target: Amount, most: usize, _: &mut Draw) -> Option<Vec<usize>> {
        first_to_cover(offered, target, most)
    }
}
