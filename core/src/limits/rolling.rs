//! The rolling window: what was taken in the last period, in cells of a thirty-second of it.

use super::CELLS;
use super::record::{Judged, Lasts};
use crate::Micros;

/// What was taken, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rolling {
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
    /// What is in the window that ends now.
    pub fn at(mut self, window: Window, now: Micros) -> Self {
        self.cells.retain(|cell| cell.last + window.period > now);
        self
    }

    pub fn judge(&self, window: Window, now: Micros, cost: u64) -> Judged {
        let Window { max, period } = window;
        let used: u64 = self.cells.iter().map(|cell| cell.amount).sum();
        let over = over(used, max, cost);
        let mut left = 0;
        let mut leaves = self.cells.iter().map(|cell| {
            left += u128::from(cell.amount);
            (left, cell.last + period - now)
        });
        let retry =
            if over == 0 { Some(0) } else { leaves.find(|(left, _)| *left >= over).map(|(_, time)| time) };
        Judged {
            allowed: over == 0,
            remaining: max.saturating_sub(used).into(),
            retry: retry.filter(|_| cost <= max),
            reset: Some(self.cells.last().map_or(0, |cell| cell.last + period - now)),
        }
    }

    pub fn charge(&mut self, window: Window, now: Micros, cost: u64) {
        if cost == 0 {
            return;
        }
        let grain = window.period.div_ceil(CELLS);
        match self.cells.last_mut() {
            Some(cell) if cell.last / grain == now / grain => {
                *cell = Cell { last: now, amount: cell.amount + cost };
            }
            _ => self.cells.push(Cell { last: now, amount: cost }),
        }
    }

    /// Gives back what was charged at `charged`, if that is in the window still. It is taken from the oldest, which leave
    /// first: never is less counted than was taken.
    pub fn give_back(&mut self, window: Window, now: Micros, mut cost: u64, charged: Micros) {
        if charged + window.period <= now {
            return;
        }
        self.cells.retain_mut(|cell| {
            let part = cost.min(cell.amount);
            (cost, cell.amount) = (cost - part, cell.amount - part);
            cell.amount > 0
        });
    }

    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// How long the record is needed.
    pub fn lasts(&self, window: Window, now: Micros) -> Lasts {
        Lasts::After(self.cells.last().map_or(0, |cell| cell.last + window.period - now))
    }
}

/// By how much a cost does not fit. Nothing always fits, also where more is used than a lower maximum allows.
pub(super) fn over(used: u64, max: u64, cost: u64) -> u128 {
    if cost == 0 { 0 } else { (u128::from(used) + u128::from(cost)).saturating_sub(u128::from(max)) }
}
