//! The waiting room of one pool in one process: who tries next, and when.
//!
//! Callers that were refused wait in the order of their arrival. A slot that becomes ready calls the first
//! of them; those who wait for slots of their own choice are called every time. Nobody polls: besides the
//! calls there is one alarm, at the earliest time at which asking again can help.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_channel::oneshot;

use super::{Runtime, runtime};
use crate::Micros;
use crate::error::{Code, Error, Result};

/// The most callers that wait in one pool of one process.
const SEATS: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct WaitingRoom {
    room: Mutex<Room>,
}

#[derive(Debug, Default)]
struct Room {
    seats: VecDeque<Chair>,
    next: u64,
    alarm: Option<Micros>,
    closed: bool,
}

#[derive(Debug)]
struct Chair {
    number: u64,
    /// Whether any slot will do.
    any: bool,
    /// Taken by the call that wakes the caller; `None` while the caller tries.
    bell: Option<oneshot::Sender<Call>>,
    /// Whether there was a call while the caller tried: what it saw may be out of date.
    again: bool,
}

/// A place in the waiting room, given up when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    room: Arc<WaitingRoom>,
    number: u64,
    bell: oneshot::Receiver<Call>,
}

/// Why a caller tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// A slot became ready.
    Ready,
    /// The alarm rang: any number of slots may have come due.
    Alarm,
    /// Do not: the room was closed.
    Closed,
}

impl WaitingRoom {
    /// Whether somebody waits whom a newcomer would overtake.
    pub fn has_waiters(&self) -> bool {
        self.lock().seats.iter().any(|chair| chair.any && chair.bell.is_some())
    }

    pub fn len(&self) -> usize {
        self.lock().seats.len()
    }

    /// Takes the last place; calls that come before [`Seat::stay`] are remembered.
    ///
    /// # Errors
    /// `busy` if the room is full; `cancelled` if it was closed.
    pub fn enter(self: &Arc<Self>, any: bool) -> Result<Seat> {
        let mut room = self.lock();
        if room.closed {
            return Err(closed());
        }
        if room.seats.len() >= SEATS {
            return Err(Error::new(
                Code::Busy,
                format!("{SEATS} callers wait for this pool already; try again later"),
            ));
        }
        let number = room.next;
        room.next += 1;
        let (_, bell) = oneshot::channel();
        room.seats.push_back(Chair { number, any, bell: None, again: false });
        Ok(Seat { room: self.clone(), number, bell })
    }

    /// Calls the first `count` of those whom any slot will do, and all others.
    pub fn call(&self, count: u32) {
        self.call_for(count, Call::Ready);
    }

    /// Passes on the alarm, after it helped the one who was called.
    pub fn pass_alarm(&self) {
        self.call_for(1, Call::Alarm);
    }

    fn call_for(&self, count: u32, call: Call) {
        let mut left = count;
        let mut bells = Vec::new();
        let mut room = self.lock();
        let trying: Vec<u64> =
            room.seats.iter().filter(|chair| chair.bell.is_none()).map(|chair| chair.number).collect();
        for chair in room.seats.iter_mut().filter(|chair| chair.bell.is_some()) {
            if chair.any {
                if left == 0 {
                    continue;
                }
                left -= 1;
            }
            bells.extend(chair.bell.take());
        }
        // Those who try now may have asked just before the call.
        for chair in room.seats.iter_mut().filter(|chair| trying.contains(&chair.number)) {
            chair.again |= left > 0 || !chair.any;
        }
        drop(room);
        for bell in bells {
            // A caller that left meanwhile passes the call on as it drops its seat.
            let _ = bell.send(call);
        }
    }

    /// Sends everybody away, and lets nobody in any more.
    pub fn close(&self) {
        let bells: Vec<_> = {
            let mut room = self.lock();
            room.closed = true;
            room.seats.iter_mut().filter_map(|chair| chair.bell.take()).collect()
        };
        for bell in bells {
            let _ = bell.send(Call::Closed);
        }
    }

    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Calls the first caller at this time, unless an earlier alarm is set.
    pub fn set_alarm(self: &Arc<Self>, runtime: &impl Runtime, at: Micros) {
        {
            let mut room = self.lock();
            if room.seats.is_empty() || room.alarm.is_some_and(|alarm| alarm <= at) {
                return;
            }
            room.alarm = Some(at);
        }
        let room = Arc::downgrade(self);
        let left = at.saturating_sub(runtime.now());
        let sleeper = runtime.clone();
        runtime.spawn(async move {
            sleeper.sleep(left).await;
            let Some(room) = room.upgrade() else { return };
            let rings = {
                let mut room = room.lock();
                let rings = room.alarm == Some(at);
                if rings {
                    room.alarm = None;
                }
                rings
            };
            if rings {
                room.pass_alarm();
            }
        });
    }

    fn lock(&self) -> MutexGuard<'_, Room> {
        self.room.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seat {
    /// Waits for a call; `None` if none came by `deadline`. The seat stays where it was.
    pub async fn called(&mut self, runtime: &impl Runtime, deadline: Micros) -> Option<Call> {
        runtime::by(runtime, deadline, &mut self.bell).await?.ok()
    }

    /// Waits (on) after an attempt that did not help, unless there was a call meanwhile.
    pub fn stay(&mut self) {
        let (sender, bell) = oneshot::channel();
        self.bell = bell;
        let mut room = self.room.lock();
        if room.closed {
            let _ = sender.send(Call::Closed);
            return;
        }
        let Some(chair) = room.seats.iter_mut().find(|chair| chair.number == self.number) else { return };
        if std::mem::take(&mut chair.again) {
            let _ = sender.send(Call::Ready);
        } else {
            chair.bell = Some(sender);
        }
    }

    /// Leaves with what one came for.
    pub fn leave(mut self) {
        if self.remove().is_some_and(|chair| chair.again) {
            self.room.call(1);
        }
    }

    fn remove(&mut self) -> Option<Chair> {
        let mut room = self.room.lock();
        let at = room.seats.iter().position(|chair| chair.number == self.number)?;
        room.seats.remove(at)
    }
}

/// The error of a caller whose handle was closed.
pub(super) fn closed() -> Error {
    Error::new(
        Code::Cancelled,
        "the handle was closed, and nothing waits on it any more; nothing is held by this call, open anew",
    )
}

impl Drop for Seat {
    fn drop(&mut self) {
        // A call that this caller did not use belongs to the next.
        if self.remove().is_some_and(|chair| chair.bell.is_none()) {
            self.room.call(1);
        }
    }
}
