//! The fewest tokens, and none of them where a smaller one would do.

use super::Strategy;
use super::exact::pair;
use super::smallest_sufficient::{fewest, single};
use crate::tokens::{Amount, Draw, Order};

/// Takes as few tokens as suffice: the smallest that does so alone, or two that are exactly the target, if they are among those
/// offered; else the largest, and in the place of each, from the last on, the smallest with which they still do. So no other
/// token could stand in the place of a larger one; other choices of as few may have less change still.
#[derive(Clone, Copy, Debug, Default)]
pub struct BestFit;

impl Strategy for BestFit {
    fn order(&self) -> Order {
        Order::Around
    }

    fn choose(&self, offered: &[Amount], target: Amount, most: usize, draw: &mut Draw) -> Option<Vec<usize>> {
        if let Some(at) = single(offered, target).filter(|_| most > 0) {
            return Some(vec![at]);
        }
        let mut chosen = fewest(offered, target, most, draw)?;
        if chosen.len() == 2
            && let Some(pair) = pair(offered, target)
        {
            return Some(pair);
        }
        let amount = |at: usize| offered.get(at).copied().unwrap_or_default();
        let mut others: Vec<usize> = (0..offered.len()).filter(|at| !chosen.contains(at)).collect();
        others.sort_unstable_by_key(|&at| amount(at));
        // All but the last do not suffice: so no sum here is too large to be said.
        let (last, first) = chosen.split_last()?;
        let missing = target.saturating_sub(first.iter().map(|&at| amount(at)).sum::<Amount>());
        let mut change = amount(*last).saturating_sub(missing);
        for place in chosen.iter_mut().rev() {
            let here = amount(*place);
            let first = others.partition_point(|&at| amount(at) < here.saturating_sub(change));
            let Some(other) = others.get_mut(first).filter(|other| amount(**other) < here) else { continue };
            change = change.saturating_sub(here.saturating_sub(amount(*other)));
            std::mem::swap(place, other);
            others.sort_unstable_by_key(|&at| amount(at));
        }
        Some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_ones_take_the_place_of_larger_ones_while_they_suffice() {
        for (offered, target, best) in [
            ([90u64, 80, 70, 40, 16, 5], 105u64, &[16u64, 90][..]),
            ([60, 50, 45, 10, 4, 1], 65, &[10, 60]),
            ([60, 50, 40, 25, 4, 1], 65, &[25, 40]),
            ([60, 57, 50, 20, 12, 9], 130, &[20, 50, 60]),
        ] {
            let offered = offered.map(Amount::from);
            let chosen = BestFit.choose(&offered, target.into(), 9, &mut Draw::new(1)).unwrap();
            let mut chosen: Vec<_> = chosen.iter().map(|&at| offered[at]).collect();
            chosen.sort_unstable();
            assert_eq!(chosen, best.iter().map(|&amount| amount.into()).collect::<Vec<Amount>>(), "{target}");
        }
    }
}
