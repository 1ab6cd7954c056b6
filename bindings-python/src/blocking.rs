//! A call that blocks its thread, and nothing else: the interpreter is free meanwhile, and Ctrl-C is heard.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use leasehold::runtime::{holding, let_go};
use pyo3::prelude::*;
use tokio::time::timeout;

use crate::errors::Failure;
use crate::guard::guarded;
use crate::{process, runtime};

/// Waits for the future on this thread. When a signal handler raises, the future is dropped and the exception goes on.
pub fn wait<T: Send>(
    py: Python<'_>,
    effort: Effort,
    future: impl Future<Output = Result<T, Failure>> + Send,
) -> Result<T, Failure> {
    let engine = runtime::local(py)?.engine;
    let mut future = pin!(guarded(future));
    let mut first = || {
        let _entered = engine.handle().enter();
        holding(|| future.as_mut().poll(&mut Context::from_waker(Waker::noop())))
    };
    let at_once = match effort {
        Effort::Brief => first(),
        Effort::Long => py.detach(first),
    };
    if let Poll::Ready(outcome) = at_once {
        let_go();
        // Python would raise as soon as this returns, and what was granted would be lost between here and its caller.
        py.check_signals()?;
        return outcome;
    }
    process::confirm()?;
    let hears_signals = process::is_main_thread(py)?;
    loop {
        let step = async {
            // What it has to send sets out from within the engine, which need not be woken for it.
            let_go();
            match hears_signals {
                true => timeout(ATTENTION, future.as_mut()).await.ok(),
                false => Some(future.as_mut().await),
            }
        };
        match py.detach(|| engine.wait(step)) {
            Some(outcome) => {
                py.check_signals()?;
                return outcome;
            }
            None => py.check_signals()?,
        }
    }
}

/// How long a call may reckon before it waits or is ready.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// What is ready at once, as with the memory store, must not pay for leaving and entering the interpreter.
    Brief,
    /// The interpreter is free from the beginning.
    Long,
}

/// The longest that Ctrl-C goes unheard.
const ATTENTION: Duration = Duration::from_millis(50);
