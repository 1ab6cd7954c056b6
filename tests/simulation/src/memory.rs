//! The store in memory, on virtual time, with what it does written down.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_util::FutureExt;
use leasehold::Micros;
use leasehold::id::PoolName;
use leasehold::limits;
use leasehold::slots::{Answer, Envelope, Reply, Request};
use leasehold::store::ledger::MemoryLedger;
use leasehold::store::memory::MemoryPool;
use leasehold::store::{LimitStore, Listener, MemoryStore, Store, StoreError, StoreLedger, StorePool, Watch};

use crate::charges;
use crate::facts;
use crate::history::{Fact, History, Performance, What};
use crate::server::BEGINNING;
use crate::world::{NATURE, ProcessId, World, unpoisoned};

/// The store.
#[derive(Clone)]
pub struct ObservedMemory {
    inner: MemoryStore,
    world: World,
    history: History,
    /// Who asks.
    process: ProcessId,
    /// All pools that were ever opened.
    pools: Arc<Mutex<HashMap<PoolName, Arc<MemoryPool>>>>,
}

/// One of its pools.
pub struct ObservedPool {
    inner: Arc<MemoryPool>,
    world: World,
    history: History,
    process: ProcessId,
    /// Whom the request that is being performed calls: the store tells its listeners before it replies.
    called: Arc<Mutex<Vec<Fact>>>,
    _watch: Option<Watch>,
}

impl ObservedMemory {
    /// An empty store.
    pub fn new(world: &World, history: &History) -> Self {
        let clock = world.clone();
        let inner = MemoryStore::new(Arc::new(move || BEGINNING + clock.now()));
        let (world, history, process) = (world.clone(), history.clone(), NATURE);
        ObservedMemory { inner, world, history, process, pools: Arc::default() }
    }

    /// The same for one process.
    pub fn of(&self, process: ProcessId) -> Self {
        ObservedMemory { process, ..self.clone() }
    }

    /// All slots of which anything is kept.
    pub fn records(&self) -> Vec<String> {
        let slots = |pool: &Arc<MemoryPool>| match pool.perform_now(0, &Request::List) {
            Some((_, Reply::Listed(slots))) => slots,
            _ => Vec::new(),
        };
        unpoisoned(&self.pools).values().flat_map(slots).map(|slot| slot.to_string()).collect()
    }
}

impl Store for ObservedMemory {
    type Pool = ObservedPool;

    fn pool(&self, name: &PoolName) -> ObservedPool {
        let (inner, called) = (self.inner.pool(name), Arc::<Mutex<Vec<Fact>>>::default());
        unpoisoned(&self.pools).insert(name.clone(), inner.clone());
        let heard = called.clone();
        let listener: Listener = Arc::new(move |calls| {
            unpoisoned(&heard).extend(calls.map(facts::offers_of_memory).into_iter().flatten());
        });
        // Memory answers at once.
        let _watch = inner.watch(listener).now_or_never().and_then(Result::ok).flatten();
        let (world, history, process) = (self.world.clone(), self.history.clone(), self.process);
        ObservedPool { inner, world, history, process, called, _watch }
    }
}

/// Limits in it.
pub struct ObservedLedger {
    inner: Arc<MemoryLedger>,
    world: World,
    history: History,
}

impl LimitStore for ObservedMemory {
    type Ledger = ObservedLedger;

    fn ledger(&self, scope: &PoolName) -> ObservedLedger {
        let inner = self.inner.ledger(scope);
        ObservedLedger { inner, world: self.world.clone(), history: self.history.clone() }
    }
}

impl StoreLedger for ObservedLedger {
    fn charge_now(&self, request: &limits::Request) -> Option<limits::Reply> {
        let reply = self.inner.charge_now(request)?;
        let now = self.world.now();
        let done = charges::of_memory(BEGINNING + now, request, &reply);
        self.history.record(now, NATURE, What::Charged(done));
        Some(reply)
    }

    async fn charge(&self, envelope: &limits::Envelope) -> Result<limits::Answer, StoreError> {
        self.inner.charge(envelope).await
    }
}

impl ObservedPool {
    fn begin(&self) {
        // Whom others called is in their own part of the record.
        unpoisoned(&self.called).clear();
    }

    /// Memory is never lost, so that nobody need know what fences its clients have seen.
    fn record(&self, now: Micros, mut facts: Vec<Fact>) {
        facts.append(&mut unpoisoned(&self.called));
        let done = Performance { now, facts, ..Performance::default() };
        self.history.record(self.world.now(), self.process, What::Performed(done));
    }
}

impl StorePool for ObservedPool {
    fn answers_at_once(&self) -> bool {
        self.inner.answers_at_once()
    }

    fn perform_now(&self, seed: u32, request: &Request) -> Option<(Micros, Reply)> {
        self.begin();
        let (now, reply) = self.inner.perform_now(seed, request)?;
        self.record(now, facts::of_memory(request, &reply));
        Some((now, reply))
    }

    fn clock(&self) -> Option<Micros> {
        self.inner.clock()
    }

    fn ever_added(&self) -> Option<usize> {
        self.inner.ever_added()
    }

    async fn perform(&self, envelope: &Envelope) -> Result<Answer, StoreError> {
        self.begin();
        let answer = self.inner.perform(envelope).await?;
        if let Answer::Performed(done) = &answer {
            let replies = envelope.requests.iter().zip(&done.replies);
            let facts = replies.flat_map(|(request, reply)| facts::of_memory(request, reply));
            self.record(done.now, facts.collect());
        }
        Ok(answer)
    }

    async fn watch(&self, listener: Listener) -> Result<Option<Watch>, StoreError> {
        self.inner.watch(listener).await
    }
}
