//! Requests on their way to the store of a scope, and the order in which they go.

use std::collections::VecDeque;

use futures_channel::oneshot;

use crate::Micros;
use crate::client::pool::courier::{QUEUE, full, unavailable, undone, unsure};
use crate::error::{Error, Result};
use crate::limits::{Act, Reply, Request};

/// A request and the caller that waits for its reply.
pub(super) struct Parcel {
    pub request: Request,
    /// When the caller is told of a failure instead of another attempt.
    pub patience: Micros,
    /// Until when it is sent even if nobody waits for the reply; 0 if it is not.
    pub stands: Micros,
    pub caller: oneshot::Sender<Result<Reply>>,
}

/// Those that wait.
#[derive(Default)]
pub(super) struct Parcels {
    /// What prolongs or ends a reservation, which goes first: what is in flight does not land, and what is given back is not kept, behind
    /// those who only want something.
    settling: VecDeque<Parcel>,
    others: VecDeque<Parcel>,
}

impl Parcels {
    pub fn len(&self) -> usize {
        self.settling.len() + self.others.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Has it wait.
    ///
    /// # Errors
    /// `busy` if too many do; but of what concerns a reservation there is no more than there are reservations.
    pub fn push(&mut self, parcel: Parcel) -> Result<()> {
        if settles(&parcel.request.act) {
            self.settling.push_back(parcel);
        } else if parcel.stands == 0 && self.others.len() >= QUEUE {
            return Err(full());
        } else {
            self.others.push_back(parcel);
        }
        Ok(())
    }

    /// The first `most` of those that are wanted. However many concern reservations, others have their share.
    pub fn take(&mut self, most: usize, now: Micros) -> Vec<Parcel> {
        let mut batch = Vec::new();
        let share = self.others.len().min(most / 2);
        for (parcels, most) in [(&mut self.settling, most - share), (&mut self.others, most)] {
            while batch.len() < most
                && let Some(parcel) = parcels.pop_front()
            {
                if parcel.is_wanted(now) {
                    batch.push(parcel);
                }
            }
        }
        batch
    }

    /// Tells those who have no patience left what the store said; those that nobody wants any more wait no longer.
    pub fn give_up(&mut self, cause: &str, now: Micros) {
        for parcels in [&mut self.settling, &mut self.others] {
            parcels.iter_mut().filter(|parcel| parcel.patience <= now).for_each(|it| it.give_up(cause, true));
            // As in the courier of a pool, with `crowds`.
            parcels.retain(|parcel| parcel.is_wanted(now));
        }
    }
}

impl Parcel {
    pub fn is_wanted(&self, now: Micros) -> bool {
        self.stands > now || !self.caller.is_canceled()
    }

    /// Tells the caller of a failure, of which nothing was performed if it is `clean`; the request stays.
    pub fn give_up(&mut self, cause: &str, clean: bool) {
        let (gone, _) = oneshot::channel();
        let caller = std::mem::replace(&mut self.caller, gone);
        // What is not sent on stays undone.
        let error = if clean && self.stands == 0 { undone } else { failure(&self.request.act) };
        let _ = caller.send(Err(error(cause)));
    }
}

/// Whether this ends a reservation.
pub(super) fn ends(act: &Act) -> bool {
    matches!(act, Act::Commit { .. } | Act::Keep { .. } | Act::GiveBack { .. })
}

/// Whether this is of a reservation that is there.
fn settles(act: &Act) -> bool {
    ends(act) || matches!(act, Act::Renew { .. })
}

/// The error of a store that does not answer: what it reserves later is given back, and a look changes nothing.
pub(super) fn failure(act: &Act) -> fn(&str) -> Error {
    if leaves_nothing(act) { unavailable } else { unsure }
}

/// Whether it leaves nothing behind whose answer never comes.
pub(super) fn leaves_nothing(act: &Act) -> bool {
    matches!(act, Act::Reserve { .. } | Act::Peek)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parcel(act: Act) -> (Parcel, oneshot::Receiver<Result<Reply>>) {
        let (caller, reply) = oneshot::channel();
        let request = Request { act, charges: Vec::new() };
        (Parcel { request, patience: 1, stands: 0, caller }, reply)
    }

    // Renewals stood behind up to 100,000 takes: what was in flight landed while its holder renewed it.
    #[test]
    fn what_concerns_reservations_goes_first_and_leaves_others_their_share() {
        let (mut parcels, mut waiting) = (Parcels::default(), Vec::new());
        let mut add = |parcels: &mut Parcels, act: Act| {
            let (parcel, reply) = parcel(act);
            parcels.push(parcel).unwrap();
            waiting.push(reply);
        };
        let renew = |id| Act::Renew { id, ttl: 5 };
        (0..3).for_each(|_| add(&mut parcels, Act::Take));
        add(&mut parcels, renew(1));
        add(&mut parcels, Act::Take);
        add(&mut parcels, Act::Commit { id: 1 });
        (2..5).for_each(|id| add(&mut parcels, renew(id)));
        // A caller that left.
        drop(parcels.push(parcel(renew(9)).0));
        let mut next = || parcels.take(4, 0).into_iter().map(|parcel| parcel.request.act).collect::<Vec<_>>();
        assert_eq!(next(), [renew(1), Act::Commit { id: 1 }, Act::Take, Act::Take]);
        assert_eq!(next(), [renew(2), renew(3), Act::Take, Act::Take]);
        assert_eq!(next(), [renew(4)]);
        assert_eq!(next(), []);
    }
}
