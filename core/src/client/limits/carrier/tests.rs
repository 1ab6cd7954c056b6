//! The carrier over stores that fail as stores do: slow, stuck, forgetful, or with a reply lost.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::sync::Notify;

use super::super::elsewhere::{Elsewhere, ledger, ledger_of};
use super::Carrier;
use crate::client::pool::courier::QUEUE;
use crate::error::Code;
use crate::id::Name;
use crate::limits::{Act, Answer, Charge, Envelope, Ledger, Moment, Reply, Request, Rule, Settlement};
use crate::runtime::warped::Warped;
use crate::runtime::{TokioRuntime, idle, tasks};
use crate::store::ledger::MemoryLedger;
use crate::store::{Certainty, MemoryStore, StoreError, StoreLedger};
use crate::{Micros, SECOND};

const HOUR: Micros = 3_600 * SECOND;

/// Far from the edges of a clock.
const TODAY: Micros = 1_700_000_000 * SECOND;

fn carrier<F, A>(response_timeout: Micros, store: F) -> Arc<Carrier<TokioRuntime>>
where
    F: Fn(Envelope) -> A + Send + Sync + 'static,
    A: Future<Output = Result<Answer, StoreError>> + Send + 'static,
{
    let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
    Carrier::new(Box::new(Elsewhere(store)), runtime, response_timeout, Arc::default())
}

/// Of one limit, 10 for ever.
fn request(act: Act, cost: u64) -> Request {
    let rule = Rule::Lifetime { max: 10u64.into() };
    Request {
        act,
        charges: vec![Charge { limit: Name::new("spend").unwrap(), rule, cost: cost.into(), open: false }],
    }
}

fn judged(reply: Reply) -> (bool, u64) {
    match reply {
        Reply::Judged(verdict) => (verdict.allowed, verdict.remaining.saturating_u64()),
        reply @ Reply::Settled(_) => panic!("{reply:?}"),
    }
}

fn left(ledger: &Arc<MemoryLedger>) -> u64 {
    judged(ledger.charge_now(&request(Act::Peek, 0)).unwrap()).1
}

async fn shortly<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("in time")
}

async fn until_left(ledger: &Arc<MemoryLedger>, wanted: u64) {
    shortly(async {
        while left(ledger) != wanted {
            idle().await;
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_was_reserved_for_one_who_leaves_as_the_reply_lies_there_is_given_back() {
    let ledger = ledger();
    let store = ledger.clone();
    let carrier = carrier(SECOND, move |envelope| {
        let store = store.clone();
        async move { store.charge(&envelope).await }
    });
    let mut asking = Box::pin(carrier.ask(request(Act::Reserve { id: 1, ttl: HOUR, waited: None }, 3)));
    assert_eq!((&mut asking).now_or_never(), None);
    until_left(&ledger, 7).await;
    drop(asking);
    until_left(&ledger, 10).await;
}

// Of two event loops that share a handle one stood still, and what the other asked for was told that the store did not answer.
#[tokio::test(start_paused = true)]
async fn what_a_host_holds_back_holds_up_no_other_thread() {
    let store = ledger();
    let carrier = carrier(10 * SECOND, move |envelope| {
        let store = store.clone();
        async move { store.charge(&envelope).await }
    });
    let mut held = Box::pin(carrier.ask(request(Act::Peek, 0)));
    assert_eq!(tasks::holding(|| (&mut held).now_or_never()), None);
    shortly(carrier.ask(request(Act::Peek, 0))).await.unwrap();
    shortly(held).await.unwrap();
    tasks::let_go();
}

// It was charged twice: a store that answered "too late" was taken to have done nothing.
#[tokio::test(start_paused = true)]
async fn what_a_jump_of_the_clock_leaves_unknown_is_not_charged_again() {
    let (wall, loses) = (Arc::new(AtomicU64::new(TODAY)), Arc::new(AtomicBool::new(false)));
    let clock = wall.clone();
    let ledger = ledger_of(&MemoryStore::new(Arc::new(move || clock.load(Relaxed))), "limits");
    let (store, losing) = (ledger.clone(), loses.clone());
    // Its clock jumps as a reply is lost, and what it remembers of envelopes is over.
    let carrier = carrier(SECOND, move |envelope| {
        let (store, wall, losing) = (store.clone(), wall.clone(), losing.clone());
        async move {
            let answer = store.charge(&envelope).await;
            if losing.swap(false, Relaxed) {
                wall.fetch_add(100 * SECOND, Relaxed);
                return Err(StoreError::new(Certainty::Unknown, "the reply is lost"));
            }
            answer
        }
    });
    // It knows the store's time from now on.
    carrier.ask(request(Act::Take, 1)).await.unwrap();
    loses.store(true, Relaxed);
    let error = shortly(carrier.ask(request(Act::Take, 2))).await.unwrap_err();
    assert_eq!((error.code(), left(&ledger)), (Code::StoreUnavailable, 7));
    // A reservation of which nobody knows is given back.
    loses.store(true, Relaxed);
    let error =
        shortly(carrier.ask(request(Act::Reserve { id: 1, ttl: HOUR, waited: None }, 3))).await.unwrap_err();
    assert_eq!(error.code(), Code::StoreUnavailable);
    until_left(&ledger, 7).await;
    // To end one twice does no harm.
    carrier.ask(request(Act::Reserve { id: 2, ttl: HOUR, waited: None }, 3)).await.unwrap();
    loses.store(true, Relaxed);
    let ended = shortly(carrier.ask(request(Act::GiveBack { id: 2 }, 3))).await.unwrap();
    assert_eq!((ended, left(&ledger)), (Reply::Settled(Settlement::Before { given_back: true }), 7));
}

// It was taken for news that the next period had begun, and what others had spent in that was given back.
#[tokio::test(start_paused = true)]
async fn a_refund_that_comes_when_its_period_is_over_gives_back_nothing_of_the_next() {
    let wall = Arc::new(AtomicU64::new(TODAY));
    let clock = wall.clone();
    let ledger = ledger_of(&MemoryStore::new(Arc::new(move || clock.load(Relaxed))), "limits");
    let process = || {
        let store = ledger.clone();
        carrier(SECOND, move |envelope| {
            let store = store.clone();
            async move { store.charge(&envelope).await }
        })
    };
    let asks = |act: Act, limit: &str, cost: u64| {
        let rule = Rule::Budget { max: 10u64.into(), period: HOUR, offset: 0 };
        let limit = Name::new(limit).unwrap();
        Request { act, charges: vec![Charge { limit, rule, cost: cost.into(), open: false }] }
    };
    let (here, there) = (process(), process());
    assert_eq!(judged(here.ask(asks(Act::Take, "spend", 10)).await.unwrap()), (true, 0));
    wall.fetch_add(HOUR, Relaxed);
    assert_eq!(judged(there.ask(asks(Act::Take, "spend", 10)).await.unwrap()), (true, 0));
    // It knows by now what the time is, and how the limit stood before.
    here.ask(asks(Act::Peek, "other", 0)).await.unwrap();
    assert_eq!(judged(here.ask(asks(Act::Refund, "spend", 10)).await.unwrap()).1, 0);
    assert!(!judged(there.ask(asks(Act::Take, "spend", 1)).await.unwrap()).0);
    assert_eq!(judged(there.ask(asks(Act::Refund, "spend", 4)).await.unwrap()).1, 4, "it took in this one");
}

// Whoever was told that nothing is held by the call, or had left, had it charged for as long as the limit remembers.
#[tokio::test(start_paused = true)]
async fn what_is_reserved_while_the_store_is_stuck_is_given_back_when_it_is_there_again() {
    let ledger = ledger();
    let stuck = Arc::new(AtomicBool::new(true));
    let (store, sticks) = (ledger.clone(), stuck.clone());
    // It performs what it is sent, and answers when it is back.
    let carrier = carrier(SECOND / 20, move |envelope| {
        let (store, sticks) = (store.clone(), sticks.clone());
        async move {
            let answer = store.charge(&envelope).await;
            if sticks.load(Relaxed) { std::future::pending().await } else { answer }
        }
    });
    for leaves in [false, true] {
        stuck.store(true, Relaxed);
        let mut asking = Box::pin(
            carrier.ask(request(Act::Reserve { id: u128::from(leaves), ttl: HOUR, waited: None }, 3)),
        );
        if leaves {
            assert!(tokio::time::timeout(Duration::from_millis(20), &mut asking).await.is_err());
        } else {
            let error = shortly(&mut asking).await.unwrap_err();
            assert!(error.message().contains("nothing is held by this call"), "{error:?}");
        }
        drop(asking);
        assert_eq!(left(&ledger), 7);
        // Longer than anybody waits for it.
        tokio::time::sleep(Duration::from_millis(200)).await;
        stuck.store(false, Relaxed);
        until_left(&ledger, 10).await;
    }
}

// It was dropped half a minute after it had been found to be unknown, or as the store refused it, and stayed charged for good.
#[tokio::test(start_paused = true)]
async fn what_may_be_reserved_for_nobody_is_given_back_after_any_outage_that_it_outlasts() {
    for fails in [Certainty::Unknown, Certainty::NotPerformed, Certainty::Refused] {
        let (ledger, ahead) = (ledger(), Arc::new(AtomicU64::new(0)));
        let (broken, tries) = (Arc::new(AtomicBool::new(false)), Arc::new(Mutex::new(BTreeSet::new())));
        let (store, clock, breaks, sent) = (ledger.clone(), ahead.clone(), broken.clone(), tries.clone());
        // It performs the first envelope, loses the answer, and performs nothing until it is back.
        let store = Elsewhere(move |envelope: Envelope| {
            let (store, breaks) = (store.clone(), breaks.clone());
            if matches!(envelope.requests[0].act, Act::GiveBack { .. }) {
                sent.lock().unwrap().insert(envelope.lane.unwrap().sequence);
            }
            async move {
                if breaks.swap(true, Relaxed) {
                    return Err(StoreError::new(fails, "the network broke"));
                }
                store.charge(&envelope).await?;
                Err(StoreError::new(Certainty::Unknown, "the reply is lost"))
            }
        });
        let runtime = Warped::new().clock(move |time| time + clock.load(Relaxed));
        let carrier = Carrier::new(Box::new(store), runtime, SECOND / 20, Arc::default());
        let reserve = request(Act::Reserve { id: 1, ttl: HOUR, waited: None }, 3);
        let error = shortly(carrier.ask(reserve)).await.unwrap_err();
        assert!(error.message().contains("nothing is held by this call"), "{error:?}");
        // Of a try that ended there is another, under a new number.
        for times in 1..=3 {
            ahead.fetch_add(31 * SECOND, Relaxed);
            shortly(async {
                while tries.lock().unwrap().len() < times {
                    idle().await;
                }
            })
            .await;
        }
        assert_eq!(left(&ledger), 7);
        broken.store(false, Relaxed);
        until_left(&ledger, 10).await;
    }
}

// It stayed charged, and its caller was told that nothing is held by it.
#[tokio::test(start_paused = true)]
async fn what_is_reserved_with_an_answer_that_nobody_can_read_is_given_back() {
    let ledger = ledger();
    let store = ledger.clone();
    let carrier = carrier(SECOND, move |envelope| {
        let store = store.clone();
        async move {
            let answer = store.charge(&envelope).await;
            match envelope.requests[0].act {
                Act::Reserve { .. } => Err(StoreError::new(Certainty::Refused, "what is this?")),
                _ => answer,
            }
        }
    });
    let reserve = request(Act::Reserve { id: 1, ttl: HOUR, waited: None }, 3);
    let error = shortly(carrier.ask(reserve)).await.unwrap_err();
    assert!(error.message().contains("nothing is held by this call"), "{error:?}");
    until_left(&ledger, 10).await;
}

// Both were allowed: the second envelope was made before it was known what the first had charged.
#[tokio::test(start_paused = true)]
async fn what_is_under_way_as_a_store_forgets_overspends_nothing() {
    for reserves in [false, true] {
        let wall = Arc::new(AtomicU64::new(TODAY));
        let store = MemoryStore::new(Arc::new(move || wall.fetch_add(1, Relaxed)));
        let ledgers = [ledger_of(&store, "before"), ledger_of(&store, "after")];
        let (forgot, answers) = (Arc::new(AtomicBool::new(false)), Arc::new(Notify::new()));
        let told = answers.clone();
        // It forgets everything after its first envelope, and keeps that answer back until it is told.
        let carrier = carrier(SECOND, move |envelope| {
            let first = !forgot.swap(true, Relaxed);
            let (ledger, told) = (ledgers[usize::from(!first)].clone(), told.clone());
            async move {
                let answer = ledger.charge(&envelope).await;
                if first {
                    told.notified().await;
                }
                answer
            }
        });
        let ask = |act, cost: u64| {
            let carrier = carrier.clone();
            tokio::spawn(async move { judged(carrier.ask(request(act, cost)).await.unwrap()) })
        };
        let act = |id| if reserves { Act::Reserve { id, ttl: HOUR, waited: None } } else { Act::Take };
        let first = ask(act(1), 6);
        // Another envelope sets out only when the first has been under way for some time.
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert_eq!(shortly(ask(act(2), 6)).await.unwrap(), (true, 4));
        answers.notify_one();
        assert_eq!(shortly(first).await.unwrap(), (false, 0));
        // It is counted, and given back if the store knows what it was: reservations are forgotten.
        let left = if reserves { 0 } else { 4 };
        shortly(async {
            while ask(Act::Peek, 0).await.unwrap().1 != left {
                idle().await;
            }
        })
        .await;
    }
}

// It was dropped where it found the queue full, and stayed charged, or in flight to its deadline.
#[tokio::test(start_paused = true)]
async fn what_concerns_a_reservation_finds_room_where_nothing_else_does() {
    let (ledger, stuck) = (ledger(), Arc::new(AtomicBool::new(false)));
    let (store, sticks, answers) = (ledger.clone(), stuck.clone(), Arc::new(Notify::new()));
    let (told, performed) = (answers.clone(), Arc::new(Mutex::new(Vec::new())));
    let acts = performed.clone();
    let carrier = carrier(HOUR, move |envelope| {
        let (store, sticks, told) = (store.clone(), sticks.clone(), told.clone());
        acts.lock().unwrap().extend(envelope.requests.iter().map(|request| request.act));
        async move {
            if sticks.load(Relaxed) {
                told.notified().await;
            }
            store.charge(&envelope).await
        }
    });
    for id in [1, 2] {
        carrier.ask(request(Act::Reserve { id, ttl: HOUR, waited: None }, 3)).await.unwrap();
    }
    stuck.store(true, Relaxed);
    let mut asking = Vec::new();
    while carrier.waiting() < QUEUE {
        asking.push(carrier.enqueue(request(Act::Peek, 0), Micros::MAX, 0).unwrap());
        idle().await;
    }
    assert_eq!(carrier.ask(request(Act::Peek, 0)).await.unwrap_err().code(), Code::Busy);
    carrier.tell(request(Act::GiveBack { id: 1 }, 3), 0);
    let mut ends = Box::pin(carrier.ask(request(Act::GiveBack { id: 2 }, 3)));
    assert_eq!((&mut ends).now_or_never(), None);
    // What prolongs one too, and neither waits for what waited before.
    let mut renews = Box::pin(carrier.ask(request(Act::Renew { id: 1, ttl: HOUR }, 3)));
    assert_eq!((&mut renews).now_or_never(), None);
    stuck.store(false, Relaxed);
    answers.notify_waiters();
    assert_eq!(shortly(ends).await, Ok(Reply::Settled(Settlement::Done)));
    assert!(shortly(renews).await.is_ok());
    let peeks = performed.lock().unwrap().iter().take_while(|act| !matches!(act, Act::Renew { .. })).count();
    assert!(peeks < QUEUE / 10, "{peeks}");
    until_left(&ledger, 10).await;
}

// It was said to be away, with the advice to look when it is back; and open limits were judged by each process alone. So were the
// last of those who left, as nobody waited behind them any more.
#[cfg(feature = "crowds")]
#[tokio::test(start_paused = true)]
async fn a_store_that_answers_is_not_blamed_where_many_wait_for_it() {
    let store = ledger();
    let carrier = carrier(SECOND / 2, move |envelope| {
        let store = store.clone();
        async move {
            // In time, and never soon.
            tokio::time::sleep(Duration::from_millis(200)).await;
            store.charge(&envelope).await
        }
    });
    let asks = |act| (0..10_000).map(move |_| request(act, 1));
    let asked: Vec<_> = asks(Act::Take).chain(asks(Act::Peek)).collect();
    let answers = futures_util::future::join_all(asked.into_iter().map(|request| carrier.ask(request)));
    let refused = shortly(answers).await.into_iter().filter_map(Result::err);
    let told: BTreeSet<_> =
        refused.map(|error| (error.code().as_str(), error.message().to_owned())).collect();
    let crowded = "so many requests of this process wait that it had no answer in time; ";
    let expected = [
        "it may have been done or not: look when fewer wait",
        "nothing is held by this call, try again later",
    ]
    .map(|so| ("busy", format!("{crowded}{so}")));
    assert_eq!(told, BTreeSet::from(expected));
}

// It was told as done: the server had lost its memory, or been restarted, and so cannot know whether it was done before.
#[tokio::test(start_paused = true)]
async fn what_is_not_given_back_as_its_server_is_another_is_not_told_as_done() {
    let (ledger, server) = (Arc::new(Mutex::new(Ledger::default())), Arc::new(AtomicU64::new(1)));
    let wall = Arc::new(AtomicU64::new(TODAY));
    let [carrier, other] = [(); 2].map(|()| {
        let (ledger, server, wall) = (ledger.clone(), server.clone(), wall.clone());
        carrier(HOUR, move |envelope| {
            let incarnation = format!("{:016}", server.load(Relaxed));
            let moment = Moment { wall: wall.fetch_add(1, Relaxed), incarnation: &incarnation };
            let answer = ledger.lock().unwrap().apply(moment, &envelope);
            async move { Ok(answer) }
        })
    });
    let ask = async |act, cost| carrier.ask(request(act, cost)).await.unwrap();
    let gives_back = async |id| ask(Act::GiveBack { id }, 3).await;
    for id in [1, 2, 3] {
        ask(Act::Reserve { id, ttl: HOUR, waited: None }, 3).await;
    }
    server.store(2, Relaxed);
    assert_eq!(gives_back(1).await, Reply::Settled(Settlement::Gone));
    assert_eq!(judged(ask(Act::Peek, 0).await), (true, 1));
    // It has heard of that now, but others may have given it back before that.
    assert_eq!(gives_back(2).await, Reply::Settled(Settlement::Gone));
    assert_eq!(judged(ask(Act::Peek, 0).await), (true, 1));
    // Of what was reset, by another process, there is nothing to be given back.
    other.ask(request(Act::Reset, 0)).await.unwrap();
    assert_eq!(gives_back(3).await, Reply::Settled(Settlement::Done));
    assert_eq!(judged(ask(Act::Peek, 0).await), (true, 10));
}

// It had never heard of the limit, so that nobody could tell that it had asked before the server lost its memory: 7 was in use, and
// 5 counted.
#[tokio::test(start_paused = true)]
async fn what_a_new_process_gives_back_as_the_server_loses_its_memory_counts_once() {
    let (ledger, wall) = (Arc::new(Mutex::new(Ledger::default())), Arc::new(AtomicU64::new(TODAY)));
    let (store, clock) = (ledger.clone(), wall.clone());
    let perform = move |envelope: &Envelope| {
        let moment = Moment { wall: clock.fetch_add(1, Relaxed), incarnation: "0000000000000001" };
        store.lock().unwrap().apply(moment, envelope)
    };
    let [one, other, third] = [(); 3].map(|()| {
        let perform = perform.clone();
        carrier(HOUR, move |envelope| {
            let answer = perform(&envelope);
            async move { Ok(answer) }
        })
    });
    one.ask(request(Act::Take, 3)).await.unwrap();
    other.ask(request(Act::Take, 5)).await.unwrap();
    let (seen, loses) = (other.clone(), Arc::new(AtomicBool::new(true)));
    let new = carrier(HOUR, move |envelope| {
        let (perform, loses, ledger) = (perform.clone(), loses.clone(), ledger.clone());
        let (seen, third) = (seen.clone(), third.clone());
        async move {
            let answer = perform(&envelope);
            if envelope.requests[0].act == Act::Refund && loses.swap(false, Relaxed) {
                assert_eq!(judged(seen.ask(request(Act::Peek, 0)).await.unwrap()), (true, 5));
                *ledger.lock().unwrap() = Ledger::default();
                third.ask(request(Act::Take, 2)).await.unwrap();
                return Err(StoreError::new(Certainty::Unknown, "the reply was lost"));
            }
            Ok(answer)
        }
    });
    new.ask(request(Act::Refund, 3)).await.unwrap();
    assert_eq!(judged(other.ask(request(Act::Peek, 0)).await.unwrap()), (true, 3));
}

// Of a group of which one had no standing, as in a new day of which nobody had charged anything yet, nothing was given back.
#[tokio::test(start_paused = true)]
async fn what_a_new_process_gives_back_of_a_group_is_given_back_of_those_that_were_charged() {
    let ledger = ledger();
    let [one, new] = [(); 2].map(|()| {
        let store = ledger.clone();
        carrier(HOUR, move |envelope| {
            let store = store.clone();
            async move { store.charge(&envelope).await }
        })
    });
    one.ask(request(Act::Take, 3)).await.unwrap();
    let mut both = request(Act::Refund, 2);
    both.charges.push(Charge { limit: Name::new("idle").unwrap(), ..both.charges[0].clone() });
    assert!(judged(new.ask(both.clone()).await.unwrap()).0);
    assert_eq!(left(&ledger), 9);
    both.charges.remove(0);
    new.ask(both).await.unwrap();
}

// It was sent anew, with what had been heard by then, to a store that knew nothing of the first sending.
#[tokio::test(start_paused = true)]
async fn what_may_have_been_given_back_is_not_given_back_again_by_a_store_for_which_it_comes_too_late() {
    let (ledger, refunds) = (Mutex::new(Ledger::default()), Arc::new(AtomicU64::new(0)));
    let sent = refunds.clone();
    let carrier = carrier(HOUR, move |envelope| {
        let moment = Moment { wall: TODAY, incarnation: "0000000000000001" };
        let answer = ledger.lock().unwrap().apply(moment, &envelope);
        let refund = envelope.requests[0].act == Act::Refund;
        let which = if refund { sent.fetch_add(1, Relaxed) } else { u64::MAX };
        async move {
            match which {
                0 => Err(StoreError::new(Certainty::Unknown, "the reply was lost")),
                1 => Ok(Answer::Stale { now: TODAY + 11 * SECOND }),
                _ => Ok(answer),
            }
        }
    });
    carrier.ask(request(Act::Take, 3)).await.unwrap();
    let error = shortly(carrier.ask(request(Act::Refund, 3))).await.unwrap_err();
    assert_eq!((error.code(), refunds.load(Relaxed)), (Code::StoreUnavailable, 2), "{error}");
}

// It was told that the store had not answered.
#[tokio::test(start_paused = true)]
async fn who_asks_in_a_runtime_that_ended_is_told_so() {
    let other = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let carrier = {
        let _entered = other.enter();
        carrier(60 * SECOND, |_| std::future::pending())
    };
    tokio::task::spawn_blocking(move || drop(other)).await.unwrap();
    for _ in 0..3 {
        let error = shortly(carrier.ask(request(Act::Take, 1))).await.unwrap_err();
        assert_eq!(error.code(), Code::Cancelled, "{error}");
    }
}

// "It may have been done or not: look when the store is back" was said of a take whose store refused the password.
#[tokio::test(start_paused = true)]
async fn of_what_never_reached_the_store_it_is_said_that_nothing_was_done() {
    let told = [
        (Certainty::NotPerformed, "nothing was done"),
        (Certainty::Unknown, "may have been done"),
        #[cfg(feature = "crowds")]
        (Certainty::Barred, "nothing was done"),
        (Certainty::Refused, "may have been done"),
    ];
    for (certainty, said) in told {
        let fails = carrier(SECOND, move |_| async move { Err(StoreError::new(certainty, "no")) });
        let error = fails.ask(request(Act::Take, 1)).await.unwrap_err();
        assert!(error.message().contains(said), "{certainty:?}: {error}");
    }
}
