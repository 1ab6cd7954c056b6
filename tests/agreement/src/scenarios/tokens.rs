//! What selections of tokens come to, and what strategies choose.

use leasehold::tokens::{Draw, Order, STRATEGIES, named};
use leasehold::{MILLISECOND, SECOND};
use serde_json::{Value as Json, json};

use super::purse::{Purse, ids};

fn ends(end: &Json, word: &str) {
    assert_eq!(end["reply"], word, "{end}");
}

/// Every verdict.
pub fn verdicts() -> Purse {
    let about = "every verdict, told at once and after waiting";
    let mut purse = Purse::of("verdicts", about, &[5, 3, 8, 2]);
    let none = purse.select(0, "first_fit_random", json!({}));
    ends(&purse.run(none), "selected");
    let short = purse.select(19, "first_fit_random", json!({}));
    ends(&purse.run(short), "insufficient");
    let some = purse.select(9, "fewest_inputs", json!({}));
    let end = purse.run(some);
    assert_eq!((&end["reply"], &end["change"]), (&"selected".into(), &"4".into()));
    // What this process has, it knows the end of.
    let locked = purse.select(18, "first_fit_random", json!({}));
    ends(&purse.run(locked), "locked");
    purse.hear(some, "abandoned", json!({}));
    for id in ["t0", "t1", "t2"] {
        purse.others.insert(id.to_owned(), purse.now + 5 * SECOND);
    }
    let locked = purse.select(8, "first_fit_random", json!({}));
    ends(&purse.run(locked), "locked");
    let waits = purse.wait(8, "best_fit", 10 * SECOND);
    ends(&purse.run(waits), "selected");
    purse.hear(waits, "abandoned", json!({}));
    purse.pass(10 * SECOND);
    let odd = purse.select(4, "exact", json!({}));
    ends(&purse.run(odd), "no_fit");
    let many = purse.select(18, "first_fit_random", json!({ "inputs": "3" }));
    ends(&purse.run(many), "no_fit");
    let often = purse.select(18, "first_fit_random", json!({ "attempts": "0" }));
    ends(&purse.run(often), "no_fit");
    purse.others.insert("t2".to_owned(), purse.now + 50 * SECOND);
    let deadline = (purse.now + 20 * SECOND).to_string();
    let faster = purse.select(18, "oldest_first", json!({ "rounds": "3", "deadline": deadline }));
    ends(&purse.run(faster), "contended");
    let late = purse.wait(18, "consolidate", 300 * MILLISECOND);
    ends(&purse.run(late), "locked");
    let late = purse.wait(18, "random_improve", SECOND);
    purse.pass(SECOND);
    ends(&purse.run(late), "timed_out");
    purse
}

/// Claims that others were faster with, that got no answer, and that were spent meanwhile.
pub fn contention() -> Purse {
    let about = "what others have is passed over, what got no answer is given back, and of two that stand in each other's way one wins";
    let mut purse = Purse::of("contention", about, &[3; 12]);
    for id in ["t1", "t4", "t5", "t9"] {
        purse.others.insert(id.to_owned(), purse.now + 2 * SECOND);
    }
    let first = purse.select(21, "first_fit_random", json!({}));
    ends(&purse.run(first), "selected");
    let second = purse.wait(9, "smallest_sufficient", 5 * SECOND);
    ends(&purse.run(second), "selected");
    purse.hear(first, "abandoned", json!({}));
    purse.hear(second, "abandoned", json!({}));
    purse.step("count", json!({}));
    let silent = purse.select(6, "first_fit_random", json!({}));
    let needs = purse.poll(silent);
    ends(&needs, "claim");
    purse.hear(silent, "unanswered", json!({}));
    ends(&purse.run(silent), "selected");
    purse.hear(silent, "abandoned", json!({}));
    // Two want what there is but once.
    let rivals =
        [purse.wait(24, "first_fit_random", 30 * SECOND), purse.wait(24, "first_fit_random", SECOND)];
    let end = purse.race(&rivals);
    assert_eq!(end.iter().filter(|end| end["reply"] == "selected").count(), 1, "{end:?}");
    purse.step("count", json!({}));
    // Who is called has not used up its one round.
    purse.hear(rivals[0], "abandoned", json!({}));
    purse.hear(rivals[1], "abandoned", json!({}));
    purse.pass(5 * SECOND);
    purse.others.insert("t6".to_owned(), purse.now + 5 * SECOND);
    let deadline = (purse.now + 20 * SECOND).to_string();
    let called = purse.select(36, "fewest_inputs", json!({ "rounds": "1", "deadline": deadline }));
    for _ in 0..3 {
        let mut needs = purse.poll(called);
        while needs["reply"] != "pause" {
            purse.answer(called, &needs);
            needs = purse.poll(called);
        }
        purse.hear(called, "called", json!({}));
    }
    ends(&purse.run(called), "contended");
    purse
}

/// Pages, what the source tells, and how old that may be.
pub fn sources() -> Purse {
    let about = "walks through pages, what the source tells of, what is spent, and what it lists no more";
    let mut purse = Purse::of("sources", about, &[4; 7]);
    purse.limit = 3;
    let one = purse.select(4, "first_fit_random", json!({}));
    let end = purse.run(one);
    ends(&end, "selected");
    let most = purse.select(28, "fewest_inputs", json!({}));
    ends(&purse.run(most), "locked");
    // Of what it has, one is spent.
    let held = ids(&purse.hear(one, "given_back", json!({})));
    assert!(held.is_empty());
    purse.source.remove(2);
    purse.source.push(("new é{}:%~".to_owned(), "9".to_owned()));
    purse.pass(31 * SECOND);
    purse.step("count", json!({}));
    let later = purse.select(33, "fewest_inputs", json!({ "verify": true }));
    ends(&purse.run(later), "selected");
    let until = (purse.now + 5 * SECOND).to_string();
    purse.step("spent", json!({ "tokens": ["t0", "t1"], "until": until }));
    purse.hear(later, "abandoned", json!({}));
    purse.step("count", json!({}));
    purse.step("live", json!({ "live": true }));
    purse.step("added", json!({ "token": { "id": "", "amount": "70" } }));
    purse.step("removed", json!({ "id": "t3" }));
    purse.source.push((String::new(), "70".to_owned()));
    purse.pass(100 * SECOND);
    let told = purse.select(70, "best_fit", json!({}));
    ends(&purse.run(told), "selected");
    purse.step("put_back", json!({ "tokens": [""] }));
    purse.step("live", json!({ "live": false }));
    purse.source.pop();
    let gap = purse.select(70, "best_fit", json!({}));
    ends(&purse.run(gap), "insufficient");
    purse.step("count", json!({}));
    // What the source said is spent no late page brings back, nor one that is under way; what it adds again is there.
    for id in ["t4", "unknown"] {
        purse.step("removed", json!({ "id": id }));
    }
    purse.step("added", json!({ "token": { "id": "told", "amount": "3" } }));
    for pass in [SECOND, 28 * SECOND, SECOND] {
        purse.pass(pass);
        let all = purse.select(99, "first_fit_random", json!({}));
        ends(&purse.run(all), "insufficient");
        purse.step("count", json!({}));
    }
    purse.step("removed", json!({ "id": "t5" }));
    purse.step("added", json!({ "token": { "id": "t5", "amount": "4" } }));
    purse.step("count", json!({}));
    // What was listed is gone as it is verified.
    let gone = purse.select(9, "best_fit", json!({ "verify": true }));
    let needs = purse.poll(gone);
    let listed = purse.source.pop();
    ends(&needs, "claim");
    let granted: Vec<Json> =
        ids(&needs).iter().map(|id| json!({ "id": id, "until": purse.now.to_string() })).collect();
    purse.hear(gone, "claimed", json!({ "granted": granted }));
    ends(&purse.run(gone), "selected");
    assert!(listed.is_some());
    purse
}

/// Each process walks through a wallet in an order of its own, the same in every language.
pub fn walks() -> Purse {
    let about = "in which order processes of four seeds walk through 150 tokens, and where they go when they meet others";
    let mut purse = Purse::of("walks", about, &[1; 150]);
    for seed in ["1", "2", "18446744073709551615", "77"] {
        purse.step("begin", json!({ "seed": seed, "max_age": "30000000" }));
        purse.others.clear();
        for round in 0..4 {
            let call = purse.select(13, "first_fit_random", json!({}));
            ends(&purse.run(call), "selected");
            let held = purse.poll(call);
            ends(&held, "selected");
            if round == 1 {
                for at in (0..150).step_by(3) {
                    purse.others.insert(format!("t{at}"), purse.now + 60 * SECOND);
                }
            }
        }
    }
    purse
}

/// Amounts that no double and no 128 bits hold.
pub fn amounts() -> Purse {
    let about = "amounts near 2^256, and sums above";
    let mut purse = Purse::of("amounts", about, &[]);
    let top = "115792089237316195423570985008687907853269984665640564039457584007913129639935";
    let half = "57896044618658097711785492504343953926634992332820282019728792003956564819968";
    for (id, amount) in [("top", top), ("half", half), ("other half", half), ("one", "1")] {
        purse.source.push((id.to_owned(), amount.to_owned()));
    }
    for strategy in STRATEGIES {
        for target in [top, half, "2"] {
            let call = purse.select(target, strategy, json!({}));
            purse.run(call);
            purse.hear(call, "abandoned", json!({}));
        }
    }
    purse.step("count", json!({}));
    purse
}

/// What every strategy chooses.
pub fn strategies() -> Purse {
    let about = "what every strategy chooses of wallets of many kinds, by seed and bounds";
    let mut purse = Purse::of("strategies", about, &[]);
    let mut draw = Draw::new(9);
    for strategy in STRATEGIES {
        let order = named(strategy).expect("a strategy").order();
        for (count, worth) in [(0, 9), (1, 9), (6, 30), (25, 12), (40, 1_000_000_007), (60, 4)] {
            let mut offered: Vec<u64> = (0..count).map(|_| 1 + draw.below(worth)).collect();
            offered.sort_unstable();
            match order {
                Order::Largest | Order::Around | Order::Ends => offered.reverse(),
                Order::Spread | Order::Oldest => draw.shuffle(&mut offered),
            }
            let sum: u64 = offered.iter().sum();
            for (target, most) in [(sum / 2, 1_000), (sum / 5 + 1, 4), (sum, 1_000), (sum + 1, 1_000)] {
                let offered: Vec<String> = offered.iter().map(u64::to_string).collect();
                purse.step(
                    "choose",
                    json!({
                        "strategy": strategy, "offered": offered, "target": target.to_string(),
                        "most": most.to_string(), "seed": draw.bits().to_string(),
                    }),
                );
            }
        }
    }
    purse
}
