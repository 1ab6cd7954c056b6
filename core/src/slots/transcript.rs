//! Transcripts: envelopes at moments and the answers to them, as values that every language can carry.
//!
//! Every number is decimal text, so that no language's numbers can bend it; what is one of several is a
//! word; a key that nobody knows is an error. Tests of every language replay the same transcripts. Those of limits are
//! written with the same words ([`crate::limits::transcript`]).

use super::{
    Answer, Calls, Choice, Claim, Envelope, Lane, LeaseRef, Loss, Moment, Pool, QuietTime, Refusal, Reply,
    Request, SlotChange, SlotSpec, SlotView, Strategy,
};
use crate::Micros;
use crate::error::{Error, Result};
use crate::id::SlotId;
use crate::nonce::{NonceRecord, Outcome};
use crate::value::{Options, Value};

/// An envelope, and when and on what server it is performed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The server's wall clock.
    pub wall: Micros,
    /// The server's identity.
    pub incarnation: String,
    /// When the server started.
    pub up_since: Micros,
    /// What is performed.
    pub envelope: Envelope,
}

/// Performs the steps on a fresh pool, one after the other, and returns the list of answers.
///
/// # Errors
/// `invalid_argument` naming what is no step.
pub fn replay(steps: &Value) -> Result<Value> {
    let mut pool = Pool::default();
    let perform = |step: Step| {
        let moment = Moment { wall: step.wall, incarnation: &step.incarnation, up_since: step.up_since };
        answer(&pool.apply(moment, &step.envelope))
    };
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
            incarnation: needed(keys.take("incarnation", Value::as_text)?, "incarnation")?.to_owned(),
            up_since: keys.take("up_since", number)?.unwrap_or(0),
            envelope: needed(keys.take("envelope", envelope)?, "envelope")?,
        };
        keys.end().map(|()| step)
    })
}

/// An answer as a value.
pub fn answer(answer: &Answer) -> Value {
    match answer {
        Answer::Stale { now } => Value::map([("answer", "stale".into()), ("now", digits(*now))]),
        Answer::Performed(performed) => Value::map([
            ("answer", "performed".into()),
            ("now", digits(performed.now)),
            ("top", digits(performed.top)),
            ("quiet_time", performed.quiet_time.map_or(Value::Null, quiet_time)),
            ("calls", calls(&performed.calls)),
            ("replies", Value::List(performed.replies.iter().map(reply).collect())),
        ]),
    }
}

fn envelope(value: &Value) -> Result<Envelope> {
    let mut keys = Options::new(value)?;
    let envelope = Envelope {
        lane: keys.take("lane", lane)?,
        not_after: keys.take("not_after", number)?,
        seen: keys.take("seen", number)?.unwrap_or(0),
        jumped: keys.take("jumped", Value::as_bool)?.unwrap_or(false),
        seed: keys.take("seed", number)?.unwrap_or(0),
        requests: needed(keys.take("requests", |value| list(value, request))?, "requests")?,
    };
    keys.end().map(|()| envelope)
}

pub(crate) fn lane(value: &Value) -> Result<Lane> {
    let mut keys = Options::new(value)?;
    let lane = Lane {
        client: needed(keys.take("client", number)?, "client")?,
        number: needed(keys.take("number", number)?, "number")?,
        sequence: needed(keys.take("sequence", number)?, "sequence")?,
    };
    keys.end().map(|()| lane)
}

fn request(value: &Value) -> Result<Request> {
    let mut keys = Options::new(value)?;
    let word = needed(keys.take("request", Value::as_text)?, "request")?;
    let request = match word {
        "claim" => Request::Claim(Claim {
            choice: choice(&mut keys)?,
            holder: keys.take("holder", number)?.unwrap_or(0),
            ttl: needed(keys.take("ttl", number)?, "ttl")?,
            max_hold: keys.take("max_hold", number)?.unwrap_or(0),
            wait: keys.take("wait", Value::as_bool)?.unwrap_or(false),
            priority: keys.take("priority", number)?.unwrap_or(0),
            ageing: keys.take("ageing", number)?.unwrap_or(0),
            waited: keys.take("waited", number)?.unwrap_or(0),
            steal: keys.take("steal", number)?,
        }),
        "withdraw" => Request::Withdraw { holder: needed(keys.take("holder", number)?, "holder")? },
        "renew" => {
            Request::Renew { lease: lease(&mut keys)?, ttl: needed(keys.take("ttl", number)?, "ttl")? }
        }
        "release" => Request::Release {
            lease: lease(&mut keys)?,
            outcome: outcome(&mut keys)?,
            cooldown: keys.take("cooldown", number)?.unwrap_or(0),
        },
        "resync" => Request::Resync {
            lease: lease(&mut keys)?,
            chain: needed(keys.take("chain", number)?, "chain")?,
            rewind: keys.take("rewind", Value::as_bool)?.unwrap_or(false),
            settle: keys.take("settle", number)?.unwrap_or(0),
        },
        "define" => Request::Define {
            slots: needed(keys.take("slots", |value| list(value, spec))?, "slots")?,
            longest: needed(keys.take("longest", number)?, "longest")?,
            doubt_rest: keys.take("doubt_rest", number)?.unwrap_or(0),
        },
        "change" => Request::Change {
            slot: needed(keys.take("slot", slot)?, "slot")?,
            change: match needed(keys.take("change", Value::as_text)?, "change")? {
                "enable" => SlotChange::Enable,
                "disable" => SlotChange::Disable,
                "drain" => SlotChange::Drain,
                "remove" => SlotChange::Remove,
                "break" => SlotChange::Break,
                "quarantine" => SlotChange::Quarantine(needed(keys.take("rest", number)?, "rest")?),
                other => return Err(unknown("change", other)),
            },
        },
        "inspect" => {
            Request::Inspect { slots: needed(keys.take("slots", |value| list(value, slot))?, "slots")? }
        }
        "list" => Request::List,
        other => return Err(unknown("request", other)),
    };
    keys.end().map(|()| request)
}

fn choice(keys: &mut Options<'_>) -> Result<Choice> {
    if let Some(slots) = keys.take("named", |value| list(value, slot))? {
        return Ok(Choice::Named { slots });
    }
    if let Some(slots) = keys.take("among", |value| list(value, slot))? {
        return Ok(Choice::Among { slots, count: keys.take("least", number)?.unwrap_or(1) });
    }
    let free = keys.take("free", |value| list(value, slot))?;
    let strategy = match keys.take("any", Value::as_text)? {
        Some("random") => Some(Strategy::Random),
        Some("least_recent") => Some(Strategy::LeastRecent),
        Some("weighted") => Some(Strategy::Weighted),
        Some(other) => return Err(unknown("any", other)),
        None => None,
    };
    let least = keys.take("least", number)?.unwrap_or(1);
    let most = keys.take("most", number)?.unwrap_or(least);
    if let Some(slots) = free {
        return Ok(Choice::Free { slots, least, most, asked: keys.take("asked", number)?.unwrap_or(0) });
    }
    Ok(Choice::Any { strategy: needed(strategy, "any")?, least, most })
}

fn lease(keys: &mut Options<'_>) -> Result<LeaseRef> {
    let slot = needed(keys.take("slot", slot)?, "slot")?;
    Ok(LeaseRef { slot, fence: needed(keys.take("fence", number)?, "fence")?, place: 0 })
}

fn outcome(keys: &mut Options<'_>) -> Result<Outcome> {
    match needed(keys.take("outcome", Value::as_text)?, "outcome")? {
        "unsettled" => Ok(Outcome::Unsettled),
        "unused" => Ok(Outcome::Unused),
        "unknown" => Ok(Outcome::Unknown { used: keys.take("used", number)? }),
        "used" => Ok(Outcome::Used { next: needed(keys.take("next", number)?, "next")? }),
        "rejected" => Ok(Outcome::Rejected { expected: keys.take("expected", number)? }),
        other => Err(unknown("outcome", other)),
    }
}

fn spec(value: &Value) -> Result<SlotSpec> {
    let mut keys = Options::new(value)?;
    let slot = needed(keys.take("slot", slot)?, "slot")?;
    let weight = keys.take("weight", number)?.unwrap_or(1);
    keys.end().map(|()| SlotSpec { slot, weight })
}

fn slot(value: &Value) -> Result<SlotId> {
    let text = value.as_text()?;
    // A lock's name may be no id.
    SlotId::new(text).or_else(|_| SlotId::name(text))
}

pub(crate) fn number<T: std::str::FromStr>(value: &Value) -> Result<T> {
    let text = value.as_text()?;
    text.parse()
        .map_err(|_| Error::invalid("", format_args!("must be decimal text in its range, not {text:?}")))
}

pub(crate) fn list<T>(value: &Value, read: impl Fn(&Value) -> Result<T>) -> Result<Vec<T>> {
    let read = |(at, value)| read(value).map_err(|error: Error| error.within(&format!("[{at}]")));
    value.as_list()?.iter().enumerate().map(read).collect()
}

pub(crate) fn needed<T>(value: Option<T>, key: &str) -> Result<T> {
    value.ok_or_else(|| Error::invalid(key, "must be given"))
}

pub(crate) fn unknown(key: &str, word: &str) -> Error {
    Error::invalid(key, format_args!("has no meaning for {word:?}"))
}

fn quiet_time(time: QuietTime) -> Value {
    Value::map([("longest", digits(time.longest)), ("doubt_rest", digits(time.doubt_rest))])
}

pub(crate) fn digits(number: impl ToString) -> Value {
    Value::Text(number.to_string())
}

pub(crate) fn optional(number: Option<u64>) -> Value {
    number.map_or(Value::Null, digits)
}

pub(crate) fn named<const N: usize>(word: &str, entries: [(&str, Value); N]) -> Value {
    let entries = entries.into_iter().map(|(key, value)| (key.to_owned(), value));
    Value::Map(std::iter::once(("reply".to_owned(), word.into())).chain(entries).collect())
}

fn reply(reply: &Reply) -> Value {
    let ids = |ids: &[SlotId]| Value::List(ids.iter().map(|id| id.as_str().into()).collect());
    let granted = |grants: &[super::Grant]| {
        let grant = |grant: &super::Grant| {
            Value::map([
                ("slot", grant.slot.as_str().into()),
                ("fence", digits(grant.fence)),
                ("deadline", digits(grant.deadline)),
                ("nonce", nonce(grant.nonce)),
            ])
        };
        Value::List(grants.iter().map(grant).collect())
    };
    match reply {
        Reply::Granted(grants) => named("granted", [("grants", granted(grants))]),
        Reply::Partly { grants, earliest } => {
            named("partly", [("grants", granted(grants)), ("earliest", optional(*earliest))])
        }
        Reply::Refused { why, earliest } => {
            let why = match why {
                Refusal::Exhausted => "exhausted",
                Refusal::Claimed => "claimed",
                Refusal::Beyond => "beyond",
                Refusal::NoSlot => "no_slot",
                Refusal::Quiet => "quiet",
            };
            named("refused", [("why", why.into()), ("earliest", optional(*earliest))])
        }
        Reply::Renewed { deadline } => named("renewed", [("deadline", digits(deadline))]),
        Reply::Claimed { deadline, priority } => {
            named("claimed", [("deadline", digits(deadline)), ("priority", digits(priority))])
        }
        Reply::Released => named("released", []),
        Reply::Withdrawn => named("withdrawn", []),
        Reply::Resynced { next } => named("resynced", [("next", digits(next))]),
        Reply::Behind { floor, until } => {
            named("behind", [("floor", digits(floor)), ("until", digits(until))])
        }
        Reply::Backwards { floor } => named("backwards", [("floor", digits(floor))]),
        Reply::Lost(loss) => {
            let why = match loss {
                Loss::Expired => "expired",
                Loss::Ended => "ended",
                Loss::Taken => "taken",
                Loss::Gone => "gone",
                Loss::Forgotten => "forgotten",
            };
            named("lost", [("why", why.into())])
        }
        Reply::Defined { added, total } => {
            named("defined", [("added", digits(added)), ("total", digits(total))])
        }
        Reply::Changed => named("changed", []),
        Reply::NoSlot => named("no_slot", []),
        Reply::Full => named("full", []),
        Reply::Inspected { slots, total, ready, in_doubt, due, quiet_until, loss } => named(
            "inspected",
            [
                ("slots", Value::List(slots.iter().map(view).collect())),
                ("total", digits(total)),
                ("ready", digits(ready)),
                ("in_doubt", digits(in_doubt)),
                ("due", digits(due)),
                ("quiet_until", digits(quiet_until)),
                ("loss", digits(loss)),
            ],
        ),
        Reply::Listed(slots) => named("listed", [("slots", ids(slots))]),
        Reply::Undefined => named("undefined", []),
    }
}

fn calls(calls: &Calls) -> Value {
    let tickets = Value::List(calls.tickets.iter().map(digits).collect());
    let claimed = Value::List(calls.claimed.iter().map(digits).collect());
    let rest = calls.rest.map_or(Value::Null, digits);
    Value::map([("freed", digits(calls.freed)), ("tickets", tickets), ("claimed", claimed), ("rest", rest)])
}

fn view(view: &SlotView) -> Value {
    Value::map([
        ("slot", view.slot.as_str().into()),
        ("mode", view.mode.as_str().into()),
        ("state", view.state.as_str().into()),
        ("weight", digits(view.weight)),
        ("fence", digits(view.fence)),
        ("holder", digits(view.holder)),
        ("since", digits(view.since)),
        ("until", digits(view.until)),
        ("nonce", nonce(view.nonce)),
    ])
}

fn nonce(record: NonceRecord) -> Value {
    match record {
        NonceRecord::Unset => Value::map([("record", "unset".into())]),
        NonceRecord::Known(next) => Value::map([("record", "known".into()), ("next", digits(next))]),
        NonceRecord::InDoubt { floor } => {
            Value::map([("record", "in_doubt".into()), ("floor", optional(floor))])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(request: Value) -> Value {
        let envelope = Value::map([("requests", Value::List(vec![request]))]);
        let step = [("wall", "5".into()), ("incarnation", "a".into()), ("envelope", envelope)];
        Value::List(vec![Value::map(step)])
    }

    #[test]
    fn a_request_is_performed_and_its_answer_is_in_words_and_digits() {
        let slots = Value::List(vec![Value::map([("slot", "a".into())])]);
        let define = [("request", "define".into()), ("slots", slots), ("longest", "5".into())];
        let replies = named("defined", [("added", "1".into()), ("total", "1".into())]);
        let expected = Value::map([
            ("answer", "performed".into()),
            ("now", "5".into()),
            ("top", "5".into()),
            ("quiet_time", Value::map([("longest", "5".into()), ("doubt_rest", "0".into())])),
            ("calls", calls(&Calls::default())),
            ("replies", Value::List(vec![replies])),
        ]);
        assert_eq!(replay(&step(Value::map(define))).unwrap(), Value::List(vec![expected]));
    }

    #[test]
    fn what_is_no_step_is_named() {
        for (request, field) in [
            (Value::map([("request", "lst".into())]), "[0].envelope.requests[0].request"),
            (
                Value::map([("request", "list".into()), ("slots", Value::Null)]),
                "[0].envelope.requests[0].slots",
            ),
            (Value::map([("request", "claim".into()), ("ttl", "5".into())]), "[0].envelope.requests[0].any"),
            (
                Value::map([
                    ("request", "renew".into()),
                    ("slot", "a".into()),
                    ("fence", Value::Number(1.0)),
                ]),
                "[0].envelope.requests[0].fence",
            ),
        ] {
            assert_eq!(replay(&step(request)).unwrap_err().field(), Some(field));
        }
    }
}
