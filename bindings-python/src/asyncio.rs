//! Calls of asyncio: a future of Rust is polled on the thread of the event loop, a future of asyncio gets its outcome.
//!
//! What the loop itself does is Python's, see `_settle.py`: at the interpreter's exit a daemon thread may be ended there, which no
//! frame of Rust below survives.

use std::sync::Arc;

use leasehold::Code;
use leasehold::runtime::Begun;
use pyo3::prelude::*;
use pyo3::{IntoPyObjectExt, PyTraverseError, PyVisit, intern};

use crate::bridge::Bridge;
use crate::errors::Failure;
use crate::granted::Granted;
use crate::guard::{guard, guarded};
use crate::kept::Seen;
use crate::process::{self, Homebound};

/// Starts a call on the running event loop. Gives its result if it is there at once, else a [`Pending`], whose caller says at once
/// which future is to get it. What the call takes at its end is kept meanwhile.
pub fn start<T>(
    py: Python<'_>,
    future: impl Future<Output = Result<T, Failure>> + Send + 'static,
    kept: Option<Arc<dyn Seen>>,
) -> Result<Py<PyAny>, Failure>
where
    T: for<'py> IntoPyObjectExt<'py> + Send + 'static,
{
    let bridge = Bridge::running(py)?;
    let begun = bridge.get().calls()?.begin(guarded(async {
        let value = future.await?;
        // The loop's thread, which polls this, has the interpreter.
        Ok(Python::attach(|py| value.into_py_any(py))?)
    }));
    let number = match begun {
        Begun::Ended(outcome) => return outcome,
        Begun::UnderWay(number) => number,
    };
    process::confirm()?;
    bridge.get().begun(number);
    let number = Homebound::new(number, Code::Lost, "call");
    Ok(Pending { bridge: bridge.unbind(), number, kept }.into_py_any(py)?)
}

/// A call that is under way, and is dropped with this.
#[pyclass(frozen, module = "leasehold._leasehold")]
pub struct Pending {
    bridge: Py<Bridge>,
    // A fork has the call too, and must not drop it: that would act on behalf of the parent.
    number: Homebound<u64>,
    kept: Option<Arc<dyn Seen>>,
}

impl Pending {
    fn give_up(&self) -> Result<(), Failure> {
        self.number.get().map(|number| self.bridge.get().give_up(*number))
    }
}

#[pymethods]
impl Pending {
    /// This future of asyncio gets the result. Gives the bridge if the loop, whose time this is, is to be told that it has calls.
    fn expect(&self, py: Python<'_>, future: Py<PyAny>, now: f64) -> PyResult<Option<Py<Bridge>>> {
        guard(|| {
            let tells = self.bridge.get().expect(*self.number.get()?, future, now);
            Ok(tells.then(|| self.bridge.clone_ref(py)))
        })
    }

    /// Drops the call; if it has ended, what its future was granted goes back at once: whoever keeps the task of the caller keeps
    /// the future too.
    fn abort(&self, future: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        guard(|| {
            self.give_up()?;
            let Some(future) = future else { return Ok(()) };
            let py = future.py();
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

    /// The bridge has the future, and that the task that waits for it, which has this.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.bridge)?;
        self.kept.as_ref().map_or(Ok(()), |kept| kept.traverse(&visit))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        // In a fork there is nothing to drop.
        let _ = self.give_up();
    }
}
