//! One world from its seed to its verdict.

use std::sync::{Arc, Mutex};

use leasehold::client::{AcquireOptions, PoolOptions};
use leasehold::id::SlotId;
use leasehold::store::LimitStore;
use leasehold::store::redis::RedisStore;

use crate::census::Census;
use crate::chain::{Chain, Told};
use crate::checker::{self, Rules, Violation};
use crate::history::{Event, History, What};
use crate::limiting;
use crate::locking;
use crate::memory::ObservedMemory;
use crate::network::{Network, SimTransport, record_reach};
use crate::plan::{Misfortune, Plan, Scene};
use crate::planted::{Planted, PlantedFault};
use crate::resources::Resources;
use crate::rng::Rng;
use crate::selecting::{self, SETTLE, SimSource};
use crate::storm::Storm;
use crate::workload::{Site, SiteState, open, start};
use crate::world::{NATURE, ProcessId, World, unpoisoned};

/// How long after the storm all that waits must have ended, leases and quiet times with it.
const CALM: u64 = 45_000_000;
/// How long the processes that are left may take to lease once more.
const GOING_ON: u64 = 30_000_000;
/// Within how long a holder that listens hears that its lease is claimed, in one process and over a network: a message,
/// a question and its answer.
const TOLD_AT_ONCE: u64 = 10_000;
const TOLD_FROM_AFAR: u64 = 1_500_000;
/// How long the audit may take.
const AUDIT: u64 = 60_000_000;

/// What became of a world.
pub struct Run {
    /// Its plan.
    pub plan: Plan,
    /// The first rule that was broken.
    pub violation: Option<Violation>,
    /// Everything that happened.
    pub events: Vec<Event>,
    /// How long it lasted, in virtual time.
    pub lasted: u64,
}

/// Runs the world of a seed. Counts go to `census`.
pub fn run(seed: u64, scene: Scene, redis: bool, bug: Option<Planted>, census: &Census) -> Run {
    let mut rng = Rng::new(seed.wrapping_mul(2) + u64::from(redis));
    let mut plan = Plan::new(&mut rng, scene, redis);
    plan.tokens.errors_as_empty = matches!(bug, Some(Planted { fault: PlantedFault::SourceAsEmpty, .. }));
    let world = World::new(rng.bits());
    let history = History::default();
    let careless = matches!(bug, Some(Planted { fault: PlantedFault::CarelessResource, .. }));
    let resources = Resources::new(&world, &history, careless);
    if !redis {
        let store = ObservedMemory::new(&world, &history);
        let memory = store.clone();
        let ground = Ground {
            store: Box::new(move |process| store.of(process)),
            network: None,
            records: Box::new(move || memory.records()),
            told_within: Some(TOLD_AT_ONCE),
            resources,
        };
        return play(world, history, census, plan, rng, ground);
    }
    let network = Network::new(&world, &history, census, rng.fork(1), plan.odds, bug);
    let (ways, pushed) = (network.clone(), rng.in_thousand(850));
    let (server, clock) = (network.clone(), world.clone());
    let ground = Ground {
        store: Box::new(move |process| RedisStore::new(SimTransport::new(&ways, process, pushed))),
        network: Some(network),
        records: Box::new(move || server.with_server(|server| server.records(clock.now()))),
        told_within: pushed.then_some(TOLD_FROM_AFAR),
        resources,
    };
    play(world, history, census, plan, rng, ground)
}

/// The store of a world.
struct Ground<S: LimitStore> {
    /// Makes a process's way to it.
    store: Box<dyn Fn(ProcessId) -> S + Send + Sync>,
    /// The network, if it is behind one.
    network: Option<Network>,
    /// All slots and tickets of which it keeps anything.
    records: Box<dyn Fn() -> Vec<String>>,
    /// Within how long whoever listens is told by it, if nothing is lost.
    told_within: Option<u64>,
    /// What its locks guard.
    resources: Resources,
}

fn play<S: LimitStore>(
    world: World,
    history: History,
    census: &Census,
    plan: Plan,
    mut rng: Rng,
    ground: Ground<S>,
) -> Run {
    let Ground { store, network, records, told_within, resources } = ground;
    let gate = (plan.scene == Scene::Robberies).then(|| resources.clone());
    let accounts = plan.accounts.iter().cloned();
    let chain = Chain::new((&world, &history, census), gate, rng.fork(2), accounts);
    let state = Mutex::new(SiteState::new(rng.fork(3)));
    // The other scenes draw as they did.
    let source = SimSource::new(&world, &history, &plan.tokens, rng.clone().fork(5));
    if plan.scene == Scene::Tokens {
        source.grow();
    }
    let site = Arc::new(Site {
        world: world.clone(),
        history: history.clone(),
        census: census.clone(),
        chain: chain.clone(),
        source: source.clone(),
        resources,
        plan: plan.clone(),
        store,
        state,
    });
    for _ in 0..plan.processes {
        start(&site);
    }
    Arc::new(Storm { site: site.clone(), network: network.clone() }).rage(rng.fork(4));
    world.run_until(plan.storm);
    unpoisoned(&site.state).busy = false;
    chain.calm();
    source.calm();
    if let Some(network) = &network {
        network.calm();
        record_reach(network, true);
        network.with_server(|server| server.set_fault(None));
    }
    world.run_until(plan.storm + CALM);
    history.record(world.now(), NATURE, What::Calm);
    left_over(&site);
    match plan.scene {
        Scene::Pools | Scene::Robberies => go_on(&site),
        Scene::Locks | Scene::Thefts => locking::go_on(&site),
        Scene::Limits => limiting::go_on(&site),
        Scene::Tokens => selecting::go_on(&site),
    }
    world.run_until(plan.storm + CALM + GOING_ON);
    match plan.scene {
        Scene::Pools | Scene::Robberies => audit(&site),
        Scene::Locks | Scene::Thefts => locking::audit(&site),
        Scene::Limits => limiting::audit(&site),
        Scene::Tokens => selecting::audit(&site),
    }
    world.run_until(plan.storm + CALM + GOING_ON + AUDIT);
    if let Some(network) = &network {
        for (process, most) in network.most_attempts() {
            history.record(world.now(), process, What::Attempts { most });
        }
    }
    let left: Vec<String> = match plan.scene {
        Scene::Pools | Scene::Robberies => Vec::new(),
        Scene::Locks | Scene::Thefts | Scene::Tokens => records(),
        // What is used for good is kept for good.
        Scene::Limits => records().into_iter().filter(|record| !record.contains(":limit:l:")).collect(),
    };
    history.record(world.now(), NATURE, What::LeftBehind(left));
    let lasted = world.now();
    census.add("tasks run", world.polls());
    world.end();
    let left = {
        let mut state = unpoisoned(&site.state);
        (
            std::mem::take(&mut state.kept),
            std::mem::take(&mut state.pools),
            std::mem::take(&mut state.lockers),
        )
    };
    drop(left);
    let events = history.take();
    census.add("events", events.len() as u64);
    let rules = Rules {
        ttl: plan.pool.ttl,
        response_timeout: plan.response_timeout,
        // What was spent under a lock that is forgotten rests so long.
        doubt_rest: if plan.scene == Scene::Tokens { SETTLE } else { plan.pool.doubt_rest },
        accounts: plan
            .accounts
            .iter()
            .map(|(account, _)| account)
            .chain(&plan.names)
            .chain(plan.limits.iter().map(|limit| &limit.name))
            .cloned()
            .chain((plan.scene == Scene::Tokens).then(|| "wallet".to_owned()))
            .collect(),
        mixed: plan.mixed || plan.misfortunes.contains(&Misfortune::Removal),
        workers: plan.workers as u64,
        drift: plan.drift,
        patience: (plan.pool.ttl as f64 * plan.factor) as u64,
        prompt: told_within.filter(|_| plan.is_quiet()),
    };
    let violation = checker::judge(&rules, &events, census);
    Run { plan, violation, events, lasted }
}

fn left_over<S: LimitStore>(site: &Arc<Site<S>>) {
    let state = unpoisoned(&site.state);
    for (&process, pool) in &state.pools {
        let statistics = pool.statistics();
        let kept = state.kept.get(&process).map_or(0, Vec::len) as u64;
        let left =
            What::Leftover { waiting: statistics.waiting, leased: statistics.leased.saturating_sub(kept) };
        site.history.record(site.world.now(), process, left);
    }
}

/// Sees that every process that is left can still lease, with what it knows from before.
fn go_on<S: LimitStore>(site: &Arc<Site<S>>) {
    let pools = unpoisoned(&site.state).pools.clone();
    for (process, pool) in pools {
        let shared = site.clone();
        site.world.spawn(process, async move {
            for (slot, _) in &shared.plan.accounts {
                // One that the pool does not have cannot be enabled, and need not be.
                let _ = pool.enable(slot).await;
            }
            let options = AcquireOptions { timeout: Some(20_000_000), ..AcquireOptions::default() };
            let failure = match pool.acquire_with(options).await {
                Ok(lease) => {
                    lease.unused().expect("held");
                    lease.release().await.err()
                }
                Err(error) => Some(error),
            };
            let failure = failure.map(|error| error.to_string());
            let audited = What::Audited { slot: format!("process {process}"), failure };
            shared.history.record(shared.world.now(), process, audited);
        });
    }
}

/// Leases every account, signs with the nonce that comes with it, and sees that the chain takes it.
fn audit<S: LimitStore>(site: &Arc<Site<S>>) {
    let process = site.world.start(false);
    let shared = site.clone();
    site.world.spawn(process, async move {
        let plan = Plan { mixed: false, ..shared.plan.clone() };
        let options: PoolOptions = plan.options(process, &mut Rng::new(0));
        let pool = open(&shared, process, options, true).await;
        for (slot, _) in &plan.accounts {
            let failure = match &pool {
                Some(pool) => inspect(&shared, pool, slot).await.err(),
                None => Some("the pool cannot be opened".to_owned()),
            };
            let audited = What::Audited { slot: slot.clone(), failure };
            shared.history.record(shared.world.now(), process, audited);
        }
    });
}

async fn inspect<S: LimitStore>(
    site: &Arc<Site<S>>,
    pool: &crate::workload::SimPool<S>,
    slot: &str,
) -> Result<(), String> {
    pool.enable(slot).await.map_err(|error| error.to_string())?;
    let slots = SlotId::new(slot).ok().map(|id| vec![id]);
    let options = AcquireOptions { slots, timeout: Some(20_000_000), ..AcquireOptions::default() };
    let mut lease = pool.acquire_with(options.clone()).await.map_err(|error| error.to_string())?;
    let next = site.chain.next(slot);
    // Whose lease was broken may have signed after the next holder read the chain: the next to sign is refused, and says so.
    if site.plan.misfortunes.contains(&Misfortune::Break) && lease.nonce().is_some_and(|nonce| nonce < next) {
        lease.rejected(Some(next)).map_err(|error| error.to_string())?;
        lease.release().await.map_err(|error| error.to_string())?;
        lease = pool.acquire_with(options).await.map_err(|error| error.to_string())?;
    }
    let nonce = lease.nonce();
    if nonce != Some(next) {
        return Err(format!("the lease has nonce {nonce:?}, the chain expects {next}"));
    }
    let told = site.chain.send(site.chain.sign(), slot, next, lease.fence()).await;
    if told != Ok(Told::Accepted) {
        return Err(format!("the chain says {told:?} to {next}"));
    }
    lease.used(None).map_err(|error| error.to_string())?;
    lease.release().await.map_err(|error| error.to_string())
}
