//! What was taken for the time being.

#[cfg(test)]
#[cfg(feature = "redis")]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::limit::Part;
use super::reservation_id;
use super::scope::Scope;
use super::{LimitAnswer, Said};
use crate::Micros;
use crate::client::builders::micros;
use crate::client::pool::in_time;
use crate::error::{Code, Error, Result};
use crate::limits::{Act, Amount, Charge, MAX_RESERVATION, Rule, Settlement};
use crate::runtime::Runtime;

/// What was taken of limits and can be given back once, until its time has passed. Dropped, it is as committed: what it
/// charged stays charged, because what it was for may have happened; what it has in flight lands.
#[must_use = "what is in flight lands when this is dropped"]
pub struct Reservation<R: Runtime> {
    /// Nothing once it has ended, or where nothing was charged.
    scope: Option<Arc<Scope<R>>>,
    id: u128,
    charges: Vec<Charge>,
    /// The limits, in the order of what was charged of them.
    parts: Arc<[Part]>,
    answer: LimitAnswer,
    /// How long it was reserved for.
    ttl: Micros,
    /// When its time has passed, on the local clock; [`LOST`] once a renewal was told that it is over sooner. A renewal that is under
    /// way has it too.
    until: Arc<AtomicU64>,
}

/// No time at which one ends.
const LOST: Micros = 0;

const GIVEN_BACK: &str = "the reservation was given back before, and is charged no more; reserve anew";
/// What is said of one that was made elsewhere, or never.
const UNKNOWN: &str = "the reservation is not known any more: it was committed a while ago, its time has passed, or the store was restarted or replaced, or has lost its memory; unless it was given back, what it charged of budgets and lifetimes stays charged";

impl<R: Runtime> Reservation<R> {
    pub(super) fn new(
        scope: Option<Arc<Scope<R>>>,
        id: u128,
        charges: Vec<Charge>,
        parts: Arc<[Part]>,
        answer: LimitAnswer,
        ttl: Micros,
        until: Micros,
    ) -> Self {
        let until = Arc::new(AtomicU64::new(until.max(LOST + 1)));
        Reservation { scope, id, charges, parts, answer, ttl, until }
    }

    /// One that was made elsewhere: nobody here knows when its time has passed.
    pub(super) fn elsewhere(
        scope: Option<Arc<Scope<R>>>,
        id: u128,
        charges: Vec<Charge>,
        parts: Arc<[Part]>,
    ) -> Self {
        Self::new(scope, id, charges, parts, LimitAnswer::unbound(Said::Store), 0, Micros::MAX)
    }

    /// By which any process can prolong or end it, of the same limits in the same order:
    /// [`Limit::renew_reservation`](super::Limit::renew_reservation), [`Limit::commit_reservation`](super::Limit::commit_reservation)
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
    /// it was asked for or last renewed, less what clocks may differ by; nothing when its time has passed, or a renewal was told that
    /// it is over. Where nothing was charged it never passes.
    pub fn remaining(&self) -> Duration {
        Duration::from_micros(self.remaining_micros())
    }

    /// The same in microseconds.
    pub fn remaining_micros(&self) -> Micros {
        self.until().saturating_sub(self.now())
    }

    /// Prolongs it to the time to live from now that it was reserved for, never to less than it has: what it has in flight counts, and
    /// what it charged can be given back, for so long. That needs no room. Where nothing was charged it does nothing.
    ///
    /// # Errors
    /// `lost` if it was ended elsewhere, if its time has passed, or if something it has in flight is counted no more, as after a reset
    /// or since the store lost its memory: then more may be in flight than is allowed. `store_unavailable` if the store did not answer
    /// in time: it lasts as before, at least, and can be renewed again; `busy` if that is so because too many
    /// requests of this process wait. `invalid_argument` for a
    /// `ttl` that is not 1 µs to 7 days.
    pub async fn renew(&self) -> Result<()> {
        self.renew_by(None).await
    }

    /// The same to another time to live.
    ///
    /// # Errors
    /// As [`Self::renew`].
    pub async fn renew_for(&self, ttl: Duration) -> Result<()> {
        self.renew_by(Some(micros(ttl))).await
    }

    /// The same in microseconds, if it is not what it was reserved for. Whoever ends it need not wait until that is done.
    ///
    /// # Errors
    /// As [`Self::renew`].
    #[doc(hidden)]
    pub fn renew_by(&self, ttl: Option<Micros>) -> impl Future<Output = Result<()>> + use<R> {
        let (scope, id, charges, until) =
            (self.scope.clone(), self.id, self.charges.clone(), self.until.clone());
        let (ttl, flies, is_elsewhere) = (ttl.unwrap_or(self.ttl), self.flies(), self.is_elsewhere());
        async move {
            check_ttl(ttl)?;
            let Some(scope) = scope else { return Ok(()) };
            let sent = scope.runtime().now();
            let is_over = until.load(Relaxed) <= sent;
            let settled = match scope.settle(Act::Renew { id, ttl }, charges).await {
                Err(error) if flies && is_over && error.code() == Code::StoreUnavailable => Settlement::Gone,
                settled => settled?,
            };
            if settled == Settlement::Done {
                let longer = |known| (known != LOST).then(|| in_time(sent, ttl).max(known));
                let _ = until.fetch_update(Relaxed, Relaxed, longer);
                return Ok(());
            }
            // Of one whose time has passed that is said by whoever ends it.
            let _ = until.fetch_update(Relaxed, Relaxed, |known| (known > sent).then_some(LOST));
            Err(Error::new(
                Code::Lost,
                match settled {
                    Settlement::Before { given_back: true } => GIVEN_BACK,
                    Settlement::Before { .. } => "the reservation was committed before; reserve anew",
                    _ if is_elsewhere => UNKNOWN,
                    _ if is_over && flies => {
                        "the reservation's time has passed, and what it has in flight was counted no more; renew it sooner, or reserve for longer"
                    }
                    _ if is_over => {
                        "the reservation's time has passed, and what it charged stays charged; renew it sooner, or reserve for longer"
                    }
                    _ if flies => {
                        "the store has lost its memory since this was reserved, it was reset, or it was ended elsewhere, and what it has in flight is counted no more"
                    }
                    _ => {
                        "the store has lost its memory since this was reserved, or it was committed elsewhere, and it cannot be given back any more"
                    }
                },
            ))
        }
    }

    /// Ends it: what it charged stays charged; what it has in flight lands.
    ///
    /// # Errors
    /// `lost` if it has something in flight and its time has passed, or the store lost its memory meanwhile: that counted as landed
    /// before it did, and more may have been in flight than is allowed; or if it was given back elsewhere. `store_unavailable`: it
    /// is tried on for half a minute, and what was charged stays so in any case.
    pub async fn commit(self) -> Result<()> {
        let act = Act::Commit { id: self.id };
        self.conclude(act).await
    }

    /// The same of one that cost less than was reserved: so much stays charged, and the rest is given back, once, as far as it still
    /// counts. Of limits [`at_cost`](super::Limit::at_cost) stays what is theirs, and never more than was reserved.
    ///
    /// # Errors
    /// As [`Self::commit`]; after `store_unavailable` all of it may stay charged. Where the store lost its memory meanwhile all of it
    /// does, and that is no error.
    pub async fn commit_at(mut self, cost: impl Into<Amount>) -> Result<()> {
        let cost = cost.into();
        for (charge, part) in self.charges.iter_mut().zip(&*self.parts) {
            charge.cost = part.charged(cost).cost;
        }
        let act = Act::Keep { id: self.id };
        self.conclude(act).await
    }

    async fn conclude(mut self, act: Act) -> Result<()> {
        // That it was in flight for too long is known without a store that says so.
        let is_over = self.flies() && self.remaining_micros() == 0;
        let has_passed = self.has_passed();
        let settled = match self.settle(act).await {
            Err(error) if is_over && error.code() == Code::StoreUnavailable => Settlement::Gone,
            settled => settled?,
        };
        match settled {
            Settlement::Gone if self.is_elsewhere() => Err(Error::new(Code::Lost, UNKNOWN)),
            Settlement::Gone if self.flies() => Err(Error::new(
                Code::Lost,
                match has_passed {
                    true => {
                        "the reservation's time has passed, and what it has in flight was counted no more; reserve for longer"
                    }
                    false => {
                        "the store has lost its memory since this was reserved, or it was ended elsewhere, and what it has in flight was counted no more"
                    }
                },
            )),
            Settlement::Before { given_back: true } => Err(Error::new(Code::Lost, GIVEN_BACK)),
            _ => Ok(()),
        }
    }

    /// Ends it: what it charged is given back, as far as it still counts.
    ///
    /// # Errors
    /// `lost` if its time has passed, or the store lost its memory meanwhile: then what it charged stays charged, of money in any
    /// case, and also where the server was restarted or replaced. `store_unavailable`: it is tried on for half a minute.
    pub async fn refund(mut self) -> Result<()> {
        let is_over = self.has_passed();
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
        self.until() == Micros::MAX
    }

    fn has_passed(&self) -> bool {
        (LOST + 1..=self.now()).contains(&self.until())
    }

    fn until(&self) -> Micros {
        self.until.load(Relaxed)
    }

    fn now(&self) -> Micros {
        self.scope.as_ref().map_or(0, |scope| scope.runtime().now())
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

/// # Errors
/// `invalid_argument` naming `ttl` if no reservation lasts for so long.
pub(super) fn check_ttl(ttl: Micros) -> Result<()> {
    match (1..=MAX_RESERVATION).contains(&ttl) {
        true => Ok(()),
        false => Err(Error::invalid("ttl", "is out of range; 1 µs to 7 days are allowed")),
    }
}
