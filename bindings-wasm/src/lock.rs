//! Named locks: acquiring, and what is held.

use std::rc::Rc;

use js_sys::Array;
use leasehold::MILLISECOND;
#[cfg(feature = "full")]
use leasehold::client::read_ttl;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::leasehold::UNIT;
use crate::runtime::prepare;
use crate::tasks::{Answer, call};
use crate::things::{self, HostLocked, Thing, put, take};
use crate::{entered, value};

/// What the face knows of a lock that it gets: its number and its fence.
pub fn facts(locked: HostLocked) -> JsValue {
    let fence = locked.fence();
    let number = put(Thing::Locked(Rc::new(locked)));
    Array::of2(&number.into(), &fence.into()).into()
}

/// A lock of one name or several.
#[wasm_bindgen]
pub fn lock(leasehold: u32, names: &JsValue, options: &JsValue) -> Result<u32, JsValue> {
    entered();
    prepare()?;
    let (names, options) = (value::named(names, "names")?, value::options(options)?);
    let lock = things::leasehold(leasehold)?.lock_by(&names, &options, UNIT).map_err(Failure::from)?;
    Ok(put(Thing::Lock(lock)))
}

/// Locks its names, waiting; for a body that the face runs, perhaps not at all.
#[wasm_bindgen(js_name = acquireLock)]
pub fn acquire_lock(lock: u32, options: &JsValue, for_body: bool, number: u32) -> Result<u32, JsValue> {
    entered();
    let (lock, options) = (things::lock(lock)?, value::options(options)?);
    let work = async move {
        let locked = match for_body {
            true => lock.enter(&options, UNIT).await?,
            false => Some(lock.acquire_by(&options, UNIT).await?),
        };
        Ok(locked.map_or(Answer::Nothing, Answer::Lock))
    };
    Ok(call(number, Box::pin(work)))
}

/// How long holders took to yield of late, in milliseconds.
#[wasm_bindgen]
pub fn handshake(lock: u32) -> Result<f64, JsValue> {
    entered();
    Ok(things::lock(lock)?.handshake() as f64 / MILLISECOND as f64)
}

/// Looks at each of its names.
#[cfg(feature = "full")]
#[wasm_bindgen(js_name = inspectLock)]
pub fn inspect_lock(lock: u32, number: u32) -> Result<u32, JsValue> {
    entered();
    let lock = things::lock(lock)?;
    let work = async move { Ok(Answer::Value(value::write(lock.inspect_by(UNIT).await?))) };
    Ok(call(number, Box::pin(work)))
}

/// Ends by force what is held of its names.
#[cfg(feature = "full")]
#[wasm_bindgen(js_name = breakLock)]
pub fn break_lock(lock: u32, number: u32) -> Result<u32, JsValue> {
    entered();
    let lock = things::lock(lock)?;
    let work = async move {
        lock.break_lease().await?;
        Ok(Answer::Nothing)
    };
    Ok(call(number, Box::pin(work)))
}

/// Prolongs it.
#[cfg(feature = "full")]
#[wasm_bindgen(js_name = renewLock)]
pub fn renew_lock(locked: u32, ttl: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let held = things::locked(locked)?;
    let ttl = read_ttl(&value::named(ttl, "ttl")?, UNIT).map_err(Failure::from)?;
    let work = async move {
        held.renew_by(ttl).await?;
        Ok(Answer::Nothing)
    };
    Ok(call(number, Box::pin(work)))
}

/// Gives it back; the number is free from then on.
#[wasm_bindgen(js_name = releaseLock)]
pub fn release_lock(locked: u32, number: u32) -> Result<u32, JsValue> {
    entered();
    let held = things::locked(locked)?;
    take(locked);
    let work = async move {
        held.release().await?;
        Ok(Answer::Nothing)
    };
    Ok(call(number, Box::pin(work)))
}
