//! What JavaScript holds by its number.
//!
//! A number costs a tenth of an instance of a class. Each thread, which is each environment, has tables of
//! its own; what is left in them when the environment ends is dropped, which gives leases back.

use std::cell::RefCell;
use std::sync::Arc;

use leasehold::client::TokioRuntime;
use leasehold::client::native::{NativeLeasehold, NativeQuorum, NativeStore};
use leasehold::error::Result as CoreResult;
use leasehold::{Code, Error};
use napi::Result;
use napi::bindgen_prelude::{FromNapiValue, ToNapiValue, sys};

use crate::answer::misused;
use crate::hit;
use crate::kept::Kept;

pub type NativePool = leasehold::Pool<NativeStore, TokioRuntime>;
pub type NativeLease = leasehold::Lease<NativeStore, TokioRuntime>;
pub type NativeLock = leasehold::client::Lock<NativeStore, TokioRuntime>;
pub type NativeLocked = leasehold::client::Locked<NativeStore, TokioRuntime>;
pub type NativeLimit = leasehold::client::Limit<TokioRuntime>;
pub type NativeReservation = leasehold::client::Reservation<TokioRuntime>;

#[derive(Default)]
struct Tables {
    leaseholds: Table<NativeLeasehold>,
    quorums: Table<NativeQuorum>,
    pools: Table<NativePool>,
    leases: Table<NativeLease>,
    locks: Table<NativeLock>,
    locked: Table<NativeLocked>,
    limits: Table<NativeLimit>,
    reservations: Table<NativeReservation>,
}

impl Drop for Tables {
    fn drop(&mut self) {
        hit("tables");
    }
}

thread_local! {
    static TABLES: RefCell<Kept<Tables>> = RefCell::new(Kept::new(Tables::default()));
}

/// Things by number, from 1 on.
pub struct Table<T> {
    things: Vec<Option<Arc<T>>>,
    free: Vec<u32>,
}

impl<T> Default for Table<T> {
    fn default() -> Self {
        Table { things: Vec::new(), free: Vec::new() }
    }
}

impl<T> Table<T> {
    fn insert(&mut self, thing: Arc<T>) -> u32 {
        match self.free.pop() {
            Some(number) => {
                self.things[number as usize - 1] = Some(thing);
                number
            }
            None => {
                self.things.push(Some(thing));
                self.things.len() as u32
            }
        }
    }

    fn get(&self, number: u32) -> Option<&Arc<T>> {
        self.things.get((number as usize).wrapping_sub(1))?.as_ref()
    }

    fn remove(&mut self, number: u32) -> Option<Arc<T>> {
        let thing = self.things.get_mut((number as usize).wrapping_sub(1))?.take()?;
        self.free.push(number);
        Some(thing)
    }
}

/// What has a table.
pub trait Tabled: Sized + 'static {
    fn reach<R>(work: impl FnOnce(&mut Table<Self>) -> R) -> R;
    /// The error for a number that stands for nothing.
    fn missing() -> Error;
}

macro_rules! tabled {
    ($type:ty, $table:ident, $missing:expr) => {
        impl Tabled for $type {
            fn reach<R>(work: impl FnOnce(&mut Table<Self>) -> R) -> R {
                TABLES.with_borrow_mut(|tables| work(&mut tables.$table))
            }

            fn missing() -> Error {
                $missing
            }
        }
    };
}

tabled!(NativeLeasehold, leaseholds, misused("no such handle"));
tabled!(NativeQuorum, quorums, misused("no such quorum"));
tabled!(NativePool, pools, misused("no such pool"));
tabled!(NativeLease, leases, Error::new(Code::Lost, "the lease was given back already; acquire anew"));
tabled!(NativeLock, locks, misused("no such lock"));
tabled!(NativeLocked, locked, Error::new(Code::Lost, "the lock was given back already; acquire anew"));
tabled!(NativeLimit, limits, misused("no such limit"));
tabled!(
    NativeReservation,
    reservations,
    Error::new(Code::Lost, "the reservation has ended already; reserve anew")
);

/// An argument: a thing by its number.
pub struct Numbered<T> {
    number: u32,
    thing: Option<Arc<T>>,
}

impl<T: Tabled> Numbered<T> {
    /// The thing of this number.
    pub fn new(number: u32) -> Self {
        Numbered { number, thing: T::reach(|table| table.get(number).cloned()) }
    }

    /// The thing, unless it was forgotten.
    pub fn get(&self) -> CoreResult<&T> {
        self.thing.as_deref().ok_or_else(T::missing)
    }

    /// The thing itself, whose number is free then. Only on the thread of the table, and while no call has it.
    pub fn take(self) -> CoreResult<T> {
        self.forget();
        self.thing.and_then(Arc::into_inner).ok_or_else(T::missing)
    }

    /// Frees the number. Only on the thread of the table, that is not in an asynchronous export.
    pub fn forget(&self) {
        // Dropped after the table is free again: a drop runs code.
        let thing = T::reach(|table| table.remove(self.number));
        drop(thing);
    }
}

#[allow(unsafe_code, reason = "napi declares this conversion unsafe; it reads a number")]
impl<T: Tabled> FromNapiValue for Numbered<T> {
    unsafe fn from_napi_value(env: sys::napi_env, value: sys::napi_value) -> Result<Self> {
        // SAFETY: `napi_value` arguments stay alive for the whole callback.
        Ok(Numbered::new(unsafe { u32::from_napi_value(env, value)? }))
    }
}

/// Gives a thing its number.
pub fn number<T: Tabled>(thing: Arc<T>) -> u32 {
    T::reach(|table| table.insert(thing))
}

/// A result: a new thing, which gets its number on the thread of the table.
pub struct Fresh<T>(pub T);

#[allow(unsafe_code, reason = "napi declares this conversion unsafe; it makes a number")]
impl<T: Tabled> ToNapiValue for Fresh<T> {
    unsafe fn to_napi_value(env: sys::napi_env, fresh: Self) -> Result<sys::napi_value> {
        // SAFETY: the value is made in the environment of this call.
        unsafe { u32::to_napi_value(env, number(Arc::new(fresh.0))) }
    }
}
