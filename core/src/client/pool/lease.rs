//! A lease, as its holder has it.

mod nonce;
#[cfg(test)]
#[cfg(feature = "redis")]
mod tests;
mod watching;

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering::Acquire};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::statistics::Counters;
use super::vigil::{Ending, Term, Vigil};
use super::{PoolCore, in_time};
use crate::Micros;
use crate::client::ReleaseOptions;
use crate::client::builders::micros;
use crate::client::options::check_rest;
use crate::error::{Code, Error, Result};
use crate::nonce::{Nonce, NonceRecord, Outcome, Words};
use crate::poison::unpoisoned;
use crate::runtime::Runtime;
use crate::slots::{Grant, LeaseRef, Loss, Reply, Request};
use crate::store::Store;

/// A slot that is this holder's alone until the deadline. Dropped, it is given back with the outcome that
/// was said; a nonce of which nothing was said is in doubt from then on.
pub struct Lease<S: Store, R: Runtime> {
    core: Arc<PoolCore<S, R>>,
    at: LeaseRef,
    /// The nonce that it came with.
    granted: NonceRecord,
    /// Whether the chain has been asked since, and [`Held::nonce`] says what is known.
    resynced: AtomicBool,
    /// Whether it is watched: most leases never are, and need not be asked.
    watched: AtomicBool,
    held: Mutex<Held>,
}

/// What changes while a lease is held.
#[derive(Debug)]
struct Held {
    /// Whether it has not been given back yet.
    open: bool,
    /// Whether it is left to run to its deadline.
    lapses: bool,
    life: Life,
    nonce: NonceRecord,
    words: Words,
    /// How often anything was said of the nonce.
    said: u32,
}

impl Held {
    fn say(&mut self, word: Outcome) {
        self.words.say(word);
        self.said = self.said.wrapping_add(1);
    }
}

/// What knows how long it lasts, on the pool's clock of leases: never longer than in the store.
#[derive(Debug)]
enum Life {
    Alone(Term),
    Watched(Arc<Vigil>),
}

impl<S: Store, R: Runtime> Lease<S, R> {
    /// The lease of a grant with this time to live, renewed every `interval` if that is not 0.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(super) fn new(core: Arc<PoolCore<S, R>>, grant: Grant, ttl: Micros, interval: Micros) -> Self {
        let now = if interval > 0 { core.lease_clock() } else { 0 };
        Self::since(core, grant, ttl, interval, now)
    }

    /// The same, for one of many that are granted together: who keeps it alive counts from this time on.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(in crate::client) fn since(
        core: Arc<PoolCore<S, R>>,
        grant: Grant,
        ttl: Micros,
        interval: Micros,
        now: Micros,
    ) -> Self {
        Counters::add(&core.counters.granted);
        if grant.in_doubt() {
            Counters::add(&core.counters.in_doubt);
        }
        let Grant { slot, fence, place, deadline, nonce } = grant;
        let (at, term) = (LeaseRef { slot, fence, place }, Term::new(deadline));
        // Once it stands it is not touched here: then it is made where its holder has it, and not carried there.
        let kept = interval > 0;
        let life = if kept { Life::watched(&core, &at, term, ttl, interval, now) } else { Life::Alone(term) };
        let held = Held { open: true, lapses: false, life, nonce, words: Words::default(), said: 0 };
        let (resynced, watched) = (AtomicBool::new(false), AtomicBool::new(kept));
        Lease { core, at, granted: nonce, resynced, watched, held: Mutex::new(held) }
    }

    /// The slot's id, as this process spelled it.
    pub fn slot(&self) -> &str {
        let slot = &self.at.slot;
        self.core.own.as_ref().and_then(|own| own.spelling(slot)).unwrap_or(slot.as_str())
    }

    /// Larger than that of any lease of this pool before: what a resource checks to refuse a late holder.
    pub fn fence(&self) -> u64 {
        self.at.fence
    }

    /// The nonce to sign with; `None` where it is not known or in doubt, and the chain must be asked.
    pub fn nonce(&self) -> Option<Nonce> {
        match self.record() {
            NonceRecord::Known(next) => Some(next),
            _ => None,
        }
    }

    /// Whether an earlier holder may have used a nonce and did not say so: ask the chain, then
    /// [`Self::resync`].
    pub fn in_doubt(&self) -> bool {
        matches!(self.record(), NonceRecord::InDoubt { .. })
    }

    /// How long the lease can still be relied on; nothing when it cannot.
    pub fn remaining(&self) -> Duration {
        Duration::from_micros(self.remaining_micros())
    }

    /// The same in microseconds.
    pub fn remaining_micros(&self) -> Micros {
        let held = self.lock();
        if !held.open {
            return 0;
        }
        held.life.term().deadline().saturating_sub(self.core.lease_clock())
    }

    /// Whether the lease can still be relied on.
    pub fn is_held(&self) -> bool {
        self.remaining_micros() > 0
    }

    /// Gives the slot back. A second call does nothing.
    ///
    /// # Errors
    /// `lost` if the lease had ended before: its outcome was not recorded and the nonce is in doubt.
    /// `store_unavailable` if it had not, and the store did not answer in time; `busy` if that is so because too many requests of this
    /// process wait. It goes on trying, unless the store refuses it (for want of rights, as no server of its kind): then the lease
    /// lasts to its deadline.
    pub async fn release(&self) -> Result<()> {
        self.release_with(ReleaseOptions::default()).await
    }

    /// The same by options.
    ///
    /// # Errors
    /// As [`Self::release`]; `invalid_argument` if `cooldown` is above a year; then it is still held.
    pub async fn release_with(&self, options: ReleaseOptions) -> Result<()> {
        check_rest("cooldown", options.cooldown.unwrap_or(0))?;
        let ended = self.has_ended();
        let Some((outcome, cooldown)) = self.close(options) else { return Ok(()) };
        let _told = GivenBack(self);
        match self.core.release(&self.at, outcome, cooldown).await {
            Ok(reply) => self.settled(reply),
            // That it was over, no store has to say.
            Err(_) if ended => Err(self.found_ended()),
            Err(error) => Err(error),
        }
    }

    /// As [`Self::release`], at the end of a body that ran under it. A body that outlived it, as far as is known here, is told so
    /// though the store may have taken the outcome: it counts longer.
    ///
    /// # Errors
    /// As [`Self::release`].
    pub async fn conclude(&self) -> Result<()> {
        let ended = self.has_ended();
        self.concluded(ended, self.release().await)
    }

    /// As [`Self::conclude`] for a store that answers at once; `None` if it does not.
    pub fn conclude_now(&self) -> Option<Result<()>> {
        let ended = self.has_ended();
        self.release_now(ReleaseOptions::default()).map(|outcome| self.concluded(ended, outcome))
    }

    /// As [`Self::release_with`] for a store that answers at once; `None` if it does not.
    pub fn release_now(&self, options: ReleaseOptions) -> Option<Result<()>> {
        if !self.core.answers_at_once() {
            return None;
        }
        if let Err(error) = check_rest("cooldown", options.cooldown.unwrap_or(0)) {
            return Some(Err(error));
        }
        let Some((outcome, cooldown)) = self.close(options) else { return Some(Ok(())) };
        let _told = GivenBack(self);
        self.core.release_now(&self.at, outcome, cooldown).map(|reply| self.settled(reply))
    }

    /// Prolongs the lease to the pool's time to live from now, within its `max_hold`.
    ///
    /// # Errors
    /// `claimed` if somebody of higher priority waits for the slot, see [`Self::claimed`]; `lost` if the lease has ended;
    /// `store_unavailable` if the store did not answer in time; `invalid_argument` if `ttl` is below 1 ms or above the
    /// pool's.
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

    /// The same in microseconds, if it is not the pool's.
    ///
    /// # Errors
    /// As [`Self::renew`].
    #[doc(hidden)]
    pub async fn renew_by(&self, ttl: Option<Micros>) -> Result<()> {
        let ttl = self.core.ttl(ttl)?;
        let (reply, now, sent) = self.core.ask(Request::Renew { lease: self.live_ref()?, ttl }).await?;
        match reply {
            Reply::Renewed { deadline } => {
                match &mut self.lock().life {
                    Life::Alone(term) => term.prolong(self.core.local_deadline(sent, now, deadline), now),
                    Life::Watched(vigil) => vigil.prolong(self.core.kept_until(sent, now, deadline), now),
                }
                // An answer may come when what it prolonged is over.
                self.check_held()
            }
            Reply::Claimed { deadline, priority } => {
                let until = self.core.kept_until(sent, now, deadline);
                if let Some(vigil) = self.watch() {
                    self.core.claimed(&vigil, until, now, priority);
                }
                Err(claimed(self.slot(), priority))
            }
            Reply::Lost(loss) => Err(self.not_found(loss)),
            other => Err(unexpected(&other)),
        }
    }

    /// However it ends from now on, dropped or released: it is not given back, but renewed no more and left to run to its
    /// deadline, as that of a process that died. For languages in which a garbage collector, and not the program, says when
    /// it is dropped: whoever had it may still be at work.
    #[doc(hidden)]
    pub fn lapse(&self) {
        self.lock().lapses = true;
    }

    /// Whether its keeper renews it.
    pub(in crate::client) fn is_kept(&self) -> bool {
        self.lock().life.vigil().is_some_and(|vigil| vigil.interval > 0)
    }

    /// It is renewed no more, and runs to its deadline unless it is given back before.
    pub(in crate::client) fn keep_no_more(&self) {
        self.lock().life.vigil().iter().for_each(|vigil| vigil.keep_no_more());
    }

    /// Gives it back if it was not, as one that its caller has not seen: its nonce was not used, and it need not rest.
    #[doc(hidden)]
    pub fn unseen(&self) {
        self.rest_unused(0);
    }

    /// As [`Self::unseen`], to rest for so long.
    pub(super) fn rest_unused(&self, rest: Micros) {
        let _ = self.unused();
        self.abandon(ReleaseOptions { cooldown: Some(rest) });
    }

    /// Gives it back if it was not, and does not ask what came of that.
    pub(in crate::client) fn abandon(&self, options: ReleaseOptions) {
        #[cfg(feature = "crowds")]
        if self.has_ended() {
            self.notice_end();
        }
        if let Some((outcome, cooldown)) = self.close(options) {
            self.core.release_and_forget(&self.at, outcome, cooldown);
        }
        self.given_back();
    }

    pub(super) fn lease_ref(&self) -> Result<LeaseRef> {
        self.open().map(|_| self.at.clone())
    }

    /// What changes of it, unless it was given back.
    fn open(&self) -> Result<MutexGuard<'_, Held>> {
        let held = self.lock();
        if !held.open {
            return Err(lost(self.slot(), Ending::GivenBack));
        }
        Ok(held)
    }

    /// The same of a lease that is not known to be lost. In the store it may last a moment longer, but its holder was
    /// told.
    fn live_ref(&self) -> Result<LeaseRef> {
        self.check_live()?;
        self.lease_ref()
    }

    /// Whether it was not given back in time, as far as is known here.
    pub(in crate::client) fn has_ended(&self) -> bool {
        let held = self.lock();
        held.open && held.life.term().deadline() <= self.core.lease_clock()
    }

    /// Whether it was neither found lost nor has ended, where it was not given back.
    fn check_held(&self) -> Result<()> {
        self.check_live()?;
        if self.has_ended() { Err(self.found_ended()) } else { Ok(()) }
    }

    fn check_live(&self) -> Result<()> {
        match self.lock().life.term().ending() {
            None | Some(Ending::GivenBack) => Ok(()),
            Some(why) => Err(lost(self.slot(), why)),
        }
    }

    /// Ends the holder's use; what the store must be told, the first time and unless it lapses.
    fn close(&self, options: ReleaseOptions) -> Option<(Outcome, Micros)> {
        let mut held = self.lock();
        if !std::mem::replace(&mut held.open, false) {
            return None;
        }
        Counters::add(&self.core.counters.ended);
        // How it ended is told when the store has said so.
        if let Life::Watched(vigil) = &held.life {
            vigil.leave();
        }
        let cooldown = options.cooldown.unwrap_or(self.core.options.cooldown);
        (!held.lapses).then_some((held.words.outcome(), cooldown))
    }

    /// It was over before its holder let go of it, and whoever watches it has not looked: nobody is told that it was given back in time.
    #[cfg(feature = "crowds")]
    #[cold]
    fn notice_end(&self) {
        let vigil = self.lock().life.vigil();
        match vigil {
            Some(vigil) => self.core.lose(&vigil, Ending::Lost(Loss::Expired)),
            None => drop(self.found_ended()),
        }
    }

    fn given_back(&self) {
        if self.watched.load(Acquire) {
            self.tell_given_back();
        }
    }

    /// Apart from [`Self::given_back`], which mostly has nobody to tell.
    #[cold]
    fn tell_given_back(&self) {
        let vigil = self.lock().life.vigil();
        vigil.map(|vigil| vigil.end(Ending::GivenBack));
        #[cfg(feature = "crowds")]
        self.core.hear_no_more();
    }

    fn concluded(&self, ended: bool, outcome: Result<()>) -> Result<()> {
        if ended { outcome.and_then(|()| Err(self.found_ended())) } else { outcome }
    }

    fn settled(&self, reply: Reply) -> Result<()> {
        if let Reply::Lost(loss) = reply {
            return Err(self.found_lost(loss));
        }
        match reply {
            Reply::Released => Ok(()),
            Reply::Backwards { floor } => Err(Error::invalid(
                "next",
                format_args!("would put the nonce back; it must be at least {floor}"),
            )),
            other => Err(unexpected(&other)),
        }
    }

    /// The store does not find it. What comes to the store behind its release says nothing of how it ended.
    fn not_found(&self, loss: Loss) -> Error {
        let given_back = self.open().err();
        given_back.unwrap_or_else(|| self.found_lost(loss))
    }

    pub(in crate::client) fn found_ended(&self) -> Error {
        self.found_lost(Loss::Expired)
    }

    fn found_lost(&self, loss: Loss) -> Error {
        let why = Ending::Lost(loss);
        let mut held = self.lock();
        let until = held.life.term().until();
        let before = match &mut held.life {
            Life::Alone(term) => term.end(why),
            Life::Watched(vigil) => {
                let vigil = vigil.clone();
                // Those whom it tells may ask for the lease.
                drop(held);
                vigil.end(why)
            }
        };
        // Whoever watched it may have known before: it is counted once, and told by one reason.
        let told = before.filter(|before| *before != Ending::GivenBack);
        if told.is_none() {
            self.core.counters.lost(until <= self.core.lease_clock());
        }
        lost(self.slot(), told.unwrap_or(why))
    }

    fn record(&self) -> NonceRecord {
        if self.resynced.load(Acquire) { self.lock().nonce } else { self.granted }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        unpoisoned(&self.held)
    }
}

/// A lease that is being given back: whoever waits for its loss is told so at the end, or as nobody waits for that any more, if
/// nothing else was told by then.
struct GivenBack<'a, S: Store, R: Runtime>(&'a Lease<S, R>);

impl<S: Store, R: Runtime> Drop for GivenBack<'_, S, R> {
    fn drop(&mut self) {
        self.0.given_back();
    }
}

impl Life {
    fn watched<S: Store, R: Runtime>(
        core: &Arc<PoolCore<S, R>>,
        at: &LeaseRef,
        term: Term,
        ttl: Micros,
        interval: Micros,
        now: Micros,
    ) -> Self {
        // Over a network it is shorter already.
        let term = match core.answers_at_once() {
            true => term.lasting(in_time(now, term.until().saturating_sub(now))),
            false => term,
        };
        let vigil = Vigil::new(at.clone(), ttl, interval, term, now);
        core.watch_over(vigil.clone());
        Life::Watched(vigil)
    }

    fn vigil(&self) -> Option<Arc<Vigil>> {
        match self {
            Life::Alone(_) => None,
            Life::Watched(vigil) => Some(vigil.clone()),
        }
    }

    fn term(&self) -> Term {
        match self {
            Life::Alone(term) => *term,
            Life::Watched(vigil) => vigil.term(),
        }
    }
}

impl<S: Store, R: Runtime> Drop for Lease<S, R> {
    fn drop(&mut self) {
        // Most were given back before, and nobody else can lock now.
        let open = self.held.get_mut().unwrap_or_else(PoisonError::into_inner).open;
        if open {
            self.abandon(ReleaseOptions::default());
        } else {
            self.given_back();
        }
    }
}

impl<S: Store, R: Runtime> fmt::Debug for Lease<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lease {{ slot: {:?}, fence: {} }}", self.slot(), self.fence())
    }
}

fn lost(slot: &str, why: Ending) -> Error {
    Error::new(
        Code::Lost,
        format!("the lease of {slot} is lost: {why}; stop, see what arrived, and acquire anew"),
    )
}

fn claimed(slot: &str, priority: i16) -> Error {
    let priority = i32::from(priority);
    Error::new(
        Code::Claimed,
        format!("one of priority {priority} waits for {slot}: finish and give it back; it is not renewed"),
    )
}

pub(in crate::client) fn unexpected(reply: &Reply) -> Error {
    let kind = reply.kind();
    Error::new(Code::Internal, format!("the store's reply does not fit ({kind}); report this as a bug"))
}
