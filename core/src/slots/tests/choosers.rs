//! Who wants one of some slots waits in their lines, and among those who take any slot.

use super::scene::{Scene, any, asking, change, define, ids, refused, release};
use crate::nonce::Outcome;
use crate::slots::{
    Choice, Claim, Grant, OFFER, Refusal, Reply, Request, SlotChange, State, Strategy, TICKET_LIFE,
    TO_THE_END,
};

/// A claim of one of these with a ticket.
fn one_of(holder: u128, slots: &[&str]) -> Claim {
    Claim { holder, wait: true, ..asking(Choice::Among { slots: ids(slots), count: 1 }) }
}

/// A claim of any slots with a ticket.
fn queue(holder: u128, count: u32) -> Claim {
    let choice = Choice::Any { strategy: Strategy::LeastRecent, least: count, most: count };
    Claim { holder, wait: true, ..asking(choice) }
}

impl Scene {
    /// All of these slots, which are leased now.
    fn held(slots: &[&str]) -> (Self, Vec<Grant>) {
        let mut scene = Scene::of(slots);
        let held = slots.iter().map(|slot| scene.claim_of(slot)).collect();
        (scene, held)
    }

    fn waits(&mut self, claim: Claim) {
        let reply = self.ask(Request::Claim(claim));
        assert!(matches!(reply, Reply::Refused { why: Refusal::Exhausted, .. }), "{reply:?}");
    }

    /// Gives leases back, and tells who is called.
    fn back(&mut self, grants: &[&Grant]) -> Vec<u128> {
        let back = grants.iter().map(|grant| release(grant, Outcome::Unused)).collect();
        self.perform(back).calls.tickets
    }

    fn kept_for(&mut self, slot: &str) -> Option<u128> {
        let view = self.view(slot);
        (view.state == State::Offered).then_some(view.holder)
    }
}

// What came free was offered to the line for any slot first: in a crowded pool a claim of one slot was never served.
#[test]
fn who_names_a_slot_is_not_passed_over_by_those_who_take_any() {
    let (mut scene, held) = Scene::held(&["a", "b"]);
    scene.waits(one_of(1, &["a"]));
    (2..=4).for_each(|holder| scene.waits(queue(holder, 1)));
    assert_eq!(scene.back(&[&held[1]]), [2], "it does not want this one");
    assert_eq!(scene.back(&[&held[0]]), [1]);
    let lease = scene.grants(Request::Claim(one_of(1, &["a"]))).remove(0);
    assert_eq!(lease.slot.as_str(), "a");
    assert_eq!(scene.back(&[&lease]), [3], "and the line goes on");
}

#[test]
fn nor_does_it_pass_over_those_who_came_before() {
    let (mut scene, held) = Scene::held(&["a", "b"]);
    scene.waits(queue(1, 1));
    scene.waits(one_of(2, &["a"]));
    scene.waits(Claim { priority: 1, ..one_of(3, &["a"]) });
    assert_eq!(scene.back(&[&held[0]]), [3], "a higher priority");
    let lease = scene.grants(Request::Claim(one_of(3, &["a"]))).remove(0);
    assert_eq!(scene.back(&[&lease]), [1]);
    let lease = scene.grants(Request::Claim(queue(1, 1))).remove(0);
    assert_eq!(scene.back(&[&lease]), [2]);
}

#[test]
fn of_several_it_gets_the_first_that_comes_free() {
    let (mut scene, held) = Scene::held(&["a", "b", "c"]);
    scene.waits(one_of(1, &["a", "b", "a"]));
    scene.waits(one_of(2, &["b", "c"]));
    assert_eq!(scene.back(&[&held[1]]), [1]);
    assert_eq!(scene.kept_for("b"), Some(1));
    assert_eq!(scene.back(&[&held[0], &held[2]]), [2], "the other that the first wanted is for anybody");
    assert_eq!((scene.kept_for("a"), scene.kept_for("c")), (None, Some(2)));
    // Whoever does not fetch it leaves it to the next.
    scene.pass(OFFER);
    assert_eq!(scene.counts(), [3, 3, 0, 0]);
}

#[test]
fn what_is_left_by_those_before_it_is_its_own() {
    let (mut scene, held) = Scene::held(&["a", "b"]);
    scene.waits(queue(1, 1));
    scene.waits(one_of(2, &["a"]));
    scene.waits(queue(3, 1));
    // The one that has been ready longest is drawn: the other.
    assert_eq!(scene.back(&[&held[1], &held[0]]), [1, 2]);
    assert_eq!((scene.kept_for("b"), scene.kept_for("a")), (Some(1), Some(2)));
}

/// The script looked at each name once, at the place of the first who wants it, and called the last before the second.
#[test]
fn those_whose_line_moves_up_are_called_one_after_the_other() {
    let (mut scene, held) = Scene::held(&["b", "c", "d"]);
    scene.ask(define(&["a"]));
    let doubtful = scene.synced("a", 7);
    scene.waits(queue(1, 4));
    scene.waits(one_of(2, &["a", "b"]));
    scene.waits(one_of(3, &["b", "a"]));
    scene.waits(one_of(4, &["c"]));
    let mut back = vec![release(&doubtful, Outcome::Unsettled)];
    back.extend([&held[0], &held[1]].map(|grant| release(grant, Outcome::Unused)));
    assert_eq!(scene.perform(back).calls.tickets, [0; 0], "the first in line wants one more");
    assert_eq!(scene.perform(vec![Request::Withdraw { holder: 1 }]).calls.tickets, [2, 3, 4]);
    assert_eq!(["a", "b", "c"].map(|slot| scene.kept_for(slot)), [3, 2, 4].map(Some));
    // Nor those that stood behind another who takes any.
    let (mut scene, held) = Scene::held(&["e", "b", "c", "d"]);
    scene.ask(define(&["a"]));
    let doubtful = scene.synced("a", 7);
    scene.waits(queue(1, 5));
    scene.waits(queue(2, 1));
    scene.waits(one_of(3, &["a", "b"]));
    scene.waits(one_of(4, &["b", "a"]));
    scene.waits(one_of(5, &["c"]));
    let mut back = vec![release(&doubtful, Outcome::Unsettled)];
    back.extend([&held[0], &held[1], &held[2]].map(|grant| release(grant, Outcome::Unused)));
    assert_eq!(scene.perform(back).calls.tickets, [0; 0], "the first in line wants one more");
    assert_eq!(scene.perform(vec![Request::Withdraw { holder: 1 }]).calls.tickets, [2, 3, 4, 5]);
}

#[test]
fn nobody_who_takes_any_takes_it_in_the_request_that_gives_it_back() {
    let (mut scene, held) = Scene::held(&["a"]);
    scene.waits(one_of(1, &["a"]));
    let performed = scene.perform(vec![release(&held[0], Outcome::Unused), any(1)]);
    assert!(matches!(performed.replies[1], Reply::Refused { why: Refusal::Exhausted, .. }), "{performed:?}");
    assert_eq!(performed.calls.tickets, [1]);
}

#[test]
fn who_wants_many_lets_it_go_on_by_leaving() {
    let (mut scene, held) = Scene::held(&["a", "b", "c"]);
    scene.waits(queue(1, 2));
    scene.waits(one_of(2, &["a"]));
    assert_eq!(scene.back(&[&held[0]]), [0; 0], "the first in line wants one more");
    scene.waits(one_of(2, &["a"]));
    let performed = scene.perform(vec![Request::Withdraw { holder: 1 }]);
    assert_eq!(performed.calls.tickets, [2]);
    // Or as its ticket lapses, or by being served with others.
    let (mut scene, held) = Scene::held(&["a", "b", "c"]);
    scene.waits(queue(1, 2));
    scene.pass(TICKET_LIFE / 2);
    scene.waits(one_of(2, &["a"]));
    assert_eq!(scene.back(&[&held[0]]), [0; 0]);
    scene.pass(TICKET_LIFE / 2);
    assert_eq!(scene.perform(vec![]).calls.tickets, [2]);
    let (mut scene, held) = Scene::held(&["a", "b", "c"]);
    scene.waits(queue(1, 3));
    scene.waits(one_of(2, &["c"]));
    scene.waits(queue(3, 1));
    assert_eq!(scene.back(&[&held[2], &held[1]]), [0; 0]);
    scene.ask(define(&["d", "e"]));
    assert_eq!(scene.kept_for("c"), Some(1), "it has been ready longest");
    assert_eq!(scene.back(&[&held[0]]), [0; 0], "and the second is not for the third");
}

#[test]
fn a_slot_that_is_gone_is_waited_for_no_more() {
    let (mut scene, held) = Scene::held(&["a", "b"]);
    scene.waits(one_of(1, &["a", "b"]));
    scene.ask(change("a", SlotChange::Remove));
    scene.back(&[&held[0]]);
    assert_eq!(scene.ask(Request::Claim(one_of(1, &["a", "b"]))), refused(Refusal::NoSlot, None));
    assert!(scene.pool.line.is_empty());
    assert_eq!(scene.back(&[&held[1]]), [0; 0]);
}

#[test]
fn a_disabled_slot_is_offered_as_it_is_enabled() {
    let mut scene = Scene::of(&["a"]);
    scene.ask(change("a", SlotChange::Disable));
    scene.waits(one_of(1, &["a"]));
    assert_eq!(scene.perform(vec![change("a", SlotChange::Enable)]).calls.tickets, [1]);
}

/// A claim of so many of these with a ticket.
fn some_of(holder: u128, count: u32, slots: &[&str]) -> Claim {
    Claim { holder, wait: true, ..asking(Choice::Among { slots: ids(slots), count }) }
}

// Several stood beside the line: in a crowd two of them never came free at the same moment, and it was never served.
#[test]
fn who_wants_several_keeps_what_is_there_until_that_is_enough() {
    let (mut scene, held) = Scene::held(&["a", "b", "c"]);
    scene.waits(some_of(1, 2, &["a", "b"]));
    (2..=4).for_each(|holder| scene.waits(queue(holder, 1)));
    assert_eq!(scene.back(&[&held[0]]), [0; 0], "one is not enough");
    assert_eq!(scene.kept_for("a"), Some(1));
    assert!(matches!(scene.ask(any(1)), Reply::Refused { .. }), "and for nobody else");
    assert_eq!(scene.back(&[&held[2]]), [2], "what it does not want goes on");
    assert_eq!(scene.back(&[&held[1]]), [1]);
    let leases = scene.grants(Request::Claim(some_of(1, 2, &["a", "b"])));
    assert_eq!(leases.iter().map(|lease| lease.slot.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(scene.back(&[&leases[0], &leases[1]]), [3, 4]);
}

#[test]
fn it_does_not_pass_over_those_who_came_before_it() {
    let (mut scene, held) = Scene::held(&["a", "b", "c"]);
    scene.waits(queue(1, 1));
    scene.waits(some_of(2, 2, &["a", "b"]));
    scene.waits(Claim { priority: 1, ..one_of(3, &["a"]) });
    assert_eq!(scene.back(&[&held[0]]), [3]);
    assert_eq!(scene.back(&[&held[1]]), [1]);
    assert_eq!((scene.kept_for("a"), scene.kept_for("b")), (Some(3), Some(1)));
    // Those do not fetch it.
    scene.pass(OFFER);
    assert_eq!(scene.perform(vec![]).calls.tickets, [2]);
}

// Each keeps what the other wants: what is kept goes after a second to whoever comes first by then.
#[test]
fn two_that_want_the_same_do_not_wait_for_each_other() {
    let (mut scene, held) = Scene::held(&["a", "b", "c"]);
    scene.waits(some_of(1, 2, &["a", "b"]));
    scene.back(&[&held[0]]);
    scene.waits(Claim { priority: 1, ..some_of(2, 2, &["a", "b", "c"]) });
    assert_eq!(scene.back(&[&held[1]]), [0; 0]);
    assert_eq!((scene.kept_for("a"), scene.kept_for("b")), (Some(1), Some(2)));
    scene.pass(OFFER);
    assert_eq!(scene.perform(vec![]).calls.tickets, [2]);
    let leases = scene.grants(Request::Claim(some_of(2, 2, &["a", "b", "c"])));
    assert_eq!(leases.len(), 2);
    assert_eq!(scene.back(&[&leases[0]]), [0; 0]);
    assert_eq!(scene.back(&[&leases[1]]), [1]);
}

#[test]
fn what_is_kept_is_for_all_again_as_it_leaves() {
    let (mut scene, held) = Scene::held(&["a", "b"]);
    scene.waits(some_of(1, 2, &["a", "b"]));
    scene.waits(one_of(2, &["a"]));
    scene.back(&[&held[0]]);
    assert_eq!(scene.kept_for("a"), Some(1));
    assert_eq!(scene.perform(vec![Request::Withdraw { holder: 1 }]).calls.tickets, [2]);
    // Or when its ticket has lapsed: a second later.
    let (mut scene, held) = Scene::held(&["a", "b"]);
    scene.waits(some_of(1, 2, &["a", "b"]));
    scene.pass(TICKET_LIFE - 1);
    scene.back(&[&held[0]]);
    scene.pass(1);
    assert_eq!(scene.kept_for("a"), Some(1));
    scene.pass(OFFER - 1);
    assert_eq!(scene.kept_for("a"), None);
    assert!(scene.pool.line.is_empty());
}

#[test]
fn it_keeps_nothing_that_would_not_become_enough() {
    let (mut scene, held) = Scene::held(&["a", "b"]);
    scene.waits(some_of(1, 2, &["a", "b"]));
    scene.waits(queue(2, 1));
    scene.ask(change("b", SlotChange::Drain));
    assert_eq!(scene.back(&[&held[0]]), [2], "the other is about to go");
    let beyond = refused(Refusal::Beyond, None);
    assert_eq!(scene.ask(Request::Claim(some_of(1, 2, &["a", "b"]))), beyond);
    assert_eq!(
        scene.ask(Request::Claim(some_of(3, 2, &["a", "a"]))),
        beyond,
        "one that is there twice counts once"
    );
    let lease = scene.grants(Request::Claim(queue(2, 1))).remove(0);
    scene.ask(change("b", SlotChange::Enable));
    scene.waits(some_of(1, 2, &["a", "b"]));
    assert_eq!(scene.back(&[&lease]), [0; 0]);
    assert_eq!(scene.kept_for("a"), Some(1));
}

// What it is granted as it asks again is what is kept for it, and what it lacks.
#[test]
fn what_is_kept_counts_for_who_asks_again() {
    let (mut scene, held) = Scene::held(&["a", "b", "c"]);
    scene.waits(some_of(1, 2, &["a", "b", "c"]));
    scene.back(&[&held[1]]);
    let back = release(&held[0], Outcome::Unused);
    let performed = scene.perform(vec![back, Request::Claim(some_of(1, 2, &["a", "b", "c"]))]);
    let Reply::Granted(grants) = &performed.replies[1] else { panic!("{performed:?}") };
    assert_eq!(grants.iter().map(|grant| grant.slot.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    assert!(scene.pool.line.is_empty());
}

// Who claims slots by their ids, beside the lines, took what was kept as it came back for a moment.
#[test]
fn what_is_kept_is_not_taken_by_who_names_it_beside_the_line() {
    let (mut scene, held) = Scene::held(&["a", "b"]);
    scene.waits(some_of(1, 2, &["a", "b"]));
    scene.back(&[&held[0]]);
    scene.pass(OFFER);
    let beside = Choice::Free { slots: ids(&["a"]), least: 1, most: 1, asked: 0 };
    assert!(matches!(scene.ask(Request::Claim(asking(beside))), Reply::Refused { .. }));
    assert_eq!(scene.kept_for("a"), Some(1));
    assert_eq!(scene.back(&[&held[1]]), [1]);
}

// It stood before those who want one of its names until its ticket lapsed.
#[test]
fn one_that_cannot_have_enough_any_more_leaves_the_line() {
    let (mut scene, held) = Scene::held(&["a", "b"]);
    scene.waits(some_of(1, 2, &["a", "b"]));
    scene.waits(one_of(2, &["a"]));
    scene.back(&[&held[0]]);
    assert_eq!(scene.kept_for("a"), Some(1));
    scene.ask(change("b", SlotChange::Drain));
    assert_eq!(scene.kept_for("a"), Some(1));
    scene.pass(OFFER);
    assert_eq!(scene.perform(vec![]).calls.tickets, [2]);
    assert_eq!(scene.pool.line.life_of(1), None);
    // What is kept for it goes on at once if it asks again before that.
    let (mut scene, held) = Scene::held(&["a", "b"]);
    scene.waits(some_of(1, 2, &["a", "b"]));
    scene.waits(one_of(2, &["a"]));
    scene.back(&[&held[0]]);
    scene.ask(change("b", SlotChange::Drain));
    assert_eq!(scene.ask(Request::Claim(some_of(1, 2, &["a", "b"]))), refused(Refusal::Beyond, None));
    assert_eq!(scene.kept_for("a"), Some(2));
}

// Of a ticket of before, for more of them, more was kept.
#[test]
fn no_more_is_granted_than_is_asked_for() {
    let (mut scene, held) = Scene::held(&["a", "b", "c"]);
    scene.waits(some_of(1, 3, &["a", "b", "c"]));
    scene.back(&[&held[0], &held[1]]);
    assert_eq!((scene.kept_for("a"), scene.kept_for("b")), (Some(1), Some(1)));
    assert_eq!(scene.grants(Request::Claim(some_of(1, 1, &["a", "b"]))).len(), 1);
}

// Who steals waits for what was kept for another, too: it heard nothing of that as it was leased.
#[test]
fn what_was_kept_is_claimed_by_who_steals_as_it_is_granted() {
    let (mut scene, held) = Scene::held(&["a", "b"]);
    scene.waits(some_of(1, 2, &["a", "b"]));
    scene.back(&[&held[0]]);
    let names = Choice::Named { slots: ids(&["a"]) };
    scene.waits(Claim { holder: 2, wait: true, priority: 1, steal: Some(TO_THE_END), ..asking(names) });
    let both = Request::Claim(some_of(1, 2, &["a", "b"]));
    let performed = scene.perform(vec![release(&held[1], Outcome::Unused), both]);
    let Reply::Granted(grants) = &performed.replies[1] else { panic!("{performed:?}") };
    assert_eq!(performed.calls.claimed, [grants[0].fence]);
}

/// It was offered them in the order of its names, though a claim that need not wait has those in doubt last.
#[test]
fn who_waits_for_some_is_offered_one_in_doubt_only_where_there_is_no_other() {
    for count in [1, 2] {
        let mut scene = Scene::of(&["a", "b", "c"]);
        let held: Vec<_> = ["a", "b", "c"].into_iter().map(|slot| scene.synced(slot, 7)).collect();
        let wanted = Choice::Among { slots: ids(&["a", "b", "c"]), count };
        scene.waits(Claim { holder: 1, wait: true, ..asking(wanted) });
        let outcomes = [Outcome::Unsettled, Outcome::Unused, Outcome::Unused];
        let back = held.iter().zip(outcomes).map(|(grant, outcome)| release(grant, outcome)).collect();
        assert_eq!(scene.perform(back).calls.tickets, [1]);
        let kept = ["a", "b", "c"].map(|slot| scene.kept_for(slot).is_some());
        assert_eq!(kept, [false, true, count == 2]);
    }
}
