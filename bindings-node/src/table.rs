//! What JavaScript holds by its number.
//!
//! A number costs a tenth of an instance of a class. Each thread, which is each environment, has a table of
//! its own; what is left in it when the environment ends is dropped, which gives leases back.

use std::cell::RefCell;
use std::sync::Arc;

use leasehold::client::TokensInMemory;
use leasehold::error::Result as CoreResult;
use leasehold::{Code, Error, NativeLeasehold, NativeQuorum};
pub use leasehold::{
    NativeLease, NativeLimit, NativeLock, NativeLocked, NativePool, NativeReservation, NativeSelection,
    NativeTokens,
};
use napi::Result;
use napi::bindgen_prelude::{FromNapiValue, ToNapiValue, sys};
use napi_derive::napi;

use crate::answer::misused;
use crate::hit;
use crate::kept::Kept;

/// Things by number, from 1 on.
#[derive(Default)]
struct Table {
    things: Vec<Option<Thing>>,
    free: Vec<u32>,
}

impl Table {
    fn insert(&mut self, thing: Thing) -> u32 {
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

    fn get(&self, number: u32) -> Option<&Thing> {
        self.things.get((number as usize).wrapping_sub(1))?.as_ref()
    }

    fn remove(&mut self, number: u32) -> Option<Thing> {
        let thing = self.things.get_mut((number as usize).wrapping_sub(1))?.take()?;
        self.free.push(number);
        Some(thing)
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        hit("table");
    }
}

thread_local! {
    static TABLE: RefCell<Kept<Table>> = RefCell::new(Kept::new(Table::default()));
}

/// What has a number.
pub trait Tabled: Sized + 'static {
    fn thing(this: Arc<Self>) -> Thing;
    fn of(thing: &Thing) -> Option<&Arc<Self>>;
    /// The error for a number that stands for nothing.
    fn missing() -> Error;
}

macro_rules! things {
    ($($kind:ident($type:ty) or $missing:expr;)*) => {
        /// One of them.
        #[derive(Clone)]
        pub enum Thing {
            $($kind(Arc<$type>),)*
        }

        $(impl Tabled for $type {
            fn thing(this: Arc<Self>) -> Thing {
                Thing::$kind(this)
            }

            fn of(thing: &Thing) -> Option<&Arc<Self>> {
                if let Thing::$kind(this) = thing { Some(this) } else { None }
            }

            fn missing() -> Error {
                $missing
            }
        })*
    };
}

things! {
    Leasehold(NativeLeasehold) or misused("no such handle");
    Quorum(NativeQuorum) or misused("no such quorum");
    Pool(NativePool) or misused("no such pool");
    Lease(NativeLease) or gone("the lease was given back already; acquire anew");
    Lock(NativeLock) or misused("no such lock");
    Locked(NativeLocked) or gone("the lock was given back already; acquire anew");
    Source(TokensInMemory) or misused("no such source");
    Tokens(NativeTokens) or misused("no such wallet");
    Selection(NativeSelection) or gone("the selection was given back or spent already; select anew");
    Limit(NativeLimit) or misused("no such limit");
    Reservation(NativeReservation) or gone("the reservation was ended already, by an earlier call; end it by its id to hear what became of it, or reserve anew");
}

fn gone(message: &str) -> Error {
    Error::new(Code::Lost, message)
}

/// The garbage collector has taken a thing of the face's. What is still held may still be relied on by whoever kept only a
/// part of it, and lasts to its deadline.
#[napi(catch_unwind)]
pub fn free(number: u32) {
    hit("free");
    match remove(number) {
        Some(Thing::Lease(lease)) => lease.lapse(),
        Some(Thing::Locked(locked)) => locked.lapse(),
        Some(Thing::Selection(selection)) => selection.lapse(),
        Some(Thing::Reservation(reservation)) => {
            Arc::into_inner(reservation).map_or((), NativeReservation::lapse)
        }
        _ => {}
    }
}

/// The thing of this number.
pub fn get(number: u32) -> Option<Thing> {
    TABLE.with_borrow(|table| table.get(number).cloned())
}

/// What `ask` says of the thing of this number, which is only lent: `ask` must run nobody's code.
pub fn lent<T: Tabled, A>(number: u32, ask: impl FnOnce(&T) -> A) -> CoreResult<A> {
    TABLE
        .with_borrow(|table| table.get(number).and_then(T::of).map(|thing| ask(thing)).ok_or_else(T::missing))
}

/// An argument: a thing by its number.
pub struct Numbered<T> {
    number: u32,
    thing: Option<Arc<T>>,
}

impl<T: Tabled> Numbered<T> {
    /// The thing of this number.
    pub fn new(number: u32) -> Self {
        let thing = TABLE.with_borrow(|table| table.get(number).and_then(T::of).cloned());
        Numbered { number, thing }
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
        if self.thing.is_some() {
            forget(self.number);
        }
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
    TABLE.with_borrow_mut(|table| table.insert(T::thing(thing)))
}

fn forget(number: u32) {
    drop(remove(number));
}

/// Takes it out, to be dropped when the table is free again: a drop runs code.
fn remove(number: u32) -> Option<Thing> {
    TABLE.with_borrow_mut(|table| table.remove(number))
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
