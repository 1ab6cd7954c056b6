use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::SECOND;
use crate::client::faulty::{DEAD, Faulty, HUNG, SLOW};
use crate::client::native::{NativeLease, connect};
use crate::client::{Leasehold, OpenOptions, Pool, PoolOptions, ReleaseOptions};
use crate::error::Code;
use crate::runtime::warped::Warped;
use crate::runtime::{TokioRuntime, idle};
use crate::slots::Loss;

const GIVEN_BACK: &str =
    "the lease of a is lost: it was given back already; stop, see what arrived, and acquire anew";

#[tokio::test(start_paused = true)]
async fn a_lease_is_counted_as_lost_once_however_often_it_is_found_to_be() {
    for watched in [false, true] {
        let handle = connect(format!("memory:lost-once-{watched}")).namespace("test").open().unwrap();
        let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
        let lease = pool.acquire().await.unwrap();
        let early = watched.then(|| lease.lost());
        pool.break_lease("a").await.unwrap();
        for _ in 0..2 {
            assert_eq!(lease.renew().await.unwrap_err().code(), Code::Lost);
        }
        // Whoever asks afterwards hears the same.
        for lost in early.into_iter().chain([lease.lost()]) {
            let why = lost.await.expect("lost");
            assert!(why.message().contains("it has ended"), "{why}");
        }
        assert_eq!(lease.release().await.unwrap_err().code(), Code::Lost);
        assert_eq!(lease.lost().await.expect("as before").code(), Code::Lost);
        let counts = pool.statistics();
        assert_eq!((counts.lost, counts.expired, counts.ended), (1, 0, 1), "watched: {watched}");
    }
}

// It was accepted, and nobody heard of it.
#[tokio::test(start_paused = true)]
async fn nothing_is_said_of_a_lease_that_was_given_back() {
    let handle = connect("memory:said-late").namespace("test").open().unwrap();
    let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    let lease = pool.acquire().await.unwrap();
    lease.unused().unwrap();
    lease.release().await.unwrap();
    for said in [lease.used(Some(8)), lease.used(None), lease.unused(), lease.rejected(None), lease.unknown()]
    {
        let error = said.unwrap_err();
        assert_eq!((error.code(), error.message()), (Code::Lost, GIVEN_BACK));
    }
    assert!(lease.lost().await.is_none(), "it was given back in time");
}

// A lease that sends several payments: what counted before the one that was lost was forgotten, and a node that lags
// behind was believed at once.
#[tokio::test(start_paused = true)]
async fn of_several_payments_those_before_a_lost_one_have_counted() {
    let handle = connect("memory:lost-last").namespace("test").open().unwrap();
    let brief = PoolOptions { doubt_rest: 0, ..PoolOptions::slots(["a"]).unwrap() };
    let pool = handle.pool_with("p", brief, None).await.unwrap();
    let lease = pool.acquire().await.unwrap();
    lease.resync(10, false).await.unwrap();
    for next in 11..=13 {
        lease.unknown().unwrap();
        lease.used(Some(next)).unwrap();
    }
    lease.unknown().unwrap();
    // Nor by the holder itself, whose words the store does not know yet.
    assert_eq!(lease.resync(12, false).await.unwrap_err().code(), Code::Stalled);
    lease.release().await.unwrap();
    let next = pool.acquire().await.unwrap();
    assert!(next.in_doubt() && next.nonce().is_none());
    let stalled = next.resync(10, false).await.unwrap_err();
    assert_eq!(stalled.code(), Code::Stalled);
    // As the message says.
    assert!(stalled.retry_after().is_some_and(|time| !time.is_zero() && time <= Duration::from_secs(60)));
    assert_eq!(next.resync(13, false).await.unwrap(), 13);
}

#[tokio::test(start_paused = true)]
async fn a_nonce_that_was_used_is_not_handed_out_again_whatever_is_said_afterwards() {
    let handle = connect("memory:used-first").namespace("test").open().unwrap();
    let brief = PoolOptions { doubt_rest: 0, ..PoolOptions::slots(["a"]).unwrap() };
    let pool = handle.pool_with("p", brief, None).await.unwrap();
    let words: [fn(&NativeLease) -> crate::error::Result<()>; 3] =
        [NativeLease::unused, |lease| lease.rejected(Some(7)), NativeLease::unknown];
    for take_back in words {
        let lease = pool.acquire().await.unwrap();
        lease.resync(7, true).await.unwrap();
        lease.used(None).unwrap();
        take_back(&lease).unwrap();
        lease.release().await.unwrap();
        let next = pool.acquire().await.unwrap();
        assert!(next.in_doubt() && next.nonce().is_none());
    }
}

// It ends here a moment before it does in the store, which would have renewed it: the holder was told both.
#[tokio::test(start_paused = true)]
async fn what_was_told_to_be_lost_is_not_renewed() {
    let handle = connect("memory:lost-told").namespace("test").open().unwrap();
    let brief = PoolOptions { ttl: crate::SECOND, ..PoolOptions::slots(["a"]).unwrap() };
    let pool = handle.pool_with("p", brief, None).await.unwrap();
    let lease = pool.acquire().await.unwrap();
    assert_eq!(lease.lost().await.expect("lost").code(), Code::Lost);
    assert_eq!(lease.renew().await.unwrap_err().code(), Code::Lost);
    assert_eq!(lease.resync(7, false).await.unwrap_err().code(), Code::Lost);
    assert_eq!(pool.statistics().expired, 1);
    // Its outcome is recorded all the same, as long as the store lets it be.
    drop(lease);
    assert!(pool.try_acquire().unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_watched_lease_that_is_found_lost_as_it_is_given_back_is_counted() {
    let handle = connect("memory:lost-late").namespace("test").open().unwrap();
    let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    let lease = pool.acquire().await.unwrap();
    let _lost = lease.lost();
    pool.break_lease("a").await.unwrap();
    assert_eq!(lease.release().await.unwrap_err().code(), Code::Lost);
    let counts = pool.statistics();
    assert_eq!((counts.lost, counts.expired), (1, 0));
}

/// A pool of a process that stands still, and for how long it has.
async fn standing(store: &Faulty, slots: &[&str]) -> (Pool<Faulty, Warped>, Arc<AtomicU64>) {
    let passed = Arc::new(AtomicU64::new(0));
    let silence = passed.clone();
    let runtime = Warped::new().clock(move |time| time + silence.load(Relaxed));
    let handle = Leasehold::new(store.clone(), runtime, OpenOptions::default()).unwrap();
    (handle.pool_with("p", PoolOptions::slots(slots).unwrap(), None).await.unwrap(), passed)
}

// The block of a lease that was over ended as if nothing were wrong, where no store said so.
#[tokio::test(start_paused = true)]
async fn who_gives_back_too_late_is_told_so_though_the_store_is_silent() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let (pool, passed) = standing(&store, &["a", "b", "c"]).await;
    let leases = [pool.acquire().await.unwrap(), pool.acquire().await.unwrap()];
    let in_time = pool.acquire().await.unwrap();
    store.is(DEAD);
    let error = in_time.release().await.unwrap_err();
    assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
    passed.store(60 * SECOND, Relaxed);
    let [released, concluded] = leases;
    for error in [released.release().await.unwrap_err(), concluded.conclude().await.unwrap_err()] {
        assert_eq!(error.code(), Code::Lost, "{error}");
    }
    assert_eq!(pool.statistics().lost, 2);
    // A second time nothing is done.
    released.release().await.unwrap();
}

// `renew` and `resync` said nothing of it, and whoever looks only whether they fail sent what others were sending.
#[tokio::test(start_paused = true)]
async fn what_the_store_prolonged_is_lost_if_its_answer_comes_when_that_is_over() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let (pool, passed) = standing(&store, &["a", "b"]).await;
    let (renewed, resynced) = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
    store.is(SLOW);
    let asked = async { tokio::join!(renewed.renew(), resynced.resync(7, false)) };
    // Its process stands still while the answer waits.
    let (told, ()) = tokio::join!(asked, async {
        idle().await;
        passed.store(60 * SECOND, Relaxed);
    });
    assert_eq!(told.0.unwrap_err().code(), Code::Lost);
    assert_eq!(told.1.unwrap_err().code(), Code::Lost);
}

// Its release said that its deadline had passed, which it had not.
#[tokio::test(start_paused = true)]
async fn how_a_lease_was_lost_is_told_as_it_was_at_first() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let handle = store.opened(20 * SECOND);
    let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    let lease = pool.acquire().await.unwrap();
    pool.break_lease("a").await.unwrap();
    let told = lease.renew().await.unwrap_err();
    assert!(told.message().contains("somebody broke it"), "{told}");
    store.is(DEAD);
    assert_eq!(lease.release().await.unwrap_err().message(), told.message());
}

// The store may have taken the outcome: it counts longer than the holder does.
#[tokio::test(start_paused = true)]
async fn a_body_that_outlived_its_lease_is_told_so_though_the_store_was_told_in_time() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let (pool, passed) = standing(&store, &["a", "b"]).await;
    let (released, concluded) = (pool.acquire().await.unwrap(), pool.acquire().await.unwrap());
    passed.store(60 * SECOND, Relaxed);
    released.release().await.unwrap();
    assert_eq!(concluded.conclude().await.unwrap_err().code(), Code::Lost);
}

// Who waited for its loss went on as if nothing were wrong.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn of_what_is_dropped_after_its_end_nobody_is_told_that_it_was_given_back_in_time() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let (pool, passed) = standing(&store, &["a"]).await;
    let lease = pool.acquire().await.unwrap();
    let lost = lease.lost();
    // Its process stands still, and its keeper comes to nothing before its holder goes on.
    passed.store(60 * SECOND, Relaxed);
    drop(lease);
    let error = lost.await.expect("lost");
    assert!(error.message().contains("its deadline passed"), "{error}");
    assert_eq!((pool.statistics().lost, pool.statistics().expired), (1, 1));
}

// Nobody watched it, and whoever looks in the counts for bodies that take longer than a lease saw none.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn a_lease_that_is_dropped_after_its_end_is_counted_as_lost() {
    let handle = connect("memory:lost-dropped").namespace("test").open().unwrap();
    let brief = PoolOptions { ttl: crate::SECOND, ..PoolOptions::slots(["a", "b"]).unwrap() };
    let pool = handle.pool_with("p", brief, None).await.unwrap();
    let [lease, in_time] = [pool.acquire().await.unwrap(), pool.acquire().await.unwrap()];
    drop(in_time);
    while lease.is_held() {
        idle().await;
    }
    drop(lease);
    assert_eq!((pool.statistics().lost, pool.statistics().expired, pool.statistics().ended), (1, 1, 2));
}

// A block's end in Python asked a store in memory at once, for which it had not ended yet, and heard nothing of what its holder knew.
#[tokio::test(start_paused = true)]
async fn so_is_one_that_was_told_of_the_end_before_a_store_in_memory_counts_it() {
    let handle = connect("memory:told-before").open().unwrap();
    let options = PoolOptions { ttl: SECOND / 2, ..PoolOptions::slots(["a"]).unwrap() };
    let pool = handle.pool_with("p", options, None).await.unwrap();
    let lease = pool.acquire().await.unwrap();
    assert_eq!(lease.lost().await.unwrap().code(), Code::Lost);
    assert_eq!(lease.conclude_now().unwrap().unwrap_err().code(), Code::Lost);
}

// The chain was asked all the same, and what came of it was said of the chain.
#[tokio::test(start_paused = true)]
async fn of_a_lease_that_has_ended_no_chain_is_asked() {
    let handle = connect("memory:ended").namespace("test").open().unwrap();
    let asked = Arc::new(AtomicU64::new(0));
    let asks = asked.clone();
    let pool = handle.pool("p").slots(["a"]).ttl(Duration::from_millis(20)).read_nonce(move |_| {
        asks.fetch_add(1, Relaxed);
        async { Ok::<_, std::io::Error>(7) }
    });
    let pool = pool.await.unwrap();
    let given_back = pool.acquire().await.unwrap();
    given_back.release().await.unwrap();
    let expired = pool.acquire().await.unwrap();
    while expired.is_held() {
        idle().await;
    }
    let before = asked.load(Relaxed);
    for lease in [&given_back, &expired] {
        assert_eq!(lease.read_nonce().await.unwrap_err().code(), Code::Lost);
        assert_eq!(lease.resync(3, false).await.unwrap_err().code(), Code::Lost);
    }
    assert_eq!(asked.load(Relaxed), before);
}

// Whoever waited for its loss waited for as long as the object lived.
#[tokio::test(start_paused = true)]
async fn who_waits_for_the_loss_of_what_is_given_back_hears_so_though_nobody_waits_for_the_release() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let pool = store.opened(SECOND).pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    let lease = pool.acquire().await.unwrap();
    let lost = lease.lost();
    store.is(HUNG);
    let brief = tokio::time::timeout(Duration::from_millis(1), lease.release()).await;
    assert!(brief.is_err(), "{brief:?}");
    let told = tokio::time::timeout(Duration::from_secs(10), lost).await.expect("told");
    assert!(told.is_none(), "{told:?}");
}

// A payment of which nobody knows what became was forgotten as the chain answered what it had been asked before, and its nonce went on
// as unused.
#[tokio::test(start_paused = true)]
async fn what_is_said_while_a_nonce_is_resynced_stays_said() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let slots = PoolOptions { doubt_rest: 0, ..PoolOptions::slots(["a"]).unwrap() };
    let pool = store.opened(10 * SECOND).pool_with("p", slots, None).await.unwrap();
    for rejects in [false, true] {
        let lease = pool.acquire().await.unwrap();
        lease.resync(7, true).await.unwrap();
        let meanwhile = async { if rejects { lease.rejected(None) } else { lease.unknown() } };
        let (resynced, said) = futures_util::future::join(lease.resync(7, false), meanwhile).await;
        said.unwrap();
        assert_eq!(resynced.unwrap(), 7);
        lease.unused().unwrap();
        lease.release().await.unwrap();
        let next = pool.acquire().await.unwrap();
        assert!(next.in_doubt() && next.nonce().is_none());
        // What was said before the chain was asked is settled by its answer.
        next.unknown().unwrap();
        next.resync(7, true).await.unwrap();
        next.unused().unwrap();
        next.release().await.unwrap();
        assert_eq!(pool.acquire().await.unwrap().nonce(), Some(7));
    }
}

// The release was refused, as if the nonce were put back: nobody had the slot for its whole time, and then it was in doubt.
#[tokio::test(start_paused = true)]
async fn a_nonce_that_is_said_to_be_used_while_the_chain_says_so_is_given_back() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let pool =
        store.opened(10 * SECOND).pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    for next in [None, Some(9)] {
        let lease = pool.acquire().await.unwrap();
        lease.resync(7, true).await.unwrap();
        let (resynced, said) =
            futures_util::future::join(lease.resync(8, false), async { lease.used(next) }).await;
        assert_eq!((resynced.unwrap(), said), (8, Ok(())));
        lease.release().await.unwrap();
        assert_eq!(pool.acquire().await.unwrap().nonce(), Some(next.unwrap_or(8)));
    }
}

// The one that was given back in time ended it.
#[tokio::test(start_paused = true)]
async fn of_several_leases_the_loss_of_one_is_told_whatever_became_of_the_others() {
    let handle = connect("memory:one-of-two").namespace("test").open().unwrap();
    let pool = handle.pool_with("p", PoolOptions::slots(["a", "b"]).unwrap(), None).await.unwrap();
    for broken in [0, 1] {
        let leases = pool.acquire_many(2).await.unwrap();
        let lost = crate::client::lock::holding::lost(&leases);
        pool.break_lease(leases[broken].slot()).await.unwrap();
        for lease in &leases {
            let _ = lease.release().await;
        }
        assert_eq!(lost.await.expect("one was lost").code(), Code::Lost, "{broken}");
        pool.enable(leases[broken].slot()).await.unwrap();
    }
    let leases = pool.acquire_many(2).await.unwrap();
    let lost = crate::client::lock::holding::lost(&leases);
    crate::client::lock::holding::release(&leases, None).await.unwrap();
    assert!(lost.await.is_none());
}

// It was counted as lost, and told so, by a renewal that came to the store behind the release.
#[tokio::test(start_paused = true)]
async fn what_a_renewal_finds_given_back_is_not_lost() {
    let handle = connect("memory:renewed-behind").namespace("test").open().unwrap();
    let pool = handle.pool_with("p", PoolOptions::slots(["a"]).unwrap(), None).await.unwrap();
    let lease = pool.acquire().await.unwrap();
    let lost = lease.lost();
    lease.close(ReleaseOptions::default()).unwrap();
    let error = lease.not_found(Loss::Ended);
    assert_eq!((error.code(), error.message()), (Code::Lost, GIVEN_BACK));
    lease.given_back();
    assert_eq!((lost.await.is_none(), pool.statistics().lost), (true, 0));
}

// The task that watched it had ended with the runtime, and nobody told its holder anything any more.
#[test]
fn who_waits_for_a_loss_in_a_runtime_that_has_ended_is_told() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (first, elsewhere) = (runtime(), runtime());
    let store = Faulty::new(TokioRuntime::store_clock());
    let (lease, pool) = first.block_on(async {
        let slots = PoolOptions::slots(["a"]).unwrap();
        let pool = store.opened(10 * SECOND).pool_with("p", slots, None).await.unwrap();
        (pool.acquire().await.unwrap(), pool)
    });
    let early = lease.lost();
    drop(first);
    for lost in [early, lease.lost()] {
        let told = elsewhere.block_on(async { tokio::time::timeout(Duration::from_secs(10), lost).await });
        let error = told.expect("told").expect("lost");
        assert_eq!(error.code(), Code::Lost);
        assert!(error.message().contains("the runtime ended"), "{error}");
    }
    assert!(!lease.is_held());
    assert_eq!((pool.statistics().lost, pool.statistics().expired), (1, 0));
}
