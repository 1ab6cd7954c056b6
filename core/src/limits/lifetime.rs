//! A limit for good: what is used stays so until it is given back.

use super::record::{Judged, Lasts};
use super::standing::Standing;
use super::{Amount, REMEMBERED};

/// What is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lifetime {
    pub standing: Standing,
}

impl Lifetime {
    pub fn judge(&self, max: Amount, cost: Amount) -> Judged {
        let used = self.standing.used();
        let allowed = fits(used, max, cost);
        Judged {
            allowed,
            remaining: max.saturating_sub(used),
            retry: allowed.then_some(0),
            reset: (used == Amount::ZERO).then_some(0),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.standing.used() == Amount::ZERO
    }

    /// How long the record is needed. One of which everything was given back says so to those who have seen it used.
    pub fn lasts(&self) -> Lasts {
        match (self.standing.is_blank(), self.is_empty()) {
            (true, _) => Lasts::After(0),
            (false, true) => Lasts::After(REMEMBERED),
            (false, false) => Lasts::Never,
        }
    }
}

/// Whether there is room for a cost. Nothing always fits, also where more is used than a lower maximum allows.
pub(super) fn fits(used: Amount, max: Amount, cost: Amount) -> bool {
    cost == Amount::ZERO || used.checked_add(cost).is_some_and(|sum| sum <= max)
}
