//! Counts of what a pool's client did.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::Micros;
use crate::client::Unit;
use crate::value::Value;

/// Upper bounds of the wait times that are counted together: 2^n microseconds.
const BUCKETS: usize = 40;

/// What this handle of a pool has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Statistics {
    /// Leases that are held now.
    pub leased: u64,
    /// Callers that wait now.
    pub waiting: u64,
    /// Leases that were granted.
    pub granted: u64,
    /// Leases that were given back, in time or too late.
    pub ended: u64,
    /// Acquisitions that ended without a lease, time-outs among them.
    pub refused: u64,
    /// Those of `lost` that ran out.
    pub expired: u64,
    /// Leases that were found lost before they were given back, or as they were.
    pub lost: u64,
    /// Leases that came with their nonce in doubt.
    pub in_doubt: u64,
    /// Half of those that were granted waited at most so many microseconds (rounded up to a power of two).
    pub wait_p50_micros: Micros,
    /// 99 of 100 of those that were granted waited at most so many microseconds.
    pub wait_p99_micros: Micros,
    /// The longest wait of those that were granted, in microseconds.
    pub wait_max_micros: Micros,
    /// The longest time, in microseconds, of late from telling holders to yield until those who steal had what they wanted; 0 if nobody
    /// stole.
    pub handshake_micros: Micros,
}

impl Statistics {
    /// The counts as a value, keys in snake case; times in the unit of the language.
    #[doc(hidden)]
    pub fn to_value(&self, unit: Unit) -> Value {
        let time = |time| Value::Number(unit.count(time));
        Value::map([
            ("leased", self.leased.into()),
            ("waiting", self.waiting.into()),
            ("granted", self.granted.into()),
            ("ended", self.ended.into()),
            ("refused", self.refused.into()),
            ("expired", self.expired.into()),
            ("lost", self.lost.into()),
            ("in_doubt", self.in_doubt.into()),
            ("wait_p50", time(self.wait_p50_micros)),
            ("wait_p99", time(self.wait_p99_micros)),
            ("wait_max", time(self.wait_max_micros)),
            ("handshake", time(self.handshake_micros)),
        ])
    }
}

/// The counts as they grow.
#[derive(Debug)]
pub(in crate::client) struct Counters {
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

/// An acquisition that has come to nothing yet: dropped, also as its caller gives it up, it was refused.
pub(in crate::client) struct GivenUp<'a>(pub &'a Counters);

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        Counters::add(&self.0.refused);
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
            match bucket.unwrap_or(0) {
                // Whatever is longer counts there too.
                last if last + 1 == BUCKETS => longest,
                bucket => ((1u64 << bucket) - 1).min(longest),
            }
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
            wait_p50_micros: at(0.5),
            wait_p99_micros: at(0.99),
            wait_max_micros: longest,
            handshake_micros: handshake,
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
        assert_eq!(statistics.wait_p50_micros, 3);
        assert_eq!(statistics.wait_p99_micros, 1_000_000);
        assert_eq!(statistics.wait_max_micros, 1_000_000);
    }

    // It said 6.36 days.
    #[test]
    fn waits_of_many_days_are_bounded_too() {
        let counters = Counters::default();
        let ten_days = 10 * 86_400 * crate::SECOND;
        counters.waited(ten_days);
        let statistics = counters.read(0, 0);
        assert_eq!((statistics.wait_p50_micros, statistics.wait_p99_micros), (ten_days, ten_days));
    }
}
