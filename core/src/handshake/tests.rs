//! Chains of thieves, against every order of contenders and against Stirling numbers.

use proptest::prelude::*;

use super::*;
use crate::Code;
use crate::{MILLISECOND, SECOND};

/// c(K, n) for n from 1: so many of the K! orders of K contenders have n records. Exact to K = 33.
fn stirling(depth: u128) -> Vec<u128> {
    let mut numbers = vec![1];
    for others in 1..depth {
        let grown = |n: usize| {
            let shorter = if n == 0 { 0 } else { numbers[n - 1] };
            shorter + others * numbers.get(n).unwrap_or(&0)
        };
        numbers = (0..=numbers.len()).map(grown).collect();
    }
    numbers
}

fn factorial(number: u128) -> u128 {
    (1..=number).product()
}

/// How many of the K! orders have more than n records, for n from 1.
fn longer(depth: u128) -> Vec<u128> {
    let numbers = stirling(depth);
    (1..=numbers.len()).map(|n| numbers[n..].iter().sum()).collect()
}

/// How many holders there are in a row when contenders of these priorities come in this order.
fn chain(priorities: &[u32]) -> usize {
    let is_record = |&at: &usize| priorities[..at].iter().all(|earlier| *earlier < priorities[at]);
    (0..priorities.len()).filter(is_record).count()
}

/// Calls `see` with every order of these numbers.
fn permute(numbers: &mut [u32], from: usize, see: &mut impl FnMut(&[u32])) {
    if from == numbers.len() {
        return see(numbers);
    }
    for at in from..numbers.len() {
        numbers.swap(from, at);
        permute(numbers, from + 1, see);
        numbers.swap(from, at);
    }
}

fn contention(confidence: f64) -> Handshakes {
    Handshakes { contenders: 50, levels: 100, handshake: 5 * MILLISECOND, round_trip: 300, confidence }
}

#[test]
fn chains_are_as_long_as_the_table_says() {
    for (levels, mean, likely, sure) in [
        (1, 1.0, 1, 1),
        (2, 1.5, 2, 2),
        (3, 1.8333, 3, 3),
        (10, 2.9290, 6, 7),
        (100, 5.1874, 10, 12),
        (1_000, 7.4855, 14, 16),
    ] {
        assert!((mean_chain_length(levels, MAX_CONTENDERS).unwrap() - mean).abs() < 5e-5, "{levels}");
        assert_eq!(chain_length(levels, MAX_CONTENDERS, 0.99).unwrap(), likely, "{levels}");
        assert_eq!(chain_length(levels, MAX_CONTENDERS, 0.999).unwrap(), sure, "{levels}");
        // It is the smaller of the two that counts.
        assert_eq!(chain_length(MAX_LEVELS, levels, 0.99).unwrap(), likely, "{levels}");
    }
}

#[test]
fn many_nines_are_told_apart() {
    // Computed apart, in whole numbers of 2^-260.
    let length = |confidence| chain_length(MAX_LEVELS, MAX_CONTENDERS, confidence).unwrap();
    let most = 1.0 - f64::EPSILON / 2.0;
    let lengths = [0.999, 0.999_999, 0.999_999_999, 0.999_999_999_999, 1.0 - f64::EPSILON, most].map(length);
    assert_eq!(lengths, [23, 30, 35, 40, 46, 46]);
    assert_eq!(length(f64::MIN_POSITIVE), 1);
    assert!(Tails::new(MAX_LEVELS as u32).0[LONGEST - 1] < 4e-18);
}

#[test]
fn the_ttl_has_a_handshake_for_each_holder_but_the_first() {
    assert_eq!(contention(0.99).recommended_ttl().unwrap(), 8 * 5 * MILLISECOND + 300);
    let alone = Handshakes { contenders: 1, ..contention(0.99) };
    assert_eq!(alone.recommended_ttl().unwrap(), 300);
}

/// The specification of the priority lock prints C(N) = Π 1/(P - i) and E(P) = Σ i·C(i), and 0.010205 for P = 100.
#[test]
fn the_printed_formula_is_no_distribution() {
    let chances = (0..100u32).scan(1.0, |product, i| {
        *product /= f64::from(100 - i);
        Some(*product)
    });
    let chances: Vec<f64> = chances.collect();
    let printed: f64 = chances.iter().zip(1u32..).map(|(chance, n)| f64::from(n) * chance).sum();
    let sum: f64 = chances.iter().sum();
    assert_eq!(format!("{printed:.6}"), "0.010205");
    assert_eq!(format!("{sum:.4}"), "0.0101");
    // The right ones come to 1, and no chain is shorter than its one holder.
    assert_eq!(stirling(25).iter().sum::<u128>(), factorial(25));
    assert!(mean_chain_length(100, 100).unwrap() > 5.0);
    // What its own conclusion, a time to live of ten handshakes, would have covered.
    let covered = 1.0 - Tails::new(100).0[10];
    assert_eq!(format!("{covered:.4}"), "0.9983");
}

#[test]
fn every_order_of_up_to_eight_contenders() {
    for depth in 1..=8u32 {
        let mut counts = vec![0u128; depth as usize];
        let mut priorities: Vec<u32> = (0..depth).collect();
        permute(&mut priorities, 0, &mut |order| counts[chain(order) - 1] += 1);
        assert_eq!(counts, stirling(depth.into()), "{depth}");
    }
}

/// Equal priorities cannot rob each other: chains are shorter than of as many that all differ, or than of the levels.
#[test]
fn ties_only_shorten() {
    for (contenders, levels) in [(6u32, 2u32), (2, 6), (5, 5), (6, 4), (4, 6), (3, 9)] {
        let orders = levels.pow(contenders);
        let mut longer = vec![0u32; LONGEST];
        for order in 0..orders {
            let priorities: Vec<u32> = (0..contenders).map(|at| order / levels.pow(at) % levels).collect();
            longer.iter_mut().take(chain(&priorities) - 1).for_each(|count| *count += 1);
        }
        let bounds = Tails::new(contenders.min(levels));
        for (count, bound) in longer.into_iter().zip(bounds.0) {
            assert!(f64::from(count) / f64::from(orders) <= bound + 1e-15, "{contenders} {levels}");
        }
    }
}

#[test]
fn tails_are_those_of_the_stirling_numbers() {
    for depth in 1..=25u128 {
        let (orders, tails) = (factorial(depth), Tails::new(depth as u32));
        for (count, tail) in longer(depth).into_iter().zip(tails.0) {
            let exact = count as f64 / orders as f64;
            assert!((tail - exact).abs() <= 1e-14 * exact, "{depth}: {tail} is not {exact}");
        }
    }
}

#[test]
fn what_is_out_of_range_is_refused_by_name() {
    let good = contention(0.99);
    let most = u64::MAX;
    for (wrong, field) in [
        (Handshakes { contenders: 0, ..good }, "contenders"),
        (Handshakes { contenders: MAX_CONTENDERS + 1, ..good }, "contenders"),
        (Handshakes { levels: 0, ..good }, "levels"),
        (Handshakes { levels: MAX_LEVELS + 1, ..good }, "levels"),
        (Handshakes { handshake: 0, ..good }, "handshake"),
        (Handshakes { handshake: most / 7, ..good }, "handshake"),
        (Handshakes { round_trip: most, ..good }, "round_trip"),
        (Handshakes { confidence: 0.0, ..good }, "confidence"),
        (Handshakes { confidence: -0.5, ..good }, "confidence"),
        (Handshakes { confidence: 1.0, ..good }, "confidence"),
        (Handshakes { confidence: f64::NAN, ..good }, "confidence"),
        (Handshakes { confidence: f64::INFINITY, ..good }, "confidence"),
    ] {
        let error = wrong.recommended_ttl().unwrap_err();
        assert_eq!((error.code(), error.field()), (Code::InvalidArgument, Some(field)), "{wrong:?}");
    }
    assert_eq!(mean_chain_length(0, 1).unwrap_err().field(), Some("levels"));
    assert_eq!(mean_chain_length(1, 0).unwrap_err().field(), Some("contenders"));
}

fn options(changes: &[(&str, Value)]) -> Value {
    let mut entries = vec![
        ("contenders", Value::Number(50.0)),
        ("levels", Value::Integer(100)),
        ("handshake", Value::Number(5.0)),
        ("round_trip", Value::Number(0.3)),
        ("confidence", Value::Number(0.99)),
    ];
    for (key, value) in changes {
        entries.retain(|(there, _)| there != key);
        entries.push((key, value.clone()));
    }
    Value::Map(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

#[test]
fn options_are_read_in_the_unit_of_the_language() {
    let value = options(&[]);
    assert_eq!(Handshakes::read(&value, Unit::Milliseconds).unwrap(), contention(0.99));
    assert_eq!(recommended_ttl(&value, Unit::Milliseconds).unwrap(), 40.3);
    assert_eq!(recommended_ttl(&value, Unit::Seconds).unwrap(), 40.3);
    let seconds = Handshakes::read(&value, Unit::Seconds).unwrap();
    assert_eq!(seconds.recommended_ttl().unwrap(), 40_300_000);
}

#[test]
fn wrong_options_are_refused_by_name() {
    for (key, value) in [
        ("contenders", Value::Null),
        ("contenders", Value::Number(0.0)),
        ("contenders", Value::Number(1.5)),
        ("levels", Value::Integer(-1)),
        ("levels", Value::Integer(1 << 17)),
        ("handshake", Value::Null),
        ("handshake", Value::Number(0.0001)),
        ("handshake", Value::Number(f64::NAN)),
        ("handshake", Value::Number(-5.0)),
        ("handshake", Value::Number(1e300)),
        ("round_trip", Value::Text("5".into())),
        ("confidence", Value::Number(f64::NAN)),
        ("confidence", Value::Integer(1)),
        ("confidence", Value::Bool(true)),
        ("level", Value::Integer(1)),
    ] {
        let error = recommended_ttl(&options(&[(key, value.clone())]), Unit::Milliseconds).unwrap_err();
        let expected = (Code::InvalidArgument, Some(key));
        assert_eq!((error.code(), error.field()), expected, "{key} {value:?}: {error}");
    }
    let error = recommended_ttl(&Value::Number(5.0), Unit::Seconds).unwrap_err();
    assert_eq!(error.field(), Some("options"));
}

proptest! {
    /// Against whole numbers: the smallest n with P(N > n) ≤ 1 - p, for p = 1 - rare / many.
    #[test]
    fn quantiles_are_exact(depth in 1..=25u128, many in 2..1_000_000_000u64, rare in any::<prop::sample::Index>()) {
        let rare = 1 + rare.index(many as usize - 1) as u64;
        let (orders, longer) = (factorial(depth), longer(depth));
        // Where a probability equals 1 - p, how p was rounded decides.
        prop_assume!(longer.iter().all(|count| count * u128::from(many) != orders * u128::from(rare)));
        let beyond = |count: &&u128| **count * u128::from(many) > orders * u128::from(rare);
        let exact = 1 + longer.iter().take_while(beyond).count() as u32;
        let confidence = (many - rare) as f64 / many as f64;
        prop_assert_eq!(chain_length(depth as u64, 25, confidence).unwrap(), exact);
    }

    #[test]
    fn more_never_means_less(
        contenders in (1..3_000u64, 1..3_000u64),
        levels in (1..3_000u64, 1..3_000u64),
        handshake in (1..SECOND, 1..SECOND),
        round_trip in (0..SECOND, 0..SECOND),
        nines in (0.01..50.0, 0.01..50.0),
    ) {
        let confidence = |nines: f64| (1.0 - (-nines).exp2()).min(1.0 - f64::EPSILON / 2.0);
        let less = Handshakes {
            contenders: contenders.0,
            levels: levels.0,
            handshake: handshake.0,
            round_trip: round_trip.0,
            confidence: confidence(nines.0),
        };
        let ttl = less.recommended_ttl().unwrap();
        for more in [
            Handshakes { contenders: contenders.0.max(contenders.1), ..less },
            Handshakes { levels: levels.0.max(levels.1), ..less },
            Handshakes { handshake: handshake.0.max(handshake.1), ..less },
            Handshakes { round_trip: round_trip.0.max(round_trip.1), ..less },
            Handshakes { confidence: confidence(nines.0.max(nines.1)), ..less },
        ] {
            prop_assert!(more.recommended_ttl().unwrap() >= ttl, "{:?} {:?}", less, more);
        }
    }
}
