//! Tokens of a table of SQL: how a host has its own table for a source, here in SQLite.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::client::{PageAsk, TokenSource, TokensOptions};
use leasehold::runtime::BoxedFuture;
use leasehold::tokens::{Amount, Page, Token};
use leasehold::{Code, SECOND};
use leasehold_faults::{PATIENCE, Place};
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, Result, params};

on_both!(replicas_spend_what_a_table_lists_once, f8_who_writes_the_table_is_never_held_up,);

/// Lists a table, from a connection of its own for each question, which can only read. It holds up nobody who writes (F8): the
/// journal is a log, a page is one short statement by the index, and no transaction is left open between two.
///
/// A page goes on behind the number of the last row of the one before, and not at an offset: what is added or spent
/// meanwhile moves no other row, so that none is left out or listed twice. Each process begins behind a number of its own
/// and goes round, so that they do not all begin with the same tokens. Amounts are text: no number of SQL has 256 bits.
#[derive(Clone)]
struct SqlTokens {
    path: Arc<Path>,
}

const PAGE: &str = "SELECT number, id, amount FROM tokens
    WHERE wallet = ? AND currency = ? AND number > ? AND number <= ? ORDER BY number LIMIT ?";

/// Where a walk stands.
struct Cursor {
    /// It began behind this number.
    first: i64,
    /// It goes on behind this one.
    after: i64,
    /// Whether it has come to the end of the table, and goes on at its beginning.
    round: bool,
}

impl SqlTokens {
    fn create(path: PathBuf) -> Self {
        let source = SqlTokens { path: path.into() };
        let create = "CREATE TABLE tokens (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            wallet TEXT NOT NULL, currency TEXT NOT NULL, id TEXT NOT NULL UNIQUE, amount TEXT NOT NULL
        );
        CREATE INDEX of_wallet ON tokens (wallet, currency, number);
        PRAGMA journal_mode = WAL;";
        source.open().and_then(|table| table.execute_batch(create)).expect("a table");
        source
    }

    fn open(&self) -> Result<Connection> {
        let table = Connection::open(&self.path)?;
        table.busy_timeout(Duration::from_secs(60)).map(|()| table)
    }

    fn open_to_read(&self) -> Result<Connection> {
        Connection::open_with_flags(
            &self.path,
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )
    }

    fn add(&self, tokens: impl IntoIterator<Item = (String, Amount)>) {
        let mut table = self.open().expect("a table");
        let all = table.transaction().expect("a transaction");
        for (id, amount) in tokens {
            let insert = "INSERT INTO tokens (wallet, currency, id, amount) VALUES ('w', 'EUR', ?, ?)";
            all.execute(insert, params![id, amount.to_string()]).expect("a row");
        }
        all.commit().expect("written");
    }

    fn spend<'a>(&self, ids: impl IntoIterator<Item = &'a str>) {
        let mut table = self.open().expect("a table");
        let all = table.transaction().expect("a transaction");
        for id in ids {
            all.execute("DELETE FROM tokens WHERE id = ?", [id]).expect("done");
        }
        all.commit().expect("written");
    }

    fn read_page(&self, ask: &PageAsk) -> Result<Page, String> {
        let failed = |error: rusqlite::Error| error.to_string();
        let table = self.open_to_read().map_err(failed)?;
        let mut cursor = match &ask.after {
            Some(text) => Cursor::read(text).ok_or("this is no place in the table")?,
            None => Cursor::begin(&table, ask.seed).map_err(failed)?,
        };
        let mut rows = table.prepare(PAGE).map_err(failed)?;
        let mut tokens = Vec::new();
        loop {
            let end = if cursor.round { cursor.first } else { i64::MAX };
            let left = (ask.limit - tokens.len()) as i64;
            let wanted = params![&*ask.wallet, &*ask.currency, cursor.after, end, left];
            let found = rows.query_map(wanted, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
            for row in found.map_err(failed)? {
                let (number, id, amount): (i64, String, String) = row.map_err(failed)?;
                let amount = Amount::parse(&amount).map_err(|error| error.to_string())?;
                tokens.push(Token { since: number as u64, ..Token::new(id, amount) });
                cursor.after = number;
            }
            if tokens.len() == ask.limit {
                return Ok(Page { tokens, next: Some(cursor.written()) });
            }
            if cursor.round {
                return Ok(Page { tokens, next: None });
            }
            (cursor.after, cursor.round) = (0, true);
        }
    }
}

impl Cursor {
    fn begin(table: &Connection, seed: u64) -> Result<Self> {
        let most: Option<i64> = table.query_row("SELECT max(number) FROM tokens", [], |row| row.get(0))?;
        let first = (seed % (most.unwrap_or(0) as u64 + 1)) as i64;
        Ok(Cursor { first, after: first, round: false })
    }

    fn written(&self) -> String {
        format!("{} {} {}", self.first, self.after, self.round)
    }

    fn read(text: &str) -> Option<Self> {
        let mut words = text.split(' ');
        Some(Cursor {
            first: words.next()?.parse().ok()?,
            after: words.next()?.parse().ok()?,
            round: words.next()?.parse().ok()?,
        })
    }
}

impl TokenSource for SqlTokens {
    fn page(&self, ask: PageAsk) -> BoxedFuture<'_, Result<Page, String>> {
        let source = self.clone();
        // SQLite blocks its thread.
        let read = tokio::task::spawn_blocking(move || source.read_page(&ask));
        Box::pin(async { read.await.map_err(|error| error.to_string())? })
    }

    fn verifies(&self) -> bool {
        true
    }

    fn spent(&self, _wallet: Arc<str>, ids: Vec<Arc<str>>) -> BoxedFuture<'_, Result<Vec<Arc<str>>, String>> {
        let source = self.clone();
        let look = move || {
            let table = source.open_to_read()?;
            let mut row = table.prepare("SELECT 1 FROM tokens WHERE id = ?")?;
            let mut spent = Vec::new();
            for id in ids {
                if row.query_row([&*id], |_| Ok(())).optional()?.is_none() {
                    spent.push(id);
                }
            }
            Ok::<_, rusqlite::Error>(spent)
        };
        let read = tokio::task::spawn_blocking(look);
        Box::pin(async { read.await.map_err(|error| error.to_string())?.map_err(|error| error.to_string()) })
    }
}

/// A folder that is gone when the test is.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("leasehold-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a folder");
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn ask(seed: u64, limit: usize) -> PageAsk {
    PageAsk { wallet: "w".into(), currency: "EUR".into(), after: None, limit, seed }
}

#[test]
fn a_cursor_neither_skips_nor_repeats_whatever_happens_to_the_table_meanwhile() {
    let folder = Folder::new("cursor");
    for (round, limit) in [1, 2, 7, 50, 1_000].into_iter().enumerate() {
        for seed in 0..8 {
            let source = SqlTokens::create(folder.0.join(format!("{round}-{seed}.db")));
            let ids =
                |kind: &'static str| (0..60u64).map(move |at| (format!("{kind}{at}"), Amount::from(at)));
            // Those that stay, those that go, and an odd one.
            let both = ids("kept").zip(ids("gone")).flat_map(|(kept, gone)| [kept, gone]);
            source.add(both.chain([(String::new(), Amount::MAX)]));
            let mut wanted = ask(u64::wrapping_mul(seed, 0x9E37_79B9_7F4A_7C15), limit);
            let mut seen = Vec::new();
            for page_number in 0.. {
                let page = source.read_page(&wanted).expect("a page");
                assert!(page.tokens.len() <= limit);
                seen.extend(page.tokens.into_iter().map(|token| token.id.to_string()));
                let Some(next) = page.next else { break };
                wanted.after = Some(next);
                if page_number < 60 {
                    source.spend([&*format!("gone{}", (page_number * 7) % 60)]);
                    source.add([(format!("new{page_number}"), Amount::ZERO)]);
                }
            }
            let each: HashSet<_> = seen.iter().cloned().collect();
            assert_eq!(each.len(), seen.len(), "none twice, with {limit} a page and seed {seed}");
            assert!(ids("kept").all(|(id, _)| each.contains(&id)) && each.contains(""), "none left out");
        }
    }
    let mut elsewhere = ask(1, 10);
    elsewhere.after = Some("behind the hills".into());
    assert!(SqlTokens::create(folder.0.join("empty.db")).read_page(&elsewhere).is_err());
}

fn options() -> TokensOptions {
    TokensOptions {
        currency: "EUR".into(),
        ttl: 5 * SECOND,
        settle: 5 * SECOND,
        max_age: SECOND,
        timeout: PATIENCE,
        page: 30,
        ..TokensOptions::default()
    }
}

/// Token selection goes on in four processes while somebody else writes the table, and would not wait a moment for it.
async fn f8_who_writes_the_table_is_never_held_up(place: Place) {
    let folder = Folder::new(&format!("f8-{}", place.url().rsplit(':').next().expect("a part")));
    let source = SqlTokens::create(folder.0.join("wallet.db"));
    source.add((0..400).map(|at| (format!("t{at}"), Amount::from(1u64))));
    let plan: String = source
        .open_to_read()
        .and_then(|table| {
            let wanted = params!["w", "EUR", 0, 1, 1];
            table.query_row(&format!("EXPLAIN QUERY PLAN {PAGE}"), wanted, |row| row.get("detail"))
        })
        .expect("a plan");
    assert!(plan.starts_with("SEARCH") && plan.contains("of_wallet"), "{plan}");

    let (pages, done) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let selectors: Vec<_> = (0..4)
        .map(|_| {
            let (handle, source) = (place.handle(), source.clone());
            let (pages, done) = (pages.clone(), done.clone());
            tokio::spawn(async move {
                while !done.load(Ordering::Acquire) {
                    // Which knows nothing, and reads the table.
                    let tokens =
                        handle.tokens_with("w", Arc::new(source.clone()), options()).expect("a wallet");
                    let selection = tokens.select(20u64).await.expect("selected");
                    selection.release().await.expect("given back");
                    pages.fetch_add(tokens.counts().pages, Ordering::AcqRel);
                }
            })
        })
        .collect();
    let write = move || {
        let table = source.open().expect("a table");
        table.busy_timeout(Duration::ZERO).expect("set");
        // One that reads the head of the log as it is written takes the lock of writers for that moment.
        let is_held_up = |statement: &str, id: &str| {
            let mut waits = false;
            while let Err(error) = table.execute(statement, [id]) {
                assert_eq!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy), "{error}");
                waits = true;
                std::thread::yield_now();
            }
            waits
        };
        let mut held_up = 0;
        for at in 0.. {
            let id = format!("new{at}");
            let insert = "INSERT INTO tokens (wallet, currency, id, amount) VALUES ('w', 'EUR', ?, '1')";
            held_up += u32::from(is_held_up(insert, &id));
            held_up += u32::from(is_held_up("DELETE FROM tokens WHERE id = ?", &id));
            if at > 500 && pages.load(Ordering::Acquire) > 100 {
                // Whoever kept a lock for as long as it selects would hold up most.
                assert!(held_up <= at / 20, "{held_up} of {} writes", 2 * at);
                return;
            }
        }
    };
    let written = tokio::task::spawn_blocking(write).await;
    done.store(true, Ordering::Release);
    written.expect("never held up");
    for selector in selectors {
        selector.await.expect("no panic");
    }
}

async fn replicas_spend_what_a_table_lists_once(place: Place) {
    let folder = Folder::new(place.url().rsplit(':').next().expect("a part"));
    let source = SqlTokens::create(folder.0.join("wallet.db"));
    let large = Amount::parse("0x4000000000000000000000000000000000000000").expect("an amount");
    source.add((0..100).map(|at| (format!("t{at}"), large)));
    let target: Amount = [large; 7].into_iter().sum();
    let spent = Arc::new(Mutex::new(HashSet::new()));
    let workers: Vec<_> = (0..4)
        .map(|_| {
            let mut options = options();
            options.bounds.verify = true;
            let tokens =
                place.handle().tokens_with("w", Arc::new(source.clone()), options).expect("a wallet");
            let (source, spent) = (source.clone(), spent.clone());
            tokio::spawn(async move {
                loop {
                    let selection = match tokens.select(target).await {
                        Ok(selection) => selection,
                        Err(error) if error.code() == Code::Insufficient => return,
                        Err(error) => panic!("{error}"),
                    };
                    assert_eq!(selection.sum(), target);
                    for token in selection.tokens() {
                        let new = spent.lock().expect("no panic").insert(token.id.clone());
                        assert!(new, "{} was spent twice", token.id);
                    }
                    selection.spent().await.expect("said");
                    source.spend(selection.tokens().iter().map(|token| &*token.id));
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.expect("no panic");
    }
    assert_eq!(spent.lock().expect("no panic").len(), 98);
    assert_eq!(source.read_page(&ask(0, 10)).expect("a page").tokens.len(), 2);
}
