//! Processes that lock names: one or several at once, for themselves or shared within the process, some of them
//! in a hurry.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures_util::future::{Either, select};
use leasehold::client::{Keepalive, Lock, LockOptions, Locked, OpenOptions};
use leasehold::store::LimitStore;
use leasehold::{Error, Leasehold};

use crate::history::What;
use crate::plan::can_be_kept;
use crate::rng::Rng;
use crate::workload::Site;
use crate::world::{ProcessId, SimRuntime, unpoisoned};

/// What a process locks with.
pub type SimHandle<S> = Leasehold<S, SimRuntime>;
type SimLock<S> = Lock<S, SimRuntime>;
type SimLocked<S> = Locked<S, SimRuntime>;

/// One process, as its tasks share it.
struct Member<S: LimitStore> {
    site: Arc<Site<S>>,
    process: ProcessId,
    handle: SimHandle<S>,
    /// Those that its workers acquire again while they hold them.
    shared: Vec<SimLock<S>>,
    /// How many of them rely on a lock, by its fence.
    shares: Mutex<HashMap<u64, usize>>,
}

/// What one worker has of a lock.
struct Share<S: LimitStore> {
    locked: SimLocked<S>,
    options: LockOptions,
    /// Whether it is to be told of its end.
    listens: bool,
}

/// Starts a process and its workers.
pub fn start<S: LimitStore>(site: &Arc<Site<S>>, mut rng: Rng) -> ProcessId {
    let process = site.world.start(site.plan.drift);
    let handle = open(site, process);
    unpoisoned(&site.state).lockers.insert(process, handle.clone());
    let shared = (0..2).filter_map(|_| lock(&handle, &site.plan.some_names(&mut rng)).ok()).collect();
    let member = Arc::new(Member { site: site.clone(), process, handle, shared, shares: Mutex::default() });
    for number in 0..site.plan.workers {
        let (member, rng) = (member.clone(), rng.fork(number as u64));
        site.world.spawn(process, async move { member.work(rng).await });
    }
    process
}

/// A handle of a process. It asks nothing of the store.
pub fn open<S: LimitStore>(site: &Arc<Site<S>>, process: ProcessId) -> SimHandle<S> {
    let options = OpenOptions {
        response_timeout: site.plan.response_timeout,
        lock_ttl: site.plan.ttl(process),
        ..OpenOptions::default()
    };
    Leasehold::new((site.store)(process), SimRuntime::new(&site.world, process), options)
        .expect("options that are right")
}

/// A lock of these names.
///
/// # Errors
/// As the library's.
pub fn lock<S: LimitStore>(handle: &SimHandle<S>, names: &[String]) -> Result<SimLock<S>, Error> {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    // Renewed by who asks for that: the default of a handle may be too short for its response timeout.
    let options = LockOptions { keepalive: Keepalive::Off, ..handle.lock_defaults() };
    handle.lock_with(&names, options)
}

impl<S: LimitStore> Member<S> {
    async fn work(self: &Arc<Self>, mut rng: Rng) {
        while unpoisoned(&self.site.state).busy {
            let rest = rng.spread(2_000, 400_000);
            self.site.world.sleep(rest).await;
            match self.acquire(&mut rng).await {
                Some(Ok(share)) => self.hold(share, &mut rng).await,
                Some(Err(_)) => self.site.world.sleep(50_000).await,
                None => {}
            }
        }
    }

    fn options(&self, rng: &mut Rng) -> LockOptions {
        let plan = &self.site.plan;
        let mut options = LockOptions { keepalive: Keepalive::Off, ..self.handle.lock_defaults() };
        options.timeout = *rng.pick(&[0, 30_000, 500_000, 2_000_000, 5_000_000, 9_000_000]);
        if rng.in_thousand(200) {
            let longest = plan.ttl(self.process);
            options.ttl = rng.between(longest / 2, longest);
        }
        if rng.in_thousand(500) && can_be_kept(options.ttl, plan.response_timeout) {
            options.keepalive = *rng.pick(&[Keepalive::Third, Keepalive::Every(options.ttl / 8)]);
        }
        let thievish = plan.factor < 1.0;
        if rng.in_thousand(if thievish { 700 } else { 300 }) {
            options.priority = *rng.pick(&[-1, 1, 2]);
            // One that waits for the end of leases lets two never hold a name.
            options.steal = rng.in_thousand(if thievish { 800 } else { 500 }).then_some(plan.factor);
        }
        options.reentrant = rng.in_thousand(250);
        options
    }

    /// Asks for a lock; `None` if that was dropped before its end.
    async fn acquire(self: &Arc<Self>, rng: &mut Rng) -> Option<Result<Share<S>, Error>> {
        let (site, plan, options) = (&self.site, &self.site.plan, self.options(rng));
        let lock = match options.reentrant && !self.shared.is_empty() {
            true => rng.pick(&self.shared).clone(),
            false => match lock(&self.handle, &plan.some_names(rng)) {
                Ok(lock) => lock,
                Err(error) => return Some(Err(error)),
            },
        };
        let acquire = unpoisoned(&site.state).next_acquire();
        let record = |what| site.history.record(site.world.now(), self.process, what);
        // An attempt without waiting may take one reply.
        let grace = if options.timeout == 0 { plan.response_timeout } else { 0 };
        record(What::AcquireBegan { acquire, timeout: options.timeout, grace });
        let patience = rng.in_thousand(plan.cancels).then(|| rng.spread(100, 3_000_000));
        let locked = match patience {
            None => Some(lock.acquire_with(options.clone()).await),
            Some(patience) => {
                let sleep = pin!(site.world.sleep(patience));
                match select(pin!(lock.acquire_with(options.clone())), sleep).await {
                    Either::Left((locked, _)) => Some(locked),
                    Either::Right(_) => None,
                }
            }
        };
        let end = locked.as_ref().map(|locked| match locked {
            Ok(locked) => Ok(locked.names().count()),
            Err(error) => Err(error.code().as_str().to_owned()),
        });
        match &end {
            None => site.census.count("lock dropped"),
            Some(Ok(count)) => site.census.count(if *count > 1 { "locks of several names" } else { "locks" }),
            Some(Err(_)) => site.census.count("lock refused"),
        }
        record(What::AcquireEnded { acquire, end });
        let locked = match locked? {
            Ok(locked) => locked,
            Err(error) => return Some(Err(error)),
        };
        self.believe(&locked);
        let shares = {
            let mut all = unpoisoned(&self.shares);
            let shares = all.entry(locked.fence()).or_default();
            *shares += 1;
            *shares
        };
        if shares > 1 {
            site.census.count("lock joined");
        }
        let listens = options.keepalive != Keepalive::Off || rng.in_thousand(200);
        if listens {
            self.watch(&locked);
        }
        Some(Ok(Share { locked, options, listens }))
    }

    /// Records until when this process relies on each of the names.
    fn believe(&self, locked: &SimLocked<S>) {
        let (world, fence) = (&self.site.world, locked.fence());
        let until = world.when(self.process, world.local(self.process) + locked.remaining_micros());
        for name in locked.names() {
            let believes = What::Believes { slot: name.to_owned(), fence, until };
            self.site.history.record(world.now(), self.process, believes);
        }
    }

    /// Has itself told of the end of the lock.
    fn watch(&self, locked: &SimLocked<S>) {
        let (site, process, fence) = (self.site.clone(), self.process, locked.fence());
        for name in locked.names() {
            let watched = What::Watched { slot: name.to_owned(), fence };
            site.history.record(site.world.now(), process, watched);
        }
        let (lost, claimed) = (locked.lost(), locked.claimed());
        let shared = self.site.clone();
        self.site.world.spawn(process, async move {
            if claimed.await.is_some() {
                shared.census.count("lock claimed");
                shared.history.record(shared.world.now(), process, What::ToldClaimed { fence });
            }
        });
        self.site.world.spawn(process, async move {
            if lost.await.is_some() {
                site.census.count("lock lost");
                site.history.record(site.world.now(), process, What::ToldLost { fence });
            }
        });
    }

    async fn hold(self: &Arc<Self>, share: Share<S>, rng: &mut Rng) {
        let (site, locked, ttl) = (&self.site, &share.locked, share.options.ttl);
        let obliging = rng.in_thousand(500);
        for _ in 0..rng.between(0, 3) {
            self.write(locked, rng);
            match rng.below(10) {
                // To the brink, and sometimes past the end.
                0 => {
                    site.world.sleep(locked.remaining_micros().saturating_sub(rng.spread(100, 400_000))).await
                }
                1 => site.world.sleep(rng.between(ttl / 2, ttl * 5 / 4)).await,
                // Who holds one and waits for another may stand in the way of who does so the other way round.
                2 => {
                    if let Some(Ok(other)) = self.acquire(rng).await {
                        self.end(other, rng).await;
                    }
                }
                _ => site.world.sleep(rng.spread(500, ttl / 3)).await,
            }
            if locked.is_held() {
                self.believe(locked);
            }
            if obliging && locked.is_claimed() {
                site.census.count("lock yielded");
                break;
            }
        }
        self.write(locked, rng);
        self.end(share, rng).await;
    }

    /// Writes to what the lock guards, whether or not it is still held: that is for the resource to see.
    fn write(&self, locked: &SimLocked<S>, rng: &mut Rng) {
        // The other scenes draw as they did.
        if self.site.plan.factor < 1.0 {
            for name in locked.names() {
                self.site.resources.write(name, locked.fence(), rng.spread(500, 2_000_000));
            }
        }
    }

    /// Gives the lock back, drops it, or keeps it for ever.
    async fn end(&self, share: Share<S>, rng: &mut Rng) {
        let Share { locked, options, listens } = share;
        let (site, fence) = (&self.site, locked.fence());
        let way = rng.below(20);
        // One that the library keeps alive would be held to the end of the world, by all who share it.
        if way == 0 && options.keepalive == Keepalive::Off && !options.reentrant {
            site.census.count("lock kept");
            unpoisoned(&site.state).kept.entry(self.process).or_default().push(Box::new(locked));
            return;
        }
        let record = |what| site.history.record(site.world.now(), self.process, what);
        if self.was_last(fence) {
            record(What::Closed { fence });
        } else if listens && cfg!(feature = "crowds") {
            record(What::Unwatched { fence });
        }
        if way > 5 {
            let error = locked.release().await.err().map(|error| error.code().as_str().to_owned());
            record(What::Answered { fence, call: "release", error });
        }
    }

    /// Whether nobody else in this process relies on the lock of this fence.
    fn was_last(&self, fence: u64) -> bool {
        let mut all = unpoisoned(&self.shares);
        let left = all.get(&fence).map_or(0, |shares| shares - 1);
        match left {
            0 => all.remove(&fence),
            left => all.insert(fence, left),
        };
        left == 0
    }
}

/// Sees that every process that is left can lock all names together, all at once and each in an order of its own.
pub fn go_on<S: LimitStore>(site: &Arc<Site<S>>) {
    let lockers = unpoisoned(&site.state).lockers.clone();
    for ((process, handle), turned) in lockers.into_iter().zip(0..) {
        let mut names = site.plan.names.clone();
        let count = names.len();
        names.rotate_left(turned % count);
        let shared = site.clone();
        site.world.spawn(process, async move {
            let failure = try_out(&shared, &handle, &names).await.err();
            audited(&shared, process, format!("process {process}"), failure);
        });
    }
}

/// Has a new process lock every name.
pub fn audit<S: LimitStore>(site: &Arc<Site<S>>) {
    let process = site.world.start(false);
    let shared = site.clone();
    site.world.spawn(process, async move {
        let handle = open(&shared, process);
        for name in &shared.plan.names {
            let failure = try_out(&shared, &handle, std::slice::from_ref(name)).await.err();
            audited(&shared, process, name.clone(), failure);
        }
    });
}

async fn try_out<S: LimitStore>(
    site: &Arc<Site<S>>,
    handle: &SimHandle<S>,
    names: &[String],
) -> Result<(), String> {
    let told = |error: Error| error.to_string();
    let lock = lock(handle, names).map_err(told)?;
    let options = LockOptions { timeout: 20_000_000, keepalive: Keepalive::Off, ..handle.lock_defaults() };
    let locked = lock.acquire_with(options).await.map_err(told)?;
    site.world.sleep(10_000).await;
    locked.release().await.map_err(told)
}

fn audited<S: LimitStore>(site: &Arc<Site<S>>, process: ProcessId, slot: String, failure: Option<String>) {
    site.history.record(site.world.now(), process, What::Audited { slot, failure });
}
