//! The client over a store in memory, where nothing has to be waited for but time.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;

use super::carrier::Carrier;
use super::{Limit, LimitKind, LimitOptions, Said, WaitOptions};
use crate::client::native::{NativeLeasehold, NativeLimit, connect};
use crate::client::{TokioRuntime, Unit};
use crate::error::Code;
use crate::id::{Name, PoolName};
use crate::limits::{Act, Amount, Answer, Charge, Envelope, Reply, Request, Rule, Settlement};
use crate::store::ledger::MemoryLedger;
use crate::store::{Certainty, LimitStore, MemoryStore, StoreError, StoreLedger};
use crate::value::Value;
use crate::{MILLISECOND, Micros, SECOND};

const HOUR: Micros = 3_600 * SECOND;

fn handle(name: &str) -> NativeLeasehold {
    connect(format!("memory:limits-{name}")).namespace("test").open().unwrap()
}

fn limit(handle: &NativeLeasehold, name: &str, max: u64, period: Micros) -> NativeLimit {
    handle.limit_with(name, &LimitOptions::new(max, period)).unwrap()
}

fn within(timeout: Micros, priority: i16) -> WaitOptions {
    WaitOptions { timeout, priority }
}

async fn shortly<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("in time")
}

#[tokio::test]
async fn it_counts_up_and_down_as_others_do() {
    let (handle, other) = (handle("counts"), handle("counts"));
    let logins = limit(&handle, "logins:10.0.0.1", 3, HOUR);
    assert!(logins.increment(2u64).await.unwrap());
    assert!(!logins.increment(2u64).await.unwrap());
    assert!(logins.exceeded(2u64).await.unwrap() && !logins.exceeded(1u64).await.unwrap());
    assert_eq!(logins.limit_exceeded(2u64).await.unwrap().unwrap().as_str(), "logins:10.0.0.1");
    assert_eq!(logins.limit_exceeded(1u64).await.unwrap(), None);
    assert_eq!(logins.remaining().await.unwrap(), 1u64.into());
    let error = logins.increment_or_fail(2u64).await.unwrap_err();
    assert_eq!(error.code(), Code::Limited);
    assert!(
        error.message().contains("logins:10.0.0.1") && error.message().contains("try again in"),
        "{error}"
    );
    // Three are refilled in an hour, and one is missing.
    assert!(
        error.retry_after_micros().is_some_and(|time| (HOUR / 4..=HOUR / 3).contains(&time)),
        "{error:?}"
    );
    let error = logins.increment_or_fail(4u64).await.unwrap_err();
    assert!(error.message().contains("never") && error.retry_after_micros().is_none(), "{error:?}");
    // Another handle, as another process would.
    let same = limit(&other, "logins:10.0.0.1", 3, HOUR);
    same.decrement(1u64).await.unwrap();
    assert_eq!(logins.remaining().await.unwrap(), 2u64.into());
    assert_eq!(logins.used().await.unwrap(), 1u64.into());
    same.reset().await.unwrap();
    assert_eq!(logins.used().await.unwrap(), Amount::ZERO);
}

#[tokio::test]
async fn groups_nest_and_leave_out_what_is_not_there() {
    let handle = handle("groups");
    let (key, account) = (limit(&handle, "key", 5, HOUR), limit(&handle, "account", 100, HOUR));
    let inner = handle.group([Some(&key), None]).unwrap();
    let outer = handle.group([Some(&inner), Some(&account), Some(&key)]).unwrap();
    assert!(outer.increment(3u64).await.unwrap());
    let refused = outer.take(3u64).await.unwrap();
    assert_eq!((refused.allowed, refused.limit.unwrap().as_str()), (false, "key"));
    assert_eq!(key.remaining().await.unwrap(), 2u64.into(), "charged once");
    assert_eq!(account.remaining().await.unwrap(), 97u64.into());
    assert_eq!(outer.remaining().await.unwrap(), 2u64.into());
    // Costs of their own: a request counts one, whatever its gas.
    let gas = limit(&handle, "gas", 1_000_000, HOUR);
    let both = handle.group([Some(&gas), Some(&key.at_cost(1u64))]).unwrap();
    assert!(both.increment(21_000u64).await.unwrap());
    assert_eq!((gas.used().await.unwrap(), key.used().await.unwrap()), (21_000u64.into(), 4u64.into()));
    let none = handle.group([None::<&Limit<_>>]).unwrap();
    let answer = none.take(7u64).await.unwrap();
    assert_eq!((answer.allowed, answer.limit), (true, None));
    let elsewhere = handle.limit_with(
        "key",
        &LimitOptions { scope: crate::id::Name::new("s").ok(), ..LimitOptions::new(5u64, HOUR) },
    );
    let error = handle.group([Some(&key), Some(&elsewhere.unwrap())]).unwrap_err();
    assert_eq!(error.field(), Some("limits"));
    let different = limit(&handle, "key", 6, HOUR);
    assert_eq!(handle.group([Some(&key), Some(&different)]).unwrap_err().field(), Some("limits"));
}

#[tokio::test]
async fn those_who_wait_go_by_priority_then_by_arrival() {
    let handle = handle("priority");
    let limit = limit(&handle, "a", 1, 20 * MILLISECOND);
    assert!(limit.increment(1u64).await.unwrap());
    let order: Arc<Mutex<Vec<i32>>> = Arc::default();
    let mut tasks = Vec::new();
    for (number, priority) in [(1, 0), (2, 0), (3, 5), (4, -5)] {
        let (limit, order) = (limit.clone(), order.clone());
        tasks.push(async move {
            let answer = limit.wait_with(1u64, within(20 * SECOND, priority)).await.unwrap();
            assert!(answer.allowed);
            order.lock().unwrap().push(number);
        });
    }
    // Polled in this order for the first time.
    shortly(futures_util::future::join_all(tasks)).await;
    let order = order.lock().unwrap().clone();
    // The first asked before the third came.
    assert!(order == [3, 1, 2, 4] || order == [1, 3, 2, 4], "{order:?}");
}

#[tokio::test]
async fn waiting_ends_in_time_or_at_once_where_it_is_hopeless() {
    let handle = handle("waiting");
    let limit = limit(&handle, "a", 1, HOUR);
    assert!(limit.wait_with(1u64, within(0, 0)).await.unwrap().allowed);
    let error = shortly(limit.wait_with(1u64, within(30 * MILLISECOND, 0))).await.unwrap_err();
    assert_eq!(error.code(), Code::TimedOut);
    assert!(error.retry_after().is_some_and(|time| !time.is_zero()), "{error:?}");
    let error = shortly(limit.wait_with(2u64, within(HOUR, 0))).await.unwrap_err();
    assert_eq!(error.code(), Code::Limited);
    // One that is dropped leaves no place in the line.
    let dropped =
        tokio::time::timeout(Duration::from_millis(10), limit.wait_with(1u64, within(HOUR, 9))).await;
    assert!(dropped.is_err());
    let waiting = tokio::spawn({
        let limit = limit.clone();
        async move { limit.wait_with(1u64, within(HOUR, 0)).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!waiting.is_finished());
    limit.refund(1u64).await.unwrap();
    assert!(shortly(waiting).await.unwrap().unwrap().allowed, "it is told of what is given back");
    let closed = tokio::spawn({
        let limit = limit.clone();
        async move { limit.wait_with(1u64, within(HOUR, 0)).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    handle.close();
    assert_eq!(shortly(closed).await.unwrap().unwrap_err().code(), Code::Cancelled);
    assert_eq!(handle.limit_with("a", &LimitOptions::new(1u64, 1)).unwrap_err().code(), Code::Cancelled);
}

#[tokio::test]
async fn what_is_in_flight_lands_with_its_reservation() {
    let handle = handle("flights");
    let lasting = |max: u64, kind| LimitOptions::new(max, 0).kind(kind);
    let open = handle.limit_with("signer", &lasting(2, LimitKind::InFlight)).unwrap();
    let spend = handle.limit_with("spend", &lasting(10, LimitKind::Lifetime)).unwrap();
    assert_eq!(open.take(1u64).await.unwrap_err().field(), Some("limit"));
    let both = handle.group([Some(&open.at_cost(1u64)), Some(&spend)]).unwrap();
    let reserve = async |cost: u64| both.reserve(cost, Duration::from_micros(HOUR)).await.unwrap();
    let (first, second) = (reserve(3).await.unwrap(), reserve(3).await.unwrap());
    let refused = reserve(1).await.unwrap_err();
    assert_eq!((refused.limit.unwrap().as_str(), refused.said), ("signer", Said::Store));
    let waiting = tokio::spawn({
        let both = both.clone();
        async move {
            both.wait_to_reserve(4u64, Duration::from_micros(HOUR)).timeout(Duration::from_secs(20)).await
        }
    });
    first.refund().await.unwrap();
    let third = shortly(waiting).await.unwrap().unwrap();
    assert_eq!(spend.used().await.unwrap(), 7u64.into());
    drop(second);
    assert_eq!((open.used().await.unwrap(), spend.used().await.unwrap()), (1u64.into(), 7u64.into()));
    third.commit().await.unwrap();
    assert_eq!((open.used().await.unwrap(), spend.used().await.unwrap()), (Amount::ZERO, 7u64.into()));
    assert_eq!(both.reserve(1u64, Duration::from_micros(0)).await.unwrap_err().field(), Some("ttl"));
    // Not to the last: another's clock may be ahead.
    let lasts = spend.reserve(1u64, Duration::from_secs(100)).await.unwrap().unwrap();
    assert!((90..=99).contains(&lasts.remaining().as_secs()), "{:?}", lasts.remaining());
    lasts.refund().await.unwrap();
    let unbound =
        handle.group([None::<&Limit<_>>, None]).unwrap().reserve(1u64, Duration::from_secs(100)).await;
    assert_eq!(unbound.unwrap().unwrap().remaining(), Duration::from_secs(100), "nothing was charged");
    let brief = spend.reserve(1u64, Duration::from_micros(1)).await.unwrap().unwrap();
    assert_eq!(brief.remaining(), Duration::ZERO);
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(brief.refund().await.unwrap_err().code(), Code::Lost);
    // What is spent stays so, whenever that is said; what was in flight for too long was counted no more.
    for (limit, end) in [(&spend, Ok(())), (&open, Err(Code::Lost)), (&both, Err(Code::Lost))] {
        let brief = limit.reserve(1u64, Duration::from_micros(1)).await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(brief.commit().await.map_err(|error| error.code()), end);
    }
}

#[tokio::test]
async fn in_memory_it_is_taken_at_once_and_counted_with_all_the_rest() {
    let handle = handle("now");
    let (wide, narrow) = (limit(&handle, "wide", 9, HOUR), limit(&handle, "narrow", 3, HOUR));
    let both = Limit::group([Some(&wide), Some(&narrow)]).unwrap();
    assert!(narrow.increment_now(1u64).unwrap().unwrap());
    let answer = both.take_now(2u64).unwrap().unwrap();
    assert_eq!((answer.allowed, answer.limit.unwrap().as_str()), (true, "narrow"));
    assert!(!both.increment_now(1u64).unwrap().unwrap());
    assert_eq!((wide.used().await.unwrap(), narrow.used().await.unwrap()), (2u64.into(), 3u64.into()));
    let options = LimitOptions { kind: LimitKind::InFlight, ..LimitOptions::new(1u64, 0) };
    let open = handle.limit_with("open", &options).unwrap();
    assert_eq!(open.take_now(1u64).unwrap().unwrap_err().code(), Code::InvalidArgument);
    // Without a period, each request by itself.
    let each = limit(&handle, "each", 2, 0);
    let allowed = |cost: u64| each.increment_now(cost).unwrap().unwrap();
    assert!(allowed(2) && allowed(2) && !allowed(3));
    // Elsewhere there is nothing at once.
    let url = "redis://127.0.0.1:1";
    let elsewhere = connect(url)
        .namespace("test")
        .open()
        .unwrap()
        .limit_with("far", &LimitOptions::new(1u64, HOUR))
        .unwrap();
    assert!(elsewhere.take_now(1u64).is_none() && elsewhere.increment_now(1u64).is_none());
}

// They ended by the time since the machine began.
#[tokio::test]
async fn periods_of_a_store_that_never_answered_are_those_of_the_calendar() {
    let hour = Duration::from_secs(3_600);
    let since = std::time::UNIX_EPOCH.elapsed().unwrap();
    let left = hour.as_secs() - since.as_secs() % hour.as_secs();
    let options =
        LimitOptions::new(10u64, hour.as_micros() as u64).kind(LimitKind::Budget).outage(super::Outage::Open);
    let handle = connect("redis://127.0.0.1:1").open().unwrap();
    let answer = handle.limit_with("spend", &options).unwrap().take(1u64).await.unwrap();
    let told = answer.reset_after().unwrap().as_secs();
    assert_eq!((answer.allowed, answer.said), (true, Said::Outage));
    // Unless an hour ended meanwhile.
    assert!(left.abs_diff(told) < 60 || left < 60, "{told} s, not {left} s");
}

/// A store that has to be waited for, as one elsewhere.
struct Elsewhere(Arc<MemoryLedger>);

impl StoreLedger for Elsewhere {
    fn charge_now(&self, _: &Request) -> Option<Reply> {
        None
    }

    async fn charge(&self, envelope: &Envelope) -> Result<Answer, StoreError> {
        self.0.charge(envelope).await
    }
}

#[tokio::test]
async fn what_was_reserved_for_one_who_leaves_as_the_reply_lies_there_is_given_back() {
    let name = |text| Name::new(text).unwrap();
    let scope = PoolName { namespace: name("test"), pool: name("limits") };
    let ledger = MemoryStore::new(TokioRuntime::store_clock()).ledger(&scope);
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    let carrier = Carrier::new(Box::new(Elsewhere(ledger.clone())), runtime, SECOND);
    let request = |act, cost: u64| {
        let rule = Rule::Lifetime { max: 5u64.into() };
        Request { act, charges: vec![Charge { limit: name("spend"), rule, cost: cost.into() }] }
    };
    let left = || match ledger.charge_now(&request(Act::Peek, 0)) {
        Some(Reply::Judged(verdict)) => verdict.remaining.saturating_u64(),
        other => panic!("{other:?}"),
    };
    let mut asking = Box::pin(carrier.ask(request(Act::Reserve { id: 1, ttl: HOUR }, 3)));
    assert_eq!((&mut asking).now_or_never(), None);
    let until = async |wanted| {
        while left() != wanted {
            tokio::task::yield_now().await;
        }
    };
    shortly(until(2)).await;
    drop(asking);
    shortly(until(5)).await;
}

/// A store whose replies are lost when that is wanted; its clock jumps then, and what it remembers of envelopes is over.
struct Jumping {
    ledger: Arc<MemoryLedger>,
    wall: Arc<AtomicU64>,
    loses: Arc<AtomicBool>,
}

impl StoreLedger for Jumping {
    fn charge_now(&self, _: &Request) -> Option<Reply> {
        None
    }

    async fn charge(&self, envelope: &Envelope) -> Result<Answer, StoreError> {
        let answer = self.ledger.charge(envelope).await;
        if self.loses.swap(false, Relaxed) {
            self.wall.fetch_add(100 * SECOND, Relaxed);
            return Err(StoreError::new(Certainty::Unknown, "the reply is lost"));
        }
        answer
    }
}

// It was charged twice: a store that answered "too late" was taken to have done nothing.
#[tokio::test]
async fn what_a_jump_of_the_clock_leaves_unknown_is_not_charged_again() {
    let name = |text| Name::new(text).unwrap();
    let scope = PoolName { namespace: name("test"), pool: name("limits") };
    let (wall, loses) = (Arc::new(AtomicU64::new(1_700_000_000 * SECOND)), Arc::new(AtomicBool::new(false)));
    let clock = wall.clone();
    let ledger = MemoryStore::new(Arc::new(move || clock.load(Relaxed))).ledger(&scope);
    let jumping = Jumping { ledger: ledger.clone(), wall, loses: loses.clone() };
    let carrier =
        Carrier::new(Box::new(jumping), TokioRuntime::new(tokio::runtime::Handle::current()), SECOND);
    let request = |act, cost: u64| {
        let rule = Rule::Lifetime { max: 10u64.into() };
        Request { act, charges: vec![Charge { limit: name("spend"), rule, cost: cost.into() }] }
    };
    let left = || match ledger.charge_now(&request(Act::Peek, 0)) {
        Some(Reply::Judged(verdict)) => verdict.remaining.saturating_u64(),
        other => panic!("{other:?}"),
    };
    // It knows the store's time from now on.
    carrier.ask(request(Act::Take, 1)).await.unwrap();
    loses.store(true, Relaxed);
    let error = shortly(carrier.ask(request(Act::Take, 2))).await.unwrap_err();
    assert_eq!((error.code(), left()), (Code::StoreUnavailable, 7));
    // A reservation of which nobody knows is given back.
    loses.store(true, Relaxed);
    let error = shortly(carrier.ask(request(Act::Reserve { id: 1, ttl: HOUR }, 3))).await.unwrap_err();
    assert_eq!(error.code(), Code::StoreUnavailable);
    shortly(async {
        while left() != 7 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    // To end one twice does no harm.
    carrier.ask(request(Act::Reserve { id: 2, ttl: HOUR }, 3)).await.unwrap();
    loses.store(true, Relaxed);
    let ended = shortly(carrier.ask(request(Act::GiveBack { id: 2 }, 3))).await.unwrap();
    assert_eq!((ended, left()), (Reply::Settled(Settlement::Before { given_back: true }), 7));
}

/// A store that performs what it is sent, and answers when it is back.
struct Stuck {
    ledger: Arc<MemoryLedger>,
    stuck: Arc<AtomicBool>,
}

impl StoreLedger for Stuck {
    fn charge_now(&self, _: &Request) -> Option<Reply> {
        None
    }

    async fn charge(&self, envelope: &Envelope) -> Result<Answer, StoreError> {
        let answer = self.ledger.charge(envelope).await;
        if self.stuck.load(Relaxed) {
            return std::future::pending().await;
        }
        answer
    }
}

// Whoever was told that nothing is held by the call, or had left, had it charged for as long as the limit remembers.
#[tokio::test]
async fn what_is_reserved_while_the_store_is_stuck_is_given_back_when_it_is_there_again() {
    let name = |text| Name::new(text).unwrap();
    let scope = PoolName { namespace: name("test"), pool: name("limits") };
    let ledger = MemoryStore::new(TokioRuntime::store_clock()).ledger(&scope);
    let stuck = Arc::new(AtomicBool::new(true));
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    let store = Box::new(Stuck { ledger: ledger.clone(), stuck: stuck.clone() });
    let carrier = Carrier::new(store, runtime, SECOND / 20);
    let request = |act, cost: u64| {
        let rule = Rule::Lifetime { max: 10u64.into() };
        Request { act, charges: vec![Charge { limit: name("spend"), rule, cost: cost.into() }] }
    };
    let left = || match ledger.charge_now(&request(Act::Peek, 0)) {
        Some(Reply::Judged(verdict)) => verdict.remaining.saturating_u64(),
        other => panic!("{other:?}"),
    };
    for leaves in [false, true] {
        stuck.store(true, Relaxed);
        let mut asking =
            Box::pin(carrier.ask(request(Act::Reserve { id: u128::from(leaves), ttl: HOUR }, 3)));
        if leaves {
            assert!(tokio::time::timeout(Duration::from_millis(20), &mut asking).await.is_err());
        } else {
            let error = shortly(&mut asking).await.unwrap_err();
            assert!(error.message().contains("nothing is held by this call"), "{error:?}");
        }
        drop(asking);
        assert_eq!(left(), 7);
        // Longer than anybody waits for it.
        tokio::time::sleep(Duration::from_millis(200)).await;
        stuck.store(false, Relaxed);
        shortly(async {
            while left() != 10 {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

/// A store that forgets everything after its first envelope, and keeps that answer back until it is told.
struct Forgetting {
    ledgers: [Arc<MemoryLedger>; 2],
    forgot: AtomicBool,
    answers: Arc<tokio::sync::Notify>,
}

impl StoreLedger for Forgetting {
    fn charge_now(&self, _: &Request) -> Option<Reply> {
        None
    }

    async fn charge(&self, envelope: &Envelope) -> Result<Answer, StoreError> {
        let first = !self.forgot.swap(true, Relaxed);
        let answer = self.ledgers[usize::from(!first)].charge(envelope).await;
        if first {
            self.answers.notified().await;
        }
        answer
    }
}

// Both were allowed: the second envelope was made before it was known what the first had charged.
#[tokio::test]
async fn what_is_under_way_as_a_store_forgets_overspends_nothing() {
    let name = |text| Name::new(text).unwrap();
    for reserves in [false, true] {
        let wall = Arc::new(AtomicU64::new(1_700_000_000 * SECOND));
        let store = MemoryStore::new(Arc::new(move || wall.fetch_add(1, Relaxed)));
        let ledger = |pool| store.ledger(&PoolName { namespace: name("test"), pool: name(pool) });
        let answers = Arc::new(tokio::sync::Notify::new());
        let ledgers = [ledger("before"), ledger("after")];
        let forgetting = Forgetting { ledgers, forgot: AtomicBool::new(false), answers: answers.clone() };
        let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
        let carrier = Carrier::new(Box::new(forgetting), runtime, SECOND);
        let ask = |act, cost: u64| {
            let rule = Rule::Lifetime { max: 100u64.into() };
            let charges = vec![Charge { limit: name("spend"), rule, cost: cost.into() }];
            let carrier = carrier.clone();
            tokio::spawn(async move {
                match carrier.ask(Request { act, charges }).await.unwrap() {
                    Reply::Judged(verdict) => (verdict.allowed, verdict.remaining.saturating_u64()),
                    other => panic!("{other:?}"),
                }
            })
        };
        let act = |id| if reserves { Act::Reserve { id, ttl: HOUR } } else { Act::Take };
        let first = ask(act(1), 60);
        // Another envelope sets out only when the first has been under way for some time.
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert_eq!(shortly(ask(act(2), 60)).await.unwrap(), (true, 40));
        answers.notify_one();
        assert_eq!(shortly(first).await.unwrap(), (false, 0));
        // It is counted, and given back if the store knows what it was: reservations are forgotten.
        let left = if reserves { 0 } else { 40 };
        shortly(async {
            while ask(Act::Peek, 0).await.unwrap().1 != left {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

#[tokio::test]
async fn a_reservation_that_reaches_nobody_is_as_if_never_made() {
    let handle = handle("retracted");
    let spend = handle.limit_with("spend", &LimitOptions::new(10u64, 0).kind(LimitKind::Lifetime)).unwrap();
    spend.reserve(4u64, Duration::from_micros(HOUR)).await.unwrap().unwrap().retract();
    assert_eq!(spend.used().await.unwrap(), Amount::ZERO);
}

#[tokio::test]
async fn languages_ask_by_verbs_and_values() {
    let limit = limit(&handle("verbs"), "a", 3, HOUR);
    let (unit, cost) = (Unit::Milliseconds, |cost: u64| Value::from(cost));
    let digits = |text: &str| Value::Text(text.to_owned());
    let entry = |answer: &Value, key: &str| match answer {
        Value::Map(entries) => entries.iter().find(|(name, _)| name == key).unwrap().1.clone(),
        other => panic!("{other:?}"),
    };
    let taken = limit.ask("take", &cost(2), unit).await.unwrap();
    assert_eq!((entry(&taken, "allowed"), entry(&taken, "remaining")), (Value::Bool(true), digits("1")));
    assert_eq!((entry(&taken, "limit"), entry(&taken, "said")), (digits("a"), digits("store")));
    let Value::Number(reset) = entry(&taken, "reset_after") else { panic!("{taken:?}") };
    assert!(reset > 0.0 && reset <= 2.4e6, "in milliseconds: {reset}");
    for (verb, told) in [
        ("increment", Value::Bool(false)),
        ("exceeded", Value::Bool(true)),
        ("limit_exceeded", digits("a")),
        ("remaining", digits("1")),
        ("used", digits("2")),
    ] {
        assert_eq!(limit.ask(verb, &cost(2), unit).await.unwrap(), told, "{verb}");
    }
    assert_eq!(limit.ask("increment_or_fail", &cost(2), unit).await.unwrap_err().code(), Code::Limited);
    assert_eq!(entry(&limit.ask("decrement", &cost(1), unit).await.unwrap(), "remaining"), digits("2"));
    assert_eq!(limit.ask("reset", &cost(0), unit).await.unwrap(), Value::Null);
    assert_eq!(entry(&limit.ask("peek", &cost(4), unit).await.unwrap(), "retry_after"), Value::Null);
    assert_eq!(limit.ask("take", &Value::Bool(true), unit).await.unwrap_err().field(), Some("cost"));
    let options = |ttl: f64, more: &[(&str, Value)]| {
        let more = more.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        Value::Map([("ttl".to_owned(), Value::Number(ttl))].into_iter().chain(more).collect())
    };
    let reserve = async |waits, options: Value| limit.reserve_by(waits, &cost(3), &options, unit).await;
    reserve(false, options(1.0, &[])).await.unwrap().refund().await.unwrap();
    let timeout = [("timeout", Value::Number(0.0)), ("priority", Value::Number(3.0))];
    reserve(true, options(60_000.0, &timeout)).await.unwrap().commit().await.unwrap();
    assert_eq!(reserve(false, options(1.0, &[])).await.unwrap_err().code(), Code::Limited);
    assert_eq!(reserve(true, options(1.0, &timeout)).await.unwrap_err().code(), Code::TimedOut);
    for (waits, options, field) in [
        (false, options(1.0, &timeout), "timeout"),
        (false, Value::Null, "ttl"),
        (true, options(0.5, &[]), "ttl"),
        (true, options(1.0, &[("priority", Value::Bool(true))]), "priority"),
    ] {
        assert_eq!(reserve(waits, options).await.unwrap_err().field(), Some(field));
    }
    assert_eq!(
        limit.at_cost_by(&cost(1)).unwrap().take(9u64).await.unwrap().retry_after().map(|t| !t.is_zero()),
        Some(true)
    );
}

#[test]
fn options_are_read_and_mistakes_are_named() {
    let read = |entries: &[(&str, Value)]| {
        let entries = entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        LimitOptions::read(&Value::Map(entries.collect()), Unit::Seconds)
    };
    let number = Value::Number;
    let options = read(&[("max", number(600.0)), ("period", number(0.5))]).unwrap();
    assert_eq!(options, LimitOptions::new(600u64, SECOND / 2));
    let wei = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    let options =
        read(&[("max", wei.into()), ("period", number(86_400.0)), ("kind", "budget".into())]).unwrap();
    assert_eq!(options.max, Amount::MAX);
    assert!(read(&[("max", number(3.0)), ("kind", "lifetime".into())]).is_ok());
    assert_eq!(read(&[("max", number(3.0)), ("period", number(0.0))]).unwrap().period, 0);
    for (entries, field) in [
        (&[("period", number(1.0))][..], "max"),
        (&[("max", number(1.0))], "period"),
        (&[("max", number(1.5)), ("period", number(1.0))], "max"),
        (&[("max", number(-1.0)), ("period", number(1.0))], "max"),
        (&[("max", "1e3".into()), ("period", number(1.0))], "max"),
        // It would limit each request by itself.
        (&[("max", number(1.0)), ("period", number(1e-7))], "period"),
        (&[("max", number(1.0)), ("period", number(-1.0))], "period"),
        (&[("max", number(1.0)), ("period", number(f64::NAN))], "period"),
        (&[("max", number(2e15)), ("period", number(1.0))], "max"),
        (&[("max", number(1.0)), ("period", number(1.0)), ("kind", "leaky".into())], "kind"),
        // Five ever, or five at a time, are not five in a second.
        (&[("max", number(5.0)), ("period", number(1.0)), ("kind", "lifetime".into())], "period"),
        (&[("max", number(5.0)), ("period", number(1.0)), ("kind", "in_flight".into())], "period"),
        (&[("max", number(1.0)), ("period", number(1.0)), ("burst", number(5.0))], "burst"),
        (&[("max", number(1.0)), ("period", number(1.0)), ("offset", number(5.0))], "offset"),
        (&[("max", number(1.0)), ("period", number(1.0)), ("outage", "ajar".into())], "outage"),
        (&[("max", number(1.0)), ("period", number(1.0)), ("maximum", number(5.0))], "maximum"),
    ] {
        assert_eq!(read(entries).unwrap_err().field(), Some(field), "{entries:?}");
    }
}
