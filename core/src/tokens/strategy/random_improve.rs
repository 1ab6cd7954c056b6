//! Random tokens, and some more, so that the change is about as much as was asked for (CIP-2 of Cardano).

use super::Strategy;
use crate::tokens::{Amount, Draw};

/// Draws tokens at random until they suffice, and then goes on while that brings the sum nearer to twice the target, up to
/// three times of it. So the change is useful for a payment like this one, and the wallet keeps its spread of amounts.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomImprove;

impl Strategy for RandomImprove {
    fn least(&self) -> usize {
        64
    }

    fn choose(&self, offered: &[Amount], target: Amount, most: usize, draw: &mut Draw) -> Option<Vec<usize>> {
        let mut order: Vec<usize> = (0..offered.len()).collect();
        draw.shuffle(&mut order);
        let (mut chosen, mut sum) = (Vec::new(), Amount::ZERO);
        let (ideal, highest) =
            (target.saturating_add(target), target.saturating_add(target).saturating_add(target));
        for at in order {
            let amount = offered.get(at).copied()?;
            let after = sum.saturating_add(amount);
            let nearer = after.distance(ideal) < sum.distance(ideal) && after <= highest;
            if sum < target || nearer {
                if chosen.len() >= most {
                    break;
                }
                chosen.push(at);
                sum = after;
            } else {
                // The first draw that would not better it ends it.
                break;
            }
        }
        (sum >= target).then_some(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_change_is_about_the_target() {
        let offered = vec![Amount::from(10u64); 100];
        let chosen = RandomImprove.choose(&offered, 50u64.into(), 99, &mut Draw::new(3)).unwrap();
        assert_eq!(chosen.len(), 10, "twice the target");
        let chosen = RandomImprove.choose(&offered, 50u64.into(), 7, &mut Draw::new(3)).unwrap();
        assert_eq!(chosen.len(), 7, "within the cap");
        assert_eq!(RandomImprove.choose(&offered, 50u64.into(), 4, &mut Draw::new(3)), None);
    }
}
