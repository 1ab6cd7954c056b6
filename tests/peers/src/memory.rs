//! Pairs in memory, on one thread.

use std::time::Instant;

use leasehold::client::native::open;
use leasehold::client::{ReleaseOptions, Unit};
use leasehold::id::{Name, PoolName, SlotId};
use leasehold::nonce::{NonceRecord, Outcome};
use leasehold::runtime::TokioRuntime;
use leasehold::slots::{Choice, Claim, LeaseRef, MAX_PER_REQUEST, Reply, Request, SlotSpec, Strategy};
use leasehold::store::{MemoryStore, Store, StorePool};
use leasehold::value::Value;
use leasehold::{SECOND, store::memory::MemoryPool};

use crate::leased::{self, Pool, accounts, use_nonce};
use crate::series::{Pace, Series};
use crate::{Anyhow, runtime};

const SLOTS: [usize; 4] = [10, 1_000, 100_000, 1_000_000];
/// Pairs between two looks at the clock.
const STRETCH: u32 = 1_000;

/// Measures and writes all figures.
pub fn measure(pace: Pace) -> Anyhow<()> {
    let runtime = runtime()?;
    let (mut stores, mut clients) = (Vec::new(), Vec::new());
    for slots in SLOTS {
        let series = |layer| Series::new(format!("memory, {slots} slots, 1 thread, {layer}"), "leasehold");
        stores.push((store(slots)?, series("store")));
        let handle = open(
            &format!("memory:{slots}").as_str().into(),
            &Value::Null,
            Unit::Milliseconds,
            runtime.handle().clone(),
        )?;
        let pool = runtime.block_on(handle.pool_with("relayers", leased::options(slots)?, None))?;
        clients.push((pool, series("client")));
    }
    for round in 0..pace.rounds {
        for ((store, stores), (pool, clients)) in stores.iter_mut().zip(&mut clients) {
            stores.add(repeat(pace, || store_pair(store))?);
            clients.add(repeat(pace, || client_pair(pool))?);
        }
        eprintln!("memory: round {} of {}", round + 1, pace.rounds);
    }
    stores.iter().for_each(|(_, series)| series.print("pairs/s"));
    clients.iter().for_each(|(_, series)| series.print("pairs/s"));
    Ok(())
}

/// How often `work` is done in a second.
fn repeat(pace: Pace, mut work: impl FnMut() -> Anyhow<()>) -> Anyhow<f64> {
    let (began, mut count) = (Instant::now(), 0u64);
    while began.elapsed() < pace.time {
        for _ in 0..STRETCH {
            work()?;
        }
        count += u64::from(STRETCH);
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}

fn store(slots: usize) -> Anyhow<std::sync::Arc<MemoryPool>> {
    let name = PoolName { namespace: Name::new("peers")?, pool: Name::new("relayers")? };
    let pool = MemoryStore::new(TokioRuntime::store_clock()).pool(&name);
    let spec = |id: &String| Ok(SlotSpec { slot: SlotId::new(id)?, weight: 1 });
    for chunk in accounts(slots).chunks(MAX_PER_REQUEST) {
        // As a client gives them.
        let slots = SlotSpec::together(chunk.iter().map(spec).collect::<Anyhow<Vec<_>>>()?.iter());
        pool.perform_now(0, &Request::Define { slots, longest: leased::TTL, doubt_rest: 0 });
    }
    Ok(pool)
}

/// A claim and a release without anything that a client adds.
fn store_pair(pool: &std::sync::Arc<MemoryPool>) -> Anyhow<()> {
    let choice = Choice::Any { strategy: Strategy::Random, least: 1, most: 1 };
    let claim = Request::Claim(Claim { max_hold: 600 * SECOND, ..Claim::new(choice, 1, leased::TTL) });
    // The seed is the client's business; here the fence of the last grant will do.
    thread_local!(static SEED: std::cell::Cell<u32> = const { std::cell::Cell::new(1) });
    let seed = SEED.get().wrapping_mul(0x9E37_79B9).wrapping_add(1);
    SEED.set(seed);
    let Some((_, Reply::Granted(grants))) = pool.perform_now(seed, &claim) else {
        return Err("not granted".into());
    };
    let grant = grants.into_iter().next().ok_or("nothing granted")?;
    let next = if let NonceRecord::Known(nonce) = grant.nonce { nonce + 1 } else { 1 };
    let lease = LeaseRef { slot: grant.slot, fence: grant.fence, place: grant.place };
    let release = Request::Release { lease, outcome: Outcome::Used { next }, cooldown: 0 };
    match pool.perform_now(0, &release) {
        Some((_, Reply::Released)) => Ok(()),
        other => Err(format!("not released: {other:?}").into()),
    }
}

fn client_pair(pool: &Pool) -> Anyhow<()> {
    let lease = pool.try_acquire()?.ok_or("nothing granted")?;
    use_nonce(&lease)?;
    Ok(lease.release_now(ReleaseOptions::default()).ok_or("not in memory")??)
}
