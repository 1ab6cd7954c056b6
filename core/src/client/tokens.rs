//! Tokens of a wallet, selected for an amount beside any number of processes that do the same.
//!
//! What to ask for next the machine says ([`crate::tokens::Selector`]), an [`Attempt`] asks it. Tokens that a selection
//! has are slots of the wallet's pool, leased by names that are made for the lease.

mod attempt;
mod claim;
mod options;
mod purse;
mod selection;
mod settling;
mod source;
#[cfg(test)]
#[cfg(feature = "redis")]
mod tests;
mod turns;

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
pub use options::{SelectOptions, TokensOptions};
use purse::{Lent, Purses};
pub use selection::Selection;
use settling::Settling;
pub use source::{Change, PageAsk, SharedSource, TokenSource, TokensInMemory, read_ids, write_ids};

use self::attempt::Attempt;
use super::pool::PoolCore;
use super::pool::statistics::GivenUp;
use super::pool::waiting::closed;
use super::{Keepalive, Pool, PoolOptions, Select, Unit};
use crate::Micros;
use crate::error::{Error, Result};
use crate::id::{Name, PoolName};
use crate::poison::unpoisoned;
use crate::runtime::{self, Runtime};
use crate::slots::SlotView;
use crate::store::Store;
use crate::tokens::{Amount, Spender, slot_of};
use crate::value::Value;

/// The tokens of one wallet.
pub struct Tokens<S: Store, R: Runtime> {
    wallet: Arc<Wallet<S, R>>,
}

/// What the handles and selections of a wallet share.
pub(super) struct Wallet<S: Store, R: Runtime> {
    core: Arc<PoolCore<S, R>>,
    name: Arc<str>,
    source: SharedSource,
    options: TokensOptions,
    purses: Arc<Purses>,
    counts: Counts,
    /// Tokens that were spent and rest.
    settling: Mutex<Settling>,
}

/// What was asked of the source and of the store.
#[derive(Debug, Default)]
struct Counts {
    pages: AtomicU64,
    claims: AtomicU64,
    asked: AtomicU64,
    missed: AtomicU64,
}

/// What the selections of a handle asked for so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenCounts {
    /// Pages of the source.
    pub pages: u64,
    /// Claims: requests to the store.
    pub claims: u64,
    /// The tokens of all claims.
    pub asked: u64,
    /// Those of them that others had.
    pub missed: u64,
}

/// A token that somebody has locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockedToken {
    /// Its id.
    pub id: Arc<str>,
    /// Its record: who holds it, since when, until when, under which fence.
    pub view: SlotView,
    /// How long the lock still lasts without a renewal, in microseconds.
    pub left_micros: Micros,
}

impl TokenCounts {
    /// As a value.
    #[doc(hidden)]
    pub fn to_value(&self) -> Value {
        let TokenCounts { pages, claims, asked, missed } = *self;
        Value::map([
            ("pages", pages.into()),
            ("claims", claims.into()),
            ("asked", asked.into()),
            ("missed", missed.into()),
        ])
    }
}

impl LockedToken {
    /// How long the lock still lasts without a renewal.
    pub fn left(&self) -> Duration {
        Duration::from_micros(self.left_micros)
    }

    /// As a value; times in the unit of the language, `since` the Unix epoch.
    #[doc(hidden)]
    pub fn to_value(&self, unit: Unit) -> Value {
        let LockedToken { id, view, left_micros } = self;
        let holder = Spender(view.holder).to_string();
        Value::map([
            ("id", (&**id).into()),
            ("holder", holder.as_str().into()),
            ("fence", view.fence.into()),
            ("since", Value::Number(unit.count(view.since))),
            ("left", Value::Number(unit.count(*left_micros))),
        ])
    }
}

impl<S: Store, R: Runtime> Tokens<S, R> {
    pub(super) fn new(
        store: &S,
        runtime: R,
        (namespace, response_timeout): (Name, Micros),
        wallet: &str,
        source: SharedSource,
        options: TokensOptions,
    ) -> Result<(Self, Arc<PoolCore<S, R>>)> {
        options.check()?;
        if options.bounds.verify && !source.verifies() {
            return Err(Error::invalid("verify", "needs a source that has `spent`"));
        }
        let pool = crate::tokens::wallet_pool(wallet).map_err(|error| error.within("wallet"))?;
        let name = PoolName { namespace, pool };
        // So long does a store grant nothing that may have forgotten a lock: until it has ended, and what was spent under it rested.
        let pool_options = PoolOptions {
            ttl: options.ttl,
            doubt_rest: options.settle,
            max_hold: Some(0),
            keepalive: Keepalive::Off,
            ..PoolOptions::default()
        };
        let core = Pool::new(store, runtime, name, pool_options, None, response_timeout).core;
        core.interval(Some(options.keepalive), options.ttl)?;
        let wallet = Wallet {
            core: core.clone(),
            name: wallet.into(),
            source,
            options,
            purses: Arc::default(),
            counts: Counts::default(),
            settling: Mutex::default(),
        };
        Ok((Tokens { wallet: Arc::new(wallet) }, core))
    }

    /// Selects tokens that are worth at least `target`, and locks them. A target of 0 selects none. `await` it, perhaps after
    /// more words.
    ///
    /// # Errors
    /// `insufficient` if the wallet holds less, whoever has it; `locked_until` if others have too much of it;
    /// `contended`, `no_fit`, `timed_out`; `source_unavailable` and `store_unavailable` with their causes; `cancelled` if
    /// the handle was closed; `invalid_argument`. Nothing is locked then, and nothing stays locked if the future is
    /// dropped.
    pub fn select(&self, target: impl Into<Amount>) -> Select<'_, S, R> {
        Select::new(self, target.into())
    }

    /// The same by options.
    ///
    /// # Errors
    /// As [`Self::select`].
    pub async fn select_with(
        &self,
        target: impl Into<Amount>,
        options: SelectOptions,
    ) -> Result<Selection<S, R>> {
        let (wallet, target) = (&self.wallet, target.into());
        let began = wallet.core.runtime.now();
        let purse = wallet.purse(options.currency.as_ref())?;
        let attempt = Attempt::new(wallet.clone(), purse, target, options, began)?;
        // It ends as the handle closes, whatever it waits for. Dropped, it gives back what it has.
        let closing = wallet.core.room.closing().map(drop);
        let given_up = GivenUp(&wallet.core.counters);
        let selection = runtime::before(closing, pin!(attempt.run())).await;
        let selection = selection.unwrap_or_else(|| Err(closed()))?;
        std::mem::forget(given_up);
        wallet.core.counters.waited(wallet.core.runtime.now().saturating_sub(began));
        Ok(selection)
    }

    /// Hears what the source tells, if it does: of a currency, the wallet's option if none is named. For the wallet's `max_age`
    /// no page that is late brings back what is spent, nor takes away what was added. So what is told must not be late
    /// itself: who was cut off or stopped for longer than `settle` less `max_age` says [`Change::Gap`] instead.
    ///
    /// # Errors
    /// `invalid_argument` if the id of a token is too long.
    pub fn hear(&self, change: Change, currency: Option<&str>) -> Result<()> {
        let purse = self.wallet.purse(currency.map(Arc::from).as_ref())?;
        let now = self.wallet.core.runtime.now();
        match change {
            Change::Added(token) => {
                purse.pool().added(now, token)?;
                purse.freed_some(now);
            }
            Change::Spent(id) => {
                purse.pool().removed(now, &id)?;
                self.wallet.settle(&id);
            }
            Change::Listening => purse.pool().set_live(now, true),
            Change::Gap => purse.pool().set_live(now, false),
        }
        Ok(())
    }

    /// Who has which of these tokens locked, since when and until when; at most 1,000 are asked for.
    ///
    /// # Errors
    /// `invalid_argument`; `store_unavailable`.
    pub async fn locks(&self, ids: &[impl AsRef<str>]) -> Result<Vec<LockedToken>> {
        let ids = ids.iter().map(|id| id.as_ref().into()).collect();
        self.wallet.core.locks_of(ids).await
    }

    /// Who has which tokens of the wallet locked, since when and until when, in the order of their ids. What is locked or
    /// given back meanwhile may be there or not. Costs the store time in proportion to how many are locked: that is for a
    /// human who looks, and not for every selection.
    ///
    /// # Errors
    /// `store_unavailable`.
    pub async fn all_locks(&self) -> Result<Vec<LockedToken>> {
        self.wallet.core.all_locks().await
    }

    /// [`Self::locks`] of a list of ids, [`Self::all_locks`] of nothing, for languages with one name for both.
    ///
    /// # Errors
    /// As theirs.
    #[doc(hidden)]
    pub async fn locks_by(&self, ids: &Value, unit: Unit) -> Result<Value> {
        let locks = match ids {
            Value::Null => self.all_locks().await?,
            ids => self.locks(&read_ids(ids).map_err(|error| error.within("ids"))?).await?,
        };
        Ok(Value::List(locks.iter().map(|lock| lock.to_value(unit)).collect()))
    }

    /// Gives back all tokens of the wallet that this spender has locked, in whatever process, and says how many: for one
    /// that is known to be dead, or whose transaction is known to be void. A selection of it that still lives is lost by
    /// that, and hears of it only at its next renewal. What was spent rests all the same. Costs what [`Self::all_locks`] does.
    ///
    /// # Errors
    /// `store_unavailable`; some of them may be given back then. `invalid_argument` if its name is empty.
    pub async fn release_spender(&self, spender: impl Into<Spender>) -> Result<u32> {
        let count = self.wallet.core.release_holder(spender.into().named()?.0).await?;
        let purses: Vec<_> = self.wallet.purses.all().values().cloned().collect();
        purses.iter().for_each(|purse| purse.freed_some(self.wallet.core.runtime.now()));
        Ok(count)
    }

    /// How many tokens are locked, in the wallet, by anybody.
    ///
    /// # Errors
    /// `store_unavailable`.
    pub async fn count_locked(&self) -> Result<u32> {
        self.wallet.core.count_locked().await
    }

    /// What the selections of this handle asked for so far.
    pub fn counts(&self) -> TokenCounts {
        let Counts { pages, claims, asked, missed } = &self.wallet.counts;
        let [pages, claims, asked, missed] = [pages, claims, asked, missed].map(|count| count.load(Relaxed));
        TokenCounts { pages, claims, asked, missed }
    }

    /// What this handle has done so far.
    pub fn statistics(&self) -> super::Statistics {
        let waiting = self.wallet.purses.all().values().map(|purse| purse.waiting()).sum();
        self.wallet.core.counters.read(waiting, 0)
    }
}

impl<S: Store, R: Runtime> Wallet<S, R> {
    fn purse(&self, currency: Option<&Arc<str>>) -> Result<Lent> {
        let currency = currency.unwrap_or(&self.options.currency);
        self.purses.lend(currency, self.core.secret, self.options.max_age)
    }

    /// Spent tokens rest until the store ends that, or the source says that the spend is visible to all. That is enough
    /// only where every selection looks: a process may still know the token.
    fn note_spent(&self, ids: impl Iterator<Item = Arc<str>>) {
        if !self.options.bounds.verify {
            return;
        }
        let now = self.core.runtime.now();
        unpoisoned(&self.settling).rest(ids, now, self.options.settle);
    }

    fn settle(&self, id: &Arc<str>) {
        let rested = unpoisoned(&self.settling).end(id);
        if rested && let Ok(slot) = slot_of(id) {
            self.core.end_rest(slot, self.options.settle);
        }
    }
}

impl<S: Store, R: Runtime> Clone for Tokens<S, R> {
    fn clone(&self) -> Self {
        Tokens { wallet: self.wallet.clone() }
    }
}

impl<S: Store, R: Runtime> fmt::Debug for Tokens<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tokens {{ wallet: {:?} }}", self.wallet.name)
    }
}
