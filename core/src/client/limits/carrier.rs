//! Carries the requests of one scope's callers to its store.
//!
//! As the courier of pools does: requests that wait at the same moment travel in one envelope, and an envelope that got no
//! answer is sent again under the same number, so that nothing is charged twice.

mod parcels;
#[cfg(test)]
mod tests;

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};

use futures_channel::oneshot;

#[cfg(feature = "crowds")]
use self::parcels::leaves_nothing;
use self::parcels::{Parcel, Parcels, ends, failure};
use super::super::lanes::Lanes;
#[cfg(not(target_family = "wasm"))]
use super::super::lanes::look_later;
use super::lobby::Lobby;
use super::standings::{self, Standings, Unheard};
#[cfg(feature = "crowds")]
use crate::client::pool::courier::crowded;
use crate::client::pool::courier::{JUMPS, silent};
use crate::error::{Code, Error, Result};
use crate::limits::{
    Act, Amount, Answer, Charge, Charged, Envelope, LANE_GRACE, MAX_RESERVATION, Performed, Reply, Request,
    Verdict,
};
use crate::poison::unpoisoned;
use crate::runtime::{self, BoxedFuture, MaybeSend, MaybeSync, Runtime};
use crate::slots::Lane;
use crate::store::{Certainty, StoreError, StoreLedger};
use crate::{MILLISECOND, Micros, SECOND};

/// The most requests of one envelope.
const BATCH: usize = 64;
/// So many that wait need not wait for an envelope that is under way.
const CROWD: usize = 32;
/// How long after its sending an envelope may still be performed.
const VALIDITY: Micros = 10 * SECOND;
/// How long it is tried to end a reservation: one that nobody has is given back for as long as it may be there.
const PURSUIT: Micros = 30 * SECOND;
/// The first and the longest pause before a failed envelope is sent again.
const BACKOFF: (Micros, Micros) = (20 * MILLISECOND, SECOND / 2);

/// The carrier of one scope in one process.
pub(super) struct Carrier<R> {
    ledger: Box<dyn AnyLedger>,
    runtime: R,
    client: u128,
    response_timeout: Micros,
    /// Who waits for what is given back.
    lobby: Arc<Lobby>,
    state: Mutex<State>,
}

/// A store's ledger of any type: what is generic over stores is compiled for each of them.
pub(super) trait AnyLedger: MaybeSend + MaybeSync {
    fn charge_now(&self, request: &Request) -> Option<Reply>;
    fn judge_now(&self, act: &Act, charges: &[Charged<'_>]) -> Option<Verdict>;
    fn charge<'a>(&'a self, envelope: &'a Envelope) -> BoxedFuture<'a, Result<Answer, StoreError>>;
}

impl<L: StoreLedger> AnyLedger for L {
    fn charge_now(&self, request: &Request) -> Option<Reply> {
        StoreLedger::charge_now(self, request)
    }

    fn judge_now(&self, act: &Act, charges: &[Charged<'_>]) -> Option<Verdict> {
        // Nobody asks it in a wasm module: see [`Scope::judge`](super::scope::Scope::judge).
        if cfg!(target_family = "wasm") { None } else { StoreLedger::judge_now(self, act, charges) }
    }

    fn charge<'a>(&'a self, envelope: &'a Envelope) -> BoxedFuture<'a, Result<Answer, StoreError>> {
        Box::pin(StoreLedger::charge(self, envelope))
    }
}

#[derive(Default)]
struct State {
    parcels: Parcels,
    lanes: Lanes<CROWD, BATCH>,
    /// The store's time in an answer, and when its envelope was sent.
    clock: Option<(Micros, Micros)>,
    /// How limits of money stood.
    standings: Standings,
}

/// A reply that is waited for.
struct Awaited<'a, R: Runtime> {
    carrier: &'a Arc<Carrier<R>>,
    /// What it is to, if that reserves.
    reserving: Option<Request>,
    reply: Option<oneshot::Receiver<Result<Reply>>>,
}

impl<R: Runtime> Drop for Awaited<'_, R> {
    fn drop(&mut self) {
        let (Some(request), Some(reply)) = (self.reserving.take(), &mut self.reply) else { return };
        // From now on the sender finds that nobody is there.
        reply.close();
        if let Ok(Some(Ok(reply))) = reply.try_recv() {
            self.carrier.retract(request, reply);
        }
    }
}

impl<R: Runtime> Carrier<R> {
    pub fn new(
        ledger: Box<dyn AnyLedger>,
        runtime: R,
        response_timeout: Micros,
        lobby: Arc<Lobby>,
    ) -> Arc<Self> {
        let client = runtime.random_id();
        Arc::new(Carrier { ledger, runtime, client, response_timeout, lobby, state: Mutex::default() })
    }

    /// The store's time, if it ever answered.
    pub fn store_time(&self) -> Option<Micros> {
        let now = self.runtime.now();
        self.lock().store_time(now)
    }

    /// Whether it knows what its store may forget.
    pub fn remembers(&self) -> bool {
        let now = self.runtime.now();
        self.lock().standings.remember(now)
    }

    /// What the store said, while it does not answer.
    pub fn trouble(&self) -> Option<String> {
        self.lock().lanes.trouble().map(str::to_owned)
    }

    /// How many requests wait.
    #[cfg(test)]
    pub fn waiting(&self) -> usize {
        self.lock().parcels.len()
    }

    /// A request with what is known of the limits of money that it charges.
    pub fn informed(&self, request: Request) -> Envelope {
        let mut envelope = Envelope { requests: vec![request], ..Envelope::default() };
        envelope.seen = self.lock().standings.seen(&envelope, self.runtime.now());
        envelope
    }

    /// Whether it has not seen how a limit of money stands.
    fn is_new_to(&self, charge: &Charge) -> bool {
        let (now, state) = (self.runtime.now(), self.lock());
        state.standings.lack(charge, now, state.store_time(now).unwrap_or(0))
    }

    /// Whether it has not seen it in the period that it is now, but in one before.
    fn knew(&self, charge: &Charge) -> bool {
        let (now, state) = (self.runtime.now(), self.lock());
        state.standings.are_of_before(charge, now, state.store_time(now).unwrap_or(0))
    }

    /// Asks a store that answers at once.
    pub fn ask_now(&self, request: &Request) -> Option<Reply> {
        self.ledger.charge_now(request)
    }

    /// The same for what is judged, of charges that are borrowed.
    pub fn judge_now(&self, act: &Act, charges: &[Charged<'_>]) -> Option<Verdict> {
        self.ledger.judge_now(act, charges)
    }

    /// Asks the store. A failure is told when it has not answered for its time.
    ///
    /// # Errors
    /// `store_unavailable` with the cause; `busy` if too many requests wait, but for what prolongs or ends a
    /// reservation; or so many that it had no answer in time.
    pub async fn ask(self: &Arc<Self>, mut request: Request) -> Result<Reply> {
        if let Some(reply) = self.ledger.charge_now(&request) {
            self.announce(&request);
            return Ok(reply);
        }
        let patience = self.runtime.now() + self.response_timeout;
        // Only of who has seen something can the store tell whether it asks from before a loss.
        if request.act == Act::Refund && request.charges.iter().any(|charge| self.is_new_to(charge)) {
            // What it gives back it charged then: in this period it would be what others have spent since.
            for charge in request.charges.iter_mut().filter(|charge| self.knew(charge)) {
                charge.cost = Amount::ZERO;
            }
            let look = |charge: &Charge| Charge { cost: Amount::ZERO, ..charge.clone() };
            let charges = request.charges.iter().map(look).collect();
            let reply = self.send(Request { act: Act::Peek, charges }, patience).await?;
            // Of what nothing is known nothing was ever charged, or all was forgotten.
            for charge in request.charges.iter_mut().filter(|charge| self.is_new_to(charge)) {
                charge.cost = Amount::ZERO;
            }
            if request.charges.iter().all(|charge| charge.cost.is_zero()) {
                return Ok(reply);
            }
        }
        self.send(request, patience).await
    }

    /// Has the store asked, and hears what it says. That it does not answer is told from then on, or so much later as an answer may take.
    async fn send(self: &Arc<Self>, request: Request, patience: Micros) -> Result<Reply> {
        // What ends a reservation is not given up with its caller.
        let stands = if ends(&request.act) { PURSUIT } else { 0 };
        // Whoever leaves in the moment between a reply and its reading has reserved, and knows nothing of it.
        let (act, reserving) =
            (request.act, matches!(request.act, Act::Reserve { .. }).then(|| request.clone()));
        let mut awaited = Awaited { carrier: self, reserving, reply: None };
        let reply = awaited.reply.insert(self.enqueue(request, patience, stands)?);
        match runtime::by(&self.runtime, patience + self.response_timeout, pin!(reply)).await {
            Some(reply) => reply.unwrap_or_else(|_| {
                Err(Error::new(Code::Cancelled, "the runtime ended, or a task of it panicked; open anew"))
            }),
            None => Err(self.silence(&act)),
        }
    }

    /// The error of a store that did not answer this in time; or that so many wait for it here.
    fn silence(&self, act: &Act) -> Error {
        let state = self.lock();
        let trouble = state.lanes.trouble();
        #[cfg(feature = "crowds")]
        if state.lanes.are_crowded(self.runtime.now(), self.response_timeout) {
            return crowded(match leaves_nothing(act) {
                true => "nothing is held by this call, try again later",
                false => "it may have been done or not: look when fewer wait",
            });
        }
        failure(act)(trouble.unwrap_or("it gave no answer in time"))
    }

    /// Has the store do something that nobody waits for. That is tried for so long, or for half a minute.
    pub fn tell(self: &Arc<Self>, request: Request, stands: Micros) {
        if self.ledger.charge_now(&request).is_some() {
            self.announce(&request);
        } else {
            // There is room for it, and nobody waits.
            let stands = stands.clamp(PURSUIT, MAX_RESERVATION);
            let _ = self.enqueue(request, self.runtime.now() + PURSUIT, stands);
        }
    }

    fn enqueue(
        self: &Arc<Self>,
        request: Request,
        patience: Micros,
        stands: Micros,
    ) -> Result<oneshot::Receiver<Result<Reply>>> {
        let (caller, reply) = oneshot::channel();
        let now = self.runtime.now();
        let stands = if stands > 0 { now + stands } else { 0 };
        let mut state = self.lock();
        state.parcels.push(Parcel { request, patience, stands, caller })?;
        self.send_out(state);
        Ok(reply)
    }

    /// Has what waits set out, perhaps: as in the courier of a pool.
    fn send_out(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.parcels.is_empty() {
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
            let carrier = self.clone();
            let drive = async move { carrier.drive(lane).await };
            #[cfg(not(target_family = "wasm"))]
            let drive = {
                let carrier = self.clone();
                runtime::or_left(drive, move || carrier.leave(lane))
            };
            self.runtime.spawn(drive);
        }
    }

    /// The runtime has ended, and with it who drove this lane: as in the courier of a pool.
    #[cfg(not(target_family = "wasm"))]
    fn leave(&self, lane: u16) {
        let mut state = self.lock();
        state.lanes.set_out(lane, 0, self.runtime.now());
        let waiting = std::mem::take(&mut state.parcels);
        drop(state);
        drop(waiting);
    }

    /// Sends envelope after envelope until nothing waits.
    async fn drive(self: Arc<Self>, lane: u16) {
        loop {
            let (parcels, another) = {
                let mut state = self.lock();
                let now = self.runtime.now();
                let parcels = state.parcels.take(BATCH, now);
                state.lanes.set_out(lane, parcels.len(), now);
                let another = if state.parcels.is_empty() { None } else { state.lane_for_more(now) };
                (parcels, another)
            };
            if parcels.is_empty() {
                return;
            }
            self.start(another);
            self.deliver(lane, parcels).await;
        }
    }

    async fn deliver(self: &Arc<Self>, lane: u16, mut parcels: Vec<Parcel>) {
        let mut envelope = self.envelope(lane, &parcels);
        let (first, mut attempts, mut uncertain) = (self.runtime.now(), 0, false);
        loop {
            attempts += 1;
            let sent = self.runtime.now();
            let failure = match self.attempt(&envelope).await {
                Ok(Answer::Performed(performed)) => {
                    // Nobody knows to which sending a repeated answer belongs.
                    self.learn(performed.now, (attempts == 1).then_some(sent));
                    let more = match performed.standings.is_empty() {
                        true => Vec::new(),
                        false => self.lock().standings.learn(&envelope, &performed, first),
                    };
                    return self.hand_out(lane, parcels, performed, &more);
                }
                // Too late by the store's clock: it was not performed before, or its answer would have come. Unless the
                // clock jumped so far that the answer is forgotten: what must be done once only is not asked again; or this is
                // another store, and then at least nothing is given back again.
                Ok(Answer::Stale { now }) => {
                    self.learn(now, Some(sent));
                    if uncertain {
                        let forgotten = envelope.not_after.is_some_and(|last| now >= last + LANE_GRACE);
                        parcels = self.doubt(parcels, forgotten);
                    }
                    uncertain = false;
                    StoreError::new(Certainty::NotPerformed, JUMPS)
                }
                Err(error) => error,
            };
            uncertain |= failure.certainty == Certainty::Unknown;
            let clean = !uncertain && failure.certainty.is_clean();
            let now = self.runtime.now();
            if failure.certainty.is_hopeless() || now > first + PURSUIT {
                self.lock().lanes.fail(failure.cause.clone());
                let mut again = Vec::new();
                for mut parcel in parcels {
                    let stands = std::mem::take(&mut parcel.stands);
                    parcel.give_up(&failure.cause, clean);
                    // To end a reservation twice does no harm.
                    if stands > now && ends(&parcel.request.act) {
                        again.push(Parcel { stands, ..parcel });
                    } else if !clean {
                        // What was refused may have been begun, and what nobody can read the answer to was done.
                        self.undo(parcel.request);
                    }
                }
                return self.pursue(again);
            }
            // Before anybody is told, who then looks for it.
            self.lock().trouble_is(failure.cause.clone(), now);
            // The envelope has to be sent again as it was, unless it surely was not performed.
            for parcel in parcels.iter_mut().filter(|parcel| parcel.patience <= now) {
                parcel.give_up(&failure.cause, clean);
            }
            if !uncertain {
                parcels.retain(|parcel| parcel.is_wanted(now));
                envelope = self.envelope(lane, &parcels);
            }
            // What may be reserved, and is awaited by nobody any more, is not known to be given back before it is known.
            let reserves = |parcel: &Parcel| matches!(parcel.request.act, Act::Reserve { .. });
            if !parcels.iter().any(|parcel| parcel.is_wanted(now) || uncertain && reserves(parcel)) {
                return;
            }
            let (least, most) = BACKOFF;
            self.runtime.sleep(self.runtime.jitter(most.min(least << attempts.min(10)))).await;
        }
    }

    /// Has what stands sent anew, under another number, in a moment: nobody else waits for that.
    fn pursue(self: &Arc<Self>, parcels: Vec<Parcel>) {
        if parcels.is_empty() {
            return;
        }
        let carrier = self.clone();
        self.runtime.spawn(async move {
            carrier.runtime.sleep(carrier.runtime.jitter(BACKOFF.1)).await;
            let mut state = carrier.lock();
            // There is room for what stands.
            parcels.into_iter().for_each(|parcel| drop(state.parcels.push(parcel)));
            carrier.send_out(state);
        });
    }

    /// Tells those whose request may have been performed that nobody knows it; returns those that can be performed again
    /// and do no harm: where their answers are not forgotten, all but refunds. What may be reserved is given back.
    fn doubt(self: &Arc<Self>, parcels: Vec<Parcel>, forgotten: bool) -> Vec<Parcel> {
        let (again, once): (Vec<_>, Vec<_>) =
            parcels.into_iter().partition(|parcel| match parcel.request.act {
                Act::Peek
                | Act::Renew { .. }
                | Act::Commit { .. }
                | Act::Keep { .. }
                | Act::GiveBack { .. } => true,
                Act::Refund => false,
                _ => !forgotten,
            });
        for mut parcel in once {
            parcel.give_up("the store's clock jumped, and nobody knows whether this was done before", false);
            self.undo(parcel.request);
        }
        again
    }

    async fn attempt(&self, envelope: &Envelope) -> Result<Answer, StoreError> {
        let deadline = self.runtime.now() + self.response_timeout;
        let answer = runtime::by(&self.runtime, deadline, pin!(self.ledger.charge(envelope))).await;
        answer.unwrap_or_else(|| Err(silent(self.response_timeout)))
    }

    fn envelope(&self, number: u16, parcels: &[Parcel]) -> Envelope {
        let now = self.runtime.now();
        let mut state = self.lock();
        let sequence = state.lanes.next(number);
        let mut envelope = Envelope {
            lane: Some(Lane { client: self.client, number, sequence }),
            not_after: state.store_time(now).map(|time| time + VALIDITY),
            seen: Vec::new(),
            requests: parcels.iter().map(|parcel| parcel.request.clone()).collect(),
        };
        envelope.seen = state.standings.seen(&envelope, now);
        envelope
    }

    /// Learns what time it is there.
    fn learn(&self, now: Micros, sent: Option<Micros>) {
        let mut state = self.lock();
        state.lanes.hear(sent.map(|sent| self.runtime.now().saturating_sub(sent)));
        if let Some(sent) = sent {
            state.clock = Some((now, sent));
        }
    }

    /// Tells the callers. Where the store forgot, while they were under way, what others of this process were allowed, they
    /// may have been allowed too much: then it is given back.
    fn hand_out(self: &Arc<Self>, lane: u16, parcels: Vec<Parcel>, performed: Performed, more: &[Unheard]) {
        self.lock().lanes.load(lane, self.runtime.now());
        let Performed { now, replies, .. } = performed;
        for (parcel, reply) in parcels.into_iter().zip(replies) {
            let correction = standings::correction(&parcel.request, reply, more, now);
            match (&correction, parcel.request.act) {
                (Some(_), Act::Reserve { .. }) => self.undo(parcel.request.clone()),
                // Only what is counted can be given back.
                (Some(Ok(_)), _) => {
                    self.tell(Request { act: Act::Refund, charges: parcel.request.charges.clone() }, 0);
                }
                _ => {}
            }
            self.announce(&parcel.request);
            let told = correction.unwrap_or(Ok(reply));
            if let Err(Ok(reply)) = parcel.caller.send(told) {
                self.retract(parcel.request, reply);
            }
        }
    }

    /// Those who wait hear of what may have been given back.
    fn announce(&self, request: &Request) {
        if request.freed().next().is_some() {
            self.lobby.hear(request);
        }
    }

    /// What was reserved for a caller that left is given back.
    fn retract(self: &Arc<Self>, request: Request, reply: Reply) {
        if matches!(reply, Reply::Judged(verdict) if verdict.allowed) {
            self.undo(request);
        }
    }

    /// Gives back what this reserves, or may have reserved, if it does: for as long as that can be, as nobody else knows of it.
    fn undo(self: &Arc<Self>, request: Request) {
        if let Act::Reserve { id, ttl, .. } = request.act {
            self.tell(Request { act: Act::GiveBack { id }, charges: request.charges }, ttl);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        unpoisoned(&self.state)
    }
}

impl State {
    /// The store's time at this local one, if it ever answered.
    fn store_time(&self, now: Micros) -> Option<Micros> {
        self.clock.map(|(store, local)| store + now.saturating_sub(local))
    }

    /// A lane that loads, if what waits should not wait for one that is under way.
    fn lane_for_more(&mut self, now: Micros) -> Option<u16> {
        self.lanes.for_more(self.parcels.len(), now)
    }

    /// Tells those who wait for their envelope, and have no patience left, what the store said.
    fn trouble_is(&mut self, cause: String, now: Micros) {
        self.parcels.give_up(&cause, now);
        self.lanes.fail(cause);
    }
}
