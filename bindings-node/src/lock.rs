//! Named locks: acquiring, and what is held.

use napi::{Env, Result};
use napi_derive::napi;

use crate::calls::{Soon, begin};
use crate::granted::Granted;
use crate::hit;
use crate::leasehold::UNIT;
use crate::table::{NativeLock, NativeLocked, Numbered};
use crate::value::Arg;

/// Locks its names, waiting; for a body that the face runs, perhaps not at all.
#[napi(catch_unwind)]
pub fn acquire_lock(
    env: &Env,
    lock: Numbered<NativeLock>,
    options: Arg,
    for_body: bool,
) -> Result<Soon<Option<Granted>>> {
    hit("acquire_lock");
    let call = Box::pin(async move {
        let (lock, options) = (lock.get()?, options.options()?);
        let locked = match for_body {
            true => lock.enter(&options, UNIT).await?,
            false => Some(lock.acquire_by(&options, UNIT).await?),
        };
        Ok(locked.map(Granted::Lock))
    });
    begin(env, call)
}

/// How long holders took to yield of late, in milliseconds.
#[napi(catch_unwind)]
pub fn handshake(lock: Numbered<NativeLock>) -> f64 {
    hit("handshake");
    lock.get().map_or(0.0, |lock| UNIT.count(lock.handshake()))
}

/// Gives it back. The number is free from then on.
#[napi(catch_unwind)]
pub fn release_lock(env: &Env, locked: Numbered<NativeLocked>) -> Result<Soon<Option<Granted>>> {
    hit("release_lock");
    locked.forget();
    let call = Box::pin(async move { locked.get()?.release().await.map(|()| None) });
    begin(env, call)
}
