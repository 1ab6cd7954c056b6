//! Plain data on its way from and to Python.

use leasehold::Error;
use leasehold::value::Value;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

/// Reads a Python object. `path` names it in errors, which name what lies within it the same way: `slots[2].weight`.
pub fn read(object: &Bound<'_, PyAny>, path: &str) -> Result<Value, Error> {
    Reader { path: path.to_owned(), depth: 0 }.read(object)
}

/// Reads keyword arguments.
pub fn read_options(options: Option<&Bound<'_, PyDict>>) -> Result<Value, Error> {
    match options {
        Some(options) => Reader { path: String::new(), depth: 0 }.map(options),
        None => Ok(Value::Null),
    }
}

/// Reads a text.
pub fn read_text(object: &Bound<'_, PyAny>, path: &str) -> Result<String, Error> {
    read(object, path)?.as_text().map(str::to_owned).map_err(|error| error.within(path))
}

/// Reads a nonce. A `float` is none, however whole it is.
pub fn read_nonce(object: &Bound<'_, PyAny>, path: &str) -> Result<u64, Error> {
    match read(object, path)? {
        Value::Number(number) => Err(Error::invalid(
            path,
            format_args!("must be an int from 0 to 2^64 - 1, not the float {number}"),
        )),
        other => other.as_u64().map_err(|error| error.within(path)),
    }
}

/// A value as Python has it.
pub struct Plain(pub Value);

impl Plain {
    /// `None`.
    pub const NONE: Self = Self(Value::Null);
}

impl<'py> IntoPyObject<'py> for Plain {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Ok(match self.0 {
            Value::Null => py.None().into_bound(py),
            Value::Bool(it) => PyBool::new(py, it).to_owned().into_any(),
            Value::Number(it) => PyFloat::new(py, it).into_any(),
            Value::Integer(it) => it.into_pyobject(py)?.into_any(),
            Value::Text(it) => PyString::new(py, &it).into_any(),
            Value::List(items) => PyList::new(py, items.into_iter().map(Plain))?.into_any(),
            Value::Map(entries) => {
                let dict = PyDict::new(py);
                for (key, value) in entries {
                    dict.set_item(key, Plain(value))?;
                }
                dict.into_any()
            }
        })
    }
}

/// Deeper than any request, and far less deep than the stack; a list within itself ends here.
const DEEPEST: usize = 64;

struct Reader {
    path: String,
    depth: usize,
}

impl Reader {
    fn read(&mut self, object: &Bound<'_, PyAny>) -> Result<Value, Error> {
        if object.is_none() {
            Ok(Value::Null)
        } else if let Ok(it) = object.cast::<PyBool>() {
            // Before `int`, of which `bool` is a kind.
            Ok(Value::Bool(it.is_true()))
        } else if let Ok(it) = object.cast::<PyInt>() {
            it.extract().map(Value::Integer).map_err(|_| self.wrong("an integer of more than 128 bits"))
        } else if let Ok(it) = object.cast::<PyFloat>() {
            Ok(Value::Number(it.value()))
        } else if let Ok(it) = object.cast::<PyString>() {
            self.text(it).map(Value::Text)
        } else if let Ok(it) = object.cast::<PyList>() {
            self.list(it.iter())
        } else if let Ok(it) = object.cast::<PyTuple>() {
            self.list(it.iter())
        } else if let Ok(it) = object.cast::<PyDict>() {
            self.map(it)
        } else {
            Err(self.wrong(&format!("a {}", name_of_type(object))))
        }
    }

    fn text(&self, text: &Bound<'_, PyString>) -> Result<String, Error> {
        text.extract().map_err(|_| self.wrong("a text that is not valid Unicode"))
    }

    fn list<'py>(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>) -> Result<Value, Error> {
        let items = items.enumerate().map(|(at, item)| self.within(&format!("[{at}]"), &item));
        items.collect::<Result<_, _>>().map(Value::List)
    }

    fn map(&mut self, dict: &Bound<'_, PyDict>) -> Result<Value, Error> {
        let mut entries = Vec::with_capacity(dict.len());
        for (key, value) in dict.iter() {
            let Ok(key) = key.cast::<PyString>() else {
                return Err(self.wrong(&format!("a dict with a key that is a {}", name_of_type(&key))));
            };
            let key = self.text(key)?;
            let joint = if self.path.is_empty() { "" } else { "." };
            let value = self.within(&format!("{joint}{key}"), &value)?;
            entries.push((key, value));
        }
        Ok(Value::Map(entries))
    }

    fn within(&mut self, step: &str, object: &Bound<'_, PyAny>) -> Result<Value, Error> {
        if self.depth == DEEPEST {
            return Err(self.wrong("nested too deeply"));
        }
        let outer = self.path.len();
        self.path.push_str(step);
        self.depth += 1;
        let value = self.read(object)?;
        self.depth -= 1;
        self.path.truncate(outer);
        Ok(value)
    }

    fn wrong(&self, what: &str) -> Error {
        wrong(&self.path, what)
    }
}

fn wrong(path: &str, what: &str) -> Error {
    Error::invalid(path, format_args!("is {what}; pass None, bool, int, float, str, list, tuple or dict"))
}

fn name_of_type(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
}
