//! What limits must say, from their definitions: whole numbers and fractions, every reservation remembered. It shares
//! no code with the library.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::births::{Births, REMEMBERED};
use crate::cells::Cells;
use crate::charges::{Action, Charging, Cost, Deed, Kind, Standing, Waits, Word};
use crate::checker::Breach;

/// How long an answer is kept for its envelope's repetition, past the envelope's last moment.
const LANE_GRACE: u64 = 60_000_000;
/// How long is remembered that a reservation was committed.
const ENDED: u64 = 120_000_000;
/// After how long of waiting room is kept, for how long, and by how much one may come later and need not stand back.
const PATIENCE: u64 = 500_000;
/// For how much longer at most for who is far away.
const FAR: u64 = 1_500_000;
/// The longest time that is told.
const LONGEST: u128 = 1 << 50;

/// All limits of a store.
#[derive(Clone, Debug, Default)]
pub struct LedgerModel {
    records: BTreeMap<(Kind, String), Record>,
    reservations: HashMap<String, Reservation>,
    /// The last envelope of each lane, and until when its answer is kept.
    lanes: HashMap<String, (u64, u64)>,
    /// Which server it is: how often another has taken over, or it has begun anew.
    server: u64,
    /// What was seen of limits of money that an envelope has not looked at yet.
    unseen: BTreeMap<(Kind, String), Option<Births>>,
    /// Limits of which its sender has seen another birth: to them it gives nothing back.
    elsewhere: BTreeSet<(Kind, String)>,
}

#[derive(Clone, Debug)]
struct Record {
    /// When it was written, by its own clock, and how far that is ahead of the wall clock.
    last: u64,
    shift: u64,
    /// The last millisecond of the wall clock in which it is there; for ever if there is none.
    gone: Option<u64>,
    used: Used,
    /// On which server it was written.
    server: u64,
}

/// What is used of a limit.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Used {
    /// Of what refills, GCRA too, in parts of which a period makes one: by which maximum it was written, how much has ever been
    /// refilled while there was a record, and how much by the first reservation that may still count.
    Parts { period: u64, max: u128, parts: u128, refilled: u128, since: Option<u128> },
    /// Of a rolling window.
    Cells(Cells),
    /// All that was ever taken, or in a period.
    Money(Births),
    /// What is in flight, until when; and for whom room is kept.
    Flights(Vec<(u64, u128)>, Option<Kept>),
    /// Nothing is remembered.
    Nothing,
}

/// One who waits: for whom of its process all who wait for the same stand in one line.
#[derive(Clone, Debug)]
struct Waiter {
    line: String,
    since: u64,
    /// For how much longer room is kept for it.
    far: u64,
}

/// Room for one that waits.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    line: String,
    /// Since when it waits.
    since: u64,
    until: u64,
    cost: u128,
}

#[derive(Clone, Debug)]
struct Reservation {
    until: u64,
    /// The last millisecond of the wall clock in which it is there.
    gone: u64,
    /// Whether it was given back, once it has ended.
    ended: Option<bool>,
    parts: Vec<Part>,
}

/// What a reservation took of a limit: when that was, or until when, or how much had been refilled by then; and how much.
/// Nothing once that was forgotten.
type Part = ((Kind, String), Option<(u128, u128)>);

/// A limit at a moment.
struct Sight {
    now: u64,
    /// How far that is ahead of the wall clock.
    ahead: u64,
    used: Used,
    /// Whether what is kept is kept otherwise by the rule that asks, and whether nobody knows how much of it was forgotten.
    turned: bool,
    unknown: bool,
    /// Who waits for it.
    waiter: Option<Waiter>,
}

/// The last millisecond of the wall clock in which is kept what is needed for so long: one more than those that it begins.
fn last_millisecond(wall: u64, time: u64) -> u64 {
    wall / 1_000 + time.div_ceil(1_000) + 1
}

impl LedgerModel {
    /// Lets go what has expired by this time of the wall clock.
    pub fn expire(&mut self, wall: u64) {
        self.records.retain(|_, record| record.gone.is_none_or(|gone| gone >= wall / 1_000));
        self.reservations.retain(|_, reservation| reservation.gone >= wall / 1_000);
        self.lanes.retain(|_, (_, until)| *until > wall);
    }

    /// Another server takes over, with what it has: this, or another's.
    pub fn succeeds(&mut self, other: &LedgerModel) {
        self.server = other.server + 1;
    }

    /// The names of limits of which something is kept.
    pub fn kept(&self) -> impl Iterator<Item = (Kind, &str)> {
        self.records.keys().map(|(kind, name)| (*kind, name.as_str()))
    }

    /// The store performed this.
    pub fn perform(&mut self, done: &Charging) -> Result<(), Breach> {
        let now = done.now;
        if let Some(last) = done.not_after.filter(|&last| now > last) {
            return Err(Breach::new("E1", format!("charged {} us after its last moment", now - last)));
        }
        self.expire(now);
        if let Some((lane, number)) = &done.lane {
            if let Some((before, _)) = self.lanes.get(lane).filter(|(before, _)| before >= number) {
                let text = format!("envelope {number} of {lane} was performed after {before}");
                return Err(Breach::new("E2", text));
            }
            let until = done.not_after.unwrap_or(now) + LANE_GRACE;
            self.lanes.insert(lane.clone(), (*number, until));
        }
        self.elsewhere.clear();
        let unseen = done.standings.iter().map(|standing| (standing.limit.clone(), standing.seen.clone()));
        self.unseen = unseen.collect();
        done.deeds.iter().try_for_each(|deed| self.deed(now, deed))?;
        for Standing { limit, told, .. } in &done.standings {
            // One that was not looked at is not told.
            let looked = !self.unseen.contains_key(limit);
            let kept = self.records.get_mut(limit).filter(|record| looked && !record.is_over(now));
            let births = kept.and_then(|record| match &mut record.used {
                Used::Money(births) => Some(births),
                _ => None,
            });
            let wrong = match (births, told) {
                (Some(births), Some(told)) => births.named(told),
                (None, None) => None,
                (kept, told) => Some(format!("{told:?} is told, kept is {kept:?}")),
            };
            if let Some(text) = wrong {
                return Err(Breach::new("M7", format!("of {limit:?} {text}, after {done:?}")));
            }
        }
        Ok(())
    }

    fn deed(&mut self, wall: u64, deed: &Deed) -> Result<(), Breach> {
        let costs = &deed.costs;
        match &deed.act {
            Action::Settle { id, back } => self.settle(wall, id, *back, deed),
            Action::Reset => {
                for cost in costs {
                    if let Some(Sight { used: Used::Money(mut births), .. }) =
                        self.sights(wall, std::slice::from_ref(cost)).pop()
                    {
                        let calendar = (cost.kind == Kind::Budget).then_some((cost.period, cost.extra));
                        births.reset(calendar, wall);
                        let sight = Sight { used: Used::Money(births), ..Sight::at(wall) };
                        self.write(wall, std::slice::from_ref(cost), vec![sight]);
                    } else {
                        self.records.remove(&key(cost));
                    }
                    self.forget(&key(cost));
                }
                let sights = self.sights(wall, costs);
                let nothing: Vec<Cost> = costs.iter().map(|cost| Cost { cost: 0, ..cost.clone() }).collect();
                judged(&nothing, &sights, &deed.word)
            }
            Action::Refund => {
                let mut sights = self.sights(wall, costs);
                for (sight, cost) in sights.iter_mut().zip(costs) {
                    if !self.elsewhere.contains(&key(cost)) {
                        sight.give_back(cost, cost.cost, None);
                    }
                }
                let nothing: Vec<Cost> = costs.iter().map(|cost| Cost { cost: 0, ..cost.clone() }).collect();
                judged(&nothing, &sights, &deed.word)?;
                self.write(wall, costs, sights);
                Ok(())
            }
            Action::Take | Action::Peek | Action::Reserve { .. } => self.take(wall, deed),
        }
    }

    fn take(&mut self, wall: u64, deed: &Deed) -> Result<(), Breach> {
        let costs = &deed.costs;
        let mut sights = self.sights(wall, costs);
        let waits = if let Action::Reserve { waits, .. } = &deed.act { waits.as_ref() } else { None };
        for sight in &mut sights {
            sight.waiter = waits.map(|Waits { client, waited, reply }| {
                let names: Vec<&str> = costs.iter().map(|cost| cost.limit.as_str()).collect();
                let line = format!("{client} {}", names.join(" "));
                Waiter { line, since: sight.now.saturating_sub(*waited), far: (*reply).min(FAR) }
            });
        }
        let allowed = sights.iter().zip(costs).all(|(sight, cost)| sight.allows(cost));
        if !allowed || deed.act == Action::Peek {
            judged(costs, &sights, &deed.word)?;
            // A take by another rule is kept by that from now on, also if that is why it is refused.
            let all = sights.into_iter().zip(costs).filter(|_| deed.act != Action::Peek);
            let (refusing, others): (Vec<_>, Vec<_>) = all.partition(|(sight, cost)| !sight.allows(cost));
            // A budget hears by what calendar it is asked also where another limit refuses.
            for (sight, cost) in
                others.into_iter().filter(|(sight, cost)| cost.kind == Kind::Budget && sight.turned)
            {
                self.write(wall, std::slice::from_ref(cost), vec![sight]);
            }
            let flies = |cost: &Cost| cost.kind == Kind::InFlight && cost.cost <= cost.max;
            let waits = refusing.iter().all(|(_, cost)| flies(cost));
            for (mut sight, cost) in refusing {
                if sight.turned || waits && sight.keep(cost) {
                    self.write(wall, std::slice::from_ref(cost), vec![sight]);
                }
            }
            return Ok(());
        }
        let ttl = if let Action::Reserve { ttl, .. } = deed.act { ttl } else { 0 };
        let mut parts = Vec::new();
        for (sight, cost) in sights.iter_mut().zip(costs) {
            if sight.used.is_empty() {
                self.forget(&key(cost));
            }
            sight.charge(cost, ttl);
            let mark = match &mut sight.used {
                Used::Flights(..) => u128::from(sight.now + ttl),
                Used::Parts { refilled, since, .. } => {
                    if ttl > 0 {
                        since.get_or_insert(*refilled);
                    }
                    *refilled
                }
                _ => u128::from(sight.now),
            };
            parts.push((key(cost), Some((mark, cost.cost))));
        }
        let nothing: Vec<Cost> = costs.iter().map(|cost| Cost { cost: 0, ..cost.clone() }).collect();
        judged(&nothing, &sights, &deed.word)?;
        self.write(wall, costs, sights);
        if let Action::Reserve { id, ttl, .. } = &deed.act {
            let gone = last_millisecond(wall, *ttl);
            let reservation = Reservation { until: wall + ttl, gone, ended: None, parts };
            if self.reservations.insert(id.clone(), reservation).is_some() {
                return Err(Breach::new("M3", format!("{id} was reserved twice")));
            }
        }
        Ok(())
    }

    fn settle(&mut self, wall: u64, id: &str, back: bool, deed: &Deed) -> Result<(), Breach> {
        let reservation = self.reservations.get_mut(id).filter(|reservation| reservation.until > wall);
        let wrong = |due: Word| {
            let text = format!("the end of {id} was answered with {:?}, not {due:?}", deed.word);
            if due == deed.word { Ok(()) } else { Err(Breach::new("M3", text)) }
        };
        let reservation = match reservation {
            None => return wrong(Word::Gone),
            Some(Reservation { ended: Some(back), .. }) => return wrong(Word::Before { back: *back }),
            Some(reservation) => reservation,
        };
        let (parts, mut all_back) = (reservation.parts.clone(), back);
        for (cost, (_, part)) in deed.costs.iter().zip(parts) {
            // What is in flight lands in any case.
            if back || cost.kind == Kind::InFlight {
                let costs = std::slice::from_ref(cost);
                let mut sights = self.sights(wall, costs);
                // What ended with its period, and what was found to be nothing, is forgotten by now.
                let known = part.filter(|_| self.is_reserved(id, cost));
                let elsewhere = self.elsewhere.contains(&key(cost));
                all_back &= !elsewhere || known.is_none_or(|(_, amount)| amount == 0);
                let known = known.filter(|_| !elsewhere);
                if let Some((mark, amount)) = known.filter(|_| sights.iter().all(|sight| !sight.unknown)) {
                    sights.iter_mut().for_each(|sight| sight.give_back(cost, amount, Some(mark)));
                }
                self.write(wall, costs, sights);
            }
        }
        if let Some(reservation) = self.reservations.get_mut(id) {
            // What could not be given back stays charged.
            reservation.ended = Some(all_back);
            if !all_back {
                reservation.until = reservation.until.min(wall + ENDED);
            }
            reservation.gone = last_millisecond(wall, reservation.until - wall);
        }
        wrong(if back && !all_back { Word::Gone } else { Word::Settled })
    }

    /// Nothing of a limit is used: what was reserved of it until now is not among what will be.
    fn forget(&mut self, limit: &(Kind, String)) {
        for reservation in self.reservations.values_mut() {
            reservation.parts.iter_mut().filter(|(key, _)| key == limit).for_each(|(_, part)| *part = None);
        }
    }

    /// The limits at this moment. A record whose clock the wall clock fell behind goes on from where it was.
    fn sights(&mut self, wall: u64, costs: &[Cost]) -> Vec<Sight> {
        costs.iter().map(|cost| self.sight(wall, cost)).collect()
    }

    fn sight(&mut self, wall: u64, cost: &Cost) -> Sight {
        let limit = key(cost);
        let mut moved = false;
        let mut sight = match self.records.get_mut(&limit) {
            Some(record) => {
                let now = record.now(wall);
                if record.last > wall + record.shift {
                    record.shift = now - wall;
                }
                moved = record.server != self.server;
                let used = record.used.at(cost, now, now - record.last);
                let unknown =
                    matches!(&record.used, Used::Cells(cells) if cells.is_shorter_than(cost.period));
                let turned = record.used.is_of_another(cost, now);
                Sight { now, ahead: now - wall, used, turned, unknown, waiter: None }
            }
            None => Sight { used: Used::new(cost.kind).at(cost, wall, 0), ..Sight::at(wall) },
        };
        let Used::Money(births) = &mut sight.used else { return sight };
        if births.used() == 0 {
            self.forget(&limit);
        }
        if let Some(seen) = self.unseen.remove(&limit) {
            let seen = seen.filter(|seen| seen.ends == 0 || seen.ends > sight.now && !births.follows(seen));
            let changed = births.look(seen.as_ref(), moved);
            if seen.is_some_and(|seen| births.forgot_since(&seen)) {
                self.elsewhere.insert(limit.clone());
            }
            if births.used() == 0 {
                self.forget(&limit);
            }
            if changed {
                let again = Sight { used: sight.used.clone(), ..Sight::at(sight.now) };
                self.write(wall, std::slice::from_ref(cost), vec![again]);
            }
        }
        sight
    }

    fn is_reserved(&self, id: &str, cost: &Cost) -> bool {
        let parts = self.reservations.get(id).map(|reservation| &reservation.parts);
        parts.is_some_and(|parts| parts.iter().any(|(limit, part)| *limit == key(cost) && part.is_some()))
    }

    fn write(&mut self, wall: u64, costs: &[Cost], sights: Vec<Sight>) {
        for (Sight { now, mut used, unknown, .. }, cost) in sights.into_iter().zip(costs) {
            if unknown {
                self.forget(&key(cost));
            }
            if let Used::Money(births) = &mut used {
                births.keep();
            }
            let lasts = match &used {
                Used::Money(births) if births.is_blank() => Some(0),
                // That nothing is used of it.
                Used::Money(Births { ends: 0, .. }) if used.is_empty() => Some(REMEMBERED),
                Used::Money(Births { ends: 0, .. }) => None,
                Used::Money(births) => Some(births.following() - now),
                // A period where that is as long at least.
                Used::Parts { period, parts, .. }
                    if *parts > 0 && cost.most() == cost.max && *parts <= cost.max * u128::from(*period) =>
                {
                    Some(*period)
                }
                Used::Cells(cells) => Some(cells.lasts(now)),
                Used::Flights(_, Some(kept)) => {
                    used.empty_after(cost, now).map(|time| time.max(kept.until - now))
                }
                used => used.empty_after(cost, now),
            };
            if lasts == Some(0) {
                self.records.remove(&key(cost));
                self.forget(&key(cost));
                continue;
            }
            let gone = lasts.map(|time| last_millisecond(wall, time + time.min(now - wall)));
            self.records
                .insert(key(cost), Record { last: now, shift: now - wall, gone, used, server: self.server });
        }
    }
}

impl Record {
    /// Whether it is of a period that has ended.
    fn is_over(&self, wall: u64) -> bool {
        let now = self.now(wall);
        matches!(&self.used, Used::Money(births) if births.ends > 0 && births.over() <= now)
    }

    /// Its time: half of what has passed since it was written at least, and no more than that until it is the wall clock's.
    fn now(&self, wall: u64) -> u64 {
        wall.max(self.last).max((wall + self.shift + self.last).div_ceil(2))
    }
}

impl Sight {
    /// Of a limit of which nothing is kept.
    fn at(now: u64) -> Self {
        Sight { now, ahead: 0, used: Used::Nothing, turned: false, unknown: false, waiter: None }
    }

    /// Whether it fits, and nobody came before who waits for that room.
    fn allows(&self, cost: &Cost) -> bool {
        self.used.allows(cost, self.now, cost.cost) && !self.stands_back(cost)
    }

    /// How much of its own time passes in so much by the wall clock, where it is written now.
    fn passed(&self, time: u64) -> u64 {
        time - self.ahead.min(time / 2)
    }

    fn stands_back(&self, cost: &Cost) -> bool {
        let (Used::Flights(_, Some(kept)), Some(Waiter { line, since, .. })) = (&self.used, &self.waiter)
        else {
            return false;
        };
        let room = self.used.remaining(cost, self.now);
        let earlier = *line != kept.line && *since > kept.since + PATIENCE;
        earlier && cost.cost > 0 && room < cost.cost + kept.cost
    }

    /// Keeps room for who waits, and returns whether it does.
    fn keep(&mut self, cost: &Cost) -> bool {
        let (Used::Flights(_, kept), Some(Waiter { line, since, far })) = (&mut self.used, &self.waiter)
        else {
            return false;
        };
        let first = kept
            .as_ref()
            .is_none_or(|kept| *since < kept.since || *line == kept.line && *since <= kept.since + PATIENCE);
        let keeps = first && self.now - since >= PATIENCE;
        if keeps {
            let until = self.now + PATIENCE + far;
            *kept = Some(Kept { line: line.clone(), since: *since, until, cost: cost.cost });
        }
        keeps
    }

    fn charge(&mut self, of: &Cost, ttl: u64) {
        let (now, cost) = (self.now, of.cost);
        match &mut self.used {
            Used::Parts { parts, period, .. } => *parts += cost * u128::from(*period),
            Used::Cells(_) | Used::Flights(..) if cost == 0 => {}
            Used::Cells(cells) => cells.charge(now, cost),
            Used::Money(births) => births.charge(cost),
            Used::Flights(flights, kept) => {
                flights.push((now + ttl, cost));
                let line = self.waiter.as_ref().map(|waiter| &waiter.line);
                if kept.as_ref().map(|kept| &kept.line) == line {
                    *kept = None;
                }
            }
            Used::Nothing => {}
        }
    }

    /// Gives back what was charged at a mark, as far as it still counts; without one as if it was charged just now.
    fn give_back(&mut self, of: &Cost, amount: u128, mark: Option<u128>) {
        let now = self.now;
        let period = u128::from(of.period);
        match &mut self.used {
            // What has been refilled since is there already.
            Used::Parts { parts, refilled, since, .. }
                if mark.is_none_or(|mark| since.is_some_and(|since| since <= mark)) =>
            {
                let since = *refilled - mark.unwrap_or(*refilled);
                *parts = parts.saturating_sub((amount * period).saturating_sub(since));
            }
            Used::Cells(cells) if mark.is_none_or(|mark| u128::from(now) < mark + period) => {
                cells.give_back(of.period, now, amount, mark.map(|mark| mark as u64));
            }
            Used::Money(births) => births.give_back(amount),
            Used::Flights(flights, _) => {
                let landed =
                    flights.iter().position(|&flight| Some(flight.0.into()) == mark && flight.1 == amount);
                landed.map(|at| flights.remove(at));
            }
            _ => {}
        }
    }
}

impl Used {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Refill | Kind::Gcra => {
                Used::Parts { period: 0, max: 0, parts: 0, refilled: 0, since: None }
            }
            Kind::Rolling => Used::Cells(Cells::default()),
            Kind::Lifetime | Kind::Budget => Used::Money(Births::default()),
            Kind::InFlight => Used::Flights(Vec::new(), None),
            Kind::Each => Used::Nothing,
        }
    }

    /// What is used so long after it was written, by this rule.
    fn at(&self, rule: &Cost, now: u64, elapsed: u64) -> Used {
        let (max, elapsed) = (rule.max, u128::from(elapsed));
        match self.clone() {
            // The seed's equation: until a maximum is asked with by the one before. No period of theirs changes in a world.
            Used::Parts { max: before, parts, refilled, since, .. } => {
                let left = parts.saturating_sub(elapsed * before);
                let refilled = refilled + parts - left;
                // More is not counted.
                let most = u128::from(rule.period) << 50;
                let since = since.filter(|since| left > 0 && refilled - since < most);
                Used::Parts { period: rule.period, max, parts: left, refilled, since }
            }
            Used::Cells(cells) => Used::Cells(cells.at(rule.period, now)),
            Used::Money(births) if rule.kind == Kind::Budget => {
                Used::Money(births.asked((rule.period, rule.extra), now))
            }
            Used::Flights(mut flights, kept) => {
                flights.retain(|(until, _)| *until > now);
                Used::Flights(flights, kept.filter(|kept| kept.until > now))
            }
            other => other,
        }
    }

    /// The whole that is taken of what can be.
    fn remaining(&self, rule: &Cost, now: u64) -> u128 {
        let period = u128::from(rule.period);
        let sum = |items: &[(u64, u128)]| items.iter().map(|(_, amount)| amount).sum::<u128>();
        match self {
            Used::Parts { parts, .. } => rule.most().saturating_sub(parts.div_ceil(period)),
            Used::Cells(cells) => rule.max.saturating_sub(cells.sum(rule.period, now)),
            Used::Flights(items, _) => rule.max.saturating_sub(sum(items)),
            Used::Money(births) => rule.max.saturating_sub(births.used()),
            Used::Nothing => rule.max,
        }
    }

    /// Nothing always fits.
    fn allows(&self, rule: &Cost, now: u64, cost: u128) -> bool {
        cost == 0 || cost <= self.remaining(rule, now)
    }

    fn is_empty(&self) -> bool {
        match self {
            Used::Parts { parts, .. } => *parts == 0,
            Used::Cells(cells) => cells.is_empty(),
            Used::Flights(items, _) => items.is_empty(),
            Used::Money(births) => births.used() == 0,
            Used::Nothing => true,
        }
    }

    /// Whether something is kept by another rule.
    fn is_of_another(&self, rule: &Cost, now: u64) -> bool {
        match self {
            Used::Parts { max, parts, .. } => *max != rule.max && *parts > 0,
            Used::Cells(cells) => cells.turns(rule.period, now),
            Used::Money(births) if rule.kind == Kind::Budget => births.turns((rule.period, rule.extra), now),
            _ => false,
        }
    }

    /// How long until nothing is used, if ever.
    fn empty_after(&self, rule: &Cost, now: u64) -> Option<u64> {
        match self {
            _ if self.is_empty() => Some(0),
            Used::Money(Births { ends: 0, .. }) => None,
            Used::Parts { parts, .. } => Some(parts.div_ceil(rule.max).min(LONGEST) as u64),
            Used::Cells(cells) => Some(cells.empty_after(rule.period, now)),
            Used::Flights(flights, _) => flights.iter().map(|(until, _)| until - now).max(),
            Used::Money(births) => Some(births.over() - now),
            Used::Nothing => Some(0),
        }
    }
}

/// Whether what was said of these limits, as they are, is true.
fn judged(costs: &[Cost], sights: &[Sight], word: &Word) -> Result<(), Breach> {
    let Word::Judged { allowed, binding, remaining, retry, reset } = word else {
        return Err(Breach::new("M1", format!("{costs:?} was answered with {word:?}")));
    };
    let fits: Vec<bool> = sights.iter().zip(costs).map(|(sight, cost)| sight.allows(cost)).collect();
    let due = fits.iter().all(|fits| *fits);
    let (Some(sight), Some(cost)) = (sights.get(*binding), costs.get(*binding)) else {
        return Err(Breach::new("M1", format!("no cost {binding} among {costs:?}")));
    };
    let tell = |what: &str| {
        let used: Vec<&Used> = sights.iter().map(|sight| &sight.used).collect();
        format!("{what}: {word:?} for {costs:?}, of which {used:?} is used at {}", sight.now)
    };
    if *allowed != due {
        return Err(Breach::new(
            "M1",
            tell(if due { "refused what fits" } else { "allowed what does not fit" }),
        ));
    }
    if *remaining != sight.used.remaining(cost, sight.now) {
        return Err(Breach::new("M1", tell(&format!("{} remains", sight.used.remaining(cost, sight.now)))));
    }
    // Of those that allow the one of which least remains, of those that refuse the one that does so longest.
    let least = || sights.iter().zip(costs).map(|(sight, cost)| sight.used.remaining(cost, sight.now)).min();
    if due && least() != Some(*remaining) || !due && fits[*binding] {
        return Err(Breach::new("M1", tell("another binds")));
    }
    let by_the_wall = |time: u64| time + time.min(sight.ahead);
    if *reset != sight.used.empty_after(cost, sight.now).map(by_the_wall) {
        return Err(Breach::new("M2", tell("the time of its reset is wrong")));
    }
    if due {
        return if *retry == Some(0) { Ok(()) } else { Err(Breach::new("M2", tell("it is allowed now"))) };
    }
    let refusing = || sights.iter().zip(costs).zip(&fits).filter(|(_, fits)| !**fits).map(|(both, _)| both);
    let never = |cost: &Cost| cost.cost > cost.most() || cost.kind == Kind::Lifetime;
    let Some(retry) = *retry else {
        return if never(cost) { Ok(()) } else { Err(Breach::new("M2", tell("it will be allowed"))) };
    };
    // The first moment at which it would not be refused by this limit, and not before that of another.
    let later = |(sight, cost): (&Sight, &Cost), time: u64| {
        let time = sight.passed(time);
        let used = sight.used.at(cost, sight.now + time, time);
        match &used {
            // Who stands back does so while room is kept.
            Used::Flights(_, kept) if sight.used.allows(cost, sight.now, cost.cost) => kept.is_none(),
            // Of what is in flight, when the first ends that is not given back.
            Used::Flights(flights, _) => {
                matches!(&sight.used, Used::Flights(all, _) if flights.len() < all.len())
            }
            _ => used.allows(cost, sight.now + time, cost.cost),
        }
    };
    // To the microsecond, or one more where its time is slower.
    let before = retry.saturating_sub(1 + u64::from(sight.ahead > 0));
    let true_of_it = retry > 0 && later((sight, cost), retry) && !later((sight, cost), before);
    if !true_of_it || refusing().any(|(sight, cost)| never(cost) || !later((sight, cost), retry)) {
        return Err(Breach::new("M2", tell("the time told is not the first at which it is allowed")));
    }
    Ok(())
}

fn key(cost: &Cost) -> (Kind, String) {
    (cost.kind, cost.limit.clone())
}
