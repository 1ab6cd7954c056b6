//! One connection to one server.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::{MultiplexedConnection, PubSub};
use ::redis::{AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, RedisResult, Value};
use futures_util::future::select_ok;
use socket2::SockRef;
use tokio::net::{TcpStream, lookup_host};
use tokio::runtime::Handle;

#[cfg(unix)]
use super::socket::Socket;
#[cfg(feature = "tls")]
use super::tls::encrypted;
use crate::runtime::alarms::Alarms;
use crate::runtime::host::Host;
use crate::runtime::tasks;
use crate::{MILLISECOND, Micros};

/// A connection, which is closed when the last of its clones is dropped.
#[derive(Clone)]
pub(super) struct Connection {
    driven: Driven,
    patience: Micros,
    alarms: Alarms,
}

/// What sends, and what reads and writes for it.
#[derive(Clone)]
struct Driven {
    sender: MultiplexedConnection,
    task: Arc<async_task::Task<()>>,
    /// Where a host's loop is to read, which may be busy: has it looked elsewhere what has come.
    nudge: Option<Nudge>,
}

type Nudge = Arc<dyn Fn() + Send + Sync>;

/// When it is looked first whether an answer has come that a host's loop has not read. Each further time is as long again as all
/// before.
const ATTENTION: Micros = 50 * MILLISECOND;

impl Connection {
    /// A new one, whose answers may take so long to come, for what turns of this host ask, if for any. Not on a host's thread:
    /// certificates are read.
    pub async fn open(client: &Client, patience: Duration, host: Option<&Host>) -> RedisResult<Self> {
        let driven = connect(client, host).await?;
        Ok(Connection {
            driven,
            patience: patience.as_micros() as Micros,
            alarms: Alarms::new(Handle::current()),
        })
    }

    /// Whether it is known that it has ended.
    pub fn is_closed(&self) -> bool {
        self.driven.task.is_finished()
    }

    /// What is answered, if it is in time.
    pub async fn send(&mut self, command: &Cmd) -> Option<RedisResult<Value>> {
        let Driven { sender, nudge, .. } = &mut self.driven;
        let mut answer = pin!(sender.send_packed_command(command));
        let Some(nudge) = nudge else { return self.alarms.within(self.patience, answer).await };
        let (mut left, mut pause) = (self.patience, ATTENTION);
        while left > 0 {
            pause = pause.min(left);
            if let Some(answer) = self.alarms.within(pause, answer.as_mut()).await {
                return Some(answer);
            }
            nudge();
            (left, pause) = (left - pause, 2 * pause);
        }
        // What was there is read by now, or will be at once.
        self.alarms.within(MILLISECOND, answer).await
    }
}

#[cfg_attr(not(unix), expect(unused_variables, reason = "sockets are read by hosts on Unix only"))]
async fn connect(client: &Client, host: Option<&Host>) -> RedisResult<Driven> {
    // The times are kept here.
    let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    let info = client.get_connection_info();
    match info.addr() {
        ConnectionAddr::Tcp(name, port) => {
            let stream = tcp(info, name, *port).await?;
            #[cfg(unix)]
            if let Some(host) = host {
                return hosted(info, stream.into_std()?.into(), host, config).await;
            }
            driven(info, stream, config).await
        }
        #[cfg(unix)]
        ConnectionAddr::Unix(path) => {
            let stream = tokio::net::UnixStream::connect(path).await?;
            match host {
                Some(host) => hosted(info, stream.into_std()?.into(), host, config).await,
                None => driven(info, stream, config).await,
            }
        }
        #[cfg(feature = "tls")]
        ConnectionAddr::TcpTls { host: name, port, .. } => {
            let stream = tcp(info, name, *port).await?;
            driven(info, encrypted(name, stream).await?, config).await
        }
        _ => Err(io::Error::from(io::ErrorKind::Unsupported).into()),
    }
}

/// A connection for messages. Over TLS it believes whom those for commands do: the driver would believe nobody where one certificate of
/// the system is malformed.
pub(super) async fn messages(client: &Client) -> RedisResult<PubSub> {
    #[cfg(feature = "tls")]
    {
        let info = client.get_connection_info();
        if let ConnectionAddr::TcpTls { host: name, port, .. } = info.addr() {
            let stream = tcp(info, name, *port).await?;
            return PubSub::new(info.redis_settings(), encrypted(name, stream).await?).await;
        }
    }
    client.get_async_pubsub().await
}

/// Drives the connection where what it sends is made: on the thread of a host that ends its turn, it leaves at once, and not
/// after another thread has woken.
async fn driven<S>(info: &ConnectionInfo, stream: S, config: AsyncConnectionConfig) -> RedisResult<Driven>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (sender, driver) =
        MultiplexedConnection::new_with_config(info.redis_settings(), stream, config).await?;
    Ok(Driven { sender, task: Arc::new(tasks::begin(&Handle::current(), driver)), nudge: None })
}

/// And has what it is answered read there too.
#[cfg(unix)]
async fn hosted(
    info: &ConnectionInfo,
    socket: socket2::Socket,
    host: &Host,
    config: AsyncConnectionConfig,
) -> RedisResult<Driven> {
    let socket = Socket::new(socket, host)?;
    let ear = Arc::downgrade(&socket.ear());
    let nudge: Nudge = Arc::new(move || {
        if let Some(ear) = ear.upgrade() {
            ear.nudge();
        }
    });
    Ok(Driven { nudge: Some(nudge), ..driven(info, socket, config).await? })
}

async fn tcp(info: &ConnectionInfo, host: &str, port: u16) -> RedisResult<TcpStream> {
    let addresses: Vec<_> =
        lookup_host((host, port)).await?.map(|address| Box::pin(TcpStream::connect(address))).collect();
    if addresses.is_empty() {
        return Err(io::Error::from(io::ErrorKind::NotFound).into());
    }
    // Of several the first that answers, as some may lead nowhere.
    let (stream, _) = select_ok(addresses).await?;
    let settings = info.tcp_settings();
    stream.set_nodelay(settings.nodelay())?;
    if let Some(keepalive) = settings.keepalive() {
        SockRef::from(&stream).set_tcp_keepalive(keepalive)?;
    }
    Ok(stream)
}
