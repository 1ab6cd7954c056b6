//! Amounts: whole numbers that may be larger than any of a `Value`.

use leasehold::Error;
use leasehold::amount::Amount;
use leasehold::value::Value;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::value::{Arg, digits};

/// A whole number of any size. One of more than 128 bits travels as its digits.
pub struct Whole(pub Arg);

impl Whole {
    /// What a cost is where none is given. None is given, and is no amount.
    pub fn one() -> Self {
        Self(Value::Integer(1).into())
    }

    /// The amount of this name.
    pub fn amount(self, name: &str) -> Result<Amount, Error> {
        Amount::read(&self.0.named(name)?).map_err(|error| error.within(name))
    }
}

impl<'py> FromPyObject<'_, 'py> for Whole {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        digits(&object).map_or_else(|| object.extract(), |digits| Ok(digits.into())).map(Self)
    }
}

/// An amount as Python has it.
pub struct Int(pub Amount);

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
