//! Reservations that are prolonged.

use leasehold::limits::MAX_RESERVATION;
use leasehold::{Micros, SECOND};
use serde_json::json;

use super::tally::{Tally, budget, charge, gcra, renew, request, reserve, rule, settle, timeless};

const HALF: Micros = SECOND / 2;

pub fn renewals() -> Tally {
    let mut told = Tally::new(
        "renewals-of-reservations",
        "A reservation that is renewed lasts until the later of what it had and its new time to live from now, and so does what it has in flight. That needs no room; what is counted no more is not prolonged.",
    );
    let open = timeless("in_flight", 4);
    let kinds = [
        rule("refill", 100, 100 * SECOND),
        gcra(100, 100 * SECOND, 100),
        rule("rolling", 100, 100 * SECOND),
        budget(100, 86_400 * SECOND, 0),
        timeless("lifetime", 100),
        json!({ "kind": "each", "max": "100" }),
    ];
    let flights = |told: &mut Tally| told.ask(request("peek", [charge("open", &open, 4)]));
    for (kind, id) in kinds.iter().zip((10..).step_by(10)) {
        let both = |cost: u64| [charge("a", kind, cost), charge("open", &open, 1)];
        assert_eq!(told.ask(renew(id, SECOND, both(8)))["reply"], "gone");
        assert_eq!(told.ask(reserve(id, 10 * SECOND, both(8)))["reply"], "allowed");
        told.pass(SECOND).ask(reserve(id + 1, 10 * SECOND, [charge("open", &open, 2)]));
        // Never shorter; then it moves along, and the other does not.
        assert_eq!(told.pass(SECOND).ask(renew(id, SECOND, both(8)))["reply"], "settled");
        assert_eq!(flights(&mut told)["retry_after"], (8 * SECOND).to_string());
        assert_eq!(told.ask(renew(id, 10 * SECOND, both(8)))["reply"], "settled");
        let seen = flights(&mut told);
        assert_eq!(
            (&seen["retry_after"], &seen["reset_after"]),
            (&json!((9 * SECOND).to_string()), &json!((10 * SECOND).to_string()))
        );
        told.look(kind);
        assert_eq!(
            told.pass(9 * SECOND).ask(renew(id + 1, SECOND, [charge("open", &open, 2)]))["reply"],
            "gone"
        );
        assert_eq!(
            told.ask(renew(id, 10 * SECOND, [charge("open", &open, 1)]))["reply"],
            "gone",
            "not what it reserved"
        );
        // By a lower maximum too, in one envelope with its end.
        let lowered = [charge("a", kind, 8), charge("open", &timeless("in_flight", 0), 1)];
        let answer = told.send(json!({ "requests": [
            renew(id, 20 * SECOND, lowered.clone()), request("peek", [charge("open", &open, 4)]), renew(id, 30 * SECOND, lowered),
            request("peek", [charge("open", &open, 4)]), settle("give_back", id, both(8)), renew(id, SECOND, both(8)),
        ] }));
        assert_eq!(answer["replies"][3]["reset_after"], (30 * SECOND).to_string());
        assert_eq!(answer["replies"][5], json!({ "reply": "before", "given_back": true }));
        told.look(kind);
        flights(&mut told);
        // Also where nothing is in flight.
        let alone = || [charge("a", kind, 8)];
        told.ask(reserve(id + 2, SECOND, alone()));
        assert_eq!(told.pass(SECOND - 1).ask(renew(id + 2, MAX_RESERVATION, alone()))["reply"], "settled");
        assert_eq!(told.pass(HALF).ask(settle("commit", id + 2, alone()))["reply"], "settled");
        assert_eq!(told.ask(renew(id + 2, SECOND, alone()))["reply"], "before");
        told.ask(request("reset", alone()));
    }
    // What was reset is counted no more, and nothing else of the reservation is prolonged; nothing in flight needs nothing.
    for cost in [1u128, 0] {
        let id = 100 + cost;
        let all = [charge("b", &open, 1), charge("open", &open, cost), charge("a", &kinds[0], 3)];
        told.ask(reserve(id, 10 * SECOND, all.clone()));
        told.pass(SECOND).ask(request("reset", [charge("open", &open, 0)]));
        told.ask(reserve(id + 2, 9 * SECOND, [charge("open", &open, 1)]));
        let reply = told.ask(renew(id, 60 * SECOND, all.clone()));
        assert_eq!(reply["reply"], if cost > 0 { "gone" } else { "settled" });
        told.ask(request("peek", [charge("b", &open, 4)]));
        flights(&mut told);
        assert_eq!(told.ask(settle("give_back", id, all))["reply"], "settled");
        assert_eq!(flights(&mut told)["remaining"], "3");
        told.pass(60 * SECOND);
    }
    // Of two of one end and amount one is prolonged.
    let one = || [charge("open", &open, 1)];
    told.ask(reserve(200, 10 * SECOND, one()));
    told.ask(reserve(201, 10 * SECOND, one()));
    told.ask(renew(200, 20 * SECOND, one()));
    assert_eq!(flights(&mut told)["retry_after"], (10 * SECOND).to_string());
    told.ask(settle("commit", 201, one()));
    assert_eq!(flights(&mut told)["retry_after"], (20 * SECOND).to_string());
    // While a clock is set back, and what has landed by the limit's own clock once it is right again.
    told.ask(reserve(202, 3_600 * SECOND, one()));
    told.wall -= 600 * SECOND;
    for _ in 0..3 {
        assert_eq!(told.pass(15 * SECOND).ask(renew(200, 20 * SECOND, one()))["reply"], "settled");
        flights(&mut told);
    }
    told.wall += 600 * SECOND;
    assert_eq!(flights(&mut told)["remaining"], "3");
    assert_eq!(told.ask(renew(200, 20 * SECOND, one()))["reply"], "gone");
    assert_eq!(told.ask(renew(202, 20 * SECOND, one()))["reply"], "settled");
    told
}
