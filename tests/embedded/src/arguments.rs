//! The arguments that a script hands to a command.

use mlua::{MultiValue, Value};

use crate::error_reply::ErrorReply;
use crate::number::format_double;

/// Arguments copied out of Lua, one behind the other.
#[derive(Debug, Default)]
pub(crate) struct Arguments {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Arguments {
    /// Strings as they are, numbers as Redis prints them; anything else is an error.
    pub(crate) fn of(values: &MultiValue) -> Result<Self, ErrorReply> {
        if values.is_empty() {
            return Err(ErrorReply::fixed(
                "ERR Please specify at least one argument for this redis lib call",
            ));
        }
        let mut arguments = Self { bytes: Vec::with_capacity(256), ends: Vec::with_capacity(values.len()) };
        for value in values {
            match value {
                Value::String(text) => arguments.push(&text.as_bytes()),
                Value::Integer(number) => arguments.push(format_double(*number as f64).as_bytes()),
                Value::Number(number) => arguments.push(format_double(*number).as_bytes()),
                _ => {
                    return Err(ErrorReply::fixed(
                        "ERR Lua redis lib command arguments must be strings or integers",
                    ));
                }
            }
        }
        Ok(arguments)
    }

    pub(crate) fn slices(&self) -> Vec<&[u8]> {
        let mut start = 0;
        let cut = |end: &usize| &self.bytes[std::mem::replace(&mut start, *end)..*end];
        self.ends.iter().map(cut).collect()
    }

    fn push(&mut self, argument: &[u8]) {
        self.bytes.extend_from_slice(argument);
        self.ends.push(self.bytes.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_and_tables_refused() {
        let values = [Value::Integer(100_000_000_000_000_000), Value::Number(1.5), Value::Integer(-3)];
        let arguments = Arguments::of(&values.into_iter().collect()).expect("valid");
        assert_eq!(arguments.slices(), [&b"1e+17"[..], b"1.5", b"-3"]);
        assert!(Arguments::of(&MultiValue::new()).is_err());
        assert!(Arguments::of(&[Value::Nil].into_iter().collect()).is_err());
        assert!(Arguments::of(&[Value::Boolean(true)].into_iter().collect()).is_err());
    }
}
