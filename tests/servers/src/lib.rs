//! Real servers for tests: Redis or Valkey, a cluster, a sentinel, and a proxy that breaks connections on purpose.
//!
//! Every server runs on a free loopback port in a directory of its own, without persistence unless asked for, and
//! is gone with its value: killed and reaped on drop, also when the test panics, and by the kernel when the test
//! process itself is killed. Only threads are used, no async runtime. Linux only.
//!
//! The binary is `redis-server` from the PATH, or what `LEASEHOLD_REDIS_SERVER` names.
//!
//! A failover proves something only if the replication link was cut before the kill, so replicas are put behind a
//! proxy: [`RedisServer::replicate_through`] with [`Proxy::cut`].
//!
//! ```no_run
//! use leasehold_servers::{Proxy, RedisOptions, RedisServer};
//!
//! # fn main() -> std::io::Result<()> {
//! let server = RedisServer::start(RedisOptions::default())?;
//! let proxy = Proxy::start(server.port())?;
//! proxy.drop_replies(1); // the next command is executed, and its reply is lost
//! # Ok(())
//! # }
//! ```

mod certificate;
mod cluster;
mod connection;
mod fault_state;
mod frame;
mod link;
mod options;
mod port;
mod process;
mod proxy;
mod resp;
mod sentinel;
mod server;
mod spawner;
mod workdir;

pub use certificate::Certificate;
pub use cluster::Cluster;
pub use connection::RespConnection;
pub use options::RedisOptions;
pub use proxy::Proxy;
pub use resp::Resp;
pub use sentinel::Sentinel;
pub use server::RedisServer;
