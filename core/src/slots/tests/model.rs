//! The rules of a pool once more, as plainly as they can be said: lists, and scans of them.
//!
//! Written from the rules and from what the requests' documentation promises, not from the machine. Where
//! the rules leave a choice free (a random slot, how much larger a fence is), the model checks that the
//! machine's choice is allowed and follows it.

use super::account::{Account, after, lowest, unsettled};
use super::queue::Queue;
use crate::Micros;
use crate::id::SlotId;
use crate::nonce::NonceRecord;
use crate::slots::{
    Answer, Calls, Choice, Claim, Envelope, Grant, INTEREST, LANE_GRACE, Lane, LeaseRef, Loss, Mode, Moment,
    OFFER, Performed, Refusal, Reply, Request, SWEEP, SlotChange, SlotSpec, SlotView, State, Strategy,
};

/// A pool by the rules.
#[derive(Clone, Default)]
pub struct Model {
    defined: bool,
    /// The latest store time, and how far it is ahead of the server's clock.
    latest: Micros,
    ahead: Micros,
    incarnation: String,
    /// How often memory was lost, and when for the last time.
    losses: u64,
    lost_at: Option<Micros>,
    longest: Micros,
    doubt_rest: Micros,
    top: u64,
    interest_ends: Micros,
    accounts: Vec<Account>,
    arrivals: u64,
    became_ready: u32,
    /// Fences of leases that were claimed in this turn.
    claimed: Vec<u64>,
    queue: Queue,
    kept: Vec<(Lane, Performed, Micros)>,
}

impl Model {
    /// What the answer must be. `given` is what the machine said; only where a choice is free is it followed.
    ///
    /// `offered` tells what the machine chose to offer to a ticket.
    pub fn answer(
        &mut self,
        moment: Moment<'_>,
        envelope: &Envelope,
        given: &Answer,
        offered: impl Fn(u128) -> Vec<SlotId>,
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
        if envelope.not_after.is_some_and(|last| last < now) {
            return Answer::Stale { now };
        }
        let defines = matches!(envelope.requests.first(), Some(Request::Define { .. }));
        if !self.defined && !defines {
            let replies = vec![Reply::Undefined; envelope.requests.len()];
            return Answer::Performed(Performed { now, top: 0, calls: Calls::default(), replies });
        }
        (self.latest, self.ahead) = (now, now - moment.wall);
        self.became_ready = 0;
        self.claimed.clear();
        if self.defined {
            if self.incarnation != moment.incarnation || envelope.seen > self.top || envelope.jumped {
                self.lost(now, moment, envelope.seen);
            }
            self.put_back(now);
        }
        let mut replies = Vec::new();
        for (at, request) in envelope.requests.iter().enumerate() {
            let hint = match given {
                Answer::Performed(performed) => performed.replies.get(at),
                Answer::Stale { .. } => None,
            };
            replies.push(self.reply(now, moment, envelope.seen, request, hint));
        }
        let tickets = self.serve(now, offered);
        let ready = self.in_state(State::Ready);
        let freed = if self.interest_ends > now { self.became_ready.min(ready) } else { 0 };
        let tickets = in_order_of(given, tickets);
        let performed = Performed {
            now,
            top: self.top,
            calls: Calls { freed, tickets, claimed: self.claimed.clone() },
            replies,
        };
        if let Some(lane) = envelope.lane {
            let until = envelope.not_after.unwrap_or(now) + LANE_GRACE;
            self.kept.push((lane, performed.clone(), until));
        }
        Answer::Performed(performed)
    }

    fn lost(&mut self, now: Micros, moment: Moment<'_>, seen: u64) {
        self.losses += 1;
        self.lost_at = Some(now);
        self.incarnation = moment.incarnation.to_owned();
        self.top = self.top.max(seen);
        self.queue.clear();
    }

    /// Offers what is there to those whose turn it is; they are called.
    fn serve(&mut self, now: Micros, offered: impl Fn(u128) -> Vec<SlotId>) -> Vec<u128> {
        let mut called = Vec::new();
        loop {
            let is_free = |name: &SlotId| {
                let account = self.accounts.iter().find(|account| account.id == *name);
                account.is_none_or(|account| account.state == State::Ready)
            };
            let ready = self.in_state(State::Ready) as usize;
            if self.queue.servable(is_free).is_none() && ready > 0 {
                self.queue.pass_over(self.obtainable());
            }
            let any = || self.queue.first().filter(|first| (1..=ready).contains(&first.count));
            let Some(waiter) = self.queue.servable(is_free).or_else(any) else { return called };
            let (holder, names, count) = (waiter.holder, waiter.names.clone(), waiter.count);
            let slots = if names.is_empty() { offered(holder) } else { names };
            assert!(count == 0 || slots.len() == count, "{slots:?} is offered for {count}");
            for id in &slots {
                match self.account(id) {
                    None => self.accounts.push(Account::new(id, 1, Mode::Passing)),
                    Some(account) => {
                        assert!(account.state == State::Ready, "{id} is not there to be offered")
                    }
                }
                if let Some(account) = self.account(id) {
                    (account.state, account.holder, account.until) = (State::Offered, holder, now + OFFER);
                }
            }
            if let Some(waiter) = self.queue.waiters.iter_mut().find(|waiter| waiter.holder == holder) {
                waiter.offered = slots;
            }
            called.push(holder);
        }
    }

    /// What is offered to a ticket, which is gone with it; nothing if a part of it is offered no more.
    fn accept(&mut self, now: Micros, holder: u128) -> Option<Vec<SlotId>> {
        self.queue.waiters.iter().find(|waiter| waiter.holder == holder && !waiter.offered.is_empty())?;
        let offered = self.queue.leave(holder)?.offered;
        let stands = |id: &SlotId| self.is_offered(id, holder, now);
        if offered.iter().all(stands) {
            return Some(offered);
        }
        self.take_back(holder, offered);
        None
    }

    fn is_offered(&self, id: &SlotId, holder: u128, now: Micros) -> bool {
        let kept = |account: &Account| {
            account.state == State::Offered && account.holder == holder && account.until > now
        };
        self.accounts.iter().any(|account| account.id == *id && kept(account))
    }

    fn take_back(&mut self, holder: u128, offered: Vec<SlotId>) {
        for id in offered {
            if self.is_offered(&id, holder, 0) {
                self.rested(&id);
            }
        }
    }

    /// How many slots there are that are or will be ready.
    fn obtainable(&self) -> usize {
        self.accounts.iter().filter(|account| account.is_timed() || account.state == State::Ready).count()
    }

    /// A slot is offered no more, and so is nothing else of its offer.
    fn break_offer(&mut self, id: &SlotId) {
        let Some(account) = self.account(id).filter(|account| account.state == State::Offered) else {
            return;
        };
        let holder = account.holder;
        let others: Vec<SlotId> =
            self.end_offer(holder, id).into_iter().filter(|other| other != id).collect();
        self.take_back(holder, others);
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

    fn in_state(&self, state: State) -> u32 {
        self.accounts.iter().filter(|account| account.state == state).count() as u32
    }

    fn account(&mut self, id: &SlotId) -> Option<&mut Account> {
        self.accounts.iter_mut().find(|account| account.id == *id)
    }

    fn quiet_until(&self) -> Micros {
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
                    let holder = account.holder;
                    self.end_offer(holder, &id);
                }
                self.rested(&id);
            }
        }
    }

    /// Ready again, or gone if it was there for its lease only.
    fn rested(&mut self, id: &SlotId) {
        if self.account(id).is_some_and(|account| account.mode == Mode::Passing) {
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
        match account.mode {
            Mode::Removing => self.accounts.retain(|account| account.id != *id),
            Mode::Draining | Mode::Disabled => (account.mode, account.state) = (Mode::Disabled, State::Out),
            Mode::Enabled | Mode::Passing => {
                if account.in_doubt() {
                    account.cooldown_ends = account.cooldown_ends.max(ended + doubt_rest);
                }
                let rested = account.cooldown_ends.max(account.quarantine_ends);
                if rested > now {
                    (account.state, account.until) = (State::Cooling, rested);
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
                if let Some(waiter) = self.queue.leave(*holder) {
                    self.take_back(*holder, waiter.offered);
                }
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
                    self.place(now, &lease.slot, now);
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

    fn claim(&mut self, now: Micros, claim: &Claim, hint: Option<&Reply>) -> Reply {
        self.longest = self.longest.max(claim.ttl);
        let mut accepted = false;
        let chosen = if self.quiet_until() > now {
            Err(Reply::Refused { why: Refusal::Quiet, earliest: Some(self.quiet_until()) })
        } else if let Some(offered) = self.accept(now, claim.holder) {
            accepted = true;
            Ok(in_order_of_grants(hint, offered))
        } else {
            if matches!(claim.choice, Choice::Any { .. }) {
                self.queue.pass_over(self.obtainable());
            }
            self.chosen(now, claim, hint)
        };
        let slots = match chosen {
            Ok(slots) => slots,
            Err(refusal) => {
                let exhausted = matches!(refusal, Reply::Refused { why: Refusal::Exhausted, .. });
                match &claim.choice {
                    _ if !claim.wait => {}
                    Choice::Any { least, .. } if exhausted && *least as usize > self.obtainable() => {
                        self.queue.leave(claim.holder);
                        self.interest_ends = now + INTEREST;
                    }
                    Choice::Any { .. } | Choice::Named { .. } if exhausted => {
                        self.queue.enter(now, claim);
                        if self.steal(now, claim.holder) {
                            let earliest = self.earliest(&claim.choice);
                            return Reply::Refused { why: Refusal::Claimed, earliest };
                        }
                    }
                    _ => self.interest_ends = now + INTEREST,
                }
                return refusal;
            }
        };
        self.queue.leave(claim.holder);
        for id in &slots {
            if self.account(id).is_none() {
                self.accounts.push(Account::new(id, 1, Mode::Passing));
            }
        }
        let grant = |(at, id): (usize, &SlotId)| self.grant(now, id, claim, at, hint);
        let grants = slots.iter().enumerate().filter_map(grant).collect();
        if accepted {
            for line in slots.iter().map(Some).chain([None]) {
                let first = self.queue.first_of(line).map(|waiter| waiter.holder);
                first.map(|holder| self.steal(now, holder));
            }
        }
        Reply::Granted(grants)
    }

    /// The ticket that claims a leased slot, and its priority, as long as it waits.
    fn claimant(&self, id: &SlotId, now: Micros) -> Option<(u128, i16)> {
        let account = self.accounts.iter().find(|account| account.id == *id)?;
        let (ticket, _) = account.claim?;
        self.queue.standing().find(|waiter| waiter.holder == ticket && waiter.lapses > now)?;
        self.queue.standing().find(|waiter| waiter.holder == ticket).map(|waiter| (ticket, waiter.priority))
    }

    /// Who waits takes from lower holders what it wants, if it can have all of it; whether it claims something.
    fn steal(&mut self, now: Micros, ticket: u128) -> bool {
        let Some(waiter) = self.queue.standing().find(|waiter| waiter.holder == ticket).cloned() else {
            return false;
        };
        let Some(patience) = waiter.steal else { return false };
        let rival = |account: &Account| self.claimant(&account.id, now).filter(|(other, _)| *other != ticket);
        let own = |account: &Account| self.claimant(&account.id, now).is_some_and(|(own, _)| own == ticket);
        let yields = |account: &Account| {
            let below = rival(account).is_none_or(|(_, rank)| rank < waiter.priority);
            account.state == State::Leased && account.priority < waiter.priority && below
        };
        let find = |name: &SlotId| self.accounts.iter().find(|account| account.id == *name);
        let chosen: Vec<SlotId> = if waiter.names.is_empty() {
            let mut timed: Vec<_> = self.accounts.iter().filter(|account| account.is_timed()).collect();
            timed.sort_by_key(|account| (account.until, &account.id));
            timed.truncate(SWEEP);
            timed.retain(|account| account.mode == Mode::Enabled && yields(account));
            timed.sort_by_key(|account| {
                (!own(account), account.priority, rival(account).is_some(), account.until, &account.id)
            });
            let wanting = waiter.count.saturating_sub(self.in_state(State::Ready) as usize);
            if timed.len() < wanting {
                return false;
            }
            timed.into_iter().take(wanting).map(|account| account.id.clone()).collect()
        } else {
            let taken = waiter.names.iter().filter_map(find).filter(|account| account.state != State::Ready);
            let taken: Vec<_> = taken.collect();
            if !taken.iter().all(|account| yields(account)) {
                return false;
            }
            taken.into_iter().map(|account| account.id.clone()).collect()
        };
        let new: Vec<_> = chosen.iter().filter(|id| find(id).is_some_and(|account| !own(account))).collect();
        for id in new.into_iter().cloned().collect::<Vec<_>>() {
            let Some(account) = self.account(&id) else { continue };
            account.revert();
            account.claim = Some((ticket, account.until));
            account.until = account.until.min(now + patience);
            let fence = account.fence;
            self.claimed.push(fence);
        }
        !chosen.is_empty()
    }

    /// When the first of what a claim asks for comes due.
    fn earliest(&self, choice: &Choice) -> Option<Micros> {
        let wanted = |account: &&Account| match choice {
            Choice::Any { .. } => true,
            Choice::These { slots, .. } | Choice::Named { slots } => slots.contains(&account.id),
        };
        let timed = self.accounts.iter().filter(|account| account.is_timed());
        timed.filter(wanted).map(|account| account.until).min()
    }

    fn chosen(&self, now: Micros, claim: &Claim, hint: Option<&Reply>) -> Result<Vec<SlotId>, Reply> {
        let refused = |why, earliest| Err(Reply::Refused { why, earliest });
        let timed = |account: &&Account| account.is_timed();
        let ready = |account: &&Account| account.state == State::Ready;
        match &claim.choice {
            Choice::Any { strategy, least, most } => {
                let mut left: Vec<&Account> = self.accounts.iter().filter(ready).collect();
                left.sort_by_key(|account| account.arrival);
                if left.len() < *least as usize || self.queue.overtakes(now, claim, &[]) {
                    let why = if self.accounts.is_empty() { Refusal::NoSlot } else { Refusal::Exhausted };
                    return refused(
                        why,
                        self.accounts.iter().filter(timed).map(|account| account.until).min(),
                    );
                }
                let mut chosen = Vec::new();
                for at in 0..left.len().min(*most as usize) {
                    let certain: Vec<_> =
                        left.iter().filter(|account| !account.in_doubt()).copied().collect();
                    let named = grant_of(hint, at).map(|grant| &grant.slot);
                    let free = *strategy != Strategy::LeastRecent;
                    let pick = match certain.first() {
                        Some(_) if free => certain.iter().find(|account| Some(&account.id) == named).copied(),
                        Some(oldest) => Some(*oldest),
                        None => left.first().copied(),
                    };
                    let Some(pick) = pick.or(left.first().copied()) else { break };
                    chosen.push(pick.id.clone());
                    left.retain(|account| account.id != pick.id);
                }
                Ok(chosen)
            }
            Choice::These { slots, least, most } => {
                let mut chosen: Vec<SlotId> = Vec::new();
                let mut ends = Vec::new();
                for id in slots {
                    let Some(account) = self.accounts.iter().find(|account| account.id == *id) else {
                        return refused(Refusal::NoSlot, None);
                    };
                    if ready(&account) && !chosen.contains(id) {
                        chosen.push(id.clone());
                    }
                    if timed(&account) {
                        ends.push(account.until);
                    }
                }
                chosen.truncate(*most as usize);
                if chosen.len() < *least as usize {
                    return refused(Refusal::Exhausted, ends.into_iter().min());
                }
                Ok(chosen)
            }
            Choice::Named { slots } => {
                let there: Vec<&Account> =
                    self.accounts.iter().filter(|account| slots.contains(&account.id)).collect();
                if !there.iter().all(ready) || self.queue.overtakes(now, claim, slots) {
                    let ends = there.into_iter().filter(timed).map(|account| account.until).min();
                    return refused(Refusal::Exhausted, ends);
                }
                let mut chosen: Vec<SlotId> = Vec::new();
                for id in slots {
                    if !chosen.contains(id) {
                        chosen.push(id.clone());
                    }
                }
                Ok(chosen)
            }
        }
    }

    fn grant(
        &mut self,
        now: Micros,
        id: &SlotId,
        claim: &Claim,
        at: usize,
        hint: Option<&Reply>,
    ) -> Option<Grant> {
        let given = grant_of(hint, at)?;
        // How much larger is the machine's to choose.
        let fence = if given.fence > self.top && given.fence >= now { given.fence } else { 0 };
        self.top = fence;
        let losses = self.losses;
        let account = self.account(id)?;
        if account.trusted != Some(losses) {
            account.nonce = unsettled(account.nonce);
            account.trusted = Some(losses);
        }
        account.state = State::Leased;
        (account.fence, account.holder, account.since) = (fence, claim.holder, now);
        (account.priority, account.claim) = (claim.priority, None);
        account.hold_ends = (claim.max_hold > 0).then_some(now + claim.max_hold);
        account.until = (now + claim.ttl).min(account.hold_ends.unwrap_or(Micros::MAX));
        Some(Grant {
            slot: id.clone(),
            fence,
            deadline: account.until,
            nonce: account.nonce,
            place: given.place,
        })
    }

    fn with_lease(
        &mut self,
        now: Micros,
        lease: &LeaseRef,
        act: impl FnOnce(&mut Account) -> Reply,
    ) -> Reply {
        let Some(account) = self.account(&lease.slot) else { return Reply::Lost(Loss::Gone) };
        let loss = if account.fence > lease.fence {
            Loss::Taken
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
            self.top = seen;
            self.lost_at = match seen {
                0 => Some(moment.up_since).filter(|since| since + longest + doubt_rest > now),
                _ => Some(now),
            };
            self.losses = 1;
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
        self.break_offer(id);
        let Some(account) = self.account(id) else { return Reply::NoSlot };
        let leased = account.state == State::Leased;
        match change {
            SlotChange::Enable => (account.mode, account.quarantine_ends) = (Mode::Enabled, 0),
            SlotChange::Disable => account.mode = Mode::Disabled,
            SlotChange::Drain => account.mode = Mode::Draining,
            SlotChange::Remove => account.mode = Mode::Removing,
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
            self.place(now, id, now);
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
        }
    }
}

/// The same tickets, in the order in which the machine happened to call them.
fn in_order_of(given: &Answer, mut tickets: Vec<u128>) -> Vec<u128> {
    if let Answer::Performed(performed) = given {
        let at = |ticket: &u128| performed.calls.tickets.iter().position(|called| called == ticket);
        tickets.sort_by_key(at);
    }
    tickets
}

fn in_order_of_grants(hint: Option<&Reply>, mut slots: Vec<SlotId>) -> Vec<SlotId> {
    let granted =
        |slot: &SlotId| (0..).map_while(|at| grant_of(hint, at)).position(|grant| grant.slot == *slot);
    slots.sort_by_key(granted);
    slots
}

fn grant_of(hint: Option<&Reply>, at: usize) -> Option<&Grant> {
    match hint {
        Some(Reply::Granted(grants)) => grants.get(at),
        _ => None,
    }
}
