//! Waiting with a bound.

use std::future::Future;
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(5);
const BOUND: Duration = Duration::from_secs(20);

/// Waits until something is so.
///
/// # Panics
/// If it is not within 20 s.
pub async fn eventually(what: &str, mut done: impl AsyncFnMut() -> bool) {
    let begun = Instant::now();
    while !done().await {
        assert!(begun.elapsed() < BOUND, "it never came to this: {what}");
        tokio::time::sleep(POLL).await;
    }
}

/// The output of something that must end within this time, and how long it took.
///
/// # Panics
/// If it takes longer.
pub async fn soon<T>(bound: Duration, what: &str, work: impl Future<Output = T>) -> (T, Duration) {
    let begun = Instant::now();
    match tokio::time::timeout(bound, work).await {
        Ok(output) => (output, begun.elapsed()),
        Err(_) => panic!("{what} took longer than {bound:?}"),
    }
}
