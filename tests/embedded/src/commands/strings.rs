//! Commands on strings.

use super::integer;
use super::span::Span;
use crate::Resp;
use crate::error_reply::{Answer, ErrorReply};
use crate::number::parse_integer;
use crate::server::Server;
use crate::value::Text;

pub(crate) fn get(server: &mut Server, args: &[&[u8]]) -> Answer {
    Ok(server.keyspace.read::<Text>(args[1])?.cloned().into())
}

pub(crate) fn getdel(server: &mut Server, args: &[&[u8]]) -> Answer {
    let value = get(server, args)?;
    server.keyspace.remove(args[1]);
    Ok(value)
}

/// A key of another type reads as nil here, as Redis has it.
pub(crate) fn mget(server: &mut Server, args: &[&[u8]]) -> Answer {
    let read = |key: &&[u8]| server.keyspace.read::<Text>(key).ok().flatten().cloned().into();
    Ok(Resp::Array(args[1..].iter().map(read).collect()))
}

pub(crate) fn getrange(server: &mut Server, args: &[&[u8]]) -> Answer {
    let span = Span::parse(args[2], args[3])?;
    let text = server.keyspace.read::<Text>(args[1])?.map_or(&[][..], |text| &text[span.of(text.len())]);
    Ok(Resp::bulk(text))
}

pub(crate) fn strlen(server: &mut Server, args: &[&[u8]]) -> Answer {
    Ok(server.keyspace.read::<Text>(args[1])?.map_or(0, Vec::len).into())
}

pub(crate) fn set(server: &mut Server, args: &[&[u8]]) -> Answer {
    let (key, value) = (args[1], args[2]);
    let options = SetOptions::parse(&args[3..], server.now_ms())?;
    let old = if options.get { get(server, args)? } else { Resp::Nil };
    let exists = server.keyspace.contains(key);
    if options.only_new && exists || options.only_old && !exists {
        return Ok(old);
    }
    let kept = if options.keep_ttl { server.keyspace.expires_at(key) } else { None };
    server.keyspace.put::<Text>(key, value.to_vec());
    match options.expires_at.or(kept) {
        Some(at) if at <= server.now_ms() => {
            server.keyspace.remove(key);
        }
        Some(at) => server.keyspace.set_expiry(key, at),
        None => {}
    }
    Ok(if options.get { old } else { Resp::ok() })
}

pub(crate) fn incr(server: &mut Server, args: &[&[u8]]) -> Answer {
    add(server, args[1], 1)
}

pub(crate) fn incrby(server: &mut Server, args: &[&[u8]]) -> Answer {
    add(server, args[1], integer(args[2])?)
}

pub(crate) fn decr(server: &mut Server, args: &[&[u8]]) -> Answer {
    add(server, args[1], -1)
}

pub(crate) fn decrby(server: &mut Server, args: &[&[u8]]) -> Answer {
    let amount = integer(args[2])?.checked_neg();
    add(server, args[1], amount.ok_or(const { ErrorReply::fixed("ERR decrement would overflow") })?)
}

fn add(server: &mut Server, key: &[u8], amount: i64) -> Answer {
    let value = match server.keyspace.read::<Text>(key)? {
        Some(text) => parse_integer(text).ok_or(ErrorReply::NOT_AN_INTEGER)?,
        None => 0,
    };
    let sum = value.checked_add(amount).ok_or(ErrorReply::OVERFLOW)?;
    *server.keyspace.open::<Text>(key)? = sum.to_string().into_bytes();
    Ok(Resp::Int(sum))
}

#[derive(Debug, Default)]
struct SetOptions {
    only_new: bool,
    only_old: bool,
    get: bool,
    keep_ttl: bool,
    expires_at: Option<i64>,
}

impl SetOptions {
    fn parse(words: &[&[u8]], now_ms: i64) -> Result<Self, ErrorReply> {
        let mut options = Self::default();
        let mut expiry = None;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.to_ascii_uppercase().as_slice() {
                b"NX" if !options.only_old => options.only_new = true,
                b"XX" if !options.only_new => options.only_old = true,
                b"GET" => options.get = true,
                b"KEEPTTL" if expiry.is_none() => options.keep_ttl = true,
                unit @ (b"PX" | b"EX" | b"PXAT" | b"EXAT") if expiry.is_none() && !options.keep_ttl => {
                    let scale = if unit.starts_with(b"P") { 1 } else { 1_000 };
                    let base = if unit.ends_with(b"AT") { 0 } else { now_ms };
                    expiry = Some((words.next().ok_or(ErrorReply::SYNTAX)?, scale, base));
                }
                _ => return Err(ErrorReply::SYNTAX),
            }
        }
        // The amount is looked at only when all the words have been understood.
        if let Some((amount, scale, base)) = expiry {
            let amount = Some(integer(amount)?).filter(|amount| *amount > 0);
            let at = amount.and_then(|amount| amount.checked_mul(scale)?.checked_add(base));
            options.expires_at = Some(at.ok_or_else(|| ErrorReply::expire_time("set"))?);
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        Server::new(1_000_000, 0)
    }

    #[test]
    fn setting_heeds_its_conditions() {
        let mut server = server();
        assert_eq!(server.run(&[b"SET", b"a", b"1", b"XX"]), Ok(Resp::Nil));
        assert_eq!(server.run(&[b"SET", b"a", b"1", b"nx", b"px", b"100"]), Ok(Resp::ok()));
        assert_eq!(server.run(&[b"SET", b"a", b"2", b"NX"]), Ok(Resp::Nil));
        assert_eq!(server.run(&[b"SET", b"a", b"2", b"KEEPTTL", b"GET"]), Ok(Resp::bulk("1")));
        assert_eq!(server.run(&[b"PTTL", b"a"]), Ok(Resp::Int(100)));
        assert_eq!(server.run(&[b"SET", b"a", b"3"]), Ok(Resp::ok()));
        assert_eq!(server.run(&[b"PTTL", b"a"]), Ok(Resp::Int(-1)));
        assert_eq!(server.run(&[b"SET", b"a", b"3", b"PXAT", b"5"]), Ok(Resp::ok()));
        assert_eq!(server.run(&[b"GETDEL", b"a"]), Ok(Resp::Nil));
    }

    #[test]
    fn setting_refuses_what_it_cannot_mean() {
        let mut server = server();
        for words in [&[&b"NX"[..], b"XX"][..], &[b"PX"], &[b"PX", b"1", b"EX", b"1"], &[b"huh"]] {
            let args = [&[&b"SET"[..], b"a", b"1"], words].concat();
            assert_eq!(server.run(&args), Err(ErrorReply::SYNTAX));
        }
        assert_eq!(server.run(&[b"SET", b"a", b"1", b"PX", b"x"]), Err(ErrorReply::NOT_AN_INTEGER));
        for amount in ["0", "-1", "9223372036854775807"] {
            let answer = server.run(&[b"SET", b"a", b"1", b"EX", amount.as_bytes()]);
            assert_eq!(answer, Err(ErrorReply::expire_time("set")));
        }
    }

    #[test]
    fn counters_are_strict_and_bounded() {
        let mut server = server();
        assert_eq!(server.run(&[b"INCR", b"n"]), Ok(Resp::Int(1)));
        assert_eq!(server.run(&[b"INCRBY", b"n", b"9223372036854775806"]), Ok(Resp::Int(i64::MAX)));
        assert_eq!(server.run(&[b"INCR", b"n"]), Err(ErrorReply::OVERFLOW));
        assert_eq!(server.run(&[b"DECRBY", b"n", b"7"]), Ok(Resp::Int(i64::MAX - 7)));
        assert_eq!(server.run(&[b"DECR", b"m"]), Ok(Resp::Int(-1)));
        server.run(&[b"SET", b"t", b"1.5"]).expect("set");
        assert_eq!(server.run(&[b"INCR", b"t"]), Err(ErrorReply::NOT_AN_INTEGER));
        server.run(&[b"SADD", b"s", b"x"]).expect("added");
        assert_eq!(server.run(&[b"INCR", b"s"]), Err(ErrorReply::WRONG_TYPE));
        assert_eq!(server.run(&[b"STRLEN", b"t"]), Ok(Resp::Int(3)));
        let nils = Resp::Array(vec![Resp::bulk("1.5"), Resp::Nil, Resp::Nil]);
        assert_eq!(server.run(&[b"MGET", b"t", b"s", b"q"]), Ok(nils));
    }
}
