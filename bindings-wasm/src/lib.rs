//! The WebAssembly module behind the npm package `leasehold-wasm`. It converts values and errors and holds no rule; the face
//! spells names as JavaScript does.
//!
//! A panic is a trap on this target: nothing unwinds, so locks stay locked and the instance is useless. The
//! panic hook tells the face what happened; the face throws it as an error and builds the instance anew. For that:
//!
//! - Every way in (an export, a settled promise, a timer, a task's turn) is called by the face, in its guard.
//!   So futures run on `tasks` and wait by `host`, never by the `futures` of js-sys: those are called by the
//!   JavaScript engine, where a trap would end the process and leave the promise waiting for ever.
//! - No import throws, or it is marked `catch`: an exception that passes through Rust frames skips their `Drop`.
//! - No class is exported: its `free` and its finalizer are outside the guard, and on a handle of a former instance
//!   they free what is not theirs. Things are numbers here and an `Owned` in the face.
//! - An export's error is made by `host::failure`, or by `host::passed` if it is the caller's own exception.

#[cfg(feature = "full")]
mod checks;
#[cfg(feature = "full")]
mod doctor;
mod failure;
mod host;
mod lease;
mod leasehold;
mod life;
#[cfg(feature = "full")]
mod limit;
mod lock;
mod names;
mod nonces;
mod pool;
#[cfg(feature = "full")]
mod quorum;
mod runtime;
mod shelf;
mod tasks;
mod things;
#[cfg(feature = "full")]
mod token_source;
#[cfg(feature = "full")]
mod tokens;
mod transport;
#[cfg(feature = "trial")]
mod trial;
mod value;

use wasm_bindgen::prelude::wasm_bindgen;

#[cfg(target_arch = "wasm32")]
#[global_allocator]
static HEAP: rlsf::SmallGlobalTlsf = rlsf::SmallGlobalTlsf::new();

/// The version of the module.
#[wasm_bindgen]
pub fn version() -> String {
    entered();
    env!("CARGO_PKG_VERSION").into()
}

/// Runs whenever an instance is made, also after a trap.
#[wasm_bindgen(start)]
fn start() {
    std::panic::set_hook(Box::new(|panic| host::panicked(&panic.to_string())));
}

/// Called first by every export.
#[inline(never)]
fn entered() {
    runtime::tick();
    #[cfg(feature = "trial")]
    trial::entered();
}
