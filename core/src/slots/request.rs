//! What can be asked of a pool.

use crate::Micros;
use crate::id::SlotId;
use crate::nonce::{Nonce, Outcome};

/// One request. Everything it names has been checked against the limits of [`crate::slots`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Lease slots, all that are asked for or none.
    Claim(Claim),
    /// Give up a ticket; what was offered to it passes on to the next.
    Withdraw {
        /// Whose it is.
        holder: u128,
    },
    /// Prolong a lease to `ttl` from now, unless somebody of higher priority claims its slot.
    Renew {
        /// The lease.
        lease: LeaseRef,
        /// How long it lives from now; an earlier, later deadline stays.
        ttl: Micros,
    },
    /// Give a slot back.
    Release {
        /// The lease.
        lease: LeaseRef,
        /// What became of its nonce.
        outcome: Outcome,
        /// How long the slot rests; an earlier, longer rest stays.
        cooldown: Micros,
    },
    /// Record the nonce that the chain names for a leased slot.
    Resync {
        /// The lease.
        lease: LeaseRef,
        /// The chain's next nonce.
        chain: Nonce,
        /// Whether a chain's nonce below the record is believed at once.
        rewind: bool,
        /// How long after its last change the record outweighs a lower nonce of the chain.
        settle: Micros,
    },
    /// Make the pool if it is not there, and add the slots it does not have.
    Define {
        /// Slots to add; those that are there get the weight.
        slots: Vec<SlotSpec>,
        /// The longest time to live of any lease that this client asks for.
        longest: Micros,
        /// How long a slot in doubt rests before it is handed out again.
        doubt_rest: Micros,
    },
    /// Change one slot.
    Change {
        /// The slot.
        slot: SlotId,
        /// The change.
        change: SlotChange,
    },
    /// Look at slots; an empty list counts only.
    Inspect {
        /// The slots to look at.
        slots: Vec<SlotId>,
    },
    /// The ids of all slots. Costs the server time in proportion to their number.
    List,
}

impl Request {
    /// Whether it changes nothing, if it is performed or not, or twice.
    pub fn only_looks(&self) -> bool {
        matches!(self, Request::Inspect { .. } | Request::List)
    }
}

/// A claim of slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Which slots.
    pub choice: Choice,
    /// Who asks: new for every acquisition, random, and the name of its ticket.
    pub holder: u128,
    /// How long the lease lives without a renewal.
    pub ttl: Micros,
    /// How long renewals may prolong it in all; 0 for no bound.
    pub max_hold: Micros,
    /// Whether to wait, if refused: in line, with a ticket; but those who want [`Choice::Free`] stand in no line, and are
    /// told of every slot that becomes ready.
    pub wait: bool,
    /// The higher ones go before the lower.
    pub priority: i16,
    /// The time of waiting that outweighs one step of priority; 0 if none does.
    pub ageing: Micros,
    /// How long it has waited elsewhere, which counts for its place in line.
    pub waited: Micros,
    /// Whether holders of lower priority are told to yield while it waits in line, and how long they have for that:
    /// [`crate::slots::TO_THE_END`] of their leases, or less.
    pub steal: Option<Micros>,
}

impl Claim {
    /// One that neither waits nor has a bound on its renewals.
    pub fn new(choice: Choice, holder: u128, ttl: Micros) -> Self {
        Claim {
            choice,
            holder,
            ttl,
            max_hold: 0,
            wait: false,
            priority: 0,
            ageing: 0,
            waited: 0,
            steal: None,
        }
    }
}

/// Which slots a claim wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// Any that are ready: at least `least`, at most `most`.
    Any {
        /// How to choose among them.
        strategy: Strategy,
        /// 1 to `most`.
        least: u32,
        /// `least` to [`crate::slots::MAX_PER_REQUEST`].
        most: u32,
    },
    /// So many of these, in the order given, and those in doubt after the others. Who waits for them stands in the lines of all
    /// of them, and behind those who came before it for any slot; where it is first it keeps what is there until that is enough.
    Among {
        /// The ids; one that is there twice counts once.
        slots: Vec<SlotId>,
        /// 1 to the number of ids.
        count: u32,
    },
    /// All of these; those that the pool does not have are made for the time of their lease.
    Named {
        /// The ids; one that is there twice counts once.
        slots: Vec<SlotId>,
    },
    /// Those of these that are free, in the order given: at least `least`, at most `most` of them. Names that the pool
    /// does not have are free, and made for the time of their lease. So is what this holder was granted before it asked:
    /// the new lease takes the place of the old one. Not so what it was granted since: then this claim is one that was
    /// delayed, and what came of it is given back, while a later one of the same holder stands.
    #[cfg(feature = "tokens")]
    Free {
        /// The ids; one that is there twice counts once.
        slots: Vec<SlotId>,
        /// 1 to `most`.
        least: u32,
        /// `least` to [`crate::slots::MAX_PER_REQUEST`].
        most: u32,
        /// The store's time when it asked, or earlier; 0 takes the place of nothing.
        asked: Micros,
    },
}

/// How a claim of any slot chooses among those that are ready.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Each with the same chance.
    #[default]
    Random,
    /// The one that has been ready longest.
    LeastRecent,
    /// Each with a chance in proportion to its weight.
    Weighted,
}

/// A lease, as its holder names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRef {
    /// The slot.
    pub slot: SlotId,
    /// The fence of the grant.
    pub fence: u64,
    /// Where the store said that it keeps the slot; only a hint.
    pub place: u32,
}

/// A slot to be added.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotSpec {
    /// Its id.
    pub slot: SlotId,
    /// 1 to [`crate::slots::MAX_WEIGHT`].
    pub weight: u8,
}

impl SlotSpec {
    /// The same slots, their ids in one piece of memory: very many of them are sooner found so.
    #[cfg(not(target_family = "wasm"))]
    pub fn together<'a>(slots: impl Iterator<Item = &'a SlotSpec> + Clone) -> Vec<Self> {
        let ids = SlotId::together(slots.clone().map(|spec| &spec.slot));
        slots.zip(ids).map(|(spec, slot)| SlotSpec { slot, weight: spec.weight }).collect()
    }

    /// The same slots. A wasm module is judged by its size.
    #[cfg(target_family = "wasm")]
    pub fn together<'a>(slots: impl Iterator<Item = &'a SlotSpec>) -> Vec<Self> {
        slots.cloned().collect()
    }
}

/// A change of one slot, seen by all processes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotChange {
    /// Hand it out again; ends a quarantine, not a cooldown.
    Enable,
    /// Hand it out no more; its lease, if any, is not renewed.
    Disable,
    /// Hand it out no more; its lease, if any, may be renewed until its holder gives it back.
    Drain,
    /// Forget it, after its lease if it has one.
    Remove,
    /// Hand it out no more for so long; its nonce is in doubt afterwards.
    Quarantine(Micros),
    /// End its lease by force; its nonce is in doubt.
    Break,
}
