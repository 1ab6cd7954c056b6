//! Pools in Redis: every envelope is one call of one script, on keys with one hash tag.
//!
//! How a command reaches the server is a [`Transport`]: native TCP (feature `redis`), or functions that
//! the host supplies.

#[cfg(feature = "doctor")]
mod diagnosis;
#[cfg(feature = "limits")]
mod ledger;
#[cfg(feature = "redis")]
mod native;
#[cfg(test)]
mod nonsense;
mod transport;
mod wire;

#[cfg(feature = "limits")]
pub use ledger::{LIMITS_SCRIPT, RedisLedger};
#[cfg(feature = "redis")]
pub use native::{NativeTransport, RedisUrl};
pub use transport::{Resp, Transport, TransportError};
pub use wire::heard;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

#[cfg(feature = "doctor")]
use super::Finding;
use super::{Certainty, Listener, Store, StoreError, StorePool, Watch};
use crate::Micros;
use crate::error::Result;
#[cfg(feature = "doctor")]
use crate::id::Name;
use crate::id::PoolName;
#[cfg(feature = "doctor")]
use crate::runtime::Runtime;
use crate::slots::{Answer, Envelope, Lane, Reply, Request};

/// The script: the machine of slots in a second wording; `slots/` in one piece, without its comments.
pub const SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/slots.lua"));
/// The name that Redis gives it.
const DIGEST: &str = include_str!(concat!(env!("OUT_DIR"), "/slots.sha1"));

/// The script that Redis knows by this digest.
fn script(digest: &str) -> &'static str {
    match digest {
        #[cfg(feature = "limits")]
        ledger::DIGEST => LIMITS_SCRIPT,
        _ => SCRIPT,
    }
}

/// Pools in a Redis that is reached through a transport.
#[derive(Clone, Debug)]
pub struct RedisStore<T> {
    transport: T,
    /// Whether the server has been found fit to keep leases.
    vetted: Arc<AtomicBool>,
}

/// One pool in Redis.
#[derive(Debug)]
pub struct RedisPool<T> {
    store: RedisStore<T>,
    keys: Keys,
}

/// The keys of a pool. All have one hash tag, so that a cluster keeps them on one server.
#[derive(Debug)]
struct Keys {
    prefix: String,
}

impl<T: Transport> RedisStore<T> {
    /// A store reached through `transport`.
    pub fn new(transport: T) -> Self {
        RedisStore { transport, vetted: Arc::default() }
    }

    /// Refuses, once at the start, a server that may delete leases when its memory is full.
    async fn vet(&self) -> Result<(), StoreError> {
        if T::VETS || self.vetted.load(Relaxed) {
            return Ok(());
        }
        match self.transport.send(POLICY.map(str::to_owned).to_vec()).await {
            // Whatever fails here, the envelope was not sent.
            Err(TransportError::NotSent(cause) | TransportError::NoReply(cause)) => {
                return Err(StoreError::new(Certainty::NotPerformed, cause));
            }
            Ok(answer) => fit(&answer)?,
        }
        self.vetted.store(true, Relaxed);
        Ok(())
    }

    /// The command that performs an envelope: `EVALSHA`, or `EVAL` with the script's text.
    fn command(&self, keys: &Keys, envelope: &Envelope, whole: bool) -> Vec<String> {
        let mut words = match whole {
            true => vec!["EVAL".to_owned(), self.transport.script(DIGEST)],
            false => vec!["EVALSHA".to_owned(), DIGEST.to_owned()],
        };
        words.push("6".to_owned());
        words.extend(["meta", "slots", "places", "line", "tickets"].map(|part| keys.of(part)));
        words.push(keys.lane(envelope.lane));
        words.extend(wire::encode(envelope, &keys.of("wake")));
        words
    }
}

/// Asks a server what it does when its memory is full.
const POLICY: [&str; 3] = ["CONFIG", "GET", "maxmemory-policy"];

/// Whether a server that says this to [`POLICY`] may keep leases.
fn fit(answer: &Resp) -> Result<(), StoreError> {
    match answer {
        Resp::Error(text) => match text.split(' ').next().unwrap_or_default() {
            // Managed servers forbid the question: what cannot be seen is not refused.
            "ERR" | "NOPERM" => {}
            "NOAUTH" => return Err(transport::classify(text)),
            _ => return Err(StoreError::new(Certainty::NotPerformed, text)),
        },
        Resp::List(pair) => {
            if let [_, Resp::Text(policy)] = pair.as_slice()
                && policy != "noeviction"
            {
                let cause = format!(
                    "its maxmemory-policy is {policy}, which deletes leases when memory is full: set it to noeviction"
                );
                return Err(StoreError::new(Certainty::BARRED, cause));
            }
        }
        _ => {}
    }
    Ok(())
}

impl<T: Transport> Store for RedisStore<T> {
    type Pool = RedisPool<T>;

    fn pool(&self, name: &PoolName) -> Self::Pool {
        RedisPool { store: self.clone(), keys: Keys::new(name) }
    }

    fn close(&self) {
        self.transport.close();
    }

    #[cfg(feature = "doctor")]
    async fn examine<R: Runtime>(
        &self,
        runtime: &R,
        namespace: &Name,
        patience: Micros,
    ) -> Result<Vec<Finding>, StoreError> {
        self.look(runtime, namespace, patience).await
    }
}

impl<T: Transport> StorePool for RedisPool<T> {
    fn answers_at_once(&self) -> bool {
        false
    }

    fn perform_now(&self, _seed: u32, _request: &Request) -> Option<(Micros, Reply)> {
        None
    }

    fn lag(&self) -> Micros {
        self.store.transport.lag()
    }

    async fn perform(&self, envelope: &Envelope) -> Result<Answer, StoreError> {
        let store = &self.store;
        store.vet().await?;
        let mut whole = false;
        let reply = loop {
            match store.transport.send(store.command(&self.keys, envelope, whole)).await? {
                Resp::Error(text) if text.starts_with("NOSCRIPT") && !whole => whole = true,
                reply => break reply,
            }
        };
        match reply {
            Resp::Text(text) => wire::decode(&text, envelope.requests.len())
                .map_err(|error| StoreError::new(Certainty::Refused, error.message())),
            Resp::Error(text) => Err(transport::classify(&text)),
            other => Err(StoreError::new(
                Certainty::Refused,
                format!("the server answered a script with {}", other.kind()),
            )),
        }
    }

    async fn watch(&self, listener: Listener) -> Result<Option<Watch>, StoreError> {
        Ok(self.store.transport.subscribe(self.keys.of("wake"), listener).await?)
    }
}

impl Keys {
    fn new(name: &PoolName) -> Self {
        Keys { prefix: format!("{}:{{{}}}:", name.namespace.encoded(), name.pool.encoded()) }
    }

    fn of(&self, part: &str) -> String {
        format!("{}{part}", self.prefix)
    }

    /// Where the last answer of a lane is kept; a key is named without one too.
    fn lane(&self, lane: Option<Lane>) -> String {
        match lane {
            Some(Lane { client, number, .. }) => {
                self.of(&format!("lane:{client:032x}:{}", u32::from(number)))
            }
            None => self.of("lane"),
        }
    }
}
