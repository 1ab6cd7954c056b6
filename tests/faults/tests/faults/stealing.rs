//! Stealing by priority, between handles that are processes as far as the store can tell.

use std::time::{Duration, Instant};

use leasehold::client::{AcquireOptions, Keepalive, LockOptions, PoolOptions};
use leasehold::error::Code;
use leasehold::{Micros, SECOND};
use leasehold_faults::{Place, Prize, eventually, options, soon};

/// What the handles of a place give their locks to live.
const TTL: Micros = 2 * SECOND;
const SOON: Duration = Duration::from_secs(10);

fn thief(priority: i16, factor: f64) -> LockOptions {
    LockOptions { priority, steal: Some(factor), ..plain(priority) }
}

fn plain(priority: i16) -> LockOptions {
    LockOptions { priority, ttl: TTL, timeout: 30 * SECOND, ..LockOptions::default() }
}

/// A fresh server grants no lock until those have ended that it may have forgotten.
async fn ready(place: &Place) {
    Prize::name(&place.handle(), "first").win().await.expect("granted").give_back().await.expect("its own");
}

async fn a_holder_that_listens_yields_to_who_is_more_urgent(place: Place) {
    ready(&place).await;
    let (here, there) = (place.handle(), place.handle());
    let low = here.lock_with(["red"], plain(0)).expect("a lock").acquire().await.expect("free");
    let high = there.lock_with(["red"], thief(1, 1.0)).expect("a lock");
    let fence = low.fence();
    let yields = tokio::spawn(async move {
        let claimed = low.claimed().await.expect("a claimant");
        assert!(low.is_claimed() && low.is_held());
        low.release().await.expect("its own");
        claimed.code()
    });
    // Its keepalive would hold it for ever.
    let (stolen, took) = soon(SOON, "a steal", high.acquire()).await;
    assert_eq!(yields.await.expect("no panic"), Code::Claimed);
    assert!(stolen.expect("stolen").fence() > fence);
    let measured = Duration::from_micros(high.handshake());
    assert!(measured > Duration::ZERO && measured <= took, "{measured:?} of {took:?}");
}

async fn a_holder_that_does_not_listen_has_its_lease_to_the_end_and_no_longer(place: Place) {
    ready(&place).await;
    let (here, there) = (place.handle(), place.handle());
    let low = here.lock_with(["red"], plain(0)).expect("a lock").acquire().await.expect("free");
    let high = there.lock_with(["red"], thief(1, 1.0)).expect("a lock").acquire().await.expect("stolen");
    // Nobody had told it, and it knows all the same.
    assert!(!low.is_held());
    assert!(high.fence() > low.fence());
    assert_eq!(low.release().await.expect_err("lost").code(), Code::Lost);
    high.release().await.expect("its own");
}

async fn a_lease_whose_claimant_went_is_renewed_again(place: Place) {
    ready(&place).await;
    let (here, there) = (place.handle(), place.handle());
    let low = here.lock_with(["red"], plain(0)).expect("a lock").acquire().await.expect("free");
    let high = there.lock_with(["red"], thief(1, 1.0)).expect("a lock");
    let waits = tokio::spawn(async move { high.acquire().await.map(drop) });
    assert!(soon(SOON, "a notice", low.claimed()).await.0.is_some());
    waits.abort();
    eventually("it is claimed no more", async || !low.is_claimed()).await;
    // For longer than it had left.
    let lasts = Instant::now() + 2 * Duration::from_micros(TTL);
    while Instant::now() < lasts {
        assert!(low.is_held());
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    low.release().await.expect("its own");
}

// Of a claim that was made before the holder cared to hear of one, it once heard nothing: a lease that nothing renews was
// held to its end.
async fn a_holder_that_listens_late_hears_of_who_claimed_before(place: Place) {
    ready(&place).await;
    let options = PoolOptions { ttl: 8 * SECOND, timeout: 30 * SECOND, ..options(&["a"]) };
    let (here, there) = (place.pool(options.clone(), None).await, place.pool(options, None).await);
    let low = here.acquire().await.expect("free");
    let waits = tokio::spawn({
        let there = there.clone();
        async move { there.acquire().priority(1).steal().await.map(drop) }
    });
    eventually("the thief waits", async || there.statistics().waiting == 1).await;
    assert!(!low.is_claimed(), "nobody has asked");
    let (told, _) = soon(SOON, "a notice", low.claimed()).await;
    assert_eq!(told.expect("a claimant").code(), Code::Claimed);
    low.release().await.expect("its own");
    soon(SOON, "a steal", waits).await.0.expect("no panic").expect("stolen");
}

// The chain of thieves: all of them wait for the one holder.
async fn a_chain_of_thieves_is_one_handshake_and_the_highest_has_it_first(place: Place) {
    ready(&place).await;
    let low = place.handle().lock_with(["red"], plain(0)).expect("a lock").acquire().await.expect("free");
    let mut waits = Vec::new();
    for priority in 1..=20 {
        let high = place.handle().lock_with(["red"], thief(priority, 1.0)).expect("a lock");
        waits.push(tokio::spawn(async move {
            let stolen = high.acquire().await.expect("stolen");
            let fence = stolen.fence();
            stolen.release().await.expect("its own");
            fence
        }));
    }
    // The last one may come to the store when its turn is over, and nobody is above it.
    let claims = soon(SOON, "a notice", async {
        while low.claimed().await.is_none() {
            tokio::task::yield_now().await;
        }
    });
    claims.await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    low.release().await.expect("its own");
    let mut fences = Vec::new();
    for wait in waits {
        fences.push(soon(SOON, "its turn", wait).await.0.expect("no panic"));
    }
    assert!(fences.is_sorted_by(|lower, higher| lower > higher), "{fences:?}");
}

// With a factor below 1 the holder may be at work still: only the fence tells.
async fn a_hasty_thief_does_not_wait_for_the_end_and_its_fence_is_higher(place: Place) {
    ready(&place).await;
    let (here, there) = (place.handle(), place.handle());
    // A long lease that nobody renews, and nobody looks after.
    let options = LockOptions { keepalive: Keepalive::Off, ..plain(0) };
    let low = here.lock_with(["red"], options).expect("a lock").acquire().await.expect("free");
    let begun = Instant::now();
    let high = there.lock_with(["red"], thief(1, 0.1)).expect("a lock").acquire().await.expect("stolen");
    let took = begun.elapsed();
    assert!(took >= Duration::from_millis(190), "{took:?} is less than a tenth");
    // On a slow machine the lease may have ended meanwhile.
    assert!(low.is_held() || took > Duration::from_millis(1_500), "{took:?}");
    assert!(high.fence() > low.fence());
    assert!(low.release().await.is_err());
    assert!(high.is_held());
}

async fn slots_of_a_pool_are_stolen_too(place: Place) {
    let options = PoolOptions {
        ttl: TTL,
        timeout: 30 * SECOND,
        keepalive: Keepalive::Every(TTL / 8),
        ..options(&["a", "b"])
    };
    let (here, there) = (place.pool(options.clone(), None).await, place.pool(options, None).await);
    let as_priority = |priority| AcquireOptions { priority: Some(priority), ..AcquireOptions::default() };
    let middle = here.acquire_with(as_priority(1)).await.expect("free");
    let low = here.acquire_with(as_priority(-1)).await.expect("free");
    let fence = low.fence();
    let thief = AcquireOptions { steal: Some(1.0), ..as_priority(1) };
    let yields = tokio::spawn(async move {
        assert!(low.claimed().await.is_some());
        assert_eq!(low.renew().await.expect_err("claimed").code(), Code::Claimed);
        low.release().await.expect("its own");
    });
    let stolen = soon(SOON, "a steal", there.acquire_with(thief)).await.0.expect("stolen");
    yields.await.expect("no panic");
    assert!(stolen.fence() > fence && stolen.slot() != middle.slot());
    assert!(!middle.is_claimed() && middle.is_held());
    assert!(there.statistics().handshake_micros > 0);
}

on_both!(
    a_holder_that_listens_yields_to_who_is_more_urgent,
    a_holder_that_does_not_listen_has_its_lease_to_the_end_and_no_longer,
    a_lease_whose_claimant_went_is_renewed_again,
    a_holder_that_listens_late_hears_of_who_claimed_before,
    a_chain_of_thieves_is_one_handshake_and_the_highest_has_it_first,
    a_hasty_thief_does_not_wait_for_the_end_and_its_fence_is_higher,
    slots_of_a_pool_are_stolen_too,
);
