//! The Node addon behind the npm package `leasehold`. It converts values and errors and holds no rule.
//!
//! A panic must reach JavaScript as an error and leave the addon working:
//!
//! - Every export carries `#[napi(catch_unwind)]`, asynchronous ones too: their body is guarded by the
//!   runtime, but the conversion of their arguments is not. `test/exports.test.ts` reads the sources for it.
//! - What converts a result runs outside every guard but that of `Answer` and `Out`.
//! - State whose `Drop` runs code is held in `Kept`: the end of an environment drops it outside every guard.
//! - Every export begins with `hit`, by which the tests make it panic.

mod answer;
mod calls;
mod checks;
mod granted;
mod kept;
mod lease;
mod leasehold;
mod life;
mod limit;
mod lock;
mod nonce_source;
mod pool;
mod quorum;
mod registers;
mod runtime;
mod selection;
#[cfg(unix)]
mod sockets;
mod table;
mod token_source;
mod tokens;
#[cfg(feature = "trial")]
mod trial;
mod value;

use napi_derive::napi;

#[cfg(feature = "trial")]
use trial::hit;

/// Where the tests make an export panic.
#[cfg(not(feature = "trial"))]
fn hit(_export: &str) {}

#[napi_derive::module_init]
fn init() {
    runtime::for_napi();
}

/// The version of the addon, which the face compares with its own.
#[napi(catch_unwind)]
pub fn version() -> &'static str {
    hit("version");
    env!("CARGO_PKG_VERSION")
}
