//! Histories by hand that the checker must refuse: what no script can be made to do, as it is the client's.

use leasehold::slots::TO_THE_END;
use leasehold_simulation::census::Census;
use leasehold_simulation::checker::{Rules, judge};
use leasehold_simulation::history::{Bid, Event, Fact, Performance, What, Wish};
use leasehold_simulation::world::ProcessId;

const TTL: u64 = 1_000_000;
/// Within how long a holder hears that somebody claims its lease.
const PROMPT: u64 = 50_000;

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
        self.believes_under(at, process, slot, 8, until)
    }

    fn believes_under(self, at: u64, process: ProcessId, slot: &str, fence: u64, until: u64) -> Self {
        self.then(at, process, What::Believes { slot: slot.to_owned(), fence, until })
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
        let rules = Rules {
            ttl: TTL,
            response_timeout: TTL,
            doubt_rest: 0,
            accounts: Vec::new(),
            mixed: false,
            workers: 1,
            drift: false,
            patience: TTL / 2,
            prompt: Some(PROMPT),
        };
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
        steal: None,
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

// Where the store's clock was set back, who was told of a claimant seemed to rely on its lease for too long.
#[test]
fn a_claimed_lease_lasts_as_long_as_the_store_says_by_its_clock_of_then() {
    let claimed = Fact::Claimed { slot: "b".to_owned(), fence: 8, deadline: 10 + TTL };
    let answer = || Performance { now: 400, facts: vec![claimed.clone()], ..Performance::default() };
    let thief = Bid { priority: 1, steal: Some(TO_THE_END), ..bid("2", &["b"]) };
    let claims = || Fact::Refused { bid: thief.clone(), why: "claimed".to_owned() };
    let called = || Fact::Called { fences: vec![8] };
    let story = || Story::locked().believes(20, 1, "b", 10 + TTL).store(30, vec![claims(), called()]);
    let told = || story().then(500, 0, What::Performed(answer()));
    assert_eq!(story().believes(510, 1, "b", 110 + TTL).breaks(), Some("S4"));
    assert_eq!(told().believes(510, 1, "b", 110 + TTL).breaks(), None);
    assert_eq!(told().believes(510, 1, "b", 111 + TTL).breaks(), Some("S4"));
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
    // Whoever of those that share it gives back its part hears no more; the others do.
    let left = || What::Unwatched { fence: 8 };
    assert_eq!(story().then(30, 1, left()).store(20 + TTL, grant()).breaks(), None);
    assert_eq!(story().then(30, 2, left()).store(20 + TTL, grant()).breaks(), Some("K1"));
    let two = || story().then(20, 1, watched("a")).then(30, 1, left());
    assert_eq!(two().store(20 + TTL, grant()).breaks(), Some("K1"));
    assert_eq!(two().then(30, 1, left()).store(20 + TTL, grant()).breaks(), None);
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
    let again = |at| Story::locked().store(at, vec![Fact::Served(bid("2", &["a"])), second_grant(at)]);
    assert_eq!(then(again(19_500_000), calm(20_000_000)).breaks(), Some("A2"), "it is held");
    let waiting = waits(19_000_000, again(18_900_000));
    assert_eq!(then(waiting, calm(20_000_000)).breaks(), Some("A2"), "it waits");
    let left = |records: &[&str]| What::LeftBehind(records.iter().map(|&record| record.to_owned()).collect());
    assert_eq!(Story::locked().then(20_000_000, 0, left(&[])).breaks(), None);
    assert_eq!(Story::locked().then(20_000_000, 0, left(&["HKEYS a"])).breaks(), Some("N2"));
}

/// Somebody of higher priority waits for `a`, which is locked under 7, and takes it from its holder after a quarter.
fn robbed() -> Story {
    let thief = || Bid { priority: 1, steal: Some(TTL / 4), ..bid("2", &["a"]) };
    let claimed = Fact::Refused { bid: thief(), why: "claimed".to_owned() };
    let held = Story::locked().believes(20, 1, "a", 10 + TTL);
    held.store(30, vec![claimed, Fact::Called { fences: vec![7] }])
}

fn granted_at(at: u64) -> Vec<Fact> {
    let thief = Bid { priority: 1, steal: Some(TTL / 4), ..bid("2", &["a"]) };
    vec![Fact::Offered { holder: "2".to_owned() }, Fact::Served(thief), second_grant(at)]
}

/// The second holder has `a` from this time on.
fn second_grant(at: u64) -> Fact {
    Fact::Granted {
        holder: "2".to_owned(),
        slot: "a".to_owned(),
        fence: 9,
        deadline: at + TTL,
        max_hold: 0,
        known: false,
    }
}

#[test]
fn a_thief_may_meet_whom_it_robbed_when_its_patience_is_over_and_it_still_waits() {
    let early = 29 + TTL / 4;
    let late = 30 + TTL / 4;
    let met = |at| {
        robbed().store(at, granted_at(at)).then(
            at,
            2,
            What::Believes { slot: "a".to_owned(), fence: 9, until: at + TTL },
        )
    };
    assert_eq!(met(late).breaks(), None);
    assert_eq!(met(early).breaks(), Some("S1"), "too soon");
    let gone = robbed().store(40, vec![Fact::Withdrawn { holder: "2".to_owned() }]);
    let other = Fact::Granted {
        holder: "3".to_owned(),
        slot: "a".to_owned(),
        fence: 9,
        deadline: late + TTL,
        max_hold: 0,
        known: false,
    };
    let next = gone.store(late, vec![Fact::Served(bid("3", &["a"])), other]);
    assert_eq!(next.breaks(), Some("S1"), "the thief has gone");
}

#[test]
fn who_hears_that_it_is_claimed_relies_on_it_no_longer_than_its_claimant_lets_it() {
    let ends = 30 + TTL / 4;
    let told = |fence| {
        let said = Fact::Claimed { slot: "a".to_owned(), fence: 7, deadline: ends };
        robbed().store(35, vec![said]).then(38, 1, What::ToldClaimed { fence })
    };
    let believes = |story: Story, until| {
        story.then(40, 1, What::Believes { slot: "a".to_owned(), fence: 7, until }).breaks()
    };
    assert_eq!(believes(told(7), ends), None);
    assert_eq!(believes(told(7), ends + 1), Some("S4"));
    assert_eq!(believes(robbed(), 10 + TTL), None, "it does not know");
}

#[test]
fn who_listens_hears_of_its_claimant_in_time() {
    let claimed = Fact::Refused {
        bid: Bid { priority: 1, steal: Some(TTL / 4), ..bid("2", &["a"]) },
        why: "claimed".to_owned(),
    };
    let claimed = || vec![claimed.clone(), Fact::Called { fences: vec![7] }];
    let story = || {
        let watched = What::Watched { slot: "a".to_owned(), fence: 8 };
        Story::locked().then(20, 1, watched).store(30, claimed())
    };
    let later = |story: Story| story.then(31 + PROMPT, 3, What::Paused(false)).breaks();
    assert_eq!(later(story()), Some("K3"));
    assert_eq!(later(story().then(40, 1, What::ToldClaimed { fence: 8 })), None);
    assert_eq!(later(story().then(40, 1, What::Closed { fence: 8 })), None, "it has let go");
    assert_eq!(later(story().then(40, 1, What::Unwatched { fence: 8 })), None, "it has let go of its part");
    assert_eq!(later(story().then(40, 1, What::Paused(true))), None, "it stands");
    let uncalled = Story::locked().store(30, claimed()[..1].to_vec());
    assert_eq!(uncalled.breaks(), Some("K3"), "nobody is called");
    let equal = Fact::Refused { bid: Bid { steal: Some(1), ..bid("2", &["a"]) }, why: "claimed".to_owned() };
    assert_eq!(Story::locked().store(30, vec![equal]).breaks(), Some("S6"), "an equal");
}

#[test]
fn after_keys_were_deleted_nothing_is_granted_once_somebody_has_told_of_it() {
    let flushed = || {
        let story = Story::locked().believes(20, 1, "a", 10 + TTL).then(30, 0, What::Flushed);
        story.store(40, vec![Fact::Defined { slots: Vec::new(), longest: TTL }])
    };
    let grant = |at| vec![Fact::Served(bid("2", &["a"])), second_grant(at)];
    let met = |story: Story, at| story.store(at, grant(at)).believes_under(at, 2, "a", 9, at + TTL).breaks();
    let told = || {
        let done = Performance { now: 50, top: 8, seen: 8, ..Performance::default() };
        flushed().then(50, 1, What::Performed(done))
    };
    assert_eq!(met(flushed(), 60), None, "nobody can know");
    assert_eq!(met(told(), 60), Some("S11"));
    assert_eq!(met(told(), 29 + TTL), Some("S11"));
    assert_eq!(met(told(), 30 + TTL), None);
    // Before there is a pool, nobody can tell.
    let done = Performance { now: 35, seen: 8, ..Performance::default() };
    let early = Story::locked().then(30, 0, What::Flushed).then(35, 1, What::Performed(done));
    assert_eq!(met(early.store(40, vec![Fact::Defined { slots: Vec::new(), longest: TTL }]), 60), None);
}

#[test]
fn who_has_heard_of_longer_leases_tells_a_store_that_lost_its_memory() {
    let lane = |handle| Some((format!("{handle}:0"), 1));
    let defines = |handle, longest, sent| {
        let facts = vec![Fact::Defined { slots: Vec::new(), longest }];
        What::Performed(Performance {
            now: sent,
            sent,
            envelope: lane(handle),
            facts,
            ..Performance::default()
        })
    };
    let heard = |handle: &str, performed| What::Heard { handle: handle.to_owned(), performed };
    let long =
        || Story::default().then(10, 1, defines("long", TTL, 10)).then(20, 2, defines("short", TTL / 2, 20));
    let told = |story: Story| story.then(25, 2, heard("short", 20));
    let lost = |story: Story| story.then(5 * TTL, 0, What::Wiped);
    let later = 5 * TTL + 40;
    let short = || defines("short", TTL / 2, later);
    assert_eq!(lost(long()).then(later, 2, short()).breaks(), None, "it has not heard");
    assert_eq!(lost(told(long())).then(later, 2, short()).breaks(), Some("S11"));
    let early = || told(long()).then(26, 2, defines("short", TTL / 2, 24));
    assert_eq!(early().breaks(), None, "made before it heard");
    // Who is asked in the end, and knows of longer ones, has told of them.
    let end = 10 * TTL;
    let calm = |story: Story| story.then(end, 0, What::Calm).then(end + 10, 1, heard("long", end));
    assert_eq!(calm(lost(long()).then(later, 2, short())).breaks(), Some("S11"));
    let reminded = lost(long()).then(later, 2, short()).then(later + 5, 1, defines("long", TTL, later + 5));
    assert_eq!(calm(reminded).breaks(), None);
    // Who is granted a lease has told of one as long.
    let granted = Performance {
        now: 20,
        envelope: lane("long"),
        facts: vec![second_grant(20)],
        ..Performance::default()
    };
    let told_of = |longest| {
        Story::default().then(10, 1, defines("long", longest, 10)).then(
            20,
            1,
            What::Performed(granted.clone()),
        )
    };
    assert_eq!((told_of(TTL - 1).breaks(), told_of(TTL).breaks()), (Some("S11"), None));
    // And what may be held is not granted before.
    let grants = |at| {
        let facts = vec![Fact::Served(bid("2", &["a"])), second_grant(at)];
        let story = lost(told(long())).then(later, 2, defines("short", TTL, later));
        story.store(at, facts).believes_under(at, 2, "a", 9, at + TTL).breaks()
    };
    assert_eq!(grants(6 * TTL - 1), Some("S11"));
    assert_eq!(grants(6 * TTL), None);
}

#[test]
fn resources_take_no_late_write() {
    let wrote = |fence, accepted| What::Wrote { slot: "a".to_owned(), fence, accepted };
    let story = |second| Story::default().then(10, 0, wrote(8, true)).then(20, 0, second);
    assert_eq!(story(wrote(7, false)).breaks(), None);
    assert_eq!(story(wrote(7, true)).breaks(), Some("F1"));
    assert_eq!(story(wrote(9, false)).breaks(), Some("F1"));
}
