//! Messages of the server: they come at once, are made up for when they are lost, and are not needed.

use std::time::{Duration, Instant};

use leasehold::MILLISECOND;
use leasehold::client::{Leasehold, PoolOptions};
use leasehold_faults::{
    Place, Pool, Prize, eventually, handle, info, options, patient, soon, tickets, within,
};
use leasehold_servers::Proxy;

pub(crate) fn lasting() -> PoolOptions {
    PoolOptions { ttl: 3_000 * MILLISECOND, timeout: 15_000 * MILLISECOND, ..options(&["a"]) }
}

/// One holds the slot, the other waits; how long after the release it has it.
pub(crate) async fn handover(holder: &Pool, waiter: &Pool) -> Duration {
    let held = holder.acquire_with(patient()).await.expect("granted");
    let waits = {
        let pool = waiter.clone();
        tokio::spawn(async move {
            let lease = pool.acquire_with(patient()).await.expect("granted");
            let at = Instant::now();
            lease.unused().expect("held");
            lease.release().await.expect("its own");
            at
        })
    };
    eventually("it waits", async || waiter.statistics().waiting == 1).await;
    // It asks once more after it has come to the queue.
    tokio::time::sleep(Duration::from_millis(60)).await;
    held.unused().expect("held");
    let released = Instant::now();
    held.release().await.expect("its own");
    let (at, _) = soon(Duration::from_secs(10), "the waiter", waits).await;
    at.expect("no panic").saturating_duration_since(released)
}

/// The same, told of by a message: who asks now and then has it later.
pub(crate) async fn is_pushed(holder: &Pool, waiter: &Pool) {
    let took = handover(holder, waiter).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_release_wakes_a_waiter_of_another_process() {
    let place = Place::redis();
    let (one, other) = (place.pool(lasting(), None).await, place.pool(lasting(), None).await);
    let mut times = Vec::new();
    for _ in 0..10 {
        times.push(handover(&one, &other).await);
        times.push(handover(&other, &one).await);
    }
    times.sort_unstable();
    println!("handover: half within {:?}, the longest {:?}", times[times.len() / 2], times[times.len() - 1]);
    assert!(times[times.len() - 1] < Duration::from_secs(1), "{times:?}");
}

fn subscribers(place: &Place) -> usize {
    let list = place.server().command(&["CLIENT", "LIST", "TYPE", "pubsub"]).expect("a reply");
    list.as_text().expect("text").lines().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lost_subscription_is_made_anew() {
    let place = Place::redis();
    let (one, other) = (place.pool(lasting(), None).await, place.pool(lasting(), None).await);
    handover(&one, &other).await;
    // The other one may have waited for a fresh server to be old enough.
    let before = subscribers(&place);
    assert!((1..=2).contains(&before), "{before}");
    for _ in 0..3 {
        place.server().command(&["CLIENT", "KILL", "TYPE", "pubsub"]).expect("killed");
        eventually("it subscribes again", async || subscribers(&place) == before).await;
        is_pushed(&one, &other).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(subscribers(&place), before, "none is left over");
}

// Something between has forgotten the connection, and only that one: nothing fails, and nothing is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_subscription_that_fell_silent_is_made_anew() {
    let place = Place::redis();
    let proxy = Proxy::start(place.server().port()).expect("a proxy");
    let through = handle(&proxy.url()).pool_with("relayers", lasting(), None).await.expect("opened");
    let direct = place.pool(lasting(), None).await;
    handover(&direct, &through).await;
    let before = proxy.connections();
    proxy.stall();
    // Nobody sends a command that could fail.
    eventually("it connects anew", async || proxy.connections() > before).await;
    proxy.heal().expect("healed");
    let took = handover(&direct, &through).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

// Each pool that could not listen left another that tried for ever: a server that was full was asked the more the longer that
// lasted.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn one_makes_a_lost_subscription_anew_however_many_find_it_lost() {
    let place = Place::redis();
    let handle = place.handle();
    let mut pools = Vec::new();
    for number in 0..20 {
        pools.push(handle.pool_with(&format!("p{number}"), lasting(), None).await.expect("opened"));
    }
    let mut kept = Vec::new();
    for pool in &pools {
        kept.push(pool.acquire_with(patient()).await.expect("granted"));
    }
    pools[0].acquire_with(within(200)).await.expect_err("taken");
    let mut admin = place.server().connect().expect("connected");
    for command in [&["CONFIG", "SET", "maxclients", "1"][..], &["CLIENT", "KILL", "TYPE", "pubsub"]] {
        admin.command(command).expect("a reply");
    }
    let waits =
        pools.iter().cloned().map(|pool| tokio::spawn(async move { pool.acquire_with(within(600)).await }));
    for wait in waits.collect::<Vec<_>>() {
        wait.await.expect("no panic").expect_err("taken");
    }
    let mut refused = || {
        let info = admin.command(&["INFO", "stats"]).expect("a reply");
        let line = info
            .as_text()
            .and_then(|text| text.lines().find_map(|line| line.strip_prefix("rejected_connections:")));
        line.and_then(|count| count.parse::<u64>().ok()).expect("a count")
    };
    // From now on nobody asks for anything.
    let before = refused();
    tokio::time::sleep(Duration::from_secs(3)).await;
    let tried = refused() - before;
    assert!(tried <= 10, "{tried} attempts in 3 s");
}

// A release whose message is lost with the connection: what is subscribed again asks again.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_message_that_is_lost_is_made_up_for() {
    let place = Place::redis();
    let (one, other) = (place.pool(lasting(), None).await, place.pool(lasting(), None).await);
    handover(&one, &other).await;
    let held = one.acquire_with(patient()).await.expect("granted");
    let waits = {
        let pool = other.clone();
        tokio::spawn(async move { pool.acquire_with(patient()).await.map(drop) })
    };
    eventually("it waits", async || other.statistics().waiting == 1).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    place.server().command(&["CLIENT", "KILL", "TYPE", "pubsub"]).expect("killed");
    held.unused().expect("held");
    held.release().await.expect("its own");
    let (outcome, took) = soon(Duration::from_secs(2), "the waiter", waits).await;
    outcome.expect("no panic").expect("granted");
    assert!(took < Duration::from_secs(1), "{took:?}");
}

// The first in line is called, and does not hear of it; nor does the next, in another process, once it has been served.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_line_over_processes_goes_on_when_messages_are_lost() {
    let place = Place::redis();
    let mut prizes = Vec::new();
    for _ in 0..3 {
        prizes.push(Prize::slot(&place.handle()).await);
    }
    let mut won = prizes[2].win().await.expect("granted");
    for _ in 0..3 {
        let waits = prizes[..2].iter().cloned().map(|prize| {
            tokio::spawn(async move {
                let won = prize.win().await.expect("served");
                // Held until the connections are cut again.
                tokio::time::sleep(Duration::from_millis(100)).await;
                won.give_back().await.expect("its own");
            })
        });
        let waits: Vec<_> = waits.collect();
        eventually("both have tickets", async || tickets(place.server()) == 2).await;
        let cuts = Cuts::start(&place);
        won.give_back().await.expect("its own");
        tokio::time::sleep(Duration::from_millis(300)).await;
        drop(cuts);
        for waiter in waits {
            // An offer that lapses costs a second, and a deadline after which one asks without a message two.
            let (outcome, took) = soon(Duration::from_secs(4), "the line", waiter).await;
            outcome.expect("no panic");
            assert!(took < Duration::from_millis(900), "{took:?}");
        }
        won = prizes[2].win().await.expect("granted");
    }
}

// It was offered what came free, and the others heard of that, and looked again only when the holder's time would have ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_died_as_it_waited_costs_the_next_one_an_offer() {
    let place = Place::redis();
    let long = || PoolOptions { ttl: 4_000 * MILLISECOND, timeout: 30_000 * MILLISECOND, ..options(&["a"]) };
    let (one, other) = (place.pool(long(), None).await, place.pool(long(), None).await);
    one.acquire_with(patient()).await.expect("granted").release().await.expect("its own");
    let held = one.acquire_with(patient()).await.expect("granted");
    let first = Doomed::waits(place.url(), long());
    eventually("it stands in line", async || tickets(place.server()) == 1).await;
    let next = tokio::spawn({
        let other = other.clone();
        async move { other.acquire_with(patient()).await.map(drop) }
    });
    eventually("so does the next", async || tickets(place.server()) == 2).await;
    first.dies();
    held.release().await.expect("its own");
    let (outcome, took) = soon(Duration::from_secs(20), "the next", next).await;
    outcome.expect("no panic").expect("granted");
    assert!(took < Duration::from_millis(2_500), "{took:?}");
}

/// A process of its own, or what stands for it: a runtime that ends without a word to anybody.
struct Doomed(tokio::runtime::Runtime);

impl Doomed {
    fn waits(url: &str, options: PoolOptions) -> Self {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
        let url = url.to_owned();
        runtime.spawn(async move {
            let pool = handle(&url).pool_with("relayers", options, None).await.expect("the pool opens");
            drop(pool.acquire_with(patient()).await);
        });
        Doomed(runtime)
    }

    fn dies(self) {
        self.0.shutdown_background();
    }
}

/// Cuts subscriptions again and again until it is dropped: whatever is sent meanwhile is mostly not heard.
struct Cuts(tokio::task::JoinHandle<()>);

impl Cuts {
    fn start(place: &Place) -> Self {
        let mut connection = place.server().connect().expect("connected");
        let mut cut = move || connection.command(&["CLIENT", "KILL", "TYPE", "pubsub"]).expect("killed");
        cut();
        Cuts(tokio::spawn(async move {
            loop {
                cut();
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }))
    }
}

impl Drop for Cuts {
    fn drop(&mut self) {
        self.0.abort();
    }
}

// Each subscription that is made while a lost one is being mended must take its place, not stand beside it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn subscriptions_do_not_multiply_over_outages() {
    let place = Place::redis();
    let handle = place.handle();
    let mut pools = Vec::new();
    let open = async |number: usize| {
        let pool = handle.pool_with(&format!("pool-{number}"), options(&["a"]), None).await.expect("opens");
        let held = pool.acquire_with(leasehold_faults::within(15_000)).await.expect("granted");
        // The second waits, and so subscribes.
        drop(pool.acquire_with(leasehold_faults::within(15_000)).await.expect("granted"));
        drop(held);
        pool
    };
    pools.push(open(0).await);
    for round in 1..4 {
        place.server().kill().expect("killed");
        tokio::time::sleep(Duration::from_millis(600)).await;
        place.server().restart().expect("restarted");
        // Comes in while the first subscription still pauses before its next attempt.
        pools.push(open(round).await);
    }
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    assert_eq!(subscribers(&place), 1, "one connection for the messages of one handle");
}

/// How many clients a server has, that which asks included.
fn clients(place: &Place) -> u64 {
    let text = info(place.server(), "clients");
    let line = text.lines().find_map(|line| line.strip_prefix("connected_clients:"));
    line.and_then(|count| count.trim().parse().ok()).expect("a count")
}

// Handles that are opened and dropped all day long.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_dropped_handle_leaves_no_connection() {
    let place = Place::redis();
    for _ in 0..5 {
        let (one, other) = (place.pool(lasting(), None).await, place.pool(lasting(), None).await);
        handover(&one, &other).await;
    }
    eventually("all are gone", async || clients(&place) <= 1).await;
}

// Where handles are collected seldom, as in Node, each one that was closed kept its connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_closed_handle_leaves_no_connection() {
    let place = Place::redis();
    let handles = [(); 2].map(|()| handle(place.url()));
    let [one, other] = &handles;
    let one = one.pool_with("relayers", lasting(), None).await.expect("opens");
    let other = other.pool_with("relayers", lasting(), None).await.expect("opens");
    handover(&one, &other).await;
    let lease = one.acquire_with(patient()).await.expect("granted");
    let waiting = tokio::spawn({
        let other = other.clone();
        async move { other.acquire_with(patient()).await.map(drop) }
    });
    eventually("it waits", async || other.statistics().waiting == 1).await;
    handles.iter().for_each(Leasehold::close);
    waiting.await.expect("no panic").expect_err("closed");
    eventually("all are gone", async || clients(&place) <= 1).await;
    lease.release().await.expect("its own");
    eventually("what that needed is gone too", async || clients(&place) <= 1).await;
}
