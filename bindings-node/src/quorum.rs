//! Quorums: several stores, a majority of which grants each lock.

use leasehold::client::native::{NativeQuorum, open_quorum as opened};
use leasehold::store::Finding;
use napi_derive::napi;

use crate::answer::Answer;
use crate::hit;
use crate::leasehold::UNIT;
use crate::runtime;
use crate::table::{Fresh, NativeLock, Numbered};
use crate::value::{Arg, Out};

/// Opens the stores of a quorum.
#[napi(catch_unwind)]
pub async fn open_quorum(servers: Arg, options: Arg) -> Answer<Fresh<NativeQuorum>> {
    hit("open_quorum");
    let open = || opened(&servers.named("servers")?, &options.options()?, UNIT, runtime::handle()?);
    Answer(open().map(Fresh))
}

/// A lock of one name or several.
#[napi(catch_unwind)]
pub fn quorum_lock(quorum: Numbered<NativeQuorum>, names: Arg, options: Arg) -> Answer<Fresh<NativeLock>> {
    hit("quorum_lock");
    let lock = || quorum.get()?.lock_by(&names.named("names")?, &options.options()?, UNIT).map(Fresh);
    Answer(lock())
}

/// Looks whether the servers are fit.
#[napi(catch_unwind)]
pub async fn quorum_doctor(quorum: Numbered<NativeQuorum>) -> Answer<Out> {
    hit("quorum_doctor");
    Answer(async { Ok(Out(Finding::list(&quorum.get()?.doctor().await?))) }.await)
}

/// Ends acquisitions that wait.
#[napi(catch_unwind)]
pub fn quorum_close(quorum: Numbered<NativeQuorum>) -> Answer<()> {
    hit("quorum_close");
    Answer(quorum.get().map(NativeQuorum::close))
}
