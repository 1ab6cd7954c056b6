//! Pools: acquiring and administration.

use std::sync::Arc;

use leasehold::client::{AcquireOptions, read_slots};
use leasehold::error::Result as CoreResult;
use leasehold::value::Value;
use napi::bindgen_prelude::{Array, BigInt, ToNapiValue, sys};
use napi::{Env, Result};
use napi_derive::napi;

use crate::answer::Answer;
use crate::calls::{Soon, begin};
use crate::cancel::{Cancel, guarded};
use crate::hit;
use crate::leasehold::UNIT;
use crate::limit::told;
use crate::registers;
use crate::table::{NativeLease, NativeLocked, NativePool, NativeReservation, Numbered, number};
use crate::value::{Arg, Out};

/// What was granted.
pub enum Granted {
    /// Of each lease its number, slot, fence, nonce, and whether that is in doubt.
    Leases(Vec<NativeLease>),
    /// Of a lock its number and its fence.
    Lock(NativeLocked),
    /// Of a reservation its number, and what its limits said.
    Reserved(NativeReservation),
    /// What a limit tells.
    Told(Value),
}

#[allow(unsafe_code, reason = "napi declares this conversion unsafe; only its own functions are called here")]
impl ToNapiValue for Granted {
    unsafe fn to_napi_value(env: sys::napi_env, granted: Self) -> Result<sys::napi_value> {
        let wrapped = Env::from_raw(env);
        let mut words = wrapped.create_array(0)?;
        match granted {
            Granted::Leases(leases) => {
                for (lease, at) in leases.into_iter().zip((0..).step_by(WORDS)) {
                    words.set(at + 1, lease.slot())?;
                    words.set(at + 2, BigInt::from(lease.fence()))?;
                    words.set(at + 3, lease.nonce().map(BigInt::from))?;
                    words.set(at + 4, lease.in_doubt())?;
                    words.set(at, number(Arc::new(lease)))?;
                }
            }
            Granted::Lock(locked) => {
                words.set(1, BigInt::from(locked.fence()))?;
                words.set(0, number(Arc::new(locked)))?;
            }
            Granted::Reserved(reservation) => {
                words.set(1, Out(told(reservation.answer())))?;
                words.set(0, number(Arc::new(reservation)))?;
            }
            // SAFETY: as below.
            Granted::Told(told) => return unsafe { Out::to_napi_value(env, Out(told)) },
        }
        // SAFETY: the value is made in the environment of this call.
        unsafe { Array::to_napi_value(env, words) }
    }
}

/// How many say what a lease is.
const WORDS: usize = 5;

/// Leases one slot, waiting for it.
#[napi(catch_unwind)]
pub fn pool_acquire(
    env: &Env,
    pool: Numbered<NativePool>,
    options: Arg,
    cancel: Option<&Cancel>,
) -> Result<Soon<Option<Granted>>> {
    hit("pool_acquire");
    // In a box: the core's future is large, and would be moved more often than it is polled.
    let call = Box::pin(async move {
        let options = AcquireOptions::read(&options.options()?, UNIT)?;
        Ok(Some(Granted::Leases(vec![pool.get()?.acquire(options).await?])))
    });
    begin(env, guarded(cancel, call))
}

/// Leases several slots at once, waiting for them.
#[napi(catch_unwind)]
pub fn pool_acquire_many(
    env: &Env,
    pool: Numbered<NativePool>,
    options: Arg,
    cancel: Option<&Cancel>,
) -> Result<Soon<Option<Granted>>> {
    hit("pool_acquire_many");
    let call = Box::pin(async move {
        let options = AcquireOptions::read(&options.options()?, UNIT)?;
        Ok(Some(Granted::Leases(pool.get()?.acquire_many(options).await?)))
    });
    begin(env, guarded(cancel, call))
}

/// The slot of a lease that was granted at once, or nothing.
pub struct Taken(Option<Arc<NativeLease>>);

#[allow(unsafe_code, reason = "napi declares this conversion unsafe; it makes a text")]
impl ToNapiValue for Taken {
    unsafe fn to_napi_value(env: sys::napi_env, taken: Self) -> Result<sys::napi_value> {
        // SAFETY: the value is made in the environment of this call.
        unsafe { Option::to_napi_value(env, taken.0.as_deref().map(NativeLease::slot)) }
    }
}

/// Leases a slot of the pool in the registers at once, or not at all, by the pool's own options. The rest of
/// the lease is in the registers then.
#[napi(catch_unwind)]
pub fn pool_take() -> Answer<Taken> {
    hit("pool_take");
    let pool = Numbered::<NativePool>::new(registers::number());
    Answer(pool.get().and_then(|pool| take(pool, AcquireOptions::default())))
}

/// The same by other options.
#[napi(catch_unwind)]
pub fn pool_try_acquire(pool: Numbered<NativePool>, options: Arg) -> Answer<Taken> {
    hit("pool_try_acquire");
    let options = options.options().and_then(|options| AcquireOptions::read(&options, UNIT));
    Answer(options.and_then(|options| take(pool.get()?, options)))
}

fn take(pool: &NativePool, options: AcquireOptions) -> CoreResult<Taken> {
    Ok(Taken(pool.try_acquire(options)?.map(shared)))
}

/// Numbers the lease, and writes what it is into the registers.
fn shared(lease: NativeLease) -> Arc<NativeLease> {
    let lease = Arc::new(lease);
    let nonce = lease.nonce();
    let flags = u64::from(nonce.is_some()) | u64::from(lease.in_doubt()) << 1;
    registers::write([number(lease.clone()).into(), lease.fence(), nonce.unwrap_or(0), flags]);
    lease
}

/// Adds slots.
#[napi(catch_unwind)]
pub async fn pool_add(pool: Numbered<NativePool>, slots: Arg) -> Answer<u32> {
    hit("pool_add");
    Answer(async { pool.get()?.add(&slots.named("slots")?).await }.await)
}

/// Changes a slot by one of the verbs that need nothing else.
#[napi(catch_unwind)]
pub async fn pool_change(pool: Numbered<NativePool>, verb: String, slot: Arg) -> Answer<()> {
    hit("pool_change");
    let change = async {
        let (pool, slot) = (pool.get()?, slot.text("slot")?);
        pool.change(&verb, &slot, &Value::Null, UNIT).await
    };
    Answer(change.await)
}

/// Hands a slot out no more for some time.
#[napi(catch_unwind)]
pub async fn pool_quarantine(pool: Numbered<NativePool>, slot: Arg, time: Arg) -> Answer<()> {
    hit("pool_quarantine");
    let change = async {
        let (slot, time) = (slot.text("slot")?, time.named("time")?);
        pool.get()?.quarantine(&slot, &time, UNIT).await
    };
    Answer(change.await)
}

/// Counts the slots, and looks at those that are named.
#[napi(catch_unwind)]
pub async fn pool_inspect(pool: Numbered<NativePool>, slots: Arg) -> Answer<Out> {
    hit("pool_inspect");
    let inspect = async {
        let slots = read_slots(&slots.named("slots")?)?;
        Ok(Out(pool.get()?.inspect(&slots).await?.to_value(UNIT)))
    };
    Answer(inspect.await)
}

/// The ids of all slots.
#[napi(catch_unwind)]
pub async fn pool_list(pool: Numbered<NativePool>) -> Answer<Vec<String>> {
    hit("pool_list");
    Answer(async { pool.get()?.list().await }.await)
}

/// What this pool has done so far.
#[napi(catch_unwind)]
pub fn pool_statistics(pool: Numbered<NativePool>) -> Answer<Out> {
    hit("pool_statistics");
    Answer(pool.get().map(|pool| Out(pool.statistics().to_value(UNIT))))
}

/// The garbage collector has taken the pool.
#[napi(catch_unwind)]
pub fn pool_forget(pool: Numbered<NativePool>) {
    hit("pool_forget");
    pool.forget();
}
