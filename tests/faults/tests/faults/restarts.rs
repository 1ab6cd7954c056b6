//! Servers that come back with less than they had: nothing is granted that somebody may still hold.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use leasehold::client::{AcquireOptions, PoolOptions};
use leasehold::id::SlotId;
use leasehold::{Code, MILLISECOND};
use leasehold_faults::{
    Chain, Lease, Place, Pool, calls, eventually, goes_on, handle, info, options, patient, soon, within,
};
use leasehold_servers::{Proxy, RedisOptions, RedisServer};

fn lasting(slots: &[&str]) -> PoolOptions {
    PoolOptions { ttl: 900 * MILLISECOND, ..options(slots) }
}

/// Asks again and again; the first grant must come after the end of the lease that was held.
async fn granted_only_after(held: &Lease, pool: &Pool) -> Lease {
    let begun = Instant::now();
    loop {
        match pool.acquire_with(within(0)).await {
            Ok(lease) => {
                assert!(!held.is_held(), "granted while somebody holds it");
                assert!(lease.fence() > held.fence(), "the fence fell");
                return lease;
            }
            Err(error) => {
                assert!(matches!(error.code(), Code::Exhausted | Code::StoreUnavailable), "{error}");
            }
        }
        assert!(begun.elapsed() < Duration::from_secs(15), "never granted again");
        tokio::time::sleep(Duration::from_millis(3)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_comes_back_empty_grants_nothing_that_is_held() {
    let place = Place::redis();
    let chain = Chain::new(&["a"], 7);
    let (one, other) = (
        place.pool(lasting(&["a"]), chain.source()).await,
        place.pool(lasting(&["a"]), chain.source()).await,
    );
    let first = other.acquire_with(patient()).await.expect("granted");
    first.used(None).expect("8 is next");
    first.release().await.expect("released");
    let held = one.acquire_with(patient()).await.expect("granted");
    assert_eq!((held.nonce(), chain.reads()), (Some(8), 1));
    place.server().restart().expect("restarted");
    chain.set("a", 9);
    let next = granted_only_after(&held, &other).await;
    assert_eq!((next.nonce(), chain.reads()), (Some(9), 2), "a nonce of a lost record is not believed");
    assert_eq!(held.release().await.expect_err("lost").code(), Code::Lost);
    assert!(next.renew().await.is_ok());
}

// The server tells nothing of it: it has the same name, and has been up for as long as before.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_flushed_server_is_told_of_it_by_the_first_who_has_seen_what_it_had() {
    let place = Place::redis();
    let options = PoolOptions { ttl: 1_500 * MILLISECOND, ..options(&["a", "b"]) };
    let only = |slot: &str, milliseconds| AcquireOptions {
        slots: Some(vec![SlotId::new(slot).expect("an id")]),
        ..within(milliseconds)
    };
    let old = place.pool(options.clone(), None).await;
    goes_on(&old).await;
    // Its age, which it tells in whole seconds, says no more of what it may have forgotten.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let held = old.acquire_with(only("a", 0)).await.expect("granted");
    place.server().command(&["FLUSHALL"]).expect("a reply");
    let fresh = place.pool(options.clone(), None).await;
    // Nobody can know of it yet.
    let other = fresh.acquire_with(only("b", 0)).await.expect("granted");
    assert!(other.fence() > held.fence());
    assert_eq!(held.renew().await.expect_err("forgotten").code(), Code::Lost);
    let error = fresh.acquire_with(only("a", 0)).await.expect_err("it may be held");
    assert_eq!(error.code(), Code::Exhausted, "{error}");
    assert!(error.message().contains("may have lost leases"), "{error}");
    let quiet = old.census().await.expect("a count").quiet_micros;
    assert!(0 < quiet && quiet < options.ttl, "from the birth of the pool, not from the question: {quiet}");
    other.renew().await.expect("a lease of the new pool goes on");
    let next = fresh.acquire_with(only("a", 15_000)).await.expect("granted");
    assert!(!held.is_held(), "granted while somebody may hold it");
    assert!(next.fence() > other.fence());
    assert_eq!(old.census().await.expect("a count").quiet_micros, 0, "it is noticed once");
    drop((next, other));
    goes_on(&old).await;
}

// It had been told that the pool was there, and defined it anew as if it had never been: both had the slot.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_was_granted_nothing_of_a_lost_pool_knows_all_the_same_that_it_was_lost() {
    let place = Place::redis();
    let options = PoolOptions { ttl: 1_500 * MILLISECOND, ..options(&["a"]) };
    let (one, other) = (place.pool(options.clone(), None).await, place.pool(options, None).await);
    // Its age, which it tells in whole seconds, says no more of what it may have forgotten.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let held = one.acquire_with(within(0)).await.expect("granted");
    place.server().command(&["FLUSHALL"]).expect("a reply");
    let error = other.acquire_with(within(0)).await.expect_err("it may be held");
    assert!(error.message().contains("may have lost leases"), "{error}");
    let next = other.acquire_with(within(15_000)).await.expect("granted");
    assert!(!held.is_held(), "granted while somebody may hold it");
    assert!(next.fence() > held.fence());
}

// The server's seconds since its start are whole ones: one may be shown a moment after the start.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_young_server_is_not_taken_for_older_than_it_is() {
    let place = Place::redis();
    let short = PoolOptions { ttl: 600 * MILLISECOND, ..options(&["a"]) };
    let one = place.pool(short.clone(), None).await;
    drop(one.acquire_with(patient()).await.expect("granted"));
    let mut struck = 0;
    for _ in 0..12 {
        // So that a second of the clock ends soon after the start.
        let into = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").subsec_millis();
        let until = (1_850 - u64::from(into)) % 1_000;
        tokio::time::sleep(Duration::from_millis(until)).await;
        let held = one.acquire_with(within(15_000)).await.expect("granted");
        place.server().kill().expect("killed");
        place.server().restart().expect("restarted");
        let age = Instant::now();
        eventually("the second is over", async || {
            !info(place.server(), "server").contains("uptime_in_seconds:0\r")
        })
        .await;
        if age.elapsed() > Duration::from_millis(350) || held.remaining_micros() < 50 * MILLISECOND {
            continue;
        }
        struck += 1;
        // A process that has seen nothing of this pool: the server's age is all that it can go by.
        let stranger = place.pool(short.clone(), None).await;
        drop(granted_only_after(&held, &stranger).await);
        if struck == 2 {
            return;
        }
    }
    println!("the start never fell before the end of a second: {struck} of 2");
}

/// Whose time ran out while it asked once more was told that others held what nobody held.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_asks_a_fresh_server_is_told_that_it_is_one_whenever_the_time_runs_out() {
    let place = Place::redis();
    let proxy = Proxy::start(place.server().port()).expect("a proxy");
    let long = PoolOptions { ttl: 60_000 * MILLISECOND, ..options(&["a"]) };
    let pool = handle(&proxy.url()).pool_with("p", long, None).await.expect("opens");
    proxy.delay(Duration::from_millis(100));
    for timeout in (220..800).step_by(20) {
        let error = pool.acquire_with(within(timeout)).await.expect_err("too young");
        // A slow machine may have had no answer at all.
        if error.code() == Code::StoreUnavailable {
            continue;
        }
        assert!(error.message().contains("may have lost leases"), "{timeout} ms: {error}");
        assert!(error.retry_after().is_some(), "{timeout} ms: {error}");
    }
    let error = pool.acquire_with(within(2_000)).await.expect_err("too young");
    assert_eq!(error.code(), Code::TimedOut);
}

/// Those behind the first eight, who ask for all, were told to have more slots.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_of_a_crowd_are_told_that_a_server_is_fresh() {
    let place = Place::redis();
    let pool = place.pool(PoolOptions { ttl: 60_000 * MILLISECOND, ..options(&["a"]) }, None).await;
    let crowd = || {
        let pool = pool.clone();
        tokio::spawn(async move { pool.acquire_with(within(3_000)).await.map(drop) })
    };
    let waiting: Vec<_> = (0..30).map(|_| crowd()).collect();
    for waiting in waiting {
        let error = waiting.await.expect("no panic").expect_err("too young");
        assert!(error.message().contains("may have lost leases") && error.retry_after().is_some(), "{error}");
    }
}

// Who named one of them used the loss up, for all claims of that process: they were away for good.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn slots_that_a_store_lost_are_made_anew_for_who_names_one() {
    let place = Place::redis();
    let (one, other) =
        (place.pool(lasting(&["a", "b"]), None).await, place.pool(lasting(&["a"]), None).await);
    drop(one.acquire_with(patient()).await.expect("granted"));
    place.server().restart().expect("restarted");
    let begins = async || other.acquire_with(within(0)).await.is_ok_and(|_| panic!("in a quiet time"));
    eventually("the pool is begun by who knows a alone", async || {
        begins().await;
        other.census().await.is_ok()
    })
    .await;
    let named = AcquireOptions { slots: Some(vec![SlotId::new("b").expect("an id")]), ..patient() };
    assert_eq!(one.acquire_with(named).await.expect("granted").slot(), "b");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_fresh_server_grants_nothing_for_one_time_to_live() {
    let begun = Instant::now();
    let place = Place::redis();
    let pool = place.pool(PoolOptions { ttl: 1_500 * MILLISECOND, ..options(&["a"]) }, None).await;
    let error = pool.acquire_with(within(0)).await.expect_err("too young");
    assert_eq!(error.code(), Code::Exhausted, "{error}");
    assert!(error.message().contains("may have lost leases"), "{error}");
    let error = pool.acquire_with(within(50)).await.expect_err("too young");
    assert_eq!(error.code(), Code::TimedOut, "{error}");
    assert!(pool.census().await.expect("a count").quiet_micros > 0);
    drop(pool.acquire_with(patient()).await.expect("granted"));
    assert!(begun.elapsed() >= Duration::from_millis(1_500), "{:?}", begun.elapsed());
    // A second pool on the same server, now older, need not wait.
    let second = handle(place.url()).pool_with("others", options(&["a"]), None).await.expect("opens");
    eventually("the age is told in whole seconds", async || second.acquire_with(within(0)).await.is_ok())
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_kept_its_file_still_doubts() {
    let server =
        RedisServer::start(RedisOptions { appendonly: true, ..RedisOptions::default() }).expect("starts");
    let chain = Chain::new(&["a", "b"], 7);
    let (one, other) = (
        handle(&server.url())
            .pool_with("relayers", lasting(&["a", "b"]), chain.source())
            .await
            .expect("opens"),
        handle(&server.url())
            .pool_with("relayers", lasting(&["a", "b"]), chain.source())
            .await
            .expect("opens"),
    );
    let leases =
        one.acquire_many_with(AcquireOptions { count: Some(2), ..patient() }).await.expect("granted");
    leases.iter().for_each(|lease| lease.unused().expect("held"));
    drop(leases);
    eventually("both are ready", async || one.census().await.expect("a count").ready == 2).await;
    let held = one.acquire_with(patient()).await.expect("granted");
    let reads = chain.reads();
    assert_eq!(reads, 2);
    server.kill().expect("killed");
    server.restart().expect("restarted");
    // The last second of writes may be lost, so even the slot that nobody holds rests.
    let census = other.census().await.expect("a count");
    assert!(census.quiet_micros > 0, "{census:?}");
    assert_eq!(census.total, 2);
    let begun = Instant::now();
    let next = other.acquire_with(patient()).await.expect("granted");
    assert!(!held.is_held(), "granted while somebody may hold it");
    assert!(begun.elapsed() > Duration::from_millis(500));
    assert!(next.fence() > held.fence());
    assert_eq!(chain.reads(), reads + 1, "its nonce is in doubt");
}

// Each process knows its own slots only: what one makes anew must not lock the other out.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_process_gets_its_own_slots_back_after_a_loss() {
    let place = Place::redis();
    let (one, other) =
        (place.pool(options(&["a1", "a2"]), None).await, place.pool(options(&["b1"]), None).await);
    drop(one.acquire_with(patient()).await.expect("granted"));
    // It learns that the pool is shared with strangers.
    for _ in 0..5 {
        assert_eq!(other.acquire_with(patient()).await.expect("granted").slot(), "b1");
    }
    place.server().restart().expect("restarted");
    drop(one.acquire_with(within(15_000)).await.expect("its own"));
    let (outcome, _) = soon(Duration::from_secs(16), "the other", other.acquire_with(within(15_000))).await;
    assert_eq!(outcome.expect("its own, without opening anew").slot(), "b1");
    goes_on(&one).await;
}

// The tickets are gone with the memory: who waits asks again, and is served when the quiet time has passed.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_line_outlives_the_memory_of_its_store() {
    const CALLERS: usize = 50;
    for flushed in [false, true] {
        let place = Place::redis();
        let server = place.server();
        let pools = [place.pool(lasting(&["a"]), None).await, place.pool(lasting(&["a"]), None).await];
        let held = pools[0].acquire_with(within(15_000)).await.expect("granted");
        let wait = |number: usize, timeout| {
            let pool = pools[number % 2].clone();
            tokio::spawn(async move {
                let lease = pool.acquire_with(within(timeout)).await?;
                lease.unused().expect("held");
                lease.release().await
            })
        };
        let patient: Vec<_> = (0..CALLERS).map(|number| wait(number, 15_000)).collect();
        let hasty: Vec<_> = (0..CALLERS).map(|number| wait(number, 600)).collect();
        let begun = Instant::now();
        eventually("they wait", async || pools.iter().all(|pool| pool.statistics().waiting == 50)).await;
        if flushed {
            server.command(&["FLUSHALL"]).expect("flushed");
            server.command(&["CONFIG", "RESETSTAT"]).expect("counted anew");
        } else {
            server.kill().expect("killed");
            server.restart().expect("restarted");
        }
        drop(held);
        for caller in hasty {
            let (outcome, _) = soon(Duration::from_secs(3), "the hasty", caller).await;
            // Nothing comes free before the time of what may be held has passed, unless the machine is slow.
            if let Err(error) = outcome.expect("no panic") {
                assert!(matches!(error.code(), Code::TimedOut | Code::StoreUnavailable), "{error}");
            }
        }
        for caller in patient {
            let (outcome, _) = soon(Duration::from_secs(16), "the patient", caller).await;
            outcome.expect("no panic").expect("served");
        }
        let took = begun.elapsed();
        let asked = calls(server, "evalsha");
        println!("{CALLERS} wait as the memory is lost: served after {took:?} with {asked} requests");
        assert!(took < Duration::from_secs(12), "{took:?}");
        assert!(asked < 500 + took.as_millis() as u64 / 10, "{asked} requests in {took:?}");
    }
}

// A process that only looks is the first to come after the loss: it makes the pool, without any slot.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_onlooker_after_a_loss_locks_nobody_out() {
    let place = Place::redis();
    let pool = place.pool(options(&["a"]), None).await;
    let onlooker = place.pool(PoolOptions { slots: None, ..options(&[]) }, None).await;
    drop(pool.acquire_with(patient()).await.expect("granted"));
    place.server().restart().expect("restarted");
    assert_eq!(onlooker.census().await.expect("a count").total, 0);
    let (outcome, _) = soon(Duration::from_secs(16), "the worker", pool.acquire_with(within(15_000))).await;
    assert_eq!(outcome.expect("its own").slot(), "a");
}

// An operator removes the last slot of a process's list: it stays away.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_removed_slot_does_not_come_back_by_itself() {
    for restarted in [false, true] {
        let place = Place::redis();
        let pool = place.pool(options(&["a"]), None).await;
        drop(pool.acquire_with(patient()).await.expect("granted"));
        if restarted {
            // What is missing after a loss is made anew, and what is removed after that is not missing.
            place.server().restart().expect("restarted");
            drop(pool.acquire_with(within(15_000)).await.expect("granted"));
        }
        pool.remove("a").await.expect("removed");
        let error = pool.acquire_with(within(600)).await.expect_err("removed");
        assert_eq!(error.code(), Code::Exhausted, "{error}");
        assert_eq!(pool.list().await.expect("ids"), [""; 0]);
    }
}

// A longer rest that another process asked for looked like another loss.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_removed_slot_stays_away_whatever_another_process_says_of_times() {
    let place = Place::redis();
    let (one, other) =
        (place.pool(options(&["a1", "a2"]), None).await, place.pool(options(&["a2", "b1"]), None).await);
    drop(one.acquire_with(patient()).await.expect("granted"));
    place.server().restart().expect("restarted");
    for pool in [&one, &other] {
        drop(pool.acquire_with(within(15_000)).await.expect("granted"));
    }
    let longer = PoolOptions { doubt_rest: 50 * MILLISECOND, ..options(&["a2", "b1"]) };
    let another = place.pool(longer, None).await;
    another.remove("a1").await.expect("removed");
    another.remove("a2").await.expect("removed");
    let error = one.acquire_with(within(2_000)).await.expect_err("all of its own were removed");
    assert!(matches!(error.code(), Code::Exhausted | Code::TimedOut), "{error}");
    assert_eq!(another.list().await.expect("ids"), ["b1"]);
}

// The second took the loss for dealt with, before the first had its slots made anew: some were never asked for again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn callers_who_see_a_loss_together_lose_no_slot() {
    let place = Place::redis();
    let (one, other) =
        (place.pool(options(&["a", "b", "c"]), None).await, place.pool(options(&["c", "d"]), None).await);
    drop(other.acquire_with(patient()).await.expect("granted"));
    for _ in 0..9 {
        drop(one.acquire_with(patient()).await.expect("granted"));
    }
    place.server().restart().expect("restarted");
    drop(other.acquire_with(within(15_000)).await.expect("its own"));
    let acquire = || one.acquire_with(within(15_000));
    let (first, second) = tokio::join!(acquire(), acquire());
    let (_first, _second) = (first.expect("one of three"), second.expect("another"));
    acquire().await.expect("the third");
}

// An operator removes one slot of a process's list: the others are still its own.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_removed_slot_takes_no_other_with_it() {
    let place = Place::redis();
    let (one, other) =
        (place.pool(options(&["a1", "a2"]), None).await, place.pool(options(&["b1"]), None).await);
    drop(other.acquire_with(patient()).await.expect("granted"));
    for _ in 0..20 {
        drop(one.acquire_with(patient()).await.expect("granted"));
    }
    other.remove("a1").await.expect("removed");
    for _ in 0..5 {
        let lease = one.acquire_with(patient()).await.expect("the other one");
        assert_eq!(lease.slot(), "a2");
        lease.release().await.expect("its own");
    }
    assert_eq!(other.list().await.expect("ids"), ["a2", "b1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn scripts_that_are_flushed_are_loaded_again() {
    let place = Place::redis();
    let pool = place.pool(lasting(&["a", "b"]), None).await;
    drop(pool.acquire_with(patient()).await.expect("granted"));
    for round in 0..30 {
        let lease = pool.acquire_with(patient()).await.expect("granted");
        place.server().command(&["SCRIPT", "FLUSH"]).expect("flushed");
        match round % 3 {
            0 => lease.renew().await.expect("renewed"),
            1 => assert_eq!(lease.resync(round, true).await.expect("resynced"), round),
            _ => assert_eq!(pool.census().await.expect("a count").busy, 1),
        }
        place.server().command(&["SCRIPT", "FLUSH"]).expect("flushed");
        lease.unused().expect("held");
        lease.release().await.expect("released");
    }
    goes_on(&pool).await;
}
