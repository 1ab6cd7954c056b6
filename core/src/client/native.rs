//! Opening a store by its URL, in a program that has sockets: Rust programs, and the bindings of Node and
//! Python.

use super::leasehold::Target;
use super::{Leasehold, OpenOptions, TokioRuntime, Unit};
use crate::error::Result;
use crate::store::redis::{NativeTransport, RedisUrl};
use crate::store::{EitherStore, MemoryStore, RedisStore};
use crate::value::Value;

/// The store of a program that has sockets.
pub type NativeStore = EitherStore<NativeTransport>;
/// A handle of such a program.
pub type NativeLeasehold = Leasehold<NativeStore, TokioRuntime>;

/// Opens the store at `url` on the current Tokio runtime. Does not connect yet.
///
/// # Errors
/// `invalid_argument` if the URL or the namespace is wrong.
///
/// # Panics
/// Outside of a Tokio runtime.
pub fn connect(url: &str, namespace: &str) -> Result<NativeLeasehold> {
    let options = Value::map([("namespace", namespace.into())]);
    open(&url.into(), &options, Unit::Milliseconds, tokio::runtime::Handle::current())
}

/// Opens a store. `target` is a URL (`memory:`, the default; `memory:name`; `redis://…`) or the lock block
/// of a paymaster's configuration. Does not connect yet.
///
/// # Errors
/// `invalid_argument` naming what is wrong.
pub fn open(
    target: &Value,
    options: &Value,
    unit: Unit,
    handle: tokio::runtime::Handle,
) -> Result<NativeLeasehold> {
    let target = Target::read(target)?;
    let options = OpenOptions { pool: target.pool, ..OpenOptions::default() }.read(options, unit)?;
    let store = match target.memory {
        Some(name) => {
            // A forked child starts with a store of its own: it holds none of its parent's leases.
            let name = format!("{}:{name}", std::process::id());
            EitherStore::Memory(MemoryStore::named(&name, TokioRuntime::store_clock()))
        }
        None => {
            let url = RedisUrl::new(&target.url)?;
            let transport = NativeTransport::new(url, handle.clone(), options.response_timeout);
            EitherStore::Redis(RedisStore::new(transport))
        }
    };
    Ok(Leasehold::new(store, TokioRuntime::new(handle), options))
}
