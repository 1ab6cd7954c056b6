//! From Tokio to an event loop.
//!
//! Each event loop has a [`Bridge`], and the bridge the calls that are under way, which are polled on the loop's thread. Only
//! the first of many that can go on wakes the loop, which then sees to all. The wake is a byte in a socket that the loop
//! watches, so that no thread of Tokio waits for the interpreter.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use leasehold::client::{Calls, Engine};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::{PyTraverseError, PyVisit};

use crate::bell::Bell;
use crate::errors::Failure;
use crate::guard::{guard, lock};
use crate::runtime;

/// What a call gives.
pub type Outcome = Result<Py<PyAny>, Failure>;

/// One event loop, as Rust sees it.
#[pyclass(frozen, module = "leasehold._leasehold")]
pub struct Bridge {
    event_loop: Py<PyAny>,
    create_future: Py<PyAny>,
    bell: Arc<Bell>,
    engine: &'static Engine,
    /// Those that are under way.
    pub calls: Calls<Outcome>,
    /// What waits for them: futures of asyncio, by the numbers of the calls.
    futures: Mutex<HashMap<u64, Py<PyAny>>>,
    /// Whether the loop will come to [`Self::answer`] without the bell.
    comes: AtomicBool,
}

impl Bridge {
    /// The bridge of the running loop, built at its first use.
    pub fn running(py: Python<'_>) -> PyResult<Bound<'_, Self>> {
        static GET_RUNNING_LOOP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let event_loop = GET_RUNNING_LOOP.import(py, "asyncio", "get_running_loop")?.call0()?;
        let bridges = runtime::local(py)?.bridges.bind(py);
        if let Some(bridge) = bridges.get_item(&event_loop)? {
            return Ok(bridge.cast_into()?);
        }
        // A new loop is the moment to let go of those that have closed.
        for known in bridges.keys() {
            if known.call_method0(intern!(py, "is_closed"))?.is_truthy()? {
                bridges.del_item(known)?;
            }
        }
        let bridge = Self::build(&event_loop)?;
        bridges.set_item(event_loop, &bridge)?;
        Ok(bridge)
    }

    fn build<'py>(event_loop: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let py = event_loop.py();
        let engine = runtime::local(py)?.engine;
        let bell = Arc::new(Bell::new()?);
        let ringer = bell.clone();
        let bridge = Self {
            event_loop: event_loop.clone().unbind(),
            create_future: event_loop.getattr("create_future")?.unbind(),
            bell: bell.clone(),
            engine,
            calls: Calls::new(engine.handle().clone(), move || ringer.ring()),
            futures: Mutex::default(),
            comes: AtomicBool::new(false),
        };
        let bridge = Bound::new(py, bridge)?;
        event_loop.call_method1("add_reader", (bell.ear(), bridge.getattr("answer")?))?;
        Ok(bridge)
    }

    /// A future of asyncio that gets the outcome of a call that is under way. What is called within one turn of the loop sets out
    /// together, at its end.
    pub fn promise(bridge: &Bound<'_, Self>, number: u64) -> PyResult<Py<PyAny>> {
        let (py, this) = (bridge.py(), bridge.get());
        this.engine.begin_call();
        let future = this.create_future.call0(py)?;
        lock(&this.futures).insert(number, future.clone_ref(py));
        if !this.comes.swap(true, Ordering::Relaxed) {
            let answer = bridge.getattr(intern!(py, "answer"))?;
            this.event_loop.call_method1(py, intern!(py, "call_soon"), (answer,))?;
        }
        Ok(future)
    }

    /// Drops a call. Without effect once it has ended.
    pub fn give_up(&self, number: u64) {
        if self.calls.give_up(number) {
            self.engine.end_calls(1);
        }
        let future = lock(&self.futures).remove(&number);
        // Not under the lock, at which the collector looks.
        drop(future);
    }

    /// Gives the future of a call its outcome. If its caller was cancelled, what the outcome holds is let go of right here.
    fn settle(&self, py: Python<'_>, number: u64, outcome: Outcome) -> PyResult<()> {
        let Some(future) = lock(&self.futures).remove(&number) else { return Ok(()) };
        let future = future.bind(py);
        if !future.call_method0(intern!(py, "done"))?.is_truthy()? {
            match outcome.map_err(PyErr::from) {
                Ok(value) => future.call_method1(intern!(py, "set_result"), (value,))?,
                Err(error) => future.call_method1(intern!(py, "set_exception"), (error,))?,
            };
        }
        Ok(())
    }
}

#[pymethods]
impl Bridge {
    /// Polls the calls that can go on, and tells of those that have ended. The loop calls it when the bell has rung, and at the
    /// end of a turn in which there were calls.
    fn answer(&self, py: Python<'_>) -> PyResult<()> {
        guard(|| {
            // Silence before anything is taken: what comes after that rings again.
            if !self.comes.swap(false, Ordering::Relaxed) {
                self.bell.silence();
            }
            let ended = self.calls.turn();
            self.engine.end_calls(ended.len());
            for (number, outcome) in ended {
                if let Err(defect) = self.settle(py, number, outcome) {
                    defect.write_unraisable(py, None);
                }
            }
            Ok(())
        })
    }

    /// A loop that is never closed has this, which it calls, and each future has the task that waits for it.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        visit.call(&self.create_future)?;
        lock(&self.futures).values().try_for_each(|future| visit.call(future))
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // Calls of a loop that has closed end with it.
        self.engine.end_calls(self.calls.len());
    }
}
