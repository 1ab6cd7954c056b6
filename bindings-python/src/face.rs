//! The two ways to wait, and the types of the core that this package uses.

use std::sync::Arc;

use leasehold::client::{Unit, read_wait};
use leasehold::error::Result as CoreResult;
use leasehold::value::Value;
use leasehold::{Error, Micros};
pub use leasehold::{
    NativeLease as CoreLease, NativeLimit as CoreLimit, NativeLock as CoreLock, NativeLocked as CoreLocked,
    NativePool as CorePool, NativeReservation as CoreReservation, NativeSelection as CoreSelection,
    NativeTokens as CoreTokens,
};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::asyncio::start;
use crate::blocking::{Effort, wait};
use crate::callback::with_cause;
use crate::errors::{Failure, Told};
use crate::kept::Seen;
use crate::process::Homebound;
use crate::value::{Arg, Plain};

/// How calls of an object that take time are waited for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// The calling thread waits and gets the result.
    Blocking,
    /// The caller gets the result, or a `Pending` to be awaited on the running loop.
    Asyncio,
}

impl Face {
    /// Runs a call of the core. Of what it gives, a thread that waited gets what `take` makes of it.
    pub fn run<T, U>(
        self,
        py: Python<'_>,
        effort: Effort,
        call: impl Future<Output = CoreResult<T>> + Send + 'static,
        take: impl FnOnce(T) -> Result<U, Failure>,
    ) -> Result<Py<PyAny>, Failure>
    where
        T: for<'py> IntoPyObjectExt<'py> + Send + 'static,
        U: for<'py> IntoPyObjectExt<'py>,
    {
        self.begin(py, effort, None, call, take)
    }

    /// The same, where the call may take something of Python's at its end.
    pub fn begin<T, U>(
        self,
        py: Python<'_>,
        effort: Effort,
        kept: Option<Arc<dyn Seen>>,
        call: impl Future<Output = CoreResult<T>> + Send + 'static,
        take: impl FnOnce(T) -> Result<U, Failure>,
    ) -> Result<Py<PyAny>, Failure>
    where
        T: for<'py> IntoPyObjectExt<'py> + Send + 'static,
        U: for<'py> IntoPyObjectExt<'py>,
    {
        let call = with_cause(call);
        match self {
            Self::Blocking => Ok(take(wait(py, effort, call)?)?.into_py_any(py)?),
            Self::Asyncio => start(py, call, kept),
        }
    }

    /// Runs a call of the core that gives plain data.
    pub fn value<T: Into<Value>>(
        self,
        py: Python<'_>,
        call: impl Future<Output = CoreResult<T>> + Send + 'static,
    ) -> Result<Py<PyAny>, Failure> {
        // In a box: each future around another would have a copy of it.
        let call = Box::pin(call);
        self.run(py, Effort::Brief, async { call.await.map(Plain::from) }, Ok)
    }

    /// What it says of a whole pool or wallet, which may be long to count.
    pub fn survey<C: Clone, T: Into<Value>, F>(
        self,
        py: Python<'_>,
        core: &Homebound<C>,
        call: impl FnOnce(C) -> F,
    ) -> Result<Py<PyAny>, Failure>
    where
        F: Future<Output = CoreResult<T>> + Send + 'static,
    {
        let call = Box::pin(call(core.get()?.clone()));
        self.run(py, Effort::Long, async { call.await.map(Plain::from) }, Ok)
    }

    /// The same of what belongs to this process.
    pub fn ask<C: Clone, T: Into<Value>, F>(
        self,
        py: Python<'_>,
        core: &Homebound<C>,
        call: impl FnOnce(C) -> F,
    ) -> Result<Py<PyAny>, Failure>
    where
        F: Future<Output = CoreResult<T>> + Send + 'static,
    {
        self.value(py, call(core.get()?.clone()))
    }

    /// Waits for what a holder may be told, for this many seconds at most: gives the error, or None.
    pub fn told<F: Future<Output = Option<Error>> + Send + 'static>(
        self,
        py: Python<'_>,
        timeout: Option<Arg>,
        word: impl FnOnce(Option<Micros>) -> Result<F, Failure>,
    ) -> Result<Py<PyAny>, Failure> {
        let word = word(read_wait(&timeout.unwrap_or_default().named("timeout")?, Unit::Seconds)?)?;
        self.run(py, Effort::Brief, async move { Ok(word.await.map(Told)) }, Ok)
    }
}
