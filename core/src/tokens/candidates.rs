//! What a process knows of a wallet's tokens of one currency.
//!
//! A queue of tokens that may be asked for, filled by pages of the source and by its events; what an earlier selection
//! left is in it for the next. Each process walks through them in an order of its own ([`Stretches`]), so that processes
//! that share a wallet do not all begin at one head. Nothing that a selection does takes time in proportion to the wallet: tokens are in the queue once, and those that
//! are not free any more are passed over as they come up; orders by amount and by age are kept from when a strategy
//! first asks for them.

mod entry;
mod standing;
mod walk;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};

use self::entry::{Entry, State};
use self::walk::Walk;
use super::shelves::{Order, Shelves};
use super::stretches::Stretches;
use super::token::slot_of;
use super::total::Total;
use super::{Amount, Draw, Page, Token};
use crate::error::{Error, Result};
use crate::id::SlotId;
use crate::{MILLISECOND, Micros, SECOND};

/// How long a token that another has is not asked for: at first, and twice as long after each time, up to the longest.
const REST: (Micros, Micros) = (10 * MILLISECOND, SECOND / 4);

/// The tokens of one wallet and currency, as one process knows them.
#[derive(Debug)]
pub struct Candidates {
    entries: Vec<Entry>,
    /// Places that are free.
    vacant: Vec<u32>,
    index: FxHashMap<Arc<str>, u32>,
    queue: Stretches,
    /// Those that others have, by when they may be asked for again.
    resting: BinaryHeap<Reverse<(Micros, u32)>>,
    /// Those that are spent, by when no listing of them is late any more.
    spent: BinaryHeap<Reverse<(Micros, u32)>>,
    shelves: Shelves,
    /// Of all that are unspent, whoever has them.
    total: Total,
    /// Of those that are free.
    free: Total,
    walk: Walk,
    /// When the page was asked for that is under way.
    asked: Option<Micros>,
    /// How long a token may be offered since the source listed it.
    max_age: Micros,
    /// Since when the source tells of every change, if it does, and whether a walk that was not late for what came before has
    /// come to its end.
    live: Option<(Micros, bool)>,
    /// How many that are gone the queue has yet to pass over.
    gone: usize,
}

impl Candidates {
    /// Nothing is known yet. `seed` makes the order of this process its own; a token is offered for `max_age` after the
    /// source listed it.
    pub fn new(seed: u64, max_age: Micros) -> Self {
        Candidates {
            entries: Vec::new(),
            vacant: Vec::new(),
            index: FxHashMap::default(),
            queue: Stretches::new(seed),
            resting: BinaryHeap::new(),
            spent: BinaryHeap::new(),
            shelves: Shelves::default(),
            total: Total::default(),
            free: Total::default(),
            walk: Walk::default(),
            asked: None,
            max_age,
            live: None,
            gone: 0,
        }
    }

    /// Where the next page begins; a walk that is not under way begins. What a page that is asked for now would be late
    /// for is kept in mind until [`Self::absorb`] or [`Self::end_page`].
    pub fn next_page(&mut self, now: Micros) -> Option<String> {
        self.asked = Some(now);
        self.walk.next_page(now)
    }

    /// No page is under way any more, whether or not it came.
    pub fn end_page(&mut self) {
        self.asked = None;
    }

    /// The next page could not be had: the walk begins anew, as the source may have forgotten where it stood.
    pub fn lose_page(&mut self) {
        self.walk.restart();
    }

    /// Takes in a page that began at `after`; one that is not the next is taken for its tokens only.
    ///
    /// # Errors
    /// `invalid_argument` if the id of a token is too long, or the next page is one that was there before; nothing of the
    /// page is taken in then.
    pub fn absorb(&mut self, now: Micros, after: Option<&str>, page: Page) -> Result<()> {
        if self.walk.leads_back(after, page.next.as_deref()) {
            return Err(Error::invalid(
                "next",
                "is where this page began, or one before it; a walk must come to an end",
            ));
        }
        let slot = |(token, at): (&Token, usize)| {
            slot_of(&token.id).map_err(|error| error.within("id").within(&format!("tokens[{at}]")))
        };
        let slots = page.tokens.iter().zip(0..).map(slot).collect::<Result<Vec<_>>>()?;
        let mut new = Vec::with_capacity(page.tokens.len());
        for (token, slot) in page.tokens.into_iter().zip(slots) {
            new.extend(self.learn(now, token, slot, false));
        }
        new.sort_unstable_by_key(|&place| self.turn(place));
        for place in new {
            self.queue.push_last(place, self.turn(place));
        }
        if let Some(began) = self.walk.advance(after, page.next) {
            self.sweep(began);
            if let Some((since, false)) = self.live
                && self.is_told_all()
            {
                self.live = Some((since, true));
                self.revive(now);
            }
        }
        self.end_page();
        Ok(())
    }

    /// The source tells of a token that it has now: also of one that it said was spent, but of none that this process
    /// spent just now, as it may be late. A walk that does not list it is late itself, for as long as it may be offered.
    ///
    /// # Errors
    /// `invalid_argument` if its id is too long.
    pub fn added(&mut self, now: Micros, token: Token) -> Result<()> {
        let slot = slot_of(&token.id)?;
        if let Some(place) = self.learn(now, token, slot, true) {
            self.queue.push_last(place, self.turn(place));
        }
        Ok(())
    }

    /// The source tells that a token is spent: pages that list it are late, for as long as a token may be offered. One
    /// that a selection has stays its own, and goes with it.
    ///
    /// # Errors
    /// `invalid_argument` if its id is too long.
    pub fn removed(&mut self, now: Micros, id: &str) -> Result<()> {
        self.wake(now);
        let place = match self.index.get(id) {
            Some(&place) => place,
            // Before any page, or not one of this currency.
            None => self.admit(now, Token::new(id, Amount::ZERO), slot_of(&id.into())?, State::Spent),
        };
        self.bar(now, place);
        Ok(())
    }

    /// Whether the source tells of every change from now on. Whatever it told before, a walk through all of its pages
    /// comes first that begins `max_age` after this, as a page may be so late; what was listed before is offered for
    /// `max_age` at most.
    pub fn set_live(&mut self, now: Micros, live: bool) {
        // What became of these it may have told while nobody heard.
        self.entries.iter_mut().for_each(|entry| entry.told = 0);
        self.live = live.then_some((now, false));
        if !live {
            self.walk.void();
        }
    }

    /// Whether everything that the source had at `since` is known.
    pub fn knows_all(&self, since: Micros) -> bool {
        self.walk.is_complete_since(since) || self.is_told_all()
    }

    /// How many walks through all pages have begun.
    pub fn walks(&self) -> u32 {
        self.walk.number()
    }

    /// Whether everything is known that the source had when so many walks had begun: a clock may stand still.
    pub fn has_walked_since(&self, walks: u32) -> bool {
        self.walk.is_complete_after(walks) || self.is_told_all()
    }

    /// Whether the source tells of every change to what a walk has found that was not late for what it did not tell.
    fn is_told_all(&self) -> bool {
        let since = self.live.map(|(since, _)| since.saturating_add(self.max_age));
        since.is_some_and(|since| self.walk.is_complete_since(since))
    }

    /// Whether everything was known not too long ago, as orders by amount need it.
    pub fn is_recent(&self, now: Micros) -> bool {
        self.knows_all(now.saturating_sub(self.max_age))
    }

    /// The sum of all that is unspent as far as is known here, whoever has it.
    pub fn total(&self) -> Total {
        self.total
    }

    /// The sum of what can be asked for now.
    pub fn free(&mut self, now: Micros) -> Total {
        self.wake(now);
        self.free
    }

    /// How many tokens are known.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// How many places there are, also of those that are gone.
    #[cfg(test)]
    pub(super) fn kept(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Whether nothing is known, barred, told of or under way: a new one is as good.
    pub fn is_blank(&self) -> bool {
        self.is_empty() && self.live.is_none() && !self.walk.has_gone_on()
    }

    /// Whether anybody is known to have some. Looks at every token: for verdicts only.
    pub fn any_had(&self) -> bool {
        let had = |entry: &Entry| matches!(entry.state, State::Taken | State::Leaving | State::Resting);
        self.entries.iter().any(had)
    }

    /// Whether some of the unspent tokens, at most `most`, are worth as much, whoever has them. Looks at one after the other
    /// until those do: at every token for the verdict that none do.
    pub fn has_within(&self, enough: Amount, most: usize) -> bool {
        let unspent = |entry: &&Entry| !matches!(entry.state, State::Leaving | State::Spent | State::Gone);
        let (mut largest, mut sum) = (BinaryHeap::new(), Total::default());
        self.entries.iter().filter(unspent).any(|entry| {
            let amount = entry.latest().amount;
            largest.push(Reverse(amount));
            sum.add(amount);
            if largest.len() > most
                && let Some(Reverse(least)) = largest.pop()
            {
                sum.take(least);
            }
            sum.covers(enough)
        })
    }

    /// When the first of what this process's selections have ends, as far as is known. Looks at every token: for
    /// verdicts only.
    pub fn first_end(&self, now: Micros) -> Option<Micros> {
        let taken = self.entries.iter().filter(|entry| entry.state == State::Taken);
        taken.map(|entry| entry.until).filter(|&until| until > now).min()
    }

    /// Takes tokens in this order until they cover `enough` and are at least `least`, but at most `most` (around the target:
    /// of the largest, and as many smaller ones and some more besides), and none of `without`. What is not asked for must be
    /// put back.
    pub fn take(
        &mut self,
        now: Micros,
        order: Order,
        enough: Amount,
        (least, most): (usize, usize),
        without: &FxHashSet<u32>,
        draw: &mut Draw,
    ) -> Vec<u32> {
        self.wake(now);
        let mut taken = Vec::new();
        let (mut sum, mut passed) = (Amount::ZERO, Vec::new());
        if order == Order::Spread {
            while taken.len() < most && (sum < enough || taken.len() < least) {
                let Some(place) = self.next_free(now) else { break };
                if without.contains(&place) {
                    passed.push(place);
                    continue;
                }
                sum = sum.saturating_add(self.amount(place));
                taken.push(place);
            }
            for place in passed.into_iter().rev() {
                self.enqueue_first(place);
            }
        } else {
            let oldest = self.oldest(now);
            self.shelves.fill(&self.entries, order);
            let span = (least, most);
            let (places, stale) =
                self.shelves.pick(&self.entries, order, enough, span, (without, oldest), draw);
            stale.into_iter().for_each(|place| self.leave(place, State::Stale));
            taken = places;
        }
        for &place in &taken {
            self.leave(place, State::Taken);
        }
        taken
    }

    /// Gives tokens back that nobody has now, to be offered first.
    pub fn put_back(&mut self, now: Micros, places: &[u32]) {
        for &place in places.iter().rev() {
            match self.state(place) {
                Some(State::Taken) => {
                    self.renew(place);
                    self.set_free(now, place, true);
                }
                Some(State::Leaving) => self.depart(now, place),
                _ => {}
            }
        }
    }

    /// Whether a token may be had that was granted just now: while the claim was under way it may have been spent, and the
    /// lock of that may have ended.
    pub fn is_listed(&self, place: u32, now: Micros) -> bool {
        let listed = |entry: &Entry| entry.state != State::Leaving && entry.seen >= self.oldest(now);
        self.entries.get(place as usize).is_some_and(listed)
    }

    /// Whether a token that a selection has is still what it was given, as far as is known.
    pub fn is_as_had(&self, place: u32) -> bool {
        let as_had = |entry: &Entry| entry.state == State::Taken && entry.anew.is_none();
        self.entries.get(place as usize).is_some_and(as_had)
    }

    /// A claim of a token was granted, until then.
    pub fn had(&mut self, place: u32, until: Micros) {
        if let Some(entry) = self.entry(place) {
            (entry.misses, entry.until) = (0, until);
        }
    }

    /// Another has a token that was asked for.
    pub fn missed(&mut self, now: Micros, place: u32) {
        if self.state(place) == Some(State::Leaving) {
            return self.depart(now, place);
        }
        self.renew(place);
        let Some(entry) = self.entry(place).filter(|entry| entry.state == State::Taken) else { return };
        let rest = REST.1.min(REST.0 << entry.misses.min(16));
        entry.misses = entry.misses.saturating_add(1);
        entry.state = State::Resting;
        let turn = entry.turn;
        self.queue.meet(turn);
        self.resting.push(Reverse((now + rest, place)));
    }

    /// A token was spent by its selection. Until `until` it is not offered, even if the source lists it still.
    pub fn spent(&mut self, place: u32, until: Micros) {
        let Some(entry) = self.entry(place) else { return };
        if !matches!(entry.state, State::Taken | State::Leaving) {
            return;
        }
        self.unlist(place);
        self.settle(place, until);
    }

    /// A token that was asked for is spent, as the source says, whatever it lists. It may not have it yet, where a replica
    /// answers, and then tells of no change: so it rests as one that was spent here.
    pub fn gone(&mut self, now: Micros, place: u32) {
        self.spent(place, now + self.max_age);
    }

    /// Those that others had, but for these, may be asked for at once; whether there are any.
    pub fn rouse(&mut self, now: Micros, without: &FxHashSet<u32>) -> bool {
        let resting = std::mem::take(&mut self.resting).into_vec();
        let (rest, roused): (Vec<_>, Vec<_>) =
            resting.into_iter().partition(|Reverse((_, place))| without.contains(place));
        self.resting = rest.into();
        let mut any = false;
        for Reverse((_, place)) in roused {
            any |= self.end_rest(now, place);
        }
        any
    }

    /// Where a token is.
    #[cfg(any(test, feature = "suite"))]
    pub(super) fn place(&self, id: &str) -> Option<u32> {
        self.index.get(id).copied()
    }

    /// A token and its slot.
    pub fn get(&self, place: u32) -> Option<(&Token, &SlotId)> {
        self.entries.get(place as usize).map(|entry| (&entry.token, &entry.slot))
    }

    /// What a token is worth; 0 if there is none.
    pub fn amount(&self, place: u32) -> Amount {
        self.entries.get(place as usize).map_or(Amount::ZERO, |entry| entry.token.amount)
    }

    /// What the source lists, or tells of. The place of a token that is new in the queue.
    fn learn(&mut self, now: Micros, mut token: Token, slot: SlotId, told: bool) -> Option<u32> {
        let (walk, oldest) = (self.walk.number(), now.saturating_sub(self.max_age).max(1));
        if let Some(&place) = self.index.get(&*token.id) {
            let entry = self.entry(place)?;
            if told {
                entry.barred = 0;
            }
            if entry.rests_until() > now {
                if entry.state == State::Spent {
                    // This walk has passed it: see [`Self::wake`].
                    entry.walk = walk;
                }
                return None;
            }
            (entry.seen, entry.walk) = (now.max(1), walk);
            if told {
                entry.told = now.max(1);
            } else if entry.told >= oldest {
                // The page may be late for what it is worth.
                token = entry.latest().clone();
            }
            let (state, before, amount) = (entry.state, entry.latest().amount, token.amount);
            match state {
                // Its holder has what it was given; it comes back as what it is now.
                State::Taken | State::Leaving => {
                    entry.state = State::Taken;
                    entry.anew = (amount != entry.token.amount).then(|| Box::new(token));
                    if state == State::Taken {
                        self.total.take(before);
                    }
                    self.total.add(amount);
                    return None;
                }
                State::Free | State::Resting | State::Stale if before == amount => {
                    if state == State::Stale {
                        self.set_free(now, place, false);
                    }
                    return None;
                }
                // Another worth under the same id, or it was not spent after all: what was known of it is void.
                _ => self.forget(place),
            }
        }
        let amount = token.amount;
        let place = self.admit(now, token, slot, State::Free);
        if told && let Some(entry) = self.entry(place) {
            entry.told = now.max(1);
        }
        self.total.add(amount);
        self.free.add(amount);
        self.shelves.put(place, &self.entries);
        Some(place)
    }

    /// Finds a place for a token that is not known.
    fn admit(&mut self, now: Micros, token: Token, slot: SlotId, state: State) -> u32 {
        let id = token.id.clone();
        let entry = Entry {
            turn: Stretches::turn_of(&id),
            token,
            anew: None,
            slot,
            state,
            queued: state == State::Free,
            told: 0,
            seen: now.max(1),
            walk: self.walk.number(),
            misses: 0,
            until: 0,
            barred: 0,
        };
        let place = match self.vacant.pop() {
            Some(place) => {
                if let Some(vacant) = self.entries.get_mut(place as usize) {
                    *vacant = entry;
                }
                place
            }
            None => {
                self.entries.push(entry);
                (self.entries.len() - 1) as u32
            }
        };
        self.index.insert(id, place);
        place
    }

    /// Forgets what a walk through all pages did not list that began then, unless it was told of a moment before that, or
    /// since. What selections have is theirs as long as they have it.
    fn sweep(&mut self, began: Micros) {
        let number = self.walk.number();
        let oldest = began.saturating_sub(self.max_age).max(1);
        let unlisted = |(entry, place): (&Entry, u32)| {
            let out = entry.walk != number && entry.told < oldest;
            (out && !matches!(entry.state, State::Gone | State::Spent)).then_some(place)
        };
        let unlisted: Vec<u32> = self.entries.iter().zip(0..).filter_map(unlisted).collect();
        unlisted.into_iter().for_each(|place| self.unlist(place));
    }
}
