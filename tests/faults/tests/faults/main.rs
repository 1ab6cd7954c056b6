//! One binary for all tests of this crate: they share what is linked, and run side by side.

/// The same body over a store in memory and over a server.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {
        mod in_memory {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name(leasehold_faults::Place::memory()).await;
                }
            )+
        }
        mod on_redis {
            $(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $name() {
                    super::$name(leasehold_faults::Place::redis()).await;
                }
            )+
        }
    };
}

mod aside;
mod cluster;
mod crowds;
mod doctor;
mod doubled;
mod eviction;
mod failover;
mod forgotten;
mod held;
mod keepalive;
mod leases;
mod leaving;
mod limits;
mod line;
mod load;
mod locks;
mod nonces;
mod outages;
mod processes;
mod push;
mod quorum;
mod refusals;
mod restarts;
mod secrets;
mod sentinel;
mod sql;
mod stealing;
mod tls;
mod tokens;
