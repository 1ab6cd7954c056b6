//! What the face has by number: handles, pools, leases and locks, on one shelf.

use std::rc::Rc;

use leasehold::client::{Leasehold, Lock, Locked};
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

/// One of them.
#[derive(Clone)]
pub enum Thing {
    Leasehold(Rc<HostLeasehold>),
    Pool(HostPool),
    Lease(Rc<HostLease>),
    Lock(Rc<HostLock>),
    Locked(Rc<HostLocked>),
}

/// What lasts for a time.
pub enum Held {
    Lease(Rc<HostLease>),
    Lock(Rc<HostLocked>),
}

thread_local! {
    static THINGS: Shelf<Thing> = const { Shelf::new() };
}

/// Gives a thing a number.
pub fn put(thing: Thing) -> u32 {
    THINGS.with(|things| things.put(thing))
}

/// Takes a thing and frees its number; nothing if it is not there.
pub fn take(number: u32) -> Option<Thing> {
    THINGS.with(|things| things.take(number))
}

fn get(number: u32) -> Option<Thing> {
    THINGS.with(|things| things.get(number))
}

pub fn leasehold(number: u32) -> Result<Rc<HostLeasehold>, Failure> {
    if let Some(Thing::Leasehold(leasehold)) = get(number) { Ok(leasehold) } else { Err(gone()) }
}

pub fn pool(number: u32) -> Result<HostPool, Failure> {
    if let Some(Thing::Pool(pool)) = get(number) { Ok(pool) } else { Err(gone()) }
}

pub fn lease(number: u32) -> Result<Rc<HostLease>, Failure> {
    if let Some(Thing::Lease(lease)) = get(number) { Ok(lease) } else { Err(gone()) }
}

pub fn lock(number: u32) -> Result<Rc<HostLock>, Failure> {
    if let Some(Thing::Lock(lock)) = get(number) { Ok(lock) } else { Err(gone()) }
}

pub fn locked(number: u32) -> Result<Rc<HostLocked>, Failure> {
    if let Some(Thing::Locked(locked)) = get(number) { Ok(locked) } else { Err(gone()) }
}

pub fn held(number: u32) -> Result<Held, Failure> {
    match get(number) {
        Some(Thing::Lease(lease)) => Ok(Held::Lease(lease)),
        Some(Thing::Locked(lock)) => Ok(Held::Lock(lock)),
        _ => Err(gone()),
    }
}

/// Frees what the face has let go. What is still held is given back.
#[wasm_bindgen]
pub fn free(number: u32) {
    entered();
    drop(take(number));
}

fn gone() -> Failure {
    Failure::new(Code::Lost, "it was given back or closed already; open or acquire anew")
}
