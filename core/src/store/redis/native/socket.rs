//! A socket that the event loop of a host reads, once that has had a turn with it, and before then the runtime.

#[cfg(test)]
mod tests;

use std::io::{self, IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsRawFd, RawFd};
use std::pin::Pin;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll, ready};

use futures_util::task::AtomicWaker;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

use crate::runtime::host::{Guest, Host, Watched};
use crate::runtime::tasks;

/// What a connection reads and writes.
pub(super) struct Socket {
    ear: Arc<Ear>,
    /// Where the runtime waits until it can be written; and until it can be read, before the host's loop does that.
    waits: Option<AsyncFd<Arc<Ear>>>,
}

/// What the host's loop has of it.
pub(super) struct Ear {
    socket: socket2::Socket,
    host: Guest,
    /// Whether the host's loop watches it.
    watched: AtomicBool,
    /// Whether all was read that had come.
    drained: AtomicBool,
    closed: AtomicBool,
    reader: AtomicWaker,
    /// Whose it is: a fork of that process has the same socket.
    process: u32,
}

impl Socket {
    /// Of one that does not block.
    pub fn new(socket: socket2::Socket, host: &Host) -> io::Result<Self> {
        let ear = Arc::new(Ear {
            socket,
            host: host.guest(),
            watched: AtomicBool::new(false),
            drained: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            reader: AtomicWaker::new(),
            process: process::id(),
        });
        Ok(Socket { waits: Some(waits(&ear, Interest::READABLE | Interest::WRITABLE)?), ear })
    }

    pub fn ear(&self) -> Arc<Ear> {
        self.ear.clone()
    }

    /// From here on the host's loop watches it, if this is a turn of its.
    fn hand_over(&mut self) -> io::Result<()> {
        let host = Host::current().filter(|host| self.ear.host.is_of(host));
        if host.is_some_and(|host| host.watch(self.ear.clone())) {
            self.ear.watched.store(true, SeqCst);
            // What comes wakes the runtime no more.
            self.waits = None;
            self.waits = Some(waits(&self.ear, Interest::WRITABLE)?);
        }
        Ok(())
    }

    /// What `work` does with the socket, once it can.
    fn when_ready<T>(
        &self,
        context: &mut Context<'_>,
        interest: Interest,
        mut work: impl FnMut(&socket2::Socket) -> io::Result<T>,
    ) -> Poll<io::Result<T>> {
        let Some(waits) = &self.waits else { return Poll::Ready(Err(io::ErrorKind::NotConnected.into())) };
        loop {
            // What the system knows is not always known here yet.
            match work(&self.ear.socket) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                done => return Poll::Ready(done),
            }
            let ready = match interest.is_writable() {
                true => waits.poll_write_ready(context),
                false => waits.poll_read_ready(context),
            };
            ready!(ready)?.clear_ready();
        }
    }
}

impl Ear {
    /// Has what waits for the socket look whether it can be read: the loop that is to do that may be busy for long.
    pub fn nudge(&self) {
        self.drained.store(false, SeqCst);
        self.reader.wake();
    }

    /// Reads what has come.
    fn poll_read(&self, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        // Before it is looked: what comes after that wakes who waits.
        self.reader.register(context.waker());
        if self.drained.load(SeqCst) {
            return Poll::Pending;
        }
        let room = buffer.remaining();
        // Before it is read: what comes after that is told by the loop, in another thread perhaps.
        self.drained.store(true, SeqCst);
        match read(&self.socket, buffer) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            Ok(count) => {
                // Else to ask the system once more would be in vain. The end is no exception: it stays readable.
                if count == room {
                    self.drained.store(false, SeqCst);
                }
                Poll::Ready(Ok(()))
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }
}

#[expect(
    deprecated,
    reason = "sound, as the socket is always the same and stays open; what takes its place is unsafe"
)]
fn waits(ear: &Arc<Ear>, interest: Interest) -> io::Result<AsyncFd<Arc<Ear>>> {
    AsyncFd::with_interest(ear.clone(), interest)
}

fn read(mut socket: &socket2::Socket, buffer: &mut ReadBuf<'_>) -> io::Result<usize> {
    let count = socket.read(buffer.initialize_unfilled())?;
    buffer.advance(count);
    Ok(count)
}

impl AsRawFd for Ear {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl Watched for Ear {
    fn fd(&self) -> RawFd {
        self.as_raw_fd()
    }

    fn readable(&self) -> bool {
        // What was closed elsewhere is readable, so that this is asked.
        if self.closed.load(SeqCst) {
            return false;
        }
        self.drained.store(false, SeqCst);
        Host::turn(self.host.host().as_ref(), || tasks::run(|| self.reader.wake()));
        !self.closed.load(SeqCst)
    }

    fn has_come(&self) -> bool {
        let come = self.socket.peek(&mut [MaybeUninit::uninit()]);
        !come.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.ear.closed.store(true, SeqCst);
        // Of the host's loop, which has it too, only its own thread can take it.
        if self.ear.watched.load(SeqCst) && self.ear.process == process::id() {
            let _ = self.ear.socket.shutdown(Shutdown::Both);
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.ear.watched.load(SeqCst) {
            self.hand_over()?;
        }
        if self.ear.watched.load(SeqCst) {
            return self.ear.poll_read(context, buffer);
        }
        self.when_ready(context, Interest::READABLE, |socket| read(socket, buffer)).map_ok(drop)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        self.when_ready(context, Interest::WRITABLE, |mut socket| socket.write(buffer))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.when_ready(context, Interest::WRITABLE, |mut socket| socket.write_vectored(buffers))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.ear.socket.shutdown(Shutdown::Write))
    }
}
