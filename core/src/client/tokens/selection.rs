//! Tokens that a caller has.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::Shared;

use super::{Lent, Wallet};
use crate::Micros;
use crate::client::lock::holding::{first, release, renew};
use crate::client::{Lease, ReleaseOptions};
use crate::error::{Code, Error, Result};
use crate::poison::unpoisoned;
use crate::runtime::{self, BoxedFuture, Runtime};
use crate::store::Store;
use crate::tokens::{Amount, Token};

/// Tokens that are this caller's alone until the deadline, and worth at least what was asked for. Dropped, they are given
/// back.
pub struct Selection<S: Store, R: Runtime> {
    wallet: Arc<Wallet<S, R>>,
    purse: Lent,
    tokens: Vec<Token>,
    fences: Vec<u64>,
    sum: Amount,
    change: Amount,
    ttl: Micros,
    /// Nothing once it was given back, or spent.
    held: Mutex<Option<Arc<Held<S, R>>>>,
    /// What comes of it that it was spent, for whoever says so again too.
    spending: OnceLock<Shared<BoxedFuture<'static, Result<()>>>>,
}

/// Leases, and the places of their tokens.
type Held<S, R> = Vec<(u32, Lease<S, R>)>;

impl<S: Store, R: Runtime> Selection<S, R> {
    pub(super) fn new(
        wallet: Arc<Wallet<S, R>>,
        purse: Lent,
        leases: Vec<(u32, Lease<S, R>)>,
        (sum, change): (Amount, Amount),
        ttl: Micros,
    ) -> Self {
        let tokens = {
            let pool = purse.pool();
            leases.iter().filter_map(|(place, _)| pool.get(*place).map(|(token, _)| token.clone())).collect()
        };
        let fences = leases.iter().map(|(_, lease)| lease.fence()).collect();
        let held = Mutex::new(Some(Arc::new(leases)));
        Selection { wallet, purse, tokens, fences, sum, change, ttl, held, spending: OnceLock::new() }
    }

    /// The tokens.
    pub fn tokens(&self) -> &[Token] {
        &self.tokens
    }

    /// The fence of each token, in the order of the tokens: larger than that of any lock of the token before.
    pub fn fences(&self) -> &[u64] {
        &self.fences
    }

    /// The largest of the fences; 0 if there is no token.
    pub fn fence(&self) -> u64 {
        self.fences.iter().copied().max().unwrap_or_default()
    }

    /// What the tokens are worth.
    pub fn sum(&self) -> Amount {
        self.sum
    }

    /// What they are worth above the target.
    pub fn change(&self) -> Amount {
        self.change
    }

    /// How long all of them can still be relied on; nothing when one cannot. For ever if there is none.
    pub fn remaining(&self) -> Duration {
        Duration::from_micros(self.remaining_micros())
    }

    /// The same in microseconds.
    pub fn remaining_micros(&self) -> Micros {
        if self.tokens.is_empty() {
            return Micros::MAX;
        }
        let held = self.held();
        let left = held.iter().flat_map(|held| held.iter()).map(|(_, lease)| lease.remaining_micros());
        left.min().unwrap_or_default()
    }

    /// Whether all of them can still be relied on.
    pub fn is_held(&self) -> bool {
        self.remaining_micros() > 0
    }

    /// Ends when one of the tokens can no longer be relied on, with the reason; with nothing if they were given back or
    /// spent in time. See [`Lease::lost`].
    pub fn lost(&self) -> BoxedFuture<'static, Option<Error>> {
        let held = self.held();
        let words: Vec<BoxedFuture<'static, Option<Error>>> =
            held.iter().flat_map(|held| held.iter()).map(|(_, lease)| Box::pin(lease.lost()) as _).collect();
        Box::pin(first(words))
    }

    /// As [`Self::lost`], but ends with nothing after this time, for languages where a caller cannot stop waiting.
    #[doc(hidden)]
    pub fn lost_within(&self, time: Option<Micros>) -> impl Future<Output = Option<Error>> + use<S, R> {
        runtime::within(self.wallet.core.runtime.clone(), time, self.lost())
    }

    /// Prolongs all of them to their time to live from now.
    ///
    /// # Errors
    /// `lost` if one of them is; `store_unavailable` if the store did not answer in time.
    pub async fn renew(&self) -> Result<()> {
        let held = self.held().clone();
        match held {
            Some(held) => renew(held.iter().map(|(_, lease)| lease), Some(self.ttl)).await,
            None => Err(ended()),
        }
    }

    /// Gives all of them back. A second call does nothing.
    ///
    /// # Errors
    /// `lost` if one of them had been lost before; `store_unavailable` if the store did not answer in time, which goes
    /// on trying.
    pub async fn release(&self) -> Result<()> {
        let Some(held) = self.held().take() else { return Ok(()) };
        let given = Given { selection: self, held };
        release(given.held.iter().map(|(_, lease)| lease), None).await
    }

    /// As [`Self::release`], at the end of a body that ran under it: see [`Lease::conclude`].
    ///
    /// # Errors
    /// As [`Self::release`].
    pub async fn conclude(&self) -> Result<()> {
        let held = self.held().clone();
        let ended = held.iter().flat_map(|held| held.iter()).find(|(_, lease)| lease.has_ended());
        match (self.release().await, ended) {
            (Ok(()), Some((_, lease))) => Err(lease.found_ended()),
            (outcome, _) => outcome,
        }
    }

    /// Says that the tokens are spent. They stay locked for the wallet's `settle`, until the spend is visible to all,
    /// and are not offered here again unless the source still lists them then. A second call only tells the same again.
    ///
    /// # Errors
    /// `lost` if they were given back, or one of them was lost before: others may have spent it; `store_unavailable` if the
    /// store did not answer in time: they stay locked for what is left of their time to live.
    pub async fn spent(&self) -> Result<()> {
        let spending = {
            let mut held = self.held();
            match held.take() {
                Some(held) => {
                    let spending = self.spending.get_or_init(|| self.spend(held));
                    // Whoever waits to hear of a loss hears how it ended, also if this call is given up.
                    self.wallet.core.runtime.spawn(spending.clone().map(drop));
                    Some(spending)
                }
                None => self.spending.get(),
            }
        };
        match spending {
            Some(spending) => spending.clone().await,
            None => Err(ended()),
        }
    }

    fn spend(&self, held: Arc<Held<S, R>>) -> Shared<BoxedFuture<'static, Result<()>>> {
        let settle = self.wallet.options.settle;
        let until = self.wallet.core.runtime.now() + settle;
        {
            let mut pool = self.purse.pool();
            held.iter().for_each(|(place, _)| pool.spent(*place, until));
        }
        // Whatever becomes of this future, they are not given back.
        let held = Lapsing(held);
        self.wallet.note_spent(self.tokens.iter().map(|token| token.id.clone()));
        // Nobody can have what rests, not even who comes by the name of this spender.
        let release = async move { release(held.0.iter().map(|(_, lease)| lease), Some(settle)).await };
        (Box::pin(release) as BoxedFuture<'static, _>).shared()
    }

    /// However it ends from now on, what is not spent runs to its deadline; see [`Lease::lapse`].
    #[doc(hidden)]
    pub fn lapse(&self) {
        self.held().iter().flat_map(|held| held.iter()).for_each(|(_, lease)| lease.lapse());
    }

    fn held(&self) -> MutexGuard<'_, Option<Arc<Held<S, R>>>> {
        unpoisoned(&self.held)
    }

    /// Free for others of this process.
    fn put_back(&self, places: &[u32]) {
        let now = self.wallet.core.runtime.now();
        self.purse.pool().put_back(now, places);
        self.purse.freed_some(now);
    }
}

/// Leases that are given back, whether or not the future that does it comes to its end.
struct Given<'a, S: Store, R: Runtime> {
    selection: &'a Selection<S, R>,
    held: Arc<Held<S, R>>,
}

impl<S: Store, R: Runtime> Drop for Given<'_, S, R> {
    fn drop(&mut self) {
        self.held.iter().for_each(|(_, lease)| lease.abandon(ReleaseOptions::default()));
        let places: Vec<u32> = self.held.iter().map(|(place, _)| *place).collect();
        self.selection.put_back(&places);
    }
}

/// Leases that end by themselves.
struct Lapsing<S: Store, R: Runtime>(Arc<Held<S, R>>);

impl<S: Store, R: Runtime> Drop for Lapsing<S, R> {
    fn drop(&mut self) {
        self.0.iter().for_each(|(_, lease)| lease.lapse());
    }
}

fn ended() -> Error {
    Error::new(Code::Lost, "the selection was given back or spent already; select anew")
}

impl<S: Store, R: Runtime> Drop for Selection<S, R> {
    fn drop(&mut self) {
        if let Some(held) = self.held().take() {
            drop(Given { selection: self, held });
        }
    }
}

impl<S: Store, R: Runtime> fmt::Debug for Selection<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Selection { tokens, sum, change, .. } = self;
        f.debug_struct("Selection").field("tokens", tokens).field("sum", sum).field("change", change).finish()
    }
}
