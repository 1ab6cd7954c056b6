//! What needs no store: the checks of fences, and the time to live that outlasts a chain of thieves.

use leasehold::fence;
use leasehold::handshake;
use napi::bindgen_prelude::BigInt;
use napi_derive::napi;

use crate::answer::{Answer, misused};
use crate::hit;
use crate::leasehold::UNIT;
use crate::table::{Thing, get};
use crate::value::Arg;

/// The highest fence from now on, unless the holder is late.
#[napi(catch_unwind)]
pub fn fence_admit(highest: Arg, fence: Arg) -> Answer<BigInt> {
    hit("fence_admit");
    let admit = || fence::admit(&highest.named("highest")?, &fence.named("fence")?).map(BigInt::from);
    Answer(admit())
}

/// The script for Redis and the condition in SQL.
#[napi(catch_unwind)]
pub fn fence_texts() -> Vec<&'static str> {
    hit("fence_texts");
    vec![fence::SCRIPT, fence::SQL]
}

/// The time to live that outlasts a chain of thieves.
#[napi(catch_unwind)]
pub fn recommended_ttl(options: Arg) -> Answer<f64> {
    hit("recommended_ttl");
    Answer(options.options().and_then(|options| handshake::recommended_ttl(&options, UNIT)))
}

/// The same by what was measured of a lock or a pool; nothing if nobody stole.
#[napi(catch_unwind)]
pub fn recommended_ttl_of(thing: u32, options: Arg) -> Answer<Option<f64>> {
    hit("recommended_ttl_of");
    let ttl = |options| match get(thing) {
        Some(Thing::Lock(lock)) => lock.recommended_ttl_by(&options, UNIT),
        Some(Thing::Pool(pool)) => pool.recommended_ttl_by(&options, UNIT),
        _ => Err(misused("neither a lock nor a pool")),
    };
    Answer(options.options().and_then(ttl))
}
