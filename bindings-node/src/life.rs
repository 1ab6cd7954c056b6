//! How long leases, locks and selections last, and what their holders are told.

use leasehold::runtime::BoxedFuture;
use leasehold::{Code, Error};
use napi::{Env, Result};
use napi_derive::napi;

use crate::calls::{Soon, told as begin};
use crate::granted::Granted;
use crate::hit;
use crate::leasehold::UNIT;
use crate::table::{Thing, get};

/// How long it can be relied on, in milliseconds: 0 if it is not there any more.
#[napi(catch_unwind)]
pub fn remaining(thing: u32) -> f64 {
    hit("remaining");
    match get(thing) {
        Some(Thing::Lease(lease)) => UNIT.count(lease.remaining_micros()),
        Some(Thing::Locked(locked)) => UNIT.count(locked.remaining_micros()),
        Some(Thing::Selection(selection)) => UNIT.count(selection.remaining_micros()),
        Some(Thing::Reservation(reservation)) => UNIT.count(reservation.remaining_micros()),
        _ => 0.0,
    }
}

/// Fails when it is claimed, or else when it is lost, and ends with nothing once it was given back.
#[napi(catch_unwind)]
pub fn told(env: &Env, thing: u32, claimed: bool) -> Result<Soon<Option<Granted>>> {
    hit("told");
    let word: BoxedFuture<'static, Option<Error>> = match (get(thing), claimed) {
        (Some(Thing::Lease(lease)), false) => Box::pin(lease.lost()),
        (Some(Thing::Lease(lease)), true) => Box::pin(lease.claimed()),
        (Some(Thing::Locked(locked)), false) => Box::pin(locked.lost()),
        (Some(Thing::Locked(locked)), true) => Box::pin(locked.claimed()),
        // Nobody claims what others have selected.
        (Some(Thing::Selection(selection)), _) => selection.lost(),
        _ => Box::pin(std::future::ready(Some(Error::new(
            Code::Lost,
            "it was given back already; acquire anew",
        )))),
    };
    begin(env, word)
}
