//! How long those who were told to yield took for it lately.

use std::sync::{Mutex, MutexGuard};

use crate::Micros;
use crate::poison::unpoisoned;
use crate::slots::TO_THE_END;

/// So many are remembered: the longest of them is a high quantile of all.
const LATELY: usize = 64;
/// So many times the longest is waited for one that does not yield. One that was robbed counts as if it had yielded
/// then: if holders become slower, the wait grows with them.
const MARGIN: Micros = 2;

/// The handshakes of thieves in one pool: from the moment at which a holder was told until the thief had the slot.
#[derive(Debug, Default)]
pub(in crate::client) struct Yields {
    lately: Mutex<Vec<Micros>>,
}

impl Yields {
    pub fn note(&self, took: Micros) {
        let mut lately = self.lock();
        lately.truncate(LATELY - 1);
        lately.insert(0, took);
    }

    /// The longest handshake of late; 0 if there was none.
    pub fn longest(&self) -> Micros {
        self.lock().iter().copied().max().unwrap_or(0)
    }

    /// How long a thief with this stolen consistency factor waits for a holder whose lease lives for `ttl`: for this part
    /// of the time to live, or for less where holders are known to yield sooner.
    pub fn patience(&self, factor: f64, ttl: Micros) -> Micros {
        if factor >= 1.0 {
            return TO_THE_END;
        }
        let part = (ttl as f64 * factor) as Micros;
        match self.longest() {
            0 => part,
            longest => part.min(longest.saturating_mul(MARGIN)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Micros>> {
        unpoisoned(&self.lately)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_for_a_victim_adapts_to_those_before_it() {
        let yields = Yields::default();
        assert_eq!((yields.patience(1.0, 1_000), yields.patience(0.5, 1_000)), (TO_THE_END, 500));
        assert_eq!((yields.patience(0.0, 1_000), yields.longest()), (0, 0));
        yields.note(100);
        yields.note(40);
        assert_eq!(
            (yields.longest(), yields.patience(0.5, 1_000), yields.patience(0.1, 1_000)),
            (100, 200, 100)
        );
        // Who does not yield in time counts with the time that was given, so that it grows.
        yields.note(200);
        assert_eq!(yields.patience(0.5, 1_000), 400);
        assert_eq!(yields.patience(1.0, 1_000), TO_THE_END);
        for _ in 0..LATELY {
            yields.note(10);
        }
        assert_eq!(yields.patience(0.5, 1_000), 20);
    }
}
