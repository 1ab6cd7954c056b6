//! A scenario of selections: steps in the words of [`leasehold::tokens::transcript`], performed as they are told, with a
//! source and a lock table that answer what they ask.

use std::collections::BTreeMap;

use leasehold::tokens::transcript::Process;
use leasehold::{Micros, SECOND};
use serde_json::{Value as Json, json};

use super::scenario::START;
use crate::{to_json, to_value};

/// How long a lock lives.
pub const TTL: Micros = 60 * SECOND;

/// Steps, and the answers to them.
#[derive(Debug)]
pub struct Purse {
    name: &'static str,
    about: &'static str,
    /// The clock of the process.
    pub now: Micros,
    /// What the source lists, in its order.
    pub source: Vec<(String, String)>,
    /// The most on a page.
    pub limit: usize,
    /// What others have, and until when.
    pub others: BTreeMap<String, Micros>,
    process: Process,
    calls: u64,
    steps: Vec<Json>,
    answers: Vec<Json>,
}

impl Purse {
    /// A scenario of a process that knows nothing of its wallet, in which there are tokens of these amounts: `t0` and so on.
    pub fn of(name: &'static str, about: &'static str, amounts: &[u64]) -> Self {
        let (steps, answers) = (Vec::new(), Vec::new());
        let source = amounts.iter().zip(0..).map(|(amount, at)| (format!("t{at}"), amount.to_string()));
        Purse {
            name,
            about,
            now: START,
            source: source.collect(),
            limit: 1_000,
            others: BTreeMap::new(),
            process: Process::default(),
            calls: 0,
            steps,
            answers,
        }
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
        self.now += time;
        self
    }

    /// Performs a step, now, and returns its answer.
    ///
    /// # Panics
    /// If that is no step.
    pub fn step(&mut self, word: &str, mut step: Json) -> Json {
        step["step"] = word.into();
        step["now"] = self.now.to_string().into();
        let answer = self.process.perform(&to_value(&step));
        let answer = to_json(&answer.unwrap_or_else(|error| panic!("{}: {step}: {error}", self.name)));
        self.steps.push(step);
        self.answers.push(answer.clone());
        answer
    }

    /// Begins a selection that does not wait, of this target by this strategy and with what else is said; its number.
    pub fn select(&mut self, target: impl ToString, strategy: &str, more: Json) -> u64 {
        self.calls += 1;
        let mut step = json!({
            "call": self.calls.to_string(), "target": target.to_string(), "strategy": strategy,
            "seed": self.calls.to_string(),
        });
        if let (Json::Object(step), Json::Object(more)) = (&mut step, more) {
            step.extend(more);
        }
        self.step("select", step);
        self.calls
    }

    /// The same of one that waits for so long.
    pub fn wait(&mut self, target: impl ToString, strategy: &str, time: Micros) -> u64 {
        self.select(target, strategy, json!({ "deadline": (self.now + time).to_string() }))
    }

    /// What a selection needs now.
    pub fn poll(&mut self, call: u64) -> Json {
        self.step("poll", json!({ "call": call.to_string() }))
    }

    /// Does what a selection needs until it is done, and returns how it ended. One that has failed is abandoned.
    pub fn run(&mut self, call: u64) -> Json {
        loop {
            let needs = self.poll(call);
            if !self.answer(call, &needs) {
                self.leave(call, &needs);
                return needs;
            }
        }
    }

    /// The same of several, of which each does one thing after the other in turn.
    pub fn race(&mut self, calls: &[u64]) -> Vec<Json> {
        let mut ends = vec![Json::Null; calls.len()];
        while ends.contains(&Json::Null) {
            for (&call, end) in calls.iter().zip(&mut ends).filter(|(_, end)| end.is_null()) {
                let needs = self.poll(call);
                if !self.answer(call, &needs) {
                    self.leave(call, &needs);
                    *end = needs;
                }
            }
        }
        ends
    }

    fn leave(&mut self, call: u64, end: &Json) {
        if end["reply"] != "selected" {
            self.hear(call, "abandoned", json!({}));
        }
    }

    /// A selection hears of an event.
    pub fn hear(&mut self, call: u64, event: &str, mut more: Json) -> Json {
        more["call"] = call.to_string().into();
        more["event"] = event.into();
        self.step("hear", more)
    }

    /// Answers what a selection needs; whether it goes on.
    pub fn answer(&mut self, call: u64, needs: &Json) -> bool {
        match needs["reply"].as_str().expect("a word") {
            "fetch" => {
                self.fetch();
                self.hear(call, "fetched", json!({}));
            }
            "claim" => {
                let now = self.now;
                self.others.retain(|_, until| *until > now);
                let others = &self.others;
                let free = ids(needs).into_iter().filter(|id| !others.contains_key(id));
                let until = (now + TTL).to_string();
                let granted: Vec<Json> = free.map(|id| json!({ "id": id, "until": until })).collect();
                let lost = ids(needs).into_iter().filter_map(|id| others.get(&id).copied());
                let mut event = json!({ "granted": granted });
                if let Some(earliest) = lost.min() {
                    event["earliest"] = earliest.to_string().into();
                }
                self.hear(call, "claimed", event);
            }
            "verify" => {
                let gone = |id: &String| !self.source.iter().any(|(listed, _)| listed == id);
                let spent: Vec<String> = ids(needs).into_iter().filter(gone).collect();
                self.hear(call, "verified", json!({ "spent": spent }));
            }
            "give_back" => {
                self.hear(call, "given_back", json!({}));
            }
            "pause" => {
                let time: Micros = needs["time"].as_str().and_then(|time| time.parse().ok()).expect("digits");
                self.pass(time);
                self.hear(call, "paused", json!({}));
            }
            _ => return false,
        }
        true
    }

    /// The next page.
    pub fn fetch(&mut self) {
        let after = self.step("next_page", json!({}))["after"].clone();
        let skip: usize = after.as_str().map_or(0, |after| after.parse().expect("a cursor"));
        let rest = self.source.iter().skip(skip);
        let tokens: Vec<Json> =
            rest.take(self.limit).map(|(id, amount)| json!({ "id": id, "amount": amount })).collect();
        let end = skip + tokens.len();
        let mut step = json!({ "page": { "tokens": tokens } });
        if end < self.source.len() {
            step["page"]["next"] = end.to_string().into();
        }
        if !after.is_null() {
            step["after"] = after;
        }
        self.step("page", step);
    }
}

/// The tokens that an answer names.
pub fn ids(answer: &Json) -> Vec<String> {
    let list = answer.get("tokens").or(answer.get("held")).and_then(Json::as_array);
    list.into_iter().flatten().filter_map(|id| id.as_str().map(str::to_owned)).collect()
}
