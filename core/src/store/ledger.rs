//! Where limits live: a store's side of [`crate::limits`].

use std::future::Future;
use std::sync::{Arc, Mutex};

use super::{EitherStore, MemoryStore, RedisStore, Store, StoreError, redis};
use crate::id::PoolName;
use crate::limits::{Act, Answer, Charge, Charged, Envelope, Ledger, Moment, Reply, Request, Verdict};
use crate::poison::unpoisoned;
use crate::runtime::{MaybeSend, MaybeSync, StoreClock};

/// A store that keeps limits too.
pub trait LimitStore: Store {
    /// Limits of this store that can be charged as one.
    type Ledger: StoreLedger;

    /// The limits of this scope.
    fn ledger(&self, scope: &PoolName) -> Self::Ledger;
}

/// Limits of a store that can be charged as one.
pub trait StoreLedger: MaybeSend + MaybeSync + 'static {
    /// Performs one request at once, if this store can do so without waiting and without failing.
    fn charge_now(&self, request: &Request) -> Option<Reply>;

    /// The same of charges that are borrowed, for acts that are judged; nothing for others. In memory nothing is made for
    /// it that has to be freed.
    fn judge_now(&self, act: &Act, charges: &[Charged<'_>]) -> Option<Verdict> {
        match self.charge_now(&Request { act: *act, charges: charges.iter().map(Charge::from).collect() })? {
            Reply::Judged(verdict) => Some(verdict),
            Reply::Settled(_) => None,
        }
    }

    /// Performs an envelope.
    fn charge(&self, envelope: &Envelope) -> impl Future<Output = Result<Answer, StoreError>> + MaybeSend;
}

/// Limits in memory.
pub struct MemoryLedger {
    machine: Mutex<Ledger>,
    clock: StoreClock,
}

impl MemoryLedger {
    pub(super) fn new(clock: StoreClock) -> Self {
        MemoryLedger { machine: Mutex::default(), clock }
    }

    /// Whether anything is not as if never done.
    pub(super) fn remembers(&self) -> bool {
        self.with(|machine, wall| machine.remembers(wall))
    }

    /// The time is read under the lock, so that it is in the order of the requests. A panic under the lock leaves
    /// something charged at worst that was not answered.
    fn with<T>(&self, work: impl FnOnce(&mut Ledger, crate::Micros) -> T) -> T {
        let mut machine = unpoisoned(&self.machine);
        work(&mut machine, (self.clock)())
    }
}

impl StoreLedger for Arc<MemoryLedger> {
    fn charge_now(&self, request: &Request) -> Option<Reply> {
        Some(self.with(|machine, wall| machine.apply_one(wall, request)))
    }

    fn judge_now(&self, act: &Act, charges: &[Charged<'_>]) -> Option<Verdict> {
        self.with(|machine, wall| machine.judge(wall, act, charges))
    }

    async fn charge(&self, envelope: &Envelope) -> Result<Answer, StoreError> {
        Ok(self.with(|machine, wall| machine.apply(Moment { wall, incarnation: "" }, envelope)))
    }
}

impl LimitStore for MemoryStore {
    type Ledger = Arc<MemoryLedger>;

    fn ledger(&self, scope: &PoolName) -> Self::Ledger {
        self.ledger_of(scope)
    }
}

impl<T: redis::Transport> LimitStore for RedisStore<T> {
    type Ledger = redis::RedisLedger<T>;

    fn ledger(&self, scope: &PoolName) -> Self::Ledger {
        redis::RedisLedger::new(self.clone(), scope)
    }
}

/// Limits of one of the two stores.
pub enum EitherLedger<T> {
    /// In this process's memory.
    Memory(Arc<MemoryLedger>),
    /// In Redis.
    Redis(redis::RedisLedger<T>),
}

impl<T: redis::Transport> LimitStore for EitherStore<T> {
    type Ledger = EitherLedger<T>;

    fn ledger(&self, scope: &PoolName) -> Self::Ledger {
        match self {
            EitherStore::Memory(store) => EitherLedger::Memory(store.ledger(scope)),
            EitherStore::Redis(store) => EitherLedger::Redis(store.ledger(scope)),
        }
    }
}

impl<T: redis::Transport> StoreLedger for EitherLedger<T> {
    fn charge_now(&self, request: &Request) -> Option<Reply> {
        match self {
            EitherLedger::Memory(ledger) => ledger.charge_now(request),
            EitherLedger::Redis(ledger) => ledger.charge_now(request),
        }
    }

    fn judge_now(&self, act: &Act, charges: &[Charged<'_>]) -> Option<Verdict> {
        match self {
            EitherLedger::Memory(ledger) => ledger.judge_now(act, charges),
            EitherLedger::Redis(ledger) => ledger.judge_now(act, charges),
        }
    }

    async fn charge(&self, envelope: &Envelope) -> Result<Answer, StoreError> {
        match self {
            EitherLedger::Memory(ledger) => ledger.charge(envelope).await,
            EitherLedger::Redis(ledger) => ledger.charge(envelope).await,
        }
    }
}
