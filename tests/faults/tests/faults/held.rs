//! A lock that is kept and who waits for it, on a server that restarts, forgets, or is replaced: no two believe at once that they
//! have it, and all have it in the end.

use std::time::{Duration, Instant};

use leasehold::client::LockOptions;
use leasehold::{Code, Micros, NativeLocked, SECOND};
use leasehold_faults::{Place, eventually, handle_with, soon, tickets};
use leasehold_servers::{RedisOptions, RedisServer};

use crate::failover::Pair;

const RESPONSE: f64 = 300.0;
/// What a lock lives without a renewal, which is as long as those of a handle here may.
const TTL: Micros = 2 * SECOND;
/// How long the first has it: for longer than it lives after whatever happens meanwhile.
const LONG: Duration = Duration::from_secs(5);
const BRIEF: Duration = Duration::from_millis(100);
const BOUND: Duration = Duration::from_secs(30);

/// From when until when, at the least, somebody believed to have the lock.
#[derive(Debug)]
struct Belief {
    fence: u64,
    from: Instant,
    until: Instant,
    is_lost: bool,
}

/// The lock, in a handle of its own.
async fn acquired(url: String) -> NativeLocked {
    let handle = handle_with(&url, "faults", RESPONSE).expect("a good address");
    let options = LockOptions { ttl: TTL, timeout: 60 * SECOND, ..LockOptions::default() };
    let lock = handle.lock_with(["account:13"], options).expect("a good name");
    soon(BOUND, "the lock", lock.acquire()).await.0.expect("granted")
}

/// Has it for so long, or until it is lost.
async fn believed(held: NativeLocked, time: Duration) -> Belief {
    let (from, lost) = (Instant::now(), held.lost());
    let mut until = from;
    while until - from < time {
        let now = Instant::now();
        if !held.is_held() {
            break;
        }
        until = now;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let end = soon(BOUND, "the release", held.release()).await.0;
    let told = soon(BOUND, "its end", lost).await.0;
    assert_eq!(told.is_some(), end.is_err(), "who loses it is told, and nobody else: {told:?}, {end:?}");
    let is_lost = end.inspect_err(|error| assert_eq!(error.code(), Code::Lost, "{error}")).is_err();
    Belief { fence: held.fence(), from, until, is_lost }
}

/// One has the lock and another waits for it as the fault strikes, and `newcomers`, who have seen nothing of that, come then. What
/// the first believed.
async fn no_two_have_it(
    url: String,
    server: &RedisServer,
    newcomers: usize,
    fault: impl AsyncFnOnce(),
) -> Belief {
    let held = acquired(url.clone()).await;
    let waits = || {
        let url = url.clone();
        tokio::spawn(async move { believed(acquired(url).await, BRIEF).await })
    };
    let mut others = vec![waits()];
    eventually("it waits", async || tickets(server) == 1).await;
    let first = tokio::spawn(believed(held, LONG));
    fault().await;
    others.extend((0..newcomers).map(|_| waits()));
    let first = first.await.expect("no panic");
    let mut before = &first;
    let mut after = Vec::new();
    for other in others {
        after.push(other.await.expect("no panic"));
    }
    after.sort_unstable_by_key(|belief| belief.from);
    for next in &after {
        assert!(before.until < next.from, "two have it: {before:?} and {next:?}");
        assert!(before.fence < next.fence, "the fence fell: {before:?} and {next:?}");
        before = next;
    }
    first
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lock_outlives_a_restart_of_a_server_that_forgets_nothing() {
    let options = RedisOptions { appendonly: true, ..RedisOptions::default() };
    let server = RedisServer::start(options).expect("starts");
    let mut took = Duration::ZERO;
    let first = no_two_have_it(server.url(), &server, 2, async || {
        let begun = Instant::now();
        server.restart().expect("restarted");
        took = begun.elapsed();
    });
    let first = first.await;
    // On a machine that is busy it may take longer than the lock lives.
    assert!(!first.is_lost || took > Duration::from_micros(TTL) / 4, "lost, and it took {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_two_have_a_lock_that_a_server_forgets() {
    let (restarted, flushed) = (Place::redis(), Place::redis());
    let restart = async || restarted.server().restart().expect("restarted");
    let flush = async || drop(flushed.server().command(&["FLUSHALL"]).expect("a reply"));
    tokio::join!(
        no_two_have_it(restarted.url().to_owned(), restarted.server(), 2, restart),
        // A server does not tell of this, and who has seen nothing of what it had cannot know.
        no_two_have_it(flushed.url().to_owned(), flushed.server(), 0, flush),
    );
}

/// The link is cut before anybody has the lock, or when one has it and another waits.
async fn a_lagging_replica_is_promoted(knows: bool) {
    let pair = Pair::start();
    let url = pair.front.url();
    // It knows of the locks before.
    believed(acquired(url.clone()).await, Duration::ZERO).await;
    pair.in_step().await;
    if !knows {
        pair.link.cut();
    }
    let fault = async || {
        if knows {
            pair.in_step().await;
            pair.link.cut();
            // All renewals that it has heard of have run out.
            tokio::time::sleep(Duration::from_micros(TTL) * 5 / 4).await;
        }
        pair.fail_over();
    };
    no_two_have_it(url, pair.master(), 2, fault).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_two_have_a_lock_of_which_a_promoted_replica_knows_too_little() {
    tokio::join!(a_lagging_replica_is_promoted(false), a_lagging_replica_is_promoted(true));
}
