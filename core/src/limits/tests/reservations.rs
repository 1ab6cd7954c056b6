//! What is charged for the time being.

use super::scene::{DAY, HOUR, START, Scene, all, charge};
use crate::limits::{Act, Charge, MAX_AMOUNT, Rule, Settlement};
use crate::{MILLISECOND, SECOND};

const GROUP: [Rule; 2] = [Rule::Refill { max: 10, period: HOUR }, Rule::InFlight { max: 2 }];

fn group() -> Vec<Charge> {
    vec![charge("spend", GROUP[0], 4), charge("open", GROUP[1], 1)]
}

#[test]
fn it_is_given_back_exactly_once() {
    let mut scene = Scene::new();
    let reserve = |id| Act::Reserve { id, ttl: 60 * SECOND, waited: None };
    assert!(scene.judge(reserve(1), &group()).allowed);
    assert!(scene.judge(reserve(2), &group()).allowed);
    let refused = scene.judge(reserve(3), &group());
    assert_eq!((refused.allowed, refused.binding), (false, 0), "{refused:?}");
    assert_eq!(scene.settle(Act::GiveBack { id: 3 }, &group()), Settlement::Gone, "it reserved nothing");
    assert_eq!(scene.settle(Act::GiveBack { id: 1 }, &group()), Settlement::Done);
    for act in [Act::GiveBack { id: 1 }, Act::Commit { id: 1 }] {
        assert_eq!(scene.settle(act, &group()), Settlement::Before { given_back: true });
    }
    for others in [&group()[..1], &[group(), group()].concat()] {
        assert_eq!(scene.settle(Act::GiveBack { id: 2 }, others), Settlement::Gone, "not what it reserved");
    }
    assert_eq!(scene.settle(Act::Commit { id: 2 }, &group()), Settlement::Done);
    assert_eq!(scene.settle(Act::GiveBack { id: 2 }, &group()), Settlement::Before { given_back: false });
    let left = |scene: &mut Scene, at: usize| {
        scene.judge(Act::Peek, &[Charge { cost: 0u64.into(), ..group()[at].clone() }]).remaining
    };
    assert_eq!((left(&mut scene, 0), left(&mut scene, 1)), (6u64.into(), 2u64.into()));
}

// The rest of what cost less than was reserved stayed charged, or was given back by a refund that nobody could tell from a second one.
#[test]
fn so_much_of_it_stays_charged_as_is_said() {
    let rules = [
        Rule::Refill { max: 10, period: HOUR },
        Rule::Gcra { max: 10, period: HOUR, burst: 10 },
        Rule::Rolling { max: 10, period: HOUR },
        Rule::Budget { max: 10u64.into(), period: DAY, offset: 0 },
        Rule::Lifetime { max: 10u64.into() },
        Rule::InFlight { max: 10 },
    ];
    for rule in rules {
        for (kept, left) in [(0, 10), (3, 7), (8, 2), (9, 2), (u64::MAX, 2u64)] {
            let (mut scene, flies) = (Scene::new(), matches!(rule, Rule::InFlight { .. }));
            let of = |cost| [charge("spend", rule, cost)];
            assert!(scene.judge(Act::Reserve { id: 1, ttl: HOUR, waited: None }, &of(8)).allowed);
            for settled in [Settlement::Done, Settlement::Before { given_back: false }] {
                assert_eq!(scene.settle(Act::Keep { id: 1 }, &of(kept)), settled);
                // What is in flight lands.
                let left: u64 = if flies { 10 } else { left };
                assert_eq!(scene.judge(Act::Peek, &of(0)).remaining, left.into(), "{rule:?}, {kept} kept");
            }
            assert_eq!(
                scene.settle(Act::GiveBack { id: 1 }, &of(8)),
                Settlement::Before { given_back: false }
            );
        }
    }
    let mut scene = Scene::new();
    assert!(scene.judge(Act::Reserve { id: 1, ttl: SECOND, waited: None }, &group()).allowed);
    assert_eq!(scene.pass(SECOND).settle(Act::Keep { id: 1 }, &group()), Settlement::Gone);
    assert_eq!(scene.settle(Act::Keep { id: 2 }, &group()), Settlement::Gone);
}

// Each was kept for its whole time to live, which can be a week.
#[test]
fn how_one_ended_is_forgotten_when_nobody_can_ask_for_it_any_more() {
    let mut scene = Scene::new();
    for id in 0..10 {
        assert!(scene.judge(Act::Reserve { id, ttl: 7 * DAY, waited: None }, &group()[1..]).allowed);
        assert_eq!(scene.settle(Act::Commit { id }, &group()[1..]), Settlement::Done);
    }
    scene.pass(60 * SECOND);
    assert_eq!(scene.settle(Act::Commit { id: 9 }, &group()[1..]), Settlement::Before { given_back: false });
    scene.pass(61 * SECOND);
    assert_eq!(scene.settle(Act::Commit { id: 9 }, &group()[1..]), Settlement::Gone);
    assert_eq!(scene.ledger.size().1, 0);
    // Whoever believes that it is charged hears that it is not, as long as it may believe so.
    assert!(scene.judge(Act::Reserve { id: 10, ttl: DAY, waited: None }, &group()[..1]).allowed);
    assert_eq!(scene.settle(Act::GiveBack { id: 10 }, &group()[..1]), Settlement::Done);
    scene.pass(HOUR);
    let given_back = Settlement::Before { given_back: true };
    assert_eq!(scene.settle(Act::Commit { id: 10 }, &group()[..1]), given_back);
}

// Whose reply was lost, and who asked again after its time, was told that it was lost.
#[test]
fn that_one_was_committed_is_remembered_for_longer_than_it_would_have_lasted() {
    let mut scene = Scene::new();
    assert!(scene.judge(Act::Reserve { id: 1, ttl: 30 * SECOND, waited: None }, &group()).allowed);
    assert_eq!(scene.pass(5 * SECOND).settle(Act::Commit { id: 1 }, &group()), Settlement::Done);
    let before = Settlement::Before { given_back: false };
    for act in [Act::Commit { id: 1 }, Act::GiveBack { id: 1 }, Act::Renew { id: 1, ttl: HOUR }] {
        assert_eq!(scene.pass(35 * SECOND).settle(act, &group()), before, "{act:?}");
    }
    assert_eq!(scene.pass(15 * SECOND).settle(Act::Commit { id: 1 }, &group()), Settlement::Gone);
    assert_eq!((scene.pass(2 * MILLISECOND).remaining_of("spend"), scene.ledger.size().1), (6, 0));
}

#[test]
fn one_that_is_not_settled_in_time_stays_charged_and_is_in_flight_no_longer() {
    let mut scene = Scene::new();
    assert!(scene.judge(Act::Reserve { id: 1, ttl: SECOND, waited: None }, &group()).allowed);
    let open = [charge("open", GROUP[1], 2)];
    let refused = scene.judge(Act::Peek, &open);
    assert_eq!((refused.retry_after, refused.reset_after), (Some(SECOND), Some(SECOND)));
    scene.pass(SECOND);
    assert!(scene.judge(Act::Peek, &open).allowed);
    assert_eq!(scene.settle(Act::GiveBack { id: 1 }, &group()), Settlement::Gone);
    assert_eq!(scene.remaining_of("spend"), 6);
}

impl Scene {
    fn remaining_of(&mut self, limit: &str) -> u64 {
        self.judge(Act::Peek, &[charge(limit, GROUP[0], 0)]).remaining.saturating_u64()
    }
}

// Else a full limit could be had a second time within the window: what was reserved has been refilled since.
#[test]
fn what_was_refilled_meanwhile_is_not_given_back_once_more() {
    for rule in [
        Rule::Refill { max: 10, period: 10 * SECOND },
        Rule::Gcra { max: 10, period: 10 * SECOND, burst: 10 },
        Rule::Rolling { max: 10, period: 10 * SECOND },
        Rule::Budget { max: 10u64.into(), period: 10 * SECOND, offset: START % (10 * SECOND) },
    ] {
        let reserved = [charge("a", rule, 10)];
        let mut scene = Scene::new();
        assert!(scene.judge(Act::Reserve { id: 1, ttl: 60 * SECOND, waited: None }, &reserved).allowed);
        assert!(scene.pass(10 * SECOND).take(rule, 10).allowed, "{rule:?}");
        assert_eq!(scene.settle(Act::GiveBack { id: 1 }, &reserved), Settlement::Done);
        assert!(!scene.take(rule, 1).allowed, "{rule:?}");
    }
    // A part of it.
    let rule = Rule::Refill { max: 10, period: 10 * SECOND };
    let mut scene = Scene::new();
    assert!(
        scene.judge(Act::Reserve { id: 1, ttl: 60 * SECOND, waited: None }, &[charge("a", rule, 10)]).allowed
    );
    assert!(scene.pass(4 * SECOND).take(rule, 4).allowed);
    scene.settle(Act::GiveBack { id: 1 }, &[charge("a", rule, 10)]);
    assert_eq!(scene.remaining(rule), 6);
}

#[test]
fn a_budget_of_yesterday_gives_nothing_back_today() {
    let rule = Rule::Budget { max: 10u64.into(), period: DAY, offset: 0 };
    let mut scene = Scene::new();
    scene.pass(DAY - SECOND);
    assert!(
        scene.judge(Act::Reserve { id: 1, ttl: 60 * SECOND, waited: None }, &[charge("a", rule, 10)]).allowed
    );
    assert!(scene.pass(SECOND).take(rule, 3).allowed);
    assert_eq!(scene.settle(Act::GiveBack { id: 1 }, &[charge("a", rule, 10)]), Settlement::Done);
    assert_eq!(scene.remaining(rule), 7);
}

// It freed what others had taken since.
#[test]
fn one_of_before_a_reset_gives_nothing_back() {
    for rule in all(10, HOUR).into_iter().chain([Rule::InFlight { max: 10 }]) {
        if matches!(rule, Rule::Each { .. }) {
            continue;
        }
        let mut scene = Scene::new();
        let six = [charge("a", rule, 6)];
        let reserve = |id| Act::Reserve { id, ttl: SECOND, waited: None };
        assert!(scene.judge(reserve(1), &six).allowed);
        scene.judge(Act::Reset, &six);
        // At the same time, as much, and until the same time.
        assert!(scene.judge(reserve(2), &six).allowed);
        assert_eq!(scene.settle(Act::GiveBack { id: 1 }, &six), Settlement::Done);
        assert_eq!(scene.remaining(rule), 4, "{rule:?}");
        assert_eq!(scene.settle(Act::GiveBack { id: 2 }, &six), Settlement::Done);
        assert_eq!(scene.remaining(rule), 10, "{rule:?}");
        assert_eq!(scene.size_when_forgotten().0, 0, "{rule:?}");
        // Nor where only what has no reservation was taken since.
        if !matches!(rule, Rule::InFlight { .. }) {
            assert!(scene.judge(reserve(3), &six).allowed);
            scene.judge(Act::Reset, &six);
            assert!(scene.take(rule, 6).allowed);
            assert_eq!(scene.settle(Act::GiveBack { id: 3 }, &six), Settlement::Done);
            assert_eq!(scene.remaining(rule), 4, "{rule:?}");
        }
    }
}

#[test]
fn of_a_group_only_what_was_reset_is_not_given_back() {
    let rule = Rule::Lifetime { max: 10u64.into() };
    let mut scene = Scene::new();
    let both = [charge("a", rule, 6), charge("b", rule, 6)];
    assert!(scene.judge(Act::Reserve { id: 1, ttl: SECOND, waited: None }, &both).allowed);
    scene.judge(Act::Reset, &both[..1]);
    assert!(scene.judge(Act::Take, &both[..1]).allowed);
    assert_eq!(scene.settle(Act::GiveBack { id: 1 }, &both), Settlement::Done);
    assert_eq!(scene.remaining(rule), 4);
    assert_eq!(scene.judge(Act::Peek, &both[1..]).remaining, 10u64.into());
}

// By the maximum of now it would be little that has been refilled since: what others have taken was given back.
#[test]
fn what_a_higher_maximum_has_refilled_is_not_given_back_by_a_lower_one() {
    for kind in [|max| Rule::Refill { max, period: HOUR }, |max| Rule::Gcra { max, period: HOUR, burst: max }]
    {
        let mut scene = Scene::new();
        assert!(
            scene
                .judge(Act::Reserve { id: 1, ttl: HOUR, waited: None }, &[charge("a", kind(10), 10)])
                .allowed
        );
        assert!(scene.take(kind(100), 0).allowed);
        assert!(scene.pass(HOUR / 20).take(kind(100), 95).allowed, "5 have been refilled");
        assert_eq!(scene.settle(Act::GiveBack { id: 1 }, &[charge("a", kind(10), 10)]), Settlement::Done);
        assert_eq!(scene.remaining(kind(100)), 5);
    }
}

// Nothing was: as fast as the highest maximum of the last hours refills, all would have been refilled in no time.
#[test]
fn what_a_lower_maximum_has_not_refilled_is_given_back_though_a_higher_one_was_asked_with() {
    for kind in [|max| Rule::Refill { max, period: HOUR }, |max| Rule::Gcra { max, period: HOUR, burst: max }]
    {
        let mut scene = Scene::new();
        assert!(scene.take(kind(1_000), 5).allowed);
        // Nothing has been refilled by that yet, or it has: what counts is what was refilled since.
        for (id, pass) in [(1, 0), (2, SECOND)] {
            assert!(scene.pass(pass).take(kind(10), 1).allowed);
            let two = [charge("a", kind(10), 2)];
            assert!(scene.judge(Act::Reserve { id, ttl: HOUR, waited: None }, &two).allowed);
            let left = scene.remaining(kind(10));
            assert_eq!(scene.pass(HOUR / 20).remaining(kind(10)), left, "a half has been refilled");
            assert_eq!(scene.settle(Act::GiveBack { id }, &two), Settlement::Done);
            assert_eq!(scene.remaining(kind(10)), left + 2, "a half and one and a half");
            scene.take(kind(1_000), 0);
        }
    }
}

// A count of what was refilled that does not end would not be held by a script's doubles.
#[test]
fn a_limit_that_has_refilled_more_than_can_be_counted_gives_nothing_back() {
    let rule = Rule::Refill { max: MAX_AMOUNT, period: SECOND };
    let half = [charge("a", rule, MAX_AMOUNT / 2)];
    let reserve = |id| Act::Reserve { id, ttl: HOUR, waited: None };
    for (rounds, left) in [(3, MAX_AMOUNT / 2), (4, MAX_AMOUNT / 4)] {
        let mut scene = Scene::new();
        assert!(scene.judge(reserve(1), &half).allowed);
        for _ in 0..rounds {
            assert!(scene.pass(SECOND / 4).take(rule, MAX_AMOUNT / 4).allowed);
        }
        assert!(scene.judge(reserve(2), &half).allowed);
        assert_eq!(scene.pass(SECOND / 4).settle(Act::GiveBack { id: 2 }, &half), Settlement::Done);
        assert_eq!(scene.remaining(rule), left, "{rounds}");
        // What is reserved from then on is counted anew.
        assert!(scene.judge(reserve(3), &[charge("a", rule, left)]).allowed);
        assert_eq!(scene.settle(Act::GiveBack { id: 3 }, &half), Settlement::Done);
        assert_eq!(scene.remaining(rule), left, "{rounds}");
    }
}

#[test]
fn a_thousand_are_in_flight_and_no_more() {
    let rule = Rule::InFlight { max: 1_000 };
    let mut scene = Scene::new();
    let reserve = |id| Act::Reserve { id, ttl: 10 * SECOND, waited: None };
    let allowed = |scene: &mut Scene| {
        (0..1_100).filter(|id| scene.judge(reserve(*id), &[charge("a", rule, 1)]).allowed).count()
    };
    assert_eq!(allowed(&mut scene), 1_000);
    assert_eq!(scene.settle(Act::Commit { id: 500 }, &[charge("a", rule, 1)]), Settlement::Done);
    assert!(scene.judge(reserve(5_000), &[charge("a", rule, 1)]).allowed);
    assert_eq!(allowed(scene.pass(10 * SECOND)), 1_000);
}
