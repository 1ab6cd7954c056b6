//! A primary that sentinels watch: it is found, and so is the next.

use std::time::Duration;

use leasehold::client::PoolOptions;
use leasehold::{Code, MILLISECOND};
use leasehold_faults::{Lease, Pool, eventually, goes_on, handle, options, patient, soon, successor, within};
use leasehold_servers::{Proxy, RedisOptions, RedisServer, Sentinel};

use crate::push::{handover, lasting};

const PASSWORD: &str = "secret-5d41";

/// A primary, its replica, and a sentinel of both.
struct Watched {
    servers: [RedisServer; 2],
    sentinel: Sentinel,
    /// Where a sentinel was once.
    gone: Proxy,
}

impl Watched {
    fn start(own: Option<&str>) -> Self {
        let settings = RedisOptions { password: Some(PASSWORD.to_owned()), ..RedisOptions::default() };
        let servers = [(); 2].map(|()| RedisServer::start(settings.clone()).expect("a server starts"));
        servers[1].replicate(&servers[0]).expect("it follows");
        let sentinel = Sentinel::with_password(&servers[0], own).expect("a sentinel starts");
        let gone = Proxy::start(1).expect("a proxy");
        gone.cut();
        Watched { servers, sentinel, gone }
    }

    async fn pool(&self, options: PoolOptions) -> Pool {
        let handle = handle(&self.sentinel.url(&[self.gone.port()]));
        handle.pool_with("relayers", options, None).await.expect("opens")
    }

    /// Waits until the replica is the primary, for the sentinel as for itself.
    async fn promoted(&self) {
        let replica = &self.servers[1];
        eventually("the replica is promoted", async || {
            // As it is promoted, it closes its connections.
            let said = replica.command(&["SET", "step", "1"]);
            let writes = said.is_ok_and(|said| said.error_code().is_none());
            writes && self.sentinel.primary().is_ok_and(|port| port == replica.port())
        })
        .await;
    }
}

/// So short that a failover outlasts it.
fn brief() -> PoolOptions {
    PoolOptions { ttl: 900 * MILLISECOND, ..options(&["a"]) }
}

/// Waits until the primary of before, which goes on to serve for some ten seconds, grants nothing more that the next does not know.
/// That it grants something and has it back says nothing of that.
async fn leaves(watched: &Watched, pool: &Pool) {
    eventually("the primary of before serves no more", async || {
        !watched.servers[0].command(&["SET", "step", "1"]).is_ok_and(|said| said.error_code().is_none())
    })
    .await;
    eventually("it leaves the primary of before", async || {
        let lease = pool.acquire_with(within(15_000)).await.expect("granted");
        lease.unused().and(lease.release().await).is_ok()
    })
    .await;
}

async fn a_failover(own: Option<&str>, fail: impl Fn(&Watched)) {
    let watched = Watched::start(own);
    let (one, other) = (watched.pool(brief()).await, watched.pool(brief()).await);
    goes_on(&one).await;
    goes_on(&other).await;
    let held = one.acquire_with(patient()).await.expect("granted");
    fail(&watched);
    let lease = successor(&other, &held).await;
    watched.promoted().await;
    // Where the primary of before granted it in its last moments, it is lost with what that one knew.
    if let Err(error) = lease.release().await {
        assert_eq!(error.code(), Code::Lost, "{error}");
    }
    for pool in [&one, &other] {
        leaves(&watched, pool).await;
        goes_on(pool).await;
    }
    let keys = watched.servers[1].command(&["EXISTS", "faults:{relayers}:meta"]).expect("a reply");
    assert_eq!(keys.as_int(), Some(1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_primary_that_is_replaced_is_left_for_the_next() {
    a_failover(None, |watched| watched.sentinel.fail_over().expect("begun")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_primary_that_dies_is_left_for_the_next() {
    a_failover(Some("own-1f3a"), |watched| watched.servers[0].kill().expect("killed")).await;
}

// The primary of before goes on to serve for some ten seconds, and whoever kept its connection was granted what another had.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn after_a_failover_nobody_is_granted_by_the_primary_of_before() {
    let watched = Watched::start(None);
    let one = watched.pool(brief()).await;
    goes_on(&one).await;
    watched.sentinel.fail_over().expect("begun");
    watched.promoted().await;
    assert!(
        watched.servers[0].command(&["SET", "step", "1"]).expect("a reply").error_code().is_none(),
        "it serves"
    );
    let other = watched.pool(brief()).await;
    let mut held = None;
    for _ in 0..60 {
        // Each holds what it is granted until the other has tried.
        for pool in [&one, &other] {
            let lease = pool.acquire_with(within(0)).await.ok();
            if let Some(lease) = lease {
                let before = held.replace(lease);
                assert!(
                    before.is_none_or(|before: Lease| !before.is_held()),
                    "granted while somebody holds it"
                );
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

// Its connections stay open, and nobody speaks.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_primary_that_hangs_is_left_and_no_longer_listened_to() {
    let watched = Watched::start(None);
    let (one, other) = (watched.pool(lasting()).await, watched.pool(lasting()).await);
    handover(&one, &other).await;
    watched.servers[0].pause().expect("paused");
    watched.promoted().await;
    goes_on(&one).await;
    handover(&one, &other).await;
    let list = watched.servers[1].command(&["CLIENT", "LIST", "TYPE", "pubsub"]).expect("a reply");
    assert!(list.as_text().expect("text").contains("addr="), "somebody listens there");
    let took = handover(&one, &other).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_primary_that_the_sentinels_do_not_know_is_told_of_and_no_password() {
    let watched = Watched::start(Some("own-1f3a"));
    let good = watched.sentinel.url(&[]);
    for (url, cause) in [
        (good.replace("/relayers", "/payers"), "no primary of that name"),
        (good.replace("?sentinel_password=own-1f3a", ""), "NOAUTH"),
        (good.replace("own-1f3a", "wrong-9b"), "authentication failed"),
        (good.replace(PASSWORD, "wrong-9b"), "authentication failed"),
    ] {
        let handle = handle(&url);
        let opening = handle.pool_with("relayers", options(&["a"]), None);
        let (outcome, _) = soon(Duration::from_secs(5), "opening", opening).await;
        let error = outcome.expect_err("it is not there");
        assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
        for secret in [PASSWORD, "own-1f3a", "wrong-9b"] {
            assert!(!error.message().contains(secret), "{error}");
        }
        assert!(error.message().contains(cause), "{error}");
    }
}
