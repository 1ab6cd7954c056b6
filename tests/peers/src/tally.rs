//! What many callers do in a second.

use std::time::Instant;

use tokio::task::JoinHandle;

use crate::Anyhow;

/// How much callers did in a second since they began, of whom each says how often it did it.
pub async fn rate(callers: Vec<JoinHandle<Anyhow<u64>>>, began: Instant) -> Anyhow<f64> {
    let mut total = 0;
    for caller in callers {
        total += caller.await??;
    }
    Ok(total as f64 / began.elapsed().as_secs_f64())
}
