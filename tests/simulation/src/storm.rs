//! The misfortunes of a world, one after the other and over each other, until the calm.

use std::pin::pin;
use std::sync::Arc;

use futures_util::future::select;
use leasehold::store::LimitStore;
use leasehold::value::Value;
use leasehold_embedded::Fault;

use crate::history::What;
use crate::network::{Cut, Network, record_reach};
use crate::plan::Misfortune;
use crate::rng::Rng;
use crate::workload::{Site, start};
use crate::world::{NATURE, ProcessId, unpoisoned};

/// What misfortunes need.
pub struct Storm<S: LimitStore> {
    /// Where they happen.
    pub site: Arc<Site<S>>,
    /// The network, if the store is behind one.
    pub network: Option<Network>,
}

impl<S: LimitStore> Storm<S> {
    /// Lets misfortunes happen until the plan's storm is over.
    pub fn rage(self: Arc<Self>, mut rng: Rng) {
        let world = self.site.world.clone();
        if self.site.plan.misfortunes.is_empty() {
            return;
        }
        world.clone().spawn(NATURE, async move {
            let mut set_back = false;
            while unpoisoned(&self.site.state).busy {
                let interval = self.site.plan.interval;
                let pause = rng.between(interval / 4, interval * 7 / 4);
                world.sleep(pause).await;
                let kind = *rng.pick(&self.site.plan.misfortunes);
                // A clock that is set back further than the longest lease, and memory lost on top, is more
                // than fences are promised to survive: once for a world, and by less.
                if kind == Misfortune::ClockBack && std::mem::replace(&mut set_back, true) {
                    continue;
                }
                let (storm, rng) = (self.clone(), rng.fork(1));
                world.spawn(NATURE, async move { storm.strike(kind, rng).await });
            }
        });
    }

    async fn strike(&self, kind: Misfortune, mut rng: Rng) {
        let ttl = self.site.plan.pool.ttl;
        match (&self.network, kind) {
            (_, Misfortune::Crash) => self.crash(&mut rng).await,
            (_, Misfortune::Pause) => self.pause(&mut rng).await,
            (_, Misfortune::Break) => self.break_lease(&mut rng).await,
            (_, Misfortune::Removal) => self.remove(&mut rng).await,
            (Some(network), Misfortune::Outage) => self.cut(network, Cut::Refused, &mut rng).await,
            (Some(network), Misfortune::Blackout) => self.cut(network, Cut::Silent, &mut rng).await,
            (Some(network), Misfortune::Partition) => {
                let Some(process) = self.any_process(&mut rng) else { return };
                self.count("partition");
                network.cut(process, Some(*rng.pick(&[Cut::Refused, Cut::Silent])));
                self.site.world.sleep(rng.spread(200_000, 2 * ttl)).await;
                network.cut(process, None);
            }
            (Some(network), Misfortune::Hang) => {
                self.count("server hung");
                network.hang(self.site.world.now() + rng.spread(200_000, 16_000_000));
            }
            (Some(network), Misfortune::Flush) => self.flush(network, &mut rng).await,
            (Some(network), Misfortune::Refusal) => self.refuse(network, &mut rng).await,
            (Some(network), kind) => self.disturb(network, kind, &mut rng).await,
            (None, _) => {}
        }
    }

    /// What befalls the server in a moment.
    async fn disturb(&self, network: &Network, kind: Misfortune, rng: &mut Rng) {
        let (world, history, ttl) = (&self.site.world, &self.site.history, self.site.plan.pool.ttl);
        match kind {
            Misfortune::ScriptFlush => {
                self.count("script flush");
                network.with_server(|server| server.flush_scripts());
            }
            Misfortune::Restart => {
                self.count("restart");
                network.with_server(|server| server.restart(world.now(), history));
            }
            Misfortune::Wipe => {
                self.count("restart without data");
                network.with_server(|server| server.wipe(world.now(), history));
            }
            Misfortune::Promotion => {
                if !network.with_server(|server| server.copy(world.now(), history)) {
                    return;
                }
                world.sleep(rng.spread(1_000, 3_000_000)).await;
                if network.with_server(|server| server.promote(world.now(), history)) {
                    self.count("promotion");
                }
            }
            Misfortune::ClockBack => {
                self.count("clock set back");
                let by = rng.spread(1_000, ttl * 3 / 4) as i64;
                network.with_server(|server| server.step_clock(world.now(), -by, history));
            }
            Misfortune::ClockForward => {
                self.count("clock set forward");
                let by = rng.spread(1_000, 100_000_000) as i64;
                network.with_server(|server| server.step_clock(world.now(), by, history));
            }
            _ => {}
        }
    }

    async fn cut(&self, network: &Network, cut: Cut, rng: &mut Rng) {
        self.count(if cut == Cut::Refused { "outage" } else { "blackout" });
        network.cut(NATURE, Some(cut));
        record_reach(network, false);
        self.site.world.sleep(rng.spread(200_000, 16_000_000)).await;
        network.cut(NATURE, None);
        record_reach(network, true);
    }

    async fn refuse(&self, network: &Network, rng: &mut Rng) {
        let faults = [
            ("LOADING", Fault::Loading),
            ("BUSY", Fault::Busy),
            ("READONLY", Fault::ReadOnly),
            ("OOM", Fault::OutOfMemory),
            ("MASTERDOWN", Fault::MasterDown),
            ("CLUSTERDOWN", Fault::ClusterDown),
            ("NOAUTH", Fault::NoAuth),
        ];
        let (name, fault) = rng.pick(&faults).clone();
        self.count(name);
        network.with_server(|server| server.set_fault(Some(fault)));
        self.site.world.sleep(rng.spread(100_000, 8_000_000)).await;
        network.with_server(|server| server.set_fault(None));
    }

    /// Keys are deleted. What the store can know of it depends on who comes first: often all who have seen anything of them
    /// are cut off, and a process begins that has not.
    async fn flush(&self, network: &Network, rng: &mut Rng) {
        let (world, history) = (&self.site.world, &self.site.history);
        let stranger_first = rng.in_thousand(700);
        if stranger_first {
            let Some(process) = self.any_process(rng) else { return };
            self.kill(process);
        }
        if network.with_server(|server| server.flush(world.now(), history)) {
            self.count("keys deleted");
        }
        if !stranger_first || !unpoisoned(&self.site.state).busy {
            return;
        }
        let processes = self.processes();
        let cut = *rng.pick(&[Cut::Refused, Cut::Silent]);
        processes.iter().for_each(|&process| network.cut(process, Some(cut)));
        start(&self.site);
        world.sleep(rng.spread(10_000, 2 * self.site.plan.pool.ttl)).await;
        processes.iter().for_each(|&process| network.cut(process, None));
    }

    async fn crash(&self, rng: &mut Rng) {
        let Some(process) = self.any_process(rng) else { return };
        self.count("crash");
        self.kill(process);
        self.site.world.sleep(rng.spread(1_000, 4_000_000)).await;
        if unpoisoned(&self.site.state).busy {
            start(&self.site);
        }
    }

    fn kill(&self, process: ProcessId) {
        let world = &self.site.world;
        world.pause(process, false);
        if let Some(network) = &self.network {
            network.detach(process);
        }
        self.site.history.record(world.now(), process, What::Killed);
        world.kill(process);
        let left = {
            let mut state = unpoisoned(&self.site.state);
            state.places.remove(&process);
            (state.kept.remove(&process), state.pools.remove(&process), state.lockers.remove(&process))
        };
        drop(left);
    }

    async fn pause(&self, rng: &mut Rng) {
        let Some(process) = self.any_process(rng) else { return };
        self.count("pause");
        let (world, history) = (&self.site.world, &self.site.history);
        history.record(world.now(), process, What::Paused(true));
        world.pause(process, true);
        world.sleep(rng.spread(10_000, 2 * self.site.plan.pool.ttl)).await;
        history.record(world.now(), process, What::Paused(false));
        world.pause(process, false);
    }

    async fn break_lease(&self, rng: &mut Rng) {
        let pool = self
            .any_process(rng)
            .and_then(|process| unpoisoned(&self.site.state).pools.get(&process).cloned());
        let Some(pool) = pool else { return };
        let slot = rng.pick(&self.site.plan.accounts).0.clone();
        // A process may be killed while it is asked.
        let limit = self.site.world.sleep(5_000_000);
        self.count("lease broken");
        let _ = select(pin!(pool.break_lease(&slot)), pin!(limit)).await;
    }

    /// Removes a slot, and adds it again later.
    async fn remove(&self, rng: &mut Rng) {
        let slot = rng.pick(&self.site.plan.accounts).0.clone();
        let again = Value::List(vec![slot.as_str().into()]);
        for removes in [true, false] {
            let pool = self
                .any_process(rng)
                .and_then(|process| unpoisoned(&self.site.state).pools.get(&process).cloned());
            let Some(pool) = pool else { return };
            let change = async {
                match removes {
                    true => pool.remove(&slot).await,
                    false => pool.add_by(&again).await.map(drop),
                }
            };
            let limit = self.site.world.sleep(5_000_000);
            self.count(if removes { "slot removed" } else { "slot added" });
            let _ = select(pin!(change), pin!(limit)).await;
            self.site.world.sleep(rng.spread(1_000, 8_000_000)).await;
        }
    }

    fn processes(&self) -> Vec<ProcessId> {
        let state = unpoisoned(&self.site.state);
        state.pools.keys().chain(state.lockers.keys()).copied().collect()
    }

    fn any_process(&self, rng: &mut Rng) -> Option<ProcessId> {
        let processes = self.processes();
        (!processes.is_empty()).then(|| *rng.pick(&processes))
    }

    fn count(&self, kind: &'static str) {
        self.site.census.count(kind);
    }
}
