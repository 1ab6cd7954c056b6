//! What one world is made of, drawn from its seed: each world has some kinds of faults and not others, so that
//! rare ones are not drowned by frequent ones.

use leasehold::client::{Keepalive, PoolOptions};
use leasehold::id::SlotId;
use leasehold::slots::{SlotSpec, Strategy};

use crate::chain::{LONGEST_FLIGHT, LONGEST_LAG};
use crate::network::Odds;
use crate::rng::Rng;

const SECOND: u64 = 1_000_000;

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

/// What processes do in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scene {
    /// They lease accounts of a pool.
    Pools,
    /// They lock names.
    Locks,
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
    /// Processes at one time, and workers of each.
    pub processes: usize,
    /// Workers of each process.
    pub workers: usize,
    /// The pool's options, without slots.
    pub pool: PoolOptions,
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
}

impl Plan {
    /// The plan of a seed.
    pub fn new(rng: &mut Rng, scene: Scene, redis: bool) -> Self {
        let plan = Plan::of_pools(rng, redis);
        if scene == Scene::Pools { plan } else { Plan::of_locks(rng, plan) }
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
            max_hold: *rng.pick(&[0, 2 * ttl, 3 * ttl]),
            keepalive: Keepalive::Off,
            // As long as a transaction may be under way, and a node behind.
            doubt_rest: LONGEST_FLIGHT + LONGEST_LAG + 100_000,
            settle: 6 * SECOND,
            timeout: 3 * SECOND,
            ageing: *rng.pick(&[0, 0, SECOND]),
        };
        let mut often = |most: u64| if rng.in_thousand(500) { rng.below(most) } else { 0 };
        let odds = Odds {
            lost_request: often(60),
            lost_reply: often(60),
            doubled: often(60),
            late: often(30),
            slow: often(200),
            push: often(500),
        };
        Plan {
            scene: Scene::Pools,
            redis,
            storm: rng.between(50, 90) * SECOND,
            accounts,
            names: Vec::new(),
            processes: rng.between(2, 4) as usize,
            workers: rng.between(1, 3) as usize,
            pool,
            response_timeout: rng.between(500_000, 2 * SECOND),
            misfortunes,
            interval: rng.between(2, 8) * SECOND,
            odds,
            mixed: rng.in_thousand(150),
            drift: redis,
            cancels: *rng.pick(&[0, 100, 300]),
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

    /// The options with which a process opens the pool: with all slots, with some, or with none.
    pub fn options(&self, rng: &mut Rng) -> PoolOptions {
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
        PoolOptions { slots: Some(slots), ..self.pool.clone() }
    }
}
