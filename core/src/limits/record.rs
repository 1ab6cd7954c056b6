//! What is kept of one limit.

use super::budget::{Budget, Calendar};
use super::clock::Clock;
use super::in_flight::{InFlight, Waiter};
use super::lifetime::Lifetime;
use super::refill::{Rate, Refill};
use super::reservation::Mark;
use super::rolling::{Rolling, Window};
use super::standing::{Birth, Standing};
use super::{Amount, Rule, Verdict, Waited};
use crate::Micros;

/// What is kept of one limit: how much is used, and when that was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    clock: Clock,
    usage: Usage,
    /// After which millisecond of the wall clock it is as if never written.
    gone: Option<u64>,
    epoch: Option<Epoch>,
}

/// By what reservations know that what they charged is still among what is used: the first of them since the limit was as if
/// never used. Whatever makes it so, a reset too, ends the epoch, and those of another give nothing back.
pub(super) type Epoch = u128;

/// A record at some time, not written yet.
#[derive(Clone, Debug)]
pub(super) struct Draft<'a> {
    rule: &'a Rule,
    wall: Micros,
    clock: Clock,
    now: Micros,
    /// What begins to count now is of this birth.
    birth: Birth,
    usage: Usage,
    epoch: Option<Epoch>,
    /// Whether something is kept otherwise by this rule from now on.
    turns: bool,
    /// Who waits for it, if somebody does.
    waiter: Option<Waiter>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Usage {
    /// Of a rule that remembers nothing.
    None,
    /// Also of [`Rule::Gcra`]: the records of kinds are apart.
    Refill(Refill),
    Rolling(Rolling),
    Lifetime(Lifetime),
    Budget(Budget),
    InFlight(InFlight),
}

/// What a limit says to a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Judged {
    pub allowed: bool,
    pub remaining: Amount,
    /// 0 if it is allowed, nothing if it never will be.
    pub retry: Option<Micros>,
    pub reset: Option<Micros>,
}

/// How long a record is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lasts {
    /// So long; 0 if it says nothing.
    After(Micros),
    /// It does not end by itself.
    Never,
}

impl Judged {
    /// The verdict that this limit binds, as the charge of this number of its request.
    pub fn verdict(self, binding: usize) -> Verdict {
        let Judged { allowed, remaining, retry, reset } = self;
        Verdict { allowed, binding, remaining, retry_after: retry, reset_after: reset }
    }
}

impl Record {
    /// Whether it is as if never written.
    pub fn is_gone(&self, wall: Micros) -> bool {
        self.gone.is_some_and(|gone| gone < wall / 1_000)
    }

    /// Goes on from where it was, if the wall clock was set back. Whatever else becomes of the request: a limit that
    /// refuses everything is not written otherwise, and its time would stand still until the wall clock has caught up.
    pub fn keep_time(&mut self, wall: Micros) {
        if self.clock.is_behind(wall) {
            self.clock = self.clock.written(wall);
        }
    }

    /// How a limit of money stands, if anything was charged of it, and its period is not over: that ends when it will be.
    pub fn standing(&self, wall: Micros) -> Option<Standing> {
        let standing = match &self.usage {
            Usage::Budget(budget) => budget.standing.until(budget.over()),
            usage => usage.standing()?.clone(),
        };
        (!standing.is_blank() && !standing.is_over(self.clock.now(wall))).then_some(standing)
    }

    /// Takes a cost where the record stands, in the steps of a [`Draft`] that is charged and written: of what refills and is
    /// written by this rule already, if it is allowed and the clock runs as it should. That is what nearly all requests
    /// are, and to draft them takes three times as long. Nothing, and nothing changes, where a draft is needed.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    pub fn take(&mut self, rule: &Rule, wall: Micros, cost: Amount) -> Option<Judged> {
        let (max, period, burst) = match *rule {
            Rule::Refill { max, period } => (max, period, max),
            Rule::Gcra { max, period, burst } => (max, period, burst),
            _ => return None,
        };
        let rate = Rate { max, period };
        if self.is_gone(wall) || !self.clock.is_true(wall) {
            return None;
        }
        let Usage::Refill(kept) = &mut self.usage else { return None };
        if !kept.is_of(rate) {
            return None;
        }
        let small = cost.saturating_u64();
        let mut refill = kept.after(rate, self.clock.elapsed(wall));
        if !refill.allows(burst, small) {
            return None;
        }
        let continues = self.epoch.is_some() && !refill.is_empty() && refill.is_counted();
        refill.charge(small);
        let Lasts::After(time @ 1..) = refill.lasts(burst) else { return None };
        if !continues {
            refill.count_anew();
            self.epoch = None;
        }
        self.clock = Clock::new(wall);
        *kept = refill;
        self.gone = Some(wall / 1_000 + milliseconds(time));
        Some(refill.judge(burst, 0))
    }

    /// Of how many cells it is, if it is of a rolling window.
    #[cfg(test)]
    pub fn cells(&self) -> usize {
        if let Usage::Rolling(rolling) = &self.usage { rolling.cells() } else { 0 }
    }

    /// After which millisecond of the wall clock that is so.
    pub fn gone(&self) -> Option<u64> {
        self.gone
    }
}

impl<'a> Draft<'a> {
    /// The record as it is now, by this rule, on a server where births are now of this one. They follow each other, from one period
    /// to the next too: whoever has heard of a reset is to hear of those that begin once its clock is the server's.
    pub fn new(record: Option<&Record>, rule: &'a Rule, wall: Micros, birth: Birth) -> Self {
        let clock = record.map_or(Clock::new(wall), |record| record.clock);
        let now = clock.now(wall);
        let usage = record.map_or(Usage::None, |record| record.usage.clone());
        let (turns, continues) = usage.turns(*rule, now);
        let birth = usage.standing().map_or(birth, |standing| birth.after(standing.birth()));
        let mut usage = usage.at(*rule, now, clock.elapsed(wall), birth);
        let epoch = record.and_then(|record| record.epoch).filter(|_| continues && !usage.is_empty());
        let epoch = epoch.filter(|_| !matches!(usage, Usage::Refill(refill) if !refill.is_counted()));
        if let (Usage::Refill(refill), None) = (&mut usage, epoch) {
            refill.count_anew();
        }
        Draft { rule, wall, clock, now, birth, usage, epoch, turns, waiter: None }
    }

    /// One of this line has waited for it.
    pub fn await_for(mut self, waited: Option<(u64, Waited)>) -> Self {
        let arrived = |time| self.now.saturating_sub(time);
        self.waiter =
            waited.map(|(line, Waited { time, reply })| Waiter { line, arrived: arrived(time), reply });
        self
    }

    /// Whether somebody waits whom this limit does not keep from it, but for what is in flight.
    pub fn is_awaited(&self, cost: Amount) -> bool {
        self.waiter.is_some()
            && match self.usage {
                Usage::InFlight(_) => self.judged(cost).retry.is_some(),
                _ => self.allows(cost),
            }
    }

    /// Keeps room for who waits; returns whether there is something to write.
    pub fn claim(&mut self, cost: Amount) -> bool {
        match (&mut self.usage, self.waiter) {
            (Usage::InFlight(flights), Some(waiter)) => {
                flights.claim(self.now, cost.saturating_u64(), waiter)
            }
            _ => false,
        }
    }

    /// Whether a take by this rule is to be written even if it is refused: what is used is refilled by this rule from now
    /// on, or counted in its window too, and kept for as long as that takes.
    pub fn turns(&self) -> bool {
        self.turns
    }

    /// Whether it is of a budget, which is asked by calendars.
    pub fn is_of_calendar(&self) -> bool {
        matches!(self.usage, Usage::Budget(_))
    }

    /// Whether it is allowed, as [`Self::judge`] says. Of what refills, which most limits are, nothing else is reckoned for
    /// that: times are divisions.
    pub fn allows(&self, cost: Amount) -> bool {
        match &self.usage {
            Usage::Refill(refill) => refill.allows(most(*self.rule), cost.saturating_u64()),
            _ => self.judged(cost).allowed,
        }
    }

    /// What the limit says, in times of the wall clock.
    pub fn judge(&self, cost: Amount) -> Judged {
        let judged = self.judged(cost);
        let told = |time| self.clock.lasts(self.wall, time);
        Judged { retry: judged.retry.map(told), reset: judged.reset.map(told), ..judged }
    }

    /// The same in times of its own clock.
    fn judged(&self, cost: Amount) -> Judged {
        let small = cost.saturating_u64();
        match (*self.rule, &self.usage) {
            (rule, Usage::Refill(refill)) => refill.judge(most(rule), small),
            (Rule::Rolling { max, period }, Usage::Rolling(rolling)) => {
                rolling.judge(Window { max, period }, self.now, small)
            }
            (Rule::Lifetime { max }, Usage::Lifetime(lifetime)) => lifetime.judge(max, cost),
            (Rule::Budget { max, .. }, Usage::Budget(budget)) => budget.judge(max, self.now, cost),
            (Rule::InFlight { max }, Usage::InFlight(flights)) => {
                flights.judge(max, self.now, small, self.waiter)
            }
            (rule, _) => {
                let allowed = cost <= rule.most();
                Judged { allowed, remaining: rule.most(), retry: allowed.then_some(0), reset: Some(0) }
            }
        }
    }

    /// Charges a cost that is allowed; what is in flight is so for `ttl`.
    pub fn charge(&mut self, cost: Amount, ttl: Micros) {
        let small = cost.saturating_u64();
        match (*self.rule, &mut self.usage) {
            (_, Usage::Refill(refill)) => refill.charge(small),
            (_, Usage::Rolling(rolling)) => rolling.charge(self.now, small),
            (_, Usage::Lifetime(Lifetime { standing }) | Usage::Budget(Budget { standing, .. })) => {
                standing.charge(cost, self.birth);
            }
            (_, Usage::InFlight(flights)) => flights.charge(self.now + ttl, small, self.waiter),
            _ => {}
        }
    }

    /// What a reservation charges is of this epoch; it begins one where there is none.
    pub fn enter(&mut self, reservation: Epoch) -> Epoch {
        *self.epoch.get_or_insert(reservation)
    }

    /// Whether what was charged in this epoch may still be among what is used.
    pub fn is_of(&self, epoch: Epoch) -> bool {
        self.epoch == Some(epoch)
    }

    /// Whether what was charged with this mark may have been given back before the store lost its memory.
    pub fn forgot_since(&self, mark: Mark) -> bool {
        self.usage.standing().is_some_and(|standing| mark != Mark::Birth(standing.birth()))
    }

    /// By what a reservation knows when it charged the limit.
    pub fn mark(&self, ttl: Micros) -> Mark {
        match &self.usage {
            Usage::None => Mark::Nothing,
            Usage::Lifetime(Lifetime { standing }) | Usage::Budget(Budget { standing, .. }) => {
                Mark::Birth(standing.birth())
            }
            Usage::InFlight(_) => Mark::Time(self.now + ttl),
            Usage::Refill(refill) => Mark::Refilled(refill.refilled()),
            Usage::Rolling(_) => Mark::Time(self.now),
        }
    }

    /// Gives a cost back, as far as it still counts; without a mark as if it was charged just now.
    pub fn give_back(&mut self, cost: Amount, mark: Mark) {
        let small = cost.saturating_u64();
        let time = if let Mark::Time(time) = mark { Some(time) } else { None };
        match (*self.rule, &mut self.usage) {
            (_, Usage::Refill(refill)) => {
                let refilled = if let Mark::Refilled(parts) = mark { parts } else { refill.refilled() };
                refill.give_back(small, refilled);
            }
            (Rule::Rolling { max, period }, Usage::Rolling(rolling)) => {
                rolling.give_back(Window { max, period }, self.now, small, time);
            }
            // With a period ends the epoch of its reservations.
            (_, Usage::Lifetime(Lifetime { standing }) | Usage::Budget(Budget { standing, .. })) => {
                standing.give_back(cost);
            }
            (_, Usage::InFlight(flights)) => {
                if let Some(until) = time {
                    flights.land(until, small);
                }
            }
            _ => {}
        }
    }

    /// Prolongs what is in flight with this mark to so long from now, never to less than it had; returns its mark from then on, and
    /// nothing if it is counted no more, as it has landed or is of another epoch.
    pub fn prolong(&mut self, cost: Amount, mark: Mark, epoch: Epoch, ttl: Micros) -> Option<Mark> {
        if cost.is_zero() {
            return Some(mark);
        }
        let (Mark::Time(until), Usage::InFlight(flights)) = (mark, &mut self.usage) else { return None };
        let longer = until.max(self.now + ttl);
        let flies = self.epoch == Some(epoch) && flights.prolong(until, cost.saturating_u64(), longer);
        flies.then_some(Mark::Time(longer))
    }

    /// Nothing is used of it any more, and what was reserved of it gives nothing back. A budget is of the calendar that resets it.
    pub fn reset(&mut self) {
        self.epoch = None;
        (self.clock, self.now) = (Clock::new(self.wall), self.wall);
        match (*self.rule, &mut self.usage) {
            (_, Usage::Lifetime(Lifetime { standing })) => standing.reset(self.birth, 0),
            (Rule::Budget { period, offset, .. }, Usage::Budget(budget)) => {
                budget.reset(Calendar { period, offset }, self.now, self.birth);
            }
            (_, usage) => *usage = Usage::None,
        }
    }

    /// Takes in what somebody has seen of a limit of money, and returns whether anything changed, and whether something may have been
    /// forgotten since.
    pub fn recall(&mut self, seen: Option<&Standing>) -> (bool, bool) {
        let Some(standing) = self.usage.standing_mut() else { return (false, false) };
        let told = seen.filter(|seen| !seen.is_over(self.now) && !standing.follows(seen));
        let changed = standing.recall(told, self.birth);
        if standing.used() == Amount::ZERO {
            self.epoch = None;
        }
        // Of a period that is over says as little of this one as who has seen nothing, but may have been sent in that.
        (changed, seen.is_some() && told.is_none() || standing.forgot_since(told))
    }

    /// The record as it is to be kept, which takes what is used out of the draft; nothing if the limit is as if never used.
    pub fn write(&mut self) -> Option<Record> {
        let wall = self.wall;
        if let Usage::Budget(budget) = &mut self.usage {
            budget.keep(self.birth);
        }
        let lasts = match (*self.rule, &self.usage) {
            (rule, Usage::Refill(refill)) => refill.lasts(most(rule)),
            (_, Usage::Rolling(rolling)) => rolling.lasts(self.now),
            (_, Usage::Lifetime(lifetime)) => lifetime.lasts(),
            (_, Usage::Budget(budget)) => budget.lasts(self.now, wall),
            (_, Usage::InFlight(flights)) => flights.lasts(self.now),
            _ => Lasts::After(0),
        };
        let gone = match lasts {
            Lasts::After(0) => return None,
            Lasts::After(time) => Some(wall / 1_000 + milliseconds(self.clock.lasts(wall, time))),
            Lasts::Never => None,
        };
        let usage = std::mem::replace(&mut self.usage, Usage::None);
        Some(Record { clock: self.clock.written(wall), usage, gone, epoch: self.epoch })
    }
}

impl Usage {
    /// Whether it is something that is kept otherwise by this rule from now on, and whether its epoch continues by this one:
    /// of another period nobody knows how much has been refilled since a mark, and in a longer window what was forgotten.
    fn turns(&self, rule: Rule, now: Micros) -> (bool, bool) {
        match (self, rule) {
            (Usage::Refill(refill), Rule::Refill { max, period } | Rule::Gcra { max, period, .. }) => {
                let rate = Rate { max, period };
                (!refill.is_empty() && !refill.is_of(rate), refill.is_of_period(period))
            }
            (Usage::Rolling(rolling), Rule::Rolling { max, period }) => {
                rolling.turns(Window { max, period }, now)
            }
            (Usage::Budget(budget), Rule::Budget { period, offset, .. }) => {
                (budget.turns(Calendar { period, offset }, now), true)
            }
            _ => (false, true),
        }
    }

    /// How it stands, if it is of money.
    fn standing(&self) -> Option<&Standing> {
        match self {
            Usage::Lifetime(Lifetime { standing }) | Usage::Budget(Budget { standing, .. }) => Some(standing),
            _ => None,
        }
    }

    fn standing_mut(&mut self) -> Option<&mut Standing> {
        match self {
            Usage::Lifetime(Lifetime { standing }) | Usage::Budget(Budget { standing, .. }) => Some(standing),
            _ => None,
        }
    }

    /// Whether it is as if never used.
    fn is_empty(&self) -> bool {
        match self {
            Usage::None => true,
            Usage::Refill(refill) => refill.is_empty(),
            Usage::Rolling(rolling) => rolling.is_empty(),
            Usage::Lifetime(lifetime) => lifetime.is_empty(),
            Usage::Budget(budget) => budget.is_empty(),
            Usage::InFlight(flights) => flights.is_empty(),
        }
    }

    /// The usage at a time that is so long after it was written. One of another kind is none.
    fn at(self, rule: Rule, now: Micros, elapsed: Micros, birth: Birth) -> Usage {
        match rule {
            Rule::Each { .. } => Usage::None,
            Rule::Refill { max, period } | Rule::Gcra { max, period, .. } => {
                let refill = if let Usage::Refill(refill) = self { refill } else { Refill::default() };
                Usage::Refill(refill.after(Rate { max, period }, elapsed))
            }
            Rule::Rolling { max, period } => {
                let rolling = if let Usage::Rolling(rolling) = self { rolling } else { Rolling::default() };
                Usage::Rolling(rolling.at(Window { max, period }, now))
            }
            Rule::Lifetime { .. } => Usage::Lifetime(if let Usage::Lifetime(lifetime) = self {
                lifetime
            } else {
                Lifetime::default()
            }),
            Rule::Budget { period, offset, .. } => {
                let budget = if let Usage::Budget(budget) = self { budget } else { Budget::default() };
                Usage::Budget(budget.at(Calendar { period, offset }, now, birth))
            }
            Rule::InFlight { .. } => {
                let flights = if let Usage::InFlight(flights) = self { flights } else { InFlight::default() };
                Usage::InFlight(flights.at(now))
            }
        }
    }
}

/// The most at once, by a rule of what refills.
fn most(rule: Rule) -> u64 {
    rule.most().saturating_u64()
}

/// Quotient, below 2^64, and remainder. To divide what is larger than that costs as much as all the rest of a check, and
/// most is not.
#[cfg_attr(not(target_family = "wasm"), inline(always))]
pub(super) fn divided(parts: u128, by: u64) -> (u64, u64) {
    match u64::try_from(parts) {
        // What was used is mostly refilled, or as good as.
        Ok(parts) if parts < by => (0, parts),
        Ok(parts) => (parts / by, parts % by),
        Err(_) => ((parts / u128::from(by)) as u64, (parts % u128::from(by)) as u64),
    }
}

/// For how many milliseconds a record is kept that is needed for so long: Redis 7 ends a key with the last of them, and
/// Redis 8 sometimes as that begins.
pub(super) fn milliseconds(time: Micros) -> u64 {
    time.div_ceil(1_000) + 1
}
