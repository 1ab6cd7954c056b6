//! Where one RESP value ends and the next begins.

use crate::Resp;

/// What the beginning of some bytes is.
#[derive(Debug, PartialEq)]
pub(crate) enum Frame {
    /// A whole value, and its length.
    Whole(Resp, usize),
    /// The beginning of a value.
    Partial,
    /// No value of RESP2.
    Broken,
}

/// Reads the first value; commands and replies look alike.
pub(crate) fn parse(bytes: &[u8]) -> Frame {
    let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") else {
        return if bytes.first().is_none_or(|kind| b"+-:$*".contains(kind)) {
            Frame::Partial
        } else {
            Frame::Broken
        };
    };
    let (Some(kind), Some(line)) = (bytes.first(), bytes.get(1..end)) else { return Frame::Broken };
    let text = || String::from_utf8_lossy(line).into_owned();
    let number = || std::str::from_utf8(line).ok().and_then(|line| line.parse::<i64>().ok());
    let after = end + 2;
    match (kind, number()) {
        (b'+', _) => Frame::Whole(Resp::Simple(text()), after),
        (b'-', _) => Frame::Whole(Resp::Error(text()), after),
        (b':', Some(value)) => Frame::Whole(Resp::Int(value), after),
        (b'$' | b'*', Some(-1)) => Frame::Whole(Resp::Nil, after),
        (b'$', Some(length)) => parse_bulk(bytes, after, length),
        (b'*', Some(count)) if count >= 0 => parse_array(bytes, after, count),
        _ => Frame::Broken,
    }
}

/// The length of the first `count` values, if they are all there.
pub(crate) fn length_of(bytes: &[u8], count: usize) -> Option<usize> {
    let mut at = 0;
    for _ in 0..count {
        let Frame::Whole(_, length) = parse(&bytes[at..]) else { return None };
        at += length;
    }
    Some(at)
}

/// The number of values, if the bytes are whole values and nothing else.
pub(crate) fn count_of(bytes: &[u8]) -> Option<usize> {
    let (mut at, mut count) = (0, 0);
    while at < bytes.len() {
        let Frame::Whole(_, length) = parse(&bytes[at..]) else { return None };
        at += length;
        count += 1;
    }
    Some(count)
}

fn parse_bulk(bytes: &[u8], start: usize, length: i64) -> Frame {
    let Ok(length) = usize::try_from(length) else { return Frame::Broken };
    match bytes.get(start..start + length + 2) {
        None => Frame::Partial,
        Some(body) => match body.strip_suffix(b"\r\n") {
            Some(body) => Frame::Whole(Resp::bulk(body), start + length + 2),
            None => Frame::Broken,
        },
    }
}

fn parse_array(bytes: &[u8], start: usize, count: i64) -> Frame {
    let mut at = start;
    let mut items = Vec::new();
    for _ in 0..count {
        match parse(&bytes[at..]) {
            Frame::Whole(item, length) => {
                items.push(item);
                at += length;
            }
            other => return other,
        }
    }
    Frame::Whole(Resp::Array(items), at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_kind_are_read() {
        for (bytes, reply) in [
            (&b"+OK\r\n"[..], Resp::ok()),
            (b"-ERR no\r\n", Resp::Error("ERR no".to_owned())),
            (b":-7\r\n", Resp::Int(-7)),
            (b"$-1\r\n", Resp::Nil),
            (b"*-1\r\n", Resp::Nil),
            (b"$4\r\na\r\nb\r\n", Resp::bulk("a\r\nb")),
            (b"*2\r\n*0\r\n$0\r\n\r\n", Resp::Array(vec![Resp::Array(vec![]), Resp::bulk("")])),
        ] {
            assert_eq!(parse(bytes), Frame::Whole(reply, bytes.len()));
            for end in 0..bytes.len() {
                assert_eq!(parse(&bytes[..end]), Frame::Partial);
            }
        }
    }

    #[test]
    fn other_bytes_are_refused() {
        for bytes in
            [&b"GET a\r\n"[..], b"$x\r\n", b":1.5\r\n", b"*-2\r\n", b"$-2\r\n", b"$1\r\nabc", b"\r\n"]
        {
            assert_eq!(parse(bytes), Frame::Broken);
        }
    }

    #[test]
    fn values_are_counted() {
        assert_eq!(count_of(b":1\r\n+OK\r\n"), Some(2));
        assert_eq!(count_of(b":1\r\n+O"), None);
        assert_eq!(length_of(b":1\r\n+OK\r\n:2\r\n", 2), Some(9));
        assert_eq!(length_of(b":1\r\n", 2), None);
    }
}
