//! Why an export failed.

use wasm_bindgen::JsValue;

use crate::host;

/// One of the stable codes and a sentence that says what to do next, or the caller's own exception.
#[derive(Debug)]
pub enum Failure {
    Ours { code: &'static str, message: String },
    Passed(JsValue),
}

impl Failure {
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Failure::Ours { code, message: message.into() }
    }
}

impl From<Failure> for JsValue {
    fn from(failure: Failure) -> JsValue {
        match failure {
            Failure::Ours { code, message } => host::failure(code, &message),
            Failure::Passed(exception) => host::passed(&exception),
        }
    }
}
