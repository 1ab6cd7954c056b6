//! Where tokens come from: the host's own table, chain or ledger.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, MutexGuard};

use rustc_hash::FxHashMap;

use crate::error::{Error, Result};
use crate::poison::unpoisoned;
use crate::runtime::{BoxedFuture, MaybeSend, MaybeSync};
use crate::tokens::{Amount, Draw, Page, Token};
use crate::value::{Options, Value};

/// Which page of a wallet's tokens is wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageAsk {
    /// Whose.
    pub wallet: Arc<str>,
    /// Of which currency.
    pub currency: Arc<str>,
    /// Where it begins: what the page before said. Nothing for the first.
    pub after: Option<String>,
    /// How many tokens it has at most; a longer one is taken too.
    pub limit: usize,
    /// Another one in each process. A source that can begins its walk at a place that depends on it, and goes round, so
    /// that processes do not all begin with the same tokens.
    pub seed: u64,
}

impl PageAsk {
    /// As a value.
    #[doc(hidden)]
    pub fn to_value(&self) -> Value {
        Value::map([
            ("wallet", (&*self.wallet).into()),
            ("currency", (&*self.currency).into()),
            ("after", self.after.as_deref().into()),
            ("limit", (self.limit as u64).into()),
            ("seed", self.seed.into()),
        ])
    }
}

/// Lists unspent tokens. What it says is never taken for a lock, nor for the want of one: it may be late.
///
/// # A table of SQL
/// Through a connection of your own, here of rusqlite. A page goes on behind the number of the last row of the one before, and
/// not at an offset: what is added or spent meanwhile neither hides a token nor lists it twice. Amounts are text, as no number
/// of SQL has 256 bits.
///
/// ```
/// use std::sync::{Arc, Mutex};
///
/// use leasehold::client::PageAsk;
/// use leasehold::tokens::{Amount, Page, Token};
/// use rusqlite::{Connection, params};
///
/// const PAGE: &str = "SELECT number, id, amount FROM tokens
///     WHERE wallet = ? AND currency = ? AND number > ? ORDER BY number LIMIT ?";
///
/// fn page(table: &Connection, ask: &PageAsk) -> Result<Page, Box<dyn std::error::Error>> {
///     let mut after: i64 = ask.after.as_deref().unwrap_or("0").parse()?;
///     let mut tokens = Vec::new();
///     let mut query = table.prepare(PAGE)?;
///     let mut rows = query.query(params![&*ask.wallet, &*ask.currency, after, ask.limit as i64])?;
///     while let Some(row) = rows.next()? {
///         after = row.get("number")?;
///         let (id, amount): (String, String) = (row.get("id")?, row.get("amount")?);
///         tokens.push(Token::new(id, Amount::parse(&amount)?));
///     }
///     let next = (tokens.len() == ask.limit).then(|| after.to_string());
///     Ok(Page { tokens, next })
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let table = Connection::open_in_memory()?;
///     table.execute_batch(
///         "CREATE TABLE tokens (number INTEGER PRIMARY KEY, wallet TEXT, currency TEXT, id TEXT UNIQUE, amount TEXT);
///         CREATE INDEX of_wallet ON tokens (wallet, currency, number);
///         INSERT INTO tokens (wallet, currency, id, amount)
///             VALUES ('wallet', 'CHF', 'a', '3'), ('wallet', 'CHF', 'b', '3'), ('wallet', 'CHF', 'c', '5');",
///     )?;
///     let table = Arc::new(Mutex::new(table));
///     let source = move |ask: PageAsk| {
///         let table = table.clone();
///         async move {
///             // SQLite blocks its thread. A driver that is asynchronous is awaited here instead.
///             let read = move || page(&table.lock().unwrap(), &ask).map_err(|error| error.to_string());
///             tokio::task::spawn_blocking(read).await.unwrap_or_else(|error| Err(error.to_string()))
///         }
///     };
///     let lh = leasehold::connect("memory:tokens").namespace("net:1").open()?;
///     let tokens = lh.tokens("wallet", source).currency("CHF").open()?;
///     let selection = tokens.select(7u64).await?;
///     assert!(selection.sum() >= Amount::from(7u64));
///     # assert!(tokens.select(12u64).await.unwrap_err().to_string().contains("11"));
///     selection.spent().await?;
///     Ok(())
/// }
/// ```
pub trait TokenSource: MaybeSend + MaybeSync {
    /// Some of the unspent tokens of a wallet and currency; or what went wrong, in words. A wallet that is not known has
    /// none. Asked once at a time for all who select of a currency; a page that takes longer than 30 s, and than the wallet's
    /// `max_age`, is given up, and the walk begins anew.
    fn page(&self, ask: PageAsk) -> BoxedFuture<'_, Result<Page, String>>;

    /// Whether it can say what is spent: without that nobody can [`verify`](crate::tokens::Bounds::verify). A source that has
    /// [`Self::spent`] says so here.
    fn verifies(&self) -> bool {
        false
    }

    /// Which of these tokens are spent. Asked before a selection is returned, where [`verify`](crate::tokens::Bounds::verify) is
    /// set.
    fn spent(&self, wallet: Arc<str>, ids: Vec<Arc<str>>) -> BoxedFuture<'_, Result<Vec<Arc<str>>, String>> {
        let _ = (wallet, ids);
        Box::pin(std::future::ready(Ok(Vec::new())))
    }
}

/// A function is a source that does not verify; it may fail with any error that has words.
impl<F, A, E> TokenSource for F
where
    F: Fn(PageAsk) -> A + MaybeSend + MaybeSync,
    A: Future<Output = Result<Page, E>> + MaybeSend + 'static,
    E: Display,
{
    fn page(&self, ask: PageAsk) -> BoxedFuture<'_, Result<Page, String>> {
        let page = self(ask);
        Box::pin(async { page.await.map_err(|error| error.to_string()) })
    }
}

/// A source that handles share.
#[cfg(not(target_arch = "wasm32"))]
pub type SharedSource = Arc<dyn TokenSource + Send + Sync>;
/// A source that handles share.
#[cfg(target_arch = "wasm32")]
pub type SharedSource = Arc<dyn TokenSource>;

/// What a source tells of, where it can.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A token is there.
    Added(Token),
    /// A token of this id is spent.
    Spent(Arc<str>),
    /// Every change is told of from now on.
    Listening,
    /// Changes may have been missed: everything is looked at once more.
    Gap,
}

impl Change {
    /// Reads what a language gives: a map of `added` (a token) or of `spent` (an id), or one of the texts `listening` and
    /// `gap`.
    ///
    /// # Errors
    /// `invalid_argument` naming what is wrong.
    #[doc(hidden)]
    pub fn read(value: &Value) -> Result<Self> {
        match value {
            Value::Text(text) if text == "listening" => return Ok(Change::Listening),
            Value::Text(text) if text == "gap" => return Ok(Change::Gap),
            _ => {}
        }
        let unknown = || Error::invalid("", "must be a map of added or of spent, or one of listening, gap");
        let mut options = Options::new(value).map_err(|_| unknown())?;
        let added = options.take("added", Token::read)?;
        let spent = options.take("spent", |value| value.as_text().map(Arc::from))?;
        options.end()?;
        match (added, spent) {
            (Some(token), None) => Ok(Change::Added(token)),
            (None, Some(id)) => Ok(Change::Spent(id)),
            _ => Err(unknown()),
        }
    }
}

/// Reads ids of tokens: what a source says of those that are spent, or which locks are asked for.
///
/// # Errors
/// `invalid_argument` if it is no list of texts.
#[doc(hidden)]
pub fn read_ids(value: &Value) -> Result<Vec<Arc<str>>> {
    let read = |(id, at): (&Value, _)| {
        let id = id.as_text().map_err(|error| error.within(&format!("[{at}]")));
        id.map(Arc::from)
    };
    value.as_list()?.iter().zip(0..).map(read).collect()
}

/// Ids of tokens as a value: what a source is asked of.
#[doc(hidden)]
pub fn write_ids(ids: &[Arc<str>]) -> Value {
    Value::List(ids.iter().map(|id| (&**id).into()).collect())
}

/// Tokens in this process's memory.
#[derive(Clone, Debug, Default)]
pub struct TokensInMemory(Arc<Mutex<Wallets>>);

/// By wallet and currency.
type Wallets = FxHashMap<(Arc<str>, Arc<str>), Kept>;

/// The tokens of one wallet and currency, in the order in which they were added.
#[derive(Debug, Default)]
struct Kept {
    tokens: BTreeMap<u64, Token>,
    numbers: FxHashMap<Arc<str>, u64>,
    next: u64,
}

impl TokensInMemory {
    /// Adds a token; one of the same id is replaced.
    pub fn add(&self, wallet: &str, currency: &str, token: Token) {
        let mut all = self.lock();
        let kept = all.entry((wallet.into(), currency.into())).or_default();
        let number = *kept.numbers.entry(token.id.clone()).or_insert(kept.next);
        kept.next = kept.next.max(number + 1);
        kept.tokens.insert(number, token);
    }

    /// A token is spent.
    pub fn spend(&self, wallet: &str, id: &str) {
        for (_, kept) in self.lock().iter_mut().filter(|((of, _), _)| **of == *wallet) {
            if let Some(number) = kept.numbers.remove(id) {
                kept.tokens.remove(&number);
            }
        }
    }

    /// What a wallet has of a currency.
    pub fn sum(&self, wallet: &str, currency: &str) -> Amount {
        let all = self.lock();
        let kept = all.get(&(wallet.into(), currency.into()));
        kept.into_iter().flat_map(|kept| kept.tokens.values()).map(|token| token.amount).sum()
    }

    fn lock(&self) -> MutexGuard<'_, Wallets> {
        unpoisoned(&self.0)
    }
}

impl Kept {
    /// A page of a walk that begins at a place of its own and goes round; where it stands is written `first-next`.
    fn page(&self, after: Option<&str>, limit: usize, seed: u64) -> Option<Page> {
        let (first, next) = match after {
            Some(place) => {
                let (first, next) = place.split_once('-')?;
                (first.parse().ok()?, next.parse().ok()?)
            }
            None => {
                let first = Draw::new(seed).below(self.next);
                (first, first)
            }
        };
        let ahead: Box<dyn Iterator<Item = (&u64, &Token)>> = if next >= first {
            Box::new(self.tokens.range(next..).chain(self.tokens.range(..first)))
        } else {
            Box::new(self.tokens.range(next..first))
        };
        let mut ahead = ahead.peekable();
        let tokens = ahead.by_ref().take(limit.max(1)).map(|(_, token)| token.clone()).collect();
        let next = ahead.peek().map(|(number, _)| format!("{first}-{number}"));
        Some(Page { tokens, next })
    }
}

impl TokenSource for TokensInMemory {
    fn page(&self, ask: PageAsk) -> BoxedFuture<'_, Result<Page, String>> {
        let page = match self.lock().get(&(ask.wallet, ask.currency)) {
            Some(kept) => kept.page(ask.after.as_deref(), ask.limit, ask.seed),
            None => Some(Page::default()),
        };
        Box::pin(std::future::ready(page.ok_or_else(|| "this is no place in the list".to_owned())))
    }

    fn verifies(&self) -> bool {
        true
    }

    fn spent(&self, wallet: Arc<str>, ids: Vec<Arc<str>>) -> BoxedFuture<'_, Result<Vec<Arc<str>>, String>> {
        let all = self.lock();
        let there =
            |id: &Arc<str>| all.iter().any(|((of, _), kept)| *of == wallet && kept.numbers.contains_key(id));
        let spent = ids.iter().filter(|id| !there(id)).cloned().collect();
        Box::pin(std::future::ready(Ok(spent)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(source: &TokensInMemory, wallet: &str, seed: u64, limit: usize) -> Vec<String> {
        let kept = source.lock();
        let Some(kept) = kept.get(&(wallet.into(), "EUR".into())) else { return Vec::new() };
        let (mut ids, mut after) = (Vec::new(), None);
        loop {
            let page = kept.page(after.as_deref(), limit, seed).expect("a page");
            assert!(page.tokens.len() <= limit);
            ids.extend(page.tokens.into_iter().map(|token| token.id.to_string()));
            match page.next {
                Some(next) => after = Some(next),
                None => return ids,
            }
        }
    }

    #[test]
    fn changes_are_read_or_refused() {
        let map = |entries: &[(&str, Value)]| {
            Value::Map(entries.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
        };
        let token = map(&[("id", "a".into()), ("amount", 5u64.into())]);
        for (value, change) in [
            ("listening".into(), Change::Listening),
            ("gap".into(), Change::Gap),
            (map(&[("spent", "".into())]), Change::Spent("".into())),
            (map(&[("added", token.clone())]), Change::Added(Token::new("a", 5u64))),
        ] {
            assert_eq!(Change::read(&value).unwrap(), change);
        }
        let nameless = map(&[("amount", 5u64.into())]);
        for (value, field) in [
            (Value::Null, ""),
            ("added".into(), ""),
            (map(&[("spent", "a".into()), ("added", token)]), ""),
            (map(&[("spent", 5u64.into())]), "spent"),
            (map(&[("added", nameless)]), "added.id"),
            (map(&[("gone", "a".into())]), "gone"),
        ] {
            assert_eq!(Change::read(&value).unwrap_err().field(), Some(field));
        }
    }

    #[test]
    fn every_walk_sees_every_token_once_from_a_place_of_its_own() {
        let source = TokensInMemory::default();
        for number in 0..25u64 {
            source.add("w", "EUR", Token::new(number.to_string(), number));
        }
        source.spend("w", "3");
        source.spend("other", "4");
        source.add("w", "EUR", Token::new("5", 50u64));
        let mut firsts = std::collections::BTreeSet::new();
        for seed in 0..50 {
            for limit in [1, 7, 24, 100] {
                let mut ids = walk(&source, "w", seed, limit);
                firsts.insert(ids.first().cloned());
                ids.sort_unstable();
                ids.dedup();
                assert_eq!(ids.len(), 24, "seed {seed}, limit {limit}");
            }
        }
        assert!(firsts.len() > 10);
        assert_eq!(source.sum("w", "EUR"), (300u64 - 3 - 5 + 50).into());
        assert_eq!(source.sum("w", "USD"), Amount::ZERO);
        assert!(source.lock().values().all(|kept| kept.page(Some("x"), 1, 1).is_none()));
    }
}
