//! Continuous refill: the seed's equation, without rounding anything but its result.

use super::record::{Judged, Lasts, ceiling};
use crate::Micros;

/// What is used: `whole + part / period`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Refill {
    /// The period of the rule by which it was written.
    period: Micros,
    whole: u64,
    /// Below the period.
    part: u64,
}

/// So much at once, and so much in a period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub max: u64,
    pub period: Micros,
}

impl Refill {
    /// What is used once so much time has passed.
    pub fn after(self, rate: Rate, elapsed: Micros) -> Self {
        let Rate { max, period } = rate;
        let Refill { mut whole, mut part, .. } = self;
        // A part of another period is rounded up, so that nothing is lost.
        if self.period != period && part > 0 {
            (whole, part) = (whole + 1, 0);
        }
        if whole >= max {
            (whole, part) = (max, 0);
        }
        if elapsed >= period {
            return Refill { period, whole: 0, part: 0 };
        }
        let refilled = u128::from(elapsed) * u128::from(max);
        Self::of(period, used(whole, part, period).saturating_sub(refilled))
    }

    pub fn judge(self, rate: Rate, cost: u64) -> Judged {
        let Rate { max, period } = rate;
        let up = self.whole + u64::from(self.part > 0);
        let used = used(self.whole, self.part, period);
        let over = used + u128::from(cost) * u128::from(period);
        let room = u128::from(max) * u128::from(period);
        Judged {
            allowed: u128::from(up) + u128::from(cost) <= u128::from(max),
            remaining: max.saturating_sub(up).into(),
            retry: (cost <= max).then(|| ceiling(over.saturating_sub(room), max)),
            reset: Some(ceiling(used, max)),
        }
    }

    pub fn charge(&mut self, cost: u64) {
        self.whole += cost;
    }

    /// Gives back what was charged so long ago and has not been refilled since.
    pub fn give_back(&mut self, rate: Rate, cost: u64, since: Micros) {
        let Rate { max, period } = rate;
        if since >= period {
            return;
        }
        let refilled = u128::from(since) * u128::from(max);
        let back = (u128::from(cost) * u128::from(period)).saturating_sub(refilled);
        *self = Self::of(period, used(self.whole, self.part, period).saturating_sub(back));
    }

    /// How long the record is needed: whatever the maximum becomes, no longer than a period.
    pub fn lasts(self) -> Lasts {
        Lasts::After(if self.whole == 0 && self.part == 0 { 0 } else { self.period })
    }

    fn of(period: Micros, used: u128) -> Self {
        let parts = u128::from(period);
        Refill { period, whole: (used / parts) as u64, part: (used % parts) as u64 }
    }
}

/// What is used, in parts.
fn used(whole: u64, part: u64, period: Micros) -> u128 {
    u128::from(whole) * u128::from(period) + u128::from(part)
}
