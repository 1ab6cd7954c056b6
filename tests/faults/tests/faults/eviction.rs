//! A server that may delete keys when its memory is full deletes leases.

use std::time::Duration;

use leasehold::Code;
use leasehold_faults::{goes_on, handle, options, soon};
use leasehold_servers::{RedisOptions, RedisServer, Resp};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_eviction_policy_is_refused() {
    for (policy, protocol) in [
        ("allkeys-lru", ""),
        ("volatile-ttl", ""),
        ("volatile-lru", ""),
        // Which answers the question with a map.
        ("allkeys-lru", "?protocol=resp3"),
    ] {
        let settings = RedisOptions { maxmemory_policy: Some(policy.to_owned()), ..RedisOptions::default() };
        let server = RedisServer::start(settings).expect("starts");
        let handle = handle(&format!("{}{protocol}", server.url()));
        let bound = Duration::from_secs(3);
        let (outcome, _) = soon(bound, "opening", handle.pool_with("relayers", options(&["a"]), None)).await;
        let error = outcome.expect_err("it would delete leases");
        assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
        assert!(error.message().contains(policy) && error.message().contains("noeviction"), "{error}");
        assert!(error.message().contains("nothing was done"), "{error}");
        // Once it is set right, the same handle works.
        let set = server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        assert_eq!(set.expect("a reply"), Resp::ok());
        goes_on(&handle.pool_with("relayers", options(&["a"]), None).await.expect("opens")).await;
    }
}

// Managed servers forbid CONFIG: what cannot be looked at is not refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_policy_that_cannot_be_read_is_let_pass() {
    let settings = RedisOptions {
        maxmemory_policy: Some("volatile-lru".to_owned()),
        arguments: ["--rename-command", "CONFIG", ""].map(str::to_owned).to_vec(),
        ..RedisOptions::default()
    };
    let server = RedisServer::start(settings).expect("starts");
    goes_on(&handle(&server.url()).pool_with("relayers", options(&["a"]), None).await.expect("opens")).await;
}
