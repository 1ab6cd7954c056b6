//! What a majority of servers granted.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::task::Poll;

use futures_util::future::{FutureExt, Shared, join_all, select_all};

use crate::Micros;
use crate::client::Lease;
use crate::client::lock::holding::{self, Several, is_lost};
use crate::error::{Error, Result};
use crate::poison::unpoisoned;
use crate::runtime::{BoxedFuture, Runtime};
use crate::store::Store;

/// A lock that several servers hold.
pub(super) struct Hold<S: Store, R: Runtime> {
    runtime: R,
    servers: Arc<Holders<S, R>>,
    fence: u64,
}

/// The leases of each server; none once they were given back.
struct Holders<S: Store, R: Runtime> {
    held: Mutex<Vec<Held<S, R>>>,
    /// How many of them must last.
    needed: usize,
    ends: Arc<Ends>,
}

/// When each server's leases end, also of those that joined late, and after all were given back: nothing until somebody asks.
type Ends = Mutex<Option<Vec<End>>>;

/// The way in for servers that granted late.
pub(super) struct Joining<S: Store, R: Runtime>(Weak<Holders<S, R>>);

/// The leases of one server. A renewal that is under way has them too.
type Held<S, R> = Arc<Vec<Lease<S, R>>>;
type End = Shared<BoxedFuture<'static, Option<Error>>>;

impl<S: Store, R: Runtime> Hold<S, R> {
    pub fn new(runtime: R, held: Vec<Vec<Lease<S, R>>>, needed: usize) -> Self {
        // Of those only who made the majority: what comes later is no later than the next holder's.
        let fence = held.iter().map(|leases| holding::fence(leases)).max().unwrap_or_default();
        let is_kept = held.iter().flatten().any(Lease::is_kept);
        let held = Mutex::new(held.into_iter().map(Arc::new).collect());
        let hold = Hold { runtime, servers: Arc::new(Holders { held, needed, ends: Arc::default() }), fence };
        if is_kept {
            hold.keep_no_longer_than_it_stands();
        }
        hold
    }

    /// What is left when too few hold it is renewed no more: that protects nothing, and others could not have it.
    fn keep_no_longer_than_it_stands(&self) {
        let (lost, servers) = (self.lost(), Arc::downgrade(&self.servers));
        self.runtime.spawn(async move {
            if lost.await.is_some()
                && let Some(servers) = servers.upgrade()
            {
                servers.lock().iter().flat_map(|leases| leases.iter()).for_each(Lease::keep_no_more);
            }
        });
    }

    pub fn joining(&self) -> Joining<S, R> {
        Joining(Arc::downgrade(&self.servers))
    }
}

impl<S: Store, R: Runtime> Joining<S, R> {
    /// Gives the leases to the lock, or back if that has ended. One that fell below its majority stays lost: meanwhile it
    /// may have been another's.
    pub fn join(&self, leases: Vec<Lease<S, R>>) {
        let Some(servers) = self.0.upgrade() else { return };
        let mut held = servers.lock();
        if remaining(&held, servers.needed) > 0 {
            let leases = Arc::new(leases);
            unpoisoned(&servers.ends).iter_mut().for_each(|ends| ends.push(end(&leases)));
            held.push(leases);
        }
    }
}

impl<S: Store, R: Runtime> Holders<S, R> {
    /// When each of them ends.
    fn ends(&self) -> Arc<Ends> {
        let held = self.lock();
        unpoisoned(&self.ends).get_or_insert_with(|| held.iter().map(end).collect());
        self.ends.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Held<S, R>>> {
        unpoisoned(&self.held)
    }
}

impl<S: Store, R: Runtime> Several for Hold<S, R> {
    fn fence(&self) -> u64 {
        self.fence
    }

    fn remaining(&self) -> Micros {
        remaining(&self.servers.lock(), self.servers.needed)
    }

    /// Ends with the loss that leaves too few; with nothing if all that are not lost were given back.
    fn lost(&self) -> BoxedFuture<'static, Option<Error>> {
        let (ends, needed) = (self.servers.ends(), self.servers.needed);
        Box::pin(async move {
            let (mut awaited, mut seen, mut given_back) = (Vec::new(), 0, 0);
            let note_joined = |awaited: &mut Vec<End>, seen: &mut usize| {
                let joined = unpoisoned(&ends).iter().flatten().skip(*seen).cloned().collect::<Vec<_>>();
                *seen += joined.len();
                awaited.extend(joined);
            };
            note_joined(&mut awaited, &mut seen);
            while !awaited.is_empty() {
                let (ending, _, others) = select_all(awaited).await;
                awaited = others;
                note_joined(&mut awaited, &mut seen);
                given_back += usize::from(ending.is_none());
                if ending.is_some() && awaited.len() + given_back < needed {
                    return ending;
                }
            }
            None
        })
    }

    /// Asks all, and waits for so many as are needed; the others hold it on as they answer.
    fn renew(&self, ttl: Option<Micros>) -> BoxedFuture<'static, Result<()>> {
        let (held, needed) = (self.servers.lock().clone(), self.servers.needed);
        let runtime = self.runtime.clone();
        Box::pin(async move {
            let renew = |leases: Held<S, R>| async move { holding::renew(&*leases, ttl).await };
            let mut renewals = held.into_iter().map(|leases| Box::pin(renew(leases))).collect();
            let outcome = settle(&mut renewals, needed).await;
            if !renewals.is_empty() {
                runtime.spawn(async { drop(join_all(renewals).await) });
            }
            outcome
        })
    }

    /// Tells all, and waits for so many as are needed; the others are told in the background.
    fn release(&self) -> BoxedFuture<'_, Result<()>> {
        let held = std::mem::take(&mut *self.servers.lock());
        Box::pin(async move {
            let releases = held.iter().map(|leases| Box::pin(holding::release(&**leases, None)));
            settle(&mut releases.collect(), self.servers.needed).await
        })
    }

    /// Who grants later is given back what it granted: the others are enough.
    fn lapse(&self) {
        self.servers.lock().iter().flat_map(|leases| leases.iter()).for_each(Lease::lapse);
    }
}

/// When the leases of a server end.
fn end<S: Store, R: Runtime>(leases: &Held<S, R>) -> End {
    (Box::pin(holding::lost(leases)) as BoxedFuture<'static, _>).shared()
}

/// As long as the best last of which there are enough.
fn remaining<S: Store, R: Runtime>(held: &[Held<S, R>], needed: usize) -> Micros {
    let times: Vec<_> = held.iter().map(|leases| holding::remaining(leases)).collect();
    let enough = |time: &Micros| times.iter().filter(|other| *other >= time).count() >= needed;
    times.iter().copied().filter(enough).max().unwrap_or_default()
}

/// Waits until so many of the calls found their leases whole as are needed, and leaves those that have not ended. That more were
/// lost than can be spared outweighs that a server could not be told.
async fn settle(calls: &mut Vec<impl Future<Output = Result<()>> + Unpin>, needed: usize) -> Result<()> {
    let (mut standing, mut held, mut loss, mut trouble) = (calls.len(), 0, Ok(()), Ok(()));
    poll_fn(|context| {
        calls.retain_mut(|call| {
            let Poll::Ready(end) = Pin::new(call).poll(context) else { return true };
            match end {
                Ok(()) => held += 1,
                lost if is_lost(&lost) => {
                    standing -= 1;
                    loss = lost;
                }
                other => trouble = other,
            }
            false
        });
        let ended = calls.is_empty() || held >= needed || standing < needed;
        if ended { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    if held >= needed {
        return Ok(());
    }
    if standing < needed { loss } else { trouble }
}
