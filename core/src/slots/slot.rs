//! The record of one slot.

use super::stealing::Claimant;
use crate::Micros;
use crate::id::SlotId;
use crate::nonce::NonceRecord;

/// Whether a slot may be handed out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Yes.
    #[default]
    Enabled,
    /// No; a lease that it has may be renewed.
    Draining,
    /// No; a lease that it has may not be renewed.
    Disabled,
    /// No; it is forgotten when its lease ends, and with it the rest of its nonce if that is in doubt.
    Removing,
    /// It was made by a claim of its name, and is forgotten when its lease and its rest have ended.
    Passing,
}

impl Mode {
    /// The mode, for people who look.
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::Enabled => "enabled",
            Mode::Draining => "draining",
            Mode::Disabled => "disabled",
            Mode::Removing => "removing",
            Mode::Passing => "passing",
        }
    }
}

/// Where a slot is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// In a queue, to be claimed.
    #[default]
    Ready,
    /// Leased until its deadline.
    Leased,
    /// Kept for the ticket whose turn it is, until a time.
    Offered,
    /// Resting until a time.
    Cooling,
    /// Not to be claimed.
    Out,
}

impl State {
    /// The state, for people who look.
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Ready => "ready",
            State::Leased => "leased",
            State::Offered => "offered",
            State::Cooling => "cooling",
            State::Out => "out",
        }
    }
}

/// A slot's whole record.
#[derive(Clone, Debug)]
pub(super) struct Slot {
    pub id: SlotId,
    pub mode: Mode,
    pub state: State,
    pub weight: u8,
    /// When it became ready, in the order of all slots that did.
    pub arrival: u64,
    /// The pool's epoch in which its nonce was last trusted; another epoch puts the nonce in doubt.
    pub epoch: Micros,
    pub fence: u64,
    pub holder: u128,
    /// The holder's.
    pub priority: i16,
    /// Who wants to have the lease, if anybody does.
    pub claimant: Option<Box<Claimant>>,
    /// When the last lease began.
    pub since: Micros,
    /// When the lease or the rest ends: its time in the set of due slots.
    pub until: Micros,
    /// Renewals end here; 0 for never.
    pub hold_until: Micros,
    /// The end of its cooldown, which only grows.
    pub rest_until: Micros,
    /// The end of its quarantine, which an administrator may lift.
    pub barred_until: Micros,
    pub nonce: NonceRecord,
    /// When the nonce's floor was last raised.
    pub raised: Micros,
}

impl Slot {
    pub fn new(id: SlotId, weight: u8) -> Self {
        Slot {
            id,
            mode: Mode::Enabled,
            state: State::Ready,
            weight,
            arrival: 0,
            epoch: 0,
            fence: 0,
            holder: 0,
            priority: 0,
            claimant: None,
            since: 0,
            until: 0,
            hold_until: 0,
            rest_until: 0,
            barred_until: 0,
            nonce: NonceRecord::Unset,
            raised: 0,
        }
    }

    /// One that nobody defined, about to be leased.
    pub fn passing(id: SlotId) -> Self {
        Slot { mode: Mode::Passing, state: State::Out, ..Slot::new(id, 1) }
    }

    /// Whether it is kept for this ticket still.
    pub fn is_offered(&self, holder: u128, now: Micros) -> bool {
        self.state == State::Offered && self.holder == holder && self.until > now
    }

    /// Whether it is leased or rests, and will not be ready after that.
    pub fn leaves(&self) -> bool {
        match self.mode {
            Mode::Draining | Mode::Disabled => self.state == State::Leased,
            Mode::Removing => self.state != State::Out,
            Mode::Enabled | Mode::Passing => false,
        }
    }

    /// The queue it waits in when it is ready: slots of like weight together, those in doubt apart.
    pub fn queue(&self) -> usize {
        match self.nonce {
            NonceRecord::InDoubt { .. } => super::pool::DOUBT,
            _ => self.weight.checked_ilog2().unwrap_or(0) as usize,
        }
    }

    pub fn set_nonce(&mut self, nonce: NonceRecord, now: Micros) {
        if nonce.floor() != self.nonce.floor() {
            self.raised = now;
        }
        self.nonce = nonce;
    }
}
