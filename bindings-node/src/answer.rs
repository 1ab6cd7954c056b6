//! What an asynchronous export resolves to.

use std::panic::{AssertUnwindSafe, catch_unwind};

use napi::bindgen_prelude::{Object, ToNapiValue, panic_to_error, sys};
use napi::{Env, Result};

/// Why an export failed: one of the stable codes and a sentence that says what to do next.
#[derive(Debug)]
pub struct Failure {
    pub code: &'static str,
    pub message: String,
}

/// A value or a failure, carried as data.
///
/// napi keeps a code of its own choosing on the rejection of a promise, so an asynchronous export never
/// rejects: it resolves to `{ value }` or `{ failure }`, and the face throws. A rejection that does reach
/// the face is therefore a panic or a value that could not be converted.
pub struct Answer<T>(pub std::result::Result<T, Failure>);

#[allow(unsafe_code, reason = "napi declares this conversion unsafe; only its own functions are called here")]
impl<T: ToNapiValue> ToNapiValue for Answer<T> {
    unsafe fn to_napi_value(env: sys::napi_env, answer: Self) -> Result<sys::napi_value> {
        // The runtime converts the result of a future outside every guard of its own: a panic there would
        // end the process.
        contain(|| {
            let wrapped = Env::from_raw(env);
            let object = answer.into_object(&wrapped)?;
            // SAFETY: the object was made in this environment, in this scope.
            unsafe { Object::to_napi_value(env, object) }
        })
    }
}

/// Turns a panic into the error that napi itself makes of one.
pub fn contain<T>(work: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(panic_to_error).flatten()
}

impl<T: ToNapiValue> Answer<T> {
    fn into_object(self, env: &Env) -> Result<Object<'_>> {
        let mut object = Object::new(env)?;
        match self.0 {
            Ok(value) => object.set("value", value)?,
            Err(failure) => {
                let mut inner = Object::new(env)?;
                inner.set("code", failure.code)?;
                inner.set("message", failure.message)?;
                object.set("failure", inner)?;
            }
        }
        Ok(object)
    }
}
