//! Names that nobody defined: made by the claim, forgotten with the lease.

use super::scene::{START, Scene, TTL, change, claim, define, ids, lease, refused, release, renew};
use crate::SECOND;
use crate::nonce::Outcome;
use crate::slots::{Choice, Mode, Refusal, Reply, Request, SlotChange};

fn named(texts: &[&str]) -> Request {
    claim(Choice::Named { slots: ids(texts) })
}

#[test]
fn a_name_is_made_by_its_claim_and_forgotten_with_its_lease() {
    let mut scene = Scene::of(&[]);
    let first = scene.grants(named(&["door"])).remove(0);
    assert_eq!((scene.counts(), scene.view("door").mode), ([1, 0, 0, 1], Mode::Passing));
    assert_eq!(scene.ask(named(&["door"])), refused(Refusal::Exhausted, Some(START + TTL)));
    scene.pass(10 * SECOND);
    assert_eq!(scene.ask(renew(&first)), Reply::Renewed { deadline: START + 10 * SECOND + TTL });
    assert_eq!(scene.ask(release(&first, Outcome::Unused)), Reply::Released);
    assert_eq!(scene.counts(), [0; 4], "nothing stays behind");
    let second = scene.grants(named(&["door"])).remove(0);
    assert!(second.fence > first.fence, "whatever was forgotten");
    scene.pass(TTL);
    assert_eq!(scene.counts(), [0; 4]);
}

#[test]
fn several_names_are_had_together_or_not_at_all() {
    let mut scene = Scene::of(&["relayer"]);
    let grants = scene.grants(named(&["b", "relayer", "a", "b"]));
    let slots: Vec<_> = grants.iter().map(|grant| grant.slot.clone()).collect();
    assert_eq!(slots, ids(&["b", "relayer", "a"]));
    assert_eq!(scene.ask(named(&["c", "a"])), refused(Refusal::Exhausted, Some(START + TTL)));
    assert_eq!(scene.counts(), [3, 0, 0, 3], "the free one was not taken, nor made");
    for grant in &grants {
        scene.ask(release(grant, Outcome::Unused));
    }
    assert_eq!(scene.counts(), [1, 1, 0, 0], "what was defined stays");
}

#[test]
fn a_name_rests_before_it_is_forgotten() {
    let mut scene = Scene::of(&[]);
    let door = scene.grants(named(&["door"])).remove(0);
    scene.ask(Request::Release { lease: lease(&door), outcome: Outcome::Unused, cooldown: 5 * SECOND });
    assert_eq!(scene.ask(named(&["door"])), refused(Refusal::Exhausted, Some(START + 5 * SECOND)));
    scene.pass(5 * SECOND);
    assert_eq!(scene.counts(), [0; 4]);
}

#[test]
fn a_definition_makes_a_name_stay() {
    let mut scene = Scene::of(&[]);
    let door = scene.grants(named(&["door"])).remove(0);
    assert_eq!(scene.ask(define(&["door"])), Reply::Defined { added: 0, total: 1 });
    scene.ask(release(&door, Outcome::Unused));
    assert_eq!(scene.counts(), [1, 1, 0, 0]);
}

#[test]
fn an_administrators_break_frees_a_name() {
    let mut scene = Scene::of(&[]);
    scene.grants(named(&["door"]));
    assert_eq!(scene.ask(change("door", SlotChange::Break)), Reply::Changed);
    assert_eq!(scene.counts(), [0; 4]);
}
