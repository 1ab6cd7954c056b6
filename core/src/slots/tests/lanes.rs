//! A repeated envelope is answered and not performed again; a late one changes nothing.

use super::scene::{START, Scene, any, release};
use crate::SECOND;
use crate::nonce::Outcome;
use crate::slots::{Answer, Envelope, LANE_GRACE, Lane, Reply, Request};

fn numbered(sequence: u64, requests: Vec<Request>) -> Envelope {
    let lane = Some(Lane { client: 5, number: 0, sequence });
    Envelope { lane, not_after: Some(START + 10 * SECOND), requests, ..Envelope::default() }
}

#[test]
fn the_same_sequence_gets_the_same_answer_and_changes_nothing() {
    let mut scene = Scene::of(&["a", "b"]);
    let envelope = numbered(1, vec![any(1)]);
    let answer = scene.apply(&envelope);
    let before = scene.counts();
    for time in [0, SECOND, 20 * SECOND] {
        scene.pass(time);
        assert_eq!(scene.apply(&envelope), answer, "also after its last moment");
    }
    assert_eq!(scene.counts(), before);
}

#[test]
fn a_repeated_release_is_released_and_not_lost() {
    let mut scene = Scene::of(&["a"]);
    let grant = scene.claim();
    let envelope = numbered(1, vec![release(&grant, Outcome::Used { next: 4 })]);
    let Answer::Performed(first) = scene.apply(&envelope) else { panic!("stale") };
    assert_eq!(first.replies, [Reply::Released]);
    let next = scene.claim();
    assert_eq!(scene.apply(&envelope), Answer::Performed(first));
    assert_eq!(scene.view("a").fence, next.fence);
}

#[test]
fn an_older_sequence_is_stale() {
    let mut scene = Scene::of(&["a", "b"]);
    scene.apply(&numbered(2, vec![any(1)]));
    let before = scene.counts();
    assert_eq!(scene.apply(&numbered(1, vec![any(1)])), Answer::Stale { now: START });
    assert_eq!(scene.counts(), before);
    assert!(matches!(scene.apply(&numbered(3, vec![any(1)])), Answer::Performed(_)));
}

#[test]
fn lanes_do_not_know_of_each_other() {
    let mut scene = Scene::of(&["a", "b", "c"]);
    scene.apply(&numbered(9, vec![any(1)]));
    for (client, number) in [(5, 1), (6, 0)] {
        let lane = Some(Lane { client, number, sequence: 1 });
        let answer = scene.apply(&Envelope { lane, requests: vec![any(1)], ..Envelope::default() });
        assert!(matches!(answer, Answer::Performed(_)));
    }
    assert_eq!(scene.counts(), [3, 0, 0, 3]);
}

#[test]
fn a_late_envelope_changes_nothing() {
    let mut scene = Scene::of(&["a"]);
    let envelope = numbered(1, vec![any(1)]);
    scene.pass(10 * SECOND + 1);
    assert_eq!(scene.apply(&envelope), Answer::Stale { now: scene.wall });
    assert_eq!(scene.counts(), [1, 1, 0, 0]);
    let mut punctual = Scene::of(&["a"]);
    punctual.pass(10 * SECOND);
    assert!(matches!(punctual.apply(&envelope), Answer::Performed(_)), "the last moment counts");
}

#[test]
fn an_answer_is_kept_past_the_envelopes_last_moment() {
    let mut scene = Scene::of(&["a"]);
    let envelope = numbered(1, vec![any(1)]);
    let answer = scene.apply(&envelope);
    scene.pass(10 * SECOND + LANE_GRACE - 1);
    assert_eq!(scene.apply(&envelope), answer);
    scene.pass(1);
    assert_eq!(scene.apply(&envelope), Answer::Stale { now: scene.wall }, "forgotten, and too late");
}

#[test]
fn a_stale_envelope_does_not_move_the_clock() {
    let mut scene = Scene::of(&["a"]);
    scene.apply(&numbered(2, vec![]));
    scene.pass(SECOND);
    assert_eq!(scene.apply(&numbered(1, vec![any(1)])), Answer::Stale { now: START + SECOND });
    scene.wall = START;
    assert_eq!(scene.now(), START);
}

#[test]
fn many_lanes_are_kept_no_longer_than_they_are_needed() {
    let mut scene = Scene::of(&["a"]);
    for client in 0..5_000 {
        let lane = Some(Lane { client, number: 0, sequence: 1 });
        scene.apply(&Envelope { lane, requests: vec![], ..Envelope::default() });
        scene.pass(SECOND);
    }
    let lane = Some(Lane { client: 4_999, number: 0, sequence: 1 });
    let repeated = Envelope { lane, requests: vec![any(1)], ..Envelope::default() };
    let Answer::Performed(performed) = scene.apply(&repeated) else { panic!("stale") };
    assert!(performed.replies.is_empty(), "the answer of before");
}

#[test]
fn an_undefined_pool_answers_every_request_so() {
    let mut scene = Scene::bare();
    let performed = scene.perform(vec![any(1), Request::List, super::scene::define(&["a"])]);
    assert_eq!(performed.replies, [Reply::Undefined, Reply::Undefined, Reply::Undefined]);
    let performed = scene.perform(vec![super::scene::define(&["a"]), any(1)]);
    assert!(matches!(performed.replies[1], Reply::Granted(_)));
}
