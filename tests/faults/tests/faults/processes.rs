//! Processes that are killed, or stopped past their deadlines.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use leasehold_faults::{Chain, Holder, Place, Pool, eventually, handle, options, patient, within};
use leasehold_servers::Proxy;

const PROGRAM: &str = env!("CARGO_BIN_EXE_holder");

fn signal(holder: &Holder, signal: i32) {
    // SAFETY: it sends a signal to a child of ours that has not been reaped.
    #[allow(unsafe_code, reason = "the standard library sends no signals")]
    let sent = unsafe { libc::kill(holder.id(), signal) };
    assert_eq!(sent, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_holder_costs_its_time_to_live() {
    let place = Place::redis();
    let chain = Chain::new(&["a"], 50);
    let pool = place.pool(options(&["a"]), chain.source()).await;
    let holder = Holder::start(PROGRAM, place.url(), "a", 1_200);
    assert_eq!(holder.nonce, 7);
    signal(&holder, libc::SIGKILL);
    let begun = Instant::now();
    assert!(pool.acquire_with(within(0)).await.is_err(), "its time has not passed");
    let lease = pool.acquire_with(patient()).await.expect("granted");
    let took = begun.elapsed();
    assert!(took > Duration::from_millis(500) && took < Duration::from_secs(3), "{took:?}");
    assert!(lease.fence() > holder.fence);
    // Nobody knows what the dead one did with its nonce.
    assert_eq!((lease.nonce(), chain.reads()), (Some(50), 1));
    assert_eq!(pool.statistics().in_doubt, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_holder_finds_its_lease_lost() {
    let place = Place::redis();
    let chain = Chain::new(&["a"], 50);
    let pool = place.pool(options(&["a"]), chain.source()).await;
    let mut holder = Holder::start(PROGRAM, place.url(), "a", 600);
    assert_eq!(holder.ask("state"), "held");
    signal(&holder, libc::SIGSTOP);
    let lease = pool.acquire_with(patient()).await.expect("granted after its deadline");
    assert_eq!(lease.nonce(), Some(50));
    lease.used(None).expect("51 is next");
    signal(&holder, libc::SIGCONT);
    assert_eq!(holder.ask("state"), "lost");
    assert_eq!(holder.ask("release"), "lost");
    lease.renew().await.expect("nobody freed it");
    lease.release().await.expect("its own");
    let next = pool.acquire_with(patient()).await.expect("granted");
    assert_eq!((next.nonce(), chain.reads()), (Some(51), 1), "the late one changed nothing");
}

thread_local! {
    static KEPT: RefCell<Option<Pool>> = const { RefCell::new(None) };
}

// What a thread was the first to have is dropped last, when what Tokio has of it is gone: the connection's end panicked, and that
// ends a process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thread_keeps_a_pool_to_its_end() {
    let place = Place::redis();
    let proxy = Proxy::start(place.server().port()).expect("a proxy");
    let (url, runtime) = (proxy.url(), tokio::runtime::Handle::current());
    let thread = std::thread::spawn(move || {
        KEPT.set(None);
        runtime.block_on(async {
            let pool = handle(&url).pool_with("relayers", options(&["a"]), None).await.expect("opens");
            KEPT.set(Some(pool));
        });
    });
    tokio::task::spawn_blocking(|| thread.join()).await.expect("joined").expect("no panic");
    assert_eq!(proxy.connections(), 1);
    eventually("no connection is left over", async || proxy.open_connections() == 0).await;
}
