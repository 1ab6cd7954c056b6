//! Calls of limits, as their callers made them and what they were told, held against what the store did.

use std::collections::{BTreeMap, HashMap};

use crate::charges::{Action, Charging, Cost, Deed, Kind, Word};
use crate::checker::Breach;
use crate::windows::Windows;
use crate::world::{DRIFT, Instant, ProcessId};

/// A call that is charged carries a limit of its own, of which nothing is remembered and whose maximum is above this by
/// the call's number: so what the store does is known to be of that call.
pub const TAG: u128 = 1 << 90;
/// How long a refusal is believed.
const BELIEVED: u64 = 1_000_000;

/// How long an answer is under way at most.
const UNDER_WAY: u64 = 5_000_000;

/// What a caller asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// What for.
    pub want: Want,
    /// Of which limits.
    pub costs: Vec<Cost>,
    /// Whether an outage of the store closes none of them.
    pub open: bool,
    /// How long it may take, on its own clock.
    pub timeout: u64,
    /// How long what is reserved lasts.
    pub ttl: u64,
}

/// What is asked of limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// To charge them.
    Take,
    /// The same, as soon as it is allowed.
    Wait,
    /// To charge them for the time being.
    Reserve,
    /// The same, as soon as it is allowed.
    WaitToReserve,
    /// How they stand.
    Peek,
    /// To give back what was not reserved.
    Refund,
    /// To forget what was used.
    Reset,
}

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Told {
    /// With a word.
    Judged {
        /// Whether it was allowed.
        allowed: bool,
        /// What remains, as it was told.
        remaining: u128,
        /// Who said so.
        by: Sayer,
    },
    /// With an error's code.
    Failed(String),
}

/// Who says whether something is allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sayer {
    /// The store.
    Store,
    /// The process, of what the store said a moment ago.
    Memory,
    /// The process, for want of the store.
    Outage,
}

/// All calls.
#[derive(Debug, Default)]
pub struct LimitCalls {
    calls: HashMap<u64, Call>,
    /// What the store allowed, and what each process did by itself.
    windows: Windows,
    alone: BTreeMap<ProcessId, Windows>,
    /// When the store refused a cost.
    refusals: HashMap<(String, u128, u128), Vec<Instant>>,
    /// When a process last began to give something back, or to reset it, and has ended that.
    restored: HashMap<(ProcessId, String), Instant>,
    /// Of which call a reservation is.
    reservations: HashMap<String, u64>,
    /// When it was charged, and what.
    reserved: HashMap<String, (Instant, Vec<Cost>)>,
    losses: Vec<Instant>,
    /// The last envelope of each lane, whatever the store forgot.
    lanes: HashMap<String, u64>,
    /// When a limit was reset, or something was given back of it that was not reserved.
    resets: Vec<(Instant, String)>,
    refunds: Vec<(Instant, String)>,
    steps: Vec<(Instant, u64)>,
    /// By limit: its highest maximum, and what is surely in flight.
    flights: BTreeMap<String, (u128, Vec<Flight>)>,
}

#[derive(Debug)]
struct Call {
    ask: Ask,
    process: ProcessId,
    began: Instant,
    end: Option<(Instant, Option<Told>)>,
    /// When it was charged, and what remained.
    charged: Vec<(Instant, u128)>,
    /// Whether by an envelope that may be performed at any time.
    timeless: bool,
    /// The loss after which it was charged by a copy of what had been performed before it, as the store did not know that any more.
    copied: Option<Instant>,
    /// When its reservation was last asked to be prolonged, and was by the store; until when it surely lasts.
    renewing: Option<Instant>,
    renewed: Option<Instant>,
    lasts: Instant,
    /// When its reservation began to be ended, and whether to give it back.
    settling: Option<(Instant, bool)>,
    /// How much of it stays charged, if not all.
    stays: Option<u64>,
    /// Whether it was given back.
    back: bool,
}

/// How an envelope came.
#[derive(Clone, Copy)]
struct Sent {
    /// It may be performed at any time.
    timeless: bool,
    /// It was performed before.
    again: bool,
}

#[derive(Debug)]
struct Flight {
    call: u64,
    from: Instant,
    ttl: u64,
    cost: u128,
}

impl LimitCalls {
    /// What was used may be forgotten.
    pub fn lost(&mut self, at: Instant) {
        self.windows.lost(at);
        self.losses.push(at);
        self.flights.values_mut().for_each(|(_, flights)| flights.clear());
    }

    /// A process was killed: what it had in flight may have landed.
    pub fn killed(&mut self, process: ProcessId) {
        let of = |flight: &Flight| self.calls.get(&flight.call).is_some_and(|call| call.process == process);
        self.flights.values_mut().for_each(|(_, flights)| flights.retain(|flight| !of(flight)));
    }

    /// The server's clock was set by so much.
    pub fn stepped(&mut self, at: Instant, by: i64) {
        self.windows.stepped(at, by);
        if by > 0 {
            self.steps.push((at, by.unsigned_abs()));
        }
    }

    /// The store performed this.
    pub fn performed(&mut self, at: Instant, done: &Charging) -> Result<(), Breach> {
        let again = done.lane.as_ref().is_some_and(|(lane, number)| {
            let last = self.lanes.entry(lane.clone()).or_default();
            std::mem::replace(last, (*number).max(*last)) >= *number
        });
        let envelope = Sent { timeless: done.not_after.is_none(), again };
        done.deeds.iter().try_for_each(|deed| self.deed(at, deed, envelope))
    }

    fn deed(&mut self, at: Instant, deed: &Deed, envelope: Sent) -> Result<(), Breach> {
        let allowed = match &deed.word {
            Word::Judged { allowed: false, binding, .. } => {
                if let Some(Cost { limit, max, cost, .. }) = deed.costs.get(*binding) {
                    self.refusals.entry((limit.clone(), *max, *cost)).or_default().push(at);
                }
                None
            }
            Word::Judged { allowed: true, remaining, .. } => Some(*remaining),
            _ => None,
        };
        for cost in deed.costs.iter().filter(|cost| cost.kind != Kind::Each) {
            match &deed.act {
                Action::Refund => {
                    self.refunds.push((at, cost.limit.clone()));
                    self.windows.refunded(at, cost);
                }
                Action::Keep { id } | Action::Settle { id, back: true } if deed.word == Word::Settled => {
                    // What was given back by somebody else is given back once more: whoever gives back what was not
                    // reserved is trusted. What was forgotten at a reset is not.
                    let reserved = self.reserved.get(id);
                    let since = reserved.map_or(0, |(since, _)| *since);
                    if self.refunds.iter().any(|(when, limit)| *when >= since && *limit == cost.limit) {
                        self.refunds.push((at, cost.limit.clone()));
                        // It is what was reserved, whatever they name who give it back; of what is kept in part nothing is said of
                        // the rest.
                        let mut costs = reserved.into_iter().flat_map(|(_, costs)| costs);
                        let cost_then =
                            costs.find(|then| then.limit == cost.limit).map_or(cost.max, |then| then.cost);
                        self.windows.refunded(at, &Cost { cost: cost_then, ..cost.clone() });
                    }
                }
                Action::Reset => {
                    self.windows.reset(at, cost);
                    self.resets.push((at, cost.limit.clone()));
                    self.flights.entry(cost.limit.clone()).or_default().1.clear();
                }
                _ => {}
            }
            if deed.act != Action::Peek && (allowed.is_some() || deed.word == Word::Settled) {
                self.windows.asked(cost);
            }
        }
        if let (Action::Reserve { id, .. }, Some(_)) = (&deed.act, allowed) {
            self.reserved.insert(id.clone(), (at, deed.costs.clone()));
        }
        match (&deed.act, allowed) {
            (Action::Take, Some(remaining)) => self.charged(at, deed, remaining, None, envelope),
            (Action::Reserve { id, .. }, Some(remaining)) => {
                self.charged(at, deed, remaining, Some(id), envelope)
            }
            (Action::Settle { id, back: true }, _) if deed.word == Word::Settled => {
                let call = self.reservations.get(id).and_then(|call| self.calls.get_mut(call));
                call.into_iter().for_each(|call| call.back = true);
                Ok(())
            }
            (Action::Renew { id, .. }, _) if deed.word == Word::Settled => {
                let call = self.reservations.get(id).and_then(|call| self.calls.get_mut(call));
                call.into_iter().for_each(|call| call.renewed = Some(at));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// The store charged something: for one call, once, and for nobody who was told otherwise.
    fn charged(
        &mut self,
        at: Instant,
        deed: &Deed,
        remaining: u128,
        id: Option<&String>,
        envelope: Sent,
    ) -> Result<(), Breach> {
        let Some(number) = deed.costs.iter().find_map(tag) else { return Ok(()) };
        let Some(call) = self.calls.get_mut(&number) else {
            return Err(Breach::new("M4", format!("call {number} was charged before it was made")));
        };
        // A store that forgot may charge again, and so may one whose clock jumped ahead of an envelope that did not say until
        // when it may be performed: the first of a process, which does not know the store's time.
        let first = call.charged.first().map(|(first, _)| *first);
        let began = call.copied.or(first).unwrap_or(call.began);
        call.timeless |= envelope.timeless;
        if envelope.again && first.is_none() {
            call.copied = self.losses.last().copied().filter(|lost| *lost >= call.began);
        }
        let jumps = self.steps.iter().map(|(at, _)| at).filter(|_| call.timeless);
        let forgot = self.losses.iter().chain(jumps).any(|lost| *lost >= began);
        if !call.charged.is_empty() && !forgot {
            return Err(Breach::new("M4", format!("call {number} was charged twice")));
        }
        if let Some((ended, Some(told))) = &call.end
            && matches!(told, Told::Judged { by: Sayer::Store | Sayer::Memory, .. })
            && !forgot
        {
            let text = format!("call {number} was charged after it was told {told:?} at {ended}");
            return Err(Breach::new("M4", text));
        }
        let wanted = [Want::Take, Want::Wait, Want::Reserve, Want::WaitToReserve].contains(&call.ask.want);
        // The tag is in front, or behind: it is no part of what was asked.
        let same = deed.costs.iter().filter(|cost| cost.kind != Kind::Each).eq(call.ask.costs.iter());
        if !wanted || !same {
            return Err(Breach::new(
                "M4",
                format!("call {number} asked for {:?}, charged was {deed:?}", call.ask),
            ));
        }
        call.charged.push((at, remaining));
        if let Some(id) = id {
            self.reservations.insert(id.clone(), number);
        }
        Ok(())
    }

    /// A caller asks.
    pub fn asked(&mut self, at: Instant, process: ProcessId, number: u64, ask: &Ask) {
        for cost in ask.costs.iter().filter(|cost| cost.kind == Kind::InFlight) {
            let most = &mut self.flights.entry(cost.limit.clone()).or_default().0;
            *most = cost.max.max(*most);
        }
        let call = Call {
            ask: ask.clone(),
            process,
            began: at,
            end: None,
            charged: Vec::new(),
            timeless: false,
            copied: None,
            renewing: None,
            renewed: None,
            lasts: at + ask.ttl,
            settling: None,
            stays: None,
            back: false,
        };
        self.calls.insert(number, call);
    }

    /// It is told; nothing if it left before.
    pub fn told(
        &mut self,
        at: Instant,
        number: u64,
        tagged: bool,
        told: Option<&Told>,
    ) -> Result<(), Breach> {
        let Some(call) = self.calls.get_mut(&number) else { return Ok(()) };
        call.end = Some((at, told.cloned()));
        let Call { ask, process, began, charged, timeless, copied, .. } = &*call;
        if [Want::Refund, Want::Reset].contains(&ask.want) {
            for cost in &ask.costs {
                self.restored.insert((*process, cost.limit.clone()), *began);
            }
        }
        // Who resets a limit begins anew with what it took by itself, too.
        if ask.want == Want::Reset
            && let Some(alone) = self.alone.get_mut(process)
        {
            ask.costs.iter().for_each(|cost| alone.reset(at, cost));
        }
        let breach = |rule, what: &str| {
            Err(Breach::new(rule, format!("call {number}, {ask:?}, {what}: {told:?}, charged {charged:?}")))
        };
        let charges = [Want::Take, Want::Wait, Want::Reserve, Want::WaitToReserve].contains(&ask.want);
        let Some(told) = told else { return Ok(()) };
        match told {
            Told::Judged { allowed: true, remaining, by: Sayer::Store }
                if charges
                    && tagged
                    && !charged.iter().any(|(when, left)| when >= began && left == remaining) =>
            {
                return breach("M4", "was never charged so");
            }
            Told::Judged { allowed: false, by: Sayer::Store | Sayer::Memory, .. } if !charged.is_empty() => {
                let first = copied.unwrap_or(charged[0].0);
                let jumps = self.steps.iter().map(|(at, _)| at).filter(|_| *timeless);
                // What was allowed before a loss may be told after what is allowed after it: then that is taken back.
                let of_money =
                    ask.costs.iter().any(|cost| matches!(cost.kind, Kind::Lifetime | Kind::Budget));
                let late = if of_money { UNDER_WAY } else { 0 };
                if !self.losses.iter().chain(jumps).any(|lost| *lost + late >= first) {
                    return breach("M4", "was charged");
                }
            }
            _ => {}
        }
        match told {
            Told::Judged { by: Sayer::Memory, allowed, .. } => {
                // The clock that counts the second may be slow.
                let age = BELIEVED + BELIEVED * DRIFT as u64 / 900_000;
                let known = |cost: &Cost| {
                    let given = self.restored.get(&(*process, cost.limit.clone())).copied().unwrap_or(0);
                    let since = began.saturating_sub(age).max(given);
                    let asked = (cost.limit.clone(), cost.max, cost.cost);
                    self.refusals.get(&asked).is_some_and(|times| times.iter().any(|time| *time >= since))
                };
                if *allowed || !ask.costs.iter().any(known) || charges_by_reservation(ask.want) {
                    return breach("M5", "was not refused by the store a moment ago");
                }
            }
            Told::Judged { by: Sayer::Outage, allowed, .. } => {
                if !ask.open || charges_by_reservation(ask.want) {
                    return breach("M6", "is closed in an outage");
                }
                if charges {
                    let alone = self
                        .alone
                        .entry(*process)
                        .or_insert_with(|| Windows::of_clock(DRIFT as u64 * 101 / 100));
                    ask.costs.iter().for_each(|cost| alone.asked(cost));
                    for cost in ask.costs.iter().filter(|_| *allowed) {
                        alone.allowed(*began, at, cost);
                    }
                }
            }
            Told::Judged { .. } => {}
            Told::Failed(code) => {
                let waits = [Want::Wait, Want::WaitToReserve].contains(&ask.want);
                let never = |cost: &Cost| cost.cost > cost.most() || cost.kind == Kind::Lifetime;
                let fair = match code.as_str() {
                    "store_unavailable" => true,
                    "timed_out" => waits,
                    "limited" => waits && ask.costs.iter().any(never),
                    _ => false,
                };
                if !fair {
                    return breach("T2", "ended so");
                }
            }
        }
        if charges_by_reservation(ask.want)
            && let Told::Judged { allowed: true, by: Sayer::Store, .. } = told
        {
            let (from, ttl) = (charged.last().map_or(*began, |(when, _)| *when), ask.ttl);
            let flying: Vec<Cost> =
                ask.costs.iter().filter(|cost| cost.kind == Kind::InFlight).cloned().collect();
            for cost in flying {
                self.fly(at, &cost, Flight { call: number, from, ttl, cost: cost.cost })?;
            }
        }
        Ok(())
    }

    /// What is surely in flight, with one more.
    fn fly(&mut self, at: Instant, cost: &Cost, flight: Flight) -> Result<(), Breach> {
        // What was charged before the store forgot, or before the limit was reset, is known to nobody.
        let forgot = |(when, limit): &(Instant, String)| *when >= flight.from && *limit == cost.limit;
        if self.losses.iter().any(|lost| *lost >= flight.from) || self.resets.iter().any(forgot) {
            return Ok(());
        }
        let ends = |flight: &Flight| {
            let ahead =
                self.steps.iter().filter(|(when, _)| *when >= flight.from).map(|(_, by)| by).sum::<u64>();
            at - flight.from + ahead >= flight.ttl
        };
        let (most, flights) = self.flights.entry(cost.limit.clone()).or_default();
        let calls = &self.calls;
        flights.retain(|flight| {
            !ends(flight) && calls.get(&flight.call).is_some_and(|call| call.settling.is_none())
        });
        if !ends(&flight) {
            flights.push(flight);
        }
        let sum: u128 = flights.iter().map(|flight| flight.cost).sum();
        if sum > *most {
            return Err(Breach::new("S9", format!("{sum} of {} are in flight, at most {most}", cost.limit)));
        }
        Ok(())
    }

    /// The caller prolongs what it reserved.
    pub fn renews(&mut self, at: Instant, number: u64) {
        if let Some(call) = self.calls.get_mut(&number) {
            call.renewing = Some(at);
        }
    }

    /// It is told what became of that. What is in flight is surely so for so long from when that was asked.
    pub fn renewed(
        &mut self,
        at: Instant,
        number: u64,
        tagged: bool,
        ttl: u64,
        error: Option<&str>,
    ) -> Result<(), Breach> {
        let Some(call) = self.calls.get_mut(&number) else { return Ok(()) };
        let Some(from) = call.renewing else { return Ok(()) };
        let breach = |rule, what: &str| {
            Err(Breach::new(rule, format!("call {number}, of {ttl} us: its renewal {what}: {error:?}")))
        };
        match error {
            None if tagged && call.renewed.is_none_or(|when| when < from) => {
                return breach("M3", "was not performed");
            }
            None => {}
            Some("store_unavailable") => return Ok(()),
            Some("lost") => {
                let resets = |(when, limit): &(Instant, String)| {
                    *when >= call.began && call.ask.costs.iter().any(|cost| cost.limit == *limit)
                };
                let ahead = self.steps.iter().filter(|(when, _)| *when >= call.began).map(|(_, by)| by);
                // What clocks may differ by is not relied on.
                let passed = at + ahead.sum::<u64>() + call.ask.ttl.max(ttl) / 25 + 10_000 >= call.lasts;
                let forgot = self.losses.iter().any(|lost| *lost >= call.began);
                return match passed || forgot || self.resets.iter().any(resets) {
                    true => Ok(()),
                    false => breach("T2", "was answered so"),
                };
            }
            Some(_) => return breach("T2", "was answered so"),
        }
        if call.lasts >= from + ttl {
            return Ok(());
        }
        call.lasts = from + ttl;
        let flies = |cost: &&Cost| cost.kind == Kind::InFlight;
        let flying: Vec<Cost> = call.ask.costs.iter().filter(flies).cloned().collect();
        for cost in flying {
            if let Some((_, flights)) = self.flights.get_mut(&cost.limit) {
                flights.retain(|flight| flight.call != number);
            }
            self.fly(at, &cost, Flight { call: number, from, ttl, cost: cost.cost })?;
        }
        Ok(())
    }

    /// The caller ends what it reserved, of which so much stays charged, if not all.
    pub fn settles(&mut self, at: Instant, number: u64, back: bool, stays: Option<u64>) {
        if let Some(call) = self.calls.get_mut(&number) {
            call.settling = Some((at, back));
            call.stays = stays;
        }
    }

    /// Who ended it, perhaps another process, is told what became of that.
    pub fn settled(
        &mut self,
        process: ProcessId,
        number: u64,
        tagged: bool,
        error: Option<&str>,
    ) -> Result<(), Breach> {
        let Some(call) = self.calls.get(&number) else { return Ok(()) };
        let Some((began, back)) = call.settling else { return Ok(()) };
        // What stays charged says nothing of what was refused.
        for cost in call.ask.costs.iter().filter(|_| back || call.stays.is_some()) {
            self.restored.insert((process, cost.limit.clone()), began);
        }
        let forgot = self.losses.iter().any(|lost| *lost >= call.began);
        let flies = call.ask.costs.iter().any(|cost| cost.kind == Kind::InFlight);
        let breach = |rule, what: &str| {
            Err(Breach::new(rule, format!("call {number}, {:?}: its end {what}: {error:?}", call.ask)))
        };
        match error {
            None if back && tagged && !call.back => breach("M3", "was not performed"),
            Some("lost") if back && call.back && !forgot => breach("M3", "was performed"),
            // Only what is in flight is not as it was when its time has passed.
            Some("lost") if !back && !flies => breach("T2", "was answered so"),
            None | Some("lost" | "store_unavailable") => Ok(()),
            Some(_) => breach("T2", "was answered so"),
        }
    }

    /// At the end of the world: all windows.
    pub fn judge(&mut self) -> Result<(), Breach> {
        // What a process was allowed of money, it has seen: no loss of the store's memory excuses that it spends more.
        let mut lives: BTreeMap<ProcessId, Windows> = BTreeMap::new();
        let mut numbers: Vec<_> = self.calls.keys().copied().collect();
        numbers.sort_unstable();
        for number in numbers {
            let Some(call) = self.calls.get(&number) else { continue };
            let told =
                matches!(&call.end, Some((_, Some(Told::Judged { allowed: true, by: Sayer::Store, .. }))));
            let charges =
                [Want::Take, Want::Wait, Want::Reserve, Want::WaitToReserve].contains(&call.ask.want);
            // What was to be given back may have been.
            let given = call.settling.is_some_and(|(_, back)| back);
            if let (true, true, false, Some((ended, _))) = (told, charges, given, &call.end) {
                let known = call.charged.last().map(|(when, _)| (*when, *when));
                let (from, to) = known.unwrap_or((call.began, *ended));
                let stays = call.stays.map_or(u128::MAX, u128::from);
                let costs = call.ask.costs.iter();
                let costs: Vec<_> =
                    costs.map(|cost| Cost { cost: cost.cost.min(stays), ..cost.clone() }).collect();
                costs.iter().for_each(|cost| self.windows.allowed(from, to, cost));
                let life = lives.entry(call.process).or_insert_with(|| self.windows.of_one_that_remembers());
                let of_money = |cost: &&Cost| matches!(cost.kind, Kind::Lifetime | Kind::Budget);
                costs.iter().filter(of_money).for_each(|cost| life.allowed(from, to, cost));
            }
        }
        self.windows.judge()?;
        for (process, life) in &mut lives {
            let whose = format!("{process:?}, which has seen it");
            life.judge().map_err(|breach| breach.of("S11", &whose))?;
        }
        self.alone.values_mut().try_for_each(Windows::judge)
    }
}

fn charges_by_reservation(want: Want) -> bool {
    matches!(want, Want::Reserve | Want::WaitToReserve)
}

/// The number of the call of which a cost is the tag.
fn tag(cost: &Cost) -> Option<u64> {
    (cost.kind == Kind::Each && cost.max > TAG).then(|| (cost.max - TAG) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_reserved_is_given_back_whatever_its_giver_names() {
        let cost =
            |cost| Cost { limit: "a".to_owned(), kind: Kind::Lifetime, max: 10, period: 0, extra: 0, cost };
        let judged = || Word::Judged { allowed: true, binding: 0, remaining: 0, retry: Some(0), reset: None };
        let id = || "reservation:1".to_owned();
        let judge = |last| {
            let mut calls = LimitCalls::default();
            let mut perform = |at, act, amount, word| {
                let deed = Deed { act, costs: vec![cost(amount)], word };
                calls.deed(at, &deed, Sent { timeless: true, again: false }).expect("no rule is broken");
            };
            perform(1, Action::Reserve { id: id(), ttl: 9, waits: None }, 8, judged());
            perform(2, Action::Refund, 8, judged());
            perform(3, Action::Settle { id: id(), back: true }, 1, Word::Settled);
            for (at, amount) in [(3, 10), (4, last)] {
                calls.windows.allowed(at, at, &cost(amount));
            }
            calls.windows.judge()
        };
        judge(8).expect("what was reserved came back in this window");
        judge(9).expect_err("and no more");
    }
}
