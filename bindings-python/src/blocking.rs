//! A call that blocks its thread, and nothing else: the interpreter is free meanwhile, and Ctrl-C is heard.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pyo3::intern;
use pyo3::prelude::*;
use tokio::time::timeout;

use crate::errors::Failure;
use crate::guard::guarded;
use crate::{process, runtime};

/// Waits for the future on this thread. When a signal handler raises, the future is dropped and the exception goes on.
pub fn wait<T: Send>(
    py: Python<'_>,
    future: impl Future<Output = Result<T, Failure>> + Send,
) -> Result<T, Failure> {
    let local = runtime::local(py)?;
    let _context = local.tokio.enter();
    let mut future = pin!(guarded(future));
    // What is ready at once, as with the memory store, must not pay for leaving and entering the interpreter.
    if let Poll::Ready(outcome) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return outcome;
    }
    process::confirm()?;
    if !hears_signals(py)? {
        return py.detach(|| local.tokio.block_on(future));
    }
    loop {
        let step = py.detach(|| local.tokio.block_on(async { timeout(ATTENTION, future.as_mut()).await }));
        match step {
            Ok(outcome) => return outcome,
            Err(_) => py.check_signals()?,
        }
    }
}

/// The longest that Ctrl-C goes unheard.
const ATTENTION: Duration = Duration::from_millis(50);

/// Python runs signal handlers in its main thread alone.
fn hears_signals(py: Python<'_>) -> PyResult<bool> {
    let threading = py.import(intern!(py, "threading"))?;
    let here = threading.call_method0(intern!(py, "current_thread"))?;
    Ok(here.is(&threading.call_method0(intern!(py, "main_thread"))?))
}
