//! Transcripts of one process's selections: what it learns of its wallet, what its selections need and hear, what
//! strategies choose, as values that every language can carry.
//!
//! As those of slots ([`crate::slots::transcript`]): every number is decimal text, and a key that nobody knows is an error.
//! Tokens go by their ids, selections by numbers of the transcript's own.

use std::collections::BTreeMap;

use super::{
    Amount, Bounds, Candidates, Draw, Event, Page, Selector, Step, Token, Verdict, named as strategy,
};
use crate::error::{Error, Result};
use crate::slots::transcript::{digits, list, named, needed, number, optional, unknown};
use crate::value::{Options, Value};
use crate::{Micros, SECOND};

/// A process, as a transcript moves it.
#[derive(Debug)]
pub struct Process {
    pool: Candidates,
    selectors: BTreeMap<u64, Selector>,
}

/// Performs the steps on a fresh process, one after the other, and returns the list of answers.
///
/// # Errors
/// `invalid_argument` naming what is no step.
pub fn replay(steps: &Value) -> Result<Value> {
    let mut process = Process::default();
    let perform =
        |(step, at): (&Value, usize)| process.perform(step).map_err(|error| error.within(&format!("[{at}]")));
    Ok(Value::List(steps.as_list()?.iter().zip(0..).map(perform).collect::<Result<_>>()?))
}

impl Default for Process {
    fn default() -> Self {
        Process { pool: Candidates::new(1, 30 * SECOND), selectors: BTreeMap::new() }
    }
}

impl Process {
    /// Performs one step and returns its answer.
    ///
    /// # Errors
    /// `invalid_argument` naming what is no step.
    pub fn perform(&mut self, step: &Value) -> Result<Value> {
        let mut keys = Options::new(step)?;
        let now = keys.take("now", number)?.unwrap_or(0);
        let word = needed(keys.take("step", Value::as_text)?, "step")?;
        let answer = match word {
            "begin" => self.begin(&mut keys)?,
            "next_page" => named("page", [("after", text(self.pool.next_page(now)))]),
            "page" => self.page(now, &mut keys)?,
            "added" => {
                self.pool.added(now, needed(keys.take("token", Token::read)?, "token")?)?;
                named("heard", [])
            }
            "removed" => {
                self.pool.removed(now, needed(keys.take("id", Value::as_text)?, "id")?)?;
                named("heard", [])
            }
            "live" => {
                self.pool.set_live(now, needed(keys.take("live", Value::as_bool)?, "live")?);
                named("heard", [])
            }
            "put_back" => {
                let places = self.places(&mut keys, "tokens")?;
                self.pool.put_back(now, &places);
                named("heard", [])
            }
            "spent" => {
                let until = needed(keys.take("until", number)?, "until")?;
                let places = self.places(&mut keys, "tokens")?;
                places.into_iter().for_each(|place| self.pool.spent(place, until));
                named("heard", [])
            }
            "count" => self.count(now),
            "choose" => choose(&mut keys)?,
            "select" => self.select(now, &mut keys)?,
            "poll" => self.poll(now, &mut keys)?,
            "hear" => self.hear(now, &mut keys)?,
            other => return Err(unknown("step", other)),
        };
        keys.end().map(|()| answer)
    }

    fn begin(&mut self, keys: &mut Options<'_>) -> Result<Value> {
        let seed = needed(keys.take("seed", number)?, "seed")?;
        let max_age = needed(keys.take("max_age", number)?, "max_age")?;
        *self = Process { pool: Candidates::new(seed, max_age), selectors: BTreeMap::new() };
        Ok(named("heard", []))
    }

    fn page(&mut self, now: Micros, keys: &mut Options<'_>) -> Result<Value> {
        let after = keys.take("after", |value| value.as_text().map(str::to_owned))?;
        let page = needed(keys.take("page", Page::read)?, "page")?;
        self.pool.absorb(now, after.as_deref(), page)?;
        Ok(named("heard", []))
    }

    fn count(&mut self, now: Micros) -> Value {
        let (known, total, free) = (self.pool.len(), self.pool.total(), self.pool.free(now));
        let sums = [("total", digits(total.capped())), ("free", digits(free.capped()))];
        named("counted", [("known", digits(known)), sums[0].clone(), sums[1].clone()])
    }

    fn select(&mut self, now: Micros, keys: &mut Options<'_>) -> Result<Value> {
        let call = needed(keys.take("call", number)?, "call")?;
        let target = needed(keys.take("target", amount)?, "target")?;
        let by = keys.take("strategy", |value| strategy(value.as_text()?))?;
        let usual = Bounds::default();
        let bounds = Bounds {
            inputs: keys.take("inputs", number)?.unwrap_or(usual.inputs),
            attempts: keys.take("attempts", number)?.unwrap_or(usual.attempts),
            rounds: keys.take("rounds", number)?.unwrap_or(usual.rounds),
            verify: keys.take("verify", Value::as_bool)?.unwrap_or(usual.verify),
            pause: usual.pause,
        };
        let seed = needed(keys.take("seed", number)?, "seed")?;
        let deadline = keys.take("deadline", number)?.unwrap_or(now);
        let by = needed(by, "strategy")?;
        self.selectors.insert(call, Selector::new(target, by, bounds, seed, now, deadline));
        Ok(named("heard", []))
    }

    fn poll(&mut self, now: Micros, keys: &mut Options<'_>) -> Result<Value> {
        let step = selector(&mut self.selectors, keys)?.poll(&mut self.pool, now);
        let ids = |places: &[u32]| ("tokens", self.ids(places));
        Ok(match step {
            Step::Fetch => named("fetch", []),
            Step::Claim(places) => named("claim", [ids(&places)]),
            Step::Verify(places) => named("verify", [ids(&places)]),
            Step::GiveBack(places) => named("give_back", [ids(&places)]),
            Step::Pause(time) => named("pause", [("time", digits(time))]),
            Step::Done(verdict) => told(verdict),
        })
    }

    fn hear(&mut self, now: Micros, keys: &mut Options<'_>) -> Result<Value> {
        let event = match needed(keys.take("event", Value::as_text)?, "event")? {
            "fetched" => Some(Event::Fetched),
            "claimed" => {
                let granted = keys.take("granted", |value| list(value, |grant| self.grant(grant)))?;
                let earliest = keys.take("earliest", number)?;
                Some(Event::Claimed { granted: needed(granted, "granted")?, earliest })
            }
            "unanswered" => Some(Event::Unanswered),
            "verified" => Some(Event::Verified(self.places(keys, "spent")?)),
            "given_back" => Some(Event::GivenBack),
            "paused" => Some(Event::Paused),
            "called" => Some(Event::Called),
            "abandoned" => None,
            other => return Err(unknown("event", other)),
        };
        let selector = selector(&mut self.selectors, keys)?;
        match event {
            Some(event) => selector.handle(&mut self.pool, now, event),
            None => selector.abandon(&mut self.pool, now),
        }
        let held = selector.held().to_vec();
        Ok(named("heard", [("held", self.ids(&held))]))
    }

    fn grant(&self, value: &Value) -> Result<(u32, Micros)> {
        let mut keys = Options::new(value)?;
        let place = needed(keys.take("id", |value| self.place(value))?, "id")?;
        let until = needed(keys.take("until", number)?, "until")?;
        keys.end().map(|()| (place, until))
    }

    fn places(&self, keys: &mut Options<'_>, key: &'static str) -> Result<Vec<u32>> {
        needed(keys.take(key, |value| list(value, |id| self.place(id)))?, key)
    }

    fn place(&self, id: &Value) -> Result<u32> {
        let id = id.as_text()?;
        self.pool.place(id).ok_or_else(|| Error::invalid("", format_args!("no token \"{id}\" is known")))
    }

    fn ids(&self, places: &[u32]) -> Value {
        let id = |&place: &u32| self.pool.get(place).map(|(token, _)| Value::from(&*token.id));
        Value::List(places.iter().filter_map(id).collect())
    }
}

fn selector<'a>(
    selectors: &'a mut BTreeMap<u64, Selector>,
    keys: &mut Options<'_>,
) -> Result<&'a mut Selector> {
    let call: u64 = needed(keys.take("call", number)?, "call")?;
    selectors.get_mut(&call).ok_or_else(|| Error::invalid("call", "has not begun"))
}

/// What a strategy chooses of amounts that are offered to it.
fn choose(keys: &mut Options<'_>) -> Result<Value> {
    let by = needed(keys.take("strategy", |value| strategy(value.as_text()?))?, "strategy")?;
    let offered = needed(keys.take("offered", |value| list(value, amount))?, "offered")?;
    let target = needed(keys.take("target", amount)?, "target")?;
    let most = needed(keys.take("most", number)?, "most")?;
    let seed = needed(keys.take("seed", number)?, "seed")?;
    Ok(match by.choose(&offered, target, most, &mut Draw::new(seed)) {
        Some(chosen) => named("chosen", [("places", Value::List(chosen.iter().map(digits).collect()))]),
        None => named("nothing", []),
    })
}

fn told(verdict: Verdict) -> Value {
    match verdict {
        Verdict::Selected { sum, change } => {
            named("selected", [("sum", digits(sum)), ("change", digits(change))])
        }
        Verdict::Insufficient { held } => named("insufficient", [("held", digits(held))]),
        Verdict::Locked { until } => named("locked", [("until", optional(until))]),
        Verdict::Contended => named("contended", []),
        Verdict::TimedOut => named("timed_out", []),
        Verdict::NoFit => named("no_fit", []),
    }
}

fn amount(value: &Value) -> Result<Amount> {
    Amount::parse(value.as_text()?)
}

fn text(text: Option<String>) -> Value {
    text.map_or(Value::Null, |text| text.as_str().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(word: &str, more: &[(&str, &str)]) -> Value {
        let more = more.iter().map(|&(key, value)| (key.to_owned(), value.into()));
        Value::Map([("step".to_owned(), word.into())].into_iter().chain(more).collect())
    }

    #[test]
    fn what_is_no_step_is_named() {
        let select = [("call", "1"), ("target", "5"), ("strategy", "exact"), ("seed", "1")];
        for (steps, field) in [
            (vec![step("pull", &[])], "[0].step"),
            (vec![step("count", &[("call", "1")])], "[0].call"),
            (vec![step("poll", &[("call", "1")])], "[0].call"),
            (vec![step("select", &select), step("hear", &[("call", "1")])], "[1].event"),
            (vec![step("select", &[("call", "1"), ("target", "-5")])], "[0].target"),
        ] {
            assert_eq!(replay(&Value::List(steps)).unwrap_err().field(), Some(field));
        }
        assert!(replay(&Value::List(vec![step("select", &select), step("poll", &[("call", "1")])])).is_ok());
    }
}
