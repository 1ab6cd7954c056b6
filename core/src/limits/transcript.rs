//! Transcripts of limits: envelopes at times of the store's clock and the answers to them, as values that every language
//! can carry.
//!
//! As those of slots ([`crate::slots::transcript`]): every number is decimal text, and a key that nobody knows is an error.

use super::{
    Act, Amount, Answer, Charge, Envelope, Ledger, Moment, Reply, Request, Rule, Seen, Settlement, Standing,
    Verdict, Waited,
};
use crate::Micros;
use crate::error::{Error, Result};
use crate::id::Name;
use crate::slots::transcript::{digits, lane, list, named, needed, number, optional, unknown};
use crate::value::{Options, Value};

/// An envelope, and when it is performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The store's wall clock.
    pub wall: Micros,
    /// The server's identity, `-` if none is told.
    pub incarnation: String,
    /// What is performed.
    pub envelope: Envelope,
}

impl Step {
    /// When and on what server that is.
    #[must_use]
    pub fn moment(&self) -> Moment<'_> {
        Moment { wall: self.wall, incarnation: &self.incarnation }
    }
}

/// Performs the steps on a fresh ledger, one after the other, and returns the list of answers.
///
/// # Errors
/// `invalid_argument` naming what is no step.
pub fn replay(steps: &Value) -> Result<Value> {
    let mut ledger = Ledger::default();
    let perform = |step: Step| answer(&ledger.apply(step.moment(), &step.envelope));
    Ok(Value::List(read(steps)?.into_iter().map(perform).collect()))
}

/// Reads a list of steps.
///
/// # Errors
/// `invalid_argument` naming what is no step.
pub fn read(steps: &Value) -> Result<Vec<Step>> {
    list(steps, |value| {
        let mut keys = Options::new(value)?;
        let step = Step {
            wall: needed(keys.take("wall", number)?, "wall")?,
            incarnation: keys.take("incarnation", Value::as_text)?.unwrap_or("-").to_owned(),
            envelope: needed(keys.take("envelope", envelope)?, "envelope")?,
        };
        keys.end().map(|()| step)
    })
}

/// An answer as a value.
pub fn answer(answer: &Answer) -> Value {
    match answer {
        Answer::Stale { now } => Value::map([("answer", "stale".into()), ("now", digits(*now))]),
        Answer::Performed(performed) => {
            let replies = performed.replies.iter().map(reply).collect();
            let mut entries = vec![
                ("answer".to_owned(), "performed".into()),
                ("now".to_owned(), digits(performed.now)),
                ("replies".to_owned(), Value::List(replies)),
            ];
            if !performed.standings.is_empty() {
                let standings = performed.standings.iter().map(|standing| match standing {
                    Some(standing) => digits(standing),
                    None => Value::Null,
                });
                entries.push(("standings".to_owned(), Value::List(standings.collect())));
            }
            Value::Map(entries)
        }
    }
}

fn envelope(value: &Value) -> Result<Envelope> {
    let mut keys = Options::new(value)?;
    let envelope = Envelope {
        lane: keys.take("lane", lane)?,
        not_after: keys.take("not_after", number)?,
        seen: keys.take("seen", |value| list(value, seen))?.unwrap_or_default(),
        requests: needed(keys.take("requests", |value| list(value, request))?, "requests")?,
    };
    keys.end().map(|()| envelope)
}

fn seen(value: &Value) -> Result<Seen> {
    let mut keys = Options::new(value)?;
    let kind = match needed(keys.take("kind", Value::as_text)?, "kind")? {
        "lifetime" => 'l',
        "budget" => 'b',
        other => return Err(unknown("kind", other)),
    };
    let standing = |value: &Value| {
        Standing::parse(value.as_text()?).ok_or_else(|| Error::invalid("", "is not how a limit stands"))
    };
    let seen = Seen {
        kind,
        limit: needed(keys.take("limit", |value| Name::new(value.as_text()?))?, "limit")?,
        standing: needed(keys.take("standing", standing)?, "standing")?,
    };
    keys.end().map(|()| seen)
}

fn request(value: &Value) -> Result<Request> {
    let mut keys = Options::new(value)?;
    let id = |keys: &mut Options<'_>| needed(keys.take("id", number)?, "id");
    let act = match needed(keys.take("request", Value::as_text)?, "request")? {
        "take" => Act::Take,
        "peek" => Act::Peek,
        "refund" => Act::Refund,
        "reset" => Act::Reset,
        "reserve" => Act::Reserve {
            id: id(&mut keys)?,
            ttl: needed(keys.take("ttl", number)?, "ttl")?,
            waited: waited(&mut keys)?,
        },
        "renew" => Act::Renew { id: id(&mut keys)?, ttl: needed(keys.take("ttl", number)?, "ttl")? },
        "commit" => Act::Commit { id: id(&mut keys)? },
        "keep" => Act::Keep { id: id(&mut keys)? },
        "give_back" => Act::GiveBack { id: id(&mut keys)? },
        other => return Err(unknown("request", other)),
    };
    let charges = needed(keys.take("charges", |value| list(value, charge))?, "charges")?;
    keys.end().map(|()| Request { act, charges })
}

fn waited(keys: &mut Options<'_>) -> Result<Option<Waited>> {
    let Some(time) = keys.take("waited", number)? else { return Ok(None) };
    Ok(Some(Waited { time, reply: keys.take("reply", number)?.unwrap_or(0) }))
}

fn charge(value: &Value) -> Result<Charge> {
    let mut keys = Options::new(value)?;
    let charge = Charge {
        limit: needed(keys.take("limit", |value| Name::new(value.as_text()?))?, "limit")?,
        rule: needed(keys.take("rule", rule)?, "rule")?,
        cost: keys.take("cost", amount)?.unwrap_or_default(),
        open: false,
    };
    keys.end().map(|()| charge)
}

fn rule(value: &Value) -> Result<Rule> {
    let mut keys = Options::new(value)?;
    let kind = needed(keys.take("kind", Value::as_text)?, "kind")?;
    let max = needed(keys.take("max", amount)?, "max")?;
    let period = keys.take("period", number)?.unwrap_or(0);
    let small = max.saturating_u64();
    let rule = match kind {
        "each" => Rule::Each { max },
        "refill" => Rule::Refill { max: small, period },
        "gcra" => Rule::Gcra { max: small, period, burst: needed(keys.take("burst", number)?, "burst")? },
        "rolling" => Rule::Rolling { max: small, period },
        "lifetime" => Rule::Lifetime { max },
        "budget" => Rule::Budget { max, period, offset: keys.take("offset", number)?.unwrap_or(0) },
        "in_flight" => Rule::InFlight { max: small },
        other => return Err(unknown("kind", other)),
    };
    keys.end()?;
    rule.check().map(|()| rule)
}

fn amount(value: &Value) -> Result<Amount> {
    Amount::parse(value.as_text()?)
}

fn reply(reply: &Reply) -> Value {
    match reply {
        Reply::Judged(verdict) => {
            let Verdict { allowed, binding, remaining, retry_after, reset_after } = verdict;
            named(
                if *allowed { "allowed" } else { "refused" },
                [
                    ("binding", digits(binding)),
                    ("remaining", digits(remaining)),
                    ("retry_after", optional(*retry_after)),
                    ("reset_after", optional(*reset_after)),
                ],
            )
        }
        Reply::Settled(Settlement::Done) => named("settled", []),
        Reply::Settled(Settlement::Before { given_back }) => {
            named("before", [("given_back", Value::Bool(*given_back))])
        }
        Reply::Settled(Settlement::Gone) => named("gone", []),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(act: &str, rule: Value, more: &[(&str, Value)]) -> Value {
        let charge = Value::map([("limit", "a".into()), ("rule", rule), ("cost", "2".into())]);
        let mut request =
            vec![("request".to_owned(), act.into()), ("charges".to_owned(), Value::List(vec![charge]))];
        request.extend(more.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        let envelope = Value::map([("requests", Value::List(vec![Value::Map(request)]))]);
        Value::List(vec![Value::map([("wall", "5".into()), ("envelope", envelope)])])
    }

    fn refill(max: &str) -> Value {
        Value::map([("kind", "refill".into()), ("max", max.into()), ("period", "10".into())])
    }

    #[test]
    fn a_take_is_performed_and_its_answer_is_in_words_and_digits() {
        let told = named(
            "allowed",
            [
                ("binding", "0".into()),
                ("remaining", "1".into()),
                ("retry_after", "0".into()),
                ("reset_after", "7".into()),
            ],
        );
        let expected = Value::map([
            ("answer", "performed".into()),
            ("now", "5".into()),
            ("replies", Value::List(vec![told])),
        ]);
        assert_eq!(replay(&step("take", refill("3"), &[])).unwrap(), Value::List(vec![expected]));
    }

    #[test]
    fn what_is_no_step_is_named() {
        let request = "[0].envelope.requests[0]";
        for (steps, field) in [
            (step("tke", refill("3"), &[]), format!("{request}.request")),
            (step("reserve", refill("3"), &[("ttl", "5".into())]), format!("{request}.id")),
            (step("take", refill("3"), &[("ttl", "5".into())]), format!("{request}.ttl")),
            (step("take", refill("03"), &[]), format!("{request}.charges[0].rule.max")),
            (step("take", refill("1000000000000001"), &[]), format!("{request}.charges[0].rule.max")),
            (
                step("take", Value::map([("kind", "leaky".into()), ("max", "3".into())]), &[]),
                format!("{request}.charges[0].rule.kind"),
            ),
        ] {
            assert_eq!(replay(&steps).unwrap_err().field(), Some(&*field));
        }
    }
}
