//! A plain connection to Redis: one call under way at a time, nothing between the caller and the socket.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Anyhow;

/// One connection.
pub struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
    /// How much of the buffer has been read.
    read: usize,
}

/// A reply.
#[derive(Debug, PartialEq, Eq)]
pub enum Reply {
    /// No value.
    Nil,
    /// A number, a status or a string.
    Text(String),
    /// A list.
    List(Vec<Reply>),
}

impl Connection {
    /// Connects to a port of this machine and chooses a database.
    pub async fn new(port: u16, database: u8) -> Anyhow<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        let mut connection = Connection { stream, buffer: Vec::with_capacity(4_096), read: 0 };
        connection.call(&["SELECT", &database.to_string()]).await?;
        Ok(connection)
    }

    /// Sends a command and waits for its reply.
    pub async fn call(&mut self, words: &[&str]) -> Anyhow<Reply> {
        self.send(&command(words)).await?;
        self.reply().await
    }

    /// Sends what [`command`] made.
    pub async fn send(&mut self, bytes: &[u8]) -> Anyhow<()> {
        Ok(self.stream.write_all(bytes).await?)
    }

    /// Waits for the next reply.
    pub async fn reply(&mut self) -> Anyhow<Reply> {
        let line = self.line().await?;
        let (kind, rest) = line.split_at_checked(1).ok_or("an empty reply")?;
        match kind {
            "+" | ":" => Ok(Reply::Text(rest.to_owned())),
            "$" if rest == "-1" => Ok(Reply::Nil),
            "$" => {
                let length: usize = rest.parse()?;
                while self.buffer.len() < self.read + length + 2 {
                    self.fill().await?;
                }
                let bytes = self.buffer[self.read..self.read + length].to_vec();
                self.read += length + 2;
                Ok(Reply::Text(String::from_utf8(bytes)?))
            }
            "*" => {
                let mut replies = Vec::new();
                for _ in 0..rest.parse::<usize>()? {
                    replies.push(Box::pin(self.reply()).await?);
                }
                Ok(Reply::List(replies))
            }
            _ => Err(line.into()),
        }
    }

    /// Waits for a reply of one line, and looks at none of it.
    pub async fn skip_line(&mut self) -> Anyhow<()> {
        self.line_end().await.map(|end| self.read = end + 2)
    }

    async fn line(&mut self) -> Anyhow<String> {
        let end = self.line_end().await?;
        let line = std::str::from_utf8(&self.buffer[self.read..end])?.to_owned();
        self.read = end + 2;
        Ok(line)
    }

    async fn line_end(&mut self) -> Anyhow<usize> {
        loop {
            if let Some(length) = self.buffer[self.read..].windows(2).position(|pair| pair == b"\r\n") {
                return Ok(self.read + length);
            }
            self.fill().await?;
        }
    }

    async fn fill(&mut self) -> Anyhow<()> {
        self.buffer.drain(..std::mem::take(&mut self.read));
        match self.stream.read_buf(&mut self.buffer).await? {
            0 => Err("the server closed the connection".into()),
            _ => Ok(()),
        }
    }
}

impl Reply {
    /// The text, if it is one.
    pub fn text(self) -> Option<String> {
        match self {
            Reply::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// A command as it is sent.
pub fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
    }
    bytes
}
