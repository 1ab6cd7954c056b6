//! What a program in Rust says, word by word, of what it is about to open or to ask for. The words are those of the options,
//! which say what they mean and what they may be; what is wrong is said when the thing is opened or asked for.

mod acquire;
#[cfg(feature = "redis")]
mod connect;
#[cfg(feature = "limits")]
mod limit;
mod lock;
mod pool;
#[cfg(feature = "tokens")]
mod select;
#[cfg(feature = "tokens")]
mod tokens;
#[cfg(feature = "limits")]
mod wait;

use std::time::Duration;

pub use acquire::Acquire;
#[cfg(feature = "redis")]
pub use connect::Connect;
#[cfg(feature = "limits")]
pub use limit::LimitBuilder;
pub use lock::{LockBuilder, LockNames, LockOwner};
pub use pool::PoolBuilder;
#[cfg(feature = "tokens")]
pub use select::Select;
#[cfg(feature = "tokens")]
pub use tokens::TokensBuilder;
#[cfg(feature = "limits")]
pub use wait::Wait;

use super::Keepalive;
use crate::Micros;

impl From<bool> for Keepalive {
    fn from(wanted: bool) -> Self {
        if wanted { Keepalive::Third } else { Keepalive::Off }
    }
}

impl From<Duration> for Keepalive {
    fn from(interval: Duration) -> Self {
        Keepalive::Every(micros(interval))
    }
}

/// A duration in microseconds, of which the last is never lost: next to nothing is not nothing.
pub(in crate::client) fn micros(time: Duration) -> Micros {
    Micros::try_from(time.as_nanos().div_ceil(1_000)).unwrap_or(Micros::MAX)
}

#[cfg(test)]
#[cfg(all(feature = "redis", feature = "suite"))]
mod tests;
