//! Pools in this process's memory, shared by name: every handle, thread and binding of the process that
//! opens the same name shares the same pools.

#[cfg(feature = "limits")]
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, Weak};

#[cfg(feature = "doctor")]
use super::finding::{Check, Finding, Verdict};
#[cfg(feature = "limits")]
use super::ledger::MemoryLedger;
use super::{Listener, Store, StoreError, StorePool, Watch};
use crate::Micros;
#[cfg(feature = "doctor")]
use crate::id::Name;
use crate::id::PoolName;
#[cfg(feature = "limits")]
use crate::limits::Hashes;
use crate::nonce::Outcome;
use crate::poison::unpoisoned;
#[cfg(feature = "doctor")]
use crate::runtime::Runtime;
use crate::runtime::StoreClock;
use crate::slots::{Answer, Calls, Envelope, LeaseRef, Moment, Pool, Reply, Request};

/// Pools in memory.
#[derive(Clone)]
pub struct MemoryStore {
    pools: Arc<Mutex<Pools>>,
    #[cfg(feature = "limits")]
    ledgers: Arc<Mutex<Ledgers>>,
    clock: StoreClock,
}

#[cfg(feature = "limits")]
type Ledgers = HashMap<PoolName, Arc<MemoryLedger>, Hashes>;
/// By name: a map would be a good part of what browsers are sent.
type Pools = Vec<(PoolName, Arc<MemoryPool>)>;

/// One pool in memory.
pub struct MemoryPool {
    machine: Mutex<Pool>,
    /// The machine's, for those who do not hold its lock.
    ever_added: AtomicUsize,
    listeners: Mutex<Vec<Weak<Listener>>>,
    clock: StoreClock,
}

impl MemoryStore {
    /// A store of its own, which nobody else can open.
    pub fn new(clock: StoreClock) -> Self {
        MemoryStore {
            pools: Arc::default(),
            #[cfg(feature = "limits")]
            ledgers: Arc::default(),
            clock,
        }
    }

    /// The store of this name in this process; the clock is that of whoever opened it first.
    pub fn named(name: &str, clock: StoreClock) -> Self {
        static STORES: Mutex<Vec<(String, MemoryStore)>> = Mutex::new(Vec::new());
        let mut stores = unpoisoned(&STORES);
        if let Some((_, store)) = stores.iter().find(|(known, _)| known == name) {
            return store.clone();
        }
        let store = MemoryStore::new(clock);
        stores.push((name.to_owned(), store.clone()));
        store
    }

    /// The limits of this scope.
    #[cfg(feature = "limits")]
    pub(super) fn ledger_of(&self, scope: &PoolName) -> Arc<MemoryLedger> {
        let mut ledgers = unpoisoned(&self.ledgers);
        if let Some(ledger) = ledgers.get(scope) {
            return ledger.clone();
        }
        // So seldom that it costs next to nothing each time.
        if ledgers.len() == ledgers.capacity() {
            ledgers.retain(|_, ledger| Arc::strong_count(ledger) > 1 || ledger.remembers());
            let many = ledgers.len();
            ledgers.reserve(many.max(1));
        }
        let ledger = Arc::new(MemoryLedger::new(self.clock.clone()));
        ledgers.insert(scope.clone(), ledger.clone());
        ledger
    }

    /// How many pools it has.
    #[cfg(all(test, feature = "crowds"))]
    fn pools(&self) -> usize {
        unpoisoned(&self.pools).len()
    }

    /// How many scopes of limits it has.
    #[cfg(all(test, feature = "limits"))]
    pub(crate) fn ledgers(&self) -> usize {
        unpoisoned(&self.ledgers).len()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemoryStore")
    }
}

impl Store for MemoryStore {
    type Pool = Arc<MemoryPool>;

    fn pool(&self, name: &PoolName) -> Self::Pool {
        let mut pools = unpoisoned(&self.pools);
        let at = place_of(&pools, name);
        if let Some((_, pool)) = at.ok().and_then(|at| pools.get(at)) {
            return pool.clone();
        }
        // So seldom that it costs next to nothing each time.
        #[cfg(feature = "crowds")]
        if pools.len() == pools.capacity() {
            pools.retain(|(_, pool)| Arc::strong_count(pool) > 1 || pool.remembers());
            let many = pools.len();
            pools.reserve(many.max(1));
        }
        let pool = Arc::new(MemoryPool {
            machine: Mutex::default(),
            ever_added: AtomicUsize::default(),
            listeners: Mutex::default(),
            clock: self.clock.clone(),
        });
        let entry = (name.clone(), pool.clone());
        #[cfg(feature = "crowds")]
        {
            let at = place_of(&pools, name).unwrap_or_else(|at| at);
            pools.insert(at, entry);
        }
        #[cfg(not(feature = "crowds"))]
        pools.push(entry);
        pool
    }

    #[cfg(feature = "doctor")]
    async fn examine<R: Runtime>(&self, _: &R, _: &Name, _: Micros) -> Result<Vec<Finding>, StoreError> {
        let message = "this process's memory, which is shared with no other process and ends with this one: give a Redis to share";
        Ok(vec![Finding::new(Check::Store, Verdict::Ok, message)])
    }
}

/// By name; without `crowds` there are few.
fn place_of(pools: &Pools, name: &PoolName) -> Result<usize, usize> {
    if !cfg!(feature = "crowds") {
        return pools.iter().position(|(known, _)| known == name).ok_or(0);
    }
    pools.binary_search_by(|(known, _)| known.cmp(name))
}

impl MemoryPool {
    /// Whether it knows anything that one made anew would not.
    #[cfg(feature = "crowds")]
    fn remembers(&self) -> bool {
        unpoisoned(&self.machine).remembers(self.moment())
    }

    fn moment(&self) -> Moment<'static> {
        Moment { wall: (self.clock)(), incarnation: "memory", up_since: 0 }
    }

    fn tell(&self, calls: &Calls) {
        if !calls.is_empty() {
            self.tell_all(calls);
        }
    }

    /// Apart from [`Self::tell`], which mostly has nothing to tell.
    #[cold]
    fn tell_all(&self, calls: &Calls) {
        let listeners: Vec<_> = unpoisoned(&self.listeners).iter().filter_map(Weak::upgrade).collect();
        for listener in listeners {
            listener(Some(calls));
        }
    }
}

impl StorePool for Arc<MemoryPool> {
    fn answers_at_once(&self) -> bool {
        true
    }

    fn perform_now(&self, seed: u32, request: &Request) -> Option<(Micros, Reply)> {
        let (now, reply, calls) = {
            let mut machine = unpoisoned(&self.machine);
            // The time is read under the lock, so that it is in the order of the requests.
            let done = machine.apply_one(self.moment(), seed, request);
            self.ever_added.store(machine.ever_added(), Relaxed);
            done
        };
        self.tell(&calls);
        Some((now, reply))
    }

    fn release_now(&self, lease: &LeaseRef, outcome: Outcome, cooldown: Micros) -> Option<Reply> {
        let (reply, calls) = {
            let mut machine = unpoisoned(&self.machine);
            machine.release_one(self.moment(), lease, outcome, cooldown)
        };
        self.tell(&calls);
        Some(reply)
    }

    fn clock(&self) -> Option<Micros> {
        Some((self.clock)())
    }

    fn ever_added(&self) -> Option<usize> {
        Some(self.ever_added.load(Relaxed))
    }

    async fn perform(&self, envelope: &Envelope) -> Result<Answer, StoreError> {
        let answer = {
            let mut machine = unpoisoned(&self.machine);
            let answer = machine.apply(self.moment(), envelope);
            self.ever_added.store(machine.ever_added(), Relaxed);
            answer
        };
        if let Answer::Performed(performed) = &answer {
            self.tell(&performed.calls);
        }
        Ok(answer)
    }

    async fn watch(&self, listener: Listener) -> Result<Option<Watch>, StoreError> {
        let kept = Arc::new(listener);
        let mut listeners = unpoisoned(&self.listeners);
        listeners.retain(|listener| listener.strong_count() > 0);
        listeners.push(Arc::downgrade(&kept));
        Ok(Some(Watch::new(kept)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

    use super::*;
    use crate::SECOND;
    use crate::id::Name;
    use crate::store::suite;

    #[tokio::test]
    async fn it_conforms() {
        // Time passes with every look at the clock, so that nothing has to wait for it.
        let time = AtomicU64::new(1_700_000_000 * SECOND);
        let store = MemoryStore::new(Arc::new(move || time.fetch_add(1, Ordering::SeqCst)));
        let names = AtomicU32::new(0);
        let name = || {
            let name = |text: &str| Name::new(text).expect("a name");
            let pool = names.fetch_add(1, Ordering::SeqCst).to_string();
            PoolName { namespace: name("suite"), pool: name(&pool) }
        };
        suite::conforms(store, name).await;
    }

    // Each was kept for ever, and found by a walk through all: a service with a wallet for each customer grew with them.
    #[cfg(feature = "crowds")]
    #[test]
    fn pools_that_nobody_has_and_that_know_nothing_are_forgotten() {
        use crate::id::SlotId;
        use crate::slots::{Choice, Claim, SlotSpec};

        let time = Arc::new(AtomicU64::new(1_700_000_000 * SECOND));
        let clock = time.clone();
        let store = MemoryStore::new(Arc::new(move || clock.fetch_add(1, Ordering::SeqCst)));
        let name = |pool: &str| Name::new(pool).expect("a name");
        let of = |pool: &str| store.pool(&PoolName { namespace: name("test"), pool: name(pool) });
        let slot = |id: &str| SlotId::new(id).expect("an id");
        let define = |slots: Vec<SlotSpec>| Request::Define { slots, longest: 60 * SECOND, doubt_rest: 0 };
        let perform = |pool: &Arc<MemoryPool>, request| pool.perform_now(0, &request).expect("at once").1;
        let fence = |holder: u128| {
            let locks = of("locks");
            perform(&locks, define(Vec::new()));
            let claim = Claim::new(Choice::Named { slots: vec![slot("a")] }, holder, 60 * SECOND);
            let Reply::Granted(grants) = perform(&locks, Request::Claim(claim)) else { panic!() };
            grants[0].fence
        };
        // One has a slot, one a lock that is held, and one is had by somebody.
        perform(&of("slots"), define(vec![SlotSpec { slot: slot("a"), weight: 1 }]));
        let first = fence(1);
        let had = of("had");
        let many = |from: u32| (from..from + 10_000).for_each(|number| drop(of(&number.to_string())));
        many(0);
        assert!(matches!(perform(&of("locks"), Request::List), Reply::Listed(held) if held == [slot("a")]));
        assert!(store.pools() < 20, "{}", store.pools());
        let is_same = |pool: Arc<MemoryPool>| Arc::ptr_eq(&pool, &had);
        assert!(is_same(of("had")));
        let inspected = perform(&of("slots"), Request::List);
        assert!(matches!(inspected, Reply::Listed(ids) if ids == [slot("a")]));
        // The next holder's fence is larger, whether or not the lock was forgotten.
        time.fetch_add(61 * SECOND, Ordering::SeqCst);
        many(10_000);
        assert!(fence(2) > first);
    }
}
