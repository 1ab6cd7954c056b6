//! Counts of what a pool's client did.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::Unit;
use crate::Micros;
use crate::value::Value;

/// Upper bounds of the wait times that are counted together: 2^n microseconds.
const BUCKETS: usize = 40;

/// What this handle of a pool has done so far. Times are in milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Statistics {
    /// Leases that are held now.
    pub leased: u64,
    /// Callers that wait now.
    pub waiting: u64,
    /// Leases that were granted.
    pub granted: u64,
    /// Leases that were given back, in time or too late.
    pub ended: u64,
    /// Acquisitions that ended without a lease.
    pub refused: u64,
    /// Leases whose deadline passed before they were given back.
    pub expired: u64,
    /// Leases that were found lost when they were renewed or given back.
    pub lost: u64,
    /// Leases that came with their nonce in doubt.
    pub in_doubt: u64,
    /// Half of the acquisitions waited at most so long (rounded up to a power of two of microseconds).
    pub wait_p50: f64,
    /// 99 of 100 acquisitions waited at most so long.
    pub wait_p99: f64,
    /// The longest wait.
    pub wait_max: f64,
    /// The longest time of late from telling holders to yield until those who steal had what they wanted; 0 if nobody
    /// stole.
    pub handshake: f64,
}

impl Statistics {
    /// The counts as a value, keys in snake case; times in the unit of the language.
    #[doc(hidden)]
    pub fn to_value(&self, unit: Unit) -> Value {
        let time = |milliseconds: f64| match unit {
            Unit::Milliseconds => Value::Number(milliseconds),
            Unit::Seconds => Value::Number(milliseconds / 1_000.0),
        };
        Value::map([
            ("leased", self.leased.into()),
            ("waiting", self.waiting.into()),
            ("granted", self.granted.into()),
            ("ended", self.ended.into()),
            ("refused", self.refused.into()),
            ("expired", self.expired.into()),
            ("lost", self.lost.into()),
            ("in_doubt", self.in_doubt.into()),
            ("wait_p50", time(self.wait_p50)),
            ("wait_p99", time(self.wait_p99)),
            ("wait_max", time(self.wait_max)),
            ("handshake", time(self.handshake)),
        ])
    }
}

/// The counts as they grow.
#[derive(Debug)]
pub(super) struct Counters {
    pub granted: AtomicU64,
    /// Leases that were given back or found lost as they were.
    pub ended: AtomicU64,
    pub refused: AtomicU64,
    pub expired: AtomicU64,
    pub lost: AtomicU64,
    pub in_doubt: AtomicU64,
    longest: AtomicU64,
    waits: [AtomicU64; BUCKETS],
}

impl Default for Counters {
    fn default() -> Self {
        Counters {
            granted: AtomicU64::default(),
            ended: AtomicU64::default(),
            refused: AtomicU64::default(),
            expired: AtomicU64::default(),
            lost: AtomicU64::default(),
            in_doubt: AtomicU64::default(),
            longest: AtomicU64::default(),
            waits: std::array::from_fn(|_| AtomicU64::default()),
        }
    }
}

impl Counters {
    pub fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    /// A lease was found lost, because its deadline passed or otherwise.
    pub fn lost(&self, expired: bool) {
        Self::add(&self.lost);
        if expired {
            Self::add(&self.expired);
        }
    }

    pub fn waited(&self, time: Micros) {
        let bucket = (Micros::BITS - time.leading_zeros()) as usize;
        if let Some(count) = self.waits.get(bucket.min(BUCKETS - 1)) {
            count.fetch_add(1, Relaxed);
        }
        if time > self.longest.load(Relaxed) {
            self.longest.fetch_max(time, Relaxed);
        }
    }

    pub fn read(&self, waiting: usize, handshake: Micros) -> Statistics {
        let get = |counter: &AtomicU64| counter.load(Relaxed);
        let longest = get(&self.longest);
        let waits = self.waits.each_ref().map(get);
        let at = |share: f64| {
            let total: u64 = waits.iter().sum();
            let wanted = (total as f64 * share).ceil() as u64;
            let mut seen = 0;
            let bucket = waits.iter().position(|count| {
                seen += count;
                seen >= wanted
            });
            let bound = (1u64 << bucket.unwrap_or(0)) - 1;
            bound.min(longest) as f64 / 1_000.0
        };
        Statistics {
            leased: get(&self.granted).saturating_sub(get(&self.ended)),
            waiting: waiting as u64,
            granted: get(&self.granted),
            ended: get(&self.ended),
            refused: get(&self.refused),
            expired: get(&self.expired),
            lost: get(&self.lost),
            in_doubt: get(&self.in_doubt),
            wait_p50: at(0.5),
            wait_p99: at(0.99),
            wait_max: longest as f64 / 1_000.0,
            handshake: handshake as f64 / 1_000.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_bound_the_waits() {
        let counters = Counters::default();
        (0..98).for_each(|_| counters.waited(3));
        (0..2).for_each(|_| counters.waited(1_000_000));
        let statistics = counters.read(0, 0);
        assert_eq!(statistics.wait_p50, 0.003);
        assert_eq!(statistics.wait_p99, 1_000.0);
        assert_eq!(statistics.wait_max, 1_000.0);
    }
}
