//! Commands on sorted sets; the ranges are in `range`.

use super::range::{LexBound, Range, score_bound};
use super::span::Span;
use super::{count, integer};
use crate::Resp;
use crate::error_reply::{Answer, ErrorReply};
use crate::number::{format_double, parse_double};
use crate::server::Server;
use crate::sorted_set::SortedSet;

pub(crate) fn zadd(server: &mut Server, args: &[&[u8]]) -> Answer {
    let (rule, pairs) = AddRule::parse(&args[2..])?;
    let scores: Vec<f64> =
        pairs.iter().step_by(2).map(|text| score(text)).collect::<Result<_, ErrorReply>>()?;
    if rule.only_old && server.keyspace.read::<SortedSet>(args[1])?.is_none() {
        return Ok(if rule.increments { Resp::Nil } else { Resp::Int(0) });
    }
    let set = server.keyspace.open::<SortedSet>(args[1])?;
    let (mut added, mut changed, mut result) = (0, 0, None);
    for (pair, given) in pairs.chunks_exact(2).zip(scores) {
        let old = set.score(pair[1]);
        let new = match old {
            Some(old) if rule.increments => old + given,
            _ => given,
        };
        if new.is_nan() {
            return Err(ErrorReply::fixed("ERR resulting score is not a number (NaN)"));
        }
        if !rule.allows(old, new) {
            continue;
        }
        result = Some(new);
        if set.insert(pair[1], new) {
            added += 1;
        } else if old != Some(new) {
            changed += 1;
        }
    }
    server.keyspace.settle(args[1]);
    if rule.increments {
        return Ok(result.map_or(Resp::Nil, double));
    }
    Ok(Resp::Int(if rule.counts_changes { added + changed } else { added }))
}

pub(crate) fn zincrby(server: &mut Server, args: &[&[u8]]) -> Answer {
    zadd(server, &[b"ZADD", args[1], b"INCR", args[2], args[3]])
}

pub(crate) fn zrem(server: &mut Server, args: &[&[u8]]) -> Answer {
    remove(server, args[1], |_| Ok(args[2..].iter().map(|member| member.to_vec()).collect()))
}

pub(crate) fn zremrangebyrank(server: &mut Server, args: &[&[u8]]) -> Answer {
    let span = Span::parse(args[2], args[3])?;
    remove(server, args[1], |set| {
        let span = span.of(set.len());
        Ok(set.iter().skip(span.start).take(span.len()).map(|(member, _)| member.to_vec()).collect())
    })
}

pub(crate) fn zremrangebyscore(server: &mut Server, args: &[&[u8]]) -> Answer {
    let (low, high) = (score_bound(args[2])?, score_bound(args[3])?);
    remove(server, args[1], |set| Ok(set.within(low, high).map(|(member, _)| member.to_vec()).collect()))
}

pub(crate) fn zscore(server: &mut Server, args: &[&[u8]]) -> Answer {
    let set = server.keyspace.read::<SortedSet>(args[1])?;
    Ok(set.and_then(|set| set.score(args[2])).map_or(Resp::Nil, double))
}

pub(crate) fn zmscore(server: &mut Server, args: &[&[u8]]) -> Answer {
    let set = server.keyspace.read::<SortedSet>(args[1])?;
    let read = |member: &&[u8]| set.and_then(|set| set.score(member)).map_or(Resp::Nil, double);
    Ok(Resp::Array(args[2..].iter().map(read).collect()))
}

pub(crate) fn zcard(server: &mut Server, args: &[&[u8]]) -> Answer {
    Ok(server.keyspace.read::<SortedSet>(args[1])?.map_or(0, SortedSet::len).into())
}

pub(crate) fn zcount(server: &mut Server, args: &[&[u8]]) -> Answer {
    let (low, high) = (score_bound(args[2])?, score_bound(args[3])?);
    let set = server.keyspace.read::<SortedSet>(args[1])?;
    Ok(set.map_or(0, |set| set.within(low, high).count()).into())
}

pub(crate) fn zrank(server: &mut Server, args: &[&[u8]]) -> Answer {
    let set = server.keyspace.read::<SortedSet>(args[1])?;
    Ok(set.and_then(|set| set.rank(args[2])).map_or(Resp::Nil, Resp::from))
}

pub(crate) fn zrevrank(server: &mut Server, args: &[&[u8]]) -> Answer {
    let set = server.keyspace.read::<SortedSet>(args[1])?;
    Ok(set.and_then(|set| Some(set.len() - 1 - set.rank(args[2])?)).map_or(Resp::Nil, Resp::from))
}

pub(crate) fn zpopmin(server: &mut Server, args: &[&[u8]]) -> Answer {
    pop(server, args, |set| set.iter().next().map(|(member, score)| (member.to_vec(), score)))
}

pub(crate) fn zpopmax(server: &mut Server, args: &[&[u8]]) -> Answer {
    pop(server, args, |set| set.iter().next_back().map(|(member, score)| (member.to_vec(), score)))
}

pub(crate) fn zrange(server: &mut Server, args: &[&[u8]]) -> Answer {
    select(server, args[1], &Range::parse(&args[2..])?)
}

pub(crate) fn zrevrange(server: &mut Server, args: &[&[u8]]) -> Answer {
    select(server, args[1], &Range::parse_by_index(&args[2..], true)?)
}

/// For a set whose scores are all the same; what a server gives for another one is not defined.
pub(crate) fn zrangebylex(server: &mut Server, args: &[&[u8]]) -> Answer {
    let (low, high) = (LexBound::parse(args[2])?, LexBound::parse(args[3])?);
    let (offset, limit) = match &args[4..] {
        [] => (0, usize::MAX),
        [word, offset, count] if word.eq_ignore_ascii_case(b"LIMIT") => {
            let limit = usize::try_from(integer(count)?).unwrap_or(usize::MAX);
            (usize::try_from(integer(offset)?).unwrap_or(usize::MAX), limit)
        }
        _ => return Err(ErrorReply::SYNTAX),
    };
    let set = server.keyspace.read::<SortedSet>(args[1])?;
    let members = set.into_iter().flat_map(SortedSet::iter).map(|(member, _)| member);
    let within = members.filter(|member| low.is_below(member) && high.is_above(member));
    Ok(Resp::Array(within.skip(offset).take(limit).map(Resp::bulk).collect()))
}

pub(crate) fn zrangebyscore(server: &mut Server, args: &[&[u8]]) -> Answer {
    select(server, args[1], &Range::parse_by_score(&args[2..], false)?)
}

pub(crate) fn zrevrangebyscore(server: &mut Server, args: &[&[u8]]) -> Answer {
    select(server, args[1], &Range::parse_by_score(&args[2..], true)?)
}

fn select(server: &mut Server, key: &[u8], range: &Range) -> Answer {
    let set = server.keyspace.read::<SortedSet>(key)?;
    let mut items = Vec::new();
    for (member, score) in set.map(|set| range.of(set)).into_iter().flatten() {
        items.push(Resp::bulk(member));
        if range.with_scores {
            items.push(double(score));
        }
    }
    Ok(Resp::Array(items))
}

fn remove(
    server: &mut Server,
    key: &[u8],
    choose: impl FnOnce(&SortedSet) -> Result<Vec<Vec<u8>>, ErrorReply>,
) -> Answer {
    let Some(set) = server.keyspace.edit::<SortedSet>(key)? else { return Ok(Resp::Int(0)) };
    let removed = choose(set)?.iter().filter(|member| set.remove(member)).count();
    server.keyspace.settle(key);
    Ok(removed.into())
}

fn pop(server: &mut Server, args: &[&[u8]], end: fn(&SortedSet) -> Option<Scored>) -> Answer {
    let wanted = match &args[2..] {
        [] => 1,
        [wanted] => count(wanted)?,
        _ => return Err(ErrorReply::SYNTAX),
    };
    let mut items = Vec::new();
    if let Some(set) = server.keyspace.edit::<SortedSet>(args[1])? {
        for _ in 0..wanted {
            let Some((member, score)) = end(set) else { break };
            set.remove(&member);
            items.extend([Resp::Bulk(member), double(score)]);
        }
        server.keyspace.settle(args[1]);
    }
    Ok(Resp::Array(items))
}

type Scored = (Vec<u8>, f64);

fn score(text: &[u8]) -> Result<f64, ErrorReply> {
    parse_double(text).ok_or(ErrorReply::NOT_A_FLOAT)
}

fn double(value: f64) -> Resp {
    Resp::bulk(format_double(value))
}

/// What ZADD may do to whom.
#[derive(Clone, Copy, Debug, Default)]
struct AddRule {
    only_new: bool,
    only_old: bool,
    only_higher: bool,
    only_lower: bool,
    counts_changes: bool,
    increments: bool,
}

impl AddRule {
    /// Reads the options, and gives back the scores and members after them.
    fn parse<'a, 'b>(args: &'a [&'b [u8]]) -> Result<(Self, &'a [&'b [u8]]), ErrorReply> {
        let mut rule = Self::default();
        let mut rest = args;
        while let Some((word, after)) = rest.split_first() {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" => rule.only_new = true,
                b"XX" => rule.only_old = true,
                b"GT" => rule.only_higher = true,
                b"LT" => rule.only_lower = true,
                b"CH" => rule.counts_changes = true,
                b"INCR" => rule.increments = true,
                _ => break,
            }
            rest = after;
        }
        if rest.is_empty() || !rest.len().is_multiple_of(2) {
            return Err(ErrorReply::SYNTAX);
        }
        if rule.only_new && rule.only_old {
            return Err(ErrorReply::fixed("ERR XX and NX options at the same time are not compatible"));
        }
        if rule.only_new && (rule.only_higher || rule.only_lower) || rule.only_higher && rule.only_lower {
            let text = "ERR GT, LT, and/or NX options at the same time are not compatible";
            return Err(ErrorReply::fixed(text));
        }
        if rule.increments && rest.len() > 2 {
            return Err(ErrorReply::fixed("ERR INCR option supports a single increment-element pair"));
        }
        Ok((rule, rest))
    }

    fn allows(self, old: Option<f64>, new: f64) -> bool {
        match old {
            None => !self.only_old,
            Some(old) => !(self.only_new || self.only_higher && new <= old || self.only_lower && new >= old),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        let mut server = Server::new(0, 0);
        run(&mut server, "ZADD z 1 a 2 b 3 c 2 bb").expect("added");
        server
    }

    fn run(server: &mut Server, line: &str) -> Answer {
        let args: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        server.run(&args)
    }

    fn bulks(line: &str) -> Answer {
        Ok(Resp::Array(line.split_whitespace().map(Resp::bulk).collect()))
    }

    #[test]
    fn adding_heeds_its_options() {
        let mut server = server();
        assert_eq!(run(&mut server, "ZADD z XX CH 5 a 5 q"), Ok(Resp::Int(1)));
        assert_eq!(run(&mut server, "ZADD z NX 9 a 9 q"), Ok(Resp::Int(1)));
        assert_eq!(run(&mut server, "ZADD z GT CH 4 a 10 q"), Ok(Resp::Int(1)));
        assert_eq!(run(&mut server, "ZADD z LT CH 4 a 11 q"), Ok(Resp::Int(1)));
        assert_eq!(run(&mut server, "ZADD z INCR 0.5 a"), Ok(Resp::bulk("4.5")));
        assert_eq!(run(&mut server, "ZADD z NX INCR 1 a"), Ok(Resp::Nil));
        assert_eq!(run(&mut server, "ZINCRBY z 1 a"), Ok(Resp::bulk("5.5")));
        assert_eq!(run(&mut server, "ZADD nosuch XX 1 a"), Ok(Resp::Int(0)));
        assert_eq!(run(&mut server, "EXISTS nosuch"), Ok(Resp::Int(0)));
    }

    #[test]
    fn adding_refuses_before_it_changes_anything() {
        let mut server = server();
        assert_eq!(run(&mut server, "ZADD z 1 x y z"), Err(ErrorReply::NOT_A_FLOAT));
        assert_eq!(run(&mut server, "ZADD z 1 x 2"), Err(ErrorReply::SYNTAX));
        assert!(run(&mut server, "ZADD z NX XX 1 x").is_err());
        assert!(run(&mut server, "ZADD z GT LT 1 x").is_err());
        assert!(run(&mut server, "ZADD z INCR 1 x 2 y").is_err());
        run(&mut server, "ZADD z inf i").expect("added");
        assert!(run(&mut server, "ZINCRBY z -inf i").is_err());
        assert_eq!(run(&mut server, "ZCARD z"), Ok(Resp::Int(5)));
    }

    #[test]
    fn members_have_scores_and_ranks() {
        let mut server = server();
        assert_eq!(run(&mut server, "ZSCORE z bb"), Ok(Resp::bulk("2")));
        assert_eq!(run(&mut server, "ZSCORE z nosuch"), Ok(Resp::Nil));
        assert_eq!(run(&mut server, "ZRANK z bb"), Ok(Resp::Int(2)));
        assert_eq!(run(&mut server, "ZREVRANK z bb"), Ok(Resp::Int(1)));
        assert_eq!(run(&mut server, "ZRANK z nosuch"), Ok(Resp::Nil));
        assert_eq!(run(&mut server, "ZCOUNT z (1 2"), Ok(Resp::Int(2)));
        let scores = Resp::Array(vec![Resp::bulk("1"), Resp::Nil]);
        assert_eq!(run(&mut server, "ZMSCORE z a q"), Ok(scores));
    }

    #[test]
    fn ranges_go_by_index_and_by_score() {
        let mut server = server();
        assert_eq!(run(&mut server, "ZRANGE z 0 -1"), bulks("a b bb c"));
        assert_eq!(run(&mut server, "ZRANGE z 0 1 WITHSCORES"), bulks("a 1 b 2"));
        assert_eq!(run(&mut server, "ZREVRANGE z 0 1"), bulks("c bb"));
        assert_eq!(run(&mut server, "ZRANGE z 0 1 REV"), bulks("c bb"));
        assert_eq!(run(&mut server, "ZRANGEBYSCORE z (1 +inf LIMIT 1 1"), bulks("bb"));
        assert_eq!(run(&mut server, "ZREVRANGEBYSCORE z 2 -inf LIMIT 0 2"), bulks("bb b"));
        assert_eq!(run(&mut server, "ZRANGE z 2 1 BYSCORE REV LIMIT 0 -1"), bulks("bb b a"));
        assert_eq!(run(&mut server, "ZRANGE nosuch 0 -1"), bulks(""));
    }

    #[test]
    fn removing_the_last_member_removes_the_key() {
        let mut server = server();
        assert_eq!(run(&mut server, "ZPOPMIN z"), bulks("a 1"));
        assert_eq!(run(&mut server, "ZPOPMAX z 1"), bulks("c 3"));
        assert_eq!(run(&mut server, "ZREMRANGEBYRANK z 0 0"), Ok(Resp::Int(1)));
        assert_eq!(run(&mut server, "ZREM z q"), Ok(Resp::Int(0)));
        assert_eq!(run(&mut server, "ZREMRANGEBYSCORE z -inf inf"), Ok(Resp::Int(1)));
        assert_eq!(run(&mut server, "EXISTS z"), Ok(Resp::Int(0)));
        assert_eq!(run(&mut server, "ZPOPMIN z"), bulks(""));
        assert_eq!(run(&mut server, "ZPOPMIN z -1"), Err(ErrorReply::NOT_POSITIVE));
    }
}
