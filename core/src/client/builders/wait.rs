//! The words of who waits until a limit allows something.

use std::time::Duration;

use super::micros;
use crate::Micros;
use crate::client::{Limit, LimitAnswer, Reservation, WaitOptions};
use crate::error::Result;
use crate::limits::Amount;
use crate::runtime::{BoxedFuture, Runtime};

/// Waits until a cost is allowed, and charges or reserves it, when this is awaited. What its words mean is said at
/// [`WaitOptions`].
#[must_use = "the wait begins when this is awaited"]
pub struct Wait<'a, R: Runtime, const RESERVES: bool = false> {
    limit: &'a Limit<R>,
    cost: Amount,
    ttl: Micros,
    options: WaitOptions,
}

impl<'a, R: Runtime, const RESERVES: bool> Wait<'a, R, RESERVES> {
    pub(in crate::client) fn new(limit: &'a Limit<R>, cost: Amount, ttl: Micros) -> Self {
        Wait { limit, cost, ttl, options: WaitOptions::default() }
    }

    /// How long; [`Duration::ZERO`] asks once.
    pub fn timeout(mut self, time: Duration) -> Self {
        self.options.timeout = micros(time);
        self
    }

    /// Of those who wait in this process, the higher go before the lower.
    pub fn priority(mut self, priority: i16) -> Self {
        self.options.priority = priority;
        self
    }
}

impl<'a, R: Runtime> IntoFuture for Wait<'a, R> {
    type Output = Result<LimitAnswer>;
    type IntoFuture = BoxedFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.limit.wait_with(self.cost, self.options))
    }
}

impl<'a, R: Runtime> IntoFuture for Wait<'a, R, true> {
    type Output = Result<Reservation<R>>;
    type IntoFuture = BoxedFuture<'a, Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.limit.wait_to_reserve_for(self.cost, self.ttl, self.options))
    }
}
