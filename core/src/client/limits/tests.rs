//! The client over a store in memory, where nothing has to be waited for but time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{Limit, LimitKind, LimitOptions, Said, WaitOptions};
use crate::client::native::{NativeLeasehold, connect};
use crate::client::{TokioRuntime, Unit};
use crate::error::Code;
use crate::limits::Amount;
use crate::value::Value;
use crate::{MILLISECOND, Micros, SECOND};

const HOUR: Micros = 3_600 * SECOND;

fn handle(name: &str) -> NativeLeasehold {
    connect(&format!("memory:limits-{name}"), "test").unwrap()
}

fn limit(handle: &NativeLeasehold, name: &str, max: u64, period: Micros) -> Limit<TokioRuntime> {
    handle.limit(name, &LimitOptions::new(max, period)).unwrap()
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
    assert!(logins.increment_or_fail(4u64).await.unwrap_err().message().contains("never"));
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
    let inner = handle.limits([Some(&key), None]).unwrap();
    let outer = handle.limits([Some(&inner), Some(&account), Some(&key)]).unwrap();
    assert!(outer.increment(3u64).await.unwrap());
    let refused = outer.take(3u64).await.unwrap();
    assert_eq!((refused.allowed, refused.limit.unwrap().as_str()), (false, "key"));
    assert_eq!(key.remaining().await.unwrap(), 2u64.into(), "charged once");
    assert_eq!(account.remaining().await.unwrap(), 97u64.into());
    assert_eq!(outer.remaining().await.unwrap(), 2u64.into());
    // Costs of their own: a request counts one, whatever its gas.
    let gas = limit(&handle, "gas", 1_000_000, HOUR);
    let both = handle.limits([Some(&gas), Some(&key.at_cost(1u64))]).unwrap();
    assert!(both.increment(21_000u64).await.unwrap());
    assert_eq!((gas.used().await.unwrap(), key.used().await.unwrap()), (21_000u64.into(), 4u64.into()));
    let none = handle.limits([None]).unwrap();
    let answer = none.take(7u64).await.unwrap();
    assert_eq!((answer.allowed, answer.limit), (true, None));
    let elsewhere = handle.limit(
        "key",
        &LimitOptions { scope: crate::id::Name::new("s").ok(), ..LimitOptions::new(5u64, HOUR) },
    );
    let error = handle.limits([Some(&key), Some(&elsewhere.unwrap())]).unwrap_err();
    assert_eq!(error.field(), Some("limits"));
    let different = limit(&handle, "key", 6, HOUR);
    assert_eq!(handle.limits([Some(&key), Some(&different)]).unwrap_err().field(), Some("limits"));
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
            let answer = limit.wait(1u64, within(20 * SECOND, priority)).await.unwrap();
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
    assert!(limit.wait(1u64, within(0, 0)).await.unwrap().allowed);
    let error = shortly(limit.wait(1u64, within(30 * MILLISECOND, 0))).await.unwrap_err();
    assert_eq!(error.code(), Code::TimedOut);
    let error = shortly(limit.wait(2u64, within(HOUR, 0))).await.unwrap_err();
    assert_eq!(error.code(), Code::Limited);
    // One that is dropped leaves no place in the line.
    let dropped = tokio::time::timeout(Duration::from_millis(10), limit.wait(1u64, within(HOUR, 9))).await;
    assert!(dropped.is_err());
    let waiting = tokio::spawn({
        let limit = limit.clone();
        async move { limit.wait(1u64, within(HOUR, 0)).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert!(!waiting.is_finished());
    limit.refund(1u64).await.unwrap();
    assert!(shortly(waiting).await.unwrap().unwrap().allowed, "it is told of what is given back");
    let closed = tokio::spawn({
        let limit = limit.clone();
        async move { limit.wait(1u64, within(HOUR, 0)).await }
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    handle.close();
    assert_eq!(shortly(closed).await.unwrap().unwrap_err().code(), Code::Cancelled);
    assert_eq!(handle.limit("a", &LimitOptions::new(1u64, 1)).unwrap_err().code(), Code::Cancelled);
}

#[tokio::test]
async fn what_is_in_flight_lands_with_its_reservation() {
    let handle = handle("flights");
    let options = |kind| LimitOptions::new(2u64, HOUR).kind(kind);
    let open = handle.limit("signer", &options(LimitKind::InFlight)).unwrap();
    let spend = handle.limit("spend", &LimitOptions::new(10u64, HOUR).kind(LimitKind::Lifetime)).unwrap();
    assert_eq!(open.take(1u64).await.unwrap_err().field(), Some("limit"));
    let both = handle.limits([Some(&open.at_cost(1u64)), Some(&spend)]).unwrap();
    let reserve = async |cost: u64| both.reserve(cost, HOUR).await.unwrap();
    let (first, second) = (reserve(3).await.unwrap(), reserve(3).await.unwrap());
    let refused = reserve(1).await.unwrap_err();
    assert_eq!((refused.limit.unwrap().as_str(), refused.said), ("signer", Said::Store));
    let waiting = tokio::spawn({
        let both = both.clone();
        async move { both.wait_to_reserve(4u64, HOUR, within(20 * SECOND, 0)).await }
    });
    first.refund().await.unwrap();
    let third = shortly(waiting).await.unwrap().unwrap();
    assert_eq!(spend.used().await.unwrap(), 7u64.into());
    drop(second);
    assert_eq!((open.used().await.unwrap(), spend.used().await.unwrap()), (1u64.into(), 7u64.into()));
    third.commit().await.unwrap();
    assert_eq!((open.used().await.unwrap(), spend.used().await.unwrap()), (Amount::ZERO, 7u64.into()));
    assert_eq!(both.reserve(1u64, 0).await.unwrap_err().field(), Some("ttl"));
    let brief = spend.reserve(1u64, 1).await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(brief.refund().await.unwrap_err().code(), Code::Lost);
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
        (&[("max", number(1.0)), ("period", number(1.0)), ("burst", number(5.0))], "burst"),
        (&[("max", number(1.0)), ("period", number(1.0)), ("offset", number(5.0))], "offset"),
        (&[("max", number(1.0)), ("period", number(1.0)), ("outage", "ajar".into())], "outage"),
        (&[("max", number(1.0)), ("period", number(1.0)), ("maximum", number(5.0))], "maximum"),
    ] {
        assert_eq!(read(entries).unwrap_err().field(), Some(field), "{entries:?}");
    }
}
