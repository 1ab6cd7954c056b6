//! Who waits, and in what order they are served.

use leasehold::slots::TO_THE_END;
use serde_json::{Value, json};

use super::scenario::{Scenario, TTL, change, define, release};

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
    // Who wants one more than there are without what leaves has no place in line, until that stays after all.
    told.pass(40).ask(define(&["b"]));
    let both = |holder: u64| {
        let mut claim = ticket(holder, 0);
        (claim["least"], claim["most"]) = (json!("2"), json!("2"));
        claim
    };
    let (first, second) = (told.lease("a"), told.lease("b"));
    told.send(json!({ "requests": [both(10), change("a", "drain"), both(11), ticket(12, 0)] }));
    told.ask(release("b", &second, "unused"));
    let second = fence(&told.ask(ticket(12, 0)));
    told.send(
        json!({ "requests": [change("a", "remove"), both(13), define(&["a"]), both(14), ticket(15, 0)] }),
    );
    told.ask(release("b", &second, "unused"));
    told.ask(release("a", &first, "unused"));
    told
}

pub fn enough_for_all() -> Scenario {
    let mut told = Scenario::of(
        "enough-for-all",
        "A claim behind others is granted once there is enough for them too; what is theirs is offered to them first.",
        &["a", "b", "c", "d"],
    );
    let wants = |holder: u64, count: u64| {
        let mut claim = ticket(holder, 0);
        (claim["least"], claim["most"]) = (json!(count.to_string()), json!(count.to_string()));
        claim
    };
    let held = ["a", "b", "c", "d"].map(|slot| (slot, told.lease(slot)));
    told.send(json!({ "requests": [wants(1, 1), wants(2, 2)] }));
    let mut requests: Vec<_> = held.iter().map(|(slot, fence)| release(slot, fence, "unused")).collect();
    requests.extend([wants(3, 1), wants(4, 2), wants(5, 1), wants(2, 2), wants(1, 1)]);
    told.send(json!({ "requests": requests }));
    told.look(&["a", "b", "c", "d"]);
    // Who wants more than there are for now is let go only where something is ready.
    told.pass(60).look(&["a", "b", "c", "d"]);
    let held = ["a", "b", "c", "d"].map(|slot| (slot, told.lease(slot)));
    told.send(json!({ "requests": [wants(11, 1), wants(12, 4), change("d", "disable")] }));
    told.send(json!({ "requests": [release("a", &held[0].1, "unused"), wants(13, 1)] }));
    told.ask(change("d", "enable"));
    told.ask(release("b", &held[1].1, "unused"));
    told
}

pub fn silent_process() -> Scenario {
    let mate = |process: u128, number: u128| (process << 64 | number).to_string();
    let waits = |holder: &str, names: &[&str]| {
        let mut claim = json!({ "request": "claim", "ttl": TTL, "wait": true, "holder": holder });
        let wants = if names.is_empty() { ("any", json!("random")) } else { ("named", json!(names)) };
        claim[wants.0] = wants.1;
        claim
    };
    let mut told = Scenario::of(
        "silent-process",
        "Of a process that does not come for what it is offered nobody is offered it who has not asked since.",
        &["a"],
    );
    let held = told.lease("a");
    let (gone, here) = (|number| mate(7, number), |number| mate(8, number));
    told.ask(waits(&gone(1), &[]));
    told.ask(waits(&gone(2), &["a"]));
    told.ask(waits(&gone(3), &["a", "b"]));
    told.ask(waits(&gone(4), &[]));
    told.ask(waits(&here(1), &["a"]));
    // This one does not wait for what was offered.
    let other = told.ask(waits(&here(2), &["c"]));
    told.ask(waits(&gone(5), &["c"]));
    told.pass(1).ask(release("a", &held, "unused"));
    // It was silent until then, but lives.
    told.ask(waits(&gone(4), &[]));
    told.pass(1).look(&["a"]);
    let next = told.ask(waits(&here(1), &["a"]));
    told.ask(release("a", &fence(&next), "unused"));
    let next = told.ask(waits(&gone(4), &[]));
    // Who was dropped and is there all the same stands where it stood.
    told.ask(waits(&here(3), &["a"]));
    let mut back = waits(&gone(2), &["a"]);
    back["waited"] = json!("1000000");
    told.ask(back.clone());
    told.ask(release("a", &fence(&next), "unused"));
    told.ask(back);
    told.ask(release("c", &fence(&other), "unused"));
    told.ask(waits(&gone(5), &["c"]));
    // Of who does not say what process it is of nobody else is held to be gone.
    told.pass(40).look(&["a", "c"]);
    let held = told.lease("a");
    told.ask(ticket(1, 0));
    told.ask(ticket(2, 0));
    told.pass(1).ask(release("a", &held, "unused"));
    told.pass(1).look(&["a"]);
    told.ask(ticket(2, 0));
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

pub fn stealing() -> Scenario {
    let thief_of = |names: &[&str], holder: u64, priority: i64, patience: &str| {
        json!({
            "request": "claim", "named": names, "ttl": TTL, "wait": true, "holder": holder.to_string(),
            "priority": priority.to_string(), "steal": patience,
        })
    };
    let thief = |holder: u64, priority: i64, patience: &str| thief_of(&["a"], holder, priority, patience);
    let any = |holder: u64, priority: i64| {
        let mut claim = ticket(holder, priority);
        claim["steal"] = json!(TO_THE_END.to_string());
        claim
    };
    let renew =
        |slot: &str, fence: &Value| json!({ "request": "renew", "slot": slot, "fence": fence, "ttl": TTL });
    let safe = TO_THE_END.to_string();
    let mut told = Scenario::of(
        "stealing",
        "Who steals claims what holders of lower priority have: they are told, and renewed no more while it waits.",
        &["b", "c"],
    );
    let low = fence(&told.ask(thief(1, -1, &safe)));
    told.ask(thief(2, -1, &safe));
    told.ask(thief(3, 0, &safe));
    told.ask(renew("a", &low));
    // A higher one takes its place, and gives it back.
    told.send(json!({ "requests": [thief(4, 7, &safe), renew("a", &low), thief(3, 0, &safe)] }));
    told.ask(withdraw(4));
    told.pass(1).ask(renew("a", &low));
    told.ask(thief(3, 0, &safe));
    told.ask(release("a", &low, "unused"));
    // Whoever is offered a slot is told of the one behind it when it comes.
    told.ask(thief(5, 9, &safe));
    let next = fence(&told.ask(thief(3, 0, &safe)));
    told.send(json!({ "requests": [thief(5, 9, &safe), withdraw(5), withdraw(2), renew("a", &next)] }));
    // One that does not wait for the end: the lease is as it was if it goes, and ends if it does not.
    told.ask(thief(6, 1, "3000000"));
    told.look(&["a"]);
    told.pass(1).ask(withdraw(6));
    told.pass(3).look(&["a"]);
    told.ask(thief(7, 1, "3000000"));
    told.pass(3).ask(renew("a", &next));
    told.ask(thief(7, 1, "3000000"));
    // Any slot: that of the lowest.
    let (one, two) = (told.ask(any(11, 3)), told.ask(any(12, 2)));
    told.send(json!({ "requests": [any(13, 3), any(14, 2)] }));
    told.look(&["b", "c"]);
    for answer in [one, two] {
        let grant = &answer["grants"][0];
        told.ask(renew(grant["slot"].as_str().expect("a slot"), &grant["fence"]));
    }
    // Of several all or none: who is replaced for one of them lets go of the others, and claims all when it can.
    let [red, green] = [("red", 21), ("green", 22)]
        .map(|(name, holder)| (name, fence(&told.ask(thief_of(&[name], holder, -1, &safe)))));
    let both = || thief_of(&["red", "green"], 23, 0, "3000000");
    told.send(json!({ "requests": [both(), renew(red.0, &red.1)] }));
    told.send(json!({ "requests": [thief_of(&["green"], 24, 1, &safe), renew(red.0, &red.1), both()] }));
    told.pass(1).ask(renew(green.0, &green.1));
    told.send(json!({ "requests": [withdraw(24), both(), renew(red.0, &red.1), renew(green.0, &green.1)] }));
    // And takes another where it can.
    told.pass(40).ask(define(&["d"]));
    let held = [31, 32, 33].map(|holder| told.ask(any(holder, 1))["grants"][0].clone());
    let mut two = any(34, 2);
    (two["least"], two["most"]) = (json!("2"), json!("2"));
    told.ask(two);
    told.send(json!({ "requests": [thief_of(&["b"], 35, 3, &safe), thief_of(&["c"], 36, 3, &safe)] }));
    for grant in held {
        told.ask(renew(grant["slot"].as_str().expect("a slot"), &grant["fence"]));
    }
    // What leaves is of no use to who takes any, who claims another.
    told.pass(40).ask(define(&["b", "c", "d"]));
    let held = [41, 42, 43].map(|holder| told.ask(any(holder, 1))["grants"][0].clone());
    let [first, ..] = held.each_ref().map(|grant| grant["slot"].as_str().expect("a slot"));
    let drain = json!({ "request": "change", "slot": first, "change": "drain" });
    told.send(json!({ "requests": [any(44, 2), renew(first, &held[0]["fence"]), drain, renew(first, &held[0]["fence"])] }));
    told.ask(any(44, 2));
    for grant in &held {
        told.ask(renew(grant["slot"].as_str().expect("a slot"), &grant["fence"]));
    }
    // Who wants some of several claims as many as it lacks, of the lowest among them, and none if they are too few.
    let some = |holder: u64, count: u64, names: &[&str]| {
        let mut claim = thief_of(names, holder, 5, &safe);
        claim["among"] = claim["named"].take();
        claim["least"] = json!(count.to_string());
        claim.as_object_mut().expect("a claim").remove("named");
        claim
    };
    told.pass(40).ask(define(&["b", "c", "d"]));
    told.ask(change("b", "enable"));
    told.ask(change("c", "enable"));
    told.ask(change("d", "enable"));
    let held = [("b", 0), ("c", 2), ("d", 1)].map(|(slot, priority)| {
        let mut claim = some(50, 1, &[slot]);
        claim["priority"] = json!(priority.to_string());
        (slot, fence(&told.ask(claim)))
    });
    told.ask(some(51, 1, &["c", "d"]));
    told.ask(some(52, 2, &["b", "d"]));
    told.ask(some(53, 2, &["c", "b"]));
    for (slot, fence) in &held {
        told.ask(renew(slot, fence));
    }
    told.send(json!({ "requests": [release("b", &held[0].1, "unused"), some(53, 2, &["c", "b"])] }));
    told.send(
        json!({ "requests": [change("d", "drain"), renew("d", &held[2].1), some(51, 1, &["c", "d"])] }),
    );
    told.ask(withdraw(51));
    told.look(&["b", "c", "d"]);
    told.ask(release("c", &held[1].1, "unused"));
    told.ask(some(53, 2, &["c", "b"]));
    // One that is served otherwise leaves what it chose to who waits for it next.
    told.pass(40).ask(define(&["b", "c"]));
    let of = |priority: i64, mut claim: Value| {
        claim["priority"] = json!(priority.to_string());
        claim
    };
    told.ask(of(0, some(60, 1, &["b"])));
    let other = fence(&told.ask(of(4, some(61, 1, &["c"]))));
    told.ask(some(62, 1, &["b", "c"]));
    told.ask(of(3, some(63, 1, &["b"])));
    told.ask(release("c", &other, "unused"));
    // A free name for which another waits first is out of reach. As that one leaves, who steals looks again.
    let plain = |names: &[&str], holder: u64, priority: i64| {
        let mut claim = thief_of(names, holder, priority, &safe);
        claim.as_object_mut().expect("a claim").remove("steal");
        claim
    };
    let (thief, held) = (thief_of(&["free", "near"], 74, 5, &safe), plain(&["near"], 72, 0));
    told.pass(40).ask(plain(&["far"], 71, 9));
    let near = fence(&told.ask(held));
    told.ask(plain(&["free", "far"], 73, 9));
    told.send(json!({ "requests": [thief.clone(), renew("near", &near)] }));
    told.send(json!({ "requests": [withdraw(73), renew("near", &near)] }));
    // What is ended by force is what is held, and not what is kept for somebody.
    told.ask(change("near", "break"));
    told.ask(change("near", "break"));
    told.look(&["free", "near"]);
    told.ask(thief);
    // Whoever is first for several, with another between them, looks again after that one, which may have let go.
    told.pass(40).ask(plain(&["n1", "n2", "n3"], 80, 0));
    told.ask(plain(&["s"], 81, 0));
    let q = fence(&told.ask(plain(&["q"], 82, 0)));
    told.ask(plain(&["z"], 83, 10));
    told.ask(thief_of(&["n1", "n2", "n3", "z"], 84, 9, &safe));
    told.ask(thief_of(&["n2", "s", "q"], 85, 5, &safe));
    told.ask(thief_of(&["n1", "n3", "s"], 86, 5, &safe));
    told.send(
        json!({ "requests": [plain(&["q"], 87, 9), plain(&["q"], 88, 9), release("q", &q, "unused")] }),
    );
    told.ask(plain(&["q"], 87, 9));
    told.ask(withdraw(84));
    // Who needs fewer than it claimed lets go of the others.
    told.pass(40).ask(define(&["b", "c", "d"]));
    told.ask(change("d", "enable"));
    let held = [("b", 0), ("c", 1), ("d", 9)]
        .map(|(slot, priority)| (slot, fence(&told.ask(of(priority, some(90, 1, &[slot]))))));
    told.ask(some(91, 2, &["d", "c", "b"]));
    told.send(json!({ "requests": [release("d", &held[2].1, "unused"), some(91, 2, &["d", "c", "b"])] }));
    told.ask(some(91, 2, &["d", "c", "b"]));
    for (slot, fence) in &held[..2] {
        told.ask(renew(slot, fence));
    }
    // But not where others come before it for what is there.
    told.pass(40);
    let held = ["b", "c", "d"].map(|slot| (slot, fence(&told.ask(of(0, some(100, 1, &[slot]))))));
    let mut three = ticket(101, 6);
    three["least"] = json!("3");
    told.ask(three);
    told.ask(any(102, 5));
    for (slot, fence) in &held[1..] {
        told.ask(release(slot, fence, "unused"));
    }
    told.send(json!({ "requests": [any(102, 5), renew("b", &held[0].1)] }));
    told.ask(release("b", &held[0].1, "unused"));
    told
}
