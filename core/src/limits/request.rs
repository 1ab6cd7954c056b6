//! What is asked of limits, and what they reply.

use super::{Amount, Rule, Term};
use crate::Micros;
use crate::id::{self, Name};

/// One thing that is done with limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is done.
    pub act: Act,
    /// With which limits: 1 to [`super::MAX_CHARGES`], each of them once.
    pub charges: Vec<Charge>,
}

impl Request {
    /// The limits of which it may leave more than there was.
    pub fn freed(&self) -> impl Iterator<Item = &Name> {
        let frees = |charge: &&Charge| match self.act {
            Act::Take | Act::Peek | Act::Reserve { .. } | Act::Renew { .. } => false,
            Act::Commit { .. } => matches!(charge.rule, Rule::InFlight { .. }),
            Act::Keep { .. } | Act::GiveBack { .. } | Act::Refund | Act::Reset => true,
        };
        self.charges.iter().filter(frees).map(|charge| &charge.limit)
    }
}

/// A limit, and what is taken of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Charge {
    /// The limit's name.
    pub limit: Name,
    /// What it allows from now on.
    pub rule: Rule,
    /// How much.
    pub cost: Amount,
    /// Whether it is open in an outage: then its client counts along what the store allows. A store does not look at it.
    pub open: bool,
}

/// A [`Charge`] that is borrowed from whoever asks: what a check in memory takes is less than what it costs to make one.
#[derive(Clone, Copy, Debug)]
pub struct Charged<'a> {
    /// The limit, and what it allows from now on.
    pub term: &'a Term,
    /// How much.
    pub cost: Amount,
}

impl From<&Charged<'_>> for Charge {
    fn from(charged: &Charged<'_>) -> Charge {
        let Charged { term, cost } = *charged;
        Charge { limit: term.name().clone(), rule: *term.rule(), cost, open: false }
    }
}

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// All costs are charged, or none. A cost of 0 is always allowed and brings the record up to this time.
    Take,
    /// Whether all could be charged; nothing is.
    Peek,
    /// As [`Act::Take`]; what is charged can be given back until the reservation ends, and is in flight until then.
    Reserve {
        /// Random, new for every reservation.
        id: u128,
        /// How long it lasts.
        ttl: Micros,
        /// How its caller has waited by now, if it waits: of what is in flight is then kept for it what it has waited for, and it
        /// stands back for others. Of envelopes without a lane this means nothing.
        waited: Option<Waited>,
    },
    /// Prolongs a reservation: it lasts until the later of what it had and this time to live from now, and so does what it has in
    /// flight. That needs no room, and is not refused because a maximum was lowered or somebody waits.
    Renew {
        /// The reservation.
        id: u128,
        /// How long it lasts from now on, at least.
        ttl: Micros,
    },
    /// Ends a reservation: what it charged stays charged, and is in flight no longer.
    Commit {
        /// The reservation.
        id: u128,
    },
    /// Ends a reservation that charged more than is needed: of each limit so much stays charged as the request says, and the rest is
    /// given back, as far as it still counts. What is in flight is so no longer.
    Keep {
        /// The reservation.
        id: u128,
    },
    /// Ends a reservation: what it charged is given back, as far as it still counts.
    GiveBack {
        /// The reservation.
        id: u128,
    },
    /// Gives back what was charged without a reservation. Never to more than the limit's whole.
    Refund,
    /// The limits are as if never used. Reservations of before give nothing back of them, and what they have in flight is
    /// forgotten.
    Reset,
}

/// How a caller has waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waited {
    /// For how long.
    pub time: Micros,
    /// How long an answer takes to reach it: it asks again so much later, and what is kept for it is so for so much longer.
    pub reply: Micros,
}

impl From<Micros> for Waited {
    fn from(time: Micros) -> Waited {
        Waited { time, reply: 0 }
    }
}

/// A sum over what limits are known by.
pub(crate) fn sum<'a>(limits: impl Iterator<Item = (char, &'a Name)>) -> u32 {
    id::sum(limits.flat_map(|(letter, name)| {
        // No name has the byte that ends it.
        std::iter::once(letter as u8).chain(name.as_str().bytes()).chain(std::iter::once(0))
    }))
}

/// Who waits for the same limits, in 16 bits: those of one process stand in one line then.
pub(crate) fn line<'a>(limits: impl Iterator<Item = (char, &'a Name)>) -> u16 {
    let sum = sum(limits);
    (sum ^ sum >> 16) as u16
}

impl Act {
    /// Whether it makes a reservation, prolongs or ends one.
    pub(crate) fn is_of_reservation(self) -> bool {
        !matches!(self, Act::Take | Act::Peek | Act::Refund | Act::Reset)
    }
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Of all acts but those that prolong or end a reservation.
    Judged(Verdict),
    /// Of those.
    Settled(Settlement),
}

/// Whether a request is allowed, as the limit says that binds it: of those that refuse, the one that does so longest; of
/// those that allow, the one of which least remains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether all limits allow it.
    pub allowed: bool,
    /// Which of its charges binds it.
    pub binding: usize,
    /// What can still be taken of that limit.
    pub remaining: Amount,
    /// When it would be allowed: 0 if it is, nothing if it never will.
    pub retry_after: Option<Micros>,
    /// When that limit is as if never used; nothing if never.
    pub reset_after: Option<Micros>,
}

/// What became of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// It ends with this request, or lasts for longer.
    Done,
    /// It had ended before. One that was to be given back and was not, as the store had lost its memory, counts as committed.
    Before {
        /// Whether it was given back then.
        given_back: bool,
    },
    /// It is not there: its time has passed, and what it charged stays charged. So does what was to be given back by who had not heard
    /// that the store lost its memory. Of one that was to be prolonged also that something it had in flight is counted no more.
    Gone,
}
