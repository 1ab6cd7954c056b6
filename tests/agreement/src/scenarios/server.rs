//! The server: envelopes that come twice or late, lost memory, its clock.

use leasehold::SECOND;
use serde_json::json;

use super::scenario::{START, Scenario, TTL, any, define, release, renew, resync, these, used};

pub fn lanes() -> Scenario {
    let mut told = Scenario::of(
        "lanes",
        "A repeated envelope gets the same answer; one that is late or overtaken changes nothing.",
        &["a", "b", "c"],
    );
    let client = u128::MAX.to_string();
    let last = (START + 10 * SECOND).to_string();
    let numbered = |sequence: &str, requests: serde_json::Value| {
        json!({
            "lane": { "client": client, "number": "65535", "sequence": sequence },
            "not_after": last, "seed": "3", "requests": requests,
        })
    };
    let claiming = numbered("5", json!([any("random", 1, 1)]));
    let answer = told.send(claiming.clone());
    told.pass(1).send(claiming.clone());
    let grant = &answer["replies"][0]["grants"][0];
    let slot = grant["slot"].as_str().expect("a slot").to_owned();
    let giving = numbered("6", json!([used(&slot, &grant["fence"], 9)]));
    told.send(giving.clone());
    told.lease(&slot);
    told.send(giving.clone());
    told.send(claiming);
    told.look(&["a", "b", "c"]);
    told.pass(15).send(giving.clone());
    told.send(numbered("7", json!([any("random", 1, 1)])));
    told.pass(60).send(giving);
    told.look(&["a", "b", "c"]);
    told
}

pub fn memory() -> Scenario {
    let mut told = Scenario::of(
        "memory",
        "A server with another identity, a fence above the top, a clock that jumped: nothing is granted for the longest \
         time to live, and nonces are in doubt.",
        &["a", "b"],
    );
    let fence = told.synced("a", 7);
    told.ask(release("a", &fence, "unused"));
    let held = told.synced("b", 3);
    told.incarnation = "second";
    told.pass(1).ask(these(&["a"]));
    told.ask(renew("b", &held));
    told.ask(used("b", &held, 4));
    told.pass(8);
    // As of before the loss, and of the moment in which it was noticed.
    for sent in [told.wall - 9 * SECOND, told.wall - 8 * SECOND] {
        let last = (sent + 10 * SECOND).to_string();
        told.send(json!({ "not_after": last, "requests": [any("random", 1, 1)] }));
    }
    told.pass(21).ask(any("random", 1, 1));
    told.look(&["a", "b"]);
    told.pass(1).ask(any("least_recent", 2, 2));
    told.pass(30);
    let seen = (told.wall + 3600 * SECOND).to_string();
    told.send(json!({ "seen": seen, "requests": [any("random", 1, 1)] }));
    told.send(json!({ "seen": seen, "requests": [{ "request": "list" }] }));
    told.pass(30).ask(these(&["a"]));
    told.pass(30).send(json!({ "jumped": true, "requests": [any("random", 1, 1)] }));
    told.pass(29).ask(any("random", 1, 1));
    told.pass(1);
    let fence = told.lease("b");
    told.ask(resync("b", &fence, 9));
    told.ask(release("b", &fence, "unused"));
    told.lease("b");
    told
}

pub fn clock() -> Scenario {
    let mut told = Scenario::of(
        "clock",
        "Store time never runs backwards; no lease is held longer than its bound.",
        &["a"],
    );
    let held =
        json!({ "request": "claim", "among": ["a"], "least": "1", "ttl": TTL, "max_hold": "40000000" });
    let fence = told.ask(held)["grants"][0]["fence"].clone();
    told.pass(20).ask(renew("a", &fence));
    told.wall -= 3600 * SECOND;
    told.ask(renew("a", &fence));
    told.pass(19).ask(renew("a", &fence));
    told.pass(1).ask(renew("a", &fence));
    told.lease("a");
    told.wall -= SECOND;
    told.ask(json!({ "request": "change", "slot": "a", "change": "break" }));
    told.lease("a");
    // Another server takes over in the same microsecond of the store's time.
    told.wall -= SECOND;
    told.incarnation = "second";
    told.ask(these(&["a"]));
    told.pass(30).lease("a");
    told
}

pub fn standing_clock() -> Scenario {
    let about = "A server whose clock is behind takes over while store time stands still: its nonces are in doubt too.";
    let mut told = Scenario::of("standing-clock", about, &["a"]);
    let fence = told.synced("a", 7);
    told.ask(release("a", &fence, "unused"));
    told.wall -= SECOND;
    told.incarnation = "second";
    let quiet = told.ask(these(&["a"]));
    assert_eq!(quiet["reply"], "refused", "{quiet}");
    // The second loss is told apart from the first by one microsecond.
    told.pass(30).ask(these(&["a"]));
    told.wall += 1;
    told.lease("a");
    told
}

pub fn known_loss() -> Scenario {
    let mut told = Scenario::of(
        "known-loss",
        "A server takes over that has not heard of the last grants. Who has seen more of them than whoever told of that tells of the \
         same loss.",
        &["a", "b"],
    );
    let fence = told.lease("a");
    told.incarnation = "second";
    told.pass(2).send(json!({ "seen": fence, "requests": [these(&["b"])] }));
    for forgotten in [START + SECOND, START + SECOND + 1] {
        let quiet = told.pass(10).send(json!({ "seen": forgotten.to_string(), "requests": [these(&["b"])] }));
        assert_eq!(quiet["replies"][0]["earliest"], json!((START + 32 * SECOND).to_string()), "{quiet}");
    }
    told.pass(10).lease("b");
    // What was granted since, and is not known, was lost since.
    told.send(json!({ "seen": (told.wall + 1).to_string(), "requests": [these(&["a"])] }));
    told
}

pub fn young_server() -> Scenario {
    let mut told = Scenario::new(
        "young-server",
        "A pool that is not there may have been lost, if the server has just started.",
    );
    told.up_since = START - 10 * SECOND;
    told.ask(define(&["a"]));
    told.ask(these(&["a"]));
    told.look(&["a"]);
    told.pass(19).ask(these(&["a"]));
    told.pass(1).ask(these(&["a"]));
    told
}

pub fn pool_begun_anew() -> Scenario {
    let mut told = Scenario::of(
        "pool-begun-anew",
        "Somebody who has seen nothing of a pool that was lost defines it anew. A fence from before then tells of the          loss: nothing is granted until what was forgotten has ended, and nonces are in doubt.",
        &["a", "b"],
    );
    // What processes of the lost pool have seen.
    let old = (START - 10 * SECOND).to_string();
    let with_old = |request| json!({ "seen": old, "requests": [request] });
    // Nobody can know of it before one of them asks.
    let known = told.synced("a", 7);
    told.ask(release("a", &known, "unused"));
    let held = told.pass(1).synced("b", 3);
    told.send(with_old(renew("a", &json!(old))));
    told.look(&["a", "b"]);
    told.ask(these(&["a"]));
    told.ask(renew("b", &held));
    told.ask(used("b", &held, 4));
    // Quiet until the birth and the longest time to live; who says so again changes nothing.
    told.pass(29).send(with_old(these(&["a"])));
    told.wall += 1;
    told.send(with_old(these(&["a"])));
    let fence = told.lease("b");
    told.ask(resync("b", &fence, 5));
    told.ask(release("b", &fence, "unused"));
    told.send(with_old(these(&["b"])));
    // The pool's own first fence is no such one, nor is one that a client has shown it.
    told.pass(60).send(json!({ "seen": known, "requests": [these(&["a"])] }));
    told
}

pub fn pool_begun_anew_long_ago() -> Scenario {
    let mut told = Scenario::of(
        "pool-begun-anew-long-ago",
        "As in pool-begun-anew; what was forgotten has ended when somebody tells of it, so that only nonces are in doubt.",
        &["a", "b"],
    );
    for slot in ["a", "b"] {
        let fence = told.synced(slot, 7);
        told.ask(used(slot, &fence, 8));
    }
    told.pass(3600).send(json!({ "seen": START.to_string(), "requests": [these(&["a"])] }));
    told.send(json!({ "seen": (START - 1).to_string(), "requests": [these(&["b"])] }));
    told.look(&["a", "b"]);
    told
}

pub fn lost_pool() -> Scenario {
    let mut told =
        Scenario::new("lost-pool", "A pool that is not there was lost, if a client has seen a fence of it.");
    let seen = (START + 5 * SECOND).to_string();
    told.send(json!({ "seen": seen, "requests": [define(&["a"]), these(&["a"])] }));
    told.send(json!({ "seen": seen, "requests": [renew("a", &json!(seen))] }));
    told.pass(30).lease("a");
    told
}
