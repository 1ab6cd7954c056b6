//! Tokens as they come, until they suffice.

use super::{Strategy, first_to_cover};
use crate::tokens::{Amount, Draw};

/// Takes the process's next tokens until they suffice. Cheap, and processes meet least.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstFitRandom;

impl Strategy for FirstFitRandom {
    fn choose(&self, offered: &[Amount], target: Amount, most: usize, _: &mut Draw) -> Option<Vec<usize>> {
        first_to_cover(offered, target, most)
    }
}
