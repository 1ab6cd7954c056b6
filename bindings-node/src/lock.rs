//! Named locks: acquiring, and what is held.

use leasehold::client::read_ttl;
use napi::{Env, Result};
use napi_derive::napi;

use crate::answer::Answer;
use crate::calls::{Soon, begin};
use crate::granted::Granted;
use crate::hit;
use crate::leasehold::UNIT;
use crate::table::{NativeLock, NativeLocked, Numbered};
use crate::value::{Arg, Out};

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

/// Looks at each of its names.
#[napi(catch_unwind)]
pub async fn inspect_lock(lock: Numbered<NativeLock>) -> Answer<Out> {
    hit("inspect_lock");
    Answer(async { lock.get()?.inspect_by(UNIT).await.map(Out) }.await)
}

/// Ends by force what is held of its names.
#[napi(catch_unwind)]
pub async fn break_lock(lock: Numbered<NativeLock>) -> Answer<()> {
    hit("break_lock");
    Answer(async { lock.get()?.break_lease().await }.await)
}

/// Prolongs it.
#[napi(catch_unwind)]
pub async fn renew_lock(locked: Numbered<NativeLocked>, ttl: Arg) -> Answer<()> {
    hit("renew_lock");
    let renew = async {
        let ttl = read_ttl(&ttl.named("ttl")?, UNIT)?;
        locked.get()?.renew_by(ttl).await
    };
    Answer(renew.await)
}

/// Gives it back. The number is free from then on.
#[napi(catch_unwind)]
pub fn release_lock(env: &Env, locked: Numbered<NativeLocked>) -> Result<Soon<Option<Granted>>> {
    hit("release_lock");
    locked.forget();
    let call = Box::pin(async move { locked.get()?.release().await.map(|()| None) });
    begin(env, call)
}
