//! A native connection: to each server one multiplexed TCP connection for commands, and one for messages.
//!
//! The driver repeats nothing. A connection that failed or hung is dropped, and the next command makes a
//! new one; how often that is tried is paced by the client.

mod cluster;
mod connection;
#[cfg(test)]
mod fake;
mod nodes;
mod sentinels;
mod server;
#[cfg(unix)]
mod socket;
mod subscriptions;
#[cfg(feature = "tls")]
mod tls;
mod topology;
mod url;

pub(super) use topology::NO_NODE;
pub use url::RedisUrl;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Weak};
use std::time::Duration;

use ::redis::{Client, ConnectionAddr, IntoConnectionInfo};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

use self::cluster::Cluster;
use self::sentinels::Sentinels;
use self::server::{Place, Reply, Server, packed};
use self::subscriptions::Subscriptions;
use self::url::Kind;
use super::transport::{Resp, Transport, TransportError};
use crate::Micros;
use crate::runtime::alarms::Alarms;
use crate::store::{Listener, Watch};

/// How long a connection is silent before the system asks whether its other end is there, and how often then. What
/// stands between may forget a silent connection, and nobody would hear of it.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));

/// Commands over connections of this process.
#[derive(Clone)]
pub struct NativeTransport {
    shared: Arc<Shared>,
}

struct Shared {
    servers: Arc<Servers>,
    handle: tokio::runtime::Handle,
    subscriptions: Subscriptions,
    /// How many commands are under way.
    under_way: AtomicUsize,
}

/// What an address leads to.
struct Servers {
    way: Way,
    /// How long each of them may take.
    patience: Duration,
    /// What the URL says of the [lag](Transport::lag).
    lag: Micros,
    /// Sent to when a server was left for another.
    changes: watch::Sender<()>,
    /// Whether the last command under way is to leave no connection behind.
    closed: AtomicBool,
    /// How often the one server was left for whichever its address leads to then, as far as it was told.
    left: AtomicU64,
}

enum Way {
    /// One server, or whichever is the primary.
    One(Arc<Server>),
    Cluster(Cluster),
}

impl fmt::Debug for NativeTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NativeTransport(…)")
    }
}

impl NativeTransport {
    /// A transport to `url`, its tasks on the runtime of `handle`. Connects with the first command.
    pub fn new(url: RedisUrl, handle: tokio::runtime::Handle, response_timeout: Micros) -> Self {
        // A little less than the client's own patience, so that a hung connection is dropped here.
        let patience = Duration::from_micros(response_timeout - response_timeout / 10);
        let servers = Arc::new(Servers::new(url, patience, Alarms::new(handle.clone())));
        if servers.sentinels().is_some() {
            handle.spawn(look(Arc::downgrade(&servers)));
        }
        let subscriptions = Subscriptions::new(servers.clone(), handle.clone());
        NativeTransport {
            shared: Arc::new(Shared { servers, handle, subscriptions, under_way: AtomicUsize::new(0) }),
        }
    }
}

impl Transport for NativeTransport {
    const VETS: bool = true;

    async fn send(&self, command: Vec<String>) -> Result<Resp, TransportError> {
        let _under_way = UnderWay::new(&self.shared);
        self.shared.servers.send(&command).await
    }

    fn close(&self) {
        self.shared.servers.closed.store(true, SeqCst);
        // Else the last that is under way does it, and those that follow, to withdraw what waited, have their connection.
        if self.shared.under_way.load(SeqCst) == 0 {
            self.shared.close();
        }
        self.shared.subscriptions.close();
    }

    fn lag(&self) -> Micros {
        self.shared.servers.lag()
    }

    async fn subscribe(&self, channel: String, listener: Listener) -> Result<Option<Watch>, TransportError> {
        self.shared.subscriptions.subscribe(channel, listener).await.map(Some)
    }
}

impl Shared {
    /// Closes the connections for commands.
    fn close(&self) {
        let servers = self.servers.clone();
        // As a thread ends Tokio's own state of it may be gone, and to enter would panic.
        if tokio::runtime::Handle::try_current().is_err_and(|error| error.is_thread_local_destroyed()) {
            drop(self.handle.spawn(async move { servers.close() }));
            return;
        }
        // The driver spawns its tasks on the runtime; their ends must find it.
        let _entered = self.handle.enter();
        servers.close();
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.close();
    }
}

impl Servers {
    fn new(url: RedisUrl, patience: Duration, alarms: Alarms) -> Self {
        let changes = watch::Sender::new(());
        let RedisUrl { kind, lag } = url;
        let way = match kind {
            Kind::One(client) => Way::One(Arc::new(Server::new(Place::There(client), patience))),
            Kind::Sentinel { sentinels, name, servers } => {
                let sentinels = Sentinels::new(sentinels, &name, servers, patience, changes.clone());
                Way::One(Arc::new(Server::new(Place::Primary(Box::new(sentinels)), patience)))
            }
            Kind::Cluster(nodes) => Way::Cluster(Cluster::new(nodes, patience, alarms, changes.clone())),
        };
        Servers { way, patience, lag, changes, closed: AtomicBool::new(false), left: AtomicU64::new(0) }
    }

    async fn send(&self, command: &[String]) -> Reply {
        match &self.way {
            // In a box, as those of one server would have room for it.
            Way::Cluster(cluster) => Box::pin(cluster.send(command)).await,
            Way::One(server) => match server.send(&packed(command)).await {
                Ok(Resp::Error(text)) if text.starts_with("MOVED ") => {
                    Ok(Resp::Error(format!("{text} (a node of a cluster, which redis+cluster:// follows)")))
                }
                reply => {
                    // What the address leads to answers by now. Almost never it was left.
                    let left = server.answered_in();
                    if self.left.load(Relaxed) < left && self.left.fetch_max(left, SeqCst) < left {
                        self.changes.send_replace(());
                    }
                    reply
                }
            },
        }
    }

    /// How long after another server took the place of one commands may still reach that.
    fn lag(&self) -> Micros {
        let known = match (&self.way, self.sentinels()) {
            (Way::Cluster(_), _) => cluster::OVERDUE,
            (_, Some(_)) => sentinels::LAG,
            (_, None) => 0,
        };
        known.max(self.lag)
    }

    /// Those who say which server is the primary.
    fn sentinels(&self) -> Option<&Sentinels> {
        match &self.way {
            Way::One(server) => match server.place() {
                Place::Primary(sentinels) => Some(sentinels),
                Place::There(_) | Place::Node(..) | Place::Sentinel(_) => None,
            },
            Way::Cluster(_) => None,
        }
    }

    /// Where to listen now.
    async fn listens_at(&self) -> Result<Client, TransportError> {
        match &self.way {
            Way::One(server) => server.place().client(self.patience).await,
            Way::Cluster(cluster) => cluster
                .listens_at()
                .ok_or_else(|| TransportError::NotSent("no node of the cluster is known".to_owned())),
        }
    }

    /// It is listened there.
    fn reached(&self, place: &ConnectionAddr) {
        if let Way::Cluster(cluster) = &self.way {
            cluster.reached(place);
        }
    }

    /// It could not be listened there, or not any more.
    fn fail(&self, place: &ConnectionAddr) {
        if let Way::Cluster(cluster) = &self.way {
            cluster.fail(place);
        }
    }

    /// Sees whether the server at this place, where it is listened, is still one of them.
    async fn look(&self, place: &ConnectionAddr) {
        if let Way::Cluster(cluster) = &self.way {
            cluster.look(place).await;
        }
    }

    /// Ends when commands go elsewhere than to the server at this place, which then may be silent for ever. `changes` are those
    /// since before the place was asked for.
    async fn is_left(self: Arc<Self>, place: ConnectionAddr, mut changes: watch::Receiver<()>) {
        while changes.changed().await.is_ok() {
            let left = match &self.way {
                Way::Cluster(cluster) => cluster.left(&place),
                // An address that leads elsewhere is the same place.
                Way::One(_) => self.sentinels().is_none_or(|sentinels| sentinels.left(&place)),
            };
            if left {
                return;
            }
        }
    }

    fn close(&self) {
        match &self.way {
            Way::One(server) => server.close(),
            Way::Cluster(cluster) => cluster.close(),
        }
    }
}

/// Counts a command for as long as it is under way.
struct UnderWay<'a>(&'a Shared);

impl<'a> UnderWay<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.under_way.fetch_add(1, SeqCst);
        UnderWay(shared)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if self.0.under_way.fetch_sub(1, SeqCst) == 1 && self.0.servers.closed.load(SeqCst) {
            self.0.close();
        }
    }
}

/// Has a primary left that is none any more, for as long as there is somebody to leave it.
async fn look(servers: Weak<Servers>) {
    let mut looks = tokio::time::interval(sentinels::LOOK);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        looks.tick().await;
        let Some(servers) = servers.upgrade() else { return };
        if let Way::One(server) = &servers.way {
            server.look().await;
        }
    }
}

fn at(client: &Client) -> &ConnectionAddr {
    client.get_connection_info().addr()
}

/// The same login, settings and encryption at another address.
fn addressed(client: &Client, host: String, port: u16) -> Option<Client> {
    let addr = match at(client).clone() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host, port, insecure, tls_params }
        }
        _ => ConnectionAddr::Tcp(host, port),
    };
    let info = client.get_connection_info().clone().into_connection_info().ok()?;
    Client::open(info.set_addr(addr)).ok()
}
