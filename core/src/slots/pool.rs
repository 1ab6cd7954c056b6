//! One pool: its slots, its clock, and what it knows of its server.

use rustc_hash::FxHashMap;

use super::draw::Draw;
use super::due::DueSet;
use super::lanes::Lanes;
use super::line::Line;
use super::positions::Positions;
use super::ready::ReadyQueue;
use super::slot::{Mode, Slot, State};
use super::{
    Answer, Calls, Envelope, LANE_GRACE, LeaseRef, Moment, OFFER, Performed, QuietTime, Reply, Request,
    SWEEP, VALIDITY,
};
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
    pub(super) quiet_time: QuietTime,
    /// The highest fence granted, or shown by a client.
    pub(super) top: u64,
    /// The longest quiet time so far, and the highest fence when it became that long, or memory was lost: who has seen a higher one
    /// has heard of it.
    told: (Micros, u64),
    pub(super) waiters_until: Micros,
    pub(super) slots: Vec<Slot>,
    vacant: Vec<u32>,
    index: FxHashMap<SlotId, u32>,
    pub(super) ready: [ReadyQueue; DOUBT + 1],
    /// How often a slot became ready.
    arrived: u64,
    pub(super) due: DueSet,
    pub(super) positions: Positions,
    /// How many slots leave: see [`Slot::leaves`].
    pub(super) leaving: u32,
    pub(super) line: Line,
    /// How many slots became ready in this turn, when the first of those that were put to rest comes due, and the tickets that were
    /// called.
    freed: u32,
    rests_until: Micros,
    pub(super) called: Vec<u128>,
    /// What was kept or offered in this turn, one after the other.
    #[cfg(test)]
    pub(super) handed: Vec<super::tests::Handed>,
    /// Fences of leases that were claimed in this turn.
    pub(super) claimed: Vec<u64>,
    /// How often somebody claimed a lease or let go of one.
    pub(super) stirred: u64,
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
    /// When memory was last lost; 0 for never. The epoch, unless it was lost before the pool was begun.
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
        // One that set out before memory was lost may have been performed then.
        let too_early = |last| last < self.server.epoch + VALIDITY;
        if envelope.not_after.is_some_and(|last| now > last || too_early(last)) {
            return Answer::Stale { now };
        }
        if !self.defined && !matches!(envelope.requests.first(), Some(Request::Define { .. })) {
            let replies = envelope.requests.iter().map(|_| Reply::Undefined).collect();
            let calls = Calls::default();
            return Answer::Performed(Performed { now, top: 0, quiet_time: None, calls, replies });
        }
        self.clock.advance(moment.wall, now);
        (self.freed, self.rests_until) = (0, Micros::MAX);
        #[cfg(test)]
        self.handed.clear();
        if self.defined {
            self.notice_loss(now, moment, envelope);
            self.sweep(now);
        }
        let mut draw = Draw::new(envelope.seed);
        let mut perform = |request| self.perform(now, moment, envelope.seen, &mut draw, request);
        let replies = envelope.requests.iter().map(&mut perform).collect();
        let calls = self.end_turn(now, &mut draw);
        let quiet_time = (envelope.seen <= self.told.1).then_some(self.quiet_time);
        let performed = Performed { now, top: self.top, quiet_time, calls, replies };
        if let Some(lane) = envelope.lane {
            let until = envelope.not_after.unwrap_or(now) + LANE_GRACE;
            self.lanes.keep(lane, performed.clone(), now, until);
        }
        Answer::Performed(performed)
    }

    /// Performs one request of callers that share the pool's memory, where no envelope can be lost, late
    /// or doubled. Returns the store time, the reply, and whom it calls.
    pub fn apply_one(&mut self, moment: Moment<'_>, seed: u32, request: &Request) -> (Micros, Reply, Calls) {
        if !self.defined && !matches!(request, Request::Define { .. }) {
            return (self.clock.read(moment.wall), Reply::Undefined, Calls::default());
        }
        let now = self.begin_turn(moment);
        let mut draw = Draw::new(seed);
        let reply = self.perform(now, moment, 0, &mut draw, request);
        (now, reply, self.end_turn(now, &mut draw))
    }

    /// As [`Self::apply_one`] of a [`Request::Release`], which need not be made: it would have to own the id.
    pub fn release_one(
        &mut self,
        moment: Moment<'_>,
        lease: &LeaseRef,
        outcome: Outcome,
        cooldown: Micros,
    ) -> (Reply, Calls) {
        if !self.defined {
            return (Reply::Undefined, Calls::default());
        }
        let now = self.begin_turn(moment);
        let reply = self.release(now, lease, outcome, cooldown);
        // A release brings no randomness, and what it offers may be drawn for: the golden ratio scatters a counter.
        let mut draw = Draw::new((self.arrived as u32).wrapping_mul(0x9E37_79B9));
        (reply, self.end_turn(now, &mut draw))
    }

    fn begin_turn(&mut self, moment: Moment<'_>) -> Micros {
        let now = self.clock.read(moment.wall);
        self.clock.advance(moment.wall, now);
        (self.freed, self.rests_until) = (0, Micros::MAX);
        self.sweep(now);
        now
    }

    /// Offers what is ready to those in line, and says who is called.
    fn end_turn(&mut self, now: Micros, draw: &mut Draw) -> Calls {
        self.serve(now, draw);
        if self.quiet_time.sum() > self.told.0 {
            self.told = (self.quiet_time.sum(), self.top);
        }
        let waits = self.waiters_until > now;
        let freed = if waits { self.freed.min(self.count_ready()) } else { 0 };
        let rests = self.rests_until < Micros::MAX && (waits || !self.line.is_empty());
        let rest = rests.then(|| self.rests_until - now);
        if self.called.is_empty() && self.claimed.is_empty() {
            return Calls { freed, rest, ..Calls::default() };
        }
        let (tickets, claimed) = (std::mem::take(&mut self.called), std::mem::take(&mut self.claimed));
        Calls { freed, tickets, claimed, rest }
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
            Request::Claim(claim) => self.claim(now, draw, claim),
            Request::Withdraw { holder } => self.withdraw(now, *holder),
            Request::Renew { lease, ttl } => self.renew(now, lease, *ttl),
            Request::Release { lease, outcome, cooldown } => self.release(now, lease, *outcome, *cooldown),
            Request::Resync { lease, chain, rewind, settle } => {
                self.resync(now, lease, *chain, *rewind, *settle)
            }
            &Request::Define { ref slots, longest, doubt_rest } => {
                self.define(now, moment, seen, slots, QuietTime { longest, doubt_rest })
            }
            Request::Change { slot, change } => self.change(now, slot, *change),
            Request::Inspect { slots } => self.inspect(now, slots),
            Request::List => self.list(),
        }
    }

    pub(super) fn count_ready(&self) -> u32 {
        self.ready.iter().map(|queue| queue.len()).sum()
    }

    /// Sees from the server's identity, from a client's fence or from a client's clock that memory may
    /// have been lost: grants nothing for one longest time to live, and puts every nonce in doubt.
    ///
    /// Fences are times of the store. So one from before the pool was begun is of another pool that was here,
    /// and that somebody who knew nothing of it has defined anew: what is forgotten was granted before then.
    fn notice_loss(&mut self, now: Micros, moment: Moment<'_>, envelope: &Envelope) {
        let Server { incarnation, epoch, lost_at } = &self.server;
        let since = if incarnation != moment.incarnation || envelope.jumped {
            now
        } else if envelope.seen > 0 && envelope.seen < *epoch && lost_at < epoch {
            *epoch
        } else if envelope.seen > self.top {
            now
        } else {
            return;
        };
        // A clock that was set back may stand still: the new epoch differs from the old one all the same.
        let epoch = since.max(epoch + 1);
        self.server = Server { incarnation: moment.incarnation.to_owned(), epoch, lost_at: epoch };
        // Who has seen later fences than others, of what was lost, tells of the same loss.
        self.top = self.top.max(envelope.seen).max(epoch);
        // Nobody who has seen those has heard of it.
        self.told.1 = self.top;
        self.line.clear();
    }

    /// Whether it knows anything that one made anew on a server that never lost its memory would not: slots, who waits, or fences that the
    /// clock has not come to.
    pub fn remembers(&mut self, moment: Moment<'_>) -> bool {
        let now = self.clock.read(moment.wall);
        self.clock.advance(moment.wall, now);
        if self.line.is_empty() {
            self.sweep(now);
        }
        self.total() > 0 || !self.line.is_empty() || self.top >= moment.wall
    }

    /// Somebody may have left behind whom others stood who can be served now.
    pub(super) fn move_up(&mut self) {
        let Pool { line, slots, index, .. } = self;
        let state = |name: &SlotId| Some(slots.get(*index.get(name)? as usize)?.state);
        line.move_up(|name| state(name).is_none_or(|state| state == State::Ready));
    }

    /// Puts back what is overdue, in the order of its time.
    fn sweep(&mut self, now: Micros) {
        self.line.sweep(now);
        for _ in 0..SWEEP {
            let Some(place) = self.due.pop(now, &self.slots, &mut self.positions) else { return };
            self.put_back(now, place);
        }
    }

    /// Where a name is, which is put back if it is overdue: there may be more of them than a sweep puts back. What ends just now may
    /// have been cut short for who steals it.
    pub(super) fn find_put_back(&mut self, now: Micros, name: &SlotId) -> Option<u32> {
        let place = self.find(name)?;
        let is_due = |slot: &Slot| !matches!(slot.state, State::Ready | State::Out) && slot.until < now;
        if self.slots.get(place as usize).is_some_and(is_due) {
            self.due.remove(place, &mut self.positions);
            self.put_back(now, place);
            return self.find(name);
        }
        Some(place)
    }

    /// Puts back a slot that is overdue: it is in no set when this is called.
    pub(super) fn put_back(&mut self, now: Micros, place: u32) {
        if self.reverts(now, place) {
            return;
        }
        let Some(slot) = self.slots.get_mut(place as usize) else { return };
        match slot.state {
            State::Leased => {
                let ended = slot.until;
                slot.set_nonce(slot.nonce.unsettled(), ended);
                self.settle(now, place, ended);
            }
            state => {
                self.leaving -= u32::from(slot.leaves());
                if state == State::Offered {
                    let (holder, made, name) = (slot.holder, slot.until - OFFER, slot.id.clone());
                    // Without `crowds` a store in memory has one process, and there is no other.
                    if self.line.end_offer(holder, place).is_some() && cfg!(feature = "crowds") {
                        self.line.drop_silent(holder, made, &name);
                    }
                }
                self.hand_in(place);
            }
        }
    }

    /// Where a slot goes that is leased no more: it is in no set when this is called. If its nonce is in doubt it rests, from
    /// `ended` on, which is 0 if it has done so.
    pub(super) fn settle(&mut self, now: Micros, place: u32, ended: Micros) {
        let doubt_rest = self.quiet_time.doubt_rest;
        let Some(slot) = self.slots.get_mut(place as usize) else { return };
        self.leaving -= u32::from(slot.leaves());
        // It was put under quarantine while it was leased, and whatever its holder said of the nonce since is not trusted.
        if slot.epoch == 0 {
            slot.nonce = slot.nonce.unsettled();
        }
        if matches!(slot.mode, Mode::Draining | Mode::Disabled) {
            slot.mode = Mode::Disabled;
            slot.state = State::Out;
            return;
        }
        let doubtful = matches!(slot.nonce, NonceRecord::InDoubt { .. });
        if doubtful {
            slot.rest_until = slot.rest_until.max(ended + doubt_rest);
        }
        let until = match slot.mode {
            // Who adds it again meanwhile finds it as it was.
            Mode::Removing if doubtful => slot.rest_until,
            Mode::Removing => 0,
            _ => slot.rest_until.max(slot.barred_until),
        };
        if until > now {
            slot.state = State::Cooling;
            slot.until = until;
            self.leaving += u32::from(slot.leaves());
            self.rests_until = self.rests_until.min(until);
            self.due.insert(until, place, &mut self.positions);
        } else {
            self.hand_in(place);
        }
    }

    /// Makes a slot ready, or forgets it if it was made for a lease or is removed: it is in no set when this is called.
    pub(super) fn hand_in(&mut self, place: u32) {
        match self.slots.get(place as usize) {
            Some(slot) if matches!(slot.mode, Mode::Passing | Mode::Removing) => self.forget(place),
            _ => self.make_ready(place),
        }
    }

    pub(super) fn make_ready(&mut self, place: u32) {
        let Some(slot) = self.slots.get_mut(place as usize) else { return };
        self.line.freed(&slot.id);
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
            State::Leased | State::Offered | State::Cooling => self.due.remove(place, &mut self.positions),
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
            self.line.freed(&slot.id);
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
        if self.server.lost_at == 0 { 0 } else { self.server.lost_at + self.quiet_time.sum() }
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
