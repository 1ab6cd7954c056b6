//! Why an export failed.

use leasehold::{Code, Error};
use wasm_bindgen::JsValue;

use crate::host;

/// A failure of the core's list, or the caller's own exception.
pub enum Failure {
    Ours(Error),
    Passed(JsValue),
}

/// What a call at once gives, for which every value more between the module and JavaScript takes long: that it did nothing, that
/// it did, that it failed, that it gave something back and that failed. The face has the same numbers.
pub const NOTHING: u32 = 0;
pub const DONE: u32 = 1;
const FAILED: u32 = 2;
pub const ENDED: u32 = 3;

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Failure::Ours(Error::new(code, message))
    }

    /// What a call gives that failed: the face hears the error then.
    pub fn said(self) -> u32 {
        host::say(&self.into());
        FAILED
    }

    /// What it says.
    #[cfg(feature = "full")]
    pub fn words(self) -> String {
        match self {
            Failure::Ours(error) => error.message().to_owned(),
            Failure::Passed(exception) => host::words(&exception),
        }
    }

    /// The same failure, its argument named from further outside.
    pub fn within(self, outer: &str) -> Self {
        match self {
            Failure::Ours(error) => Failure::Ours(error.within(outer)),
            passed => passed,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Ours(error)
    }
}

impl From<Failure> for JsValue {
    fn from(failure: Failure) -> JsValue {
        match failure {
            Failure::Ours(error) => {
                let retry_after = error.retry_after_micros().map_or(-1.0, |time| time as f64);
                host::failure(
                    error.code().as_str(),
                    error.message(),
                    error.field().map(str::to_owned),
                    retry_after,
                )
            }
            Failure::Passed(exception) => host::passed(&exception),
        }
    }
}
