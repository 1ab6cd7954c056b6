//! Claiming as many of some names as are free: what a lock table needs, where a lock wants all or none.

use rustc_hash::{FxBuildHasher, FxHashSet};

use super::pool::Pool;
use super::slot::{Mode, Slot, State};
use super::{Claim, Grant, MAX_SLOTS, Refusal, Reply};
use crate::Micros;
use crate::id::SlotId;

/// Names, and where those are that the pool has.
type Free<'a> = Vec<(&'a SlotId, Option<u32>)>;

impl Pool {
    /// Claims those of `slots` that are free: so many at least, and so many at most.
    pub(super) fn claim_free(
        &mut self,
        now: Micros,
        claim: &Claim,
        slots: &[SlotId],
        (least, most): (u32, u32),
        asked: Micros,
    ) -> Reply {
        let (free, others) = self.free_of(now, claim, slots, most, asked);
        if free.len() < least as usize {
            return self.refuse(now, claim, Refusal::Exhausted);
        }
        let grants = self.grant_free(now, claim, free);
        if others.is_empty() || grants.len() >= most as usize {
            return Reply::Granted(grants);
        }
        let earliest = self.first_due(others);
        Reply::Partly { grants, earliest }
    }

    /// Those of `slots` that this holder can have, at most `most`, in the order given, and where they are (nothing is made
    /// yet); then those of them that it cannot have.
    fn free_of<'a>(
        &mut self,
        now: Micros,
        claim: &Claim,
        slots: &'a [SlotId],
        most: u32,
        asked: Micros,
    ) -> (Free<'a>, Vec<&'a SlotId>) {
        let mut free = Vec::with_capacity(slots.len().min(most as usize));
        let mut others = Vec::new();
        let mut seen = FxHashSet::with_capacity_and_hasher(slots.len(), FxBuildHasher);
        let mut new = 0;
        for name in slots {
            if free.len() >= most as usize {
                break;
            }
            if !seen.insert(name) {
                continue;
            }
            let place = self.find_put_back(now, name);
            let slot = place.and_then(|place| self.slots.get(place as usize));
            let can = match slot.map(|slot| (slot.state, slot.mode)) {
                None => self.total() + new < MAX_SLOTS && !self.line.precedes(Some(name), now, claim),
                Some((State::Ready, _)) => !self.line.precedes(Some(name), now, claim),
                Some((State::Leased, Mode::Enabled | Mode::Passing)) => {
                    let own = slot.is_some_and(|slot| slot.holder == claim.holder && slot.since <= asked);
                    own && place.is_some_and(|place| self.heed_claimant(now, place).is_none())
                }
                Some(_) => false,
            };
            if can {
                new += usize::from(place.is_none());
                free.push((name, place));
            } else {
                others.push(name);
            }
        }
        (free, others)
    }

    /// Grants what is free to a claim of that.
    fn grant_free(&mut self, now: Micros, claim: &Claim, free: Free<'_>) -> Vec<Grant> {
        self.line.leave(claim.holder);
        let mut grants = Vec::with_capacity(free.len());
        for (name, place) in free {
            let place = place.unwrap_or_else(|| self.place_of(Slot::passing(name.clone())));
            if let Some(slot) = self.slots.get_mut(place as usize).filter(|slot| slot.state == State::Leased)
            {
                // What became of its nonce under the lease before, nobody says any more.
                slot.set_nonce(slot.nonce.unsettled(), now);
            }
            grants.extend(self.grant(now, place, claim));
        }
        grants
    }
}
