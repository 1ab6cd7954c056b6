//! leasehold lets any number of processes share exclusive things without ever colliding: relayer
//! accounts with their nonces first of all.
//!
//! Three layers, each of which may do less than the next:
//!
//! 1. **Machines** ([`slots`], [`tokens`]): plain synchronous Rust; the time is an argument, randomness is a seed.
//! 2. **Stores** ([`store`]): perform one request atomically, in this process's memory or in Redis.
//! 3. **Client** ([`client`]): the one asynchronous part: waiting, retries, coalescing, deadlines.
//!
//! Every duration inside the crate is in microseconds ([`Micros`]) unless its name says otherwise.

#[cfg(any(feature = "tokens", feature = "limits"))]
pub mod amount;
pub mod client;
pub mod error;
pub mod fence;
pub mod handshake;
pub mod id;
#[cfg(feature = "limits")]
pub mod limits;
pub mod nonce;
pub mod slots;
pub mod store;
#[cfg(feature = "tokens")]
pub mod tokens;
pub mod value;

pub use client::{Lease, Leasehold, Pool};
pub use error::{Code, Error};

#[cfg(feature = "redis")]
pub use client::native::{
    NativeLease, NativeLeasehold, NativeLock, NativeLocked, NativePool, NativeQuorum, connect, quorum,
};
#[cfg(all(feature = "redis", feature = "limits"))]
pub use client::native::{NativeLimit, NativeReservation};
#[cfg(all(feature = "redis", feature = "tokens"))]
pub use client::native::{NativeSelection, NativeTokens};

/// The examples of the README run as tests.
#[cfg(all(doctest, feature = "redis"))]
#[doc = include_str!("../../README.md")]
struct Readme;

/// A point in a store's time (since the Unix epoch) or a duration, in microseconds.
pub type Micros = u64;

/// Microseconds in a millisecond.
pub const MILLISECOND: Micros = 1_000;
/// Microseconds in a second.
pub const SECOND: Micros = 1_000_000;
