//! The courier over a store whose clock does not do as it should.

use std::sync::atomic::AtomicU64;

use super::*;
use crate::client::faulty::Faulty;
use crate::client::{AcquireOptions, Leasehold, OpenOptions, Pool, PoolOptions, TokioRuntime};

async fn process(store: &Faulty) -> Pool<Faulty, TokioRuntime> {
    process_of(store, TokioRuntime::new(tokio::runtime::Handle::current())).await
}

async fn process_of<R: Runtime>(store: &Faulty, runtime: R) -> Pool<Faulty, R> {
    let handle = Leasehold::new(store.clone(), runtime, OpenOptions::default());
    let options = PoolOptions { ttl: 4 * SECOND, ..PoolOptions::slots(["a"]).unwrap() };
    handle.pool_with("p", options, None).await.unwrap()
}

// The answer that showed the jump brought a lease of what its holder believed in for seconds.
#[tokio::test]
async fn nothing_is_taken_that_was_granted_as_the_time_of_the_store_jumped() {
    let (ahead, clock) = (Arc::new(AtomicU64::new(0)), TokioRuntime::store_clock());
    let jumping = ahead.clone();
    let store = Faulty::new(Arc::new(move || clock() + jumping.load(std::sync::atomic::Ordering::Relaxed)));
    let (one, other) = (process(&store).await, process(&store).await);
    let at_once = || AcquireOptions { timeout: Some(0), ..AcquireOptions::default() };
    let lease = one.acquire_with(at_once()).await.unwrap();
    assert_eq!(other.acquire_with(at_once()).await.unwrap_err().code(), Code::Exhausted);
    ahead.store(5 * SECOND, std::sync::atomic::Ordering::Relaxed);
    let (first, second) = tokio::join!(other.acquire_with(at_once()), other.acquire_with(at_once()));
    assert_eq!(first.unwrap_err().code(), Code::Exhausted);
    assert_eq!(second.unwrap_err().code(), Code::Exhausted);
    assert!(lease.is_held());
    // And from then on the store knows.
    let error = other.acquire_with(at_once()).await.unwrap_err();
    assert!(error.message().contains("may have lost leases"), "{error}");
}

/// Its clock stands where it begins, as that of a worker between two questions.
#[derive(Clone)]
struct Standing(TokioRuntime);

impl Runtime for Standing {
    fn now(&self) -> Micros {
        0
    }

    fn wall(&self) -> Micros {
        self.0.wall()
    }

    fn sleep(&self, time: Micros) -> impl Future<Output = ()> + crate::client::MaybeSend {
        self.0.sleep(time)
    }

    fn spawn(&self, task: impl Future<Output = ()> + crate::client::MaybeSend + 'static) {
        self.0.spawn(task);
    }

    fn random(&self) -> u64 {
        self.0.random()
    }
}

// What was sent at 0 counted as sent before a jump, of which there had been none.
#[tokio::test]
async fn a_clock_that_begins_at_0_shows_no_jump() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let pool = process_of(&store, Standing(TokioRuntime::new(tokio::runtime::Handle::current()))).await;
    pool.acquire_with(AcquireOptions { timeout: Some(0), ..AcquireOptions::default() }).await.unwrap();
}
