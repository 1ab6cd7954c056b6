//! The oldest tokens first.

use super::{Strategy, first_to_cover};
use crate::tokens::{Amount, Draw, Order};

/// Takes the oldest tokens.
#[derive(Clone, Copy, Debug, Default)]
pub struct OldestFirst;

impl Strategy for OldestFirst {
    fn order(&self) -> Order {
        Order::Oldest
    }

    fn choose(&self, offered: &[Amount], target: Amount, most: usize, _: &mut Draw) -> Option<Vec<usize>> {
        first_to_cover(offered, target, most)
    }
}
