//! Selections in memory, through the client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::*;
use crate::client::faulty::Faulty;
use crate::client::native::{NativeLeasehold, NativeTokens, connect};
use crate::client::{Leasehold, OpenOptions};
use crate::error::Code;
use crate::runtime::warped::Warped;
use crate::runtime::{BoxedFuture, TokioRuntime, idle};
use crate::tokens::{FewestInputs, Page, Spender, Token};
use crate::{MILLISECOND, SECOND};

mod losses;

/// Each test has a store of its own, as each has its own clock.
fn opened(store: &str) -> NativeLeasehold {
    connect(format!("memory:tokens-{store}")).namespace("test").open().unwrap()
}

fn wallet_of(tokens: &[(&str, u64)]) -> TokensInMemory {
    let source = TokensInMemory::default();
    tokens.iter().for_each(|&(id, amount)| source.add("w", "EUR", Token::new(id, amount)));
    source
}

fn tokens(handle: &NativeLeasehold, source: &TokensInMemory) -> NativeTokens {
    handle.tokens_with("w", Arc::new(source.clone()), TokensOptions::default()).unwrap()
}

fn euros() -> SelectOptions {
    SelectOptions { currency: Some("EUR".into()), timeout: Some(0), ..SelectOptions::default() }
}

fn code(outcome: Result<impl fmt::Debug>) -> Code {
    outcome.unwrap_err().code()
}

#[tokio::test(start_paused = true)]
async fn a_selection_is_one_callers_until_it_is_given_back() {
    let (handle, other) = (opened("one"), opened("one"));
    let source = wallet_of(&[("a", 5), ("b", 3)]);
    let (here, there) = (tokens(&handle, &source), tokens(&other, &source));
    let selection = here.select_with(6u64, euros()).await.unwrap();
    assert_eq!((selection.sum(), selection.change()), (8u64.into(), 2u64.into()));
    assert_eq!(selection.tokens().len(), 2);
    assert!(selection.is_held() && selection.fence() > 0 && selection.fences().len() == 2);
    for wallet in [&here, &there] {
        let refused = wallet.select_with(1u64, euros()).await.unwrap_err();
        assert_eq!(refused.code(), Code::LockedUntil);
        let left = refused.retry_after_micros().expect("known");
        assert!(left > 0 && left <= 60 * SECOND, "{left}");
        assert_eq!(code(wallet.select_with(9u64, euros()).await), Code::Insufficient);
        assert_eq!(wallet.count_locked().await.unwrap(), 2);
    }
    selection.renew().await.unwrap();
    selection.release().await.unwrap();
    selection.release().await.unwrap();
    assert!(!selection.is_held() && selection.lost().await.is_none());
    assert_eq!(code(selection.renew().await), Code::Lost);
    let next = there.select_with(8u64, euros()).await.unwrap();
    assert!(next.fence() > selection.fence());
    drop(next);
    assert_eq!(here.count_locked().await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_selected_for_nothing() {
    let handle = opened("nothing");
    let selection = tokens(&handle, &wallet_of(&[])).select_with(0u64, euros()).await.unwrap();
    assert!(selection.tokens().is_empty() && selection.sum().is_zero() && selection.is_held());
    selection.spent().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn f3_u1_u3_wallets_and_currencies_are_kept_apart_whatever_their_names() {
    let handle = opened("apart");
    let source = TokensInMemory::default();
    for (wallet, currency) in [("a", "b.c"), ("a.b", "c"), ("", "b.c"), ("a", "")] {
        source.add(wallet, currency, Token::new(format!("{wallet}|{currency}"), 7u64));
    }
    for (wallet, currency) in [("a", "b.c"), ("a.b", "c"), ("", "b.c"), ("a", "")] {
        let tokens = handle.tokens_with(wallet, Arc::new(source.clone()), TokensOptions::default()).unwrap();
        let of = |currency: &str| SelectOptions { currency: Some(currency.into()), ..euros() };
        let selection = tokens.select_with(7u64, of(currency)).await.unwrap();
        assert_eq!(*selection.tokens()[0].id, format!("{wallet}|{currency}"));
        assert_eq!(code(tokens.select_with(8u64, of(currency)).await), Code::Insufficient);
        // One that nobody has heard of has nothing, and that is all.
        assert_eq!(code(tokens.select_with(1u64, of("unseen")).await), Code::Insufficient);
    }
}

// Each that a stranger named took 2 kB for good.
#[tokio::test(start_paused = true)]
async fn a_currency_of_which_nothing_is_known_is_forgotten_with_who_asked_for_it() {
    let handle = opened("strangers");
    let wallet = tokens(&handle, &wallet_of(&[("a", 5)]));
    let kept = || wallet.wallet.purses.all().len();
    let of = |currency: &str| SelectOptions { currency: Some(currency.into()), ..euros() };
    let all = (0..20).map(|number| format!("c{number}"));
    for currency in all {
        assert_eq!(code(wallet.select_with(1u64, of(&currency)).await), Code::Insufficient);
        assert!(wallet.select_with(0u64, of(&currency)).await.is_ok());
        let long = SelectOptions { ttl: Some(61 * SECOND), ..of(&currency) };
        assert_eq!(code(wallet.select_with(1u64, long).await), Code::InvalidArgument);
        // Nor does it stay where who asked goes away.
        let patient = SelectOptions { timeout: Some(60 * SECOND), ..of(&currency) };
        assert!(futures_util::FutureExt::now_or_never(wallet.select_with(1u64, patient)).is_none());
        // And who asks at the same time asks for the same pages.
        let both = [wallet.select_with(1u64, of(&currency)), wallet.select_with(1u64, of(&currency))];
        assert!(futures_util::future::join_all(both).await.iter().all(Result::is_err));
    }
    assert_eq!(kept(), 0);
    // What is known of one is kept: what there is, what is spent, and that its source tells of every change.
    let held = wallet.select_with(5u64, euros()).await.unwrap();
    held.release().await.unwrap();
    drop(held);
    assert_eq!(code(wallet.select_with(6u64, euros()).await), Code::Insufficient);
    wallet.hear(Change::Spent("b".into()), Some("spent")).unwrap();
    wallet.hear(Change::Listening, Some("told")).unwrap();
    for currency in ["spent", "told"] {
        assert_eq!(code(wallet.select_with(1u64, of(currency)).await), Code::Insufficient);
    }
    assert_eq!(kept(), 3);
}

#[tokio::test(start_paused = true)]
async fn odd_ids_are_locked_and_listed() {
    let handle = opened("odd");
    let ids = ["", "a.b", "é{}:%~ ", "0xAB", "0xab", &"x".repeat(256)];
    let source = wallet_of(&ids.map(|id| (id, 1)));
    let wallet = tokens(&handle, &source);
    let spender = Spender::new("tx 1");
    let selection =
        wallet.select_with(6u64, SelectOptions { spender: Some(spender), ..euros() }).await.unwrap();
    let locks = wallet.locks(&ids).await.unwrap();
    assert_eq!(locks.len(), 6);
    for (lock, id) in locks.iter().zip(ids) {
        assert_eq!((&*lock.id, lock.view.holder), (id, spender.0));
        assert!(lock.left_micros > 50 * SECOND && lock.view.since > 0);
    }
    let mut sorted = ids;
    sorted.sort_unstable();
    let all = wallet.all_locks().await.unwrap();
    assert!(all.iter().map(|lock| &*lock.id).eq(sorted));
    selection.release().await.unwrap();
    assert!(wallet.locks(&ids).await.unwrap().is_empty() && wallet.all_locks().await.unwrap().is_empty());
    assert_eq!(wallet.locks(&[&"x".repeat(257)]).await.unwrap_err().field(), Some("ids"));
}

/// However many there are, and of whichever currency: more than one request asks for.
#[tokio::test(start_paused = true)]
async fn all_that_is_locked_is_listed_and_nothing_else() {
    let (handle, other) = (opened("listed"), opened("listed"));
    let source = TokensInMemory::default();
    for at in 0..3_000u64 {
        source.add("w", if at % 2 == 0 { "EUR" } else { "CHF" }, Token::new(format!("{at:04}"), 1u64));
    }
    let (here, there) = (tokens(&handle, &source), tokens(&other, &source));
    assert!(there.all_locks().await.unwrap().is_empty(), "of a wallet that nobody has used");
    let mut selections = Vec::new();
    for (target, currency) in [(1_000u64, "EUR"), (400, "EUR"), (900, "CHF")] {
        let of = SelectOptions { currency: Some(currency.into()), ..euros() };
        selections.push(here.select_with(target, of).await.unwrap());
    }
    let held = |selections: &[Selection<_, _>]| {
        let ids = selections.iter().flat_map(|selection| selection.tokens());
        let mut ids: Vec<_> = ids.map(|token| token.id.clone()).collect();
        ids.sort_unstable();
        ids
    };
    let listed =
        async || -> Vec<_> { there.all_locks().await.unwrap().into_iter().map(|lock| lock.id).collect() };
    assert_eq!(listed().await.len(), 2_300);
    assert_eq!(listed().await, held(&selections));
    selections.swap_remove(1).release().await.unwrap();
    // What was spent rests, and is listed until nobody knows it any more.
    selections[1].spent().await.unwrap();
    assert_eq!(listed().await, held(&selections));
}

// Two programs with a variable that nobody had set took one another's tokens.
#[tokio::test(start_paused = true)]
async fn a_spender_without_a_name_is_refused() {
    let handle = opened("nameless");
    let wallet = tokens(&handle, &wallet_of(&[("a", 5)]));
    let nameless = SelectOptions { spender: Some(Spender::new("")), ..euros() };
    let error = wallet.select_with(5u64, nameless).await.unwrap_err();
    assert_eq!(error.field(), Some("spender"), "{error}");
    assert_eq!(wallet.release_spender("").await.unwrap_err().field(), Some("spender"));
    wallet.select_with(5u64, euros()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_spender_locked_is_given_back_by_its_name_and_nothing_else() {
    let (handle, other) = (opened("spender"), opened("spender"));
    let source = wallet_of(&[("a", 1), ("b", 1), ("c", 1), ("d", 1), ("e", 1)]);
    let (here, there) = (tokens(&handle, &source), tokens(&other, &source));
    let of =
        |name: &str| SelectOptions { spender: Some(name.into()), keepalive: Some(Keepalive::Off), ..euros() };
    let spent = here.select_with(1u64, of("tx 1")).await.unwrap();
    spent.spent().await.unwrap();
    let orphaned = here.select_with(2u64, of("tx 1")).await.unwrap();
    let kept = here.select_with(1u64, of("tx 2")).await.unwrap();
    assert_eq!(there.release_spender("tx 3").await.unwrap(), 0);
    assert_eq!(there.release_spender("tx 1").await.unwrap(), 2);
    assert_eq!(there.release_spender(Spender::new("tx 1")).await.unwrap(), 0, "what was spent rests");
    let next = there.select_with(3u64, euros()).await.unwrap();
    assert!(orphaned.tokens().iter().all(|token| next.tokens().contains(token)));
    assert_eq!(code(orphaned.renew().await), Code::Lost);
    assert_eq!(code(orphaned.release().await), Code::Lost);
    kept.renew().await.unwrap();
    assert!(next.is_held() && there.release_spender("tx 2").await.unwrap() == 1);
}

#[tokio::test(start_paused = true)]
async fn f14_u5_a_cancelled_selection_leaves_nothing_locked() {
    let (handle, other) = (opened("cancelled"), opened("cancelled"));
    let source = wallet_of(&[("a", 5), ("b", 5)]);
    let held = tokens(&other, &source).select_with(5u64, euros()).await.unwrap();
    let wallet = tokens(&handle, &source);
    let waiting = SelectOptions { timeout: Some(60 * SECOND), ..euros() };
    let select = wallet.select_with(10u64, waiting);
    assert!(tokio::time::timeout(std::time::Duration::from_millis(50), select).await.is_err());
    assert_eq!(wallet.count_locked().await.unwrap(), 1, "only the other's");
    held.release().await.unwrap();
    assert!(wallet.select_with(10u64, euros()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn who_waits_is_served_as_soon_as_this_process_gives_back() {
    let handle = opened("served");
    let wallet = tokens(&handle, &wallet_of(&[("a", 5)]));
    let held = wallet.select_with(5u64, euros()).await.unwrap();
    let waits = {
        let wallet = wallet.clone();
        let options = SelectOptions { timeout: Some(60 * SECOND), ..euros() };
        tokio::spawn(async move { wallet.select_with(5u64, options).await })
    };
    while wallet.statistics().waiting == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    held.release().await.unwrap();
    let served = tokio::time::timeout(std::time::Duration::from_secs(20), waits).await.expect("served");
    assert!(served.unwrap().unwrap().is_held());
}

#[tokio::test(start_paused = true)]
async fn who_gives_back_and_comes_again_is_served_after_those_who_waited() {
    let handle = opened("again");
    let wallet = tokens(&handle, &wallet_of(&[("a", 5)]));
    let patient = || SelectOptions { timeout: Some(60 * SECOND), ..euros() };
    let served = Arc::new(Mutex::new(Vec::new()));
    let held = wallet.select_with(5u64, euros()).await.unwrap();
    let waits = {
        let (wallet, served) = (wallet.clone(), served.clone());
        tokio::spawn(async move {
            let selection = wallet.select_with(5u64, patient()).await.unwrap();
            served.lock().unwrap().push("who waited");
            selection.release().await.unwrap();
        })
    };
    while wallet.statistics().waiting == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    held.release().await.unwrap();
    let again = wallet.select_with(5u64, patient()).await.unwrap();
    served.lock().unwrap().push("who came again");
    waits.await.unwrap();
    assert!(again.is_held());
    assert_eq!(*served.lock().unwrap(), ["who waited", "who came again"]);
}

// It said that they are spent, and others were given them.
#[tokio::test(start_paused = true)]
async fn what_was_given_back_is_not_spent_afterwards() {
    let handle = opened("given-back");
    let tokens = handle.tokens_with("w", Arc::new(wallet_of(&[("a", 5)])), TokensOptions::default()).unwrap();
    let selection = tokens.select_with(5u64, euros()).await.unwrap();
    selection.release().await.unwrap();
    selection.release().await.unwrap();
    assert_eq!(code(selection.spent().await), Code::Lost);
    assert_eq!(tokens.select_with(5u64, euros()).await.unwrap().tokens().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn f15_spent_tokens_stay_locked_until_the_spend_is_visible() {
    let (handle, other) = (opened("spent"), opened("spent"));
    let source = wallet_of(&[("a", 5), ("b", 5)]);
    let options = || TokensOptions { settle: SECOND, max_age: SECOND, ..TokensOptions::default() };
    let here = handle.tokens_with("w", Arc::new(source.clone()), options()).unwrap();
    let there = other.tokens_with("w", Arc::new(source.clone()), options()).unwrap();
    let selection = here.select_with(5u64, euros()).await.unwrap();
    let id = selection.tokens()[0].id.clone();
    selection.spent().await.unwrap();
    selection.spent().await.unwrap();
    selection.release().await.unwrap();
    drop(selection);
    // The source lists it still: nobody is given it.
    assert_eq!(code(here.select_with(10u64, euros()).await), Code::Insufficient);
    assert_eq!(code(there.select_with(10u64, euros()).await), Code::LockedUntil);
    assert_eq!(there.locks(&[&id]).await.unwrap().len(), 1);
    source.spend("w", &id);
    assert_eq!(code(there.select_with(10u64, euros()).await), Code::Insufficient);
    assert!(there.select_with(5u64, euros()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_source_that_says_nothing_of_spends_verifies_nothing_in_silence() {
    let handle = opened("mute");
    let mut options = TokensOptions::default();
    options.bounds.verify = true;
    let source = |_: PageAsk| async { Ok::<_, String>(Page::default()) };
    let error = handle.tokens_with("w", Arc::new(source), options).map(|_| ()).unwrap_err();
    assert_eq!((error.code(), error.field()), (Code::InvalidArgument, Some("verify")));
}

/// Fails while it is told to.
struct Failing(TokensInMemory, AtomicBool, AtomicUsize);

impl TokenSource for Failing {
    fn page(&self, ask: PageAsk) -> BoxedFuture<'_, Result<Page, String>> {
        self.2.fetch_add(1, Ordering::SeqCst);
        match self.1.load(Ordering::SeqCst) {
            true => Box::pin(async { Err("it is away".to_owned()) }),
            false => self.0.page(ask),
        }
    }
}

// One look that failed ended whoever waited, with time left, for tokens that were about to be given back.
#[tokio::test(start_paused = true)]
async fn a_source_that_fails_for_a_while_ends_nobody_who_waits() {
    let handle = opened("failing-for-a-while");
    let source = Arc::new(Failing(wallet_of(&[("a", 5)]), AtomicBool::new(false), AtomicUsize::new(0)));
    let wallet = handle.tokens_with("w", source.clone(), TokensOptions::default()).unwrap();
    let held = wallet.select_with(5u64, euros()).await.unwrap();
    let waits = SelectOptions { timeout: Some(60 * SECOND), ..euros() };
    let waiting = tokio::spawn({
        let wallet = wallet.clone();
        async move { wallet.select_with(5u64, waits).await }
    });
    while wallet.statistics().waiting == 0 {
        idle().await;
    }
    source.1.store(true, Ordering::SeqCst);
    let before = source.2.load(Ordering::SeqCst);
    while source.2.load(Ordering::SeqCst) < before + 2 {
        assert!(!waiting.is_finished());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Who comes meanwhile is told.
    let fresh = handle.tokens_with("other", source.clone(), TokensOptions::default()).unwrap();
    let waits = SelectOptions { timeout: Some(SECOND), ..euros() };
    assert_eq!(code(fresh.select_with(5u64, waits).await), Code::SourceUnavailable);
    source.1.store(false, Ordering::SeqCst);
    held.release().await.unwrap();
    waiting.await.unwrap().unwrap();
}

/// Says what is spent later than locks last, the first time.
struct Slow(TokensInMemory, AtomicUsize);

impl TokenSource for Slow {
    fn page(&self, ask: PageAsk) -> BoxedFuture<'_, Result<Page, String>> {
        self.0.page(ask)
    }

    fn verifies(&self) -> bool {
        true
    }

    fn spent(&self, wallet: Arc<str>, ids: Vec<Arc<str>>) -> BoxedFuture<'_, Result<Vec<Arc<str>>, String>> {
        Box::pin(async {
            if self.1.fetch_add(1, Ordering::SeqCst) == 0 {
                tokio::time::sleep(Duration::from_millis(700)).await;
            }
            self.0.spent(wallet, ids).await
        })
    }
}

#[tokio::test(start_paused = true)]
async fn what_ended_while_the_rest_was_looked_for_is_in_no_selection() {
    let handle = opened("slow-source");
    let mut options =
        TokensOptions { ttl: SECOND / 2, keepalive: Keepalive::Off, ..TokensOptions::default() };
    options.bounds.verify = true;
    let source = Arc::new(Slow(wallet_of(&[("a", 5), ("b", 5)]), AtomicUsize::new(0)));
    let wallet = handle.tokens_with("w", source.clone(), options).unwrap();
    let patient = SelectOptions { timeout: Some(60 * SECOND), ..euros() };
    let selection = wallet.select_with(10u64, patient).await.unwrap();
    assert!(selection.is_held() && selection.tokens().len() == 2);
    assert_eq!(source.1.load(Ordering::SeqCst), 2, "it began anew");
}

#[tokio::test(start_paused = true)]
async fn a_spend_that_is_visible_frees_its_lock_where_everybody_verifies() {
    for verify in [false, true] {
        let handle = opened(if verify { "visible" } else { "settling" });
        let mut options = TokensOptions::default();
        options.bounds.verify = verify;
        let wallet = handle.tokens_with("w", Arc::new(wallet_of(&[("a", 5)])), options).unwrap();
        wallet.hear(Change::Listening, Some("EUR")).unwrap();
        let selection = wallet.select_with(5u64, euros()).await.unwrap();
        selection.spent().await.unwrap();
        wallet.hear(Change::Spent("a".into()), Some("EUR")).unwrap();
        assert_eq!(wallet.count_locked().await.unwrap(), u32::from(!verify));
        assert_eq!(code(wallet.select_with(1u64, euros()).await), Code::Insufficient);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_spender_spent_is_not_its_own_any_more() {
    let (handle, other) = (opened("own"), opened("own"));
    let source = wallet_of(&[("a", 5)]);
    let (before, after) = (tokens(&handle, &source), tokens(&other, &source));
    let named = || SelectOptions { spender: Some(Spender::new("tx1")), ..euros() };
    before.select_with(5u64, named()).await.unwrap().spent().await.unwrap();
    // It crashed, and comes again; the source lists the token still. Given back, it would be anybody's.
    assert_eq!(code(after.select_with(5u64, named()).await), Code::LockedUntil);
    assert_eq!(after.count_locked().await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn within_one_handle_a_selection_keeps_its_tokens_whatever_name_is_said() {
    let handle = opened("one-handle");
    let wallet = tokens(&handle, &wallet_of(&[("a", 5)]));
    let named = || SelectOptions { spender: Some(Spender::new("tx1")), ..euros() };
    let first = wallet.select_with(5u64, named()).await.unwrap();
    assert_eq!(code(wallet.select_with(5u64, named()).await), Code::LockedUntil);
    assert!(first.is_held());
    first.release().await.unwrap();
    assert_eq!(wallet.select_with(5u64, named()).await.unwrap().sum(), 5u64.into());
}

#[tokio::test(start_paused = true)]
async fn a_spender_is_not_refused_what_it_had_and_is_told_where_it_was_before() {
    let (handle, other) = (opened("spender-before"), opened("spender-before"));
    let source = wallet_of(&[("a", 5)]);
    let (before, after) = (tokens(&handle, &source), tokens(&other, &source));
    let named = |name: &str| SelectOptions { spender: Some(Spender::new(name)), ..euros() };
    let first = before.select_with(5u64, named("tx1")).await.unwrap();
    assert_eq!(code(after.select_with(5u64, named("tx2")).await), Code::LockedUntil);
    let second = after.select_with(5u64, named("tx1")).await.unwrap();
    assert!(second.fence() > first.fence());
    assert_eq!(code(first.renew().await), Code::Lost);
    drop(first);
    assert!(second.is_held());
    second.renew().await.unwrap();
    assert_eq!(before.count_locked().await.unwrap(), 1);
}

// The time that it told was of its last answer, less a hundredth of what has passed since.
#[tokio::test(start_paused = true)]
async fn a_spender_is_not_refused_what_it_had_by_a_process_that_was_idle() {
    let idle = Arc::new(AtomicU64::new(0));
    let (there, here, clock) = (idle.clone(), idle.clone(), TokioRuntime::store_clock());
    let store = Faulty::new(Arc::new(move || clock() + there.load(Ordering::SeqCst)));
    let runtime = Warped::new().clock(move |time| time + here.load(Ordering::SeqCst));
    let source = wallet_of(&[("a", 5)]);
    let wallet = || {
        let handle = Leasehold::new(store.clone(), runtime.clone(), OpenOptions::default()).unwrap();
        handle.tokens_with("w", Arc::new(source.clone()), TokensOptions::default()).unwrap()
    };
    let (before, after) = (wallet(), wallet());
    let named = |name: &str| SelectOptions { spender: Some(Spender::new(name)), ..euros() };
    after.select_with(5u64, named("tx0")).await.unwrap().release().await.unwrap();
    idle.store(3_600 * SECOND, Ordering::SeqCst);
    let first = before.select_with(5u64, named("tx1")).await.unwrap();
    let second = after.select_with(5u64, named("tx1")).await.unwrap();
    assert!(second.fence() > first.fence());
}

#[tokio::test(start_paused = true)]
async fn u9_a_slow_spender_is_told_that_it_lost_its_tokens() {
    let handle = opened("slow");
    let source = wallet_of(&[("a", 5), ("b", 5)]);
    let brief =
        TokensOptions { ttl: 300 * MILLISECOND, keepalive: Keepalive::Off, ..TokensOptions::default() };
    let wallet = handle.tokens_with("w", Arc::new(source.clone()), brief).unwrap();
    let selection = wallet.select_with(10u64, euros()).await.unwrap();
    assert_eq!(selection.lost().await.expect("lost").code(), Code::Lost);
    assert!(!selection.is_held());
    // Others have them now; here they are this selection's until it is given back.
    let other = handle.tokens_with("w", Arc::new(source), TokensOptions::default()).unwrap();
    // (Here it was told a little before the store ends it.)
    let soon = SelectOptions { timeout: Some(60 * SECOND), ..euros() };
    assert!(other.select_with(10u64, soon).await.unwrap().is_held());
    assert_eq!(code(selection.spent().await), Code::Lost);
}

#[tokio::test(start_paused = true)]
async fn a_selection_outlasts_its_time_to_live_while_it_is_kept_alive() {
    let handle = opened("kept");
    // Long enough for a machine that stands still for seconds.
    let wallet_options = TokensOptions { ttl: 6 * SECOND, ..TokensOptions::default() };
    let source = wallet_of(&[("a", 5), ("b", 5)]);
    let wallet = handle.tokens_with("w", Arc::new(source), wallet_options).unwrap();
    let selection = wallet.select_with(10u64, euros()).await.unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(7)).await;
    assert!(selection.is_held());
    selection.renew().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn u6_failures_of_source_and_arguments_are_their_own() {
    let handle = opened("failing");
    let failing = |_: PageAsk| async { Err::<Page, _>("the table is gone".to_owned()) };
    let wallet = handle.tokens_with("w", Arc::new(failing), TokensOptions::default()).unwrap();
    let error = wallet.select_with(1u64, euros()).await.unwrap_err();
    assert_eq!(error.code(), Code::SourceUnavailable);
    assert!(error.message().contains("the table is gone"), "{error}");
    let silent = |_: PageAsk| std::future::pending::<Result<Page, String>>();
    let wallet = handle.tokens_with("w", Arc::new(silent), TokensOptions::default()).unwrap();
    let patient = SelectOptions { timeout: Some(20 * MILLISECOND), ..euros() };
    assert_eq!(code(wallet.select_with(1u64, patient).await), Code::TimedOut);
    let long = "x".repeat(257);
    assert_eq!(
        handle.tokens_with(&long, Arc::new(silent), TokensOptions::default()).unwrap_err().field(),
        Some("wallet")
    );
    let currency = SelectOptions { currency: Some(long.into()), ..euros() };
    assert_eq!(wallet.select_with(1u64, currency).await.unwrap_err().field(), Some("currency"));
}

// Each asked anew, and what had been asked before was dropped: nobody ever selected of a source slower than that.
#[tokio::test(start_paused = true)]
async fn a_page_that_takes_longer_than_who_asked_for_it_has_time_is_for_who_comes_next() {
    let handle = opened("slow-pages");
    let asked = Arc::new(AtomicUsize::new(0));
    let source = {
        let asked = asked.clone();
        move |_: PageAsk| {
            let fails = asked.fetch_add(1, Ordering::SeqCst) == 0;
            async move {
                tokio::time::sleep(Duration::from_secs(3)).await;
                let tokens = vec![Token::new("a", 5u64), Token::new("b", 5u64)];
                if fails { Err("a disk stood still") } else { Ok(Page { tokens, next: None }) }
            }
        }
    };
    let wallet = handle.tokens_with("w", Arc::new(source), TokensOptions::default()).unwrap();
    let within = |time| wallet.select_with(5u64, SelectOptions { timeout: Some(time), ..euros() });
    let two = futures_util::future::join(within(SECOND), within(SECOND)).await;
    assert_eq!((code(two.0), code(two.1)), (Code::TimedOut, Code::TimedOut));
    // Without patience for others an answer may take 2 s all the same. The first failed after 3 s, when nobody was there to hear it.
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(code(within(0).await), Code::SourceUnavailable);
    let selections = futures_util::future::join(within(2 * SECOND), within(2 * SECOND)).await;
    assert!(selections.0.is_ok() && selections.1.is_ok());
    assert_eq!((asked.load(Ordering::SeqCst), wallet.counts().pages), (2, 1));
}

// For as long as tokens are offered, which may be a year, nobody had asked anew.
#[tokio::test(start_paused = true)]
async fn a_page_that_never_comes_is_given_up_soon_and_at_once_as_the_handle_closes() {
    let handle = opened("hung-pages");
    let (asked, source) = (Arc::new(AtomicUsize::new(0)), Arc::new(()));
    let hangs = {
        let (asked, source) = (asked.clone(), source.clone());
        move |_: PageAsk| {
            asked.fetch_add(1, Ordering::SeqCst);
            let source = source.clone();
            async move {
                std::future::pending::<()>().await;
                drop(source);
                Ok::<_, String>(Page::default())
            }
        }
    };
    let options =
        TokensOptions { max_age: 86_400 * SECOND, settle: 2 * 86_400 * SECOND, ..TokensOptions::default() };
    let wallet = handle.tokens_with("w", Arc::new(hangs), options).unwrap();
    for times in 1..=2 {
        let selection = wallet.select_with(5u64, SelectOptions { timeout: Some(SECOND), ..euros() }).await;
        assert_eq!((code(selection), asked.load(Ordering::SeqCst)), (Code::TimedOut, times));
        if times == 1 {
            tokio::time::sleep(Duration::from_secs(31)).await;
        }
    }
    assert_eq!(Arc::strong_count(&source), 3, "the second is under way");
    handle.close();
    idle().await;
    assert_eq!(Arc::strong_count(&source), 2);
}

#[tokio::test(start_paused = true)]
async fn pages_that_are_wanted_at_the_same_time_are_asked_for_once() {
    let handle = opened("pages");
    let asked = Arc::new(AtomicUsize::new(0));
    let source = {
        let asked = asked.clone();
        move |_: PageAsk| {
            asked.fetch_add(1, Ordering::SeqCst);
            async {
                idle().await;
                let tokens = (0..100u64).map(|id| Token::new(id.to_string(), 1u64)).collect();
                Ok::<_, String>(Page { tokens, next: None })
            }
        }
    };
    let wallet = handle.tokens_with("w", Arc::new(source), TokensOptions::default()).unwrap();
    let selections =
        futures_util::future::join_all((0..10).map(|_| wallet.select_with(10u64, euros()))).await;
    assert!(selections.iter().all(Result::is_ok));
    assert_eq!((asked.load(Ordering::SeqCst), wallet.count_locked().await.unwrap()), (1, 100));
    assert_eq!(wallet.counts(), TokenCounts { pages: 1, claims: 10, asked: 100, missed: 0 });
}

// Its thread was its own as long as the source was always ready: no time-out and no cancellation came through.
#[tokio::test]
async fn a_source_that_is_always_ready_lets_others_have_their_turn() {
    let handle = opened("ready");
    let endless = |ask: PageAsk| {
        let number: u64 = ask.after.map_or(0, |after| after.parse().unwrap());
        std::future::ready(Ok::<_, String>(Page { next: Some((number + 1).to_string()), ..Page::default() }))
    };
    let wallet = handle.tokens_with("w", Arc::new(endless), TokensOptions::default()).unwrap();
    for timeout in [0, 30 * SECOND] {
        let options = SelectOptions { timeout: Some(timeout), ..euros() };
        let clock = TokioRuntime::store_clock();
        let began = clock();
        let select = wallet.select_with(5u64, options);
        assert!(tokio::time::timeout(Duration::from_millis(50), select).await.is_err());
        assert!(clock() - began < 20 * SECOND, "{timeout}");
        assert!(wallet.counts().pages > 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_source_whose_pages_go_in_a_circle_has_failed() {
    let handle = opened("circle");
    let circle = |ask: PageAsk| {
        let next = if ask.after.as_deref() == Some("a") { "b" } else { "a" };
        let page = Page { tokens: vec![Token::new("x", 1u64)], next: Some(next.to_owned()) };
        std::future::ready(Ok::<_, String>(page))
    };
    let wallet = handle.tokens_with("w", Arc::new(circle), TokensOptions::default()).unwrap();
    for timeout in [0, 60 * SECOND] {
        let options = SelectOptions { timeout: Some(timeout), ..euros() };
        let error = wallet.select_with(5u64, options).await.unwrap_err();
        assert_eq!(error.code(), Code::SourceUnavailable);
        assert!(error.message().contains("must come to an end"), "{error}");
    }
    assert!(wallet.counts().pages < 20);
}

#[tokio::test(start_paused = true)]
async fn amounts_near_the_top_are_selected() {
    let handle = opened("top");
    let source = TokensInMemory::default();
    source.add("w", "EUR", Token::new("top", Amount::MAX));
    let wallet = tokens(&handle, &source);
    let options = SelectOptions { strategy: Some(Arc::new(FewestInputs)), ..euros() };
    let selection = wallet.select_with(Amount::MAX, options).await.unwrap();
    assert_eq!((selection.sum(), selection.change()), (Amount::MAX, Amount::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_closed_handle_ends_selections_that_wait_and_begins_none() {
    let (handle, other) = (opened("closed"), opened("closed"));
    let source = wallet_of(&[("a", 5)]);
    let held = tokens(&other, &source).select_with(5u64, euros()).await.unwrap();
    let wallet = tokens(&handle, &source);
    let waits = {
        let wallet = wallet.clone();
        let options = SelectOptions { timeout: Some(60 * SECOND), ..euros() };
        tokio::spawn(async move { wallet.select_with(5u64, options).await.map(drop) })
    };
    while wallet.statistics().waiting == 0 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    handle.close();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(20), waits).await.expect("it ends");
    assert_eq!(code(ended.unwrap()), Code::Cancelled);
    assert_eq!(code(wallet.select_with(0u64, euros()).await), Code::Cancelled);
    assert!(held.is_held());
    let refused = handle.tokens_with("w", Arc::new(source), TokensOptions::default());
    assert_eq!(refused.unwrap_err().code(), Code::Cancelled);
}

#[tokio::test(start_paused = true)]
async fn a_selection_may_live_shorter_than_others_of_its_wallet_and_not_longer() {
    let handle = opened("shorter");
    let source = wallet_of(&[("a", 5)]);
    let options = || TokensOptions { currency: "EUR".into(), ..TokensOptions::default() };
    let wallet = handle.tokens_with("w", Arc::new(source), options()).unwrap();
    let at_once = || SelectOptions { timeout: Some(0), ..SelectOptions::default() };
    let brief = SelectOptions { ttl: Some(10 * SECOND), keepalive: Some(Keepalive::Off), ..at_once() };
    let selection = wallet.select_with(5u64, brief).await.unwrap();
    assert!((5 * SECOND..=10 * SECOND).contains(&selection.remaining_micros()));
    selection.renew().await.unwrap();
    assert!((5 * SECOND..=10 * SECOND).contains(&selection.remaining_micros()));
    assert!(selection.lost_within(Some(1)).await.is_none());
    selection.release().await.unwrap();
    for ttl in [0, 60 * SECOND + 1] {
        let long = SelectOptions { ttl: Some(ttl), ..at_once() };
        assert_eq!(wallet.select_with(5u64, long).await.unwrap_err().field(), Some("ttl"));
    }
    let often = SelectOptions { keepalive: Some(Keepalive::Every(60 * SECOND)), ..at_once() };
    assert_eq!(wallet.select_with(5u64, often).await.unwrap_err().field(), Some("keepalive"));
    assert_eq!(wallet.count_locked().await.unwrap(), 0);
    assert_eq!(wallet.select_with(0u64, at_once()).await.unwrap().remaining_micros(), Micros::MAX);
}
