//! What a limit answers.

use std::time::Duration;

use crate::Micros;
use crate::error::{Code, Error};
use crate::id::Name;
use crate::limits::{Amount, Verdict};

/// Whether something is allowed, as the limit says that binds it: of those that refuse, the one that does so longest; of
/// those that allow, the one of which least remains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LimitAnswer {
    /// Whether all limits allow it, and it was charged.
    pub allowed: bool,
    /// The limit that binds; nothing where there is none.
    pub limit: Option<Name>,
    /// What can still be taken of that limit.
    pub remaining: Amount,
    /// When it would be allowed, in microseconds: 0 if it is, nothing if it never will be. Of what is in flight, when the
    /// first that is not given back ends by itself.
    pub retry_after_micros: Option<Micros>,
    /// When that limit is as if never used, in microseconds; nothing if never.
    pub reset_after_micros: Option<Micros>,
    /// Who says so.
    pub said: Said,
}

/// Who says whether something is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// The store.
    Store,
    /// This process, which remembers that the store refused the like a moment ago.
    Memory,
    /// This process, while the store cannot be used: the limit is open then.
    Outage,
}

impl Said {
    /// Its word, the same in every language: `store`, `memory` or `outage`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Said::Store => "store",
            Said::Memory => "memory",
            Said::Outage => "outage",
        }
    }
}

impl LimitAnswer {
    /// What is judged of charges, the binding one of which is this limit's.
    pub(super) fn told(verdict: &Verdict, limit: Option<Name>, said: Said) -> Self {
        LimitAnswer {
            allowed: verdict.allowed,
            limit,
            remaining: verdict.remaining,
            retry_after_micros: verdict.retry_after,
            reset_after_micros: verdict.reset_after,
            said,
        }
    }

    /// What is allowed because nothing forbids it.
    pub(super) fn unbound(said: Said) -> Self {
        LimitAnswer {
            allowed: true,
            limit: None,
            remaining: Amount::MAX,
            retry_after_micros: Some(0),
            reset_after_micros: Some(0),
            said,
        }
    }

    /// When it would be allowed: zero if it is, nothing if it never will be.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        self.retry_after_micros.map(Duration::from_micros)
    }

    /// When the limit that binds is as if never used; nothing if never.
    #[must_use]
    pub fn reset_after(&self) -> Option<Duration> {
        self.reset_after_micros.map(Duration::from_micros)
    }

    /// The refusal as an error.
    #[must_use]
    pub fn error(&self) -> Error {
        let name = self.limit.as_ref().map_or("", Name::as_str);
        let left = self.remaining;
        let message = match self.retry_after_micros {
            Some(time) => {
                let time = time.div_ceil(1_000);
                format!("the limit {name} has {left} left; try again in {time} ms")
            }
            None => format!(
                "the limit {name} has {left} left, and time alone will never allow so much; ask for less, or raise its max"
            ),
        };
        Error::new(Code::Limited, message).after(self.retry_after_micros)
    }
}

/// The error of a refusal.
impl From<LimitAnswer> for Error {
    fn from(answer: LimitAnswer) -> Self {
        answer.error()
    }
}
