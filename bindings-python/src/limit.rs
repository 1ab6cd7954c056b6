//! Limits: rates, budgets and what is in flight.

use std::sync::Mutex;

use leasehold::client::native::NativeLeasehold;
use leasehold::client::{LimitAnswer, LimitOptions, Unit, read_ttl};
use leasehold::error::Result as CoreResult;
use leasehold::limits::Amount;
use leasehold::{Code, Error};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::amount::{Int, Whole};
use crate::answer::Answer;
use crate::blocking::Effort;
use crate::errors::{Failure, at_end, weighed};
use crate::face::{CoreLimit, CoreReservation, Face};
use crate::forgotten::never_came;
use crate::granted::Granted;
use crate::guard::{guard, lock};
use crate::options::Options;
use crate::process::Homebound;
use crate::runtime;
use crate::value::Arg;

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
        options: Option<Options>,
    ) -> Result<Self, Failure> {
        Ok(Self::new(handle.limit_with(name, &read(max, options)?)?, face))
    }

    /// Registers what an action allows with a handle.
    pub fn register(
        handle: &NativeLeasehold,
        action: &str,
        max: Option<Whole>,
        options: Option<Options>,
    ) -> Result<(), Failure> {
        Ok(handle.register_with(action, &read(max, options)?)?)
    }

    /// The limit that a registered action has for a value.
    pub fn of(handle: &NativeLeasehold, face: Face, action: &str, value: Whole) -> Result<Self, Failure> {
        Ok(Self::new(handle.limit_of_by(action, &value.0.named("value")?)?, face))
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
        Ok(Self::new(handle.group(members)?, face))
    }

    fn call<F, T>(
        &self,
        py: Python<'_>,
        cost: Whole,
        verb: impl FnOnce(CoreLimit, Amount) -> F,
    ) -> Result<Py<PyAny>, Failure>
    where
        F: Future<Output = CoreResult<T>> + Send + 'static,
        T: for<'py> IntoPyObjectExt<'py> + Send + 'static,
    {
        let call = verb(self.core.get()?.clone(), cost.amount("cost")?);
        // In a box: the core's futures are large.
        self.face.run(py, Effort::Brief, Box::pin(call), Ok)
    }

    /// What it says of itself, which may be larger than a number of plain data.
    fn figure<F>(&self, py: Python<'_>, verb: impl FnOnce(CoreLimit) -> F) -> Result<Py<PyAny>, Failure>
    where
        F: Future<Output = CoreResult<Int>> + Send + 'static,
    {
        self.face.run(py, Effort::Brief, Box::pin(verb(self.core.get()?.clone())), Ok)
    }

    fn reserve_by(
        &self,
        py: Python<'_>,
        waits: bool,
        cost: Whole,
        options: Options,
    ) -> Result<Py<PyAny>, Failure> {
        let (limit, cost, face) = (self.core.get()?.clone(), cost.0.named("cost")?, self.face);
        let (options, unfit) = options.parts();
        let call =
            Box::pin(
                async move { unfit.outweigh(limit.reserve_by(waits, &cost, &options, Unit::Seconds).await) },
            );
        let call = async move { Ok(Granted::reservation(call.await?, face)) };
        face.run(py, Effort::Brief, call, |granted| granted.take_one(py))
    }
}

fn read(max: Option<Whole>, options: Option<Options>) -> Result<LimitOptions, Failure> {
    let options = options.unwrap_or_default();
    let options = if let Some(max) = max { options.with("max", max.0)? } else { options };
    Ok(options.read(|options| LimitOptions::read(options, Unit::Seconds))?)
}

#[pymethods]
impl Limit {
    /// Charges a cost, if all limits allow it. A refused attempt is not charged.
    #[pyo3(signature = (cost=Whole::one()), text_signature = "($self, cost=1)")]
    fn take(&self, py: Python<'_>, cost: Whole) -> PyResult<Py<PyAny>> {
        guard(|| self.call(py, cost, |limit, cost| async move { limit.take(cost).await.map(Answer) }))
    }

    /// The same as a truth value.
    #[pyo3(signature = (cost=Whole::one()), text_signature = "($self, cost=1)")]
    fn increment(&self, py: Python<'_>, cost: Whole) -> PyResult<Py<PyAny>> {
        guard(|| self.call(py, cost, |limit, cost| async move { limit.increment(cost).await }))
    }

    /// The same, where a refusal is `Limited`.
    #[pyo3(signature = (cost=Whole::one()), text_signature = "($self, cost=1)")]
    fn increment_or_fail(&self, py: Python<'_>, cost: Whole) -> PyResult<Py<PyAny>> {
        guard(|| {
            self.call(py, cost, |limit, cost| async move { limit.increment_or_fail(cost).await.map(Answer) })
        })
    }

    /// Whether a cost would be allowed, when, and what remains. Nothing is charged.
    #[pyo3(signature = (cost=Whole::one()), text_signature = "($self, cost=1)")]
    fn peek(&self, py: Python<'_>, cost: Whole) -> PyResult<Py<PyAny>> {
        guard(|| self.call(py, cost, |limit, cost| async move { limit.peek(cost).await.map(Answer) }))
    }

    /// Whether a cost would be refused.
    #[pyo3(signature = (cost=Whole::one()), text_signature = "($self, cost=1)")]
    fn exceeded(&self, py: Python<'_>, cost: Whole) -> PyResult<Py<PyAny>> {
        guard(|| self.call(py, cost, |limit, cost| async move { limit.exceeded(cost).await }))
    }

    /// The name of the limit that refuses a cost, or None.
    #[pyo3(signature = (cost=Whole::one()), text_signature = "($self, cost=1)")]
    fn limit_exceeded(&self, py: Python<'_>, cost: Whole) -> PyResult<Py<PyAny>> {
        guard(|| {
            self.call(py, cost, |limit, cost| async move {
                Ok(limit.limit_exceeded(cost).await?.map(|name| name.as_str().to_owned()))
            })
        })
    }

    /// What can still be taken; of several limits, of that of which least remains.
    fn remaining(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| self.figure(py, |limit| async move { limit.remaining().await.map(Int) }))
    }

    /// What is used of the limit of which least remains.
    fn used(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| self.figure(py, |limit| async move { limit.used().await.map(Int) }))
    }

    /// Gives back what was taken a moment ago.
    #[pyo3(signature = (cost=Whole::one()), text_signature = "($self, cost=1)")]
    fn refund(&self, py: Python<'_>, cost: Whole) -> PyResult<Py<PyAny>> {
        guard(|| self.call(py, cost, |limit, cost| async move { limit.refund(cost).await.map(Answer) }))
    }

    /// The same under the name that other libraries have for it.
    #[pyo3(signature = (cost=Whole::one()), text_signature = "($self, cost=1)")]
    fn decrement(&self, py: Python<'_>, cost: Whole) -> PyResult<Py<PyAny>> {
        guard(|| self.call(py, cost, |limit, cost| async move { limit.decrement(cost).await.map(Answer) }))
    }

    /// Makes the limit as if it was never used.
    fn reset(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| self.face.ask(py, &self.core, |limit| async move { limit.reset().await }))
    }

    /// Takes a cost for the time being: at most for `ttl` seconds, in which it can be given back, once.
    #[pyo3(signature = (cost=Whole::one(), *, ttl), text_signature = "($self, cost=1, *, ttl)")]
    fn reserve(&self, py: Python<'_>, cost: Whole, ttl: Arg) -> PyResult<Py<PyAny>> {
        guard(|| self.reserve_by(py, false, cost, Options::default().with("ttl", ttl)?))
    }

    /// Waits until a cost is allowed, and charges it.
    #[pyo3(signature = (cost=Whole::one(), **options), text_signature = "($self, cost=1, **options)")]
    fn wait(&self, py: Python<'_>, cost: Whole, options: Option<Options>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let (limit, cost) = (self.core.get()?.clone(), cost.0.named("cost")?);
            let (options, unfit) = options.unwrap_or_default().parts();
            let call =
                Box::pin(async move { unfit.outweigh(limit.wait_by(&cost, &options, Unit::Seconds).await) });
            self.face.run(py, Effort::Brief, async { call.await.map(Answer) }, Ok)
        })
    }

    /// Waits until a cost can be reserved.
    #[pyo3(
        signature = (cost=Whole::one(), *, ttl, **options),
        text_signature = "($self, cost=1, *, ttl, **options)"
    )]
    fn wait_to_reserve(
        &self,
        py: Python<'_>,
        cost: Whole,
        ttl: Arg,
        options: Option<Options>,
    ) -> PyResult<Py<PyAny>> {
        guard(|| self.reserve_by(py, true, cost, options.unwrap_or_default().with("ttl", ttl)?))
    }

    /// Ends a reservation that was made elsewhere, by its id: what it charged stays charged, or only so much.
    #[pyo3(signature = (id, cost=None))]
    fn commit_reservation(&self, py: Python<'_>, id: Arg, cost: Option<Whole>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let (id, kept) = (id.text("id")?, kept(cost)?);
            self.face.ask(
                py,
                &self.core,
                |limit| async move { limit.commit_reservation_kept(&id, kept).await },
            )
        })
    }

    /// The same, where what it charged is given back.
    fn refund_reservation(&self, py: Python<'_>, id: Arg) -> PyResult<Py<PyAny>> {
        guard(|| {
            let id = id.text("id")?;
            self.face.ask(py, &self.core, |limit| async move { limit.refund_reservation(&id).await })
        })
    }

    /// Prolongs a reservation that was made elsewhere, by its id, to `ttl` seconds from now, never to less than it has.
    fn renew_reservation(&self, py: Python<'_>, id: Arg, ttl: Arg) -> PyResult<Py<PyAny>> {
        guard(|| {
            let (id, ttl) = (id.named("id")?, ttl.named("ttl")?);
            self.face.ask(py, &self.core, |core| async move {
                core.renew_reservation_by(&id, &ttl, Unit::Seconds).await
            })
        })
    }

    /// The same, of which every take charges so much, whatever the cost that is said.
    fn at_cost(&self, cost: Whole) -> PyResult<Self> {
        guard(|| Ok(Self::new(self.core.get()?.at_cost(cost.amount("cost")?), self.face)))
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| {
            let names = |limit: &CoreLimit| {
                let names: Vec<_> = limit.names().map(|name| name.as_str()).collect();
                format!("Limit {{ names: {names:?} }}")
            };
            Ok(self.core.shown_as("leasehold Limit", names))
        })
    }
}

/// What was taken of limits and can be given back once. Use it with `with`: at the end of the block it stays charged, and what
/// it has in flight lands.
#[pyclass(frozen, module = "leasehold")]
pub struct Reservation {
    /// None once it has ended.
    core: Homebound<Mutex<Option<CoreReservation>>>,
    id: String,
    answer: LimitAnswer,
    face: Face,
}

impl Reservation {
    /// A reservation of this process.
    pub fn new(core: CoreReservation, face: Face) -> Self {
        let (id, answer) = (core.id(), core.answer().clone());
        Self { core: Homebound::new(Mutex::new(Some(core)), Code::Lost, "reservation"), id, answer, face }
    }

    fn end(&self) -> Result<CoreReservation, Failure> {
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

    /// For how many seconds it can still be relied on.
    #[getter]
    fn remaining(&self) -> PyResult<f64> {
        guard(|| {
            let core = lock(self.core.get()?);
            Ok(Unit::Seconds.count(core.as_ref().map_or(0, CoreReservation::remaining_micros)))
        })
    }

    /// By which any process can end it.
    #[getter]
    fn id(&self) -> PyResult<String> {
        guard(|| self.core.get().map(|_| self.id.clone()))
    }

    /// Lets go of it without an end, for another process to end it by this id.
    fn hand_over(&self) -> PyResult<String> {
        guard(|| Ok(self.end()?.hand_over()))
    }

    /// Prolongs it to `ttl` seconds from now, what it was reserved for if not given, never to less than it has.
    #[pyo3(signature = (ttl=None))]
    fn renew(&self, py: Python<'_>, ttl: Option<Arg>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let ttl = read_ttl(&ttl.unwrap_or_default().named("ttl")?, Unit::Seconds)?;
            // It is not taken: whoever ends it meanwhile finds it there.
            let renewal = lock(self.core.get()?).as_ref().ok_or_else(ended)?.renew_by(ttl);
            self.face.value(py, renewal)
        })
    }

    /// Ends it: what it charged stays charged, or only so much.
    #[pyo3(signature = (cost=None))]
    fn commit(&self, py: Python<'_>, cost: Option<Whole>) -> PyResult<Py<PyAny>> {
        guard(|| {
            // Before it is ended.
            let kept = kept(cost)?;
            self.face.value(py, self.end()?.commit_kept(kept))
        })
    }

    /// Ends it: what it charged is given back, as far as it still counts.
    fn refund(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| self.face.value(py, self.end()?.refund()))
    }

    fn __enter__(this: Py<Self>) -> PyResult<Py<Self>> {
        guard(|| {
            let has_ended = lock(this.get().core.get()?).is_none();
            if has_ended { Err(ended()) } else { Ok(this) }
        })
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let told = at_end(exception);
            let outcome = self.core.get().and_then(|core| {
                // Taken first: who wants the lock has the interpreter, and this waits without it.
                let core = lock(core).take();
                match core {
                    Some(core) => self.face.value(py, async move { told(core.commit().await) }),
                    None => Ok(py.None()),
                }
            });
            weighed(exception, outcome)
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| {
            let limit = self.answer.limit.as_ref().map_or("", |name| name.as_str());
            let state = |core: &Mutex<Option<CoreReservation>>| {
                let ended = lock(core).is_none();
                format!("Reservation {{ limit: {limit:?}, ended: {ended} }}")
            };
            Ok(self.core.shown_as("leasehold Reservation", state))
        })
    }
}

impl Drop for Reservation {
    /// It stays charged, and what it has in flight lands at its deadline: as of what is [forgotten](crate::forgotten), the work may
    /// be under way. What never came to its caller is given back.
    fn drop(&mut self) {
        let end = if never_came(&self.core) { CoreReservation::retract } else { CoreReservation::lapse };
        if let Some(core) = self.core.here().filter(|_| !runtime::ends()) {
            lock(core).take().into_iter().for_each(end);
        }
    }
}

/// What is to stay charged, if not all.
fn kept(cost: Option<Whole>) -> Result<Option<Amount>, Failure> {
    Ok(cost.map(|cost| cost.amount("cost")).transpose()?)
}

fn ended() -> Failure {
    Failure::new(
        Code::Lost,
        "this reservation was ended already, by an earlier call; end it by its id to hear what became of it, or reserve anew",
    )
}
