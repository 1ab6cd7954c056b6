//! A Redis inside the process, for deterministic simulation.
//!
//! The real scripts run in Lua 5.1 against a data set in memory, on a clock that the test sets. Nothing is ambient:
//! no time, no randomness, no thread, no socket. Equal calls give equal replies, so a simulation repeats from its seed.
//!
//! What is emulated is Redis 7.0: its commands on strings, hashes, lists, sets and sorted sets, its rules for numbers,
//! its error texts (also `script: <sha>, on @user_script:<line>.`), the read-only world of its scripts. The test
//! `differential` holds it against a real server, reply by reply.
//!
//! It is stricter than one server in two ways: a script that touches a key that is not in KEYS gets
//! `ERR undeclared key`, as a cluster would misbehave there; and a key goes the moment it expires.
//!
//! It leaves out: RESP3, transactions, streams, blocking commands, subscriptions (`published` gives what was sent),
//! functions, `#!lua` headers, the libraries cjson, cmsgpack and bit, most formats of struct, `load` and `loadstring`. Sets
//! come sorted, and hashes of more than 128 fields in the order in which they were filled, where Redis promises no order.
//!
//! ```
//! use leasehold_embedded::{EmbeddedRedis, Resp};
//!
//! let mut redis = EmbeddedRedis::new(1_700_000_000_000_000);
//! let script = b"return redis.call('SET', KEYS[1], ARGV[1], 'PX', 50)";
//! assert_eq!(redis.command(&[b"EVAL", script, b"1", b"k", b"v"]), Resp::ok());
//! redis.set_time(redis.time() + 51_000);
//! assert_eq!(redis.command(&[b"GET", b"k"]), Resp::Nil);
//! ```

mod arguments;
mod command;
mod commands;
mod embedded_redis;
mod error_reply;
mod fault;
mod interpreter;
mod keyspace;
mod number;
mod packing;
mod replication_id;
mod server;
mod snapshot;
mod sorted_set;
mod value;

pub use embedded_redis::EmbeddedRedis;
pub use fault::Fault;
pub use leasehold_servers::Resp;
pub use snapshot::Snapshot;
