//! What the face has by number: handles, pools, leases, locks, quorums, limits and tokens, on one shelf.

use std::rc::Rc;

use leasehold::client::{Leasehold, Lock, Locked};
#[cfg(feature = "full")]
use leasehold::client::{Limit, Quorum, Reservation, Selection, Tokens, TokensInMemory};
use leasehold::store::EitherStore;
use leasehold::{Code, Lease, Pool};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::entered;
use crate::failure::Failure;
use crate::runtime::HostRuntime;
use crate::shelf::Shelf;
use crate::transport::HostTransport;

pub type HostStore = EitherStore<HostTransport>;
pub type HostLeasehold = Leasehold<HostStore, HostRuntime>;
pub type HostPool = Pool<HostStore, HostRuntime>;
pub type HostLease = Lease<HostStore, HostRuntime>;
pub type HostLock = Lock<HostStore, HostRuntime>;
pub type HostLocked = Locked<HostStore, HostRuntime>;
#[cfg(feature = "full")]
pub type HostQuorum = Quorum<HostStore, HostRuntime>;
#[cfg(feature = "full")]
pub type HostLimit = Limit<HostRuntime>;
#[cfg(feature = "full")]
pub type HostReservation = Reservation<HostRuntime>;
#[cfg(feature = "full")]
pub type HostTokens = Tokens<HostStore, HostRuntime>;
#[cfg(feature = "full")]
pub type HostSelection = Selection<HostStore, HostRuntime>;

/// One of them.
#[derive(Clone)]
pub enum Thing {
    Leasehold(HostLeasehold),
    Pool(HostPool),
    Lease(Rc<HostLease>),
    Lock(HostLock),
    Locked(Rc<HostLocked>),
    #[cfg(feature = "full")]
    Quorum(HostQuorum),
    #[cfg(feature = "full")]
    Limit(HostLimit),
    #[cfg(feature = "full")]
    Reservation(Rc<HostReservation>),
    #[cfg(feature = "full")]
    Tokens(HostTokens),
    #[cfg(feature = "full")]
    Selection(Rc<HostSelection>),
    #[cfg(feature = "full")]
    Source(TokensInMemory),
}

/// What lasts for a time.
pub enum Held {
    Lease(Rc<HostLease>),
    Lock(Rc<HostLocked>),
    #[cfg(feature = "full")]
    Selection(Rc<HostSelection>),
}

thread_local! {
    static THINGS: Shelf<Thing> = const { Shelf::new() };
}

/// Gives a thing a number.
pub fn put(thing: Thing) -> u32 {
    THINGS.with(|things| things.put(thing))
}

/// How many there are.
#[cfg(feature = "trial")]
pub fn count() -> u32 {
    THINGS.with(Shelf::len)
}

/// Takes a thing and frees its number; nothing if it is not there.
pub fn take(number: u32) -> Option<Thing> {
    THINGS.with(|things| things.take(number))
}

fn get(number: u32) -> Option<Thing> {
    THINGS.with(|things| things.get(number))
}

macro_rules! things {
    ($($(#[$when:meta])? $name:ident: $kind:ident($thing:ty);)*) => {$(
        $(#[$when])?
        pub fn $name(number: u32) -> Result<$thing, Failure> {
            if let Some(Thing::$kind(thing)) = get(number) { Ok(thing) } else { Err(gone()) }
        }
    )*};
}

things! {
    leasehold: Leasehold(HostLeasehold);
    pool: Pool(HostPool);
    lease: Lease(Rc<HostLease>);
    lock: Lock(HostLock);
    locked: Locked(Rc<HostLocked>);
    #[cfg(feature = "full")]
    quorum: Quorum(HostQuorum);
    #[cfg(feature = "full")]
    limit: Limit(HostLimit);
    #[cfg(feature = "full")]
    tokens: Tokens(HostTokens);
    #[cfg(feature = "full")]
    selection: Selection(Rc<HostSelection>);
    #[cfg(feature = "full")]
    source: Source(TokensInMemory);
}

pub fn held(number: u32) -> Result<Held, Failure> {
    match get(number) {
        Some(Thing::Lease(lease)) => Ok(Held::Lease(lease)),
        Some(Thing::Locked(lock)) => Ok(Held::Lock(lock)),
        #[cfg(feature = "full")]
        Some(Thing::Selection(selection)) => Ok(Held::Selection(selection)),
        _ => Err(gone()),
    }
}

/// The reservation, if it is one.
#[cfg(feature = "full")]
pub fn reserved(number: u32) -> Option<Rc<HostReservation>> {
    if let Some(Thing::Reservation(reservation)) = get(number) { Some(reservation) } else { None }
}

/// The reservation, which is to be let go soon: who ends it takes it.
#[cfg(feature = "full")]
pub fn lent_reservation(number: u32) -> Result<Rc<HostReservation>, Failure> {
    reserved(number).ok_or_else(gone)
}

/// The reservation, whose number is free from then on.
#[cfg(feature = "full")]
pub fn reservation(number: u32) -> Result<HostReservation, Failure> {
    let reservation = lent_reservation(number)?;
    // The shelf's own is the only other one.
    take(number);
    Rc::into_inner(reservation).ok_or_else(gone)
}

/// The garbage collector has taken what the face had. What is still held may still be relied on by whoever kept only a part of
/// it, and lasts to its deadline.
#[wasm_bindgen]
pub fn free(number: u32) {
    entered();
    match take(number) {
        Some(Thing::Lease(lease)) => lease.lapse(),
        Some(Thing::Locked(locked)) => locked.lapse(),
        #[cfg(feature = "full")]
        Some(Thing::Selection(selection)) => selection.lapse(),
        #[cfg(feature = "full")]
        Some(Thing::Reservation(reservation)) => {
            Rc::into_inner(reservation).map_or((), HostReservation::lapse)
        }
        _ => {}
    }
}

fn gone() -> Failure {
    Failure::new(Code::Lost, "it was given back or closed already; open or acquire anew")
}
