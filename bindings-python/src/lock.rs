//! Named locks.

use std::sync::Arc;

use leasehold::Code;
use leasehold::client::{Unit, read_ttl};
use leasehold::value::Value;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::blocking::Effort;
use crate::errors::{still_held, weighed};
use crate::face::{CoreLock, CoreLocked, Face};
use crate::forgotten::forgotten;
use crate::granted::Granted;
use crate::guard::guard;
use crate::options::Options;
use crate::process::Homebound;
use crate::value::Arg;

/// One name, or several that are held together or not at all. Nothing of them stays behind in the store.
#[pyclass(frozen, module = "leasehold")]
pub struct Lock {
    core: Homebound<CoreLock>,
    face: Face,
}

impl Lock {
    /// A lock of this process.
    pub fn new(core: CoreLock, face: Face) -> Self {
        Self { core: Homebound::new(core, Code::InvalidArgument, "lock"), face }
    }
}

#[pymethods]
impl Lock {
    /// For how many seconds holders of this handle's locks took to yield of late to those who steal, at the longest; 0.0 if nobody
    /// stole. What `recommended_ttl` goes by.
    #[getter]
    fn handshake(&self) -> PyResult<f64> {
        guard(|| Ok(Unit::Seconds.count(self.core.get()?.handshake())))
    }

    /// The time to live, in seconds, that outlasts a chain of thieves with this confidence, by what was measured of late; None if
    /// nobody stole.
    #[pyo3(signature = (**options))]
    fn recommended_ttl(&self, options: Option<Options>) -> PyResult<Option<f64>> {
        guard(|| {
            let core = self.core.get()?;
            let reckon = |options: &Value| core.recommended_ttl_by(options, Unit::Seconds);
            Ok(options.unwrap_or_default().read(reckon)?)
        })
    }

    /// Looks at each of its names, in their order: whether somebody holds it, in whatever process.
    fn inspect(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| self.face.ask(py, &self.core, |core| async move { core.inspect_by(Unit::Seconds).await }))
    }

    /// Ends by force what is held of its names.
    fn break_lease(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| self.face.ask(py, &self.core, |core| async move { core.break_lease().await }))
    }

    /// Locks all of its names; waits for them until the timeout.
    #[pyo3(signature = (**options))]
    fn acquire(&self, py: Python<'_>, options: Option<Options>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let (core, face) = (self.core.get()?.clone(), self.face);
            let (options, unfit) = options.unwrap_or_default().parts();
            // In a box: the core's future is large.
            let call =
                Box::pin(async move { unfit.outweigh(core.acquire_by(&options, Unit::Seconds).await) });
            let call = async move { Ok(Granted::locked(call.await?, face)) };
            face.run(py, Effort::Brief, call, |granted| granted.take_one(py))
        })
    }

    /// Locks for a body, for `run`, which Python's half adds and which looks at the body; gives None if it is to run without the lock.
    #[pyo3(signature = (**options))]
    fn _enter(&self, py: Python<'_>, options: Option<Options>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let (core, face) = (self.core.get()?.clone(), self.face);
            let (options, unfit) = options.unwrap_or_default().parts();
            let call = Box::pin(async move { unfit.outweigh(core.enter(&options, Unit::Seconds).await) });
            let call = async move { Ok(call.await?.map(|locked| Granted::locked(locked, face))) };
            face.run(py, Effort::Brief, call, |granted| {
                granted.map(|granted| granted.take_one(py)).transpose()
            })
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| Ok(self.core.shown("leasehold Lock")))
    }
}

/// A lock that is held. Use it with `with`: at the end of the block it is given back, and `Lost` is raised if it did not last as
/// long. One that nobody has any more is not given back: it is renewed no more, and ends at its deadline.
#[pyclass(frozen, module = "leasehold")]
pub struct Locked {
    core: Homebound<Arc<CoreLocked>>,
    face: Face,
}

impl Locked {
    /// A lock of this process.
    pub fn new(core: CoreLocked, face: Face) -> Self {
        Self { core: Homebound::new(Arc::new(core), Code::Lost, "lock"), face }
    }
}

#[pymethods]
impl Locked {
    /// Its names, as the caller spelled them.
    #[getter]
    fn names(&self) -> PyResult<Vec<&str>> {
        guard(|| Ok(self.core.get()?.names().collect()))
    }

    /// Larger than that of any lock before: what a resource checks to refuse a late holder.
    #[getter]
    fn fence(&self) -> PyResult<u64> {
        guard(|| Ok(self.core.get()?.fence()))
    }

    /// For how many seconds the lock can still be relied on; 0.0 when it cannot.
    #[getter]
    fn remaining(&self) -> PyResult<f64> {
        guard(|| Ok(Unit::Seconds.count(self.core.get()?.remaining_micros())))
    }

    /// Whether the lock can still be relied on.
    #[getter]
    fn held(&self) -> PyResult<bool> {
        guard(|| Ok(self.core.get()?.is_held()))
    }

    /// Waits until the lock can no longer be relied on, and gives the error that says why. Gives None if it was given back in time,
    /// or if `timeout` seconds have passed.
    #[pyo3(signature = (timeout=None))]
    fn lost(&self, py: Python<'_>, timeout: Option<Arg>) -> PyResult<Py<PyAny>> {
        guard(|| self.face.told(py, timeout, |time| Ok(self.core.get()?.lost_within(time))))
    }

    /// Waits until somebody of higher priority claims the lock, and gives the error that says so: finish early and give it back.
    /// Gives None if it ends first, or if `timeout` seconds have passed.
    #[pyo3(signature = (timeout=None))]
    fn claimed(&self, py: Python<'_>, timeout: Option<Arg>) -> PyResult<Py<PyAny>> {
        guard(|| self.face.told(py, timeout, |time| Ok(self.core.get()?.claimed_within(time))))
    }

    /// Prolongs the lock to `ttl` seconds from now, the handle's `lock_ttl` if not given, within its `max_hold`.
    #[pyo3(signature = (ttl=None))]
    fn renew(&self, py: Python<'_>, ttl: Option<Arg>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let ttl = read_ttl(&ttl.unwrap_or_default().named("ttl")?, Unit::Seconds)?;
            self.face.ask(py, &self.core, |core| async move { core.renew_by(ttl).await })
        })
    }

    /// Gives the lock back. A second call does nothing.
    fn release(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| self.face.ask(py, &self.core, |core| async move { core.release().await }))
    }

    fn __enter__(this: Py<Self>) -> PyResult<Py<Self>> {
        guard(|| still_held(this.get().core.get()?.is_held(), "lock").map(|()| this))
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let outcome = self.face.ask(py, &self.core, |core| async move { core.conclude().await });
            weighed(exception, outcome)
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| Ok(self.core.shown("leasehold Locked")))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        forgotten(&self.core);
    }
}
