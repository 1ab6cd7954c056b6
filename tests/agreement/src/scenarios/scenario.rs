//! A scenario as it is told: each step is performed at once, so that the next can name its fences.

use leasehold::slots::{Moment, Pool, transcript};
use leasehold::{Micros, SECOND};
use serde_json::{Value as Json, json};

use crate::{to_json, to_value};

/// When every scenario begins.
pub const START: Micros = 1_700_000_000 * SECOND;
/// The time to live of a scenario's leases: 30 s.
pub const TTL: &str = "30000000";

/// Steps, and the answers to them.
#[derive(Debug)]
pub struct Scenario {
    name: &'static str,
    about: &'static str,
    /// The server's wall clock.
    pub wall: Micros,
    /// The server's identity.
    pub incarnation: &'static str,
    /// When the server started.
    pub up_since: Micros,
    pool: Pool,
    steps: Vec<Json>,
    answers: Vec<Json>,
}

impl Scenario {
    /// A scenario on a server that has been up for long and does not have the pool.
    pub fn new(name: &'static str, about: &'static str) -> Self {
        Scenario {
            name,
            about,
            wall: START,
            incarnation: "first",
            up_since: 0,
            pool: Pool::default(),
            steps: Vec::new(),
            answers: Vec::new(),
        }
    }

    /// As [`Self::new`], with these slots defined.
    pub fn of(name: &'static str, about: &'static str, slots: &[&str]) -> Self {
        let mut scenario = Scenario::new(name, about);
        scenario.ask(define(slots));
        scenario
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

    /// Lets seconds pass.
    pub fn pass(&mut self, seconds: u64) -> &mut Self {
        self.wall += seconds * SECOND;
        self
    }

    /// Performs an envelope and returns its answer.
    ///
    /// # Panics
    /// If that is no envelope.
    pub fn send(&mut self, envelope: Json) -> Json {
        let step = json!({
            "wall": self.wall.to_string(),
            "incarnation": self.incarnation,
            "up_since": self.up_since.to_string(),
            "envelope": envelope,
        });
        let read = transcript::read(&to_value(&json!([step]))).expect("a step").remove(0);
        let moment = Moment { wall: read.wall, incarnation: &read.incarnation, up_since: read.up_since };
        let answer = to_json(&transcript::answer(&self.pool.apply(moment, &read.envelope)));
        self.steps.push(step);
        self.answers.push(answer.clone());
        answer
    }

    /// Performs one request and returns its reply.
    pub fn ask(&mut self, request: Json) -> Json {
        self.send(json!({ "seed": "1", "requests": [request] }))["replies"][0].clone()
    }

    /// Asks for all that is known of slots.
    pub fn look(&mut self, slots: &[&str]) -> Json {
        self.ask(json!({ "request": "inspect", "slots": slots }))
    }

    /// Leases the slot and returns the fence.
    ///
    /// # Panics
    /// If it is refused.
    pub fn lease(&mut self, slot: &str) -> Json {
        let reply = self.ask(these(&[slot]));
        assert_eq!(reply["reply"], "granted", "{}: {reply}", self.name);
        reply["grants"][0]["fence"].clone()
    }

    /// Leases the slot, records the chain's nonce, and returns the fence.
    pub fn synced(&mut self, slot: &str, nonce: u64) -> Json {
        let fence = self.lease(slot);
        self.ask(resync(slot, &fence, nonce));
        fence
    }
}

/// A definition of slots of weight 1.
pub fn define(slots: &[&str]) -> Json {
    let slots: Vec<_> = slots.iter().map(|slot| json!({ "slot": slot })).collect();
    json!({ "request": "define", "slots": slots, "longest": TTL })
}

/// A claim of these slots, all or none.
pub fn these(slots: &[&str]) -> Json {
    json!({ "request": "claim", "among": slots, "least": slots.len().to_string(), "ttl": TTL })
}

/// A claim of any slot, by this strategy.
pub fn any(strategy: &str, least: u32, most: u32) -> Json {
    json!({
        "request": "claim", "any": strategy, "least": least.to_string(), "most": most.to_string(),
        "holder": "340282366920938463463374607431768211455", "ttl": TTL,
    })
}

/// A renewal.
pub fn renew(slot: &str, fence: &Json) -> Json {
    json!({ "request": "renew", "slot": slot, "fence": fence, "ttl": TTL })
}

/// A release whose outcome needs no nonce.
pub fn release(slot: &str, fence: &Json, outcome: &str) -> Json {
    json!({ "request": "release", "slot": slot, "fence": fence, "outcome": outcome })
}

/// A release after a nonce was used.
pub fn used(slot: &str, fence: &Json, next: u64) -> Json {
    json!({ "request": "release", "slot": slot, "fence": fence, "outcome": "used", "next": next.to_string() })
}

/// The chain's nonce; for a minute the record outweighs a lower one.
pub fn resync(slot: &str, fence: &Json, chain: u64) -> Json {
    json!({
        "request": "resync", "slot": slot, "fence": fence, "chain": chain.to_string(), "settle": "60000000",
    })
}

/// A change of a slot.
pub fn change(slot: &str, change: &str) -> Json {
    json!({ "request": "change", "slot": slot, "change": change })
}
