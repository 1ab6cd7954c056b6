//! Named locks: leases of names that nobody has to define.

pub(super) mod holding;
pub(super) mod locked;
pub(super) mod quorum;
mod state;
#[cfg(all(test, feature = "redis"))]
mod tests;

pub use self::state::LockState;
pub(super) use self::state::break_at;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use self::holding::Electorate;
use self::locked::{Holding, Locked};
use super::options::{check_factor, check_rest};
use super::pool::PoolCore;
use super::{AcquireOptions, LockOptions, PoolOptions, Unit};
use crate::error::{Error, Result};
use crate::handshake::Contention;
use crate::id::SlotId;
use crate::poison::unpoisoned;
use crate::runtime::Runtime;
use crate::store::Store;
use crate::value::Value;
use crate::{MILLISECOND, Micros};

/// One name, or several that are held together or not at all. Nothing of them stays behind in the store. Clones are the same
/// lock.
pub struct Lock<S: Store, R: Runtime>(Arc<LockCore<S, R>>);

/// What the clones of a lock share.
struct LockCore<S: Store, R: Runtime> {
    pool: Arc<PoolCore<S, R>>,
    /// Those who must grant it, if that is not the one server.
    electorate: Option<Arc<dyn Electorate<S, R>>>,
    names: Arc<[SlotId]>,
    options: LockOptions,
    /// What was had last, for as long as anybody has it, if it may be joined.
    last: Mutex<Weak<Holding<S, R>>>,
}

/// Why [`Lock::run`], or [`Acquire::run`](super::Acquire::run) of a pool, gives no plain value.
#[derive(Debug)]
pub enum RunError<T> {
    /// The lock or the slot was not had, and the body did not run.
    NotAcquired(Error),
    /// The body ran to its end, and what it ran under did not last so long: others may have run beside it.
    Lost {
        /// The error `lost`.
        error: Error,
        /// What the body gave.
        output: T,
    },
}

/// What the pool of a handle's locks is: every name is made by whoever asks for it, and none is held for longer
/// than `ttl` without a renewal.
pub(super) fn lock_pool(ttl: Micros, ageing: Micros) -> PoolOptions {
    let LockOptions { keepalive, timeout, .. } = LockOptions::default();
    PoolOptions { ttl, keepalive, timeout, max_hold: Some(0), ageing, ..PoolOptions::default() }
}

impl<S: Store, R: Runtime> Lock<S, R> {
    pub(super) fn new(
        pool: Arc<PoolCore<S, R>>,
        electorate: Option<Arc<dyn Electorate<S, R>>>,
        names: Vec<SlotId>,
        options: LockOptions,
    ) -> Result<Self> {
        let names = names.into();
        let lock = Lock(Arc::new(LockCore { pool, electorate, names, options, last: Mutex::default() }));
        lock.check(&lock.0.options)?;
        Ok(lock)
    }

    /// Locks all of its names, waiting until the timeout.
    ///
    /// # Errors
    /// `timed_out`, or `exhausted` with a timeout of 0; `store_unavailable` with the cause; `cancelled` if the handle
    /// was closed.
    pub async fn acquire(&self) -> Result<Locked<S, R>> {
        self.acquire_with(self.0.options.clone()).await
    }

    /// The same by other options than the lock's own.
    ///
    /// # Errors
    /// As [`Self::acquire`]; `invalid_argument` naming the option.
    pub async fn acquire_with(&self, options: LockOptions) -> Result<Locked<S, R>> {
        self.check(&options)?;
        let reentrant = options.reentrant;
        if reentrant && let Some(holding) = self.last().upgrade().filter(|holding| holding.remaining() > 0) {
            return Ok(self.locked(holding));
        }
        let holding = Arc::new(match &self.0.electorate {
            None => Holding::one(self.0.pool.acquire_counted(wanted(&self.0.names, options)).await?),
            Some(electorate) => Holding::Several(electorate.claim(self.0.names.clone(), options).await?),
        });
        if reentrant {
            *self.last() = Arc::downgrade(&holding);
        }
        Ok(self.locked(holding))
    }

    /// The same by options as a language gives them, over the lock's own.
    ///
    /// # Errors
    /// As [`Self::acquire_with`].
    #[doc(hidden)]
    pub async fn acquire_by(&self, options: &Value, unit: Unit) -> Result<Locked<S, R>> {
        self.acquire_with(self.0.options.clone().read(options, unit)?).await
    }

    /// The same for a body that the language itself runs: nothing if it is to run without the lock, because `if` is
    /// false or `unless` is true. At its end the lock is to be given back by [`Locked::conclude`].
    ///
    /// # Errors
    /// As [`Self::acquire_with`].
    #[doc(hidden)]
    pub async fn enter(&self, options: &Value, unit: Unit) -> Result<Option<Locked<S, R>>> {
        let (options, wanted) = self.0.options.clone().read_run(options, unit)?;
        self.check(&options)?;
        if wanted { self.acquire_with(options).await.map(Some) } else { Ok(None) }
    }

    /// Runs `body` under the lock and gives what it gives. The body sees the lock, to ask whether it is still held.
    ///
    /// # Errors
    /// [`RunError`]: the lock was not had, or did not last.
    pub async fn run<T>(&self, body: impl AsyncFnOnce(&Locked<S, R>) -> T) -> Result<T, RunError<T>> {
        let locked = self.acquire().await.map_err(RunError::NotAcquired)?;
        let output = body(&locked).await;
        RunError::lasted(locked.conclude().await, output)
    }

    /// The longest time that holders of the handle's locks took to yield of late to those who steal; 0 if nobody stole.
    /// What [`Self::recommended_ttl`] goes by.
    pub fn handshake(&self) -> Micros {
        self.0.pool.yields.longest()
    }

    /// The time to live, in microseconds, that outlasts a chain of thieves with the given confidence: as
    /// [`Handshakes::recommended_ttl`](crate::handshake::Handshakes::recommended_ttl), by the longest [`Self::handshake`], and the
    /// shortest time in which the store answered of late. Nothing if nobody stole.
    ///
    /// # Errors
    /// `invalid_argument` naming the field that is out of its range, also if nobody stole.
    pub fn recommended_ttl(&self, contention: Contention) -> Result<Option<Micros>> {
        self.0.pool.recommended_ttl(contention)
    }

    /// The same of options, in the unit of the language.
    ///
    /// # Errors
    /// As [`Self::recommended_ttl`].
    #[doc(hidden)]
    pub fn recommended_ttl_by(&self, options: &Value, unit: Unit) -> Result<Option<f64>> {
        self.0.pool.recommended_ttl_by(options, unit)
    }

    fn check(&self, options: &LockOptions) -> Result<()> {
        match &self.0.electorate {
            None => check_on(&self.0.pool, options),
            Some(electorate) => electorate.check(options),
        }
    }

    fn locked(&self, holding: Arc<Holding<S, R>>) -> Locked<S, R> {
        Locked::new(self.0.pool.runtime.clone(), self.0.names.clone(), holding)
    }

    fn last(&self) -> MutexGuard<'_, Weak<Holding<S, R>>> {
        unpoisoned(&self.0.last)
    }
}

/// What an acquisition of a lock wants of its pool.
pub(super) fn wanted(names: &[SlotId], options: LockOptions) -> AcquireOptions {
    let LockOptions { ttl, keepalive, max_hold, timeout, priority, steal, reentrant: _ } = options;
    AcquireOptions {
        timeout: Some(timeout),
        ttl: Some(ttl),
        keepalive: Some(keepalive),
        count: Some(names.len() as u32),
        slots: Some(names.to_vec()),
        strategy: None,
        priority: Some(priority),
        steal,
        max_hold,
    }
}

/// Whether one server can grant locks by these options.
pub(super) fn check_on<S: Store, R: Runtime>(core: &PoolCore<S, R>, options: &LockOptions) -> Result<()> {
    if !(MILLISECOND..=core.options.ttl).contains(&options.ttl) {
        let hint = if cfg!(feature = "crowds") {
            "is out of range; 1 ms to the handle's lock_ttl, and keepalive for longer locks"
        } else {
            "must be 1 ms to the handle's lock_ttl"
        };
        return Err(Error::invalid("ttl", hint));
    }
    check_rest("timeout", options.timeout)?;
    if cfg!(not(target_family = "wasm")) {
        check_rest("max_hold", options.max_hold)?;
        check_factor(options.steal)?;
    }
    core.interval(Some(options.keepalive), options.ttl).map(drop)
}

impl<T> RunError<T> {
    /// What the body gave, if what it ran under lasted as long.
    pub(super) fn lasted(outcome: Result<()>, output: T) -> Result<T, Self> {
        match outcome {
            Ok(()) => Ok(output),
            Err(error) => Err(RunError::Lost { error, output }),
        }
    }

    /// What went wrong with the lock or the lease.
    pub fn error(&self) -> &Error {
        match self {
            RunError::NotAcquired(error) | RunError::Lost { error, .. } => error,
        }
    }
}

/// Without what the body gave.
impl<T> From<RunError<T>> for Error {
    fn from(failure: RunError<T>) -> Self {
        match failure {
            RunError::NotAcquired(error) | RunError::Lost { error, .. } => error,
        }
    }
}

impl<T> fmt::Display for RunError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error().fmt(f)
    }
}

impl<T: fmt::Debug> std::error::Error for RunError<T> {}

impl<S: Store, R: Runtime> Clone for Lock<S, R> {
    fn clone(&self) -> Self {
        Lock(self.0.clone())
    }
}

impl<S: Store, R: Runtime> fmt::Debug for Lock<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lock {{ names: {:?} }}", self.0.names)
    }
}
