//! What was heard of last, of more than can be remembered.

use std::collections::HashMap;
use std::hash::Hash;

use crate::limits::Hashes;

/// How many are remembered, at least.
pub(super) const MOST: usize = 10_000;

/// What is known by names, at least of the [`MOST`] that were heard of last. Names are those of strangers.
#[derive(Debug)]
pub(super) struct Recent<K, V> {
    known: HashMap<K, (u64, V), Hashes>,
    /// How often anything was heard: what is heard later has a higher number.
    heard: u64,
}

impl<K, V> Default for Recent<K, V> {
    fn default() -> Self {
        Recent { known: HashMap::default(), heard: 0 }
    }
}

impl<K: Eq + Hash, V> Recent<K, V> {
    pub fn get(&self, name: &K) -> Option<&V> {
        self.known.get(name).map(|(_, value)| value)
    }

    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.known.values().map(|(_, value)| value)
    }

    /// What is known of what is heard of once more.
    pub fn hear(&mut self, name: &K) -> Option<&mut V> {
        let (heard, value) = self.known.get_mut(name)?;
        self.heard += 1;
        *heard = self.heard;
        Some(value)
    }

    /// Remembers what is heard. Of too much, first what is over is forgotten.
    pub fn insert(&mut self, name: K, value: V, is_over: impl Fn(&V) -> bool) {
        // So seldom that it costs next to nothing each time.
        if self.known.len() >= 2 * MOST {
            self.known.retain(|_, (_, value)| !is_over(value));
            self.drop_older();
        }
        self.heard += 1;
        self.known.insert(name, (self.heard, value));
    }

    pub fn remove(&mut self, name: &K) {
        self.known.remove(name);
    }

    fn drop_older(&mut self) {
        let Some(over @ 1..) = self.known.len().checked_sub(MOST) else { return };
        let mut heard: Vec<u64> = self.known.values().map(|(heard, _)| *heard).collect();
        let (_, &mut oldest, _) = heard.select_nth_unstable(over);
        self.known.retain(|_, (heard, _)| *heard >= oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_not_heard_of_for_longest_are_forgotten() {
        let mut recent = Recent::default();
        for name in 0..5 * MOST {
            recent.insert(name, name, |_| false);
            assert_eq!(recent.hear(&0), Some(&mut 0));
            assert!(recent.known.len() <= 2 * MOST);
        }
        assert!((4 * MOST + 1..5 * MOST).all(|name| recent.get(&name) == Some(&name)));
        assert_eq!((recent.get(&0), recent.get(&MOST)), (Some(&0), None));
    }

    #[test]
    fn what_is_over_is_forgotten_first() {
        let mut recent = Recent::default();
        for name in 0..=2 * MOST {
            recent.insert(name, name, |name| name % 2 == 1);
        }
        assert!((0..MOST).all(|half| recent.get(&(2 * half)).is_some()));
        assert_eq!(recent.get(&1), None);
    }
}
