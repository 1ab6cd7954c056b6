//! The words of a pool.

use std::sync::Arc;
use std::time::Duration;

use super::micros;
use crate::client::options::{id_list, slot_specs, weighted_list};
use crate::client::{Keepalive, Leasehold, NonceSource, Pool, PoolOptions, ReadNonce};
use crate::error::Result;
use crate::nonce::Nonce;
use crate::runtime::{BoxedFuture, MaybeSend, MaybeSync, Runtime};
use crate::slots::Strategy;
use crate::store::Store;
use crate::value::Value;

/// A pool that is opened when this is awaited. What its words mean is said at [`PoolOptions`].
#[must_use = "the pool is opened when this is awaited"]
pub struct PoolBuilder<'a, S: Store, R: Runtime> {
    handle: &'a Leasehold<S, R>,
    name: String,
    slots: Option<Value>,
    options: PoolOptions,
    read_nonce: Option<ReadNonce>,
}

impl<'a, S: Store, R: Runtime> PoolBuilder<'a, S, R> {
    pub(in crate::client) fn new(handle: &'a Leasehold<S, R>, name: &str) -> Self {
        let options = handle.pool_defaults();
        PoolBuilder { handle, name: name.to_owned(), slots: None, options, read_nonce: None }
    }

    /// The slots of this process; without them it takes whatever the pool has.
    pub fn slots<I: AsRef<str>>(mut self, slots: impl IntoIterator<Item = I>) -> Self {
        self.slots = Some(id_list(slots));
        self
    }

    /// The same with weights, 1 to 255, of which [`Strategy::Weighted`] makes use.
    pub fn weighted_slots<I: AsRef<str>>(mut self, slots: impl IntoIterator<Item = (I, u64)>) -> Self {
        self.slots = Some(weighted_list(slots));
        self
    }

    /// Time to live of a lease.
    pub fn ttl(mut self, time: Duration) -> Self {
        self.options.ttl = micros(time);
        self
    }

    /// How long a slot rests after a lease that is given back, or dropped; after one that ends at its deadline, or is broken, it rests
    /// not.
    pub fn cooldown(mut self, time: Duration) -> Self {
        self.options.cooldown = micros(time);
        self
    }

    /// How to choose among the slots that are ready.
    pub fn strategy(mut self, strategy: Strategy) -> Self {
        self.options.strategy = strategy;
        self
    }

    /// How long renewals may prolong a lease in all, and the most that it lasts: 10 minutes, or the `ttl` if that is longer, where nothing
    /// is said; [`Duration::ZERO`] for no bound.
    pub fn max_hold(mut self, time: Duration) -> Self {
        self.options.max_hold = Some(micros(time));
        self
    }

    /// Whether leases are renewed while they are held, or how often.
    pub fn keepalive(mut self, keepalive: impl Into<Keepalive>) -> Self {
        self.options.keepalive = keepalive.into();
        self
    }

    /// How long a slot whose nonce is in doubt rests.
    pub fn doubt_rest(mut self, time: Duration) -> Self {
        self.options.doubt_rest = micros(time);
        self
    }

    /// How long the record outweighs a chain that names a lower nonce.
    pub fn settle(mut self, time: Duration) -> Self {
        self.options.settle = micros(time);
        self
    }

    /// How long an acquisition waits, where it does not say.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.options.timeout = micros(time);
        self
    }

    /// The time of waiting that outweighs one step of priority.
    pub fn ageing(mut self, time: Duration) -> Self {
        self.options.ageing = micros(time);
        self
    }

    /// Reads an account's next nonce from the chain, pending transactions counted: called with a slot's id where the nonce is
    /// not known or in doubt, so that every lease comes with one. What it needs for that it has a copy of:
    /// `move |address| { let node = node.clone(); async move { node.nonce(&address).await } }`.
    pub fn read_nonce<F, A, E>(self, read: F) -> Self
    where
        F: Fn(String) -> A + MaybeSend + MaybeSync + 'static,
        A: Future<Output = Result<Nonce, E>> + MaybeSend + 'static,
        E: ToString + 'static,
    {
        let read = Arc::new(read);
        self.nonce_source(move |slot: String| {
            let read = read.clone();
            async move { read(slot).await.map_err(|error| error.to_string()) }
        })
    }

    /// The same by a source of its own.
    pub fn nonce_source(mut self, source: impl NonceSource + 'static) -> Self {
        self.read_nonce = Some(Arc::new(source));
        self
    }

    async fn open(mut self) -> Result<Pool<S, R>> {
        if let Some(slots) = self.slots {
            self.options.slots = Some(slot_specs(&slots).map_err(|error| error.within("slots"))?);
        }
        self.handle.pool_with(&self.name, self.options, self.read_nonce).await
    }
}

impl<'a, S: Store, R: Runtime> IntoFuture for PoolBuilder<'a, S, R> {
    type Output = Result<Pool<S, R>>;
    type IntoFuture = BoxedFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.open())
    }
}
