//! A store for tests that is spoken to as over a network.

use std::sync::atomic::{AtomicU8, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Leasehold, OpenOptions, TokioRuntime};
use crate::id::PoolName;
use crate::slots::{Answer, Envelope, Reply, Request};
use crate::store::memory::{MemoryPool, StoreClock};
use crate::store::{Certainty, Listener, MemoryStore, Store, StoreError, StorePool, Watch};
use crate::{MILLISECOND, Micros};

/// A server in this process that fails as it is told, and that is spoken to as over a network.
#[derive(Clone)]
pub(super) struct Faulty {
    memory: Arc<Mutex<MemoryStore>>,
    clock: StoreClock,
    state: Arc<AtomicU8>,
}

pub(super) struct FaultyPool {
    store: Faulty,
    name: PoolName,
}

pub(super) const WELL: u8 = 0;
pub(super) const DEAD: u8 = 1;
/// Performs nothing and does not answer.
pub(super) const HUNG: u8 = 2;
/// Performs, and does not answer.
pub(super) const MUTE: u8 = 3;
/// Answers, and calls nobody: a connection for messages hangs.
pub(super) const DEAF: u8 = 5;
/// Answers when the others have answered long ago, and in time.
pub(super) const SLOW: u8 = 4;
pub(super) const DELAY: Micros = 80 * MILLISECOND;

impl Faulty {
    pub(super) fn new(clock: StoreClock) -> Self {
        let memory = Arc::new(Mutex::new(MemoryStore::new(clock.clone())));
        Faulty { memory, clock, state: Arc::default() }
    }

    pub(super) fn is(&self, state: u8) {
        self.state.store(state, SeqCst);
    }

    pub(super) fn forgets(&self) {
        *self.memory.lock().unwrap() = MemoryStore::new(self.clock.clone());
    }

    /// A handle of its own.
    pub(super) fn opened(&self, lock_ttl: Micros) -> Leasehold<Faulty, TokioRuntime> {
        let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
        let options = OpenOptions { lock_ttl, response_timeout: 100 * MILLISECOND, ..OpenOptions::default() };
        Leasehold::new(self.clone(), runtime, options)
    }
}

impl Store for Faulty {
    type Pool = FaultyPool;

    fn pool(&self, name: &PoolName) -> FaultyPool {
        FaultyPool { store: self.clone(), name: name.clone() }
    }
}

impl StorePool for FaultyPool {
    fn answers_at_once(&self) -> bool {
        false
    }

    fn perform_now(&self, _seed: u32, _request: &Request) -> Option<(Micros, Reply)> {
        None
    }

    async fn perform(&self, envelope: &Envelope) -> Result<Answer, StoreError> {
        // As a message takes its way, so that others come between.
        tokio::task::yield_now().await;
        let state = self.store.state.load(SeqCst);
        match state {
            DEAD => return Err(StoreError::new(Certainty::NotPerformed, "connection refused")),
            HUNG => std::future::pending().await,
            SLOW => tokio::time::sleep(Duration::from_micros(DELAY)).await,
            _ => {}
        }
        let pool: Arc<MemoryPool> = self.store.memory.lock().unwrap().pool(&self.name);
        let answer = pool.perform(envelope).await;
        if state == MUTE {
            std::future::pending::<()>().await;
        }
        answer
    }

    async fn watch(&self, _listener: Listener) -> Result<Option<Watch>, StoreError> {
        if self.store.state.load(SeqCst) == DEAF {
            std::future::pending::<()>().await;
        }
        Ok(None)
    }
}
