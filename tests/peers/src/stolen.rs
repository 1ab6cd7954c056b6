//! How soon who is more important has a lock, however many there are between it and the holder.

use std::time::{Duration, Instant};

use leasehold::SECOND;
use leasehold::client::LockOptions;
use leasehold::client::native::NativeLeasehold;

use crate::Anyhow;
use crate::contended::{milliseconds, quantile};
use crate::locked::{Held, Lock, TTL};

/// What a holder takes to finish.
const FINISHING: Duration = Duration::from_millis(10);

/// From the arrival of the highest of so many priorities until it has the lock which the lowest holds, and which all
/// between them want to steal: the median of many, in milliseconds.
pub async fn steal(
    one: &NativeLeasehold,
    other: &NativeLeasehold,
    priorities: i16,
    times: usize,
) -> Anyhow<f64> {
    let mut taken = Vec::new();
    for _ in 0..times {
        let held = thief(one, 0)?.acquire().await?;
        let claimed = held.claimed();
        let mut between = Vec::new();
        for priority in 1..priorities - 1 {
            let lock = thief(other, priority)?;
            between.push(tokio::spawn(async move { Anyhow::Ok(lock.acquire().await?.release().await?) }));
        }
        // They stand in line, and nothing is under way any more.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let highest = thief(other, priorities - 1)?;
        let came = Instant::now();
        let waits = tokio::spawn(async move {
            let locked = highest.acquire().await?;
            Anyhow::Ok((Instant::now(), locked))
        });
        claimed.await.ok_or("nobody claimed it")?;
        tokio::time::sleep(FINISHING).await;
        held.release().await?;
        let (had, locked): (Instant, Held) = waits.await??;
        taken.push(had - came);
        locked.release().await?;
        for task in between {
            task.await??;
        }
    }
    Ok(milliseconds(quantile(taken, 0.5)))
}

fn thief(store: &NativeLeasehold, priority: i16) -> Anyhow<Lock> {
    let (ttl, timeout) = (TTL * SECOND, 60 * SECOND);
    let options = LockOptions { ttl, timeout, priority, steal: Some(1.0), ..LockOptions::default() };
    Ok(store.lock_with(["stolen"], options)?)
}
