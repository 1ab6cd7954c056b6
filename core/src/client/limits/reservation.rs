//! What was taken for the time being.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::reservation_id;
use super::scope::Scope;
use super::{LimitAnswer, Said};
use crate::Micros;
use crate::error::{Code, Error, Result};
use crate::limits::{Act, Charge, Rule, Settlement};
use crate::runtime::Runtime;

/// What was taken of limits and can be given back once, until its time has passed. Dropped, it is as committed: what it
/// charged stays charged, because what it was for may have happened; what it has in flight lands.
#[must_use = "what is in flight lands when this is dropped"]
pub struct Reservation<R: Runtime> {
    /// Nothing once it has ended, or where nothing was charged.
    scope: Option<Arc<Scope<R>>>,
    id: u128,
    charges: Vec<Charge>,
    answer: LimitAnswer,
    /// When its time has passed, on the local clock.
    until: Micros,
}

/// What is said of one that was made elsewhere, or never.
const UNKNOWN: &str = "the reservation is not known any more: it was committed a while ago, its time has passed, or the store was restarted or replaced, or has lost its memory; unless it was given back, what it charged of budgets and lifetimes stays charged";

impl<R: Runtime> Reservation<R> {
    pub(super) fn new(
        scope: Option<Arc<Scope<R>>>,
        id: u128,
        charges: Vec<Charge>,
        answer: LimitAnswer,
        until: Micros,
    ) -> Self {
        Reservation { scope, id, charges, answer, until }
    }

    /// One that was made elsewhere: nobody here knows when its time has passed.
    pub(super) fn elsewhere(scope: Option<Arc<Scope<R>>>, id: u128, charges: Vec<Charge>) -> Self {
        Self::new(scope, id, charges, LimitAnswer::unbound(Said::Store), Micros::MAX)
    }

    /// By which any process can end it, of the same limits in the same order: [`Limit::commit_reservation`](super::Limit::commit_reservation)
    /// and [`Limit::refund_reservation`](super::Limit::refund_reservation). 40 digits.
    #[must_use]
    pub fn id(&self) -> String {
        reservation_id::write(self.id, &self.charges)
    }

    /// Lets go of it without an end, for another process to end it by this id. If none does, it stays charged, and what it has in
    /// flight lands when its time has passed.
    pub fn hand_over(self) -> String {
        let id = self.id();
        self.lapse();
        id
    }

    /// What the limits said.
    pub fn answer(&self) -> &LimitAnswer {
        &self.answer
    }

    /// How long it can still be relied on: that it can be given back, and that what it has in flight counts. Counted from before
    /// it was asked for, less what clocks may differ by; nothing when its time has passed. Where nothing was charged it never
    /// passes.
    pub fn remaining(&self) -> Duration {
        Duration::from_micros(self.remaining_micros())
    }

    /// The same in microseconds.
    pub fn remaining_micros(&self) -> Micros {
        self.until.saturating_sub(self.scope.as_ref().map_or(0, |scope| scope.runtime().now()))
    }

    /// Ends it: what it charged stays charged; what it has in flight lands.
    ///
    /// # Errors
    /// `lost` if it has something in flight and its time has passed, or the store lost its memory meanwhile: that counted as landed
    /// before it did, and more may have been in flight than is allowed; or if it was given back elsewhere. `store_unavailable`: it
    /// is tried on for half a minute, and what was charged stays so in any case.
    pub async fn commit(mut self) -> Result<()> {
        // That it was in flight for too long is known without a store that says so.
        let is_over = self.flies() && self.remaining_micros() == 0;
        let settled = match self.settle(Act::Commit { id: self.id }).await {
            Err(error) if is_over && error.code() == Code::StoreUnavailable => Settlement::Gone,
            settled => settled?,
        };
        match settled {
            Settlement::Gone if self.is_elsewhere() => Err(Error::new(Code::Lost, UNKNOWN)),
            Settlement::Gone if self.flies() => Err(Error::new(
                Code::Lost,
                match is_over {
                    true => {
                        "the reservation's time has passed, and what it has in flight was counted no more; reserve for longer"
                    }
                    false => {
                        "the store has lost its memory since this was reserved, or it was ended elsewhere, and what it has in flight was counted no more"
                    }
                },
            )),
            Settlement::Before { given_back: true } => Err(Error::new(
                Code::Lost,
                "the reservation was given back before, and is charged no more; reserve anew",
            )),
            _ => Ok(()),
        }
    }

    /// Ends it: what it charged is given back, as far as it still counts.
    ///
    /// # Errors
    /// `lost` if its time has passed, or the store lost its memory meanwhile: then what it charged stays charged, of money in any
    /// case, and also where the server was restarted or replaced. `store_unavailable`: it is tried on for half a minute.
    pub async fn refund(mut self) -> Result<()> {
        let is_over = self.remaining_micros() == 0;
        match self.settle(Act::GiveBack { id: self.id }).await? {
            Settlement::Done | Settlement::Before { given_back: true } => Ok(()),
            ended => Err(Error::new(
                Code::Lost,
                match ended {
                    Settlement::Before { .. } => {
                        "the reservation was committed before, or could not be given back since the store was replaced or lost its memory, and what it charged stays charged"
                    }
                    _ if is_over => {
                        "the reservation's time has passed, and what it charged stays charged; reserve for longer"
                    }
                    _ if self.is_elsewhere() => UNKNOWN,
                    _ => {
                        "the store was restarted or replaced, or what it had lost became known, since this was reserved, or it was committed elsewhere; unless it was given back before that, what it charged of budgets and lifetimes stays charged"
                    }
                },
            )),
        }
    }

    /// Ends it as if it had never been made, and waits for nothing: for one that does not reach whoever asked for it.
    pub fn retract(mut self) {
        let left = self.remaining_micros();
        if let Some(scope) = self.scope.take() {
            scope.settle_and_forget(Act::GiveBack { id: self.id }, std::mem::take(&mut self.charges), left);
        }
    }

    /// Ends it here only: what it has in flight lands at its deadline. As with a lease: where a garbage collector drops it,
    /// what it was for may still be under way.
    #[doc(hidden)]
    pub fn lapse(mut self) {
        self.scope = None;
    }

    fn is_elsewhere(&self) -> bool {
        self.until == Micros::MAX
    }

    fn flies(&self) -> bool {
        self.charges.iter().any(|charge| matches!(charge.rule, Rule::InFlight { .. }))
    }

    async fn settle(&mut self, act: Act) -> Result<Settlement> {
        match self.scope.take() {
            Some(scope) => scope.settle(act, self.charges.clone()).await,
            None => Ok(Settlement::Done),
        }
    }
}

impl<R: Runtime> Drop for Reservation<R> {
    fn drop(&mut self) {
        let flies = self.flies();
        if let Some(scope) = self.scope.take()
            && flies
        {
            scope.settle_and_forget(Act::Commit { id: self.id }, std::mem::take(&mut self.charges), 0);
        }
    }
}

impl<R: Runtime> fmt::Debug for Reservation<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("charges", &self.charges).field("answer", &self.answer).finish()
    }
}
