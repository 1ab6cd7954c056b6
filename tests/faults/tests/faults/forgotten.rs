//! Limits of money on servers that forget: a process that lives has seen what it used, and overspends nothing.

use std::time::{Duration, Instant};

use leasehold::client::{LimitKind, LimitOptions};
use leasehold::limits::Amount;
use leasehold::{Micros, NativeLimit as Money, SECOND};
use leasehold_faults::{Handle, Place, eventually, handle_with};

use super::failover::Pair;

const HOUR: Micros = 3_600 * SECOND;
const MAX: u64 = 100;

fn opened(url: &str) -> Handle {
    handle_with(url, "faults", 2_000.0).expect("a good address")
}

/// A budget, of a period that does not end now, and a lifetime.
fn of_money(handle: &Handle) -> [Money; 2] {
    // Half a period from here.
    let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a time");
    let offset = (wall.as_micros() as Micros + 12 * HOUR) % (24 * HOUR);
    [
        handle
            .limit_with(
                "spend",
                &LimitOptions { offset, ..LimitOptions::new(MAX, 24 * HOUR).kind(LimitKind::Budget) },
            )
            .expect("a good limit"),
        handle
            .limit_with("spend", &LimitOptions::new(MAX, 0).kind(LimitKind::Lifetime))
            .expect("a good limit"),
    ]
}

/// How many of so many are allowed, by callers that take at the same time; a store that does not answer is asked again.
async fn takes(limit: &Money, callers: u64, each: u64) -> u64 {
    let take = |limit: Money| async move {
        let (mut allowed, begun) = (0, Instant::now());
        let mut left = each;
        while left > 0 {
            match limit.take(1u64).await {
                Ok(answer) => (allowed, left) = (allowed + u64::from(answer.allowed), left - 1),
                Err(error) => assert!(begun.elapsed() < Duration::from_secs(30), "{error}"),
            }
        }
        allowed
    };
    let tasks: Vec<_> = (0..callers).map(|_| tokio::spawn(take(limit.clone()))).collect();
    let mut allowed = 0;
    for task in tasks {
        allowed += task.await.expect("no panic");
    }
    allowed
}

async fn used(limit: &Money) -> Amount {
    limit.used().await.expect("the store answers")
}

/// Spends a part, has the server forget it, and spends on: with the same process, and one that has seen nothing.
async fn overspends_nothing(url: &str, lose: impl AsyncFn()) {
    let (living, late) = (opened(url), opened(url));
    let (living, late) = (of_money(&living), of_money(&late));
    for limit in &living {
        assert_eq!(takes(limit, 6, 10).await, 60);
    }
    lose().await;
    for (limit, late) in living.iter().zip(&late) {
        eventually("the store answers", async || limit.peek(1u64).await.is_ok()).await;
        assert_eq!(used(limit).await, 60u64.into());
        assert_eq!(takes(limit, 6, 20).await, 40, "60 were allowed before");
        // What one process has seen, all are told.
        let refused = late.take(1u64).await.expect("answered");
        assert!(!refused.allowed && refused.remaining == Amount::ZERO, "{refused:?}");
        assert_eq!(refused.limit.expect("a name").as_str(), "spend");
        // And what is reset stays so.
        late.reset().await.expect("reset");
        assert_eq!(used(limit).await, Amount::ZERO);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_restarted_empty_is_told_what_was_used() {
    let place = Place::redis();
    overspends_nothing(place.url(), async || {
        place.server().kill().expect("killed");
        place.server().restart().expect("restarted");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_was_flushed_is_told_what_was_used() {
    let place = Place::redis();
    overspends_nothing(place.url(), async || {
        place.server().command(&["FLUSHALL"]).expect("a reply");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_promoted_replica_that_lagged_is_told_what_was_used() {
    let pair = Pair::start();
    let early = of_money(&opened(&pair.front.url()));
    for limit in &early {
        limit.take(0u64).await.expect("taken");
        assert!(limit.increment(1u64).await.expect("taken"));
        limit.refund(1u64).await.expect("given back");
    }
    pair.in_step().await;
    pair.link.cut();
    overspends_nothing(&pair.front.url(), async || pair.fail_over()).await;
}

// Envelopes are under way as the server forgets: what the one charged is not seen by the other, which was made before.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_forgets_again_and_again_under_load_is_told_what_was_used() {
    let place = Place::redis();
    for round in 0..30 {
        let handle = opened(place.url());
        let budget = handle
            .limit_with(&format!("spend:{round}"), &LimitOptions::new(MAX, 0).kind(LimitKind::Lifetime))
            .expect("a good limit");
        let taking = tokio::spawn({
            let budget = budget.clone();
            async move { takes(&budget, 60, 10).await }
        });
        while !taking.is_finished() {
            place.server().command(&["FLUSHALL"]).expect("a reply");
            tokio::time::sleep(Duration::from_micros(300)).await;
        }
        let allowed = taking.await.expect("no panic");
        assert!(allowed <= MAX, "round {round}: {allowed} of {MAX}");
        assert!(used(&budget).await >= allowed.into());
    }
}

// Each process has seen a part, and what is charged before they are heard counts too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_several_processes_have_seen_adds_up() {
    let place = Place::redis();
    let handles: Vec<Handle> = (0..4).map(|_| opened(place.url())).collect();
    let budgets: Vec<Money> = handles.iter().map(|handle| of_money(handle)[0].clone()).collect();
    for budget in &budgets {
        assert_eq!(takes(budget, 1, 10).await, 10);
        place.server().command(&["FLUSHALL"]).expect("a reply");
    }
    for budget in &budgets {
        budget.peek(1u64).await.expect("answered");
    }
    assert_eq!(used(&budgets[0]).await, 40u64.into());
    let spent: u64 = takes(&budgets[0], 2, 50).await + takes(&budgets[3], 2, 50).await;
    assert_eq!(spent, 60);
}
