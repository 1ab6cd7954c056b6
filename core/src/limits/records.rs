//! The records of a ledger, by the keys of their limits.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use super::Term;
use super::record::Record;
use super::term::{Brought, Key};

/// Records, each in a place that it keeps until it is removed, by which it can be noted.
#[derive(Clone, Debug, Default)]
pub(super) struct Records {
    places: HashMap<Key, Place, BuildHasherDefault<Brought>>,
    entries: Vec<Option<Entry>>,
    free: Vec<Place>,
}

/// Where a record is.
pub(super) type Place = usize;

/// A record, and when it is to be looked whether it is gone.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    key: Key,
    pub record: Record,
    /// The millisecond under which the ledger has noted it.
    pub noted: Option<u64>,
}

impl Entry {
    /// Whether the note will do. One that comes too soon is mended then: a limit that is in use is not noted anew each time.
    pub fn is_noted(&self) -> bool {
        match (self.noted, self.record.gone()) {
            (Some(noted), Some(gone)) => noted <= gone,
            (None, None) => true,
            _ => false,
        }
    }
}

impl Records {
    pub fn len(&self) -> usize {
        self.places.len()
    }

    pub fn find(&self, key: &Key) -> Option<Place> {
        self.places.get(key).copied()
    }

    /// Where the record of a limit is, which is where it was last, if it was not removed since.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn find_again(&self, term: &Term) -> Option<Place> {
        let hint = term.hint().get();
        if self.get(hint).is_some_and(|entry| entry.key == *term.key()) {
            return Some(hint);
        }
        let place = self.find(term.key())?;
        term.hint().set(place);
        Some(place)
    }

    pub fn get(&self, place: Place) -> Option<&Entry> {
        self.entries.get(place)?.as_ref()
    }

    pub fn get_mut(&mut self, place: Place) -> Option<&mut Entry> {
        self.entries.get_mut(place)?.as_mut()
    }

    pub fn set(&mut self, place: Place, record: Record) {
        if let Some(entry) = self.get_mut(place) {
            entry.record = record;
        }
    }

    /// Adds a limit's first record, and gives its place.
    pub fn insert(&mut self, key: &Key, record: Record) -> Place {
        let place = self.free.pop().unwrap_or(self.entries.len());
        let entry = Some(Entry { key: key.clone(), record, noted: None });
        match self.entries.get_mut(place) {
            Some(free) => *free = entry,
            None => self.entries.push(entry),
        }
        self.places.insert(key.clone(), place);
        place
    }

    pub fn remove(&mut self, place: Place) -> Option<Entry> {
        let entry = self.entries.get_mut(place)?.take()?;
        self.places.remove(&entry.key);
        self.free.push(place);
        Some(entry)
    }
}
