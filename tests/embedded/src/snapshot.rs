//! The data of a server at one moment.

use crate::keyspace::Keyspace;

/// A copy of the data, such as a replica that has fallen behind holds.
#[derive(Clone, Debug)]
pub struct Snapshot {
    keyspace: Keyspace,
}

impl Snapshot {
    /// The number of keys in it, also of those that would have expired by now.
    pub fn key_count(&self) -> usize {
        self.keyspace.len()
    }

    pub(crate) fn of(keyspace: &Keyspace) -> Self {
        Self { keyspace: keyspace.clone() }
    }

    pub(crate) fn into_keyspace(self) -> Keyspace {
        self.keyspace
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Text;

    #[test]
    fn a_snapshot_does_not_follow_later_writes() {
        let mut keys = Keyspace::default();
        keys.put(b"a", Text::from("1"));
        let snapshot = Snapshot::of(&keys);
        keys.put(b"b", Text::from("2"));
        assert_eq!(snapshot.key_count(), 1);
        assert!(!snapshot.into_keyspace().contains(b"b"));
    }
}
