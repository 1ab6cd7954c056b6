//! Checks of limits: beside empty scripts over one real server, and in memory.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use governor::{Quota, RateLimiter};
use leasehold::client::native::connect;
use leasehold::client::{LimitKind, LimitOptions};
use leasehold::{NativeLimit, SECOND};
use leasehold_servers::{RedisOptions, RedisServer};

use crate::series::{Pace, Series};
use crate::tally::rate;
use crate::{Anyhow, ceiling, runtime};

/// Callers at once.
const CALLERS: usize = 64;
/// What refills faster than it is taken, so that every check is allowed and written.
const MAX: u32 = 1_000_000_000;
/// Limits in memory, of which each check takes another.
const KEYS: usize = 1_000;

/// Measures and writes all figures.
pub fn measure(pace: Pace) -> Anyhow<()> {
    let server = RedisServer::start(RedisOptions::default())?;
    let (url, port) = (server.url(), server.port());
    let runtime = runtime()?;
    let (mut apart, mut groups) = (Vec::new(), Vec::new());
    for _ in 0..CALLERS {
        apart.push(runtime.block_on(async { limit(&url, "apart", 1) })?);
        groups.push(runtime.block_on(async { limit(&url, "apart", 4) })?);
    }
    let shared = runtime.block_on(async { limit(&url, "shared", 1) })?;
    let four = runtime.block_on(async { limit(&url, "shared", 4) })?;
    let memory = runtime.block_on(async {
        let handle = connect("memory:").namespace("peers").open()?;
        let limits = (0..KEYS).map(|at| handle.limit_with(&format!("memory-{at}"), &options()));
        Anyhow::Ok(limits.collect::<Result<Vec<_>, _>>()?)
    })?;
    let redis = |what: &str| format!("limits, {what}, {CALLERS} callers");
    let mut scripts = Series::new(redis("empty EVALSHA"), "ceiling");
    let mut subjects = [
        (vec![shared; CALLERS], Series::new(redis("one"), "leasehold")),
        (vec![four; CALLERS], Series::new(redis("four as one"), "leasehold")),
        (apart, Series::new(redis("one"), "leasehold, not coalesced")),
        (groups, Series::new(redis("four as one"), "leasehold, not coalesced")),
    ];
    let keyed = |subject| Series::new(format!("limits, in memory, 1 caller, {KEYS} of them"), subject);
    let (mut ours, mut theirs) = (keyed("leasehold"), keyed("governor"));
    for round in 0..pace.rounds {
        scripts.add(ceiling::empty_scripts(port, CALLERS, pace.time)?);
        for (limits, series) in &mut subjects {
            series.add(runtime.block_on(checks(limits, pace.time))?);
        }
        ours.add(runtime.block_on(in_turn(&memory, pace.time))?);
        theirs.add(governed(pace.time)?);
        eprintln!("limits: round {} of {}", round + 1, pace.rounds);
    }
    scripts.print("calls/s");
    subjects
        .iter()
        .map(|(_, series)| series)
        .chain([&ours, &theirs])
        .for_each(|series| series.print("checks/s"));
    costs(&server, &runtime)
}

/// A limit of a handle of its own, or so many charged as one.
fn limit(url: &str, name: &str, count: usize) -> Anyhow<NativeLimit> {
    let handle = connect(url).namespace("peers").open()?;
    let limit = |at| handle.limit_with(&format!("{name}-{at}"), &options());
    let limits = (0..count).map(limit).collect::<Result<Vec<_>, _>>()?;
    Ok(handle.group(limits.iter().map(Some))?)
}

fn options() -> LimitOptions {
    LimitOptions::new(u64::from(MAX), SECOND).kind(LimitKind::Refill)
}

async fn checks(limits: &[NativeLimit], time: Duration) -> Anyhow<f64> {
    let began = Instant::now();
    let callers: Vec<_> = limits
        .iter()
        .map(|limit| {
            let limit = limit.clone();
            tokio::spawn(async move {
                let mut count = 0u64;
                while began.elapsed() < time {
                    limit.increment(1u64).await?;
                    count += 1;
                }
                Anyhow::Ok(count)
            })
        })
        .collect();
    rate(callers, began).await
}

/// Checks a second of one caller, of one limit after the other.
async fn in_turn(limits: &[NativeLimit], time: Duration) -> Anyhow<f64> {
    let (began, mut count) = (Instant::now(), 0u64);
    while began.elapsed() < time {
        for limit in limits {
            limit.increment(1u64).await?;
        }
        count += limits.len() as u64;
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}

/// The same with governor's keyed limiter.
fn governed(time: Duration) -> Anyhow<f64> {
    let limiter = RateLimiter::dashmap(Quota::per_second(NonZeroU32::new(MAX).ok_or("none")?));
    let keys: Vec<String> = (0..KEYS).map(|at| format!("memory-{at}")).collect();
    let (began, mut count) = (Instant::now(), 0u64);
    while began.elapsed() < time {
        for key in &keys {
            limiter.check_key(key).map_err(|_| "it refused")?;
        }
        count += keys.len() as u64;
    }
    Ok(count as f64 / began.elapsed().as_secs_f64())
}

/// What a check alone costs the server, in microseconds of its script.
fn costs(server: &RedisServer, runtime: &tokio::runtime::Runtime) -> Anyhow<()> {
    for count in [1, 4] {
        let limit = runtime.block_on(async { limit(&server.url(), "cost", count) })?;
        runtime.block_on(limit.increment(1u64))?;
        server.command(&["CONFIG", "RESETSTAT"])?;
        for _ in 0..5_000 {
            runtime.block_on(limit.increment(1u64))?;
        }
        let info = server.command(&["INFO", "commandstats"])?;
        let text = info.as_text().unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with("cmdstat_evalsha:")).unwrap_or_default();
        eprintln!("limits: {count} alone: {line}");
    }
    Ok(())
}
