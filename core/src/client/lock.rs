//! Named locks: leases of names that nobody has to define.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use super::holding::{Electorate, Several, claimed, fence, loss_only, lost, release, remaining};
use super::options::{check_factor, check_rest};
use super::pool::PoolCore;
use super::{AcquireOptions, BoxedFuture, Lease, LockOptions, PoolOptions, Runtime, Unit, runtime};
use crate::error::{Error, Result};
use crate::id::SlotId;
use crate::poison::unpoisoned;
use crate::store::Store;
use crate::value::Value;
use crate::{MILLISECOND, Micros};

/// One name, or several that are held together or not at all. Nothing of them stays behind in the store. Clones are the same
/// lock.
pub struct Lock<S: Store, R: Runtime>(Arc<LockCore<S, R>>);

/// What the clones of a lock share.
struct LockCore<S: Store, R: Runtime> {
    pool: Arc<PoolCore<S, R>>,
    /// Those who must grant it, if that is not the one server.
    electorate: Option<Arc<dyn Electorate<S, R>>>,
    names: Arc<[SlotId]>,
    options: LockOptions,
    /// What was had last, for as long as anybody has it, if it may be joined.
    last: Mutex<Weak<Holding<S, R>>>,
}

/// A lock that is held. Dropped, it is given back.
pub struct Locked<S: Store, R: Runtime> {
    runtime: R,
    names: Arc<[SlotId]>,
    fence: u64,
    /// Nothing once it was given back.
    holding: Mutex<Option<Arc<Holding<S, R>>>>,
}

/// What is held. Those who share it are counted by its pointers.
enum Holding<S: Store, R: Runtime> {
    /// The leases of the names.
    One(Vec<Lease<S, R>>),
    Several(Box<dyn Several>),
}

/// Why [`Lock::run`] gives no plain value.
#[derive(Debug)]
pub enum RunError<T> {
    /// The lock was not had, and the body did not run.
    NotAcquired(Error),
    /// The body ran to its end, and the lock did not last so long: others may have run beside it.
    Lost {
        /// The error `lost`.
        error: Error,
        /// What the body gave.
        output: T,
    },
}

/// What the pool of a handle's locks is: every name is made by whoever asks for it, and none is held for longer
/// than `ttl` without a renewal.
pub(super) fn lock_pool(ttl: Micros) -> PoolOptions {
    let LockOptions { keepalive, timeout, .. } = LockOptions::default();
    PoolOptions { ttl, keepalive, timeout, max_hold: 0, ..PoolOptions::default() }
}

impl<S: Store, R: Runtime> Lock<S, R> {
    pub(super) fn new(
        pool: Arc<PoolCore<S, R>>,
        electorate: Option<Arc<dyn Electorate<S, R>>>,
        names: Vec<SlotId>,
        options: LockOptions,
    ) -> Result<Self> {
        let names = names.into();
        let lock = Lock(Arc::new(LockCore { pool, electorate, names, options, last: Mutex::default() }));
        lock.check(&lock.0.options)?;
        Ok(lock)
    }

    /// Locks all of its names, waiting until the timeout.
    ///
    /// # Errors
    /// `timed_out`, or `exhausted` with a timeout of 0; `store_unavailable` with the cause; `cancelled` if the handle
    /// was closed.
    pub async fn acquire(&self) -> Result<Locked<S, R>> {
        self.acquire_with(self.0.options.clone()).await
    }

    /// The same by other options than the lock's own.
    ///
    /// # Errors
    /// As [`Self::acquire`]; `invalid_argument` naming the option.
    pub async fn acquire_with(&self, options: LockOptions) -> Result<Locked<S, R>> {
        self.check(&options)?;
        let reentrant = options.reentrant;
        if reentrant && let Some(holding) = self.last().upgrade().filter(|holding| holding.remaining() > 0) {
            return Ok(self.locked(holding));
        }
        let holding = Arc::new(match &self.0.electorate {
            None => Holding::One(self.0.pool.acquire_counted(wanted(&self.0.names, options)).await?),
            Some(electorate) => Holding::Several(electorate.claim(self.0.names.clone(), options).await?),
        });
        if reentrant {
            *self.last() = Arc::downgrade(&holding);
        }
        Ok(self.locked(holding))
    }

    /// The same by options as a language gives them, over the lock's own.
    ///
    /// # Errors
    /// As [`Self::acquire_with`].
    #[doc(hidden)]
    pub async fn acquire_by(&self, options: &Value, unit: Unit) -> Result<Locked<S, R>> {
        self.acquire_with(self.0.options.clone().read(options, unit)?).await
    }

    /// The same for a body that the language itself runs: nothing if it is to run without the lock, because `if` is
    /// false or `unless` is true. At its end the lock is to be given back by [`Locked::conclude`].
    ///
    /// # Errors
    /// As [`Self::acquire_with`].
    #[doc(hidden)]
    pub async fn enter(&self, options: &Value, unit: Unit) -> Result<Option<Locked<S, R>>> {
        let (options, wanted) = self.0.options.clone().read_run(options, unit)?;
        self.check(&options)?;
        if wanted { self.acquire_with(options).await.map(Some) } else { Ok(None) }
    }

    /// Runs `body` under the lock and gives what it gives. The body sees the lock, to ask whether it is still held.
    ///
    /// # Errors
    /// [`RunError`]: the lock was not had, or did not last.
    pub async fn run<T>(&self, body: impl AsyncFnOnce(&Locked<S, R>) -> T) -> Result<T, RunError<T>> {
        let locked = self.acquire().await.map_err(RunError::NotAcquired)?;
        let output = body(&locked).await;
        match locked.conclude().await {
            Ok(()) => Ok(output),
            Err(error) => Err(RunError::Lost { error, output }),
        }
    }

    /// The longest time that holders of the handle's locks took to yield of late to those who steal; 0 if nobody stole.
    /// What [`crate::handshake`] asks for.
    pub fn handshake(&self) -> Micros {
        self.0.pool.yields.longest()
    }

    fn check(&self, options: &LockOptions) -> Result<()> {
        match &self.0.electorate {
            None => check_on(&self.0.pool, options),
            Some(electorate) => electorate.check(options),
        }
    }

    fn locked(&self, holding: Arc<Holding<S, R>>) -> Locked<S, R> {
        let fence = match &*holding {
            Holding::One(leases) => fence(leases),
            Holding::Several(several) => several.fence(),
        };
        let runtime = self.0.pool.runtime.clone();
        Locked { runtime, names: self.0.names.clone(), fence, holding: Mutex::new(Some(holding)) }
    }

    fn last(&self) -> MutexGuard<'_, Weak<Holding<S, R>>> {
        unpoisoned(&self.0.last)
    }
}

impl<S: Store, R: Runtime> Locked<S, R> {
    /// Its names, as the caller spelled them.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(SlotId::as_str)
    }

    /// Larger than that of any lock before: what a resource checks to refuse a late holder. Of a quorum's lock less is
    /// true: see [`Quorum`](super::Quorum).
    pub fn fence(&self) -> u64 {
        self.fence
    }

    /// How long the lock can still be relied on; nothing when it cannot.
    pub fn remaining(&self) -> Duration {
        Duration::from_micros(self.remaining_micros())
    }

    /// The same in microseconds.
    pub fn remaining_micros(&self) -> Micros {
        self.holding().as_ref().map_or(0, |holding| holding.remaining())
    }

    /// Whether the lock can still be relied on.
    pub fn is_held(&self) -> bool {
        self.remaining_micros() > 0
    }

    /// Ends when one of its names can no longer be relied on, with the reason; with nothing if it was given back in
    /// time. See [`Lease::lost`].
    pub fn lost(&self) -> impl Future<Output = Option<Error>> + use<S, R> {
        let lost = self.holding().as_ref().map(|holding| holding.lost());
        async move { lost?.await }
    }

    /// As [`Self::lost`], but ends with nothing after this time, for languages where a caller cannot stop waiting.
    #[doc(hidden)]
    pub fn lost_within(&self, time: Option<Micros>) -> impl Future<Output = Option<Error>> + use<S, R> {
        runtime::within(self.runtime.clone(), time, self.lost())
    }

    /// Whether somebody of higher priority waits for one of its names: it is not renewed then.
    pub fn is_claimed(&self) -> bool {
        match self.holding().as_deref() {
            Some(Holding::One(leases)) => leases.iter().any(Lease::is_claimed),
            _ => false,
        }
    }

    /// Ends when somebody of higher priority claims one of its names, with the error `claimed`. See [`Lease::claimed`].
    pub fn claimed(&self) -> impl Future<Output = Option<Error>> + use<S, R> {
        let claimed = self.holding().as_ref().map(|holding| holding.claimed());
        async move { claimed?.await }
    }

    /// As [`Self::claimed`], but ends with nothing after this time, for languages where a caller cannot stop waiting.
    #[doc(hidden)]
    pub fn claimed_within(&self, time: Option<Micros>) -> impl Future<Output = Option<Error>> + use<S, R> {
        runtime::within(self.runtime.clone(), time, self.claimed())
    }

    /// Gives it back; the last of those who share it frees its names. A second call does nothing, and what a holder
    /// does not release is given back when it is dropped.
    ///
    /// # Errors
    /// `lost` if it had ended before, at once where that is known here; `store_unavailable` if the store did not answer
    /// in time, which goes on trying.
    pub async fn release(&self) -> Result<()> {
        let Some(holding) = self.holding().take() else { return Ok(()) };
        // What is left of it is given back in the background.
        if holding.remaining() == 0
            && let Some(error) = holding.lost().await
        {
            return Err(error);
        }
        match Arc::into_inner(holding) {
            Some(holding) => holding.release().await,
            None => Ok(()),
        }
    }

    /// Gives it back at the end of a body that ran under it, and says whether it lasted as long.
    ///
    /// # Errors
    /// `lost` if it did not, and no other: it was held to the end, whether or not the store could be told of that.
    pub async fn conclude(&self) -> Result<()> {
        loss_only(self.release().await)
    }

    /// However it ends from now on, and whoever shares it: it runs to its deadline; see [`Lease::lapse`].
    #[doc(hidden)]
    pub fn lapse(&self) {
        match self.holding().as_deref() {
            Some(Holding::One(leases)) => leases.iter().for_each(Lease::lapse),
            Some(Holding::Several(several)) => several.lapse(),
            None => {}
        }
    }

    fn holding(&self) -> MutexGuard<'_, Option<Arc<Holding<S, R>>>> {
        unpoisoned(&self.holding)
    }
}

impl<S: Store, R: Runtime> Holding<S, R> {
    fn remaining(&self) -> Micros {
        match self {
            Holding::One(leases) => remaining(leases),
            Holding::Several(several) => several.remaining(),
        }
    }

    fn lost(&self) -> BoxedFuture<'static, Option<Error>> {
        match self {
            Holding::One(leases) => Box::pin(lost(leases)),
            Holding::Several(several) => several.lost(),
        }
    }

    /// Of several servers nobody steals.
    fn claimed(&self) -> BoxedFuture<'static, Option<Error>> {
        match self {
            Holding::One(leases) => Box::pin(claimed(leases)),
            Holding::Several(several) => {
                let lost = several.lost();
                Box::pin(async move {
                    lost.await;
                    None
                })
            }
        }
    }

    async fn release(self) -> Result<()> {
        match self {
            Holding::One(leases) => release(&leases, None).await,
            Holding::Several(several) => several.release().await,
        }
    }
}

/// What an acquisition of a lock wants of its pool.
pub(super) fn wanted(names: &[SlotId], options: LockOptions) -> AcquireOptions {
    let LockOptions { ttl, keepalive, timeout, priority, steal, reentrant: _ } = options;
    AcquireOptions {
        timeout: Some(timeout),
        ttl: Some(ttl),
        keepalive: Some(keepalive),
        count: Some(names.len() as u32),
        slots: Some(names.to_vec()),
        strategy: None,
        priority: Some(priority),
        steal,
    }
}

/// Whether one server can grant locks by these options.
pub(super) fn check_on<S: Store, R: Runtime>(core: &PoolCore<S, R>, options: &LockOptions) -> Result<()> {
    if !(MILLISECOND..=core.options.ttl).contains(&options.ttl) {
        return Err(Error::invalid(
            "ttl",
            "is out of range; 1 ms to the handle's lock_ttl, and keepalive for longer locks",
        ));
    }
    check_rest("timeout", options.timeout)?;
    if cfg!(not(target_family = "wasm")) {
        check_factor(options.steal)?;
    }
    core.interval(Some(options.keepalive), options.ttl).map(drop)
}

impl<T> RunError<T> {
    /// What went wrong with the lock.
    pub fn error(&self) -> &Error {
        match self {
            RunError::NotAcquired(error) | RunError::Lost { error, .. } => error,
        }
    }
}

/// Without what the body gave.
impl<T> From<RunError<T>> for Error {
    fn from(failure: RunError<T>) -> Self {
        match failure {
            RunError::NotAcquired(error) | RunError::Lost { error, .. } => error,
        }
    }
}

impl<T> fmt::Display for RunError<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error().fmt(f)
    }
}

impl<T: fmt::Debug> std::error::Error for RunError<T> {}

impl<S: Store, R: Runtime> Clone for Lock<S, R> {
    fn clone(&self) -> Self {
        Lock(self.0.clone())
    }
}

impl<S: Store, R: Runtime> fmt::Debug for Lock<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lock {{ names: {:?} }}", self.0.names)
    }
}

impl<S: Store, R: Runtime> fmt::Debug for Locked<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Locked {{ names: {:?}, fence: {} }}", self.names, self.fence)
    }
}

#[cfg(all(test, feature = "redis"))]
mod tests {
    use super::*;
    use crate::Code;
    use crate::client::Keepalive;
    use crate::client::native::{NativeLeasehold, connect};

    fn opened(store: &str) -> Result<NativeLeasehold> {
        connect(format!("memory:{store}")).namespace("test").open()
    }

    fn at_once() -> LockOptions {
        LockOptions { timeout: 0, ..LockOptions::default() }
    }

    fn shared() -> LockOptions {
        LockOptions { reentrant: true, ..at_once() }
    }

    /// A lock that ends soon, and has ended.
    async fn ended(lock: &Lock<impl Store, impl Runtime>) {
        while lock.last().upgrade().is_some_and(|holding| holding.remaining() > 0) {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn waiters_for_one_name_are_not_in_the_way_of_those_for_another() {
        let (handle, other) = (Arc::new(opened("names").unwrap()), opened("names").unwrap());
        let _red = other.lock_with(["red"], at_once()).unwrap().acquire().await.unwrap();
        let blue = other.lock_with(["blue"], at_once()).unwrap().acquire().await.unwrap();
        let wait = |name: &'static str| {
            let handle = handle.clone();
            let options = LockOptions { timeout: 30 * crate::SECOND, ..LockOptions::default() };
            tokio::spawn(async move { handle.lock_with([name], options)?.acquire().await.map(drop) })
        };
        let behind: Vec<_> = (0..50).map(|_| wait("red")).collect();
        tokio::task::yield_now().await;
        // One that is free is had at once, and one that another process gives back at once then.
        wait("green").await.unwrap().unwrap();
        let waits = wait("blue");
        tokio::task::yield_now().await;
        blue.release().await.unwrap();
        tokio::time::timeout(std::time::Duration::from_secs(3), waits)
            .await
            .expect("served")
            .unwrap()
            .unwrap();
        behind.iter().for_each(tokio::task::JoinHandle::abort);
    }

    #[tokio::test]
    async fn a_factor_that_is_none_is_refused_whoever_gives_it() {
        let handle = opened("factor").unwrap();
        let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
        for factor in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
            let options = LockOptions { steal: Some(factor), ..at_once() };
            let of_lock = handle.lock_with(["a"], options.clone()).unwrap_err();
            let lock = handle.lock_with(["a"], at_once()).unwrap();
            let late = lock.acquire_with(options).await.unwrap_err();
            let steal = AcquireOptions { steal: Some(factor), ..AcquireOptions::default() };
            for error in [of_lock, late, pool.acquire_with(steal).await.unwrap_err()] {
                assert_eq!(error.field(), Some("stolen_consistency_factor"), "{factor}");
            }
        }
        let named = Some(vec![SlotId::new("a").unwrap()]);
        let steal = AcquireOptions { steal: Some(1.0), slots: named, ..AcquireOptions::default() };
        assert_eq!(pool.acquire_with(steal).await.unwrap_err().field(), Some("steal"));
    }

    // In priority-redlock the first of two releases freed the lock.
    #[tokio::test]
    async fn releasing_one_of_two_reentrant_holds_does_not_free_the_lock() {
        let (handle, other) = (opened("reentrant").unwrap(), opened("reentrant").unwrap());
        let lock = handle.lock_with(["a", "b"], shared()).unwrap();
        let another = other.lock_with(["b"], shared()).unwrap();
        let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
        assert_eq!(inner.fence(), outer.fence());
        outer.release().await.unwrap();
        // Its own part has ended, and ends once.
        outer.release().await.unwrap();
        assert!(!outer.is_held() && inner.is_held());
        assert!(outer.lost().await.is_none());
        assert_eq!(another.acquire().await.unwrap_err().code(), Code::Exhausted);
        let joined = lock.acquire().await.unwrap();
        drop(inner);
        assert_eq!(another.acquire().await.unwrap_err().code(), Code::Exhausted);
        joined.release().await.unwrap();
        let had = another.acquire().await.unwrap();
        assert!(had.fence() > joined.fence());
        // It is another's now.
        assert_eq!(lock.acquire().await.unwrap_err().code(), Code::Exhausted);
    }

    // Whoever shared it and was collected may still be at work.
    #[tokio::test]
    async fn what_lapses_is_given_back_by_nobody_and_ends_at_its_deadline() {
        let handle = opened("lapses").unwrap();
        let brief = LockOptions { ttl: 1_000 * MILLISECOND, keepalive: Keepalive::Off, ..shared() };
        let lock = handle.lock_with(["a", "b"], brief).unwrap();
        let another = handle.lock_with(["b"], at_once()).unwrap();
        let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
        inner.lapse();
        drop(inner);
        assert!(outer.is_held());
        outer.release().await.unwrap();
        assert!(!outer.is_held() && outer.lost().await.is_none());
        assert_eq!(another.acquire().await.unwrap_err().code(), Code::Exhausted);
        let patient = LockOptions { timeout: 30 * crate::SECOND, ..LockOptions::default() };
        another.acquire_with(patient).await.unwrap();
    }

    #[tokio::test]
    async fn only_who_asked_to_share_does() {
        let handle = opened("asked").unwrap();
        let lock = handle.lock_with(["a"], at_once()).unwrap();
        let held = lock.acquire().await.unwrap();
        for options in [at_once(), shared()] {
            assert_eq!(lock.acquire_with(options).await.unwrap_err().code(), Code::Exhausted);
        }
        held.release().await.unwrap();
        let held = lock.acquire_with(shared()).await.unwrap();
        assert_eq!(lock.acquire().await.unwrap_err().code(), Code::Exhausted);
        // The owner is the lock, not its names.
        let twin = handle.lock_with(["a"], shared()).unwrap();
        assert_eq!(twin.acquire().await.unwrap_err().code(), Code::Exhausted);
        assert_eq!(lock.acquire_with(shared()).await.unwrap().fence(), held.fence());
    }

    #[tokio::test]
    async fn what_was_lost_is_not_joined() {
        let handle = opened("lost").unwrap();
        let brief = LockOptions { ttl: 300 * MILLISECOND, keepalive: Keepalive::Off, ..shared() };
        let lock = handle.lock_with(["a"], brief).unwrap();
        let (outer, inner) = (lock.acquire().await.unwrap(), lock.acquire().await.unwrap());
        ended(&lock).await;
        let anew = lock.acquire_with(shared()).await.unwrap();
        assert!(anew.fence() > outer.fence());
        // Both who shared it are told, whoever is the last.
        for lost in [outer, inner] {
            assert_eq!(lost.release().await.unwrap_err().code(), Code::Lost);
        }
        assert!(anew.is_held());
        anew.release().await.unwrap();
    }

    #[tokio::test]
    async fn a_body_is_told_that_it_outlived_its_lock() {
        let brief = LockOptions { ttl: 300 * MILLISECOND, keepalive: Keepalive::Off, ..shared() };
        let lock = opened("outlived").unwrap().lock_with(["a"], brief).unwrap();
        let body = async |_: &_| {
            ended(&lock).await;
            "what it gave"
        };
        match lock.run(body).await {
            Err(RunError::Lost { error, output }) => {
                assert_eq!((error.code(), output), (Code::Lost, "what it gave"));
            }
            other => panic!("{other:?}"),
        }
        assert!(lock.run(async |locked| locked.is_held()).await.unwrap());
    }

    #[tokio::test]
    async fn the_handle_bounds_how_long_its_locks_live() {
        let options = Value::map([("lock_ttl", Value::Number(1_000.0))]);
        let handle = tokio::runtime::Handle::current();
        let open = |options: &Value| {
            crate::client::native::open(&"memory:".into(), options, Unit::Milliseconds, handle.clone())
        };
        let handle = open(&options).unwrap();
        assert_eq!(handle.lock_defaults().ttl, 1_000 * MILLISECOND);
        let lock = |ttl: f64| {
            let options = Value::map([("ttl", Value::Number(ttl))]);
            handle.lock_by(&"a".into(), &options, Unit::Milliseconds)
        };
        lock(1_000.0).unwrap();
        assert_eq!(lock(1_001.0).unwrap_err().field(), Some("ttl"));
        let lock = handle.lock_by(&"a".into(), &Value::Null, Unit::Milliseconds).unwrap();
        let long = Value::map([("ttl", Value::Number(1_001.0))]);
        for field in [
            lock.acquire_by(&long, Unit::Milliseconds).await.unwrap_err(),
            lock.enter(&long, Unit::Milliseconds).await.unwrap_err(),
        ] {
            assert_eq!(field.field(), Some("ttl"));
        }
        for wrong in [0.0, 8.0 * 86_400_000.0] {
            let options = Value::map([("lock_ttl", Value::Number(wrong))]);
            assert_eq!(open(&options).unwrap_err().field(), Some("lock_ttl"));
        }
    }

    #[tokio::test]
    async fn a_body_that_is_not_to_be_locked_is_not() {
        let lock = opened("unlocked").unwrap().lock_with(["a"], at_once()).unwrap();
        let enter = |options: Value, unit| {
            let lock = &lock;
            async move { lock.enter(&options, unit).await }
        };
        let held = lock.acquire().await.unwrap();
        for (condition, unit) in [("if", Unit::Milliseconds), ("if_", Unit::Seconds)] {
            for (key, value) in [(condition, false), ("unless", true)] {
                let options = Value::map([(key, Value::Bool(value))]);
                assert!(enter(options, unit).await.unwrap().is_none(), "{key}");
                // What else it says is looked at all the same.
                let wrong = Value::map([(key, Value::Bool(value)), ("ttl", Value::Number(-1.0))]);
                assert_eq!(enter(wrong, unit).await.unwrap_err().field(), Some("ttl"));
                let options = Value::map([(key, Value::Bool(!value))]);
                assert_eq!(enter(options, unit).await.unwrap_err().code(), Code::Exhausted);
                let wrong = Value::map([(key, Value::Number(1.0))]);
                assert_eq!(enter(wrong, unit).await.unwrap_err().field(), Some(key));
            }
        }
        held.release().await.unwrap();
        assert!(enter(Value::Null, Unit::Seconds).await.unwrap().unwrap().is_held());
        // An acquisition has no body that could go without.
        let options = Value::map([("unless", Value::Bool(true))]);
        assert_eq!(lock.acquire_by(&options, Unit::Seconds).await.unwrap_err().field(), Some("unless"));
    }
}
