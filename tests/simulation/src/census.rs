//! Counts of what happened, over all worlds.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use crate::world::unpoisoned;

/// Counts by name.
#[derive(Clone, Debug, Default)]
pub struct Census(Arc<Mutex<BTreeMap<&'static str, u64>>>);

impl Census {
    /// Counts one.
    pub fn count(&self, name: &'static str) {
        self.add(name, 1);
    }

    /// Counts several.
    pub fn add(&self, name: &'static str, count: u64) {
        *unpoisoned(&self.0).entry(name).or_default() += count;
    }

    /// How many.
    pub fn of(&self, name: &str) -> u64 {
        unpoisoned(&self.0).get(name).copied().unwrap_or(0)
    }

    /// Adds all counts of another.
    pub fn merge(&self, other: &Census) {
        let other = unpoisoned(&other.0).clone();
        other.into_iter().for_each(|(name, count)| self.add(name, count));
    }
}

impl fmt::Display for Census {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in unpoisoned(&self.0).iter() {
            writeln!(f, "  {name:<28} {count:>10}")?;
        }
        Ok(())
    }
}
