//! What there is once in a process.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use leasehold::Code;
use leasehold::runtime::Engine;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyWeakrefReference};
use tokio::sync::Semaphore;

use crate::errors::Failure;
use crate::guard::lock;
use crate::process;

/// What lives as long as one process.
pub struct Local {
    pid: u32,
    /// Runs the library's tasks.
    pub engine: &'static Engine,
    /// The bridge of each event loop, by the loop's address. It is the loop that keeps its bridge.
    pub bridges: Mutex<HashMap<usize, Py<PyWeakrefReference>>>,
    /// How many of the user's functions may have a thread at a time: as with Tokio's own, the others wait.
    pub turns: Semaphore,
}

/// What this process has, made at its first use.
///
/// The token is what makes the lock safe across `os.fork`: whoever forks holds the interpreter, so nobody holds the lock.
/// What a parent had is left as it is: its threads do not exist here.
pub fn local(_: Python<'_>) -> Result<&'static Local, Failure> {
    let pid = process::known();
    let mut slot = lock(&LOCAL);
    if let Some(local) = slot.filter(|local| local.pid == pid) {
        return Ok(local);
    }
    let engine = Engine::start().map_err(|error| {
        Failure::new(Code::Internal, format!("no thread for leasehold could be started: {error}"))
    })?;
    let local = Local { pid, engine, bridges: Mutex::default(), turns: Semaphore::new(THREADS) };
    Ok(slot.insert(Box::leak(Box::new(local))))
}

/// Has Python tell of the interpreter's end.
pub fn watch_exit(py: Python<'_>) -> PyResult<()> {
    let hook = PyCFunction::new_closure(py, None, None, |_, _| ENDS.store(true, Ordering::Relaxed))?;
    py.import("atexit")?.call_method1("register", (hook,))?;
    Ok(())
}

/// Whether the interpreter is about to end: its threads have been waited for, and what is left is garbage.
pub fn ends() -> bool {
    ENDS.load(Ordering::Relaxed)
}

const THREADS: usize = 512;
static ENDS: AtomicBool = AtomicBool::new(false);
static LOCAL: Mutex<Option<&'static Local>> = Mutex::new(None);
