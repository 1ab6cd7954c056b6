//! One history, read from its beginning to its end.

mod holders;

use std::collections::{BTreeMap, HashMap, HashSet};

use self::holders::Belief;
use super::turn::Turn;
use super::{Breach, Rules};
use crate::bundles::Bundles;
use crate::census::Census;
use crate::flush::Flush;
use crate::history::{Bid, Event, Fact, Performance, What, Wish};
use crate::ledger_model::LedgerModel;
use crate::limit_calls::{LimitCalls, Sayer, Told};
use crate::line_model::LineModel;
use crate::quiet_times::QuietTimes;
use crate::selections::Selections;
use crate::server::BEGINNING;
use crate::signatures::Signatures;
use crate::slot_model::SlotModel;
use crate::thefts::Thefts;
use crate::turns::Turns;
use crate::waits::Waits;
use crate::world::{Instant, ProcessId};
use crate::writes::Writes;

/// Who asks no more for so long does not wait.
const CALM: u64 = 10_000_000;
/// The errors with which an acquisition may end.
const ENDS: [&str; 4] = ["timed_out", "exhausted", "store_unavailable", "nonce_unavailable"];

/// What is known of a world, and held against the rules event by event.
pub struct Judge<'a> {
    rules: &'a Rules,
    store: SlotModel,
    line: LineModel,
    turns: Turns,
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
    quiet_times: QuietTimes,
    lost_at: Option<Instant>,
    /// The last loss that the server's age tells of, whatever became of its keys since.
    wiped_at: Option<Instant>,
    /// Keys were deleted, and the store cannot know of it yet.
    flush: Option<Flush>,
    /// The last loss after which something was granted that may be held, as nobody asked who had heard of leases as long.
    unheard: Option<Instant>,
    /// The leases that were granted while the store could not know.
    unknowing: HashSet<u64>,
    /// Those that were granted later, with a nonce that one of those had recorded, while the store could not know still.
    misled: HashSet<u64>,
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

impl<'a> Judge<'a> {
    /// Nothing has happened yet.
    pub fn new(rules: &'a Rules) -> Self {
        Judge {
            rules,
            store: SlotModel::default(),
            line: LineModel::default(),
            turns: Turns::default(),
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
            quiet_times: QuietTimes::new(rules.response_timeout),
            lost_at: None,
            wiped_at: None,
            flush: None,
            unheard: None,
            unknowing: HashSet::new(),
            misled: HashSet::new(),
            store_time: 0,
            unreachable_since: None,
            before_jump: 0,
            broken: HashSet::new(),
            granted: HashMap::new(),
            highest: 0,
            audited: HashSet::new(),
        }
    }

    /// One thing that happened.
    pub fn read(&mut self, event: &Event, census: &Census) -> Result<(), Breach> {
        let (at, process) = (event.at, event.process);
        self.heard_in_time(at)?;
        match &event.what {
            What::Performed(done) => {
                let offers = done.facts.iter().filter(|fact| matches!(fact, Fact::Offered { .. })).count();
                census.add("offers", offers as u64);
                self.performed(at, done, census)?;
                self.turns.read(at, process, &done.facts, self.rules.prompt);
            }
            What::Heard { handle, performed } => self.quiet_times.hear(at, handle, *performed),
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
            What::ReservationRenews { call } => self.limit_calls.renews(at, *call),
            What::ReservationRenewed { call, tagged, ttl, error } => {
                self.limit_calls.renewed(at, *call, *tagged, *ttl, error.as_deref())?;
            }
            What::ReservationEnds { call, back, stays } => {
                self.limit_calls.settles(at, *call, *back, *stays);
            }
            What::ReservationEnded { call, tagged, error } => {
                self.limit_calls.settled(process, *call, *tagged, error.as_deref())?;
            }
            What::Listed { token, amount } => self.selections.listed(at, token, *amount),
            What::Unlisted { token } => self.selections.unlisted(at, token),
            What::HeardSpent { token } => self.selections.heard(at, process, token),
            What::Spends { tokens, answered } => self.selections.spends(at, tokens, *answered),
            What::SelectBegan { call, target, timeout, grace } => {
                self.waits.begin(at, process, *call, *timeout, *grace);
                self.selections.began(at, process, *call, *target);
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
                (self.lost_at, self.flush, self.store_time) = (Some(at), None, 0);
                self.wiped_at = self.lost_at;
                self.quiet_times.lose(at);
            }
            // Only leases are forgotten in these worlds.
            What::Flushed => {
                self.lanes.clear();
                self.store.wipe();
                self.line.wipe();
                (self.lost_at, self.flush) = (self.wiped_at, Some(Flush::new(at, self.highest)));
                self.quiet_times.lose(at);
            }
            What::Restarted => {
                if self.flush.is_some_and(|flush| flush.is_begun()) {
                    self.learn_of_flush();
                }
                let before = self.ledger.clone();
                self.ledger.succeeds(&before);
                self.store.doubt_all();
                self.line.clear();
            }
            What::Copied => {
                self.store.copy();
                self.line.copy();
                self.quiet_times.copy();
                self.ledger_copy = self.ledger.clone();
            }
            What::Promoted => {
                self.store.promote();
                self.line.promote();
                self.quiet_times.promote(at);
                self.lanes.clear();
                let before = std::mem::replace(&mut self.ledger, std::mem::take(&mut self.ledger_copy));
                self.ledger.succeeds(&before);
                self.limit_calls.lost(at);
                (self.lost_at, self.flush, self.store_time) = (Some(at), None, 0);
            }
            What::ClockStepped(by) => {
                if *by > 0 {
                    self.before_jump = self.highest;
                    (self.lost_at, self.wiped_at) = (None, None);
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
            What::Unwatched { fence } => self.unwatch_once(process, &self.bundles.leases(*fence)),
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
                let before = self.before_jump;
                let fences_excused = [&self.broken, &self.unknowing, &self.misled];
                let excused =
                    |fence| fence <= before || fences_excused.iter().any(|fences| fences.contains(&fence));
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
            What::Calm => {
                self.quiet_times.calm(at);
                self.calm(at)?;
            }
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
        if self.flush.as_mut().is_some_and(|flush| flush.is_told(done)) {
            census.count("deletion of keys told of");
            self.learn_of_flush();
        }
        self.bundles.read(&done.facts)?;
        self.free(now, &done.facts)?;
        self.looked_in_time(at, now)?;
        self.store.begin(done);
        self.line.begin(done);
        for (fence, ended) in self.thefts.due(now, |holder| self.line.waits(holder)) {
            if self.store.rob(fence, ended, self.rules.doubt_rest) {
                census.count("lease robbed");
                self.thefts.rob(fence);
            }
        }
        let mut turn = Turn::of(&done.facts, &self.line);
        for fact in &done.facts {
            // Those who wait for what was kept for another look again when it is granted, and those behind one that is served.
            if let Fact::Served(Bid { holder, .. }) | Fact::Offered { holder } = fact
                && (self.line.is_kept_for(holder) || self.line.waits(holder))
            {
                let thieves = self.line.thieves().into_iter();
                let look = thieves.filter(|(wish, _)| wish.has_parts());
                look.for_each(|(_, thief)| self.thefts.looks(&thief.holder));
            }
            // Those who stand behind one that leaves look again too.
            if let Fact::Withdrawn { holder } = fact
                && self.line.waits(holder)
            {
                let others = self.line.thieves().into_iter().filter(|(_, thief)| thief.holder != *holder);
                others.for_each(|(_, thief)| self.thefts.looks(&thief.holder));
            }
            self.line.apply(at, now, fact)?;
            // Who wants more than are left may be passed over, and claims nothing then.
            if let Fact::Changed { slot, .. } = fact {
                let fence = self.store.fence_of(slot);
                self.thefts.changes(fence);
                turn.changed.push(fence);
                let unsure = self.line.thieves().into_iter().filter(|(_, thief)| !thief.exact);
                unsure.for_each(|(_, thief)| self.thefts.looks(&thief.holder));
            }
            self.quiet_times.apply(at, done, fact)?;
            turn.hear(fact, &self.line);
            self.claims(at, now, fact, &turn)?;
            if let Fact::Granted { slot, fence, known, .. } = fact {
                let longest = self.quiet_times.longest();
                let quiet_until = self.lost_at.map(|lost| lost + longest + self.rules.doubt_rest);
                let quiet = quiet_until.filter(|&end| at < end);
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
                let unheard = self.lost_at.filter(|&lost| self.may_be_held_since(lost, at));
                if self.flush.is_some_and(|flush| self.may_be_held_since(flush.at, at)) {
                    census.count("lease granted by a store that cannot know");
                    self.unknowing.insert(*fence);
                } else if unheard.is_some() {
                    census.count("lease granted by a store that has not heard of the longest");
                    self.unheard = unheard;
                    self.unknowing.insert(*fence);
                } else {
                    self.told(at, slot, *fence)?;
                    let before = self.granted.get(slot).and_then(|fences| fences.last());
                    let excused = |fence| self.unknowing.contains(fence) || self.misled.contains(fence);
                    let blind =
                        self.flush.is_some() || self.unheard.is_some_and(|lost| self.lost_at == Some(lost));
                    if *known && blind && before.is_some_and(excused) {
                        self.misled.insert(*fence);
                    }
                }
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
                let fence = self.store.fence_of(slot);
                self.broken.insert(fence);
                turn.ended.push(fence);
            }
            if let Fact::Changed { slot, change } = fact
                && change == "remove"
            {
                // The nonces of a slot that is forgotten are forgotten.
                self.broken.extend(self.granted.get(slot).into_iter().flatten());
            }
            self.store.apply(at, now, self.rules.doubt_rest, fact)?;
        }
        self.quiet_times.end_turn(at, done);
        self.thefts.end()?;
        // Who came before it was known of longer leases waits, and is not called.
        if self.lost_at.is_some_and(|lost| self.may_be_held_since(lost, at)) {
            return Ok(());
        }
        self.line.end(now, |name| self.store.is_held(name, now))
    }

    /// Whether what was leased when the store lost its memory may still be held.
    fn may_be_held_since(&self, lost: Instant, at: Instant) -> bool {
        at < lost + self.rules.ttl + self.rules.doubt_rest
    }

    /// The store knows that its keys were deleted: from here on nothing is granted that may be held.
    fn learn_of_flush(&mut self) {
        let Some(flush) = self.flush.take() else { return };
        self.lost_at = self.lost_at.max(Some(flush.at));
        self.store.doubt_all();
        self.line.clear();
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

    fn answered(&mut self, fence: u64, call: &str, error: Option<&str>) -> Result<(), Breach> {
        match (call, error) {
            (_, None | Some("lost" | "store_unavailable")) => Ok(()),
            ("renew", Some("claimed")) if self.store.was_claimed(fence) => Ok(()),
            (_, Some(error)) => {
                Err(Breach::new("T3", format!("{call} of {fence} was answered with {error}")))
            }
        }
    }

    /// Nothing more happens.
    pub fn end(&mut self) -> Result<(), Breach> {
        self.limit_calls.judge()?;
        self.waits.all_ended()?;
        self.quiet_times.end()?;
        match self.rules.accounts.iter().find(|account| !self.audited.contains(*account)) {
            Some(account) => Err(Breach::new("A1", format!("{account} could not be audited"))),
            None => Ok(()),
        }
    }
}
