//! The judge of locks that several servers grant: reads what the servers did and what processes relied on, and shares no
//! code with the library. What each server does alone is for the [`checker`](crate::checker).
//!
//! | rule | says |
//! |---|---|
//! | S1 | no two processes rely on one name at once |
//! | S4 | whoever relies on a name has a majority of servers that keep it for as long |
//! | K1 | nobody else has a name before its last holder, if that is awake, was told that it is lost |
//! | F2 | fences of two holders are in their order, if the servers' clocks are nearer to each other than their grants are |
//! | T1, T2 | every acquisition ends once, by its timeout, in a way that its caller can understand |
//! | S7 | without a majority of servers that can be reached, nobody is told that others hold a name |
//! | R2 | what was given back, or was granted to somebody who has no majority, is soon free at every server that can be reached |
//! | A1, A2 | after the storm nothing is held, and every process can lock every name |
//!
//! Excused is what the library does not promise: who had a name from a server whose keys were deleted since, or whose
//! clock was set forward by more than is tolerated, may meet its successor, if these are so many servers that two
//! majorities may have had no other in common.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::census::Census;
use crate::checker::{Breach, Violation};
use crate::history::{Event, Fact, What};
use crate::server::BEGINNING;
use crate::waits::{LENIENCE, Waits};
use crate::world::{Instant, ProcessId};

/// What may be held against a world.
#[derive(Clone, Debug)]
pub struct MajorityRules {
    /// How many servers there are.
    pub servers: usize,
    /// The longest time to live of any lock.
    pub ttl: u64,
    /// By how much a server's clock may be set forward within a time to live.
    pub tolerated: i64,
}

/// Within how long all servers that can be reached know of a release.
const SOON: u64 = 3_000_000;
/// Who kept a lease is asked for no longer after its end.
const MEMORY: u64 = 30_000_000;
/// The errors with which an acquisition may end.
const ENDS: [&str; 3] = ["timed_out", "exhausted", "store_unavailable"];

/// The first rule that the history breaks. Each event is of a server, or of none.
pub fn judge(rules: &MajorityRules, events: &[(Option<usize>, Event)], census: &Census) -> Option<Violation> {
    let mut judge = Judge::new(rules);
    for ((server, event), number) in events.iter().zip(0..) {
        let read = judge.overdue(event.at).and_then(|()| match server {
            Some(server) => judge.hear(*server, event, census),
            None => judge.read(event, census),
        });
        if let Err(breach) = read {
            return Some(breach.at(event.at, number));
        }
    }
    let at = events.last().map_or(0, |(_, event)| event.at);
    judge.end().err().map(|breach| breach.at(at, events.len()))
}

struct Judge<'a> {
    rules: &'a MajorityRules,
    leases: Vec<Lease>,
    /// By server, what happened to it.
    servers: Vec<Server>,
    /// By name: who relies on it.
    beliefs: BTreeMap<String, Vec<Belief>>,
    /// By name: those who want to be told of the end.
    watched: BTreeMap<String, Vec<Watch>>,
    /// By name: the last holder's fence, and when a server granted it.
    last: HashMap<String, (u64, Instant, ProcessId)>,
    waits: Waits,
    /// By process: when it began to ask for what it has.
    asked: HashMap<ProcessId, Instant>,
    /// What is to be free by then.
    returns: Vec<(Instant, ProcessId, Instant)>,
    calm: bool,
    audited: usize,
    spread: (i64, i64),
}

/// A lease at one server.
#[derive(Debug)]
struct Lease {
    server: usize,
    slot: String,
    process: ProcessId,
    fence: u64,
    granted: Instant,
    /// When the server ends it, in true time.
    end: Instant,
    released: bool,
}

#[derive(Debug, Default)]
struct Server {
    /// When it broke what locks of several servers rest on.
    broken: Vec<Instant>,
    unreachable_since: Option<Instant>,
    /// When its clock was nudged.
    nudges: Vec<(Instant, i64)>,
}

#[derive(Debug)]
struct Belief {
    fence: u64,
    process: ProcessId,
    until: Instant,
    asked: Instant,
}

/// Who wants to be told of the end of a lock, and when it asked for it.
#[derive(Debug)]
struct Watch {
    fence: u64,
    process: ProcessId,
    asked: Instant,
}

impl<'a> Judge<'a> {
    fn new(rules: &'a MajorityRules) -> Self {
        Judge {
            rules,
            leases: Vec::new(),
            servers: (0..rules.servers).map(|_| Server::default()).collect(),
            beliefs: BTreeMap::new(),
            watched: BTreeMap::new(),
            last: HashMap::new(),
            waits: Waits::new(true),
            asked: HashMap::new(),
            returns: Vec::new(),
            calm: false,
            audited: 0,
            spread: (i64::MAX, i64::MIN),
        }
    }

    fn needed(&self) -> usize {
        self.rules.servers / 2 + 1
    }

    /// A server did something, or something befell it.
    fn hear(&mut self, server: usize, event: &Event, census: &Census) -> Result<(), Breach> {
        let at = event.at;
        match &event.what {
            What::Performed(done) => {
                let ahead = done.now as i64 - (BEGINNING + at) as i64;
                self.spread = (self.spread.0.min(ahead), self.spread.1.max(ahead));
                for fact in &done.facts {
                    self.apply(server, at, done.now, event.process, fact, census);
                }
            }
            What::Flushed => self.servers[server].broken.push(at),
            What::ClockStepped(by) if *by > 0 => {
                let (since, nudges) = (at.saturating_sub(self.rules.ttl), &mut self.servers[server].nudges);
                nudges.push((at, *by));
                let lately: i64 = nudges.iter().filter(|(at, _)| *at >= since).map(|(_, by)| by).sum();
                if lately > self.rules.tolerated {
                    self.servers[server].broken.push(at);
                }
            }
            What::StoreReachable(true) => self.servers[server].unreachable_since = None,
            What::StoreReachable(false) => {
                self.servers[server].unreachable_since.get_or_insert(at);
            }
            _ => {}
        }
        Ok(())
    }

    fn apply(
        &mut self,
        server: usize,
        at: Instant,
        now: u64,
        process: ProcessId,
        fact: &Fact,
        census: &Census,
    ) {
        let ends = |deadline: u64| at + deadline.saturating_sub(now);
        match fact {
            Fact::Granted { slot, fence, deadline, .. } => {
                let split = |lease: &Lease| {
                    lease.slot == *slot && lease.process != process && !lease.released && lease.end > at
                };
                if self.leases.iter().any(split) {
                    census.count("vote split");
                }
                self.leases.retain(|lease| lease.end + MEMORY > at);
                self.leases.push(Lease {
                    server,
                    slot: slot.clone(),
                    process,
                    fence: *fence,
                    granted: at,
                    end: ends(*deadline),
                    released: false,
                });
            }
            Fact::Renewed { slot, fence, deadline } => {
                if let Some(lease) = self.lease(server, slot, *fence) {
                    let first = lease.granted;
                    lease.end = lease.end.max(ends(*deadline));
                    let old = at > first + self.rules.ttl;
                    census.add("lease of a majority outlived its ttl", u64::from(old));
                }
            }
            Fact::Released { slot, fence, .. } => {
                if let Some(lease) = self.lease(server, slot, *fence) {
                    lease.released = true;
                }
            }
            _ => {}
        }
    }

    fn lease(&mut self, server: usize, slot: &str, fence: u64) -> Option<&mut Lease> {
        let found = |lease: &&mut Lease| lease.server == server && lease.fence == fence && lease.slot == slot;
        self.leases.iter_mut().rev().find(found)
    }

    /// A process did something, or something befell it.
    fn read(&mut self, event: &Event, census: &Census) -> Result<(), Breach> {
        let (at, process) = (event.at, event.process);
        match &event.what {
            What::AcquireBegan { acquire, timeout, grace } => {
                self.waits.begin(at, process, *acquire, *timeout, *grace);
                self.asked.insert(process, at);
            }
            What::AcquireEnded { acquire, end } => {
                self.acquire_ended(at, *acquire, end)?;
                if !matches!(end, Some(Ok(_))) {
                    self.let_go(at, process);
                }
            }
            What::Believes { slot, fence, until } => {
                self.believes(at, process, slot, *fence, *until, census)?
            }
            What::Watched { slot, fence } => {
                let asked = self.asked.get(&process).copied().unwrap_or(0);
                self.watched.entry(slot.clone()).or_default().push(Watch { fence: *fence, process, asked });
            }
            What::ToldLost { fence } => self.unwatch(process, *fence),
            What::Closed { fence } => {
                self.unwatch(process, *fence);
                let own = |belief: &Belief| belief.process == process && belief.fence == *fence;
                self.beliefs.values_mut().for_each(|beliefs| beliefs.retain(|belief| !own(belief)));
                self.let_go(at, process);
            }
            What::Answered { error: None, .. } => {}
            What::Answered { error: Some(code), .. }
                if ["lost", "store_unavailable"].contains(&code.as_str()) => {}
            What::Answered { fence, call, error } => {
                return Err(Breach::new("T3", format!("{call} of {fence} was answered with {error:?}")));
            }
            What::Killed => {
                self.waits.kill(process);
                self.watched.values_mut().for_each(|of| of.retain(|watch| watch.process != process));
                self.beliefs.values_mut().for_each(|of| of.retain(|belief| belief.process != process));
            }
            What::Paused(stands) => self.waits.pause(at, process, *stands),
            What::Audited { slot, failure: Some(failure) } => {
                return Err(Breach::new("A1", format!("{slot} after the storm: {failure}")));
            }
            What::Audited { failure: None, .. } => self.audited += 1,
            What::Calm => {
                self.calm = true;
                if let Some(lease) = self.leases.iter().find(|lease| !lease.released && lease.end > at) {
                    return Err(Breach::new("A2", format!("{lease:?} after the storm")));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A process relies on nothing any more: by then every server knows, if nothing is in the way.
    fn let_go(&mut self, at: Instant, process: ProcessId) {
        if self.calm {
            self.returns.push((at + SOON, process, at));
        }
    }

    /// What was let go, and is still held when it should not be.
    fn overdue(&mut self, at: Instant) -> Result<(), Breach> {
        let (due, later) = std::mem::take(&mut self.returns).into_iter().partition(|(by, ..)| *by < at);
        self.returns = later;
        let due: Vec<(Instant, ProcessId, Instant)> = due;
        for (by, process, since) in due {
            let left = |lease: &&Lease| {
                lease.process == process && lease.granted <= since && !lease.released && lease.end > by
            };
            if let Some(lease) = self.leases.iter().find(left) {
                return Err(Breach::new("R2", format!("{process} gave back what it had, but for {lease:?}")));
            }
        }
        Ok(())
    }

    fn believes(
        &mut self,
        at: Instant,
        process: ProcessId,
        slot: &str,
        fence: u64,
        until: Instant,
        census: &Census,
    ) -> Result<(), Breach> {
        let asked = self.asked.get(&process).copied().unwrap_or(0);
        let own = |lease: &&Lease| {
            lease.process == process && lease.slot == slot && lease.granted >= asked && !lease.released
        };
        let kept: BTreeSet<usize> = self
            .leases
            .iter()
            .filter(own)
            .filter(|lease| lease.end >= until)
            .map(|lease| lease.server)
            .collect();
        // A renewal that arrives after the end leaves nothing to rely on.
        if until > at && kept.len() < self.needed() {
            let text =
                format!("{process} relies on {slot} {fence} until {until}, which {kept:?} keep so long");
            return Err(Breach::new("S4", text));
        }
        census.add("more than a bare majority", u64::from(until > at && kept.len() > self.needed()));
        // Of several names it is the fence of one.
        let named =
            |lease: &&Lease| (lease.process, lease.fence) == (process, fence) && lease.granted >= asked;
        let granted = self.leases.iter().find(named).map(|lease| lease.granted);
        let beliefs = self.beliefs.entry(slot.to_owned()).or_default();
        beliefs.retain(|belief| belief.until > at && (belief.process, belief.fence) != (process, fence));
        let other = beliefs.iter().map(|belief| (belief.process, belief.fence, belief.asked)).next();
        if until > at {
            beliefs.push(Belief { fence, process, until, asked });
        }
        if let Some((holder, before, since)) = other.filter(|_| until > at) {
            if !self.is_excused(since) {
                let text = format!("{slot} is held by {holder} ({before}) and by {process} ({fence})");
                return Err(Breach::new("S1", text));
            }
            census.count("two hold what broken servers granted");
        }
        self.told(at, process, slot, fence)?;
        match granted {
            Some(granted) => self.in_order(slot, fence, granted, process, census),
            None => Err(Breach::new("S7", format!("no server granted {process} {slot} {fence}"))),
        }
    }

    /// Whether two majorities may have had only servers in common that broke since then.
    fn is_excused(&self, since: Instant) -> bool {
        let broken = self.servers.iter().filter(|server| server.broken.iter().any(|&at| at >= since)).count();
        broken >= 2 * self.needed() - self.rules.servers
    }

    /// Whoever had the name was told.
    fn told(&self, at: Instant, process: ProcessId, slot: &str, fence: u64) -> Result<(), Breach> {
        let standing = |process| self.waits.stood(process, at.saturating_sub(LENIENCE), at) > 0;
        let untold = |watch: &&Watch| {
            let other = (watch.fence, watch.process) != (fence, process);
            other && !standing(watch.process) && !self.is_excused(watch.asked)
        };
        match self.watched.get(slot).into_iter().flatten().find(untold) {
            Some(watch) => {
                let text = format!("{process} has {slot} {fence}, and {watch:?} was not told");
                Err(Breach::new("K1", text))
            }
            None => Ok(()),
        }
    }

    /// Fences are in their order while clocks are near enough.
    fn in_order(
        &mut self,
        slot: &str,
        fence: u64,
        granted: Instant,
        process: ProcessId,
        census: &Census,
    ) -> Result<(), Breach> {
        let now = (fence, granted, process);
        let Some((before, since, holder)) = self.last.insert(slot.to_owned(), now) else { return Ok(()) };
        if (before, holder) == (fence, process) || before < fence {
            return Ok(());
        }
        census.count("fences out of their order");
        let apart = (self.spread.1 - self.spread.0) as u64;
        match granted.saturating_sub(since) > apart + 1 {
            true => {
                let text = format!(
                    "{slot} {fence} of {process} after {before} of {holder}, {} us later; clocks are {apart} apart",
                    granted - since
                );
                Err(Breach::new("F2", text))
            }
            false => Ok(()),
        }
    }

    fn acquire_ended(
        &mut self,
        at: Instant,
        number: u64,
        end: &Option<Result<usize, String>>,
    ) -> Result<(), Breach> {
        let began = self.waits.end(at, number)?;
        let gone = |server: &&Server| server.unreachable_since.is_some_and(|since| since <= began);
        match end {
            Some(Err(code)) if !ENDS.contains(&code.as_str()) => {
                Err(Breach::new("T2", format!("acquisition {number} ended with {code}")))
            }
            Some(Err(code)) if code != "store_unavailable" => {
                let there = self.rules.servers - self.servers.iter().filter(gone).count();
                match there < self.needed() {
                    true => Err(Breach::new(
                        "S7",
                        format!("acquisition {number} says {code}, {there} can be asked"),
                    )),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn unwatch(&mut self, process: ProcessId, fence: u64) {
        let own = |watch: &Watch| (watch.fence, watch.process) == (fence, process);
        self.watched.values_mut().for_each(|watched| watched.retain(|watch| !own(watch)));
    }

    fn end(&self) -> Result<(), Breach> {
        self.waits.all_ended()?;
        match self.audited {
            0 => Err(Breach::new("A1", "nobody could be audited")),
            _ => Ok(()),
        }
    }
}
