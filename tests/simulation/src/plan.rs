//! What one world is made of, drawn from its seed: each world has some kinds of faults and not others, so that
//! rare ones are not drowned by frequent ones.

use leasehold::client::{Keepalive, LimitKind, LimitOptions, Outage, PoolOptions};
use leasehold::id::SlotId;
use leasehold::slots::{SlotSpec, Strategy};

use crate::chain::{LONGEST_FLIGHT, LONGEST_LAG};
use crate::network::Odds;
use crate::rng::Rng;
use crate::selections::LAG;
use crate::world::ProcessId;

const SECOND: u64 = 1_000_000;

/// Whether a lease can be renewed at thirds of its time to live: what its holder has of it is less by a hundredth and 2 ms.
pub fn can_be_kept(ttl: u64, response_timeout: u64) -> bool {
    ttl / 3 + response_timeout < ttl - ttl / 100 - 2_000
}

/// Kinds of misfortune that come and go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfortune {
    /// Nobody can connect.
    Outage,
    /// Everybody's connections break or hang.
    Blackout,
    /// One process is cut off.
    Partition,
    /// The server does not answer for a time.
    Hang,
    /// The server refuses commands: LOADING, READONLY, OOM, BUSY and others.
    Refusal,
    /// The server forgets its scripts.
    ScriptFlush,
    /// The server restarts with its data.
    Restart,
    /// The server restarts without its data.
    Wipe,
    /// The server's keys are deleted while it runs.
    Flush,
    /// A replica that lags behind takes over.
    Promotion,
    /// The server's clock is set back.
    ClockBack,
    /// The server's clock is set forward.
    ClockForward,
    /// A process is killed and another started in its place.
    Crash,
    /// A process is stopped for a time.
    Pause,
    /// An administrator breaks a lease.
    Break,
    /// An administrator removes a slot and adds it again.
    Removal,
    /// An administrator changes, looks at or lists slots.
    Administration,
}

/// Those of which messages know nothing.
const UNHEARD: [Misfortune; 2] = [Misfortune::Crash, Misfortune::Pause];

/// What processes do in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// They lease accounts of a pool.
    Pools,
    /// They lock names.
    Locks,
    /// The same, and thieves do not wait for the end of leases.
    Thefts,
    /// They lease accounts of a pool, thieves do not wait for the end of leases, and a gate before the chain looks at
    /// fences.
    Robberies,
    /// They charge limits.
    Limits,
    /// They select tokens.
    Tokens,
}

/// The wallet of a world.
#[derive(Clone, Debug, Default)]
pub struct TokensPlan {
    /// How many tokens it has, as long as it grows.
    pub tokens: usize,
    /// The longest page of its source.
    pub page: usize,
    /// How far a page lags behind at most.
    pub lag: u64,
    /// How often, in thousandths, the source fails.
    pub failures: u64,
    /// Whether the source is asked whether what was had is unspent.
    pub verify: bool,
    /// Whether selections are renewed.
    pub keepalive: bool,
    /// How often, in thousandths, a process hears that a token is added or spent.
    pub heard: u64,
    /// Whether a bug is planted in the source: it says that there is nothing when it fails.
    pub errors_as_empty: bool,
}

/// A limit of a world.
#[derive(Clone, Debug)]
pub struct LimitPlan {
    /// Its name.
    pub name: String,
    /// How it is counted.
    pub kind: LimitKind,
    /// The most, one after the other.
    pub maxes: Vec<u128>,
    /// How long each of them is so.
    pub term: u64,
    /// Its period, as one process says after the other; 0 if it has none.
    pub periods: Vec<u64>,
    /// The most at once, or when the periods begin.
    extra: u64,
    /// When its periods begin at another time, as every process says from then on.
    moves: Option<(u64, u64)>,
    /// Whether an outage leaves it open.
    pub open: bool,
}

impl LimitPlan {
    fn new(rng: &mut Rng, at: usize) -> Self {
        use LimitKind::{Budget, Gcra, InFlight, Lifetime, Refill, Rolling};
        let kind =
            *rng.pick(&[Refill, Refill, Gcra, Gcra, Rolling, Rolling, Budget, Budget, Lifetime, InFlight]);
        let period = match kind {
            Lifetime | InFlight => 0,
            Budget => rng.between(2 * SECOND, 20 * SECOND),
            _ => rng.spread(300_000, 12 * SECOND),
        };
        let most: u128 = match kind {
            InFlight => rng.between(1, 6).into(),
            // Amounts that no double holds.
            Lifetime | Budget if rng.in_thousand(500) => {
                1_000_000_000_000_000_000_000_000_000_000 + u128::from(rng.bits())
            }
            Lifetime => rng.between(100, 1_000).into(),
            Refill if rng.in_thousand(250) => rng.between(1 << 40, 1_000_000_000_000_000).into(),
            _ => rng.between(4, 40).into(),
        };
        let maxes =
            if rng.in_thousand(250) { vec![most, (most / 2).max(1), most * 3 / 4 + 1] } else { vec![most] };
        let extra = match kind {
            Gcra => rng.between(1, (most / 2).min(1 << 40) as u64),
            Budget => rng.below(period),
            _ => 0,
        };
        let term = rng.between(3 * SECOND, 20 * SECOND);
        let mut periods = vec![period];
        while kind == Rolling && periods.len() < 3 && rng.in_thousand(500) {
            periods.push(rng.spread(period / 30, period));
        }
        // Calendars that nest: a process whose own does not may find a part of what others were allowed in its periods.
        while kind == Budget && periods.len() < 3 && period <= 10 * SECOND && rng.in_thousand(500) {
            periods.push(period * rng.between(2, 20 * SECOND / period));
        }
        let open = rng.in_thousand(300);
        let moves = kind == Budget && periods.len() == 1 && rng.in_thousand(400);
        let moves = moves.then(|| (rng.between(period, 40 * SECOND), rng.below(period)));
        LimitPlan { name: format!("limit-{at}"), kind, maxes, term, periods, extra, moves, open }
    }

    /// The most at once, or when the periods begin, as is said then.
    pub fn extra(&self, now: u64) -> u64 {
        self.moves.filter(|(at, _)| *at <= now).map_or(self.extra, |(_, extra)| extra)
    }

    /// The most at a time.
    pub fn max(&self, now: u64) -> u128 {
        self.maxes[(now / self.term) as usize % self.maxes.len()]
    }

    /// The period that a process says.
    pub fn period(&self, process: ProcessId) -> u64 {
        self.periods[process % self.periods.len()]
    }

    /// The options with which a process opens it.
    pub fn options(&self, max: u128, process: ProcessId, now: u64) -> LimitOptions {
        let extra = self.extra(now);
        let options = LimitOptions::new(max, self.period(process)).kind(self.kind);
        let outage = if self.open { Outage::Open } else { Outage::Closed };
        let burst = (self.kind == LimitKind::Gcra).then_some(extra);
        let offset = if self.kind == LimitKind::Budget { extra } else { 0 };
        LimitOptions { burst, offset, outage, ..options }
    }
}

/// A world's plan.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What its processes do.
    pub scene: Scene,
    /// Whether the store is in Redis.
    pub redis: bool,
    /// How long the faults last.
    pub storm: u64,
    /// The accounts with their first nonces.
    pub accounts: Vec<(String, u64)>,
    /// All names that are locked.
    pub names: Vec<String>,
    /// All limits.
    pub limits: Vec<LimitPlan>,
    /// The wallet.
    pub tokens: TokensPlan,
    /// Processes at one time, and workers of each.
    pub processes: usize,
    /// Workers of each process.
    pub workers: usize,
    /// The longest time that a worker rests before it leases again.
    pub idle: u64,
    /// The pool's options, without slots, and with the longest time to live.
    pub pool: PoolOptions,
    /// The times to live, as one process says after the other.
    pub ttls: Vec<u64>,
    /// How long one reply may take.
    pub response_timeout: u64,
    /// The kinds of misfortune of this world, and the mean time between two.
    pub misfortunes: Vec<Misfortune>,
    /// The mean time between two misfortunes.
    pub interval: u64,
    /// Misfortunes of single messages.
    pub odds: Odds,
    /// Whether each process names some of the slots only.
    pub mixed: bool,
    /// Whether the clocks of the processes drift.
    pub drift: bool,
    /// How often, in thousandths, an acquisition is dropped before its end.
    pub cancels: u64,
    /// The stolen consistency factor of those who steal.
    pub factor: f64,
}

impl Plan {
    /// The plan of a seed.
    pub fn new(rng: &mut Rng, scene: Scene, redis: bool) -> Self {
        let plan = Plan::of_pools(rng, redis);
        match scene {
            Scene::Pools => plan.perhaps_flushed(rng).perhaps_shorter(rng).perhaps_quiet(rng),
            Scene::Locks => {
                Plan::of_locks(rng, plan).perhaps_flushed(rng).perhaps_shorter(rng).perhaps_quiet(rng)
            }
            Scene::Thefts => Plan::of_thefts(rng, plan),
            Scene::Robberies => Plan::of_robberies(rng, plan),
            Scene::Limits => Plan::of_limits(rng, plan),
            Scene::Tokens => Plan::of_tokens(rng, plan),
        }
    }

    /// The same with a wallet for pools.
    fn of_tokens(rng: &mut Rng, plan: Plan) -> Self {
        let plan = Plan::of_locks(rng, plan);
        let tokens = TokensPlan {
            tokens: rng.between(2, 40) as usize,
            page: rng.between(3, 60) as usize,
            lag: if rng.in_thousand(500) { LAG } else { 0 },
            failures: if rng.in_thousand(500) { rng.below(100) } else { 0 },
            verify: rng.in_thousand(250),
            keepalive: rng.in_thousand(500),
            heard: if rng.in_thousand(500) { rng.between(100, 1_000) } else { 0 },
            errors_as_empty: false,
        };
        Plan { scene: Scene::Tokens, names: Vec::new(), tokens, ..plan }
    }

    /// The same with limits for pools.
    fn of_limits(rng: &mut Rng, plan: Plan) -> Self {
        let plan = Plan::of_locks(rng, plan);
        let limits = (0..rng.between(2, 5) as usize).map(|at| LimitPlan::new(rng, at)).collect();
        Plan { scene: Scene::Limits, names: Vec::new(), limits, ..plan }
    }

    /// The same with locks for pools: nobody administrates them.
    fn of_locks(rng: &mut Rng, mut plan: Plan) -> Self {
        use Misfortune::{Administration, Break, Removal};
        plan.misfortunes.retain(|kind| ![Administration, Break, Removal].contains(kind));
        let names = (1..=rng.between(1, 4)).map(|name| format!("account:{name}")).collect();
        let pool = PoolOptions { ttl: plan.pool.ttl, ..PoolOptions::default() };
        let workers = rng.between(1, 4) as usize;
        Plan { scene: Scene::Locks, accounts: Vec::new(), names, workers, pool, mixed: false, ..plan }
    }

    /// The same with thieves who do not wait for the end of leases. In some of these worlds all messages arrive: there
    /// every holder that listens is told in time.
    fn of_thefts(rng: &mut Rng, plan: Plan) -> Self {
        let mut plan = Plan::of_locks(rng, plan);
        plan.names.truncate(2);
        plan.haste(rng);
        plan
    }

    /// The same with such thieves, who take accounts. Of what is under way as they do, the gate takes nothing any more:
    /// an account need not rest for that.
    fn of_robberies(rng: &mut Rng, mut plan: Plan) -> Self {
        plan.scene = Scene::Robberies;
        plan.accounts.truncate(2);
        plan.workers = rng.between(2, 4) as usize;
        plan.mixed = false;
        plan.pool.doubt_rest = *rng.pick(&[0, 0, plan.pool.doubt_rest]);
        plan.haste(rng);
        plan
    }

    /// The same, and in some of these worlds keys are deleted. What shifts clocks and what deletes keys apart: both are more
    /// than fences are promised to survive. The other worlds draw as they did.
    fn perhaps_flushed(mut self, rng: &Rng) -> Self {
        use Misfortune::{ClockBack, ClockForward, Flush};
        let shifts = self.misfortunes.iter().any(|kind| [ClockBack, ClockForward].contains(kind));
        if self.redis && !shifts && rng.clone().fork(6).in_thousand(350) {
            self.misfortunes.push(Flush);
        }
        self
    }

    /// The same, and in some of these worlds the leases of some processes are shorter. The other worlds draw as they did.
    fn perhaps_shorter(mut self, rng: &Rng) -> Self {
        let mut rng = rng.clone().fork(7);
        let longest = self.pool.ttl;
        while self.redis && self.ttls.len() < 3 && rng.in_thousand(400) {
            self.ttls.push(rng.between(longest / 3, longest));
        }
        self
    }

    /// The time to live of a process's leases.
    pub fn ttl(&self, process: ProcessId) -> u64 {
        self.ttls[process % self.ttls.len()]
    }

    fn haste(&mut self, rng: &mut Rng) {
        self.factor = *rng.pick(&[0.0, 0.03, 0.2, 0.6]);
        if rng.in_thousand(400) {
            self.quieten();
        }
    }

    /// The same, and in some of these worlds all messages arrive: there whoever listens and waits is told in time. In some of them
    /// little happens besides, by which who has to look would be told all the same. The other worlds draw as they did.
    fn perhaps_quiet(mut self, rng: &Rng) -> Self {
        let mut rng = rng.clone().fork(8);
        if rng.in_thousand(if self.redis { 200 } else { 500 }) {
            self.quieten();
            if rng.in_thousand(500) {
                self.accounts.truncate(2);
                (self.processes, self.workers) = (self.processes.max(3), 1);
                (self.idle, self.mixed) = (6 * SECOND, false);
            }
        }
        self
    }

    fn quieten(&mut self) {
        self.misfortunes.retain(|kind| UNHEARD.contains(kind));
        self.odds = Odds { slow: self.odds.slow, ..Odds::default() };
    }

    /// Whether no message is ever lost or late, and nobody is cut off.
    pub fn is_quiet(&self) -> bool {
        let quiet = Odds { slow: self.odds.slow, ..Odds::default() };
        self.misfortunes.iter().all(|kind| UNHEARD.contains(kind)) && self.odds == quiet
    }

    fn of_pools(rng: &mut Rng, redis: bool) -> Self {
        use Misfortune::*;
        let kinds: &[Misfortune] = match redis {
            true => &[
                Outage,
                Blackout,
                Partition,
                Hang,
                Refusal,
                ScriptFlush,
                Restart,
                Crash,
                Pause,
                Administration,
            ],
            false => &[Crash, Pause, Administration],
        };
        let mut misfortunes: Vec<Misfortune> =
            kinds.iter().copied().filter(|_| rng.in_thousand(500)).collect();
        if redis {
            if rng.in_thousand(500) {
                misfortunes.extend([Wipe, Promotion, Promotion]);
            }
            if rng.in_thousand(250) {
                misfortunes.push(ClockBack);
            }
            if rng.in_thousand(120) {
                misfortunes.push(ClockForward);
            }
        }
        if rng.in_thousand(120) {
            misfortunes.push(Break);
        }
        if rng.in_thousand(120) {
            misfortunes.push(Removal);
        }
        let firsts = [9_007_199_254_740_990, 0, 18_446_744_073_709_000_000, 41, 1 << 60];
        let accounts =
            (0..rng.between(2, 5)).zip(firsts).map(|(at, first)| (format!("0xa{at}"), first)).collect();
        let ttl = rng.between(3 * SECOND, 6 * SECOND);
        let pool = PoolOptions {
            slots: None,
            ttl,
            cooldown: *rng.pick(&[0, 0, 200_000]),
            strategy: *rng.pick(&[Strategy::Random, Strategy::LeastRecent, Strategy::Weighted]),
            max_hold: Some(*rng.pick(&[0, 2 * ttl, 3 * ttl])),
            keepalive: Keepalive::Off,
            // As long as a transaction may be under way, and a node behind.
            doubt_rest: LONGEST_FLIGHT + LONGEST_LAG + 100_000,
            settle: 6 * SECOND,
            timeout: 3 * SECOND,
            ageing: *rng.pick(&[0, 0, SECOND]),
        };
        let mut odds = Odds::of_storm(rng);
        odds.push = rng.perhaps(500);
        Plan {
            scene: Scene::Pools,
            redis,
            storm: rng.between(50, 90) * SECOND,
            accounts,
            names: Vec::new(),
            limits: Vec::new(),
            tokens: TokensPlan::default(),
            processes: rng.between(2, 4) as usize,
            workers: rng.between(1, 3) as usize,
            idle: 400_000,
            ttls: vec![pool.ttl],
            pool,
            response_timeout: rng.between(500_000, 2 * SECOND),
            misfortunes,
            interval: rng.between(2, 8) * SECOND,
            odds,
            mixed: rng.in_thousand(150),
            drift: redis,
            cancels: *rng.pick(&[0, 100, 300]),
            factor: 1.0,
        }
    }

    /// One of the names, or several, in any order.
    pub fn some_names(&self, rng: &mut Rng) -> Vec<String> {
        let mut names = self.names.clone();
        let count = if rng.in_thousand(550) { 1 } else { rng.between(1, names.len() as u64) as usize };
        while names.len() > count {
            names.remove(rng.below(names.len() as u64) as usize);
        }
        let turned = rng.below(count as u64) as usize;
        names.rotate_left(turned);
        names
    }

    /// The options with which this process opens the pool: with all slots, with some, or with none.
    pub fn options(&self, process: ProcessId, rng: &mut Rng) -> PoolOptions {
        let spec = |id: &str, weight: u8| {
            SlotId::new(id).ok().map(|slot| (id.to_owned(), SlotSpec { slot, weight }))
        };
        let mut slots: Vec<_> =
            self.accounts.iter().zip(1u8..).filter_map(|((id, _), at)| spec(id, 1 + at % 3 * 2)).collect();
        if self.mixed {
            let keep = rng.between(1, slots.len() as u64) as usize;
            while slots.len() > keep {
                slots.swap_remove(rng.below(slots.len() as u64) as usize);
            }
        }
        PoolOptions { slots: Some(slots), ttl: self.ttl(process), ..self.pool.clone() }
    }
}
