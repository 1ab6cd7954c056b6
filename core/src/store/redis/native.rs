//! A native connection: one multiplexed TCP connection for commands, one for messages.
//!
//! The driver repeats nothing. A connection that failed or hung is dropped, and the next command makes a
//! new one; how often that is tried is paced by the client.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::io::tcp::TcpSettings;
use ::redis::io::tcp::socket2::TcpKeepalive;
use ::redis::{AsyncConnectionConfig, Client, Cmd, ErrorKind, IntoConnectionInfo, RedisError, Value};
use tokio::sync::Mutex;

use super::subscriptions::Subscriptions;
use super::transport::{Resp, Transport, TransportError};
use crate::Micros;
use crate::error::{Error, Result};
use crate::store::{Listener, Watch};

/// How long a connection is silent before the system asks whether its other end is there, and how often then. What
/// stands between may forget a silent connection, and nobody would hear of it.
const KEEPALIVE: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(10));

/// The address of a Redis, with its password if it has one; neither is ever shown.
#[derive(Clone)]
pub struct RedisUrl {
    client: Client,
}

/// Commands over a connection of this process.
#[derive(Clone)]
pub struct NativeTransport {
    shared: Arc<Shared>,
}

struct Shared {
    url: RedisUrl,
    handle: tokio::runtime::Handle,
    response_timeout: Duration,
    connection: Mutex<Option<MultiplexedConnection>>,
    subscriptions: Subscriptions,
}

impl RedisUrl {
    /// Reads a `redis://`, `rediss://` or `redis+unix://` URL.
    ///
    /// # Errors
    /// `invalid_argument` if it is not one; the message does not repeat it.
    pub fn new(url: &str) -> Result<Self> {
        let scheme = url.split(':').next().unwrap_or_default();
        if !matches!(scheme, "redis" | "rediss" | "redis+unix" | "unix" | "valkey" | "valkeys") {
            return Err(Error::invalid("url", "must begin with memory:, redis:// or rediss://"));
        }
        if url.contains('#') {
            return Err(Error::invalid(
                "url",
                "has a #: in a password it is written %23, and nothing may follow it",
            ));
        }
        // The driver passes over what it does not know, and a database named so would be another one than was meant.
        let known: &[&str] =
            if scheme.ends_with("unix") { &["db", "user", "pass", "protocol"] } else { &["protocol"] };
        let query = url.split_once('?').map_or("", |(_, query)| query);
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let mut keys = pairs.map(|pair| pair.split_once('=').map_or(pair, |(key, _)| key));
        if keys.any(|key| !known.contains(&key)) {
            return Err(Error::invalid(
                "url",
                format_args!(
                    "has a parameter that is not known; there are: {} (and the database is the path)",
                    known.join(", ")
                ),
            ));
        }
        // The driver's own message could repeat the URL, and with it the password.
        let client = url.into_connection_info().and_then(|info| {
            let (silence, pause) = KEEPALIVE;
            let keepalive = TcpKeepalive::new().with_time(silence).with_interval(pause);
            // An envelope must not wait until the one before it has arrived.
            let settings = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
            Client::open(info.set_tcp_settings(settings))
        });
        client.map(|client| RedisUrl { client }).map_err(|error| {
            Error::invalid(
                "url",
                match error.kind() {
                    ErrorKind::InvalidClientConfig
                        if matches!(scheme, "rediss" | "valkeys") && cfg!(not(feature = "tls")) =>
                    {
                        "needs TLS, and this build has none"
                    }
                    _ => {
                        "is not a URL of the form redis://user:password@host:port/database, with a password that is encoded by \
                         percents and an IPv6 address in brackets"
                    }
                },
            )
        })
    }

    pub(super) fn client(&self) -> &Client {
        &self.client
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisUrl(…)")
    }
}

impl fmt::Debug for NativeTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NativeTransport(…)")
    }
}

impl NativeTransport {
    /// A transport to `url`, its tasks on the runtime of `handle`. Connects with the first command.
    pub fn new(url: RedisUrl, handle: tokio::runtime::Handle, response_timeout: Micros) -> Self {
        let subscriptions = Subscriptions::new(url.clone(), handle.clone());
        // A little less than the client's own patience, so that a hung connection is dropped here.
        let response_timeout = Duration::from_micros(response_timeout - response_timeout / 10);
        NativeTransport {
            shared: Arc::new(Shared {
                url,
                handle,
                response_timeout,
                connection: Mutex::default(),
                subscriptions,
            }),
        }
    }

    async fn connection(&self) -> Result<MultiplexedConnection, TransportError> {
        let shared = &self.shared;
        let mut kept = shared.connection.lock().await;
        if let Some(connection) = &*kept {
            return Ok(connection.clone());
        }
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(shared.response_timeout))
            .set_response_timeout(Some(shared.response_timeout));
        let connection = shared.url.client().get_multiplexed_async_connection_with_config(&config).await;
        let connection = connection.map_err(|error| TransportError::NotSent(describe(&error)))?;
        *kept = Some(connection.clone());
        Ok(connection)
    }

    /// The next command makes a new connection.
    async fn disconnect(&self) {
        *self.shared.connection.lock().await = None;
    }
}

impl Transport for NativeTransport {
    async fn send(&self, command: Vec<String>) -> Result<Resp, TransportError> {
        let mut connection = self.connection().await?;
        let mut packed = Cmd::new();
        command.iter().for_each(|word| {
            packed.arg(word);
        });
        let reply = match connection.send_packed_command(&packed).await {
            Ok(value) => resp(value),
            Err(error) => match error.code() {
                Some(code) => Resp::Error(format!("{code} {}", error.detail().unwrap_or_default())),
                None => {
                    self.disconnect().await;
                    return Err(TransportError::NoReply(describe(&error)));
                }
            },
        };
        // A master of before that was demoted keeps its connections; the address may lead elsewhere by now.
        if matches!(&reply, Resp::Error(text) if text.starts_with("READONLY")) {
            self.disconnect().await;
        }
        Ok(reply)
    }

    async fn subscribe(&self, channel: String, listener: Listener) -> Result<Option<Watch>, TransportError> {
        self.shared.subscriptions.subscribe(channel, listener).await.map(Some)
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        let connection = self.connection.get_mut().take();
        // As a thread ends Tokio's own state of it may be gone, and to enter would panic.
        if tokio::runtime::Handle::try_current().is_err_and(|error| error.is_thread_local_destroyed()) {
            drop(self.handle.spawn(async { drop(connection) }));
            return;
        }
        // The driver spawns its tasks on the runtime; their ends must find it.
        let _entered = self.handle.enter();
        drop(connection);
    }
}

fn resp(value: Value) -> Resp {
    match value {
        Value::Nil => Resp::Nil,
        Value::Int(number) => Resp::Integer(number),
        Value::BulkString(bytes) => Resp::Text(String::from_utf8_lossy(&bytes).into_owned()),
        Value::SimpleString(text) => Resp::Text(text),
        Value::Okay => Resp::Text("OK".to_owned()),
        Value::Array(values) => Resp::List(values.into_iter().map(resp).collect()),
        // As RESP2 has it: keys and values in turn.
        Value::Map(pairs) => {
            Resp::List(pairs.into_iter().flat_map(|(key, value)| [resp(key), resp(value)]).collect())
        }
        Value::ServerError(error) => {
            Resp::Error(format!("{} {}", error.code(), error.details().unwrap_or_default()))
        }
        other => Resp::Text(format!("{other:?}")),
    }
}

/// What went wrong, without the address: it could carry a password.
pub(super) fn describe(error: &RedisError) -> String {
    let category = error.category();
    match (error.code(), error.detail()) {
        (Some(code), _) => format!("{category}: {code}"),
        (None, _) if error.is_timeout() => "the server did not answer in time".to_owned(),
        (None, _) if error.is_connection_refusal() => "the server refuses connections".to_owned(),
        (None, _) if error.is_connection_dropped() => "the connection was lost".to_owned(),
        // What the socket or TLS says: it knows neither user nor password.
        (None, _) if error.kind() == ErrorKind::Io => error.to_string(),
        (None, _) => category.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The driver sets neither by itself: the second envelope to a far server waited until the first had come back.
    #[test]
    fn what_is_sent_waits_for_nothing_and_a_silent_connection_is_looked_after() {
        let url = RedisUrl::new("rediss://a").unwrap();
        let settings = url.client().get_connection_info().tcp_settings();
        assert!(settings.nodelay() && settings.keepalive().is_some());
    }

    /// redis-py and ioredis read `?db=2`; the driver would use database 0, and another pool than was meant.
    #[test]
    fn a_parameter_that_would_be_passed_over_is_refused() {
        for good in [
            "redis://a",
            "redis://user:word@a:1/2",
            "redis://a?protocol=resp3",
            "redis://a/?",
            "redis+unix:///run/redis.sock?db=2&user=u&pass=p&protocol=resp3",
        ] {
            assert!(RedisUrl::new(good).is_ok(), "{good}");
        }
        for wrong in [
            "redis://a?db=2",
            "redis://a/2?protocol=resp3&ssl_cert_reqs=none",
            "redis://a?response_timeout=5",
            "redis+unix:///run/redis.sock?database=2",
            "redis://:wo?rd@a",
        ] {
            let error = RedisUrl::new(wrong).unwrap_err();
            assert_eq!(error.field(), Some("url"));
            assert!(error.message().contains("there are: "), "{wrong}: {error}");
            assert!(!error.message().contains("rd@"), "{error}");
        }
        // The driver would find this out with each command.
        for (wrong, hint) in
            [("rediss://a#insecure", "%23"), ("redis://:wo#rd@a", "%23"), ("redis://::1:6379", "brackets")]
        {
            let error = RedisUrl::new(wrong).unwrap_err();
            assert_eq!(error.field(), Some("url"));
            assert!(error.message().contains(hint) && !error.message().contains("wo#"), "{wrong}: {error}");
        }
    }
}
