//! Locks that a majority of real servers grants, while some of them are killed, stopped, or come back without memory.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use leasehold::client::native::NativeQuorum;
use leasehold::client::{LockOptions, RunError};
use leasehold::{Code, SECOND};
use leasehold_faults::{Contenders, Contest, Place, handle_with, quorum_with, soon};
use leasehold_servers::Proxy;
use tokio::sync::mpsc::unbounded_channel;

const RESPONSE: f64 = 300.0;
const TTL: u64 = SECOND;

/// Servers of this test's own.
struct Servers([Place; 3]);

impl Servers {
    fn start() -> Self {
        Servers([Place::redis(), Place::redis(), Place::redis()])
    }

    fn urls(&self) -> [&str; 3] {
        self.0.each_ref().map(Place::url)
    }

    /// Another process, as far as the servers can tell.
    fn quorum(&self) -> NativeQuorum {
        quorum_with(&self.urls(), RESPONSE)
    }

    /// Fresh servers grant no lock until those have ended that they may have forgotten.
    async fn settled(self) -> Self {
        for place in &self.0 {
            let handle = handle_with(place.url(), "leasehold", RESPONSE).expect("a good address");
            handle.lock_with(["first"], waiting(20)).expect("a good name").acquire().await.expect("granted");
        }
        self
    }

    fn kill(&self, at: usize) {
        self.0[at].server().kill().expect("killed");
    }

    fn restart(&self, at: usize) {
        self.0[at].server().restart().expect("restarted");
    }
}

/// A lock that lives a second without a renewal, and is waited for for so many.
fn waiting(seconds: u64) -> LockOptions {
    LockOptions { ttl: TTL, timeout: seconds * SECOND, ..LockOptions::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_three_may_fail_and_two_may_not() {
    let servers = Servers::start().settled().await;
    let (here, there) = (servers.quorum(), servers.quorum());
    let lock = here.lock_with(["account:1", "treasury"], waiting(5)).expect("good names");
    let other = there.lock_with(["treasury"], waiting(0)).expect("a good name");
    let held = lock.acquire().await.expect("granted");
    // One is killed while it is held.
    servers.kill(0);
    tokio::time::sleep(Duration::from_micros(2 * TTL)).await;
    assert!(held.is_held(), "the others have renewed it");
    let error = other.acquire().await.expect_err("held");
    assert_eq!(error.code(), Code::Exhausted, "{error}");
    held.release().await.expect("released");
    // One is dead as it is acquired.
    let next = there.lock_with(["treasury"], waiting(5)).expect("a good name");
    let next = next.acquire().await.expect("two are enough");
    next.release().await.expect("released");

    // Two are gone, one of which only hangs: it ends in time, and says why.
    let held = lock.acquire().await.expect("two are enough");
    servers.0[1].server().pause().expect("stopped");
    let impatient = there.lock_with(["another"], waiting(1)).expect("a good name");
    let (error, took) = soon(Duration::from_secs(5), "the refusal", impatient.acquire()).await;
    let error = error.expect_err("one is too few");
    assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
    assert!(error.message().contains("1 of 3 servers answered, and 2 must"), "{error}");
    assert!(took >= Duration::from_secs(1), "{took:?}");
    let error = soon(Duration::from_micros(2 * TTL), "the message", held.lost()).await.0.expect("lost");
    assert_eq!((error.code(), held.is_held()), (Code::Lost, false));
    // What is known to be lost is not retried.
    let (end, took) = soon(Duration::from_secs(5), "the end", held.release()).await;
    assert_eq!(end.expect_err("lost").code(), Code::Lost);
    assert!(took < Duration::from_millis(200), "{took:?}");

    servers.0[1].server().resume().expect("it goes on");
    let value = lock.run(async |locked| locked.is_held()).await.expect("two are enough");
    assert!(value);
    // A body that outlives its majority loses nothing of what it gave.
    let outlived = lock.run(async |locked: &leasehold::client::Locked<_, _>| {
        servers.kill(1);
        locked.lost().await.expect("lost");
        "what it gave"
    });
    match soon(Duration::from_secs(10), "the run", outlived).await.0 {
        Err(RunError::Lost { error, output }) => {
            assert_eq!((error.code(), output), (Code::Lost, "what it gave"));
        }
        other => panic!("{other:?}"),
    }
}

// A majority of servers that came back without memory granted the same lock again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_that_forget_let_nobody_in_beside_the_holder() {
    let servers = Servers::start().settled().await;
    servers.kill(0);
    let held = servers.quorum().lock_with(["a"], waiting(5)).expect("a good name").acquire().await;
    let held = held.expect("two are enough");
    // Now two of the three know nothing of it.
    servers.restart(0);
    servers.kill(1);
    servers.restart(1);
    let there = servers.quorum();
    let error =
        there.lock_with(["a"], waiting(0)).expect("a good name").acquire().await.expect_err("too early");
    assert!(error.message().contains("the store may have lost leases"), "{error}");
    let next = there.lock_with(["a"], waiting(20)).expect("a good name").acquire().await.expect("in the end");
    assert!(!held.is_held() && next.is_held());
    assert!(next.fence() > held.fence());
    assert_eq!(held.release().await.expect_err("lost").code(), Code::Lost);
    assert!(next.is_held());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_reaches_the_server_whose_answer_was_lost() {
    let servers = Servers::start().settled().await;
    let proxy = Proxy::start(servers.0[2].server().port()).expect("a proxy");
    let quorum = quorum_with(&[servers.urls()[0], servers.urls()[1], &proxy.url()], RESPONSE);
    let lock = quorum.lock_with(["a"], LockOptions { ttl: 2 * SECOND, ..waiting(5) }).expect("a good name");
    // The connection stands, and what comes next is lost.
    lock.acquire().await.expect("granted").release().await.expect("released");
    proxy.drop_replies(1);
    let began = Instant::now();
    lock.acquire().await.expect("two are enough").release().await.expect("released");
    let third = handle_with(servers.urls()[2], "leasehold", RESPONSE).expect("a good address");
    let third = third.lock_with(["a"], waiting(10)).expect("a good name").acquire().await.expect("free");
    assert!(began.elapsed() < Duration::from_millis(1_900), "it was not given back: it ran out");
    drop(third);
}

/// Four processes of five callers each, while one server is killed, and another stopped for a time.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_at_a_time_is_inside_whatever_the_servers_do() {
    const PROCESSES: usize = 4;
    const CALLERS: u32 = 5;
    let servers = Servers::start().settled().await;
    let gate = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("quorum-{}", std::process::id()));
    File::create(&gate).expect("a file");
    let urls = servers.urls().join(",");
    let contest =
        Contest { program: env!("CARGO_BIN_EXE_contender"), url: &urls, prize: "a", gate: &gate, hold: 20 };
    let (told, mut hears) = unbounded_channel();
    let processes: Vec<_> =
        (0..PROCESSES).map(|process| Contenders::start(&contest, process, CALLERS, told.clone())).collect();
    let (began, mut served) = (Instant::now(), 0);
    while served < CALLERS * PROCESSES as u32 {
        let said = soon(Duration::from_secs(60), "a word", hears.recv()).await.0.expect("told");
        match said.what.as_str() {
            // Of a bare majority one may be stopped just then; and a process that stands still for a second, on a machine
            // that is busy, outlives its lock and is told so.
            "served" | "untold" | "late" => {
                served += 1;
                match served {
                    4 => servers.kill(2),
                    8 => servers.restart(2),
                    12 => servers.0[0].server().pause().expect("stopped"),
                    16 => servers.0[0].server().resume().expect("it goes on"),
                    _ => {}
                }
            }
            "inside" | "ended" => {}
            _ => panic!("{said:?}"),
        }
    }
    println!("{served} served in {:?}", began.elapsed());
    // What processes say comes in any order. All servers are on this machine, and have one clock.
    let fences = std::fs::read_to_string(&gate).expect("it is there");
    let fences: Vec<u64> = fences.lines().map(|fence| fence.parse().expect("a fence")).collect();
    assert!(fences.is_sorted_by(|earlier, later| earlier < later), "{fences:?}");
    drop(processes);
    std::fs::remove_file(&gate).expect("it is there");
}
