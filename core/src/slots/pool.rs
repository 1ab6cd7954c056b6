//! One pool: its slots, its clock, and what it knows of its server.

use rustc_hash::FxHashMap;

use super::draw::Draw;
use super::due::DueSet;
use super::lanes::Lanes;
use super::positions::Positions;
use super::ready::ReadyQueue;
use super::slot::{Mode, Slot, State};
use super::{Answer, Envelope, INTEREST, LANE_GRACE, LeaseRef, Moment, Performed, Reply, Request, SWEEP};
use crate::Micros;
use crate::id::SlotId;
use crate::nonce::{NonceRecord, Outcome};

/// The queue of ready slots whose nonce is in doubt; those before it are for weights of like size.
pub(super) const DOUBT: usize = 8;

/// The machine of one pool. See [`crate::slots`].
#[derive(Clone, Debug, Default)]
pub struct Pool {
    pub(super) clock: PoolClock,
    pub(super) lanes: Lanes,
    /// Undefined until slots are defined, and again when the store has lost its memory.
    pub(super) defined: bool,
    pub(super) server: Server,
    /// The longest time to live of any lease.
    pub(super) longest: Micros,
    pub(super) doubt_rest: Micros,
    /// The highest fence granted, or shown by a client.
    pub(super) top: u64,
    pub(super) waiters_until: Micros,
    pub(super) slots: Vec<Slot>,
    vacant: Vec<u32>,
    index: FxHashMap<SlotId, u32>,
    pub(super) ready: [ReadyQueue; DOUBT + 1],
    /// How often a slot became ready.
    arrived: u64,
    pub(super) due: DueSet,
    pub(super) positions: Positions,
    freed: u32,
    /// How many slots passed that were made for a lease.
    passed: u32,
    ever_added: usize,
}

/// Store time: the server's wall clock, made to run forward only.
#[derive(Clone, Debug, Default)]
pub(super) struct PoolClock {
    last: Micros,
    /// What is added to the wall clock because it was set back.
    shift: Micros,
}

/// What the pool knows of the server that it is on.
#[derive(Clone, Debug, Default)]
pub(super) struct Server {
    pub incarnation: String,
    /// The store time since which nonces have been kept without loss; the mark of this stretch.
    pub epoch: Micros,
    /// When memory was last lost; 0 for never.
    pub lost_at: Micros,
}

impl Pool {
    /// Performs an envelope. One that came before is answered again; one that comes too late changes
    /// nothing.
    pub fn apply(&mut self, moment: Moment<'_>, envelope: &Envelope) -> Answer {
        let now = self.clock.read(moment.wall);
        if let Some(answer) = envelope.lane.and_then(|lane| self.lanes.recall(lane, now)) {
            return answer;
        }
        if envelope.not_after.is_some_and(|last| now > last) {
            return Answer::Stale { now };
        }
        if !self.defined && !matches!(envelope.requests.first(), Some(Request::Define { .. })) {
            let replies = envelope.requests.iter().map(|_| Reply::Undefined).collect();
            return Answer::Performed(Performed { now, top: 0, freed: 0, replies });
        }
        self.clock.advance(moment.wall, now);
        (self.freed, self.passed) = (0, 0);
        if self.defined {
            self.notice_loss(now, moment, envelope);
            self.sweep(now);
        }
        let mut draw = Draw::new(envelope.seed);
        let mut perform = |request| self.perform(now, moment, envelope.seen, &mut draw, request);
        let replies = envelope.requests.iter().map(&mut perform).collect();
        let freed = self.freed_for_waiters(now);
        let performed = Performed { now, top: self.top, freed, replies };
        if let Some(lane) = envelope.lane {
            let until = envelope.not_after.unwrap_or(now) + LANE_GRACE;
            self.lanes.keep(lane, performed.clone(), now, until);
        }
        Answer::Performed(performed)
    }

    /// Performs one request of callers that share the pool's memory, where no envelope can be lost, late
    /// or doubled. Returns the store time, the reply, and what [`Performed::freed`] says.
    pub fn apply_one(&mut self, moment: Moment<'_>, seed: u32, request: &Request) -> (Micros, Reply, u32) {
        if !self.defined && !matches!(request, Request::Define { .. }) {
            return (self.clock.read(moment.wall), Reply::Undefined, 0);
        }
        let now = self.begin_turn(moment);
        let reply = self.perform(now, moment, 0, &mut Draw::new(seed), request);
        (now, reply, self.freed_for_waiters(now))
    }

    /// As [`Self::apply_one`] of a [`Request::Release`], which need not be made: it would have to own the id.
    pub fn release_one(
        &mut self,
        moment: Moment<'_>,
        lease: &LeaseRef,
        outcome: Outcome,
        cooldown: Micros,
    ) -> (Reply, u32) {
        if !self.defined {
            return (Reply::Undefined, 0);
        }
        let now = self.begin_turn(moment);
        let reply = self.release(now, lease, outcome, cooldown);
        (reply, self.freed_for_waiters(now))
    }

    fn begin_turn(&mut self, moment: Moment<'_>) -> Micros {
        let now = self.clock.read(moment.wall);
        self.clock.advance(moment.wall, now);
        (self.freed, self.passed) = (0, 0);
        self.sweep(now);
        now
    }

    /// How many slots were ever added: a slot that was removed and comes again counts again.
    pub fn ever_added(&self) -> usize {
        self.ever_added
    }

    fn perform(
        &mut self,
        now: Micros,
        moment: Moment<'_>,
        seen: u64,
        draw: &mut Draw,
        request: &Request,
    ) -> Reply {
        match request {
            Request::Claim { choice, holder, ttl, max_hold, wait } => {
                let reply = self.claim(now, draw, choice, *holder, *ttl, *max_hold);
                if *wait && matches!(reply, Reply::Refused { .. }) {
                    self.waiters_until = now + INTEREST;
                }
                reply
            }
            Request::Renew { lease, ttl } => self.renew(now, lease, *ttl),
            Request::Release { lease, outcome, cooldown } => self.release(now, lease, *outcome, *cooldown),
            Request::Resync { lease, chain, rewind, settle } => {
                self.resync(now, lease, *chain, *rewind, *settle)
            }
            Request::Define { slots, longest, doubt_rest } => {
                self.define(now, moment, seen, slots, *longest, *doubt_rest)
            }
            Request::Change { slot, change } => self.change(now, slot, *change),
            Request::Inspect { slots } => self.inspect(slots),
            Request::List => self.list(),
        }
    }

    pub(super) fn count_ready(&self) -> u32 {
        self.ready.iter().map(|queue| queue.len()).sum()
    }

    /// How many slots became ready and still are, or passed, if somebody waits.
    fn freed_for_waiters(&self, now: Micros) -> u32 {
        if self.waiters_until > now { self.freed.min(self.count_ready()) + self.passed } else { 0 }
    }

    /// Sees from the server's identity, from a client's fence or from a client's clock that memory may
    /// have been lost: grants nothing for one longest time to live, and puts every nonce in doubt.
    fn notice_loss(&mut self, now: Micros, moment: Moment<'_>, envelope: &Envelope) {
        let moved = self.server.incarnation != moment.incarnation;
        let rolled_back = envelope.seen > self.top;
        if moved || rolled_back || envelope.jumped {
            // A clock that was set back may stand still: the new epoch differs from the old one all the same.
            let epoch = now.max(self.server.epoch + 1);
            self.server = Server { incarnation: moment.incarnation.to_owned(), epoch, lost_at: now };
            self.top = self.top.max(envelope.seen);
        }
    }

    /// Puts back what is overdue, in the order of its time.
    fn sweep(&mut self, now: Micros) {
        for _ in 0..SWEEP {
            let Some(place) = self.due.pop(now, &self.slots, &mut self.positions) else { return };
            let Some(slot) = self.slots.get_mut(place as usize) else { return };
            let passes = slot.mode == Mode::Passing;
            if slot.state == State::Leased {
                let ended = slot.until;
                slot.set_nonce(slot.nonce.unsettled(), ended);
                self.settle(now, place, ended);
            } else if passes {
                self.let_pass(place);
            } else {
                self.make_ready(place);
            }
        }
    }

    /// Where a slot goes that is leased no more since `ended`: it is in no set when this is called.
    pub(super) fn settle(&mut self, now: Micros, place: u32, ended: Micros) {
        let doubt_rest = self.doubt_rest;
        let Some(slot) = self.slots.get_mut(place as usize) else { return };
        match slot.mode {
            Mode::Removing => return self.forget(place),
            Mode::Draining | Mode::Disabled => {
                slot.mode = Mode::Disabled;
                slot.state = State::Out;
                return;
            }
            Mode::Enabled | Mode::Passing => {}
        }
        if matches!(slot.nonce, NonceRecord::InDoubt { .. }) {
            slot.rest_until = slot.rest_until.max(ended + doubt_rest);
        }
        let until = slot.rest_until.max(slot.barred_until);
        if until > now {
            slot.state = State::Cooling;
            slot.until = until;
            self.due.insert(until, place, &mut self.positions);
        } else if slot.mode == Mode::Passing {
            self.let_pass(place);
        } else {
            self.make_ready(place);
        }
    }

    /// Forgets a slot that was made for a lease, for whoever waits to make it again.
    fn let_pass(&mut self, place: u32) {
        self.forget(place);
        self.passed += 1;
    }

    pub(super) fn make_ready(&mut self, place: u32) {
        let Some(slot) = self.slots.get_mut(place as usize) else { return };
        slot.state = State::Ready;
        slot.arrival = self.arrived;
        self.arrived += 1;
        self.freed += 1;
        if let Some(queue) = self.ready.get_mut(slot.queue()) {
            queue.push(place, &mut self.positions);
        }
    }

    /// Takes a slot out of the set that it is in.
    pub(super) fn take_out(&mut self, place: u32) {
        let Some(slot) = self.slots.get(place as usize) else { return };
        match slot.state {
            State::Ready => {
                if let Some(queue) = self.ready.get_mut(slot.queue()) {
                    queue.remove(place, &mut self.positions);
                }
            }
            State::Leased | State::Cooling => self.due.remove(place, &mut self.positions),
            State::Out => {}
        }
    }

    pub(super) fn insert(&mut self, slot: Slot) {
        let place = self.place_of(slot);
        self.make_ready(place);
    }

    /// Gives a slot a place, in no set yet.
    pub(super) fn place_of(&mut self, slot: Slot) -> u32 {
        let id = slot.id.clone();
        let place = match self.vacant.pop() {
            Some(place) => {
                if let Some(old) = self.slots.get_mut(place as usize) {
                    *old = slot;
                }
                place
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        self.index.insert(id, place);
        self.ever_added += 1;
        place
    }

    pub(super) fn forget(&mut self, place: u32) {
        if let Some(slot) = self.slots.get_mut(place as usize) {
            self.index.remove(&slot.id);
            slot.state = State::Out;
            slot.fence = u64::MAX;
            self.vacant.push(place);
        }
    }

    pub(super) fn find(&self, id: &SlotId) -> Option<u32> {
        self.index.get(id).copied()
    }

    /// As [`Self::find`], trying first where the slot was.
    pub(super) fn find_at(&self, id: &SlotId, place: u32) -> Option<u32> {
        match self.slots.get(place as usize) {
            Some(slot) if slot.id.is(id) && slot.fence != u64::MAX => Some(place),
            _ => self.find(id),
        }
    }

    pub(super) fn arrival(&self, place: u32) -> u64 {
        self.slots.get(place as usize).map_or(u64::MAX, |slot| slot.arrival)
    }

    pub(super) fn total(&self) -> usize {
        self.index.len()
    }

    pub(super) fn ids(&self) -> impl Iterator<Item = &SlotId> {
        self.index.keys()
    }

    /// Until when nothing is granted because memory was lost: until every lease that may be forgotten has
    /// ended, and what was signed under it has rested as any nonce in doubt does.
    pub(super) fn quiet_until(&self) -> Micros {
        if self.server.lost_at == 0 { 0 } else { self.server.lost_at + self.longest + self.doubt_rest }
    }
}

impl PoolClock {
    fn read(&self, wall: Micros) -> Micros {
        (wall + self.shift).max(self.last)
    }

    /// A clock that was set back goes on from where it was, at its own pace.
    fn advance(&mut self, wall: Micros, now: Micros) {
        self.shift = now - wall;
        self.last = now;
    }
}
