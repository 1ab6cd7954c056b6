//! Offering slots to those who wait, one after the other.

use super::draw::Draw;
use super::pool::Pool;
use super::slot::{Slot, State};
#[cfg(test)]
use super::tests::Handed;
use super::{Claim, Grant, MAX_SLOTS, Mode, OFFER, Reply};
use crate::Micros;
use crate::id::SlotId;

impl Pool {
    /// Offers what is ready to the first in line.
    pub(super) fn serve(&mut self, now: Micros, draw: &mut Draw) {
        if self.line.is_empty() {
            return self.line.rest();
        }
        loop {
            self.serve_names(now);
            if self.count_ready() == 0 || !self.serve_first(now, draw) {
                return self.line.rest();
            }
        }
    }

    /// Offers what came free to those who wait for it by its name.
    pub(super) fn serve_names(&mut self, now: Micros) {
        // Who stood before them may have been served since.
        self.line.touched.append(&mut self.line.passed);
        loop {
            // One that waits for many names is looked at once, unless something came free since.
            let (mut at, mut judged) = (0, None);
            while let Some(name) = self.line.touched.get(at).cloned() {
                self.serve_name(now, &name, &mut judged);
                at += 1;
            }
            self.line.touched.clear();
            if self.count_ready() == 0 {
                return;
            }
            self.pass_over_the_impossible(now);
            self.move_up();
            if self.line.touched.is_empty() {
                return;
            }
        }
    }

    /// Offers what is ready to the first who takes any slot, if that is enough; whether it is.
    pub(super) fn serve_first(&mut self, now: Micros, draw: &mut Draw) -> bool {
        let Some((holder, ticket)) = self.line.head(None, now) else { return false };
        let (count, strategy) = (ticket.count, ticket.strategy);
        if self.count_ready() < count {
            return false;
        }
        let mut places = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let Some(place) = self.choose(draw, strategy) else { break };
            self.keep_for(now, holder, place);
            places.push(place);
        }
        self.call(holder, places);
        true
    }

    /// Offers a name to the first in its line, together with the others that it wants, if it is first for all and all
    /// are free. Nobody goes before it meanwhile: what is first in one line and is not in another stands there behind
    /// one that came earlier, and so on to one that is first everywhere. Who wants some of its names, or one, has what is
    /// ready unless others stand before it in the line of any slot.
    fn serve_name(&mut self, now: Micros, name: &SlotId, judged: &mut Option<(u128, usize)>) {
        let Some((holder, ticket)) = self.line.head(Some(name), now) else { return };
        let (turn, names, count) =
            (ticket.turn_of(holder), ticket.names.clone(), ticket.chooses().then_some(ticket.count));
        if *judged == Some((holder, self.line.touched.len())) {
            return;
        }
        let places = match count {
            None => self.all_of(now, holder, &names),
            Some(_) if self.find(name).is_none_or(|place| !self.is_ready(place)) => return,
            Some(_) if self.line.is_behind(None, now, turn) => return self.line.passed.push(name.clone()),
            Some(count) => self.gather(now, holder, &names, count),
        };
        let Some(places) = places else {
            *judged = Some((holder, self.line.touched.len()));
            return;
        };
        places.iter().for_each(|&place| self.keep_for(now, holder, place));
        self.call(holder, places);
        // Of several that it might have had the others are left to those behind it.
        if count.is_some() {
            self.steal_for_first(now, &mut names.iter());
        }
    }

    /// The places of these names, those made that are not there, if all are free and it is first in the line of each.
    fn all_of(&mut self, now: Micros, holder: u128, names: &[SlotId]) -> Option<Vec<u32>> {
        let free = names.iter().all(|name| self.is_free(name)) && self.total() + names.len() <= MAX_SLOTS;
        if !free || !names.iter().all(|name| self.is_first(now, holder, name)) {
            return None;
        }
        Some(names.iter().map(|name| self.place_of_name(name)).collect())
    }

    pub(super) fn is_ready(&self, place: u32) -> bool {
        self.slots.get(place as usize).is_some_and(|slot| slot.state == State::Ready)
    }

    pub(super) fn is_first(&mut self, now: Micros, holder: u128, name: &SlotId) -> bool {
        self.line.head(Some(name), now).is_some_and(|(first, _)| first == holder)
    }

    /// Keeps for a ticket what is there of its names until that is enough; the places then. What is kept comes back
    /// as any offer does that is over, and is kept anew if it is still its turn: so it goes to who comes before it by then, and
    /// two that keep what the other wants do not wait for each other for ever. One that wants more than can come back leaves
    /// the line.
    fn gather(&mut self, now: Micros, holder: u128, names: &[SlotId], count: u32) -> Option<Vec<u32>> {
        if self.obtainable_of(names) < count {
            self.withdraw(now, holder);
            return None;
        }
        let mut places = self.kept_for(now, holder, names, count);
        // Those in doubt after the others.
        for place in self.available(names).0 {
            if places.len() < count as usize
                && let Some(name) = self.slots.get(place as usize).map(|slot| slot.id.clone())
                && self.is_first(now, holder, &name)
            {
                self.keep_for(now, holder, place);
                #[cfg(test)]
                if count > 1 {
                    self.handed.push(Handed::Kept(holder, name));
                }
                places.push(place);
            }
        }
        (places.len() >= count as usize).then_some(places)
    }

    /// Those of these names that are kept for a ticket, at most `most`.
    pub(super) fn kept_for(&self, now: Micros, holder: u128, names: &[SlotId], most: u32) -> Vec<u32> {
        let mut places = Vec::new();
        self.add_those(&mut places, names, most, &|slot| slot.is_offered(holder, now));
        places
    }

    /// How many of these there are that are or will be ready: not those that are gone with their lease. One that is there twice
    /// counts once.
    pub(super) fn obtainable_of(&self, names: &[SlotId]) -> u32 {
        let mut places = Vec::new();
        let lasts = |slot: &Slot| slot.state != State::Out && slot.mode != Mode::Passing && !slot.leaves();
        self.add_those(&mut places, names, u32::MAX, &lasts);
        places.len() as u32
    }

    /// Lets those go who want more slots than can come back without an administrator: others would wait behind them in
    /// vain.
    pub(super) fn pass_over_the_impossible(&mut self, now: Micros) {
        let obtainable = self.obtainable();
        while let Some((holder, ticket)) = self.line.head(None, now)
            && ticket.count > obtainable
        {
            self.line.leave(holder);
        }
    }

    /// How many slots there are that are or will be ready.
    pub(super) fn obtainable(&self) -> u32 {
        self.count_ready() + self.due.len() as u32 - self.leaving
    }

    fn keep_for(&mut self, now: Micros, holder: u128, place: u32) {
        self.take_out(place);
        let Some(slot) = self.slots.get_mut(place as usize) else { return };
        (slot.state, slot.holder, slot.until) = (State::Offered, holder, now + OFFER);
        self.due.insert(slot.until, place, &mut self.positions);
    }

    fn call(&mut self, holder: u128, places: Vec<u32>) {
        #[cfg(test)]
        self.note_offer(holder, &places);
        self.line.offer(holder, places);
        self.called.push(holder);
    }

    #[cfg(test)]
    fn note_offer(&mut self, holder: u128, places: &[u32]) {
        let id = |&place: &u32| self.slots.get(place as usize).map(|slot| slot.id.clone());
        self.handed.push(Handed::Offered(holder, places.iter().filter_map(id).collect()));
    }

    /// Grants what was offered to this claim, if all of it still is.
    pub(super) fn accept(&mut self, now: Micros, claim: &Claim) -> Option<Vec<Grant>> {
        let places = self.line.take_offer(claim.holder)?;
        if places.iter().all(|&place| self.is_offered(place, claim.holder, now)) {
            return Some(self.grant_those(now, places, claim));
        }
        self.take_back(now, claim.holder, places);
        None
    }

    pub(super) fn withdraw(&mut self, now: Micros, holder: u128) -> Reply {
        if let Some(ticket) = self.line.leave(holder) {
            let stands = ticket.offered.is_empty();
            let kept =
                if stands { self.kept_for(now, holder, &ticket.names, u32::MAX) } else { ticket.offered };
            self.take_back(now, holder, kept);
            // What it claimed may be claimed by those whose place it took, and what it kept them from by who has all else.
            if stands {
                self.steal_for_first(now, &mut ticket.names.iter());
            }
        }
        Reply::Withdrawn
    }

    /// A slot is offered no more, and so is nothing else of its offer.
    pub(super) fn break_offer(&mut self, now: Micros, place: u32) {
        let offered = self.slots.get(place as usize).filter(|slot| slot.state == State::Offered);
        let Some(holder) = offered.map(|slot| slot.holder) else { return };
        let others = self.line.end_offer(holder, place).unwrap_or_default();
        self.take_back(now, holder, others.into_iter().filter(|&other| other != place).collect());
    }

    /// Slots are offered no more. What is overdue is put back in its turn, whether or not its ticket is still there.
    fn take_back(&mut self, now: Micros, holder: u128, places: Vec<u32>) {
        for place in places {
            if self.is_offered(place, holder, now) {
                self.due.remove(place, &mut self.positions);
                self.hand_in(place);
            }
        }
    }

    pub(super) fn is_offered(&self, place: u32, holder: u128, now: Micros) -> bool {
        self.slots.get(place as usize).is_some_and(|slot| slot.is_offered(holder, now))
    }

    /// Whether nobody has the name.
    fn is_free(&self, name: &SlotId) -> bool {
        self.find(name).is_none_or(|place| self.is_ready(place))
    }
}
