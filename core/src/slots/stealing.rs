//! Claims on what holders of lower priority have.
//!
//! The claimant of a lease is a ticket that stands in line for its slot. It waits as all do, for the slot to be given
//! back or to come due, and so it costs one handshake whatever the number of priorities: a still higher one takes its
//! place as the claimant, and it waits on. All that a claim changes is that the lease is not renewed, and that it may
//! end before its deadline if the claimant said so; when the claimant has gone, the lease is as it was before.

use super::pool::Pool;
use super::slot::{Mode, Slot, State};
use super::{Grant, SWEEP};
use crate::Micros;
use crate::id::SlotId;

/// Who wants to have a lease.
#[derive(Clone, Debug)]
pub(super) struct Claimant {
    ticket: u128,
    /// The deadline that the lease had before, and has again if the claimant goes.
    until: Micros,
}

impl Claimant {
    /// The ticket, and the deadline of the lease without it.
    #[cfg(test)]
    pub fn told(&self) -> (u128, Micros) {
        (self.ticket, self.until)
    }
}

impl Pool {
    /// Makes a ticket that steals the claimant of what it waits for, if that takes nothing but holders of lower
    /// priority; whether it is one now.
    pub(super) fn steal(&mut self, now: Micros, holder: u128) -> bool {
        let Some(ticket) = self.line.standing(holder, now) else { return false };
        let Some(patience) = ticket.steal else { return false };
        let (names, count, priority) = (ticket.names.clone(), ticket.count, ticket.priority);
        let places = match &*names {
            [] => self.victims(now, holder, priority, count),
            names => self.holders(now, holder, priority, names),
        };
        for &place in places.iter().flatten() {
            self.claim_from(now, place, holder, patience);
        }
        places.is_some_and(|places| !places.is_empty())
    }

    /// Whoever is first in line now for what was offered to another, and has just been leased to it.
    pub(super) fn steal_from_new(&mut self, now: Micros, grants: &[Grant]) {
        let names = grants.iter().map(|grant| Some(&grant.slot)).chain([None]);
        let mut first = |name: Option<&SlotId>| self.line.head(name, now).map(|(holder, _)| holder);
        let waiting: Vec<u128> = names.filter_map(&mut first).collect();
        for holder in waiting {
            self.steal(now, holder);
        }
    }

    /// The slots that are in the way of one who waits for these names; `None` if one of them is not to be had.
    fn holders(&self, now: Micros, ticket: u128, priority: i16, names: &[SlotId]) -> Option<Vec<u32>> {
        let mut places = Vec::new();
        for place in names.iter().filter_map(|name| self.find(name)) {
            let slot = self.slots.get(place as usize)?;
            if slot.state != State::Ready {
                self.rival(now, slot, ticket, priority)?;
                places.push(place);
            }
        }
        Some(places)
    }

    /// As many slots as are wanting to one who waits for so many of any: those that it has claimed before, then those
    /// of the lowest holders. Among the first that come due, so that it does not take long.
    fn victims(&self, now: Micros, ticket: u128, priority: i16, count: u32) -> Option<Vec<u32>> {
        let wanting = count.saturating_sub(self.count_ready()) as usize;
        let mut lowest = Vec::new();
        // In the order in which they come due, and so are those that are alike.
        for place in self.due.first(SWEEP, &self.slots) {
            let slot = self.slots.get(place as usize)?;
            // Others do not become ready when they are given back.
            if slot.mode == Mode::Enabled
                && let Some(rival) = self.rival(now, slot, ticket, priority)
            {
                let key = (rival != Rival::Itself, slot.priority, rival);
                lowest.insert(lowest.partition_point(|&(other, _)| other <= key), (key, place));
                lowest.truncate(wanting);
            }
        }
        (lowest.len() == wanting).then(|| lowest.into_iter().map(|(_, place)| place).collect())
    }

    /// Who else claims a leased slot that a ticket of this priority could claim; `None` if it cannot.
    fn rival(&self, now: Micros, slot: &Slot, ticket: u128, priority: i16) -> Option<Rival> {
        if slot.state != State::Leased || slot.priority >= priority {
            return None;
        }
        match self.claimant(now, slot) {
            None => Some(Rival::Nobody),
            Some((other, _)) if other == ticket => Some(Rival::Itself),
            Some((_, rank)) => (rank < priority).then_some(Rival::Lower),
        }
    }

    /// The ticket that claims a slot, and its priority, while it stands in line.
    fn claimant(&self, now: Micros, slot: &Slot) -> Option<(u128, i16)> {
        let ticket = slot.claimant.as_ref()?.ticket;
        self.line.standing(ticket, now).map(|found| (ticket, found.priority))
    }

    fn claim_from(&mut self, now: Micros, place: u32, ticket: u128, patience: Micros) {
        let claimed = |slot: &Slot| slot.claimant.as_ref().is_some_and(|claimant| claimant.ticket == ticket);
        if self.slots.get(place as usize).is_none_or(claimed) {
            return;
        }
        self.drop_claimant(place);
        let Some(slot) = self.slots.get_mut(place as usize) else { return };
        slot.claimant = Some(Box::new(Claimant { ticket, until: slot.until }));
        self.claimed.push(slot.fence);
        let until = slot.until.min(now + patience);
        self.end_at(place, until);
    }

    /// The priority of a slot's claimant; one that has gone is forgotten.
    pub(super) fn heed_claimant(&mut self, now: Micros, place: u32) -> Option<i16> {
        let slot = self.slots.get(place as usize)?;
        slot.claimant.as_ref()?;
        let claimant = self.claimant(now, slot);
        if claimant.is_none() {
            self.drop_claimant(place);
        }
        claimant.map(|(_, priority)| priority)
    }

    /// Whether a slot that was taken out as it is due goes on being leased, because whoever ended it early has gone.
    pub(super) fn reverts(&mut self, now: Micros, place: u32) -> bool {
        let Some(slot) = self.slots.get(place as usize) else { return false };
        if slot.state != State::Leased || slot.claimant.is_none() || self.claimant(now, slot).is_some() {
            return false;
        }
        let Some(slot) = self.slots.get_mut(place as usize) else { return false };
        slot.until = slot.claimant.take().map_or(slot.until, |claimant| claimant.until);
        if slot.until <= now {
            return false;
        }
        self.due.insert(slot.until, place, &mut self.positions);
        true
    }

    fn drop_claimant(&mut self, place: u32) {
        let claimant = self.slots.get_mut(place as usize).and_then(|slot| slot.claimant.take());
        if let Some(claimant) = claimant {
            self.end_at(place, claimant.until);
        }
    }

    /// Gives a leased slot another deadline.
    pub(super) fn end_at(&mut self, place: u32, until: Micros) {
        let Some(slot) = self.slots.get_mut(place as usize) else { return };
        if until != slot.until {
            self.due.remove(place, &mut self.positions);
            slot.until = until;
            self.due.insert(until, place, &mut self.positions);
        }
    }
}

/// Who else claims a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rival {
    Itself,
    Nobody,
    Lower,
}
