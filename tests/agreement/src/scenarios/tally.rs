//! A scenario of limits: steps in the words of [`leasehold::limits::transcript`], performed on the machine as they are told.
//!
//! What a scenario is about it says by [`Tally::allow`] and [`Tally::refuse`]: the machine that tells otherwise makes no
//! vector. Everything else of the answers is recorded as it comes.

use leasehold::Micros;
use leasehold::limits::{Ledger, transcript};
use serde_json::{Value as Json, json};

use super::scenario::START;
use crate::{to_json, to_value};

/// Steps, and the answers to them.
#[derive(Debug)]
pub struct Tally {
    name: &'static str,
    about: &'static str,
    /// The store's wall clock.
    pub wall: Micros,
    /// The server's identity, if it has one.
    pub incarnation: Option<&'static str>,
    ledger: Ledger,
    steps: Vec<Json>,
    answers: Vec<Json>,
}

impl Tally {
    /// A scenario of limits that nobody has used.
    pub fn new(name: &'static str, about: &'static str) -> Self {
        let (steps, answers) = (Vec::new(), Vec::new());
        Tally { name, about, wall: START, incarnation: None, ledger: Ledger::default(), steps, answers }
    }

    /// The name of its file, without the ending.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The file's text.
    pub fn text(&self) -> String {
        let file = json!({
            "name": self.name, "about": self.about, "steps": self.steps, "answers": self.answers,
        });
        format!("{file:#}\n")
    }

    /// Lets time pass.
    pub fn pass(&mut self, time: Micros) -> &mut Self {
        self.wall += time;
        self
    }

    /// Performs an envelope and returns its answer.
    ///
    /// # Panics
    /// If that is no envelope.
    pub fn send(&mut self, envelope: Json) -> Json {
        let mut step = json!({ "wall": self.wall.to_string(), "envelope": envelope });
        if let Some(incarnation) = self.incarnation {
            step["incarnation"] = incarnation.into();
        }
        let read = transcript::read(&to_value(&json!([step]))).expect("a step").remove(0);
        let answer = to_json(&transcript::answer(&self.ledger.apply(read.moment(), &read.envelope)));
        self.steps.push(step);
        self.answers.push(answer.clone());
        answer
    }

    /// Performs one request and returns its reply.
    pub fn ask(&mut self, request: Json) -> Json {
        self.send(json!({ "requests": [request] }))["replies"][0].clone()
    }

    /// Has a client that has seen this of the limit `a` perform one request of it, and returns the reply and what it sees then.
    pub fn ask_having_seen(&mut self, kind: &str, seen: &Json, request: Json) -> (Json, Json) {
        let seen: Vec<_> = (!seen.is_null())
            .then(|| json!({ "kind": kind, "limit": "a", "standing": seen }))
            .into_iter()
            .collect();
        let answer = self.send(json!({ "seen": seen, "requests": [request] }));
        (answer["replies"][0].clone(), answer["standings"][0].clone())
    }

    /// Takes of a limit, which allows it, and returns what remains.
    ///
    /// # Panics
    /// If it is refused.
    pub fn allow(&mut self, rule: &Json, cost: impl ToString) -> String {
        let reply = self.ask(request("take", [charge("a", rule, cost)]));
        assert_eq!(reply["reply"], "allowed", "{}: step {}: {reply}", self.name, self.steps.len());
        reply["remaining"].as_str().expect("digits").to_owned()
    }

    /// Takes of a limit, which refuses it, and returns when it would not: `null` if ever.
    ///
    /// # Panics
    /// If it is allowed.
    pub fn refuse(&mut self, rule: &Json, cost: impl ToString) -> Json {
        let reply = self.ask(request("take", [charge("a", rule, cost)]));
        assert_eq!(reply["reply"], "refused", "{}: step {}: {reply}", self.name, self.steps.len());
        reply["retry_after"].clone()
    }

    /// Takes of a limit, which refuses it; waits as long as it says, to the last microsecond but one, and is refused; then it
    /// is allowed.
    ///
    /// # Panics
    /// If the told time is not the first at which it is allowed.
    pub fn wait(&mut self, rule: &Json, cost: impl ToString) {
        let told = self.refuse(rule, cost.to_string());
        let time: Micros = told.as_str().and_then(|told| told.parse().ok()).expect("a time");
        self.pass(time - 1).refuse(rule, cost.to_string());
        self.pass(1).allow(rule, cost);
    }

    /// Looks how it stands, by this rule.
    pub fn look(&mut self, rule: &Json) -> Json {
        self.ask(request("peek", [charge("a", rule, 0)]))
    }
}

/// A request of these charges.
pub fn request<const N: usize>(what: &str, charges: [Json; N]) -> Json {
    json!({ "request": what, "charges": charges.as_slice() })
}

/// A request that makes a reservation.
pub fn reserve<const N: usize>(id: u128, ttl: Micros, charges: [Json; N]) -> Json {
    json!({ "request": "reserve", "id": id.to_string(), "ttl": ttl.to_string(), "charges": charges.as_slice() })
}

/// A request that prolongs a reservation.
pub fn renew<const N: usize>(id: u128, ttl: Micros, charges: [Json; N]) -> Json {
    json!({ "request": "renew", "id": id.to_string(), "ttl": ttl.to_string(), "charges": charges.as_slice() })
}

/// A request that ends a reservation: `commit` or `give_back`.
pub fn settle<const N: usize>(how: &str, id: u128, charges: [Json; N]) -> Json {
    json!({ "request": how, "id": id.to_string(), "charges": charges.as_slice() })
}

/// What is taken of a limit.
pub fn charge(limit: &str, rule: &Json, cost: impl ToString) -> Json {
    json!({ "limit": limit, "rule": rule, "cost": cost.to_string() })
}

/// A rule of this kind, with a maximum and a period.
pub fn rule(kind: &str, max: impl ToString, period: Micros) -> Json {
    json!({ "kind": kind, "max": max.to_string(), "period": period.to_string() })
}

/// A rule by which one comes every `period / max`, ahead of which a burst may run.
pub fn gcra(max: u64, period: Micros, burst: u64) -> Json {
    json!({
        "kind": "gcra", "max": max.to_string(), "period": period.to_string(), "burst": burst.to_string(),
    })
}

/// A budget whose periods begin so long after midnight.
pub fn budget(max: impl ToString, period: Micros, offset: Micros) -> Json {
    json!({
        "kind": "budget", "max": max.to_string(), "period": period.to_string(), "offset": offset.to_string(),
    })
}

/// A rule that knows no time.
pub fn timeless(kind: &str, max: impl ToString) -> Json {
    json!({ "kind": kind, "max": max.to_string() })
}
