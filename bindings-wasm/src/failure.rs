//! Why an export failed.

use leasehold::{Code, Error};
use wasm_bindgen::JsValue;

use crate::host;

/// A failure of the core's list, or the caller's own exception.
pub enum Failure {
    Ours(Error),
    Passed(JsValue),
}

impl Failure {
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Failure::Ours(Error::new(code, message))
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
                let retry_after = error.retry_after().map_or(-1.0, |time| time as f64);
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
