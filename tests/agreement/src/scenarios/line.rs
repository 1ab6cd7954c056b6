//! Who waits, and in what order they are served.

use serde_json::{Value, json};

use super::scenario::{Scenario, TTL, change, release};

fn ticket(holder: u64, priority: i64) -> Value {
    json!({
        "request": "claim", "any": "random", "ttl": TTL, "wait": true,
        "holder": holder.to_string(), "priority": priority.to_string(),
    })
}

fn withdraw(holder: u64) -> Value {
    json!({ "request": "withdraw", "holder": holder.to_string() })
}

/// The fence of the first grant in an answer.
fn fence(answer: &Value) -> Value {
    answer["grants"][0]["fence"].clone()
}

pub fn line() -> Scenario {
    let mut told = Scenario::of(
        "line",
        "What becomes ready is offered by priority, then by arrival; what nobody fetches passes on.",
        &["a"],
    );
    let held = told.lease("a");
    for (holder, priority) in [(1, 0), (2, -32_767), (3, 5), (4, 0), (5, 32_767)] {
        told.ask(ticket(holder, priority));
    }
    told.ask(release("a", &held, "unused"));
    told.look(&["a"]);
    told.send(json!({ "requests": [ticket(9, 32_767), ticket(3, 5), ticket(1, 0), ticket(4, 0)] }));
    let first = told.ask(ticket(5, 0));
    told.send(json!({ "requests": [withdraw(9), release("a", &fence(&first), "unused")] }));
    // The one that is called does not come.
    told.pass(2).look(&["a"]);
    let next = told.ask(ticket(1, 0));
    told.send(json!({ "requests": [release("a", &fence(&next), "unused"), ticket(4, 0)] }));
    told.ask(withdraw(4));
    told.ask(withdraw(4));
    told.pass(10).look(&["a"]);
    told.ask(ticket(6, 0));
    let aged = |holder: u64, priority: i64| {
        let mut claim = ticket(holder, priority);
        claim["ageing"] = json!("2000000");
        claim
    };
    told.send(json!({ "requests": [aged(7, 0)] }));
    told.pass(3).send(json!({ "requests": [aged(8, 1), ticket(7, 0)] }));
    told.pass(1).send(json!({ "requests": [aged(9, 3)] }));
    told.ask(change("a", "break"));
    told.ask(withdraw(9));
    told.look(&["a"]);
    told
}

pub fn lines_of_names() -> Scenario {
    let named = |holder: u64, names: &[&str]| {
        json!({
            "request": "claim", "named": names, "ttl": TTL, "wait": true, "holder": holder.to_string(),
        })
    };
    let mut told = Scenario::of(
        "lines-of-names",
        "Each name has its line; who wants several is served when it is first in all of them and all are free.",
        &[],
    );
    let a = told.ask(named(1, &["a"]));
    let b = told.ask(named(2, &["b"]));
    told.ask(named(3, &["b", "a"]));
    told.ask(named(4, &["a", "b"]));
    told.ask(named(5, &["a"]));
    told.ask(release("a", &fence(&a), "unused"));
    told.ask(named(5, &["a"]));
    told.ask(release("b", &fence(&b), "unused"));
    told.look(&["a", "b"]);
    let both = told.ask(named(3, &["b", "a"]));
    let back = [("b", 0), ("a", 1)].map(|(name, at)| release(name, &both["grants"][at]["fence"], "unused"));
    told.send(json!({ "requests": back }));
    told.ask(withdraw(4));
    told.ask(named(5, &["a"]));
    told.pass(31).look(&["a", "b"]);
    told
}
