//! What a store did, read from the words that travelled: an own reading of the wire, not the library's.

use leasehold::nonce::{NonceRecord, Outcome};
use leasehold::slots::{Claim, Reply, Request, SlotChange};

use crate::history::Fact;

/// One envelope as it stands in a command.
#[derive(Debug)]
pub struct Sent<'a> {
    /// The key that makes it idempotent.
    pub lane: &'a str,
    /// Its number in its lane.
    pub sequence: &'a str,
    /// The last store time at which it is wanted.
    pub not_after: Option<u64>,
    requests: Vec<Vec<&'a str>>,
}

/// Where the lane's key stands in a command, and where the script's arguments begin.
pub const LANE: usize = 8;
const ARGUMENTS: usize = 9;
/// Schema, channel, sequence, last moment, highest fence seen, jumped, seed.
const HEAD: usize = 7;

impl<'a> Sent<'a> {
    /// Reads a command; `None` if it calls no script.
    ///
    /// # Panics
    /// If the words are not those of a known request: the wire has changed, and this reading with it.
    pub fn read(command: &'a [String]) -> Option<Self> {
        if !matches!(command.first().map(String::as_str), Some("EVAL" | "EVALSHA")) {
            return None;
        }
        let words: Vec<&str> = command[ARGUMENTS..].iter().map(String::as_str).collect();
        let (head, mut rest) = words.split_at(HEAD);
        let mut requests: Vec<Vec<&str>> = Vec::new();
        while !rest.is_empty() {
            let count = |at: usize| rest[at].parse::<usize>().unwrap_or(0);
            let length = match rest[0] {
                "claim" if rest[9] == "any" => 13,
                "claim" if rest[9] == "named" => 11 + count(10),
                "claim" if rest[9] == "free" => 14 + count(13),
                "claim" => 13 + count(12),
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
            if request[0] == "more" {
                let mut claims = requests.iter().filter(|request| request[0] == "claim");
                let mut claim = claims.next_back().expect("a claim before").clone();
                claim[1] = request[1];
                request = claim;
            }
            requests.push(request);
            rest = others;
        }
        Some(Sent { lane: &command[LANE], sequence: head[2], not_after: head[3].parse().ok(), requests })
    }

    /// Whether it is one claim and nothing else; the slots that it names, if it names any.
    pub fn only_claim(&self) -> Option<&[&'a str]> {
        match self.requests.as_slice() {
            [claim] if claim[0] == "claim" => Some(match claim[9] {
                "any" => &[],
                "named" => &claim[11..],
                "free" => &claim[14..],
                _ => &claim[13..],
            }),
            _ => None,
        }
    }

    /// The store's time in an answer and what it says was done; `None` if nothing was performed.
    pub fn facts(&self, answer: &str) -> Option<(u64, Vec<Fact>)> {
        let mut lines = answer.split('\n');
        let now = lines.next()?.strip_prefix("done ")?.split(' ').next()?.parse().ok()?;
        let facts = self.requests.iter().zip(lines).flat_map(|(request, line)| {
            let reply: Vec<&str> = line.split(' ').collect();
            read(request, &reply)
        });
        Some((now, facts.collect()))
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
        ("claim", "granted") => reply[2..]
            .chunks(5)
            .map(|grant| Fact::Granted {
                holder: request[1].to_owned(),
                slot: grant[0].to_owned(),
                fence: number(grant[1]),
                deadline: number(grant[2]),
                max_hold: number(request[3]),
                known: grant[3] == "k",
            })
            .collect(),
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

/// The same of a store that answers at once.
pub fn of_memory(request: &Request, reply: &Reply) -> Vec<Fact> {
    match (request, reply) {
        (Request::Claim(Claim { holder, max_hold, .. }), Reply::Granted(grants)) => grants
            .iter()
            .map(|grant| Fact::Granted {
                holder: holder.to_string(),
                slot: grant.slot.as_str().to_owned(),
                fence: grant.fence,
                deadline: grant.deadline,
                max_hold: *max_hold,
                known: matches!(grant.nonce, NonceRecord::Known(_)),
            })
            .collect(),
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
                Outcome::Unknown => ("unknown", false),
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

    #[test]
    fn an_envelope_and_its_answer_are_read() {
        let words = "EVALSHA sha 6 m s p l t lane 1 wake 7 99 0 0 5 \
                     claim 0a 50 70 1 0 0 0 - any random 1 2 release acct 12 3 unknown - more 0b 9 inspect 1 acct";
        let command: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
        let sent = Sent::read(&command).expect("a script");
        assert_eq!((sent.lane, sent.sequence, sent.not_after), ("lane", "7", Some(99)));
        let answer = "done 40 41 0\ngranted 1 acct 41 90 k 7\nreleased\n\
                      granted 1 bcct 42 90 k 7\ninspected 0 0 0 0 0 0";
        let (now, facts) = sent.facts(answer).expect("performed");
        assert_eq!((now, facts.len()), (40, 3));
        assert!(matches!(
            &facts[0],
            Fact::Granted { fence: 41, deadline: 90, max_hold: 70, known: true, .. }
        ));
        assert!(matches!(&facts[1], Fact::Released { fence: 12, rest: 3, named: false, .. }));
        assert!(matches!(&facts[2], Fact::Granted { holder, max_hold: 70, .. } if holder == "0b"));
        assert_eq!(sent.facts("stale 40"), None);
    }
}
