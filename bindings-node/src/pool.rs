//! Pools: acquiring and administration.

use std::sync::Arc;

use leasehold::client::{AcquireOptions, read_slots};
use leasehold::error::Result as CoreResult;
use napi::bindgen_prelude::{ToNapiValue, sys};
use napi::{Env, Result};
use napi_derive::napi;

use crate::answer::Answer;
use crate::calls::{Soon, begin};
use crate::granted::Granted;
use crate::hit;
use crate::leasehold::UNIT;
use crate::registers;
use crate::table::{NativeLease, NativePool, Numbered, number};
use crate::value::{Arg, Out};

/// Leases one slot, waiting for it.
#[napi(catch_unwind)]
pub fn acquire(env: &Env, pool: Numbered<NativePool>, options: Arg) -> Result<Soon<Option<Granted>>> {
    hit("acquire");
    // In a box: the core's future is large, and would be moved more often than it is polled.
    let call = Box::pin(async move {
        let options = AcquireOptions::read(&options.options()?, UNIT)?;
        Ok(Some(Granted::Leases(vec![pool.get()?.acquire_with(options).await?])))
    });
    begin(env, call)
}

/// Leases several slots at once, waiting for them.
#[napi(catch_unwind)]
pub fn acquire_many(env: &Env, pool: Numbered<NativePool>, options: Arg) -> Result<Soon<Option<Granted>>> {
    hit("acquire_many");
    let call = Box::pin(async move {
        let options = AcquireOptions::read(&options.options()?, UNIT)?;
        Ok(Some(Granted::Leases(pool.get()?.acquire_many_with(options).await?)))
    });
    begin(env, call)
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
pub fn take_now() -> Answer<Taken> {
    hit("take_now");
    let pool = Numbered::<NativePool>::new(registers::number());
    Answer(pool.get().and_then(|pool| taken(pool, AcquireOptions::default())))
}

/// The same by other options.
#[napi(catch_unwind)]
pub fn try_acquire(pool: Numbered<NativePool>, options: Arg) -> Answer<Taken> {
    hit("try_acquire");
    let options = options.options().and_then(|options| AcquireOptions::read(&options, UNIT));
    Answer(options.and_then(|options| taken(pool.get()?, options)))
}

fn taken(pool: &NativePool, options: AcquireOptions) -> CoreResult<Taken> {
    Ok(Taken(pool.try_acquire_with(options)?.map(shared)))
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
pub async fn add(pool: Numbered<NativePool>, slots: Arg) -> Answer<u32> {
    hit("add");
    Answer(async { pool.get()?.add_by(&slots.named("slots")?).await }.await)
}

/// Changes a slot by one of the pool's verbs; `time` is for those that take one.
#[napi(catch_unwind)]
pub async fn change(pool: Numbered<NativePool>, verb: String, slot: Arg, time: Arg) -> Answer<()> {
    hit("change");
    let change = async {
        let (pool, slot, time) = (pool.get()?, slot.text("slot")?, time.named("time")?);
        pool.change(&verb, &slot, &time, UNIT).await
    };
    Answer(change.await)
}

/// Counts the slots, and looks at those that are named.
#[napi(catch_unwind)]
pub async fn inspect(pool: Numbered<NativePool>, slots: Arg) -> Answer<Out> {
    hit("inspect");
    let inspect = async {
        let slots = read_slots(&slots.named("slots")?)?;
        Ok(Out(pool.get()?.inspect(&slots).await?.to_value(UNIT)))
    };
    Answer(inspect.await)
}

/// The ids of all slots.
#[napi(catch_unwind)]
pub async fn list(pool: Numbered<NativePool>) -> Answer<Vec<String>> {
    hit("list");
    Answer(async { pool.get()?.list().await }.await)
}

/// What this pool has done so far.
#[napi(catch_unwind)]
pub fn statistics(pool: Numbered<NativePool>) -> Answer<Out> {
    hit("statistics");
    Answer(pool.get().map(|pool| Out(pool.statistics().to_value(UNIT))))
}
