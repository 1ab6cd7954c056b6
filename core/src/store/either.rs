//! A store that is in memory or in Redis, as its opener says when the program runs.

#[cfg(feature = "doctor")]
use super::Finding;
use super::{Listener, MemoryStore, RedisStore, Store, StoreError, StorePool, Watch, memory, redis};
use crate::Micros;
#[cfg(feature = "doctor")]
use crate::id::Name;
use crate::id::PoolName;
use crate::nonce::Outcome;
#[cfg(feature = "doctor")]
use crate::runtime::Runtime;
use crate::slots::{Answer, Envelope, LeaseRef, Reply, Request};

/// One of the two stores.
#[derive(Clone, Debug)]
pub enum EitherStore<T> {
    /// In this process's memory.
    Memory(MemoryStore),
    /// In Redis.
    Redis(RedisStore<T>),
}

/// A pool of one of the two stores.
pub enum EitherPool<T> {
    /// In this process's memory.
    Memory(std::sync::Arc<memory::MemoryPool>),
    /// In Redis.
    Redis(redis::RedisPool<T>),
}

impl<T: redis::Transport> Store for EitherStore<T> {
    type Pool = EitherPool<T>;

    fn pool(&self, name: &PoolName) -> Self::Pool {
        match self {
            EitherStore::Memory(store) => EitherPool::Memory(store.pool(name)),
            EitherStore::Redis(store) => EitherPool::Redis(store.pool(name)),
        }
    }

    fn close(&self) {
        match self {
            EitherStore::Memory(store) => Store::close(store),
            EitherStore::Redis(store) => Store::close(store),
        }
    }

    #[cfg(feature = "doctor")]
    async fn examine<R: Runtime>(
        &self,
        runtime: &R,
        namespace: &Name,
        patience: Micros,
    ) -> Result<Vec<Finding>, StoreError> {
        match self {
            EitherStore::Memory(store) => store.examine(runtime, namespace, patience).await,
            EitherStore::Redis(store) => store.examine(runtime, namespace, patience).await,
        }
    }
}

impl<T: redis::Transport> StorePool for EitherPool<T> {
    fn answers_at_once(&self) -> bool {
        matches!(self, EitherPool::Memory(_))
    }

    fn perform_now(&self, seed: u32, request: &Request) -> Option<(Micros, Reply)> {
        match self {
            EitherPool::Memory(pool) => pool.perform_now(seed, request),
            EitherPool::Redis(_) => None,
        }
    }

    fn release_now(&self, lease: &LeaseRef, outcome: Outcome, cooldown: Micros) -> Option<Reply> {
        match self {
            EitherPool::Memory(pool) => pool.release_now(lease, outcome, cooldown),
            EitherPool::Redis(_) => None,
        }
    }

    fn clock(&self) -> Option<Micros> {
        match self {
            EitherPool::Memory(pool) => pool.clock(),
            EitherPool::Redis(_) => None,
        }
    }

    fn lag(&self) -> Micros {
        match self {
            EitherPool::Memory(pool) => pool.lag(),
            EitherPool::Redis(pool) => pool.lag(),
        }
    }

    fn ever_added(&self) -> Option<usize> {
        match self {
            EitherPool::Memory(pool) => pool.ever_added(),
            EitherPool::Redis(_) => None,
        }
    }

    async fn perform(&self, envelope: &Envelope) -> Result<Answer, StoreError> {
        match self {
            EitherPool::Memory(pool) => pool.perform(envelope).await,
            EitherPool::Redis(pool) => pool.perform(envelope).await,
        }
    }

    async fn watch(&self, listener: Listener) -> Result<Option<Watch>, StoreError> {
        match self {
            EitherPool::Memory(pool) => pool.watch(listener).await,
            EitherPool::Redis(pool) => pool.watch(listener).await,
        }
    }
}
