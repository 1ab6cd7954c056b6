//! What the courier does where many wait.

mod handed_over;

use super::*;
use crate::client::faulty::{SLOW, releases};
use crate::runtime::idle;

// It was tried for half a minute, whoever left: the slot was nobody's for the rest of its time.
#[tokio::test(start_paused = true)]
async fn the_release_of_a_lease_that_nobody_has_seen_is_tried_for_as_long_as_it_would_last() {
    let (store, ahead, pool) = of_long_leases().await;
    store.is(SLOW);
    let mut acquiring = Box::pin(pool.acquire_with(within(SECOND)));
    assert!(futures_util::FutureExt::now_or_never(&mut acquiring).is_none());
    for _ in 0..100 {
        idle().await;
    }
    drop(acquiring);
    // As the grant is on its way.
    store.is(LOST);
    while pool.core.courier.trouble().is_none() {
        idle().await;
    }
    ahead.store(35 * SECOND, Relaxed);
    // It is told so as the release is tried again.
    let inspect = Request::Inspect { slots: Vec::new() };
    let error = soon(pool.core.courier.submit(inspect, 0)).await.err().expect("no answer");
    assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
    store.is(WELL);
    soon(store.performs(releases, 0)).await;
    soon(pool.acquire_with(within(5 * SECOND))).await.unwrap();
}

/// So many claims of a slot that is held, and for how long each is waited for.
fn in_vain(count: u128) -> Vec<(Request, Micros)> {
    let claim = |holder| {
        let slots = vec![crate::id::SlotId::new("a").unwrap()];
        let choice = crate::slots::Choice::Among { slots, count: 1 };
        (Request::Claim(crate::slots::Claim::new(choice, holder, SECOND)), Micros::MAX)
    };
    (0..count).map(claim).collect()
}

// Behind 45,000 who claimed at once it came too late: what was held was lost, and the store had answered all the time.
#[tokio::test(start_paused = true)]
async fn no_renewal_waits_behind_all_who_claim() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let pool = process(&store).await;
    let lease = pool.acquire_with(within(0)).await.unwrap();
    store.is(SLOW);
    let _claims = pool.core.courier.post_together(in_vain(20_000));
    soon(lease.renew()).await.unwrap();
    let claimed = store.count(|request| matches!(request, Request::Claim(_)));
    assert!(claimed < 2_000, "{claimed}");
}

// "The store cannot be used: it gave no answer in time", of one that answered all the time.
#[tokio::test(start_paused = true)]
async fn who_waits_here_for_too_long_behind_others_is_told_so() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let pool = process(&store).await;
    let lease = pool.acquire_with(within(0)).await.unwrap();
    store.is(SLOW);
    let _claims = pool.core.courier.post_together(in_vain(20_000));
    let error = pool.acquire_with(within(300 * MILLISECOND)).await.unwrap_err();
    assert_eq!(error.code(), Code::Busy, "{error}");
    assert!(error.message().contains("nothing is held"), "{error}");
    drop(lease);
}

// It was refused as too many requests waited, and sent no more: the nonce that was used was not recorded, and the slot was nobody's for
// the rest of its time.
#[tokio::test(start_paused = true)]
async fn what_is_given_back_has_room_however_many_wait() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let options = OpenOptions { response_timeout: 200 * MILLISECOND, ..OpenOptions::default() };
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    let handle = Leasehold::new(store.clone(), runtime, options).unwrap();
    let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    let lease = pool.acquire_with(within(0)).await.unwrap();
    lease.resync(7, true).await.unwrap();
    store.is(HUNG);
    let courier = &pool.core.courier;
    let first = courier.post_together(in_vain(1));
    // From here on no other envelope sets out.
    while courier.trouble().is_none() {
        idle().await;
    }
    let others = courier.post_together(in_vain(QUEUE as u128));
    assert_eq!(courier.lock().waiting(), QUEUE);
    let error = soon(courier.submit(Request::List, 0)).await.err().expect("no room");
    assert_eq!(error.code(), Code::Busy, "{error}");
    lease.used(None).unwrap();
    let error = soon(lease.release()).await.unwrap_err();
    assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
    drop((first, others));
    store.is(WELL);
    soon(store.performs(releases, 0)).await;
    assert_eq!(soon(pool.acquire_with(within(5 * SECOND))).await.unwrap().nonce(), Some(8));
}

#[test]
fn renewals_go_first_and_leave_others_their_share() {
    let mut state = State::default();
    for parcel in queue_of("cr") {
        drop(state.enqueue(parcel.request, 0, Micros::MAX));
    }
    for fence in 0..200 {
        let lease = LeaseRef { slot: crate::id::SlotId::new("a").unwrap(), fence, place: 0 };
        drop(state.enqueue(Request::Renew { lease, ttl: SECOND }, 0, Micros::MAX));
    }
    assert_eq!((state.waiting(), state.lane_for_more(0)), (202, Some(0)));
    let batch = state.load(0, 0);
    let fence = |parcel: &Parcel| match &parcel.request {
        Request::Renew { lease, .. } => Some(lease.fence),
        _ => None,
    };
    let renewals: Vec<_> = batch.iter().map_while(fence).collect();
    assert_eq!(renewals, (0..126).collect::<Vec<_>>());
    assert_eq!((batch.len(), state.waiting()), (BATCH_OF_RENEWALS, 74));
}

// It was kept with what travelled along: 8.6 MB for 200,000 slots, for over two minutes and once for each client.
#[test]
fn a_list_goes_alone_and_holds_nothing_up() {
    let mut state = State::default();
    let mut wanted = Vec::new();
    let mut add = |state: &mut State, request| wanted.push(state.enqueue(request, 0, 0));
    let renewal = || {
        let lease = LeaseRef { slot: crate::id::SlotId::new("a").unwrap(), fence: 1, place: 0 };
        Request::Renew { lease, ttl: SECOND }
    };
    let look = || Request::Inspect { slots: Vec::new() };
    // Nobody waits any more for the first two.
    drop((state.enqueue(look(), 0, 0), state.enqueue(Request::List, 0, 0)));
    for request in [look(), Request::List, Request::List, renewal(), look(), renewal()] {
        add(&mut state, request);
    }
    let mut next = || requests(&state.load(0, 0));
    assert_eq!(next(), [renewal(), renewal()]);
    assert_eq!(next(), [look()]);
    assert_eq!(next(), [Request::List]);
    assert_eq!(next(), [Request::List]);
    assert_eq!(next(), [look()]);
    assert_eq!(next(), []);
    // Also where renewals come again and again.
    add(&mut state, Request::List);
    add(&mut state, renewal());
    assert_eq!(requests(&state.load(0, 0)), [Request::List]);
    assert_eq!(requests(&state.load(0, 0)), [renewal()]);
}

/// Parcels: `c` claims and waits, `t` does not wait, `r` gives back, `w` gives up a ticket; each with its number.
fn queue_of(what: &str) -> VecDeque<Parcel> {
    let parcel = |(number, kind): (usize, char)| {
        let slot = crate::id::SlotId::new("a").unwrap();
        let choice = crate::slots::Choice::Named { slots: vec![slot.clone()] };
        let lease = LeaseRef { slot, fence: number as u64, place: 0 };
        let request = match kind {
            'r' => Request::Release { lease, outcome: Outcome::Unused, cooldown: 0 },
            'w' => Request::Withdraw { holder: number as u128 },
            _ => Request::Claim(crate::slots::Claim::new(choice, number as u128, SECOND)),
        };
        let patience = if kind == 'c' { SECOND } else { 0 };
        Parcel { request, patience, stands: SECOND, caller: oneshot::channel().0 }
    };
    what.chars().enumerate().map(parcel).collect()
}

fn numbers(queue: &VecDeque<Parcel>) -> Vec<u64> {
    let number = |parcel: &Parcel| match &parcel.request {
        Request::Release { lease, .. } => lease.fence,
        Request::Withdraw { holder } => *holder as u64,
        Request::Claim(claim) => claim.holder as u64,
        other => panic!("{other:?}"),
    };
    queue.iter().map(number).collect()
}

// Ten that gave back went in the one half, and the ten who waited for that in the other: there were two ways for each.
#[test]
fn what_is_given_back_goes_with_who_waits_for_it() {
    for (queue, order) in [
        ("rrrccc", vec![0, 3, 1, 4, 2, 5]),
        ("crrr", vec![1, 0, 2, 3]),
        ("cccr", vec![3, 0, 1, 2]),
        // Whoever cannot wait may have given back what it claims.
        ("rrrcct", vec![0, 1, 2, 3, 4, 5]),
        // Who gives up its ticket has claimed before.
        ("rrccw", vec![0, 1, 2, 3, 4]),
    ] {
        let mut parcels = queue_of(queue);
        pair_up(&mut parcels, 6);
        assert_eq!(numbers(&parcels), order, "{queue}");
    }
}

// What the last of the one half gave back was claimed by the first of the other: the store called another for it meanwhile, who then
// asked in vain.
#[test]
fn the_last_pair_of_an_envelope_is_not_parted() {
    let mut state = State::default();
    let mut wanted = Vec::new();
    for parcel in queue_of("rrrrrrrrrccccccccc") {
        wanted.push(state.enqueue(parcel.request, parcel.patience, 0));
    }
    assert_eq!(state.lanes.share(18), 9);
    let batch = state.load(0, 0).into();
    assert_eq!(numbers(&batch), [0, 1, 2, 3, 4, 9, 10, 11, 12, 13]);
    assert_eq!(state.load(1, 0).len(), 8);
}

// Each envelope moved the whole queue, of which there may be a hundred thousand after an outage.
#[test]
fn what_is_far_behind_is_not_looked_at() {
    let mut parcels = queue_of("rrccrctw");
    pair_up(&mut parcels, 4);
    assert_eq!(numbers(&parcels), [0, 2, 1, 3, 4, 5, 6, 7]);
}
