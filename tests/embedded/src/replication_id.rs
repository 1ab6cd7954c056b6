//! The id by which replicas know a server's data.

use sha1_smol::Sha1;

/// Forty hexadecimal digits that change whenever the server's history does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplicationId {
    seed: u64,
    generation: u64,
    /// What is told instead, until it changes.
    told: Option<String>,
}

impl ReplicationId {
    /// The first id of a server. Equal seeds give equal ids: a run must repeat from its seed alone.
    pub(crate) fn new(seed: u64) -> Self {
        Self { seed, generation: 0, told: None }
    }

    pub(crate) fn advance(&mut self) {
        self.generation += 1;
        self.told = None;
    }

    /// Tells something else from now on, as a server that was not made here.
    pub(crate) fn tell(&mut self, told: &str) {
        self.told = Some(told.to_owned());
    }

    pub(crate) fn hex(&self) -> String {
        let own = || Sha1::from(format!("{}/{}", self.seed, self.generation)).digest().to_string();
        self.told.clone().unwrap_or_else(own)
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
