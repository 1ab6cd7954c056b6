//! Calls of asyncio: a future of Rust runs on Tokio, a future of asyncio gets its outcome.

use std::future::Future;
use std::task::{Context, Poll, Waker};

use leasehold::Code;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use tokio::task::AbortHandle;

use crate::bridge::Bridge;
use crate::errors::Failure;
use crate::guard::{guard, guarded};
use crate::process::{self, Homebound};
use crate::runtime;

/// Starts a call on the running event loop. Gives its result if it is there at once, else a [`Pending`] to be awaited.
pub fn start<T>(
    py: Python<'_>,
    future: impl Future<Output = Result<T, Failure>> + Send + 'static,
) -> Result<Py<PyAny>, Failure>
where
    T: for<'py> IntoPyObjectExt<'py> + Send + 'static,
{
    let local = runtime::local(py)?;
    let mut future = Box::pin(guarded(future));
    {
        let _context = local.tokio.enter();
        if let Poll::Ready(outcome) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return Ok(outcome?.into_py_any(py)?);
        }
    }
    process::confirm()?;
    let bridge = Bridge::running(py)?;
    let future_of_asyncio = bridge.get().create_future(py)?;
    let inbox = bridge.get().inbox.clone();
    let number = inbox.number();
    bridge.get().keep(number, future_of_asyncio.clone_ref(py));
    let task = local.tokio.spawn(async move {
        let outcome = future.await;
        inbox.post(Box::new(move |py, bridge| bridge.settle(py, number, outcome)));
    });
    let pending = Pending {
        bridge: bridge.unbind(),
        number,
        future: future_of_asyncio,
        task: Homebound::new(task.abort_handle()),
    };
    Ok(pending.into_py_any(py)?)
}

/// A call that is under way.
#[pyclass(frozen, module = "leasehold._leasehold")]
pub struct Pending {
    bridge: Py<Bridge>,
    number: u64,
    future: Py<PyAny>,
    // A fork has no such task, and must not touch the queues of its parent's runtime.
    task: Homebound<AbortHandle>,
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
            self.task.get(Code::Lost, "call")?.abort();
            self.bridge.get().take(self.number);
            Ok(())
        })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Ok(task) = self.task.get(Code::Lost, "call") {
            task.abort();
        }
    }
}
