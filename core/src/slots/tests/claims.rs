//! Claims: what is granted, what is refused, and what a grant says.

use super::scene::{START, Scene, TTL, any, change, claim, define_resting, ids, refused, release, these};
use crate::SECOND;
use crate::nonce::{NonceRecord, Outcome};
use crate::slots::{Choice, Refusal, Reply, SlotChange, State, Strategy};

#[test]
fn a_grant_says_what_the_record_says() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.claim_of("a");
    let view = scene.view("a");
    assert_eq!((view.state, view.fence, view.until), (State::Leased, grant.fence, grant.deadline));
    assert_eq!((view.holder, view.since), (7, START));
    assert_eq!(grant.deadline, START + TTL);
    assert!(grant.fence >= START, "a fence is at least the store's time");
    assert_eq!(scene.perform(vec![]).top, grant.fence);
}

#[test]
fn every_refusal() {
    let mut empty = Scene::of(&[]);
    assert_eq!(empty.ask(any(1)), refused(Refusal::NoSlot, None));
    assert_eq!(empty.ask(these(&["a"])), refused(Refusal::NoSlot, None));

    let mut scene = Scene::of(&["a", "b"]);
    assert_eq!(scene.ask(any(3)), refused(Refusal::Exhausted, None), "more than there are");
    assert_eq!(scene.ask(these(&["a", "z"])), refused(Refusal::NoSlot, None));
    let first = scene.claim_of("a");
    scene.pass(SECOND);
    assert_eq!(scene.ask(any(2)), refused(Refusal::Exhausted, Some(first.deadline)));
    assert_eq!(scene.ask(these(&["b", "a"])), refused(Refusal::Exhausted, Some(first.deadline)));
    let second = scene.claim_of("b");
    assert_eq!(scene.ask(any(1)), refused(Refusal::Exhausted, Some(first.deadline)));
    assert_eq!(scene.ask(these(&["b"])), refused(Refusal::Exhausted, Some(second.deadline)));

    scene.ask(change("b", SlotChange::Disable));
    scene.ask(release(&second, Outcome::Unused));
    assert_eq!(scene.ask(these(&["b"])), refused(Refusal::Exhausted, None), "nobody knows when");

    scene.incarnation = "b".to_owned();
    let quiet = refused(Refusal::Quiet, Some(scene.wall + TTL));
    assert_eq!(scene.ask(any(1)), quiet);
    assert_eq!(scene.ask(these(&["z"])), quiet);

    assert_eq!(Scene::bare().ask(any(1)), Reply::Undefined);
}

#[test]
fn a_refused_claim_changes_nothing() {
    let mut scene = Scene::of(&["a", "b", "c"]);
    scene.claim_of("b");
    let before = (scene.counts(), scene.view("a"), scene.view("c"), scene.perform(vec![]).top);
    assert!(matches!(scene.ask(these(&["a", "b", "c"])), Reply::Refused { .. }));
    assert!(matches!(scene.ask(any(3)), Reply::Refused { .. }));
    let after = (scene.counts(), scene.view("a"), scene.view("c"), scene.perform(vec![]).top);
    assert_eq!(after, before);
}

#[test]
fn several_at_once_have_rising_fences() {
    for strategy in [Strategy::Random, Strategy::LeastRecent, Strategy::Weighted] {
        let mut scene = Scene::of(&["a", "b", "c", "d"]);
        let grants = scene.grants(claim(Choice::Any { strategy, least: 2, most: 3 }));
        assert_eq!(grants.len(), 3);
        assert!(grants.is_sorted_by(|one, next| one.fence < next.fence));
        let rest = scene.grants(claim(Choice::Any { strategy, least: 1, most: 9 }));
        assert_eq!(rest.len(), 1, "as many as can be had");
        assert_eq!(scene.counts(), [4, 0, 0, 4]);
    }
}

#[test]
fn named_slots_come_in_the_order_named() {
    let mut scene = Scene::of(&["a", "b", "c"]);
    scene.claim_of("b");
    let some = Choice::Among { slots: ids(&["c", "b", "a"]), count: 2 };
    let slots: Vec<_> = scene.grants(claim(some)).into_iter().map(|grant| grant.slot).collect();
    assert_eq!(slots, ids(&["c", "a"]));
    let mut scene = Scene::of(&["a", "b", "c"]);
    let one = Choice::Among { slots: ids(&["c", "b", "a"]), count: 1 };
    assert_eq!(scene.grants(claim(one)).len(), 1);
    assert_eq!(scene.counts(), [3, 2, 0, 1]);
}

#[test]
fn a_slot_in_doubt_is_handed_out_last_and_with_the_mark() {
    for strategy in [Strategy::Random, Strategy::LeastRecent, Strategy::Weighted] {
        let mut scene = Scene::of(&["a", "b", "c"]);
        scene.synced("a", 7);
        scene.pass(TTL);
        assert_eq!(scene.counts(), [3, 3, 1, 0]);
        let grants = scene.grants(claim(Choice::Any { strategy, least: 3, most: 3 }));
        let last = grants.last().unwrap();
        assert_eq!((last.slot.as_str(), last.in_doubt()), ("a", true));
        assert!(grants[..2].iter().all(|grant| !grant.in_doubt()));
    }
}

// It was handed out as it was named, with its last holder's transaction perhaps still under way.
#[test]
fn a_slot_in_doubt_comes_last_of_those_that_are_named_too() {
    let mut scene = Scene::of(&["a", "b", "c"]);
    scene.synced("a", 7);
    scene.pass(TTL);
    let slots = |scene: &mut Scene, count| {
        let some = Choice::Among { slots: ids(&["a", "c", "b", "a"]), count };
        scene.grants(claim(some)).into_iter().map(|grant| grant.slot).collect::<Vec<_>>()
    };
    assert_eq!(slots(&mut scene, 1), ids(&["c"]));
    assert_eq!(slots(&mut scene, 2), ids(&["b", "a"]));
}

#[test]
fn a_slot_in_doubt_rests_first_if_so_defined() {
    let mut scene = Scene::bare();
    scene.ask(define_resting(&["a"], 10 * SECOND));
    let grant = scene.synced("a", 7);
    scene.pass(TTL + 4 * SECOND);
    let rested = grant.deadline + 10 * SECOND;
    assert_eq!(scene.ask(any(1)), refused(Refusal::Exhausted, Some(rested)), "counted from the deadline");
    scene.pass(6 * SECOND);
    let next = scene.claim_of("a");
    assert_eq!(next.nonce, NonceRecord::InDoubt { floor: Some(7) });
    scene.ask(release(&next, Outcome::Unused));
    let again = scene.claim_of("a");
    assert_eq!(again.nonce, NonceRecord::InDoubt { floor: Some(7) }, "no less in doubt, and rested");
    scene.ask(release(&again, Outcome::Rejected { expected: Some(9) }));
    assert_eq!(scene.claim_of("a").nonce, NonceRecord::Known(9), "certain again: no rest");
}
