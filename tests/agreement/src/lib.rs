//! Holds the two wordings of the machines of slots and of limits against each other: the Rust one, and the script that
//! runs in Redis. Equal envelopes at equal moments must get equal answers.
//!
//! Random [`Traffic`] goes to the machine and, in the words that really travel, to a Redis inside the process
//! (a virtual clock, restarts, lost memory) or to a real server (its own clock). A run repeats from its seed:
//! `LEASEHOLD_SEED=7` replays one trace, `LEASEHOLD_ROUNDS=1000` runs more of them.
//!
//! The scenarios of [`scenarios`] are kept as transcripts in `tests/vectors`, which every language replays.

mod charging;
mod dated;
mod json;
mod ledger;
mod random;
pub mod scenarios;
mod script;
mod traffic;
mod transports;

pub use charging::Charging;
pub use dated::Dated;
pub use json::{to_json, to_value};
pub use random::{Random, seeds};
pub use script::Script;
pub use traffic::{Scale, Traffic};
pub use transports::{Embedded, Real};

use futures_util::FutureExt;
use leasehold::id::{Name, PoolName};
use leasehold::slots::{Answer, Envelope, Reply};
use leasehold::store::{StoreError, StorePool};

/// Performs an envelope on a pool whose transport never waits.
///
/// # Panics
/// If the transport waits.
pub fn perform<P: StorePool>(pool: &P, envelope: &Envelope) -> Result<Answer, StoreError> {
    pool.perform(envelope).now_or_never().expect("the transport answers at once")
}

/// The name of a pool.
///
/// # Panics
/// If that is no name.
pub fn pool_name(pool: &str) -> PoolName {
    let name = |text| Name::new(text).expect("a name");
    PoolName { namespace: name("eth:1"), pool: name(pool) }
}

/// An answer without the hints where slots are kept: those are each store's own.
#[must_use]
pub fn without_hints(mut answer: Answer) -> Answer {
    if let Answer::Performed(performed) = &mut answer {
        for reply in &mut performed.replies {
            if let Reply::Granted(grants) | Reply::Partly { grants, .. } = reply {
                grants.iter_mut().for_each(|grant| grant.place = 0);
            }
        }
    }
    answer
}
