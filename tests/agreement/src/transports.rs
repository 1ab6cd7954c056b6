//! Transports that answer before they return.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use leasehold::store::redis::{Resp, Transport, TransportError};
use leasehold::store::{Listener, Watch};
use leasehold_embedded::EmbeddedRedis;
use leasehold_servers::RespConnection;

/// Commands to a Redis inside the process.
#[derive(Clone, Debug)]
pub struct Embedded {
    redis: Arc<Mutex<EmbeddedRedis>>,
    commands: Arc<Mutex<Vec<String>>>,
}

/// Commands over one connection to a real server.
#[derive(Clone, Debug)]
pub struct Real {
    connection: Arc<Mutex<RespConnection>>,
}

impl Embedded {
    /// A transport to this server.
    pub fn new(redis: EmbeddedRedis) -> Self {
        Embedded { redis: Arc::new(Mutex::new(redis)), commands: Arc::default() }
    }

    /// The server.
    pub fn redis(&self) -> MutexGuard<'_, EmbeddedRedis> {
        self.redis.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The names of the commands sent since the last call.
    pub fn commands(&self) -> Vec<String> {
        std::mem::take(&mut self.commands.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Real {
    /// A transport over this connection.
    pub fn new(connection: RespConnection) -> Self {
        Real { connection: Arc::new(Mutex::new(connection)) }
    }

    /// Sends a command of the test's own.
    ///
    /// # Panics
    /// If there is no reply.
    pub fn command(&self, words: &[&str]) -> leasehold_servers::Resp {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        connection.command(words).expect("a reply")
    }
}

impl Transport for Embedded {
    async fn send(&self, command: Vec<String>) -> Result<Resp, TransportError> {
        self.commands.lock().unwrap_or_else(PoisonError::into_inner).push(command[0].clone());
        let words: Vec<&[u8]> = command.iter().map(String::as_bytes).collect();
        Ok(from_embedded(self.redis().command(&words)))
    }

    async fn subscribe(&self, _: String, _: Listener) -> Result<Option<Watch>, TransportError> {
        Ok(None)
    }
}

impl Transport for Real {
    async fn send(&self, command: Vec<String>) -> Result<Resp, TransportError> {
        let mut connection = self.connection.lock().unwrap_or_else(PoisonError::into_inner);
        let reply = connection.command(&command);
        reply.map(from_real).map_err(|error| TransportError::NoReply(error.to_string()))
    }

    async fn subscribe(&self, _: String, _: Listener) -> Result<Option<Watch>, TransportError> {
        Ok(None)
    }
}

fn text(bytes: Vec<u8>) -> Resp {
    Resp::Text(String::from_utf8(bytes).expect("text"))
}

fn from_embedded(reply: leasehold_embedded::Resp) -> Resp {
    use leasehold_embedded::Resp as From;
    match reply {
        From::Nil => Resp::Nil,
        From::Int(number) => Resp::Integer(number),
        From::Bulk(bytes) => text(bytes),
        From::Simple(text) => Resp::Text(text),
        From::Array(items) => Resp::List(items.into_iter().map(from_embedded).collect()),
        From::Error(text) => Resp::Error(text),
    }
}

fn from_real(reply: leasehold_servers::Resp) -> Resp {
    use leasehold_servers::Resp as From;
    match reply {
        From::Nil => Resp::Nil,
        From::Int(number) => Resp::Integer(number),
        From::Bulk(bytes) => text(bytes),
        From::Simple(text) => Resp::Text(text),
        From::Array(items) => Resp::List(items.into_iter().map(from_real).collect()),
        From::Error(text) => Resp::Error(text),
    }
}
