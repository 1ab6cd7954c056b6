//! What a pool does.

use leasehold::client::AcquireOptions;
use leasehold::value::Value;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::{Failure, NOTHING};
use crate::lease::Granted;
use crate::leasehold::UNIT;
use crate::tasks::{Answer, call};
use crate::things::pool as of;
use crate::{entered, value};

/// Leases one slot, waiting.
#[wasm_bindgen]
pub fn acquire(pool: u32, options: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let (pool, options) = (of(pool)?, acquire_options(options)?);
    let work = async move { Ok(Answer::Lease(Granted::new(pool.acquire_with(options).await?))) };
    Ok(call(number, Box::pin(work)))
}

/// Leases several slots, waiting.
#[wasm_bindgen(js_name = acquireMany)]
pub fn acquire_many(pool: u32, options: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let (pool, options) = (of(pool)?, acquire_options(options)?);
    let work = async move {
        let leases = pool.acquire_many_with(options).await?;
        Ok(Answer::Leases(leases.into_iter().map(Granted::new).collect()))
    };
    Ok(call(number, Box::pin(work)))
}

/// Leases one slot at once, which the face hears then, or does nothing.
#[wasm_bindgen(js_name = tryAcquire)]
pub fn try_acquire(pool: u32) -> u32 {
    entered();
    acquired_now(pool, Ok(AcquireOptions::default()))
}

/// The same with options: to pass a value takes longer than many a pool takes to find a slot.
#[wasm_bindgen(js_name = tryAcquireWith)]
pub fn try_acquire_with(pool: u32, options: &JsValue) -> u32 {
    entered();
    acquired_now(pool, acquire_options(options))
}

fn acquired_now(pool: u32, options: Result<AcquireOptions, Failure>) -> u32 {
    match options.and_then(|options| Ok(of(pool)?.try_acquire_with(options)?)) {
        Err(failure) => failure.said(),
        Ok(None) => NOTHING,
        Ok(Some(lease)) => Granted::new(lease).say(),
    }
}

/// Adds slots.
#[wasm_bindgen]
pub fn add(pool: u32, slots: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let (pool, slots) = (of(pool)?, value::options(slots).map_err(|failure| failure.within("slots"))?);
    Ok(call(number, Box::pin(async move { Ok(Answer::Number(pool.add_by(&slots).await?)) })))
}

/// Changes a slot by one of the pool's verbs; `time` is for those that take one.
#[wasm_bindgen]
pub fn change(pool: u32, verb: &str, slot: &JsValue, time: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let (pool, slot) = (of(pool)?, value::text(slot, "slot")?);
    let time = value::named(time, "time")?;
    let verb = verb.to_owned();
    let work = async move {
        pool.change(&verb, &slot, &time, UNIT).await?;
        Ok(Answer::Nothing)
    };
    Ok(call(number, Box::pin(work)))
}

/// Counts the slots, and looks at some.
#[wasm_bindgen]
pub fn inspect(pool: u32, slots: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let pool = of(pool)?;
    let slots = slot_names(slots).map_err(|failure| failure.within("slots"))?;
    let work = async move { Ok(Answer::Value(value::write(pool.inspect(&slots).await?.to_value(UNIT)))) };
    Ok(call(number, Box::pin(work)))
}

/// The ids of all slots.
#[wasm_bindgen]
pub fn list(pool: u32, number: u32) -> Result<u32, JsValue> {
    entered();
    let pool = of(pool)?;
    let work = async move {
        let ids = pool.list().await?.into_iter().map(Value::Text).collect();
        Ok(Answer::Value(value::write(Value::List(ids))))
    };
    Ok(call(number, Box::pin(work)))
}

/// What this handle has done so far.
#[wasm_bindgen]
pub fn statistics(pool: u32) -> Result<JsValue, JsValue> {
    entered();
    Ok(value::write(of(pool)?.statistics().to_value(UNIT)))
}

fn acquire_options(options: &JsValue) -> Result<AcquireOptions, Failure> {
    if options.is_undefined() {
        return Ok(AcquireOptions::default());
    }
    Ok(AcquireOptions::read(&value::options(options)?, UNIT)?)
}

fn slot_names(slots: &JsValue) -> Result<Vec<String>, Failure> {
    let slots = value::read(slots)?;
    let mut names = Vec::new();
    if !matches!(slots, Value::Null) {
        for (slot, at) in slots.as_list()?.iter().zip(0..) {
            let name = slot.as_text().map_err(|error| error.within(&format!("[{at}]")))?;
            names.push(name.to_owned());
        }
    }
    Ok(names)
}
