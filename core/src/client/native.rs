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
        Some(name) => EitherStore::Memory(MemoryStore::named(&name, TokioRuntime::store_clock())),
        None => {
            let url = RedisUrl::new(&target.url)?;
            let transport = NativeTransport::new(url, handle.clone(), options.response_timeout);
            EitherStore::Redis(RedisStore::new(transport))
        }
    };
    Ok(Leasehold::new(store, TokioRuntime::new(handle), options))
}
