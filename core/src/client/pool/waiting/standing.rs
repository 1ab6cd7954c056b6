//! What a caller that waits left to be asked for as it is called. It travels with what is given back: were the caller woken first, its
//! claim might miss that envelope, or another be called for a slot that it was called for already.

use std::sync::Arc;

use futures_channel::oneshot;

use super::{Chair, WaitingRoom};
use crate::Micros;
use crate::client::pool::courier::{Delivered, Delivery};
use crate::error::Result;
use crate::runtime::Runtime;
use crate::slots::{Claim, OFFER};

/// A claim that is made if its caller is called.
#[derive(Debug)]
pub(in crate::client) struct Standing {
    pub claim: Claim,
    /// Since when it waits.
    pub began: Micros,
    /// Until when.
    pub deadline: Micros,
}

/// A claim on its way to the store.
#[derive(Debug)]
pub(in crate::client) struct Asks {
    pub standing: Box<Standing>,
    pub caller: oneshot::Sender<Result<Delivered>>,
}

/// What was asked for somebody.
#[derive(Debug, Default)]
pub(in crate::client) enum Asked {
    /// Nothing.
    #[default]
    Not,
    /// What it left, as it was called: the answer is here, or on its way.
    Is(Delivery),
    /// The same, but it did not come to look for so long that what it may have been granted was given back.
    Was,
}

impl WaitingRoom {
    /// Sees to it that what is granted to those who do not come to look is given back as soon as an offer of the store's would be: they
    /// may stand still, and nothing prolongs what nobody has seen.
    pub fn look_after_answers<R: Runtime>(self: &Arc<Self>, runtime: &R, now: Micros) {
        self.set_alarm(runtime, now + OFFER, |room| &mut room.unseen, Self::give_up_answers);
    }

    fn give_up_answers<R: Runtime>(self: &Arc<Self>, runtime: &R) {
        let now = runtime.now();
        let (mut left, mut next) = (Vec::new(), Micros::MAX);
        let mut room = self.lock();
        for chair in &mut room.seats {
            match chair.answer {
                Asked::Is(_) if chair.asked_at + OFFER <= now => {
                    left.push(std::mem::replace(&mut chair.answer, Asked::Was));
                }
                Asked::Is(_) => next = next.min(chair.asked_at + OFFER),
                _ => {}
            }
        }
        drop(room);
        // Not under the lock: what they were granted is given back as they are dropped.
        drop(left);
        if next < Micros::MAX {
            self.set_alarm(runtime, next, |room| &mut room.unseen, Self::give_up_answers);
        }
    }
}

impl Chair {
    /// What it asks for, if it left that here: the answer comes here.
    pub(super) fn ask(&mut self, now: Micros) -> Option<Asks> {
        let standing = self.standing.take()?;
        let (caller, answer) = oneshot::channel();
        (self.answer, self.asked_at) = (Asked::Is(answer), now);
        Some(Asks { standing, caller })
    }
}
