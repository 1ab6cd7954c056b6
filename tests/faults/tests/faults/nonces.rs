//! Nonces: how other pools lose, repeat or skip them.

use std::time::Duration;

use leasehold::client::{PoolOptions, ReleaseOptions};
use leasehold::nonce::NonceRecord;
use leasehold::{Code, MILLISECOND};
use leasehold_faults::{Chain, Lease, Place, Pool, eventually, options, patient, soon, within};

on_both!(
    a_late_holder_puts_no_nonce_back,
    a_refused_nonce_does_not_come_back_after_its_rest,
    a_nonce_that_the_chain_expects_is_handed_out_unasked,
    a_gap_heals,
    an_unknown_outcome_asks_the_chain,
    a_lease_that_ends_without_a_word_is_in_doubt,
    an_unused_nonce_is_handed_out_again,
    slots_in_doubt_come_last,
    nonces_above_the_range_of_doubles_stay_exact,
);

async fn record(pool: &Pool, slot: &str) -> NonceRecord {
    pool.inspect(&[slot.to_owned()]).await.expect("a view").slots[0].view.nonce
}

async fn give_back(lease: Lease) {
    lease.release().await.expect("its own");
}

async fn ended(lease: &Lease) {
    eventually("the lease ends", async || !lease.is_held()).await;
    tokio::time::sleep(Duration::from_millis(30)).await;
}

// The last writer wins: B stored 9, the late A stored 8, and the next holder signs with 8 again.
async fn a_late_holder_puts_no_nonce_back(place: Place) {
    let chain = Chain::new(&["a"], 7);
    let pool = place.pool(options(&["a"]), chain.source()).await;
    let late = pool.acquire_with(patient()).await.expect("granted");
    assert_eq!(late.nonce(), Some(7));
    ended(&late).await;
    chain.set("a", 8);
    let current = pool.acquire_with(patient()).await.expect("granted");
    assert_eq!((current.nonce(), chain.reads()), (Some(8), 2));
    current.used(None).expect("9 is next");
    give_back(current).await;
    late.used(None).expect("8 was next, it thinks");
    assert_eq!(late.release().await.expect_err("late").code(), Code::Lost);
    let next = pool.acquire_with(patient()).await.expect("granted");
    assert_eq!((next.nonce(), chain.reads()), (Some(9), 2));
    // Nor does a holder put its own nonce back.
    assert_eq!(next.used(Some(9)).expect_err("not above").code(), Code::InvalidArgument);
    assert_eq!(next.used(Some(4)).expect_err("below").code(), Code::InvalidArgument);
}

// The delayed release after a nonce error keeps the very nonce that was just found wrong.
async fn a_refused_nonce_does_not_come_back_after_its_rest(place: Place) {
    let chain = Chain::new(&["a"], 7);
    let pool = place.pool(options(&["a"]), chain.source()).await;
    let lease = pool.acquire_with(patient()).await.expect("granted");
    lease.rejected(None).expect("held");
    lease.release_with(ReleaseOptions { cooldown: Some(150 * MILLISECOND) }).await.expect("released");
    chain.set("a", 12);
    assert_eq!(record(&pool, "a").await, NonceRecord::InDoubt { floor: Some(7) });
    let error = pool.acquire_with(within(0)).await.expect_err("it rests");
    assert_eq!(error.code(), Code::Exhausted, "{error}");
    let lease = pool.acquire_with(patient()).await.expect("granted");
    assert_eq!((lease.nonce(), chain.reads()), (Some(12), 2));
    assert_eq!(pool.statistics().in_doubt, 1);
}

async fn a_nonce_that_the_chain_expects_is_handed_out_unasked(place: Place) {
    let chain = Chain::new(&["a"], 7);
    let pool = place.pool(options(&["a"]), chain.source()).await;
    let lease = pool.acquire_with(patient()).await.expect("granted");
    lease.rejected(Some(9)).expect("held");
    give_back(lease).await;
    let lease = pool.acquire_with(patient()).await.expect("granted");
    assert_eq!((lease.nonce(), chain.reads()), (Some(9), 1));
}

// Transactions that were accepted and then dropped: the nonces above them are used for ever.
async fn a_gap_heals(place: Place) {
    let chain = Chain::new(&["a"], 7);
    let patience = PoolOptions { settle: 1_200 * MILLISECOND, ..options(&["a"]) };
    let pool = place.pool(patience, chain.source()).await;
    for next in 8..11 {
        let lease = pool.acquire_with(patient()).await.expect("granted");
        lease.used(Some(next)).expect("forward");
        give_back(lease).await;
    }
    // The chain knows of 7 only: 8 and 9 were dropped. It says so as 10 is sent.
    chain.set("a", 8);
    let lease = pool.acquire_with(patient()).await.expect("granted");
    assert_eq!(lease.nonce(), Some(10));
    lease.rejected(Some(8)).expect("held");
    give_back(lease).await;
    assert_eq!(record(&pool, "a").await, NonceRecord::InDoubt { floor: Some(10) });
    // A node that lags behind would say the same, so the record is believed for a while ...
    let error = pool.acquire_with(within(0)).await.expect_err("the chain is behind");
    assert!(matches!(error.code(), Code::Exhausted | Code::Stalled), "{error}");
    // ... and then the chain is.
    let (lease, _) = soon(Duration::from_secs(8), "the gap heals", pool.acquire_with(within(8_000))).await;
    let lease = lease.expect("granted");
    assert_eq!(lease.nonce(), Some(8));
    // Who knows that transactions were dropped need not wait.
    lease.used(Some(20)).expect("forward");
    give_back(lease).await;
    let lease = pool.acquire_with(patient()).await.expect("granted");
    assert_eq!(lease.nonce(), Some(20));
    assert_eq!(lease.resync(9, false).await.expect_err("behind").code(), Code::Stalled);
    assert_eq!(lease.nonce(), Some(20));
    assert_eq!(lease.resync(9, true).await.expect("believed"), 9);
    assert_eq!(lease.nonce(), Some(9));
}

// A time-out after the transaction got in: the nonce is kept as if it were free.
async fn an_unknown_outcome_asks_the_chain(place: Place) {
    let chain = Chain::new(&["a"], 7);
    let pool = place.pool(options(&["a"]), chain.source()).await;
    let lease = pool.acquire_with(patient()).await.expect("granted");
    lease.unknown().expect("held");
    give_back(lease).await;
    assert_eq!(record(&pool, "a").await, NonceRecord::InDoubt { floor: Some(7) });
    chain.set("a", 8);
    let lease = pool.acquire_with(patient()).await.expect("granted");
    assert_eq!((lease.nonce(), chain.reads()), (Some(8), 2));
    // Without a chain to ask, the mark is all there is, and no nonce comes with it.
    lease.unknown().expect("held");
    give_back(lease).await;
    let blind = place.pool(options(&["a"]), None).await;
    let lease = blind.acquire_with(patient()).await.expect("granted");
    assert!(lease.in_doubt());
    assert_eq!(lease.nonce(), None);
    assert_eq!(lease.used(None).expect_err("which?").code(), Code::InvalidArgument);
    assert_eq!(lease.read_nonce().await.expect_err("no chain").code(), Code::NonceUnavailable);
}

async fn a_lease_that_ends_without_a_word_is_in_doubt(place: Place) {
    let chain = Chain::new(&["a"], 7);
    let pool = place.pool(options(&["a"]), chain.source()).await;
    drop(pool.acquire_with(patient()).await.expect("granted"));
    let lease = pool.acquire_with(patient()).await.expect("granted");
    assert_eq!(chain.reads(), 2, "dropped");
    ended(&lease).await;
    let lease = pool.acquire_with(patient()).await.expect("granted");
    assert_eq!(chain.reads(), 3, "expired");
    pool.break_lease("a").await.expect("broken");
    let next = pool.acquire_with(patient()).await.expect("granted");
    assert_eq!(chain.reads(), 4, "broken");
    assert!(next.fence() > lease.fence());
}

async fn an_unused_nonce_is_handed_out_again(place: Place) {
    let chain = Chain::new(&["a"], 7);
    let pool = place.pool(options(&["a"]), chain.source()).await;
    for _ in 0..5 {
        let lease = pool.acquire_with(patient()).await.expect("granted");
        assert_eq!(lease.nonce(), Some(7));
        lease.unused().expect("held");
        give_back(lease).await;
    }
    assert_eq!(chain.reads(), 1);
}

// Two wallets with a poisoned nonce took 71 of 73 leases, as what fails comes back soonest.
async fn slots_in_doubt_come_last(place: Place) {
    let slots = ["a", "b", "c"];
    let chain = Chain::new(&slots, 7);
    let pool = place.pool(options(&slots), chain.source()).await;
    let mut doubtful = None;
    for _ in 0..3 {
        let leases =
            pool.acquire_many_with(leasehold::client::AcquireOptions { count: Some(3), ..patient() }).await;
        for lease in leases.expect("granted") {
            let unsaid = lease.slot() == "b";
            let said = if unsaid { lease.unknown() } else { lease.unused() };
            said.expect("held");
            give_back(lease).await;
        }
        doubtful = Some("b");
    }
    for _ in 0..20 {
        let lease = pool.acquire_with(patient()).await.expect("granted");
        assert_ne!(Some(lease.slot()), doubtful);
        lease.unused().expect("held");
        give_back(lease).await;
    }
}

// Numbers of JavaScript and of Lua are doubles.
async fn nonces_above_the_range_of_doubles_stay_exact(place: Place) {
    let start = (1 << 53) + 1;
    let chain = Chain::new(&["a"], start);
    let pool = place.pool(options(&["a"]), chain.source()).await;
    for nonce in start..start + 3 {
        let lease = pool.acquire_with(patient()).await.expect("granted");
        assert_eq!(lease.nonce(), Some(nonce));
        lease.used(None).expect("the next one");
        give_back(lease).await;
    }
    let lease = pool.acquire_with(patient()).await.expect("granted");
    lease.used(Some(u64::MAX)).expect("forward");
    give_back(lease).await;
    let lease = pool.acquire_with(patient()).await.expect("granted");
    assert_eq!(lease.nonce(), Some(u64::MAX));
    assert_eq!(lease.used(None).expect_err("there is none above").code(), Code::InvalidArgument);
}
