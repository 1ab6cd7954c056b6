//! Commands and replies that are lost, doubled or late: everything happens once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use leasehold::client::{AcquireOptions, PoolOptions};
use leasehold::{Code, MILLISECOND};
use leasehold_faults::{
    Chain, Place, Pool, eventually, goes_on, handle_with, opened, options, patient, soon,
};
use leasehold_servers::Proxy;

const RESPONSE: f64 = 400.0;

struct Setting {
    place: Place,
    proxy: Proxy,
    chain: Arc<Chain>,
    /// Through the proxy.
    pool: Pool,
    /// Past it.
    direct: Pool,
}

impl Setting {
    async fn new(slots: &[&str]) -> Self {
        let place = Place::redis();
        let proxy = Proxy::start(place.server().port()).expect("a proxy");
        let chain = Chain::new(slots, 7);
        let lasting = PoolOptions { ttl: 1_500 * MILLISECOND, ..options(slots) };
        let direct = place.pool(lasting.clone(), None).await;
        let handle = handle_with(&proxy.url(), "faults", RESPONSE).expect("a good address");
        let pool = opened(&handle, lasting, chain.source()).await;
        let count = Some(slots.len() as u32);
        let leases = pool.acquire_many_with(AcquireOptions { count, ..patient() }).await.expect("granted");
        for lease in leases {
            lease.unused().expect("held");
            lease.release().await.expect("released");
        }
        Setting { place, proxy, chain, pool, direct }
    }

    async fn busy(&self) -> u32 {
        self.direct.census().await.expect("a count").busy
    }

    async fn fence(&self, slot: &str) -> u64 {
        self.direct.inspect(&[slot.to_owned()]).await.expect("a view").slots[0].view.fence
    }
}

// A client library sends a command again whose reply it lost: two leases, of which nobody knows the first.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lost_reply_to_a_claim_is_one_lease() {
    let setting = Setting::new(&["a", "b", "c"]).await;
    for round in 1..=5 {
        setting.proxy.drop_replies(1);
        let lease = setting.pool.acquire_with(patient()).await.expect("granted");
        assert_eq!(setting.proxy.dropped_replies(), round, "the fault did not strike");
        assert_eq!(setting.busy().await, 1, "exactly one");
        assert_eq!(setting.fence(lease.slot()).await, lease.fence());
        assert_eq!(lease.nonce(), Some(7));
        lease.unused().expect("held");
        lease.release().await.expect("released");
        assert_eq!(setting.busy().await, 0);
    }
    assert_eq!(setting.chain.reads(), 3, "no nonce came into doubt");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_claim_that_is_executed_twice_is_one_lease() {
    let setting = Setting::new(&["a", "b", "c"]).await;
    for round in 1..=10 {
        setting.proxy.duplicate_next_request();
        let lease = setting.pool.acquire_with(patient()).await.expect("granted");
        assert_eq!(setting.proxy.duplicated_requests(), round, "the fault did not strike");
        assert_eq!(setting.busy().await, 1, "exactly one");
        assert_eq!(setting.fence(lease.slot()).await, lease.fence());
        lease.unused().expect("held");
        lease.release().await.expect("released");
    }
}

// A release that is sent again after somebody else has got the slot frees it under that one, or tells its
// own holder that it was lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_release_that_is_lost_or_doubled_is_one_release() {
    let setting = Setting::new(&["a"]).await;
    let mut next = 7;
    for round in 0..6 {
        let lease = setting.pool.acquire_with(patient()).await.expect("granted");
        assert_eq!(lease.nonce(), Some(next));
        next += 1;
        lease.used(None).expect("the next one");
        if round % 2 == 0 {
            setting.proxy.drop_replies(1);
        } else {
            setting.proxy.duplicate_next_request();
        }
        let pool = setting.direct.clone();
        let rival = tokio::spawn(async move { pool.acquire_with(patient()).await.expect("granted") });
        lease.release().await.expect("released, and once");
        let rival = rival.await.expect("no panic");
        assert_eq!(rival.nonce(), Some(next), "the outcome was recorded once");
        assert!(rival.fence() > lease.fence());
        tokio::time::sleep(Duration::from_millis(60)).await;
        rival.renew().await.expect("nobody freed it");
        rival.unused().expect("held");
        rival.release().await.expect("its own");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_renewal_and_a_resync_outlive_a_lost_reply() {
    let setting = Setting::new(&["a"]).await;
    let lease = setting.pool.acquire_with(patient()).await.expect("granted");
    setting.proxy.drop_replies(1);
    lease.renew().await.expect("renewed");
    setting.proxy.drop_replies(1);
    assert_eq!(lease.resync(40, false).await.expect("recorded"), 40);
    setting.proxy.duplicate_next_request();
    lease.renew().await.expect("renewed");
    let here = lease.remaining_micros();
    let there = setting.direct.inspect(&["a".to_owned()]).await.expect("a view").slots[0].left_micros;
    assert!(here <= there + 5 * MILLISECOND, "{here} here, {there} there");
}

// Connections that end at any moment, under load: never two holders, and nothing lost at the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn connections_cut_under_load() {
    let setting = Setting::new(&["a", "b", "c", "d"]).await;
    let holders: Arc<Mutex<HashMap<String, u64>>> = Arc::default();
    let end = Instant::now() + Duration::from_secs(5);
    let workers: Vec<_> = (0..12)
        .map(|number| {
            let pool = if number % 3 == 0 { setting.direct.clone() } else { setting.pool.clone() };
            let holders = holders.clone();
            tokio::spawn(async move {
                let mut granted = 0;
                while Instant::now() < end {
                    let lease = match pool.acquire_with(patient()).await {
                        Ok(lease) => lease,
                        Err(error) => {
                            let codes = [Code::StoreUnavailable, Code::Lost];
                            assert!(codes.contains(&error.code()), "{error}");
                            continue;
                        }
                    };
                    granted += 1;
                    {
                        let mut holders = holders.lock().expect("no panic");
                        let before = holders.insert(lease.slot().to_owned(), lease.fence());
                        assert!(before.is_none_or(|fence| fence < lease.fence()), "a fence fell");
                    }
                    tokio::time::sleep(Duration::from_millis(4)).await;
                    if lease.is_held() {
                        let latest = holders.lock().expect("no panic")[lease.slot()];
                        assert!(
                            latest == lease.fence() || !lease.is_held(),
                            "two holders of {} at once",
                            lease.slot()
                        );
                    }
                    lease.unused().expect("held");
                    if let Err(error) = lease.release().await {
                        let codes = [Code::StoreUnavailable, Code::Lost];
                        assert!(codes.contains(&error.code()), "{error}");
                    }
                }
                granted
            })
        })
        .collect();
    let mut cuts = 0;
    while Instant::now() < end {
        tokio::time::sleep(Duration::from_millis(23)).await;
        match cuts % 3 {
            0 => setting.proxy.disconnect(),
            1 => setting.proxy.drop_replies(1),
            _ => {}
        }
        cuts += 1;
    }
    setting.proxy.heal().expect("healed");
    let mut granted = 0;
    for worker in workers {
        granted += soon(Duration::from_secs(30), "a worker", worker).await.0.expect("no panic");
    }
    println!("cuts: {granted} grants under {cuts} cuts in 5 s");
    assert!(granted > 100, "{granted} grants");
    goes_on(&setting.pool).await;
    assert_eq!(setting.pool.statistics().leased, 0);
}

// Half open: what was sent before is delivered when nobody waits for it any more.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_half_open_connection_delivers_late() {
    let setting = Setting::new(&["a", "b", "c"]).await;
    let held = setting.pool.acquire_with(patient()).await.expect("granted");
    setting.proxy.stall();
    let callers: Vec<_> = (0..6)
        .map(|_| {
            let pool = setting.pool.clone();
            tokio::spawn(async move { pool.acquire_with(leasehold_faults::within(700)).await.map(drop) })
        })
        .collect();
    let (outcome, _) = soon(Duration::from_secs(2), "a renewal", held.renew()).await;
    assert_eq!(outcome.expect_err("nothing comes through").code(), Code::StoreUnavailable);
    for caller in callers {
        let (outcome, _) = soon(Duration::from_secs(2), "a caller", caller).await;
        assert_eq!(outcome.expect("no panic").expect_err("nothing").code(), Code::StoreUnavailable);
    }
    setting.proxy.heal().expect("healed");
    goes_on(&setting.pool).await;
    drop(held);
    let free = eventually("nothing is held", async || setting.busy().await == 0);
    soon(Duration::from_secs(3), "giving back", free).await;
    assert_eq!(setting.place.server().command(&["PING"]).expect("a reply").as_text(), Some("PONG"));
}
