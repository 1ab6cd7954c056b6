//! The order in which a process walks through a wallet.
//!
//! Tokens are dealt by a hash into stretches, in every process alike, and each process walks along a stretch until
//! somebody else turns out to be there; then it goes on in another, at random, among those where it met others least
//! often. So processes that share a wallet get out of each other's way without knowing of each other.

use std::collections::VecDeque;

use super::Draw;
use super::draw::scattered;

/// How many there are: as many as processes may share a wallet well, and no more, since each that is entered may turn out
/// to be another's.
const COUNT: usize = 32;

/// Tokens by their places.
#[derive(Debug)]
pub(super) struct Stretches {
    all: Vec<Stretch>,
    current: usize,
    draw: Draw,
}

#[derive(Clone, Debug, Default)]
struct Stretch {
    places: VecDeque<u32>,
    /// How often others were met there.
    met: u32,
}

impl Stretches {
    /// None has tokens yet. `seed` says where this process begins.
    pub fn new(seed: u64) -> Self {
        let mut draw = Draw::new(seed);
        let current = draw.below(COUNT as u64) as usize;
        Stretches { all: vec![Stretch::default(); COUNT], current, draw }
    }

    /// The next token.
    pub fn pop(&mut self) -> Option<u32> {
        let next = self.all.get_mut(self.current).and_then(|stretch| stretch.places.pop_front());
        next.or_else(|| {
            self.turn();
            self.all.get_mut(self.current).and_then(|stretch| stretch.places.pop_front())
        })
    }

    /// A token of this turn comes last in its stretch.
    pub fn push_last(&mut self, place: u32, turn: u64) {
        if let Some(stretch) = self.stretch(turn) {
            stretch.places.push_back(place);
        }
    }

    /// A token of this turn comes first in its stretch.
    pub fn push_first(&mut self, place: u32, turn: u64) {
        if let Some(stretch) = self.stretch(turn) {
            stretch.places.push_front(place);
        }
    }

    /// Keeps these only.
    pub fn retain(&mut self, mut keep: impl FnMut(u32) -> bool) {
        self.all.iter_mut().for_each(|stretch| stretch.places.retain(|&place| keep(place)));
    }

    /// Another was met at a token of this turn: the walk goes on elsewhere.
    pub fn meet(&mut self, turn: u64) {
        let at = Self::of(turn);
        if let Some(stretch) = self.stretch(turn) {
            stretch.met = stretch.met.saturating_add(1);
        }
        if at == self.current {
            self.turn();
        }
    }

    /// Where a token has its place in the walk: of two, the lower comes first. The same on every machine, whatever the width
    /// of its words: else a process in wasm and one in Node would deal a wallet out otherwise.
    pub fn turn_of(id: &str) -> u64 {
        let word = |chunk: &[u8]| chunk.iter().rev().fold(0u64, |word, &byte| (word << 8) | u64::from(byte));
        let mix = |turn: u64, chunk: &[u8]| scattered(turn ^ word(chunk));
        id.as_bytes().chunks(8).fold(scattered(id.len() as u64), mix)
    }

    fn turn(&mut self) {
        let open = || self.all.iter().enumerate().filter(|(_, stretch)| !stretch.places.is_empty());
        let Some(least) = open().map(|(_, stretch)| stretch.met).min() else { return };
        let count = open().filter(|(_, stretch)| stretch.met == least).count();
        let at = self.draw.below(count as u64) as usize;
        let open = self.all.iter().enumerate().filter(|(_, stretch)| !stretch.places.is_empty());
        if let Some((next, _)) = open.filter(|(_, stretch)| stretch.met == least).nth(at) {
            self.current = next;
        }
    }

    fn stretch(&mut self, turn: u64) -> Option<&mut Stretch> {
        self.all.get_mut(Self::of(turn))
    }

    fn of(turn: u64) -> usize {
        (turn >> 59) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(seed: u64, count: u32) -> Stretches {
        let mut stretches = Stretches::new(seed);
        for place in 0..count {
            stretches.push_last(place, Stretches::turn_of(&place.to_string()));
        }
        stretches
    }

    #[test]
    fn every_token_comes_once() {
        let mut stretches = filled(1, 1_000);
        let mut all: Vec<_> = std::iter::from_fn(|| stretches.pop()).collect();
        all.sort_unstable();
        assert_eq!(all, (0..1_000).collect::<Vec<_>>());
        stretches.push_last(1, 5);
        stretches.push_first(2, 5);
        assert_eq!((stretches.pop(), stretches.pop(), stretches.pop()), (Some(2), Some(1), None));
    }

    #[test]
    fn processes_begin_at_places_of_their_own() {
        // By chi-square: of 32 places and 3,200 processes each has about 100.
        let mut counts = [0i64; COUNT];
        for seed in 0..3_200 {
            counts[Stretches::new(scattered(seed)).current] += 1;
        }
        let chi: i64 = counts.iter().map(|count| (count - 100) * (count - 100)).sum::<i64>() / 100;
        assert!(chi < 62, "{chi}: above what one in a thousand fair draws gives");
    }

    #[test]
    fn who_meets_others_goes_elsewhere() {
        let mut stretches = filled(3, 10_000);
        let first = stretches.current;
        stretches.meet((first as u64) << 59);
        assert_ne!(stretches.current, first);
        // Back only when everything else is done.
        let mut rest: Vec<_> = std::iter::from_fn(|| stretches.pop()).collect();
        let own = rest.split_off(rest.len() - 50);
        let of = |place: &u32| Stretches::of(Stretches::turn_of(&place.to_string()));
        assert!(own.iter().all(|place| of(place) == first));
    }
}
