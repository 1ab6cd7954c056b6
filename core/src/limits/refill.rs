//! Continuous refill: the seed's equation, without rounding anything but its result. The generic cell rate algorithm is the
//! same with another most at once.

use super::MAX_BACKLOG;
use super::record::{Judged, Lasts, divided};
use crate::Micros;

/// An epoch ends once more than two to the power of this has been refilled in it: it is more than was ever reserved.
const COUNTED: u32 = 50;

/// What is used: `whole + part / period`. More than the maximum allows where that was lowered: what is above it is worked off
/// like the rest, and who raises it again finds all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Refill {
    /// Of the rule by which it was written.
    max: u64,
    period: Micros,
    whole: u64,
    /// Below the period.
    part: u64,
    /// How much has been refilled since its epoch began, in parts: what was reserved and has not been refilled is given back.
    refilled: u128,
}

/// So much in a period.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rate {
    pub max: u64,
    pub period: Micros,
}

impl Refill {
    /// What is used once so much time has passed, which counts by the rule by which it was written; from then on this one
    /// refills it.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn after(self, rate: Rate, elapsed: Micros) -> Self {
        let Rate { max, period } = rate;
        let used = self.parts();
        let left = used.saturating_sub(refilled(elapsed, self.max));
        let (mut whole, mut part) = divided(left, self.period.max(1));
        if part > 0 && self.period != period {
            // Rounded up, so that nothing is lost; but in the parts of this period, or where two ask in turn each would make
            // a whole one of what the other has refilled.
            part = (u128::from(part) * u128::from(period)).div_ceil(self.period.into()) as u64;
            if part == period {
                (whole, part) = (whole + 1, 0);
            }
        }
        Refill { max, period, whole, part, refilled: self.refilled + (used - left) }
    }

    /// How much has been refilled in its epoch, in parts.
    pub fn refilled(self) -> u128 {
        self.refilled
    }

    /// Whether a script could count what has been refilled, too.
    pub fn is_counted(self) -> bool {
        self.refilled < u128::from(self.period) << COUNTED
    }

    /// An epoch has ended: nobody knows of what was refilled in it.
    pub fn count_anew(&mut self) {
        self.refilled = 0;
    }

    /// Whether it was written by a rule that refills as this one does.
    pub fn is_of(self, rate: Rate) -> bool {
        self.max == rate.max && self.period == rate.period
    }

    pub fn is_of_period(self, period: Micros) -> bool {
        self.period == period
    }

    pub fn is_empty(self) -> bool {
        self.whole == 0 && self.part == 0
    }

    /// Whether a cost is allowed where so much is the most at once. Nothing always fits, also where more is used than a
    /// lower maximum allows.
    pub fn allows(self, burst: u64, cost: u64) -> bool {
        cost == 0 || u128::from(self.up()) + u128::from(cost) <= u128::from(burst)
    }

    /// What is used, rounded up.
    fn up(self) -> u64 {
        self.whole + u64::from(self.part > 0)
    }

    /// Where so much is the most at once.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn judge(self, burst: u64, cost: u64) -> Judged {
        let used = self.parts();
        let over = used + u128::from(cost) * u128::from(self.period);
        let room = u128::from(burst) * u128::from(self.period);
        let allowed = self.allows(burst, cost);
        let retry =
            if allowed { Some(0) } else { (cost <= burst).then(|| self.time(over.saturating_sub(room))) };
        Judged {
            allowed,
            remaining: burst.saturating_sub(self.up()).into(),
            retry,
            reset: Some(self.time(used)),
        }
    }

    pub fn charge(&mut self, cost: u64) {
        self.whole += cost;
    }

    /// Gives back what was charged when so much had been refilled, and has not been refilled since.
    pub fn give_back(&mut self, cost: u64, refilled: u128) {
        let back = u128::from(cost) * u128::from(self.period);
        let back = back.saturating_sub(self.refilled.saturating_sub(refilled));
        (self.whole, self.part) = divided(self.parts().saturating_sub(back), self.period);
    }

    /// How long the record is needed. A period where that suffices, which costs no division.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn lasts(self, burst: u64) -> Lasts {
        let Refill { max, period, whole, part, .. } = self;
        let within = whole < max || whole == max && part == 0;
        Lasts::After(match self.is_empty() {
            true => 0,
            false if within && burst == max => period,
            false => self.time(self.parts()),
        })
    }

    fn parts(self) -> u128 {
        used(self.whole, self.part, self.period)
    }

    /// In how much time so many parts are refilled, rounded up; the longest that is told if it is longer.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn time(self, parts: u128) -> Micros {
        if parts > refilled(MAX_BACKLOG, self.max) {
            return MAX_BACKLOG;
        }
        let (whole, rest) = divided(parts, self.max);
        whole + u64::from(rest > 0)
    }
}

/// What is used, in parts.
fn used(whole: u64, part: u64, period: Micros) -> u128 {
    u128::from(whole) * u128::from(period) + u128::from(part)
}

/// What is refilled in so much time, in parts.
fn refilled(elapsed: Micros, max: u64) -> u128 {
    u128::from(elapsed) * u128::from(max)
}
