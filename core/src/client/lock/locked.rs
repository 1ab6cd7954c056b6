//! A lock that is held, alone or by several who share it.

use std::fmt;
#[cfg(feature = "crowds")]
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use futures_util::FutureExt;

use super::holding::{Several, claimed, fence, loss_only, lost, release, remaining};
use crate::Micros;
use crate::client::Lease;
#[cfg(feature = "crowds")]
use crate::client::audience::Audience;
use crate::client::builders::micros;
use crate::error::{Code, Error, Result};
use crate::id::SlotId;
use crate::poison::unpoisoned;
use crate::runtime::{self, BoxedFuture, Runtime};
use crate::store::Store;

/// A lock that is held. Dropped, it is given back.
pub struct Locked<S: Store, R: Runtime> {
    runtime: R,
    names: Arc<[SlotId]>,
    fence: u64,
    /// Nothing once it was given back.
    holding: Mutex<Option<Arc<Holding<S, R>>>>,
    /// Those who hear of its end by this one of all who share it.
    #[cfg(feature = "crowds")]
    audience: Arc<Audience>,
    #[cfg(feature = "crowds")]
    lapses: AtomicBool,
}

/// The leases of the names. A renewal that is under way has them too.
#[cfg(any(not(target_family = "wasm"), feature = "doctor"))]
type Leases<S, R> = Arc<Vec<Lease<S, R>>>;
/// The small wasm module, which is judged by its size, prolongs no locks.
#[cfg(all(target_family = "wasm", not(feature = "doctor")))]
type Leases<S, R> = Vec<Lease<S, R>>;

/// What is held. Those who share it are counted by its pointers.
pub(super) enum Holding<S: Store, R: Runtime> {
    One(Leases<S, R>),
    Several(Box<dyn Several>),
}

impl<S: Store, R: Runtime> Locked<S, R> {
    pub(super) fn new(runtime: R, names: Arc<[SlotId]>, holding: Arc<Holding<S, R>>) -> Self {
        let fence = holding.fence();
        Locked {
            runtime,
            names,
            fence,
            holding: Mutex::new(Some(holding)),
            #[cfg(feature = "crowds")]
            audience: Arc::default(),
            #[cfg(feature = "crowds")]
            lapses: AtomicBool::new(false),
        }
    }

    /// Its names, as the caller spelled them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(SlotId::as_str)
    }

    /// Larger than that of any lock before: what a resource checks to refuse a late holder. Of a quorum's lock less is
    /// true: see [`Quorum`](crate::client::Quorum).
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// How long the lock can still be relied on; nothing when it cannot.
    pub fn remaining(&self) -> Duration {
        Duration::from_micros(self.remaining_micros())
    }

    /// The same in microseconds.
    pub fn remaining_micros(&self) -> Micros {
        self.holding().as_ref().map_or(0, |holding| holding.remaining())
    }

    /// Whether the lock can still be relied on.
    pub fn is_held(&self) -> bool {
        self.remaining_micros() > 0
    }

    /// Ends when one of its names can no longer be relied on, with the reason; with nothing if it was given back in
    /// time. See [`Lease::lost`].
    pub fn lost(&self) -> impl Future<Output = Option<Error>> + use<S, R> {
        self.while_shared(|holding| holding.lost())
    }

    /// As [`Self::lost`], but ends with nothing after this time, for languages where a caller cannot stop waiting.
    #[doc(hidden)]
    pub fn lost_within(&self, time: Option<Micros>) -> impl Future<Output = Option<Error>> + use<S, R> {
        runtime::within(self.runtime.clone(), time, self.lost())
    }

    /// Whether somebody of higher priority waits for one of its names: it is not renewed then.
    pub fn is_claimed(&self) -> bool {
        match self.holding().as_deref() {
            Some(Holding::One(leases)) => leases.iter().any(Lease::is_claimed),
            _ => false,
        }
    }

    /// Ends when somebody of higher priority claims one of its names, with the error `claimed`. See [`Lease::claimed`].
    pub fn claimed(&self) -> impl Future<Output = Option<Error>> + use<S, R> {
        self.while_shared(|holding| holding.claimed())
    }

    /// As [`Self::claimed`], but ends with nothing after this time, for languages where a caller cannot stop waiting.
    #[doc(hidden)]
    pub fn claimed_within(&self, time: Option<Micros>) -> impl Future<Output = Option<Error>> + use<S, R> {
        runtime::within(self.runtime.clone(), time, self.claimed())
    }

    /// Prolongs the lock to the handle's `lock_ttl` from now, within its `max_hold`: all of its names, of a quorum's at a majority of
    /// the servers. For who has no `keepalive`.
    ///
    /// # Errors
    /// `claimed` if somebody of higher priority waits for one of its names, see [`Self::claimed`]; `lost` if one of them has
    /// ended, or the lock was given back; `store_unavailable` if the store did not answer in time, for one of them at least;
    /// `invalid_argument` if `ttl` is below 1 ms or above the handle's `lock_ttl`.
    pub async fn renew(&self) -> Result<()> {
        self.renew_by(None).await
    }

    /// The same to another time to live.
    ///
    /// # Errors
    /// As [`Self::renew`].
    pub async fn renew_for(&self, ttl: Duration) -> Result<()> {
        self.renew_by(Some(micros(ttl))).await
    }

    /// The same in microseconds, if it is not the handle's.
    ///
    /// # Errors
    /// As [`Self::renew`].
    #[doc(hidden)]
    pub async fn renew_by(&self, ttl: Option<Micros>) -> Result<()> {
        let renewal = self.holding().as_ref().map(|holding| holding.renew(ttl));
        match renewal {
            Some(renewal) => renewal.await,
            None => Err(Error::new(Code::Lost, "the lock was given back already; acquire anew")),
        }
    }

    /// Gives it back; the last of those who share it frees its names. A second call does nothing, and what a holder
    /// does not release is given back when it is dropped.
    ///
    /// # Errors
    /// `lost` if it had ended before, at once where that is known here; `store_unavailable` if the store did not answer
    /// in time, which goes on trying.
    pub async fn release(&self) -> Result<()> {
        let Some(holding) = self.holding().take() else { return Ok(()) };
        // What is left of it is given back in the background. One that was renewed just now goes on: it is told nothing.
        if holding.remaining() == 0
            && let Some(error) = holding.lost().now_or_never().flatten()
        {
            return Err(error);
        }
        match Arc::into_inner(holding) {
            Some(holding) => holding.release().await,
            None => {
                #[cfg(feature = "crowds")]
                self.audience.dismiss();
                Ok(())
            }
        }
    }

    /// Gives it back at the end of a body that ran under it, and says whether it lasted as long.
    ///
    /// # Errors
    /// `lost` if it did not, and no other: it was held to the end, whether or not the store could be told of that.
    pub async fn conclude(&self) -> Result<()> {
        loss_only(self.release().await)
    }

    /// However it ends from now on, and whoever shares it: it runs to its deadline; see [`Lease::lapse`].
    #[doc(hidden)]
    pub fn lapse(&self) {
        #[cfg(feature = "crowds")]
        self.lapses.store(true, Relaxed);
        match self.holding().as_deref() {
            Some(Holding::One(leases)) => leases.iter().for_each(Lease::lapse),
            Some(Holding::Several(several)) => several.lapse(),
            None => {}
        }
    }

    /// What is told of it, while this one shares it: with nothing if it was given back in time, though others hold it still.
    fn while_shared(
        &self,
        word: fn(&Holding<S, R>) -> BoxedFuture<'static, Option<Error>>,
    ) -> impl Future<Output = Option<Error>> + use<S, R> {
        // Before it is looked whether it is given back: whoever does so then dismisses this one too.
        #[cfg(feature = "crowds")]
        let (audience, left) = (self.audience.clone(), self.audience.join().map(drop));
        let word = self.holding().as_deref().map(word);
        async move {
            #[cfg(feature = "crowds")]
            {
                // Also where this one is collected that shares it: whoever had it may still be at work.
                let _audience = audience;
                runtime::before(left, word?).await.flatten()
            }
            #[cfg(not(feature = "crowds"))]
            word?.await
        }
    }

    fn holding(&self) -> MutexGuard<'_, Option<Arc<Holding<S, R>>>> {
        unpoisoned(&self.holding)
    }
}

impl<S: Store, R: Runtime> Holding<S, R> {
    #[cfg_attr(
        all(target_family = "wasm", not(feature = "doctor")),
        expect(clippy::useless_conversion, reason = "it is none where a renewal may have them too")
    )]
    pub fn one(leases: Vec<Lease<S, R>>) -> Self {
        Holding::One(leases.into())
    }

    fn fence(&self) -> u64 {
        match self {
            Holding::One(leases) => fence(leases),
            Holding::Several(several) => several.fence(),
        }
    }

    pub fn remaining(&self) -> Micros {
        match self {
            Holding::One(leases) => remaining(leases),
            Holding::Several(several) => several.remaining(),
        }
    }

    fn lost(&self) -> BoxedFuture<'static, Option<Error>> {
        match self {
            Holding::One(leases) => Box::pin(lost(leases)),
            Holding::Several(several) => several.lost(),
        }
    }

    /// Of several servers nobody steals.
    fn claimed(&self) -> BoxedFuture<'static, Option<Error>> {
        match self {
            Holding::One(leases) => Box::pin(claimed(leases)),
            Holding::Several(several) => {
                let lost = several.lost();
                Box::pin(async move {
                    lost.await;
                    None
                })
            }
        }
    }

    fn renew(&self, ttl: Option<Micros>) -> BoxedFuture<'static, Result<()>> {
        match self {
            #[cfg(any(not(target_family = "wasm"), feature = "doctor"))]
            Holding::One(leases) => {
                let leases = leases.clone();
                Box::pin(async move { super::holding::renew(leases.iter(), ttl).await })
            }
            #[cfg(all(target_family = "wasm", not(feature = "doctor")))]
            Holding::One(_) => Box::pin(std::future::ready(Err(Error::new(
                Code::Internal,
                "a module without `doctor` has no room to renew locks",
            )))),
            Holding::Several(several) => several.renew(ttl),
        }
    }

    async fn release(self) -> Result<()> {
        match self {
            Holding::One(leases) => release(leases.iter(), None).await,
            Holding::Several(several) => several.release().await,
        }
    }
}

#[cfg(feature = "crowds")]
impl<S: Store, R: Runtime> Drop for Locked<S, R> {
    fn drop(&mut self) {
        // First: of the last one it is told as it is given back what became of it.
        drop(self.holding().take());
        if !self.lapses.load(Relaxed) {
            self.audience.dismiss();
        }
    }
}

impl<S: Store, R: Runtime> fmt::Debug for Locked<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Locked {{ names: {:?}, fence: {} }}", self.names, self.fence)
    }
}
