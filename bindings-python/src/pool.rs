//! A pool.

use leasehold::Code;
use leasehold::client::{AcquireOptions, Unit, read_slots};
use leasehold::error::Result as CoreResult;
use leasehold::value::Value;
use pyo3::prelude::*;
use pyo3::{IntoPyObjectExt, PyTraverseError, PyVisit};

use crate::blocking::Effort;
use crate::callback::Functions;
use crate::errors::Failure;
use crate::face::{CoreLease, CorePool, Face};
use crate::granted::Granted;
use crate::guard::guard;
use crate::kept::{Kept, Seen};
use crate::lease::Lease;
use crate::options::Options;
use crate::process::Homebound;
use crate::value::{Arg, Plain};

/// Slots that are leased one holder at a time.
#[pyclass(frozen, module = "leasehold")]
pub struct Pool {
    core: Homebound<CorePool>,
    face: Face,
    /// `read_nonce`, if there is one.
    functions: Functions,
}

impl Pool {
    /// A pool of this process.
    pub fn new(core: CorePool, face: Face, functions: Functions) -> Self {
        Self { core: Homebound::new(core, Code::InvalidArgument, "pool"), face, functions }
    }

    /// How its calls are waited for, and those of its leases.
    pub fn face(&self) -> Face {
        self.face
    }

    /// Runs an acquisition. A thread that waited is there, and takes what was granted at once.
    fn grant<F, T>(
        this: &Bound<'_, Self>,
        options: Option<Options>,
        call: impl FnOnce(CorePool, AcquireOptions) -> F,
        take: impl FnOnce(Granted) -> Result<T, Failure>,
    ) -> Result<Py<PyAny>, Failure>
    where
        F: Future<Output = CoreResult<Vec<CoreLease>>> + Send + 'static,
        T: for<'py> IntoPyObjectExt<'py>,
    {
        // In a box: the core's future is large, and each future around another would have a copy of it.
        let call = Box::pin(call(this.get().core.get()?.clone(), acquire_options(options)?));
        let (face, pool) = (this.get().face, Kept::new(this.clone().unbind()));
        let kept = pool.clone();
        let call = async move { Ok(Granted::leases(call.await?, face, pool.take())) };
        face.begin(this.py(), Effort::Brief, Some(kept), call, take)
    }

    /// Changes one slot.
    fn change(&self, py: Python<'_>, verb: &'static str, slot: Arg, time: Arg) -> Result<Py<PyAny>, Failure> {
        let (slot, time) = (slot.text("slot")?, time.named("time")?);
        let change = |pool: CorePool| async move { pool.change(verb, &slot, &time, Unit::Seconds).await };
        self.face.ask(py, &self.core, change)
    }
}

#[pymethods]
impl Pool {
    /// The pool's name.
    #[getter]
    fn name(&self) -> PyResult<&str> {
        guard(|| Ok(self.core.get()?.name()))
    }

    /// Leases one slot; waits for it until the timeout.
    #[pyo3(signature = (**options))]
    fn acquire(this: &Bound<'_, Self>, options: Option<Options>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let one = |pool: CorePool, options| async move { Ok(vec![pool.acquire_with(options).await?]) };
            Self::grant(this, options, one, |granted| granted.take_one(this.py()))
        })
    }

    /// Leases `count` slots at once: all of them or none.
    #[pyo3(signature = (**options))]
    fn acquire_many(this: &Bound<'_, Self>, options: Option<Options>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let many = |pool: CorePool, options| async move { pool.acquire_many_with(options).await };
            Self::grant(this, options, many, |granted| granted.take_all(this.py()))
        })
    }

    /// Leases one slot at once, or gives None. For stores in memory; `read_nonce` is not asked.
    #[pyo3(signature = (**options))]
    fn try_acquire(this: &Bound<'_, Self>, options: Option<Options>) -> PyResult<Option<Lease>> {
        guard(|| {
            let options = acquire_options(options)?;
            let lease = this.get().core.get()?.try_acquire_with(options)?;
            Ok(lease.map(|lease| Lease::new(lease, this.clone().unbind())))
        })
    }

    /// What this handle of the pool has done so far. Times in seconds.
    fn statistics(&self) -> PyResult<Plain> {
        guard(|| Ok(self.core.get()?.statistics().to_value(Unit::Seconds).into()))
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

    /// Adds slots. Gives the number of those that are new.
    fn add(&self, py: Python<'_>, slots: Arg) -> PyResult<Py<PyAny>> {
        guard(|| {
            let slots = slots.named("slots")?;
            self.face.survey(py, &self.core, |pool| async move { pool.add_by(&slots).await.map(u64::from) })
        })
    }

    /// Forgets a slot, after its lease if it has one.
    fn remove(&self, py: Python<'_>, slot: Arg) -> PyResult<Py<PyAny>> {
        guard(|| self.change(py, "remove", slot, Arg::default()))
    }

    /// Hands a slot out again. Ends a quarantine, not a cooldown.
    fn enable(&self, py: Python<'_>, slot: Arg) -> PyResult<Py<PyAny>> {
        guard(|| self.change(py, "enable", slot, Arg::default()))
    }

    /// Hands a slot out no more; a lease that it has is not renewed.
    fn disable(&self, py: Python<'_>, slot: Arg) -> PyResult<Py<PyAny>> {
        guard(|| self.change(py, "disable", slot, Arg::default()))
    }

    /// Hands a slot out no more; a lease that it has may be renewed until it is given back.
    fn drain(&self, py: Python<'_>, slot: Arg) -> PyResult<Py<PyAny>> {
        guard(|| self.change(py, "drain", slot, Arg::default()))
    }

    /// Hands a slot out no more for so many seconds; its nonce is in doubt afterwards.
    fn quarantine(&self, py: Python<'_>, slot: Arg, time: Arg) -> PyResult<Py<PyAny>> {
        guard(|| self.change(py, "quarantine", slot, time))
    }

    /// Ends the lease of a slot by force; its nonce is in doubt.
    fn break_lease(&self, py: Python<'_>, slot: Arg) -> PyResult<Py<PyAny>> {
        guard(|| self.change(py, "break_lease", slot, Arg::default()))
    }

    /// Counts the slots, and looks at those that are named.
    #[pyo3(signature = (slots=None))]
    fn inspect(&self, py: Python<'_>, slots: Option<Arg>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let slots = read_slots(&slots.unwrap_or_default().named("slots")?)?;
            self.face.ask(py, &self.core, |pool| async move {
                Ok(pool.inspect(&slots).await?.to_value(Unit::Seconds))
            })
        })
    }

    /// The ids of all slots, in order.
    fn list(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| {
            self.face.survey(py, &self.core, |pool| async move {
                Ok(Value::List(pool.list().await?.into_iter().map(Value::Text).collect()))
            })
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| Ok(self.core.shown("leasehold Pool")))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.functions.traverse(&visit)
    }

    fn __clear__(&self) {
        self.functions.clear();
    }
}

fn acquire_options(options: Option<Options>) -> Result<AcquireOptions, Failure> {
    Ok(options.unwrap_or_default().read(|options| AcquireOptions::read(options, Unit::Seconds))?)
}
