//! What the limits of one scope share in one process.

#[cfg(test)]
#[cfg(feature = "redis")]
mod tests;

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use futures_channel::oneshot;

use super::alone::Alone;
use super::answer::{LimitAnswer, Said};
use super::carrier::{AnyLedger, Carrier};
use super::line::Line;
use super::lobby::Lobby;
use super::{Limit, LimitOptions};
use crate::client::Leasehold;
use crate::client::audience::Audience;
use crate::error::{Code, Error, Result};
use crate::id::Name;
use crate::limits::{Act, Charge, Charged, Reply, Request, Settlement, Verdict};
use crate::runtime::{MaybeSend, MaybeSync, Runtime};
use crate::store::LimitStore;
use crate::{Micros, SECOND};

/// What the limits of one scope share.
pub(in crate::client) struct Scope<R> {
    carrier: Arc<Carrier<R>>,
    runtime: R,
    lobby: Arc<Lobby>,
    alone: Alone,
    /// When open limits ask the store again that did not answer, on the local clock; 0 if it did.
    outage: AtomicU64,
    closed: AtomicBool,
    /// Of those who ask for a reservation that they wait for: dismissed as it closes.
    closing: Audience,
}

/// The error of a limit whose handle was closed.
pub(super) fn closed() -> Error {
    Error::new(Code::Cancelled, "this handle was closed; open anew")
}

/// For how long open limits leave a store in peace that did not answer: each of their takes would wait for it.
const OUTAGE: Micros = SECOND;

/// A scope as its handle keeps it. In this form the handles of programs without limits do not carry what limits need.
pub(in crate::client) trait OpenedScope<R>: MaybeSend + MaybeSync {
    /// The scope itself.
    fn scope(self: Arc<Self>) -> Arc<Scope<R>>;

    /// Ends what waits.
    fn close(&self);

    /// Whether it is to be kept though nobody has a limit of it: it remembers what its store may forget, or has something under
    /// way.
    fn matters(&self) -> bool;
}

impl<R: Runtime> OpenedScope<R> for Scope<R> {
    fn scope(self: Arc<Self>) -> Arc<Scope<R>> {
        self
    }

    fn close(&self) {
        self.closed.store(true, Relaxed);
        self.closing.dismiss();
        self.lobby.nudge();
    }

    fn matters(&self) -> bool {
        // Whoever drives an envelope has the carrier.
        Arc::strong_count(&self.carrier) > 1
            || self.carrier.remembers()
            || self.alone.remembers(|| self.wall())
    }
}

/// A limit of this handle.
pub(in crate::client) fn open<S: LimitStore, R: Runtime>(
    handle: &Leasehold<S, R>,
    name: &str,
    options: &LimitOptions,
) -> Result<Limit<R>> {
    open_named(handle, Name::new(name).map_err(|error| error.within("name"))?, options)
}

/// The same of a name that perhaps no user can give.
pub(super) fn open_named<S: LimitStore, R: Runtime>(
    handle: &Leasehold<S, R>,
    name: Name,
    options: &LimitOptions,
) -> Result<Limit<R>> {
    let rule = options.rule()?;
    let scope = handle.scope(Name::of_limits(options.scope.as_ref()), |name, runtime, timeout| {
        Scope::new(Box::new(handle.store().ledger(name)), runtime, timeout)
    })?;
    Ok(Limit::new(scope, name, rule, options.outage))
}

impl<R: Runtime> Scope<R> {
    pub(super) fn new(ledger: Box<dyn AnyLedger>, runtime: R, response_timeout: Micros) -> Arc<Self> {
        let lobby = Arc::new(Lobby::new(runtime.random()));
        Arc::new(Scope {
            carrier: Carrier::new(ledger, runtime.clone(), response_timeout, lobby.clone()),
            alone: Alone::new(runtime.random_id()),
            runtime,
            lobby,
            outage: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            closing: Audience::default(),
        })
    }

    pub fn runtime(&self) -> &R {
        &self.runtime
    }

    /// Whether something is allowed, by a store that answers at once. Kept apart from [`Self::judge`], because all of that
    /// which such a store has no need of costs more than its answer.
    pub fn judge_now(&self, act: &Act, charges: &[Charged<'_>]) -> Option<Verdict> {
        self.carrier.judge_now(act, charges)
    }

    /// Whether something is allowed; it is charged if the act says so. `open` if the store's outage closes nothing.
    pub async fn judge(&self, act: Act, charges: Vec<Charge>, open: bool) -> Result<LimitAnswer> {
        let request = Request { act, charges };
        if cfg!(target_family = "wasm")
            && let Some(reply) = self.carrier.ask_now(&request)
        {
            return judged(reply, &request.charges);
        }
        let sent = self.runtime.now();
        if open && !self.may_ask(sent) {
            return Ok(self.judge_alone(request));
        }
        self.consult(request, sent, open).await
    }

    /// Has the store looked for in an outage, if it is time for that, beside whoever is judged alone meanwhile: who waits and is first would
    /// hold up all behind it until an answer comes.
    pub fn look_for_store(self: &Arc<Self>, charges: impl FnOnce() -> Vec<Charge>) {
        let now = self.runtime.now();
        if self.outage.load(Relaxed) > 0 && self.may_ask(now) {
            let (scope, request) = (self.clone(), Request { act: Act::Peek, charges: charges() });
            self.runtime.spawn(async move {
                let _ = scope.consult(request, now, true).await;
            });
        }
    }

    /// Asks a store that has to be waited for, or what it refused a moment ago.
    async fn consult(&self, request: Request, sent: Micros, open: bool) -> Result<LimitAnswer> {
        let changes = {
            let refusals = self.lobby.refusals();
            if matches!(request.act, Act::Take | Act::Peek)
                && let Some(answer) = refusals.recall(&request.charges, sent)
            {
                return Ok(answer);
            }
            refusals.changes()
        };
        match self.ask(&request).await {
            Ok(Reply::Judged(verdict)) => {
                self.outage.store(0, Relaxed);
                let answer = told(verdict, &request.charges, Said::Store);
                if let Some(charge) = request.charges.get(verdict.binding)
                    && !verdict.allowed
                {
                    let heard = self.runtime.now();
                    self.lobby.refusals().keep(charge, &answer, (sent, heard), changes);
                }
                Ok(answer)
            }
            Ok(Reply::Settled(_)) => Err(senseless()),
            Err(error) if open && error.code() == Code::StoreUnavailable => {
                self.outage.store(self.runtime.now() + OUTAGE, Relaxed);
                Ok(self.judge_alone(request))
            }
            // So many wait that it was not sent, or not answered in time.
            Err(error) if open && error.code() == Code::Busy => Ok(self.judge_alone(request)),
            Err(error) => Err(error),
        }
    }

    /// Gives back or resets; those who wait look again.
    pub async fn restore(&self, act: Act, charges: Vec<Charge>) -> Result<LimitAnswer> {
        let request = Request { act, charges };
        self.lobby.refusals().forget(&request);
        judged(self.ask(&request).await?, &request.charges)
    }

    /// Prolongs a reservation, or ends it; then those who wait look again.
    pub async fn settle(&self, act: Act, charges: Vec<Charge>) -> Result<Settlement> {
        let request = Request { act, charges };
        self.lobby.refusals().forget(&request);
        match self.ask(&request).await? {
            Reply::Settled(settlement) => Ok(settlement),
            Reply::Judged(_) => Err(senseless()),
        }
    }

    /// Ends a reservation whose holder has gone. That is tried for so long, or for half a minute.
    pub fn settle_and_forget(&self, act: Act, charges: Vec<Charge>, stands: Micros) {
        let request = Request { act, charges };
        self.lobby.refusals().forget(&request);
        self.alone.hear(|| self.wall(), &request);
        self.carrier.tell(request, stands);
    }

    /// The line of those who wait for the same limits.
    pub(super) fn line(&self, charges: &[Charge]) -> Arc<Line> {
        self.lobby.line(charges)
    }

    /// Why the store does not answer, while that is so.
    pub(super) fn trouble(&self) -> Option<String> {
        self.carrier.trouble()
    }

    /// Ends as the handle is closed.
    pub fn closing(&self) -> oneshot::Receiver<Infallible> {
        self.closing.join_unless(|| self.closed.load(Relaxed))
    }

    /// # Errors
    /// `cancelled` once the handle is closed.
    pub fn check_open(&self) -> Result<()> {
        match self.closed.load(Relaxed) {
            true => Err(closed()),
            false => Ok(()),
        }
    }

    /// Whether an open limit asks the store: in an outage one does now and then, and the others do not wait for what comes
    /// of that.
    fn may_ask(&self, now: Micros) -> bool {
        let again = self.outage.load(Relaxed);
        let is_next = || self.outage.compare_exchange(again, now + OUTAGE, Relaxed, Relaxed).is_ok();
        again == 0 || now >= again && is_next()
    }

    /// Asks the store; what it does is counted here too.
    async fn ask(&self, request: &Request) -> Result<Reply> {
        let reply = self.carrier.ask(request.clone()).await?;
        let done = match (request.act, reply) {
            (Act::Take | Act::Reserve { .. }, Reply::Judged(verdict)) => verdict.allowed,
            // What another committed, or has ended by itself, stays charged.
            (Act::GiveBack { .. }, Reply::Settled(settlement)) => {
                matches!(settlement, Settlement::Done | Settlement::Before { given_back: true })
            }
            (Act::Renew { .. } | Act::Keep { .. }, reply) => reply == Reply::Settled(Settlement::Done),
            _ => true,
        };
        if done {
            self.alone.hear(|| self.wall(), request);
        }
        Ok(reply)
    }

    /// What this process would be allowed if it were alone: an outage does not lift the limit.
    fn judge_alone(&self, request: Request) -> LimitAnswer {
        let charges = request.charges.clone();
        match self.alone.judge(self.wall(), &self.carrier.informed(request)) {
            Some(verdict) => told(verdict, &charges, Said::Outage),
            None => LimitAnswer::unbound(Said::Outage),
        }
    }

    /// The store's time, as far as it is known.
    fn wall(&self) -> Micros {
        self.carrier.store_time().unwrap_or_else(|| self.runtime.wall())
    }
}

fn judged(reply: Reply, charges: &[Charge]) -> Result<LimitAnswer> {
    match reply {
        Reply::Judged(verdict) => Ok(told(verdict, charges, Said::Store)),
        Reply::Settled(_) => Err(senseless()),
    }
}

fn told(verdict: Verdict, charges: &[Charge], said: Said) -> LimitAnswer {
    let limit = charges.get(verdict.binding).map(|charge| charge.limit.clone());
    LimitAnswer::told(&verdict, limit, said)
}

fn senseless() -> Error {
    Error::new(
        Code::Internal,
        "the store's reply is not of the kind that was asked for; report this as a bug",
    )
}
