//! Claims on what holders of lower priority have.
//!
//! The claimant of a lease is a ticket that stands in line for its slot. It waits as all do, for the slot to be given
//! back or to come due, and so it costs one handshake whatever the number of priorities: a still higher one takes its
//! place as the claimant, and it waits on. All that a claim changes is that the lease is not renewed, and that it may
//! end before its deadline if the claimant said so; when the claimant has gone, the lease is as it was before.

use super::SWEEP;
use super::line::Ticket;
use super::pool::Pool;
use super::slot::{Slot, State};
use crate::Micros;
use crate::id::SlotId;

/// What its holder's priority is counted lower by where a ticket claims a lease already: below any other.
const ITS_OWN: i32 = 1 << 20;

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

impl Slot {
    /// When its lease ends if nobody claims it.
    pub fn agreed(&self) -> Micros {
        self.claimant.as_ref().map_or(self.until, |claimant| claimant.until)
    }
}

impl Pool {
    /// Makes a ticket that steals the claimant of what it waits for, if that takes nothing but holders of lower
    /// priority; whether it is one now. If a part is out of its reach, it lets go of what it claimed before, and of what it needs no
    /// more. So may whoever loses a part to it, who tries anew.
    pub(super) fn steal(&mut self, now: Micros, holder: u128) -> bool {
        let mut replaced = Vec::new();
        let steals = self.steal_once(now, holder, &mut replaced);
        // Each once, and of lower priority than who replaced it, so that this comes to an end soon. Not one within the other: a chain
        // may be long.
        while let Some(other) = replaced.pop() {
            self.steal_once(now, other, &mut replaced);
        }
        steals
    }

    /// The same of one alone. Whom it replaces is put upon these, the first uppermost.
    fn steal_once(&mut self, now: Micros, holder: u128, replaced: &mut Vec<u128>) -> bool {
        let Some(ticket) = self.line.standing(holder, now).cloned() else { return false };
        let Some(patience) = ticket.steal else { return false };
        let (ways, there) = if ticket.names.is_empty() {
            // Among the first that come due, so that it does not take long.
            (self.due.first(SWEEP, &self.slots), self.count_ready() as usize)
        } else {
            self.ways_of(now, holder, &ticket)
        };
        let count = if ticket.count == 0 { ticket.names.len() } else { ticket.count as usize };
        let wanting = count.saturating_sub(there);
        let victims = self.victims(now, holder, &ticket, wanting, &ways);
        let places = victims.as_deref().unwrap_or_default();
        // It needs these, or none at all. While some of what it needs is about to come back, or others come before it for what is
        // there, it lets go of nothing.
        let is_enough = places.len() == wanting
            && (ticket.count == 0 || !self.line.is_behind(None, now, ticket.turn_of(holder)));
        if victims.is_none() || is_enough {
            for place in ways {
                if self.claims(place, holder) && !places.contains(&place) {
                    self.drop_claimant(place);
                }
            }
        }
        let mut own = Vec::new();
        for &place in places {
            if let Some(other) = self.claim_from(now, place, holder, patience)
                && !own.contains(&other)
            {
                own.push(other);
            }
        }
        while let Some(other) = own.pop() {
            replaced.push(other);
        }
        !places.is_empty()
    }

    /// Whoever is first in line now for one of these names, which others wanted before, or for any slot.
    pub(super) fn steal_for_first(&mut self, now: Micros, names: &mut dyn Iterator<Item = &SlotId>) {
        let mut looked = Vec::new();
        for name in names.map(Some).chain([None]) {
            let first = self.line.head(name, now).map(|(holder, _)| holder);
            // Each looks at all that it wants, may be first for many of them, and finds the same until another claims or lets go.
            if let Some(holder) = first.filter(|holder| !looked.contains(holder)) {
                let before = self.stirred;
                self.steal(now, holder);
                if self.stirred != before {
                    looked.clear();
                }
                looked.push(holder);
            }
        }
    }

    /// Those of a ticket's names that others have, and how many it can have: they are kept for it, or free and nobody waits for
    /// them before it. A free one that is for another is neither.
    fn ways_of(&mut self, now: Micros, holder: u128, ticket: &Ticket) -> (Vec<u32>, usize) {
        let (mut ways, mut there) = (Vec::new(), 0);
        for name in ticket.names.iter() {
            // Only for who wants all of them is one made that is not there.
            let is_had = match self.find(name) {
                Some(place) if self.is_offered(place, holder, now) => true,
                Some(place) if !self.is_ready(place) => {
                    ways.push(place);
                    false
                }
                None if ticket.chooses() => false,
                _ => self.is_first(now, holder, name),
            };
            there += usize::from(is_had);
        }
        (ways, there)
    }

    /// As many of these slots as are wanting to a ticket: those that it has claimed before, then those of the lowest
    /// holders. No slot while there are enough only with those that rest or are offered to others, as they come back, and
    /// `None` if there are not.
    fn victims(
        &self,
        now: Micros,
        holder: u128,
        ticket: &Ticket,
        wanting: usize,
        ways: &[u32],
    ) -> Option<Vec<u32>> {
        let (mut lowest, mut coming): (Vec<(i32, u32)>, _) = (Vec::new(), 0);
        // Those that are alike stay in their order.
        for &place in ways {
            let slot = self.slots.get(place as usize)?;
            if !ticket.can_use(slot) {
                continue;
            }
            if let Some(key) = self.key(now, slot, holder, ticket.priority) {
                lowest.insert(lowest.partition_point(|&(other, _)| other <= key), (key, place));
                lowest.truncate(wanting);
            } else if matches!(slot.state, State::Offered | State::Cooling) {
                coming += 1;
            }
        }
        if lowest.len() < wanting {
            return (lowest.len() + coming >= wanting).then(Vec::new);
        }
        Some(lowest.into_iter().map(|(_, place)| place).collect())
    }

    /// By what a leased slot comes before others that a ticket of this priority could claim as well: that it claims it
    /// already, then its holder's priority, then that nobody else claims it; `None` if it cannot.
    fn key(&self, now: Micros, slot: &Slot, ticket: u128, priority: i16) -> Option<i32> {
        if slot.state != State::Leased || slot.priority >= priority {
            return None;
        }
        let key = 2 * i32::from(slot.priority);
        match self.claimant(now, slot) {
            None => Some(key),
            Some((other, _)) if other == ticket => Some(key - ITS_OWN),
            Some((_, rank)) => (rank < priority).then_some(key + 1),
        }
    }

    /// The ticket that claims a slot, and its priority, while it stands in line and has a use for it.
    fn claimant(&self, now: Micros, slot: &Slot) -> Option<(u128, i16)> {
        let ticket = slot.claimant.as_ref()?.ticket;
        let found = self.line.standing(ticket, now)?;
        found.can_use(slot).then_some((ticket, found.priority))
    }

    /// Whether a ticket claims a leased slot.
    fn claims(&self, place: u32, ticket: u128) -> bool {
        let slot = self.slots.get(place as usize).filter(|slot| slot.state == State::Leased);
        slot.and_then(|slot| slot.claimant.as_ref()).is_some_and(|claimant| claimant.ticket == ticket)
    }

    /// Makes a ticket the claimant of a leased slot; the ticket in whose place it comes, if there was one.
    fn claim_from(&mut self, now: Micros, place: u32, ticket: u128, patience: Micros) -> Option<u128> {
        if self.claims(place, ticket) {
            return None;
        }
        let before = self.drop_claimant(place);
        self.stirred += 1;
        let slot = self.slots.get_mut(place as usize)?;
        slot.claimant = Some(Box::new(Claimant { ticket, until: slot.until }));
        self.claimed.push(slot.fence);
        let until = slot.until.min(now + patience);
        self.end_at(place, until);
        before
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

    fn drop_claimant(&mut self, place: u32) -> Option<u128> {
        let claimant = self.slots.get_mut(place as usize)?.claimant.take()?;
        self.stirred += 1;
        self.end_at(place, claimant.until);
        Some(claimant.ticket)
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
