//! The world: virtual time and the tasks of all processes, run one at a time in an order drawn from the seed.
//!
//! Time stands still while a task runs and jumps to the next timer when none can. Each process has a clock of
//! its own that drifts; it can be paused (its tasks do not run, its clock goes on) and killed (its tasks are
//! dropped where they are).

use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use leasehold::runtime::Runtime;

use crate::rng::Rng;
use crate::server::BEGINNING;

/// True time of a world, in microseconds since its beginning.
pub type Instant = u64;
/// A process of a world. A restart is a new process.
pub type ProcessId = usize;

/// The process to which the network, the chain and the faults belong: never paused, never killed, exact.
pub const NATURE: ProcessId = 0;

/// How much a drifting clock gains or loses at most, in millionths: a hundredth.
pub const DRIFT: i64 = 10_000;

/// A handle of a world.
#[derive(Clone)]
pub struct World {
    state: Arc<Mutex<State>>,
    woken: Arc<Mutex<Vec<u64>>>,
}

struct State {
    now: Instant,
    timers: BTreeMap<(Instant, u64), Waker>,
    sequence: u64,
    tasks: HashMap<u64, Task>,
    runnable: Vec<u64>,
    processes: Vec<Process>,
    rng: Rng,
    polls: u64,
}

struct Task {
    process: ProcessId,
    future: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    bell: Arc<Bell>,
}

struct Process {
    /// What its clock showed when the world began, and what it gains a million.
    offset: u64,
    gain: i64,
    alive: bool,
    paused: bool,
    held: Vec<u64>,
    rng: Rng,
}

struct Bell {
    task: u64,
    rung: AtomicBool,
    woken: Arc<Mutex<Vec<u64>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if !self.rung.swap(true, Relaxed) {
            unpoisoned(&self.woken).push(self.task);
        }
    }
}

impl World {
    /// An empty world.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let nature =
            Process { offset: 0, gain: 0, alive: true, paused: false, held: Vec::new(), rng: rng.fork(0) };
        let state = State {
            now: 0,
            timers: BTreeMap::new(),
            sequence: 0,
            tasks: HashMap::new(),
            runnable: Vec::new(),
            processes: vec![nature],
            rng,
            polls: 0,
        };
        World { state: Arc::new(Mutex::new(state)), woken: Arc::default() }
    }

    /// Starts a process; `drifts` says whether its clock does.
    pub fn start(&self, drifts: bool) -> ProcessId {
        let mut state = self.lock();
        let id = state.processes.len();
        let mut rng = state.rng.fork(id as u64);
        let (offset, gain) = match drifts {
            // The extremes are what margins are made for.
            true => {
                let gains = [-DRIFT, DRIFT, rng.below(2 * DRIFT as u64) as i64 - DRIFT];
                (rng.below(1 << 40), *rng.pick(&gains))
            }
            false => (0, 0),
        };
        state.processes.push(Process { offset, gain, alive: true, paused: false, held: Vec::new(), rng });
        id
    }

    /// Ends a process: its tasks are dropped where they are. What their drops send must be cut off before.
    pub fn kill(&self, process: ProcessId) {
        let futures: Vec<_> = {
            let mut state = self.lock();
            state.processes[process].alive = false;
            let mut ids: Vec<u64> =
                state.tasks.iter().filter(|(_, task)| task.process == process).map(|(&id, _)| id).collect();
            // The order in which a map tells its keys is not the seed's.
            ids.sort_unstable();
            ids.iter().filter_map(|id| state.tasks.remove(id)?.future).collect()
        };
        drop(futures);
    }

    /// Stops a process, or lets it go on. Its clock runs all the time.
    pub fn pause(&self, process: ProcessId, paused: bool) {
        let mut state = self.lock();
        state.processes[process].paused = paused;
        if !paused {
            let held = std::mem::take(&mut state.processes[process].held);
            state.runnable.extend(held);
        }
    }

    /// Whether the process has not been killed.
    pub fn is_alive(&self, process: ProcessId) -> bool {
        self.lock().processes[process].alive
    }

    /// True time.
    pub fn now(&self) -> Instant {
        self.lock().now
    }

    /// How often a task was run.
    pub fn polls(&self) -> u64 {
        self.lock().polls
    }

    /// What the process's clock shows.
    pub fn local(&self, process: ProcessId) -> u64 {
        let state = self.lock();
        let process = &state.processes[process];
        process.offset + scaled(state.now, process.gain)
    }

    /// The first true time at which the process's clock shows `local` or more.
    pub fn when(&self, process: ProcessId, local: u64) -> Instant {
        let state = self.lock();
        let process = &state.processes[process];
        let passed = local.saturating_sub(process.offset);
        let mut at = (u128::from(passed) * 1_000_000 / (1_000_000 + process.gain) as u128) as u64;
        while scaled(at, process.gain) < passed {
            at += 1;
        }
        while at > 0 && scaled(at - 1, process.gain) >= passed {
            at -= 1;
        }
        at
    }

    /// Runs a task of a process; of a killed one, drops it.
    pub fn spawn(&self, process: ProcessId, future: impl Future<Output = ()> + Send + 'static) {
        let mut state = self.lock();
        if !state.processes[process].alive {
            drop(state);
            return drop(future);
        }
        state.sequence += 1;
        let id = state.sequence;
        let bell = Arc::new(Bell { task: id, rung: AtomicBool::new(true), woken: self.woken.clone() });
        state.tasks.insert(id, Task { process, future: Some(Box::pin(future)), bell });
        drop(state);
        unpoisoned(&self.woken).push(id);
    }

    /// Ends so much true time later.
    pub fn sleep(&self, time: u64) -> Sleep {
        self.sleep_until(self.now() + time)
    }

    /// Ends at a true time.
    pub fn sleep_until(&self, at: Instant) -> Sleep {
        Sleep { world: self.clone(), at, key: None }
    }

    /// Runs everything until a true time.
    pub fn run_until(&self, end: Instant) {
        loop {
            let Some(id) = self.next_task(end) else { return };
            let (future, bell) = {
                let mut state = self.lock();
                let Some(task) = state.tasks.get_mut(&id) else { continue };
                let (process, bell) = (task.process, task.bell.clone());
                if state.processes[process].paused {
                    state.processes[process].held.push(id);
                    continue;
                }
                let Some(future) = state.tasks.get_mut(&id).and_then(|task| task.future.take()) else {
                    continue;
                };
                state.polls += 1;
                (future, bell)
            };
            self.poll(id, future, bell);
        }
    }

    /// Drops all tasks, which hold the world as it holds them.
    pub fn end(&self) {
        let processes = self.lock().processes.len();
        (0..processes).for_each(|process| self.kill(process));
        self.lock().timers.clear();
    }

    fn poll(&self, id: u64, mut future: Pin<Box<dyn Future<Output = ()> + Send>>, bell: Arc<Bell>) {
        bell.rung.store(false, Relaxed);
        let waker = Waker::from(bell);
        let done = future.as_mut().poll(&mut Context::from_waker(&waker)).is_ready();
        let dropped = {
            let mut state = self.lock();
            match state.tasks.get_mut(&id) {
                Some(_) if done => {
                    state.tasks.remove(&id);
                    Some(future)
                }
                Some(task) => {
                    task.future = Some(future);
                    None
                }
                // It was killed as it ran.
                None => Some(future),
            }
        };
        drop(dropped);
    }

    /// A task that can run, drawn among all that can; time passes when there is none.
    fn next_task(&self, end: Instant) -> Option<u64> {
        loop {
            let woken = std::mem::take(&mut *unpoisoned(&self.woken));
            let mut state = self.lock();
            state.runnable.extend(woken);
            let ready = state.runnable.len() as u64;
            if ready > 0 {
                let at = state.rng.below(ready) as usize;
                return Some(state.runnable.swap_remove(at));
            }
            let next = state.timers.first_key_value().map(|(&(at, _), _)| at);
            let Some(next) = next.filter(|&at| at <= end) else {
                state.now = end;
                return None;
            };
            state.now = state.now.max(next);
            let mut due = Vec::new();
            while let Some(timer) = state.timers.first_entry() {
                if timer.key().0 > next {
                    break;
                }
                due.push(timer.remove());
            }
            drop(state);
            due.into_iter().for_each(Waker::wake);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        unpoisoned(&self.state)
    }
}

/// The surroundings that the library is given in one process.
#[derive(Clone)]
pub struct SimRuntime {
    world: World,
    process: ProcessId,
}

impl SimRuntime {
    /// Those of this process.
    pub fn new(world: &World, process: ProcessId) -> Self {
        SimRuntime { world: world.clone(), process }
    }
}

impl Runtime for SimRuntime {
    fn now(&self) -> u64 {
        self.world.local(self.process)
    }

    fn wall(&self) -> u64 {
        BEGINNING + self.now()
    }

    fn sleep(&self, time: u64) -> impl Future<Output = ()> + Send {
        let local = self.world.local(self.process).saturating_add(time);
        self.world.sleep_until(self.world.when(self.process, local))
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.world.spawn(self.process, task);
    }

    fn random(&self) -> u64 {
        self.world.lock().processes[self.process].rng.bits()
    }
}

/// A timer.
pub struct Sleep {
    world: World,
    at: Instant,
    key: Option<(Instant, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let world = self.world.clone();
        let mut state = world.lock();
        if state.now >= self.at {
            return Poll::Ready(());
        }
        let at = self.at;
        let key = *self.key.get_or_insert_with(|| {
            state.sequence += 1;
            (at, state.sequence)
        });
        state.timers.insert(key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let removed = self.key.and_then(|key| self.world.lock().timers.remove(&key));
        drop(removed);
    }
}

fn scaled(time: u64, gain: i64) -> u64 {
    (u128::from(time) * (1_000_000 + gain) as u128 / 1_000_000) as u64
}

/// A panic in one run is reported by its seed; it must not hide behind a poisoned lock.
pub fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drifting_clock_is_inverted_exactly() {
        let world = World::new(3);
        world.run_until(12_345_678);
        for _ in 0..50 {
            let process = world.start(true);
            let local = world.local(process);
            assert!(world.when(process, local) <= world.now());
            let later = world.when(process, local + 1_000);
            assert!((980..=1_020).contains(&(later - world.now())), "{later}");
        }
    }

    #[test]
    fn a_paused_process_stands_and_a_killed_one_is_gone() {
        let world = World::new(1);
        let process = world.start(false);
        let count = Arc::new(Mutex::new(0));
        let (counted, clock) = (count.clone(), world.clone());
        world.spawn(process, async move {
            loop {
                clock.sleep(10).await;
                *unpoisoned(&counted) += 1;
            }
        });
        world.run_until(100);
        assert_eq!(*unpoisoned(&count), 10);
        world.pause(process, true);
        world.run_until(200);
        assert_eq!(*unpoisoned(&count), 10);
        world.pause(process, false);
        world.run_until(300);
        assert_eq!(*unpoisoned(&count), 21);
        world.kill(process);
        world.run_until(400);
        assert_eq!(*unpoisoned(&count), 21);
    }
}
