//! Processes that lock names by a majority of servers.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::{Either, select};
use leasehold::client::{Keepalive, LockOptions, Locked, OpenOptions, Quorum};
use leasehold::store::redis::RedisStore;
use leasehold::{Error, Leasehold};

use crate::ballots::Hall;
use crate::history::What;
use crate::network::SimTransport;
use crate::plan::can_be_kept;
use crate::rng::Rng;
use crate::world::{ProcessId, SimRuntime, unpoisoned};

/// What a process reaches one server by.
type SimStore = RedisStore<SimTransport>;
/// What a process locks with.
pub type SimQuorum = Arc<Quorum<SimStore, SimRuntime>>;
/// What it holds.
pub type SimLocked = Locked<SimStore, SimRuntime>;

/// How long a process of the audit waits for a lock.
const PATIENCE: u64 = 30_000_000;

/// One process. It asks for one lock at a time, so that what a server grants it is for that.
struct Voter {
    hall: Arc<Hall>,
    process: ProcessId,
    quorum: SimQuorum,
}

/// Starts a process.
pub fn start(hall: &Arc<Hall>) -> ProcessId {
    let process = hall.world.start(true);
    let rng = unpoisoned(&hall.state).fork(process);
    let voter = Voter { hall: hall.clone(), process, quorum: open(hall, process) };
    unpoisoned(&hall.state).voters.insert(process, voter.quorum.clone());
    hall.world.spawn(process, async move { voter.work(rng).await });
    process
}

/// The servers as a process knows them. It asks nothing of them.
fn open(hall: &Arc<Hall>, process: ProcessId) -> SimQuorum {
    let plan = &hall.plan;
    let options =
        OpenOptions { response_timeout: plan.response_timeout, lock_ttl: plan.ttl, ..OpenOptions::default() };
    let mut known: Vec<_> = hall.servers.iter().collect();
    if plan.half_is_enough {
        // Of one server less than there are, a majority is half of all.
        let count = known.len();
        known.rotate_left(process % count);
        known.pop();
    }
    let handles = known.into_iter().map(|(network, _)| {
        let store = RedisStore::new(SimTransport::new(network, process, false));
        Leasehold::new(store, SimRuntime::new(&hall.world, process), options.clone())
            .expect("options that are right")
    });
    Arc::new(Quorum::new(handles.collect()).expect("a number of servers that is allowed"))
}

impl Voter {
    async fn work(&self, mut rng: Rng) {
        while unpoisoned(&self.hall.state).busy {
            let rest = rng.spread(2_000, 400_000);
            self.hall.world.sleep(rest).await;
            let options = self.options(&mut rng);
            match self.acquire(&options, &mut rng).await {
                Some(Ok(locked)) => self.hold(locked, &options, &mut rng).await,
                Some(Err(_)) => self.hall.world.sleep(50_000).await,
                None => {}
            }
        }
    }

    fn options(&self, rng: &mut Rng) -> LockOptions {
        let plan = &self.hall.plan;
        let mut options = LockOptions { keepalive: Keepalive::Off, ..self.quorum.lock_defaults() };
        options.timeout = *rng.pick(&[0, 30_000, 500_000, 2_000_000, 5_000_000]);
        if rng.in_thousand(200) {
            options.ttl = rng.between(plan.ttl / 2, plan.ttl);
        }
        if rng.in_thousand(600) && can_be_kept(options.ttl, plan.response_timeout) {
            options.keepalive = *rng.pick(&[Keepalive::Third, Keepalive::Every(options.ttl / 8)]);
        }
        options
    }

    /// Asks for one name or for all; `None` if that was dropped before its end.
    async fn acquire(&self, options: &LockOptions, rng: &mut Rng) -> Option<Result<SimLocked, Error>> {
        let (hall, plan) = (&self.hall, &self.hall.plan);
        let all = rng.in_thousand(200);
        let names: Vec<&str> = match all {
            true => plan.names.iter().map(String::as_str).collect(),
            false => vec![rng.pick(&plan.names).as_str()],
        };
        let lock = match self.quorum.lock_with(&names, options.clone()) {
            Ok(lock) => lock,
            Err(error) => return Some(Err(error)),
        };
        let acquire = unpoisoned(&hall.state).next_acquire();
        let record = |what| hall.history.record(hall.world.now(), self.process, what);
        // An attempt without waiting may take as long as answers may.
        let grace = if options.timeout == 0 { plan.response_timeout.min(options.ttl / 5) } else { 0 };
        record(What::AcquireBegan { acquire, timeout: options.timeout, grace });
        let patience = rng.in_thousand(plan.cancels).then(|| rng.spread(100, 3_000_000));
        let locked = match patience {
            None => Some(lock.acquire().await),
            Some(patience) => {
                let sleep = pin!(hall.world.sleep(patience));
                match select(pin!(lock.acquire()), sleep).await {
                    Either::Left((locked, _)) => Some(locked),
                    Either::Right(_) => None,
                }
            }
        };
        let end = locked.as_ref().map(|locked| match locked {
            Ok(locked) => Ok(locked.names().count()),
            Err(error) => Err(error.code().as_str().to_owned()),
        });
        hall.census.count(match end.as_ref().map(|end| end.as_ref().map_err(String::as_str)) {
            None => "vote dropped",
            Some(Ok(_)) => "locks by majority",
            Some(Err("store_unavailable")) => "majority not reached",
            Some(Err(_)) => "vote lost",
        });
        record(What::AcquireEnded { acquire, end });
        if let Some(Ok(locked)) = &locked {
            self.believe(locked);
            if options.keepalive != Keepalive::Off || rng.in_thousand(300) {
                self.watch(locked);
            }
        }
        locked
    }

    /// Records until when this process relies on each of the names.
    fn believe(&self, locked: &SimLocked) {
        let (world, fence) = (&self.hall.world, locked.fence());
        let until = world.when(self.process, world.local(self.process) + locked.remaining_micros());
        for name in locked.names() {
            let believes = What::Believes { slot: name.to_owned(), fence, until };
            self.hall.history.record(world.now(), self.process, believes);
        }
    }

    /// Has itself told of the end of the lock.
    fn watch(&self, locked: &SimLocked) {
        let (hall, process, fence) = (self.hall.clone(), self.process, locked.fence());
        for name in locked.names() {
            let watched = What::Watched { slot: name.to_owned(), fence };
            hall.history.record(hall.world.now(), process, watched);
        }
        let lost = locked.lost();
        self.hall.world.spawn(process, async move {
            if lost.await.is_some() {
                hall.census.count("lock lost");
                hall.history.record(hall.world.now(), process, What::ToldLost { fence });
            }
        });
    }

    async fn hold(&self, locked: SimLocked, options: &LockOptions, rng: &mut Rng) {
        let (world, ttl) = (&self.hall.world, options.ttl);
        for _ in 0..rng.between(0, 4) {
            match rng.below(10) {
                // To the brink, and sometimes past the end.
                0 => world.sleep(locked.remaining_micros().saturating_sub(rng.spread(100, 400_000))).await,
                1 | 2 => world.sleep(rng.between(ttl / 2, ttl * 5 / 4)).await,
                _ => world.sleep(rng.spread(500, ttl / 3)).await,
            }
            if !locked.is_held() {
                break;
            }
            self.believe(&locked);
        }
        // One that the library keeps alive would be held to the end of the world.
        if options.keepalive == Keepalive::Off && rng.in_thousand(50) {
            self.hall.census.count("lock kept");
            unpoisoned(&self.hall.state).kept.entry(self.process).or_default().push(locked);
            return;
        }
        self.end(locked, rng.in_thousand(700)).await;
    }

    /// Gives the lock back, or drops it.
    async fn end(&self, locked: SimLocked, gives_back: bool) -> Option<Error> {
        let (hall, fence) = (&self.hall, locked.fence());
        let record = |what| hall.history.record(hall.world.now(), self.process, what);
        record(What::Closed { fence });
        if !gives_back {
            return None;
        }
        let error = locked.release().await.err();
        let code = error.as_ref().map(|error| error.code().as_str().to_owned());
        record(What::Answered { fence, call: "release", error: code });
        error
    }

    /// Locks each name a few times, beside all others who do so; one of them holds one for longer than it lives without
    /// renewals.
    async fn try_out(&self, rng: &mut Rng, patient: bool) -> Result<(), String> {
        let told = |error: Error| error.to_string();
        for round in 0..4 {
            let plan = &self.hall.plan;
            let keeps = patient && round == 3 && can_be_kept(plan.ttl, plan.response_timeout);
            let keepalive = if keeps { Keepalive::Third } else { Keepalive::Off };
            let options = LockOptions { timeout: PATIENCE, keepalive, ..self.quorum.lock_defaults() };
            let Some(locked) = self.acquire(&options, rng).await else { continue };
            let locked = locked.map_err(told)?;
            self.hall.world.sleep(if keeps { plan.ttl * 3 / 2 } else { 20_000 }).await;
            if !locked.is_held() {
                return Err("it did not last".to_owned());
            }
            self.believe(&locked);
            match self.end(locked, round % 2 == 1).await {
                Some(error) => return Err(told(error)),
                None => self.hall.world.sleep(rng.spread(2_000, 100_000)).await,
            }
        }
        Ok(())
    }
}

/// Sees that every process that is left, and a new one, can lock by majority: all at once, and each is served.
pub fn go_on(hall: &Arc<Hall>) {
    let new = hall.world.start(true);
    let mut voters = unpoisoned(&hall.state).voters.clone();
    voters.insert(new, open(hall, new));
    for (process, quorum) in voters {
        let voter = Voter { hall: hall.clone(), process, quorum };
        let mut rng = unpoisoned(&hall.state).fork(process);
        hall.world.spawn(process, async move {
            let failure = voter.try_out(&mut rng, process == new).await.err();
            let audited = What::Audited { slot: format!("process {process}"), failure };
            voter.hall.history.record(voter.hall.world.now(), process, audited);
        });
    }
}
