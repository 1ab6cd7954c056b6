//! What a rolling limit must count: every period by which it was asked is remembered. It shares no code with the library.

use std::collections::BTreeSet;

/// The most that are kept apart.
const MOST: usize = 128;
/// The most that one counts.
const COUNTED: u128 = (1 << 53) - 1;

/// What was taken within one grain of a window, and the last time at which it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cells {
    cells: Vec<(u64, u128)>,
    asked: Asked,
}

/// By what periods it was asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Asked {
    /// Until the present round, and in it.
    before: BTreeSet<u64>,
    present: BTreeSet<u64>,
    /// When the round ends; there is none while one period is all.
    ends: Option<u64>,
}

impl Asked {
    fn by(&self, period: u64, now: u64) -> Asked {
        let mut asked = self.clone();
        if asked.ends.is_some_and(|ends| ends <= now) {
            asked = Asked { before: asked.present, ..Asked::default() };
        }
        if asked.ends.is_none() && asked.before.iter().all(|one| *one == period) {
            return Asked { before: BTreeSet::from([period]), ..Asked::default() };
        }
        let longest = asked.longest().max(period);
        asked.ends.get_or_insert(now + longest);
        asked.present.insert(period);
        asked
    }

    fn all(&self) -> impl Iterator<Item = u64> {
        self.before.union(&self.present).copied()
    }

    fn longest(&self) -> u64 {
        self.all().max().unwrap_or(0)
    }

    fn shortest(&self) -> u64 {
        self.all().min().unwrap_or(0)
    }

    /// Until when it is remembered, if nothing is used.
    fn known_until(&self) -> u64 {
        self.ends.map_or(0, |ends| ends + self.present.last().unwrap_or(&0))
    }

    /// All that anybody can find of it again.
    fn bounds(&self) -> [Option<u64>; 5] {
        let round = self.ends.and(self.present.first()).copied();
        let last = self.ends.and(self.present.last()).copied();
        [Some(self.longest()), Some(self.shortest()), self.ends, round, last]
    }
}

impl Cells {
    /// What is left once somebody asks by this period.
    pub fn at(&self, period: u64, now: u64) -> Cells {
        let asked = self.asked.by(period, now);
        let kept = self.asked.longest().min(asked.longest());
        let cells: Vec<_> = self.cells.iter().copied().filter(|(last, _)| last + kept > now).collect();
        let nothing = cells.is_empty() && self.asked.known_until() <= now;
        Cells { cells, asked: if nothing { Asked::default().by(period, now) } else { asked } }
    }

    /// Whether something else is kept once somebody asks by this period.
    pub fn turns(&self, period: u64, now: u64) -> bool {
        self.asked.by(period, now).bounds() != self.asked.bounds()
    }

    /// Whether a window of this period may have held what was forgotten.
    pub fn is_shorter_than(&self, period: u64) -> bool {
        self.asked.longest() < period
    }

    /// Something is taken.
    pub fn charge(&mut self, now: u64, cost: u128) {
        let (fine, coarse) = (self.asked.shortest().div_ceil(32), self.asked.longest().div_ceil(32));
        match self.cells.last_mut() {
            Some((last, amount)) if *last / fine == now / fine => (*last, *amount) = (now, *amount + cost),
            _ => self.cells.push((now, cost)),
        }
        for (until, grain) in [(now - self.asked.shortest(), (coarse - fine).max(1)), (now, coarse)] {
            if self.cells.len() > MOST {
                let mut merged: Vec<(u64, u128)> = Vec::new();
                for (last, amount) in std::mem::take(&mut self.cells) {
                    match merged.last_mut() {
                        Some(before) if last <= until && before.0 / grain == last / grain => {
                            *before = (last, COUNTED.min(before.1 + amount));
                        }
                        _ => merged.push((last, amount)),
                    }
                }
                self.cells = merged;
            }
        }
    }

    /// From where it is counted if it is known when it was taken, and for the rest from the oldest before that in the window,
    /// which leave first.
    pub fn give_back(&mut self, period: u64, now: u64, mut left: u128, taken: Option<u64>) {
        let (mut before, mut since): (Vec<_>, Vec<_>) =
            self.cells.iter().copied().partition(|(last, _)| taken.is_none_or(|taken| *last < taken));
        let window = before.iter_mut().filter(|(last, _)| last + period > now);
        for (_, amount) in since.first_mut().into_iter().chain(window) {
            let part = left.min(*amount);
            (left, *amount) = (left - part, *amount - part);
        }
        self.cells = before.into_iter().chain(since).filter(|(_, amount)| *amount > 0).collect();
    }

    /// What a window of this period holds.
    pub fn sum(&self, period: u64, now: u64) -> u128 {
        self.cells.iter().filter(|(last, _)| last + period > now).map(|(_, amount)| amount).sum()
    }

    /// Whether no window holds anything.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// How long until a window of this period holds nothing.
    pub fn empty_after(&self, period: u64, now: u64) -> u64 {
        self.cells.last().map_or(0, |(last, _)| (last + period).saturating_sub(now))
    }

    /// How long it is kept.
    pub fn lasts(&self, now: u64) -> u64 {
        self.empty_after(self.asked.longest(), now).max(self.asked.known_until().saturating_sub(now))
    }
}
