//! Who wants one of some slots, and waits for them among those who take any.

use leasehold::slots::TO_THE_END;
use serde_json::{Value, json};

use super::scenario::{Scenario, TTL, any, change, release};

fn one_of(holder: u64, slots: &[&str]) -> Value {
    json!({
        "request": "claim", "among": slots, "ttl": TTL, "wait": true, "holder": holder.to_string(),
    })
}

fn several_of(holder: u64, count: u64, slots: &[&str]) -> Value {
    json!({
        "request": "claim", "among": slots, "least": count.to_string(), "ttl": TTL, "wait": true,
        "holder": holder.to_string(),
    })
}

fn queue(holder: u64, count: u64) -> Value {
    json!({
        "request": "claim", "any": "least_recent", "least": count.to_string(), "ttl": TTL, "wait": true,
        "holder": holder.to_string(),
    })
}

pub fn choosers() -> Scenario {
    let mut told = Scenario::of(
        "choosers",
        "Who wants one of some slots waits in the lines of all of them, and behind those who take any and came before.",
        &["a", "b", "c"],
    );
    let first = told.ask(one_of(1, &["b", "a"]));
    told.ask(release("b", &first["grants"][0]["fence"], "unused"));
    let [a, b, c] = ["a", "b", "c"].map(|slot| told.lease(slot));
    told.ask(one_of(1, &["a"]));
    told.ask(queue(2, 1));
    told.ask(one_of(3, &["a", "b", "a"]));
    told.send(json!({ "requests": [release("b", &b, "unused"), any("random", 1, 1)] }));
    told.send(json!({ "requests": [release("a", &a, "unused"), any("random", 1, 1)] }));
    let granted = told.ask(one_of(1, &["a"]));
    told.send(json!({ "requests": [queue(2, 1), release("a", &granted["grants"][0]["fence"], "unused")] }));
    told.look(&["a", "b", "c"]);
    // One that wants more stands before it, and lets it go on as it leaves.
    told.ask(one_of(3, &["a"]));
    told.ask(queue(4, 2));
    told.ask(one_of(5, &["c"]));
    told.ask(release("c", &c, "unused"));
    told.ask(one_of(5, &["c"]));
    told.ask(json!({ "request": "withdraw", "holder": "4" }));
    told.ask(change("c", "remove"));
    told.ask(one_of(5, &["c", "a"]));
    // Who has an offer is not looked at as somebody leaves: the next gets what it asked for first.
    told.pass(40);
    let [a, b] = ["a", "b"].map(|slot| told.lease(slot));
    told.ask(json!({ "request": "define", "slots": [{ "slot": "c" }], "longest": TTL }));
    let c = told.lease("c");
    told.ask(one_of(7, &["b", "c"]));
    told.ask(queue(8, 3));
    told.ask(one_of(9, &["a", "b"]));
    told.ask(release("c", &c, "unused"));
    told.send(json!({ "requests": [release("b", &b, "unused"), release("a", &a, "unused")] }));
    told.ask(json!({ "request": "withdraw", "holder": "8" }));
    told.look(&["a", "b", "c"]);
    told.pass(40).look(&["a", "b", "c"]);
    // One in doubt where there is no other.
    let [a, b] = ["a", "b"].map(|slot| told.synced(slot, 7));
    told.ask(one_of(10, &["a", "b"]));
    told.send(json!({ "requests": [release("a", &a, "unsettled"), release("b", &b, "unused")] }));
    told.look(&["a", "b"]);
    // Those whose line moves up are called one after the other, whatever names they share.
    told.pass(40);
    told.ask(json!({ "request": "define", "slots": [{ "slot": "d" }], "longest": TTL }));
    let [b, c, _] = ["b", "c", "d"].map(|slot| told.lease(slot));
    let a = told.synced("a", 7);
    told.ask(queue(11, 4));
    told.ask(one_of(12, &["a", "b"]));
    told.ask(one_of(13, &["b", "a"]));
    told.ask(one_of(14, &["c"]));
    told.send(json!({
        "requests": [release("a", &a, "unsettled"), release("b", &b, "unused"), release("c", &c, "unused")],
    }));
    told.ask(json!({ "request": "withdraw", "holder": "11" }));
    told.look(&["a", "b", "c"]);
    // Also where they stand behind another who takes any.
    told.pass(40);
    told.ask(json!({ "request": "define", "slots": [{ "slot": "e" }], "longest": TTL }));
    let [b, c, _, e] = ["b", "c", "d", "e"].map(|slot| told.lease(slot));
    let a = told.synced("a", 7);
    told.ask(queue(21, 5));
    told.ask(queue(22, 1));
    told.ask(one_of(23, &["a", "b"]));
    told.ask(one_of(24, &["b", "a"]));
    told.ask(one_of(25, &["c"]));
    told.send(json!({
        "requests": [
            release("a", &a, "unsettled"), release("e", &e, "unused"), release("b", &b, "unused"),
            release("c", &c, "unused"),
        ],
    }));
    told.ask(json!({ "request": "withdraw", "holder": "21" }));
    told.look(&["a", "b", "c", "e"]);
    told
}

pub fn choosers_of_several() -> Scenario {
    let mut told = Scenario::of(
        "choosers-of-several",
        "Who wants several of some slots keeps what is there in its turn until that is enough, for a second at a time.",
        &["a", "b", "c"],
    );
    let [a, b, c] = ["a", "b", "c"].map(|slot| told.lease(slot));
    told.ask(several_of(1, 2, &["c", "a", "b"]));
    told.ask(several_of(2, 2, &["b", "c"]));
    told.ask(queue(3, 1));
    told.send(json!({ "requests": [release("b", &b, "unused"), any("random", 1, 1)] }));
    told.look(&["a", "b", "c"]);
    told.send(json!({ "requests": [release("c", &c, "unused"), any("random", 1, 1)] }));
    told.look(&["a", "b", "c"]);
    let first = told.ask(several_of(1, 2, &["c", "a", "b"]));
    told.ask(release("c", &first["grants"][1]["fence"], "unused"));
    told.look(&["c"]);
    // What is kept for so long is kept anew, or goes to who comes before by then.
    told.pass(1);
    told.look(&["c"]);
    told.ask(json!({
        "request": "claim", "among": ["c"], "ttl": TTL, "wait": true, "holder": "4", "priority": "1",
    }));
    told.pass(1);
    told.look(&["c"]);
    told.ask(json!({ "request": "withdraw", "holder": "4" }));
    told.look(&["c"]);
    // One that cannot be had for now: it keeps nothing, and has no ticket when it asks again.
    told.ask(change("b", "disable"));
    told.pass(1);
    told.look(&["c"]);
    told.ask(several_of(2, 2, &["b", "c"]));
    told.ask(several_of(5, 2, &["a", "b"]));
    told.ask(change("b", "enable"));
    told.ask(several_of(5, 2, &["a", "b"]));
    told.ask(release("a", &a, "unused"));
    told.look(&["a", "b", "c"]);
    told.ask(json!({ "request": "withdraw", "holder": "5" }));
    told.look(&["a", "b", "c"]);
    // Without names there is no line to wait in.
    told.ask(several_of(6, 1, &[]));
    told.ask(several_of(6, 2, &[]));
    told.pass(40).look(&["a", "b", "c"]);
    // What is kept is claimed, as it is granted, by who stands behind its holder and steals.
    let [a, b] = ["a", "b"].map(|slot| told.lease(slot));
    let mut early = several_of(7, 2, &["a", "b"]);
    early["waited"] = json!("1000000");
    told.ask(early);
    told.ask(release("a", &a, "unused"));
    told.ask(json!({
        "request": "claim", "named": ["a"], "ttl": TTL, "wait": true, "holder": "8", "priority": "1", "ageing": "1",
        "steal": TO_THE_END.to_string(),
    }));
    let answer =
        told.send(json!({ "requests": [release("b", &b, "unused"), several_of(7, 2, &["a", "b"])] }));
    assert_eq!(answer["calls"]["claimed"].as_array().map(Vec::len), Some(1), "{answer}");
    told
}
