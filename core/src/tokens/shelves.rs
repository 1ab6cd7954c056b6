//! Tokens by amount and by age, from when somebody first asks for that order.

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;

use super::{Amount, Draw};
use crate::Micros;

/// In which order tokens are offered to a strategy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// That of the process: scattered, and another one in each.
    Spread,
    /// The largest first.
    Largest,
    /// The largest as far as they are needed, then the smallest.
    Ends,
    /// Those that fit the target: the one, or the two, that are exactly it; the smallest that suffice; then the largest of
    /// the others, and the smallest with which, in the place of each of them, they still suffice.
    Around,
    /// The oldest first.
    Oldest,
}

/// What a shelf needs to know of a token.
pub(super) trait Priced {
    fn amount(&self) -> Amount;
    fn since(&self) -> u64;
    /// When it was listed last.
    fn seen(&self) -> Micros;
    fn is_free(&self) -> bool;
}

/// The orders that are kept. Tokens of one amount, or age, lie together: a wallet of a million equal ones is one board.
#[derive(Debug, Default)]
pub(super) struct Shelves {
    amounts: Option<Shelf<Amount>>,
    ages: Option<Shelf<u64>>,
}

#[derive(Debug)]
struct Shelf<K> {
    boards: BTreeMap<K, Vec<u32>>,
    /// Where each place lies on its board.
    spots: Vec<u32>,
}

/// How many amounts are looked at for a pair that is exactly the target.
const PROBES: usize = 1_024;
/// How many of those that suffice by themselves are offered.
const SUFFICIENT: usize = 8;

impl Shelves {
    /// Keeps this order from now on.
    pub fn fill(&mut self, entries: &[impl Priced], order: Order) {
        match order {
            Order::Spread => {}
            Order::Oldest if self.ages.is_none() => self.ages = Some(Shelf::of(entries, Priced::since)),
            Order::Largest | Order::Ends | Order::Around if self.amounts.is_none() => {
                self.amounts = Some(Shelf::of(entries, Priced::amount));
            }
            _ => {}
        }
    }

    /// A token became free.
    pub fn put(&mut self, place: u32, entries: &[impl Priced]) {
        let Some(entry) = entries.get(place as usize) else { return };
        if let Some(shelf) = &mut self.amounts {
            shelf.put(entry.amount(), place);
        }
        if let Some(shelf) = &mut self.ages {
            shelf.put(entry.since(), place);
        }
    }

    /// A token is free no more.
    pub fn remove(&mut self, place: u32, entries: &[impl Priced]) {
        let Some(entry) = entries.get(place as usize) else { return };
        if let Some(shelf) = &mut self.amounts {
            shelf.remove(entry.amount(), place);
        }
        if let Some(shelf) = &mut self.ages {
            shelf.remove(entry.since(), place);
        }
    }

    /// Tokens in this order, as [`super::Candidates::take`] says, and those that were passed over because they were listed
    /// before `oldest`.
    pub fn pick(
        &self,
        entries: &[impl Priced],
        order: Order,
        enough: Amount,
        (least, most): (usize, usize),
        (without, oldest): (&FxHashSet<u32>, Micros),
        draw: &mut Draw,
    ) -> (Vec<u32>, Vec<u32>) {
        let (places, before, stale) = (Vec::new(), FxHashSet::default(), Vec::new());
        let sum = Amount::ZERO;
        let mut picked = Picked { entries, places, before, stale, sum, enough, least, most, without, oldest };
        match (order, &self.amounts, &self.ages) {
            (Order::Oldest, _, Some(ages)) => {
                ages.boards.values().try_for_each(|board| picked.board(board, draw));
            }
            (Order::Largest, Some(amounts), _) => {
                amounts.boards.values().rev().try_for_each(|board| picked.board(board, draw));
            }
            (Order::Ends, Some(amounts), _) => {
                picked.least = 0;
                amounts.boards.values().rev().try_for_each(|board| picked.board(board, draw));
                picked.least = picked.places.len().saturating_add(least);
                picked.before = picked.places.iter().copied().collect();
                amounts.boards.values().try_for_each(|board| picked.board(board, draw));
            }
            (Order::Around, Some(amounts), _) => amounts.around(&mut picked, draw),
            _ => {}
        }
        (picked.places, picked.stale)
    }
}

impl<K: Ord + Copy> Shelf<K> {
    fn of<E: Priced>(entries: &[E], key: impl Fn(&E) -> K) -> Self {
        let mut shelf = Shelf { boards: BTreeMap::new(), spots: Vec::new() };
        for (entry, place) in entries.iter().zip(0..) {
            if entry.is_free() {
                shelf.put(key(entry), place);
            }
        }
        shelf
    }

    fn put(&mut self, key: K, place: u32) {
        let board = self.boards.entry(key).or_default();
        if self.spots.len() <= place as usize {
            self.spots.resize(place as usize + 1, 0);
        }
        if let Some(spot) = self.spots.get_mut(place as usize) {
            *spot = board.len() as u32;
        }
        board.push(place);
    }

    fn remove(&mut self, key: K, place: u32) {
        let (Some(board), Some(&spot)) = (self.boards.get_mut(&key), self.spots.get(place as usize)) else {
            return;
        };
        if board.get(spot as usize) != Some(&place) {
            return;
        }
        board.swap_remove(spot as usize);
        if let Some(&moved) = board.get(spot as usize)
            && let Some(kept) = self.spots.get_mut(moved as usize)
        {
            *kept = spot;
        }
        if board.is_empty() {
            self.boards.remove(&key);
        }
    }
}

impl Shelf<Amount> {
    fn around<E: Priced>(&self, picked: &mut Picked<'_, E>, draw: &mut Draw) {
        let target = picked.enough;
        let (least, most) = (picked.least, picked.most);
        // Each of the parts may offer all that there is of it.
        (picked.enough, picked.least) = (Amount::MAX, most);
        if let Some(board) = self.boards.get(&target) {
            picked.most = 1;
            picked.board(board, draw);
            picked.most = most;
        }
        for (&amount, board) in self.boards.range(..target).rev().take(PROBES) {
            let other = target.saturating_sub(amount);
            if other > amount {
                break;
            }
            if let Some(others) = self.boards.get(&other) {
                let before = picked.places.len();
                picked.most = before + 1;
                picked.board(board, draw);
                picked.most = before + 2;
                picked.before = picked.places.iter().copied().collect();
                picked.board(others, draw);
                picked.most = most;
                break;
            }
        }
        picked.most = picked.places.len() + SUFFICIENT;
        let above = self.boards.range(target..).filter(|(amount, _)| **amount > target);
        above.into_iter().try_for_each(|(_, board)| picked.board(board, draw));
        let largest = picked.places.len();
        picked.most = largest.saturating_add(most);
        picked.before = picked.places.iter().copied().collect();
        (picked.enough, picked.least, picked.sum) = (target, largest.saturating_add(least), Amount::ZERO);
        let below = self.boards.range(..target).rev();
        below.into_iter().try_for_each(|(_, board)| picked.board(board, draw));
        self.smaller(picked, largest, target, draw);
    }

    /// In the place of each of those that were picked from `first` on, and that the target needs, the smallest with which the
    /// others still suffice: from the last on, with what took the places of those behind it.
    fn smaller<E: Priced>(&self, picked: &mut Picked<'_, E>, first: usize, target: Amount, draw: &mut Draw) {
        let (mut needed, mut missing) = (Vec::new(), target);
        let change = picked.places.get(first..).unwrap_or_default().iter().find_map(|&place| {
            let amount = picked.entries.get(place as usize).map_or(Amount::ZERO, Priced::amount);
            needed.push(amount);
            let change = amount.checked_sub(missing);
            missing = missing.saturating_sub(amount);
            change
        });
        let Some(mut change) = change else { return };
        (picked.enough, picked.least) = (Amount::MAX, usize::MAX);
        picked.before = picked.places.iter().copied().collect();
        // Those in whose places others came, the smallest first.
        let mut replaced: Vec<Amount> = Vec::new();
        for amount in needed.into_iter().rev() {
            if change.is_zero() {
                break;
            }
            let least = amount.saturating_sub(change);
            let at = replaced.partition_point(|other| *other < least);
            let again = replaced.get(at).copied().filter(|other| *other < amount);
            let count = picked.places.len();
            picked.most = count + 1;
            let found = self.boards.range(least..again.unwrap_or(amount)).find_map(|(other, board)| {
                picked.board(board, draw);
                (picked.places.len() > count).then_some(*other)
            });
            if found.is_none() && again.is_some() {
                replaced.remove(at);
            }
            let Some(other) = found.or(again) else { continue };
            picked.before.extend(picked.places.last());
            change = change.saturating_sub(amount.saturating_sub(other));
            replaced.push(amount);
        }
    }
}

/// What was picked so far, and what for.
struct Picked<'a, E> {
    entries: &'a [E],
    places: Vec<u32>,
    /// What may come up again.
    before: FxHashSet<u32>,
    /// What was listed before `oldest`.
    stale: Vec<u32>,
    sum: Amount,
    enough: Amount,
    least: usize,
    most: usize,
    without: &'a FxHashSet<u32>,
    oldest: Micros,
}

impl<E: Priced> Picked<'_, E> {
    /// Picks from a board, from a place at random on: so do not all go for the same one of equal tokens. Nothing if there
    /// is enough.
    fn board(&mut self, board: &[u32], draw: &mut Draw) -> Option<()> {
        let (before, after) = board.split_at_checked(draw.below(board.len() as u64) as usize)?;
        for &place in after.iter().chain(before) {
            let covered = self.sum >= self.enough && self.places.len() >= self.least;
            if covered || self.places.len() >= self.most {
                return None;
            }
            let Some(entry) = self.entries.get(place as usize) else { continue };
            if entry.seen() < self.oldest {
                self.stale.push(place);
            } else if !self.without.contains(&place) && !self.before.contains(&place) {
                self.places.push(place);
                self.sum = self.sum.saturating_add(entry.amount());
            }
        }
        Some(())
    }
}
