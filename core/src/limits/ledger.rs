//! The machine itself.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::record::{Draft, Judged, Record, milliseconds};
use super::reservation::{Part, Reservation, State};
use super::standing::{Birth, Standing};
use super::{
    Act, Amount, Answer, Charge, Envelope, LANE_GRACE, Moment, Performed, Reply, Request, Seen, Settlement,
    Verdict,
};
use crate::Micros;
use crate::id::Name;
use crate::slots::Lane;

/// How many records that are as if never written one envelope forgets.
const SWEEP: usize = 1_000;

/// Limits that can be charged as one.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    records: FxHashMap<Key, Entry>,
    reservations: FxHashMap<u128, Reservation>,
    lanes: FxHashMap<(u128, u16), Kept>,
    /// After which millisecond something may be gone: never later than it is.
    due: BTreeSet<(u64, Owner)>,
}

/// The records of limits of one name and several kinds are apart.
type Key = (char, Name);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Record(Key),
    Reservation(u128),
    Lane(u128, u16),
}

#[derive(Clone, Debug)]
struct Entry {
    record: Record,
    /// Its time in `due`.
    noted: Option<u64>,
}

/// What an envelope brings along: when and where it is performed, and what its sender has seen.
struct Sight<'a> {
    wall: Micros,
    birth: Birth,
    /// The limits of money that it charges.
    seen: FxHashMap<Key, View<'a>>,
}

enum View<'a> {
    /// The limit has not been looked at.
    Fresh(Option<&'a Standing>),
    /// It has been; `elsewhere` if what was seen of it was of another birth.
    Taken { elsewhere: bool },
}

/// The last answer of a lane.
#[derive(Clone, Debug)]
struct Kept {
    sequence: u64,
    answer: Performed,
    until: Micros,
    /// After which millisecond of the wall clock it is forgotten.
    gone: u64,
}

impl Ledger {
    /// Performs an envelope at this moment.
    pub fn apply(&mut self, moment: Moment<'_>, envelope: &Envelope) -> Answer {
        let wall = moment.wall;
        self.sweep(wall);
        if let Some(answer) = envelope.lane.and_then(|lane| self.recall(lane, wall)) {
            return answer;
        }
        if envelope.not_after.is_some_and(|last| wall > last) {
            return Answer::Stale { now: wall };
        }
        let of_money = envelope.of_money();
        let mut sight = Sight::new(moment, envelope, &of_money);
        let replies = envelope.requests.iter().map(|request| self.perform(&mut sight, request)).collect();
        let told = |limit: &(char, &Name)| self.told(&sight, *limit);
        let standings = of_money.iter().map(told).collect();
        let performed = Performed { now: wall, replies, standings };
        if let Some(Lane { client, number, sequence }) = envelope.lane {
            let until = envelope.not_after.unwrap_or(wall) + LANE_GRACE;
            let gone = gone(wall, until);
            let kept = Kept { sequence, answer: performed.clone(), until, gone };
            if self.lanes.insert((client, number), kept).is_none() {
                self.due.insert((gone, Owner::Lane(client, number)));
            }
        }
        Answer::Performed(performed)
    }

    /// Performs one request that came without an envelope, on a server that forgets nothing.
    pub fn apply_one(&mut self, wall: Micros, request: &Request) -> Reply {
        self.sweep(wall);
        let mut sight = Sight { wall, birth: Birth::new(wall, ""), seen: FxHashMap::default() };
        self.perform(&mut sight, request)
    }

    /// How many limits have a record, and how many reservations have not been forgotten.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.records.len(), self.reservations.len())
    }

    fn recall(&self, lane: Lane, wall: Micros) -> Option<Answer> {
        let kept = self.lanes.get(&(lane.client, lane.number)).filter(|kept| kept.until > wall)?;
        match lane.sequence.cmp(&kept.sequence) {
            std::cmp::Ordering::Greater => None,
            std::cmp::Ordering::Equal => Some(Answer::Performed(kept.answer.clone())),
            std::cmp::Ordering::Less => Some(Answer::Stale { now: wall }),
        }
    }

    fn perform(&mut self, sight: &mut Sight<'_>, request: &Request) -> Reply {
        let charges = &request.charges;
        match request.act {
            Act::Take => Reply::Judged(self.take(sight, charges, true, None)),
            Act::Peek => Reply::Judged(self.take(sight, charges, false, None)),
            Act::Reserve { id, ttl } => Reply::Judged(self.take(sight, charges, true, Some((id, ttl)))),
            Act::Commit { id } => Reply::Settled(self.settle(sight, charges, id, false)),
            Act::GiveBack { id } => Reply::Settled(self.settle(sight, charges, id, true)),
            Act::Refund => Reply::Judged(self.refund(sight, charges)),
            Act::Reset => {
                charges.iter().for_each(|charge| self.reset(sight, charge));
                let nothing = charges.iter().map(|charge| Charge { cost: Amount::ZERO, ..charge.clone() });
                Reply::Judged(self.take(sight, &nothing.collect::<Vec<_>>(), false, None))
            }
        }
    }

    fn take(
        &mut self,
        sight: &mut Sight<'_>,
        charges: &[Charge],
        charged: bool,
        reservation: Option<(u128, Micros)>,
    ) -> Verdict {
        let mut drafts: Vec<Draft> = charges.iter().map(|charge| self.draft(sight, charge)).collect();
        let allowed = || drafts.iter().zip(charges).all(|(draft, charge)| draft.allows(charge.cost));
        if !charged || !allowed() {
            let said = verdict(drafts.iter().zip(charges).map(|(draft, charge)| draft.judge(charge.cost)));
            if charged {
                self.turn(sight.wall, drafts, charges);
            }
            return said;
        }
        let ttl = reservation.map_or(0, |(_, ttl)| ttl);
        for (draft, charge) in drafts.iter_mut().zip(charges) {
            draft.charge(charge.cost, ttl);
        }
        let wall = sight.wall;
        if let Some((id, ttl)) = reservation {
            let until = wall + ttl;
            let part = |(draft, charge): (&mut Draft, &Charge)| Part {
                mark: draft.mark(ttl),
                cost: charge.cost,
                epoch: draft.enter(id),
            };
            let parts = drafts.iter_mut().zip(charges).map(part).collect();
            let gone = gone(wall, until);
            self.reservations.insert(id, Reservation { state: State::Pending, until, gone, parts });
            self.due.insert((gone, Owner::Reservation(id)));
        }
        let said = verdict(drafts.iter().map(|draft| draft.judge(Amount::ZERO)));
        for (draft, charge) in drafts.into_iter().zip(charges) {
            self.write(wall, key(charge), draft);
        }
        said
    }

    /// Writes the limits that refuse a cost and that another rule refills from now on.
    fn turn(&mut self, wall: Micros, drafts: Vec<Draft>, charges: &[Charge]) {
        for (draft, charge) in drafts.into_iter().zip(charges) {
            if draft.turns() && !draft.allows(charge.cost) {
                self.write(wall, key(charge), draft);
            }
        }
    }

    fn refund(&mut self, sight: &mut Sight<'_>, charges: &[Charge]) -> Verdict {
        let mut judged = Vec::new();
        for charge in charges {
            let mut draft = self.draft(sight, charge);
            if !sight.is_elsewhere(charge) {
                draft.give_back(charge.cost, None);
            }
            judged.push(draft.judge(Amount::ZERO));
            self.write(sight.wall, key(charge), draft);
        }
        verdict(judged.into_iter())
    }

    fn settle(
        &mut self,
        sight: &mut Sight<'_>,
        charges: &[Charge],
        id: u128,
        given_back: bool,
    ) -> Settlement {
        let wall = sight.wall;
        let Some(reservation) = self.reservations.get_mut(&id).filter(|reservation| reservation.until > wall)
        else {
            return Settlement::Gone;
        };
        match reservation.state {
            State::Pending if reservation.parts.len() != charges.len() => return Settlement::Gone,
            State::Pending => {}
            State::Committed => return Settlement::Before { given_back: false },
            State::GivenBack => return Settlement::Before { given_back: true },
        }
        reservation.state = if given_back { State::GivenBack } else { State::Committed };
        reservation.gone = gone(wall, reservation.until);
        let parts = reservation.parts.clone();
        for (charge, part) in charges.iter().zip(parts) {
            if given_back || charge.rule.letter() == 'f' {
                let mut draft = self.draft(sight, charge);
                if draft.is_of(part.epoch) && !sight.is_elsewhere(charge) {
                    draft.give_back(part.cost, Some(part.mark));
                }
                self.write(wall, key(charge), draft);
            }
        }
        Settlement::Done
    }

    /// The limit as it is now. What was seen of one of money is taken in as an envelope looks at it first, and is kept
    /// whatever else becomes of the request: who has seen nothing is to know it too.
    fn draft(&mut self, sight: &mut Sight<'_>, charge: &Charge) -> Draft {
        let (wall, rule, key) = (sight.wall, charge.rule.effective(), key(charge));
        let entry = self.records.get_mut(&key).filter(|entry| !entry.record.is_gone(wall));
        let record = entry.map(|entry| {
            entry.record.keep_time(wall);
            &entry.record
        });
        let mut draft = Draft::new(record, rule, wall, sight.birth);
        if let Some(seen) = sight.first_look(&key) {
            let (changed, elsewhere) = draft.recall(seen);
            if elsewhere {
                sight.seen.insert(key.clone(), View::Taken { elsewhere });
            }
            if changed {
                self.write(wall, key, draft.clone());
            }
        }
        draft
    }

    fn reset(&mut self, sight: &mut Sight<'_>, charge: &Charge) {
        if charge.rule.is_of_money() {
            let mut draft = self.draft(sight, charge);
            draft.reset();
            self.write(sight.wall, key(charge), draft);
        } else {
            self.forget(&key(charge));
        }
    }

    /// How a limit stands after an envelope that has looked at it.
    fn told(&self, sight: &Sight<'_>, (kind, limit): (char, &Name)) -> Option<Standing> {
        let key = (kind, limit.clone());
        let entry = self.records.get(&key).filter(|entry| !entry.record.is_gone(sight.wall))?;
        let looked = matches!(sight.seen.get(&key), Some(View::Taken { .. }));
        entry.record.standing(sight.wall).filter(|_| looked).cloned()
    }

    fn write(&mut self, wall: Micros, key: Key, draft: Draft) {
        let Some(record) = draft.write(wall) else { return self.forget(&key) };
        let gone = record.gone();
        let before = self.records.get_mut(&key);
        let noted = before.as_ref().and_then(|entry| entry.noted);
        // A note that comes too soon is mended then: a limit that is in use is not noted anew each time.
        let stays = match (noted, gone) {
            (Some(noted), Some(gone)) => noted <= gone,
            (None, None) => true,
            _ => false,
        };
        match before {
            Some(entry) if stays => entry.record = record,
            _ => {
                let owner = Owner::Record(key.clone());
                if let Some(noted) = noted {
                    self.due.remove(&(noted, owner.clone()));
                }
                self.due.extend(gone.map(|gone| (gone, owner)));
                self.records.insert(key, Entry { record, noted: gone });
            }
        }
    }

    fn forget(&mut self, key: &Key) {
        if let Some(Entry { noted: Some(noted), .. }) = self.records.remove(key) {
            self.due.remove(&(noted, Owner::Record(key.clone())));
        }
    }

    /// Forgets what is as if never written.
    fn sweep(&mut self, wall: Micros) {
        let now = wall / 1_000;
        for _ in 0..SWEEP {
            if self.due.first().is_none_or(|(due, _)| *due >= now) {
                return;
            }
            let Some((_, owner)) = self.due.pop_first() else { return };
            let end = match &owner {
                Owner::Record(key) => self.records.get_mut(key).and_then(|entry| {
                    entry.noted = entry.record.gone();
                    entry.noted
                }),
                Owner::Reservation(id) => self.reservations.get(id).map(|kept| kept.gone),
                Owner::Lane(client, number) => self.lanes.get(&(*client, *number)).map(|kept| kept.gone),
            };
            match (end, owner) {
                (Some(end), owner) if end >= now => drop(self.due.insert((end, owner))),
                (_, Owner::Record(key)) => drop(self.records.remove(&key)),
                (_, Owner::Reservation(id)) => drop(self.reservations.remove(&id)),
                (_, Owner::Lane(client, number)) => drop(self.lanes.remove(&(client, number))),
            }
        }
    }
}

impl<'a> Sight<'a> {
    fn new(moment: Moment<'_>, envelope: &'a Envelope, of_money: &[(char, &Name)]) -> Self {
        let key = |(kind, limit): (char, &Name)| (kind, limit.clone());
        let mut seen: FxHashMap<Key, View<'a>> =
            of_money.iter().map(|limit| (key(*limit), View::Fresh(None))).collect();
        for Seen { kind, limit, standing } in &envelope.seen {
            if let Some(view) = seen.get_mut(&key((*kind, limit))) {
                *view = View::Fresh(Some(standing));
            }
        }
        Sight { wall: moment.wall, birth: Birth::new(moment.wall, moment.incarnation), seen }
    }

    /// What was seen of a limit of money that has not been looked at until now.
    fn first_look(&mut self, limit: &Key) -> Option<Option<&'a Standing>> {
        if self.seen.is_empty() {
            return None;
        }
        let view = self.seen.get_mut(limit)?;
        match std::mem::replace(view, View::Taken { elsewhere: false }) {
            View::Fresh(seen) => Some(seen),
            taken => {
                *view = taken;
                None
            }
        }
    }

    /// Whether it is of another birth than the sender has seen. Its envelope was made before the store forgot something, and may
    /// have been performed before that: nothing is given back twice. What is charged twice errs on the safe side.
    fn is_elsewhere(&self, charge: &Charge) -> bool {
        !self.seen.is_empty() && matches!(self.seen.get(&key(charge)), Some(View::Taken { elsewhere: true }))
    }
}

/// After which millisecond of the wall clock is forgotten what is kept from now until then.
fn gone(wall: Micros, until: Micros) -> u64 {
    wall / 1_000 + milliseconds(until.saturating_sub(wall))
}

fn key(charge: &Charge) -> Key {
    (charge.rule.effective().letter(), charge.limit.clone())
}

/// What the limit says that binds: the first of those that refuse longest, or of which least remains.
fn verdict(judged: impl Iterator<Item = Judged>) -> Verdict {
    let worse = |this: &Judged, than: &Judged| match (this.allowed, than.allowed) {
        (true, true) => this.remaining < than.remaining,
        (false, false) => match (this.retry, than.retry) {
            (_, None) => false,
            (None, _) => true,
            (Some(this), Some(than)) => this > than,
        },
        (allowed, _) => !allowed,
    };
    let mut binding = (0, Judged { allowed: true, remaining: Amount::MAX, retry: Some(0), reset: Some(0) });
    for (at, judged) in judged.enumerate() {
        if at == 0 || worse(&judged, &binding.1) {
            binding = (at, judged);
        }
    }
    let (binding, Judged { allowed, remaining, retry, reset }) = binding;
    Verdict { allowed, binding, remaining, retry_after: retry, reset_after: reset }
}
