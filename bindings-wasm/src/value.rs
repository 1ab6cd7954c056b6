//! The one conversion between JavaScript values and the core's: options in, results out.

use std::fmt;

use js_sys::{Array, BigInt, JsString, Object};
use wasm_bindgen::{JsCast, JsValue};

use crate::failure::Failure;
use crate::host;

/// A value that every host language can say.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Null,
    Bool(bool),
    Number(f64),
    Integer(i128),
    Text(String),
    List(Vec<Value>),
    Map(Vec<(String, Value)>),
}

/// Deeper than any option; a value that contains itself ends here instead of on the stack.
const MAX_DEPTH: usize = 32;

impl TryFrom<&JsValue> for Value {
    type Error = Failure;

    fn try_from(value: &JsValue) -> Result<Self, Failure> {
        read(value, 0).map_err(Fault::into_failure)
    }
}

impl From<Value> for JsValue {
    fn from(value: Value) -> JsValue {
        match value {
            Value::Null => JsValue::NULL,
            Value::Bool(flag) => flag.into(),
            Value::Number(number) => number.into(),
            Value::Integer(integer) => integer.into(),
            Value::Text(text) => text.into(),
            Value::List(items) => items.into_iter().map(JsValue::from).collect::<Array>().into(),
            Value::Map(members) => {
                let entries: Array = members
                    .into_iter()
                    .map(|(key, member)| Array::of2(&key.into(), &member.into()))
                    .collect();
                // Unlike an assignment, this gives a member `__proto__` and leaves the prototype alone.
                Object::from_entries(&entries).map_or(JsValue::NULL, JsValue::from)
            }
        }
    }
}

/// A value that cannot be taken, and where it stands.
struct Fault {
    path: String,
    reason: String,
    /// An exception thrown by the caller's own code, such as a getter, goes back to the caller as it is.
    thrown: Option<JsValue>,
}

impl Fault {
    fn new(reason: impl fmt::Display) -> Self {
        Fault { path: String::new(), reason: reason.to_string(), thrown: None }
    }

    fn under(mut self, segment: impl fmt::Display) -> Self {
        self.path = format!("{segment}{}", self.path);
        self
    }

    fn into_failure(self) -> Failure {
        let Fault { path, reason, thrown } = self;
        thrown.map_or_else(
            || Failure::new("invalid_argument", format!("value{path}: {reason}")),
            Failure::Passed,
        )
    }
}

fn read(value: &JsValue, depth: usize) -> Result<Value, Fault> {
    if depth > MAX_DEPTH {
        return Err(Fault::new(format!("nested more than {MAX_DEPTH} deep")));
    }
    if value.is_null() || value.is_undefined() {
        Ok(Value::Null)
    } else if let Some(flag) = value.as_bool() {
        Ok(Value::Bool(flag))
    } else if let Some(number) = value.as_f64() {
        Ok(Value::Number(number))
    } else if let Some(integer) = value.dyn_ref::<BigInt>() {
        let integer = i128::try_from(integer.clone());
        integer.map(Value::Integer).map_err(|_| Fault::new("an integer beyond 128 bits cannot be used here"))
    } else if let Some(text) = value.dyn_ref::<JsString>() {
        read_text(text).map(Value::Text)
    } else if value.is_function() {
        Err(Fault::new("a function cannot be used here"))
    } else if value.is_symbol() {
        Err(Fault::new("a symbol cannot be used here"))
    } else if let Some(list) = value.dyn_ref::<Array>() {
        read_list(list, depth)
    } else {
        read_map(value, depth)
    }
}

/// Refuses half a surrogate pair, which would be replaced in silence, and two ids would become one.
fn read_text(text: &JsString) -> Result<String, Fault> {
    if text.is_valid_utf16() {
        Ok(text.into())
    } else {
        Err(Fault::new("a text with half a surrogate pair cannot be used here"))
    }
}

fn read_list(list: &Array, depth: usize) -> Result<Value, Fault> {
    let mut items = Vec::new();
    for index in 0..list.length() {
        let item = read(&list.get(index), depth + 1);
        items.push(item.map_err(|fault| fault.under(format_args!("[{index}]")))?);
    }
    Ok(Value::List(items))
}

fn read_map(object: &JsValue, depth: usize) -> Result<Value, Fault> {
    let list = host::members(object).map_err(|thrown| Fault { thrown: Some(thrown), ..Fault::new("") })?;
    let list = list.ok_or_else(|| Fault::new("only plain objects and arrays can be used here"))?;
    let mut members = Vec::new();
    for index in (0..list.length()).step_by(2) {
        let key = read_text(&list.get(index).unchecked_into())?;
        let member = read(&list.get(index + 1), depth + 1);
        members.push((key.clone(), member.map_err(|fault| fault.under(format_args!(".{key}")))?));
    }
    Ok(Value::Map(members))
}
