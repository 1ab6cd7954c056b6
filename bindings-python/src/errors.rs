//! Errors: a stable code and a message, and the one place where a code becomes a Python class.

use pyo3::prelude::*;

/// Why something did not succeed, before it is a Python exception.
#[derive(Debug)]
pub struct Failure {
    code: &'static str,
    message: String,
    cause: Option<PyErr>,
}

impl Failure {
    /// A failure with one of the stable codes.
    pub fn new(code: &'static str, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), cause: None }
    }

    /// With the exception that led to it, which becomes the `__cause__`.
    pub fn caused_by(self, cause: PyErr) -> Self {
        Self { cause: Some(cause), ..self }
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let raised = class_of(failure.code, failure.message);
        if let Some(cause) = failure.cause {
            Python::attach(|py| raised.set_cause(py, Some(cause)));
        }
        raised
    }
}

macro_rules! classes {
    ($($code:literal => $class:ident),* $(,)?) => {
        mod classes {
            $(pyo3::import_exception!(leasehold.errors, $class);)*
        }

        /// All codes, as the Python side has to know them.
        #[cfg(feature = "trial")]
        pub const CODES: &[&str] = &[$($code),*];

        fn class_of(code: &str, message: String) -> PyErr {
            match code {
                $($code => classes::$class::new_err(message),)*
                unknown => classes::Internal::new_err(format!("{unknown}: {message}")),
            }
        }
    };
}

classes! {
    "timed_out" => TimedOut,
    "cancelled" => Cancelled,
    "lost" => Lost,
    "store_unavailable" => StoreUnavailable,
    "exhausted" => Exhausted,
    "busy" => Busy,
    "insufficient" => Insufficient,
    "locked_until" => LockedUntil,
    "limited" => Limited,
    "invalid_argument" => InvalidArgument,
    "stalled" => Stalled,
    "nonce_unavailable" => NonceUnavailable,
    "internal" => Internal,
}
