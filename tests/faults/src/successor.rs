//! Who has a slot after one whose lease a store has lost.

use std::time::{Duration, Instant};

use leasehold::Code;

use crate::{Lease, Pool, within};

const BOUND: Duration = Duration::from_secs(25);

/// Asks for the pool's only slot until it is granted, which must not be before `held` has ended.
///
/// # Panics
/// If it is, if its fence is no higher, or if it is not granted in time.
pub async fn successor(pool: &Pool, held: &Lease) -> Lease {
    let begun = Instant::now();
    loop {
        match pool.acquire_with(within(0)).await {
            Ok(lease) => {
                assert!(!held.is_held(), "granted while somebody holds it");
                let (before, fence) = (held.fence(), lease.fence());
                assert!(fence > before, "the fence fell: {fence} after {before}");
                return lease;
            }
            Err(error) => {
                assert!(matches!(error.code(), Code::Exhausted | Code::StoreUnavailable), "{error}");
            }
        }
        assert!(begun.elapsed() < BOUND, "never granted again");
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}
