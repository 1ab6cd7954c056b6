//! Exports for the tests of this package: each is a part of the border with nothing behind it.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use pyo3::prelude::*;

use crate::asyncio::start;
use crate::blocking::wait;
use crate::callback::Callback;
use crate::errors::{CODES, Failure};
use crate::guard::guard;
use crate::process::Homebound;
use crate::value::{self, Value};

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
        Handle, Token, acquire, alive, ask, ask_aio, codes, echo, fail, hop_aio, number, panic_aio,
        panic_blocking, panic_next, release, sleep, sleep_aio, token,
    };
}

static TRIPPED: AtomicBool = AtomicBool::new(false);
static ALIVE: AtomicI64 = AtomicI64::new(0);
static OPEN: AtomicI64 = AtomicI64::new(0);

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

async fn asked(read_nonce: Callback, address: String) -> Result<Value, Failure> {
    let _life = Life::new();
    read_nonce
        .call(address)
        .await
        .map_err(|error| Failure::new("nonce_unavailable", "read_nonce did not answer").caused_by(error))
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
    guard(|| Ok(CODES.to_vec()))
}

#[pyfunction]
fn fail(code: &str, message: String) -> PyResult<()> {
    guard(|| {
        let code = CODES.iter().find(|known| **known == code).copied().unwrap_or("of_the_future");
        Err(Failure::new(code, message).into())
    })
}

#[pyfunction]
fn echo(object: &Bound<'_, PyAny>) -> PyResult<Value> {
    guard(|| Ok(value::read(object, "value")?))
}

/// Live futures of this module.
#[pyfunction]
fn alive() -> PyResult<i64> {
    guard(|| Ok(ALIVE.load(Ordering::SeqCst)))
}

#[pyfunction]
fn sleep(py: Python<'_>, seconds: f64) -> PyResult<f64> {
    guard(|| wait(py, slept(seconds)))
}

#[pyfunction]
fn sleep_aio(py: Python<'_>, seconds: f64) -> PyResult<Py<PyAny>> {
    guard(|| start(py, slept(seconds)))
}

/// The shortest way through Tokio and back.
#[pyfunction]
fn hop_aio(py: Python<'_>) -> PyResult<Py<PyAny>> {
    guard(|| {
        start(py, async {
            tokio::task::yield_now().await;
            Ok(1)
        })
    })
}

#[pyfunction]
fn panic_blocking(py: Python<'_>, seconds: f64) -> PyResult<f64> {
    guard(|| {
        wait(py, async move {
            slept(seconds).await?;
            panic!("after a while")
        })
    })
}

#[pyfunction]
fn panic_aio(py: Python<'_>, seconds: f64) -> PyResult<Py<PyAny>> {
    guard(|| {
        start::<f64>(py, async move {
            slept(seconds).await?;
            panic!("after a while")
        })
    })
}

#[pyfunction]
fn ask(py: Python<'_>, read_nonce: Bound<'_, PyAny>, address: String) -> PyResult<Value> {
    guard(|| wait(py, asked(Callback::blocking(read_nonce, "read_nonce"), address)))
}

#[pyfunction]
fn ask_aio(py: Python<'_>, read_nonce: Bound<'_, PyAny>, address: String) -> PyResult<Py<PyAny>> {
    guard(|| start(py, asked(Callback::asyncio(read_nonce, "read_nonce")?, address)))
}

#[pyfunction]
fn number() -> PyResult<u64> {
    guard(|| Ok(7))
}

#[pyfunction]
fn token() -> PyResult<Token> {
    guard(|| Ok(Token { slot: 7 }))
}

/// As a blocking acquire that is ready at once.
#[pyfunction]
fn acquire(py: Python<'_>) -> PyResult<Token> {
    guard(|| wait(py, async { Ok(Token { slot: 7 }) }))
}

#[pyfunction]
fn release(py: Python<'_>, token: &Token) -> PyResult<u64> {
    let slot = token.slot;
    guard(|| wait(py, async move { Ok(slot) }))
}

/// As small as a lease can be.
#[pyclass(frozen)]
struct Token {
    slot: u64,
}

#[pymethods]
impl Token {
    #[getter]
    fn slot(&self) -> PyResult<u64> {
        guard(|| Ok(self.slot))
    }

    fn release(&self, py: Python<'_>) -> PyResult<()> {
        guard(|| wait(py, async { Ok(()) }))
    }
}

/// As something open.
#[pyclass(frozen)]
struct Handle(Homebound<Opening>);

#[pymethods]
impl Handle {
    #[new]
    fn new() -> PyResult<Self> {
        guard(|| {
            OPEN.fetch_add(1, Ordering::SeqCst);
            Ok(Self(Homebound::new(Opening)))
        })
    }

    /// How many are open.
    fn count(&self) -> PyResult<i64> {
        guard(|| {
            self.0.get("invalid_argument", "handle")?;
            Ok(OPEN.load(Ordering::SeqCst))
        })
    }
}

struct Opening;

impl Drop for Opening {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::SeqCst);
    }
}
