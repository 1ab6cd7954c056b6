use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use futures_util::FutureExt;

use super::*;
use crate::client::native::{NativeLease, connect, quorum};
use crate::client::{AcquireOptions, Leasehold, LimitKind, OpenOptions, Outage, RunError, TokensInMemory};
use crate::error::{Code, Error};
use crate::id::SlotId;
use crate::runtime::TokioRuntime;
#[cfg(feature = "crowds")]
use crate::runtime::idle;
use crate::slots::Strategy;
use crate::store::MemoryStore;
use crate::tokens::{FewestInputs, Token};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);

fn opened(name: &str) -> crate::client::native::NativeLeasehold {
    connect(format!("memory:builders-{name}")).namespace("test").open().expect("options that are right")
}

fn field<T>(outcome: Result<T, Error>) -> Option<String> {
    outcome.err().and_then(|error| error.field().map(str::to_owned))
}

#[test]
fn a_duration_is_never_rounded_to_nothing() {
    assert_eq!(micros(Duration::ZERO), 0);
    assert_eq!(micros(Duration::from_nanos(1)), 1);
    assert_eq!(micros(Duration::from_nanos(1_001)), 2);
    assert_eq!(micros(SECOND), crate::SECOND);
    assert_eq!(micros(Duration::MAX), Micros::MAX);
}

#[tokio::test(start_paused = true)]
async fn what_is_opened_is_checked() {
    assert_eq!(field(connect("http://x").open()).as_deref(), Some("url"));
    assert_eq!(field(connect("memory:").namespace("a:{b").open()).as_deref(), Some("namespace"));
    for time in [Duration::ZERO, Duration::from_secs(61), Duration::MAX] {
        assert_eq!(
            field(connect("memory:").response_timeout(time).open()).as_deref(),
            Some("response_timeout")
        );
    }
    for time in [Duration::ZERO, Duration::from_secs(8 * 86_400), Duration::MAX] {
        assert_eq!(field(connect("memory:").lock_ttl(time).open()).as_deref(), Some("lock_ttl"));
        assert_eq!(field(quorum(["memory:a"]).lock_ttl(time).open()).as_deref(), Some("lock_ttl"));
    }
    for time in [Duration::from_secs(366 * 86_400), Duration::MAX] {
        assert_eq!(field(connect("memory:").lock_ageing(time).open()).as_deref(), Some("lock_ageing"));
    }
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    let handle =
        |options| Leasehold::new(MemoryStore::new(TokioRuntime::store_clock()), runtime.clone(), options);
    let options = OpenOptions { lock_ttl: 0, ..OpenOptions::default() };
    assert_eq!(field(handle(options)).as_deref(), Some("lock_ttl"));
    let options = OpenOptions { lock_ageing: Micros::MAX, ..OpenOptions::default() };
    assert_eq!(field(handle(options)).as_deref(), Some("lock_ageing"));
    assert_eq!(field(quorum(["memory:a", "memory:a"]).open()).as_deref(), Some("servers[1]"));
    assert_eq!(field(quorum([""; 0]).open()).as_deref(), Some("servers"));
}

#[tokio::test(start_paused = true)]
async fn a_body_runs_under_a_lease_and_is_told_if_that_did_not_last() {
    let handle = opened("run");
    let chain = Arc::new(AtomicU64::new(7));
    let reads = chain.clone();
    let next = move |_: String| std::future::ready(Ok::<_, Error>(reads.load(Relaxed)));
    let pool = handle.pool("p").slots(["a"]).read_nonce(next).await.unwrap();
    let pay = async |lease: &NativeLease| lease.used(None).map(|()| lease.nonce());
    for nonce in [7, 8] {
        assert_eq!(pool.acquire().run(pay).await.unwrap().unwrap(), Some(nonce));
    }
    chain.store(9, Relaxed);
    let outlived = pool.acquire().run(async |lease| pool.break_lease(lease.slot()).await).await;
    let Err(RunError::Lost { error, output }) = outlived else { panic!("{outlived:?}") };
    assert_eq!((error.code(), output), (Code::Lost, Ok(())));
    let _held = pool.acquire().await.unwrap();
    let refused = pool.acquire().timeout(Duration::ZERO).run(async |_| ()).await;
    assert!(matches!(refused, Err(RunError::NotAcquired(error)) if error.code() == Code::Exhausted));
}

#[tokio::test(start_paused = true)]
async fn a_pool_is_what_is_said_of_it() {
    let handle = opened("pool");
    let pool = handle
        .pool("p")
        .slots(["a", "b", "c"])
        .ttl(10 * SECOND)
        .cooldown(HOUR)
        .strategy(Strategy::LeastRecent)
        .timeout(Duration::ZERO)
        .read_nonce(async |slot: String| if slot == "b" { Err("no answer") } else { Ok(7) })
        .await
        .unwrap();
    let lease = pool.acquire().slots(["a"]).ttl(2 * SECOND).await.unwrap();
    assert_eq!((lease.slot(), lease.nonce()), ("a", Some(7)));
    let left = lease.remaining();
    assert!(SECOND < left && left <= 2 * SECOND, "{left:?}");
    lease.used(None).unwrap();
    lease.release().await.unwrap();
    assert!(lease.remaining().is_zero());
    // It rests for an hour, the other's nonce cannot be read, and the third is free.
    assert_eq!(pool.acquire().slots(["a"]).await.unwrap_err().code(), Code::Exhausted);
    assert_eq!(pool.acquire().slots(["b"]).await.unwrap_err().code(), Code::NonceUnavailable);
    assert_eq!(pool.acquire_many(3).await.unwrap_err().code(), Code::Exhausted);
    assert_eq!(pool.try_acquire().unwrap().expect("free").slot(), "c");
}

/// What was known or read first had ended, or was about to, by the time that the last nonce was read.
#[tokio::test(start_paused = true)]
async fn what_is_acquired_together_lasts_though_it_takes_long_to_read_a_nonce() {
    let read = async |slot: String| {
        tokio::time::sleep(Duration::from_millis(if slot == "slow" { 1_500 } else { 1 })).await;
        Ok::<_, Error>(7)
    };
    let handle = opened("slow-nonce");
    let pool = handle.pool("p").slots(["known", "slow"]).ttl(2 * SECOND).read_nonce(read).await.unwrap();
    let known = pool.acquire().slots(["known"]).await.unwrap();
    known.used(None).unwrap();
    known.release().await.unwrap();
    let leases = pool.acquire_many(2).await.unwrap();
    for lease in &leases {
        assert!(lease.remaining() > Duration::from_millis(600), "{}: {:?}", lease.slot(), lease.remaining());
    }
}

#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn nonces_of_one_acquisition_are_read_together() {
    let all = Arc::new(tokio::sync::Barrier::new(8));
    let read = move |_| {
        let all = all.clone();
        async move {
            all.wait().await;
            Ok::<_, Error>(7)
        }
    };
    let slots = (0..8).map(|slot| slot.to_string());
    let pool = opened("nonces-together").pool("p").slots(slots).read_nonce(read).await.unwrap();
    assert_eq!(pool.acquire_many(8).timeout(10 * SECOND).await.unwrap().len(), 8);
}

// Every third acquisition failed, with two accounts free.
#[tokio::test(start_paused = true)]
async fn an_account_that_the_chain_says_nothing_of_keeps_nobody_from_another() {
    let pool = opened("dead-account")
        .pool("p")
        .slots(["dead", "a", "b"])
        .strategy(Strategy::LeastRecent)
        .read_nonce(async |slot: String| if slot == "dead" { Err("no such account") } else { Ok(7) })
        .await
        .unwrap();
    for _ in 0..9 {
        let lease = pool.acquire().await.unwrap();
        assert_ne!(lease.slot(), "dead");
        lease.used(None).unwrap();
        lease.release().await.unwrap();
    }
    // Who names it is told.
    assert_eq!(pool.acquire().slots(["dead"]).await.unwrap_err().code(), Code::NonceUnavailable);
}

// It was granted three times to who could have had another.
#[tokio::test(start_paused = true)]
async fn who_is_given_an_account_that_cannot_be_read_is_given_another_next() {
    let read = async |slot: String| if slot == "dead" { Err("no such account") } else { Ok(7) };
    let pool = opened("dead-first").pool("p").slots(["dead", "a", "b"]).read_nonce(read).await.unwrap();
    for _ in 0..9 {
        let lease = pool.acquire().slots(["dead", "a"]).await.unwrap();
        assert_eq!(lease.slot(), "a");
        lease.unused().unwrap();
        lease.release().await.unwrap();
        assert_eq!(pool.acquire_many(2).await.unwrap().len(), 2);
    }
}

// What had been granted with it, or as its caller went away, rested as if it had been used.
#[tokio::test(start_paused = true)]
async fn what_nobody_has_seen_does_not_rest() {
    let hangs = Arc::new(AtomicU64::new(0));
    let hung = hangs.clone();
    let read = move |slot: String| {
        let waits = slot == "slow" && hung.fetch_add(1, Relaxed) == 0;
        async move {
            if waits {
                std::future::pending::<()>().await;
            }
            if slot == "dead" { Err("no such account") } else { Ok(7) }
        }
    };
    let handle = opened("unseen");
    let pool = handle.pool("p").slots(["dead", "a", "b"]).cooldown(HOUR).strategy(Strategy::LeastRecent);
    let pool = pool.read_nonce(read.clone()).await.unwrap();
    let mut leases = pool.acquire_many(2).timeout(10 * SECOND).await.unwrap();
    leases.sort_by_key(|lease| lease.slot().to_owned());
    assert_eq!(leases.iter().map(|lease| lease.slot()).collect::<Vec<_>>(), ["a", "b"]);
    let pool = handle.pool("q").slots(["slow"]).cooldown(HOUR).read_nonce(read).await.unwrap();
    assert!(pool.acquire().into_future().now_or_never().is_none());
    assert_eq!(hangs.load(Relaxed), 1);
    assert_eq!(pool.acquire().timeout(Duration::ZERO).await.unwrap().slot(), "slow");
}

// Who had been granted the one that cannot be read three times waited no longer for the other, which was leased for a moment.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn an_account_that_cannot_be_read_ends_no_waiting_for_another() {
    let asked = Arc::new(AtomicU64::new(0));
    let asks = asked.clone();
    let read = move |slot: String| {
        let is_dead = slot == "dead";
        asks.fetch_add(u64::from(is_dead), Relaxed);
        async move { if is_dead { Err("no such account") } else { Ok(7) } }
    };
    let pool = opened("dead-or-leased").pool("p").slots(["dead", "a"]).read_nonce(read).await.unwrap();
    let held = pool.acquire().slots(["a"]).await.unwrap();
    // It comes again more and more seldom, and the cause is told in the end.
    let error = pool.acquire().timeout(Duration::from_millis(250)).await.unwrap_err();
    assert_eq!(error.code(), Code::NonceUnavailable);
    assert!(error.message().contains("no such account"), "{error}");
    assert!(asked.load(Relaxed) <= 4, "{asked:?}");
    let waits = pool.acquire().timeout(HOUR).into_future();
    let so_often = asked.load(Relaxed) + 5;
    let gives_back = async {
        while asked.load(Relaxed) < so_often {
            idle().await;
        }
        held.unused().unwrap();
        held.release().await.unwrap();
        std::future::pending().await
    };
    tokio::select! {
        lease = waits => assert_eq!(lease.unwrap().slot(), "a"),
        () = gives_back => unreachable!(),
    }
}

// It was told to have more slots.
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_chain_that_hangs_is_told_of_it() {
    let read = async |_| std::future::pending::<Result<u64, Error>>().await;
    for timeout in [20, 50, 100].map(Duration::from_millis) {
        let handle = opened(&format!("hung-chain-{timeout:?}"));
        let pool = handle.pool("p").slots(["a", "b"]).read_nonce(read).await.unwrap();
        let error = pool.acquire().timeout(timeout).await.unwrap_err();
        assert_eq!(error.code(), Code::NonceUnavailable, "{error}");
    }
}

// A chain that does not answer is not asked of every account.
#[tokio::test(start_paused = true)]
async fn of_a_chain_that_says_nothing_a_few_accounts_are_asked() {
    let asked = Arc::new(AtomicU64::new(0));
    let asks = asked.clone();
    let read = move |_| {
        asks.fetch_add(1, Relaxed);
        async { Err::<u64, _>("no answer") }
    };
    let slots = (0..9).map(|slot| slot.to_string());
    let pool = opened("dead-chain").pool("p").slots(slots).read_nonce(read).await.unwrap();
    assert_eq!(pool.acquire().timeout(HOUR).await.unwrap_err().code(), Code::NonceUnavailable);
    assert_eq!(asked.load(Relaxed), 3);
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_with_a_pool_or_an_acquisition_is_named() {
    let handle = opened("mistakes");
    assert_eq!(field(handle.pool("p").slots(["a", "a"]).await).as_deref(), Some("slots[1]"));
    assert_eq!(field(handle.pool("p").slots([""; 0]).await).as_deref(), Some("slots"));
    assert_eq!(
        field(handle.pool("p").weighted_slots([("a", 256)]).await).as_deref(),
        Some("slots[0].weight")
    );
    assert_eq!(field(handle.pool("a b").slots(["a"]).await).as_deref(), Some("name"));
    assert_eq!(field(handle.pool("p").slots(["a"]).ttl(Duration::ZERO).await).as_deref(), Some("ttl"));
    assert_eq!(field(handle.pool("p").slots(["a"]).settle(Duration::MAX).await).as_deref(), Some("settle"));
    // None at all would be none; every microsecond would be a busy loop.
    for interval in [HOUR, Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        let kept = handle.pool("p").slots(["a"]).ttl(SECOND).keepalive(interval);
        assert_eq!(field(kept.await).as_deref(), Some("keepalive"), "{interval:?}");
    }

    let pool = handle.pool("p").weighted_slots([("a", 1), ("b", 255)]).await.unwrap();
    assert_eq!(field(pool.acquire().slots(["a{"]).await).as_deref(), Some("slots[0]"));
    assert_eq!(field(pool.acquire().slots(["z"]).await).as_deref(), Some("slots"));
    assert_eq!(field(pool.acquire().timeout(Duration::MAX).await).as_deref(), Some("timeout"));
    assert_eq!(field(pool.acquire().ttl(HOUR).await).as_deref(), Some("ttl"));
    for many in [pool.acquire_many(0), pool.acquire_many(1_001), pool.acquire_many(2).slots(["a"])] {
        assert_eq!(field(many.await).as_deref(), Some("count"));
    }
    let twice = [SlotId::new("a").unwrap(), SlotId::new("A").unwrap()];
    let twice = AcquireOptions { count: Some(2), slots: Some(twice.to_vec()), ..AcquireOptions::default() };
    assert_eq!(field(pool.acquire_many_with(twice).await).as_deref(), Some("slots"));
    // An empty list was a ticket for any slot, and over Redis one that no script could read.
    let a = SlotId::new("a").unwrap();
    for (slots, wrong) in [(vec![], "slots"), (vec![a.clone(), a], "slots[1]")] {
        let named = AcquireOptions { slots: Some(slots), ..AcquireOptions::default() };
        assert_eq!(field(pool.acquire_with(named).await).as_deref(), Some(wrong));
    }
    let factor = pool.acquire().stolen_consistency_factor(f64::NAN);
    assert_eq!(field(factor.await).as_deref(), Some("stolen_consistency_factor"));
    assert_eq!(pool.acquire_many(2).await.unwrap().len(), 2, "nothing was taken meanwhile");
}

// An acquisition that was only spoken of holds nothing.
#[tokio::test(start_paused = true)]
async fn nothing_begins_before_it_is_awaited() {
    let handle = opened("spoken");
    let pool = handle.pool("p").slots(["a"]).await.unwrap();
    let spoken = pool.acquire().timeout(Duration::ZERO);
    let lease = pool.try_acquire().unwrap().expect("free");
    assert_eq!(spoken.await.unwrap_err().code(), Code::Exhausted);
    lease.release().await.unwrap();
    drop(pool.acquire());
    assert!(pool.try_acquire().unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_what_is_said_of_it() {
    let handle = opened("lock");
    let servers = ["memory:builders-q1", "memory:builders-q2", "memory:builders-q3"];
    let several = quorum(servers).namespace("test").open().unwrap();
    for owner in [&handle as &dyn LockOwner<_, _>, &several] {
        let lock = |names: &[&str]| {
            let options = crate::client::LockOptions::default();
            LockBuilder::new(owner, names, options).ttl(10 * SECOND).timeout(Duration::ZERO)
        };
        let held = lock(&["a"]).keepalive(false).acquire().await.unwrap();
        assert!(held.is_held() && held.remaining() <= 10 * SECOND);
        let refused = lock(&["a", "b"]).run(async |_| ()).await;
        assert!(matches!(refused, Err(RunError::NotAcquired(error)) if error.code() == Code::Exhausted));
        held.release().await.unwrap();
        assert_eq!(lock(&["a", "b"]).run(async |locked| locked.names().count()).await.unwrap(), 2);
        assert_eq!(field(lock(&["a", "a"]).open()).as_deref(), Some("names[1]"));
        assert_eq!(field(lock(&[]).acquire().await).as_deref(), Some("names"));
        assert_eq!(field(lock(&["a"]).ttl(HOUR).open()).as_deref(), Some("ttl"));
        let shared = lock(&["c"]).reentrant().open().unwrap();
        let (_first, second) = (shared.acquire().await.unwrap(), shared.acquire().await.unwrap());
        assert!(second.is_held());
    }
    let factor = handle.lock("a").stolen_consistency_factor(f64::NAN).open();
    assert_eq!(field(factor).as_deref(), Some("stolen_consistency_factor"));
    assert_eq!(field(several.lock("a").priority(1).open()).as_deref(), Some("priority"));
    assert_eq!(field(several.lock("a").steal().open()).as_deref(), Some("steal"));
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_stolen_by_who_says_so() {
    let handle = opened("stolen");
    let low = handle.lock("a").acquire().await.unwrap();
    let yields = tokio::spawn(async move {
        let claimed = low.claimed().await;
        low.release().await.map(|()| claimed.is_some())
    });
    let stolen = handle.lock("a").priority(5).steal().timeout(HOUR).acquire().await.unwrap();
    assert!(yields.await.unwrap().unwrap() && stolen.is_held());
}

#[tokio::test(start_paused = true)]
async fn tokens_are_selected_as_is_said() {
    let handle = opened("tokens");
    let source = TokensInMemory::default();
    for (id, amount) in [("a", 1u64), ("b", 2), ("c", 4)] {
        source.add("w", "CHF", Token::new(id, amount));
    }
    let tokens = handle.tokens("w", source).currency("CHF").strategy(FewestInputs).verify().open().unwrap();
    let selection = tokens.select(4u64).spender("me").await.unwrap();
    assert_eq!(selection.tokens().iter().map(|token| &*token.id).collect::<Vec<_>>(), ["c"]);
    let refused = tokens.select(4u64).timeout(Duration::ZERO).await;
    assert_eq!(refused.unwrap_err().code(), Code::LockedUntil);
    let other = tokens.select(1u64).currency("EUR").timeout(Duration::ZERO).await;
    assert_eq!(other.unwrap_err().code(), Code::Insufficient);
    assert!(tokens.select(0u64).await.unwrap().remaining() > 365 * 24 * HOUR, "nothing to lose");
    let of = || handle.tokens("w", TokensInMemory::default());
    for count in [0, 10_001] {
        assert_eq!(field(tokens.select(1u64).max_inputs(count).await).as_deref(), Some("max_inputs"));
        assert_eq!(field(of().max_inputs(count).open()).as_deref(), Some("max_inputs"));
    }
    assert_eq!(field(tokens.select(1u64).timeout(Duration::MAX).await).as_deref(), Some("timeout"));
    assert_eq!(field(tokens.select(1u64).ttl(HOUR).await).as_deref(), Some("ttl"));
    assert_eq!(tokens.select(1u64).max_inputs(1).await.unwrap().tokens().len(), 1);

    assert_eq!(field(of().max_age(Duration::ZERO).open()).as_deref(), Some("max_age"));
    assert_eq!(field(of().settle(SECOND).open()).as_deref(), Some("settle"));
    assert_eq!(field(of().settle(Duration::MAX).open()).as_deref(), Some("settle"));
    assert_eq!(field(of().timeout(Duration::MAX).open()).as_deref(), Some("timeout"));
    assert_eq!(field(of().ttl(Duration::MAX).open()).as_deref(), Some("ttl"));
    for count in [0, 1_000_001] {
        assert_eq!(field(of().page(count).open()).as_deref(), Some("page"));
        assert_eq!(field(of().max_attempts(count).open()).as_deref(), Some("max_attempts"));
        assert_eq!(field(of().max_rounds(count as u32).open()).as_deref(), Some("max_rounds"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_limit_is_what_is_said_of_it() {
    let handle = opened("limit");
    let rate = handle.limit("rate", 2u64).period(HOUR).open().unwrap();
    let jobs = handle.limit("jobs", 1u64).kind(LimitKind::InFlight).open().unwrap();
    let both = handle.group([&rate, &jobs]).unwrap();
    let held = both.reserve(1u64, HOUR).await.unwrap().unwrap();
    assert_eq!(both.reserve(1u64, HOUR).await.unwrap().unwrap_err().limit.unwrap().as_str(), "jobs");
    let late = both.wait_to_reserve(1u64, HOUR).timeout(Duration::ZERO).await;
    assert_eq!(late.unwrap_err().code(), Code::TimedOut);
    let waits = both.wait_to_reserve(1u64, SECOND).timeout(HOUR).priority(1);
    let (waited, ended) = tokio::join!(waits.into_future(), held.refund());
    ended.unwrap();
    assert!(waited.unwrap().answer().allowed);
    assert!(rate.wait(1u64).timeout(SECOND).await.unwrap().allowed);
    assert_eq!(rate.wait(1u64).timeout(Duration::ZERO).await.unwrap_err().code(), Code::TimedOut);

    assert_eq!(field(rate.wait(1u64).timeout(Duration::MAX).await).as_deref(), Some("timeout"));
    let of = || handle.limit("other", 2u64);
    assert_eq!(field(of().open()).as_deref(), Some("period"), "there is no default");
    assert_eq!(field(of().period(Duration::MAX).open()).as_deref(), Some("period"));
    assert_eq!(field(of().period(HOUR).burst(3).open()).as_deref(), Some("burst"));
    assert_eq!(field(of().period(HOUR).offset(SECOND).open()).as_deref(), Some("offset"));
    assert_eq!(field(of().period(HOUR).scope("a b").open()).as_deref(), Some("scope"));
    assert_eq!(field(rate.reserve(1u64, Duration::MAX).await).as_deref(), Some("ttl"));
    let open =
        of().period(HOUR).outage(Outage::Open).scope("s").kind(LimitKind::Gcra).burst(1).open().unwrap();
    assert!(open.take(1u64).await.unwrap().allowed);
    assert!(!open.take(1u64).await.unwrap().allowed);
}

#[tokio::test(start_paused = true)]
async fn names_come_as_programs_have_them() {
    let handle = opened("names");
    let (text, list) = ("a".to_owned(), vec!["a".to_owned(), "b".to_owned()]);
    let names = |opened: Result<crate::client::native::NativeLock, Error>| opened.is_ok();
    assert!(names(handle.lock(&text).open()) && names(handle.lock(text).open()));
    assert!(names(handle.lock(&list).open()) && names(handle.lock(&list[..]).open()));
    assert!(list.iter().map(String::as_str).all(|name| names(handle.lock(name).open())));
    assert!(["a", "b"].iter().all(|name| names(handle.lock(name).open())));
    assert!(names(handle.lock(list).open()) && names(handle.lock(format!("account:{}", 13)).open()));
    // A failure of the lock is an error like any other to who asks for no more.
    let body =
        async || -> Result<u8, Error> { handle.lock(["a", "a"]).run(async |_| Ok::<u8, Error>(7)).await? };
    assert_eq!(field(body().await).as_deref(), Some("names[1]"));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_opened_of_a_handle_that_was_closed() {
    let handle = opened("shut");
    // One that has its pool of locks already.
    handle.lock("a").open().unwrap();
    handle.limit("l", 1u8).period(HOUR).open().unwrap();
    handle.close();
    for (what, outcome) in [
        ("a lock", handle.lock("a").open().map(drop)),
        ("a limit", handle.limit("l", 1u8).period(HOUR).open().map(drop)),
        ("a pool", handle.pool("p").slots(["a"]).await.map(drop)),
        ("tokens", handle.tokens("w", TokensInMemory::default()).open().map(drop)),
    ] {
        assert_eq!(outcome.map_err(|error| error.code()), Err(Code::Cancelled), "{what}");
    }
}

// Where nothing had to be waited for, it went on.
#[tokio::test(start_paused = true)]
async fn nothing_more_is_taken_through_a_handle_that_was_closed() {
    let handle = opened("shut-down");
    let pool = handle.pool("p").slots(["a", "b"]).await.unwrap();
    let (lock, other) = (handle.lock("a").open().unwrap(), handle.lock("b").open().unwrap());
    let limit = handle.limit("l", 9u8).period(HOUR).open().unwrap();
    let (lease, held) = (pool.acquire().await.unwrap(), lock.acquire().await.unwrap());
    limit.take(1u8).await.unwrap();
    let reserved = limit.reserve(1u8, HOUR).await.unwrap().unwrap();
    handle.close();
    for (what, code) in [
        ("a lease", pool.acquire().await.map(drop).map_err(|error| error.code())),
        ("a lease at once", pool.try_acquire().map(drop).map_err(|error| error.code())),
        ("leases", pool.acquire_many(1).await.map(drop).map_err(|error| error.code())),
        ("a lock", other.acquire().await.map(drop).map_err(|error| error.code())),
        ("what a limit allows", limit.take(1u8).await.map(drop).map_err(|error| error.code())),
        ("the same at once", limit.take_now(1u8).unwrap().map(drop).map_err(|error| error.code())),
        ("what it waits for", limit.wait(1u8).await.map(drop).map_err(|error| error.code())),
        ("a reservation", limit.reserve(1u8, HOUR).await.map(drop).map_err(|error| error.code())),
    ] {
        assert_eq!(code, Err(Code::Cancelled), "{what}");
    }
    // What is held is ended as ever.
    assert!(lease.is_held() && held.is_held());
    lease.renew().await.unwrap();
    lease.release().await.unwrap();
    held.release().await.unwrap();
    reserved.refund().await.unwrap();
    limit.refund(1u8).await.unwrap();
    assert!(limit.used().await.unwrap().is_zero());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_word_may_say_any_time() {
    let handle = opened("word");
    let pool = handle.pool("p").slots(["a"]).await.unwrap();
    let lease = pool.acquire().await.unwrap();
    let (lost, claimed) = (lease.lost_within(Some(Micros::MAX)), lease.claimed_within(Some(Micros::MAX)));
    lease.release().await.unwrap();
    assert!(lost.await.is_none() && claimed.await.is_none());
}

// A chain that names a lower nonce than was used was taken for a pool that is too small.
#[tokio::test(start_paused = true)]
async fn who_waited_for_a_chain_that_lags_is_told_so() {
    for (timeout, code) in [(50, Code::TimedOut), (0, Code::Exhausted)] {
        let handle = opened(&format!("lags-{timeout}"));
        let pool = handle.pool("p").slots(["a"]).read_nonce(async |_| Ok::<_, Error>(7)).await.unwrap();
        let lease = pool.acquire().await.unwrap();
        lease.used(None).unwrap();
        lease.release().await.unwrap();
        drop(pool.acquire().await.unwrap());
        let error = pool.acquire().timeout(Duration::from_millis(timeout)).await.unwrap_err();
        assert_eq!(error.code(), code);
        assert!(error.message().contains("above the chain's"), "{error}");
    }
}

#[derive(Debug)]
struct Broken;

impl crate::tokens::Strategy for Broken {
    fn choose(
        &self,
        _: &[crate::amount::Amount],
        _: crate::amount::Amount,
        _: usize,
        _: &mut crate::tokens::Draw,
    ) -> Option<Vec<usize>> {
        std::panic::panic_any("a defect of the host's")
    }
}

// What it was offered was nobody's afterwards, as long as the handle lived.
#[tokio::test(start_paused = true)]
async fn a_strategy_that_panics_costs_no_token() {
    let handle = opened("panics");
    let source = TokensInMemory::default();
    ["a", "b"].iter().for_each(|id| source.add("w", "", Token::new(*id, 1u64)));
    let tokens = handle.tokens("w", source).open().unwrap();
    let failed = tokio::spawn({
        let tokens = tokens.clone();
        async move { tokens.select(2u64).strategy(Broken).await.map(drop) }
    });
    assert!(failed.await.unwrap_err().is_panic());
    let shared = crate::tokens::named("fewest_inputs").unwrap();
    let selection = tokens.select(2u64).strategy(shared).timeout(Duration::ZERO).await.unwrap();
    assert_eq!(format!("{} {:?}", selection.sum(), selection.change()), "2 0");
}
