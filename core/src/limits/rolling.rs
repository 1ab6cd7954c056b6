//! The rolling window: what was taken in the last period, in cells of a thirty-second of it.
//!
//! Where several periods are asked with, as while a program is replaced by one that says another, each counts its own window
//! of the same cells. They are kept for the longest.

use super::periods::Periods;
use super::record::{Judged, Lasts};
use super::{MAX_CELLS, MAX_COUNTED};
use crate::Micros;

/// What was taken, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rolling {
    periods: Periods,
    cells: Vec<Cell>,
}

/// What was taken within one grain of the window counts until the last of it leaves the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    last: Micros,
    amount: u64,
}

/// So much in any window of so long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub max: u64,
    pub period: Micros,
}

impl Rolling {
    /// What is in any of the windows that end now, once somebody asks by this one.
    pub fn at(mut self, window: Window, now: Micros) -> Self {
        let asked = self.periods.asked(window.period, now);
        // A longer one finds what the one before has kept.
        let kept = self.periods.longest().min(asked.longest());
        self.cells.retain(|cell| cell.last + kept > now);
        let known = !self.cells.is_empty() || self.periods.known_until() > now;
        self.periods = if known { asked } else { Periods::of(window.period) };
        self
    }

    /// Whether who asks by this window changes for how long anything is kept, and whether all that this window holds has been
    /// kept until now.
    pub fn turns(&self, window: Window, now: Micros) -> (bool, bool) {
        let asked = self.periods.asked(window.period, now);
        (asked != self.periods, window.period <= self.periods.longest())
    }

    pub fn judge(&self, window: Window, now: Micros, cost: u64) -> Judged {
        let Window { max, period } = window;
        let cells = || self.cells.iter().filter(|cell| cell.last + period > now);
        let used: u64 = cells().map(|cell| cell.amount).sum();
        let over = over(used, max, cost);
        let mut left = 0;
        let mut leaves = cells().map(|cell| {
            left += u128::from(cell.amount);
            (left, cell.last + period - now)
        });
        let retry =
            if over == 0 { Some(0) } else { leaves.find(|(left, _)| *left >= over).map(|(_, time)| time) };
        Judged {
            allowed: over == 0,
            remaining: max.saturating_sub(used).into(),
            retry: retry.filter(|_| cost <= max),
            reset: Some(self.cells.last().map_or(0, |cell| (cell.last + period).saturating_sub(now))),
        }
    }

    pub fn charge(&mut self, now: Micros, cost: u64) {
        if cost == 0 {
            return;
        }
        let grain = self.periods.grain();
        match self.cells.last_mut() {
            Some(cell) if cell.last / grain == now / grain => {
                *cell = Cell { last: now, amount: cell.amount + cost };
            }
            _ => self.cells.push(Cell { last: now, amount: cost }),
        }
        // Not sooner, so that a time that was told is true.
        if self.cells.len() > MAX_CELLS {
            self.merge(now.saturating_sub(self.periods.shortest()), self.periods.coarse_grain());
        }
        if self.cells.len() > MAX_CELLS {
            self.merge(now, self.periods.coarsest_grain());
        }
    }

    /// Makes one cell of those of each grain until then.
    fn merge(&mut self, until: Micros, grain: Micros) {
        self.cells.dedup_by(|cell, before| {
            let merges = cell.last <= until && cell.last / grain == before.last / grain;
            if merges {
                // What is more than that is too much for anybody.
                let amount = before.amount.saturating_add(cell.amount).min(MAX_COUNTED);
                *before = Cell { last: cell.last, amount };
            }
            merges
        });
    }

    /// Gives back what was charged at `charged`, if that is in the window still: from the cell that holds it, and what is
    /// not there any more from the oldest in the window before it, which leave first. If nobody knows when it was charged, all
    /// of it from the oldest. Never is less counted than was taken, in this window or in another.
    pub fn give_back(&mut self, window: Window, now: Micros, mut cost: u64, charged: Option<Micros>) {
        if charged.is_some_and(|charged| charged + window.period <= now) {
            return;
        }
        let its = charged.map(|charged| self.cells.partition_point(|cell| cell.last < charged));
        let older = 0..its.unwrap_or(self.cells.len());
        for at in its.into_iter().chain(older) {
            if let Some(cell) = self.cells.get_mut(at).filter(|cell| cell.last + window.period > now) {
                let part = cost.min(cell.amount);
                (cost, cell.amount) = (cost - part, cell.amount - part);
            }
        }
        self.cells.retain(|cell| cell.amount > 0);
    }

    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// How long the record is needed.
    pub fn lasts(&self, now: Micros) -> Lasts {
        let last = self.cells.last().map_or(0, |cell| cell.last + self.periods.longest());
        Lasts::After(last.max(self.periods.known_until()).saturating_sub(now))
    }

    #[cfg(test)]
    pub fn cells(&self) -> usize {
        self.cells.len()
    }
}

/// By how much a cost does not fit. Nothing always fits, also where more is used than a lower maximum allows.
pub(super) fn over(used: u64, max: u64, cost: u64) -> u128 {
    if cost == 0 { 0 } else { (u128::from(used) + u128::from(cost)).saturating_sub(u128::from(max)) }
}
