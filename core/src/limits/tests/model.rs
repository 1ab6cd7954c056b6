//! The exact models, naive: every take is remembered with its time, and fractions are fractions.

use crate::Micros;
use crate::limits::{Amount, Rule};

/// A limit that is never changed, on a clock that runs forward.
#[derive(Clone, Debug)]
pub(super) struct Model {
    rule: Rule,
    /// What the seed calls used; of GCRA, how far the cells that were taken are ahead of the clock, in microseconds.
    used: Ratio,
    written: Micros,
    /// All that was taken.
    pub taken: Vec<(Micros, u64)>,
}

/// A fraction. Those of one limit have one denominator: the period, or of GCRA the maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Ratio {
    over: i128,
    under: i128,
}

impl Ratio {
    fn whole(number: i128, under: i128) -> Self {
        Ratio { over: number * under, under }
    }

    fn plus(self, other: Ratio) -> Ratio {
        assert_eq!(self.under, other.under);
        Ratio { over: self.over + other.over, ..self }
    }

    fn minus(self, other: Ratio) -> Ratio {
        self.plus(Ratio { over: -other.over, ..other })
    }
}

fn ceiling(over: i128, under: i128) -> i128 {
    -(-over).div_euclid(under)
}

impl Model {
    pub fn new(rule: Rule, now: Micros) -> Self {
        let under = match rule {
            Rule::Refill { period, .. } => period.into(),
            Rule::Gcra { max, .. } => max.into(),
            other => panic!("{other:?}"),
        };
        Model { rule, used: Ratio::whole(0, under), written: now, taken: Vec::new() }
    }

    /// What remains, a fraction; of GCRA, the time for it.
    fn remaining(&self, now: Micros) -> Ratio {
        let elapsed = i128::from(now - self.written);
        match self.rule {
            Rule::Refill { max, period } => {
                let (max, period) = (i128::from(max), i128::from(period));
                let refilled = Ratio { over: max * elapsed, under: period };
                // The seed's equation, word for word.
                Ratio::whole(max, period).min(Ratio::whole(max, period).minus(self.used).plus(refilled))
            }
            Rule::Gcra { max, period, burst } => {
                let max = i128::from(max);
                let ahead = self.used.minus(Ratio::whole(elapsed, max)).max(Ratio::whole(0, max));
                Ratio { over: i128::from(burst) * i128::from(period), under: max }.minus(ahead)
            }
            other => panic!("{other:?}"),
        }
    }

    /// What a cost takes of that.
    fn price(&self, cost: u64) -> Ratio {
        let cost = i128::from(cost);
        match self.rule {
            Rule::Gcra { max, period, .. } => Ratio { over: cost * i128::from(period), under: max.into() },
            _ => Ratio::whole(cost, self.used.under),
        }
    }

    /// What may be taken now, and how long until so much may be.
    pub fn judge(&self, now: Micros, cost: u64) -> (i128, Option<i128>) {
        let remaining = self.remaining(now);
        let missing = self.price(cost).minus(remaining).over.max(0);
        let (Rule::Refill { max, period } | Rule::Gcra { max, period, .. }) = self.rule else {
            panic!("{:?}", self.rule)
        };
        // Of the one the parts are those of one, and so many refill in a microsecond; of the other they are those of
        // a microsecond, and so many are the price of one.
        let (floor, wait) = (remaining.over.div_euclid(period.into()), ceiling(missing, max.into()));
        (floor, (Amount::from(cost) <= self.rule.most()).then_some(wait))
    }

    pub fn take(&mut self, now: Micros, cost: u64) {
        let left = self.remaining(now).minus(self.price(cost));
        self.used = self.price(self.rule.most().saturating_u64()).minus(left);
        self.written = now;
        self.taken.push((now, cost));
    }
}

/// A limit that refills, of which whoever asks says the maximum. Amounts are in parts, of which a period makes one.
#[derive(Clone, Debug)]
pub(super) struct Changing {
    period: i128,
    used: i128,
    written: Micros,
    /// By whose maximum.
    max: i128,
    /// All that was ever refilled.
    refilled: i128,
    /// All that was taken.
    pub taken: Vec<(Micros, u64)>,
}

impl Changing {
    pub fn new(period: Micros, now: Micros) -> Self {
        Changing { period: period.into(), used: 0, written: now, max: 0, refilled: 0, taken: Vec::new() }
    }

    fn used(&self, now: Micros) -> i128 {
        (self.used - self.max * i128::from(now - self.written)).max(0)
    }

    /// The whole that remains by this maximum: below 0 where more is used than that.
    pub fn remaining(&self, now: Micros, max: u64) -> i128 {
        (i128::from(max) * self.period - self.used(now)).div_euclid(self.period)
    }

    /// Somebody takes by this maximum, which refills from now on, whether or not that is allowed.
    pub fn ask(&mut self, now: Micros, max: u64, cost: u64, allowed: bool) {
        let left = self.used(now);
        self.refilled += self.used - left;
        (self.used, self.written, self.max) = (left, now, max.into());
        if allowed {
            self.used += i128::from(cost) * self.period;
            self.taken.push((now, cost));
        }
    }

    /// By what is known how much is refilled from now on.
    pub fn mark(&self) -> i128 {
        self.refilled
    }

    /// Whether nothing is used.
    pub fn is_empty(&self, now: Micros) -> bool {
        self.used(now) == 0
    }

    /// Gives back what was taken at a mark and has not been refilled since, by this maximum from now on.
    pub fn give_back(&mut self, now: Micros, max: u64, cost: u64, mark: i128) {
        self.ask(now, max, 0, false);
        let back = i128::from(cost) * self.period - (self.refilled - mark);
        self.used -= back.clamp(0, self.used);
    }
}

/// A rolling limit, of which whoever asks says the window: all that was taken and not given back.
#[derive(Clone, Debug, Default)]
pub(super) struct Windows {
    taken: Vec<(Micros, u64)>,
}

impl Windows {
    /// What a window of so long holds that ends now.
    pub fn hold(&self, now: Micros, period: Micros) -> u128 {
        sum(&self.taken, (now + 1).saturating_sub(period), now)
    }

    pub fn take(&mut self, now: Micros, cost: u64) {
        self.taken.push((now, cost));
    }

    /// Gives back what was taken at a time, by who counts so long a window.
    pub fn give_back(&mut self, now: Micros, period: Micros, taken: (Micros, u64)) {
        let found = self.taken.iter().position(|one| *one == taken);
        if let Some(at) = found.filter(|_| taken.0 + period > now) {
            self.taken.swap_remove(at);
        }
    }

    pub fn reset(&mut self) {
        self.taken.clear();
    }
}

/// What was taken from one time to another, both included.
pub(super) fn sum(taken: &[(Micros, u64)], from: Micros, to: Micros) -> u128 {
    taken.iter().filter(|(at, _)| (from..=to).contains(at)).map(|(_, cost)| u128::from(*cost)).sum()
}
