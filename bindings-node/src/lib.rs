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

/// One thread does the work of this library: it is waiting for a store, and more threads only wake each other.
#[napi_derive::module_init]
fn init() {
    // Without a runtime of its own the addon has that of napi.
    if let Ok(runtime) = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("leasehold")
        .enable_all()
        .build()
    {
        napi::bindgen_prelude::create_custom_tokio_runtime(runtime);
    }
}

/// The version of the addon, which the face compares with its own.
#[napi(catch_unwind)]
pub fn version() -> &'static str {
    hit("version");
    env!("CARGO_PKG_VERSION")
}
