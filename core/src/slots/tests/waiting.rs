//! Who waits is served by priority, then in the order of arrival, and nobody stands in the way who has gone.

use super::scene::{START, Scene, TTL, any, asking, change, define, ids, lease, refused, release, these};
use crate::SECOND;
use crate::nonce::{NonceRecord, Outcome};
use crate::slots::{
    Choice, Claim, Grant, INTEREST, OFFER, Refusal, Reply, Request, SlotChange, State, Strategy, TICKET_LIFE,
};

/// A claim of any slots with a ticket.
fn queue(holder: u128, count: u32) -> Claim {
    let choice = Choice::Any { strategy: Strategy::LeastRecent, least: count, most: count };
    Claim { holder, wait: true, ..asking(choice) }
}

/// A claim of names with a ticket.
fn queue_for(holder: u128, names: &[&str]) -> Claim {
    Claim { holder, wait: true, ..asking(Choice::Named { slots: ids(names) }) }
}

impl Scene {
    /// Asks for what is not there to be had.
    fn wait(&mut self, claim: Claim) {
        let reply = self.ask(Request::Claim(claim));
        assert!(
            matches!(reply, Reply::Refused { why: Refusal::Exhausted | Refusal::Beyond, .. }),
            "{reply:?}"
        );
    }

    fn stands(&self, holder: u128) -> bool {
        self.pool.line.life_of(holder).is_some()
    }

    fn get(&mut self, claim: Claim) -> Grant {
        self.grants(Request::Claim(claim)).remove(0)
    }

    /// Gives a lease back, and tells who is called.
    fn give_back(&mut self, grant: &Grant) -> Vec<u128> {
        self.perform(vec![release(grant, Outcome::Unused)]).calls.tickets
    }
}

#[test]
fn a_release_is_for_the_first_who_came() {
    let mut scene = Scene::of(&["a"]);
    let mut held = scene.claim();
    for holder in 1..=3 {
        scene.wait(queue(holder, 1));
    }
    for holder in 1..=3 {
        assert_eq!(scene.give_back(&held), [holder]);
        assert_eq!(scene.view("a").state, State::Offered);
        assert_eq!(scene.ask(any(1)), refused(Refusal::Exhausted, Some(START + OFFER)), "nobody overtakes");
        assert_eq!(scene.ask(these(&["a"])), refused(Refusal::Exhausted, Some(START + OFFER)), "nor by name");
        let next = scene.get(queue(holder, 1));
        assert!(next.fence > held.fence);
        assert_eq!(next.deadline, START + TTL, "a whole lease, whenever it was offered");
        held = next;
    }
    assert_eq!(scene.give_back(&held), [0; 0]);
    assert_eq!(scene.counts(), [1, 1, 0, 0]);
}

#[test]
fn the_higher_priority_goes_first_and_the_lowest_last() {
    let mut scene = Scene::of(&["a"]);
    let mut held = scene.claim();
    let priorities = [0, i16::MIN, 1, i16::MAX, -1, 1];
    for (holder, priority) in (1..).zip(priorities) {
        scene.wait(Claim { priority, ..queue(holder, 1) });
    }
    for holder in [4, 3, 6, 1, 5, 2] {
        assert_eq!(scene.give_back(&held), [holder]);
        held = scene.get(queue(holder, 1));
    }
}

#[test]
fn ageing_lifts_those_who_wait_long() {
    let mut scene = Scene::of(&["a"]);
    let mut held = scene.claim();
    let ageing = 10 * SECOND;
    scene.wait(Claim { ageing, ..queue(1, 1) });
    scene.pass(5 * SECOND);
    scene.wait(Claim { ageing, priority: 1, ..queue(2, 1) });
    scene.pass(3 * SECOND);
    scene.wait(Claim { ageing, ..queue(1, 1) });
    scene.pass(3 * SECOND);
    scene.wait(Claim { ageing, priority: 1, ..queue(3, 1) });
    for holder in [2, 1, 3] {
        assert_eq!(scene.give_back(&held), [holder], "10 s are worth one step of priority");
        held = scene.get(queue(holder, 1));
    }
}

#[test]
fn a_slot_that_nobody_fetches_goes_to_the_next() {
    let mut scene = Scene::of(&["a"]);
    let held = scene.synced("a", 7);
    scene.wait(queue(1, 1));
    scene.wait(queue(2, 1));
    assert_eq!(scene.give_back(&held), [1]);
    scene.pass(OFFER - 1);
    scene.wait(queue(2, 1));
    scene.pass(1);
    assert_eq!(scene.perform(vec![]).calls.tickets, [2]);
    scene.wait(queue(1, 1));
    assert_eq!(scene.get(queue(2, 1)).nonce, NonceRecord::Known(7), "nobody was told of the nonce meanwhile");
}

#[test]
fn a_ticket_that_nobody_asks_with_lapses() {
    let mut scene = Scene::of(&["a"]);
    let held = scene.claim();
    scene.wait(queue(1, 1));
    scene.pass(TICKET_LIFE - SECOND);
    scene.wait(queue(2, 1));
    scene.pass(SECOND);
    assert_eq!(scene.give_back(&held), [2]);
    // The first one comes back, to the end of the line.
    scene.wait(queue(1, 1));
}

#[test]
fn asking_again_keeps_the_place_in_line() {
    let mut scene = Scene::of(&["a"]);
    let held = scene.claim();
    for _ in 0..3 {
        scene.wait(queue(1, 1));
        scene.wait(queue(2, 1));
        scene.pass(TICKET_LIFE / 2);
    }
    assert_eq!(scene.give_back(&held), [1]);
}

#[test]
fn a_withdrawn_ticket_passes_on_what_it_was_offered() {
    let mut scene = Scene::of(&["a"]);
    let held = scene.claim();
    for holder in 1..=3 {
        scene.wait(queue(holder, 1));
    }
    assert_eq!(scene.ask(Request::Withdraw { holder: 2 }), Reply::Withdrawn);
    assert_eq!(scene.give_back(&held), [1]);
    let performed = scene.perform(vec![Request::Withdraw { holder: 1 }, Request::Withdraw { holder: 1 }]);
    assert_eq!((performed.calls.tickets, performed.replies), (vec![3], vec![Reply::Withdrawn; 2]));
}

#[test]
fn who_wants_many_is_not_overtaken_by_those_who_want_few() {
    let mut scene = Scene::of(&["a", "b"]);
    let (a, b) = (scene.claim(), scene.claim());
    scene.wait(queue(1, 2));
    scene.wait(queue(2, 1));
    assert_eq!(scene.give_back(&a), [0; 0]);
    scene.wait(queue(2, 1));
    assert_eq!(scene.give_back(&b), [1]);
    assert_eq!(scene.grants(Request::Claim(queue(1, 2))).len(), 2);
}

#[test]
fn a_higher_priority_takes_what_is_ready_and_a_lower_one_waits_behind_the_line() {
    let mut scene = Scene::of(&["a", "b"]);
    let (a, _b) = (scene.claim(), scene.claim());
    scene.wait(queue(1, 2));
    assert_eq!(scene.give_back(&a), [0; 0]);
    scene.wait(Claim { priority: -1, ..queue(2, 1) });
    scene.get(Claim { priority: 1, ..queue(3, 1) });
}

/// One who stood before them kept all others of an envelope from what it gave back, though there was enough: each got a ticket and was
/// offered what it had asked for, to ask for it again.
#[test]
fn who_stands_behind_one_for_whom_there_is_enough_need_not_wait() {
    let mut scene = Scene::of(&["a", "b", "c", "d"]);
    let held: Vec<_> = (0..4).map(|_| scene.claim()).collect();
    scene.wait(queue(1, 1));
    scene.wait(queue(2, 2));
    let together = |held: &[Grant], claims: Vec<Claim>| -> Vec<Request> {
        let releases = held.iter().map(|grant| release(grant, Outcome::Unused));
        releases.chain(claims.into_iter().map(Request::Claim)).collect()
    };
    let granted = |replies: &[Reply]| -> Vec<bool> {
        replies.iter().map(|reply| matches!(reply, Reply::Granted(_))).collect()
    };
    // One is for the first, two for the second, and one is left, for who comes next.
    let performed = scene.perform(together(&held, vec![queue(3, 1), queue(4, 2), queue(5, 1)]));
    assert_eq!(granted(&performed.replies[4..]), [true, false, false]);
    assert_eq!(performed.calls.tickets, [1, 2]);
    assert_eq!(
        ["a", "b", "c", "d"].map(|slot| scene.view(slot).state == State::Offered),
        [true, true, true, false]
    );
    assert_eq!([3, 4, 5].map(|holder| scene.stands(holder)), [false, true, true]);
    // Who comes for what it was offered in the same envelope has that.
    assert_eq!(scene.grants(Request::Claim(queue(2, 2))).len(), 2);

    let mut scene = Scene::of(&["a", "b"]);
    let held = [scene.claim(), scene.claim()];
    scene.wait(queue(1, 1));
    let performed = scene.perform(together(&held, vec![queue(2, 1), queue(1, 1)]));
    assert_eq!(granted(&performed.replies[2..]), [true, true]);

    // Who waits for one by its name, and came before, is served before it too.
    let mut scene = Scene::of(&["a", "b"]);
    let held = [scene.claim(), scene.claim()];
    scene.wait(queue(1, 1));
    scene.wait(Claim { holder: 2, wait: true, ..asking(Choice::Among { slots: ids(&["b"]), count: 1 }) });
    let performed = scene.perform(together(&held, vec![queue(3, 1)]));
    assert_eq!((granted(&performed.replies[2..]), performed.calls.tickets), (vec![false], vec![1, 2]));
}

#[test]
fn a_name_goes_to_the_first_who_waits_for_it() {
    let mut scene = Scene::of(&[]);
    let door = scene.get(queue_for(9, &["door"]));
    let gate = scene.get(queue_for(9, &["gate"]));
    scene.wait(queue_for(1, &["gate"]));
    scene.wait(queue_for(2, &["door"]));
    assert_eq!(scene.give_back(&door), [2]);
    scene.get(queue_for(2, &["door"]));
    scene.pass(TTL);
    scene.get(queue_for(3, &["door"]));
    assert_eq!(scene.counts(), [1, 0, 0, 1], "the other one ran out, and nobody stood in line any more");
    assert_eq!(scene.give_back(&gate), [0; 0]);
}

#[test]
fn several_names_are_waited_for_in_any_order_without_deadlock() {
    let mut scene = Scene::of(&[]);
    let (a, b) = (scene.get(queue_for(8, &["a"])), scene.get(queue_for(9, &["b"])));
    scene.wait(queue_for(1, &["a", "b"]));
    scene.wait(queue_for(2, &["b", "a"]));
    scene.wait(queue_for(3, &["a"]));
    assert_eq!(scene.give_back(&a), [0; 0], "the first needs both");
    scene.wait(queue_for(3, &["a"]));
    assert_eq!(scene.give_back(&b), [1]);
    let both = scene.grants(Request::Claim(queue_for(1, &["a", "b"])));
    let back = both.iter().map(|grant| release(grant, Outcome::Unused)).collect();
    assert_eq!(scene.perform(back).calls.tickets, [2]);
    scene.ask(Request::Withdraw { holder: 2 });
    scene.get(queue_for(3, &["a"]));
    scene.ask(Request::Withdraw { holder: 3 });
}

#[test]
fn one_that_vanished_from_the_head_of_two_lines_holds_up_neither() {
    let mut scene = Scene::of(&[]);
    let b = scene.get(queue_for(9, &["b"]));
    scene.wait(queue_for(1, &["a", "b"]));
    scene.pass(TICKET_LIFE / 2);
    scene.wait(queue_for(2, &["a"]));
    scene.pass(TICKET_LIFE / 2);
    assert_eq!(scene.perform(vec![]).calls.tickets, [2]);
    drop(b);
}

#[test]
fn a_slot_that_an_administrator_takes_is_offered_no_more() {
    let mut scene = Scene::of(&["a"]);
    let held = scene.claim();
    scene.wait(queue(1, 1));
    assert_eq!(scene.give_back(&held), [1]);
    scene.ask(change("a", SlotChange::Disable));
    scene.wait(queue(1, 1));
    assert_eq!(
        scene.perform(vec![change("a", SlotChange::Enable)]).calls.freed,
        1,
        "for whoever still waits"
    );
    let held = scene.get(queue(1, 1));
    scene.wait(queue(1, 1));
    assert_eq!(scene.give_back(&held), [1]);
    scene.ask(change("a", SlotChange::Remove));
    assert_eq!(scene.ask(Request::Claim(queue(1, 1))), refused(Refusal::NoSlot, None));
    assert_eq!(scene.perform(vec![define(&["a"])]).calls.tickets, [0; 0]);
}

#[test]
fn a_lost_memory_forgets_who_waited_and_no_offer_outlives_it() {
    let mut scene = Scene::of(&["a"]);
    let held = scene.claim();
    scene.wait(queue(1, 1));
    assert_eq!(scene.give_back(&held), [1]);
    scene.pass(1);
    scene.incarnation = "b".to_owned();
    let quiet = refused(Refusal::Quiet, Some(START + 1 + TTL));
    assert_eq!(scene.ask(Request::Claim(queue(1, 1))), quiet);
    scene.pass(TTL);
    scene.get(queue(2, 1));
}

#[test]
fn those_who_stand_in_no_line_are_told_of_each_that_becomes_ready() {
    let mut scene = Scene::of(&["a", "b"]);
    let grants = scene.grants(any(2));
    let freed = |scene: &mut Scene, requests| scene.perform(requests).calls.freed;
    assert_eq!(freed(&mut scene, vec![release(&grants[0], Outcome::Unused)]), 0, "nobody waits");
    assert_eq!(scene.ask(Request::Claim(queue(1, 9))), refused(Refusal::Beyond, None));
    assert_eq!(freed(&mut scene, vec![release(&grants[1], Outcome::Unused)]), 1);
    let again = scene.grants(any(2));
    let both = vec![release(&again[0], Outcome::Unused), release(&again[1], Outcome::Unused), any(1)];
    assert_eq!(freed(&mut scene, both), 1, "the other one is leased again");
    scene.pass(INTEREST);
    let last = scene.grants(any(1));
    assert_eq!(freed(&mut scene, vec![release(&last[0], Outcome::Unused)]), 0, "the interest has ended");
}

// Nobody heard of it: a slot that was given back into a rest lay there until somebody asked for something else.
#[test]
fn who_waits_is_told_when_a_slot_that_was_put_to_rest_comes_due() {
    let mut scene = Scene::of(&["a", "b", "c"]);
    let back = |grant: &Grant, cooldown| Request::Release {
        lease: lease(grant),
        outcome: Outcome::Unused,
        cooldown,
    };
    let told = |scene: &mut Scene, requests| scene.perform(requests).calls.rest;
    let held = scene.grants(any(3));
    assert_eq!(told(&mut scene, vec![back(&held[0], SECOND)]), None, "nobody waits");
    scene.wait(queue(1, 3));
    assert_eq!(
        told(&mut scene, vec![back(&held[1], 3 * SECOND), back(&held[2], 2 * SECOND)]),
        Some(2 * SECOND)
    );
    assert_eq!(told(&mut scene, vec![Request::List]), None, "once");
    assert_eq!(told(&mut scene, vec![change("a", SlotChange::Quarantine(4 * SECOND))]), Some(4 * SECOND));
    scene.perform(vec![Request::Withdraw { holder: 1 }]);
    // Who stands in no line.
    scene.wait(queue(2, 9));
    assert_eq!(told(&mut scene, vec![change("a", SlotChange::Quarantine(5 * SECOND))]), Some(5 * SECOND));
}

#[test]
fn a_lease_that_runs_out_is_for_the_first_in_line_too() {
    let mut scene = Scene::of(&["a"]);
    scene.claim();
    scene.pass(TTL - SECOND);
    scene.wait(queue(1, 1));
    scene.pass(SECOND);
    assert_eq!(scene.perform(vec![Request::List]).calls.tickets, [1]);
}

#[test]
fn the_time_that_was_waited_elsewhere_counts() {
    let mut scene = Scene::of(&["a"]);
    let held = scene.claim();
    scene.wait(queue(1, 1));
    scene.pass(SECOND);
    scene.wait(Claim { waited: 2 * SECOND, ..queue(2, 1) });
    assert_eq!(scene.give_back(&held), [2]);
    let next = scene.get(queue(2, 1));
    let back_and_on = vec![release(&next, Outcome::Unused), Request::Claim(queue(0, 1))];
    assert!(matches!(scene.perform(back_and_on).replies[1], Reply::Refused { .. }), "it came later");
    scene.ask(Request::Withdraw { holder: 1 });
    let next = scene.get(queue(0, 1));
    scene.wait(queue(1, 1));
    let first = Claim { waited: SECOND, wait: false, ..queue(3, 1) };
    let back_and_on = vec![release(&next, Outcome::Unused), Request::Claim(first)];
    assert!(
        matches!(scene.perform(back_and_on).replies[1], Reply::Granted(_)),
        "it came before, without a ticket"
    );
}

#[test]
fn who_wants_more_than_there_will_ever_be_stands_in_nobodys_way() {
    let mut scene = Scene::of(&["a", "b", "c"]);
    scene.ask(change("c", SlotChange::Disable));
    assert_eq!(scene.ask(Request::Claim(queue(1, 3))), refused(Refusal::Beyond, None));
    scene.get(queue(2, 1));
    // One that could be served when it came, and cannot be any more.
    let mut scene = Scene::of(&["a", "b"]);
    let held = scene.claim();
    scene.wait(queue(1, 2));
    scene.ask(change("b", SlotChange::Disable));
    scene.wait(queue(2, 1));
    assert_eq!(scene.give_back(&held), [2]);
}

const LEAVING: [SlotChange; 3] = [SlotChange::Drain, SlotChange::Disable, SlotChange::Remove];

#[test]
fn a_leased_slot_that_leaves_is_waited_for_by_nobody() {
    for leaving in LEAVING {
        let mut scene = Scene::of(&["a", "b"]);
        let [_, other] = ["a", "b"].map(|slot| scene.claim_of(slot));
        scene.ask(change("a", leaving));
        scene.wait(queue(1, 2));
        assert!(!scene.stands(1), "{leaving:?}");
        scene.wait(queue(2, 1));
        assert_eq!(scene.give_back(&other), [2], "{leaving:?}");
        // One that could be served when it came.
        let mut scene = Scene::of(&["a", "b"]);
        let [_, other] = ["a", "b"].map(|slot| scene.claim_of(slot));
        scene.wait(queue(1, 2));
        scene.wait(queue(2, 1));
        scene.ask(change("a", leaving));
        assert_eq!(scene.give_back(&other), [2], "{leaving:?}");
    }
}

#[test]
fn what_left_or_stays_after_all_is_counted_no_more_as_leaving() {
    let again = |leaving| {
        if leaving == SlotChange::Remove { define(&["a"]) } else { change("a", SlotChange::Enable) }
    };
    for leaving in LEAVING {
        for end in ["released", "run out", "broken", "back"] {
            let mut scene = Scene::of(&["a", "b"]);
            let [held, _] = ["a", "b"].map(|slot| scene.claim_of(slot));
            for change_again in [leaving, SlotChange::Drain, leaving] {
                scene.ask(change("a", change_again));
            }
            match end {
                "released" => drop(scene.give_back(&held)),
                "run out" => scene.pass(TTL),
                "broken" => drop(scene.ask(change("a", SlotChange::Break))),
                _ => drop(scene.ask(again(leaving))),
            }
            scene.ask(define(&["c", "d"]));
            // All that there are now, and one more.
            let slots = if end == "back" { 4 } else { 3 };
            while matches!(scene.ask(any(1)), Reply::Granted(_)) {}
            scene.wait(queue(1, slots));
            scene.wait(queue(2, slots + 1));
            assert_eq!([scene.stands(1), scene.stands(2)], [true, false], "{leaving:?}, {end}");
        }
    }
}

#[test]
fn the_end_of_an_old_offer_takes_no_new_ticket_away() {
    let names: Vec<String> = (0..200).map(|number| format!("s{number}")).collect();
    let mut scene = Scene::of(&names.iter().map(String::as_str).collect::<Vec<_>>());
    let held = scene.grants(any(200));
    scene.wait(queue(1, 200));
    let back = held.iter().map(|grant| release(grant, Outcome::Unused)).collect();
    assert_eq!(scene.perform(back).calls.tickets, [1]);
    scene.pass(OFFER);
    // Too many for one sweep: the rest is put back by the next one.
    scene.wait(queue(1, 200));
    assert_eq!(scene.perform(vec![]).calls.tickets, [1]);
}

/// The one that was called lost its turn to the next.
#[test]
fn what_is_kept_for_somebody_stays_so_as_it_is_enabled() {
    for opens in [SlotChange::Enable, SlotChange::Break] {
        let mut scene = Scene::of(&["a"]);
        let held = scene.claim();
        (8..=9).for_each(|holder| scene.wait(queue(holder, 1)));
        assert_eq!(scene.give_back(&held), [8]);
        scene.ask(change("a", opens));
        assert_eq!((scene.view("a").state, scene.view("a").holder), (State::Offered, 8), "{opens:?}");
    }
}

// Nobody held it, and who had been called lost it, its place and the other names to the next.
#[test]
fn a_name_that_is_kept_for_somebody_stays_so_as_it_is_to_be_ended_by_force() {
    let mut scene = Scene::of(&[]);
    let held = scene.get(queue_for(7, &["x"]));
    scene.wait(queue_for(8, &["x", "y"]));
    scene.wait(queue_for(9, &["x"]));
    assert_eq!(scene.give_back(&held), [8]);
    assert_eq!(scene.ask(change("x", SlotChange::Break)), Reply::Changed);
    for name in ["x", "y"] {
        assert_eq!((scene.view(name).state, scene.view(name).holder), (State::Offered, 8));
    }
    scene.get(queue_for(8, &["x", "y"]));
}

#[test]
fn what_an_administrator_takes_from_one_that_vanished_leaves_no_ticket() {
    let mut scene = Scene::of(&["a", "b"]);
    for holder in 1..100 {
        let held = scene.grants(any(2));
        scene.wait(queue(holder, 2));
        let back = held.iter().map(|grant| release(grant, Outcome::Unused)).collect();
        assert_eq!(scene.perform(back).calls.tickets, [holder]);
        scene.ask(change("a", SlotChange::Quarantine(0)));
        assert_eq!(scene.counts(), [2, 2, 0, 0], "the other slot is offered no more either");
        assert_eq!(scene.pool.line.offered(holder), [0; 0]);
    }
}

// Each of them was offered it for a second, one after the other, while who lives waited: ten seconds for a process that died with ten
// who waited, and whoever had less time was told that others held it.
#[cfg(feature = "crowds")]
#[test]
fn who_waited_in_a_process_that_is_gone_keeps_nobody_waiting_in_turn() {
    let of = |process: u128, number: u128| process << 64 | number;
    for how in ["for any", "by name"] {
        let claim = |holder| if how == "for any" { queue(holder, 1) } else { queue_for(holder, &["a"]) };
        let mut scene = Scene::of(&["a"]);
        let held = scene.claim();
        for number in 1..=10 {
            scene.wait(claim(of(7, number)));
        }
        scene.pass(1);
        scene.wait(claim(of(8, 1)));
        scene.pass(1);
        scene.wait(claim(of(7, 11)));
        scene.pass(1);
        assert_eq!(scene.give_back(&held), [of(7, 1)], "{how}");
        // One that asks again lives, and so may others of its process that have asked since.
        scene.pass(OFFER / 2);
        scene.wait(claim(of(7, 11)));
        scene.pass(OFFER / 2);
        assert_eq!(scene.perform(Vec::new()).calls.tickets, [of(8, 1)], "{how}");
        let next = scene.get(claim(of(8, 1)));
        assert!(!scene.stands(of(7, 2)) && scene.stands(of(7, 11)), "{how}");
        // Who was there all the same stands where it stood.
        scene.wait(claim(of(8, 2)));
        scene.wait(Claim { waited: 5 * SECOND, ..claim(of(7, 5)) });
        assert_eq!(scene.give_back(&next), [of(7, 5)], "{how}");
    }
}

#[test]
fn who_does_not_say_its_process_loses_its_place_for_nobody_else() {
    let mut scene = Scene::of(&["a"]);
    let held = scene.claim();
    (1..=3).for_each(|holder| scene.wait(queue(holder, 1)));
    scene.pass(1);
    assert_eq!(scene.give_back(&held), [1]);
    scene.pass(OFFER);
    assert_eq!(scene.perform(Vec::new()).calls.tickets, [2]);
}
