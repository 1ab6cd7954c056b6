//! A pool.

use leasehold::Code;
use leasehold::client::{AcquireOptions, Unit, read_slots};
use leasehold::value::Value;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::asyncio::start;
use crate::blocking::wait;
use crate::callback::with_cause;
use crate::errors::Failure;
use crate::face::{CorePool, Face};
use crate::guard::guard;
use crate::lease::{Fresh, Granted, Lease};
use crate::process::Homebound;
use crate::value::{self, Plain};

/// Slots that are leased one holder at a time.
#[pyclass(frozen, module = "leasehold")]
pub struct Pool {
    core: Homebound<CorePool>,
    face: Face,
}

impl Pool {
    /// A pool of this process.
    pub fn new(core: CorePool, face: Face) -> Self {
        Self { core: Homebound::new(core), face }
    }

    fn core(&self) -> Result<&CorePool, Failure> {
        self.core.get(Code::InvalidArgument, "pool")
    }

    /// Runs an acquisition; gives what was granted, or what is to be awaited.
    fn granted(
        &self,
        py: Python<'_>,
        call: impl Future<Output = leasehold::error::Result<Vec<Fresh>>> + Send + 'static,
    ) -> Result<Result<Granted, Py<PyAny>>, Failure> {
        let face = self.face;
        let call = async move { Ok(Granted::new(with_cause(call).await?, face)) };
        match face {
            Face::Blocking => wait(py, call).map(Ok),
            Face::Asyncio => start(py, call).map(Err),
        }
    }

    /// Runs a call of the core that answers with a value.
    fn run<F>(&self, py: Python<'_>, call: impl FnOnce(CorePool) -> F) -> Result<Py<PyAny>, Failure>
    where
        F: Future<Output = leasehold::error::Result<Value>> + Send + 'static,
    {
        let call = call(self.core()?.clone());
        self.face.run(py, async move { Ok(Plain(call.await?)) })
    }

    /// Runs a call of the core that changes one slot.
    fn change<F>(
        &self,
        py: Python<'_>,
        slot: &Bound<'_, PyAny>,
        call: impl FnOnce(CorePool, String) -> F + Send + 'static,
    ) -> Result<Py<PyAny>, Failure>
    where
        F: Future<Output = leasehold::error::Result<()>> + Send + 'static,
    {
        let slot = value::read_text(slot, "slot")?;
        self.run(py, |pool| async move { call(pool, slot).await.map(|()| Value::Null) })
    }
}

#[pymethods]
impl Pool {
    /// The pool's name.
    #[getter]
    fn name(&self) -> PyResult<&str> {
        guard(|| Ok(self.core()?.name()))
    }

    /// Leases one slot; waits for it until the timeout.
    #[pyo3(signature = (**options))]
    fn acquire(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let (pool, options) = (self.core()?.clone(), acquire_options(options)?);
            // In a box: the core's future is large, and would be moved more often than it is polled.
            let lease = Box::pin(async move { Ok(vec![pool.acquire(options).await?]) });
            match self.granted(py, lease)? {
                Ok(granted) => Ok(granted.take_one()?.into_py_any(py)?),
                Err(pending) => Ok(pending),
            }
        })
    }

    /// Leases `count` slots at once: all of them or none.
    #[pyo3(signature = (**options))]
    fn acquire_many(&self, py: Python<'_>, options: Option<&Bound<'_, PyDict>>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let (pool, options) = (self.core()?.clone(), acquire_options(options)?);
            match self.granted(py, Box::pin(async move { pool.acquire_many(options).await }))? {
                Ok(granted) => Ok(granted.take_all()?.into_py_any(py)?),
                Err(pending) => Ok(pending),
            }
        })
    }

    /// Leases one slot at once, or gives None. For stores in memory; `read_nonce` is not asked.
    #[pyo3(signature = (**options))]
    fn try_acquire(&self, options: Option<&Bound<'_, PyDict>>) -> PyResult<Option<Lease>> {
        guard(|| {
            let options = acquire_options(options)?;
            let lease = self.core()?.try_acquire(options)?;
            Ok(lease.map(|lease| Lease::new(lease, self.face)))
        })
    }

    /// What this handle of the pool has done so far. Times in seconds.
    fn statistics(&self) -> PyResult<Plain> {
        guard(|| Ok(Plain(self.core()?.statistics().to_value(Unit::Seconds))))
    }

    /// Adds slots. Gives the number of those that are new.
    fn add(&self, py: Python<'_>, slots: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let slots = value::read(slots, "slots")?;
            self.run(py, |pool| async move { Ok(u64::from(pool.add(&slots).await?).into()) })
        })
    }

    /// Forgets a slot, after its lease if it has one.
    fn remove(&self, py: Python<'_>, slot: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        guard(|| self.change(py, slot, |pool, slot| async move { pool.remove(&slot).await }))
    }

    /// Hands a slot out again. Ends a quarantine, not a cooldown.
    fn enable(&self, py: Python<'_>, slot: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        guard(|| self.change(py, slot, |pool, slot| async move { pool.enable(&slot).await }))
    }

    /// Hands a slot out no more; a lease that it has is not renewed.
    fn disable(&self, py: Python<'_>, slot: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        guard(|| self.change(py, slot, |pool, slot| async move { pool.disable(&slot).await }))
    }

    /// Hands a slot out no more; a lease that it has may be renewed until it is given back.
    fn drain(&self, py: Python<'_>, slot: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        guard(|| self.change(py, slot, |pool, slot| async move { pool.drain(&slot).await }))
    }

    /// Hands a slot out no more for so many seconds; its nonce is in doubt afterwards.
    fn quarantine(
        &self,
        py: Python<'_>,
        slot: &Bound<'_, PyAny>,
        time: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        guard(|| {
            let time = value::read(time, "time")?;
            self.change(
                py,
                slot,
                |pool, slot| async move { pool.quarantine(&slot, &time, Unit::Seconds).await },
            )
        })
    }

    /// Ends the lease of a slot by force; its nonce is in doubt.
    fn break_lease(&self, py: Python<'_>, slot: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        guard(|| self.change(py, slot, |pool, slot| async move { pool.break_lease(&slot).await }))
    }

    /// Counts the slots, and looks at those that are named.
    #[pyo3(signature = (slots=None))]
    fn inspect(&self, py: Python<'_>, slots: Option<&Bound<'_, PyAny>>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let slots = slots.map_or(Ok(Value::Null), |slots| value::read(slots, "slots"))?;
            let slots = read_slots(&slots)?;
            self.run(py, |pool| async move { Ok(pool.inspect(&slots).await?.to_value(Unit::Seconds)) })
        })
    }

    /// The ids of all slots, in order.
    fn list(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| {
            self.run(py, |pool| async move {
                Ok(Value::List(pool.list().await?.iter().map(|id| id.as_str().into()).collect()))
            })
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| {
            Ok(match self.core() {
                Ok(core) => format!("<leasehold {core:?}>"),
                Err(_) => "<leasehold Pool of another process>".to_owned(),
            })
        })
    }
}

fn acquire_options(options: Option<&Bound<'_, PyDict>>) -> Result<AcquireOptions, Failure> {
    match options {
        Some(_) => Ok(AcquireOptions::read(&value::read_options(options)?, Unit::Seconds)?),
        None => Ok(AcquireOptions::default()),
    }
}
