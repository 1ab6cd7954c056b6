//! Errors: those of the core, and the one place where a code becomes a Python class.

use leasehold::{Code, Error};
use pyo3::intern;
use pyo3::prelude::*;

/// Why something did not succeed, before it is a Python exception.
#[derive(Debug)]
pub enum Failure {
    /// An error of the library and the exception that led to it, if there was one.
    Ours(Error, Option<Box<PyErr>>),
    /// An exception of somebody else.
    Theirs(Box<PyErr>),
}

impl Failure {
    /// A failure of the given kind.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error::new(code, message).into()
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Ours(error, None)
    }
}

impl From<PyErr> for Failure {
    fn from(error: PyErr) -> Self {
        Self::Theirs(Box::new(error))
    }
}

impl From<Failure> for PyErr {
    fn from(failure: Failure) -> Self {
        let (error, cause) = match failure {
            Failure::Ours(error, cause) => (error, cause),
            Failure::Theirs(error) => return *error,
        };
        let raised = class_of(error.code(), error.message().to_owned());
        if error.field().is_some() || cause.is_some() {
            Python::attach(|py| {
                if let Some(field) = error.field() {
                    // Exceptions take attributes; were it otherwise, the message names the field too.
                    let _ = raised.value(py).setattr(intern!(py, "field"), field);
                }
                raised.set_cause(py, cause.map(|cause| *cause));
            });
        }
        raised
    }
}

macro_rules! classes {
    ($($class:ident),* $(,)?) => {
        mod classes {
            $(pyo3::import_exception!(leasehold.errors, $class);)*
        }

        fn class_of(code: Code, message: String) -> PyErr {
            match code {
                $(Code::$class => classes::$class::new_err(message),)*
            }
        }
    };
}

classes! {
    TimedOut,
    Cancelled,
    Lost,
    StoreUnavailable,
    Exhausted,
    Busy,
    Insufficient,
    LockedUntil,
    Limited,
    InvalidArgument,
    Stalled,
    NonceUnavailable,
    Internal,
}
