//! A small blocking client.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use crate::Resp;
use crate::frame::{Frame, parse};

/// One connection that speaks RESP2, without retries and without opinions.
#[derive(Debug)]
pub struct RespConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl RespConnection {
    /// Connects to a port of this machine; connecting, writing and every reply may each take as long as `timeout`.
    pub fn connect(port: u16, timeout: Duration) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)), timeout)?;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(timeout))?;
        let connection = Self { stream, buffer: Vec::new() };
        connection.set_timeout(timeout)?;
        Ok(connection)
    }

    /// Sets how long a reply may take.
    pub fn set_timeout(&self, timeout: Duration) -> io::Result<()> {
        self.stream.set_read_timeout(Some(timeout))
    }

    /// Sends a command and waits for its reply. After an error the connection is to be dropped: a late reply
    /// would be taken for the next one.
    pub fn command<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<Resp> {
        self.send(args)?;
        self.receive()
    }

    /// Sends a command without waiting.
    pub fn send<A: AsRef<[u8]>>(&mut self, args: &[A]) -> io::Result<()> {
        self.stream.write_all(&encode(args))
    }

    /// Waits for the next reply.
    pub fn receive(&mut self) -> io::Result<Resp> {
        loop {
            match parse(&self.buffer) {
                Frame::Whole(reply, length) => {
                    self.buffer.drain(..length);
                    return Ok(reply);
                }
                Frame::Partial => self.read_more()?,
                Frame::Broken => return Err(io::Error::new(io::ErrorKind::InvalidData, "not RESP2")),
            }
        }
    }

    fn read_more(&mut self) -> io::Result<()> {
        let mut chunk = [0; 16 * 1024];
        let read = self.stream.read(&mut chunk)?;
        if read == 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the server closed the connection"));
        }
        self.buffer.extend_from_slice(&chunk[..read]);
        Ok(())
    }
}

/// A command as it is sent.
pub(crate) fn encode<A: AsRef<[u8]>>(args: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(300);

    /// A listener whose first client is sent these chunks.
    fn answering(chunks: &'static [&'static [u8]]) -> RespConnection {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("bound");
        let port = listener.local_addr().expect("known").port();
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("accepted");
            for chunk in chunks {
                stream.write_all(chunk).expect("written");
                thread::sleep(Duration::from_millis(10));
            }
            thread::sleep(TIMEOUT * 2);
        });
        RespConnection::connect(port, TIMEOUT).expect("connected")
    }

    #[test]
    fn replies_may_come_in_pieces_and_together() {
        let mut connection = answering(&[b"*2\r\n$3\r\na", b"bc\r\n:4\r\n+OK\r\n"]);
        let array = Resp::Array(vec![Resp::bulk("abc"), Resp::Int(4)]);
        assert_eq!(connection.command(&["X"]).expect("a reply"), array);
        assert_eq!(connection.receive().expect("a reply"), Resp::ok());
    }

    #[test]
    fn a_reply_that_does_not_come_is_an_error() {
        let error = answering(&[b"$5\r\nab"]).command(&["X"]).expect_err("incomplete");
        assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut));
        let error = answering(&[b"?what\r\n"]).receive().expect_err("broken");
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn commands_are_encoded_with_their_lengths() {
        assert_eq!(encode(&["GET", ""]), b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n");
    }
}
