//! A socket that the event loop of a host reads, once that has had a turn with it, and before then the runtime.

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

use crate::client::host::{Guest, Host, Watched};
use crate::client::tasks;

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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::thread::{self, ThreadId};
    use std::time::Duration;

    use futures_channel::oneshot;
    use tokio::runtime::Handle;

    use super::*;
    use crate::client::{Begun, Calls, Watcher};
    use crate::poison::unpoisoned;
    use crate::store::redis::native::fake::Fake;
    use crate::store::redis::native::sentinels::Sentinels;
    use crate::store::redis::native::server::{Place, Server, packed};

    /// A host whose turns come when a test says so.
    struct Turns {
        calls: Calls<()>,
        eye: Arc<Eye>,
    }

    #[derive(Default)]
    struct Eye(Mutex<Vec<Arc<dyn Watched>>>);

    impl Watcher for Eye {
        fn watch(&self, socket: Arc<dyn Watched>) -> bool {
            unpoisoned(&self.0).push(socket);
            true
        }
    }

    impl Turns {
        fn new() -> Self {
            let eye = Arc::new(Eye::default());
            Turns { calls: Calls::new(Handle::current(), || {}).watching(eye.clone()), eye }
        }

        /// Has a task of a turn ask the server. What hears in which thread it went on then.
        fn ask(&self, server: &Arc<Server>) -> oneshot::Receiver<ThreadId> {
            let (tell, hears) = oneshot::channel();
            let (server, handle) = (server.clone(), Handle::current());
            let begun = self.calls.begin(async move {
                tasks::spawn(&handle, async move {
                    assert!(server.send(&packed(&["PING"])).await.is_ok());
                    let _ = tell.send(thread::current().id());
                });
            });
            assert!(matches!(begun, Begun::Ended(())));
            hears
        }

        fn sockets(&self) -> Vec<Arc<dyn Watched>> {
            unpoisoned(&self.eye.0).clone()
        }

        /// In which thread it went on, while the loop looks at its sockets again and again.
        async fn answered(&self, mut hears: oneshot::Receiver<ThreadId>) -> ThreadId {
            in_time(async {
                loop {
                    if let Ok(Some(thread)) = hears.try_recv() {
                        return thread;
                    }
                    self.look();
                    tokio::task::yield_now().await;
                }
            })
            .await
        }

        /// The loop finds that its sockets can be read.
        fn look(&self) {
            for socket in self.sockets() {
                if !self.calls.hear(&*socket).open {
                    unpoisoned(&self.eye.0).retain(|watched| watched.fd() != socket.fd());
                }
            }
        }
    }

    async fn in_time<T>(work: impl Future<Output = T>) -> T {
        tokio::time::timeout(Duration::from_secs(20), work).await.expect("in time")
    }

    async fn server() -> (Fake, Arc<Server>) {
        let fake = Fake::start().await;
        let place = Place::There(fake.client());
        (fake, Arc::new(Server::new(place, Duration::from_secs(10))))
    }

    /// Each answer was read by the runtime's thread, which then had to wake the host's.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_a_turn_asks_is_answered_in_its_thread() {
        let (fake, server) = server().await;
        let turns = Turns::new();
        // The first makes the connection, and on a machine that has much to do another thread may look first.
        let mut asked = 0;
        while turns.answered(turns.ask(&server)).await != thread::current().id() {
            asked += 1;
            assert!(asked < 1_000);
        }
        // What others ask goes over another, which is there as soon.
        assert_eq!((turns.sockets().len(), fake.connections()), (1, 2));
        assert!(server.send(&packed(&["PING"])).await.is_ok());
        assert_eq!((turns.sockets().len(), fake.connections()), (1, 2));
    }

    /// Keepalive and grants waited for a loop that was busy.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn what_a_busy_loop_does_not_read_is_read_elsewhere() {
        let (_fake, server) = server().await;
        let turns = Turns::new();
        turns.answered(turns.ask(&server)).await;
        while turns.sockets().is_empty() {
            turns.answered(turns.ask(&server)).await;
        }
        for _ in 0..3 {
            assert_ne!(in_time(turns.ask(&server)).await, Ok(thread::current().id()));
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_connection_that_ends_is_watched_no_more_and_another_takes_its_place() {
        let (fake, server) = server().await;
        let turns = Turns::new();
        while turns.sockets().is_empty() {
            turns.answered(turns.ask(&server)).await;
        }
        // By the server.
        fake.hangs_up();
        in_time(async {
            while !turns.sockets().is_empty() {
                turns.look();
                tokio::task::yield_now().await;
            }
        })
        .await;
        // The first command that found it closed failed, and waited for its turn to be repeated.
        let before = fake.connections();
        turns.answered(turns.ask(&server)).await;
        assert!(fake.connections() > before);
    }
    // Of two connections one was made anew, by a name that led elsewhere by then, and two servers granted.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn a_connection_that_fails_takes_that_of_all_else_with_it() {
        let fake = Fake::start().await;
        let server = Arc::new(Server::new(Place::There(fake.client()), Duration::from_secs(2)));
        let turns = Turns::new();
        while turns.sockets().is_empty() {
            turns.answered(turns.ask(&server)).await;
        }
        fake.takes(Duration::ZERO, Duration::from_secs(60));
        assert!(server.send(&packed(&["PING"])).await.is_err());
        fake.takes(Duration::ZERO, Duration::ZERO);
        let before = fake.connections();
        turns.answered(turns.ask(&server)).await;
        assert!(fake.connections() > before);
    }

    // One of them could go on to the primary of before, which nobody asked about.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn to_a_primary_that_sentinels_name_there_is_one_connection() {
        let (fake, sentinel) = (Fake::start().await, Fake::start().await);
        sentinel.says(1, &fake);
        let patience = Duration::from_secs(10);
        let changes = tokio::sync::watch::Sender::new(());
        let sentinels = Sentinels::new(vec![sentinel.client()], "relayers", fake.client(), patience, changes);
        let server = Arc::new(Server::new(Place::Primary(Box::new(sentinels)), patience));
        let turns = Turns::new();
        turns.answered(turns.ask(&server)).await;
        assert!(server.send(&packed(&["PING"])).await.is_ok());
        assert_eq!((turns.sockets().len(), fake.connections()), (0, 1));
    }
}
