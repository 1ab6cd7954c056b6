//! The words of an acquisition.

use std::time::Duration;

use super::micros;
use crate::client::options::{id_list, slot_ids};
use crate::client::{AcquireOptions, Keepalive, Lease, Pool, RunError, loss_only};
use crate::error::Result;
use crate::runtime::{BoxedFuture, Runtime};
use crate::slots::Strategy;
use crate::store::Store;
use crate::value::Value;

/// An acquisition, of one slot or of several, which begins when this is awaited. What its words mean is said at
/// [`AcquireOptions`].
#[must_use = "the acquisition begins when this is awaited"]
pub struct Acquire<'a, S: Store, R: Runtime, const MANY: bool = false> {
    pool: &'a Pool<S, R>,
    slots: Option<Value>,
    options: AcquireOptions,
}

impl<'a, S: Store, R: Runtime, const MANY: bool> Acquire<'a, S, R, MANY> {
    pub(in crate::client) fn new(pool: &'a Pool<S, R>, count: Option<u32>) -> Self {
        Acquire { pool, slots: None, options: AcquireOptions { count, ..AcquireOptions::default() } }
    }

    /// How long to wait; [`Duration::ZERO`] for one attempt.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.options.timeout = Some(micros(time));
        self
    }

    /// Time to live of the lease, at most that of the pool.
    pub fn ttl(mut self, time: Duration) -> Self {
        self.options.ttl = Some(micros(time));
        self
    }

    /// Whether the lease is renewed while it is held, or how often.
    pub fn keepalive(mut self, keepalive: impl Into<Keepalive>) -> Self {
        self.options.keepalive = Some(keepalive.into());
        self
    }

    /// Only these slots will do.
    pub fn slots<I: AsRef<str>>(mut self, slots: impl IntoIterator<Item = I>) -> Self {
        self.slots = Some(id_list(slots));
        self
    }

    /// How to choose among the slots that are ready.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.options.strategy = Some(strategy);
        self
    }

    /// Of those who wait, the higher ones go before the lower.
    pub fn priority(mut self, priority: i16) -> Self {
        self.options.priority = Some(priority);
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

    fn options(mut self) -> Result<AcquireOptions> {
        if let Some(slots) = self.slots {
            self.options.slots = Some(slot_ids(&slots).map_err(|error| error.within("slots"))?);
        }
        Ok(self.options)
    }
}

impl<S: Store, R: Runtime> Acquire<'_, S, R> {
    /// Acquires, runs `body` under the lease, which is given back at its end, and gives what it gives. The body says what became
    /// of the nonce: nothing said leaves it in doubt.
    ///
    /// # Errors
    /// [`RunError`]: the lease was not had, or did not last.
    pub async fn run<T>(self, body: impl AsyncFnOnce(&Lease<S, R>) -> T) -> Result<T, RunError<T>> {
        let lease = self.await.map_err(RunError::NotAcquired)?;
        let output = body(&lease).await;
        RunError::lasted(loss_only(lease.conclude().await), output)
    }
}

impl<'a, S: Store, R: Runtime> IntoFuture for Acquire<'a, S, R> {
    type Output = Result<Lease<S, R>>;
    type IntoFuture = BoxedFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let pool = self.pool;
        Box::pin(async move { pool.acquire_with(self.options()?).await })
    }
}

impl<'a, S: Store, R: Runtime> IntoFuture for Acquire<'a, S, R, true> {
    type Output = Result<Vec<Lease<S, R>>>;
    type IntoFuture = BoxedFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        let pool = self.pool;
        Box::pin(async move { pool.acquire_many_with(self.options()?).await })
    }
}
