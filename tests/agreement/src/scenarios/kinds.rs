//! Limits of each kind.

use leasehold::limits::{Amount, MAX_AMOUNT, MAX_PERIOD};
use leasehold::{MILLISECOND, Micros, SECOND};
use serde_json::Value as Json;

use super::tally::{Tally, budget, charge, gcra, request, reserve, rule, settle, timeless};

const HOUR: Micros = 3_600 * SECOND;
const DAY: Micros = 24 * HOUR;

pub fn refill() -> Tally {
    let mut told = Tally::new(
        "refill",
        "Continuous refill: the most at once, and what was used comes back by the microsecond, nothing rounded but the \
         result.",
    );
    let limit = rule("refill", 3, 10 * SECOND);
    assert_eq!(told.look(&limit)["reset_after"], "0");
    assert_eq!(told.allow(&limit, 3), "0");
    told.allow(&limit, 0);
    told.wait(&limit, 1);
    told.wait(&limit, 2);
    assert_eq!(told.refuse(&limit, 4), Json::Null);
    // A tenth of one is there and does not count yet.
    told.pass(333_333).look(&limit);
    told.allow(&limit, 0);
    told.pass(3_000_000).look(&limit);
    told.pass(1).look(&limit);
    told.pass(30 * SECOND).look(&limit);
    told.allow(&limit, 1);
    told.pass(10 * SECOND - 1).look(&limit);
    assert_eq!(told.allow(&limit, 3), "0");
    told
}

pub fn rates_below_a_millisecond() -> Tally {
    let mut told = Tally::new(
        "rates-below-a-millisecond",
        "Rates of more than one in a millisecond, and of more than one in a microsecond, are exact; so are the largest.",
    );
    for (max, period) in [(600, SECOND), (10_000, SECOND), (1_000_000, SECOND), (3_000_000, SECOND), (7, 13)]
    {
        for limit in [rule("refill", max, period), gcra(max, period, max)] {
            assert_eq!(told.allow(&limit, max), "0");
            told.refuse(&limit, 1);
            // As soon as it is told, and not a microsecond before: but what comes by the microsecond cannot be told sooner.
            if max < period {
                told.wait(&limit, 1);
            }
            told.pass(period / 2).allow(&limit, max / 2 - 1);
            told.look(&limit);
            told.pass(period);
        }
    }
    let largest = rule("refill", MAX_AMOUNT, MAX_PERIOD);
    told.allow(&largest, MAX_AMOUNT);
    told.wait(&largest, 1);
    told.wait(&largest, 999_999_999_999_999_u64);
    let slowest = rule("refill", 1, MAX_PERIOD);
    told.pass(2 * MAX_PERIOD).allow(&slowest, 1);
    told.wait(&slowest, 1);
    let backlog = gcra(1, MAX_PERIOD, 35);
    told.allow(&backlog, 35);
    told.wait(&backlog, 1);
    told.look(&backlog);
    told
}

pub fn bursts() -> Tally {
    let mut told = Tally::new(
        "gcra",
        "The generic cell rate algorithm: one every period / max, ahead of which a burst may run; a cell may take any \
         fraction of a microsecond.",
    );
    let limit = gcra(3, 10 * SECOND, 2);
    assert_eq!(told.allow(&limit, 2), "0");
    told.wait(&limit, 1);
    told.wait(&limit, 2);
    assert_eq!(told.refuse(&limit, 3), Json::Null);
    told.pass(3_333_333).refuse(&limit, 1);
    told.pass(1).allow(&limit, 1);
    told.pass(7 * SECOND).look(&limit);
    told.ask(request("refund", [charge("a", &limit, 1)]));
    told.look(&limit);
    let ahead = gcra(10, SECOND, 25);
    told.pass(HOUR).allow(&ahead, 20);
    told.pass(SECOND).allow(&ahead, 14);
    told.wait(&ahead, 2);
    told.refuse(&gcra(10, SECOND, 0), 1);
    told
}

pub fn rolling() -> Tally {
    let mut told = Tally::new(
        "rolling",
        "A rolling window: a cell of a thirty-second of it counts until its last take leaves; never too much is allowed.",
    );
    let limit = rule("rolling", 5, 32 * SECOND);
    told.allow(&limit, 2);
    told.pass(200 * MILLISECOND).allow(&limit, 1);
    told.pass(SECOND).allow(&limit, 1);
    told.pass(20 * SECOND).allow(&limit, 1);
    assert_eq!(told.refuse(&limit, 6), Json::Null);
    told.wait(&limit, 1);
    told.wait(&limit, 4);
    told.pass(10 * SECOND).look(&limit);
    told.ask(request("refund", [charge("a", &limit, 3)]));
    told.allow(&limit, 3);
    told.pass(33 * SECOND).look(&limit);
    let brief = rule("rolling", 2, 7);
    for step in 0..12 {
        told.pass(step % 3).ask(request("take", [charge("a", &brief, 1)]));
    }
    told
}

pub fn lifetime() -> Tally {
    let mut told =
        Tally::new("lifetime", "What is used stays so until it is given back; amounts have 256 bits.");
    let most = Amount::MAX.to_string();
    let limit = timeless("lifetime", &most);
    let half = "57896044618658097711785492504343953926634992332820282019728792003956564819968";
    told.allow(&limit, half);
    told.pass(1_000 * DAY).refuse(&limit, half);
    assert_eq!(told.allow(&limit, &half[..half.len() - 1]).len(), half.len());
    assert_eq!(told.refuse(&limit, &most), Json::Null);
    told.ask(request("refund", [charge("a", &limit, half)]));
    told.ask(request("refund", [charge("a", &limit, &most)]));
    assert_eq!(told.allow(&limit, &most), "0");
    told.refuse(&timeless("lifetime", half), 1);
    told.allow(&timeless("lifetime", half), 0);
    told.ask(request("reset", [charge("a", &limit, 0)]));
    // Digits at the edges of what doubles hold, and of their chunks of fifteen.
    for amount in
        ["999999999999999", "1000000000000000", "9007199254740993", "999999999999999999999999999999", "1"]
    {
        told.allow(&limit, amount);
    }
    told.ask(request("refund", [charge("a", &limit, "1000000000000000000000000000000")]));
    told
}

pub fn budgets() -> Tally {
    let mut told = Tally::new(
        "budget",
        "So much in each period of the calendar; the next is as long as the longest that was said in one, and a longer one lengthens it.",
    );
    let wei = "1000000000000000000000";
    let limit = budget(wei, DAY, 0);
    told.allow(&limit, "999999999999999999999");
    told.refuse(&limit, 2);
    assert_eq!(told.refuse(&limit, "1000000000000000000001"), Json::Null);
    told.wait(&limit, wei);
    told.pass(DAY / 2).look(&limit);
    // The rest of the day is another's by now.
    let later = budget(wei, DAY, 6 * HOUR);
    told.refuse(&later, 1);
    told.wait(&later, wei);
    told.pass(HOUR).look(&later);
    told.ask(request("refund", [charge("a", &later, 7)]));
    told.allow(&later, 7);
    told.refuse(&budget(wei, 1, 0), 1);
    // The next day is one too, as that was said in this one, which goes on to its beginning; nobody says it in that one.
    told.pass(DAY).refuse(&budget(2, 7, 3), 2);
    told.pass(6 * HOUR).allow(&budget(2, 7, 3), 2);
    assert_eq!(told.refuse(&budget(2, 7, 3), 1), (DAY - HOUR).to_string());
    told.pass(DAY).allow(&budget(2, 7, 3), 2);
    told.pass(1).ask(request("take", [charge("a", &budget(2, 7, 3), 2)]));
    told.pass(7).allow(&budget(2, 7, 3), 2);
    told.pass(MAX_PERIOD).allow(&budget(1, MAX_PERIOD, DAY), 1);
    told.wait(&budget(1, MAX_PERIOD, DAY), 1);
    // Of two by which one limit is asked the longer is spent once.
    told.pass(2 * MAX_PERIOD + HOUR / 3);
    let (hourly, daily) = (budget(10, HOUR, 0), budget(100, DAY, 0));
    told.allow(&hourly, 10);
    told.look(&daily);
    told.refuse(&hourly, 1);
    told.allow(&daily, 80);
    told.refuse(&daily, 11);
    told.wait(&hourly, 1);
    told.allow(&hourly, 9);
    told.wait(&daily, 100);
    // A refusal tells it too; of calendars of one length the first stays; and nothing is kept in mind for longer than one period.
    told.refuse(&budget(100, DAY, HOUR), 100);
    told.pass(DAY).allow(&hourly, 1);
    told.refuse(&daily, 100);
    told.look(&budget(100, DAY, HOUR));
    told.ask(request("refund", [charge("a", &hourly, 1)]));
    told.look(&hourly);
    told.pass(DAY).ask(request("take", [charge("a", &hourly, 0)]));
    told.look(&hourly);
    told.pass(DAY).allow(&hourly, 10);
    told.refuse(&hourly, 1);
    told.pass(2 * DAY).allow(&hourly, 10);
    told.wait(&hourly, 1);
    // Of two days of which both are said the first stays; where nobody says it in one, that goes on to the end of one of the other.
    told.pass(3 * DAY - told.wall % DAY);
    let noon = budget(100, DAY, 12 * HOUR);
    told.allow(&daily, 60);
    for _ in 0..2 {
        told.pass(DAY).allow(&noon, 50);
        told.refuse(&noon, 60);
        told.refuse(&daily, 60);
    }
    told.pass(DAY).allow(&noon, 50);
    told.pass(DAY - 1).look(&noon);
    told.pass(1).refuse(&noon, 60);
    told.refuse(&daily, 60);
    told.wait(&noon, 100);
    assert_eq!(told.refuse(&noon, 1), DAY.to_string());
    // Of days that are unused, too.
    told.ask(request("refund", [charge("a", &noon, 100)]));
    told.pass(DAY).ask(request("take", [charge("a", &daily, 0)]));
    told.pass(DAY + HOUR).ask(request("take", [charge("a", &hourly, 0)]));
    told.refuse(&hourly, 11);
    told
}

pub fn each() -> Tally {
    let mut told = Tally::new(
        "each-request",
        "Without a period each request is limited by itself; with a maximum of 0 nothing is allowed; nothing is remembered.",
    );
    let wide = Amount::MAX.to_string();
    let rules =
        [rule("refill", 5, 0), gcra(9, 0, 5), rule("rolling", 5, 0), budget(5, 0, 0), timeless("each", 5)];
    for limit in rules {
        told.allow(&limit, 5);
        told.allow(&limit, 5);
        assert_eq!(told.refuse(&limit, 6), Json::Null);
        told.ask(reserve(1, SECOND, [charge("a", &limit, 5)]));
        told.ask(settle("give_back", 1, [charge("a", &limit, 5)]));
    }
    for limit in
        [rule("refill", 0, SECOND), gcra(0, SECOND, 5), rule("rolling", 0, SECOND), timeless("lifetime", 0)]
    {
        told.allow(&limit, 0);
        assert_eq!(told.refuse(&limit, 1), Json::Null);
    }
    told.allow(&timeless("each", &wide), &wide);
    told
}

pub fn in_flight() -> Tally {
    let mut told = Tally::new(
        "in-flight",
        "So much at a time: what was reserved is in flight until the reservation is committed, given back, or over.",
    );
    let limit = timeless("in_flight", 3);
    let one = |cost: u64| [charge("a", &limit, cost)];
    assert_eq!(told.ask(reserve(1, 10 * SECOND, one(1)))["reply"], "allowed");
    assert_eq!(told.pass(SECOND).ask(reserve(2, 5 * SECOND, one(2)))["reply"], "allowed");
    assert_eq!(told.ask(reserve(3, SECOND, one(1)))["retry_after"], "5000000");
    assert_eq!(told.ask(reserve(3, SECOND, one(4)))["retry_after"], Json::Null);
    assert_eq!(told.ask(settle("commit", 2, one(2)))["reply"], "settled");
    assert_eq!(told.ask(reserve(4, SECOND, one(2)))["reply"], "allowed");
    assert_eq!(told.ask(settle("give_back", 1, one(1)))["reply"], "settled");
    told.look(&limit);
    told.pass(SECOND - 1).look(&limit);
    assert_eq!(told.pass(1).look(&limit)["remaining"], "3");
    assert_eq!(told.ask(settle("commit", 4, one(2)))["reply"], "gone");
    // Two of one end and one amount are two.
    told.ask(reserve(5, SECOND, one(1)));
    told.ask(reserve(6, SECOND, one(1)));
    told.ask(settle("commit", 6, one(1)));
    assert_eq!(told.look(&limit)["remaining"], "2");
    assert_eq!(told.ask(settle("commit", 6, one(1)))["reply"], "before");
    assert_eq!(told.look(&limit)["remaining"], "2");
    told.ask(reserve(7, SECOND, one(0)));
    told.ask(request("reset", one(0)));
    told.look(&limit);
    // With fewer at a time than there are.
    told.ask(reserve(8, HOUR, one(3)));
    let lower = timeless("in_flight", 1);
    told.ask(reserve(9, HOUR, [charge("a", &lower, 1)]));
    told.ask(reserve(9, HOUR, [charge("a", &lower, 0)]));
    told
}
