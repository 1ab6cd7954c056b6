//! Commands on lists.

use super::count;
use super::span::Span;
use crate::Resp;
use crate::error_reply::{Answer, ErrorReply};
use crate::server::Server;
use crate::value::List;

pub(crate) fn lpush(server: &mut Server, args: &[&[u8]]) -> Answer {
    push(server, args, |list, item| list.push_front(item))
}

pub(crate) fn rpush(server: &mut Server, args: &[&[u8]]) -> Answer {
    push(server, args, |list, item| list.push_back(item))
}

pub(crate) fn lpop(server: &mut Server, args: &[&[u8]]) -> Answer {
    pop(server, args, List::pop_front)
}

pub(crate) fn rpop(server: &mut Server, args: &[&[u8]]) -> Answer {
    pop(server, args, List::pop_back)
}

pub(crate) fn llen(server: &mut Server, args: &[&[u8]]) -> Answer {
    Ok(server.keyspace.read::<List>(args[1])?.map_or(0, List::len).into())
}

pub(crate) fn lrange(server: &mut Server, args: &[&[u8]]) -> Answer {
    let span = Span::parse(args[2], args[3])?;
    let Some(list) = server.keyspace.read::<List>(args[1])? else { return Ok(Resp::Array(vec![])) };
    Ok(Resp::Array(list.range(span.of(list.len())).map(|item| Resp::bulk(&item[..])).collect()))
}

pub(crate) fn ltrim(server: &mut Server, args: &[&[u8]]) -> Answer {
    let span = Span::parse(args[2], args[3])?;
    if let Some(list) = server.keyspace.edit::<List>(args[1])? {
        let kept = span.of(list.len());
        list.truncate(kept.end);
        list.drain(..kept.start);
        server.keyspace.settle(args[1]);
    }
    Ok(Resp::ok())
}

fn push(server: &mut Server, args: &[&[u8]], place: fn(&mut List, Vec<u8>)) -> Answer {
    let list = server.keyspace.open::<List>(args[1])?;
    for item in &args[2..] {
        place(list, item.to_vec());
    }
    Ok(list.len().into())
}

fn pop(server: &mut Server, args: &[&[u8]], take: fn(&mut List) -> Option<Vec<u8>>) -> Answer {
    let wanted = match &args[2..] {
        [] => None,
        [wanted] => Some(count(wanted)?),
        _ => return Err(ErrorReply::arity(&String::from_utf8_lossy(args[0]))),
    };
    let Some(list) = server.keyspace.edit::<List>(args[1])? else { return Ok(Resp::Nil) };
    let answer = match wanted {
        None => take(list).into(),
        Some(wanted) => {
            let taken = std::iter::from_fn(|| take(list)).take(wanted);
            Resp::Array(taken.map(Resp::Bulk).collect())
        }
    };
    server.keyspace.settle(args[1]);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        let mut server = Server::new(0, 0);
        server.run(&[b"RPUSH", b"l", b"b", b"c", b"d"]).expect("pushed");
        server.run(&[b"LPUSH", b"l", b"a"]).expect("pushed");
        server
    }

    fn bulks(texts: &[&str]) -> Answer {
        Ok(Resp::Array(texts.iter().map(|text| Resp::bulk(*text)).collect()))
    }

    #[test]
    fn items_come_from_both_ends() {
        let mut server = server();
        assert_eq!(server.run(&[b"LRANGE", b"l", b"0", b"-1"]), bulks(&["a", "b", "c", "d"]));
        assert_eq!(server.run(&[b"LPOP", b"l"]), Ok(Resp::bulk("a")));
        assert_eq!(server.run(&[b"RPOP", b"l", b"2"]), bulks(&["d", "c"]));
        assert_eq!(server.run(&[b"LPOP", b"l", b"0"]), bulks(&[]));
        assert_eq!(server.run(&[b"LPOP", b"l", b"9"]), bulks(&["b"]));
        assert_eq!(server.run(&[b"LPOP", b"l", b"9"]), Ok(Resp::Nil));
        assert_eq!(server.run(&[b"EXISTS", b"l"]), Ok(Resp::Int(0)));
    }

    #[test]
    fn lists_are_trimmed_and_counted() {
        let mut server = server();
        assert_eq!(server.run(&[b"LLEN", b"l"]), Ok(Resp::Int(4)));
        assert_eq!(server.run(&[b"LTRIM", b"l", b"1", b"2"]), Ok(Resp::ok()));
        assert_eq!(server.run(&[b"LRANGE", b"l", b"0", b"-1"]), bulks(&["b", "c"]));
        assert_eq!(server.run(&[b"LTRIM", b"l", b"5", b"9"]), Ok(Resp::ok()));
        assert_eq!(server.run(&[b"LRANGE", b"l", b"0", b"-1"]), bulks(&[]));
    }

    #[test]
    fn counts_and_types_are_checked() {
        let mut server = server();
        assert_eq!(server.run(&[b"LPOP", b"l", b"-1"]), Err(ErrorReply::NOT_POSITIVE));
        assert!(server.run(&[b"LPOP", b"l", b"1", b"1"]).is_err());
        server.run(&[b"SET", b"t", b"1"]).expect("set");
        assert_eq!(server.run(&[b"LLEN", b"t"]), Err(ErrorReply::WRONG_TYPE));
    }
}
