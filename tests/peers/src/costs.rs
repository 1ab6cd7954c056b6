//! What one request costs the server, alone and among others of its envelope.

use std::time::{Duration, Instant};

use leasehold::id::{Name, PoolName, SlotId};
use leasehold::nonce::{NonceRecord, Outcome};
use leasehold::slots::{
    Answer, Choice, Claim, Envelope, Lane, LeaseRef, Performed, Reply, Request, SlotSpec, Strategy,
};
use leasehold::store::redis::{NativeTransport, RedisPool, RedisUrl};
use leasehold::store::{RedisStore, Store, StorePool};
use leasehold::{MILLISECOND, SECOND};
use leasehold_servers::{RedisOptions, RedisServer};
use tokio::runtime::Handle;

use crate::leased::accounts;
use crate::{Anyhow, runtime};

/// Requests of an envelope; where pairs are together there are at least two.
const BATCHES: [usize; 5] = [1, 8, 16, 32, 64];
const TIME: Duration = Duration::from_millis(1_500);

/// One client of the server, without a courier.
struct Client {
    pool: RedisPool<NativeTransport>,
    sequence: u64,
}

/// Measures, and writes a table.
pub fn measure() -> Anyhow<()> {
    let server = RedisServer::start(RedisOptions::default())?;
    let runtime = runtime()?;
    runtime.block_on(async {
        let transport = NativeTransport::new(RedisUrl::new(&server.url())?, Handle::current(), 2 * SECOND);
        let name = PoolName { namespace: Name::new("peers")?, pool: Name::new("costs")? };
        let mut client = Client { pool: RedisStore::new(transport).pool(&name), sequence: 0 };
        let ids = accounts(1_000).iter().map(|id| SlotId::new(id)).collect::<Result<Vec<_>, _>>()?;
        let slots = ids.into_iter().map(|slot| SlotSpec { slot, weight: 1 }).collect();
        client.ask(vec![Request::Define { slots, longest: 100 * MILLISECOND, doubt_rest: 0 }]).await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        println!("requests  µs a claim  µs a release  µs a pair, all in one envelope");
        for batch in BATCHES {
            let (claims, releases) = client.apart(&server, batch).await?;
            let both = client.together(&server, batch).await?;
            println!("{batch:8}  {claims:10.2}  {releases:12.2}  {both:10.2}");
        }
        let empty = server.command(&["INFO", "commandstats"])?;
        println!("{}", empty.as_text().unwrap_or_default());
        Ok(())
    })
}

impl Client {
    async fn ask(&mut self, requests: Vec<Request>) -> Anyhow<Performed> {
        self.sequence += 1;
        let lane = Some(Lane { client: 7, number: 0, sequence: self.sequence });
        let seed = (self.sequence as u32).wrapping_mul(0x9E37_79B9);
        let envelope = Envelope { lane, seed, requests, ..Envelope::default() };
        match self.pool.perform(&envelope).await? {
            Answer::Performed(performed) => Ok(performed),
            Answer::Stale { .. } => Err("stale".into()),
        }
    }

    /// Claims and releases in envelopes of their own: the script's time for one of each.
    async fn apart(&mut self, server: &RedisServer, batch: usize) -> Anyhow<(f64, f64)> {
        let (began, mut rounds, mut claims, mut releases) = (Instant::now(), 0, 0.0, 0.0);
        while began.elapsed() < TIME {
            server.command(&["CONFIG", "RESETSTAT"])?;
            let mut held = Vec::new();
            for _ in 0..REPEATS {
                held.push(self.ask(vec![claim(); batch]).await?);
            }
            claims += script_time(server)?;
            server.command(&["CONFIG", "RESETSTAT"])?;
            for granted in held {
                self.ask(releases_of(granted)).await?;
            }
            releases += script_time(server)?;
            rounds += 1;
        }
        let count = f64::from(rounds) * (REPEATS * batch) as f64;
        Ok((claims / count, releases / count))
    }

    /// Envelopes half of claims and half of releases, as a courier sends them.
    async fn together(&mut self, server: &RedisServer, batch: usize) -> Anyhow<f64> {
        let half = batch.div_ceil(2);
        let mut held = self.ask(vec![claim(); half]).await?;
        server.command(&["CONFIG", "RESETSTAT"])?;
        let (began, mut pairs) = (Instant::now(), 0);
        while began.elapsed() < TIME {
            let mut requests = releases_of(held);
            requests.extend(vec![claim(); half]);
            held = self.ask(requests).await?;
            pairs += half;
        }
        let time = script_time(server)?;
        self.ask(releases_of(held)).await?;
        Ok(time / pairs as f64)
    }
}

/// Envelopes between two looks at the server's statistics; what they claim must be there.
const REPEATS: usize = 10;

fn claim() -> Request {
    let choice = Choice::Any { strategy: Strategy::Random, least: 1, most: 1 };
    Request::Claim(Claim { max_hold: 600 * SECOND, ..Claim::new(choice, 1 << 120, 5 * SECOND) })
}

fn releases_of(performed: Performed) -> Vec<Request> {
    let grants = performed.replies.into_iter().filter_map(|reply| match reply {
        Reply::Granted(grants) => Some(grants),
        _ => None,
    });
    let release = |grant: leasehold::slots::Grant| {
        let next = if let NonceRecord::Known(nonce) = grant.nonce { nonce + 1 } else { 1 };
        let lease = LeaseRef { slot: grant.slot, fence: grant.fence, place: grant.place };
        Request::Release { lease, outcome: Outcome::Used { next }, cooldown: 0 }
    };
    grants.flatten().map(release).collect()
}

/// The microseconds that the server has spent in scripts.
fn script_time(server: &RedisServer) -> Anyhow<f64> {
    let info = server.command(&["INFO", "commandstats"])?;
    let text = info.as_text().ok_or("no statistics")?;
    let line = text.lines().find(|line| line.starts_with("cmdstat_evalsha:")).ok_or("no scripts were run")?;
    let time = line.split("usec=").nth(1).and_then(|rest| rest.split(',').next()).ok_or("no time")?;
    Ok(time.parse()?)
}
