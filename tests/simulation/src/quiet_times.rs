//! The longest leases for which a store is quiet that lost its memory: what it was told of them since, and what those who
//! ask it have heard and so must tell (rule S11).

use std::collections::HashMap;

use crate::checker::Breach;
use crate::history::{Fact, Performance};
use crate::world::Instant;

/// What the store and all handles of processes know of the longest time to live of any lease.
#[derive(Debug, Default)]
pub struct QuietTimes {
    /// What the store knew, from when on.
    store: Known,
    /// What its replica knows.
    copy: u64,
    /// By handle: what it knew, from when on.
    heard: HashMap<String, Known>,
    /// How long a request may be under way in its sender before it leaves.
    response_timeout: u64,
    /// When the faults ended.
    calm_since: Option<Instant>,
}

/// Each with when it was learnt.
#[derive(Debug, Default)]
struct Known(Vec<(Instant, u64)>);

impl QuietTimes {
    /// Nobody knows anything, and no request leaves a process later than so long after it was made.
    pub fn new(response_timeout: u64) -> Self {
        QuietTimes { response_timeout, ..QuietTimes::default() }
    }

    /// What the store knows.
    pub fn longest(&self) -> u64 {
        self.store.longest()
    }

    /// The store lost its memory.
    pub fn lose(&mut self, at: Instant) {
        self.copy = 0;
        self.store.0.push((at, 0));
    }

    /// Its memory was copied to a replica.
    pub fn copy(&mut self) {
        self.copy = self.longest();
    }

    /// The replica has taken over.
    pub fn promote(&mut self, at: Instant) {
        self.store.0.push((at, std::mem::take(&mut self.copy)));
    }

    /// Somebody defines the pool, or tells of longer leases only: of all that it had heard when it made this. Who has a lease has
    /// told of one as long.
    pub fn apply(&mut self, at: Instant, done: &Performance, fact: &Fact) -> Result<(), Breach> {
        if let Fact::Defined { longest, .. } = fact {
            self.store.learn(at, *longest);
        }
        let Some(handle) = done.handle() else { return Ok(()) };
        let known = self.heard.entry(handle.to_owned()).or_default();
        match fact {
            &Fact::Defined { longest, .. } => {
                let must = known.before(done.sent.saturating_sub(self.response_timeout));
                if longest < must {
                    let text =
                        format!("{handle} tells of leases of {longest} us, and had heard of {must} us");
                    return Err(Breach::new("S11", text));
                }
                known.learn(at, longest);
                Ok(())
            }
            Fact::Granted { slot, deadline, .. } if deadline - done.now > known.longest() => {
                let (ttl, told) = (deadline - done.now, known.longest());
                let text = format!("{handle} has {slot} for {ttl} us, and told of leases of {told} us");
                Err(Breach::new("S11", text))
            }
            _ => Ok(()),
        }
    }

    /// The store performed this: it was told of the leases that are asked for, if only by the last of all who ask.
    pub fn end_turn(&mut self, at: Instant, done: &Performance) {
        self.store.learn(at, done.longest);
    }

    /// It has the answer to what the store performed then.
    pub fn hear(&mut self, at: Instant, handle: &str, performed: Instant) {
        let told = self.store.before(performed);
        self.heard.entry(handle.to_owned()).or_default().learn(at, told);
    }

    /// From here on all that live ask, and are answered.
    pub fn calm(&mut self, at: Instant) {
        self.calm_since = Some(at);
    }

    /// What those know who were answered since then, the store knows too.
    pub fn end(&self) -> Result<(), Breach> {
        let Some(calm_since) = self.calm_since else { return Ok(()) };
        let answered = |known: &Known| known.0.last().is_some_and(|&(learnt, _)| learnt > calm_since);
        let longest = self.heard.values().filter(|known| answered(known)).map(Known::longest).max();
        match longest.filter(|&longest| longest > self.longest()) {
            Some(longest) => {
                let store = self.longest();
                let text =
                    format!("the store knows of leases of {store} us at the end, and others of {longest} us");
                Err(Breach::new("S11", text))
            }
            None => Ok(()),
        }
    }
}

impl Known {
    fn learn(&mut self, at: Instant, longest: u64) {
        self.0.push((at, longest.max(self.longest())));
    }

    fn longest(&self) -> u64 {
        self.0.last().map_or(0, |&(_, longest)| longest)
    }

    fn before(&self, at: Instant) -> u64 {
        self.0.iter().rev().find(|&&(learnt, _)| learnt < at).map_or(0, |&(_, longest)| longest)
    }
}
