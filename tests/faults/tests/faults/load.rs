//! Load: how much a server is asked for one grant.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use leasehold::MILLISECOND;
use leasehold::client::{AcquireOptions, PoolOptions};
use leasehold_faults::{Place, calls, eventually, keys, options, patient, soon};

const TEN: [&str; 10] = ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"];

fn lasting(slots: &[&str]) -> PoolOptions {
    PoolOptions { ttl: 2_000 * MILLISECOND, timeout: 20_000 * MILLISECOND, ..options(slots) }
}

// 83 attempts and 165 scans for one grant, and callers that time out although a slot is freed every 5 ms.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contention_neither_starves_nor_spins() {
    let place = Place::redis();
    let pool = place.pool(lasting(&TEN), None).await;
    drop(pool.acquire_with(patient()).await.expect("granted"));
    eventually("all are ready", async || pool.census().await.expect("a count").ready == 10).await;
    let before = calls(place.server(), "evalsha");
    let (granted, worst) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let end = Instant::now() + Duration::from_secs(3);
    let callers: Vec<_> = (0..64)
        .map(|_| {
            let (pool, granted, worst) = (pool.clone(), granted.clone(), worst.clone());
            tokio::spawn(async move {
                while Instant::now() < end {
                    let begun = Instant::now();
                    let lease = pool.acquire_with(patient()).await.expect("nobody fails");
                    worst.fetch_max(begun.elapsed().as_millis() as u64, Ordering::Relaxed);
                    granted.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    lease.unused().expect("held");
                    lease.release().await.expect("its own");
                }
            })
        })
        .collect();
    for caller in callers {
        soon(Duration::from_secs(30), "the callers", caller).await.0.expect("no panic");
    }
    let (granted, worst) = (granted.load(Ordering::Relaxed), worst.load(Ordering::Relaxed));
    let per_grant = (calls(place.server(), "evalsha") - before) as f64 / granted as f64;
    println!("contention: {granted} grants in 3 s, {per_grant:.2} EVALSHA a grant, longest wait {worst} ms");
    assert!(granted >= 600, "{granted} grants");
    assert!(per_grant < 4.0, "{per_grant} commands for one grant and its release");
    assert!(worst < 2_000, "somebody waited {worst} ms");
}

// Where all run on one thread, those who wait were woken only after what was given back had set out, and then asked twice.
#[tokio::test]
async fn on_one_thread_what_is_given_back_and_who_claims_it_travel_together() {
    const PAIRS: u64 = 64 * 30;
    let place = Place::redis();
    let pool = place.pool(lasting(&TEN), None).await;
    drop(pool.acquire_with(patient()).await.expect("granted"));
    eventually("all are ready", async || pool.census().await.expect("a count").ready == 10).await;
    let before = calls(place.server(), "evalsha");
    let callers = (0..64).map(|_| {
        let pool = pool.clone();
        tokio::spawn(async move {
            for _ in 0..30 {
                let lease = pool.acquire_with(patient()).await.expect("nobody fails");
                lease.unused().expect("held");
                lease.release().await.expect("its own");
            }
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        soon(Duration::from_secs(30), "the callers", caller).await.0.expect("no panic");
    }
    let sent = calls(place.server(), "evalsha") - before;
    println!("one thread: {PAIRS} pairs in {sent} EVALSHA");
    // Five pairs in each, half of what ten slots are, but for those at both ends and what a slow machine divides.
    assert!(sent < PAIRS / 5 * 3 / 2, "{sent} EVALSHA for {PAIRS} pairs");
}

// A crowd that had once asked together went on asking together for every slot: eight refused claims for one grant.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_does_not_keep_itself_awake() {
    let place = Place::redis();
    let pool = place.pool(lasting(&TEN), None).await;
    drop(pool.acquire_with(patient()).await.expect("granted"));
    let mut worst = 0.0;
    for _ in 0..10 {
        let before = calls(place.server(), "zadd");
        let end = Instant::now() + Duration::from_millis(150);
        let callers: Vec<_> = (0..64)
            .map(|_| {
                let pool = pool.clone();
                tokio::spawn(async move {
                    let mut granted = 0;
                    while Instant::now() < end {
                        let lease = pool.acquire_with(patient()).await.expect("nobody fails");
                        lease.unused().expect("held");
                        lease.release().await.expect("its own");
                        granted += 1;
                    }
                    granted
                })
            })
            .collect();
        let mut granted = 0;
        for caller in callers {
            granted += soon(Duration::from_secs(30), "the callers", caller).await.0.expect("no panic");
        }
        let zadds = (calls(place.server(), "zadd") - before) as f64;
        worst = f64::max(worst, zadds / f64::from(granted.max(640)));
    }
    println!("a crowd: {worst:.2} ZADD a grant in the worst round");
    // Two where every envelope has one grant and one release; 14 where all ask for every slot.
    assert!(worst < 5.0, "{worst} moves in the pool's lines for one grant");
}

// Each caller with an own round trip.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_one_moment_travel_together() {
    let place = Place::redis();
    let slots: Vec<String> = (0..64).map(|n| format!("s{n}")).collect();
    let slots: Vec<&str> = slots.iter().map(String::as_str).collect();
    let pool = place.pool(lasting(&slots), None).await;
    drop(pool.acquire_with(patient()).await.expect("granted"));
    eventually("all are ready", async || pool.census().await.expect("a count").ready == 64).await;
    let before = calls(place.server(), "evalsha");
    let callers: Vec<_> = (0..64)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { pool.acquire_with(patient()).await.expect("granted") })
        })
        .collect();
    let mut leases = Vec::new();
    for caller in callers {
        leases.push(caller.await.expect("no panic"));
    }
    let claims = calls(place.server(), "evalsha") - before;
    drop(leases);
    eventually("all are back", async || pool.statistics().leased == 0).await;
    eventually("all are ready", async || pool.census().await.expect("a count").ready == 64).await;
    println!("coalescing: 64 claims in {claims} EVALSHA");
    assert!(claims <= 16, "{claims} calls for 64 claims");
}

// 971 round trips with ten thousand relayers; 3 pairs a second with foreign keys in the database.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_acquisition_is_one_command_whatever_else_is_there() {
    let place = Place::redis();
    let server = place.server();
    let slots: Vec<String> = (0..2_000).map(|n| format!("s{n}")).collect();
    let slots: Vec<&str> = slots.iter().map(String::as_str).collect();
    for part in 0..20 {
        let words: Vec<String> =
            (0..1_000).flat_map(|n| [format!("foreign:{part}:{n}"), "x".to_owned()]).collect();
        let mut mset = vec!["MSET"];
        mset.extend(words.iter().map(String::as_str));
        server.command(&mset).expect("set");
    }
    let pool = place.pool(lasting(&slots), None).await;
    drop(pool.acquire_with(patient()).await.expect("granted"));
    eventually("all are ready", async || pool.census().await.expect("a count").ready == 2_000).await;
    let before = calls(server, "evalsha");
    for _ in 0..50 {
        let lease = pool.acquire_with(patient()).await.expect("granted");
        lease.unused().expect("held");
        lease.release().await.expect("its own");
    }
    assert_eq!(calls(server, "evalsha") - before, 100);
    for scan in ["scan", "keys", "hscan", "sscan"] {
        assert_eq!(calls(server, scan), 0, "{scan}");
    }
    let begun = Instant::now();
    let many = AcquireOptions { count: Some(1_000), ..patient() };
    let leases = pool.acquire_many_with(many).await.expect("granted");
    assert_eq!(leases.len(), 1_000);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(calls(server, "evalsha") - before, 101);
}

// A list of 200,000 slots was kept in the lane of each who asked for one: 8.6 MB, for over two minutes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_keeps_no_list() {
    let place = Place::redis();
    let slots: Vec<String> = (0..2_000).map(|n| format!("s{n}")).collect();
    let slots: Vec<&str> = slots.iter().map(String::as_str).collect();
    let pool = place.pool(lasting(&slots), None).await;
    let callers = (0..20).map(|_| {
        let pool = pool.clone();
        tokio::spawn(async move {
            drop(pool.acquire_with(patient()).await.expect("granted"));
            assert_eq!(pool.list().await.expect("a list").len(), 2_000);
        })
    });
    for caller in callers.collect::<Vec<_>>() {
        caller.await.expect("no panic");
    }
    let lanes = keys(place.server(), "*:lane*");
    assert!(!lanes.is_empty());
    for lane in lanes {
        let kept = place.server().command(&["STRLEN", &lane]).expect("read").as_int().expect("a count");
        assert!(kept < 8_000, "{lane}: {kept} bytes");
    }
}

// Waiters that poll.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_waiters_ask_seldom() {
    let place = Place::redis();
    let pool = place.pool(PoolOptions { ttl: 3_000 * MILLISECOND, ..options(&["a"]) }, None).await;
    let held = pool.acquire_with(patient()).await.expect("granted");
    let waiters: Vec<_> = (0..50)
        .map(|_| {
            let pool = pool.clone();
            let long = AcquireOptions { timeout: Some(30_000 * MILLISECOND), ..patient() };
            tokio::spawn(async move { pool.acquire_with(long).await.map(drop) })
        })
        .collect();
    eventually("they wait", async || pool.statistics().waiting == 50).await;
    held.renew().await.expect("held");
    eventually("all have their tickets", async || {
        let asked = calls(place.server(), "evalsha");
        tokio::time::sleep(Duration::from_millis(200)).await;
        calls(place.server(), "evalsha") == asked
    })
    .await;
    let (before, began) = (calls(place.server(), "evalsha"), Instant::now());
    for _ in 0..4 {
        tokio::time::sleep(Duration::from_secs(1)).await;
        held.renew().await.expect("held");
    }
    let asked = calls(place.server(), "evalsha") - before - 4;
    let fives = (began.elapsed().as_secs_f64() / 5.0).ceil();
    println!("idle: 50 waiters asked {asked} times in {:?}", began.elapsed());
    assert!(
        asked as f64 <= 50.0 * fives,
        "{asked} commands in {:?}: nobody asks twice in 5 s",
        began.elapsed()
    );
    drop(held);
    for waiter in waiters {
        soon(Duration::from_secs(20), "the queue", waiter).await.0.expect("no panic").expect("granted");
    }
}
