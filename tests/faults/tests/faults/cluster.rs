//! A cluster: all keys of a pool are on one node, which is found, and lost, and found elsewhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use leasehold::client::{LimitKind, PoolOptions};
use leasehold::{Code, MILLISECOND};
use leasehold_faults::{
    Handle, Pool, eventually, goes_on, handle, handle_with, keys, options, patient, soon, successor, within,
};
use leasehold_servers::{Cluster, Proxy, RedisOptions, RedisServer, Resp};
use tokio::task::JoinHandle;

use crate::push::{handover, is_pushed, lasting};

/// The name of a pool whose keys are at this node.
fn pool_at(cluster: &Cluster, node: usize) -> String {
    let mut names = (0..).map(|number| format!("relayers-{number}"));
    names.find(|name| cluster.node_of(slot_of(cluster, name)) == node).expect("one of them")
}

fn slot_of(cluster: &Cluster, pool: &str) -> u16 {
    cluster.slot(&format!("faults:{{{pool}}}:meta")).expect("a slot")
}

async fn open(handle: &Handle, name: &str, options: PoolOptions) -> Pool {
    handle.pool_with(name, options, None).await.expect("opens")
}

/// The cluster, whose pools do not need all of its nodes.
fn partial() -> RedisOptions {
    let arguments = ["--cluster-require-full-coverage", "no"].map(str::to_owned).to_vec();
    RedisOptions { arguments, ..RedisOptions::default() }
}

fn subscribers(server: &RedisServer) -> usize {
    let list = server.command(&["CLIENT", "LIST", "TYPE", "pubsub"]).expect("a reply");
    list.as_text().expect("text").lines().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_handle_of_the_cluster_works_at_every_node() {
    let cluster = Cluster::start().expect("a cluster starts");
    // The first entry is not there.
    let gone = Proxy::start(1).expect("a proxy");
    gone.cut();
    let url = cluster.url(&[1]).replace("://", &format!("://127.0.0.1:{},", gone.port()));
    let handle = handle(&url);
    for node in [0, 1, 2] {
        let name = pool_at(&cluster, node);
        let pool = open(&handle, &name, options(&["a", "b"])).await;
        goes_on(&pool).await;
        let keys =
            cluster.nodes()[node].command(&["KEYS", &format!("faults:{{{name}}}:*")]).expect("a reply");
        assert!(!keys.as_array().expect("a list").is_empty(), "{name} is elsewhere");
    }
    let locked = handle.lock("treasury").acquire().await.expect("granted");
    assert!(locked.is_held());
    locked.release().await.expect("its own");
    for scope in ["one", "two", "three", "four"] {
        let limit = handle
            .limit("payments", 2u64)
            .kind(LimitKind::Lifetime)
            .scope(scope)
            .open()
            .expect("a good limit");
        assert!(limit.take(2u64).await.expect("an answer").allowed);
        assert!(!limit.take(1u64).await.expect("an answer").allowed);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_release_wakes_a_waiter_that_listens_at_another_node_and_at_the_next_when_that_is_gone() {
    let (cluster, one, other, before) = listening_at_the_entry().await;
    assert_eq!(subscribers(&cluster.nodes()[2]), 0);
    is_pushed(&one, &other).await;
    cluster.nodes()[0].kill().expect("killed");
    listens_at_the_others(&cluster, before).await;
    is_pushed(&one, &other).await;
}

// No command goes to where they listen, and the system of a process that hangs acknowledges what it is sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_listens_at_a_node_that_hangs_listens_elsewhere_after_a_while() {
    let (cluster, one, other, before) = listening_at_the_entry().await;
    cluster.nodes()[0].pause().expect("paused");
    listens_at_the_others(&cluster, before).await;
    is_pushed(&one, &other).await;
    cluster.nodes()[0].resume().expect("resumed");
}

// It answers whatever it is asked, and hears of nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_listens_at_a_node_that_left_the_cluster_listens_elsewhere_once_another_is_connected_to() {
    let (cluster, one, other, before) = listening_at_the_entry().await;
    cluster.remove(0).expect("it left");
    // Who connects is told who is there.
    cluster.nodes()[2].command(&["CLIENT", "KILL", "TYPE", "normal"]).expect("killed");
    goes_on(&one).await;
    goes_on(&other).await;
    listens_at_the_others(&cluster, before).await;
    is_pushed(&one, &other).await;
}

// Nobody connects, and no command goes there: who listens asks another now and then.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_listens_at_a_node_that_left_the_cluster_finds_out() {
    let (cluster, one, other, before) = listening_at_the_entry().await;
    cluster.remove(0).expect("it left");
    let gone = async {
        while subscribers(&cluster.nodes()[0]) > 0 {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    soon(Duration::from_secs(90), "finding out", gone).await;
    listens_at_the_others(&cluster, before).await;
    is_pushed(&one, &other).await;
}

/// Two that hand over a slot at the last node and listen at the first, where no command of theirs goes; and how many listen.
async fn listening_at_the_entry() -> (Cluster, Pool, Pool, usize) {
    let cluster = Cluster::with_options(&partial()).expect("a cluster starts");
    let name = pool_at(&cluster, 2);
    let [one, other] = [handle(&cluster.url(&[0])), handle(&cluster.url(&[0]))];
    let (one, other) = (open(&one, &name, lasting()).await, open(&other, &name, lasting()).await);
    handover(&one, &other).await;
    let before = subscribers(&cluster.nodes()[0]);
    assert!(before > 0, "it listens at the entry");
    (cluster, one, other, before)
}

/// All of them, of whom one may have had nothing to wait for.
async fn listens_at_the_others(cluster: &Cluster, before: usize) {
    eventually("it listens elsewhere", async || {
        subscribers(&cluster.nodes()[1]) + subscribers(&cluster.nodes()[2]) >= before
    })
    .await;
}

// Which of them is asked depends on how the list is ordered: two processes could hold one slot.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn servers_that_are_no_cluster_are_refused() {
    let servers = [0, 1].map(|_| RedisServer::start(RedisOptions::default()).expect("starts"));
    let [a, b] = [&servers[0], &servers[1]].map(|server| format!("127.0.0.1:{}", server.port()));
    for (nodes, protocol) in
        [(format!("{a},{b}"), ""), (format!("{b},{a}"), "?protocol=resp3"), (a.clone(), "")]
    {
        let handle = handle(&format!("redis+cluster://{nodes}{protocol}"));
        for _ in 0..3 {
            let opening = handle.pool_with("relayers", options(&["a"]), None);
            let (outcome, _) = soon(Duration::from_secs(3), "opening", opening).await;
            let error = outcome.expect_err("it is no cluster");
            assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
            assert!(error.message().contains("redis://"), "it says what to do: {error}");
            assert!(!error.message().contains("127.0.0.1"), "{error}");
        }
    }
}

// The rights that the README names.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_user_of_few_rights_has_the_nodes_that_are_named_and_all_if_it_may_ask_for_them() {
    let cluster = Cluster::with_options(&partial()).expect("a cluster starts");
    let rights =
        "on >pw ~faults:* &faults:* +@read +@write +@scripting +@pubsub +@connection +info +time +config|get";
    let grant = |user: &str, more: &[&str]| {
        let words = ["ACL", "SETUSER", user].into_iter().chain(rights.split(' ')).chain(more.iter().copied());
        let words = Vec::from_iter(words);
        cluster
            .nodes()
            .iter()
            .for_each(|node| assert_eq!(node.command(&words).expect("a reply"), Resp::ok()));
    };
    grant("without", &[]);
    grant("with", &["+cluster|slots"]);
    let [without, with] =
        ["without", "with"].map(|user| handle(&cluster.url(&[0]).replace("://", &format!("://{user}:pw@"))));
    for node in [0, 1, 2] {
        goes_on(&open(&without, &pool_at(&cluster, node), options(&["a"])).await).await;
    }
    goes_on(&open(&with, &pool_at(&cluster, 0), options(&["a"])).await).await;
    let there = pool_at(&cluster, 2);
    cluster.nodes()[0].kill().expect("killed");
    let opens = async || with.pool_with(&there, options(&["a"]), None).await.is_ok();
    eventually("another that was never asked serves", opens).await;
    goes_on(&open(&with, &there, options(&["a"])).await).await;
}

// It hangs: nothing tells so but that no answer comes.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_node_that_hangs_holds_up_nobody_elses_pools() {
    let cluster = Cluster::with_options(&partial()).expect("a cluster starts");
    let handle = handle_with(&cluster.url(&[2, 0]), "faults", 500.0).expect("a good address");
    let (here, there) = (pool_at(&cluster, 0), pool_at(&cluster, 2));
    let (here, there) =
        (open(&handle, &here, options(&["a"])).await, open(&handle, &there, options(&["a"])).await);
    goes_on(&here).await;
    goes_on(&there).await;
    cluster.nodes()[2].pause().expect("paused");
    let asks = |timeout| {
        let pool = there.clone();
        tokio::spawn(async move { pool.acquire_with(within(timeout)).await })
    };
    let callers: Vec<_> = [0, 100, 700, 1_500].map(|timeout| (timeout, asks(timeout))).into();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(2) {
        let lease =
            soon(Duration::from_millis(450), "a lease elsewhere", here.acquire_with(patient())).await.0;
        lease.expect("granted").release().await.expect("its own");
    }
    for (timeout, caller) in callers {
        let bound = Duration::from_millis(timeout.max(500) + 700).saturating_sub(begun.elapsed());
        let error = soon(bound, "a caller", caller).await.0.expect("no panic").expect_err("it hangs");
        assert_eq!(error.code(), Code::StoreUnavailable, "{timeout}: {error}");
    }
    cluster.nodes()[2].resume().expect("resumed");
    goes_on(&there).await;
}

async fn a_failover(entries: &[usize], cut: bool) {
    let settings = RedisOptions { password: Some("secret-7c1f".to_owned()), ..RedisOptions::default() };
    let cluster = Cluster::with_replicas(&settings).expect("a cluster starts");
    let name = pool_at(&cluster, 1);
    let lasting = || PoolOptions { ttl: 900 * MILLISECOND, ..options(&["a"]) };
    let [one, other] = [cluster.url(entries), cluster.url(&[0])].map(|url| handle(&url));
    let (one, other) = (open(&one, &name, lasting()).await, open(&other, &name, lasting()).await);
    goes_on(&one).await;
    goes_on(&other).await;
    if cut {
        cluster.cut_link(1).expect("cut");
    }
    let held = one.acquire_with(patient()).await.expect("granted");
    cluster.nodes()[1].kill().expect("killed");
    let asks = |timeout| {
        let pool = other.clone();
        (timeout, tokio::spawn(async move { pool.acquire_with(within(timeout)).await }))
    };
    // All before a replica can have been elected.
    for (timeout, caller) in [0, 100, 600].map(asks) {
        let bound = Duration::from_millis(timeout.max(1_000) + 700);
        let error = soon(bound, "a caller", caller).await.0.expect("no panic").expect_err("its node is gone");
        assert_eq!(error.code(), Code::StoreUnavailable, "{timeout}: {error}");
        assert!(error.message().len() > 40 && !error.message().contains("secret"), "{error}");
    }
    let lease = successor(&other, &held).await;
    // Whatever the replica knew, it cannot know what was granted last.
    assert!(
        cluster.replicas()[1]
            .command(&["INFO", "replication"])
            .expect("a reply")
            .as_text()
            .expect("text")
            .contains("role:master")
    );
    lease.release().await.expect("its own");
    assert_eq!(held.release().await.expect_err("lost").code(), Code::Lost);
    goes_on(&one).await;
    goes_on(&other).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_replica_of_a_node_takes_over_and_grants_nothing_that_is_held() {
    a_failover(&[1, 2], false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_replica_that_lagged_takes_over_and_grants_nothing_that_is_held() {
    a_failover(&[1, 2], true).await;
}

// Nothing moved before: nobody had been named.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cluster_outlives_the_only_node_that_was_named() {
    a_failover(&[1], false).await;
}

/// Takes the slot again and again and holds it for a moment; how often it was had, and what was wrong.
fn works(pool: Pool, held: Arc<AtomicBool>, over: Arc<AtomicBool>) -> JoinHandle<u32> {
    tokio::spawn(async move {
        let mut count = 0;
        while !over.load(Relaxed) {
            match pool.acquire_with(within(300)).await {
                Ok(lease) => {
                    assert!(!held.swap(true, Relaxed), "two hold it");
                    tokio::time::sleep(Duration::from_millis(5)).await;
                    held.store(false, Relaxed);
                    // While the slot moves, nobody hears of it.
                    let _ = lease.release().await;
                    count += 1;
                }
                Err(error) => {
                    assert!(matches!(error.code(), Code::TimedOut | Code::StoreUnavailable), "{error}");
                }
            }
        }
        count
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_pool_whose_slot_moves_while_leases_live_has_no_second_holder_and_goes_on() {
    let cluster = Cluster::start().expect("a cluster starts");
    let name = pool_at(&cluster, 0);
    let slot = slot_of(&cluster, &name);
    let mut pools = Vec::new();
    for entry in [0, 1, 2] {
        pools.push(open(&handle(&cluster.url(&[entry])), &name, options(&["a"])).await);
    }
    goes_on(&pools[0]).await;
    let (held, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let workers: Vec<_> = pools.iter().map(|pool| works(pool.clone(), held.clone(), over.clone())).collect();
    for (from, to) in [(0, 1), (1, 2), (2, 0)] {
        tokio::time::sleep(Duration::from_millis(300)).await;
        let half = || std::thread::sleep(Duration::from_millis(300));
        tokio::task::block_in_place(|| cluster.migrate(slot, from, to, half)).expect("moved");
        goes_on(&pools[to]).await;
    }
    over.store(true, Relaxed);
    for worker in workers {
        assert!(worker.await.expect("no second holder") > 0, "it had its turns");
    }
    // One that is held as the slot moves is waited for.
    let before = pools[0].acquire_with(within(15_000)).await.expect("granted");
    tokio::task::block_in_place(|| cluster.migrate(slot, 0, 1, || ())).expect("moved");
    successor(&pools[1], &before).await.release().await.expect("its own");
}

// Which node a pool is at nobody knows before: the one that evicts may be any.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_node_that_evicts_is_refused_and_the_others_serve() {
    let cluster = Cluster::start().expect("a cluster starts");
    let set =
        |policy| cluster.nodes()[2].command(&["CONFIG", "SET", "maxmemory-policy", policy]).expect("a reply");
    set("allkeys-lru");
    let handle = handle(&cluster.url(&[0, 1, 2]));
    goes_on(&open(&handle, &pool_at(&cluster, 0), options(&["a"])).await).await;
    let there = pool_at(&cluster, 2);
    let error = handle.pool_with(&there, options(&["a"]), None).await.expect_err("it would delete leases");
    assert!(error.message().contains("allkeys-lru"), "{error}");
    set("noeviction");
    goes_on(&open(&handle, &there, options(&["a"])).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_keys_of_a_pool_share_one_node() {
    let cluster = Cluster::start().expect("a cluster starts");
    let names: Vec<String> = (0..12).map(|n| format!("relayers-{n}")).collect();
    let (mut served, mut moved) = (0, 0);
    for name in &names {
        let handle = handle_with(&cluster.urls()[0], "eth:1", 400.0).expect("a good address");
        let bound = Duration::from_secs(3);
        let (opened, _) = soon(bound, "opening", handle.pool_with(name, options(&["a", "b"]), None)).await;
        match opened {
            Ok(pool) => {
                served += 1;
                let lease = pool.acquire_with(within(10_000)).await.expect("granted");
                assert!(lease.is_held());
                drop(lease);
                goes_on(&pool).await;
            }
            Err(error) => {
                moved += 1;
                assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
                assert!(error.message().contains("MOVED"), "{error}");
                assert!(error.message().contains("redis+cluster://"), "{error}");
            }
        }
    }
    assert!(served > 0 && moved > 0, "{served} served, {moved} moved");
    // Every key that was written has the pool's hash slot, lanes included.
    let keys = keys(&cluster.nodes()[0], "*");
    assert!(keys.iter().any(|key| key.contains(":lane:")), "{keys:?}");
    for key in keys {
        let name = key.split(['{', '}']).nth(1).expect("a hash tag");
        assert_eq!(cluster.slot(&key).expect("a slot"), cluster.slot(name).expect("a slot"), "{key}");
        assert!(key.starts_with("eth%3A1:{"), "{key}");
    }
}

// Now and then it answered what it found as it went on before it heard of the other: both held it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_node_that_hung_and_was_replaced_grants_nothing_as_it_goes_on() {
    let cluster = Cluster::with_replicas(&RedisOptions::default()).expect("a cluster starts");
    let name = pool_at(&cluster, 1);
    // Both listen elsewhere, so that nothing tells that it hangs.
    let [one, other] = [cluster.url(&[0]), cluster.url(&[0])].map(|url| handle(&url));
    let (one, other) = (open(&one, &name, lasting()).await, open(&other, &name, lasting()).await);
    goes_on(&one).await;
    goes_on(&other).await;
    cluster.nodes()[1].pause().expect("paused");
    let held = other.acquire_with(within(20_000)).await.expect("granted by the next");
    let asks = tokio::spawn(async move { one.acquire_with(within(500)).await });
    tokio::time::sleep(Duration::from_millis(30)).await;
    cluster.nodes()[1].resume().expect("resumed");
    let asked = asks.await.expect("no panic");
    assert!(held.is_held());
    let refused = asked.expect_err("two hold it");
    assert!(matches!(refused.code(), Code::TimedOut | Code::StoreUnavailable), "{refused}");
}
