//! A replica that lags behind is promoted: everything acknowledged since the link was cut is lost.

use std::time::{Duration, Instant};

use leasehold::client::PoolOptions;
use leasehold::{Code, MILLISECOND};
use leasehold_faults::{
    Chain, Handle, Pool, eventually, goes_on, handle, options, patient, successor, within,
};
use leasehold_servers::{Proxy, RedisOptions, RedisServer};

/// A master behind an address that can be moved, and its replica behind a link that can be cut.
pub(crate) struct Pair {
    master: RedisServer,
    replica: RedisServer,
    pub front: Proxy,
    pub link: Proxy,
}

impl Pair {
    pub fn start() -> Self {
        let start = || RedisServer::start(RedisOptions::default()).expect("a server starts");
        let (master, replica) = (start(), start());
        let front = Proxy::start(master.port()).expect("a proxy");
        let link = Proxy::start(master.port()).expect("a proxy");
        replica.replicate_through(link.port()).expect("it follows");
        Pair { master, replica, front, link }
    }

    fn handle(&self) -> Handle {
        handle(&self.front.url())
    }

    async fn pool(&self, options: PoolOptions, chain: &std::sync::Arc<Chain>) -> Pool {
        self.handle().pool_with("relayers", options, chain.source()).await.expect("opens")
    }

    pub fn master(&self) -> &RedisServer {
        &self.master
    }

    /// Waits until the replica has all that the master has.
    pub async fn in_step(&self) {
        let mut connection = self.master.connect().expect("connected");
        eventually("the replica is in step", async || {
            connection.command(&["SET", "step", "1"]).expect("set");
            connection.command(&["WAIT", "1", "200"]).expect("a count").as_int() == Some(1)
        })
        .await;
    }

    pub fn fail_over(&self) {
        self.master.kill().expect("killed");
        self.replica.promote().expect("promoted");
        self.front.retarget(self.replica.port());
        self.front.disconnect();
    }
}

/// Who has a connection to the server of before is granted what that has, as long as nobody stops it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_that_leads_elsewhere_is_waited_for_as_long_as_its_url_says() {
    let pair = Pair::start();
    let chain = Chain::new(&["a"], 7);
    let opened = async |url: &str| {
        handle(url).pool_with("relayers", lasting(&["a"]), chain.source()).await.expect("opens")
    };
    let stays = opened(&pair.master().url()).await;
    stays.acquire_with(patient()).await.expect("granted").release().await.expect("released");
    let moves = opened(&format!("{}?lag=6s", pair.front.url())).await;
    moves.acquire_with(patient()).await.expect("granted").release().await.expect("released");
    pair.in_step().await;

    pair.replica.promote().expect("promoted");
    pair.front.retarget(pair.replica.port());
    pair.front.disconnect();
    let moved = Instant::now();
    let waits = tokio::spawn(async move {
        let lease = moves.acquire_with(within(60_000)).await.expect("granted");
        let granted = Instant::now();
        lease.release().await.expect("released");
        granted
    });
    while moved.elapsed() < Duration::from_secs(2) {
        stays.acquire_with(patient()).await.expect("granted").release().await.expect("released");
    }
    let last = stays.acquire_with(patient()).await.expect("granted");
    let ended = Instant::now() + Duration::from_micros(last.remaining_micros());
    assert!(moved.elapsed() < Duration::from_secs(6), "a machine too slow to tell");
    assert!(waits.await.expect("granted") >= ended, "two held it");
}

fn lasting(slots: &[&str]) -> PoolOptions {
    PoolOptions { ttl: 900 * MILLISECOND, ..options(slots) }
}

async fn a_loss(fresh: bool) {
    let pair = Pair::start();
    let chain = Chain::new(&["a"], 7);
    let one = pair.pool(lasting(&["a"]), &chain).await;
    let other = pair.pool(lasting(&["a"]), &chain).await;
    let first = other.acquire_with(patient()).await.expect("granted");
    first.used(None).expect("8 is next");
    first.release().await.expect("released");
    pair.in_step().await;
    pair.link.cut();
    // What the replica will never know of: two nonces that were used, and a lease that is held.
    for next in [9, 10] {
        let lease = one.acquire_with(patient()).await.expect("granted");
        lease.used(Some(next)).expect("forward");
        lease.release().await.expect("released");
    }
    chain.set("a", 10);
    let held = one.acquire_with(patient()).await.expect("granted");
    assert_eq!((held.nonce(), chain.reads()), (Some(10), 1));
    pair.fail_over();
    let asks = if fresh { pair.pool(lasting(&["a"]), &chain).await } else { other };
    let next = successor(&asks, &held).await;
    assert_eq!((next.nonce(), chain.reads()), (Some(10), 2), "the lost nonces come back");
    let late = held.release().await.expect_err("lost");
    assert_eq!(late.code(), Code::Lost, "{late}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_promoted_replica_that_lagged_grants_nothing_that_is_held() {
    a_loss(false).await;
}

// A process that has seen none of the lost fences.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_promoted_replica_needs_no_client_to_tell_it() {
    a_loss(true).await;
}

/// A master that refuses from then on is left for where its address leads: it must not be asked for ever.
async fn is_left(refuse: impl FnOnce(&Pair)) {
    let pair = Pair::start();
    let chain = Chain::new(&["a"], 7);
    let pool = pair.pool(lasting(&["a"]), &chain).await;
    drop(pool.acquire_with(patient()).await.expect("granted"));
    pair.in_step().await;
    pair.link.cut();
    pair.replica.promote().expect("promoted");
    pair.front.retarget(pair.replica.port());
    refuse(&pair);
    goes_on(&pool).await;
    assert!(pair.front.connections() <= 12, "{} connections", pair.front.connections());
}

// An old master that comes back as a replica keeps the client's connection open.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_demoted_master_is_left() {
    is_left(|pair| pair.master.replicate(&pair.replica).expect("it follows")).await;
}

// One that writes only with a replica is no replica itself.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_master_without_replicas_is_left() {
    is_left(|pair| {
        let set = pair.master.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]).expect("a reply");
        assert_eq!(set.error_code(), None);
    })
    .await;
}

// A lease longer than any that the replica has heard of: its length was lost with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_longer_lease_than_the_replica_knows_of_is_waited_for() {
    let pair = Pair::start();
    let chain = Chain::new(&["a"], 7);
    let one = pair.pool(options(&["a"]), &chain).await;
    let other = pair.pool(options(&["a"]), &chain).await;
    drop(one.acquire_with(patient()).await.expect("granted"));
    pair.in_step().await;
    pair.link.cut();
    let longer = leasehold::client::AcquireOptions { ttl: Some(3_000 * MILLISECOND), ..patient() };
    let Ok(held) = one.acquire_with(longer).await else { return };
    pair.fail_over();
    let next = other.acquire_with(within(15_000)).await.expect("granted");
    assert!(!held.is_held(), "granted {} ms too early", held.remaining_micros() / MILLISECOND);
    drop(next);
}
