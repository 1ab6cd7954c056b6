use super::*;
use crate::error::Code;
use crate::runtime::idle;

fn text(text: &str) -> Value {
    text.into()
}

#[cfg(feature = "redis")]
#[tokio::test(start_paused = true)]
async fn closing_ends_what_waits_and_no_more() {
    use crate::client::{AcquireOptions, native::connect};

    let handle = connect("memory:closed").namespace("test").open().unwrap();
    let other = connect("memory:closed").namespace("test").open().unwrap();
    let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    let another = other.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    let lease = pool.acquire().await.unwrap();
    let named =
        AcquireOptions { slots: Some(vec![crate::id::SlotId::new("a").unwrap()]), ..Default::default() };
    let waiting = [AcquireOptions::default(), named].map(|options| {
        let pool = pool.clone();
        tokio::spawn(async move { pool.acquire_with(options).await })
    });
    let elsewhere = tokio::spawn(async move { another.acquire().await });
    while pool.statistics().waiting < 2 {
        idle().await;
    }

    handle.close();
    for waiting in waiting {
        assert_eq!(waiting.await.unwrap().unwrap_err().code(), Code::Cancelled);
    }
    assert_eq!(pool.statistics().waiting, 0);
    // Nothing more waits, no more pools are opened, and what is held stays so.
    let late = pool.acquire().await.unwrap_err();
    assert_eq!(late.code(), Code::Cancelled);
    let opened = handle.pool_with("q", PoolOptions::slots(["a"]).unwrap(), None).await;
    assert_eq!(opened.unwrap_err().code(), Code::Cancelled);
    assert!(lease.is_held());
    lease.release().await.unwrap();
    // Other handles go on.
    elsewhere.await.unwrap().unwrap();
    handle.close();
}

// A service with a scope for each customer grew with them, and found each the slower.
#[cfg(all(feature = "redis", feature = "limits"))]
#[tokio::test(start_paused = true)]
async fn scopes_that_nobody_needs_are_forgotten() {
    let handle = crate::client::native::connect("memory:scopes").namespace("test").open().unwrap();
    let limit = |name: &str, period| {
        let scope = Name::new(name).ok();
        handle.limit_with("a", &LimitOptions { scope, ..LimitOptions::new(1u64, period) }).unwrap()
    };
    let held = limit("held", SECOND);
    assert!(limit("used", 3_600 * SECOND).increment(1u64).await.unwrap());
    assert!(held.increment_now(1u64).unwrap().unwrap());
    for customer in 0..10_000 {
        drop(limit(&format!("customer:{customer}"), SECOND));
        let scopes = handle.0.scopes.lock().unwrap();
        assert!(scopes.len() <= 4 * SCOPES, "{}", scopes.len());
    }
    // What was used of one is not forgotten with it: the store has it.
    assert!(!limit("used", 3_600 * SECOND).increment(1u64).await.unwrap());
    let same = limit("held", SECOND);
    assert!(Limit::group([&held, &same]).is_ok(), "of one scope still");
    let crate::store::EitherStore::Memory(store) = handle.store() else { unreachable!() };
    // The handle has some of them still as it looks.
    assert!(store.ledgers() <= 16 * SCOPES);
}

#[test]
fn the_seeds_configuration_is_taken_as_it_stands() {
    for mode in ["segregated", "seggregated"] {
        let value = Value::map([("retry_timeout", Value::Number(2.0)), ("mode", text(mode))]);
        let config = SeedConfig::read(&value).unwrap();
        assert_eq!(
            (config.url.as_str(), config.pool.timeout, config.pool.ttl),
            ("memory:", 2 * SECOND, 5 * SECOND)
        );
    }
    let redis = Value::map([("endpoint", text("redis://127.0.0.1:6379"))]);
    let config = SeedConfig::read(&Value::map([("mode", text("shared")), ("redis", redis)])).unwrap();
    assert_eq!((config.url.as_str(), config.pool.timeout), ("redis://127.0.0.1:6379", SECOND));
}

// A variable of the environment that was not set opened a store of its own in each process.
#[test]
fn a_url_that_is_missing_is_refused() {
    assert_eq!(Target::read(&Value::Null).unwrap_err().field(), Some("url"));
}

#[test]
fn mistakes_in_the_configuration_are_named() {
    let wrong =
        |value: Value, field: &str| assert_eq!(SeedConfig::read(&value).unwrap_err().field(), Some(field));
    wrong(Value::Null, "mode");
    wrong(Value::map([("mode", text("separate"))]), "mode");
    wrong(Value::map([("mode", text("shared"))]), "redis.endpoint");
    wrong(Value::map([("mode", text("shared")), ("redis", Value::map([]))]), "redis.endpoint");
    wrong(Value::map([("mode", text("shared")), ("redis", text("redis://x"))]), "redis");
    wrong(Value::map([("mode", text("segregated")), ("retry", Value::Number(1.0))]), "retry");
    wrong(Value::map([("mode", text("segregated")), ("retry_timeout", text("1"))]), "retry_timeout");
    wrong(
        Value::map([("mode", text("segregated")), ("retry_timeout", Value::Number(-1.0))]),
        "retry_timeout",
    );
}
