//! The rules of a pool once more, as plainly as they can be said: lists, and scans of them.
//!
//! Written from the rules and from what the requests' documentation promises, not from the machine. Where
//! the rules leave a choice free (a random slot, how much larger a fence is), the model checks that the
//! machine's choice is allowed and follows it.

use std::collections::VecDeque;

use super::account::{Account, after, lowest, unsettled};
use super::queue::Queue;
use crate::Micros;
use crate::id::SlotId;
use crate::nonce::{NonceRecord, Outcome};
use crate::slots::{
    Answer, Calls, Claim, Envelope, LANE_GRACE, Lane, LeaseRef, Loss, Mode, Moment, OFFER, Performed,
    QuietTime, Reply, Request, SWEEP, SlotChange, SlotSpec, SlotView, State, VALIDITY,
};

/// What the machine gave to those who wait.
#[derive(Clone, Debug, PartialEq)]
pub enum Handed {
    /// One of several that a ticket wants.
    Kept(u128, SlotId),
    /// All that it wants.
    Offered(u128, Vec<SlotId>),
}

/// A pool by the rules.
#[derive(Clone, Default)]
pub struct Model {
    pub(super) defined: bool,
    /// The latest store time, and how far it is ahead of the server's clock.
    pub(super) latest: Micros,
    pub(super) ahead: Micros,
    pub(super) incarnation: String,
    /// How often memory was lost, and when for the last time.
    pub(super) losses: u64,
    /// Since when, as far as is known, none was: the birth of the pool, or a later loss.
    pub(super) whole_since: Micros,
    pub(super) lost_at: Option<Micros>,
    pub(super) longest: Micros,
    /// The highest fence when the quiet time last became longer, or memory was lost.
    raised_at: u64,
    pub(super) doubt_rest: Micros,
    pub(super) top: u64,
    pub(super) interest_ends: Micros,
    pub(super) accounts: Vec<Account>,
    pub(super) arrivals: u64,
    pub(super) became_ready: u32,
    /// When the first comes due that was put to rest in this turn.
    first_rested: Option<Micros>,
    /// Fences of leases that were claimed in this turn.
    pub(super) claimed: Vec<u64>,
    /// Tickets that were called in this turn.
    called: Vec<u128>,
    /// What the machine kept or offered in this turn, and the model has not yet.
    handed: VecDeque<Handed>,
    pub(super) queue: Queue,
    pub(super) kept: Vec<(Lane, Performed, Micros)>,
}

impl Model {
    /// What the answer must be. `given` is what the machine said; only where a choice is free is it followed.
    ///
    /// `handed` is what the machine kept or offered, one after the other.
    pub fn answer(
        &mut self,
        moment: Moment<'_>,
        envelope: &Envelope,
        given: &Answer,
        handed: &[Handed],
    ) -> Answer {
        let now = self.latest.max(moment.wall + self.ahead);
        if let Some(lane) = envelope.lane {
            let same = |kept: &&(Lane, Performed, Micros)| {
                kept.0.client == lane.client && kept.0.number == lane.number && kept.2 > now
            };
            match self.kept.iter().rfind(same) {
                Some((kept, answer, _)) if kept.sequence == lane.sequence => {
                    return Answer::Performed(answer.clone());
                }
                Some((kept, _, _)) if kept.sequence > lane.sequence => return Answer::Stale { now },
                _ => {}
            }
        }
        if envelope.not_after.is_some_and(|last| last < now || last < self.whole_since + VALIDITY) {
            return Answer::Stale { now };
        }
        let defines = matches!(envelope.requests.first(), Some(Request::Define { .. }));
        if !self.defined && !defines {
            let replies = vec![Reply::Undefined; envelope.requests.len()];
            let calls = Calls::default();
            return Answer::Performed(Performed { now, top: 0, quiet_time: None, calls, replies });
        }
        (self.latest, self.ahead) = (now, now - moment.wall);
        (self.became_ready, self.first_rested) = (0, None);
        self.claimed.clear();
        self.called.clear();
        self.handed = handed.iter().cloned().collect();
        if self.defined {
            let fence = envelope.seen;
            let moved = self.incarnation != moment.incarnation;
            // No fence is older than its pool: there was one before. What that one granted has an end.
            let lived = fence != 0 && fence < self.whole_since && self.lost_at != Some(self.whole_since);
            if lived && !moved && !envelope.jumped {
                self.lost(self.whole_since, moment, fence);
            } else if moved || fence > self.top || envelope.jumped {
                self.lost(now, moment, fence);
            }
            self.put_back(now);
        }
        let quiet_before = self.longest + self.doubt_rest;
        let mut replies = Vec::new();
        for (at, request) in envelope.requests.iter().enumerate() {
            let hint = match given {
                Answer::Performed(performed) => performed.replies.get(at),
                Answer::Stale { .. } => None,
            };
            replies.push(self.reply(now, moment, envelope.seen, request, hint));
        }
        self.serve(now);
        assert!(self.handed.is_empty(), "nobody else is to be served: {:?}", self.handed);
        let ready = self.in_state(State::Ready);
        let freed = if self.interest_ends > now { self.became_ready.min(ready) } else { 0 };
        let somebody_waits = self.interest_ends > now || !self.queue.waiters.is_empty();
        let rest = self.first_rested.filter(|_| somebody_waits).map(|ends| ends - now);
        if self.longest + self.doubt_rest > quiet_before {
            self.raised_at = self.top;
        }
        // Whoever has seen a later fence has had an answer since.
        let news = envelope.seen <= self.raised_at;
        let quiet_time = QuietTime { longest: self.longest, doubt_rest: self.doubt_rest };
        let performed = Performed {
            now,
            top: self.top,
            quiet_time: news.then_some(quiet_time),
            calls: Calls { freed, tickets: self.called.clone(), claimed: self.claimed.clone(), rest },
            replies,
        };
        if let Some(lane) = envelope.lane {
            let until = envelope.not_after.unwrap_or(now) + LANE_GRACE;
            self.kept.push((lane, performed.clone(), until));
        }
        Answer::Performed(performed)
    }

    /// The latest store time.
    pub fn now(&self) -> Micros {
        self.latest
    }

    /// Memory was lost at a time that is told apart from that of what was lost before.
    fn lost(&mut self, at: Micros, moment: Moment<'_>, seen: u64) {
        self.losses += 1;
        self.whole_since = at.max(self.whole_since + 1);
        self.lost_at = Some(self.whole_since);
        self.incarnation = moment.incarnation.to_owned();
        // Nothing that was granted before then is news.
        self.top = self.top.max(seen).max(self.whole_since);
        self.raised_at = self.top;
        self.queue.clear();
    }

    /// Offers what is there to those whose turn it is.
    fn serve(&mut self, now: Micros) {
        loop {
            self.serve_names(now);
            if !self.serve_first(now) {
                return;
            }
        }
    }

    /// Offers what the first wants who takes any slots, if that is there; whether it is.
    fn serve_first(&mut self, now: Micros) -> bool {
        let ready = self.in_state(State::Ready) as usize;
        let first = self.queue.first().filter(|first| (1..=ready).contains(&first.count));
        let Some((holder, count)) = first.map(|first| (first.holder, first.count)) else { return false };
        let slots = self.next_offer(|to, slots| to == holder && slots.len() == count).1;
        self.offer(now, holder, slots);
        true
    }

    /// Those who come before this claim have theirs, as long as there are so many slots that it may have them.
    pub(super) fn serve_those_before(&mut self, now: Micros, claim: &Claim, least: u32) {
        while self.in_state(State::Ready) >= least
            && self.queue.overtakes(now, claim, &[])
            && self.serve_first(now)
        {
            self.serve_names(now);
        }
    }

    /// Offers what is there to those whose turn it is who wait for it by its name.
    pub(super) fn serve_names(&mut self, now: Micros) {
        loop {
            let find = |name: &SlotId| self.accounts.iter().find(|account| account.id == *name);
            let is_ready = |name: &SlotId| find(name).map(|found| found.state == State::Ready);
            let mut servable = self.queue.servable(is_ready);
            // Who wants one has one in doubt only where there is no other.
            for (holder, names) in &mut servable {
                let certain = |name: &SlotId| find(name).is_some_and(|account| !account.in_doubt());
                let one = self.queue.waiters.iter().any(|own| own.holder == *holder && own.count == 1);
                if one && names.iter().any(certain) {
                    names.retain(certain);
                }
            }
            // Whether who wants one is served before who wants several is free, and may decide which those are.
            let is_next = |(holder, names): &(u128, Vec<SlotId>)| match self.handed.front() {
                Some(Handed::Offered(to, slots)) => {
                    to == holder && slots.iter().all(|slot| names.contains(slot))
                }
                _ => false,
            };
            if !servable.iter().any(is_next) {
                if self.keep_for_those_of_several(now) {
                    continue;
                }
                servable.extend(self.all_kept(now));
            }
            if servable.is_empty() {
                let obtainable = self.obtainable();
                if self.in_state(State::Ready) > 0 && self.queue.pass_over(obtainable) {
                    continue;
                }
                return;
            }
            let waiters = self.queue.waiters.clone();
            let (holder, slots) = self.next_offer(|to, slots| {
                let names = servable.iter().find(|(holder, _)| *holder == to).map(|(_, names)| names);
                let count =
                    waiters.iter().find(|waiter| waiter.holder == to).map_or(0, |waiter| waiter.count);
                names.is_some_and(|names| match count {
                    0 => names == slots,
                    count => slots.len() == count && slots.iter().all(|slot| names.contains(slot)),
                })
            });
            self.offer(now, holder, slots);
        }
    }

    /// Who wants several of some names, and is first for one that is ready, has what is there kept for it, in any order; where they
    /// cannot become enough it is let go. Whether anything came of it.
    fn keep_for_those_of_several(&mut self, now: Micros) -> bool {
        let several: Vec<_> =
            self.queue.standing().filter(|waiter| waiter.wants_several()).cloned().collect();
        let mut missing = None;
        for waiter in several {
            let behind = self.queue.anybody_before((waiter.turn, waiter.holder), &[]);
            let may_have = |account: &Account| {
                let first = self.queue.first_of(Some(&account.id)).map(|first| first.holder);
                account.state == State::Ready
                    && waiter.names.contains(&account.id)
                    && first == Some(waiter.holder)
            };
            let certain = self.accounts.iter().any(|account| may_have(account) && !account.in_doubt());
            for name in waiter.names.iter().filter(|_| !behind) {
                let first = self.queue.first_of(Some(name)).map(|first| first.holder);
                let Some(account) = self.account(name) else { continue };
                let later = certain && account.in_doubt();
                if account.state != State::Ready || first != Some(waiter.holder) || later {
                    continue;
                }
                if self.obtainable_of(&waiter.names) < waiter.count {
                    self.withdraw(now, waiter.holder);
                    return true;
                }
                let kept = self.kept_for(now, waiter.holder, &waiter.names).len();
                if kept >= waiter.count {
                    continue;
                }
                let keeps = Handed::Kept(waiter.holder, name.clone());
                if self.handed.front() == Some(&keeps)
                    && let Some(account) = self.account(name)
                {
                    (account.state, account.holder, account.until) =
                        (State::Offered, waiter.holder, now + OFFER);
                    self.handed.pop_front();
                    return true;
                }
                missing = missing.or(Some(keeps));
            }
        }
        assert!(!self.handed.is_empty() || missing.is_none(), "nothing else was kept: {missing:?}");
        false
    }

    /// Those for whom enough is kept, and what.
    fn all_kept(&self, now: Micros) -> Vec<(u128, Vec<SlotId>)> {
        let several = self.queue.standing().filter(|waiter| waiter.wants_several());
        let kept = |waiter: &super::queue::Waiter| {
            let kept = self.kept_for(now, waiter.holder, &waiter.names);
            (kept.len() >= waiter.count).then_some((waiter.holder, kept))
        };
        several.filter_map(kept).collect()
    }

    /// Those of these names that are kept for a ticket, each once.
    pub(super) fn kept_for(&self, now: Micros, holder: u128, names: &[SlotId]) -> Vec<SlotId> {
        let mut kept: Vec<SlotId> = Vec::new();
        for name in names.iter().filter(|name| self.is_offered(name, holder, now)) {
            if !kept.contains(name) {
                kept.push(name.clone());
            }
        }
        kept
    }

    /// How many of these are or will be ready: not those that are gone with their lease.
    pub(super) fn obtainable_of(&self, names: &[SlotId]) -> usize {
        let lasts = |account: &&Account| names.contains(&account.id) && account.mode != Mode::Passing;
        self.accounts.iter().filter(lasts).filter(|account| account.comes_back()).count()
    }

    /// What the machine offered next must be right.
    fn next_offer(&mut self, is_right: impl Fn(u128, &[SlotId]) -> bool) -> (u128, Vec<SlotId>) {
        let next = self.handed.pop_front();
        match next {
            Some(Handed::Offered(holder, slots)) if is_right(holder, &slots) => (holder, slots),
            _ => panic!("somebody else is to be served, not {next:?}"),
        }
    }

    fn offer(&mut self, now: Micros, holder: u128, slots: Vec<SlotId>) {
        for id in &slots {
            match self.account(id) {
                None => self.accounts.push(Account::new(id, 1, Mode::Passing)),
                Some(account) => {
                    let kept = account.state == State::Offered && account.holder == holder;
                    assert!(kept || account.state == State::Ready, "{id} is not there to be offered");
                }
            }
            if let Some(account) = self.account(id) {
                (account.state, account.holder, account.until) = (State::Offered, holder, now + OFFER);
            }
        }
        self.called.push(holder);
        let waiter = self.queue.waiters.iter_mut().find(|waiter| waiter.holder == holder);
        let Some(waiter) = waiter else { return };
        waiter.offered = slots;
        // Of several that it might have had the others are left to those behind it.
        if waiter.count > 0 && !waiter.names.is_empty() {
            let names = waiter.names.clone();
            self.steal_for_first(now, &names);
        }
    }

    /// What is offered to a ticket, which is gone with it; nothing if a part of it is offered no more.
    pub(super) fn accept(&mut self, now: Micros, holder: u128) -> Option<Vec<SlotId>> {
        self.queue.waiters.iter().find(|waiter| waiter.holder == holder && !waiter.offered.is_empty())?;
        let offered = self.queue.leave(holder)?.offered;
        let stands = |id: &SlotId| self.is_offered(id, holder, now);
        if offered.iter().all(stands) {
            return Some(offered);
        }
        self.take_back(now, holder, offered);
        None
    }

    /// With a ticket goes what is offered to it, or kept for it.
    pub(super) fn withdraw(&mut self, now: Micros, holder: u128) {
        if let Some(waiter) = self.queue.leave(holder) {
            let stands = waiter.offered.is_empty();
            let names = waiter.names.clone();
            self.take_back(now, holder, if stands { waiter.names } else { waiter.offered });
            if stands {
                self.steal_for_first(now, &names);
            }
        }
    }

    pub(super) fn is_offered(&self, id: &SlotId, holder: u128, now: Micros) -> bool {
        let kept = |account: &Account| {
            account.state == State::Offered && account.holder == holder && account.until > now
        };
        self.accounts.iter().any(|account| account.id == *id && kept(account))
    }

    pub(super) fn take_back(&mut self, now: Micros, holder: u128, offered: Vec<SlotId>) {
        for id in offered {
            if self.is_offered(&id, holder, now) {
                self.rested(&id);
            }
        }
    }

    /// How many slots there are that are or will be ready: not those that an administrator takes when they are given back.
    pub(super) fn obtainable(&self) -> usize {
        self.accounts.iter().filter(|account| account.comes_back()).count()
    }

    /// A slot is offered no more, and so is nothing else of its offer.
    fn break_offer(&mut self, now: Micros, id: &SlotId) {
        let Some(account) = self.account(id).filter(|account| account.state == State::Offered) else {
            return;
        };
        let holder = account.holder;
        let others: Vec<SlotId> =
            self.end_offer(holder, id).into_iter().filter(|other| other != id).collect();
        self.take_back(now, holder, others);
    }

    /// What was offered together with this slot to a ticket, which is dropped.
    fn end_offer(&mut self, holder: u128, id: &SlotId) -> Vec<SlotId> {
        let with_it =
            |waiter: &&mut super::queue::Waiter| waiter.holder == holder && waiter.offered.contains(id);
        match self.queue.waiters.iter_mut().find(with_it) {
            Some(_) => self.queue.leave(holder).map(|waiter| waiter.offered).unwrap_or_default(),
            None => Vec::new(),
        }
    }

    pub(super) fn in_state(&self, state: State) -> u32 {
        self.accounts.iter().filter(|account| account.state == state).count() as u32
    }

    pub(super) fn account(&mut self, id: &SlotId) -> Option<&mut Account> {
        self.accounts.iter_mut().find(|account| account.id == *id)
    }

    pub(super) fn quiet_until(&self) -> Micros {
        self.lost_at.map_or(0, |at| at + self.longest + self.doubt_rest)
    }

    /// Overdue slots, the earliest first, not too many at a time.
    fn put_back(&mut self, now: Micros) {
        self.queue.forget_the_vanished(now);
        let timed = |account: &&Account| account.is_timed();
        let mut overdue: Vec<_> =
            self.accounts.iter().filter(timed).filter(|account| account.until <= now).collect();
        overdue.sort_by_key(|account| (account.until, account.id.clone()));
        let overdue: Vec<_> = overdue.into_iter().take(SWEEP).map(|account| account.id.clone()).collect();
        for id in overdue {
            let claimed = self.claimant(&id, now).is_some();
            let Some(account) = self.account(&id) else { continue };
            if account.state == State::Leased && !claimed {
                account.revert();
                if account.until > now {
                    continue;
                }
            }
            if account.state == State::Leased {
                account.nonce = unsettled(account.nonce);
                let ended = account.until;
                self.place(now, &id, ended);
            } else {
                if account.state == State::Offered {
                    let (holder, made) = (account.holder, account.until - OFFER);
                    if !self.end_offer(holder, &id).is_empty() {
                        self.queue.drop_silent(holder, made, &id);
                    }
                }
                self.rested(&id);
            }
        }
    }

    /// Ready again, or gone if it was there for its lease only.
    fn rested(&mut self, id: &SlotId) {
        if self.account(id).is_some_and(|account| matches!(account.mode, Mode::Passing | Mode::Removing)) {
            self.accounts.retain(|account| account.id != *id);
        } else {
            self.queue(id);
        }
    }

    fn queue(&mut self, id: &SlotId) {
        self.arrivals += 1;
        self.became_ready += 1;
        let arrival = self.arrivals;
        if let Some(account) = self.account(id) {
            (account.state, account.arrival) = (State::Ready, arrival);
        }
    }

    /// Puts a slot that has no lease where it belongs.
    fn place(&mut self, now: Micros, id: &SlotId, ended: Micros) {
        let doubt_rest = self.doubt_rest;
        let Some(account) = self.account(id) else { return };
        // Nobody is believed what was said of it under quarantine.
        if account.trusted.is_none() {
            account.nonce = unsettled(account.nonce);
        }
        match account.mode {
            Mode::Draining | Mode::Disabled => (account.mode, account.state) = (Mode::Disabled, State::Out),
            Mode::Enabled | Mode::Passing | Mode::Removing => {
                if account.in_doubt() {
                    account.cooldown_ends = account.cooldown_ends.max(ended + doubt_rest);
                }
                let rested = match account.mode {
                    // Only a doubt outlives it.
                    Mode::Removing if account.in_doubt() => account.cooldown_ends,
                    Mode::Removing => now,
                    _ => account.cooldown_ends.max(account.quarantine_ends),
                };
                if rested > now {
                    (account.state, account.until) = (State::Cooling, rested);
                    self.first_rested = self.first_rested.into_iter().chain([rested]).min();
                } else {
                    self.rested(id);
                }
            }
        }
    }

    fn reply(
        &mut self,
        now: Micros,
        moment: Moment<'_>,
        seen: u64,
        request: &Request,
        hint: Option<&Reply>,
    ) -> Reply {
        match request {
            Request::Claim(claim) => self.claim(now, claim, hint),
            Request::Withdraw { holder } => {
                self.withdraw(now, *holder);
                Reply::Withdrawn
            }
            Request::Renew { lease, ttl } => {
                self.longest = self.longest.max(*ttl);
                let claimant = self.claimant(&lease.slot, now);
                self.with_lease(now, lease, |account| {
                    if let Some((_, priority)) = claimant {
                        return Reply::Claimed { deadline: account.until, priority };
                    }
                    account.revert();
                    let bound = account.hold_ends.unwrap_or(Micros::MAX);
                    if account.mode != Mode::Disabled {
                        account.until = account.until.max((now + ttl).min(bound));
                    }
                    Reply::Renewed { deadline: account.until }
                })
            }
            Request::Release { lease, outcome, cooldown } => {
                let reply = self.with_lease(now, lease, |account| {
                    let before = account.nonce;
                    match after(before, *outcome) {
                        Ok(nonce) => account.record(nonce, now),
                        Err(floor) => return Reply::Backwards { floor },
                    }
                    account.cooldown_ends = account.cooldown_ends.max(now + cooldown);
                    Reply::Released
                });
                if reply == Reply::Released {
                    // A lease whose nonce was not used makes no doubt.
                    self.place(now, &lease.slot, if *outcome == Outcome::Unused { 0 } else { now });
                }
                reply
            }
            Request::Resync { lease, chain, rewind, settle } => {
                self.with_lease(now, lease, |account| match lowest(account.nonce) {
                    Some(floor) if *chain < floor && !rewind && account.raised + settle > now => {
                        Reply::Behind { floor, until: account.raised + settle }
                    }
                    _ => {
                        account.record(NonceRecord::Known(*chain), now);
                        Reply::Resynced { next: *chain }
                    }
                })
            }
            Request::Define { slots, longest, doubt_rest } => {
                self.define(now, moment, seen, slots, *longest, *doubt_rest)
            }
            Request::Change { slot, change } => self.change(now, slot, *change),
            Request::Inspect { slots } => self.inspect(slots),
            Request::List => {
                let mut ids: Vec<_> = self.accounts.iter().map(|account| account.id.clone()).collect();
                ids.sort();
                Reply::Listed(ids)
            }
        }
    }

    fn with_lease(
        &mut self,
        now: Micros,
        lease: &LeaseRef,
        act: impl FnOnce(&mut Account) -> Reply,
    ) -> Reply {
        let lost_since = lease.fence < self.whole_since;
        let Some(account) = self.account(&lease.slot) else { return Reply::Lost(Loss::Gone) };
        let loss = if account.fence > lease.fence {
            Loss::Taken
        } else if account.fence == 0 && !lost_since {
            Loss::Gone
        } else if account.fence < lease.fence {
            Loss::Forgotten
        } else if account.state != State::Leased {
            Loss::Ended
        } else if account.until <= now {
            Loss::Expired
        } else {
            return act(account);
        };
        Reply::Lost(loss)
    }

    fn define(
        &mut self,
        now: Micros,
        moment: Moment<'_>,
        seen: u64,
        slots: &[SlotSpec],
        longest: Micros,
        doubt_rest: Micros,
    ) -> Reply {
        if !self.defined {
            self.defined = true;
            self.incarnation = moment.incarnation.to_owned();
            self.top = seen.max(now);
            self.lost_at = match seen {
                0 => Some(moment.up_since).filter(|since| since + longest + doubt_rest > now),
                _ => Some(now),
            };
            (self.losses, self.whole_since) = (1, now);
        }
        self.longest = self.longest.max(longest);
        self.doubt_rest = self.doubt_rest.max(doubt_rest);
        let before = self.accounts.len();
        for spec in slots {
            match self.account(&spec.slot) {
                Some(account) => {
                    let moved = account.state == State::Ready && account.weight != spec.weight;
                    account.weight = spec.weight;
                    if matches!(account.mode, Mode::Removing | Mode::Passing) {
                        account.mode = Mode::Enabled;
                    }
                    if moved {
                        self.queue(&spec.slot);
                    }
                }
                None => {
                    self.accounts.push(Account::new(&spec.slot, spec.weight, Mode::Enabled));
                    self.queue(&spec.slot);
                }
            }
        }
        let total = self.accounts.len();
        Reply::Defined { added: (total - before) as u32, total: total as u32 }
    }

    fn change(&mut self, now: Micros, id: &SlotId, change: SlotChange) -> Reply {
        let Some(account) = self.account(id) else { return Reply::NoSlot };
        let (state, mode) = (account.state, account.mode);
        let leased = state == State::Leased;
        let of_what_stays = matches!(change, SlotChange::Enable | SlotChange::Disable | SlotChange::Drain);
        if mode == Mode::Removing && of_what_stays {
            return Reply::NoSlot;
        }
        // What may be handed out needs no enabling, and what nobody holds cannot be broken.
        let idle = match change {
            SlotChange::Enable => matches!(state, State::Ready | State::Offered),
            SlotChange::Break => matches!(state, State::Ready | State::Offered),
            _ => false,
        };
        if idle && (mode == Mode::Enabled || change == SlotChange::Break) {
            return Reply::Changed;
        }
        self.break_offer(now, id);
        let Some(account) = self.account(id) else { return Reply::Changed };
        match change {
            SlotChange::Enable => (account.mode, account.quarantine_ends) = (Mode::Enabled, 0),
            SlotChange::Disable => account.mode = Mode::Disabled,
            SlotChange::Drain => account.mode = Mode::Draining,
            SlotChange::Remove => {
                if mode == Mode::Disabled {
                    account.hold_ends = Some(account.claim.map_or(account.until, |(_, until)| until));
                }
                account.mode = Mode::Removing;
            }
            SlotChange::Quarantine(time) => {
                account.quarantine_ends = account.quarantine_ends.max(now + time);
                account.trusted = None;
                if !leased {
                    account.nonce = unsettled(account.nonce);
                }
            }
            SlotChange::Break if leased => account.nonce = unsettled(account.nonce),
            SlotChange::Break => {}
        }
        if !leased || change == SlotChange::Break {
            // An administrator who lets a slot go makes no doubt, unless by force.
            let lets_go = matches!(change, SlotChange::Enable | SlotChange::Remove)
                || change == SlotChange::Break && !leased;
            self.place(now, id, if lets_go && state != State::Out { 0 } else { now });
        }
        Reply::Changed
    }

    fn inspect(&mut self, ids: &[SlotId]) -> Reply {
        let view = |account: &Account| SlotView {
            slot: account.id.clone(),
            mode: account.mode,
            state: account.state,
            weight: account.weight,
            fence: account.fence,
            holder: account.holder,
            since: account.since,
            until: account.until,
            nonce: account.nonce,
        };
        let in_doubt = self
            .accounts
            .iter()
            .filter(|account| account.state == State::Ready && account.in_doubt())
            .count();
        Reply::Inspected {
            slots: ids.iter().filter_map(|id| self.account(id).map(|account| view(account))).collect(),
            total: self.accounts.len() as u32,
            ready: self.in_state(State::Ready),
            in_doubt: in_doubt as u32,
            due: self.accounts.iter().filter(|account| account.is_timed()).count() as u32,
            quiet_until: self.quiet_until(),
            loss: self.lost_at.unwrap_or(0) as u32,
        }
    }
}
