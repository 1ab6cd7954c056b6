//! leasehold's named locks, as a program has them.

use std::time::{Duration, Instant};

use leasehold::SECOND;
use leasehold::client::native::{NativeLeasehold, NativeQuorum, open, open_quorum};
use leasehold::client::{LockOptions, Unit};
use leasehold::value::Value;
use tokio::runtime::Handle;

use crate::Anyhow;

/// The time to live of a lock in seconds, and for so long a new server grants none.
pub const TTL: u64 = 5;

/// A lock of a store that a URL names.
pub use leasehold::NativeLock as Lock;
/// A lock that is held.
pub use leasehold::NativeLocked as Held;

/// Opens a store, and waits until it grants locks.
pub async fn store(url: &str) -> Anyhow<NativeLeasehold> {
    let options = Value::map([("lock_ttl", Value::Number((TTL * 1_000) as f64))]);
    let store = open(&url.into(), &options, Unit::Milliseconds, Handle::current())?;
    lock(&store, "first")?.acquire().await?.release().await?;
    Ok(store)
}

/// Opens independent servers, and waits until they grant locks.
pub async fn quorum(urls: &[String]) -> Anyhow<NativeQuorum> {
    let servers = Value::List(urls.iter().map(|url| url.as_str().into()).collect());
    let options = Value::map([("lock_ttl", Value::Number((TTL * 1_000) as f64))]);
    let quorum = open_quorum(&servers, &options, Unit::Milliseconds, Handle::current())?;
    let options = LockOptions { timeout: 60 * SECOND, ..quorum.lock_defaults() };
    quorum.lock_with(["first"], options)?.acquire().await?.release().await?;
    Ok(quorum)
}

/// Pairs a second of one caller whose lock is granted by a majority.
pub async fn pairs_by_majority(quorum: &NativeQuorum, time: Duration) -> Anyhow<f64> {
    let lock = quorum.lock_with(["account:0"], quorum.lock_defaults())?;
    let (began, mut count) = (Instant::now(), 0u64);
    while began.elapsed() < time {
        lock.acquire().await?.release().await?;
        count += 1;
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}

/// A lock of this name, with renewals, which callers wait for long.
pub fn lock(store: &NativeLeasehold, name: &str) -> Anyhow<Lock> {
    let options = LockOptions { ttl: TTL * SECOND, timeout: 60 * SECOND, ..LockOptions::default() };
    Ok(store.lock_with([name], options)?)
}

/// Pairs a second of so many callers, each with a name of its own.
pub async fn pairs(store: &NativeLeasehold, callers: usize, time: Duration) -> Anyhow<f64> {
    let began = Instant::now();
    let counts = counts(store, callers, |caller| format!("account:{caller}"), time).await?;
    Ok(counts.into_iter().sum::<u64>() as f64 / began.elapsed().as_secs_f64())
}

/// How often each of so many callers takes the lock of its name, again and again.
pub async fn counts(
    store: &NativeLeasehold,
    callers: usize,
    name: impl Fn(usize) -> String,
    time: Duration,
) -> Anyhow<Vec<u64>> {
    let began = Instant::now();
    let mut tasks = Vec::new();
    for caller in 0..callers {
        let lock = lock(store, &name(caller))?;
        tasks.push(tokio::spawn(async move {
            let mut count = 0u64;
            while began.elapsed() < time {
                lock.acquire().await?.release().await?;
                count += 1;
            }
            Anyhow::Ok(count)
        }));
    }
    let mut counts = Vec::new();
    for task in tasks {
        counts.push(task.await??);
    }
    Ok(counts)
}
