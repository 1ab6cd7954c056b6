//! Who stands in line at the store, in the store's own time: a model of its own, fed with what the store was asked
//! and what it said (rules Q1 to Q4).
//!
//! All that decides the order travels with the claims, so that the line is known exactly, but for one thing: who wants
//! more slots of any kind than will ever be ready is passed over, and of those that an administrator disabled, drained
//! or removed nobody is told when they are gone. A ticket that wants more than are left without them is unsure from
//! then on: nobody has to wait behind it, and it may be called or not; while it does, it keeps nobody waiting. Nor is anybody told of which slots an offer is,
//! so that it may have ended with any change of an administrator.
//!
//! A ticket of several names bars all of their lines while it stands there, also where one of its names is held: else
//! those who want one name each would keep it waiting for ever. Who wants some of several slots stands in the lines of all
//! of them, and behind those who take any slot and came before it. If it wants more than one, what is there may be kept for it
//! until that is enough, and for a moment after it has gone.

use std::collections::{BTreeMap, BTreeSet};

use crate::checker::Breach;
use crate::history::{Bid, Fact, Performance, Wish};
use crate::readiness::Readiness;
use crate::thefts::Thief;
use crate::world::Instant;

/// A ticket lives so long after the last claim with it.
const TICKET_LIFE: u64 = 10_000_000;
/// What is offered is kept so long.
const OFFER: u64 = 1_000_000;

/// The line of a pool.
#[derive(Debug, Default)]
pub struct LineModel {
    /// Those who stand in line, by the id of their claim.
    tickets: BTreeMap<String, Ticket>,
    /// Those for whom something is kept.
    offers: BTreeMap<String, Offer>,
    /// The highest fence of the pool.
    top: u64,
    /// That of the pool that was here before, until somebody who has seen it tells the store.
    lost: u64,
    /// What those wanted who are gone, or can have it no more, and for whom something may still be kept, and until when.
    left: Vec<(u64, Wish)>,
    /// When the store last performed something.
    now: u64,
    roster: Roster,
    replica: Roster,
    readiness: Readiness,
    /// Whom the store granted any slot in this turn as they asked, and when it was their turn.
    took_any: BTreeMap<String, Turn>,
    /// Who stands in line since this turn, or fetched in it what was offered in it. That is told at its end, though slots
    /// are offered to those who come before as soon as others ask for any.
    new: Vec<String>,
    fetched: Vec<String>,
    /// Who is told at its end that something is offered.
    offered: Vec<String>,
    /// Whether an administrator changed something in this turn.
    changed: bool,
    /// Whether somebody asked for any slots in it: then those before it were served.
    asked_any: bool,
}

/// The slots that were defined, and whether they take part.
type Roster = BTreeMap<String, Part>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    In,
    Out,
    /// Out, and a definition brings it back.
    Removed,
}

#[derive(Debug)]
struct Ticket {
    wish: Wish,
    turn: Turn,
    until: u64,
    /// The last claim with it, in true time.
    asked: Instant,
    sure: bool,
    priority: i64,
    /// How long it waits for holders of lower priority, if it steals.
    steal: Option<u64>,
}

#[derive(Debug)]
struct Offer {
    wish: Wish,
    until: u64,
    sure: bool,
}

/// Rank and arrival: the lower goes first. What two that are equal do is not said.
type Turn = (i64, i64);

impl LineModel {
    /// The store forgot everything.
    pub fn wipe(&mut self) {
        self.lost = self.lost.max(self.top);
        self.clear();
        self.offers.clear();
        self.roster.clear();
        self.replica.clear();
        self.readiness.wipe();
    }

    /// The replica is up to date.
    pub fn copy(&mut self) {
        self.replica = self.roster.clone();
    }

    /// The replica took over.
    pub fn promote(&mut self) {
        self.clear();
        self.offers.clear();
        self.roster = std::mem::take(&mut self.replica);
        self.readiness.promote();
    }

    /// A store that may have lost memory, and knows that, lets all ask anew. What was kept for somebody stays so for as long.
    pub fn clear(&mut self) {
        let until = self.now + OFFER;
        self.left.extend(std::mem::take(&mut self.tickets).into_values().map(|ticket| (until, ticket.wish)));
        self.offers.values_mut().for_each(|offer| offer.sure = false);
    }

    /// Somebody who has asked since then and still stands in line.
    pub fn anybody_since(&self, since: Instant) -> Option<&str> {
        let waits = self.tickets.iter().find(|(_, ticket)| ticket.asked > since);
        waits.map(|(holder, _)| holder.as_str())
    }

    /// Whether this claim stands in line.
    pub fn waits(&self, holder: &str) -> bool {
        self.tickets.contains_key(holder)
    }

    /// Whether something is kept for this claim.
    pub fn is_kept_for(&self, holder: &str) -> bool {
        self.offers.contains_key(holder)
    }

    /// This claim as one that steals, if it stands in line and does.
    pub fn thief(&self, holder: &str) -> Option<Thief> {
        let ticket = self.tickets.get(holder)?;
        let (holder, priority, patience) = (holder.to_owned(), ticket.priority, ticket.steal?);
        Some(Thief { holder, priority, patience, exact: ticket.sure })
    }

    /// All who steal and wait, each with what it wants.
    pub fn thieves(&self) -> Vec<(Wish, Thief)> {
        let thief = |(holder, ticket): (&String, &Ticket)| Some((ticket.wish.clone(), self.thief(holder)?));
        self.tickets.iter().filter_map(thief).collect()
    }

    /// The store begins to perform.
    pub fn begin(&mut self, done: &Performance) {
        // A store that has no pool hears nothing; one that has keeps what it is shown.
        let told = done.top >= done.seen && (1..=self.lost).contains(&done.seen);
        if told || done.jumped || done.seen > self.top {
            self.lost = 0;
            self.clear();
        }
        self.top = done.top;
        self.took_any.clear();
        self.new.clear();
        self.fetched.clear();
        let offered = done.facts.iter().filter_map(|fact| match fact {
            Fact::Offered { holder } => Some(holder.clone()),
            _ => None,
        });
        self.offered = offered.collect();
        (self.changed, self.asked_any) = (false, false);
        self.left.retain(|(until, _)| *until > done.now);
        let lapsed = self.tickets.values().filter(|ticket| ticket.until <= done.now);
        self.left.extend(lapsed.map(|ticket| (done.now + OFFER, ticket.wish.clone())));
        self.now = done.now;
        self.tickets.retain(|_, ticket| ticket.until > done.now);
        let silent: Vec<String> = self
            .offers
            .iter()
            .filter(|(_, offer)| offer.until <= done.now)
            .map(|(holder, _)| process_of(holder).to_owned())
            .filter(|process| !process.is_empty())
            .collect();
        self.offers.retain(|_, offer| offer.until > done.now);
        self.doubt(&silent);
    }

    /// Nobody came for what was offered to these processes: who else of them waits, and has not asked since, may stand there no more.
    fn doubt(&mut self, silent: &[String]) {
        let until = self.now + OFFER;
        for (holder, ticket) in &mut self.tickets {
            if silent.iter().any(|process| process == process_of(holder)) {
                ticket.sure = false;
                self.left.push((until, ticket.wish.clone()));
            }
        }
    }

    /// One thing that it did.
    pub fn apply(&mut self, at: Instant, now: u64, fact: &Fact) -> Result<(), Breach> {
        self.readiness.apply(now, fact);
        match fact {
            Fact::Served(bid) => self.serve(now, bid)?,
            Fact::Granted { holder, slot, .. } => self.nobody_chose(holder, slot)?,
            Fact::Refused { bid, why } => self.refuse(at, now, bid, why)?,
            Fact::Withdrawn { holder } => {
                self.fetched.extend(self.tickets.remove(holder).map(|_| holder.clone()));
                // Of who stands there no more it is not known that its offer goes with it.
                if self.offers.get(holder).is_some_and(|offer| offer.sure) {
                    self.offers.remove(holder);
                }
            }
            Fact::Offered { holder } => self.offer(now, holder)?,
            Fact::Defined { slots, .. } => {
                for slot in slots {
                    let part = self.roster.entry(slot.clone()).or_insert(Part::In);
                    if *part == Part::Removed {
                        *part = Part::In;
                    }
                }
            }
            Fact::Changed { slot, change } => {
                let part = match change.as_str() {
                    "enable" => Some(Part::In),
                    "disable" | "drain" => Some(Part::Out),
                    "remove" => Some(Part::Removed),
                    _ => None,
                };
                self.roster.extend(part.map(|part| (slot.clone(), part)));
                let mut tickets = std::mem::take(&mut self.tickets);
                for ticket in tickets.values_mut() {
                    if !self.fits(&ticket.wish) {
                        ticket.sure = false;
                        self.left.push((self.now + OFFER, ticket.wish.clone()));
                    }
                }
                self.tickets = tickets;
                self.offers.values_mut().for_each(|offer| offer.sure = false);
                self.changed = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// The store has performed everything. `held` says of which names there are leases.
    pub fn end(&self, now: u64, held: impl Fn(&str) -> bool) -> Result<(), Breach> {
        match self.could_be_served(now, held).next() {
            Some((holder, ticket)) => {
                let text =
                    format!("{:?} can be had, and {holder}, the first in line, is not called", ticket.wish);
                Err(Breach::new("Q3", text))
            }
            None => Ok(()),
        }
    }

    /// Those who stood first in line beside what they want when it was `then`, and nobody has come since whom the store could have
    /// told to look.
    pub fn overlooked(&self, then: u64, held: impl Fn(&str) -> bool) -> Vec<&str> {
        if then < self.now {
            return Vec::new();
        }
        self.could_be_served(then, held).map(|(holder, _)| holder.as_str()).collect()
    }

    /// Those for whom all that they want is there, before whom nobody stands in line.
    fn could_be_served(
        &self,
        now: u64,
        held: impl Fn(&str) -> bool,
    ) -> impl Iterator<Item = (&String, &Ticket)> {
        self.tickets.iter().filter(move |(holder, ticket)| {
            let free = match &ticket.wish {
                Wish::Names(names) => {
                    ticket.sure && names.iter().all(|name| !held(name) && !self.keeps(name))
                }
                Wish::Any(count) => ticket.sure && self.readiness.count(now) >= count + self.kept(),
                Wish::Among { count, slots } => {
                    let distinct: BTreeSet<_> = slots.iter().collect();
                    let ready = distinct.iter().filter(|slot| self.readiness.is_ready(slot, now));
                    ticket.sure && ready.count() as u64 >= *count && !self.may_keep_some_of(slots, holder)
                }
                Wish::Free { .. } => false,
            };
            // Of two with one turn either may be the first, and one that is not sure may stand there or not; but not at
            // the head of its line, where something is ready, if it wants more than take part.
            let behind = |other: &Ticket| {
                let apart = !ticket.wish.yields_to(&other.wish) || !self.fits(&other.wish);
                other.turn > ticket.turn || apart
            };
            let mut others = self.tickets.iter().filter(|(other, _)| other != holder);
            free && others.all(|(_, other)| behind(other))
        })
    }

    /// Whether a name is kept for somebody.
    fn keeps(&self, name: &String) -> bool {
        let names = |offer: &Offer| matches!(&offer.wish, Wish::Names(names) if names.contains(name));
        self.offers.values().any(names)
    }

    /// How many slots of any kind are kept for somebody, at most.
    fn kept(&self) -> u64 {
        let count = |offer: &Offer| match offer.wish {
            Wish::Any(count) | Wish::Among { count, .. } => count,
            _ => 0,
        };
        self.offers.values().map(count).chain(self.waiting_for_more(None).map(Wish::kept)).sum()
    }

    /// Whether one of these may be kept for another: which those are nobody is told.
    fn may_keep_some_of(&self, slots: &[String], holder: &str) -> bool {
        let offered = self.offers.values().map(|offer| &offer.wish);
        let mut wishes = offered.chain(self.waiting_for_more(Some(holder)));
        wishes.any(|wish| slots.iter().any(|slot| wish.is_for(slot)))
    }

    /// The wishes for several slots of those, but for one, for whom some of them may be kept that are not enough yet.
    fn waiting_for_more<'a>(&'a self, but_for: Option<&'a str>) -> impl Iterator<Item = &'a Wish> {
        let others = self.tickets.iter().filter(move |(holder, _)| Some(holder.as_str()) != but_for);
        let wishes = others.map(|(_, ticket)| &ticket.wish).filter(|wish| self.fits(wish));
        wishes.chain(self.left.iter().map(|(_, wish)| wish)).filter(|wish| wish.kept() > 0)
    }

    fn serve(&mut self, now: u64, bid: &Bid) -> Result<(), Breach> {
        self.asked_any |= matches!(bid.wish, Wish::Any(_));
        let ticket = self.tickets.remove(&bid.holder);
        // What it may have stood there for may have been offered to it earlier in this turn.
        if ticket.is_some() && !bid.wish.is_of_names() {
            self.fetched.push(bid.holder.clone());
        }
        // What was kept for it, when it was its turn. If that was taken from it, it may have stood there anew.
        if self.offers.remove(&bid.holder).is_some() {
            return Ok(());
        }
        let turn = match ticket {
            Some(ticket) if ticket.sure => ticket.turn,
            // As in `refuse`.
            Some(ticket) => ticket.turn.min(turn(now, bid)),
            None => turn(now, bid),
        };
        if matches!(bid.wish, Wish::Any(_)) {
            self.took_any.insert(bid.holder.clone(), turn);
        }
        let kept =
            self.offers.iter().find(|(_, offer)| offer.wish.is_of_names() && offer.wish.shares(&bid.wish));
        if let Some((other, _)) = kept {
            let text = format!("{} was granted what was kept for {other}", bid.holder);
            return Err(Breach::new("Q2", text));
        }
        self.nobody_before(&bid.holder, &bid.wish, turn, "granted")
    }

    fn refuse(&mut self, at: Instant, now: u64, bid: &Bid, why: &str) -> Result<(), Breach> {
        self.asked_any |= matches!(bid.wish, Wish::Any(_));
        // Whoever names longer leases, after the store lost its memory, prolongs the time in which nothing is granted.
        if why != "quiet" && self.offers.get(&bid.holder).is_some_and(|offer| offer.sure) {
            let text = format!("{} was refused ({why}) what was kept for it", bid.holder);
            return Err(Breach::new("Q2", text));
        }
        if why == "beyond" || why == "noslot" && matches!(bid.wish, Wish::Among { .. }) {
            self.tickets.remove(&bid.holder);
        }
        if !bid.waits || matches!(bid.wish, Wish::Free { .. }) || !matches!(why, "exhausted" | "claimed") {
            return Ok(());
        }
        let sure = self.fits(&bid.wish);
        let fresh = || Ticket {
            wish: bid.wish.clone(),
            turn: turn(now, bid),
            until: 0,
            asked: 0,
            sure: true,
            priority: bid.priority,
            steal: bid.steal,
        };
        if !self.tickets.contains_key(&bid.holder) {
            self.new.push(bid.holder.clone());
        }
        let ticket = self.tickets.entry(bid.holder.clone()).or_insert_with(fresh);
        if !ticket.sure {
            // It may not have stood there before: then it waits as it says now.
            ticket.turn = ticket.turn.min(turn(now, bid));
            ticket.steal = ticket.steal.min(bid.steal);
        }
        (ticket.until, ticket.asked, ticket.sure) = (now + TICKET_LIFE, at, ticket.sure && sure);
        Ok(())
    }

    fn offer(&mut self, now: u64, holder: &str) -> Result<(), Breach> {
        let Some(ticket) = self.tickets.remove(holder) else {
            if self.fetched.iter().any(|fetched| fetched == holder) {
                return Ok(());
            }
            return Err(Breach::new("Q4", format!("{holder} was called and does not stand in line")));
        };
        self.nobody_before(holder, &ticket.wish, ticket.turn, "offered")?;
        // What was offered before a change of the same turn may have ended with it.
        let sure = !self.changed || ticket.wish.is_of_names();
        self.offers.insert(holder.to_owned(), Offer { wish: ticket.wish, until: now + OFFER, sure });
        Ok(())
    }

    /// Nobody who wants a part of what this one got stands before it.
    fn nobody_before(&self, holder: &str, wish: &Wish, turn: Turn, what: &str) -> Result<(), Breach> {
        // Who takes any slots is served after those of this turn who come before, for whom there was enough too; then they stand before
        // nobody else.
        let after = match wish {
            Wish::Any(_) => true,
            Wish::Among { .. } => self.asked_any,
            _ => false,
        };
        let served = |other: &String| what == "granted" && after && self.offered.contains(other);
        let mut tickets = self.tickets.iter().filter(|(other, _)| !served(other));
        let before = tickets.find(|(other, ticket)| {
            let before_it =
                matches!(wish, Wish::Among { .. }) || what == "offered" && matches!(wish, Wish::Any(_));
            let may_be_later = before_it && self.new.contains(other);
            ticket.sure && ticket.turn < turn && wish.yields_to(&ticket.wish) && !may_be_later
        });
        match before {
            Some((other, ticket)) => {
                let text = format!(
                    "{holder} ({turn:?}) was {what} {wish:?} before {other} ({:?}), who wants {:?}",
                    ticket.turn, ticket.wish
                );
                Err(Breach::new("Q1", text))
            }
            None => Ok(()),
        }
    }

    /// Nobody who waits for this slot by its name stands before the one that was granted it as one of any.
    fn nobody_chose(&self, holder: &str, slot: &str) -> Result<(), Breach> {
        let Some(turn) = self.took_any.get(holder) else { return Ok(()) };
        let chooses =
            |ticket: &Ticket| matches!(&ticket.wish, Wish::Among { .. }) && ticket.wish.is_for(slot);
        // Who is offered something in this turn may have had that before.
        let waited = |other: &String| !self.new.contains(other) && !self.offered.contains(other);
        let mut tickets = self.tickets.iter().filter(|(other, _)| waited(other));
        match tickets.find(|(_, ticket)| ticket.sure && ticket.turn < *turn && chooses(ticket)) {
            Some((other, _)) => {
                Err(Breach::new("Q1", format!("{holder} was granted {slot} before {other}, who chose it")))
            }
            None => Ok(()),
        }
    }

    /// Whether it can be fulfilled with the slots that take part.
    fn fits(&self, wish: &Wish) -> bool {
        let takes_part = |part: &Part| *part == Part::In;
        match wish {
            Wish::Any(count) => *count <= self.roster.values().filter(|part| takes_part(part)).count() as u64,
            // One alone is waited for whatever is done to it.
            Wish::Among { count: 2.., slots } => {
                let distinct: BTreeSet<_> = slots.iter().collect();
                let there = distinct.iter().filter(|slot| self.roster.get(**slot).is_some_and(takes_part));
                there.count() as u64 > wish.kept()
            }
            _ => true,
        }
    }
}

/// The process that a claim is of, by the id of the claim.
fn process_of(holder: &str) -> &str {
    holder.get(..holder.len().saturating_sub(16)).unwrap_or_default()
}

impl Wish {
    /// Whether it waits for this slot.
    pub fn is_for(&self, slot: &str) -> bool {
        match self {
            Wish::Any(_) => true,
            Wish::Among { slots: names, .. } | Wish::Names(names) => names.iter().any(|name| name == slot),
            Wish::Free { .. } => false,
        }
    }

    /// Whether a part of it can be had while another cannot.
    pub fn has_parts(&self) -> bool {
        !matches!(self, Wish::Names(names) if names.len() == 1)
    }

    /// Whether it wants more than one of more than those.
    pub fn wants_several(&self) -> bool {
        matches!(self, Wish::Any(count) | Wish::Among { count, .. } if *count > 1)
    }

    /// Whether two stand in one line.
    fn shares(&self, other: &Wish) -> bool {
        match (self, other) {
            (Wish::Any(_), Wish::Any(_)) => true,
            (Wish::Names(names), Wish::Names(others)) => names.iter().any(|name| others.contains(name)),
            _ => false,
        }
    }

    /// Whether it has to wait for the other that comes before it, whatever there is.
    fn yields_to(&self, other: &Wish) -> bool {
        match (self, other) {
            (Wish::Among { .. }, Wish::Any(_)) => true,
            // To those who want what there is.
            (Wish::Among { slots, .. }, Wish::Among { slots: others, .. }) => {
                slots.iter().all(|slot| others.contains(slot))
            }
            _ => self.shares(other),
        }
    }

    /// How many slots may be kept for it as it waits for the others.
    fn kept(&self) -> u64 {
        if let Wish::Among { count, .. } = self { count - 1 } else { 0 }
    }

    fn is_of_names(&self) -> bool {
        matches!(self, Wish::Names(_))
    }
}

/// Who grows older goes before those of higher priority who came so much later.
fn turn(now: u64, bid: &Bid) -> Turn {
    let arrival = now as i64 - bid.waited as i64;
    match bid.ageing {
        0 => (-bid.priority, arrival),
        ageing => (0, arrival - bid.priority * ageing as i64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bid(holder: &str, names: &[&str], priority: i64) -> Bid {
        Bid {
            holder: holder.to_owned(),
            wish: match names {
                [] => Wish::Any(1),
                names => Wish::Names(names.iter().map(|&name| name.to_owned()).collect()),
            },
            priority,
            ageing: 0,
            waited: 0,
            waits: true,
            steal: None,
        }
    }

    fn wait(line: &mut LineModel, now: u64, bid: Bid) {
        line.apply(now, now, &Fact::Refused { bid, why: "exhausted".to_owned() }).expect("a ticket");
    }

    fn rule(result: Result<(), Breach>) -> String {
        format!("{:?}", result.expect_err("a breach"))
    }

    #[test]
    fn nobody_overtakes_who_stands_before_it_in_a_line_that_both_are_in() {
        let mut line = LineModel::default();
        wait(&mut line, 10, bid("1", &["a", "b"], 0));
        wait(&mut line, 20, bid("2", &["b", "c"], 0));
        wait(&mut line, 30, bid("3", &["c"], 1));
        let offer = |holder: &str| Fact::Offered { holder: holder.to_owned() };
        assert!(rule(line.serve(40, &bid("4", &["a"], 0))).contains("Q1"));
        line.serve(40, &bid("4", &["a"], 1)).expect("a higher priority");
        line.serve(40, &bid("5", &["d"], -1)).expect("another line");
        assert!(rule(line.apply(40, 40, &offer("2"))).contains("Q1"));
        line.apply(40, 40, &offer("3")).expect("a higher priority");
        assert!(rule(line.apply(40, 40, &offer("3"))).contains("Q4"));
        assert!(rule(line.serve(50, &bid("6", &["c"], 2))).contains("Q2"));
        assert!(rule(line.refuse(50, 50, &bid("3", &["c"], 1), "exhausted")).contains("Q2"));
    }

    #[test]
    fn who_is_served_in_a_turn_keeps_nobody_else_waiting_in_it() {
        let mut line = LineModel::default();
        let slots = ["x".to_owned(), "y".to_owned()].to_vec();
        line.apply(0, 0, &Fact::Defined { slots, longest: 1 }).expect("done");
        wait(&mut line, 10, bid("1", &[], 0));
        wait(&mut line, 20, bid("2", &[], 0));
        let offered = |holder: &str| Fact::Offered { holder: holder.to_owned() };
        let turn = Performance { now: 30, facts: vec![offered("1")], ..Performance::default() };
        line.begin(&turn);
        assert!(rule(line.serve(30, &bid("3", &[], 0))).contains("Q1"), "the second is not served");
        line.serve(30, &bid("2", &[], 0)).expect("the first is");
        line.serve(30, &bid("1", &[], 0)).expect("it comes for it at once");
        line.apply(30, 30, &offered("1")).expect("and was called before");
        assert!(rule(line.apply(30, 30, &offered("3"))).contains("Q4"));

        wait(&mut line, 40, bid("4", &[], 0));
        wait(&mut line, 40, bid("5", &[], 1));
        let turn = Performance { now: 50, facts: vec![offered("4")], ..Performance::default() };
        line.begin(&turn);
        assert!(rule(line.apply(50, 50, &offered("4"))).contains("Q1"));
        wait(&mut line, 50, bid("4", &[], 0));
        line.apply(50, 50, &Fact::Withdrawn { holder: "5".to_owned() }).expect("done");
        wait(&mut line, 50, bid("6", &[], 5));
        line.apply(50, 50, &offered("4")).expect("before the other came");
    }

    #[test]
    fn who_may_have_left_fetches_what_it_was_called_for_in_the_same_turn() {
        let mut line = LineModel::default();
        let [silent, other] = ["00000000000000aa0000000000000001", "00000000000000aa0000000000000002"];
        let slots = ["x".to_owned(), "y".to_owned()].to_vec();
        line.apply(0, 0, &Fact::Defined { slots, longest: 1 }).expect("done");
        wait(&mut line, 10, bid(silent, &[], 0));
        wait(&mut line, 20, bid(other, &[], 0));
        let offered = |holder: &str| Fact::Offered { holder: holder.to_owned() };
        line.apply(30, 30, &offered(silent)).expect("the first in line");
        // Nobody came for it: the other of that process may stand there no more.
        line.begin(&Performance { now: 30 + OFFER, ..Performance::default() });
        line.serve(30 + OFFER, &bid(other, &[], 0)).expect("it is called and comes at once");
        line.apply(30 + OFFER, 30 + OFFER, &offered(other)).expect("which is told at the end of the turn");
    }

    #[test]
    fn who_is_first_everywhere_is_called_as_soon_as_all_is_free() {
        let mut line = LineModel::default();
        wait(&mut line, 10, bid("1", &["a", "b"], 0));
        wait(&mut line, 20, bid("2", &["b"], 0));
        line.end(30, |name| name == "a").expect("one is held, and the other waits behind it");
        assert!(rule(line.end(30, |_| false)).contains("Q3"));
        line.begin(&Performance { now: 10 + TICKET_LIFE, ..Performance::default() });
        // The first has lapsed.
        assert!(rule(line.end(30, |name| name == "a")).contains("Q3"));
        line.apply(30, 30, &Fact::Withdrawn { holder: "2".to_owned() }).expect("done");
        line.end(30, |_| false).expect("nobody waits");
    }

    #[test]
    fn who_is_first_as_a_rest_ends_is_overlooked_until_somebody_comes() {
        let (mut line, slot, nobody) = (LineModel::default(), || "x".to_owned(), |_: &str| false);
        let (holder, outcome) = ("0".to_owned(), "unused".to_owned());
        let granted =
            Fact::Granted { holder, slot: slot(), fence: 1, deadline: 90, max_hold: 0, known: true };
        let released = Fact::Released { slot: slot(), fence: 1, rest: 50, outcome, named: false };
        for fact in [Fact::Defined { slots: vec![slot()], longest: 1 }, granted] {
            line.apply(1, 1, &fact).expect("done");
        }
        wait(&mut line, 2, bid("1", &[], 0));
        wait(&mut line, 2, bid("2", &[], -1));
        line.apply(3, 3, &released).expect("done");
        assert!(line.overlooked(52, nobody).is_empty());
        assert_eq!(line.overlooked(53, nobody), ["1"]);
        line.begin(&Performance { now: 60, ..Performance::default() });
        assert!(line.overlooked(59, nobody).is_empty(), "the store has called it then");
    }

    #[test]
    fn who_wants_more_than_there_is_for_sure_bars_nobody() {
        let mut line = LineModel::default();
        let slots = ["x".to_owned(), "y".to_owned()].to_vec();
        line.apply(0, 0, &Fact::Defined { slots, longest: 1 }).expect("done");
        wait(&mut line, 10, Bid { wish: Wish::Any(2), ..bid("1", &[], 0) });
        assert!(rule(line.serve(20, &bid("2", &[], 0))).contains("Q1"));
        assert!(rule(line.end(20, |_| false)).contains("Q3"));
        let change = Fact::Changed { slot: "x".to_owned(), change: "drain".to_owned() };
        line.apply(20, 20, &change).expect("done");
        line.serve(20, &bid("2", &[], 0)).expect("it may have been passed over");
        line.end(20, |_| false).expect("the same");
        wait(&mut line, 30, bid("2", &[], 0));
        assert!(rule(line.end(30, |_| false)).contains("Q3"), "and it was, as the other is leased or gone");
    }

    // It asked late in the store's time and when there was nothing, and had no ticket: it came before the other.
    #[test]
    fn who_had_no_ticket_for_sure_is_served_as_it_says_by_then() {
        let mut line = LineModel::default();
        wait(&mut line, 10, bid("1", &[], 0));
        line.apply(20, 20, &Fact::Defined { slots: ["x".to_owned()].to_vec(), longest: 1 }).expect("done");
        let turn = line.tickets.get("1").expect("a ticket").turn;
        let second = Bid { waited: 25, ..bid("2", &[], 0) };
        wait(&mut line, 30, second);
        let served = Bid { waited: 35, ..bid("1", &[], 0) };
        assert!(turn > line.tickets.get("2").expect("a ticket").turn);
        line.serve(40, &served).expect("it has waited for longer");
    }

    #[test]
    fn who_grows_older_goes_before_who_came_so_much_later() {
        let grown = |priority, waited| Bid { ageing: 100, waited, ..bid("1", &[], priority) };
        assert!(turn(1_000, &grown(0, 0)) < turn(1_101, &grown(1, 0)));
        assert!(turn(1_000, &grown(0, 0)) > turn(1_099, &grown(1, 0)));
        assert!(turn(1_000, &grown(0, 150)) < turn(1_000, &grown(1, 0)));
        assert!(turn(1_000, &bid("1", &[], 1)) < turn(0, &bid("2", &[], 0)));
    }
}
