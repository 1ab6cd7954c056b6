//! Rolling limits that are asked by several periods.

use leasehold::{Micros, SECOND};
use serde_json::Value as Json;

use super::tally::{Tally, charge, request, reserve, rule, settle};

const HOUR: Micros = 3_600 * SECOND;

pub fn windows() -> Tally {
    let mut told = Tally::new(
        "rolling-of-several-periods",
        "A rolling limit that is asked by several periods: each counts its own window of what all were allowed, for as long as \
         somebody asks by it.",
    );
    let [long, short] = [rule("rolling", 10, HOUR), rule("rolling", 10, HOUR / 60)];
    told.allow(&long, 10);
    for _ in 0..3 {
        told.pass(HOUR / 60).refuse(&long, 1);
        told.allow(&short, 4);
        told.look(&short);
    }
    told.pass(HOUR - 3 * (HOUR / 60)).allow(&short, 6);
    told.refuse(&short, 5);
    assert_eq!(told.refuse(&long, 1), (HOUR / 60 * 3).to_string());
    assert_eq!(told.refuse(&long, 11), Json::Null);
    // What is given back is taken from the window of who gives it back.
    told.pass(HOUR / 60).ask(reserve(1, HOUR, [charge("a", &short, 3)]));
    told.allow(&short, 6);
    told.ask(settle("give_back", 1, [charge("a", &short, 3)]));
    assert_eq!(told.look(&short)["remaining"], "4");
    told.ask(request("refund", [charge("a", &long, 5)]));
    told.look(&long);
    told.look(&short);
    // Nobody asks by the longer one any more, and so it is forgotten.
    for _ in 0..5 {
        told.pass(HOUR / 2).allow(&short, 1);
    }
    told.look(&long);
    // One that is longer than any finds what was kept until now; what was reserved before gives nothing back.
    told.ask(reserve(2, 5 * HOUR, [charge("a", &short, 2)]));
    told.allow(&rule("rolling", 10, 2 * HOUR), 5);
    told.ask(settle("give_back", 2, [charge("a", &short, 2)]));
    told.look(&short);
    // A refused take tells its period, and to look does not.
    let fresh = |wall: Micros| rule("rolling", 3, wall);
    told.pass(5 * HOUR).allow(&fresh(SECOND), 3);
    told.look(&fresh(HOUR));
    told.pass(SECOND).allow(&fresh(SECOND), 1);
    told.refuse(&fresh(HOUR), 3);
    told.pass(SECOND).allow(&fresh(SECOND), 1);
    told.wait(&fresh(HOUR), 2);
    // All is given back, and it is known still who asked by what.
    told.pass(5 * HOUR).allow(&long, 2);
    told.allow(&short, 2);
    told.ask(request("refund", [charge("a", &short, 4)]));
    assert_eq!(told.look(&long)["reset_after"], "0");
    told.pass(SECOND).allow(&short, 10);
    told.pass(HOUR / 30).allow(&short, 0);
    told.refuse(&long, 1);
    told.ask(request("reset", [charge("a", &short, 0)]));
    told.allow(&long, 10);
    // So much that it is merged: by the grain of the longest what the longest alone counts.
    let [wide, brief] = [rule("rolling", 500, HOUR), rule("rolling", 200, HOUR / 30)];
    told.pass(5 * HOUR).allow(&wide, 1);
    for step in 0..135 {
        told.pass(3 * SECOND + step % 7 * 500_000).allow(&brief, 1);
    }
    told.look(&wide);
    told.refuse(&wide, 500);
    told.wait(&wide, 400);
    told.look(&brief);
    told
}
