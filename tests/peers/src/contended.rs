//! What callers of one lock have of it, and how soon.

use std::time::{Duration, Instant};

use leasehold::client::native::NativeLeasehold;

use crate::Anyhow;
use crate::connection::Connection;
use crate::locked::{Held, counts, lock};

/// How long each contender of a burst holds the lock.
const HOLD: Duration = Duration::from_millis(5);

/// How a burst went, in milliseconds.
pub struct Drain {
    /// From the arrival of all until the last has given the lock back.
    pub took: f64,
    /// The sum of the times for which they had it: timers are late, too.
    pub held: f64,
    /// 99 of 100 waited at most so long.
    pub wait_p99: f64,
}

/// So many contenders arrive together, and each holds the lock for a moment.
pub async fn drain(store: &NativeLeasehold, contenders: usize) -> Anyhow<Drain> {
    let began = Instant::now();
    let mut tasks = Vec::new();
    for _ in 0..contenders {
        let lock = lock(store, "burst")?;
        tasks.push(tokio::spawn(async move {
            let locked = lock.acquire().await?;
            let had = Instant::now();
            tokio::time::sleep(HOLD).await;
            let held = had.elapsed();
            locked.release().await?;
            Anyhow::Ok((had - began, held))
        }));
    }
    let (mut waits, mut held) = (Vec::new(), Duration::ZERO);
    for task in tasks {
        let (waited, had) = task.await??;
        waits.push(waited);
        held += had;
    }
    let wait_p99 = milliseconds(quantile(waits, 0.99));
    Ok(Drain { took: milliseconds(began.elapsed()), held: milliseconds(held), wait_p99 })
}

/// So many callers take the lock again and again; how many times the one with the fewest had it, for each time of the
/// mean.
pub async fn least_share(store: &NativeLeasehold, callers: usize, time: Duration) -> Anyhow<f64> {
    let counts = counts(store, callers, |_| "looped".to_owned(), time).await?;
    let mean = counts.iter().sum::<u64>() as f64 / callers as f64;
    Ok(counts.into_iter().min().unwrap_or(0) as f64 / mean)
}

/// How long after it was given back a waiter of another process has the lock: the median of many, in milliseconds.
pub async fn wake_up(one: &NativeLeasehold, other: &NativeLeasehold, times: usize) -> Anyhow<f64> {
    let mut taken = Vec::new();
    for time in 0..times {
        let (holder, waiter) = if time % 2 == 0 { (one, other) } else { (other, one) };
        let held = lock(holder, "woken")?.acquire().await?;
        let lock = lock(waiter, "woken")?;
        let waits = tokio::spawn(async move {
            let locked = lock.acquire().await?;
            Anyhow::Ok((Instant::now(), locked))
        });
        // It waits, and nothing is under way any more.
        tokio::time::sleep(Duration::from_millis(10)).await;
        let released = Instant::now();
        held.release().await?;
        let (had, locked): (Instant, Held) = waits.await??;
        taken.push(had.saturating_duration_since(released));
        locked.release().await?;
    }
    Ok(milliseconds(quantile(taken, 0.5)))
}

/// The median of many round trips, in milliseconds.
pub async fn round_trip(port: u16, times: usize) -> Anyhow<f64> {
    let mut connection = Connection::new(port, 0).await?;
    let mut taken = Vec::new();
    for _ in 0..times {
        // As after a wait, when processors rest as well.
        tokio::time::sleep(Duration::from_millis(10)).await;
        let sent = Instant::now();
        connection.call(&["PING"]).await?;
        taken.push(sent.elapsed());
    }
    Ok(milliseconds(quantile(taken, 0.5)))
}

/// That of these times below which this part of them lies.
pub fn quantile(mut times: Vec<Duration>, part: f64) -> Duration {
    times.sort_unstable();
    let at = (times.len() as f64 * part) as usize;
    times.get(at.min(times.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// A time as a figure.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}
