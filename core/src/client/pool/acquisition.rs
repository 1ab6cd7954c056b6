//! One acquisition: what it wants, one attempt at that, and what to say where none helped. Waiting one's turn is in
//! `pursuit`.

mod claiming;
mod nonces;

pub(in crate::client) use self::claiming::lasting;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
#[cfg(feature = "crowds")]
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::task::Poll;

use futures_util::FutureExt;

#[cfg(feature = "crowds")]
use self::nonces::Unread;
use self::nonces::rest_unread;
#[cfg(feature = "crowds")]
use super::courier::crowded;
use super::courier::unavailable;
use super::waiting::{Seat, closed};
use super::{OwnSlots, PoolCore, in_time, unread};
use crate::client::options::{check_factor, check_rest};
use crate::client::{AcquireOptions, Keepalive, Lease};
use crate::error::{Code, Error, Result};
use crate::id::{Name, SlotId};
#[cfg(feature = "crowds")]
use crate::poison::unpoisoned;
use crate::runtime::{self, Runtime};
use crate::slots::{Grant, Refusal, Strategy, TTL_RANGE};
use crate::store::Store;
use crate::{MILLISECOND, Micros};

/// How often at most one acquisition comes to slots of which the nonce cannot be read, others each time: the node may refuse one
/// account, or all.
const TRIES: u32 = 3;

/// A claim that was not granted.
pub(in crate::client) struct Refused {
    pub why: Refusal,
    /// When asking again can help, on the local clock.
    pub earliest: Option<Micros>,
}

/// What one acquisition wants, options applied.
pub(in crate::client) struct Want {
    /// Names the acquisition and its ticket; another one names it when what it was granted had to be given back.
    pub name: AtomicU64,
    pub priority: i16,
    /// The stolen consistency factor, if it steals.
    pub steal: Option<f64>,
    pub count: u32,
    pub ttl: Micros,
    /// How long renewals may prolong the lease in all; 0 for no bound.
    pub max_hold: Micros,
    /// How often the lease is renewed; 0 if it is not.
    pub interval: Micros,
    pub slots: Option<Vec<SlotId>>,
    pub strategy: Strategy,
    pub began: Micros,
    pub deadline: Micros,
    pub patient: bool,
    /// What the store said last to a claim of this acquisition, or of those behind whom it waits, in few words: see
    /// [`Self::told`].
    told: AtomicU64,
    /// Whether a slot came whose nonce the chain does not bear out.
    stalled: AtomicBool,
    /// Why not, the last time.
    #[cfg(feature = "crowds")]
    stalled_last: Mutex<Option<Error>>,
    /// Whether what was granted last came too late to be of use. Without `crowds` no more is said than that nothing came.
    #[cfg(feature = "crowds")]
    too_late: AtomicBool,
    /// How many nonces the chain is being asked for. Without `crowds` also how often one could not be read.
    reading: AtomicU32,
    /// What could not be read.
    #[cfg(feature = "crowds")]
    unread: Mutex<Unread>,
    /// Whether it names slots of its own process, as one of another came.
    pub names_own: AtomicBool,
    /// Which of them were there as it got its ticket: see [`super::stock::Stock`].
    #[cfg(feature = "crowds")]
    pub stock: AtomicU32,
    /// Whether it asked by its name for a place in the store's line, and so may have a ticket.
    pub has_ticket: AtomicBool,
}

impl Want {
    /// The store has answered: if nothing comes of it in the end, that is not because it was silent.
    pub(super) fn hear(&self) {
        self.told.fetch_or(1, Relaxed);
    }

    /// It has refused a claim. What [`Self::told`] gives of that is in the bits: that there is something, whether it was quiet, and
    /// until when.
    // It is called in one place, and a call costs the small module bytes.
    #[cfg_attr(target_family = "wasm", inline(always))]
    fn hear_refusal(&self, why: Refusal, earliest: Option<Micros>) {
        #[cfg(feature = "crowds")]
        self.too_late.store(false, Relaxed);
        let quiet = u64::from(why == Refusal::Quiet) << 1;
        self.told.store(earliest.unwrap_or_default() << 2 | quiet | 1, Relaxed);
    }

    /// Whether it is renewed before it is handed out, if so much is left of it: to find its nonce took time. At its `max_hold` nothing
    /// prolongs it.
    fn is_short(&self, left: Micros) -> bool {
        (self.max_hold == 0 || self.max_hold > self.ttl) && left < self.ttl / 2
    }

    /// Whether it comes too late to be of use if so much is left of it: it would be lost before it is used.
    fn comes_too_late(&self, left: Micros) -> bool {
        let comes = left < lasting(self.ttl, self.max_hold) / 4;
        #[cfg(feature = "crowds")]
        if comes {
            self.too_late.store(true, Relaxed);
        }
        comes
    }

    /// Whether what was granted last came too late to be of use.
    pub(super) fn came_too_late(&self) -> bool {
        #[cfg(feature = "crowds")]
        return self.too_late.load(Relaxed);
        #[cfg(not(feature = "crowds"))]
        false
    }

    /// What it said last, if anything: whether it was quiet, and until when.
    fn told(&self) -> Option<Refused> {
        let told = self.told.load(Relaxed);
        let why = if told & 2 > 0 { Refusal::Quiet } else { Refusal::Exhausted };
        (told > 0).then(|| Refused { why, earliest: Some(told >> 2).filter(|at| *at > 0) })
    }
}

/// Leases that their caller has not seen yet: dropped, they are given back as such.
struct Unseen<S: Store, R: Runtime>(Vec<Lease<S, R>>);

impl<S: Store, R: Runtime> Unseen<S, R> {
    fn hand_over(mut self) -> Vec<Lease<S, R>> {
        std::mem::take(&mut self.0)
    }
}

impl<S: Store, R: Runtime> Drop for Unseen<S, R> {
    fn drop(&mut self) {
        self.0.iter().for_each(Lease::unseen);
    }
}

impl<S: Store, R: Runtime> PoolCore<S, R> {
    /// Options applied over those of the pool.
    // Else it is carried from place to place, for longer than it takes to make. A wasm module is judged by its size.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(in crate::client) fn want(&self, options: AcquireOptions, now: Micros) -> Result<Want> {
        if self.room.is_closed() {
            return Err(closed());
        }
        let timeout = options.timeout.unwrap_or(self.options.timeout);
        let ttl = self.ttl(options.ttl)?;
        // Names of locks were looked at as the lock was opened, letter by letter: they are no accounts.
        if !self.makes_names || cfg!(target_family = "wasm") {
            options.check()?;
        }
        check_rest("timeout", timeout)?;
        check_factor(options.steal)?;
        // Those that are named are taken in the order in which they are.
        if options.slots.is_some() && !self.makes_names && options.strategy.is_some() {
            return Err(Error::invalid("strategy", "is for any; leave `slots` out"));
        }
        let count = options.count.unwrap_or(1);
        // What others added it gives back: it would be granted too few for ever.
        if options.slots.is_none() && self.own.as_ref().is_some_and(|own| count as usize > own.len()) {
            let message = match cfg!(feature = "crowds") {
                true => "is above the number of slots that this pool was opened with",
                false => "is above that of the pool's slots",
            };
            return Err(Error::invalid("count", message));
        }
        Ok(Want {
            name: AtomicU64::new(self.counter.fetch_add(1, Relaxed)),
            priority: options.priority.unwrap_or(0),
            steal: options.steal,
            count,
            ttl,
            max_hold: options.max_hold.max(self.options.max_hold()),
            interval: self.interval(options.keepalive, ttl)?,
            slots: options.slots,
            strategy: options.strategy.unwrap_or(self.options.strategy),
            began: now,
            deadline: now + timeout,
            patient: timeout > 0,
            told: AtomicU64::new(0),
            stalled: AtomicBool::new(false),
            #[cfg(feature = "crowds")]
            stalled_last: Mutex::default(),
            #[cfg(feature = "crowds")]
            too_late: AtomicBool::new(false),
            reading: AtomicU32::new(0),
            #[cfg(feature = "crowds")]
            unread: Mutex::default(),
            names_own: AtomicBool::new(false),
            #[cfg(feature = "crowds")]
            stock: AtomicU32::new(0),
            has_ticket: AtomicBool::new(false),
        })
    }

    /// A lease's time to live. Never above the pool's: so long does a store that lost its memory wait for
    /// leases that it forgot.
    pub(super) fn ttl(&self, ttl: Option<Micros>) -> Result<Micros> {
        match ttl {
            Some(ttl) if ttl > self.options.ttl => Err(Error::invalid(
                "ttl",
                match self.makes_names {
                    _ if !cfg!(feature = "crowds") => "is longer than that of the pool",
                    true => "is longer than the handle's lock_ttl; open it with the longest one",
                    false => "is longer than that of the pool; open the pool with the longest ttl",
                },
            )),
            Some(ttl) if ttl < *TTL_RANGE.start() => Err(Error::invalid("ttl", "must be 1 ms or more")),
            Some(ttl) => Ok(ttl),
            None => Ok(self.options.ttl),
        }
    }

    /// How often a lease of this time to live is renewed; 0 if it is not.
    pub(in crate::client) fn interval(&self, keepalive: Option<Keepalive>, ttl: Micros) -> Result<Micros> {
        let keepalive = keepalive.unwrap_or(self.options.keepalive);
        keepalive.check()?;
        let interval = keepalive.interval(ttl);
        // One renewal may take until its time-out, and the next one must still come before the holder takes it for lost.
        let slack = if self.answers_at_once() { 0 } else { self.response_timeout };
        if interval > 0 && in_time(0, ttl) <= interval.saturating_add(slack) {
            if !cfg!(feature = "crowds") {
                let message =
                    "is too long: ttl must be longer than the interval and response_timeout together";
                return Err(Error::invalid("keepalive", message));
            }
            let [ttl, interval, slack] = [ttl, interval, slack].map(|time| time / MILLISECOND);
            return Err(Error::invalid(
                "keepalive",
                format_args!(
                    "is too long: ttl ({ttl} ms) must be longer than the interval ({interval} ms) and response_timeout ({slack} ms) together, by 1 % and 2 ms"
                ),
            ));
        }
        Ok(interval)
    }

    /// The lease of a grant whose deadline is that of this process.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub(in crate::client) fn lease(self: &Arc<Self>, want: &Want, grant: Grant) -> Lease<S, R> {
        Lease::new(self.clone(), grant, want.ttl, want.interval)
    }

    pub(super) async fn acquire(self: &Arc<Self>, want: Want) -> Result<Vec<Lease<S, R>>> {
        if !want.patient {
            return self.pursue(&want).await;
        }
        // Whatever takes long, the caller is told in time; leases that are there by then are given back.
        let (mut pursuit, mut closing) = (pin!(self.pursue(&want)), None);
        // Who gets it at once need not hear that the handle closes.
        let until_closed = poll_fn(|context| {
            if let Poll::Ready(outcome) = pursuit.as_mut().poll(context) {
                return Poll::Ready(outcome);
            }
            let closing = closing.get_or_insert_with(|| self.room.closing());
            closing.poll_unpin(context).map(|_| Err(closed()))
        });
        let outcome = runtime::by(&self.runtime, want.deadline, until_closed).await;
        outcome.unwrap_or_else(|| Err(self.unanswered(&want)))
    }

    pub(super) fn holder(&self, want: &Want) -> u128 {
        u128::from(self.secret) << 64 | u128::from(want.name.load(Relaxed))
    }

    /// No holder is ever granted twice: what it was granted is on its way back, and was its ticket's.
    pub(super) fn rename(&self, want: &Want, seat: Option<&Seat>) {
        want.has_ticket.store(false, Relaxed);
        want.name.store(self.counter.fetch_add(1, Relaxed), Relaxed);
        if let Some(seat) = seat {
            seat.set(self.place(want), false);
        }
    }

    /// Claims once and, where the pool has a `read_nonce`, sees to it that every lease has its nonce. Who has a seat waits for
    /// its turn with the store if it is refused.
    pub(in crate::client) async fn attempt(
        self: &Arc<Self>,
        want: &Want,
        seat: Option<&Seat>,
    ) -> Result<Result<Vec<Lease<S, R>>, Refused>> {
        #[cfg(feature = "crowds")]
        self.look_again(want, seat).await;
        let mut claimed = self.claim_either_way(want, seat).await?;
        if let Err(refused) = &claimed
            && self.misses_own(want, refused)
        {
            let quiet = refused.why == Refusal::Quiet;
            #[cfg(feature = "crowds")]
            let look = quiet.then(|| self.begin_look());
            let looked = self.take_stock(want, quiet).await;
            // Who waits for a quiet time to pass goes on waiting.
            if quiet {
                #[cfg(feature = "crowds")]
                if let Some(look) = look
                    && looked.is_ok()
                {
                    look.end();
                }
            } else {
                looked?;
                // With it went the ticket, if it had one.
                if want.names_own.load(Relaxed) {
                    want.has_ticket.store(false, Relaxed);
                }
                claimed = self.claim_either_way(want, seat).await?;
            }
        }
        let leases = match claimed {
            Ok(leases) => leases,
            Err(refused) => return Ok(Err(refused)),
        };
        if !self.reads_nonces() {
            return Ok(Ok(leases));
        }
        if let Some(seat) = seat {
            seat.set(self.place(want), true);
            self.set_moved_up();
        }
        let leases = Unseen(leases);
        let earliest = match self.complete(&leases.0, want).await {
            Ok(None) => return Ok(Ok(leases.hand_over())),
            Ok(Some(earliest)) => earliest,
            Err(error) if error.code() == Code::NonceUnavailable && self.reads_elsewhere(want) => {
                #[cfg(feature = "crowds")]
                (unpoisoned(&want.unread).last = Some(error));
                rest_unread(&leases.0, want);
                self.runtime.now()
            }
            Err(error) => return Err(error),
        };
        self.rename(want, None);
        Ok(Err(Refused { why: Refusal::Exhausted, earliest: Some(earliest) }))
    }

    /// Whether to ask for another slot, as the nonce of one could not be read: if there are others.
    fn reads_elsewhere(&self, want: &Want) -> bool {
        let named = want.slots.as_ref().map(Vec::len).or(self.own.as_ref().map(OwnSlots::len));
        let enough = |lacking: usize| named.is_none_or(|named| named >= want.count as usize + lacking);
        #[cfg(not(feature = "crowds"))]
        let tries = || want.reading.load(Relaxed);
        #[cfg(feature = "crowds")]
        let tries = || unpoisoned(&want.unread).tries(&enough);
        enough(1) && want.patient && tries() < TRIES
    }

    /// Claims at once, if the store can.
    pub(super) fn try_attempt(&self, want: &Want) -> Option<Result<Result<Vec<Grant>, Refused>>> {
        let claimed = self.try_claim(want, None)?;
        if let Ok(Err(refused)) = &claimed
            && self.misses_own(want, refused)
        {
            // A store that answers at once leaves nothing to wait for.
            return match self.take_stock(want, refused.why == Refusal::Quiet).now_or_never()? {
                Ok(()) => self.try_claim(want, None),
                Err(error) => Some(Err(error)),
            };
        }
        Some(claimed)
    }

    /// Claims at once where the store can, else by way of the courier.
    async fn claim_either_way(
        self: &Arc<Self>,
        want: &Want,
        seat: Option<&Seat>,
    ) -> Result<Result<Vec<Lease<S, R>>, Refused>> {
        let claimed = match self.try_claim(want, seat) {
            Some(claimed) => claimed,
            None => self.claim(want, seat).await,
        };
        let lease = |grant| self.lease(want, grant);
        Ok(claimed?.map(|grants| grants.into_iter().map(lease).collect()))
    }

    fn unanswered(&self, want: &Want) -> Error {
        let trouble = self.courier.trouble();
        // On a slow machine the timer of the whole acquisition may ring before that of the reading.
        #[cfg(feature = "crowds")]
        if trouble.is_none() && want.reading.load(Relaxed) > 0 {
            return unread("a slot");
        }
        // What it said before its last question still holds, and why.
        match want.told() {
            Some(refused) if want.patient => self.late(&refused, want),
            #[cfg(feature = "crowds")]
            _ if self.courier.is_crowded() => crowded("nothing is held by this call, try again later"),
            _ => unavailable(trouble.as_deref().unwrap_or("it gave no answer in time")),
        }
    }

    /// Whether waiting cannot help.
    pub(super) fn give_up_on(&self, refused: &Refused, want: &Want) -> Result<()> {
        match (refused.why, &want.slots) {
            (Refusal::NoSlot, Some(slots)) => {
                let first = slots.first().map_or("", SlotId::as_str);
                Err(no_slot("slots", &self.name.pool, first, slots.len()))
            }
            (Refusal::NoSlot, None) if !cfg!(feature = "crowds") => {
                Err(Error::new(Code::Exhausted, "the pool has no slots; add some first"))
            }
            (Refusal::NoSlot, None) => Err(Error::new(
                Code::Exhausted,
                format!("the pool {} has no slots; add some first", self.name.pool),
            )),
            _ => Ok(()),
        }
    }

    pub(in crate::client) fn late(&self, refused: &Refused, want: &Want) -> Error {
        if let Some(cause) = self.courier.trouble() {
            return unavailable(&cause);
        }
        // Nothing else came, or not in time.
        #[cfg(feature = "crowds")]
        if refused.why != Refusal::Quiet
            && let Some(error) = unpoisoned(&want.unread).last.take()
        {
            return error;
        }
        // Here that counts what could not be read too.
        #[cfg(not(feature = "crowds"))]
        if want.reading.load(Relaxed) > 0 {
            return unread("a slot");
        }
        let now = self.runtime.now();
        // Who waited behind others, and asked no more, had nothing come once that was over.
        let is_over = refused.why == Refusal::Quiet && want.patient && refused.earliest <= Some(now);
        let over = Refused { why: Refusal::Exhausted, earliest: None };
        let refused = if is_over && cfg!(feature = "crowds") { &over } else { refused };
        let left = refused.earliest.map(|at| at.saturating_sub(now));
        let code = if want.patient { Code::TimedOut } else { Code::Exhausted };
        let error = match (refused.why, left.map(|left| left / MILLISECOND)) {
            (Refusal::Quiet, Some(left)) => Error::new(
                code,
                format!("the store may have lost leases as it restarted; nothing is granted for {left} ms"),
            ),
            _ if want.stalled.load(Relaxed)
                || want.came_too_late()
                || want.patient && refused.why != Refusal::Beyond =>
            {
                Error::new(code, self.nothing_came(want))
            }
            (_, Some(left)) if self.makes_names => Error::new(
                Code::Exhausted,
                format!(
                    "the lock is held by another, for {left} ms if it is not renewed; wait by giving a timeout"
                ),
            ),
            (_, Some(left)) => Error::new(
                Code::Exhausted,
                format!(
                    "all slots are leased or rest; one is due within {left} ms; wait by giving a timeout"
                ),
            ),
            // Without `crowds` it is said in the words of pools.
            _ if self.makes_names && cfg!(feature = "crowds") => {
                Error::new(code, "others wait for the lock; wait by giving a timeout")
            }
            _ => Error::new(code, "too few slots are enabled, or others wait; enable or add some"),
        };
        error.after(left)
    }

    fn nothing_came(&self, want: &Want) -> String {
        #[cfg(feature = "crowds")]
        if let Some(stalled) = unpoisoned(&want.stalled_last).take() {
            // The pool's own read_nonce stands before whoever would rewind it.
            return format!(
                "what came free has a nonce above the chain's: {}, by the slot's name and a handle of the pool without read_nonce",
                stalled.message()
            );
        }
        let pool = &self.name.pool;
        match want.count {
            _ if want.stalled.load(Relaxed) => {
                "what came free has a nonce above the chain's: ask it why, or wait for `settle`".to_owned()
            }
            _ if want.came_too_late() => {
                "what was granted came too late to leave a quarter of its ttl; give a longer ttl, or see why the store, or the chain, is slow"
                    .to_owned()
            }
            // One text for locks and pools.
            _ if !cfg!(feature = "crowds") => {
                "nothing came free before the timeout; give a longer one".to_owned()
            }
            count if self.makes_names => {
                let first = want.slots.iter().flatten().next().map_or("", SlotId::as_str);
                let (of, others) = if count == 1 { ("", "") } else { ("of ", " and others") };
                format!("the lock {of}{first}{others} was held by others, or kept for those before, until the timeout; give a longer one")
            }
            1 => format!(
                "no slot of {pool} came free before the timeout; give a longer one, add slots, or do less under a lease"
            ),
            count => format!(
                "fewer than {count} slots of {pool} came free before the timeout; give a longer one, add slots, or do less under a lease"
            ),
        }
    }
}

/// The error of a pool that lacks what an argument names: of so many slots one, which may be another than the first.
pub(super) fn no_slot(field: &'static str, pool: &Name, first: &str, count: usize) -> Error {
    match count {
        // One text for all.
        _ if !cfg!(feature = "crowds") => Error::invalid(field, "the pool has no such slot"),
        0 | 1 => Error::invalid(
            field,
            format_args!("the pool {pool} has no slot {first}; add it, or open the pool with it"),
        ),
        _ => Error::invalid(
            field,
            format_args!(
                "the pool {pool} lacks one of the {count} slots from {first} on; inspect them, and add it"
            ),
        ),
    }
}

/// Scatters the bits of a counter (splitmix64).
pub(in crate::client) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
