//! A source, a lock table and processes, on a clock that the test moves.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use crate::slots::{Choice, Claim, LeaseRef, Moment, Pool, Reply, Request};
use crate::tokens::{
    Amount, Bounds, Candidates, Draw, Event, FirstFitRandom, Order, Page, Selector, Step, Strategy, Token,
    Verdict,
};
use crate::{MILLISECOND, Micros, SECOND};

/// When every scene begins.
pub const START: Micros = 1_700_000_000 * SECOND;
/// The time to live of locks.
pub const TTL: Micros = 60 * SECOND;
/// How long a token is offered after it was listed.
pub const MAX_AGE: Micros = 30 * SECOND;

/// What all processes share: a source and the machine of slots as the lock table.
pub struct Scene {
    pub now: Micros,
    pub source: BTreeMap<String, Amount>,
    pub table: Pool,
    /// The longest page, and how long the source takes for one.
    pub limit: usize,
    pub page_time: Micros,
    pub counts: Counts,
}

/// What was asked of the source and of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub pages: usize,
    pub claims: usize,
    pub tokens: usize,
    /// Tokens that were asked for in vain.
    pub missed: usize,
}

/// What one process knows.
pub struct Process {
    pub pool: Candidates,
    pub holder: u128,
}

/// One selection of a process, and what it has of the store.
pub struct Attempt {
    pub selector: Selector,
    pub leases: BTreeMap<u32, LeaseRef>,
    holder: u128,
    /// When its pause ends.
    pub until: Micros,
    /// How many of its pauses are yet to be cut short.
    pub calls: u32,
    pub verdict: Option<Verdict>,
}

impl Scene {
    pub fn of(tokens: &[(&str, u64)]) -> Self {
        let source = tokens.iter().map(|&(id, amount)| (id.to_owned(), amount.into())).collect();
        let mut table = Pool::default();
        let moment = Moment { wall: START, incarnation: "a", up_since: 0 };
        table.apply_one(moment, 1, &Request::Define { slots: Vec::new(), longest: TTL, doubt_rest: 0 });
        Scene { now: START, source, table, limit: 1_000, page_time: 0, counts: Counts::default() }
    }

    pub fn ask(&mut self, request: &Request) -> Reply {
        let moment = Moment { wall: self.now, incarnation: "a", up_since: 0 };
        self.table.apply_one(moment, 1, request).1
    }

    /// Somebody else locks these.
    pub fn lock(&mut self, ids: &[&str], ttl: Micros) {
        let slots: Vec<_> = ids.iter().map(|&id| crate::tokens::slot_of(&id.into()).unwrap()).collect();
        let most = slots.len() as u32;
        let choice = Choice::Free { slots, least: most, most, asked: 0 };
        let reply = self.ask(&Request::Claim(Claim::new(choice, u128::MAX, ttl)));
        assert!(matches!(reply, Reply::Granted(_)), "{reply:?}");
    }

    pub fn page(&mut self, after: Option<&str>) -> Page {
        self.counts.pages += 1;
        self.now += self.page_time;
        let skip = after.map_or(0, |after| after.parse().unwrap());
        let mut rest = self.source.iter().skip(skip).map(|(id, amount)| Token::new(id.as_str(), *amount));
        let tokens: Vec<_> = rest.by_ref().take(self.limit).collect();
        let next = rest.next().map(|_| (skip + tokens.len()).to_string());
        Page { tokens, next }
    }

    pub fn locked(&mut self) -> u32 {
        match self.ask(&Request::Inspect { slots: Vec::new() }) {
            Reply::Inspected { due, .. } => due,
            other => panic!("{other:?}"),
        }
    }

    /// Runs one selection to its end, with nobody beside it; time passes in its pauses.
    pub fn select(&mut self, process: &mut Process, mut attempt: Attempt) -> Attempt {
        while attempt.verdict.is_none() {
            self.now = self.now.max(attempt.until);
            attempt.step(self, process);
        }
        attempt
    }
}

impl Process {
    pub fn new(seed: u64) -> Self {
        Process { pool: Candidates::new(seed, MAX_AGE), holder: u128::from(seed) << 64 }
    }

    pub fn attempt(&mut self, target: u64, timeout: Micros, now: Micros) -> Attempt {
        self.attempt_by(target.into(), Arc::new(FirstFitRandom), Bounds::default(), timeout, now)
    }

    pub fn attempt_by(
        &mut self,
        target: Amount,
        strategy: Arc<dyn Strategy>,
        bounds: Bounds,
        timeout: Micros,
        now: Micros,
    ) -> Attempt {
        self.holder += 1;
        let selector = Selector::new(
            target,
            strategy,
            bounds,
            self.holder as u64 ^ (self.holder >> 64) as u64,
            now,
            now + timeout,
        );
        Attempt { selector, leases: BTreeMap::new(), holder: self.holder, until: 0, calls: 0, verdict: None }
    }
}

impl Attempt {
    /// Does what the selector says next.
    pub fn step(&mut self, scene: &mut Scene, process: &mut Process) {
        let (now, pool) = (scene.now, &mut process.pool);
        if self.until > now || self.verdict.is_some() {
            return;
        }
        let event = match self.selector.poll(pool, now) {
            Step::Fetch => {
                let after = pool.next_page(now);
                let page = scene.page(after.as_deref());
                pool.absorb(now, after.as_deref(), page).unwrap();
                Event::Fetched
            }
            Step::Claim(places) => self.claim(scene, pool, &places),
            Step::Verify(places) => {
                let spent = |place: &u32| !scene.source.contains_key(&*pool.get(*place).unwrap().0.id);
                let spent: Vec<u32> = places.into_iter().filter(spent).collect();
                self.give_back(scene, &spent);
                Event::Verified(spent)
            }
            Step::GiveBack(places) => {
                self.give_back(scene, &places);
                Event::GivenBack
            }
            Step::Pause(_) if self.calls > 0 => {
                self.calls -= 1;
                Event::Called
            }
            Step::Pause(time) => {
                self.until = now + time;
                Event::Paused
            }
            Step::Done(verdict) => {
                self.verdict = Some(verdict);
                if !matches!(verdict, Verdict::Selected { .. }) {
                    self.abandon(scene, process);
                }
                return;
            }
        };
        self.selector.handle(pool, now, event);
    }

    /// Its caller goes away, or releases it.
    pub fn abandon(&mut self, scene: &mut Scene, process: &mut Process) {
        let places: Vec<u32> = self.leases.keys().copied().collect();
        self.give_back(scene, &places);
        self.selector.abandon(&mut process.pool, scene.now);
    }

    /// Its tokens.
    pub fn ids(&self, process: &Process) -> Vec<String> {
        self.selector.held().iter().map(|&place| process.pool.get(place).unwrap().0.id.to_string()).collect()
    }

    fn claim(&mut self, scene: &mut Scene, pool: &Candidates, places: &[u32]) -> Event {
        let slots: Vec<_> = places.iter().map(|&place| pool.get(place).unwrap().1.clone()).collect();
        scene.counts.claims += 1;
        scene.counts.tokens += slots.len();
        let choice = Choice::Free { slots: slots.clone(), least: 1, most: slots.len() as u32, asked: 0 };
        let (grants, earliest) = match scene.ask(&Request::Claim(Claim::new(choice, self.holder, TTL))) {
            Reply::Granted(grants) => (grants, None),
            Reply::Partly { grants, earliest } => (grants, earliest),
            Reply::Refused { earliest, .. } => (Vec::new(), earliest),
            other => panic!("{other:?}"),
        };
        scene.counts.missed += slots.len() - grants.len();
        let mut granted = Vec::new();
        for grant in grants {
            let at = slots.iter().position(|slot| *slot == grant.slot).unwrap();
            granted.push((places[at], grant.deadline));
            self.leases
                .insert(places[at], LeaseRef { slot: grant.slot, fence: grant.fence, place: grant.place });
        }
        Event::Claimed { granted, earliest }
    }

    fn give_back(&mut self, scene: &mut Scene, places: &[u32]) {
        for place in places {
            let lease = self.leases.remove(place).expect("a lease");
            let outcome = crate::nonce::Outcome::Unused;
            assert_eq!(scene.ask(&Request::Release { lease, outcome, cooldown: 0 }), Reply::Released);
        }
    }
}

/// Runs attempts of processes of their own beside each other, one step at a time in an order of the seed, until all have
/// ended.
pub fn race(scene: &mut Scene, processes: &mut [Process], attempts: &mut [Attempt], seed: u64) {
    let mut draw = Draw::new(seed);
    while attempts.iter().any(|attempt| attempt.verdict.is_none()) {
        let at = draw.below(attempts.len() as u64) as usize;
        attempts[at].step(scene, &mut processes[at]);
        scene.now += draw.below(MILLISECOND);
    }
}

/// What a selection of this sum says.
pub fn selected(sum: u64, change: u64) -> Option<Verdict> {
    Some(Verdict::Selected { sum: sum.into(), change: change.into() })
}

/// A wallet of so many tokens of one.
pub fn of_one(count: u64) -> Scene {
    let ids: Vec<String> = (0..count).map(|number| format!("t{number}")).collect();
    Scene::of(&ids.iter().map(|id| (id.as_str(), 1)).collect::<Vec<_>>())
}

/// Tokens `t0` and so on.
pub fn page(ids: Range<u64>, amount: impl Fn(u64) -> u64) -> Page {
    Page { tokens: ids.map(|id| Token::new(format!("t{id}"), amount(id))).collect(), next: None }
}

/// A walk of one page, of tokens of 5.
pub fn walk(pool: &mut Candidates, now: Micros, ids: Range<u64>) {
    let after = pool.next_page(now);
    pool.absorb(now, after.as_deref(), page(ids, |_| 5)).unwrap();
}

/// Three of 5, that selections have.
pub fn walk_and_take(pool: &mut Candidates) {
    walk(pool, START, 0..3);
    pool.take(START, Order::Spread, 15u64.into(), (0, 9), &FxHashSet::default(), &mut Draw::new(7));
}
