//! The Tokio runtime of this process.

use std::sync::{PoisonError, RwLock};

use leasehold::Code;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;
use tokio::runtime::{Builder, Runtime};

use crate::errors::Failure;
use crate::process;

/// What lives as long as one process.
pub struct Local {
    pid: u32,
    /// Runs the library's tasks.
    pub tokio: Runtime,
    /// The bridge of each event loop.
    pub bridges: PyOnceLock<Py<PyDict>>,
}

/// This process's runtime, made at its first use.
///
/// The token is what makes the lock safe across `os.fork`: whoever forks holds the interpreter, so nobody holds the lock.
/// The runtime of a parent is left as it is; its threads do not exist here, and to end it would wait for them for ever.
pub fn local(_py: Python<'_>) -> Result<&'static Local, Failure> {
    let pid = process::known();
    let known = *LOCAL.read().unwrap_or_else(PoisonError::into_inner);
    if let Some(local) = known.filter(|local| local.pid == pid) {
        return Ok(local);
    }
    let mut slot = LOCAL.write().unwrap_or_else(PoisonError::into_inner);
    if let Some(local) = slot.filter(|local| local.pid == pid) {
        return Ok(local);
    }
    let tokio = Builder::new_multi_thread()
        .worker_threads(WORKERS)
        .thread_name("leasehold")
        .enable_all()
        .build()
        .map_err(|error| {
            Failure::new(Code::Internal, format!("no thread for leasehold could be started: {error}"))
        })?;
    let local: &'static Local = Box::leak(Box::new(Local { pid, tokio, bridges: PyOnceLock::new() }));
    *slot = Some(local);
    Ok(local)
}

/// The work is waiting for a store; one thread does it, and more only wake each other.
const WORKERS: usize = 1;

static LOCAL: RwLock<Option<&'static Local>> = RwLock::new(None);
