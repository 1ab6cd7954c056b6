//! Named locks: made by who asks for them, gone with who had them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};

use leasehold::client::native::connect;
use leasehold::client::{Keepalive, LockOptions, RunError};
use leasehold::{Code, MILLISECOND, SECOND};
use leasehold_faults::{Handle, Place, eventually, handle_with, keys, soon, tickets};
use leasehold_servers::{Proxy, Resp};

const RESPONSE: f64 = 300.0;

/// A lock that lives a second without a renewal, and waits for ten.
fn brief() -> LockOptions {
    LockOptions { ttl: SECOND, timeout: 10 * SECOND, ..LockOptions::default() }
}

fn at_once() -> LockOptions {
    LockOptions { timeout: 0, ..brief() }
}

fn opened(url: &str) -> Handle {
    handle_with(url, "faults", RESPONSE).expect("a good address")
}

/// A fresh server grants no lock until those have ended that it may have forgotten.
async fn settled(place: &Place) -> Handle {
    let handle = opened(place.url());
    let lock =
        handle.lock_with(["first"], LockOptions { timeout: 20 * SECOND, ..brief() }).expect("a good name");
    lock.acquire().await.expect("granted").release().await.expect("released");
    handle
}

// One was called as the quiet time ended, and who waited for other names sat beside them, free as they were, for seconds.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_who_wait_for_a_quiet_time_to_end_ask_when_it_does() {
    let place = Place::redis();
    let handle = opened(place.url());
    let [mut one, mut other, free] = ["x", "x", "y"].map(|name| {
        let lock = handle.lock_with([name], brief()).expect("a good name");
        tokio::spawn(async move { lock.acquire().await.map(|held| (held, Instant::now())) })
    });
    // Whichever of the two has it.
    let (first, second) = tokio::select! {
        held = &mut one => (held, other),
        held = &mut other => (held, one),
    };
    let (held, at) = first.expect("no panic").expect("granted");
    let (_free, beside) = free.await.expect("no panic").expect("granted");
    let apart = beside.max(at) - beside.min(at);
    assert!(apart < Duration::from_millis(1_500), "{apart:?}");
    drop(held);
    second.await.expect("no panic").expect("granted");
}

// redis-py's lives for ever, and is waited for as long.
#[tokio::test]
async fn a_lock_of_which_nothing_is_said_lives_for_a_minute_and_is_waited_for_for_five_seconds() {
    let handle = connect(Place::memory().url()).open().expect("a good address");
    let held = handle.lock("a").acquire().await.expect("granted");
    let left = held.remaining();
    assert!(left > Duration::from_secs(50) && left <= Duration::from_secs(60), "{left:?}");
    let (refused, took) =
        soon(Duration::from_secs(20), "the refusal", async { handle.lock("a").acquire().await }).await;
    assert_eq!(refused.expect_err("held").code(), Code::TimedOut);
    assert!(took > Duration::from_millis(4_900), "{took:?}");
}

// rslock tries for ever, whatever went wrong.
#[tokio::test]
async fn a_lock_of_a_store_that_is_not_there_is_not_waited_for_for_longer_than_was_said() {
    let handle = opened("redis://127.0.0.1:1");
    for timeout in [0, SECOND / 2] {
        let lock = handle.lock_with(["a"], LockOptions { timeout, ..brief() }).expect("a good name");
        let (refused, _) = soon(Duration::from_secs(10), "the refusal", lock.acquire()).await;
        assert_eq!(refused.expect_err("no store").code(), Code::StoreUnavailable);
    }
}

async fn they_do_as_they_say(handle: &Handle, other: &Handle) {
    let lock = handle.lock_with(["account:13"], brief()).expect("a good name");
    let value = lock.run(async |locked| (locked.is_held(), locked.fence())).await.expect("it ran");
    assert!(value.0);
    let held = lock.acquire().await.expect("granted");
    assert!(held.fence() > value.1);
    let tried = other.lock_with(["account:13"], at_once()).expect("a good name");
    let error = tried.acquire().await.expect_err("held");
    assert_eq!(error.code(), Code::Exhausted);
    assert!(error.message().contains("held by another"), "{error}");
    // All or none, and what is free is not held up by what is not.
    let both = other.lock_with(["account:14", "account:13"], at_once()).expect("good names");
    assert_eq!(both.acquire().await.expect_err("one is held").code(), Code::Exhausted);
    let free = other.lock_with(["account:14"], at_once()).expect("a good name");
    free.acquire().await.expect("free").release().await.expect("released");
    // It lasts while it is held, and whoever waits is called when it is given back.
    tokio::time::sleep(Duration::from_micros(2 * SECOND)).await;
    assert!(held.is_held());
    let waiting = other.lock_with(["account:14", "account:13"], brief()).expect("good names");
    let waiting = tokio::spawn(async move { waiting.acquire().await.map(|locked| (locked, Instant::now())) });
    tokio::time::sleep(Duration::from_millis(200)).await;
    let given_back = Instant::now();
    held.release().await.expect("released");
    let (locked, had) =
        soon(Duration::from_secs(10), "the lock", waiting).await.0.expect("no panic").expect("granted");
    assert!(had - given_back < Duration::from_secs(2), "called, not asked again after 5 s");
    drop(locked);
    for (name, field) in [("", "names[0]"), ("a b", "names[0]"), ("a{b", "names[0]")] {
        let error = handle.lock_with([name], brief()).expect_err("a bad name");
        assert_eq!((error.code(), error.field()), (Code::InvalidArgument, Some(field)));
    }
    assert_eq!(handle.lock_with(["a", "a"], brief()).expect_err("twice").field(), Some("names[1]"));
    assert_eq!(handle.lock_with([""; 0], brief()).expect_err("none").field(), Some("names"));
    let long = LockOptions { ttl: 61 * SECOND, ..brief() };
    assert_eq!(handle.lock_with(["a"], long).expect_err("too long").field(), Some("ttl"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn locks_in_memory_do_as_they_say() {
    let place = Place::memory();
    they_do_as_they_say(&opened(place.url()), &opened(place.url())).await;
}

// One server for all that needs no other.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn locks_on_redis_do_as_they_say() {
    let place = Place::redis();
    let handle = settled(&place).await;
    they_do_as_they_say(&handle, &opened(place.url())).await;
    nothing_stays_behind(&place, &handle).await;
    several_locks_in_any_order_do_not_deadlock(&place).await;
    a_body_that_outlives_its_lock_is_told(&place).await;
}

// A million locks once used leave nothing behind.
async fn nothing_stays_behind(place: &Place, handle: &Handle) {
    let names: Vec<String> = (0..1_000).map(|at| format!("order:{at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let lock =
        handle.lock_with(&names, LockOptions { keepalive: Keepalive::Off, ..brief() }).expect("good names");
    lock.acquire().await.expect("granted").release().await.expect("released");
    let vanished =
        handle.lock_with(&names, LockOptions { keepalive: Keepalive::Off, ..brief() }).expect("good names");
    // A holder that dies without a word.
    std::mem::forget(vanished.acquire().await.expect("granted"));
    tokio::time::sleep(Duration::from_micros(SECOND + SECOND / 5)).await;
    // The next requests, whatever they want, put back what is overdue.
    let other = handle.lock_with(["another"], brief()).expect("a good name");
    for _ in 0..10 {
        other.acquire().await.expect("granted").release().await.expect("released");
    }
    let left = keys(place.server(), "*");
    let kept =
        |key: &String| [":meta", ":places"].iter().any(|end| key.ends_with(end)) || key.contains(":lane:");
    assert!(left.iter().all(kept), "left behind: {left:?}");
    // Nothing has a place but what stands behind all.
    for key in left.iter().filter(|key| key.ends_with(":places")) {
        assert_eq!(place.server().command(&["ZCARD", key]).expect("read"), Resp::Int(1));
    }
}

async fn several_locks_in_any_order_do_not_deadlock(place: &Place) {
    let inside: Arc<[AtomicU32; 3]> = Arc::default();
    let tasks = (0..6).map(|task| {
        let (inside, handle) = (inside.clone(), opened(place.url()));
        tokio::spawn(async move {
            let (one, two) = (task % 3, (task / 3 + task + 1) % 3);
            let names = ["x", "y", "z"];
            let waits = LockOptions { timeout: 60 * SECOND, ..brief() };
            let lock = handle.lock_with([names[one], names[two]], waits).expect("good names");
            for _ in 0..20 {
                let body = async |_: &_| {
                    for at in [one, two] {
                        assert_eq!(inside[at].fetch_add(1, SeqCst), 0, "{} is held twice", names[at]);
                    }
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    for at in [one, two] {
                        inside[at].fetch_sub(1, SeqCst);
                    }
                };
                lock.run(body).await.expect("it ran");
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        soon(Duration::from_secs(60), "all rounds", task).await.0.expect("no panic");
    }
}

// The block ran to its end without a word, and its value was thrown away.
async fn a_body_that_outlives_its_lock_is_told(place: &Place) {
    let proxy = Proxy::start(place.server().port()).expect("a proxy");
    let handle = opened(&proxy.url());
    let lock = handle.lock_with(["account:15"], brief()).expect("a good name");
    let body = async |locked: &leasehold::client::Locked<_, _>| {
        let lost = locked.lost();
        proxy.cut();
        let error = soon(Duration::from_micros(2 * SECOND), "the message", lost).await.0.expect("lost");
        assert_eq!(error.code(), Code::Lost);
        tokio::time::sleep(Duration::from_micros(100 * MILLISECOND)).await;
        // The store cannot be told, nor tell, that it is too late.
        "what it gave"
    };
    match lock.run(body).await {
        Err(RunError::Lost { error, output }) => {
            assert_eq!((error.code(), output), (Code::Lost, "what it gave"));
        }
        other => panic!("{other:?}"),
    }
}

// Its ticket was used up, and only those in front ask for another: it waited to its timeout, with its lock free.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn who_was_granted_too_late_asks_again_behind_others_who_wait() {
    let place = Place::redis();
    let proxy = Proxy::start(place.server().port()).expect("a proxy");
    let (handle, far) =
        (settled(&place).await, handle_with(&proxy.url(), "faults", 5_000.0).expect("it opens"));
    let take =
        async |name| handle.lock_with([name], brief()).expect("a good name").acquire().await.expect("free");
    let (_other, own) = (take("other").await, take("own").await);
    let options = LockOptions { keepalive: Keepalive::Off, ..brief() };
    let lock = |name| far.lock_with([name], options.clone()).expect("a good name");
    let mut waiting = Vec::new();
    for name in [["other"; 10].as_slice(), &["own"]].concat() {
        let lock = lock(name);
        waiting.push(tokio::spawn(async move { lock.acquire().await }));
        eventually("it waits", async || tickets(place.server()) == waiting.len()).await;
    }
    // There and back, more than three quarters of what the lock lives.
    proxy.delay(Duration::from_millis(450));
    own.release().await.expect("its own");
    tokio::time::sleep(Duration::from_secs(2)).await;
    proxy.delay(Duration::ZERO);
    let granted = soon(Duration::from_secs(5), "its lock, which is free,", waiting.remove(10)).await.0;
    granted.expect("no panic").expect("granted");
    waiting.iter().for_each(|each| each.abort());
}
