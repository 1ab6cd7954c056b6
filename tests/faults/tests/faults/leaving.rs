//! Callers that leave before it is their turn, or as it comes: nothing of them stays behind, and nobody waits for them.

use std::time::Duration;

use leasehold::Code;
use leasehold_faults::{Place, Prize, eventually, soon, tickets};
use tokio::task::JoinHandle;

const PROCESSES: usize = 20;
const CALLERS: usize = 50;

/// A thousand callers, some of each process with tickets.
async fn a_thousand(prizes: &[Prize]) -> Vec<JoinHandle<()>> {
    let caller = |prize: &Prize| {
        let prize = prize.clone();
        tokio::spawn(async move {
            // Whoever is served as it is sent away keeps it: nobody else may have it then.
            drop(prize.win().await);
        })
    };
    let callers = prizes.iter().flat_map(|prize| (0..CALLERS).map(move |_| caller(prize))).collect();
    for prize in prizes {
        let Prize::Slot(pool) = prize else { panic!("a slot") };
        eventually("they wait", async || pool.statistics().waiting == CALLERS as u64).await;
    }
    callers
}

/// A caller behind all the others, and how long it waits after they have left; they are called meanwhile, or not.
async fn left_behind(prizes: &[Prize], last: &Prize, called: bool, place: &Place) -> Duration {
    let won = last.win().await.expect("free");
    let callers = a_thousand(prizes).await;
    let waits = tokio::spawn({
        let last = last.clone();
        async move { last.win().await.expect("served").give_back().await.expect("its own") }
    });
    let Prize::Slot(pool) = last else { panic!("a slot") };
    eventually("the last waits", async || pool.statistics().waiting == 1).await;
    if place.is_server() {
        // The first few of each, and the last.
        eventually("they have tickets", async || tickets(place.server()) > PROCESSES * 8).await;
    }
    // On a busy machine it took longer until they waited than that lasted.
    let give_back = async || {
        if let Err(error) = won.give_back().await {
            assert_eq!(error.code(), Code::Lost, "{error}");
        }
    };
    if called {
        give_back().await;
        callers.iter().for_each(JoinHandle::abort);
    } else {
        callers.iter().for_each(JoinHandle::abort);
        give_back().await;
    }
    let (outcome, took) = soon(Duration::from_secs(15), "the last", waits).await;
    outcome.expect("no panic");
    for caller in callers {
        assert!(caller.await.map_or_else(|gone| gone.is_cancelled(), |()| true), "nobody panics");
    }
    if place.is_server() {
        eventually("nothing is left of them", async || tickets(place.server()) == 0).await;
    }
    took
}

async fn a_thousand_that_leave_leave_nothing_behind(place: Place) {
    let mut prizes = Vec::new();
    for _ in 0..PROCESSES {
        prizes.push(Prize::slot(&place.handle()).await);
    }
    let last = Prize::slot(&place.handle()).await;
    drop(last.win().await.expect("granted"));
    let mut times = Vec::new();
    for round in 0..6 {
        times.push(left_behind(&prizes, &last, round % 2 == 0, &place).await);
    }
    times.sort_unstable();
    println!("behind a thousand that leave: {times:?}");
    // Each ticket that stayed would cost a second.
    assert!(times[times.len() / 2] < Duration::from_millis(500), "{times:?}");
    assert!(times[times.len() - 1] < Duration::from_secs(3), "{times:?}");
}

on_both!(a_thousand_that_leave_leave_nothing_behind);
