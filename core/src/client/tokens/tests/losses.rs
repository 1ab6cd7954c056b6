//! What is lost, or said, while a selection is made or ends.

use super::*;
use crate::client::faulty::{DEAD, HUNG, WELL};
use crate::runtime::idle;

/// What comes soon; the machine may be slow.
async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("it ends")
}

// It was looked at only once half of the time to live had passed.
#[tokio::test(start_paused = true)]
async fn what_is_known_to_be_lost_while_the_rest_is_looked_for_is_in_no_selection() {
    let (handle, other) = (opened("known"), opened("known"));
    let keepalive = Keepalive::Every(100 * MILLISECOND);
    let mut options = TokensOptions { ttl: 10 * SECOND, keepalive, ..TokensOptions::default() };
    options.bounds.verify = true;
    let source = Arc::new(Slow(wallet_of(&[("a", 5)]), AtomicUsize::new(0)));
    let wallet = handle.tokens_with("w", source.clone(), options).unwrap();
    let patient = SelectOptions { timeout: Some(60 * SECOND), spender: Some("tx 1".into()), ..euros() };
    let selects = tokio::spawn(async move { wallet.select_with(5u64, patient).await });
    while source.1.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let there = tokens(&other, &source.0);
    assert_eq!(there.release_spender("tx 1").await.unwrap(), 1);
    let selection = selects.await.unwrap().unwrap();
    assert!(selection.is_held() && there.count_locked().await.unwrap() == 1);
    assert_eq!(source.1.load(Ordering::SeqCst), 2, "it began anew");
}

// Who tried once more was told that all was well.
#[tokio::test(start_paused = true)]
async fn who_says_again_that_tokens_are_spent_is_told_what_came_of_it() {
    let (handle, other) = (opened("again-spent"), opened("again-spent"));
    let source = wallet_of(&[("a", 5)]);
    let (here, there) = (tokens(&handle, &source), tokens(&other, &source));
    let named = SelectOptions { spender: Some("tx 1".into()), keepalive: Some(Keepalive::Off), ..euros() };
    let selection = here.select_with(5u64, named).await.unwrap();
    assert_eq!(there.release_spender("tx 1").await.unwrap(), 1);
    for _ in 0..2 {
        let (one, another) = tokio::join!(selection.spent(), selection.spent());
        assert_eq!((code(one), code(another)), (Code::Lost, Code::Lost));
    }
    selection.release().await.unwrap();
}

// What was under way for good kept what was spent in mind for good.
#[tokio::test(start_paused = true)]
async fn a_page_that_nobody_waits_for_any_more_is_not_under_way() {
    let passed = Arc::new(AtomicU64::new(0));
    let here = passed.clone();
    let runtime = Warped::new().clock(move |time| time + here.load(Ordering::SeqCst));
    let store = Faulty::new(TokioRuntime::store_clock());
    let handle = Leasehold::new(store, runtime, OpenOptions::default()).unwrap();
    let silent = |_: PageAsk| std::future::pending::<Result<Page, String>>();
    let wallet = handle.tokens_with("w", Arc::new(silent), TokensOptions::default()).unwrap();
    wallet.hear(Change::Listening, Some("EUR")).unwrap();
    wallet.hear(Change::Spent("a".into()), Some("EUR")).unwrap();
    let select = wallet.select_with(5u64, euros());
    assert!(tokio::time::timeout(Duration::from_millis(20), select).await.is_err());
    passed.store(3_600 * SECOND, Ordering::SeqCst);
    let purse = wallet.wallet.purse(Some(&"EUR".into())).unwrap();
    let mut pool = purse.pool();
    assert!(pool.free(wallet.wallet.core.runtime.now()).exact().is_some_and(Amount::is_zero));
    assert!(pool.is_empty());
}

// It waited for ever where the call was given up that says so.
#[tokio::test(start_paused = true)]
async fn who_waits_for_a_loss_hears_of_the_end_though_the_call_is_given_up_that_brings_it_about() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let wallet = store
        .opened(60 * SECOND)
        .tokens_with("w", Arc::new(wallet_of(&[("a", 5)])), TokensOptions::default())
        .unwrap();
    let selection = Arc::new(wallet.select_with(5u64, euros()).await.unwrap());
    let waits = tokio::spawn({
        let selection = selection.clone();
        async move { selection.lost().await }
    });
    idle().await;
    store.is(HUNG);
    assert!(tokio::time::timeout(Duration::from_millis(10), selection.spent()).await.is_err());
    store.is(WELL);
    let ended = tokio::time::timeout(Duration::from_secs(20), waits).await.expect("it ends").unwrap();
    assert!(ended.is_none(), "{ended:?}");
}

// Whoever waited for the source, or for a store that was gone or had lost its memory, did so until its time was over, with the
// handle closed.
#[tokio::test(start_paused = true)]
async fn a_selection_is_sent_away_as_the_handle_closes_whoever_does_not_answer_it() {
    for silent in ["source", "dead", "hung", "quiet"] {
        let store = Faulty::new(TokioRuntime::store_clock());
        let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
        let handle = Leasehold::new(store.clone(), runtime, OpenOptions::default()).unwrap();
        let pages = Arc::new(AtomicUsize::new(0));
        let source = {
            let (pages, tokens) = (pages.clone(), wallet_of(&[("a", 5), ("b", 5)]));
            move |ask: PageAsk| {
                let hangs = pages.fetch_add(1, Ordering::SeqCst) > 0;
                let page = futures_util::FutureExt::now_or_never(tokens.page(ask)).expect("it is in memory");
                async move { if hangs { std::future::pending().await } else { page } }
            }
        };
        let wallet = handle.tokens_with("w", Arc::new(source), TokensOptions::default()).unwrap();
        let held = wallet.select_with(5u64, euros()).await.unwrap();
        match silent {
            "dead" => store.is(DEAD),
            "hung" => store.is(HUNG),
            "quiet" => store.forgets(),
            _ => {}
        }
        let target = if silent == "source" { 10u64 } else { 5 };
        let options = SelectOptions { timeout: Some(600 * SECOND), ..euros() };
        let selecting = tokio::spawn({
            let wallet = wallet.clone();
            async move { wallet.select_with(target, options).await }
        });
        for _ in 0..100 {
            idle().await;
        }
        assert_eq!(pages.load(Ordering::SeqCst) > 1, silent == "source");
        handle.close();
        assert_eq!(code(soon(selecting).await.unwrap()), Code::Cancelled, "{silent}");
        drop(held);
    }
}

// One that had a name asked first what time it is there, and was told that the store is away after its `response_timeout`.
#[tokio::test(start_paused = true)]
async fn a_selection_outlasts_an_outage_whether_or_not_its_spender_has_a_name() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let handle = store.opened(60 * SECOND);
    let source = wallet_of(&[("a", 5), ("b", 5)]);
    let wallet = handle.tokens_with("w", Arc::new(source), TokensOptions::default()).unwrap();
    store.is(DEAD);
    let selecting = [None, Some(Spender::new("tx 1"))].map(|spender| {
        let wallet = wallet.clone();
        let options = SelectOptions { spender, timeout: Some(60 * SECOND), ..euros() };
        tokio::spawn(async move { wallet.select_with(5u64, options).await })
    });
    // It is away for several times as long as one question waits for its answer.
    tokio::time::sleep(Duration::from_millis(500)).await;
    store.is(WELL);
    for selection in selecting {
        assert!(soon(selection).await.unwrap().unwrap().is_held());
    }
}

// Half of what was given back set out behind the claim of all of it: others were said to have that for a minute.
#[tokio::test(start_paused = true)]
async fn who_gives_back_and_selects_the_same_without_waiting_overtakes_nothing_of_it() {
    let store = Faulty::new(TokioRuntime::store_clock());
    // However busy this machine is, the store is near.
    let runtime = Warped::new().clock(|_| SECOND);
    let handle = Leasehold::new(store, runtime, OpenOptions::default()).unwrap();
    let ids: Vec<String> = (0..40).map(|number| format!("t{number}")).collect();
    let source = wallet_of(&ids.iter().map(|id| (id.as_str(), 1)).collect::<Vec<_>>());
    let wallet = handle.tokens_with("w", Arc::new(source), TokensOptions::default()).unwrap();
    for spender in [None, Some(Spender::new("tx 1"))] {
        let again = || SelectOptions { spender, ..euros() };
        for _ in 0..3 {
            drop(wallet.select_with(40u64, again()).await.unwrap());
            assert_eq!(wallet.select_with(40u64, again()).await.unwrap().tokens().len(), 40);
        }
    }
}

// All others waited for their turn, and asked nothing, for as long as the first waited for its page.
#[tokio::test(start_paused = true)]
async fn a_page_that_does_not_come_keeps_nobody_from_asking_for_ever() {
    // Half a minute passes at once.
    let short = |time| if (20 * SECOND..=30 * SECOND).contains(&time) { MILLISECOND } else { time };
    let store = Faulty::new(TokioRuntime::store_clock());
    let handle = Leasehold::new(store, Warped::new().timers(short), OpenOptions::default()).unwrap();
    let pages = Arc::new(AtomicUsize::new(0));
    let source = {
        let (pages, tokens) = (pages.clone(), wallet_of(&[("a", 5), ("b", 5)]));
        move |ask: PageAsk| {
            let hangs = pages.fetch_add(1, Ordering::SeqCst) == 0;
            let page = futures_util::FutureExt::now_or_never(tokens.page(ask)).expect("it is in memory");
            async move { if hangs { std::future::pending().await } else { page } }
        }
    };
    let wallet = handle.tokens_with("w", Arc::new(source), TokensOptions::default()).unwrap();
    let select = |timeout| {
        let wallet = wallet.clone();
        let options = SelectOptions { timeout: Some(timeout), ..euros() };
        tokio::spawn(async move { wallet.select_with(5u64, options).await })
    };
    let first = select(3_600 * SECOND);
    while pages.load(Ordering::SeqCst) == 0 {
        idle().await;
    }
    let second = select(600 * SECOND);
    let (first, second) = soon(async { (first.await.unwrap(), second.await.unwrap()) }).await;
    assert!(first.unwrap().is_held() && second.unwrap().is_held());
    assert_eq!(pages.load(Ordering::SeqCst), 2);
}

// It granted again when the longer of the two had passed: what was spent under a lock that it had forgotten rested nowhere.
#[tokio::test(start_paused = true)]
async fn a_store_that_forgot_is_quiet_until_what_was_spent_under_the_last_lock_has_rested() {
    let store = Faulty::new(TokioRuntime::store_clock());
    let options = TokensOptions { ttl: 60 * SECOND, settle: 600 * SECOND, ..TokensOptions::default() };
    let source = Arc::new(wallet_of(&[("a", 5), ("b", 5)]));
    let wallet = store.opened(60 * SECOND).tokens_with("w", source, options).unwrap();
    let held = wallet.select_with(5u64, euros()).await.unwrap();
    store.forgets();
    let refused = wallet.select_with(5u64, euros()).await.unwrap_err();
    assert_eq!(refused.code(), Code::LockedUntil);
    let left = refused.retry_after_micros().expect("known");
    assert!(left > 630 * SECOND && left <= 660 * SECOND, "{left}");
    assert_eq!(code(held.spent().await), Code::Lost);
}
