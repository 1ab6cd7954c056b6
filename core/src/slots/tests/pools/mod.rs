//! Every state that two clients can bring a pool of two accounts into, with their nonces, over a network that loses,
//! delays and doubles what they ask: none of them breaks a rule (S1 to S5, S7, S10), and from each of them both accounts
//! can be had again and signed with.
//!
//! Time goes in ticks. All is counted from now and from what the chain expects, so that the states come to an end.

use std::collections::VecDeque;

use rustc_hash::FxHashSet;

use self::world::{Step, World};
use crate::Micros;
use crate::nonce::{NonceRecord, Outcome};
use crate::slots::{Envelope, Pool, Request, VALIDITY};

mod account;
mod world;

const TICK: Micros = VALIDITY;
const TTL: Micros = 2 * TICK;
const HOLD: Micros = 3 * TICK;
/// What is signed arrives before so long, or never.
const FLIGHT: Micros = TICK;
/// As long as what was signed can be under way.
const DOUBT_REST: Micros = FLIGHT;

/// What is played.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    /// One or two.
    accounts: usize,
    /// Whether anybody knows nonces and signs with them.
    signs: bool,
    /// How many clients are never sure that what they ask arrives, or arrives once.
    unsure: usize,
    /// Whether somebody takes an account out of the pool, and puts it back.
    administrated: bool,
    /// Whether a lease is signed with twice.
    series: bool,
    /// Whether renewals have an end.
    bounded: bool,
    fault: Fault,
}

const TWO: Bounds = Bounds {
    accounts: 2,
    signs: true,
    unsure: 0,
    administrated: false,
    series: false,
    bounded: false,
    fault: Fault::None,
};
const ONE: Bounds = Bounds { accounts: 1, ..TWO };

/// A bug in the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Whoever names a slot has its lease.
    NoFences,
    /// What comes again is performed again.
    NoLanes,
    /// What comes late is performed.
    NoLastMoment,
    /// What ended without a word leaves its nonce known.
    NoDoubt,
    /// What is in doubt is handed out at once.
    NoRest,
    /// What nobody is sure of was not used.
    UnknownIsUnused,
    /// Renewals have no end.
    NoHold,
}

impl Fault {
    /// What it makes of a request.
    fn alter(self, pool: &Pool, envelope: &mut Envelope) {
        match self {
            Fault::NoLastMoment => envelope.not_after = None,
            Fault::NoFences | Fault::UnknownIsUnused | Fault::NoHold => {}
            _ => return,
        }
        for request in &mut envelope.requests {
            match request {
                Request::Claim(claim) if self == Fault::NoHold => claim.max_hold = 0,
                Request::Renew { lease, .. }
                | Request::Release { lease, .. }
                | Request::Resync { lease, .. }
                    if self == Fault::NoFences =>
                {
                    let slot = pool.find(&lease.slot).and_then(|place| pool.slots.get(place as usize));
                    lease.fence = slot.map_or(0, |slot| slot.fence);
                }
                Request::Release { outcome, .. }
                    if self == Fault::UnknownIsUnused && *outcome == (Outcome::Unknown { used: None }) =>
                {
                    *outcome = Outcome::Unused;
                }
                _ => {}
            }
        }
    }

    /// What it makes of the pool.
    fn befall(self, pool: &mut Pool) {
        match self {
            Fault::NoLanes => pool.lanes = Default::default(),
            Fault::NoRest => pool.quiet_time.doubt_rest = 0,
            Fault::NoDoubt => {
                // As it is granted: nothing else looks at it.
                for slot in &mut pool.slots {
                    if let NonceRecord::InDoubt { floor: Some(floor) } = slot.nonce {
                        slot.nonce = NonceRecord::Known(floor);
                    }
                }
            }
            _ => {}
        }
    }
}

/// Goes through all states; how many there are, or how a rule was broken.
fn explore(bounds: Bounds) -> Result<usize, String> {
    let steps = World::steps(bounds);
    // How each state was come to first: from which, and by which step.
    let mut ways: Vec<(usize, Option<Step>)> = vec![(0, None)];
    let mut known = FxHashSet::from_iter([World::new(bounds).key()]);
    let mut open = VecDeque::from([(0, World::new(bounds))]);
    while let Some((from, world)) = open.pop_front() {
        for &step in &steps {
            let mut next = world.clone();
            let broken = match next.take(step) {
                Ok(false) => continue,
                Ok(true) => {
                    if !known.insert(next.key()) {
                        continue;
                    }
                    next.check().err()
                }
                Err(broken) => Some(broken),
            };
            ways.push((from, Some(step)));
            if let Some(broken) = broken {
                return Err(format!("{broken}, by {}", way(&ways)));
            }
            open.push_back((ways.len() - 1, next));
        }
    }
    Ok(known.len())
}

fn way(ways: &[(usize, Option<Step>)]) -> String {
    let (mut at, mut way) = (ways.len() - 1, Vec::new());
    while let (before, Some(step)) = &ways[at] {
        way.push(format!("{step:?}"));
        at = *before;
    }
    way.reverse();
    way.join(", ")
}

fn holds(bounds: Bounds, least: usize) {
    let states = explore(bounds).unwrap_or_else(|broken| panic!("{broken}"));
    println!("{states} states: {bounds:?}");
    assert!(states > least, "{states} are not all");
}

#[test]
fn no_rule_is_broken_by_what_administrators_do() {
    holds(Bounds { administrated: true, ..TWO }, 30_000);
}

#[test]
fn no_rule_is_broken_by_who_signs_twice_and_holds_on_as_long_as_it_may() {
    holds(Bounds { series: true, bounded: true, ..TWO }, 2_000);
}

#[test]
fn no_rule_is_broken_by_what_is_lost_late_or_doubled() {
    holds(Bounds { unsure: 1, administrated: true, ..ONE }, 40_000);
    holds(Bounds { unsure: 1, signs: false, ..TWO }, 10_000);
}

#[test]
fn what_is_wrong_is_found() {
    use Fault::{NoDoubt, NoFences, NoHold, NoLanes, NoLastMoment, NoRest, UnknownIsUnused};
    for (fault, rule) in [
        (NoFences, "S3"),
        (NoLanes, "E2"),
        (NoLastMoment, "E1"),
        (NoDoubt, "S10"),
        (NoRest, "C2"),
        (UnknownIsUnused, "S10"),
        (NoHold, "L7"),
    ] {
        let broken = explore(Bounds { unsure: 1, bounded: true, fault, ..TWO }).expect_err("a bug");
        println!("{fault:?}: {broken}");
        assert!(broken.starts_with(rule), "{fault:?}: {broken}");
    }
}
