//! Histories by hand that the checker must refuse: what no script can be made to do, as it is the client's.

use leasehold_simulation::census::Census;
use leasehold_simulation::checker::{Rules, judge};
use leasehold_simulation::history::{Bid, Event, Fact, Performance, What, Wish};
use leasehold_simulation::world::ProcessId;

const TTL: u64 = 1_000_000;

/// A history that grows.
#[derive(Default)]
struct Story(Vec<Event>);

impl Story {
    fn then(mut self, at: u64, process: ProcessId, what: What) -> Self {
        self.0.push(Event { at, process, what });
        self
    }

    fn store(self, at: u64, facts: Vec<Fact>) -> Self {
        self.then(at, 0, What::Performed(Performance { now: at, facts, ..Performance::default() }))
    }

    /// Both names are locked under the fences 7 and 8; the holder is told of the higher.
    fn locked() -> Self {
        let grant = |slot: &str, fence| Fact::Granted {
            holder: "1".to_owned(),
            slot: slot.to_owned(),
            fence,
            deadline: 10 + TTL,
            max_hold: 0,
            known: false,
        };
        let facts = vec![Fact::Served(bid("1", &["a", "b"])), grant("a", 7), grant("b", 8)];
        Story::default().store(10, facts)
    }

    fn believes(self, at: u64, process: ProcessId, slot: &str, until: u64) -> Self {
        self.then(at, process, What::Believes { slot: slot.to_owned(), fence: 8, until })
    }

    fn release(self, at: u64, slot: &str, fence: u64) -> Self {
        let released = Fact::Released {
            slot: slot.to_owned(),
            fence,
            rest: 0,
            outcome: "unused".to_owned(),
            named: false,
        };
        self.store(at, vec![released])
    }

    /// The rule that is broken.
    fn breaks(&self) -> Option<&'static str> {
        let rules =
            Rules { ttl: TTL, doubt_rest: 0, accounts: Vec::new(), mixed: false, workers: 1, drift: false };
        judge(&rules, &self.0, &Census::default()).map(|violation| violation.rule)
    }
}

fn bid(holder: &str, names: &[&str]) -> Bid {
    Bid {
        holder: holder.to_owned(),
        wish: Wish::Names(names.iter().map(|&name| name.to_owned()).collect()),
        priority: 0,
        ageing: 0,
        waited: 0,
        waits: true,
    }
}

#[test]
fn a_lock_is_relied_on_name_by_name_and_no_longer_than_the_store_keeps_it() {
    let story = || Story::locked().believes(20, 1, "a", 10 + TTL).believes(20, 1, "b", 10 + TTL);
    assert_eq!(story().breaks(), None);
    assert_eq!(story().believes(30, 2, "b", 40).breaks(), None, "shared within a process");
    assert_eq!(story().believes(30, 1, "b", 11 + TTL).breaks(), Some("S4"));
    assert_eq!(story().believes(30, 1, "c", 40).breaks(), Some("S7"), "the fence of another name");
}

#[test]
fn what_somebody_relies_on_is_not_given_back() {
    let held = || Story::locked().believes(20, 1, "a", 10 + TTL).believes(20, 1, "b", 10 + TTL);
    assert_eq!(held().release(30, "a", 7).breaks(), Some("R1"));
    let closed = held().then(25, 1, What::Closed { fence: 8 });
    assert_eq!(closed.release(30, "a", 7).release(30, "b", 8).breaks(), None);
}

#[test]
fn nobody_is_granted_a_name_before_its_holder_is_told() {
    let watched = |slot: &str| What::Watched { slot: slot.to_owned(), fence: 8 };
    let next = Fact::Granted {
        holder: "2".to_owned(),
        slot: "a".to_owned(),
        fence: 9,
        deadline: 10 + 3 * TTL,
        max_hold: 0,
        known: false,
    };
    let story = || Story::locked().then(20, 1, watched("a")).then(20, 1, watched("b"));
    let grant = || vec![Fact::Served(bid("2", &["a"])), next.clone()];
    assert_eq!(story().store(20 + TTL, grant()).breaks(), Some("K1"));
    let told = story().then(30, 1, What::ToldLost { fence: 8 });
    assert_eq!(told.store(20 + TTL, grant()).breaks(), None);
}

#[test]
fn after_the_storm_nobody_waits_and_nothing_is_held_or_kept() {
    let calm = |at| (at, 0, What::Calm);
    let then = |story: Story, (at, process, what)| story.then(at, process, what);
    assert_eq!(then(Story::locked(), calm(20_000_000)).breaks(), None);
    let waits = |at, story: Story| {
        story.store(at, vec![Fact::Refused { bid: bid("2", &["a"]), why: "exhausted".to_owned() }])
    };
    let waiting = waits(30, Story::locked());
    assert_eq!(then(waiting, calm(20_000_000)).breaks(), None, "long ago");
    let again = |at| {
        let grant = Fact::Granted {
            holder: "2".to_owned(),
            slot: "a".to_owned(),
            fence: 9,
            deadline: at + TTL,
            max_hold: 0,
            known: false,
        };
        Story::locked().store(at, vec![Fact::Served(bid("2", &["a"])), grant])
    };
    assert_eq!(then(again(19_500_000), calm(20_000_000)).breaks(), Some("A2"), "it is held");
    let waiting = waits(19_000_000, again(18_900_000));
    assert_eq!(then(waiting, calm(20_000_000)).breaks(), Some("A2"), "it waits");
    let left = |records: &[&str]| What::LeftBehind(records.iter().map(|&record| record.to_owned()).collect());
    assert_eq!(Story::locked().then(20_000_000, 0, left(&[])).breaks(), None);
    assert_eq!(Story::locked().then(20_000_000, 0, left(&["HKEYS a"])).breaks(), Some("N2"));
}
