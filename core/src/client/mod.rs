//! The client: waiting, retries, coalescing, deadlines. The one asynchronous part, tied to no runtime.
//!
//! A [`Leasehold`] opens [`Pool`]s in a store; a pool gives out [`Lease`]s. What the client needs of its
//! surroundings (time, tasks, randomness) it asks of a [`Runtime`].

mod acquisition;
mod admin;
#[cfg(feature = "tokio")]
pub(crate) mod alarms;
#[cfg(feature = "tokio")]
mod alertness;
mod builders;
#[cfg(feature = "tokio")]
mod calls;
mod courier;
#[cfg(feature = "tokio")]
mod engine;
#[cfg(test)]
#[cfg(feature = "tokio")]
mod faulty;
mod holding;
#[cfg(feature = "tokio")]
#[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "only what has sockets asks whose turn it is"))]
pub(crate) mod host;
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
pub(crate) mod runtime;
mod send;
mod statistics;
mod stock;
#[cfg(feature = "tokio")]
pub(crate) mod tasks;
#[cfg(feature = "tokens")]
mod tokens;
mod vigil;
mod waiting;
#[cfg(test)]
#[cfg(feature = "tokio")]
mod warped;
mod yields;

pub use self::holding::loss_only;
pub use admin::{Census, SlotState};
#[cfg(feature = "tokio")]
pub use alertness::is_parallel;
#[cfg(feature = "redis")]
pub use builders::Connect;
pub use builders::{Acquire, LockBuilder, LockNames, PoolBuilder};
#[cfg(feature = "limits")]
pub use builders::{LimitBuilder, Wait};
#[cfg(feature = "tokens")]
pub use builders::{Select, TokensBuilder};
#[cfg(feature = "tokio")]
pub use calls::{Begun, Calls, Heard};
#[cfg(feature = "tokio")]
pub use engine::Engine;
#[cfg(feature = "tokio")]
pub use host::{Watched, Watcher};
pub use lease::Lease;
pub use leasehold::{Leasehold, OpenOptions, SeedConfig, Target};
#[cfg(feature = "limits")]
pub use limits::{Limit, LimitAnswer, LimitKind, LimitOptions, Outage, Reservation, Said, WaitOptions};
pub use lock::{Lock, RunError};
pub use locked::Locked;
pub use nonce_source::{NonceSource, ReadNonce};
pub(crate) use options::rest;
pub use options::{
    AcquireOptions, Keepalive, LOCK_TTL, LockOptions, PoolOptions, ReleaseOptions, Unit, read_rewind,
    read_slots, read_ttl, read_wait,
};
pub use pool::Pool;
pub use quorum::{MAX_SERVERS, Quorum};
pub use runtime::Runtime;
#[cfg(feature = "tokio")]
pub use runtime::TokioRuntime;
pub use send::{BoxedFuture, MaybeSend, MaybeSync};
pub use statistics::Statistics;
#[cfg(feature = "tokio")]
pub use tasks::{holding, let_go};
#[cfg(feature = "tokens")]
pub use tokens::{
    Change, LockedToken, PageAsk, SelectOptions, Selection, SharedSource, TokenCounts, TokenSource, Tokens,
    TokensInMemory, TokensOptions, read_ids, write_ids,
};
