//! Definitions, changes by administrators, and what they see.

use super::scene::{
    START, Scene, TTL, any, change, define, define_resting, id, ids, lost, refused, release, renew, these,
};
use crate::SECOND;
use crate::nonce::{NonceRecord, Outcome};
use crate::slots::{Loss, MAX_SLOTS, Mode, Refusal, Reply, Request, SlotChange, SlotSpec, State};

const REFUSED: Reply = refused(Refusal::Exhausted, None);

#[test]
fn a_definition_adds_and_never_takes_away() {
    let mut scene = Scene::bare();
    assert_eq!(scene.ask(define(&["a", "b"])), Reply::Defined { added: 2, total: 2 });
    assert_eq!(scene.ask(define(&["b", "c"])), Reply::Defined { added: 1, total: 3 });
    assert_eq!(scene.ask(define(&[])), Reply::Defined { added: 0, total: 3 });
    assert_eq!(scene.ask(Request::List), Reply::Listed(ids(&["a", "b", "c"])));
}

#[test]
fn a_definition_leaves_leases_and_disabled_slots_as_they_are() {
    let mut scene = Scene::of(&["a", "b"]);
    let grant = scene.synced("a", 7);
    scene.ask(change("b", SlotChange::Disable));
    scene.ask(define(&["a", "b"]));
    assert_eq!(scene.view("a").fence, grant.fence);
    assert_eq!((scene.view("b").mode, scene.view("b").state), (Mode::Disabled, State::Out));
    assert_eq!(scene.ask(release(&grant, Outcome::Unused)), Reply::Released);
}

#[test]
fn a_definition_gives_weights() {
    let weigh = |weight| Request::Define {
        slots: vec![SlotSpec { slot: id("a"), weight }],
        longest: TTL,
        doubt_rest: 0,
    };
    let mut scene = Scene::of(&["a"]);
    scene.ask(weigh(200));
    assert_eq!(scene.view("a").weight, 200);
    let grant = scene.claim();
    scene.ask(weigh(3));
    assert_eq!((scene.view("a").weight, scene.view("a").state), (3, State::Leased));
    scene.ask(release(&grant, Outcome::Unused));
    assert_eq!(scene.counts(), [1, 1, 0, 0]);
    assert_eq!(scene.claim().slot, id("a"));
}

#[test]
fn a_pool_that_would_be_too_large_stays_as_it_is() {
    let mut scene = Scene::of(&["a"]);
    let slots = (0..MAX_SLOTS).map(|n| SlotSpec { slot: id(&n.to_string()), weight: 1 }).collect();
    assert_eq!(scene.ask(Request::Define { slots, longest: TTL, doubt_rest: 0 }), Reply::Full);
    assert_eq!(scene.counts(), [1, 1, 0, 0]);
}

#[test]
fn changes_of_a_slot_that_is_not_leased() {
    let mut scene = Scene::of(&["a"]);
    for request in [SlotChange::Disable, SlotChange::Drain] {
        assert_eq!(scene.ask(change("a", request)), Reply::Changed);
        assert_eq!((scene.view("a").mode, scene.view("a").state), (Mode::Disabled, State::Out));
        assert_eq!(scene.counts(), [1, 0, 0, 0]);
        assert_eq!(scene.ask(these(&["a"])), REFUSED);
        scene.ask(change("a", SlotChange::Enable));
        assert_eq!((scene.view("a").mode, scene.view("a").state), (Mode::Enabled, State::Ready));
    }
    assert_eq!(scene.ask(change("a", SlotChange::Break)), Reply::Changed);
    assert_eq!(scene.view("a").state, State::Ready);
    scene.ask(change("a", SlotChange::Remove));
    assert_eq!(scene.ask(Request::List), Reply::Listed(vec![]));
    for request in [SlotChange::Enable, SlotChange::Remove, SlotChange::Break] {
        assert_eq!(scene.ask(change("a", request)), Reply::NoSlot);
    }
}

#[test]
fn changes_of_a_leased_slot_wait_for_its_lease() {
    for (request, mode, renewed) in [
        (SlotChange::Disable, Mode::Disabled, false),
        (SlotChange::Drain, Mode::Draining, true),
        (SlotChange::Remove, Mode::Removing, true),
    ] {
        let mut scene = Scene::of(&["a"]);
        let grant = scene.claim();
        scene.ask(change("a", request));
        assert_eq!((scene.view("a").mode, scene.view("a").state), (mode, State::Leased));
        scene.pass(SECOND);
        let deadline = if renewed { scene.wall + TTL } else { grant.deadline };
        assert_eq!(scene.ask(renew(&grant)), Reply::Renewed { deadline });
        assert_eq!(scene.ask(release(&grant, Outcome::Unused)), Reply::Released);
        let left = u32::from(request != SlotChange::Remove);
        assert_eq!(scene.counts(), [left, 0, 0, 0]);
        assert_eq!(scene.ask(renew(&grant)), lost(if left == 0 { Loss::Gone } else { Loss::Ended }));
    }
}

#[test]
fn a_removed_slot_goes_when_its_lease_runs_out_and_stays_if_it_is_defined_again() {
    let mut scene = Scene::of(&["a", "b"]);
    scene.grants(any(2));
    scene.ask(change("a", SlotChange::Remove));
    scene.ask(change("b", SlotChange::Remove));
    scene.ask(define(&["b"]));
    assert_eq!(scene.view("b").mode, Mode::Enabled);
    scene.pass(TTL);
    assert_eq!(scene.ask(Request::List), Reply::Listed(ids(&["b"])));
    assert_eq!(scene.claim().slot, id("b"));
}

/// Whoever enabled all slots, after another had removed one that was leased, kept that one, and its remover had been told that it goes.
#[test]
fn a_slot_that_is_removed_under_its_lease_is_there_for_no_other_change() {
    for request in [SlotChange::Enable, SlotChange::Disable, SlotChange::Drain] {
        let mut scene = Scene::of(&["a"]);
        let grant = scene.claim();
        scene.ask(change("a", SlotChange::Remove));
        assert_eq!(scene.ask(change("a", request)), Reply::NoSlot);
        assert_eq!(scene.view("a").mode, Mode::Removing);
        assert_eq!(scene.ask(change("a", SlotChange::Remove)), Reply::Changed);
        assert_eq!(scene.ask(release(&grant, Outcome::Unused)), Reply::Released);
        assert_eq!(scene.counts(), [0; 4], "{request:?}");
    }
}

/// Removed as well, it was renewed again.
#[test]
fn a_lease_of_a_disabled_slot_is_not_renewed_for_its_being_removed() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.claim();
    scene.ask(change("a", SlotChange::Disable));
    scene.pass(SECOND);
    for _ in 0..2 {
        scene.ask(change("a", SlotChange::Remove));
        assert_eq!(scene.ask(renew(&grant)), Reply::Renewed { deadline: grant.deadline });
    }
    scene.pass(TTL - SECOND);
    assert_eq!(scene.counts(), [0; 4]);
}

#[test]
fn enable_ends_a_quarantine_and_not_a_cooldown() {
    let mut scene = Scene::of(&["a"]);
    scene.ask(change("a", SlotChange::Quarantine(60 * SECOND)));
    assert_eq!((scene.view("a").state, scene.view("a").until), (State::Cooling, START + 60 * SECOND));
    scene.ask(change("a", SlotChange::Enable));
    let grant = scene.claim();
    let lease = super::scene::lease(&grant);
    scene.ask(Request::Release { lease, outcome: Outcome::Unused, cooldown: 9 * SECOND });
    scene.ask(change("a", SlotChange::Enable));
    assert_eq!(scene.ask(any(1)), refused(Refusal::Exhausted, Some(START + 9 * SECOND)));
}

/// It rested anew each time, so that who enables all accounts now and then kept those in doubt from ever being used.
#[test]
fn what_can_be_had_or_rests_in_doubt_rests_no_longer_as_it_is_enabled() {
    const REST: u64 = 10 * SECOND;
    for opens in [SlotChange::Enable, SlotChange::Break] {
        let mut scene = Scene::bare();
        scene.ask(define_resting(&["a", "b"], REST));
        let held = scene.synced("a", 7);
        scene.ask(release(&held, Outcome::Unknown { used: None }));
        scene.pass(4 * SECOND);
        scene.ask(change("a", opens));
        assert_eq!((scene.view("a").state, scene.view("a").until), (State::Cooling, START + REST));
        scene.pass(6 * SECOND);
        scene.ask(change("a", opens));
        assert_eq!(scene.view("a").state, State::Ready, "{opens:?}");
        assert_eq!(scene.claim_of("a").nonce, NonceRecord::InDoubt { floor: Some(7) });
    }
    // Of one that was out nobody knows since when it is in doubt, and a quarantine makes a new doubt.
    for before in [SlotChange::Disable, SlotChange::Quarantine(SECOND)] {
        let mut scene = Scene::bare();
        scene.ask(define_resting(&["a"], REST));
        let held = scene.synced("a", 7);
        scene.ask(release(&held, Outcome::Unknown { used: None }));
        scene.pass(REST);
        scene.ask(change("a", before));
        scene.ask(change("a", SlotChange::Enable));
        assert_eq!(scene.view("a").until, START + 2 * REST, "{before:?}");
    }
}

#[test]
fn a_quarantine_leaves_the_nonce_in_doubt() {
    let mut scene = Scene::of(&["a", "b"]);
    let grant = scene.synced("a", 7);
    scene.ask(release(&grant, Outcome::Unused));
    scene.ask(change("a", SlotChange::Quarantine(SECOND)));
    assert_eq!(scene.view("a").nonce, NonceRecord::InDoubt { floor: Some(7) });
    scene.pass(SECOND);
    assert_eq!(scene.counts(), [2, 2, 1, 0]);
    let held = scene.synced("b", 4);
    scene.ask(change("b", SlotChange::Quarantine(SECOND)));
    scene.ask(release(&held, Outcome::Used { next: 5 }));
    scene.pass(SECOND);
    assert_eq!(scene.claim_of("b").nonce, NonceRecord::InDoubt { floor: Some(5) });
}

#[test]
fn a_break_ends_the_lease_and_leaves_its_nonce_in_doubt() {
    let mut scene = Scene::bare();
    scene.ask(define_resting(&["a"], SECOND));
    let grant = scene.synced("a", 7);
    scene.ask(change("a", SlotChange::Break));
    assert_eq!(scene.ask(renew(&grant)), lost(Loss::Ended));
    assert_eq!(scene.ask(any(1)), refused(Refusal::Exhausted, Some(START + SECOND)));
    scene.pass(SECOND);
    assert_eq!(scene.claim().nonce, NonceRecord::InDoubt { floor: Some(7) });
}

#[test]
fn a_break_of_a_slot_that_is_to_go_forgets_it() {
    for (request, total) in [(SlotChange::Remove, 0), (SlotChange::Drain, 1), (SlotChange::Disable, 1)] {
        let mut scene = Scene::of(&["a"]);
        scene.claim();
        scene.ask(change("a", request));
        scene.ask(change("a", SlotChange::Break));
        assert_eq!(scene.counts(), [total, 0, 0, 0]);
    }
}

#[test]
fn a_slot_added_again_has_no_memory() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.synced("a", 7);
    scene.ask(release(&grant, Outcome::Unused));
    scene.ask(change("a", SlotChange::Remove));
    scene.ask(define(&["a"]));
    let view = scene.view("a");
    assert_eq!((view.nonce, view.fence, view.holder), (NonceRecord::Unset, 0, 0));
    assert_eq!(scene.ask(renew(&grant)), lost(Loss::Gone), "and no memory was lost");
}

#[test]
fn an_inspection_shows_only_what_is_there_in_the_order_asked_for() {
    let mut scene = Scene::of(&["a", "b", "c"]);
    scene.claim_of("b");
    let reply = scene.ask(Request::Inspect { slots: ids(&["c", "z", "b", "b"]) });
    let Reply::Inspected { slots, total, ready, in_doubt, due, quiet_until, loss } = reply else { panic!() };
    let names: Vec<_> = slots.iter().map(|view| view.slot.as_str()).collect();
    assert_eq!(names, ["c", "b", "b"]);
    assert_eq!((total, ready, in_doubt, due, quiet_until, loss), (3, 2, 0, 1, 0, 0));
}

/// Whoever opened the pool with the slot in its list made it anew: it was handed out at once, the payment of the holder that died still
/// under way, and any nonce of the chain was believed.
#[test]
fn what_is_removed_in_doubt_is_found_so_by_who_adds_it_again_until_its_rest_is_over() {
    const REST: u64 = 15 * SECOND;
    let doubted = || {
        let mut scene = Scene::bare();
        scene.ask(define_resting(&["a"], REST));
        scene.synced("a", 7);
        scene.pass(TTL);
        assert_eq!((scene.view("a").state, scene.view("a").until), (State::Cooling, START + TTL + REST));
        scene.pass(SECOND);
        assert_eq!(scene.ask(change("a", SlotChange::Remove)), Reply::Changed);
        scene
    };
    let mut scene = doubted();
    let doubt = NonceRecord::InDoubt { floor: Some(7) };
    assert_eq!((scene.view("a").mode, scene.view("a").nonce), (Mode::Removing, doubt));
    assert_eq!(scene.ask(define_resting(&["a"], REST)), Reply::Defined { added: 0, total: 1 });
    assert_eq!(scene.ask(any(1)), refused(Refusal::Exhausted, Some(START + TTL + REST)));
    scene.pass(REST - SECOND);
    let grant = scene.claim();
    assert_eq!(grant.nonce, doubt);
    assert!(matches!(scene.ask(super::scene::resync(&grant, 6)), Reply::Behind { floor: 7, .. }));

    // Nobody waits for it, and it goes in the end.
    let mut scene = doubted();
    assert_eq!(scene.ask(change("a", SlotChange::Enable)), Reply::NoSlot);
    scene.ask(define_resting(&["b"], REST));
    let wants = |count| {
        let Request::Claim(claim) = any(count) else { unreachable!() };
        Request::Claim(crate::slots::Claim { wait: true, ..claim })
    };
    assert_eq!(scene.ask(wants(2)), refused(Refusal::Beyond, None));
    scene.pass(REST - SECOND);
    assert_eq!(scene.ask(Request::List), Reply::Listed(ids(&["b"])));
    assert_eq!(scene.ask(wants(2)), refused(Refusal::Beyond, None));
    assert_eq!(scene.counts(), [1, 1, 0, 0]);
}

/// It went among those that are certain, and did not rest, though who was handed it was handed one in doubt.
#[test]
fn what_was_put_under_quarantine_while_it_was_leased_is_in_doubt_whatever_its_holder_says() {
    const REST: u64 = 15 * SECOND;
    let mut scene = Scene::bare();
    scene.ask(define_resting(&["a"], REST));
    let grant = scene.synced("a", 7);
    scene.ask(change("a", SlotChange::Quarantine(SECOND)));
    assert_eq!(scene.ask(release(&grant, Outcome::Used { next: 8 })), Reply::Released);
    assert_eq!(scene.view("a").nonce, NonceRecord::InDoubt { floor: Some(8) });
    assert_eq!(scene.ask(any(1)), refused(Refusal::Exhausted, Some(START + REST)));
    scene.pass(REST);
    assert_eq!(scene.counts(), [1, 1, 1, 0]);
}
