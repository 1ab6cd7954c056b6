//! Processes that select tokens of one wallet, hold them, spend some and give the others back; and the source of the
//! tokens, which has pages, fails and lags behind.

use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures_util::future::{Either, select};
use leasehold::client::{
    Change, Keepalive, PageAsk, SelectOptions, Selection, TokenSource, Tokens, TokensOptions,
};
use leasehold::runtime::BoxedFuture;
use leasehold::store::LimitStore;
use leasehold::tokens::{Bounds, Page, STRATEGIES, Spender, Token, named};
use leasehold::{Error, SECOND};

use crate::history::{History, Selected, What};
use crate::locking::{SimHandle, open};
use crate::plan::{TokensPlan, can_be_kept};
use crate::rng::Rng;
use crate::selections::LAG;
use crate::workload::Site;
use crate::world::{Instant, NATURE, ProcessId, SimRuntime, World, unpoisoned};

type SimTokens<S> = Tokens<S, SimRuntime>;
type SimSelection<S> = Selection<S, SimRuntime>;

/// The longest locks of spent tokens: longer than the source, a page of it and what is known of that may lag.
pub const SETTLE: u64 = 6 * SECOND;

/// The tokens of the wallet.
#[derive(Clone)]
pub struct SimSource {
    world: World,
    history: History,
    plan: TokensPlan,
    state: Arc<Mutex<SourceState>>,
}

struct SourceState {
    rng: Rng,
    /// By id: what it is worth, when it was listed, and when it was not any more.
    tokens: BTreeMap<String, (u64, Instant, Option<Instant>)>,
    /// What was added and spent since the beginning, and when.
    changes: Vec<(Instant, Change)>,
    next: u64,
    calm: bool,
}

impl SimSource {
    /// A source with its first tokens.
    pub fn new(world: &World, history: &History, plan: &TokensPlan, rng: Rng) -> Self {
        let state = SourceState { rng, tokens: BTreeMap::new(), changes: Vec::new(), next: 0, calm: false };
        let source = SimSource {
            world: world.clone(),
            history: history.clone(),
            plan: plan.clone(),
            state: Arc::new(Mutex::new(state)),
        };
        (0..plan.tokens).for_each(|_| source.add());
        source
    }

    /// Adds a token.
    fn add(&self) {
        let now = self.world.now();
        let mut state = unpoisoned(&self.state);
        state.next += 1;
        let (token, amount) = (format!("t{}", state.next), state.rng.spread(1, 100));
        state.tokens.insert(token.clone(), (amount, now, None));
        state.changes.push((now, Change::Added(Token { since: now, ..Token::new(token.as_str(), amount) })));
        drop(state);
        self.history.record(now, NATURE, What::Listed { token, amount });
    }

    /// Lists a token.
    pub fn put(&self, token: &str, amount: u64) {
        let now = self.world.now();
        unpoisoned(&self.state).tokens.insert(token.to_owned(), (amount, now, None));
        self.history.record(now, NATURE, What::Listed { token: token.to_owned(), amount });
    }

    /// Keeps the wallet stocked for as long as there are faults.
    pub fn grow(&self) {
        let source = self.clone();
        self.world.spawn(NATURE, async move {
            while !unpoisoned(&source.state).calm {
                let pause = unpoisoned(&source.state).rng.between(200_000, 2_000_000);
                source.world.sleep(pause).await;
                if source.count() < source.plan.tokens {
                    source.add();
                }
            }
        });
    }

    /// From here on it neither fails nor grows.
    pub fn calm(&self) {
        unpoisoned(&self.state).calm = true;
    }

    fn count(&self) -> usize {
        unpoisoned(&self.state).tokens.values().filter(|(.., gone)| gone.is_none()).count()
    }

    /// What the wallet holds.
    pub fn sum(&self) -> u64 {
        let state = unpoisoned(&self.state);
        state.tokens.values().filter(|(.., gone)| gone.is_none()).map(|(amount, ..)| amount).sum()
    }

    /// A token is spent.
    fn remove(&self, token: &str) {
        let now = self.world.now();
        let mut state = unpoisoned(&self.state);
        if let Some((.., gone @ None)) = state.tokens.get_mut(token) {
            *gone = Some(now);
            state.changes.push((now, Change::Spent(token.into())));
            self.history.record(now, NATURE, What::Unlisted { token: token.to_owned() });
        }
    }

    /// How long a question takes, how far its answer lags, and whether it fails.
    fn fate(&self) -> (u64, u64, bool) {
        let mut state = unpoisoned(&self.state);
        let calm = state.calm;
        let late = !calm && state.rng.in_thousand(30);
        let time = state.rng.spread(200, if late { 900_000 } else { 5_000 });
        let lag = if calm { 0 } else { state.rng.below(self.plan.lag + 1) };
        (time, lag, !calm && state.rng.in_thousand(self.plan.failures))
    }
}

impl TokenSource for SimSource {
    fn page(&self, ask: PageAsk) -> BoxedFuture<'_, Result<Page, String>> {
        Box::pin(async move {
            let (time, lag, fails) = self.fate();
            self.world.sleep(time).await;
            if fails {
                // A bug that is planted: whoever reads an error as "there is none".
                return if self.plan.errors_as_empty {
                    Ok(Page::default())
                } else {
                    Err("the table is away".to_owned())
                };
            }
            let view = (self.world.now() - time).saturating_sub(lag);
            let state = unpoisoned(&self.state);
            let after = ask.after.unwrap_or_default();
            let seen = state.tokens.iter().filter(|(id, (_, listed, gone))| {
                **id > after && *listed <= view && gone.is_none_or(|gone| gone > view)
            });
            let tokens: Vec<Token> = seen
                .take(ask.limit)
                .map(|(id, (amount, listed, _))| Token { since: *listed, ..Token::new(id.as_str(), *amount) })
                .collect();
            let more = tokens.len() == ask.limit;
            let next = tokens.last().filter(|_| more).map(|token| token.id.to_string());
            Ok(Page { tokens, next })
        })
    }

    fn verifies(&self) -> bool {
        true
    }

    fn spent(&self, _wallet: Arc<str>, ids: Vec<Arc<str>>) -> BoxedFuture<'_, Result<Vec<Arc<str>>, String>> {
        Box::pin(async move {
            let (time, _, fails) = self.fate();
            self.world.sleep(time).await;
            if fails {
                return Err("the table is away".to_owned());
            }
            let state = unpoisoned(&self.state);
            let gone = |id: &&Arc<str>| state.tokens.get(&***id).is_some_and(|(.., gone)| gone.is_some());
            Ok(ids.iter().filter(gone).cloned().collect())
        })
    }
}

/// One process, as its tasks share it.
struct Member<S: LimitStore> {
    site: Arc<Site<S>>,
    process: ProcessId,
    tokens: SimTokens<S>,
    kept_alive: bool,
}

/// Starts a process and its workers.
pub fn start<S: LimitStore>(site: &Arc<Site<S>>, mut rng: Rng) -> ProcessId {
    let process = site.world.start(site.plan.drift);
    let handle = open(site, process);
    let (tokens, kept_alive) = wallet(site, &handle);
    // Whoever takes a process's place goes on under its names.
    let place = {
        let mut state = unpoisoned(&site.state);
        state.lockers.insert(process, handle);
        let place = (0..).find(|place| !state.places.values().any(|taken| taken == place)).unwrap_or(0);
        state.places.insert(process, place);
        place
    };
    let member = Arc::new(Member { site: site.clone(), process, tokens, kept_alive });
    if site.plan.tokens.heard > 0 {
        let (member, rng) = (member.clone(), rng.fork(u64::MAX));
        site.world.spawn(process, async move { member.hear(rng).await });
    }
    for number in 0..site.plan.workers {
        let (member, rng) = (member.clone(), rng.fork(number as u64));
        let spender = Spender::new(&format!("spender {place} {number}"));
        site.world.spawn(process, async move { member.work(spender, rng).await });
    }
    process
}

fn wallet<S: LimitStore>(site: &Arc<Site<S>>, handle: &SimHandle<S>) -> (SimTokens<S>, bool) {
    let plan = &site.plan;
    let ttl = plan.pool.ttl;
    let kept_alive = plan.tokens.keepalive && can_be_kept(ttl, plan.response_timeout);
    let options = TokensOptions {
        ttl,
        keepalive: if kept_alive { Keepalive::Third } else { Keepalive::Off },
        settle: SETTLE,
        max_age: LAG,
        bounds: Bounds { verify: plan.tokens.verify, ..Bounds::default() },
        page: plan.tokens.page,
        ..TokensOptions::default()
    };
    let tokens = handle.tokens_with("wallet", Arc::new(site.source.clone()), options);
    (tokens.expect("options that are right"), kept_alive)
}

impl<S: LimitStore> Member<S> {
    async fn work(self: &Arc<Self>, spender: Spender, mut rng: Rng) {
        while unpoisoned(&self.site.state).busy {
            let rest = rng.spread(2_000, 600_000);
            self.site.world.sleep(rest).await;
            match self.select(spender, &mut rng).await {
                Some(Ok(selection)) => self.hold(selection, &mut rng).await,
                Some(Err(_)) => self.site.world.sleep(50_000).await,
                None => {}
            }
        }
    }

    /// Hears, late, of some of what is added and spent.
    async fn hear(&self, mut rng: Rng) {
        let site = &self.site;
        let mut heard = unpoisoned(&site.source.state).changes.len();
        while unpoisoned(&site.state).busy {
            site.world.sleep(rng.spread(1_000, LAG)).await;
            let news: Vec<_> = unpoisoned(&site.source.state).changes.iter().skip(heard).cloned().collect();
            heard += news.len();
            for (at, change) in news {
                // Who was stopped takes no old news for new.
                let late = site.world.now() > at + 2 * LAG;
                if late || !rng.in_thousand(site.plan.tokens.heard) {
                    continue;
                }
                if let Change::Spent(id) = &change {
                    site.census.count("spend heard of");
                    let heard = What::HeardSpent { token: id.to_string() };
                    site.history.record(site.world.now(), self.process, heard);
                }
                self.tokens.hear(change, None).expect("ids that are short");
            }
        }
    }

    /// Selects tokens; `None` if that was dropped before its end.
    async fn select(&self, spender: Spender, rng: &mut Rng) -> Option<Result<SimSelection<S>, Error>> {
        let (site, plan) = (&self.site, &self.site.plan);
        let whole = site.source.sum();
        let target = match rng.below(10) {
            0 => whole + rng.below(3),
            1 => whole / 2,
            2 => 0,
            _ => rng.spread(1, (whole / 4).max(2)),
        };
        let timeout = *rng.pick(&[0, 30_000, 500_000, 3 * SECOND, 9 * SECOND]);
        let strategy = *rng.pick(&STRATEGIES);
        let max_inputs = rng.in_thousand(100).then(|| rng.between(1, 5) as usize);
        let options = SelectOptions {
            spender: rng.in_thousand(300).then_some(spender),
            timeout: Some(timeout),
            strategy: named(strategy).ok(),
            max_inputs,
            ..SelectOptions::default()
        };
        let call = unpoisoned(&site.state).next_acquire();
        let record = |what| site.history.record(site.world.now(), self.process, what);
        // Who does not wait for others waits for the answers to its questions.
        let grace = if timeout == 0 { 20 * plan.response_timeout } else { 0 };
        record(What::SelectBegan { call, target, timeout, grace });
        let patience = rng.in_thousand(plan.cancels).then(|| rng.spread(100, 3_000_000));
        let selection = match patience {
            None => Some(self.tokens.select_with(target, options).await),
            Some(patience) => {
                let sleep = pin!(site.world.sleep(patience));
                match select(pin!(self.tokens.select_with(target, options)), sleep).await {
                    Either::Left((selection, _)) => Some(selection),
                    Either::Right(_) => None,
                }
            }
        };
        let end = selection.as_ref().map(|selection| match selection {
            Ok(selection) => Ok(selected(selection)),
            Err(error) => Err(error.code().as_str().to_owned()),
        });
        site.census.count(match &end {
            None => "selection dropped",
            Some(Ok(_)) => "selections",
            Some(Err(code)) => match code.as_str() {
                "insufficient" => "selection insufficient",
                "locked_until" => "selection locked",
                "no_fit" => "selection without fit",
                "source_unavailable" => "selection without source",
                "timed_out" => "selection timed out",
                _ => "selection refused",
            },
        });
        record(What::SelectEnded { call, end });
        let selection = selection?;
        if let Ok(selection) = &selection {
            self.believe(selection);
            if self.kept_alive || rng.in_thousand(200) {
                self.watch(selection);
            }
        }
        Some(selection)
    }

    /// Records until when this process relies on each of the tokens.
    fn believe(&self, selection: &SimSelection<S>) {
        if selection.tokens().is_empty() {
            return;
        }
        let world = &self.site.world;
        let until = world.when(self.process, world.local(self.process) + selection.remaining_micros());
        for (token, &fence) in selection.tokens().iter().zip(selection.fences()) {
            let believes = What::Believes { slot: token.id.to_string(), fence, until };
            self.site.history.record(world.now(), self.process, believes);
        }
    }

    /// Has itself told of the end of the selection.
    fn watch(&self, selection: &SimSelection<S>) {
        let (site, process, fences) = (self.site.clone(), self.process, selection.fences().to_vec());
        for (token, &fence) in selection.tokens().iter().zip(&fences) {
            let watched = What::Watched { slot: token.id.to_string(), fence };
            site.history.record(site.world.now(), process, watched);
        }
        let lost = selection.lost();
        self.site.world.spawn(process, async move {
            if lost.await.is_some() {
                site.census.count("selection lost");
                for fence in fences {
                    site.history.record(site.world.now(), process, What::ToldLost { fence });
                }
            }
        });
    }

    async fn hold(&self, selection: SimSelection<S>, rng: &mut Rng) {
        let (site, ttl) = (&self.site, self.site.plan.pool.ttl);
        for _ in 0..rng.between(0, 3) {
            match rng.below(10) {
                // To the brink, and sometimes past the end.
                0 => {
                    let left = selection.remaining_micros().min(ttl);
                    site.world.sleep(left.saturating_sub(rng.spread(100, 400_000))).await;
                }
                1 => site.world.sleep(rng.between(ttl / 2, ttl * 5 / 4)).await,
                2..=3 => {
                    let error = selection.renew().await.err().map(|error| error.code().as_str().to_owned());
                    let answered = What::Answered { fence: selection.fence(), call: "renew", error };
                    site.history.record(site.world.now(), self.process, answered);
                }
                _ => site.world.sleep(rng.spread(500, ttl / 3)).await,
            }
            if selection.is_held() {
                self.believe(&selection);
            }
        }
        self.end(selection, rng).await;
    }

    /// Gives the tokens back, spends them, drops or keeps them.
    async fn end(&self, selection: SimSelection<S>, rng: &mut Rng) {
        let site = &self.site;
        let record = |what| site.history.record(site.world.now(), self.process, what);
        let closed = || selection.fences().iter().for_each(|&fence| record(What::Closed { fence }));
        let fence = selection.fence();
        let told = |error: Option<Error>| error.map(|error| error.code().as_str().to_owned());
        match rng.below(20) {
            // One that the library keeps alive would be held to the end of the world.
            0 if !self.kept_alive => {
                site.census.count("selection kept");
                unpoisoned(&site.state).kept.entry(self.process).or_default().push(Box::new(selection));
            }
            1..=4 => closed(),
            5..=9 if selection.is_held() => {
                let tokens: Vec<String> =
                    selection.tokens().iter().map(|token| token.id.to_string()).collect();
                record(What::Spends { tokens: tokens.clone(), answered: false });
                closed();
                let (source, delay) = (site.source.clone(), rng.spread(1_000, LAG));
                let (world, gone) = (site.world.clone(), tokens.clone());
                // What was sent is on its way, whatever becomes of its sender.
                site.world.spawn(NATURE, async move {
                    world.sleep(delay).await;
                    gone.iter().for_each(|token| source.remove(token));
                });
                let error = told(selection.spent().await.err());
                site.census.count(if error.is_none() {
                    "selection spent"
                } else {
                    "selection spent unheard"
                });
                if error.is_none() {
                    record(What::Spends { tokens, answered: true });
                }
                record(What::Answered { fence, call: "spent", error });
            }
            _ => {
                closed();
                let error = told(selection.release().await.err());
                record(What::Answered { fence, call: "release", error });
            }
        }
    }
}

fn selected<S: LimitStore>(selection: &SimSelection<S>) -> Selected {
    let tokens = selection.tokens().iter().map(|token| (token.id.to_string(), token.amount.saturating_u64()));
    Selected {
        tokens: tokens.collect(),
        sum: selection.sum().saturating_u64(),
        change: selection.change().saturating_u64(),
    }
}

/// Sees that every process that is left can select a token.
pub fn go_on<S: LimitStore>(site: &Arc<Site<S>>) {
    let handles = unpoisoned(&site.state).lockers.clone();
    for (process, handle) in handles {
        let shared = site.clone();
        site.world.spawn(process, async move {
            let failure = try_out(&shared, &handle, 1.min(shared.source.sum())).await.err();
            audited(&shared, process, format!("process {process}"), failure);
        });
    }
}

/// Has a new process select all that the wallet holds.
pub fn audit<S: LimitStore>(site: &Arc<Site<S>>) {
    let process = site.world.start(false);
    let shared = site.clone();
    // A wallet of which everything was spent has something again.
    site.source.put("last", 1);
    site.world.spawn(process, async move {
        let handle = open(&shared, process);
        let failure = try_out(&shared, &handle, shared.source.sum()).await.err();
        audited(&shared, process, "wallet".to_owned(), failure);
    });
}

async fn try_out<S: LimitStore>(
    site: &Arc<Site<S>>,
    handle: &SimHandle<S>,
    target: u64,
) -> Result<(), String> {
    let told = |error: Error| error.to_string();
    let (tokens, _) = wallet(site, handle);
    let options = SelectOptions { timeout: Some(20 * SECOND), ..SelectOptions::default() };
    tokens.select_with(target, options).await.map_err(told)?.release().await.map_err(told)
}

fn audited<S: LimitStore>(site: &Arc<Site<S>>, process: ProcessId, slot: String, failure: Option<String>) {
    site.history.record(site.world.now(), process, What::Audited { slot, failure });
}
