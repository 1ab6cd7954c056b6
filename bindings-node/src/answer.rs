//! What an export gives back.

use std::panic::{AssertUnwindSafe, catch_unwind};

use leasehold::error::Result as CoreResult;
use leasehold::{Code, Error, MILLISECOND};
use napi::bindgen_prelude::{Object, ToNapiValue, panic_to_error, sys};
use napi::{Env, Result};

/// A value, or a failure carried as data: a JavaScript `Error` with `code` and perhaps `field`.
///
/// napi keeps a code of its own choosing on the rejection of a promise, so an export neither throws nor
/// rejects: the face throws what it is given. What does reach the face as an exception is therefore a panic,
/// or thrown by the caller's own code.
pub struct Answer<T>(pub CoreResult<T>);

#[allow(unsafe_code, reason = "napi declares this conversion unsafe; only its own functions are called here")]
impl<T: ToNapiValue> ToNapiValue for Answer<T> {
    unsafe fn to_napi_value(env: sys::napi_env, answer: Self) -> Result<sys::napi_value> {
        // The runtime converts the result of a future outside every guard of its own: a panic there would
        // end the process.
        contain(|| match answer.0 {
            // SAFETY: the value is made in the environment of this call.
            Ok(value) => unsafe { T::to_napi_value(env, value) },
            Err(error) => {
                let wrapped = Env::from_raw(env);
                let failure = failure(&wrapped, &error)?;
                // SAFETY: the object was made in this environment, in this scope.
                unsafe { Object::to_napi_value(env, failure) }
            }
        })
    }
}

fn failure<'a>(env: &'a Env, error: &Error) -> Result<Object<'a>> {
    let mut object = env.create_error(napi::Error::from_reason(error.message()))?;
    object.set("code", error.code().as_str())?;
    if let Some(field) = error.field() {
        object.set("field", field)?;
    }
    if let Some(time) = error.retry_after_micros() {
        object.set("retryAfter", time as f64 / MILLISECOND as f64)?;
    }
    Ok(object)
}

/// Turns a panic into the error that napi itself makes of one.
pub fn contain<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(panic_to_error).flatten()
}

/// The face asked for something that it cannot have.
pub fn misused(message: &str) -> Error {
    Error::new(Code::Internal, format!("{message}; report this as a bug"))
}
