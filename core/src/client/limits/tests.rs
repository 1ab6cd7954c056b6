//! The client over a store in memory, where nothing has to be waited for but time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;

use super::{Limit, LimitKind, LimitOptions, Said, WaitOptions};
use crate::client::Unit;
use crate::client::native::{NativeLeasehold, NativeLimit, connect};
use crate::error::Code;
use crate::limits::Amount;
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

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
async fn waiting_ends_in_time_or_at_once_where_it_is_hopeless() {
    let handle = handle("waiting");
    let limit = limit(&handle, "a", 1, HOUR);
    assert!(limit.wait_with(1u64, within(0, 0)).await.unwrap().allowed);
    let error = shortly(limit.wait_with(1u64, within(30 * MILLISECOND, 0))).await.unwrap_err();
    assert_eq!(error.code(), Code::TimedOut);
    assert!(error.retry_after().is_some_and(|time| !time.is_zero()), "{error:?}");
    assert!(error.message().starts_with("the limit a allowed it at no time until the timeout"), "{error}");
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

// A large payment held up all small ones until midnight, which were told that the limit allowed them at no time.
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_budgets_next_period_holds_up_nobody() {
    let handle = handle("aside");
    let budget = || LimitOptions::new(100u64, 24 * HOUR).kind(LimitKind::Budget);
    let spend = handle.limit_with("spend", &budget()).unwrap();
    assert!(spend.increment(50u64).await.unwrap());
    let waits = |cost: u64, timeout| {
        let spend = spend.clone();
        async move { spend.wait_with(cost, within(timeout, 0)).await }
    };
    let large = tokio::spawn(waits(90, HOUR));
    let larger = tokio::spawn(waits(95, HOUR));
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(shortly(waits(1, HOUR)).await.unwrap().allowed);
    assert!(shortly(waits(1, 0)).await.unwrap().allowed);
    assert_eq!(shortly(waits(60, 0)).await.unwrap_err().code(), Code::TimedOut);
    // And what is given back is the first one's, in its turn again.
    spend.refund(42u64).await.unwrap();
    assert!(shortly(large).await.unwrap().unwrap().allowed);
    assert!(!larger.is_finished());
    spend.refund(95u64).await.unwrap();
    assert!(shortly(larger).await.unwrap().unwrap().allowed);
}

// Who waited for a rate stood behind whoever waited for what is in flight under the same name, and was told that others waited before it.
#[tokio::test(start_paused = true)]
async fn limits_of_one_name_and_of_different_kinds_have_lines_of_their_own() {
    let handle = handle("kinds");
    let flights = handle.limit_with("ann", &LimitOptions::new(1u64, 0).kind(LimitKind::InFlight)).unwrap();
    let rate = limit(&handle, "ann", 100, SECOND);
    let held = flights.reserve(1u64, Duration::from_micros(HOUR)).await.unwrap().unwrap();
    let mut waiting = Box::pin(flights.wait_to_reserve_for(1u64, HOUR, within(HOUR, 0)));
    assert!((&mut waiting).now_or_never().is_none());
    assert!(rate.wait_with(1u64, within(0, 0)).await.unwrap().allowed);
    held.commit().await.unwrap();
    shortly(waiting).await.unwrap().commit().await.unwrap();
}

// It slept until the end of the day, or to its timeout.
#[tokio::test(start_paused = true)]
async fn who_waits_hears_of_what_another_handle_gives_back() {
    let (one, other) = (handle("elsewhere"), handle("elsewhere"));
    let spend = |handle: &NativeLeasehold| {
        handle.limit_with("spend", &LimitOptions::new(10u64, 24 * HOUR).kind(LimitKind::Budget)).unwrap()
    };
    let reserved = spend(&one).reserve(10u64, Duration::from_micros(HOUR)).await.unwrap().unwrap();
    let waiting = tokio::spawn({
        let spend = spend(&other);
        async move { spend.wait_with(10u64, within(HOUR, 0)).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!waiting.is_finished());
    reserved.refund().await.unwrap();
    assert!(shortly(waiting).await.unwrap().unwrap().allowed);
}

// It was taken for the reservation of other limits, and what was in flight stayed so to its deadline.
#[tokio::test(start_paused = true)]
async fn a_reservation_is_ended_though_one_of_its_rates_allows_nothing_by_now() {
    let handle = handle("closed-rate");
    let limit =
        |name, max: u64, kind| handle.limit_with(name, &LimitOptions::new(max, HOUR).kind(kind)).unwrap();
    let spend = limit("spend", 10, LimitKind::Budget);
    for kind in [LimitKind::Refill, LimitKind::Rolling] {
        let group = |max| handle.group([Some(&limit("rate", max, kind)), Some(&spend)]).unwrap();
        let id = group(10).reserve(3u64, Duration::from_micros(HOUR)).await.unwrap().unwrap().hand_over();
        group(0).refund_reservation(&id).await.unwrap();
        let used = async |limit: NativeLimit| limit.used().await.unwrap();
        assert_eq!(
            [used(spend.clone()).await, used(limit("rate", 10, kind)).await],
            [Amount::ZERO; 2],
            "{kind:?}"
        );
    }
}

// Each was answered, and changed nothing: a limit that was closed for a moment was refused for the rest of its month.
#[tokio::test(start_paused = true)]
async fn what_was_used_of_a_rate_is_reset_and_given_back_though_it_allows_nothing_by_now() {
    let handle = handle("closed-restored");
    for kind in [LimitKind::Refill, LimitKind::Gcra, LimitKind::Rolling] {
        let rate =
            |max: u64| handle.limit_with("rate", &LimitOptions::new(max, 720 * HOUR).kind(kind)).unwrap();
        assert!(rate(10).increment(10u64).await.unwrap());
        let told = rate(0).refund(4u64).await.unwrap();
        assert_eq!((told.allowed, told.remaining), (true, Amount::ZERO), "{kind:?}");
        assert_eq!(rate(10).used().await.unwrap(), 6u64.into(), "{kind:?}");
        rate(0).reset().await.unwrap();
        assert!(!rate(0).increment(1u64).await.unwrap(), "{kind:?}");
        assert!(rate(10).increment(10u64).await.unwrap(), "{kind:?}");
        // Nothing is left to give back, and still nothing can be taken.
        rate(0).reset().await.unwrap();
        assert_eq!(rate(0).refund(1u64).await.unwrap().remaining, Amount::ZERO, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
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

// The process that reserved may have crashed, or another one may do the work.
#[tokio::test(start_paused = true)]
async fn a_reservation_is_ended_by_its_id_by_any_process() {
    let (one, other) = (handle("by id"), handle("by id"));
    let spend = |handle: &NativeLeasehold| {
        handle.limit_with("spend", &LimitOptions::new(10u64, 24 * HOUR).kind(LimitKind::Budget)).unwrap()
    };
    let flights = |handle: &NativeLeasehold| {
        handle.limit_with("flights", &LimitOptions::new(10u64, 0).kind(LimitKind::InFlight)).unwrap()
    };
    let group = |handle| handle_group(handle, &[spend(handle), flights(handle)]);
    let left = async || [spend(&one).remaining().await.unwrap(), flights(&one).remaining().await.unwrap()];
    let hour = Duration::from_micros(HOUR);
    let given_back = group(&one).reserve(4u64, hour).await.unwrap().unwrap().hand_over();
    let kept = group(&one).reserve(3u64, hour).await.unwrap().unwrap();
    let kept = kept.hand_over();
    assert_eq!(left().await, [3u64.into(), 3u64.into()], "both are there yet");
    for _ in 0..2 {
        group(&other).refund_reservation(&given_back).await.unwrap();
        group(&other).commit_reservation(&kept).await.unwrap();
        assert_eq!(left().await, [7u64.into(), 10u64.into()]);
    }
    let code = |told: crate::error::Result<()>| told.unwrap_err().code();
    assert_eq!(code(group(&other).commit_reservation(&given_back).await), Code::Lost);
    assert_eq!(code(group(&other).refund_reservation(&kept).await), Code::Lost);
    let turned = handle_group(&other, &[flights(&other), spend(&other)]);
    assert_eq!(turned.refund_reservation(&kept).await.unwrap_err().field(), Some("id"));
    assert_eq!(spend(&other).commit_reservation("x").await.unwrap_err().field(), Some("id"));
    let brief = spend(&one).reserve(1u64, Duration::from_millis(1)).await.unwrap().unwrap().hand_over();
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert_eq!(code(spend(&other).commit_reservation(&brief).await), Code::Lost);
    assert_eq!(code(spend(&other).refund_reservation(&brief).await), Code::Lost);
    assert_eq!(left().await, [6u64.into(), 10u64.into()]);
}

fn handle_group(handle: &NativeLeasehold, limits: &[NativeLimit]) -> NativeLimit {
    handle.group(limits.iter().map(Some)).unwrap()
}

#[tokio::test(start_paused = true)]
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
#[tokio::test(start_paused = true)]
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

#[tokio::test(start_paused = true)]
async fn a_reservation_that_reaches_nobody_is_as_if_never_made() {
    let handle = handle("retracted");
    let spend = handle.limit_with("spend", &LimitOptions::new(10u64, 0).kind(LimitKind::Lifetime)).unwrap();
    spend.reserve(4u64, Duration::from_micros(HOUR)).await.unwrap().unwrap().retract();
    assert_eq!(spend.used().await.unwrap(), Amount::ZERO);
}

#[tokio::test(start_paused = true)]
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
    let reserved = reserve(false, options(60_000.0, &[])).await.unwrap();
    let id = Value::Text(reserved.id());
    let renew = async |id: &Value, ttl: Value| limit.renew_reservation_by(id, &ttl, unit).await;
    renew(&id, Value::Number(120_000.0)).await.unwrap();
    reserved.renew_by(Some(120 * SECOND)).await.unwrap();
    assert!(reserved.remaining_micros() > 100 * SECOND);
    for (id, ttl, field) in [
        (&Value::Null, Value::Number(1.0), "id"),
        (&id, Value::Null, "ttl"),
        (&id, Value::Bool(true), "ttl"),
        (&id, Value::Number(0.0), "ttl"),
    ] {
        assert_eq!(renew(id, ttl).await.unwrap_err().field(), Some(field));
    }
    reserved.refund().await.unwrap();
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
