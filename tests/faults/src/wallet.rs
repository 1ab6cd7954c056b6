//! Wallets of tokens that are worth 1 each.

use std::sync::Arc;

use leasehold::client::{TokensInMemory, TokensOptions};
use leasehold::tokens::Token;
use leasehold::{Micros, SECOND};

use crate::place::{Handle, Tokens};

/// How long a selection of a test waits: a fresh server grants nothing for as long as a lock may live.
pub const PATIENCE: Micros = 60 * SECOND;

/// The tokens `t0` and so on, in a source of this handle's own.
///
/// # Panics
/// If that is refused.
pub fn tokens_of_one(handle: &Handle, count: u64, ttl: Micros) -> Tokens {
    let source = TokensInMemory::default();
    (0..count).for_each(|number| source.add("hot", "", Token::new(format!("t{number}"), 1u64)));
    tokens_from(handle, &source, ttl)
}

/// Tokens of a source, whose locks live so long without a renewal.
///
/// # Panics
/// If that is refused.
pub fn tokens_from(handle: &Handle, source: &TokensInMemory, ttl: Micros) -> Tokens {
    let options = TokensOptions {
        ttl,
        settle: 5 * SECOND,
        max_age: SECOND,
        timeout: PATIENCE,
        ..TokensOptions::default()
    };
    handle.tokens_with("hot", Arc::new(source.clone()), options).expect("a wallet")
}
