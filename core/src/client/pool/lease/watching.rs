//! Hearing that a lease is lost, or claimed.

use std::sync::Arc;
#[cfg(feature = "crowds")]
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::Ordering::Release;

use futures_channel::oneshot;

use super::{Lease, Life, claimed, lost};
use crate::Micros;
use crate::client::pool::vigil::{Ending, Vigil, Word};
use crate::error::Error;
use crate::runtime::{self, Runtime};
use crate::slots::Loss;
use crate::store::Store;

impl<S: Store, R: Runtime> Lease<S, R> {
    /// Ends when the lease can no longer be relied on, with the reason; with nothing if it was given back in time. It
    /// comes before the store could lease the slot to another, unless this process stands still then: ask
    /// [`Self::is_held`] after a pause.
    pub fn lost(&self) -> impl Future<Output = Option<Error>> + use<S, R> {
        let ended = self.watch().map(|vigil| {
            // It may have ended without anybody looking: then that is told at once.
            if vigil.term().deadline() <= self.core.lease_clock() {
                self.core.lose(&vigil, Ending::Lost(Loss::Expired));
            }
            vigil.ended()
        });
        // What was lost before it was given back stays lost.
        let before = if ended.is_none() { self.check_live().err() } else { None };
        told(self.slot().to_owned(), ended, before)
    }

    /// As [`Self::lost`], but ends with nothing after this time, for languages where a caller cannot stop waiting.
    #[doc(hidden)]
    pub fn lost_within(&self, time: Option<Micros>) -> impl Future<Output = Option<Error>> + use<S, R> {
        runtime::within(self.core.runtime.clone(), time, self.lost())
    }

    /// Whether somebody of higher priority waits for the slot, as far as is known here: the lease is not renewed then.
    pub fn is_claimed(&self) -> bool {
        self.lock().life.term().claimed().is_some()
    }

    /// Ends when somebody of higher priority claims the slot, with the error `claimed`: finish early and give it back. Who
    /// does not holds it until its deadline, which is put off no more while the claimant waits. Ends with nothing if the
    /// lease ends first.
    pub fn claimed(&self) -> impl Future<Output = Option<Error>> + use<S, R> {
        let vigil = self.watch();
        let claimed = vigil.as_ref().map(|vigil| vigil.claimed());
        #[cfg(feature = "crowds")]
        let (waits, mut gone) = oneshot::channel::<()>();
        // A loop that asks in its turns would send as many renewals.
        #[cfg(feature = "crowds")]
        let vigil = vigil.filter(|vigil| !vigil.is_told(self.core.heard_by()));
        // By push where the store can, and otherwise by the next renewal.
        if vigil.is_some() {
            let (core, fence) = (self.core.clone(), self.at.fence);
            self.core.runtime.spawn(async move {
                #[cfg(feature = "crowds")]
                while !core.listen(Micros::MAX).await && !core.room.is_closed() {
                    core.keeper.heed(Some(&[fence]));
                    // Nobody else may listen again, and a holder that does not renew would never hear of a thief.
                    let again = core.deaf_until.load(Relaxed);
                    if runtime::by(&core.runtime, again, &mut gone).await.is_some() {
                        return;
                    }
                }
                #[cfg(not(feature = "crowds"))]
                core.listen(Micros::MAX).await;
                // Of whoever claimed it before, or as it was granted, this process has not heard: it looks.
                core.keeper.heed(Some(&[fence]));
            });
        }
        let told = told(self.slot().to_owned(), claimed, None);
        #[cfg(feature = "crowds")]
        let told = async move {
            let _waits = waits;
            told.await
        };
        told
    }

    /// As [`Self::claimed`], but ends with nothing after this time, for languages where a caller cannot stop waiting.
    #[doc(hidden)]
    pub fn claimed_within(&self, time: Option<Micros>) -> impl Future<Output = Option<Error>> + use<S, R> {
        runtime::within(self.core.runtime.clone(), time, self.claimed())
    }

    /// Has it watched; nothing if it was given back.
    pub(super) fn watch(&self) -> Option<Arc<Vigil>> {
        let mut held = self.lock();
        if !held.open {
            return None;
        }
        if let Life::Alone(term) = held.life {
            held.life = Life::watched(&self.core, &self.at, term, 0, 0, self.core.lease_clock());
            self.watched.store(true, Release);
        }
        held.life.vigil()
    }
}

/// What a holder is told, if it is an error: what was told before, where no word comes any more.
async fn told(slot: String, word: Option<oneshot::Receiver<Word>>, before: Option<Error>) -> Option<Error> {
    let Some(word) = word else { return before };
    match word.await.ok()? {
        Word::Ended(Ending::GivenBack) => None,
        Word::Ended(why) => Some(lost(&slot, why)),
        Word::Claimed(priority) => Some(claimed(&slot, priority)),
    }
}
