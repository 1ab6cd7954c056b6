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
                host::failure(error.code().as_str(), error.message(), error.field().map(str::to_owned))
            }
            Failure::Passed(exception) => host::passed(&exception),
        }
    }
}
