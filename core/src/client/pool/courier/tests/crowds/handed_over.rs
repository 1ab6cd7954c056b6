//! What is given back to who waits for it in the same process: its claim travels along, whenever it comes to see that.

use std::future::Future;
use std::pin::Pin;

use futures_util::FutureExt;

use super::*;
use crate::client::Lease;
use crate::client::faulty::stands_in_line;

type Acquiring<'a> = Pin<Box<dyn Future<Output = Result<Lease<Faulty, TokioRuntime>>> + Send + 'a>>;

/// Who waits now, and has asked; nobody but this has it go on.
async fn waiting(pool: &Pool<Faulty, TokioRuntime>) -> Acquiring<'_> {
    waiting_for(100, pool).await
}

/// Who has waited for so many milliseconds.
async fn waiting_for(time: usize, pool: &Pool<Faulty, TokioRuntime>) -> Acquiring<'_> {
    let before = pool.core.room.len();
    let mut acquiring: Acquiring<'_> = Box::pin(pool.acquire_with(within(60 * SECOND)));
    for _ in 0..time {
        assert!(acquiring.as_mut().now_or_never().is_none());
        idle().await;
    }
    assert_eq!(pool.core.room.len(), before + 1);
    acquiring
}

// It was woken first, and where threads were busy its claim missed the envelope: the store called another for what had come free.
#[tokio::test(start_paused = true)]
async fn the_claim_of_who_waits_travels_with_what_is_given_back() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let pool = process(&store).await;
    let lease = pool.acquire_with(within(0)).await.unwrap();
    let mut waits = waiting(&pool).await;
    let claims = store.count(stands_in_line);
    soon(lease.release()).await.unwrap();
    assert_eq!(store.count(stands_in_line), claims + 1, "nobody had it go on");
    assert!(waits.as_mut().now_or_never().expect("the answer is here").unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn what_was_claimed_for_who_leaves_is_given_back() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let pool = process(&store).await;
    let lease = pool.acquire_with(within(0)).await.unwrap();
    let waits = waiting(&pool).await;
    soon(lease.release()).await.unwrap();
    drop(waits);
    let next = soon(pool.acquire_with(within(SECOND))).await.unwrap();
    // The first after the one that nobody has seen.
    assert!(next.is_held() && pool.core.room.len() == 0);
}

/// Nothing prolonged it, and nobody gave it back: what was granted to a caller that stood still was nobody's for all of its time.
#[tokio::test(start_paused = true)]
async fn what_was_claimed_for_who_stands_still_is_given_back() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let (pool, other) = (process(&store).await, process(&store).await);
    let lease = pool.acquire_with(within(0)).await.unwrap();
    let waits = waiting(&pool).await;
    soon(lease.release()).await.unwrap();
    assert_eq!(other.acquire_with(within(0)).await.unwrap_err().code(), Code::Exhausted, "it has it");
    let next = other.acquire_with(within(2 * SECOND)).await.expect("before it would end");
    next.used(Some(7)).unwrap();
    next.release().await.unwrap();
    // And it goes on, by another name: the one that it had was granted what was given back.
    assert_eq!(soon(waits).await.unwrap().nonce(), Some(7));
}

/// It had never asked itself, and left the ticket behind that it had got: for ten seconds others stood behind it.
#[tokio::test(start_paused = true)]
async fn the_ticket_of_who_leaves_goes_though_it_never_saw_it() {
    let withdraws: fn(&Request) -> bool = |request| matches!(request, Request::Withdraw { .. });
    let store = Faulty::new(TokioRuntime::store_clock());
    let (one, other) = (of_two(&store).await, of_two(&store).await);
    let held = [one.acquire_with(within(0)).await.unwrap(), one.acquire_with(within(0)).await.unwrap()];
    let before = [waiting(&other).await, waiting(&other).await];
    let _first = waiting(&one).await;
    // It has yet to move up.
    let second = waiting_for(3, &one).await;
    let [a, b] = &held;
    let (outcomes, withdrawn) =
        (soon(async { tokio::join!(a.release(), b.release()) }).await, store.count(withdraws));
    outcomes.0.and(outcomes.1).unwrap();
    drop(second);
    soon(store.performs(withdraws, withdrawn)).await;
    for waits in before {
        soon(waits).await.unwrap();
    }
}

async fn of_two(store: &Faulty) -> Pool<Faulty, TokioRuntime> {
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    process_with(store, runtime, &["a", "b"]).await
}
