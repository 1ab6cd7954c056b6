//! No panic crosses into Python as one.
//!
//! PyO3 turns a panic into `PanicException`, which is no `Exception`: it passes every `except Exception` of a worker and ends it.
//! Here it becomes `leasehold.errors.Internal`, and the module goes on working: no lock of this crate stays poisoned.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use leasehold::Code;
use pyo3::prelude::*;

use crate::errors::Failure;

/// The body of everything that Python calls.
pub fn guard<T>(body: impl FnOnce() -> Result<T, Failure>) -> PyResult<T> {
    let body = || {
        #[cfg(feature = "trial")]
        crate::trial::trip();
        body()
    };
    Ok(catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|panic| Err(internal(panic)))?)
}

/// The same for a future: a panic of any poll is its outcome.
pub async fn guarded<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let mut future = pin!(future);
    poll_fn(move |context| {
        catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context)))
            .unwrap_or_else(|panic| Poll::Ready(Err(internal(panic))))
    })
    .await
}

/// Locks, also after a panic of another holder.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cold]
fn internal(panic: Box<dyn Any + Send>) -> Failure {
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "of an unknown kind".to_owned());
    Failure::new(Code::Internal, format!("a defect in leasehold, please report it: panic: {text}"))
}
