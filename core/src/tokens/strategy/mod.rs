//! Which of the tokens on offer are asked for. One file for each way to choose.

mod best_fit;
mod boltzmann;
mod consolidate;
mod exact;
mod fewest_inputs;
mod first_fit_random;
mod oldest_first;
mod random_improve;
mod smallest_sufficient;

use std::fmt;
use std::sync::Arc;

pub use best_fit::BestFit;
pub use boltzmann::Boltzmann;
pub use consolidate::Consolidate;
pub use exact::Exact;
pub use fewest_inputs::FewestInputs;
pub use first_fit_random::FirstFitRandom;
pub use oldest_first::OldestFirst;
pub use random_improve::RandomImprove;
pub use smallest_sufficient::SmallestSufficient;

use super::{Amount, Draw, Order};
use crate::error::{Error, Result};

/// A way to choose among tokens. What it chooses may be lost to others; then it is asked again for what is still missing,
/// and the rest is kept.
pub trait Strategy: fmt::Debug + Send + Sync {
    /// In which order tokens are offered.
    fn order(&self) -> Order {
        Order::Spread
    }

    /// How many are offered at least, where there are so many; they cover the target in any case.
    fn least(&self) -> usize {
        0
    }

    /// Whether it would rather have nothing than another choice: otherwise the fewest tokens are chosen where it has
    /// found none within the bounds.
    fn is_strict(&self) -> bool {
        false
    }

    /// Which of the offered tokens are asked for, by their places in the list: at most `most`, and worth at least the
    /// target. Nothing if there is no such choice.
    fn choose(&self, offered: &[Amount], target: Amount, most: usize, draw: &mut Draw) -> Option<Vec<usize>>;
}

/// One that is shared, such as [`named`] gives.
impl<T: Strategy + ?Sized> Strategy for Arc<T> {
    fn order(&self) -> Order {
        (**self).order()
    }

    fn least(&self) -> usize {
        (**self).least()
    }

    fn is_strict(&self) -> bool {
        (**self).is_strict()
    }

    fn choose(&self, offered: &[Amount], target: Amount, most: usize, draw: &mut Draw) -> Option<Vec<usize>> {
        (**self).choose(offered, target, most, draw)
    }
}

/// The names of all strategies, the same in every language.
pub const STRATEGIES: [&str; 9] = [
    "first_fit_random",
    "fewest_inputs",
    "exact",
    "smallest_sufficient",
    "best_fit",
    "random_improve",
    "boltzmann",
    "consolidate",
    "oldest_first",
];

/// The strategy of this name, with its defaults.
///
/// # Errors
/// `invalid_argument` if there is none: see [`STRATEGIES`].
pub fn named(name: &str) -> Result<Arc<dyn Strategy>> {
    Ok(match name {
        "first_fit_random" => Arc::new(FirstFitRandom),
        "fewest_inputs" => Arc::new(FewestInputs),
        "exact" => Arc::new(Exact::default()),
        "smallest_sufficient" => Arc::new(SmallestSufficient),
        "best_fit" => Arc::new(BestFit),
        "random_improve" => Arc::new(RandomImprove),
        "boltzmann" => Arc::new(Boltzmann::default()),
        "consolidate" => Arc::new(Consolidate::default()),
        "oldest_first" => Arc::new(OldestFirst),
        other => {
            return Err(Error::invalid("", format_args!("\"{other}\" is none of {}", STRATEGIES.join(", "))));
        }
    })
}

/// The first of them that cover the target.
fn first_to_cover(offered: &[Amount], target: Amount, most: usize) -> Option<Vec<usize>> {
    let mut sum = Amount::ZERO;
    for (at, amount) in offered.iter().enumerate().take(most) {
        sum = sum.saturating_add(*amount);
        if sum >= target {
            return Some((0..=at).collect());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Strategy as _;
    use super::*;

    #[test]
    fn strategies_have_names() {
        for name in STRATEGIES {
            let shown = format!("{:?}", named(name).unwrap());
            let type_name = shown.split(' ').next().unwrap_or_default().to_lowercase();
            assert_eq!(type_name, name.replace('_', ""));
        }
        assert!(named("greedy").unwrap_err().message().contains("oldest_first"));
    }

    fn sum(offered: &[Amount], chosen: &[usize]) -> Amount {
        chosen.iter().map(|&at| offered[at]).sum()
    }

    fn sorted(order: Order, mut amounts: Vec<Amount>) -> Vec<Amount> {
        amounts.sort_unstable();
        if matches!(order, Order::Largest | Order::Around | Order::Ends) {
            amounts.reverse();
        }
        amounts
    }

    /// The least number of tokens that cover the target, and of those so many the least sum, by trying all.
    fn best(offered: &[Amount], target: Amount) -> Option<(usize, Amount)> {
        let subsets = 0..1u32 << offered.len();
        let chosen = |set: u32| (0..offered.len()).filter(move |at| set >> at & 1 == 1).collect::<Vec<_>>();
        let covers = |set| Some(chosen(set)).filter(|chosen| sum(offered, chosen) >= target);
        subsets.filter_map(covers).map(|chosen| (chosen.len(), sum(offered, &chosen))).min()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_chosen_is_offered_covers_the_target_and_keeps_to_the_cap(
            amounts in prop::collection::vec(1u64..40, 0..40),
            target in 1u64..120,
            most in 1usize..12,
            seed in any::<u64>(),
        ) {
            let target = Amount::from(target);
            for name in STRATEGIES {
                let strategy = named(name).unwrap();
                let offered = sorted(strategy.order(), amounts.iter().map(|&amount| amount.into()).collect());
                let chosen = strategy.choose(&offered, target, most, &mut Draw::new(seed));
                prop_assert_eq!(&chosen, &strategy.choose(&offered, target, most, &mut Draw::new(seed)), "{}", name);
                let Some(mut chosen) = chosen else { continue };
                prop_assert!(chosen.len() <= most, "{}", name);
                prop_assert!(sum(&offered, &chosen) >= target, "{}", name);
                let count = chosen.len();
                chosen.sort_unstable();
                chosen.dedup();
                prop_assert_eq!(chosen.len(), count, "{}: each once", name);
                prop_assert!(chosen.iter().all(|&at| at < offered.len()), "{}", name);
            }
        }

        #[test]
        fn promises_of_the_fewest_and_of_no_change_are_kept(
            amounts in prop::collection::vec(1u64..40, 1..11),
            target in 1u64..150,
        ) {
            let target = Amount::from(target);
            let offered = sorted(Order::Largest, amounts.iter().map(|&amount| amount.into()).collect());
            let best = best(&offered, target);
            let draw = &mut Draw::new(1);
            for name in ["fewest_inputs", "best_fit"] {
                let chosen = named(name).unwrap().choose(&offered, target, 99, draw);
                prop_assert_eq!(chosen.as_ref().map(Vec::len), best.map(|(count, _)| count), "{}", name);
            }
            if let Some((1, least)) = best {
                for name in ["best_fit", "smallest_sufficient"] {
                    let chosen = named(name).unwrap().choose(&offered, target, 99, draw).unwrap();
                    prop_assert_eq!((chosen.len(), sum(&offered, &chosen)), (1, least), "{}", name);
                }
            }
            let exists = (0..1u32 << offered.len())
                .any(|set| (0..offered.len()).filter(|at| set >> at & 1 == 1).map(|at| offered[at]).sum::<Amount>() == target);
            let chosen = Exact::default().choose(&offered, target, 99, draw);
            prop_assert_eq!(chosen.is_some(), exists);
            prop_assert!(chosen.is_none_or(|chosen| sum(&offered, &chosen) == target));
        }
    }
}
