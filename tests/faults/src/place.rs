//! Where the pools of a test are: in memory or on a server of the test's own.

use std::sync::atomic::{AtomicU64, Ordering};

use leasehold::client::native::{NativeQuorum, open, open_quorum};
use leasehold::client::{AcquireOptions, PoolOptions, ReadNonce, Unit};
use leasehold::id::SlotId;
use leasehold::slots::SlotSpec;
use leasehold::value::Value;
use leasehold::{Code, MILLISECOND, Micros, SECOND};
use leasehold_servers::{RedisOptions, RedisServer};

use crate::eventually;

/// The client's handle of a store, and what it gives.
pub use leasehold::{
    NativeLease as Lease, NativeLeasehold as Handle, NativePool as Pool, NativeTokens as Tokens,
};

/// The response timeout of handles, in milliseconds.
const RESPONSE: f64 = 1_000.0;
/// The longest time to live of locks, in milliseconds: for so long does a fresh server grant none.
const LOCK_TTL: f64 = 2_000.0;

/// A store that only this test uses.
pub struct Place {
    url: String,
    server: Option<RedisServer>,
}

impl Place {
    /// In this process's memory.
    pub fn memory() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let url = format!("memory:place-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        Place { url, server: None }
    }

    /// On a server of its own.
    pub fn redis() -> Self {
        let server = RedisServer::start(RedisOptions::default()).expect("a server starts");
        Place { url: server.url(), server: Some(server) }
    }

    /// The address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The server.
    pub fn server(&self) -> &RedisServer {
        self.server.as_ref().expect("this place is a server")
    }

    /// Whether there is one.
    pub fn is_server(&self) -> bool {
        self.server.is_some()
    }

    /// The server goes away for good.
    pub fn stop(&mut self) {
        self.server = None;
    }

    /// Another process, as far as the store can tell.
    pub fn handle(&self) -> Handle {
        handle(&self.url)
    }

    /// Opens the pool of this place in a handle of its own.
    pub async fn pool(&self, options: PoolOptions, read_nonce: Option<ReadNonce>) -> Pool {
        opened(&self.handle(), options, read_nonce).await
    }
}

/// The pool of a place in this handle. A machine that is busy may answer the first request later than a short response
/// timeout waits for it.
///
/// # Panics
/// If it does not open within 20 s.
pub async fn opened(handle: &Handle, options: PoolOptions, read_nonce: Option<ReadNonce>) -> Pool {
    let mut pool = None;
    let opens = async || match handle.pool_with("relayers", options.clone(), read_nonce.clone()).await {
        Err(error) if error.code() == Code::StoreUnavailable => false,
        outcome => {
            pool = Some(outcome.expect("the pool opens"));
            true
        }
    };
    eventually("the pool opens", opens).await;
    pool.expect("it has opened")
}

/// A handle of the store at this address.
pub fn handle(url: &str) -> Handle {
    handle_with(url, "faults", RESPONSE).expect("a good address")
}

/// A handle with a namespace and a response timeout in milliseconds.
///
/// # Errors
/// As `open` has them.
pub fn handle_with(url: &str, namespace: &str, response: f64) -> leasehold::error::Result<Handle> {
    let options = Value::map([
        ("namespace", namespace.into()),
        ("response_timeout", Value::Number(response)),
        ("lock_ttl", Value::Number(LOCK_TTL)),
    ]);
    open(&url.into(), &options, Unit::Milliseconds, tokio::runtime::Handle::current())
}

/// The quorum of the servers at these addresses, with a response timeout in milliseconds.
///
/// # Panics
/// If an address is wrong.
pub fn quorum_with(urls: &[&str], response: f64) -> NativeQuorum {
    let urls = Value::List(urls.iter().map(|&url| url.into()).collect());
    let options =
        Value::map([("response_timeout", Value::Number(response)), ("lock_ttl", Value::Number(LOCK_TTL))]);
    open_quorum(&urls, &options, Unit::Milliseconds, tokio::runtime::Handle::current())
        .expect("good addresses")
}

/// A pool of these slots with leases of 400 ms, whose acquisitions wait 10 s.
pub fn options(slots: &[&str]) -> PoolOptions {
    let spec = |id: &&str| {
        let spec = SlotSpec { slot: SlotId::new(id).expect("a good id"), weight: 1 };
        ((*id).to_owned(), spec)
    };
    PoolOptions {
        slots: Some(slots.iter().map(spec).collect()),
        ttl: 400 * MILLISECOND,
        ..PoolOptions::default()
    }
}

/// An acquisition that waits as long as the pool says.
pub fn patient() -> AcquireOptions {
    AcquireOptions::default()
}

/// An acquisition that waits so long; 0 for one attempt.
pub fn within(milliseconds: Micros) -> AcquireOptions {
    AcquireOptions { timeout: Some(milliseconds * SECOND / 1_000), ..AcquireOptions::default() }
}
