//! What is granted and not seen by anybody yet.

use std::mem;
use std::sync::Mutex;

use leasehold::Code;
use pyo3::prelude::*;
use pyo3::{IntoPyObjectExt, PyTraverseError, PyVisit};

use crate::errors::Failure;
use crate::face::{CoreLease, CoreLocked, CoreReservation, CoreSelection, Face};
use crate::guard::{guard, lock};
use crate::lease::Lease;
use crate::limit::Reservation;
use crate::lock::Locked;
use crate::pool::Pool;
use crate::process::Homebound;
use crate::tokens::Selection;

/// What is on its way to its caller. If that went away meanwhile, nobody has seen it and nobody is at work with it: it is given
/// back at once, and nonces were not used, nor anything charged.
#[pyclass(frozen, module = "leasehold._leasehold")]
pub struct Granted {
    things: Homebound<Mutex<Things>>,
    /// That of leases.
    pool: Option<Py<Pool>>,
    face: Face,
}

enum Things {
    Leases(Vec<CoreLease>),
    Locked(CoreLocked),
    Selection(CoreSelection),
    Reservation(CoreReservation),
    /// Their caller has them.
    Taken,
}

impl Granted {
    /// Leases, fresh from the core.
    pub fn leases(leases: Vec<CoreLease>, face: Face, pool: Option<Py<Pool>>) -> Self {
        Self::new(Things::Leases(leases), face, "lease", pool)
    }

    /// A lock.
    pub fn locked(locked: CoreLocked, face: Face) -> Self {
        Self::new(Things::Locked(locked), face, "lock", None)
    }

    /// Tokens.
    pub fn selection(selection: CoreSelection, face: Face) -> Self {
        Self::new(Things::Selection(selection), face, "selection", None)
    }

    /// What was taken of limits.
    pub fn reservation(reservation: CoreReservation, face: Face) -> Self {
        Self::new(Things::Reservation(reservation), face, "reservation", None)
    }

    fn new(things: Things, face: Face, noun: &'static str, pool: Option<Py<Pool>>) -> Self {
        Self { things: Homebound::new(Mutex::new(things), Code::Lost, noun), pool, face }
    }

    /// All of it, once, for a caller that is there.
    pub fn take_all(&self, py: Python<'_>) -> Result<Vec<Py<PyAny>>, Failure> {
        let things = mem::replace(&mut *lock(self.things.get()?), Things::Taken);
        let things = match (things, &self.pool) {
            (Things::Leases(leases), Some(pool)) => {
                let lease = |lease| Lease::new(lease, pool.clone_ref(py)).into_py_any(py);
                leases.into_iter().map(lease).collect::<PyResult<_>>()?
            }
            (Things::Locked(locked), _) => vec![Locked::new(locked, self.face).into_py_any(py)?],
            (Things::Selection(selection), _) => vec![Selection::new(selection, self.face).into_py_any(py)?],
            (Things::Reservation(core), _) => vec![Reservation::new(core, self.face).into_py_any(py)?],
            (Things::Taken | Things::Leases(_), _) => Vec::new(),
        };
        Ok(things)
    }

    /// Nobody takes it any more.
    pub fn give_back(&self) {
        let Ok(things) = self.things.get() else { return };
        let things = mem::replace(&mut *lock(things), Things::Taken);
        match things {
            Things::Leases(leases) => leases.iter().for_each(CoreLease::unseen),
            Things::Reservation(reservation) => reservation.retract(),
            Things::Locked(_) | Things::Selection(_) | Things::Taken => {}
        }
    }

    /// The only one.
    pub fn take_one(&self, py: Python<'_>) -> Result<Py<PyAny>, Failure> {
        self.take_all(py)?.pop().ok_or_else(|| Failure::new(Code::Internal, "a grant of nothing"))
    }
}

#[pymethods]
impl Granted {
    /// What was granted, once.
    fn take(&self, py: Python<'_>) -> PyResult<Vec<Py<PyAny>>> {
        guard(|| self.take_all(py))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.pool)
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        self.give_back();
    }
}
