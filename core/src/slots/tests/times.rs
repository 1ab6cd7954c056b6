//! Store time runs forward only, and no envelope takes long.

use super::scene::{START, Scene, TTL, any, refused, release};
use crate::SECOND;
use crate::nonce::Outcome;
use crate::slots::{Refusal, Request, SWEEP};

#[test]
fn a_clock_that_is_set_back_goes_on_from_where_it_was_at_its_own_pace() {
    let mut scene = Scene::of(&["a"]);
    scene.pass(5 * SECOND);
    assert_eq!(scene.now(), START + 5 * SECOND);
    scene.wall -= 3600 * SECOND;
    assert_eq!(scene.now(), START + 5 * SECOND, "stands for a moment");
    scene.pass(SECOND);
    assert_eq!(scene.now(), START + 6 * SECOND);
    scene.wall -= 10 * SECOND;
    scene.now();
    scene.pass(SECOND);
    assert_eq!(scene.now(), START + 7 * SECOND, "also a second time");
}

#[test]
fn a_lease_lives_no_longer_because_the_clock_was_set_back() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.claim();
    scene.wall -= 3600 * SECOND;
    assert_eq!(scene.ask(any(1)), refused(Refusal::Exhausted, Some(grant.deadline)));
    scene.pass(TTL);
    assert_eq!(scene.grants(any(1)).len(), 1);
}

#[test]
fn one_envelope_puts_back_a_bounded_number_in_the_order_of_their_time() {
    let names: Vec<String> = (0..2 * SWEEP + 10).map(|n| format!("s{n:04}")).collect();
    let slots: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut scene = Scene::of(&slots);
    let count = slots.len() as u32;
    let mut grants = scene.grants(any(count - 1));
    scene.pass(SECOND);
    grants.extend(scene.grants(any(1)));
    scene.pass(TTL);
    let sweep = SWEEP as u32;
    // What is overdue is neither leased nor at rest, though it is not back yet.
    assert_eq!(scene.counts(), [count, sweep, 0, 0]);
    assert_eq!(scene.counts(), [count, 2 * sweep, 0, 0]);
    assert_eq!(scene.counts(), [count, count, 0, 0]);
    let order: Vec<_> = scene.grants(any(count)).into_iter().map(|grant| grant.slot).collect();
    let expected: Vec<_> = grants.into_iter().map(|grant| grant.slot).collect();
    assert_eq!(order, expected, "by their time, then by their id");
}

#[test]
fn a_rest_ends_to_the_microsecond() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.claim();
    let lease = super::scene::lease(&grant);
    scene.ask(Request::Release { lease, outcome: Outcome::Unused, cooldown: SECOND });
    scene.pass(SECOND - 1);
    assert_eq!(scene.ask(any(1)), refused(Refusal::Exhausted, Some(scene.wall + 1)));
    scene.pass(1);
    let next = scene.claim();
    scene.ask(release(&next, Outcome::Unused));
    assert_eq!(scene.counts(), [1, 1, 0, 0]);
}

#[test]
fn requests_of_one_envelope_are_performed_in_order_at_one_time() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.claim();
    let performed = scene.perform(vec![any(1), release(&grant, Outcome::Unused), any(1), any(1)]);
    let granted = |at: usize| matches!(performed.replies[at], crate::slots::Reply::Granted(_));
    assert_eq!([granted(0), granted(2), granted(3)], [false, true, false]);
}
