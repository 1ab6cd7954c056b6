//! Calls of asyncio: a future of Rust is polled on the thread of the event loop, a future of asyncio gets its outcome.

use leasehold::Code;
use leasehold::client::Begun;
use pyo3::prelude::*;
use pyo3::{IntoPyObjectExt, PyTraverseError, PyVisit, intern};

use crate::bridge::Bridge;
use crate::errors::Failure;
use crate::granted::Granted;
use crate::guard::{guard, guarded};
use crate::process::{self, Homebound};

/// Starts a call on the running event loop. Gives its result if it is there at once, else a [`Pending`] to be awaited.
pub fn start<T>(
    py: Python<'_>,
    future: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<Py<PyAny>, Failure>
where
    T: for<'py> IntoPyObjectExt<'py> + Send + 'static,
{
    let bridge = Bridge::running(py)?;
    let begun = bridge.get().calls.begin(guarded(async {
        let value = future.await?;
        // The loop's thread, which polls this, has the interpreter.
        Ok(Python::attach(|py| value.into_py_any(py))?)
    }));
    let number = match begun {
        Begun::Ended(outcome) => return outcome,
        Begun::UnderWay(number) => number,
    };
    process::confirm()?;
    let future = Bridge::promise(&bridge, number)?;
    let number = Homebound::new(number, Code::Lost, "call");
    Ok(Pending { bridge: bridge.unbind(), number, future }.into_py_any(py)?)
}

/// A call that is under way, and is dropped with this.
#[pyclass(frozen, module = "leasehold._leasehold")]
pub struct Pending {
    bridge: Py<Bridge>,
    // A fork has the call too, and must not drop it: that would act on behalf of the parent.
    number: Homebound<u64>,
    future: Py<PyAny>,
}

impl Pending {
    fn give_up(&self) -> Result<(), Failure> {
        self.number.get().map(|number| self.bridge.get().give_up(*number))
    }
}

#[pymethods]
impl Pending {
    /// The future of asyncio that gets the result.
    #[getter]
    fn future(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| Ok(self.future.clone_ref(py)))
    }

    /// Drops the call; if it has ended, what it was granted goes back at once: whoever keeps the exception of the caller, or its
    /// task, keeps the future too.
    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        guard(|| {
            self.give_up()?;
            let future = self.future.bind(py);
            let has = |what| future.call_method0(what)?.is_truthy();
            if has(intern!(py, "done"))?
                && !has(intern!(py, "cancelled"))?
                && future.call_method0(intern!(py, "exception"))?.is_none()
            {
                let result = future.call_method0(intern!(py, "result"))?;
                if let Ok(granted) = result.cast::<Granted>() {
                    granted.get().give_back();
                }
            }
            Ok(())
        })
    }

    /// The future has what its caller waits for, and an error with that the frames of the caller, which may have this.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.bridge)?;
        visit.call(&self.future)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // In a fork there is nothing to drop.
        let _ = self.give_up();
    }
}
