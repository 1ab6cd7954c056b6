//! The server: an embedded Redis that runs the real scripts, with its own clock and its misfortunes.

use std::collections::{BTreeSet, HashSet};

use leasehold::slots::Calls;
use leasehold::store::redis::{Resp, SCRIPT, heard};
use leasehold_embedded::{EmbeddedRedis, Fault, Resp as Raw, Snapshot};

use crate::facts::{KEYS, Sent};
use crate::history::{History, What};
use crate::world::{Instant, NATURE};

/// The server's time when a world begins.
pub const BEGINNING: u64 = 1_700_000_000_123_456;

/// A server.
pub struct Server {
    redis: EmbeddedRedis,
    /// What its clock has been set by since the world began.
    skew: i64,
    replica: Option<Snapshot>,
    /// The keys of each pool that was ever asked for: slots, places, line and tickets.
    pools: BTreeSet<Vec<String>>,
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
            answers: HashSet::new(),
        }
    }

    /// Sets the clock forward or back.
    pub fn step_clock(&mut self, now: Instant, by: i64, history: &History) {
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

    /// All slots and tickets of which anything is kept.
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
        records
    }

    /// Performs a command as it arrives; scripts with the text that is given instead of the library's.
    pub(crate) fn perform(
        &mut self,
        now: Instant,
        command: &[String],
        script: &(String, String),
        history: &History,
    ) -> Resp {
        self.redis.set_time(self.clock(now));
        let (text, digest) = script;
        let words: Vec<&[u8]> = command
            .iter()
            .enumerate()
            .map(|(at, word)| match (at, command[0].as_str()) {
                (1, "EVAL") => {
                    assert_eq!(word, SCRIPT, "a script that the simulation does not know");
                    text.as_bytes()
                }
                (1, "EVALSHA") => digest.as_bytes(),
                _ => word.as_bytes(),
            })
            .collect();
        let reply = converted(self.redis.command(&words));
        if let (Resp::Text(answer), Some(sent)) = (&reply, Sent::read(command)) {
            self.pools.insert(command[KEYS].to_vec());
            self.note(now, &sent, answer, history);
        }
        reply
    }

    /// What has been published, each with whom it calls.
    pub(crate) fn published(&mut self) -> Vec<(String, Option<Calls>)> {
        let calls = |text: Vec<u8>| heard(&String::from_utf8_lossy(&text));
        self.redis.published().into_iter().map(|(channel, text)| (channel, calls(text))).collect()
    }

    fn note(&mut self, at: Instant, sent: &Sent<'_>, answer: &str, history: &History) {
        let Some(done) = sent.performance(answer) else { return };
        // The store's time tells two performances apart: no two fall on one microsecond of a lane.
        if !self.answers.insert(format!("{} {} {}", sent.lane, sent.sequence, done.now)) {
            return;
        }
        history.record(at, NATURE, What::Performed(done));
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
