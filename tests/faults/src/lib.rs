//! The real client against real servers that fail: what the tests of this crate share.
//!
//! Every test has a server of its own on a free port, and a bound on everything that it waits for. A fresh
//! server grants nothing until the longest lease that it may have forgotten has ended, so the leases here
//! are short.

mod arrivals;
mod chain;
mod contenders;
mod counts;
mod holder;
mod place;
mod prize;
mod successor;
mod told;
mod wait;
mod wallet;

pub use arrivals::Arrivals;
pub use chain::Chain;
pub use contenders::{Contenders, Contest, Said};
pub use counts::{calls, connections, info, keys, tickets};
pub use holder::Holder;
pub use place::{
    Handle, Lease, Place, Pool, Tokens, handle, handle_with, opened, options, patient, quorum_with, within,
};
pub use prize::{Prize, Won};
pub use successor::successor;
pub use told::{cannot_be_used, goes_on};
pub use wait::{eventually, soon};
pub use wallet::{PATIENCE, tokens_from, tokens_of_one};
