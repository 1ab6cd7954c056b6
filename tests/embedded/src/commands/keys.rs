//! Commands on keys of any type.

use super::integer;
use crate::Resp;
use crate::error_reply::{Answer, ErrorReply};
use crate::server::Server;

pub(crate) fn del(server: &mut Server, args: &[&[u8]]) -> Answer {
    Ok(args[1..].iter().filter(|key| server.keyspace.remove(key)).count().into())
}

pub(crate) fn exists(server: &mut Server, args: &[&[u8]]) -> Answer {
    Ok(args[1..].iter().filter(|key| server.keyspace.contains(key)).count().into())
}

pub(crate) fn flush(server: &mut Server, args: &[&[u8]]) -> Answer {
    match &args[1..] {
        [] => {}
        [mode] if mode.eq_ignore_ascii_case(b"ASYNC") || mode.eq_ignore_ascii_case(b"SYNC") => {}
        _ => return Err(ErrorReply::SYNTAX),
    }
    server.keyspace.clear();
    Ok(Resp::ok())
}

pub(crate) fn kind(server: &mut Server, args: &[&[u8]]) -> Answer {
    let name = server.keyspace.value(args[1]).map_or("none", |value| value.type_name());
    Ok(Resp::Simple(name.to_owned()))
}

pub(crate) fn persist(server: &mut Server, args: &[&[u8]]) -> Answer {
    Ok(server.keyspace.persist(args[1]).into())
}

pub(crate) fn pexpiretime(server: &mut Server, args: &[&[u8]]) -> Answer {
    Ok(Resp::Int(match server.keyspace.expires_at(args[1]) {
        Some(at) => at,
        None if server.keyspace.contains(args[1]) => -1,
        None => -2,
    }))
}

pub(crate) fn pttl(server: &mut Server, args: &[&[u8]]) -> Answer {
    Ok(Resp::Int(time_to_live(server, args[1])))
}

pub(crate) fn ttl(server: &mut Server, args: &[&[u8]]) -> Answer {
    let left = time_to_live(server, args[1]);
    Ok(Resp::Int(if left < 0 { left } else { left.saturating_add(500) / 1_000 }))
}

pub(crate) fn expire(server: &mut Server, args: &[&[u8]]) -> Answer {
    expire_at(server, args, "expire", 1_000, server.now_ms())
}

pub(crate) fn pexpire(server: &mut Server, args: &[&[u8]]) -> Answer {
    expire_at(server, args, "pexpire", 1, server.now_ms())
}

pub(crate) fn expireat(server: &mut Server, args: &[&[u8]]) -> Answer {
    expire_at(server, args, "expireat", 1_000, 0)
}

pub(crate) fn pexpireat(server: &mut Server, args: &[&[u8]]) -> Answer {
    expire_at(server, args, "pexpireat", 1, 0)
}

fn time_to_live(server: &Server, key: &[u8]) -> i64 {
    match server.keyspace.expires_at(key) {
        Some(at) => at.saturating_sub(server.now_ms()).max(0),
        None if server.keyspace.contains(key) => -1,
        None => -2,
    }
}

fn expire_at(server: &mut Server, args: &[&[u8]], name: &str, unit_ms: i64, base_ms: i64) -> Answer {
    let rule = Rule::parse(&args[3..])?;
    let amount = integer(args[2])?;
    let at = amount
        .checked_mul(unit_ms)
        .and_then(|ms| ms.checked_add(base_ms))
        .ok_or_else(|| ErrorReply::expire_time(name))?;
    let key = args[1];
    if !server.keyspace.contains(key) || !rule.allows(server.keyspace.expires_at(key), at) {
        return Ok(Resp::Int(0));
    }
    // A time that has come already deletes the key at once.
    if at <= server.now_ms() {
        server.keyspace.remove(key);
    } else {
        server.keyspace.set_expiry(key, at);
    }
    Ok(Resp::Int(1))
}

/// On what an expiry time may be set.
#[derive(Clone, Copy, Debug, Default)]
struct Rule {
    only_without: bool,
    only_with: bool,
    only_later: bool,
    only_sooner: bool,
}

impl Rule {
    fn parse(options: &[&[u8]]) -> Result<Self, ErrorReply> {
        let mut rule = Self::default();
        for option in options {
            match option.to_ascii_uppercase().as_slice() {
                b"NX" => rule.only_without = true,
                b"XX" => rule.only_with = true,
                b"GT" => rule.only_later = true,
                b"LT" => rule.only_sooner = true,
                _ => {
                    let option = String::from_utf8_lossy(option);
                    return Err(ErrorReply::new(format!("ERR Unsupported option {option}")));
                }
            }
        }
        if rule.only_without && (rule.only_with || rule.only_later || rule.only_sooner) {
            return Err(ErrorReply::fixed(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if rule.only_later && rule.only_sooner {
            return Err(ErrorReply::fixed("ERR GT and LT options at the same time are not compatible"));
        }
        Ok(rule)
    }

    /// A key without an expiry time counts as one that lives for ever.
    fn allows(self, current: Option<i64>, at: i64) -> bool {
        let missing = current.is_none();
        !(self.only_without && !missing
            || self.only_with && missing
            || self.only_later && current.is_none_or(|current| at <= current)
            || self.only_sooner && current.is_some_and(|current| at >= current))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        let mut server = Server::new(1_000_000, 0);
        server.run(&[b"SET", b"a", b"1"]).expect("set");
        server
    }

    fn int(answer: Answer) -> i64 {
        answer.expect("answered").as_int().expect("an integer")
    }

    #[test]
    fn times_to_live_tell_missing_from_lasting() {
        let mut server = server();
        assert_eq!(int(server.run(&[b"PTTL", b"a"])), -1);
        assert_eq!(int(server.run(&[b"TTL", b"nosuch"])), -2);
        assert_eq!(int(server.run(&[b"PEXPIRE", b"a", b"1500"])), 1);
        assert_eq!(int(server.run(&[b"PTTL", b"a"])), 1_500);
        assert_eq!(int(server.run(&[b"TTL", b"a"])), 2);
        assert_eq!(int(server.run(&[b"PEXPIRETIME", b"a"])), 2_500);
        server.time_us += 1_500_000;
        assert_eq!(int(server.run(&[b"PTTL", b"a"])), 0);
        server.time_us += 1_000;
        assert_eq!(int(server.run(&[b"PTTL", b"a"])), -2);
    }

    #[test]
    fn a_time_that_has_come_deletes() {
        let mut server = server();
        assert_eq!(int(server.run(&[b"PEXPIRE", b"a", b"0"])), 1);
        assert_eq!(int(server.run(&[b"EXISTS", b"a", b"a"])), 0);
        assert_eq!(int(server.run(&[b"EXPIRE", b"a", b"10"])), 0);
    }

    #[test]
    fn rules_guard_the_expiry() {
        let mut server = server();
        assert_eq!(int(server.run(&[b"PEXPIRE", b"a", b"100", b"XX"])), 0);
        assert_eq!(int(server.run(&[b"PEXPIRE", b"a", b"100", b"GT"])), 0);
        assert_eq!(int(server.run(&[b"PEXPIRE", b"a", b"100", b"NX"])), 1);
        assert_eq!(int(server.run(&[b"PEXPIRE", b"a", b"50", b"gt"])), 0);
        assert_eq!(int(server.run(&[b"PEXPIRE", b"a", b"50", b"LT"])), 1);
        assert!(server.run(&[b"PEXPIRE", b"a", b"1", b"NX", b"GT"]).is_err());
        assert!(server.run(&[b"PEXPIRE", b"a", b"1", b"LT", b"GT"]).is_err());
        assert!(server.run(&[b"PEXPIRE", b"a", b"1", b"QQ"]).is_err());
        let error = server.run(&[b"EXPIRE", b"a", b"9223372036854775807"]).expect_err("too far");
        assert_eq!(error.text(), "ERR invalid expire time in 'expire' command");
    }

    #[test]
    fn keys_are_deleted_typed_and_flushed() {
        let mut server = server();
        assert_eq!(server.run(&[b"TYPE", b"a"]), Ok(Resp::Simple("string".to_owned())));
        assert_eq!(int(server.run(&[b"DEL", b"a", b"b"])), 1);
        assert_eq!(server.run(&[b"TYPE", b"a"]), Ok(Resp::Simple("none".to_owned())));
        server.run(&[b"SADD", b"s", b"x"]).expect("added");
        assert_eq!(server.run(&[b"FLUSHALL"]), Ok(Resp::ok()));
        assert_eq!(int(server.run(&[b"DBSIZE"])), 0);
        assert!(server.run(&[b"FLUSHALL", b"x"]).is_err());
    }
}
