//! Named locks over one real server: what they cost alone, and what many have of one.

use leasehold_servers::{RedisOptions, RedisServer};

use crate::contended::{drain, least_share, round_trip, wake_up};
use crate::locked::{pairs, pairs_by_majority, quorum, store};
use crate::series::{Pace, Series};
use crate::stolen::steal;
use crate::upkeep::{of_leases, of_waiters};
use crate::{Anyhow, runtime};

/// Callers at once.
const CALLERS: usize = 50;
/// Servers of which a majority grants a lock.
const SERVERS: usize = 3;
/// Contenders of so many priorities.
const PRIORITIES: [i16; 2] = [2, 100];
/// Leases that are renewed.
const LEASES: usize = 10_000;

/// Measures and writes all figures.
pub fn measure(pace: Pace) -> Anyhow<()> {
    let server = RedisServer::start(RedisOptions::default())?;
    let runtime = runtime()?;
    let (one, other) = (runtime.block_on(store(&server.url()))?, runtime.block_on(store(&server.url()))?);
    let servers = (0..SERVERS).map(|_| RedisServer::start(RedisOptions::default()));
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    let urls: Vec<String> = servers.iter().map(RedisServer::url).collect();
    let majority = runtime.block_on(quorum(&urls))?;
    let series = |name: &str| Series::new(format!("lock, {name}"), "leasehold");
    let mut alone = series("1 caller");
    let mut many = series(&format!("{CALLERS} callers"));
    let mut drained = series(&format!("{CALLERS} contenders of 5 ms, drained"));
    let mut ideal = Series::new(format!("lock, {CALLERS} contenders of 5 ms, drained"), "ideal");
    let mut waits = series(&format!("{CALLERS} contenders of 5 ms, wait p99"));
    let mut shares = series(&format!("{CALLERS} loopers, least to mean"));
    let mut woken = series("wake-up");
    let mut trips = Series::new("lock, wake-up", "round trip");
    let mut granted = Series::new("lock, 1 caller", "leasehold, of 3 servers");
    let mut stolen = PRIORITIES.map(|priorities| series(&format!("stolen, {priorities} priorities")));
    let mut idle = series(&format!("{CALLERS} idle waiters"));
    let mut renewed = Series::new(format!("redis, {LEASES} leases renewed"), "leasehold");
    for round in 0..pace.rounds {
        alone.add(runtime.block_on(pairs(&one, 1, pace.time))?);
        granted.add(runtime.block_on(pairs_by_majority(&majority, pace.time))?);
        many.add(runtime.block_on(pairs(&one, CALLERS, pace.time))?);
        let burst = runtime.block_on(drain(&one, CALLERS))?;
        drained.add(burst.took);
        ideal.add(burst.held);
        waits.add(burst.wait_p99);
        woken.add(runtime.block_on(wake_up(&one, &other, pace.count(50)))?);
        trips.add(runtime.block_on(round_trip(server.port(), pace.count(50)))?);
        for (series, priorities) in stolen.iter_mut().zip(PRIORITIES) {
            series.add(runtime.block_on(steal(&one, &other, priorities, pace.count(10)))?);
        }
        eprintln!("locks: round {} of {}", round + 1, pace.rounds);
    }
    // What takes long and does not vary is measured once.
    shares.add(runtime.block_on(least_share(&one, CALLERS, pace.times(9)))?);
    idle.add(runtime.block_on(of_waiters(&server, &one, CALLERS, pace.times(15)))?);
    renewed.add(runtime.block_on(of_leases(&server, &one, LEASES))?);
    [&alone, &granted, &many].into_iter().for_each(|series| series.print("pairs/s"));
    [&drained, &ideal, &waits, &woken, &trips].into_iter().for_each(|series| series.print("ms"));
    stolen.iter().for_each(|series| series.print("ms"));
    shares.print("of the mean");
    idle.print("commands a waiter in 5 s");
    renewed.print("requests a 100 leases and interval");
    Ok(())
}
