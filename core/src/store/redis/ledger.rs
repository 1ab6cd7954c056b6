//! Limits in Redis: every envelope is one call of one script, on keys with one hash tag.

use std::str::Split;

use rustc_hash::FxHashMap;

use super::transport::{Resp, Transport, classify};
use super::wire::garbled;
use super::{Keys, RedisStore};
use crate::error::Result;
use crate::id::{Name, PoolName};
use crate::limits::{
    Act, Amount, Answer, Charge, Charged, Envelope, Performed, Reply, Request, Rule, Settlement, Standing,
    Verdict, Waited, line,
};
use crate::store::ledger::StoreLedger;
use crate::store::{Certainty, StoreError};

/// The script: the machine of limits in a second wording; `limits/` in one piece, without its comments.
pub const LIMITS_SCRIPT: &str = include_str!(concat!(env!("OUT_DIR"), "/limits.lua"));
/// The name that Redis gives it.
pub(super) const DIGEST: &str = include_str!(concat!(env!("OUT_DIR"), "/limits.sha1"));
/// The schema of keys and words; a script refuses any other.
const SCHEMA: &str = "3";

/// Limits of one scope in Redis.
#[derive(Debug)]
pub struct RedisLedger<T> {
    store: RedisStore<T>,
    keys: Keys,
}

impl<T: Transport> RedisLedger<T> {
    pub(crate) fn new(store: RedisStore<T>, scope: &PoolName) -> Self {
        RedisLedger { store, keys: Keys::new(scope) }
    }

    /// The command that performs an envelope: `EVALSHA`, or `EVAL` with the script's text.
    fn command(&self, envelope: &Envelope, whole: bool) -> Vec<String> {
        let keys = &self.keys;
        let mut words = Words {
            keys,
            named: vec![keys.lane(envelope.lane)],
            places: FxHashMap::default(),
            words: Vec::new(),
        };
        words.money(envelope);
        let mut last = None;
        for request in &envelope.requests {
            // Many callers of one process ask for the same.
            if last == Some(request) && !request.act.is_of_reservation() {
                words.words.push("again".to_owned());
            } else {
                words.request(request);
            }
            last = Some(request);
        }
        let Words { named, words, .. } = words;
        let mut command = Vec::with_capacity(6 + named.len() + words.len());
        match whole {
            true => command.extend(["EVAL".to_owned(), self.store.transport.script(DIGEST)]),
            false => command.extend(["EVALSHA".to_owned(), DIGEST.to_owned()]),
        }
        command.push(named.len().to_string());
        command.extend(named);
        let optional =
            |number: Option<u64>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
        command.push(SCHEMA.to_owned());
        command.push(optional(envelope.lane.map(|lane| lane.sequence)));
        command.push(optional(envelope.not_after));
        command.extend(words);
        command
    }
}

impl<T: Transport> StoreLedger for RedisLedger<T> {
    fn charge_now(&self, _request: &Request) -> Option<Reply> {
        None
    }

    fn judge_now(&self, _act: &Act, _charges: &[Charged<'_>]) -> Option<Verdict> {
        None
    }

    async fn charge(&self, envelope: &Envelope) -> Result<Answer, StoreError> {
        self.store.vet().await?;
        let mut whole = false;
        let reply = loop {
            match self.store.transport.send(self.command(envelope, whole)).await? {
                Resp::Error(text) if text.starts_with("NOSCRIPT") && !whole => whole = true,
                reply => break reply,
            }
        };
        match reply {
            Resp::Text(text) => decode(&text, envelope)
                .ok_or_else(|| StoreError::new(Certainty::Refused, garbled(&text).message())),
            Resp::Error(text) => Err(classify(&text)),
            other => Err(StoreError::new(
                Certainty::Refused,
                format!("the server answered a script with {}", other.kind()),
            )),
        }
    }
}

struct Words<'a> {
    keys: &'a Keys,
    named: Vec<String>,
    /// Where each key stands, from 1 on: the script reads each once.
    places: FxHashMap<String, usize>,
    words: Vec<String>,
}

impl Words<'_> {
    fn key(&mut self, part: String) -> String {
        if let Some(place) = self.places.get(&part) {
            return place.to_string();
        }
        self.named.push(self.keys.of(&part));
        let place = self.named.len();
        self.places.insert(part, place);
        place.to_string()
    }

    /// How many limits of money there are, and each with what was seen of it.
    fn money(&mut self, envelope: &Envelope) {
        let place = self.words.len();
        let mut count = 0;
        for (limit, seen) in envelope.of_money_as_seen() {
            count += 1;
            let key = self.limit(limit);
            let seen = seen.filter(|seen| !seen.is_blank());
            let standing = seen.map_or_else(|| "-".to_owned(), Standing::to_string);
            self.words.extend([key, standing]);
        }
        self.words.insert(place, count.to_string());
    }

    fn limit(&mut self, (letter, name): (char, &Name)) -> String {
        self.key(format!("limit:{letter}:{name}"))
    }

    fn request(&mut self, request: &Request) {
        let (what, reservation) = match request.act {
            Act::Take => ("take", None),
            Act::Peek => ("peek", None),
            Act::Refund => ("refund", None),
            Act::Reset => ("reset", None),
            Act::Reserve { id, ttl, waited: None } => ("reserve", Some((id, ttl))),
            Act::Reserve { id, ttl, waited: Some(_) } => ("wait", Some((id, ttl))),
            Act::Renew { id, ttl } => ("renew", Some((id, ttl))),
            Act::Commit { id } => ("commit", Some((id, 0))),
            Act::Keep { id } => ("keep", Some((id, 0))),
            Act::GiveBack { id } => ("return", Some((id, 0))),
        };
        self.words.push(what.to_owned());
        self.words.push(request.charges.len().to_string());
        if let Some((id, ttl)) = reservation {
            let key = self.key(format!("reservation:{id:032x}"));
            self.words.extend([key, ttl.to_string()]);
            if let Act::Reserve { waited: Some(Waited { time, reply }), .. } = request.act {
                let limits =
                    request.charges.iter().map(|charge| (charge.rule.effective().letter(), &charge.limit));
                self.words.extend([time.to_string(), reply.to_string(), line(limits).to_string()]);
            }
        }
        let nothing = request.act == Act::Reset;
        for charge in &request.charges {
            self.charge(charge, if nothing { Amount::ZERO } else { charge.cost });
        }
    }

    fn charge(&mut self, charge: &Charge, cost: Amount) {
        let rule = charge.rule.effective();
        let (max, period, extra) = match rule {
            Rule::Each { max } | Rule::Lifetime { max } => (max, 0, 0),
            Rule::Refill { max, period } | Rule::Rolling { max, period } => (max.into(), period, 0),
            Rule::Gcra { max, period, burst } => (max.into(), period, burst),
            Rule::Budget { max, period, offset } => (max, period, offset),
            Rule::InFlight { max } => (max.into(), 0, 0),
        };
        let letter = rule.letter();
        let key = match rule {
            Rule::Each { .. } => "0".to_owned(),
            _ => self.limit((letter, &charge.limit)),
        };
        let numbers = [max.to_string(), period.to_string(), extra.to_string(), cost.to_string()];
        self.words.extend([key, letter.to_string()].into_iter().chain(numbers));
    }
}

/// The script's answer to an envelope; nothing if it is none.
fn decode(text: &str, envelope: &Envelope) -> Option<Answer> {
    let mut lines = text.split('\n');
    let mut head = lines.next()?.split(' ');
    let (word, now) = (head.next()?, head.next()?.parse().ok()?);
    if word == "stale" {
        return Some(Answer::Stale { now });
    }
    let replies = lines.by_ref().take(envelope.requests.len()).map(|line| reply(line.split(' ')));
    let replies = replies.collect::<Option<Vec<_>>>()?;
    let standing = |line| if line == "-" { Some(None) } else { Standing::parse(line).map(Some) };
    let standings = lines.map(standing).collect::<Option<Vec<_>>>()?;
    let whole = word == "done"
        && replies.len() == envelope.requests.len()
        && standings.len() == envelope.of_money().len();
    whole.then_some(Answer::Performed(Performed { now, replies, standings }))
}

fn reply(mut words: Split<'_, char>) -> Option<Reply> {
    let word = words.next()?;
    if let "yes" | "no" = word {
        let allowed = word == "yes";
        let (binding, remaining) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let reset_after = optional(words.next()?)?;
        let retry_after = if allowed { Some(0) } else { optional(words.next()?)? };
        return Some(Reply::Judged(Verdict { allowed, binding, remaining, retry_after, reset_after }));
    }
    Some(Reply::Settled(match word {
        "settled" => Settlement::Done,
        "before" => Settlement::Before { given_back: words.next()? == "1" },
        "gone" => Settlement::Gone,
        _ => return None,
    }))
}

/// A number, or the word that there is none.
fn optional(word: &str) -> Option<Option<u64>> {
    if word == "-" { Some(None) } else { word.parse().ok().map(Some) }
}
