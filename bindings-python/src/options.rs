//! Keyword arguments.

use leasehold::Error;
use leasehold::error::Result as CoreResult;
use leasehold::value::Value;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::guard::guard;
use crate::value::{Arg, entry};

/// Keyword arguments, whose paths begin with the option's own name.
pub struct Options {
    value: Value,
    unfit: Unfit,
}

impl Options {
    /// What the core reads of them.
    pub fn read<T>(self, read: impl FnOnce(&Value) -> CoreResult<T>) -> CoreResult<T> {
        let outcome = read(&self.value);
        self.unfit.outweigh(outcome)
    }

    /// For a reader that cannot be asked at once: what it is to read, and what its outcome is to be weighed against.
    pub fn parts(self) -> (Value, Unfit) {
        (self.value, self.unfit)
    }

    /// With one that has a name of its own.
    pub fn with(mut self, name: &str, value: Arg) -> Result<Self, Error> {
        let entry = (name.to_owned(), value.named(name)?);
        match &mut self.value {
            Value::Map(entries) => entries.push(entry),
            none => *none = Value::Map(vec![entry]),
        }
        Ok(self)
    }
}

/// None were given.
impl Default for Options {
    fn default() -> Self {
        Self { value: Value::Null, unfit: Unfit(None) }
    }
}

impl<'py> FromPyObject<'_, 'py> for Options {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        guard(|| {
            let given = object.cast::<PyDict>().map_err(PyErr::from)?;
            let (mut entries, mut unfit) = (Vec::with_capacity(given.len()), Unfit(None));
            for (key, value) in given.iter() {
                let (key, value) = entry(&key, &value, 0)?;
                let value = value.unwrap_or_else(|error| {
                    unfit.0.get_or_insert_with(|| (key.clone(), error));
                    NO_OPTION_TAKES
                });
                entries.push((key, value));
            }
            Ok(Self { value: Value::Map(entries), unfit })
        })
    }
}

/// Stands where an option has a value that has no place in a `Value`, such as a function. Whoever reads it refuses it.
const NO_OPTION_TAKES: Value = Value::Map(Vec::new());

/// The name of such an option, and what is wrong with its value.
pub struct Unfit(Option<(String, Error)>);

impl Unfit {
    /// What comes of a reading: that the core has no option of this name says more than that it would not take this.
    pub fn outweigh<T>(self, outcome: CoreResult<T>) -> CoreResult<T> {
        match (self.0, outcome) {
            (None, outcome) => outcome,
            (Some((name, unfit)), Err(error)) => {
                let is_of_it = error.field() == Some(&name);
                Err(if is_of_it && !error.message().contains(UNKNOWN) { unfit } else { error })
            }
            (Some((_, unfit)), Ok(_)) => Err(unfit),
        }
    }
}

/// The core tells both by one code and field, and apart by its words.
const UNKNOWN: &str = "is not an option";
