//! A lease.

use std::convert::identity;
use std::sync::Arc;

use leasehold::Code;
use leasehold::client::{ReleaseOptions, Unit, read_rewind, read_ttl};
use leasehold::error::Result as CoreResult;
use leasehold::value::Value;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use pyo3::{PyTraverseError, PyVisit};

use crate::errors::{Failure, at_end, still_held, weighed};
use crate::face::{CoreLease, Face};
use crate::forgotten::forgotten;
use crate::guard::guard;
use crate::pool::Pool;
use crate::process::Homebound;
use crate::value::Arg;

/// A slot that is this holder's alone until the deadline. Use it with `with`: at the end of the block it is given back with the
/// outcome that was said; a nonce of which nothing was said is in doubt from then on. One that nobody has any more is not given
/// back: it is renewed no more, and ends at its deadline.
#[pyclass(frozen, module = "leasehold")]
pub struct Lease {
    core: Homebound<Arc<CoreLease>>,
    /// Has the function by which it reads its nonce.
    pool: Py<Pool>,
}

impl Lease {
    /// A lease of this process.
    pub fn new(core: CoreLease, pool: Py<Pool>) -> Self {
        Self { core: Homebound::new(Arc::new(core), Code::Lost, "lease"), pool }
    }

    fn face(&self) -> Face {
        self.pool.get().face()
    }

    /// By these options, or at the end of a block. Tells what `told` makes of the outcome.
    fn give_back(
        &self,
        py: Python<'_>,
        options: Option<ReleaseOptions>,
        told: fn(CoreResult<()>) -> CoreResult<()>,
    ) -> Result<Py<PyAny>, Failure> {
        let core = self.core.get()?;
        if let Some(done) = options.map_or_else(|| core.conclude_now(), |options| core.release_now(options)) {
            return Ok(told(done).map(|()| py.None())?);
        }
        let core = core.clone();
        self.face().value(py, async move {
            told(match options {
                Some(options) => core.release_with(options).await,
                None => core.conclude().await,
            })
        })
    }
}

#[pymethods]
impl Lease {
    /// The slot's id, as this process spelled it.
    #[getter]
    fn slot(&self) -> PyResult<&str> {
        guard(|| Ok(self.core.get()?.slot()))
    }

    /// Larger than that of any lease of this slot before: what a resource checks to refuse a late holder.
    #[getter]
    fn fence(&self) -> PyResult<u64> {
        guard(|| Ok(self.core.get()?.fence()))
    }

    /// The nonce to sign with; None where it is not known or in doubt, and the chain must be asked.
    #[getter]
    fn nonce(&self) -> PyResult<Option<u64>> {
        guard(|| Ok(self.core.get()?.nonce()))
    }

    /// Whether an earlier holder may have used a nonce and did not say so: ask the chain, then resync.
    #[getter]
    fn in_doubt(&self) -> PyResult<bool> {
        guard(|| Ok(self.core.get()?.in_doubt()))
    }

    /// For how many seconds the lease can still be relied on; 0.0 when it cannot.
    #[getter]
    fn remaining(&self) -> PyResult<f64> {
        guard(|| Ok(Unit::Seconds.count(self.core.get()?.remaining_micros())))
    }

    /// Whether the lease can still be relied on.
    #[getter]
    fn held(&self) -> PyResult<bool> {
        guard(|| Ok(self.core.get()?.is_held()))
    }

    /// Says that the nonce was used. `next` is the next free one, the lease's own plus one if not given.
    #[pyo3(signature = (next=None))]
    fn used(&self, next: Option<Arg>) -> PyResult<()> {
        guard(|| {
            let next = next.map(|nonce| nonce.nonce("next")).transpose()?;
            Ok(self.core.get()?.used(next)?)
        })
    }

    /// Says that the nonce was not used and cannot be any more.
    fn unused(&self) -> PyResult<()> {
        guard(|| Ok(self.core.get()?.unused()?))
    }

    /// Says that the chain refused the nonce, and which one it expects if it said so.
    #[pyo3(signature = (expected=None))]
    fn rejected(&self, expected: Option<Arg>) -> PyResult<()> {
        guard(|| {
            let expected = expected.map(|nonce| nonce.nonce("expected")).transpose()?;
            Ok(self.core.get()?.rejected(expected)?)
        })
    }

    /// Says that nobody knows whether the nonce was used: the next holder asks the chain.
    fn unknown(&self) -> PyResult<()> {
        guard(|| Ok(self.core.get()?.unknown()?))
    }

    /// Prolongs the lease to `ttl` seconds from now, the pool's if not given, within its `max_hold`.
    #[pyo3(signature = (ttl=None))]
    fn renew(&self, py: Python<'_>, ttl: Option<Arg>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let ttl = read_ttl(&ttl.unwrap_or_default().named("ttl")?, Unit::Seconds)?;
            self.face().ask(py, &self.core, |core| async move { core.renew_by(ttl).await })
        })
    }

    /// Records the next nonce that the chain names, and makes it the lease's.
    #[pyo3(signature = (nonce, rewind=None), text_signature = "($self, nonce, rewind=False)")]
    fn resync(&self, py: Python<'_>, nonce: Arg, rewind: Option<Arg>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let chain = nonce.nonce("nonce")?;
            let rewind = read_rewind(&Value::map([("rewind", rewind.unwrap_or_default().named("rewind")?)]))?;
            self.face().ask(py, &self.core, |core| async move { core.resync(chain, rewind).await })
        })
    }

    /// Reads the nonce from the chain through the pool's `read_nonce`, and records it.
    fn read_nonce(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| self.face().ask(py, &self.core, |core| async move { core.read_nonce().await }))
    }

    /// Waits until the lease can no longer be relied on, and gives the error that says why. Gives None if it was given back in
    /// time, or if `timeout` seconds have passed.
    #[pyo3(signature = (timeout=None))]
    fn lost(&self, py: Python<'_>, timeout: Option<Arg>) -> PyResult<Py<PyAny>> {
        guard(|| self.face().told(py, timeout, |time| Ok(self.core.get()?.lost_within(time))))
    }

    /// Waits until somebody of higher priority claims the slot, and gives the error that says so: finish early and give it back.
    /// Gives None if it ends first, or if `timeout` seconds have passed.
    #[pyo3(signature = (timeout=None))]
    fn claimed(&self, py: Python<'_>, timeout: Option<Arg>) -> PyResult<Py<PyAny>> {
        guard(|| self.face().told(py, timeout, |time| Ok(self.core.get()?.claimed_within(time))))
    }

    /// Gives the slot back. A second call does nothing.
    #[pyo3(signature = (cooldown=None))]
    fn release(&self, py: Python<'_>, cooldown: Option<Arg>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let options = Value::map([("cooldown", cooldown.unwrap_or_default().named("cooldown")?)]);
            self.give_back(py, Some(ReleaseOptions::read(&options, Unit::Seconds)?), identity)
        })
    }

    fn __enter__(this: Py<Self>) -> PyResult<Py<Self>> {
        guard(|| still_held(this.get().core.get()?.is_held(), "lease").map(|()| this))
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let outcome = self.give_back(py, None, at_end(exception));
            weighed(exception, outcome)
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| Ok(self.core.shown("leasehold Lease")))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.pool)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        forgotten(&self.core);
    }
}
