//! A pool, as one process has it.

pub(super) mod acquisition;
pub(super) mod admin;
pub(super) mod courier;
pub(super) mod keeper;
pub(super) mod lease;
pub(super) mod nonce_source;
pub(super) mod pursuit;
pub(super) mod statistics;
pub(super) mod stock;
#[cfg(test)]
#[cfg(feature = "redis")]
mod tests;
pub(super) mod vigil;
pub(super) mod waiting;
pub(super) mod yields;

use std::fmt;
use std::pin::pin;
use std::sync::atomic::AtomicU64;
#[cfg(feature = "crowds")]
use std::sync::atomic::Ordering::Release;
use std::sync::{Arc, Mutex as SyncMutex};

use futures_util::lock::Mutex;
use rustc_hash::FxHashMap;

#[cfg(feature = "crowds")]
use self::courier::crowded;
use self::courier::{Courier, unsure};
use self::keeper::Keeper;
use self::lease::unexpected;
use self::statistics::{Counters, GivenUp};
use self::stock::Stock;
use self::waiting::WaitingRoom;
use self::yields::Yields;
use super::{Acquire, AcquireOptions, Lease, PoolOptions, ReadNonce, Statistics, Unit};
use crate::error::{Code, Error, Result};
use crate::handshake::Contention;
use crate::id::{Name, PoolName, SlotId};
use crate::nonce::{Nonce, Outcome};
use crate::runtime::{self, Runtime};
use crate::slots::{LeaseRef, MAX_PER_REQUEST, Reply, Request, SlotSpec};
use crate::store::{Store, StorePool, Watch};
use crate::value::Value;
use crate::{MILLISECOND, Micros};

/// What a lease is shortened by on its way over a network: a hundredth for clocks that drift, and this.
const MARGIN: Micros = 2 * MILLISECOND;

/// Slots that are leased one holder at a time.
pub struct Pool<S: Store, R: Runtime> {
    pub(super) core: Arc<PoolCore<S, R>>,
}

/// What the handles and leases of a pool share.
pub(super) struct PoolCore<S: Store, R: Runtime> {
    pub name: PoolName,
    pub options: PoolOptions,
    pub runtime: R,
    pub counters: Counters,
    pub response_timeout: Micros,
    pub courier: Arc<Courier<S::Pool, R>>,
    pub room: Arc<WaitingRoom>,
    pub keeper: Arc<Keeper>,
    pub yields: Yields,
    /// Whether claims make the slots that they name: they are locks.
    pub makes_names: bool,
    pub read_nonce: Option<ReadNonce>,
    /// This process's slots; `None` if it takes whatever there is.
    pub own: Option<OwnSlots>,
    /// Until when claims name this process's slots, on the local clock, as the pool has others' too.
    pub own_until: AtomicU64,
    /// Which of this process's slots it has.
    pub stock: SyncMutex<Stock>,
    /// Until when the store is quiet, as it said last, on the local clock.
    pub quiet_until: AtomicU64,
    /// Names acquisitions and seeds choices.
    pub counter: AtomicU64,
    pub secret: u64,
    pub watch: Mutex<Option<Watch>>,
    /// Until when nobody tries again to hear of calls, on the local clock: it failed, or hung.
    pub deaf_until: AtomicU64,
    /// Which of its subscriptions calls are heard by; 0 if they are not.
    #[cfg(feature = "crowds")]
    pub hearing: AtomicU64,
}

/// The slots that a process named.
pub(super) struct OwnSlots {
    ids: Vec<SlotId>,
    places: FxHashMap<SlotId, u32>,
    /// How the process spells those that it spells otherwise, by their places; empty if there are none.
    spellings: Vec<Option<Box<str>>>,
}

impl OwnSlots {
    fn new(slots: &[(String, SlotSpec)]) -> Self {
        let places: FxHashMap<_, _> =
            slots.iter().zip(0..).map(|((_, spec), at)| (spec.slot.clone(), at)).collect();
        // Each once, whatever was named twice.
        let ids = places.keys().cloned().collect();
        let otherwise = |(shown, spec): &(String, SlotSpec)| shown != spec.slot.as_str();
        let spelling = |slot: &(String, SlotSpec)| otherwise(slot).then(|| slot.0.as_str().into());
        let any = slots.iter().any(otherwise);
        let spellings = if any { slots.iter().map(spelling).collect() } else { Vec::new() };
        OwnSlots { ids, places, spellings }
    }

    pub fn ids(&self) -> &[SlotId] {
        &self.ids
    }

    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether a pool is sure to have these slots only. All of them were added as it was opened: as many in all
    /// leave no room for one of another process.
    pub fn are_all(&self, ever_added: usize) -> bool {
        ever_added == self.places.len()
    }

    pub fn has(&self, slot: &SlotId) -> bool {
        self.places.contains_key(slot)
    }

    /// How the process spells a slot, if not as its id is.
    pub fn spelling(&self, slot: &SlotId) -> Option<&str> {
        if self.spellings.is_empty() {
            return None;
        }
        self.spellings.get(*self.places.get(slot)? as usize)?.as_deref()
    }
}

impl<S: Store, R: Runtime> Pool<S, R> {
    pub(super) fn new(
        store: &S,
        runtime: R,
        name: PoolName,
        options: PoolOptions,
        read_nonce: Option<ReadNonce>,
        response_timeout: Micros,
    ) -> Self {
        let pool = store.pool(&name);
        let definition = definition(&options, options.slots.as_deref().unwrap_or_default(), pool.lag());
        let room = Arc::<WaitingRoom>::default();
        let courier = Courier::new(pool, runtime.clone(), response_timeout, definition, room.clone());
        let own = options.slots.as_deref().map(OwnSlots::new);
        let secret = runtime.random();
        let makes_names = name.pool == Name::of_locks();
        let core = PoolCore {
            name,
            options,
            runtime,
            counters: Counters::default(),
            response_timeout,
            courier,
            room,
            keeper: Arc::default(),
            yields: Yields::default(),
            makes_names,
            read_nonce,
            own,
            own_until: AtomicU64::new(0),
            stock: SyncMutex::default(),
            quiet_until: AtomicU64::new(0),
            counter: AtomicU64::new(0),
            secret,
            watch: Mutex::default(),
            deaf_until: AtomicU64::new(0),
            #[cfg(feature = "crowds")]
            hearing: AtomicU64::new(0),
        };
        Pool { core: Arc::new(core) }
    }

    /// Makes the pool in the store, or adds the slots that it does not have.
    pub(super) async fn open(&self) -> Result<()> {
        self.core.options.check()?;
        self.core.interval(None, self.core.options.ttl)?;
        self.core.define(self.core.courier.definition()).await?;
        if self.core.own.is_some() {
            self.core.note_losses().await?;
        }
        Ok(())
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        self.core.name.pool.as_str()
    }

    /// Leases one slot, waiting until the acquisition's or the pool's timeout. `await` it, perhaps after more words.
    /// One that waits is to be polled on, or dropped. While it stands still, beside another branch of a `select!`, nobody has what it is
    /// granted: of what it was called for that is given back after a second, and it goes on waiting; what it had asked for itself is
    /// its own for as long as a lease lasts.
    ///
    /// # Errors
    /// `timed_out`, or `exhausted` with a timeout of 0; `store_unavailable` with the cause;
    /// `nonce_unavailable` if `read_nonce` failed; `invalid_argument`.
    pub fn acquire(&self) -> Acquire<'_, S, R> {
        Acquire::new(self, None)
    }

    /// Leases `count` slots at once: all of them or none.
    ///
    /// # Errors
    /// As [`Self::acquire`].
    pub fn acquire_many(&self, count: u32) -> Acquire<'_, S, R, true> {
        Acquire::new(self, Some(count))
    }

    /// Leases one slot by options.
    ///
    /// # Errors
    /// As [`Self::acquire`].
    pub async fn acquire_with(&self, options: AcquireOptions) -> Result<Lease<S, R>> {
        only_one(&options)?;
        let mut leases = self.core.acquire_counted(options).await?;
        leases.pop().ok_or_else(|| unexpected(&Reply::Granted(Vec::new())))
    }

    /// Leases `count` slots at once by options, which must say how many.
    ///
    /// # Errors
    /// As [`Self::acquire`].
    pub async fn acquire_many_with(&self, options: AcquireOptions) -> Result<Vec<Lease<S, R>>> {
        // None is as many as 0, which are refused.
        let count = Some(options.count.unwrap_or(0));
        self.core.acquire_counted(AcquireOptions { count, ..options }).await
    }

    /// Leases one slot at once or not at all, without a future: for stores in memory. The chain is not
    /// asked: a lease whose nonce is not known comes without.
    ///
    /// # Errors
    /// `invalid_argument` if the store is not in memory.
    pub fn try_acquire(&self) -> Result<Option<Lease<S, R>>> {
        self.try_acquire_with(AcquireOptions::default())
    }

    /// The same by options.
    ///
    /// # Errors
    /// As [`Self::try_acquire`]; `invalid_argument` naming what is wrong.
    pub fn try_acquire_with(&self, options: AcquireOptions) -> Result<Option<Lease<S, R>>> {
        only_one(&options)?;
        if options.timeout.unwrap_or(0) > 0 || options.steal.is_some() {
            return Err(Error::invalid("try_acquire", "does not wait; leave out timeout and steal"));
        }
        let core = &self.core;
        let want = core.want(options, 0)?;
        match core.try_attempt(&want) {
            None => {
                Err(Error::invalid("try_acquire", "works in memory only; use acquire with a timeout of 0"))
            }
            Some(Err(error)) => Err(error),
            Some(Ok(Err(_))) => {
                Counters::add(&core.counters.refused);
                Ok(None)
            }
            Some(Ok(Ok(mut grants))) => {
                core.counters.waited(0);
                Ok(grants.pop().map(|grant| core.lease(&want, grant)))
            }
        }
    }

    /// What this handle has done so far.
    pub fn statistics(&self) -> Statistics {
        self.core.counters.read(self.core.room.len(), self.core.yields.longest())
    }

    /// The time to live, in microseconds, that outlasts a chain of those who steal slots, as [`super::Lock::recommended_ttl`] has it.
    ///
    /// # Errors
    /// As it has them.
    pub fn recommended_ttl(&self, contention: Contention) -> Result<Option<Micros>> {
        self.core.recommended_ttl(contention)
    }

    /// The same of options, in the unit of the language.
    ///
    /// # Errors
    /// As [`Self::recommended_ttl`].
    #[doc(hidden)]
    pub fn recommended_ttl_by(&self, options: &Value, unit: Unit) -> Result<Option<f64>> {
        self.core.recommended_ttl_by(options, unit)
    }
}

impl<S: Store, R: Runtime> Clone for Pool<S, R> {
    fn clone(&self) -> Self {
        Pool { core: self.core.clone() }
    }
}

impl<S: Store, R: Runtime> fmt::Debug for Pool<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool {{ name: {:?} }}", self.name())
    }
}

impl<S: Store, R: Runtime> PoolCore<S, R> {
    /// Ends what waits for a slot.
    pub fn close(&self) {
        self.room.close();
        self.hear_no_more();
    }

    /// Listens no longer, once it is closed: unless the holder of a lease wants to hear who claims it, as what is held stays held. Who
    /// has the subscription just now sees to it.
    pub fn hear_no_more(&self) {
        #[cfg(feature = "crowds")]
        let is_wanted = !self.room.is_closed() || self.keeper.listens();
        #[cfg(not(feature = "crowds"))]
        let is_wanted = false;
        if !is_wanted && let Some(mut watch) = self.watch.try_lock() {
            *watch = None;
            // Who asks in turns hears nothing any more.
            #[cfg(feature = "crowds")]
            self.hearing.store(0, Release);
        }
    }

    /// Leases, and counts how it went.
    pub async fn acquire_counted(self: &Arc<Self>, options: AcquireOptions) -> Result<Vec<Lease<S, R>>> {
        let began = self.runtime.now();
        let want = self.want(options, began)?;
        let given_up = GivenUp(&self.counters);
        let leases = self.acquire(want).await?;
        std::mem::forget(given_up);
        self.counters.waited(self.runtime.now().saturating_sub(began));
        Ok(leases)
    }

    /// The time to live that outlasts a chain of thieves, by what was measured here of late.
    pub fn recommended_ttl(&self, contention: Contention) -> Result<Option<Micros>> {
        contention.recommended_ttl(self.yields.longest(), self.courier.distance())
    }

    pub fn recommended_ttl_by(&self, options: &Value, unit: Unit) -> Result<Option<f64>> {
        let ttl = self.recommended_ttl(Contention::read(options)?)?;
        Ok(ttl.map(|ttl| unit.count(ttl)))
    }

    pub fn reads_nonces(&self) -> bool {
        self.read_nonce.is_some()
    }

    /// Asks the chain for the next nonce of a slot.
    pub async fn read_nonce(&self, slot: &str, deadline: Micros) -> Result<Nonce> {
        let Some(source) = &self.read_nonce else {
            return Err(Error::new(
                Code::NonceUnavailable,
                "the pool has no read_nonce; give one as it is opened",
            ));
        };
        match runtime::by(&self.runtime, deadline, source.read(slot)).await {
            Some(Ok(nonce)) => Ok(nonce),
            Some(Err(cause)) => Err(Error::new(
                Code::NonceUnavailable,
                format!("read_nonce failed for {slot}: {cause}; try again when it answers"),
            )),
            None => Err(unread(slot)),
        }
    }

    /// The clock that leases are counted on: the store's where it is in this process, else the local one.
    pub fn lease_clock(&self) -> Micros {
        self.courier.pool().clock().unwrap_or_else(|| self.runtime.now())
    }

    /// When a lease ends here that ends at `deadline` in the store, as said at `now` to what was sent at `sent`:
    /// never later than there.
    pub fn local_deadline(&self, sent: Micros, now: Micros, deadline: Micros) -> Micros {
        if self.answers_at_once() {
            return deadline;
        }
        in_time(sent, deadline.saturating_sub(now))
    }

    /// When a lease ends that its keeper watches: as long before its end in the store for stores that answer at
    /// once, where timers come late too.
    pub fn kept_until(&self, sent: Micros, now: Micros, deadline: Micros) -> Micros {
        if self.answers_at_once() {
            in_time(now, deadline.saturating_sub(now))
        } else {
            self.local_deadline(sent, now, deadline)
        }
    }

    pub fn answers_at_once(&self) -> bool {
        self.courier.pool().answers_at_once()
    }

    pub fn release_now(&self, lease: &LeaseRef, outcome: Outcome, cooldown: Micros) -> Option<Reply> {
        self.courier.pool().release_now(lease, outcome, cooldown)
    }

    /// Makes the pool in the store, or adds slots to it; how many were added.
    pub async fn define(&self, definition: &[Request]) -> Result<u32> {
        let mut sum = 0;
        for request in definition {
            match self.ask(self.courier.with_others(request)).await?.0 {
                Reply::Defined { added, .. } => sum += added,
                Reply::Full => {
                    return Err(Error::invalid("slots", "the pool would have more than 1,000,000"));
                }
                other => return Err(unexpected(&other)),
            }
        }
        Ok(sum)
    }

    /// Has a store that answers at once perform a request, and make the pool first if it is not there.
    #[cfg_attr(target_family = "wasm", inline(never))]
    pub(in crate::client) fn perform_now(&self, seed: u32, request: &Request) -> Option<(Micros, Reply)> {
        loop {
            let (now, reply) = self.courier.pool().perform_now(seed, request)?;
            if !matches!(reply, Reply::Undefined) {
                return Some((now, reply));
            }
            for request in self.courier.definition() {
                self.courier.pool().perform_now(0, request)?;
            }
        }
    }

    /// Asks the store; the reply, the store's time, and when the request was sent.
    pub async fn ask(&self, request: Request) -> Result<(Reply, Micros, Micros)> {
        let sent = self.runtime.now();
        if let Some((now, reply)) = self.perform_now(0, &request) {
            return Ok((reply, now, sent));
        }
        let patience = sent + self.response_timeout;
        let limit = patience + self.response_timeout;
        match runtime::by(&self.runtime, limit, pin!(self.courier.submit(request, patience))).await {
            Some(delivered) => {
                let delivered = delivered?;
                let (now, sent) = (delivered.now, delivered.sent);
                Ok((delivered.take(), now, sent))
            }
            None => Err(self.silence(unsure)),
        }
    }

    /// Gives a slot back, which is tried even if the caller goes away.
    pub async fn release(&self, lease: &LeaseRef, outcome: Outcome, cooldown: Micros) -> Result<Reply> {
        if let Some(reply) = self.release_now(lease, outcome, cooldown) {
            return Ok(reply);
        }
        let request = Request::Release { lease: lease.clone(), outcome, cooldown };
        let sent = self.runtime.now();
        let patience = sent + self.response_timeout;
        let reply = self.courier.hand_back(request, patience, sent + self.options.ttl);
        match runtime::by(&self.runtime, patience + self.response_timeout, pin!(reply)).await {
            Some(delivered) => Ok(delivered?.take()),
            None => Err(self.silence(unsure)),
        }
    }

    /// The error of a store that did not answer in time, of what it says of the rest; or that so many wait for it here.
    pub(super) fn silence(&self, error: fn(&str) -> Error) -> Error {
        #[cfg(feature = "crowds")]
        if self.courier.is_crowded() {
            return crowded("it may be done or not, or yet: look when fewer wait");
        }
        error(self.courier.trouble().as_deref().unwrap_or("it gave no answer in time"))
    }

    pub fn release_and_forget(&self, lease: &LeaseRef, outcome: Outcome, cooldown: Micros) {
        if self.release_now(lease, outcome, cooldown).is_some() {
            return;
        }
        let request = Request::Release { lease: lease.clone(), outcome, cooldown };
        let until = self.runtime.now() + self.options.ttl;
        drop(self.courier.hand_back(request, until, until));
    }
}

/// The end of what was begun at `sent` and ends `left` later, less what clocks may differ by.
pub(super) fn in_time(sent: Micros, left: Micros) -> Micros {
    (sent + left - left / 100).saturating_sub(MARGIN)
}

/// The chain did not answer for `what`.
pub(super) fn unread(what: &str) -> Error {
    Error::new(
        Code::NonceUnavailable,
        format!("read_nonce gave no answer for {what} in time; try again when it answers"),
    )
}

fn only_one(options: &AcquireOptions) -> Result<()> {
    match options.count {
        None | Some(1) => Ok(()),
        Some(_) => Err(Error::invalid("count", "acquire leases one slot; use acquire_many for more")),
    }
}

/// The requests that make a pool of these options and slots in a store that [lags](StorePool::lag) so much.
pub(super) fn definition(options: &PoolOptions, slots: &[(String, SlotSpec)], lag: Micros) -> Vec<Request> {
    let define = |slots: &[(String, SlotSpec)]| Request::Define {
        slots: SlotSpec::together(slots.iter().map(|(_, spec)| spec)),
        longest: options.ttl + lag,
        doubt_rest: options.doubt_rest,
    };
    if slots.is_empty() { vec![define(slots)] } else { slots.chunks(MAX_PER_REQUEST).map(define).collect() }
}
