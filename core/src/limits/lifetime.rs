//! A limit for good: what is used stays so until it is given back.

use super::Amount;
use super::record::{Judged, Lasts};

/// What is used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Lifetime {
    used: Amount,
}

impl Lifetime {
    pub fn judge(self, max: Amount, cost: Amount) -> Judged {
        let allowed = fits(self.used, max, cost);
        Judged {
            allowed,
            remaining: max.saturating_sub(self.used),
            retry: allowed.then_some(0),
            reset: (self.used == Amount::ZERO).then_some(0),
        }
    }

    pub fn charge(&mut self, cost: Amount) {
        self.used = self.used.checked_add(cost).unwrap_or(Amount::MAX);
    }

    pub fn give_back(&mut self, cost: Amount) {
        self.used = self.used.saturating_sub(cost);
    }

    pub fn is_empty(self) -> bool {
        self.used == Amount::ZERO
    }

    /// How long the record is needed.
    pub fn lasts(self) -> Lasts {
        if self.is_empty() { Lasts::After(0) } else { Lasts::Never }
    }
}

/// Whether there is room for a cost. Nothing always fits, also where more is used than a lower maximum allows.
pub(super) fn fits(used: Amount, max: Amount, cost: Amount) -> bool {
    cost == Amount::ZERO || used.checked_add(cost).is_some_and(|sum| sum <= max)
}
