//! Wallets of which several processes want nearly all, or more than there is.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use leasehold::SECOND;
use leasehold::client::{SelectOptions, TokensInMemory};
use leasehold::tokens::{Draw, Token};

use crate::Anyhow;
use crate::contended::{milliseconds, quantile};
use crate::tokens::{Tokens, tokens_of};

/// Processes that know nothing of each other, and workers in all.
const REPLICAS: usize = 4;
const WORKERS: usize = 32;
/// Tokens of 1 in the hot wallet, and how long each worker holds what it selected.
const HOT: u64 = 300;
const HOLD: Duration = Duration::from_millis(50);
/// The least and the most that a worker asks for: 12 in the mean, so 384 in all, where there are 300. At any time about
/// seven of the workers wait for others.
const ASKS: (u64, u64) = (6, 18);
/// The seed of what the workers ask for: the same in each round, and of the queue beside them.
const SEED: u64 = 4;
/// Tokens of 1 in the large wallet, how many of them each selection takes, and how many selections each worker keeps.
const LARGE: u64 = 10_000;
const ASK: u64 = 5;
const KEPT: usize = 25;

/// How the workers of a hot wallet fared.
pub struct Hot {
    /// 95 of 100 selections took at most so long, in milliseconds.
    pub p95: f64,
    /// Of 100 selections, those that were no refusal.
    pub selected: f64,
}

/// Each worker selects, holds and gives back so often, as fast as it can. A refusal counts against the wallet: there is
/// always enough for one who waits.
pub async fn hot(url: &str, turns: usize) -> Anyhow<Hot> {
    let replicas = replicas(url, "hot", HOT).await?;
    let mut workers = Vec::new();
    for (worker, asks) in asks(turns).into_iter().enumerate() {
        let tokens = replicas.get(worker % REPLICAS).ok_or("a replica")?.clone();
        workers.push(tokio::spawn(async move {
            let (mut times, mut refused) = (Vec::new(), 0u32);
            for ask in asks {
                let asked = Instant::now();
                let patient = SelectOptions { timeout: Some(60 * SECOND), ..SelectOptions::default() };
                let selection = tokens.select_with(ask, patient).await;
                times.push(asked.elapsed());
                let Ok(selection) = selection else {
                    refused += 1;
                    continue;
                };
                tokio::time::sleep(HOLD).await;
                selection.release().await?;
            }
            Anyhow::Ok((times, refused))
        }));
    }
    let (mut all, mut refused) = (Vec::new(), 0);
    for worker in workers {
        let (times, lost) = worker.await??;
        all.extend(times);
        refused += lost;
    }
    let selected = 100.0 * (1.0 - f64::from(refused) / all.len() as f64);
    Ok(Hot { p95: milliseconds(quantile(all, 0.95)), selected })
}

/// What the same workers would have of a perfect queue, in milliseconds: one that knows at every moment what is free, is
/// asked and answers in no time, and serves in the order of arrival, nobody out of turn; and each holds for exactly as
/// long. (Who serves those first who want little may have a lower figure, which the others pay for.)
pub fn ideal(turns: usize) -> f64 {
    let mut workers: Vec<_> = asks(turns).into_iter().map(Vec::into_iter).collect();
    let (mut now, mut free, mut times) = (Duration::ZERO, HOT, Vec::new());
    // Who waits since when for how much; who holds until when how much. Both are in order, since all hold as long.
    let mut line: VecDeque<(usize, Duration, u64)> = VecDeque::new();
    let mut held: VecDeque<(usize, Duration, u64)> = VecDeque::new();
    let mut arrives: Vec<usize> = (0..WORKERS).collect();
    loop {
        for worker in arrives.drain(..) {
            let ask = workers.get_mut(worker).and_then(Iterator::next);
            line.extend(ask.map(|ask| (worker, now, ask)));
        }
        while let Some(&(worker, since, ask)) = line.front().filter(|&&(_, _, ask)| ask <= free) {
            line.pop_front();
            free -= ask;
            times.push(now - since);
            held.push_back((worker, now + HOLD, ask));
        }
        let Some(&(_, next, _)) = held.front() else { break };
        now = next;
        while let Some((worker, _, amount)) = held.pop_front_if(|&mut (_, until, _)| until <= now) {
            free += amount;
            arrives.push(worker);
        }
    }
    milliseconds(quantile(times, 0.95))
}

/// Of 100 tokens that were asked for, those that others had, where the workers keep what they select: in the end 4,000 of
/// the 10,000. Each call has a wallet of its own.
pub async fn wasted(url: &str, wallet: &str) -> Anyhow<f64> {
    let replicas = replicas(url, wallet, LARGE).await?;
    let before = counts(&replicas);
    let mut workers = Vec::new();
    for worker in 0..WORKERS {
        let tokens = replicas.get(worker % REPLICAS).ok_or("a replica")?.clone();
        workers.push(tokio::spawn(async move {
            let mut kept = Vec::new();
            for _ in 0..KEPT {
                kept.push(tokens.select(ASK).await?);
            }
            Anyhow::Ok(kept)
        }));
    }
    let mut kept = Vec::new();
    for worker in workers {
        kept.extend(worker.await??);
    }
    let [asked, missed] = [0, 1].map(|at| counts(&replicas)[at] - before[at]);
    for selection in kept {
        selection.release().await?;
    }
    Ok(100.0 * missed as f64 / asked as f64)
}

/// The tokens that were asked for, and those of them that others had.
fn counts(replicas: &[Tokens]) -> [u64; 2] {
    let counts = replicas.iter().map(Tokens::counts);
    counts.fold([0, 0], |[asked, missed], counts| [asked + counts.asked, missed + counts.missed])
}

/// What each worker asks for, one time after the other.
fn asks(turns: usize) -> Vec<Vec<u64>> {
    let mut draw = Draw::new(SEED);
    let mut ask = || ASKS.0 + draw.below(ASKS.1 - ASKS.0 + 1);
    (0..WORKERS).map(|_| (0..turns).map(|_| ask()).collect()).collect()
}

async fn replicas(url: &str, wallet: &str, count: u64) -> Anyhow<Vec<Tokens>> {
    let source = TokensInMemory::default();
    (0..count).for_each(|number| source.add(wallet, "", Token::new(format!("{number:064x}"), 1u64)));
    let mut replicas = Vec::new();
    for _ in 0..REPLICAS {
        let tokens = tokens_of(url, wallet, source.clone())?;
        // A fresh server grants nothing at first.
        tokens
            .select_with(1u64, SelectOptions { timeout: Some(20 * SECOND), ..SelectOptions::default() })
            .await?
            .release()
            .await?;
        replicas.push(tokens);
    }
    Ok(replicas)
}
