//! A TCP proxy that breaks connections on purpose.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::fault_state::FaultState;
use crate::link::Link;
use crate::port::Port;

/// A proxy before a server on this machine, whose faults are switched while it runs.
///
/// A *chunk* is what one read from a connection gives. A client that sends a request and waits for its reply sends
/// one chunk and gets one, unless they are longer than some ten kilobytes.
#[derive(Debug)]
pub struct Proxy {
    shared: Arc<Shared>,
    acceptor: Mutex<Option<Acceptor>>,
    port: Port,
}

#[derive(Debug)]
struct Shared {
    target: AtomicU16,
    state: Arc<FaultState>,
    links: Mutex<Vec<Arc<Link>>>,
}

#[derive(Debug)]
struct Acceptor {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

/// How often a port is tried that a stranger took after it had been found free.
const PORTS: usize = 10;

impl Proxy {
    /// Starts a proxy on a free port before this one.
    pub fn start(target_port: u16) -> io::Result<Self> {
        let mut last = io::Error::other("no port was tried");
        for _ in 0..PORTS {
            let target = AtomicU16::new(target_port);
            let shared = Arc::new(Shared { target, state: Arc::default(), links: Mutex::default() });
            let proxy = Self { shared, acceptor: Mutex::new(None), port: Port::claim()? };
            match proxy.listen() {
                Ok(()) => return Ok(proxy),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The port for clients.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The address for clients of a server without a password.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// Sends new connections to another port, as a service address does after a failover.
    pub fn retarget(&self, port: u16) {
        self.shared.target.store(port, Ordering::Release);
    }

    /// Closes all connections and refuses new ones.
    pub fn cut(&self) {
        if let Some(acceptor) = self.acceptor().take() {
            acceptor.end(self.port());
        }
        self.disconnect();
    }

    /// Closes all connections, and goes on taking new ones.
    pub fn disconnect(&self) {
        self.shared.close(|_| true);
    }

    /// Ends every fault: takes connections again, and delivers what was held back.
    pub fn heal(&self) -> io::Result<()> {
        self.shared.state.heal();
        if self.acceptor().is_none() { self.listen() } else { Ok(()) }
    }

    /// Takes connections and bytes, and forwards nothing in either direction: half open.
    pub fn stall(&self) {
        self.shared.state.stall();
    }

    /// Forwards requests, swallows the next `chunks` chunks of replies, and then closes the connections that lost
    /// one: the commands were executed and their replies are gone. A connection that has lost a reply gets no later one.
    pub fn drop_replies(&self, chunks: usize) {
        self.shared.state.drop_replies(chunks);
    }

    /// Sends the next chunk of requests twice and swallows the second replies, so that the server executes it
    /// twice. No other request may be under way on that connection, and it must speak RESP2.
    pub fn duplicate_next_request(&self) {
        self.shared.state.duplicate_next();
    }

    /// Has every chunk be on its way for this long, in each direction; many can be at once.
    pub fn delay(&self, delay: Duration) {
        self.shared.state.delay(delay);
    }

    /// Connections taken so far.
    pub fn connections(&self) -> u64 {
        read(&self.shared.state.connections)
    }

    /// Connections that are open now.
    pub fn open_connections(&self) -> usize {
        self.shared.links().iter().filter(|link| !link.is_closed()).count()
    }

    /// Bytes read so far, of both directions.
    pub fn bytes(&self) -> u64 {
        read(&self.shared.state.bytes)
    }

    /// Chunks of requests read so far.
    pub fn request_chunks(&self) -> u64 {
        read(&self.shared.state.request_chunks)
    }

    /// Chunks of replies read so far.
    pub fn reply_chunks(&self) -> u64 {
        read(&self.shared.state.reply_chunks)
    }

    /// Chunks of replies that were swallowed, to see that a fault has struck.
    pub fn dropped_replies(&self) -> u64 {
        read(&self.shared.state.dropped_replies)
    }

    /// Chunks of requests that were sent twice.
    pub fn duplicated_requests(&self) -> u64 {
        read(&self.shared.state.duplicated_requests)
    }

    fn acceptor(&self) -> MutexGuard<'_, Option<Acceptor>> {
        self.acceptor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn listen(&self) -> io::Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port()))?;
        let stop = Arc::new(AtomicBool::new(false));
        let (shared, stopped) = (self.shared.clone(), stop.clone());
        let thread = thread::spawn(move || {
            for client in listener.incoming() {
                if stopped.load(Ordering::Acquire) {
                    return;
                }
                // A client that cannot be joined to the server sees its connection closed.
                if let Ok(client) = client {
                    let _ = shared.join(client);
                }
            }
        });
        *self.acceptor() = Some(Acceptor { stop, thread });
        Ok(())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.cut();
    }
}

impl Acceptor {
    fn end(self, port: u16) {
        self.stop.store(true, Ordering::Release);
        // The thread waits for a connection, so it gets one. It is no client: the flag is read first.
        let woken = TcpStream::connect((Ipv4Addr::LOCALHOST, port));
        if woken.is_ok() {
            let _ = self.thread.join();
        }
    }
}

impl Shared {
    fn join(self: &Arc<Self>, client: TcpStream) -> io::Result<()> {
        self.state.connections.fetch_add(1, Ordering::Relaxed);
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, self.target.load(Ordering::Acquire)))?;
        // Held while the link begins, so that what closes links cannot miss this one.
        let mut links = self.links();
        links.retain(|link| !link.is_closed());
        let shared = Arc::downgrade(self);
        let lost = move || {
            if let Some(shared) = shared.upgrade() {
                shared.close(Link::is_deaf);
            }
        };
        links.push(Link::open(client, server, &self.state, lost)?);
        Ok(())
    }

    fn close(&self, chosen: impl Fn(&Link) -> bool) {
        self.links().iter().filter(|link| chosen(link)).for_each(|link| link.close());
        self.state.wake();
    }

    fn links(&self) -> MutexGuard<'_, Vec<Arc<Link>>> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::{RedisOptions, RedisServer, Resp, RespConnection};

    const SHORT: Duration = Duration::from_millis(150);
    const LONG: Duration = Duration::from_secs(5);

    fn setup() -> (RedisServer, Proxy) {
        let server = RedisServer::start(RedisOptions::default()).expect("started");
        let proxy = Proxy::start(server.port()).expect("started");
        (server, proxy)
    }

    fn connect(proxy: &Proxy, timeout: Duration) -> RespConnection {
        RespConnection::connect(proxy.port(), timeout).expect("connected")
    }

    fn count(server: &RedisServer) -> Resp {
        server.command(&["GET", "n"]).expect("read")
    }

    #[test]
    fn a_healthy_proxy_only_counts() {
        let (_server, proxy) = setup();
        let mut connection = connect(&proxy, LONG);
        assert_eq!(connection.command(&["INCR", "n"]).expect("a reply"), Resp::Int(1));
        let large = "x".repeat(1_000_000);
        assert_eq!(connection.command(&["ECHO", &large]).expect("a reply"), Resp::bulk(large));
        assert_eq!((proxy.connections(), proxy.open_connections()), (1, 1));
        assert!(proxy.bytes() > 2_000_000);
        assert!(proxy.request_chunks() > 1 && proxy.reply_chunks() > 1);
        assert!(proxy.url().ends_with(&proxy.port().to_string()));
    }

    #[test]
    fn a_cut_closes_and_refuses_until_it_is_healed() {
        let (_server, proxy) = setup();
        let mut connection = connect(&proxy, LONG);
        connection.command(&["PING"]).expect("a reply");
        proxy.cut();
        assert!(connection.command(&["PING"]).is_err());
        let refused = RespConnection::connect(proxy.port(), LONG).expect_err("refused");
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        proxy.heal().expect("healed");
        connect(&proxy, LONG).command(&["PING"]).expect("a reply");
        proxy.disconnect();
        connect(&proxy, LONG).command(&["PING"]).expect("a reply");
    }

    #[test]
    fn a_stalled_proxy_delivers_when_it_is_healed() {
        let (server, proxy) = setup();
        proxy.stall();
        let mut connection = connect(&proxy, SHORT);
        assert!(connection.command(&["INCR", "n"]).is_err());
        assert_eq!(count(&server), Resp::Nil);
        proxy.heal().expect("healed");
        connection.set_timeout(LONG).expect("set");
        assert_eq!(connection.receive().expect("late"), Resp::Int(1));
    }

    #[test]
    fn a_dropped_reply_leaves_its_command_executed() {
        let (server, proxy) = setup();
        let mut connection = connect(&proxy, LONG);
        connection.command(&["PING"]).expect("a reply");
        proxy.drop_replies(1);
        let begun = Instant::now();
        assert!(connection.command(&["INCR", "n"]).is_err());
        assert!(begun.elapsed() < LONG);
        assert_eq!(count(&server), Resp::bulk("1"));
        assert_eq!(proxy.dropped_replies(), 1);
        assert_eq!(connect(&proxy, LONG).command(&["INCR", "n"]).expect("a reply"), Resp::Int(2));
    }

    #[test]
    fn a_connection_that_lost_a_reply_gets_no_other() {
        let (_server, proxy) = setup();
        proxy.drop_replies(2);
        let mut first = connect(&proxy, SHORT);
        assert!(first.command(&["INCR", "n"]).is_err());
        let mut second = connect(&proxy, LONG);
        assert!(second.command(&["INCR", "n"]).is_err());
        first.set_timeout(LONG).expect("set");
        let begun = Instant::now();
        assert!(first.command(&["INCR", "n"]).is_err());
        assert!(begun.elapsed() < LONG);
    }

    #[test]
    fn a_doubled_request_is_executed_twice_and_answered_once() {
        let (server, proxy) = setup();
        let mut connection = connect(&proxy, LONG);
        for round in 0..20 {
            proxy.duplicate_next_request();
            let reply = connection.command(&["INCR", "n"]).expect("a reply");
            assert_eq!(reply, Resp::Int(round * 2 + 1));
            assert_eq!(
                connection.command(&["GET", "n"]).expect("a reply"),
                Resp::bulk((round * 2 + 2).to_string())
            );
        }
        assert_eq!(count(&server), Resp::bulk("40"));
        assert_eq!(proxy.duplicated_requests(), 20);
    }

    #[test]
    fn a_delay_counts_in_each_direction() {
        let (_server, proxy) = setup();
        let mut connection = connect(&proxy, LONG);
        proxy.delay(Duration::from_millis(30));
        let begun = Instant::now();
        connection.command(&["PING"]).expect("a reply");
        assert!(begun.elapsed() >= Duration::from_millis(60));
    }

    /// Each waited until the one before it had arrived, so that a far server looked slow.
    #[test]
    fn what_is_on_its_way_delays_nothing_else() {
        let (_server, proxy) = setup();
        proxy.delay(Duration::from_millis(500));
        let mut connections: Vec<_> = (0..4).map(|_| connect(&proxy, LONG)).collect();
        let begun = Instant::now();
        for round in 0..4 {
            connections.iter_mut().for_each(|connection| connection.send(&["PING"]).expect("sent"));
            while proxy.request_chunks() < 4 * (round + 1) {
                std::thread::yield_now();
            }
        }
        for connection in &mut connections {
            (0..4).for_each(|_| drop(connection.receive().expect("a reply")));
        }
        let took = begun.elapsed();
        assert!(took >= Duration::from_secs(1) && took < Duration::from_millis(2_500), "{took:?}");
    }

    #[test]
    fn a_failover_behind_a_cut_link_loses_writes() {
        let (master, link) = setup();
        let replica = RedisServer::start(RedisOptions::default()).expect("started");
        let front = Proxy::start(master.port()).expect("started");
        master.command(&["SET", "n", "1"]).expect("set");
        replica.replicate_through(link.port()).expect("replicates");
        link.cut();
        connect(&front, LONG).command(&["INCR", "n"]).expect("a reply");
        master.kill().expect("killed");
        replica.promote().expect("promoted");
        front.retarget(replica.port());
        assert_eq!(connect(&front, LONG).command(&["GET", "n"]).expect("read"), Resp::bulk("1"));
    }
}
