//! What is lost, or said, while a selection is made or ends.

use super::*;

// What was under way for good kept what was spent in mind for good.
#[tokio::test]
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
