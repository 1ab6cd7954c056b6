//! The one list of errors. Every language maps it mechanically: JavaScript errors carry `code`, Python
//! has one class for each code.

use std::fmt;
use std::time::Duration;

use crate::Micros;

/// What kind of failure an [`Error`] is. The texts are stable: programs may compare them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// The time given by the caller passed before the thing could be had.
    TimedOut,
    /// The handle was closed, or the runtime ended. (Who drops a future, aborts a signal or cancels a task is told by their language.)
    Cancelled,
    /// The lease is no longer held: it ran out, was given back, or was broken. What was sent under it may have arrived.
    Lost,
    /// Somebody of higher priority waits for what is held: it is held until its deadline, and not renewed.
    Claimed,
    /// The store could not be reached, or would not serve the request. What asked it to change something may have been performed, as
    /// a limit's `take` charged.
    StoreUnavailable,
    /// Nothing can be had now, and the caller did not want to wait; or the pool has no slot that could ever come.
    Exhausted,
    /// So much waits in this process that no more is taken, or that it had no answer in time: then it may have been done, as the message
    /// says.
    Busy,
    /// The wallet holds less than was asked for, counted without any lock.
    Insufficient,
    /// Enough is there, but locked by others until a time that is told.
    LockedUntil,
    /// Enough is there, but others were faster each time.
    Contended,
    /// Enough is there, but no choice of tokens keeps to what the call allows: so many of them, no change.
    NoFit,
    /// The host's source of tokens failed.
    SourceUnavailable,
    /// A rate limit or a budget refuses.
    Limited,
    /// An argument is out of its range or of the wrong type; nothing was changed.
    InvalidArgument,
    /// What a lease's `resync` and `read_nonce` found, of which an acquisition says [`Code::TimedOut`] or [`Code::Exhausted`]: the
    /// chain's nonce contradicts the record.
    Stalled,
    /// The host's function that reads a nonce from the chain failed.
    NonceUnavailable,
    /// A defect of leasehold itself (a caught panic, a reply that makes no sense).
    Internal,
}

impl Code {
    /// Every code, in the order of its declaration.
    pub const ALL: &[Code] = &[
        Code::TimedOut,
        Code::Cancelled,
        Code::Lost,
        Code::Claimed,
        Code::StoreUnavailable,
        Code::Exhausted,
        Code::Busy,
        Code::Insufficient,
        Code::LockedUntil,
        Code::Contended,
        Code::NoFit,
        Code::SourceUnavailable,
        Code::Limited,
        Code::InvalidArgument,
        Code::Stalled,
        Code::NonceUnavailable,
        Code::Internal,
    ];

    /// The stable text of the code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Code::TimedOut => "timed_out",
            Code::Cancelled => "cancelled",
            Code::Lost => "lost",
            Code::Claimed => "claimed",
            Code::StoreUnavailable => "store_unavailable",
            Code::Exhausted => "exhausted",
            Code::Busy => "busy",
            Code::Insufficient => "insufficient",
            Code::LockedUntil => "locked_until",
            Code::Contended => "contended",
            Code::NoFit => "no_fit",
            Code::SourceUnavailable => "source_unavailable",
            Code::Limited => "limited",
            Code::InvalidArgument => "invalid_argument",
            Code::Stalled => "stalled",
            Code::NonceUnavailable => "nonce_unavailable",
            Code::Internal => "internal",
        }
    }
}

/// A failure: what happened, and what to do about it. In a box, so that what succeeds does not carry it about.
#[derive(Clone, PartialEq, Eq)]
pub struct Error(Box<Parts>);

#[derive(Clone, PartialEq, Eq)]
struct Parts {
    code: Code,
    message: String,
    field: Option<String>,
    retry_after: Option<Micros>,
}

/// The result of most operations.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// A failure of the given kind.
    #[cold]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Error(Box::new(Parts { code, message: message.into(), field: None, retry_after: None }))
    }

    /// An argument that is refused: `field` names it, `message` says which values are good.
    pub fn invalid(field: impl AsRef<str>, message: impl fmt::Display) -> Self {
        Self::refused(field.as_ref(), &message)
    }

    /// One function for all who refuse something, instead of a copy at each place.
    #[cold]
    fn refused(field: &str, message: &dyn fmt::Display) -> Self {
        let message = format!("{field}: {message}");
        let field = Some(field.to_owned());
        Error(Box::new(Parts { code: Code::InvalidArgument, message, field, retry_after: None }))
    }

    /// The kind of failure.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// What happened and what to do, in one or two sentences.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The argument that was refused, with [`Code::InvalidArgument`].
    pub fn field(&self) -> Option<&str> {
        self.0.field.as_deref()
    }

    /// When trying again can help, from when this failed: with [`Code::Limited`], [`Code::Exhausted`], [`Code::TimedOut`],
    /// [`Code::LockedUntil`] and [`Code::Stalled`], where it is known.
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after_micros().map(Duration::from_micros)
    }

    /// The same in microseconds.
    pub fn retry_after_micros(&self) -> Option<Micros> {
        if cfg!(any(feature = "crowds", feature = "limits", feature = "tokens")) {
            self.0.retry_after
        } else {
            None
        }
    }

    /// The same failure, where trying again can help after so long.
    #[must_use]
    pub fn after(mut self, time: Option<Micros>) -> Self {
        // The smallest module of wasm, which has none of them, has no room for it.
        if cfg!(any(feature = "crowds", feature = "limits", feature = "tokens")) {
            self.0.retry_after = time;
        }
        self
    }

    /// The same failure, its argument named from further outside: `slots[3]` within `options` becomes
    /// `options.slots[3]`.
    #[cold]
    pub fn within(mut self, outer: &str) -> Self {
        let parts = &mut *self.0;
        if let Some(field) = &parts.field {
            let rest = parts.message.strip_prefix(field.as_str()).unwrap_or(&parts.message);
            let joint = if field.is_empty() || field.starts_with('[') { "" } else { "." };
            let whole = format!("{outer}{joint}{field}");
            parts.message = format!("{whole}{rest}");
            parts.field = Some(whole);
        }
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { code, message, field, retry_after } = &*self.0;
        let mut shown = f.debug_struct("Error");
        shown.field("code", code).field("message", message).field("field", field);
        shown.field("retry_after", retry_after).finish()
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_snake_case() {
        let mut texts: Vec<_> = Code::ALL.iter().map(|code| code.as_str()).collect();
        assert!(texts.iter().all(|text| text.chars().all(|c| c.is_ascii_lowercase() || c == '_')));
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), Code::ALL.len());
    }

    #[test]
    fn an_outer_name_is_put_before_the_field() {
        let error = Error::invalid("[3]", "must not be empty").within("slots").within("options");
        assert_eq!(error.field(), Some("options.slots[3]"));
        assert_eq!(error.message(), "options.slots[3]: must not be empty");
    }
}
