//! Every state that three clients of different priority can bring one name into, and every step from each of them: none
//! of them lets two hold it at once, unless a thief was told not to wait for the end of a lease.

use std::collections::{HashMap, VecDeque};

use super::scene::{START, Scene, asking, ids};
use crate::fence::FenceGuard;
use crate::nonce::Outcome;
use crate::slots::{
    Answer, Choice, Claim, Envelope, LeaseRef, Moment, Performed, Pool, Reply, Request, TO_THE_END,
};
use crate::{Micros, SECOND};

const CLIENTS: usize = 3;
/// Leases live for two ticks, as tickets do; an offer lapses within one.
const TICK: Micros = 5 * SECOND;
const TTL: Micros = 2 * TICK;

/// What can happen next.
#[derive(Clone, Copy, Debug)]
enum Step {
    Claim(usize),
    Renew(usize),
    Release(usize),
    Withdraw(usize),
    /// It forgets all that it has, without telling anybody.
    Crash(usize),
    Tick,
}

/// What a client believes: the fence of its lease and when it ends.
type Belief = Option<(u64, Micros)>;

#[derive(Clone)]
struct World {
    pool: Pool,
    now: Micros,
    beliefs: [Belief; CLIENTS],
}

impl World {
    fn new() -> Self {
        let pool = Scene::of(&[]).pool;
        World { pool, now: START, beliefs: [None; CLIENTS] }
    }

    fn ask(&mut self, request: Request) -> Reply {
        let moment = Moment { wall: self.now, incarnation: "a", up_since: 0 };
        let envelope = Envelope { requests: vec![request], ..Envelope::default() };
        match self.pool.apply(moment, &envelope) {
            Answer::Performed(Performed { mut replies, .. }) => replies.remove(0),
            stale => panic!("{stale:?}"),
        }
    }

    /// Whether a client believes that it holds the name.
    fn holds(&self, client: usize) -> bool {
        self.beliefs[client].is_some_and(|(_, until)| until > self.now)
    }

    fn holders(&self) -> Vec<usize> {
        (0..CLIENTS).filter(|&client| self.holds(client)).collect()
    }

    fn lease(&self, client: usize) -> Option<LeaseRef> {
        let slot = ids(&["red"]).remove(0);
        self.beliefs[client].map(|(fence, _)| LeaseRef { slot, fence, place: 0 })
    }

    /// Takes a step; false if it is not possible.
    fn take(&mut self, step: Step, patience: Micros) -> bool {
        match step {
            Step::Tick => self.now += TICK,
            Step::Crash(client) => self.beliefs[client] = None,
            Step::Withdraw(client) => {
                self.ask(Request::Withdraw { holder: client as u128 + 1 });
            }
            Step::Claim(client) if self.holds(client) => return false,
            Step::Claim(client) => {
                let choice = Choice::Named { slots: ids(&["red"]) };
                let (holder, priority) = (client as u128 + 1, client as i16 - 1);
                let steal = Some(patience);
                let claim = Claim { holder, priority, wait: true, ttl: TTL, steal, ..asking(choice) };
                if let Reply::Granted(grants) = self.ask(Request::Claim(claim)) {
                    self.beliefs[client] = Some((grants[0].fence, grants[0].deadline));
                }
            }
            Step::Renew(client) => {
                let Some(lease) = self.lease(client) else { return false };
                match self.ask(Request::Renew { lease, ttl: TTL }) {
                    Reply::Renewed { deadline } | Reply::Claimed { deadline, .. } => {
                        self.beliefs[client] = self.beliefs[client].map(|(fence, _)| (fence, deadline));
                    }
                    _ => self.beliefs[client] = None,
                }
            }
            Step::Release(client) => {
                let Some(lease) = self.lease(client) else { return false };
                self.ask(Request::Release { lease, outcome: Outcome::Unsettled, cooldown: 0 });
                self.beliefs[client] = None;
            }
        }
        true
    }

    /// All that can make a difference, by how far it is from now.
    fn key(&self) -> String {
        let mut fences: Vec<u64> = self.beliefs.iter().flatten().map(|(fence, _)| *fence).collect();
        fences.sort_unstable();
        let rank = |fence: u64| fences.iter().position(|&other| other == fence);
        let left = |until: Micros| until.saturating_sub(self.now);
        let belief = |belief: &Belief| belief.map(|(fence, until)| (rank(fence), left(until)));
        let beliefs: Vec<_> = self.beliefs.iter().map(belief).collect();
        let tickets = (1..=CLIENTS as u128)
            .map(|holder| self.pool.line.life_of(holder).map(|(until, offered)| (left(until), offered)));
        let slot = self.pool.find(&ids(&["red"])[0]).and_then(|place| self.pool.slots.get(place as usize));
        let slot = slot.map(|slot| {
            let claimant = slot.claimant.as_ref().map(|claimant| claimant.told());
            let claimant = claimant.map(|(ticket, until)| (ticket, left(until)));
            (slot.state, slot.holder, left(slot.until), rank(slot.fence), claimant)
        });
        format!("{beliefs:?} {:?} {slot:?}", tickets.collect::<Vec<_>>())
    }

    /// What must be so whatever has happened.
    fn check(&mut self, patience: Micros, way: &dyn Fn() -> String) {
        let holders = self.holders();
        assert!(holders.len() < 2 || patience < TO_THE_END, "{holders:?} at once by {}", way());
        // Those who think that they hold it may all write; whoever has the highest fence has written before.
        let fence_of = |&client: &usize| self.beliefs[client].map_or(0, |(fence, _)| fence);
        let newest = holders.iter().copied().max_by_key(fence_of);
        let mut resource = FenceGuard::default();
        if let Some(client) = newest {
            resource.admit(fence_of(&client)).expect("the newest");
        }
        for client in holders.iter().filter(|&&client| Some(client) != newest) {
            assert!(resource.admit(fence_of(client)).is_err(), "an old fence writes by {}", way());
            let mut later = self.clone();
            later.take(Step::Renew(*client), patience);
            assert!(!later.holds(*client), "an old fence is renewed by {}", way());
        }
        // Whoever waits is served at last if nobody does anything but ask: it never gets stuck.
        let mut later = self.clone();
        for _ in 0..5 {
            later.take(Step::Tick, patience);
            later.take(Step::Claim(CLIENTS - 1), patience);
        }
        assert!(later.holds(CLIENTS - 1), "it is stuck by {}", way());
    }
}

/// Goes through all states; how many there are, and in how many of them two think that they hold the name.
fn explore(patience: Micros) -> (usize, usize) {
    let each = |step: fn(usize) -> Step| (0..CLIENTS).map(step);
    let steps: Vec<Step> = each(Step::Claim)
        .chain(each(Step::Renew))
        .chain(each(Step::Release))
        .chain(each(Step::Withdraw))
        .chain(each(Step::Crash))
        .chain([Step::Tick])
        .collect();
    // Every state that was seen, and how it was come to first.
    let mut ways: HashMap<String, (String, Option<Step>)> = HashMap::new();
    let mut open = VecDeque::from([World::new()]);
    ways.insert(World::new().key(), (String::new(), None));
    let mut shared = 0;
    while let Some(world) = open.pop_front() {
        let from = world.key();
        shared += usize::from(world.holders().len() > 1);
        for &step in &steps {
            let mut next = world.clone();
            if !next.take(step, patience) {
                continue;
            }
            let key = next.key();
            if ways.contains_key(&key) {
                continue;
            }
            ways.insert(key.clone(), (from.clone(), Some(step)));
            let way = || {
                let (mut at, mut way) = (&key, Vec::new());
                while let Some((before, Some(step))) = ways.get(at) {
                    way.push(format!("{step:?}"));
                    at = before;
                }
                way.reverse();
                way.join(", ")
            };
            next.clone().check(patience, &way);
            open.push_back(next);
        }
    }
    (ways.len(), shared)
}

#[test]
fn two_never_hold_a_name_at_once_if_thieves_wait_for_the_end_of_leases() {
    let (states, shared) = explore(TO_THE_END);
    assert!(states > 1_000, "{states} are not all");
    assert_eq!(shared, 0);
}

#[test]
fn two_can_think_that_they_hold_a_name_if_thieves_do_not_wait_and_the_fence_tells_them_apart() {
    let (states, shared) = explore(TICK);
    assert!(states > 1_000, "{states} are not all");
    assert!(shared > 0, "the bound of the wait has no effect");
}
