//! Names that nobody defined: made by the claim, forgotten with the lease.

use super::scene::{
    START, Scene, TTL, asking, change, claim, define, ids, lease, lost, refused, release, renew, these,
};
use crate::id::SlotId;
use crate::nonce::Outcome;
use crate::slots::{
    Choice, Claim, Grant, Loss, MAX_SLOTS, Mode, Refusal, Reply, Request, SWEEP, SlotChange, SlotSpec,
};
use crate::{Micros, SECOND};

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

fn free(texts: &[&str], holder: u128, least: u32, most: u32) -> Request {
    delayed(texts, holder, least, most, Micros::MAX)
}

fn delayed(texts: &[&str], holder: u128, least: u32, most: u32, asked: Micros) -> Request {
    let choice = Choice::Free { slots: ids(texts), least, most, asked };
    Request::Claim(Claim { holder, ..asking(choice) })
}

fn partly(reply: Reply) -> (Vec<Grant>, Option<Micros>) {
    match reply {
        Reply::Partly { grants, earliest } => (grants, earliest),
        other => panic!("{other:?}"),
    }
}

fn names(grants: &[Grant]) -> Vec<&str> {
    grants.iter().map(|grant| grant.slot.as_str()).collect()
}

#[test]
fn of_names_as_many_are_had_as_are_free() {
    let mut scene = Scene::of(&[]);
    let first = scene.grants(free(&["a", "b", "b"], 1, 1, 9));
    assert_eq!(names(&first), ["a", "b"], "once each, and that is all that was asked for");
    scene.pass(SECOND);
    let (second, earliest) = partly(scene.ask(free(&["a", "c", "d"], 2, 1, 9)));
    assert_eq!((names(&second), earliest), (vec!["c", "d"], Some(START + TTL)));
    assert_eq!(scene.ask(free(&["a", "c", "e"], 3, 2, 9)), refused(Refusal::Exhausted, Some(START + TTL)));
    assert_eq!(scene.counts(), [4, 0, 0, 4], "the free one was not made");
    assert_eq!(names(&scene.grants(free(&["a", "e", "f"], 3, 1, 1))), ["e"], "no more than wanted");
    assert_eq!(scene.counts(), [5, 0, 0, 5]);
    scene.pass(TTL);
    assert_eq!(scene.counts(), [0; 4], "nothing stays behind");
}

#[test]
fn no_more_names_are_made_than_a_pool_has_room_for() {
    let mut scene = Scene::of(&[]);
    let spec = |at: usize| SlotSpec { slot: SlotId::new(&at.to_string()).unwrap(), weight: 1 };
    let slots = (2..MAX_SLOTS).map(spec).collect();
    scene.ask(Request::Define { slots, longest: TTL, doubt_rest: 0 });
    let (grants, _) = partly(scene.ask(free(&["a", "b", "c"], 1, 1, 9)));
    assert_eq!(names(&grants), ["a", "b"]);
    assert!(matches!(scene.ask(free(&["c", "d"], 2, 1, 9)), Reply::Refused { why: Refusal::Exhausted, .. }));
    assert!(matches!(scene.ask(named(&["c"])), Reply::Refused { why: Refusal::Exhausted, .. }));
    scene.ask(release(&grants[0], Outcome::Unused));
    assert_eq!(names(&partly(scene.ask(free(&["c", "d"], 2, 1, 9))).0), ["c"]);
    scene.ask(release(&grants[1], Outcome::Unused));
    assert_eq!(names(&scene.grants(named(&["d", "d"]))), ["d"], "one that is there twice counts once");
}

#[test]
fn a_holder_takes_the_place_of_its_own_lease_and_of_no_others() {
    let mut scene = Scene::of(&["defined"]);
    let old = scene.grants(free(&["a", "b", "defined"], 1, 3, 3));
    scene.pass(10 * SECOND);
    let (new, earliest) = partly(scene.ask(free(&["c", "a"], 2, 1, 9)));
    assert_eq!((names(&new), earliest), (vec!["c"], Some(START + TTL)));
    let (again, _) = partly(scene.ask(free(&["a", "b", "c", "defined"], 1, 1, 9)));
    assert_eq!(names(&again), ["a", "b", "defined"]);
    assert!(again.iter().zip(&old).all(|(again, old)| again.fence > old.fence));
    assert!(again.iter().all(|grant| grant.deadline == START + 10 * SECOND + TTL));
    for old in &old {
        assert_eq!(scene.ask(renew(old)), lost(Loss::Taken));
        assert_eq!(scene.ask(release(old, Outcome::Unused)), lost(Loss::Taken));
    }
    assert_eq!(scene.view("a").holder, 1);
    // One that was sent before the last and comes after it takes the place of nothing.
    let since = START + 10 * SECOND;
    let late = scene.ask(delayed(&["a"], 1, 1, 1, since - 1));
    assert_eq!(late, refused(Refusal::Exhausted, Some(since + TTL)));
    // One that an administrator takes out of use is not had anew.
    scene.ask(change("defined", SlotChange::Disable));
    let ends = Some(START + 10 * SECOND + TTL);
    assert_eq!(scene.ask(free(&["defined"], 1, 1, 1)), refused(Refusal::Exhausted, ends));
}

/// What was overdue and too much for one envelope to put back counted as leased: a wallet was told that what a dead process
/// had locked long ago was locked still.
#[test]
fn names_that_are_overdue_are_had_however_many_there_are() {
    let all = many();
    let every: Vec<&str> = all.iter().map(String::as_str).collect();
    let count = every.len() as u32;
    let mut scene = Scene::of(&["0383"]);
    assert_eq!(scene.grants(free(&every, 1, count, count)).len(), every.len());
    scene.pass(TTL + 1);
    assert_eq!(scene.counts(), [count - SWEEP as u32, 0, 0, 0], "none is locked");
    let second = scene.grants(free(&every, 2, count, count));
    assert_eq!(names(&second), every);
    for grant in &second {
        scene.ask(Request::Release { lease: lease(grant), outcome: Outcome::Unused, cooldown: SECOND });
    }
    assert_eq!(scene.counts(), [count, 0, 0, count]);
    scene.pass(SECOND + 1);
    assert_eq!(scene.grants(free(&every, 3, count, count)).len(), every.len(), "nor after a rest");
}

/// So many names that a sweep does not put back the last of them, which is the last of all.
fn many() -> Vec<String> {
    (0..3 * SWEEP).map(|at| format!("{at:04}")).collect()
}

/// It was refused what nobody held, and told to come at a time that was over: a sweep put back others first.
#[test]
fn what_is_overdue_is_had_by_its_name_however_many_there_are() {
    let names = many();
    let every: Vec<&str> = names.iter().map(String::as_str).collect();
    for defined in [true, false] {
        let held = || {
            let mut scene = Scene::of(if defined { &every } else { &[] });
            assert_eq!(scene.grants(named(&every)).len(), every.len());
            scene
        };
        let wants = |texts: &[&str]| if defined { these(texts) } else { named(texts) };
        let mut scene = held();
        scene.pass(TTL + 1);
        assert_eq!(scene.grants(wants(&["0383"])).len(), 1, "defined: {defined}");
        assert_eq!(scene.ask(wants(&["0383"])), refused(Refusal::Exhausted, Some(START + 2 * TTL + 1)));

        // What is overdue behind one that is held is nothing to wait for.
        let mut scene = held();
        scene.pass(TTL + 1);
        scene.grants(wants(&["0000"]));
        let both = if defined { these(&["0000", "0382"]) } else { named(&["0000", "0382"]) };
        assert_eq!(scene.ask(both), refused(Refusal::Exhausted, Some(START + 2 * TTL + 1)));

        // Who waits for it comes first.
        let mut scene = held();
        scene.pass(TTL - SECOND);
        let Request::Claim(claim) = wants(&["0383"]) else { panic!("a claim") };
        scene.ask(Request::Claim(Claim { holder: 9, wait: true, ..claim }));
        scene.pass(SECOND + 1);
        let performed = scene.perform(vec![wants(&["0383"])]);
        assert_eq!(performed.replies, [refused(Refusal::Exhausted, None)]);
        assert_eq!(performed.calls.tickets, [9]);
    }
}

/// The holder was told that the store had lost its memory.
#[test]
fn a_lock_that_is_broken_and_kept_for_another_is_gone() {
    let mut scene = Scene::of(&[]);
    let door = scene.grants(named(&["door"])).remove(0);
    let waits = Claim { holder: 9, wait: true, ..asking(Choice::Named { slots: ids(&["door"]) }) };
    scene.ask(Request::Claim(waits));
    assert_eq!(scene.perform(vec![change("door", SlotChange::Break)]).calls.tickets, [9]);
    assert_eq!((scene.view("door").holder, scene.view("door").fence), (9, 0));
    assert_eq!(scene.ask(renew(&door)), lost(Loss::Gone));
    assert_eq!(scene.ask(release(&door, Outcome::Unused)), lost(Loss::Gone));
}

#[test]
fn who_waits_for_a_name_is_not_overtaken_by_a_claim_of_what_is_free() {
    let mut scene = Scene::of(&[]);
    let door = scene.grants(named(&["door"])).remove(0);
    let waits = Claim { holder: 9, wait: true, ..asking(Choice::Named { slots: ids(&["door"]) }) };
    scene.ask(Request::Claim(waits));
    scene.pass(1);
    let replies = scene.perform(vec![release(&door, Outcome::Unused), free(&["door", "a"], 1, 1, 9)]).replies;
    let (grants, _) = partly(replies.into_iter().nth(1).unwrap());
    assert_eq!(names(&grants), ["a"]);
}
