//! What travels to a pool in one piece, and back.

use super::{Reply, Request};
use crate::Micros;

/// Requests that travel together and are performed as one, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// Makes the envelope idempotent; `None` where no copy of it can exist.
    pub lane: Option<Lane>,
    /// The last store time at which it may be performed; later, it changes nothing. It set out [`VALIDITY`] before, and changes
    /// nothing either if the pool's memory has been lost since: it may have been performed then.
    ///
    /// [`VALIDITY`]: crate::slots::VALIDITY
    pub not_after: Option<Micros>,
    /// The highest fence of this pool that the client has seen. One above the pool's own, or from before the
    /// pool was begun, shows that the store lost memory.
    pub seen: u64,
    /// Whether the client saw the store's time jump forward.
    pub jumped: bool,
    /// Randomness for the choices.
    pub seed: u32,
    /// 1 to [`crate::slots::MAX_REQUESTS`].
    pub requests: Vec<Request>,
}

/// A client's numbered line of envelopes: one is under way at a time, and its answer is kept until the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane {
    /// Random, new for every client.
    pub client: u128,
    /// Which of the client's lanes.
    pub number: u16,
    /// Larger with every envelope of the lane.
    pub sequence: u64,
}

/// When and on what server an envelope is performed.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The server's wall clock.
    pub wall: Micros,
    /// What changes when the server restarts or is promoted (Redis: its replication id).
    pub incarnation: &'a str,
    /// When the server started; leases given before that may be forgotten.
    pub up_since: Micros,
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
    /// The store's time: never runs backwards, even where the server's clock does.
    pub now: Micros,
    /// The highest fence granted in the pool.
    pub top: u64,
    /// Told to those who may not have heard it. Who makes the pool anew says no less.
    pub quiet_time: Option<QuietTime>,
    /// Whom it calls.
    pub calls: Calls,
    /// One for each request.
    pub replies: Vec<Reply>,
}

/// For how long a pool grants nothing if its memory is lost: the sum of these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuietTime {
    /// The longest time to live of any lease of any client.
    pub longest: Micros,
    /// The longest rest of a slot in doubt that any client asks for.
    pub doubt_rest: Micros,
}

impl QuietTime {
    /// How long it is.
    pub fn sum(self) -> Micros {
        self.longest + self.doubt_rest
    }

    /// The longer of each.
    pub fn max(self, other: Self) -> Self {
        QuietTime {
            longest: self.longest.max(other.longest),
            doubt_rest: self.doubt_rest.max(other.doubt_rest),
        }
    }
}

/// Whom an envelope calls to ask again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calls {
    /// How many slots became ready and still are, if somebody waits without a ticket.
    pub freed: u32,
    /// Tickets whose turn it is: slots are kept for them, for a short time.
    pub tickets: Vec<u128>,
    /// Fences of leases that somebody of higher priority claims.
    pub claimed: Vec<u64>,
    /// In how long the first comes due of the slots that were put to rest, if somebody waits.
    pub rest: Option<Micros>,
}

impl Calls {
    /// Whether it calls nobody.
    pub fn is_empty(&self) -> bool {
        self.freed == 0 && self.tickets.is_empty() && self.claimed.is_empty() && self.rest.is_none()
    }
}
