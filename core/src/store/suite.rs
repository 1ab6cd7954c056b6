//! The suite that every store must pass, whatever it keeps its pools in.
//!
//! It uses no clock of its own: what it needs of time it reads from the store's answers. Run it on a pool
//! that nobody else uses; every test takes a name of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Store, StoreError, StorePool};
use crate::id::{PoolName, SlotId};
use crate::nonce::{NonceRecord, Outcome};
use crate::slots::{
    Answer, Calls, Choice, Claim, Envelope, Grant, Lane, LeaseRef, Loss, Performed, Refusal, Reply, Request,
    SlotChange, SlotSpec, State, Strategy,
};
use crate::{Micros, SECOND};

/// No lease of the suite lives longer. So short that a server that has just been started soon grants.
pub const LONGEST: Micros = 2 * SECOND;

/// Holds a store against the contract of [`Store`]. `name` gives a pool that is not defined yet, a new one
/// at every call.
///
/// # Panics
/// If the store breaks the contract; the message says where.
pub async fn conforms<S: Store>(store: S, name: impl Fn() -> PoolName) {
    let new = async || Subject::of(&store, &name()).await;
    an_undefined_pool_says_so(&store, &name()).await;
    definitions_add(&new().await).await;
    a_lease_lives_until_it_is_given_back(&new().await).await;
    nonces_keep_their_digits(&new().await).await;
    a_nonce_never_goes_back_by_itself(&new().await).await;
    only_the_current_fence_counts(&new().await).await;
    several_slots_at_once(&new().await).await;
    administrators_changes(&new().await).await;
    repeated_envelopes_are_answered_and_not_performed(&new().await).await;
    late_envelopes_change_nothing(&new().await).await;
    one_envelope_is_performed_in_order(&new().await).await;
    pools_are_apart(&new().await, &new().await).await;
    two_handles_share_a_pool(&store, &name()).await;
    what_is_told_at_once_is_what_is_performed(&new().await).await;
    those_who_watch_are_told(&new().await).await;
}

/// A defined pool of slots `a`, `b` and `c`.
struct Subject<P> {
    pool: P,
}

impl<P: StorePool> Subject<P> {
    async fn of<S: Store<Pool = P>>(store: &S, name: &PoolName) -> Self {
        let subject = Subject { pool: store.pool(name) };
        assert_eq!(subject.ask(define(&["a", "b", "c"])).await, Reply::Defined { added: 3, total: 3 });
        subject
    }

    async fn answer(&self, envelope: &Envelope) -> Answer {
        let answer: Result<_, StoreError> = self.pool.perform(envelope).await;
        let performed = answer.as_ref().is_ok_and(|answer| match answer {
            Answer::Performed(performed) => performed.replies.len() == envelope.requests.len(),
            Answer::Stale { .. } => true,
        });
        assert!(performed, "{envelope:?} got {answer:?}");
        answer.unwrap_or(Answer::Stale { now: 0 })
    }

    async fn perform(&self, requests: Vec<Request>) -> Performed {
        match self.answer(&Envelope { seed: 9, requests, ..Envelope::default() }).await {
            Answer::Performed(performed) => performed,
            Answer::Stale { now } => {
                assert_eq!(now, 0, "an envelope without a last moment was stale");
                Performed { now, top: 0, quiet_time: None, calls: Calls::default(), replies: Vec::new() }
            }
        }
    }

    async fn ask(&self, request: Request) -> Reply {
        self.perform(vec![request]).await.replies.pop().unwrap_or(Reply::Undefined)
    }

    /// Leases the slot, and waits out the quiet time of a server that has just been started.
    async fn lease(&self, slot: &str) -> Grant {
        loop {
            match self.ask(these(&[slot])).await {
                Reply::Granted(grants) if grants.len() == 1 => {
                    if let Some(grant) = grants.into_iter().next() {
                        return grant;
                    }
                }
                Reply::Refused { why: Refusal::Quiet, .. } => {}
                other => assert_eq!(other, Reply::Granted(Vec::new()), "one grant of {slot}"),
            }
        }
    }
}

fn id(text: &str) -> SlotId {
    let id = SlotId::new(text);
    assert!(id.is_ok(), "{text}");
    id.unwrap_or_else(|_| unreachable!())
}

fn define(slots: &[&str]) -> Request {
    let slots = slots.iter().map(|slot| SlotSpec { slot: id(slot), weight: 1 }).collect();
    Request::Define { slots, longest: LONGEST, doubt_rest: 0 }
}

fn claim(choice: Choice) -> Request {
    Request::Claim(Claim::new(choice, u128::MAX, LONGEST))
}

fn these(slots: &[&str]) -> Request {
    let count = slots.len() as u32;
    claim(Choice::Among { slots: slots.iter().map(|slot| id(slot)).collect(), count })
}

fn name_of(grant: &Grant) -> LeaseRef {
    LeaseRef { slot: grant.slot.clone(), fence: grant.fence, place: grant.place }
}

fn release(grant: &Grant, outcome: Outcome) -> Request {
    Request::Release { lease: name_of(grant), outcome, cooldown: 0 }
}

fn resync(grant: &Grant, chain: u64) -> Request {
    Request::Resync { lease: name_of(grant), chain, rewind: false, settle: SECOND * 3600 }
}

async fn an_undefined_pool_says_so<S: Store>(store: &S, name: &PoolName) {
    let subject = Subject { pool: store.pool(name) };
    let replies = subject.perform(vec![these(&["a"]), Request::List]).await.replies;
    assert_eq!(replies, [Reply::Undefined, Reply::Undefined]);
}

async fn definitions_add<P: StorePool>(subject: &Subject<P>) {
    assert_eq!(subject.ask(define(&["c", "d"])).await, Reply::Defined { added: 1, total: 4 });
    let all = ["a", "b", "c", "d"].map(id).to_vec();
    assert_eq!(subject.ask(Request::List).await, Reply::Listed(all));
}

async fn a_lease_lives_until_it_is_given_back<P: StorePool>(subject: &Subject<P>) {
    let grant = subject.lease("a").await;
    let performed = subject.perform(vec![these(&["a"])]).await;
    assert!(grant.deadline > performed.now && grant.deadline <= performed.now + LONGEST, "{grant:?}");
    assert!(grant.fence <= performed.top, "{grant:?} {performed:?}");
    let exhausted = Reply::Refused { why: Refusal::Exhausted, earliest: Some(grant.deadline) };
    assert_eq!(performed.replies, [exhausted]);
    let renewed = subject.ask(Request::Renew { lease: name_of(&grant), ttl: LONGEST }).await;
    let later = matches!(renewed, Reply::Renewed { deadline } if deadline >= grant.deadline);
    assert!(later, "{renewed:?}");
    assert_eq!(subject.ask(release(&grant, Outcome::Unused)).await, Reply::Released);
    assert_eq!(subject.ask(release(&grant, Outcome::Unused)).await, Reply::Lost(Loss::Ended));
    let next = subject.lease("a").await;
    assert!(next.fence > grant.fence, "{next:?} after {grant:?}");
    assert_eq!(subject.ask(release(&grant, Outcome::Unused)).await, Reply::Lost(Loss::Taken));
}

async fn nonces_keep_their_digits<P: StorePool>(subject: &Subject<P>) {
    for nonce in [0, (1 << 53) + 1, (1 << 63) + 1, u64::MAX] {
        let grant = subject.lease("a").await;
        let record = subject.ask(resync(&grant, nonce)).await;
        assert_eq!(record, Reply::Resynced { next: nonce });
        assert_eq!(subject.ask(release(&grant, Outcome::Unused)).await, Reply::Released);
        let next = subject.lease("a").await;
        assert_eq!(next.nonce, NonceRecord::Known(nonce));
        assert_eq!(subject.ask(release(&next, Outcome::Unused)).await, Reply::Released);
    }
}

async fn a_nonce_never_goes_back_by_itself<P: StorePool>(subject: &Subject<P>) {
    let grant = subject.lease("a").await;
    assert_eq!(subject.ask(resync(&grant, 7)).await, Reply::Resynced { next: 7 });
    let used = |next| release(&grant, Outcome::Used { next });
    assert_eq!(subject.ask(used(7)).await, Reply::Backwards { floor: 8 });
    let behind = subject.ask(resync(&grant, 6)).await;
    assert!(matches!(behind, Reply::Behind { floor: 7, .. }), "{behind:?}");
    assert_eq!(subject.ask(used(8)).await, Reply::Released);
    let grant = subject.lease("a").await;
    assert_eq!(grant.nonce, NonceRecord::Known(8));
    assert_eq!(subject.ask(release(&grant, Outcome::Unknown { used: None })).await, Reply::Released);
    // Of several payments the last one is lost; a word of what was known before takes nothing back.
    for (floor, used) in [(8, None), (8, Some(11)), (11, Some(9)), (11, None)] {
        let doubtful = subject.lease("a").await;
        assert_eq!(doubtful.nonce, NonceRecord::InDoubt { floor: Some(floor) });
        assert_eq!(subject.ask(release(&doubtful, Outcome::Unknown { used })).await, Reply::Released);
    }
}

async fn only_the_current_fence_counts<P: StorePool>(subject: &Subject<P>) {
    let grant = subject.lease("a").await;
    for (off, loss) in [(-1i64, Loss::Taken), (1, Loss::Forgotten)] {
        let lease = LeaseRef { fence: grant.fence.saturating_add_signed(off), ..name_of(&grant) };
        let requests = vec![
            Request::Renew { lease: lease.clone(), ttl: LONGEST },
            Request::Resync { lease: lease.clone(), chain: 5, rewind: true, settle: 0 },
            Request::Release { lease, outcome: Outcome::Used { next: 6 }, cooldown: LONGEST },
        ];
        assert_eq!(subject.perform(requests).await.replies, vec![Reply::Lost(loss); 3]);
    }
    let gone = LeaseRef { slot: id("nobody"), fence: grant.fence, place: grant.place };
    assert_eq!(subject.ask(Request::Renew { lease: gone, ttl: LONGEST }).await, Reply::Lost(Loss::Gone));
    assert_eq!(subject.ask(release(&grant, Outcome::Unused)).await, Reply::Released);
}

async fn several_slots_at_once<P: StorePool>(subject: &Subject<P>) {
    let first = subject.lease("b").await;
    let refused = subject.ask(these(&["a", "b"])).await;
    assert!(matches!(refused, Reply::Refused { why: Refusal::Exhausted, .. }), "{refused:?}");
    let missing = Reply::Refused { why: Refusal::NoSlot, earliest: None };
    assert_eq!(subject.ask(these(&["a", "nobody"])).await, missing);
    assert_eq!(subject.ask(release(&first, Outcome::Unused)).await, Reply::Released);
    for strategy in [Strategy::Random, Strategy::LeastRecent, Strategy::Weighted] {
        let reply = subject.ask(claim(Choice::Any { strategy, least: 3, most: 9 })).await;
        let Reply::Granted(grants) = &reply else {
            assert_eq!(reply, Reply::Granted(Vec::new()), "all three");
            return;
        };
        let mut slots: Vec<_> = grants.iter().map(|grant| grant.slot.as_str()).collect();
        slots.sort_unstable();
        assert_eq!(slots, ["a", "b", "c"]);
        assert!(grants.is_sorted_by(|one, next| one.fence < next.fence), "{grants:?}");
        let back = grants.iter().map(|grant| release(grant, Outcome::Unused)).collect();
        assert_eq!(subject.perform(back).await.replies, vec![Reply::Released; 3]);
    }
}

async fn administrators_changes<P: StorePool>(subject: &Subject<P>) {
    let change = |change| Request::Change { slot: id("a"), change };
    let grant = subject.lease("a").await;
    let steps = vec![
        change(SlotChange::Break),
        change(SlotChange::Disable),
        Request::Inspect { slots: vec![id("a")] },
    ];
    let replies = subject.perform(steps).await.replies;
    let state = match replies.last() {
        Some(Reply::Inspected { slots, total: 3, ready: 2, .. }) => slots.first().map(|view| view.state),
        _ => None,
    };
    assert_eq!(state, Some(State::Out), "{replies:?}");
    assert_eq!(subject.ask(release(&grant, Outcome::Unused)).await, Reply::Lost(Loss::Ended));
    let exhausted = Reply::Refused { why: Refusal::Exhausted, earliest: None };
    assert_eq!(subject.ask(these(&["a"])).await, exhausted);
    let replies =
        subject.perform(vec![change(SlotChange::Enable), change(SlotChange::Quarantine(SECOND))]).await;
    assert_eq!(replies.replies, [Reply::Changed, Reply::Changed]);
    assert!(matches!(subject.ask(these(&["a"])).await, Reply::Refused { earliest: Some(_), .. }));
    assert_eq!(subject.ask(change(SlotChange::Remove)).await, Reply::Changed);
    assert_eq!(subject.ask(change(SlotChange::Remove)).await, Reply::NoSlot);
    assert_eq!(subject.ask(Request::List).await, Reply::Listed(vec![id("b"), id("c")]));
}

async fn repeated_envelopes_are_answered_and_not_performed<P: StorePool>(subject: &Subject<P>) {
    let grant = subject.lease("a").await;
    let numbered = |sequence, requests| Envelope {
        lane: Some(Lane { client: u128::MAX - 4, number: u16::MAX, sequence }),
        requests,
        ..Envelope::default()
    };
    let giving_back = numbered(1, vec![release(&grant, Outcome::Used { next: 4 })]);
    let first = subject.answer(&giving_back).await;
    assert!(
        matches!(&first, Answer::Performed(performed) if performed.replies == [Reply::Released]),
        "{first:?}"
    );
    let next = subject.lease("a").await;
    assert_eq!(subject.answer(&giving_back).await, first, "the same answer");
    let held = subject.ask(Request::Renew { lease: name_of(&next), ttl: LONGEST }).await;
    assert!(matches!(held, Reply::Renewed { .. }), "a repeated release freed another's lease: {held:?}");
    let second = subject.answer(&numbered(2, vec![these(&["b"])])).await;
    assert!(matches!(&second, Answer::Performed(_)), "{second:?}");
    let overtaken = subject.answer(&giving_back).await;
    assert!(matches!(overtaken, Answer::Stale { .. }), "{overtaken:?}");
}

async fn late_envelopes_change_nothing<P: StorePool>(subject: &Subject<P>) {
    let now = subject.perform(Vec::new()).await.now;
    let late = Envelope { not_after: Some(now - 1), requests: vec![these(&["a"])], ..Envelope::default() };
    let answer = subject.answer(&late).await;
    assert!(matches!(answer, Answer::Stale { now: later } if later >= now), "{answer:?}");
    subject.lease("a").await;
}

async fn one_envelope_is_performed_in_order<P: StorePool>(subject: &Subject<P>) {
    let grant = subject.lease("a").await;
    let requests = vec![these(&["a"]), release(&grant, Outcome::Unused), these(&["a"]), these(&["a"])];
    let replies = subject.perform(requests).await.replies;
    let granted: Vec<_> = replies.iter().map(|reply| matches!(reply, Reply::Granted(_))).collect();
    assert_eq!(granted, [false, false, true, false], "{replies:?}");
}

async fn pools_are_apart<P: StorePool>(one: &Subject<P>, other: &Subject<P>) {
    let grant = one.lease("a").await;
    other.lease("a").await;
    assert_eq!(one.ask(release(&grant, Outcome::Unused)).await, Reply::Released);
}

async fn two_handles_share_a_pool<S: Store>(store: &S, name: &PoolName) {
    let one = Subject::of(store, name).await;
    let other = Subject { pool: store.clone().pool(name) };
    let grant = one.lease("a").await;
    assert!(matches!(other.ask(these(&["a"])).await, Reply::Refused { .. }));
    assert_eq!(other.ask(release(&grant, Outcome::Unused)).await, Reply::Released);
}

async fn what_is_told_at_once_is_what_is_performed<P: StorePool>(subject: &Subject<P>) {
    let told = subject.pool.perform_now(3, &these(&["a"]));
    assert_eq!(told.is_some(), subject.pool.answers_at_once());
    if let Some((now, reply)) = told {
        assert!(matches!(reply, Reply::Granted(_)), "{reply:?}");
        assert!(matches!(subject.ask(these(&["a"])).await, Reply::Refused { .. }));
        assert!(subject.perform(Vec::new()).await.now >= now);
    }
}

/// Where a store can tell at all, it tells of a slot that becomes ready, as long as it is watched. A store
/// may tell a little later than it answers: it is asked until it has, for about as long as a lease lives.
async fn those_who_watch_are_told<P: StorePool>(subject: &Subject<P>) {
    let told = Arc::new(AtomicU32::new(0));
    let counter = told.clone();
    let watch = subject
        .pool
        .watch(Arc::new(move |calls| {
            _ = counter.fetch_add(calls.map_or(0, |calls| calls.freed), Ordering::SeqCst)
        }))
        .await;
    assert!(watch.is_ok(), "{watch:?}");
    let Ok(Some(watch)) = watch else { return };
    let grant = subject.lease("a").await;
    // It stands in no line: there are fewer.
    let choice = Choice::Any { strategy: Strategy::Random, least: 9, most: 9 };
    let waiting = Request::Claim(Claim { wait: true, ..Claim::new(choice, 1, LONGEST) });
    assert!(matches!(subject.ask(waiting).await, Reply::Refused { .. }));
    let performed = subject.perform(vec![release(&grant, Outcome::Unused)]).await;
    assert_eq!((performed.calls.freed, performed.replies), (1, vec![Reply::Released]));
    while told.load(Ordering::SeqCst) == 0 {
        let now = subject.perform(Vec::new()).await.now;
        assert!(now < performed.now + LONGEST, "nobody was told of the slot that was given back");
    }
    assert_eq!(told.load(Ordering::SeqCst), 1);
    drop(watch);
}
