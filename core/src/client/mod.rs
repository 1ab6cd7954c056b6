//! The client: waiting, retries, coalescing, deadlines. The one asynchronous part, tied to no runtime.
//!
//! A [`Leasehold`] opens [`Pool`]s in a store; a pool gives out [`Lease`]s. What the client needs of its
//! surroundings (time, tasks, randomness) it asks of a [`Runtime`](crate::runtime::Runtime).

mod audience;
mod builders;
#[cfg(test)]
#[cfg(feature = "tokio")]
mod faulty;
mod lanes;
mod leasehold;
#[cfg(feature = "limits")]
mod limits;
mod lock;
#[cfg(feature = "redis")]
pub mod native;
mod options;
mod pool;
#[cfg(feature = "tokens")]
mod tokens;

#[cfg(feature = "redis")]
pub use builders::Connect;
pub use builders::{Acquire, LockBuilder, LockNames, PoolBuilder};
#[cfg(feature = "limits")]
pub use builders::{LimitBuilder, Wait};
#[cfg(feature = "tokens")]
pub use builders::{Select, TokensBuilder};
pub use leasehold::{Leasehold, OpenOptions, SeedConfig, Target};
#[cfg(feature = "limits")]
pub use limits::{
    Limit, LimitAnswer, LimitKind, LimitOptions, Outage, Reservation, Said, WaitOptions, read_cost,
};
pub use lock::holding::loss_only;
pub use lock::locked::Locked;
pub use lock::quorum::{MAX_SERVERS, Quorum};
pub use lock::{Lock, LockState, RunError};
pub(crate) use options::rest;
pub use options::{
    AcquireOptions, Keepalive, LOCK_TTL, LockOptions, PoolOptions, ReleaseOptions, Unit, read_rewind,
    read_slots, read_ttl, read_wait,
};
pub use pool::Pool;
pub use pool::admin::{Census, SlotState};
pub use pool::lease::Lease;
pub use pool::nonce_source::{NonceSource, ReadNonce};
pub use pool::statistics::Statistics;
#[cfg(feature = "tokens")]
pub use tokens::{
    Change, LockedToken, PageAsk, SelectOptions, Selection, SharedSource, TokenCounts, TokenSource, Tokens,
    TokensInMemory, TokensOptions, read_ids, write_ids,
};
