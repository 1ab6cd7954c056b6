//! Plain data on its way from and to Python.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::errors::Failure;

/// Data of any shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `None`.
    Null,
    /// `bool`.
    Bool(bool),
    /// `float`.
    Number(f64),
    /// `int`.
    Integer(i128),
    /// `str`.
    Text(String),
    /// `list` or `tuple`; comes back as `list`.
    List(Vec<Value>),
    /// `dict` with keys of text, in its order.
    Map(Vec<(String, Value)>),
}

/// Reads a Python object. `path` names it in errors, which name what lies within it the same way: `limits[2].max`.
pub fn read(object: &Bound<'_, PyAny>, path: &str) -> Result<Value, Failure> {
    Reader { path: path.to_owned(), depth: 0 }.read(object)
}

impl<'py> IntoPyObject<'py> for Value {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;

    fn into_pyobject(self, py: Python<'py>) -> PyResult<Self::Output> {
        Ok(match self {
            Self::Null => py.None().into_bound(py),
            Self::Bool(it) => PyBool::new(py, it).to_owned().into_any(),
            Self::Number(it) => PyFloat::new(py, it).into_any(),
            Self::Integer(it) => it.into_pyobject(py)?.into_any(),
            Self::Text(it) => PyString::new(py, &it).into_any(),
            Self::List(items) => PyList::new(py, items)?.into_any(),
            Self::Map(entries) => {
                let dict = PyDict::new(py);
                for (key, value) in entries {
                    dict.set_item(key, value)?;
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
    fn read(&mut self, object: &Bound<'_, PyAny>) -> Result<Value, Failure> {
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

    fn text(&self, text: &Bound<'_, PyString>) -> Result<String, Failure> {
        text.extract().map_err(|_| self.wrong("a text that is not valid Unicode"))
    }

    fn list<'py>(&mut self, items: impl Iterator<Item = Bound<'py, PyAny>>) -> Result<Value, Failure> {
        let items = items.enumerate().map(|(at, item)| self.within(&format!("[{at}]"), &item));
        items.collect::<Result<_, _>>().map(Value::List)
    }

    fn map(&mut self, dict: &Bound<'_, PyDict>) -> Result<Value, Failure> {
        let mut entries = Vec::with_capacity(dict.len());
        for (key, value) in dict.iter() {
            let Ok(key) = key.cast::<PyString>() else {
                return Err(self.wrong(&format!("a dict with a key that is a {}", name_of_type(&key))));
            };
            let key = self.text(key)?;
            let value = self.within(&format!(".{key}"), &value)?;
            entries.push((key, value));
        }
        Ok(Value::Map(entries))
    }

    fn within(&mut self, step: &str, object: &Bound<'_, PyAny>) -> Result<Value, Failure> {
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

    fn wrong(&self, what: &str) -> Failure {
        let path = &self.path;
        Failure::new(
            "invalid_argument",
            format!("{path} is {what}; pass None, bool, int, float, str, list, tuple or dict"),
        )
    }
}

fn name_of_type(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
}
