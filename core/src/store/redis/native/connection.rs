//! One connection to one server.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, RedisResult, Value};
use futures_util::future::select_ok;
use socket2::SockRef;
use tokio::net::{TcpStream, lookup_host};
use tokio::runtime::Handle;
use tokio::task::JoinSet;

use crate::Micros;
use crate::client::alarms::Alarms;
use crate::client::tasks;

/// A connection, which is closed when the last of its clones is dropped.
#[derive(Clone)]
pub(super) struct Connection {
    driver: MultiplexedConnection,
    /// What reads and writes; where the driver itself runs that, it is not known.
    _task: Option<Arc<async_task::Task<()>>>,
    patience: Micros,
    alarms: Alarms,
}

impl Connection {
    /// A new one, which may take as long to be made as an answer to come. None of both if it took longer.
    pub async fn open(client: &Client, patience: Duration) -> Option<RedisResult<Self>> {
        let made = tokio::time::timeout(patience, connect(client.clone())).await.ok()?;
        let (patience, alarms) = (patience.as_micros() as Micros, Alarms::new(Handle::current()));
        Some(made.map(|(driver, task)| Connection { driver, _task: task.map(Arc::new), patience, alarms }))
    }

    /// What is answered, if it is in time.
    pub async fn send(&mut self, command: &Cmd) -> Option<RedisResult<Value>> {
        self.alarms.within(self.patience, self.driver.send_packed_command(command)).await
    }
}

type Driven = (MultiplexedConnection, Option<async_task::Task<()>>);

async fn connect(client: Client) -> RedisResult<Driven> {
    // The times are kept here.
    let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
    let info = client.get_connection_info();
    match info.addr() {
        ConnectionAddr::Tcp(host, port) => driven(info, tcp(info, host, *port).await?, config).await,
        #[cfg(unix)]
        ConnectionAddr::Unix(path) => {
            driven(info, tokio::net::UnixStream::connect(path).await?, config).await
        }
        // The driver knows how to set up TLS, and has the runtime drive it. Not on a host's thread: certificates are read.
        _ => {
            let mut making = JoinSet::new();
            making.spawn(async move { client.get_multiplexed_async_connection_with_config(&config).await });
            let made = making.join_next().await.and_then(Result::ok);
            made.unwrap_or_else(|| Err(io::Error::from(io::ErrorKind::Interrupted).into()))
                .map(|made| (made, None))
        }
    }
}

/// Drives the connection where what it sends is made: on the thread of a host that ends its turn, it leaves at once, and not
/// after another thread has woken.
async fn driven<S>(info: &ConnectionInfo, stream: S, config: AsyncConnectionConfig) -> RedisResult<Driven>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let (connection, driver) =
        MultiplexedConnection::new_with_config(info.redis_settings(), stream, config).await?;
    Ok((connection, Some(tasks::begin(&Handle::current(), driver))))
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
