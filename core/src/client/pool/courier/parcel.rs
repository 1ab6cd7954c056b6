//! Requests on their way to the store, and the order in which they go.

#[cfg(feature = "crowds")]
use std::collections::VecDeque;

use futures_channel::oneshot;

use super::{Delivered, unavailable, undone, unsure};
use crate::Micros;
use crate::error::Result;
use crate::slots::Request;

/// A request and the caller that waits for its reply.
#[derive(Debug)]
pub(super) struct Parcel {
    pub request: Request,
    /// When the caller is told of a failure instead of another attempt.
    pub patience: Micros,
    /// Until when it is sent even if nobody waits for the reply; 0 if it is not.
    pub stands: Micros,
    pub caller: oneshot::Sender<Result<Delivered>>,
}

impl Parcel {
    /// Whether it is to be sent, if for nobody who waits.
    pub fn is_wanted(&self, now: Micros) -> bool {
        self.stands > now || !self.caller.is_canceled()
    }

    /// Whether it gives up what its process has of the store, of which there is no more than it was granted. Without `crowds` few wait.
    pub fn gives_back(&self) -> bool {
        cfg!(feature = "crowds") && matches!(self.request, Request::Release { .. } | Request::Withdraw { .. })
    }

    /// Whether it travels alone, as its answer may be as long as the pool is large, and what travels with others is kept. Without
    /// `crowds` pools are small.
    pub fn goes_alone(&self) -> bool {
        cfg!(feature = "crowds") && matches!(self.request, Request::List)
    }

    /// Tells the caller of a failure, of which nothing was performed if it is `clean`.
    fn tell(&mut self, cause: &str, clean: bool) {
        let (gone, _) = oneshot::channel();
        let caller = std::mem::replace(&mut self.caller, gone);
        // What a claim is granted later is given back, and what only looks does nothing. What is not sent on stays undone.
        let is_free = matches!(self.request, Request::Claim(_)) || self.request.only_looks();
        let is_undone = clean && self.stands == 0;
        let error = match (is_free, is_undone) {
            (true, _) => unavailable,
            (false, true) => undone,
            (false, false) => unsure,
        };
        let _ = caller.send(Err(error(cause)));
    }
}

/// What the parcels ask for.
pub(super) fn requests(parcels: &[Parcel]) -> Vec<Request> {
    parcels.iter().map(|parcel| parcel.request.clone()).collect()
}

/// Mixes what is given back with the claims that it is for, among the first so many: else the one half would give back what the other
/// waits for. A claim that cannot wait overtakes nothing: it may be for what its caller gives back before it. Nor does one overtake all
/// else. Those behind stay where they are: after an outage there may be very many.
#[cfg(feature = "crowds")]
pub(super) fn pair_up(queue: &mut VecDeque<Parcel>, first: usize) {
    let is_claim = |parcel: &Parcel| matches!(parcel.request, Request::Claim { .. });
    let is_paired = |parcel: &Parcel| match parcel.request {
        Request::Claim { .. } => parcel.patience > 0,
        _ => matches!(parcel.request, Request::Release { .. }),
    };
    let first = first.min(queue.len());
    if !queue.range(..first).all(is_paired) {
        return;
    }
    let (claims, releases): (Vec<_>, Vec<_>) = queue.drain(..first).partition(is_claim);
    let mut releases = releases.into_iter();
    let mut mixed = Vec::with_capacity(first);
    for claim in claims {
        mixed.extend(releases.next());
        mixed.push(claim);
    }
    mixed.extend(releases);
    mixed.into_iter().rev().for_each(|parcel| queue.push_front(parcel));
}

/// What is given back goes to those who claim in the same envelope. All else keeps its order: a renewal that
/// was asked for before the release of its lease is still performed before it.
pub(super) fn release_first(batch: Vec<Parcel>) -> Vec<Parcel> {
    let mut ordered = Vec::with_capacity(batch.len());
    let mut claims = Vec::new();
    for parcel in batch {
        match parcel.request {
            Request::Claim { .. } => claims.push(parcel),
            Request::Release { .. } => ordered.push(parcel),
            _ => {
                ordered.append(&mut claims);
                ordered.push(parcel);
            }
        }
    }
    ordered.append(&mut claims);
    ordered
}

/// Tells those callers of the failure who have no patience left, and whether nothing was performed. Their parcels stay: the
/// envelope must be sent again as it was.
pub(super) fn tell_impatient<'a>(
    parcels: impl Iterator<Item = &'a mut Parcel>,
    cause: &str,
    clean: bool,
    now: Micros,
) {
    parcels.filter(|parcel| parcel.patience <= now).for_each(|parcel| parcel.tell(cause, clean));
}

/// Tells all callers of the failure and gives their requests up. If only that took `too_long`, releases go on until they have no
/// sense any more: one that was performed already changes nothing, and without them the slots would be nobody's for as long.
pub(super) fn abandon(parcels: &mut [Parcel], cause: &str, clean: bool, too_long: bool) {
    for parcel in parcels {
        if !too_long || !matches!(parcel.request, Request::Release { .. }) {
            parcel.stands = 0;
        }
        parcel.tell(cause, clean);
    }
}
