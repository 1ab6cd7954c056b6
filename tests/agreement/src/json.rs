//! Values as JSON.

use leasehold::value::Value;
use serde_json::Value as Json;

/// A value as JSON.
///
/// # Panics
/// If it holds a number: transcripts write numbers as text.
pub fn to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(flag) => Json::Bool(*flag),
        Value::Text(text) => Json::String(text.clone()),
        Value::List(values) => Json::Array(values.iter().map(to_json).collect()),
        Value::Map(entries) => {
            Json::Object(entries.iter().map(|(key, value)| (key.clone(), to_json(value))).collect())
        }
        Value::Number(_) | Value::Integer(_) => panic!("{value:?} is not text"),
    }
}

/// JSON as a value.
pub fn to_value(json: &Json) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(*flag),
        Json::Number(number) => Value::Number(number.as_f64().unwrap_or(f64::NAN)),
        Json::String(text) => Value::Text(text.clone()),
        Json::Array(items) => Value::List(items.iter().map(to_value).collect()),
        Json::Object(entries) => {
            Value::Map(entries.iter().map(|(key, value)| (key.clone(), to_value(value))).collect())
        }
    }
}
