//! The generic cell rate algorithm, in whole numbers: a cell may take any fraction of a microsecond.

use super::record::{Judged, Lasts, ceiling};
use crate::Micros;

/// How far the cells that were taken are ahead of the clock: `time + part / max`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gcra {
    /// The maximum of the rule by which it was written.
    max: u64,
    time: Micros,
    /// Below the maximum.
    part: u64,
}

/// So much in a period, and so much at once.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub max: u64,
    pub period: Micros,
    pub burst: u64,
}

impl Pace {
    /// The time that so many cells take, in parts of `1 / max` microseconds.
    fn parts(self, cost: u64) -> u128 {
        u128::from(cost) * u128::from(self.period)
    }
}

impl Gcra {
    /// The backlog once so much time has passed.
    pub fn after(self, pace: Pace, elapsed: Micros) -> Self {
        let Gcra { mut time, mut part, .. } = self;
        // A part of another maximum is rounded up, so that nothing is lost.
        if self.max != pace.max && part > 0 {
            (time, part) = (time + 1, 0);
        }
        let backlog = parts(time, part, pace.max);
        let backlog = backlog.saturating_sub(u128::from(elapsed) * u128::from(pace.max));
        Self::of(pace, backlog.min(pace.parts(pace.burst)))
    }

    pub fn judge(self, pace: Pace, cost: u64) -> Judged {
        let (backlog, room) = (self.parts(), pace.parts(pace.burst));
        let over = (backlog + pace.parts(cost)).saturating_sub(room);
        let remaining = room.saturating_sub(backlog) / u128::from(pace.period);
        Judged {
            allowed: over == 0,
            remaining: remaining.into(),
            retry: (cost <= pace.burst).then(|| ceiling(over, pace.max)),
            reset: Some(ceiling(backlog, pace.max)),
        }
    }

    pub fn charge(&mut self, pace: Pace, cost: u64) {
        *self = Self::of(pace, self.parts() + pace.parts(cost));
    }

    /// Gives back what was charged so long ago and has not been paid off since: no more than a burst.
    pub fn give_back(&mut self, pace: Pace, cost: u64, since: Micros) {
        let paid = u128::from(since) * u128::from(pace.max);
        let back = pace.parts(cost.min(pace.burst)).saturating_sub(paid);
        *self = Self::of(pace, self.parts().saturating_sub(back));
    }

    /// How long the record is needed.
    pub fn lasts(self) -> Lasts {
        Lasts::After(ceiling(self.parts(), self.max.max(1)))
    }

    fn parts(self) -> u128 {
        parts(self.time, self.part, self.max)
    }

    fn of(pace: Pace, backlog: u128) -> Self {
        let max = u128::from(pace.max);
        Gcra { max: pace.max, time: (backlog / max) as Micros, part: (backlog % max) as u64 }
    }
}

fn parts(time: Micros, part: u64, max: u64) -> u128 {
    u128::from(time) * u128::from(max) + u128::from(part)
}
