use std::borrow::Borrow;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::*;
use crate::client::faulty::{DELAY, Faulty, SLOW, renews, stands_in_line};
use crate::client::native::connect;
use crate::client::{
    AcquireOptions, Keepalive, Lease, Leasehold, LockOptions, OpenOptions, Pool, PoolOptions,
};
use crate::error::{Code, Error};
use crate::runtime::warped::Warped;
use crate::runtime::{TokioRuntime, idle};
use crate::store::MemoryStore;

fn within(timeout: Micros) -> AcquireOptions {
    AcquireOptions { timeout: Some(timeout), ..AcquireOptions::default() }
}

// It was told as it was granted, before anybody could hear: its holder learnt it by its next renewal, after 20 s.
#[tokio::test(start_paused = true)]
async fn who_is_granted_what_is_claimed_already_hears_of_it() {
    let handle = connect("memory:claimed").namespace("test").open().unwrap();
    let options = PoolOptions {
        ttl: 60 * SECOND,
        keepalive: crate::client::Keepalive::Third,
        ..PoolOptions::slots(["a"]).unwrap()
    };
    let pool = handle.pool_with("p", options, None).await.unwrap();
    let lease = pool.acquire_with(within(0)).await.unwrap();
    let waiting = tokio::spawn({
        let pool = pool.clone();
        async move { pool.acquire_with(within(20 * SECOND)).await }
    });
    while pool.statistics().waiting < 1 {
        idle().await;
    }
    lease.release().await.unwrap();
    // Before the other takes what it is offered.
    let steals = AcquireOptions { priority: Some(5), steal: Some(1.0), ..within(20 * SECOND) };
    let mut thief = Box::pin(pool.acquire_with(steals));
    assert!(futures_util::FutureExt::now_or_never(&mut thief).is_none());
    let won = waiting.await.unwrap().unwrap();
    let told = tokio::time::timeout(std::time::Duration::from_secs(5), won.claimed()).await;
    assert_eq!(told.expect("in time").map(|error| error.code()), Some(Code::Claimed));
    won.release().await.unwrap();
    thief.await.unwrap();
}

// Each left a task behind that slept until the holder's deadline: with a ttl of days, for days.
#[tokio::test(start_paused = true)]
async fn who_waited_leaves_no_alarm_behind() {
    let handle = connect("memory:alarms").namespace("test").open().unwrap();
    let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    let _lease = pool.acquire_with(within(0)).await.unwrap();
    for _ in 0..50 {
        assert_eq!(pool.acquire_with(within(MILLISECOND)).await.unwrap_err().code(), Code::TimedOut);
    }
    for _ in 0..10 {
        idle().await;
    }
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    assert!(tasks < 5, "{tasks} tasks");
}

// What came free was offered to those who take any slot, of whom there were always some: it waited in vain.
#[tokio::test(start_paused = true)]
async fn who_names_a_slot_is_served_in_turn_among_those_who_take_any() {
    let handle = connect("memory:chosen").namespace("test").open().unwrap();
    let pool = handle.pool("p").slots(["a", "b"]).timeout(std::time::Duration::from_secs(60)).await.unwrap();
    let held = pool.acquire_many(2).await.unwrap();
    let served = Arc::new(AtomicU64::new(0));
    let waits = |slot: Option<&'static str>| {
        let (pool, served) = (pool.clone(), served.clone());
        tokio::spawn(async move {
            let asked = if let Some(slot) = slot { pool.acquire().slots([slot]) } else { pool.acquire() };
            let lease = asked.await.unwrap();
            let turn = served.fetch_add(1, Relaxed);
            lease.release().await.unwrap();
            turn
        })
    };
    let mut waiting = Vec::new();
    for slot in [None, Some("a"), None, None] {
        waiting.push(waits(slot));
        while pool.statistics().waiting < waiting.len() as u64 {
            idle().await;
        }
    }
    let [a, b] = &held[..] else { panic!("{}", held.len()) };
    let a = if a.slot() == "a" { a } else { b };
    a.release().await.unwrap();
    for (expected, waiting) in (0..).zip(waiting) {
        assert_eq!(waiting.await.unwrap(), expected);
    }
}

// So many took minutes when every one of them was looked at for each slot that came free.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn as_many_as_may_wait_are_served_in_turn() {
    let handle = connect("memory:crowd").namespace("test").open().unwrap();
    let pool = handle.pool("p").slots(["a"]).timeout(std::time::Duration::from_secs(60)).await.unwrap();
    let lease = pool.acquire().await.unwrap();
    let served = Arc::new(AtomicU64::new(0));
    let waiting: Vec<_> = (0..100_000)
        .map(|number| {
            let (pool, served) = (pool.clone(), served.clone());
            tokio::spawn(async move {
                let lease = pool.acquire().await.map_err(|error| (number, error))?;
                assert_eq!(served.fetch_add(1, std::sync::atomic::Ordering::Relaxed), number);
                lease.release().await.map_err(|error| (number, error))
            })
        })
        .collect();
    while pool.statistics().waiting < 100_000 {
        idle().await;
    }
    lease.release().await.unwrap();
    for caller in waiting {
        caller.await.unwrap().unwrap();
    }
}

// Who waits behind others has not asked the store, and was told that the store had not answered.
#[tokio::test(start_paused = true)]
async fn who_waited_behind_others_has_timed_out() {
    // Timers come late, and those that are set later do so by more.
    let set = AtomicU64::new(0);
    let runtime = Warped::new().timers(move |time| time + 5 * MILLISECOND * set.fetch_add(1, Relaxed));
    // Over a network those behind others have no tickets.
    let store = Faulty::new(TokioRuntime::store_clock());
    let handle = Leasehold::new(store, runtime, OpenOptions::default()).unwrap();
    let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    let _lease = pool.acquire_with(within(0)).await.unwrap();
    let first = tokio::spawn({
        let pool = pool.clone();
        async move { pool.acquire_with(within(10 * SECOND)).await }
    });
    while pool.core.room.let_ask().is_some() {
        idle().await;
    }
    // Before it moves up.
    let error = pool.acquire_with(within(MILLISECOND)).await.unwrap_err();
    assert_eq!(error.code(), Code::TimedOut, "{error}");
    // Nor has it to do with a quiet time that ended as it waited: it was told that there was one, and for 0 ms more.
    let end = pool.core.runtime.now() + 50 * MILLISECOND;
    pool.core.quiet_until.store(end, Relaxed);
    let error = pool.acquire_with(within(100 * MILLISECOND)).await.unwrap_err();
    let said = if cfg!(feature = "crowds") { "no slot of p came free" } else { "nothing came free" };
    assert!(error.message().contains(said), "{error}");
    assert_ne!(error.retry_after(), Some(Duration::ZERO), "{error}");
    first.abort();
}

/// Another process steals, and whoever waits for word of that hears it within so many seconds.
async fn is_told_of_a_thief<R: Runtime>(
    lease: impl Borrow<Lease<Faulty, R>>,
    told: JoinHandle<Option<Error>>,
    other: &Pool<MemoryStore, TokioRuntime>,
    seconds: u64,
) {
    let steals = AcquireOptions { priority: Some(5), steal: Some(1.0), ..within(60 * SECOND) };
    let other = other.clone();
    let thief = tokio::spawn(async move { other.acquire_with(steals).await });
    let told = tokio::time::timeout(std::time::Duration::from_secs(seconds), told);
    let told = told.await.expect("in time").unwrap();
    assert_eq!(told.map(|error| error.code()), Some(Code::Claimed));
    lease.borrow().release().await.unwrap();
    thief.await.unwrap().unwrap();
}

// They had no ticket and stayed in front all the same: whoever came behind them was never asked for.
#[tokio::test(start_paused = true)]
async fn who_comes_behind_those_who_want_more_than_can_be_had_is_served() {
    // Over a network those behind others have no tickets.
    let store = Faulty::new(TokioRuntime::store_clock());
    store.hears_after(0);
    let handle = TokioRuntime::new(tokio::runtime::Handle::current());
    let handle = Leasehold::new(store.clone(), handle, OpenOptions::default()).unwrap();
    let pool = handle.pool_with("p", PoolOptions::slots(["a", "b", "c"]).unwrap(), None).await.unwrap();
    pool.disable("c").await.unwrap();
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let pool = pool.clone();
            let three = AcquireOptions { count: Some(3), ..within(60 * SECOND) };
            tokio::spawn(async move {
                for lease in pool.acquire_many_with(three).await? {
                    lease.release().await?;
                }
                Ok::<_, Error>(())
            })
        })
        .collect();
    store.performs(stands_in_line, 7).await;
    // Whether it came when all of them had been refused or not.
    for _ in 0..3 {
        pool.acquire_with(within(10 * SECOND)).await.expect("free").release().await.unwrap();
    }
    pool.enable("c").await.unwrap();
    // One hears of it at once, and what it gives back goes on to the others.
    let served = futures_util::future::try_join_all(waiting);
    let served = tokio::time::timeout(std::time::Duration::from_secs(4), served);
    for outcome in served.await.expect("in time").unwrap() {
        outcome.unwrap();
    }
}

/// A process over this store and its pool of one slot, and the pool as another has it that is on the same machine.
async fn one_and_another(
    store: &Faulty,
) -> (Leasehold<Faulty, TokioRuntime>, Pool<Faulty, TokioRuntime>, Pool<MemoryStore, TokioRuntime>) {
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    let own = Leasehold::new(store.clone(), runtime.clone(), OpenOptions::default()).unwrap();
    let other = Leasehold::new(store.memory(), runtime, OpenOptions::default()).unwrap();
    let options = || PoolOptions { ttl: 60 * SECOND, ..PoolOptions::slots(["a"]).unwrap() };
    let pool = own.pool_with("p", options(), None).await.unwrap();
    let other = other.pool_with("p", options(), None).await.unwrap();
    (own, pool, other)
}

// It cut the subscription short, and its whole pool was taken for deaf for 10 s: the holder never heard of the thief.
#[tokio::test(start_paused = true)]
async fn who_has_little_time_leaves_the_others_hearing() {
    let store = Faulty::new(TokioRuntime::store_clock());
    store.hears_after(DELAY);
    let (_own, pool, other) = one_and_another(&store).await;
    let lease = pool.acquire_with(within(0)).await.unwrap();
    pool.acquire_with(within(100 * MILLISECOND)).await.unwrap_err();
    let told = tokio::spawn(lease.claimed());
    // Whether somebody had claimed it before.
    store.performs(renews, 0).await;
    // Well before it would listen again.
    is_told_of_a_thief(lease, told, &other, 5).await;
}

// What is held stays held when its handle is closed, but a holder that does not renew heard of no thief any more; and one that asks
// in its turns was said to hear of all, and did not look either.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn who_closed_its_handle_hears_of_a_thief_all_the_same() {
    for in_turns in [false, true] {
        let store = Faulty::new(TokioRuntime::store_clock());
        store.hears_after(0);
        let (own, pool, other) = one_and_another(&store).await;
        let lease = Arc::new(pool.acquire_with(within(0)).await.unwrap());
        let asks = lease.clone();
        let told = tokio::spawn(async move {
            let turn = if in_turns { SECOND / 10 } else { Micros::MAX };
            loop {
                let told = asks.claimed_within(Some(turn)).await;
                if told.is_some() {
                    return told;
                }
            }
        });
        store.performs(renews, 0).await;
        own.close();
        is_told_of_a_thief(lease, told, &other, 5).await;
        // Nobody is left who would hear.
        assert!(pool.core.watch.lock().await.is_none());
    }
}

// It looked once, and nobody listened for it again.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn who_waits_for_word_hears_it_also_of_a_store_that_was_deaf_at_first() {
    const FASTER: Micros = 100;
    let store = Faulty::new(TokioRuntime::store_clock());
    let runtime = Warped::new().clock(|time| time * FASTER).timers(|time| time / FASTER);
    let options = OpenOptions { response_timeout: 60 * SECOND, ..OpenOptions::default() };
    let own = Leasehold::new(store.clone(), runtime, options).unwrap();
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    let other = Leasehold::new(store.memory(), runtime, OpenOptions::default()).unwrap();
    let options =
        || PoolOptions { ttl: 36_000 * SECOND, max_hold: Some(0), ..PoolOptions::slots(["a"]).unwrap() };
    let pool = own.pool_with("p", options(), None).await.unwrap();
    let other = other.pool_with("p", options(), None).await.unwrap();
    let lease = pool.acquire_with(within(0)).await.unwrap();
    let told = tokio::spawn(lease.claimed());
    store.performs(renews, 0).await;
    store.hears_after(0);
    is_told_of_a_thief(lease, told, &other, 20).await;
}

/// A slot that is held, and two who wait for it for hours.
#[cfg(feature = "crowds")]
async fn held_for_long(
    store: &Faulty,
    runtime: &Warped,
) -> (Pool<Faulty, Warped>, Lease<Faulty, Warped>, [JoinHandle<crate::error::Result<()>>; 2]) {
    let options = OpenOptions { response_timeout: 60 * SECOND, ..OpenOptions::default() };
    let own = Leasehold::new(store.clone(), runtime.clone(), options).unwrap();
    let options =
        PoolOptions { ttl: 36_000 * SECOND, max_hold: Some(0), ..PoolOptions::slots(["a"]).unwrap() };
    let pool = own.pool_with("p", options, None).await.unwrap();
    let lease = pool.acquire_with(within(0)).await.unwrap();
    let wait = || {
        let pool = pool.clone();
        tokio::spawn(async move { pool.acquire_with(within(18_000 * SECOND)).await.map(drop) })
    };
    let waiting = [wait(), wait()];
    store.performs(stands_in_line, 3).await;
    (pool, lease, waiting)
}

// It asked five times a second for as long as it waited, and had all others do so who hear.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn who_waits_asks_less_often_once_it_hears_what_was_deaf_at_first() {
    const FASTER: Micros = 100;
    let store = Faulty::new(TokioRuntime::store_clock());
    let runtime = Warped::new().clock(|time| time * FASTER).timers(|time| time / FASTER);
    let (pool, lease, waiting) = held_for_long(&store, &runtime).await;
    store.hears_after(0);
    let hears = async {
        while pool.core.watch.lock().await.is_none() {
            idle().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), hears).await.expect("it listens again");
    let before = store.count(stands_in_line);
    runtime.sleep(60 * SECOND).await;
    let asked = store.count(stands_in_line) - before;
    assert!(asked < 60, "{asked} times in a minute");
    // And it is called.
    lease.release().await.unwrap();
    for waiting in waiting {
        waiting.await.unwrap().unwrap();
    }
}

// It looked whether anybody listened, and not whether that heard anything: each missed what it was offered, and waited in vain.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn who_waits_asks_more_often_while_nothing_is_heard_any_more() {
    const FASTER: Micros = 20;
    let store = Faulty::new(TokioRuntime::store_clock());
    store.hears_after(0);
    let runtime = Warped::new().clock(|time| time * FASTER).timers(|time| time / FASTER);
    let (pool, lease, waiting) = held_for_long(&store, &runtime).await;
    assert!(pool.core.heard_by() > 0);
    store.hears(false);
    assert_eq!(pool.core.heard_by(), 0);
    let (began, before) = (runtime.now(), store.count(stands_in_line));
    store.performs(stands_in_line, before + 40).await;
    let took = runtime.now() - began;
    assert!(took < 50 * SECOND, "{took}");
    store.hears(true);
    // Each asks once more for what it was told, and once as it hears.
    runtime.sleep(2 * SECOND).await;
    let before = store.count(stands_in_line);
    runtime.sleep(20 * SECOND).await;
    let asked = store.count(stands_in_line) - before;
    assert!(asked < 24, "{asked} times in 20 seconds");
    lease.release().await.unwrap();
    for waiting in waiting {
        waiting.await.unwrap().unwrap();
    }
}

// The task that listens again for it, if the store was deaf, is not to outlive the wish to hear.
#[tokio::test(start_paused = true)]
async fn who_waits_for_word_no_more_leaves_nothing_behind() {
    let handle = TokioRuntime::new(tokio::runtime::Handle::current());
    let store = Faulty::new(TokioRuntime::store_clock());
    let handle = Leasehold::new(store.clone(), handle, OpenOptions::default()).unwrap();
    let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    let lease = pool.acquire_with(within(0)).await.unwrap();
    for looked in 0..50 {
        drop(lease.claimed());
        store.performs(renews, looked).await;
    }
    // What was sent for it is looked after for a moment.
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let end = async {
        while tasks() >= 5 {
            idle().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(5), end).await.expect("well before it listens again");
}

// It was told that others had held it, and to give a longer timeout or more slots.
#[tokio::test(start_paused = true)]
async fn who_is_granted_too_late_each_time_is_told_so() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    let handle = Leasehold::new(store.clone(), runtime, OpenOptions::default()).unwrap();
    let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    store.is(SLOW);
    // Less than a quarter of it is left.
    let ttl = DELAY * 5 / 4;
    for (timeout, code) in [(0, Code::Exhausted), (SECOND, Code::TimedOut)] {
        let slot = pool.acquire_with(AcquireOptions { ttl: Some(ttl), ..within(timeout) });
        let brief = LockOptions { ttl, timeout, keepalive: Keepalive::Off, ..LockOptions::default() };
        let lock = handle.lock_with("a", brief).unwrap();
        let (slot, lock) = tokio::join!(slot, lock.acquire());
        for error in [slot.unwrap_err(), lock.unwrap_err()] {
            assert_eq!(error.code(), code, "{error}");
            let said = error.message().contains("too late to leave a quarter of its ttl");
            assert!(said || !cfg!(feature = "crowds"), "{error}");
        }
    }
}

// Its holder was told that it was lost at the deadline of one who had left its place to another.
#[tokio::test(start_paused = true)]
async fn who_is_claimed_by_one_in_no_hurry_instead_holds_it_as_before() {
    let handle = connect("memory:replaced").namespace("test").open().unwrap();
    let options =
        PoolOptions { ttl: 60 * SECOND, keepalive: Keepalive::Third, ..PoolOptions::slots(["a"]).unwrap() };
    let pool = handle.pool_with("p", options, None).await.unwrap();
    let lease = pool.acquire_with(within(0)).await.unwrap();
    let until = async |is_so: fn(Micros) -> bool| {
        let is = async {
            while !is_so(lease.remaining_micros()) {
                idle().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(10), is).await.expect("in time");
    };
    let _told = tokio::spawn(lease.claimed());
    let thief = |priority, factor| {
        let steals = AcquireOptions { priority: Some(priority), steal: Some(factor), ..within(60 * SECOND) };
        let pool = pool.clone();
        tokio::spawn(async move { pool.acquire_with(steals).await })
    };
    let hasty = thief(5, 0.5);
    until(|left| left < 40 * SECOND).await;
    let other = thief(10, 1.0);
    until(|left| left > 40 * SECOND).await;
    assert!(lease.is_claimed());
    [hasty, other].iter().for_each(JoinHandle::abort);
}

// A loop that asks in its turns sent as many renewals, before all else that its process sends.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn who_listens_in_turns_asks_the_store_once_and_hears_of_a_thief() {
    let store = Faulty::new(TokioRuntime::store_clock());
    store.hears_after(0);
    let handle = store.opened(60 * SECOND);
    let options = PoolOptions { ttl: 60 * SECOND, ..PoolOptions::slots(["a"]).unwrap() };
    let pool = handle.pool_with("p", options, None).await.unwrap();
    let lease = pool.acquire_with(within(0)).await.unwrap();
    drop(lease.claimed());
    store.performs(renews, 0).await;
    for _ in 0..50 {
        drop(lease.claimed());
        for _ in 0..50 {
            idle().await;
        }
    }
    assert!(store.count(renews) < 5, "{} times", store.count(renews));
    let thief = AcquireOptions { priority: Some(5), steal: Some(1.0), ..within(60 * SECOND) };
    let thief = tokio::spawn(async move { pool.acquire_with(thief).await });
    // It comes as nobody listens.
    let heard = async {
        while !lease.is_claimed() {
            idle().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(10), heard).await.expect("a message");
    assert_eq!(lease.claimed().await.expect("claimed").code(), Code::Claimed);
    thief.abort();
}

// It had no ticket, and claimed nothing, until all but seven of those before it had been served.
#[tokio::test(start_paused = true)]
async fn a_thief_behind_many_of_its_process_claims_what_is_held() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let handle = store.opened(60 * SECOND);
    let options = PoolOptions { ttl: 60 * SECOND, ..PoolOptions::slots(["a"]).unwrap() };
    let pool = handle.pool_with("p", options, None).await.unwrap();
    let lease = pool.acquire_with(within(0)).await.unwrap();
    let wait = |steal| {
        let pool = pool.clone();
        let options = AcquireOptions { priority: Some(5), steal, ..within(60 * SECOND) };
        tokio::spawn(async move { pool.acquire_with(options).await.map(drop) })
    };
    let mut waiting = Vec::new();
    for (count, steal) in (1..=20).map(|count| (count, (count == 20).then_some(1.0))) {
        waiting.push(wait(steal));
        while pool.statistics().waiting < count {
            idle().await;
        }
    }
    let claimed = async {
        loop {
            match lease.renew().await {
                Ok(()) => idle().await,
                Err(error) => return error.code(),
            }
        }
    };
    let claimed = tokio::time::timeout(Duration::from_secs(10), claimed).await;
    assert_eq!(claimed.expect("claimed"), Code::Claimed);
    waiting.iter().for_each(JoinHandle::abort);
}
