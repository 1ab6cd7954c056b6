//! What is in flight: taken by reservations that have not ended.

use super::record::{Judged, Lasts};
use super::rolling::over;
use crate::{Micros, SECOND};

/// After so long who waits leaves its claim, which holds for as long once more, unless it asks again meanwhile. Who came later by no
/// more than that need not stand back for it: when somebody came is known less exactly than that, as is what a client waits for.
const PATIENCE: Micros = SECOND / 2;
/// For so much longer at most a claim holds for who is so far away that it asks again later than that.
const FAR: Micros = 3 * PATIENCE;

/// What is in flight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct InFlight {
    flights: Vec<Flight>,
    claim: Option<Claim>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Flight {
    until: Micros,
    amount: u64,
}

/// One who waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiter {
    /// In which line of which client.
    pub line: u64,
    /// Since when, by the limit's time.
    pub arrived: Micros,
    /// How long an answer takes to reach it.
    pub reply: Micros,
}

/// For whom room is kept: of all who wait, the first that came. One that is alone in its line would find none otherwise where those of
/// another come as they leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Claim {
    waiter: Waiter,
    until: Micros,
    amount: u64,
}

impl InFlight {
    /// What has not ended.
    pub fn at(mut self, now: Micros) -> Self {
        self.flights.retain(|flight| flight.until > now);
        self.claim = self.claim.filter(|claim| claim.until > now);
        self
    }

    /// The retry time is that of the first that ends by itself, and most are given back sooner; of one that waits and has to stand
    /// back only, that of the claim.
    pub fn judge(&self, max: u64, now: Micros, cost: u64, waiter: Option<Waiter>) -> Judged {
        let used = self.used();
        let ends = || self.flights.iter().map(|flight| flight.until - now);
        let retry = if over(used, max, cost) > 0 {
            ends().min().filter(|_| cost <= max)
        } else {
            let before = |claim: &Claim| waiter.is_some_and(|waiter| claim.is_before(waiter));
            let claim = self.claim.filter(|claim| before(claim) && over(used + claim.amount, max, cost) > 0);
            Some(claim.map_or(0, |claim| claim.until - now))
        };
        Judged {
            allowed: retry == Some(0),
            remaining: max.saturating_sub(used).into(),
            retry,
            reset: Some(ends().max().unwrap_or(0)),
        }
    }

    /// What one waited for, or another of its line, is claimed no more: who waits there still claims anew as it asks.
    pub fn charge(&mut self, until: Micros, cost: u64, waiter: Option<Waiter>) {
        if cost > 0 {
            self.flights.push(Flight { until, amount: cost });
            let is_theirs = |claim: &Claim| waiter.is_some_and(|waiter| waiter.line == claim.waiter.line);
            self.claim = self.claim.filter(|claim| !is_theirs(claim));
        }
    }

    /// Keeps room for one that waits and is refused, unless somebody came before it; returns whether it does.
    pub fn claim(&mut self, now: Micros, cost: u64, waiter: Waiter) -> bool {
        let comes_first = |Claim { waiter: other, .. }: Claim| {
            let again = waiter.line == other.line && waiter.arrived <= other.arrived + PATIENCE;
            waiter.arrived < other.arrived || again
        };
        let claims = now - waiter.arrived >= PATIENCE && self.claim.is_none_or(comes_first);
        if claims {
            let until = now + PATIENCE + waiter.reply.min(FAR);
            self.claim = Some(Claim { waiter, until, amount: cost });
        }
        claims
    }

    /// Ends a flight. Those of one end and one amount are all the same.
    pub fn land(&mut self, until: Micros, cost: u64) {
        let landed = Flight { until, amount: cost };
        if let Some(at) = self.flights.iter().position(|flight| *flight == landed) {
            self.flights.remove(at);
        }
    }

    /// Prolongs a flight, which needs no room; returns whether it has not landed.
    pub fn prolong(&mut self, until: Micros, cost: u64, longer: Micros) -> bool {
        let flight = Flight { until, amount: cost };
        let found = self.flights.iter_mut().find(|known| **known == flight);
        found.map(|flight| flight.until = longer).is_some()
    }

    pub fn is_empty(&self) -> bool {
        self.flights.is_empty()
    }

    /// How long the record is needed.
    pub fn lasts(&self, now: Micros) -> Lasts {
        let claimed = self.claim.map(|claim| claim.until);
        let ends = self.flights.iter().map(|flight| flight.until).chain(claimed);
        Lasts::After(ends.max().map_or(0, |end| end - now))
    }

    fn used(&self) -> u64 {
        self.flights.iter().map(|flight| flight.amount).sum()
    }
}

impl Claim {
    /// Whether this one has to stand back for it. Those of one line have an order of their own.
    fn is_before(&self, waiter: Waiter) -> bool {
        self.waiter.line != waiter.line && self.waiter.arrived + PATIENCE < waiter.arrived
    }
}
