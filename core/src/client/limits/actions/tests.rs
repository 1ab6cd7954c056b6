use proptest::prelude::*;

use super::*;
use crate::client::native::{NativeLeasehold, open as open_store};
use crate::client::{LimitKind, Outage, Unit};
use crate::{Code, SECOND};

fn handle() -> NativeLeasehold {
    let tokio = tokio::runtime::Handle::current();
    open_store(&"memory:".into(), &Value::Null, Unit::Milliseconds, tokio).unwrap()
}

fn options() -> LimitOptions {
    LimitOptions::new(2u64, 60 * SECOND)
}

fn name(action: &str, value: &str) -> Name {
    Name::of_limit(&Name::new(action).unwrap(), value).unwrap()
}

#[tokio::test(start_paused = true)]
async fn each_value_of_an_action_is_a_limit_of_its_own() {
    let lh = handle();
    lh.register_with("login", &options()).unwrap();
    let (one, other) = (lh.limit_of("login", "1.2.3.4").unwrap(), lh.limit_of("login", 7).unwrap());
    assert!(one.increment(2u64).await.unwrap());
    assert!(!one.increment(1u64).await.unwrap());
    assert!(other.increment(2u64).await.unwrap());
    let same = lh.limit_of("login", "1.2.3.4").unwrap();
    assert_eq!(same.take(1u64).await.unwrap().limit.unwrap().as_str(), "login%=1.2.3.4");
    // A number is its digits.
    assert!(lh.limit_of("login", "7").unwrap().exceeded(1u64).await.unwrap());
}

// Numbers below zero, as groups of chats have, and those of more than 64 bits, as most tokens have, were refused, and in Rust not.
#[tokio::test(start_paused = true)]
async fn whole_numbers_are_their_digits_whatever_their_size() {
    let lh = handle();
    lh.register_with("login", &options()).unwrap();
    for (value, text) in [
        (Value::Number(-0.0), "0"),
        (Value::Number(-7.0), "-7"),
        (Value::Integer(-1_001_234_567_890), "-1001234567890"),
        (Value::Integer(1 << 64), "18446744073709551616"),
        (Value::Integer(i128::MIN), "-170141183460469231731687303715884105728"),
    ] {
        let limit = lh.limit_of_by("login", &value).unwrap();
        let answer = limit.take(1u64).await.unwrap();
        assert_eq!(answer.limit.unwrap().as_str(), format!("login%={text}"));
    }
}

#[tokio::test(start_paused = true)]
async fn words_register_as_options_do() {
    let lh = handle();
    lh.limit("login", 2u64).period(std::time::Duration::from_secs(60)).register().unwrap();
    lh.register_with("login", &options()).unwrap();
    let limit = lh.limit_of("login", "é").unwrap();
    assert_eq!(limit.take(1u64).await.unwrap().remaining, 1u64.into());
}

#[tokio::test(start_paused = true)]
async fn what_is_registered_again_is_the_same() {
    let lh = handle();
    let gcra = options().kind(LimitKind::Gcra);
    lh.register_with("login", &gcra).unwrap();
    // The default, said.
    lh.register_with("login", &LimitOptions { burst: Some(2), ..gcra.clone() }).unwrap();
    for other in [
        LimitOptions { max: 3u64.into(), ..gcra.clone() },
        LimitOptions { period: SECOND, ..gcra.clone() },
        LimitOptions { burst: Some(3), ..gcra.clone() },
        LimitOptions { scope: Some(Name::new("s").unwrap()), ..gcra.clone() },
        gcra.clone().kind(LimitKind::Rolling),
        gcra.clone().outage(Outage::Open),
    ] {
        let error = lh.register_with("login", &other).unwrap_err();
        assert_eq!((error.code(), error.field()), (Code::InvalidArgument, Some("action")), "{other:?}");
        assert!(error.message().contains("\"login\" is registered with other options"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_wrong_is_named() {
    let lh = handle();
    lh.register_with("login", &options()).unwrap();
    let long = "v".repeat(257);
    for (action, value, field, says) in [
        ("logni", "a", "action", "\"logni\" is not registered"),
        ("log in", "a", "action", "is not allowed"),
        ("", "a", "action", "must not be empty"),
        ("login", "", "value", "must not be empty"),
        ("login", &long, "value", "257 bytes long, at most 256"),
    ] {
        let error = lh.limit_of(action, value).unwrap_err();
        assert_eq!((error.code(), error.field()), (Code::InvalidArgument, Some(field)), "{action} {value}");
        assert!(error.message().contains(says), "{error}");
    }
    for (value, says) in [
        (Value::Null, "must be text or a whole number, not nothing"),
        (Value::Bool(true), "must be text or a whole number, not a truth value"),
        (Value::Number(0.5), "0.5 is not a whole number"),
        (Value::Number(-0.5), "-0.5 is not a whole number from -2^53 to 2^53"),
        (Value::Number(9e15 + 1e15), "from 2^53 on give an integer"),
        (Value::Number(f64::NAN), "is not a whole number"),
    ] {
        let error = lh.limit_of_by("login", &value).unwrap_err();
        assert_eq!(error.field(), Some("value"));
        assert!(error.message().contains(says), "{error}");
    }
    let wrong = LimitOptions { burst: Some(1), ..options() };
    assert_eq!(lh.register_with("other", &wrong).unwrap_err().field(), Some("burst"));
    // It was not registered by that.
    assert_eq!(lh.limit_of("other", "a").unwrap_err().field(), Some("action"));
}

#[tokio::test(start_paused = true)]
async fn so_many_actions_and_no_more_are_registered() {
    let lh = handle();
    for number in 0..MOST_ACTIONS {
        lh.register_with(&format!("a{number}"), &options()).unwrap();
    }
    lh.register_with("a0", &options()).unwrap();
    let error = lh.register_with("one-more", &options()).unwrap_err();
    assert_eq!((error.code(), error.field()), (Code::InvalidArgument, Some("action")));
    assert!(lh.limit_of("a999", "a").is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_closed_handle_registers_nothing() {
    let lh = handle();
    lh.register_with("login", &options()).unwrap();
    lh.close();
    assert_eq!(lh.register_with("other", &options()).unwrap_err().code(), Code::Cancelled);
    assert_eq!(lh.limit_of("login", "a").unwrap_err().code(), Code::Cancelled);
}

#[test]
fn names_hold_actions_and_values_apart() {
    for (action, value, expected) in [
        ("login", "1.2.3.4", "login%=1.2.3.4"),
        ("login", "::1", "login%=::1"),
        ("a:b", "c", "a:b%=c"),
        ("a", "b:c", "a%=b:c"),
        ("a", "=b", "a%==b"),
        ("a=", "b", "a=%=b"),
        ("a", "%=b", "a%=~25=b"),
        ("a", "x y{z}", "a%=x~20y~7bz~7d"),
        ("a", "é", "a%=~c3~a9"),
        ("a", "~c3~a9", "a%=~7ec3~7ea9"),
        ("a", "0xAB", "a%=0xAB"),
    ] {
        assert_eq!(name(action, value).as_str(), expected);
    }
}

proptest! {
    // Among few letters, so that they meet often.
    #[test]
    fn no_two_actions_with_values_are_one_limit(
        action in "[a:=~3]{1,4}", value in "[a:%=~3A {é]{1,6}",
        other in "[a:=~3]{1,4}", its in "[a:%=~3A {é]{1,6}",
    ) {
        let (one, two) = (name(&action, &value), name(&other, &its));
        prop_assert_eq!(one == two, (&action, &value) == (&other, &its));
        prop_assert_eq!(one.encoded() == two.encoded(), one == two);
        // No name that a user can give.
        prop_assert!(Name::new(one.as_str()).is_err());
    }
}
