//! Whether a thread that waits for an answer looks for it again and again, or sleeps until it comes.
//!
//! To fall asleep and be woken takes a thread longer than a near store does to answer. So it looks for a moment first, where others
//! run at the same time and the answer before came within that moment.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use super::boot_time;
use crate::Micros;

/// So long one looks: what a near store and a thread that is slow to wake up take together.
const BRIEF: Micros = 250;
/// Of so many waits that are longer one looks all the same. Where threads are slow to wake up none ever seems to be short.
const TRIED: usize = 32;

/// What the waits before tell of the next.
#[derive(Debug)]
pub(super) struct Alertness {
    /// How many waits there were since a brief one.
    long: AtomicUsize,
}

impl Alertness {
    /// Looks only after the first wait that was brief.
    pub fn new() -> Self {
        Alertness { long: AtomicUsize::new(1) }
    }

    /// Whether the next wait may be brief, and is looked for.
    pub fn is_high(&self) -> bool {
        self.long.load(Relaxed).is_multiple_of(TRIED) && is_parallel()
    }

    /// A wait that began then is over.
    pub fn waited(&self, since: Micros) {
        match is_brief(since) {
            true => self.long.store(0, Relaxed),
            false => drop(self.long.fetch_add(1, Relaxed)),
        }
    }
}

/// Whether so little time has passed since then that one may go on to look.
pub(super) fn is_brief(since: Micros) -> bool {
    boot_time() < since + BRIEF
}

/// Whether others run while a thread of this process looks. Nobody looks else.
pub fn is_parallel() -> bool {
    static PARALLEL: OnceLock<bool> = OnceLock::new();
    // To ask the system takes longer than a near store does to answer.
    *PARALLEL.get_or_init(|| thread::available_parallelism().is_ok_and(|processors| processors.get() > 1))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A thread slept, and was woken, which took longer than a near store to answer.
    #[test]
    fn only_after_a_brief_wait_one_looks_or_once_in_a_while() {
        let alertness = Alertness::new();
        assert!(!alertness.is_high());
        let brief = || alertness.waited(boot_time() + crate::SECOND);
        let long = || alertness.waited(boot_time() - BRIEF);
        brief();
        assert_eq!(alertness.is_high(), is_parallel());
        for _ in 1..TRIED {
            long();
            assert!(!alertness.is_high());
        }
        long();
        assert_eq!(alertness.is_high(), is_parallel(), "one is tried");
        long();
        assert!(!alertness.is_high());
    }

    #[test]
    fn one_looks_for_a_moment() {
        assert!(is_brief(boot_time() + crate::SECOND));
        let began = boot_time();
        thread::sleep(Duration::from_micros(BRIEF));
        assert!(!is_brief(began));
    }
}
