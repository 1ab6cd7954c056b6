//! Stores: where pools live. A store performs an envelope atomically and can tell of slots that become
//! ready; it holds no rule of its own.

pub mod either;
#[cfg(feature = "doctor")]
pub mod finding;
#[cfg(feature = "limits")]
pub mod ledger;
pub mod memory;
pub mod redis;
#[cfg(any(test, feature = "suite"))]
pub mod suite;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
#[cfg(not(target_family = "wasm"))]
use std::sync::atomic::{AtomicBool, Ordering::Acquire};

pub use either::EitherStore;
#[cfg(feature = "doctor")]
pub use finding::Finding;
#[cfg(feature = "limits")]
pub use ledger::{LimitStore, StoreLedger};
pub use memory::MemoryStore;
pub use redis::RedisStore;

#[cfg(feature = "doctor")]
use self::finding::{Check, Verdict};
use crate::Micros;
#[cfg(feature = "doctor")]
use crate::id::Name;
use crate::id::PoolName;
use crate::nonce::Outcome;
#[cfg(feature = "doctor")]
use crate::runtime::Runtime;
use crate::runtime::{MaybeSend, MaybeSync};
use crate::slots::{Answer, Calls, Envelope, LeaseRef, Reply, Request};

/// A store of pools.
pub trait Store: Clone + MaybeSend + MaybeSync + 'static {
    /// A pool of this store.
    type Pool: StorePool;

    /// The pool of this name, which need not be defined yet.
    fn pool(&self, name: &PoolName) -> Self::Pool;

    /// No more pools are opened, and no more slots acquired: what is kept open for that is closed.
    fn close(&self) {}

    /// Looks whether it is fit to keep what this namespace has, and says what it finds, in an order that is always the same. It
    /// waits for each answer `patience` microseconds at most.
    #[cfg(feature = "doctor")]
    fn examine<R: Runtime>(
        &self,
        runtime: &R,
        namespace: &Name,
        patience: Micros,
    ) -> impl Future<Output = Result<Vec<Finding>, StoreError>> + MaybeSend {
        let _ = (runtime, namespace, patience);
        let message = "a store of the program's own, which says nothing of itself";
        async move { Ok(vec![Finding::new(Check::Store, Verdict::Unknown, message)]) }
    }
}

/// One pool of a store.
pub trait StorePool: MaybeSend + MaybeSync + 'static {
    /// Whether [`Self::perform_now`] performs.
    fn answers_at_once(&self) -> bool;

    /// Performs one request at once and returns the store's time with the reply, if this store can do so
    /// without waiting and without failing.
    fn perform_now(&self, seed: u32, request: &Request) -> Option<(Micros, Reply)>;

    /// Gives a leased slot back at once, as [`Self::perform_now`] does.
    fn release_now(&self, lease: &LeaseRef, outcome: Outcome, cooldown: Micros) -> Option<Reply> {
        let request = Request::Release { lease: lease.clone(), outcome, cooldown };
        self.perform_now(0, &request).map(|(_, reply)| reply)
    }

    /// The store's time, where [`Self::answers_at_once`]: leases are then counted on no other clock.
    fn clock(&self) -> Option<Micros> {
        None
    }

    /// How long after another server took the place of one that may still be asked to grant, in microseconds: so much longer
    /// than its own leases a pool waits that may have lost some.
    fn lag(&self) -> Micros {
        0
    }

    /// How many slots were ever added to the pool, if this store can say so at once. Read after a grant, it is
    /// never below what it was at the grant.
    fn ever_added(&self) -> Option<usize> {
        None
    }

    /// Performs an envelope.
    fn perform(&self, envelope: &Envelope) -> impl Future<Output = Result<Answer, StoreError>> + MaybeSend;

    /// Tells the listener whom envelopes call, from the future's end until the watch is dropped. `None` where the
    /// store cannot.
    fn watch(
        &self,
        listener: Listener,
    ) -> impl Future<Output = Result<Option<Watch>, StoreError>> + MaybeSend;
}

/// Hears who is called, or nothing where a message may have been lost: then everybody asks again. Must not wait.
pub type Listener = Arc<dyn Fn(Option<&Calls>) + Send + Sync>;

/// Ends a watch when it is dropped.
pub struct Watch {
    #[allow(dead_code, reason = "kept for its drop")]
    ending: Box<dyn Ending>,
    /// Whether the listener hears, where it may cease to meanwhile. A browser's module has no room for it.
    #[cfg(not(target_family = "wasm"))]
    hears: Option<Arc<AtomicBool>>,
}

impl Watch {
    /// A watch that ends with `ending`.
    pub fn new(ending: impl MaybeSend + MaybeSync + 'static) -> Self {
        Watch {
            ending: Box::new(ending),
            #[cfg(not(target_family = "wasm"))]
            hears: None,
        }
    }

    /// One whose listener hears nothing while this says so. It is told as that begins, and as it ends.
    #[cfg(not(target_family = "wasm"))]
    #[allow(dead_code, reason = "not every store is one of them")]
    pub(crate) fn while_it_hears(self, hears: Arc<AtomicBool>) -> Self {
        Watch { hears: Some(hears), ..self }
    }

    pub(crate) fn hears(&self) -> bool {
        #[cfg(not(target_family = "wasm"))]
        let hears = self.hears.as_ref().is_none_or(|hears| hears.load(Acquire));
        #[cfg(target_family = "wasm")]
        let hears = true;
        hears
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Watch")
    }
}

trait Ending: MaybeSend + MaybeSync {}
impl<T: MaybeSend + MaybeSync> Ending for T {}

/// A store that could not perform an envelope. Never read as "free" nor as "held by another" (rule S7).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreError {
    /// Whether the envelope may have been performed all the same.
    pub certainty: Certainty,
    /// What the store or the connection said; never holds a password.
    pub cause: String,
}

/// What is known of an envelope that was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certainty {
    /// It was not performed.
    NotPerformed,
    /// It may have been begun, or done if nobody can read the answer, and sending it again cannot help (rights that lack, a key that
    /// is somebody else's).
    Refused,
    /// It may have been, or may still be: sending the same envelope again tells.
    Unknown,
    /// It was not performed, and sending it again cannot help until somebody mends the cause (a login, a schema that is
    /// newer, a policy that evicts). A client without `crowds` has no more than [`Self::Refused`].
    #[cfg(feature = "crowds")]
    Barred,
}

impl Certainty {
    /// What is barred.
    #[cfg(feature = "crowds")]
    pub(crate) const BARRED: Certainty = Certainty::Barred;
    /// What is barred.
    #[cfg(not(feature = "crowds"))]
    pub(crate) const BARRED: Certainty = Certainty::Refused;

    /// Whether sending it again cannot help.
    #[inline(always)] // Of the small module, which is judged by its size, a call takes more than this.
    pub(crate) fn is_hopeless(self) -> bool {
        self == Certainty::Refused || self == Certainty::BARRED
    }

    /// Whether it was surely not performed.
    #[inline(always)]
    pub(crate) fn is_clean(self) -> bool {
        // Without `crowds` what is barred is what is refused.
        self == Certainty::NotPerformed || self == Certainty::BARRED && self != Certainty::Refused
    }
}

impl StoreError {
    /// An error with its cause.
    pub fn new(certainty: Certainty, cause: impl Into<String>) -> Self {
        StoreError { certainty, cause: cause.into() }
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.cause)
    }
}

impl std::error::Error for StoreError {}
