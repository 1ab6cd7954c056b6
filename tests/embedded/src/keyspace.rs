//! The data set: keys, their values, and when they expire.

use std::collections::BTreeSet;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::error_reply::ErrorReply;
use crate::value::{Kind, Value};

type Key = Arc<[u8]>;

/// Keys with values and expiry times.
#[derive(Clone, Debug, Default)]
pub(crate) struct Keyspace {
    entries: FxHashMap<Key, Entry>,
    /// Every expiry time, the next one first: expired keys go at once, so that nothing piles up in a long run.
    expiries: BTreeSet<(i64, Key)>,
}

#[derive(Clone, Debug)]
struct Entry {
    value: Value,
    expires_at: Option<i64>,
}

impl Keyspace {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.expiries.clear();
    }

    /// Drops every key whose time has passed. As in Redis, a key lives through the millisecond that it names.
    pub(crate) fn expire(&mut self, now_ms: i64) {
        while self.expiries.first().is_some_and(|(at, _)| *at < now_ms) {
            if let Some((_, key)) = self.expiries.pop_first() {
                self.entries.remove(&key);
            }
        }
    }

    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        self.entries.contains_key(key)
    }

    pub(crate) fn value(&self, key: &[u8]) -> Option<&Value> {
        self.entries.get(key).map(|entry| &entry.value)
    }

    /// The value of a key, read as one type; a key of another type is an error.
    pub(crate) fn read<K: Kind>(&self, key: &[u8]) -> Result<Option<&K>, ErrorReply> {
        match self.entries.get(key) {
            None => Ok(None),
            Some(entry) => K::of(&entry.value).map(Some).ok_or(ErrorReply::WRONG_TYPE),
        }
    }

    /// As `read`, to change the value; `settle` is to follow when something was taken out.
    pub(crate) fn edit<K: Kind>(&mut self, key: &[u8]) -> Result<Option<&mut K>, ErrorReply> {
        match self.entries.get_mut(key) {
            None => Ok(None),
            Some(entry) => K::of_mut(&mut entry.value).map(Some).ok_or(ErrorReply::WRONG_TYPE),
        }
    }

    /// As `edit`, making an empty value where the key is missing.
    pub(crate) fn open<K: Kind>(&mut self, key: &[u8]) -> Result<&mut K, ErrorReply> {
        if !self.entries.contains_key(key) {
            let entry = Entry { value: K::default().into_value(), expires_at: None };
            self.entries.insert(Arc::from(key), entry);
        }
        self.edit(key)?.ok_or(ErrorReply::WRONG_TYPE)
    }

    /// Removes the key if its collection has become empty.
    pub(crate) fn settle(&mut self, key: &[u8]) {
        if self.value(key).is_some_and(Value::is_spent) {
            self.remove(key);
        }
    }

    /// Puts a value in place of whatever the key held, without an expiry time.
    pub(crate) fn put<K: Kind>(&mut self, key: &[u8], value: K) {
        self.persist(key);
        if let Some(entry) = self.entries.get_mut(key) {
            entry.value = value.into_value();
            return;
        }
        self.entries.insert(Arc::from(key), Entry { value: value.into_value(), expires_at: None });
    }

    pub(crate) fn remove(&mut self, key: &[u8]) -> bool {
        let Some((key, entry)) = self.entries.remove_entry(key) else { return false };
        if let Some(at) = entry.expires_at {
            self.expiries.remove(&(at, key));
        }
        true
    }

    pub(crate) fn expires_at(&self, key: &[u8]) -> Option<i64> {
        self.entries.get(key).and_then(|entry| entry.expires_at)
    }

    pub(crate) fn set_expiry(&mut self, key: &[u8], at_ms: i64) {
        let Some((key, _)) = self.entries.get_key_value(key) else { return };
        let key = key.clone();
        if let Some(entry) = self.entries.get_mut(&key) {
            if entry.expires_at == Some(at_ms) {
                return;
            }
            if let Some(old) = entry.expires_at.replace(at_ms) {
                self.expiries.remove(&(old, key.clone()));
            }
            self.expiries.insert((at_ms, key));
        }
    }

    /// Takes the expiry time away and tells whether there was one.
    pub(crate) fn persist(&mut self, key: &[u8]) -> bool {
        let Some(at) = self.entries.get_mut(key).and_then(|entry| entry.expires_at.take()) else {
            return false;
        };
        if let Some((key, _)) = self.entries.get_key_value(key) {
            self.expiries.remove(&(at, key.clone()));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Hash, Set, Text};

    #[test]
    fn a_key_lives_through_the_millisecond_of_its_expiry() {
        let mut keys = Keyspace::default();
        keys.put(b"a", Text::from("1"));
        keys.set_expiry(b"a", 50);
        keys.expire(50);
        assert!(keys.contains(b"a"));
        keys.expire(51);
        assert_eq!(keys.len(), 0);
    }

    #[test]
    fn a_new_expiry_replaces_the_old_one() {
        let mut keys = Keyspace::default();
        keys.put(b"a", Text::from("1"));
        keys.set_expiry(b"a", 50);
        keys.set_expiry(b"a", 90);
        keys.expire(60);
        assert_eq!(keys.expires_at(b"a"), Some(90));
        assert!(keys.persist(b"a"));
        assert!(!keys.persist(b"a"));
        keys.expire(1_000);
        assert!(keys.contains(b"a"));
    }

    #[test]
    fn removing_a_key_forgets_its_expiry() {
        let mut keys = Keyspace::default();
        keys.put(b"a", Text::from("1"));
        keys.set_expiry(b"a", 50);
        assert!(keys.remove(b"a"));
        keys.put(b"a", Text::from("2"));
        keys.expire(100);
        assert!(keys.contains(b"a"));
        keys.clear();
        assert!(!keys.remove(b"a"));
    }

    #[test]
    fn types_do_not_mix_and_empty_collections_go() {
        let mut keys = Keyspace::default();
        keys.open::<Set>(b"s").expect("new").insert(b"x".to_vec());
        assert_eq!(keys.open::<Hash>(b"s").err(), Some(ErrorReply::WRONG_TYPE));
        assert_eq!(keys.read::<Hash>(b"s").err(), Some(ErrorReply::WRONG_TYPE));
        keys.settle(b"s");
        assert!(keys.contains(b"s"));
        keys.edit::<Set>(b"s").expect("a set").expect("there").clear();
        keys.settle(b"s");
        assert!(!keys.contains(b"s"));
    }
}
