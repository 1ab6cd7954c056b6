//! What happened in a world, in the order of true time. Plain data: this is all that the checker sees.

use std::sync::{Arc, Mutex};

use crate::charges::Charging;
use crate::limit_calls::{Ask, Told};
use crate::world::{Instant, ProcessId, unpoisoned};

/// One thing that happened.
#[derive(Clone, Debug)]
pub struct Event {
    /// When, in true time.
    pub at: Instant,
    /// To which process; 0 for the chain and the faults. Of what a server performed, who asked.
    pub process: ProcessId,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// The store performed requests, now and for the first time.
    Performed(Performance),
    /// A handle of a process was told of what the store performed for it.
    Heard {
        /// Which: its lanes without their numbers.
        handle: String,
        /// When it did, in true time.
        performed: Instant,
    },
    /// The store performed requests to limits, now and for the first time.
    Charged(Charging),
    /// A process asked something of limits.
    LimitAsked {
        /// The call's number.
        call: u64,
        /// What.
        ask: Ask,
        /// How much later than its timeout it may end.
        grace: u64,
    },
    /// It was told.
    LimitTold {
        /// The call's number.
        call: u64,
        /// Whether what the store does of it is known to be of this call.
        tagged: bool,
        /// What; `None` if the caller dropped it.
        told: Option<Told>,
    },
    /// A process prolongs what a call reserved.
    ReservationRenews {
        /// The call's number.
        call: u64,
    },
    /// It was told what became of that.
    ReservationRenewed {
        /// The call's number.
        call: u64,
        /// Whether what the store does of it is known to be of this call.
        tagged: bool,
        /// How long it lasts from when that was asked, at least.
        ttl: u64,
        /// The error's code.
        error: Option<String>,
    },
    /// A process ends what a call reserved.
    ReservationEnds {
        /// The call's number.
        call: u64,
        /// Whether it is given back.
        back: bool,
        /// How much of it stays charged, if not all.
        stays: Option<u64>,
    },
    /// It was told what became of that.
    ReservationEnded {
        /// The call's number.
        call: u64,
        /// Whether what the store does of it is known to be of this call.
        tagged: bool,
        /// The error's code.
        error: Option<String>,
    },
    /// The source of tokens lists one from here on.
    Listed {
        /// Its id.
        token: String,
        /// What it is worth.
        amount: u64,
    },
    /// It lists the token no more.
    Unlisted {
        /// Its id.
        token: String,
    },
    /// A process hears that a token is spent.
    HeardSpent {
        /// Its id.
        token: String,
    },
    /// A process selects tokens.
    SelectBegan {
        /// The call's number.
        call: u64,
        /// For how much.
        target: u64,
        /// How long it waits, on its own clock.
        timeout: u64,
        /// How much later it may end.
        grace: u64,
    },
    /// It has them, or an error's code; `None` if the caller dropped it.
    SelectEnded {
        /// The call's number.
        call: u64,
        /// How.
        end: Option<Result<Selected, String>>,
    },
    /// A process says that it spends these tokens; answered, if it was told that they stay locked.
    Spends {
        /// Their ids.
        tokens: Vec<String>,
        /// Whether it was told so.
        answered: bool,
    },
    /// The store forgot everything.
    Wiped,
    /// The store's keys were deleted while it ran.
    Flushed,
    /// The store restarted with its data.
    Restarted,
    /// The store's data was copied to a replica.
    Copied,
    /// The replica became the store: what came after the copy is lost.
    Promoted,
    /// The server's clock was set by so much.
    ClockStepped(i64),
    /// The store can be reached by nobody from here on, or is well again.
    StoreReachable(bool),
    /// A process was killed.
    Killed,
    /// A process was stopped, or goes on.
    Paused(bool),
    /// A process asked for leases.
    AcquireBegan {
        /// Its number.
        acquire: u64,
        /// How long it waits, on its own clock.
        timeout: u64,
        /// How much later it may end: an attempt without waiting has the response timeout.
        grace: u64,
    },
    /// The acquisition ended.
    AcquireEnded {
        /// Its number.
        acquire: u64,
        /// How many leases, or the error's code; `None` if the caller dropped it.
        end: Option<Result<usize, String>>,
    },
    /// A process relies on a lease until a true time.
    Believes {
        /// The slot.
        slot: String,
        /// The lease's fence.
        fence: u64,
        /// When its own deadline will have come, in true time.
        until: Instant,
    },
    /// A process relies on a lease no more.
    Closed {
        /// The lease's fence.
        fence: u64,
    },
    /// A process wants to be told of the end of a lease.
    Watched {
        /// The slot.
        slot: String,
        /// The lease's fence.
        fence: u64,
    },
    /// It has given back its part of a lease that others of its process hold, and is told nothing more of it for that part.
    Unwatched {
        /// The lease's fence.
        fence: u64,
    },
    /// It was told that the lease is lost.
    ToldLost {
        /// The lease's fence.
        fence: u64,
    },
    /// It was told that somebody of higher priority claims the lease.
    ToldClaimed {
        /// The lease's fence.
        fence: u64,
    },
    /// A write arrived at a resource that checks fences.
    Wrote {
        /// The resource.
        slot: String,
        /// The writer's fence.
        fence: u64,
        /// Whether it was taken.
        accepted: bool,
    },
    /// A release or renewal that was answered: its error's code, if it failed.
    Answered {
        /// The lease's fence.
        fence: u64,
        /// `release` or `renew`.
        call: &'static str,
        /// The error's code.
        error: Option<String>,
    },
    /// A process signed a transaction.
    Signed {
        /// The transaction.
        transaction: u64,
        /// The account.
        account: String,
        /// Its nonce.
        nonce: u64,
        /// The fence of the lease under which it was signed.
        fence: u64,
    },
    /// A transaction can never reach the chain: it was destroyed, or the network lost it.
    Vanished {
        /// The transaction.
        transaction: u64,
    },
    /// A transaction reached the chain.
    Arrived {
        /// The transaction.
        transaction: u64,
        /// Whether the chain took it.
        accepted: bool,
    },
    /// The most commands that a process sent within one second to a store that it could not reach.
    Attempts {
        /// How many.
        most: u64,
    },
    /// After the faults: an account was leased and used, its nonce and that of the chain before.
    Audited {
        /// The slot.
        slot: String,
        /// What went wrong.
        failure: Option<String>,
    },
    /// After the faults: everything that was wanted then has been had or given up.
    Calm,
    /// At the end: what the store still keeps of names and of those who wait.
    LeftBehind(Vec<String>),
    /// After the faults: what a process's own counts say is left over.
    Leftover {
        /// Callers that wait.
        waiting: u64,
        /// Leases that are held beyond those that were kept on purpose.
        leased: u64,
    },
}

/// Tokens that a caller has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selected {
    /// Their ids, and what each is worth.
    pub tokens: Vec<(String, u64)>,
    /// What they are worth together, as it was told.
    pub sum: u64,
    /// What that is above the target.
    pub change: u64,
}

/// Requests that a store performed as one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Performance {
    /// The store's time.
    pub now: u64,
    /// When it was sent, in true time, as far as it is a message.
    pub sent: Instant,
    /// The highest fence of the pool afterwards.
    pub top: u64,
    /// The highest fence that the sender has seen.
    pub seen: u64,
    /// Whether the sender saw the store's time jump.
    pub jumped: bool,
    /// The lane that it came in, and its number there; nothing where no copy can exist.
    pub envelope: Option<(String, u64)>,
    /// The longest time to live that any of them says.
    pub longest: u64,
    /// The last store time at which the sender wanted it done.
    pub not_after: Option<u64>,
    /// What came of it, in the order in which it did.
    pub facts: Vec<Fact>,
}

/// A claim, as it was asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Bid {
    /// The claim's own id, and that of its ticket.
    pub holder: String,
    /// What it wants.
    pub wish: Wish,
    /// The higher ones go first.
    pub priority: i64,
    /// The time of waiting that outweighs one step of priority; 0 if none does.
    pub ageing: u64,
    /// How long it has waited elsewhere.
    pub waited: u64,
    /// Whether it waits in line if it is refused.
    pub waits: bool,
    /// How long it waits for holders of lower priority, if it steals.
    pub steal: Option<u64>,
}

/// Which slots a claim wants.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// So many of any.
    Any(u64),
    /// As many of these names as nobody has.
    Free {
        /// The store's time when it was asked, or earlier: what the holder was granted after it stays.
        asked: u64,
        /// The names.
        names: Vec<String>,
        /// How many at most.
        most: u64,
    },
    /// So many of these, which the pool has.
    Among {
        /// How many.
        count: u64,
        /// The slots.
        slots: Vec<String>,
    },
    /// All of these names.
    Names(Vec<String>),
}

/// What came of one request.
#[derive(Clone, Debug, PartialEq)]
pub enum Fact {
    /// A claim was granted; the leases follow.
    Served(Bid),
    /// A claim was refused.
    Refused {
        /// The claim.
        bid: Bid,
        /// The word.
        why: String,
    },
    /// A ticket was given up.
    Withdrawn {
        /// Its claim's id.
        holder: String,
    },
    /// Slots are kept for a ticket.
    Offered {
        /// Its claim's id.
        holder: String,
    },
    /// The holders of these leases are called: somebody claims them.
    Called {
        /// Their fences.
        fences: Vec<u64>,
    },
    /// The pool has these slots.
    Defined {
        /// Their ids.
        slots: Vec<String>,
        /// The longest time to live of which whoever defines it knows.
        longest: u64,
    },
    /// A lease was granted.
    Granted {
        /// The claim's own id.
        holder: String,
        /// The slot.
        slot: String,
        /// The lease's fence.
        fence: u64,
        /// Its end in store time.
        deadline: u64,
        /// Renewals may prolong it so far in all; 0 for no bound.
        max_hold: u64,
        /// Whether its nonce is handed out as known.
        known: bool,
    },
    /// A lease was prolonged.
    Renewed {
        /// The slot.
        slot: String,
        /// The lease's fence.
        fence: u64,
        /// Its end in store time.
        deadline: u64,
    },
    /// A lease was not prolonged, because somebody of higher priority waits for its slot.
    Claimed {
        /// The slot.
        slot: String,
        /// The lease's fence.
        fence: u64,
        /// Its end in store time.
        deadline: u64,
    },
    /// A lease was given back.
    Released {
        /// The slot.
        slot: String,
        /// The lease's fence.
        fence: u64,
        /// How long the slot rests.
        rest: u64,
        /// What became of its nonce: the word.
        outcome: String,
        /// Whether a nonce was named.
        named: bool,
    },
    /// The chain's nonce was recorded under a lease.
    Resynced {
        /// The slot.
        slot: String,
        /// The lease's fence.
        fence: u64,
    },
    /// An administrator changed the slot.
    Changed {
        /// The slot.
        slot: String,
        /// The change's word.
        change: String,
    },
}

/// The record of a world, written by all its parts.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Mutex<Vec<Event>>>);

impl Performance {
    /// Whose lane it came in, without its number.
    pub fn handle(&self) -> Option<&str> {
        self.envelope.as_ref().map(|(lane, _)| handle_of(lane))
    }
}

/// Whose lane it is.
pub fn handle_of(lane: &str) -> &str {
    lane.rsplit_once(':').map_or(lane, |(handle, _)| handle)
}

impl History {
    /// Records an event.
    pub fn record(&self, at: Instant, process: ProcessId, what: What) {
        unpoisoned(&self.0).push(Event { at, process, what });
    }

    /// All events so far.
    pub fn take(&self) -> Vec<Event> {
        std::mem::take(&mut *unpoisoned(&self.0))
    }
}
