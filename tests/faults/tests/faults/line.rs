//! The line: callers of all processes are served by priority, then in the order in which they came.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use leasehold::MILLISECOND;
use leasehold::client::AcquireOptions;
use leasehold::id::SlotId;
use leasehold_faults::{Arrivals, Handle, Place, Prize, Won, eventually, options, patient, soon, within};

/// The prize as each of `count` processes sees it, held by the first of them.
async fn held(place: &Place, count: usize, ageing: u64) -> (Vec<Prize>, Won) {
    let mut prizes = Vec::new();
    for _ in 0..count {
        prizes.push(Prize::ageing(&place.handle(), ageing).await);
    }
    let won = prizes[0].win().await.expect("the first");
    (prizes, won)
}

/// As many in each process as have tickets, and more behind them; each gives back what it had, so that both processes
/// pass it on.
async fn all_are_served_as_they_came(prizes: &[Prize], won: Won) {
    let mut arrivals = Arrivals::default();
    for number in 0..14 * prizes.len() {
        // Now and then two of one process one behind the other.
        arrivals.come(&prizes[(number + number / 5) % prizes.len()], 0).await;
    }
    let count = arrivals.count();
    won.give_back().await.expect("its own");
    assert_eq!(arrivals.in_order().await, Vec::from_iter(0..count));
}

async fn who_comes_first_is_served_first_whoever_releases(place: Place) {
    let (prizes, won) = held(&place, 2, 0).await;
    all_are_served_as_they_came(&prizes, won).await;
}

async fn who_comes_first_to_a_lock_is_served_first(handles: &[Handle]) {
    let prizes: Vec<_> = handles.iter().map(|handle| Prize::name(handle, "account:1")).collect();
    let won = prizes[0].win().await.expect("free");
    all_are_served_as_they_came(&prizes, won).await;
}

async fn who_is_more_urgent_is_served_first_and_who_is_least_last(place: Place) {
    const PRIORITIES: [i16; 20] =
        [i16::MIN, 0, 5, -1, 5, i16::MAX, 0, 5, 3, -1, 0, i16::MAX, 7, i16::MIN, 0, 7, 1, 2, -100, 0];
    let (prizes, won) = held(&place, 2, 0).await;
    let mut arrivals = Arrivals::default();
    for (number, &priority) in PRIORITIES.iter().enumerate() {
        arrivals.come(&prizes[number % 2], priority).await;
    }
    won.give_back().await.expect("its own");
    let mut expected = Vec::from_iter(0..PRIORITIES.len());
    expected.sort_by_key(|&number| -i32::from(PRIORITIES[number]));
    assert_eq!(arrivals.in_order().await, expected);
}

async fn who_waits_long_outweighs_who_is_more_urgent(place: Place) {
    let (prizes, won) = held(&place, 2, 50 * MILLISECOND).await;
    let mut arrivals = Arrivals::default();
    // Ten steps are half a second.
    arrivals.come(&prizes[0], 0).await;
    arrivals.come(&prizes[1], 10).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    arrivals.come(&prizes[0], 10).await;
    won.give_back().await.expect("its own");
    assert_eq!(arrivals.in_order().await, [1, 0, 2]);
}

// Callers of the same process that come again and again, and are more urgent.
async fn who_grows_older_is_served_however_many_go_before_it(place: Place) {
    let (prizes, won) = held(&place, 1, 10 * MILLISECOND).await;
    let crowd: Vec<_> = (0..20)
        .map(|_| {
            let prize = prizes[0].clone();
            tokio::spawn(async move {
                loop {
                    let won = prize.win_as(20).await.expect("served");
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    won.give_back().await.expect("its own");
                }
            })
        })
        .collect();
    let Prize::Slot(pool) = &prizes[0] else { panic!("a slot") };
    eventually("they wait", async || pool.statistics().waiting == 20).await;
    let began = Instant::now();
    let waits = tokio::spawn({
        let prize = prizes[0].clone();
        async move { prize.win().await.map(drop) }
    });
    eventually("it waits", async || pool.statistics().waiting == 21).await;
    won.give_back().await.expect("its own");
    // 200 ms behind those that are more urgent; and 20 of these take 50 ms or so.
    soon(Duration::from_secs(4), "the patient one", waits).await.0.expect("no panic").expect("served");
    assert!(began.elapsed() > Duration::from_millis(100), "they went first: {:?}", began.elapsed());
    crowd.iter().for_each(tokio::task::JoinHandle::abort);
}

// A pool whose slots others wait for all the time: in eight seconds 572 of them were served, and who named a slot was not.
async fn who_names_a_slot_is_served_in_a_crowd(place: Place) {
    let pools = [place.pool(options(&["a", "b"]), None).await, place.pool(options(&["a", "b"]), None).await];
    let served = Arc::new(AtomicU64::new(0));
    let crowd: Vec<_> = (0..12)
        .map(|number| {
            let (pool, served) = (pools[number % 2].clone(), served.clone());
            tokio::spawn(async move {
                loop {
                    let lease = pool.acquire_with(patient()).await.expect("served");
                    served.fetch_add(1, Relaxed);
                    tokio::time::sleep(Duration::from_millis(2)).await;
                    lease.release().await.expect("its own");
                }
            })
        })
        .collect();
    eventually("they are served", async || served.load(Relaxed) > 50).await;
    for name in ["b", "a"] {
        let before = served.load(Relaxed);
        let slots = Some(vec![SlotId::new(name).expect("an id")]);
        let lease = pools[0].acquire_with(AcquireOptions { slots, ..patient() }).await.expect("served");
        let others = served.load(Relaxed) - before;
        assert_eq!(lease.slot(), name);
        lease.release().await.expect("its own");
        // Twelve or so stand before it, and as the other slot is quicker now and then, some more pass.
        assert!(others < 100, "{others} others were served");
    }
    crowd.iter().for_each(tokio::task::JoinHandle::abort);
}

// As where an operator takes more slots out of service than eight workers can do without.
async fn who_wants_more_than_can_be_had_is_in_nobodys_way(place: Place) {
    let pool = place.pool(options(&["a", "b", "c"]), None).await;
    pool.disable("c").await.expect("disabled");
    // A fresh server grants nothing until that has ended which it may have forgotten.
    pool.acquire_with(patient()).await.expect("granted").release().await.expect("its own");
    let greedy: Vec<_> = (0..8)
        .map(|_| {
            let pool = pool.clone();
            let three = AcquireOptions { count: Some(3), ..within(30_000) };
            tokio::spawn(async move {
                for lease in pool.acquire_many_with(three).await.expect("served") {
                    lease.release().await.expect("its own");
                }
            })
        })
        .collect();
    eventually("they wait", async || pool.statistics().waiting == 8).await;
    // Those who come one after the other, and those who come at once.
    for _ in 0..3 {
        let (outcome, took) = soon(Duration::from_secs(12), "a free one", pool.acquire_with(patient())).await;
        outcome.expect("free").release().await.expect("its own");
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
    let modest: Vec<_> = (0..20)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move {
                pool.acquire_with(patient()).await.expect("served").release().await.expect("its own");
            })
        })
        .collect();
    for caller in modest {
        soon(Duration::from_secs(4), "those who want one", caller).await.0.expect("no panic");
    }
    // Of what can be had now they hear at once, and one after the other they have it.
    pool.enable("c").await.expect("enabled");
    for caller in greedy {
        soon(Duration::from_secs(4), "those who want three", caller).await.0.expect("no panic");
    }
}

// A name that nobody has is not waited for, however many wait for another one in the same process.
async fn who_waits_for_one_lock_is_in_nobody_elses_way(handle: &Handle) {
    let (busy, free) = (Prize::name(handle, "busy"), Prize::name(handle, "free"));
    let won = busy.win().await.expect("free");
    let mut arrivals = Arrivals::default();
    for _ in 0..12 {
        arrivals.come(&busy, 0).await;
    }
    let (outcome, took) = soon(Duration::from_secs(4), "the free one", free.win()).await;
    let other = outcome.expect("free");
    assert!(took < Duration::from_secs(1), "{took:?}");
    // Nor is one that is held, once it is given back.
    let waits = tokio::spawn({
        let free = free.clone();
        async move { free.win().await.map(drop) }
    });
    tokio::time::sleep(Duration::from_millis(100)).await;
    other.give_back().await.expect("its own");
    let (outcome, took) = soon(Duration::from_secs(4), "the next", waits).await;
    outcome.expect("no panic").expect("given back");
    assert!(took < Duration::from_secs(1), "{took:?}");
    won.give_back().await.expect("its own");
    assert_eq!(arrivals.in_order().await, Vec::from_iter(0..12));
}

on_both!(
    who_comes_first_is_served_first_whoever_releases,
    who_is_more_urgent_is_served_first_and_who_is_least_last,
    who_waits_long_outweighs_who_is_more_urgent,
    who_grows_older_is_served_however_many_go_before_it,
    who_names_a_slot_is_served_in_a_crowd,
    who_wants_more_than_can_be_had_is_in_nobodys_way,
);

async fn lines_of_locks(place: Place) {
    let handles = [place.handle(), place.handle()];
    // A fresh server grants no lock until those have ended that it may have forgotten.
    Prize::name(&handles[0], "first").win().await.expect("granted").give_back().await.expect("its own");
    who_comes_first_to_a_lock_is_served_first(&handles).await;
    who_waits_for_one_lock_is_in_nobody_elses_way(&handles[0]).await;
}

mod locks {
    on_both!(lines_of_locks);
    use super::lines_of_locks;
}
