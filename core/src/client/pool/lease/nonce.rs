//! What a holder says of its lease's nonce, and what the chain says.

use std::sync::atomic::Ordering::Release;

use super::{Lease, unexpected};
use crate::Micros;
use crate::error::{Code, Error, Result};
use crate::nonce::{Nonce, NonceRecord, Outcome, Words};
use crate::runtime::Runtime;
use crate::slots::{Reply, Request};
use crate::store::Store;

impl<S: Store, R: Runtime> Lease<S, R> {
    /// Says that the nonce was used: signed with and accepted. `next` is the next free nonce, the lease's
    /// own plus one if not given: from its second payment on it has to be.
    ///
    /// # Errors
    /// `lost` if the lease was given back before; `invalid_argument` if `next` is missing and the lease has no nonce, or is
    /// not above its nonce.
    pub fn used(&self, next: Option<Nonce>) -> Result<()> {
        let mut held = self.open()?;
        let above = match held.nonce {
            NonceRecord::Known(nonce) => nonce.checked_add(1),
            _ => None,
        };
        let next = next.or(above).ok_or_else(|| {
            let message = "say the next nonce: the lease has none, or none is above it";
            Error::invalid("next", message)
        })?;
        if held.nonce.after(Outcome::Used { next }).is_none() {
            let floor = held.nonce.floor().unwrap_or(0);
            return Err(Error::invalid(
                "next",
                format_args!("{next} would put the nonce back; {floor} is known to be used or handed out"),
            ));
        }
        held.say(Outcome::Used { next });
        Ok(())
    }

    /// Says that the nonce was not used, and cannot be any more: nothing signed with it left this process. What was said
    /// before is not taken back by that: the nonce is in doubt then.
    ///
    /// # Errors
    /// `lost` if the lease was given back before.
    pub fn unused(&self) -> Result<()> {
        self.say(Outcome::Unused)
    }

    /// Says that the chain refused the nonce, and which one it expects if it said so, for the next holder, who is given that without
    /// a question: one that counts no pending transactions, as geth's `next nonce`, is not to be said. To go on under this lease,
    /// [`Self::read_nonce`] or [`Self::resync`] then gives another nonce to sign with.
    ///
    /// # Errors
    /// As [`Self::unused`].
    pub fn rejected(&self, expected: Option<Nonce>) -> Result<()> {
        self.say(Outcome::Rejected { expected })
    }

    /// Says that nobody knows whether the nonce was used: the next holder asks the chain. Who sends several payments says it
    /// before each one, and [`Self::used`] with the nonce that follows after it: then the one whose answer is lost is doubt, and those
    /// before it count.
    ///
    /// # Errors
    /// As [`Self::unused`].
    pub fn unknown(&self) -> Result<()> {
        self.say(Outcome::Unknown { used: None })
    }

    fn say(&self, word: Outcome) -> Result<()> {
        self.open().map(|mut held| held.say(word))
    }

    /// Records the next nonce that the chain names, and makes it the lease's. One below what is known to be
    /// used is believed only with `rewind`, or when the record has not changed for the pool's `settle`.
    ///
    /// # Errors
    /// `stalled` if the chain's nonce is not believed; `lost`; `store_unavailable`.
    pub async fn resync(&self, chain: Nonce, rewind: bool) -> Result<Nonce> {
        let settle = self.core.options.settle;
        let behind = |floor: Nonce, time: Micros| {
            Error::new(
                Code::Stalled,
                format!(
                    "the chain names nonce {chain} for {}, but every nonce below {floor} is known to be used; the node may lag behind: acquire anew in {} ms, or resync with rewind if transactions were dropped",
                    self.slot(),
                    time / crate::MILLISECOND,
                ),
            )
            .after(Some(time))
        };
        let lease = self.live_ref()?;
        let (used, said) = {
            let held = self.lock();
            (held.words.used(), held.said)
        };
        // What was said under this lease the store does not know yet.
        if let Some(used) = used.filter(|&used| chain < used && !rewind) {
            return Err(behind(used, settle));
        }
        let request = Request::Resync { lease, chain, rewind, settle };
        let (reply, now, _) = self.core.ask(request).await?;
        match reply {
            Reply::Resynced { next } => {
                let mut held = self.lock();
                // Not if anything was said meanwhile: what was signed by then the chain may not have seen.
                if held.said == said {
                    held.words = Words::default();
                }
                held.words.recorded(next);
                held.nonce = NonceRecord::Known(next);
                self.resynced.store(true, Release);
                drop(held);
                // The answer may have come when others may have it.
                self.check_held().map(|()| next)
            }
            Reply::Behind { floor, until } => Err(behind(floor, until.saturating_sub(now))),
            Reply::Lost(loss) => Err(self.not_found(loss)),
            other => Err(unexpected(&other)),
        }
    }

    /// Reads the nonce from the chain through the pool's `read_nonce`, and records it.
    ///
    /// # Errors
    /// `lost` if the lease has ended, and the chain is not asked; `nonce_unavailable` if there is no `read_nonce`, or it failed
    /// or took too long; and those of [`Self::resync`].
    pub async fn read_nonce(&self) -> Result<Nonce> {
        self.lease_ref()?;
        self.check_held()?;
        let deadline = self.core.runtime.now() + self.remaining_micros();
        let chain = self.core.read_nonce(self.slot(), deadline).await?;
        self.resync(chain, false).await
    }
}
