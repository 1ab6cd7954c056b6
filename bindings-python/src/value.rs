//! Plain data on its way from and to Python.

use std::fmt::Display;

use leasehold::Error;
use leasehold::nonce::Nonce;
use leasehold::value::Value;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMemoryView, PyRange, PySequence,
    PyString, PyTuple,
};

use crate::guard::guard;

/// An argument of any type. One that has no place in a `Value` is an error of the core, which names it by its path (such as
/// `slots[2].weight`) once the export says what the argument is called.
pub struct Arg(Result<Value, Error>);

impl Arg {
    /// The argument of this name.
    pub fn named(self, name: &str) -> Result<Value, Error> {
        self.0.map_err(|error| error.within(name))
    }

    /// The text of this name.
    pub fn text(self, name: &str) -> Result<String, Error> {
        self.named(name)?.as_text().map(str::to_owned).map_err(|error| error.within(name))
    }

    /// The nonce of this name. A `float` is none, however whole it is.
    pub fn nonce(self, name: &str) -> Result<Nonce, Error> {
        let nonce = match self.named(name)? {
            Value::Number(number) => {
                let message = format_args!("must be an int from 0 to 2^64 - 1, not the float {number}");
                Err(Error::invalid("", message))
            }
            other => other.as_u64(),
        };
        nonce.map_err(|error| error.within(name))
    }
}

impl From<Value> for Arg {
    fn from(value: Value) -> Self {
        Self(Ok(value))
    }
}

/// One that was left out.
impl Default for Arg {
    fn default() -> Self {
        Self(Ok(Value::Null))
    }
}

impl<'py> FromPyObject<'_, 'py> for Arg {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        guard(|| Ok(Self(read(&object, 0))))
    }
}

/// The digits of an amount of more than 128 bits. Python refuses to write down what is absurdly long, and then the number is
/// refused as it is.
pub fn digits(object: &Bound<'_, PyAny>) -> Option<Value> {
    let large = own(object.cast::<PyInt>().ok()?).ok().filter(|it| it.extract::<i128>().is_err())?;
    text(&large.str().ok()?).ok().map(Value::Text)
}

/// The number that it is, whatever a class that is derived from `int` says and reckons.
fn own<'py>(number: &Bound<'py, PyInt>) -> PyResult<Bound<'py, PyInt>> {
    if number.is_exact_instance_of::<PyInt>() {
        return Ok(number.clone());
    }
    let py = number.py();
    Ok(py.get_type::<PyInt>().call_method1(intern!(py, "__int__"), (number,))?.cast_into()?)
}

/// A value as Python has it.
pub struct Plain(pub Value);

impl<T: Into<Value>> From<T> for Plain {
    fn from(value: T) -> Self {
        Self(value.into())
    }
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
/// The key of what may have more than 128 bits.
const AMOUNT: &str = "amount";

fn read(object: &Bound<'_, PyAny>, depth: usize) -> Result<Value, Error> {
    if depth > DEEPEST {
        Err(wrong("nested too deeply"))
    } else if object.is_none() {
        Ok(Value::Null)
    } else if let Ok(it) = object.cast::<PyBool>() {
        // Before `int`, of which `bool` is a kind.
        Ok(Value::Bool(it.is_true()))
    } else if let Ok(it) = object.cast::<PyInt>() {
        let number = own(it).and_then(|it| it.extract());
        number.map(Value::Integer).map_err(|_| wrong("an integer of more than 128 bits"))
    } else if let Ok(it) = object.cast::<PyFloat>() {
        Ok(Value::Number(it.value()))
    } else if let Ok(it) = object.cast::<PyString>() {
        text(it).map(Value::Text)
    } else if let Ok(it) = object.cast::<PyList>() {
        list(it.iter(), depth)
    } else if let Ok(it) = object.cast::<PyTuple>() {
        list(it.iter(), depth)
    } else if let Ok(it) = object.cast::<PyDict>() {
        map(it, depth)
    } else if let Some(it) = sequence(object) {
        items(it, depth)
    } else {
        let remedy = match () {
            () if is_a(object, "datetime", "timedelta") => "pass seconds, as a number",
            () if object.hasattr("__float__").unwrap_or_default() => {
                "pass an int, a float, or an amount's digits"
            }
            () => "pass None, or a bool, int, float, str, list, tuple or dict, as it wants",
        };
        Err(wrong(format_args!("a {}; {remedy}", name_of_type(object))))
    }
}

/// What is one by `collections.abc.Sequence`, and is read as a list. Bytes are data, and a range may be longer than any list.
fn sequence<'a, 'py>(object: &'a Bound<'py, PyAny>) -> Option<&'a Bound<'py, PySequence>> {
    let is_none_here = object.is_instance_of::<PyBytes>()
        || object.is_instance_of::<PyByteArray>()
        || object.is_instance_of::<PyMemoryView>()
        || object.is_instance_of::<PyRange>()
        || is_a(object, "collections", "UserString");
    if is_none_here { None } else { object.cast().ok() }
}

/// Those of a sequence, as many as it says that it has.
fn items(sequence: &Bound<'_, PySequence>, depth: usize) -> Result<Value, Error> {
    let unfit = |raised| wrong(format_args!("a {} that cannot be read: {raised}", name_of_type(sequence)));
    let length = sequence.len().map_err(unfit)?;
    let items = sequence.try_iter().map_err(unfit)?.take(length).collect::<PyResult<Vec<_>>>();
    list(items.map_err(unfit)?.into_iter(), depth)
}

fn is_a(object: &Bound<'_, PyAny>, module: &str, kind: &str) -> bool {
    let kind = object.py().import(module).and_then(|module| module.getattr(kind));
    kind.is_ok_and(|kind| object.is_instance(&kind).unwrap_or_default())
}

fn text(text: &Bound<'_, PyString>) -> Result<String, Error> {
    text.extract().map_err(|_| wrong("a text that is not valid Unicode"))
}

fn list<'py>(items: impl Iterator<Item = Bound<'py, PyAny>>, depth: usize) -> Result<Value, Error> {
    let item = |(at, item)| read(&item, depth + 1).map_err(|error| error.within(&format!("[{at}]")));
    items.enumerate().map(item).collect::<Result<_, _>>().map(Value::List)
}

fn map(dict: &Bound<'_, PyDict>, depth: usize) -> Result<Value, Error> {
    let mut entries = Vec::with_capacity(dict.len());
    for (key, value) in dict.iter() {
        let (key, value) = entry(&key, &value, depth)?;
        entries.push((key, value?));
    }
    Ok(Value::Map(entries))
}

/// One of a dict, whose value may have no place in a `Value`.
pub fn entry(
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    depth: usize,
) -> Result<(String, Result<Value, Error>), Error> {
    let no_text = |_| wrong(format_args!("a dict with a key that is a {}", name_of_type(key)));
    let key = text(key.cast::<PyString>().map_err(no_text)?)?;
    let large = if key == AMOUNT { digits(value) } else { None };
    let value = large.map_or_else(|| read(value, depth + 1), Ok).map_err(|error| error.within(&key));
    Ok((key, value))
}

fn wrong(what: impl Display) -> Error {
    Error::invalid("", format_args!("is {what}"))
}

fn name_of_type(object: &Bound<'_, PyAny>) -> String {
    object.get_type().name().map_or_else(|_| "object".to_owned(), |name| name.to_string())
}
