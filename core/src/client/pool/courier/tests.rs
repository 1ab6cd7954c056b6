//! The courier over a store whose clock does not do as it should.

#[cfg(feature = "crowds")]
mod crowds;

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::client::faulty::{CUT, DEAD, DEAF, Faulty, HUNG, LOST, SILENT_ON_LOOKS, WELL};
use crate::client::{AcquireOptions, Leasehold, OpenOptions, Pool, PoolOptions};
use crate::runtime::warped::Warped;
use crate::runtime::{TokioRuntime, idle, tasks};

async fn process(store: &Faulty) -> Pool<Faulty, TokioRuntime> {
    process_of(store, TokioRuntime::new(tokio::runtime::Handle::current())).await
}

async fn process_of<R: Runtime>(store: &Faulty, runtime: R) -> Pool<Faulty, R> {
    process_with(store, runtime, &["a"]).await
}

async fn process_with<R: Runtime>(store: &Faulty, runtime: R, slots: &[&str]) -> Pool<Faulty, R> {
    let handle = Leasehold::new(store.clone(), runtime, OpenOptions::default()).unwrap();
    let options = PoolOptions { ttl: 4 * SECOND, ..PoolOptions::slots(slots.iter().copied()).unwrap() };
    handle.pool_with("p", options, None).await.unwrap()
}

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(std::time::Duration::from_secs(10), work).await.expect("in time")
}

fn within(timeout: Micros) -> AcquireOptions {
    AcquireOptions { timeout: Some(timeout), ..AcquireOptions::default() }
}

/// A store, and by how much its clock is ahead.
fn jumping() -> (Faulty, Arc<AtomicU64>) {
    let (ahead, clock) = (Arc::new(AtomicU64::new(0)), TokioRuntime::store_clock());
    let jumping = ahead.clone();
    (Faulty::new(Arc::new(move || clock() + jumping.load(Relaxed))), ahead)
}

// The answer that showed the jump brought a lease of what its holder believed in for seconds.
#[tokio::test(start_paused = true)]
async fn nothing_is_taken_that_was_granted_as_the_time_of_the_store_jumped() {
    let (store, ahead) = jumping();
    let (one, other) = (process(&store).await, process(&store).await);
    let at_once = || within(0);
    let lease = one.acquire_with(at_once()).await.unwrap();
    assert_eq!(other.acquire_with(at_once()).await.unwrap_err().code(), Code::Exhausted);
    ahead.store(5 * SECOND, Relaxed);
    let (first, second) = tokio::join!(other.acquire_with(at_once()), other.acquire_with(at_once()));
    assert_eq!(first.unwrap_err().code(), Code::Exhausted);
    assert_eq!(second.unwrap_err().code(), Code::Exhausted);
    assert!(lease.is_held());
    // And from then on the store knows.
    let error = other.acquire_with(at_once()).await.unwrap_err();
    assert!(error.message().contains("may have lost leases"), "{error}");
}

// Of an envelope that was sent twice nobody looked whether its answer showed a jump.
#[tokio::test(start_paused = true)]
async fn a_jump_is_seen_in_the_answer_to_what_was_sent_again_too() {
    let (store, ahead) = jumping();
    let (one, other) = (process(&store).await, process(&store).await);
    let lease = one.acquire_with(within(0)).await.unwrap();
    ahead.store(5 * SECOND, Relaxed);
    store.is(DEAD);
    let recovers = async {
        for _ in 0..100 {
            idle().await;
        }
        store.is(WELL);
    };
    let (outcome, ()) = tokio::join!(other.acquire_with(within(SECOND)), recovers);
    assert_eq!(outcome.unwrap_err().code(), Code::TimedOut);
    assert!(lease.is_held());
}

// Who had not asked for minutes took a step of seconds for drift.
#[tokio::test(start_paused = true)]
async fn who_was_silent_for_long_sees_a_step_of_seconds() {
    let (store, ahead) = jumping();
    let silence = Arc::new(AtomicU64::new(0));
    let passed = silence.clone();
    let later = Warped::new().clock(move |time| time + passed.load(Relaxed));
    let (one, other) = (process_of(&store, later.clone()).await, process_of(&store, later).await);
    silence.store(400 * SECOND, Relaxed);
    ahead.store(400 * SECOND, Relaxed);
    let lease = one.acquire_with(within(0)).await.unwrap();
    ahead.fetch_add(SECOND * 42 / 10, Relaxed);
    assert_eq!(other.acquire_with(within(0)).await.unwrap_err().code(), Code::Exhausted);
    assert!(lease.is_held());
}

// A host's thread that computed on after a call held up the renewals of its leases until they had ended.
#[tokio::test(start_paused = true)]
async fn what_a_host_holds_back_holds_up_no_renewal() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let pool = process(&store).await;
    let lease = pool.acquire_with(within(0)).await.unwrap();
    let courier = &pool.core.courier;
    let patience = courier.runtime.now() + 30 * SECOND;
    let inspect = Request::Inspect { slots: Vec::new() };
    let held = tasks::holding(|| courier.submit(inspect, patience));
    let reference = LeaseRef { slot: crate::id::SlotId::new("a").unwrap(), fence: lease.fence(), place: 0 };
    let renewals = courier.post_together(vec![(Request::Renew { lease: reference, ttl: SECOND }, patience)]);
    for renewal in renewals {
        let reply = soon(renewal).await.unwrap().take();
        assert!(matches!(reply, Reply::Renewed { .. }), "{reply:?}");
    }
    held.await.unwrap();
    tasks::let_go();
}

// The second call noted that somebody would look again, and what was to do so was held back with it.
#[tokio::test(start_paused = true)]
async fn two_calls_that_a_host_holds_back_hold_up_no_renewal() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let pool = process(&store).await;
    let lease = pool.acquire_with(within(0)).await.unwrap();
    let courier = &pool.core.courier;
    let inspect = || courier.submit(Request::Inspect { slots: Vec::new() }, Micros::MAX);
    let held = tasks::holding(|| [inspect(), inspect()]);
    soon(lease.renew()).await.unwrap();
    for held in held {
        held.await.unwrap();
    }
    tasks::let_go();
}

// Of two event loops that share a handle one stood still, and what the other asked for was told that the store did not answer.
#[tokio::test(start_paused = true)]
async fn what_a_host_holds_back_holds_up_no_other_thread() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let pool = process(&store).await;
    let courier = &pool.core.courier;
    let inspect = || courier.submit(Request::Inspect { slots: Vec::new() }, Micros::MAX);
    let held = tasks::holding(inspect);
    soon(inspect()).await.unwrap();
    held.await.unwrap();
    tasks::let_go();
}

// Whoever waited for a store that was gone did so until its time was over, with the handle closed.
#[tokio::test(start_paused = true)]
async fn who_is_with_a_store_that_does_not_answer_is_sent_away_as_the_handle_closes() {
    for state in [DEAD, HUNG] {
        let store = Faulty::new(TokioRuntime::store_clock());
        let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
        let handle = Leasehold::new(store.clone(), runtime, OpenOptions::default()).unwrap();
        let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
        store.is(state);
        let acquiring = tokio::spawn(async move { pool.acquire_with(within(600 * SECOND)).await });
        for _ in 0..100 {
            idle().await;
        }
        handle.close();
        assert_eq!(soon(acquiring).await.unwrap().unwrap_err().code(), Code::Cancelled, "{state}");
    }
}

// A process that was stopped between its first sending and its second, for longer than answers are remembered, had performed it
// anew.
#[tokio::test(start_paused = true)]
async fn what_may_have_been_performed_long_ago_is_not_performed_again() {
    let (store, ahead) = jumping();
    let passed = ahead.clone();
    // Both clocks go on while it is stopped.
    let pool = process_of(&store, Warped::new().clock(move |time| time + passed.load(Relaxed))).await;
    let lease = pool.acquire_with(within(0)).await.unwrap();
    store.is(CUT);
    let releasing = tokio::spawn(async move { lease.release().await });
    while pool.core.courier.trouble().is_none() {
        idle().await;
    }
    ahead.store(200 * SECOND, Relaxed);
    store.is(WELL);
    let error = soon(releasing).await.unwrap().unwrap_err();
    assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
}

// Who was told that it had failed, and left, had a lock ended by force that another had been granted since.
#[tokio::test(start_paused = true)]
async fn what_came_too_late_is_made_anew_for_nobody_who_has_left() {
    let (store, ahead) = jumping();
    let passed = ahead.clone();
    let pool = process_of(&store, Warped::new().clock(move |time| time + passed.load(Relaxed))).await;
    store.is(LOST);
    let disabling = {
        let pool = pool.clone();
        tokio::spawn(async move { pool.disable("a").await })
    };
    while pool.core.courier.trouble().is_none() {
        idle().await;
    }
    ahead.store(12 * SECOND, Relaxed);
    let error = soon(disabling).await.unwrap().unwrap_err();
    assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
    store.is(WELL);
    while pool.core.courier.trouble().is_some() {
        idle().await;
    }
    for _ in 0..100 {
        idle().await;
    }
    pool.acquire_with(within(0)).await.unwrap();
}

// It waited for the subscription until its time was over, with its slot free.
#[tokio::test(start_paused = true)]
async fn a_subscription_that_hangs_keeps_nobody_from_asking() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let (one, other) = (process(&store).await, process(&store).await);
    store.is(DEAF);
    for timeout in [SECOND * 3 / 2, 10 * SECOND] {
        let lease = one.acquire_with(within(0)).await.unwrap();
        let gives_back = async {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            lease.release().await.unwrap();
        };
        let (outcome, ()) = tokio::join!(other.acquire_with(within(timeout)), gives_back);
        outcome.unwrap().release().await.unwrap();
    }
}

// Locks and wallets are not opened, as pools are: what a later handle says a lock lasts, or by how much its servers lag, was never
// told where an earlier one had made the pool, and after a loss the store granted too early.
#[tokio::test(start_paused = true)]
async fn a_store_hears_what_a_lock_is_before_it_is_asked_for_one() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let told: fn(&Request) -> bool =
        |request| matches!(request, Request::Define { longest, .. } if *longest == 100 * SECOND);
    let _held = store.opened(10 * SECOND).lock("a").acquire().await.unwrap();
    let longer = store.opened(100 * SECOND);
    for name in ["b", "c"] {
        let _held = longer.lock(name).acquire().await.unwrap();
        assert_eq!(store.count(told), 1, "before the first, and once");
    }
}

// What was sent at 0 counted as sent before a jump, of which there had been none.
#[tokio::test(start_paused = true)]
async fn a_clock_that_begins_at_0_shows_no_jump() {
    let store = Faulty::new(TokioRuntime::store_clock());
    // It stands there, as that of a worker between two questions.
    let pool = process_of(&store, Warped::new().clock(|_| 0)).await;
    pool.acquire_with(AcquireOptions { timeout: Some(0), ..AcquireOptions::default() }).await.unwrap();
}

// What waited for the next envelope, or came later, waited for ever.
#[tokio::test]
async fn who_asks_in_a_runtime_that_ended_is_told_so() {
    let other = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let store = Faulty::new(TokioRuntime::store_clock());
    let pool = process_of(&store, TokioRuntime::new(other.handle().clone())).await;
    pool.acquire_with(within(0)).await.unwrap().release().await.unwrap();
    store.is(HUNG);
    let ask = || pool.core.courier.submit(Request::Inspect { slots: Vec::new() }, Micros::MAX);
    let mut asked: Vec<_> = (0..3).map(|_| ask()).collect();
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    asked.push(ask());
    other.shutdown_background();
    // Before the end is heard of, and after.
    asked.push(ask());
    for asked in asked {
        let told = tokio::time::timeout(std::time::Duration::from_secs(5), asked).await.expect("an end");
        let error = told.err().expect("no answer");
        assert_eq!(
            (error.code(), error.message()),
            (Code::Cancelled, "the runtime ended, or a task of it panicked; open anew")
        );
        let told = tokio::time::timeout(std::time::Duration::from_secs(5), ask()).await.expect("an end");
        assert!(told.is_err());
    }
    let error = pool.acquire_with(within(60 * SECOND)).await.unwrap_err();
    assert_eq!(error.code(), Code::Cancelled, "{error}");
}

/// A pool of one slot whose leases last for ten minutes, and by how much its process's clock, and its store's, is ahead.
async fn of_long_leases() -> (Faulty, Arc<AtomicU64>, Pool<Faulty, Warped>) {
    let (store, ahead) = jumping();
    let passed = ahead.clone();
    let runtime = Warped::new().clock(move |time| time + passed.load(Relaxed));
    let handle = Leasehold::new(store.clone(), runtime, OpenOptions::default()).unwrap();
    let options = PoolOptions { ttl: 600 * SECOND, ..PoolOptions::slots(["a"]).unwrap() };
    let pool = handle.pool_with("p", options, None).await.unwrap();
    (store, ahead, pool)
}

// It may have been performed, and so nobody sent it again after half a minute: the slot was nobody's for the rest of its time.
#[tokio::test(start_paused = true)]
async fn a_release_is_tried_for_as_long_as_the_lease_would_last() {
    let (store, ahead, pool) = of_long_leases().await;
    let lease = pool.acquire_with(within(0)).await.unwrap();
    lease.unused().unwrap();
    // The request is lost on its way.
    store.is(LOST);
    let releasing = tokio::spawn(async move { lease.release().await });
    while pool.core.courier.trouble().is_none() {
        idle().await;
    }
    ahead.store(35 * SECOND, Relaxed);
    let error = soon(releasing).await.unwrap().unwrap_err();
    assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
    let released = |request: &Request| matches!(request, Request::Release { .. });
    for _ in 0..100 {
        idle().await;
    }
    store.is(WELL);
    soon(store.performs(released, 0)).await;
    soon(pool.acquire_with(within(5 * SECOND))).await.unwrap();
}

// A list that took longer than anybody waits for was asked for again for half a minute, and all else waited behind it.
#[tokio::test(start_paused = true)]
async fn what_only_looks_holds_up_nobody_when_nobody_waits_for_it() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let options = OpenOptions { response_timeout: 100 * MILLISECOND, ..OpenOptions::default() };
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    let handle = Leasehold::new(store.clone(), runtime, options).unwrap();
    let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    let lease = pool.acquire_with(within(0)).await.unwrap();
    store.is(SILENT_ON_LOOKS);
    assert_eq!(soon(pool.list()).await.unwrap_err().code(), Code::StoreUnavailable);
    soon(lease.renew()).await.unwrap();
}

// "It may have been done or not: look when the store is back" was said of a wrong password.
#[tokio::test(start_paused = true)]
async fn of_what_never_reached_the_store_it_is_said_that_nothing_was_done() {
    let (store, _) = jumping();
    let runtime = || TokioRuntime::new(tokio::runtime::Handle::current());
    let options = OpenOptions { response_timeout: SECOND, ..OpenOptions::default() };
    for (state, said) in
        [(DEAD, "nothing was done"), (LOST, "may have been done"), (HUNG, "may have been done")]
    {
        store.is(state);
        let handle = Leasehold::new(store.clone(), runtime(), options.clone()).unwrap();
        let error = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap_err();
        assert_eq!(error.code(), Code::StoreUnavailable);
        assert!(error.message().contains(said), "{error}");
    }
}
