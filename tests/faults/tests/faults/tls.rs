//! Servers that speak TLS. What a process believes its environment says, so that each client here is a process.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::slice::from_ref;
use std::time::{Duration, Instant};

use leasehold_faults::{Holder, eventually, soon, tickets};
use leasehold_servers::{Certificate, Cluster, RedisOptions, RedisServer, Sentinel};

const PROGRAM: &str = env!("CARGO_BIN_EXE_holder");
const PASSWORD: &str = "secret-3e90";
/// Who waits asks again when this has passed, whether or not a message comes.
const TTL: u64 = 4_000;
const BOUND: Duration = Duration::from_secs(30);
/// One that is readable and no certificate, and one that is not even readable.
const NONE: &str = "-----BEGIN CERTIFICATE-----\nbm9uZQ==\n-----END CERTIFICATE-----\n\
    -----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n";

fn secure(host: &str) -> RedisOptions {
    RedisOptions {
        password: Some(PASSWORD.to_owned()),
        tls: Some(Certificate::of(host).expect("it is made")),
        ..RedisOptions::default()
    }
}

fn started(options: RedisOptions) -> RedisServer {
    RedisServer::start(options).expect("a server starts")
}

/// A process that believes this authority and no other, and has the slot; or what it says instead.
async fn holder(url: &str, authority: &Path) -> Result<Holder, String> {
    let mut command = Command::new(PROGRAM);
    command.env("SSL_CERT_FILE", authority).env_remove("SSL_CERT_DIR");
    let url = url.to_owned();
    tokio::task::spawn_blocking(move || Holder::run(command, &url, "a", TTL)).await.expect("no panic")
}

/// On a machine that is busy a server may have given no answer at all.
fn is_late(said: &str) -> bool {
    ["did not answer in time", "gave no answer"].iter().any(|late| said.contains(late))
}

async fn granted(url: &str, authority: &Path) -> Holder {
    loop {
        match holder(url, authority).await {
            Ok(holder) => return holder,
            Err(said) => assert!(is_late(&said), "{said}"),
        }
    }
}

/// One holds the slot and renews it; another waits, and is told by a message of these servers that it was given back.
async fn is_served(url: &str, servers: &[RedisServer]) {
    let authority = servers[0].authority();
    let mut held = soon(BOUND, "the lease", granted(url, &authority)).await.0;
    assert_eq!(held.ask("renew"), "renewed");
    let waits = {
        let url = url.to_owned();
        tokio::spawn(async move { (granted(&url, &authority).await, Instant::now()) })
    };
    eventually("it waits", async || servers.iter().map(tickets).sum::<usize>() == 1).await;
    // It asks once more after it has come to the queue.
    tokio::time::sleep(Duration::from_millis(60)).await;
    let is_listened_to = |server: &RedisServer| {
        let list = server.command(&["CLIENT", "LIST", "TYPE", "pubsub"]).expect("a reply");
        list.as_text().expect("text").contains(&format!("laddr=127.0.0.1:{} ", server.entry()))
    };
    assert!(servers.iter().any(is_listened_to), "nobody listens over TLS");
    let released = Instant::now();
    assert_eq!(held.ask("release"), "released");
    let (next, at) = soon(BOUND, "the waiter", waits).await.0.expect("no panic");
    assert!(next.fence > held.fence);
    let took = at - released;
    assert!(took < Duration::from_millis(TTL * 3 / 4), "{took:?}");
}

async fn is_refused(url: &str, authority: &Path, cause: &str) {
    eventually("it is told why", async || {
        let Err(said) = soon(BOUND, "the refusal", holder(url, authority)).await.0 else {
            panic!("it was believed")
        };
        assert!(said.starts_with("failed store_unavailable "), "{said}");
        assert!(!said.contains(PASSWORD), "{said}");
        assert!(said.contains(cause) || is_late(&said), "{said}");
        said.contains(cause)
    })
    .await;
}

// It was seen over TCP only: over TLS the first call after the end of the connection failed, each time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_was_closed_while_nobody_asked_is_not_sent_over() {
    let server = started(secure("127.0.0.1"));
    let mut holder = soon(BOUND, "the lease", granted(&server.url(), &server.authority())).await.0;
    for _ in 0..3 {
        assert_eq!(holder.ask("try"), "exhausted");
        assert_eq!(holder.ask("renew"), "renewed");
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]).expect("a reply");
        // Nobody asks for a while.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    assert_eq!(holder.ask("release"), "released");
}

// No test had ever spoken TLS.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_believed_by_its_certificate_and_the_file_that_the_environment_names() {
    let (one, other) = (started(secure("127.0.0.1")), started(secure("localhost")));
    let (by_address, by_name) = (one.url(), other.url().replace("127.0.0.1", "localhost"));
    assert!(by_name.starts_with("rediss://"), "{by_name}");
    tokio::join!(is_served(&by_address, from_ref(&one)), is_served(&by_name, from_ref(&other)));
    is_refused(&by_address, &other.authority(), "UnknownIssuer").await;
    is_refused(&by_name.replace("localhost", "127.0.0.1"), &other.authority(), "not valid for name").await;
    is_refused(&by_address, Path::new("/nowhere.pem"), "/nowhere.pem").await;
}

// One such file among all that a system has, and no server could be spoken to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_no_certificate_among_those_of_a_system_keeps_nobody_from_believing_the_others() {
    let server = started(secure("127.0.0.1"));
    let mut file = OpenOptions::new().append(true).open(server.authority()).expect("it is there");
    file.write_all(NONE.as_bytes()).expect("it is written");
    is_served(&server.url(), from_ref(&server)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_and_their_primary_are_spoken_to_over_tls() {
    let options = secure("127.0.0.1");
    let (primary, replica) = (started(options.clone()), started(options));
    replica.replicate(&primary).expect("it follows");
    let sentinel = Sentinel::start(&primary).expect("a sentinel starts");
    // It is the primary to the end, in which who waits is looked for.
    sentinel.bear_silence().expect("it is told");
    let url = sentinel.url(&[]);
    assert!(url.starts_with("rediss+sentinel://"), "{url}");
    is_served(&url, from_ref(&primary)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_nodes_of_a_cluster_are_spoken_to_over_tls() {
    let cluster = Cluster::with_options(&secure("127.0.0.1")).expect("a cluster starts");
    // Entered where the pool is not.
    let node = cluster.node_of(cluster.slot("{relayers}").expect("a slot"));
    let url = cluster.url(&[(node + 1) % cluster.nodes().len()]);
    assert!(url.starts_with("rediss+cluster://"), "{url}");
    is_served(&url, cluster.nodes()).await;
}
