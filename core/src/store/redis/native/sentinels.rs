//! Sentinels: they say which server is the primary, and when that is another.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use ::redis::{Client, ConnectionAddr};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Mutex as AsyncMutex, watch};

use super::connection::Connection;
use super::server::{asked, connected, not_sent, packed};
use super::{addressed, at};
use crate::client::runtime::boot_time;
use crate::poison::unpoisoned;
use crate::store::redis::transport::{Resp, TransportError};
use crate::{Micros, SECOND};

/// How often they are asked whether the primary is still the one that commands go to.
pub(super) const LOOK: Duration = Duration::from_secs(1);
/// When nobody has asked for so long, because the process stood still, no command sets out before somebody has.
const OVERDUE: Micros = 2 * SECOND;
/// How long after another server became the primary commands may still reach the one before, which goes on to serve them for
/// some ten seconds if it lives: [`OVERDUE`], and what sentinels take to hear of it from one another.
pub(super) const LAG: Micros = 5 * SECOND;

pub(super) struct Sentinels {
    sentinels: Vec<Sentinel>,
    name: String,
    /// How the servers are spoken to.
    servers: Client,
    state: Mutex<State>,
    changes: watch::Sender<()>,
}

/// One of them, and the connection that is kept to it.
struct Sentinel {
    client: Client,
    connection: AsyncMutex<Option<Connection>>,
    /// When the first question was asked that it has not answered; 0 if there is none.
    unanswered: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Whose word counts where as many say one thing as say another.
    turn: usize,
    /// The latest that is known. Who knows less is behind.
    epoch: u64,
    /// Where commands were sent last.
    reached: Option<ConnectionAddr>,
    /// When they were asked last whether that is still the primary.
    looked: Micros,
}

/// What a sentinel says: the epoch of what it knows, which grows with every failover, and the primary.
struct Word {
    from: usize,
    epoch: u64,
    primary: Client,
}

impl Sentinels {
    pub fn new(sentinels: Vec<Client>, name: String, servers: Client, changes: watch::Sender<()>) -> Self {
        let sentinels = sentinels.into_iter().map(Sentinel::new).collect();
        Sentinels { sentinels, name, servers, state: Mutex::default(), changes }
    }

    /// How the servers are spoken to.
    pub fn servers(&self) -> &Client {
        &self.servers
    }

    /// The primary. The sentinels have half of `patience`, a connection to it the other.
    pub async fn primary(&self, patience: Duration) -> Result<Client, TransportError> {
        Ok(self.word(patience / 2, true).await?.primary)
    }

    /// Closes the connections to them.
    pub fn close(&self) {
        self.sentinels.iter().for_each(Sentinel::close);
    }

    /// Commands are sent there from now on, as was asked for at that time: to connect may have taken long.
    pub fn reached(&self, primary: &Client, asked: Micros) {
        let mut state = self.state();
        (state.reached, state.looked) = (Some(at(primary).clone()), asked);
        drop(state);
        self.changes.send_replace(());
    }

    /// The server where commands were sent last was no primary, or not to be reached.
    pub fn fail(&self) {
        self.state().turn += 1;
    }

    /// Whether commands were sent elsewhere last.
    pub fn left(&self, place: &ConnectionAddr) -> bool {
        self.state().reached.as_ref().is_some_and(|reached| reached != place)
    }

    /// Whether it is to be asked if the primary [moved](Self::moved) before anything is sent.
    pub fn is_overdue(&self) -> bool {
        boot_time().saturating_sub(self.state().looked) > OVERDUE
    }

    /// Whether the primary is another than where commands were sent last. It is not if no sentinel answers: then none of them may be
    /// there to have made it one.
    pub async fn moved(&self, patience: Duration) -> bool {
        // Two of them and the pause between take less than what is overdue, or commands would ask, and wait, too.
        let patience = patience.min(LOOK * 4 / 5) / 2;
        let (word, began) = loop {
            let began = boot_time();
            let word = self.word(patience, false).await;
            // Else the process stood still meanwhile: what was said is old, and who did not answer may be there.
            if boot_time().saturating_sub(began) <= OVERDUE / 2 {
                break (word, began);
            }
        };
        let mut state = self.state();
        let Ok(word) = word else {
            state.looked = boot_time();
            return false;
        };
        state.looked = began;
        word.epoch >= state.epoch
            && state.reached.as_ref().is_some_and(|reached| reached != at(&word.primary))
    }

    /// The word of most of those that know the latest. All are asked at once; more than half of one opinion are not behind for
    /// long, and the others are not waited for. Those that know less than is known already are believed only if they are more than
    /// half: then they were set up anew, or the primary that others had made was undone. `falls` has what is known fall to theirs.
    async fn word(&self, patience: Duration, falls: bool) -> Result<Word, TransportError> {
        let known = self.state().epoch;
        let mut asked: FuturesUnordered<_> =
            (0..).zip(&self.sentinels).map(|(from, sentinel)| self.ask(from, sentinel, patience)).collect();
        let (mut words, mut failure) = (Vec::new(), said("there are none"));
        while let Some(answer) = asked.next().await {
            match answer {
                Ok(word) => words.push(word),
                Err(error) => failure = error,
            }
            if words.iter().any(|word| word.epoch >= known) && 2 * agreed(&words) > self.sentinels.len() {
                break;
            }
        }
        self.heard(words, known, falls).unwrap_or(Err(failure))
    }

    /// What is believed of these words, which were asked for when `known` was the latest epoch; nothing if there are none.
    fn heard(&self, words: Vec<Word>, known: u64, falls: bool) -> Option<Result<Word, TransportError>> {
        let (count, of) = (words.len(), self.sentinels.len());
        let mut state = self.state();
        let word = most_credible(words, state.turn, of)?;
        if word.epoch < state.epoch && (2 * count <= of || known < state.epoch) {
            return Some(Err(said("it knows less than was known before, and few others answer")));
        }
        if falls || word.epoch > state.epoch {
            state.epoch = word.epoch;
        }
        Some(Ok(word))
    }

    async fn ask(
        &self,
        from: usize,
        sentinel: &Sentinel,
        patience: Duration,
    ) -> Result<Word, TransportError> {
        let told = async {
            match self.told(from, sentinel, patience).await {
                // The connection that was kept may have been closed long ago.
                Err(TransportError::NoReply(_)) => {
                    sentinel.close();
                    self.told(from, sentinel, patience).await
                }
                told => told,
            }
        };
        sentinel.is_asked();
        let answer = tokio::time::timeout(patience, told).await;
        let answer = answer.unwrap_or_else(|_| Err(not_sent("it did not answer in time")));
        if answer.is_err() {
            sentinel.close();
        }
        sentinel.unanswered.store(0, Relaxed);
        answer.map_err(of_sentinel)
    }

    async fn told(
        &self,
        from: usize,
        sentinel: &Sentinel,
        patience: Duration,
    ) -> Result<Word, TransportError> {
        let mut connection = {
            let mut kept = sentinel.connection.lock().await;
            match &*kept {
                Some(connection) => connection.clone(),
                None => {
                    let made = connected(&sentinel.client, patience, None).await?;
                    kept.insert(made).clone()
                }
            }
        };
        // The epoch first: an address is never older than the epoch that is said with it.
        let known = asked(&mut connection, &packed(&["SENTINEL", "MASTER", &self.name])).await?;
        let question = packed(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &self.name]);
        let primary = match asked(&mut connection, &question).await? {
            Resp::List(address) => match address.as_slice() {
                [Resp::Text(host), Resp::Text(port)] => {
                    port.parse().ok().and_then(|port| addressed(&self.servers, host.clone(), port))
                }
                _ => None,
            },
            Resp::Nil => return Err(not_sent("it knows no primary of that name")),
            Resp::Error(text) => return Err(not_sent(text)),
            other => return Err(not_sent(format!("it answers with {}", other.kind()))),
        };
        let primary = primary.ok_or_else(|| not_sent("its answer makes no sense"))?;
        Ok(Word { from, epoch: epoch(&known), primary })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        unpoisoned(&self.state)
    }
}

impl Sentinel {
    fn new(client: Client) -> Self {
        Sentinel { client, connection: AsyncMutex::default(), unanswered: AtomicU64::new(0) }
    }

    /// The others may agree each time before it is found to hang, and nobody waits for its answer any more.
    fn is_asked(&self) {
        let now = boot_time();
        let since = self.unanswered.compare_exchange(0, now, Relaxed, Relaxed).unwrap_or_else(|since| since);
        if since != 0 && now.saturating_sub(since) > OVERDUE {
            self.unanswered.store(now, Relaxed);
            self.close();
        }
    }

    /// Closes the connection, unless one is being made.
    fn close(&self) {
        if let Ok(mut connection) = self.connection.try_lock() {
            *connection = None;
        }
    }
}

/// The epoch in what a sentinel says of a primary; 0 if it must not say it.
fn epoch(known: &Resp) -> u64 {
    let Resp::List(fields) = known else { return 0 };
    let mut pairs = fields.chunks_exact(2);
    let epoch = pairs.find_map(|pair| match pair {
        [Resp::Text(name), Resp::Text(value)] if name == "config-epoch" => value.parse().ok(),
        _ => None,
    });
    epoch.unwrap_or(0)
}

/// How many name the primary that most of them name.
fn agreed(words: &[Word]) -> usize {
    words.iter().map(|word| votes(words, word)).max().unwrap_or(0)
}

/// How many of these name the same primary.
fn votes(words: &[Word], word: &Word) -> usize {
    words.iter().filter(|other| at(&other.primary) == at(&word.primary)).count()
}

/// Of those of the highest epoch the one that most of them say; of as many for one as for another, that of whoever comes next
/// from `turn` on, of so many.
fn most_credible(mut words: Vec<Word>, turn: usize, of: usize) -> Option<Word> {
    let latest = words.iter().map(|word| word.epoch).max()?;
    words.retain(|word| word.epoch == latest);
    let most = agreed(&words);
    let says = |from: usize| words.iter().position(|word| word.from == from && votes(&words, word) == most);
    let at = (0..of).find_map(|step| says((turn % of + step) % of))?;
    Some(words.swap_remove(at))
}

fn said(what: &str) -> TransportError {
    TransportError::NotSent(format!("a sentinel: {what}"))
}

/// What was not asked of a sentinel, or not answered, was not sent to the primary.
fn of_sentinel(error: TransportError) -> TransportError {
    match error {
        TransportError::NotSent(cause) | TransportError::NoReply(cause) => said(&cause),
    }
}
