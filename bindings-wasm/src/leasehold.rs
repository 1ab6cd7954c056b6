//! Opening a store and its pools.

use std::sync::Arc;

use js_sys::Function;
use leasehold::Error;
use leasehold::client::{Leasehold, OpenOptions, ReadNonce, Target, Unit};
use leasehold::store::{EitherStore, MemoryStore, RedisStore};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::nonces::HostNonces;
use crate::runtime::{HostRuntime, prepare, store_clock};
use crate::tasks::{Answer, call};
use crate::things::{HostLeasehold, Thing, leasehold as of, put};
use crate::transport::HostTransport;
use crate::{entered, value};

pub const UNIT: Unit = Unit::Milliseconds;

/// Opens a store: a transport if it is said to be one, or else a URL or a configuration.
#[wasm_bindgen]
pub fn open(target: &JsValue, is_transport: bool, options: &JsValue) -> Result<u32, JsValue> {
    entered();
    Ok(opened(target, is_transport, options)?)
}

fn opened(target: &JsValue, is_transport: bool, options: &JsValue) -> Result<u32, Failure> {
    let handle = handle(target, is_transport, options)?;
    Ok(put(Thing::Leasehold(handle)))
}

pub fn handle(target: &JsValue, is_transport: bool, options: &JsValue) -> Result<HostLeasehold, Failure> {
    let named = if is_transport { "memory:".into() } else { value::options(target)? };
    let named = Target::read(&named)?;
    let store = match named.memory {
        _ if is_transport => EitherStore::Redis(RedisStore::new(HostTransport(target.clone()))),
        Some(name) => EitherStore::Memory(MemoryStore::named(&name, store_clock())),
        None => {
            let advice = "there are no sockets here: give `memory:` or a transport";
            return Err(Error::invalid("url", advice).into());
        }
    };
    let options =
        OpenOptions { pool: named.pool, ..OpenOptions::default() }.read(&value::options(options)?, UNIT)?;
    Leasehold::new(store, HostRuntime, options).map_err(Into::into)
}

/// Opens a pool.
#[wasm_bindgen]
pub fn pool(
    leasehold: u32,
    name: &JsValue,
    options: &JsValue,
    read_nonce: Option<Function>,
    number: u32,
) -> Result<u32, JsValue> {
    entered();
    let leasehold = of(leasehold)?;
    let name = value::text(name, "name")?;
    let options = value::options(options)?;
    let options = leasehold.pool_defaults().read(&options, UNIT).map_err(Failure::from)?;
    let read_nonce = read_nonce.map(|function| Arc::new(HostNonces(function)) as ReadNonce);
    prepare()?;
    let work = async move {
        let pool = leasehold.pool_with(&name, options, read_nonce).await?;
        Ok(Answer::Number(put(Thing::Pool(pool))))
    };
    Ok(call(number, Box::pin(work)))
}

/// Opens no more pools.
#[wasm_bindgen]
pub fn close(leasehold: u32) -> Result<(), JsValue> {
    entered();
    of(leasehold)?.close();
    Ok(())
}
