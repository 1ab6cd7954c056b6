//! Reservations that are prolonged.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::scene::{DAY, HOUR, Scene, all, charge};
use crate::id::Name;
use crate::limits::{Act, Charge, Rule, Settlement};
use crate::{Micros, SECOND};

const OPEN: Rule = Rule::InFlight { max: 4 };
const RATE: Rule = Rule::Refill { max: 10, period: HOUR };

impl Scene {
    fn reserve(&mut self, id: u128, ttl: Micros, charges: &[Charge]) -> bool {
        self.judge(Act::Reserve { id, ttl, waited: None }, charges).allowed
    }

    fn renew(&mut self, id: u128, ttl: Micros, charges: &[Charge]) -> Settlement {
        self.settle(Act::Renew { id, ttl }, charges)
    }

    /// What remains of the limit `a`, and when all and the first of what is in flight ends.
    fn flights(&mut self, rule: Rule) -> (u64, Option<Micros>, Option<Micros>) {
        let most = rule.most().saturating_u64();
        let told = self.judge(Act::Peek, &[charge("a", rule, most)]);
        (told.remaining.saturating_u64(), told.reset_after, told.retry_after)
    }
}

fn open(cost: u64) -> [Charge; 1] {
    [charge("a", OPEN, cost)]
}

#[test]
fn what_is_in_flight_moves_along() {
    let mut scene = Scene::new();
    assert!(scene.reserve(1, 10 * SECOND, &open(1)));
    assert!(scene.pass(SECOND).reserve(2, 10 * SECOND, &open(2)));
    scene.pass(5 * SECOND);
    assert_eq!(scene.flights(OPEN), (1, Some(5 * SECOND), Some(4 * SECOND)));
    assert_eq!(scene.renew(1, 10 * SECOND, &open(1)), Settlement::Done);
    assert_eq!(scene.flights(OPEN), (1, Some(10 * SECOND), Some(5 * SECOND)));
    scene.pass(5 * SECOND);
    assert_eq!(scene.flights(OPEN), (3, Some(5 * SECOND), Some(5 * SECOND)));
    assert_eq!(scene.renew(2, 10 * SECOND, &open(2)), Settlement::Gone, "its time has passed");
    // To the microsecond, as if it had been reserved for so long.
    scene.pass(5 * SECOND - 1);
    assert_eq!(scene.renew(1, 1, &open(1)), Settlement::Done);
    assert_eq!(scene.flights(OPEN), (3, Some(1), Some(1)));
    assert_eq!(scene.pass(1).renew(1, 1, &open(1)), Settlement::Gone);
    assert_eq!(scene.flights(OPEN), (4, Some(0), Some(0)));
    assert_eq!(scene.size_when_forgotten(), (0, 0));
}

// A copy that is late, or one of a shorter time to live, takes nothing away.
#[test]
fn a_renewal_never_shortens() {
    let mut scene = Scene::new();
    assert!(scene.reserve(1, 10 * SECOND, &open(1)));
    for ttl in [0, 1, 5 * SECOND, 9 * SECOND] {
        assert_eq!(scene.renew(1, ttl, &open(1)), Settlement::Done);
        assert_eq!(scene.flights(OPEN), (3, Some(10 * SECOND), Some(10 * SECOND)), "{ttl}");
    }
    assert_eq!(scene.pass(10 * SECOND - 1).renew(1, 0, &open(1)), Settlement::Done);
    assert_eq!(scene.pass(1).renew(1, DAY, &open(1)), Settlement::Gone);
}

#[test]
fn what_has_ended_is_not_brought_back() {
    let mut scene = Scene::new();
    for (id, act, given_back) in [(1, Act::Commit { id: 1 }, false), (2, Act::GiveBack { id: 2 }, true)] {
        assert_eq!(scene.renew(id, HOUR, &open(1)), Settlement::Gone, "it was never made");
        assert!(scene.reserve(id, HOUR, &open(1)));
        assert_eq!(scene.renew(id, HOUR, &[]), Settlement::Gone, "not what it reserved");
        assert_eq!(scene.settle(act, &open(1)), Settlement::Done);
        assert_eq!(scene.renew(id, HOUR, &open(1)), Settlement::Before { given_back });
        assert_eq!(scene.flights(OPEN).0, 4);
    }
    // Nor is it remembered for longer how it ended.
    scene.pass(119 * SECOND);
    assert_eq!(scene.renew(1, DAY, &open(1)), Settlement::Before { given_back: false });
    assert_eq!(scene.pass(SECOND).renew(1, DAY, &open(1)), Settlement::Gone);
}

#[test]
fn what_it_charged_of_all_kinds_can_be_given_back_for_as_long() {
    for rule in all(10, HOUR).into_iter().filter(|rule| !matches!(rule, Rule::Each { .. })) {
        let mut scene = Scene::new();
        let both = [charge("a", rule, 6), charge("open", OPEN, 1)];
        assert!(scene.reserve(1, 10 * SECOND, &both));
        assert_eq!(scene.pass(9 * SECOND).renew(1, 10 * SECOND, &both), Settlement::Done);
        assert_eq!(scene.remaining(rule), 4, "it stays charged: {rule:?}");
        assert_eq!(scene.pass(9 * SECOND).settle(Act::GiveBack { id: 1 }, &both), Settlement::Done);
        assert_eq!(scene.remaining(rule), 10, "{rule:?}");
        assert_eq!(scene.judge(Act::Peek, &both[1..]).remaining, 4u64.into());
        // Also of what has nothing in flight.
        assert!(scene.reserve(2, 10 * SECOND, &both[..1]));
        assert_eq!(scene.pass(9 * SECOND).renew(2, 10 * SECOND, &both[..1]), Settlement::Done);
        assert_eq!(scene.pass(9 * SECOND).settle(Act::GiveBack { id: 2 }, &both[..1]), Settlement::Done);
        assert_eq!(scene.remaining(rule), 10, "{rule:?}");
    }
}

// Who holds it is to hear that, and nothing else of it is prolonged.
#[test]
fn what_is_counted_no_more_is_not_prolonged() {
    let both = [charge("spend", RATE, 4), charge("b", OPEN, 1), charge("a", OPEN, 1)];
    let reset = |scene: &mut Scene, limits: &[Charge]| _ = scene.ask(Act::Reset, limits);
    let forget = |scene: &mut Scene, limits: &[Charge]| {
        let named = |charge: &Charge| (charge.rule, charge.limit.clone());
        let limits: Vec<(Rule, Name)> = limits.iter().map(named).collect();
        scene.ledger.forget_all(limits.iter().map(|(rule, name)| (*rule, name)));
    };
    for how in ["reset", "forgotten"] {
        for taken_again in [false, true] {
            let mut scene = Scene::new();
            assert!(scene.reserve(1, 10 * SECOND, &both));
            if how == "reset" {
                reset(&mut scene, &both[2..])
            } else {
                forget(&mut scene, &both[2..])
            }
            // At the same time, as much, and until the same time.
            assert!(!taken_again || scene.reserve(2, 10 * SECOND, &open(1)));
            scene.pass(SECOND);
            assert_eq!(scene.renew(1, HOUR, &both), Settlement::Gone, "{how}");
            let ends =
                |scene: &mut Scene, limit| scene.judge(Act::Peek, &[charge(limit, OPEN, 0)]).reset_after;
            assert_eq!(ends(&mut scene, "b"), Some(9 * SECOND), "{how}");
            assert_eq!(ends(&mut scene, "a"), Some(if taken_again { 9 * SECOND } else { 0 }), "{how}");
            // It can be given back as before.
            assert_eq!(scene.settle(Act::GiveBack { id: 1 }, &both), Settlement::Done);
            assert!(!taken_again || scene.renew(2, HOUR, &open(1)) == Settlement::Done);
        }
    }
    // Of rates and money nothing is asked.
    let mut scene = Scene::new();
    assert!(scene.reserve(1, 10 * SECOND, &both));
    scene.judge(Act::Reset, &both[..1]);
    assert_eq!(scene.renew(1, HOUR, &both), Settlement::Done);
}

#[test]
fn nothing_in_flight_needs_nothing_that_counts() {
    let mut scene = Scene::new();
    assert!(scene.reserve(1, 10 * SECOND, &open(0)));
    scene.judge(Act::Reset, &open(0));
    assert_eq!(scene.pass(9 * SECOND).renew(1, 10 * SECOND, &open(0)), Settlement::Done);
    assert_eq!(scene.pass(9 * SECOND).renew(1, 10 * SECOND, &open(0)), Settlement::Done);
    assert_eq!(scene.flights(OPEN), (4, Some(0), Some(0)));
}

#[test]
fn a_renewal_needs_no_room() {
    let mut scene = Scene::new();
    assert!(scene.reserve(1, 10 * SECOND, &open(3)));
    for max in [3, 1, 0] {
        let lowered = [charge("a", Rule::InFlight { max }, 3)];
        assert_eq!(scene.pass(9 * SECOND).renew(1, 10 * SECOND, &lowered), Settlement::Done, "{max}");
    }
    assert_eq!(scene.flights(OPEN), (1, Some(10 * SECOND), Some(10 * SECOND)));
}

// Those of one end and one amount are all the same: of two, the one that is prolonged is.
#[test]
fn of_two_of_one_end_and_amount_one_is_prolonged() {
    let mut scene = Scene::new();
    assert!(scene.reserve(1, 10 * SECOND, &open(1)) && scene.reserve(2, 10 * SECOND, &open(1)));
    assert_eq!(scene.renew(1, 20 * SECOND, &open(1)), Settlement::Done);
    assert_eq!(scene.flights(OPEN), (2, Some(20 * SECOND), Some(10 * SECOND)));
    assert_eq!(scene.renew(2, 20 * SECOND, &open(1)), Settlement::Done);
    assert_eq!(scene.flights(OPEN), (2, Some(20 * SECOND), Some(20 * SECOND)));
    for (id, left) in [(2, 3), (1, 4)] {
        assert_eq!(scene.settle(Act::Commit { id }, &open(1)), Settlement::Done);
        assert_eq!(scene.flights(OPEN).0, left);
    }
}

// The limit's clock is ahead then, and as what is in flight it goes on at half its pace.
#[test]
fn of_a_clock_that_is_set_back_it_lasts_at_least_as_long() {
    for back in [SECOND, HOUR] {
        let mut scene = Scene::new();
        assert!(scene.pass(2 * HOUR).reserve(1, 60 * SECOND, &open(1)));
        scene.wall -= back;
        for _ in 0..5 {
            assert_eq!(scene.pass(50 * SECOND).renew(1, 60 * SECOND, &open(1)), Settlement::Done, "{back}");
            let ends = scene.flights(OPEN).1.unwrap();
            assert!((60 * SECOND - 1..=120 * SECOND).contains(&ends), "{back}: {ends}");
        }
        assert_eq!(scene.settle(Act::Commit { id: 1 }, &open(1)), Settlement::Done);
        assert_eq!(scene.flights(OPEN), (4, Some(0), Some(0)), "{back}");
    }
}

// By its own clock, which half of that gained, it has landed, and is taken: who holds it is to hear that.
#[test]
fn what_landed_by_the_limits_clock_is_not_prolonged() {
    let mut scene = Scene::new();
    assert!(scene.pass(2 * HOUR).reserve(1, 60 * SECOND, &open(1)));
    assert!(scene.reserve(2, HOUR, &open(1)));
    scene.wall -= HOUR;
    scene.judge(Act::Take, &open(0));
    scene.wall += HOUR + SECOND;
    assert_eq!(scene.flights(OPEN).0, 3);
    assert_eq!(scene.renew(1, HOUR, &open(1)), Settlement::Gone);
    assert_eq!(scene.renew(2, HOUR, &open(1)), Settlement::Done);
}

#[test]
fn it_is_asked_for_as_long_as_it_lasts_and_no_longer() {
    let mut scene = Scene::new();
    let spend = [charge("a", RATE, 1)];
    assert!(scene.reserve(1, SECOND, &spend));
    for _ in 0..100 {
        assert_eq!(scene.pass(SECOND / 2).renew(1, SECOND, &spend), Settlement::Done);
    }
    assert_eq!(scene.ledger.size(), (1, 1));
    assert_eq!(scene.size_when_forgotten(), (0, 0));
}

proptest! {
    // Whatever is reserved, prolonged, ended and reset: in flight is what has not ended, until the latest end that it was given.
    #[test]
    fn in_flight_is_what_lasts(steps in prop::collection::vec((0..8u8, 1..6u128, 0..4u64, 0..30u64, 0..30u64), 1..80)) {
        // Until when, and how much; nothing is in flight of one of before a reset.
        let mut model = BTreeMap::<u128, (Micros, u64, bool)>::new();
        let (mut scene, mut next) = (Scene::new(), 100);
        for (what, id, cost, ttl, pass) in steps {
            let now = scene.pass(pass * SECOND).wall;
            let flying = |model: &BTreeMap<u128, (Micros, u64, bool)>| {
                let flies = |(until, cost, counts): &&(Micros, u64, bool)| *counts && *until > now && *cost > 0;
                model.values().filter(flies).map(|(until, cost, _)| (*until - now, *cost)).collect::<Vec<_>>()
            };
            let known = model.iter().nth(id as usize % model.len().max(1)).map(|(id, kept)| (*id, *kept));
            let known = known.filter(|_| what > 1);
            match (what, known) {
                (0..=1, _) | (_, None) => {
                    next += 1;
                    let used: u64 = flying(&model).iter().map(|(_, cost)| cost).sum();
                    let ttl = (ttl + 1) * SECOND;
                    let allowed = scene.reserve(next, ttl, &open(cost));
                    prop_assert_eq!(allowed, cost == 0 || used + cost <= 4);
                    if allowed {
                        model.insert(next, (now + ttl, cost, true));
                    }
                }
                (2, _) => {
                    scene.judge(Act::Reset, &open(0));
                    model.values_mut().for_each(|(_, cost, counts)| *counts = *cost == 0);
                }
                (3..=5, Some((id, (until, cost, counts)))) => {
                    let lasts = until > now && counts;
                    let told = scene.renew(id, ttl * SECOND, &open(cost));
                    prop_assert_eq!(told, if lasts { Settlement::Done } else { Settlement::Gone });
                    if lasts {
                        model.insert(id, (until.max(now + ttl * SECOND), cost, counts));
                    }
                }
                (_, Some((id, (until, cost, _)))) => {
                    let act = if what == 6 { Act::Commit { id } } else { Act::GiveBack { id } };
                    let told = scene.settle(act, &open(cost));
                    prop_assert_eq!(told, if until > now { Settlement::Done } else { Settlement::Gone });
                    model.remove(&id);
                }
            }
            let flights = flying(&model);
            let used: u64 = flights.iter().map(|(_, cost)| cost).sum();
            let (first, last) = (flights.iter().min(), flights.iter().max());
            let end = |flight: Option<&(Micros, u64)>| flight.map_or(Some(0), |(left, _)| Some(*left));
            prop_assert_eq!(scene.flights(OPEN), (4 - used, end(last), end(first)));
        }
    }
}
