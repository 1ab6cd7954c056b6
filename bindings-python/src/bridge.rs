//! From Tokio to an event loop.
//!
//! Each event loop has a [`Bridge`], and the bridge the calls that are under way, which are polled on the loop's thread. Only
//! the first of many that can go on wakes the loop, which then sees to all. The wake is a byte in a socket that the loop
//! watches, so that no thread of Tokio waits for the interpreter.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::mem;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use leasehold::Code;
use leasehold::runtime::{Calls, Engine, Watched, Watcher};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyWeakrefReference;
use pyo3::{PyTraverseError, PyVisit, intern};

use crate::bell::Bell;
use crate::errors::Failure;
use crate::guard::{guard, lock};
use crate::process::Homebound;
use crate::runtime;

/// What a call gives.
pub type Outcome = Result<Py<PyAny>, Failure>;

/// One event loop, as Rust sees it.
#[pyclass(frozen, weakref, module = "leasehold._leasehold")]
pub struct Bridge {
    event_loop: Py<PyAny>,
    bell: Arc<Bell>,
    engine: &'static Engine,
    /// Those that are under way. A fork must not drop them.
    calls: Homebound<Calls<Outcome>>,
    /// What waits for them: futures of asyncio, by the numbers of the calls. None where that was not said yet.
    futures: Mutex<HashMap<u64, Option<Py<PyAny>>>>,
    /// Those that ended before it was said.
    early: Mutex<Vec<(u64, Outcome)>>,
    /// A `deque` of those whose futures are still to get what they wait for, each with its result or its error. It is kept here: what a
    /// handler of a signal raises as a call into Rust returns would be the end of what that returned.
    settled: Py<PyAny>,
    /// Since when the loop is to come to [`Self::turn`] without the bell, by its own clock.
    comes: Mutex<Option<f64>>,
    /// How many calls began since it last came so, and how often in a row that was one.
    begun: AtomicUsize,
    alone: AtomicUsize,
    /// Those that the loop watches for the calls.
    sockets: Sockets,
}

type Sockets = Arc<Mutex<HashMap<RawFd, Arc<dyn Watched>>>>;

impl Bridge {
    /// The bridge of the running loop, built at its first use.
    pub fn running(py: Python<'_>) -> PyResult<Bound<'_, Self>> {
        static GET_RUNNING_LOOP: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let event_loop = GET_RUNNING_LOOP.import(py, "asyncio", "get_running_loop")?.call0()?;
        let bridges = &runtime::local(py)?.bridges;
        let address = event_loop.as_ptr().addr();
        let known = lock(bridges).get(&address).map(|known| known.clone_ref(py));
        // A bridge that is there has its loop, so that no other loop has the address.
        if let Some(known) = known.and_then(|known| known.bind(py).upgrade()) {
            return Ok(known.cast_into()?);
        }
        let bridge = Self::build(&event_loop)?;
        let known = PyWeakrefReference::new(&bridge)?.unbind();
        let mut bridges = lock(bridges);
        // A new loop is the moment to forget those that are gone.
        bridges.retain(|_, known| known.bind(py).upgrade().is_some());
        bridges.insert(address, known);
        Ok(bridge)
    }

    fn build<'py>(event_loop: &Bound<'py, PyAny>) -> PyResult<Bound<'py, Self>> {
        let py = event_loop.py();
        static ANSWER: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
        let engine = runtime::local(py)?.engine;
        let bell = Arc::new(Bell::new()?);
        let ringer = bell.clone();
        let sockets = Sockets::default();
        let watcher = Arc::new(Eye { bridge: OnceLock::new(), sockets: sockets.clone() });
        let calls = Calls::new(engine.handle().clone(), move || ringer.ring()).watching(watcher.clone());
        let bridge = Self {
            event_loop: event_loop.clone().unbind(),
            bell: bell.clone(),
            engine,
            calls: Homebound::new(calls, Code::Lost, "event loop"),
            futures: Mutex::default(),
            early: Mutex::default(),
            settled: py.import("collections")?.call_method0("deque")?.unbind(),
            comes: Mutex::default(),
            begun: AtomicUsize::new(0),
            alone: AtomicUsize::new(0),
            sockets,
        };
        let bridge = Bound::new(py, bridge)?;
        let _ = watcher.bridge.set(PyWeakrefReference::new(&bridge)?.unbind());
        let answer = ANSWER.import(py, "leasehold._settle", "answer")?;
        event_loop.call_method1("add_reader", (bell.ear(), answer, &bridge))?;
        Ok(bridge)
    }

    /// Those that are under way.
    pub fn calls(&self) -> Result<&Calls<Outcome>, Failure> {
        self.calls.get()
    }

    /// A call is under way.
    pub fn begun(&self, number: u64) {
        self.engine.begin_call();
        self.begun.fetch_add(1, Ordering::Relaxed);
        lock(&self.futures).insert(number, None);
    }

    /// This future gets the outcome of a call. Says whether the loop does not know yet that it is to come: a Ctrl-C may have kept
    /// it from that.
    pub fn expect(&self, number: u64, future: Py<PyAny>, now: f64) -> bool {
        if let Some(expected) = lock(&self.futures).get_mut(&number) {
            *expected = Some(future);
        }
        lock(&self.comes).is_none_or(|since| now > since + LATE)
    }

    /// Drops a call. Without effect once it has ended.
    pub fn give_up(&self, number: u64) {
        if self.calls.here().is_some_and(|calls| calls.give_up(number)) {
            self.engine.end_calls(1);
        }
        let future = lock(&self.futures).remove(&number);
        // Not under the lock, at which the collector looks.
        drop(future);
    }

    /// Notes what those wait for that have ended.
    fn note_ended(&self, py: Python<'_>, calls: &Calls<Outcome>) -> PyResult<()> {
        let ended = calls.turn();
        self.engine.end_calls(ended.len());
        let early = mem::take(&mut *lock(&self.early));
        let outcome = |(number, outcome)| self.outcome(py, number, outcome);
        let ended: Vec<_> = early.into_iter().chain(ended).filter_map(outcome).collect();
        if !ended.is_empty() {
            self.settled.call_method1(py, intern!(py, "extend"), (ended,))?;
        }
        Ok(())
    }

    /// The future of a call that has ended, and what it gets. Nothing if the call was dropped, or if the future is not known yet.
    fn outcome(&self, py: Python<'_>, number: u64, outcome: Outcome) -> Option<Settled> {
        let future = match lock(&self.futures).entry(number) {
            Entry::Occupied(expected) if expected.get().is_some() => expected.remove(),
            Entry::Occupied(_) => {
                lock(&self.early).push((number, outcome));
                return None;
            }
            Entry::Vacant(_) => None,
        };
        future.map(|future| match outcome {
            Ok(value) => (future, value, py.None()),
            Err(failure) => (future, py.None(), PyErr::from(failure).into_value(py).into_any()),
        })
    }
}

/// A loop that was told to come so many seconds ago and has not may never do so.
const LATE: f64 = 0.05;
/// After so many calls that were alone the next one is taken to be, too.
const STREAK: usize = 8;

/// A future, and its result or its error.
type Settled = (Py<PyAny>, Py<PyAny>, Py<PyAny>);

#[pymethods]
impl Bridge {
    /// The loop has been told to come. What a call has to send need not wait for that if those before were alone.
    fn comes(&self, now: f64) -> PyResult<()> {
        guard(|| {
            *lock(&self.comes) = Some(now);
            if self.alone.load(Ordering::Relaxed) >= STREAK
                && let Some(calls) = self.calls.here()
            {
                calls.let_go();
            }
            Ok(())
        })
    }

    /// Whether the loop is to begin to go round without sleep, and to [`Self::look`] each time: an answer may be there in a moment.
    fn begins_to_look(&self) -> PyResult<bool> {
        guard(|| Ok(self.calls.here().is_some_and(Calls::begins_to_look)))
    }

    /// Whether it is to do so once more.
    fn looks(&self) -> PyResult<bool> {
        guard(|| Ok(self.calls.here().is_some_and(Calls::looks)))
    }

    /// Looks for a socket that can be read: once only, if the loop is busy. It does not leave the interpreter: where others may want to
    /// have that the loop does not look.
    fn look(&self, busy: bool) -> PyResult<Option<RawFd>> {
        guard(|| {
            let Some(calls) = self.calls.here() else { return Ok(None) };
            let sockets = lock(&self.sockets).values().cloned().collect::<Vec<_>>();
            Ok(calls.look(&sockets, busy).map(Watched::fd))
        })
    }

    /// Those that have ended and whose futures do not know it yet, each with its result or its error: who settles one takes it out.
    #[getter]
    fn settled(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| Ok(self.settled.clone_ref(py)))
    }

    /// The loop was kept from settling those: it is to come again.
    fn again(&self) -> PyResult<()> {
        guard(|| {
            self.bell.ring();
            Ok(())
        })
    }

    /// Polls the calls that can go on, and notes those that have ended. The loop asks when the bell has rung, and at the end of a turn
    /// in which there were calls.
    fn turn(&self, py: Python<'_>) -> PyResult<()> {
        guard(|| {
            // The bell is the parent's too, and it has to hear it.
            let Some(calls) = self.calls.here() else { return Ok(()) };
            // Silence before anything is taken: what comes after that rings again.
            let came = lock(&self.comes).take();
            match came {
                Some(_) if self.begun.swap(0, Ordering::Relaxed) == 1 => {
                    self.alone.fetch_add(1, Ordering::Relaxed);
                }
                Some(_) => self.alone.store(0, Ordering::Relaxed),
                None => self.bell.silence(),
            }
            self.note_ended(py, calls)?;
            Ok(())
        })
    }

    /// The same, as a socket that is watched can be read.
    fn hear(&self, py: Python<'_>, fd: RawFd) -> PyResult<()> {
        guard(|| {
            // As above: it is the parent's.
            let Some(calls) = self.calls.here() else { return Ok(()) };
            let socket = lock(&self.sockets).get(&fd).cloned();
            if socket.is_none_or(|socket| !calls.hear(&*socket).open) {
                // First the loop forgets its number, which the system gives away as it is closed.
                let forgotten = self.event_loop.call_method1(py, intern!(py, "remove_reader"), (fd,));
                // The turn that was to follow comes by the bell then.
                forgotten.inspect_err(|_| self.bell.ring())?;
                lock(&self.sockets).remove(&fd);
            }
            self.note_ended(py, calls)?;
            Ok(())
        })
    }

    /// A loop that is never closed has this, which it calls, and each future has the task that waits for it.
    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.event_loop)?;
        visit.call(&self.settled)?;
        lock(&self.futures).values().flatten().try_for_each(|future| visit.call(future))
    }
}

/// Has a loop watch sockets.
struct Eye {
    bridge: OnceLock<Py<PyWeakrefReference>>,
    sockets: Sockets,
}

impl Watcher for Eye {
    fn watch(&self, socket: Arc<dyn Watched>) -> bool {
        let fd = socket.fd();
        let watch = |py: Python<'_>| -> PyResult<bool> {
            static HEAR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            static THROW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
            let Some(bridge) = self.bridge.get().and_then(|bridge| bridge.bind(py).upgrade()) else {
                return Ok(false);
            };
            let hear = HEAR.import(py, "leasehold._settle", "hear")?;
            let event_loop = &bridge.cast::<Bridge>()?.get().event_loop;
            let added = event_loop.call_method1(py, intern!(py, "add_reader"), (fd, hear, &bridge, fd));
            if let Err(raised) = &added
                && !raised.is_instance_of::<PyException>(py)
            {
                // Ctrl-C, it may be, which may have come after the loop had heard of the socket.
                let forgotten = event_loop.call_method1(py, intern!(py, "remove_reader"), (fd,));
                // Nobody could raise it here.
                let throw = THROW.import(py, "leasehold._settle", "throw")?;
                event_loop.call_method1(py, intern!(py, "call_soon"), (throw, raised.value(py)))?;
                forgotten?;
            }
            added?;
            lock(&self.sockets).insert(fd, socket);
            Ok(true)
        };
        // A loop that cannot leaves it to the runtime.
        Python::try_attach(|py| watch(py).unwrap_or_default()).unwrap_or_default()
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // Calls of a loop that has closed end with it.
        if let Some(calls) = self.calls.here() {
            self.engine.end_calls(calls.len());
        }
    }
}
