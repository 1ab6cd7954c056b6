//! What travels to a ledger in one piece, and back.

use super::{Reply, Request};
use crate::Micros;
use crate::slots::Lane;

/// Requests that travel together and are performed as one, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// Makes the envelope idempotent; `None` where no copy of it can exist.
    pub lane: Option<Lane>,
    /// The last wall-clock time of the store at which it may be performed; later, it changes nothing.
    pub not_after: Option<Micros>,
    /// 1 to [`super::MAX_REQUESTS`].
    pub requests: Vec<Request>,
}

/// The answer to an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was performed, now or when it first came.
    Performed(Performed),
    /// It came too late, or a later one of its lane came first; nothing changed.
    Stale {
        /// The store's time.
        now: Micros,
    },
}

/// What came of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Performed {
    /// The store's wall clock.
    pub now: Micros,
    /// One for each request.
    pub replies: Vec<Reply>,
}
