//! Tokens of a wallet, selected for an amount beside any number of processes that do the same.
//!
//! What to ask for next the [`Selector`] says; here it is asked of the source and of the store. Tokens that a selection
//! has are slots of the wallet's pool, leased by names that are made for the lease.

mod claim;
mod options;
mod purse;
mod selection;
mod source;
#[cfg(test)]
#[cfg(feature = "redis")]
mod tests;
mod turns;

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;

pub use options::{SelectOptions, TokensOptions};
use purse::Purse;
pub use selection::Selection;
pub use source::{Change, PageAsk, SharedSource, TokenSource, TokensInMemory, read_ids, write_ids};

use self::claim::Claiming;
use self::turns::Turn;
use super::acquisition::mix;
use super::options::check_rest;
use super::pool::PoolCore;
use super::waiting::closed;
use super::{Keepalive, Lease, Pool, PoolOptions, Runtime, Select, Unit, runtime};
use crate::error::{Code, Error, Result};
use crate::id::{Name, PoolName};
use crate::slots::SlotView;
use crate::store::Store;
use crate::tokens::{Amount, Event, Selector, Spender, Step, Verdict, slot_of};
use crate::value::Value;
use crate::{MILLISECOND, Micros};

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
    /// By currency.
    purses: Mutex<FxHashMap<Arc<str>, Arc<Purse>>>,
    counts: Counts,
    /// Tokens that were spent, and until when they rest.
    settling: Mutex<Vec<(Arc<str>, Micros)>>,
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
        // So long does a store grant nothing that may have forgotten a lock.
        let ttl = options.ttl.max(options.settle);
        let pool_options =
            PoolOptions { ttl, max_hold: 0, keepalive: Keepalive::Off, ..PoolOptions::default() };
        let core = Pool::new(store, runtime, name, pool_options, None, response_timeout).core;
        core.interval(Some(options.keepalive), options.ttl)?;
        let wallet = Wallet {
            core: core.clone(),
            name: wallet.into(),
            source,
            options,
            purses: Mutex::default(),
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
        let selection = Attempt::new(wallet.clone(), purse, target, options, began)?.run().await;
        match &selection {
            Ok(_) => wallet.core.counters.waited(wallet.core.runtime.now().saturating_sub(began)),
            Err(_) => super::statistics::Counters::add(&wallet.core.counters.refused),
        }
        selection
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
            Change::Listening => purse.pool().set_live(true),
            Change::Gap => purse.pool().set_live(false),
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
    /// `store_unavailable`; some of them may be given back then.
    pub async fn release_spender(&self, spender: impl Into<Spender>) -> Result<u32> {
        let count = self.wallet.core.release_holder(spender.into().0).await?;
        let purses: Vec<_> =
            self.wallet.purses.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect();
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
        let purses = self.wallet.purses.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = purses.values().map(|purse| purse.waiting()).sum();
        self.wallet.core.counters.read(waiting, 0)
    }
}

impl<S: Store, R: Runtime> Wallet<S, R> {
    fn purse(&self, currency: Option<&Arc<str>>) -> Result<Arc<Purse>> {
        let currency = currency.unwrap_or(&self.options.currency);
        let mut purses = self.purses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(purse) = purses.get(currency) {
            return Ok(purse.clone());
        }
        let purse = Arc::new(Purse::new(currency.clone(), self.core.secret, self.options.max_age)?);
        purses.insert(currency.clone(), purse.clone());
        Ok(purse)
    }

    /// Spent tokens rest until the store ends that, or the source says that the spend is visible to all. That is enough
    /// only where every selection looks: a process may still know the token.
    fn note_spent(&self, ids: impl Iterator<Item = Arc<str>>) {
        if !self.options.bounds.verify {
            return;
        }
        let now = self.core.runtime.now();
        let mut settling = self.settling.lock().unwrap_or_else(PoisonError::into_inner);
        settling.retain(|(_, until)| *until > now);
        settling.extend(ids.map(|id| (id, now + self.options.settle)));
    }

    fn settle(&self, id: &Arc<str>) {
        let mut settling = self.settling.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(at) = settling.iter().position(|(spent, _)| spent == id) else { return };
        settling.swap_remove(at);
        drop(settling);
        if let Ok(slot) = slot_of(id) {
            self.core.end_rest(slot, self.options.settle);
        }
    }
}

/// One selection under way. Dropped, it gives back what it has.
struct Attempt<S: Store, R: Runtime> {
    wallet: Arc<Wallet<S, R>>,
    purse: Arc<Purse>,
    selector: Selector,
    turn: Turn,
    target: Amount,
    /// What it holds of the store, by place.
    leases: Vec<(u32, Lease<S, R>)>,
    holder: u128,
    ttl: Micros,
    /// How often leases are renewed; 0 for never.
    interval: Micros,
    /// When it asked for the first of them.
    since: Micros,
    deadline: Micros,
    patient: bool,
    /// Whether the store has answered it.
    answered: bool,
}

impl<S: Store, R: Runtime> Attempt<S, R> {
    fn new(
        wallet: Arc<Wallet<S, R>>,
        purse: Arc<Purse>,
        target: Amount,
        options: SelectOptions,
        began: Micros,
    ) -> Result<Self> {
        let core = &wallet.core;
        let longest = wallet.options.ttl;
        let ttl = options.ttl.unwrap_or(longest);
        if !(MILLISECOND..=longest).contains(&ttl) {
            return Err(Error::invalid("ttl", "is out of range; 1 ms to the wallet's ttl are allowed"));
        }
        let interval = core.interval(Some(options.keepalive.unwrap_or(wallet.options.keepalive)), ttl)?;
        let number = core.counter.fetch_add(1, Relaxed);
        let own = || (u128::from(core.secret) << 64) | u128::from(number);
        let holder = options.spender.map_or_else(own, |spender| spender.0);
        let timeout = options.timeout.unwrap_or(wallet.options.timeout);
        check_rest("timeout", timeout)?;
        if let Some(count) = options.max_inputs {
            options::check_count(count as u64).map_err(|error| error.within("max_inputs"))?;
        }
        let strategy = options.strategy.unwrap_or_else(|| wallet.options.strategy.clone());
        let mut bounds = wallet.options.bounds;
        bounds.inputs = options.max_inputs.unwrap_or(bounds.inputs);
        let seed = mix(core.secret ^ number);
        let deadline = began + timeout;
        let selector = Selector::new(target, strategy, bounds, seed, began, deadline);
        let turn = purse.next_turn(target, began);
        Ok(Attempt {
            wallet,
            purse,
            selector,
            turn,
            target,
            leases: Vec::new(),
            holder,
            ttl,
            interval,
            since: began,
            deadline,
            patient: timeout > 0,
            answered: false,
        })
    }

    async fn run(mut self) -> Result<Selection<S, R>> {
        self.give_way().await;
        loop {
            // No pause is long, so who waits soon comes by here.
            if self.wallet.core.room.is_closed() {
                return Err(closed());
            }
            let now = self.now();
            if self.has_lapsed(now) {
                self.begin_anew(now)?;
            }
            let looked = self.purse.freed();
            // The lock ends with the line: no claim is made under it.
            let step = self.selector.poll(&mut self.purse.pool(), now);
            match step {
                Step::Fetch => self.fetch().await?,
                Step::Claim(places) => {
                    self.purse.pass_on(now);
                    self.claim(places).await?;
                }
                Step::Verify(places) => self.verify(places).await?,
                Step::GiveBack(places) => {
                    self.leases.retain(|(place, _)| !places.contains(place));
                    self.tell(Event::GivenBack);
                    self.purse.freed_some(now);
                }
                Step::Pause(time) => {
                    self.purse.pause(&self.wallet.core.runtime, self.turn, Some(looked), time).await;
                    self.tell(Event::Paused);
                }
                Step::Done(Verdict::Selected { sum, change }) => return Ok(self.selected(sum, change)),
                Step::Done(verdict) => return Err(self.failed(verdict)),
            }
        }
    }

    /// Where others of this process pause already, it lines up behind them, for a moment at most: what is given back here
    /// would else be taken by whoever comes as it is, and those who pause would be told of it in vain.
    async fn give_way(&mut self) {
        if self.patient && !self.target.is_zero() && self.purse.waiting() > 0 {
            let (moment, _) = self.wallet.options.bounds.pause;
            let time = mix(self.wallet.core.secret ^ self.turn.number) % moment.max(1);
            self.purse.pause(&self.wallet.core.runtime, self.turn, None, time).await;
        }
    }

    fn now(&self) -> Micros {
        self.wallet.core.runtime.now()
    }

    fn tell(&mut self, event: Event) {
        let now = self.now();
        self.selector.handle(&mut self.purse.pool(), now, event);
    }

    /// Whether something it has ended, or soon will: the source or the store was slow, or the process stopped. Of what it
    /// had just now there is no need to look at each.
    fn has_lapsed(&self, now: Micros) -> bool {
        let lapses = |(_, lease): &(u32, Lease<S, R>)| lease.remaining_micros() < self.ttl / 4;
        now >= self.since + self.ttl / 2 && self.leases.iter().any(lapses)
    }

    /// Gives back what it has. Whoever gave one attempt only has had it.
    fn begin_anew(&mut self, now: Micros) -> Result<()> {
        self.leases.clear();
        self.selector.abandon(&mut self.purse.pool(), now);
        self.purse.freed_some(now);
        if self.patient { Ok(()) } else { Err(self.failed(Verdict::TimedOut)) }
    }

    /// Until when a question may take. Who does not wait for others waits for answers all the same.
    fn patience(&self) -> Micros {
        if self.patient { self.deadline } else { self.now() + self.wallet.core.response_timeout }
    }

    /// The next page. Of those who want one at the same time one asks, and the others look at what came.
    async fn fetch(&mut self) -> Result<()> {
        let core = &self.wallet.core;
        let before = self.purse.pages();
        let limit = self.patience();
        let fetch = async {
            let _turn = self.purse.turn().await;
            if self.purse.pages() != before {
                return Ok::<(), Error>(());
            }
            let now = core.runtime.now();
            let after = self.purse.pool().next_page(now);
            let ask = PageAsk {
                wallet: self.wallet.name.clone(),
                currency: self.purse.currency.clone(),
                after: after.clone(),
                limit: self.wallet.options.page,
                seed: core.secret,
            };
            let page = self.wallet.source.page(ask).await.map_err(|cause| source_failed(&cause))?;
            let absorbed = self.purse.pool().absorb(now, after.as_deref(), page);
            absorbed.map_err(|error| source_failed(error.message()))?;
            self.purse.note_page();
            self.wallet.counts.pages.fetch_add(1, Relaxed);
            Ok(())
        };
        match runtime::by(&core.runtime, limit, std::pin::pin!(fetch)).await {
            Some(fetched) => fetched?,
            // A patient one learns that its time is over from its selector.
            None if self.patient => {}
            None => return Err(source_failed("it gave no answer in time")),
        }
        self.tell(Event::Fetched);
        Ok(())
    }

    async fn claim(&mut self, places: Vec<u32>) -> Result<()> {
        let slots: Vec<_> = {
            let pool = self.purse.pool();
            places.iter().filter_map(|&place| pool.get(place).map(|(_, slot)| slot.clone())).collect()
        };
        let core = self.wallet.core.clone();
        let (ttl, interval, limit) = (self.ttl, self.interval, self.patience());
        if self.leases.is_empty() {
            self.since = core.runtime.now();
        }
        let claiming = core.claim_free(&slots, self.holder, ttl, limit, self.patient).await?;
        let Some(Claiming { grants, earliest }) = claiming else {
            // Of a store that answered before, and of which no trouble is known, it can be said what it said then.
            if !(self.patient && self.answered) || core.courier.trouble().is_some() {
                return Err(core.silence());
            }
            self.tell(Event::Unanswered);
            return Ok(());
        };
        self.answered = true;
        let here = core.runtime.now();
        let clock = core.lease_clock();
        let mut granted = Vec::with_capacity(grants.len());
        let mut named = places.iter().zip(&slots);
        let pool = self.purse.pool();
        for grant in grants {
            // Grants come in the order in which they were asked for.
            let Some((&place, _)) = named.find(|(_, slot)| slot.is(&grant.slot)) else { continue };
            if !pool.is_listed(place, here) {
                core.courier.give_back(grant);
                continue;
            }
            granted.push((place, here + grant.deadline.saturating_sub(clock)));
            self.leases.push((place, Lease::since(core.clone(), grant, ttl, interval, clock)));
        }
        drop(pool);
        let Counts { claims, asked, missed, .. } = &self.wallet.counts;
        claims.fetch_add(1, Relaxed);
        asked.fetch_add(slots.len() as u64, Relaxed);
        missed.fetch_add(slots.len().saturating_sub(granted.len()) as u64, Relaxed);
        self.tell(Event::Claimed { granted, earliest });
        Ok(())
    }

    async fn verify(&mut self, places: Vec<u32>) -> Result<()> {
        let ids: Vec<Arc<str>> = {
            let pool = self.purse.pool();
            places.iter().filter_map(|&place| pool.get(place).map(|(token, _)| token.id.clone())).collect()
        };
        let limit = self.patience();
        let asked = self.wallet.source.spent(self.wallet.name.clone(), ids.clone());
        let spent = match runtime::by(&self.wallet.core.runtime, limit, asked).await {
            Some(spent) => spent.map_err(|cause| source_failed(&cause))?,
            None => return Err(source_failed("it gave no answer in time")),
        };
        let spent: Vec<u32> =
            places.iter().zip(&ids).filter(|(_, id)| spent.contains(id)).map(|(&place, _)| place).collect();
        self.leases.retain(|(place, _)| !spent.contains(place));
        self.tell(Event::Verified(spent));
        Ok(())
    }

    fn selected(mut self, sum: Amount, change: Amount) -> Selection<S, R> {
        let leases = std::mem::take(&mut self.leases);
        self.selector.hand_over();
        Selection::new(self.wallet.clone(), self.purse.clone(), leases, (sum, change), self.ttl)
    }

    fn failed(&self, verdict: Verdict) -> Error {
        let target = self.target;
        let left = match verdict {
            Verdict::Locked { until } => until.map(|until| until.saturating_sub(self.now())),
            _ => None,
        };
        let (code, message) = match verdict {
            Verdict::Insufficient { held } => (
                Code::Insufficient,
                format!("the wallet holds {held} of this currency, whoever has it locked, and not {target}"),
            ),
            Verdict::Locked { .. } => (
                Code::LockedUntil,
                match left {
                    Some(left) => format!(
                        "enough is there, but others have it; the first of it comes free in {} ms, if it is not renewed or given back before",
                        left / MILLISECOND
                    ),
                    None => {
                        "enough is there, but others have it; wait by giving a longer timeout".to_owned()
                    }
                },
            ),
            Verdict::TimedOut => (
                Code::TimedOut,
                "the timeout passed before it was known whether there is enough; give a longer timeout, or see why the source or the store is slow".to_owned(),
            ),
            Verdict::NoFit => (
                Code::NoFit,
                "enough is there, but no choice of tokens keeps to max_inputs, max_attempts and the strategy; allow more, or another strategy".to_owned(),
            ),
            Verdict::Contended | Verdict::Selected { .. } => (
                Code::Contended,
                "enough is there, but others were faster each time; try again, or allow more rounds".to_owned(),
            ),
        };
        Error::new(code, message).after(left)
    }
}

impl<S: Store, R: Runtime> Drop for Attempt<S, R> {
    fn drop(&mut self) {
        // The leases first: what is free here is free in the store, or will be when a claim of it comes there.
        let has = !self.leases.is_empty();
        self.leases.clear();
        let now = self.now();
        self.selector.abandon(&mut self.purse.pool(), now);
        if has {
            self.purse.freed_some(now);
        } else {
            self.purse.pass_on(now);
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

fn source_failed(cause: &str) -> Error {
    Error::new(
        Code::SourceUnavailable,
        format!("the source of tokens failed: {cause}; nothing is locked by this call"),
    )
}
