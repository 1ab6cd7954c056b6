//! The words of a selection.

use std::sync::Arc;
use std::time::Duration;

use super::micros;
use crate::amount::Amount;
use crate::client::{Keepalive, SelectOptions, Selection, Tokens};
use crate::error::Result;
use crate::runtime::{BoxedFuture, Runtime};
use crate::store::Store;
use crate::tokens::{Spender, Strategy};

/// A selection, which begins when this is awaited. What its words mean is said at [`SelectOptions`].
#[must_use = "the selection begins when this is awaited"]
pub struct Select<'a, S: Store, R: Runtime> {
    tokens: &'a Tokens<S, R>,
    target: Amount,
    options: SelectOptions,
}

impl<'a, S: Store, R: Runtime> Select<'a, S, R> {
    pub(in crate::client) fn new(tokens: &'a Tokens<S, R>, target: Amount) -> Self {
        Select { tokens, target, options: SelectOptions::default() }
    }

    /// Of which currency.
    pub fn currency(mut self, currency: &str) -> Self {
        self.options.currency = Some(currency.into());
        self
    }

    /// Who spends, as listings show it.
    pub fn spender(mut self, spender: impl Into<Spender>) -> Self {
        self.options.spender = Some(spender.into());
        self
    }

    /// Time to live of the selection without a renewal, at most the wallet's.
    pub fn ttl(mut self, time: Duration) -> Self {
        self.options.ttl = Some(micros(time));
        self
    }

    /// Whether the selection is renewed while it is held, or how often.
    pub fn keepalive(mut self, keepalive: impl Into<Keepalive>) -> Self {
        self.options.keepalive = Some(keepalive.into());
        self
    }

    /// How long to wait for what others have; [`Duration::ZERO`] for one attempt.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.options.timeout = Some(micros(time));
        self
    }

    /// How tokens are chosen.
    pub fn strategy(mut self, strategy: impl Strategy + 'static) -> Self {
        self.options.strategy = Some(Arc::new(strategy));
        self
    }

    /// The most tokens: 1 to 10,000.
    pub fn max_inputs(mut self, count: usize) -> Self {
        self.options.max_inputs = Some(count);
        self
    }
}

impl<'a, S: Store, R: Runtime> IntoFuture for Select<'a, S, R> {
    type Output = Result<Selection<S, R>>;
    type IntoFuture = BoxedFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.tokens.select_with(self.target, self.options))
    }
}
