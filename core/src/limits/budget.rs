//! A budget for each period of the calendar.

use super::lifetime::fits;
use super::record::{Judged, Lasts};
use super::standing::Standing;
use super::{Amount, REMEMBERED};
use crate::Micros;

/// What is used of a period.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Budget {
    pub standing: Standing,
}

/// So long, from then on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Calendar {
    pub period: Micros,
    pub offset: Micros,
}

impl Budget {
    /// What is used of the period that it is now. A period that began under another rule goes on to its end.
    pub fn at(self, calendar: Calendar, now: Micros) -> Self {
        if now < self.standing.ends() {
            return self;
        }
        let Calendar { period, offset } = calendar;
        let ends = match now.checked_sub(offset) {
            Some(since) => (since / period + 1) * period + offset,
            None => offset,
        };
        Budget { standing: Standing::of_period(ends) }
    }

    pub fn judge(&self, max: Amount, now: Micros, cost: Amount) -> Judged {
        let used = self.standing.used();
        let allowed = fits(used, max, cost);
        let left = self.standing.ends() - now;
        Judged {
            allowed,
            remaining: max.saturating_sub(used),
            retry: if allowed { Some(0) } else { (cost <= max).then_some(left) },
            reset: Some(if used == Amount::ZERO { 0 } else { left }),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.standing.used() == Amount::ZERO
    }

    /// How long the record is needed. One of which everything was given back says so to those who have seen it used.
    pub fn lasts(&self, now: Micros) -> Lasts {
        let left = self.standing.ends() - now;
        Lasts::After(match (self.standing.is_blank(), self.is_empty()) {
            (true, _) => 0,
            (false, true) => left.min(REMEMBERED),
            (false, false) => left,
        })
    }
}
