//! From Tokio to an event loop.
//!
//! Tasks of Tokio touch no Python object. Each event loop has a [`Bridge`], and the bridge the calls that are under way, which
//! are polled on the loop's thread, and an inbox for jobs of tasks. Only the first of many that want something wakes the loop,
//! which then sees to all. The wake is a byte in a socket that the loop watches, so that no thread of Tokio waits for the
//! interpreter.

use std::collections::HashMap;
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use leasehold::Code;
use leasehold::client::{Begun, Calls};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::bell::Bell;
use crate::engine::Engine;
use crate::errors::Failure;
use crate::guard::{guard, lock};
use crate::runtime;

/// What is to be done on the thread of an event loop.
pub type Job = Box<dyn FnOnce(Python<'_>, &Bridge) -> PyResult<()> + Send>;

/// What a call gives, once the interpreter is at hand.
pub type Outcome = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

/// Where jobs for an event loop are left, from any thread.
pub struct Inbox {
    jobs: Mutex<Vec<Job>>,
    next: AtomicU64,
    bell: Arc<Bell>,
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
    calls: Calls<Result<Outcome, Failure>>,
    engine: &'static Engine,
    /// Whether the loop will come to [`Self::answer`] without the bell.
    comes: AtomicBool,
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

    /// Begins a call. If it is under way, [`Self::end_turn`] is to follow.
    pub fn begin(
        &self,
        call: impl Future<Output = Result<Outcome, Failure>> + Send + 'static,
    ) -> Begun<Result<Outcome, Failure>> {
        let begun = self.calls.begin(call);
        if let Begun::UnderWay(_) = begun {
            self.engine.begin_call();
        }
        begun
    }

    /// What is called within one turn of the loop sets out together, at its end.
    pub fn end_turn(bridge: &Bound<'_, Self>) -> PyResult<()> {
        if !bridge.get().comes.swap(true, Ordering::Relaxed) {
            let py = bridge.py();
            let answer = bridge.getattr(intern!(py, "answer"))?;
            bridge.get().event_loop.call_method1(py, intern!(py, "call_soon"), (answer,))?;
        }
        Ok(())
    }

    /// Drops a call. Without effect once it has ended.
    pub fn give_up(&self, number: u64) {
        if self.calls.give_up(number) {
            self.engine.end_calls(1);
        }
        self.take(number);
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
    fn settle(&self, py: Python<'_>, number: u64, outcome: Result<Outcome, Failure>) -> PyResult<()> {
        let Some(future) = self.take(number) else { return Ok(()) };
        let future = future.bind(py);
        if future.call_method0(intern!(py, "done"))?.is_truthy()? {
            return Ok(());
        }
        match guard(|| Ok(outcome?(py)?)) {
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
        let engine = runtime::local(py)?.engine;
        let bell = Arc::new(Bell::new()?);
        let ringer = bell.clone();
        let bridge = Bound::new(
            py,
            Self {
                event_loop: event_loop.clone().unbind(),
                inbox: Arc::new(Inbox { jobs: Mutex::default(), next: AtomicU64::new(FIRST_OBJECT), bell }),
                calls: Calls::new(engine.handle().clone(), move || ringer.ring()),
                engine,
                comes: AtomicBool::new(false),
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
    /// Does all jobs that have come, and tells of the calls that have ended. The loop calls it when the bell has rung, and at
    /// the end of a turn in which there were calls.
    fn answer(&self, py: Python<'_>) -> PyResult<()> {
        guard(|| {
            // Silence before anything is taken: what comes after that rings again.
            if !self.comes.swap(false, Ordering::Relaxed) {
                self.inbox.bell.silence();
            }
            let jobs = mem::take(&mut *lock(&self.inbox.jobs));
            for job in jobs {
                if let Err(defect) = guard(|| Ok(job(py, self)?)) {
                    defect.write_unraisable(py, None);
                }
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
}

/// The objects of jobs are kept beside the futures of calls, and numbered from here on.
const FIRST_OBJECT: u64 = 1 << 63;

impl Drop for Bridge {
    fn drop(&mut self) {
        // Calls of a loop that has closed end with it.
        self.engine.end_calls(self.calls.len());
    }
}

/// Whether an event loop will never do anything again.
pub fn is_closed(event_loop: &Bound<'_, PyAny>) -> PyResult<bool> {
    event_loop.call_method0(intern!(event_loop.py(), "is_closed"))?.extract()
}
