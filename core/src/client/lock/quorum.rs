//! Locks that outlive the loss of servers: a majority of servers that know nothing of each other must grant them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_util::future::join_all;

use self::ballot::{Ballot, Vote, granted};
use self::hold::{Hold, Joining};
use super::holding::{Electorate, Several};
use super::{break_at, check_on, wanted};
use crate::client::builders::{LockBuilder, LockNames, LockOwner};
use crate::client::options::lock_names;
use crate::client::pool::PoolCore;
use crate::client::pool::acquisition::lasting;
use crate::client::pool::courier::unavailable;
use crate::client::pool::waiting::closed;
use crate::client::{Lease, Leasehold, Lock, LockOptions, Unit};
use crate::error::{Code, Error, Result};
use crate::id::SlotId;
use crate::runtime::{BoxedFuture, Runtime};
use crate::store::Store;
#[cfg(feature = "doctor")]
use crate::store::finding::{Check, Finding, Verdict};
use crate::value::Value;
use crate::{MILLISECOND, Micros, SECOND};

mod ballot;
mod hold;
// What has no `crowds` has no quorums.
#[cfg(test)]
#[cfg(all(feature = "redis", feature = "crowds"))]
mod tests;

/// The most servers of a quorum.
pub const MAX_SERVERS: usize = 9;
/// The part of a time to live within which a server's answer counts.
const ANSWER: Micros = 5;
/// The part of a time to live that must be left of a lock as it is handed out.
const LEFT: Micros = 4;
/// The first and the longest pause before all servers are asked again.
const PAUSES: (Micros, Micros) = (10 * MILLISECOND, 160 * MILLISECOND);
/// How long nobody waits for a server that gave no answer, where the others suffice.
const SUSPICION: Micros = 10 * SECOND;

/// Why what is about a line is refused.
const NO_LINE: &str =
    "has no meaning for locks of a quorum: those who wait for several servers stand in no line";

/// Independent servers, a majority of which must grant each lock (Redlock, as Redis specifies it, and what it leaves
/// open): half of their number, rounded down, and one more. So of three one may fail, of five two, of four one.
///
/// Its locks are [`Lock`]s: several names at once, `keepalive`, `lost`, `run` and `reentrant` mean what they always do. A
/// lock is lost when fewer than a majority still hold it; it can be relied on for as long as the best majority can, each
/// deadline counted from before the server was asked, less 1 % and 2 ms. A server that grants late holds it too,
/// while its majority stands; what is granted to somebody who has none is given back, and a release goes to all.
///
/// # What it costs
///
/// All servers are asked at once. Nobody stands in line: whoever waited at one server's line for another's would wait
/// for ever, or hold up those who need no second server. Instead a claim that has no majority gives back what it has and
/// is made anew after a random pause of 5 to 160 ms, or up to twice as long as that took. So there is no order among
/// those who wait, `priority` and `steal` are refused, and under contention somebody may be served late. A server whose
/// answer takes longer than `response_timeout`, or a fifth of the lock's `ttl`, has not voted.
///
/// # What it cannot do
///
/// It protects against servers that die, hang or forget; not against a holder that is paused between its last look at
/// the lock and its writing, nor against clocks that run at different speeds by more than 1 % and 2 ms within one `ttl`.
/// A server that restarts grants no lock for one `lock_ttl`, so a memory that it lost lets nobody in; but one whose keys
/// are deleted while it runs, by an operator or by eviction, votes as if the name were free, and a majority of such is
/// two holders. A server that comes back is not asked to hold again what it forgot: a lock that is held while one server
/// after the other restarts is lost with the last one of its majority. A primary with replicas is one server.
///
/// # The fence
///
/// Fences of different servers are not comparable, and those of two holders may come from two servers. A quorum's lock
/// has the largest of those that it was granted by, and each of them is about its server's clock. So two holders' fences are in
/// their order if the servers' clocks are nearer to each other than the two acquisitions are:
///
/// - whoever was *lost* before, who alone can be late, acquired one `ttl` earlier or more, or one `max_hold` where that is
///   shorter (less 1 %): while the clocks agree to within that, a resource that checks fences refuses every late holder;
/// - whoever *gave it back* may have acquired a moment before. Where clocks differ by more, the next holder can have the
///   lower fence, and the resource refuses the one who holds the lock. It is told so, and can acquire again: that helps
///   as soon as the difference has passed;
/// - whose lock was *broken* ([`Lock::break_lease`]) may have acquired a moment before too, and may be late: where clocks
///   differ by more its fence can be the higher one, which a resource admits. Break a quorum's lock only when its holder is
///   known to be dead.
///
/// A single server's fences depend on no clock. What must never be wrong is better locked there.
pub struct Quorum<S: Store, R: Runtime> {
    handles: Vec<Leasehold<S, R>>,
    servers: Voters<S, R>,
}

type Voters<S, R> = Arc<Servers<S, R>>;

/// Those who vote.
struct Servers<S: Store, R: Runtime> {
    runtime: R,
    all: Vec<Server<S, R>>,
}

/// One of them.
struct Server<S: Store, R: Runtime> {
    core: Arc<PoolCore<S, R>>,
    /// Until when nobody waits for it, because it gave no answer; 0 if it did.
    suspect_until: AtomicU64,
}

impl<S: Store, R: Runtime> Quorum<S, R> {
    /// A quorum of 1 to [`MAX_SERVERS`] handles, one a server. One server's locks are plain ones, with their lines.
    ///
    /// # Errors
    /// `invalid_argument` naming `servers` if there are too few or too many, or the one whose namespace or `lock_ttl` is
    /// not that of the first, or `lock_ageing` if several have one; `cancelled` if one was closed. That two are the same server is not seen here.
    pub fn new(handles: Vec<Leasehold<S, R>>) -> Result<Self> {
        let servers = |count| {
            Error::invalid("servers", format_args!("{count} servers; 1 to {MAX_SERVERS} are allowed"))
        };
        let cores = handles.iter().map(Leasehold::locks).collect::<Result<Vec<_>>>()?;
        let first =
            cores.first().filter(|_| cores.len() <= MAX_SERVERS).ok_or_else(|| servers(cores.len()))?;
        let differs =
            |core: &Arc<PoolCore<S, R>>| (&core.name, core.options.ttl) != (&first.name, first.options.ttl);
        if let Some(at) = cores.iter().position(differs) {
            let message = "has another namespace or lock_ttl than the first";
            return Err(Error::invalid(format!("servers[{at}]"), message));
        }
        if cores.len() > 1 && cores.iter().any(|core| core.options.ageing > 0) {
            return Err(Error::invalid("lock_ageing", NO_LINE));
        }
        let runtime = first.runtime.clone();
        let all = cores.into_iter().map(|core| Server { core, suspect_until: AtomicU64::new(0) }).collect();
        Ok(Quorum { handles, servers: Arc::new(Servers { runtime, all }) })
    }

    /// A quorum of the servers that a program of another language names. `open` is told the field of each, and says what it is
    /// known by.
    ///
    /// # Errors
    /// `invalid_argument` naming what is wrong: the server that is there twice, among others.
    pub fn opened<T, Address: PartialEq, E: From<Error>>(
        servers: impl IntoIterator<Item = T>,
        open: impl Fn(T, &str) -> Result<(Address, Leasehold<S, R>), E>,
    ) -> Result<Self, E> {
        let (mut handles, mut addresses) = (Vec::new(), Vec::new());
        for (at, server) in servers.into_iter().enumerate() {
            let field = format!("servers[{at}]");
            let (address, handle) = open(server, &field)?;
            if addresses.contains(&address) {
                return Err(Error::invalid(field, "is there twice; each server has one vote").into());
            }
            addresses.push(address);
            handles.push(handle);
        }
        Ok(Quorum::new(handles)?)
    }

    /// A lock of one name, or of several that are held together: to be opened, acquired or run under, perhaps after more
    /// words, of which `priority` and what steals have no meaning here.
    pub fn lock(&self, names: impl LockNames) -> LockBuilder<'_, S, R> {
        LockBuilder::new(self, names, self.lock_defaults())
    }

    /// The same of options. Asks nothing of the servers yet.
    ///
    /// # Errors
    /// `invalid_argument` naming what is wrong: as [`Leasehold::lock_with`], and `priority`, which has no meaning here.
    pub fn lock_with(&self, names: impl LockNames, options: LockOptions) -> Result<Lock<S, R>> {
        self.lock_of(&names.to_value(), options)
    }

    /// The same of what a language gives: one name or a list of them, and options over the defaults.
    ///
    /// # Errors
    /// As [`Self::lock_with`].
    #[doc(hidden)]
    pub fn lock_by(&self, names: &Value, options: &Value, unit: Unit) -> Result<Lock<S, R>> {
        self.lock_of(names, self.lock_defaults().read(options, unit)?)
    }

    /// The defaults of its locks, as its handles have them.
    pub fn lock_defaults(&self) -> LockOptions {
        self.handles.first().map(Leasehold::lock_defaults).unwrap_or_default()
    }

    /// Looks whether each server is fit, as [`Leasehold::doctor`] does, all at once: the findings of the first server, then those of
    /// the second, and so on, each with its [`Finding::server`]. Of one that does not answer there is one finding, an error.
    ///
    /// # Errors
    /// `cancelled` if the quorum was closed.
    #[cfg(feature = "doctor")]
    pub async fn doctor(&self) -> Result<Vec<Finding>> {
        if self.servers.is_closed() {
            return Err(closed());
        }
        let found = join_all(self.handles.iter().map(Leasehold::doctor)).await;
        let found = found.into_iter().enumerate().flat_map(|(server, found)| {
            let failed = |error: Error| vec![Finding::new(Check::Store, Verdict::Error, error.message())];
            let of_server = move |finding| Finding { server: Some(server), ..finding };
            found.unwrap_or_else(failed).into_iter().map(of_server)
        });
        Ok(found.collect())
    }

    /// Ends acquisitions that wait with `cancelled`, after their pause. Locks that are held stay held until they are
    /// given back.
    pub fn close(&self) {
        self.handles.iter().for_each(Leasehold::close);
    }
}

impl<S: Store, R: Runtime> LockOwner<S, R> for Quorum<S, R> {
    fn lock_of(&self, names: &Value, options: LockOptions) -> Result<Lock<S, R>> {
        let names = lock_names(names)?;
        if self.servers.is_closed() {
            return Err(closed());
        }
        match &*self.servers.all {
            [one] => Lock::new(one.core.clone(), None, names, options),
            [first, ..] => {
                Lock::new(first.core.clone(), Some(Arc::new(self.servers.clone())), names, options)
            }
            [] => Err(closed()),
        }
    }
}

impl<S: Store, R: Runtime> Electorate<S, R> for Voters<S, R> {
    fn check(&self, options: &LockOptions) -> Result<()> {
        if options.steal.is_some() {
            return Err(Error::invalid(
                "steal",
                "has no meaning for a quorum: none of its servers knows who waits",
            ));
        }
        if options.priority != 0 {
            return Err(Error::invalid("priority", NO_LINE));
        }
        self.all.iter().try_for_each(|server| check_on(&server.core, options))
    }

    fn break_leases<'a>(&'a self, names: &'a [SlotId]) -> BoxedFuture<'a, Result<()>> {
        Box::pin(async {
            let broken = join_all(self.all.iter().map(|server| break_at(&server.core, names))).await;
            // Without these nobody has a majority.
            let enough = broken.iter().filter(|end| end.is_ok()).count() >= self.needed();
            if enough { Ok(()) } else { broken.into_iter().collect() }
        })
    }

    fn claim(&self, names: Arc<[SlotId]>, options: LockOptions) -> BoxedFuture<'_, Result<Box<dyn Several>>> {
        Box::pin(async {
            let shared = self.pursue(names, options).await?;
            Ok(Box::new(shared) as Box<dyn Several>)
        })
    }
}

impl<S: Store, R: Runtime> Servers<S, R> {
    /// The smallest majority.
    fn needed(&self) -> usize {
        self.all.len() / 2 + 1
    }

    fn is_closed(&self) -> bool {
        self.all.iter().any(|server| server.core.room.is_closed())
    }

    /// Asks all servers until a majority grants, or the timeout has passed.
    async fn pursue(self: &Arc<Self>, names: Arc<[SlotId]>, options: LockOptions) -> Result<Hold<S, R>> {
        let runtime = &self.runtime;
        let deadline = runtime.now() + options.timeout;
        let (mut least, longest) = PAUSES;
        let mut before = None;
        loop {
            if self.is_closed() {
                return Err(closed());
            }
            let asked = runtime.now();
            let mut refused = match self.ask(&names, &options, deadline).await {
                Ok(hold) => return Ok(hold),
                // Its runtime ended: there is no pause any more, and no answer.
                Err(error) if error.code() == Code::Cancelled => return Err(error),
                Err(error) => error,
            };
            // A round that had less time than an answer may take: what was said before still holds.
            let hasty = asked + self.patience(&options) > deadline;
            if let Some(before) = before.take_if(|_| hasty && refused.code() == Code::StoreUnavailable) {
                refused = before;
            }
            // Longer than a round takes, or those who were in each other's way would meet again.
            let now = runtime.now();
            let pause = runtime.jitter(least.max(2 * now.saturating_sub(asked)));
            least = (2 * least).min(longest);
            runtime.sleep(pause.min(deadline.saturating_sub(now))).await;
            if runtime.now() >= deadline {
                return Err(refused);
            }
            before = Some(refused);
        }
    }

    /// How long a server may take to answer.
    fn patience(&self, options: &LockOptions) -> Micros {
        let response = self.all.iter().map(|server| server.core.response_timeout).min().unwrap_or_default();
        response.min(lasting(options.ttl, options.max_hold) / ANSWER)
    }

    /// One round. What it had and was not enough is given back as it ends.
    async fn ask(
        self: &Arc<Self>,
        names: &Arc<[SlotId]>,
        options: &LockOptions,
        deadline: Micros,
    ) -> Result<Hold<S, R>> {
        let runtime = &self.runtime;
        let asked = runtime.now();
        let patience = self.patience(options);
        // Who wants no waiting means that for others, and not for the answers.
        let waits =
            if options.timeout == 0 { patience } else { deadline.saturating_sub(asked).min(patience) };
        let question = |server: &Server<S, R>| vote(server.core.clone(), names.clone(), options.clone());
        let mut ballot = Ballot::new(self.all.iter().map(question));
        ballot.count(runtime, asked + waits, |votes| self.is_decided(votes, asked)).await;
        if granted(&ballot.votes) < self.needed() {
            self.note(&ballot.votes, asked + patience);
            return Err(self.refusal(ballot.votes, options, patience));
        }
        // Most of the others answer soon, and need no task to wait for them.
        let now = runtime.now();
        let limit = (asked + waits).min(now + now.saturating_sub(asked));
        ballot.count(runtime, limit, |_| false).await;
        let hold = Hold::new(runtime.clone(), ballot.take_granted(), self.needed());
        if hold.remaining() < lasting(options.ttl, options.max_hold) / LEFT {
            return Err(Error::new(
                if options.timeout == 0 { Code::Exhausted } else { Code::TimedOut },
                "a majority of the servers granted the lock, but too late to leave a quarter of its ttl; \
                 give a longer ttl, or see why the servers are slow",
            ));
        }
        if ballot.is_open() {
            runtime.spawn(self.clone().hear_the_rest(ballot, asked + patience, hold.joining()));
        } else {
            self.note(&ballot.votes, asked + patience);
        }
        Ok(hold)
    }

    /// Lets the servers that answer late hold the lock too: the more do, the more of them may fail.
    async fn hear_the_rest<F: Future<Output = Vote<Lease<S, R>>>>(
        self: Arc<Self>,
        mut ballot: Ballot<F, Lease<S, R>>,
        limit: Micros,
        joining: Joining<S, R>,
    ) {
        while ballot.is_open() && self.runtime.now() < limit {
            let heard = ballot.votes.iter().flatten().count();
            let more = |votes: &[Option<_>]| votes.iter().flatten().count() > heard;
            ballot.count(&self.runtime, limit, more).await;
            ballot.take_granted().into_iter().for_each(|leases| joining.join(leases));
        }
        self.note(&ballot.votes, limit);
    }

    /// Whether the votes that are missing can be done without.
    fn is_decided(&self, votes: &[Option<Vote<Lease<S, R>>>], now: Micros) -> bool {
        let (needed, granted) = (self.needed(), granted(votes));
        let answered = votes.iter().flatten().filter(|vote| is_answer(vote)).count();
        let missing = votes.iter().filter(|vote| vote.is_none()).count();
        let none_is_awaited = || {
            let awaited = |(vote, server): (&Option<_>, &Server<S, R>)| {
                vote.is_none() && server.suspect_until.load(Relaxed) <= now
            };
            !votes.iter().zip(&self.all).any(awaited)
        };
        let (is_had, cannot_be_had) = (granted >= needed, granted + missing < needed);
        // Of a majority of answers it is known, too, that the servers are not at fault: who is suspected is waited for until then.
        let is_known = answered >= needed;
        is_had || is_known && (cannot_be_had || none_is_awaited())
    }

    /// Notes who answered, and suspects those who did not, if they had until this time, and it has passed.
    fn note(&self, votes: &[Option<Vote<Lease<S, R>>>], limit: Micros) {
        let now = self.runtime.now();
        for (vote, server) in votes.iter().zip(&self.all) {
            if vote.as_ref().is_some_and(is_answer) {
                server.suspect_until.store(0, Relaxed);
            } else if now >= limit && !vote.as_ref().is_some_and(is_busy) {
                server.suspect_until.store(now + SUSPICION, Relaxed);
            }
        }
    }

    /// Why there is no majority: too few answers, or too many refusals.
    fn refusal(
        &self,
        votes: Vec<Option<Vote<Lease<S, R>>>>,
        options: &LockOptions,
        patience: Micros,
    ) -> Error {
        let (servers, needed, granted) = (self.all.len(), self.needed(), granted(&votes));
        let answered = votes.iter().flatten().filter(|vote| is_answer(vote)).count();
        let (mut refusals, mut troubles, mut busy) = (Vec::new(), Vec::new(), None);
        for (at, (vote, server)) in votes.into_iter().zip(&self.all).enumerate() {
            match vote {
                Some(Ok(_)) => {}
                Some(Err(error)) if is_refusal(&error) => refusals.push(error),
                Some(Err(error)) if error.code() == Code::Cancelled => return error,
                // It is this process that does not get to ask it.
                Some(Err(error)) if error.code() == Code::Busy => busy = Some(error),
                other => {
                    let said = other.and_then(Result::err).map(|error| error.message().to_owned());
                    let silence = || format!("no answer within {} ms", patience / MILLISECOND);
                    let cause = server.core.courier.trouble().or(said).unwrap_or_else(silence);
                    troubles.push(format!("servers[{at}]: {cause}"));
                }
            }
        }
        if answered < needed {
            if let Some(busy) = busy.filter(|_| troubles.is_empty()) {
                return busy;
            }
            let why = troubles.first().map_or("", String::as_str);
            return unavailable(&format!(
                "{answered} of {servers} servers answered, and {needed} must; {why}"
            ));
        }
        let why = refusals.first().map_or("", Error::message);
        let code = if options.timeout == 0 { Code::Exhausted } else { Code::TimedOut };
        let refused = refusals.len();
        Error::new(
            code,
            format!(
                "{granted} of {servers} servers granted the lock and {refused} refused, and {needed} must grant it; {why}"
            ),
        )
    }
}

/// Asks one server once. Nobody waits in its line: see [`Quorum`].
async fn vote<S: Store, R: Runtime>(
    core: Arc<PoolCore<S, R>>,
    names: Arc<[SlotId]>,
    options: LockOptions,
) -> Vote<Lease<S, R>> {
    let now = core.runtime.now();
    let want = |timeout| core.want(wanted(&names, LockOptions { timeout, ..options.clone() }), now);
    match core.attempt(&want(0)?, None).await? {
        Ok(leases) => Ok(leases),
        Err(refused) => Err(core.late(&refused, &want(options.timeout)?)),
    }
}

fn is_answer<L>(vote: &Vote<L>) -> bool {
    vote.as_ref().map_or_else(is_refusal, |_| true)
}

fn is_busy<L>(vote: &Vote<L>) -> bool {
    vote.as_ref().is_err_and(|error| error.code() == Code::Busy)
}

fn is_refusal(error: &Error) -> bool {
    matches!(error.code(), Code::Exhausted | Code::TimedOut)
}

impl<S: Store, R: Runtime> Clone for Quorum<S, R> {
    fn clone(&self) -> Self {
        Quorum { handles: self.handles.clone(), servers: self.servers.clone() }
    }
}

impl<S: Store, R: Runtime> fmt::Debug for Quorum<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quorum {{ servers: {} }}", self.servers.all.len())
    }
}
