//! What a limit allows.

use super::{Amount, MAX_AMOUNT, MAX_BACKLOG, MAX_IN_FLIGHT, MAX_PERIOD};
use crate::Micros;
use crate::error::{Error, Result};

/// What a limit allows. Two rules of one kind and name share what was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// So much in each request; nothing is remembered. What any rule is whose period or maximum is 0.
    Each {
        /// The most of one request.
        max: Amount,
    },
    /// Continuous refill: remaining = floor(min(max, max - used + max * elapsed / period)). In any window at most `max` and
    /// what refills in that window.
    ///
    /// A change of the maximum leaves what is used: what is above a lower one is worked off at its pace, and a higher one
    /// finds what is left. The time until a take brings another rule counts by the one before, and from then on by that one,
    /// also if the take is refused for what is used. So whatever maxima are asked with, in any window at most the highest
    /// and what refills by it.
    Refill {
        /// The most at once, and what refills in a period.
        max: u64,
        /// How long a full refill takes.
        period: Micros,
    },
    /// The generic cell rate algorithm: one every `period / max`, ahead of which a burst may run. It is [`Rule::Refill`] with
    /// another most at once, and rules that change leave what is used as they do there.
    Gcra {
        /// How much in a period.
        max: u64,
        /// The period.
        period: Micros,
        /// The most at once.
        burst: u64,
    },
    /// At most `max` in any window of a period's length. A share of the window is its grain: what was used counts for
    /// that much longer at most.
    ///
    /// A change leaves what is used, and each who asks counts its own window of what all were allowed: what any of them still
    /// counts is kept, for as long as somebody asks by its period at least once in its length, also if the take is refused. A
    /// period that is longer than those before finds what was kept until then, and what was reserved before gives nothing back.
    /// So does any period where only one was asked with until nothing was used any more: that is as if never asked.
    /// Of two periods each counts by its own grain; of more, those between may by that of the longest.
    Rolling {
        /// The most in a window.
        max: u64,
        /// The window's length.
        period: Micros,
    },
    /// So much, ever.
    Lifetime {
        /// The most.
        max: Amount,
    },
    /// So much in each period of the calendar, such as a day.
    ///
    /// Asked by several periods, it has one at a time: as long as the longest that was said in the one before or in it, and none
    /// is cut short. So whoever asks in each of its periods finds what all were allowed in its own, where one of two periods is
    /// whole ones of the other and begins with one; else that is so of the longest. Of two of one length that begin at different
    /// times the one stays that was there; once nobody has asked by it in a whole period, that goes on to the end of one of the
    /// other, which is what they are from then on.
    Budget {
        /// The most in a period.
        max: Amount,
        /// The periods' length.
        period: Micros,
        /// When the first of them began, after the Unix epoch; below the period.
        offset: Micros,
    },
    /// So much at any time, until it is given back or its reservation ends.
    InFlight {
        /// The most at a time.
        max: u64,
    },
}

impl Rule {
    /// The rule by which it is judged: one without a period or a maximum judges each request by itself.
    #[must_use]
    pub fn effective(self) -> Rule {
        match self {
            Rule::Refill { max, period } | Rule::Rolling { max, period } | Rule::Gcra { max, period, .. }
                if max == 0 || period == 0 =>
            {
                let burst = if let Rule::Gcra { burst, .. } = self { burst } else { max };
                Rule::Each { max: if period == 0 { burst } else { 0 }.into() }
            }
            Rule::Budget { max, period: 0, .. } => Rule::Each { max },
            other => other,
        }
    }

    /// The rule by which is given back or forgotten what was used of it. A rate whose maximum is 0 judges each request by itself, but
    /// what was used of it before is kept as that of any rate of its kind.
    pub(crate) fn restoring(mut self) -> Rule {
        if let Rule::Refill { max, .. } | Rule::Rolling { max, .. } | Rule::Gcra { max, .. } = &mut self {
            *max = (*max).max(1);
        }
        self.effective()
    }

    /// Whether it can be kept exactly.
    ///
    /// # Errors
    /// `invalid_argument` naming `max`, `period` or `burst`.
    pub fn check(self) -> Result<()> {
        let of_rate = match self {
            Rule::Refill { max, period } | Rule::Rolling { max, period } => Some((max, period, max)),
            Rule::Gcra { max, period, burst } => Some((max, period, burst)),
            Rule::Budget { period, .. } => Some((1, period, 1)),
            Rule::InFlight { max } if max > MAX_IN_FLIGHT => {
                return Err(Error::invalid("max", "is out of range; at most 1,000 can be in flight"));
            }
            _ => None,
        };
        let Some((max, period, burst)) = of_rate else { return Ok(()) };
        let large = |amount| amount > MAX_AMOUNT;
        if large(max) || large(burst) {
            let field = if large(max) { "max" } else { "burst" };
            return Err(Error::invalid(field, "is out of range; at most 10^15 can be refilled"));
        }
        if period > MAX_PERIOD {
            return Err(Error::invalid("period", "is out of range; at most 366 days are allowed"));
        }
        if u128::from(burst) * u128::from(period) > u128::from(max) * u128::from(MAX_BACKLOG) && max > 0 {
            return Err(Error::invalid("burst", "would take more than 35 years to pay off"));
        }
        Ok(())
    }

    /// Whether it limits money: what is used of it must outlast a loss of the store's memory.
    #[must_use]
    pub fn is_of_money(self) -> bool {
        matches!(self.effective(), Rule::Lifetime { .. } | Rule::Budget { .. })
    }

    /// Which records it reads.
    pub(crate) fn letter(self) -> char {
        match self {
            Rule::Each { .. } => 'e',
            Rule::Refill { .. } => 'c',
            Rule::Gcra { .. } => 'g',
            Rule::Rolling { .. } => 'w',
            Rule::Lifetime { .. } => 'l',
            Rule::Budget { .. } => 'b',
            Rule::InFlight { .. } => 'f',
        }
    }

    /// The most that is ever taken at once.
    #[must_use]
    pub fn most(self) -> Amount {
        match self {
            Rule::Each { max } | Rule::Lifetime { max } | Rule::Budget { max, .. } => max,
            Rule::Refill { max, .. } | Rule::Rolling { max, .. } | Rule::InFlight { max } => max.into(),
            Rule::Gcra { burst, .. } => burst.into(),
        }
    }
}
