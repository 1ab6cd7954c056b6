#[cfg(feature = "crowds")]
mod crowds;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::client::native::{NativeLeasehold, connect};
use crate::client::{AcquireOptions, Keepalive, Leasehold, LockOptions, OpenOptions, PoolOptions};
use crate::error::Code;
use crate::id::SlotId;
use crate::runtime::{TokioRuntime, idle};
use crate::store::MemoryStore;
use crate::{MILLISECOND, SECOND};

// It leased as many, gave one and forgot the others; what it could not heed it passed over.
#[tokio::test(start_paused = true)]
async fn an_attempt_gives_one_slot_and_refuses_what_it_cannot_heed() {
    let handle = connect("memory:attempt").namespace("test").open().unwrap();
    let pool = handle.pool("p").slots(["a", "b"]).await.unwrap();
    for (options, field) in [
        (AcquireOptions { count: Some(2), ..AcquireOptions::default() }, "count"),
        (AcquireOptions { timeout: Some(SECOND), ..AcquireOptions::default() }, "try_acquire"),
        (AcquireOptions { steal: Some(1.0), ..AcquireOptions::default() }, "try_acquire"),
    ] {
        assert_eq!(pool.try_acquire_with(options).unwrap_err().field(), Some(field));
    }
    assert_eq!(pool.census().await.unwrap().busy, 0);
    let at_once = AcquireOptions { timeout: Some(0), count: Some(1), ..AcquireOptions::default() };
    assert!(pool.try_acquire_with(at_once).unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_handle_leases_only_slots_that_it_named_however_many_others_there_are() {
    let options = |slots: &[&str]| PoolOptions::slots(slots.iter().copied()).unwrap();
    let open =
        async |handle: &NativeLeasehold, slots| handle.pool_with("p", options(slots), None).await.unwrap();
    let handle = connect("memory:named").namespace("test").open().unwrap();
    let ours = open(&handle, &["a", "b"]).await;
    let at_once = || AcquireOptions { timeout: Some(0), ..AcquireOptions::default() };
    let lease = ours.acquire_with(at_once()).await.unwrap();
    assert!(["a", "b"].contains(&lease.slot()));
    drop(lease);
    // As many as before, but one of them is another's.
    ours.remove("a").await.unwrap();
    let theirs = open(&handle, &["c"]).await;
    let lease = ours.acquire_with(at_once()).await.unwrap();
    assert_eq!(lease.slot(), "b");
    let error = ours.acquire_with(at_once()).await.unwrap_err();
    assert_eq!(error.code(), Code::Exhausted);
    assert!(error.retry_after_micros().is_some_and(|time| time <= ours.core.options.ttl), "{error:?}");
    drop(lease);
    // Without a future too.
    let lease = ours.try_acquire().unwrap().expect("what is left of its own");
    assert_eq!(lease.slot(), "b");
    assert!(ours.try_acquire().unwrap().is_none());
    let lease = theirs.acquire_with(at_once()).await.unwrap();
    assert_eq!(lease.slot(), "c");
}

// It was told to the caller as `lost`, before it had a lease.
#[tokio::test(start_paused = true)]
async fn a_lease_that_ends_as_its_nonce_is_found_is_followed_by_another() {
    let (wall, step) = (AtomicU64::new(1_700_000_000 * SECOND), Arc::new(AtomicU64::new(300 * MILLISECOND)));
    let steps = step.clone();
    // Time passes whenever it is asked for, until the chain has been asked twice.
    let store = MemoryStore::new(Arc::new(move || wall.fetch_add(steps.load(Relaxed), Relaxed)));
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    let handle = Leasehold::new(store, runtime, OpenOptions::default()).unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let times = asked.clone();
    let read = move |_| {
        if times.fetch_add(1, Relaxed) == 1 {
            step.store(0, Relaxed);
        }
        std::future::ready(Ok::<_, String>(5))
    };
    let options = PoolOptions { ttl: 1_050 * MILLISECOND, ..PoolOptions::slots(["a"]).unwrap() };
    let pool = handle.pool_with("p", options, Some(Arc::new(read))).await.unwrap();
    let lease = pool.acquire().await.unwrap();
    assert_eq!((lease.nonce(), asked.load(Relaxed)), (Some(5), 2));
    assert!(lease.is_held());
}

// A program in Rust fills in the options itself. What is far out of range made sums that wrapped around.
#[tokio::test(start_paused = true)]
async fn times_that_are_out_of_range_are_refused_whoever_gives_them() {
    let handle = connect("memory:ranges").namespace("test").open().unwrap();
    let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    let of = AcquireOptions::default;
    for (options, field) in [
        (AcquireOptions { timeout: Some(u64::MAX), ..of() }, "timeout"),
        (AcquireOptions { ttl: Some(0), ..of() }, "ttl"),
        (AcquireOptions { keepalive: Some(Keepalive::Every(u64::MAX)), ..of() }, "keepalive"),
    ] {
        assert_eq!(pool.acquire_with(options).await.unwrap_err().field(), Some(field));
    }
    let forever = LockOptions { timeout: u64::MAX, ..LockOptions::default() };
    assert_eq!(handle.lock_with(["a"], forever).unwrap_err().field(), Some("timeout"));
    let lease = pool.acquire_with(of()).await.unwrap();
    let rest = crate::client::ReleaseOptions { cooldown: Some(u64::MAX) };
    assert_eq!(lease.release_with(rest).await.unwrap_err().field(), Some("cooldown"));
    assert!(lease.is_held());
    let of = || PoolOptions::slots(["a"]).unwrap();
    for (options, field) in [
        (PoolOptions { ttl: 0, ..of() }, "ttl"),
        (PoolOptions { ttl: u64::MAX, ..of() }, "ttl"),
        (PoolOptions { doubt_rest: u64::MAX, ..of() }, "doubt_rest"),
        (PoolOptions { ageing: u64::MAX, ..of() }, "ageing"),
    ] {
        assert_eq!(handle.pool_with("q", options, None).await.unwrap_err().field(), Some(field));
    }
}

// Nobody was told of it: who waited looked as the holder's lease would have ended, or seconds later.
#[tokio::test(start_paused = true)]
async fn who_waits_has_a_slot_that_is_given_back_into_a_rest_as_that_ends() {
    let handle = connect("memory:rest").namespace("test").open().unwrap();
    let options = PoolOptions {
        cooldown: 100 * MILLISECOND,
        timeout: 4 * SECOND,
        ..PoolOptions::slots(["a"]).unwrap()
    };
    let pool = handle.pool_with("p", options, None).await.unwrap();
    let held = pool.acquire_with(AcquireOptions::default()).await.unwrap();
    let waits = |slots: Option<&str>| {
        let slots = slots.map(|slot| vec![SlotId::new(slot).unwrap()]);
        let (pool, options) = (pool.clone(), AcquireOptions { slots, ..AcquireOptions::default() });
        tokio::spawn(async move { pool.acquire_with(options).await?.release().await })
    };
    let waiting = [None, Some("a"), None, Some("a")].map(waits);
    while pool.statistics().waiting < 4 {
        idle().await;
    }
    held.release().await.unwrap();
    for waiting in waiting {
        waiting.await.unwrap().expect("before the timeout");
    }
}

// It was told that a slot, or its chain, was amiss: not which of what pool, nor what to do.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn who_gets_nothing_is_told_of_what_and_what_to_do() {
    let handle = connect("memory:told").namespace("test").open().unwrap();
    let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    let named = |slots: &[&str], timeout| AcquireOptions {
        slots: Some(slots.iter().map(|slot| SlotId::new(slot).unwrap()).collect()),
        timeout: Some(timeout),
        ..AcquireOptions::default()
    };
    let error = pool.acquire_with(named(&["x"], 0)).await.unwrap_err();
    let lacking = "slots: the pool p has no slot x; add it, or open the pool with it";
    assert_eq!((error.field(), error.message()), (Some("slots"), lacking));
    let error = pool.acquire_with(named(&["a", "x"], 0)).await.unwrap_err();
    assert!(error.message().contains("the pool p lacks one of the 2 slots from a on"), "{error}");
    let error = pool.drain("x").await.unwrap_err();
    assert!(error.field() == Some("slot") && error.message().contains("the pool p has no slot x; add it"));

    let lease = pool.acquire_with(named(&["a"], 0)).await.unwrap();
    let error = pool.acquire_with(named(&["a"], MILLISECOND)).await.unwrap_err();
    assert!(error.message().starts_with("no slot of p came free before the timeout; give"), "{error}");
    lease.used(Some(12)).unwrap();
    lease.release().await.unwrap();
    pool.acquire_with(named(&["a"], 0)).await.unwrap().unknown().unwrap();
    let behind = |_| std::future::ready(Ok::<_, String>(10));
    let pool =
        handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), Some(Arc::new(behind))).await.unwrap();
    let error = pool.acquire_with(named(&["a"], 0)).await.unwrap_err();
    assert_eq!(error.code(), Code::Exhausted);
    for word in ["nonce 10 for a", "below 12", "resync with rewind", "without read_nonce"] {
        assert!(error.message().contains(word), "{error}");
    }
}
