//! Leases: outcomes, giving back, renewal, the chain's nonce.

use leasehold::client::{ReleaseOptions, read_rewind, read_ttl};
use leasehold::error::{Code, Result as CoreResult};
use leasehold::value::Value;
use napi::{Env, Result};
use napi_derive::napi;

use crate::answer::Answer;
use crate::calls::{Soon, begin};
use crate::granted::Granted;
use crate::hit;
use crate::leasehold::UNIT;
use crate::registers;
use crate::table::{NativeLease, Numbered};
use crate::value::{Arg, Out};

/// What changes about a lease and the face shows.
pub fn shown(lease: &NativeLease) -> Value {
    Value::map([("nonce", lease.nonce().into()), ("in_doubt", Value::Bool(lease.in_doubt()))])
}

/// The nonce was used.
#[napi(catch_unwind)]
pub fn used(lease: Numbered<NativeLease>, next: Arg) -> Answer<()> {
    hit("used");
    Answer(lease.get().and_then(|lease| lease.used(next.nonce("next")?)))
}

/// The nonce was not used.
#[napi(catch_unwind)]
pub fn unused(lease: Numbered<NativeLease>) -> Answer<()> {
    hit("unused");
    Answer(lease.get().and_then(NativeLease::unused))
}

/// The chain refused the nonce.
#[napi(catch_unwind)]
pub fn rejected(lease: Numbered<NativeLease>, expected: Arg) -> Answer<()> {
    hit("rejected");
    let expected = expected.nonce("expected");
    Answer(lease.get().and_then(|lease| expected.and_then(|expected| lease.rejected(expected))))
}

/// Nobody knows whether the nonce was used.
#[napi(catch_unwind)]
pub fn unknown(lease: Numbered<NativeLease>) -> Answer<()> {
    hit("unknown");
    Answer(lease.get().and_then(NativeLease::unknown))
}

/// Gives the slot of the lease in the registers back at once and forgets the lease; false, and nothing is
/// done, if the store cannot.
#[napi(catch_unwind)]
pub fn give_back() -> Answer<bool> {
    hit("give_back");
    let lease = Numbered::new(registers::number());
    Answer(released(&lease, ReleaseOptions::default()))
}

/// The same by other options.
#[napi(catch_unwind)]
pub fn release_now(lease: Numbered<NativeLease>, options: Arg) -> Answer<bool> {
    hit("release_now");
    let options = options.options().and_then(|options| ReleaseOptions::read(&options, UNIT));
    Answer(options.and_then(|options| released(&lease, options)))
}

fn released(lease: &Numbered<NativeLease>, options: ReleaseOptions) -> CoreResult<bool> {
    let Some(released) = lease.get()?.release_now(options) else { return Ok(false) };
    // The face lets go of it with these, and of nothing else: it is not to take another's number.
    match &released {
        Err(error) if error.code() != Code::Lost => {}
        _ => lease.forget(),
    }
    released.map(|()| true)
}

/// Gives the slot back. The number is free from then on.
#[napi(catch_unwind)]
pub fn release(env: &Env, lease: Numbered<NativeLease>, options: Arg) -> Result<Soon<Option<Granted>>> {
    hit("release");
    let options = options.options().and_then(|options| ReleaseOptions::read(&options, UNIT));
    lease.forget();
    let call = Box::pin(async move {
        lease.get()?.release_with(options?).await?;
        Ok(None)
    });
    begin(env, call)
}

/// Prolongs the lease.
#[napi(catch_unwind)]
pub async fn renew(lease: Numbered<NativeLease>, ttl: Arg) -> Answer<()> {
    hit("renew");
    let renew = async {
        let ttl = read_ttl(&ttl.named("ttl")?, UNIT)?;
        lease.get()?.renew_by(ttl).await
    };
    Answer(renew.await)
}

/// Records the chain's nonce.
#[napi(catch_unwind)]
pub async fn resync(lease: Numbered<NativeLease>, nonce: Arg, options: Arg) -> Answer<Out> {
    hit("resync");
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
pub async fn read_nonce(lease: Numbered<NativeLease>) -> Answer<Out> {
    hit("read_nonce");
    let read = async {
        let lease = lease.get()?;
        lease.read_nonce().await?;
        Ok(Out(shown(lease)))
    };
    Answer(read.await)
}
