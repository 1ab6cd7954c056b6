//! Commands on sets. Members come sorted, where Redis gives them in the order of its hash table.

use crate::Resp;
use crate::error_reply::Answer;
use crate::server::Server;
use crate::value::Set;

pub(crate) fn sadd(server: &mut Server, args: &[&[u8]]) -> Answer {
    let set = server.keyspace.open::<Set>(args[1])?;
    Ok(args[2..].iter().filter(|member| set.insert(member.to_vec())).count().into())
}

pub(crate) fn srem(server: &mut Server, args: &[&[u8]]) -> Answer {
    let Some(set) = server.keyspace.edit::<Set>(args[1])? else { return Ok(Resp::Int(0)) };
    let removed = args[2..].iter().filter(|member| set.remove(**member)).count();
    server.keyspace.settle(args[1]);
    Ok(removed.into())
}

pub(crate) fn scard(server: &mut Server, args: &[&[u8]]) -> Answer {
    Ok(server.keyspace.read::<Set>(args[1])?.map_or(0, Set::len).into())
}

pub(crate) fn sismember(server: &mut Server, args: &[&[u8]]) -> Answer {
    Ok(server.keyspace.read::<Set>(args[1])?.is_some_and(|set| set.contains(args[2])).into())
}

pub(crate) fn smembers(server: &mut Server, args: &[&[u8]]) -> Answer {
    let set = server.keyspace.read::<Set>(args[1])?;
    Ok(Resp::Array(set.into_iter().flatten().map(|member| Resp::bulk(&member[..])).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_unique() {
        let mut server = Server::new(0, 0);
        assert_eq!(server.run(&[b"SADD", b"s", b"b", b"a", b"b"]), Ok(Resp::Int(2)));
        assert_eq!(server.run(&[b"SADD", b"s", b"a"]), Ok(Resp::Int(0)));
        assert_eq!(server.run(&[b"SCARD", b"s"]), Ok(Resp::Int(2)));
        let members = Resp::Array(vec![Resp::bulk("a"), Resp::bulk("b")]);
        assert_eq!(server.run(&[b"SMEMBERS", b"s"]), Ok(members));
        assert_eq!(server.run(&[b"SISMEMBER", b"s", b"q"]), Ok(Resp::Int(0)));
    }

    #[test]
    fn an_empty_set_goes() {
        let mut server = Server::new(0, 0);
        server.run(&[b"SADD", b"s", b"a"]).expect("added");
        assert_eq!(server.run(&[b"SREM", b"s", b"a", b"b"]), Ok(Resp::Int(1)));
        assert_eq!(server.run(&[b"EXISTS", b"s"]), Ok(Resp::Int(0)));
        assert_eq!(server.run(&[b"SREM", b"s", b"a"]), Ok(Resp::Int(0)));
        assert_eq!(server.run(&[b"SMEMBERS", b"s"]), Ok(Resp::Array(vec![])));
    }
}
