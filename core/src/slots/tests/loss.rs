//! A store that lost its memory is noticed (rules S2 and S11).

use super::scene::{START, Scene, TTL, any, change, define, lost, refused, release, renew};
use crate::SECOND;
use crate::nonce::{NonceRecord, Outcome};
use crate::slots::{
    Answer, Claim, Envelope, Grant, Lane, Loss, Pool, Refusal, Reply, Request, SlotChange, VALIDITY,
};

const QUIET: Refusal = Refusal::Quiet;

/// What a scene may have lost its memory by, and the name of it.
type Loser = (&'static str, fn(&mut Scene));

const LOSERS: [Loser; 3] = [
    ("another incarnation", |scene| scene.incarnation.push('b')),
    ("a fence above the top", |scene| scene.seen = scene.wall + 3600 * SECOND),
    ("a clock that jumped", |scene| scene.jumped = true),
];

#[test]
fn nothing_is_granted_for_one_longest_time_to_live() {
    for (name, lose) in LOSERS {
        let mut scene = Scene::of(&["a", "b"]);
        scene.pass(SECOND);
        lose(&mut scene);
        let end = scene.wall + TTL;
        assert_eq!(scene.ask(any(1)), refused(QUIET, Some(end)), "{name}");
        scene.jumped = false;
        scene.pass(TTL - 1);
        assert_eq!(scene.ask(any(1)), refused(QUIET, Some(end)), "{name}");
        scene.pass(1);
        assert_eq!(scene.grants(any(1)).len(), 1, "{name}");
    }
}

/// The network doubled a claim, and its copy came to a server that had lost its memory: it was performed twice.
#[test]
fn what_set_out_before_the_loss_changes_nothing_after_it() {
    let claiming = |sent, number| Envelope {
        lane: Some(Lane { client: 5, number, sequence: 1 }),
        not_after: Some(sent + VALIDITY),
        requests: vec![any(1)],
        ..Envelope::default()
    };
    for (name, lose) in LOSERS {
        let mut scene = Scene::of(&["a"]);
        let sent = scene.wall;
        scene.pass(SECOND);
        lose(&mut scene);
        let lost = scene.wall;
        scene.now();
        scene.jumped = false;
        scene.pass(8 * SECOND);
        let before = scene.counts();
        for sent in [sent, lost - 1] {
            assert_eq!(scene.apply(&claiming(sent, 1)), Answer::Stale { now: scene.wall }, "{name}");
        }
        assert_eq!(scene.counts(), before, "{name}");
        assert!(matches!(scene.apply(&claiming(lost, 2)), Answer::Performed(_)), "{name}");
    }
}

#[test]
fn the_longest_time_to_live_ever_asked_for_counts() {
    let mut scene = Scene::of(&["a", "b"]);
    let Request::Claim(claim) = any(1) else { unreachable!() };
    let grant = scene.grants(Request::Claim(Claim { ttl: 2 * TTL, ..claim })).remove(0);
    scene.ask(Request::Renew { lease: super::scene::lease(&grant), ttl: 3 * TTL });
    scene.pass(SECOND);
    scene.incarnation = "b".to_owned();
    assert_eq!(scene.ask(any(1)), refused(QUIET, Some(START + SECOND + 3 * TTL)));
}

#[test]
fn what_was_signed_under_a_forgotten_lease_rests_as_any_nonce_in_doubt_does() {
    let mut scene = Scene::bare();
    scene.ask(super::scene::define_resting(&["a"], 10 * SECOND));
    scene.pass(SECOND);
    scene.incarnation = "b".to_owned();
    assert_eq!(scene.ask(any(1)), refused(QUIET, Some(START + TTL + 11 * SECOND)));
    let mut young = Scene::bare();
    young.up_since = START - TTL;
    young.ask(super::scene::define_resting(&["a"], 10 * SECOND));
    assert_eq!(young.ask(any(1)), refused(QUIET, Some(START + 10 * SECOND)));
}

#[test]
fn known_nonces_are_in_doubt_after_the_loss() {
    for (name, lose) in LOSERS {
        let mut scene = Scene::of(&["a", "b"]);
        let grant = scene.synced("a", 7);
        scene.ask(release(&grant, Outcome::Used { next: 8 }));
        scene.pass(SECOND);
        lose(&mut scene);
        scene.now();
        scene.jumped = false;
        scene.pass(TTL);
        assert_eq!(scene.claim_of("a").nonce, NonceRecord::InDoubt { floor: Some(8) }, "{name}");
        assert_eq!(scene.claim_of("b").nonce, NonceRecord::Unset, "{name}");
    }
}

#[test]
fn doubt_ends_with_the_next_certain_outcome() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.synced("a", 7);
    scene.ask(release(&grant, Outcome::Unused));
    scene.pass(SECOND);
    scene.incarnation = "b".to_owned();
    scene.now();
    scene.pass(TTL);
    let grant = scene.claim_of("a");
    scene.ask(super::scene::resync(&grant, 9));
    scene.ask(release(&grant, Outcome::Unused));
    assert_eq!(scene.claim_of("a").nonce, NonceRecord::Known(9));
}

#[test]
fn a_live_lease_goes_on_through_the_quiet_time_and_ends_with_its_fence() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.synced("a", 7);
    scene.incarnation = "b".to_owned();
    scene.pass(SECOND);
    assert!(matches!(scene.ask(renew(&grant)), Reply::Renewed { .. }));
    assert_eq!(scene.ask(release(&grant, Outcome::Used { next: 8 })), Reply::Released);
}

#[test]
fn a_second_loss_in_the_same_microsecond_is_a_loss() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.synced("a", 7);
    scene.ask(release(&grant, Outcome::Unused));
    // The clock of the replica that took over is behind, so the store's time stands still.
    scene.wall -= SECOND;
    scene.incarnation = "b".to_owned();
    assert_eq!(scene.now(), START);
    assert_eq!(scene.ask(any(1)), refused(QUIET, Some(START + 1 + TTL)), "told apart from the first");
    scene.pass(TTL + 1);
    assert_eq!(scene.claim_of("a").nonce, NonceRecord::InDoubt { floor: Some(7) });
}

#[test]
fn fences_rise_through_everything() {
    let mut scene = Scene::of(&["a"]);
    let mut highest = 0;
    let mut rises = |scene: &mut Scene, name: &str| {
        let fence = scene.claim_of("a").fence;
        assert!(fence > highest, "{name}");
        highest = fence;
        fence
    };
    rises(&mut scene, "the first");
    scene.pass(TTL);
    rises(&mut scene, "after its deadline");
    scene.ask(change("a", SlotChange::Break));
    rises(&mut scene, "after a break, in the same microsecond");
    scene.ask(change("a", SlotChange::Remove));
    scene.ask(change("a", SlotChange::Break));
    scene.ask(define(&["a"]));
    rises(&mut scene, "after it was removed and added again");
    scene.wall -= 3600 * SECOND;
    scene.ask(change("a", SlotChange::Break));
    let last = rises(&mut scene, "after the clock was set back");
    scene.seen = last + 3600 * SECOND;
    scene.ask(change("a", SlotChange::Break));
    scene.pass(TTL);
    let above = rises(&mut scene, "after a client has shown a higher one");
    assert!(above > scene.seen);

    // The store forgets all; its clock is behind; a client has seen the last fence.
    let mut empty = Scene::bare();
    empty.wall = START - 3600 * SECOND;
    empty.seen = above;
    empty.ask(define(&["a"]));
    empty.pass(TTL);
    rises(&mut empty, "after all was lost");
}

#[test]
fn a_pool_that_was_never_there_grants_at_once_on_a_server_that_has_been_up() {
    let mut scene = Scene::bare();
    scene.up_since = START - TTL;
    scene.ask(define(&["a"]));
    assert_eq!(scene.grants(any(1)).len(), 1);
}

#[test]
fn a_pool_that_may_have_been_lost_waits_for_the_leases_that_may_be_forgotten() {
    let mut scene = Scene::bare();
    scene.up_since = START - 10 * SECOND;
    scene.ask(define(&["a"]));
    assert_eq!(scene.ask(any(1)), refused(QUIET, Some(START + 20 * SECOND)));
    scene.pass(20 * SECOND);
    assert_eq!(scene.grants(any(1)).len(), 1);
}

#[test]
fn a_pool_that_was_lost_for_certain_waits_a_whole_time_to_live() {
    let mut scene = Scene::bare();
    scene.seen = START - 5 * SECOND;
    scene.ask(define(&["a"]));
    assert_eq!(scene.ask(any(1)), refused(QUIET, Some(START + TTL)));
}

/// A pool that somebody defined anew who has seen nothing of the old one, and a lease of the old one.
fn begun_anew() -> (Scene, Grant) {
    let mut scene = Scene::of(&["a", "b"]);
    let held = scene.claim_of("a");
    scene.pass(10 * SECOND);
    scene.pool = Pool::default();
    scene.ask(define(&["a", "b"]));
    (scene, held)
}

#[test]
fn a_fence_from_before_the_pool_shows_that_it_was_lost() {
    let (mut scene, held) = begun_anew();
    let end = scene.wall + 1 + TTL;
    scene.pass(SECOND);
    // Nobody can know yet.
    let other = scene.claim_of("b");
    scene.seen = held.fence;
    assert_eq!(scene.ask(any(1)), refused(QUIET, Some(end)));
    scene.seen = 0;
    assert_eq!(scene.ask(any(1)), refused(QUIET, Some(end)), "whoever asks");
    assert_eq!(scene.ask(renew(&held)), lost(Loss::Forgotten));
    assert!(matches!(scene.ask(renew(&other)), Reply::Renewed { .. }), "it is no lease of the lost pool");
    scene.wall = end - 1;
    assert_eq!(scene.ask(any(1)), refused(QUIET, Some(end)));
    scene.pass(1);
    assert!(scene.claim_of("a").fence > held.fence);
}

#[test]
fn what_ended_long_ago_leaves_nonces_in_doubt_and_no_quiet_time() {
    let (mut scene, held) = begun_anew();
    for slot in ["a", "b"] {
        let grant = scene.synced(slot, 7);
        scene.ask(release(&grant, Outcome::Unused));
    }
    scene.pass(TTL + 1);
    scene.seen = held.fence;
    assert_eq!(scene.claim_of("a").nonce, NonceRecord::InDoubt { floor: Some(7) });
    scene.seen = 0;
    assert_eq!(scene.claim_of("b").nonce, NonceRecord::InDoubt { floor: Some(7) });
}

#[test]
fn a_fence_from_before_the_pool_is_noticed_once() {
    let (mut scene, held) = begun_anew();
    scene.pass(TTL + 1);
    scene.seen = held.fence;
    let grant = scene.synced("a", 9);
    scene.ask(release(&grant, Outcome::Unused));
    let grant = scene.claim_of("a");
    assert_eq!(grant.nonce, NonceRecord::Known(9));
    scene.ask(release(&grant, Outcome::Unused));
    // What is lost then is another loss.
    scene.pass(SECOND);
    scene.incarnation = "b".to_owned();
    assert_eq!(scene.ask(any(1)), refused(QUIET, Some(scene.wall + TTL)));
    scene.pass(TTL);
    assert_eq!(scene.claim_of("a").nonce, NonceRecord::InDoubt { floor: Some(9) });
}

#[test]
fn a_fence_from_before_the_pool_shows_on_a_young_server_too() {
    let mut scene = Scene::bare();
    scene.up_since = START - 10 * SECOND;
    scene.ask(define(&["a"]));
    assert_eq!(scene.ask(any(1)), refused(QUIET, Some(START + 20 * SECOND)));
    // It was flushed after it had started.
    scene.seen = START - SECOND;
    assert_eq!(scene.ask(any(1)), refused(QUIET, Some(START + 1 + TTL)));
}

#[test]
fn no_fence_of_the_pool_is_from_before_it() {
    for (name, lose) in LOSERS {
        let mut scene = Scene::of(&["a"]);
        let mut fences = vec![scene.claim_of("a").fence];
        // The store's time stands still, and goes on from where it was.
        scene.wall -= 3600 * SECOND;
        scene.ask(change("a", SlotChange::Break));
        fences.push(scene.claim_of("a").fence);
        lose(&mut scene);
        scene.ask(change("a", SlotChange::Break));
        (scene.seen, scene.jumped) = (0, false);
        scene.pass(TTL + SECOND);
        let grant = scene.synced("a", 7);
        scene.ask(release(&grant, Outcome::Unused));
        for fence in fences {
            scene.seen = fence;
            let grant = scene.claim_of("a");
            assert_eq!(grant.nonce, NonceRecord::Known(7), "{name}");
            scene.ask(release(&grant, Outcome::Unused));
        }
    }
}

#[test]
fn a_lease_of_a_lost_pool_is_forgotten_or_gone() {
    let mut before = Scene::of(&["a", "b"]);
    let grants = before.grants(any(2));
    let mut scene = Scene { wall: START + SECOND, seen: grants[1].fence, ..Scene::bare() };
    assert_eq!(scene.ask(renew(&grants[0])), Reply::Undefined, "not lost: define it, and ask again");
    scene.ask(define(&["a"]));
    assert_eq!(scene.ask(renew(&grants[0])), lost(Loss::Forgotten));
    assert_eq!(scene.ask(renew(&grants[1])), lost(Loss::Gone));
}

#[test]
fn a_fence_that_the_pool_granted_itself_is_no_loss() {
    let mut scene = Scene::of(&["a", "b"]);
    scene.seen = scene.claim_of("a").fence;
    assert_eq!(scene.grants(any(1)).len(), 1);
}

/// Each process that had seen more of what was lost than the one before told of it anew: the quiet time began again, and the line was
/// cleared.
#[test]
fn a_loss_that_is_known_is_not_noticed_again_by_who_has_seen_more_of_it() {
    let losers: [Loser; 2] = [LOSERS[0], LOSERS[2]];
    for (name, lose) in losers {
        let mut scene = Scene::of(&["a", "b", "c"]);
        let shown = scene.claim_of("a").fence;
        let kept = scene.pool.clone();
        scene.pass(SECOND);
        let forgotten = [scene.claim_of("b").fence, scene.claim_of("c").fence];
        scene.pool = kept;
        scene.pass(SECOND);
        lose(&mut scene);
        scene.seen = shown;
        let end = scene.wall + TTL;
        assert_eq!(scene.ask(any(1)), refused(QUIET, Some(end)), "{name}");
        scene.jumped = false;
        for fence in forgotten {
            scene.pass(SECOND);
            scene.seen = fence;
            assert_eq!(scene.ask(any(1)), refused(QUIET, Some(end)), "{name}");
        }
        scene.wall = end;
        assert!(scene.claim_of("b").fence > forgotten[1], "{name}");
        // What was granted since, and is not known, was lost since.
        let kept = scene.pool.clone();
        scene.pass(SECOND);
        scene.seen = scene.claim_of("c").fence;
        scene.pool = kept;
        assert_eq!(scene.ask(any(1)), refused(QUIET, Some(scene.wall + TTL)), "{name}");
    }
}
