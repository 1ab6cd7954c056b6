//! Stealing: who claims what, what the holder is told, and what becomes of it. The cases are those of the seed's
//! specification (`priority-redlock-spec`), which loses or doubles the lock in the first two.

use super::scene::{START, Scene, TTL, asking, change, ids, lease, lost, refused, release, renew};
use crate::nonce::Outcome;
use crate::slots::{
    Choice, Claim, Grant, Loss, OFFER, Refusal, Reply, Request, SlotChange, Strategy, TO_THE_END,
};
use crate::{Micros, SECOND};

/// A claim of a name that steals what lower ones hold.
fn thief(holder: u128, priority: i16) -> Claim {
    Claim { priority, ..thief_of(holder, &["red"]) }
}

fn thief_of(holder: u128, names: &[&str]) -> Claim {
    let choice = Choice::Named { slots: ids(names) };
    Claim { holder, wait: true, priority: 1, steal: Some(TO_THE_END), ..asking(choice) }
}

fn any(holder: u128, count: u32, priority: i16) -> Claim {
    let choice = Choice::Any { strategy: Strategy::LeastRecent, least: count, most: count };
    Claim { holder, wait: true, priority, steal: Some(TO_THE_END), ..asking(choice) }
}

fn some(holder: u128, count: u32, slots: &[&str]) -> Claim {
    let choice = Choice::Among { slots: ids(slots), count };
    Claim { holder, wait: true, priority: 5, steal: Some(TO_THE_END), ..asking(choice) }
}

/// The slots a, b and c, leased with these priorities.
fn leased(priorities: [i16; 3]) -> (Scene, Vec<Grant>) {
    let mut scene = Scene::of(&["a", "b", "c"]);
    let had = ["a", "b", "c"].into_iter().zip(priorities).zip(10..).map(|((slot, priority), holder)| {
        scene.had(&Claim { priority, steal: None, ..some(holder, 1, &[slot]) })
    });
    let had = had.collect();
    (scene, had)
}

impl Scene {
    fn had(&mut self, claim: &Claim) -> Grant {
        self.grants(Request::Claim(claim.clone())).remove(0)
    }

    /// The claim is refused; whether it is a claimant now, when to ask again, and the fences of those it told to yield.
    fn refusal(&mut self, claim: &Claim) -> (bool, Option<Micros>, Vec<u64>) {
        let mut performed = self.perform(vec![Request::Claim(claim.clone())]);
        match performed.replies.remove(0) {
            Reply::Refused { why, earliest } => (why == Refusal::Claimed, earliest, performed.calls.claimed),
            other => panic!("{other:?}"),
        }
    }

    fn renewal(&mut self, grant: &Grant) -> Reply {
        self.ask(renew(grant))
    }

    fn gives_back(&mut self, grant: &Grant) -> Vec<u128> {
        let performed = self.perform(vec![release(grant, Outcome::Unsettled)]);
        assert_eq!(performed.replies, [Reply::Released]);
        performed.calls.tickets
    }
}

fn scene() -> (Scene, Grant) {
    let mut scene = Scene::of(&[]);
    let holder = Claim { steal: None, ..thief(1, 0) };
    let grant = scene.had(&holder);
    (scene, grant)
}

#[test]
fn a_holder_is_told_to_yield_and_the_claimant_has_the_slot_when_it_does() {
    let (mut scene, held) = scene();
    assert_eq!(scene.refusal(&thief(2, 1)), (true, Some(held.deadline), vec![held.fence]));
    // Asking again claims nothing anew and tells nobody twice.
    assert_eq!(scene.refusal(&thief(2, 1)), (true, Some(held.deadline), vec![]));
    scene.pass(SECOND);
    let claimed = Reply::Claimed { deadline: held.deadline, priority: 1 };
    assert_eq!(scene.renewal(&held), claimed);
    assert_eq!(scene.gives_back(&held), [2]);
    let stolen = scene.had(&thief(2, 1));
    assert!(stolen.fence > held.fence);
    assert_eq!(scene.renewal(&held), lost(Loss::Taken));
    assert!(matches!(scene.renewal(&stolen), Reply::Renewed { .. }));
}

#[test]
fn a_holder_that_does_not_yield_has_the_slot_until_its_deadline_and_no_longer() {
    let (mut scene, held) = scene();
    scene.refusal(&thief(2, 1));
    for _ in 0..9 {
        scene.pass(TTL / 10);
        assert_eq!(scene.renewal(&held), Reply::Claimed { deadline: held.deadline, priority: 1 });
        assert!(scene.refusal(&thief(2, 1)).0);
    }
    scene.pass(TTL / 10);
    assert_eq!(scene.renewal(&held), lost(Loss::Gone));
    assert!(scene.had(&thief(2, 1)).fence > held.fence);
}

#[test]
fn nobody_steals_from_an_equal_or_without_asking_for_it() {
    for priority in [i16::MIN, -1, 0, 1, i16::MAX] {
        let mut scene = Scene::of(&[]);
        let held = scene.had(&thief(1, priority));
        let plain = Claim { steal: None, ..thief(3, i16::MAX) };
        for claim in [thief(2, priority), thief(2, priority.saturating_sub(1)), plain] {
            assert_eq!(scene.refusal(&claim), (false, Some(held.deadline), vec![]));
            assert!(matches!(scene.renewal(&held), Reply::Renewed { .. }));
        }
    }
}

// In priority-redlock PRIORITY_MIN was above 0, and stole from the middle.
#[test]
fn the_lowest_priority_is_really_the_lowest() {
    let (mut scene, held) = scene();
    assert_eq!(scene.refusal(&thief(2, i16::MIN)), (false, Some(held.deadline), vec![]));
    let mut scene = Scene::of(&[]);
    let lowest = scene.had(&thief(1, i16::MIN));
    assert_eq!(scene.refusal(&thief(2, 0)).2, [lowest.fence]);
}

// The specification's case 1: there the thief's time to live replaced the victim's, and a third one got the lock.
#[test]
fn a_claimant_that_crashes_leaves_the_slot_to_its_holder() {
    let (mut scene, held) = scene();
    scene.refusal(&thief(2, 1));
    scene.pass(11 * SECOND);
    let Reply::Renewed { deadline } = scene.renewal(&held) else { panic!("not prolonged") };
    assert_eq!(deadline, START + 11 * SECOND + TTL);
    let third = Claim { wait: false, ..thief(3, 1) };
    assert_eq!(scene.refusal(&third), (false, Some(deadline), vec![]));
}

// Case 2: the notice does not arrive. Nobody has to hear it for the lease to end.
#[test]
fn a_holder_that_hears_nothing_is_not_robbed_before_its_deadline() {
    let (mut scene, held) = scene();
    scene.refusal(&thief(2, 1));
    scene.pass(TTL - 1);
    assert_eq!(scene.refusal(&thief(2, 1)), (true, Some(held.deadline), vec![]));
    assert_eq!(scene.gives_back(&held), [2]);
}

// Case 3: the acknowledgement is lost. It is the release, and the record of it is the store's.
#[test]
fn what_was_yielded_is_offered_whether_or_not_anybody_hears_of_it() {
    let (mut scene, held) = scene();
    scene.refusal(&thief(2, 1));
    scene.gives_back(&held);
    assert!(scene.had(&thief(2, 1)).fence > held.fence);
}

// Case 4 and the chain of thieves: there every one waits for the one below it.
#[test]
fn a_chain_of_thieves_costs_one_handshake() {
    let (mut scene, held) = scene();
    for priority in 1..100 {
        let (claims, earliest, told) = scene.refusal(&thief(1 + priority as u128, priority));
        assert_eq!((claims, earliest, told), (true, Some(held.deadline), vec![held.fence]));
        assert_eq!(scene.renewal(&held), Reply::Claimed { deadline: held.deadline, priority });
    }
    // Those who were replaced wait on, and are claimants no more.
    assert_eq!(scene.refusal(&thief(2, 1)), (false, Some(held.deadline), vec![]));
    assert_eq!(scene.gives_back(&held), [100]);
    assert_eq!(scene.had(&thief(100, 99)).slot.as_str(), "red");
}

#[test]
fn when_the_higher_claimant_goes_the_lower_one_claims_again() {
    let (mut scene, held) = scene();
    scene.refusal(&thief(2, 1));
    scene.refusal(&thief(3, 2));
    // At once, not as it asks again: that may be seconds later.
    let gone = scene.perform(vec![Request::Withdraw { holder: 3 }]);
    assert_eq!(gone.calls.claimed, [held.fence]);
    assert_eq!(scene.renewal(&held), Reply::Claimed { deadline: held.deadline, priority: 1 });
    assert_eq!(scene.refusal(&thief(2, 1)), (true, Some(held.deadline), vec![]));
    scene.ask(Request::Withdraw { holder: 2 });
    assert!(matches!(scene.renewal(&held), Reply::Renewed { .. }));
}

#[test]
fn a_bounded_wait_ends_the_lease_before_its_deadline_but_only_for_the_claimant() {
    let (mut scene, held) = scene();
    let hasty = Claim { steal: Some(3 * SECOND), ..thief(2, 1) };
    let cut = START + 3 * SECOND;
    assert_eq!(scene.refusal(&hasty), (true, Some(cut), vec![held.fence]));
    assert_eq!(scene.renewal(&held), Reply::Claimed { deadline: cut, priority: 1 });
    let mut gone = Scene { pool: scene.pool.clone(), incarnation: "a".to_owned(), ..scene };
    scene = Scene { pool: gone.pool.clone(), incarnation: "a".to_owned(), ..gone };
    scene.pass(3 * SECOND);
    assert!(scene.had(&hasty).fence > held.fence);
    // Here the claimant withdraws: the lease has its own deadline again, and also if nobody renews it.
    gone.ask(Request::Withdraw { holder: 2 });
    gone.pass(3 * SECOND);
    assert_eq!(gone.view("red").until, held.deadline);
    assert!(matches!(gone.renewal(&held), Reply::Renewed { .. }));
}

#[test]
fn a_higher_claimant_that_is_in_no_hurry_gives_the_deadline_back() {
    let (mut scene, held) = scene();
    let hasty = Claim { steal: Some(SECOND), ..thief(2, 1) };
    assert_eq!(scene.refusal(&hasty).1, Some(START + SECOND));
    assert_eq!(scene.refusal(&thief(3, 2)), (true, Some(held.deadline), vec![held.fence]));
    scene.pass(SECOND);
    assert_eq!(scene.view("red").until, held.deadline);
}

#[test]
fn several_names_are_claimed_together_or_not_at_all() {
    let (mut scene, red) = scene();
    let green = scene.had(&Claim { steal: None, ..thief_of(3, &["green"]) });
    // One of them is held by an equal: the other is not worth taking.
    let all = ["blue", "red", "green"];
    assert_eq!(scene.refusal(&thief_of(2, &all)), (false, Some(red.deadline), vec![]));
    scene.ask(Request::Withdraw { holder: 2 });
    let high = Claim { priority: 2, ..thief_of(2, &all) };
    assert_eq!(scene.refusal(&high), (true, Some(red.deadline), vec![red.fence, green.fence]));
    assert_eq!(scene.gives_back(&red), []);
    assert_eq!(scene.gives_back(&green), [2]);
    assert_eq!(scene.grants(Request::Claim(high)).len(), 3);
}

/// A thief of red and green, both held by lower ones, and what they have.
fn of_two(patience: Micros) -> (Scene, [Grant; 2], Claim) {
    let mut scene = Scene::of(&[]);
    let held = [(1, "red"), (3, "green")]
        .map(|(holder, name)| scene.had(&Claim { priority: 0, ..thief_of(holder, &[name]) }));
    let both = Claim { steal: Some(patience), ..thief_of(2, &["red", "green"]) };
    assert_eq!(scene.refusal(&both).2, [held[0].fence, held[1].fence]);
    (scene, held, both)
}

#[test]
fn who_is_replaced_for_one_name_lets_go_of_the_others() {
    let (mut scene, [red, green], both) = of_two(TO_THE_END);
    let claimed = |priority| Reply::Claimed { deadline: START + TTL, priority };
    assert_eq!(scene.renewal(&red), claimed(1));
    let higher = Claim { priority: 2, ..thief_of(4, &["green"]) };
    assert_eq!(scene.refusal(&higher), (true, Some(green.deadline), vec![green.fence]));
    scene.pass(SECOND);
    let deadline = START + SECOND + TTL;
    assert_eq!(scene.renewal(&red), Reply::Renewed { deadline });
    assert_eq!(scene.renewal(&green), claimed(2));
    // To ask again changes nothing, until the higher one goes: then it claims both anew.
    assert_eq!(scene.refusal(&both), (false, Some(green.deadline), vec![]));
    assert_eq!(scene.renewal(&red), Reply::Renewed { deadline });
    let gone = scene.perform(vec![Request::Withdraw { holder: 4 }]);
    assert_eq!(gone.calls.claimed, [red.fence, green.fence]);
    assert_eq!(scene.refusal(&both), (true, Some(green.deadline), vec![]));
    assert_eq!(scene.gives_back(&red), []);
    assert_eq!(scene.gives_back(&green), [2]);
}

#[test]
fn what_a_thief_lets_go_of_has_its_own_deadline_again_and_can_be_claimed_by_others() {
    let (mut scene, [red, green], _) = of_two(3 * SECOND);
    assert_eq!(scene.view("red").until, START + 3 * SECOND);
    scene.refusal(&Claim { priority: 2, ..thief_of(4, &["green"]) });
    assert_eq!([scene.view("red").until, scene.view("green").until], [red.deadline, green.deadline]);
    // An equal of the one that let go takes its place.
    let equal = thief_of(5, &["red"]);
    assert_eq!(scene.refusal(&equal), (true, Some(red.deadline), vec![red.fence]));
    assert_eq!(scene.renewal(&red), Reply::Claimed { deadline: red.deadline, priority: 1 });
    scene.pass(TTL);
    assert!(scene.had(&equal).fence > red.fence);
}

#[test]
fn what_rests_is_waited_for_and_what_is_out_of_reach_is_not() {
    let (mut scene, [red, green], both) = of_two(TO_THE_END);
    let resting = Request::Release { lease: lease(&green), outcome: Outcome::Unused, cooldown: SECOND };
    assert_eq!(scene.ask(resting), Reply::Released);
    assert_eq!(scene.refusal(&both), (false, Some(START + SECOND), vec![]));
    assert_eq!(scene.renewal(&red), Reply::Claimed { deadline: red.deadline, priority: 1 });
    // The other is offered to a higher one, which may not want it any more; when that one has it, it is out of reach.
    let before = Claim { steal: None, priority: 2, ..thief_of(4, &["green"]) };
    scene.refusal(&before);
    scene.pass(SECOND);
    scene.perform(vec![]);
    scene.refusal(&both);
    assert_eq!(scene.renewal(&red), Reply::Claimed { deadline: red.deadline, priority: 1 });
    scene.had(&before);
    assert!(matches!(scene.renewal(&red), Reply::Renewed { .. }));
}

#[test]
fn one_of_several_slots_that_rests_is_waited_for_unless_it_leaves() {
    let mut scene = Scene::of(&["a", "b", "c"]);
    let held = [(1, 0), (2, 0), (3, 9)].map(|(holder, priority)| scene.had(&any(holder, 1, priority)));
    assert_eq!(scene.refusal(&any(8, 2, 1)).2, [held[0].fence, held[1].fence]);
    let resting = Request::Release { lease: lease(&held[1]), outcome: Outcome::Unused, cooldown: SECOND };
    assert_eq!(scene.ask(resting), Reply::Released);
    assert!(!scene.refusal(&any(8, 2, 1)).0);
    assert!(matches!(scene.renewal(&held[0]), Reply::Claimed { .. }));
    scene.ask(change("b", SlotChange::Disable));
    assert!(!scene.refusal(&any(8, 2, 1)).0);
    assert!(matches!(scene.renewal(&held[0]), Reply::Renewed { .. }));
}

/// It does not become ready when it is given back: its holder was told to yield for nobody, and could not go on.
#[test]
fn a_slot_that_leaves_is_claimed_by_nobody_who_takes_any() {
    for leaves in [SlotChange::Drain, SlotChange::Remove] {
        let mut scene = Scene::of(&["a", "b"]);
        let held = [1, 2].map(|holder| scene.had(&any(holder, 1, 0)));
        let hasty = Claim { steal: Some(3 * SECOND), ..any(8, 1, 1) };
        assert_eq!(scene.refusal(&hasty).2, [held[0].fence]);
        scene.ask(change("a", leaves));
        assert!(matches!(scene.renewal(&held[0]), Reply::Renewed { .. }), "{leaves:?}");
        assert_eq!(scene.refusal(&hasty), (true, Some(START + 3 * SECOND), vec![held[1].fence]));
        assert!(matches!(scene.renewal(&held[0]), Reply::Renewed { .. }), "{leaves:?}");
        scene.pass(3 * SECOND);
        assert_eq!(scene.renewal(&held[0]), Reply::Renewed { deadline: START + 3 * SECOND + TTL });
    }
}

#[test]
fn who_is_replaced_for_one_of_several_slots_takes_another_or_lets_go_of_all() {
    for others in [&["c"][..], &[]] {
        let mut scene = Scene::of(&[&["a", "b"], others].concat());
        let held: Vec<_> = (0..2 + others.len()).map(|at| scene.had(&any(1 + at as u128, 1, 0))).collect();
        assert_eq!(scene.refusal(&any(8, 2, 1)).2, [held[0].fence, held[1].fence]);
        let told = scene.refusal(&Claim { priority: 2, ..thief_of(9, &["a"]) }).2;
        let expected: Vec<_> =
            [0, 2].iter().filter_map(|&at| held.get(at)).map(|grant| grant.fence).collect();
        assert_eq!(told, expected);
        for (at, grant) in held.iter().enumerate() {
            let priority = if at == 0 { 2 } else { 1 };
            let claimed = scene.renewal(grant) == Reply::Claimed { deadline: grant.deadline, priority };
            assert_eq!(claimed, at == 0 || !others.is_empty(), "{at} of {}", held.len());
        }
    }
}

#[test]
fn a_thief_that_is_replaced_replaces_a_lower_one() {
    let mut scene = Scene::of(&["a", "b"]);
    let held = [1, 2].map(|holder| scene.had(&any(holder, 1, 0)));
    assert_eq!(scene.refusal(&any(6, 1, 2)).2, [held[0].fence]);
    assert_eq!(scene.refusal(&any(7, 1, 1)).2, [held[1].fence]);
    let high = Claim { priority: 3, ..thief_of(8, &["a"]) };
    assert_eq!(scene.refusal(&high).2, [held[0].fence, held[1].fence]);
    let priorities = held.map(|grant| match scene.renewal(&grant) {
        Reply::Claimed { priority, .. } => priority,
        other => panic!("{other:?}"),
    });
    assert_eq!(priorities, [3, 2]);
    assert!(!scene.refusal(&any(7, 1, 1)).0);
}

#[test]
fn any_slot_is_taken_from_the_lowest_and_each_by_another() {
    let mut scene = Scene::of(&["a", "b", "c"]);
    let holders: Vec<_> =
        [(1, 0), (2, -1), (3, 5)].map(|(holder, priority)| scene.had(&any(holder, 1, priority))).into();
    assert_eq!(scene.refusal(&any(4, 1, 1)).2, [holders[1].fence]);
    // Another of them takes another; a third finds nobody below it that is not claimed by an equal.
    assert_eq!(scene.refusal(&any(5, 1, 1)).2, [holders[0].fence]);
    assert_eq!(scene.refusal(&any(6, 1, 1)), (false, Some(holders[0].deadline), vec![]));
    // Whichever comes first goes to the first in line; the next in line takes over its claim of the other.
    assert_eq!(scene.gives_back(&holders[0]), [4]);
    let performed = scene.perform(vec![Request::Claim(any(4, 1, 1))]);
    assert_eq!(performed.calls.claimed, [holders[1].fence]);
    for holder in [5, 6] {
        scene.ask(Request::Withdraw { holder });
    }
    assert!(matches!(scene.renewal(&holders[1]), Reply::Renewed { .. }));
}

#[test]
fn as_many_slots_as_are_wanting_are_claimed_or_none() {
    let mut scene = Scene::of(&["a", "b", "c"]);
    let low = scene.had(&any(1, 1, 0));
    let high = scene.had(&any(2, 1, 9));
    // One is ready, and one to be had.
    assert_eq!(scene.refusal(&any(3, 3, 5)).2, [] as [u64; 0]);
    scene.ask(Request::Withdraw { holder: 3 });
    assert_eq!(scene.refusal(&any(4, 2, 5)).2, [low.fence]);
    assert!(matches!(scene.renewal(&high), Reply::Renewed { .. }));
}

#[test]
fn who_accepts_an_offer_while_a_higher_one_waits_is_told_at_once() {
    let (mut scene, held) = scene();
    let second = Claim { steal: None, ..thief(2, 0) };
    scene.refusal(&second);
    scene.gives_back(&held);
    assert!(!scene.refusal(&thief(3, 1)).0, "what is offered is nobody's yet");
    let performed = scene.perform(vec![Request::Claim(second)]);
    let Reply::Granted(grants) = &performed.replies[0] else { panic!("{performed:?}") };
    assert_eq!(performed.calls.claimed, [grants[0].fence]);
}

#[test]
fn an_operator_and_a_loss_of_memory_end_claims() {
    let (mut scene, held) = scene();
    scene.refusal(&thief(2, 1));
    assert_eq!(scene.ask(change("red", SlotChange::Break)), Reply::Changed);
    assert!(matches!(scene.renewal(&held), Reply::Lost(_)));
    assert!(scene.had(&thief(2, 1)).fence > held.fence);
    let (mut scene, held) = self::scene();
    scene.refusal(&Claim { steal: Some(SECOND), ..thief(2, 1) });
    scene.pass(1);
    scene.incarnation = "b".to_owned();
    // Tickets are gone, and the lease is as it was.
    let deadline = Reply::Renewed { deadline: START + TTL };
    assert_eq!(scene.ask(Request::Renew { lease: lease(&held), ttl: 1_000 }), deadline);
    let quiet = refused(Refusal::Quiet, Some(START + 1 + TTL));
    assert_eq!(scene.ask(Request::Claim(thief(2, 1))), quiet);
}

// Who takes any of its process's slots claimed the lease of the lowest holder in the pool, and gave that back.
#[test]
fn who_wants_some_of_several_claims_those_of_the_lowest_among_them() {
    let (mut scene, had) = leased([3, 1, 0]);
    assert_eq!(scene.refusal(&some(1, 1, &["a", "b"])).2, [had[1].fence]);
    assert_eq!(scene.refusal(&some(1, 1, &["a", "b"])), (true, Some(had[0].deadline), vec![]));
    assert!(matches!(scene.renewal(&had[1]), Reply::Claimed { priority: 5, .. }));
    for other in [0, 2] {
        assert!(matches!(scene.renewal(&had[other]), Reply::Renewed { .. }));
    }
    assert_eq!(scene.gives_back(&had[1]), [1]);
    assert_eq!(scene.had(&some(1, 1, &["a", "b"])).slot, had[1].slot);
}

#[test]
fn what_is_kept_for_it_or_ready_is_claimed_of_nobody() {
    let (mut scene, had) = leased([1, 2, 0]);
    assert_eq!(scene.refusal(&some(1, 2, &["a", "b", "c"])).2, [had[2].fence, had[0].fence]);
    assert_eq!(scene.gives_back(&had[2]), [], "it is kept");
    assert_eq!(scene.refusal(&some(1, 2, &["a", "b", "c"])), (true, Some(START + OFFER), vec![]));
    assert!(matches!(scene.renewal(&had[1]), Reply::Renewed { .. }), "one more is enough");
    let (mut scene, had) = leased([1, 2, 0]);
    scene.gives_back(&had[1]);
    assert_eq!(scene.refusal(&some(1, 2, &["a", "b", "c"])).2, [had[2].fence]);
}

#[test]
fn who_cannot_have_as_many_as_it_wants_claims_none_of_them() {
    let (mut scene, had) = leased([9, 1, 0]);
    assert_eq!(scene.refusal(&some(1, 2, &["a", "b"])), (false, Some(had[0].deadline), vec![]));
    assert!(scene.refusal(&some(2, 1, &["a", "b"])).0);
    // As it loses a part to another it lets go of the rest.
    assert!(!scene.refusal(&some(3, 2, &["b", "c"])).0, "an equal has b");
    assert!(scene.refusal(&Claim { priority: 6, ..some(4, 1, &["b"]) }).0);
    assert!(matches!(scene.renewal(&had[2]), Reply::Renewed { .. }));
}

#[test]
fn who_wants_some_of_several_has_no_use_for_one_that_leaves() {
    let (mut scene, had) = leased([1, 2, 3]);
    assert!(scene.refusal(&some(1, 1, &["a", "b"])).0);
    scene.ask(change("a", SlotChange::Drain));
    assert!(matches!(scene.renewal(&had[0]), Reply::Renewed { .. }));
    assert_eq!(scene.refusal(&some(1, 1, &["a", "b"])).2, [had[1].fence]);
}

#[test]
fn a_thief_that_gives_up_leaves_what_it_chose_to_who_waits_for_it_next() {
    let (mut scene, had) = leased([1, 9, 9]);
    assert!(scene.refusal(&some(1, 1, &["a", "b"])).0);
    assert!(!scene.refusal(&some(2, 1, &["a"])).0, "an equal has it");
    let performed = scene.perform(vec![Request::Withdraw { holder: 1 }]);
    assert_eq!(performed.calls.claimed, [had[0].fence]);
    assert_eq!(scene.gives_back(&had[0]), [2]);
}

/// Where b is held and a is free, but first for one that waits for c too, a thief that waits for a and b.
fn behind() -> (Scene, Grant, Claim) {
    let mut scene = Scene::of(&[]);
    let plain = |holder, priority, names: &[&str]| Claim { priority, steal: None, ..thief_of(holder, names) };
    scene.had(&plain(1, 9, &["c"]));
    let held = scene.had(&plain(2, 0, &["b"]));
    assert!(!scene.refusal(&plain(3, 9, &["a", "c"])).0);
    (scene, held, Claim { priority: 5, ..thief_of(4, &["a", "b"]) })
}

// It took b, which came free and then lay idle: all waited behind the thief, and that behind the other.
#[test]
fn a_free_name_for_which_another_waits_first_is_out_of_reach() {
    let (mut scene, held, thief) = behind();
    assert_eq!(scene.refusal(&thief).2, []);
    assert!(matches!(scene.renewal(&held), Reply::Renewed { .. }));
}

// Who stood before it stole nothing, and so nobody looked: it waited until it asked again.
#[test]
fn a_thief_claims_what_it_wants_as_the_one_before_it_leaves() {
    let (mut scene, held, thief) = behind();
    scene.refusal(&thief);
    let performed = scene.perform(vec![Request::Withdraw { holder: 3 }]);
    assert_eq!(performed.calls.claimed, [held.fence]);
    assert_eq!(scene.gives_back(&held), [4]);
    assert_eq!(scene.grants(Request::Claim(thief)).len(), 2);
}

// Whom it had displaced claimed nothing until it asked again, seconds later.
#[test]
fn a_thief_that_is_served_otherwise_leaves_what_it_chose_to_who_waits_for_it_next() {
    for offered in [true, false] {
        let (mut scene, had) = leased([0, 4, 9]);
        let thief = some(1, 1, &["a", "b"]);
        assert_eq!(scene.refusal(&thief).2, [had[0].fence]);
        assert!(!scene.refusal(&Claim { priority: 3, ..some(2, 1, &["a"]) }).0, "a higher one has it");
        let claimed = if offered {
            let performed = scene.perform(vec![release(&had[1], Outcome::Unsettled)]);
            assert_eq!(performed.calls.tickets, [1]);
            performed.calls.claimed
        } else {
            let claim = Request::Claim(thief.clone());
            scene.perform(vec![release(&had[1], Outcome::Unsettled), claim]).calls.claimed
        };
        assert_eq!(claimed, [had[0].fence], "offered: {offered}");
        assert_eq!(scene.renewal(&had[0]), Reply::Claimed { deadline: had[0].deadline, priority: 3 });
    }
}

/// It kept what it had claimed of holders whose slots it did not need any more: their leases ended for nothing.
#[test]
fn who_needs_fewer_than_it_claimed_lets_go_of_the_others() {
    let (mut scene, held) = leased([0, 0, 9]);
    let thief = some(1, 2, &["a", "b", "c"]);
    assert_eq!(scene.refusal(&thief).2, [held[0].fence, held[1].fence]);
    // One of them is there now, and is kept for it.
    assert_eq!(scene.gives_back(&held[2]), []);
    assert_eq!(scene.refusal(&thief).2, []);
    let robbed: Vec<_> = held[..2].iter().map(|grant| scene.renewal(grant)).collect();
    assert!(matches!(robbed[..], [Reply::Claimed { .. }, Reply::Renewed { .. }]), "{robbed:?}");
    assert_eq!(scene.gives_back(&held[0]), [1]);
}

/// It let go of what would have been the third of who stands before it, who cannot steal, and whose two it took for its own: none of
/// the two was ever served.
#[test]
fn who_stands_behind_another_keeps_what_it_claims_though_enough_is_there() {
    let (mut scene, held) = leased([0, 0, 0]);
    assert!(!scene.refusal(&Claim { steal: None, ..any(1, 3, 5) }).0);
    assert_eq!(scene.refusal(&any(2, 1, 5)).2, [held[0].fence]);
    for grant in &held[1..] {
        assert_eq!(scene.gives_back(grant), []);
    }
    assert_eq!(scene.refusal(&any(2, 1, 5)).2, []);
    assert!(matches!(scene.renewal(&held[0]), Reply::Claimed { .. }));
    assert_eq!(scene.gives_back(&held[0]), [1]);
}

// One within the other: the stack of a thread was too small for a chain of some thousands, and the process died of it.
#[test]
fn a_long_chain_of_those_who_replace_one_another_comes_to_an_end() {
    const LINKS: usize = 2_000;
    let chain = || {
        let names: Vec<String> = (0..=LINKS).map(|number| format!("s{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut scene = Scene::of(&names);
        for (name, holder) in names.iter().zip(100_000..) {
            scene.had(&Claim { priority: i16::MIN, steal: None, ..some(holder, 1, &[name]) });
        }
        for at in (0..LINKS).rev() {
            let priority = (LINKS - at) as i16 - 16_000;
            let claim = Claim { priority, ..some(at as u128 + 1, 1, &names[at..=at + 1]) };
            scene.perform(vec![Request::Claim(claim)]);
        }
        let first = Claim { priority: i16::MAX, ..some(99_999, 1, &names[..1]) };
        let (claims, _, told) = scene.refusal(&first);
        assert!(claims && told.len() > LINKS / 2, "{}", told.len());
    };
    let small = std::thread::Builder::new().stack_size(256 << 10);
    small.spawn(chain).expect("a thread").join().expect("it does not end the process");
}
