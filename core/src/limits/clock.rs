//! A limit's time, which runs forward only.

use crate::Micros;

/// When a record was written, by its own clock. A wall clock that is set back goes on from where it was, at its own pace.
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

    /// The time now.
    pub fn now(self, wall: Micros) -> Micros {
        self.last.max(wall + self.shift)
    }

    /// Whether the wall clock was set back behind it.
    pub fn is_ahead(self, wall: Micros) -> bool {
        self.last > wall + self.shift
    }

    /// How long ago it was written.
    pub fn elapsed(self, wall: Micros) -> Micros {
        self.now(wall) - self.last
    }

    /// The clock as it is written now.
    pub fn written(self, wall: Micros) -> Self {
        let now = self.now(wall);
        Clock { last: now, shift: now - wall }
    }
}
