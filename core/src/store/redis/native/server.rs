//! One server, and the connection that is kept to it.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex as SyncMutex};
use std::time::Duration;

use ::redis::{Client, Cmd, ConnectionAddr, ErrorKind, RedisError, Value};
use futures_util::future::{Either, select, try_join};
use tokio::sync::{Mutex, OwnedMutexGuard};

use super::at;
use super::connection::Connection;
use super::sentinels::Sentinels;
use super::topology::{self, NO_NODE, SECTION, SLOTS};
use crate::poison::unpoisoned;
use crate::runtime::boot_time;
use crate::runtime::host::{Guest, Host};
use crate::store::Certainty;
use crate::store::redis::transport::{Resp, TransportError, inner};
use crate::store::redis::{POLICY, fit};

/// What comes of a command.
pub(super) type Reply = Result<Resp, TransportError>;

/// A server at an address, or whichever is the primary.
pub(super) struct Server {
    place: Place,
    /// How long an answer may take to come, and how long it is waited for a connection.
    patience: Duration,
    connection: Arc<Mutex<Option<Kept>>>,
    /// What turns of a host ask goes over one of their own.
    hosted: Arc<Mutex<Option<Kept>>>,
    /// Whose turns these are, by the last word.
    guest: SyncMutex<Guest>,
    /// Which of all servers so far the connections lead to: those to one of before are left.
    era: AtomicU64,
    /// In which of them it answered last.
    answered_in: AtomicU64,
    /// Whether a connection that was being made as all were closed is left later.
    closes: AtomicBool,
}

/// A connection, to which of the servers, and for whose turns, if for any.
struct Kept {
    connection: Connection,
    era: u64,
    guest: Option<Guest>,
}

/// Where a connection leads.
pub(super) enum Place {
    There(Client),
    /// A node of a cluster, and the hosts and ports that it named as it was connected to, until they are taken.
    Node(Client, SyncMutex<Option<Vec<(String, u16)>>>),
    /// A sentinel, which keeps no leases.
    Sentinel(Client),
    /// Where the sentinels say, each time anew.
    Primary(Box<Sentinels>),
}

impl Server {
    pub fn new(place: Place, patience: Duration) -> Self {
        let guest = SyncMutex::new(Guest::nobody());
        Server {
            place,
            patience,
            connection: Arc::default(),
            hosted: Arc::default(),
            guest,
            era: AtomicU64::new(0),
            answered_in: AtomicU64::new(0),
            closes: AtomicBool::new(false),
        }
    }

    pub fn place(&self) -> &Place {
        &self.place
    }

    /// Sends a command once. A connection that failed, or that leads to a replica by now, or to a primary without any, is dropped:
    /// the next command makes a new one.
    pub async fn send(self: &Arc<Self>, command: &Cmd) -> Reply {
        self.send_noting(command, &mut false).await
    }

    /// The same. Who waits no longer finds noted whether it may have been sent.
    pub async fn send_noting(self: &Arc<Self>, command: &Cmd, is_sent: &mut bool) -> Reply {
        let host = self.host();
        let (mut connection, era) = match self.connection(host.as_ref()).await {
            Ok(connection) => connection,
            Err(reply) => return reply,
        };
        *is_sent = true;
        let reply = asked(&mut connection, command).await;
        match &reply {
            // The other one too: a name may lead to another server by now, and both would grant.
            Err(_) => self.leave(era),
            Ok(Resp::Error(text)) if leaves(text) => self.leave(era),
            Ok(_) => {
                // Almost always it is.
                if self.answered_in() < era {
                    self.answered_in.fetch_max(era, SeqCst);
                }
                return reply;
            }
        }
        self.fail();
        reply
    }

    /// How often it was left, and may have become another, before it answered last.
    pub fn answered_in(&self) -> u64 {
        self.answered_in.load(SeqCst)
    }

    /// Asks two questions, the second of which is answered later, and both anew where the connection that was kept broke: it may
    /// have been closed long ago.
    pub async fn ask(self: &Arc<Self>, first: &Cmd, second: &Cmd) -> Result<(Resp, Resp), TransportError> {
        let ask = async || try_join(self.send(first), self.send(second)).await;
        match ask().await {
            Err(TransportError::NoReply(_)) => ask().await,
            answers => answers,
        }
    }

    /// Whether there is no connection, or not yet.
    pub fn is_unconnected(&self) -> bool {
        self.connection.try_lock().map_or(true, |connection| connection.is_none())
    }

    /// Drops the connections if the sentinels, where there are any, say that the primary is another.
    pub async fn look(&self) {
        let Place::Primary(sentinels) = &self.place else { return };
        let is_kept = self.connection.lock().await.is_some();
        if is_kept && sentinels.moved(self.patience).await == Ok(true) {
            self.leave(self.era.load(SeqCst));
        }
    }

    /// Whom a cluster's node has named as it was connected to, told once.
    pub fn named(&self) -> Option<Vec<(String, u16)>> {
        match &self.place {
            Place::Node(_, named) => unpoisoned(named).take(),
            Place::There(_) | Place::Sentinel(_) | Place::Primary(_) => None,
        }
    }

    /// Closes the connections, in the runtime that they were made in. One that is being made is for who asks next, as whoever it was
    /// made for asks again: it is closed after that, or if nobody comes.
    pub fn close(&self) {
        let is_being_made = [&self.connection, &self.hosted].iter().any(|kept| kept.try_lock().is_err());
        if is_being_made {
            self.closes.store(true, SeqCst);
        } else {
            self.leave(self.era.load(SeqCst));
        }
        if let Place::Primary(sentinels) = &self.place {
            sentinels.close();
        }
    }

    /// The host of whose turn this is a part, if its turns have a connection of their own here: the first that comes has, for as
    /// long as it is there.
    fn host(&self) -> Option<Host> {
        let host = Host::current().filter(|_| self.place.has_hosts())?;
        let mut guest = unpoisoned(&self.guest);
        if guest.host().is_none() {
            *guest = host.guest();
        }
        guest.is_of(&host).then_some(host)
    }

    fn kept(&self, hosted: bool) -> &Arc<Mutex<Option<Kept>>> {
        if hosted { &self.hosted } else { &self.connection }
    }

    /// No connection of that era leads where the next command is to go. Those that were made since stay: of many commands that one
    /// connection failed the last may hear of it late.
    fn leave(&self, era: u64) {
        if self.era.compare_exchange(era, era + 1, SeqCst, SeqCst).is_ok() {
            self.drop_kept();
        }
    }

    fn is_current(&self, kept: &Kept) -> bool {
        kept.era == self.era.load(SeqCst)
    }

    /// Whether a connection is being made.
    pub fn is_connecting(&self) -> bool {
        [&self.connection, &self.hosted].iter().any(|kept| kept.try_lock().is_err())
    }

    /// Drops what nobody has just now. Who has it sees the era.
    pub fn drop_kept(&self) {
        for kept in [&self.connection, &self.hosted] {
            if let Ok(mut kept) = kept.try_lock() {
                *kept = None;
            }
        }
    }

    /// The connection and its era, or what is to be said of the command that cannot be sent.
    async fn connection(self: &Arc<Self>, host: Option<&Host>) -> Result<(Connection, u64), Reply> {
        let kept = self.kept(host.is_some());
        if let Ok(kept) = kept.try_lock()
            && let Some(there) = self.usable(&kept, host).await?
        {
            return Ok(there);
        }
        let made = async {
            let kept = kept.clone().lock_owned().await;
            // Another may have made it meanwhile.
            if let Some(there) = self.usable(&kept, host).await? {
                return Ok(there);
            }
            // In a task of its own: to connect to one that is far may take longer than is waited for it, and is of use to the next
            // who asks.
            let task = tokio::spawn(self.clone().fill(kept, host.cloned()));
            task.await.unwrap_or_else(|_| Err(Err(not_sent("the connection is made no more"))))
        };
        let made = tokio::time::timeout(self.patience, Box::pin(made)).await;
        made.unwrap_or_else(|_| Err(Err(not_sent(SILENT))))
    }

    /// What is kept, if it may be sent over.
    async fn usable(
        &self,
        kept: &Option<Kept>,
        host: Option<&Host>,
    ) -> Result<Option<(Connection, u64)>, Reply> {
        let is_usable = |kept: &&Kept| self.is_current(kept) && kept.is_for(host);
        let Some(kept) = kept.as_ref().filter(is_usable) else { return Ok(None) };
        if kept.connection.is_closed() || self.moved().await.map_err(Err)? {
            self.leave(kept.era);
        }
        Ok(self.is_current(kept).then(|| (kept.connection.clone(), kept.era)))
    }

    /// Makes the connection that is to be kept there.
    async fn fill(
        self: Arc<Self>,
        mut kept: OwnedMutexGuard<Option<Kept>>,
        host: Option<Host>,
    ) -> Result<(Connection, u64), Reply> {
        *kept = None;
        let made = match &host {
            Some(_) => self.make_both(host.as_ref()).await,
            None => self.make(None).await,
        }?;
        if !self.is_current(&made) {
            return Err(Err(not_sent("the connection was left as it was made")));
        }
        let (connection, era) = (made.connection.clone(), made.era);
        *kept = Some(made);
        if self.closes.swap(false, SeqCst) {
            let server = Arc::downgrade(&self);
            tokio::spawn(async move {
                tokio::time::sleep(LIMIT).await;
                if let Some(server) = server.upgrade() {
                    server.leave(era);
                }
            });
        }
        Ok((connection, era))
    }

    /// A new connection.
    async fn make(&self, host: Option<&Host>) -> Result<Kept, Reply> {
        let era = self.era.load(SeqCst);
        let made = tokio::time::timeout(self.patience.max(LIMIT), Box::pin(self.connect(host))).await;
        let connection = made.unwrap_or_else(|_| Err(Err(not_sent(SILENT)))).inspect_err(|_| self.fail())?;
        // The process may have stood still as it connected.
        if self.moved().await.map_err(Err)? {
            return Err(Err(not_sent("the sentinels name another primary by now")));
        }
        Ok(Kept { connection, era, guest: host.map(Host::guest) })
    }

    /// Makes also the one for all else: what is to be kept, and what is given back as the process ends, finds it.
    async fn make_both(&self, host: Option<&Host>) -> Result<Kept, Reply> {
        match select(pin!(self.make(host)), pin!(self.make_ahead())).await {
            Either::Left((made, ahead)) => {
                // It sets out at the same time, and takes as long; if not, it is nobody's now.
                let _ = tokio::time::timeout(AHEAD, ahead).await;
                made
            }
            Either::Right(((), made)) => made.await,
        }
    }

    /// The connection for what no turn of a host asks, if there is none and nobody makes it.
    async fn make_ahead(&self) {
        if let Ok(mut kept) = self.connection.try_lock()
            && kept.as_ref().is_none_or(|kept| kept.connection.is_closed() || !self.is_current(kept))
        {
            *kept = self.make(None).await.ok();
        }
    }

    /// Whether the primary is another, if nobody has asked for long.
    async fn moved(&self) -> Result<bool, TransportError> {
        match &self.place {
            // In a box: it is seldom, and every command's future would have room for it.
            Place::Primary(sentinels) if sentinels.is_overdue() => {
                Box::pin(sentinels.moved(self.patience)).await
            }
            _ => Ok(false),
        }
    }

    /// What the sentinels said last was of no use.
    fn fail(&self) {
        if let Place::Primary(sentinels) = &self.place {
            sentinels.fail();
        }
    }

    async fn connect(&self, host: Option<&Host>) -> Result<Connection, Reply> {
        let asked_at = boot_time();
        let client = self.place.client(self.patience).await.map_err(Err)?;
        let mut connection = Connection::open(&client, self.patience, host)
            .await
            .map_err(|error| Err(not_sent(describe(&error))))?;
        if let Place::Sentinel(_) = &self.place {
            return Ok(connection);
        }
        // Each is asked as it is connected to: it may be another than the one before.
        match fit(&told(&mut connection, &POLICY).await?) {
            Ok(()) => {}
            Err(error) if error.certainty == Certainty::BARRED => {
                return Err(Ok(Resp::Error(error.cause)));
            }
            Err(error) => return Err(Err(not_sent(error.cause))),
        }
        match &self.place {
            Place::There(_) | Place::Sentinel(_) => {}
            Place::Node(_, named) => {
                let slots = told(&mut connection, &SLOTS).await?;
                if !matches!(slots, Resp::List(_))
                    && topology::is_no_node(&told(&mut connection, &SECTION).await?)
                {
                    return Err(Ok(Resp::Error(NO_NODE.to_owned())));
                }
                *unpoisoned(named) = Some(topology::nodes(&slots));
            }
            Place::Primary(sentinels) => sentinels.reached(&client, asked_at),
        }
        Ok(connection)
    }
}

impl Kept {
    fn is_for(&self, host: Option<&Host>) -> bool {
        match (&self.guest, host) {
            (Some(guest), Some(host)) => guest.is_of(host),
            (guest, host) => guest.is_none() && host.is_none(),
        }
    }
}

impl Place {
    /// That of a cluster's node.
    pub fn node(client: Client) -> Self {
        Place::Node(client, SyncMutex::default())
    }

    /// Whether turns of a host may have a connection of their own: over TLS it is the runtime that reads. To a primary there is one
    /// only: of two, one could still lead to the primary of before when the other leads to the next, and both would grant.
    fn has_hosts(&self) -> bool {
        match self {
            Place::There(client) | Place::Node(client, _) => {
                !matches!(at(client), ConnectionAddr::TcpTls { .. })
            }
            Place::Primary(_) | Place::Sentinel(_) => false,
        }
    }

    /// The client of the server that is there now.
    pub async fn client(&self, patience: Duration) -> Result<Client, TransportError> {
        match self {
            Place::There(client) | Place::Node(client, _) | Place::Sentinel(client) => Ok(client.clone()),
            Place::Primary(sentinels) => sentinels.primary(patience).await,
        }
    }
}

/// How long making a connection may take, if an answer may not take longer: it takes several, over TLS four at the least.
pub(super) const LIMIT: Duration = Duration::from_secs(2);

/// How much longer a host's connection may wait for that of all else.
const AHEAD: Duration = Duration::from_millis(50);

/// A primary of before that was demoted, or cut off, keeps its connections; the address may lead elsewhere by now.
const LEAVES: [&str; 3] = ["READONLY", "MASTERDOWN", "NOREPLICAS"];

/// Whether a server that says this is left.
fn leaves(error: &str) -> bool {
    LEAVES.iter().any(|word| error.starts_with(word))
}

pub(super) const SILENT: &str = "the server did not answer in time";

pub(super) fn not_sent(cause: impl Into<String>) -> TransportError {
    TransportError::NotSent(cause.into())
}

/// What a question is answered with that comes before any command; an error of the server is an answer.
async fn told(connection: &mut Connection, question: &[&str]) -> Result<Resp, Reply> {
    match asked(connection, &packed(question)).await {
        Ok(answer) => Ok(answer),
        Err(TransportError::NotSent(cause) | TransportError::NoReply(cause)) => Err(Err(not_sent(cause))),
    }
}

/// A command of these words.
pub(super) fn packed(words: &[impl AsRef<str>]) -> Cmd {
    let mut packed = Cmd::new();
    words.iter().for_each(|word| {
        packed.arg(word.as_ref());
    });
    packed
}

/// What a command is answered with; the driver repeats nothing, and gives the server's errors as values.
async fn asked(connection: &mut Connection, command: &Cmd) -> Reply {
    match connection.send(command).await {
        None => Err(TransportError::NoReply(SILENT.to_owned())),
        Some(Ok(value)) => Ok(resp(value)),
        Some(Err(error)) => Err(TransportError::NoReply(describe(&error))),
    }
}

fn resp(value: Value) -> Resp {
    match value {
        Value::Nil => Resp::Nil,
        Value::Int(number) => Resp::Integer(number),
        Value::BulkString(bytes) => Resp::Text(String::from_utf8_lossy(&bytes).into_owned()),
        // That is how RESP3 has `INFO`.
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Resp::Text(text),
        Value::Okay => Resp::Text("OK".to_owned()),
        Value::Array(values) => Resp::List(values.into_iter().map(resp).collect()),
        // As RESP2 has it: keys and values in turn.
        Value::Map(pairs) => {
            Resp::List(pairs.into_iter().flat_map(|(key, value)| [resp(key), resp(value)]).collect())
        }
        Value::ServerError(error) => {
            let text = format!("{} {}", error.code(), error.details().unwrap_or_default());
            Resp::Error(inner(&text).to_owned())
        }
        other => Resp::Text(format!("{other:?}")),
    }
}

/// What went wrong, without the address, and without what a server repeats of a command that it does not know: both could carry a
/// password.
pub(super) fn describe(error: &RedisError) -> String {
    let category = error.category();
    let detail =
        error.detail().map(|detail| detail.split_once(", with args").map_or(detail, |(said, _)| said));
    match (error.code(), detail) {
        (Some(code), detail) => {
            format!("{category}: {code} {}", detail.unwrap_or_default()).trim_end().to_owned()
        }
        (None, _) if error.is_timeout() => SILENT.to_owned(),
        (None, _) if error.is_connection_refusal() => "the server refuses connections".to_owned(),
        (None, _) if error.is_connection_dropped() => "the connection was lost".to_owned(),
        // What the socket or TLS says: it knows neither user nor password.
        (None, _) if error.kind() == ErrorKind::Io => error.to_string(),
        (None, _) => category.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use ::redis::VerbatimFormat;
    use tokio::runtime::Handle;

    use super::*;
    use crate::SECOND;
    use crate::store::redis::native::fake::Fake;
    use crate::store::redis::native::{NativeTransport, RedisUrl};
    use crate::store::redis::transport::Transport;

    /// An error that a script met with, as Redis 6.2 says it.
    fn met(said: &str) -> String {
        format!("ERR Error running script (call to f_897a): @user_script:4: @user_script: 4: -{said}")
    }

    // They were taken for refusals for good, and a connection to a demoted primary was kept.
    #[test]
    fn errors_that_a_script_of_redis_6_met_with_are_told_apart_too() {
        for said in ["READONLY You can't write against a read only replica.", "OOM command not allowed"] {
            assert_eq!(inner(&met(said)), said);
        }
        for other in [
            "READONLY no",
            "ERR unknown command",
            "ERR Error running script (call to f_1): @user_script:1: x",
        ] {
            assert_eq!(inner(other), other);
        }
        assert_eq!(inner(&met("no code word")), met("no code word"));
    }

    // The words around it were taken off nothing that the driver gives, and it was asked for ever.
    #[tokio::test]
    async fn a_replica_whose_script_cannot_write_is_left_whatever_words_are_around_that() {
        let fake = Fake::start().await;
        let server = Arc::new(Server::new(Place::There(fake.client()), Duration::from_secs(30)));
        let refusal = "READONLY You can't write against a read only replica.";
        fake.refuses(&met(refusal));
        for connections in 1..=2 {
            let reply = server.send(&packed(&["EVALSHA", "digest", "1", "key"])).await;
            assert_eq!(reply, Ok(Resp::Error(refusal.to_owned())));
            assert_eq!(fake.connections(), connections);
        }
    }

    #[tokio::test]
    async fn what_a_server_repeats_of_a_login_that_it_does_not_know_is_not_told() {
        let url = format!("redis://:canary-5d1e@127.0.0.1:{}?protocol=resp3", Fake::start().await.port);
        let place = Place::There(Client::open(url.as_str()).unwrap());
        let server = Arc::new(Server::new(place, Duration::from_secs(1)));
        let Err(TransportError::NotSent(cause)) = server.send(&packed(&["PING"])).await else { panic!() };
        assert!(cause.contains("unknown command 'HELLO'") && !cause.contains("canary"), "{cause}");
    }

    // Each attempt began anew, as a far server over TLS takes longer to connect to than to answer, and none was ever there; and, after
    // that was mended, where the handle had closed: nothing was given back there any more.
    #[tokio::test]
    async fn a_connection_that_takes_longer_than_an_answer_may_is_there_for_the_next() {
        for (scheme, closed) in
            [("redis", false), ("redis", true), ("redis+cluster", false), ("redis+cluster", true)]
        {
            let fake = Fake::start().await;
            fake.takes(Duration::from_secs(1), Duration::ZERO);
            let url = RedisUrl::new(&format!("{scheme}://127.0.0.1:{}", fake.port)).unwrap();
            let transport = NativeTransport::new(url, Handle::current(), SECOND / 2);
            if closed {
                transport.close();
            }
            let mut failed = 0;
            while transport.send(["EVALSHA", "digest", "1", "key"].map(str::to_owned).to_vec()).await.is_err()
            {
                failed += 1;
                assert!(failed < 5);
            }
            assert!(failed > 0, "nobody waits for longer");
            assert_eq!(fake.connections(), 1);
        }
    }

    // One that is neither an entry nor listed was forgotten as the time for a command was over, and begun anew with the next for ever.
    #[tokio::test]
    async fn so_is_one_to_a_node_that_only_another_names() {
        let [entry, far] = [Fake::start().await, Fake::start().await];
        entry.names(&far);
        far.takes(Duration::from_secs(1), Duration::ZERO);
        let url = RedisUrl::new(&format!("redis+cluster://127.0.0.1:{}", entry.port)).unwrap();
        let transport = NativeTransport::new(url, Handle::current(), SECOND / 2);
        let mut failed = 0;
        while transport.send(["EVALSHA", "digest", "1", "key"].map(str::to_owned).to_vec()).await.is_err() {
            failed += 1;
            assert!(failed < 9);
        }
        assert_eq!(far.connections(), 1);
    }

    // Of `INFO` in RESP3 nobody saw a line, and a replica was told to be fit.
    #[test]
    fn a_text_of_resp3_is_its_text() {
        let text = "# Replication\r\nrole:slave\r\n".to_owned();
        let value = Value::VerbatimString { format: VerbatimFormat::Text, text: text.clone() };
        assert_eq!(resp(value), Resp::Text(text));
    }

    // Where the crates of a program bring two, rustls chooses none, and each connection panicked.
    #[cfg(feature = "tls")]
    #[tokio::test]
    async fn cryptography_is_chosen_before_it_is_asked_for() {
        // Whoever connects to it is left before anything is said.
        let fake = Fake::start().await;
        fake.goes();
        let url = RedisUrl::new(&format!("rediss://127.0.0.1:{}", fake.port)).unwrap();
        let transport = NativeTransport::new(url, Handle::current(), 10 * SECOND);
        assert!(transport.send(vec!["PING".to_owned()]).await.is_err());
        assert!(rustls::crypto::CryptoProvider::get_default().is_some());
    }

    // The last of them dropped what was made after the first had failed.
    #[tokio::test]
    async fn commands_that_one_connection_failed_leave_it_once() {
        let fake = Fake::start().await;
        let server = Arc::new(Server::new(Place::There(fake.client()), Duration::from_millis(800)));
        let ping = packed(&["PING"]);
        assert!(server.send(&ping).await.is_ok());
        fake.takes(Duration::ZERO, Duration::from_secs(60));
        let first = async {
            assert!(server.send(&ping).await.is_err());
            fake.takes(Duration::ZERO, Duration::ZERO);
            assert!(server.send(&ping).await.is_ok());
        };
        let last = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(server.send(&ping).await.is_err());
        };
        tokio::join!(first, last);
        assert!(server.send(&ping).await.is_ok());
        assert_eq!(fake.connections(), 2);
    }
}
