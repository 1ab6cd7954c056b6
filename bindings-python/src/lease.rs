//! A lease, and those that are granted but not seen by anybody yet.

use std::mem;
use std::sync::{Arc, Mutex};

use leasehold::client::native::NativeStore;
use leasehold::client::{ReleaseOptions, TokioRuntime, Unit, read_ttl};
use leasehold::value::Value;
use leasehold::{Code, Error};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::callback::with_cause;
use crate::errors::Failure;
use crate::face::{CoreLease, Face};
use crate::guard::{guard, lock};
use crate::process::Homebound;
use crate::value::{self, Plain};

/// As the core grants it.
pub type Fresh = leasehold::Lease<NativeStore, TokioRuntime>;

/// A slot that is this holder's alone until the deadline. Use it with `with`: at the end of the block it is given back with the
/// outcome that was said; a nonce of which nothing was said is in doubt from then on.
#[pyclass(frozen, module = "leasehold")]
pub struct Lease {
    core: Homebound<CoreLease>,
    face: Face,
}

impl Lease {
    /// A lease of this process.
    pub fn new(core: Fresh, face: Face) -> Self {
        Self { core: Homebound::new(Arc::new(core)), face }
    }

    fn core(&self) -> Result<&CoreLease, Failure> {
        self.core.get(Code::Lost, "lease")
    }

    fn give_back(&self, py: Python<'_>, options: ReleaseOptions) -> Result<Py<PyAny>, Failure> {
        let core = self.core()?;
        match core.release_now(options) {
            Some(done) => {
                done?;
                Ok(Plain::NONE.into_py_any(py)?)
            }
            None => {
                let core = core.clone();
                self.face.run(py, async move {
                    core.release(options).await?;
                    Ok(Plain::NONE)
                })
            }
        }
    }
}

#[pymethods]
impl Lease {
    /// The slot's id, as this process spelled it.
    #[getter]
    fn slot(&self) -> PyResult<&str> {
        guard(|| Ok(self.core()?.slot()))
    }

    /// Larger than that of any lease of this slot before: what a resource checks to refuse a late holder.
    #[getter]
    fn fence(&self) -> PyResult<u64> {
        guard(|| Ok(self.core()?.fence()))
    }

    /// The nonce to sign with; None where it is not known or in doubt, and the chain must be asked.
    #[getter]
    fn nonce(&self) -> PyResult<Option<u64>> {
        guard(|| Ok(self.core()?.nonce()))
    }

    /// Whether an earlier holder may have used a nonce and did not say so: ask the chain, then resync.
    #[getter]
    fn in_doubt(&self) -> PyResult<bool> {
        guard(|| Ok(self.core()?.in_doubt()))
    }

    /// For how many seconds the lease can still be relied on; 0.0 when it cannot.
    #[getter]
    fn remaining(&self) -> PyResult<f64> {
        guard(|| Ok(self.core()?.remaining() as f64 / leasehold::SECOND as f64))
    }

    /// Whether the lease can still be relied on.
    #[getter]
    fn held(&self) -> PyResult<bool> {
        guard(|| Ok(self.core()?.is_held()))
    }

    /// Says that the nonce was used. `next` is the next free one, the lease's own plus one if not given.
    #[pyo3(signature = (next=None))]
    fn used(&self, next: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        guard(|| {
            let next = optional_nonce(next, "next")?;
            Ok(self.core()?.used(next)?)
        })
    }

    /// Says that the nonce was not used and cannot be any more.
    fn unused(&self) -> PyResult<()> {
        guard(|| {
            self.core()?.unused();
            Ok(())
        })
    }

    /// Says that the chain refused the nonce, and which one it expects if it said so.
    #[pyo3(signature = (expected=None))]
    fn rejected(&self, expected: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        guard(|| {
            let expected = optional_nonce(expected, "expected")?;
            self.core()?.rejected(expected);
            Ok(())
        })
    }

    /// Says that nobody knows whether the nonce was used: the next holder asks the chain.
    fn unknown(&self) -> PyResult<()> {
        guard(|| {
            self.core()?.unknown();
            Ok(())
        })
    }

    /// Prolongs the lease to `ttl` seconds from now, the pool's if not given, within its `max_hold`.
    #[pyo3(signature = (ttl=None))]
    fn renew(&self, py: Python<'_>, ttl: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let core = self.core()?.clone();
            let ttl = ttl.map_or(Ok(Value::Null), |ttl| value::read(ttl, "ttl"))?;
            let ttl = read_ttl(&ttl, Unit::Seconds)?;
            self.face.run(py, async move {
                core.renew(ttl).await?;
                Ok(Plain::NONE)
            })
        })
    }

    /// Records the next nonce that the chain names, and makes it the lease's.
    #[pyo3(signature = (nonce, rewind=None), text_signature = "($self, nonce, rewind=False)")]
    fn resync(
        &self,
        py: Python<'_>,
        nonce: &Bound<'_, PyAny>,
        rewind: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Py<PyAny>> {
        guard(|| {
            let core = self.core()?.clone();
            let chain = value::read_nonce(nonce, "nonce")?;
            let rewind = optional_flag(rewind, "rewind")?;
            self.face.run(py, async move { Ok(Plain(core.resync(chain, rewind).await?.into())) })
        })
    }

    /// Reads the nonce from the chain through the pool's `read_nonce`, and records it.
    fn read_nonce(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let core = self.core()?.clone();
            self.face.run(py, async move { Ok(Plain(with_cause(core.read_nonce()).await?.into())) })
        })
    }

    /// Gives the slot back. A second call does nothing.
    #[pyo3(signature = (cooldown=None))]
    fn release(&self, py: Python<'_>, cooldown: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        guard(|| self.give_back(py, ReleaseOptions::read(&one_option("cooldown", cooldown)?, Unit::Seconds)?))
    }

    fn __enter__(this: Py<Self>) -> PyResult<Py<Self>> {
        guard(|| Ok(this))
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<()> {
        guard(|| match self.give_back(py, ReleaseOptions::default()) {
            // The error of the block is the one to be seen.
            Err(Failure::Ours(..)) if !exception.get_item(0)?.is_none() => Ok(()),
            outcome => outcome.map(|_| ()),
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| {
            Ok(match self.core() {
                Ok(core) => format!("<leasehold {core:?}>"),
                Err(_) => "<leasehold Lease of another process>".to_owned(),
            })
        })
    }
}

/// Leases on their way to their caller. If it went away meanwhile, nobody has seen their nonces: they were not used.
#[pyclass(frozen, module = "leasehold._leasehold")]
pub struct Granted {
    leases: Homebound<Mutex<Vec<Fresh>>>,
    face: Face,
}

impl Granted {
    /// Fresh from the core.
    pub fn new(leases: Vec<Fresh>, face: Face) -> Self {
        Self { leases: Homebound::new(Mutex::new(leases)), face }
    }

    /// All of them, for a caller that is there.
    pub fn take_all(&self) -> Result<Vec<Lease>, Failure> {
        let leases = mem::take(&mut *lock(self.leases.get(Code::Lost, "lease")?));
        Ok(leases.into_iter().map(|lease| Lease::new(lease, self.face)).collect())
    }

    /// The only one.
    pub fn take_one(&self) -> Result<Lease, Failure> {
        self.take_all()?.pop().ok_or_else(|| Failure::new(Code::Internal, "a grant without a lease"))
    }
}

#[pymethods]
impl Granted {
    /// The leases, once.
    fn take(&self) -> PyResult<Vec<Lease>> {
        guard(|| self.take_all())
    }
}

impl Drop for Granted {
    fn drop(&mut self) {
        if let Ok(leases) = self.leases.get(Code::Lost, "lease") {
            lock(leases).iter().for_each(leasehold::Lease::unused);
        }
    }
}

fn one_option(name: &str, value: Option<&Bound<'_, PyAny>>) -> Result<Value, Error> {
    match value {
        Some(value) => Ok(Value::map([(name, value::read(value, name)?)])),
        None => Ok(Value::Null),
    }
}

fn optional_nonce(nonce: Option<&Bound<'_, PyAny>>, name: &str) -> Result<Option<u64>, Error> {
    nonce.map(|nonce| value::read_nonce(nonce, name)).transpose()
}

fn optional_flag(flag: Option<&Bound<'_, PyAny>>, name: &str) -> Result<bool, Error> {
    flag.map_or(Ok(false), |flag| value::read(flag, name)?.as_bool().map_err(|error| error.within(name)))
}
