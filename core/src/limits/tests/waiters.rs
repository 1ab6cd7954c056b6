//! Clients that wait for what is in flight, against each other.

use proptest::prelude::*;

use super::scene::{START, charge};
use crate::limits::{
    Act, Answer, Charge, Envelope, Ledger, Moment, Performed, Reply, Request, Rule, Settlement, Verdict,
    Waited,
};
use crate::slots::Lane;
use crate::{MILLISECOND, Micros, SECOND};

const HALF: Micros = SECOND / 2;
const TTL: Micros = 60 * SECOND;

fn open(max: u64) -> Rule {
    Rule::InFlight { max }
}

/// A ledger that several clients ask.
struct Counter {
    ledger: Ledger,
    wall: Micros,
    asked: u64,
}

impl Counter {
    fn new() -> Self {
        Counter { ledger: Ledger::default(), wall: START, asked: 0 }
    }

    fn pass(&mut self, time: Micros) -> &mut Self {
        self.wall += time;
        self
    }

    fn ask(&mut self, client: u64, act: Act, charges: &[Charge]) -> Reply {
        self.asked += 1;
        let lane = Lane { client: u128::from(client) << 80 | 7, number: 0, sequence: self.asked };
        let requests = vec![Request { act, charges: charges.to_vec() }];
        let envelope = Envelope { lane: Some(lane), requests, ..Envelope::default() };
        match self.ledger.apply(Moment { wall: self.wall, incarnation: "" }, &envelope) {
            Answer::Performed(Performed { replies, .. }) => replies[0],
            stale => panic!("{stale:?}"),
        }
    }

    fn reserve(&mut self, client: u64, waited: Option<Micros>, charges: &[Charge]) -> (u128, Verdict) {
        self.reserve_as(client, waited.map(Waited::from), charges)
    }

    fn reserve_as(&mut self, client: u64, waited: Option<Waited>, charges: &[Charge]) -> (u128, Verdict) {
        let id = u128::from(self.asked + 1);
        match self.ask(client, Act::Reserve { id, ttl: TTL, waited }, charges) {
            Reply::Judged(verdict) => (id, verdict),
            settled => panic!("{settled:?}"),
        }
    }

    /// Whether a client that has waited for so long gets one of the limit `a`.
    fn gets(&mut self, client: u64, waited: impl Into<Option<Micros>>, max: u64) -> bool {
        self.reserve(client, waited.into(), &[charge("a", open(max), 1)]).1.allowed
    }

    fn commit(&mut self, id: u128, charges: &[Charge]) {
        assert_eq!(self.ask(0, Act::Commit { id }, charges), Reply::Settled(Settlement::Done));
    }

    /// So many are in flight of the limit `a`, of client 1, each by a reservation of its own.
    fn full(max: u64) -> (Self, Vec<u128>) {
        let mut counter = Counter::new();
        let one = [charge("a", open(max), 1)];
        let ids = (0..max).map(|_| counter.reserve(1, None, &one).0).collect();
        (counter, ids)
    }
}

// The callers of one client claimed as it gave back, and one of another found no room for half a minute.
#[test]
fn who_has_waited_for_half_a_second_is_kept_room_for() {
    let one = [charge("a", open(2), 1)];
    for (waited, kept) in [(HALF - 1, false), (HALF, true), (10 * SECOND, true)] {
        let (mut counter, ids) = Counter::full(2);
        assert!(!counter.gets(2, waited, 2));
        counter.pass(MILLISECOND).commit(ids[0], &one);
        let verdict = counter.reserve(1, Some(0), &one).1;
        assert_eq!(verdict.allowed, !kept, "{waited}");
        if kept {
            // The room is there, and it is told for how long at most it is kept.
            assert_eq!(
                (verdict.remaining.saturating_u64(), verdict.retry_after),
                (1, Some(HALF - MILLISECOND))
            );
            assert!(counter.gets(2, waited + MILLISECOND, 2));
            counter.commit(ids[1], &one);
            assert!(counter.gets(1, 0, 2), "it has what it waited for");
        }
    }
}

// What the first of them leaves is the last that there is: the record goes on for whom it is kept.
#[test]
fn what_is_kept_outlives_what_is_in_flight() {
    let one = [charge("a", open(1), 1)];
    for act in [|id| Act::Commit { id }, |id| Act::GiveBack { id }] {
        let (mut counter, ids) = Counter::full(1);
        assert!(!counter.gets(2, SECOND, 1));
        assert_eq!(counter.ask(1, act(ids[0]), &one), Reply::Settled(Settlement::Done));
        assert!(!counter.gets(1, 0, 1));
        assert_eq!(counter.ledger.size().0, 1);
        assert!(counter.pass(HALF - 1).gets(2, SECOND + HALF, 1));
    }
}

#[test]
fn nobody_waits_for_one_that_asks_no_more() {
    let one = [charge("a", open(1), 1)];
    let (mut counter, ids) = Counter::full(1);
    assert!(!counter.gets(2, SECOND, 1));
    counter.commit(ids[0], &one);
    assert!(!counter.pass(HALF - 1).gets(1, 0, 1));
    assert!(counter.pass(1).gets(1, 0, 1));
    // It asks again, and a refusal makes it last.
    let (mut counter, ids) = Counter::full(1);
    for round in 0..10 {
        assert!(!counter.pass(HALF / 2).gets(2, SECOND + round * HALF / 2, 1));
    }
    counter.commit(ids[0], &one);
    assert!(!counter.pass(HALF - 1).gets(1, 0, 1));
    // Nothing stays behind.
    let last = counter.pass(2 * MILLISECOND + 1).ask(1, Act::Peek, &[charge("other", open(1), 0)]);
    assert!(matches!(last, Reply::Judged(_)));
    assert_eq!(counter.ledger.size().0, 0);
}

#[test]
fn of_those_who_wait_the_first_that_came_goes_first() {
    let one = [charge("a", open(1), 1)];
    // Waited by who claims, by who asks then, whether that asks for the same client, and whether it gets it.
    for (waited, client, other, allowed) in [
        (SECOND, 3, Some(SECOND - HALF - 1), false),
        (SECOND, 3, Some(SECOND - HALF), true),
        (SECOND, 3, Some(2 * SECOND), true),
        // Their own order is that of their process.
        (SECOND, 2, Some(0), true),
        // It asks once, whoever waits.
        (SECOND, 3, None, true),
    ] {
        let (mut counter, ids) = Counter::full(1);
        assert!(!counter.gets(2, waited, 1));
        counter.commit(ids[0], &one);
        assert_eq!(counter.gets(client, other, 1), allowed, "{client} after {other:?}");
    }
    // Who came before takes the place of who claimed, and who came after does not; the same client may come a little later.
    for (client, waited, keeps) in [
        (3, SECOND, 2),
        (3, SECOND + 1, 3),
        (2, SECOND - HALF, 2),
        // By then the claim is of another caller of its process, which has not asked again.
        (2, SECOND - HALF - 1, 2),
    ] {
        let (mut counter, ids) = Counter::full(1);
        assert!(!counter.gets(2, SECOND, 1));
        let again = counter.pass(HALF - 1).gets(client, waited + HALF - 1, 1);
        assert!(!again);
        counter.commit(ids[0], &one);
        let lasts = counter.pass(1).gets(9, 0, 1);
        assert_eq!(lasts, (client, waited) == (3, SECOND) || waited < SECOND - HALF, "{client} {waited}");
        assert!(lasts || counter.gets(keeps, SECOND, 1));
    }
}

#[test]
fn no_more_room_is_kept_than_is_waited_for() {
    let (rule, one) = (open(4), [charge("a", open(4), 1)]);
    let (mut counter, ids) = Counter::full(4);
    assert!(!counter.reserve(2, Some(SECOND), &[charge("a", rule, 2)]).1.allowed);
    ids[..3].iter().for_each(|id| counter.commit(*id, &one));
    assert!(counter.gets(1, 0, 4), "two more are free");
    assert!(!counter.gets(1, 0, 4));
    assert!(counter.reserve(1, Some(0), &[charge("a", rule, 0)]).1.allowed, "of nothing there is enough");
    assert!(counter.reserve(2, Some(SECOND), &[charge("a", rule, 2)]).1.allowed);
    // More than there can be is waited for by nobody.
    let (mut counter, ids) = Counter::full(2);
    let verdict = counter.reserve(2, Some(SECOND), &[charge("a", open(2), 3)]).1;
    assert_eq!((verdict.allowed, verdict.retry_after), (false, None));
    counter.commit(ids[0], &[charge("a", open(2), 1)]);
    assert!(counter.gets(1, 0, 2));
}

#[test]
fn of_several_only_those_that_refuse_are_kept_and_if_nothing_else_does() {
    let rate = Rule::Refill { max: 1, period: 60 * SECOND };
    let both = |cost| [charge("a", open(1), cost), charge("b", open(1), cost)];
    let single = |limit: &str| [charge(limit, open(1), 1)];
    let (mut counter, ids) = Counter::full(1);
    assert!(!counter.reserve(2, Some(SECOND), &both(1)).1.allowed);
    counter.commit(ids[0], &single("a"));
    assert!(!counter.gets(1, 0, 1));
    let (other, verdict) = counter.reserve(1, Some(0), &single("b"));
    assert!(verdict.allowed, "b did not refuse");
    // Then b does, and is kept too.
    assert!(!counter.reserve(2, Some(SECOND), &both(1)).1.allowed);
    counter.commit(other, &single("b"));
    assert!(!counter.reserve(1, Some(0), &single("b")).1.allowed);
    assert!(counter.reserve(2, Some(SECOND), &both(1)).1.allowed);
    // Who waits for a rate too is not kept room for meanwhile.
    for spent in [false, true] {
        let (mut counter, ids) = Counter::full(1);
        let with_rate = [charge("rate", rate, 1), charge("a", open(1), 1)];
        if spent {
            counter.ask(1, Act::Take, &with_rate[..1]);
        }
        assert!(!counter.reserve(2, Some(SECOND), &with_rate).1.allowed);
        counter.commit(ids[0], &single("a"));
        assert_eq!(counter.gets(1, 0, 1), spent);
    }
}

// The callers of a process that waited for one of it took each that came free from one of them that waited for two.
#[test]
fn those_of_one_client_who_wait_for_something_else_stand_back_too() {
    let one = [charge("a", open(4), 1)];
    let two = [charge("a", open(4), 2), charge("z", open(1), 1)];
    let (mut counter, ids) = Counter::full(4);
    assert!(!counter.reserve(1, Some(SECOND), &two).1.allowed);
    counter.pass(100 * MILLISECOND).commit(ids[0], &one);
    assert!(!counter.reserve(1, Some(0), &one).1.allowed);
    assert!(!counter.reserve(1, Some(SECOND + 100 * MILLISECOND), &two).1.allowed);
    // Not for who came at about the same time, of whichever line; that takes nothing of the claim.
    let (id, verdict) = counter.reserve(1, Some(700 * MILLISECOND), &one);
    assert!(verdict.allowed);
    counter.commit(id, &one);
    counter.pass(100 * MILLISECOND).commit(ids[1], &one);
    assert!(!counter.reserve(1, Some(100 * MILLISECOND), &one).1.allowed);
    assert!(counter.reserve(1, Some(SECOND + 200 * MILLISECOND), &two).1.allowed);
    // Nobody waits any more.
    counter.commit(ids[2], &one);
    assert!(counter.reserve(1, Some(0), &one).1.allowed);
}

// It asks again when its answer has come: what it had claimed was over by then, each time.
#[test]
fn room_is_kept_for_longer_for_who_is_far_away() {
    let one = [charge("a", open(1), 1)];
    for (reply, kept) in [(0, HALF), (600 * MILLISECOND, 1_100 * MILLISECOND), (HALF * 60, 4 * HALF)] {
        let (mut counter, ids) = Counter::full(1);
        let far = Waited { time: SECOND, reply };
        assert!(!counter.reserve_as(2, Some(far), &one).1.allowed);
        counter.commit(ids[0], &one);
        let refused = counter.pass(kept - 1).reserve(1, Some(0), &one).1;
        assert_eq!((refused.allowed, refused.retry_after), (false, Some(1)), "{reply}");
        assert!(counter.pass(1).reserve(1, Some(0), &one).1.allowed);
    }
}

#[test]
fn a_reset_forgets_who_waits_and_without_a_lane_nobody_does() {
    let one = [charge("a", open(1), 1)];
    let (mut counter, _) = Counter::full(1);
    assert!(!counter.gets(2, SECOND, 1));
    counter.ask(1, Act::Reset, &one);
    assert!(counter.gets(1, 0, 1));
    let mut counter = Counter::new();
    let waited = |time: Option<Micros>| time.map(Waited::from);
    let reserve = |id, time| {
        let act = Act::Reserve { id, ttl: TTL, waited: waited(time) };
        Request { act, charges: one.to_vec() }
    };
    let commit = Request { act: Act::Commit { id: 1 }, charges: one.to_vec() };
    for (request, allowed) in [
        (reserve(1, Some(0)), true),
        (reserve(2, Some(SECOND)), false),
        (commit, true),
        (reserve(3, Some(0)), true),
    ] {
        let reply = counter.ledger.apply_one(START, &request);
        assert_eq!(!matches!(reply, Reply::Judged(Verdict { allowed: false, .. })), allowed, "{request:?}");
    }
}

/// One of each client, as it waits.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    arrived: Micros,
    asked: Micros,
    cost: u64,
    /// Whether it was refused when it had waited for long enough, and nobody was before it.
    claims: bool,
}

struct Crowd {
    counter: Counter,
    max: u64,
    waiting: [Option<Waiting>; 5],
    flying: Vec<(u128, u64)>,
    /// When somebody left without a word.
    left: Micros,
}

impl Crowd {
    fn used(&self) -> u64 {
        self.flying.iter().map(|(_, cost)| cost).sum()
    }

    fn ask(&mut self, client: usize) -> Result<(), TestCaseError> {
        let Some(Waiting { arrived, cost, .. }) = self.waiting[client] else { return Ok(()) };
        let now = self.counter.wall;
        let limit = [charge("a", open(self.max), cost)];
        let (id, verdict) = self.counter.reserve(client as u64, Some(now - arrived), &limit);
        let others = |this: usize| self.waiting.iter().enumerate().filter(move |(at, _)| *at != this);
        let is_first = |at: usize, waiting: &Waiting| {
            others(at).filter_map(|(_, other)| *other).all(|other| other.arrived > waiting.arrived)
        };
        if verdict.allowed {
            self.flying.push((id, cost));
            prop_assert!(self.used() <= self.max);
            for (at, waiting) in others(client) {
                if let Some(waiting) = waiting
                    && waiting.claims
                    && is_first(at, waiting)
                    && waiting.arrived + HALF < arrived
                {
                    prop_assert!(self.used() + waiting.cost <= self.max, "{client} went before {at}");
                }
            }
            self.waiting[client] = None;
            self.doubt(arrived);
        } else {
            // What fits is refused for another's sake only.
            let stands_back = self.used() + cost <= self.max;
            prop_assert!(!stands_back || verdict.retry_after.is_some_and(|rest| rest > 0 && rest <= HALF));
            let first = self.waiting[client].is_some_and(|waiting| is_first(client, &waiting));
            let claims = first && !stands_back && now >= arrived + HALF && now >= self.left + HALF;
            if let Some(waiting) = &mut self.waiting[client] {
                waiting.asked = now;
                waiting.claims |= claims;
            }
        }
        Ok(())
    }

    /// One that came then waits no longer: those who came later have claimed nothing yet.
    fn doubt(&mut self, arrived: Micros) {
        let later = self.waiting.iter_mut().flatten().filter(|waiting| waiting.arrived >= arrived);
        later.for_each(|waiting| waiting.claims = false);
    }
}

proptest! {
    // Whoever asks, lands or leaves, in whatever order: never more than the maximum, and nobody goes before the first of those who
    // wait and ask again four times a second, unless there is room for both.
    #[test]
    fn the_first_who_waits_is_gone_before_by_nobody_who_came_later(
        max in 1..6u64,
        steps in prop::collection::vec((0..80u64, 0..5usize, 1..6u64, 0..12u32), 1..400),
    ) {
        let counter = Counter::new();
        let mut crowd = Crowd { counter, max, waiting: [None; 5], flying: Vec::new(), left: 0 };
        for (pass, client, cost, what) in steps {
            let now = crowd.counter.pass(pass * MILLISECOND).wall;
            for due in 0..5 {
                if crowd.waiting[due].is_some_and(|waiting| now - waiting.asked >= 160 * MILLISECOND) {
                    crowd.ask(due)?;
                }
            }
            match what {
                0..5 if !crowd.flying.is_empty() => {
                    let (id, cost) = crowd.flying.swap_remove(client % crowd.flying.len());
                    crowd.counter.commit(id, &[charge("a", open(max), cost)]);
                }
                5 if crowd.waiting[client].is_some() => {
                    let left = crowd.waiting[client].take();
                    crowd.left = now;
                    crowd.doubt(left.map_or(0, |waiting| waiting.arrived));
                }
                _ => {
                    let new = Waiting { arrived: now, asked: now, cost: cost.min(max), claims: false };
                    crowd.waiting[client].get_or_insert(new);
                    crowd.ask(client)?;
                }
            }
        }
        // All have gone: that costs whoever comes half a second, and no more.
        crowd.counter.pass(HALF);
        crowd.waiting = [None; 5];
        let free = max - crowd.used();
        let (_, verdict) = crowd.counter.reserve(77, Some(0), &[charge("a", open(max), free.max(1))]);
        prop_assert_eq!(verdict.allowed, free > 0);
    }
}
