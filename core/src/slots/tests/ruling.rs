//! Who is granted what, refused or robbed, by the rules. See [`super::model`].

use super::account::{Account, unsettled};
use super::model::Model;
use crate::Micros;
use crate::id::SlotId;
use crate::slots::{Choice, Claim, Grant, INTEREST, MANY, Mode, Refusal, Reply, SWEEP, State, Strategy};

impl Model {
    pub(super) fn claim(&mut self, now: Micros, claim: &Claim, hint: Option<&Reply>) -> Reply {
        self.longest = self.longest.max(claim.ttl);
        let mut accepted = false;
        let chosen = if self.quiet_until() > now {
            Err(Reply::Refused { why: Refusal::Quiet, earliest: Some(self.quiet_until()) })
        } else if let Some(offered) = self.offered_by_now(now, claim) {
            accepted = true;
            Ok(in_order_of_grants(hint, offered))
        } else {
            let there = |id: &SlotId| self.accounts.iter().any(|account| account.id == *id);
            let looks_at_the_line = match &claim.choice {
                Choice::Any { .. } => true,
                Choice::Among { slots, .. } => slots.iter().all(there),
                _ => false,
            };
            if looks_at_the_line {
                self.queue.pass_over(self.obtainable());
            }
            if let Choice::Any { least, .. } = claim.choice {
                self.serve_those_before(now, claim, least);
            }
            self.chosen(now, claim, hint)
        };
        let slots = match chosen {
            Ok(slots) => slots,
            Err(refusal) => {
                let exhausted = matches!(refusal, Reply::Refused { why: Refusal::Exhausted, .. });
                match &claim.choice {
                    _ if !claim.wait => {}
                    choice if exhausted && self.is_beyond(choice) => {
                        self.withdraw(now, claim.holder);
                        self.interest_ends = now + INTEREST;
                        return Reply::Refused { why: Refusal::Beyond, earliest: None };
                    }
                    Choice::Any { .. } | Choice::Among { .. } | Choice::Named { .. } if exhausted => {
                        if matches!(&claim.choice, Choice::Among { slots, .. } if slots.len() >= MANY) {
                            self.interest_ends = now + INTEREST;
                        }
                        self.queue.enter(now, claim);
                        // What it claims ends early, perhaps, and what it lets go of as before.
                        let claims = self.steal(now, claim.holder);
                        let why = if claims { Refusal::Claimed } else { Refusal::Exhausted };
                        return Reply::Refused { why, earliest: self.earliest(&claim.choice) };
                    }
                    _ => self.interest_ends = now + INTEREST,
                }
                return refusal;
            }
        };
        let left = self.queue.leave(claim.holder);
        let was_kept = slots.iter().any(|id| self.is_offered(id, claim.holder, now));
        for id in &slots {
            if self.account(id).is_none() {
                self.accounts.push(Account::new(id, 1, Mode::Passing));
            }
        }
        let passed_over = match &claim.choice {
            Choice::Free { slots: names, most, .. } if !accepted && slots.len() < *most as usize => {
                names.iter().filter(|&name| !slots.contains(name)).cloned().collect()
            }
            _ => Vec::new(),
        };
        for id in &slots {
            if let Some(account) = self.account(id).filter(|account| account.state == State::Leased) {
                account.nonce = unsettled(account.nonce);
            }
        }
        let grant = |(at, id): (usize, &SlotId)| self.grant(now, id, claim, at, hint);
        let grants: Vec<_> = slots.iter().enumerate().filter_map(grant).collect();
        // Whoever was behind it may claim what it does not wait for any more, or what was nobody's until now.
        match left.filter(|_| !matches!(claim.choice, Choice::Free { .. })) {
            Some(waiter) if waiter.steal.is_some() || waiter.names.len() > 1 => {
                self.steal_for_first(now, &waiter.names);
            }
            _ if was_kept => self.steal_for_first(now, &slots),
            _ => {}
        }
        if !passed_over.is_empty() {
            let earliest = self.earliest(&Choice::Named { slots: passed_over });
            return Reply::Partly { grants, earliest };
        }
        Reply::Granted(grants)
    }

    /// Whether it wants more than one slot, and more than can come back.
    fn is_beyond(&self, choice: &Choice) -> bool {
        match choice {
            Choice::Any { least, .. } => *least as usize > self.obtainable(),
            Choice::Among { slots, count } => *count > 1 && *count as usize > self.obtainable_of(slots),
            _ => false,
        }
    }

    /// What is offered to a claim. If it stands in no line of names, those are served first who wait for some by their names.
    fn offered_by_now(&mut self, now: Micros, claim: &Claim) -> Option<Vec<SlotId>> {
        let named = self.queue.standing().any(|waiter| !waiter.names.is_empty());
        if named && matches!(claim.choice, Choice::Any { .. }) {
            self.serve_names(now);
        }
        self.accept(now, claim.holder)
    }

    /// The ticket that claims a leased slot, and its priority, as long as it waits.
    pub(super) fn claimant(&self, id: &SlotId, now: Micros) -> Option<(u128, i16)> {
        let account = self.accounts.iter().find(|account| account.id == *id)?;
        let (ticket, _) = account.claim?;
        let waiter = self.queue.standing().find(|waiter| waiter.holder == ticket && waiter.lapses > now)?;
        // Unless it wants all of its names: one that will be ready when it is given back.
        let can_have = account.mode == Mode::Enabled || waiter.count == 0;
        can_have.then_some((ticket, waiter.priority))
    }

    /// The first who wait for one of these names, or for any slot, and steal.
    pub(super) fn steal_for_first(&mut self, now: Micros, names: &[SlotId]) {
        for line in names.iter().map(Some).chain([None]) {
            let first = self.queue.first_of(line).map(|waiter| waiter.holder);
            first.map(|holder| self.steal(now, holder));
        }
    }

    /// Who waits takes from lower holders what it wants, if it can have all of it; whether it claims something. If it
    /// can only wait until others let it, it claims nothing at all; what rests or is offered is no reason for that. Those
    /// whose place it took look again what they can have.
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
        let mut needless: Vec<SlotId> = Vec::new();
        let chosen: Vec<SlotId> = if waiter.count > 0 {
            let (mut timed, there): (Vec<&Account>, usize) = if waiter.names.is_empty() {
                let mut timed: Vec<_> = self.accounts.iter().filter(|account| account.is_timed()).collect();
                timed.sort_by_key(|account| (account.until, &account.id));
                timed.truncate(SWEEP);
                (timed, self.in_state(State::Ready) as usize)
            } else {
                let kept = self.kept_for(now, ticket, &waiter.names);
                let is_next = |name: &SlotId| {
                    self.queue.first_of(Some(name)).is_some_and(|first| first.holder == ticket)
                };
                let has = |account: &&Account| {
                    account.state == State::Ready && is_next(&account.id) || kept.contains(&account.id)
                };
                let (there, taken): (Vec<_>, Vec<_>) = waiter.names.iter().filter_map(find).partition(has);
                (taken, there.len())
            };
            let ways: Vec<SlotId> = timed.iter().map(|account| account.id.clone()).collect();
            timed.retain(|account| account.mode == Mode::Enabled && account.is_timed());
            let comes = timed.iter().filter(|account| account.state != State::Leased).count();
            timed.retain(|account| yields(account));
            timed.sort_by_key(|account| (!own(account), account.priority, rival(account).is_some()));
            let wanting = waiter.count.saturating_sub(there);
            if timed.len() < wanting {
                return timed.len() + comes < wanting && self.claims_none_of(&ways, ticket);
            }
            let chosen: Vec<SlotId> =
                timed.into_iter().take(wanting).map(|account| account.id.clone()).collect();
            // What others come before it for may still be wanting.
            if !self.queue.anybody_before((waiter.turn, waiter.holder), &[]) {
                needless.extend(ways.into_iter().filter(|id| !chosen.contains(id)));
            }
            chosen
        } else {
            let is_free = |name: &SlotId| find(name).is_none_or(|account| account.state == State::Ready);
            let (free, taken): (Vec<_>, Vec<_>) = waiter.names.iter().partition(|name| is_free(name));
            // What is free is for those who come first.
            if free
                .iter()
                .any(|name| self.queue.first_of(Some(name)).is_some_and(|first| first.holder != ticket))
            {
                return self.claims_none_of(&waiter.names, ticket);
            }
            // What is kept for it, from when it wanted something else, it has.
            let kept = self.kept_for(now, ticket, &waiter.names);
            let others = taken.into_iter().filter(|name| !kept.contains(name));
            let mut taken: Vec<_> = others.filter_map(find).collect();
            let comes = |account: &Account| account.state != State::Leased && account.is_timed();
            if !taken.iter().all(|account| yields(account) || comes(account)) {
                return self.claims_none_of(&waiter.names, ticket);
            }
            if taken.iter().any(|account| comes(account)) {
                return false;
            }
            taken.sort_by_key(|account| (!own(account), account.priority, rival(account).is_some()));
            taken.into_iter().map(|account| account.id.clone()).collect()
        };
        let new: Vec<_> = chosen.iter().filter(|id| find(id).is_some_and(|account| !own(account))).collect();
        let mut replaced: Vec<u128> = Vec::new();
        for (other, _) in new.iter().filter_map(|id| find(id)?.claim) {
            if !replaced.contains(&other) {
                replaced.push(other);
            }
        }
        let new: Vec<SlotId> = new.into_iter().cloned().collect();
        self.claims_none_of(&needless, ticket);
        for id in new {
            let Some(account) = self.account(&id) else { continue };
            account.revert();
            account.claim = Some((ticket, account.until));
            account.until = account.until.min(now + patience);
            let fence = account.fence;
            self.claimed.push(fence);
        }
        for other in replaced {
            self.steal(now, other);
        }
        !chosen.is_empty()
    }

    fn claims_none_of(&mut self, ways: &[SlotId], ticket: u128) -> bool {
        let by_it = |account: &&mut Account| {
            let its = account.claim.is_some_and(|(by, _)| by == ticket);
            its && account.state == State::Leased && ways.contains(&account.id)
        };
        self.accounts.iter_mut().filter(by_it).for_each(Account::revert);
        false
    }

    /// When the first of what a claim asks for comes due.
    fn earliest(&self, choice: &Choice) -> Option<Micros> {
        let wanted = |account: &&Account| match choice {
            Choice::Any { .. } => true,
            Choice::Among { slots, .. } | Choice::Named { slots } | Choice::Free { slots, .. } => {
                slots.contains(&account.id)
            }
        };
        let timed = self.accounts.iter().filter(|account| account.is_timed());
        timed.filter(wanted).map(|account| account.until).min()
    }

    /// Whether a claim of what is free finds this name so: nobody has it or comes before in line, or the claim's own
    /// holder has it, and no thief waits for it.
    fn can_have(&mut self, now: Micros, claim: &Claim, id: &SlotId, asked: Micros) -> bool {
        let claimed = self.claimant(id, now).is_some();
        let overtakes = self.queue.overtakes(now, claim, std::slice::from_ref(id));
        let Some(account) = self.account(id) else { return !overtakes };
        match account.state {
            State::Ready => !overtakes,
            State::Leased if matches!(account.mode, Mode::Enabled | Mode::Passing) => {
                let own = account.holder == claim.holder && account.since <= asked;
                if own && !claimed {
                    account.revert();
                }
                own && !claimed
            }
            _ => false,
        }
    }

    fn chosen(&mut self, now: Micros, claim: &Claim, hint: Option<&Reply>) -> Result<Vec<SlotId>, Reply> {
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
            Choice::Among { slots, count } => {
                let found = |id: &SlotId| self.accounts.iter().find(|account| account.id == *id);
                let Some(found) = slots.iter().map(found).collect::<Option<Vec<_>>>() else {
                    self.withdraw(now, claim.holder);
                    return refused(Refusal::NoSlot, None);
                };
                let behind = self.queue.overtakes(now, claim, &[]);
                let can = |account: &&&Account| {
                    let first = !self.queue.overtakes(now, claim, std::slice::from_ref(&account.id));
                    ready(account) && first && !behind
                };
                let ends = found.iter().copied().filter(timed).map(|account| account.until).min();
                let count = *count as usize;
                let mut kept = self.kept_for(now, claim.holder, slots);
                kept.truncate(count);
                let mut those: Vec<_> = found.iter().filter(can).collect();
                those.sort_by_key(|account| account.in_doubt());
                let mut chosen = if behind { Vec::new() } else { kept };
                for account in those {
                    if chosen.len() < count && !chosen.contains(&account.id) {
                        chosen.push(account.id.clone());
                    }
                }
                if chosen.len() < count {
                    return refused(Refusal::Exhausted, ends);
                }
                Ok(chosen)
            }
            Choice::Free { slots, least, most, asked } => {
                let mut chosen: Vec<SlotId> = Vec::new();
                for id in slots {
                    if chosen.len() < *most as usize
                        && !chosen.contains(id)
                        && self.can_have(now, claim, id, *asked)
                    {
                        chosen.push(id.clone());
                    }
                }
                if chosen.len() < *least as usize {
                    return refused(Refusal::Exhausted, self.earliest(&claim.choice));
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
}

fn in_order_of_grants(hint: Option<&Reply>, mut slots: Vec<SlotId>) -> Vec<SlotId> {
    let granted =
        |slot: &SlotId| (0..).map_while(|at| grant_of(hint, at)).position(|grant| grant.slot == *slot);
    slots.sort_by_key(granted);
    slots
}

fn grant_of(hint: Option<&Reply>, at: usize) -> Option<&Grant> {
    match hint {
        Some(Reply::Granted(grants) | Reply::Partly { grants, .. }) => grants.get(at),
        _ => None,
    }
}
