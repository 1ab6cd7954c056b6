//! Those of this process who wait for the same limits: one of them asks, the others wait for their turn.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot;

/// A line, by priority, then by arrival.
#[derive(Debug, Default)]
pub(super) struct Line(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    arrived: u64,
    waiting: BTreeMap<Rank, Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    caller: Option<oneshot::Sender<()>>,
    /// It lets those behind go first, until something changes.
    aside: bool,
}

type Rank = (Reverse<i16>, u64);

/// A place in a line, given up as it is dropped: then the next one's turn has come.
#[derive(Debug)]
pub(super) struct Place {
    line: Arc<Line>,
    rank: Rank,
}

impl Line {
    pub fn enter(self: Arc<Self>, priority: i16) -> Place {
        let mut state = self.lock();
        state.arrived += 1;
        let rank = (Reverse(priority), state.arrived);
        state.waiting.insert(rank, Waiting::default());
        drop(state);
        Place { line: self, rank }
    }

    /// Something has changed: nobody stands aside any more, and the first looks now.
    pub fn nudge(&self) {
        let mut state = self.lock();
        state.waiting.values_mut().for_each(|waiting| waiting.aside = false);
        call(state);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Waits until nobody stands before this place.
    pub async fn turn(&self) {
        while let Some(called) = self.unless_first() {
            let _ = called.await;
        }
    }

    /// Hears when this place is to look again: when it is first, or was told to.
    pub fn called(&self) -> oneshot::Receiver<()> {
        self.line.lock().hear(self.rank)
    }

    /// Lets those behind go first, who take nothing that could be had here.
    pub fn step_aside(&self) {
        let mut state = self.line.lock();
        if let Some(waiting) = state.waiting.get_mut(&self.rank) {
            waiting.aside = true;
        }
        call(state);
    }

    fn unless_first(&self) -> Option<oneshot::Receiver<()>> {
        let mut state = self.line.lock();
        if let Some(waiting) = state.waiting.get_mut(&self.rank) {
            waiting.aside = false;
        }
        let first = state.waiting.iter().find(|(_, waiting)| !waiting.aside);
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
        call(state);
    }
}

/// Calls the first.
fn call(mut state: MutexGuard<'_, State>) {
    let first = state.waiting.values_mut().find(|waiting| !waiting.aside);
    let caller = first.and_then(|first| first.caller.take());
    drop(state);
    if let Some(caller) = caller {
        // One that has left has dropped its end.
        let _ = caller.send(());
    }
}

impl State {
    fn hear(&mut self, rank: Rank) -> oneshot::Receiver<()> {
        let (caller, called) = oneshot::channel();
        if let Some(waiting) = self.waiting.get_mut(&rank) {
            waiting.caller = Some(caller);
        }
        called
    }
}
