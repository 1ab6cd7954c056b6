//! What a lease does.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use leasehold::client::{AcquireOptions, ReleaseOptions};
use leasehold::value::{Options, Value};
use leasehold::{Error, Lease, MILLISECOND};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::leasehold::{HostStore, UNIT};
use crate::names::Names;
use crate::runtime::HostRuntime;
use crate::shelf::Shelf;
use crate::tasks::{Answer, call};
use crate::{entered, host, value};

pub type HostLease = Lease<HostStore, HostRuntime>;

thread_local! {
    static LEASES: Shelf<Rc<HostLease>> = const { Shelf::new() };
    static NAMES: RefCell<Names> = const { RefCell::new(Names::new()) };
}

fn of(number: u32) -> Result<Rc<HostLease>, Failure> {
    LEASES.with(|leases| leases.get(number))
}

/// A lease on its way to its caller. Given back with its nonce unused if it does not arrive.
pub struct Granted(Option<HostLease>);

impl Granted {
    pub fn new(lease: HostLease) -> Self {
        Granted(Some(lease))
    }
}

impl From<Granted> for JsValue {
    fn from(mut granted: Granted) -> JsValue {
        granted.0.take().map_or(JsValue::UNDEFINED, |lease| {
            let lease = Rc::new(lease);
            let number = LEASES.with(|leases| leases.put(lease.clone()));
            facts(number, &lease)
        })
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        if let Some(lease) = &self.0 {
            lease.unused();
        }
    }
}

fn facts(number: u32, lease: &HostLease) -> JsValue {
    NAMES.with_borrow_mut(|names| {
        let slot = names.value(lease.slot());
        host::lease(number, slot, lease.fence(), lease.nonce(), lease.in_doubt())
    })
}

/// How long the lease can be relied on, in milliseconds.
#[wasm_bindgen]
pub fn remaining(lease: u32) -> Result<f64, JsValue> {
    entered();
    Ok(of(lease)?.remaining() as f64 / MILLISECOND as f64)
}

#[wasm_bindgen]
pub fn used(lease: u32, next: &JsValue) -> Result<(), JsValue> {
    entered();
    let next = value::whole(next, "next")?;
    Ok(of(lease)?.used(next).map_err(Failure::from)?)
}

#[wasm_bindgen]
pub fn unused(lease: u32) -> Result<(), JsValue> {
    entered();
    of(lease)?.unused();
    Ok(())
}

#[wasm_bindgen]
pub fn rejected(lease: u32, expected: &JsValue) -> Result<(), JsValue> {
    entered();
    of(lease)?.rejected(value::whole(expected, "expected")?);
    Ok(())
}

#[wasm_bindgen]
pub fn unknown(lease: u32) -> Result<(), JsValue> {
    entered();
    of(lease)?.unknown();
    Ok(())
}

/// Gives the slot back; the number is free from then on.
#[wasm_bindgen]
pub fn release(lease: u32, options: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let options = release_options(options)?;
    let lease = LEASES.with(|leases| leases.take(lease))?;
    let work = async move {
        lease.release(options).await?;
        Ok(Answer::Nothing)
    };
    Ok(call(number, Box::pin(work)))
}

/// The same at once, for a store in memory: true, or the error that came of it. False if the store is elsewhere,
/// and the lease as it was.
#[wasm_bindgen(js_name = releaseNow)]
pub fn release_now(lease: u32) -> Result<JsValue, JsValue> {
    entered();
    Ok(released_now(lease, ReleaseOptions::default())?)
}

/// The same with options.
#[wasm_bindgen(js_name = releaseNowWith)]
pub fn release_now_with(lease: u32, options: &JsValue) -> Result<JsValue, JsValue> {
    entered();
    Ok(released_now(lease, release_options(options)?)?)
}

fn released_now(number: u32, options: ReleaseOptions) -> Result<JsValue, Failure> {
    let Some(result) = of(number)?.release_now(options) else { return Ok(JsValue::FALSE) };
    LEASES.with(|leases| leases.take(number))?;
    Ok(result.map_or_else(|error| Failure::from(error).into(), |()| JsValue::TRUE))
}

/// Ends as a failure when the lease is lost, and with nothing once it was given back. Fails if it is lost already.
#[wasm_bindgen]
pub fn lost(lease: u32, number: u32) -> Result<u32, JsValue> {
    entered();
    // Holds no lease: its owner may be collected.
    told(Box::pin(of(lease)?.lost()), number)
}

/// Tells a call of a loss.
pub fn told(mut lost: Pin<Box<dyn Future<Output = Option<Error>>>>, number: u32) -> Result<u32, JsValue> {
    if let Poll::Ready(Some(error)) = lost.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return Err(Failure::from(error).into());
    }
    let work = async move { lost.await.map_or(Ok(Answer::Nothing), |error| Err(error.into())) };
    Ok(call(number, Box::pin(work)))
}

/// Prolongs the lease.
#[wasm_bindgen]
pub fn renew(lease: u32, ttl: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let lease = of(lease)?;
    // The range of a time to live is the same everywhere.
    let ttl = Value::map([("ttl", value::named(ttl, "ttl")?)]);
    let ttl = AcquireOptions::read(&ttl, UNIT).map_err(Failure::from)?.ttl;
    let work = async move {
        lease.renew(ttl).await?;
        Ok(Answer::Nothing)
    };
    Ok(call(number, Box::pin(work)))
}

/// Records the chain's nonce; gives what the lease is now.
#[wasm_bindgen]
pub fn resync(lease: u32, nonce: &JsValue, options: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let at = lease;
    let lease = of(at)?;
    let chain =
        value::named(nonce, "nonce")?.as_u64().map_err(|error| Failure::from(error.within("nonce")))?;
    let rewind = rewind(options)?;
    let work = async move {
        lease.resync(chain, rewind).await?;
        Ok(Answer::Value(facts(at, &lease)))
    };
    Ok(call(number, Box::pin(work)))
}

/// Reads the nonce from the chain and records it; gives what the lease is now.
#[wasm_bindgen(js_name = readNonce)]
pub fn read_nonce(lease: u32, number: u32) -> Result<u32, JsValue> {
    entered();
    let at = lease;
    let lease = of(at)?;
    let work = async move {
        lease.read_nonce().await?;
        Ok(Answer::Value(facts(at, &lease)))
    };
    Ok(call(number, Box::pin(work)))
}

/// Frees what the face has let go. A lease that is still held is given back.
#[wasm_bindgen(js_name = freeLease)]
pub fn free_lease(number: u32) {
    entered();
    drop(LEASES.with(|leases| leases.take(number)));
}

fn release_options(options: &JsValue) -> Result<ReleaseOptions, Failure> {
    if options.is_undefined() {
        return Ok(ReleaseOptions::default());
    }
    Ok(ReleaseOptions::read(&value::options(options)?, UNIT)?)
}

fn rewind(options: &JsValue) -> Result<bool, Failure> {
    let options = value::options(options)?;
    let mut options = Options::of_call(&options)?;
    let rewind = options.take("rewind", Value::as_bool)?;
    options.end()?;
    Ok(rewind.unwrap_or(false))
}
