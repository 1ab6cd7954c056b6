//! What a server is asked while nothing happens: by those who wait, and for those who hold.

use std::time::{Duration, Instant};

use leasehold::client::native::NativeLeasehold;
use leasehold::client::{AcquireOptions, Keepalive, PoolOptions};
use leasehold::{MILLISECOND, SECOND};
use leasehold_servers::RedisServer;

use crate::Anyhow;
use crate::leased::options;
use crate::locked::lock;

/// Commands for each of so many waiters in five seconds, while the holder does nothing but hold.
pub async fn of_waiters(
    server: &RedisServer,
    store: &NativeLeasehold,
    waiters: usize,
    time: Duration,
) -> Anyhow<f64> {
    let held = lock(store, "held")?.acquire().await?;
    let mut tasks = Vec::new();
    for _ in 0..waiters {
        let lock = lock(store, "held")?;
        tasks.push(tokio::spawn(async move { Anyhow::Ok(lock.acquire().await?.release().await?) }));
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let (before, began) = (scripts(server)?, Instant::now());
    tokio::time::sleep(time).await;
    let asked = (scripts(server)? - before) as f64;
    let fives = began.elapsed().as_secs_f64() / 5.0;
    held.release().await?;
    for task in tasks {
        task.await??;
    }
    Ok(asked / waiters as f64 / fives)
}

/// Requests for each hundred of so many leases in an interval, which are renewed and otherwise left alone.
pub async fn of_leases(server: &RedisServer, store: &NativeLeasehold, leases: usize) -> Anyhow<f64> {
    const INTERVAL: u64 = SECOND;
    const INTERVALS: u32 = 4;
    // Long enough to be renewed however busy the machine is, and short enough for a new server.
    let options = PoolOptions {
        ttl: 5 * INTERVAL,
        max_hold: Some(0),
        keepalive: Keepalive::Every(INTERVAL),
        ..options(leases)?
    };
    let pool = store.pool_with("renewed", options, None).await?;
    let mut held = Vec::new();
    while held.len() < leases {
        let count = (leases - held.len()).min(1_000) as u32;
        let many =
            AcquireOptions { count: Some(count), timeout: Some(20 * SECOND), ..AcquireOptions::default() };
        held.extend(pool.acquire_many_with(many).await?);
    }
    let (before, began) = (scripts(server)?, Instant::now());
    tokio::time::sleep(Duration::from_micros(INTERVAL + MILLISECOND) * INTERVALS).await;
    let asked = (scripts(server)? - before) as f64;
    let intervals = began.elapsed().as_secs_f64() / Duration::from_micros(INTERVAL).as_secs_f64();
    if held.iter().any(|lease| !lease.is_held()) {
        return Err("a lease was lost".into());
    }
    Ok(asked / intervals / (leases as f64 / 100.0))
}

/// How many scripts a server has run.
fn scripts(server: &RedisServer) -> Anyhow<u64> {
    let info = server.command(&["INFO", "commandstats"])?;
    let line = info
        .as_text()
        .and_then(|text| text.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls=")));
    let digits = line.and_then(|line| line.split(',').next()).ok_or("no scripts were run")?;
    Ok(digits.parse()?)
}
