//! What needs no store: the checks of fences, and the time to live that outlasts a chain of thieves.

use leasehold::fence;
use leasehold::handshake;
use napi::bindgen_prelude::BigInt;
use napi_derive::napi;

use crate::answer::Answer;
use crate::hit;
use crate::leasehold::UNIT;
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
