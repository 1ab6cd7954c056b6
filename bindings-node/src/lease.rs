//! Leases: outcomes, giving back, renewal, the chain's nonce.

use leasehold::MILLISECOND;
use leasehold::client::{ReleaseOptions, read_rewind, read_ttl};
use leasehold::error::Result as CoreResult;
use leasehold::value::Value;
use napi::{Env, Result};
use napi_derive::napi;

use crate::answer::Answer;
use crate::calls::{Soon, begin, told};
use crate::hit;
use crate::leasehold::UNIT;
use crate::pool::Granted;
use crate::registers;
use crate::table::{NativeLease, Numbered};
use crate::value::{Arg, Out};

/// What changes about a lease and the face shows.
pub fn shown(lease: &NativeLease) -> Value {
    Value::map([("nonce", lease.nonce().into()), ("in_doubt", Value::Bool(lease.in_doubt()))])
}

/// How long the lease can still be relied on, in milliseconds.
#[napi(catch_unwind)]
pub fn lease_remaining(lease: Numbered<NativeLease>) -> f64 {
    hit("lease_remaining");
    lease.get().map_or(0.0, |lease| lease.remaining() as f64 / MILLISECOND as f64)
}

/// The nonce was used.
#[napi(catch_unwind)]
pub fn lease_used(lease: Numbered<NativeLease>, next: Arg) -> Answer<()> {
    hit("lease_used");
    Answer(lease.get().and_then(|lease| lease.used(next.nonce("next")?)))
}

/// The nonce was not used.
#[napi(catch_unwind)]
pub fn lease_unused(lease: Numbered<NativeLease>) -> Answer<()> {
    hit("lease_unused");
    Answer(lease.get().map(NativeLease::unused))
}

/// The chain refused the nonce.
#[napi(catch_unwind)]
pub fn lease_rejected(lease: Numbered<NativeLease>, expected: Arg) -> Answer<()> {
    hit("lease_rejected");
    let expected = expected.nonce("expected");
    Answer(lease.get().and_then(|lease| expected.map(|expected| lease.rejected(expected))))
}

/// Nobody knows whether the nonce was used.
#[napi(catch_unwind)]
pub fn lease_unknown(lease: Numbered<NativeLease>) -> Answer<()> {
    hit("lease_unknown");
    Answer(lease.get().map(NativeLease::unknown))
}

/// Gives the slot of the lease in the registers back at once and forgets the lease; false, and nothing is
/// done, if the store cannot.
#[napi(catch_unwind)]
pub fn lease_give_back() -> Answer<bool> {
    hit("lease_give_back");
    let lease = Numbered::new(registers::number());
    Answer(release_now(&lease, ReleaseOptions::default()))
}

/// The same by other options.
#[napi(catch_unwind)]
pub fn lease_release_now(lease: Numbered<NativeLease>, options: Arg) -> Answer<bool> {
    hit("lease_release_now");
    let options = options.options().and_then(|options| ReleaseOptions::read(&options, UNIT));
    Answer(options.and_then(|options| release_now(&lease, options)))
}

fn release_now(lease: &Numbered<NativeLease>, options: ReleaseOptions) -> CoreResult<bool> {
    let Some(released) = lease.get()?.release_now(options) else { return Ok(false) };
    // A lease that was lost stays, closed, for as long as the face has it: it is not to take another's number.
    released?;
    lease.forget();
    Ok(true)
}

/// Gives the slot back. The face then lets the lease be forgotten.
#[napi(catch_unwind)]
pub fn lease_release(env: &Env, lease: Numbered<NativeLease>, options: Arg) -> Result<Soon<Option<Granted>>> {
    hit("lease_release");
    let call = Box::pin(async move {
        let options = ReleaseOptions::read(&options.options()?, UNIT)?;
        lease.get()?.release(options).await?;
        Ok(None)
    });
    begin(env, call)
}

/// Fails when the lease is lost, and ends with nothing once it was given back.
#[napi(catch_unwind)]
pub fn lease_lost(env: &Env, lease: Numbered<NativeLease>) -> Result<Soon<Option<Granted>>> {
    hit("lease_lost");
    told(env, lease.get().map(NativeLease::lost))
}

/// Fails when somebody of higher priority claims its slot, and ends with nothing if it ends first.
#[napi(catch_unwind)]
pub fn lease_claimed(env: &Env, lease: Numbered<NativeLease>) -> Result<Soon<Option<Granted>>> {
    hit("lease_claimed");
    told(env, lease.get().map(NativeLease::claimed))
}

/// Prolongs the lease.
#[napi(catch_unwind)]
pub async fn lease_renew(lease: Numbered<NativeLease>, ttl: Arg) -> Answer<()> {
    hit("lease_renew");
    let renew = async {
        let ttl = read_ttl(&ttl.named("ttl")?, UNIT)?;
        lease.get()?.renew(ttl).await
    };
    Answer(renew.await)
}

/// Records the chain's nonce.
#[napi(catch_unwind)]
pub async fn lease_resync(lease: Numbered<NativeLease>, nonce: Arg, options: Arg) -> Answer<Out> {
    hit("lease_resync");
    let resync = async {
        let nonce = nonce.named("nonce")?.as_u64().map_err(|error| error.within("nonce"))?;
        let rewind = read_rewind(&options.options()?)?;
        let lease = lease.get()?;
        lease.resync(nonce, rewind).await?;
        Ok(Out(shown(lease)))
    };
    Answer(resync.await)
}

/// Reads the nonce from the chain and records it.
#[napi(catch_unwind)]
pub async fn lease_read_nonce(lease: Numbered<NativeLease>) -> Answer<Out> {
    hit("lease_read_nonce");
    let read = async {
        let lease = lease.get()?;
        lease.read_nonce().await?;
        Ok(Out(shown(lease)))
    };
    Answer(read.await)
}

/// The lease is not used any more: it was given back, or the garbage collector has taken it, and then it is
/// given back in the background.
#[napi(catch_unwind)]
pub fn lease_forget(lease: Numbered<NativeLease>) {
    hit("lease_forget");
    lease.forget();
}
