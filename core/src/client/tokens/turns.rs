//! Who of this process pauses, in the order in which they came.
//!
//! What comes free here goes to the first for whom it suffices. Whoever came long ago, or has looked at what is free in
//! vain, holds nobody up; one who came a moment ago and wants more than there is does: else those who want little would
//! take from it, again and again, what comes free piece by piece.

use std::collections::BTreeMap;

use futures_channel::oneshot;

use crate::tokens::{Amount, Total};
use crate::{Micros, SECOND};

/// For how long since it came one that pauses holds up those behind it.
const PRECEDENCE: Micros = SECOND / 4;

/// Those who pause.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// By turn.
    waiting: BTreeMap<u64, Waiting>,
    last: u64,
    /// How often something came free.
    freed: u64,
}

/// One who may have to pause.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Its place among all.
    pub number: u64,
    /// What it wants.
    pub target: Amount,
    /// When it came.
    pub since: Micros,
}

#[derive(Debug)]
struct Waiting {
    turn: Turn,
    /// How often something had come free when it looked last.
    looked: Option<u64>,
    /// Nothing once it was called: what it wants is its own until it has looked.
    bell: Option<oneshot::Sender<()>>,
}

impl Turns {
    /// The turn of one who comes.
    pub fn take(&mut self, target: Amount, since: Micros) -> Turn {
        self.last += 1;
        Turn { number: self.last, target, since }
    }

    /// Something came free.
    pub fn note_freed(&mut self) {
        self.freed += 1;
    }

    /// How often something came free.
    pub fn freed(&self) -> u64 {
        self.freed
    }

    /// How many pause.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// One pauses that has looked when something had come free so often, or has not looked at all. It is called by what
    /// this gives.
    pub fn pause(&mut self, turn: Turn, looked: Option<u64>) -> oneshot::Receiver<()> {
        let (bell, called) = oneshot::channel();
        self.waiting.insert(turn.number, Waiting { turn, looked, bell: Some(bell) });
        called
    }

    /// One pauses no more.
    pub fn leave(&mut self, turn: Turn) {
        self.waiting.remove(&turn.number);
    }

    /// The bell of the first for whom it suffices what is free. If nobody is there to hear it the next has its turn.
    pub fn call(&mut self, now: Micros, free: Total) -> Option<oneshot::Sender<()>> {
        let freed = self.freed;
        // Of what is free those who are called have theirs.
        let mut wanted = Total::default();
        for waiting in self.waiting.values_mut() {
            let mut with = wanted;
            with.add(waiting.turn.target);
            if waiting.bell.is_none() {
                wanted = with;
            } else if with > free {
                if now < waiting.turn.since.saturating_add(PRECEDENCE) {
                    return None;
                }
            } else if waiting.looked.is_none_or(|looked| looked < freed) {
                let bell = waiting.bell.take().filter(|bell| !bell.is_canceled());
                if bell.is_some() {
                    return bell;
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some who pause, by what they want and when they came, and have not looked since something came free.
    fn paused(all: &[(u64, Micros)]) -> (Turns, Vec<(Turn, oneshot::Receiver<()>)>) {
        let mut turns = Turns::default();
        turns.note_freed();
        let mut pause = |&(target, since): &(u64, Micros)| {
            let turn = turns.take(target.into(), since);
            (turn, turns.pause(turn, Some(0)))
        };
        let bells = all.iter().map(&mut pause).collect();
        (turns, bells)
    }

    fn call(turns: &mut Turns, bells: &mut [(Turn, oneshot::Receiver<()>)], free: u64) -> Option<usize> {
        if let Some(bell) = turns.call(SECOND, [free.into()].into_iter().collect()) {
            bell.send(()).expect("somebody hears it");
        }
        bells.iter_mut().position(|(_, bell)| bell.try_recv() == Ok(Some(())))
    }

    #[test]
    fn the_first_for_whom_it_suffices_is_called_and_what_it_wants_is_its_own() {
        let (mut turns, mut bells) = paused(&[(5, 0), (3, 0), (3, 0)]);
        assert_eq!(call(&mut turns, &mut bells, 2), None);
        assert_eq!(call(&mut turns, &mut bells, 6), Some(0));
        assert_eq!(call(&mut turns, &mut bells, 6), None, "1 is left");
        assert_eq!(call(&mut turns, &mut bells, 8), Some(1));
        turns.leave(bells[0].0);
        assert_eq!((call(&mut turns, &mut bells, 6), turns.len()), (Some(2), 2));
    }

    #[test]
    fn who_came_a_moment_ago_is_not_passed_over_and_who_came_long_ago_is() {
        let (mut turns, mut bells) = paused(&[(9, SECOND - PRECEDENCE + 1), (3, SECOND)]);
        assert_eq!(call(&mut turns, &mut bells, 5), None);
        let (mut turns, mut bells) = paused(&[(9, SECOND - PRECEDENCE), (3, SECOND)]);
        assert_eq!(call(&mut turns, &mut bells, 5), Some(1));
        assert_eq!(call(&mut turns, &mut bells, 12), Some(0));
    }

    #[test]
    fn who_has_looked_in_vain_is_called_when_something_comes_free_and_holds_nobody_up() {
        let (mut turns, mut bells) = paused(&[(5, SECOND), (5, SECOND)]);
        assert_eq!(call(&mut turns, &mut bells, 9), Some(0));
        // What is free suffices, but not for its strategy.
        let first = bells[0].0;
        bells[0].1 = turns.pause(first, Some(turns.freed()));
        assert_eq!(call(&mut turns, &mut bells, 9), Some(1));
        let second = bells[1].0;
        bells[1].1 = turns.pause(second, Some(turns.freed()));
        assert_eq!(call(&mut turns, &mut bells, 9), None, "they do not call each other for ever");
        turns.note_freed();
        assert_eq!(call(&mut turns, &mut bells, 9), Some(0));
    }

    #[test]
    fn who_has_gone_is_passed_over() {
        let (mut turns, mut bells) = paused(&[(5, SECOND), (5, SECOND)]);
        drop(bells.remove(0));
        assert_eq!(call(&mut turns, &mut bells, 5), Some(0));
    }
}
