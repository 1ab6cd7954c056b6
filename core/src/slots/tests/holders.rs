//! Renewals, releases and resyncs; every way in which a lease is lost.

use super::scene::{Scene, TTL, any, asking, change, define, lease, lost, release, renew, resync};
use crate::SECOND;
use crate::nonce::{NonceRecord, Outcome};
use crate::slots::{Choice, Claim, Grant, LeaseRef, Loss, Reply, Request, SlotChange, State, Strategy};

fn everything_of(grant: &Grant) -> Vec<Request> {
    vec![renew(grant), resync(grant, 99), release(grant, Outcome::Used { next: 99 })]
}

fn all_lost(scene: &mut Scene, grant: &Grant, loss: Loss) {
    let before = scene.counts();
    for request in everything_of(grant) {
        assert_eq!(scene.ask(request.clone()), lost(loss), "{request:?}");
    }
    assert_eq!(scene.counts(), before);
}

#[test]
fn every_loss() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.claim();
    scene.ask(release(&grant, Outcome::Unused));
    all_lost(&mut scene, &grant, Loss::Ended);

    let next = scene.claim();
    all_lost(&mut scene, &grant, Loss::Taken);

    scene.ask(change("a", SlotChange::Break));
    all_lost(&mut scene, &next, Loss::Ended);

    let expired = scene.claim();
    scene.pass(TTL);
    all_lost(&mut scene, &expired, Loss::Ended);

    scene.ask(change("a", SlotChange::Remove));
    all_lost(&mut scene, &expired, Loss::Gone);

    scene.ask(define(&["a"]));
    all_lost(&mut scene, &expired, Loss::Gone);

    let mut other = Scene { wall: scene.wall, seen: expired.fence, ..Scene::bare() };
    other.ask(define(&["a"]));
    all_lost(&mut other, &expired, Loss::Forgotten);
}

#[test]
fn an_overdue_lease_that_was_not_swept_is_lost_all_the_same() {
    let names: Vec<String> = (0..300).map(|n| format!("s{n:03}")).collect();
    let slots: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut scene = Scene::of(&slots);
    let grants = scene.grants(any(300));
    scene.pass(TTL);
    let last = grants.iter().max_by_key(|grant| grant.slot.clone()).unwrap();
    assert_eq!(scene.ask(renew(last)), lost(Loss::Expired));
    assert_eq!(scene.ask(release(last, Outcome::Unused)), lost(Loss::Expired));
    assert_eq!(scene.ask(release(last, Outcome::Unused)), lost(Loss::Ended), "swept by the third envelope");
}

#[test]
fn a_lease_is_named_by_its_fence_and_not_by_its_place() {
    let mut scene = Scene::of(&["a", "b"]);
    let grant = scene.claim_of("a");
    let other = scene.claim_of("b");
    let misplaced = LeaseRef { place: other.place, ..lease(&grant) };
    assert_eq!(
        scene.ask(Request::Renew { lease: misplaced, ttl: TTL }),
        Reply::Renewed { deadline: grant.deadline }
    );
    let swapped = LeaseRef { fence: other.fence, ..lease(&grant) };
    assert_eq!(scene.ask(Request::Renew { lease: swapped, ttl: TTL }), lost(Loss::Forgotten));
    let nowhere = LeaseRef { place: u32::MAX, ..lease(&grant) };
    assert_eq!(
        scene.ask(Request::Release { lease: nowhere, outcome: Outcome::Unused, cooldown: 0 }),
        Reply::Released
    );
}

#[test]
fn a_renewal_never_shortens() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.claim();
    scene.pass(SECOND);
    let short = Request::Renew { lease: lease(&grant), ttl: SECOND };
    assert_eq!(scene.ask(short), Reply::Renewed { deadline: grant.deadline });
    assert_eq!(scene.ask(renew(&grant)), Reply::Renewed { deadline: scene.wall + TTL });
    scene.pass(TTL);
    assert_eq!(scene.ask(renew(&grant)), lost(Loss::Ended));
}

#[test]
fn renewals_end_at_max_hold() {
    let mut scene = Scene::of(&["a"]);
    let choice = Choice::Any { strategy: Strategy::Random, least: 1, most: 1 };
    let held = |choice, max_hold| Request::Claim(Claim { max_hold, ..asking(choice) });
    let grant = scene.grants(held(choice.clone(), 40 * SECOND)).remove(0);
    let end = scene.wall + 40 * SECOND;
    scene.pass(20 * SECOND);
    assert_eq!(scene.ask(renew(&grant)), Reply::Renewed { deadline: end });
    scene.pass(19 * SECOND);
    assert_eq!(scene.ask(renew(&grant)), Reply::Renewed { deadline: end });
    scene.pass(SECOND);
    assert_eq!(scene.ask(renew(&grant)), lost(Loss::Ended));
    let short = scene.grants(held(choice, SECOND)).remove(0);
    assert_eq!(short.deadline, scene.wall + SECOND, "shorter than the time to live");
}

#[test]
fn a_resync_is_believed_forwards_at_once_and_backwards_when_it_is_old_or_asked_for() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.synced("a", 7);
    let raised = scene.wall;
    assert_eq!(scene.ask(resync(&grant, 9)), Reply::Resynced { next: 9 });
    scene.pass(SECOND);
    let behind = Reply::Behind { floor: 9, until: raised + 60 * SECOND };
    assert_eq!(scene.ask(resync(&grant, 8)), behind);
    assert_eq!(scene.view("a").nonce, NonceRecord::Known(9));
    let rewind = Request::Resync { lease: lease(&grant), chain: 5, rewind: true, settle: 60 * SECOND };
    assert_eq!(scene.ask(rewind), Reply::Resynced { next: 5 });
    let changed = scene.wall;
    for _ in 0..3 {
        scene.pass(20 * SECOND);
        assert!(matches!(scene.ask(renew(&grant)), Reply::Renewed { .. }));
        if scene.wall < changed + 60 * SECOND {
            let behind = Reply::Behind { floor: 5, until: changed + 60 * SECOND };
            assert_eq!(scene.ask(resync(&grant, 4)), behind);
        }
    }
    assert_eq!(scene.ask(resync(&grant, 4)), Reply::Resynced { next: 4 });
}

#[test]
fn a_resync_of_a_lease_in_doubt_settles_it() {
    let mut scene = Scene::of(&["a"]);
    scene.synced("a", 7);
    scene.pass(TTL);
    let grant = scene.claim_of("a");
    assert!(matches!(scene.ask(resync(&grant, 6)), Reply::Behind { floor: 7, .. }));
    assert_eq!(scene.ask(resync(&grant, 7)), Reply::Resynced { next: 7 });
    assert_eq!(scene.ask(release(&grant, Outcome::Unused)), Reply::Released);
    assert_eq!(scene.claim_of("a").nonce, NonceRecord::Known(7));
}

#[test]
fn every_outcome_of_a_release() {
    let rejected = |expected| Outcome::Rejected { expected };
    for (outcome, after, in_doubt) in [
        (Outcome::Unsettled, NonceRecord::InDoubt { floor: Some(7) }, 1),
        (Outcome::Unknown { used: None }, NonceRecord::InDoubt { floor: Some(7) }, 1),
        (Outcome::Unknown { used: Some(9) }, NonceRecord::InDoubt { floor: Some(9) }, 1),
        (Outcome::Unknown { used: Some(5) }, NonceRecord::InDoubt { floor: Some(7) }, 1),
        (Outcome::Unused, NonceRecord::Known(7), 0),
        (Outcome::Used { next: 8 }, NonceRecord::Known(8), 0),
        (Outcome::Used { next: u64::MAX }, NonceRecord::Known(u64::MAX), 0),
        (rejected(None), NonceRecord::InDoubt { floor: Some(7) }, 1),
        (rejected(Some(7)), NonceRecord::Known(7), 0),
        (rejected(Some(6)), NonceRecord::InDoubt { floor: Some(7) }, 1),
    ] {
        let mut scene = Scene::of(&["a"]);
        let grant = scene.synced("a", 7);
        assert_eq!(scene.ask(release(&grant, outcome)), Reply::Released);
        assert_eq!(scene.view("a").nonce, after, "{outcome:?}");
        assert_eq!(scene.view("a").state, State::Ready);
        assert_eq!(scene.counts(), [1, 1, in_doubt, 0], "{outcome:?}");
    }
}

#[test]
fn a_lease_that_carried_no_nonce_leaves_none_in_doubt() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.claim();
    scene.ask(release(&grant, Outcome::Unsettled));
    assert_eq!(scene.view("a").nonce, NonceRecord::Unset);
    scene.claim();
    scene.pass(TTL);
    assert_eq!(scene.claim().nonce, NonceRecord::Unset);
}
