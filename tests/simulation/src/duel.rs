//! The seed's livelock: two tokens of 3, and two spenders who want 4 each.

use std::sync::{Arc, Mutex};

use leasehold::SECOND;
use leasehold::client::{Keepalive, Leasehold, OpenOptions, SelectOptions, TokensOptions};
use leasehold::store::LimitStore;
use leasehold::store::redis::RedisStore;

use crate::census::Census;
use crate::history::History;
use crate::memory::ObservedMemory;
use crate::network::{Network, Odds, SimTransport};
use crate::plan::TokensPlan;
use crate::rng::Rng;
use crate::selecting::SimSource;
use crate::world::{Instant, ProcessId, SimRuntime, World, unpoisoned};

/// When it begins: a server that was started a moment ago grants nothing.
const BEGINS: Instant = 10 * SECOND;
/// How long each of the two waits.
const PATIENCE: u64 = 2 * SECOND;

/// How the two ended: after how long, and with what or with which error's code.
pub type Ends = Vec<(u64, Result<u64, String>)>;

/// Plays the duel of a seed.
pub fn duel(seed: u64, redis: bool) -> Ends {
    let mut rng = Rng::new(seed);
    let (world, history) = (World::new(rng.bits()), History::default());
    if !redis {
        let store = ObservedMemory::new(&world, &history);
        return play(&world, &history, rng, |_| store.clone());
    }
    let network = Network::new(&world, &history, &Census::default(), rng.fork(1), Odds::default(), None);
    play(&world, &history, rng, |process| RedisStore::new(SimTransport::new(&network, process, false)))
}

fn play<S: LimitStore>(
    world: &World,
    history: &History,
    mut rng: Rng,
    store: impl Fn(ProcessId) -> S,
) -> Ends {
    // Each page has one of the two: neither knows both before it has asked twice.
    let plan = TokensPlan { page: 1, ..TokensPlan::default() };
    let source = SimSource::new(world, history, &plan, rng.fork(2));
    ["a", "b"].iter().for_each(|token| source.put(token, 3));
    source.calm();
    world.run_until(BEGINS);
    let ends = Arc::<Mutex<Ends>>::default();
    for _ in 0..2 {
        let process = world.start(true);
        let handle = Leasehold::new(store(process), SimRuntime::new(world, process), OpenOptions::default())
            .expect("options that are right");
        let options = TokensOptions {
            ttl: 3 * SECOND,
            keepalive: Keepalive::Off,
            settle: SECOND,
            max_age: SECOND,
            page: 1,
            ..TokensOptions::default()
        };
        let tokens =
            handle.tokens_with("wallet", Arc::new(source.clone()), options).expect("options that are right");
        let (clock, ends, delay) = (world.clone(), ends.clone(), rng.below(2_000));
        world.spawn(process, async move {
            clock.sleep(delay).await;
            let options = SelectOptions { timeout: Some(PATIENCE), ..SelectOptions::default() };
            let selection = tokens.select_with(4u64, options).await;
            let end = match &selection {
                Ok(selection) => Ok(selection.sum().saturating_u64()),
                Err(error) => Err(error.code().as_str().to_owned()),
            };
            unpoisoned(&ends).push((clock.now() - BEGINS, end));
            // Whoever has won keeps it until the other has given up.
            clock.sleep(2 * PATIENCE).await;
            drop((selection, handle));
        });
    }
    world.run_until(BEGINS + 3 * PATIENCE);
    world.end();
    std::mem::take(&mut *unpoisoned(&ends))
}
