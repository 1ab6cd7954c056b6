//! What is known of one token, and where it stands.

use crate::Micros;
use crate::id::SlotId;
use crate::tokens::shelves::Priced;
use crate::tokens::{Amount, Token};

/// A token as one process knows it.
#[derive(Debug)]
pub(super) struct Entry {
    pub token: Token,
    /// While it is taken: what the source has it as since, where that is worth something else. In a box, as it is rare.
    pub anew: Option<Box<Token>>,
    pub slot: SlotId,
    /// Where it comes in the walk.
    pub turn: u64,
    pub state: State,
    pub queued: bool,
    /// When the source told of it last: a walk may be late for it, and for what it is worth. 0 if it did not.
    pub told: Micros,
    /// When the source last listed it or told of it, and in which walk.
    pub seen: Micros,
    pub walk: u32,
    /// How often others had it since it was had last.
    pub misses: u8,
    /// While it is taken or spent: until when.
    pub until: Micros,
    /// The source said that it is spent: until when a page that lists it is late.
    pub barred: Micros,
}

/// Where a token stands, for one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Free,
    /// A selection of this process has it, or asks for it.
    Taken,
    /// So it does, but the source lists it no more: it does not come back, and is no part of the total.
    Leaving,
    /// Another has it.
    Resting,
    /// Listed too long ago.
    Stale,
    /// Spent by a selection of this process, or said to be, and perhaps listed still. No part of the total.
    Spent,
    /// Not there: its place waits for the queue to pass over it.
    Gone,
}

impl Entry {
    /// As the source has it, whatever its holder was given.
    pub fn latest(&self) -> &Token {
        self.anew.as_deref().unwrap_or(&self.token)
    }

    /// Until when a page that lists it is late.
    pub fn rests_until(&self) -> Micros {
        if self.state == State::Spent { self.until.max(self.barred) } else { self.barred }
    }
}

impl Priced for Entry {
    fn amount(&self) -> Amount {
        self.token.amount
    }

    fn since(&self) -> u64 {
        self.token.since
    }

    fn seen(&self) -> Micros {
        self.seen
    }

    fn is_free(&self) -> bool {
        self.state == State::Free
    }
}
