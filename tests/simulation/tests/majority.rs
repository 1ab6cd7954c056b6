//! The judge of locks by majority against histories made by hand: what it must find, and what is right.

use leasehold_simulation::census::Census;
use leasehold_simulation::history::{Bid, Event, Fact, Performance, What, Wish};
use leasehold_simulation::majority::{MajorityRules, judge};
use leasehold_simulation::server::BEGINNING;
use leasehold_simulation::world::ProcessId;

const TTL: u64 = 1_000_000;
const SOON: u64 = 5_000_000;

/// A history that grows: of three servers and one name.
#[derive(Default)]
struct Story(Vec<(Option<usize>, Event)>);

impl Story {
    fn at(mut self, at: u64, server: Option<usize>, process: ProcessId, what: What) -> Self {
        self.0.push((server, Event { at, process, what }));
        self
    }

    fn then(self, at: u64, process: ProcessId, what: What) -> Self {
        self.at(at, None, process, what)
    }

    /// These servers grant the name, each under a fence of its clock, which is ahead by so much.
    fn grant(mut self, at: u64, process: ProcessId, servers: &[(usize, u64)]) -> Self {
        self = self.then(at, process, What::AcquireBegan { acquire: at, timeout: 0, grace: 0 });
        for &(server, ahead) in servers {
            let now = BEGINNING + at + ahead;
            let bid = Bid {
                holder: process.to_string(),
                wish: Wish::Names(vec!["a".to_owned()]),
                priority: 0,
                ageing: 0,
                waited: 0,
                waits: false,
                steal: None,
            };
            let grant = Fact::Granted {
                holder: process.to_string(),
                slot: "a".to_owned(),
                fence: now,
                deadline: now + TTL,
                max_hold: 0,
                known: false,
            };
            self = self.performed(at, server, process, now, vec![Fact::Served(bid), grant]);
        }
        self.then(at, process, What::AcquireEnded { acquire: at, end: Some(Ok(1)) })
    }

    fn performed(self, at: u64, server: usize, process: ProcessId, now: u64, facts: Vec<Fact>) -> Self {
        let done = Performance { now, facts, ..Performance::default() };
        self.at(at, Some(server), process, What::Performed(done))
    }

    fn release(self, at: u64, process: ProcessId, server: usize, fence: u64) -> Self {
        let released = Fact::Released {
            slot: "a".to_owned(),
            fence,
            rest: 0,
            outcome: "unsettled".to_owned(),
            named: false,
        };
        self.performed(at, server, process, BEGINNING + at, vec![released])
    }

    fn believes(self, at: u64, process: ProcessId, fence: u64, until: u64) -> Self {
        self.then(at, process, What::Believes { slot: "a".to_owned(), fence, until })
    }

    /// The rule that is broken. At the end somebody is audited.
    fn breaks(self) -> Option<&'static str> {
        let at = self.0.last().map_or(0, |(_, event)| event.at);
        let story = self.then(at, 9, What::Audited { slot: "process 9".to_owned(), failure: None });
        let rules = MajorityRules { servers: 3, ttl: TTL, tolerated: 1_000 };
        judge(&rules, &story.0, &Census::default()).map(|violation| violation.rule)
    }
}

fn fence(at: u64, ahead: u64) -> u64 {
    BEGINNING + at + ahead
}

#[test]
fn whoever_relies_on_a_name_has_a_majority_for_so_long() {
    let story = |servers: &[(usize, u64)]| Story::default().grant(10, 1, servers);
    let two = || story(&[(0, 0), (1, 0)]);
    assert_eq!(two().believes(20, 1, fence(10, 0), 10 + TTL).breaks(), None);
    assert_eq!(two().believes(20, 1, fence(10, 0), 11 + TTL).breaks(), Some("S4"), "too long");
    assert_eq!(story(&[(0, 0)]).believes(20, 1, fence(10, 0), 10 + TTL).breaks(), Some("S4"), "one of three");
    assert_eq!(two().believes(20, 1, fence(11, 0), 10 + TTL).breaks(), Some("S7"), "a fence of nobody");
}

#[test]
fn no_two_rely_on_a_name_unless_the_server_that_both_had_broke() {
    let both = |befalls: Option<What>| {
        let mut story =
            Story::default().grant(10, 1, &[(0, 0), (1, 0)]).believes(20, 1, fence(10, 0), 10 + TTL);
        if let Some(what) = befalls {
            story = story.at(30, Some(1), 0, what);
        }
        story.grant(40, 2, &[(1, 0), (2, 0)]).believes(50, 2, fence(40, 0), 40 + TTL).breaks()
    };
    assert_eq!(both(None), Some("S1"));
    assert_eq!(both(Some(What::Wiped)), Some("S1"), "it must have been quiet");
    assert_eq!(both(Some(What::ClockStepped(1_000))), Some("S1"), "it is tolerated");
    assert_eq!(both(Some(What::ClockStepped(1_001))), None);
    assert_eq!(both(Some(What::Flushed)), None);
}

#[test]
fn whoever_had_it_is_told_before_the_next() {
    let watched = What::Watched { slot: "a".to_owned(), fence: fence(10, 0) };
    let story = || Story::default().grant(10, 1, &[(0, 0), (1, 0)]).then(20, 1, watched.clone());
    let next = |story: Story| {
        let at = 20 + TTL;
        story.grant(at, 2, &[(1, 0), (2, 0)]).believes(at, 2, fence(at, 0), at + TTL).breaks()
    };
    assert_eq!(next(story()), Some("K1"));
    assert_eq!(next(story().then(30, 1, What::ToldLost { fence: fence(10, 0) })), None);
}

#[test]
fn fences_are_in_order_unless_clocks_are_as_far_apart_as_the_grants() {
    let later = |ahead, at| {
        Story::default()
            .grant(10, 1, &[(0, ahead), (1, 0)])
            .believes(20, 1, fence(10, ahead), 10 + TTL)
            .then(30, 1, What::Closed { fence: fence(10, ahead) })
            .grant(at, 2, &[(1, 0), (2, 0)])
            .believes(at, 2, fence(at, 0), at + TTL)
            .breaks()
    };
    assert_eq!(later(0, 40), None);
    // It is documented: clocks are further apart than the two are.
    assert_eq!(later(5_000, 40), None);
    // A counter that is ahead of its clock.
    let ahead = Story::default().grant(10, 1, &[(0, 0), (1, 0)]).performed(
        12,
        1,
        1,
        BEGINNING + 12,
        vec![Fact::Granted {
            holder: "1".to_owned(),
            slot: "a".to_owned(),
            fence: fence(90_000, 0),
            deadline: fence(12, 0) + TTL,
            max_hold: 0,
            known: false,
        }],
    );
    let next = ahead
        .believes(20, 1, fence(90_000, 0), 10 + TTL)
        .then(30, 1, What::Closed { fence: fence(90_000, 0) })
        .grant(5_000, 2, &[(1, 0), (2, 0)])
        .believes(5_000, 2, fence(5_000, 0), 5_000 + TTL);
    assert_eq!(next.breaks(), Some("F2"));
}

#[test]
fn what_is_given_back_is_soon_free_everywhere() {
    let closed = |told: &[usize]| {
        let calm = Story::default().then(5, 0, What::Calm).grant(10, 1, &[(0, 0), (1, 0), (2, 0)]);
        let renewed = |story: Story, server| {
            let renewed = Fact::Renewed {
                slot: "a".to_owned(),
                fence: fence(10, 0),
                deadline: fence(10, 0) + 4 * SOON,
            };
            story.performed(15, server, 1, BEGINNING + 15, vec![renewed])
        };
        let held = (0..3).fold(calm, renewed);
        let closed = held.then(20, 1, What::Closed { fence: fence(10, 0) });
        let told = told.iter().fold(closed, |story, &server| story.release(30, 1, server, fence(10, 0)));
        told.then(30 + SOON, 9, What::Paused(false)).breaks()
    };
    assert_eq!(closed(&[0, 1, 2]), None);
    assert_eq!(closed(&[0, 1]), Some("R2"));
}

#[test]
fn acquisitions_end_in_time_and_say_what_is_so() {
    let ended = |befalls: &[usize], at, code: &str| {
        let mut story = Story::default();
        for &server in befalls {
            story = story.at(5, Some(server), 0, What::StoreReachable(false));
        }
        let story = story.then(10, 1, What::AcquireBegan { acquire: 1, timeout: 100_000, grace: 0 });
        story.then(at, 1, What::AcquireEnded { acquire: 1, end: Some(Err(code.to_owned())) }).breaks()
    };
    assert_eq!(ended(&[], 100_010, "timed_out"), None);
    assert_eq!(ended(&[], 200_000, "timed_out"), Some("T1"));
    assert_eq!(ended(&[], 100_010, "lost"), Some("T2"));
    assert_eq!(ended(&[0, 1], 100_010, "timed_out"), Some("S7"));
    assert_eq!(ended(&[0, 1], 100_010, "store_unavailable"), None);
    assert_eq!(ended(&[0], 100_010, "timed_out"), None);
    let open = Story::default().then(10, 1, What::AcquireBegan { acquire: 1, timeout: 100_000, grace: 0 });
    assert_eq!(open.breaks(), Some("T1"), "it never ended");
}
