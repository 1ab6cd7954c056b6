//! Worlds in which names are locked by a majority of servers that know nothing of each other: their plans, the
//! misfortunes of each server, and the verdict.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::census::Census;
use crate::checker::{self, Rules, Violation};
use crate::history::{Event, History, What};
use crate::majority::{self, MajorityRules};
use crate::network::{Cut, Network, Odds, record_reach};
use crate::planted::{Planted, PlantedFault};
use crate::rng::Rng;
use crate::server::Server;
use crate::voting;
use crate::world::{NATURE, ProcessId, World, unpoisoned};

const SECOND: u64 = 1_000_000;
/// How long after the storm all that waits must have ended, leases and quiet times with it.
const CALM: u64 = 20 * SECOND;
/// How long the processes that are left may take to lock everything again.
const AUDIT: u64 = 60 * SECOND;
/// What a clock is nudged forward by.
const NUDGE: i64 = 100;
/// By so much a clock may be set forward within one time to live: of the margin of a lease the drift of clocks leaves it.
const TOLERATED: i64 = 1_000;

/// What befalls one server, or one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mishap {
    /// Nobody can connect to it.
    Outage,
    /// Connections to it break or hang.
    Blackout,
    /// It does not answer for a time.
    Hang,
    /// It is down for a time, and starts without its data.
    Wipe,
    /// It restarts with its data.
    Restart,
    /// A replica that lags behind takes over.
    Promotion,
    /// Its clock is set back.
    ClockBack,
    /// Its clock is set forward by what is tolerated.
    ClockNudged,
    /// Its clock is set forward by more: two may hold a name then.
    ClockForward,
    /// Its keys are deleted while it runs: the same.
    Flush,
    /// A process cannot reach it.
    Partition,
    /// All servers, one after the other, start without their data.
    RollingWipe,
    /// A process is killed, and another started in its place.
    Crash,
    /// A process is stopped for a time.
    Pause,
}

/// The plan of a world.
#[derive(Clone, Debug)]
pub struct BallotPlan {
    /// How many servers there are.
    pub servers: usize,
    /// All names that are locked.
    pub names: Vec<String>,
    /// Processes at one time.
    pub processes: usize,
    /// The longest time to live of a lock without a renewal.
    pub ttl: u64,
    /// How long one reply may take.
    pub response_timeout: u64,
    /// How long the faults last.
    pub storm: u64,
    /// What happens, and the mean time between two.
    pub mishaps: Vec<Mishap>,
    /// The mean time between two mishaps.
    pub interval: u64,
    /// Misfortunes of single messages.
    pub odds: Odds,
    /// How far the servers' clocks are apart in the beginning, at most.
    pub apart: u64,
    /// How often, in thousandths, an acquisition is dropped before its end.
    pub cancels: u64,
    /// Whether a bug is planted: every process counts half of an even number of servers as enough.
    pub half_is_enough: bool,
}

impl BallotPlan {
    fn new(rng: &mut Rng) -> Self {
        use Mishap::*;
        let kinds =
            [Outage, Blackout, Hang, Wipe, Wipe, Restart, Promotion, Partition, RollingWipe, Crash, Pause];
        let mut mishaps: Vec<Mishap> = kinds.into_iter().filter(|_| rng.in_thousand(450)).collect();
        // What shifts clocks and what deletes keys apart: both are more than fences are promised to survive.
        match rng.below(8) {
            0 | 1 => mishaps.extend([ClockBack, ClockNudged]),
            2 => mishaps.push(ClockForward),
            3 => mishaps.push(Flush),
            _ => {}
        }
        let odds = Odds::of_storm(rng);
        BallotPlan {
            servers: *rng.pick(&[2, 3, 3, 3, 4, 5, 5]),
            names: (1..=rng.between(1, 2)).map(|name| format!("account:{name}")).collect(),
            processes: rng.between(2, 4) as usize,
            ttl: rng.between(3 * SECOND, 6 * SECOND),
            response_timeout: rng.between(SECOND / 5, SECOND),
            storm: rng.between(25, 40) * SECOND,
            mishaps,
            interval: rng.between(1, 4) * SECOND,
            odds,
            apart: *rng.pick(&[0, 0, 50_000, 3 * SECOND]),
            cancels: *rng.pick(&[0, 100, 300]),
            half_is_enough: false,
        }
    }
}

/// Where all processes are.
pub struct Hall {
    /// The world.
    pub world: World,
    /// Its record, without those of the servers.
    pub history: History,
    /// Its counts.
    pub census: Census,
    /// Its plan.
    pub plan: BallotPlan,
    /// The servers, each behind a network of its own, with their records.
    pub servers: Vec<(Network, History)>,
    /// What changes.
    pub state: Mutex<HallState>,
}

/// What changes of it.
pub struct HallState {
    /// Whether the processes go on.
    pub busy: bool,
    /// Those that live, and what they lock with.
    pub voters: BTreeMap<ProcessId, voting::SimQuorum>,
    /// Locks that are neither given back nor dropped, by process.
    pub kept: BTreeMap<ProcessId, Vec<voting::SimLocked>>,
    acquires: u64,
    rng: Rng,
}

impl HallState {
    /// A new acquisition's number.
    pub fn next_acquire(&mut self) -> u64 {
        self.acquires += 1;
        self.acquires
    }

    /// Randomness of a new process.
    pub fn fork(&mut self, process: ProcessId) -> Rng {
        self.rng.fork(process as u64)
    }
}

/// What became of a world.
pub struct Vote {
    /// Its plan.
    pub plan: BallotPlan,
    /// The first rule that was broken.
    pub violation: Option<Violation>,
    /// Everything that happened: at which server, or to no server.
    pub events: Vec<(Option<usize>, Event)>,
    /// How long it lasted, in virtual time.
    pub lasted: u64,
}

/// Plays the world of a seed. Counts go to `census`.
pub fn vote(seed: u64, bug: Option<Planted>, census: &Census) -> Vote {
    let mut rng = Rng::new(seed ^ 0x5155_4F52_554D);
    let mut plan = BallotPlan::new(&mut rng);
    if matches!(bug, Some(Planted { fault: PlantedFault::HalfIsEnough, .. })) {
        (plan.servers, plan.half_is_enough) = (4, true);
    }
    let world = World::new(rng.bits());
    let history = History::default();
    let servers: Vec<(Network, History)> = (0..plan.servers)
        .map(|number| {
            let history = History::default();
            let network = Network::new(&world, &history, census, rng.fork(number as u64), plan.odds, bug);
            let ahead = rng.below(plan.apart + 1) as i64;
            network.with_server(|server| server.step_clock(0, ahead, &History::default()));
            (network, history)
        })
        .collect();
    let state = HallState {
        busy: true,
        voters: BTreeMap::new(),
        kept: BTreeMap::new(),
        acquires: 0,
        rng: rng.fork(20),
    };
    let hall = Arc::new(Hall {
        world: world.clone(),
        history: history.clone(),
        census: census.clone(),
        plan: plan.clone(),
        servers,
        state: Mutex::new(state),
    });
    for _ in 0..plan.processes {
        voting::start(&hall);
    }
    hall.clone().rage(rng.fork(21));
    world.run_until(plan.storm);
    unpoisoned(&hall.state).busy = false;
    for (network, _) in &hall.servers {
        network.calm();
        record_reach(network, true);
    }
    world.run_until(plan.storm + CALM);
    for history in hall.servers.iter().map(|(_, history)| history).chain([&history]) {
        history.record(world.now(), NATURE, What::Calm);
    }
    voting::go_on(&hall);
    world.run_until(plan.storm + CALM + AUDIT);
    for (network, history) in &hall.servers {
        let left = network.with_server(|server| server.records(world.now()));
        history.record(world.now(), NATURE, What::LeftBehind(left));
    }
    let lasted = world.now();
    world.end();
    let left = {
        let mut state = unpoisoned(&hall.state);
        (std::mem::take(&mut state.voters), std::mem::take(&mut state.kept))
    };
    drop(left);
    judged(&hall, lasted)
}

fn judged(hall: &Hall, lasted: u64) -> Vote {
    let plan = hall.plan.clone();
    // What one server does is judged as if there were no other.
    let rules = Rules {
        ttl: plan.ttl,
        response_timeout: plan.response_timeout,
        doubt_rest: 0,
        accounts: Vec::new(),
        mixed: false,
        workers: 1,
        drift: true,
        patience: 0,
        prompt: None,
    };
    let records: Vec<Vec<Event>> = hall.servers.iter().map(|(_, history)| history.take()).collect();
    let alone = records.iter().filter_map(|events| checker::judge(&rules, events, &hall.census));
    let first = alone.min_by_key(|violation| violation.at);
    // Of one moment the servers are first: their answers take their way.
    let numbered = records
        .into_iter()
        .zip(0..)
        .flat_map(|(events, server)| events.into_iter().map(move |event| (Some(server), event)));
    let mut events: Vec<(Option<usize>, Event)> = numbered.collect();
    events.extend(hall.history.take().into_iter().map(|event| (None, event)));
    events.sort_by_key(|(_, event)| event.at);
    let rules = MajorityRules { servers: plan.servers, ttl: plan.ttl, tolerated: TOLERATED };
    let violation = majority::judge(&rules, &events, &hall.census);
    let violation = match (violation, first) {
        (Some(one), Some(other)) => Some(if other.at < one.at { other } else { one }),
        (one, other) => one.or(other),
    };
    hall.census.add("events", events.len() as u64);
    Vote { plan, violation, events, lasted }
}

impl Hall {
    /// Lets mishaps happen until the storm is over.
    fn rage(self: Arc<Self>, mut rng: Rng) {
        if self.plan.mishaps.is_empty() {
            return;
        }
        let world = self.world.clone();
        world.clone().spawn(NATURE, async move {
            while unpoisoned(&self.state).busy {
                let interval = self.plan.interval;
                world.sleep(rng.between(interval / 4, interval * 7 / 4)).await;
                let mishap = *rng.pick(&self.plan.mishaps);
                let (hall, rng) = (self.clone(), rng.fork(1));
                world.spawn(NATURE, async move { hall.strike(mishap, rng).await });
            }
        });
    }

    async fn strike(self: &Arc<Self>, mishap: Mishap, mut rng: Rng) {
        let (world, ttl) = (&self.world, self.plan.ttl);
        let number = rng.below(self.servers.len() as u64) as usize;
        let (network, history) = &self.servers[number];
        let act = |act: &dyn Fn(&mut Server)| network.with_server(act);
        match mishap {
            Mishap::Outage | Mishap::Blackout => {
                let refused = mishap == Mishap::Outage;
                self.census.count(if refused { "server cut off" } else { "server silent" });
                let time = rng.spread(200_000, 3 * ttl);
                self.cut(number, if refused { Cut::Refused } else { Cut::Silent }, time).await;
            }
            Mishap::Hang => {
                self.census.count("server hung");
                network.hang(world.now() + rng.spread(200_000, 2 * ttl));
            }
            Mishap::Wipe => self.wipe(number, rng.spread(1_000, 2 * ttl)).await,
            Mishap::RollingWipe => {
                self.census.count("all servers restarted one by one");
                for number in 0..self.servers.len() {
                    self.wipe(number, rng.spread(1_000, 500_000)).await;
                    world.sleep(rng.spread(1_000, ttl / 2)).await;
                }
            }
            Mishap::Restart => {
                self.census.count("restart");
                act(&|server| server.restart(world.now(), history));
            }
            Mishap::Promotion => {
                if !network.with_server(|server| server.copy(world.now(), history)) {
                    return;
                }
                world.sleep(rng.spread(1_000, 3_000_000)).await;
                if network.with_server(|server| server.promote(world.now(), history)) {
                    self.census.count("promotion");
                }
            }
            Mishap::ClockBack => {
                self.census.count("clock set back");
                let by = rng.spread(1_000, ttl / 2) as i64;
                act(&|server| server.step_clock(world.now(), -by, history));
            }
            Mishap::ClockNudged => {
                self.census.count("clock nudged");
                act(&|server| server.step_clock(world.now(), NUDGE, history));
            }
            Mishap::ClockForward => {
                self.census.count("clock set forward");
                let by = rng.spread(100_000, 20_000_000) as i64;
                act(&|server| server.step_clock(world.now(), by, history));
            }
            Mishap::Flush => {
                if network.with_server(|server| server.flush(world.now(), history)) {
                    self.census.count("keys deleted");
                }
            }
            Mishap::Partition => {
                let Some(process) = self.any_process(&mut rng) else { return };
                self.census.count("partition");
                network.cut(process, Some(*rng.pick(&[Cut::Refused, Cut::Silent])));
                world.sleep(rng.spread(200_000, 3 * ttl)).await;
                network.cut(process, None);
            }
            Mishap::Crash => {
                let Some(process) = self.any_process(&mut rng) else { return };
                self.census.count("crash");
                world.pause(process, false);
                self.servers.iter().for_each(|(network, _)| network.detach(process));
                self.history.record(world.now(), process, What::Killed);
                world.kill(process);
                let left = {
                    let mut state = unpoisoned(&self.state);
                    (state.voters.remove(&process), state.kept.remove(&process))
                };
                drop(left);
                world.sleep(rng.spread(1_000, 4_000_000)).await;
                if unpoisoned(&self.state).busy {
                    voting::start(self);
                }
            }
            Mishap::Pause => {
                let Some(process) = self.any_process(&mut rng) else { return };
                self.census.count("pause");
                self.history.record(world.now(), process, What::Paused(true));
                world.pause(process, true);
                world.sleep(rng.spread(10_000, 2 * ttl)).await;
                self.history.record(world.now(), process, What::Paused(false));
                world.pause(process, false);
            }
        }
    }

    async fn cut(&self, number: usize, cut: Cut, time: u64) {
        let (network, _) = &self.servers[number];
        network.cut(NATURE, Some(cut));
        record_reach(network, false);
        self.world.sleep(time).await;
        network.cut(NATURE, None);
        record_reach(network, true);
    }

    /// A server is down for a time, and starts without its data.
    async fn wipe(&self, number: usize, down: u64) {
        self.census.count("restart without data");
        self.cut(number, Cut::Refused, down).await;
        let (network, history) = &self.servers[number];
        network.with_server(|server| server.wipe(self.world.now(), history));
    }

    fn any_process(&self, rng: &mut Rng) -> Option<ProcessId> {
        let processes: Vec<ProcessId> = unpoisoned(&self.state).voters.keys().copied().collect();
        (!processes.is_empty()).then(|| *rng.pick(&processes))
    }
}
