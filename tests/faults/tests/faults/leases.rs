//! Leases: what other pools get wrong about who holds what, and until when.

use std::time::{Duration, Instant};

use leasehold::client::{AcquireOptions, PoolOptions, ReleaseOptions, Unit};
use leasehold::slots::State;
use leasehold::value::Value;
use leasehold::{Code, MILLISECOND};
use leasehold_faults::{Chain, Place, Pool, eventually, handle, handle_with, options, patient, soon, within};
use leasehold_servers::Proxy;

on_both!(
    a_late_release_frees_nobody_else,
    no_second_holder_while_the_first_is_valid,
    two_spellings_of_an_account_are_one_slot,
    a_slot_taken_out_of_service_stays_out_after_the_release,
    a_lease_says_when_it_has_ended,
    two_networks_share_nothing,
    a_slow_acquisition_holds_nobody_up,
    a_dropped_acquisition_leaves_nothing,
    a_renewal_ends_at_max_hold,
    processes_with_lists_of_their_own_get_no_foreign_slot,
);

async fn state_of(pool: &Pool, slot: &str) -> State {
    pool.inspect(&[slot.to_owned()]).await.expect("a view").slots[0].view.state
}

async fn ended(lease: &leasehold_faults::Lease) {
    eventually("the lease ends", async || !lease.is_held()).await;
    // The holder's own deadline is a little before the store's.
    tokio::time::sleep(Duration::from_millis(30)).await;
}

// A paymaster's pool deletes the lock at release without looking whose it is: the late holder frees the slot
// of the next one, and a third gets it while the second works.
async fn a_late_release_frees_nobody_else(place: Place) {
    let (first, second) = (place.pool(options(&["a"]), None).await, place.pool(options(&["a"]), None).await);
    let late = first.acquire_with(patient()).await.expect("granted");
    ended(&late).await;
    let current = second.acquire_with(patient()).await.expect("granted after the end");
    assert!(current.fence() > late.fence());
    let error = late.release().await.expect_err("too late");
    assert_eq!(error.code(), Code::Lost, "{error}");
    assert!(current.is_held());
    current.renew().await.expect("still held");
    let refused = first.acquire_with(within(0)).await.expect_err("held");
    assert_eq!(refused.code(), Code::Exhausted, "{refused}");
    current.release().await.expect("its own");
}

// A pool in memory frees a slot after 5 s while its holder believes in it for 60 s.
async fn no_second_holder_while_the_first_is_valid(place: Place) {
    let (one, other) = (place.pool(options(&["a"]), None).await, place.pool(options(&["a"]), None).await);
    let mut holder = one.acquire_with(patient()).await.expect("granted");
    for round in 0..4 {
        let (from, to) = if round % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let mut renewals = round;
        let next = loop {
            let valid_before = holder.is_held();
            match to.acquire_with(within(0)).await {
                Ok(lease) => {
                    assert!(!holder.is_held(), "two holders at once");
                    break lease;
                }
                Err(error) => assert_eq!(error.code(), Code::Exhausted, "{error}"),
            }
            if renewals > 0 && valid_before && holder.remaining_micros() < 200 * MILLISECOND {
                renewals -= 1;
                // On a busy machine that may come too late.
                if let Err(error) = holder.renew().await {
                    assert_eq!(error.code(), Code::Lost, "{error}");
                }
            }
            tokio::time::sleep(Duration::from_millis(3)).await;
        };
        let error = holder.renew().await.expect_err("gone");
        assert_eq!(error.code(), Code::Lost, "{error} {}", from.name());
        holder = next;
    }
}

// The same address twice in a configuration is two relayers with one nonce.
async fn two_spellings_of_an_account_are_one_slot(place: Place) {
    let twice = Value::map([("slots", Value::List(vec!["0xAB".into(), "0x00ab".into()]))]);
    let error = PoolOptions::default().read(&twice, Unit::Milliseconds).expect_err("twice");
    assert_eq!((error.code(), error.field()), (Code::InvalidArgument, Some("slots[1]")));
    let (upper, lower) =
        (place.pool(options(&["0xAB"]), None).await, place.pool(options(&["0xab"]), None).await);
    let lease = upper.acquire_with(patient()).await.expect("granted");
    assert_eq!(lease.slot(), "0xAB");
    assert_eq!(lower.acquire_with(within(0)).await.expect_err("held").code(), Code::Exhausted);
    assert_eq!(lower.census().await.expect("a count").total, 1);
}

// An operator's lock on a busy relayer is erased by its holder's ordinary release.
async fn a_slot_taken_out_of_service_stays_out_after_the_release(place: Place) {
    let pool = place.pool(options(&["a", "b", "c", "d", "e"]), None).await;
    let lease = async |slot: &str| {
        let slots = Some(vec![leasehold::id::SlotId::new(slot).expect("good")]);
        pool.acquire_with(AcquireOptions { slots, ..patient() }).await.expect("granted")
    };
    let (a, b, c, d, e) =
        (lease("a").await, lease("b").await, lease("c").await, lease("d").await, lease("e").await);
    pool.disable("a").await.expect("disabled");
    pool.drain("b").await.expect("drained");
    pool.quarantine("c", Duration::from_secs(60)).await.expect("quarantined");
    pool.break_lease("d").await.expect("broken");
    let admin = place.pool(PoolOptions { slots: None, ..options(&[]) }, None).await;
    for held in [a, b, c] {
        held.release().await.expect("its own");
    }
    assert_eq!(d.release().await.expect_err("broken").code(), Code::Lost);
    e.release_with(ReleaseOptions { cooldown: Some(60_000 * MILLISECOND) }).await.expect("its own");
    assert_eq!(state_of(&admin, "a").await, State::Out);
    assert_eq!(state_of(&admin, "b").await, State::Out);
    assert_eq!(state_of(&admin, "c").await, State::Cooling);
    assert_eq!(state_of(&admin, "d").await, State::Ready);
    // A release, a quarantine and the end of it never shorten a rest that was asked for.
    admin.quarantine("e", Duration::from_millis(1)).await.expect("quarantined");
    admin.enable("e").await.expect("enabled");
    assert_eq!(state_of(&admin, "e").await, State::Cooling);
    let broken = admin.acquire_with(within(0)).await.expect("the broken one");
    assert_eq!(broken.slot(), "d");
    assert_eq!(admin.acquire_with(within(0)).await.expect_err("no other").code(), Code::Exhausted);
}

// A validity that is looked at once, at the start, is no validity when the transaction is sent.
async fn a_lease_says_when_it_has_ended(place: Place) {
    let pool = place.pool(options(&["a"]), None).await;
    let lease = pool.acquire_with(patient()).await.expect("granted");
    let mut left = lease.remaining_micros();
    assert!(left > 0 && left <= 400 * MILLISECOND);
    eventually("the time runs out", async || {
        let now = lease.remaining_micros();
        assert!(now <= left, "a lease grew without a renewal");
        left = now;
        now == 0
    })
    .await;
    assert!(!lease.is_held());
    ended(&lease).await;
    assert_eq!(lease.renew().await.expect_err("ended").code(), Code::Lost);
    assert_eq!(lease.resync(5, true).await.expect_err("ended").code(), Code::Lost);
    let error = lease.release().await.expect_err("ended");
    assert_eq!(error.code(), Code::Lost);
    assert!(error.message().contains("acquire anew"), "{error}");
    assert_eq!(pool.statistics().leased, 0);
}

// One database for mainnet and testnet: equal addresses share locks and nonces.
async fn two_networks_share_nothing(place: Place) {
    let chains = [Chain::new(&["0xa"], 5), Chain::new(&["0xa"], 900)];
    let mut pools = Vec::new();
    for (network, chain) in ["eth:1", "eth:11155111"].iter().zip(&chains) {
        let handle = handle_with(place.url(), network, 1_000.0).expect("a good address");
        let pool = handle.pool_with("relayers", options(&["0xa"]), chain.source()).await.expect("opens");
        drop(pool.acquire_with(patient()).await.expect("granted"));
        pools.push(pool);
    }
    let leases = [
        pools[0].acquire_with(patient()).await.expect("granted"),
        pools[1].acquire_with(patient()).await.expect("granted"),
    ];
    assert_eq!(leases[0].nonce(), Some(5));
    assert_eq!(leases[1].nonce(), Some(900));
    assert!(leases[0].is_held() && leases[1].is_held());
}

// A lock within the process that is held over every await of an acquisition: a slow chain stops everybody.
async fn a_slow_acquisition_holds_nobody_up(place: Place) {
    let chain = Chain::new(&["a", "b"], 1);
    let mut long = options(&["a", "b"]);
    long.ttl = 5_000 * MILLISECOND;
    let pool = place.pool(long.clone(), chain.source()).await;
    // The quiet time of a fresh server passes first.
    let warm = pool.acquire_with(within(15_000)).await.expect("granted");
    warm.used(None).expect("a next nonce");
    warm.release().await.expect("released");
    chain.hang(true);
    let slots =
        Some(vec![leasehold::id::SlotId::new(if warm.slot() == "a" { "b" } else { "a" }).expect("good")]);
    let slow = {
        let pool = pool.clone();
        tokio::spawn(async move { pool.acquire_with(AcquireOptions { slots, ..patient() }).await })
    };
    eventually("the chain is asked", async || chain.reads() >= 2).await;
    let bound = Duration::from_secs(2);
    soon(bound, "a count", pool.census()).await.0.expect("counted");
    soon(bound, "adding a slot", pool.add(["c"])).await.0.expect("added");
    soon(bound, "a change", pool.drain("c")).await.0.expect("drained");
    let (lease, _) = soon(bound, "another acquisition", pool.acquire_with(patient())).await;
    assert_eq!(lease.expect("granted").slot(), warm.slot());
    slow.abort();
}

// A request that its client gave up blocks its relayer until the lock runs out.
async fn a_dropped_acquisition_leaves_nothing(place: Place) {
    // Long enough that a slot which only comes back by its time to live is told from one given back.
    let long = PoolOptions { ttl: 4_000 * MILLISECOND, ..options(&["a", "b", "c"]) };
    let chain = Chain::new(&["a", "b", "c"], 1);
    let pool = place.pool(long, chain.source()).await;
    drop(pool.acquire_with(patient()).await.expect("granted"));
    for round in 0..60u64 {
        let (pool, chain) = (pool.clone(), chain.clone());
        let task = tokio::spawn(async move { pool.acquire_with(patient()).await });
        chain.hang(round % 3 == 0);
        tokio::time::sleep(Duration::from_micros(round * 37)).await;
        task.abort();
        // Whether it was granted before or not: the lease is dropped with the task.
        let _ = task.await;
    }
    chain.hang(false);
    // Waiters that are given up as well.
    let all = pool
        .acquire_many_with(AcquireOptions { count: Some(3), ..within(2_000) })
        .await
        .expect("all are free");
    let waiters: Vec<_> = (0..20)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { pool.acquire_with(patient()).await.map(drop) })
        })
        .collect();
    eventually("they wait", async || pool.statistics().waiting == 20).await;
    waiters.iter().for_each(tokio::task::JoinHandle::abort);
    eventually("they are gone", async || pool.statistics().waiting == 0).await;
    drop(all);
    let free = eventually("all are free", async || pool.census().await.expect("a count").ready == 3);
    soon(Duration::from_secs(2), "giving back", free).await;
    assert_eq!(pool.statistics().leased, 0);
}

// A renewal in the background keeps a hung worker's lease for ever.
async fn a_renewal_ends_at_max_hold(place: Place) {
    let mut bounded = options(&["a"]);
    bounded.max_hold = Some(700 * MILLISECOND);
    let pool = place.pool(bounded, None).await;
    let lease = pool.acquire_with(patient()).await.expect("granted");
    let begun = Instant::now();
    while lease.renew().await.is_ok() {
        assert!(begun.elapsed() < Duration::from_secs(5), "it holds for ever");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(begun.elapsed() >= Duration::from_millis(650), "{:?}", begun.elapsed());
    pool.acquire_with(patient()).await.expect("free again");
}

// Rolling deployments with other lists of accounts: wallets unknown to the old processes were handed to them.
async fn processes_with_lists_of_their_own_get_no_foreign_slot(place: Place) {
    let lists: [&[&str]; 3] = [&["a1", "a2"], &["b1"], &["a2", "c1", "c2"]];
    let mut pools = Vec::new();
    for list in lists {
        pools.push((list, place.pool(options(list), None).await));
    }
    // The first grant ends the quiet time of a fresh server.
    drop(pools[0].1.acquire_with(patient()).await.expect("granted"));
    let workers: Vec<_> = pools
        .into_iter()
        .flat_map(|(list, pool)| (0..4).map(move |_| (list, pool.clone())))
        .map(|(list, pool)| {
            tokio::spawn(async move {
                for _ in 0..25 {
                    let lease = pool.acquire_with(patient()).await.expect("granted");
                    assert!(list.contains(&lease.slot()), "{} is not of {list:?}", lease.slot());
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    lease.unused().expect("held");
                    lease.release().await.expect("its own");
                }
            })
        })
        .collect();
    for worker in workers {
        soon(Duration::from_secs(60), "the work", worker).await.0.expect("no panic");
    }
}

// A deadline counted from the reply on is later than the store's by the way that the reply took.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_local_deadline_is_never_later_than_the_stores() {
    let place = Place::redis();
    let proxy = Proxy::start(place.server().port()).expect("a proxy");
    let direct = place.pool(options(&["a"]), None).await;
    drop(direct.acquire_with(patient()).await.expect("granted"));
    let far = handle(&proxy.url()).pool_with("relayers", options(&["a"]), None).await.expect("opens");
    proxy.delay(Duration::from_millis(60));
    for _ in 0..3 {
        let lease = far.acquire_with(patient()).await.expect("granted");
        check(&lease, &direct).await;
        lease.renew().await.expect("in time");
        check(&lease, &direct).await;
    }
}

async fn check(lease: &leasehold_faults::Lease, direct: &Pool) {
    let before = Instant::now();
    let here = lease.remaining_micros();
    let view = direct.inspect(&["a".to_owned()]).await.expect("a view");
    let there = view.slots[0].left_micros + before.elapsed().as_micros() as u64;
    assert!(here > 0 && here <= there, "{here} µs here, at most {there} µs there");
}

// A grant that comes when little of it is left is given back: it would be lost before it is used.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_that_arrives_too_late_is_given_back() {
    let place = Place::redis();
    let proxy = Proxy::start(place.server().port()).expect("a proxy");
    let direct = place.pool(options(&["a"]), None).await;
    drop(direct.acquire_with(patient()).await.expect("granted"));
    let far = handle(&proxy.url()).pool_with("relayers", options(&["a"]), None).await.expect("opens");
    eventually("it is ready", async || direct.census().await.expect("a count").ready == 1).await;
    proxy.delay(Duration::from_millis(250));
    let (outcome, took) =
        soon(Duration::from_secs(4), "the acquisition", far.acquire_with(within(1_800))).await;
    let error = outcome.expect_err("half a second for the way, of 400 ms");
    assert_eq!(error.code(), Code::TimedOut, "{error} after {took:?}");
    proxy.heal().expect("healed");
    // Nobody has seen the grant, so its nonce cannot have been used.
    eventually("it is ready", async || direct.census().await.expect("a count").ready == 1).await;
    direct.acquire_with(within(0)).await.expect("free");
}

// A release that fails without a word.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_release_is_told() {
    let place = Place::redis();
    let pool = place.pool(options(&["a"]), None).await;
    let lease = pool.acquire_with(patient()).await.expect("granted");
    place.server().kill().expect("killed");
    let (outcome, _) = soon(Duration::from_secs(4), "the release", lease.release()).await;
    let error = outcome.expect_err("nobody there");
    assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
    assert!(error.message().contains("refuses connections"), "{error}");
}
