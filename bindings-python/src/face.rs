//! The two ways to wait, and the types of the core that this package uses.

use std::future::Future;
use std::sync::Arc;

use leasehold::client::TokioRuntime;
use leasehold::client::native::NativeStore;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::asyncio::start;
use crate::blocking::wait;
use crate::errors::Failure;

/// A pool of the core.
pub type CorePool = leasehold::Pool<NativeStore, TokioRuntime>;
/// A lease of the core.
pub type CoreLease = Arc<leasehold::Lease<NativeStore, TokioRuntime>>;

/// How calls of an object that take time are waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// The calling thread waits and gets the result.
    Blocking,
    /// The caller gets the result, or a `Pending` to be awaited on the running loop.
    Asyncio,
}

impl Face {
    /// Runs a call.
    pub fn run<T>(
        self,
        py: Python<'_>,
        call: impl Future<Output = Result<T, Failure>> + Send + 'static,
    ) -> Result<Py<PyAny>, Failure>
    where
        T: for<'py> IntoPyObjectExt<'py> + Send + 'static,
    {
        match self {
            Self::Blocking => Ok(wait(py, call)?.into_py_any(py)?),
            Self::Asyncio => start(py, call),
        }
    }
}
