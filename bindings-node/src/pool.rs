//! Pools: acquiring and administration.

use std::future::Future;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use leasehold::client::AcquireOptions;
use leasehold::error::Result as CoreResult;
use leasehold::value::Value;
use napi::bindgen_prelude::{Either, PromiseRaw, ToNapiValue, sys, within_runtime_if_available};
use napi::{Env, Result};
use napi_derive::napi;

use crate::answer::{Answer, misused};
use crate::cancel::{Cancel, guarded};
use crate::hit;
use crate::leasehold::UNIT;
use crate::registers;
use crate::table::{NativeLease, NativePool, Numbered, number};
use crate::value::{Arg, Out};

/// Leases that were granted, each as a map of its number and what the face shows of it.
pub struct Granted(Vec<NativeLease>);

#[allow(unsafe_code, reason = "napi declares this conversion unsafe; only its own functions are called here")]
impl ToNapiValue for Granted {
    unsafe fn to_napi_value(env: sys::napi_env, granted: Self) -> Result<sys::napi_value> {
        let leases = granted.0.into_iter().map(|lease| {
            let Value::Map(mut shown) = crate::lease::shown(&lease) else { return Value::Null };
            shown.push(("slot".into(), lease.slot().into()));
            shown.push(("fence".into(), lease.fence().into()));
            shown.push(("number".into(), Value::Number(number(Arc::new(lease)).into())));
            Value::Map(shown)
        });
        // SAFETY: the value is made in the environment of this call.
        unsafe { Out::to_napi_value(env, Out(Value::List(leases.collect()))) }
    }
}

/// Leases one slot, waiting for it. In memory, and with a slot that is free, that ends at once: the answer is
/// then that of `pool_take`, and no thread was woken.
#[napi(catch_unwind)]
pub fn pool_acquire<'env>(
    env: &'env Env,
    pool: Numbered<NativePool>,
    options: Arg,
    cancel: Option<&Cancel>,
) -> Result<Either<Answer<Taken>, PromiseRaw<'env, Answer<Granted>>>> {
    hit("pool_acquire");
    let work = async move {
        let options = AcquireOptions::read(&options.options()?, UNIT)?;
        pool.get()?.acquire(options).await
    };
    let mut work = Box::pin(guarded(cancel, work));
    let mut context = Context::from_waker(Waker::noop());
    match within_runtime_if_available(|| work.as_mut().poll(&mut context)) {
        Poll::Ready(lease) => Ok(Either::A(Answer(lease.map(|lease| Taken(Some(shared(lease))))))),
        Poll::Pending => {
            let later = async move { Ok(Answer(work.await.map(|lease| Granted(vec![lease])))) };
            Ok(Either::B(env.spawn_future(later)?))
        }
    }
}

/// Leases several slots at once, waiting for them.
#[napi(catch_unwind)]
pub async fn pool_acquire_many(
    pool: Numbered<NativePool>,
    options: Arg,
    cancel: Option<&Cancel>,
) -> Answer<Granted> {
    hit("pool_acquire_many");
    let work = async {
        let options = AcquireOptions::read(&options.options()?, UNIT)?;
        Ok(Granted(pool.get()?.acquire_many(options).await?))
    };
    Answer(guarded(cancel, work).await)
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
        match verb.as_str() {
            "remove" => pool.remove(&slot).await,
            "enable" => pool.enable(&slot).await,
            "disable" => pool.disable(&slot).await,
            "drain" => pool.drain(&slot).await,
            "breakLease" => pool.break_lease(&slot).await,
            _ => Err(misused("no such change of a slot")),
        }
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
        let slots = texts(&slots.named("slots")?).map_err(|error| error.within("slots"))?;
        Ok(Out(pool.get()?.inspect(&slots).await?.to_value(UNIT)))
    };
    Answer(inspect.await)
}

fn texts(value: &Value) -> CoreResult<Vec<String>> {
    if *value == Value::Null {
        return Ok(Vec::new());
    }
    let text = |(value, at): (&Value, usize)| {
        value.as_text().map(str::to_owned).map_err(|error| error.within(&format!("[{at}]")))
    };
    value.as_list()?.iter().zip(0..).map(text).collect()
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
    Answer(pool.get().map(|pool| Out(pool.statistics().to_value())))
}

/// The garbage collector has taken the pool.
#[napi(catch_unwind)]
pub fn pool_forget(pool: Numbered<NativePool>) {
    hit("pool_forget");
    pool.forget();
}
