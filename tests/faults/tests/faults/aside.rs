//! Those who do not stand in the line, and those who stand there no more: nobody waits for them.

use std::time::Duration;

use leasehold::MILLISECOND;
use leasehold::client::{AcquireOptions, PoolOptions};
use leasehold::id::SlotId;
use leasehold_faults::{Lease, Place, Pool, eventually, options, soon};

/// An acquisition of this slot, or of any.
fn wanting(slot: Option<&str>, timeout: u64) -> AcquireOptions {
    let slots = slot.map(|slot| vec![SlotId::new(slot).expect("an id")]);
    AcquireOptions { slots, timeout: Some(timeout * MILLISECOND), ..AcquireOptions::default() }
}

async fn held(pool: &Pool, slot: &str) -> Lease {
    pool.acquire_with(wanting(Some(slot), 15_000)).await.expect("granted")
}

/// A caller that waits, for at most so many milliseconds.
async fn waiting(pool: &Pool, slot: Option<&str>, timeout: u64) -> tokio::task::JoinHandle<Option<Lease>> {
    let before = pool.statistics().waiting;
    let (caller, wanted) = (pool.clone(), wanting(slot, timeout));
    let waits = tokio::spawn(async move { caller.acquire_with(wanted).await.ok() });
    eventually("it waits", async || pool.statistics().waiting == before + 1).await;
    waits
}

async fn give_back(lease: Lease) {
    lease.unused().expect("held");
    lease.release().await.expect("its own");
}

// They took the places of those who have tickets, and whoever stood behind them was never called.
async fn who_chooses_for_itself_stands_in_nobodys_way(place: Place) {
    // They last longer than the test, so that nobody is called because one ran out.
    let slots = || PoolOptions { ttl: 5_000 * MILLISECOND, ..options(&["a", "b", "c"]) };
    let (ours, theirs) = (place.pool(slots(), None).await, place.pool(slots(), None).await);
    let (_a, b, c) = (held(&theirs, "a").await, held(&theirs, "b").await, held(&theirs, "c").await);
    let mut choosing = Vec::new();
    for _ in 0..8 {
        choosing.push(waiting(&ours, Some("a"), 20_000).await);
    }
    let first = waiting(&ours, None, 15_000).await;
    // It has asked the store, so that the second has no need to.
    tokio::time::sleep(Duration::from_millis(60)).await;
    let second = waiting(&ours, None, 15_000).await;
    give_back(b).await;
    let (_kept, _) = soon(Duration::from_secs(10), "the first", first).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    give_back(c).await;
    let (second, took) = soon(Duration::from_secs(10), "the second", second).await;
    assert!(second.expect("no panic").is_some());
    assert!(took < Duration::from_secs(2), "{took:?}");
    choosing.iter().for_each(tokio::task::JoinHandle::abort);
}

// One that cannot be had stood at the head of the line until its timeout, in the way of all processes.
async fn who_wants_more_than_there_is_stands_in_nobodys_way(place: Place) {
    let slots = options(&["a", "b"]);
    // Who names two of its own may not ask for three.
    let any = PoolOptions { slots: None, ..slots.clone() };
    let (theirs, ours) = (place.pool(slots, None).await, place.pool(any, None).await);
    let held = [held(&theirs, "a").await, held(&theirs, "b").await];
    let caller = ours.clone();
    let many = AcquireOptions { count: Some(3), ..wanting(None, 20_000) };
    let greedy = tokio::spawn(async move { caller.acquire_many_with(many).await.map(drop) });
    eventually("it waits", async || ours.statistics().waiting == 1).await;
    let modest = waiting(&theirs, None, 15_000).await;
    for lease in held {
        give_back(lease).await;
    }
    let (modest, took) = soon(Duration::from_secs(10), "the modest one", modest).await;
    assert!(modest.expect("no panic").is_some());
    assert!(took < Duration::from_secs(2), "{took:?}");
    greedy.abort();
}

on_both!(who_chooses_for_itself_stands_in_nobodys_way, who_wants_more_than_there_is_stands_in_nobodys_way,);
