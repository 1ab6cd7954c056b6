//! Asking the chain for the nonces of what was granted.

use std::sync::atomic::Ordering::Relaxed;

use super::Want;
use crate::client::Lease;
use crate::client::pool::PoolCore;
#[cfg(feature = "crowds")]
use crate::error::Error;
use crate::error::{Code, Result};
#[cfg(feature = "crowds")]
use crate::poison::unpoisoned;
use crate::runtime::Runtime;
use crate::store::Store;
use crate::{MILLISECOND, Micros, SECOND};

/// How long a slot rests at most whose chain names too low a nonce.
const STALL_REST: Micros = 5 * SECOND;

/// How long a slot rests of which the nonce could not be read: who goes on to look is given another by then, if there is one. If it
/// comes to the same caller again, it rests twice as long each time, and so long at most.
const UNREAD_REST: Micros = 20 * MILLISECOND;
#[cfg(feature = "crowds")]
const LONGEST_UNREAD_REST: Micros = SECOND;

/// How long before the end of an acquisition a chain that gave no answer is found out, so that it can be said of which account.
const EARLIER: Micros = 5 * MILLISECOND;

/// How many nonces are read at a time for one acquisition: the chain is others' too.
#[cfg(feature = "crowds")]
const READS: usize = 16;

/// The slots of which one acquisition could not read the nonce.
#[cfg(feature = "crowds")]
#[derive(Default)]
pub(super) struct Unread {
    /// Each with how long it rests.
    slots: Vec<(String, Micros)>,
    /// How many of them counted for a try.
    counted: usize,
    tries: u32,
    /// Why not, the last time.
    pub last: Option<Error>,
}

#[cfg(feature = "crowds")]
impl Unread {
    fn add(&mut self, slot: &str) {
        match self.slots.iter_mut().find(|(unread, _)| unread == slot) {
            Some((_, rest)) => *rest = (2 * *rest).min(LONGEST_UNREAD_REST),
            None => self.slots.push((slot.to_owned(), UNREAD_REST)),
        }
    }

    /// How often it was tried of others, or again where there are not `enough` without these.
    pub fn tries(&mut self, enough: &dyn Fn(usize) -> bool) -> u32 {
        self.tries += u32::from(self.slots.len() > self.counted || !enough(self.slots.len()));
        self.counted = self.slots.len();
        self.tries
    }
}

impl Want {
    /// How long a slot rests of which it tried to read the nonce.
    #[cfg(feature = "crowds")]
    fn unread_rest(&self, slot: &str) -> Option<Micros> {
        let unread = unpoisoned(&self.unread);
        unread.slots.iter().find(|(unread, _)| unread == slot).map(|(_, rest)| *rest)
    }

    #[cfg(not(feature = "crowds"))]
    fn unread_rest(&self, _slot: &str) -> Option<Micros> {
        Some(UNREAD_REST)
    }
}

impl<S: Store, R: Runtime> PoolCore<S, R> {
    /// Sees to it that every lease has its nonce, and lasts for a while after that. Returns when asking again can help, if
    /// one of them cannot be had, or does not.
    pub(super) async fn complete(&self, leases: &[Lease<S, R>], want: &Want) -> Result<Option<Micros>> {
        // All at once.
        #[cfg(feature = "crowds")]
        {
            if let Some(earliest) = self.learn_nonces(leases, want).await? {
                return Ok(Some(earliest));
            }
            let short = leases.iter().filter(|lease| want.is_short(lease.remaining_micros()));
            let renewals = short.map(|lease| lease.renew_by(Some(want.ttl)));
            for renewed in futures_util::future::join_all(renewals).await {
                if !is_there(renewed)? {
                    return Ok(Some(self.runtime.now()));
                }
            }
            // At its `max_hold`, or for one who claims it, no renewal prolonged it.
            let is_late = leases.iter().any(|lease| want.comes_too_late(lease.remaining_micros()));
            Ok(is_late.then(|| self.runtime.now()))
        }
        // One after the other; and twice: to read took time, also of those whose nonces were known by then. That no renewal prolongs it
        // is left to who looks at `remaining`.
        #[cfg(not(feature = "crowds"))]
        {
            for lease in leases.iter().chain(leases) {
                if lease.nonce().is_none()
                    && let Some(earliest) = self.learn_nonce(lease, want).await?
                {
                    return Ok(Some(earliest));
                }
                if want.is_short(lease.remaining_micros()) && !is_there(lease.renew_by(Some(want.ttl)).await)?
                {
                    return Ok(Some(self.runtime.now()));
                }
            }
            Ok(None)
        }
    }

    /// Asks the chain for all nonces that are not known, as [`Self::learn_nonce`] does for one.
    #[cfg(feature = "crowds")]
    async fn learn_nonces(&self, leases: &[Lease<S, R>], want: &Want) -> Result<Option<Micros>> {
        let lacking: Vec<_> = leases.iter().filter(|lease| lease.nonce().is_none()).collect();
        for some in lacking.chunks(READS) {
            let learning = some.iter().map(|lease| self.learn_nonce(lease, want));
            for earliest in futures_util::future::join_all(learning).await {
                if let Some(earliest) = earliest? {
                    return Ok(Some(earliest));
                }
            }
        }
        Ok(None)
    }

    /// Asks the chain for a lease's nonce and records the answer. Returns when asking again can help, if the
    /// chain's answer cannot be believed; the slot then rests.
    async fn learn_nonce(&self, lease: &Lease<S, R>, want: &Want) -> Result<Option<Micros>> {
        let now = self.runtime.now();
        let patience = if want.patient {
            want.deadline - EARLIER.min(want.deadline.saturating_sub(now) / 4)
        } else {
            now + self.response_timeout
        };
        want.reading.fetch_add(1, Relaxed);
        let chain = self.read_nonce(lease.slot(), patience.min(now + lease.remaining_micros())).await;
        #[cfg(feature = "crowds")]
        if chain.is_err() {
            want.reading.fetch_sub(1, Relaxed);
            unpoisoned(&want.unread).add(lease.slot());
        }
        let chain = chain?;
        want.reading.fetch_sub(1, Relaxed);
        match lease.resync(chain, false).await {
            Ok(_) => Ok(None),
            Err(error) if error.code() == Code::Stalled => {
                want.stalled.store(true, Relaxed);
                #[cfg(feature = "crowds")]
                (*crate::poison::unpoisoned(&want.stalled_last) = Some(error));
                let rest = STALL_REST.min(self.options.settle);
                // Nobody waits for the store to hear of that: the slot is not this caller's any more.
                lease.rest_unused(rest);
                Ok(Some(self.runtime.now() + rest))
            }
            Err(error) if error.code() == Code::Lost => Ok(Some(self.runtime.now())),
            Err(error) => Err(error),
        }
    }
}

/// Whether a lease that was to be renewed is still there: also if somebody claims it.
fn is_there(renewed: Result<()>) -> Result<bool> {
    match renewed {
        Err(error) if error.code() == Code::Lost => Ok(false),
        Err(error) if error.code() != Code::Claimed => Err(error),
        _ => Ok(true),
    }
}

/// Gives those back of which the nonce could not be read.
pub(super) fn rest_unread<S: Store, R: Runtime>(leases: &[Lease<S, R>], want: &Want) {
    for lease in leases.iter().filter(|lease| lease.nonce().is_none()) {
        if let Some(rest) = want.unread_rest(lease.slot()) {
            lease.rest_unused(rest);
        }
    }
}
