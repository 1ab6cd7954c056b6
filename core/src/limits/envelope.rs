//! What travels to a ledger in one piece, and back.

use super::{Charge, Reply, Request, Standing};
use crate::Micros;
use crate::id::Name;
use crate::slots::Lane;

/// Requests that travel together and are performed as one, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Envelope {
    /// Makes the envelope idempotent; `None` where no copy of it can exist.
    pub lane: Option<Lane>,
    /// The last wall-clock time of the store at which it may be performed; later, it changes nothing.
    pub not_after: Option<Micros>,
    /// What the sender has seen of limits of money that the requests charge, in the order in which they name them first.
    pub seen: Vec<Seen>,
    /// 1 to [`super::MAX_REQUESTS`].
    pub requests: Vec<Request>,
}

/// How a limit stood when a client last heard of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The letter of its kind, by which records are apart: `b` for a budget, `l` for a lifetime.
    pub kind: char,
    /// Its name.
    pub limit: Name,
    /// How it stood.
    pub standing: Standing,
}

/// When and on what server an envelope is performed.
#[derive(Clone, Copy, Debug)]
pub struct Moment<'a> {
    /// The server's wall clock.
    pub wall: Micros,
    /// What changes when the server restarts or is promoted (Redis: its replication id).
    pub incarnation: &'a str,
}

impl Envelope {
    /// The limits of money that its requests charge, each once, in order. They are few: a set of them would cost the wasm module
    /// more than it saves.
    pub(crate) fn of_money(&self) -> Vec<(char, &Name)> {
        let mut limits = Vec::new();
        for Charge { limit, rule, .. } in self.requests.iter().flat_map(|request| &request.charges) {
            let limit = (rule.letter(), limit);
            if rule.is_of_money() && !limits.contains(&limit) {
                limits.push(limit);
            }
        }
        limits
    }

    /// The same, each with what the sender has seen of it.
    pub(crate) fn of_money_as_seen(&self) -> impl Iterator<Item = ((char, &Name), Option<&Standing>)> {
        let mut seen = self.seen.iter().peekable();
        self.of_money().into_iter().map(move |limit| {
            let of = |seen: &&Seen| (seen.kind, &seen.limit) == limit;
            (limit, seen.next_if(of).map(|seen| &seen.standing))
        })
    }
}

/// The answer to an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It was performed, now or when it first came.
    Performed(Performed),
    /// It came too late, or a later one of its lane came first; nothing changed.
    Stale {
        /// The store's time.
        now: Micros,
    },
}

/// What came of an envelope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Performed {
    /// The store's wall clock.
    pub now: Micros,
    /// One for each request.
    pub replies: Vec<Reply>,
    /// How each limit of money stands that the envelope charges, in the order in which it names them first; nothing of one
    /// that was not looked at, or never used.
    pub standings: Vec<Option<Standing>>,
}
