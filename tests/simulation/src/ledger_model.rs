//! What limits must say, from their definitions: whole numbers and fractions, every reservation remembered. It shares
//! no code with the library.

mod sight;
mod used;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::births::{Births, REMEMBERED};
use crate::charges::{Action, Charging, Cost, Deed, Kind, Standing, Waits, Word};
use crate::checker::Breach;
use sight::{Sight, Waiter, judged};
use used::Used;

/// How long an answer is kept for its envelope's repetition, past the envelope's last moment.
pub const LANE_GRACE: u64 = 60_000_000;
/// How long is remembered that a reservation was committed.
const ENDED: u64 = 120_000_000;
/// For how much longer at most for who is far away.
const FAR: u64 = 1_500_000;
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

#[derive(Clone, Debug)]
struct Reservation {
    until: u64,
    /// The last millisecond of the wall clock in which it is there.
    gone: u64,
    /// Whether it was given back, once it has ended.
    ended: Option<bool>,
    parts: Vec<Part>,
    /// Limits of which a birth has begun since: of them it gives nothing back.
    before: BTreeSet<(Kind, String)>,
}

/// What a reservation took of a limit: when that was, or until when, or how much had been refilled by then; and how much.
/// Nothing once that was forgotten.
type Part = ((Kind, String), Option<(u128, u128)>);

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
            Action::Keep { id } => self.settle(wall, id, |cost| Some(cost.cost), false, deed),
            Action::Settle { id, back } => self.settle(wall, id, |_| back.then_some(0), *back, deed),
            Action::Renew { id, ttl } => self.renew(wall, id, *ttl, deed),
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
            let before = BTreeSet::new();
            let reservation = Reservation { until: wall + ttl, gone, ended: None, parts, before };
            if self.reservations.insert(id.clone(), reservation).is_some() {
                return Err(Breach::new("M3", format!("{id} was reserved twice")));
            }
        }
        Ok(())
    }

    /// What a reservation took that has not ended, or what is to be said of it.
    fn pending(&self, wall: u64, id: &str) -> Result<Vec<Part>, Word> {
        match self.reservations.get(id).filter(|reservation| reservation.until > wall) {
            None => Err(Word::Gone),
            Some(Reservation { ended: Some(back), .. }) => Err(Word::Before { back: *back }),
            Some(reservation) => Ok(reservation.parts.clone()),
        }
    }

    /// All that is in flight is prolonged, or nothing.
    fn renew(&mut self, wall: u64, id: &str, ttl: u64, deed: &Deed) -> Result<(), Breach> {
        let mut parts = match self.pending(wall, id) {
            Err(due) => return told(id, deed, &due),
            Ok(parts) => parts,
        };
        let (mut moved, mut flies) = (Vec::new(), true);
        for (cost, (_, part)) in deed.costs.iter().zip(&mut parts) {
            if cost.kind != Kind::InFlight {
                continue;
            }
            let mut sight = self.sight(wall, cost);
            let until = u128::from(sight.now + ttl);
            flies &= match part {
                // Nothing needs nothing.
                Some((_, 0)) => true,
                Some((mark, amount)) => {
                    let longer = until.max(*mark);
                    let flew = sight.prolong(*amount, *mark, longer);
                    *mark = longer;
                    flew
                }
                None => cost.cost == 0,
            };
            moved.push((cost, sight));
        }
        if !flies {
            return told(id, deed, &Word::Gone);
        }
        moved.into_iter().for_each(|(cost, sight)| self.write(wall, std::slice::from_ref(cost), vec![sight]));
        if let Some(reservation) = self.reservations.get_mut(id) {
            reservation.parts = parts;
            reservation.until = reservation.until.max(wall + ttl);
            reservation.gone = last_millisecond(wall, reservation.until - wall);
        }
        told(id, deed, &Word::Settled)
    }

    /// What is given back, if anything is, is all but what stays charged.
    fn settle(
        &mut self,
        wall: u64,
        id: &str,
        stays: impl Fn(&Cost) -> Option<u128>,
        back: bool,
        deed: &Deed,
    ) -> Result<(), Breach> {
        let parts = match self.pending(wall, id) {
            Err(due) => return told(id, deed, &due),
            Ok(parts) => parts,
        };
        let mut all_back = back;
        for (cost, (_, part)) in deed.costs.iter().zip(parts) {
            // What is in flight lands in any case.
            let stays = if cost.kind == Kind::InFlight { Some(0) } else { stays(cost) };
            if let Some(stays) = stays {
                let costs = std::slice::from_ref(cost);
                let mut sights = self.sights(wall, costs);
                // What ended with its period, and what was found to be nothing, is forgotten by now.
                let known = part.filter(|_| self.is_reserved(id, cost));
                let known = known.map(|(mark, amount)| (mark, amount.saturating_sub(stays)));
                let reservation = self.reservations.get(id);
                let before = reservation.is_some_and(|reservation| reservation.before.contains(&key(cost)));
                all_back &= !before || known.is_none_or(|(_, amount)| amount == 0);
                let known = known.filter(|_| !before);
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
                reservation.until = wall + ENDED;
            }
            reservation.gone = last_millisecond(wall, reservation.until - wall);
        }
        told(id, deed, &if back && !all_back { Word::Gone } else { Word::Settled })
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
            let brought = seen.is_some();
            let seen = seen.filter(|seen| seen.ends == 0 || seen.ends > sight.now && !births.follows(seen));
            let birth = births.present().to_owned();
            let changed = births.look(seen.as_ref(), moved);
            if brought && seen.is_none() || births.forgot_since(seen.as_ref()) {
                self.elsewhere.insert(limit.clone());
            }
            if births.present() != birth {
                self.reservations.values_mut().for_each(|reservation| {
                    reservation.before.insert(limit.clone());
                });
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
                Used::Money(births) => Some(births.remembered(wall).max(births.following() - now)),
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

/// Whether it was said of a reservation what was to be said.
fn told(id: &str, deed: &Deed, due: &Word) -> Result<(), Breach> {
    let text = format!("{:?} of {id} was answered with {:?}, not {due:?}", deed.act, deed.word);
    if *due == deed.word { Ok(()) } else { Err(Breach::new("M3", text)) }
}

fn key(cost: &Cost) -> (Kind, String) {
    (cost.kind, cost.limit.clone())
}
