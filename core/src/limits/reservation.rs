//! What is charged for the time being, and can be given back once.

use super::Amount;
use super::record::Epoch;
use crate::Micros;

/// A reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reservation {
    pub state: State,
    /// By the wall clock.
    pub until: Micros,
    /// After which millisecond of the wall clock it is forgotten.
    pub gone: u64,
    /// What it charged, in the order of its request.
    pub parts: Vec<Part>,
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Pending,
    Committed,
    GivenBack,
}

/// What was charged of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// When it was charged, by the limit's time; of what is in flight, until when; 0 where that does not matter.
    pub mark: Micros,
    pub cost: Amount,
    /// Of the limit, when it was charged.
    pub epoch: Epoch,
}
