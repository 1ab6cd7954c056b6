//! Choosing tokens of a wallet for an amount, beside any number of processes that do the same.
//!
//! Plain synchronous machines: time is an argument, randomness a seed; nothing here asks a store or a source. A
//! [`Selector`] says step by step what it needs (a page of the source, a claim of tokens, to give some back and pause)
//! and hears what came of it, until it has its verdict. What this process knows of a wallet's tokens of one currency is
//! in [`Candidates`], which all of its selections share. Which of them are asked for a [`Strategy`] says.
//!
//! That no token is in two selections is none of this: it rests on the claim alone, as every token is a slot.

mod candidates;
mod digest;
mod draw;
mod selector;
mod shelves;
mod strategy;
mod stretches;
#[cfg(test)]
mod tests;
mod token;
mod total;
#[cfg(any(test, feature = "suite"))]
pub mod transcript;

pub use crate::amount::Amount;
pub use candidates::Candidates;
pub use draw::Draw;
pub use selector::{Bounds, Event, Selector, Step, Verdict};
pub use shelves::Order;
pub use strategy::{
    BestFit, Boltzmann, Consolidate, Exact, FewestInputs, FirstFitRandom, OldestFirst, RandomImprove,
    STRATEGIES, SmallestSufficient, Strategy, named,
};
pub use token::{Page, Spender, Token};

pub use crate::id::MAX_TOKEN_BYTES;
pub(crate) use token::{slot_of, token_of, wallet_pool};
pub use total::Total;
