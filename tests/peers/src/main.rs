//! What leasehold in Rust does in a second, beside what the server allows and beside the way the seed does it.
//!
//! `memory`, `redis`, `locks`, `tokens`, `strategies`, `limits` and `costs` measure; every line they write is a series of figures in JSON, for `bench.mjs`.
//! `serve` starts a server for the programs in other languages: it writes the server's address and ends with its
//! standard input.

mod ceiling;
mod connection;
mod contended;
mod costs;
mod hot_wallets;
mod leased;
mod limits;
mod locked;
mod locks;
mod memory;
mod over_redis;
mod seed;
mod series;
mod stolen;
mod strategies;
mod tally;
mod tokens;
mod upkeep;

use std::io::{Read, Write};

use leasehold_servers::{RedisOptions, RedisServer};

/// What may go wrong here ends the program.
type Anyhow<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Anyhow<()> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_default();
    let pace =
        if arguments.next().as_deref() == Some("quick") { series::Pace::QUICK } else { series::Pace::FULL };
    match what.as_str() {
        "memory" => memory::measure(pace),
        "redis" => over_redis::measure(pace),
        "locks" => locks::measure(pace),
        "tokens" => tokens::measure(pace),
        "limits" => limits::measure(pace),
        "strategies" => strategies::measure(pace),
        "costs" => costs::measure(),
        "serve" => serve(),
        _ => {
            Err("usage: leasehold-peers memory|redis|locks|tokens|strategies|limits|costs|serve [quick]"
                .into())
        }
    }
}

fn serve() -> Anyhow<()> {
    let server = RedisServer::start(RedisOptions::default())?;
    println!("{}", server.url());
    std::io::stdout().flush()?;
    std::io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}

/// A runtime as a server program has one.
fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}
