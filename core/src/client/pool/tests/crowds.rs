//! What is done for pools where there is room for it.

use super::*;
use crate::client::ReadNonce;
use crate::client::faulty::{Faulty, renews};
use crate::runtime::warped::Warped;
use crate::store::Store;

/// A pool of this store whose chain takes so long to name a nonce that a lease, which no renewal can prolong, is nearly over.
async fn hands_out_nothing_that_is_nearly_over<S: Store>(store: S, passed: Arc<AtomicU64>) {
    let reads = passed.clone();
    let runtime = Warped::new().clock(move |time| time + passed.load(Relaxed));
    let handle = Leasehold::new(store, runtime, OpenOptions::default()).unwrap();
    let read = move |_| {
        reads.fetch_add(940 * MILLISECOND, Relaxed);
        std::future::ready(Ok::<_, String>(5))
    };
    let read: ReadNonce = Arc::new(read);
    let acquire = async |pool, timeout| {
        let options =
            PoolOptions { ttl: SECOND, max_hold: Some(SECOND), ..PoolOptions::slots(["a"]).unwrap() };
        let pool = handle.pool_with(pool, options, Some(read.clone())).await.unwrap();
        pool.acquire_with(AcquireOptions { timeout: Some(timeout), ..AcquireOptions::default() }).await
    };
    // Once the chain has named it the nonce is known.
    let lease = acquire("p", 10 * SECOND).await.unwrap();
    assert_eq!(lease.nonce(), Some(5));
    assert!(lease.remaining_micros() >= SECOND / 4, "{} us", lease.remaining_micros());
    let error = acquire("q", 0).await.unwrap_err();
    assert_eq!(error.code(), Code::Exhausted, "{error}");
    assert!(error.message().contains("too late to leave a quarter of its ttl"), "{error}");
}

// Of a second there were 53 ms left: nobody looked any more once the chain had answered.
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_nearly_over_as_its_nonce_is_found_is_followed_by_another() {
    let clock = || {
        let (passed, clock) = (Arc::new(AtomicU64::new(0)), TokioRuntime::store_clock());
        let shown = passed.clone();
        (Arc::new(move || clock() + shown.load(Relaxed)), passed)
    };
    let (time, passed) = clock();
    hands_out_nothing_that_is_nearly_over(MemoryStore::new(time), passed).await;
    let (time, passed) = clock();
    hands_out_nothing_that_is_nearly_over(Faulty::new(time), passed).await;
}

// Those of a `max_hold` below half of their ttl were renewed twice each, one after the other, though nothing could prolong them: many took so
// long for that that they came too late.
#[tokio::test(start_paused = true)]
async fn what_no_renewal_can_prolong_is_not_renewed_as_its_nonce_is_found() {
    for (max_hold, slow, renewals) in
        [(10 * SECOND, 0, 0), (30 * SECOND, 16, 0), (0, 0, 0), (0, 16, 3), (31 * SECOND, 16, 3)]
    {
        let passed = Arc::new(AtomicU64::new(0));
        let (shown, reads, clock) = (passed.clone(), passed.clone(), TokioRuntime::store_clock());
        let store = Faulty::new(Arc::new(move || clock() + shown.load(Relaxed)));
        let runtime = Warped::new().clock(move |time| time + passed.load(Relaxed));
        let handle = Leasehold::new(store.clone(), runtime, OpenOptions::default()).unwrap();
        let read: ReadNonce = Arc::new(move |_| {
            reads.fetch_add(slow * SECOND / 3, Relaxed);
            std::future::ready(Ok::<_, String>(5))
        });
        let slots = PoolOptions::slots(["a", "b", "c"]).unwrap();
        let options = PoolOptions { ttl: 30 * SECOND, max_hold: Some(max_hold), ..slots };
        let pool = handle.pool_with("p", options, Some(read)).await.unwrap();
        let three =
            AcquireOptions { count: Some(3), timeout: Some(60 * SECOND), ..AcquireOptions::default() };
        let leases = pool.acquire_many_with(three).await.unwrap();
        assert!(leases.iter().all(|lease| lease.nonce() == Some(5)));
        assert_eq!(store.count(renews), renewals, "max_hold {max_hold} us, {slow} s");
    }
}
