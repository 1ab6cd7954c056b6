//! The words of a lock.

use std::time::Duration;

use super::micros;
use crate::client::options::id_list;
use crate::client::{Keepalive, Lock, LockOptions, Locked, RunError};
use crate::error::Result;
use crate::runtime::{MaybeSync, Runtime};
use crate::store::Store;
use crate::value::Value;

/// A lock that is opened by [`Self::open`], or held at once. What its words mean is said at [`LockOptions`].
#[must_use = "nothing is locked yet"]
pub struct LockBuilder<'a, S: Store, R: Runtime> {
    owner: &'a dyn LockOwner<S, R>,
    names: Value,
    options: LockOptions,
}

/// Who opens locks.
pub trait LockOwner<S: Store, R: Runtime>: MaybeSync {
    /// The lock of these names, as a language gives them.
    fn lock_of(&self, names: &Value, options: LockOptions) -> Result<Lock<S, R>>;
}

/// The name of a lock, or the names of one that has several.
pub trait LockNames {
    /// As a language would give them.
    fn to_value(self) -> Value;
}

impl LockNames for &str {
    fn to_value(self) -> Value {
        self.into()
    }
}

impl LockNames for &&str {
    fn to_value(self) -> Value {
        (*self).into()
    }
}

impl LockNames for String {
    fn to_value(self) -> Value {
        Value::Text(self)
    }
}

impl LockNames for &String {
    fn to_value(self) -> Value {
        self.as_str().into()
    }
}

impl<I: AsRef<str>, const N: usize> LockNames for [I; N] {
    fn to_value(self) -> Value {
        id_list(self)
    }
}

impl<I: AsRef<str>, const N: usize> LockNames for &[I; N] {
    fn to_value(self) -> Value {
        id_list(self)
    }
}

impl<I: AsRef<str>> LockNames for Vec<I> {
    fn to_value(self) -> Value {
        id_list(self)
    }
}

impl<I: AsRef<str>> LockNames for &[I] {
    fn to_value(self) -> Value {
        id_list(self)
    }
}

impl<I: AsRef<str>> LockNames for &Vec<I> {
    fn to_value(self) -> Value {
        id_list(self)
    }
}

impl<'a, S: Store, R: Runtime> LockBuilder<'a, S, R> {
    pub(in crate::client) fn new(
        owner: &'a dyn LockOwner<S, R>,
        names: impl LockNames,
        options: LockOptions,
    ) -> Self {
        LockBuilder { owner, names: names.to_value(), options }
    }

    /// Time to live without a renewal, at most the handle's `lock_ttl`.
    pub fn ttl(mut self, time: Duration) -> Self {
        self.options.ttl = micros(time);
        self
    }

    /// Whether it is renewed while it is held, or how often.
    pub fn keepalive(mut self, keepalive: impl Into<Keepalive>) -> Self {
        self.options.keepalive = keepalive.into();
        self
    }

    /// How long renewals may prolong it in all; [`Duration::ZERO`], the default, for no bound.
    pub fn max_hold(mut self, time: Duration) -> Self {
        self.options.max_hold = micros(time);
        self
    }

    /// How long to wait for it; [`Duration::ZERO`] for one attempt.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.options.timeout = micros(time);
        self
    }

    /// Of those who wait, the higher ones go before the lower.
    pub fn priority(mut self, priority: i16) -> Self {
        self.options.priority = priority;
        self
    }

    /// Tells holders of lower priority to yield while it waits, and waits for them to the end of their leases, which is safe.
    pub fn steal(self) -> Self {
        self.stolen_consistency_factor(1.0)
    }

    /// The same, and waits for them for a part of the time to live only. Below 1 the fence must be checked.
    pub fn stolen_consistency_factor(mut self, factor: f64) -> Self {
        self.options.steal = Some(factor);
        self
    }

    /// Who acquires it while it is held through the same [`Lock`] shares in that.
    pub fn reentrant(mut self) -> Self {
        self.options.reentrant = true;
        self
    }

    /// The lock, to be acquired any number of times. Asks nothing of the store yet.
    ///
    /// # Errors
    /// `invalid_argument` naming what is wrong; `cancelled` if the handle was closed.
    pub fn open(self) -> Result<Lock<S, R>> {
        self.owner.lock_of(&self.names, self.options)
    }

    /// Locks all of its names, waiting until the timeout.
    ///
    /// # Errors
    /// As [`Self::open`] and [`Lock::acquire`].
    pub async fn acquire(self) -> Result<Locked<S, R>> {
        self.open()?.acquire().await
    }

    /// Runs `body` under the lock and gives what it gives.
    ///
    /// # Errors
    /// As [`Self::open`] and [`Lock::run`].
    pub async fn run<T>(self, body: impl AsyncFnOnce(&Locked<S, R>) -> T) -> Result<T, RunError<T>> {
        self.open().map_err(RunError::NotAcquired)?.run(body).await
    }
}
