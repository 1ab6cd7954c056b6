//! A budget for each period of the calendar.

use super::Amount;
use super::lifetime::fits;
use super::record::{Judged, Lasts};
use crate::Micros;

/// What is used of the period that ends then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Budget {
    ends: Micros,
    used: Amount,
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
        if now < self.ends {
            return self;
        }
        let Calendar { period, offset } = calendar;
        let ends = match now.checked_sub(offset) {
            Some(since) => (since / period + 1) * period + offset,
            None => offset,
        };
        Budget { ends, used: Amount::ZERO }
    }

    pub fn judge(self, max: Amount, now: Micros, cost: Amount) -> Judged {
        let allowed = fits(self.used, max, cost);
        let left = self.ends - now;
        Judged {
            allowed,
            remaining: max.saturating_sub(self.used),
            retry: if allowed { Some(0) } else { (cost <= max).then_some(left) },
            reset: Some(if self.used == Amount::ZERO { 0 } else { left }),
        }
    }

    pub fn charge(&mut self, cost: Amount) {
        self.used = self.used.checked_add(cost).unwrap_or(Amount::MAX);
    }

    /// Gives back what was charged in this period: with the one before ended the epoch of its reservations.
    pub fn give_back(&mut self, cost: Amount) {
        self.used = self.used.saturating_sub(cost);
    }

    pub fn is_empty(self) -> bool {
        self.used == Amount::ZERO
    }

    /// How long the record is needed.
    pub fn lasts(self, now: Micros) -> Lasts {
        Lasts::After(if self.is_empty() { 0 } else { self.ends - now })
    }
}
