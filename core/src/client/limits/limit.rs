//! A limit, or several that are charged as one.

use std::fmt;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::select;

use super::answer::{LimitAnswer, Said};
use super::refusals::BELIEVED;
use super::reservation::check_ttl;
use super::scope::{Scope, closed};
use super::{Outage, Reservation, WaitOptions, reservation_id};
use crate::client::Wait;
use crate::client::builders::micros;
use crate::client::options::check_rest;
use crate::client::pool::courier::unavailable;
use crate::client::pool::in_time;
use crate::error::{Code, Error, Result};
use crate::id::Name;
use crate::limits::{Act, Amount, Charge, Charged, MAX_CHARGES, Rule, Term, Verdict, Waited};
use crate::runtime::{self, Runtime};
use crate::{MILLISECOND, Micros, SECOND};

/// How often is looked for what is given back in flight elsewhere: at first, and at most.
const LOOK: (Micros, Micros) = (10 * MILLISECOND, 250 * MILLISECOND);
/// The same of what comes free by itself, and is given back seldom. Not before the last refusal is forgotten.
const LOOK_SELDOM: (Micros, Micros) = (BELIEVED + SECOND / 10, 8 * SECOND);

/// A limit, or several that are charged as one: all of them or none.
pub struct Limit<R: Runtime> {
    /// Nothing where there is nothing to ask.
    scope: Option<Arc<Scope<R>>>,
    parts: Arc<[Part]>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    term: Term,
    /// As it was asked for: what was used of it before its maximum was 0 has a record of this kind.
    rule: Rule,
    outage: Outage,
    /// What a take charges of it, whatever its own cost is.
    cost: Option<Amount>,
}

impl<R: Runtime> Limit<R> {
    pub(super) fn new(scope: Arc<Scope<R>>, name: Name, rule: Rule, outage: Outage) -> Self {
        let part = Part { term: Term::new(name, rule), rule, outage, cost: None };
        Limit { scope: Some(scope), parts: [part].into() }
    }

    /// The limits as one: references to them, or options of such. What is `None` is left out, and one of none allows
    /// everything; groups can be members of groups, and a limit that is there twice is charged once.
    ///
    /// # Errors
    /// `invalid_argument` if they are of different handles or scopes, if they are more than 64, or if one name stands for
    /// different limits.
    pub fn group<'a>(members: impl IntoIterator<Item = impl Into<Option<&'a Limit<R>>>>) -> Result<Self> {
        let (mut scope, mut parts): (Option<Arc<Scope<R>>>, Vec<Part>) = (None, Vec::new());
        for member in members.into_iter().filter_map(Into::into) {
            if let (Some(one), Some(other)) = (&scope, &member.scope)
                && !Arc::ptr_eq(one, other)
            {
                return Err(Error::invalid(
                    "limits",
                    "must be of one handle and one scope to be charged as one",
                ));
            }
            scope = scope.or_else(|| member.scope.clone());
            for part in member.parts.iter() {
                match parts.iter().find(|known| known.term.name() == part.term.name()) {
                    None => parts.push(part.clone()),
                    Some(known) if known == part => {}
                    Some(_) => {
                        let message =
                            format_args!("\"{}\" is there twice, with different options", part.term.name());
                        return Err(Error::invalid("limits", message));
                    }
                }
            }
        }
        if parts.len() > MAX_CHARGES {
            return Err(Error::invalid(
                "limits",
                format_args!("{} limits; at most {MAX_CHARGES}", parts.len()),
            ));
        }
        Ok(Limit { scope, parts: parts.into() })
    }

    /// The same, of which every take charges so much, whatever the cost that is said: in a group, a request counts one
    /// and costs its gas.
    #[must_use]
    pub fn at_cost(&self, cost: impl Into<Amount>) -> Self {
        let cost = Some(cost.into());
        let parts = self.parts.iter().map(|part| Part { cost, ..part.clone() });
        Limit { scope: self.scope.clone(), parts: parts.collect() }
    }

    /// Charges a cost, if all limits allow it. A refused attempt is not charged. A cost of 0 is allowed and brings the
    /// limit up to this time, before its options change.
    ///
    /// # Errors
    /// `store_unavailable` where the limit is closed then: it may have been charged, and what must not be charged twice is
    /// reserved. `cancelled` once the handle is closed; `invalid_argument` for limits of what is in flight, of which is
    /// taken by [`Self::reserve`].
    pub async fn take(&self, cost: impl Into<Amount>) -> Result<LimitAnswer> {
        let cost = cost.into();
        match self.take_now(cost) {
            Some(answer) => answer,
            None => self.ask_store(Act::Take, cost).await,
        }
    }

    /// The same at once, if the store is in this process's memory; nothing elsewhere, and in wasm.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn take_now(&self, cost: impl Into<Amount>) -> Option<Result<LimitAnswer>> {
        Some(self.verdict_now(cost.into())?.map(|verdict| self.answer(&verdict)))
    }

    /// The same, in the least time: the limit that binds is told by its place among [`Self::names`].
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn verdict_now(&self, cost: impl Into<Amount>) -> Option<Result<Verdict>> {
        match self.check_takes().and_then(|()| self.check_open()) {
            Ok(()) => self.judge_now(&Act::Take, cost.into()).map(Ok),
            Err(error) => Some(Err(error)),
        }
    }

    /// The names of the limits that are charged as one, in the order in which they were grouped.
    pub fn names(&self) -> impl Iterator<Item = &Name> {
        self.parts.iter().map(|part| part.term.name())
    }

    /// The same as a truth value.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub async fn increment(&self, cost: impl Into<Amount>) -> Result<bool> {
        let cost = cost.into();
        match self.increment_now(cost) {
            Some(allowed) => allowed,
            None => Ok(self.ask_store(Act::Take, cost).await?.allowed),
        }
    }

    /// The same at once, where [`Self::take_now`] takes.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn increment_now(&self, cost: impl Into<Amount>) -> Option<Result<bool>> {
        Some(self.verdict_now(cost.into())?.map(|verdict| verdict.allowed))
    }

    /// The same, where a refusal is an error.
    ///
    /// # Errors
    /// `limited`, and as [`Self::take`].
    pub async fn increment_or_fail(&self, cost: impl Into<Amount>) -> Result<LimitAnswer> {
        let answer = self.take(cost).await?;
        if answer.allowed { Ok(answer) } else { Err(answer.error()) }
    }

    /// Whether a cost would be allowed, when, and what remains. Nothing is charged.
    ///
    /// # Errors
    /// `store_unavailable` where the limit is closed then.
    pub async fn peek(&self, cost: impl Into<Amount>) -> Result<LimitAnswer> {
        self.judge(Act::Peek, cost.into()).await
    }

    /// Whether a cost would be refused.
    ///
    /// # Errors
    /// As [`Self::peek`].
    pub async fn exceeded(&self, cost: impl Into<Amount>) -> Result<bool> {
        Ok(!self.peek(cost).await?.allowed)
    }

    /// The limit that refuses a cost, if one does.
    ///
    /// # Errors
    /// As [`Self::peek`].
    pub async fn limit_exceeded(&self, cost: impl Into<Amount>) -> Result<Option<Name>> {
        let answer = self.peek(cost).await?;
        Ok(if answer.allowed { None } else { answer.limit })
    }

    /// What can still be taken; of several limits, of that of which least remains.
    ///
    /// # Errors
    /// As [`Self::peek`].
    pub async fn remaining(&self) -> Result<Amount> {
        Ok(self.look().await?.remaining)
    }

    /// What is used of the limit of which least remains: its maximum at the most, also where more was used before that was lowered.
    ///
    /// # Errors
    /// As [`Self::peek`].
    pub async fn used(&self) -> Result<Amount> {
        let answer = self.look().await?;
        let binding = self.parts.iter().find(|part| Some(part.term.name()) == answer.limit.as_ref());
        Ok(binding.map_or(Amount::ZERO, |part| part.term.rule().most().saturating_sub(answer.remaining)))
    }

    /// Gives back what was taken. Meant to be done soon: what has been refilled since is there already. To give back
    /// later, and once, reserve it. Of money nothing is given back where this process has not heard of it yet that the store lost
    /// its memory or was replaced: that may have been done before. The answer says how the limit stands.
    ///
    /// # Errors
    /// `store_unavailable`; `invalid_argument` for what is in flight, which its reservation gives back.
    pub async fn refund(&self, cost: impl Into<Amount>) -> Result<LimitAnswer> {
        self.check_takes()?;
        self.restore(Act::Refund, cost.into()).await
    }

    /// The same under the name that other libraries have for it.
    ///
    /// # Errors
    /// As [`Self::refund`].
    pub async fn decrement(&self, cost: impl Into<Amount>) -> Result<LimitAnswer> {
        self.refund(cost).await
    }

    /// Makes the limit as if it was never used. What was reserved of it before is not given back any more, and what is in
    /// flight is forgotten.
    ///
    /// # Errors
    /// `store_unavailable`.
    pub async fn reset(&self) -> Result<()> {
        self.restore(Act::Reset, Amount::ZERO).await.map(drop)
    }

    /// Takes a cost for the time being: at most for `ttl`, in which it can be given back, once; if nobody does so, it
    /// stays charged. What is in flight is so until the reservation ends.
    ///
    /// # Errors
    /// `store_unavailable`, also where the limit is open then, and where less than a quarter of `ttl` is left as the answer comes;
    /// `invalid_argument` for a `ttl` that is not 1 µs to 7 days.
    pub async fn reserve(
        &self,
        cost: impl Into<Amount>,
        ttl: Duration,
    ) -> Result<Result<Reservation<R>, LimitAnswer>> {
        self.reserve_for(cost, micros(ttl), None).await
    }

    /// Ends a reservation that was made elsewhere, by its [`Reservation::id`]: what it charged stays charged; what it has in flight
    /// lands. Any process does so by the same limits in the same order; a second time it changes nothing, for two minutes.
    ///
    /// # Errors
    /// As [`Reservation::commit`]; `lost` also if the store knows it no more, and for budgets and rates too, as nobody here knows that
    /// it ever was; `invalid_argument` for what is no id, or one of other limits.
    pub async fn commit_reservation(&self, id: &str) -> Result<()> {
        self.reserved(id)?.commit().await
    }

    /// The same, where only so much stays charged, and the rest is given back, once, as far as it still counts.
    ///
    /// # Errors
    /// As [`Reservation::commit_at`]; and as [`Self::commit_reservation`].
    pub async fn commit_reservation_at(&self, id: &str, cost: impl Into<Amount>) -> Result<()> {
        self.reserved(id)?.commit_at(cost).await
    }

    /// The same, where what it charged is given back, as far as it still counts; a second time it changes nothing, until its time has
    /// passed.
    ///
    /// # Errors
    /// As [`Reservation::refund`]; `invalid_argument` for what is no id, or one of other limits.
    pub async fn refund_reservation(&self, id: &str) -> Result<()> {
        self.reserved(id)?.refund().await
    }

    /// Prolongs a reservation that was made elsewhere, by its [`Reservation::id`], to this time to live from now, never to less than it
    /// has. Any process does so by the same limits in the same order.
    ///
    /// # Errors
    /// As [`Reservation::renew`]; `invalid_argument` for what is no id, or one of other limits, and for a `ttl` that is not 1 µs to 7
    /// days.
    pub async fn renew_reservation(&self, id: &str, ttl: Duration) -> Result<()> {
        let reserved = self.reserved(id)?;
        let renewal = reserved.renew_by(Some(micros(ttl)));
        reserved.lapse();
        renewal.await
    }

    pub(super) fn reserved(&self, id: &str) -> Result<Reservation<R>> {
        self.check_open()?;
        // What it cost the store knows.
        let charges = self.charges_to_restore(Amount::ZERO);
        let id = reservation_id::read(id, &charges)?;
        Ok(Reservation::elsewhere(self.scope.clone(), id, charges, self.parts.clone()))
    }

    /// The same for so many microseconds, for a caller that has `waited`, if it waits.
    pub(super) async fn reserve_for(
        &self,
        cost: impl Into<Amount>,
        ttl: Micros,
        waited: Option<Waited>,
    ) -> Result<Result<Reservation<R>, LimitAnswer>> {
        check_ttl(ttl)?;
        let cost = cost.into();
        let charges = self.charges(cost);
        let Some(scope) = &self.scope else {
            let (parts, answer) = (self.parts.clone(), LimitAnswer::unbound(Said::Store));
            return Ok(Ok(Reservation::new(None, 0, charges, parts, answer, ttl, ttl)));
        };
        scope.check_open()?;
        let id = scope.runtime().random_id();
        let sent = scope.runtime().now();
        let until = in_time(sent, ttl);
        let act = Act::Reserve { id, ttl, waited: waited.filter(|_| self.flies()) };
        let (answer, took) = match self.judge_now(&act, cost) {
            Some(verdict) => (self.answer(&verdict), 0),
            None => {
                let answer = scope.judge(act, charges.clone(), false).await?;
                (answer, scope.runtime().now().saturating_sub(sent))
            }
        };
        if !answer.allowed {
            return Ok(Err(answer));
        }
        let parts = self.parts.clone();
        let reserved = Reservation::new(Some(scope.clone()), id, charges, parts, answer, ttl, until);
        // What arrives with little left would be over before it is used, as with a lease; here without what clocks may differ
        // by, which is more than all of a brief one.
        if took > ttl - ttl / 4 {
            reserved.retract();
            return Err(Error::new(
                Code::StoreUnavailable,
                "the store's answer came too late for a reservation of this ttl, which is given back if its time has not passed; reserve for longer",
            ));
        }
        Ok(Ok(reserved))
    }

    /// Waits until a cost is allowed, and charges it; asks once where the timeout is 0, unless somebody of this process waits
    /// before it. Who asks as the time runs out is told what came of that, which may take as long as a reply may. Dropping
    /// the future gives it up, but for what has been asked for already: reserve what must not be charged then. `await` it,
    /// perhaps after more words.
    ///
    /// # Errors
    /// `timed_out`; `limited` if it will never be allowed; `cancelled` if the handle is closed; as [`Self::take`].
    pub fn wait(&self, cost: impl Into<Amount>) -> Wait<'_, R> {
        Wait::new(self, cost.into(), 0)
    }

    /// The same by options.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub async fn wait_with(&self, cost: impl Into<Amount>, options: WaitOptions) -> Result<LimitAnswer> {
        self.check_takes()?;
        Ok(self.pursue(cost.into(), None, options).await?.answer().clone())
    }

    /// Waits until a cost can be reserved. `await` it, perhaps after more words.
    ///
    /// # Errors
    /// As [`Self::wait`] and [`Self::reserve`].
    pub fn wait_to_reserve(&self, cost: impl Into<Amount>, ttl: Duration) -> Wait<'_, R, true> {
        Wait::new(self, cost.into(), micros(ttl))
    }

    /// The same by options, for so many microseconds.
    pub(in crate::client) async fn wait_to_reserve_for(
        &self,
        cost: impl Into<Amount>,
        ttl: Micros,
        options: WaitOptions,
    ) -> Result<Reservation<R>> {
        self.pursue(cost.into(), Some(ttl), options).await
    }

    /// Tries again at the times that refusals tell, one of those who wait after the other.
    async fn pursue(
        &self,
        cost: Amount,
        ttl: Option<Micros>,
        options: WaitOptions,
    ) -> Result<Reservation<R>> {
        check_rest("timeout", options.timeout)?;
        let Some(scope) = &self.scope else {
            return self.attempt(cost, ttl, 0.into()).await?.map_err(|answer| answer.error());
        };
        let arrived = scope.runtime().now();
        let deadline = arrived + options.timeout;
        // Who takes of open limits waits in an outage as if alone.
        let needs_store = ttl.is_some() || !self.is_open();
        let trouble = || scope.trouble().filter(|_| needs_store);
        let timed_out = |again: Option<Micros>| {
            let left = again.map(|time| time.saturating_sub(scope.runtime().now()));
            let message = match (again, trouble()) {
                (None, Some(cause)) => return unavailable(&cause),
                (None, _) => "others waited before it until the timeout; wait longer".to_owned(),
                _ => {
                    let names: Vec<_> = self.names().map(Name::as_str).collect();
                    let names = names.join(", ");
                    format!("the limit {names} allowed it at no time until the timeout; wait longer")
                }
            };
            Error::new(Code::TimedOut, message).after(left)
        };
        // When the store would allow it, as it said last.
        let mut again = None;
        let place = scope.line(&self.charges(Amount::ZERO)).enter(options.priority, needs_store);
        let (mut look, mut look_seldom) = (LOOK.0, LOOK_SELDOM.0);
        // Those who were refused together are not to ask together each time.
        let apart = || scope.runtime().jitter(SECOND / 5);
        // How long an answer took at most.
        let mut reply = 0;
        loop {
            let turn = pin!(async {
                while !place.turn(|| scope.runtime().now()).await {
                    if let Some(cause) = trouble() {
                        return Err(unavailable(&cause));
                    }
                }
                Ok(())
            });
            let turn = runtime::by(scope.runtime(), deadline, turn).await;
            turn.ok_or_else(|| timed_out(again))??;
            // Before it is asked, or looks whether the handle was closed: what changes meanwhile is heard.
            let called = place.called();
            place.set_refused_by(None);
            scope.check_open()?;
            if !needs_store {
                scope.look_for_store(|| self.charges(Amount::ZERO));
            }
            // Not cut off at the deadline: what was asked for would be charged, and nobody told.
            let asked = scope.runtime().now();
            let waited = Waited { time: asked.saturating_sub(arrived), reply };
            let attempt = self.attempt(cost, ttl, waited);
            let attempted = match ttl {
                // What it reserves meanwhile is given back. What is taken for good is not given up: nobody would be told.
                Some(_) => {
                    let closing = scope.closing().map(drop);
                    runtime::before(closing, pin!(attempt)).await.unwrap_or_else(|| Err(closed()))
                }
                None => attempt.await,
            };
            let refused = match attempted {
                Ok(Ok(output)) => return Ok(output),
                Ok(Err(refused)) => refused,
                Err(error) => {
                    // Each of those behind would find out for itself, one after the other.
                    if error.code() == Code::StoreUnavailable {
                        place.call_off();
                    }
                    return Err(error);
                }
            };
            let Some(mut pause) = refused.retry_after_micros else { return Err(refused.error()) };
            // Those behind it may need the store.
            if refused.said == Said::Outage {
                place.call_off();
            }
            place.set_refused_by(refused.limit.as_ref());
            let now = scope.runtime().now();
            reply = reply.max(now.saturating_sub(asked));
            again = Some(now + pause);
            // Whoever is called in this very moment would ask once more, and wait for that.
            if now >= deadline {
                return Err(timed_out(again));
            }
            // Others may give back before then, and of those elsewhere nobody is told.
            match self.rule_of(refused.limit.as_ref()) {
                Some(Rule::InFlight { .. }) => {
                    pause = pause.min(scope.runtime().jitter(look));
                    look = (look * 2).min(LOOK.1);
                }
                // What those behind take now is not of the period for which this one waits.
                Some(Rule::Budget { .. }) => {
                    place.step_aside(now + pause);
                    pause = pause.min(look_seldom + apart());
                    look_seldom = (look_seldom * 2).min(LOOK_SELDOM.1);
                }
                _ => pause = pause.min(LOOK_SELDOM.0 + apart()),
            }
            let told = pin!(scope.runtime().sleep(pause));
            let rest = runtime::by(scope.runtime(), deadline, select(told, called)).await;
            rest.ok_or_else(|| timed_out(again))?;
        }
    }

    /// Takes a cost that was waited for, or reserves it. What is taken is a reservation that has ended.
    async fn attempt(
        &self,
        cost: Amount,
        ttl: Option<Micros>,
        waited: Waited,
    ) -> Result<Result<Reservation<R>, LimitAnswer>> {
        if let Some(ttl) = ttl {
            return self.reserve_for(cost, ttl, Some(waited)).await;
        }
        let answer = self.judge(Act::Take, cost).await?;
        let nothing = |answer| Reservation::new(None, 0, Vec::new(), self.parts.clone(), answer, 0, 0);
        Ok(if answer.allowed { Ok(nothing(answer)) } else { Err(answer) })
    }

    async fn judge(&self, act: Act, cost: Amount) -> Result<LimitAnswer> {
        match self.judge_now(&act, cost) {
            Some(verdict) => Ok(self.answer(&verdict)),
            None => self.ask_store(act, cost).await,
        }
    }

    /// Asks a store that does not answer at once.
    async fn ask_store(&self, act: Act, cost: Amount) -> Result<LimitAnswer> {
        match &self.scope {
            Some(scope) => scope.judge(act, self.charges(cost), self.is_open()).await,
            None => Ok(LimitAnswer::unbound(Said::Store)),
        }
    }

    /// Asks a store that answers at once, and with what is here already: nothing is made that has to be freed.
    fn judge_now(&self, act: &Act, cost: Amount) -> Option<Verdict> {
        // A wasm module, which is judged by its size, has one way to ask only: [`Scope::judge`].
        if cfg!(target_family = "wasm") {
            return None;
        }
        let scope = self.scope.as_ref()?;
        match &*self.parts {
            [part] => scope.judge_now(act, &[part.charged(cost)]),
            parts => {
                let charges: Vec<_> = parts.iter().map(|part| part.charged(cost)).collect();
                scope.judge_now(act, &charges)
            }
        }
    }

    fn answer(&self, verdict: &Verdict) -> LimitAnswer {
        let limit = self.parts.get(verdict.binding).map(|part| part.term.name().clone());
        LimitAnswer::told(verdict, limit, Said::Store)
    }

    /// How it stands.
    async fn look(&self) -> Result<LimitAnswer> {
        self.at_cost(Amount::ZERO).judge(Act::Peek, Amount::ZERO).await
    }

    async fn restore(&self, act: Act, cost: Amount) -> Result<LimitAnswer> {
        let Some(scope) = &self.scope else { return Ok(LimitAnswer::unbound(Said::Store)) };
        let mut answer = scope.restore(act, self.charges_to_restore(cost)).await?;
        // One that allows nothing by now was asked as if it allowed one.
        if self.rule_of(answer.limit.as_ref()).is_some_and(|rule| rule.most().is_zero()) {
            answer.remaining = Amount::ZERO;
        }
        Ok(answer)
    }

    fn charges(&self, cost: Amount) -> Vec<Charge> {
        let charge = |part: &Part| Charge { open: part.is_open(), ..Charge::from(&part.charged(cost)) };
        self.parts.iter().map(charge).collect()
    }

    /// The same of what is to be given back or forgotten, also where nothing can be taken by now.
    fn charges_to_restore(&self, cost: Amount) -> Vec<Charge> {
        let rules = self.parts.iter().map(|part| part.rule.restoring());
        self.charges(cost).into_iter().zip(rules).map(|(charge, rule)| Charge { rule, ..charge }).collect()
    }

    /// Whether an outage closes none of them.
    fn is_open(&self) -> bool {
        self.parts.iter().all(Part::is_open)
    }

    /// Whether any of them limits what is in flight.
    fn flies(&self) -> bool {
        self.parts.iter().any(|part| matches!(part.term.rule(), Rule::InFlight { .. }))
    }

    fn rule_of(&self, limit: Option<&Name>) -> Option<Rule> {
        let of = |part: &&Part| Some(part.term.name()) == limit;
        self.parts.iter().find(of).map(|part| *part.term.rule())
    }

    fn check_open(&self) -> Result<()> {
        self.scope.as_ref().map_or(Ok(()), |scope| scope.check_open())
    }

    fn check_takes(&self) -> Result<()> {
        match self.parts.iter().find(|part| matches!(part.term.rule(), Rule::InFlight { .. })) {
            Some(part) => Err(Error::invalid(
                "limit",
                format_args!("\"{}\" limits what is in flight; reserve of it", part.term.name()),
            )),
            None => Ok(()),
        }
    }
}

impl Part {
    fn is_open(&self) -> bool {
        self.outage == Outage::Open
    }

    /// What a take of this cost charges of it.
    pub fn charged(&self, cost: Amount) -> Charged<'_> {
        Charged { term: &self.term, cost: self.cost.unwrap_or(cost) }
    }
}

impl<R: Runtime> Clone for Limit<R> {
    fn clone(&self) -> Self {
        Limit { scope: self.scope.clone(), parts: self.parts.clone() }
    }
}

impl<R: Runtime> fmt::Debug for Limit<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Limit").field(&self.parts).finish()
    }
}
