//! Claiming slots.

use super::draw::Draw;
use super::line::{Ticket, distinct};
use super::pool::{DOUBT, Pool};
use super::slot::Slot;
use super::{Choice, Claim, Grant, INTEREST, MANY, MAX_SLOTS, Refusal, Reply, State, Strategy};
use crate::Micros;
use crate::id::SlotId;
use crate::nonce::NonceRecord;

/// How often a weighted draw is repeated; each one fails with a chance below a half.
const DRAWS: u32 = 32;

impl Pool {
    pub(super) fn claim(&mut self, now: Micros, draw: &mut Draw, claim: &Claim) -> Reply {
        self.quiet_time.longest = self.quiet_time.longest.max(claim.ttl);
        let quiet_until = self.quiet_until();
        if quiet_until > now {
            return self.refuse(now, claim, Refusal::Quiet);
        }
        // Mostly nobody waits, and then the line need not be asked.
        let waiting = !self.line.is_empty();
        if self.line.is_named() && matches!(claim.choice, Choice::Any { .. }) {
            // What came free in this turn may be wanted by its name.
            self.serve_names(now);
        }
        if waiting && let Some(grants) = self.accept(now, claim) {
            return Reply::Granted(grants);
        }
        let places = match &claim.choice {
            &Choice::Any { strategy, least, most } => {
                if waiting {
                    self.pass_over_the_impossible(now);
                }
                // Who came before it is served first: there may be enough for both.
                let behind = loop {
                    let behind = waiting && self.line.precedes(None, now, claim);
                    if !behind || self.count_ready() < least || !self.serve_first(now, draw) {
                        break behind;
                    }
                    self.serve_names(now);
                };
                let ready = self.count_ready();
                if behind || ready < least {
                    let why = if self.total() == 0 { Refusal::NoSlot } else { Refusal::Exhausted };
                    return self.refuse(now, claim, why);
                }
                let mut grants = Vec::with_capacity(most.min(ready) as usize);
                for _ in 0..most.min(ready) {
                    let Some(place) = self.choose(draw, strategy) else { break };
                    grants.extend(self.grant(now, place, claim));
                }
                if waiting {
                    self.depart(now, claim.holder);
                }
                return Reply::Granted(grants);
            }
            Choice::Among { slots, count } => match self.among(now, claim, slots, *count) {
                Ok(places) => places,
                Err(why) => return self.refuse(now, claim, why),
            },
            Choice::Named { slots } => match self.places_of(now, claim, slots) {
                Some(places) => places,
                None => return self.refuse(now, claim, Refusal::Exhausted),
            },
            #[cfg(feature = "tokens")]
            Choice::Free { slots, least, most, asked } => {
                return self.claim_free(now, claim, slots, (*least, *most), *asked);
            }
        };
        Reply::Granted(self.grant_those(now, places, claim))
    }

    /// Grants these; what it waited for, or was kept until now, may be claimed by those who wait behind it and steal.
    pub(super) fn grant_those(&mut self, now: Micros, places: Vec<u32>, claim: &Claim) -> Vec<Grant> {
        let was_kept = places.iter().any(|&place| self.is_offered(place, claim.holder, now));
        let grants: Vec<_> = places.into_iter().filter_map(|place| self.grant(now, place, claim)).collect();
        if !self.depart(now, claim.holder) && was_kept {
            self.steal_for_first(now, &mut grants.iter().map(|grant| &grant.slot));
        }
        grants
    }

    /// Who was granted what it asks for leaves its lines. Whether those behind it have tried to steal then.
    fn depart(&mut self, now: Micros, holder: u128) -> bool {
        let left = self.line.leave(holder).filter(Ticket::holds_off);
        if let Some(ticket) = &left {
            self.steal_for_first(now, &mut ticket.names.iter());
        }
        left.is_some()
    }

    pub(super) fn refuse(&mut self, now: Micros, claim: &Claim, mut why: Refusal) -> Reply {
        if claim.wait {
            match (&claim.choice, why) {
                (choice, Refusal::Exhausted) if self.is_beyond(choice) => {
                    self.withdraw(now, claim.holder);
                    self.waiters_until = now + INTEREST;
                    why = Refusal::Beyond;
                }
                (Choice::Any { .. } | Choice::Among { .. } | Choice::Named { .. }, Refusal::Exhausted) => {
                    // Who names very many may want others besides.
                    if matches!(&claim.choice, Choice::Among { slots, .. } if slots.len() >= MANY) {
                        self.waiters_until = now + INTEREST;
                    }
                    self.line.enter(now, claim);
                    if self.steal(now, claim.holder) {
                        why = Refusal::Claimed;
                    }
                }
                _ => self.waiters_until = now + INTEREST,
            }
        }
        let earliest = match (why, &claim.choice) {
            (Refusal::Quiet, _) => Some(self.quiet_until()),
            (Refusal::NoSlot | Refusal::Beyond, _) => None,
            (_, Choice::Any { .. }) => self.due.next(),
            (_, Choice::Among { slots, .. } | Choice::Named { slots }) => self.first_due(slots),
            #[cfg(feature = "tokens")]
            (_, Choice::Free { slots, .. }) => self.first_due(slots),
        };
        Reply::Refused { why, earliest }
    }

    /// Whether it wants more slots than can come back without an administrator. One alone is waited for whatever is done to it.
    fn is_beyond(&self, choice: &Choice) -> bool {
        match choice {
            Choice::Any { least, .. } => *least > self.obtainable(),
            Choice::Among { slots, count } => *count > 1 && *count > self.obtainable_of(slots),
            _ => false,
        }
    }

    /// The ready ones among `slots`, in the order given, and those in doubt after the others; one that is named twice counts
    /// once. And whether all of them are there.
    pub(super) fn available(&self, slots: &[SlotId]) -> (Vec<u32>, bool) {
        let (mut places, mut whole) = (Vec::new(), true);
        for doubtful in [false, true] {
            let fits = |slot: &Slot| slot.state == State::Ready && (slot.queue() == DOUBT) == doubtful;
            whole = self.add_those(&mut places, slots, u32::MAX, &fits);
        }
        (places, whole)
    }

    /// Adds the places of those of `slots` that fit, each once, until they are `most`; whether all of them are there.
    pub(super) fn add_those(
        &self,
        places: &mut Vec<u32>,
        slots: &[SlotId],
        most: u32,
        fits: &dyn Fn(&Slot) -> bool,
    ) -> bool {
        let mut whole = true;
        for id in slots {
            let slot = self.find(id).and_then(|place| Some((place, self.slots.get(place as usize)?)));
            match slot {
                None => whole = false,
                Some((place, slot)) => {
                    if places.len() < most as usize && fits(slot) && !places.contains(&place) {
                        places.push(place);
                    }
                }
            }
        }
        whole
    }

    /// So many of `slots`: those that are kept for the claim, then the ready ones, as [`Self::available`] gives them, for which
    /// nobody stands before it.
    fn among(
        &mut self,
        now: Micros,
        claim: &Claim,
        slots: &[SlotId],
        count: u32,
    ) -> Result<Vec<u32>, Refusal> {
        for name in slots {
            self.find_put_back(now, name);
        }
        let (ready, whole) = self.available(slots);
        if !whole {
            self.withdraw(now, claim.holder);
            return Err(Refusal::NoSlot);
        }
        self.pass_over_the_impossible(now);
        if self.line.precedes(None, now, claim) {
            return Err(Refusal::Exhausted);
        }
        let mut places = self.kept_for(now, claim.holder, slots, count);
        for place in ready {
            if places.len() >= count as usize {
                break;
            }
            let id = self.slots.get(place as usize).map(|slot| slot.id.clone());
            if !self.line.precedes(id.as_ref(), now, claim) {
                places.push(place);
            }
        }
        if places.len() < count as usize { Err(Refusal::Exhausted) } else { Ok(places) }
    }

    /// The places of all of `slots`, those made that are not there; nothing, and none made, if one is not free or
    /// others wait for it.
    fn places_of(&mut self, now: Micros, claim: &Claim, slots: &[SlotId]) -> Option<Vec<u32>> {
        let (mut new, mut free) = (0, true);
        // Each is looked at: one that is overdue is nothing to wait for.
        for name in slots {
            match self.find_put_back(now, name) {
                Some(place) => free &= self.is_ready(place),
                None => new += 1,
            }
            free = free && !self.line.precedes(Some(name), now, claim);
        }
        if self.total() + new > MAX_SLOTS {
            // One that is there twice counts once.
            new = distinct(slots).iter().filter(|name| self.find(name).is_none()).count();
        }
        if !free || self.total() + new > MAX_SLOTS {
            return None;
        }
        let mut places = Vec::with_capacity(slots.len());
        for name in slots {
            let place = self.place_of_name(name);
            if !places.contains(&place) {
                places.push(place);
            }
        }
        Some(places)
    }

    /// The place of a name, which is made if it is not there.
    pub(super) fn place_of_name(&mut self, name: &SlotId) -> u32 {
        self.find(name).unwrap_or_else(|| self.place_of(Slot::passing(name.clone())))
    }

    /// When the first of `slots` is due.
    pub(super) fn first_due<'a>(&self, slots: impl IntoIterator<Item = &'a SlotId>) -> Option<Micros> {
        let due = |id: &SlotId| {
            let slot = self.slots.get(self.find(id)? as usize)?;
            matches!(slot.state, State::Leased | State::Offered | State::Cooling).then_some(slot.until)
        };
        slots.into_iter().filter_map(due).min()
    }

    /// Chooses a ready slot; one in doubt only where there is no other.
    pub(super) fn choose(&self, draw: &mut Draw, strategy: Strategy) -> Option<u32> {
        let certain: u32 = self.ready.iter().take(DOUBT).map(|queue| queue.len()).sum();
        if certain == 0 {
            return self.ready.get(DOUBT)?.at(0);
        }
        match strategy {
            Strategy::Random => self.ranked(draw.rank(certain)),
            Strategy::LeastRecent => {
                let oldest = self.ready.iter().take(DOUBT).filter_map(|queue| queue.at(0));
                oldest.min_by_key(|&place| self.arrival(place))
            }
            Strategy::Weighted => self.weighted(draw),
        }
    }

    /// The slot of this rank among all that are ready and certain, queue after queue.
    fn ranked(&self, mut rank: u32) -> Option<u32> {
        for queue in self.ready.iter().take(DOUBT) {
            if rank < queue.len() {
                return queue.at(rank);
            }
            rank -= queue.len();
        }
        None
    }

    /// Draws a queue by the upper bound of its weights, then a slot of it, and keeps the slot with the
    /// chance that its weight has of that bound (rejection sampling: the chances are exact).
    fn weighted(&self, draw: &mut Draw) -> Option<u32> {
        let bound = |queue: usize| (2u64 << queue) - 1;
        let bounds =
            || self.ready.iter().take(DOUBT).zip(0..).map(|(queue, at)| u64::from(queue.len()) * bound(at));
        let total: u64 = bounds().sum();
        let mut candidate = None;
        for _ in 0..DRAWS {
            let mut point = draw.below_large(total);
            let mut chosen = 0;
            for share in bounds() {
                if point < share {
                    break;
                }
                point -= share;
                chosen += 1;
            }
            let queue = self.ready.get(chosen)?;
            candidate = queue.at(draw.below(queue.len()));
            let slot = self.slots.get(candidate? as usize)?;
            if draw.below(bound(chosen) as u32) < u32::from(slot.weight) {
                break;
            }
        }
        candidate
    }

    pub(super) fn grant(&mut self, now: Micros, place: u32, claim: &Claim) -> Option<Grant> {
        self.take_out(place);
        let fence = now.max(self.top + 1);
        self.top = fence;
        let epoch = self.server.epoch;
        let slot = self.slots.get_mut(place as usize)?;
        if slot.epoch != epoch {
            slot.nonce = slot.nonce.unsettled();
            slot.epoch = epoch;
        }
        slot.state = State::Leased;
        slot.fence = fence;
        slot.holder = claim.holder;
        slot.priority = claim.priority;
        slot.claimant = None;
        slot.since = now;
        (slot.hold_until, slot.until) = match claim.max_hold {
            0 => (0, now + claim.ttl),
            max_hold => (now + max_hold, now + claim.ttl.min(max_hold)),
        };
        self.due.insert(slot.until, place, &mut self.positions);
        Some(Grant { slot: slot.id.clone(), fence, deadline: slot.until, nonce: slot.nonce, place })
    }
}

/// Whether a grant's nonce must be asked of the chain before it is signed with.
impl Grant {
    /// Whether a nonce may have been signed with that nobody accounted for.
    pub fn in_doubt(&self) -> bool {
        matches!(self.nonce, NonceRecord::InDoubt { .. })
    }
}
