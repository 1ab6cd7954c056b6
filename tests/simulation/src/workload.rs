//! Processes that lease accounts, sign with their nonces and tell what became of them.

use std::any::Any;
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{Either, join_all, select};
use leasehold::client::{
    AcquireOptions, Keepalive, Leasehold, NonceSource, OpenOptions, ReadNonce, ReleaseOptions,
};
use leasehold::id::SlotId;
use leasehold::store::LimitStore;
use leasehold::{Error, Lease, Pool};

use crate::census::Census;
use crate::chain::{Chain, Told};
use crate::history::{History, What};
use crate::limiting;
use crate::locking::{self, SimHandle};
use crate::plan::{Misfortune, Plan, Scene, can_be_kept};
use crate::resources::Resources;
use crate::rng::Rng;
use crate::selecting::{self, SimSource};
use crate::world::{ProcessId, SimRuntime, World, unpoisoned};

/// A pool as a process has it.
pub type SimPool<S> = Pool<S, SimRuntime>;
type SimLease<S> = Lease<S, SimRuntime>;

/// Where all processes are.
pub struct Site<S: LimitStore> {
    /// The world.
    pub world: World,
    /// Its record.
    pub history: History,
    /// Its counts.
    pub census: Census,
    /// The chain.
    pub chain: Chain,
    /// The source of tokens.
    pub source: SimSource,
    /// What locks guard.
    pub resources: Resources,
    /// Its plan.
    pub plan: Plan,
    /// Makes a process's way to the store.
    pub store: Box<dyn Fn(ProcessId) -> S + Send + Sync>,
    /// What changes.
    pub state: Mutex<SiteState<S>>,
}

/// What changes of a site.
pub struct SiteState<S: LimitStore> {
    /// Whether the workers go on.
    pub busy: bool,
    /// The pools of processes that live, and how many leases each keeps on purpose.
    pub pools: BTreeMap<ProcessId, SimPool<S>>,
    /// What processes that live lock with, or charge limits.
    pub lockers: BTreeMap<ProcessId, SimHandle<S>>,
    /// Leases that are neither given back nor dropped, by process.
    pub kept: BTreeMap<ProcessId, Vec<Box<dyn Any + Send>>>,
    /// Which place among all processes each has that lives.
    pub places: BTreeMap<ProcessId, usize>,
    acquires: u64,
    rng: Rng,
}

impl<S: LimitStore> SiteState<S> {
    /// Nothing yet.
    pub fn new(rng: Rng) -> Self {
        SiteState {
            busy: true,
            pools: BTreeMap::new(),
            lockers: BTreeMap::new(),
            kept: BTreeMap::new(),
            places: BTreeMap::new(),
            acquires: 0,
            rng,
        }
    }

    /// A new acquisition's number.
    pub fn next_acquire(&mut self) -> u64 {
        self.acquires += 1;
        self.acquires
    }
}

/// One process, as its tasks share it.
struct Member<S: LimitStore> {
    site: Arc<Site<S>>,
    process: ProcessId,
    pool: SimPool<S>,
    /// Whether the library reads nonces by itself.
    reads: bool,
}

/// Starts a process and its workers.
pub fn start<S: LimitStore>(site: &Arc<Site<S>>) -> ProcessId {
    if !matches!(site.plan.scene, Scene::Pools | Scene::Robberies) {
        let rng = unpoisoned(&site.state).rng.fork(0);
        return match site.plan.scene {
            Scene::Limits => limiting::start(site, rng),
            Scene::Tokens => selecting::start(site, rng),
            _ => locking::start(site, rng),
        };
    }
    let process = site.world.start(site.plan.drift);
    let mut rng = unpoisoned(&site.state).rng.fork(process as u64);
    let shared = site.clone();
    site.world.spawn(process, async move {
        // What the library reads by itself it does not read under a fence.
        let reads = rng.in_thousand(800) && shared.plan.scene != Scene::Robberies;
        let options = shared.plan.options(process, &mut rng);
        let Some(pool) = open(&shared, process, options, reads).await else { return };
        unpoisoned(&shared.state).pools.insert(process, pool.clone());
        let member = Arc::new(Member { site: shared.clone(), process, pool, reads });
        for number in 0..shared.plan.workers {
            let (member, rng) = (member.clone(), rng.fork(number as u64));
            shared.world.spawn(process, async move { member.work(rng).await });
        }
        if shared.plan.misfortunes.contains(&Misfortune::Administration) {
            let rng = rng.fork(99);
            shared.world.spawn(process, async move { member.administer(rng).await });
        }
    });
    process
}

/// Opens the pool, for as long as it takes.
pub async fn open<S: LimitStore>(
    site: &Arc<Site<S>>,
    process: ProcessId,
    options: leasehold::client::PoolOptions,
    reads: bool,
) -> Option<SimPool<S>> {
    let defaults = OpenOptions { response_timeout: site.plan.response_timeout, ..OpenOptions::default() };
    let runtime = SimRuntime::new(&site.world, process);
    let leasehold = Leasehold::new((site.store)(process), runtime, defaults).expect("options that are right");
    for _ in 0..100 {
        let source = reads.then(|| Arc::new(site.chain.clone()) as ReadNonce);
        match leasehold.pool_with("relayers", options.clone(), source).await {
            Ok(pool) => return Some(pool),
            Err(_) => site.world.sleep(500_000).await,
        }
    }
    None
}

impl<S: LimitStore> Member<S> {
    async fn work(&self, mut rng: Rng) {
        while unpoisoned(&self.site.state).busy {
            let rest = rng.spread(2_000, self.site.plan.idle);
            self.site.world.sleep(rest).await;
            match self.acquire(&mut rng).await {
                Some(Ok(leases)) => {
                    let uses = leases.into_iter().map(|(lease, kept)| self.employ(lease, kept, rng.fork(1)));
                    join_all(uses.collect::<Vec<_>>()).await;
                }
                Some(Err(_)) => self.site.world.sleep(100_000).await,
                None => {}
            }
        }
    }

    /// Asks for leases, and says whether the library keeps them alive; `None` if it was dropped before its end.
    async fn acquire(&self, rng: &mut Rng) -> Option<Result<Vec<(SimLease<S>, bool)>, Error>> {
        let (site, plan) = (&self.site, &self.site.plan);
        let longest = plan.ttl(self.process);
        let timeout = *rng.pick(&[0, 30_000, 500_000, 2_000_000, 5_000_000, 9_000_000]);
        let mut options = AcquireOptions { timeout: Some(timeout), ..AcquireOptions::default() };
        if rng.in_thousand(200) {
            options.ttl = Some(rng.between(longest / 2, longest));
        }
        let ttl = options.ttl.unwrap_or(longest);
        if rng.in_thousand(300) && can_be_kept(ttl, plan.response_timeout) {
            options.keepalive = Some(*rng.pick(&[Keepalive::Third, Keepalive::Every(ttl / 8)]));
        }
        let kept = options.keepalive.is_some();
        if rng.in_thousand(100) {
            let id = &rng.pick(&plan.accounts).0;
            options.slots = SlotId::new(id).ok().map(|id| vec![id]);
        } else if rng.in_thousand(100) {
            options.count = Some(2);
            if rng.in_thousand(500) {
                let from = rng.below(plan.accounts.len() as u64) as usize;
                let named = plan.accounts.iter().cycle().skip(from).take(plan.accounts.len().min(3));
                options.slots = named.map(|(id, _)| SlotId::new(id).ok()).collect();
            }
        }
        let hasty = plan.factor < 1.0;
        if rng.in_thousand(if hasty { 700 } else { 200 }) {
            options.priority = Some(*rng.pick(&[-1, 1, 2]));
            // One that waits for the end of leases lets two never hold a slot.
            options.steal = rng.in_thousand(700).then_some(plan.factor);
        }
        options.count = options.count.or(Some(1));
        let acquire = unpoisoned(&site.state).next_acquire();
        let record = |what| site.history.record(site.world.now(), self.process, what);
        // An attempt without waiting may take one reply, and the chain's answer for each lease.
        let grace = if timeout == 0 { plan.response_timeout + plan.pool.ttl } else { 0 };
        record(What::AcquireBegan { acquire, timeout, grace });
        let patience = rng.in_thousand(plan.cancels).then(|| rng.spread(100, 3_000_000));
        let leases = match patience {
            None => Some(self.pool.acquire_many_with(options).await),
            Some(patience) => {
                let sleep = pin!(site.world.sleep(patience));
                match select(pin!(self.pool.acquire_many_with(options)), sleep).await {
                    Either::Left((leases, _)) => Some(leases),
                    Either::Right(_) => None,
                }
            }
        };
        let end = leases.as_ref().map(|leases| match leases {
            Ok(leases) => Ok(leases.len()),
            Err(error) => Err(error.code().as_str().to_owned()),
        });
        match &end {
            None => site.census.count("acquire dropped"),
            Some(Ok(count)) => site.census.add("leases", *count as u64),
            Some(Err(_)) => site.census.count("acquire refused"),
        }
        record(What::AcquireEnded { acquire, end });
        leases.iter().flatten().flatten().for_each(|lease| self.believe(lease));
        if kept || rng.in_thousand(200) {
            leases.iter().flatten().flatten().for_each(|lease| self.watch(lease));
        }
        leases.map(|leases| leases.map(|leases| leases.into_iter().map(|lease| (lease, kept)).collect()))
    }

    /// Records until when this process relies on the lease.
    fn believe(&self, lease: &SimLease<S>) {
        let world = &self.site.world;
        let until = world.when(self.process, world.local(self.process) + lease.remaining_micros());
        let believes = What::Believes { slot: lease.slot().to_owned(), fence: lease.fence(), until };
        self.site.history.record(world.now(), self.process, believes);
    }

    /// Has itself told of the end of the lease.
    fn watch(&self, lease: &SimLease<S>) {
        let (site, process, fence) = (self.site.clone(), self.process, lease.fence());
        let watched = What::Watched { slot: lease.slot().to_owned(), fence };
        site.history.record(site.world.now(), process, watched);
        let (lost, claimed) = (lease.lost(), lease.claimed());
        let shared = site.clone();
        self.site.world.spawn(process, async move {
            if claimed.await.is_some() {
                shared.census.count("told of a claimant");
                shared.history.record(shared.world.now(), process, What::ToldClaimed { fence });
            }
        });
        self.site.world.spawn(process, async move {
            if lost.await.is_some() {
                site.census.count("told of a loss");
                site.history.record(site.world.now(), process, What::ToldLost { fence });
            }
        });
    }

    async fn employ(&self, lease: SimLease<S>, kept: bool, mut rng: Rng) {
        let (site, ttl) = (&self.site, self.site.plan.ttl(self.process));
        if lease.nonce().is_none() && !self.learn(&lease).await {
            return self.end(lease, kept, &mut rng).await;
        }
        let mut next = lease.nonce();
        let obliging = rng.in_thousand(500);
        // Some hold on for as long as they are let.
        let steps = if rng.in_thousand(30) { 16 } else { rng.between(0, 3) };
        for _ in 0..steps {
            match rng.below(if steps > 3 { 4 } else { 11 }) {
                _ if steps > 3 && lease.remaining_micros() < ttl / 2 => self.renew(&lease).await,
                // To the brink, where a transaction is under way as the lease ends.
                10 => {
                    let left = lease.remaining_micros().saturating_sub(rng.spread(100, 400_000));
                    site.world.sleep(left).await;
                }
                // Sometimes past its end.
                0 => site.world.sleep(rng.between(ttl / 2, ttl * 5 / 4)).await,
                1..=3 => self.renew(&lease).await,
                _ => site.world.sleep(rng.spread(500, ttl / 3)).await,
            }
            if kept {
                self.believe(&lease);
            }
            if obliging && lease.is_claimed() {
                site.census.count("leases yielded");
                break;
            }
            let Some(nonce) = next else { break };
            next = match rng.in_thousand(700) {
                true => self.sign(&lease, nonce, &mut rng).await,
                false => Some(nonce),
            };
        }
        self.end(lease, kept, &mut rng).await;
    }

    /// Asks the chain where the library has not.
    async fn learn(&self, lease: &SimLease<S>) -> bool {
        if self.reads {
            return false;
        }
        let read = match self.site.plan.scene {
            Scene::Robberies => self.site.chain.read_under(lease.slot(), lease.fence()).await,
            _ => self.site.chain.read(lease.slot()).await,
        };
        match read {
            Ok(nonce) => lease.resync(nonce, false).await.is_ok(),
            Err(_) => false,
        }
    }

    async fn renew(&self, lease: &SimLease<S>) {
        let renewed = lease.renew().await;
        let error = renewed.as_ref().err().map(|error| error.code().as_str().to_owned());
        if renewed.is_ok() {
            self.site.census.count("renewals");
            self.believe(lease);
        }
        let answered = What::Answered { fence: lease.fence(), call: "renew", error };
        self.site.history.record(self.site.world.now(), self.process, answered);
    }

    /// Signs and sends if the lease is held at this moment. The nonce that may be signed with next.
    async fn sign(&self, lease: &SimLease<S>, nonce: u64, rng: &mut Rng) -> Option<u64> {
        let site = &self.site;
        let record = |what| site.history.record(site.world.now(), self.process, what);
        if !lease.is_held() {
            return None;
        }
        let transaction = site.chain.sign();
        let (account, fence) = (lease.slot().to_owned(), lease.fence());
        record(What::Signed { transaction, account: account.clone(), nonce, fence });
        site.census.count("transactions");
        if lease.nonce() == Some(nonce) && rng.in_thousand(50) {
            record(What::Vanished { transaction });
            lease.unused().expect("held");
            return None;
        }
        let told = site.chain.send(transaction, &account, nonce, fence);
        // Until it is told, it may be in: whoever drops the lease now leaves the nonce in doubt.
        lease.unknown().expect("held");
        let patience = site.world.sleep(rng.spread(20_000, 2_500_000));
        match select(told, pin!(patience)).await {
            Either::Left((Ok(Told::Accepted), _)) => {
                // Whether the record forbids it is for the checker to say.
                let said = lease.used(Some(nonce + 1)).err().map(|error| error.message().to_owned());
                if said.is_some() {
                    record(What::Answered { fence, call: "used", error: said });
                }
                Some(nonce + 1)
            }
            Either::Left((Ok(Told::Refused(expected)), _)) => {
                site.census.count("transactions refused");
                lease.rejected(Some(expected).filter(|_| rng.in_thousand(600))).expect("held");
                None
            }
            _ => None,
        }
    }

    /// Gives the lease back, drops it, or keeps it for ever.
    async fn end(&self, lease: SimLease<S>, kept: bool, rng: &mut Rng) {
        let site = &self.site;
        let fence = lease.fence();
        let record = |what| site.history.record(site.world.now(), self.process, what);
        match rng.below(20) {
            // One that the library keeps alive would be held to the end of the world.
            0 if !kept => {
                site.census.count("lease kept");
                let mut state = unpoisoned(&site.state);
                state.kept.entry(self.process).or_default().push(Box::new(lease));
            }
            1..=5 => record(What::Closed { fence }),
            _ => {
                record(What::Closed { fence });
                let cooldown = rng.in_thousand(200).then(|| rng.spread(10_000, 3_000_000));
                let error = lease.release_with(ReleaseOptions { cooldown }).await.err();
                let error = error.map(|error| error.code().as_str().to_owned());
                record(What::Answered { fence, call: "release", error });
            }
        }
    }

    async fn administer(&self, mut rng: Rng) {
        let site = &self.site;
        while unpoisoned(&site.state).busy {
            let pause = rng.between(2_000_000, 12_000_000);
            site.world.sleep(pause).await;
            let slot = rng.pick(&site.plan.accounts).0.clone();
            let (pool, rest) = (&self.pool, Duration::from_millis(rng.between(1, 3_000)));
            let done = match rng.below(8) {
                0 => pool.disable(&slot).await,
                1 => pool.drain(&slot).await,
                2 => pool.quarantine(&slot, rest).await,
                3 => pool.inspect(&[slot]).await.map(drop),
                4 => pool.list().await.map(drop),
                _ => pool.enable(&slot).await,
            };
            site.census.count(if done.is_ok() { "administration" } else { "administration failed" });
        }
    }
}
