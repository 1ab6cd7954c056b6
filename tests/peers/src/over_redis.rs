//! Pairs over one real server.

use std::time::Duration;

use leasehold_servers::{Proxy, RedisOptions, RedisServer};

use crate::leased::{Pool, accounts, pairs, pool};
use crate::seed::Seed;
use crate::series::{Pace, Series};
use crate::{Anyhow, ceiling, runtime};

/// Callers at once.
const CALLERS: usize = 64;
/// Sizes of leasehold's pools.
const SLOTS: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];
/// Sizes of the seed's, each in a database of its own, from this one on.
const SEED_SLOTS: [usize; 3] = [100, 1_000, 10_000];
const SEED_DATABASE: u8 = 2;
/// The slots of the smallest pool, and twice as many callers: so many requests are under way there at once, each slot given back by
/// one and claimed by the next.
const FEW: usize = SLOTS[0];
/// So many handles share them, as many processes would, each with a part of the callers.
const SHARERS: usize = 4;
const PAIRED: usize = 2 * FEW;
/// The database with keys that are not leasehold's, and how many.
const FOREIGN_DATABASE: u8 = 1;
const FOREIGN: usize = 100_000;
/// How far a far server is, each way.
const AWAY: Duration = Duration::from_millis(2);

/// Measures and writes all figures.
pub fn measure(pace: Pace) -> Anyhow<()> {
    let server = RedisServer::start(RedisOptions::default())?;
    let (url, port) = (server.url(), server.port());
    fill(&server)?;
    let runtime = runtime()?;

    let mut sized: Vec<(Pool, Series)> = Vec::new();
    for slots in SLOTS {
        let pool = runtime.block_on(pool(&url, &format!("sized-{slots}"), slots))?;
        sized.push((pool, Series::new(format!("redis, {slots} slots, {CALLERS} callers"), "leasehold")));
    }
    let crowded = runtime.block_on(pool(&format!("{url}/{FOREIGN_DATABASE}"), "crowded", 1_000))?;
    let mut apart = Vec::new();
    for _ in 0..CALLERS {
        apart.push(runtime.block_on(pool(&url, "apart", 1_000))?);
    }
    let mut sharers = Vec::new();
    for _ in 0..SHARERS {
        sharers.push(runtime.block_on(pool(&url, "shared", FEW))?);
    }
    let way = Proxy::start(port)?;
    way.delay(AWAY);
    let far = runtime.block_on(pool(&way.url(), "far", 1_000))?;
    let mut far_away = [1, CALLERS].map(|callers| {
        let name = if callers == 1 { "1 caller".to_owned() } else { format!("{callers} callers") };
        (callers, Series::new(format!("redis, 2 ms away, {name}"), "leasehold"))
    });
    let mut seeds = Vec::new();
    for (slots, database) in SEED_SLOTS.into_iter().zip(SEED_DATABASE..) {
        let seed = runtime.block_on(Seed::new(port, database, accounts(slots)))?;
        let series = |callers| Series::new(format!("redis, {slots} slots, {callers}"), "seed");
        seeds.push((seed, series("1 caller".to_owned()), series(format!("{CALLERS} callers"))));
    }
    let mut scripts = Series::new(format!("redis, empty EVALSHA, {CALLERS} connections"), "ceiling");
    // With ten slots no more than ten callers are ever served at once.
    let mut few_scripts = Series::new(format!("redis, empty EVALSHA, {FEW} connections"), "ceiling");
    let mut one = Series::new("redis, 1000 slots, 1 caller", "leasehold");
    let mut paired = Series::new(format!("redis, 1000 slots, {PAIRED} callers"), "leasehold");
    let mut foreign =
        Series::new(format!("redis, 1000 slots, {CALLERS} callers, {FOREIGN} foreign keys"), "leasehold");
    let mut apart_series =
        Series::new(format!("redis, 1000 slots, {CALLERS} callers"), "leasehold, not coalesced");

    let mut shared =
        Series::new(format!("redis, {FEW} slots, {CALLERS} callers of {SHARERS} handles"), "leasehold");

    for round in 0..pace.rounds {
        scripts.add(ceiling::empty_scripts(port, CALLERS, pace.time)?);
        few_scripts.add(ceiling::empty_scripts(port, FEW, pace.time)?);
        for (pool, series) in &mut sized {
            series.add(runtime.block_on(pairs(&vec![pool.clone(); CALLERS], pace.time))?);
        }
        foreign.add(runtime.block_on(pairs(&vec![crowded.clone(); CALLERS], pace.time))?);
        apart_series.add(runtime.block_on(pairs(&apart, pace.time))?);
        let callers: Vec<_> = sharers.iter().cycle().take(CALLERS).cloned().collect();
        shared.add(runtime.block_on(pairs(&callers, pace.time))?);
        paired.add(runtime.block_on(pairs(&vec![crowded.clone(); PAIRED], pace.time))?);
        one.add(runtime.block_on(pairs(&vec![crowded.clone(); 1], pace.time))?);
        for (callers, series) in &mut far_away {
            series.add(runtime.block_on(pairs(&vec![far.clone(); *callers], pace.time))?);
        }
        for (seed, alone, crowd) in &mut seeds {
            runtime.block_on(seed.warm())?;
            alone.add(runtime.block_on(seed.pairs(1, pace.times(2)))?);
            crowd.add(runtime.block_on(seed.pairs(CALLERS, pace.times(2)))?);
        }
        eprintln!("redis: round {} of {}", round + 1, pace.rounds);
    }

    scripts.print("calls/s");
    few_scripts.print("calls/s");
    let seeds = seeds.iter().flat_map(|(_, alone, crowd)| [alone, crowd]);
    let sized = sized.iter().map(|(_, series)| series);
    let far_away = far_away.iter().map(|(_, series)| series);
    let others = [&one, &paired, &shared, &foreign, &apart_series];
    sized.chain(others).chain(far_away).chain(seeds).for_each(|series| series.print("pairs/s"));
    Ok(())
}

/// Puts foreign keys into their database.
fn fill(server: &RedisServer) -> Anyhow<()> {
    let mut connection = server.connect()?;
    connection.command(&["SELECT", &FOREIGN_DATABASE.to_string()])?;
    let script = "for i = 1, tonumber(ARGV[1]) do redis.call('SET', 'foreign:' .. i, i) end";
    connection.command(&["EVAL", script, "0", &FOREIGN.to_string()])?;
    Ok(())
}
