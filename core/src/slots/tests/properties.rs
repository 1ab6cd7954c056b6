//! Random traces: the machine answers as the naive model does, and nothing that it says is unsafe.

use proptest::prelude::*;

use super::model::Model;
use super::oracle::Oracle;
use super::scene::{START, TTL, id};
use crate::id::SlotId;
use crate::nonce::Outcome;
use crate::slots::{
    Answer, Choice, Claim, Envelope, Lane, LeaseRef, Moment, Pool, Reply, Request, SlotChange, SlotSpec,
    Strategy as Draws, TO_THE_END,
};
use crate::{MILLISECOND, Micros, SECOND};

const SLOTS: u8 = 6;
/// No lease of a trace lives longer, so that the definition covers all.
const TTLS: [Micros; 4] = [SECOND, 5 * SECOND, 20 * SECOND, TTL];

#[derive(Clone, Debug)]
struct Step {
    pass: Micros,
    event: Event,
    asks: Vec<Ask>,
    seed: u32,
    /// Whether the client shows the highest fence that it has heard of.
    shows: bool,
    numbered: bool,
    /// Whether the envelope is delivered once more afterwards.
    doubled: bool,
}

#[derive(Clone, Debug)]
enum Event {
    None,
    Back(Micros),
    Forward(Micros),
    Jumped,
    /// The data is copied, as to a replica.
    Copy,
    /// The copy takes over.
    Promote,
    Restart,
    /// All is lost.
    Wipe,
    /// The same while the server runs, and somebody who has seen nothing of the pool defines it anew.
    Flush,
}

#[derive(Clone, Debug)]
enum Ask {
    Any { draws: Draws, least: u32, more: u32, ttl: usize, max_hold: Micros, who: Who },
    Among { slots: Vec<u8>, count: u32, ttl: usize, who: Who },
    Named { slots: Vec<u8>, ttl: usize, who: Who },
    Free { slots: Vec<u8>, least: u32, more: u32, late: Option<Micros>, ttl: usize, who: Who },
    Withdraw { holder: u128 },
    Renew { lease: usize, ttl: usize, tamper: u64 },
    Release { lease: usize, outcome: Ending, cooldown: Micros },
    Resync { lease: usize, chain: Near, rewind: bool, settle: Micros },
    Define { slots: Vec<(u8, u8)>, doubt_rest: Micros },
    Change { slot: u8, change: SlotChange },
    List,
}

/// Who asks, how urgently, and whether they wait.
#[derive(Clone, Copy, Debug)]
struct Who {
    holder: u128,
    priority: i16,
    ageing: Micros,
    wait: bool,
    waited: Micros,
    steal: Option<Micros>,
}

/// A nonce near the one that the record says, or near a power of two where numbers lose digits.
#[derive(Clone, Copy, Debug)]
enum Near {
    Record(i64),
    Power(u32, i64),
}

#[derive(Clone, Copy, Debug)]
enum Ending {
    Used(Near),
    Rejected(Option<Near>),
    Unused,
    Unknown(Option<Near>),
    Unsettled,
}

fn nonces() -> impl Strategy<Value = Near> {
    prop_oneof![
        6 => (-3i64..6).prop_map(Near::Record),
        1 => (prop::sample::select(vec![53, 63, 64]), -2i64..3).prop_map(|(power, off)| Near::Power(power, off)),
    ]
}

fn who() -> impl Strategy<Value = Who> {
    let ageing = prop::sample::select(vec![0, 0, SECOND]);
    let priority = prop::sample::select(vec![0, 0, 1, -1, i16::MAX, i16::MIN]);
    let waited = prop::sample::select(vec![0, 0, 1, 3 * SECOND]);
    let steal = prop::sample::select(vec![None, Some(TO_THE_END), Some(SECOND), Some(3 * SECOND)]);
    (holders(), priority, ageing, prop::bool::weighted(0.7), waited, steal).prop_map(
        |(holder, priority, ageing, wait, waited, steal)| Who {
            holder,
            priority,
            ageing,
            wait,
            waited,
            steal,
        },
    )
}

/// Some of one process, some of another, and some that do not say.
fn holders() -> impl Strategy<Value = u128> {
    (0..6u128).prop_map(|number| (number % 3) << 64 | number)
}

fn asks() -> impl Strategy<Value = Ask> {
    let draws = prop::sample::select(vec![Draws::Random, Draws::LeastRecent, Draws::Weighted]);
    let rest = || prop::sample::select(vec![0, 0, SECOND, 7 * SECOND]);
    let ending = prop_oneof![
        4 => nonces().prop_map(Ending::Used),
        1 => prop::option::of(nonces()).prop_map(Ending::Rejected),
        2 => Just(Ending::Unused),
        1 => prop::option::of(nonces()).prop_map(Ending::Unknown),
        1 => Just(Ending::Unsettled),
    ];
    let change = prop_oneof![
        3 => Just(SlotChange::Enable),
        1 => Just(SlotChange::Disable),
        1 => Just(SlotChange::Drain),
        1 => Just(SlotChange::Remove),
        1 => (1..20u64).prop_map(|time| SlotChange::Quarantine(time * SECOND)),
        1 => Just(SlotChange::Break),
    ];
    let slot = || 0..SLOTS;
    prop_oneof![
        5 => (draws, 1..4u32, 0..3u32, 0..TTLS.len(), prop::sample::select(vec![0, 0, 10 * SECOND]), who())
            .prop_map(|(draws, least, more, ttl, max_hold, who)| Ask::Any { draws, least, more, ttl, max_hold, who }),
        5 => (prop::collection::vec(slot(), 1..4), 1..4u32, 0..TTLS.len(), who())
            .prop_map(|(slots, count, ttl, who)| Ask::Among { slots, count, ttl, who }),
        2 => (prop::collection::vec(slot(), 1..4), 0..TTLS.len(), who())
            .prop_map(|(slots, ttl, who)| Ask::Named { slots, ttl, who }),
        2 => (prop::collection::vec(slot(), 1..5), 1..3u32, 0..4u32, prop::option::of(prop_oneof![Just(0), 0..9 * SECOND]), 0..TTLS.len(), who())
            .prop_map(|(slots, least, more, late, ttl, who)| Ask::Free { slots, least, more, late, ttl, who }),
        1 => holders().prop_map(|holder| Ask::Withdraw { holder }),
        2 => (0..9usize, 0..TTLS.len(), prop_oneof![9 => Just(0), 1 => 0..5u64])
            .prop_map(|(lease, ttl, tamper)| Ask::Renew { lease, ttl, tamper }),
        5 => (0..9usize, ending, rest())
            .prop_map(|(lease, outcome, cooldown)| Ask::Release { lease, outcome, cooldown }),
        3 => (0..9usize, nonces(), any::<bool>(), rest())
            .prop_map(|(lease, chain, rewind, settle)| Ask::Resync { lease, chain, rewind, settle }),
        1 => (prop::collection::vec((slot(), prop::sample::select(vec![1, 1, 2, 3, 90, 255])), 0..5), rest())
            .prop_map(|(slots, doubt_rest)| Ask::Define { slots, doubt_rest }),
        2 => (slot(), change).prop_map(|(slot, change)| Ask::Change { slot, change }),
        1 => Just(Ask::List),
    ]
}

fn steps() -> impl Strategy<Value = Step> {
    let event = prop_oneof![
        40 => Just(Event::None),
        2 => (1..40u64).prop_map(|time| Event::Back(time * SECOND)),
        1 => (1..40u64).prop_map(|time| Event::Forward(time * SECOND)),
        1 => Just(Event::Jumped),
        2 => Just(Event::Copy),
        1 => Just(Event::Promote),
        1 => Just(Event::Restart),
        1 => Just(Event::Wipe),
        1 => Just(Event::Flush),
    ];
    let pass = prop_oneof![
        3 => Just(0),
        3 => 1..SECOND,
        2 => SECOND..12 * SECOND,
        1 => Just(TTL),
    ];
    let flags = (any::<u32>(), any::<bool>(), any::<bool>(), prop::bool::weighted(0.2));
    (pass, event, prop::collection::vec(asks(), 1..4), flags).prop_map(
        |(pass, event, asks, (seed, shows, numbered, doubled))| Step {
            pass,
            event,
            asks,
            seed,
            shows,
            numbered,
            doubled,
        },
    )
}

/// A machine and its model on one server.
#[derive(Clone, Default)]
struct Pair {
    pool: Pool,
    model: Model,
}

impl Pair {
    fn apply(&mut self, moment: Moment<'_>, envelope: &Envelope) -> Answer {
        let answer = self.pool.apply(moment, envelope);
        assert_eq!(
            self.model.answer(moment, envelope, &answer, &self.pool.handed),
            answer,
            "the model's answer is the left one"
        );
        answer
    }
}

#[derive(Default)]
struct Trace {
    pair: Pair,
    copy: Pair,
    oracle: Oracle,
    passed: Micros,
    offset: i64,
    up_since: Micros,
    incarnation: u32,
    /// Leases as their holders know them, and the nonce that a record near them had.
    leases: Vec<(LeaseRef, u64)>,
    sequence: u64,
    /// The highest fence that the store told of.
    seen: u64,
    /// The store fell back, and no client has shown a fence since.
    must_show: bool,
    /// The store fell back at least once.
    fallen: bool,
    /// Whether thieves may wait for less than the whole lease: two can think then that they hold a slot.
    hasty: bool,
}

fn slot(number: u8) -> SlotId {
    id(&format!("s{number}"))
}

fn all() -> Vec<SlotId> {
    (0..SLOTS).map(slot).collect()
}

fn definition() -> Request {
    let slots = (0..SLOTS).map(|number| SlotSpec { slot: slot(number), weight: number + 1 }).collect();
    Request::Define { slots, longest: TTL, doubt_rest: 0 }
}

fn near(near: Near, record: u64) -> u64 {
    match near {
        Near::Record(off) => record.saturating_add_signed(off),
        Near::Power(64, off) => u64::MAX.saturating_add_signed(off.min(0)),
        Near::Power(power, off) => (1u64 << power).saturating_add_signed(off),
    }
}

fn claim(choice: Choice, who: Who, ttl: usize, max_hold: Micros) -> Request {
    let Who { holder, priority, ageing, wait, waited, steal } = who;
    Request::Claim(Claim { choice, holder, ttl: TTLS[ttl], max_hold, wait, priority, ageing, waited, steal })
}

fn named(numbers: &[u8]) -> Vec<SlotId> {
    numbers.iter().map(|&number| slot(number)).collect()
}

impl Trace {
    fn wall(&self) -> Micros {
        (START + self.passed).saturating_add_signed(self.offset)
    }

    fn lease(&self, back: usize) -> (LeaseRef, u64) {
        let nobody = || (LeaseRef { slot: slot(0), fence: 1, place: 0 }, 0);
        let at = self.leases.len().checked_sub(1 + back);
        at.map_or_else(nobody, |at| self.leases[at].clone())
    }

    fn request(&self, ask: &Ask) -> Request {
        match ask {
            &Ask::Any { draws, least, more, ttl, max_hold, who } => {
                let choice = Choice::Any { strategy: draws, least, most: least + more };
                claim(choice, who, ttl, max_hold)
            }
            Ask::Among { slots, count, ttl, who } => {
                let count = (*count).min(slots.len() as u32);
                claim(Choice::Among { slots: named(slots), count }, *who, *ttl, 0)
            }
            Ask::Named { slots, ttl, who } => claim(Choice::Named { slots: named(slots) }, *who, *ttl, 0),
            Ask::Free { slots, least, more, late, ttl, who } => {
                let asked = late.map_or(0, |late| self.pair.model.now().saturating_sub(late));
                let choice = Choice::Free { slots: named(slots), least: *least, most: least + more, asked };
                claim(choice, *who, *ttl, 0)
            }
            &Ask::Withdraw { holder } => Request::Withdraw { holder },
            &Ask::Renew { lease, ttl, tamper } => {
                let mut lease = self.lease(lease).0;
                lease.fence += tamper;
                Request::Renew { lease, ttl: TTLS[ttl] }
            }
            &Ask::Release { lease, outcome, cooldown } => {
                let (lease, record) = self.lease(lease);
                let outcome = match outcome {
                    Ending::Used(next) => Outcome::Used { next: near(next, record) },
                    Ending::Rejected(expected) => {
                        Outcome::Rejected { expected: expected.map(|expected| near(expected, record)) }
                    }
                    Ending::Unused => Outcome::Unused,
                    Ending::Unknown(used) => Outcome::Unknown { used: used.map(|used| near(used, record)) },
                    Ending::Unsettled => Outcome::Unsettled,
                };
                Request::Release { lease, outcome, cooldown }
            }
            &Ask::Resync { lease, chain, rewind, settle } => {
                let (lease, record) = self.lease(lease);
                Request::Resync { lease, chain: near(chain, record), rewind, settle }
            }
            Ask::Define { slots, doubt_rest } => Request::Define {
                slots: slots
                    .iter()
                    .map(|&(number, weight)| SlotSpec { slot: slot(number), weight })
                    .collect(),
                longest: TTL,
                doubt_rest: *doubt_rest,
            },
            &Ask::Change { slot: number, change } => Request::Change { slot: slot(number), change },
            Ask::List => Request::List,
        }
    }

    fn happen(&mut self, event: &Event) -> bool {
        match *event {
            Event::None => {}
            Event::Back(time) => self.offset -= time as i64,
            Event::Forward(time) => {
                self.offset += time as i64;
                // Unnoticed, it would end the quiet time of a store that fell back: two faults at once.
                return self.fallen;
            }
            Event::Jumped => return true,
            Event::Copy => self.copy = self.pair.clone(),
            Event::Promote => {
                self.pair = self.copy.clone();
                self.incarnation += 1;
                self.fell_back();
            }
            Event::Restart => self.incarnation += 1,
            Event::Wipe => {
                (self.pair, self.copy) = (Pair::default(), Pair::default());
                self.incarnation += 1;
                self.up_since = self.wall();
                self.fell_back();
            }
            Event::Flush => {
                (self.pair, self.copy) = (Pair::default(), Pair::default());
                // What is begun anew in the microsecond of the last fence is not told from what it was before.
                self.passed += MILLISECOND;
                let seen = self.seen;
                self.deliver(&Envelope { requests: vec![definition()], ..Envelope::default() });
                self.seen = seen;
                self.fell_back();
            }
        }
        false
    }

    /// As a server reckons it, from how long it has been up: by a clock that was set back it is not to come.
    fn up_since(&self) -> Micros {
        self.up_since.min(self.wall())
    }

    fn fell_back(&mut self) {
        self.oracle.store_fell_back();
        (self.must_show, self.fallen) = (true, true);
    }

    fn step(&mut self, step: &Step) {
        self.passed += step.pass;
        let jumped = self.happen(&step.event);
        let mut requests: Vec<_> = step.asks.iter().map(|ask| self.request(ask)).collect();
        for request in requests.iter_mut().filter(|_| !self.hasty) {
            if let Request::Claim(Claim { steal: Some(patience), .. }) = request {
                *patience = TO_THE_END;
            }
        }
        requests.push(Request::Inspect { slots: all() });
        let lane = step.numbered.then(|| {
            self.sequence += 1;
            Lane { client: 1, number: 0, sequence: self.sequence }
        });
        let seen = if step.shows || self.must_show { self.seen } else { 0 };
        let envelope = Envelope { lane, not_after: None, seen, jumped, seed: step.seed, requests };
        if self.deliver(&envelope) == Some(Reply::Undefined) {
            let requests = vec![definition()];
            // A client that has seen nothing defines a lost pool as if it were new: then the server's
            // start has to tell.
            self.deliver(&Envelope { lane: None, requests, ..envelope.clone() });
        }
        if step.doubled && lane.is_some() {
            let incarnation = self.incarnation.to_string();
            let moment = Moment { wall: self.wall(), incarnation: &incarnation, up_since: self.up_since() };
            self.pair.apply(moment, &envelope);
        }
    }

    /// The first reply.
    fn deliver(&mut self, envelope: &Envelope) -> Option<Reply> {
        let incarnation = self.incarnation.to_string();
        let moment = Moment { wall: self.wall(), incarnation: &incarnation, up_since: self.up_since() };
        let Answer::Performed(performed) = self.pair.apply(moment, envelope) else { return None };
        if performed.replies.first() != Some(&Reply::Undefined) {
            self.must_show = false;
            self.seen = self.seen.max(performed.top);
            self.oracle.hear(self.passed, &envelope.requests, &performed);
        }
        for reply in &performed.replies {
            let (Reply::Granted(grants) | Reply::Partly { grants, .. }) = reply else { continue };
            for grant in grants {
                let lease = LeaseRef { slot: grant.slot.clone(), fence: grant.fence, place: grant.place };
                self.leases.push((lease, grant.nonce.floor().unwrap_or(5)));
            }
        }
        performed.replies.into_iter().next()
    }
}

/// How many traces: `LEASEHOLD_ROUNDS`, if it is set.
fn rounds() -> u32 {
    std::env::var("LEASEHOLD_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(400)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: rounds(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_machine_answers_as_the_model_and_says_nothing_unsafe(
        steps in prop::collection::vec(steps(), 1..120),
        hasty in any::<bool>(),
    ) {
        let mut trace = Trace { hasty, ..Trace::default() };
        for step in &steps {
            trace.step(step);
        }
    }
}
