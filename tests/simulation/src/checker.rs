//! The judge: reads a history and nothing else, and shares no code with the library.
//!
//! | rule | says |
//! |---|---|
//! | S1 | no two leases of one slot are in force, in the store's time and in the holders' beliefs in true time |
//! | S2 | the fences of a pool, and so of each slot, increase over all grants ever, whatever the store forgot |
//! | S3 | only the lease in force is renewed, released or resynced |
//! | S4 | no holder relies on a lease for longer than the store keeps it |
//! | K1 | nobody else is granted a slot before its last holder, if that is awake, was told that its lease is lost |
//! | S5 | no nonce of an account is signed under two leases unless the first can never count |
//! | S6 | a lease that somebody of higher priority waits for lasts as long as it did before |
//! | S7 | no lease that the store did not grant; no "exhausted" from a store that nobody can reach |
//! | N1 | several names are granted all together, until one moment, or none of them |
//! | N2 | when nobody wants them any more the store keeps nothing of names and of those who waited |
//! | R1 | no lease is given back while its holder relies on it |
//! | S10 | a nonce of which nobody said what became of it is not handed out as known |
//! | S11 | after the store lost memory nothing is granted for one longest time to live and one rest of doubt |
//! | C2 | nothing is granted before its rest has ended |
//! | L7 | no lease is prolonged beyond its longest hold |
//! | E1, E2 | no envelope is performed after its last moment; no claim is granted twice |
//! | E3 | the store's time runs forward only, as long as memory is kept |
//! | Q1 | nobody is granted or offered what somebody wants who stands before it in the line: see [`LineModel`] |
//! | Q2 | what is offered is kept for that ticket, which gets it when it asks in time |
//! | Q3 | what is free is offered to the first in line who wants it, once all that it wants is free |
//! | Q4 | only who stands in line is offered anything |
//! | T1, T2 | every acquisition ends once, by its timeout, in a way that its caller can understand |
//! | T3 | the truth about a nonce is never refused |
//! | W1 | a store that is gone is not hammered |
//! | A1 | after the storm every process can lease, and every account can be leased and used |
//! | A2 | after the storm nobody waits and nothing is held |
//!
//! Excused is what the library does not promise: leases that were given before the server's clock was set
//! forward, that an administrator broke, or whose slot one removed, may meet their successors.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use crate::bundles::Bundles;
use crate::census::Census;
use crate::history::{Event, Fact, Performance, What};
use crate::line_model::LineModel;
use crate::signatures::Signatures;
use crate::slot_model::SlotModel;
use crate::world::{Instant, ProcessId};

/// What may be held against a world.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The longest time to live of any lease.
    pub ttl: u64,
    /// How long a slot in doubt rests.
    pub doubt_rest: u64,
    /// All accounts.
    pub accounts: Vec<String>,
    /// Whether a slot may be missing: each process adds some only, or administrators remove some.
    pub mixed: bool,
    /// The workers of a process.
    pub workers: u64,
    /// Whether clocks drift by up to a hundredth.
    pub drift: bool,
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: &'static str,
    /// When, in true time.
    pub at: Instant,
    /// The number of the event.
    pub event: usize,
    /// How.
    pub text: String,
}

/// A rule that was broken, without its time.
#[derive(Debug)]
pub struct Breach {
    rule: &'static str,
    text: String,
}

/// How much later than its timeout an acquisition may end.
const LENIENCE: u64 = 60_000;
/// Who asks no more for so long does not wait.
const CALM: u64 = 10_000_000;
/// The errors with which an acquisition may end.
const ENDS: [&str; 4] = ["timed_out", "exhausted", "store_unavailable", "nonce_unavailable"];

impl Breach {
    pub(crate) fn new(rule: &'static str, text: impl Into<String>) -> Self {
        Breach { rule, text: text.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:.6} s: {}", self.rule, self.at as f64 / 1e6, self.text)
    }
}

/// The first rule that the history breaks.
pub fn judge(rules: &Rules, events: &[Event], census: &Census) -> Option<Violation> {
    let mut judge = Judge { rules, ..Judge::new(rules) };
    for (event, number) in events.iter().zip(0..) {
        if let Err(breach) = judge.read(event, census) {
            return Some(Violation { rule: breach.rule, at: event.at, event: number, text: breach.text });
        }
    }
    let at = events.last().map_or(0, |event| event.at);
    judge.end().err().map(|breach| Violation {
        rule: breach.rule,
        at,
        event: events.len(),
        text: breach.text,
    })
}

struct Judge<'a> {
    rules: &'a Rules,
    store: SlotModel,
    line: LineModel,
    bundles: Bundles,
    /// By slot: the leases that are relied on.
    beliefs: BTreeMap<String, Vec<Belief>>,
    /// By slot: the leases of whose end somebody wants to be told.
    watched: BTreeMap<String, Vec<(u64, ProcessId)>>,
    signatures: Signatures,
    acquires: HashMap<u64, Acquire>,
    killed: HashSet<ProcessId>,
    pauses: HashMap<ProcessId, Vec<(Instant, Instant)>>,
    lost_at: Option<Instant>,
    /// The store's time, since memory was last lost.
    store_time: u64,
    unreachable_since: Option<Instant>,
    /// Leases up to this fence were given before the clock was set forward.
    before_jump: u64,
    broken: HashSet<u64>,
    /// By slot: the fences of its leases.
    granted: HashMap<String, Vec<u64>>,
    highest: u64,
    audited: HashSet<String>,
}

struct Belief {
    fence: u64,
    process: ProcessId,
    until: Instant,
}

struct Acquire {
    process: ProcessId,
    began: Instant,
    timeout: u64,
    grace: u64,
}

impl<'a> Judge<'a> {
    fn new(rules: &'a Rules) -> Self {
        Judge {
            rules,
            store: SlotModel::default(),
            line: LineModel::default(),
            bundles: Bundles::default(),
            beliefs: BTreeMap::new(),
            watched: BTreeMap::new(),
            signatures: Signatures::default(),
            acquires: HashMap::new(),
            killed: HashSet::new(),
            pauses: HashMap::new(),
            lost_at: None,
            store_time: 0,
            unreachable_since: None,
            before_jump: 0,
            broken: HashSet::new(),
            granted: HashMap::new(),
            highest: 0,
            audited: HashSet::new(),
        }
    }

    fn read(&mut self, event: &Event, census: &Census) -> Result<(), Breach> {
        let (at, process) = (event.at, event.process);
        match &event.what {
            What::Performed(done) => {
                let offers = done.facts.iter().filter(|fact| matches!(fact, Fact::Offered { .. })).count();
                census.add("offers", offers as u64);
                self.performed(at, done)?;
            }
            What::Wiped => {
                self.store.wipe();
                self.line.wipe();
                (self.lost_at, self.store_time) = (Some(at), 0);
            }
            What::Restarted => {
                self.store.doubt_all();
                self.line.clear();
            }
            What::Copied => {
                self.store.copy();
                self.line.copy();
            }
            What::Promoted => {
                self.store.promote();
                self.line.promote();
                (self.lost_at, self.store_time) = (Some(at), 0);
            }
            What::ClockStepped(by) if *by > 0 => {
                self.before_jump = self.highest;
                self.lost_at = None;
            }
            What::ClockStepped(_) => {}
            What::StoreReachable(true) => self.unreachable_since = None,
            What::StoreReachable(false) => {
                self.unreachable_since = Some(self.unreachable_since.unwrap_or(at))
            }
            What::Killed => {
                self.killed.insert(process);
                self.watched.values_mut().for_each(|watched| watched.retain(|watch| watch.1 != process));
                self.beliefs
                    .values_mut()
                    .for_each(|beliefs| beliefs.retain(|belief| belief.process != process));
            }
            What::Paused(true) => self.pauses.entry(process).or_default().push((at, Instant::MAX)),
            What::Paused(false) => {
                if let Some(pause) = self.pauses.entry(process).or_default().last_mut() {
                    pause.1 = at;
                }
            }
            What::AcquireBegan { acquire, timeout, grace } => {
                let began = Acquire { process, began: at, timeout: *timeout, grace: *grace };
                self.acquires.insert(*acquire, began);
            }
            What::AcquireEnded { acquire, end } => self.acquire_ended(at, *acquire, end)?,
            What::Believes { slot, fence, until } => {
                self.believes(at, process, slot, self.bundles.lease(slot, *fence), *until)?;
            }
            What::Watched { slot, fence } => {
                let fence = self.bundles.lease(slot, *fence);
                self.watched.entry(slot.clone()).or_default().push((fence, process));
            }
            What::ToldLost { fence } => self.unwatch(&self.bundles.leases(*fence)),
            What::Closed { fence } => {
                let fences = self.bundles.leases(*fence);
                self.unwatch(&fences);
                self.beliefs
                    .values_mut()
                    .for_each(|beliefs| beliefs.retain(|belief| !fences.contains(&belief.fence)));
            }
            What::Answered { fence, call, error } => self.answered(*fence, call, error.as_deref())?,
            What::Signed { transaction, account, nonce, fence } => {
                let (before, broken) = (self.before_jump, &self.broken);
                let excused = |fence| fence <= before || broken.contains(&fence);
                self.signatures.sign(*transaction, account, *nonce, *fence, excused, census)?;
            }
            What::Vanished { transaction } | What::Arrived { transaction, accepted: false } => {
                self.signatures.died(*transaction);
            }
            What::Arrived { transaction, accepted: true } => self.signatures.accepted(*transaction),
            What::Attempts { most } => {
                let bound = 30 + 20 * self.rules.workers;
                if *most > bound {
                    return Err(Breach::new(
                        "W1",
                        format!("{most} commands in a second to a store that is gone"),
                    ));
                }
            }
            What::Audited { slot, failure: None } => {
                self.audited.insert(slot.clone());
            }
            What::Audited { slot, failure: Some(failure) } => {
                return Err(Breach::new("A1", format!("{slot} after the storm: {failure}")));
            }
            What::Calm => self.calm(at)?,
            What::LeftBehind(records) if !records.is_empty() => {
                return Err(Breach::new("N2", format!("the store still keeps {records:?}")));
            }
            What::LeftBehind(_) => {}
            What::Leftover { waiting, leased } => {
                if (*waiting, *leased) != (0, 0) && !self.killed.contains(&process) {
                    let text =
                        format!("process {process} has {waiting} waiting, {leased} leased after the storm");
                    return Err(Breach::new("A2", text));
                }
            }
        }
        Ok(())
    }

    fn performed(&mut self, at: Instant, done: &Performance) -> Result<(), Breach> {
        let now = done.now;
        if now < self.store_time {
            return Err(Breach::new(
                "E3",
                format!("the store's time went back by {} us", self.store_time - now),
            ));
        }
        self.store_time = now;
        if let Some(last) = done.not_after.filter(|&last| now > last) {
            return Err(Breach::new("E1", format!("performed {} us after its last moment", now - last)));
        }
        self.bundles.read(&done.facts)?;
        self.line.begin(done);
        for fact in &done.facts {
            self.line.apply(at, now, fact)?;
            if let Fact::Granted { slot, fence, .. } = fact {
                let quiet = self
                    .lost_at
                    .map(|lost| lost + self.rules.ttl + self.rules.doubt_rest)
                    .filter(|&end| at < end);
                if let Some(end) = quiet {
                    let text =
                        format!("{slot} {fence} was granted {} us before memory could be trusted", end - at);
                    return Err(Breach::new("S11", text));
                }
                self.told(at, slot, *fence)?;
                if *fence <= self.highest {
                    let text =
                        format!("{slot} was granted with fence {fence}, the pool had {}", self.highest);
                    return Err(Breach::new("S2", text));
                }
                self.highest = *fence;
                self.granted.entry(slot.clone()).or_default().push(*fence);
            }
            if let Fact::Released { slot, fence, .. } = fact {
                self.released(at, slot, *fence)?;
            }
            if let Fact::Changed { slot, change } = fact
                && change == "break"
            {
                self.broken.insert(self.store.fence_of(slot));
            }
            if let Fact::Changed { slot, change } = fact
                && change == "remove"
            {
                // The nonces of a slot that is forgotten are forgotten.
                self.broken.extend(self.granted.get(slot).into_iter().flatten());
            }
            self.store.apply(at, now, self.rules.doubt_rest, fact)?;
        }
        self.line.end(now, |name| self.store.is_held(name, now))
    }

    /// A lease is given back: nobody may rely on it any more.
    fn released(&self, at: Instant, slot: &str, fence: u64) -> Result<(), Breach> {
        let mut beliefs = self.beliefs.get(slot).into_iter().flatten();
        match beliefs.find(|belief| belief.fence == fence && belief.until > at) {
            Some(belief) => {
                let text = format!("{slot} {fence} was given back while {} relies on it", belief.process);
                Err(Breach::new("R1", text))
            }
            None => Ok(()),
        }
    }

    /// Whoever wanted something has had it or given up.
    fn calm(&self, at: Instant) -> Result<(), Breach> {
        if let Some(holder) = self.line.anybody_since(at - CALM) {
            return Err(Breach::new("A2", format!("{holder} still stands in line after the storm")));
        }
        match self.store.anything_held(at) {
            Some(slot) => Err(Breach::new("A2", format!("{slot} is still held after the storm"))),
            None => Ok(()),
        }
    }

    fn acquire_ended(
        &mut self,
        at: Instant,
        number: u64,
        end: &Option<Result<usize, String>>,
    ) -> Result<(), Breach> {
        let Some(acquire) = self.acquires.remove(&number) else {
            return Err(Breach::new("T1", format!("acquisition {number} ended twice")));
        };
        let took = at - acquire.began;
        let allowed = acquire.timeout + acquire.grace;
        let allowed = allowed + if self.rules.drift { allowed / 90 } else { 0 } + LENIENCE;
        let stood = self.stood(acquire.process, acquire.began, at);
        if took > allowed + stood {
            let text =
                format!("acquisition {number} of {} us took {took} us (stood {stood} us)", acquire.timeout);
            return Err(Breach::new("T1", text));
        }
        match end {
            // A slot that is named and that nobody has added yet.
            Some(Err(code)) if code == "invalid_argument" && self.rules.mixed => Ok(()),
            Some(Err(code)) if !ENDS.contains(&code.as_str()) => {
                Err(Breach::new("T2", format!("acquisition {number} ended with {code}")))
            }
            Some(Err(code)) if code == "exhausted" => match self.unreachable_since {
                Some(since) if since <= acquire.began => Err(Breach::new(
                    "S7",
                    format!("acquisition {number} says exhausted of a store that nobody could reach"),
                )),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// How long the process stood still between two times.
    fn stood(&self, process: ProcessId, from: Instant, to: Instant) -> u64 {
        let pauses = self.pauses.get(&process).map(Vec::as_slice).unwrap_or_default();
        pauses.iter().map(|&(start, end)| end.min(to).saturating_sub(start.max(from))).sum()
    }

    fn believes(
        &mut self,
        at: Instant,
        process: ProcessId,
        slot: &str,
        fence: u64,
        until: Instant,
    ) -> Result<(), Breach> {
        let granted = self.granted.get(slot).is_some_and(|fences| fences.binary_search(&fence).is_ok());
        let Some(end) = self.store.end_of(fence).filter(|_| granted) else {
            return Err(Breach::new("S7", format!("{slot} {fence} is relied on and was never granted")));
        };
        // A renewal that arrives after the end of the lease leaves nothing to rely on.
        if until > end && until > at {
            let text =
                format!("{slot} {fence} is relied on {} us longer than the store keeps it", until - end);
            return Err(Breach::new("S4", text));
        }
        let excused = self.is_excused(fence);
        let beliefs = self.beliefs.entry(slot.to_owned()).or_default();
        beliefs.retain(|belief| belief.until > at && belief.fence != fence);
        let other = beliefs.iter().map(|belief| (belief.fence, belief.process, belief.until)).next();
        if until > at {
            beliefs.push(Belief { fence, process, until });
        }
        match other {
            Some((other, holder, end)) if until > at && !excused && !self.is_excused(other) => {
                let text = format!(
                    "{slot} is held by {process} ({fence}) and by {holder} ({other}) for {} us",
                    end.min(until) - at
                );
                Err(Breach::new("S1", text))
            }
            _ => Ok(()),
        }
    }

    fn answered(&mut self, fence: u64, call: &str, error: Option<&str>) -> Result<(), Breach> {
        match (call, error) {
            (_, None | Some("lost" | "store_unavailable")) => Ok(()),
            ("renew", Some("claimed")) if self.store.was_claimed(fence) => Ok(()),
            (_, Some(error)) => {
                Err(Breach::new("T3", format!("{call} of {fence} was answered with {error}")))
            }
        }
    }

    fn unwatch(&mut self, fences: &[u64]) {
        self.watched.values_mut().for_each(|watched| watched.retain(|watch| !fences.contains(&watch.0)));
    }

    /// A slot is granted anew: whoever had it must have been told.
    fn told(&self, at: Instant, slot: &str, fence: u64) -> Result<(), Breach> {
        let standing = |process: ProcessId| self.stood(process, at.saturating_sub(LENIENCE), at) > 0;
        let untold =
            self.watched.get(slot).into_iter().flatten().find(|&&(earlier, process)| {
                earlier < fence && !standing(process) && !self.is_excused(earlier)
            });
        match untold {
            Some((earlier, process)) => {
                let text = format!(
                    "{slot} is granted under {fence}; {process}, who has it under {earlier}, was not told"
                );
                Err(Breach::new("K1", text))
            }
            None => Ok(()),
        }
    }

    fn is_excused(&self, fence: u64) -> bool {
        fence <= self.before_jump || self.broken.contains(&fence)
    }

    fn end(&self) -> Result<(), Breach> {
        let open = self.acquires.iter().filter(|(_, acquire)| !self.killed.contains(&acquire.process));
        if let Some(number) = open.map(|(number, _)| number).min() {
            return Err(Breach::new("T1", format!("acquisition {number} never ended")));
        }
        match self.rules.accounts.iter().find(|account| !self.audited.contains(*account)) {
            Some(account) => Err(Breach::new("A1", format!("{account} could not be audited"))),
            None => Ok(()),
        }
    }
}
