//! Servers that are not there, or do not answer: nobody is told that slots are exhausted, nobody waits
//! longer than it said, nobody hammers, and all goes on by itself.

use std::time::Duration;

use leasehold::client::{AcquireOptions, PoolOptions};
use leasehold::{Code, MILLISECOND, SECOND};
use leasehold_faults::{
    Place, cannot_be_used, connections, eventually, goes_on, handle_with, opened, options, patient, soon,
    within,
};
use leasehold_servers::Proxy;

const RESPONSE: u64 = 400;

async fn pool_at(url: &str) -> leasehold_faults::Pool {
    let handle = handle_with(url, "faults", RESPONSE as f64).expect("a good address");
    let pool = opened(&handle, options(&["a", "b"]), None).await;
    drop(pool.acquire_many_with(AcquireOptions { count: Some(2), ..patient() }).await.expect("granted"));
    pool
}

// 92,000 attempts to connect a second for each caller; n candidates tried one after the other, each failure
// read as "already locked".
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_refuses_connections() {
    let place = Place::redis();
    let pool = pool_at(place.url()).await;
    place.server().kill().expect("killed");
    cannot_be_used(&pool, "refuses connections", RESPONSE).await;
    place.server().restart().expect("restarted");
    goes_on(&pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn attempts_to_connect_are_paced() {
    let place = Place::redis();
    let proxy = Proxy::start(place.server().port()).expect("a proxy");
    let pool = pool_at(&proxy.url()).await;
    // Callers wait on a channel of messages, too, when the server goes.
    let held = pool.acquire_many_with(AcquireOptions { count: Some(2), ..patient() }).await.expect("granted");
    let long = |milliseconds| AcquireOptions { timeout: Some(milliseconds * MILLISECOND), ..patient() };
    let wait = |milliseconds| {
        let pool = pool.clone();
        tokio::spawn(async move { pool.acquire_with(long(milliseconds)).await.map(drop) })
    };
    let early: Vec<_> = (0..16).map(|_| wait(3_000)).collect();
    eventually("they wait", async || pool.statistics().waiting == 16).await;
    place.server().kill().expect("killed");
    proxy.disconnect();
    drop(held);
    let before = proxy.connections();
    let late: Vec<_> = (0..64).map(|_| wait(2_500)).collect();
    tokio::time::sleep(Duration::from_secs(2)).await;
    let attempts = proxy.connections() - before;
    println!("outage: 80 callers made {attempts} attempts to connect in 2 s");
    assert!((2..=40).contains(&attempts), "{attempts} attempts in 2 s");
    for caller in late.into_iter().chain(early) {
        let (outcome, _) = soon(Duration::from_secs(6), "a caller", caller).await;
        assert_eq!(outcome.expect("no panic").expect_err("no store").code(), Code::StoreUnavailable);
    }
    place.server().restart().expect("restarted");
    goes_on(&pool).await;
    // What was made anew is one connection for commands and one for messages.
    eventually("no connection is left over", async || proxy.open_connections() <= 2).await;
}

// An attempt at a stopped server never returned.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_hangs() {
    let place = Place::redis();
    let pool = pool_at(place.url()).await;
    place.server().pause().expect("stopped");
    cannot_be_used(&pool, "answer", RESPONSE).await;
    let taken = connections_while_hanging(&place, &pool).await;
    assert!(taken <= 30, "{taken} connections in 2 s");
    goes_on(&pool).await;
}

async fn connections_while_hanging(place: &Place, pool: &leasehold_faults::Pool) -> u64 {
    place.server().resume().expect("resumed");
    let before = connections(place.server());
    place.server().pause().expect("stopped");
    let callers: Vec<_> = (0..32)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { pool.acquire_with(within(2_000)).await.map(drop) })
        })
        .collect();
    for caller in callers {
        let (outcome, _) = soon(Duration::from_secs(4), "a caller", caller).await;
        assert_eq!(outcome.expect("no panic").expect_err("it hangs").code(), Code::StoreUnavailable);
    }
    place.server().resume().expect("resumed");
    let taken = connections(place.server()) - before;
    println!("hang: 32 callers made {taken} connections in 2 s");
    taken
}

// A caller that waits when the server goes, and has time enough, gets its slot when the server is back.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn those_who_have_time_outlive_an_outage() {
    let place = Place::redis();
    let pool = pool_at(place.url()).await;
    let held = pool.acquire_many_with(AcquireOptions { count: Some(2), ..patient() }).await.expect("granted");
    let waiters: Vec<_> = (0..12)
        .map(|_| {
            let pool = pool.clone();
            let long = AcquireOptions { timeout: Some(20 * SECOND), ..patient() };
            tokio::spawn(async move { pool.acquire_with(long).await.map(drop) })
        })
        .collect();
    eventually("they wait", async || pool.statistics().waiting == 12).await;
    place.server().kill().expect("killed");
    drop(held);
    tokio::time::sleep(Duration::from_millis(700)).await;
    place.server().restart().expect("restarted");
    for waiter in waiters {
        let (outcome, _) = soon(Duration::from_secs(25), "a waiter", waiter).await;
        outcome.expect("no panic").expect("granted after the outage");
    }
    goes_on(&pool).await;
}

// A grant on its way through a server that hung: its caller is gone, so nobody may hold it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_request_performed_late_leaves_nothing() {
    let place = Place::redis();
    let handle = handle_with(place.url(), "faults", RESPONSE as f64).expect("a good address");
    let long = PoolOptions { ttl: 3_000 * MILLISECOND, ..options(&["a", "b"]) };
    let pool = opened(&handle, long, None).await;
    drop(pool.acquire_with(within(15_000)).await.expect("granted"));
    for _ in 0..3 {
        eventually("both are ready", async || pool.census().await.expect("a count").ready == 2).await;
        place.server().pause().expect("stopped");
        let error = pool.acquire_with(within(150)).await.expect_err("it hangs");
        assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
        place.server().resume().expect("resumed");
        let free =
            eventually("both are ready", async || pool.census().await.is_ok_and(|census| census.ready == 2));
        soon(Duration::from_millis(2_500), "giving back", free).await;
    }
}

// Opening a pool on a server that is not there says so, and opening it later works.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_pool_is_not_opened_without_a_server() {
    let place = Place::redis();
    place.server().kill().expect("killed");
    let handle = handle_with(place.url(), "faults", RESPONSE as f64).expect("a good address");
    let bound = Duration::from_secs(3);
    let (outcome, _) = soon(bound, "opening", handle.pool_with("relayers", options(&["a"]), None)).await;
    let error = outcome.expect_err("nobody there");
    assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
    place.server().restart().expect("restarted");
    goes_on(&handle.pool_with("relayers", options(&["a"]), None).await.expect("opens")).await;
}

// Messages may be refused while commands are not (a full server): an acquisition does not wait for them
// longer than it said.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn messages_that_hang_hold_nobody_up() {
    let place = Place::redis();
    let proxy = Proxy::start(place.server().port()).expect("a proxy");
    drop(place.pool(options(&["a"]), None).await.acquire_with(patient()).await.expect("granted"));
    let handle = handle_with(&proxy.url(), "faults", 1_500.0).expect("a good address");
    let pool = opened(&handle, options(&["a"]), None).await;
    eventually("it is ready", async || pool.census().await.expect("a count").ready == 1).await;
    let held = pool.acquire_with(within(0)).await.expect("granted without waiting");
    // The connection for messages is the second one. It leads to a port where nobody answers.
    let deaf = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("bound");
    proxy.retarget(deaf.local_addr().expect("known").port());
    held.renew().await.expect("the first connection works");
    let (outcome, _) =
        soon(Duration::from_millis(900), "the acquisition", pool.acquire_with(within(200))).await;
    assert_eq!(outcome.expect_err("held").code(), Code::TimedOut);
    // And those with more time go on by asking now and then.
    let (outcome, _) = soon(Duration::from_secs(6), "polling", pool.acquire_with(within(5_000))).await;
    outcome.expect("the lease before has ended");
}
