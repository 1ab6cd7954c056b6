//! The defects that were observed in other lease pools, each by its name. None may be shown here.

use super::scene::{Scene, TTL, any, change, id, ids, lease, lost, refused, release, renew, resync, these};
use crate::SECOND;
use crate::nonce::{NonceRecord, Outcome};
use crate::slots::{Choice, Loss, Refusal, Reply, Request, SlotChange, SlotSpec, State};

#[test]
fn a_late_release_does_not_free_anothers_lease() {
    let mut scene = Scene::of(&["a"]);
    let late = scene.synced("a", 7);
    scene.pass(TTL);
    let current = scene.claim_of("a");
    for outcome in [Outcome::Unused, Outcome::Unsettled, Outcome::Used { next: 8 }] {
        assert_eq!(scene.ask(release(&late, outcome)), lost(Loss::Taken));
    }
    assert_eq!(scene.ask(these(&["a"])), refused(Refusal::Exhausted, Some(current.deadline)));
    assert_eq!(scene.ask(release(&current, Outcome::Used { next: 9 })), Reply::Released);
}

#[test]
fn a_release_that_comes_twice_frees_nothing_the_second_time() {
    let mut scene = Scene::of(&["a"]);
    let first = scene.claim_of("a");
    scene.ask(release(&first, Outcome::Unused));
    assert_eq!(scene.ask(release(&first, Outcome::Unused)), lost(Loss::Ended));
    let second = scene.claim_of("a");
    assert_eq!(scene.ask(release(&first, Outcome::Unused)), lost(Loss::Taken));
    assert_eq!(scene.view("a").fence, second.fence);
    assert_eq!(scene.view("a").state, State::Leased);
}

#[test]
fn a_late_nonce_does_not_roll_back() {
    let mut scene = Scene::of(&["a"]);
    let slow = scene.synced("a", 6);
    scene.pass(TTL);
    let quick = scene.claim_of("a");
    assert_eq!(scene.ask(resync(&quick, 7)), Reply::Resynced { next: 7 });
    assert_eq!(scene.ask(release(&quick, Outcome::Used { next: 8 })), Reply::Released);
    assert_eq!(scene.ask(release(&slow, Outcome::Used { next: 7 })), lost(Loss::Taken));
    assert_eq!(scene.ask(resync(&slow, 6)), lost(Loss::Taken));
    assert_eq!(scene.claim_of("a").nonce, NonceRecord::Known(8));
}

#[test]
fn the_holder_itself_cannot_put_the_nonce_back() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.synced("a", 7);
    assert_eq!(scene.ask(release(&grant, Outcome::Used { next: 7 })), Reply::Backwards { floor: 8 });
    assert_eq!(scene.ask(release(&grant, Outcome::Used { next: 3 })), Reply::Backwards { floor: 8 });
    assert!(matches!(scene.ask(renew(&grant)), Reply::Renewed { .. }), "the lease goes on");
    assert_eq!(scene.ask(release(&grant, Outcome::Used { next: 8 })), Reply::Released);
}

#[test]
fn cooldown_after_a_rejection_does_not_bring_the_stale_nonce_back() {
    let rejected = |expected| Outcome::Rejected { expected };
    for (outcome, after) in [
        (rejected(None), NonceRecord::InDoubt { floor: Some(7) }),
        (rejected(Some(9)), NonceRecord::Known(9)),
        (rejected(Some(5)), NonceRecord::InDoubt { floor: Some(7) }),
        (Outcome::Unknown { used: None }, NonceRecord::InDoubt { floor: Some(7) }),
    ] {
        let mut scene = Scene::of(&["a"]);
        let grant = scene.synced("a", 7);
        let cooldown = 20 * SECOND;
        scene.ask(Request::Release { lease: lease(&grant), outcome, cooldown });
        let rested = scene.wall + cooldown;
        assert_eq!(scene.ask(any(1)), refused(Refusal::Exhausted, Some(rested)));
        scene.pass(cooldown);
        assert_eq!(scene.claim_of("a").nonce, after, "{outcome:?}");
    }
}

#[test]
fn a_lease_is_as_long_for_the_store_as_for_its_holder() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.claim_of("a");
    assert_eq!(grant.deadline, scene.wall + TTL);
    scene.pass(TTL - 1);
    assert_eq!(scene.ask(these(&["a"])), refused(Refusal::Exhausted, Some(grant.deadline)));
    scene.pass(1);
    assert_ne!(scene.claim_of("a").fence, grant.fence);
}

#[test]
fn duplicates_are_refused() {
    let mut scene = Scene::bare();
    let twice = |weight| SlotSpec { slot: id("a"), weight };
    let slots = vec![twice(1), twice(9)];
    let reply = scene.ask(Request::Define { slots, longest: TTL, doubt_rest: 0 });
    assert_eq!(reply, Reply::Defined { added: 1, total: 1 }, "one slot, with the weight named last");
    assert_eq!(scene.view("a").weight, 9);
    assert_eq!(scene.ask(these(&["a", "a"])), refused(Refusal::Exhausted, None));
    let one_of_it = Choice::Among { slots: ids(&["a", "a", "a"]), count: 1 };
    let grants = scene.grants(super::scene::claim(one_of_it));
    assert_eq!(grants.len(), 1);
    assert_eq!(scene.ask(release(&grants[0], Outcome::Unused)), Reply::Released);
    assert_eq!(scene.counts(), [1, 1, 0, 0]);
}

#[test]
fn one_account_in_two_spellings_is_one_slot() {
    let mut scene = Scene::of(&["0xAb", "0xaB"]);
    scene.claim_of("0xab");
    assert_eq!(scene.counts(), [1, 0, 0, 1]);
}

#[test]
fn a_quarantine_survives_the_holders_release() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.synced("a", 7);
    let rest = 3600 * SECOND;
    let until = scene.wall + rest;
    assert_eq!(scene.ask(change("a", SlotChange::Quarantine(rest))), Reply::Changed);
    assert_eq!(scene.ask(release(&grant, Outcome::Used { next: 8 })), Reply::Released);
    assert_eq!(scene.ask(any(1)), refused(Refusal::Exhausted, Some(until)));
    scene.pass(rest - 1);
    assert_eq!(scene.ask(these(&["a"])), refused(Refusal::Exhausted, Some(until)));
    scene.pass(1);
    assert_eq!(scene.claim_of("a").nonce, NonceRecord::InDoubt { floor: Some(8) });
}

#[test]
fn a_cooldown_is_not_shortened_by_a_later_one() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.claim_of("a");
    let barred = scene.wall + 50 * SECOND;
    scene.ask(change("a", SlotChange::Quarantine(50 * SECOND)));
    scene.ask(change("a", SlotChange::Quarantine(SECOND)));
    scene.ask(Request::Release { lease: lease(&grant), outcome: Outcome::Unused, cooldown: 2 * SECOND });
    assert_eq!(scene.ask(any(1)), refused(Refusal::Exhausted, Some(barred)));
}

#[test]
fn a_lease_without_a_last_word_is_not_taken_for_unused() {
    let mut scene = Scene::of(&["a"]);
    scene.synced("a", 7);
    scene.pass(TTL);
    let next = scene.claim_of("a");
    assert_eq!(next.nonce, NonceRecord::InDoubt { floor: Some(7) });
    assert!(next.in_doubt());
}

#[test]
fn a_store_that_lost_its_memory_does_not_start_at_nonce_zero() {
    let mut scene = Scene::of(&["a"]);
    assert_eq!(scene.claim_of("a").nonce, NonceRecord::Unset, "unknown, not zero");
}

#[test]
fn a_nonce_of_64_bits_keeps_its_digits() {
    for nonce in [(1 << 53) - 1, 1 << 53, (1 << 53) + 1, (1 << 63) + 1, u64::MAX - 1, u64::MAX] {
        let mut scene = Scene::of(&["a"]);
        let grant = scene.synced("a", nonce);
        scene.ask(release(&grant, Outcome::Unused));
        assert_eq!(scene.claim_of("a").nonce, NonceRecord::Known(nonce));
    }
}

#[test]
fn the_same_slot_is_not_always_chosen_first() {
    let mut scene = Scene::of(&["a", "b", "c"]);
    let mut order = Vec::new();
    for _ in 0..6 {
        let grant = scene.claim();
        order.push(grant.slot.to_string());
        scene.ask(release(&grant, Outcome::Unused));
    }
    assert_eq!(order, ["a", "b", "c", "a", "b", "c"]);
}
