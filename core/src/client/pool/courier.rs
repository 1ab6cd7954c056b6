//! Carries the requests of a pool's callers to its store.
//!
//! Requests that wait at the same moment travel in one envelope. An envelope that got no answer is sent
//! again under the same number, so that it is performed at most once; a grant that nobody waits for any
//! more is given back.

mod delivered;
mod parcel;
#[cfg(test)]
#[cfg(feature = "tokio")]
mod tests;

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use futures_channel::oneshot;

use self::delivered::Refund;
pub(in crate::client) use self::delivered::{Delivered, Delivery};
#[cfg(feature = "crowds")]
use self::parcel::pair_up;
use self::parcel::{Parcel, abandon, release_first, requests, tell_impatient};
use super::acquisition::mix;
use super::waiting::WaitingRoom;
#[cfg(all(feature = "crowds", not(target_family = "wasm")))]
use super::waiting::{Asks, Next, Standing};
use crate::client::lanes::Lanes;
#[cfg(not(target_family = "wasm"))]
use crate::client::lanes::look_later;
use crate::error::{Code, Error, Result};
use crate::nonce::Outcome;
use crate::poison::unpoisoned;
use crate::runtime::{self, Runtime};
use crate::slots::{
    Answer, Envelope, Grant, Lane, LeaseRef, Performed, QuietTime, Reply, Request, TICKET_LIFE, VALIDITY,
};
use crate::store::{Certainty, StoreError, StorePool};
use crate::{MILLISECOND, Micros, SECOND};

/// The most requests of one envelope. Larger ones would make others wait on the server, and the server wait for
/// this process while it reads the replies.
const BATCH: usize = 32;
/// The same with renewals, which cost the server little and nobody waits for.
const BATCH_OF_RENEWALS: usize = 128;
/// So many that wait need not wait for an envelope that is under way.
const CROWD: usize = 24;
/// The most requests that wait. [`full`] says the number.
pub(in crate::client) const QUEUE: usize = 100_000;
/// How long an envelope without an answer is sent again before its callers are told that it is unknown.
const PURSUIT: Micros = 30 * SECOND;
/// A step of the server's clock that is noticed.
const JUMP: Micros = SECOND / 2;
/// Of the time since the last answer, the part by which two clocks may differ that nobody steps.
const DRIFT: Micros = 1_000;
/// The first and the longest pause before a failed envelope is sent again.
const BACKOFF: (Micros, Micros) = (20 * MILLISECOND, SECOND / 2);
/// How often an envelope is made anew because the server's time was not what it seemed.
const REMAKES: u32 = 4;

/// The carrier of one pool in one process.
#[derive(Debug)]
pub(in crate::client) struct Courier<P, R> {
    pool: P,
    runtime: R,
    client: u128,
    response_timeout: Micros,
    /// What makes the pool, should the store not have it (any more).
    definition: Vec<Request>,
    /// Those who wait hear at once whom an answer calls.
    room: Arc<WaitingRoom>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    queue: VecDeque<Parcel>,
    /// Renewals, which go first: what is held is not lost behind those who only want something. Without `crowds` few wait.
    #[cfg(feature = "crowds")]
    renewals: VecDeque<Parcel>,
    lanes: Lanes<CROWD, BATCH>,
    /// The highest fence that an answer named.
    seen: u64,
    /// The longest quiet time that one named.
    quiet_time: QuietTime,
    /// Whether the store named a shorter one last. Without `crowds` it is left to others to say so.
    #[cfg(feature = "crowds")]
    forgot: bool,
    /// The store's time in an answer, and when its envelope was sent.
    clock: Option<(Micros, Micros)>,
    /// When that answer came.
    heard: Micros,
    jumped: bool,
    /// What was sent before this may have been performed by a time that had jumped unknown to the store. 0 if it never did: a clock may
    /// begin there.
    unsafe_before: Micros,
}

impl<P: StorePool, R: Runtime> Refund for Weak<Courier<P, R>> {
    fn refund(&self, grants: Vec<Grant>) {
        if let Some(courier) = self.upgrade() {
            grants.into_iter().for_each(|grant| courier.give_back(grant));
        }
    }
}

impl<P: StorePool, R: Runtime> Courier<P, R> {
    pub fn new(
        pool: P,
        runtime: R,
        response_timeout: Micros,
        definition: Vec<Request>,
        room: Arc<WaitingRoom>,
    ) -> Arc<Self> {
        let client = runtime.random_id();
        let state = Mutex::default();
        Arc::new(Courier { pool, runtime, client, response_timeout, definition, room, state })
    }

    pub fn pool(&self) -> &P {
        &self.pool
    }

    /// The requests that make the pool.
    pub fn definition(&self) -> &[Request] {
        &self.definition
    }

    /// A request of them as it is sent: the leases of others may be longer, and a store that forgot them is to be quiet for as long.
    pub fn with_others(&self, request: &Request) -> Request {
        let mut request = request.clone();
        if let Request::Define { longest, doubt_rest, .. } = &mut request {
            let own = QuietTime { longest: *longest, doubt_rest: *doubt_rest };
            let all = self.lock().quiet_time.max(own);
            (*longest, *doubt_rest) = (all.longest, all.doubt_rest);
        }
        request
    }

    /// The store's time, or one a little earlier, if it told within the last second: clocks drift.
    #[cfg(feature = "tokens")]
    pub fn store_time(&self) -> Option<Micros> {
        let state = self.lock();
        let passed = self.runtime.now().saturating_sub(state.heard);
        state.clock.filter(|_| passed <= SECOND).map(|(store, _)| store + passed - passed / DRIFT)
    }

    /// Whether an answer of its has come since then, whoever of this process asked.
    #[cfg(feature = "tokens")]
    pub fn has_answered_since(&self, then: Micros) -> bool {
        let state = self.lock();
        state.heard > 0 && state.heard >= then
    }

    /// What the store said, while it does not answer.
    pub fn trouble(&self) -> Option<String> {
        self.lock().lanes.trouble().map(str::to_owned)
    }

    /// Whether so many wait here for a store that answers that it is not its silence if one has no answer in time.
    #[cfg(feature = "crowds")]
    pub fn is_crowded(&self) -> bool {
        self.lock().lanes.are_crowded(self.runtime.now(), self.response_timeout)
    }

    /// How long the store took to answer of late, at the least; 0 if it did not, or answers at once.
    pub fn distance(&self) -> Micros {
        self.lock().lanes.distance()
    }

    /// Sends a request. Failures are told from `patience` on; until then it is tried again. Dropping the
    /// future gives the request up; a grant that comes all the same is given back.
    ///
    /// # Errors
    /// `store_unavailable` with the cause; `busy` if too many requests wait, unless it is of what is held or stands in line.
    pub fn submit(
        self: &Arc<Self>,
        request: Request,
        patience: Micros,
    ) -> impl Future<Output = Result<Delivered>> + use<P, R> {
        self.post(request, patience, 0)
    }

    /// Sends a request that is tried until `stands` even if nobody waits for its reply.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub fn post(
        self: &Arc<Self>,
        request: Request,
        patience: Micros,
        stands: Micros,
    ) -> impl Future<Output = Result<Delivered>> + use<P, R> {
        delivery(self.dispatch(request, patience, stands))
    }

    /// The same; what comes back is for [`delivery`].
    #[inline(always)]
    pub fn dispatch(self: &Arc<Self>, request: Request, patience: Micros, stands: Micros) -> Delivery {
        let mut state = self.lock();
        let reply = state.enqueue(request, patience, stands);
        self.send_out(state);
        reply
    }

    /// Sends a request that gives a slot back, as [`Self::post`] does. What does not rest is for those who wait here first: what they
    /// claim travels in the same envelope.
    ///
    /// # Errors
    /// As [`Self::submit`].
    pub fn hand_back(
        self: &Arc<Self>,
        request: Request,
        patience: Micros,
        stands: Micros,
    ) -> impl Future<Output = Result<Delivered>> + use<P, R> {
        let freed = match &request {
            Request::Release { lease, cooldown: 0, .. } => Some(&lease.slot),
            _ => None,
        };
        #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
        {
            let now = self.runtime.now();
            let mut next = freed.and_then(|freed| self.room.first_for(freed, now));
            let mut state = self.lock();
            let reply = state.enqueue(request, patience, stands);
            let asks = next.as_mut().and_then(Next::asks);
            let asked = asks.is_some();
            if let Some(Asks { standing, caller }) = asks {
                let Standing { mut claim, began, deadline } = *standing;
                claim.waited = now.saturating_sub(began);
                state.put(Parcel { request: Request::Claim(claim), patience: deadline, stands: 0, caller });
            }
            self.send_out(state);
            next.into_iter().for_each(Next::call);
            if asked {
                self.room.look_after_answers(&self.runtime, now);
            }
            delivery(reply)
        }
        // In wasm it is posted before who is called goes on. Elsewhere, without `crowds`, another thread may be quicker: then the store
        // calls it.
        #[cfg(not(all(feature = "crowds", not(target_family = "wasm"))))]
        {
            if let Some(freed) = freed {
                self.room.call_first(freed);
            }
            self.post(request, patience, stands)
        }
    }

    /// Sends requests, each with its own patience: all of them wait before the first sets out.
    pub fn post_together(
        self: &Arc<Self>,
        requests: Vec<(Request, Micros)>,
    ) -> Vec<impl Future<Output = Result<Delivered>> + use<P, R>> {
        let mut state = self.lock();
        let replies = requests.into_iter().map(|(request, patience)| state.enqueue(request, patience, 0));
        let replies = replies.map(delivery).collect();
        self.send_out(state);
        replies
    }

    /// Gives back a grant that nobody has seen: its nonce cannot have been used.
    pub fn give_back(self: &Arc<Self>, grant: Grant) {
        let lease = LeaseRef { slot: grant.slot, fence: grant.fence, place: grant.place };
        let request = Request::Release { lease, outcome: Outcome::Unused, cooldown: 0 };
        if self.pool.perform_now(0, &request).is_none() {
            // For as long as it would last, as any other release.
            let until = self.runtime.now() + self.longest().max(PURSUIT);
            drop(self.post(request, until, until));
        }
    }

    /// How long a lease lasts at the most, as the pool is defined here. Without `crowds` that is not looked up.
    fn longest(&self) -> Micros {
        match self.definition.first() {
            Some(Request::Define { longest, .. }) if cfg!(feature = "crowds") => *longest,
            _ => 0,
        }
    }

    /// Gives up a ticket that nobody waits with any more.
    pub fn withdraw(self: &Arc<Self>, holder: u128) {
        let request = Request::Withdraw { holder };
        if self.pool.perform_now(0, &request).is_none() {
            // The ticket lapses by itself where this does not get through.
            let until = self.runtime.now() + TICKET_LIFE;
            drop(self.post(request, until, until));
        }
    }

    /// Has what waits set out, perhaps.
    fn send_out(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.waiting() == 0 {
            return;
        }
        let lane = state.lane_for_more(self.runtime.now());
        #[cfg(not(target_family = "wasm"))]
        if state.lanes.is_to_look_again(lane) {
            look_later(&self.runtime, self, Self::look_again);
        }
        drop(state);
        self.start(lane);
    }

    /// Has what still waits set out, perhaps.
    #[cfg(not(target_family = "wasm"))]
    fn look_again(self: &Arc<Self>) {
        let mut state = self.lock();
        state.lanes.look_again();
        self.send_out(state);
    }

    fn start(self: &Arc<Self>, lane: Option<u16>) {
        if let Some(lane) = lane {
            let courier = self.clone();
            let drive = async move { courier.drive(lane).await };
            #[cfg(not(target_family = "wasm"))]
            let drive = {
                let courier = self.clone();
                runtime::or_left(drive, move || courier.leave(lane))
            };
            self.runtime.spawn(drive);
        }
    }

    /// Who drove this lane has ended, with its runtime or by a panic: whoever waits is told so, as are those to come.
    #[cfg(not(target_family = "wasm"))]
    fn leave(&self, lane: u16) {
        let mut state = self.lock();
        state.lanes.set_out(lane, 0, self.runtime.now());
        let waiting = [
            #[cfg(feature = "crowds")]
            std::mem::take(&mut state.renewals),
            std::mem::take(&mut state.queue),
        ];
        // Not under the lock: those who are told run code.
        drop(state);
        drop(waiting);
    }

    /// Sends envelope after envelope until nothing waits.
    async fn drive(self: Arc<Self>, lane: u16) {
        let mut before = 0;
        loop {
            // Whoever is ready to ask now travels along.
            runtime::others_first().await;
            let (parcels, another) = {
                let mut state = self.lock();
                // And whoever is then: where all run on one thread, those who give back only now woke those who wait. In wasm all
                // have run by now.
                let waiting = state.waiting();
                if !cfg!(target_family = "wasm") && (before + 1..BATCH).contains(&waiting) {
                    before = waiting;
                    continue;
                }
                before = 0;
                let now = self.runtime.now();
                let parcels = state.load(lane, now);
                let another = if state.waiting() == 0 { None } else { state.lane_for_more(now) };
                (parcels, another)
            };
            self.start(another);
            if parcels.is_empty() {
                return;
            }
            self.deliver(lane, parcels).await;
        }
    }

    async fn deliver(self: &Arc<Self>, lane: u16, mut parcels: Vec<Parcel>) {
        // Before it is made: an answer beside it that shows a jump, of which it does not tell, then counts as later.
        let (mut first, mut attempts, mut remakes) = (self.runtime.now(), 0, 0);
        let mut envelope = self.envelope(lane, requests(&parcels));
        let mut uncertain = false;
        loop {
            let sent = self.runtime.now();
            attempts += 1;
            let answer = if is_told(&envelope) { Some(self.attempt(&envelope).await) } else { None };
            let failure = match answer.filter(is_of_a_pool) {
                None => {
                    // Nothing of the envelope was performed, whatever becomes of the definition.
                    uncertain = false;
                    let renewed = if remakes < REMAKES { self.redefine(lane).await } else { Err(homeless()) };
                    match renewed {
                        Ok(()) => {
                            (remakes, attempts) = (remakes + 1, 0);
                            None
                        }
                        Err(error) if error.certainty == Certainty::Unknown => {
                            Some(StoreError { certainty: Certainty::NotPerformed, ..error })
                        }
                        Err(error) => Some(error),
                    }
                }
                Some(Ok(Answer::Performed(performed))) => {
                    let sent = (attempts == 1).then_some(sent);
                    self.hear(&performed, sent, envelope.jumped);
                    self.hand_out(lane, parcels, performed, first);
                    #[cfg(feature = "crowds")]
                    self.remind(lane).await;
                    return;
                }
                Some(Ok(Answer::Stale { now })) => {
                    remakes += 1;
                    self.too_late(now, sent);
                    // What may have been performed, by an answer that is remembered no more, is not performed again after so long.
                    let late = uncertain && self.runtime.now() > first + PURSUIT;
                    if remakes <= REMAKES && !late {
                        (attempts, uncertain) = (0, false);
                        None
                    } else {
                        Some(if late { forgotten() } else { jumping() })
                    }
                }
                Some(Err(error)) => Some(error),
            };
            if let Some(failure) = failure {
                uncertain = self.report(&mut parcels, failure, first, uncertain);
            }
            // What was not performed is made anew for those who still wait.
            if !uncertain {
                let now = self.runtime.now();
                parcels.retain(|parcel| parcel.is_wanted(now));
                if parcels.is_empty() {
                    return;
                }
                first = self.runtime.now();
                envelope = self.envelope(lane, requests(&parcels));
            }
            // Without `crowds` also what is made anew is sent after a pause.
            if attempts > 0 || !cfg!(feature = "crowds") {
                let (least, most) = BACKOFF;
                let pause = most.min(least << attempts.min(10));
                self.runtime.sleep(self.runtime.jitter(pause)).await;
            }
        }
    }

    /// Tells those whom a failure concerns; returns whether what was sent since `first` is to be sent as it was, as it may have been
    /// performed.
    fn report(
        &self,
        parcels: &mut [Parcel],
        failure: StoreError,
        first: Micros,
        mut uncertain: bool,
    ) -> bool {
        uncertain |= failure.certainty == Certainty::Unknown;
        let now = self.runtime.now();
        let too_long = now > first + PURSUIT;
        let hopeless = failure.certainty.is_hopeless() || too_long;
        // What was refused may have been begun.
        let clean = !uncertain && failure.certainty.is_clean();
        if hopeless {
            abandon(parcels, &failure.cause, clean, too_long);
        }
        tell_impatient(parcels.iter_mut(), &failure.cause, clean, now);
        // What only looks is not sent again for nobody: all others would wait behind it.
        uncertain &= parcels.iter().any(|parcel| !parcel.request.only_looks() || parcel.is_wanted(now));
        let mut state = self.lock();
        tell_impatient(state.queue.iter_mut(), &failure.cause, true, now);
        // Who is told, or has left, would fill the queue in a long outage.
        #[cfg(feature = "crowds")]
        {
            tell_impatient(state.renewals.iter_mut(), &failure.cause, true, now);
            state.renewals.retain(|parcel| parcel.is_wanted(now));
            state.queue.retain(|parcel| parcel.is_wanted(now));
        }
        state.lanes.fail(failure.cause);
        uncertain && !hopeless
    }

    async fn attempt(&self, envelope: &Envelope) -> Result<Answer, StoreError> {
        let deadline = self.runtime.now() + self.response_timeout;
        let answer = runtime::by(&self.runtime, deadline, pin!(self.pool.perform(envelope))).await;
        answer.unwrap_or_else(|| Err(silent(self.response_timeout)))
    }

    /// Makes the pool that the store does not have (any more).
    async fn redefine(&self, lane: u16) -> Result<(), StoreError> {
        for request in self.definition() {
            self.tell(lane, request).await?;
        }
        Ok(())
    }

    /// Tells the store of leases that it forgot with its memory, or that whoever made the pool anew had not heard of: it is to be quiet
    /// for them too. If that does not arrive, the next envelope brings it about.
    #[cfg(feature = "crowds")]
    async fn remind(&self, lane: u16) {
        if self.lock().forgot {
            let _ = self.tell(lane, &Request::Define { slots: Vec::new(), longest: 0, doubt_rest: 0 }).await;
        }
    }

    /// Has a request performed that nobody waits for.
    async fn tell(&self, lane: u16, request: &Request) -> Result<(), StoreError> {
        for _ in 0..=REMAKES {
            let envelope = self.envelope(lane, vec![self.with_others(request)]);
            let sent = self.runtime.now();
            match self.attempt(&envelope).await? {
                Answer::Performed(performed) => {
                    self.hear(&performed, Some(sent), envelope.jumped);
                    return Ok(());
                }
                Answer::Stale { now } => self.too_late(now, sent),
            }
        }
        Err(jumping())
    }

    fn envelope(&self, number: u16, requests: Vec<Request>) -> Envelope {
        let now = self.runtime.now();
        let mut state = self.lock();
        let sequence = state.lanes.next(number);
        // What only looks may be performed twice: its answer need not be kept. Without `crowds` it is short.
        let is_kept = !cfg!(feature = "crowds") || !requests.iter().all(Request::only_looks);
        Envelope {
            lane: is_kept.then_some(Lane { client: self.client, number, sequence }),
            not_after: state.clock.map(|(store, local)| store + now.saturating_sub(local) + VALIDITY),
            seen: state.seen,
            jumped: state.jumped,
            // Scattered choices are all that is wanted of it, and asking the system costs a call.
            seed: mix(self.client as u64 ^ sequence << 8 ^ u64::from(number)) as u32,
            requests,
        }
    }

    /// Learns what an answer says, and when, as [`State::learn`] does.
    fn hear(&self, performed: &Performed, sent: Option<Micros>, told: bool) {
        let mut state = self.lock();
        let here = self.runtime.now();
        state.seen = state.seen.max(performed.top);
        if let Some(quiet_time) = performed.quiet_time {
            state.quiet_time = state.quiet_time.max(quiet_time);
            #[cfg(feature = "crowds")]
            (state.forgot = state.quiet_time != quiet_time);
        }
        state.learn(here, performed.now, sent, told);
    }

    /// Learns from one that came too late what time it is there.
    fn too_late(&self, now: Micros, sent: Micros) {
        self.lock().learn(self.runtime.now(), now, Some(sent), false);
    }

    fn hand_out(self: &Arc<Self>, lane: u16, parcels: Vec<Parcel>, performed: Performed, sent: Micros) {
        let jumped = {
            let mut state = self.lock();
            state.lanes.load(lane, self.runtime.now());
            sent < state.unsafe_before
        };
        self.room.hear(&self.runtime, Some(&performed.calls));
        for (parcel, mut reply) in parcels.into_iter().zip(performed.replies) {
            // The store did not know that its time had jumped: what it granted others may hold still.
            if jumped {
                reply.end_at(performed.now);
            }
            let refund = Box::new(Arc::downgrade(self));
            let delivered = Delivered { reply: Some(reply), now: performed.now, sent, refund };
            // A caller that is gone drops what it is sent, and with it gives back what was granted.
            let gone = parcel.caller.send(Ok(delivered)).is_err();
            if let Request::Claim(claim) = parcel.request
                && claim.wait
                && gone
            {
                self.withdraw(claim.holder);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        unpoisoned(&self.state)
    }
}

impl State {
    /// Learns from an answer that came `here` what time it is there, and whether that time jumped. `sent` is when the
    /// envelope was sent, if the answer is sure to be the answer to that sending.
    fn learn(&mut self, here: Micros, now: Micros, sent: Option<Micros>, told: bool) {
        self.lanes.hear(sent.map(|sent| here.saturating_sub(sent)));
        if told {
            self.jumped = false;
        }
        // An answer that is remembered is of an earlier time: whichever sending this one is to, no jump is seen that was none.
        if let Some((store, local)) = self.clock {
            let passed_here = here.saturating_sub(local);
            let passed_there = now.saturating_sub(store);
            if passed_there > passed_here + passed_here / DRIFT + JUMP {
                (self.jumped, self.unsafe_before) = (true, here + 1);
            }
        }
        if let Some(sent) = sent {
            (self.clock, self.heard) = (Some((now, sent)), here);
        }
    }

    fn enqueue(&mut self, request: Request, patience: Micros, stands: Micros) -> Delivery {
        let (caller, reply) = oneshot::channel();
        self.put(Parcel { request, patience, stands, caller });
        reply
    }

    fn put(&mut self, parcel: Parcel) {
        #[cfg(feature = "crowds")]
        if matches!(parcel.request, Request::Renew { .. }) {
            return self.renewals.push_back(parcel);
        }
        if self.queue.len() < QUEUE || parcel.gives_back() {
            self.queue.push_back(parcel);
        } else {
            let _ = parcel.caller.send(Err(full()));
        }
    }

    /// How many wait.
    fn waiting(&self) -> usize {
        #[cfg(feature = "crowds")]
        return self.renewals.len() + self.queue.len();
        #[cfg(not(feature = "crowds"))]
        self.queue.len()
    }

    /// A lane that loads, if what waits should not wait for one that is under way.
    fn lane_for_more(&mut self, now: Micros) -> Option<u16> {
        self.lanes.for_more(self.waiting(), now)
    }

    /// What sets out in this lane, of what waits.
    fn load(&mut self, lane: u16, now: Micros) -> Vec<Parcel> {
        let mut batch = Vec::with_capacity(self.waiting().min(BATCH));
        #[cfg_attr(not(feature = "crowds"), expect(unused_mut, reason = "nothing is paired there"))]
        let (mut share, mut others) = (self.lanes.share(self.waiting()), 0);
        #[cfg(feature = "crowds")]
        {
            if share < self.queue.len() {
                // Nor is one of the last pair left behind.
                share = share.next_multiple_of(2);
                pair_up(&mut self.queue, 2 * share);
            }
            // However many there are, others have their share.
            let most = BATCH_OF_RENEWALS - share.min(self.queue.len());
            while batch.len() < most
                && !self.queue.front().is_some_and(Parcel::goes_alone)
                && let Some(parcel) = self.renewals.pop_front()
            {
                if parcel.is_wanted(now) {
                    batch.push(parcel);
                }
            }
        }
        while others < share && batch.len() < BATCH_OF_RENEWALS {
            let next = self.queue.pop_front_if(|parcel| batch.is_empty() || !parcel.goes_alone());
            let Some(parcel) = next else { break };
            if parcel.is_wanted(now) {
                others += usize::from(!matches!(parcel.request, Request::Renew { .. }));
                let goes_alone = parcel.goes_alone();
                batch.push(parcel);
                if goes_alone {
                    break;
                }
            }
        }
        // Renewals cost the store little: an envelope of them is as good as one request.
        self.lanes.set_out(lane, others.max(usize::from(!batch.is_empty())), now);
        release_first(batch)
    }
}

/// Whether the store has heard from here what the pool is, or hears it by this envelope: else it would know of those only who came
/// before for how long it grants nothing once it has lost its memory. Until it has answered, an envelope has no last moment.
fn is_told(envelope: &Envelope) -> bool {
    envelope.not_after.is_some() || matches!(envelope.requests.first(), Some(Request::Define { .. }))
}

/// Whether it is no answer of a store that lacks the pool.
fn is_of_a_pool(answer: &Result<Answer, StoreError>) -> bool {
    !matches!(answer, Ok(Answer::Performed(performed)) if matches!(performed.replies.first(), Some(Reply::Undefined)))
}

/// What comes back for a request.
pub(super) async fn delivery(reply: Delivery) -> Result<Delivered> {
    reply.await.unwrap_or_else(|_| {
        Err(Error::new(Code::Cancelled, "the runtime ended, or a task of it panicked; open anew"))
    })
}

/// A pool that is gone again as often as it is made.
fn homeless() -> StoreError {
    StoreError::new(
        Certainty::BARRED,
        words(
            "the pool is lost each time",
            "the pool's definition is lost each time: look who flushes the store, or whether it evicts (`doctor` tells its policy)",
        ),
    )
}

/// One that may have performed what it does not remember.
fn forgotten() -> StoreError {
    StoreError::new(
        Certainty::Refused,
        words(
            "no answer came for too long",
            "no answer came for as long as the store remembers one: look whether the store, or the way to it, stands still",
        ),
    )
}

/// A store for whose time every envelope is too late, or too early.
fn jumping() -> StoreError {
    StoreError::new(Certainty::BARRED, JUMPS)
}

/// What is said of a store whose clock does.
pub(in crate::client) const JUMPS: &str = words(
    "the store's clock jumps",
    "the store's clock jumps: look how it is set (`doctor` tells how far it is off)",
);

/// Without `crowds` it is said what is wrong, and not what to look at.
const fn words(short: &'static str, long: &'static str) -> &'static str {
    if cfg!(feature = "crowds") { long } else { short }
}

/// The error of a request for which there is no room.
pub(in crate::client) fn full() -> Error {
    Error::new(Code::Busy, "100,000 requests wait; try again later")
}

/// The error of what had no answer in time from a store that answers, as so many wait for it here.
#[cfg(feature = "crowds")]
pub(in crate::client) fn crowded(so: &str) -> Error {
    Error::new(
        Code::Busy,
        format!("so many requests of this process wait that it had no answer in time; {so}"),
    )
}

/// What is known of an envelope that got no answer for so long.
pub(in crate::client) fn silent(time: Micros) -> StoreError {
    if !cfg!(feature = "crowds") {
        return StoreError::new(Certainty::Unknown, "it gave no answer in time");
    }
    let time = time / MILLISECOND;
    StoreError::new(Certainty::Unknown, format!("the store gave no answer within {time} ms"))
}

/// The error of a store that does not answer what leaves nothing behind.
pub(in crate::client) fn unavailable(cause: &str) -> Error {
    unusable(cause, "nothing is held by this call, try again when the store is back")
}

/// The error of a store that cannot be asked, and does nothing of it.
pub(in crate::client) fn undone(cause: &str) -> Error {
    unusable(cause, "nothing was done, try again when the store is back")
}

/// The error of a store that does not answer anything else, and may have done it, or do it yet.
pub(in crate::client) fn unsure(cause: &str) -> Error {
    unusable(cause, "it may have been done or not: look when the store is back")
}

fn unusable(cause: &str, so: &str) -> Error {
    Error::new(Code::StoreUnavailable, format!("the store cannot be used: {cause}; {so}"))
}
