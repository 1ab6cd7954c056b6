//! The store in memory, on virtual time, with what it does written down.

use std::sync::Arc;

use leasehold::Micros;
use leasehold::id::PoolName;
use leasehold::slots::{Answer, Envelope, Reply, Request};
use leasehold::store::memory::MemoryPool;
use leasehold::store::{Listener, MemoryStore, Store, StoreError, StorePool, Watch};

use crate::facts;
use crate::history::{History, What};
use crate::server::BEGINNING;
use crate::world::{NATURE, World};

/// The store.
#[derive(Clone)]
pub struct ObservedMemory {
    inner: MemoryStore,
    world: World,
    history: History,
}

/// One of its pools.
pub struct ObservedPool {
    inner: Arc<MemoryPool>,
    world: World,
    history: History,
}

impl ObservedMemory {
    /// An empty store.
    pub fn new(world: &World, history: &History) -> Self {
        let clock = world.clone();
        let inner = MemoryStore::new(Arc::new(move || BEGINNING + clock.now()));
        ObservedMemory { inner, world: world.clone(), history: history.clone() }
    }
}

impl Store for ObservedMemory {
    type Pool = ObservedPool;

    fn pool(&self, name: &PoolName) -> ObservedPool {
        ObservedPool {
            inner: self.inner.pool(name),
            world: self.world.clone(),
            history: self.history.clone(),
        }
    }
}

impl StorePool for ObservedPool {
    fn answers_at_once(&self) -> bool {
        self.inner.answers_at_once()
    }

    fn perform_now(&self, seed: u32, request: &Request) -> Option<(Micros, Reply)> {
        let (now, reply) = self.inner.perform_now(seed, request)?;
        let facts = facts::of_memory(request, &reply);
        self.history.record(self.world.now(), NATURE, What::Performed { now, not_after: None, facts });
        Some((now, reply))
    }

    fn clock(&self) -> Option<Micros> {
        self.inner.clock()
    }

    fn ever_added(&self) -> Option<usize> {
        self.inner.ever_added()
    }

    async fn perform(&self, envelope: &Envelope) -> Result<Answer, StoreError> {
        self.inner.perform(envelope).await
    }

    async fn watch(&self, listener: Listener) -> Result<Option<Watch>, StoreError> {
        self.inner.watch(listener).await
    }
}
