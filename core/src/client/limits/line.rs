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
    waiting: BTreeMap<Rank, Option<oneshot::Sender<()>>>,
    /// Who let those behind go first, until something changes.
    aside: BTreeMap<Rank, Option<oneshot::Sender<()>>>,
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
        state.waiting.insert(rank, None);
        drop(state);
        Place { line: self, rank }
    }

    /// Something has changed: all stand in line again, and the first looks now.
    pub fn nudge(&self) {
        let mut state = self.lock();
        let mut aside = std::mem::take(&mut state.aside);
        state.waiting.append(&mut aside);
        drop(state);
        self.call();
    }

    /// Calls the first.
    fn call(&self) {
        let caller = self.lock().waiting.first_entry().and_then(|mut first| first.get_mut().take());
        if let Some(caller) = caller {
            // One that has left has dropped its end.
            let _ = caller.send(());
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Waits until nobody stands before this place.
    pub async fn turn(&self) {
        self.step_back();
        while let Some(called) = self.unless_first() {
            let _ = called.await;
        }
    }

    /// Hears when this place is to look again: when it is first, or was told to.
    pub fn called(&self) -> oneshot::Receiver<()> {
        let (caller, called) = oneshot::channel();
        self.line.lock().waiting.insert(self.rank, Some(caller));
        called
    }

    /// Lets those behind go first, who take nothing that could be had here.
    pub fn step_aside(&self) {
        let mut state = self.line.lock();
        if let Some(called) = state.waiting.remove(&self.rank) {
            state.aside.insert(self.rank, called);
        }
        drop(state);
        self.line.call();
    }

    fn step_back(&self) {
        let mut state = self.line.lock();
        if let Some(called) = state.aside.remove(&self.rank) {
            state.waiting.insert(self.rank, called);
        }
    }

    fn unless_first(&self) -> Option<oneshot::Receiver<()>> {
        let mut state = self.line.lock();
        if state.waiting.first_key_value().is_none_or(|(first, _)| *first == self.rank) {
            return None;
        }
        let (caller, called) = oneshot::channel();
        state.waiting.insert(self.rank, Some(caller));
        Some(called)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut state = self.line.lock();
        state.aside.remove(&self.rank);
        state.waiting.remove(&self.rank);
        drop(state);
        self.line.call();
    }
}
