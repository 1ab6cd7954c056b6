//! One selection, step by step.
//!
//! It asks for what its strategy chooses, keeps what it gets, and asks again for what is missing; the source is asked
//! for more when what is known does not suffice, and always before anybody is told that a wallet holds too little. Who
//! cannot have enough gives up everything that was claimed before a pause of random length: so of two that stand in each
//! other's way one goes on.

use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::strategy::FewestInputs;
use super::total::Total;
use super::{Amount, Candidates, Draw, Order, Strategy};
use crate::slots::MAX_PER_REQUEST;
use crate::{MILLISECOND, Micros, SECOND};

/// How old a walk through all pages may be when those that wait look again.
const REFRESH: Micros = SECOND;

/// How long one that does not wait for others looks through pages.
const LONGEST: Micros = 60 * SECOND;

/// What a selection may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The most tokens of a selection.
    pub inputs: usize,
    /// The most tokens that are asked of the store before it gives up what it has and begins anew.
    pub attempts: usize,
    /// How often it may do so after a pause; where something of this process came free, that is cut short, and does not
    /// count.
    pub rounds: u32,
    /// The longest pause before it begins anew: at first, and at most. It doubles from one to the next.
    pub pause: (Micros, Micros),
    /// Whether the source is asked of every token that was had whether it is unspent.
    pub verify: bool,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            inputs: MAX_PER_REQUEST,
            attempts: 50_000,
            // The time bounds it first; even so long a wait as a lease lives takes hundreds.
            rounds: 10_000,
            pause: (10 * MILLISECOND, SECOND / 4),
            verify: false,
        }
    }
}

/// What a selection needs next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next page of the source.
    Fetch,
    /// A claim of these tokens, as many as can be had.
    Claim(Vec<u32>),
    /// Whether the source still has these tokens.
    Verify(Vec<u32>),
    /// These are to be given back.
    GiveBack(Vec<u32>),
    /// A pause, which may be cut short ([`Event::Called`]) when something of this process comes free.
    Pause(Micros),
    /// It has ended.
    Done(Verdict),
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A page was taken in.
    Fetched,
    /// Of what was claimed, these were granted, until then (by the clock that the selector is given); the others come
    /// free at `earliest` at the latest, unless they are put off.
    Claimed {
        /// In the order in which they were asked for.
        granted: Vec<(u32, Micros)>,
        /// Where it is known.
        earliest: Option<Micros>,
    },
    /// The claim had no answer in time. What is granted all the same is given back.
    Unanswered,
    /// Of what was verified, these are spent.
    Verified(Vec<u32>),
    /// What was to be given back was.
    GivenBack,
    /// The pause is over.
    Paused,
    /// It was cut short.
    Called,
}

/// How a selection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// With tokens.
    Selected {
        /// What they are worth.
        sum: Amount,
        /// What that is above the target.
        change: Amount,
    },
    /// The wallet holds less, whoever has it.
    Insufficient {
        /// What it holds.
        held: Amount,
    },
    /// Enough is there, but others have too much of it: until then, where that is known.
    Locked {
        /// By the clock that the selector is given.
        until: Option<Micros>,
    },
    /// Enough is there, and others were faster each time.
    Contended,
    /// Its time was over before it could be known whether there is enough.
    TimedOut,
    /// Enough is there, but no choice of it keeps to the bounds, whoever has it: the most tokens, the most attempts, no
    /// change.
    NoFit,
}

/// One selection.
#[derive(Debug)]
pub struct Selector {
    target: Amount,
    strategy: Arc<dyn Strategy>,
    bounds: Bounds,
    draw: Draw,
    began: Micros,
    /// How many walks through all pages had begun by then.
    walks: Option<u32>,
    /// The same by the end of its last pause.
    paused: u32,
    deadline: Micros,
    /// What it has, and what that is worth.
    held: Vec<u32>,
    sum: Total,
    /// What it asked for.
    asked: Vec<u32>,
    /// What was granted and is verified.
    doubtful: Vec<u32>,
    /// What others had in this round: it is not asked for again.
    lost: FxHashSet<u32>,
    /// Whether others ever had what it asked for.
    met: bool,
    /// When the first of that comes free, and what was known of that in the round before.
    earliest: Option<Micros>,
    before: Option<Micros>,
    /// What it asked for in this round.
    attempts: usize,
    round: u32,
    /// How many of the pauses before were not cut short.
    pauses: u32,
    /// Whether it begins another round, and so is done with what it has.
    yields: bool,
    /// Whether it has found once that others have what it wants.
    waits: bool,
    /// What all tokens were worth when so few of them as it may have sufficed.
    fitting: Option<Total>,
    end: Option<Verdict>,
}

impl Selector {
    /// A selection of tokens that are worth at least `target`. It ends by `deadline`; one whose deadline is not after
    /// `now` does not wait for others, and looks through pages for a minute at most.
    pub fn new(
        target: Amount,
        strategy: Arc<dyn Strategy>,
        bounds: Bounds,
        seed: u64,
        now: Micros,
        deadline: Micros,
    ) -> Self {
        Selector {
            target,
            strategy,
            bounds,
            draw: Draw::new(seed),
            began: now,
            walks: None,
            paused: 0,
            deadline,
            held: Vec::new(),
            sum: Total::default(),
            asked: Vec::new(),
            doubtful: Vec::new(),
            lost: FxHashSet::default(),
            met: false,
            earliest: None,
            before: None,
            attempts: 0,
            round: 0,
            pauses: 0,
            yields: false,
            waits: false,
            fitting: None,
            end: None,
        }
    }

    /// What it needs now.
    pub fn poll(&mut self, pool: &mut Candidates, now: Micros) -> Step {
        if let Some(verdict) = self.end {
            return Step::Done(verdict);
        }
        let walks = *self.walks.get_or_insert(pool.walks());
        if !self.doubtful.is_empty() {
            return Step::Verify(self.doubtful.clone());
        }
        // What the source said since goes with who had it, or is worth something else.
        if !self.held.iter().all(|&place| pool.is_as_had(place)) {
            return Step::GiveBack(self.held.clone());
        }
        if self.sum.covers(self.target) {
            return self.done(self.selected());
        }
        if self.is_patient() && now >= self.deadline {
            return self.late(pool, now);
        }
        if self.yields {
            return self.give_way(now);
        }
        if let Some(chosen) = self.choose(pool, now, walks) {
            if self.attempts + chosen.len() > self.bounds.attempts {
                pool.put_back(now, &chosen);
                // Others have some of what it asked for: in another round they may not.
                return if self.lost.is_empty() { self.done(Verdict::NoFit) } else { self.wait(pool, now) };
            }
            self.attempts += chosen.len();
            self.asked.clone_from(&chosen);
            return Step::Claim(chosen);
        }
        let knows = self.knows(pool, now, walks);
        if !knows && !self.is_patient() && now >= self.began.saturating_add(LONGEST) {
            return self.done(Verdict::TimedOut);
        }
        if !knows {
            return Step::Fetch;
        }
        self.all_known(pool, now)
    }

    /// Hears what came of the last step.
    pub fn handle(&mut self, pool: &mut Candidates, now: Micros, event: Event) {
        match event {
            Event::Fetched => {}
            Event::Claimed { granted, earliest } => {
                let mut granted = granted.into_iter().peekable();
                for place in std::mem::take(&mut self.asked) {
                    match granted.next_if(|&(next, _)| next == place) {
                        Some((_, until)) => {
                            pool.had(place, until);
                            if self.bounds.verify {
                                self.doubtful.push(place);
                            } else {
                                self.keep(pool, place);
                            }
                        }
                        None => {
                            pool.missed(now, place);
                            self.lost.insert(place);
                            self.met = true;
                        }
                    }
                }
                self.earliest = [self.earliest, earliest].into_iter().flatten().min();
            }
            Event::Unanswered => pool.put_back(now, &std::mem::take(&mut self.asked)),
            Event::Verified(spent) => {
                for place in std::mem::take(&mut self.doubtful) {
                    if spent.contains(&place) {
                        pool.gone(now, place);
                    } else {
                        self.keep(pool, place);
                    }
                }
            }
            Event::GivenBack => {
                pool.put_back(now, &std::mem::take(&mut self.held));
                self.sum = Total::default();
            }
            Event::Paused | Event::Called => {
                self.pauses += u32::from(event == Event::Paused);
                self.attempts = 0;
                self.lost.clear();
                self.paused = pool.walks();
                self.before = self.earliest.take().or(self.before);
                self.yields = false;
            }
        }
    }

    /// Whether it has found once that there is enough, and others have it.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// What it has.
    pub fn held(&self) -> &[u32] {
        &self.held
    }

    /// What it has is another's to give back from now on.
    pub fn hand_over(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.held)
    }

    /// Gives up: what it has or asked for is free for others of this process. What was granted must be given back.
    pub fn abandon(&mut self, pool: &mut Candidates, now: Micros) {
        for places in [&mut self.held, &mut self.asked, &mut self.doubtful] {
            pool.put_back(now, &std::mem::take(places));
        }
        (self.sum, self.attempts) = (Total::default(), 0);
    }

    fn is_patient(&self) -> bool {
        self.deadline > self.began
    }

    fn keep(&mut self, pool: &Candidates, place: u32) {
        self.held.push(place);
        self.sum.add(pool.amount(place));
    }

    fn done(&mut self, verdict: Verdict) -> Step {
        self.end = Some(verdict);
        Step::Done(verdict)
    }

    fn selected(&self) -> Verdict {
        match self.sum.exact() {
            Some(sum) => Verdict::Selected { sum, change: sum.saturating_sub(self.target) },
            // Tokens that only together are worth more than can be said.
            None => Verdict::NoFit,
        }
    }

    /// Whether it has looked at all pages. Whoever waits looks again from time to time.
    fn knows(&self, pool: &Candidates, now: Micros, walks: u32) -> bool {
        if self.round == 0 {
            return pool.has_walked_since(walks);
        }
        let refresh = now.saturating_sub(REFRESH).max(self.began);
        pool.has_walked_since(self.paused) || pool.knows_all(refresh)
    }

    /// What is to be asked for, if what is known suffices.
    fn choose(&mut self, pool: &mut Candidates, now: Micros, walks: u32) -> Option<Vec<u32>> {
        let strategy = self.strategy.clone();
        // By amount or age the best is known when everything is; a walk may take longer than what it found is offered.
        if strategy.order() != Order::Spread && !pool.is_recent(now) && !self.knows(pool, now, walks) {
            return None;
        }
        let most = self.bounds.inputs.saturating_sub(self.held.len());
        let chosen = self.choose_by(&*strategy, pool, now, most);
        let known = pool.has_walked_since(walks) || pool.is_recent(now);
        if chosen.is_some() || strategy.is_strict() || !known {
            return chosen;
        }
        self.choose_by(&FewestInputs, pool, now, most)
    }

    fn choose_by(
        &mut self,
        strategy: &dyn Strategy,
        pool: &mut Candidates,
        now: Micros,
        most: usize,
    ) -> Option<Vec<u32>> {
        let missing = self.target.saturating_sub(self.sum.capped());
        // To look at all there is for nothing would cost in proportion to it.
        if !pool.free(now).covers(missing) {
            return None;
        }
        let span = (strategy.least(), most.saturating_add(strategy.least()));
        let offered = pool.take(now, strategy.order(), missing, span, &self.lost, &mut self.draw);
        let amounts: Vec<Amount> = offered.iter().map(|&place| pool.amount(place)).collect();
        // Should a strategy of the host's panic, who gives the selection up puts them back.
        self.asked = offered;
        let chosen = strategy.choose(&amounts, missing, most, &mut self.draw);
        let offered = std::mem::take(&mut self.asked);
        let chosen = chosen.and_then(|chosen| self.checked(&amounts, missing, most, chosen));
        let Some(chosen) = chosen else {
            pool.put_back(now, &offered);
            return None;
        };
        if chosen.len() == offered.len() {
            return Some(offered);
        }
        let asked: Vec<u32> = chosen.into_iter().filter_map(|at| offered.get(at).copied()).collect();
        let kept: FxHashSet<u32> = asked.iter().copied().collect();
        let left: Vec<u32> = offered.into_iter().filter(|place| !kept.contains(place)).collect();
        pool.put_back(now, &left);
        Some(asked)
    }

    /// A choice that is one, whoever made it, that one request can name, and whose sum can be said.
    fn checked(
        &self,
        amounts: &[Amount],
        missing: Amount,
        most: usize,
        mut chosen: Vec<usize>,
    ) -> Option<Vec<usize>> {
        let amount = |at: &usize| amounts.get(*at).copied().unwrap_or_default();
        let mut distinct = FxHashSet::default();
        chosen.retain(|&at| at < amounts.len() && distinct.insert(at));
        let mut sum: Total = chosen.iter().map(amount).collect();
        if chosen.len() > most || !sum.covers(missing) {
            return None;
        }
        let mut whole = self.sum;
        chosen.iter().for_each(|at| whole.add(amount(at)));
        if whole.exact().is_none() {
            // What is not needed for the target is left out, the smallest first.
            chosen.sort_by_key(amount);
            chosen.retain(|at| {
                let mut without = sum;
                without.take(amount(at));
                let needless = without.covers(missing);
                if needless {
                    sum = without;
                }
                !needless
            });
        }
        // The rest is asked for when it is known what came of these.
        chosen.truncate(MAX_PER_REQUEST);
        (!chosen.is_empty()).then_some(chosen)
    }

    /// There is no choice, and nothing more to learn from the source.
    fn all_known(&mut self, pool: &mut Candidates, now: Micros) -> Step {
        let held = pool.total();
        if !held.covers(self.target) {
            return self.done(Verdict::Insufficient { held: held.capped() });
        }
        let mut mine = pool.free(now);
        self.held.iter().for_each(|&place| mine.add(pool.amount(place)));
        let others = !self.lost.is_empty() || mine < held;
        if !others && self.held.is_empty() || !self.fits(pool) {
            return self.done(Verdict::NoFit);
        }
        // What others had a moment ago has not been asked for by this one, which will not come again.
        if !self.is_patient() && !std::mem::replace(&mut self.waits, true) && pool.rouse(now, &self.lost) {
            return self.poll(pool, now);
        }
        self.wait(pool, now)
    }

    /// Others have what it wants: it begins another round, if it may.
    fn wait(&mut self, pool: &Candidates, now: Micros) -> Step {
        if !self.is_patient() {
            return self.locked(pool, now);
        }
        if self.pauses >= self.bounds.rounds {
            return self.done(Verdict::Contended);
        }
        self.round = self.round.saturating_add(1);
        (self.waits, self.yields) = (true, true);
        self.give_way(now)
    }

    /// Whether so few tokens as it may have suffice, whoever has them; looked at anew where the sum of all is another.
    fn fits(&mut self, pool: &Candidates) -> bool {
        let total = Some(pool.total());
        if self.fitting != total && pool.has_within(self.target, self.bounds.inputs) {
            self.fitting = total;
        }
        self.fitting == total
    }

    /// Everything is given up before the pause: of two that stand in each other's way one goes on.
    fn give_way(&mut self, now: Micros) -> Step {
        if !self.held.is_empty() {
            return Step::GiveBack(self.held.clone());
        }
        let (first, longest) = self.bounds.pause;
        let range = longest.min(first << self.round.min(20)).max(1);
        let pause = 1 + self.draw.below(range);
        Step::Pause(pause.min(self.deadline.saturating_sub(now)))
    }

    /// Its time is over.
    fn late(&mut self, pool: &Candidates, now: Micros) -> Step {
        if self.waits && pool.total().covers(self.target) {
            return self.locked(pool, now);
        }
        self.done(Verdict::TimedOut)
    }

    fn locked(&mut self, pool: &Candidates, now: Micros) -> Step {
        // With what it has nothing else fits; without it something may. Nor is its end anything to wait for.
        if !self.held.is_empty() {
            return Step::GiveBack(self.held.clone());
        }
        // A walk through all pages may take longer than a token is offered: then nobody has what is missing.
        if !self.met && !pool.any_had() {
            return self.done(Verdict::TimedOut);
        }
        let known = [self.earliest.or(self.before), pool.first_end(now)];
        let until = known.into_iter().flatten().filter(|&until| until > now).min();
        self.done(Verdict::Locked { until })
    }
}
