//! Limits together and in time: groups, reservations, rules that change, clocks, lanes.

use leasehold::limits::{Amount, MAX_AMOUNT, MAX_BACKLOG, MAX_PERIOD, MAX_RESERVATION};
use leasehold::{Micros, SECOND};
use serde_json::{Value as Json, json};

use super::scenario::START;
use super::tally::{Tally, budget, charge, gcra, request, reserve, rule, settle, timeless};

const HOUR: Micros = 3_600 * SECOND;
const DAY: Micros = 24 * HOUR;

/// Every rule that time heals, of as much in a period.
fn rates(max: u64, period: Micros) -> [Json; 3] {
    [rule("refill", max, period), gcra(max, period, max), rule("rolling", max, period)]
}

pub fn groups() -> Tally {
    let mut told = Tally::new(
        "groups",
        "Limits that are charged as one, or not at all: of those that refuse, the one binds that does so longest, of those \
         that allow, the one of which least remains.",
    );
    let (key, account) = (rule("refill", 5, HOUR), rule("rolling", 100, HOUR));
    let gas = timeless("lifetime", "30000000000000000000000000000000000000000");
    let day = budget("1000000000000000000", DAY, 0);
    let open = timeless("in_flight", 2);
    let all = |cost: u64| {
        [
            charge("key", &key, cost),
            charge("account", &account, cost),
            charge("gas", &gas, "20000000000000000000000000000000000000000"),
            charge("day", &day, cost * 1_000_000_000),
        ]
    };
    assert_eq!(told.ask(request("take", all(2)))["binding"], "0");
    let refused = told.ask(request("take", all(2)));
    assert_eq!((&refused["reply"], &refused["binding"]), (&json!("refused"), &json!("2")), "for ever");
    let pair = |cost: u64| [charge("account", &account, cost), charge("key", &key, cost)];
    assert_eq!(told.ask(request("take", pair(4)))["binding"], "1");
    told.ask(request("take", pair(3)));
    told.ask(request("peek", pair(1)));
    told.ask(request("take", [charge("day", &day, 1), charge("account", &account, 1)]));
    told.ask(request(
        "take",
        [charge("gas", &gas, 1), charge("account", &account, 1), charge("open", &open, 0)],
    ));
    // All that refuse do so for as long: the first of them binds.
    told.ask(request(
        "take",
        [charge("key", &key, 1), charge("twin", &key, 6), charge("gas", &gas, "9".repeat(60))],
    ));
    told.ask(request("refund", all(1)));
    let crowd: Vec<Json> =
        (0..64).map(|at| charge(&format!("limit:{at}"), &rule("refill", 64 + at, SECOND), at)).collect();
    told.send(json!({ "requests": [{ "request": "take", "charges": crowd }] }));
    // A budget hears by what calendar it is asked also where another limit refuses.
    let [hourly, none] = [budget(10, HOUR, 0), timeless("each", 0)];
    told.allow(&hourly, 7);
    let refused =
        told.ask(request("take", [charge("a", &budget(100, DAY, 0), 20), charge("none", &none, 1)]));
    assert_eq!((&refused["reply"], &refused["binding"]), (&json!("refused"), &json!("1")));
    told.allow(&hourly, 3);
    told.refuse(&hourly, 1);
    // Many requests in one envelope: each finds what those before it left, and the same once more is as good as any.
    let take = request("take", pair(1));
    told.pass(HOUR).send(json!({
        "requests": [take, take, request("peek", pair(4)), take, request("refund", pair(1)), take, take, take, take],
    }));
    told.send(json!({
        "requests": [
            reserve(1, SECOND, [charge("open", &open, 2)]), reserve(2, SECOND, [charge("open", &open, 1)]),
            settle("commit", 1, [charge("open", &open, 2)]), reserve(2, SECOND, [charge("open", &open, 1)]),
            request("reset", [charge("key", &key, 9)]), take,
        ],
    }));
    told
}

pub fn reservations() -> Tally {
    let mut told = Tally::new(
        "reservations",
        "What was reserved is ended once: committed, or given back as far as it still counts; unended, it stays charged.",
    );
    let (spend, open) = (rule("refill", 10, HOUR), timeless("in_flight", 2));
    let both = |cost: u64| [charge("spend", &spend, cost), charge("open", &open, 1)];
    for id in [1, u128::MAX] {
        assert_eq!(told.ask(reserve(id, 60 * SECOND, both(4)))["reply"], "allowed");
    }
    assert_eq!(told.ask(reserve(3, 60 * SECOND, both(4)))["reply"], "refused");
    assert_eq!(told.ask(settle("give_back", 3, both(4)))["reply"], "gone");
    assert_eq!(told.ask(settle("give_back", 1, both(4)))["reply"], "settled");
    told.ask(settle("give_back", 1, both(4)));
    told.ask(settle("commit", 1, both(4)));
    // It charged two limits, so of one alone it cannot be ended.
    assert_eq!(told.ask(settle("commit", u128::MAX, [charge("spend", &spend, 4)]))["reply"], "gone");
    assert_eq!(told.ask(settle("commit", u128::MAX, both(4)))["reply"], "settled");
    told.ask(settle("give_back", u128::MAX, both(4)));
    told.ask(request("peek", both(0)));
    assert_eq!(told.ask(reserve(5, SECOND, both(1)))["reply"], "allowed");
    assert_eq!(told.pass(SECOND).ask(settle("give_back", 5, both(1)))["reply"], "gone");
    told.ask(request("peek", both(0)));
    told.ask(reserve(6, MAX_RESERVATION, both(1)));
    told.pass(MAX_RESERVATION - 1).ask(settle("give_back", 6, both(1)));
    // What was refilled meanwhile, or left the window, is there already.
    let half = START % (10 * SECOND);
    let kinds = [
        rule("refill", 10, 10 * SECOND),
        gcra(10, 10 * SECOND, 10),
        rule("rolling", 10, 10 * SECOND),
        budget(10, 10 * SECOND, half),
        timeless("lifetime", 10),
    ];
    for (kind, id) in kinds.iter().zip(10..) {
        let limit = |cost: u64| [charge("a", kind, cost)];
        for (pass, id) in [(4 * SECOND, 10 * id), (10 * SECOND, 10 * id + 1)] {
            told.pass(100 * SECOND).ask(reserve(id, HOUR, limit(8)));
            told.pass(pass).ask(request("take", limit(2)));
            assert_eq!(told.ask(settle("give_back", id, limit(8)))["reply"], "settled");
            told.look(kind);
            told.ask(request("reset", limit(0)));
        }
    }
    // By whatever maximum it was refilled since, and however high one is that was asked with before.
    for (kind, id) in [("refill", 300), ("gcra", 310)] {
        let of = |max: u64| if kind == "gcra" { gcra(max, HOUR, max) } else { rule(kind, max, HOUR) };
        let (high, low) = (of(1_000), of(10));
        told.pass(HOUR).allow(&high, 5);
        told.pass(SECOND).allow(&low, 1);
        told.ask(reserve(id, HOUR, [charge("a", &low, 2)]));
        told.pass(HOUR / 20 + 7).ask(reserve(id + 1, HOUR, [charge("a", &low, 1)]));
        assert_eq!(told.ask(settle("give_back", id, [charge("a", &low, 2)]))["reply"], "settled");
        assert_eq!(told.look(&low)["remaining"], "3");
        told.pass(SECOND).ask(settle("give_back", id + 1, [charge("a", &high, 1)]));
        told.pass(SECOND).look(&low);
        told.ask(request("refund", [charge("a", &low, 2)]));
    }
    // Of what is kept in part the rest is given back, and what is in flight lands.
    for (kind, id) in kinds.iter().chain([&open]).zip(500..) {
        let limit = |cost: u64| [charge("c", kind, cost)];
        for (kept, id) in [(3, 10 * id), (9, 10 * id + 1)] {
            let most = if *kind == open { 2 } else { 8 };
            told.pass(100 * SECOND).ask(reserve(id, HOUR, limit(most)));
            told.pass(SECOND);
            assert_eq!(told.ask(settle("keep", id, limit(kept)))["reply"], "settled");
            assert_eq!(told.ask(settle("keep", id, limit(0)))["reply"], "before");
            told.ask(request("peek", limit(0)));
            told.ask(request("reset", limit(0)));
        }
    }
    assert_eq!(told.ask(reserve(9, HOUR, both(4)))["reply"], "allowed");
    assert_eq!(told.ask(settle("keep", 9, both(1)))["reply"], "settled");
    told.ask(request("peek", both(0)));
    assert_eq!(told.ask(settle("keep", 7, both(1)))["reply"], "gone");
    // Where it was charged: what was taken before leaves the window, whoever reserves and gives back.
    let rolling = rule("rolling", 10, 10 * SECOND);
    let limit = |cost: u64| [charge("b", &rolling, cost)];
    told.ask(request("take", limit(9)));
    for id in 200..205 {
        assert_eq!(told.pass(2 * SECOND).ask(reserve(id, HOUR, limit(1)))["reply"], "allowed");
        assert_eq!(told.ask(settle("give_back", id, limit(1)))["reply"], "settled");
    }
    assert_eq!(told.ask(request("peek", limit(0)))["remaining"], "10");
    // That it was committed is remembered for two minutes, however little of its time was left.
    assert_eq!(told.ask(reserve(400, 30 * SECOND, limit(1)))["reply"], "allowed");
    assert_eq!(told.pass(5 * SECOND).ask(settle("commit", 400, limit(1)))["reply"], "settled");
    for (pass, reply) in [(35 * SECOND, "before"), (85 * SECOND - 1, "before"), (1, "gone")] {
        assert_eq!(told.pass(pass).ask(settle("commit", 400, limit(1)))["reply"], reply);
    }
    told
}

pub fn changes() -> Tally {
    let mut told = Tally::new(
        "changed-rules",
        "A request brings its rule, so that a limit is changed by sending another one; what was used stays.",
    );
    for period in [10 * SECOND, 7] {
        for (kind, others) in [
            (
                "refill",
                [rule("refill", 20, period), rule("refill", 4, period), rule("refill", 10, 3 * period)],
            ),
            ("gcra", [gcra(20, period, 20), gcra(4, period, 4), gcra(10, 3 * period, 15)]),
            (
                "rolling",
                [rule("rolling", 20, period), rule("rolling", 4, period), rule("rolling", 10, 3 * period)],
            ),
        ] {
            let first = if kind == "gcra" { gcra(10, period, 10) } else { rule(kind, 10, period) };
            for other in others {
                told.pass(4 * period + SECOND).allow(&first, 9);
                told.pass(period / 3).allow(&first, 0);
                told.look(&other);
                told.ask(request("take", [charge("a", &other, 5)]));
                told.pass(period / 5).ask(request("take", [charge("a", &other, 3)]));
                told.look(&first);
                told.look(&timeless("lifetime", 3));
            }
        }
    }
    // A cost of 0 brings the limit up to this time before its maximum changes.
    let (slow, fast) = (rule("refill", 10, 10 * SECOND), rule("refill", 1_000, 10 * SECOND));
    told.pass(HOUR).allow(&slow, 10);
    told.pass(5 * SECOND).allow(&slow, 0);
    assert_eq!(told.allow(&fast, 0), "995");
    told.look(&rule("refill", 3, 10 * SECOND));
    // Of two periods by which it is asked in turn each refills, also where it refuses.
    for (one, other) in [
        (rule("refill", 10, 20 * SECOND), rule("refill", 10, 21 * SECOND)),
        (gcra(10, 20 * SECOND, 10), gcra(10, 21 * SECOND, 10)),
    ] {
        told.pass(HOUR).allow(&one, 10);
        for _ in 0..2 {
            told.pass(SECOND / 2).refuse(&other, 1);
            told.pass(SECOND / 2).refuse(&one, 1);
        }
        told.pass(SECOND / 2).allow(&other, 1);
    }
    // What is above a lower maximum is worked off at its pace, and a higher one finds what is left.
    for (large, small) in [
        (rule("refill", 10, 10 * SECOND), rule("refill", 4, 10 * SECOND)),
        (gcra(10, 10 * SECOND, 10), gcra(4, 10 * SECOND, 4)),
        (gcra(100, 10 * SECOND, 10), gcra(10, 10 * SECOND, 10)),
    ] {
        told.pass(HOUR).allow(&large, 10);
        told.refuse(&small, 1);
        assert_eq!(told.look(&large)["remaining"], "0");
        told.pass(SECOND).allow(&small, 0);
        told.look(&large);
        told.wait(&small, 2);
        told.ask(request("take", [charge("a", &large, 2)]));
        told.refuse(&small, 4);
        // A group that another refuses is not counted by the rule that would allow.
        told.ask(request("take", [charge("a", &large, 1), charge("b", &timeless("lifetime", 0), 1)]));
        told.ask(request("refund", [charge("a", &small, 1)]));
        told.look(&large);
        // Until another is asked with, time counts by the one before.
        told.pass(HOUR).allow(&large, 4);
        told.pass(4 * SECOND - 1).look(&small);
        told.pass(1).look(&small);
    }
    // From the highest to the lowest: the longest time is told, and nothing is lost.
    let (most, least) = (rule("refill", MAX_AMOUNT, MAX_PERIOD), rule("refill", 1, MAX_PERIOD));
    told.pass(HOUR).allow(&most, MAX_AMOUNT);
    assert_eq!(told.refuse(&least, 1), MAX_BACKLOG.to_string());
    told.pass(MAX_PERIOD).allow(&least, 0);
    assert_eq!(told.look(&most)["remaining"], "1");
    told.refuse(&rule("refill", 1, 1), 1);
    told.ask(request("reset", [charge("a", &most, 0)]));
    // More is used than the new maximum allows; nothing is always allowed.
    let (more, less) = (timeless("lifetime", 10), timeless("lifetime", 3));
    told.allow(&more, 9);
    told.allow(&less, 0);
    told.refuse(&less, 1);
    told.look(&less);
    let (most, least) = (timeless("lifetime", Amount::MAX), timeless("lifetime", 1));
    told.allow(&most, Amount::MAX.saturating_sub(9u64.into()));
    told.refuse(&least, 1);
    told.ask(request("refund", [charge("a", &least, 1)]));
    assert_eq!(told.look(&most)["remaining"], "1");
    told
}

pub fn clocks() -> Tally {
    let mut told = Tally::new(
        "clocks-of-limits",
        "A limit's time runs forward only: if the store's clock is set back, it goes on from where it was, at half its pace until that has \
         caught up.",
    );
    let kinds = rates(10, 10 * SECOND).into_iter().chain([budget(10, 10 * SECOND, 0)]);
    for (limit, back) in kinds.zip([SECOND, HOUR, 1_000 * HOUR, HOUR]) {
        told.allow(&limit, 7);
        told.pass(SECOND).ask(request("take", [charge("a", &limit, 3)]));
        told.wall -= back;
        told.refuse(&limit, 3);
        told.pass(2 * SECOND).ask(request("take", [charge("a", &limit, 1)]));
        told.pass(20 * SECOND).allow(&limit, 10);
        told.wall -= SECOND;
        told.look(&limit);
        told.pass(SECOND / 2).ask(request("refund", [charge("a", &limit, 2)]));
        // A jump ahead cannot be told from a quiet time; it gives one burst.
        told.pass(1_000 * HOUR).allow(&limit, 10);
        told.refuse(&limit, 1);
        told.wall -= 1_000 * HOUR;
        told.refuse(&limit, 1);
        told.pass(5_000 * HOUR);
    }
    // To and fro, and what is told is true meanwhile.
    for limit in rates(10, 10 * SECOND).into_iter().chain([budget(10, 10 * SECOND, 3)]) {
        for back in [SECOND, SECOND, HOUR] {
            told.allow(&limit, 1);
            told.wall -= back;
            for _ in 0..3 {
                told.pass(700_001).ask(request("take", [charge("a", &limit, 4)]));
                told.ask(request("peek", [charge("a", &limit, 9)]));
            }
            let retry = told.ask(request("take", [charge("a", &limit, 10)]))["retry_after"].clone();
            if let Some(Ok(time)) = retry.as_str().map(str::parse::<Micros>).filter(|time| *time != Ok(0)) {
                told.pass(time - 2).refuse(&limit, 10);
                told.pass(2).allow(&limit, 10);
            }
            told.wall += back;
            told.pass(10).ask(request("take", [charge("a", &limit, 4)]));
            told.pass(20 * SECOND);
        }
        told.pass(2 * HOUR);
    }
    // A reset makes it the server's.
    let day = budget(10, DAY, 0);
    told.allow(&day, 10);
    told.wall -= 12 * HOUR;
    told.refuse(&day, 1);
    told.ask(request("reset", [charge("a", &day, 0)]));
    told.allow(&day, 10);
    told.refuse(&day, 1);
    told.wall += 12 * HOUR;
    let open = timeless("in_flight", 1);
    told.ask(reserve(1, 10 * SECOND, [charge("a", &open, 1)]));
    told.wall -= HOUR;
    told.ask(reserve(2, 10 * SECOND, [charge("a", &open, 1)]));
    told.pass(9 * SECOND).ask(settle("commit", 1, [charge("a", &open, 1)]));
    told.ask(reserve(2, 10 * SECOND, [charge("a", &open, 1)]));
    // A day that begins meanwhile tells when, as its birth does not; what is seen of the day before counts no more.
    let day = budget(100, DAY, 0);
    told.pass(2 * DAY);
    let take = |cost: u64| request("take", [charge("a", &day, cost)]);
    let (_, before) = told.ask_having_seen("budget", &Json::Null, take(90));
    told.wall -= 12 * HOUR;
    let left = told.refuse(&day, 20);
    told.pass(left.as_str().and_then(|left| left.parse().ok()).expect("a time"));
    let (reply, seen) = told.ask_having_seen("budget", &before, take(30));
    assert_eq!(reply["remaining"], "70");
    assert!(seen.as_str().is_some_and(|seen| seen.contains(" -1")), "{seen}");
    told.incarnation = Some("fe");
    for seen in [&seen, &before] {
        told.ask_having_seen("budget", seen, take(1));
    }
    told.ask(request("reset", [charge("a", &day, 0)]));
    told.pass(DAY).ask_having_seen("budget", &seen, take(50));
    told
}

pub fn lanes() -> Tally {
    let mut told = Tally::new(
        "lanes-of-limits",
        "A repeated envelope gets the same answer and is charged once; one that is late or overtaken changes nothing.",
    );
    let limit = rule("refill", 10, HOUR);
    let last = told.wall + 10 * SECOND;
    let numbered = |sequence: &str, cost: u64| {
        json!({
            "lane": { "client": u128::MAX.to_string(), "number": "65535", "sequence": sequence },
            "not_after": last.to_string(), "requests": [request("take", [charge("a", &limit, cost)])],
        })
    };
    let first = told.send(numbered("5", 4));
    assert_eq!(told.pass(SECOND).send(numbered("5", 4)), first);
    told.send(numbered("6", 3));
    assert_eq!(told.send(numbered("5", 4))["answer"], "stale");
    told.look(&limit);
    // Past its last moment it is answered as before, and a new one is not performed.
    told.pass(14 * SECOND).send(numbered("6", 3));
    assert_eq!(told.send(numbered("7", 1))["answer"], "stale");
    told.look(&limit);
    // Another lane, a lane of another client, and none.
    for (client, number) in [("1", "65535"), (u128::MAX.to_string().as_str(), "0")] {
        let lane = json!({ "client": client, "number": number, "sequence": "18446744073709" });
        told.send(json!({ "lane": lane, "requests": [request("take", [charge("a", &limit, 1)])] }));
    }
    told.send(json!({ "not_after": (told.wall - 1).to_string(), "requests": [request("take", [charge("a", &limit, 1)])] }));
    // What was kept of the lane is gone a minute later.
    told.pass(60 * SECOND).send(numbered("6", 3));
    told.look(&limit);
    told
}

pub fn give_backs() -> Tally {
    let mut told = Tally::new(
        "refunds-and-resets",
        "What is given back without a reservation is trusted, and never makes more than the whole; a limit that is reset is \
         as if never used.",
    );
    let kinds = rates(10, 10 * SECOND);
    for limit in kinds.into_iter().chain([budget(10, DAY, HOUR), timeless("lifetime", 10)]) {
        let of = |cost: u64| [charge("a", &limit, cost)];
        told.ask(request("refund", of(3)));
        told.allow(&limit, 8);
        told.pass(300_001).ask(request("refund", of(3)));
        told.allow(&limit, 4);
        told.ask(request("refund", of(0)));
        told.ask(request("refund", of(100)));
        assert_eq!(told.look(&limit)["remaining"], "10");
        told.allow(&limit, 10);
        // What is reset says no cost.
        assert_eq!(told.ask(request("reset", of(7)))["remaining"], "10");
        told.allow(&limit, 10);
    }
    // A reservation of before a reset gives nothing back, in whatever envelope, at whatever time; of a group, what was not
    // reset.
    let flying = timeless("in_flight", 10);
    let kinds =
        rates(10, 10 * SECOND).into_iter().chain([budget(10, DAY, HOUR), timeless("lifetime", 10), flying]);
    for (limit, id) in kinds.zip(1..) {
        let of = |cost: u64| [charge("b", &limit, cost)];
        let both = [charge("b", &limit, 6), charge("c", &limit, 6)];
        told.ask(reserve(10 * id, SECOND, both.clone()));
        told.ask(request("reset", of(0)));
        told.ask(reserve(10 * id + 1, SECOND, of(6)));
        assert_eq!(told.ask(settle("give_back", 10 * id, both))["reply"], "settled");
        told.ask(request("peek", of(5)));
        told.ask(request("peek", [charge("c", &limit, 10)]));
        told.send(json!({
            "requests": [
                settle("give_back", 10 * id + 1, of(6)), reserve(10 * id + 2, SECOND, of(5)), request("reset", of(0)),
                reserve(10 * id + 3, SECOND, of(5)), settle("give_back", 10 * id + 2, of(5)), request("peek", of(6)),
                settle("commit", 10 * id + 3, of(5)), request("peek", of(0)), request("reset", of(0)),
            ],
        }));
    }
    // Nor does one that others have given back in the meantime, or that a higher maximum has refilled.
    for limit in rates(10, 10 * SECOND).into_iter().chain([timeless("lifetime", 10)]) {
        let of = |cost: u64| [charge("d", &limit, cost)];
        told.ask(reserve(100, HOUR, of(4)));
        told.ask(request("refund", of(4)));
        told.ask(request("take", of(9)));
        told.ask(settle("give_back", 100, of(4)));
        told.ask(request("peek", of(1)));
        told.ask(request("reset", of(0)));
    }
    for (slow, fast) in
        [(rule("refill", 10, HOUR), rule("refill", 100, HOUR)), (gcra(10, HOUR, 10), gcra(100, HOUR, 100))]
    {
        told.ask(reserve(200, HOUR, [charge("e", &slow, 10)]));
        told.ask(request("take", [charge("e", &fast, 0)]));
        told.pass(HOUR / 20).ask(request("take", [charge("e", &fast, 95)]));
        told.ask(settle("give_back", 200, [charge("e", &slow, 10)]));
        told.ask(request("peek", [charge("e", &fast, 6)]));
        // Of another period nobody knows how much that is.
        told.ask(reserve(201, HOUR, [charge("e", &fast, 5)]));
        let longer =
            if slow["kind"] == "gcra" { gcra(200, 2 * HOUR, 200) } else { rule("refill", 200, 2 * HOUR) };
        told.ask(settle("give_back", 201, [charge("e", &longer, 5)]));
        told.ask(request("peek", [charge("e", &longer, 0)]));
    }
    told
}
