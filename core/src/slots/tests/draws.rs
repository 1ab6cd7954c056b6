//! The odds of the draws, by chi-square with fixed seeds.

use std::collections::BTreeMap;

use super::scene::{Scene, TTL, claim, id, release};
use crate::nonce::Outcome;
use crate::slots::{Choice, Envelope, Reply, Request, SlotSpec, Strategy};

const ROUNDS: u32 = 40_000;

/// How often each slot was drawn when a pool of these weights grants one slot at a time.
fn drawn(weights: &[u8], strategy: Strategy) -> BTreeMap<String, u32> {
    drawn_behind(0, weights, strategy)
}

/// The same of a claim that stands behind so many others in its envelope.
fn drawn_behind(others: usize, weights: &[u8], strategy: Strategy) -> BTreeMap<String, u32> {
    let mut scene = Scene::bare();
    let spec = |(at, &weight): (usize, &u8)| SlotSpec { slot: id(&format!("s{at:02}")), weight };
    let slots = weights.iter().enumerate().map(spec).collect();
    scene.ask(Request::Define { slots, longest: TTL, doubt_rest: 0 });
    let mut counts = BTreeMap::new();
    let mut seed = 1u64;
    for _ in 0..ROUNDS {
        // Seeds as independent as a client's are.
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let requests = vec![claim(Choice::Any { strategy, least: 1, most: 1 }); others + 1];
        let envelope = Envelope { seed: (seed >> 32) as u32, requests, ..Envelope::default() };
        let crate::slots::Answer::Performed(performed) = scene.apply(&envelope) else { panic!("stale") };
        for (turn, reply) in performed.replies.iter().enumerate() {
            let Reply::Granted(grants) = reply else { panic!("{performed:?}") };
            if turn == others {
                *counts.entry(grants[0].slot.to_string()).or_default() += 1;
            }
            scene.ask(release(&grants[0], Outcome::Unused));
        }
        scene.pass(1);
    }
    counts
}

/// The chi-square statistic of the draws against these weights.
fn chi_square(weights: &[u8], counts: &BTreeMap<String, u32>) -> f64 {
    let total: f64 = weights.iter().map(|&weight| f64::from(weight)).sum();
    let term = |(at, &weight): (usize, &u8)| {
        let expected = f64::from(ROUNDS) * f64::from(weight) / total;
        let seen = f64::from(*counts.get(&format!("s{at:02}")).unwrap_or(&0));
        (seen - expected).powi(2) / expected
    };
    weights.iter().enumerate().map(term).sum()
}

/// Exceeded by chance once in a million draws of so many slots (Wilson and Hilferty's approximation).
fn bound(slots: usize) -> f64 {
    let freedom = (slots - 1) as f64;
    let part = 2.0 / (9.0 * freedom);
    freedom * (1.0 - part + 4.75 * part.sqrt()).powi(3)
}

#[test]
fn random_is_uniform() {
    for slots in [2, 7, 50] {
        let weights = vec![1; slots];
        let statistic = chi_square(&weights, &drawn(&weights, Strategy::Random));
        assert!(statistic < bound(slots), "{slots} slots: {statistic}");
    }
}

// Claims of one envelope take what stands in a row, and each of them all the same any slot as likely as another.
#[test]
fn random_is_uniform_behind_others_of_the_envelope() {
    for (others, slots) in [(1, 2), (3, 7), (19, 50)] {
        let weights = vec![1; slots];
        let statistic = chi_square(&weights, &drawn_behind(others, &weights, Strategy::Random));
        assert!(statistic < bound(slots), "{others} before it, {slots} slots: {statistic}");
    }
}

#[test]
fn random_does_not_look_at_weights() {
    let weights = [1, 2, 40, 255];
    let statistic = chi_square(&[1, 1, 1, 1], &drawn(&weights, Strategy::Random));
    assert!(statistic < bound(4), "{statistic}");
}

#[test]
fn weighted_draws_follow_the_weights() {
    for weights in [
        &[1, 1][..],
        &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
        &[1, 255],
        &[128, 127, 64, 63, 1],
        &[2, 3, 3, 200, 255],
    ] {
        let statistic = chi_square(weights, &drawn(weights, Strategy::Weighted));
        assert!(statistic < bound(weights.len()), "{weights:?}: {statistic}");
    }
}

#[test]
fn the_test_would_notice() {
    let weights = [3, 4, 5];
    let statistic = chi_square(&weights, &drawn(&weights, Strategy::Random));
    assert!(statistic > bound(3), "uniform draws pass for weighted ones: {statistic}");
}
