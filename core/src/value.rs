//! Values as every language has them: what options arrive in and views leave in.
//!
//! A binding converts its language's values to these and back, and nothing else. Which keys there are,
//! which types and which ranges, is said here in the core, so that each language gives the same error
//! for the same mistake.

use std::fmt;

use crate::error::{Error, Result};

/// The most values that a binding takes in one argument, each in a list or a map counted: more than those of as many slots as a pool
/// may have, or of the largest page of tokens. A list of any length costs its host nothing, nor does one that holds another many times.
pub const MAX_VALUES: usize = 8_000_000;

/// A value of the host's language.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Nothing: `null`, `undefined`, `None`.
    Null,
    /// True or false.
    Bool(bool),
    /// A number that may have a fraction.
    Number(f64),
    /// A whole number.
    Integer(i128),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Value>),
    /// Keys and values, in order.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// What the value is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "nothing",
            Value::Bool(_) => "a truth value",
            Value::Number(_) => "a number",
            Value::Integer(_) => "a whole number",
            Value::Text(_) => "text",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }

    /// A map of known keys.
    pub fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
        Self::map_of(entries.into())
    }

    /// One function for maps of all lengths, instead of a copy for each.
    fn map_of(entries: Vec<(&str, Value)>) -> Value {
        Value::Map(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// A whole number from 0 to 2^64 - 1, exactly.
    ///
    /// # Errors
    /// `invalid_argument` for anything else; also for a number above 2^53, which may have lost digits.
    pub fn as_u64(&self) -> Result<u64> {
        self.as_u64_of(format_args!("0 to 2^64 - 1"))
    }

    /// The same, where messages say which numbers are good: those whose range is another have it checked by who asks.
    pub(crate) fn as_u64_of(&self, range: fmt::Arguments<'_>) -> Result<u64> {
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let whole = match *self {
            Value::Integer(number) => u64::try_from(number).ok(),
            Value::Number(number) if number.fract() == 0.0 && (0.0..EXACT).contains(&number) => {
                Some(number as u64)
            }
            _ => None,
        };
        whole.ok_or_else(|| {
            let lossy = matches!(*self, Value::Number(number) if number >= EXACT);
            let hint = if lossy { "; from 2^53 on give an integer, in JavaScript a bigint" } else { "" };
            let message = format_args!("{} is not a whole number from {range}{hint}", self.shown());
            Error::invalid("", message)
        })
    }

    /// Text.
    ///
    /// # Errors
    /// `invalid_argument` for anything else.
    pub fn as_text(&self) -> Result<&str> {
        match self {
            Value::Text(text) => Ok(text),
            other => Err(Error::invalid("", format_args!("must be text, not {}", other.kind()))),
        }
    }

    /// A list.
    ///
    /// # Errors
    /// `invalid_argument` for anything else.
    pub fn as_list(&self) -> Result<&[Value]> {
        match self {
            Value::List(values) => Ok(values),
            other => Err(Error::invalid("", format_args!("must be a list, not {}", other.kind()))),
        }
    }

    /// True or false.
    ///
    /// # Errors
    /// `invalid_argument` for anything else.
    pub fn as_bool(&self) -> Result<bool> {
        match self {
            Value::Bool(flag) => Ok(*flag),
            other => Err(Error::invalid("", format_args!("must be true or false, not {}", other.kind()))),
        }
    }

    /// A number, with or without a fraction.
    ///
    /// # Errors
    /// `invalid_argument` for anything else, and for what is not finite.
    pub fn as_number(&self) -> Result<f64> {
        match *self {
            Value::Number(number) if number.is_finite() => Ok(number),
            // Beyond 64 bits nothing is in range, and to convert that takes too much of the wasm module.
            Value::Integer(number) => Ok(number.clamp(i64::MIN.into(), i64::MAX.into()) as i64 as f64),
            _ => Err(Error::invalid("", format_args!("must be a finite number, not {}", self.shown()))),
        }
    }

    fn shown(&self) -> String {
        match self {
            Value::Number(number) => shown_number(*number),
            // To format 128 bits takes much of the wasm module.
            Value::Integer(number) => match i64::try_from(*number) {
                Ok(number) => number.to_string(),
                Err(_) => "an integer that is too large".to_owned(),
            },
            other => other.kind().to_owned(),
        }
    }
}

/// A number to three decimals. The library's own formatting of floats would be a tenth of the wasm module.
fn shown_number(number: f64) -> String {
    const LARGE: f64 = 1e15;
    if number.is_nan() {
        return "NaN".to_owned();
    }
    let sign = if number < 0.0 { "-" } else { "" };
    if number.abs() >= LARGE {
        return format!("{sign}{}", if number.is_finite() { "a number above 10^15" } else { "infinity" });
    }
    let thousandths = (number.abs() * 1e3).round() as u64;
    let (whole, mut rest, mut width) = (thousandths / 1_000, thousandths % 1_000, 3);
    if rest == 0 {
        return format!("{sign}{whole}");
    }
    while rest % 10 == 0 {
        (rest, width) = (rest / 10, width - 1);
    }
    format!("{sign}{whole}.{rest:0width$}")
}

impl From<()> for Value {
    fn from((): ()) -> Self {
        Value::Null
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Self {
        Value::Integer(number.into())
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Value::Text(text.to_owned())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Value::Null, Into::into)
    }
}

/// Reads a map of options: every key that is there must be taken, or it is unknown.
#[derive(Debug)]
pub struct Options<'a> {
    entries: Vec<(&'a str, &'a Value)>,
    known: Vec<&'static str>,
}

impl<'a> Options<'a> {
    /// Reads the options of a call: as [`Self::new`], the map itself named `options`.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_call(value: &'a Value) -> Result<Self> {
        Self::new(value).map_err(|error| error.within("options"))
    }

    /// Reads the map; `Null` is an empty one.
    ///
    /// # Errors
    /// `invalid_argument` if the value is not a map, or has a key twice.
    pub fn new(value: &'a Value) -> Result<Self> {
        let entries = match value {
            Value::Null => Vec::new(),
            Value::Map(entries) => entries.iter().map(|(key, value)| (key.as_str(), value)).collect(),
            other => {
                return Err(Error::invalid(
                    "",
                    format_args!("must be a map of options, not {}", other.kind()),
                ));
            }
        };
        Ok(Options { entries, known: Vec::new() })
    }

    /// Takes the value of a key, unless it is missing or `Null`, and reads it.
    ///
    /// # Errors
    /// What `read` returns, with the key as the field.
    pub fn take<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&'a Value) -> Result<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.remove(key) else { return Ok(None) };
        read(value).map(Some).map_err(|error| error.within(key))
    }

    /// An option that is there besides, and that a binding takes out itself: a function.
    pub fn besides(&mut self, key: &'static str) {
        self.known.push(key);
    }

    /// The value of a key, unless it is missing or `Null`.
    fn remove(&mut self, key: &'static str) -> Option<&'a Value> {
        self.known.push(key);
        let at = self.entries.iter().position(|(name, _)| *name == key)?;
        let (_, value) = self.entries.remove(at);
        if matches!(value, Value::Null) { None } else { Some(value) }
    }

    /// Ends the reading.
    ///
    /// # Errors
    /// `invalid_argument` if a key is left that nobody took.
    pub fn end(self) -> Result<()> {
        match self.entries.first() {
            None => Ok(()),
            Some((key, _)) => {
                let mut known = String::new();
                for name in &self.known {
                    known.push_str(if known.is_empty() { "" } else { ", " });
                    known.push_str(name);
                }
                Err(Error::invalid(*key, format_args!("is not an option; there are: {known}")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_are_exact_or_refused() {
        for (value, expected) in [
            (Value::Number(5.0), Some(5)),
            (Value::Integer(u64::MAX.into()), Some(u64::MAX)),
            (Value::Number(-1.0), None),
            (Value::Number(0.5), None),
            (Value::Number(f64::NAN), None),
            (Value::Number(9_007_199_254_740_992.0), None),
            (Value::Integer(1 << 64), None),
            (Value::Integer(-1), None),
            (Value::Text("5".into()), None),
        ] {
            assert_eq!(value.as_u64().ok(), expected, "{value:?}");
        }
    }

    #[test]
    fn a_number_that_may_have_lost_digits_is_told_how_to_come() {
        let message =
            |value: Value| value.as_u64_of(format_args!("1 to 5")).unwrap_err().message().to_owned();
        assert_eq!(message(Value::Number(-1.0)), ": -1 is not a whole number from 1 to 5");
        assert_eq!(message(Value::Text("5".into())), ": text is not a whole number from 1 to 5");
        let lossy = message(Value::Number(9_007_199_254_740_992.0));
        assert!(lossy.ends_with("; from 2^53 on give an integer, in JavaScript a bigint"), "{lossy}");
    }

    #[test]
    fn whole_numbers_of_any_size_are_numbers_of_their_sign() {
        let edge = 2f64.powi(63);
        for (integer, number) in [(5, 5.0), (-5, -5.0), (i128::MAX, edge), (i128::MIN, -edge)] {
            assert_eq!(Value::Integer(integer).as_number(), Ok(number));
        }
    }

    #[test]
    fn numbers_are_shown_as_they_are_written() {
        for (number, shown) in [
            (0.5, "0.5"),
            (-1.0, "-1"),
            (0.0, "0"),
            (1234.25, "1234.25"),
            (1.05, "1.05"),
            (-0.001, "-0.001"),
            (f64::NAN, "NaN"),
        ] {
            assert_eq!(shown_number(number), shown);
        }
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_it() {
        let value = Value::map([("ttl", Value::Number(1.0)), ("tll", Value::Number(1.0))]);
        let mut options = Options::new(&value).unwrap();
        assert_eq!(options.take("ttl", Value::as_u64).unwrap(), Some(1));
        let error = options.end().unwrap_err();
        assert_eq!(error.field(), Some("tll"));
    }

    #[test]
    fn a_wrong_type_is_an_error_that_names_the_key() {
        let value = Value::map([("ttl", Value::Text("soon".into()))]);
        let error = Options::new(&value).unwrap().take("ttl", Value::as_u64).unwrap_err();
        assert_eq!(error.field(), Some("ttl"));
        assert!(error.message().starts_with("ttl: "), "{error}");
    }
}
