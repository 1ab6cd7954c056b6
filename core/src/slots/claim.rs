//! Claiming slots.

use super::draw::Draw;
use super::pool::{DOUBT, Pool};
use super::slot::Slot;
use super::{Choice, Grant, MAX_SLOTS, Refusal, Reply, State, Strategy};
use crate::Micros;
use crate::id::SlotId;
use crate::nonce::NonceRecord;

/// How often a weighted draw is repeated; each one fails with a chance below a half.
const DRAWS: u32 = 32;

impl Pool {
    pub(super) fn claim(
        &mut self,
        now: Micros,
        draw: &mut Draw,
        choice: &Choice,
        holder: u128,
        ttl: Micros,
        max_hold: Micros,
    ) -> Reply {
        self.longest = self.longest.max(ttl);
        let quiet_until = self.quiet_until();
        if quiet_until > now {
            return Reply::Refused { why: Refusal::Quiet, earliest: Some(quiet_until) };
        }
        let places = match choice {
            &Choice::Any { strategy, least, most } => {
                let ready = self.count_ready();
                if ready < least {
                    let why = if self.total() == 0 { Refusal::NoSlot } else { Refusal::Exhausted };
                    return Reply::Refused { why, earliest: self.due.next() };
                }
                let mut grants = Vec::with_capacity(most.min(ready) as usize);
                for _ in 0..most.min(ready) {
                    let Some(place) = self.choose(draw, strategy) else { break };
                    grants.extend(self.grant(now, place, holder, ttl, max_hold));
                }
                return Reply::Granted(grants);
            }
            Choice::These { slots, least, most } => match self.available(slots, *most) {
                Ok(places) if places.len() >= *least as usize => places,
                Ok(_) => {
                    return Reply::Refused { why: Refusal::Exhausted, earliest: self.first_due(slots) };
                }
                Err(why) => return Reply::Refused { why, earliest: None },
            },
            Choice::Named { slots } => match self.places_of(slots) {
                Some(places) => places,
                None => return Reply::Refused { why: Refusal::Exhausted, earliest: self.first_due(slots) },
            },
        };
        let grant = |place| self.grant(now, place, holder, ttl, max_hold);
        Reply::Granted(places.into_iter().filter_map(grant).collect())
    }

    /// The ready ones among `slots`, at most `most`, in the order given; one that is named twice counts once.
    fn available(&self, slots: &[SlotId], most: u32) -> Result<Vec<u32>, Refusal> {
        let mut places = Vec::new();
        for id in slots {
            let place = self.find(id).ok_or(Refusal::NoSlot)?;
            let ready = self.slots.get(place as usize).is_some_and(|slot| slot.state == State::Ready);
            if ready && places.len() < most as usize && !places.contains(&place) {
                places.push(place);
            }
        }
        Ok(places)
    }

    /// The places of all of `slots`, those made that are not there; nothing, and none made, if one is not free.
    fn places_of(&mut self, slots: &[SlotId]) -> Option<Vec<u32>> {
        let mut new = 0;
        for id in slots {
            match self.find(id).and_then(|place| self.slots.get(place as usize)) {
                Some(slot) if slot.state != State::Ready => return None,
                Some(_) => {}
                None => new += 1,
            }
        }
        if self.total() + new > MAX_SLOTS {
            return None;
        }
        let mut places = Vec::with_capacity(slots.len());
        for id in slots {
            let place = self.find(id).unwrap_or_else(|| self.place_of(Slot::passing(id.clone())));
            if !places.contains(&place) {
                places.push(place);
            }
        }
        Some(places)
    }

    /// When the first of `slots` is due.
    fn first_due(&self, slots: &[SlotId]) -> Option<Micros> {
        let due = |id| {
            let slot = self.slots.get(self.find(id)? as usize)?;
            matches!(slot.state, State::Leased | State::Cooling).then_some(slot.until)
        };
        slots.iter().filter_map(due).min()
    }

    /// Chooses a ready slot; one in doubt only where there is no other.
    fn choose(&self, draw: &mut Draw, strategy: Strategy) -> Option<u32> {
        let certain: u32 = self.ready.iter().take(DOUBT).map(|queue| queue.len()).sum();
        if certain == 0 {
            return self.ready.get(DOUBT)?.at(0);
        }
        match strategy {
            Strategy::Random => self.ranked(draw.below(certain)),
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

    fn grant(
        &mut self,
        now: Micros,
        place: u32,
        holder: u128,
        ttl: Micros,
        max_hold: Micros,
    ) -> Option<Grant> {
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
        slot.holder = holder;
        slot.since = now;
        slot.hold_until = if max_hold == 0 { 0 } else { now + max_hold };
        slot.until = now + if max_hold == 0 { ttl } else { ttl.min(max_hold) };
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
