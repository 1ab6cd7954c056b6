//! What is in flight: taken by reservations that have not ended.

use super::record::{Judged, Lasts};
use super::rolling::over;
use crate::Micros;

/// What is in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InFlight {
    flights: Vec<Flight>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flight {
    until: Micros,
    amount: u64,
}

impl InFlight {
    /// What has not ended.
    pub fn at(mut self, now: Micros) -> Self {
        self.flights.retain(|flight| flight.until > now);
        self
    }

    /// The retry time is that of the first that ends by itself; most are given back sooner.
    pub fn judge(&self, max: u64, now: Micros, cost: u64) -> Judged {
        let used: u64 = self.flights.iter().map(|flight| flight.amount).sum();
        let allowed = over(used, max, cost) == 0;
        let ends = || self.flights.iter().map(|flight| flight.until - now);
        Judged {
            allowed,
            remaining: max.saturating_sub(used).into(),
            retry: if allowed { Some(0) } else { ends().min().filter(|_| cost <= max) },
            reset: Some(ends().max().unwrap_or(0)),
        }
    }

    pub fn charge(&mut self, until: Micros, cost: u64) {
        if cost > 0 {
            self.flights.push(Flight { until, amount: cost });
        }
    }

    /// Ends a flight. Those of one end and one amount are all the same.
    pub fn land(&mut self, until: Micros, cost: u64) {
        let landed = Flight { until, amount: cost };
        if let Some(at) = self.flights.iter().position(|flight| *flight == landed) {
            self.flights.remove(at);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// How long the record is needed.
    pub fn lasts(&self, now: Micros) -> Lasts {
        Lasts::After(self.flights.iter().map(|flight| flight.until - now).max().unwrap_or(0))
    }
}
