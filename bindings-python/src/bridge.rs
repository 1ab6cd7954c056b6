//! From Tokio to an event loop.
//!
//! Tasks of Tokio touch no Python object. Each event loop has a [`Bridge`], and the bridge an inbox: a task posts its outcome
//! there, and only the first of a batch wakes the loop, which then takes all that have come by that time. The wake is a byte in
//! a socket that the loop watches, so that no thread of Tokio waits for the interpreter.

use std::collections::HashMap;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use leasehold::Code;
use pyo3::IntoPyObjectExt;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::bell::Bell;
use crate::errors::Failure;
use crate::guard::{guard, lock};
use crate::runtime;

/// What is to be done on the thread of an event loop.
pub type Job = Box<dyn FnOnce(Python<'_>, &Bridge) -> PyResult<()> + Send>;

/// Where jobs for an event loop are left, from any thread.
pub struct Inbox {
    jobs: Mutex<Vec<Job>>,
    next: AtomicU64,
    bell: Bell,
}

impl Inbox {
    /// A number that no other object of this loop has.
    pub fn number(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Leaves a job. It is never done if the loop is closed.
    pub fn post(&self, job: Job) {
        let mut jobs = lock(&self.jobs);
        jobs.push(job);
        let first = jobs.len() == 1;
        drop(jobs);
        if first {
            self.bell.ring();
        }
    }
}

/// One event loop, as Rust sees it.
#[pyclass(frozen, module = "leasehold._leasehold")]
pub struct Bridge {
    /// The event loop.
    pub event_loop: Py<PyAny>,
    /// Its jobs.
    pub inbox: Arc<Inbox>,
    create_future: Py<PyAny>,
    kept: Mutex<HashMap<u64, Py<PyAny>>>,
}

impl Bridge {
    /// The bridge of the running loop, built at its first use.
    pub fn running(py: Python<'_>) -> PyResult<Bound<'_, Self>> {
        static GET_RUNNING_LOOP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let event_loop = GET_RUNNING_LOOP.import(py, "asyncio", "get_running_loop")?.call0()?;
        let bridges = runtime::local(py)?.bridges.get_or_init(py, || PyDict::new(py).unbind()).bind(py);
        if let Some(bridge) = bridges.get_item(&event_loop)? {
            return Ok(bridge.cast_into()?);
        }
        // A new loop is the moment to let go of those that have closed.
        for known in bridges.keys() {
            if is_closed(&known)? {
                bridges.del_item(known)?;
            }
        }
        let bridge = Self::build(&event_loop)?;
        bridges.set_item(event_loop, &bridge)?;
        Ok(bridge)
    }

    /// A new future of the loop.
    pub fn create_future(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        self.create_future.call0(py)
    }

    /// Keeps an object for a later job, which takes only the number along: the object stays on the loop's thread.
    pub fn keep(&self, number: u64, object: Py<PyAny>) {
        lock(&self.kept).insert(number, object);
    }

    /// Takes a kept object back, if it is still here.
    pub fn take(&self, number: u64) -> Option<Py<PyAny>> {
        lock(&self.kept).remove(&number)
    }

    /// Gives the kept future its outcome. If its caller was cancelled, what the outcome holds is let go of right here.
    pub fn settle<T>(&self, py: Python<'_>, number: u64, outcome: Result<T, Failure>) -> PyResult<()>
    where
        T: for<'py> IntoPyObjectExt<'py>,
    {
        let Some(future) = self.take(number) else { return Ok(()) };
        let future = future.bind(py);
        if future.call_method0(intern!(py, "done"))?.is_truthy()? {
            return Ok(());
        }
        match guard(|| Ok(outcome?.into_py_any(py)?)) {
            Ok(value) => future.call_method1(intern!(py, "set_result"), (value,))?,
            Err(error) => match future.call_method1(intern!(py, "set_exception"), (&error,)) {
                Ok(done) => done,
                // A future takes no `StopIteration`.
                Err(_) => {
                    let failure =
                        Failure::new(Code::Internal, format!("an exception that asyncio refuses: {error}"));
                    future.call_method1(intern!(py, "set_exception"), (PyErr::from(failure),))?
                }
            },
        };
        Ok(())
    }

    fn build<'py>(event_loop: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let py = event_loop.py();
        let bell = Bell::new()?;
        let bridge = Bound::new(
            py,
            Self {
                event_loop: event_loop.clone().unbind(),
                inbox: Arc::new(Inbox { jobs: Mutex::default(), next: AtomicU64::default(), bell }),
                create_future: event_loop.getattr(intern!(py, "create_future"))?.unbind(),
                kept: Mutex::default(),
            },
        )?;
        bridge.get().inbox.bell.answer_with(event_loop, bridge.getattr(intern!(py, "answer"))?)?;
        Ok(bridge)
    }
}

#[pymethods]
impl Bridge {
    /// Does all jobs that have come. The loop calls it when the bell has rung.
    fn answer(&self, py: Python<'_>) -> PyResult<()> {
        guard(|| {
            // Silence before the jobs are taken: what is posted after that rings again.
            self.inbox.bell.silence();
            let jobs = mem::take(&mut *lock(&self.inbox.jobs));
            for job in jobs {
                if let Err(defect) = guard(|| Ok(job(py, self)?)) {
                    defect.write_unraisable(py, None);
                }
            }
            Ok(())
        })
    }
}

/// Whether an event loop will never do anything again.
pub fn is_closed(event_loop: &Bound<'_, PyAny>) -> PyResult<bool> {
    event_loop.call_method0(intern!(event_loop.py(), "is_closed"))?.extract()
}
