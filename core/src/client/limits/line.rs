//! Those of this process who wait for the same limits: one of them asks, the others wait for their turn.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use futures_channel::oneshot;

use crate::id::Name;
use crate::poison::unpoisoned;
use crate::{MILLISECOND, Micros};

/// By how much those may differ who know when a period begins: each was told so by an answer of its own.
const TOGETHER: Micros = 50 * MILLISECOND;

/// A line, by priority, then by arrival.
#[derive(Debug, Default)]
pub(super) struct Line {
    state: Mutex<State>,
    /// How many have arrived, in all lines of a lobby.
    arrived: Arc<AtomicU64>,
}

#[derive(Debug, Default)]
struct State {
    waiting: BTreeMap<Rank, Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    caller: Option<oneshot::Sender<()>>,
    /// Until when it lets those behind go first, unless something changes.
    aside: Option<Micros>,
    /// Which limit refused it last; nothing before it has asked, and while it asks.
    refused_by: Option<Name>,
    /// Whether only the store can answer it.
    needs_store: bool,
}

/// By priority, then by arrival.
pub(super) type Rank = (Reverse<i16>, u64);

/// A place in a line, given up as it is dropped: then the next one's turn has come.
#[derive(Debug)]
pub(super) struct Place {
    line: Arc<Line>,
    rank: Rank,
}

impl Line {
    /// One of the lobby in which so many have arrived.
    pub fn of(arrived: Arc<AtomicU64>) -> Self {
        Line { state: Mutex::default(), arrived }
    }

    /// Takes a place, of one whom only the store can answer, or this process too.
    pub fn enter(self: Arc<Self>, priority: i16, needs_store: bool) -> Place {
        let mut state = self.lock();
        let rank = (Reverse(priority), self.arrived.fetch_add(1, Relaxed));
        state.waiting.insert(rank, Waiting { needs_store, ..Waiting::default() });
        drop(state);
        Place { line: self, rank }
    }

    /// Who stands here first, whether or not it stands aside.
    pub fn first(&self) -> Option<Rank> {
        self.lock().waiting.keys().next().copied()
    }

    /// Whether more of this limit may help one whose turn it is or was: those who stand aside, or the first who does not.
    pub fn may_be_helped_by(&self, limit: &Name) -> bool {
        let state = self.lock();
        let aside = state.waiting.values().filter(|waiting| waiting.aside.is_some());
        let first = state.first().map(|(_, waiting)| waiting);
        let helped =
            |waiting: &Waiting| waiting.refused_by.as_ref().is_none_or(|refused_by| refused_by == limit);
        aside.chain(first).any(helped)
    }

    /// Something has changed: nobody stands aside any more, and the first looks now.
    pub fn nudge(&self) {
        let mut state = self.lock();
        state.waiting.values_mut().for_each(|waiting| waiting.aside = None);
        call(state);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        unpoisoned(&self.state)
    }
}

impl Place {
    /// Waits until nobody stands before this place; `false` where the wait is [called off](Self::call_off) before.
    pub async fn turn(&self, now: impl Fn() -> Micros) -> bool {
        while let Some(called) = self.unless_first(now()) {
            if called.await.is_err() {
                return false;
            }
        }
        true
    }

    /// Nobody who needs the store is to wait on without a look at why it does not answer. The others would only ask in turns what this
    /// process allows.
    pub fn call_off(&self) {
        let mut state = self.line.lock();
        let those = state.waiting.values_mut().filter(|waiting| waiting.needs_store);
        let callers: Vec<_> = those.map(|waiting| waiting.caller.take()).collect();
        drop(state);
        drop(callers);
    }

    /// Hears when this place is to look again: when it is first, or was told to.
    pub fn called(&self) -> oneshot::Receiver<()> {
        self.line.lock().hear(self.rank)
    }

    /// Which limit refused it; nothing before it asks, so that it hears of all that changes as it does.
    pub fn set_refused_by(&self, limit: Option<&Name>) {
        if let Some(waiting) = self.line.lock().waiting.get_mut(&self.rank) {
            waiting.refused_by = limit.cloned();
        }
    }

    /// Lets those behind go first until then, who take nothing before it that could be had here.
    pub fn step_aside(&self, until: Micros) {
        let mut state = self.line.lock();
        if let Some(waiting) = state.waiting.get_mut(&self.rank) {
            waiting.aside = Some(until);
        }
        call(state);
    }

    fn unless_first(&self, now: Micros) -> Option<oneshot::Receiver<()>> {
        let mut state = self.line.lock();
        if let Some(waiting) = state.waiting.get_mut(&self.rank) {
            waiting.aside = None;
        }
        // All step back at the same time: whoever is first then comes by itself in a moment.
        let is_there = |waiting: &Waiting| waiting.aside.is_none_or(|until| until <= now + TOGETHER);
        let first = state.waiting.iter().find(|(_, waiting)| is_there(waiting));
        if first.is_none_or(|(first, _)| *first == self.rank) {
            return None;
        }
        Some(state.hear(self.rank))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.line.lock();
        state.waiting.remove(&self.rank);
        // Who leaves from behind another changes nothing for that one.
        if state.first().is_some_and(|(first, _)| *first > self.rank) {
            call(state);
        }
    }
}

/// Calls the first.
fn call(mut state: MutexGuard<'_, State>) {
    let first = state.waiting.values_mut().find(|waiting| waiting.aside.is_none());
    let caller = first.and_then(|first| first.caller.take());
    drop(state);
    if let Some(caller) = caller {
        // One that has left has dropped its end.
        let _ = caller.send(());
    }
}

impl State {
    /// The first who does not stand aside.
    fn first(&self) -> Option<(&Rank, &Waiting)> {
        self.waiting.iter().find(|(_, waiting)| waiting.aside.is_none())
    }

    fn hear(&mut self, rank: Rank) -> oneshot::Receiver<()> {
        let (caller, called) = oneshot::channel();
        if let Some(waiting) = self.waiting.get_mut(&rank) {
            waiting.caller = Some(caller);
        }
        called
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::SECOND;

    // Each was told by an answer of its own when a period begins, and whoever's timer was the first took what there is.
    #[test]
    fn those_who_step_aside_come_back_in_their_order() {
        const BEGINS: Micros = 1_000 * MILLISECOND;
        let line = Arc::new(Line::default());
        let (first, second) = (line.clone().enter(5, false), line.clone().enter(0, false));
        let has_turn = |place: &Place, now| place.turn(|| now).now_or_never().is_some();
        assert!(!has_turn(&second, 0) && has_turn(&first, 0));
        first.step_aside(BEGINS + 20 * MILLISECOND);
        assert!(has_turn(&second, MILLISECOND), "of what is left of the period");
        second.step_aside(BEGINS);
        assert!(!has_turn(&second, BEGINS));
        assert!(has_turn(&first, BEGINS + 20 * MILLISECOND));
        drop(first);
        assert!(has_turn(&second, BEGINS + 20 * MILLISECOND));
        // Who does not come by then is waited for no longer than it stands here.
        let third = line.clone().enter(-5, false);
        second.step_aside(2 * BEGINS);
        assert!(has_turn(&third, BEGINS) && !has_turn(&third, 3 * BEGINS));
        line.nudge();
        assert!(has_turn(&second, BEGINS) && !has_turn(&third, BEGINS));
    }

    // Whoever left had the first ask the store at once, in vain.
    #[test]
    fn who_leaves_calls_the_first_only_if_it_stood_before_that() {
        let line = Arc::new(Line::default());
        let [first, second, third] = [2, 1, 0].map(|priority| line.clone().enter(priority, false));
        let mut called = [&first, &second].map(Place::called);
        let mut heard = || called.each_mut().map(|called| called.now_or_never().is_some());
        drop(third);
        assert_eq!(heard(), [false, false]);
        drop(first);
        assert_eq!(heard(), [true, true], "the one has left, and the other is called");
        let third = line.clone().enter(0, false);
        second.step_aside(SECOND);
        let mut called = third.called();
        drop(line.clone().enter(9, false));
        assert!(called.try_recv().unwrap().is_some(), "nobody stands before it");
    }

    // Each who waits for a limit was called by whatever changed of all that it charges, and asked in vain.
    #[test]
    fn those_are_helped_by_a_limit_whom_it_refused_or_who_have_not_asked() {
        let (budget, rate) = (Name::new("budget").unwrap(), Name::new("rate").unwrap());
        let line = Arc::new(Line::default());
        let helped = || [&budget, &rate].map(|limit| line.may_be_helped_by(limit));
        assert_eq!(helped(), [false, false], "nobody waits");
        let (first, second) = (line.clone().enter(5, false), line.clone().enter(0, false));
        assert_eq!(helped(), [true, true], "it may be refused by either");
        first.set_refused_by(Some(&budget));
        assert_eq!(helped(), [true, false]);
        // It stands aside, and who comes after it is refused by another.
        first.step_aside(SECOND);
        second.set_refused_by(Some(&rate));
        assert_eq!(helped(), [true, true]);
        // Also behind one who came later, and whom another refused.
        let higher = line.clone().enter(9, false);
        higher.set_refused_by(Some(&rate));
        assert_eq!(helped(), [true, true]);
        drop(higher);
        drop(first);
        assert_eq!(helped(), [false, true]);
        second.set_refused_by(None);
        assert_eq!(helped(), [true, true], "it asks");
    }
}
