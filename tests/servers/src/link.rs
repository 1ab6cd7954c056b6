//! One connection through a proxy.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use crate::fault_state::{FaultState, Verdict};
use crate::frame::{count_of, length_of};

/// The two halves of a connection: from the client to the proxy, and from there to the server.
#[derive(Debug)]
pub(crate) struct Link {
    client: TcpStream,
    server: TcpStream,
    closed: AtomicBool,
    /// It has lost a reply, so that it must never deliver a later one in its place.
    deaf: AtomicBool,
    echo: Mutex<Option<Echo>>,
}

/// Replies to a request that was sent twice.
#[derive(Debug)]
struct Echo {
    to_forward: usize,
    to_swallow: usize,
    received: Vec<u8>,
}

/// A chunk, and when it was read.
type Chunk = (Instant, Vec<u8>);

const CHUNK: usize = 64 * 1024;
/// How many chunks of a direction are on their way at once.
const ON_THEIR_WAY: usize = 64;

impl Link {
    /// Joins the two and starts to forward; `lost` is called when the connection has lost the last of the replies
    /// that were to be dropped.
    pub(crate) fn open(
        client: TcpStream,
        server: TcpStream,
        state: &Arc<FaultState>,
        lost: impl Fn() + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        let (closed, deaf) = (AtomicBool::new(false), AtomicBool::new(false));
        let link = Arc::new(Self { client, server, closed, deaf, echo: Mutex::new(None) });
        let requests = read(link.client.try_clone()?, state, |state| &state.request_chunks);
        let replies = read(link.server.try_clone()?, state, |state| &state.reply_chunks);
        let (this, its_state) = (link.clone(), state.clone());
        thread::spawn(move || {
            // A failure is the end of the connection and nothing else.
            let _ = this.forward_requests(requests, &its_state);
            this.close();
        });
        let (this, its_state) = (link.clone(), state.clone());
        thread::spawn(move || {
            let _ = this.forward_replies(replies, &its_state, &lost);
            this.close();
        });
        Ok(link)
    }

    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        for stream in [&self.client, &self.server] {
            // It fails only when the other side has closed already.
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    pub(crate) fn is_deaf(&self) -> bool {
        self.deaf.load(Ordering::Acquire)
    }

    fn forward_requests(&self, requests: Receiver<Chunk>, state: &FaultState) -> io::Result<()> {
        let mut doubled: Option<Vec<u8>> = None;
        for (came, chunk) in requests {
            state.hold(came, &self.closed);
            if doubled.is_none() && state.takes_duplicate() {
                doubled = Some(Vec::new());
            }
            let Some(mut whole) = doubled.take() else {
                (&self.server).write_all(&chunk)?;
                continue;
            };
            // Only whole commands may be doubled, so what is cut off waits for its rest.
            whole.extend(chunk);
            let Some(commands) = count_of(&whole) else {
                doubled = Some(whole);
                continue;
            };
            let echo = Echo { to_forward: commands, to_swallow: commands, received: Vec::new() };
            *self.echo.lock().unwrap_or_else(PoisonError::into_inner) = Some(echo);
            state.duplicated_requests.fetch_add(1, Ordering::Relaxed);
            (&self.server).write_all(&whole)?;
            (&self.server).write_all(&whole)?;
        }
        Ok(())
    }

    fn forward_replies(
        &self,
        replies: Receiver<Chunk>,
        state: &FaultState,
        lost: &impl Fn(),
    ) -> io::Result<()> {
        for (came, chunk) in replies {
            state.hold(came, &self.closed);
            match state.judge(self.is_deaf()) {
                Verdict::Forward => self.forward_reply(&chunk)?,
                Verdict::Swallow => self.deaf.store(true, Ordering::Release),
                Verdict::SwallowLast => {
                    self.deaf.store(true, Ordering::Release);
                    lost();
                }
            }
        }
        Ok(())
    }

    fn forward_reply(&self, bytes: &[u8]) -> io::Result<()> {
        let mut echo = self.echo.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(pending) = echo.as_mut() else { return (&self.client).write_all(bytes) };
        (&self.client).write_all(&pending.receive(bytes))?;
        if pending.to_swallow == 0 {
            *echo = None;
        }
        Ok(())
    }
}

/// What a connection brings, until it ends: it is read while what came before is held back.
fn read(
    mut from: TcpStream,
    state: &Arc<FaultState>,
    chunks: fn(&FaultState) -> &AtomicU64,
) -> Receiver<Chunk> {
    let (sender, receiver) = sync_channel(ON_THEIR_WAY);
    let state = state.clone();
    thread::spawn(move || {
        let mut buffer = vec![0; CHUNK];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            chunks(&state).fetch_add(1, Ordering::Relaxed);
            state.bytes.fetch_add(count as u64, Ordering::Relaxed);
            if sender.send((Instant::now(), buffer[..count].to_vec())).is_err() {
                return;
            }
        }
    });
    receiver
}

impl Echo {
    /// Takes in replies and gives back what the client is to see.
    fn receive(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.received.extend_from_slice(bytes);
        let mut forwarded = Vec::new();
        if self.to_forward > 0 {
            let Some(length) = length_of(&self.received, self.to_forward) else { return forwarded };
            forwarded.extend(self.received.drain(..length));
            self.to_forward = 0;
        }
        while self.to_swallow > 0 {
            let Some(length) = length_of(&self.received, 1) else { return forwarded };
            self.received.drain(..length);
            self.to_swallow -= 1;
        }
        forwarded.append(&mut self.received);
        forwarded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn echo(commands: usize) -> Echo {
        Echo { to_forward: commands, to_swallow: commands, received: Vec::new() }
    }

    #[test]
    fn the_second_replies_are_swallowed_however_they_are_cut() {
        let replies = b":1\r\n$1\r\na\r\n:2\r\n$1\r\nb\r\n+NEXT\r\n";
        for cut in 0..replies.len() {
            let mut echo = echo(2);
            let mut seen = echo.receive(&replies[..cut]);
            seen.extend(echo.receive(&replies[cut..]));
            assert_eq!(seen, b":1\r\n$1\r\na\r\n+NEXT\r\n", "cut at {cut}");
            assert_eq!(echo.to_swallow, 0);
        }
    }

    #[test]
    fn the_first_reply_does_not_wait_for_the_second() {
        let mut echo = echo(1);
        assert_eq!(echo.receive(b":1\r\n"), b":1\r\n");
        assert_eq!(echo.receive(b":2\r\n"), b"");
    }
}
