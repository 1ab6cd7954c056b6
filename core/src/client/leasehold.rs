//! The entry: a store, a namespace and a runtime.

#[cfg(test)]
mod tests;

#[cfg(feature = "limits")]
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, Weak};

#[cfg(feature = "limits")]
use super::builders::LimitBuilder;
use super::builders::{LockBuilder, LockNames, LockOwner, PoolBuilder};
#[cfg(feature = "limits")]
use super::limits::{self, Actions, Limit, LimitOptions, OpenedScope, Scope};
use super::lock::lock_pool;
use super::options::{LOCK_TTL, Unit, check_rest, check_ttl, duration, lock_names, rest, set_time, ttl};
use super::pool::PoolCore;
#[cfg(feature = "doctor")]
use super::pool::courier::undone;
use super::pool::waiting::closed;
use super::{Lock, LockOptions, Pool, PoolOptions, ReadNonce};
#[cfg(feature = "tokens")]
use super::{SharedSource, TokenSource, Tokens, TokensBuilder, TokensOptions};
use crate::error::{Error, Result};
use crate::id::{Name, PoolName};
#[cfg(feature = "limits")]
use crate::limits::{Amount, Hashes};
use crate::poison::unpoisoned;
use crate::runtime::Runtime;
#[cfg(feature = "doctor")]
use crate::store::Finding;
#[cfg(feature = "limits")]
use crate::store::LimitStore;
use crate::store::Store;
use crate::value::{Options, Value};
use crate::{MILLISECOND, Micros, SECOND};

/// How many scopes of limits there are at least before those are forgotten that nobody needs.
#[cfg(feature = "limits")]
const SCOPES: usize = 64;
/// The longest that one reply of the store may take.
const MOST_RESPONSE_TIMEOUT: Micros = 60 * SECOND;

/// Opens pools, locks, wallets and limits in a store. Clones are the same handle.
pub struct Leasehold<S: Store, R: Runtime>(Arc<Handle<S, R>>);

/// What the clones of a handle share.
struct Handle<S: Store, R: Runtime> {
    store: S,
    runtime: R,
    options: OpenOptions,
    pools: Mutex<Opened<S, R>>,
    /// The pool of its locks, once there is one. Kept, because it knows the highest fence that was seen.
    locks: Mutex<Option<Arc<PoolCore<S, R>>>>,
    /// Its limits.
    #[cfg(feature = "limits")]
    scopes: Mutex<Scopes<R>>,
    /// What it registered of limits.
    #[cfg(feature = "limits")]
    actions: Actions,
}

/// The limits that a handle opened, by scope: there may be one a customer.
#[cfg(feature = "limits")]
type Scopes<R> = HashMap<Name, Arc<dyn OpenedScope<R>>, Hashes>;
/// The pools that a handle opened; nothing once it is closed.
type Opened<S, R> = Option<Vec<Weak<PoolCore<S, R>>>>;

/// How a store is used. Times are in microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOptions {
    /// Keeps apart what must not meet: put the chain's id into it (`eth:1`). "leasehold" by default: then programs of two chains share
    /// accounts and nonces.
    pub namespace: Name,
    /// How long one reply of the store may take: 2 s by default.
    pub response_timeout: Micros,
    /// The longest time to live of this handle's locks, and their default: 1 ms to 7 days, 60 s by default. The same in
    /// every process that locks in the namespace: it is how long a store that lost its memory, or was started a moment
    /// ago, grants no lock.
    pub lock_ttl: Micros,
    /// The time of waiting that outweighs one step of a lock's `priority`: 0 (the default) if none does, up to a year. The
    /// same in every process that locks in the namespace.
    pub lock_ageing: Micros,
    /// The defaults of this handle's pools.
    pub pool: PoolOptions,
}

impl Default for OpenOptions {
    fn default() -> Self {
        // The name is a constant that is allowed.
        let namespace = Name::new("leasehold").unwrap_or_else(|_| unreachable!());
        OpenOptions {
            namespace,
            response_timeout: 2 * SECOND,
            lock_ttl: LOCK_TTL,
            lock_ageing: 0,
            pool: PoolOptions::default(),
        }
    }
}

impl OpenOptions {
    /// Whether its times are in their ranges, as with [`PoolOptions::check`].
    ///
    /// # Errors
    /// `invalid_argument` naming the option.
    pub(super) fn check(&self) -> Result<()> {
        if cfg!(target_family = "wasm") {
            return Ok(());
        }
        check_response_timeout(self.response_timeout).map_err(|error| error.within("response_timeout"))?;
        check_ttl(self.lock_ttl).map_err(|error| error.within("lock_ttl"))?;
        check_rest("lock_ageing", self.lock_ageing)
    }

    /// Reads options over `self`, the defaults.
    ///
    /// # Errors
    /// `invalid_argument` naming the option.
    #[doc(hidden)]
    pub fn read(mut self, value: &Value, unit: Unit) -> Result<Self> {
        let mut options = Options::of_call(value)?;
        if let Some(namespace) = options.take("namespace", |value| Name::new(value.as_text()?))? {
            self.namespace = namespace;
        }
        set_time(&mut self.response_timeout, &mut options, "response_timeout", unit, response_timeout)?;
        set_time(&mut self.lock_ttl, &mut options, "lock_ttl", unit, ttl)?;
        set_time(&mut self.lock_ageing, &mut options, "lock_ageing", unit, rest)?;
        options.end()?;
        Ok(self)
    }
}

fn response_timeout(value: &Value, unit: Unit) -> Result<Micros> {
    check_response_timeout(duration(value, unit)?)
}

fn check_response_timeout(time: Micros) -> Result<Micros> {
    match time {
        MILLISECOND..=MOST_RESPONSE_TIMEOUT => Ok(time),
        _ => Err(Error::invalid("", "is out of range; 1 ms to 60 s are allowed")),
    }
}

impl<S: Store, R: Runtime> Leasehold<S, R> {
    /// Uses a store.
    ///
    /// # Errors
    /// `invalid_argument` naming the option that is out of its range.
    pub fn new(store: S, runtime: R, options: OpenOptions) -> Result<Self> {
        options.check()?;
        let (pools, locks) = (Mutex::new(Some(Vec::new())), Mutex::default());
        Ok(Leasehold(Arc::new(Handle {
            store,
            runtime,
            options,
            pools,
            locks,
            #[cfg(feature = "limits")]
            scopes: Mutex::default(),
            #[cfg(feature = "limits")]
            actions: Actions::default(),
        })))
    }

    /// The defaults of this handle's pools.
    pub fn pool_defaults(&self) -> PoolOptions {
        self.0.options.pool.clone()
    }

    /// Opens a pool; makes it if it is not there, and adds the slots that it does not have. `await` it, perhaps after more
    /// words.
    ///
    /// # Errors
    /// `invalid_argument` naming what is wrong; `store_unavailable`.
    pub fn pool(&self, name: &str) -> PoolBuilder<'_, S, R> {
        PoolBuilder::new(self, name)
    }

    /// The same of options and what reads nonces.
    ///
    /// # Errors
    /// As [`Self::pool`].
    pub async fn pool_with(
        &self,
        name: &str,
        options: PoolOptions,
        read_nonce: Option<ReadNonce>,
    ) -> Result<Pool<S, R>> {
        let pool = Name::new(name).map_err(|error| error.within("name"))?;
        let name = PoolName { namespace: self.0.options.namespace.clone(), pool };
        let timeout = self.0.options.response_timeout;
        let pool = Pool::new(&self.0.store, self.0.runtime.clone(), name, options, read_nonce, timeout);
        self.enroll(&pool.core)?;
        pool.open().await?;
        Ok(pool)
    }

    /// A lock of one name, or of several that are held together: to be opened, acquired or run under, perhaps after more
    /// words.
    pub fn lock(&self, names: impl LockNames) -> LockBuilder<'_, S, R> {
        LockBuilder::new(self, names, self.lock_defaults())
    }

    /// The same of options. Asks nothing of the store yet.
    ///
    /// # Errors
    /// `invalid_argument` naming what is wrong; `cancelled` if the handle was closed.
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

    /// The tokens of a wallet, which `source` lists: to be opened, perhaps after more words. Any number of processes select
    /// from one wallet; a token is in one wallet, under one name.
    #[cfg(feature = "tokens")]
    pub fn tokens(&self, wallet: &str, source: impl TokenSource + 'static) -> TokensBuilder<'_, S, R> {
        TokensBuilder::new(self, wallet, source)
    }

    /// The same of options. Asks nothing of the store nor of the source yet.
    ///
    /// # Errors
    /// `invalid_argument` naming what is wrong; `cancelled` if the handle was closed.
    #[cfg(feature = "tokens")]
    pub fn tokens_with(
        &self,
        wallet: &str,
        source: SharedSource,
        options: TokensOptions,
    ) -> Result<Tokens<S, R>> {
        let place = (self.0.options.namespace.clone(), self.0.options.response_timeout);
        let (tokens, core) =
            Tokens::new(&self.0.store, self.0.runtime.clone(), place, wallet, source, options)?;
        self.enroll(&core)?;
        Ok(tokens)
    }

    /// The defaults of this handle's locks.
    pub fn lock_defaults(&self) -> LockOptions {
        LockOptions { ttl: self.0.options.lock_ttl, ..LockOptions::default() }
    }

    /// The pool of this handle's locks.
    pub(in crate::client) fn locks(&self) -> Result<Arc<PoolCore<S, R>>> {
        let mut locks = unpoisoned(&self.0.locks);
        if let Some(core) = &*locks {
            return if core.room.is_closed() { Err(closed()) } else { Ok(core.clone()) };
        }
        let OpenOptions { namespace, response_timeout, lock_ttl, lock_ageing, .. } = &self.0.options;
        let name = PoolName { namespace: namespace.clone(), pool: Name::of_locks() };
        let (runtime, options) = (self.0.runtime.clone(), lock_pool(*lock_ttl, *lock_ageing));
        let pool = Pool::new(&self.0.store, runtime, name, options, None, *response_timeout);
        self.enroll(&pool.core)?;
        Ok(locks.insert(pool.core).clone())
    }

    /// The limits of a scope, made by `make` if there are none yet.
    #[cfg(feature = "limits")]
    pub(super) fn scope(
        &self,
        scope: Name,
        make: impl FnOnce(&PoolName, R, Micros) -> Arc<dyn OpenedScope<R>>,
    ) -> Result<Arc<Scope<R>>> {
        let mut scopes = unpoisoned(&self.0.scopes);
        // With the scopes locked: who closes, takes the pools first, and closes all scopes that are there.
        if unpoisoned(&self.0.pools).is_none() {
            return Err(closed());
        }
        if let Some(opened) = scopes.get(&scope) {
            return Ok(opened.clone().scope());
        }
        // So seldom that it costs next to nothing each time.
        if scopes.len() == scopes.capacity() {
            scopes.retain(|_, scope| Arc::strong_count(scope) > 1 || scope.matters());
            let many = scopes.len().max(SCOPES);
            scopes.reserve(many);
        }
        let OpenOptions { namespace, response_timeout, .. } = &self.0.options;
        let name = PoolName { namespace: namespace.clone(), pool: scope };
        let opened = make(&name, self.0.runtime.clone(), *response_timeout);
        scopes.insert(name.pool, opened.clone());
        Ok(opened.scope())
    }

    #[cfg(feature = "limits")]
    pub(super) fn store(&self) -> &S {
        &self.0.store
    }

    /// Looks whether the store is fit, as an operator or a check of a deployment asks: its version, its eviction policy, what it
    /// remembers after a restart, its role and replicas, its clock, what its user may do, and whether its messages are heard, one
    /// [`Finding`] each, always in this order. Commands that it allows are tried where they write nothing. Of a cluster one node is
    /// looked at, that which serves the first slot. Of a store in memory there is one finding.
    ///
    /// # Errors
    /// `store_unavailable` if an answer does not come within the response timeout; `cancelled` if the handle was closed.
    #[cfg(feature = "doctor")]
    pub async fn doctor(&self) -> Result<Vec<Finding>> {
        if unpoisoned(&self.0.pools).is_none() {
            return Err(closed());
        }
        let Handle { store, runtime, options, .. } = &*self.0;
        let found = store.examine(runtime, &options.namespace, options.response_timeout).await;
        found.map_err(|error| undone(&error.cause))
    }

    /// Closes the pool when this handle is closed.
    fn enroll(&self, core: &Arc<PoolCore<S, R>>) -> Result<()> {
        let mut pools = unpoisoned(&self.0.pools);
        let Some(pools) = &mut *pools else {
            return Err(closed());
        };
        pools.retain(|pool| pool.strong_count() > 0);
        pools.push(Arc::downgrade(core));
        Ok(())
    }

    /// Opens no more pools and limits, and ends acquisitions that wait for a slot with `cancelled`. Leases that are held stay
    /// held until they are given back. Native connections are closed as soon as nothing is under way, and made again for what those
    /// leases still need.
    pub fn close(&self) {
        let pools = unpoisoned(&self.0.pools).take();
        pools.iter().flatten().filter_map(Weak::upgrade).for_each(|pool| pool.close());
        #[cfg(feature = "limits")]
        for scope in std::mem::take(&mut *unpoisoned(&self.0.scopes)).values() {
            scope.close();
        }
        self.0.store.close();
    }
}

#[cfg(feature = "limits")]
impl<S: LimitStore, R: Runtime> Leasehold<S, R> {
    /// A limit of this name: a rate, a budget, or what may be in flight, of which there is `max` at the most; to be opened,
    /// perhaps after more words. Limits of one name and kind share what was used, whatever their options are.
    pub fn limit(&self, name: &str, max: impl Into<Amount>) -> LimitBuilder<'_, S, R> {
        LimitBuilder::new(self, name, max.into())
    }

    /// The same of options. Asks nothing of the store yet.
    ///
    /// # Errors
    /// `invalid_argument` naming what is wrong; `cancelled` if the handle was closed.
    pub fn limit_with(&self, name: &str, options: &LimitOptions) -> Result<Limit<R>> {
        limits::open(self, name, options)
    }

    /// Registers what an action allows, once, such as 10 logins in an hour: each of its values, such as an address, has a
    /// limit of its own, which [`Self::limit_of`] opens. Known to this handle and its clones: each process registers what it
    /// asks. To register the same again changes nothing.
    ///
    /// # Errors
    /// `invalid_argument` naming what is wrong: `action`, if it is registered with other options, or 1,000 are already;
    /// `cancelled` if the handle was closed.
    pub fn register_with(&self, action: &str, options: &LimitOptions) -> Result<()> {
        if unpoisoned(&self.0.pools).is_none() {
            return Err(closed());
        }
        self.0.actions.register(action, options)
    }

    /// The limit that a registered action has for a value: any text of 1 to 256 bytes, or what is shown as such. No two pairs
    /// of them share a limit, nor does any with one that [`Self::limit`] names. Asks nothing of the store yet.
    ///
    /// # Errors
    /// `invalid_argument` naming what is wrong: `action`, if it is not registered; `value`, if it is empty or too long;
    /// `cancelled` if the handle was closed.
    pub fn limit_of(&self, action: &str, value: impl fmt::Display) -> Result<Limit<R>> {
        limits::open_of(self, &self.0.actions, action, &value)
    }

    /// The same of what a language gives: text, or a whole number.
    ///
    /// # Errors
    /// As [`Self::limit_of`].
    #[doc(hidden)]
    pub fn limit_of_by(&self, action: &str, value: &Value) -> Result<Limit<R>> {
        self.limit_of(action, limits::read_value(value)?)
    }

    /// Limits of this handle that are charged as one: see [`Limit::group`].
    ///
    /// # Errors
    /// As [`Limit::group`].
    pub fn group<'a>(
        &self,
        members: impl IntoIterator<Item = impl Into<Option<&'a Limit<R>>>>,
    ) -> Result<Limit<R>> {
        Limit::group(members)
    }
}

impl<S: Store, R: Runtime> LockOwner<S, R> for Leasehold<S, R> {
    fn lock_of(&self, names: &Value, options: LockOptions) -> Result<Lock<S, R>> {
        let names = lock_names(names)?;
        Lock::new(self.locks()?, None, names, options)
    }
}

impl<S: Store, R: Runtime> Clone for Leasehold<S, R> {
    fn clone(&self) -> Self {
        Leasehold(self.0.clone())
    }
}

impl<S: Store, R: Runtime> fmt::Debug for Leasehold<S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Leasehold {{ namespace: {:?} }}", self.0.options.namespace)
    }
}

/// Where a store is, as the user said it.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// The URL as it was given.
    pub url: String,
    /// The name of a store in memory, if it is one.
    pub memory: Option<String>,
    /// The defaults of pools.
    pub pool: PoolOptions,
}

impl Target {
    /// Reads a URL, or the lock block of a paymaster's configuration. Nothing is no URL: it is what a variable of the
    /// environment says that is not set, and a store in memory would be another one in each process.
    ///
    /// # Errors
    /// `invalid_argument` naming what is wrong; it does not repeat a URL, which may hold a password.
    #[doc(hidden)]
    pub fn read(value: &Value) -> Result<Self> {
        let (url, pool) = match value {
            Value::Text(url) => (url.clone(), PoolOptions::default()),
            Value::Map(_) => {
                let config = SeedConfig::read(value)?;
                (config.url, config.pool)
            }
            other => {
                return Err(Error::invalid(
                    "url",
                    format_args!("must be text or a configuration, not {}", other.kind()),
                ));
            }
        };
        let memory = url.strip_prefix("memory:").map(str::to_owned);
        Ok(Target { url, memory, pool })
    }
}

/// The lock block of a paymaster's configuration, as it stands: `mode`, `retry_timeout` in seconds,
/// `redis.endpoint`. It is read for the bindings: a program in Rust connects by the URL, and gives its pools their times.
#[derive(Clone, PartialEq, Eq)]
pub struct SeedConfig {
    /// The URL of the store.
    pub url: String,
    /// The defaults of pools: a time to live of 5 s, and `retry_timeout` (1 s) as the timeout.
    pub pool: PoolOptions,
}

impl SeedConfig {
    /// Reads the block.
    ///
    /// # Errors
    /// `invalid_argument` naming an unknown key, a wrong type or a missing endpoint.
    #[doc(hidden)]
    pub fn read(value: &Value) -> Result<Self> {
        let mut options = Options::of_call(value)?;
        let shared = options.take("mode", mode)?;
        let timeout = options.take("retry_timeout", |value| rest(value, Unit::Seconds))?.unwrap_or(SECOND);
        let endpoint = options.take("redis", endpoint)?;
        options.end()?;
        let url = match (shared, endpoint) {
            (None, _) => return Err(Error::invalid("mode", "is missing; say segregated or shared")),
            (Some(false), _) => "memory:".to_owned(),
            (Some(true), Some(endpoint)) => endpoint,
            (Some(true), None) => {
                return Err(Error::invalid("redis.endpoint", "is missing; mode shared needs it"));
            }
        };
        Ok(SeedConfig { url, pool: PoolOptions { ttl: 5 * SECOND, timeout, ..PoolOptions::default() } })
    }
}

// A URL may hold a password, so neither shows it.
impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Target")
            .field("memory", &self.memory)
            .field("pool", &self.pool)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for SeedConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SeedConfig").field("pool", &self.pool).finish_non_exhaustive()
    }
}

/// Whether the mode is shared. The seed spells the other one with a letter too many; both are taken.
fn mode(value: &Value) -> Result<bool> {
    match value.as_text()? {
        "segregated" | "seggregated" => Ok(false),
        "shared" => Ok(true),
        other => Err(Error::invalid("", format_args!("\"{other}\" is neither segregated nor shared"))),
    }
}

fn endpoint(value: &Value) -> Result<String> {
    let mut options = Options::new(value)?;
    let endpoint = options.take("endpoint", |value| value.as_text().map(str::to_owned))?;
    options.end()?;
    endpoint.ok_or_else(|| Error::invalid("endpoint", "is missing"))
}
