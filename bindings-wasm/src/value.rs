//! The one conversion between JavaScript's values and the core's: options in, results out.

use js_sys::{Array, BigInt, JsString, Object};
use leasehold::Error;
use leasehold::value::Value;
use wasm_bindgen::{JsCast, JsValue};

use crate::failure::Failure;
use crate::host;

/// Deeper than any option; a value that contains itself ends here instead of on the stack.
const MAX_DEPTH: usize = 32;

/// The options of a call.
pub fn options(value: &JsValue) -> Result<Value, Failure> {
    if value.is_undefined() {
        return Ok(Value::Null);
    }
    read(value).map_err(|failure| match failure {
        Failure::Ours(error) if error.field() == Some("") => error.within("options").into(),
        failure => failure,
    })
}

/// An argument of this name.
pub fn named(value: &JsValue, name: &str) -> Result<Value, Failure> {
    read(value).map_err(|failure| failure.within(name))
}

/// A text that is an argument of this name.
pub fn text(value: &JsValue, name: &str) -> Result<String, Failure> {
    Ok(named(value, name)?.as_text().map_err(|error| error.within(name))?.to_owned())
}

/// A whole number that is an argument of this name, or nothing.
pub fn whole(value: &JsValue, name: &str) -> Result<Option<u64>, Failure> {
    if value.is_undefined() {
        return Ok(None);
    }
    Ok(Some(named(value, name)?.as_u64().map_err(|error| error.within(name))?))
}

/// Any value.
pub fn read(value: &JsValue) -> Result<Value, Failure> {
    read_at(value, 0)
}

/// Any value.
pub fn write(value: Value) -> JsValue {
    match value {
        Value::Null => JsValue::NULL,
        Value::Bool(flag) => flag.into(),
        Value::Number(number) => number.into(),
        Value::Integer(integer) => integer.into(),
        Value::Text(text) => text.into(),
        Value::List(items) => items.into_iter().map(write).collect::<Array>().into(),
        Value::Map(members) => {
            let entries = Array::new();
            for (key, member) in members {
                entries.push(&Array::of2(&key.into(), &write(member)));
            }
            // Unlike an assignment, this gives a member `__proto__` and leaves the prototype alone.
            Object::from_entries(&entries).map_or(JsValue::NULL, JsValue::from)
        }
    }
}

fn read_at(value: &JsValue, depth: usize) -> Result<Value, Failure> {
    if depth > MAX_DEPTH {
        return Err(unusable("nested more than 32 deep"));
    }
    if value.is_null() || value.is_undefined() {
        Ok(Value::Null)
    } else if let Some(flag) = value.as_bool() {
        Ok(Value::Bool(flag))
    } else if let Some(number) = value.as_f64() {
        Ok(Value::Number(number))
    } else if let Some(integer) = value.dyn_ref::<BigInt>() {
        let integer = i128::try_from(integer.clone());
        integer.map(Value::Integer).map_err(|_| unusable("an integer beyond 128 bits cannot be used here"))
    } else if let Some(text) = value.dyn_ref::<JsString>() {
        read_text(text).map(Value::Text)
    } else if value.is_function() {
        Err(unusable("a function cannot be used here"))
    } else if value.is_symbol() {
        Err(unusable("a symbol cannot be used here"))
    } else if value.is_array() {
        read_list(value, depth)
    } else {
        read_map(value, depth)
    }
}

fn unusable(reason: &str) -> Failure {
    Error::invalid("", reason).into()
}

/// Refuses half a surrogate pair, which would be replaced in silence, and two ids would become one.
fn read_text(text: &JsString) -> Result<String, Failure> {
    if host::well_formed(text) {
        Ok(text.into())
    } else {
        Err(unusable("a text with half a surrogate pair cannot be used here"))
    }
}

fn read_list(list: &JsValue, depth: usize) -> Result<Value, Failure> {
    let list = members(list)?;
    let mut items = Vec::new();
    for index in 0..list.length() {
        let item = read_at(&list.get(index), depth + 1);
        items.push(item.map_err(|failure| failure.within(&format!("[{index}]")))?);
    }
    Ok(Value::List(items))
}

/// The items of a list, or keys and members in turn.
fn members(of: &JsValue) -> Result<Array, Failure> {
    let list = host::members(of).map_err(Failure::Passed)?;
    list.ok_or_else(|| unusable("only plain objects and arrays can be used here"))
}

fn read_map(object: &JsValue, depth: usize) -> Result<Value, Failure> {
    let list = members(object)?;
    let mut members = Vec::new();
    for index in (0..list.length()).step_by(2) {
        let key = read_text(&list.get(index).unchecked_into())?;
        let member = read_at(&list.get(index + 1), depth + 1).map_err(|failure| failure.within(&key))?;
        members.push((key, member));
    }
    Ok(Value::Map(members))
}
