//! Which process this is. A `fork` copies objects but neither threads nor connections, and a lease belongs to one process only.

use std::fmt::Debug;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use leasehold::Code;
use pyo3::exceptions::PyImportError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{IntoPyDict, PyCFunction};

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

/// Whether Python runs signal handlers on this thread. Asks no code of Python's, in which a daemon thread may be ended.
pub fn is_main_thread(py: Python<'_>) -> PyResult<bool> {
    Ok(this_thread(py)? == MAIN.load(Ordering::Relaxed))
}

fn this_thread(py: Python<'_>) -> PyResult<u64> {
    static GET_IDENT: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    GET_IDENT.import(py, "_thread", "get_ident")?.call0()?.extract()
}

/// Refuses every interpreter but the first: 3.10 and 3.11 do not do so by themselves. This half keeps classes and functions of
/// Python's, and those of the first are no use to another, whose `except` would not catch what is raised here.
pub fn claim_interpreter(py: Python<'_>) -> PyResult<()> {
    static FIRST: PyOnceLock<Py<PyModule>> = PyOnceLock::new();
    // Each interpreter has a `sys` of its own.
    let sys = py.import("sys")?;
    if FIRST.get_or_init(py, || sys.clone().unbind()).is(&sys) {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "leasehold belongs to one interpreter of a process, and another one has it; under mod_wsgi set `WSGIApplicationGroup %{GLOBAL}`",
    ))
}

/// Has Python tell of its forks, so that the frequent checks need no system call.
pub fn watch_forks(py: Python<'_>) -> PyResult<()> {
    renew();
    let main = py.import("threading")?.call_method0("main_thread")?.getattr("ident")?.extract()?;
    MAIN.store(main, Ordering::Relaxed);
    let hook = PyCFunction::new_closure(py, None, None, |arguments, _| {
        renew();
        // The thread that forks is the only one of the child.
        this_thread(arguments.py()).map(|main| MAIN.store(main, Ordering::Relaxed))
    })?;
    let arguments = [("after_in_child", hook)].into_py_dict(py)?;
    py.import("os")?.getattr("register_at_fork")?.call((), Some(&arguments))?;
    Ok(())
}

/// A value that means something in the process that made it, and is left alone in any other: a forked child neither uses it
/// nor runs its destructor, which would act on behalf of the parent (give its lease back, close its connection).
pub struct Homebound<T> {
    value: Option<T>,
    /// Whether anything was ever asked of it.
    used: AtomicBool,
    home: u32,
    code: Code,
    noun: &'static str,
}

impl<T> Homebound<T> {
    /// Bound to this process. The code says what it means for this kind of value to be in another one.
    pub fn new(value: T, code: Code, noun: &'static str) -> Self {
        Self { value: Some(value), used: AtomicBool::new(false), home: known(), code, noun }
    }

    /// The value, or the error of a forked child.
    pub fn get(&self) -> Result<&T, Failure> {
        self.used.store(true, Ordering::Relaxed);
        self.here().ok_or_else(|| {
            let Self { home, noun, .. } = self;
            let remedy = "not to its fork: open a new one here";
            Failure::new(self.code, format!("this {noun} belongs to process {home}, {remedy}"))
        })
    }

    /// What `repr` shows of an object that holds the value.
    pub fn shown(&self, object: &str) -> String
    where
        T: Debug,
    {
        self.shown_as(object, |value| format!("{value:?}"))
    }

    /// The same in these words.
    pub fn shown_as(&self, object: &str, words: impl FnOnce(&T) -> String) -> String {
        match self.here() {
            Some(value) => format!("<leasehold {}>", words(value)),
            None => format!("<{object} of another process>"),
        }
    }

    /// Whether nothing was ever asked of it: who had it knows nothing of what it holds.
    pub fn is_unseen(&self) -> bool {
        !self.used.load(Ordering::Relaxed)
    }

    /// The value, unless this is a forked child.
    pub fn here(&self) -> Option<&T> {
        self.value.as_ref().filter(|_| self.home == known())
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
static MAIN: AtomicU64 = AtomicU64::new(0);

fn renew() {
    KNOWN.store(std::process::id(), Ordering::Relaxed);
}
