//! Claims of tokens, and who has them.

use std::pin::pin;
use std::sync::Arc;

use super::LockedToken;
use crate::client::pool::PoolCore;
use crate::client::pool::acquisition::mix;
use crate::client::pool::courier::{Delivered, unsure};
use crate::client::pool::lease::unexpected;
use crate::error::{Code, Error, Result};
use crate::id::SlotId;
use crate::nonce::Outcome;
use crate::runtime::{self, Runtime};
use crate::slots::{
    Choice, Claim, Grant, LeaseRef, MAX_PER_REQUEST, Refusal, Reply, Request, SlotChange, SlotView, State,
};
use crate::store::{Store, StorePool};
use crate::tokens::{slot_of, token_of};
use crate::{MILLISECOND, Micros, SECOND};

/// The longest pause of a claim that a store refuses because it may have lost its memory.
const QUIET: Micros = SECOND;

/// What came of a claim.
pub(super) struct Claiming {
    /// Their deadlines are those of this process, on its clock of leases.
    pub grants: Vec<Grant>,
    /// When the first of the others comes free at the latest, on the local clock.
    pub earliest: Option<Micros>,
}

impl<S: Store, R: Runtime> PoolCore<S, R> {
    /// Claims as many of these tokens as can be had. Nothing if the time was over before there was an answer.
    pub(super) async fn claim_free(
        &self,
        slots: &[SlotId],
        holder: u128,
        ttl: Micros,
        limit: Micros,
        patient: bool,
    ) -> Result<Option<Claiming>> {
        loop {
            let Some((reply, now, sent)) = self.ask_to_claim(slots, holder, ttl, limit, patient).await?
            else {
                return Ok(None);
            };
            let earliest = |at: Option<Micros>| at.map(|at| self.runtime.now() + at.saturating_sub(now));
            let (mut grants, earliest) = match reply {
                Reply::Granted(grants) => (grants, None),
                Reply::Partly { grants, earliest: at } => (grants, earliest(at)),
                Reply::Refused { why: Refusal::Quiet, earliest: at } => {
                    let until = earliest(at).unwrap_or_else(|| self.runtime.now());
                    self.wait_out(until, limit, patient).await?;
                    continue;
                }
                Reply::Refused { earliest: at, .. } => (Vec::new(), earliest(at)),
                other => return Err(unexpected(&other)),
            };
            if !self.answers_at_once() {
                let here = self.runtime.now();
                for grant in &mut grants {
                    grant.deadline = self.local_deadline(sent, now, grant.deadline);
                }
                // What arrives with little left would be lost before it is used.
                if grants.iter().any(|grant| grant.deadline < here + ttl / 4) {
                    grants.into_iter().for_each(|grant| self.courier.give_back(grant));
                    grants = Vec::new();
                }
            }
            return Ok(Some(Claiming { grants, earliest }));
        }
    }

    /// Has a spent token rest no more. Tried for so long, in which nobody else can have it.
    pub(in crate::client) fn end_rest(&self, slot: SlotId, time: Micros) {
        let request = Request::Change { slot, change: SlotChange::Remove };
        if self.courier.pool().perform_now(0, &request).is_none() {
            let until = self.runtime.now() + time;
            drop(self.courier.post(request, until, until));
        }
    }

    /// Who has which of these tokens.
    pub(super) async fn locks_of(&self, ids: Vec<Arc<str>>) -> Result<Vec<LockedToken>> {
        if ids.len() > MAX_PER_REQUEST {
            return Err(Error::invalid(
                "ids",
                format_args!("{} ids; at most {MAX_PER_REQUEST} are allowed", ids.len()),
            ));
        }
        let slots = ids.iter().map(slot_of).collect::<Result<_>>().map_err(|error| error.within("ids"))?;
        self.locks_on(slots).await
    }

    /// Who has which tokens of the wallet. What is locked while this asks may be missing.
    pub(super) async fn all_locks(&self) -> Result<Vec<LockedToken>> {
        let slots = match self.ask(Request::List).await?.0 {
            Reply::Listed(slots) => slots,
            other => return Err(unexpected(&other)),
        };
        let mut locks = Vec::with_capacity(slots.len());
        for some in slots.chunks(MAX_PER_REQUEST) {
            locks.extend(self.locks_on(some.to_vec()).await?);
        }
        locks.sort_unstable_by(|one, other| one.id.cmp(&other.id));
        Ok(locks)
    }

    /// Gives back what this holder has, and says how many that were.
    pub(super) async fn release_holder(&self, holder: u128) -> Result<u32> {
        let locks = self.all_locks().await?;
        let is_its = |view: &SlotView| view.state == State::Leased && view.holder == holder;
        let its: Vec<_> = locks.into_iter().map(|lock| lock.view).filter(is_its).collect();
        let mut count = 0;
        for some in its.chunks(MAX_PER_REQUEST) {
            let patience = self.runtime.now() + self.response_timeout;
            let release = |view: &SlotView| {
                // The fence says that it is what was listed, and nothing that was granted since.
                let lease = LeaseRef { slot: view.slot.clone(), fence: view.fence, place: 0 };
                (Request::Release { lease, outcome: Outcome::Unused, cooldown: 0 }, patience)
            };
            for reply in self.courier.post_together(some.iter().map(release).collect()) {
                let reply = runtime::by(&self.runtime, patience + self.response_timeout, pin!(reply)).await;
                let delivered = reply.ok_or_else(|| self.silence(unsure))??;
                count += u32::from(matches!(delivered.take(), Reply::Released));
            }
        }
        Ok(count)
    }

    async fn locks_on(&self, slots: Vec<SlotId>) -> Result<Vec<LockedToken>> {
        let (reply, now, _) = self.ask(Request::Inspect { slots }).await?;
        let Reply::Inspected { slots: views, .. } = reply else { return Err(unexpected(&reply)) };
        // What was spent rests.
        let is_locked =
            |view: &SlotView| matches!(view.state, State::Leased | State::Cooling) && view.until > now;
        let locked = views.into_iter().filter(is_locked);
        Ok(locked
            .map(|view| LockedToken { id: token_of(&view.slot), left_micros: view.until - now, view })
            .collect())
    }

    pub(super) async fn count_locked(&self) -> Result<u32> {
        match self.ask(Request::Inspect { slots: Vec::new() }).await?.0 {
            Reply::Inspected { due, .. } => Ok(due),
            other => Err(unexpected(&other)),
        }
    }

    async fn ask_to_claim(
        &self,
        slots: &[SlotId],
        holder: u128,
        ttl: Micros,
        limit: Micros,
        patient: bool,
    ) -> Result<Option<(Reply, Micros, Micros)>> {
        let seed = mix(self.secret ^ holder as u64) as u32;
        let request = |asked| {
            let choice = Choice::Free { slots: slots.to_vec(), least: 1, most: slots.len() as u32, asked };
            Request::Claim(Claim::new(choice, holder, ttl))
        };
        if self.answers_at_once() {
            let answer = self.perform_now(seed, &request(self.lease_clock()));
            return Ok(answer.map(|(now, reply)| (reply, now, now)));
        }
        // A holder with a name may have leases of its own there: to take their place it has to know what time it is.
        let own = (holder >> 64) as u64 == self.secret;
        let asked = match self.courier.store_time() {
            _ if own => 0,
            Some(time) => time,
            None => {
                let inspected = self.ask_by(Request::Inspect { slots: Vec::new() }, limit, patient).await?;
                let Some(inspected) = inspected else { return Ok(None) };
                inspected.now
            }
        };
        let Some(delivered) = self.ask_by(request(asked), limit, patient).await? else { return Ok(None) };
        let (now, sent) = (delivered.now, delivered.sent);
        Ok(Some((delivered.take(), now, sent)))
    }

    /// Asks the store for as long as that, once for who is not patient; nothing if there was no answer by then.
    async fn ask_by(&self, request: Request, limit: Micros, patient: bool) -> Result<Option<Delivered>> {
        // A claim that can wait may overtake what is given back before it.
        let submitted = pin!(self.courier.submit(request, if patient { limit } else { 0 }));
        runtime::by(&self.runtime, limit, submitted).await.transpose()
    }

    /// Until a store that may have lost its memory grants again.
    async fn wait_out(&self, until: Micros, limit: Micros, patient: bool) -> Result<()> {
        let here = self.runtime.now();
        if !patient || until > limit {
            let left = until.saturating_sub(here);
            let message = format!(
                "the store may have lost locks (it restarted, or its memory was lost); nothing is granted until they must have ended, in {} ms",
                left / MILLISECOND
            );
            return Err(Error::new(Code::LockedUntil, message).after(Some(left)));
        }
        self.runtime.sleep((until.saturating_sub(here) + 1).min(QUIET)).await;
        Ok(())
    }
}
