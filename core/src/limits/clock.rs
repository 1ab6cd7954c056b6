//! A limit's time, which runs forward only.

use crate::Micros;

/// When a record was written, by its own clock. A wall clock that is set back goes on from where it was, at half its pace until
/// the wall clock has caught up: else one that was wrong once would be so for ever, and one that jumps to and fro would run ahead by all
/// that it jumps, and not by half of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    last: Micros,
    /// How far it is ahead of the wall clock.
    shift: Micros,
}

impl Clock {
    /// A clock that is written at this time.
    pub fn new(wall: Micros) -> Self {
        Clock { last: wall, shift: 0 }
    }

    /// The time now. Never behind the wall clock, and no faster than that since it was written.
    pub fn now(self, wall: Micros) -> Micros {
        let passed = (wall + self.shift).saturating_sub(self.last);
        self.last + passed - self.shift.min(passed / 2)
    }

    /// Whether the wall clock was set back behind it.
    pub fn is_behind(self, wall: Micros) -> bool {
        self.last > wall + self.shift
    }

    /// Whether it is the wall clock.
    pub fn is_true(self, wall: Micros) -> bool {
        self.shift == 0 && self.last <= wall
    }

    /// How long ago it was written.
    pub fn elapsed(self, wall: Micros) -> Micros {
        self.now(wall) - self.last
    }

    /// How long it takes by the wall clock until so much more has passed: perhaps a microsecond less.
    pub fn lasts(self, wall: Micros, time: Micros) -> Micros {
        time + time.min(self.now(wall) - wall)
    }

    /// The clock as it is written now.
    pub fn written(self, wall: Micros) -> Self {
        let now = self.now(wall);
        Clock { last: now, shift: now - wall }
    }
}
