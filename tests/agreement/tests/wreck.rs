//! A right that is taken away while a script runs ends it between two of its writes: some of what it did is kept and
//! some is not. Nothing may then be granted twice, no run may go on for ever, and every slot must come back.

use leasehold::id::SlotId;
use leasehold::nonce::Outcome;
use leasehold::slots::{
    Answer, Choice, Claim, Envelope, LeaseRef, Reply, Request, SlotChange, SlotSpec, Strategy,
};
use leasehold::store::Store;
use leasehold::store::redis::RedisStore;
use leasehold::{Micros, SECOND};
use leasehold_agreement::{Embedded, Random, perform, pool_name, seeds};
use leasehold_embedded::{EmbeddedRedis, Fault};

const TTL: Micros = SECOND;

struct Place {
    transport: Embedded,
    pool: <RedisStore<Embedded> as Store>::Pool,
}

/// The commands with which the script writes.
const WRITES: [&str; 5] = ["ZADD", "HSET", "ZREM", "HDEL", "SET"];

impl Place {
    fn new() -> Self {
        let transport = Embedded::new(EmbeddedRedis::new(SECOND));
        transport.redis().set_time(1_700_000_000 * SECOND);
        let pool = RedisStore::new(transport.clone()).pool(&pool_name("p"));
        Place { transport, pool }
    }

    fn pass(&self, time: Micros) {
        let mut redis = self.transport.redis();
        let now = redis.time();
        redis.set_time(now + time);
    }

    fn ask(&self, seed: u64, requests: Vec<Request>) -> (Micros, Vec<Reply>) {
        let envelope = Envelope { seed: seed as u32, requests, ..Envelope::default() };
        match perform(&self.pool, &envelope).expect("an answer") {
            Answer::Performed(performed) => (performed.now, performed.replies),
            Answer::Stale { .. } => panic!("stale"),
        }
    }

    /// Asks without the right to a command.
    fn ask_without(&self, right: &'static str, seed: u64, requests: Vec<Request>) {
        self.transport.redis().set_fault(Some(Fault::NoRight(right)));
        let envelope = Envelope { seed: seed as u32, requests, ..Envelope::default() };
        if let Err(error) = perform(&self.pool, &envelope) {
            assert!(error.cause.starts_with("NOPERM"), "{error}");
        }
        self.transport.redis().set_fault(None);
    }
}

fn id(number: u64) -> SlotId {
    SlotId::new(&format!("slot-{number}")).expect("an id")
}

fn define(slots: u64, weight: impl Fn(u64) -> u8) -> Request {
    let slots = (0..slots).map(|number| SlotSpec { slot: id(number), weight: weight(number) }).collect();
    Request::Define { slots, longest: TTL, doubt_rest: 0 }
}

fn any(strategy: Strategy, least: u32, most: u32) -> Request {
    let choice = Choice::Any { strategy, least, most };
    Request::Claim(Claim { wait: true, ..Claim::new(choice, 1, TTL) })
}

fn release(lease: LeaseRef) -> Request {
    Request::Release { lease, outcome: Outcome::Unused, cooldown: 0 }
}

const STRATEGIES: [Strategy; 3] = [Strategy::Random, Strategy::LeastRecent, Strategy::Weighted];

fn trace(seed: u64) {
    let mut random = Random::new(seed);
    let place = Place::new();
    let slots = 1 + random.below(6);
    let weights: Vec<u8> = (0..slots).map(|_| random.of(&[1, 1, 3, 8])).collect();
    let definition = || define(slots, |number| weights[number as usize]);
    if random.once_in(3) {
        place.ask_without(random.of(&WRITES), 0, vec![definition()]);
    }
    place.ask(0, vec![definition()]);
    // Leases whose holders have heard of them.
    let mut held: Vec<(LeaseRef, Micros)> = Vec::new();
    for step in 0..60 {
        place.pass(random.below(TTL / 5));
        let mut requests = Vec::new();
        for _ in 0..random.below(3) {
            if !held.is_empty() {
                let at = random.below(held.len() as u64) as usize;
                requests.push(release(held.remove(at).0));
            }
        }
        for _ in 0..random.below(3) {
            let most = 1 + random.below(slots) as u32;
            let least = 1 + random.below(u64::from(most)) as u32;
            requests.push(any(random.of(&STRATEGIES), least, most));
        }
        if random.once_in(4) {
            let choice = Choice::Among { slots: vec![id(random.below(slots))], count: 1 };
            requests.push(Request::Claim(Claim::new(choice, 2, TTL)));
        }
        if random.once_in(6) {
            let specs = vec![SlotSpec { slot: id(random.below(slots)), weight: random.of(&[1, 3, 128]) }];
            requests.push(Request::Define { slots: specs, longest: TTL, doubt_rest: 0 });
        }
        if random.once_in(8) {
            let change =
                random.of(&[SlotChange::Disable, SlotChange::Drain, SlotChange::Quarantine(TTL / 2)]);
            requests.push(Request::Change { slot: id(random.below(slots)), change });
        }
        if random.once_in(4) {
            requests.push(Request::Inspect { slots: vec![] });
        }
        for number in 0..slots {
            if random.once_in(6) {
                requests.push(Request::Change { slot: id(number), change: SlotChange::Enable });
            }
        }
        if requests.is_empty() {
            continue;
        }
        if random.once_in(4) {
            place.ask_without(random.of(&WRITES), random.any(), requests);
            continue;
        }
        let (now, replies) = place.ask(random.any(), requests);
        held.retain(|(_, deadline)| *deadline > now);
        for reply in replies {
            let Reply::Granted(grants) = reply else { continue };
            for grant in grants {
                let twice = held.iter().any(|(lease, _)| lease.slot == grant.slot);
                assert!(!twice, "{} was granted twice at step {step}, LEASEHOLD_SEED={seed}", grant.slot);
                held.push((LeaseRef { slot: grant.slot, fence: grant.fence, place: 0 }, grant.deadline));
            }
        }
    }
    let enable = |number| Request::Change { slot: id(number), change: SlotChange::Enable };
    place.ask(1, (0..slots).map(enable).collect());
    for strategy in STRATEGIES {
        // What is found to be wrong is put right then, and comes back when it would have come due.
        let back = (0..8).any(|round| {
            place.pass(2 * TTL);
            let least = if round % 2 == 0 { 1 } else { slots as u32 };
            let (_, replies) = place.ask(round, vec![any(strategy, least, slots as u32)]);
            matches!(&replies[..], [Reply::Granted(grants)] if grants.len() == slots as usize)
        });
        assert!(back, "not all of {slots} slots come back by {strategy:?}, LEASEHOLD_SEED={seed}");
    }
}

#[test]
fn nothing_is_granted_twice_and_everything_comes_back() {
    seeds(400).for_each(trace);
}

/// The order says that a leased slot is the next, before one that is ready.
#[test]
fn a_claim_that_finds_the_order_wrong_looks_again_from_its_beginning() {
    let place = Place::new();
    place.ask(0, vec![define(2, |_| 1)]);
    let (_, replies) = place.ask(0, vec![any(Strategy::LeastRecent, 2, 2)]);
    let [Reply::Granted(grants)] = &replies[..] else { panic!("{replies:?}") };
    let lease = |at: usize| LeaseRef { slot: grants[at].slot.clone(), fence: grants[at].fence, place: 0 };
    place.ask_without("HSET", 0, vec![release(lease(0))]);
    place.ask(0, vec![release(lease(1))]);
    let (_, replies) = place.ask(0, vec![any(Strategy::LeastRecent, 1, 1)]);
    let [Reply::Granted(others)] = &replies[..] else { panic!("{replies:?}") };
    assert_eq!(others[0].slot, grants[1].slot);
}

/// The holder gave its slot back, and the count of ready slots was not written.
#[test]
fn a_slot_that_is_not_counted_is_found() {
    for right in WRITES {
        let place = Place::new();
        place.ask(0, vec![define(1, |_| 1)]);
        let (_, replies) = place.ask(0, vec![any(Strategy::Random, 1, 1)]);
        let [Reply::Granted(grants)] = &replies[..] else { panic!("{replies:?}") };
        let lease = LeaseRef { slot: grants[0].slot.clone(), fence: grants[0].fence, place: 0 };
        place.ask_without(right, 0, vec![release(lease)]);
        place.pass(2 * TTL);
        place.ask(0, vec![any(Strategy::Random, 1, 1)]);
        place.pass(2 * TTL);
        let (_, replies) =
            place.ask(0, vec![any(Strategy::Random, 1, 1), Request::Inspect { slots: vec![] }]);
        assert!(matches!(&replies[..], [Reply::Granted(_), _]), "{right}: {replies:?}");
    }
}

/// A slot that left went, and that it leaves no more was not written: it keeps nobody from waiting for all that there are.
#[test]
fn what_left_is_counted_no_more() {
    for right in WRITES {
        let place = Place::new();
        place.ask(0, vec![define(3, |_| 1)]);
        let (_, replies) = place.ask(0, vec![any(Strategy::LeastRecent, 3, 3)]);
        let [Reply::Granted(grants)] = &replies[..] else { panic!("{replies:?}") };
        let [gone, second, third] =
            [0, 1, 2].map(|at| LeaseRef { slot: grants[at].slot.clone(), fence: grants[at].fence, place: 0 });
        place.ask(0, vec![Request::Change { slot: gone.slot.clone(), change: SlotChange::Drain }]);
        place.ask_without(right, 0, vec![release(gone.clone())]);
        place.ask(0, vec![release(gone), any(Strategy::Random, 2, 2)]);
        place.ask(0, vec![release(second), release(third)]);
        let mut later = Claim::new(Choice::Any { strategy: Strategy::Random, least: 1, most: 1 }, 2, TTL);
        later.wait = true;
        let (_, replies) = place.ask(0, vec![Request::Claim(later)]);
        assert!(matches!(&replies[..], [Reply::Refused { .. }]), "{right}: both are kept for who came first");
    }
}

/// The pool was opened by a user who lacked a right, and again when he had it.
#[test]
fn a_pool_whose_definition_died_is_made_when_it_is_defined_again() {
    for right in WRITES {
        let place = Place::new();
        place.ask_without(right, 0, vec![define(3, |number| 1 + 7 * number as u8)]);
        place.ask(0, vec![define(3, |number| 1 + 7 * number as u8)]);
        for strategy in STRATEGIES {
            let (_, replies) = place.ask(0, vec![any(strategy, 1, 1)]);
            assert!(matches!(&replies[..], [Reply::Granted(_)]), "{right}: {replies:?}");
        }
    }
}
