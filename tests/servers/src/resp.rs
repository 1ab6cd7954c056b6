//! Replies, as a client of RESP2 sees them.

/// One reply of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resp {
    /// The nil bulk or the nil array; RESP2 clients do not tell them apart.
    Nil,
    /// An integer.
    Int(i64),
    /// A string of bytes.
    Bulk(Vec<u8>),
    /// A status, such as `OK`.
    Simple(String),
    /// Replies in an array.
    Array(Vec<Resp>),
    /// An error reply, its code word first.
    Error(String),
}

impl Resp {
    /// The status `OK`.
    pub fn ok() -> Self {
        Self::Simple("OK".to_owned())
    }

    /// A bulk string of these bytes.
    pub fn bulk(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Bulk(bytes.into())
    }

    /// The integer, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// The bytes of a bulk string or of a status.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        match self {
            Self::Bulk(bytes) => Some(bytes),
            Self::Simple(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// The text of a bulk string or of a status, if it is UTF-8.
    pub fn as_text(&self) -> Option<&str> {
        self.as_bytes().and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// The elements of an array.
    pub fn as_array(&self) -> Option<&[Resp]> {
        match self {
            Self::Array(items) => Some(items),
            _ => None,
        }
    }

    /// The whole text of an error reply.
    pub fn as_error(&self) -> Option<&str> {
        match self {
            Self::Error(text) => Some(text),
            _ => None,
        }
    }

    /// The first word of an error reply, which is all that a client may match on.
    pub fn error_code(&self) -> Option<&str> {
        self.as_error().map(|text| text.split(' ').next().unwrap_or(text))
    }
}

impl From<i64> for Resp {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<usize> for Resp {
    fn from(value: usize) -> Self {
        Self::Int(value as i64)
    }
}

impl From<bool> for Resp {
    fn from(value: bool) -> Self {
        Self::Int(i64::from(value))
    }
}

impl From<Option<Vec<u8>>> for Resp {
    fn from(value: Option<Vec<u8>>) -> Self {
        value.map_or(Self::Nil, Self::Bulk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accessors_answer_only_for_their_own_kind() {
        assert_eq!(Resp::Int(4).as_int(), Some(4));
        assert_eq!(Resp::bulk("a").as_int(), None);
        assert_eq!(Resp::ok().as_text(), Some("OK"));
        assert_eq!(Resp::bulk(vec![0xff]).as_text(), None);
        assert_eq!(Resp::Array(vec![Resp::Nil]).as_array(), Some(&[Resp::Nil][..]));
        assert_eq!(Resp::from(None::<Vec<u8>>), Resp::Nil);
        assert_eq!(Resp::from(true), Resp::Int(1));
    }

    #[test]
    fn the_code_of_an_error_is_its_first_word() {
        let error = Resp::Error("READONLY You can't write".to_owned());
        assert_eq!(error.error_code(), Some("READONLY"));
        assert_eq!(Resp::Error("BARE".to_owned()).error_code(), Some("BARE"));
        assert_eq!(Resp::ok().error_code(), None);
    }
}
