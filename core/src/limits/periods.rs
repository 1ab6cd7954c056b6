//! By what periods a rolling limit is asked: what it keeps is kept for the longest of them, by the grain of the shortest.

use super::CELLS;
use crate::Micros;

/// The periods by which a limit is asked; mostly that is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Periods {
    longest: Micros,
    shortest: Micros,
    /// There are several.
    round: Option<Round>,
}

/// Those by which nobody asks in a round of the longest one's length do not count in the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Round {
    ends: Micros,
    longest: Micros,
    shortest: Micros,
}

impl Periods {
    /// This one only.
    pub fn of(period: Micros) -> Self {
        Periods { longest: period, shortest: period, round: None }
    }

    /// Once somebody asks by this one too.
    pub fn asked(mut self, period: Micros, now: Micros) -> Self {
        if let Some(over) = self.round.filter(|round| round.ends <= now) {
            self = Periods { longest: over.longest, shortest: over.shortest, round: None };
        }
        if self == Periods::of(period) {
            return self;
        }
        let longest = self.longest.max(period);
        let round = Round { ends: now + longest, longest: period, shortest: period };
        let Round { ends, longest: seen, shortest } = self.round.unwrap_or(round);
        let round = Round { ends, longest: seen.max(period), shortest: shortest.min(period) };
        Periods { longest, shortest: self.shortest.min(period), round: Some(round) }
    }

    /// For how long is kept what was taken.
    pub fn longest(self) -> Micros {
        self.longest
    }

    pub fn shortest(self) -> Micros {
        self.shortest
    }

    /// By what grain is counted what is taken: the share of a window that it may be counted too long.
    pub fn grain(self) -> Micros {
        grain(self.shortest)
    }

    /// By what grain may be merged what the longest window alone counts: with what it is merged of by now, no more than its
    /// own.
    pub fn coarse_grain(self) -> Micros {
        grain(self.longest).saturating_sub(self.grain()).max(1)
    }

    pub fn coarsest_grain(self) -> Micros {
        grain(self.longest)
    }

    /// Until when it is to be known by whom it was asked, also if nothing is used: who asks once in a period finds what was
    /// taken since. Of one period there is nothing to know.
    pub fn known_until(self) -> Micros {
        self.round.map_or(0, |round| round.ends + round.longest)
    }
}

fn grain(period: Micros) -> Micros {
    period.div_ceil(CELLS)
}
