//! Tokens, and how what their hosts call them becomes slots and holders.

use std::fmt;
use std::sync::Arc;

use super::Amount;
use super::digest::sha256;
use crate::error::{Error, Result};
use crate::id::{self, MAX_TOKEN_BYTES, Name, SlotId, is_plain};
use crate::value::{Options, Value};

/// A token that its source lists as unspent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// Any text up to 256 bytes, the empty one too. No two spellings are the same token.
    pub id: Arc<str>,
    /// What it is worth.
    pub amount: Amount,
    /// Its age, in whatever the source counts: the lower ones are older.
    pub since: u64,
}

impl Token {
    /// A token whose age does not matter.
    pub fn new(id: impl Into<Arc<str>>, amount: impl Into<Amount>) -> Self {
        Token { id: id.into(), amount: amount.into(), since: 0 }
    }

    /// Reads what a language gives: a map of `id`, `amount` and perhaps `since`.
    ///
    /// # Errors
    /// `invalid_argument` naming what is missing or wrong.
    #[doc(hidden)]
    pub fn read(value: &Value) -> Result<Self> {
        let mut options = Options::new(value)?;
        let id = options.take("id", |value| {
            let id = Arc::from(value.as_text()?);
            check(&id).map(|()| id)
        })?;
        let amount = options.take("amount", Amount::read)?;
        let since = options.take("since", Value::as_u64)?.unwrap_or(0);
        options.end()?;
        let missing = |field: &str| Error::invalid(field, "is missing");
        Ok(Token {
            id: id.ok_or_else(|| missing("id"))?,
            amount: amount.ok_or_else(|| missing("amount"))?,
            since,
        })
    }
}

/// What a source lists of a wallet's unspent tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Some of them.
    pub tokens: Vec<Token>,
    /// Where the next page begins, in the source's own words; nothing if this was the last.
    pub next: Option<String>,
}

impl Page {
    /// Reads what a language gives: a map of `tokens` and perhaps `next`, or the list of tokens alone, which is the last
    /// page then.
    ///
    /// # Errors
    /// `invalid_argument` naming what is missing or wrong.
    #[doc(hidden)]
    pub fn read(value: &Value) -> Result<Self> {
        if let Value::List(tokens) = value {
            return Ok(Page { tokens: read_tokens(tokens)?, next: None });
        }
        let mut options = Options::new(value)?;
        let tokens = options.take("tokens", |value| read_tokens(value.as_list()?))?;
        let next = options.take("next", |value| value.as_text().map(str::to_owned))?;
        options.end()?;
        Ok(Page { tokens: tokens.ok_or_else(|| Error::invalid("tokens", "is missing"))?, next })
    }
}

fn read_tokens(tokens: &[Value]) -> Result<Vec<Token>> {
    let read = |(token, at)| Token::read(token).map_err(|error: Error| error.within(&format!("[{at}]")));
    tokens.iter().zip(0..).map(read).collect()
}

/// Who spends tokens: what a listing shows as their holder. Whoever claims again under the same name takes the place of
/// its own earlier claim, in any process.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Spender(pub u128);

impl Spender {
    /// The spender of this name: 32 hexadecimal digits are themselves, of any other text (a transaction's id) the first
    /// half of its SHA-256.
    pub fn new(name: &str) -> Self {
        let digits = name.len() == 32 && name.bytes().all(|digit| digit.is_ascii_hexdigit());
        match u128::from_str_radix(name, 16) {
            Ok(number) if digits => Spender(number),
            _ => Spender(
                sha256(name.as_bytes()).iter().take(16).fold(0, |sum, &byte| (sum << 8) | u128::from(byte)),
            ),
        }
    }

    /// It, unless its name is empty: that is of a variable that nobody set, and many would spend as one.
    ///
    /// # Errors
    /// `invalid_argument`.
    pub fn named(self) -> Result<Self> {
        if self == Spender::new("") {
            return Err(Error::invalid(
                "spender",
                "is empty; give a name that nobody else has, or leave it out",
            ));
        }
        Ok(self)
    }

    /// Reads what a language gives: a name.
    ///
    /// # Errors
    /// `invalid_argument` if it is no text.
    #[doc(hidden)]
    pub fn read(value: &Value) -> Result<Self> {
        value.as_text().map(Spender::new)
    }
}

impl From<&str> for Spender {
    /// As [`Spender::new`].
    fn from(name: &str) -> Self {
        Spender::new(name)
    }
}

impl fmt::Display for Spender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Spender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The slot of a token. No two ids give the same.
///
/// # Errors
/// `invalid_argument` if the id is too long.
pub(crate) fn slot_of(id: &Arc<str>) -> Result<SlotId> {
    check(id)?;
    // Mostly nothing has to be written otherwise, and then it is the same piece of memory.
    let plain = !id.is_empty() && id.bytes().all(is_plain);
    Ok(SlotId::of_token(if plain { id.clone() } else { written(id).into() }))
}

/// The token that a slot is of.
pub(crate) fn token_of(slot: &SlotId) -> Arc<str> {
    let mut parts = slot.as_str().split('~');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        // Nothing follows the mark of the empty text.
        let (digits, rest) = part.split_at_checked(2).unwrap_or_default();
        bytes.extend(u8::from_str_radix(digits, 16));
        bytes.extend(rest.bytes());
    }
    String::from_utf8_lossy(&bytes).into()
}

/// The name of the pool of a wallet's tokens. No two wallets give the same, and no pool of a user's has it.
///
/// # Errors
/// `invalid_argument` if the wallet's name is too long.
pub(crate) fn wallet_pool(wallet: &str) -> Result<Name> {
    check(wallet)?;
    Ok(Name::of_tokens(&written(wallet)))
}

pub(super) fn check(text: &str) -> Result<()> {
    if text.len() > MAX_TOKEN_BYTES {
        let message = format_args!("{} bytes long, at most {MAX_TOKEN_BYTES} are allowed", text.len());
        return Err(Error::invalid("", message));
    }
    Ok(())
}

/// Text as a key can hold it; the empty text is a `~` alone.
fn written(text: &str) -> String {
    if text.is_empty() { "~".to_owned() } else { id::written(text) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn slot(id: &str) -> SlotId {
        slot_of(&id.into()).unwrap()
    }

    #[test]
    fn odd_ids_are_slots_that_a_key_can_hold() {
        for (id, expected) in [
            ("a.b", "a.b"),
            ("", "~"),
            ("~", "~7e"),
            ("7e", "7e"),
            ("a b", "a~20b"),
            ("{x}:%", "~7bx~7d:~25"),
            ("é", "~c3~a9"),
            ("0xAB", "0xAB"),
            ("a\0\n", "a~00~0a"),
        ] {
            assert_eq!(slot(id).as_str(), expected);
        }
        assert_eq!(slot(&"é".repeat(128)).as_str().len(), 768);
        assert!(slot_of(&"x".repeat(257).into()).is_err());
        let id: Arc<str> = "plain".into();
        assert!(std::ptr::eq(slot_of(&id).unwrap().as_str(), &*id), "not copied");
    }

    #[test]
    fn pages_are_read_or_refused_by_the_path() {
        let token = |id: Value, amount: Value| Value::map([("id", id), ("amount", amount)]);
        let good = || token("a".into(), "5".into());
        let bare = Value::List(vec![good(), token("".into(), 7u64.into())]);
        let page = Page::read(&bare).unwrap();
        assert_eq!(page, Page { tokens: vec![Token::new("a", 5u64), Token::new("", 7u64)], next: None });
        let map = |tokens, next| Page::read(&Value::map([("tokens", tokens), ("next", next)]));
        assert_eq!(map(bare.clone(), "x".into()).unwrap().next.as_deref(), Some("x"));
        assert_eq!(map(bare, Value::Null).unwrap(), page);
        let old = Value::map([("id", "a".into()), ("amount", 5u64.into()), ("since", u64::MAX.into())]);
        assert_eq!(Token::read(&old).unwrap().since, u64::MAX);
        for (tokens, next, field) in [
            (Value::Null, Value::Null, "tokens"),
            (Value::List(vec![good(), token(Value::Null, 5u64.into())]), Value::Null, "tokens[1].id"),
            (Value::List(vec![token(5u64.into(), 5u64.into())]), Value::Null, "tokens[0].id"),
            (
                Value::List(vec![token("x".repeat(257).as_str().into(), 5u64.into())]),
                Value::Null,
                "tokens[0].id",
            ),
            (Value::List(vec![token("a".into(), Value::Null)]), Value::Null, "tokens[0].amount"),
            (Value::List(vec![token("a".into(), Value::Number(0.5))]), Value::Null, "tokens[0].amount"),
            (Value::List(vec!["a".into()]), Value::Null, "tokens[0]"),
            (Value::List(vec![]), 5u64.into(), "next"),
        ] {
            assert_eq!(map(tokens, next).unwrap_err().field(), Some(field));
        }
        // A cursor under another name would end the walk at the first page.
        let misspelled = Value::map([("tokens", Value::List(vec![])), ("cursor", "x".into())]);
        assert_eq!(Page::read(&misspelled).unwrap_err().field(), Some("cursor"));
        assert!(Page::read(&"a".into()).is_err() && Page::read(&Value::Null).is_err());
    }

    #[test]
    fn a_wallets_pool_is_no_other_pool() {
        let name = |wallet: &str| wallet_pool(wallet).unwrap();
        assert_ne!(name("a.b"), name("a"));
        assert_ne!(name(""), name("~"));
        assert!(Name::new(name("a").as_str()).is_err(), "no user can give it");
        assert_ne!(name("locks").as_str(), "%locks");
    }

    #[test]
    fn a_spender_is_its_digits_or_the_digest_of_its_name() {
        assert_eq!(Spender::new("000000000000000000000000000000Ff").0, 255);
        assert_eq!(Spender::new("abc").to_string(), "ba7816bf8f01cfea414140de5dae2223");
        // A sign is no digit.
        assert_ne!(Spender::new("+00000000000000000000000000000ff").0, 255);
        assert_ne!(Spender::new("ff").0, 255);
    }

    proptest! {
        #[test]
        fn no_two_texts_are_written_the_same(one in "\\PC{0,6}|[~0-9a-f]{0,6}", other in "\\PC{0,6}|[~0-9a-f]{0,6}") {
            prop_assert_eq!(slot(&one) == slot(&other), one == other);
            prop_assert_eq!(wallet_pool(&one).unwrap() == wallet_pool(&other).unwrap(), one == other);
            let fits = slot(&one).as_str().bytes().all(|byte| byte.is_ascii_graphic() && !b"{}%".contains(&byte));
            prop_assert!(fits);
            prop_assert_eq!(&*token_of(&slot(&one)), one);
        }
    }
}
