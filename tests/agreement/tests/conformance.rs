//! The suite of every store, on Redis: inside the process, and over a real connection.

use std::sync::atomic::{AtomicU32, Ordering};

use leasehold::SECOND;
use leasehold::id::PoolName;
use leasehold::store::redis::{NativeTransport, RedisStore, RedisUrl};
use leasehold::store::{EitherStore, MemoryStore, suite};
use leasehold_agreement::{Embedded, pool_name};
use leasehold_embedded::EmbeddedRedis;
use leasehold_servers::{RedisOptions, RedisServer};

fn names() -> impl Fn() -> PoolName {
    let count = AtomicU32::new(0);
    move || pool_name(&format!("suite:{}", count.fetch_add(1, Ordering::SeqCst)))
}

#[tokio::test]
async fn redis_inside_the_process_conforms() {
    let mut redis = EmbeddedRedis::new(SECOND);
    redis.set_time(1_700_000_000 * SECOND);
    suite::conforms(RedisStore::new(Embedded::new(redis)), names()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_over_a_connection_conforms() {
    let server = RedisServer::start(RedisOptions::default()).expect("started");
    let url = RedisUrl::new(&server.url()).expect("a URL");
    let transport = NativeTransport::new(url, tokio::runtime::Handle::current(), 5 * SECOND);
    suite::conforms(RedisStore::new(transport), names()).await;
}

#[tokio::test]
async fn either_store_conforms() {
    let memory = MemoryStore::new(leasehold::runtime::TokioRuntime::store_clock());
    suite::conforms(EitherStore::<Embedded>::Memory(memory), names()).await;
    let mut redis = EmbeddedRedis::new(SECOND);
    redis.set_time(1_700_000_000 * SECOND);
    suite::conforms(EitherStore::Redis(RedisStore::new(Embedded::new(redis))), names()).await;
}
