//! The server: an embedded Redis that runs the real scripts, with its own clock and its misfortunes.

use std::collections::{BTreeSet, HashSet};

use leasehold::slots::Calls;
use leasehold::store::redis::{LIMITS_SCRIPT, Resp, SCRIPT, heard};
use leasehold_embedded::{EmbeddedRedis, Fault, Resp as Raw, Snapshot};

use sha1_smol::Sha1;

use crate::charges::{SentCharges, is_of_limits};
use crate::facts::{KEYS, Sent};
use crate::history::{History, Performance, What};
use crate::planted::Planted;
use crate::world::{Instant, NATURE, ProcessId};

/// The server's time when a world begins.
pub const BEGINNING: u64 = 1_700_000_000_123_456;

/// The scripts that a server is given in place of the library's, each with its digest.
pub struct Scripts {
    slots: (String, String),
    limits: (String, String),
}

impl Scripts {
    /// The library's own, or those with a bug in them.
    pub fn new(bug: Option<Planted>) -> Self {
        let own = || (SCRIPT.to_owned(), LIMITS_SCRIPT.to_owned());
        let (slots, limits) = bug.map_or_else(own, |bug| bug.scripts());
        let named = |text: String| {
            let digest = Sha1::from(&text).digest().to_string();
            (text, digest)
        };
        Scripts { slots: named(slots), limits: named(limits) }
    }
}

/// A server.
pub struct Server {
    redis: EmbeddedRedis,
    /// What its clock has been set by since the world began.
    skew: i64,
    replica: Option<Snapshot>,
    /// The keys of each pool that was ever asked for: slots, places, line and tickets.
    pools: BTreeSet<Vec<String>>,
    /// All keys of limits and of their reservations.
    limits: BTreeSet<String>,
    /// All answers, to tell one that is given again from one that is new.
    answers: HashSet<String>,
}

impl Server {
    pub(crate) fn new() -> Self {
        Server {
            redis: EmbeddedRedis::new(BEGINNING),
            skew: 0,
            replica: None,
            pools: BTreeSet::new(),
            limits: BTreeSet::new(),
            answers: HashSet::new(),
        }
    }

    /// Sets the clock forward or back.
    pub fn step_clock(&mut self, now: Instant, by: i64, history: &History) {
        // What has expired is gone, wherever the clock goes.
        self.redis.set_time(self.clock(now));
        self.redis.key_count();
        self.skew += by;
        self.redis.set_time(self.clock(now));
        history.record(now, NATURE, What::ClockStepped(by));
    }

    /// What its clock has been set by in all.
    pub fn skew(&self) -> i64 {
        self.skew
    }

    /// Refuses commands from here on, or serves them again.
    pub fn set_fault(&mut self, fault: Option<Fault>) {
        self.redis.set_fault(fault);
    }

    /// Forgets its scripts.
    pub fn flush_scripts(&mut self) {
        self.redis.flush_scripts();
    }

    /// Restarts with its data.
    pub fn restart(&mut self, now: Instant, history: &History) {
        self.redis.set_time(self.clock(now));
        self.redis.restart();
        history.record(now, NATURE, What::Restarted);
    }

    /// Restarts without its data.
    pub fn wipe(&mut self, now: Instant, history: &History) {
        self.redis.set_time(self.clock(now));
        self.redis.wipe();
        self.replica = None;
        history.record(now, NATURE, What::Wiped);
    }

    /// Forgets its keys, while it runs, and so do its replicas: nothing of it tells so. One that refuses commands keeps
    /// them: then false.
    pub fn flush(&mut self, now: Instant, history: &History) -> bool {
        self.redis.set_time(self.clock(now));
        if matches!(self.redis.command(&[b"FLUSHALL"]), Raw::Error(_)) {
            return false;
        }
        self.replica = None;
        history.record(now, NATURE, What::Flushed);
        true
    }

    /// The replica is up to date, and from here on behind. False if there is nothing to copy.
    pub fn copy(&mut self, now: Instant, history: &History) -> bool {
        if self.redis.key_count() == 0 {
            return false;
        }
        self.replica = Some(self.redis.snapshot());
        history.record(now, NATURE, What::Copied);
        true
    }

    /// The replica takes over. False if there is none.
    pub fn promote(&mut self, now: Instant, history: &History) -> bool {
        let Some(replica) = self.replica.take() else { return false };
        self.redis.set_time(self.clock(now));
        self.redis.promote(replica);
        history.record(now, NATURE, What::Promoted);
        true
    }

    /// All slots, tickets, limits and reservations of which anything is kept.
    pub fn records(&mut self, now: Instant) -> Vec<String> {
        self.redis.set_time(self.clock(now));
        let mut records = Vec::new();
        for keys in self.pools.clone() {
            let [slots, places, line, tickets] = keys.as_slice() else { continue };
            for (command, key) in [("HKEYS", slots), ("HKEYS", tickets), ("ZRANGE", places), ("ZRANGE", line)]
            {
                let mut words = vec![command.as_bytes(), key.as_bytes()];
                words.extend([b"0".as_slice(), b"-1"].into_iter().filter(|_| command == "ZRANGE"));
                let Resp::List(items) = converted(self.redis.command(&words)) else { continue };
                records.extend(items.into_iter().filter_map(|item| match item {
                    // What stands behind all places is neither.
                    Resp::Text(text) if !text.starts_with("%%") => Some(format!("{command} {text}")),
                    _ => None,
                }));
            }
        }
        for key in self.limits.clone() {
            if self.redis.command(&[b"EXISTS", key.as_bytes()]) == Raw::Int(1) {
                records.push(key);
            }
        }
        records
    }

    /// Performs a command of a process as it arrives; scripts with the text that is given instead of the library's. Says
    /// whether the answer is of requests to slots that were performed now.
    pub(crate) fn perform(
        &mut self,
        now: Instant,
        (process, sent): (ProcessId, Instant),
        command: &[String],
        scripts: &Scripts,
        history: &History,
    ) -> (Resp, bool) {
        self.redis.set_time(self.clock(now));
        let of_limits = is_of_limits(command);
        let (text, digest) = if of_limits { &scripts.limits } else { &scripts.slots };
        let words: Vec<&[u8]> = command
            .iter()
            .enumerate()
            .map(|(at, word)| match (at, command[0].as_str()) {
                (1, "EVAL") => {
                    assert!(of_limits || word == SCRIPT, "a script that the simulation does not know");
                    text.as_bytes()
                }
                (1, "EVALSHA") => digest.as_bytes(),
                _ => word.as_bytes(),
            })
            .collect();
        let (reply, mut performed) = (converted(self.redis.command(&words)), false);
        if let (Resp::Text(answer), Some(envelope)) = (&reply, Sent::read(command)) {
            self.pools.insert(command[KEYS].to_vec());
            if let Some(done) = self.new_performance(&envelope, answer) {
                performed = true;
                history.record(now, process, What::Performed(Performance { sent, ..done }));
            }
        }
        if let (Resp::Text(answer), Some(sent)) = (&reply, SentCharges::read(command)) {
            self.limits.extend(SentCharges::keys(command).iter().skip(1).cloned());
            if let Some(done) = sent.performed(answer) {
                let number = done.lane.as_ref().map(|(lane, number)| format!("{lane} {number} {}", done.now));
                // An answer that is given again tells the time of the first.
                if number.is_none_or(|number| self.answers.insert(number)) {
                    history.record(now, NATURE, What::Charged(done));
                }
            }
        }
        (reply, performed)
    }

    /// What has been published, each with whom it calls.
    pub(crate) fn published(&mut self) -> Vec<(String, Option<Calls>)> {
        let calls = |text: Vec<u8>| heard(&String::from_utf8_lossy(&text));
        self.redis.published().into_iter().map(|(channel, text)| (channel, calls(text))).collect()
    }

    fn new_performance(&mut self, sent: &Sent<'_>, answer: &str) -> Option<Performance> {
        let done = sent.performance(answer)?;
        // The store's time tells two performances apart: no two fall on one microsecond of a lane.
        self.answers.insert(format!("{} {} {}", sent.lane, sent.sequence, done.now)).then_some(done)
    }

    fn clock(&self, now: Instant) -> u64 {
        (BEGINNING + now).saturating_add_signed(self.skew)
    }
}

fn converted(raw: Raw) -> Resp {
    match raw {
        Raw::Nil => Resp::Nil,
        Raw::Int(number) => Resp::Integer(number),
        Raw::Bulk(bytes) => Resp::Text(String::from_utf8_lossy(&bytes).into_owned()),
        Raw::Simple(text) => Resp::Text(text),
        Raw::Array(items) => Resp::List(items.into_iter().map(converted).collect()),
        Raw::Error(text) => Resp::Error(text),
    }
}
