//! What a lease does.

use std::cell::RefCell;
use std::rc::Rc;

use leasehold::client::{AcquireOptions, ReleaseOptions};
use leasehold::value::{Options, Value};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::{DONE, ENDED, Failure, NOTHING};
use crate::leasehold::UNIT;
use crate::names::Names;
use crate::tasks::{Answer, call};
use crate::things::{HostLease, Thing, lease as of, put, take};
use crate::{entered, host, value};

thread_local! {
    static NAMES: RefCell<Names> = const { RefCell::new(Names::new()) };
}

/// A lease on its way to its caller. Given back with its nonce unused if it does not arrive.
pub struct Granted(Option<HostLease>);

impl Granted {
    pub fn new(lease: HostLease) -> Self {
        Granted(Some(lease))
    }

    /// Tells the face what it is, in a call at once.
    pub fn say(self) -> u32 {
        self.arrive(NOTHING, |number, lease| {
            tell(number, lease, host::say_lease);
            DONE
        })
    }

    fn arrive<T>(mut self, nothing: T, tell: impl FnOnce(u32, &HostLease) -> T) -> T {
        self.0.take().map_or(nothing, |lease| {
            let lease = Rc::new(lease);
            let number = put(Thing::Lease(lease.clone()));
            tell(number, &lease)
        })
    }
}

impl From<Granted> for JsValue {
    fn from(granted: Granted) -> JsValue {
        granted.arrive(JsValue::UNDEFINED, facts)
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        if let Some(lease) = &self.0 {
            lease.unseen();
        }
    }
}

fn facts(number: u32, lease: &HostLease) -> JsValue {
    tell(number, lease, host::lease)
}

fn tell<T>(number: u32, lease: &HostLease, to: fn(u32, &JsValue, u64, Option<u64>, bool) -> T) -> T {
    NAMES.with_borrow_mut(|names| {
        to(number, names.value(lease.slot()), lease.fence(), lease.nonce(), lease.in_doubt())
    })
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
    Ok(of(lease)?.unused().map_err(Failure::from)?)
}

#[wasm_bindgen]
pub fn rejected(lease: u32, expected: &JsValue) -> Result<(), JsValue> {
    entered();
    Ok(of(lease)?.rejected(value::whole(expected, "expected")?).map_err(Failure::from)?)
}

#[wasm_bindgen]
pub fn unknown(lease: u32) -> Result<(), JsValue> {
    entered();
    Ok(of(lease)?.unknown().map_err(Failure::from)?)
}

/// Gives the slot back; the number is free from then on.
#[wasm_bindgen]
pub fn release(lease: u32, options: &JsValue, number: u32) -> Result<u32, JsValue> {
    entered();
    let options = release_options(options)?;
    let lease = taken(lease)?;
    let work = async move {
        lease.release_with(options).await?;
        Ok(Answer::Nothing)
    };
    Ok(call(number, Box::pin(work)))
}

/// The same at once, for a store in memory; the face hears the error that came of it, if one did. Does nothing if the store is
/// elsewhere.
#[wasm_bindgen(js_name = releaseNow)]
pub fn release_now(lease: u32) -> u32 {
    entered();
    released_now(lease, Ok(ReleaseOptions::default()))
}

/// The same with options.
#[wasm_bindgen(js_name = releaseNowWith)]
pub fn release_now_with(lease: u32, options: &JsValue) -> u32 {
    entered();
    released_now(lease, release_options(options))
}

fn released_now(number: u32, options: Result<ReleaseOptions, Failure>) -> u32 {
    match options.and_then(|options| Ok(of(number)?.release_now(options))) {
        Err(failure) => failure.said(),
        Ok(None) => NOTHING,
        Ok(Some(result)) => {
            take(number);
            let Err(error) = result else { return DONE };
            Failure::from(error).said();
            ENDED
        }
    }
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
        lease.renew_by(ttl).await?;
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

/// The lease, whose number is free from then on.
fn taken(number: u32) -> Result<Rc<HostLease>, Failure> {
    let lease = of(number)?;
    take(number);
    Ok(lease)
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
