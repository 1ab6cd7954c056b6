use super::*;
use crate::runtime::alertness::is_parallel;
use crate::runtime::tasks;

// It would cost the host a turn in which there is nothing to do.
#[tokio::test]
async fn who_is_woken_in_a_turn_is_polled_in_it_and_rings_for_no_other() {
    let rung = Arc::new(AtomicU64::new(0));
    let rings = rung.clone();
    let calls = Calls::new(Handle::current(), move || {
        rings.fetch_add(1, SeqCst);
    });
    let (first, next) = (futures_channel::oneshot::channel(), futures_channel::oneshot::channel());
    let begun = calls.begin(async move { first.1.await.is_ok() && next.0.send(()).is_ok() });
    let woken = calls.begin(async move { next.1.await.is_ok() });
    assert!(matches!((begun, woken), (Begun::UnderWay(0), Begun::UnderWay(1))));
    first.0.send(()).expect("it waits");
    assert_eq!(rung.load(SeqCst), 1);
    assert_eq!(calls.turn(), [(0, true), (1, true)]);
    assert_eq!(rung.load(SeqCst), 1);
    let (last, waits) = futures_channel::oneshot::channel::<()>();
    let _ = calls.begin(async move { waits.await.is_err() });
    drop(last);
    assert_eq!(rung.load(SeqCst), 2, "after the turn it rings again");
    let (end, ends) = futures_channel::oneshot::channel();
    let (other, waits) = futures_channel::oneshot::channel::<()>();
    let _ = calls.begin(async move {
        let _ = ends.await;
        drop(other);
        panic!("on purpose");
    });
    let _ = calls.begin(async move { waits.await.is_err() });
    end.send(()).expect("it waits");
    let turn = std::panic::AssertUnwindSafe(|| calls.turn());
    std::panic::catch_unwind(turn).expect_err("a call panics");
    assert_eq!(rung.load(SeqCst), 3, "another turn is to see to the rest");
    assert_eq!(calls.turn(), [(4, true)]);
}

// The loop slept, and it took longer to wake up than a near store to answer.
#[tokio::test]
async fn a_loop_whose_call_has_asked_something_looks_for_the_answer_for_a_moment() {
    let calls = Calls::new(Handle::current(), || {});
    let ask = || {
        let (answer, answered) = futures_channel::oneshot::channel::<()>();
        let _ = calls.begin(async move {
            tasks::spawn(&Handle::current(), async {});
            answered.await.is_ok()
        });
        assert!(calls.turn().is_empty());
        answer
    };
    assert!(!calls.begins_to_look(), "nothing was asked");
    // On a machine that has much to do the first waits may be long.
    let answer = loop {
        ask().send(()).expect("it waits");
        assert_eq!(calls.turn().len(), 1);
        assert!(!calls.begins_to_look() && !calls.looks(), "it was answered");
        let answer = ask();
        if calls.begins_to_look() || !is_parallel() {
            break answer;
        }
        answer.send(()).expect("it waits");
        calls.turn();
    };
    assert!(!calls.begins_to_look(), "it has begun");
    // What is nobody's answer changes nothing.
    let (other, waits) = futures_channel::oneshot::channel::<()>();
    let _ = calls.begin(async move { waits.await.is_ok() });
    other.send(()).expect("it waits");
    assert_eq!(calls.turn().len(), 1);
    while calls.looks() {
        assert!(calls.look(&[], false).is_none());
    }
    drop(answer);
    assert_eq!(calls.turn().len(), 1);
    let _answer = ask();
    assert!(!calls.begins_to_look(), "the answer before took long");
}

#[tokio::test]
async fn who_looks_for_a_call_that_is_given_up_looks_no_more() {
    let calls = Calls::<()>::new(Handle::current(), || {});
    let begin = || {
        let begun = calls.begin(async move {
            tasks::spawn(&Handle::current(), async {});
            std::future::pending().await
        });
        let Begun::UnderWay(number) = begun else { panic!("it is for ever") };
        number
    };
    let ask = || {
        let number = begin();
        assert!(calls.turn().is_empty());
        number
    };
    calls.alertness.waited(Micros::MAX / 2);
    // Before its turn ends, and then after.
    assert!(calls.give_up(begin()));
    assert!(!calls.begins_to_look());
    let number = ask();
    assert_eq!(calls.begins_to_look(), is_parallel());
    assert!(calls.give_up(number));
    assert!(!calls.looks());
    ask();
    assert_eq!(calls.begins_to_look(), is_parallel());
}

// Nothing rang ever after.
#[tokio::test]
async fn a_socket_that_panics_as_it_is_read_ends_no_turn_to_come() {
    struct Panics(Mutex<Option<futures_channel::oneshot::Sender<()>>>);
    impl Watched for Panics {
        fn fd(&self) -> std::ffi::c_int {
            0
        }

        fn readable(&self) -> bool {
            unpoisoned(&self.0).take();
            panic!("on purpose");
        }

        fn has_come(&self) -> bool {
            true
        }
    }
    let rung = Arc::new(AtomicU64::new(0));
    let rings = rung.clone();
    let calls = Calls::new(Handle::current(), move || {
        rings.fetch_add(1, SeqCst);
    });
    let (tell, waits) = futures_channel::oneshot::channel::<()>();
    let _ = calls.begin(async move { waits.await.is_err() });
    let panics = Panics(Mutex::new(Some(tell)));
    let hear = std::panic::AssertUnwindSafe(|| calls.hear(&panics));
    std::panic::catch_unwind(hear).expect_err("it panics");
    assert_eq!(rung.load(SeqCst), 1);
    assert_eq!(calls.turn(), [(0, true)]);
}
