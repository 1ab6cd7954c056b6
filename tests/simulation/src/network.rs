//! The network between the processes and one server: delays, losses, doubles, late messages, cuts.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};

use futures_channel::oneshot;
use leasehold::store::redis::{Resp, Transport, TransportError};
use leasehold::store::{Listener, Watch};

use crate::census::Census;
use crate::charges::SentCharges;
use crate::doubles;
use crate::facts::LANE;
use crate::history::{History, What, handle_of};
use crate::planted::{Planted, PlantedFault};
use crate::rng::Rng;
use crate::server::{Scripts, Server};
use crate::world::{Instant, NATURE, ProcessId, World, unpoisoned};

/// How often things go wrong, in thousandths of all messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Odds {
    /// A request never arrives.
    pub lost_request: u64,
    /// A request is performed and its reply lost.
    pub lost_reply: u64,
    /// A request arrives twice.
    pub doubled: u64,
    /// A request takes up to this many thousandths of a minute.
    pub late: u64,
    /// A message takes up to 300 ms.
    pub slow: u64,
    /// A message of the server to its listeners is lost, doubled or late.
    pub push: u64,
}

impl Odds {
    /// Each misfortune of a storm as often as it falls out, or never; none of messages to listeners.
    pub fn of_storm(rng: &mut Rng) -> Self {
        Odds {
            lost_request: rng.perhaps(60),
            lost_reply: rng.perhaps(60),
            doubled: rng.perhaps(60),
            late: rng.perhaps(30),
            slow: rng.perhaps(200),
            push: 0,
        }
    }
}

/// How a process is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// No connection can be made.
    Refused,
    /// Connections break or hang; requests may have arrived.
    Silent,
}

/// A handle of the network and its server.
#[derive(Clone)]
pub struct Network {
    world: World,
    history: History,
    census: Census,
    bug: Option<Planted>,
    scripts: Arc<Scripts>,
    state: Arc<Mutex<State>>,
}

struct State {
    server: Server,
    odds: Odds,
    rng: Rng,
    /// By process; that of [`NATURE`] is for all.
    cuts: BTreeMap<ProcessId, Cut>,
    detached: Vec<ProcessId>,
    hung_until: Instant,
    listeners: BTreeMap<u64, (ProcessId, String, Listener)>,
    next_listener: u64,
    attempts: HashMap<ProcessId, (u64, u64, u64)>,
}

/// What becomes of one command.
struct Fate {
    /// When it arrives, if it does.
    flight: Option<u64>,
    /// How much later it arrives again.
    copy: Option<u64>,
    answered: bool,
    /// When the sender learns that there is no answer; `None` for never.
    breaks: Option<u64>,
}

impl Network {
    /// A network with a server.
    pub fn new(
        world: &World,
        history: &History,
        census: &Census,
        rng: Rng,
        odds: Odds,
        bug: Option<Planted>,
    ) -> Self {
        let state = State {
            server: Server::new(),
            odds,
            rng,
            cuts: BTreeMap::new(),
            detached: Vec::new(),
            hung_until: 0,
            listeners: BTreeMap::new(),
            next_listener: 0,
            attempts: HashMap::new(),
        };
        Network {
            world: world.clone(),
            history: history.clone(),
            census: census.clone(),
            bug,
            scripts: Arc::new(Scripts::new(bug)),
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Does something to the server.
    pub fn with_server<T>(&self, act: impl FnOnce(&mut Server) -> T) -> T {
        act(&mut self.lock().server)
    }

    /// Cuts a process off, or all of them, or ends the cut.
    pub fn cut(&self, process: ProcessId, cut: Option<Cut>) {
        let mut state = self.lock();
        match cut {
            Some(cut) => state.cuts.insert(process, cut),
            None => state.cuts.remove(&process),
        };
    }

    /// Nothing that a process sends from here on leaves it.
    pub fn detach(&self, process: ProcessId) {
        self.lock().detached.push(process);
    }

    /// The server answers nothing until then, and performs everything afterwards.
    pub fn hang(&self, until: Instant) {
        self.lock().hung_until = until;
    }

    /// Ends all faults of the network.
    pub fn calm(&self) {
        let mut state = self.lock();
        state.odds = Odds::default();
        state.cuts.clear();
        state.hung_until = 0;
    }

    /// The most commands that a process sent within a second while it could not reach the server.
    pub fn most_attempts(&self) -> Vec<(ProcessId, u64)> {
        let mut most: Vec<_> =
            self.lock().attempts.iter().map(|(&process, &(.., most))| (process, most)).collect();
        most.sort_unstable();
        most
    }

    async fn carry(&self, process: ProcessId, command: Vec<String>) -> Result<Resp, TransportError> {
        let sent = self.world.now();
        self.census.count("commands");
        let Some((cut, fate)) = self.depart(process, sent) else { return std::future::pending().await };
        if let Some(bug) = self.bug
            && let Some(answer) = doubles::swallow(bug.fault, &command, &self.world)
            && self.lock().rng.in_thousand(500)
        {
            return Ok(answer);
        }
        let reply = match cut {
            Some(Cut::Refused) => {
                self.world.sleep(fate.flight.unwrap_or(500)).await;
                self.census.count("connection refused");
                Err(TransportError::NotSent("connection refused".to_owned()))
            }
            _ => self.deliver((process, sent), &command, fate).await,
        };
        match self.bug {
            Some(bug) => doubles::disguise(bug.fault, reply, &command, sent, &self.world),
            None => reply,
        }
    }

    /// What becomes of a command that leaves now; `None` if it never leaves.
    fn depart(&self, process: ProcessId, sent: Instant) -> Option<(Option<Cut>, Fate)> {
        let mut state = self.lock();
        if state.detached.contains(&process) {
            return None;
        }
        let cut = state.cut_of(process);
        if cut.is_some() {
            state.count_attempt(process, sent / 1_000_000);
        }
        Some((cut, state.fate(cut, &self.census)))
    }

    async fn deliver(
        &self,
        (process, sent): (ProcessId, Instant),
        command: &[String],
        fate: Fate,
    ) -> Result<Resp, TransportError> {
        let (tell, mut told) = oneshot::channel();
        let tell = Some(tell).filter(|_| fate.answered);
        if let Some(flight) = fate.flight {
            let (network, command) = (self.clone(), command.to_vec());
            self.world.spawn(NATURE, async move {
                network.world.sleep(flight).await;
                network.wait_while_hung().await;
                let (reply, performed) = network.perform((process, sent), &command);
                // What is doubled is what got through: a refusal is the server's last word on a command,
                // or no client could ever send anything anew.
                if let (Some(later), Resp::Text(_)) = (fate.copy, &reply) {
                    let network = network.clone();
                    // The end of a reservation may come again on any way, as from a client that has restarted.
                    let settles = SentCharges::read(&command).is_some_and(|sent| sent.only_settles());
                    let command = if settles { doubles::other_lane(&command) } else { command };
                    network.world.clone().spawn(NATURE, async move {
                        network.world.sleep(later).await;
                        network.wait_while_hung().await;
                        network.perform((process, sent), &command);
                    });
                }
                let back = network.lock().flight();
                network.world.sleep(back).await;
                let cut = network.lock().cut_of(process).is_some();
                if let (Some(tell), false) = (tell, cut) {
                    let _ = tell.send((reply, performed));
                }
            });
        }
        let broken = match fate.breaks {
            Some(time) => {
                // A connection breaks when it will, whether or not the reply would have come.
                self.world.sleep(time).await;
                told.try_recv().ok().flatten()
            }
            None => told.await.ok(),
        };
        match (broken, fate.breaks, self.bug.map(|bug| bug.fault)) {
            (Some((reply, performed)), ..) => {
                if let Some(performed) = performed {
                    let handle = handle_of(&command[LANE]).to_owned();
                    self.history.record(self.world.now(), process, What::Heard { handle, performed });
                }
                Ok(reply)
            }
            (None, _, Some(PlantedFault::OtherLane)) => self.again_elsewhere((process, sent), command).await,
            (None, Some(_), _) => Err(TransportError::NoReply("connection reset".to_owned())),
            (None, None, _) => std::future::pending().await,
        }
    }

    /// A client library's own retry, with the envelope under another lane.
    async fn again_elsewhere(
        &self,
        sender: (ProcessId, Instant),
        command: &[String],
    ) -> Result<Resp, TransportError> {
        let command = doubles::other_lane(command);
        let fate = Fate { flight: Some(500), copy: None, answered: true, breaks: Some(1_000_000) };
        Box::pin(self.deliver(sender, &command, fate)).await
    }

    async fn wait_while_hung(&self) {
        loop {
            let (until, jitter) = {
                let mut state = self.lock();
                (state.hung_until, state.rng.below(20_000))
            };
            if until <= self.world.now() {
                return;
            }
            self.census.count("command waited for a hung server");
            self.world.sleep_until(until + jitter).await;
        }
    }

    /// The server performs a command and tells its listeners. Its answer, and when what it tells was performed if that was now.
    fn perform(&self, sender: (ProcessId, Instant), command: &[String]) -> (Resp, Option<Instant>) {
        let mut state = self.lock();
        let now = self.world.now();
        let (reply, performed) = state.server.perform(now, sender, command, &self.scripts, &self.history);
        for (channel, calls) in state.server.published() {
            let listeners: Vec<_> = state
                .listeners
                .iter()
                .filter(|(_, (_, wanted, _))| *wanted == channel)
                .map(|(&number, (process, ..))| (number, *process))
                .collect();
            for (number, process) in listeners {
                for flight in state.pushes(process, &self.census) {
                    let (network, calls) = (self.clone(), calls.clone());
                    self.world.spawn(process, async move {
                        network.world.sleep(flight).await;
                        let listener =
                            network.lock().listeners.get(&number).map(|(.., listener)| listener.clone());
                        if let Some(listener) = listener {
                            listener(calls.as_ref());
                        }
                    });
                }
            }
        }
        (reply, performed.then_some(now))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        unpoisoned(&self.state)
    }
}

impl State {
    fn cut_of(&self, process: ProcessId) -> Option<Cut> {
        self.cuts.get(&NATURE).or_else(|| self.cuts.get(&process)).copied()
    }

    fn count_attempt(&mut self, process: ProcessId, second: u64) {
        let (at, count, most) = self.attempts.entry(process).or_default();
        *count = if *at == second { *count + 1 } else { 1 };
        *at = second;
        *most = (*most).max(*count);
    }

    fn flight(&mut self) -> u64 {
        let slow = self.rng.in_thousand(self.odds.slow);
        self.rng.spread(100, if slow { 300_000 } else { 1_500 })
    }

    fn fate(&mut self, cut: Option<Cut>, census: &Census) -> Fate {
        let flight = self.flight();
        let mut fate = Fate { flight: Some(flight), copy: None, answered: true, breaks: None };
        let odds = self.odds;
        let silent = cut == Some(Cut::Silent);
        if self.rng.in_thousand(if silent { 500 } else { odds.lost_request }) {
            census.count("request lost");
            fate.flight = None;
            fate.answered = false;
        } else if silent || self.rng.in_thousand(odds.lost_reply) {
            census.count("reply lost");
            fate.answered = false;
        }
        if !fate.answered && self.rng.in_thousand(600) {
            fate.breaks = Some(self.rng.spread(500, 500_000));
        }
        if self.rng.in_thousand(odds.doubled) {
            census.count("request doubled");
            fate.copy = Some(self.rng.spread(200, 15_000_000));
        }
        if self.rng.in_thousand(odds.late) {
            census.count("request late");
            fate.flight = fate.flight.map(|flight| flight + self.rng.spread(500_000, 20_000_000));
        }
        fate
    }

    fn pushes(&mut self, process: ProcessId, census: &Census) -> Vec<u64> {
        if self.cut_of(process).is_some() {
            return Vec::new();
        }
        let flight = self.flight();
        if !self.rng.in_thousand(self.odds.push) {
            return vec![flight];
        }
        match self.rng.below(3) {
            0 => {
                census.count("push lost");
                Vec::new()
            }
            1 => {
                census.count("push doubled");
                vec![flight, flight + self.rng.below(1_000_000)]
            }
            _ => {
                census.count("push late");
                vec![self.rng.between(500_000, 8_000_000)]
            }
        }
    }
}

/// A process's way to the server.
#[derive(Clone)]
pub struct SimTransport {
    network: Network,
    process: ProcessId,
    /// Whether the server can tell of slots.
    pushed: bool,
}

impl SimTransport {
    /// That of this process.
    pub fn new(network: &Network, process: ProcessId, pushed: bool) -> Self {
        SimTransport { network: network.clone(), process, pushed }
    }
}

impl Transport for SimTransport {
    async fn send(&self, command: Vec<String>) -> Result<Resp, TransportError> {
        self.network.carry(self.process, command).await
    }

    async fn subscribe(&self, channel: String, listener: Listener) -> Result<Option<Watch>, TransportError> {
        if !self.pushed {
            return Ok(None);
        }
        let (cut, flight) = {
            let mut state = self.network.lock();
            (state.cut_of(self.process), state.flight())
        };
        self.network.world.sleep(flight).await;
        if cut.is_some() {
            return Err(TransportError::NotSent("connection refused".to_owned()));
        }
        let mut state = self.network.lock();
        let number = state.next_listener;
        state.next_listener += 1;
        state.listeners.insert(number, (self.process, channel, listener));
        Ok(Some(Watch::new(Subscription { network: self.network.clone(), number })))
    }
}

struct Subscription {
    network: Network,
    number: u64,
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let removed = self.network.lock().listeners.remove(&self.number);
        drop(removed);
    }
}

/// Makes what cuts a process off of everything visible in the history.
pub fn record_reach(network: &Network, reachable: bool) {
    network.history.record(network.world.now(), NATURE, What::StoreReachable(reachable));
}
