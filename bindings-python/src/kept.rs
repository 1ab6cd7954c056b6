//! What a call that is under way needs of Python's at its end.
//!
//! The collector does not look into a future: a pool that one had there would keep its functions, these their event loop, and that
//! all that its tasks hold. So it is beside the future, where who waits shows it.

use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use pyo3::{PyClass, PyTraverseError, PyVisit};

use crate::guard::lock;

/// What has objects of Python's.
pub trait Seen: Send + Sync {
    /// Shows them to the collector.
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError>;
}

impl<T: PyClass + Send + Sync> Seen for Py<T> {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(self)
    }
}

/// It, until the call takes it.
pub struct Kept<T>(Mutex<Option<T>>);

impl<T> Kept<T> {
    /// For a call that is about to begin.
    pub fn new(thing: T) -> Arc<Self> {
        Arc::new(Self(Mutex::new(Some(thing))))
    }

    /// The call has come to its end.
    pub fn take(&self) -> Option<T> {
        lock(&self.0).take()
    }
}

impl<T: Seen> Seen for Kept<T> {
    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        lock(&self.0).as_ref().map_or(Ok(()), |thing| thing.traverse(visit))
    }
}
