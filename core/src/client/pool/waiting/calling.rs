//! A call that goes round.

use std::sync::MutexGuard;

use futures_channel::oneshot;

#[cfg(all(feature = "crowds", not(target_family = "wasm")))]
use super::standing::Asks;
use super::{Call, Chair, Room};
#[cfg(all(feature = "crowds", not(target_family = "wasm")))]
use crate::Micros;

/// Whom it has met, and whom it may still be for.
pub(super) struct Calling {
    call: Call,
    /// How many more of those who wait it is for.
    left: u32,
    met: Vec<Next>,
    /// Who tries meanwhile, by their seats, and no more of them than could be meant.
    trying: Vec<usize>,
    /// When what they ask for is asked for them, if it is.
    #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
    pub asks: Option<Micros>,
}

/// Who is called, and what is asked for it before.
#[cfg(all(feature = "crowds", not(target_family = "wasm")))]
#[derive(Debug)]
pub(in crate::client) struct Next {
    bell: oneshot::Sender<Call>,
    asks: Option<Asks>,
}
#[cfg(not(all(feature = "crowds", not(target_family = "wasm"))))]
type Next = oneshot::Sender<Call>;

impl Calling {
    pub fn new(count: u32, call: Call) -> Self {
        Calling {
            call,
            left: count,
            met: Vec::new(),
            trying: Vec::new(),
            #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
            asks: None,
        }
    }

    /// Meets all who are `meant`, one after the other, until it has met enough.
    pub fn meet_all(&mut self, room: &mut Room, meant: &dyn Fn(&Chair) -> bool) {
        for (at, chair) in room.seats.iter_mut().enumerate().filter(|(_, chair)| meant(chair)) {
            if self.left == 0 {
                break;
            }
            self.meet(at, chair);
        }
    }

    /// The same of those who sit there.
    #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
    pub fn meet_those(&mut self, room: &mut Room, seats: Vec<usize>) {
        for at in seats {
            if self.left == 0 {
                break;
            }
            if let Some(chair) = room.seats.get_mut(at) {
                self.meet(at, chair);
            }
        }
    }

    fn meet(&mut self, at: usize, chair: &mut Chair) {
        if let Some(bell) = chair.bell.take() {
            self.left -= 1;
            // Without `crowds` nobody looks for others.
            if cfg!(feature = "crowds") {
                chair.looks = self.call == Call::Alarm;
            }
            #[cfg(all(feature = "crowds", not(target_family = "wasm")))]
            let bell = Next { bell, asks: self.asks.and_then(|now| chair.ask(now)) };
            self.met.push(bell);
        } else if !chair.granted && !chair.again && self.trying.len() < self.left as usize {
            self.trying.push(at);
        }
    }

    /// For whom nobody waits, those who try now may have asked just before the call. As many of them and no more ask again: if all
    /// did, they would be trying as the next slot comes free too, and so on for ever. Who is to be called, and how many fewer these are
    /// than it was for.
    pub fn end(self, room: &mut Room) -> (Vec<Next>, u32) {
        for at in self.trying.into_iter().take(self.left as usize) {
            room.seats.get_mut(at).into_iter().for_each(|chair| chair.again = true);
        }
        (self.met, self.left)
    }

    /// Calls whom it has met. Returns how many fewer these are than it was for.
    pub fn ring(self, mut room: MutexGuard<'_, Room>) -> u32 {
        let call = self.call;
        let (met, left) = self.end(&mut room);
        drop(room);
        for next in met {
            // A caller that left meanwhile passes the call on as it drops its seat.
            let _ = next.send(call);
        }
        left
    }
}

#[cfg(all(feature = "crowds", not(target_family = "wasm")))]
impl Next {
    /// What it asks for, if it left that.
    pub fn asks(&mut self) -> Option<Asks> {
        self.asks.take()
    }

    /// Has it try: take what it was asked for, or ask itself.
    pub fn call(self) {
        let _ = self.send(Call::Ready);
    }

    fn send(self, call: Call) -> Result<(), Call> {
        self.bell.send(call)
    }
}
