//! Named locks: acquiring, and what is held.

use std::rc::Rc;

use js_sys::Array;
use leasehold::MILLISECOND;
use leasehold::client::{Lock, Locked};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::lease::told;
use crate::leasehold::{HostStore, UNIT, of};
use crate::runtime::{HostRuntime, prepare};
use crate::shelf::Shelf;
use crate::tasks::{Answer, call};
use crate::{entered, value};

pub type HostLocked = Locked<HostStore, HostRuntime>;

thread_local! {
    static LOCKS: Shelf<Rc<Lock<HostStore, HostRuntime>>> = const { Shelf::new() };
    static HELD: Shelf<Rc<HostLocked>> = const { Shelf::new() };
}

/// What the face knows of a lock that it gets: its number and its fence.
pub fn facts(locked: HostLocked) -> JsValue {
    let fence = locked.fence();
    let number = HELD.with(|held| held.put(Rc::new(locked)));
    Array::of2(&number.into(), &fence.into()).into()
}

/// A lock of one name or several.
#[wasm_bindgen]
pub fn lock(leasehold: u32, names: &JsValue, options: &JsValue) -> Result<u32, JsValue> {
    entered();
    prepare()?;
    let (names, options) = (value::named(names, "names")?, value::options(options)?);
    let lock = of(leasehold)?.lock_by(&names, &options, UNIT).map_err(Failure::from)?;
    Ok(LOCKS.with(|locks| locks.put(Rc::new(lock))))
}

/// Locks its names, waiting; for a body that the face runs, perhaps not at all.
#[wasm_bindgen(js_name = acquireLock)]
pub fn acquire_lock(lock: u32, options: &JsValue, for_body: bool, number: u32) -> Result<u32, JsValue> {
    entered();
    let (lock, options) = (LOCKS.with(|locks| locks.get(lock))?, value::options(options)?);
    let work = async move {
        let locked = match for_body {
            true => lock.enter(&options, UNIT).await?,
            false => Some(lock.acquire_by(&options, UNIT).await?),
        };
        Ok(locked.map_or(Answer::Nothing, Answer::Lock))
    };
    Ok(call(number, Box::pin(work)))
}

/// How long it can be relied on, in milliseconds.
#[wasm_bindgen(js_name = lockRemaining)]
pub fn lock_remaining(locked: u32) -> Result<f64, JsValue> {
    entered();
    Ok(HELD.with(|held| held.get(locked))?.remaining() as f64 / MILLISECOND as f64)
}

/// As `lost` of a lease.
#[wasm_bindgen(js_name = lockLost)]
pub fn lock_lost(locked: u32, number: u32) -> Result<u32, JsValue> {
    entered();
    let lost = HELD.with(|held| held.get(locked))?.lost();
    told(Box::pin(lost), number)
}

/// Gives it back, perhaps at the end of a body that the face ran; the number is free from then on.
#[wasm_bindgen(js_name = releaseLock)]
pub fn release_lock(locked: u32, of_body: bool, number: u32) -> Result<u32, JsValue> {
    entered();
    let locked = HELD.with(|held| held.take(locked))?;
    let work = async move {
        match of_body {
            true => locked.conclude().await?,
            false => locked.release().await?,
        }
        Ok(Answer::Nothing)
    };
    Ok(call(number, Box::pin(work)))
}

/// Frees what the face has let go.
#[wasm_bindgen(js_name = freeLock)]
pub fn free_lock(number: u32) {
    entered();
    drop(LOCKS.with(|locks| locks.take(number)));
}

/// Frees what the face has let go. A lock that is still held is given back.
#[wasm_bindgen(js_name = freeLocked)]
pub fn free_locked(number: u32) {
    entered();
    drop(HELD.with(|held| held.take(number)));
}
