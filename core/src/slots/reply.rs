//! What a pool replies.

use super::{Mode, State};
use crate::Micros;
use crate::id::SlotId;
use crate::nonce::{Nonce, NonceRecord};

/// The reply to one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The claim was granted.
    Granted(Vec<Grant>),
    /// Fewer names than were asked for are free ([`crate::slots::Choice::Free`]); these were granted.
    #[cfg(feature = "tokens")]
    Partly {
        /// At least as many as were needed.
        grants: Vec<Grant>,
        /// When the first of the others comes due, where that is known.
        earliest: Option<Micros>,
    },
    /// The claim was not granted; nothing changed.
    Refused {
        /// Why.
        why: Refusal,
        /// The earliest store time at which asking again can help, where one is known.
        earliest: Option<Micros>,
    },
    /// The lease now ends at the deadline.
    Renewed {
        /// Store time.
        deadline: Micros,
    },
    /// Somebody of higher priority waits for the slot: the lease is not prolonged while that one does.
    Claimed {
        /// The store time at which the lease ends now.
        deadline: Micros,
        /// The claimant's priority.
        priority: i16,
    },
    /// The slot was given back.
    Released,
    /// The ticket is not there (any more).
    Withdrawn,
    /// The chain's nonce was recorded: the next nonce.
    Resynced {
        /// What to sign with.
        next: Nonce,
    },
    /// The chain's nonce is below what is known to be used, and the record is too young to be doubted.
    Behind {
        /// Everything below is known to be used.
        floor: Nonce,
        /// From this store time on, the chain is believed.
        until: Micros,
    },
    /// The outcome would put the nonce back; nothing changed and the lease goes on.
    Backwards {
        /// The lowest next nonce that can be.
        floor: Nonce,
    },
    /// The lease is not held; nothing changed.
    Lost(Loss),
    /// The pool is defined.
    Defined {
        /// Slots that were added.
        added: u32,
        /// Slots that it has.
        total: u32,
    },
    /// The slot was changed.
    Changed,
    /// There is no such slot.
    NoSlot,
    /// The pool would have more than [`crate::slots::MAX_SLOTS`] slots; nothing was added.
    Full,
    /// The slots that were asked for and are there, and how many there are.
    Inspected {
        /// In the order asked for.
        slots: Vec<SlotView>,
        /// All slots of the pool.
        total: u32,
        /// Those that can be claimed now.
        ready: u32,
        /// Those of them whose nonce is in doubt.
        in_doubt: u32,
        /// Those that are leased or cooling, and not overdue.
        due: u32,
        /// Until when the pool grants nothing, if memory of the store was lost.
        quiet_until: Micros,
        /// Tells one such loss from another: the lower half of the time at which it was noticed; 0 if none ever was.
        loss: u32,
    },
    /// The ids of all slots, in order.
    Listed(Vec<SlotId>),
    /// The pool is not defined (or its memory was lost): define it, then ask again.
    Undefined,
}

impl Reply {
    /// What it grants ends then.
    pub(crate) fn end_at(&mut self, now: Micros) {
        let grants = match self {
            Reply::Granted(grants) => grants,
            #[cfg(feature = "tokens")]
            Reply::Partly { grants, .. } => grants,
            _ => return,
        };
        grants.iter_mut().for_each(|grant| grant.deadline = now);
    }

    /// What the reply is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Reply::Granted(_) => "granted",
            #[cfg(feature = "tokens")]
            Reply::Partly { .. } => "partly",
            Reply::Refused { .. } => "refused",
            Reply::Renewed { .. } => "renewed",
            Reply::Claimed { .. } => "claimed",
            Reply::Released => "released",
            Reply::Withdrawn => "withdrawn",
            Reply::Resynced { .. } => "resynced",
            Reply::Behind { .. } => "behind",
            Reply::Backwards { .. } => "backwards",
            Reply::Lost(_) => "lost",
            Reply::Defined { .. } => "defined",
            Reply::Changed => "changed",
            Reply::NoSlot => "no slot",
            Reply::Full => "full",
            Reply::Inspected { .. } => "inspected",
            Reply::Listed(_) => "listed",
            Reply::Undefined => "undefined",
        }
    }
}

/// One leased slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The slot.
    pub slot: SlotId,
    /// Larger than that of any grant of this pool before.
    pub fence: u64,
    /// The store time at which the lease ends.
    pub deadline: Micros,
    /// What is known of its next nonce.
    pub nonce: NonceRecord,
    /// Where the store keeps the slot; a hint for later requests.
    pub place: u32,
}

/// Why a claim was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Not enough slots are ready.
    Exhausted,
    /// The same, and holders of lower priority have been told to yield.
    Claimed,
    /// More slots than can be had without an administrator. Who waits for them has no ticket.
    Beyond,
    /// The pool has no slot, or one that was named is not there.
    NoSlot,
    /// The store lost memory: nothing is granted until every lease that may be forgotten has ended.
    Quiet,
}

/// Why a lease is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Its deadline has passed.
    Expired,
    /// It was given back, or ended by force or by its deadline.
    Ended,
    /// The slot has been leased anew since.
    Taken,
    /// The slot was removed, also if one of its name was made since.
    Gone,
    /// The store does not remember the lease: it lost memory.
    Forgotten,
}

/// A slot, for people who look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotView {
    /// Its id.
    pub slot: SlotId,
    /// Whether it may be handed out.
    pub mode: Mode,
    /// Where it is.
    pub state: State,
    /// Its weight.
    pub weight: u8,
    /// The highest fence granted.
    pub fence: u64,
    /// Who holds it, or held it last.
    pub holder: u128,
    /// When its last lease began.
    pub since: Micros,
    /// When its lease or its rest ends.
    pub until: Micros,
    /// What is known of its next nonce.
    pub nonce: NonceRecord,
}
