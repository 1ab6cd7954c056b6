//! Commands on hashes.

use super::integer;
use crate::Resp;
use crate::error_reply::{Answer, ErrorReply};
use crate::number::parse_integer;
use crate::server::Server;
use crate::value::Hash;

/// Up to here Redis keeps the order of fields; beyond it the order is any, and a removal need not keep it.
const ORDERED_FIELDS: usize = 128;

pub(crate) fn hset(server: &mut Server, args: &[&[u8]]) -> Answer {
    if !args.len().is_multiple_of(2) {
        return Err(ErrorReply::arity("hset"));
    }
    let hash = server.keyspace.open::<Hash>(args[1])?;
    let mut added = 0_i64;
    for pair in args[2..].chunks_exact(2) {
        added += i64::from(put(hash, pair[0], pair[1].to_vec()));
    }
    Ok(Resp::Int(added))
}

pub(crate) fn hsetnx(server: &mut Server, args: &[&[u8]]) -> Answer {
    let hash = server.keyspace.open::<Hash>(args[1])?;
    if hash.contains_key(args[2]) {
        return Ok(Resp::Int(0));
    }
    put(hash, args[2], args[3].to_vec());
    Ok(Resp::Int(1))
}

pub(crate) fn hget(server: &mut Server, args: &[&[u8]]) -> Answer {
    let hash = server.keyspace.read::<Hash>(args[1])?;
    Ok(hash.and_then(|hash| hash.get(args[2])).cloned().into())
}

pub(crate) fn hmget(server: &mut Server, args: &[&[u8]]) -> Answer {
    let hash = server.keyspace.read::<Hash>(args[1])?;
    let read = |field: &&[u8]| hash.and_then(|hash| hash.get(*field)).cloned().into();
    Ok(Resp::Array(args[2..].iter().map(read).collect()))
}

pub(crate) fn hgetall(server: &mut Server, args: &[&[u8]]) -> Answer {
    let hash = server.keyspace.read::<Hash>(args[1])?;
    let pairs = hash.into_iter().flatten();
    Ok(Resp::Array(
        pairs.flat_map(|(field, value)| [Resp::bulk(&field[..]), Resp::bulk(&value[..])]).collect(),
    ))
}

pub(crate) fn hkeys(server: &mut Server, args: &[&[u8]]) -> Answer {
    let hash = server.keyspace.read::<Hash>(args[1])?;
    Ok(Resp::Array(hash.into_iter().flatten().map(|(field, _)| Resp::bulk(&field[..])).collect()))
}

pub(crate) fn hlen(server: &mut Server, args: &[&[u8]]) -> Answer {
    Ok(server.keyspace.read::<Hash>(args[1])?.map_or(0, Hash::len).into())
}

pub(crate) fn hexists(server: &mut Server, args: &[&[u8]]) -> Answer {
    Ok(server.keyspace.read::<Hash>(args[1])?.is_some_and(|hash| hash.contains_key(args[2])).into())
}

pub(crate) fn hdel(server: &mut Server, args: &[&[u8]]) -> Answer {
    let Some(hash) = server.keyspace.edit::<Hash>(args[1])? else { return Ok(Resp::Int(0)) };
    let mut removed = 0_i64;
    for field in &args[2..] {
        let found =
            if hash.len() <= ORDERED_FIELDS { hash.shift_remove(*field) } else { hash.swap_remove(*field) };
        removed += i64::from(found.is_some());
    }
    server.keyspace.settle(args[1]);
    Ok(Resp::Int(removed))
}

pub(crate) fn hincrby(server: &mut Server, args: &[&[u8]]) -> Answer {
    let amount = integer(args[3])?;
    let stored = server.keyspace.read::<Hash>(args[1])?.and_then(|hash| hash.get(args[2]));
    let value = match stored {
        Some(text) => {
            parse_integer(text).ok_or(const { ErrorReply::fixed("ERR hash value is not an integer") })?
        }
        None => 0,
    };
    let sum = value.checked_add(amount).ok_or(ErrorReply::OVERFLOW)?;
    put(server.keyspace.open::<Hash>(args[1])?, args[2], sum.to_string().into_bytes());
    Ok(Resp::Int(sum))
}

/// Sets a field where it stands and tells whether it is new.
fn put(hash: &mut Hash, field: &[u8], value: Vec<u8>) -> bool {
    if let Some(place) = hash.get_mut(field) {
        *place = value;
        return false;
    }
    hash.insert(field.to_vec(), value);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        let mut server = Server::new(0, 0);
        server.run(&[b"HSET", b"h", b"b", b"1", b"a", b"2"]).expect("set");
        server
    }

    fn bulks(texts: &[&str]) -> Answer {
        Ok(Resp::Array(texts.iter().map(|text| Resp::bulk(*text)).collect()))
    }

    #[test]
    fn fields_keep_the_order_in_which_they_came() {
        let mut server = server();
        assert_eq!(server.run(&[b"HSET", b"h", b"b", b"3", b"c", b"4"]), Ok(Resp::Int(1)));
        assert_eq!(server.run(&[b"HGETALL", b"h"]), bulks(&["b", "3", "a", "2", "c", "4"]));
        assert_eq!(server.run(&[b"HDEL", b"h", b"b", b"nosuch"]), Ok(Resp::Int(1)));
        assert_eq!(server.run(&[b"HKEYS", b"h"]), bulks(&["a", "c"]));
        assert_eq!(server.run(&[b"HGETALL", b"nosuch"]), bulks(&[]));
    }

    #[test]
    fn fields_are_read_singly_and_together() {
        let mut server = server();
        assert_eq!(server.run(&[b"HGET", b"h", b"a"]), Ok(Resp::bulk("2")));
        assert_eq!(server.run(&[b"HGET", b"h", b"x"]), Ok(Resp::Nil));
        let mixed = Resp::Array(vec![Resp::bulk("1"), Resp::Nil]);
        assert_eq!(server.run(&[b"HMGET", b"h", b"b", b"x"]), Ok(mixed));
        assert_eq!(server.run(&[b"HLEN", b"h"]), Ok(Resp::Int(2)));
        assert_eq!(server.run(&[b"HEXISTS", b"h", b"a"]), Ok(Resp::Int(1)));
        assert_eq!(server.run(&[b"HSETNX", b"h", b"a", b"9"]), Ok(Resp::Int(0)));
        assert_eq!(server.run(&[b"HSETNX", b"h", b"n", b"9"]), Ok(Resp::Int(1)));
    }

    #[test]
    fn the_last_field_takes_the_key_with_it() {
        let mut server = server();
        assert_eq!(server.run(&[b"HDEL", b"h", b"a", b"b"]), Ok(Resp::Int(2)));
        assert_eq!(server.run(&[b"EXISTS", b"h"]), Ok(Resp::Int(0)));
        assert_eq!(server.run(&[b"HDEL", b"h", b"a"]), Ok(Resp::Int(0)));
    }

    #[test]
    fn fields_count_in_integers_only() {
        let mut server = server();
        assert_eq!(server.run(&[b"HINCRBY", b"h", b"a", b"-5"]), Ok(Resp::Int(-3)));
        server.run(&[b"HSET", b"h", b"t", b"x"]).expect("set");
        assert!(server.run(&[b"HINCRBY", b"h", b"t", b"1"]).is_err());
        assert_eq!(server.run(&[b"HINCRBY", b"new", b"f", b"x"]), Err(ErrorReply::NOT_AN_INTEGER));
        assert_eq!(server.run(&[b"EXISTS", b"new"]), Ok(Resp::Int(0)));
        assert_eq!(server.run(&[b"HSET", b"new", b"f", b"1", b"g"]), Err(ErrorReply::arity("hset")));
    }
}
