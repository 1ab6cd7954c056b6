//! What a key holds.

use std::collections::{BTreeSet, VecDeque};

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;

use crate::sorted_set::SortedSet;

pub(crate) type Text = Vec<u8>;
/// Fields in the order in which they came, as Redis keeps its small hashes.
pub(crate) type Hash = IndexMap<Vec<u8>, Vec<u8>, FxBuildHasher>;
pub(crate) type List = VecDeque<Vec<u8>>;
pub(crate) type Set = BTreeSet<Vec<u8>>;

/// A value of one of the five types.
#[derive(Clone, Debug)]
pub(crate) enum Value {
    Text(Text),
    Hash(Hash),
    List(List),
    Set(Set),
    SortedSet(SortedSet),
}

/// A type that a value may have.
pub(crate) trait Kind: Default {
    fn of(value: &Value) -> Option<&Self>;
    fn of_mut(value: &mut Value) -> Option<&mut Self>;
    fn into_value(self) -> Value;
}

impl Value {
    /// The name that TYPE answers.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::Hash(_) => "hash",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::SortedSet(_) => "zset",
        }
    }

    /// Whether nothing is left in it, so that its key goes.
    pub(crate) fn is_spent(&self) -> bool {
        match self {
            Self::Text(_) => false,
            Self::Hash(hash) => hash.is_empty(),
            Self::List(list) => list.is_empty(),
            Self::Set(set) => set.is_empty(),
            Self::SortedSet(set) => set.is_empty(),
        }
    }
}

macro_rules! kind {
    ($name:ident) => {
        impl Kind for $name {
            fn of(value: &Value) -> Option<&Self> {
                if let Value::$name(inner) = value { Some(inner) } else { None }
            }

            fn of_mut(value: &mut Value) -> Option<&mut Self> {
                if let Value::$name(inner) = value { Some(inner) } else { None }
            }

            fn into_value(self) -> Value {
                Value::$name(self)
            }
        }
    };
}

kind!(Text);
kind!(Hash);
kind!(List);
kind!(Set);
kind!(SortedSet);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_shows_itself_only_as_its_own_kind() {
        let mut value = Hash::default().into_value();
        assert!(Hash::of(&value).is_some());
        assert!(List::of(&value).is_none());
        assert!(Set::of_mut(&mut value).is_none());
        assert_eq!(value.type_name(), "hash");
    }

    #[test]
    fn only_collections_are_spent_when_empty() {
        assert!(!Text::new().into_value().is_spent());
        assert!(List::new().into_value().is_spent());
        assert!(SortedSet::default().into_value().is_spent());
        assert!(!List::from(vec![vec![1]]).into_value().is_spent());
    }
}
