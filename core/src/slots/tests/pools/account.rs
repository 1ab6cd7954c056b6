//! One account as it must be: its chain, what was signed, and the lease that is in force. Shares nothing with the machine.

use super::{DOUBT_REST, FLIGHT, TICK};
use crate::Micros;
use crate::nonce::{Nonce, NonceRecord, Outcome};
use crate::slots::SlotChange;

/// A rule that was broken, and how.
pub type Verdict = Result<(), String>;

/// An account.
#[derive(Clone, Debug)]
pub struct Account {
    /// The nonce that its chain expects.
    pub next: Nonce,
    /// A transaction that is under way, and for how long.
    pub flying: Option<(Nonce, u64, Micros)>,
    pub lease: Option<Lease>,
    /// Nothing is granted before.
    pub rest_until: Micros,
    /// What whoever comes next must be told; nothing if nobody ever knew.
    pub record: Option<Record>,
    pub mode: Mode,
}

/// The lease that is in force, unless its time has passed.
#[derive(Clone, Debug)]
pub struct Lease {
    pub fence: u64,
    pub since: Micros,
    pub until: Micros,
    pub longest: Micros,
    /// Whether its holder may know a nonce.
    pub told: bool,
}

/// What is known of the next nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    Known(Nonce),
    Doubt,
}

/// Whether it is handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mode {
    In,
    Draining,
    Out,
}

impl Account {
    pub fn new(next: Nonce) -> Self {
        let (flying, lease, record) = (None, None, None);
        Account { next, flying, lease, rest_until: 0, record, mode: Mode::In }
    }

    /// Ends the lease whose time has passed.
    pub fn pass(&mut self, now: Micros) {
        if let Some(lease) = self.lease.take_if(|lease| lease.until <= now) {
            if lease.told {
                self.record = Some(Record::Doubt);
                self.rest_until = self.rest_until.max(lease.until + DOUBT_REST);
            }
            self.leave();
        }
    }

    /// Whether it could be had now.
    pub fn is_free(&self, now: Micros) -> bool {
        self.lease.is_none() && self.mode == Mode::In && self.rest_until <= now
    }

    pub fn is_in_doubt(&self) -> bool {
        self.record == Some(Record::Doubt)
    }

    pub fn grant(
        &mut self,
        now: Micros,
        fence: u64,
        until: Micros,
        longest: Micros,
        nonce: NonceRecord,
    ) -> Verdict {
        if let Some(lease) = &self.lease {
            return Err(format!("S1: granted under {fence} while {lease:?} is in force"));
        }
        if self.mode != Mode::In {
            return Err(format!("granted as it is {:?}", self.mode));
        }
        if self.rest_until > now {
            return Err(format!("C2: granted {} µs before its rest ended", self.rest_until - now));
        }
        let told = match (nonce, self.record) {
            (NonceRecord::Unset, None) => false,
            (NonceRecord::Known(next), Some(Record::Known(expected))) if next == expected => true,
            (NonceRecord::InDoubt { .. }, Some(Record::Doubt)) => true,
            (NonceRecord::Known(_), Some(Record::Doubt)) => {
                return Err(format!("S10: {nonce:?} is handed out, and nobody knows what became of it"));
            }
            (nonce, record) => return Err(format!("S5: {nonce:?} is handed out, not {record:?}")),
        };
        if longest > 0 && until > now + longest {
            return Err(format!("a lease of {} µs", until - now));
        }
        self.lease = Some(Lease { fence, since: now, until, longest, told });
        Ok(())
    }

    /// A lease that this fence names.
    fn held(&mut self, fence: u64, what: &str) -> Result<&mut Lease, String> {
        let found = format!("{:?}", self.lease);
        let lease = self.lease.as_mut().filter(|lease| lease.fence == fence);
        lease.ok_or_else(|| format!("S3: {what} under {fence}, and in force is {found}"))
    }

    /// Nothing happened under this fence, because its lease is lost.
    pub fn lose(&mut self, fence: u64) -> Verdict {
        match self.held(fence, "lost") {
            Ok(lease) => Err(format!("told lost, and in force is {lease:?}")),
            Err(_) => Ok(()),
        }
    }

    pub fn renew(&mut self, fence: u64, until: Micros) -> Verdict {
        let out = self.mode == Mode::Out;
        let lease = self.held(fence, "renewed")?;
        if until < lease.until || out && until > lease.until {
            return Err(format!("S3: {lease:?} was renewed to {until}"));
        }
        if lease.longest > 0 && until > lease.since + lease.longest {
            return Err(format!("L7: {lease:?} was renewed to {until}"));
        }
        lease.until = until;
        Ok(())
    }

    pub fn resync(&mut self, fence: u64, next: Nonce) -> Verdict {
        self.held(fence, "resynced")?.told = true;
        self.record = Some(Record::Known(next));
        Ok(())
    }

    pub fn release(&mut self, now: Micros, fence: u64, outcome: Outcome) -> Verdict {
        let told = self.held(fence, "released")?.told;
        self.lease = None;
        match outcome {
            Outcome::Used { next } | Outcome::Rejected { expected: Some(next) } => {
                self.record = Some(Record::Known(next));
            }
            Outcome::Unused => {}
            Outcome::Unsettled if !told => {}
            _ => self.record = Some(Record::Doubt),
        }
        // A lease whose nonce was not used makes no doubt.
        if self.is_in_doubt() && outcome != Outcome::Unused {
            self.rest_until = self.rest_until.max(now + DOUBT_REST);
        }
        self.leave();
        Ok(())
    }

    pub fn change(&mut self, now: Micros, change: SlotChange) {
        // Whoever brings back an account in doubt that was out does not know how long it has rested.
        if change == SlotChange::Enable
            && self.mode == Mode::Out
            && self.lease.is_none()
            && self.is_in_doubt()
        {
            self.rest_until = self.rest_until.max(now + DOUBT_REST);
        }
        self.mode = match (change, &self.lease) {
            (SlotChange::Enable, _) => Mode::In,
            (SlotChange::Drain, Some(_)) => Mode::Draining,
            _ => Mode::Out,
        };
    }

    /// Somebody who holds it signs.
    pub fn sign(&mut self, nonce: Nonce, fence: u64) -> Verdict {
        if let Some(other) = self.flying {
            return Err(format!("S5: {nonce} is signed under {fence}, and {other:?} may still count"));
        }
        if nonce != self.next {
            return Err(format!("S5: {nonce} is signed under {fence}, and the chain expects {}", self.next));
        }
        self.flying = Some((nonce, fence, 0));
        Ok(())
    }

    /// What is under way arrives: its fence, and whether the chain takes it.
    pub fn land(&mut self) -> Option<(u64, bool)> {
        let (nonce, fence, _) = self.flying.take()?;
        let accepted = nonce == self.next;
        self.next += u64::from(accepted);
        Some((fence, accepted))
    }

    /// Time passes for what is under way; false if it must have arrived before.
    pub fn tick(&mut self) -> bool {
        match &mut self.flying {
            Some((.., age)) if *age + TICK >= FLIGHT => false,
            Some((.., age)) => {
                *age += TICK;
                true
            }
            None => true,
        }
    }

    fn leave(&mut self) {
        if self.mode == Mode::Draining {
            self.mode = Mode::Out;
        }
    }
}
