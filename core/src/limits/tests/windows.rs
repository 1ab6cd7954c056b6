//! Rolling windows whose period changes at run time.

use super::model::Windows;
use super::scene::{HOUR, Scene, charge};
use crate::SECOND;
use crate::limits::{Act, CELLS, MAX_AMOUNT, Rule};

const MINUTE: u64 = 60 * SECOND;

fn rolling(max: u64, period: u64) -> Rule {
    Rule::Rolling { max, period }
}

// Whoever asked by the shorter one dropped what the longer one still counted: it was allowed again and again.
#[test]
fn who_asks_by_a_shorter_period_drops_nothing_that_a_longer_one_counts() {
    let [long, short] = [rolling(10, HOUR), rolling(10, MINUTE)];
    let mut scene = Scene::new();
    assert_eq!(scene.allowed(long, 10), 10);
    for _ in 0..59 {
        scene.pass(MINUTE);
        assert_eq!((scene.allowed(long, 1), scene.allowed(short, 1)), (0, 1));
    }
    // Of what was taken an hour ago nothing counts, and all of what was taken since.
    assert_eq!(scene.pass(MINUTE).allowed(long, 1), 0);
    assert_eq!(scene.take(short, 0).remaining, 10u64.into());
    let refused = scene.take(long, 1);
    assert_eq!(refused.retry_after, Some(50 * MINUTE));
}

#[test]
fn a_refused_take_tells_its_period_too() {
    let [long, short] = [rolling(4, HOUR), rolling(10, MINUTE)];
    let mut scene = Scene::new();
    assert_eq!(scene.allowed(short, 10), 10);
    assert!(!scene.take(long, 1).allowed);
    assert_eq!(scene.pass(MINUTE).allowed(short, 3), 3);
    assert_eq!(scene.take(long, 1).retry_after, Some(HOUR - MINUTE));
    // To look tells nothing.
    let mut scene = Scene::new();
    assert_eq!(scene.allowed(short, 10), 10);
    assert!(!scene.judge(Act::Peek, &[charge("a", long, 1)]).allowed);
    assert_eq!(scene.pass(MINUTE).allowed(short, 3), 3);
    assert_eq!(scene.take(long, 1).remaining, 0u64.into());
}

// It was taken from what the other window alone counts, and so freed what this one had taken since.
#[test]
fn a_refund_is_taken_from_the_window_of_who_asks() {
    let [long, short] = [rolling(20, HOUR), rolling(10, MINUTE)];
    let mut scene = Scene::new();
    assert_eq!(scene.allowed(long, 7), 7);
    scene.pass(2 * MINUTE);
    let reserve = [charge("a", short, 5)];
    assert!(scene.judge(Act::Reserve { id: 1, ttl: HOUR, waited: None }, &reserve).allowed);
    assert!(scene.take(short, 5).allowed && !scene.take(short, 1).allowed);
    scene.settle(Act::GiveBack { id: 1 }, &reserve);
    assert_eq!((scene.remaining(short), scene.remaining(long)), (5, 8));
    assert_eq!(scene.pass(58 * MINUTE).remaining(long), 15);
    // What has left the window of who gives it back is not given back, whoever else counts it.
    assert!(scene.judge(Act::Reserve { id: 2, ttl: HOUR, waited: None }, &reserve).allowed);
    scene.pass(MINUTE).settle(Act::GiveBack { id: 2 }, &reserve);
    assert_eq!((scene.remaining(short), scene.remaining(long)), (10, 10));
}

// It was taken from the oldest: what had been taken before was as if it was taken now, and never came free.
#[test]
fn a_window_comes_free_while_somebody_reserves_and_gives_back() {
    let rule = rolling(10, MINUTE);
    let mut scene = Scene::new();
    assert_eq!(scene.allowed(rule, 9), 9);
    let one = [charge("a", rule, 1)];
    for id in 0..120 {
        assert!(scene.pass(SECOND).judge(Act::Reserve { id, ttl: HOUR, waited: None }, &one).allowed);
        scene.settle(Act::GiveBack { id }, &one);
    }
    assert_eq!((scene.remaining(rule), scene.cells()), (10, 0));
}

// Where a refund took some of that already, from what was taken before: what was taken since counts as long as ever.
#[test]
fn what_is_given_back_is_not_taken_from_what_was_taken_since() {
    let rule = rolling(10, MINUTE);
    let mut scene = Scene::new();
    assert!(scene.take(rule, 2).allowed);
    let reserve = [charge("a", rule, 3)];
    assert!(scene.pass(10 * SECOND).judge(Act::Reserve { id: 1, ttl: HOUR, waited: None }, &reserve).allowed);
    assert!(scene.pass(10 * SECOND).take(rule, 4).allowed);
    // Of the five before that, two are left.
    scene.judge(Act::Refund, &reserve);
    assert_eq!(scene.remaining(rule), 4);
    scene.settle(Act::GiveBack { id: 1 }, &reserve);
    assert_eq!(scene.remaining(rule), 6);
    assert_eq!(scene.pass(MINUTE - 1).remaining(rule), 6);
    assert_eq!(scene.pass(1).remaining(rule), 10);
}

// It may have been dropped before anybody asked by the longer one.
#[test]
fn what_was_reserved_before_a_longer_period_gives_nothing_back() {
    let [long, short] = [rolling(10, HOUR), rolling(10, MINUTE)];
    let mut scene = Scene::new();
    assert!(scene.judge(Act::Reserve { id: 1, ttl: HOUR, waited: None }, &[charge("a", short, 4)]).allowed);
    assert!(scene.pass(MINUTE).take(short, 6).allowed);
    assert_eq!(scene.take(long, 0).remaining, 4u64.into());
    scene.settle(Act::GiveBack { id: 1 }, &[charge("a", long, 4)]);
    assert_eq!(scene.remaining(long), 4);
}

#[test]
fn a_period_by_which_nobody_asks_any_more_is_forgotten() {
    let [long, short] = [rolling(1_000, HOUR), rolling(10, MINUTE)];
    let mut scene = Scene::new();
    assert!(scene.take(short, 1).allowed && scene.take(long, 1).allowed);
    let asked = |scene: &mut Scene, minutes: u64| {
        for _ in 0..minutes {
            assert!(scene.pass(MINUTE).take(short, 1).allowed);
        }
        scene.remaining(long)
    };
    // It is kept for as long as it is long at least, and for as long once more at most.
    assert_eq!(asked(&mut scene, 119), 1_000 - 60);
    assert_eq!(asked(&mut scene, 2), 1_000 - 1);
    // The same of one that was made longer.
    let mut scene = Scene::new();
    assert!(scene.take(short, 1).allowed && scene.take(long, 1).allowed);
    for _ in 0..130 {
        assert!(scene.pass(MINUTE).take(long, 1).allowed);
    }
    // By its own grain again, of not quite two minutes.
    for _ in 0..60 {
        assert!(scene.take(long, 1).allowed && scene.pass(MINUTE).take(long, 1).allowed);
    }
    assert!(scene.cells() <= 33, "{}", scene.cells());
}

#[test]
fn windows_of_any_two_periods_stay_small() {
    for (short, rest) in [(7, 3), (1_000, 1), (HOUR / 32, 0), (HOUR / 3, 5), (HOUR - 1, 0), (HOUR, 0)] {
        let mut scene = Scene::new();
        let rules = [rolling(MAX_AMOUNT, HOUR), rolling(MAX_AMOUNT, short)];
        for step in 0..30_000 {
            assert!(scene.take(rules[usize::from(step % 100 > 0)], 1 + step % 3).allowed);
            scene.pass(if step % 1_000 == 0 { HOUR / 20 } else { short / 64 + rest });
            assert!(scene.cells() <= 128, "{short}");
        }
    }
}

// So many cells that they are merged: no window holds more than its maximum, and none counts longer than by a grain of its own.
#[test]
fn what_is_merged_counts_no_longer_than_by_a_grain() {
    for share in [50, 20, 7, 2] {
        let [long, short] = [(40 * share, HOUR), (50, HOUR / share)];
        let (mut scene, mut model, mut most, mut refused) = (Scene::new(), Windows::default(), 0, [0; 2]);
        for step in 0..6_000u64 {
            scene.pass(HOUR / share / 40 * (step * step % 7) / 3);
            let by = usize::from(step % 5 > 0);
            let ((max, period), cost, now) = ([long, short][by], 1 + step % 3, scene.wall);
            if scene.take(rolling(max, period), cost).allowed {
                model.take(now, cost);
                assert!(model.hold(now, period) <= max.into(), "{share}");
            } else {
                let longer = period + period.div_ceil(CELLS);
                assert!(model.hold(now, longer) + u128::from(cost) > max.into(), "{share}: {step}");
                refused[by] += 1;
            }
            most = most.max(scene.cells());
        }
        assert!(refused.iter().all(|refused| *refused > 100), "{share}: {refused:?}");
        assert!(most > 100 || share < 7, "{share}: {most}");
    }
}

// More than a double holds was taken in the longer window: it allows nothing, and tells when it will.
#[test]
fn more_than_can_be_counted_is_too_much() {
    let [long, short] = [rolling(MAX_AMOUNT, HOUR), rolling(MAX_AMOUNT, SECOND)];
    let mut scene = Scene::new();
    assert!(scene.take(long, 1).allowed);
    for _ in 0..1_000 {
        assert!(scene.take(short, MAX_AMOUNT - 1).allowed || scene.take(short, 0).allowed);
        scene.pass(SECOND);
        assert!(!scene.take(long, 1).allowed);
    }
    let retry = scene.take(long, MAX_AMOUNT).retry_after.unwrap_or_default();
    assert!(scene.clone().pass(retry).take(long, MAX_AMOUNT).allowed);
    assert!(!scene.pass(retry - 1).take(long, MAX_AMOUNT).allowed);
}

// Nothing is used, but who asked by the longer one has not been forgotten.
#[test]
fn one_of_two_periods_is_remembered_when_all_was_given_back() {
    let [long, short] = [rolling(10, HOUR), rolling(10, MINUTE)];
    let mut scene = Scene::new();
    assert!(scene.take(long, 2).allowed && scene.take(short, 2).allowed);
    scene.judge(Act::Refund, &[charge("a", short, 4)]);
    assert_eq!(scene.remaining(long), 10);
    assert!(scene.pass(SECOND).take(short, 10).allowed);
    assert!(scene.pass(2 * MINUTE).take(short, 0).allowed);
    assert_eq!(scene.take(long, 1).retry_after, Some(HOUR - 2 * MINUTE));
    scene.judge(Act::Reset, &[charge("a", short, 0)]);
    assert_eq!(scene.ledger.size(), (0, 0));
    assert_eq!(scene.remaining(long), 10);
}
