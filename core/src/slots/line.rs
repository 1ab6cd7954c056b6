//! Who waits for a pool's slots, and in what order.

use std::sync::Arc;

use super::slot::{Mode, Slot};
use super::{Choice, Claim, MAX_TICKETS, SWEEP, Strategy, TICKET_LIFE};
use crate::Micros;
use crate::id::SlotId;
use crate::row::{Row, take_out};

/// The rank of priority 0, and of all who grow older: a lower rank goes first.
const MIDDLE: i32 = 32_767;

/// The tickets of a pool: by priority, then by arrival. One line for those who take any slot, one for each name. Who
/// wants some of several slots stands in the lines of all of them, and takes a turn in that of any slot all the same.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// Sorted by holder, as lines are by turn.
    tickets: Row<(u128, Ticket)>,
    /// Those that stand in a line, line after line; the line of any slot has no name.
    order: Row<(Option<SlotId>, Turn, u128)>,
    /// None of them lapses before.
    next_lapse: Micros,
    /// Names that came free or whose line moved up, in the order in which they did.
    pub touched: Vec<SlotId>,
    /// Of these, those that are ready for somebody who wants some of several, but others stand before it in the line of any slot.
    pub passed: Vec<SlotId>,
    /// Whether somebody left that line who may have kept those behind it from what is ready.
    moved: bool,
}

/// Rank and arrival: the lower goes first, and of equal ones the lower holder.
pub(super) type Turn = (u16, Micros);

/// A place in line, or what came of it.
#[derive(Clone, Debug)]
pub(super) struct Ticket {
    /// The names it waits for; none if any slot will do.
    pub names: Arc<[SlotId]>,
    /// How many of them, or of any slots; 0 for all of them.
    pub count: u32,
    /// How to choose among any.
    pub strategy: Strategy,
    turn: Turn,
    pub priority: i16,
    /// As [`Claim::steal`].
    pub steal: Option<Micros>,
    /// It lapses then.
    until: Micros,
    /// The slots that are offered to it; it stands in no line then.
    pub offered: Vec<u32>,
}

impl Line {
    pub fn is_empty(&self) -> bool {
        self.tickets.is_empty()
    }

    /// Drops tickets whose time has passed.
    pub fn sweep(&mut self, now: Micros) {
        if self.next_lapse > now || self.tickets.is_empty() {
            return;
        }
        for _ in 0..SWEEP {
            let standing = self.tickets.iter().filter(|(_, ticket)| ticket.offered.is_empty());
            let first = standing.map(|(holder, ticket)| (ticket.until, *holder)).min();
            match first {
                Some((until, holder)) if until <= now => drop(self.leave(holder)),
                _ => {
                    self.next_lapse = first.map_or(Micros::MAX, |(until, _)| until);
                    return;
                }
            }
        }
    }

    /// Drops all tickets: who still waits asks again.
    pub fn clear(&mut self) {
        *self = Line::default();
    }

    /// Whether somebody waits for names: the line of any slot stands before theirs.
    pub fn is_named(&self) -> bool {
        self.order.iter().next_back().is_some_and(|(line, ..)| line.is_some())
    }

    /// A name came free: of interest where somebody waits for names.
    pub fn freed(&mut self, name: &SlotId) {
        if self.is_named() {
            self.touched.push(name.clone());
        }
    }

    /// The first ticket of a line. One whose time has passed is dropped.
    pub fn head(&mut self, name: Option<&SlotId>, now: Micros) -> Option<(u128, &Ticket)> {
        loop {
            let at = self.order.partition_point(|(line, ..)| line.as_ref() < name);
            let &(_, _, holder) = self.order.get(at).filter(|(line, ..)| line.as_ref() == name)?;
            if self.find(holder).is_some_and(|ticket| ticket.until > now) {
                return self.find(holder).map(|ticket| (holder, ticket));
            }
            self.leave(holder);
        }
    }

    /// A ticket that stands in line.
    pub fn standing(&self, holder: u128, now: Micros) -> Option<&Ticket> {
        self.find(holder).filter(|ticket| ticket.offered.is_empty() && ticket.until > now)
    }

    /// Whether somebody stands before this claim in the line.
    pub fn precedes(&mut self, name: Option<&SlotId>, now: Micros, claim: &Claim) -> bool {
        if self.is_empty() {
            return false;
        }
        let own = match self.find(claim.holder) {
            Some(ticket) if ticket.until > now => ticket.turn,
            _ => turn(now, claim),
        };
        self.is_behind(name, now, (own, claim.holder))
    }

    /// Whether somebody stands before this turn in the line.
    pub fn is_behind(&mut self, name: Option<&SlotId>, now: Micros, turn: (Turn, u128)) -> bool {
        self.head(name, now).is_some_and(|(holder, ticket)| ticket.turn_of(holder) < turn)
    }

    /// Nothing that was touched is of interest any more.
    pub fn rest(&mut self) {
        self.touched.clear();
        self.passed.clear();
        self.moved = false;
    }

    /// Touches those names of all who wait for some of several that `may_serve` somebody now, if somebody left whom they may have stood
    /// behind: many may wait for the same, of which few are there.
    pub fn move_up(&mut self, may_serve: impl Fn(&SlotId) -> bool) {
        if std::mem::take(&mut self.moved) {
            for (_, ticket) in &self.tickets {
                if ticket.chooses() && ticket.offered.is_empty() {
                    let names = ticket.names.iter().filter(|name| may_serve(name));
                    names.for_each(|name| self.touched.push(name.clone()));
                }
            }
        }
    }

    /// Gives a refused claim a place in its line, or longer life to the ticket that it has.
    pub fn enter(&mut self, now: Micros, claim: &Claim) {
        // Without names it would be taken for one that takes any.
        if matches!(&claim.choice, Choice::Among { slots, .. } if slots.is_empty()) {
            return;
        }
        let until = now + TICKET_LIFE;
        if let Ok(at) = self.place_of(claim.holder)
            && let Some((_, ticket)) = self.tickets.get_mut(at).filter(|(_, ticket)| ticket.until > now)
        {
            ticket.until = until;
            return;
        }
        self.leave(claim.holder);
        if self.tickets.len() >= MAX_TICKETS {
            return;
        }
        let (names, count, strategy) = match &claim.choice {
            Choice::Any { strategy, least, .. } => (Vec::new(), *least, *strategy),
            Choice::Among { slots, count } => (distinct(slots), *count, Strategy::default()),
            Choice::Named { slots } => (distinct(slots), 0, Strategy::default()),
            // It stands beside the line.
            #[cfg(feature = "tokens")]
            Choice::Free { .. } => return,
        };
        let (names, turn): (Arc<[SlotId]>, _) = (names.into(), turn(now, claim));
        let Claim { priority, steal, .. } = *claim;
        let ticket = Ticket { names, count, strategy, turn, priority, steal, until, offered: Vec::new() };
        for name in ticket.lines() {
            let entry = (name, turn, claim.holder);
            if let Err(at) = self.order.binary_search(&entry) {
                self.order.insert(at, entry);
            }
        }
        self.next_lapse = self.next_lapse.min(until);
        if ticket.chooses() {
            // Those that are ready are for others, but perhaps not all of them.
            self.touched.extend(ticket.names.iter().cloned());
        }
        self.put(claim.holder, ticket);
    }

    /// Takes a ticket out of its lines and drops it.
    pub fn leave(&mut self, holder: u128) -> Option<Ticket> {
        let ticket = self.take(holder)?;
        if ticket.offered.is_empty() {
            self.stand_aside(holder, &ticket);
            self.touched.extend(ticket.names.iter().cloned());
        }
        Some(ticket)
    }

    /// Notes what is offered to a ticket, which stands in line no more.
    pub fn offer(&mut self, holder: u128, places: Vec<u32>) {
        let Some(mut ticket) = self.take(holder) else { return };
        self.stand_aside(holder, &ticket);
        if ticket.chooses() {
            self.touched.extend(ticket.names.iter().cloned());
        }
        ticket.offered = places;
        self.put(holder, ticket);
    }

    /// What is offered to a ticket.
    #[cfg(test)]
    pub fn offered(&self, holder: u128) -> &[u32] {
        self.find(holder).map_or(&[], |ticket| &ticket.offered)
    }

    /// When a ticket lapses, and whether it has an offer.
    #[cfg(test)]
    pub fn life_of(&self, holder: u128) -> Option<(Micros, bool)> {
        self.find(holder).map(|ticket| (ticket.until, !ticket.offered.is_empty()))
    }

    /// What is offered to a ticket, which is dropped; `None` if it has no offer.
    pub fn take_offer(&mut self, holder: u128) -> Option<Vec<u32>> {
        self.find(holder).filter(|ticket| !ticket.offered.is_empty())?;
        self.take(holder).map(|ticket| ticket.offered)
    }

    /// The end of an offer that this slot is a part of: the ticket is dropped, and its slots are told.
    pub fn end_offer(&mut self, holder: u128, slot: u32) -> Option<Vec<u32>> {
        self.find(holder).filter(|ticket| ticket.offered.contains(&slot))?;
        self.take(holder).map(|ticket| ticket.offered)
    }

    /// Nobody came for what was offered to this holder then: whoever of its process stands among the first who wait for that name, or for
    /// any, and has not asked since, is most likely gone too. Each would have it offered in turn, while others wait. Who is there all the
    /// same asks again, and stands where it stood.
    pub fn drop_silent(&mut self, holder: u128, offered: Micros, name: &SlotId) {
        let process = process_of(holder);
        if process > 0 {
            self.drop_those_of(process, offered, Some(name));
            self.drop_those_of(process, offered, None);
        }
    }

    /// The same in one line.
    fn drop_those_of(&mut self, process: u64, offered: Micros, line: Option<&SlotId>) {
        let mut stay = 0;
        for _ in 0..SWEEP {
            let first = self.order.partition_point(|(other, ..)| other.as_ref() < line);
            let next = self.order.get(first + stay).filter(|(other, ..)| other.as_ref() == line);
            let Some(&(_, _, mate)) = next else { return };
            let is_silent = process_of(mate) == process
                && self.find(mate).is_some_and(|ticket| ticket.until < offered + TICKET_LIFE);
            if is_silent {
                self.leave(mate);
            } else {
                stay += 1;
            }
        }
    }

    fn place_of(&self, holder: u128) -> Result<usize, usize> {
        self.tickets.binary_search_by_key(&holder, |(holder, _)| *holder)
    }

    fn find(&self, holder: u128) -> Option<&Ticket> {
        let at = self.place_of(holder).ok()?;
        self.tickets.get(at).map(|(_, ticket)| ticket)
    }

    fn take(&mut self, holder: u128) -> Option<Ticket> {
        let at = self.place_of(holder).ok()?;
        take_out(&mut self.tickets, at).map(|(_, ticket)| ticket)
    }

    fn put(&mut self, holder: u128, ticket: Ticket) {
        let at = self.place_of(holder).unwrap_or_else(|at| at);
        self.tickets.insert(at, (holder, ticket));
    }

    fn stand_aside(&mut self, holder: u128, ticket: &Ticket) {
        self.moved |= ticket.names.is_empty() && ticket.count > 1;
        for name in ticket.lines() {
            if let Ok(at) = self.order.binary_search(&(name, ticket.turn, holder)) {
                take_out(&mut self.order, at);
            }
        }
    }
}

impl Ticket {
    /// Whether it wants some of its names.
    pub fn chooses(&self) -> bool {
        self.count > 0 && !self.names.is_empty()
    }

    /// Whether it can have a slot that is given back: only who wants all of its names has those that leave with their lease.
    pub fn can_use(&self, slot: &Slot) -> bool {
        self.count == 0 || slot.mode == Mode::Enabled
    }

    /// Whether others may claim more once it is served: what it claimed, or was first for besides what it was granted.
    pub fn holds_off(&self) -> bool {
        self.steal.is_some() || self.names.len() > 1
    }

    /// Its turn among the tickets of this pool.
    pub fn turn_of(&self, holder: u128) -> (Turn, u128) {
        (self.turn, holder)
    }

    /// The lines it stands in.
    fn lines(&self) -> impl Iterator<Item = Option<SlotId>> {
        let any = self.names.is_empty().then_some(None);
        any.into_iter().chain(self.names.iter().cloned().map(Some))
    }
}

/// Who grows older goes before those of higher priority who came so much later: its arrival is put back by priority,
/// once and for all.
fn turn(now: Micros, claim: &Claim) -> Turn {
    let arrival = now.saturating_sub(claim.waited);
    let priority = i32::from(claim.priority);
    if claim.ageing == 0 {
        return ((MIDDLE - priority) as u16, arrival);
    }
    let ahead = claim.ageing.saturating_mul(u64::from(priority.unsigned_abs()));
    let arrival = if priority < 0 { arrival.saturating_add(ahead) } else { arrival.saturating_sub(ahead) };
    (MIDDLE as u16, arrival.min(LATEST))
}

/// Which of the processes that use a pool a claim is of; 0 for who does not say.
fn process_of(holder: u128) -> u64 {
    (holder >> 64) as u64
}

/// The latest time that a turn tells: 2^53.
const LATEST: Micros = 9_007_199_254_740_992;

/// One that is there twice counts once.
pub(super) fn distinct(names: &[SlotId]) -> Vec<SlotId> {
    let mut once: Vec<SlotId> = Vec::with_capacity(names.len());
    for name in names {
        if !once.contains(name) {
            once.push(name.clone());
        }
    }
    once
}
