//! The ranges of sorted sets: by index or by score, in either direction.

use super::integer;
use super::span::Span;
use crate::error_reply::ErrorReply;
use crate::sorted_set::{ScoreBound, SortedSet};

/// Which members a command asks for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Range {
    by: By,
    reversed: bool,
    offset: i64,
    limit: i64,
    pub(crate) with_scores: bool,
}

#[derive(Clone, Copy, Debug)]
enum By {
    Index(Span),
    Score(ScoreBound, ScoreBound),
}

/// One end of a range of members.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LexBound<'a> {
    Lowest,
    Highest,
    Member { member: &'a [u8], exclusive: bool },
}

impl<'a> LexBound<'a> {
    pub(crate) fn parse(text: &'a [u8]) -> Result<Self, ErrorReply> {
        match text {
            b"-" => Ok(LexBound::Lowest),
            b"+" => Ok(LexBound::Highest),
            [b'[', member @ ..] => Ok(LexBound::Member { member, exclusive: false }),
            [b'(', member @ ..] => Ok(LexBound::Member { member, exclusive: true }),
            _ => Err(ErrorReply::fixed("ERR min or max not valid string range item")),
        }
    }

    pub(crate) fn is_below(self, other: &[u8]) -> bool {
        match self {
            LexBound::Lowest => true,
            LexBound::Highest => false,
            LexBound::Member { member, exclusive } => member < other || (member == other && !exclusive),
        }
    }

    pub(crate) fn is_above(self, other: &[u8]) -> bool {
        match self {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Member { member, exclusive } => other < member || (member == other && !exclusive),
        }
    }
}

/// Reads one end of a range of scores.
pub(crate) fn score_bound(text: &[u8]) -> Result<ScoreBound, ErrorReply> {
    let (exclusive, number) = text.strip_prefix(b"(").map_or((false, text), |number| (true, number));
    // An empty number is zero to C, whose reading of a bound is laxer than that of a score.
    let score = if number.is_empty() { Some(0.0) } else { parse_bound(number) };
    score
        .map(|score| ScoreBound { score, exclusive })
        .ok_or(const { ErrorReply::fixed("ERR min or max is not a float") })
}

impl Range {
    /// The arguments of ZRANGE after its key.
    pub(crate) fn parse(args: &[&[u8]]) -> Result<Self, ErrorReply> {
        let words = Words::parse(&args[2..])?;
        if words.limit.is_some() && !words.by_score {
            return Err(ErrorReply::fixed(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
            ));
        }
        Self::build(args, words.by_score, words.reversed, &words)
    }

    /// The arguments of ZREVRANGE after its key.
    pub(crate) fn parse_by_index(args: &[&[u8]], reversed: bool) -> Result<Self, ErrorReply> {
        let words = Words::parse(&args[2..])?;
        if words.limit.is_some() || words.by_score || words.reversed {
            return Err(ErrorReply::SYNTAX);
        }
        Self::build(args, false, reversed, &words)
    }

    /// The arguments of ZRANGEBYSCORE after its key.
    pub(crate) fn parse_by_score(args: &[&[u8]], reversed: bool) -> Result<Self, ErrorReply> {
        let words = Words::parse(&args[2..])?;
        if words.by_score || words.reversed {
            return Err(ErrorReply::SYNTAX);
        }
        Self::build(args, true, reversed, &words)
    }

    /// The members with their scores, in the order asked for.
    pub(crate) fn of<'a>(&self, set: &'a SortedSet) -> Vec<(&'a [u8], f64)> {
        match self.by {
            By::Index(span) => {
                let span = span.of(set.len());
                let members = set.iter();
                if self.reversed {
                    members.rev().skip(span.start).take(span.len()).collect()
                } else {
                    members.skip(span.start).take(span.len()).collect()
                }
            }
            By::Score(low, high) => {
                let Ok(offset) = usize::try_from(self.offset) else { return Vec::new() };
                let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
                let members = set.within(low, high);
                if self.reversed {
                    members.rev().skip(offset).take(limit).collect()
                } else {
                    members.skip(offset).take(limit).collect()
                }
            }
        }
    }

    fn build(args: &[&[u8]], by_score: bool, reversed: bool, words: &Words) -> Result<Self, ErrorReply> {
        let by = match (by_score, reversed) {
            (false, _) => By::Index(Span::parse(args[0], args[1])?),
            (true, false) => By::Score(score_bound(args[0])?, score_bound(args[1])?),
            // Backwards, the higher bound comes first.
            (true, true) => By::Score(score_bound(args[1])?, score_bound(args[0])?),
        };
        let (offset, limit) = words.limit.unwrap_or((0, -1));
        Ok(Self { by, reversed, offset, limit, with_scores: words.with_scores })
    }
}

fn parse_bound(text: &[u8]) -> Option<f64> {
    std::str::from_utf8(text).ok()?.trim_start().parse().ok().filter(|score: &f64| !score.is_nan())
}

#[derive(Debug, Default)]
struct Words {
    by_score: bool,
    reversed: bool,
    with_scores: bool,
    limit: Option<(i64, i64)>,
}

impl Words {
    fn parse(args: &[&[u8]]) -> Result<Self, ErrorReply> {
        let mut words = Self::default();
        let mut args = args.iter();
        while let Some(word) = args.next() {
            match word.to_ascii_uppercase().as_slice() {
                b"BYSCORE" => words.by_score = true,
                b"REV" => words.reversed = true,
                b"WITHSCORES" => words.with_scores = true,
                b"LIMIT" => {
                    let (Some(offset), Some(limit)) = (args.next(), args.next()) else {
                        return Err(ErrorReply::SYNTAX);
                    };
                    words.limit = Some((integer(offset)?, integer(limit)?));
                }
                _ => return Err(ErrorReply::SYNTAX),
            }
        }
        Ok(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(line: &str) -> Vec<&[u8]> {
        line.split(' ').map(str::as_bytes).collect()
    }

    #[test]
    fn bounds_are_read() {
        let bound = |score, exclusive| Ok(ScoreBound { score, exclusive });
        assert_eq!(score_bound(b"(1.5"), bound(1.5, true));
        assert_eq!(score_bound(b"-inf"), bound(f64::NEG_INFINITY, false));
        assert_eq!(score_bound(b"("), bound(0.0, true));
        assert!(score_bound(b"nan").is_err());
        assert!(score_bound(b"((1").is_err());
    }

    #[test]
    fn words_that_do_not_go_together_are_refused() {
        assert!(Range::parse(&args("0 1 LIMIT 0 1")).is_err());
        assert!(Range::parse(&args("0 1 BYSCORE LIMIT 0")).is_err());
        assert!(Range::parse(&args("0 1 huh")).is_err());
        assert!(Range::parse_by_index(&args("0 1 BYSCORE"), true).is_err());
        assert!(Range::parse_by_score(&args("0 1 REV"), false).is_err());
        assert!(Range::parse_by_score(&args("0 x"), false).is_err());
    }

    #[test]
    fn a_negative_offset_selects_nothing() {
        let mut set = SortedSet::default();
        set.insert(b"a", 1.0);
        let chosen = |line: &str| Range::parse_by_score(&args(line), false).expect("valid").of(&set).len();
        assert_eq!(chosen("0 9 LIMIT -1 5"), 0);
        assert_eq!(chosen("0 9 LIMIT 0 -5"), 1);
        assert_eq!(chosen("0 9 LIMIT 0 0"), 0);
    }
}
