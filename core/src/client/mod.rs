//! The client: waiting, retries, coalescing, deadlines. The one asynchronous part, tied to no runtime.
//!
//! A [`Leasehold`] opens [`Pool`]s in a store; a pool gives out [`Lease`]s. What the client needs of its
//! surroundings (time, tasks, randomness) it asks of a [`Runtime`](crate::runtime::Runtime).

mod acquisition;
mod admin;
mod builders;
mod courier;
#[cfg(test)]
#[cfg(feature = "tokio")]
mod faulty;
mod holding;
mod keeper;
mod lanes;
mod lease;
mod leasehold;
#[cfg(feature = "limits")]
mod limits;
mod lock;
mod locked;
#[cfg(feature = "redis")]
pub mod native;
mod nonce_source;
mod options;
mod pool;
mod pursuit;
mod quorum;
mod statistics;
mod stock;
#[cfg(feature = "tokens")]
mod tokens;
mod vigil;
mod waiting;
mod yields;

pub use self::holding::loss_only;
pub use admin::{Census, SlotState};
#[cfg(feature = "redis")]
pub use builders::Connect;
pub use builders::{Acquire, LockBuilder, LockNames, PoolBuilder};
#[cfg(feature = "limits")]
pub use builders::{LimitBuilder, Wait};
#[cfg(feature = "tokens")]
pub use builders::{Select, TokensBuilder};
pub use lease::Lease;
pub use leasehold::{Leasehold, OpenOptions, SeedConfig, Target};
#[cfg(feature = "limits")]
pub use limits::{Limit, LimitAnswer, LimitKind, LimitOptions, Outage, Reservation, Said, WaitOptions};
pub use lock::{Lock, LockState, RunError};
pub use locked::Locked;
pub use nonce_source::{NonceSource, ReadNonce};
pub(crate) use options::rest;
pub use options::{
    AcquireOptions, Keepalive, LOCK_TTL, LockOptions, PoolOptions, ReleaseOptions, Unit, read_rewind,
    read_slots, read_ttl, read_wait,
};
pub use pool::Pool;
pub use quorum::{MAX_SERVERS, Quorum};
pub use statistics::Statistics;
#[cfg(feature = "tokens")]
pub use tokens::{
    Change, LockedToken, PageAsk, SelectOptions, Selection, SharedSource, TokenCounts, TokenSource, Tokens,
    TokensInMemory, TokensOptions, read_ids, write_ids,
};
