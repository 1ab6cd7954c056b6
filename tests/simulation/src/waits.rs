//! What processes wait for, and when they stood still: whatever began ends once, and by its timeout (rule T1).

use std::collections::{HashMap, HashSet};

use crate::checker::Breach;
use crate::world::{Instant, ProcessId};

/// How much later than its timeout something may end, and how much later than a pause a holder is told.
pub const LENIENCE: u64 = 60_000;

/// All that is waited for.
#[derive(Debug, Default)]
pub struct Waits {
    /// Whether the clocks of processes drift.
    drift: bool,
    open: HashMap<u64, Wait>,
    killed: HashSet<ProcessId>,
    pauses: HashMap<ProcessId, Vec<(Instant, Instant)>>,
}

#[derive(Debug)]
struct Wait {
    process: ProcessId,
    began: Instant,
    allowed: u64,
}

impl Waits {
    /// Nobody waits yet.
    pub fn new(drift: bool) -> Self {
        Waits { drift, ..Waits::default() }
    }

    /// A process begins to wait, for so long and perhaps so much longer.
    pub fn begin(&mut self, at: Instant, process: ProcessId, number: u64, timeout: u64, grace: u64) {
        let allowed = timeout + grace;
        let allowed = allowed + if self.drift { allowed / 90 } else { 0 } + LENIENCE;
        self.open.insert(number, Wait { process, began: at, allowed });
    }

    /// It has ended; when it began.
    pub fn end(&mut self, at: Instant, number: u64) -> Result<Instant, Breach> {
        let Some(Wait { process, began, allowed }) = self.open.remove(&number) else {
            return Err(Breach::new("T1", format!("acquisition {number} ended twice")));
        };
        let (took, stood) = (at - began, self.stood(process, began, at));
        if took > allowed + stood {
            let text =
                format!("acquisition {number}, {allowed} us allowed, took {took} us (stood {stood} us)");
            return Err(Breach::new("T1", text));
        }
        Ok(began)
    }

    /// A process waits no more.
    pub fn kill(&mut self, process: ProcessId) {
        self.killed.insert(process);
    }

    /// Whether it was killed.
    pub fn is_killed(&self, process: ProcessId) -> bool {
        self.killed.contains(&process)
    }

    /// A process stands still from now on, or goes on.
    pub fn pause(&mut self, at: Instant, process: ProcessId, stands: bool) {
        let pauses = self.pauses.entry(process).or_default();
        if stands {
            pauses.push((at, Instant::MAX));
        } else if let Some(pause) = pauses.last_mut() {
            pause.1 = at;
        }
    }

    /// How long the process stood still between two times.
    pub fn stood(&self, process: ProcessId, from: Instant, to: Instant) -> u64 {
        let pauses = self.pauses.get(&process).map(Vec::as_slice).unwrap_or_default();
        pauses.iter().map(|&(start, end)| end.min(to).saturating_sub(start.max(from))).sum()
    }

    /// Nobody who lives waits at the end.
    pub fn all_ended(&self) -> Result<(), Breach> {
        let open = self.open.iter().filter(|(_, wait)| !self.is_killed(wait.process));
        match open.map(|(number, _)| number).min() {
            Some(number) => Err(Breach::new("T1", format!("acquisition {number} never ended"))),
            None => Ok(()),
        }
    }
}
