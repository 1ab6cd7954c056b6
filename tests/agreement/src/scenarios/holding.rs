//! Claiming, holding and losing leases.

use leasehold::slots::SWEEP;
use serde_json::json;

use super::scenario::{Scenario, TTL, any, change, define, release, renew, resync, these, used};

pub fn leases() -> Scenario {
    let mut told =
        Scenario::of("leases", "A lease is claimed, renewed, given back, runs out; its fences rise.", &["a"]);
    let first = told.lease("a");
    told.ask(these(&["a"]));
    told.pass(10).ask(renew("a", &first));
    told.ask(json!({ "request": "renew", "slot": "a", "fence": first, "ttl": "1000000" }));
    told.ask(release("a", &first, "unused"));
    let second = told.lease("a");
    told.look(&["a"]);
    told.pass(30).ask(renew("a", &second));
    let third = told.lease("a");
    let cooling = json!({
        "request": "release", "slot": "a", "fence": third, "outcome": "unused", "cooldown": "5000000",
    });
    told.ask(cooling);
    told.ask(these(&["a"]));
    told.look(&["a"]);
    told.pass(5).lease("a");
    told
}

pub fn losses() -> Scenario {
    let mut told = Scenario::of(
        "losses",
        "Every way in which a lease is lost; a late holder changes nothing.",
        &["a", "b"],
    );
    let everything = |told: &mut Scenario, fence: &serde_json::Value| {
        told.send(json!({ "requests": [
            renew("a", fence), resync("a", fence, 99), used("a", fence, 99), release("a", fence, "unsettled"),
        ] }));
    };
    let ended = told.synced("a", 7);
    told.ask(used("a", &ended, 8));
    everything(&mut told, &ended);
    let taken = told.lease("a");
    everything(&mut told, &ended);
    told.pass(30);
    everything(&mut told, &taken);
    let broken = told.lease("a");
    told.ask(change("a", "break"));
    everything(&mut told, &broken);
    everything(&mut told, &json!("9007199254740991"));
    told.ask(change("a", "remove"));
    everything(&mut told, &broken);
    told.ask(define(&["a"]));
    everything(&mut told, &broken);
    told.look(&["a"]);
    told
}

pub fn names() -> Scenario {
    let named =
        |names: &[&str], wait: bool| json!({ "request": "claim", "named": names, "ttl": TTL, "wait": wait });
    let mut told = Scenario::of(
        "names",
        "Names that nobody defined are made by the claim and forgotten with the lease; several together or none.",
        &["relayer"],
    );
    let first = told.ask(named(&["account:13", "relayer", "b", "b"], false));
    told.ask(named(&["c", "b"], true));
    told.look(&["account:13", "relayer", "b", "c"]);
    let fence = |at: usize| first["grants"][at]["fence"].clone();
    let (account, relayer, b) = (fence(0), fence(1), fence(2));
    told.pass(10).ask(renew("b", &b));
    told.ask(release("account:13", &account, "unused"));
    told.ask(release("relayer", &relayer, "unused"));
    told.look(&["account:13", "relayer", "b"]);
    told.ask(release("account:13", &account, "unused"));
    told.ask(named(&["b"], true));
    told.pass(30).look(&["b"]);
    // A lock that is broken and kept for another is gone, and the store has forgotten nothing.
    let door = told.ask(named(&["door"], false))["grants"][0]["fence"].clone();
    let mut next = named(&["door"], true);
    next["holder"] = json!("9");
    told.ask(next);
    told.ask(change("door", "break"));
    told.ask(renew("door", &door));
    told.ask(json!({ "request": "withdraw", "holder": "9" }));
    let again = told.ask(named(&["b"], false))["grants"][0]["fence"].clone();
    told.ask(release("b", &b, "unused"));
    let resting = json!({
        "request": "release", "slot": "b", "fence": again, "outcome": "unused", "cooldown": "5000000",
    });
    told.ask(resting);
    told.ask(named(&["a", "b"], false));
    told.pass(5).ask(named(&["a", "b"], false));
    told.ask(define(&["a"]));
    told.pass(30).look(&["a", "b"]);
    // Of more than a sweep puts back, what is asked for by its name is put back beside them.
    let mut names: Vec<String> = (0..SWEEP).map(|at| format!("b{at:03}")).collect();
    names.extend(["door", "relayer", "window"].map(str::to_owned));
    told.ask(json!({ "request": "claim", "named": names, "ttl": TTL }));
    told.pass(31).send(json!({ "requests": [
        named(&["door"], false), these(&["relayer"]), named(&["door", "window"], false), named(&["window"], false),
    ] }));
    told
}

pub fn free_names() -> Scenario {
    let free = |names: &[&str], holder: &str, least: &str, most: &str| {
        json!({
            "request": "claim", "free": names, "least": least, "most": most, "holder": holder, "ttl": TTL,
            "asked": "1700000001000000",
        })
    };
    let mut told = Scenario::of(
        "free-names",
        "Of names as many as can be had, and when the first of the others may come free; a holder takes the place of its own lease.",
        &["relayer"],
    );
    told.ask(free(&["t1", "t2", "t2", "relayer"], "1", "1", "9"));
    told.pass(1).ask(free(&["t1", "t3", "t4"], "2", "1", "9"));
    told.ask(free(&["t3", "t1"], "3", "1", "2"));
    told.ask(free(&["t1", "t5", "t6"], "3", "1", "1"));
    told.ask(free(&["t5", "t7", "t8"], "3", "3", "3"));
    told.ask(free(&["t5", "t7", "t8"], "4", "3", "3"));
    told.look(&["t1", "t2", "t3", "t5", "t6", "t7", "relayer"]);
    let again = told.pass(5).ask(free(&["t1", "t2", "t9", "t3"], "1", "2", "9"));
    let fence = |at: usize| again["grants"][at]["fence"].clone();
    let (first, second) = (fence(0), fence(1));
    told.ask(renew("t1", &json!("1700000000000000")));
    told.send(json!({ "requests": [
        release("t1", &first, "unused"), release("t2", &second, "unused"), free(&["t1", "t2"], "5", "2", "2"),
    ] }));
    told.pass(40).ask(free(&["t1", "t2", "t3"], "6", "1", "9"));
    told
}

pub fn choices() -> Scenario {
    let mut told = Scenario::new(
        "choices",
        "Seeded draws: uniform, by weight, least recent; several at once; named ones.",
    );
    let slots: Vec<_> = [("a", "1"), ("b", "2"), ("c", "7"), ("d", "64"), ("e", "255"), ("f", "1")]
        .map(|(slot, weight)| json!({ "slot": slot, "weight": weight }))
        .to_vec();
    told.ask(json!({ "request": "define", "slots": slots, "longest": TTL }));
    for strategy in ["random", "weighted", "least_recent"] {
        for seed in ["0", "1", "123456789", "2147483648", "4294967295"] {
            let answer =
                told.send(json!({ "seed": seed, "requests": [any(strategy, 1, 1), any(strategy, 1, 3)] }));
            let mut back = Vec::new();
            for reply in answer["replies"].as_array().expect("replies") {
                for grant in reply["grants"].as_array().expect("grants") {
                    back.push(release(grant["slot"].as_str().expect("a slot"), &grant["fence"], "unused"));
                }
            }
            told.send(json!({ "requests": back }));
        }
    }
    told.ask(these(&["f", "a"]));
    told.ask(json!({ "request": "claim", "among": ["a", "e", "b", "c"], "least": "2", "ttl": TTL }));
    told.ask(json!({ "request": "claim", "among": ["c", "c"], "least": "2", "ttl": TTL }));
    told.ask(any("random", 2, 9));
    told
}

pub fn refusals() -> Scenario {
    let mut told =
        Scenario::new("refusals", "Why a claim is refused, and from when on asking again can help.");
    told.ask(these(&["a"]));
    told.send(json!({ "requests": [these(&["a"]), define(&["a"]), { "request": "list" }] }));
    told.ask(define(&[]));
    told.ask(any("random", 1, 1));
    told.ask(these(&["a"]));
    told.ask(define(&["a", "b"]));
    told.ask(any("random", 3, 3));
    told.ask(these(&["a", "nobody"]));
    told.lease("a");
    told.pass(1).ask(any("least_recent", 2, 2));
    told.ask(these(&["b", "a"]));
    told.lease("b");
    told.ask(any("weighted", 1, 1));
    told.ask(these(&["b"]));
    told.ask(change("b", "break"));
    told.ask(change("b", "disable"));
    told.ask(these(&["b"]));
    // Who waits for what an administrator alone can give hears of it when one does.
    told.ask(json!({ "request": "claim", "any": "random", "least": "2", "ttl": TTL, "wait": true }));
    told.ask(change("b", "enable"));
    told
}

pub fn waiting() -> Scenario {
    let mut told =
        Scenario::of("waiting", "Those who wait are told how many slots became ready.", &["a", "b"]);
    let first = told.lease("a");
    told.ask(release("a", &first, "unused"));
    let (first, second) = (told.lease("a"), told.lease("b"));
    told.ask(json!({ "request": "claim", "any": "random", "ttl": TTL, "wait": true }));
    told.ask(release("a", &first, "unused"));
    told.send(json!({ "requests": [release("b", &second, "unused"), these(&["a"]), these(&["b"])] }));
    told.ask(json!({ "request": "claim", "any": "random", "least": "9", "ttl": TTL, "wait": true }));
    told.pass(29).ask(json!({ "request": "list" }));
    told.pass(1).ask(json!({ "request": "list" }));
    told
}
