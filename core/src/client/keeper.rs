//! Keeps leases alive while their holder lives, and tells the holder the moment that one can no longer be
//! relied on.
//!
//! One task for all leases of a pool renews together those whose time has come; it begins with the first and
//! ends with the last. A renewal that fails is tried again within what is left of its lease.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_channel::oneshot;
use futures_util::future::select;
use rustc_hash::FxHashMap;

use super::Runtime;
use super::courier::Delivered;
use super::pool::PoolCore;
use crate::error::Result;
use crate::slots::{LeaseRef, Loss, Reply, Request};
use crate::store::{Store, StorePool};
use crate::{Micros, SECOND};

/// The part of an interval by which a renewal may come early, so that it travels with others.
const TOGETHER: Micros = 8;
/// The pause after a renewal that the store refused, at most.
const RETRY: Micros = SECOND;

/// The leases of a pool that are watched.
#[derive(Debug, Default)]
pub(super) struct Keeper {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// By fence.
    vigils: FxHashMap<u64, Arc<Vigil>>,
    task: Option<Task>,
}

/// The task that renews.
#[derive(Debug)]
struct Task {
    /// When it looks again, unless the bell rings before.
    next: Micros,
    bell: Option<oneshot::Sender<()>>,
}

/// One lease that is watched. Times are on the pool's clock of leases.
#[derive(Debug)]
pub(super) struct Vigil {
    lease: LeaseRef,
    ttl: Micros,
    /// How often it is renewed; 0 if the holder does that.
    interval: Micros,
    watched: Mutex<Watched>,
}

#[derive(Debug)]
struct Watched {
    deadline: Micros,
    /// When it is renewed; `None` while a renewal is under way, or if it is not.
    renewal: Option<Micros>,
    ending: Option<Ending>,
    /// Who wants to hear of its end.
    bells: Vec<oneshot::Sender<Ending>>,
}

/// How a lease ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    GivenBack,
    Lost(Loss),
}

/// What is to be done now.
#[derive(Debug, Default)]
struct Round {
    expired: Vec<Arc<Vigil>>,
    renewals: Vec<Arc<Vigil>>,
}

impl Vigil {
    pub fn new(lease: LeaseRef, ttl: Micros, interval: Micros, deadline: Micros, now: Micros) -> Arc<Self> {
        // A grant can take long to arrive: half of the time that the interval leaves is to be left then.
        let late = deadline.saturating_sub(ttl.saturating_sub(interval) / 2).max(now);
        let renewal = (interval > 0).then_some(late.min(now + interval));
        let watched = Watched { deadline, renewal, ending: None, bells: Vec::new() };
        Arc::new(Vigil { lease, ttl, interval, watched: Mutex::new(watched) })
    }

    /// When the lease can no longer be relied on; 0 once it has ended.
    pub fn deadline(&self) -> Micros {
        let watched = self.lock();
        if watched.ending.is_some() { 0 } else { watched.deadline }
    }

    /// When the lease could be relied on to, whether or not it has ended before.
    pub fn counted_until(&self) -> Micros {
        self.lock().deadline
    }

    /// Whether it is known to be lost.
    pub fn is_lost(&self) -> bool {
        matches!(self.lock().ending, Some(Ending::Lost(_)))
    }

    /// A renewal was granted.
    pub fn prolong(&self, deadline: Micros) {
        let mut watched = self.lock();
        watched.deadline = watched.deadline.max(deadline);
    }

    /// The lease has ended, and whoever wants to is told; false if it had ended before.
    pub fn end(&self, ending: Ending) -> bool {
        let bells = {
            let mut watched = self.lock();
            if watched.ending.is_some() {
                return false;
            }
            watched.ending = Some(ending);
            std::mem::take(&mut watched.bells)
        };
        for bell in bells {
            let _ = bell.send(ending);
        }
        true
    }

    /// Hears of the end.
    pub fn ended(&self) -> oneshot::Receiver<Ending> {
        let (bell, ended) = oneshot::channel();
        let mut watched = self.lock();
        match watched.ending {
            Some(ending) => drop(bell.send(ending)),
            None => {
                watched.bells.retain(|bell| !bell.is_canceled());
                watched.bells.push(bell);
            }
        }
        ended
    }

    fn renew_at(&self, time: Micros) {
        self.lock().renewal = Some(time);
    }

    /// When something is to be done for it.
    fn next(&self) -> Micros {
        let watched = self.lock();
        watched.renewal.map_or(watched.deadline, |renewal| renewal.min(watched.deadline))
    }

    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Keeper {
    /// Watches a lease; true if a task must be started for it.
    pub fn watch(&self, vigil: Arc<Vigil>) -> bool {
        let next = vigil.next();
        let mut state = self.lock();
        state.vigils.insert(vigil.lease.fence, vigil);
        match &mut state.task {
            Some(task) => {
                task.look_by(next);
                false
            }
            None => {
                state.task = Some(Task { next, bell: None });
                true
            }
        }
    }

    /// The lease is nobody's concern any more.
    pub fn forget(&self, fence: u64) {
        self.lock().vigils.remove(&fence);
    }

    /// What is to be done at this time.
    fn round(&self, now: Micros) -> Round {
        let mut round = Round::default();
        let mut state = self.lock();
        state.vigils.retain(|_, vigil| {
            let mut watched = vigil.lock();
            if watched.ending.is_some() {
                return false;
            }
            if watched.deadline <= now {
                round.expired.push(vigil.clone());
                return false;
            }
            if watched.renewal.is_some_and(|renewal| renewal <= now + vigil.interval / TOGETHER) {
                watched.renewal = None;
                round.renewals.push(vigil.clone());
            }
            true
        });
        round
    }

    /// When to look again, and a bell that rings if it is to be earlier. Nothing if none is left to look after: the
    /// task ends.
    fn rest(&self) -> Option<(Micros, oneshot::Receiver<()>)> {
        let mut state = self.lock();
        let Some(next) = state.vigils.values().map(|vigil| vigil.next()).min() else {
            state.task = None;
            return None;
        };
        let (bell, rung) = oneshot::channel();
        state.task = Some(Task { next, bell: Some(bell) });
        Some((next, rung))
    }

    fn look_by(&self, time: Micros) {
        if let Some(task) = &mut self.lock().task {
            task.look_by(time);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Task {
    fn look_by(&mut self, time: Micros) {
        if time < self.next
            && let Some(bell) = self.bell.take()
        {
            self.next = time;
            let _ = bell.send(());
        }
    }
}

impl<S: Store, R: Runtime> PoolCore<S, R> {
    /// Watches a lease, and renews it if it is to be kept.
    pub(super) fn watch_over(self: &Arc<Self>, vigil: Arc<Vigil>) {
        if self.keeper.watch(vigil) {
            self.runtime.spawn(run(Arc::downgrade(self)));
        }
    }

    fn renew_together(self: &Arc<Self>, vigils: Vec<Arc<Vigil>>) {
        for vigil in vigils {
            let sent = self.lease_clock();
            let request = Request::Renew { lease: vigil.lease.clone(), ttl: vigil.ttl };
            if let Some((now, reply)) = self.courier.pool().perform_now(0, &request) {
                self.renewed(&vigil, reply, now, sent);
                continue;
            }
            // All are queued before the first sets out.
            let reply = self.courier.post(request, vigil.deadline(), 0);
            let core = self.clone();
            self.runtime.spawn(async move {
                let outcome: Result<Delivered> = match reply {
                    Ok(reply) => reply.await,
                    Err(busy) => Err(busy),
                };
                match outcome {
                    Ok(delivered) => {
                        let (now, sent) = (delivered.now, delivered.sent);
                        core.renewed(&vigil, delivered.take(), now, sent);
                    }
                    // The store said no, or nothing until the end of the lease: its deadline stands.
                    Err(_) => core.renew_later(&vigil, core.runtime.jitter(RETRY.min(vigil.interval))),
                }
            });
        }
    }

    fn renewed(&self, vigil: &Vigil, reply: Reply, now: Micros, sent: Micros) {
        match reply {
            Reply::Renewed { deadline } => vigil.prolong(self.kept_until(sent, now, deadline)),
            Reply::Lost(loss) => return self.lose(vigil, loss),
            // A defect: the deadline stands.
            _ => {}
        }
        let early = self.runtime.random() % (vigil.interval / TOGETHER + 1);
        let here = self.lease_clock();
        self.renew_later(vigil, (next_renewal(sent, here, vigil.interval) - early).saturating_sub(here));
    }

    fn renew_later(&self, vigil: &Vigil, pause: Micros) {
        let time = self.lease_clock() + pause;
        vigil.renew_at(time);
        self.keeper.look_by(time);
    }

    pub(super) fn lose(&self, vigil: &Vigil, loss: Loss) {
        if vigil.end(Ending::Lost(loss)) {
            self.counters.lost(loss == Loss::Expired);
        }
        self.keeper.forget(vigil.lease.fence);
    }
}

/// When a lease is renewed again that was renewed by what was sent at `sent` and answered at `now`. The deadline is
/// counted from the sending, and so is this: an answer that took long leaves less time for the next.
fn next_renewal(sent: Micros, now: Micros, interval: Micros) -> Micros {
    (sent + interval).max(now + interval / TOGETHER)
}

/// Looks after the leases of a pool until none is left.
async fn run<S: Store, R: Runtime>(core: Weak<PoolCore<S, R>>) {
    loop {
        // Whoever holds a lease holds the pool.
        let Some(core) = core.upgrade() else { return };
        let round = core.keeper.round(core.lease_clock());
        for vigil in &round.expired {
            core.lose(vigil, Loss::Expired);
        }
        core.renew_together(round.renewals);
        let Some((next, bell)) = core.keeper.rest() else { return };
        let runtime = core.runtime.clone();
        let pause = next.saturating_sub(core.lease_clock());
        drop(core);
        select(pin!(runtime.sleep(pause)), bell).await;
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Ending::GivenBack => "it was given back already",
            Ending::Lost(Loss::Expired) => "its deadline passed",
            Ending::Lost(Loss::Ended) => "it was ended before",
            Ending::Lost(Loss::Taken) => "it ended, and the slot has been leased anew",
            Ending::Lost(Loss::Gone) => "the slot was removed",
            Ending::Lost(Loss::Forgotten) => "the store lost its memory",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::SlotId;

    fn vigil(fence: u64, interval: Micros, deadline: Micros) -> Arc<Vigil> {
        let lease = LeaseRef { slot: SlotId::new("a").unwrap(), fence, place: 0 };
        Vigil::new(lease, 3_000, interval, deadline, 0)
    }

    fn fences(vigils: &[Arc<Vigil>]) -> Vec<u64> {
        let mut fences: Vec<_> = vigils.iter().map(|vigil| vigil.lease.fence).collect();
        fences.sort_unstable();
        fences
    }

    #[test]
    fn leases_are_renewed_together_and_their_ends_told() {
        let keeper = Keeper::default();
        let (early, late, plain) = (vigil(1, 800, 2_900), vigil(2, 880, 2_900), vigil(3, 0, 1_000));
        assert!(keeper.watch(early.clone()), "the first needs a task");
        assert!(!keeper.watch(late.clone()) && !keeper.watch(plain.clone()), "one task is enough");
        let (next, _bell) = keeper.rest().unwrap();
        assert_eq!(next, 800);
        // The second one's time is near enough.
        let round = keeper.round(800);
        assert_eq!((fences(&round.renewals), round.expired.len()), (vec![1, 2], 0));
        // While they are under way nothing is renewed, and ends are watched.
        assert_eq!(keeper.rest().unwrap().0, 1_000);
        let round = keeper.round(1_000);
        assert_eq!((fences(&round.expired), round.renewals.len()), (vec![3], 0));
        early.prolong(3_700);
        early.renew_at(1_600);
        assert_eq!((keeper.rest().unwrap().0, early.deadline()), (1_600, 3_700));
        keeper.forget(1);
        assert_eq!(fences(&keeper.round(2_900).expired), [2]);
        assert!(keeper.rest().is_none(), "nothing is left, and the task ends");
        assert!(keeper.watch(vigil(4, 0, 5_000)), "the next lease starts another");
    }

    #[test]
    fn what_arrives_late_is_renewed_while_it_lasts() {
        // Of its 3,000 there is a quarter left, less than an interval.
        let late = |deadline| vigil(1, 1_000, deadline).next();
        assert_eq!((late(2_900), late(1_500), late(750)), (1_000, 500, 0));
        // A renewal that was answered after most of the lease's life had passed; normally; after more than that.
        assert_eq!(next_renewal(1_000, 3_500, 1_000), 3_625);
        assert_eq!(next_renewal(1_000, 1_001, 1_000), 2_000);
        assert_eq!(next_renewal(1_000, 1_990, 1_000), 2_115);
    }

    #[test]
    fn an_earlier_moment_rings_for_the_task() {
        let keeper = Keeper::default();
        keeper.watch(vigil(1, 0, 5_000));
        let (_, mut bell) = keeper.rest().unwrap();
        keeper.look_by(6_000);
        assert_eq!(bell.try_recv(), Ok(None));
        keeper.watch(vigil(2, 0, 4_000));
        assert_eq!(bell.try_recv(), Ok(Some(())));
        // Before the task has looked, there is nothing more to ring for.
        keeper.look_by(3_000);
    }

    #[test]
    fn an_end_is_told_once_and_to_all() {
        let vigil = vigil(1, 0, 5_000);
        let (mut first, mut second) = (vigil.ended(), vigil.ended());
        assert_eq!(first.try_recv(), Ok(None));
        assert!(vigil.end(Ending::Lost(Loss::Taken)));
        assert!(!vigil.end(Ending::GivenBack), "it had ended");
        assert_eq!(vigil.deadline(), 0);
        for told in [&mut first, &mut second, &mut vigil.ended()] {
            assert_eq!(told.try_recv(), Ok(Some(Ending::Lost(Loss::Taken))));
        }
    }
}
