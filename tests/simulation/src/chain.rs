//! A toy chain: it takes an account's next nonce and no other, keeps a log, and tells late, wrongly or not at all.
//!
//! Where leases may be ended early a gate stands before it, that looks at fences: whoever asks there for the next nonce
//! shows its fence, and from then on nothing of an older one comes in.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use futures_channel::oneshot;
use leasehold::client::NonceSource;
use leasehold::nonce::Nonce;
use leasehold::runtime::BoxedFuture;

use crate::census::Census;
use crate::history::{History, What};
use crate::resources::Resources;
use crate::rng::Rng;
use crate::world::{Instant, NATURE, World, unpoisoned};

/// The longest way of a transaction to the chain.
pub const LONGEST_FLIGHT: u64 = 1_500_000;
/// The furthest that a node's view of the chain is behind.
pub const LONGEST_LAG: u64 = 1_000_000;

/// A handle of the chain.
#[derive(Clone)]
pub struct Chain {
    world: World,
    history: History,
    census: Census,
    gate: Option<Resources>,
    state: Arc<Mutex<State>>,
}

struct State {
    accounts: BTreeMap<String, Vec<(Instant, Nonce)>>,
    transactions: u64,
    /// Whether faults happen.
    stormy: bool,
    rng: Rng,
}

/// What the sender of a transaction is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is in.
    Accepted,
    /// The chain expects this nonce.
    Refused(Nonce),
    /// Another has come to the gate under a newer fence.
    Late,
}

impl Chain {
    /// A chain with these accounts and their first nonces, perhaps behind a gate.
    pub fn new(
        (world, history, census): (&World, &History, &Census),
        gate: Option<Resources>,
        rng: Rng,
        accounts: impl Iterator<Item = (String, Nonce)>,
    ) -> Self {
        let accounts = accounts.map(|(account, nonce)| (account, vec![(0, nonce)])).collect();
        let state = Arc::new(Mutex::new(State { accounts, transactions: 0, stormy: true, rng }));
        Chain { world: world.clone(), history: history.clone(), census: census.clone(), gate, state }
    }

    /// Ends the faults.
    pub fn calm(&self) {
        unpoisoned(&self.state).stormy = false;
    }

    /// The next nonce of an account, in truth.
    pub fn next(&self, account: &str) -> Nonce {
        unpoisoned(&self.state).next(account)
    }

    /// A new transaction's number.
    pub fn sign(&self) -> u64 {
        let mut state = unpoisoned(&self.state);
        state.transactions += 1;
        state.transactions
    }

    /// The next nonce of an account for the holder of this fence, through the gate.
    ///
    /// # Errors
    /// If somebody has come there under a newer one, or the answer is lost.
    pub async fn read_under(&self, account: &str, fence: u64) -> Result<Nonce, String> {
        let (there, back, lost) = {
            let mut state = unpoisoned(&self.state);
            let lost = state.stormy && state.rng.in_thousand(50);
            (state.rng.spread(500, 20_000), state.rng.spread(500, 20_000), lost)
        };
        self.world.sleep(there).await;
        if self.gate.as_ref().is_some_and(|gate| !gate.admit(account, fence)) {
            self.census.count("nonce refused at the gate");
            return Err("somebody has come under a newer fence".to_owned());
        }
        let next = self.next(account);
        self.world.sleep(back).await;
        if lost { Err("the node does not answer".to_owned()) } else { Ok(next) }
    }

    /// Sends a transaction under a fence. The receiver is cancelled if the sender is told nothing.
    pub fn send(&self, transaction: u64, account: &str, nonce: Nonce, fence: u64) -> oneshot::Receiver<Told> {
        let (tell, told) = oneshot::channel();
        let (flights, silent, back) = {
            let mut state = unpoisoned(&self.state);
            let stormy = state.stormy;
            let flight = match stormy && state.rng.in_thousand(80) {
                true => state.rng.between(200_000, LONGEST_FLIGHT),
                false => state.rng.spread(500, 50_000),
            };
            let mut flights = vec![flight];
            if stormy && state.rng.in_thousand(30) {
                self.census.count("transaction lost");
                flights.clear();
            } else if stormy && state.rng.in_thousand(20) {
                self.census.count("transaction doubled");
                flights.push(state.rng.between(flight, LONGEST_FLIGHT));
            }
            let silent = stormy && state.rng.in_thousand(60);
            (flights, silent, state.rng.spread(500, 20_000))
        };
        let now = self.world.now();
        if flights.is_empty() {
            self.history.record(now, NATURE, What::Vanished { transaction });
        }
        if silent {
            self.census.count("transaction unanswered");
        }
        let mut tell = Some(tell).filter(|_| !silent);
        for (flight, copy) in flights.into_iter().zip(0..) {
            let (chain, account, tell) = (self.clone(), account.to_owned(), tell.take());
            self.world.spawn(NATURE, async move {
                chain.world.sleep(flight).await;
                let answer = chain.arrive(transaction, &account, (nonce, fence), copy > 0);
                chain.world.sleep(back).await;
                if let Some(tell) = tell {
                    let _ = tell.send(answer);
                }
            });
        }
        told
    }

    fn arrive(&self, transaction: u64, account: &str, (nonce, fence): (Nonce, u64), again: bool) -> Told {
        let now = self.world.now();
        if self.gate.as_ref().is_some_and(|gate| !gate.admit(account, fence)) {
            self.census.count("transaction refused at the gate");
            if !again {
                self.history.record(now, NATURE, What::Arrived { transaction, accepted: false });
            }
            return Told::Late;
        }
        let mut state = unpoisoned(&self.state);
        let next = state.next(account);
        let accepted = next == nonce;
        if accepted && let Some(log) = state.accounts.get_mut(account) {
            log.push((now, nonce.wrapping_add(1)));
        }
        drop(state);
        if accepted || !again {
            self.history.record(now, NATURE, What::Arrived { transaction, accepted });
        }
        if accepted { Told::Accepted } else { Told::Refused(next) }
    }
}

impl State {
    fn next(&self, account: &str) -> Nonce {
        self.accounts.get(account).and_then(|log| log.last()).map_or(0, |&(_, nonce)| nonce)
    }

    fn next_at(&self, account: &str, at: Instant) -> Nonce {
        let log = self.accounts.get(account).map(Vec::as_slice).unwrap_or_default();
        let seen = log.iter().rev().find(|(since, _)| *since <= at);
        seen.or(log.first()).map_or(0, |&(_, nonce)| nonce)
    }
}

impl NonceSource for Chain {
    fn read<'a>(&'a self, slot: &'a str) -> BoxedFuture<'a, Result<Nonce, String>> {
        Box::pin(async move {
            let (time, lag, fails) = {
                let mut state = unpoisoned(&self.state);
                let stormy = state.stormy;
                let slow = stormy && state.rng.in_thousand(40);
                let time = state.rng.spread(500, if slow { 3_000_000 } else { 20_000 });
                let lags = stormy && state.rng.in_thousand(150);
                let lag = if lags { state.rng.below(LONGEST_LAG) } else { 0 };
                (time, lag, stormy && state.rng.in_thousand(50))
            };
            if lag > 0 {
                self.census.count("nonce read behind");
            }
            // What is read is what the node knew when it was asked.
            let at = self.world.now().saturating_sub(lag);
            let next = unpoisoned(&self.state).next_at(slot, at);
            self.world.sleep(time).await;
            if fails {
                self.census.count("nonce read failed");
                return Err("the node does not answer".to_owned());
            }
            Ok(next)
        })
    }
}
