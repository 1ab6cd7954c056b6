use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::task::JoinHandle;

#[cfg(feature = "crowds")]
use crate::client::faulty::SILENT_ON_LOOKS;
use crate::client::faulty::{Faulty, HOLDS, WELL, names_and_waits, releases, stands_in_line};
use crate::client::native::{NativePool, connect};
use crate::client::{AcquireOptions, Lease, Leasehold, OpenOptions, Pool, PoolOptions};
use crate::error::Result;
use crate::id::SlotId;
#[cfg(feature = "crowds")]
use crate::runtime::idle;
use crate::runtime::warped::Warped;
use crate::runtime::{Runtime, TokioRuntime};
use crate::store::Store;
use crate::{Micros, SECOND};

async fn pool(store: &str, slots: &[&str]) -> NativePool {
    let handle = connect(format!("memory:strangers-{store}")).namespace("test").open().unwrap();
    let options = PoolOptions { ttl: 60 * SECOND, ..PoolOptions::slots(slots.iter().copied()).unwrap() };
    handle.pool_with("p", options, None).await.unwrap()
}

fn within(timeout: Micros) -> AcquireOptions {
    AcquireOptions { timeout: Some(timeout), ..AcquireOptions::default() }
}

/// Has the process meet a slot of another.
async fn meet(pool: &NativePool) {
    let strangers = || pool.core.own_until.load(Relaxed) > 0;
    while !strangers() {
        pool.acquire_with(within(0)).await.unwrap().release().await.unwrap();
    }
}

// From its first meeting on it stood beside the line, and all that came free went to those in it.
#[tokio::test(start_paused = true)]
async fn who_shares_a_pool_with_others_is_served_in_turn() {
    let (old, new) = (pool("turn", &["a", "b"]).await, pool("turn", &["a", "b", "c"]).await);
    meet(&old).await;
    let stop = Arc::new(AtomicBool::new(false));
    for _ in 0..8 {
        let (new, stop) = (new.clone(), stop.clone());
        tokio::spawn(async move {
            while !stop.load(Relaxed) {
                let lease = new.acquire_with(within(60 * SECOND)).await.unwrap();
                tokio::time::sleep(Duration::from_millis(2)).await;
                lease.release().await.unwrap();
            }
        });
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    let old = || async { old.acquire_with(within(30 * SECOND)).await.unwrap().release().await.unwrap() };
    tokio::join!(old(), old(), old());
    stop.store(true, Relaxed);
}

/// One that waits in a task of its own.
type Waiting<R> = JoinHandle<Result<Lease<Faulty, R>>>;

/// Two processes: one is far from the store and has not heard of slot z, which the other has besides.
struct Apart {
    store: Faulty,
    far: Pool<Faulty, Warped>,
    near: Pool<Faulty, TokioRuntime>,
}

impl Apart {
    async fn new(slots: &[&str]) -> Self {
        let store = Faulty::new(TokioRuntime::store_clock());
        store.hears_after(0);
        // Its clock stands still.
        let runtime = Warped::new().clock(|_| 3_600 * SECOND);
        let options = OpenOptions { response_timeout: 60 * SECOND, ..OpenOptions::default() };
        let far = opened(store.clone(), runtime, options, slots).await;
        let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
        let near = [slots, &["z"]].concat();
        let near = opened(store.clone(), runtime, OpenOptions::default(), &near).await;
        Apart { store, far, near }
    }

    /// The near one holds slot a, the far one waits for it, and a second of the near one behind it in line: what the far
    /// one gives back is not for all to ask for. It was granted slot z, gave it back, and asks for its own.
    async fn names_its_own(&self) -> (Lease<Faulty, TokioRuntime>, Waiting<Warped>, Waiting<TokioRuntime>) {
        let Apart { store, far, near, .. } = self;
        let mut leases =
            near.acquire_many_with(AcquireOptions { count: Some(2), ..within(0) }).await.unwrap();
        let waiting = waits(far);
        store.performs(stands_in_line, 0).await;
        let second = waits(near);
        store.performs(stands_in_line, 1).await;
        taken(&mut leases).release().await.unwrap();
        store.performs(names_and_waits, 0).await;
        (leases.swap_remove(0), waiting, second)
    }
}

async fn opened<S: Store, R: Runtime>(
    store: S,
    runtime: R,
    options: OpenOptions,
    slots: &[&str],
) -> Pool<S, R> {
    let handle = Leasehold::new(store, runtime, options).unwrap();
    let options = PoolOptions { ttl: 600 * SECOND, ..PoolOptions::slots(slots.iter().copied()).unwrap() };
    handle.pool_with("p", options, None).await.unwrap()
}

/// Waits in a task of its own.
fn waits<S: Store, R: Runtime>(pool: &Pool<S, R>) -> JoinHandle<Result<Lease<S, R>>> {
    let pool = pool.clone();
    tokio::spawn(async move { pool.acquire_with(within(600 * SECOND)).await })
}

/// Takes the lease of slot z out of these.
fn taken<S: Store, R: Runtime>(leases: &mut Vec<Lease<S, R>>) -> Lease<S, R> {
    leases.swap_remove(leases.iter().position(|lease| lease.slot() == "z").unwrap())
}

// It stood beside the line, and took what came free before those who had come earlier.
#[tokio::test]
async fn who_names_its_own_stands_behind_who_came_before_and_before_who_came_later() {
    let apart = Apart::new(&["a"]).await;
    let Apart { store, near, .. } = &apart;
    let (held, waiting, second) = apart.names_its_own().await;
    let z = second.await.unwrap().unwrap();
    let stood = store.count(stands_in_line);
    let later = waits(near);
    store.performs(stands_in_line, stood).await;
    held.release().await.unwrap();
    let won = waiting.await.unwrap().unwrap();
    assert_eq!(won.slot(), "a");
    // By now it knows that there are others, and comes after `later`.
    let named = store.count(names_and_waits);
    let last = waits(&apart.far);
    store.performs(names_and_waits, named).await;
    won.release().await.unwrap();
    let won = later.await.unwrap().unwrap();
    assert_eq!(won.slot(), "a");
    won.release().await.unwrap();
    assert_eq!(last.await.unwrap().unwrap().slot(), "a");
    drop(z);
}

// Its ticket was offered what came free and called by name, and it did not know that name to be its own: for a second the slot
// lay, and all waited.
#[tokio::test(start_paused = true)]
async fn who_is_called_before_it_knows_that_it_stands_in_line_comes() {
    let apart = Apart::new(&["a"]).await;
    let store = &apart.store;
    let given = store.count(releases);
    store.is(HOLDS);
    let (held, waiting, second) = apart.names_its_own().await;
    let released = tokio::spawn(async move { held.release().await });
    store.performs(releases, given + 2).await;
    store.is(WELL);
    // Its clock stands still, and with it all that would have it look by itself.
    let won = tokio::time::timeout(Duration::from_secs(10), waiting).await;
    assert_eq!(won.expect("it comes").unwrap().unwrap().slot(), "a");
    released.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
}

// It had asked for its own at first, so that its ticket was not given up: the store offered that slot to nobody.
#[tokio::test(start_paused = true)]
async fn who_stands_in_the_lines_of_its_own_leaves_them() {
    let names: Vec<String> = (0..40).map(|number| format!("a{number}")).collect();
    let apart = Apart::new(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let Apart { store, far, near, .. } = &apart;
    let mut leases = near.acquire_many_with(AcquireOptions { count: Some(41), ..within(0) }).await.unwrap();
    taken(&mut leases).release().await.unwrap();
    let waiting = waits(far);
    // It was granted that and gave it back, and asked for its own.
    store.performs(names_and_waits, 0).await;
    let _z = near.acquire_with(within(0)).await.unwrap();
    waiting.abort();
    assert!(waiting.await.unwrap_err().is_cancelled());
    // Whatever set out before has arrived.
    far.acquire_with(within(0)).await.unwrap_err();
    leases.pop().unwrap().release().await.unwrap();
    near.acquire_with(within(0)).await.expect("nobody waits for it");
}

// What is drawn is what a shuffle of all would give, with none twice.
#[test]
fn of_any_number_each_is_drawn_once() {
    let slots: Vec<_> =
        (0..50).map(|number| crate::id::SlotId::new(&format!("a{number}")).unwrap()).collect();
    for (most, random) in [(0, 1), (7, 2), (50, 3), (80, 4)].into_iter().chain((5..99).map(|r| (32, r))) {
        let (mut shuffled, mut state) = (slots.clone(), random);
        for at in 0..slots.len().min(most) {
            state = super::mix(state);
            shuffled.swap(at, at + (state % (slots.len() - at) as u64) as usize);
        }
        shuffled.truncate(most);
        assert_eq!(super::drawn(&slots, most, random), shuffled);
    }
    assert!(super::drawn(&[], 32, 1).is_empty());
}

// It was not told that nobody would be robbed for it.
#[tokio::test(start_paused = true)]
async fn who_shares_a_pool_with_others_steals_as_before() {
    let (old, other) = (pool("steals", &["a"]).await, pool("steals", &["b"]).await);
    meet(&old).await;
    let held = old.acquire_with(within(0)).await.unwrap();
    let taken = other.acquire_with(within(0)).await.unwrap();
    let steals = AcquireOptions { priority: Some(5), steal: Some(1.0), ..within(30 * SECOND) };
    let yields = async {
        held.claimed().await.unwrap();
        held.release().await.unwrap();
    };
    let (stolen, ()) = tokio::join!(old.acquire_with(steals), yields);
    assert_eq!((stolen.unwrap().slot(), taken.slot()), ("a", "b"));
}

// It claimed the lease of the lowest holder, of a slot that it could not take, and then gave that back.
#[tokio::test(start_paused = true)]
async fn who_shares_a_pool_with_others_steals_its_own_slots_only() {
    let (old, other) = (pool("steals-own", &["a", "c"]).await, pool("steals-own", &["b"]).await);
    meet(&old).await;
    let low = |priority| AcquireOptions { priority: Some(priority), ..within(0) };
    let stranger = loop {
        let lease = other.acquire_with(low(-9)).await.unwrap();
        if lease.slot() == "b" {
            break lease;
        }
        lease.release().await.unwrap();
    };
    let held = old.acquire_with(low(1)).await.unwrap();
    let lower = old.acquire_with(low(-1)).await.unwrap();
    let steals = AcquireOptions { priority: Some(5), steal: Some(1.0), ..within(30 * SECOND) };
    let yields = async {
        lower.claimed().await.unwrap();
        lower.release().await.unwrap();
    };
    let slot = lower.slot().to_owned();
    let (stolen, ()) = tokio::join!(old.acquire_with(steals), yields);
    assert_eq!(stolen.unwrap().slot(), slot);
    for lease in [stranger, held] {
        assert!(lease.claimed().now_or_never().is_none(), "{} is claimed", lease.slot());
    }
}

// A thousand at random were asked for, and a refusal of these was taken for one of all.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn the_one_that_is_free_is_found_among_any_number() {
    let slots: Vec<String> = (0..2_500).map(|number| format!("s{number}")).collect();
    let names: Vec<&str> = slots.iter().map(String::as_str).collect();
    let (own, other) = (pool("many", &names).await, pool("many", &["z"]).await);
    let stranger = other.acquire_with(within(0)).await.unwrap();
    let mut leases = Vec::new();
    for _ in 0..slots.len() {
        leases.push(own.acquire_with(within(0)).await.unwrap());
    }
    stranger.release().await.unwrap();
    assert!(own.acquire_with(within(0)).await.is_err(), "what is free is another's");
    for _ in 0..20 {
        let free = leases.swap_remove(leases.len() / 2);
        let name = free.slot().to_owned();
        free.release().await.unwrap();
        let found = own.acquire_with(within(0)).await.unwrap();
        assert_eq!(found.slot(), name);
        leases.push(found);
    }
}

// Whoever missed it for a moment never asked for it again.
#[tokio::test(start_paused = true)]
async fn what_was_removed_and_added_again_is_ones_own_again() {
    let (own, other) = (pool("again", &["a", "b"]).await, pool("again", &["c"]).await);
    meet(&own).await;
    other.remove("a").await.unwrap();
    for _ in 0..9 {
        let lease = own.acquire_with(within(0)).await.unwrap();
        assert_eq!(lease.slot(), "b");
        lease.release().await.unwrap();
    }
    other.add(["a"]).await.unwrap();
    let slots = Some(vec![crate::id::SlotId::new("b").unwrap()]);
    let busy = own.acquire_with(AcquireOptions { slots, ..within(0) }).await.unwrap();
    let lease = own.acquire_with(within(30 * SECOND)).await.unwrap();
    assert_eq!((lease.slot(), busy.slot()), ("a", "b"));
}

// Who asks for any slot made its own anew; who named it was told for ever that the pool does not have it.
#[tokio::test(start_paused = true)]
async fn who_names_a_slot_makes_anew_what_the_store_forgot() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let process = async |slots: Option<&str>| {
        let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
        let handle = Leasehold::new(store.clone(), runtime, OpenOptions::default()).unwrap();
        let options = match slots {
            Some(slot) => PoolOptions::slots([slot]).unwrap(),
            None => PoolOptions::default(),
        };
        handle.pool_with("p", PoolOptions { ttl: SECOND / 10, ..options }, None).await.unwrap()
    };
    let (pool, other) = (process(Some("a")).await, process(None).await);
    store.forgets();
    assert!(other.list().await.unwrap().is_empty(), "the pool is there, and without its slots");
    let slots = Some(vec![SlotId::new("a").unwrap()]);
    pool.acquire_with(AcquireOptions { slots, ..within(30 * SECOND) }).await.unwrap();
}

async fn of_ttl(store: &Faulty, ttl: Micros) -> Pool<Faulty, TokioRuntime> {
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    let handle = Leasehold::new(store.clone(), runtime, OpenOptions::default()).unwrap();
    let options = PoolOptions { ttl, ..PoolOptions::slots(["a", "b"]).unwrap() };
    handle.pool_with("p", options, None).await.unwrap()
}

/// A process of short leases that has heard of another of long ones, and a lease of that.
async fn one_with_long_leases(store: &Faulty) -> (Pool<Faulty, TokioRuntime>, Lease<Faulty, TokioRuntime>) {
    let short = of_ttl(store, SECOND / 10).await;
    let held = of_ttl(store, 600 * SECOND).await.acquire_with(within(0)).await.unwrap();
    short.acquire_with(within(0)).await.unwrap().release().await.unwrap();
    (short, held)
}

// Whoever finds out that the store lost its memory says how long leases are, and it said how long its own are: what another held
// for ten minutes was granted anew after a tenth of a second.
#[tokio::test(start_paused = true)]
async fn a_store_that_forgot_is_quiet_for_the_longest_leases_of_all_processes() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let (short, held) = one_with_long_leases(&store).await;
    store.forgets();
    let quiet = short.acquire_with(within(SECOND / 2)).await.unwrap_err();
    assert!(quiet.to_string().contains("may have lost leases"), "{quiet}");
    assert!(quiet.retry_after() > Some(Duration::from_secs(500)), "{quiet:?}");
    // Also who adds a slot may be the one that makes the pool.
    store.forgets();
    short.add(["c"]).await.unwrap();
    let quiet = short.acquire_with(within(0)).await.unwrap_err();
    assert!(quiet.retry_after() > Some(Duration::from_secs(500)), "{quiet:?}");
    drop(held);
}

// Nobody was told of what came free besides the 128 for which it stood in line: it slept for five seconds beside a slot of its own.
#[tokio::test(start_paused = true)]
async fn who_has_more_slots_than_it_can_stand_in_line_for_hears_of_each() {
    let store = Faulty::new(TokioRuntime::store_clock());
    store.hears_after(0);
    let names: Vec<String> = (0..300).map(|number| format!("a{number}")).collect();
    let process = async |slots: &[&str]| {
        let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
        opened(store.clone(), runtime, OpenOptions::default(), slots).await
    };
    let own: Vec<&str> = names.iter().map(String::as_str).collect();
    let (many, other) = (process(&own).await, process(&[&own[..], &["z"]].concat()).await);
    let mut leases = other.acquire_many_with(AcquireOptions { count: Some(301), ..within(0) }).await.unwrap();
    let z = taken(&mut leases);
    z.release().await.unwrap();
    let mut z = None;
    // That all of these were among those 128 is unlikely.
    for turn in 0..6 {
        let waiting = waits(&many);
        store.performs(names_and_waits, turn).await;
        if turn == 0 {
            z = Some(other.acquire_with(within(0)).await.unwrap());
        }
        leases.pop().unwrap().release().await.unwrap();
        let won = tokio::time::timeout(Duration::from_secs(4), waiting).await;
        leases.push(won.expect("it looks before all do now and then").unwrap().unwrap());
        leases.rotate_right(1);
    }
    drop(z);
}

// Whoever made the pool anew had not heard of longer leases, and who had, and came later, kept it to itself.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn a_store_that_was_made_anew_by_a_stranger_is_told_of_the_longest_leases() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let (short, held) = one_with_long_leases(&store).await;
    store.forgets();
    let stranger = of_ttl(&store, SECOND / 10).await;
    // What is asked in the very moment of a loss may have set out before it.
    idle().await;
    let _ = short.acquire_with(within(0)).await.unwrap_err();
    // What it says of the others is behind its question.
    short.list().await.unwrap();
    let quiet = stranger.acquire_with(within(0)).await.unwrap_err();
    assert!(quiet.retry_after() > Some(Duration::from_secs(500)), "{quiet:?}");
    drop(held);
}

// A loss counted as looked into by whoever began to, though it had left before it saw anything: nobody looked again while the store was
// quiet, and afterwards this process waited for slots of others, with none of its own in the pool.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn a_look_into_a_loss_that_nobody_waited_for_is_begun_anew() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let process = async |slot| {
        let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
        let handle = Leasehold::new(store.clone(), runtime, OpenOptions::default()).unwrap();
        let options = PoolOptions { ttl: SECOND, ..PoolOptions::slots([slot]).unwrap() };
        handle.pool_with("p", options, None).await.unwrap()
    };
    let (pool, other) = (process("a").await, process("b").await);
    store.forgets();
    // It can be had by nobody, so that nobody is granted one of another process.
    other.disable("b").await.unwrap();
    store.is(SILENT_ON_LOOKS);
    let left = tokio::time::timeout(Duration::from_millis(100), pool.acquire_with(within(30 * SECOND)));
    assert!(left.await.is_err());
    store.is(WELL);
    assert_eq!(pool.acquire_with(within(30 * SECOND)).await.unwrap().slot(), "a");
}
