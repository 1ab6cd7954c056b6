//! What each command does, by the type that it works on.

pub(crate) mod hashes;
pub(crate) mod introspection;
pub(crate) mod keys;
pub(crate) mod lists;
pub(crate) mod range;
pub(crate) mod sets;
pub(crate) mod sorted_sets;
pub(crate) mod span;
pub(crate) mod strings;

use crate::error_reply::ErrorReply;
use crate::number::parse_integer;

/// An argument that must be an integer.
pub(crate) fn integer(arg: &[u8]) -> Result<i64, ErrorReply> {
    parse_integer(arg).ok_or(ErrorReply::NOT_AN_INTEGER)
}

/// An argument that must be a count, zero or more.
pub(crate) fn count(arg: &[u8]) -> Result<usize, ErrorReply> {
    parse_integer(arg).and_then(|count| usize::try_from(count).ok()).ok_or(ErrorReply::NOT_POSITIVE)
}
