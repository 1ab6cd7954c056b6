//! What is used of a limit, by whole numbers and fractions.

use crate::births::Births;
use crate::cells::Cells;
use crate::charges::{Cost, Kind};

/// The longest time that is told.
const LONGEST: u128 = 1 << 50;

/// What is used of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Used {
    /// Of what refills, GCRA too, in parts of which a period makes one: by which maximum it was written, how much has ever been
    /// refilled while there was a record, and how much by the first reservation that may still count.
    Parts { period: u64, max: u128, parts: u128, refilled: u128, since: Option<u128> },
    /// Of a rolling window.
    Cells(Cells),
    /// All that was ever taken, or in a period.
    Money(Births),
    /// What is in flight, until when; and for whom room is kept.
    Flights(Vec<(u64, u128)>, Option<Kept>),
    /// Nothing is remembered.
    Nothing,
}

/// Room for one that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub line: String,
    /// Since when it waits.
    pub since: u64,
    pub until: u64,
    pub cost: u128,
}

impl Used {
    pub fn new(kind: Kind) -> Self {
        match kind {
            Kind::Refill | Kind::Gcra => {
                Used::Parts { period: 0, max: 0, parts: 0, refilled: 0, since: None }
            }
            Kind::Rolling => Used::Cells(Cells::default()),
            Kind::Lifetime | Kind::Budget => Used::Money(Births::default()),
            Kind::InFlight => Used::Flights(Vec::new(), None),
            Kind::Each => Used::Nothing,
        }
    }

    /// What is used so long after it was written, by this rule.
    pub fn at(&self, rule: &Cost, now: u64, elapsed: u64) -> Used {
        let (max, elapsed) = (rule.max, u128::from(elapsed));
        match self.clone() {
            // The seed's equation: until a maximum is asked with by the one before. No period of theirs changes in a world.
            Used::Parts { max: before, parts, refilled, since, .. } => {
                let left = parts.saturating_sub(elapsed * before);
                let refilled = refilled + parts - left;
                // More is not counted.
                let most = u128::from(rule.period) << 50;
                let since = since.filter(|since| left > 0 && refilled - since < most);
                Used::Parts { period: rule.period, max, parts: left, refilled, since }
            }
            Used::Cells(cells) => Used::Cells(cells.at(rule.period, now)),
            Used::Money(births) if rule.kind == Kind::Budget => {
                Used::Money(births.asked((rule.period, rule.extra), now))
            }
            Used::Flights(mut flights, kept) => {
                flights.retain(|(until, _)| *until > now);
                Used::Flights(flights, kept.filter(|kept| kept.until > now))
            }
            other => other,
        }
    }

    /// The whole that is taken of what can be.
    pub fn remaining(&self, rule: &Cost, now: u64) -> u128 {
        let period = u128::from(rule.period);
        let sum = |items: &[(u64, u128)]| items.iter().map(|(_, amount)| amount).sum::<u128>();
        match self {
            Used::Parts { parts, .. } => rule.most().saturating_sub(parts.div_ceil(period)),
            Used::Cells(cells) => rule.max.saturating_sub(cells.sum(rule.period, now)),
            Used::Flights(items, _) => rule.max.saturating_sub(sum(items)),
            Used::Money(births) => rule.max.saturating_sub(births.used()),
            Used::Nothing => rule.max,
        }
    }

    /// Nothing always fits.
    pub fn allows(&self, rule: &Cost, now: u64, cost: u128) -> bool {
        cost == 0 || cost <= self.remaining(rule, now)
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Used::Parts { parts, .. } => *parts == 0,
            Used::Cells(cells) => cells.is_empty(),
            Used::Flights(items, _) => items.is_empty(),
            Used::Money(births) => births.used() == 0,
            Used::Nothing => true,
        }
    }

    /// Whether something is kept by another rule.
    pub fn is_of_another(&self, rule: &Cost, now: u64) -> bool {
        match self {
            Used::Parts { max, parts, .. } => *max != rule.max && *parts > 0,
            Used::Cells(cells) => cells.turns(rule.period, now),
            Used::Money(births) if rule.kind == Kind::Budget => births.turns((rule.period, rule.extra), now),
            _ => false,
        }
    }

    /// How long until nothing is used, if ever.
    pub fn empty_after(&self, rule: &Cost, now: u64) -> Option<u64> {
        match self {
            _ if self.is_empty() => Some(0),
            Used::Money(Births { ends: 0, .. }) => None,
            Used::Parts { parts, .. } => Some(parts.div_ceil(rule.max).min(LONGEST) as u64),
            Used::Cells(cells) => Some(cells.empty_after(rule.period, now)),
            Used::Flights(flights, _) => flights.iter().map(|(until, _)| until - now).max(),
            Used::Money(births) => Some(births.over() - now),
            Used::Nothing => Some(0),
        }
    }
}
