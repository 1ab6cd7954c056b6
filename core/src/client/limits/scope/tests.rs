//! Limits over stores that have to be waited for, and that can be out of reach.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{Either, select};
use tokio::sync::Notify;

use super::super::elsewhere::{Elsewhere, ledger};
use super::*;
use crate::MILLISECOND;
use crate::client::limits::{Outage, WaitOptions};
use crate::client::pool::courier::QUEUE;
use crate::limits::{Act, Amount, Answer, Envelope, Ledger, Moment, Rule};
use crate::runtime::warped::Warped;
use crate::runtime::{TokioRuntime, idle};
use crate::store::ledger::MemoryLedger;
use crate::store::{StoreError, StoreLedger};

const HOUR: Micros = 3_600 * SECOND;

/// Of which nothing wakes by itself who sleeps.
fn sleepless() -> Warped {
    Warped::new().timers(|_| Micros::MAX)
}

fn runtime() -> TokioRuntime {
    TokioRuntime::new(tokio::runtime::Handle::current())
}

fn scope<R: Runtime, F, A>(runtime: R, response_timeout: Micros, store: F) -> Arc<Scope<R>>
where
    F: Fn(Envelope) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Answer, StoreError>> + Send + 'static,
{
    Scope::new(Box::new(Elsewhere(store)), runtime, response_timeout)
}

/// A runtime whose clock is so far ahead as is told.
fn ahead() -> (Warped, Arc<AtomicU64>) {
    let ahead = Arc::new(AtomicU64::new(0));
    let clock = ahead.clone();
    (Warped::new().clock(move |time| time + clock.load(SeqCst)), ahead)
}

/// A scope whose store does not answer while that is so.
fn hanging<R: Runtime>(runtime: R, response_timeout: Micros) -> (Arc<Scope<R>>, Arc<AtomicBool>) {
    hanging_of(ledger(), runtime, response_timeout)
}

/// The same of a store that others have too.
fn hanging_of<R: Runtime>(
    ledger: Arc<MemoryLedger>,
    runtime: R,
    response_timeout: Micros,
) -> (Arc<Scope<R>>, Arc<AtomicBool>) {
    let hangs = Arc::new(AtomicBool::new(false));
    let sticks = hangs.clone();
    let scope = scope(runtime, response_timeout, move |envelope| {
        let (ledger, sticks) = (ledger.clone(), sticks.clone());
        async move {
            if sticks.load(SeqCst) {
                std::future::pending::<()>().await;
            }
            StoreLedger::charge(&ledger, &envelope).await
        }
    });
    (scope, hangs)
}

fn limit<R: Runtime>(scope: &Arc<Scope<R>>, name: &str, rule: Rule, outage: Outage) -> Limit<R> {
    Limit::new(scope.clone(), Name::new(name).unwrap(), rule, outage)
}

fn lifetime() -> Rule {
    Rule::Lifetime { max: 10u64.into() }
}

async fn shortly<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("in time")
}

fn at_any_time() -> WaitOptions {
    WaitOptions { timeout: HOUR, priority: 0 }
}

// Its holder was told nothing: at the end of a block an outage is no error.
#[tokio::test(start_paused = true)]
async fn what_was_in_flight_for_too_long_is_lost_also_where_no_store_says_so() {
    let (runtime, ahead) = ahead();
    let (scope, hangs) = hanging(runtime, SECOND / 20);
    let flights = limit(&scope, "flights", Rule::InFlight { max: 10 }, Outage::Closed);
    let spend = limit(&scope, "spend", lifetime(), Outage::Closed);
    let both = Limit::group([&flights, &spend]).unwrap();
    for (limit, passes, code) in [
        (&flights, HOUR, Code::Lost),
        (&both, HOUR, Code::Lost),
        (&flights, 0, Code::StoreUnavailable),
        (&spend, HOUR, Code::StoreUnavailable),
    ] {
        for gives_back in [false, true] {
            let reserved = shortly(limit.reserve(1u64, Duration::from_micros(HOUR))).await.unwrap().unwrap();
            ahead.fetch_add(passes, SeqCst);
            hangs.store(true, SeqCst);
            let end = async { if gives_back { reserved.refund().await } else { reserved.commit().await } };
            let error = shortly(end).await.unwrap_err();
            // Whether it was given back is not known: it may have been, to the last.
            let code = if gives_back { Code::StoreUnavailable } else { code };
            assert_eq!(error.code(), code, "{limit:?} {gives_back}");
            hangs.store(false, SeqCst);
        }
    }
}

// It went on for as long as two answers may take, and was told that the store does not answer.
#[tokio::test(start_paused = true)]
async fn who_waits_to_reserve_of_a_store_that_hangs_is_told_as_the_handle_closes() {
    let (scope, hangs) = hanging(runtime(), HOUR);
    let spend = limit(&scope, "spend", lifetime(), Outage::Closed);
    hangs.store(true, SeqCst);
    let mut waiting = Box::pin(spend.wait_to_reserve_for(1u64, HOUR, at_any_time()));
    assert!((&mut waiting).now_or_never().is_none());
    OpenedScope::<TokioRuntime>::close(&*scope);
    assert_eq!(shortly(waiting).await.unwrap_err().code(), Code::Cancelled);
}

// Its time had passed, and another was allowed the same: two were in flight of one.
#[tokio::test(start_paused = true)]
async fn what_is_reserved_as_little_of_its_time_is_left_is_given_back() {
    let ((runtime, ahead), delay, ledger) = (ahead(), Arc::new(AtomicU64::new(0)), ledger());
    let late = delay.clone();
    let scope = scope(runtime, HOUR, move |envelope| {
        let (ledger, ahead, late) = (ledger.clone(), ahead.clone(), late.clone());
        async move {
            let answer = StoreLedger::charge(&ledger, &envelope).await;
            ahead.fetch_add(late.load(SeqCst), SeqCst);
            answer
        }
    });
    let flights = limit(&scope, "flights", Rule::InFlight { max: 1 }, Outage::Closed);
    let until_free = async || {
        delay.store(0, SeqCst);
        while flights.remaining().await.unwrap() == Amount::ZERO {
            idle().await;
        }
    };
    delay.store(HOUR / 2, SeqCst);
    let kept = shortly(flights.reserve(1u64, Duration::from_micros(HOUR))).await.unwrap().unwrap();
    assert!(kept.remaining_micros() > HOUR / 4);
    kept.commit().await.unwrap();
    for waits in [false, true] {
        delay.store(HOUR / 5 * 4, SeqCst);
        let error = match waits {
            false => shortly(flights.reserve(1u64, Duration::from_micros(HOUR))).await.unwrap_err(),
            true => shortly(flights.wait_to_reserve_for(1u64, HOUR, at_any_time())).await.unwrap_err(),
        };
        assert_eq!(error.code(), Code::StoreUnavailable);
        assert!(error.message().contains("too late") && error.message().contains("longer"), "{error}");
        shortly(until_free()).await;
    }
}

// It was told that the time had passed of what was reserved a moment ago.
#[tokio::test(start_paused = true)]
async fn what_a_store_forgot_is_not_said_to_be_too_old() {
    let ((runtime, ahead), store) = (ahead(), Arc::new(Mutex::new(ledger())));
    let kept = store.clone();
    let scope = scope(runtime, HOUR, move |envelope| {
        let ledger = kept.lock().unwrap().clone();
        async move { StoreLedger::charge(&ledger, &envelope).await }
    });
    let flights = limit(&scope, "flights", Rule::InFlight { max: 1 }, Outage::Closed);
    for (passes, says) in [(0, "lost its memory"), (HOUR, "time has passed")] {
        let reserved = shortly(flights.reserve(1u64, Duration::from_micros(HOUR))).await.unwrap().unwrap();
        *store.lock().unwrap() = ledger();
        ahead.fetch_add(passes, SeqCst);
        let error = shortly(reserved.commit()).await.unwrap_err();
        assert!(error.code() == Code::Lost && error.message().contains(says), "{error}");
    }
}

// It was told that the store is busy, of which nobody asked anything.
#[tokio::test(start_paused = true)]
async fn an_open_limit_is_judged_alone_where_too_many_wait_for_the_store() {
    let (scope, hangs) = hanging(runtime(), HOUR);
    let rule = Rule::Refill { max: 10, period: HOUR };
    let (open, closed) =
        (limit(&scope, "open", rule, Outage::Open), limit(&scope, "closed", rule, Outage::Closed));
    assert!(shortly(open.increment(4u64)).await.unwrap());
    hangs.store(true, SeqCst);
    let look = || Request { act: Act::Peek, charges: Vec::new() };
    for _ in 0..QUEUE + 10_000 {
        scope.carrier.tell(look(), 0);
        if scope.carrier.waiting() >= QUEUE {
            break;
        }
        idle().await;
    }
    assert_eq!(shortly(closed.take(1u64)).await.unwrap_err().code(), Code::Busy);
    let answer = shortly(open.take(6u64)).await.unwrap();
    assert_eq!((answer.allowed, answer.said, answer.remaining), (true, Said::Outage, Amount::ZERO));
    assert!(!shortly(open.increment(1u64)).await.unwrap());
}

// All but the first of them were told that the limit allowed it at no time, or of the outage one after the other, each after a response
// timeout of its own.
#[tokio::test(start_paused = true)]
async fn all_who_wait_are_told_that_the_store_does_not_answer() {
    for timeout in [SECOND, HOUR] {
        let (scope, hangs) = hanging(runtime(), SECOND / 4);
        let limit = limit(&scope, "a", Rule::Refill { max: 1, period: HOUR }, Outage::Closed);
        assert!(shortly(limit.increment(1u64)).await.unwrap());
        hangs.store(true, SeqCst);
        let options = WaitOptions { timeout, ..at_any_time() };
        let waiting = (0..200).map(|_| limit.wait_with(1u64, options));
        for told in shortly(futures_util::future::join_all(waiting)).await {
            assert_eq!(told.unwrap_err().code(), Code::StoreUnavailable);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_an_open_limit_waits_on_as_the_store_does_not_answer_who_stands_before() {
    let (scope, hangs) = hanging(runtime(), SECOND / 20);
    let rule = Rule::Refill { max: 1, period: HOUR };
    let (open, closed) = (limit(&scope, "a", rule, Outage::Open), limit(&scope, "a", rule, Outage::Closed));
    hangs.store(true, SeqCst);
    let mut waiting = Box::pin(closed.wait_with(1u64, at_any_time()));
    assert!((&mut waiting).now_or_never().is_none());
    let (told, answer) =
        shortly(futures_util::future::join(waiting, open.wait_with(1u64, at_any_time()))).await;
    assert_eq!(told.unwrap_err().code(), Code::StoreUnavailable);
    assert_eq!(answer.unwrap().said, Said::Outage);
}

// It was told at its timeout only: who stood before it took what the limit allows in an outage, and never failed.
#[tokio::test(start_paused = true)]
async fn who_reserves_is_told_that_the_store_does_not_answer_behind_one_who_does_not_need_it() {
    let (scope, hangs) = hanging(runtime(), SECOND / 20);
    let open = limit(&scope, "a", Rule::Refill { max: 1, period: 10 * SECOND }, Outage::Open);
    hangs.store(true, SeqCst);
    assert!(shortly(open.increment(1u64)).await.unwrap(), "what may be had in an outage");
    let waits = Box::pin(open.wait_with(1u64, at_any_time()));
    let reserves = Box::pin(open.wait_to_reserve_for(1u64, HOUR, at_any_time()));
    let (told, waits) = match shortly(select(waits, reserves)).await {
        Either::Right(told) => told,
        Either::Left((answer, _)) => panic!("{answer:?}"),
    };
    assert_eq!(told.unwrap_err().code(), Code::StoreUnavailable);
    // It goes on, and at its own pace.
    let began = scope.runtime().now();
    assert_eq!(shortly(waits).await.unwrap().said, Said::Outage);
    assert!(scope.runtime().now() > began + 5 * SECOND);
}

// Each called the other off as it was refused, and both asked what this process allows, by turns and without end.
#[tokio::test(start_paused = true)]
async fn those_who_do_not_need_the_store_leave_each_other_alone_in_an_outage() {
    struct Woken(AtomicUsize);
    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    let (scope, hangs) = hanging(runtime(), SECOND / 20);
    let budget = Rule::Budget { max: 1u64.into(), period: HOUR, offset: 0 };
    let open = limit(&scope, "a", budget, Outage::Open);
    hangs.store(true, SeqCst);
    assert!(shortly(open.increment(1u64)).await.unwrap(), "what may be had in an outage");
    let wait = || Box::pin(open.wait_with(1u64, at_any_time()));
    let mut both = Box::pin(select(wait(), wait()));
    let woken = Arc::new(Woken(AtomicUsize::new(0)));
    let waker = woken.clone().into();
    let mut polls = 0;
    loop {
        let before = woken.0.load(SeqCst);
        assert!(both.as_mut().poll(&mut std::task::Context::from_waker(&waker)).is_pending());
        polls += 1;
        assert!(polls < 100);
        if woken.0.load(SeqCst) == before {
            break;
        }
    }
}

// upstash/ratelimit: a store that does not answer within five seconds allows whatever is asked.
#[tokio::test(start_paused = true)]
async fn upstash_a_store_that_does_not_answer_in_time_allows_nothing() {
    let (scope, hangs) = hanging(runtime(), MILLISECOND);
    hangs.store(true, SeqCst);
    let options = LimitOptions::new(10u64, HOUR);
    let closed = limit(&scope, "closed", options.rule().unwrap(), options.outage);
    for _ in 0..3 {
        let error = shortly(closed.take(1u64)).await.unwrap_err();
        assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
    }
    // Nor does one that is open then allow more than it says.
    let open = limit(&scope, "open", options.rule().unwrap(), Outage::Open);
    let mut allowed = 0;
    for _ in 0..100 {
        allowed += u64::from(shortly(open.increment(1u64)).await.unwrap());
    }
    assert_eq!(allowed, 10);
}

// What it took in an outage was refused it in each one after that, whatever was reset meanwhile.
#[tokio::test(start_paused = true)]
async fn a_reset_takes_back_what_was_taken_in_an_outage() {
    let budget = Rule::Budget { max: 100u64.into(), period: HOUR, offset: 0 };
    for rule in [Rule::Lifetime { max: 100u64.into() }, budget] {
        let (scope, hangs) = hanging(runtime(), 20 * MILLISECOND);
        let limit = limit(&scope, "a", rule, Outage::Open);
        assert!(shortly(limit.increment(10u64)).await.unwrap());
        hangs.store(true, SeqCst);
        assert!(shortly(limit.increment(50u64)).await.unwrap());
        hangs.store(false, SeqCst);
        shortly(limit.reset()).await.unwrap();
        hangs.store(true, SeqCst);
        let answer = shortly(limit.take(60u64)).await.unwrap();
        assert_eq!((answer.allowed, answer.said), (true, Said::Outage), "{rule:?}");
    }
}

// It was forgotten under the kind of a limit that allows nothing, which has no record.
#[tokio::test(start_paused = true)]
async fn a_reset_of_a_rate_that_allows_nothing_by_now_forgets_what_is_counted_for_an_outage() {
    for kind in [|max| Rule::Refill { max, period: HOUR }, |max| Rule::Rolling { max, period: HOUR }] {
        let (scope, hangs) = hanging(runtime(), 20 * MILLISECOND);
        let open = |max| limit(&scope, "a", kind(max), Outage::Open);
        assert!(shortly(open(10).increment(10u64)).await.unwrap());
        shortly(open(0).reset()).await.unwrap();
        assert_eq!(scope.alone.size(), (0, 0), "{:?}", kind(0));
        hangs.store(true, SeqCst);
        let answer = shortly(open(10).take(10u64)).await.unwrap();
        assert_eq!((answer.allowed, answer.said), (true, Said::Outage), "{:?}", kind(0));
    }
}

// What the store allowed after a reset was forgotten in the next outage, and the record of that reset kept for a day or years.
#[tokio::test(start_paused = true)]
async fn what_the_store_allows_after_a_reset_counts_in_an_outage() {
    let budget = Rule::Budget { max: 100u64.into(), period: HOUR, offset: 0 };
    for rule in [Rule::Lifetime { max: 100u64.into() }, budget] {
        let (scope, hangs) = hanging(runtime(), 20 * MILLISECOND);
        let limit = limit(&scope, "a", rule, Outage::Open);
        assert!(shortly(limit.increment(70u64)).await.unwrap());
        shortly(limit.reset()).await.unwrap();
        assert_eq!(scope.alone.size(), (0, 0), "{rule:?}");
        assert!(shortly(limit.increment(90u64)).await.unwrap());
        hangs.store(true, SeqCst);
        let answer = shortly(limit.take(60u64)).await.unwrap();
        let told = (answer.allowed, answer.said, answer.remaining);
        assert_eq!(told, (false, Said::Outage, 10u64.into()), "{rule:?}");
    }
}

// It was given back here, and stayed charged with the store: an outage allowed as much again.
#[tokio::test(start_paused = true)]
async fn what_another_has_committed_stays_charged_in_an_outage() {
    for in_part in [false, true] {
        let ledger = ledger();
        let process = || hanging_of(ledger.clone(), runtime(), 20 * MILLISECOND);
        let ((here, hangs), (there, _)) = (process(), process());
        let of = |scope| limit(scope, "a", Rule::Refill { max: 10, period: HOUR }, Outage::Open);
        let reserved = shortly(of(&here).reserve(10u64, Duration::from_secs(60))).await.unwrap().unwrap();
        shortly(of(&there).commit_reservation(&reserved.id())).await.unwrap();
        match in_part {
            true => shortly(reserved.commit_at(1u64)).await.unwrap(),
            false => assert_eq!(shortly(reserved.refund()).await.unwrap_err().code(), Code::Lost),
        }
        hangs.store(true, SeqCst);
        assert!(!shortly(of(&here).increment(1u64)).await.unwrap(), "in part: {in_part}");
    }
}

// Who stood behind another was told that the store does not answer, of which an open limit asks nothing.
#[tokio::test(start_paused = true)]
async fn who_waits_for_an_open_limit_in_an_outage_is_told_of_the_limit() {
    let (scope, hangs) = hanging(runtime(), 20 * MILLISECOND);
    let limit = limit(&scope, "a", Rule::Refill { max: 1, period: HOUR }, Outage::Open);
    assert!(shortly(limit.increment(1u64)).await.unwrap());
    hangs.store(true, SeqCst);
    let wait = |time| limit.wait_with(1u64, WaitOptions { timeout: time * MILLISECOND, ..at_any_time() });
    let (first, second) = shortly(futures_util::future::join(wait(600), wait(300))).await;
    assert_eq!((first.unwrap_err().code(), second.unwrap_err().code()), (Code::TimedOut, Code::TimedOut));
}

// Once a second the first of those who wait for an open limit asked the store whether it is back, and all others stood behind it meanwhile.
#[tokio::test(start_paused = true)]
async fn who_waits_for_an_open_limit_in_an_outage_stands_behind_nobody_who_asks_the_store() {
    let (scope, hangs) = hanging(runtime(), HOUR);
    let limit = limit(&scope, "a", Rule::Refill { max: 1_000, period: HOUR }, Outage::Open);
    let wait = || limit.wait_with(1u64, at_any_time());
    // It is known, and the store is to be asked again.
    scope.outage.store(1, SeqCst);
    hangs.store(true, SeqCst);
    for answer in shortly(futures_util::future::join_all([wait(), wait(), wait()])).await {
        assert_eq!(answer.unwrap().said, Said::Outage);
    }
    // It is back, of which they hear.
    hangs.store(false, SeqCst);
    scope.outage.store(1, SeqCst);
    shortly(async {
        while wait().await.unwrap().said != Said::Store {
            idle().await;
        }
    })
    .await;
}

// It slept until its next look, which can be a second later.
#[tokio::test(start_paused = true)]
async fn who_waits_hears_of_what_is_given_back_for_one_who_left() {
    let (ledger, answers) = (ledger(), Arc::new(Notify::new()));
    let (store, held, asked) = (ledger.clone(), answers.clone(), Arc::new(AtomicUsize::new(0)));
    let counted = asked.clone();
    // It keeps its first answer back.
    let scope = scope(sleepless(), HOUR, move |envelope| {
        let (store, held, first) = (store.clone(), held.clone(), counted.fetch_add(1, SeqCst) == 0);
        async move {
            let answer = StoreLedger::charge(&store, &envelope).await;
            if first {
                held.notified().await;
            }
            answer
        }
    });
    let spend =
        limit(&scope, "spend", Rule::Budget { max: 10u64.into(), period: HOUR, offset: 0 }, Outage::Closed);
    let mut leaves = Box::pin(spend.reserve(10u64, Duration::from_micros(HOUR)));
    assert!((&mut leaves).now_or_never().is_none());
    shortly(async {
        while asked.load(SeqCst) == 0 {
            idle().await;
        }
    })
    .await;
    let waiting = tokio::spawn({
        let spend = spend.clone();
        async move { spend.wait_with(10u64, at_any_time()).await }
    });
    // Another envelope sets out only when the first has been under way for some time.
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(leaves);
    answers.notify_one();
    assert!(shortly(waiting).await.unwrap().unwrap().allowed);
}

// Whatever ended, all of them asked the store. Who waits for several is called as that one changes which refused it last.
#[tokio::test]
async fn only_those_are_called_who_wait_for_what_has_changed() {
    let (ledger, asked) = (ledger(), Arc::new(Mutex::new(BTreeMap::new())));
    let counts = asked.clone();
    let scope = scope(sleepless(), HOUR, move |envelope| {
        for request in envelope.requests.iter().filter(|request| matches!(request.act, Act::Reserve { .. })) {
            let names: Vec<_> = request.charges.iter().map(|charge| charge.limit.as_str()).collect();
            *counts.lock().unwrap().entry(names.join(" ")).or_insert(0) += 1;
        }
        let ledger = ledger.clone();
        async move { StoreLedger::charge(&ledger, &envelope).await }
    });
    let asked = |names: &str| asked.lock().unwrap().get(names).copied().unwrap_or(0);
    let until_asked = async |names: &str, times: usize| {
        shortly(async {
            while asked(names) < times {
                tokio::task::yield_now().await;
            }
        })
        .await;
    };
    let flights = |name| limit(&scope, name, Rule::InFlight { max: 1 }, Outage::Closed);
    let (one, other) = (flights("a"), flights("b"));
    let both = Limit::group([&one, &other]).unwrap();
    let reserve = async |limit: &Limit<Warped>| {
        shortly(limit.reserve(1u64, Duration::from_micros(HOUR))).await.unwrap().unwrap()
    };
    let held = [reserve(&one).await, reserve(&other).await];
    let wait = |limit: &Limit<Warped>| {
        let limit = limit.clone();
        tokio::spawn(async move {
            limit.wait_to_reserve_for(1u64, HOUR, at_any_time()).await.map(|reserved| reserved.commit())
        })
    };
    let _waiting = [wait(&one), wait(&other), wait(&both)];
    for (names, times) in [("a", 2), ("b", 2), ("a b", 1)] {
        until_asked(names, times).await;
    }
    let [first, second] = held;
    shortly(first.commit()).await.unwrap();
    until_asked("a", 3).await;
    assert_eq!((asked("b"), asked("a b")), (2, 1));
    shortly(second.commit()).await.unwrap();
    until_asked("b", 3).await;
    until_asked("a b", 2).await;
}

// At the end of each reservation all who waited for one of its rates or budgets asked anew, and what had been refused of them was
// forgotten.
#[tokio::test(start_paused = true)]
async fn what_stays_charged_calls_nobody() {
    let (scope, _) = hanging(runtime(), HOUR);
    let spend = limit(&scope, "spend", lifetime(), Outage::Closed);
    let flights = limit(&scope, "flights", Rule::InFlight { max: 2 }, Outage::Closed);
    let both = Limit::group([&flights.at_cost(1u64), &spend]).unwrap();
    let reserve =
        async |cost: u64| shortly(both.reserve(cost, Duration::from_secs(60))).await.unwrap().unwrap();
    let (first, second) = (reserve(8).await, reserve(2).await);
    let place = |limit: &str, rule| {
        let charge = Charge { limit: Name::new(limit).unwrap(), rule, cost: Amount::ZERO, open: false };
        scope.line(&[charge]).enter(0, false)
    };
    let (money, free) = (place("spend", lifetime()), place("flights", Rule::InFlight { max: 2 }));
    let (mut for_money, for_free) = (money.called(), free.called());
    assert_eq!(shortly(spend.take(1u64)).await.unwrap().said, Said::Store);
    shortly(first.commit()).await.unwrap();
    assert_eq!(shortly(spend.take(1u64)).await.unwrap().said, Said::Memory, "nothing was given back");
    assert_eq!(((&mut for_money).now_or_never().is_some(), for_free.now_or_never().is_some()), (false, true));
    shortly(second.refund()).await.unwrap();
    assert!((&mut for_money).now_or_never().is_some());
}

// One open limit had the process count all rates of its scope, each name that was ever taken of.
#[tokio::test(start_paused = true)]
async fn of_rates_a_process_counts_only_what_is_open_in_an_outage() {
    let (scope, hangs) = hanging(runtime(), SECOND);
    let rate = Rule::Refill { max: 9, period: HOUR };
    let open = limit(&scope, "open", rate, Outage::Open);
    let closed = limit(&scope, "closed", rate, Outage::Closed);
    assert!(shortly(closed.increment(4u64)).await.unwrap());
    let reserved = shortly(closed.reserve(1u64, Duration::from_secs(60))).await.unwrap().unwrap();
    shortly(reserved.commit()).await.unwrap();
    assert_eq!(scope.alone.size(), (0, 0));
    // Of both together too, only the one that is open.
    let both = Limit::group([Some(&open.at_cost(2u64)), Some(&closed)]).unwrap();
    assert!(shortly(both.increment(3u64)).await.unwrap());
    let reserved = shortly(both.reserve(1u64, Duration::from_secs(60))).await.unwrap().unwrap();
    assert_eq!(scope.alone.size(), (1, 1));
    shortly(reserved.refund()).await.unwrap();
    hangs.store(true, SeqCst);
    assert_eq!(shortly(open.remaining()).await.unwrap(), 7u64.into());
}

// What is spent must outlast the server's memory, and what was taken without it, the next outage.
#[tokio::test(start_paused = true)]
async fn a_scope_matters_while_it_remembers_what_its_store_may_forget() {
    let matters = async |rule, outage| {
        let (scope, hangs) = hanging(runtime(), SECOND);
        let limit = limit(&scope, "a", rule, outage);
        assert!(!scope.matters());
        assert!(shortly(limit.increment(1u64)).await.unwrap());
        // The one who carried it may not have gone yet.
        shortly(async {
            while Arc::strong_count(&scope.carrier) > 1 {
                idle().await;
            }
        })
        .await;
        let remembers = scope.matters();
        hangs.store(true, SeqCst);
        let mut asking = Box::pin(limit.take(1u64));
        assert!((&mut asking).now_or_never().is_none());
        assert!(scope.matters(), "something is under way");
        remembers
    };
    let rate = Rule::Refill { max: 9, period: HOUR };
    assert!(!matters(rate, Outage::Closed).await);
    assert!(matters(rate, Outage::Open).await);
    assert!(matters(lifetime(), Outage::Closed).await);
}

// What it costs is not known where it is ended by its id, and so nobody told that nothing was given back.
#[tokio::test(start_paused = true)]
async fn what_is_not_given_back_as_its_server_is_another_is_told_of_also_where_it_is_ended_by_its_id() {
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let [server, wall] = [1, 1_700_000_000 * SECOND].map(|number| Arc::new(AtomicU64::new(number)));
    let [one, other] = [(); 2].map(|()| {
        let (ledger, server, wall) = (ledger.clone(), server.clone(), wall.clone());
        let scope = scope(runtime(), HOUR, move |envelope| {
            let incarnation = format!("{:016}", server.load(SeqCst));
            let moment = Moment { wall: wall.fetch_add(1, SeqCst), incarnation: &incarnation };
            let answer = ledger.lock().unwrap().apply(moment, &envelope);
            async move { Ok(answer) }
        });
        limit(&scope, "a", lifetime(), Outage::Closed)
    });
    let id = one.reserve(3u64, Duration::from_micros(HOUR)).await.unwrap().unwrap().hand_over();
    assert_eq!(other.remaining().await.unwrap(), 7u64.into());
    server.store(2, SeqCst);
    // Also who tries again, which was told that it was done.
    for _ in 0..2 {
        assert_eq!(other.refund_reservation(&id).await.unwrap_err().code(), Code::Lost);
        assert_eq!(other.remaining().await.unwrap(), 7u64.into());
    }
    assert!(other.commit_reservation(&id).await.is_ok(), "it stays charged");
}
