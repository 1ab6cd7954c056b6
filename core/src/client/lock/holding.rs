//! What holds a lock: leases of all its names, at one server or at several.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::future::poll_fn;

use crate::client::{Lease, LockOptions, ReleaseOptions};
use crate::error::{Error, Result};
use crate::id::SlotId;
use crate::runtime::{BoxedFuture, MaybeSend, MaybeSync, Runtime};
use crate::store::Store;
use crate::{Code, Micros};

/// Several servers that grant locks together. Behind a pointer, so that a program without a quorum does not carry what
/// that needs.
pub(in crate::client) trait Electorate<S: Store, R: Runtime>:
    MaybeSend + MaybeSync
{
    fn check(&self, options: &LockOptions) -> Result<()>;

    /// Ends what is held of these names, at all of them.
    fn break_leases<'a>(&'a self, names: &'a [SlotId]) -> BoxedFuture<'a, Result<()>>;

    fn claim(&self, names: Arc<[SlotId]>, options: LockOptions) -> BoxedFuture<'_, Result<Box<dyn Several>>>;
}

/// What several servers granted. Dropped, it is given back.
pub(in crate::client) trait Several: MaybeSend + MaybeSync {
    fn fence(&self) -> u64;

    fn remaining(&self) -> Micros;

    fn lost(&self) -> BoxedFuture<'static, Option<Error>>;

    fn renew(&self, ttl: Option<Micros>) -> BoxedFuture<'static, Result<()>>;

    fn release(&self) -> BoxedFuture<'_, Result<()>>;

    fn lapse(&self);
}

/// The largest fence.
pub(super) fn fence<S: Store, R: Runtime>(leases: &[Lease<S, R>]) -> u64 {
    leases.iter().map(Lease::fence).max().unwrap_or_default()
}

/// How long all of them can be relied on.
pub(super) fn remaining<S: Store, R: Runtime>(leases: &[Lease<S, R>]) -> Micros {
    leases.iter().map(Lease::remaining_micros).min().unwrap_or_default()
}

/// Of several names the first that is lost ends it, whatever became of the others.
pub(in crate::client) fn lost<S: Store, R: Runtime>(
    leases: &[Lease<S, R>],
) -> impl Future<Output = Option<Error>> + use<S, R> {
    first(leases.iter().map(|lease| Box::pin(lease.lost()) as _).collect())
}

/// Of several names the first that is claimed tells of it.
pub(super) fn claimed<S: Store, R: Runtime>(
    leases: &[Lease<S, R>],
) -> impl Future<Output = Option<Error>> + use<S, R> {
    first(leases.iter().map(|lease| Box::pin(lease.claimed()) as _).collect())
}

pub(in crate::client) async fn first(mut words: Vec<BoxedFuture<'static, Option<Error>>>) -> Option<Error> {
    poll_fn(|context| {
        let mut told = None;
        words.retain_mut(|word| match word.as_mut().poll(context) {
            Poll::Ready(word) => {
                told = told.take().or(word);
                false
            }
            Poll::Pending => true,
        });
        if told.is_some() || words.is_empty() { Poll::Ready(told) } else { Poll::Pending }
    })
    .await
}

/// Gives all of them back, to be leased again after so long; the pool's cooldown if not given.
pub(in crate::client) fn release<'a, S: Store, R: Runtime>(
    leases: impl IntoIterator<Item = &'a Lease<S, R>>,
    cooldown: Option<Micros>,
) -> impl Future<Output = Result<()>> {
    let release = |lease| Box::pin(Lease::release_with(lease, ReleaseOptions { cooldown }));
    together(leases.into_iter().map(release).collect())
}

/// Prolongs all of them to this time to live from now, or that of their pool.
pub(in crate::client) fn renew<'a, S: Store, R: Runtime>(
    leases: impl IntoIterator<Item = &'a Lease<S, R>>,
    ttl: Option<Micros>,
) -> impl Future<Output = Result<()>> {
    let renew = |lease| Box::pin(Lease::renew_by(lease, ttl));
    together(leases.into_iter().map(renew).collect())
}

/// What comes of calls that are begun at once, and so travel together.
pub(super) async fn together<F: Future<Output = Result<()>>>(mut calls: Vec<Pin<Box<F>>>) -> Result<()> {
    let mut outcome = Ok(());
    poll_fn(|context| {
        calls.retain_mut(|call| {
            let Poll::Ready(end) = call.as_mut().poll(context) else { return true };
            // That a part of it was lost outweighs that the store could not be asked of another.
            if !is_lost(&outcome) && end.is_err() {
                outcome = end;
            }
            false
        });
        if calls.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    outcome
}

/// What the end of a block tells that had something: that this was lost, and nothing else. It was had to the end, whether or not the
/// store could be told of that.
///
/// # Errors
/// `lost`, if that is the outcome.
pub fn loss_only(outcome: Result<()>) -> Result<()> {
    if is_lost(&outcome) { outcome } else { Ok(()) }
}

pub(super) fn is_lost(outcome: &Result<()>) -> bool {
    outcome.as_ref().is_err_and(|error| error.code() == Code::Lost)
}
