//! A pool, as one process has it.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use super::courier::{Courier, unavailable};
use super::lease::unexpected;
use super::statistics::Counters;
use super::waiting::WaitingRoom;
use super::{AcquireOptions, Lease, PoolOptions, ReadNonce, Runtime, Statistics, runtime};
use crate::error::{Code, Error, Result};
use crate::id::{PoolName, SlotId};
use crate::nonce::Nonce;
use crate::slots::{Choice, Grant, MAX_PER_REQUEST, Refusal, Reply, Request, SlotSpec};
use crate::store::{Store, StorePool, Watch};
use crate::{MILLISECOND, Micros, SECOND};

/// A waiter asks again after so long even if nobody called: a message may have been lost.
const RECHECK: Micros = 5 * SECOND;
/// The same over a store that cannot call.
const POLL: Micros = SECOND / 4;
/// What a lease is shortened by on its way over a network: a hundredth for clocks that drift, and this.
const MARGIN: Micros = 2 * MILLISECOND;
/// How long a slot rests at most whose chain names too low a nonce.
const STALL_REST: Micros = 5 * SECOND;

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
    read_nonce: Option<ReadNonce>,
    /// This process's slots, by id, as it spells them; `None` if it takes whatever there is.
    own: Option<HashMap<SlotId, Arc<str>>>,
    /// Whether the pool has slots of other processes too.
    mixed: AtomicBool,
    /// Names acquisitions and seeds choices.
    counter: AtomicU64,
    secret: u64,
    watch: Mutex<Option<Watch>>,
}

/// A claim that was not granted.
struct Refused {
    why: Refusal,
    /// When asking again can help, on the local clock.
    earliest: Option<Micros>,
}

/// What one acquisition wants, options applied.
struct Want {
    count: u32,
    ttl: Micros,
    slots: Option<Vec<SlotId>>,
    strategy: crate::slots::Strategy,
    deadline: Micros,
    patient: bool,
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
        let courier =
            Courier::new(store.pool(&name), runtime.clone(), response_timeout, definition(&options));
        let own = options.slots.as_ref().map(|slots| {
            slots.iter().map(|(shown, spec)| (spec.slot.clone(), Arc::from(shown.as_str()))).collect()
        });
        let secret = runtime.random();
        let core = PoolCore {
            name,
            options,
            runtime,
            counters: Counters::default(),
            response_timeout,
            courier,
            room: Arc::default(),
            read_nonce,
            own,
            mixed: AtomicBool::new(false),
            counter: AtomicU64::new(0),
            secret,
            watch: Mutex::default(),
        };
        Pool { core: Arc::new(core) }
    }

    /// Makes the pool in the store, or adds the slots that it does not have.
    pub(super) async fn open(&self) -> Result<()> {
        for request in self.core.courier.definition() {
            match self.core.ask(request.clone()).await?.0 {
                Reply::Defined { .. } => {}
                Reply::Full => {
                    return Err(Error::invalid("slots", "the pool would have more than 1,000,000"));
                }
                other => return Err(unexpected(&other)),
            }
        }
        Ok(())
    }

    /// The pool's name.
    pub fn name(&self) -> &str {
        self.core.name.pool.as_str()
    }

    /// Leases one slot, waiting until the acquisition's or the pool's timeout.
    ///
    /// # Errors
    /// `timed_out`, or `exhausted` with a timeout of 0; `store_unavailable` with the cause;
    /// `nonce_unavailable` if `read_nonce` failed; `invalid_argument`.
    pub async fn acquire(&self, options: AcquireOptions) -> Result<Lease<S, R>> {
        if options.count.is_some_and(|count| count != 1) {
            return Err(Error::invalid("count", "acquire leases one slot; use acquire_many for more"));
        }
        let mut leases = self.acquire_many(options).await?;
        leases.pop().ok_or_else(|| unexpected(&Reply::Granted(Vec::new())))
    }

    /// Leases `count` slots at once: all of them or none.
    ///
    /// # Errors
    /// As [`Self::acquire`].
    pub async fn acquire_many(&self, options: AcquireOptions) -> Result<Vec<Lease<S, R>>> {
        let core = &self.core;
        let began = core.runtime.now();
        let outcome = core.acquire(core.want(options, began)).await;
        match &outcome {
            Ok(_) => core.counters.waited(core.runtime.now().saturating_sub(began)),
            Err(_) => Counters::add(&core.counters.refused),
        }
        outcome
    }

    /// Leases one slot at once or not at all, without a future: for stores in memory. The chain is not
    /// asked: a lease whose nonce is not known comes without.
    ///
    /// # Errors
    /// `invalid_argument` if the store is not in memory.
    pub fn try_acquire(&self, options: AcquireOptions) -> Result<Option<Lease<S, R>>> {
        let core = &self.core;
        let began = core.runtime.now();
        let want = core.want(options, began);
        match core.try_claim(&want, false) {
            None => {
                Err(Error::invalid("try_acquire", "works in memory only; use acquire with a timeout of 0"))
            }
            Some(Err(error)) => Err(error),
            Some(Ok(Err(_))) => {
                Counters::add(&core.counters.refused);
                Ok(None)
            }
            Some(Ok(Ok(mut leases))) => {
                core.counters.waited(0);
                Ok(leases.pop())
            }
        }
    }

    /// What this handle has done so far.
    pub fn statistics(&self) -> Statistics {
        self.core.counters.read(self.core.room.len())
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
    fn want(&self, options: AcquireOptions, now: Micros) -> Want {
        let timeout = options.timeout.unwrap_or(self.options.timeout);
        Want {
            count: options.count.unwrap_or(1),
            ttl: options.ttl.unwrap_or(self.options.ttl),
            slots: options.slots,
            strategy: options.strategy.unwrap_or(self.options.strategy),
            deadline: now + timeout,
            patient: timeout > 0,
        }
    }

    async fn acquire(self: &Arc<Self>, want: Want) -> Result<Vec<Lease<S, R>>> {
        let any = want.slots.is_none();
        let queues = want.patient && any && self.room.has_waiters();
        let mut refused = Refused { why: Refusal::Exhausted, earliest: None };
        if !queues {
            match self.attempt(&want, false).await? {
                Ok(leases) => return Ok(leases),
                Err(no) => refused = no,
            }
            self.give_up_on(&refused, &want)?;
        }
        if !want.patient {
            return Err(self.late(&refused, &want));
        }
        let mut seat = self.room.enter(any)?;
        let mut fallback = POLL;
        if !queues {
            // Calls are heard from here on; what happened before is seen by asking once more.
            if self.listen().await {
                fallback = RECHECK;
            }
            match self.attempt(&want, true).await? {
                Ok(leases) => {
                    seat.leave();
                    return Ok(leases);
                }
                Err(no) => refused = no,
            }
        } else if self.listen().await {
            fallback = RECHECK;
        }
        loop {
            seat.stay();
            self.set_alarm(&refused, fallback);
            if !seat.called(&self.runtime, want.deadline).await {
                return Err(self.late(&refused, &want));
            }
            match self.attempt(&want, true).await? {
                Ok(leases) => {
                    seat.leave();
                    // Others may be ready too: whoever is next finds out, unless a call comes first.
                    self.room.set_alarm(&self.runtime, self.runtime.now() + fallback);
                    return Ok(leases);
                }
                Err(no) => refused = no,
            }
            self.give_up_on(&refused, &want)?;
        }
    }

    fn set_alarm(&self, refused: &Refused, fallback: Micros) {
        let now = self.runtime.now();
        let recheck = now + self.runtime.jitter(fallback);
        // A moment later, so that what is due has come about.
        let due = refused.earliest.map_or(recheck, |earliest| earliest.max(now) + MILLISECOND);
        self.room.set_alarm(&self.runtime, due.min(recheck));
    }

    /// Claims once and, where the pool has a `read_nonce`, sees to it that every lease has its nonce.
    async fn attempt(self: &Arc<Self>, want: &Want, wait: bool) -> Result<Result<Vec<Lease<S, R>>, Refused>> {
        let claimed = match self.try_claim(want, wait) {
            Some(claimed) => claimed?,
            None => self.claim(want, wait).await?,
        };
        let leases = match claimed {
            Ok(leases) => leases,
            Err(refused) => return Ok(Err(refused)),
        };
        if self.read_nonce.is_some() {
            for lease in leases.iter().filter(|lease| lease.nonce().is_none()) {
                if let Some(earliest) = self.complete(lease, want).await? {
                    // The rest are given back as they are dropped: nobody has seen their nonces.
                    leases.iter().for_each(Lease::unused);
                    return Ok(Err(Refused { why: Refusal::Exhausted, earliest: Some(earliest) }));
                }
            }
        }
        Ok(Ok(leases))
    }

    /// Asks the chain for a lease's nonce and records the answer. Returns when asking again can help, if the
    /// chain's answer cannot be believed; the slot then rests.
    async fn complete(&self, lease: &Lease<S, R>, want: &Want) -> Result<Option<Micros>> {
        let limit = self.runtime.now() + lease.remaining();
        let deadline = if want.patient { want.deadline.min(limit) } else { limit };
        let chain = match self.read_nonce(lease.slot(), deadline).await {
            Ok(chain) => chain,
            Err(error) => {
                lease.unused();
                return Err(error);
            }
        };
        match lease.resync(chain, false).await {
            Ok(_) => {}
            Err(error) if error.code() == Code::Stalled => {
                lease.unused();
                let rest = super::ReleaseOptions { cooldown: Some(STALL_REST.min(self.options.settle)) };
                lease.release(rest).await?;
                return Ok(Some(self.runtime.now() + STALL_REST));
            }
            Err(error) if error.code() == Code::Lost => return Ok(Some(self.runtime.now())),
            Err(error) => return Err(error),
        }
        if lease.remaining() < want.ttl / 2 {
            lease.renew(Some(want.ttl)).await?;
        }
        Ok(None)
    }

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
                format!("read_nonce failed for {slot}: {cause}; the slot was given back"),
            )),
            None => Err(Error::new(
                Code::NonceUnavailable,
                format!("read_nonce gave no answer for {slot} in time; the slot was given back"),
            )),
        }
    }

    /// Claims at once, if the store can.
    #[allow(
        clippy::type_complexity,
        reason = "each layer says something else: can it, did it fail, was it granted"
    )]
    fn try_claim(
        self: &Arc<Self>,
        want: &Want,
        wait: bool,
    ) -> Option<Result<Result<Vec<Lease<S, R>>, Refused>>> {
        loop {
            let sent = self.runtime.now();
            let (request, seed) = self.claim_request(want, wait);
            let (now, reply) = self.courier.pool().perform_now(seed, &request)?;
            if reply == Reply::Undefined {
                for request in self.courier.definition() {
                    self.courier.pool().perform_now(0, request)?;
                }
                continue;
            }
            match self.judge(want, reply, now, sent) {
                Ok(Judged::Foreign) => continue,
                Ok(Judged::Granted(leases)) => return Some(Ok(Ok(leases))),
                Ok(Judged::Refused(refused)) => return Some(Ok(Err(refused))),
                Err(error) => return Some(Err(error)),
            }
        }
    }

    async fn claim(self: &Arc<Self>, want: &Want, wait: bool) -> Result<Result<Vec<Lease<S, R>>, Refused>> {
        loop {
            let (request, _) = self.claim_request(want, wait);
            let patience = if want.patient { want.deadline } else { 0 };
            let limit =
                want.deadline.max(self.runtime.now() + if want.patient { 0 } else { self.response_timeout });
            let answer = runtime::by(&self.runtime, limit, self.courier.submit(request, patience)).await;
            let delivered = match answer {
                Some(delivered) => delivered?,
                None => return Err(self.unanswered(want)),
            };
            let (now, sent) = (delivered.now, delivered.sent);
            match self.judge(want, delivered.take(), now, sent)? {
                Judged::Foreign => continue,
                Judged::Granted(leases) => return Ok(Ok(leases)),
                Judged::Refused(refused) => return Ok(Err(refused)),
            }
        }
    }

    fn unanswered(&self, want: &Want) -> Error {
        match self.courier.trouble() {
            Some(cause) => unavailable(&cause),
            None if want.patient => timed_out(want),
            None => unavailable("no answer in time"),
        }
    }

    fn claim_request(&self, want: &Want, wait: bool) -> (Request, u32) {
        let count = self.counter.fetch_add(1, Relaxed);
        let mixed = mix(self.secret ^ count);
        let holder = u128::from(self.secret) << 64 | u128::from(count);
        let choice = match &want.slots {
            Some(slots) => Choice::These { slots: slots.clone(), least: want.count, most: want.count },
            None if self.mixed.load(Relaxed) => self.own_choice(want.count, mixed),
            None => Choice::Any { strategy: want.strategy, least: want.count, most: want.count },
        };
        let max_hold = self.options.max_hold;
        (Request::Claim { choice, holder, ttl: want.ttl, max_hold, wait }, (mixed >> 32) as u32)
    }

    /// In a pool that other processes share with slots of their own: any of this process's slots, in a
    /// random order.
    fn own_choice(&self, count: u32, random: u64) -> Choice {
        let mut slots: Vec<SlotId> = self.own.iter().flat_map(|own| own.keys().cloned()).collect();
        let mut state = random;
        for at in (1..slots.len()).rev() {
            state = mix(state);
            slots.swap(at, (state % (at as u64 + 1)) as usize);
        }
        slots.truncate(MAX_PER_REQUEST);
        Choice::These { slots, least: count, most: count }
    }

    fn judge(self: &Arc<Self>, want: &Want, reply: Reply, now: Micros, sent: Micros) -> Result<Judged<S, R>> {
        let grants = match reply {
            Reply::Granted(grants) => grants,
            Reply::Refused { why, earliest } => {
                let earliest = earliest.map(|at| self.runtime.now() + at.saturating_sub(now));
                return Ok(Judged::Refused(Refused { why, earliest }));
            }
            other => return Err(unexpected(&other)),
        };
        let foreign = |grant: &Grant| self.own.as_ref().is_some_and(|own| !own.contains_key(&grant.slot));
        if want.slots.is_none() && grants.iter().any(foreign) {
            grants.into_iter().for_each(|grant| self.courier.give_back(grant));
            self.mixed.store(true, Relaxed);
            return Ok(Judged::Foreign);
        }
        let here = self.runtime.now();
        let deadline = |grant: &Grant| self.local_deadline(sent, grant.deadline.saturating_sub(now));
        // What arrives with little left would be lost before it is used.
        if grants.iter().any(|grant| deadline(grant) < here + want.ttl.min(self.hold_limit()) / 4) {
            grants.into_iter().for_each(|grant| self.courier.give_back(grant));
            return Ok(Judged::Refused(Refused { why: Refusal::Exhausted, earliest: Some(here) }));
        }
        let lease = |grant: Grant| {
            let shown = self.own.as_ref().and_then(|own| own.get(&grant.slot).cloned());
            let until = deadline(&grant);
            Lease::new(self.clone(), grant, until, shown)
        };
        Ok(Judged::Granted(grants.into_iter().map(lease).collect()))
    }

    fn hold_limit(&self) -> Micros {
        if self.options.max_hold == 0 { Micros::MAX } else { self.options.max_hold }
    }

    /// When a lease of `left` ends here: never later than in the store.
    pub fn local_deadline(&self, sent: Micros, left: Micros) -> Micros {
        if self.answers_at_once() { sent + left } else { (sent + left - left / 100).saturating_sub(MARGIN) }
    }

    /// Whether waiting cannot help.
    fn give_up_on(&self, refused: &Refused, want: &Want) -> Result<()> {
        match (refused.why, &want.slots) {
            (Refusal::NoSlot, Some(_)) => {
                Err(Error::invalid("slots", "names a slot that the pool does not have"))
            }
            (Refusal::NoSlot, None) => Err(Error::new(
                Code::Exhausted,
                format!("the pool {} has no slots; add some first", self.name.pool),
            )),
            _ => Ok(()),
        }
    }

    fn late(&self, refused: &Refused, want: &Want) -> Error {
        if let Some(cause) = self.courier.trouble() {
            return unavailable(&cause);
        }
        let left = |at: Micros| at.saturating_sub(self.runtime.now()) / MILLISECOND;
        match (refused.why, refused.earliest) {
            (Refusal::Quiet, Some(at)) => Error::new(
                if want.patient { Code::TimedOut } else { Code::Exhausted },
                format!(
                    "the store may have lost leases (it restarted, or its memory was lost); nothing is granted until they must have ended, in {} ms",
                    left(at)
                ),
            ),
            _ if want.patient => timed_out(want),
            (_, Some(at)) => Error::new(
                Code::Exhausted,
                format!(
                    "all slots are leased or rest; one is due in {} ms at the latest; wait by giving a timeout",
                    left(at)
                ),
            ),
            _ => Error::new(Code::Exhausted, "no slot can be handed out; enable or add some"),
        }
    }

    /// Makes sure that calls are heard; false if this store cannot call.
    async fn listen(self: &Arc<Self>) -> bool {
        if self.watched().is_some() {
            return true;
        }
        let room = Arc::downgrade(&self.room);
        let listener: crate::store::Listener = Arc::new(move |freed| {
            if let Some(room) = room.upgrade() {
                room.call(freed);
            }
        });
        let limit = self.runtime.now() + self.response_timeout;
        match runtime::by(&self.runtime, limit, self.courier.pool().watch(listener)).await {
            Some(Ok(Some(watch))) => {
                *self.watched() = Some(watch);
                true
            }
            _ => false,
        }
    }

    fn watched(&self) -> std::sync::MutexGuard<'_, Option<Watch>> {
        self.watch.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn answers_at_once(&self) -> bool {
        self.courier.pool().answers_at_once()
    }

    pub fn perform_now(&self, request: &Request) -> Option<Reply> {
        self.courier.pool().perform_now(0, request).map(|(_, reply)| reply)
    }

    /// Asks the store; the reply, the store's time, and when the request was sent.
    pub async fn ask(&self, request: Request) -> Result<(Reply, Micros, Micros)> {
        let sent = self.runtime.now();
        if let Some((now, reply)) = self.courier.pool().perform_now(0, &request) {
            return Ok((reply, now, sent));
        }
        let patience = sent + self.response_timeout;
        let limit = patience + self.response_timeout;
        match runtime::by(&self.runtime, limit, self.courier.submit(request, patience)).await {
            Some(delivered) => {
                let delivered = delivered?;
                let (now, sent) = (delivered.now, delivered.sent);
                Ok((delivered.take(), now, sent))
            }
            None => {
                Err(unavailable(&self.courier.trouble().unwrap_or_else(|| "no answer in time".to_owned())))
            }
        }
    }

    /// Sends what must be tried even if the caller goes away. A slot that is given back is for those who
    /// wait here first: their claim travels in the same envelope.
    pub async fn post(&self, request: Request) -> Result<Reply> {
        if let Some(reply) = self.perform_now(&request) {
            return Ok(reply);
        }
        let sent = self.runtime.now();
        let patience = sent + self.response_timeout;
        let reply = self.courier.post(request, patience, sent + self.options.ttl)?;
        self.room.call(1);
        match runtime::by(&self.runtime, patience + self.response_timeout, reply).await {
            Some(delivered) => Ok(delivered?.take()),
            None => {
                Err(unavailable(&self.courier.trouble().unwrap_or_else(|| "no answer in time".to_owned())))
            }
        }
    }

    pub fn post_and_forget(&self, request: Request) {
        if self.perform_now(&request).is_some() {
            return;
        }
        let until = self.runtime.now() + self.options.ttl;
        // A full queue leaves the lease to its deadline.
        let _ = self.courier.post(request, until, until);
        self.room.call(1);
    }
}

enum Judged<S: Store, R: Runtime> {
    Granted(Vec<Lease<S, R>>),
    Refused(Refused),
    /// A slot of another process came; it was given back.
    Foreign,
}

/// The requests that make a pool of these options.
fn definition(options: &PoolOptions) -> Vec<Request> {
    let define = |slots: Vec<SlotSpec>| {
        let (longest, doubt_rest) = (options.ttl, options.doubt_rest);
        Request::Define { slots, longest, doubt_rest }
    };
    match &options.slots {
        None => vec![define(Vec::new())],
        Some(slots) => {
            let specs: Vec<SlotSpec> = slots.iter().map(|(_, spec)| spec.clone()).collect();
            specs.chunks(MAX_PER_REQUEST).map(|chunk| define(chunk.to_vec())).collect()
        }
    }
}

fn timed_out(want: &Want) -> Error {
    let what =
        if want.count == 1 { "no slot".to_owned() } else { format!("fewer than {} slots", want.count) };
    Error::new(
        Code::TimedOut,
        format!("{what} came free before the timeout; give a longer timeout, more slots or a shorter ttl"),
    )
}

/// Scatters the bits of a counter (splitmix64).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
