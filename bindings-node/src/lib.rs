//! The Node addon behind the npm package `leasehold`. It converts values and errors and holds no rule.
//!
//! A panic must reach JavaScript as an error and leave the addon working:
//!
//! - Every export carries `#[napi(catch_unwind)]`, asynchronous ones too: their body is guarded by the
//!   runtime, but the conversion of their arguments is not. `test/exports.test.ts` reads the sources for it.
//! - An asynchronous export returns an `Answer`, and takes and returns only `Value` and plain types: what
//!   converts a result runs outside every guard but theirs.
//! - State whose `Drop` runs code is held in `Kept`: the garbage collector drops it outside every guard.

#![cfg_attr(not(feature = "trial"), allow(dead_code, reason = "the first real exports will use it all"))]

mod answer;
mod cancel;
mod kept;
#[cfg(feature = "trial")]
mod trial;
mod value;

use napi_derive::napi;

/// The version of the addon, which the face compares with its own.
#[napi(catch_unwind)]
pub fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}
