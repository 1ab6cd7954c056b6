//! The text of an id, which many share.
#![cfg(not(target_family = "wasm"))]

use std::cmp::Ordering;
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

use rustc_hash::FxBuildHasher;

/// A piece of a longer text. Whoever takes an id and lets it go counts that where it is counted for the ids beside it, and not
/// in memory of its own: among very many slots, to fetch that takes as long as to fetch the slot.
/// It brings along its hash, which a claim of many names needs several times.
#[derive(Clone)]
pub(super) struct Text {
    whole: Arc<str>,
    from: u32,
    to: u32,
    hash: u64,
}

impl Text {
    /// The same texts as pieces of one, which is shorter than 4 GiB and stays as long as any of them.
    pub fn together<'a>(texts: impl Iterator<Item = &'a Text> + Clone) -> impl Iterator<Item = Text> {
        let whole: Arc<str> = texts.clone().map(|text| &**text).collect::<String>().into();
        let mut from = 0;
        texts.map(move |text| {
            let to = from + (text.to - text.from);
            Text { whole: whole.clone(), from: std::mem::replace(&mut from, to), to, hash: text.hash }
        })
    }

    /// Whether it is the same piece of memory.
    pub fn ptr_eq(one: &Text, other: &Text) -> bool {
        Arc::ptr_eq(&one.whole, &other.whole) && (one.from, one.to) == (other.from, other.to)
    }
}

impl<T: Into<Arc<str>>> From<T> for Text {
    fn from(text: T) -> Self {
        let whole = text.into();
        let to = whole.len() as u32;
        let hash = FxBuildHasher.hash_one(&*whole);
        Text { whole, from: 0, to, hash }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        self.whole.get(self.from as usize..self.to as usize).unwrap_or_default()
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && **self == **other
    }
}

impl Eq for Text {}

impl PartialOrd for Text {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Text {
    fn cmp(&self, other: &Self) -> Ordering {
        (**self).cmp(&**other)
    }
}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_one_are_the_texts_that_they_were() {
        let alone: Vec<Text> = ["b", "account-1", "0xab", "b"].map(Text::from).into();
        let pieces: Vec<Text> = Text::together(alone.iter()).collect();
        assert!(pieces == alone && *pieces[1] == *"account-1");
        assert!(pieces.iter().zip(&alone).all(|(piece, text)| piece.cmp(text) == Ordering::Equal));
        // Equal as they are, they stand in two places.
        assert!(pieces[0] == pieces[3] && !Text::ptr_eq(&pieces[0], &pieces[3]));
        assert!(Text::ptr_eq(&pieces[0], &pieces[0].clone()));
        assert!(Text::together(pieces[1..].iter()).eq(alone.into_iter().skip(1)), "of pieces");
    }
}
