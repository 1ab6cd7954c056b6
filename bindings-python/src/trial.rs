//! Exports for the tests of this package: each is a part of the border with nothing behind it.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use leasehold::Code;
use pyo3::prelude::*;

use crate::asyncio::start;
use crate::blocking::{Effort, wait};
use crate::errors::Failure;
use crate::guard::guard;
use crate::value::{Arg, Plain};

/// Panics in the next guarded call if the tests asked for it.
pub fn trip() {
    if TRIPPED.swap(false, Ordering::Relaxed) {
        panic!("as the test asked for");
    }
}

/// Exports for the tests.
#[pymodule]
pub mod trial {
    #[pymodule_export]
    use super::{
        alive, codes, echo, fail, hop_aio, looks, panic_aio, panic_blocking, panic_next, replay,
        replay_limits, replay_tokens, sleep, sleep_aio,
    };
}

static TRIPPED: AtomicBool = AtomicBool::new(false);
static ALIVE: AtomicI64 = AtomicI64::new(0);

/// Counts itself while it lives.
struct Life;

impl Life {
    fn new() -> Self {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        Self
    }
}

impl Drop for Life {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn slept(seconds: f64) -> Result<f64, Failure> {
    let _life = Life::new();
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    Ok(seconds)
}

#[pyfunction]
fn panic_next() -> PyResult<()> {
    guard(|| {
        TRIPPED.store(true, Ordering::Relaxed);
        Ok(())
    })
}

#[pyfunction]
fn codes() -> PyResult<Vec<&'static str>> {
    guard(|| Ok(Code::ALL.iter().map(|code| code.as_str()).collect()))
}

#[pyfunction]
fn fail(code: &str, message: String) -> PyResult<()> {
    guard(|| {
        let code = Code::ALL.iter().copied().find(|known| known.as_str() == code).unwrap_or(Code::Internal);
        Err(Failure::new(code, message))
    })
}

#[pyfunction]
fn echo(object: Arg) -> PyResult<Plain> {
    guard(|| Ok(Plain(object.named("value")?)))
}

/// The answers to the steps of a transcript.
#[pyfunction]
fn replay(steps: Arg) -> PyResult<Plain> {
    guard(|| Ok(Plain(leasehold::slots::transcript::replay(&steps.named("steps")?)?)))
}

/// The answers to the steps of a transcript of limits.
#[pyfunction]
fn replay_limits(steps: Arg) -> PyResult<Plain> {
    guard(|| Ok(Plain(leasehold::limits::transcript::replay(&steps.named("steps")?)?)))
}

/// The answers to the steps of a transcript of selections.
#[pyfunction]
fn replay_tokens(steps: Arg) -> PyResult<Plain> {
    guard(|| Ok(Plain(leasehold::tokens::transcript::replay(&steps.named("steps")?)?)))
}

/// Whether anybody ever looks for an answer.
#[pyfunction]
fn looks() -> PyResult<bool> {
    guard(|| Ok(leasehold::runtime::is_parallel()))
}

/// Live futures of this module.
#[pyfunction]
fn alive() -> PyResult<i64> {
    guard(|| Ok(ALIVE.load(Ordering::SeqCst)))
}

#[pyfunction]
fn sleep(py: Python<'_>, seconds: f64) -> PyResult<f64> {
    guard(|| wait(py, Effort::Brief, slept(seconds)))
}

#[pyfunction]
fn sleep_aio(py: Python<'_>, seconds: f64) -> PyResult<Py<PyAny>> {
    guard(|| start(py, slept(seconds), None))
}

/// The shortest way through Tokio and back.
#[pyfunction]
fn hop_aio(py: Python<'_>) -> PyResult<Py<PyAny>> {
    guard(|| {
        let hop = async {
            tokio::task::yield_now().await;
            Ok(1)
        };
        start(py, hop, None)
    })
}

#[pyfunction]
fn panic_blocking(py: Python<'_>, seconds: f64) -> PyResult<f64> {
    guard(|| {
        wait(py, Effort::Brief, async move {
            slept(seconds).await?;
            panic!("after a while")
        })
    })
}

#[pyfunction]
fn panic_aio(py: Python<'_>, seconds: f64) -> PyResult<Py<PyAny>> {
    guard(|| {
        let panics = async move {
            slept(seconds).await?;
            panic!("after a while")
        };
        start::<f64>(py, panics, None)
    })
}
