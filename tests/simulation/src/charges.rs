//! What a store of limits did, read from the words that travelled: an own reading of the wire, not the library's.

use std::sync::OnceLock;

use leasehold::limits::{Act, Charge, Reply, Request, Rule, Settlement};
use leasehold::store::redis::LIMITS_SCRIPT;
use sha1_smol::Sha1;

use crate::births::Births;

/// Requests that a store performed as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Charging {
    /// The store's wall clock.
    pub now: u64,
    /// The lane and the number in it; nothing where no copy can exist.
    pub lane: Option<(String, u64)>,
    /// The last moment at which the sender wanted it done.
    pub not_after: Option<u64>,
    /// What was asked, and what was said to it.
    pub deeds: Vec<Deed>,
    /// What the sender had seen of limits of money, and what it was told of them.
    pub standings: Vec<Standing>,
}

/// A limit of money in an envelope.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// The limit.
    pub limit: (Kind, String),
    /// What its sender had seen of it.
    pub seen: Option<Births>,
    /// How it stands.
    pub told: Option<Births>,
}

/// One request and its reply.
#[derive(Clone, Debug, PartialEq)]
pub struct Deed {
    /// What was wanted.
    pub act: Action,
    /// Of which limits.
    pub costs: Vec<Cost>,
    /// What was said.
    pub word: Word,
}

/// What a request wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// All costs or none.
    Take,
    /// Nothing is charged.
    Peek,
    /// Something is given back that was not reserved.
    Refund,
    /// Everything is forgotten.
    Reset,
    /// As a take, for the time being.
    Reserve {
        /// The reservation.
        id: String,
        /// How long it lasts.
        ttl: u64,
        /// Who has waited for it, if somebody did whose lane tells who that is.
        waits: Option<Waits>,
    },
    /// A reservation is prolonged.
    Renew {
        /// The reservation.
        id: String,
        /// How long it lasts from now on, at least.
        ttl: u64,
    },
    /// A reservation ends, of which so much stays charged as is said.
    Keep {
        /// The reservation.
        id: String,
    },
    /// A reservation ends.
    Settle {
        /// The reservation.
        id: String,
        /// Whether its charge is given back.
        back: bool,
    },
}

/// Who waits, for how long it has, and how long an answer takes to reach it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waits {
    /// Which client.
    pub client: String,
    /// For how long.
    pub waited: u64,
    /// How long.
    pub reply: u64,
}

/// A limit, what it allows, and what is taken of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cost {
    /// The limit's name.
    pub limit: String,
    /// Its kind: continuous refill, gcra, rolling window, lifetime, budget, in flight, each by itself.
    pub kind: Kind,
    /// The most in a period.
    pub max: u128,
    /// The period.
    pub period: u64,
    /// The burst or the offset.
    pub extra: u64,
    /// How much.
    pub cost: u128,
}

impl Cost {
    /// The most at once.
    pub fn most(&self) -> u128 {
        if self.kind == Kind::Gcra { self.extra.into() } else { self.max }
    }
}

/// A kind of limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Continuous refill.
    Refill,
    /// The generic cell rate algorithm.
    Gcra,
    /// At most so much in any window.
    Rolling,
    /// So much, ever.
    Lifetime,
    /// So much in each period of the calendar.
    Budget,
    /// So much at a time.
    InFlight,
    /// Each request by itself: nothing is remembered.
    Each,
}

/// What was said to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Word {
    /// Whether it is allowed.
    Judged {
        /// So it is.
        allowed: bool,
        /// Which of its costs binds it.
        binding: usize,
        /// What remains of that limit.
        remaining: u128,
        /// When it would be allowed, if ever.
        retry: Option<u64>,
        /// When that limit is as if never used, if ever.
        reset: Option<u64>,
    },
    /// A reservation ends now.
    Settled,
    /// It had ended before.
    Before {
        /// And was given back then.
        back: bool,
    },
    /// It is not there.
    Gone,
}

/// One envelope as it stands in a command.
#[derive(Debug)]
pub struct SentCharges {
    lane: Option<(String, u64)>,
    not_after: Option<u64>,
    seen: Vec<((Kind, String), Option<Births>)>,
    asked: Vec<(Action, Vec<Cost>)>,
}

/// Where the lane's key stands in a command: the first of the keys.
pub const LANE: usize = 3;
/// Where the keys begin in a command.
const KEYS: usize = LANE;
/// Schema, sequence, last moment.
const HEAD: usize = 3;
/// Key, kind, maximum, period, burst or offset, cost.
const COST: usize = 6;

/// Whether a command calls the script of limits.
pub fn is_of_limits(command: &[String]) -> bool {
    static DIGEST: OnceLock<String> = OnceLock::new();
    let digest = DIGEST.get_or_init(|| Sha1::from(LIMITS_SCRIPT).digest().to_string());
    match command {
        [name, text, ..] if name == "EVAL" => text == LIMITS_SCRIPT,
        [name, told, ..] if name == "EVALSHA" => told == digest,
        _ => false,
    }
}

/// The words and keys of a command that calls a script.
struct Words<'a> {
    keys: &'a [String],
    rest: &'a [String],
}

impl Words<'_> {
    fn next(&mut self) -> &str {
        let (first, rest) = self.rest.split_first().expect("a word: the wire has changed");
        self.rest = rest;
        first
    }

    fn number(&mut self) -> u128 {
        self.next().parse().expect("a number: the wire has changed")
    }

    /// What the key of this place names.
    fn key(&mut self) -> String {
        let place = self.number() as usize;
        let key = place.checked_sub(1).and_then(|at| self.keys.get(at)).map_or("", String::as_str);
        key.split_once("}:").map_or(key, |(_, name)| name).to_owned()
    }

    fn cost(&mut self) -> Cost {
        let key = self.key();
        let kind = match self.next() {
            "c" => Kind::Refill,
            "g" => Kind::Gcra,
            "w" => Kind::Rolling,
            "l" => Kind::Lifetime,
            "b" => Kind::Budget,
            "f" => Kind::InFlight,
            "e" => Kind::Each,
            other => panic!("the kind {other:?} is not known to the simulation"),
        };
        let (max, period, extra) = (self.number(), self.number() as u64, self.number() as u64);
        let limit = key.rsplit(':').next().unwrap_or_default().to_owned();
        Cost { limit, kind, max, period, extra, cost: self.number() }
    }
}

impl SentCharges {
    /// Reads a command; `None` if it does not call the script of limits.
    ///
    /// # Panics
    /// If the words are not those of a known request: the wire has changed, and this reading with it.
    pub fn read(command: &[String]) -> Option<Self> {
        if !is_of_limits(command) {
            return None;
        }
        let arguments = KEYS + command.get(2)?.parse::<usize>().ok()?;
        let keys = &command[KEYS..arguments];
        let (head, rest) = command[arguments..].split_at(HEAD);
        let mut words = Words { keys, rest };
        let seen = (0..words.number()).map(|_| (limit(&words.key()), Births::read(words.next())));
        let seen = seen.collect();
        let mut asked: Vec<(Action, Vec<Cost>)> = Vec::new();
        while !words.rest.is_empty() {
            let what = words.next().to_owned();
            if what == "again" {
                let last = asked.last().expect("something to do again").clone();
                asked.push(last);
                continue;
            }
            let count = words.number();
            let action = match what.as_str() {
                "take" => Action::Take,
                "peek" => Action::Peek,
                "refund" => Action::Refund,
                "reset" => Action::Reset,
                "reserve" | "wait" => {
                    let (id, ttl) = (words.key(), words.number() as u64);
                    // What it waits for is told once more by its costs.
                    let waited = (what == "wait")
                        .then(|| (words.number() as u64, words.number() as u64, words.number()));
                    let waits = client(&keys[0]).zip(waited);
                    let waits = waits.map(|(client, (waited, reply, _))| Waits { client, waited, reply });
                    Action::Reserve { id, ttl, waits }
                }
                "renew" => Action::Renew { id: words.key(), ttl: words.number() as u64 },
                "commit" | "keep" | "return" => {
                    let id = words.key();
                    words.number();
                    match what.as_str() {
                        "keep" => Action::Keep { id },
                        _ => Action::Settle { id, back: what == "return" },
                    }
                }
                other => panic!("the request {other:?} is not known to the simulation"),
            };
            let costs = (0..count).map(|_| words.cost()).collect();
            asked.push((action, costs));
        }
        let lane = head[1].parse().ok().map(|sequence| (command[KEYS].clone(), sequence));
        debug_assert!(words.rest.len() < COST);
        Some(SentCharges { lane, not_after: head[2].parse().ok(), seen, asked })
    }

    /// The limits of which something is kept, by their keys.
    pub fn keys(command: &[String]) -> &[String] {
        let count = command.get(2).and_then(|count| count.parse::<usize>().ok()).unwrap_or(0);
        command.get(KEYS..KEYS + count).unwrap_or_default()
    }

    /// Whether all that is asked is to charge something.
    pub fn only_takes(&self) -> Option<usize> {
        let takes = |action: &Action| matches!(action, Action::Take | Action::Reserve { .. });
        self.asked.iter().all(|(action, _)| takes(action)).then_some(self.asked.len())
    }

    /// Whether all that is asked is to end reservations.
    pub fn only_settles(&self) -> bool {
        self.asked.iter().all(|(action, _)| matches!(action, Action::Settle { .. }))
    }

    /// What came of it, by its answer; `None` if nothing was performed.
    pub fn performed(&self, answer: &str) -> Option<Charging> {
        let mut lines = answer.split('\n');
        let now = lines.next()?.strip_prefix("done ")?.parse().ok()?;
        let deeds = self.asked.iter().zip(lines).map(|((act, costs), line)| Deed {
            act: act.clone(),
            costs: costs.clone(),
            word: word(line),
        });
        let deeds = deeds.collect();
        let standings = self.seen.iter().zip(answer.split('\n').skip(1 + self.asked.len()));
        let standings = standings.map(|((limit, seen), told)| Standing {
            limit: limit.clone(),
            seen: seen.clone(),
            told: Births::read(told),
        });
        let standings = standings.collect();
        Some(Charging { now, lane: self.lane.clone(), not_after: self.not_after, deeds, standings })
    }
}

/// By what those are told apart who wait: the beginning of the client's id in its lane's key.
fn client(lane: &str) -> Option<String> {
    let mut parts = lane.rsplit(':').skip(1);
    parts.next()?.get(..12).map(str::to_owned)
}

/// The limit of money whose record a key names.
fn limit(key: &str) -> (Kind, String) {
    let mut parts = key.split(':').skip(1);
    let kind = match parts.next() {
        Some("l") => Kind::Lifetime,
        Some("b") => Kind::Budget,
        other => panic!("{other:?} is no kind of money: the wire has changed"),
    };
    (kind, parts.last().unwrap_or_default().to_owned())
}

fn word(line: &str) -> Word {
    let words: Vec<&str> = line.split(' ').collect();
    let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok());
    match words[0] {
        "settled" => Word::Settled,
        "before" => Word::Before { back: words[1] == "1" },
        "gone" => Word::Gone,
        said => Word::Judged {
            allowed: said == "yes",
            binding: number(1).unwrap_or(0) as usize,
            remaining: words[2].parse().unwrap_or(u128::MAX),
            retry: if said == "yes" { Some(0) } else { number(4) },
            reset: number(3),
        },
    }
}

/// The same of a store that answers at once.
pub fn of_memory(now: u64, request: &Request, reply: &Reply) -> Charging {
    let named = |id: u128| format!("reservation:{id:032x}");
    let act = match request.act {
        Act::Take => Action::Take,
        Act::Peek => Action::Peek,
        Act::Refund => Action::Refund,
        Act::Reset => Action::Reset,
        // Without a lane nobody knows who waits.
        Act::Reserve { id, ttl, .. } => Action::Reserve { id: named(id), ttl, waits: None },
        Act::Renew { id, ttl } => Action::Renew { id: named(id), ttl },
        Act::Commit { id } => Action::Settle { id: named(id), back: false },
        Act::Keep { id } => Action::Keep { id: named(id) },
        Act::GiveBack { id } => Action::Settle { id: named(id), back: true },
    };
    let word = match *reply {
        Reply::Judged(verdict) => Word::Judged {
            allowed: verdict.allowed,
            binding: verdict.binding,
            remaining: verdict.remaining.to_string().parse().unwrap_or(u128::MAX),
            retry: verdict.retry_after,
            reset: verdict.reset_after,
        },
        Reply::Settled(Settlement::Done) => Word::Settled,
        Reply::Settled(Settlement::Before { given_back }) => Word::Before { back: given_back },
        Reply::Settled(Settlement::Gone) => Word::Gone,
    };
    let costs = request.charges.iter().map(cost).collect();
    Charging {
        now,
        lane: None,
        not_after: None,
        deeds: vec![Deed { act, costs, word }],
        standings: Vec::new(),
    }
}

fn cost(charge: &Charge) -> Cost {
    let (kind, max, period, extra) = match charge.rule.effective() {
        Rule::Each { max } => (Kind::Each, max, 0, 0),
        Rule::Refill { max, period } => (Kind::Refill, max.into(), period, 0),
        Rule::Gcra { max, period, burst } => (Kind::Gcra, max.into(), period, burst),
        Rule::Rolling { max, period } => (Kind::Rolling, max.into(), period, 0),
        Rule::Lifetime { max } => (Kind::Lifetime, max, 0, 0),
        Rule::Budget { max, period, offset } => (Kind::Budget, max, period, offset),
        Rule::InFlight { max } => (Kind::InFlight, max.into(), 0, 0),
    };
    let number = |amount: leasehold::limits::Amount| amount.to_string().parse().unwrap_or(u128::MAX);
    let limit = if kind == Kind::Each { String::new() } else { charge.limit.as_str().to_owned() };
    Cost { limit, kind, max: number(max), period, extra, cost: number(charge.cost) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_envelope_and_its_answer_are_read() {
        let words = "EVALSHA sha 5 n:{s}:lane:a:0 n:{s}:limit:c:one n:{s}:reservation:0f n:{s}:limit:f:two \
                     n:{s}:limit:l:all 2 7 90 1 5 @ take 2 2 c 10 500 0 3 0 e 99 0 0 3 again reserve 1 3 40 4 f 2 0 0 1 return 1 3 0 4 f 2 0 0 1";
        let mut command: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        for word in &mut command {
            *word = word.replace('@', "b 2 0 9");
        }
        assert!(SentCharges::read(&command).is_none(), "another script");
        command[1] = Sha1::from(LIMITS_SCRIPT).digest().to_string();
        let sent = SentCharges::read(&command).expect("a script");
        assert_eq!(sent.only_takes(), None);
        let answer = "done 40\nyes 0 7 150\nno 0 1 150 20\nyes 0 1 40\nsettled\nb 3 0 11";
        let done = sent.performed(answer).expect("performed");
        assert_eq!((done.now, done.not_after), (40, Some(90)));
        assert_eq!(done.lane, Some(("n:{s}:lane:a:0".to_owned(), 7)));
        assert_eq!(done.deeds.len(), 4);
        let Standing { limit, seen, told } = &done.standings[0];
        assert_eq!(*limit, (Kind::Lifetime, "all".to_owned()));
        assert_eq!([seen, told].map(|births| births.as_ref().map(Births::used)), [Some(9), Some(11)]);
        let Deed { act, costs, word } = &done.deeds[1];
        assert_eq!(
            (act, costs[0].limit.as_str(), costs[0].kind, costs[0].cost),
            (&Action::Take, "one", Kind::Refill, 3)
        );
        assert_eq!((costs[1].kind, costs[1].max), (Kind::Each, 99));
        let refused =
            Word::Judged { allowed: false, binding: 0, remaining: 1, retry: Some(20), reset: Some(150) };
        assert_eq!(*word, refused);
        let id = "reservation:0f".to_owned();
        assert_eq!(done.deeds[2].act, Action::Reserve { id: id.clone(), ttl: 40, waits: None });
        assert_eq!(
            (&done.deeds[3].act, &done.deeds[3].word),
            (&Action::Settle { id, back: true }, &Word::Settled)
        );
        assert_eq!(sent.performed("stale 40"), None);
    }
}
