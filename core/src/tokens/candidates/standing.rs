//! How a token's standing changes: what is free, taken, resting, spent or gone, and what of that is in the queue.

use std::cmp::Reverse;

use super::Candidates;
use super::entry::{Entry, State};
use crate::Micros;

/// So many that are gone may stand in the queue besides as many as there are.
const TIDY: usize = 64;

impl Candidates {
    pub(super) fn next_free(&mut self, now: Micros) -> Option<u32> {
        let oldest = self.oldest(now);
        while let Some(place) = self.queue.pop() {
            let Some(entry) = self.entry(place) else { continue };
            entry.queued = false;
            match entry.state {
                State::Free if entry.seen >= oldest => return Some(place),
                State::Free => self.leave(place, State::Stale),
                State::Gone => {
                    self.gone = self.gone.saturating_sub(1);
                    self.vacant.push(place);
                }
                _ => {}
            }
        }
        None
    }

    /// Takes those that are gone out of the queue once they are most of it: where nothing is taken from its head, it passes
    /// over none of them.
    pub(super) fn tidy(&mut self) {
        if self.gone <= self.index.len() + TIDY {
            return;
        }
        let Candidates { queue, entries, vacant, gone, .. } = self;
        queue.retain(|place| {
            let is_gone = entries.get(place as usize).is_none_or(|entry| entry.state == State::Gone);
            if is_gone {
                vacant.push(place);
            }
            !is_gone
        });
        *gone = 0;
    }

    /// Those that others had may be asked for again when their rest is over, and what was spent is forgotten.
    pub(super) fn wake(&mut self, now: Micros) {
        let due = self.due(now);
        while let Some(&Reverse((_, place))) = self.spent.peek().filter(|Reverse((at, _))| *at <= due) {
            self.spent.pop();
            let over = |entry: &&Entry| entry.state == State::Spent && entry.rests_until() <= due;
            let Some(entry) = self.entries.get(place as usize).filter(over) else { continue };
            // A source that told of no spend still lists it: there is no change of which it would tell. The walk that is under
            // way may have passed it.
            if entry.barred == 0 && self.live.is_some() {
                self.walk.void();
                if entry.walk == self.walk.number() {
                    self.walk.restart();
                }
            }
            self.forget(place);
        }
        while let Some(&Reverse((_, place))) = self.resting.peek().filter(|Reverse((at, _))| *at <= now) {
            self.resting.pop();
            self.end_rest(now, place);
        }
    }

    /// Until when the rest of what was spent must have lasted for it to be forgotten: of a page that is under way it counts
    /// when it was asked for, not when it comes.
    fn due(&self, now: Micros) -> Micros {
        self.asked.map_or(now, |asked| asked.min(now))
    }

    pub(super) fn end_rest(&mut self, now: Micros, place: u32) -> bool {
        let rests = self.state(place) == Some(State::Resting);
        if rests {
            self.set_free(now, place, false);
        }
        rests
    }

    pub(super) fn set_free(&mut self, now: Micros, place: u32, first: bool) {
        let oldest = self.oldest(now);
        let Some(entry) = self.entry(place) else { return };
        if entry.seen < oldest {
            entry.state = State::Stale;
            return;
        }
        entry.state = State::Free;
        let amount = entry.token.amount;
        self.free.add(amount);
        self.shelves.put(place, &self.entries);
        if first {
            self.enqueue_first(place);
        } else if let Some(entry) = self.entry(place)
            && !std::mem::replace(&mut entry.queued, true)
        {
            let turn = entry.turn;
            self.queue.push_last(place, turn);
        }
    }

    /// What was listed too long ago, but since the source tells of every change, may be asked for after all.
    pub(super) fn revive(&mut self, now: Micros) {
        let stale = self.entries.iter().zip(0..).filter(|(entry, _)| entry.state == State::Stale);
        let stale: Vec<u32> = stale.map(|(_, place)| place).collect();
        stale.into_iter().for_each(|place| self.set_free(now, place, false));
    }

    /// What was listed last before this is not offered.
    pub(super) fn oldest(&self, now: Micros) -> Micros {
        let aged = now.saturating_sub(self.max_age);
        let since = self.live.filter(|(_, sure)| *sure).map(|(since, _)| since);
        since.map_or(aged, |since| since.min(aged)).max(1)
    }

    pub(super) fn enqueue_first(&mut self, place: u32) {
        if let Some(entry) = self.entry(place)
            && !std::mem::replace(&mut entry.queued, true)
        {
            let turn = entry.turn;
            self.queue.push_first(place, turn);
        }
    }

    /// A token that is free is so no more.
    pub(super) fn leave(&mut self, place: u32, state: State) {
        let Some(entry) = self.entry(place) else { return };
        if entry.state == State::Free {
            let amount = entry.token.amount;
            entry.state = state;
            self.free.take(amount);
            self.shelves.remove(place, &self.entries);
        }
    }

    /// A token that a selection has no more is what the source has it as.
    pub(super) fn renew(&mut self, place: u32) {
        if let Some(entry) = self.entry(place)
            && let Some(token) = entry.anew.take()
        {
            entry.token = *token;
        }
    }

    /// The source lists a token no more: it is forgotten, or no part of the total any more if a selection has it.
    pub(super) fn unlist(&mut self, place: u32) {
        match self.entry(place) {
            Some(entry) if entry.state == State::Taken => {
                entry.state = State::Leaving;
                let amount = entry.latest().amount;
                entry.anew = None;
                self.total.take(amount);
            }
            Some(entry) if entry.state == State::Leaving => {}
            _ => self.forget(place),
        }
    }

    /// The source said that a token is spent.
    pub(super) fn bar(&mut self, now: Micros, place: u32) {
        let until = now + self.max_age;
        let Some(entry) = self.entry(place) else { return };
        (entry.barred, entry.told) = (until, 0);
        let (state, amount) = (entry.state, entry.token.amount);
        match state {
            State::Taken | State::Leaving => self.unlist(place),
            State::Gone => {}
            State::Spent => self.settle(place, 0),
            State::Free | State::Resting | State::Stale => {
                self.leave(place, State::Spent);
                self.total.take(amount);
                self.settle(place, 0);
            }
        }
    }

    /// No selection has a token any more that the source does not list.
    pub(super) fn depart(&mut self, now: Micros, place: u32) {
        let due = self.due(now);
        match self.entry(place) {
            Some(entry) if entry.barred > due => self.settle(place, 0),
            _ => self.forget(place),
        }
    }

    /// A token that is in nothing else is spent, until then or for as long as the source's word stands.
    pub(super) fn settle(&mut self, place: u32, until: Micros) {
        let Some(entry) = self.entry(place) else { return };
        (entry.state, entry.until) = (State::Spent, until);
        let until = entry.rests_until();
        self.spent.push(Reverse((until, place)));
    }

    pub(super) fn forget(&mut self, place: u32) {
        self.leave(place, State::Gone);
        let Some(entry) = self.entry(place) else { return };
        let counted = !matches!(entry.state, State::Leaving | State::Spent);
        let amount = entry.token.amount;
        entry.state = State::Gone;
        let (id, queued) = (entry.token.id.clone(), entry.queued);
        if self.index.remove(&id).is_none() {
            return;
        }
        if counted {
            self.total.take(amount);
        }
        if queued {
            self.gone += 1;
            self.tidy();
        } else {
            self.vacant.push(place);
        }
    }

    pub(super) fn turn(&self, place: u32) -> u64 {
        self.entries.get(place as usize).map_or(0, |entry| entry.turn)
    }

    pub(super) fn state(&self, place: u32) -> Option<State> {
        self.entries.get(place as usize).map(|entry| entry.state)
    }

    pub(super) fn entry(&mut self, place: u32) -> Option<&mut Entry> {
        self.entries.get_mut(place as usize)
    }
}
