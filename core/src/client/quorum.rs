//! Locks that outlive the loss of servers: a majority of servers that know nothing of each other must grant them.

use std::fmt;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::Poll;

use futures_util::future::select_all;

use super::courier::unavailable;
use super::lock::{self, Electorate, check_on, is_lost, wanted};
use super::options::lock_names;
use super::pool::PoolCore;
use super::waiting::closed;
use super::{BoxedFuture, Lease, Leasehold, Lock, LockOptions, Runtime, Unit, runtime};
use crate::error::{Code, Error, Result};
use crate::id::SlotId;
use crate::store::Store;
use crate::value::Value;
use crate::{MILLISECOND, Micros, SECOND};

#[cfg(test)]
#[cfg(feature = "redis")]
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

/// Independent servers, a majority of which must grant each lock (Redlock, as Redis specifies it, and what it leaves
/// open): half of their number, rounded down, and one more. So of three one may fail, of five two, of four one.
///
/// Its locks are [`Lock`]s: several names at once, `keepalive`, `lost`, `run` and `reentrant` mean what they always do. A
/// lock is lost when fewer than a majority still hold it; it can be relied on for as long as the best majority can, each
/// deadline counted from before the server was asked, less 1 % and 2 ms. What a server grants too late, or to somebody
/// who has no majority, is given back, and a release goes to all.
///
/// # What it costs
///
/// All servers are asked at once. Nobody stands in line: whoever waited at one server's line for another's would wait
/// for ever, or hold up those who need no second server. Instead a claim that has no majority gives back what it has and
/// is made anew after a random pause of 5 to 160 ms. So there is no order among those who wait, `priority` is refused,
/// and under contention somebody may be served late. A server whose answer takes longer than `response_timeout`, or a
/// fifth of the lock's `ttl`, has not voted.
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
/// - whoever was *lost* before, who alone can be late, acquired one `ttl` earlier or more (less 1 %): while the clocks
///   agree to within that, a resource that checks fences refuses every late holder;
/// - whoever *gave it back* may have acquired a moment before. Where clocks differ by more, the next holder can have the
///   lower fence, and the resource refuses the one who holds the lock. It is told so, and can acquire again: that helps
///   as soon as the difference has passed.
///
/// A single server's fences depend on no clock. What must never be wrong is better locked there.
pub struct Quorum<S: Store, R: Runtime> {
    handles: Vec<Leasehold<S, R>>,
    servers: Arc<Servers<S, R>>,
}

/// Those who vote, and how many names each of them grants.
struct Electors<S: Store, R: Runtime> {
    servers: Arc<Servers<S, R>>,
    names: usize,
}

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

/// What a server answered: leases of all names, why it refuses, or why it could not be asked.
type Vote<L> = Result<Vec<L>>;

/// A round of questions. What is granted after it was dropped is given back.
struct Ballot<F, L> {
    questions: Vec<Pin<Box<F>>>,
    votes: Vec<Option<Vote<L>>>,
}

impl<S: Store, R: Runtime> Quorum<S, R> {
    /// A quorum of 1 to [`MAX_SERVERS`] handles, one a server. One server's locks are plain ones, with their lines.
    ///
    /// # Errors
    /// `invalid_argument` naming `servers` if there are too few or too many, or the one whose namespace or `lock_ttl` is
    /// not that of the first; `cancelled` if one was closed. That two are the same server is not seen here.
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
        let runtime = first.runtime.clone();
        let all = cores.into_iter().map(|core| Server { core, suspect_until: AtomicU64::new(0) }).collect();
        Ok(Quorum { handles, servers: Arc::new(Servers { runtime, all }) })
    }

    /// A lock of one name, or of several that are held together. Asks nothing of the servers yet.
    ///
    /// # Errors
    /// `invalid_argument` naming what is wrong: as [`Leasehold::lock`], and `priority`, which has no meaning here.
    pub fn lock(&self, names: &[&str], options: LockOptions) -> Result<Lock<S, R>> {
        let names = Value::List(names.iter().map(|&name| name.into()).collect());
        self.voted(lock_names(&names)?, options)
    }

    /// The same of what a language gives: one name or a list of them, and options over the defaults.
    ///
    /// # Errors
    /// As [`Self::lock`].
    pub fn lock_by(&self, names: &Value, options: &Value, unit: Unit) -> Result<Lock<S, R>> {
        self.voted(lock_names(names)?, self.lock_defaults().read(options, unit)?)
    }

    /// The defaults of its locks, as its handles have them.
    pub fn lock_defaults(&self) -> LockOptions {
        self.handles.first().map(Leasehold::lock_defaults).unwrap_or_default()
    }

    /// Ends acquisitions that wait with `cancelled`, after their pause. Locks that are held stay held until they are
    /// given back.
    pub fn close(&self) {
        self.handles.iter().for_each(Leasehold::close);
    }

    fn voted(&self, names: Vec<SlotId>, options: LockOptions) -> Result<Lock<S, R>> {
        match &*self.servers.all {
            [one] => Lock::new(one.core.clone(), None, names, options),
            [first, ..] => {
                let electors = Electors { servers: self.servers.clone(), names: names.len() };
                Lock::new(first.core.clone(), Some(Arc::new(electors)), names, options)
            }
            [] => Err(closed()),
        }
    }
}

impl<S: Store, R: Runtime> Electorate<S, R> for Electors<S, R> {
    fn check(&self, options: &LockOptions) -> Result<()> {
        if options.priority != 0 {
            return Err(Error::invalid(
                "priority",
                "has no meaning for locks of a quorum: those who wait for several servers stand in no line",
            ));
        }
        self.servers.all.iter().try_for_each(|server| check_on(&server.core, options))
    }

    fn claim(&self, names: Arc<[SlotId]>, options: LockOptions) -> BoxedFuture<'_, Result<Vec<Lease<S, R>>>> {
        Box::pin(self.pursue(names, options))
    }

    /// As long as the best last of which there are enough.
    fn remaining(&self, leases: &[Lease<S, R>]) -> Micros {
        let times: Vec<_> = leases.chunks(self.names).map(lock::remaining).collect();
        let enough =
            |time: &Micros| times.iter().filter(|other| *other >= time).count() >= self.servers.needed();
        times.iter().copied().filter(enough).max().unwrap_or_default()
    }

    /// Ends with the loss that leaves too few.
    fn lost(&self, leases: &[Lease<S, R>]) -> BoxedFuture<'static, Option<Error>> {
        let mut servers: Vec<_> =
            leases.chunks(self.names).map(|group| Box::pin(lock::lost(group))).collect();
        let needed = self.servers.needed();
        Box::pin(async move {
            while !servers.is_empty() {
                let (ending, _, others) = select_all(servers).await;
                if ending.is_none() || others.len() < needed {
                    return ending;
                }
                servers = others;
            }
            None
        })
    }

    /// Tells all, and waits for so many as are needed; the others are told in the background.
    fn release<'a>(&'a self, leases: &'a [Lease<S, R>]) -> BoxedFuture<'a, Result<()>> {
        let servers = leases.chunks(self.names).map(lock::release);
        Box::pin(settle(servers.map(Box::pin).collect(), self.servers.needed()))
    }
}

impl<S: Store, R: Runtime> Electors<S, R> {
    /// Asks all servers until a majority grants, or the timeout has passed.
    async fn pursue(&self, names: Arc<[SlotId]>, options: LockOptions) -> Result<Vec<Lease<S, R>>> {
        let runtime = &self.servers.runtime;
        let deadline = runtime.now() + options.timeout;
        let (mut least, longest) = PAUSES;
        loop {
            if self.servers.all.iter().any(|server| server.core.room.is_closed()) {
                return Err(closed());
            }
            let asked = runtime.now();
            let refused = match self.ask(&names, &options, deadline).await {
                Ok(leases) => return Ok(leases),
                Err(error) => error,
            };
            // Longer than a round takes, or those who were in each other's way would meet again.
            let now = runtime.now();
            let pause = runtime.jitter(least.max(2 * now.saturating_sub(asked)));
            least = (2 * least).min(longest);
            runtime.sleep(pause.min(deadline.saturating_sub(now))).await;
            if runtime.now() >= deadline {
                return Err(refused);
            }
        }
    }

    /// One round. What it had and was not enough is given back as it ends.
    async fn ask(
        &self,
        names: &[SlotId],
        options: &LockOptions,
        deadline: Micros,
    ) -> Result<Vec<Lease<S, R>>> {
        let runtime = &self.servers.runtime;
        let asked = runtime.now();
        let response =
            self.servers.all.iter().map(|server| server.core.response_timeout).min().unwrap_or_default();
        let patience = response.min(options.ttl / ANSWER);
        // Who wants no waiting means that for others, and not for the answers.
        let limit = asked
            + if options.timeout == 0 { patience } else { patience.min(deadline.saturating_sub(asked)) };
        let question = |server: &Server<S, R>| vote(server.core.clone(), names, options);
        let mut ballot = Ballot::new(self.servers.all.iter().map(question));
        ballot.count(runtime, limit, |votes| self.servers.is_decided(votes, asked)).await;
        let now = runtime.now();
        if granted(&ballot.votes) >= self.servers.needed() {
            // Each server more that holds it may fail: the others have as long again.
            let took = now.saturating_sub(asked);
            ballot.count(runtime, limit.min(now + took), |_| false).await;
        }
        let silent = (now >= asked + patience).then_some(now + SUSPICION);
        self.servers.note(&ballot.votes, silent);
        self.outcome(ballot.votes, options, patience)
    }

    fn outcome(
        &self,
        votes: Vec<Option<Vote<Lease<S, R>>>>,
        options: &LockOptions,
        patience: Micros,
    ) -> Result<Vec<Lease<S, R>>> {
        let (servers, needed, granted) = (self.servers.all.len(), self.servers.needed(), granted(&votes));
        let (mut leases, mut answered, mut refusal, mut trouble) = (Vec::new(), granted, None, None);
        for (at, (vote, server)) in votes.into_iter().zip(&self.servers.all).enumerate() {
            match vote {
                Some(Ok(granted)) => leases.extend(granted),
                vote @ Some(Err(_)) if vote.as_ref().is_some_and(is_refusal) => {
                    answered += 1;
                    refusal = refusal.or(vote.and_then(Result::err));
                }
                vote => {
                    trouble.get_or_insert_with(|| {
                        let said = vote.and_then(Result::err).map(|error| error.message().to_owned());
                        let silence = || format!("no answer within {} ms", patience / MILLISECOND);
                        let cause = server.core.courier.trouble().or(said).unwrap_or_else(silence);
                        format!("servers[{at}]: {cause}")
                    });
                }
            }
        }
        if answered < needed {
            let trouble = trouble.unwrap_or_default();
            let message = format!("{answered} of {servers} servers answered, and {needed} must; {trouble}");
            return Err(unavailable(&message));
        }
        if granted >= needed && self.remaining(&leases) >= options.ttl / LEFT {
            return Ok(leases);
        }
        let code = if options.timeout == 0 { Code::Exhausted } else { Code::TimedOut };
        let message = match refusal.filter(|_| granted < needed) {
            Some(refusal) => {
                let why = refusal.message();
                let refused = answered - granted;
                format!(
                    "{granted} of {servers} servers granted the lock and {refused} refused, and {needed} must grant it; {why}"
                )
            }
            None => {
                "a majority of the servers granted the lock, but too late to leave a quarter of its ttl; \
                     give a longer ttl, or see why the servers are slow"
                    .to_owned()
            }
        };
        Err(Error::new(code, message))
    }
}

impl<S: Store, R: Runtime> Servers<S, R> {
    /// The smallest majority.
    fn needed(&self) -> usize {
        self.all.len() / 2 + 1
    }

    /// Whether the votes that are missing can be done without.
    fn is_decided(&self, votes: &[Option<Vote<Lease<S, R>>>], now: Micros) -> bool {
        let (needed, granted) = (self.needed(), granted(votes));
        let ended = votes.iter().flatten().count();
        let answered = votes.iter().flatten().filter(|vote| is_answer(vote)).count();
        let missing = votes.len() - ended;
        let none_is_awaited = || {
            let awaited = |(vote, server): (&Option<_>, &Server<S, R>)| {
                vote.is_none() && server.suspect_until.load(Relaxed) <= now
            };
            !votes.iter().zip(&self.all).any(awaited)
        };
        let is_had = granted >= needed;
        // Of a majority of answers it is known, too, that the servers are not at fault.
        let cannot_be_had = granted + missing < needed && answered >= needed;
        is_had || cannot_be_had || ended >= needed && none_is_awaited()
    }

    /// Notes who answered; and until when to suspect those who did not, if they had the time.
    fn note(&self, votes: &[Option<Vote<Lease<S, R>>>], suspect_until: Option<Micros>) {
        for (vote, server) in votes.iter().zip(&self.all) {
            if vote.as_ref().is_some_and(is_answer) {
                server.suspect_until.store(0, Relaxed);
            } else if let Some(until) = suspect_until {
                server.suspect_until.store(until, Relaxed);
            }
        }
    }
}

impl<F: Future<Output = Vote<L>>, L> Ballot<F, L> {
    fn new(questions: impl Iterator<Item = F>) -> Self {
        let questions: Vec<_> = questions.map(Box::pin).collect();
        let votes = questions.iter().map(|_| None).collect();
        Ballot { questions, votes }
    }

    /// Hears answers until all are there, or it is decided, or until `limit`.
    async fn count(
        &mut self,
        runtime: &impl Runtime,
        limit: Micros,
        is_decided: impl Fn(&[Option<Vote<L>>]) -> bool,
    ) {
        let counted = poll_fn(|context| {
            for (question, vote) in self.questions.iter_mut().zip(&mut self.votes) {
                if vote.is_none()
                    && let Poll::Ready(answer) = question.as_mut().poll(context)
                {
                    *vote = Some(answer);
                }
            }
            let ended = self.votes.iter().all(Option::is_some) || is_decided(&self.votes);
            if ended { Poll::Ready(()) } else { Poll::Pending }
        });
        runtime::by(runtime, limit, pin!(counted)).await;
    }
}

/// Asks one server once. Nobody waits in its line: see [`Quorum`].
async fn vote<S: Store, R: Runtime>(
    core: Arc<PoolCore<S, R>>,
    names: &[SlotId],
    options: &LockOptions,
) -> Vote<Lease<S, R>> {
    let now = core.runtime.now();
    let want = |timeout| core.want(wanted(names, LockOptions { timeout, ..options.clone() }), now);
    match core.attempt(&want(0)?, false).await? {
        Ok(leases) => Ok(leases),
        Err(refused) => Err(core.late(&refused, &want(options.timeout)?)),
    }
}

/// Waits until so many of the releases found their leases whole as are needed. That more were lost than can be spared
/// outweighs that a server could not be told.
async fn settle(mut releases: Vec<impl Future<Output = Result<()>> + Unpin>, needed: usize) -> Result<()> {
    let (mut standing, mut held, mut loss, mut trouble) = (releases.len(), 0, Ok(()), Ok(()));
    poll_fn(|context| {
        releases.retain_mut(|release| {
            let Poll::Ready(end) = Pin::new(release).poll(context) else { return true };
            match end {
                Ok(()) => held += 1,
                lost if is_lost(&lost) => {
                    standing -= 1;
                    loss = lost;
                }
                other => trouble = other,
            }
            false
        });
        let ended = releases.is_empty() || held >= needed || standing < needed;
        if ended { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    if held >= needed {
        return Ok(());
    }
    if standing < needed { loss } else { trouble }
}

fn granted<L>(votes: &[Option<Vote<L>>]) -> usize {
    votes.iter().flatten().filter(|vote| vote.is_ok()).count()
}

fn is_answer<L>(vote: &Vote<L>) -> bool {
    vote.is_ok() || is_refusal(vote)
}

fn is_refusal<L>(vote: &Vote<L>) -> bool {
    vote.as_ref().is_err_and(|error| matches!(error.code(), Code::Exhausted | Code::TimedOut))
}

impl<S: Store, R: Runtime> fmt::Debug for Quorum<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Quorum {{ servers: {} }}", self.servers.all.len())
    }
}
