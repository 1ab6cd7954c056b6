//! Few tokens, and some of the smallest with them.

use super::{Strategy, first_to_cover};
use crate::tokens::{Amount, Draw, Order};

/// Takes the largest tokens until they suffice, and some of the smallest besides: so a wallet loses its dust in passing.
#[derive(Clone, Copy, Debug)]
pub struct Consolidate {
    /// How many of the smallest, within the cap.
    pub extra: usize,
}

impl Default for Consolidate {
    fn default() -> Self {
        Consolidate { extra: 8 }
    }
}

impl Strategy for Consolidate {
    fn order(&self) -> Order {
        Order::Ends
    }

    fn least(&self) -> usize {
        self.extra
    }

    fn choose(&self, offered: &[Amount], target: Amount, most: usize, _: &mut Draw) -> Option<Vec<usize>> {
        let mut chosen = first_to_cover(offered, target, most)?;
        let count = most.min(chosen.len().saturating_add(self.extra)).min(offered.len());
        chosen.extend(chosen.len()..count);
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dust_goes_along() {
        let offered = [50u64, 40, 1, 2, 3].map(Amount::from);
        let choose =
            |extra, most| Consolidate { extra }.choose(&offered, 80u64.into(), most, &mut Draw::new(1));
        assert_eq!(choose(2, 9), Some(vec![0, 1, 2, 3]));
        assert_eq!(choose(8, 3), Some(vec![0, 1, 2]));
        assert_eq!(choose(8, 1), None);
        assert_eq!(choose(usize::MAX, 9), Some(vec![0, 1, 2, 3, 4]));
    }
}
