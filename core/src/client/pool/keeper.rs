//! Keeps leases alive while their holder lives, and tells the holder the moment that one can no longer be
//! relied on.
//!
//! One task for all leases of a pool renews together those whose time has come; it begins with the first and
//! ends with the last. A renewal that fails is tried again within what is left of its lease.

use std::sync::{Arc, Mutex, MutexGuard, Weak};

use futures_channel::oneshot;

use super::PoolCore;
use super::vigil::{Ending, Need, Vigil};
use crate::poison::unpoisoned;
use crate::runtime::{self, Runtime};
use crate::slots::{Loss, Reply, Request};
use crate::store::{Store, StorePool};
use crate::{Micros, SECOND};

/// The part of an interval by which a renewal may come early, so that it travels with others.
const TOGETHER: Micros = 8;
/// The part by which the next is put earlier at random, so that processes do not renew in step. It is less: those that
/// travelled together in several envelopes, one after the other, are to do so again.
const JITTER: Micros = 16;
/// The pause after a renewal that the store refused, at most, and before a look at what is claimed, at least.
const RETRY: Micros = SECOND;

/// The leases of a pool that are watched.
#[derive(Debug, Default)]
pub(in crate::client) struct Keeper {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Some of them may have ended: those go when room is wanted, or the task looks.
    vigils: Vec<Arc<Vigil>>,
    task: Option<Task>,
}

/// The task that renews.
#[derive(Debug)]
struct Task {
    /// When it looks again, unless the bell rings before.
    next: Micros,
    bell: Option<oneshot::Sender<()>>,
}

/// What is to be done now.
#[derive(Debug, Default)]
struct Round {
    expired: Vec<Arc<Vigil>>,
    renewals: Vec<Arc<Vigil>>,
}

impl Keeper {
    /// Watches a lease; true if a task must be started for it.
    pub fn watch(&self, vigil: Arc<Vigil>) -> bool {
        let Some(next) = vigil.next() else { return false };
        let mut state = self.lock();
        if state.vigils.len() == state.vigils.capacity() {
            state.vigils.retain(|vigil| vigil.next().is_some());
            // As many may come as are left, so that each pays for one look.
            let left = state.vigils.len();
            state.vigils.reserve(left + 1);
        }
        state.vigils.push(vigil);
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

    /// What is to be done at this time.
    fn round(&self, now: Micros) -> Round {
        let mut round = Round::default();
        let mut state = self.lock();
        // Who rang for what is due later does not have it done at once, but has it looked at in time.
        let is_time = state.task.as_ref().is_some_and(|task| task.next <= now);
        let early = |vigil: &Vigil| vigil.interval / TOGETHER * Micros::from(is_time);
        state.vigils.retain(|vigil| match vigil.need(now, early(vigil)) {
            Need::Nothing => true,
            Need::Renewal => {
                round.renewals.push(vigil.clone());
                true
            }
            Need::Ending => {
                round.expired.push(vigil.clone());
                false
            }
            Need::Forgetting => false,
        });
        round
    }

    /// When to look again, and a bell that rings if it is to be earlier. Nothing if none is left to look after: the
    /// task ends.
    fn rest(&self) -> Option<(Micros, oneshot::Receiver<()>)> {
        let mut state = self.lock();
        let Some(next) = state.vigils.iter().filter_map(|vigil| vigil.next()).min() else {
            *state = State::default();
            return None;
        };
        let (bell, rung) = oneshot::channel();
        state.task = Some(Task { next, bell: Some(bell) });
        Some((next, rung))
    }

    /// Somebody claims the leases of these fences, or of any: those that are here are renewed, which tells how they stand.
    pub fn heed(&self, claimed: Option<&[u64]>) {
        if claimed.is_some_and(<[u64]>::is_empty) {
            return;
        }
        let mut state = self.lock();
        let heeding = state.vigils.iter().filter(|vigil| vigil.heeds(claimed));
        if heeding.map(|vigil| vigil.renew_at(0)).count() > 0
            && let Some(task) = &mut state.task
        {
            task.look_by(0);
        }
    }

    /// Whether the holder of a lease wants to hear who claims it.
    #[cfg(feature = "crowds")]
    pub fn listens(&self) -> bool {
        self.lock().vigils.iter().any(|vigil| vigil.heeds(None))
    }

    fn look_by(&self, time: Micros) {
        if let Some(task) = &mut self.lock().task {
            task.look_by(time);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        unpoisoned(&self.state)
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
    pub(in crate::client) fn watch_over(self: &Arc<Self>, vigil: Arc<Vigil>) {
        if self.keeper.watch(vigil) {
            let run = run(Arc::downgrade(self));
            #[cfg(not(target_family = "wasm"))]
            let run = {
                let core = Arc::downgrade(self);
                runtime::or_left(run, move || core.upgrade().iter().for_each(|core| core.leave()))
            };
            // It renews the leases of all.
            self.runtime.spawn_at_once(run);
        }
    }

    /// Who looks after the leases has ended, with its runtime or by a panic: their holders are told so, before somebody else has
    /// what nobody renews. The next lease starts another.
    #[cfg(not(target_family = "wasm"))]
    fn leave(&self) {
        let left = std::mem::take(&mut *self.keeper.lock());
        for vigil in left.vigils {
            self.lose(&vigil, Ending::Unkept);
        }
    }

    fn renew_together(self: &Arc<Self>, vigils: Vec<Arc<Vigil>>) {
        let request = |vigil: &Vigil| Request::Renew { lease: vigil.lease.clone(), ttl: vigil.ttl };
        let sent = self.lease_clock();
        #[cfg(feature = "crowds")]
        let hearing = self.heard_by();
        let mut afar = vigils;
        afar.retain(|vigil| match self.courier.pool().perform_now(0, &request(vigil)) {
            Some((now, reply)) => {
                #[cfg(feature = "crowds")]
                vigil.told(hearing);
                self.renewed(vigil, reply, now, sent);
                false
            }
            None => true,
        });
        if afar.is_empty() {
            return;
        }
        let requests = afar.iter().map(|vigil| (request(vigil), vigil.term().deadline())).collect();
        let replies = self.courier.post_together(requests);
        for (vigil, reply) in afar.into_iter().zip(replies) {
            let core = self.clone();
            self.runtime.spawn(async move {
                match reply.await {
                    Ok(delivered) => {
                        let (now, sent) = (delivered.now, delivered.sent);
                        #[cfg(feature = "crowds")]
                        vigil.told(hearing);
                        core.renewed(&vigil, delivered.take(), now, sent);
                    }
                    // The store said no, or nothing until the end of the lease: its deadline stands.
                    Err(_) => {
                        let pause = core.runtime.jitter(RETRY.min(vigil.interval));
                        core.renew_later(&vigil, core.lease_clock() + pause);
                    }
                }
            });
        }
    }

    fn renewed(&self, vigil: &Vigil, reply: Reply, now: Micros, sent: Micros) {
        match reply {
            Reply::Renewed { deadline } => vigil.prolong(self.kept_until(sent, now, deadline), now),
            Reply::Claimed { deadline, priority } => {
                return self.claimed(vigil, self.kept_until(sent, now, deadline), now, priority);
            }
            Reply::Lost(loss) => return self.lose(vigil, Ending::Lost(loss)),
            // A defect: the deadline stands.
            _ => {}
        }
        let early = self.runtime.random() % (vigil.interval / JITTER + 1);
        self.renew_later(vigil, next_renewal(sent.saturating_sub(early), self.lease_clock(), vigil));
    }

    /// The store says, at its time `at`, that a lease is claimed and ends by `until`, which may be earlier than the task
    /// expects. It is asked about while it lasts, whoever renews it: nobody tells that its claimant has left.
    pub(in crate::client) fn claimed(&self, vigil: &Vigil, until: Micros, at: Micros, priority: i16) {
        vigil.claim(until, at, priority);
        let here = self.lease_clock();
        let next = next_renewal(here, here, vigil);
        vigil.renew_at(next);
        self.keeper.look_by(next.min(until));
    }

    fn renew_later(&self, vigil: &Vigil, time: Micros) {
        // Its holder renews it, and it was only looked at.
        if vigil.interval == 0 {
            return;
        }
        vigil.renew_at(time);
        self.keeper.look_by(time);
    }

    pub(in crate::client) fn lose(&self, vigil: &Vigil, why: Ending) {
        if vigil.lose(why) {
            self.counters.lost(why == Ending::Lost(Loss::Expired));
        }
    }
}

/// When a lease is renewed again that was renewed by what was sent at `sent` and answered at `now`. The deadline is
/// counted from the sending, and so is this: an answer that took long leaves less time for the next, as does one who claims the lease.
/// What is not renewed is looked at with half of its time left.
fn next_renewal(sent: Micros, now: Micros, vigil: &Vigil) -> Micros {
    let (until, interval) = (vigil.term().until(), vigil.interval);
    let half = until.saturating_sub(now) / 2;
    if interval == 0 {
        return now + half.max(RETRY);
    }
    // A moment at least, in which time passes: a store in memory answers in none.
    let least = (interval / TOGETHER).min(half).max(1);
    (sent + interval).min(vigil.late(until)).max(now + least)
}

/// Looks after the leases of a pool until none is left.
async fn run<S: Store, R: Runtime>(core: Weak<PoolCore<S, R>>) {
    loop {
        // Whoever holds a lease holds the pool.
        let Some(core) = core.upgrade() else { return };
        let round = core.keeper.round(core.lease_clock());
        for vigil in &round.expired {
            core.lose(vigil, Ending::Lost(Loss::Expired));
        }
        core.renew_together(round.renewals);
        let Some((next, bell)) = core.keeper.rest() else {
            #[cfg(feature = "crowds")]
            core.hear_no_more();
            return;
        };
        let runtime = core.runtime.clone();
        let pause = next.saturating_sub(core.lease_clock());
        drop(core);
        runtime::by(&runtime, runtime.now() + pause, bell).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::pool::vigil::Term;
    use crate::id::SlotId;
    use crate::slots::LeaseRef;

    fn vigil(fence: u64, interval: Micros, until: Micros) -> Arc<Vigil> {
        let lease = LeaseRef { slot: SlotId::new("a").unwrap(), fence, place: 0 };
        Vigil::new(lease, 3_000, interval, Term::new(until), 0)
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
        early.prolong(3_700, 0);
        early.renew_at(1_600);
        assert_eq!((keeper.rest().unwrap().0, early.term().deadline()), (1_600, 3_700));
        early.leave();
        assert_eq!(fences(&keeper.round(2_900).expired), [2]);
        assert!(keeper.rest().is_none(), "nothing is left, and the task ends");
        assert!(keeper.watch(vigil(4, 0, 5_000)), "the next lease starts another");
    }

    /// What was answered before the claim says nothing of it, and the claim was heard of at the next renewal only.
    #[test]
    fn a_claim_is_asked_about_though_a_renewal_was_under_way() {
        let (keeper, lease) = (Keeper::default(), vigil(1, 800, 2_900));
        keeper.watch(lease.clone());
        assert_eq!(fences(&keeper.round(800).renewals), [1]);
        keeper.heed(Some(&[1]));
        // The answer to the renewal.
        lease.prolong(3_700, 0);
        lease.renew_at(1_600);
        assert_eq!(fences(&keeper.round(801).renewals), [1]);
    }

    #[test]
    fn what_was_answered_late_is_renewed_soon() {
        // After most of the lease's life had passed; normally; after nearly an interval; as it is nearly over.
        let next = |now, until| next_renewal(1_000, now, &vigil(1, 1_000, until));
        assert_eq!((next(3_500, 3_900), next(1_001, 3_900), next(1_990, 3_900)), (3_625, 2_000, 2_115));
        assert_eq!(next(3_800, 3_900), 3_850);
    }

    /// It was asked about an interval later, which was too late: its holder lost what nobody claimed any more.
    #[test]
    fn what_is_claimed_is_asked_about_while_it_lasts() {
        // To its end, in the last third; and for a shorter time than that.
        for (now, until, next) in
            [(1_000, 4_000, 2_000), (2_500, 4_000, 3_000), (3_200, 4_000, 3_325), (1_000, 1_200, 1_100)]
        {
            let lease = vigil(1, 1_000, 4_000);
            lease.claim(until, now, 1);
            assert_eq!(next_renewal(now, now, &lease), next, "at {now}");
        }
        // One that its holder renews, or does not.
        let looked_at = |until| next_renewal(SECOND, SECOND, &vigil(1, 0, until));
        assert_eq!((looked_at(9 * SECOND), looked_at(2 * SECOND)), (5 * SECOND, 2 * SECOND));
    }

    /// Every answer rang for the next look, which asked again at once: thousands of times a second, until the lease was over.
    #[test]
    fn what_cannot_be_prolonged_is_asked_about_now_and_then() {
        const INTERVAL: Micros = SECOND;
        const ROUND_TRIP: Micros = 100;
        // Beside one that goes on: one, and many that end one after the other. Without `crowds` there are few.
        for (leases, most) in [(1, 40), if cfg!(feature = "crowds") { (100, 4_000) } else { (2, 80) }] {
            let keeper = Keeper::default();
            let until = |fence: u64| 3 * INTERVAL + fence * 10_000;
            let watch = |fence, until| {
                let lease = LeaseRef { slot: SlotId::new("a").unwrap(), fence, place: 0 };
                keeper.watch(Vigil::new(lease, 3 * INTERVAL, INTERVAL, Term::new(until), 0))
            };
            assert!(watch(0, 100 * INTERVAL));
            (1..=leases).for_each(|fence| assert!(!watch(fence, until(fence))));
            let (mut now, mut asked) = (0, 0);
            while now < until(leases) {
                let renewals = keeper.round(now).renewals;
                let (next, _bell) = keeper.rest().unwrap();
                asked += renewals.len();
                let sent = now;
                if renewals.is_empty() {
                    now = next;
                    continue;
                }
                now += ROUND_TRIP;
                for vigil in renewals {
                    let next = next_renewal(sent, now, &vigil);
                    vigil.renew_at(next);
                    keeper.look_by(next);
                }
            }
            assert!(asked >= leases as usize * 10 && asked < most, "{leases}: {asked}");
        }
    }

    #[test]
    fn leases_that_ended_take_no_room() {
        let keeper = Keeper::default();
        keeper.watch(vigil(0, 0, 5_000));
        for fence in 1..1_000 {
            let passing = vigil(fence, 0, 5_000);
            keeper.watch(passing.clone());
            passing.leave();
        }
        assert!(keeper.lock().vigils.len() < 10);
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
}
