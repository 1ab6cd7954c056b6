//! What callers are told of a store that cannot be used.

use std::time::Duration;

use leasehold::{Code, MILLISECOND};

use crate::{Pool, eventually, patient, soon, within};

/// What a caller may wait longer than it said, on a busy machine.
const SLACK: Duration = Duration::from_millis(700);

/// Checks that every kind of caller is told that the store cannot be used, and why, in time: `response` is
/// the response timeout of the pool's handle in milliseconds.
///
/// # Panics
/// If somebody is told something else, or too late.
pub async fn cannot_be_used(pool: &Pool, cause: &str, response: u64) {
    for timeout in [120, 900] {
        let callers: Vec<_> = (0..8)
            .map(|_| {
                let pool = pool.clone();
                tokio::spawn(async move { pool.acquire_with(within(timeout)).await })
            })
            .collect();
        let bound = Duration::from_millis(timeout) + SLACK;
        for caller in callers {
            let (outcome, _) = soon(bound, "an acquisition", caller).await;
            let error = outcome.expect("no panic").expect_err("the store cannot be used");
            assert_eq!(error.code(), Code::StoreUnavailable, "a caller with {timeout} ms: {error}");
            assert!(
                error.message().contains(cause) || timeout < response,
                "{cause} is not told after {timeout} ms: {error}"
            );
        }
    }
    let bound = Duration::from_millis(response) + SLACK;
    let (outcome, _) = soon(bound, "an attempt", pool.acquire_with(within(0))).await;
    let error = outcome.expect_err("the store cannot be used");
    assert_eq!(error.code(), Code::StoreUnavailable, "an attempt: {error}");
    let (outcome, _) = soon(bound + Duration::from_millis(response), "a count", pool.census()).await;
    assert_eq!(outcome.expect_err("the store cannot be used").code(), Code::StoreUnavailable);
}

/// Checks that the same pool gives leases again, and that nothing is held that nobody holds.
///
/// # Panics
/// If it does not.
pub async fn goes_on(pool: &Pool) {
    let lease = pool.acquire_with(within(15_000)).await.expect("it goes on");
    assert!(lease.remaining_micros() > 50 * MILLISECOND);
    lease.unused().expect("held");
    lease.release_with(Default::default()).await.expect("its own");
    eventually("nothing is held", async || {
        let census = pool.census().await.expect("a count");
        census.busy == 0
    })
    .await;
    drop(pool.acquire_with(patient()).await.expect("it goes on"));
}
