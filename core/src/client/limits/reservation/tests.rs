//! Renewals on a clock that is moved, over a store that can be out of reach.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::SeqCst};

use super::*;
use crate::SECOND;
use crate::client::limits::elsewhere::{Elsewhere, ledger_of};
use crate::client::limits::{Limit, Outage};
use crate::id::Name;
use crate::limits::Envelope;
use crate::runtime::TokioRuntime;
use crate::runtime::warped::Warped;
use crate::store::ledger::MemoryLedger;
use crate::store::{Certainty, MemoryStore, StoreError, StoreLedger};

const MINUTE: Micros = 60 * SECOND;
const HOUR: Micros = 60 * MINUTE;
const ANSWERS: u8 = 0;
const HANGS: u8 = 1;
/// It performs the next envelope, and its reply does not arrive.
const LOSES: u8 = 2;

/// A scope, the time that has passed for it and its store, and what that does.
struct Place {
    scope: Arc<Scope<Warped>>,
    ahead: Arc<AtomicU64>,
    does: Arc<AtomicU8>,
    store: Arc<Mutex<Arc<MemoryLedger>>>,
}

fn place() -> Place {
    let (ahead, does) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU8::new(ANSWERS)));
    let store = Arc::new(Mutex::new(fresh(&ahead)));
    let (kept, doing, clock) = (store.clone(), does.clone(), ahead.clone());
    let ledger = Elsewhere(move |envelope: Envelope| {
        let (ledger, doing) = (kept.lock().unwrap().clone(), doing.clone());
        async move {
            if doing.load(SeqCst) == HANGS {
                std::future::pending::<()>().await;
            }
            let answer = StoreLedger::charge(&ledger, &envelope).await;
            match doing.compare_exchange(LOSES, ANSWERS, SeqCst, SeqCst) {
                Ok(_) => Err(StoreError::new(Certainty::Unknown, "the reply is lost")),
                Err(_) => answer,
            }
        }
    });
    let runtime = Warped::new().clock(move |time| time + clock.load(SeqCst));
    Place { scope: Scope::new(Box::new(ledger), runtime, SECOND / 5), ahead, does, store }
}

/// What a store begins with.
fn fresh(ahead: &Arc<AtomicU64>) -> Arc<MemoryLedger> {
    let (host, ahead) = (TokioRuntime::store_clock(), ahead.clone());
    ledger_of(&MemoryStore::new(Arc::new(move || host() + ahead.load(SeqCst))), "limits")
}

impl Place {
    fn limit(&self, name: &str, rule: Rule) -> Limit<Warped> {
        Limit::new(self.scope.clone(), Name::new(name).unwrap(), rule, Outage::Closed)
    }

    fn flights(&self) -> Limit<Warped> {
        self.limit("flights", Rule::InFlight { max: 10 })
    }

    fn spend(&self) -> Limit<Warped> {
        self.limit("spend", Rule::Refill { max: 10, period: 1_000 * HOUR })
    }

    fn pass(&self, time: Micros) {
        self.ahead.fetch_add(time, SeqCst);
    }

    fn does(&self, what: u8) {
        self.does.store(what, SeqCst);
    }
}

async fn reserved(limit: &Limit<Warped>) -> Reservation<Warped> {
    shortly(limit.reserve(3u64, Duration::from_micros(HOUR))).await.unwrap().unwrap()
}

async fn used(limit: &Limit<Warped>) -> u64 {
    shortly(limit.used()).await.unwrap().saturating_u64()
}

async fn shortly<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("in time")
}

fn minutes(minutes: u64) -> Duration {
    Duration::from_micros(minutes * MINUTE)
}

/// Whether so much is left, less what clocks may differ by, and what the test itself takes.
fn lasts(reservation: &Reservation<Warped>, time: u64) -> bool {
    let left = reservation.remaining();
    left <= minutes(time) && left + minutes(2 + time / 50) > minutes(time)
}

// It ended at the time to live that it was reserved with: a job of unknown length needed that of the longest one.
#[tokio::test(start_paused = true)]
async fn what_is_in_flight_is_prolonged() {
    let place = place();
    let (flights, spend) = (place.flights(), place.spend());
    let both = reserved(&Limit::group([&flights, &spend]).unwrap()).await;
    place.pass(50 * MINUTE);
    assert!(lasts(&both, 10));
    shortly(both.renew()).await.unwrap();
    assert!(lasts(&both, 60), "{:?}", both.remaining());
    shortly(both.renew_for(minutes(1))).await.unwrap();
    assert!(lasts(&both, 60), "never shorter");
    place.pass(50 * MINUTE);
    assert_eq!((used(&flights).await, used(&spend).await), (3, 3));
    shortly(both.renew_for(minutes(120))).await.unwrap();
    assert!(lasts(&both, 120));
    for wrong in [Duration::ZERO, Duration::from_micros(MAX_RESERVATION + 1), Duration::MAX] {
        let error = both.renew_for(wrong).await.unwrap_err();
        assert_eq!((error.code(), error.field()), (Code::InvalidArgument, Some("ttl")));
    }
    place.pass(110 * MINUTE);
    assert!(lasts(&both, 10));
    shortly(both.refund()).await.unwrap();
    assert_eq!((used(&flights).await, used(&spend).await), (0, 0));
}

// It took a commit and a refund, of which the second could come twice, or into the next period.
#[tokio::test(start_paused = true)]
async fn of_what_cost_less_the_rest_is_given_back() {
    let place = place();
    let (flights, spend) = (place.flights(), place.spend());
    let requests = place.limit("requests", Rule::Lifetime { max: 100u64.into() });
    let all = Limit::group([&flights, &spend, &requests.at_cost(2u64)]).unwrap();
    let left = async || [used(&flights).await, used(&spend).await, used(&requests).await];
    let first = reserved(&all).await;
    assert_eq!(left().await, [3, 3, 2]);
    place.does(LOSES);
    shortly(first.commit_at(1u64)).await.unwrap();
    assert_eq!(left().await, [0, 1, 2]);
    // By its id, and never more than was reserved.
    for (cost, then) in [(0u64, [0, 1, 4]), (9, [0, 4, 6])] {
        let id = reserved(&all).await.hand_over();
        for _ in 0..2 {
            shortly(all.commit_reservation_at(&id, cost)).await.unwrap();
            assert_eq!(left().await, then);
        }
    }
    let late = reserved(&spend).await;
    place.pass(61 * MINUTE);
    shortly(late.commit_at(1u64)).await.unwrap();
    assert_eq!(used(&spend).await, 7, "its time had passed");
}

#[tokio::test(start_paused = true)]
async fn where_nothing_was_charged_nothing_is_renewed() {
    let none = Limit::<Warped>::group([None::<&Limit<Warped>>]).unwrap();
    let reservation = reserved(&none).await;
    reservation.renew().await.unwrap();
    reservation.renew_for(minutes(120)).await.unwrap();
    assert_eq!(reservation.remaining(), minutes(60));
    assert_eq!(reservation.renew_for(Duration::ZERO).await.unwrap_err().field(), Some("ttl"));
}

#[tokio::test(start_paused = true)]
async fn a_renewal_whose_reply_is_lost_is_asked_for_again() {
    let place = place();
    let flights = reserved(&place.flights()).await;
    place.pass(50 * MINUTE);
    place.does(LOSES);
    shortly(flights.renew()).await.unwrap();
    assert!(lasts(&flights, 60));
    shortly(flights.commit()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn in_an_outage_it_lasts_as_before_and_is_renewed_later() {
    let place = place();
    let flights = reserved(&place.flights()).await;
    place.pass(50 * MINUTE);
    place.does(HANGS);
    let error = shortly(flights.renew()).await.unwrap_err();
    assert_eq!(error.code(), Code::StoreUnavailable);
    assert!(lasts(&flights, 10));
    place.does(ANSWERS);
    shortly(flights.renew()).await.unwrap();
    assert!(lasts(&flights, 60));
    // That it was in flight for too long, no store has to say. What has nothing in flight may still be there.
    let spend = reserved(&place.spend()).await;
    place.pass(61 * MINUTE);
    place.does(HANGS);
    let error = shortly(flights.renew()).await.unwrap_err();
    assert!(error.code() == Code::Lost && error.message().contains("time has passed"), "{error}");
    assert_eq!(shortly(spend.renew()).await.unwrap_err().code(), Code::StoreUnavailable);
}

#[tokio::test(start_paused = true)]
async fn its_holder_hears_that_it_is_counted_no_more() {
    let place = place();
    let (flights, spend) = (place.flights(), place.spend());
    let forget = async || *place.store.lock().unwrap() = fresh(&place.ahead);
    let gone = "is counted no more";
    for (limit, how, says) in [
        (&flights, "reset", gone),
        (&flights, "forgotten", gone),
        (&flights, "committed", "was committed before"),
        (&flights, "given back", "was given back before"),
        (&flights, "over", "time has passed"),
        (&spend, "forgotten", "cannot be given back"),
        (&spend, "over", "stays charged"),
    ] {
        let reservation = reserved(limit).await;
        match how {
            "reset" => shortly(limit.reset()).await.unwrap(),
            "forgotten" => forget().await,
            "committed" => shortly(limit.commit_reservation(&reservation.id())).await.unwrap(),
            "given back" => shortly(limit.refund_reservation(&reservation.id())).await.unwrap(),
            _ => place.pass(HOUR),
        }
        let error = shortly(reservation.renew()).await.unwrap_err();
        assert_eq!(error.code(), Code::Lost, "{how}");
        assert!(error.message().contains(says), "{how}: {error}");
        assert_eq!(reservation.remaining(), Duration::ZERO, "{how}");
        // Whoever ends it hears the same, and not that its time has passed if it has not.
        let ended = shortly(reservation.commit()).await.err().map(|error| error.message().to_owned());
        let passed = ended.as_ref().is_some_and(|message| message.contains("time has passed"));
        assert_eq!(passed, how == "over" && limit.names().eq(flights.names()), "{how}: {ended:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_reservation_is_renewed_by_its_id_by_any_process() {
    let place = place();
    let (flights, spend) = (place.flights(), place.spend());
    let id = reserved(&flights).await.hand_over();
    for _ in 0..3 {
        place.pass(50 * MINUTE);
        shortly(flights.renew_reservation(&id, minutes(60))).await.unwrap();
        assert_eq!(used(&flights).await, 3, "it does not land as that is done");
    }
    for wrong in [Duration::ZERO, Duration::MAX] {
        assert_eq!(flights.renew_reservation(&id, wrong).await.unwrap_err().field(), Some("ttl"));
    }
    for (limit, id) in [(&spend, &*id), (&flights, "x")] {
        assert_eq!(limit.renew_reservation(id, minutes(1)).await.unwrap_err().field(), Some("id"));
    }
    place.pass(61 * MINUTE);
    let error = shortly(flights.renew_reservation(&id, minutes(60))).await.unwrap_err();
    assert!(error.code() == Code::Lost && error.message().contains("not known any more"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn one_that_is_ended_while_it_is_renewed_has_ended() {
    let place = place();
    let flights = place.flights();
    for sends_first in [true, false] {
        let reservation = reserved(&flights).await;
        let renewal = reservation.renew_by(None);
        let renewed = if sends_first {
            let (renewed, ended) = shortly(async { tokio::join!(renewal, reservation.commit()) }).await;
            ended.unwrap();
            renewed
        } else {
            shortly(reservation.commit()).await.unwrap();
            shortly(renewal).await
        };
        assert!(renewed.is_ok() == sends_first || renewed.is_err_and(|error| error.code() == Code::Lost));
        assert_eq!(used(&flights).await, 0);
    }
}
