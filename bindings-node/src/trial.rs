//! Exports for the tests only: panics on demand, values there and back.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

use napi_derive::napi;

use crate::answer::Answer;
use crate::calls;
use crate::value::{Arg, Out};

static ARMED: AtomicBool = AtomicBool::new(false);
static EXPORT: Mutex<String> = Mutex::new(String::new());

/// Makes an export panic the next time it is called, from whichever thread.
#[napi(catch_unwind)]
pub fn arm(export: String) {
    *EXPORT.lock().unwrap_or_else(PoisonError::into_inner) = export;
    ARMED.store(true, Relaxed);
}

/// Whether the panic is still to come.
#[napi(catch_unwind)]
pub fn armed() -> bool {
    ARMED.load(Relaxed)
}

/// Panics if this export is armed.
pub fn hit(export: &str) {
    if ARMED.load(Relaxed) && *EXPORT.lock().unwrap_or_else(PoisonError::into_inner) == export {
        ARMED.store(false, Relaxed);
        panic!("on purpose");
    }
}

/// How many calls are under way in this environment.
#[napi(catch_unwind)]
pub fn under_way() -> napi::Result<u32> {
    calls::under_way()
}

/// Whether anybody ever looks for an answer.
#[napi(catch_unwind)]
pub fn looks() -> bool {
    leasehold::runtime::is_parallel()
}

/// There and back.
#[napi(catch_unwind)]
pub fn echo(value: Arg) -> Answer<Out> {
    Answer(value.named("value").map(Out))
}

/// Performs the steps of a transcript on a fresh pool, and gives the answers.
#[napi(catch_unwind)]
pub fn replay(steps: Arg) -> Answer<Out> {
    Answer(steps.named("steps").and_then(|steps| leasehold::slots::transcript::replay(&steps)).map(Out))
}

/// Performs the steps of a transcript of limits on a fresh ledger, and gives the answers.
#[napi(catch_unwind)]
pub fn replay_limits(steps: Arg) -> Answer<Out> {
    Answer(steps.named("steps").and_then(|steps| leasehold::limits::transcript::replay(&steps)).map(Out))
}

/// Performs the steps of a transcript of selections on a fresh process, and gives the answers.
#[napi(catch_unwind)]
pub fn replay_tokens(steps: Arg) -> Answer<Out> {
    Answer(steps.named("steps").and_then(|steps| leasehold::tokens::transcript::replay(&steps)).map(Out))
}

/// Panics while its argument is converted, before there is a future.
#[napi(catch_unwind)]
pub async fn panic_argument(_trap: Trap) -> Answer<u32> {
    Answer(Ok(1))
}

/// Panics while its result is converted, after the future has ended.
#[napi(catch_unwind)]
pub async fn panic_result() -> Answer<Trap> {
    Answer(Ok(Trap))
}

/// Panics whichever way it is converted.
pub struct Trap;

#[allow(unsafe_code, reason = "napi declares the conversions unsafe; these only panic")]
mod trap {
    use super::Trap;
    use napi::Result;
    use napi::bindgen_prelude::{FromNapiValue, ToNapiValue, sys};

    impl FromNapiValue for Trap {
        unsafe fn from_napi_value(_: sys::napi_env, _: sys::napi_value) -> Result<Self> {
            panic!("on purpose")
        }
    }

    impl ToNapiValue for Trap {
        unsafe fn to_napi_value(_: sys::napi_env, _: Self) -> Result<sys::napi_value> {
            panic!("on purpose")
        }
    }
}
