//! Named locks: leases of names that nobody has to define.

use std::fmt;
use std::sync::Arc;

use futures_util::future::select_all;

use super::pool::PoolCore;
use super::{AcquireOptions, Keepalive, Lease, PoolOptions, ReleaseOptions, Runtime};
use crate::error::{Error, Result};
use crate::id::SlotId;
use crate::slots::MAX_PER_REQUEST;
use crate::store::Store;
use crate::{Code, MILLISECOND, Micros, SECOND};

/// The longest time to live of a lock, and the default: what keeps a lock longer is that it is renewed.
pub const LOCK_TTL: Micros = 60 * SECOND;

/// One name, or several that are held together or not at all. Nothing of them stays behind in the store.
pub struct Lock<S: Store, R: Runtime> {
    core: Arc<PoolCore<S, R>>,
    names: Vec<SlotId>,
    options: LockOptions,
}

/// How a lock is held. The defaults are those of a lock that lasts as long as its holder does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockOptions {
    /// Time to live without a renewal: 1 ms to [`LOCK_TTL`], which is the default.
    pub ttl: Micros,
    /// Whether the lock is renewed while it is held: yes, at a third of its time to live.
    pub keepalive: Keepalive,
    /// How long an acquisition waits: 5 s by default, 0 for one attempt.
    pub timeout: Micros,
}

impl Default for LockOptions {
    fn default() -> Self {
        LockOptions { ttl: LOCK_TTL, keepalive: Keepalive::Third, timeout: 5 * SECOND }
    }
}

/// A lock that is held. Dropped, it is given back.
pub struct Locked<S: Store, R: Runtime> {
    leases: Vec<Lease<S, R>>,
}

/// Why [`Lock::run`] gives no plain value.
#[derive(Debug)]
pub enum RunError<T> {
    /// The lock was not had, and the body did not run.
    NotAcquired(Error),
    /// The body ran to its end, and the lock did not last so long: others may have run beside it.
    Lost {
        /// The error `lost`.
        error: Error,
        /// What the body gave.
        output: T,
    },
}

/// What the pool of a handle's locks is: every name is made by whoever asks for it.
pub(super) fn lock_pool() -> PoolOptions {
    let LockOptions { ttl, keepalive, timeout } = LockOptions::default();
    PoolOptions { ttl, keepalive, timeout, max_hold: 0, ..PoolOptions::default() }
}

impl<S: Store, R: Runtime> Lock<S, R> {
    pub(super) fn new(core: Arc<PoolCore<S, R>>, names: &[&str], options: LockOptions) -> Result<Self> {
        if names.is_empty() || names.len() > MAX_PER_REQUEST {
            return Err(Error::invalid(
                "names",
                format_args!("{} names; 1 to {MAX_PER_REQUEST} are allowed", names.len()),
            ));
        }
        let mut distinct: Vec<SlotId> = Vec::with_capacity(names.len());
        for (name, at) in names.iter().zip(0..) {
            let name = SlotId::name(name).map_err(|error| error.within(&format!("names[{at}]")))?;
            if distinct.contains(&name) {
                return Err(Error::invalid(
                    format!("names[{at}]"),
                    format_args!("\"{name}\" is there twice"),
                ));
            }
            distinct.push(name);
        }
        if !(MILLISECOND..=LOCK_TTL).contains(&options.ttl) {
            return Err(Error::invalid(
                "ttl",
                "is out of range; 1 ms to a minute, and keepalive for longer locks",
            ));
        }
        core.interval(Some(options.keepalive), options.ttl)?;
        Ok(Lock { core, names: distinct, options })
    }

    /// Locks all of its names, waiting until the timeout.
    ///
    /// # Errors
    /// `timed_out`, or `exhausted` with a timeout of 0; `store_unavailable` with the cause; `cancelled` if the handle
    /// was closed.
    pub async fn acquire(&self) -> Result<Locked<S, R>> {
        let LockOptions { ttl, keepalive, timeout } = self.options.clone();
        let options = AcquireOptions {
            timeout: Some(timeout),
            ttl: Some(ttl),
            keepalive: Some(keepalive),
            count: Some(self.names.len() as u32),
            slots: Some(self.names.clone()),
            strategy: None,
            priority: None,
        };
        let leases = self.core.acquire_counted(options).await?;
        Ok(Locked { leases })
    }

    /// Runs `body` under the lock and gives what it gives. The body sees the lock, to ask whether it is still held.
    ///
    /// # Errors
    /// [`RunError`]: the lock was not had, or did not last.
    pub async fn run<T>(&self, body: impl AsyncFnOnce(&Locked<S, R>) -> T) -> Result<T, RunError<T>> {
        let locked = self.acquire().await.map_err(RunError::NotAcquired)?;
        let output = body(&locked).await;
        let lost = if locked.is_held() { None } else { locked.lost().await };
        match (lost, locked.release().await) {
            (Some(error), _) => Err(RunError::Lost { error, output }),
            (None, Err(error)) if error.code() == Code::Lost => Err(RunError::Lost { error, output }),
            // It was held to the end, whether or not the store could be told of that.
            _ => Ok(output),
        }
    }
}

impl<S: Store, R: Runtime> Locked<S, R> {
    /// Larger than that of any lock before: what a resource checks to refuse a late holder.
    pub fn fence(&self) -> u64 {
        self.leases.iter().map(Lease::fence).max().unwrap_or_default()
    }

    /// How long the lock can still be relied on; 0 when it cannot.
    pub fn remaining(&self) -> Micros {
        self.leases.iter().map(Lease::remaining).min().unwrap_or_default()
    }

    /// Whether the lock can still be relied on.
    pub fn is_held(&self) -> bool {
        self.remaining() > 0
    }

    /// Ends when one of its names can no longer be relied on, with the reason; with nothing if it was given back in
    /// time. See [`Lease::lost`].
    pub fn lost(&self) -> impl Future<Output = Option<Error>> + use<S, R> {
        let ends: Vec<_> = self.leases.iter().map(|lease| Box::pin(lease.lost())).collect();
        async move { select_all(ends).await.0 }
    }

    /// Gives it back. What a holder does not release is given back when it is dropped.
    ///
    /// # Errors
    /// `lost` if it had ended before; `store_unavailable` if the store did not answer in time, which goes on trying.
    pub async fn release(self) -> Result<()> {
        let releases = self.leases.iter().map(|lease| Box::pin(lease.release(ReleaseOptions::default())));
        let outcomes = futures_util::future::join_all(releases).await;
        // That a part of it was lost outweighs that the store could not be told of another.
        match outcomes.into_iter().filter_map(Result::err).max_by_key(|error| error.code() == Code::Lost) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}

impl<T: fmt::Debug> fmt::Display for RunError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::NotAcquired(error) | RunError::Lost { error, .. } => error.fmt(f),
        }
    }
}

impl<T: fmt::Debug> std::error::Error for RunError<T> {}

impl<S: Store, R: Runtime> fmt::Debug for Lock<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lock {{ names: {:?} }}", self.names)
    }
}

impl<S: Store, R: Runtime> fmt::Debug for Locked<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Locked {{ leases: {:?} }}", self.leases)
    }
}
