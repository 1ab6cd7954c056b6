//! Keys that were deleted while the server ran: nothing of it tells so, until somebody asks who has seen what it had.

use crate::history::{Fact, Performance};
use crate::world::Instant;

/// A pool that was lost so, and of which the store cannot know yet.
#[derive(Clone, Copy, Debug)]
pub struct Flush {
    /// When.
    pub at: Instant,
    /// The highest fence of the lost pool.
    top: u64,
    /// Whether somebody has defined the pool anew.
    begun: bool,
}

impl Flush {
    /// A pool with this highest fence is lost.
    pub fn new(at: Instant, top: u64) -> Self {
        Flush { at, top, begun: false }
    }

    /// Whether a pool is there from which something can be missing.
    pub fn is_begun(&self) -> bool {
        self.begun
    }

    /// Whether the store is told of it by this: before there is a pool, nobody can tell.
    pub fn is_told(&mut self, done: &Performance) -> bool {
        self.begun |= done.facts.iter().any(|fact| matches!(fact, Fact::Defined { .. }));
        self.begun && (done.jumped || (1..=self.top).contains(&done.seen))
    }
}
