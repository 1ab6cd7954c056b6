//! Ranges of indices, as LRANGE and ZRANGE take them.

use std::ops::Range;

use super::integer;
use crate::error_reply::ErrorReply;

/// The first and last index of a range; negative ones count from the end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Span {
    start: i64,
    stop: i64,
}

impl Span {
    pub(crate) fn parse(start: &[u8], stop: &[u8]) -> Result<Self, ErrorReply> {
        Ok(Self { start: integer(start)?, stop: integer(stop)? })
    }

    /// The indices of a sequence of this length.
    pub(crate) fn of(self, length: usize) -> Range<usize> {
        let length = length as i64;
        let from_end = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
        let start = from_end(self.start).max(0);
        let stop = from_end(self.stop).min(length - 1);
        if start > stop { 0..0 } else { start as usize..stop as usize + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(start: i64, stop: i64) -> Span {
        Span { start, stop }
    }

    #[test]
    fn indices_count_from_both_ends() {
        assert_eq!(span(0, -1).of(5), 0..5);
        assert_eq!(span(-2, -1).of(5), 3..5);
        assert_eq!(span(1, 2).of(5), 1..3);
        assert_eq!(span(-100, 100).of(5), 0..5);
        assert!(span(3, 1).of(5).is_empty());
        assert!(span(0, -1).of(0).is_empty());
        assert!(span(7, 9).of(5).is_empty());
        assert!(span(0, -9).of(5).is_empty());
        assert!(span(i64::MIN, i64::MIN).of(5).is_empty());
    }

    #[test]
    fn indices_are_integers() {
        assert!(Span::parse(b"0", b"-1").is_ok());
        assert_eq!(Span::parse(b"x", b"1").err(), Some(ErrorReply::NOT_AN_INTEGER));
    }
}
