//! Those who listen for something, until it concerns them no more.

use std::convert::Infallible;
use std::sync::Mutex;

use futures_channel::oneshot;

use crate::poison::unpoisoned;

/// Any number of listeners, who come and go.
#[derive(Debug, Default)]
pub(super) struct Audience(Mutex<Vec<oneshot::Sender<Infallible>>>);

impl Audience {
    /// Ends as the audience is dismissed.
    pub fn join(&self) -> oneshot::Receiver<Infallible> {
        let (listens, dismissed) = oneshot::channel();
        let mut all = unpoisoned(&self.0);
        if all.len() == all.capacity() {
            // As many may come as are left, so that each pays for one look.
            all.retain(|listens| !listens.is_canceled());
            let left = all.len();
            all.reserve(left + 1);
        }
        all.push(listens);
        dismissed
    }

    /// The same, and at once where it was dismissed before, as this says when one has joined.
    pub fn join_unless(&self, was_dismissed: impl FnOnce() -> bool) -> oneshot::Receiver<Infallible> {
        let dismissed = self.join();
        if was_dismissed() {
            self.dismiss();
        }
        dismissed
    }

    /// Tells all that it concerns them no more.
    pub fn dismiss(&self) {
        // Not under the lock: those who are told run code.
        let all = std::mem::take(&mut *unpoisoned(&self.0));
        drop(all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_left_takes_no_room() {
        let audience = Audience::default();
        let mut stays = audience.join();
        (0..1_000).for_each(|_| drop(audience.join()));
        assert!(audience.0.lock().unwrap().capacity() < 10);
        assert_eq!(stays.try_recv(), Ok(None));
        audience.dismiss();
        assert!(stays.try_recv().is_err());
    }
}
