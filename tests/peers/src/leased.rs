//! leasehold's own pairs of an acquisition and a release.

use std::time::{Duration, Instant};

use leasehold::client::native::open;
use leasehold::client::{PoolOptions, Unit};
use leasehold::slots::SlotSpec;
use leasehold::value::Value;
use leasehold::{NativeLease, SECOND};
use tokio::runtime::Handle;

use crate::Anyhow;
use crate::tally::rate;

/// The time to live of a lease, and for so long a new server grants nothing; the seed's locks have the same.
pub const TTL: u64 = 5 * SECOND;

/// A pool of a store that a URL names.
pub use leasehold::NativePool as Pool;

/// The accounts of a pool of `count`.
pub fn accounts(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("0x{number:064x}")).collect()
}

/// Options of a pool of `count` accounts.
pub fn options(count: usize) -> Anyhow<PoolOptions> {
    let spec = |id: String| Ok((id.clone(), SlotSpec { slot: leasehold::id::SlotId::new(&id)?, weight: 1 }));
    let slots = accounts(count).into_iter().map(spec).collect::<Anyhow<Vec<_>>>()?;
    Ok(PoolOptions { slots: Some(slots), ttl: TTL, timeout: 30 * SECOND, ..PoolOptions::default() })
}

/// Opens a pool of `count` accounts, with a connection and a courier of its own, and waits until it grants.
pub async fn pool(url: &str, name: &str, count: usize) -> Anyhow<Pool> {
    let store = open(&url.into(), &Value::Null, Unit::Milliseconds, Handle::current())?;
    let pool = store.pool_with(name, options(count)?, None).await?;
    give_back(pool.acquire().await?).await?;
    Ok(pool)
}

/// Pairs a second of as many callers as there are handles; a handle may be there more than once.
pub async fn pairs(handles: &[Pool], time: Duration) -> Anyhow<f64> {
    let began = Instant::now();
    let callers: Vec<_> = handles
        .iter()
        .cloned()
        .map(|pool| {
            tokio::spawn(async move {
                let mut count = 0u64;
                while began.elapsed() < time {
                    give_back(pool.acquire().await?).await?;
                    count += 1;
                }
                Anyhow::Ok(count)
            })
        })
        .collect();
    rate(callers, began).await
}

/// As after a transaction that was sent: its nonce was used.
async fn give_back(lease: NativeLease) -> Anyhow<()> {
    use_nonce(&lease)?;
    Ok(lease.release().await?)
}

/// Uses the lease's nonce, or the first one.
pub fn use_nonce(lease: &NativeLease) -> Anyhow<()> {
    Ok(lease.used(if lease.nonce().is_some() { None } else { Some(1) })?)
}
