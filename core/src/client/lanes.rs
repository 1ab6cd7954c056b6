//! The lanes of one client to one store: which envelope sets out when.

use std::ops::Range;

use crate::{Micros, SECOND};

/// The most envelopes under way at once.
const MOST: usize = 8;
/// Another envelope sets out while one is under way only when that has taken so long, or when [`Lanes`]' crowd waits: a
/// near server and this process work at the same time on few large ones, a far server on several. Both quadruple with
/// every envelope that is under way.
const PATIENCE: Micros = 300;
/// A lane that has not taken what waits by then holds up no other: whoever drives it stands still, or is gone.
const LOADING: Micros = SECOND / 10;
/// Fewer are not worth two envelopes, and more fill them anyway.
const FEW: Range<usize> = 8..32;

/// Numbered lanes, in each of which one envelope at a time is under way. So many requests that wait are a crowd.
#[derive(Debug, Default)]
pub(super) struct Lanes<const CROWD: usize> {
    lanes: Vec<Lane>,
}

#[derive(Debug, Default)]
struct Lane {
    sequence: u64,
    course: Course,
}

/// What a lane is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Course {
    #[default]
    Rests,
    /// Since then it is to take what waits, as soon as those who are about to ask have done so.
    Loads(Micros),
    /// Its envelope was sent then.
    Away(Micros),
}

impl<const CROWD: usize> Lanes<CROWD> {
    /// A lane that is to load, if so many requests should not wait for one that is under way. In times of trouble one is
    /// enough.
    pub fn for_more(&mut self, waiting: usize, now: Micros, troubled: bool) -> Option<u16> {
        let (mut away, mut youngest) = (0, 0);
        for lane in &self.lanes {
            match lane.course {
                // Whose answer has just come, or who sets out now: another would leave with a part of what it takes.
                Course::Loads(since) if now < since + LOADING => return None,
                Course::Rests | Course::Loads(_) => {}
                Course::Away(since) => (away, youngest) = (away + 1, youngest.max(since)),
            }
        }
        if away > 0 {
            let grown = 2 * (away - 1);
            let crowded = waiting >= CROWD << grown;
            if troubled || (now < youngest + (PATIENCE << grown) && !crowded) {
                return None;
            }
        }
        self.another(now)
    }

    /// Whether of so many that wait a lane is to take half only, and the others to set out in [`Self::another`] at once. So
    /// it is with a few where nothing is under way: then the server works on one half while this process does on the other.
    /// Else both would wait for each other by turns.
    pub fn halves(&self, waiting: usize, troubled: bool) -> bool {
        let alone = || !self.lanes.iter().any(|lane| matches!(lane.course, Course::Away(_)));
        // There is one thread in wasm, and no room for this.
        !cfg!(target_family = "wasm") && !troubled && FEW.contains(&waiting) && alone()
    }

    /// A lane that rests, which is to load.
    pub fn another(&mut self, now: Micros) -> Option<u16> {
        let at = match self.lanes.iter().position(|lane| lane.course == Course::Rests) {
            Some(at) => at,
            None if self.lanes.len() < MOST => {
                self.lanes.push(Lane::default());
                self.lanes.len() - 1
            }
            None => return None,
        };
        self.load(at as u16, now);
        Some(at as u16)
    }

    /// Its answer has come: it takes what is asked for from here on.
    pub fn load(&mut self, lane: u16, now: Micros) {
        self.set(lane, Course::Loads(now));
    }

    /// It has taken what waited, and sets out with it; it rests if that was nothing.
    pub fn set_out(&mut self, lane: u16, with: usize, now: Micros) {
        self.set(lane, if with == 0 { Course::Rests } else { Course::Away(now) });
    }

    /// The number of the next envelope of a lane.
    pub fn next(&mut self, lane: u16) -> u64 {
        self.lanes.get_mut(usize::from(lane)).map_or(0, |lane| {
            lane.sequence += 1;
            lane.sequence
        })
    }

    fn set(&mut self, lane: u16, course: Course) {
        if let Some(lane) = self.lanes.get_mut(usize::from(lane)) {
            lane.course = course;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Four = Lanes<4>;

    #[test]
    fn one_envelope_is_enough_until_it_takes_long_or_a_crowd_waits() {
        let mut lanes = Four::default();
        assert_eq!(lanes.for_more(1, 10, false), Some(0));
        lanes.set_out(0, 1, 10);
        assert_eq!(lanes.for_more(3, 9 + PATIENCE, false), None);
        assert_eq!(lanes.for_more(3, 10 + PATIENCE, true), None, "in times of trouble");
        assert_eq!(lanes.for_more(3, 10 + PATIENCE, false), Some(1));
        lanes.set_out(1, 3, 20 + PATIENCE);
        // Of the third, four times as much is asked.
        assert_eq!(lanes.for_more(15, 19 + 5 * PATIENCE, false), None);
        assert_eq!(lanes.for_more(16, 19 + 5 * PATIENCE, false), Some(2));
        lanes.set_out(2, 0, 30);
        assert_eq!(lanes.for_more(1, 20 + 5 * PATIENCE, false), Some(2));
    }

    /// The first of those who were answered set out alone, in an envelope of its own, and the rest behind it.
    #[test]
    fn nothing_sets_out_beside_a_lane_that_is_about_to() {
        let mut lanes = Four::default();
        assert_eq!(lanes.for_more(1, 0, false), Some(0));
        assert_eq!(lanes.for_more(100, 0, false), None, "it takes them");
        lanes.set_out(0, 32, 0);
        assert_eq!(lanes.for_more(68, 0, false), Some(1), "it left with what it could carry");
        lanes.set_out(1, 32, 0);
        lanes.load(0, 9 * PATIENCE);
        assert_eq!(lanes.for_more(100, 10 * PATIENCE, false), None, "its answer has come");
        let late = 9 * PATIENCE + LOADING;
        assert_eq!(lanes.for_more(100, late, false), Some(2), "nobody drives it");
    }

    #[test]
    fn a_few_that_wait_alone_set_out_by_halves() {
        let mut lanes = Four::default();
        assert_eq!(lanes.for_more(20, 0, false), Some(0));
        assert!(lanes.halves(8, false) && lanes.halves(31, false));
        assert!(!lanes.halves(7, false) && !lanes.halves(32, false));
        assert!(!lanes.halves(20, true), "in times of trouble");
        lanes.set_out(0, 10, 0);
        assert_eq!(lanes.another(0), Some(1));
        assert!(!lanes.halves(10, false), "the other half");
    }

    #[test]
    fn no_more_than_eight_are_under_way_and_each_counts_for_itself() {
        let mut lanes = Four::default();
        for number in 0..8 {
            assert_eq!(lanes.for_more(usize::MAX, Micros::MAX >> 20, false), Some(number));
            lanes.set_out(number, 1, 0);
        }
        assert_eq!(lanes.for_more(usize::MAX, Micros::MAX >> 20, false), None);
        assert_eq!((lanes.next(0), lanes.next(0), lanes.next(7)), (1, 2, 1));
    }
}
