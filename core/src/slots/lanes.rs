//! The last answer of every lane, so that a repeated envelope is answered and not performed again.

use rustc_hash::FxHashMap;

use super::{Answer, Lane, Performed};
use crate::Micros;

/// How many lanes are kept before those whose time has passed are dropped.
const CROWD: usize = 1_024;

#[derive(Clone, Debug, Default)]
pub(super) struct Lanes(FxHashMap<(u128, u16), Kept>);

#[derive(Clone, Debug)]
struct Kept {
    sequence: u64,
    answer: Performed,
    until: Micros,
}

impl Lanes {
    /// The answer to an envelope of the lane that came before, or that a later one overtook.
    pub(super) fn recall(&self, lane: Lane, now: Micros) -> Option<Answer> {
        let kept = self.0.get(&(lane.client, lane.number)).filter(|kept| kept.until > now)?;
        match lane.sequence.cmp(&kept.sequence) {
            std::cmp::Ordering::Greater => None,
            std::cmp::Ordering::Equal => Some(Answer::Performed(kept.answer.clone())),
            std::cmp::Ordering::Less => Some(Answer::Stale { now }),
        }
    }

    pub(super) fn keep(&mut self, lane: Lane, answer: Performed, now: Micros, until: Micros) {
        if self.0.len() >= CROWD {
            self.0.retain(|_, kept| kept.until > now);
        }
        self.0.insert((lane.client, lane.number), Kept { sequence: lane.sequence, answer, until });
    }
}
