//! Which process this is. A `fork` copies objects but neither threads nor connections, and a lease belongs to one process only.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering};

use leasehold::Code;
use pyo3::prelude::*;

use crate::errors::Failure;

/// The id of this process, without a system call. Right after every fork that Python knows of.
pub fn known() -> u32 {
    KNOWN.load(Ordering::Relaxed)
}

/// Asks the system whether [`known`] is right, where there is time for that.
pub fn confirm() -> Result<(), Failure> {
    let id = std::process::id();
    if KNOWN.swap(id, Ordering::Relaxed) == id {
        return Ok(());
    }
    Err(Failure::new(
        Code::Internal,
        "this process was forked behind Python's back; from now on leasehold knows: call again",
    ))
}

/// Has Python tell of its forks, so that the frequent checks need no system call.
pub fn watch_forks(py: Python<'_>) -> PyResult<()> {
    KNOWN.store(std::process::id(), Ordering::Relaxed);
    let hook = wrap_pyfunction!(forked, py)?;
    let arguments = pyo3::types::PyDict::new(py);
    arguments.set_item("after_in_child", hook)?;
    py.import("os")?.getattr("register_at_fork")?.call((), Some(&arguments))?;
    Ok(())
}

/// A value that means something in the process that made it, and is left alone in any other: a forked child neither uses it
/// nor runs its destructor, which would act on behalf of the parent (give its lease back, close its connection).
pub struct Homebound<T> {
    home: u32,
    value: Option<T>,
}

impl<T> Homebound<T> {
    /// Bound to this process.
    pub fn new(value: T) -> Self {
        Self { home: known(), value: Some(value) }
    }

    /// The value, or the error of a forked child: `code` says what that means for this kind of value.
    pub fn get(&self, code: Code, noun: &str) -> Result<&T, Failure> {
        match &self.value {
            Some(value) if self.home == known() => Ok(value),
            _ => Err(Failure::new(
                code,
                format!("this {noun} belongs to process {}, not to its fork: open a new one here", self.home),
            )),
        }
    }
}

impl<T> Drop for Homebound<T> {
    fn drop(&mut self) {
        let value = self.value.take();
        if self.home != known() {
            mem::forget(value);
        } else {
            // A destructor has nobody to tell of a panic.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
        }
    }
}

static KNOWN: AtomicU32 = AtomicU32::new(0);

#[pyfunction]
fn forked() -> PyResult<()> {
    crate::guard::guard(|| {
        KNOWN.store(std::process::id(), Ordering::Relaxed);
        Ok(())
    })
}
