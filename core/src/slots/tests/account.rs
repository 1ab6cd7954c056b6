//! One slot by the rules, and what becomes of its nonce. See [`super::model`].

use crate::Micros;
use crate::id::SlotId;
use crate::nonce::{Nonce, NonceRecord, Outcome};
use crate::slots::{Mode, State};

/// A slot by the rules.
#[derive(Clone)]
pub struct Account {
    pub id: SlotId,
    pub weight: u8,
    pub mode: Mode,
    pub state: State,
    pub arrival: u64,
    pub fence: u64,
    pub holder: u128,
    pub priority: i16,
    /// The ticket that claims the lease, and the deadline that the lease had before.
    pub claim: Option<(u128, Micros)>,
    pub since: Micros,
    pub until: Micros,
    pub hold_ends: Option<Micros>,
    pub cooldown_ends: Micros,
    pub quarantine_ends: Micros,
    pub nonce: NonceRecord,
    pub raised: Micros,
    /// The count of losses when its nonce was last trusted.
    pub trusted: Option<u64>,
}

impl Account {
    pub fn new(id: &SlotId, weight: u8, mode: Mode) -> Self {
        Account {
            id: id.clone(),
            weight,
            mode,
            state: State::Out,
            arrival: 0,
            fence: 0,
            holder: 0,
            priority: 0,
            claim: None,
            since: 0,
            until: 0,
            hold_ends: None,
            cooldown_ends: 0,
            quarantine_ends: 0,
            nonce: NonceRecord::Unset,
            raised: 0,
            trusted: None,
        }
    }

    pub fn record(&mut self, nonce: NonceRecord, now: Micros) {
        if lowest(nonce) != lowest(self.nonce) {
            self.raised = now;
        }
        self.nonce = nonce;
    }

    /// Has no claimant any more.
    pub fn revert(&mut self) {
        if let Some((_, until)) = self.claim.take() {
            self.until = until;
        }
    }

    /// Whether it is or will be ready, and is not taken by an administrator when it is given back.
    pub fn comes_back(&self) -> bool {
        match self.state {
            State::Ready | State::Offered => true,
            State::Cooling => self.mode != Mode::Removing,
            State::Leased => matches!(self.mode, Mode::Enabled | Mode::Passing),
            State::Out => false,
        }
    }

    /// Whether something happens to it in time.
    pub fn is_timed(&self) -> bool {
        matches!(self.state, State::Leased | State::Offered | State::Cooling)
    }

    pub fn in_doubt(&self) -> bool {
        matches!(self.nonce, NonceRecord::InDoubt { .. })
    }
}

/// Everything below it is used.
pub fn lowest(nonce: NonceRecord) -> Option<Nonce> {
    match nonce {
        NonceRecord::Known(next) => Some(next),
        NonceRecord::InDoubt { floor } => floor,
        NonceRecord::Unset => None,
    }
}

/// The record of a nonce that may have been signed with.
fn doubted(nonce: NonceRecord) -> NonceRecord {
    NonceRecord::InDoubt { floor: lowest(nonce) }
}

/// As [`doubted`], if there was a nonce at all.
pub fn unsettled(nonce: NonceRecord) -> NonceRecord {
    if nonce == NonceRecord::Unset { nonce } else { doubted(nonce) }
}

/// The record after an outcome, or the lowest next nonce that can be.
pub fn after(nonce: NonceRecord, outcome: Outcome) -> Result<NonceRecord, Nonce> {
    let floor = lowest(nonce).unwrap_or(0);
    match outcome {
        Outcome::Unsettled => Ok(unsettled(nonce)),
        Outcome::Unused => Ok(nonce),
        Outcome::Unknown { used: None } => Ok(doubted(nonce)),
        Outcome::Unknown { used: Some(used) } => Ok(NonceRecord::InDoubt { floor: Some(used.max(floor)) }),
        Outcome::Used { next } => match nonce {
            NonceRecord::Known(handed) if next <= handed => Err(handed.saturating_add(1)),
            NonceRecord::Known(_) => Ok(NonceRecord::Known(next)),
            _ if next < floor => Err(floor),
            _ => Ok(NonceRecord::Known(next)),
        },
        Outcome::Rejected { expected: Some(expected) } if expected >= floor => {
            Ok(NonceRecord::Known(expected))
        }
        Outcome::Rejected { .. } => Ok(doubted(nonce)),
    }
}
