//! Leases that are kept alive: they outlive failures that are shorter than they are, their holders hear of their end
//! before anybody else gets the slot, and they cost little.

use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use leasehold::client::{AcquireOptions, Keepalive, LockOptions, PoolOptions};
use leasehold::{Code, MILLISECOND, SECOND};
use leasehold_faults::{Place, Pool, calls, eventually, handle_with, opened, options, patient, soon, within};
use leasehold_servers::Proxy;

/// As long as an interval of a third leaves for it.
const RESPONSE: f64 = 900.0;
const TTL: u64 = 1_500 * MILLISECOND;

fn kept(slots: &[&str]) -> PoolOptions {
    PoolOptions { ttl: TTL, keepalive: Keepalive::Third, max_hold: Some(0), ..options(slots) }
}

async fn pool_at(url: &str, options: PoolOptions) -> Pool {
    opened(&handle_with(url, "faults", RESPONSE).expect("a good address"), options, None).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lease_that_is_kept_lasts_while_its_holder_lives_and_no_longer() {
    for place in [Place::memory(), Place::redis()] {
        let pool = pool_at(place.url(), kept(&["a"])).await;
        let lease = pool.acquire_with(patient()).await.expect("granted");
        let end = Instant::now() + Duration::from_micros(2 * TTL);
        while Instant::now() < end {
            assert!(lease.is_held());
            assert_eq!(pool.acquire_with(within(0)).await.expect_err("held").code(), Code::Exhausted);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let lost = lease.lost();
        drop(lease);
        // Given back in time is not lost.
        assert!(soon(Duration::from_secs(2), "its end", lost).await.0.is_none());
        drop(pool.acquire_with(within(5_000)).await.expect("granted anew"));
    }
}

// The thread that extends locks died for good at the first error, and every lock of the process with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn renewals_survive_errors() {
    let place = Place::redis();
    let proxy = Proxy::start(place.server().port()).expect("a proxy");
    // So long that a busy machine has time for what is tried again.
    let ttl = 3 * TTL;
    let pool = pool_at(&proxy.url(), PoolOptions { ttl, ..kept(&["a"]) }).await;
    let lease = pool.acquire_with(patient()).await.expect("granted");
    for round in 0..3 {
        match round {
            // A connection that breaks, a reply that never comes, a server that refuses for a time.
            0 => proxy.disconnect(),
            1 => proxy.drop_replies(1),
            _ => {
                proxy.cut();
                tokio::time::sleep(Duration::from_micros(ttl / 4)).await;
                proxy.heal().expect("healed");
            }
        }
        let mut last = lease.remaining_micros();
        let renewed = async || {
            let before = std::mem::replace(&mut last, lease.remaining_micros());
            last > before.max(ttl * 8 / 10)
        };
        eventually("it is renewed", renewed).await;
        tokio::time::sleep(Duration::from_micros(ttl)).await;
        assert!(lease.is_held(), "round {round}");
    }
    assert_eq!(pool.statistics().lost, 0);
}

// MasterLock 5: what was held when `start` was called again was renewed no more.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_handle_that_is_opened_and_closed_again_changes_nothing_for_what_is_kept() {
    let brief = LockOptions { ttl: TTL, timeout: 20 * SECOND, ..LockOptions::default() };
    for place in [Place::memory(), Place::redis()] {
        let open = || handle_with(place.url(), "faults", RESPONSE).expect("a good address");
        let first = open();
        let pool = opened(&first, kept(&["a"]), None).await;
        let lease = pool.acquire_with(patient()).await.expect("granted");
        let locked = first.lock_with(["a"], brief.clone()).expect("a good name").acquire().await;
        let locked = locked.expect("granted");
        for _ in 0..2 {
            let again = open();
            let pool = opened(&again, kept(&["a"]), None).await;
            assert_eq!(pool.acquire_with(within(0)).await.expect_err("held").code(), Code::Exhausted);
            let lock = again.lock_with(["a"], LockOptions { timeout: 0, ..brief.clone() });
            let refused = lock.expect("a good name").acquire().await.expect_err("held");
            assert_eq!(refused.code(), Code::Exhausted);
            again.close();
        }
        tokio::time::sleep(Duration::from_micros(TTL) * 3 / 2).await;
        assert!(lease.is_held() && locked.is_held());
        locked.release().await.expect("its own");
    }
}

// An extension that was refused was a line in a log: the block ran on to its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_holder_that_is_cut_off_is_told_before_another_gets_the_slot() {
    let place = Place::redis();
    let proxy = Proxy::start(place.server().port()).expect("a proxy");
    let (pool, other) = (pool_at(&proxy.url(), kept(&["a"])).await, pool_at(place.url(), kept(&["a"])).await);
    let lease = pool.acquire_with(patient()).await.expect("granted");
    let lost = lease.lost();
    let told = tokio::spawn(async move { (lost.await.expect("lost, not given back"), Instant::now()) });
    proxy.cut();
    let taken = other.acquire_with(within(10_000)).await.expect("granted after its end");
    let granted = Instant::now();
    let (error, at) = soon(Duration::from_secs(1), "the message", told).await.0.expect("no panic");
    assert_eq!(error.code(), Code::Lost);
    assert!(error.message().contains("its deadline passed"), "{error}");
    assert!(at <= granted, "told {:?} after the next holder", at - granted);
    assert!(!lease.is_held() && taken.is_held() && taken.fence() > lease.fence());
    // What the late holder does changes nothing.
    proxy.heal().expect("healed");
    assert_eq!(lease.release().await.expect_err("late").code(), Code::Lost);
    assert!(taken.is_held());
    assert_eq!((pool.statistics().lost, pool.statistics().expired), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_holder_whose_lease_is_broken_is_told_at_the_next_renewal() {
    for place in [Place::memory(), Place::redis()] {
        let pool = pool_at(place.url(), kept(&["a"])).await;
        let lease = pool.acquire_with(patient()).await.expect("granted");
        pool.break_lease("a").await.expect("broken");
        let (error, _) = soon(Duration::from_micros(TTL), "the message", lease.lost()).await;
        assert_eq!(error.expect("lost").code(), Code::Lost);
        assert!(!lease.is_held());
    }
}

// Whoever asks for it is told without renewals as well, and renewals by hand put the end off.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_end_of_a_lease_that_is_not_kept_is_told() {
    for place in [Place::memory(), Place::redis()] {
        let pool = pool_at(place.url(), PoolOptions { keepalive: Keepalive::Off, ..kept(&["a"]) }).await;
        let lease = pool.acquire_with(patient()).await.expect("granted");
        let mut lost = Box::pin(lease.lost());
        for _ in 0..4 {
            assert!(tokio::time::timeout(Duration::from_micros(TTL / 2), &mut lost).await.is_err());
            lease.renew().await.expect("renewed");
        }
        let (error, _) = soon(Duration::from_micros(2 * TTL), "the message", lost).await;
        assert_eq!(error.expect("lost").code(), Code::Lost);
        assert!(!lease.is_held());
        // Whoever asks only afterwards is told at once.
        let brief = AcquireOptions { ttl: Some(50 * MILLISECOND), ..patient() };
        let late = pool.acquire_with(brief).await.expect("granted");
        eventually("it ends", async || !late.is_held()).await;
        let told = pin!(late.lost()).poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(told, Poll::Ready(Some(error)) if error.code() == Code::Lost));
    }
}

// Found by nobody but the release, which is too late.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_loss_that_the_release_finds_is_told() {
    for place in [Place::memory(), Place::redis()] {
        let pool = pool_at(place.url(), PoolOptions { keepalive: Keepalive::Off, ..kept(&["a"]) }).await;
        let lease = pool.acquire_with(patient()).await.expect("granted");
        let lost = lease.lost();
        pool.break_lease("a").await.expect("broken");
        assert_eq!(lease.release().await.expect_err("late").code(), Code::Lost);
        let (error, _) = soon(Duration::from_secs(1), "the message", lost).await;
        assert!(error.expect("lost").message().contains("it has ended"));
        assert_eq!((pool.statistics().lost, pool.statistics().expired), (1, 0));
        // A release that cannot be told to anybody, and a drop, are told as what they are.
        let lease = pool.acquire_with(patient()).await.expect("granted");
        let lost = lease.lost();
        drop(lease);
        assert!(soon(Duration::from_secs(1), "its end", lost).await.0.is_none());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn renewals_travel_together_and_stop_with_their_owners() {
    const LEASES: usize = 1_000;
    let place = Place::redis();
    let names: Vec<String> = (0..LEASES).map(|at| format!("account-{at}")).collect();
    let settings =
        PoolOptions { ttl: 6 * SECOND, ..kept(&names.iter().map(String::as_str).collect::<Vec<_>>()) };
    let pool = pool_at(place.url(), settings).await;
    let all = AcquireOptions { count: Some(LEASES as u32), timeout: Some(20 * SECOND), ..patient() };
    let leases = pool.acquire_many_with(all).await.expect("granted");
    let (before, began) = (calls(place.server(), "evalsha"), Instant::now());
    tokio::time::sleep(Duration::from_millis(6_500)).await;
    assert!(leases.iter().all(leasehold_faults::Lease::is_held), "all outlive their time to live");
    let sent = calls(place.server(), "evalsha") - before;
    // An interval is 2 s, and renewals come up to an eighth of it early.
    let intervals = began.elapsed().as_secs_f64() / 1.75 + 1.0;
    println!("{LEASES} leases: {sent} requests in {intervals:.1} intervals");
    assert!(sent as f64 <= intervals * LEASES as f64 / 100.0, "{sent} requests in {intervals} intervals");
    drop(leases);
    eventually("all are given back", async || {
        pool.census().await.is_ok_and(|census| census.ready == LEASES as u32)
    })
    .await;
    let before = calls(place.server(), "evalsha");
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(calls(place.server(), "evalsha"), before, "nothing is renewed any more");
}

// An interval that leaves no time for a reply to be late was taken, and the lock expired unrenewed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_interval_that_leaves_no_time_is_refused() {
    let place = Place::redis();
    let handle = handle_with(place.url(), "faults", 300.0).expect("a good address");
    let long = |time| PoolOptions { keepalive: Keepalive::Every(time), ..kept(&["a"]) };
    // What the holder has of it: less by the hundredth by which clocks may differ, and by 2 ms.
    let most = TTL - TTL / 100 - 302 * MILLISECOND;
    let error = handle.pool_with("relayers", long(most), None).await.expect_err("too long");
    assert_eq!((error.code(), error.field()), (Code::InvalidArgument, Some("keepalive")));
    let pool = opened(&handle, long(most - MILLISECOND), None).await;
    let short = AcquireOptions { ttl: Some(TTL / 2), ..patient() };
    let error = pool.acquire_with(short).await.expect_err("too long for this one");
    assert_eq!((error.code(), error.field()), (Code::InvalidArgument, Some("keepalive")));
}
