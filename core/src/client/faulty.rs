//! A store for tests that is spoken to as over a network.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::watch;

use super::{Leasehold, OpenOptions};
use crate::id::PoolName;
use crate::runtime::{self, StoreClock, TokioRuntime, idle};
use crate::slots::{Answer, Choice, Claim, Envelope, Reply, Request};
use crate::store::memory::MemoryPool;
use crate::store::{Certainty, Listener, MemoryStore, Store, StoreError, StorePool, Watch};
use crate::{MILLISECOND, Micros};

/// A server in this process that fails as it is told, and that is spoken to as over a network.
#[derive(Clone)]
pub(super) struct Faulty {
    memory: Arc<Mutex<MemoryStore>>,
    clock: StoreClock,
    state: Arc<watch::Sender<u8>>,
    /// How long it takes to listen; nothing where it calls nobody.
    hears_after: Arc<Mutex<Option<Micros>>>,
    /// Those who listen, and whether they hear.
    listeners: Arc<Mutex<Vec<Listener>>>,
    hears: Arc<AtomicBool>,
    performed: Arc<Mutex<Vec<Request>>>,
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
/// Performs, and the connection breaks before it answers.
pub(super) const CUT: u8 = 8;
/// Performs nothing, and the connection breaks before it answers.
pub(super) const LOST: u8 = 9;
/// Does not answer those who only look.
pub(super) const SILENT_ON_LOOKS: u8 = 10;
/// Answers, and calls nobody: a connection for messages hangs.
pub(super) const DEAF: u8 = 5;
/// Answers when the others have answered long ago, and in time.
pub(super) const SLOW: u8 = 4;
/// Does not answer those who name slots and wait until it is something else.
pub(super) const HOLDS: u8 = 6;
pub(super) const DELAY: Micros = 80 * MILLISECOND;

impl Faulty {
    pub(super) fn new(clock: StoreClock) -> Self {
        let memory = Arc::new(Mutex::new(MemoryStore::new(clock.clone())));
        Faulty {
            memory,
            clock,
            state: Arc::new(watch::Sender::new(WELL)),
            hears_after: Arc::default(),
            listeners: Arc::default(),
            hears: Arc::new(AtomicBool::new(true)),
            performed: Arc::default(),
        }
    }

    pub(super) fn is(&self, state: u8) {
        self.state.send_replace(state);
    }

    /// From now on it calls those who listen, which takes so long to set up.
    pub(super) fn hears_after(&self, delay: Micros) {
        *self.hears_after.lock().unwrap() = Some(delay);
    }

    /// Whether those who listen hear from now on. They are told, and go on to listen.
    #[cfg(feature = "crowds")]
    pub(super) fn hears(&self, hears: bool) {
        self.hears.store(hears, SeqCst);
        let listeners = self.listeners.lock().unwrap().clone();
        listeners.iter().for_each(|listener| listener(None));
    }

    /// How many requests of this kind it has performed.
    pub(super) fn count(&self, of_kind: fn(&Request) -> bool) -> usize {
        self.performed.lock().unwrap().iter().filter(|request| of_kind(request)).count()
    }

    /// Returns when it has performed more requests of this kind than so many.
    pub(super) async fn performs(&self, of_kind: fn(&Request) -> bool, than: usize) {
        while self.count(of_kind) <= than {
            idle().await;
        }
    }

    /// What is behind it, for those who are on the same machine.
    pub(super) fn memory(&self) -> MemoryStore {
        self.memory.lock().unwrap().clone()
    }

    pub(super) fn forgets(&self) {
        *self.memory.lock().unwrap() = MemoryStore::new(self.clock.clone());
    }

    /// A handle of its own.
    pub(super) fn opened(&self, lock_ttl: Micros) -> Leasehold<Faulty, TokioRuntime> {
        let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
        let options = OpenOptions { lock_ttl, response_timeout: 100 * MILLISECOND, ..OpenOptions::default() };
        Leasehold::new(self.clone(), runtime, options).unwrap()
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
        // As a message takes its way, so that others come between, and none before those that were sent before.
        runtime::others_first().await;
        let state = *self.store.state.borrow();
        match state {
            DEAD => return Err(StoreError::new(Certainty::NotPerformed, "connection refused")),
            HUNG => std::future::pending().await,
            LOST => return Err(StoreError::new(Certainty::Unknown, "connection reset")),
            SILENT_ON_LOOKS if envelope.requests.iter().all(Request::only_looks) => {
                std::future::pending().await
            }
            SLOW => tokio::time::sleep(Duration::from_micros(DELAY)).await,
            _ => {}
        }
        let pool: Arc<MemoryPool> = self.store.memory.lock().unwrap().pool(&self.name);
        let answer = pool.perform(envelope).await;
        self.store.performed.lock().unwrap().extend_from_slice(&envelope.requests);
        match state {
            MUTE => std::future::pending().await,
            CUT => return Err(StoreError::new(Certainty::Unknown, "connection reset")),
            _ => {}
        }
        if envelope.requests.iter().any(names_and_waits) {
            let _ = self.store.state.subscribe().wait_for(|state| *state != HOLDS).await;
        }
        answer
    }

    async fn watch(&self, listener: Listener) -> Result<Option<Watch>, StoreError> {
        if *self.store.state.borrow() == DEAF {
            std::future::pending::<()>().await;
        }
        let Some(delay) = *self.store.hears_after.lock().unwrap() else { return Ok(None) };
        tokio::time::sleep(Duration::from_micros(delay)).await;
        let pool = self.store.memory().pool(&self.name);
        let hears = self.store.hears.clone();
        self.store.listeners.lock().unwrap().push(listener.clone());
        let heard = hears.clone();
        let listener: Listener = Arc::new(move |calls| {
            if heard.load(SeqCst) {
                listener(calls);
            }
        });
        Ok(pool.watch(listener).await?.map(|watch| watch.while_it_hears(hears)))
    }
}

/// Whether it asks for a place in the lines of slots.
pub(super) fn names_and_waits(request: &Request) -> bool {
    matches!(request, Request::Claim(Claim { choice: Choice::Among { .. }, wait: true, .. }))
}

/// Whether it asks for a place in the line for any slot.
pub(super) fn stands_in_line(request: &Request) -> bool {
    matches!(request, Request::Claim(Claim { choice: Choice::Any { .. }, wait: true, .. }))
}

/// Whether it has a lease looked after.
pub(super) fn renews(request: &Request) -> bool {
    matches!(request, Request::Renew { .. })
}

/// Whether it gives a slot back.
pub(super) fn releases(request: &Request) -> bool {
    matches!(request, Request::Release { .. })
}
