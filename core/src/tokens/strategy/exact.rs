//! Tokens that are exactly the target: no change.

use rustc_hash::FxHashMap;

use super::Strategy;
use crate::tokens::{Amount, Draw, Order};

/// Takes one token that is exactly the target, or two, or as many as a bounded search finds; and nothing else.
#[derive(Clone, Copy, Debug)]
pub struct Exact {
    /// How many steps the search takes at most.
    pub steps: u32,
}

impl Default for Exact {
    fn default() -> Self {
        Exact { steps: 100_000 }
    }
}

impl Strategy for Exact {
    fn order(&self) -> Order {
        Order::Around
    }

    fn least(&self) -> usize {
        512
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn choose(&self, offered: &[Amount], target: Amount, most: usize, _: &mut Draw) -> Option<Vec<usize>> {
        if let Some(at) = offered.iter().position(|amount| *amount == target).filter(|_| most >= 1) {
            return Some(vec![at]);
        }
        let two = if most >= 2 { pair(offered, target) } else { None };
        two.or_else(|| self.search(offered, target, most))
    }
}

/// Two that are exactly the target.
pub(super) fn pair(offered: &[Amount], target: Amount) -> Option<Vec<usize>> {
    let mut seen = FxHashMap::default();
    for (at, amount) in offered.iter().enumerate() {
        if let Some(&other) = target.checked_sub(*amount).and_then(|rest| seen.get(&rest)) {
            return Some(vec![other, at]);
        }
        seen.insert(*amount, at);
    }
    None
}

impl Exact {
    /// Goes through the choices of larger tokens first, each with and without a token, and leaves those out that can
    /// come to nothing: what is too much, what the rest cannot make up for, and equal tokens in another order.
    fn search(self, offered: &[Amount], target: Amount, most: usize) -> Option<Vec<usize>> {
        let mut order: Vec<_> =
            offered.iter().copied().enumerate().filter(|(_, amount)| *amount <= target).collect();
        order.sort_by_key(|&(_, amount)| std::cmp::Reverse(amount));
        // What all from there on are worth.
        let mut rests: Vec<Amount> = vec![Amount::ZERO];
        for (_, amount) in order.iter().rev() {
            rests.push(rests.last().copied().unwrap_or_default().saturating_add(*amount));
        }
        rests.reverse();
        let mut chosen: Vec<usize> = Vec::new();
        let (mut missing, mut at) = (target, 0);
        for _ in 0..self.steps {
            let can = rests.get(at).is_some_and(|rest| *rest >= missing) && chosen.len() < most;
            match order.get(at).filter(|_| can) {
                Some(&(_, amount)) if amount <= missing => {
                    missing = missing.saturating_sub(amount);
                    chosen.push(at);
                    if missing.is_zero() {
                        let place = |at: usize| order.get(at).map(|&(place, _)| place);
                        return chosen.into_iter().map(place).collect();
                    }
                    at += 1;
                }
                Some(_) => at += 1,
                // The last that was chosen is left out, and its equals with it.
                None => {
                    let last = chosen.pop()?;
                    let (_, left) = order.get(last).copied()?;
                    missing = missing.saturating_add(left);
                    at = last + 1;
                    while order.get(at).is_some_and(|&(_, amount)| amount == left) {
                        at += 1;
                    }
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(offered: &[u64], target: u64, most: usize) -> Option<Vec<u64>> {
        let amounts: Vec<_> = offered.iter().map(|&amount| amount.into()).collect();
        let chosen = Exact::default().choose(&amounts, target.into(), most, &mut Draw::new(1));
        chosen.map(|chosen| chosen.into_iter().map(|at| offered[at]).collect())
    }

    #[test]
    fn one_then_two_then_more() {
        assert_eq!(choose(&[5, 3, 2], 5, 9), Some(vec![5]));
        assert_eq!(choose(&[4, 3, 2], 5, 9), Some(vec![3, 2]));
        assert_eq!(choose(&[5, 5], 10, 9), Some(vec![5, 5]), "two of a kind");
        assert_eq!(choose(&[5], 10, 9), None, "not the same one twice");
        assert_eq!(choose(&[9, 8, 4, 2, 1], 15, 9), Some(vec![9, 4, 2]));
        assert_eq!(choose(&[9, 8, 4, 2, 1], 15, 2), None, "within the cap");
        assert_eq!(choose(&[6, 6, 6], 7, 9), None);
    }

    #[test]
    fn the_search_ends() {
        // Of even amounts no odd sum comes: among equal ones that shows at once, and among others the steps end it.
        let equal = vec![2u64; 2_000];
        assert_eq!(choose(&equal, 2_001, 5_000), None);
        let many: Vec<u64> = (1..200).map(|at| 2 * at).collect();
        assert_eq!(choose(&many, 9_999, 5_000), None);
    }
}
