//! The machine of slots: which are ready, leased, cooling or in doubt, and what a request changes.
//!
//! One [`Pool`] takes an [`Envelope`] of requests at a [`Moment`] and gives an [`Answer`]; nothing else
//! happens. The Redis script `store/redis/slots` is the same machine in a second wording: equal
//! envelopes at equal moments get equal answers from both.
//!
//! A slot is in exactly one place: *ready* (in a queue, in the order in which slots became ready), *due*
//! (leased, cooling or offered until a time), or *out* (disabled). Ready slots whose nonce is in doubt queue
//! apart and are handed out after all others.
//!
//! Who waits has a ticket in a line: one line for those who take any slot, one for each name. At the end of an envelope
//! what is ready is offered to the first in line, who is called and has a short time to claim it.
//!
//! Who waits may *claim* what holders of lower priority have: such a lease is not renewed, and its holder is told to
//! yield. It stays the holder's until it is given back or ends, and is as it was before if the claimant vanishes.

mod claim;
mod draw;
mod due;
mod envelope;
#[cfg(feature = "tokens")]
mod free;
mod lanes;
mod lease;
mod line;
mod offer;
mod pool;
mod positions;
mod ready;
mod reply;
mod request;
mod roster;
mod slot;
mod stealing;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "suite"))]
pub mod transcript;

pub use envelope::{Answer, Calls, Envelope, Lane, Moment, Performed, QuietTime};
pub use pool::Pool;
pub use reply::{Grant, Loss, Refusal, Reply, SlotView};
pub use request::{Choice, Claim, LeaseRef, Request, SlotChange, SlotSpec, Strategy};
pub use slot::{Mode, State};

use crate::{Micros, SECOND};

/// The most slots of a pool.
pub const MAX_SLOTS: usize = 1_000_000;
/// The most slots that one claim takes or names, and that one request lists.
pub const MAX_PER_REQUEST: usize = 1_000;
/// The most requests of one envelope.
pub const MAX_REQUESTS: usize = 256;
/// The highest weight of a slot.
pub const MAX_WEIGHT: u8 = 255;
/// The shortest and the longest time to live of a lease.
pub const TTL_RANGE: std::ops::RangeInclusive<Micros> = 1_000..=7 * 24 * 3600 * SECOND;
/// The longest rest (cooldown, quarantine) of a slot.
pub const MAX_REST: Micros = 365 * 24 * 3600 * SECOND;
/// How many overdue slots one envelope puts back, so that no envelope takes long.
pub const SWEEP: usize = 128;
/// Who waits for some of so many slots, or more, may want others besides, and is told of slots that become ready like those without
/// a ticket.
pub const MANY: usize = 128;
/// How long a refused claim that waits without a ticket is told of slots that become ready: who still waits then has asked
/// again.
pub const INTEREST: Micros = 10 * SECOND;
/// How long a ticket lives that nobody asks again with: so long do those who vanished stand in line.
pub const TICKET_LIFE: Micros = 10 * SECOND;
/// How long a slot is kept for the ticket whose turn it is.
pub const OFFER: Micros = SECOND;
/// The most tickets of a pool.
pub const MAX_TICKETS: usize = 100_000;
/// As long as a holder can have to yield to one who steals: to the end of its lease, whenever that is.
pub const TO_THE_END: Micros = *TTL_RANGE.end();
/// How long after it set out an envelope may be performed: so long before its last moment it set out.
pub const VALIDITY: Micros = 10 * SECOND;
/// How long an answer is kept for its envelope's repetition, past the envelope's last moment.
pub const LANE_GRACE: Micros = 60 * SECOND;
