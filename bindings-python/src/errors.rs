//! Errors: those of the core on their way to Python, whose half of the package has a class for each code.

use std::convert::identity;

use leasehold::client::loss_only;
use leasehold::error::Result as CoreResult;
use leasehold::{Code, Error, SECOND};
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyTuple};

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
        match failure {
            Failure::Ours(error, cause) => Python::attach(|py| {
                let raised = made(py, &error).unwrap_or_else(|defect| defect);
                if let Some(cause) = cause {
                    raised.set_cause(py, Some(*cause));
                }
                raised
            }),
            Failure::Theirs(error) => *error,
        }
    }
}

/// The beginning of a block, which must not run without what it is to run under.
pub fn still_held(held: bool, noun: &str) -> Result<(), Failure> {
    let lost =
        || Failure::new(Code::Lost, format!("this {noun} is not held any more; the block needs a new one"));
    held.then_some(()).ok_or_else(lost)
}

/// What of the end of a block is to be told: everything to a block that raised, as a note, and else a loss only.
pub fn at_end(exception: &Bound<'_, PyTuple>) -> fn(CoreResult<()>) -> CoreResult<()> {
    if raised(exception).is_none() { loss_only } else { identity }
}

/// What comes of the end of a block. A loss is told before any error of the block, which is its context then; what else went wrong
/// is a note of what the block raised. What is no `Exception` is not for a library to replace: Ctrl-C, a cancellation, the end of
/// a generator.
pub fn weighed(
    exception: &Bound<'_, PyTuple>,
    outcome: Result<Py<PyAny>, Failure>,
) -> Result<Py<PyAny>, Failure> {
    let (failure, raised) = match (outcome, raised(exception)) {
        (Err(failure), Some(raised)) => (failure, raised),
        (outcome, _) => return outcome,
    };
    let py = exception.py();
    match failure {
        Failure::Ours(error, _) if error.code() != Code::Lost || !raised.is_instance_of::<PyException>() => {
            py.import("leasehold._settle")?.call_method1("note", (raised, Told(error)))?;
            Ok(py.None())
        }
        failure => {
            let error = PyErr::from(failure);
            // What Python itself does only for errors of its own functions.
            let _ = error.value(py).setattr("__context__", &raised);
            Err(error.into())
        }
    }
}

/// What the block raised, if it did: who ends it by hand may say nothing.
fn raised<'py>(exception: &Bound<'py, PyTuple>) -> Option<Bound<'py, PyAny>> {
    exception.get_item(1).ok().filter(|it| !it.is_none())
}

/// An error that is given and not raised.
pub struct Told(pub Error);

impl<'py> IntoPyObject<'py> for Told {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Ok(made(py, &self.0)?.into_value(py).into_bound(py).into_any())
    }
}

/// The classes of the codes, which are fetched before any error: one at the exit finds no module any more.
pub fn classes(py: Python<'_>) -> PyResult<&Bound<'_, PyDict>> {
    static CLASSES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    CLASSES.import(py, "leasehold.errors", "_CLASSES")
}

/// Runs no code of Python's: at the interpreter's exit a daemon thread may be ended there, which no frame of Rust below survives.
fn made(py: Python<'_>, error: &Error) -> PyResult<PyErr> {
    let raised = classes(py)?.as_any().get_item(error.code().as_str())?.call1((error.message(),))?;
    if let Some(field) = error.field() {
        raised.setattr(intern!(py, "field"), field)?;
    }
    if let Some(time) = error.retry_after_micros() {
        raised.setattr(intern!(py, "retry_after"), time as f64 / SECOND as f64)?;
    }
    Ok(PyErr::from_value(raised))
}
