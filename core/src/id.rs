//! Names that users give: of slots, of pools, of namespaces.
//!
//! They become parts of keys that many programs share, so only plain printable ASCII is let through:
//! no look-alike letters, no separators, nothing invisible. An id of hexadecimal digits (`0x…`, an
//! account's address) is the same account in either case, so it is kept in lower case.

mod text;

use std::fmt;
use std::sync::Arc;

#[cfg(not(target_family = "wasm"))]
use self::text::Text;
use crate::error::{Error, Result};

/// The longest name, in bytes.
pub const MAX_BYTES: usize = 128;
/// The longest id of a token, name of a wallet or of a currency, or value of an action that is limited, in bytes.
pub const MAX_TOKEN_BYTES: usize = 256;
/// The longest that a store knows: a token's, of which every byte may be written in three.
const MAX_TOLD: usize = 3 * MAX_TOKEN_BYTES;

/// A wasm module is judged by its size: there each text is by itself, and is summed up byte by byte.
#[cfg(target_family = "wasm")]
type Text = Arc<str>;

#[cfg(target_family = "wasm")]
impl std::hash::Hash for SlotId {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u32(sum(self.0.bytes()));
    }
}

#[cfg(target_family = "wasm")]
impl std::hash::Hash for Name {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        state.write_u32(sum(self.0.bytes()));
    }
}

/// A sum that is the same in every process: FNV-1a of 32 bits.
#[cfg(any(target_family = "wasm", feature = "limits"))]
pub(crate) fn sum(bytes: impl Iterator<Item = u8>) -> u32 {
    bytes.fold(0x811c_9dc5, |sum, byte| (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// The id of a slot: 1 to 128 printable ASCII characters without `{`, `}`, `:`, `%` and blanks.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(target_family = "wasm"), derive(Hash))]
pub struct SlotId(Text);

impl SlotId {
    /// Reads an id. Hexadecimal ids (`0x…`) are kept in lower case.
    ///
    /// # Errors
    /// `invalid_argument` if the id is empty, longer than 128 bytes or has a character that is not allowed.
    pub fn new(text: &str) -> Result<Self> {
        check(text, b"{}%:", MAX_BYTES)?;
        let plain = if is_hexadecimal(text) { text.to_ascii_lowercase() } else { text.to_owned() };
        Ok(SlotId(plain.into()))
    }

    /// Reads the name of a lock: as an id, but `:` is allowed (`account:13`), and no two spellings are the same.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn name(text: &str) -> Result<Self> {
        check(text, b"{}%", MAX_BYTES).map(|()| SlotId(text.into()))
    }

    /// The slot of a token, written so that it holds no separator.
    #[cfg(feature = "tokens")]
    #[cfg_attr(target_family = "wasm", allow(clippy::useless_conversion, reason = "there it is the text"))]
    pub(crate) fn of_token(written: Arc<str>) -> Self {
        SlotId(written.into())
    }

    /// Reads what a store says: the slots of tokens are longer than what users name.
    ///
    /// # Errors
    /// `invalid_argument` if it is no slot's name.
    pub(crate) fn told(text: &str) -> Result<Self> {
        check(text, b"{}%", MAX_TOLD).map(|()| SlotId(text.into()))
    }

    /// The same ids, their texts in one piece of memory.
    #[cfg(not(target_family = "wasm"))]
    pub(crate) fn together<'a>(
        ids: impl Iterator<Item = &'a SlotId> + Clone,
    ) -> impl Iterator<Item = SlotId> {
        Text::together(ids.map(|id| &id.0)).map(SlotId)
    }

    /// The id's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Equality, for ids that mostly are the same piece of memory: then the text need not be fetched.
    pub(crate) fn is(&self, other: &SlotId) -> bool {
        Text::ptr_eq(&self.0, &other.0) || self == other
    }

    /// What two spellings of one account have in common: a hexadecimal id without its leading zeros.
    pub fn account(&self) -> SlotId {
        match self.0.strip_prefix("0x") {
            Some(digits) if is_hexadecimal(&self.0) => SlotId(digits.trim_start_matches('0').into()),
            _ => self.clone(),
        }
    }
}

impl fmt::Debug for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl fmt::Display for SlotId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The name of a pool or of a namespace: as an id, but `:` is allowed (`eth:1`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(target_family = "wasm"), derive(Hash))]
pub struct Name(Arc<str>);

impl Name {
    /// Reads a name.
    ///
    /// # Errors
    /// `invalid_argument` if the name is empty, longer than 128 bytes or has a character that is not allowed.
    pub fn new(text: &str) -> Result<Self> {
        check(text, b"{}%", MAX_BYTES)?;
        Ok(Name(text.into()))
    }

    /// The pool that all locks of a namespace are in: a name that no user can give.
    pub(crate) fn of_locks() -> Self {
        Name("%locks".into())
    }

    /// The pool of a wallet's tokens, the wallet's name written without separators: a name that no user can give.
    #[cfg(feature = "tokens")]
    #[cfg_attr(target_family = "wasm", allow(clippy::useless_conversion, reason = "there it is the text"))]
    pub(crate) fn of_tokens(wallet: &str) -> Self {
        Name(format!("%tokens-{wallet}").into())
    }

    /// What the limits of a scope are kept under: a name that no user can give, for every scope another.
    #[cfg(feature = "limits")]
    pub(crate) fn of_limits(scope: Option<&Name>) -> Self {
        Name(scope.map_or("%limits".into(), |scope| format!("%limits:{scope}").into()))
    }

    /// The limit that an action has for a value: a name that no user can give, for every such pair another.
    ///
    /// # Errors
    /// `invalid_argument` if the value is empty, or longer than 256 bytes.
    #[cfg(feature = "limits")]
    pub(crate) fn of_limit(action: &Name, value: &str) -> Result<Self> {
        match value.len() {
            0 => Err(Error::invalid("", "must not be empty")),
            1..=MAX_TOKEN_BYTES => Ok(Name(format!("{action}%={}", written(value)).into())),
            length => Err(too_long(length, MAX_TOKEN_BYTES)),
        }
    }

    /// The name's text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Equality, for names that mostly are the same piece of memory: then the text need not be fetched.
    #[cfg(feature = "limits")]
    pub(crate) fn is(&self, other: &Name) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self == other
    }

    /// The name as it stands in a key: `:` is written `%3A`, so that no two pairs of names give one key.
    pub fn encoded(&self) -> String {
        self.0.replace(':', "%3A")
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A pool within its namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PoolName {
    /// Carries the chain's id, so that two networks never share a nonce.
    pub namespace: Name,
    /// The pool's own name.
    pub pool: Name,
}

fn too_long(length: usize, most: usize) -> Error {
    Error::invalid("", format_args!("{length} bytes long, at most {most} are allowed"))
}

/// Whether a byte stands for itself in a key, also in text of any letters.
#[cfg(any(feature = "tokens", feature = "limits"))]
pub(crate) fn is_plain(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"{}%~".contains(&byte)
}

/// Text of which every byte that could not stand in a key is `~` and its two digits. No two texts give the same.
#[cfg(any(feature = "tokens", feature = "limits"))]
pub(crate) fn written(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            written.push(char::from(byte));
        } else {
            written.push_str(&format!("~{byte:02x}"));
        }
    }
    written
}

fn check(text: &str, separators: &[u8], most: usize) -> Result<()> {
    if text.is_empty() {
        return Err(Error::invalid("", "must not be empty"));
    }
    if text.len() > most {
        return Err(too_long(text.len(), most));
    }
    let good = |c: u8| c.is_ascii_graphic() && !separators.contains(&c);
    if let Some(bad) = text.chars().find(|&c| !c.is_ascii() || !good(c as u8)) {
        return Err(Error::invalid(
            "",
            format_args!(
                "character \"{}\" is not allowed; use printable ASCII without blanks, {{, }}, % and, in ids, :",
                shown(bad)
            ),
        ));
    }
    Ok(())
}

/// A letter as messages show it: by its number, if it is not printable ASCII. That is formatted as holders are: all else would
/// be more for browsers.
pub(crate) fn shown(letter: char) -> String {
    match letter {
        ' '..='~' => letter.into(),
        _ => format!("\\u{{{:x}}}", u128::from(letter)),
    }
}

fn is_hexadecimal(text: &str) -> bool {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    digits.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|c| c.is_ascii_hexdigit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_could_form_another_key_are_refused() {
        for bad in [
            "",
            "a{b",
            "a}b",
            "a:b",
            "a b",
            "a\0b",
            "a\nb",
            "a%b",
            "а",
            "ａ",
            "é",
            "\u{200b}",
            &"x".repeat(129),
        ] {
            assert!(SlotId::new(bad).is_err(), "{bad:?}");
        }
        for good in ["a", "0xAbC", "account-1.x_y~", &"x".repeat(128)] {
            assert!(SlotId::new(good).is_ok(), "{good:?}");
        }
    }

    #[test]
    fn one_account_is_one_id_whatever_its_case() {
        assert_eq!(SlotId::new("0xABcd").unwrap(), SlotId::new("0xabCD").unwrap());
        assert_eq!(SlotId::new("0XAB").unwrap().as_str(), "0xab");
        assert_ne!(SlotId::new("Alice").unwrap(), SlotId::new("alice").unwrap());
        assert_eq!(SlotId::new("0x00Ab").unwrap().account(), SlotId::new("0xab").unwrap().account());
    }

    #[test]
    fn a_letter_that_cannot_be_seen_is_shown_by_its_number() {
        let message = |text: &str| SlotId::new(text).unwrap_err().message().to_owned();
        assert!(message("a{b").starts_with(": character \"{\" is not allowed"));
        assert!(message("a b").starts_with(": character \" \" is not allowed"));
        for (bad, shown) in [("a\nb", r"\u{a}"), ("é", r"\u{e9}"), ("\u{200b}", r"\u{200b}")] {
            assert!(message(bad).starts_with(&format!(": character \"{shown}\" is not allowed")), "{bad:?}");
        }
    }

    #[test]
    fn names_allow_a_colon_and_encode_it() {
        assert_eq!(Name::new("eth:1").unwrap().encoded(), "eth%3A1");
        assert!(Name::new("eth{1").is_err());
        assert!(Name::new("eth%3A1").is_err());
    }
}
