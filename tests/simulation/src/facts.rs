//! What a store did, read from the words that travelled: an own reading of the wire, not the library's.

use leasehold::id::SlotId;
use leasehold::nonce::{NonceRecord, Outcome};
use leasehold::slots::{Calls, Choice, Claim, Refusal, Reply, Request, SlotChange};

use crate::charges::is_of_limits;
use crate::history::{Bid, Fact, Performance, Wish};

/// One envelope as it stands in a command.
#[derive(Debug)]
pub struct Sent<'a> {
    /// The key that makes it idempotent.
    pub lane: &'a str,
    /// Its number in its lane.
    pub sequence: &'a str,
    head: Vec<&'a str>,
    requests: Vec<Vec<&'a str>>,
}

/// Where the keys of the slots, the places, the line and the tickets stand in a command.
pub const KEYS: std::ops::Range<usize> = 4..8;
/// Where the lane's key stands in a command, and where the script's arguments begin.
pub const LANE: usize = 8;
const ARGUMENTS: usize = 9;
/// Schema, sequence, last moment, highest fence seen, jumped, seed, channel.
const HEAD: usize = 7;

impl<'a> Sent<'a> {
    /// Reads a command; `None` if it does not call the script of slots.
    ///
    /// # Panics
    /// If the words are not those of a known request: the wire has changed, and this reading with it.
    pub fn read(command: &'a [String]) -> Option<Self> {
        let evaluates = matches!(command.first().map(String::as_str), Some("EVAL" | "EVALSHA"));
        if !evaluates || is_of_limits(command) {
            return None;
        }
        let words: Vec<&str> = command[ARGUMENTS..].iter().map(String::as_str).collect();
        let (head, mut rest) = words.split_at(HEAD);
        let mut requests: Vec<Vec<&str>> = Vec::new();
        while !rest.is_empty() {
            // What a claim asks for besides.
            let (priority, ageing, steal) = match rest[0] {
                "with" => (rest[1], rest[2], rest[3]),
                _ => ("0", "0", "-"),
            };
            if rest[0] == "with" {
                rest = &rest[4..];
            }
            let count = |at: usize| rest[at].parse::<usize>().unwrap_or(0);
            let length = match rest[0] {
                "claim" if rest[6] == "any" => 10,
                "claim" if rest[6] == "named" => 8 + count(7),
                "claim" if rest[6] == "free" => 11 + count(10),
                "claim" => 9 + count(8),
                "more" => 3,
                "withdraw" => 2,
                "renew" => 4,
                "release" => 6,
                "resync" => 6,
                "define" => 4 + 2 * count(3),
                "change" => 4,
                "inspect" => 2 + count(1),
                "list" => 1,
                other => panic!("the request {other:?} is not known to the simulation"),
            };
            let (request, others) = rest.split_at(length);
            let mut request = request.to_vec();
            if request[0] == "claim" {
                request.splice(5..5, [priority, ageing]);
                request.insert(8, steal);
            }
            if request[0] == "more" {
                let mut claims = requests.iter().filter(|request| request[0] == "claim");
                let mut claim = claims.next_back().expect("a claim before").clone();
                (claim[1], claim[7]) = (request[1], request[2]);
                request = claim;
            }
            requests.push(request);
            rest = others;
        }
        Some(Sent { lane: &command[LANE], sequence: head[1], head: head.to_vec(), requests })
    }

    /// Whether it is one claim and nothing else; the slots that it names, if it names any.
    pub fn only_claim(&self) -> Option<&[&'a str]> {
        match self.requests.as_slice() {
            [claim] if claim[0] == "claim" => Some(match claim[9] {
                "any" => &[],
                "named" => &claim[11..],
                "free" => &claim[14..],
                _ => &claim[12..],
            }),
            _ => None,
        }
    }

    /// Whether it has requests of this kind and no others; how many.
    pub fn only(&self, kind: &str) -> Option<usize> {
        self.requests.iter().all(|request| request[0] == kind).then_some(self.requests.len())
    }

    /// What came of it, by its answer; `None` if nothing was performed.
    pub fn performance(&self, answer: &str) -> Option<Performance> {
        let mut lines = answer.split('\n');
        let mut done = lines.next()?.strip_prefix("done ")?.split(' ');
        let (now, top) = (done.next()?.parse().ok()?, done.next()?.parse().ok()?);
        // What has no pool keeps nothing, not even its time.
        if answer.ends_with("\nundefined") {
            return None;
        }
        let mut facts: Vec<Fact> = Vec::new();
        for (request, line) in self.requests.iter().zip(lines) {
            let reply: Vec<&str> = line.split(' ').collect();
            facts.extend(read(request, &reply));
        }
        // How many slots became ready, the tickets that are called, the fences of leases that are claimed, when the first that was
        // put to rest comes due, and the quiet time.
        let calls = done.skip(1).take_while(|word| !word.starts_with(['~', '=']));
        let (claimed, called): (Vec<&str>, Vec<&str>) = calls.partition(|word| word.starts_with('!'));
        facts.extend(called.iter().map(|&holder| Fact::Offered { holder: holder.to_owned() }));
        let fences: Vec<u64> = claimed.iter().filter_map(|word| word[1..].parse().ok()).collect();
        facts.extend((!fences.is_empty()).then_some(Fact::Called { fences }));
        Some(Performance {
            now,
            sent: 0,
            top,
            seen: self.head[3].parse().unwrap_or(0),
            jumped: self.head[4] == "1",
            envelope: self.sequence.parse().ok().map(|number| (self.lane.to_owned(), number)),
            longest: self.requests.iter().map(|request| longest(request)).max().unwrap_or(0),
            not_after: self.head[2].parse().ok(),
            facts,
        })
    }
}

/// The time to live that it says.
fn longest(request: &[&str]) -> u64 {
    let word = match request[0] {
        "define" => request[1],
        "claim" => request[2],
        "renew" => request[3],
        _ => "0",
    };
    word.parse().unwrap_or(0)
}

fn bid(claim: &[&str]) -> Bid {
    let number = |at: usize| claim[at].parse::<u64>().unwrap_or(0);
    Bid {
        holder: claim[1].to_owned(),
        wish: match claim[9] {
            "any" => Wish::Any(number(11)),
            "among" => Wish::Among {
                count: number(10),
                slots: claim[12..].iter().map(|&slot| slot.to_owned()).collect(),
            },
            "named" => Wish::Names(claim[11..].iter().map(|&name| name.to_owned()).collect()),
            "free" => Wish::Free {
                asked: number(12),
                names: claim[14..].iter().map(|&name| name.to_owned()).collect(),
                most: number(11),
            },
            other => unreachable!("{other} is no choice"),
        },
        priority: claim[5].parse().unwrap_or(0),
        ageing: number(6),
        waited: number(7),
        waits: claim[4] == "1",
        steal: claim[8].parse().ok(),
    }
}

fn read(request: &[&str], reply: &[&str]) -> Vec<Fact> {
    // What is granted in part is a grant with a word before it: when the others come due.
    if reply[0] == "partly" {
        return read(request, &[&["granted"], &reply[2..]].concat());
    }
    let number = |word: &str| word.parse::<u64>().unwrap_or(0);
    let lease = || (request[1].to_owned(), number(request[2]));
    match (request[0], reply[0]) {
        ("claim", "granted") => {
            let grants = reply[2..].chunks(5).map(|grant| Fact::Granted {
                holder: request[1].to_owned(),
                slot: grant[0].to_owned(),
                fence: number(grant[1]),
                deadline: number(grant[2]),
                max_hold: number(request[3]),
                known: grant[3] == "k",
            });
            std::iter::once(Fact::Served(bid(request))).chain(grants).collect()
        }
        ("claim", "refused") => {
            vec![Fact::Refused { bid: bid(request), why: reply[1].to_owned() }]
        }
        ("withdraw", "withdrawn") => vec![Fact::Withdrawn { holder: request[1].to_owned() }],
        ("define", "defined") => {
            let slots = request[4..].iter().step_by(2).map(|&slot| slot.to_owned()).collect();
            vec![Fact::Defined { slots, longest: number(request[1]) }]
        }
        ("renew", "renewed") => {
            let (slot, fence) = lease();
            vec![Fact::Renewed { slot, fence, deadline: number(reply[1]) }]
        }
        ("renew", "claimed") => {
            let (slot, fence) = lease();
            vec![Fact::Claimed { slot, fence, deadline: number(reply[1]) }]
        }
        ("release", "released") => {
            let (slot, fence) = lease();
            let (outcome, named) = (request[4].to_owned(), request[5] != "-");
            vec![Fact::Released { slot, fence, rest: number(request[3]), outcome, named }]
        }
        ("resync", "resynced") => {
            let (slot, fence) = lease();
            vec![Fact::Resynced { slot, fence }]
        }
        ("change", "changed") => {
            vec![Fact::Changed { slot: request[1].to_owned(), change: request[2].to_owned() }]
        }
        _ => Vec::new(),
    }
}

/// Whom a store that answers at once calls.
pub fn offers_of_memory(calls: &Calls) -> Vec<Fact> {
    let called = calls.tickets.iter().map(|&ticket| Fact::Offered { holder: holder(ticket) });
    let claimed = (!calls.claimed.is_empty()).then(|| Fact::Called { fences: calls.claimed.clone() });
    called.chain(claimed).collect()
}

fn holder(id: u128) -> String {
    format!("{id:032x}")
}

fn texts(slots: &[SlotId]) -> Vec<String> {
    slots.iter().map(|slot| slot.as_str().to_owned()).collect()
}

fn bid_of_memory(claim: &Claim) -> Bid {
    Bid {
        holder: holder(claim.holder),
        wish: match &claim.choice {
            Choice::Any { least, .. } => Wish::Any(u64::from(*least)),
            Choice::Free { slots, most, asked, .. } => {
                Wish::Free { asked: *asked, names: texts(slots), most: u64::from(*most) }
            }
            Choice::Among { slots, count } => Wish::Among { count: u64::from(*count), slots: texts(slots) },
            Choice::Named { slots } => Wish::Names(texts(slots)),
        },
        priority: i64::from(claim.priority),
        ageing: claim.ageing,
        waited: claim.waited,
        waits: claim.wait,
        steal: claim.steal,
    }
}

/// The same of a store that answers at once.
pub fn of_memory(request: &Request, reply: &Reply) -> Vec<Fact> {
    match (request, reply) {
        (Request::Claim(claim), Reply::Granted(grants) | Reply::Partly { grants, .. }) => {
            let grants = grants.iter().map(|grant| Fact::Granted {
                holder: holder(claim.holder),
                slot: grant.slot.as_str().to_owned(),
                fence: grant.fence,
                deadline: grant.deadline,
                max_hold: claim.max_hold,
                known: matches!(grant.nonce, NonceRecord::Known(_)),
            });
            std::iter::once(Fact::Served(bid_of_memory(claim))).chain(grants).collect()
        }
        (Request::Claim(claim), Reply::Refused { why, .. }) => {
            let why = match why {
                Refusal::Exhausted => "exhausted",
                Refusal::Claimed => "claimed",
                Refusal::Beyond => "beyond",
                Refusal::NoSlot => "noslot",
                Refusal::Quiet => "quiet",
            };
            vec![Fact::Refused { bid: bid_of_memory(claim), why: why.to_owned() }]
        }
        (Request::Withdraw { holder: whose }, Reply::Withdrawn) => {
            vec![Fact::Withdrawn { holder: holder(*whose) }]
        }
        (Request::Define { slots, longest, .. }, Reply::Defined { .. }) => {
            let slots = slots.iter().map(|spec| spec.slot.as_str().to_owned()).collect();
            vec![Fact::Defined { slots, longest: *longest }]
        }
        (Request::Renew { lease, .. }, Reply::Renewed { deadline }) => vec![Fact::Renewed {
            slot: lease.slot.as_str().to_owned(),
            fence: lease.fence,
            deadline: *deadline,
        }],
        (Request::Renew { lease, .. }, Reply::Claimed { deadline, .. }) => vec![Fact::Claimed {
            slot: lease.slot.as_str().to_owned(),
            fence: lease.fence,
            deadline: *deadline,
        }],
        (Request::Release { lease, outcome, cooldown }, Reply::Released) => {
            let (word, named) = match outcome {
                Outcome::Unsettled => ("unsettled", false),
                Outcome::Used { .. } => ("used", true),
                Outcome::Unused => ("unused", false),
                Outcome::Rejected { expected } => ("rejected", expected.is_some()),
                Outcome::Unknown { .. } => ("unknown", false),
            };
            vec![Fact::Released {
                slot: lease.slot.as_str().to_owned(),
                fence: lease.fence,
                rest: *cooldown,
                outcome: word.to_owned(),
                named,
            }]
        }
        (Request::Resync { lease, .. }, Reply::Resynced { .. }) => {
            vec![Fact::Resynced { slot: lease.slot.as_str().to_owned(), fence: lease.fence }]
        }
        (Request::Change { slot, change }, Reply::Changed) => {
            let change = match change {
                SlotChange::Enable => "enable",
                SlotChange::Disable => "disable",
                SlotChange::Drain => "drain",
                SlotChange::Remove => "remove",
                SlotChange::Quarantine(_) => "quarantine",
                SlotChange::Break => "break",
            };
            vec![Fact::Changed { slot: slot.as_str().to_owned(), change: change.to_owned() }]
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(words: &str) -> Vec<String> {
        words.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn an_envelope_and_its_answer_are_read() {
        let command = sent(
            "EVALSHA sha 6 m s p l t lane 1 7 99 31 1 5 wake \
             with -2 6 - claim 0a 50 70 1 8 any random 1 2 release acct 12 3 unknown - more 0b 9 inspect 1 acct",
        );
        let sent = Sent::read(&command).expect("a script");
        assert_eq!((sent.lane, sent.sequence), ("lane", "7"));
        let answer = "done 40 41 0 0c !17 0d\ngranted 1 acct 41 90 k 7\nreleased\n\
                      refused exhausted -\ninspected 0 0 0 0 0 0";
        let done = sent.performance(answer).expect("performed");
        let head = (done.now, done.top, done.seen, done.jumped, done.not_after);
        assert_eq!(head, (40, 41, 31, true, Some(99)));
        let bid = |holder: &str, waited| Bid {
            holder: holder.to_owned(),
            wish: Wish::Any(1),
            priority: -2,
            ageing: 6,
            waited,
            waits: true,
            steal: None,
        };
        let offered = |holder: &str| Fact::Offered { holder: holder.to_owned() };
        assert_eq!(done.facts.len(), 7);
        assert_eq!(done.facts[0], Fact::Served(bid("0a", 8)));
        assert!(matches!(
            &done.facts[1],
            Fact::Granted { fence: 41, deadline: 90, max_hold: 70, known: true, .. }
        ));
        assert!(matches!(&done.facts[2], Fact::Released { fence: 12, rest: 3, named: false, .. }));
        assert_eq!(done.facts[3], Fact::Refused { bid: bid("0b", 9), why: "exhausted".to_owned() });
        let called = Fact::Called { fences: vec![17] };
        assert_eq!(done.facts[4..], [offered("0c"), offered("0d"), called]);
        assert_eq!(sent.performance("stale 40"), None);
    }

    #[test]
    fn claims_of_names_and_definitions_are_read() {
        let command = sent(
            "EVALSHA sha 6 m s p l t lane 1 7 - 0 0 5 wake \
             define 9 0 2 x 1 y 1 claim 0a 50 0 0 0 named 2 a b withdraw 0a",
        );
        let sent = Sent::read(&command).expect("a script");
        let done =
            sent.performance("done 40 41 0\ndefined 2 2\ngranted 2 a 40 90 u - b 41 90 u -\nwithdrawn");
        let facts = done.expect("performed").facts;
        assert_eq!(facts[0], Fact::Defined { slots: vec!["x".to_owned(), "y".to_owned()], longest: 9 });
        let names = vec!["a".to_owned(), "b".to_owned()];
        assert!(matches!(&facts[1], Fact::Served(bid) if bid.wish == Wish::Names(names) && !bid.waits));
        assert!(matches!(&facts[3], Fact::Granted { fence: 41, slot, .. } if slot == "b"));
        assert_eq!(facts[4], Fact::Withdrawn { holder: "0a".to_owned() });
    }
}
