//! Named locks: acquiring, and what is held.

use std::future::Future;

use leasehold::MILLISECOND;
use leasehold::error::Result as CoreResult;
use napi::{Env, Result};
use napi_derive::napi;

use crate::calls::{Soon, begin, told};
use crate::cancel::{Cancel, guarded};
use crate::hit;
use crate::leasehold::UNIT;
use crate::pool::Granted;
use crate::table::{NativeLock, NativeLocked, Numbered};
use crate::value::Arg;

/// Locks its names, waiting for them.
#[napi(catch_unwind)]
pub fn lock_acquire(
    env: &Env,
    lock: Numbered<NativeLock>,
    options: Arg,
    cancel: Option<&Cancel>,
) -> Result<Soon<Option<Granted>>> {
    hit("lock_acquire");
    let call = Box::pin(async move {
        let locked = lock.get()?.acquire_by(&options.options()?, UNIT).await?;
        Ok(Some(Granted::Lock(locked)))
    });
    begin(env, guarded(cancel, call))
}

/// The same for a body that the face runs; nothing if it is to run without the lock.
#[napi(catch_unwind)]
pub fn lock_enter(
    env: &Env,
    lock: Numbered<NativeLock>,
    options: Arg,
    cancel: Option<&Cancel>,
) -> Result<Soon<Option<Granted>>> {
    hit("lock_enter");
    let call = Box::pin(async move {
        let locked = lock.get()?.enter(&options.options()?, UNIT).await?;
        Ok(locked.map(Granted::Lock))
    });
    begin(env, guarded(cancel, call))
}

/// The garbage collector has taken the lock.
#[napi(catch_unwind)]
pub fn lock_forget(lock: Numbered<NativeLock>) {
    hit("lock_forget");
    lock.forget();
}

/// How long holders took to yield of late, in milliseconds.
#[napi(catch_unwind)]
pub fn lock_handshake(lock: Numbered<NativeLock>) -> f64 {
    hit("lock_handshake");
    lock.get().map_or(0.0, |lock| lock.handshake() as f64 / MILLISECOND as f64)
}

/// How long it can still be relied on, in milliseconds.
#[napi(catch_unwind)]
pub fn locked_remaining(locked: Numbered<NativeLocked>) -> f64 {
    hit("locked_remaining");
    locked.get().map_or(0.0, |locked| locked.remaining() as f64 / MILLISECOND as f64)
}

/// Fails when it is lost, and ends with nothing once it was given back.
#[napi(catch_unwind)]
pub fn locked_lost(env: &Env, locked: Numbered<NativeLocked>) -> Result<Soon<Option<Granted>>> {
    hit("locked_lost");
    told(env, locked.get().map(NativeLocked::lost))
}

/// Fails when somebody of higher priority claims one of its names, and ends with nothing if it ends first.
#[napi(catch_unwind)]
pub fn locked_claimed(env: &Env, locked: Numbered<NativeLocked>) -> Result<Soon<Option<Granted>>> {
    hit("locked_claimed");
    told(env, locked.get().map(NativeLocked::claimed))
}

/// Gives it back. The face then has it forgotten.
#[napi(catch_unwind)]
pub fn locked_release(env: &Env, locked: Numbered<NativeLocked>) -> Result<Soon<Option<Granted>>> {
    hit("locked_release");
    end(env, async move { locked.get()?.release().await })
}

/// The same at the end of a body that the face ran.
#[napi(catch_unwind)]
pub fn locked_conclude(env: &Env, locked: Numbered<NativeLocked>) -> Result<Soon<Option<Granted>>> {
    hit("locked_conclude");
    end(env, async move { locked.get()?.conclude().await })
}

fn end(
    env: &Env,
    call: impl Future<Output = CoreResult<()>> + Send + 'static,
) -> Result<Soon<Option<Granted>>> {
    let call = Box::pin(call);
    begin(env, async move { call.await.map(|()| None) })
}

/// It is not used any more: it was given back, or the garbage collector has taken it, and then it is given back in
/// the background.
#[napi(catch_unwind)]
pub fn locked_forget(locked: Numbered<NativeLocked>) {
    hit("locked_forget");
    locked.forget();
}
