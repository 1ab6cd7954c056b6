//! What the selections of a wallet's currency share in this process.

use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use rustc_hash::FxHashMap;

use super::turns::{Turn, Turns};
use crate::Micros;
use crate::error::{Error, Result};
use crate::poison::unpoisoned;
use crate::runtime::{self, Runtime};
use crate::tokens::{Amount, Candidates, MAX_TOKEN_BYTES};

/// Those of a wallet, by currency.
#[derive(Debug, Default)]
pub(super) struct Purses(Mutex<FxHashMap<Arc<str>, Arc<Purse>>>);

/// One that somebody uses. With the last of them goes one of which nothing is known: anybody may name a currency.
#[derive(Clone, Debug)]
pub(super) struct Lent {
    purse: Arc<Purse>,
    /// Dropped after it.
    _return: Return,
}

#[derive(Clone, Debug)]
struct Return {
    purses: Arc<Purses>,
    currency: Arc<str>,
}

impl Purses {
    /// That of a currency.
    ///
    /// # Errors
    /// `invalid_argument` if that is too long.
    pub fn lend(self: &Arc<Self>, currency: &Arc<str>, seed: u64, max_age: Micros) -> Result<Lent> {
        let mut all = self.all();
        let purse = match all.get(currency) {
            Some(purse) => purse.clone(),
            None => {
                let purse = Arc::new(Purse::new(currency.clone(), seed, max_age)?);
                all.insert(currency.clone(), purse.clone());
                purse
            }
        };
        Ok(Lent { purse, _return: Return { purses: self.clone(), currency: currency.clone() } })
    }

    pub fn all(&self) -> MutexGuard<'_, FxHashMap<Arc<str>, Arc<Purse>>> {
        unpoisoned(&self.0)
    }
}

impl Lent {
    /// Waits for one's turn to ask the source.
    pub async fn turn(&self) -> Asking {
        let turn = self.asking.clone().lock_owned().await;
        Asking { purse: self.clone(), _turn: turn }
    }
}

impl Deref for Lent {
    type Target = Purse;

    fn deref(&self) -> &Purse {
        &self.purse
    }
}

impl Drop for Return {
    fn drop(&mut self) {
        let mut all = self.purses.all();
        let is_idle = |purse: &Arc<Purse>| Arc::strong_count(purse) == 1 && purse.pool().is_blank();
        if all.get(&self.currency).is_some_and(is_idle) {
            all.remove(&self.currency);
        }
    }
}

/// The tokens of a wallet and currency.
#[derive(Debug)]
pub(super) struct Purse {
    pub currency: Arc<str>,
    pool: Mutex<Candidates>,
    /// Who asks the source.
    asking: Arc<futures_util::lock::Mutex<()>>,
    /// How many pages came.
    pages: AtomicU64,
    /// Those who pause.
    turns: Mutex<Turns>,
}

impl Purse {
    pub fn new(currency: Arc<str>, seed: u64, max_age: Micros) -> Result<Self> {
        if currency.len() > MAX_TOKEN_BYTES {
            return Err(Error::invalid(
                "currency",
                format_args!("at most {MAX_TOKEN_BYTES} bytes are allowed"),
            ));
        }
        Ok(Purse {
            currency,
            pool: Mutex::new(Candidates::new(seed, max_age)),
            asking: Arc::default(),
            pages: AtomicU64::new(0),
            turns: Mutex::default(),
        })
    }

    pub fn pool(&self) -> MutexGuard<'_, Candidates> {
        unpoisoned(&self.pool)
    }

    pub fn pages(&self) -> u64 {
        self.pages.load(Relaxed)
    }

    pub fn note_page(&self) {
        self.pages.fetch_add(1, Relaxed);
    }

    /// The turn of one who comes, among those who pause.
    pub fn next_turn(&self, target: Amount, now: Micros) -> Turn {
        self.turns().take(target, now)
    }

    /// How often something came free here.
    pub fn freed(&self) -> u64 {
        self.turns().freed()
    }

    /// Pauses for so long, or until it is called, which this tells: see [`Turns`]. It looked last when something had come free
    /// so often.
    pub async fn pause<R: Runtime>(
        &self,
        runtime: &R,
        turn: Turn,
        looked: Option<u64>,
        time: Micros,
    ) -> bool {
        let called = self.turns().pause(turn, looked);
        let _leaves = Leaves { purse: self, turn };
        let now = runtime.now();
        // Something may have come free since it looked.
        self.pass_on(now);
        matches!(runtime::by(runtime, now + time, called).await, Some(Ok(())))
    }

    /// How many pause.
    pub fn waiting(&self) -> usize {
        self.turns().len()
    }

    /// Something came free: the first who pauses and for whom it suffices looks again.
    pub fn freed_some(&self, now: Micros) {
        self.turns().note_freed();
        self.pass_on(now);
    }

    /// Whoever is called has looked, or is there no more: there may be something left for the next.
    pub fn pass_on(&self, now: Micros) {
        while self.waiting() > 0 {
            let free = self.pool().free(now);
            let bell = self.turns().call(now, free);
            // Without the lock, as who hears it may look at once. Who left meanwhile has no use for it.
            if bell.is_none_or(|bell| bell.send(()).is_ok()) {
                return;
            }
        }
    }

    fn turns(&self) -> MutexGuard<'_, Turns> {
        unpoisoned(&self.turns)
    }
}

/// One who asks the source, and whose page is under way no more when this is dropped.
pub(super) struct Asking {
    pub purse: Lent,
    /// Dropped after that.
    _turn: futures_util::lock::OwnedMutexGuard<()>,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.purse.pool().end_page();
    }
}

/// One who pauses, and pauses no more when this is dropped.
struct Leaves<'a> {
    purse: &'a Purse,
    turn: Turn,
}

impl Drop for Leaves<'_> {
    fn drop(&mut self) {
        self.purse.turns().leave(self.turn);
    }
}
