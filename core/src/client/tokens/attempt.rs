//! One selection under way: what the selector says is asked of the source and of the store.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use futures_util::FutureExt;

use super::claim::Claiming;
use super::options::check_inputs;
use super::purse::{Asking, Lent};
use super::turns::Turn;
use super::{Counts, PageAsk, SelectOptions, Selection, Wallet};
use crate::client::Lease;
use crate::client::options::check_rest;
use crate::client::pool::acquisition::mix;
use crate::client::pool::courier::unavailable;
use crate::client::pool::waiting::closed;
use crate::error::{Code, Error, Result};
use crate::runtime::{self, BoxedFuture, Runtime};
use crate::store::Store;
use crate::tokens::{Amount, Event, Selector, Spender, Step, Verdict};
use crate::{MILLISECOND, Micros, SECOND};

/// A page may take as long as what it lists is offered, and so long at least: others wait for their turn to ask. And so much
/// longer, at most, than who asked for it has time.
const PAGE_TIME: Micros = 30 * SECOND;

/// After so long at most a source is asked again that failed a selection that waits.
const AGAIN: Micros = SECOND;

/// One selection under way. Dropped, it gives back what it has.
pub(super) struct Attempt<S: Store, R: Runtime> {
    wallet: Arc<Wallet<S, R>>,
    purse: Lent,
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
    pub fn new(
        wallet: Arc<Wallet<S, R>>,
        purse: Lent,
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
        let holder = options.spender.map(Spender::named).transpose()?.map_or_else(own, |spender| spender.0);
        let timeout = options.timeout.unwrap_or(wallet.options.timeout);
        check_rest("timeout", timeout)?;
        if let Some(count) = options.max_inputs {
            check_inputs(count as u64).map_err(|error| error.within("max_inputs"))?;
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

    pub async fn run(mut self) -> Result<Selection<S, R>> {
        // Who can select at once is not told that the handle closes.
        if self.wallet.core.room.is_closed() {
            return Err(closed());
        }
        self.give_way().await;
        loop {
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
                    let runtime = &self.wallet.core.runtime;
                    let called = self.purse.pause(runtime, self.turn, Some(looked), time).await;
                    self.tell(if called { Event::Called } else { Event::Paused });
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

    /// Whether something it has ended, or soon will: the source or the store was slow, the process stopped, or a renewal found
    /// that it was lost. Of what it had just now there is no need to look at each: nothing has been renewed yet.
    fn has_lapsed(&self, now: Micros) -> bool {
        let looks = if self.interval > 0 { self.interval.min(self.ttl) / 2 } else { self.ttl / 2 };
        let lapses = |(_, lease): &(u32, Lease<S, R>)| lease.remaining_micros() < self.ttl / 4;
        now >= self.since + looks && self.leases.iter().any(lapses)
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

    /// The next page. Of those who want one at the same time one asks, and the others look at what came. One that takes longer than
    /// who asked for it has time is there for those who come next, if that is not too long, and the handle is not closed before.
    async fn fetch(&mut self) -> Result<()> {
        let runtime = &self.wallet.core.runtime;
        let before = self.purse.pages();
        let limit = self.patience();
        let fetched = match runtime::by(runtime, limit, std::pin::pin!(self.purse.turn())).await {
            Some(_) if self.purse.pages() != before => Some(Ok(())),
            Some(turn) => {
                let mut page: BoxedFuture<'static, _> = Box::pin(self.wallet.clone().fetch(turn));
                let fetched = runtime::by(runtime, limit, &mut page).await;
                if fetched.is_none() {
                    let core = self.wallet.core.clone();
                    runtime.spawn_at_once(async move {
                        let page = runtime::by(&core.runtime, limit + PAGE_TIME, page);
                        runtime::before(core.room.closing().map(drop), std::pin::pin!(page)).await;
                    });
                }
                fetched
            }
            None => None,
        };
        match fetched {
            Some(Ok(())) => {}
            // What it said before stands, and who waits for others asks again in a moment.
            Some(Err(_)) if self.patient && self.selector.waits() => {
                let pause = runtime.jitter(AGAIN).min(self.deadline.saturating_sub(self.now()));
                runtime.sleep(pause).await;
            }
            Some(Err(cause)) => return Err(source_failed(&cause)),
            // A patient one learns that its time is over from its selector.
            None if self.patient => {}
            None => return Err(source_failed("it gave no answer in time")),
        }
        self.tell(Event::Fetched);
        // A source may be ready at once for ever.
        runtime::others_first().await;
        Ok(())
    }

    async fn claim(&mut self, places: Vec<u32>) -> Result<()> {
        let slots: Vec<_> = {
            let pool = self.purse.pool();
            places.iter().filter_map(|&place| pool.get(place).map(|(_, slot)| slot.clone())).collect()
        };
        let core = self.wallet.core.clone();
        let (ttl, interval, limit, asked) = (self.ttl, self.interval, self.patience(), self.now());
        if self.leases.is_empty() {
            self.since = asked;
        }
        let claiming = core.claim_free(&slots, self.holder, ttl, limit, self.patient).await?;
        let Some(Claiming { grants, earliest }) = claiming else {
            // Of a store that answered before, and of which no trouble is known, it can be said what it said then; and of one that has
            // answered others meanwhile, that there was too little time.
            let is_well = self.answered || core.courier.has_answered_since(asked);
            if !(self.patient && is_well) || core.courier.trouble().is_some() {
                return Err(core.silence(unavailable));
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

impl<S: Store, R: Runtime> Wallet<S, R> {
    /// Asks the source for the next page, and takes it in; or says in words why there is none.
    async fn fetch(self: Arc<Self>, turn: Asking) -> Result<(), String> {
        let (runtime, purse) = (&self.core.runtime, &turn.purse);
        let now = runtime.now();
        let after = purse.pool().next_page(now);
        let ask = PageAsk {
            wallet: self.name.clone(),
            currency: purse.currency.clone(),
            after: after.clone(),
            limit: self.options.page,
            seed: self.core.secret,
        };
        let patience = now + PAGE_TIME.max(self.options.max_age);
        let Some(page) = runtime::by(runtime, patience, self.source.page(ask)).await else {
            purse.pool().lose_page();
            return Ok(());
        };
        let page = page.and_then(|page| {
            let absorbed = purse.pool().absorb(now, after.as_deref(), page);
            absorbed.map_err(|error| error.message().to_owned())
        });
        if let Err(cause) = page {
            purse.pool().lose_page();
            return Err(cause);
        }
        purse.note_page();
        self.counts.pages.fetch_add(1, Relaxed);
        Ok(())
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

fn source_failed(cause: &str) -> Error {
    Error::new(
        Code::SourceUnavailable,
        format!(
            "the source of tokens failed: {cause}; nothing is locked by this call, try again when it answers"
        ),
    )
}
