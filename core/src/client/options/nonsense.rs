//! Options that make no sense: whatever a program passes is taken or refused by the name of an option, and nothing breaks.

use proptest::prelude::*;

use super::{AcquireOptions, LockOptions, PoolOptions, ReleaseOptions, read_rewind};
use crate::client::Unit;
use crate::client::leasehold::{OpenOptions, SeedConfig, Target};
use crate::client::limits::{LimitOptions, WaitOptions};
use crate::client::tokens::{SelectOptions, TokensOptions};
use crate::error::{Code, Error};
use crate::tokens::Spender;
use crate::value::Value;

/// All that is read of options.
fn read_all(value: &Value, unit: Unit) -> Vec<Option<Error>> {
    vec![
        OpenOptions::default().read(value, unit).err(),
        Target::read(value).err(),
        SeedConfig::read(value).err(),
        PoolOptions::default().read(value, unit).err(),
        AcquireOptions::read(value, unit).err(),
        ReleaseOptions::read(value, unit).err(),
        read_rewind(value).err(),
        LockOptions::default().read(value, unit).err(),
        LockOptions::default().read_run(value, unit).err(),
        LimitOptions::read(value, unit).err(),
        WaitOptions::default().read(value, unit).err(),
        TokensOptions::default().read(value, unit).err(),
        SelectOptions::read(value, unit).err(),
        Spender::read(value).err(),
    ]
}

/// Keys that options have, in one language or the other, and one that none has.
const KEYS: [&str; 40] = [
    "namespace",
    "responseTimeout",
    "response_timeout",
    "lockTtl",
    "mode",
    "retry_timeout",
    "redis",
    "endpoint",
    "slots",
    "ttl",
    "cooldown",
    "strategy",
    "timeout",
    "ageing",
    "maxHold",
    "max_hold",
    "keepalive",
    "doubtRest",
    "doubt_rest",
    "settle",
    "count",
    "priority",
    "steal",
    "stolenConsistencyFactor",
    "stolen_consistency_factor",
    "reentrant",
    "if",
    "unless",
    "kind",
    "max",
    "period",
    "burst",
    "offset",
    "outage",
    "scope",
    "currency",
    "spender",
    "maxInputs",
    "rewind",
    "__proto__",
];
/// Words that some option has for a value, and texts that none has.
const WORDS: [&str; 15] = [
    "shared",
    "segregated",
    "random",
    "weighted",
    "gcra",
    "budget",
    "open",
    "0xff",
    "0",
    "-1",
    "18446744073709551616",
    "1e9",
    "\0",
    "{a}:",
    "Ａ",
];

fn leaf() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        prop_oneof![
            any::<f64>(),
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(-0.0),
            Just(0.001),
            Just(9_007_199_254_740_993.0)
        ]
        .prop_map(Value::Number),
        prop_oneof![any::<i128>(), -2i128..100, Just(1 << 64), Just(i128::from(u64::MAX)), Just(i128::MIN)]
            .prop_map(Value::Integer),
        prop_oneof![proptest::sample::select(&WORDS[..]).prop_map(str::to_owned), ".{0,300}"]
            .prop_map(Value::Text),
    ]
}

fn anything() -> impl Strategy<Value = Value> {
    leaf().prop_recursive(3, 24, 6, |inner| {
        let key = prop_oneof![proptest::sample::select(&KEYS[..]).prop_map(str::to_owned), ".{0,3}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::List),
            prop::collection::vec((key, inner), 0..6).prop_map(Value::Map),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn whatever_is_passed_as_options_is_taken_or_refused(value in anything(), seconds: bool) {
        let unit = if seconds { Unit::Seconds } else { Unit::Milliseconds };
        for error in read_all(&value, unit).into_iter().flatten() {
            prop_assert_eq!(error.code(), Code::InvalidArgument, "{}", error);
            prop_assert!(error.message().len() < 1_000, "{}", error);
        }
    }

    // Of a map of one option some are right: the others would hide that they are read at all.
    #[test]
    fn whatever_one_option_says_is_taken_or_refused(key in proptest::sample::select(&KEYS[..]), value in leaf()) {
        for error in read_all(&Value::map([(key, value)]), Unit::Milliseconds).into_iter().flatten() {
            prop_assert_eq!(error.code(), Code::InvalidArgument, "{}", error);
        }
    }
}
