//! A limit as it is asked, and under what a ledger keeps its record.

use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::Rule;
use super::records::Place;
use crate::id::Name;

/// Of names of strangers.
#[cfg(not(target_family = "wasm"))]
#[expect(
    clippy::disallowed_types,
    reason = "no answer depends on it: it keeps strangers from choosing names that collide"
)]
pub(crate) type Hashes = std::hash::RandomState;
/// The library of a wasm module has no randomness: there that key would be the same everywhere, and only cost room.
#[cfg(target_family = "wasm")]
pub(crate) type Hashes = rustc_hash::FxBuildHasher;

/// A limit, and the rule by which it is judged: [`Rule::effective`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    key: Key,
    rule: Rule,
    hint: Hint,
}

/// Where a ledger found the limit's record last: there it is looked for first. Says nothing of the limit.
#[derive(Debug, Default)]
pub(super) struct Hint(AtomicUsize);

impl Term {
    /// The limit of this name, by this rule.
    #[must_use]
    pub fn new(name: Name, rule: Rule) -> Self {
        let rule = rule.effective();
        Term { key: Key::new(name, rule), rule, hint: Hint::default() }
    }

    /// The limit's name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.key.name
    }

    /// The rule by which it is judged.
    #[must_use]
    pub fn rule(&self) -> &Rule {
        &self.rule
    }

    pub(super) fn key(&self) -> &Key {
        &self.key
    }

    pub(super) fn hint(&self) -> &Hint {
        &self.hint
    }
}

impl Hint {
    pub fn get(&self) -> Place {
        self.0.load(Relaxed)
    }

    pub fn set(&self, place: Place) {
        self.0.store(place, Relaxed);
    }
}

impl Clone for Hint {
    fn clone(&self) -> Self {
        Hint(self.get().into())
    }
}

impl PartialEq for Hint {
    fn eq(&self, _: &Hint) -> bool {
        true
    }
}

impl Eq for Hint {}

/// Under what a ledger keeps a limit's record: its name and kind, and their hash, which is reckoned once for as long as a
/// limit is held. Names are those of whoever is limited, and so of strangers: the hash is keyed, with a key of this process.
#[derive(Clone, Debug)]
pub(super) struct Key {
    letter: char,
    name: Name,
    hash: u64,
}

impl Key {
    fn new(name: Name, rule: Rule) -> Self {
        Key::of(rule.letter(), name)
    }

    /// Of the limit of this name and of the kind of this letter.
    pub fn of(letter: char, name: Name) -> Self {
        static HASHES: OnceLock<Hashes> = OnceLock::new();
        let hash = HASHES.get_or_init(Hashes::default).hash_one((letter, name.as_str()));
        Key { letter, name, hash }
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.hash == other.hash && self.letter == other.letter && self.name.is(&other.name)
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// Takes the hash that a [`Key`] brings along.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Brought(u64);

impl Hasher for Brought {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, bytes: &[u8]) {
        // No key brings bytes.
        self.0 = bytes.iter().fold(self.0, |hash, byte| hash.rotate_left(8) ^ u64::from(*byte));
    }
}
