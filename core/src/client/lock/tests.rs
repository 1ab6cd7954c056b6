use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

#[cfg(feature = "crowds")]
use futures_util::FutureExt;

use super::*;
use crate::client::faulty::{DELAY, Faulty, SLOW, renews};
use crate::client::native::{NativeLeasehold, connect};
use crate::client::{Keepalive, Leasehold, OpenOptions};
#[cfg(feature = "crowds")]
use crate::runtime::BoxedFuture;
use crate::runtime::TokioRuntime;
use crate::runtime::idle;
use crate::runtime::warped::Warped;
use crate::slots::{Claim, Request, Strategy};
use crate::{Code, SECOND};

fn opened(store: &str) -> Result<NativeLeasehold> {
    connect(format!("memory:{store}")).namespace("test").open()
}

fn at_once() -> LockOptions {
    LockOptions { timeout: 0, ..LockOptions::default() }
}

fn shared() -> LockOptions {
    LockOptions { reentrant: true, ..at_once() }
}

/// A lock that ends soon, and has ended.
async fn ended(lock: &Lock<impl Store, impl Runtime>) {
    while lock.last().upgrade().is_some_and(|holding| holding.remaining() > 0) {
        idle().await;
    }
}

#[tokio::test(start_paused = true)]
async fn waiters_for_one_name_are_not_in_the_way_of_those_for_another() {
    let (handle, other) = (Arc::new(opened("names").unwrap()), opened("names").unwrap());
    let _red = other.lock_with(["red"], at_once()).unwrap().acquire().await.unwrap();
    let blue = other.lock_with(["blue"], at_once()).unwrap().acquire().await.unwrap();
    let wait = |name: &'static str| {
        let handle = handle.clone();
        let options = LockOptions { timeout: 30 * crate::SECOND, ..LockOptions::default() };
        tokio::spawn(async move { handle.lock_with([name], options)?.acquire().await.map(drop) })
    };
    let behind: Vec<_> = (0..50).map(|_| wait("red")).collect();
    idle().await;
    // One that is free is had at once, and one that another process gives back at once then.
    wait("green").await.unwrap().unwrap();
    let waits = wait("blue");
    idle().await;
    blue.release().await.unwrap();
    tokio::time::timeout(std::time::Duration::from_secs(3), waits).await.expect("served").unwrap().unwrap();
    behind.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test(start_paused = true)]
async fn a_factor_that_is_none_is_refused_whoever_gives_it() {
    let handle = opened("factor").unwrap();
    let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    for factor in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        let options = LockOptions { steal: Some(factor), ..at_once() };
        let of_lock = handle.lock_with(["a"], options.clone()).unwrap_err();
        let lock = handle.lock_with(["a"], at_once()).unwrap();
        let late = lock.acquire_with(options).await.unwrap_err();
        let steal = AcquireOptions { steal: Some(factor), ..AcquireOptions::default() };
        for error in [of_lock, late, pool.acquire_with(steal).await.unwrap_err()] {
            assert_eq!(error.field(), Some("stolen_consistency_factor"), "{factor}");
        }
    }
    let named = Some(vec![SlotId::new("a").unwrap()]);
    // The order in which they are named went before it without a word.
    let strategy = Some(Strategy::LeastRecent);
    let strategy = AcquireOptions { slots: named, strategy, ..AcquireOptions::default() };
    assert_eq!(pool.acquire_with(strategy).await.unwrap_err().field(), Some("strategy"));
}

// In priority-redlock the first of two releases freed the lock.
#[tokio::test(start_paused = true)]
async fn releasing_one_of_two_reentrant_holds_does_not_free_the_lock() {
    let (handle, other) = (opened("reentrant").unwrap(), opened("reentrant").unwrap());
    let lock = handle.lock_with(["a", "b"], shared()).unwrap();
    let another = other.lock_with(["b"], shared()).unwrap();
    let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    assert_eq!(inner.fence(), outer.fence());
    outer.release().await.unwrap();
    // Its own part has ended, and ends once.
    outer.release().await.unwrap();
    assert!(!outer.is_held() && inner.is_held());
    assert!(outer.lost().await.is_none());
    assert_eq!(another.acquire().await.unwrap_err().code(), Code::Exhausted);
    let joined = lock.acquire().await.unwrap();
    drop(inner);
    assert_eq!(another.acquire().await.unwrap_err().code(), Code::Exhausted);
    joined.release().await.unwrap();
    let had = another.acquire().await.unwrap();
    assert!(had.fence() > joined.fence());
    // It is another's now.
    assert_eq!(lock.acquire().await.unwrap_err().code(), Code::Exhausted);
}

// Who had given back its part was told later that it was lost, or waited for as long as others held theirs.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn who_shares_a_lock_hears_no_more_of_it_than_until_it_has_given_back_its_part() {
    let handle = opened("shares").unwrap();
    let lock = handle.lock_with(["a"], shared()).unwrap();
    let outer = lock.acquire().await.unwrap();
    let [released, dropped, lapsed] = [lock.acquire().await, lock.acquire().await, lock.acquire().await];
    let [released, dropped, lapsed] = [released.unwrap(), dropped.unwrap(), lapsed.unwrap()];
    let mut told: [BoxedFuture<'static, _>; 3] =
        [Box::pin(released.lost()), Box::pin(released.claimed()), Box::pin(dropped.lost())];
    let (mut holds, mut collected) = (Box::pin(outer.lost()), Box::pin(lapsed.lost()));
    assert!(told.iter_mut().all(|told| told.now_or_never().is_none()));
    released.release().await.unwrap();
    drop(dropped);
    // Whoever had it may still be at work.
    lapsed.lapse();
    drop(lapsed);
    assert!(told.iter_mut().all(|told| told.now_or_never() == Some(None)));
    assert!((&mut holds).now_or_never().is_none() && (&mut collected).now_or_never().is_none());
    lock.break_lease().await.unwrap();
    assert_eq!(outer.renew().await.unwrap_err().code(), Code::Lost);
    for told in [holds, collected] {
        assert_eq!(told.await.expect("lost").code(), Code::Lost);
    }
}

// Whoever shared it and was collected may still be at work.
#[tokio::test(start_paused = true)]
async fn what_lapses_is_given_back_by_nobody_and_ends_at_its_deadline() {
    let handle = opened("lapses").unwrap();
    let brief = LockOptions { ttl: 1_000 * MILLISECOND, keepalive: Keepalive::Off, ..shared() };
    let lock = handle.lock_with(["a", "b"], brief).unwrap();
    let another = handle.lock_with(["b"], at_once()).unwrap();
    let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    inner.lapse();
    drop(inner);
    assert!(outer.is_held());
    outer.release().await.unwrap();
    assert!(!outer.is_held() && outer.lost().await.is_none());
    assert_eq!(another.acquire().await.unwrap_err().code(), Code::Exhausted);
    let patient = LockOptions { timeout: 30 * crate::SECOND, ..LockOptions::default() };
    another.acquire_with(patient).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn only_who_asked_to_share_does() {
    let handle = opened("asked").unwrap();
    let lock = handle.lock_with(["a"], at_once()).unwrap();
    let held = lock.acquire().await.unwrap();
    for options in [at_once(), shared()] {
        assert_eq!(lock.acquire_with(options).await.unwrap_err().code(), Code::Exhausted);
    }
    held.release().await.unwrap();
    let held = lock.acquire_with(shared()).await.unwrap();
    assert_eq!(lock.acquire().await.unwrap_err().code(), Code::Exhausted);
    // The owner is the lock, not its names.
    let twin = handle.lock_with(["a"], shared()).unwrap();
    assert_eq!(twin.acquire().await.unwrap_err().code(), Code::Exhausted);
    assert_eq!(lock.acquire_with(shared()).await.unwrap().fence(), held.fence());
}

#[tokio::test(start_paused = true)]
async fn what_was_lost_is_not_joined() {
    let handle = opened("lost").unwrap();
    let brief = LockOptions { ttl: 300 * MILLISECOND, keepalive: Keepalive::Off, ..shared() };
    let lock = handle.lock_with(["a"], brief).unwrap();
    let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
    ended(&lock).await;
    let anew = lock.acquire_with(shared()).await.unwrap();
    assert!(anew.fence() > outer.fence());
    // Both who shared it are told, whoever is the last.
    for lost in [outer, inner] {
        assert_eq!(lost.release().await.unwrap_err().code(), Code::Lost);
    }
    assert!(anew.is_held());
    anew.release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_body_is_told_that_it_outlived_its_lock() {
    let brief = LockOptions { ttl: 300 * MILLISECOND, keepalive: Keepalive::Off, ..shared() };
    let lock = opened("outlived").unwrap().lock_with(["a"], brief).unwrap();
    let body = async |_: &_| {
        ended(&lock).await;
        "what it gave"
    };
    match lock.run(body).await {
        Err(RunError::Lost { error, output }) => {
            assert_eq!((error.code(), output), (Code::Lost, "what it gave"));
        }
        other => panic!("{other:?}"),
    }
    assert!(lock.run(async |locked| locked.is_held()).await.unwrap());
}

#[tokio::test(start_paused = true)]
async fn the_handle_bounds_how_long_its_locks_live() {
    let options = Value::map([("lock_ttl", Value::Number(1_000.0))]);
    let handle = tokio::runtime::Handle::current();
    let open = |options: &Value| {
        crate::client::native::open(&"memory:".into(), options, Unit::Milliseconds, handle.clone())
    };
    let handle = open(&options).unwrap();
    assert_eq!(handle.lock_defaults().ttl, 1_000 * MILLISECOND);
    let lock = |ttl: f64| {
        let options = Value::map([("ttl", Value::Number(ttl))]);
        handle.lock_by(&"a".into(), &options, Unit::Milliseconds)
    };
    lock(1_000.0).unwrap();
    assert_eq!(lock(1_001.0).unwrap_err().field(), Some("ttl"));
    let lock = handle.lock_by(&"a".into(), &Value::Null, Unit::Milliseconds).unwrap();
    let long = Value::map([("ttl", Value::Number(1_001.0))]);
    for field in [
        lock.acquire_by(&long, Unit::Milliseconds).await.unwrap_err(),
        lock.enter(&long, Unit::Milliseconds).await.unwrap_err(),
    ] {
        assert_eq!(field.field(), Some("ttl"));
    }
    for wrong in [0.0, 8.0 * 86_400_000.0] {
        let options = Value::map([("lock_ttl", Value::Number(wrong))]);
        assert_eq!(open(&options).unwrap_err().field(), Some("lock_ttl"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_not_to_be_locked_is_not() {
    let lock = opened("unlocked").unwrap().lock_with(["a"], at_once()).unwrap();
    let enter = |options: Value, unit| {
        let lock = &lock;
        async move { lock.enter(&options, unit).await }
    };
    let held = lock.acquire().await.unwrap();
    for (condition, unit) in [("if", Unit::Milliseconds), ("if_", Unit::Seconds)] {
        for (key, value) in [(condition, false), ("unless", true)] {
            let options = Value::map([(key, Value::Bool(value))]);
            assert!(enter(options, unit).await.unwrap().is_none(), "{key}");
            // What else it says is looked at all the same.
            let wrong = Value::map([(key, Value::Bool(value)), ("ttl", Value::Number(-1.0))]);
            assert_eq!(enter(wrong, unit).await.unwrap_err().field(), Some("ttl"));
            let options = Value::map([(key, Value::Bool(!value))]);
            assert_eq!(enter(options, unit).await.unwrap_err().code(), Code::Exhausted);
            let wrong = Value::map([(key, Value::Number(1.0))]);
            assert_eq!(enter(wrong, unit).await.unwrap_err().field(), Some(key));
        }
    }
    held.release().await.unwrap();
    assert!(enter(Value::Null, Unit::Seconds).await.unwrap().unwrap().is_held());
    // An acquisition has no body that could go without.
    let options = Value::map([("unless", Value::Bool(true))]);
    assert_eq!(lock.acquire_by(&options, Unit::Seconds).await.unwrap_err().field(), Some("unless"));
}

// It was told that too few slots are enabled.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn a_free_lock_for_which_others_wait_is_refused_in_words_of_locks() {
    let handle = Arc::new(opened("waited-for").unwrap());
    let _held = handle.lock_with(["b"], at_once()).unwrap().acquire().await.unwrap();
    let (both, waits) =
        (handle.clone(), LockOptions { timeout: 30 * crate::SECOND, ..LockOptions::default() });
    let waiting = tokio::spawn(async move { both.lock_with(["a", "b"], waits)?.acquire().await.map(drop) });
    let text = loop {
        // Until the other stands in line.
        match handle.lock_with(["a"], at_once()).unwrap().acquire().await {
            Ok(lock) => lock.release().await.unwrap(),
            Err(error) => break error,
        }
        idle().await;
    };
    assert_eq!(text.code(), Code::Exhausted);
    assert_eq!(text.message(), "others wait for the lock; wait by giving a timeout");
    waiting.abort();
}

#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_not_had_in_time_is_named() {
    let handle = opened("told").unwrap();
    let _held = handle.lock_with(["a", "b"], at_once()).unwrap().acquire().await.unwrap();
    for (names, lock) in [(&["a"][..], "the lock a"), (&["b", "c"], "the lock of b and others")] {
        let patient = LockOptions { timeout: MILLISECOND, ..LockOptions::default() };
        let error = handle.lock_with(names, patient).unwrap().acquire().await.unwrap_err();
        let said = format!(
            "{lock} was held by others, or kept for those before, until the timeout; give a longer one"
        );
        assert_eq!((error.code(), error.message()), (Code::TimedOut, &*said));
    }
}

// The factor alone was refused though the lock steals, and to say once more that it steals put it back to 1.
#[test]
fn an_acquisition_says_how_to_steal_over_what_its_lock_does() {
    let read = |lock: LockOptions, words: &[(&str, Value)]| {
        let words = words.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        lock.read(&Value::Map(words.collect()), Unit::Milliseconds)
    };
    let factor = ("stolen_consistency_factor", Value::Number(0.5));
    let steals = ("steal", Value::Bool(true));
    let half = read(LockOptions::default(), &[steals.clone(), factor.clone()]).unwrap();
    assert_eq!(half.steal, Some(0.5));
    assert_eq!(read(half.clone(), std::slice::from_ref(&steals)).unwrap().steal, Some(0.5));
    let whole = read(LockOptions::default(), std::slice::from_ref(&steals)).unwrap();
    assert_eq!(whole.steal, Some(1.0));
    assert_eq!(read(whole.clone(), std::slice::from_ref(&factor)).unwrap().steal, Some(0.5));
    assert_eq!(read(whole.clone(), &[("steal", Value::Bool(false))]).unwrap().steal, None);
    for words in [vec![factor.clone()], vec![("steal", Value::Bool(false)), factor]] {
        let over = if words.len() == 1 { LockOptions::default() } else { whole.clone() };
        assert_eq!(read(over, &words).unwrap_err().field(), Some("stolen_consistency_factor"), "{words:?}");
    }
}

// Nothing helped: who waited for a lock with a low priority did so as long as higher ones came.
#[tokio::test(start_paused = true)]
async fn a_waiter_of_low_priority_goes_before_a_higher_one_that_came_so_much_later() {
    for (ageing, order) in [(0, ["soon", "late", "low"]), (SECOND, ["soon", "low", "late"])] {
        let time = Arc::new(AtomicU64::new(1_700_000_000 * SECOND));
        let clock = {
            let time = time.clone();
            move || time.load(Relaxed)
        };
        let store = Faulty::new(Arc::new(clock.clone()));
        store.hears_after(0);
        // Each is a process of its own.
        let lock = |priority| {
            let clock = clock.clone();
            let runtime = Warped::new().clock(move |_| clock());
            let options = OpenOptions { lock_ageing: ageing, ..OpenOptions::default() };
            let handle = Leasehold::new(store.clone(), runtime, options).unwrap();
            let options = LockOptions { priority, timeout: 30 * SECOND, ..LockOptions::default() };
            handle.lock_with(["a"], options).unwrap()
        };
        let held = lock(0).acquire().await.unwrap();
        let served = Arc::new(Mutex::new(Vec::new()));
        let mut waiting = Vec::new();
        for (name, priority, passed) in [("low", 0, 0), ("soon", 1, SECOND / 2), ("late", 1, SECOND)] {
            time.fetch_add(passed, Relaxed);
            let stands = |request: &Request| matches!(request, Request::Claim(Claim { wait: true, .. }));
            let before = store.count(stands);
            let (lock, served) = (lock(priority), served.clone());
            waiting.push(tokio::spawn(async move {
                let locked = lock.acquire().await.unwrap();
                served.lock().unwrap().push(name);
                locked.release().await.unwrap();
            }));
            store.performs(stands, before).await;
        }
        held.release().await.unwrap();
        for waiting in waiting {
            tokio::time::timeout(Duration::from_secs(20), waiting).await.expect("served").unwrap();
        }
        assert_eq!(*served.lock().unwrap(), order, "{ageing} µs are worth one step of priority");
    }
}

#[tokio::test(start_paused = true)]
async fn the_handle_says_what_ages_those_who_wait_for_its_locks() {
    let handle = tokio::runtime::Handle::current();
    let open = |time: Value| {
        let options = Value::map([("lock_ageing", time)]);
        crate::client::native::open(&"memory:".into(), &options, Unit::Milliseconds, handle.clone())
    };
    for (time, ageing) in [(Value::Null, 0), (Value::Number(0.0), 0), (Value::Number(1.5), 1_500)] {
        assert_eq!(open(time).unwrap().locks().unwrap().options.ageing, ageing);
    }
    for wrong in [Value::Number(-1.0), Value::Number(366.0 * 86_400_000.0), Value::Bool(true)] {
        assert_eq!(open(wrong).unwrap_err().field(), Some("lock_ageing"));
    }
    // An acquisition has none: all who stand in one line reckon alike.
    let ageing = Value::map([("ageing", Value::Number(1.0))]);
    let lock = open(Value::Null).unwrap().lock_by(&"a".into(), &ageing, Unit::Milliseconds);
    assert_eq!(lock.unwrap_err().field(), Some("ageing"));
}

#[tokio::test(start_paused = true)]
async fn the_recommended_ttl_goes_by_what_was_measured() {
    let among = Contention { contenders: 20, levels: 3, confidence: 0.99 };
    let here = opened("recommended").unwrap().lock_with(["a"], at_once()).unwrap();
    assert_eq!(here.recommended_ttl(among).unwrap(), None, "nobody stole");
    let wrong = here.recommended_ttl(Contention { levels: 0, ..among }).unwrap_err();
    assert_eq!(wrong.field(), Some("levels"), "before anything is measured");
    here.0.pool.yields.note(200 * MILLISECOND);
    here.0.pool.yields.note(50 * MILLISECOND);
    // Three in a row, and in memory no way to the store.
    assert_eq!(here.recommended_ttl(among).unwrap(), Some(400 * MILLISECOND));
    let options = |contenders: &str, more: &str| {
        let said = [(contenders, 20.0), ("levels", 3.0), ("confidence", 0.99), (more, 1.0)];
        let said = said.iter().filter(|(key, _)| !key.is_empty());
        Value::Map(said.map(|&(key, number)| (key.to_owned(), Value::Number(number))).collect())
    };
    let of = |options: &Value, unit| here.recommended_ttl_by(options, unit);
    assert_eq!(of(&options("contenders", ""), Unit::Seconds).unwrap(), Some(0.4));
    assert_eq!(of(&options("contenders", ""), Unit::Milliseconds).unwrap(), Some(400.0));
    assert_eq!(of(&options("", ""), Unit::Seconds).unwrap_err().field(), Some("contenders"));
    for measured in ["handshake", "round_trip"] {
        let error = of(&options("contenders", measured), Unit::Seconds).unwrap_err();
        assert_eq!(error.field(), Some(measured));
    }

    // Whose answers take so long.
    let store = Faulty::new(crate::runtime::TokioRuntime::store_clock());
    store.is(SLOW);
    let options = OpenOptions { response_timeout: 30 * SECOND, ..OpenOptions::default() };
    let far = Leasehold::new(store, Warped::new(), options).unwrap();
    let patient = LockOptions { timeout: 30 * SECOND, keepalive: Keepalive::Off, ..LockOptions::default() };
    let lock = far.lock_with(["a"], patient).unwrap();
    lock.acquire().await.unwrap().release().await.unwrap();
    lock.0.pool.yields.note(200 * MILLISECOND);
    let ttl = lock.recommended_ttl(among).unwrap().expect("measured");
    assert!(ttl >= 400 * MILLISECOND + DELAY, "{ttl}");
    assert_eq!(ttl - 400 * MILLISECOND, lock.0.pool.courier.distance());
}

// It was asked about again only when it had ended by then, for a claimant that had long gone.
#[tokio::test(start_paused = true)]
async fn what_somebody_claimed_and_left_is_not_lost() {
    let handle = opened("claimed-briefly").unwrap();
    for keepalive in [Keepalive::Third, Keepalive::Off] {
        let options = LockOptions { ttl: 20 * crate::SECOND, keepalive, ..at_once() };
        let lock = handle.lock_with(["a"], options.clone()).unwrap();
        let locked = lock.acquire().await.unwrap();
        let told = locked.claimed();
        // It would have it in three seconds, for which it does not wait.
        let thief = LockOptions { timeout: 50 * MILLISECOND, priority: 1, steal: Some(0.05), ..options };
        assert_eq!(lock.acquire_with(thief).await.unwrap_err().code(), Code::TimedOut);
        assert_eq!(told.await.expect("claimed").code(), Code::Claimed);
        assert!(locked.remaining() < Duration::from_secs(5), "{:?}", locked.remaining());
        let soon = tokio::time::timeout(Duration::from_secs(5), async {
            while locked.is_claimed() {
                assert!(locked.is_held());
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        soon.await.expect("its claimant has gone");
        assert!(locked.remaining() > Duration::from_secs(10), "{keepalive:?}: {:?}", locked.remaining());
        locked.release().await.unwrap();
    }
}

/// A handle whose clock, and that of its store, shows what it is told.
fn on_a_clock(time: &Arc<AtomicU64>) -> Result<(Faulty, Leasehold<Faulty, Warped>)> {
    let time = time.clone();
    let clock = move || time.load(Relaxed);
    let store = Faulty::new(Arc::new(clock.clone()));
    let runtime = Warped::new().clock(move |_| clock());
    Ok((store.clone(), Leasehold::new(store, runtime, OpenOptions::default())?))
}

fn unkept(ttl: Micros) -> LockOptions {
    LockOptions { ttl, keepalive: Keepalive::Off, ..at_once() }
}

// It could not be prolonged at all: who kept none alive lost it at its deadline.
#[tokio::test(start_paused = true)]
async fn who_keeps_no_lock_alive_prolongs_it() {
    let time = Arc::new(AtomicU64::new(1_700_000_000 * SECOND));
    let (store, handle) = on_a_clock(&time).unwrap();
    let lock = handle.lock_with(["a", "b"], unkept(20 * SECOND)).unwrap();
    let locked = lock.acquire().await.unwrap();
    let lasts = |seconds: u64| {
        let left = locked.remaining();
        left <= Duration::from_secs(seconds) && left > Duration::from_secs(seconds - 1)
    };
    time.fetch_add(15 * SECOND, Relaxed);
    assert!(lasts(5));
    // To as long as is wanted; never to less than is left; to the handle's time to live.
    locked.renew_for(Duration::from_secs(20)).await.unwrap();
    assert!(lasts(20) && store.count(renews) == 2);
    locked.renew_for(Duration::from_secs(1)).await.unwrap();
    assert!(lasts(20));
    locked.renew().await.unwrap();
    assert!(lasts(60));
    for wrong in [0, 61] {
        let error = locked.renew_for(Duration::from_secs(wrong)).await.unwrap_err();
        assert_eq!(error.field(), Some("ttl"));
        // Without `crowds` there is one text for locks and pools.
        assert!(!cfg!(feature = "crowds") || !error.message().contains("pool"), "{error}");
    }
    assert!(lasts(60));
    locked.release().await.unwrap();
    let error = locked.renew().await.unwrap_err();
    assert_eq!(
        (error.code(), error.message()),
        (Code::Lost, "the lock was given back already; acquire anew")
    );

    let late = lock.acquire().await.unwrap();
    time.fetch_add(21 * SECOND, Relaxed);
    assert_eq!(late.renew().await.unwrap_err().code(), Code::Lost);
    assert!(!late.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_lock_of_which_one_name_is_lost_is_lost_when_it_is_renewed() {
    let handle = opened("renewed-in-part").unwrap();
    let lock = handle.lock_with(["a", "b"], unkept(20 * SECOND)).unwrap();
    let locked = lock.acquire().await.unwrap();
    handle.lock_with(["b"], at_once()).unwrap().break_lease().await.unwrap();
    assert_eq!(locked.renew().await.unwrap_err().code(), Code::Lost);
    assert!(!locked.is_held());
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_claimed_is_not_renewed() {
    let (_, handle) = on_a_clock(&Arc::new(AtomicU64::new(1_700_000_000 * SECOND))).unwrap();
    let lock = handle.lock_with(["a"], unkept(20 * SECOND)).unwrap();
    let locked = lock.acquire().await.unwrap();
    let thief = LockOptions { timeout: 30 * SECOND, priority: 1, steal: Some(1.0), ..LockOptions::default() };
    let thief = {
        let lock = lock.clone();
        tokio::spawn(async move { lock.acquire_with(thief).await.map(drop) })
    };
    let claimed = loop {
        match locked.renew().await {
            Ok(()) => idle().await,
            Err(error) => break error,
        }
    };
    assert_eq!(claimed.code(), Code::Claimed);
    locked.release().await.unwrap();
    thief.await.unwrap().unwrap();
}

// A body that hung held it for ever: renewals need no turn of it.
#[tokio::test(start_paused = true)]
async fn renewals_end_at_max_hold() {
    let time = Arc::new(AtomicU64::new(1_700_000_000 * SECOND));
    let (_, handle) = on_a_clock(&time).unwrap();
    for bound in [25, 10] {
        let options = LockOptions { max_hold: bound * SECOND, ..unkept(20 * SECOND) };
        let lock = handle.lock_with(["a", "b"], options).unwrap();
        let locked = lock.acquire().await.unwrap();
        assert!(locked.remaining() <= Duration::from_secs(bound));
        time.fetch_add(9 * SECOND, Relaxed);
        locked.renew().await.unwrap();
        let left = Duration::from_secs(bound - 9);
        assert!(locked.remaining() <= left && locked.remaining() > left - Duration::from_secs(1), "{bound}");
        time.fetch_add(left.as_micros() as u64, Relaxed);
        assert!(!locked.is_held());
        // It is another's to have, though nobody gave it back.
        lock.acquire().await.unwrap().release().await.unwrap();
        // An acquisition says otherwise.
        let longer = lock.acquire_with(unkept(20 * SECOND)).await.unwrap();
        time.fetch_add(9 * SECOND, Relaxed);
        longer.renew().await.unwrap();
        assert!(longer.remaining() > Duration::from_secs(59));
    }
    let wrong = LockOptions { max_hold: 366 * 86_400 * SECOND, ..at_once() };
    assert_eq!(handle.lock_with(["a"], wrong).unwrap_err().field(), Some("max_hold"));
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_given_back_while_it_is_renewed_is_free() {
    let (_, handle) = on_a_clock(&Arc::new(AtomicU64::new(1_700_000_000 * SECOND))).unwrap();
    let lock = handle.lock_with(["a", "b"], unkept(20 * SECOND)).unwrap();
    let locked = lock.acquire().await.unwrap();
    let (renewed, released) = tokio::join!(locked.renew(), locked.release());
    released.unwrap();
    assert!(renewed.is_ok_and(|()| !locked.is_held()));
    lock.acquire().await.unwrap();
}

// They are in a pool whose name nobody can give: nobody could see who holds one, nor end what a dead process holds.
#[tokio::test(start_paused = true)]
async fn who_holds_a_lock_is_seen_and_ended_from_elsewhere() {
    let time = Arc::new(AtomicU64::new(1_700_000_000 * SECOND));
    let (_, handle) = on_a_clock(&time).unwrap();
    let all = handle.lock_with(["free", "held", "also-free"], at_once()).unwrap();
    let held = |states: &[LockState]| states.iter().map(LockState::is_held).collect::<Vec<_>>();
    assert_eq!(held(&all.inspect().await.unwrap()), [false; 3], "before anything was locked");
    let one = handle.lock_with(["held"], unkept(20 * SECOND)).unwrap();
    let locked = one.acquire().await.unwrap();
    time.fetch_add(5 * SECOND, Relaxed);
    let states = all.inspect().await.unwrap();
    assert_eq!(held(&states), [false, true, false]);
    let [first, second, _] = &states[..] else { panic!("{states:?}") };
    assert_eq!((&*first.name, first.left_micros, &first.view), ("free", 0, &None));
    assert_eq!((&*second.name, second.left_micros), ("held", 15 * SECOND));
    let view = second.view.as_ref().unwrap();
    assert_eq!((view.fence, view.since), (locked.fence(), 1_700_000_000 * SECOND));
    let words = all.inspect_by(Unit::Seconds).await.unwrap();
    let Value::List(words) = words else { panic!("{words:?}") };
    assert_eq!(
        words[1],
        Value::map([
            ("name", "held".into()),
            ("held", Value::Bool(true)),
            ("holder", Value::Text(format!("{:032x}", view.holder))),
            ("fence", view.fence.into()),
            ("since", Value::Number(1_700_000_000.0)),
            ("left", Value::Number(15.0)),
        ])
    );

    // What nobody holds stays as it is.
    all.break_lease().await.unwrap();
    all.break_lease().await.unwrap();
    assert_eq!(held(&all.inspect().await.unwrap()), [false; 3]);
    let next = one.acquire().await.unwrap();
    assert!(next.fence() > locked.fence());
    assert_eq!(locked.renew().await.unwrap_err().code(), Code::Lost);
    assert!(next.is_held());
    // Nor is one held whose deadline has passed.
    time.fetch_add(20 * SECOND, Relaxed);
    assert_eq!(held(&one.inspect().await.unwrap()), [false]);
}

// In memory it was a defect to report: no lock had made the pool that all of them are in.
#[tokio::test(start_paused = true)]
async fn of_what_nobody_ever_locked_nobody_is_the_holder() {
    let handle = opened("never-locked").unwrap();
    let lock = handle.lock_with(["a", "b"], at_once()).unwrap();
    assert!(lock.inspect().await.unwrap().iter().all(|state| !state.is_held()));
    let other = opened("never-locked-either").unwrap();
    other.lock_with(["a"], at_once()).unwrap().break_lease().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_waiter_has_what_was_ended_by_force() {
    let handle = Arc::new(opened("broken").unwrap());
    let _held = handle.lock_with(["a"], at_once()).unwrap().acquire().await.unwrap();
    let options = LockOptions { timeout: 30 * SECOND, ..LockOptions::default() };
    let waiting = handle.lock_with(["a"], options).unwrap();
    let waits = {
        let lock = waiting.clone();
        tokio::spawn(async move { lock.acquire().await.map(drop) })
    };
    idle().await;
    waiting.break_lease().await.unwrap();
    tokio::time::timeout(Duration::from_secs(20), waits).await.expect("served").unwrap().unwrap();
}

// It ended whatever was held of the name by the time it came.
#[tokio::test(start_paused = true)]
async fn what_is_ended_by_force_is_named_by_its_fence() {
    let (store, handle) = on_a_clock(&Arc::new(AtomicU64::new(1_700_000_000 * SECOND))).unwrap();
    let lock = handle.lock_with(["free", "held"], at_once()).unwrap();
    let held = handle.lock_with(["held"], unkept(20 * SECOND)).unwrap().acquire().await.unwrap();
    lock.break_lease().await.unwrap();
    assert_eq!(held.renew().await.unwrap_err().code(), Code::Lost);
    assert_eq!(store.count(|request| matches!(request, Request::Change { .. })), 0);
    assert_eq!(store.count(|request| matches!(request, Request::Release { .. })), 1);
}

// It was taken for one account that is there twice, as leading zeros mean nothing in those.
#[tokio::test(start_paused = true)]
async fn names_that_differ_in_zeros_only_are_two() {
    let handle = opened("zeros").unwrap();
    let lock = handle.lock_with(["0x1", "0x01"], at_once()).unwrap();
    lock.acquire().await.unwrap().release().await.unwrap();
}

// What clocks may differ by was taken off twice over a network: `lost` was told while a renewal was under way.
#[tokio::test(start_paused = true)]
async fn a_lock_that_is_kept_alive_lasts_as_long_as_one_that_is_not() {
    let (_, handle) = on_a_clock(&Arc::new(AtomicU64::new(1_700_000_000 * SECOND))).unwrap();
    let lasts = async |name, keepalive| {
        let options = LockOptions { ttl: 60 * SECOND, keepalive, ..at_once() };
        handle.lock_with([name], options).unwrap().acquire().await.unwrap().remaining()
    };
    assert_eq!(lasts("kept", Keepalive::Third).await, lasts("unkept", Keepalive::Off).await);
}

// It waited for the loss of what was held on, and kept it alive meanwhile.
#[tokio::test(start_paused = true)]
async fn what_is_renewed_just_as_it_seems_to_have_ended_is_given_back() {
    let store = Faulty::new(TokioRuntime::store_clock());
    // The next reading of the clock is after the deadline, those behind it are not: a renewal came between.
    let late = Arc::new(AtomicU64::new(0));
    let readings = late.clone();
    let is_late = move || readings.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
    let runtime = Warped::new().clock(move |time| if is_late() { time + 120 * SECOND } else { time });
    let handle = Leasehold::new(store.clone(), runtime, OpenOptions::default()).unwrap();
    let options = LockOptions { keepalive: Keepalive::Third, ttl: 60 * SECOND, ..at_once() };
    let locked = handle.lock_with(["a"], options).unwrap().acquire().await.unwrap();
    late.store(1, Relaxed);
    tokio::time::timeout(Duration::from_secs(10), locked.release()).await.expect("an end").unwrap();
    assert_eq!(late.load(Relaxed), 0);
    store.opened(60 * SECOND).lock_with(["a"], at_once()).unwrap().acquire().await.unwrap();
}
