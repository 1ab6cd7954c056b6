//! Who wants one of some slots, and waits for them among those who take any.

use serde_json::{Value, json};

use super::scenario::{Scenario, TTL, any, change, release};

fn one_of(holder: u64, slots: &[&str]) -> Value {
    json!({
        "request": "claim", "one_of": slots, "ttl": TTL, "wait": true, "holder": holder.to_string(),
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
    told
}
