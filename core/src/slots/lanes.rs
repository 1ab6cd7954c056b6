//! The last answer of every lane, so that a repeated envelope is answered and not performed again.

use super::{Answer, Lane, Performed};
use crate::Micros;

/// How many lanes are kept before those whose time has passed are dropped.
const CROWD: usize = 1_024;

/// In a list: who shares a pool's memory asks it without an envelope.
#[derive(Clone, Debug, Default)]
pub(super) struct Lanes(Vec<Kept>);

#[derive(Clone, Debug)]
struct Kept {
    lane: Lane,
    answer: Performed,
    until: Micros,
}

impl Lanes {
    /// The answer to an envelope of the lane that came before, or that a later one overtook.
    pub(super) fn recall(&self, lane: Lane, now: Micros) -> Option<Answer> {
        let kept = self.0.iter().find(|kept| kept.is_of(lane)).filter(|kept| kept.until > now)?;
        match lane.sequence.cmp(&kept.lane.sequence) {
            std::cmp::Ordering::Greater => None,
            std::cmp::Ordering::Equal => Some(Answer::Performed(kept.answer.clone())),
            std::cmp::Ordering::Less => Some(Answer::Stale { now }),
        }
    }

    pub(super) fn keep(&mut self, lane: Lane, answer: Performed, now: Micros, until: Micros) {
        if self.0.len() >= CROWD {
            self.0.retain(|kept| kept.until > now);
        }
        let kept = Kept { lane, answer, until };
        match self.0.iter_mut().find(|kept| kept.is_of(lane)) {
            Some(before) => *before = kept,
            None => self.0.push(kept),
        }
    }
}

impl Kept {
    fn is_of(&self, lane: Lane) -> bool {
        (self.lane.client, self.lane.number) == (lane.client, lane.number)
    }
}
