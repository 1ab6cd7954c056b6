//! The words of a wallet's tokens.

use std::sync::Arc;
use std::time::Duration;

use super::micros;
use crate::client::{Keepalive, Leasehold, SharedSource, TokenSource, Tokens, TokensOptions};
use crate::error::Result;
use crate::runtime::Runtime;
use crate::store::Store;
use crate::tokens::Strategy;

/// The tokens of a wallet, opened by [`Self::open`]. What its words mean is said at [`TokensOptions`].
#[must_use = "nothing is opened yet"]
pub struct TokensBuilder<'a, S: Store, R: Runtime> {
    handle: &'a Leasehold<S, R>,
    wallet: String,
    source: SharedSource,
    options: TokensOptions,
}

impl<'a, S: Store, R: Runtime> TokensBuilder<'a, S, R> {
    pub(in crate::client) fn new(
        handle: &'a Leasehold<S, R>,
        wallet: &str,
        source: impl TokenSource + 'static,
    ) -> Self {
        let (wallet, source) = (wallet.to_owned(), Arc::new(source));
        TokensBuilder { handle, wallet, source, options: TokensOptions::default() }
    }

    /// Which currency is selected where a selection does not say.
    pub fn currency(mut self, currency: &str) -> Self {
        self.options.currency = currency.into();
        self
    }

    /// Time to live of a selection without a renewal.
    pub fn ttl(mut self, time: Duration) -> Self {
        self.options.ttl = micros(time);
        self
    }

    /// Whether selections are renewed while they are held, or how often.
    pub fn keepalive(mut self, keepalive: impl Into<Keepalive>) -> Self {
        self.options.keepalive = keepalive.into();
        self
    }

    /// How long tokens stay locked after they were spent.
    pub fn settle(mut self, time: Duration) -> Self {
        self.options.settle = micros(time);
        self
    }

    /// How long after a source listed it a token is offered.
    pub fn max_age(mut self, time: Duration) -> Self {
        self.options.max_age = micros(time);
        self
    }

    /// How long a selection waits for what others have; [`Duration::ZERO`] for one attempt.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.options.timeout = micros(time);
        self
    }

    /// How tokens are chosen.
    pub fn strategy(mut self, strategy: impl Strategy + 'static) -> Self {
        self.options.strategy = Arc::new(strategy);
        self
    }

    /// The most tokens of a selection: 1 to 10,000.
    pub fn max_inputs(mut self, count: usize) -> Self {
        self.options.bounds.inputs = count;
        self
    }

    /// The most tokens that a selection asks the store for before it begins anew.
    pub fn max_attempts(mut self, count: usize) -> Self {
        self.options.bounds.attempts = count;
        self
    }

    /// How often a selection gives up what it has, pauses and begins anew; not where it is called because something came free.
    pub fn max_rounds(mut self, count: u32) -> Self {
        self.options.bounds.rounds = count;
        self
    }

    /// How many tokens the source is asked for at a time.
    pub fn page(mut self, count: usize) -> Self {
        self.options.page = count;
        self
    }

    /// Asks the source of every token that was had whether it is unspent.
    pub fn verify(mut self) -> Self {
        self.options.bounds.verify = true;
        self
    }

    /// Opens them. Asks nothing of the store nor of the source yet.
    ///
    /// # Errors
    /// `invalid_argument` naming what is wrong; `cancelled` if the handle was closed.
    pub fn open(self) -> Result<Tokens<S, R>> {
        self.handle.tokens_with(&self.wallet, self.source, self.options)
    }
}
