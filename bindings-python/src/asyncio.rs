//! Calls of asyncio: a future of Rust is polled on the thread of the event loop, a future of asyncio gets its outcome.

use std::future::Future;

use leasehold::Code;
use leasehold::client::Begun;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::bridge::{Bridge, Outcome};
use crate::errors::Failure;
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
    let number = match bridge.get().begin(async move {
        let value = guarded(future).await?;
        Ok(Box::new(move |py: Python<'_>| value.into_py_any(py)) as Outcome)
    }) {
        Begun::Ended(outcome) => return Ok(outcome?(py)?),
        Begun::UnderWay(number) => number,
    };
    let under_way =
        UnderWay { bridge: bridge.clone().unbind(), number: Homebound::new(number, Code::Lost, "call") };
    process::confirm()?;
    let future = bridge.get().create_future(py)?;
    bridge.get().keep(number, future.clone_ref(py));
    Bridge::end_turn(&bridge)?;
    Ok(Pending { under_way, future }.into_py_any(py)?)
}

/// A call that is under way.
#[pyclass(frozen, module = "leasehold._leasehold")]
pub struct Pending {
    under_way: UnderWay,
    future: Py<PyAny>,
}

/// Drops the call with itself.
struct UnderWay {
    bridge: Py<Bridge>,
    // A fork has the call too, and must not drop it: that would act on behalf of the parent.
    number: Homebound<u64>,
}

#[pymethods]
impl Pending {
    /// The future of asyncio that gets the result.
    #[getter]
    fn future(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| Ok(self.future.clone_ref(py)))
    }

    /// Drops the call. Without effect once it has ended.
    fn abort(&self) -> PyResult<()> {
        guard(|| {
            self.under_way.bridge.get().give_up(*self.under_way.number.get()?);
            Ok(())
        })
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Ok(number) = self.number.get() {
            self.bridge.get().give_up(*number);
        }
    }
}
