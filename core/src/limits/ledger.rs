//! The machine itself.

use std::collections::BTreeSet;

use rustc_hash::FxHashMap;

use super::record::{Draft, Judged, milliseconds};
use super::records::{Place, Records};
use super::reservation::{Mark, Part, Reservation, State};
use super::standing::{Birth, Standing};
use super::term::Key;
use super::{
    Act, Amount, Answer, Charge, Charged, Envelope, LANE_GRACE, Moment, Performed, Reply, Request, Rule,
    Settlement, Term, Verdict, Waited, line,
};
use crate::Micros;
use crate::id::Name;
use crate::slots::Lane;

/// For how long is remembered that a reservation was committed, also where less of its time was left: its client tries for less, and
/// so does its lane.
const ENDED: Micros = 2 * LANE_GRACE;
/// The bits by which clients are told apart where they wait.
const CLIENT: u64 = (1 << 36) - 1;
/// How many records that are as if never written one envelope forgets.
const SWEEP: usize = 1_000;

/// Limits that can be charged as one.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    records: Records,
    reservations: FxHashMap<u128, Reservation>,
    lanes: FxHashMap<(u128, u16), Kept>,
    /// After which millisecond something may be gone: never later than it is.
    due: BTreeSet<(u64, Owner)>,
    /// The millisecond in which all was forgotten that was due.
    swept: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    Record(Place),
    Reservation(u128),
    Lane(u128, u16),
}

/// What an envelope brings along: when and where it is performed, and what its sender has seen.
struct Sight<'a> {
    wall: Micros,
    birth: Birth,
    /// Who sent it, where others do too: 36 bits of its id.
    client: Option<u64>,
    /// The limits of money that it charges.
    seen: Vec<(Key, View<'a>)>,
}

enum View<'a> {
    /// The limit has not been looked at.
    Fresh(Option<&'a Standing>),
    /// It has been; `elsewhere` if something may have been forgotten since it was seen.
    Taken { elsewhere: bool },
}

/// Whether what is asked about is charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Charging {
    Not,
    IfAllowed,
    /// Another ledger has allowed it.
    Anyway,
}

/// What is reserved.
#[derive(Clone, Copy, Debug)]
struct Booking {
    id: u128,
    ttl: Micros,
    /// Who has waited for it, a line of a client, and how.
    waited: Option<(u64, Waited)>,
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
        let mut sight = Sight::new(moment, envelope);
        let replies = envelope.requests.iter().map(|request| self.perform(&mut sight, request)).collect();
        let standings = sight.seen.iter().map(|(limit, view)| self.told(wall, limit, view)).collect();
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
        self.perform(&mut Sight::at(wall), request)
    }

    /// Counts what another ledger has done, also what this one would have refused.
    pub fn count(&mut self, wall: Micros, request: &Request) {
        self.sweep(wall);
        let sight = &mut Sight::at(wall);
        self.with_charges(request, |ledger, charges| match request.act {
            Act::Take => drop(ledger.take(sight, charges, Charging::Anyway, None)),
            Act::Reserve { id, ttl, .. } => {
                let booking = Booking { id, ttl, waited: None };
                let _ = ledger.take(sight, charges, Charging::Anyway, Some(booking));
            }
            _ => drop(ledger.replied(sight, request.act, charges)),
        });
    }

    /// These limits are as if it had never counted anything of them.
    pub fn forget_all<'a>(&mut self, limits: impl Iterator<Item = (Rule, &'a Name)>) {
        limits.for_each(|(rule, limit)| self.forget(&Key::of(rule.letter(), limit.clone())));
    }

    /// As [`Self::apply_one`], of charges that are borrowed; nothing for what prolongs or ends a reservation, which is not judged. Its
    /// verdict is given as it is, because to pass it on within something else takes as long as to find it.
    pub fn judge(&mut self, wall: Micros, act: &Act, charges: &[Charged<'_>]) -> Option<Verdict> {
        self.sweep(wall);
        self.judged(&mut Sight::at(wall), act, charges)
    }

    /// How many limits have a record, and how many reservations have not been forgotten.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.records.len(), self.reservations.len())
    }

    /// Whether anything is not as if never done.
    pub(crate) fn remembers(&mut self, wall: Micros) -> bool {
        self.sweep(wall);
        self.size() != (0, 0)
    }

    /// How many cells the record of a rolling limit has.
    #[cfg(test)]
    pub(super) fn cells(&self, limit: &Name) -> usize {
        let place = self.records.find(&Key::of('w', limit.clone()));
        place.and_then(|place| self.records.get(place)).map_or(0, |entry| entry.record.cells())
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
        self.with_charges(request, |ledger, charges| ledger.replied(sight, request.act, charges))
    }

    fn with_charges<T>(&mut self, request: &Request, work: impl FnOnce(&mut Self, &[Charged<'_>]) -> T) -> T {
        let term = |charge: &Charge| Term::new(charge.limit.clone(), charge.rule);
        let terms: Vec<Term> = request.charges.iter().map(term).collect();
        let charged = terms.iter().zip(&request.charges);
        let charges: Vec<_> = charged.map(|(term, charge)| Charged { term, cost: charge.cost }).collect();
        work(self, &charges)
    }

    fn replied(&mut self, sight: &mut Sight<'_>, act: Act, charges: &[Charged<'_>]) -> Reply {
        match act {
            Act::Commit { id } | Act::Keep { id } | Act::GiveBack { id } => {
                Reply::Settled(self.settle(sight, charges, act, id))
            }
            Act::Renew { id, ttl } => Reply::Settled(self.renew(sight, charges, id, ttl)),
            _ => self.judged(sight, &act, charges).map_or(Reply::Settled(Settlement::Gone), Reply::Judged),
        }
    }

    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn judged(&mut self, sight: &mut Sight<'_>, act: &Act, charges: &[Charged<'_>]) -> Option<Verdict> {
        // In one piece with what it calls: to hand a verdict on from one to the next takes as long as to find it.
        // Not in a wasm module, which is judged by its size.
        if cfg!(not(target_family = "wasm"))
            && let (Act::Take, [charge]) = (act, charges)
            && let Some(judged) = self.take_in_place(sight.wall, charge)
        {
            return Some(judged.verdict(0));
        }
        Some(match *act {
            Act::Take => self.take(sight, charges, Charging::IfAllowed, None),
            Act::Peek => self.take(sight, charges, Charging::Not, None),
            Act::Reserve { id, ttl, waited } => {
                let limits = charges.iter().map(|charge| (charge.term.rule().letter(), charge.term.name()));
                let line = |client| client << 16 | u64::from(line(limits));
                let waited = waited.and_then(|waited| Some((sight.client.map(line)?, waited)));
                let booking = Booking { id, ttl, waited };
                self.take(sight, charges, Charging::IfAllowed, Some(booking))
            }
            Act::Refund => self.refund(sight, charges),
            Act::Reset => {
                charges.iter().for_each(|charge| self.reset(sight, charge));
                let nothing = charges.iter().map(|charge| Charged { cost: Amount::ZERO, ..*charge });
                self.take(sight, &nothing.collect::<Vec<_>>(), Charging::Not, None)
            }
            Act::Commit { .. } | Act::Keep { .. } | Act::GiveBack { .. } | Act::Renew { .. } => return None,
        })
    }

    fn take(
        &mut self,
        sight: &mut Sight<'_>,
        charges: &[Charged<'_>],
        charging: Charging,
        reservation: Option<Booking>,
    ) -> Verdict {
        let waited = reservation.and_then(|booking| booking.waited);
        match charges {
            // No list, which would have to be freed.
            [charge] if cfg!(not(target_family = "wasm")) => {
                let mut drafts = [self.draft(sight, charge).await_for(waited)];
                self.charge(sight.wall, charges, &mut drafts, charging, reservation)
            }
            charges => {
                let draft = |charge| self.draft(sight, charge).await_for(waited);
                let mut drafts: Vec<_> = charges.iter().map(draft).collect();
                self.charge(sight.wall, charges, &mut drafts, charging, reservation)
            }
        }
    }

    /// Takes of a limit that has a record, without a draft, if that suffices.
    #[cfg_attr(not(target_family = "wasm"), inline(always))]
    fn take_in_place(&mut self, wall: Micros, charge: &Charged<'_>) -> Option<Judged> {
        let place = self.records.find_again(charge.term)?;
        let entry = self.records.get_mut(place)?;
        let judged = entry.record.take(charge.term.rule(), wall, charge.cost)?;
        if !entry.is_noted() {
            self.note(place);
        }
        Some(judged)
    }

    /// All or none, as drafted.
    fn charge(
        &mut self,
        wall: Micros,
        charges: &[Charged<'_>],
        drafts: &mut [Draft<'_>],
        charging: Charging,
        reservation: Option<Booking>,
    ) -> Verdict {
        let allowed = || drafts.iter().zip(charges).all(|(draft, charge)| draft.allows(charge.cost));
        let charged = match charging {
            Charging::Not => false,
            Charging::IfAllowed => allowed(),
            Charging::Anyway => true,
        };
        if !charged {
            let judged = drafts.iter().zip(charges).map(|(draft, charge)| draft.judge(charge.cost));
            let said = verdict(judged);
            if charging == Charging::IfAllowed {
                self.turn(drafts, charges);
            }
            return said;
        }
        let ttl = reservation.map_or(0, |booking| booking.ttl);
        for (draft, charge) in drafts.iter_mut().zip(charges) {
            draft.charge(charge.cost, ttl);
        }
        if let Some(Booking { id, ttl, .. }) = reservation {
            let until = wall + ttl;
            let part = |(draft, charge): (&mut Draft<'_>, &Charged<'_>)| Part {
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
        for (draft, charge) in drafts.iter_mut().zip(charges) {
            self.write(charge.term.key(), draft);
        }
        said
    }

    /// Writes the limits that refuse a cost and that are kept otherwise by this rule from now on, or keep room for who waits:
    /// where nothing else keeps it from what it asks for, and that can be had at all. A budget hears also of what another refuses.
    fn turn(&mut self, drafts: &mut [Draft<'_>], charges: &[Charged<'_>]) {
        let waits = drafts.iter().zip(charges).all(|(draft, charge)| draft.is_awaited(charge.cost));
        for (draft, charge) in drafts.iter_mut().zip(charges) {
            let refuses = draft.is_of_calendar() || !draft.allows(charge.cost);
            if refuses && (draft.turns() || waits && draft.claim(charge.cost)) {
                self.write(charge.term.key(), draft);
            }
        }
    }

    fn refund(&mut self, sight: &mut Sight<'_>, charges: &[Charged<'_>]) -> Verdict {
        let mut judged = Vec::new();
        for charge in charges {
            let mut draft = self.draft(sight, charge);
            if !sight.is_elsewhere(charge) {
                draft.give_back(charge.cost, Mark::Nothing);
            }
            judged.push(draft.judge(Amount::ZERO));
            self.write(charge.term.key(), &mut draft);
        }
        verdict(judged.into_iter())
    }

    fn settle(&mut self, sight: &mut Sight<'_>, charges: &[Charged<'_>], act: Act, id: u128) -> Settlement {
        let parts = match self.pending(sight.wall, charges, id) {
            Ok(parts) => parts,
            Err(ended) => return ended,
        };
        let given_back = matches!(act, Act::GiveBack { .. });
        let mut state = if given_back { State::GivenBack } else { State::Committed };
        for (charge, part) in charges.iter().zip(parts) {
            let flies = charge.term.rule().letter() == 'f';
            let kept = match act {
                Act::Keep { .. } if !flies => charge.cost,
                Act::Commit { .. } if !flies => continue,
                _ => Amount::ZERO,
            };
            let (mut draft, back) = (self.draft(sight, charge), part.cost.saturating_sub(kept));
            match (draft.is_of(part.epoch), draft.forgot_since(part.mark)) {
                (true, false) => draft.give_back(back, part.mark),
                // It stays charged: who asks once more is not to hear that it was given back.
                (true, true) if !back.is_zero() => state = State::Committed,
                _ => {}
            }
            self.write(charge.term.key(), &mut draft);
        }
        self.end(sight.wall, id, state);
        if given_back && state == State::Committed { Settlement::Gone } else { Settlement::Done }
    }

    /// Prolongs a reservation, or changes nothing if something that it has in flight is counted no more.
    fn renew(&mut self, sight: &mut Sight<'_>, charges: &[Charged<'_>], id: u128, ttl: Micros) -> Settlement {
        let mut parts = match self.pending(sight.wall, charges, id) {
            Ok(parts) => parts,
            Err(ended) => return ended,
        };
        let (mut drafts, mut flies) = (Vec::new(), true);
        for (charge, part) in charges.iter().zip(&mut parts) {
            // The rest of what it charged stays as it is.
            if charge.term.rule().letter() == 'f' {
                let mut draft = self.draft(sight, charge);
                match draft.prolong(part.cost, part.mark, part.epoch, ttl) {
                    Some(mark) => part.mark = mark,
                    None => flies = false,
                }
                drafts.push((charge.term.key(), draft));
            }
        }
        if !flies {
            return Settlement::Gone;
        }
        drafts.into_iter().for_each(|(key, mut draft)| self.write(key, &mut draft));
        self.change(sight.wall, id, |reservation| {
            reservation.until = reservation.until.max(sight.wall + ttl);
            reservation.parts = parts;
        });
        Settlement::Done
    }

    /// What a reservation of as many limits charged that has not ended.
    fn pending(&self, wall: Micros, charges: &[Charged<'_>], id: u128) -> Result<Vec<Part>, Settlement> {
        let reservation = self.reservations.get(&id).filter(|reservation| reservation.until > wall);
        let reservation = reservation.ok_or(Settlement::Gone)?;
        match reservation.state {
            State::Pending if reservation.parts.len() != charges.len() => Err(Settlement::Gone),
            State::Pending => Ok(reservation.parts.clone()),
            State::Committed => Err(Settlement::Before { given_back: false }),
            State::GivenBack => Err(Settlement::Before { given_back: true }),
        }
    }

    fn end(&mut self, wall: Micros, id: u128, state: State) {
        self.change(wall, id, |reservation| {
            reservation.state = state;
            // Of what was given back its holder is to hear as long as it may believe that it is charged.
            if state != State::GivenBack {
                reservation.until = wall + ENDED;
            }
        });
    }

    /// Changes a reservation, and with it when it is forgotten.
    fn change(&mut self, wall: Micros, id: u128, change: impl FnOnce(&mut Reservation)) {
        let Some(reservation) = self.reservations.get_mut(&id) else { return };
        change(reservation);
        self.due.remove(&(reservation.gone, Owner::Reservation(id)));
        reservation.gone = gone(wall, reservation.until);
        self.due.insert((reservation.gone, Owner::Reservation(id)));
    }

    /// The limit as it is now. What was seen of one of money is taken in as an envelope looks at it first, and is kept
    /// whatever else becomes of the request: who has seen nothing is to know it too.
    fn draft<'a>(&mut self, sight: &mut Sight<'_>, charge: &Charged<'a>) -> Draft<'a> {
        let (wall, key) = (sight.wall, charge.term.key());
        let place = self.records.find(key);
        let entry = place.and_then(|place| self.records.get_mut(place));
        let record = entry.filter(|entry| !entry.record.is_gone(wall)).map(|entry| {
            entry.record.keep_time(wall);
            &entry.record
        });
        let mut draft = Draft::new(record, charge.term.rule(), wall, sight.birth);
        if let Some(seen) = sight.first_look(key) {
            let (changed, elsewhere) = draft.recall(seen);
            if let Some(view) = sight.view(key) {
                *view = View::Taken { elsewhere };
            }
            if changed {
                self.write(key, &mut draft.clone());
            }
        }
        draft
    }

    fn reset(&mut self, sight: &mut Sight<'_>, charge: &Charged<'_>) {
        if charge.term.rule().is_of_money() {
            let mut draft = self.draft(sight, charge);
            draft.reset();
            self.write(charge.term.key(), &mut draft);
        } else {
            self.forget(charge.term.key());
        }
    }

    /// How a limit stands after an envelope that has looked at it.
    fn told(&self, wall: Micros, limit: &Key, view: &View<'_>) -> Option<Standing> {
        let entry = self.records.find(limit).and_then(|place| self.records.get(place));
        let entry = entry.filter(|entry| !entry.record.is_gone(wall))?;
        entry.record.standing(wall).filter(|_| matches!(view, View::Taken { .. }))
    }

    fn write(&mut self, key: &Key, draft: &mut Draft<'_>) {
        let Some(record) = draft.write() else { return self.forget(key) };
        let place = match self.records.find(key) {
            Some(place) => {
                self.records.set(place, record);
                place
            }
            None => self.records.insert(key, record),
        };
        self.note(place);
    }

    /// Notes when the record of this place may be gone.
    fn note(&mut self, place: Place) {
        let Some(entry) = self.records.get_mut(place).filter(|entry| !entry.is_noted()) else { return };
        let gone = entry.record.gone();
        if let Some(noted) = std::mem::replace(&mut entry.noted, gone) {
            self.due.remove(&(noted, Owner::Record(place)));
        }
        self.due.extend(gone.map(|gone| (gone, Owner::Record(place))));
    }

    fn forget(&mut self, key: &Key) {
        let Some(place) = self.records.find(key) else { return };
        if let Some(noted) = self.records.remove(place).and_then(|entry| entry.noted) {
            self.due.remove(&(noted, Owner::Record(place)));
        }
    }

    /// Forgets what is as if never written.
    fn sweep(&mut self, wall: Micros) {
        let now = wall / 1_000;
        // What is noted in a millisecond is not due before the next.
        if now != self.swept {
            self.sweep_before(now);
        }
    }

    /// Apart, because most requests are not the first of their millisecond.
    #[cold]
    fn sweep_before(&mut self, now: u64) {
        for _ in 0..SWEEP {
            if self.due.first().is_none_or(|(due, _)| *due >= now) {
                self.swept = now;
                return;
            }
            let Some((_, owner)) = self.due.pop_first() else { return };
            let end = match owner {
                Owner::Record(place) => self.records.get_mut(place).and_then(|entry| {
                    entry.noted = entry.record.gone();
                    entry.noted
                }),
                Owner::Reservation(id) => self.reservations.get(&id).map(|kept| kept.gone),
                Owner::Lane(client, number) => self.lanes.get(&(client, number)).map(|kept| kept.gone),
            };
            match (end, owner) {
                (Some(end), owner) if end >= now => drop(self.due.insert((end, owner))),
                (_, Owner::Record(place)) => drop(self.records.remove(place)),
                (_, Owner::Reservation(id)) => drop(self.reservations.remove(&id)),
                (_, Owner::Lane(client, number)) => drop(self.lanes.remove(&(client, number))),
            }
        }
    }
}

impl<'a> Sight<'a> {
    fn new(moment: Moment<'_>, envelope: &'a Envelope) -> Self {
        let view =
            |((kind, limit), seen): ((char, &Name), _)| (Key::of(kind, limit.clone()), View::Fresh(seen));
        let seen = envelope.of_money_as_seen().map(view).collect();
        let client = envelope.lane.map(|lane| (lane.client >> 80) as u64 & CLIENT);
        Sight { wall: moment.wall, birth: Birth::new(moment.wall, moment.incarnation), client, seen }
    }

    /// Of who shares the memory of a server that forgets nothing.
    fn at(wall: Micros) -> Self {
        Sight { wall, birth: Birth::here(wall), client: None, seen: Vec::new() }
    }

    fn view(&mut self, limit: &Key) -> Option<&mut View<'a>> {
        self.seen.iter_mut().find(|(known, _)| known == limit).map(|(_, view)| view)
    }

    /// What was seen of a limit of money that has not been looked at until now.
    fn first_look(&mut self, limit: &Key) -> Option<Option<&'a Standing>> {
        let view = self.view(limit)?;
        match std::mem::replace(view, View::Taken { elsewhere: false }) {
            View::Fresh(seen) => Some(seen),
            taken => {
                *view = taken;
                None
            }
        }
    }

    /// Whether the sender's envelope was made before the store forgot something, and so may have been performed before that: nothing
    /// is given back twice. What is charged twice errs on the safe side.
    fn is_elsewhere(&mut self, charge: &Charged<'_>) -> bool {
        matches!(self.view(charge.term.key()), Some(View::Taken { elsewhere: true }))
    }
}

/// After which millisecond of the wall clock is forgotten what is kept from now until then.
fn gone(wall: Micros, until: Micros) -> u64 {
    wall / 1_000 + milliseconds(until.saturating_sub(wall))
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
    let (binding, judged) = binding;
    judged.verdict(binding)
}
