//! Sentinels: they say which server is the primary.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ::redis::{Client, Cmd, ConnectionAddr};
use tokio::sync::watch;

use super::server::{asked, connected};
use super::{addressed, at};
use crate::store::redis::transport::{Resp, TransportError};

pub(super) struct Sentinels {
    sentinels: Vec<Client>,
    name: String,
    /// How the servers are spoken to.
    servers: Client,
    /// Who is asked first next time: one that answered wrongly, or not at all, is not always the first.
    turn: AtomicUsize,
    /// Where commands were sent last.
    reached: Mutex<Option<ConnectionAddr>>,
    changes: watch::Sender<()>,
}

impl Sentinels {
    pub fn new(sentinels: Vec<Client>, name: String, servers: Client, changes: watch::Sender<()>) -> Self {
        Sentinels { sentinels, name, servers, turn: AtomicUsize::new(0), reached: Mutex::default(), changes }
    }

    /// The primary, as the first sentinel says that knows one. All of them together, and a connection to it, have `patience`.
    pub async fn primary(&self, patience: Duration) -> Result<Client, TransportError> {
        let count = self.sentinels.len();
        let share = patience / (u32::try_from(count).unwrap_or(u32::MAX).saturating_add(1));
        let turn = self.turn.fetch_add(1, Relaxed) % count.max(1);
        let mut failure = TransportError::NotSent("there are no sentinels".to_owned());
        for sentinel in self.sentinels.iter().cycle().skip(turn).take(count) {
            match tokio::time::timeout(share, self.ask(sentinel, share)).await {
                Ok(Ok(primary)) => return Ok(primary),
                Ok(Err(error)) => failure = error,
                Err(_) => failure = TransportError::NotSent("a sentinel did not answer in time".to_owned()),
            }
        }
        Err(failure)
    }

    async fn ask(&self, sentinel: &Client, patience: Duration) -> Result<Client, TransportError> {
        let said = |what: &str| TransportError::NotSent(format!("a sentinel: {what}"));
        let mut connection = match connected(sentinel, patience).await {
            Ok(connection) => connection,
            Err(TransportError::NotSent(cause) | TransportError::NoReply(cause)) => return Err(said(&cause)),
        };
        let mut question = Cmd::new();
        question.arg("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name);
        match asked(&mut connection, &question).await {
            Ok(Resp::List(address)) => match address.as_slice() {
                [Resp::Text(host), Resp::Text(port)] => {
                    let port = port.parse().map_err(|_| said("its answer makes no sense"))?;
                    addressed(&self.servers, host.clone(), port)
                        .ok_or_else(|| said("its answer makes no sense"))
                }
                _ => Err(said("its answer makes no sense")),
            },
            Ok(Resp::Nil) => Err(said("it knows no primary of that name")),
            Ok(Resp::Error(text)) => Err(said(&text)),
            Ok(other) => Err(said(&format!("it answers with {}", other.kind()))),
            Err(TransportError::NotSent(cause) | TransportError::NoReply(cause)) => Err(said(&cause)),
        }
    }

    /// Commands are sent there from now on.
    pub fn reached(&self, primary: &Client) {
        *self.reached.lock().unwrap_or_else(PoisonError::into_inner) = Some(at(primary).clone());
        self.changes.send_replace(());
    }

    /// Whether commands were sent elsewhere last.
    pub fn left(&self, place: &ConnectionAddr) -> bool {
        self.reached
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
            .is_some_and(|reached| reached != place)
    }
}
