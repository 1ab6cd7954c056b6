//! Processes that charge limits: alone and in groups, at once or as soon as it is allowed, for good or for the time
//! being, by maxima that change.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::{Either, select};
use leasehold::client::{Limit, LimitAnswer, LimitKind, LimitOptions, Reservation, Said, WaitOptions};
use leasehold::limits::Amount;
use leasehold::store::LimitStore;
use leasehold::{Error, SECOND};

use crate::charges::{Cost, Kind};
use crate::history::What;
use crate::limit_calls::{Ask, Sayer, TAG, Told, Want};
use crate::locking::{SimHandle, open};
use crate::plan::LimitPlan;
use crate::rng::Rng;
use crate::workload::Site;
use crate::world::{ProcessId, SimRuntime, unpoisoned};

type SimLimit = Limit<SimRuntime>;
type SimReservation = Reservation<SimRuntime>;

/// One process, as its tasks share it.
struct Member<S: LimitStore> {
    site: Arc<Site<S>>,
    process: ProcessId,
    handle: SimHandle<S>,
    /// What was told to remain of each limit, and what was taken of one and not given back.
    remaining: Mutex<HashMap<String, u128>>,
    taken: Mutex<Vec<(LimitPlan, u128)>>,
}

/// What was reserved by a call, of which limits, and with what tag.
struct Held {
    call: u64,
    plans: Vec<LimitPlan>,
    tag: Option<(u64, bool)>,
    reservation: SimReservation,
}

/// What came of a call that charges.
enum Outcome {
    Judged(LimitAnswer),
    Reserved(SimReservation),
}

/// Starts a process and its workers.
pub fn start<S: LimitStore>(site: &Arc<Site<S>>, mut rng: Rng) -> ProcessId {
    let process = site.world.start(site.plan.drift);
    let handle = open(site, process);
    unpoisoned(&site.state).lockers.insert(process, handle.clone());
    let member = Arc::new(Member::of(site, process, handle));
    for number in 0..site.plan.workers {
        let (member, rng) = (member.clone(), rng.fork(number as u64));
        site.world.spawn(process, async move { member.work(rng).await });
    }
    process
}

impl<S: LimitStore> Member<S> {
    fn of(site: &Arc<Site<S>>, process: ProcessId, handle: SimHandle<S>) -> Self {
        let (remaining, taken) = (Mutex::default(), Mutex::default());
        Member { site: site.clone(), process, handle, remaining, taken }
    }

    async fn work(self: &Arc<Self>, mut rng: Rng) {
        while unpoisoned(&self.site.state).busy {
            let rest = rng.spread(2_000, 600_000);
            self.site.world.sleep(rest).await;
            match rng.below(100) {
                0 => self.reset(&mut rng).await,
                1..=4 => self.refund(&mut rng).await,
                5..=11 => self.peek(&mut rng).await,
                _ => self.charge(&mut rng).await,
            }
        }
    }

    /// Charges some limits, and gives back later what was reserved.
    async fn charge(self: &Arc<Self>, rng: &mut Rng) {
        let (site, number) = (&self.site, unpoisoned(&self.site.state).next_acquire());
        let plans = self.some(rng);
        let flies = plans.iter().any(|plan| plan.kind == LimitKind::InFlight);
        let waits = rng.in_thousand(250);
        let want = match (flies || rng.in_thousand(300), waits) {
            (true, false) => Want::Reserve,
            (true, true) => Want::WaitToReserve,
            (false, false) => Want::Take,
            (false, true) => Want::Wait,
        };
        let tagged = rng.in_thousand(600);
        let tag = tagged.then_some((number, rng.in_thousand(500)));
        let (limit, costs) = self.group(&plans, tag, rng);
        let timeout = if waits { *rng.pick(&[0, 30_000, 500_000, 3 * SECOND, 8 * SECOND]) } else { 0 };
        let ttl = rng.spread(5_000, 10 * SECOND);
        let open = plans.iter().all(|plan| plan.open);
        let ask = Ask { want, costs: costs.clone(), open, timeout, ttl };
        self.asked(number, ask);
        // Its own cost is said by every limit of a group.
        let cost = Amount::from(costs[0].cost);
        let options = WaitOptions { timeout, priority: *rng.pick(&[0, 0, 0, 1, -1]) };
        let call = async {
            match want {
                Want::Wait => limit.wait_with(cost, options).await.map(Outcome::Judged),
                Want::Reserve => {
                    limit.reserve(cost, Duration::from_micros(ttl)).await.map(|reserved| match reserved {
                        Ok(reservation) => Outcome::Reserved(reservation),
                        Err(refused) => Outcome::Judged(refused),
                    })
                }
                Want::WaitToReserve => {
                    let wait = limit.wait_to_reserve(cost, Duration::from_micros(ttl));
                    let wait =
                        wait.timeout(Duration::from_micros(options.timeout)).priority(options.priority);
                    wait.await.map(Outcome::Reserved)
                }
                _ => limit.take(cost).await.map(Outcome::Judged),
            }
        };
        let patience = rng.in_thousand(site.plan.cancels).then(|| rng.spread(100, 3_000_000));
        let outcome = match patience {
            None => Some(call.await),
            Some(patience) => {
                let sleep = pin!(site.world.sleep(patience));
                match select(pin!(call), sleep).await {
                    Either::Left((outcome, _)) => Some(outcome),
                    Either::Right(_) => None,
                }
            }
        };
        let Some(outcome) = outcome else {
            site.census.count("limit dropped");
            return self.told(number, tagged, None);
        };
        let answer = outcome.as_ref().map(|outcome| match outcome {
            Outcome::Judged(answer) => answer,
            Outcome::Reserved(reservation) => reservation.answer(),
        });
        self.told(number, tagged, Some(answer.map_err(Error::clone)));
        match outcome {
            Ok(Outcome::Reserved(reservation)) => {
                site.census.count("limits reserved");
                let (member, rng) = (self.clone(), rng.fork(number));
                let held = Held { call: number, plans, tag, reservation };
                site.world.spawn(self.process, async move { member.hold(held, ttl, rng).await });
            }
            Ok(Outcome::Judged(answer))
                if answer.allowed && answer.said == Said::Store && plans.len() == 1 =>
            {
                unpoisoned(&self.taken).push((plans[0].clone(), costs[0].cost));
            }
            _ => {}
        }
    }

    /// Ends what was reserved, in time or too late; or leaves that to the store.
    async fn hold(self: &Arc<Self>, held: Held, ttl: u64, mut rng: Rng) {
        let Held { call, plans, tag, reservation } = held;
        let (site, tagged) = (&self.site, tag.is_some());
        for _ in 0..if rng.in_thousand(400) { rng.between(1, 4) } else { 0 } {
            site.world.sleep(rng.spread(1_000, ttl * 9 / 8)).await;
            self.renew(call, tagged, &reservation, ttl, &mut rng).await;
        }
        site.world.sleep(rng.spread(1_000, ttl * 5 / 4)).await;
        let record = |what| site.history.record(site.world.now(), self.process, what);
        let way = rng.below(10);
        if way == 0 {
            site.census.count("reservation left to itself");
            unpoisoned(&site.state).kept.entry(self.process).or_default().push(Box::new(reservation));
            return;
        }
        let back = way > 5;
        // It cost less than was reserved.
        let stays = (way == 5).then(|| rng.below(4));
        record(What::ReservationEnds { call, back, stays });
        let ended = match way {
            1..=2 => {
                site.census.count("reservation dropped");
                return;
            }
            3..=5 => match stays {
                Some(cost) => reservation.commit_at(cost).await,
                None => reservation.commit().await,
            },
            6..=7 => reservation.refund().await,
            _ => {
                let id = reservation.hand_over();
                for _ in 0..way - 7 {
                    self.hand(call, &plans, tag, &id, &mut rng);
                }
                return;
            }
        };
        let error = ended.err().map(|error| error.code().as_str().to_owned());
        site.census.count(match (back, &error) {
            (false, None) if stays.is_some() => "reservation committed in part",
            (false, None) => "reservation committed",
            (false, Some(_)) => "reservation committed late",
            (true, None) => "reservation given back",
            (true, Some(_)) => "reservation not given back",
        });
        record(What::ReservationEnded { call, tagged, error });
    }

    /// Prolongs what was reserved, for as long as that was or not.
    async fn renew(&self, call: u64, tagged: bool, reservation: &SimReservation, ttl: u64, rng: &mut Rng) {
        let other = rng.in_thousand(500).then(|| rng.spread(1_000, 20 * SECOND));
        self.record(What::ReservationRenews { call });
        let renewed = match other {
            None => reservation.renew().await,
            Some(ttl) => reservation.renew_for(Duration::from_micros(ttl)).await,
        };
        let error = renewed.err().map(|error| error.code().as_str().to_owned());
        self.site.census.count(match error.as_deref() {
            None => "reservation renewed",
            Some("lost") => "reservation renewed too late",
            Some(_) => "reservation not renewed",
        });
        self.record(What::ReservationRenewed { call, tagged, ttl: other.unwrap_or(ttl), error });
    }

    /// Has a process give back what this one reserved, some time.
    fn hand(&self, call: u64, plans: &[LimitPlan], tag: Option<(u64, bool)>, id: &str, rng: &mut Rng) {
        let site = &self.site;
        let handles: Vec<_> = unpoisoned(&site.state).lockers.clone().into_iter().collect();
        if handles.is_empty() {
            return;
        }
        let (process, handle) = rng.pick(&handles).clone();
        let other = Member::of(site, process, handle);
        let (limit, _) = other.group(plans, tag, rng);
        let (id, rest) = (id.to_owned(), rng.spread(0, 2 * SECOND));
        site.world.spawn(process, async move {
            other.site.world.sleep(rest).await;
            let error =
                limit.refund_reservation(&id).await.err().map(|error| error.code().as_str().to_owned());
            other.site.census.count(match error {
                None => "reservation given back by another",
                Some(_) => "reservation not given back by another",
            });
            // Of two that end it one may come too late.
            if error.is_none() {
                other.record(What::ReservationEnded { call, tagged: tag.is_some(), error });
            }
        });
    }

    async fn peek(&self, rng: &mut Rng) {
        let plans = self.some(rng);
        let (limit, costs) = self.group(&plans, None, rng);
        let cost = Amount::from(costs[0].cost);
        let open = plans.iter().all(|plan| plan.open);
        let number = unpoisoned(&self.site.state).next_acquire();
        self.asked(number, Ask { want: Want::Peek, costs, open, timeout: 0, ttl: 0 });
        let answer = limit.peek(cost).await;
        self.told(number, false, Some(answer.as_ref().map_err(Error::clone)));
    }

    /// Gives back something that was taken.
    async fn refund(&self, rng: &mut Rng) {
        let Some((plan, cost)) = unpoisoned(&self.taken).pop() else { return };
        let (limit, _) = self.limit(&plan);
        let amount = if rng.in_thousand(500) { cost } else { cost.div_ceil(2) };
        let costs = vec![self.cost(&plan, amount)];
        let number = unpoisoned(&self.site.state).next_acquire();
        self.asked(number, Ask { want: Want::Refund, costs, open: false, timeout: 0, ttl: 0 });
        let answer = limit.refund(amount).await;
        self.site.census.count("limit refunded");
        self.told(number, false, Some(answer.as_ref().map_err(Error::clone)));
    }

    async fn reset(&self, rng: &mut Rng) {
        let plan = rng.pick(&self.site.plan.limits).clone();
        let (limit, _) = self.limit(&plan);
        let costs = vec![self.cost(&plan, 0)];
        let number = unpoisoned(&self.site.state).next_acquire();
        self.asked(number, Ask { want: Want::Reset, costs, open: false, timeout: 0, ttl: 0 });
        let done = limit.reset().await;
        self.site.census.count("limit reset");
        let told = match done {
            Ok(()) => Told::Judged { allowed: true, remaining: 0, by: Sayer::Store },
            Err(error) => Told::Failed(error.code().as_str().to_owned()),
        };
        self.record(What::LimitTold { call: number, tagged: false, told: Some(told) });
    }

    /// Some of the limits, each once.
    fn some(&self, rng: &mut Rng) -> Vec<LimitPlan> {
        let mut plans = self.site.plan.limits.clone();
        let count = if rng.in_thousand(550) { 1 } else { rng.between(2, 3).min(plans.len() as u64) as usize };
        while plans.len() > count {
            plans.remove(rng.below(plans.len() as u64) as usize);
        }
        plans
    }

    fn limit(&self, plan: &LimitPlan) -> (SimLimit, u128) {
        let now = self.site.world.now();
        let max = plan.max(now);
        let options = plan.options(max, self.process, now);
        (self.handle.limit_with(&plan.name, &options).expect("options that are right"), max)
    }

    /// These limits as one, with costs, and with the tag of a call behind or before them.
    fn group(&self, plans: &[LimitPlan], tag: Option<(u64, bool)>, rng: &mut Rng) -> (SimLimit, Vec<Cost>) {
        let mut members = Vec::new();
        let mut costs = Vec::new();
        for plan in plans {
            let (limit, max) = self.limit(plan);
            let amount = self.amount(plan, max, rng);
            costs.push(self.cost(plan, amount));
            members.push(if plans.len() > 1 || tag.is_some() { limit.at_cost(amount) } else { limit });
        }
        if let Some((number, behind)) = tag {
            let options = LimitOptions::new(TAG + u128::from(number), 0).kind(LimitKind::Budget);
            let tag = self.handle.limit_with("tag", &options).expect("options that are right").at_cost(0u64);
            members.insert(if behind { members.len() } else { 0 }, tag);
        }
        match members.as_slice() {
            [one] => (one.clone(), costs),
            _ => (self.handle.group(members.iter().map(Some)).expect("limits of one scope"), costs),
        }
    }

    fn cost(&self, plan: &LimitPlan, cost: u128) -> Cost {
        let kind = match plan.kind {
            LimitKind::Refill => Kind::Refill,
            LimitKind::Gcra => Kind::Gcra,
            LimitKind::Rolling => Kind::Rolling,
            LimitKind::Lifetime => Kind::Lifetime,
            LimitKind::Budget => Kind::Budget,
            LimitKind::InFlight => Kind::InFlight,
        };
        let now = self.site.world.now();
        let (max, period, extra) = (plan.max(now), plan.period(self.process), plan.extra(now));
        Cost { limit: plan.name.clone(), kind, max, period, extra, cost }
    }

    /// So much as is often allowed, or exactly what is left, or one more.
    fn amount(&self, plan: &LimitPlan, max: u128, rng: &mut Rng) -> u128 {
        let most = if plan.kind == LimitKind::Gcra { u128::from(plan.extra(0)) } else { max };
        let share =
            |rng: &mut Rng, of: u64| most * u128::from(1 + rng.below(1_000)) / (1_000 * u128::from(of));
        match rng.below(20) {
            0 => 0,
            1 => most,
            2 => most + 1,
            3..=5 => {
                let left = unpoisoned(&self.remaining).get(&plan.name).copied().unwrap_or(1);
                left + u128::from(rng.below(2))
            }
            6..=9 => 1,
            10..=11 => share(rng, 1).max(1),
            _ => share(rng, if plan.kind == LimitKind::Lifetime { 60 } else { 5 }).max(1),
        }
    }

    fn asked(&self, call: u64, ask: Ask) {
        // An answer may take as long as two replies.
        let grace = 2 * self.site.plan.response_timeout;
        self.record(What::LimitAsked { call, ask, grace });
    }

    fn told(&self, call: u64, tagged: bool, answer: Option<Result<&LimitAnswer, Error>>) {
        let told = answer.map(|answer| match answer {
            Err(error) => Told::Failed(error.code().as_str().to_owned()),
            Ok(answer) => {
                let remaining = answer.remaining.to_string().parse().unwrap_or(u128::MAX);
                if let Some(limit) = &answer.limit {
                    unpoisoned(&self.remaining).insert(limit.as_str().to_owned(), remaining);
                }
                let by = match answer.said {
                    Said::Store => Sayer::Store,
                    Said::Memory => Sayer::Memory,
                    Said::Outage => Sayer::Outage,
                };
                Told::Judged { allowed: answer.allowed, remaining, by }
            }
        });
        self.site.census.count(match &told {
            None => "limit call dropped",
            Some(Told::Failed(code)) if code == "timed_out" => "limit waited for in vain",
            Some(Told::Failed(code)) if code == "limited" => "limit never allows",
            Some(Told::Failed(_)) => "limit unknown",
            Some(Told::Judged { by: Sayer::Memory, .. }) => "limit refused by memory",
            Some(Told::Judged { by: Sayer::Outage, allowed: true, .. }) => "limit allowed in an outage",
            Some(Told::Judged { by: Sayer::Outage, .. }) => "limit refused in an outage",
            Some(Told::Judged { allowed: true, .. }) => "limit allowed",
            Some(Told::Judged { .. }) => "limit refused",
        });
        self.record(What::LimitTold { call, tagged, told });
    }

    fn record(&self, what: What) {
        self.site.history.record(self.site.world.now(), self.process, what);
    }
}

/// Sees that every process that is left can still ask for all limits.
pub fn go_on<S: LimitStore>(site: &Arc<Site<S>>) {
    let handles = unpoisoned(&site.state).lockers.clone();
    for (process, handle) in handles {
        let shared = site.clone();
        site.world.spawn(process, async move {
            let mut failure = None;
            for plan in &shared.plan.limits {
                let now = shared.world.now();
                let options = plan.options(plan.max(now), process, now);
                let peeked = match handle.limit_with(&plan.name, &options) {
                    Ok(limit) => limit.peek(1u64).await,
                    Err(error) => Err(error),
                };
                failure = failure.or(peeked.err().map(|error| error.to_string()));
            }
            audited(&shared, process, format!("process {process}"), failure);
        });
    }
}

/// Has a new process take all there is of every limit: whatever was used has come back by then.
pub fn audit<S: LimitStore>(site: &Arc<Site<S>>) {
    let process = site.world.start(false);
    let shared = site.clone();
    site.world.spawn(process, async move {
        let handle = open(&shared, process);
        for plan in &shared.plan.limits {
            let failure = try_out(&shared, process, &handle, plan).await.err();
            audited(&shared, process, plan.name.clone(), failure);
        }
    });
}

async fn try_out<S: LimitStore>(
    site: &Arc<Site<S>>,
    process: ProcessId,
    handle: &SimHandle<S>,
    plan: &LimitPlan,
) -> Result<(), String> {
    let told = |error: Error| error.to_string();
    let now = site.world.now();
    let max = plan.max(now);
    let limit = handle.limit_with(&plan.name, &plan.options(max, process, now)).map_err(told)?;
    // What was used for good does not come back.
    let cost = match plan.kind {
        LimitKind::Lifetime => 0,
        LimitKind::Gcra => plan.extra(0).into(),
        _ => max,
    };
    match limit.reserve(cost, Duration::from_secs(1)).await.map_err(told)? {
        Ok(reservation) => reservation.refund().await.map_err(told),
        Err(refused) => Err(format!("{cost} is refused: {refused:?}")),
    }
}

fn audited<S: LimitStore>(site: &Arc<Site<S>>, process: ProcessId, slot: String, failure: Option<String>) {
    site.history.record(site.world.now(), process, What::Audited { slot, failure });
}
