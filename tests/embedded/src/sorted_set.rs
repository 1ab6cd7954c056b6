//! A sorted set: members ordered by score, then by their bytes.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use rustc_hash::FxHashMap;

type Member = Arc<[u8]>;

/// Members with scores, in the order of Redis.
#[derive(Clone, Debug, Default)]
pub(crate) struct SortedSet {
    scores: FxHashMap<Member, f64>,
    order: BTreeSet<(ScoreOrder, Member)>,
}

/// One end of a range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ScoreBound {
    pub(crate) score: f64,
    pub(crate) exclusive: bool,
}

impl SortedSet {
    pub(crate) fn len(&self) -> usize {
        self.scores.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.scores.is_empty()
    }

    pub(crate) fn score(&self, member: &[u8]) -> Option<f64> {
        self.scores.get(member).copied()
    }

    /// Sets a member's score and tells whether the member is new.
    pub(crate) fn insert(&mut self, member: &[u8], score: f64) -> bool {
        // Adding zero turns the negative zero into the plain one, which is how small sets store it.
        let score = score + 0.0;
        if let Some((known, old)) = self.scores.get_key_value(member) {
            let (known, old) = (known.clone(), *old);
            self.order.remove(&(ScoreOrder::of(old), known.clone()));
            self.order.insert((ScoreOrder::of(score), known.clone()));
            self.scores.insert(known, score);
            return false;
        }
        let member: Member = Arc::from(member);
        self.order.insert((ScoreOrder::of(score), member.clone()));
        self.scores.insert(member, score);
        true
    }

    pub(crate) fn remove(&mut self, member: &[u8]) -> bool {
        let Some((known, score)) = self.scores.remove_entry(member) else { return false };
        self.order.remove(&(ScoreOrder::of(score), known))
    }

    pub(crate) fn rank(&self, member: &[u8]) -> Option<usize> {
        let (known, score) = self.scores.get_key_value(member)?;
        Some(self.order.range(..(ScoreOrder::of(*score), known.clone())).count())
    }

    /// Members with scores from the lowest to the highest.
    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], f64)> {
        self.order.iter().map(|(score, member)| (&member[..], score.value()))
    }

    /// Members whose score lies within the bounds, from the lowest to the highest.
    pub(crate) fn within(
        &self,
        low: ScoreBound,
        high: ScoreBound,
    ) -> impl DoubleEndedIterator<Item = (&[u8], f64)> {
        // A range that ends before it begins is empty to Redis, and a panic to the tree.
        let range = if low.floor() < high.ceiling() {
            let start = Bound::Included((low.floor(), Member::from(&[][..])));
            let end = Bound::Excluded((high.ceiling(), Member::from(&[][..])));
            self.order.range((start, end))
        } else {
            Default::default()
        };
        range.map(|(score, member)| (&member[..], score.value()))
    }
}

impl ScoreBound {
    /// The lowest place of the order that a range beginning here holds.
    fn floor(self) -> ScoreOrder {
        let order = ScoreOrder::of(self.score + 0.0);
        if self.exclusive { order.next() } else { order }
    }

    /// The lowest place of the order above a range ending here.
    fn ceiling(self) -> ScoreOrder {
        let order = ScoreOrder::of(self.score + 0.0);
        if self.exclusive { order } else { order.next() }
    }
}

/// The bits of a score, turned so that they order as the scores do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ScoreOrder(u64);

const SIGN: u64 = 1 << 63;

impl ScoreOrder {
    fn of(score: f64) -> Self {
        let bits = score.to_bits();
        Self(if bits & SIGN == 0 { bits | SIGN } else { !bits })
    }

    fn value(self) -> f64 {
        f64::from_bits(if self.0 & SIGN == 0 { !self.0 } else { self.0 & !SIGN })
    }

    fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> SortedSet {
        let mut set = SortedSet::default();
        for (member, score) in [("b", 1.0), ("a", 1.0), ("z", -5.0), ("m", f64::INFINITY), ("n", 0.5)] {
            assert!(set.insert(member.as_bytes(), score));
        }
        set
    }

    fn names<'a>(members: impl Iterator<Item = (&'a [u8], f64)>) -> String {
        members.map(|(member, _)| String::from_utf8_lossy(member).into_owned()).collect()
    }

    fn bound(score: f64, exclusive: bool) -> ScoreBound {
        ScoreBound { score, exclusive }
    }

    #[test]
    fn order_is_by_score_then_by_bytes() {
        let set = sample();
        assert_eq!(names(set.iter()), "znabm");
        assert_eq!(names(set.iter().rev()), "mbanz");
        assert_eq!(set.rank(b"a"), Some(2));
        assert_eq!(set.rank(b"q"), None);
        assert_eq!(set.score(b"z"), Some(-5.0));
    }

    #[test]
    fn ranges_keep_to_their_bounds() {
        let set = sample();
        let least = bound(f64::NEG_INFINITY, false);
        let most = bound(f64::INFINITY, false);
        assert_eq!(names(set.within(least, most)), "znabm");
        assert_eq!(names(set.within(bound(0.5, true), bound(1.0, false))), "ab");
        assert_eq!(names(set.within(bound(0.5, false), bound(1.0, true))), "n");
        assert_eq!(names(set.within(bound(1.0, true), bound(f64::INFINITY, true))), "");
        assert_eq!(names(set.within(bound(3.0, false), bound(2.0, false))), "");
    }

    #[test]
    fn a_new_score_moves_the_member() {
        let mut set = sample();
        assert!(!set.insert(b"z", 7.0));
        assert_eq!(names(set.iter()), "nabzm");
        assert!(set.remove(b"z"));
        assert!(!set.remove(b"z"));
        assert_eq!(set.len(), 4);
        assert!(!set.is_empty());
    }

    #[test]
    fn the_negative_zero_is_zero() {
        let mut set = SortedSet::default();
        set.insert(b"b", -0.0);
        set.insert(b"a", 0.0);
        assert_eq!(names(set.iter()), "ab");
        assert!(set.score(b"b").is_some_and(|score| score.is_sign_positive()));
    }
}
