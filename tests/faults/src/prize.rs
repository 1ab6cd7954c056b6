//! What callers contend for, and what they win.

use leasehold::client::{AcquireOptions, LockOptions, PoolOptions};
use leasehold::error::Result;
use leasehold::{Micros, NativeLock, NativeLocked, SECOND};

use crate::{Handle, Lease, Pool, opened, options, quorum_with};

/// The only slot of a pool, or a name.
#[derive(Clone)]
pub enum Prize {
    /// Of the pool `relayers`.
    Slot(Pool),
    /// A lock.
    Name(NativeLock),
}

/// A prize that is held. Dropped, it is given back.
pub enum Won {
    /// The slot.
    Slot(Lease),
    /// The lock.
    Name(NativeLocked),
}

/// How long callers wait for a prize.
const PATIENCE: Micros = 90 * SECOND;

impl Prize {
    /// The slot, as somebody sees it who has a handle of his own; a step of priority outweighs no wait.
    pub async fn slot(handle: &Handle) -> Self {
        Self::ageing(handle, 0).await
    }

    /// The slot, where `ageing` of waiting outweighs a step of priority.
    ///
    /// # Panics
    /// If the pool does not open.
    pub async fn ageing(handle: &Handle, ageing: Micros) -> Self {
        let options = PoolOptions { ttl: 2 * SECOND, timeout: PATIENCE, ageing, ..options(&["a"]) };
        Prize::Slot(opened(handle, options, None).await)
    }

    /// A name.
    ///
    /// # Panics
    /// If it is none.
    pub fn name(handle: &Handle, name: &str) -> Self {
        let options = LockOptions { ttl: 2 * SECOND, timeout: PATIENCE, ..LockOptions::default() };
        Prize::Name(handle.lock_with([name], options).expect("a good name"))
    }

    /// What a word means: `slot`, or a name.
    pub async fn of(word: &str, handle: &Handle) -> Self {
        if word == "slot" { Self::slot(handle).await } else { Self::name(handle, word) }
    }

    /// A name that a majority of the servers at these addresses must grant.
    ///
    /// # Panics
    /// If it is none, or an address is wrong.
    pub fn voted(urls: &[&str], name: &str) -> Self {
        let options = LockOptions { ttl: 2 * SECOND, timeout: PATIENCE, ..LockOptions::default() };
        Prize::Name(quorum_with(urls, 300.0).lock_with([name], options).expect("a good name"))
    }

    /// Waits until it is won.
    ///
    /// # Errors
    /// As an acquisition has them.
    pub async fn win(&self) -> Result<Won> {
        self.win_as(0).await
    }

    /// The same with a priority, which names do not have.
    ///
    /// # Errors
    /// As an acquisition has them.
    pub async fn win_as(&self, priority: i16) -> Result<Won> {
        match self {
            Prize::Slot(pool) => {
                let options = AcquireOptions { priority: Some(priority), ..AcquireOptions::default() };
                Ok(Won::Slot(pool.acquire_with(options).await?))
            }
            Prize::Name(lock) => Ok(Won::Name(lock.acquire().await?)),
        }
    }
}

impl Won {
    /// Larger than that of whoever had it before.
    pub fn fence(&self) -> u64 {
        match self {
            Won::Slot(lease) => lease.fence(),
            Won::Name(locked) => locked.fence(),
        }
    }

    /// Whether it can still be relied on.
    pub fn is_held(&self) -> bool {
        match self {
            Won::Slot(lease) => lease.is_held(),
            Won::Name(locked) => locked.is_held(),
        }
    }

    /// Gives it back.
    ///
    /// # Errors
    /// As a release has them.
    pub async fn give_back(self) -> Result<()> {
        match self {
            Won::Slot(lease) => {
                lease.unused().expect("held");
                lease.release().await
            }
            Won::Name(locked) => locked.release().await,
        }
    }
}
