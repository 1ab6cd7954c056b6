//! How well strategies choose, beside the crates bdk_coin_select and rust-coinselect: what they make of the same wallets.
//! Every figure is the same in each run.

use bdk_coin_select::metrics::Changeless;
use bdk_coin_select::{
    Candidate, ChangePolicy, CoinSelector, DrainWeights, FeeRate, Target, TargetFee, TargetOutputs,
};
use leasehold::tokens::{Amount, Draw, Order, named};
use rust_coinselect::algorithms::bnb::select_coin_bnb;
use rust_coinselect::algorithms::coingrinder::select_coin_coingrinder;
use rust_coinselect::algorithms::fifo::select_coin_fifo;
use rust_coinselect::algorithms::lowestlarger::select_coin_lowestlarger;
use rust_coinselect::types::{
    CoinSelectionOpt, ExcessStrategy, OutputGroup, SelectionError, SelectionOutput,
};

use crate::Anyhow;
use crate::series::{Pace, Series};

/// Tokens that a wallet begins with, and the most that one is worth.
const TOKENS: usize = 300;
const LARGEST: u64 = 100_000;
/// Spends of a wallet that lives, each of which follows a deposit.
const SPENDS: usize = 10_000;
/// Wallets that are judged once, and the most tokens of one.
const WALLETS: usize = 200;
const MOST: u64 = 60;
/// Rounds of bdk's search: of ours, a step is far less.
const ROUNDS: usize = 20_000;

/// Which of these are taken for a target; nothing if it finds no choice.
type Choose = fn(&[u64], u64, &mut Draw) -> Option<Vec<usize>>;

const SUBJECTS: [(&str, &str, Choose); 12] = [
    ("first_fit_random", "leasehold", |of, target, draw| ours("first_fit_random", of, target, draw)),
    ("fewest_inputs", "leasehold", |of, target, draw| ours("fewest_inputs", of, target, draw)),
    ("exact", "leasehold", |of, target, draw| {
        ours("exact", of, target, draw).or_else(|| ours("fewest_inputs", of, target, draw))
    }),
    ("smallest_sufficient", "leasehold", |of, target, draw| ours("smallest_sufficient", of, target, draw)),
    ("best_fit", "leasehold", |of, target, draw| ours("best_fit", of, target, draw)),
    ("random_improve", "leasehold", |of, target, draw| ours("random_improve", of, target, draw)),
    ("boltzmann", "leasehold", |of, target, draw| ours("boltzmann", of, target, draw)),
    ("consolidate", "leasehold", |of, target, draw| ours("consolidate", of, target, draw)),
    ("oldest_first", "leasehold", |of, target, draw| ours("oldest_first", of, target, draw)),
    ("largest first", "bdk_coin_select", |of, target, _| largest_first(of, target)),
    ("lowest larger", "rust-coinselect", |of, target, _| theirs(select_coin_lowestlarger, of, target)),
    ("first in, first out", "rust-coinselect", |of, target, _| theirs(select_coin_fifo, of, target)),
];

/// Measures and writes all figures.
pub fn measure(pace: Pace) -> Anyhow<()> {
    for (name, subject, choose) in SUBJECTS {
        live(name, subject, choose, pace.count(SPENDS));
    }
    judge_fewest(pace.count(WALLETS));
    judge_exact(pace.count(WALLETS));
    Ok(())
}

/// A wallet that takes in tokens and spends them.
fn live(name: &str, subject: &'static str, choose: Choose, spends: usize) {
    let mut draw = Draw::new(7);
    let mut choices = Draw::new(11);
    let mut wallet: Vec<u64> = (0..TOKENS).map(|_| amount(&mut draw)).collect();
    let (mut done, mut inputs, mut whole) = (0usize, 0usize, 0usize);
    for _ in 0..spends {
        wallet.push(amount(&mut draw));
        let target = amount(&mut draw);
        let Some(mut chosen) = choose(&wallet, target, &mut choices) else { continue };
        chosen.sort_unstable();
        let sum: u64 = chosen.iter().filter_map(|&at| wallet.get(at)).sum();
        assert!(sum >= target, "{subject} {name}: {sum} of {target}");
        for at in chosen.iter().rev() {
            wallet.remove(*at);
        }
        wallet.extend((sum > target).then_some(sum - target));
        done += 1;
        inputs += chosen.len();
        whole += usize::from(sum == target);
    }
    let tell = |what: &str, unit: &str, figure: f64| {
        let mut series = Series::new(format!("strategy {name}: {what}"), subject);
        series.add(figure);
        series.print(unit);
    };
    tell("inputs of a spend", "tokens", inputs as f64 / done.max(1) as f64);
    tell("spends without change", "%", 100.0 * whole as f64 / done.max(1) as f64);
    tell("tokens in the end", "tokens", wallet.len() as f64);
}

/// In how many wallets no other choice has fewer tokens.
fn judge_fewest(wallets: usize) {
    let mut draw = Draw::new(3);
    let mut series = Series::new("strategy fewest_inputs: wallets in which no peer has fewer", "leasehold");
    let best = (0..wallets).filter(|_| {
        let (wallet, target) = wallet(&mut draw);
        let Some(own) = ours("fewest_inputs", &wallet, target, &mut draw) else { return true };
        let peers = [
            largest_first(&wallet, target),
            theirs(select_coin_coingrinder, &wallet, target),
            theirs(select_coin_lowestlarger, &wallet, target),
            theirs(select_coin_bnb, &wallet, target),
        ];
        peers.into_iter().flatten().all(|chosen| chosen.len() >= own.len())
    });
    series.add(100.0 * best.count() as f64 / wallets.max(1) as f64);
    series.print("%");
}

/// In how many wallets a choice without change is found.
fn judge_exact(wallets: usize) {
    let searches: [(&'static str, Choose); 3] = [
        ("leasehold", |of, target, draw| ours("exact", of, target, draw)),
        ("bdk_coin_select", |of, target, _| without_change(of, target)),
        ("rust-coinselect", |of, target, _| theirs(select_coin_bnb, of, target)),
    ];
    for (subject, search) in searches {
        let (mut draw, mut choices) = (Draw::new(5), Draw::new(1));
        let mut series = Series::new("strategy exact: wallets without change", subject);
        let found = (0..wallets).filter(|_| {
            let (wallet, target) = wallet(&mut draw);
            let chosen = search(&wallet, target, &mut choices);
            chosen.is_some_and(|chosen| chosen.iter().filter_map(|&at| wallet.get(at)).sum::<u64>() == target)
        });
        series.add(found.count() as f64);
        series.print("wallets");
    }
}

/// A wallet, and a target of which every second one is the sum of a few of its tokens.
fn wallet(draw: &mut Draw) -> (Vec<u64>, u64) {
    let wallet: Vec<u64> = (0..10 + draw.below(MOST - 10)).map(|_| amount(draw)).collect();
    let some = wallet.iter().take(2 + draw.below(6) as usize).sum();
    let target = if draw.below(2) == 0 { some } else { 1 + draw.below(some) };
    (wallet, target)
}

/// Many are small and few are large.
fn amount(draw: &mut Draw) -> u64 {
    let most = 1 + draw.below(LARGEST);
    1 + draw.below(most)
}

/// A strategy of ours, to which tokens are offered in the order that it wants.
fn ours(name: &str, wallet: &[u64], target: u64, draw: &mut Draw) -> Option<Vec<usize>> {
    let strategy = named(name).ok()?;
    let mut order: Vec<usize> = (0..wallet.len()).collect();
    match strategy.order() {
        Order::Oldest => {}
        Order::Spread => {
            for at in (1..order.len()).rev() {
                order.swap(at, draw.below(at as u64 + 1) as usize);
            }
        }
        Order::Largest | Order::Around | Order::Ends => {
            order.sort_by_key(|&at| std::cmp::Reverse(wallet.get(at)))
        }
    }
    let offered: Vec<Amount> =
        order.iter().filter_map(|&at| wallet.get(at)).map(|&amount| amount.into()).collect();
    let chosen = strategy.choose(&offered, target.into(), wallet.len(), draw)?;
    Some(chosen.into_iter().filter_map(|at| order.get(at).copied()).collect())
}

/// A target without a fee.
fn without_fee(value: u64) -> Target {
    let outputs = TargetOutputs { value_sum: value, weight_sum: 0, n_outputs: 1 };
    Target { fee: TargetFee { rate: FeeRate::ZERO, replace: None }, outputs }
}

fn candidates(wallet: &[u64]) -> Vec<Candidate> {
    wallet.iter().map(|&value| Candidate { value, weight: 1, input_count: 1, is_segwit: false }).collect()
}

fn largest_first(wallet: &[u64], target: u64) -> Option<Vec<usize>> {
    let candidates = candidates(wallet);
    let mut selector = CoinSelector::new(&candidates);
    selector.sort_candidates_by_descending_value_pwu();
    selector.select_until_target_met(without_fee(target)).ok()?;
    Some(selector.selected_indices().iter().copied().collect())
}

fn without_change(wallet: &[u64], target: u64) -> Option<Vec<usize>> {
    let candidates = candidates(wallet);
    let mut selector = CoinSelector::new(&candidates);
    let change_policy = ChangePolicy::min_value(DrainWeights::NONE, 1);
    selector.run_bnb(Changeless { target: without_fee(target), change_policy }, ROUNDS).ok()?;
    Some(selector.selected_indices().iter().copied().collect())
}

fn theirs(
    choose: fn(&[OutputGroup], &CoinSelectionOpt) -> Result<SelectionOutput, SelectionError>,
    wallet: &[u64],
    target: u64,
) -> Option<Vec<usize>> {
    let group = |(at, &value): (usize, &u64)| OutputGroup {
        value,
        weight: 0,
        input_count: 1,
        creation_sequence: Some(at as u32),
    };
    let groups: Vec<_> = wallet.iter().enumerate().map(group).collect();
    let options = CoinSelectionOpt {
        target_value: target,
        // It takes no 0; of what weighs nothing there is no fee.
        target_feerate: 1.0,
        long_term_feerate: None,
        min_absolute_fee: 0,
        base_weight: 0,
        change_weight: 0,
        change_cost: 0,
        min_change_value: 1,
        excess_strategy: ExcessStrategy::ToChange,
    };
    choose(&groups, &options).ok().map(|output| output.selected_inputs)
}
