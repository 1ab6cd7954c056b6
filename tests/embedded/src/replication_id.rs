//! The id by which replicas know a server's data.

use sha1_smol::Sha1;

/// Forty hexadecimal digits that change whenever the server's history does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplicationId {
    seed: u64,
    generation: u64,
}

impl ReplicationId {
    /// The first id of a server. Equal seeds give equal ids: a run must repeat from its seed alone.
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, generation: 0 }
    }

    pub(crate) fn advance(&mut self) {
        self.generation += 1;
    }

    pub(crate) fn hex(&self) -> String {
        Sha1::from(format!("{}/{}", self.seed, self.generation)).digest().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_generation_has_an_id_of_its_own() {
        let mut id = ReplicationId::new(1);
        let first = id.hex();
        assert_eq!(first.len(), 40);
        id.advance();
        assert_ne!(id.hex(), first);
        assert_ne!(ReplicationId::new(2).hex(), first);
        assert_eq!(ReplicationId::new(1).hex(), first);
    }
}
