//! One claim, or one for each part of a process's slots, and what its answer is worth here.

use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;

use super::{Refused, Want, mix};
use crate::Micros;
use crate::client::pool::PoolCore;
use crate::client::pool::courier::{Delivery, delivery};
use crate::client::pool::lease::unexpected;
use crate::client::pool::waiting::Seat;
#[cfg(all(feature = "crowds", not(target_family = "wasm")))]
use crate::client::pool::waiting::{Asked, Standing};
use crate::error::Result;
use crate::runtime::{self, Runtime};
use crate::slots::{Choice, Claim, Grant, Refusal, Reply, Request};
use crate::store::{Store, StorePool};

enum Judged {
    /// Their deadlines are those of this process.
    Granted(Vec<Grant>),
    Refused(Refused),
    /// A slot of another process came; it was given back.
    Foreign,
}

impl<S: Store, R: Runtime> PoolCore<S, R> {
    /// Claims at once, if the store can.
    #[allow(
        clippy::type_complexity,
        reason = "each layer says something else: can it, did it fail, was it granted"
    )]
    pub(super) fn try_claim(
        &self,
        want: &Want,
        seat: Option<&Seat>,
    ) -> Option<Result<Result<Vec<Grant>, Refused>>> {
        let (mut part, mut earliest) = (0, None);
        loop {
            let (request, seed, last) = self.claim_request(want, seat.is_some(), part);
            let (now, reply) = self.perform_now(seed, &request)?;
            match self.judge(want, seat, reply, now, now) {
                Ok(Judged::Foreign) => continue,
                Ok(Judged::Granted(grants)) => return Some(Ok(Ok(grants))),
                Ok(Judged::Refused(refused)) => match refused.of_part(&mut earliest, last) {
                    Some(refused) => return Some(Ok(Err(refused))),
                    None => part += 1,
                },
                Err(error) => return Some(Err(error)),
            }
        }
    }

    pub(super) async fn claim(
        &self,
        want: &Want,
        seat: Option<&Seat>,
    ) -> Result<Result<Vec<Grant>, Refused>> {
        let (mut part, mut earliest) = (0, None);
        loop {
            let (reply, last) = self.ask_for(want, seat, part);
            let answer = pin!(delivery(reply));
            let delivered = match want.patient {
                // The whole acquisition ends by the deadline.
                true => answer.await?,
                false => {
                    let limit = self.runtime.now() + self.response_timeout;
                    match runtime::by(&self.runtime, limit, answer).await {
                        Some(delivered) => delivered?,
                        None => return Err(self.unanswered(want)),
                    }
                }
            };
            let (now, sent) = (delivered.now, delivered.sent);
            match self.judge(want, seat, delivered.take(), now, sent)? {
                Judged::Foreign => continue,
                Judged::Granted(grants) => return Ok(Ok(grants)),
                Judged::Refused(refused) => match refused.of_part(&mut earliest, last) {
                    Some(refused) => return Ok(Err(refused)),
                    None => part += 1,
                },
            }
        }
    }

    /// Claims this part; and whether it is the last one. It may have been claimed already, for who was called.
    #[inline(always)]
    fn ask_for(&self, want: &Want, seat: Option<&Seat>, part: usize) -> (Delivery, bool) {
        #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
        match seat.map(Seat::answer) {
            Some(Asked::Is(answer)) => {
                // Whatever was met since it was asked for: its ticket is one for any slots.
                want.names_own.store(false, Relaxed);
                want.has_ticket.store(true, Relaxed);
                return (answer, true);
            }
            // It may have been granted what was given back since.
            Some(Asked::Was) => {
                self.courier.withdraw(self.holder(want));
                self.rename(want, seat);
            }
            Some(Asked::Not) | None => {}
        }
        let (request, _, last) = self.claim_request(want, seat.is_some(), part);
        let patience = if want.patient { want.deadline } else { 0 };
        (self.courier.dispatch(request, patience, 0), last)
    }

    /// What is to be claimed for it while it waits, if that is one claim: who steals says then how long it waits for a holder.
    #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
    pub(in crate::client) fn standing(&self, want: &Want) -> Option<Standing> {
        if self.answers_at_once() || want.steal.is_some() || self.names_own(want) {
            return None;
        }
        let (claim, ..) = self.claim_of(want, true, 0);
        Some(Standing { claim, began: want.began, deadline: want.deadline })
    }

    /// The request of a claim that is made now, with a seed; and whether it is the last one.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn claim_request(&self, want: &Want, wait: bool, part: usize) -> (Request, u32, bool) {
        let (claim, seed, last) = self.claim_of(want, wait, part);
        if claim.wait {
            #[cfg(feature = "crowds")]
            self.note_stock(want);
            want.has_ticket.store(true, Relaxed);
        }
        (Request::Claim(claim), seed, last)
    }

    /// The claim of this part of its process's slots, if it names these, with a seed; and whether it is the last one.
    #[inline(always)]
    fn claim_of(&self, want: &Want, wait: bool, part: usize) -> (Claim, u32, bool) {
        let mixed = mix(self.secret ^ want.name.load(Relaxed));
        let names_own = self.names_own(want);
        let last = !names_own || part + 1 >= self.parts(wait);
        let wait = wait && last;
        let choice = match &want.slots {
            Some(slots) if self.makes_names => Choice::Named { slots: slots.clone() },
            Some(slots) => Choice::Among { slots: slots.clone(), count: want.count },
            None if names_own => self.own_choice(want.count, mixed, part, wait),
            None => Choice::Any { strategy: want.strategy, least: want.count, most: want.count },
        };
        let claim = Claim {
            choice,
            holder: self.holder(want),
            ttl: want.ttl,
            max_hold: want.max_hold,
            wait,
            priority: want.priority,
            ageing: self.options.ageing,
            waited: if wait { self.runtime.now().saturating_sub(want.began) } else { 0 },
            steal: want.steal.filter(|_| wait).map(|factor| self.yields.patience(factor, self.options.ttl)),
        };
        (claim, (mixed >> 32) as u32, last)
    }

    /// Judges a reply of store time `now` to a request that was sent at `sent`.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn judge(
        &self,
        want: &Want,
        seat: Option<&Seat>,
        reply: Reply,
        now: Micros,
        sent: Micros,
    ) -> Result<Judged> {
        want.hear();
        let mut grants = match reply {
            Reply::Granted(grants) => grants,
            Reply::Refused { why, earliest } => {
                let earliest = earliest.map(|at| self.runtime.now() + at.saturating_sub(now));
                want.hear_refusal(why, earliest);
                if why == Refusal::Quiet && cfg!(feature = "crowds") {
                    self.quiet_until.store(earliest.unwrap_or_default(), Relaxed);
                }
                return Ok(Judged::Refused(Refused { why, earliest }));
            }
            other => return Err(unexpected(&other)),
        };
        if want.slots.is_none() && self.any_foreign(&grants) {
            self.meet_strangers();
            self.return_all(grants, want, seat);
            return Ok(Judged::Foreign);
        }
        if self.answers_at_once() {
            return Ok(Judged::Granted(grants));
        }
        let here = self.runtime.now();
        for grant in &mut grants {
            grant.deadline = self.local_deadline(sent, now, grant.deadline);
        }
        // What arrives with little left would be lost before it is used.
        if grants.iter().any(|grant| want.comes_too_late(grant.deadline.saturating_sub(here))) {
            self.return_all(grants, want, seat);
            return Ok(Judged::Refused(Refused { why: Refusal::Exhausted, earliest: Some(here) }));
        }
        Ok(Judged::Granted(grants))
    }

    /// Gives back what is of no use. It asks by another name at once, and may be called by it before the answer is here.
    fn return_all(&self, grants: Vec<Grant>, want: &Want, seat: Option<&Seat>) {
        grants.into_iter().for_each(|grant| self.courier.give_back(grant));
        self.rename(want, seat);
    }

    /// Whether one of the grants is of a slot that this process did not name.
    fn any_foreign(&self, grants: &[Grant]) -> bool {
        let Some(own) = &self.own else { return false };
        // In a large pool a look at every slot would be a good part of an acquisition.
        let none = self.courier.pool().ever_added().is_some_and(|count| own.are_all(count));
        !none && grants.iter().any(|grant| !own.has(&grant.slot))
    }
}

/// How long what has this time to live lasts without a renewal, if renewals may prolong it for so long in all.
pub(in crate::client) fn lasting(ttl: Micros, max_hold: Micros) -> Micros {
    if max_hold == 0 { ttl } else { ttl.min(max_hold) }
}

impl Refused {
    /// What comes of the refusal of one part after others, of which the `earliest` is kept; nothing if there is another one to
    /// ask for.
    #[cfg_attr(target_family = "wasm", inline(always))]
    fn of_part(self, earliest: &mut Option<Micros>, last: bool) -> Option<Refused> {
        // Without `crowds` there is one part.
        if !cfg!(feature = "crowds") || self.why != Refusal::Exhausted {
            return Some(self);
        }
        *earliest = [*earliest, self.earliest].into_iter().flatten().min();
        last.then_some(Refused { earliest: *earliest, ..self })
    }
}
