//! Sentinels: they say which server is the primary, and when that is another.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{Client, ConnectionAddr};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{Mutex as AsyncMutex, watch};

use super::server::{asked, connected, packed};
use super::{addressed, at, unpoisoned};
use crate::client::runtime::boot_time;
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
    connection: AsyncMutex<Option<MultiplexedConnection>>,
}

#[derive(Default)]
struct State {
    /// Whose word counts where as many say one thing as say another.
    turn: usize,
    /// That of the last word that was followed.
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
        let sentinels =
            sentinels.into_iter().map(|client| Sentinel { client, connection: AsyncMutex::default() });
        Sentinels { sentinels: sentinels.collect(), name, servers, state: Mutex::default(), changes }
    }

    /// The primary. The sentinels have half of `patience`, a connection to it the other.
    pub async fn primary(&self, patience: Duration) -> Result<Client, TransportError> {
        let word = self.word(patience / 2).await?;
        self.state().epoch = word.epoch;
        Ok(word.primary)
    }

    /// Closes the connections to them.
    pub fn close(&self) {
        self.sentinels.iter().for_each(Sentinel::close);
    }

    /// Commands are sent there from now on.
    pub fn reached(&self, primary: &Client) {
        let mut state = self.state();
        (state.reached, state.looked) = (Some(at(primary).clone()), boot_time());
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
        let began = boot_time();
        let word = self.word(patience / 2).await;
        let mut state = self.state();
        let Ok(word) = word else {
            state.looked = boot_time();
            return false;
        };
        state.looked = began;
        // One that knows less than was known before is behind.
        word.epoch >= state.epoch
            && state.reached.as_ref().is_some_and(|reached| reached != at(&word.primary))
    }

    /// The word of most of those that know the latest. All are asked at once; more than half of one opinion are not behind for
    /// long, and the others are not waited for.
    async fn word(&self, patience: Duration) -> Result<Word, TransportError> {
        let turn = self.state().turn;
        let mut asked: FuturesUnordered<_> =
            (0..).zip(&self.sentinels).map(|(from, sentinel)| self.ask(from, sentinel, patience)).collect();
        let (mut words, mut failure) = (Vec::new(), said("there are none"));
        while let Some(answer) = asked.next().await {
            match answer {
                Ok(word) => words.push(word),
                Err(error) => failure = error,
            }
            if 2 * agreed(&words) > self.sentinels.len() {
                break;
            }
        }
        most_credible(words, turn, self.sentinels.len()).ok_or(failure)
    }

    async fn ask(
        &self,
        from: usize,
        sentinel: &Sentinel,
        patience: Duration,
    ) -> Result<Word, TransportError> {
        let answer = tokio::time::timeout(patience, self.told(from, sentinel, patience)).await;
        let answer = answer.unwrap_or_else(|_| Err(said("it did not answer in time")));
        if answer.is_err() {
            sentinel.close();
        }
        answer
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
                    let made = connected(&sentinel.client, patience).await.map_err(of_sentinel)?;
                    kept.insert(made).clone()
                }
            }
        };
        // The epoch first: an address is never older than the epoch that is said with it.
        let known = asked(&mut connection, &packed(&["SENTINEL", "MASTER", &self.name]))
            .await
            .map_err(of_sentinel)?;
        let question = packed(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &self.name]);
        let primary = match asked(&mut connection, &question).await.map_err(of_sentinel)? {
            Resp::List(address) => match address.as_slice() {
                [Resp::Text(host), Resp::Text(port)] => {
                    port.parse().ok().and_then(|port| addressed(&self.servers, host.clone(), port))
                }
                _ => None,
            },
            Resp::Nil => return Err(said("it knows no primary of that name")),
            Resp::Error(text) => return Err(said(&text)),
            other => return Err(said(&format!("it answers with {}", other.kind()))),
        };
        let primary = primary.ok_or_else(|| said("its answer makes no sense"))?;
        Ok(Word { from, epoch: epoch(&known), primary })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        unpoisoned(&self.state)
    }
}

impl Sentinel {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn words(said: &[(u64, u16)]) -> Vec<Word> {
        let word = |(from, &(epoch, port)): (usize, &(u64, u16))| {
            let primary = Client::open(format!("redis://127.0.0.1:{port}")).expect("an address");
            Word { from, epoch, primary }
        };
        said.iter().enumerate().map(word).collect()
    }

    #[test]
    fn the_latest_word_of_most_is_followed_and_else_one_after_the_other() {
        for (said, turn, port) in [
            (&[(0, 1)][..], 7, Some(1)),
            (&[(3, 1), (4, 2), (3, 1)], 0, Some(2)),
            (&[(4, 1), (4, 2), (4, 2)], 0, Some(2)),
            // One that is behind, or may not say what it knows, is followed for one turn only.
            (&[(0, 1), (0, 2)], 0, Some(1)),
            (&[(0, 1), (0, 2)], 1, Some(2)),
            (&[(0, 1), (0, 2)], 2, Some(1)),
            (&[], 0, None),
        ] {
            let credible = most_credible(words(said), turn, said.len());
            let credible = credible.map(|word| at(&word.primary).clone());
            assert_eq!(
                credible,
                port.map(|port| ConnectionAddr::Tcp("127.0.0.1".to_owned(), port)),
                "{said:?}"
            );
        }
    }

    #[test]
    fn the_epoch_is_found_among_the_fields_of_a_primary() {
        let text = |text: &str| Resp::Text(text.to_owned());
        let fields = vec![text("name"), text("config-epoch"), text("config-epoch"), text("7")];
        assert_eq!(epoch(&Resp::List(fields)), 7);
        assert_eq!(epoch(&Resp::Error("NOPERM no".to_owned())), 0);
    }
}
