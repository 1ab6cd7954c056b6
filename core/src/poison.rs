//! Locks whose holders may have panicked.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The lock, though a holder panicked. That leaves nothing half changed in a way that grants twice: every step of a machine takes a
/// slot out of its queue before it is granted, and what else is guarded so is set in one step.
pub(crate) fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
