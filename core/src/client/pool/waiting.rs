//! The waiting room of one pool in one process: who tries next, and when.
//!
//! The store keeps the lines of all processes, and calls those who have tickets by name. Of the callers of this process
//! that take any slot of a server's pool only the first few have tickets, as those behind them are mostly served by slots
//! that this process gives back: who moves up asks for a ticket, and the time that was waited here counts. Who can have
//! none waits behind those who came before.
//!
//! Nobody polls. Besides the calls there are three alarms: for one, at the earliest time at which it can help anybody that one
//! asks again; for those who moved up; and now and then for all who stand in the store's line together, because a message may
//! have been lost, and because a ticket lapses with which nobody asks.

mod calling;
#[cfg(all(feature = "crowds", not(target_family = "wasm")))]
mod directory;
#[cfg(all(feature = "crowds", not(target_family = "wasm")))]
mod standing;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use futures_channel::oneshot;

use self::calling::Calling;
#[cfg(all(feature = "crowds", not(target_family = "wasm")))]
pub(in crate::client) use self::calling::Next;
#[cfg(all(feature = "crowds", not(target_family = "wasm")))]
use self::directory::Directory;
#[cfg(all(feature = "crowds", not(target_family = "wasm")))]
pub(in crate::client) use self::standing::{Asked, Asks, Standing};
use super::courier::{QUEUE, full};
use crate::client::audience::Audience;
use crate::error::{Code, Error, Result};
use crate::id::SlotId;
use crate::poison::unpoisoned;
use crate::row::{Row, take_out};
use crate::runtime::{self, Runtime};
use crate::slots::{Calls, OFFER};
use crate::{MILLISECOND, Micros, SECOND};

/// The most callers that wait in one pool of one process: as many as requests that wait.
const SEATS: usize = QUEUE;
/// How many of those who take any slot ask for tickets, where there is a crowd.
const FRONT: usize = 8;
/// A waiter asks again after so long at the earliest even if nobody called: a message may have been lost.
pub(super) const RECHECK: Micros = 5 * SECOND;
/// The part of this by which it is later at random, so that processes do not ask in step.
pub(super) const JITTER: Micros = 4;
/// Who moves up asks for a ticket after so long: until then it may well have been served.
pub(super) const STEP: Micros = 5 * MILLISECOND;
/// The least time between two looks for what comes due at different times.
const APART: Micros = 100 * MILLISECOND;

#[derive(Debug, Default)]
pub(in crate::client) struct WaitingRoom {
    room: Mutex<Room>,
    /// Changes with the room locked; whoever takes something asks it, without.
    closed: AtomicBool,
    /// Of those who acquire, in this room or still with the store: dropped as it closes.
    closing: Audience,
}

#[derive(Debug, Default)]
struct Room {
    /// By turn, then by number. There may be many, so that nothing looks at all of them which concerns a few.
    seats: Row<Chair>,
    #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
    directory: Directory,
    next: u64,
    /// How many slots came free for which nobody waited, and which nobody came for since.
    spare: u32,
    /// How many ever came free so.
    freed: u32,
    due: Option<Alarm>,
    /// When offers end and slots come due that were put to rest, perhaps elsewhere; of several within [`APART`] the last.
    ends: Vec<Micros>,
    moved_up: Option<Alarm>,
    /// The last of those who were among the first when that alarm was set.
    #[cfg(feature = "crowds")]
    moved_up_to: Option<(Turn, u64)>,
    recheck: Option<Alarm>,
    /// When the first answer that nobody has seen is given up.
    #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
    unseen: Option<Alarm>,
}

/// The task that waits for its time ends with it: leases end in days, and those who wait for them come and go.
#[derive(Debug)]
struct Alarm {
    at: Micros,
    _stands: oneshot::Sender<()>,
}

#[derive(Debug)]
struct Chair {
    number: u64,
    turn: Turn,
    place: Place,
    /// The names it waits for, if any.
    names: Vec<SlotId>,
    /// When asking again can help, as it was told last; [`Micros::MAX`] if that has passed or is not known.
    due: Micros,
    /// Whether it has asked the store, and so may have a ticket.
    asked: bool,
    /// Taken by the call that wakes the caller; `None` while the caller tries.
    bell: Option<oneshot::Sender<Call>>,
    /// Whether there was a call while the caller tried: what it saw may be out of date.
    again: bool,
    /// Whether it was called to look for all for whom something came due.
    looks: bool,
    /// Whether the store has granted what it tried for. It may be long before it leaves: a chain may be asked first.
    granted: bool,
    /// What it asks for as it is called, while it waits.
    #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
    standing: Option<Box<Standing>>,
    /// What comes of that, once it was asked for it.
    #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
    answer: Asked,
    /// When it was.
    #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
    asked_at: Micros,
    /// When the store called its ticket, until it comes; 0 if it did not.
    #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
    offered_at: Micros,
}

/// Rank and arrival, as the store reckons them: who has the lower goes first.
pub(super) type Turn = (i32, i64);

/// How somebody waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum Place {
    /// In the store's line for any slot, with a ticket of this name.
    Line(u128),
    /// The same in the lines of names, for all of them or for some.
    Names(u128),
    /// The same in the lines of all slots of this process, for any of them.
    Own(u128),
    /// For more slots than can be had without an administrator: in nobody's way, and without a ticket.
    Beyond,
}

/// A place in the waiting room, given up when it is dropped.
#[derive(Debug)]
pub(in crate::client) struct Seat {
    room: Arc<WaitingRoom>,
    turn: Turn,
    number: u64,
    bell: oneshot::Receiver<Call>,
}

/// How much had come free when a newcomer asked.
#[derive(Debug, Default)]
pub(in crate::client) struct Asking(u32);

/// Why a caller tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::client) enum Call {
    /// A slot became ready.
    Ready,
    /// The alarm rang: any number of slots may have come due.
    Alarm,
    /// Do not: the room was closed.
    Closed,
}

impl WaitingRoom {
    /// Whether a newcomer may ask, and what had come free by then: else it would overtake somebody who waits, or most likely ask in vain,
    /// as what comes free is theirs who try, unless it is to spare. If none of them has a ticket, who sits down behind them
    /// asks for one [`Self::set_moved_up`].
    pub fn let_ask(&self) -> Option<Asking> {
        let mut room = self.lock();
        let mut tries = false;
        for chair in room.front() {
            if chair.bell.is_some() {
                return None;
            }
            tries = true;
        }
        if tries && room.spare == 0 {
            return None;
        }
        room.spare = room.spare.saturating_sub(1);
        Some(Asking(room.freed))
    }

    /// It asked in vain: what came free before had been taken by others, or rests.
    pub fn found_none(&self, asking: Asking) {
        // Without `crowds` few wait.
        if cfg!(feature = "crowds") {
            let mut room = self.lock();
            room.spare = room.spare.min(room.freed.wrapping_sub(asking.0));
        }
    }

    pub fn len(&self) -> usize {
        self.lock().seats.len()
    }

    /// Takes the place of this turn; calls that come before [`Seat::stay`] are remembered.
    ///
    /// # Errors
    /// `busy` if the room is full; `cancelled` if it was closed.
    pub fn enter(self: &Arc<Self>, turn: Turn, place: Place, names: Vec<SlotId>) -> Result<Seat> {
        let mut room = self.lock();
        if self.is_closed() {
            return Err(closed());
        }
        if room.seats.len() >= SEATS {
            return Err(full());
        }
        let number = room.next;
        room.next += 1;
        let (_, bell) = oneshot::channel();
        let at = room.seats.iter().rposition(|chair| chair.turn <= turn).map_or(0, |last| last + 1);
        let chair = Chair {
            number,
            turn,
            place,
            names,
            due: Micros::MAX,
            asked: false,
            bell: None,
            again: false,
            looks: false,
            granted: false,
            #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
            standing: None,
            #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
            answer: Asked::Not,
            #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
            asked_at: 0,
            #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
            offered_at: 0,
        };
        #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
        room.directory.add(&chair);
        room.seats.insert(at, chair);
        Ok(Seat { room: self.clone(), turn, number, bell })
    }

    /// Hears whom the store calls; everybody, where that is not known.
    pub fn hear<R: Runtime>(self: &Arc<Self>, runtime: &R, calls: Option<&Calls>) {
        let Some(calls) = calls else { return self.call_all() };
        if calls.is_empty() {
            return;
        }
        self.call_tickets(&calls.tickets, || runtime.now());
        // Should who was called have vanished, perhaps elsewhere, the slot passes on when its offer ends, and of that nobody is told;
        // nor of the end of a rest. Before that of a longer one all ask again, and are told of it then.
        let offer = (!calls.tickets.is_empty()).then_some(OFFER);
        let mut rest = calls.rest.filter(|rest| *rest < RECHECK + RECHECK / JITTER);
        // Without `crowds` the few who wait ask at once.
        if !cfg!(feature = "crowds") && rest.take().is_some() {
            self.call_all();
        }
        for time in offer.into_iter().chain(rest) {
            let end = runtime.now() + time + MILLISECOND;
            if cfg!(feature = "crowds") {
                self.lock().note_end(end);
            }
            self.set_due(runtime, end);
        }
        // Also to those who have no ticket because there were too few slots for them.
        if calls.freed > 0 {
            let left = self.call_spare(calls.freed, &Chair::may_want);
            // One may have been added: one looks, and tells the others.
            self.call(left.min(1), Call::Ready, &Chair::is_beyond);
        }
    }

    fn call_all(&self) {
        self.call(u32::MAX, Call::Ready, &|chair| chair.asked || chair.bell.is_none());
    }

    /// Of those in front, calls who sat there as the alarm was set. Who moved up since may well be served as soon as they were, and is
    /// called by the next one if not: else a crowd that is served by what its process gives back would ask in vain all the time.
    #[cfg_attr(not(feature = "crowds"), expect(unused_variables, reason = "all are called there"))]
    fn call_who_moved_up<R: Runtime>(self: &Arc<Self>, runtime: &R) {
        let mut bells = Vec::new();
        #[cfg(feature = "crowds")]
        let mut moved_up = false;
        {
            let mut room = self.lock();
            #[cfg(feature = "crowds")]
            let last = room.moved_up_to.take();
            let front = room.seats.iter_mut().filter(|chair| chair.is_in_front()).take(FRONT);
            for chair in front.filter(|chair| chair.should_ask()) {
                #[cfg(feature = "crowds")]
                if Some((chair.turn, chair.number)) > last {
                    moved_up = true;
                    continue;
                }
                bells.extend(chair.bell.take());
            }
        }
        for bell in bells {
            let _ = bell.send(Call::Ready);
        }
        // Nobody looks again for those who sit behind them.
        #[cfg(feature = "crowds")]
        if moved_up {
            self.set_moved_up(runtime, runtime.now() + STEP);
        }
    }

    /// Calls who have these tickets.
    #[cfg_attr(
        not(all(feature = "crowds", not(target_family = "wasm"))),
        expect(unused_variables, reason = "nobody looks there for who does not come")
    )]
    fn call_tickets(&self, tickets: &[u128], now: impl FnOnce() -> Micros) {
        #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
        {
            let (mut calling, mut room) = (Calling::new(tickets.len() as u32, Call::Ready), self.lock());
            let seats = tickets.iter().filter_map(|ticket| room.directory.tickets.get(ticket));
            let mut at: Vec<_> = seats.filter_map(|seat| room.find(*seat)).collect();
            at.sort_unstable();
            let now = now();
            for seat in &at {
                room.seats.get_mut(*seat).into_iter().for_each(|chair| chair.offered_at = now);
            }
            calling.meet_those(&mut room, at);
            calling.ring(room);
        }
        #[cfg(not(all(feature = "crowds", not(target_family = "wasm"))))]
        self.call(tickets.len() as u32, Call::Ready, &|chair| {
            chair.place.ticket().is_some_and(|ticket| tickets.contains(&ticket))
        });
    }

    /// A slot is given back: the first who may have it, who is to be called once that is on its way, and for whom it is asked along
    /// with it.
    #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
    pub fn first_for(&self, freed: &SlotId, now: Micros) -> Option<Next> {
        let meant = |chair: &Chair| chair.may_have(freed);
        let (mut calling, mut room) = (Calling::new(1, Call::Ready), self.lock());
        calling.asks = Some(now);
        // Locks are all waited for by name, and by many.
        if room.directory.named == room.seats.len() {
            let first = room.first_of(freed, &meant);
            calling.meet_those(&mut room, first);
        } else {
            calling.meet_all(&mut room, &meant);
        }
        let (mut met, beyond) = calling.end(&mut room);
        room.note_spare(beyond);
        met.pop()
    }

    /// A slot is given back: calls the first who may have it.
    #[cfg(not(all(feature = "crowds", not(target_family = "wasm"))))]
    pub fn call_first(&self, freed: &SlotId) {
        self.call_spare(1, &|chair| chair.may_have(freed));
    }

    /// Calls so many of those who are `meant`, and counts the slots for which nobody waits; returns how many these are.
    fn call_spare(&self, count: u32, meant: &dyn Fn(&Chair) -> bool) -> u32 {
        let beyond = self.call(count, Call::Ready, meant);
        if beyond > 0 {
            self.lock().note_spare(beyond);
        }
        beyond
    }

    /// Calls those who wanted more than could be had: one of them learnt that there is more now.
    pub fn call_beyond(&self) {
        self.call(u32::MAX, Call::Ready, &Chair::is_beyond);
    }

    /// Passes on the alarm, after it helped the one who was called.
    pub fn pass_alarm(&self) {
        // Without `crowds` all were.
        if cfg!(feature = "crowds") {
            self.call(1, Call::Alarm, &|chair| !chair.is_beyond());
        }
    }

    /// Calls the first `count` of those who are `meant`. Returns how many fewer than `count` wait.
    fn call(&self, count: u32, call: Call, meant: &dyn Fn(&Chair) -> bool) -> u32 {
        let (mut calling, mut room) = (Calling::new(count, call), self.lock());
        calling.meet_all(&mut room, meant);
        calling.ring(room)
    }

    /// Sends everybody away, and lets nobody in any more.
    pub fn close(&self) {
        let bells: Vec<_> = {
            let mut room = self.lock();
            self.closed.store(true, Relaxed);
            room.seats.iter_mut().filter_map(|chair| chair.bell.take()).collect()
        };
        self.closing.dismiss();
        for bell in bells {
            let _ = bell.send(Call::Closed);
        }
    }

    pub fn is_closed(&self) -> bool {
        self.closed.load(Relaxed)
    }

    /// Ends when the room is closed.
    pub fn closing(&self) -> oneshot::Receiver<Infallible> {
        self.closing.join_unless(|| self.is_closed())
    }

    /// Something came due: one looks, for all of them, and the alarm is set for what comes due next. It is one for whom it did, if
    /// there is: only it is told, with all who want the same, what comes due for it next. Where that is soon the alarm waits a little, or
    /// each of them would have the store asked at its own time.
    fn ring<R: Runtime>(self: &Arc<Self>, runtime: &R) {
        let now = runtime.now();
        let mut room = self.lock();
        let mut next = if cfg!(feature = "crowds") { room.next_end(now) } else { Micros::MAX };
        let mut looks: Option<(u64, Vec<SlotId>)> = None;
        #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
        let mut stood_still = false;
        for chair in room.seats.iter_mut() {
            #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
            (stood_still |= chair.stood_still(now, OFFER));
            if chair.due <= now {
                // Without `crowds` all look, and are told what comes due next. Who does not listen now asks by itself, or has what it
                // came for.
                if !cfg!(feature = "crowds") || chair.bell.is_none() {
                    chair.due = Micros::MAX;
                    continue;
                }
                let (_, names) = looks.get_or_insert_with(|| (chair.number, chair.names.clone()));
                if *names == chair.names {
                    chair.due = Micros::MAX;
                }
            }
            next = next.min(chair.due);
        }
        drop(room);
        #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
        if stood_still {
            self.call_all();
        }
        if cfg!(feature = "crowds") {
            let called = looks.map(|(number, _)| self.call(1, Call::Alarm, &|chair| chair.number == number));
            // It may have left just now.
            if called != Some(0) {
                self.pass_alarm();
            }
        } else {
            self.call_all();
        }
        if next < Micros::MAX {
            self.set_due(runtime, next.max(now + APART));
        }
    }

    fn set_due<R: Runtime>(self: &Arc<Self>, runtime: &R, at: Micros) {
        self.set_alarm(runtime, at, |room| &mut room.due, Self::ring);
    }

    /// Calls those at this time who are among the first now and have no ticket, if there are any.
    pub fn set_moved_up<R: Runtime>(self: &Arc<Self>, runtime: &R, at: Micros) {
        {
            // Whoever leaves may still sit there.
            #[cfg_attr(
                not(feature = "crowds"),
                expect(unused_mut, reason = "who was among them is not noted there")
            )]
            let mut room = self.lock();
            if !room.front().take(FRONT + 1).any(Chair::should_ask) {
                return;
            }
            #[cfg(feature = "crowds")]
            if room.moved_up.is_none() {
                room.moved_up_to =
                    room.front().take(FRONT + 1).last().map(|chair| (chair.turn, chair.number));
            }
        }
        self.set_alarm(runtime, at, |room| &mut room.moved_up, Self::call_who_moved_up);
    }

    /// Calls all at this time, unless they are to be called earlier.
    pub fn set_recheck(self: &Arc<Self>, runtime: &impl Runtime, at: Micros) {
        self.set_alarm(runtime, at, |room| &mut room.recheck, |room, _| room.call_all());
    }

    fn set_alarm<R: Runtime>(
        self: &Arc<Self>,
        runtime: &R,
        at: Micros,
        alarm: fn(&mut Room) -> &mut Option<Alarm>,
        ring: fn(&Arc<Self>, &R),
    ) {
        let ended = {
            let mut room = self.lock();
            if room.seats.is_empty() || alarm(&mut room).as_ref().is_some_and(|earlier| earlier.at <= at) {
                return;
            }
            let (stands, ended) = oneshot::channel();
            *alarm(&mut room) = Some(Alarm { at, _stands: stands });
            ended
        };
        let room = Arc::downgrade(self);
        let sleeper = runtime.clone();
        // It counts as set for those in other threads too.
        runtime.spawn_at_once(async move {
            if runtime::by(&sleeper, at, ended).await.is_some() {
                return;
            }
            let Some(room) = room.upgrade() else { return };
            // Another one may have been set in its place.
            let rings = alarm(&mut room.lock()).take_if(|set| set.at == at).is_some();
            if rings {
                ring(&room, &sleeper);
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, Room> {
        unpoisoned(&self.room)
    }
}

impl Seat {
    /// Waits for a call; `None` if none came by `deadline`. The seat stays where it was.
    pub async fn called(&mut self, runtime: &impl Runtime, deadline: Micros) -> Option<Call> {
        let call = runtime::by(runtime, deadline, &mut self.bell).await?.ok();
        #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
        {
            // It may come too late, as the offer was made a while before.
            let stood_still = self.room.lock().chair((self.turn, self.number)).is_some_and(|chair| {
                let stood_still = chair.stood_still(runtime.now(), OFFER / 2);
                chair.offered_at = 0;
                stood_still
            });
            if stood_still {
                self.room.call_all();
            }
        }
        call
    }

    /// Waits (on) after an attempt that did not help, unless there was a call meanwhile.
    pub fn stay(&mut self, place: Place, asked: bool) {
        let (sender, bell) = oneshot::channel();
        self.bell = bell;
        let mut room = self.room.lock();
        if self.room.is_closed() {
            let _ = sender.send(Call::Closed);
            return;
        }
        let Some(at) = room.find((self.turn, self.number)) else { return };
        let Some(chair) = room.place(at, place) else { return };
        (chair.asked, chair.granted, chair.looks) = (asked, false, false);
        if std::mem::take(&mut chair.again) {
            let _ = sender.send(Call::Ready);
        } else {
            chair.bell = Some(sender);
        }
    }

    /// What is to be asked for it if it is called, from when it [stays](Self::stay) until then.
    #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
    pub fn leave_standing(&self, standing: Option<Standing>) {
        if let Some(chair) = self.room.lock().chair((self.turn, self.number)) {
            chair.standing = standing.map(Box::new);
        }
    }

    /// What comes of what was asked for it as it was called, if something was.
    #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
    pub fn answer(&self) -> Asked {
        let mut room = self.room.lock();
        room.chair((self.turn, self.number)).map_or(Asked::Not, |chair| std::mem::take(&mut chair.answer))
    }

    /// At this time asking again can help it: then the first is called, unless that is so earlier.
    pub fn set_due(&self, runtime: &impl Runtime, at: Micros) {
        {
            let mut room = self.room.lock();
            let Some(chair) = room.find((self.turn, self.number)).and_then(|at| room.seats.get_mut(at))
            else {
                return;
            };
            chair.due = at;
        }
        self.room.set_due(runtime, at);
    }

    /// Tries on under this name; or has what it came for, but has yet to see whether that is of use.
    pub fn set(&self, place: Place, granted: bool) {
        let mut room = self.room.lock();
        if let Some(at) = room.find((self.turn, self.number))
            && let Some(chair) = room.place(at, place)
        {
            chair.granted = granted;
        }
    }

    /// Leaves with what one came for.
    pub fn leave(&mut self) {
        self.remove();
    }

    fn remove(&mut self) -> Option<Chair> {
        let mut room = self.room.lock();
        let at = room.find((self.turn, self.number))?;
        let chair = take_out(&mut room.seats, at);
        #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
        chair.iter().for_each(|chair| room.directory.remove(chair));
        if room.seats.is_empty() {
            // Those who come next have alarms of their own.
            (room.due, room.moved_up, room.recheck) = (None, None, None);
            #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
            (room.unseen = None);
            room.ends.clear();
        }
        chair
    }
}

impl Room {
    fn note_spare(&mut self, beyond: u32) {
        self.spare = self.spare.saturating_add(beyond);
        self.freed = self.freed.wrapping_add(beyond);
    }

    /// Those who take any slot, as far as they have none yet.
    fn front(&self) -> impl Iterator<Item = &Chair> {
        // Of locks there are none, and of those who wait for them many.
        #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
        let most = if self.directory.anyone == 0 { 0 } else { usize::MAX };
        #[cfg(not(all(feature = "crowds", not(target_family = "wasm"))))]
        let most = usize::MAX;
        self.seats.iter().take(most).filter(|chair| chair.is_in_front())
    }

    /// The first of the ends that are to come.
    fn next_end(&mut self, now: Micros) -> Micros {
        self.ends.retain(|end| *end > now);
        self.ends.iter().copied().min().unwrap_or(Micros::MAX)
    }

    fn note_end(&mut self, end: Micros) {
        // Who comes later is told as it asks, and no alarm would ever take it out again.
        if self.seats.is_empty() {
            return;
        }
        match self.ends.iter_mut().find(|near| **near / APART == end / APART) {
            Some(near) => *near = end.max(*near),
            None => self.ends.push(end),
        }
    }

    /// Who waits for this name and is meant: the first who waits for a call, and those who try before.
    #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
    fn first_of(&self, name: &SlotId, meant: &dyn Fn(&Chair) -> bool) -> Vec<usize> {
        let chair = |at: usize| self.seats.get(at).filter(|chair| meant(chair));
        let mut waits = false;
        let until_one_waits = |at: &usize| {
            let before = waits;
            waits = chair(*at).is_some_and(|chair| chair.bell.is_some());
            !before
        };
        let seats = self.directory.of(name).filter_map(|seat| self.find(seat));
        seats.filter(|at| chair(*at).is_some()).take_while(until_one_waits).collect()
    }

    fn find(&self, seat: (Turn, u64)) -> Option<usize> {
        if !cfg!(feature = "crowds") {
            // As in `found_none`.
            return self.seats.iter().position(|chair| chair.number == seat.1);
        }
        let at = self.seats.partition_point(|chair| (chair.turn, chair.number) < seat);
        self.seats.get(at).filter(|chair| chair.number == seat.1).map(|_| at)
    }

    /// Whose seat this is. The small module has no room for it.
    #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
    fn chair(&mut self, seat: (Turn, u64)) -> Option<&mut Chair> {
        let at = self.find(seat)?;
        self.seats.get_mut(at)
    }

    /// Who sits there waits at another place from now on.
    fn place(&mut self, at: usize, place: Place) -> Option<&mut Chair> {
        let chair = self.seats.get_mut(at)?;
        #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
        if chair.place != place {
            self.directory.leave(chair);
            chair.place = place;
            self.directory.stay(chair);
        }
        chair.place = place;
        Some(chair)
    }
}

impl Chair {
    /// Whether it counts among the first in line: who waits for names asks for a ticket as it comes, whoever sits before it.
    fn is_in_front(&self) -> bool {
        self.place.is_for_any() && !self.granted
    }

    /// Whether this slot, which comes free, may be what it waits for.
    fn may_have(&self, freed: &SlotId) -> bool {
        (self.names.is_empty() || self.names.contains(freed)) && !self.is_beyond()
    }

    /// Whether it may want a slot that came free for none of those who have tickets.
    fn may_want(&self) -> bool {
        let is_called_by_name = self.asked && matches!(self.place, Place::Own(_));
        self.names.is_empty() && !self.is_beyond() && !is_called_by_name
    }

    fn is_beyond(&self) -> bool {
        self.place == Place::Beyond
    }

    fn should_ask(&self) -> bool {
        self.is_in_front() && !self.asked
    }

    /// Whether it did not come for so long to what the store kept for it. Then the store takes all of its process for gone who have not
    /// asked since, and nobody tells them: they ask again.
    #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
    fn stood_still(&mut self, now: Micros, patience: Micros) -> bool {
        let stood_still = self.offered_at > 0 && !self.granted && now >= self.offered_at + patience;
        if stood_still {
            self.offered_at = 0;
        }
        stood_still
    }
}

impl Place {
    /// Whether it takes any slot, of all or of its process: then it takes its turn among those of this process too.
    pub fn is_for_any(self) -> bool {
        matches!(self, Place::Line(_) | Place::Own(_))
    }

    /// The ticket by which the store knows it.
    pub fn ticket(self) -> Option<u128> {
        match self {
            Place::Line(ticket) | Place::Own(ticket) | Place::Names(ticket) => Some(ticket),
            Place::Beyond => None,
        }
    }
}

/// The error of a caller whose handle was closed.
pub(in crate::client) fn closed() -> Error {
    Error::new(Code::Cancelled, "the handle was closed; nothing is held by this call, open anew")
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(chair) = self.remove().filter(|chair| chair.bell.is_none()) else { return };
        // Calls that this caller did not use belong to the next: one that it was about to answer, and one that came
        // meanwhile.
        if chair.looks {
            self.room.pass_alarm();
        }
    }
}
