//! Limits: rates, budgets and what is in flight.

use std::sync::Mutex;

use leasehold::client::native::NativeLeasehold;
use leasehold::client::{LimitAnswer, LimitOptions, Said, Unit, WaitOptions, read_ttl};
use leasehold::error::Result as CoreResult;
use leasehold::limits::Amount;
use leasehold::value::Value;
use leasehold::{Code, Error, Micros};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt, PyTuple};

use crate::errors::Failure;
use crate::face::{CoreLimit, CoreReservation, Face};
use crate::guard::{guard, lock};
use crate::process::Homebound;
use crate::value::{Arg, Plain};

/// A limit, or several that are charged as one: all of them or none. Costs are whole numbers, or their decimal digits.
#[pyclass(frozen, module = "leasehold")]
pub struct Limit {
    core: Homebound<CoreLimit>,
    face: Face,
}

impl Limit {
    fn new(core: CoreLimit, face: Face) -> Self {
        Self { core: Homebound::new(core, Code::InvalidArgument, "limit"), face }
    }

    /// A limit of a handle.
    pub fn open(
        handle: &NativeLeasehold,
        face: Face,
        name: &str,
        max: Option<Whole>,
        options: Option<Arg>,
    ) -> Result<Self, Failure> {
        let mut options = options.unwrap_or_default().options()?;
        if let Some(max) = max {
            let max = ("max".to_owned(), max.0.named("max")?);
            match &mut options {
                Value::Map(entries) => entries.push(max),
                none => *none = Value::Map(vec![max]),
            }
        }
        Ok(Self::new(handle.limit(name, &LimitOptions::read(&options, Unit::Seconds)?)?, face))
    }

    /// Limits of a handle as one.
    pub fn group(handle: &NativeLeasehold, face: Face, limits: &Bound<'_, PyAny>) -> Result<Self, Failure> {
        let unfit = |_| Error::invalid("limits", "must be a list of limits, in which None is left out");
        let limits: Vec<Bound<'_, PyAny>> = limits.extract().map_err(unfit)?;
        let mut members = Vec::with_capacity(limits.len());
        for (at, limit) in limits.iter().enumerate().filter(|(_, limit)| !limit.is_none()) {
            let unfit = |_| Error::invalid(format!("limits[{at}]"), "must be a limit or None");
            members.push(Some(limit.cast::<Self>().map_err(unfit)?.get().core.get()?));
        }
        Ok(Self::new(handle.limits(members)?, face))
    }

    fn call<F, T>(
        &self,
        py: Python<'_>,
        cost: Option<Whole>,
        verb: impl FnOnce(CoreLimit, Amount) -> F,
    ) -> Result<Py<PyAny>, Failure>
    where
        F: Future<Output = CoreResult<T>> + Send + 'static,
        T: for<'py> IntoPyObjectExt<'py> + Send + 'static,
    {
        let call = verb(self.core.get()?.clone(), cost.map_or(Ok(Amount::from(1u64)), Whole::cost)?);
        // In a box: the core's futures are large.
        self.face.run(py, Box::pin(call), Ok)
    }
}

#[pymethods]
impl Limit {
    /// Charges a cost, if all limits allow it. A refused attempt is not charged.
    #[pyo3(signature = (cost=None), text_signature = "($self, cost=1)")]
    fn take(&self, py: Python<'_>, cost: Option<Whole>) -> PyResult<Py<PyAny>> {
        guard(|| self.call(py, cost, |limit, cost| async move { limit.take(cost).await.map(Answer) }))
    }

    /// The same as a truth value.
    #[pyo3(signature = (cost=None), text_signature = "($self, cost=1)")]
    fn increment(&self, py: Python<'_>, cost: Option<Whole>) -> PyResult<Py<PyAny>> {
        guard(|| self.call(py, cost, |limit, cost| async move { limit.increment(cost).await }))
    }

    /// The same, where a refusal is `Limited`.
    #[pyo3(signature = (cost=None), text_signature = "($self, cost=1)")]
    fn increment_or_fail(&self, py: Python<'_>, cost: Option<Whole>) -> PyResult<Py<PyAny>> {
        guard(|| {
            self.call(py, cost, |limit, cost| async move { limit.increment_or_fail(cost).await.map(Answer) })
        })
    }

    /// Whether a cost would be allowed, when, and what remains. Nothing is charged.
    #[pyo3(signature = (cost=None), text_signature = "($self, cost=1)")]
    fn peek(&self, py: Python<'_>, cost: Option<Whole>) -> PyResult<Py<PyAny>> {
        guard(|| self.call(py, cost, |limit, cost| async move { limit.peek(cost).await.map(Answer) }))
    }

    /// Whether a cost would be refused.
    #[pyo3(signature = (cost=None), text_signature = "($self, cost=1)")]
    fn exceeded(&self, py: Python<'_>, cost: Option<Whole>) -> PyResult<Py<PyAny>> {
        guard(|| self.call(py, cost, |limit, cost| async move { limit.exceeded(cost).await }))
    }

    /// The name of the limit that refuses a cost, or None.
    #[pyo3(signature = (cost=None), text_signature = "($self, cost=1)")]
    fn limit_exceeded(&self, py: Python<'_>, cost: Option<Whole>) -> PyResult<Py<PyAny>> {
        guard(|| {
            self.call(py, cost, |limit, cost| async move {
                Ok(limit.limit_exceeded(cost).await?.map(|name| name.as_str().to_owned()))
            })
        })
    }

    /// What can still be taken; of several limits, of that of which least remains.
    fn remaining(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| self.call(py, None, |limit, _| async move { limit.remaining().await.map(Int) }))
    }

    /// What is used of the limit of which least remains.
    fn used(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| self.call(py, None, |limit, _| async move { limit.used().await.map(Int) }))
    }

    /// Gives back what was taken a moment ago.
    #[pyo3(signature = (cost=None), text_signature = "($self, cost=1)")]
    fn refund(&self, py: Python<'_>, cost: Option<Whole>) -> PyResult<Py<PyAny>> {
        guard(|| self.call(py, cost, |limit, cost| async move { limit.refund(cost).await.map(Answer) }))
    }

    /// The same under the name that other libraries have for it.
    #[pyo3(signature = (cost=None), text_signature = "($self, cost=1)")]
    fn decrement(&self, py: Python<'_>, cost: Option<Whole>) -> PyResult<Py<PyAny>> {
        guard(|| self.call(py, cost, |limit, cost| async move { limit.decrement(cost).await.map(Answer) }))
    }

    /// Makes the limit as if it was never used.
    fn reset(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| self.call(py, None, |limit, _| async move { limit.reset().await.map(Plain::from) }))
    }

    /// Takes a cost for the time being: at most for `ttl` seconds, in which it can be given back, once.
    #[pyo3(signature = (cost=None, *, ttl), text_signature = "($self, cost=1, *, ttl)")]
    fn reserve(&self, py: Python<'_>, cost: Option<Whole>, ttl: Arg) -> PyResult<Py<PyAny>> {
        guard(|| {
            let (ttl, face) = (time_to_live(ttl)?, self.face);
            self.call(py, cost, move |limit, cost| async move {
                let reserved = limit.reserve(cost, ttl).await?;
                reserved.map(|core| Reservation::new(core, face)).map_err(|refusal| refusal.error())
            })
        })
    }

    /// Waits until a cost is allowed, and charges it.
    #[pyo3(signature = (cost=None, **options), text_signature = "($self, cost=1, **options)")]
    fn wait(&self, py: Python<'_>, cost: Option<Whole>, options: Option<Arg>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let options = wait_options(options)?;
            self.call(py, cost, move |limit, cost| async move { limit.wait(cost, options).await.map(Answer) })
        })
    }

    /// Waits until a cost can be reserved.
    #[pyo3(
        signature = (cost=None, *, ttl, **options),
        text_signature = "($self, cost=1, *, ttl, **options)"
    )]
    fn wait_to_reserve(
        &self,
        py: Python<'_>,
        cost: Option<Whole>,
        ttl: Arg,
        options: Option<Arg>,
    ) -> PyResult<Py<PyAny>> {
        guard(|| {
            let (ttl, options, face) = (time_to_live(ttl)?, wait_options(options)?, self.face);
            self.call(py, cost, move |limit, cost| async move {
                Ok(Reservation::new(limit.wait_to_reserve(cost, ttl, options).await?, face))
            })
        })
    }

    /// The same, of which every take charges so much, whatever the cost that is said.
    fn at_cost(&self, cost: Whole) -> PyResult<Self> {
        guard(|| Ok(Self::new(self.core.get()?.at_cost(cost.cost()?), self.face)))
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| Ok(self.core.shown("leasehold Limit")))
    }
}

/// What was taken of limits and can be given back once. Use it with `with`: at the end of the block it stays charged, and what
/// it has in flight lands.
#[pyclass(frozen, module = "leasehold")]
pub struct Reservation {
    /// None once it has ended.
    core: Homebound<Mutex<Option<CoreReservation>>>,
    answer: LimitAnswer,
    face: Face,
}

impl Reservation {
    fn new(core: CoreReservation, face: Face) -> Self {
        let answer = core.answer().clone();
        Self { core: Homebound::new(Mutex::new(Some(core)), Code::Lost, "reservation"), answer, face }
    }

    fn end(&self) -> Result<CoreReservation, Failure> {
        let ended = || Failure::new(Code::Lost, "this reservation has ended already; reserve anew");
        lock(self.core.get()?).take().ok_or_else(ended)
    }
}

#[pymethods]
impl Reservation {
    /// What the limits said.
    #[getter]
    fn answer(&self) -> PyResult<Answer> {
        guard(|| self.core.get().map(|_| Answer(self.answer.clone())))
    }

    /// Ends it: what it charged stays charged.
    fn commit(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| self.face.value(py, self.end()?.commit()))
    }

    /// Ends it: what it charged is given back, as far as it still counts.
    fn refund(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| self.face.value(py, self.end()?.refund()))
    }

    fn __enter__(this: Py<Self>) -> PyResult<Py<Self>> {
        guard(|| Ok(this))
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let Some(core) = lock(self.core.get()?).take() else { return Ok(py.None()) };
            match self.face.value(py, core.commit()) {
                // The error of the block is the one to be seen.
                Err(Failure::Ours(..)) if !exception.get_item(0)?.is_none() => Ok(py.None()),
                outcome => outcome,
            }
        })
    }
}

/// A whole number of any size. One of more than 128 bits travels as its digits.
pub struct Whole(Arg);

impl Whole {
    fn cost(self) -> Result<Amount, Error> {
        Amount::read(&self.0.named("cost")?).map_err(|error| error.within("cost"))
    }
}

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // Python refuses to write down what is absurdly long, and then the argument is refused as it is.
        let digits = object
            .cast::<PyInt>()
            .ok()
            .filter(|it| it.extract::<i128>().is_err())
            .and_then(|it| it.str().ok());
        digits.map_or_else(|| object.extract(), |digits| digits.extract()).map(Self)
    }
}

/// An amount as Python has it.
struct Int(Amount);

impl<'py> IntoPyObject<'py> for Int {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        match self.0.saturating_u64() {
            u64::MAX => py.get_type::<PyInt>().call1((self.0.to_string(),)),
            number => number.into_bound_py_any(py),
        }
    }
}

/// An answer as Python has it.
struct Answer(LimitAnswer);

impl<'py> IntoPyObject<'py> for Answer {
    type Target = PyDict;
    type Output = Bound<'py, PyDict>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let LimitAnswer { allowed, limit, remaining, retry_after, reset_after, said } = self.0;
        let seconds = |time: Option<Micros>| time.map(|time| time as f64 / leasehold::SECOND as f64);
        let said = match said {
            Said::Store => "store",
            Said::Memory => "memory",
            Said::Outage => "outage",
        };
        let dict = PyDict::new(py);
        dict.set_item("allowed", allowed)?;
        dict.set_item("limit", limit.as_ref().map(|name| name.as_str()))?;
        dict.set_item("remaining", Int(remaining))?;
        dict.set_item("retry_after", seconds(retry_after))?;
        dict.set_item("reset_after", seconds(reset_after))?;
        dict.set_item("said", said)?;
        Ok(dict)
    }
}

fn time_to_live(ttl: Arg) -> Result<Micros, Error> {
    read_ttl(&ttl.named("ttl")?, Unit::Seconds)?.ok_or_else(|| Error::invalid("ttl", "is missing"))
}

fn wait_options(options: Option<Arg>) -> Result<WaitOptions, Error> {
    WaitOptions::default().read(&options.unwrap_or_default().options()?, Unit::Seconds)
}
