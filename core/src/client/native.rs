//! Opening a store by its URL, in a program that has sockets: Rust programs, and the bindings of Node and
//! Python.

use std::fs::{File, TryLockError};
use std::sync::Mutex;

use tokio::runtime::Handle;

use super::builders::Connect;
use super::leasehold::Target;
use super::{Lease, Leasehold, Lock, Locked, OpenOptions, Pool, Quorum, Unit};
#[cfg(feature = "limits")]
use super::{Limit, Reservation};
#[cfg(feature = "tokens")]
use super::{Selection, Tokens};
use crate::error::{Error, Result};
use crate::poison::unpoisoned;
use crate::runtime::TokioRuntime;
use crate::store::redis::{NativeTransport, RedisUrl};
use crate::store::{EitherStore, MemoryStore, RedisStore};
use crate::value::Value;

/// The store of a program that has sockets.
pub type NativeStore = EitherStore<NativeTransport>;
/// A handle of such a program.
pub type NativeLeasehold = Leasehold<NativeStore, TokioRuntime>;
/// A quorum of such a program.
pub type NativeQuorum = Quorum<NativeStore, TokioRuntime>;
/// A pool of such a program.
pub type NativePool = Pool<NativeStore, TokioRuntime>;
/// A lease of such a program.
pub type NativeLease = Lease<NativeStore, TokioRuntime>;
/// A lock of such a program.
pub type NativeLock = Lock<NativeStore, TokioRuntime>;
/// A lock that such a program holds.
pub type NativeLocked = Locked<NativeStore, TokioRuntime>;
/// The tokens of a wallet of such a program.
#[cfg(feature = "tokens")]
pub type NativeTokens = Tokens<NativeStore, TokioRuntime>;
/// A selection of such a program.
#[cfg(feature = "tokens")]
pub type NativeSelection = Selection<NativeStore, TokioRuntime>;
/// A limit of such a program.
#[cfg(feature = "limits")]
pub type NativeLimit = Limit<TokioRuntime>;
/// What such a program takes of limits for the time being.
#[cfg(feature = "limits")]
pub type NativeReservation = Reservation<TokioRuntime>;

/// The store at this URL: `memory:`, `memory:name`, `redis://…`, the nodes of a cluster (`redis+cluster://host:port,host:port`) or
/// the sentinels of a primary (`redis+sentinel://host:port,host:port/name`), these three with `rediss` for TLS. To be opened,
/// perhaps after more words.
pub fn connect(url: impl Into<String>) -> Connect<String> {
    Connect::new(url.into())
}

/// The servers at these URLs, each of which has one vote on a lock. To be opened, perhaps after more words. All processes name the same
/// servers: two lists can have two majorities, and so two holders.
pub fn quorum<I: Into<String>>(urls: impl IntoIterator<Item = I>) -> Connect<Vec<String>> {
    Connect::new(urls.into_iter().map(Into::into).collect())
}

/// Opens a store. `target` is a URL (`memory:`, the default; `memory:name`; `redis://…` and its kin) or the lock block
/// of a paymaster's configuration. Does not connect yet.
///
/// # Errors
/// `invalid_argument` naming what is wrong.
#[doc(hidden)]
pub fn open(target: &Value, options: &Value, unit: Unit, handle: Handle) -> Result<NativeLeasehold> {
    opened(Target::read(target)?, OpenOptions::default().read(options, unit)?, handle)
}

/// Opens the stores of a quorum: a list of what [`open`] takes. Does not connect yet.
///
/// # Errors
/// `invalid_argument` naming what is wrong: the server that is there twice among others, whether or not it is spelled
/// with a login or a database.
#[doc(hidden)]
pub fn open_quorum(targets: &Value, options: &Value, unit: Unit, handle: Handle) -> Result<NativeQuorum> {
    let targets = targets.as_list().map_err(|error| error.within("servers"))?;
    opened_quorum(targets, &OpenOptions::default().read(options, unit)?, &handle)
}

/// Opens the stores of a quorum, by options that have been checked.
pub(super) fn opened_quorum(
    targets: &[Value],
    options: &OpenOptions,
    handle: &Handle,
) -> Result<NativeQuorum> {
    Quorum::opened(targets, |target, field| {
        let target = Target::read(target).map_err(|error| error.within(field))?;
        let address = address(&target.url);
        let handle = opened(target, options.clone(), handle.clone()).map_err(|error| error.within(field))?;
        Ok((address, handle))
    })
}

/// What of a URL says which server it is: of a cluster its first node, of a primary the first sentinel and its name there.
fn address(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let mut parts = rest.split(['/', '?']);
    let place = parts.next().unwrap_or_default().rsplit('@').next().unwrap_or_default();
    let place = place.split(',').next().unwrap_or_default().to_ascii_lowercase();
    if scheme.ends_with("+sentinel") {
        let place = place.strip_suffix(":26379").unwrap_or(&place);
        return format!("{place}/{}", parts.next().unwrap_or_default());
    }
    // The path of a socket, of which the query says the database and the login.
    if place.is_empty() {
        return rest.split('?').next().unwrap_or_default().to_owned();
    }
    place.strip_suffix(":6379").unwrap_or(&place).to_owned()
}

/// Opens a store, by options that have been checked.
pub(super) fn opened(target: Target, options: OpenOptions, handle: Handle) -> Result<NativeLeasehold> {
    let options = OpenOptions { pool: target.pool, ..options };
    let store = match target.memory {
        Some(name) => {
            if !keeps_memory() {
                let advice = "another copy of leasehold in this process keeps its stores in memory, and would grant the same slots: \
                              install one for all (`npm dedupe`), or use a Redis";
                return Err(Error::invalid("url", advice));
            }
            // A forked child starts with a store of its own: it holds none of its parent's leases.
            let name = format!("{}:{name}", std::process::id());
            EitherStore::Memory(MemoryStore::named(&name, TokioRuntime::store_clock()))
        }
        None => {
            let url = RedisUrl::new(&target.url)?;
            let transport = NativeTransport::new(url, handle.clone(), options.response_timeout);
            EitherStore::Redis(RedisStore::new(transport))
        }
    };
    Leasehold::new(store, TokioRuntime::new(handle), options)
}

/// Whether this copy of the library is the one that keeps the stores in this process's memory: by the first that it opens. Two
/// that were loaded from two files have nothing in common but the process, which has an entry of its own among the system's
/// files; who locks that has it until the process ends. A forked child has another. Where there is none, as on other systems than
/// Linux, nobody notices.
fn keeps_memory() -> bool {
    static ENTRY: Mutex<Option<(u32, File)>> = Mutex::new(None);
    let (process, mut entry) = (std::process::id(), unpoisoned(&ENTRY));
    if entry.as_ref().is_some_and(|(of, _)| *of == process) {
        return true;
    }
    let Ok(file) = File::open("/proc/self/status") else { return true };
    match file.try_lock() {
        Ok(()) => *entry = Some((process, file)),
        Err(TryLockError::WouldBlock) => return false,
        Err(TryLockError::Error(_)) => {}
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_server_votes_once() {
        let open = |servers: &[&str]| {
            let servers = Value::List(servers.iter().map(|&server| server.into()).collect());
            open_quorum(&servers, &Value::Null, Unit::Milliseconds, Handle::current())
        };
        let field = |servers: &[&str]| open(servers).unwrap_err().field().map(str::to_owned);
        open(&["redis://a", "redis://b:7000", "redis://b:7001", "memory:x", "memory:y"]).unwrap();
        // The same sentinels watch several primaries.
        open(&["redis+sentinel://s/a", "redis+sentinel://s/b", "redis+cluster://a,z", "redis+cluster://b,z"])
            .unwrap();
        for (first, second) in [
            ("redis://a", "redis://a"),
            ("redis://:secret@a:6379/1", "redis://user:other@a/2"),
            ("rediss://a:7000/0", "redis://a:7000?protocol=resp3"),
            ("memory:", "memory:"),
            ("redis+cluster://:secret@a:7000,b", "rediss+cluster://a:7000,c?protocol=resp3"),
            ("redis+cluster://a,b", "redis://a:6379"),
            ("redis+sentinel://:secret@s:26379,t/a", "redis+sentinel://s/a/2?sentinel_password=other"),
            ("unix:///run/redis.sock", "unix:///run/redis.sock"),
            ("unix:///run/redis.sock?db=1", "unix:///run/redis.sock?db=2&user=u&pass=p"),
            ("redis://a", "redis://A:6379"),
            ("redis+sentinel://s/a", "redis+sentinel://S/a"),
        ] {
            assert_eq!(field(&["redis://z", first, second]).as_deref(), Some("servers[2]"), "{second}");
        }
        assert_eq!(field(&[]).as_deref(), Some("servers"));
        assert_eq!(field(&["redis://a", "http://b"]).as_deref(), Some("servers[1].url"));
        let error = open_quorum(&"redis://a".into(), &Value::Null, Unit::Seconds, Handle::current());
        assert_eq!(error.unwrap_err().field(), Some("servers"));
    }

    #[tokio::test(start_paused = true)]
    async fn clones_are_the_same_handle_and_the_same_lock() {
        let handle = connect("memory:clones").open().unwrap();
        let lock = handle.lock("a").reentrant().open().unwrap();
        let held = lock.acquire().await.unwrap();
        assert_eq!(lock.clone().acquire().await.unwrap().fence(), held.fence(), "it is entered once more");
        handle.clone().close();
        assert_eq!(handle.lock("b").open().unwrap_err().code(), crate::Code::Cancelled);
    }
}
