//! Tokens of a wallet, and those that are held.

use std::sync::Arc;

use leasehold::client::native::NativeLeasehold;
use leasehold::client::{Change, SelectOptions, TokensOptions, Unit};
use leasehold::tokens::Spender;
use leasehold::value::Value;
use leasehold::{Code, Error};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::{PyTraverseError, PyVisit};

use crate::amount::{Int, Whole};
use crate::blocking::Effort;
use crate::callback::Functions;
use crate::errors::{Failure, at_end, still_held, weighed};
use crate::face::{CoreSelection, CoreTokens, Face};
use crate::forgotten::forgotten;
use crate::granted::Granted;
use crate::guard::guard;
use crate::kept::Seen;
use crate::options::Options;
use crate::process::Homebound;
use crate::token_source::token_source;
use crate::value::{Arg, Plain};

/// The tokens of one wallet.
#[pyclass(frozen, module = "leasehold")]
pub struct Tokens {
    core: Homebound<CoreTokens>,
    wallet: String,
    face: Face,
    /// Those of the source. Selections that were made ask it nothing more.
    functions: Functions,
}

impl Tokens {
    /// Those of a handle.
    pub fn open(
        handle: &NativeLeasehold,
        face: Face,
        wallet: String,
        source: Option<&Bound<'_, PyAny>>,
        options: Option<Options>,
    ) -> Result<Self, Failure> {
        let source = source.ok_or_else(|| Error::invalid("source", "is missing"))?;
        let mut functions = Functions::default();
        let source = token_source(source, face, &mut functions)?;
        let options = options
            .unwrap_or_default()
            .read(|options| TokensOptions::default().read(options, Unit::Seconds))?;
        let core = handle.tokens_with(&wallet, source, options)?;
        Ok(Self { core: Homebound::new(core, Code::InvalidArgument, "wallet"), wallet, face, functions })
    }
}

#[pymethods]
impl Tokens {
    /// The wallet's name.
    #[getter]
    fn wallet(&self) -> PyResult<&str> {
        guard(|| Ok(&*self.wallet))
    }

    /// Selects tokens that are worth at least `target`, and locks them. A target of 0 selects none.
    #[pyo3(signature = (target, **options))]
    fn select(&self, py: Python<'_>, target: Whole, options: Option<Options>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let (core, face) = (self.core.get()?.clone(), self.face);
            let target = target.amount("target")?;
            let options =
                options.unwrap_or_default().read(|options| SelectOptions::read(options, Unit::Seconds))?;
            // In a box: the core's future is large.
            let call = Box::pin(async move { core.select_with(target, options).await });
            let call = async move { Ok(Granted::selection(call.await?, face)) };
            face.run(py, Effort::Long, call, |granted| granted.take_one(py))
        })
    }

    /// Hears what the source tells: of a currency, the wallet's own if none is named.
    #[pyo3(signature = (change, currency=None))]
    fn hear(&self, change: Arg, currency: Option<Arg>) -> PyResult<()> {
        guard(|| {
            let change = Change::read(&change.named("change")?).map_err(|error| error.within("change"))?;
            let currency = currency.map(|currency| currency.text("currency")).transpose()?;
            Ok(self.core.get()?.hear(change, currency.as_deref())?)
        })
    }

    /// Who has which of these tokens locked, since when and until when: at most 1,000, or all that are locked if none are
    /// named.
    #[pyo3(signature = (ids = None))]
    fn locks(&self, py: Python<'_>, ids: Option<Arg>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let ids = ids.map_or(Ok(Value::Null), |ids| ids.named("ids"))?;
            self.face.survey(py, &self.core, |core| async move { core.locks_by(&ids, Unit::Seconds).await })
        })
    }

    /// Gives back all tokens of the wallet that this spender has locked, and says how many.
    fn release_spender(&self, py: Python<'_>, spender: Arg) -> PyResult<Py<PyAny>> {
        guard(|| {
            let spender =
                Spender::read(&spender.named("spender")?).map_err(|error| error.within("spender"))?;
            self.face.survey(py, &self.core, |core| async move {
                core.release_spender(spender).await.map(u64::from)
            })
        })
    }

    /// How many tokens of the wallet are locked, by anybody.
    fn count_locked(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| {
            self.face.survey(py, &self.core, |core| async move { core.count_locked().await.map(u64::from) })
        })
    }

    /// What the selections of this handle asked for so far.
    fn counts(&self) -> PyResult<Plain> {
        guard(|| Ok(Plain(self.core.get()?.counts().to_value())))
    }

    /// What this handle has done so far. Times in seconds.
    fn statistics(&self) -> PyResult<Plain> {
        guard(|| Ok(Plain(self.core.get()?.statistics().to_value(Unit::Seconds))))
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| Ok(self.core.shown("leasehold Tokens")))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.functions.traverse(&visit)
    }

    fn __clear__(&self) {
        self.functions.clear();
    }
}

/// Tokens that are this caller's alone. Use it with `with`: at the end of the block they are given back, unless they were spent. Those
/// that nobody has any more are not given back: they are renewed no more, and end at their deadlines.
#[pyclass(frozen, module = "leasehold")]
pub struct Selection {
    core: Homebound<Arc<CoreSelection>>,
    face: Face,
}

impl Selection {
    /// A selection of this process.
    pub fn new(core: CoreSelection, face: Face) -> Self {
        Self { core: Homebound::new(Arc::new(core), Code::Lost, "selection"), face }
    }
}

#[pymethods]
impl Selection {
    /// The tokens, each with its fence.
    #[getter]
    fn tokens<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        guard(|| {
            let core = self.core.get()?;
            let tokens = PyList::empty(py);
            for (token, fence) in core.tokens().iter().zip(core.fences()) {
                let dict = PyDict::new(py);
                dict.set_item("id", &*token.id)?;
                dict.set_item("amount", Int(token.amount))?;
                dict.set_item("since", token.since)?;
                dict.set_item("fence", fence)?;
                tokens.append(dict)?;
            }
            Ok(tokens)
        })
    }

    /// What the tokens are worth.
    #[getter]
    fn sum(&self) -> PyResult<Int> {
        guard(|| Ok(Int(self.core.get()?.sum())))
    }

    /// What they are worth above the target.
    #[getter]
    fn change(&self) -> PyResult<Int> {
        guard(|| Ok(Int(self.core.get()?.change())))
    }

    /// The largest of the tokens' fences; 0 if there is none.
    #[getter]
    fn fence(&self) -> PyResult<u64> {
        guard(|| Ok(self.core.get()?.fence()))
    }

    /// For how many seconds all of them can still be relied on; 0.0 when one cannot, infinite if there is no token.
    #[getter]
    fn remaining(&self) -> PyResult<f64> {
        guard(|| Ok(Unit::Seconds.count(self.core.get()?.remaining_micros())))
    }

    /// Whether all of them can still be relied on.
    #[getter]
    fn held(&self) -> PyResult<bool> {
        guard(|| Ok(self.core.get()?.is_held()))
    }

    /// Waits until one of them can no longer be relied on, and gives the error that says why. Gives None if they were given back
    /// or spent in time, or if `timeout` seconds have passed.
    #[pyo3(signature = (timeout=None))]
    fn lost(&self, py: Python<'_>, timeout: Option<Arg>) -> PyResult<Py<PyAny>> {
        guard(|| self.face.told(py, timeout, |time| Ok(self.core.get()?.lost_within(time))))
    }

    /// Prolongs all of them to their time to live from now.
    fn renew(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| self.face.ask(py, &self.core, |core| async move { core.renew().await }))
    }

    /// Gives all of them back. A second call does nothing.
    fn release(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| self.face.ask(py, &self.core, |core| async move { core.release().await }))
    }

    /// Says that they are spent: they stay locked for the wallet's `settle`. A second call only tells the same again.
    fn spent(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        guard(|| self.face.ask(py, &self.core, |core| async move { core.spent().await }))
    }

    fn __enter__(this: Py<Self>) -> PyResult<Py<Self>> {
        guard(|| still_held(this.get().core.get()?.is_held(), "selection").map(|()| this))
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, py: Python<'_>, exception: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        guard(|| {
            let told = at_end(exception);
            let outcome = self.face.ask(py, &self.core, |core| async move { told(core.conclude().await) });
            weighed(exception, outcome)
        })
    }

    fn __repr__(&self) -> PyResult<String> {
        guard(|| Ok(self.core.shown("leasehold Selection")))
    }
}

impl Drop for Selection {
    fn drop(&mut self) {
        forgotten(&self.core);
    }
}
