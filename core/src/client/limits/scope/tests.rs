//! Limits over stores that have to be waited for, and that can be out of reach.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use super::super::elsewhere::{Elsewhere, ledger};
use super::*;
use crate::client::TokioRuntime;
use crate::client::courier::QUEUE;
use crate::limits::{Act, Amount, Answer, Envelope, Rule};
use crate::store::{StoreError, StoreLedger};

const HOUR: Micros = 3_600 * SECOND;

fn runtime() -> TokioRuntime {
    TokioRuntime::new(tokio::runtime::Handle::current())
}

fn scope<R: Runtime, F, A>(runtime: R, response_timeout: Micros, store: F) -> Arc<Scope<R>>
where
    F: Fn(Envelope) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Answer, StoreError>> + Send + 'static,
{
    Scope::new(Box::new(Elsewhere(store)), runtime, response_timeout)
}

/// A scope whose store does not answer while that is so.
fn hanging(response_timeout: Micros) -> (Arc<Scope<TokioRuntime>>, Arc<AtomicBool>) {
    let (hangs, ledger) = (Arc::new(AtomicBool::new(false)), ledger());
    let sticks = hangs.clone();
    let scope = scope(runtime(), response_timeout, move |envelope| {
        let (ledger, sticks) = (ledger.clone(), sticks.clone());
        async move {
            if sticks.load(SeqCst) {
                std::future::pending::<()>().await;
            }
            StoreLedger::charge(&ledger, &envelope).await
        }
    });
    (scope, hangs)
}

fn limit<R: Runtime>(scope: &Arc<Scope<R>>, name: &str, rule: Rule, outage: Outage) -> Limit<R> {
    if outage == Outage::Open {
        scope.alone.count();
    }
    Limit::new(scope.clone(), Name::new(name).unwrap(), rule, outage)
}

fn lifetime() -> Rule {
    Rule::Lifetime { max: 10u64.into() }
}

async fn shortly<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("in time")
}

// Its holder was told nothing: at the end of a block an outage is no error.
#[tokio::test]
async fn what_was_in_flight_for_too_long_is_lost_also_where_no_store_says_so() {
    let (scope, hangs) = hanging(SECOND / 20);
    let flights = limit(&scope, "flights", Rule::InFlight { max: 10 }, Outage::Closed);
    let spend = limit(&scope, "spend", lifetime(), Outage::Closed);
    let both = Limit::group([&flights, &spend]).unwrap();
    for (limit, ttl, code) in [
        (&flights, 1, Code::Lost),
        (&both, 1, Code::Lost),
        (&flights, HOUR, Code::StoreUnavailable),
        (&spend, 1, Code::StoreUnavailable),
    ] {
        for gives_back in [false, true] {
            let ttl = Duration::from_micros(ttl);
            let reserved = shortly(limit.reserve(1u64, ttl)).await.unwrap().unwrap();
            hangs.store(true, SeqCst);
            let end = async { if gives_back { reserved.refund().await } else { reserved.commit().await } };
            let error = shortly(end).await.unwrap_err();
            // Whether it was given back is not known: it may have been, to the last.
            let code = if gives_back { Code::StoreUnavailable } else { code };
            assert_eq!(error.code(), code, "{limit:?} {gives_back}");
            hangs.store(false, SeqCst);
        }
    }
}

// It was told that the store is busy, of which nobody asked anything.
#[tokio::test]
async fn an_open_limit_is_judged_alone_where_too_many_wait_for_the_store() {
    let (scope, hangs) = hanging(HOUR);
    let rule = Rule::Refill { max: 10, period: HOUR };
    let (open, closed) =
        (limit(&scope, "open", rule, Outage::Open), limit(&scope, "closed", rule, Outage::Closed));
    assert!(shortly(open.increment(4u64)).await.unwrap());
    hangs.store(true, SeqCst);
    let look = || Request { act: Act::Peek, charges: Vec::new() };
    for _ in 0..QUEUE + 10_000 {
        scope.carrier.tell(look());
        if scope.carrier.waiting() >= QUEUE {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(shortly(closed.take(1u64)).await.unwrap_err().code(), Code::Busy);
    let answer = shortly(open.take(6u64)).await.unwrap();
    assert_eq!((answer.allowed, answer.said, answer.remaining), (true, Said::Outage, Amount::ZERO));
    assert!(!shortly(open.increment(1u64)).await.unwrap());
}
