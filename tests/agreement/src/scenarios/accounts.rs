//! Accounts: their nonces, and who may use them.

use serde_json::{Value, json};

use super::scenario::{Scenario, TTL, any, change, define, release, renew, resync, these, used};

pub fn nonces() -> Scenario {
    let mut told = Scenario::of(
        "nonces",
        "What each outcome leaves for the next holder; a nonce never goes back by itself.",
        &["a"],
    );
    let mut fence = told.synced("a", 7);
    told.ask(used("a", &fence, 7));
    told.ask(used("a", &fence, 3));
    told.ask(resync("a", &fence, 6));
    let endings = [
        json!({ "outcome": "used", "next": "8" }),
        json!({ "outcome": "unused" }),
        json!({ "outcome": "rejected", "expected": "12" }),
        json!({ "outcome": "rejected", "expected": "4" }),
        json!({ "outcome": "used", "next": "11" }),
        json!({ "outcome": "used", "next": "12" }),
        json!({ "outcome": "rejected", "expected": null }),
        json!({ "outcome": "unused" }),
        json!({ "outcome": "rejected", "expected": "13" }),
        json!({ "outcome": "unknown" }),
        json!({ "outcome": "unknown", "used": "9007199254740995" }),
        json!({ "outcome": "unknown", "used": "9007199254740994" }),
        json!({ "outcome": "rejected", "expected": "9007199254740994" }),
        json!({ "outcome": "used", "next": "9007199254740995" }),
        json!({ "outcome": "unsettled" }),
    ];
    for mut ending in endings {
        for (key, value) in [("request", json!("release")), ("slot", json!("a")), ("fence", fence.clone())] {
            ending[key] = value;
        }
        let released = told.ask(ending)["reply"] == "released";
        told.look(&["a"]);
        if released {
            fence = told.lease("a");
        }
    }
    let read = |fence: &Value, chain: &str, rewind: bool| {
        json!({
            "request": "resync", "slot": "a", "fence": fence, "chain": chain, "rewind": rewind, "settle": "20000000",
        })
    };
    told.ask(read(&fence, "9007199254740996", false));
    told.pass(1).ask(read(&fence, "19", false));
    told.ask(read(&fence, "5", true));
    told.pass(19).ask(read(&fence, "4", false));
    told.pass(1).ask(read(&fence, "4", false));
    // From when it was raised, and not from a release that left it as it was.
    told.ask(used("a", &fence, 9));
    let fence = told.lease("a");
    told.pass(10).ask(release("a", &fence, "unused"));
    let fence = told.lease("a");
    told.pass(9).ask(read(&fence, "6", false));
    told.pass(1).ask(read(&fence, "6", false));
    told
}

pub fn digits() -> Scenario {
    let mut told = Scenario::of("digits", "Nonces around 2^53, 2^63 and 2^64 - 1 keep every digit.", &["a"]);
    let edge = 1u64 << 53;
    for nonce in [edge - 1, edge, edge + 1, edge + 2, (1 << 63) - 1, 1 << 63, (1 << 63) + 1, u64::MAX - 2] {
        let fence = told.lease("a");
        told.ask(resync("a", &fence, nonce));
        told.ask(resync("a", &fence, nonce - 1));
        told.ask(used("a", &fence, nonce));
        told.ask(used("a", &fence, nonce + 1));
    }
    let fence = told.lease("a");
    told.ask(used("a", &fence, u64::MAX));
    let fence = told.lease("a");
    told.ask(used("a", &fence, u64::MAX));
    told.ask(release("a", &fence, "unused"));
    told.look(&["a"]);
    told
}

pub fn doubt() -> Scenario {
    let mut told = Scenario::of(
        "doubt",
        "A lease that ends with its nonce unsettled leaves the slot in doubt: handed out last, after a rest, with the mark.",
        &["a", "b", "c"],
    );
    told.synced("a", 7);
    told.synced("b", 3);
    told.pass(30).look(&["a", "b", "c"]);
    for strategy in ["random", "weighted"] {
        let answer = told.ask(any(strategy, 1, 1));
        let grant = &answer["grants"][0];
        told.ask(release("c", &grant["fence"], "unused"));
    }
    let named = json!({ "request": "claim", "among": ["a", "c", "b"], "least": "1", "ttl": TTL });
    let grant = &told.ask(named)["grants"][0];
    told.ask(release("c", &grant["fence"], "unused"));
    let answer = told.ask(any("least_recent", 3, 3));
    let fence_of = |slot: &str| {
        let grants = answer["grants"].as_array().expect("grants");
        grants.iter().find(|grant| grant["slot"] == slot).expect("granted")["fence"].clone()
    };
    told.ask(release("a", &fence_of("a"), "unused"));
    told.ask(resync("b", &fence_of("b"), 4));
    told.ask(release("b", &fence_of("b"), "unused"));
    told.look(&["a", "b"]);
    told.ask(json!({ "request": "define", "slots": [], "longest": TTL, "doubt_rest": "10000000" }));
    let fence = told.lease("b");
    told.ask(release("b", &fence, "unknown"));
    told.look(&["b"]);
    told.pass(9).ask(these(&["b"]));
    // It rests to the same moment, and is ready then, whoever enables it.
    for _ in 0..2 {
        told.ask(change("b", "enable"));
        told.look(&["b"]);
        told.pass(1);
    }
    told.ask(change("b", "disable"));
    told.ask(change("b", "enable"));
    told.look(&["b"]);
    let fence = told.pass(10).lease("b");
    told.ask(release("b", &fence, "unused"));
    let fence = told.lease("b");
    // What is removed in doubt is found so by who adds it again before its rest is over.
    told.ask(release("b", &fence, "unknown"));
    told.ask(change("b", "remove"));
    told.ask(change("b", "enable"));
    told.look(&["b"]);
    told.pass(1).ask(define(&["b"]));
    told.ask(these(&["b"]));
    told.ask(change("b", "remove"));
    told.pass(9).ask(json!({ "request": "list" }));
    // Whatever its holder said of what was under quarantine.
    let fence = told.synced("c", 9);
    told.ask(json!({ "request": "change", "slot": "c", "change": "quarantine", "rest": "1000000" }));
    told.ask(used("c", &fence, 10));
    told.look(&["c"]);
    told
}

pub fn roster() -> Scenario {
    let mut told = Scenario::new(
        "roster",
        "Slots are added, weighed, listed, removed; a removed one waits for its lease.",
    );
    told.ask(define(&["b", "a"]));
    told.ask(define(&["0xAB", "0xab", "b"]));
    told.ask(json!({ "request": "list" }));
    told.ask(json!({ "request": "define", "slots": [{ "slot": "a", "weight": "200" }], "longest": TTL }));
    told.look(&["a", "b", "0xAb", "nobody"]);
    told.ask(change("nobody", "enable"));
    let fence = told.synced("a", 7);
    told.ask(change("a", "remove"));
    told.ask(renew("a", &fence));
    told.look(&["a"]);
    told.ask(release("a", &fence, "unused"));
    told.ask(json!({ "request": "list" }));
    told.ask(define(&["a"]));
    told.look(&["a"]);
    let fence = told.lease("a");
    told.ask(change("a", "remove"));
    told.ask(define(&["a"]));
    told.ask(release("a", &fence, "unused"));
    told.look(&["a"]);
    let fence = told.lease("b");
    told.ask(change("b", "disable"));
    told.ask(change("b", "remove"));
    for word in ["enable", "drain", "disable"] {
        told.ask(change("b", word));
    }
    told.pass(1).ask(renew("b", &fence));
    told.pass(29).ask(json!({ "request": "list" }));
    told
}

pub fn administration() -> Scenario {
    let mut told = Scenario::of(
        "administration",
        "Disable, drain, quarantine, break and enable, of leased slots and of others.",
        &["a", "b"],
    );
    for word in ["disable", "drain"] {
        told.ask(change("a", word));
        told.look(&["a"]);
        told.ask(change("a", "enable"));
        let fence = told.lease("a");
        told.ask(change("a", word));
        told.pass(1).ask(renew("a", &fence));
        told.look(&["a"]);
        told.ask(release("a", &fence, "unused"));
        told.look(&["a"]);
        told.ask(change("a", "enable"));
    }
    let quarantine =
        |rest: &str| json!({ "request": "change", "slot": "a", "change": "quarantine", "rest": rest });
    let fence = told.synced("a", 7);
    told.ask(quarantine("50000000"));
    told.ask(quarantine("1000000"));
    told.ask(used("a", &fence, 8));
    told.ask(these(&["a"]));
    told.look(&["a"]);
    told.pass(50).lease("a");
    told.ask(change("a", "break"));
    told.look(&["a"]);
    told.ask(quarantine("9000000"));
    told.ask(change("a", "enable"));
    told.lease("a");
    told.ask(change("a", "drain"));
    told.ask(change("a", "break"));
    told.look(&["a", "b"]);
    told
}
