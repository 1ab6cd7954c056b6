//! What is charged for the time being, and can be given back once.

use super::Amount;
use super::record::Epoch;
use super::standing::Birth;
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
    pub mark: Mark,
    pub cost: Amount,
    /// Of the limit, when it was charged.
    pub epoch: Epoch,
}

/// By what a reservation knows what still counts of what it charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Nothing,
    /// Of money: the birth that it is counted in. In another nobody knows whether it was given back before the store lost its memory.
    Birth(Birth),
    /// When it was charged, by the limit's time; of what is in flight, until when.
    Time(Micros),
    /// How much had been refilled by then in the limit's epoch, in parts.
    Refilled(u128),
}
