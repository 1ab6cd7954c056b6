//! What is found of real servers by looking at them.

use leasehold::store::finding::{Check, Finding, Verdict};
use leasehold::{Code, NativeLeasehold};
use leasehold_faults::{eventually, goes_on, handle, options, quorum_with};
use leasehold_servers::{Cluster, Proxy, RedisOptions, RedisServer, Resp};

const ALL: [Check; 7] = [
    Check::Version,
    Check::Policy,
    Check::Persistence,
    Check::Role,
    Check::Clock,
    Check::Rights,
    Check::Push,
];

async fn found(handle: &NativeLeasehold) -> Vec<Finding> {
    let found = handle.doctor().await.expect("it answers");
    found.iter().for_each(|finding| println!("{finding}"));
    assert!(found.iter().map(|finding| finding.check).eq(ALL), "{found:?}");
    found
}

/// What of it is not as it should be.
fn wrong(found: &[Finding]) -> Vec<(Check, Verdict)> {
    let wrong = found.iter().filter(|finding| finding.verdict != Verdict::Ok);
    wrong.map(|finding| (finding.check, finding.verdict)).collect()
}

fn says(found: &[Finding], check: Check, words: &str) {
    let finding = found.iter().find(|finding| finding.check == check).expect("is looked at");
    assert!(finding.message.contains(words), "{finding}");
}

fn start(options: RedisOptions) -> RedisServer {
    RedisServer::start(options).expect("starts")
}

fn set(server: &RedisServer, setting: &str, value: &str) {
    assert_eq!(server.command(&["CONFIG", "SET", setting, value]).expect("a reply"), Resp::ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_fit_whatever_is_done_there() {
    let server = start(RedisOptions { appendonly: true, ..RedisOptions::default() });
    let handle = handle(&server.url());
    assert_eq!(wrong(&found(&handle).await), []);
    goes_on(&handle.pool_with("relayers", options(&["a"]), None).await.expect("opens")).await;
    assert_eq!(wrong(&found(&handle).await), []);
    // Nothing is left of it, and a name that a pool may have is not taken.
    let keys = server.command(&["KEYS", "*06S*"]).expect("a reply");
    assert_eq!(keys.as_array().map(<[Resp]>::len), Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_remembers_is_told() {
    let server = start(RedisOptions::default());
    let handle = handle(&server.url());
    let forgets = found(&handle).await;
    assert_eq!(wrong(&forgets), [(Check::Persistence, Verdict::Warning)]);
    says(&forgets, Check::Persistence, "a restart forgets");
    set(&server, "save", "3600 1");
    let remembers = found(&handle).await;
    assert_eq!(wrong(&remembers), []);
    says(&remembers, Check::Persistence, "save 3600 1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_eviction_policy_is_found_before_and_after_it_is_connected_to() {
    let server = start(RedisOptions { appendonly: true, ..RedisOptions::default() });
    let before = handle(&server.url());
    found(&before).await;
    set(&server, "maxmemory-policy", "allkeys-lru");
    let evicts = found(&before).await;
    assert_eq!(wrong(&evicts), [(Check::Policy, Verdict::Error)]);
    says(&evicts, Check::Policy, "allkeys-lru");
    // Who connects now is refused, and hears why.
    let refused = found(&handle(&server.url())).await;
    says(&refused, Check::Policy, "allkeys-lru");
    for finding in &refused {
        let is_policy = finding.check == Check::Policy;
        assert_eq!(finding.verdict, if is_policy { Verdict::Error } else { Verdict::Unknown });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_refuses_every_write_is_not_fit() {
    let server = start(RedisOptions { appendonly: true, ..RedisOptions::default() });
    let handle = handle(&server.url());
    for (setting, value, check) in
        [("min-replicas-to-write", "1", Check::Role), ("maxmemory", "1", Check::Policy)]
    {
        assert_eq!(wrong(&found(&handle).await), []);
        set(&server, setting, value);
        assert_eq!(wrong(&found(&handle).await), [(check, Verdict::Error)]);
        set(&server, setting, "0");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_told_from_its_primary() {
    let [primary, replica] =
        [(); 2].map(|()| start(RedisOptions { appendonly: true, ..RedisOptions::default() }));
    replica.replicate(&primary).expect("follows");
    let asks = handle(&primary.url());
    eventually("the replica is up to date", async || {
        asks.doctor().await.expect("it answers").iter().any(|finding| finding.message.contains("1 replica;"))
    })
    .await;
    assert_eq!(wrong(&found(&asks).await), []);
    let of_replica = found(&handle(&replica.url())).await;
    assert_eq!(wrong(&of_replica), [(Check::Role, Verdict::Error)]);
    says(&of_replica, Check::Role, "cannot be written to");
}

/// What is found for a user of these rights.
async fn found_for(server: &RedisServer, rights: &str) -> Vec<Finding> {
    let mut command = vec!["ACL", "SETUSER", "relayer", "reset", "on", ">canary"];
    command.extend(rights.split(' ').filter(|right| !right.is_empty()));
    assert_eq!(server.command(&command).expect("a reply"), Resp::ok());
    let found = found(&handle(&format!("redis://relayer:canary@127.0.0.1:{}", server.port()))).await;
    assert!(found.iter().all(|finding| !finding.message.contains("canary")), "{found:?}");
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_that_are_missing_are_found() {
    let server = start(RedisOptions { appendonly: true, ..RedisOptions::default() });
    let readme =
        "~faults:* &faults:* +@read +@write +@scripting +@pubsub +@connection +info +time +config|get";
    assert_eq!(wrong(&found_for(&server, readme).await), []);

    let found = found_for(&server, "").await;
    says(&found, Check::Rights, "may run no scripts");
    for finding in &found {
        let verdict = match finding.check {
            Check::Rights => Verdict::Error,
            Check::Push => Verdict::Warning,
            _ => Verdict::Unknown,
        };
        assert_eq!(finding.verdict, verdict, "{finding}");
    }

    let found = found_for(&server, &readme.replace("~faults:*", "~other:*")).await;
    assert_eq!(wrong(&found), [(Check::Rights, Verdict::Unknown), (Check::Push, Verdict::Unknown)]);

    // Who may do all with one pool.
    let one = readme.replace("~faults:* &faults:*", "~faults:{relayers}:* &faults:{relayers}:*");
    let found = found_for(&server, &one).await;
    assert_eq!(wrong(&found), [(Check::Rights, Verdict::Unknown), (Check::Push, Verdict::Unknown)]);
    says(&found, Check::Rights, &format!("ACL SETUSER … {readme})"));

    let found = found_for(&server, &format!("{readme} -zadd -hset -mget -time")).await;
    assert_eq!(wrong(&found), [(Check::Clock, Verdict::Unknown), (Check::Rights, Verdict::Error)]);
    for command in ["ZADD", "HSET", "MGET", "TIME"] {
        says(&found, Check::Rights, command);
    }

    let found = found_for(&server, &format!("{readme} -config|get")).await;
    assert_eq!(wrong(&found), [(Check::Rights, Verdict::Warning)]);
    says(&found, Check::Rights, "CONFIG GET");

    let found = found_for(&server, &format!("{readme} -publish")).await;
    assert_eq!(wrong(&found), [(Check::Rights, Verdict::Warning), (Check::Push, Verdict::Unknown)]);
    says(&found, Check::Rights, "PUBLISH");

    let found = found_for(&server, &format!("{readme} -subscribe")).await;
    assert_eq!(wrong(&found), [(Check::Push, Verdict::Warning)]);
    says(&found, Check::Push, "NOPERM");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_does_not_answer_is_an_error_of_the_call() {
    let server = start(RedisOptions::default());
    let proxy = Proxy::start(server.port()).expect("a proxy");
    let handle = handle(&format!("redis://127.0.0.1:{}", proxy.port()));
    found(&handle).await;
    proxy.cut();
    let error = handle.doctor().await.expect_err("nobody is there");
    assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
    handle.close();
    assert_eq!(handle.doctor().await.expect_err("it was closed").code(), Code::Cancelled);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_server_of_a_quorum_is_looked_at() {
    let (there, gone) = (start(RedisOptions::default()), Proxy::start(1).expect("a proxy"));
    gone.cut();
    let servers = ["memory:of-a-quorum", &there.url(), &format!("redis://127.0.0.1:{}", gone.port())];
    let quorum = quorum_with(&servers, 1_000.0);
    let found = quorum.doctor().await.expect("not closed");
    let of = |server: usize| found.iter().filter(move |finding| finding.server == Some(server));
    assert!(
        of(0).map(|finding| (finding.check, finding.verdict)).eq([(Check::Store, Verdict::Ok)]),
        "{found:?}"
    );
    assert!(of(1).map(|finding| finding.check).eq(ALL), "{found:?}");
    assert!(
        of(2).map(|finding| (finding.check, finding.verdict)).eq([(Check::Store, Verdict::Error)]),
        "{found:?}"
    );
    assert_eq!(found.len(), 1 + ALL.len() + 1);
    quorum.close();
    assert_eq!(quorum.doctor().await.expect_err("it was closed").code(), Code::Cancelled);
}

// What has no key goes where the first slot is, as does what has one.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_a_cluster_the_node_of_the_first_slot_is_looked_at() {
    let cluster = Cluster::start().expect("a cluster starts");
    assert_eq!(cluster.slot("faults:{06S}:doctor").expect("a slot"), 0);
    set(&cluster.nodes()[0], "save", "60 7");
    let alone = found(&handle(&cluster.nodes()[0].url())).await;
    assert_eq!(wrong(&alone), [(Check::Role, Verdict::Error)]);
    says(&alone, Check::Role, "MOVED 8192 ");
    for entry in [2, 0] {
        let found = found(&handle(&cluster.url(&[entry]))).await;
        assert_eq!(wrong(&found), [], "entered at {entry}");
        says(&found, Check::Version, "a node of a cluster");
        says(&found, Check::Persistence, "save 60 7");
    }
}
