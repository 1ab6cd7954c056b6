//! What a proxy does wrong at the moment.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The faults of a proxy and what has gone through it, shared by all its threads.
#[derive(Debug, Default)]
pub(crate) struct FaultState {
    faults: Mutex<Faults>,
    changed: Condvar,
    pub(crate) connections: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) request_chunks: AtomicU64,
    pub(crate) reply_chunks: AtomicU64,
    pub(crate) dropped_replies: AtomicU64,
    pub(crate) duplicated_requests: AtomicU64,
}

#[derive(Debug, Default)]
struct Faults {
    stalled: bool,
    delay: Duration,
    replies_to_drop: usize,
    duplicates: bool,
}

/// What becomes of a chunk of replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Forward,
    Swallow,
    /// Swallow it, and close the connections that have lost replies.
    SwallowLast,
}

/// Long enough to cost nothing, short enough that a closed connection is noticed.
const RECHECK: Duration = Duration::from_millis(50);

impl FaultState {
    pub(crate) fn stall(&self) {
        self.lock().stalled = true;
    }

    pub(crate) fn delay(&self, delay: Duration) {
        self.lock().delay = delay;
    }

    pub(crate) fn drop_replies(&self, chunks: usize) {
        self.lock().replies_to_drop = chunks;
    }

    pub(crate) fn duplicate_next(&self) {
        self.lock().duplicates = true;
    }

    pub(crate) fn heal(&self) {
        *self.lock() = Faults::default();
        self.changed.notify_all();
    }

    /// Wakes the threads that wait, so that they see that their connection has been closed.
    pub(crate) fn wake(&self) {
        self.changed.notify_all();
    }

    /// Holds a chunk that came then back as long as the proxy stalls, and until its delay is over.
    pub(crate) fn hold(&self, came: Instant, closed: &AtomicBool) {
        let mut faults = self.lock();
        while faults.stalled && !closed.load(Ordering::Acquire) {
            let waited = self.changed.wait_timeout(faults, RECHECK).unwrap_or_else(PoisonError::into_inner);
            faults = waited.0;
        }
        let delay = faults.delay;
        drop(faults);
        std::thread::sleep((came + delay).saturating_duration_since(Instant::now()));
    }

    /// Judges a chunk of replies; a connection that has lost one loses all that follow.
    pub(crate) fn judge(&self, deaf: bool) -> Verdict {
        let mut faults = self.lock();
        if faults.replies_to_drop == 0 {
            return if deaf { Verdict::Swallow } else { Verdict::Forward };
        }
        faults.replies_to_drop -= 1;
        self.dropped_replies.fetch_add(1, Ordering::Relaxed);
        if faults.replies_to_drop == 0 { Verdict::SwallowLast } else { Verdict::Swallow }
    }

    /// Whether the request at hand is the one to be sent twice.
    pub(crate) fn takes_duplicate(&self) -> bool {
        std::mem::take(&mut self.lock().duplicates)
    }

    fn lock(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_dropped_as_often_as_asked() {
        let state = FaultState::default();
        assert_eq!(state.judge(false), Verdict::Forward);
        state.drop_replies(2);
        assert_eq!(state.judge(false), Verdict::Swallow);
        assert_eq!(state.judge(true), Verdict::SwallowLast);
        assert_eq!(state.judge(true), Verdict::Swallow);
        assert_eq!(state.judge(false), Verdict::Forward);
        assert_eq!(state.dropped_replies.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_request_is_duplicated_once() {
        let state = FaultState::default();
        state.duplicate_next();
        assert!(state.takes_duplicate());
        assert!(!state.takes_duplicate());
        state.duplicate_next();
        state.heal();
        assert!(!state.takes_duplicate());
    }

    #[test]
    fn a_closed_connection_is_not_held() {
        let state = FaultState::default();
        state.stall();
        state.hold(Instant::now(), &AtomicBool::new(true));
        state.heal();
        state.delay(Duration::from_millis(20));
        let begun = Instant::now();
        state.hold(begun, &AtomicBool::new(false));
        assert!(begun.elapsed() >= Duration::from_millis(20));
        state.delay(Duration::from_secs(3600));
        state.hold(begun - Duration::from_secs(3600), &AtomicBool::new(false));
    }
}
