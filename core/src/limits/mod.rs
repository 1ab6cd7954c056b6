//! The machine of limits: how much of each is used, and what a request changes.
//!
//! One [`Ledger`] takes an [`Envelope`] of requests at a wall-clock time and gives an [`Answer`]; nothing else happens.
//! The Redis script `store/redis/limits` is the same machine in a second wording: equal envelopes at equal times get
//! equal answers from both. All arithmetic is of whole numbers; what a script reckons with stays below 2^53.
//!
//! A ledger keeps no definitions: a request carries the [`Rule`] of each limit that it charges, so that a rule is changed
//! by sending another one, and what was used stays. A limit that is as if never used leaves no record.
//!
//! Of limits of money a client is told how they stand, and says what it has seen: what a store has forgotten is known again.
//!
//! Several limits are charged as one, or not at all, and a refusal names the one that binds.

mod budget;
mod clock;
mod envelope;
mod in_flight;
mod ledger;
mod lifetime;
mod periods;
mod record;
mod records;
mod refill;
mod request;
mod reservation;
mod rolling;
mod rule;
mod standing;
mod term;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "suite"))]
pub mod transcript;

pub use crate::amount::Amount;
pub use envelope::{Answer, Envelope, Moment, Performed, Seen};
pub use ledger::Ledger;
pub use request::{Act, Charge, Charged, Reply, Request, Settlement, Verdict, Waited};
pub(crate) use request::{line, sum};
pub use rule::Rule;
pub use standing::Standing;
pub(crate) use term::Hashes;
pub use term::Term;

use crate::{Micros, SECOND};

/// The most of a limit that refills, and the most that is taken of it at once.
pub const MAX_AMOUNT: u64 = 1_000_000_000_000_000;
/// The longest period.
pub const MAX_PERIOD: Micros = 366 * 24 * 3600 * SECOND;
/// The longest time in which a burst is paid off, and that is told where more is used than a lowered maximum allows.
pub const MAX_BACKLOG: Micros = 1 << 50;
/// The most of a limit of what is in flight: each of it has a place in one record.
pub const MAX_IN_FLIGHT: u64 = 1_000;
/// Into how many cells a rolling window is divided at least.
pub const CELLS: u64 = 32;
/// The most cells of a rolling limit, which may be asked by several periods.
const MAX_CELLS: usize = 128;
/// The most that a cell counts: what a script's doubles hold.
const MAX_COUNTED: u64 = (1 << 53) - 1;
/// The most limits that one request charges.
pub const MAX_CHARGES: usize = 64;
/// The most requests of one envelope.
pub const MAX_REQUESTS: usize = 256;
/// The longest life of a reservation.
pub const MAX_RESERVATION: Micros = 7 * 24 * 3600 * SECOND;
/// How long an answer is kept for its envelope's repetition, past the envelope's last moment.
pub const LANE_GRACE: Micros = 60 * SECOND;
/// How long a client remembers how a limit of money stood.
pub(crate) const MEMORY: Micros = 24 * 3600 * SECOND;
/// How long is kept that nothing is used of one any more: longer than anybody remembers what was, and than that is under way.
pub(crate) const REMEMBERED: Micros = MEMORY + 3600 * SECOND;
