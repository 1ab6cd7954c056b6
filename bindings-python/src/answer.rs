//! What limits say, as Python has it.

use leasehold::Micros;
use leasehold::client::{LimitAnswer as CoreAnswer, Unit};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::amount::Int;
use crate::guard::guard;

/// What an answer says, by its names.
const NAMES: [&str; 6] = ["allowed", "limit", "remaining", "retry_after", "reset_after", "said"];

/// Whether something is allowed, as the limit says that binds it: of those that refuse, the one that does so longest; of those that
/// allow, the one of which least remains. As true as `allowed` is, and so no `dict`: those who write one take a false one for empty.
/// `as_dict` gives one.
#[pyclass(frozen, module = "leasehold.views")]
pub struct LimitAnswer {
    /// In the order of [`NAMES`].
    said: Py<PyTuple>,
}

impl LimitAnswer {
    fn value<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        match NAMES.iter().position(|known| *known == name) {
            Some(place) => self.said.bind(py).get_item(place),
            None => Err(PyKeyError::new_err(name.to_owned())),
        }
    }
}

#[pymethods]
impl LimitAnswer {
    /// One that says this: for tests of who asks limits.
    #[new]
    #[pyo3(signature = (allowed, limit, remaining, retry_after, reset_after, said))]
    fn new(
        py: Python<'_>,
        allowed: bool,
        limit: Option<String>,
        remaining: Bound<'_, PyAny>,
        retry_after: Option<f64>,
        reset_after: Option<f64>,
        said: String,
    ) -> PyResult<Self> {
        guard(|| {
            let said = (allowed, limit, remaining, retry_after, reset_after, said).into_pyobject(py)?;
            Ok(Self { said: said.unbind() })
        })
    }

    /// Whether all limits allow it, and it was charged.
    #[getter]
    fn allowed<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guard(|| Ok(self.value(py, "allowed")?))
    }

    /// The name of the limit that binds.
    #[getter]
    fn limit<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guard(|| Ok(self.value(py, "limit")?))
    }

    /// What can still be taken of that limit.
    #[getter]
    fn remaining<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guard(|| Ok(self.value(py, "remaining")?))
    }

    /// When it would be allowed, in seconds.
    #[getter]
    fn retry_after<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guard(|| Ok(self.value(py, "retry_after")?))
    }

    /// When that limit is as if never used, in seconds.
    #[getter]
    fn reset_after<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guard(|| Ok(self.value(py, "reset_after")?))
    }

    /// Who says so.
    #[getter]
    fn said<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        guard(|| Ok(self.value(py, "said")?))
    }

    /// All that it says, by its names.
    fn as_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        guard(|| {
            let said = PyDict::new(py);
            NAMES.iter().zip(self.said.bind(py)).try_for_each(|(name, value)| said.set_item(name, value))?;
            Ok(said)
        })
    }

    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        guard(|| Ok(self.value(py, name)?))
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        guard(|| Ok(self.value(py, "allowed")?.is_truthy()?))
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        guard(|| match other.cast::<Self>() {
            Ok(other) => Ok(self.said.bind(py).eq(&other.get().said)?),
            Err(_) => Ok(false),
        })
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        guard(|| Ok(self.said.bind(py).hash()?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        guard(|| {
            let said = NAMES.iter().zip(self.said.bind(py));
            let words = said.map(|(name, value)| Ok(format!("{name}={}", value.repr()?)));
            Ok(format!("LimitAnswer({})", words.collect::<PyResult<Vec<_>>>()?.join(", ")))
        })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyType>, Py<PyTuple>)> {
        guard(|| Ok((py.get_type::<Self>(), self.said.clone_ref(py))))
    }
}

/// An answer of the core on its way to Python.
pub struct Answer(pub CoreAnswer);

impl<'py> IntoPyObject<'py> for Answer {
    type Target = LimitAnswer;
    type Output = Bound<'py, LimitAnswer>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        let CoreAnswer { allowed, limit, remaining, retry_after_micros, reset_after_micros, said } = self.0;
        let seconds = |time: Option<Micros>| time.map(|time| Unit::Seconds.count(time));
        let (limit, said) = (limit.as_ref().map(|name| name.as_str()), said.as_str());
        let (retry_after, reset_after) = (seconds(retry_after_micros), seconds(reset_after_micros));
        let told = (allowed, limit, Int(remaining).into_bound_py_any(py)?, retry_after, reset_after, said);
        Bound::new(py, LimitAnswer { said: told.into_pyobject(py)?.unbind() })
    }
}
