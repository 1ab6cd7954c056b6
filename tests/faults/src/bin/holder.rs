//! A process that leases a slot, tells of it, and obeys one word a line.
//!
//! `holder URL SLOT TTL_MS` prints `slot fence nonce`, or `failed CODE MESSAGE` and ends. Then `state` prints whether the lease
//! can be relied on, `renew` renews it, `try` asks once for the slot, which it has itself, and `release` gives it back as used, which print
//! what came of that; the end of its input ends it.

use std::io::{BufRead, Write};

use leasehold::error::Result;
use leasehold_faults::{Chain, handle, options, patient, within};

fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).expect("somebody reads");
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, slot, ttl] = words.as_slice() else { panic!("holder URL SLOT TTL_MS") };
    let ttl = ttl.parse::<u64>().expect("milliseconds") * 1_000;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let _entered = runtime.enter();
    let chain = Chain::new(&[slot], 7);
    let options = leasehold::client::PoolOptions { ttl, ..options(&[slot]) };
    let acquired = runtime.block_on(async {
        let pool = handle(url).pool_with("relayers", options, chain.source()).await?;
        pool.acquire_with(patient()).await.map(|lease| (pool, lease))
    });
    let (pool, lease) = match acquired {
        Ok(acquired) => acquired,
        Err(error) => return say(&format!("failed {} {}", error.code().as_str(), error.message())),
    };
    let came = |outcome: Result<()>, done: &str| match outcome {
        Ok(()) => say(done),
        Err(error) => say(error.code().as_str()),
    };
    say(&format!("{} {} {}", lease.slot(), lease.fence(), lease.nonce().expect("a nonce")));
    for line in std::io::stdin().lock().lines() {
        match line.expect("a line").as_str() {
            "state" => say(if lease.is_held() { "held" } else { "lost" }),
            "renew" => came(runtime.block_on(lease.renew()), "renewed"),
            "try" => came(runtime.block_on(pool.acquire_with(within(0))).map(drop), "granted"),
            "release" => {
                lease.used(None).expect("a next nonce");
                came(runtime.block_on(lease.release_with(Default::default())), "released");
            }
            other => panic!("{other} is no word of mine"),
        }
    }
}
