//! The words of a store that is about to be opened.

use std::time::Duration;

use tokio::runtime::Handle;

use super::micros;
use crate::client::native::{self, NativeLeasehold, NativeQuorum};
use crate::client::{OpenOptions, Target};
use crate::error::Result;
use crate::id::Name;
use crate::value::Value;

/// A store, or several servers of a quorum, on the current Tokio runtime. What its words mean is said at [`OpenOptions`].
#[must_use = "nothing is opened yet"]
pub struct Connect<Urls> {
    urls: Urls,
    namespace: Option<String>,
    options: OpenOptions,
}

impl<Urls> Connect<Urls> {
    pub(in crate::client) fn new(urls: Urls) -> Self {
        Connect { urls, namespace: None, options: OpenOptions::default() }
    }

    /// Keeps apart what must not meet: put the chain's id into it (`eth:1`). "leasehold" if not given: then programs of two chains
    /// share accounts and nonces.
    pub fn namespace(mut self, name: impl Into<String>) -> Self {
        self.namespace = Some(name.into());
        self
    }

    /// How long one reply of the store may take.
    pub fn response_timeout(mut self, time: Duration) -> Self {
        self.options.response_timeout = micros(time);
        self
    }

    /// The longest time to live of locks, and their default.
    pub fn lock_ttl(mut self, time: Duration) -> Self {
        self.options.lock_ttl = micros(time);
        self
    }

    /// The time of waiting that outweighs one step of a lock's priority. Those who wait for several servers stand in no line,
    /// and have none.
    pub fn lock_ageing(mut self, time: Duration) -> Self {
        self.options.lock_ageing = micros(time);
        self
    }

    fn options(&self) -> Result<OpenOptions> {
        let mut options = self.options.clone();
        if let Some(name) = &self.namespace {
            options.namespace = Name::new(name).map_err(|error| error.within("namespace"))?;
        }
        // Of several servers they are those of all.
        options.check()?;
        Ok(options)
    }
}

impl Connect<String> {
    /// Opens the store. Does not connect yet. What it does beside its callers ends with the runtime: so long does the handle
    /// serve. After that nobody renews leases or tells of a loss (`is_held` and `remaining` still say what is so), and calls
    /// that wait panic in Tokio.
    ///
    /// # Errors
    /// `invalid_argument` naming what is wrong; it does not repeat the URL, which may hold a password.
    ///
    /// # Panics
    /// Outside of a Tokio runtime; calls that wait in one that has no time (`enable_all`).
    pub fn open(self) -> Result<NativeLeasehold> {
        let target = Target::read(&self.urls.as_str().into())?;
        native::opened(target, self.options()?, Handle::current())
    }
}

impl Connect<Vec<String>> {
    /// Opens the servers, each of which has one vote. Does not connect yet.
    ///
    /// # Errors
    /// As [`Connect::open`] of one; also for a server that is there twice.
    ///
    /// # Panics
    /// Outside of a Tokio runtime.
    pub fn open(self) -> Result<NativeQuorum> {
        let urls: Vec<Value> = self.urls.iter().map(|url| url.as_str().into()).collect();
        native::opened_quorum(&urls, &self.options()?, &Handle::current())
    }
}
