//! The judge: reads a history and nothing else, and shares no code with the library.
//!
//! | rule | says |
//! |---|---|
//! | S1 | no two leases of one slot are in force, in the store's time and in the holders' beliefs in true time |
//! | S2 | the fences of a pool, and so of each slot, increase over all grants ever, whatever the store forgot |
//! | S3 | only the lease in force is renewed, released or resynced |
//! | S4 | no holder relies on a lease for longer than the store keeps it |
//! | K1 | nobody else is granted a slot before its last holder, if that is awake, was told that its lease is lost |
//! | S5 | no nonce of an account is signed under two leases unless one can never count, as the chain has refused it or the gate before it a fence that is older than one that has come there |
//! | S6 | a lease is claimed by somebody of higher priority only, is not prolonged while that one waits, and ends for it when its patience does, not before; if it has gone, as before: see [`Thefts`] |
//! | K3 | the holder of a lease that is claimed is called, and hears of it in time, the first time, if nothing is lost |
//! | F1 | a resource that checks fences takes no write of a late holder after one of a newer, and refuses no other |
//! | S7 | no lease that the store did not grant; no "exhausted" from a store that nobody can reach |
//! | N1 | several names are granted all together, until one moment, or none of them |
//! | N2 | when nobody wants them any more the store keeps nothing of names and of those who waited |
//! | R1 | no lease is given back while its holder relies on it |
//! | S10 | a nonce of which nobody said what became of it is not handed out as known |
//! | S11 | after the store lost memory nothing is granted for one longest time to live and one rest of doubt; of money no process spends more than a limit allows, whatever the store forgot |
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
//! | S9 | no window of a limit holds more than it allows of what callers were surely allowed: see [`Windows`] |
//! | M1, M2 | what a store says of limits, and the times it tells, are what the definitions say: see [`LedgerModel`] |
//! | M3 | a reservation ends once, before its time, and its end is told as it was |
//! | M4 | a call is charged once, if it was allowed, and nothing is charged but for a call |
//! | M5 | a refusal that is remembered is the store's, of a second ago at most |
//! | M6 | in an outage a limit is closed, or it is open and allows a process what it would be allowed alone |
//! | M7 | how a limit of money stands is told as it is, and what was seen of it counts: see [`Births`](crate::births::Births) |
//! | V1 | a selection is told the truth about what the wallet holds, whoever has it: see [`Selections`] |
//! | V2 | what is selected are tokens of the wallet, each once, and their sum and change are exact |
//! | V3 | a token that was spent, and whose lock was kept then, is in no later selection |
//! | V4 | of the names that are claimed as far as they are free, those that are not granted are held |
//! | A1 | after the storm every process can lease, and every account can be leased and used |
//! | A2 | after the storm nobody waits and nothing is held |
//!
//! A store that lost what was used of limits allows one more maximum, of money to those who have not seen it. Excused is what the library does not promise: leases that were given before the server's clock was set
//! forward, that an administrator broke, or whose slot one removed, may meet their successors. So may who was robbed, by a
//! thief that does not wait for the end of leases.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;

use crate::bundles::Bundles;
use crate::census::Census;
use crate::history::{Event, Fact, Performance, What, Wish};
use crate::ledger_model::LedgerModel;
use crate::limit_calls::{LimitCalls, Sayer, Told};
use crate::line_model::LineModel;
use crate::selections::Selections;
use crate::server::BEGINNING;
use crate::signatures::Signatures;
use crate::slot_model::SlotModel;
use crate::thefts::{Thefts, Thief};
use crate::waits::{LENIENCE, Waits};
#[cfg(doc)]
use crate::windows::Windows;
use crate::world::{Instant, ProcessId};
use crate::writes::Writes;

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
    /// For how long thieves wait for a holder at most, unless they wait for the end of its lease.
    pub patience: u64,
    /// Within how long a holder that listens hears that its lease is claimed, if that is certain.
    pub prompt: Option<u64>,
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

/// Who asks no more for so long does not wait.
const CALM: u64 = 10_000_000;
/// The errors with which an acquisition may end.
const ENDS: [&str; 4] = ["timed_out", "exhausted", "store_unavailable", "nonce_unavailable"];

impl Breach {
    pub(crate) fn new(rule: &'static str, text: impl Into<String>) -> Self {
        Breach { rule, text: text.into() }
    }

    /// The same of another rule.
    pub(crate) fn of(self, rule: &'static str, whose: &str) -> Self {
        Breach { rule, text: format!("{whose}: {}", self.text) }
    }

    /// The same as the event of this number shows it.
    pub(crate) fn at(self, at: Instant, event: usize) -> Violation {
        Violation { rule: self.rule, at, event, text: self.text }
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
            return Some(breach.at(event.at, number));
        }
    }
    let at = events.last().map_or(0, |event| event.at);
    let end = judge.limit_calls.judge().and_then(|()| judge.end());
    end.err().map(|breach| breach.at(at, events.len()))
}

struct Judge<'a> {
    rules: &'a Rules,
    store: SlotModel,
    line: LineModel,
    bundles: Bundles,
    thefts: Thefts,
    writes: Writes,
    ledger: LedgerModel,
    /// That of the replica, as it was copied.
    ledger_copy: LedgerModel,
    limit_calls: LimitCalls,
    selections: Selections,
    /// The last envelope of each lane, since memory was last lost.
    lanes: HashMap<String, u64>,
    /// What the server's clock was set by.
    skew: i64,
    /// By slot: the leases that are relied on.
    beliefs: BTreeMap<String, Vec<Belief>>,
    /// By slot: the leases of whose end somebody wants to be told.
    watched: BTreeMap<String, Vec<(u64, ProcessId)>>,
    signatures: Signatures,
    waits: Waits,
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

/// What is done as one.
struct Turn {
    /// Those whose holders are called at its end.
    called: Vec<u64>,
    /// All who may claim them. One of these may have left the line again by then.
    thieves: Vec<(Wish, Thief)>,
    /// The leases that were given back: their holders are called in vain.
    released: Vec<u64>,
}

impl Turn {
    fn of(facts: &[Fact], line: &LineModel) -> Self {
        let called =
            |fact: &Fact| if let Fact::Called { fences } = fact { fences.clone() } else { Vec::new() };
        let called: Vec<u64> = facts.iter().flat_map(called).collect();
        let thieves = if called.is_empty() { Vec::new() } else { line.thieves() };
        Turn { called, thieves, released: Vec::new() }
    }

    fn hear(&mut self, fact: &Fact, line: &LineModel) {
        if let Fact::Released { fence, .. } = fact {
            self.released.push(*fence);
        }
        if let Fact::Refused { bid, .. } = fact
            && !self.called.is_empty()
        {
            self.thieves.extend(line.thief(&bid.holder).map(|thief| (bid.wish.clone(), thief)));
        }
    }
}

impl<'a> Judge<'a> {
    fn new(rules: &'a Rules) -> Self {
        Judge {
            rules,
            store: SlotModel::default(),
            line: LineModel::default(),
            bundles: Bundles::default(),
            thefts: Thefts::default(),
            writes: Writes::default(),
            ledger: LedgerModel::default(),
            ledger_copy: LedgerModel::default(),
            limit_calls: LimitCalls::default(),
            selections: Selections::default(),
            lanes: HashMap::new(),
            skew: 0,
            beliefs: BTreeMap::new(),
            watched: BTreeMap::new(),
            signatures: Signatures::default(),
            waits: Waits::new(rules.drift),
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
        self.heard_in_time(at)?;
        match &event.what {
            What::Performed(done) => {
                let offers = done.facts.iter().filter(|fact| matches!(fact, Fact::Offered { .. })).count();
                census.add("offers", offers as u64);
                self.performed(at, done, census)?;
            }
            What::Charged(done) => {
                self.limit_calls.performed(at, done)?;
                self.ledger.perform(done)?;
            }
            What::LimitAsked { call, ask, grace } => {
                self.waits.begin(at, process, *call, ask.timeout, *grace);
                self.limit_calls.asked(at, process, *call, ask);
            }
            What::LimitTold { call, tagged, told } => {
                let began = self.waits.end(at, *call)?;
                let by_store = matches!(told, Some(Told::Judged { by: Sayer::Store, .. }));
                if by_store && self.unreachable_since.is_some_and(|since| since <= began) {
                    let text = format!("call {call} was told {told:?} of a store that nobody could reach");
                    return Err(Breach::new("S7", text));
                }
                self.limit_calls.told(at, *call, *tagged, told.as_ref())?;
            }
            What::ReservationEnds { call, back } => self.limit_calls.settles(at, *call, *back),
            What::ReservationEnded { call, tagged, error } => {
                self.limit_calls.settled(*call, *tagged, error.as_deref())?;
            }
            What::Listed { token, amount } => self.selections.listed(at, token, *amount),
            What::Unlisted { token } => self.selections.unlisted(at, token),
            What::Spends { tokens, answered } => self.selections.spends(at, tokens, *answered),
            What::SelectBegan { call, target, timeout, grace } => {
                self.waits.begin(at, process, *call, *timeout, *grace);
                self.selections.began(at, *call, *target);
            }
            What::SelectEnded { call, end } => {
                self.waits.end(at, *call)?;
                self.selections.ended(at, *call, end.as_ref())?;
            }
            What::Wiped => {
                self.lanes.clear();
                self.store.wipe();
                self.line.wipe();
                let before = std::mem::take(&mut self.ledger);
                self.ledger.succeeds(&before);
                self.ledger_copy = LedgerModel::default();
                self.limit_calls.lost(at);
                (self.lost_at, self.store_time) = (Some(at), 0);
            }
            // Of which it cannot know: only leases are forgotten in these worlds.
            What::Flushed => {
                self.lanes.clear();
                self.store.wipe();
                self.line.wipe();
            }
            What::Restarted => {
                let before = self.ledger.clone();
                self.ledger.succeeds(&before);
                self.store.doubt_all();
                self.line.clear();
            }
            What::Copied => {
                self.store.copy();
                self.line.copy();
                self.ledger_copy = self.ledger.clone();
            }
            What::Promoted => {
                self.store.promote();
                self.line.promote();
                self.lanes.clear();
                let before = std::mem::replace(&mut self.ledger, std::mem::take(&mut self.ledger_copy));
                self.ledger.succeeds(&before);
                self.limit_calls.lost(at);
                (self.lost_at, self.store_time) = (Some(at), 0);
            }
            What::ClockStepped(by) => {
                if *by > 0 {
                    self.before_jump = self.highest;
                    self.lost_at = None;
                    self.selections.jumped();
                }
                // What had expired is gone, wherever the clock goes.
                self.ledger.expire((BEGINNING + at).saturating_add_signed(self.skew));
                self.limit_calls.stepped(at, *by);
                self.skew += by;
            }
            What::StoreReachable(true) => self.unreachable_since = None,
            What::StoreReachable(false) => {
                self.unreachable_since = Some(self.unreachable_since.unwrap_or(at))
            }
            What::Killed => {
                self.waits.kill(process);
                self.limit_calls.killed(process);
                self.watched.values_mut().for_each(|watched| watched.retain(|watch| watch.1 != process));
                self.beliefs
                    .values_mut()
                    .for_each(|beliefs| beliefs.retain(|belief| belief.process != process));
            }
            What::Paused(stands) => self.waits.pause(at, process, *stands),
            What::AcquireBegan { acquire, timeout, grace } => {
                self.waits.begin(at, process, *acquire, *timeout, *grace);
            }
            What::AcquireEnded { acquire, end } => self.acquire_ended(at, *acquire, end)?,
            What::Believes { slot, fence, until } => {
                self.believes(at, process, slot, self.bundles.lease(slot, *fence), *until, census)?;
            }
            What::ToldClaimed { fence } => self.thefts.tell(&self.bundles.leases(*fence)),
            What::Wrote { slot, fence, accepted } => {
                self.writes.write(slot, *fence, *accepted, census)?;
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
                let fences = (*fence, self.writes.newest(account));
                self.signatures.sign(*transaction, (account, *nonce), fences, excused, census)?;
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
                if (*waiting, *leased) != (0, 0) && !self.waits.is_killed(process) {
                    let text =
                        format!("process {process} has {waiting} waiting, {leased} leased after the storm");
                    return Err(Breach::new("A2", text));
                }
            }
        }
        Ok(())
    }

    fn performed(&mut self, at: Instant, done: &Performance, census: &Census) -> Result<(), Breach> {
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
        // One that finds no pool is performed when there is one.
        let acts =
            |fact: &Fact| matches!(fact, Fact::Granted { .. } | Fact::Renewed { .. } | Fact::Released { .. });
        if let (Some((lane, number)), Some(_), true) =
            (&done.envelope, done.not_after, done.facts.iter().any(acts))
            && self.lanes.insert(lane.clone(), *number).is_some_and(|before| before >= *number)
        {
            return Err(Breach::new("E2", format!("envelope {number} of {lane} was performed twice")));
        }
        self.bundles.read(&done.facts)?;
        self.free(now, &done.facts)?;
        self.line.begin(done);
        for (fence, ended) in self.thefts.due(now, |holder| self.line.waits(holder)) {
            if self.store.rob(fence, ended, self.rules.doubt_rest) {
                census.count("lease robbed");
                self.thefts.rob(fence);
            }
        }
        let mut turn = Turn::of(&done.facts, &self.line);
        for fact in &done.facts {
            self.line.apply(at, now, fact)?;
            turn.hear(fact, &self.line);
            self.claims(at, now, fact, &turn)?;
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
                let earlier = self.store.fence_of(slot);
                if let Some(ended) = self.thefts.may_have_ended(earlier, now)
                    && self.store.rob(earlier, ended, self.rules.doubt_rest)
                {
                    census.count("lease robbed");
                    self.thefts.rob(earlier);
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
        self.thefts.end()?;
        self.line.end(now, |name| self.store.is_held(name, now))
    }

    /// What one thing that the store did says of claims on leases.
    fn claims(&mut self, at: Instant, now: u64, fact: &Fact, turn: &Turn) -> Result<(), Breach> {
        let waits = |holder: &str| self.line.waits(holder);
        match fact {
            Fact::Refused { bid, why } if why == "claimed" => {
                let Some(thief) = self.line.thief(&bid.holder) else {
                    return Err(Breach::new(
                        "S6",
                        format!("{} claims leases and does not steal", bid.holder),
                    ));
                };
                // Of any slots nobody is told which.
                let Wish::Names(names) = &bid.wish else { return Ok(()) };
                for lease in names.iter().filter_map(|name| self.store.in_force(name, now)) {
                    self.thefts.claim(now, &thief, lease, self.rules.patience, waits)?;
                }
                Ok(())
            }
            Fact::Called { fences } => {
                for &fence in fences {
                    if turn.released.contains(&fence) {
                        self.thefts.leave_uncalled(fence);
                        continue;
                    }
                    let slot = self.store.slot_of(fence, now).map(str::to_owned);
                    let lease = slot.as_ref().and_then(|slot| self.store.in_force(slot, now));
                    let (Some(slot), Some(lease)) = (slot, lease) else {
                        let text = format!("the holder of {fence} is called, which has ended");
                        return Err(Breach::new("S6", text));
                    };
                    let wanting = turn.thieves.iter().filter(|(wish, _)| wish.is_for(&slot));
                    self.thefts.call(
                        now,
                        lease,
                        wanting.map(|(wish, thief)| (thief.clone(), matches!(wish, Wish::Any(_)))).collect(),
                    )?;
                    let Some(prompt) = self.rules.prompt else { continue };
                    for &(_, process) in
                        self.watched.get(&slot).into_iter().flatten().filter(|w| w.0 == fence)
                    {
                        self.thefts.await_told(fence, process, at, at + prompt);
                    }
                }
                Ok(())
            }
            Fact::Renewed { fence, .. } => self.thefts.renew(*fence, waits),
            Fact::Claimed { slot, fence, deadline } => match self.store.in_force(slot, now) {
                // Of any slots it is told at the end of the turn which are claimed.
                Some(_) if turn.called.contains(fence) && !self.thefts.is_claimed(*fence) => Ok(()),
                Some(lease) if lease.fence == *fence => self.thefts.answer(at, now, lease, *deadline),
                _ => Ok(()),
            },
            Fact::Released { fence, .. } => {
                self.thefts.forget(*fence);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Whoever listens, and was awake, knows by now that its lease is claimed.
    fn heard_in_time(&mut self, at: Instant) -> Result<(), Breach> {
        for (fence, process, since) in self.thefts.late(at) {
            if self.waits.stood(process, since, at) == 0 && !self.waits.is_killed(process) {
                let text = format!("{process} has not heard for {} us that {fence} is claimed", at - since);
                return Err(Breach::new("K3", text));
            }
        }
        Ok(())
    }

    /// Of names that are claimed as far as they are free, those that are not granted are held by others, or rest.
    fn free(&self, now: u64, facts: &[Fact]) -> Result<(), Breach> {
        let mut released: HashSet<&str> = HashSet::new();
        for (fact, next) in facts.iter().zip(1..) {
            let (bid, granted) = match fact {
                Fact::Released { slot, rest: 0, .. } => {
                    released.insert(slot);
                    continue;
                }
                Fact::Served(bid) => (bid, &facts[next..]),
                Fact::Refused { bid, why } if why == "exhausted" => (bid, &facts[..0]),
                _ => continue,
            };
            let Wish::Free { names, most, .. } = &bid.wish else { continue };
            let mut had: HashSet<&str> = HashSet::new();
            for fact in granted {
                let Fact::Granted { holder, slot, .. } = fact else { break };
                if *holder != bid.holder {
                    break;
                }
                had.insert(slot);
            }
            let missed = names.iter().find(|name| {
                let held = self.store.is_held(name, now) || self.store.is_resting(name, now);
                let free = released.contains(name.as_str()) || !held;
                free && !had.contains(name.as_str()) && !self.granted_in(facts, name)
            });
            if let Some(name) = missed.filter(|_| (had.len() as u64) < *most) {
                return Err(Breach::new(
                    "V4",
                    format!("{name} is free, and {} was not granted it", bid.holder),
                ));
            }
        }
        Ok(())
    }

    fn granted_in(&self, facts: &[Fact], name: &str) -> bool {
        facts.iter().any(|fact| matches!(fact, Fact::Granted { slot, .. } if slot == name))
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
        let began = self.waits.end(at, number)?;
        match end {
            // A slot that is named and that nobody has added yet.
            Some(Err(code)) if code == "invalid_argument" && self.rules.mixed => Ok(()),
            Some(Err(code)) if !ENDS.contains(&code.as_str()) => {
                Err(Breach::new("T2", format!("acquisition {number} ended with {code}")))
            }
            Some(Err(code)) if code == "exhausted" => match self.unreachable_since {
                Some(since) if since <= began => Err(Breach::new(
                    "S7",
                    format!("acquisition {number} says exhausted of a store that nobody could reach"),
                )),
                _ => Ok(()),
            },
            _ => Ok(()),
        }
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
        let granted = self.granted.get(slot).is_some_and(|fences| fences.binary_search(&fence).is_ok());
        let Some(end) = self.store.end_of(fence).filter(|_| granted) else {
            return Err(Breach::new("S7", format!("{slot} {fence} is relied on and was never granted")));
        };
        // Whoever knows that it is claimed relies on it for no longer than its claimant lets it.
        let end = self.thefts.told_end(fence).map_or(end, |told| told.min(end));
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
        let robbed = |fence| self.thefts.was_robbed(fence);
        match other {
            Some((other, ..)) if until > at && (robbed(fence) || robbed(other)) => {
                census.count("two hold a name");
                Ok(())
            }
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
        fences.iter().for_each(|&fence| self.thefts.forget(fence));
        self.watched.values_mut().for_each(|watched| watched.retain(|watch| !fences.contains(&watch.0)));
    }

    /// A slot is granted anew: whoever had it must have been told.
    fn told(&self, at: Instant, slot: &str, fence: u64) -> Result<(), Breach> {
        let standing = |process: ProcessId| self.waits.stood(process, at.saturating_sub(LENIENCE), at) > 0;
        let untold = self.watched.get(slot).into_iter().flatten().find(|&&(earlier, process)| {
            // Who was robbed and did not hear of it goes on.
            let unheard = self.thefts.was_robbed(earlier) && self.thefts.told_end(earlier).is_none();
            earlier < fence && !standing(process) && !unheard && !self.is_excused(earlier)
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
        self.waits.all_ended()?;
        match self.rules.accounts.iter().find(|account| !self.audited.contains(*account)) {
            Some(account) => Err(Breach::new("A1", format!("{account} could not be audited"))),
            None => Ok(()),
        }
    }
}
