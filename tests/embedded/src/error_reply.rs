//! Error replies, worded as Redis 7.0 words them.

use std::borrow::Cow;
use std::fmt;

use crate::Resp;

/// The text of an error reply, its code word first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorReply(Cow<'static, str>);

/// What a command answers.
pub(crate) type Answer = Result<Resp, ErrorReply>;

impl ErrorReply {
    pub(crate) const SYNTAX: Self = Self::fixed("ERR syntax error");
    pub(crate) const NOT_AN_INTEGER: Self = Self::fixed("ERR value is not an integer or out of range");
    pub(crate) const NOT_A_FLOAT: Self = Self::fixed("ERR value is not a valid float");
    pub(crate) const NOT_POSITIVE: Self = Self::fixed("ERR value is out of range, must be positive");
    pub(crate) const OVERFLOW: Self = Self::fixed("ERR increment or decrement would overflow");
    pub(crate) const WRONG_TYPE: Self =
        Self::fixed("WRONGTYPE Operation against a key holding the wrong kind of value");

    pub(crate) const fn fixed(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(Cow::Owned(text.into()))
    }

    pub(crate) fn arity(command: &str) -> Self {
        Self::new(format!("ERR wrong number of arguments for '{}' command", command.to_ascii_lowercase()))
    }

    pub(crate) fn expire_time(command: &str) -> Self {
        Self::new(format!("ERR invalid expire time in '{}' command", command.to_ascii_lowercase()))
    }

    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ErrorReply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for ErrorReply {}

impl From<ErrorReply> for Resp {
    fn from(error: ErrorReply) -> Self {
        Self::Error(error.0.into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_the_command_is_worded_in_lower_case() {
        assert_eq!(ErrorReply::arity("HSET").text(), "ERR wrong number of arguments for 'hset' command");
        assert_eq!(ErrorReply::expire_time("SET").text(), "ERR invalid expire time in 'set' command");
    }

    #[test]
    fn an_error_becomes_an_error_reply() {
        assert_eq!(Resp::from(ErrorReply::SYNTAX), Resp::Error("ERR syntax error".to_owned()));
    }
}
