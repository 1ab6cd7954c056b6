//! The judge: reads a history and nothing else, and shares no code with the library.
//!
//! | rule | says |
//! |---|---|
//! | S1 | no two leases of one slot are in force, in the store's time and in the holders' beliefs in true time |
//! | S2 | the fences of a pool, and so of each slot, increase over all grants ever, whatever the store forgot |
//! | S3 | only the lease in force is renewed, released or resynced |
//! | S4 | no holder relies on a lease for longer than the store keeps it |
//! | K1 | nobody else is granted a slot before its last holder, if that is awake, was told that its lease is lost |
//! | S5 | no nonce of an account is signed under two leases unless one can never count, as the chain has refused it or the gate before it a fence that is older than one that has come there |
//! | S6 | a lease is claimed by somebody of higher priority only, is not prolonged while that one waits, and ends for it when its patience does, not before; if it has gone, as before: see [`Thefts`] |
//! | K3 | the holder of a lease that is claimed is called, and hears of it in time, the first time, if nothing is lost |
//! | F1 | a resource that checks fences takes no write of a late holder after one of a newer, and refuses no other |
//! | S7 | no lease that the store did not grant; no "exhausted" from a store that nobody can reach |
//! | N1 | several names are granted all together, until one moment, or none of them |
//! | N2 | when nobody wants them any more the store keeps nothing of names and of those who waited |
//! | R1 | no lease is given back while its holder relies on it |
//! | S10 | a nonce of which nobody said what became of it is not handed out as known |
//! | S11 | after the store lost memory nothing is granted for one longest time to live and one rest of doubt, as soon as it can know, and all who have heard of the longest tell it, with the first that they say: see [`QuietTimes`]; of keys that were deleted while it ran it is told by the first who asks and has seen what it had; of money no process spends more than a limit allows, whatever the store forgot |
//! | C2 | nothing is granted before its rest has ended |
//! | L7 | no lease is prolonged beyond its longest hold |
//! | E1, E2 | no envelope is performed after its last moment; no claim is granted twice |
//! | E3 | the store's time runs forward only, as long as memory is kept |
//! | Q1 | nobody is granted or offered what somebody wants who stands before it in the line: see [`LineModel`] |
//! | Q2 | what is offered is kept for that ticket, which gets it when it asks in time |
//! | Q3 | what is free is offered to the first in line who wants it, once all that it wants is free |
//! | Q4 | only who stands in line is offered anything |
//! | Q5 | whoever is awake and can be reached claims what it is offered, or withdraws, in time: see [`Turns`] |
//! | Q6 | whoever is awake, can be reached and is the first in line looks in time when what it wants comes free by itself, as a rest or a lease ends |
//! | T1, T2 | every acquisition ends once, by its timeout, in a way that its caller can understand |
//! | T3 | the truth about a nonce is never refused |
//! | W1 | a store that is gone is not hammered |
//! | S9 | no window of a limit holds more than it allows of what callers were surely allowed: see [`Windows`] |
//! | M1, M2 | what a store says of limits, and the times it tells, are what the definitions say: see [`LedgerModel`] |
//! | M3 | a reservation ends once, before its time, and its end is told as it was; one that is renewed is prolonged |
//! | M4 | a call is charged once, if it was allowed, and nothing is charged but for a call |
//! | M5 | a refusal that is remembered is the store's, of a second ago at most |
//! | M6 | in an outage a limit is closed, or it is open and allows a process what it would be allowed alone |
//! | M7 | how a limit of money stands is told as it is, and what was seen of it counts: see [`Births`](crate::births::Births) |
//! | V1 | a selection is told the truth about what the wallet holds, whoever has it: see [`Selections`] |
//! | V2 | what is selected are tokens of the wallet, each once, and their sum and change are exact |
//! | V3 | a token that was spent, and whose lock was kept then, is in no later selection |
//! | V5 | a token of which a process heard that it is spent is in none of its selections, while pages may be late |
//! | V4 | of the names that are claimed as far as they are free, those that are not granted are held |
//! | A1 | after the storm every process can lease, and every account can be leased and used |
//! | A2 | after the storm nobody waits and nothing is held |
//!
//! A store that lost what was used of limits allows one more maximum, of money to those who have not seen it. Excused is what the library does not promise: leases that were given before the server's clock was set
//! forward, that an administrator broke, or whose slot one removed, may meet their successors. So may those who are granted something after keys were deleted,
//! before anybody asks who has seen what was there, or after a loss, before anybody asks who has heard of the longest leases. So may who was robbed, by a
//! thief that does not wait for the end of leases.

mod judge;
mod turn;

use std::fmt;

use self::judge::Judge;
use crate::census::Census;
use crate::history::Event;
#[cfg(doc)]
use crate::ledger_model::LedgerModel;
#[cfg(doc)]
use crate::line_model::LineModel;
#[cfg(doc)]
use crate::quiet_times::QuietTimes;
#[cfg(doc)]
use crate::selections::Selections;
#[cfg(doc)]
use crate::thefts::Thefts;
#[cfg(doc)]
use crate::turns::Turns;
#[cfg(doc)]
use crate::windows::Windows;
use crate::world::Instant;

/// What may be held against a world.
#[derive(Clone, Debug)]
pub struct Rules {
    /// The longest time to live of any lease. Those of some processes may be shorter.
    pub ttl: u64,
    /// How long one reply may take.
    pub response_timeout: u64,
    /// How long a slot in doubt rests.
    pub doubt_rest: u64,
    /// All accounts.
    pub accounts: Vec<String>,
    /// Whether a slot may be missing: each process adds some only, or administrators remove some.
    pub mixed: bool,
    /// The workers of a process.
    pub workers: u64,
    /// Whether clocks drift by up to a hundredth.
    pub drift: bool,
    /// For how long thieves wait for a holder at most, unless they wait for the end of its lease.
    pub patience: u64,
    /// Within how long a holder that listens hears that its lease is claimed, and one that waits asks when it is called or
    /// when what it waits for comes free, if that is certain.
    pub prompt: Option<u64>,
}

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: &'static str,
    /// When, in true time.
    pub at: Instant,
    /// The number of the event.
    pub event: usize,
    /// How.
    pub text: String,
}

/// A rule that was broken, without its time.
#[derive(Debug)]
pub struct Breach {
    rule: &'static str,
    text: String,
}

impl Breach {
    pub(crate) fn new(rule: &'static str, text: impl Into<String>) -> Self {
        Breach { rule, text: text.into() }
    }

    /// The same of another rule.
    pub(crate) fn of(self, rule: &'static str, whose: &str) -> Self {
        Breach { rule, text: format!("{whose}: {}", self.text) }
    }

    /// The same as the event of this number shows it.
    pub(crate) fn at(self, at: Instant, event: usize) -> Violation {
        Violation { rule: self.rule, at, event, text: self.text }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {:.6} s: {}", self.rule, self.at as f64 / 1e6, self.text)
    }
}

/// The first rule that the history breaks.
pub fn judge(rules: &Rules, events: &[Event], census: &Census) -> Option<Violation> {
    let mut judge = Judge::new(rules);
    for (event, number) in events.iter().zip(0..) {
        if let Err(breach) = judge.read(event, census) {
            return Some(breach.at(event.at, number));
        }
    }
    let at = events.last().map_or(0, |event| event.at);
    judge.end().err().map(|breach| breach.at(at, events.len()))
}
