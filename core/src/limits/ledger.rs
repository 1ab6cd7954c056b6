//! The machine itself.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::record::{Draft, Judged, Record, milliseconds};
use super::reservation::{Part, Reservation, State};
use super::{
    Act, Amount, Answer, Charge, Envelope, LANE_GRACE, Performed, Reply, Request, Settlement, Verdict,
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
    /// Performs an envelope at this time of the store's wall clock.
    pub fn apply(&mut self, wall: Micros, envelope: &Envelope) -> Answer {
        self.sweep(wall);
        if let Some(answer) = envelope.lane.and_then(|lane| self.recall(lane, wall)) {
            return answer;
        }
        if envelope.not_after.is_some_and(|last| wall > last) {
            return Answer::Stale { now: wall };
        }
        let replies = envelope.requests.iter().map(|request| self.perform(wall, request)).collect();
        let performed = Performed { now: wall, replies };
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

    /// Performs one request that came without an envelope.
    pub fn apply_one(&mut self, wall: Micros, request: &Request) -> Reply {
        self.sweep(wall);
        self.perform(wall, request)
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

    fn perform(&mut self, wall: Micros, request: &Request) -> Reply {
        let charges = &request.charges;
        match request.act {
            Act::Take => Reply::Judged(self.take(wall, charges, true, None)),
            Act::Peek => Reply::Judged(self.take(wall, charges, false, None)),
            Act::Reserve { id, ttl } => Reply::Judged(self.take(wall, charges, true, Some((id, ttl)))),
            Act::Commit { id } => Reply::Settled(self.settle(wall, charges, id, false)),
            Act::GiveBack { id } => Reply::Settled(self.settle(wall, charges, id, true)),
            Act::Refund => Reply::Judged(self.refund(wall, charges)),
            Act::Reset => {
                charges.iter().for_each(|charge| self.forget(&key(charge)));
                let nothing = charges.iter().map(|charge| Charge { cost: Amount::ZERO, ..charge.clone() });
                Reply::Judged(self.take(wall, &nothing.collect::<Vec<_>>(), false, None))
            }
        }
    }

    fn take(
        &mut self,
        wall: Micros,
        charges: &[Charge],
        charged: bool,
        reservation: Option<(u128, Micros)>,
    ) -> Verdict {
        let mut drafts: Vec<Draft> = charges.iter().map(|charge| self.draft(wall, charge)).collect();
        let allowed = || drafts.iter().zip(charges).all(|(draft, charge)| draft.allows(charge.cost));
        if !charged || !allowed() {
            let said = verdict(drafts.iter().zip(charges).map(|(draft, charge)| draft.judge(charge.cost)));
            if charged {
                self.turn(wall, drafts, charges);
            }
            return said;
        }
        let ttl = reservation.map_or(0, |(_, ttl)| ttl);
        for (draft, charge) in drafts.iter_mut().zip(charges) {
            draft.charge(charge.cost, ttl);
        }
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

    fn refund(&mut self, wall: Micros, charges: &[Charge]) -> Verdict {
        let mut judged = Vec::new();
        for charge in charges {
            let mut draft = self.draft(wall, charge);
            draft.give_back(charge.cost, None);
            judged.push(draft.judge(Amount::ZERO));
            self.write(wall, key(charge), draft);
        }
        verdict(judged.into_iter())
    }

    fn settle(&mut self, wall: Micros, charges: &[Charge], id: u128, given_back: bool) -> Settlement {
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
                let mut draft = self.draft(wall, charge);
                if draft.is_of(part.epoch) {
                    draft.give_back(part.cost, Some(part.mark));
                }
                self.write(wall, key(charge), draft);
            }
        }
        Settlement::Done
    }

    fn draft(&mut self, wall: Micros, charge: &Charge) -> Draft {
        let rule = charge.rule.effective();
        let entry = self.records.get_mut(&key(charge)).filter(|entry| !entry.record.is_gone(wall));
        let record = entry.map(|entry| {
            entry.record.keep_time(wall);
            &entry.record
        });
        Draft::new(record, rule, wall)
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
