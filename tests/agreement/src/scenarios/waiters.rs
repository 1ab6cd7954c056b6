//! Clients that wait for what is in flight.

use leasehold::{MILLISECOND, Micros, SECOND};
use serde_json::{Value as Json, json};

use super::tally::{Tally, charge, reserve, rule, settle, timeless};

const HALF: Micros = SECOND / 2;

/// What clients ask, each in a lane of its own.
struct Clients {
    told: Tally,
    sequence: u64,
}

impl Clients {
    /// Reserves for a caller of this client that has waited for so long, or asks once.
    fn ask<const N: usize>(
        &mut self,
        client: u128,
        waited: Option<Micros>,
        id: u128,
        charges: [Json; N],
    ) -> Json {
        let mut request = reserve(id, 30 * SECOND, charges);
        if let Some(waited) = waited {
            request["waited"] = waited.to_string().into();
        }
        self.send(client, request)
    }

    fn send(&mut self, client: u128, request: Json) -> Json {
        self.sequence += 1;
        let lane = json!({ "client": (client << 80).to_string(), "number": "0", "sequence": self.sequence.to_string() });
        self.told.send(json!({ "lane": lane, "requests": [request] }))["replies"][0].clone()
    }
}

pub fn waiters() -> Tally {
    let told = Tally::new(
        "waiters",
        "Who has waited for half a second for what is in flight, and is refused, is kept room for until half a second later: those of other clients, or who wait for something else, that came more than half a second later find none, unless they do not wait.",
    );
    let mut clients = Clients { told, sequence: 0 };
    let limit = timeless("in_flight", 2);
    let of = |cost: u64| [charge("a", &limit, cost)];
    for id in [1, 2] {
        assert_eq!(clients.ask(1, Some(0), id, of(1))["reply"], "allowed");
    }
    // Not long enough, and then the same once more.
    for (waited, id) in [(HALF - 1, 3), (HALF, 4)] {
        assert_eq!(clients.ask(2, Some(waited), 10 * id, of(1))["reply"], "refused");
        clients.told.ask(settle("commit", id - 2, of(1)));
        clients.told.pass(MILLISECOND);
        let next = clients.ask(1, Some(0), id, of(1));
        assert_eq!(next["reply"], if waited < HALF { "allowed" } else { "refused" });
    }
    // The room is there, for who came at about the same time, and for who does not wait.
    clients.told.pass(99 * MILLISECOND);
    assert_eq!(clients.ask(3, Some(100 * MILLISECOND - 1), 5, of(1))["retry_after"], "400000");
    assert_eq!(clients.ask(3, Some(0), 5, of(0))["reply"], "allowed");
    assert_eq!(clients.ask(3, Some(100 * MILLISECOND), 6, of(1))["reply"], "allowed");
    clients.told.ask(settle("give_back", 6, of(1)));
    assert_eq!(clients.ask(3, None, 7, of(1))["reply"], "allowed");
    clients.told.ask(settle("give_back", 7, of(1)));
    // Who waits for it has it, and then nobody does.
    assert_eq!(clients.ask(2, Some(HALF + 100 * MILLISECOND), 8, of(1))["reply"], "allowed");
    clients.told.ask(settle("commit", 8, of(1)));
    assert_eq!(clients.ask(1, Some(0), 9, of(1))["reply"], "allowed");
    // Both, and who came before that; what is kept outlives what was in flight.
    assert_eq!(clients.ask(2, Some(SECOND), 10, of(2))["reply"], "refused");
    assert_eq!(clients.ask(4, Some(SECOND + 1), 11, of(1))["reply"], "refused");
    clients.told.ask(settle("commit", 9, of(1)));
    clients.told.ask(settle("commit", 3, of(1)));
    clients.told.look(&limit);
    assert_eq!(clients.ask(1, Some(0), 12, of(2))["reply"], "refused");
    assert_eq!(clients.ask(1, Some(0), 12, of(1))["reply"], "allowed", "one is enough for who waits");
    clients.told.ask(settle("give_back", 12, of(1)));
    clients.told.pass(HALF - 1);
    assert_eq!(clients.ask(1, Some(0), 13, of(2))["retry_after"], "1");
    clients.told.pass(1);
    assert_eq!(clients.ask(1, Some(0), 13, of(2))["reply"], "allowed", "nobody asked again");
    // Of several, where nothing else refuses.
    let other = timeless("in_flight", 1);
    let rate = rule("refill", 1, 60 * SECOND);
    let both = || [charge("a", &limit, 1), charge("b", &other, 1)];
    assert_eq!(clients.ask(2, Some(SECOND), 14, both())["reply"], "refused");
    assert_eq!(clients.ask(1, Some(0), 15, [charge("b", &other, 1)])["reply"], "allowed");
    clients.told.ask(settle("commit", 13, of(2)));
    assert_eq!(clients.ask(1, Some(0), 16, of(2))["reply"], "refused");
    let reset = json!({ "request": "reset", "charges": of(0) });
    clients.told.ask(reset);
    assert_eq!(clients.ask(1, Some(0), 16, of(2))["reply"], "allowed");
    let rated = || [charge("rate", &rate, 1), charge("a", &limit, 2)];
    clients.told.ask(json!({ "request": "take", "charges": [charge("rate", &rate, 1)] }));
    assert_eq!(clients.ask(2, Some(SECOND), 17, rated())["binding"], "0");
    clients.told.ask(settle("commit", 16, of(2)));
    assert_eq!(clients.ask(1, Some(0), 18, of(2))["reply"], "allowed");
    // What can never be had is waited for by nobody.
    assert_eq!(clients.ask(2, Some(SECOND), 19, of(3))["retry_after"], Json::Null);
    clients.told.ask(settle("commit", 18, of(2)));
    assert_eq!(clients.ask(1, Some(0), 20, of(2))["reply"], "allowed");
    clients.told.ask(settle("commit", 20, of(2)));
    clients.told.pass(SECOND);
    // Those of one client who wait for something else stand back too.
    assert_eq!(clients.ask(1, Some(0), 21, of(1))["reply"], "allowed");
    assert_eq!(clients.ask(1, Some(0), 22, of(1))["reply"], "allowed");
    let both = || [charge("a", &limit, 2), charge("b", &other, 1)];
    clients.told.ask(settle("commit", 15, [charge("b", &other, 1)]));
    assert_eq!(clients.ask(1, Some(SECOND), 23, both())["reply"], "refused");
    clients.told.ask(settle("commit", 21, of(1)));
    assert_eq!(clients.ask(1, Some(0), 24, of(1))["reply"], "refused");
    assert_eq!(clients.ask(1, Some(SECOND), 24, of(1))["reply"], "allowed");
    clients.told.ask(settle("commit", 22, of(1)));
    clients.told.ask(settle("commit", 24, of(1)));
    assert_eq!(clients.ask(1, Some(0), 25, of(1))["reply"], "refused");
    assert_eq!(clients.ask(1, Some(SECOND), 23, both())["reply"], "allowed");
    // For who is far away it is kept for longer, and for no more than two seconds.
    for (reply, kept) in [(SECOND / 3, HALF + SECOND / 3), (60 * SECOND, 4 * HALF)] {
        let mut request = reserve(26, 30 * SECOND, of(1));
        request["waited"] = SECOND.to_string().into();
        request["reply"] = reply.to_string().into();
        assert_eq!(clients.send(2, request)["reply"], "refused");
        clients.told.ask(settle("commit", 23, both()));
        clients.told.pass(kept - 1);
        assert_eq!(clients.ask(1, Some(0), 23, both())["retry_after"], "1");
        clients.told.pass(1);
        assert_eq!(clients.ask(1, Some(0), 23, both())["reply"], "allowed");
    }
    clients.told
}
