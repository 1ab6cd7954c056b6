//! Limits of money on servers that forget: what clients have seen of them.

use leasehold::limits::Amount;
use leasehold::{Micros, SECOND};
use serde_json::{Value as Json, json};

use super::tally::{Tally, budget, charge, request, reserve, settle, timeless};

const HOUR: Micros = 3_600 * SECOND;
const DAY: Micros = 24 * 3_600 * SECOND;
/// Three servers.
const SERVERS: [&str; 3] = [
    "1111111111111111222222222222222233333333",
    "aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbcccccccc",
    "00000000000000010000000000000000ffffffff",
];

fn take(limit: &Json, cost: impl ToString) -> Json {
    request("take", [charge("a", limit, cost)])
}

fn peek(limit: &Json) -> Json {
    request("peek", [charge("a", limit, 0)])
}

/// The standing that so much is used, in one birth.
fn standing(born: Micros, version: u64, ends: Micros, used: impl ToString) -> Json {
    json!(format!("{born:016}{:016} {version} {ends} {}", 0, used.to_string()))
}

pub fn standings() -> Tally {
    let mut told = Tally::new(
        "standings-of-limits",
        "How limits of money stand is told, and what a client has seen of them counts where the server has forgotten it: of \
         each birth the later version, and of several births the sum.",
    );
    let (spend, daily) = (timeless("lifetime", 100), budget(100, DAY, 0));
    let ends = (told.wall / DAY + 1) * DAY;
    for (kind, limit, ends) in [("lifetime", &spend, 0), ("budget", &daily, ends)] {
        let born = told.wall - 500;
        // The server has forgotten all of it.
        let (reply, seen) = told.ask_having_seen(kind, &standing(born, 3, ends, 70), take(limit, 31));
        assert_eq!((&reply["reply"], &reply["remaining"]), (&json!("refused"), &json!("30")));
        let (reply, seen) = told.pass(7).ask_having_seen(kind, &seen, take(limit, 20));
        assert_eq!(reply["remaining"], "10");
        // An older version says nothing, a later one the rest.
        let (reply, _) = told.ask_having_seen(kind, &standing(born, 2, ends, 60), take(limit, 0));
        assert_eq!(reply["remaining"], "10");
        let (reply, seen_last) = told.ask_having_seen(kind, &standing(born, 4, ends, 75), peek(limit));
        assert_eq!(reply["remaining"], "5");
        // Who looks with what is known by now changes nothing.
        told.ask_having_seen(kind, &seen, peek(limit));
        told.ask_having_seen(kind, &seen_last, peek(limit));
        // Of another birth, of which nobody has heard.
        let (reply, _) = told.ask_having_seen(kind, &standing(born - 9, 1, ends, 2), take(limit, 1));
        assert_eq!(reply["remaining"], "2");
        // Younger than what is kept, and older than what the server has, of its own birth: it has gone back in time.
        let (_, seen) = told.ask_having_seen(kind, &standing(told.wall + 77, 9, ends, 1), take(limit, 1));
        let words: Vec<&str> = seen.as_str().expect("a standing").split(' ').collect();
        let ahead = json!([&[words[0], "40", words[2], "110"], &words[4..]].concat().join(" "));
        let (reply, seen) = told.ask_having_seen(kind, &ahead, take(limit, 1));
        assert_eq!((&reply["reply"], &reply["remaining"]), (&json!("refused"), &json!("0")));
        // What is given back in an envelope that was made before the loss may have been given back before it.
        let back = request("refund", [charge("a", limit, 30)]);
        let (reply, _) = told.ask_having_seen(kind, &standing(born, 4, ends, 75), back.clone());
        assert_eq!(reply["remaining"], "0");
        let (reply, seen) = told.ask_having_seen(kind, &seen, back);
        assert_eq!(reply["remaining"], "20");
        // A reset ends all that, whoever has seen it.
        let (_, fresh) = told.ask_having_seen(kind, &Json::Null, request("reset", [charge("a", limit, 0)]));
        for old in [seen, standing(born, 9, ends, 99)] {
            let (reply, _) = told.ask_having_seen(kind, &old, peek(limit));
            assert_eq!(reply["remaining"], "100");
        }
        told.ask_having_seen(kind, &fresh, take(limit, 5));
        // Who has not heard of it gives back what was taken since: nothing was forgotten.
        let (id, old) = (if kind == "budget" { 1 } else { 2 }, standing(born, 9, ends, 99));
        told.ask(reserve(id, DAY, [charge("a", limit, 40)]));
        let back = settle("give_back", id, [charge("a", limit, 40)]);
        assert_eq!(told.ask_having_seen(kind, &old, back).0["reply"], "settled");
        let (reply, _) = told.ask_having_seen(kind, &old, request("refund", [charge("a", limit, 2)]));
        assert_eq!(reply["remaining"], "97");
    }
    // Of a period that is over nothing counts.
    told.pass(DAY);
    let (reply, _) =
        told.ask_having_seen("budget", &standing(told.wall - DAY, 3, ends, 70), take(&daily, 100));
    assert_eq!(reply["remaining"], "0");
    // A day of two calendars is told to end when it is over; who was told so before it was to end sooner is not heard of it after that.
    let noon = budget(100, DAY, 12 * HOUR);
    told.pass(10 * DAY - told.wall % DAY + HOUR).allow(&daily, 1);
    let (_, on) = told.pass(DAY).ask_having_seen("budget", &Json::Null, take(&noon, 80));
    told.pass(HOUR).allow(&daily, 10);
    told.pass(DAY).allow(&daily, 9);
    let (reply, _) = told.ask_having_seen("budget", &on, take(&noon, 1));
    assert_eq!(reply["remaining"], "90");
    // What another server counted, between two failovers, of the day that had begun by then is of that day, whatever its end.
    let until =
        on.as_str().and_then(|on| on.split(' ').nth(2)).and_then(|ends| ends.parse().ok()).expect("a time");
    let between = told.wall + 1;
    let here = told.incarnation.replace(SERVERS[2]);
    told.pass(SECOND).allow(&noon, 1);
    let (reply, _) = told.ask_having_seen("budget", &standing(between, 1, until, 30), take(&noon, 1));
    assert_eq!(reply["remaining"], "58");
    told.incarnation = here;
    let (_, on) = told.pass(DAY).ask_having_seen("budget", &Json::Null, take(&noon, 70));
    let (reply, _) = told.pass(DAY).ask_having_seen("budget", &on, take(&noon, 1));
    assert_eq!(reply["remaining"], "29");
    // Nothing more than 2^256 - 1, and in a birth more may be given back than charged.
    let wide = timeless("lifetime", Amount::MAX);
    let least = |at: Micros, sum: &str| {
        json!(format!("{:016}{:016} 5 0 {sum} - {:016}{:016} 2 -{}", at, 0, at - 1, 0, Amount::MAX))
    };
    told.ask(request("reset", [charge("a", &wide, 0)]));
    for (pass, sum) in [
        (1, "7"),
        (2, "0"),
        (3, "115792089237316195423570985008687907853269984665640564039457584007913129639935"),
    ] {
        let at = told.pass(pass).wall + 50 * pass;
        told.ask_having_seen("lifetime", &least(at, sum), take(&wide, 1));
        told.ask_having_seen("lifetime", &standing(at + 9, 1, 0, Amount::MAX), peek(&wide));
    }
    told
}

pub fn servers() -> Tally {
    let mut told = Tally::new(
        "servers-of-limits",
        "On another server a limit of money begins a new birth; what was seen of the one before counts.",
    );
    let limit = timeless("lifetime", 1_000);
    let mut seen = Json::Null;
    for round in 0..40u64 {
        told.incarnation = Some(SERVERS[round as usize % 3]);
        let (reply, now) = told.pass(round % 4).ask_having_seen("lifetime", &seen, take(&limit, 1));
        assert_eq!(reply["remaining"], (999 - round).to_string());
        // Every third time it is seen only by others.
        if round % 3 > 0 {
            seen = now;
        }
    }
    // Nothing is charged, and the birth is a new one all the same.
    told.incarnation = Some(SERVERS[0]);
    told.pass(SECOND).ask_having_seen("lifetime", &Json::Null, peek(&limit));
    told.ask(reserve(1, 10 * SECOND, [charge("a", &limit, 50)]));
    // It may have been given back before, by anybody: who has heard of the other server does not know that either.
    told.incarnation = Some(SERVERS[1]);
    assert_eq!(told.pass(SECOND).look(&limit)["remaining"], "910");
    assert_eq!(told.ask(settle("give_back", 1, [charge("a", &limit, 50)]))["reply"], "gone");
    assert_eq!(told.look(&limit)["remaining"], "910");
    // So may what is given back without a reservation by who has seen nothing.
    let refund = || request("refund", [charge("a", &limit, 50)]);
    let (reply, seen) = told.ask_having_seen("lifetime", &Json::Null, refund());
    assert_eq!(reply["remaining"], "910");
    assert_eq!(told.ask_having_seen("lifetime", &seen, refund()).0["remaining"], "960");
    told.ask(reserve(3, 10 * SECOND, [charge("a", &limit, 50)]));
    let (reply, _) =
        told.ask_having_seen("lifetime", &Json::Null, settle("give_back", 3, [charge("a", &limit, 50)]));
    assert_eq!(reply["reply"], "settled");
    // It stays charged, also for who asks again.
    let (_, seen) =
        told.ask_having_seen("lifetime", &Json::Null, reserve(2, 10 * SECOND, [charge("a", &limit, 50)]));
    told.incarnation = Some(SERVERS[2]);
    let back = || settle("give_back", 2, [charge("a", &limit, 50)]);
    assert_eq!(told.pass(SECOND).ask_having_seen("lifetime", &seen, back()).0["reply"], "gone");
    for end in [back(), settle("commit", 2, [charge("a", &limit, 50)])] {
        assert_eq!(told.ask_having_seen("lifetime", &seen, end).0["given_back"], false);
    }
    assert_eq!(told.look(&limit)["remaining"], "910");
    // A server that does not say who it is.
    told.incarnation = Some("");
    told.pass(SECOND).allow(&limit, 8);
    told.incarnation = Some("Fe");
    told.pass(SECOND).allow(&limit, 80);
    told
}
