//! Tokens of a wallet: how long a selection takes, beside one request for each token as the seed describes it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use leasehold::SECOND;
use leasehold::client::native::{NativeStore, connect};
use leasehold::client::{Change, SelectOptions, TokensInMemory, TokensOptions};
use leasehold::tokens::Token;
use leasehold_servers::{RedisOptions, RedisServer};

use crate::connection::{Connection, Reply};
use crate::hot_wallets;
use crate::series::{Pace, Series};
use crate::{Anyhow, runtime};

/// Tokens of 1 in the wallet in memory, and how many are asked for.
const LARGE: u64 = 1_000_000;
const ASK: u64 = 100;
/// The same over a server.
const WALLET: u64 = 10_000;
const ASKS: [u64; 2] = [5, 50];
/// How often each worker of a hot wallet selects.
const HOT_TURNS: usize = 40;

/// Tokens of a wallet.
pub type Tokens = leasehold::client::Tokens<NativeStore, leasehold::runtime::TokioRuntime>;

/// Measures and writes all figures.
pub fn measure(pace: Pace) -> Anyhow<()> {
    let runtime = runtime()?;
    let server = RedisServer::start(RedisOptions::default())?;
    runtime.block_on(async {
        let memory = tokens("memory:", LARGE).await?;
        let redis = tokens(&server.url(), WALLET).await?;
        let mut connection = Connection::new(server.port(), 1).await?;
        let mut large = Series::new(format!("memory, {LARGE} tokens, ask {ASK}"), "leasehold");
        let series = |ask: u64, who| Series::new(format!("redis, {WALLET} tokens, ask {ask}"), who);
        let hot = "redis, 300 tokens, 32 workers that want 384 and hold them 50 ms";
        let mut waits = Series::new(hot, "leasehold");
        let mut ideal = Series::new(hot, "perfect queue");
        let mut selected = Series::new(format!("{hot}: selections that were not refused"), "leasehold");
        let kept = "redis, 10000 tokens, 32 workers that keep 5 each time: tokens asked for in vain";
        let mut wasted = Series::new(kept, "leasehold");
        let turns = pace.count(HOT_TURNS);
        let mut ours = ASKS.map(|ask| series(ask, "leasehold"));
        let mut theirs = ASKS.map(|ask| series(ask, "one request a token"));
        for round in 0..pace.rounds {
            large.add(selections(&memory, ASK, pace.time).await?);
            for (at, ask) in ASKS.into_iter().enumerate() {
                ours[at].add(selections(&redis, ask, pace.time).await?);
                theirs[at].add(one_by_one(&mut connection, ask, pace.time).await?);
            }
            let hot = hot_wallets::hot(&server.url(), turns).await?;
            waits.add(hot.p95);
            selected.add(hot.selected);
            ideal.add(hot_wallets::ideal(turns));
            wasted.add(hot_wallets::wasted(&server.url(), &format!("kept {round}")).await?);
            eprintln!("tokens: round {} of {}", round + 1, pace.rounds);
        }
        std::iter::once(&large).chain(&ours).chain(&theirs).for_each(|series| series.print("us/selection"));
        [&waits, &ideal].into_iter().for_each(|series| series.print("ms, p95"));
        [&selected, &wasted].into_iter().for_each(|series| series.print("%"));
        Ok(())
    })
}

/// A wallet of which everything is known.
async fn tokens(url: &str, count: u64) -> Anyhow<Tokens> {
    let source = TokensInMemory::default();
    (0..count).for_each(|number| source.add("w", "", Token::new(format!("{number:064x}"), 1u64)));
    let tokens = tokens_of(url, "w", source)?;
    // Whoever asks for more than there is has seen all of it; and a fresh server grants nothing at first.
    let more = tokens.select(count + 1).await;
    assert!(more.is_err(), "more than there is");
    tokens.hear(Change::Listening, None)?;
    let first = SelectOptions { timeout: Some(20 * SECOND), ..SelectOptions::default() };
    tokens.select_with(1u64, first).await?.release().await?;
    Ok(tokens)
}

/// The tokens of a wallet, in a process of their own as far as any can tell.
pub fn tokens_of(url: &str, wallet: &str, source: TokensInMemory) -> Anyhow<Tokens> {
    let options =
        TokensOptions { ttl: 5 * SECOND, settle: 5 * SECOND, max_age: SECOND, ..TokensOptions::default() };
    Ok(connect(url).namespace("peers").open()?.tokens_with(wallet, Arc::new(source), options)?)
}

/// The microseconds of a selection; what it selected is given back outside of that.
async fn selections(tokens: &Tokens, ask: u64, time: Duration) -> Anyhow<f64> {
    let (began, mut spent, mut count) = (Instant::now(), Duration::ZERO, 0u32);
    while began.elapsed() < time {
        let asked = Instant::now();
        let selection = tokens.select(ask).await?;
        spent += asked.elapsed();
        count += 1;
        selection.release().await?;
    }
    Ok(spent.as_secs_f64() * 1e6 / f64::from(count.max(1)))
}

/// The same with a request for each token, one after the other, as each answer decides on the next.
async fn one_by_one(connection: &mut Connection, ask: u64, time: Duration) -> Anyhow<f64> {
    let (began, mut spent, mut count, mut next) = (Instant::now(), Duration::ZERO, 0u32, 1u64);
    while began.elapsed() < time {
        let (asked, mut held) = (Instant::now(), Vec::new());
        while (held.len() as u64) < ask {
            next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let key = format!("token:{:064x}", (next >> 33) % WALLET);
            let reply = connection.call(&["SET", &key, "spender", "NX", "PX", "60000"]).await?;
            if reply != Reply::Nil {
                held.push(key);
            }
        }
        spent += asked.elapsed();
        count += 1;
        let words: Vec<&str> = std::iter::once("DEL").chain(held.iter().map(String::as_str)).collect();
        connection.call(&words).await?;
    }
    Ok(spent.as_secs_f64() * 1e6 / f64::from(count.max(1)))
}
