//! A cluster: all keys of a pool are on one node, and the wrong node is told as such.

use std::time::Duration;

use leasehold::Code;
use leasehold_faults::{goes_on, handle_with, options, soon, within};
use leasehold_servers::Cluster;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_keys_of_a_pool_share_one_node() {
    let cluster = Cluster::start().expect("a cluster starts");
    let node_of = |pool: &str| {
        let key = format!("eth%3A1:{{{pool}}}:meta");
        let slot = cluster.nodes()[0].command(&["CLUSTER", "KEYSLOT", &key]).expect("a reply");
        slot.as_int().expect("a slot")
    };
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
            }
        }
    }
    assert!(served > 0 && moved > 0, "{served} served, {moved} moved");
    // Every key that was written has the pool's hash slot, lanes included.
    let keys = cluster.nodes()[0].command(&["KEYS", "*"]).expect("a reply");
    let keys: Vec<String> =
        keys.as_array().expect("a list").iter().map(|key| key.as_text().expect("text").to_owned()).collect();
    assert!(keys.iter().any(|key| key.contains(":lane:")), "{keys:?}");
    for key in keys {
        let slot = cluster.nodes()[0].command(&["CLUSTER", "KEYSLOT", &key]).expect("a reply");
        let name = key.split(['{', '}']).nth(1).expect("a hash tag");
        assert_eq!(slot.as_int(), Some(node_of(name)), "{key}");
        assert!(key.starts_with("eth%3A1:{"), "{key}");
    }
}
