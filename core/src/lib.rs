//! leasehold lets any number of processes share exclusive things without ever colliding: relayer accounts with their nonces,
//! named locks, a wallet's tokens, budgets of requests.
//!
//! A program opens a store and says what it wants, word by word ([`connect`], [`Leasehold`]; features `redis`, `tokens`,
//! `limits`):
//!
//! ```
//! # #[cfg(feature = "redis")]
//! # #[tokio::main]
//! # async fn main() -> Result<(), leasehold::Error> {
//! use std::time::Duration;
//!
//! let lh = leasehold::connect("memory:example").namespace("eth:1").open()?; // or redis://…, unchanged in meaning
//! let relayers = lh.pool("relayers").slots(["0xa11ce", "0xb0b"]).await?;
//! let lease = relayers.acquire().timeout(Duration::from_secs(3)).await?;
//! println!("{} is this caller's alone for {:?}", lease.slot(), lease.remaining());
//! lease.release().await?; // or drop it
//!
//! let lock = lh.lock("settlement").open()?;
//! let sum = lock.run(async |held| held.fence()).await?; // kept alive until the body ends
//! # assert!(sum > 0);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "redis"))]
//! # fn main() {}
//! ```
//!
//! Three layers, each of which may do less than the next:
//!
//! 1. **Machines** ([`slots`], [`tokens`], [`limits`]): plain synchronous Rust; the time is an argument, randomness is a seed.
//! 2. **Stores** ([`store`]): perform one request atomically, in this process's memory or in Redis.
//! 3. **Client** ([`client`]): the one asynchronous part: waiting, retries, coalescing, deadlines.
//!
//! Time, tasks and randomness are given to them ([`runtime`]).
//!
//! What programs say and hear of time are [`Duration`](std::time::Duration)s; inside, and where a name ends in `micros`, times
//! are in microseconds ([`Micros`]). What only the bindings of other languages use is not shown.

// Shows which feature an item needs, where docs.rs builds it.
#![cfg_attr(docsrs, feature(doc_cfg))]

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
mod poison;
mod row;
pub mod runtime;
pub mod slots;
pub mod store;
#[cfg(feature = "tokens")]
pub mod tokens;
#[doc(hidden)]
pub mod value;

pub use client::{Lease, Leasehold, Pool};
pub use error::{Code, Error};
#[cfg(feature = "doctor")]
pub use store::Finding;

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
