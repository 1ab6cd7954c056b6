//! x
use leasehold::client::*;
use leasehold::store::*;
use leasehold::value::Value;
#[tokio::main]
async fn main() {
    let url = std::env::args().nth(1).unwrap();
    let n: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let callers: usize = std::env::args().nth(3).unwrap().parse().unwrap();
    let rt = TokioRuntime::new(tokio::runtime::Handle::current());
    let ids: Vec<Value> = (0..n).map(|i| format!("0x{i:040x}").as_str().into()).collect();
    let opts = PoolOptions::default()
        .read(&Value::map([("slots", Value::List(ids)), ("ttl", Value::Number(2000.))]), Unit::Milliseconds)
        .unwrap();
    if url == "memory" {
        let lh =
            Leasehold::new(MemoryStore::named("", TokioRuntime::store_clock()), rt, OpenOptions::default());
        let pool = lh.pool("relayers", opts, None).await.unwrap();
        for _ in 0..3 {
            let t = std::time::Instant::now();
            let m = 1_000_000;
            for _ in 0..m {
                let l = pool.try_acquire(AcquireOptions::default()).unwrap().unwrap();
                l.unused();
                l.release_now(ReleaseOptions::default()).unwrap().unwrap();
            }
            println!("{:.0} pairs/s", m as f64 / t.elapsed().as_secs_f64());
        }
        return;
    }
    let transport = leasehold::store::redis::NativeTransport::new(
        leasehold::store::redis::RedisUrl::new(&url).unwrap(),
        tokio::runtime::Handle::current(),
        2_000_000,
    );
    let lh = Leasehold::new(RedisStore::new(transport), rt, OpenOptions::default());
    let pool = lh.pool("relayers", opts, None).await.unwrap();
    let t = std::time::Instant::now();
    let each = 100_000 / callers;
    let mut tasks = vec![];
    for _ in 0..callers {
        let pool = pool.clone();
        tasks.push(tokio::spawn(async move {
            for _ in 0..each {
                let l = pool.acquire(AcquireOptions::default()).await.unwrap();
                l.unused();
                l.release(ReleaseOptions::default()).await.unwrap();
            }
        }));
    }
    for t in tasks {
        t.await.unwrap();
    }
    println!("{:.0} pairs/s {:?}", (each * callers) as f64 / t.elapsed().as_secs_f64(), pool.statistics());
}
