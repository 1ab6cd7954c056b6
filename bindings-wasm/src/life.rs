//! How long leases and locks last, and what their holders are told.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use leasehold::{Error, MILLISECOND};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::entered;
use crate::failure::Failure;
#[cfg(feature = "full")]
use crate::leasehold::UNIT;
use crate::tasks::{Answer, call};
#[cfg(feature = "full")]
use crate::things::reserved;
use crate::things::{Held, held};

/// How long it can be relied on, in milliseconds.
#[wasm_bindgen]
pub fn remaining(thing: u32) -> Result<f64, JsValue> {
    entered();
    #[cfg(feature = "full")]
    if let Some(reservation) = reserved(thing) {
        return Ok(UNIT.count(reservation.remaining_micros()));
    }
    let remaining = match held(thing)? {
        Held::Lease(lease) => lease.remaining_micros(),
        Held::Lock(lock) => lock.remaining_micros(),
        #[cfg(feature = "full")]
        Held::Selection(selection) => return Ok(UNIT.count(selection.remaining_micros())),
    };
    Ok(remaining as f64 / MILLISECOND as f64)
}

/// Instead of a task, that there will be no word: also in `face/instance.ts`.
const NEVER: u32 = u32::MAX;

/// Ends as a failure when it is claimed, or else when it is lost, and with nothing once it was given back. Fails at once
/// where that is so already, and begins nothing where there will be no word.
#[wasm_bindgen]
pub fn told(thing: u32, claimed: bool, number: u32) -> Result<u32, JsValue> {
    entered();
    // Holds nothing of it: its owner may be collected.
    let mut word: Pin<Box<dyn Future<Output = Option<Error>>>> = match (held(thing)?, claimed) {
        (Held::Lease(lease), false) => Box::pin(lease.lost()),
        (Held::Lease(lease), true) => Box::pin(lease.claimed()),
        (Held::Lock(lock), false) => Box::pin(lock.lost()),
        (Held::Lock(lock), true) => Box::pin(lock.claimed()),
        // Nobody claims what others have selected.
        #[cfg(feature = "full")]
        (Held::Selection(selection), _) => selection.lost(),
    };
    match word.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(Some(error)) => return Err(Failure::from(error).into()),
        // What has ended is not asked again: of what is lost nobody is told that it is claimed.
        Poll::Ready(None) => return Ok(NEVER),
        Poll::Pending => {}
    }
    let work = async move { word.await.map_or(Ok(Answer::Nothing), |error| Err(error.into())) };
    Ok(call(number, Box::pin(work)))
}
