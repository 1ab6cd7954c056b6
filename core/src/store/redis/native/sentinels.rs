//! Sentinels: they say which server is the primary, and when that is another.

#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ::redis::{Client, Cmd, ConnectionAddr};
use futures_channel::oneshot;
use futures_util::future::{FutureExt, Shared};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::server::{Place, Server, not_sent, packed};
use super::{addressed, at};
use crate::poison::unpoisoned;
use crate::runtime::boot_time;
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
    sentinels: Vec<Arc<Sentinel>>,
    /// What they are asked: the epoch first, as an address is never older than the epoch that is said with it.
    questions: [Cmd; 2],
    /// How the servers are spoken to.
    servers: Client,
    state: Mutex<State>,
    changes: watch::Sender<()>,
}

/// One of them, who asks it, and what it said last.
struct Sentinel {
    server: Arc<Server>,
    asking: Mutex<Option<Asking>>,
    last: Mutex<Option<Last>>,
    /// When it was found that it cannot be asked; 0 if it could since.
    failed: AtomicU64,
}

/// Questions to a sentinel since they were begun. They outlive who waits for the answers: to connect to one that is far may take
/// longer, and is of use to the next who asks.
struct Asking {
    began: Micros,
    answers: Shared<oneshot::Receiver<Answers>>,
    task: AbortHandle,
}

/// What was answered last, when that was asked, and how long it took.
struct Last {
    began: Micros,
    took: Micros,
    answers: (Resp, Resp),
}

/// What is answered to both.
type Answers = Result<(Resp, Resp), TransportError>;

#[derive(Default)]
struct State {
    /// Whose word counts where as many say one thing as say another.
    turn: usize,
    /// The latest that is known. Who knows less is behind.
    epoch: u64,
    /// Where commands were sent last.
    reached: Option<ConnectionAddr>,
    /// When they were asked where that is.
    asked: Micros,
    /// When they were asked last whether that is still the primary.
    looked: Micros,
    /// Since when more than half name where commands are sent, and know less than is known.
    forgot: Option<Micros>,
}

/// What a sentinel says that was asked then: the epoch of what it knows, which grows with every failover, and the primary.
struct Word {
    from: usize,
    began: Micros,
    epoch: u64,
    primary: Client,
}

impl Sentinels {
    pub fn new(
        sentinels: Vec<Client>,
        name: &str,
        servers: Client,
        patience: Duration,
        changes: watch::Sender<()>,
    ) -> Self {
        // One that cannot be connected to is known to be away before it is overdue to ask.
        let sentinel = |client| Arc::new(Sentinel::new(client, patience.min(LOOK)));
        let questions = ["MASTER", "GET-MASTER-ADDR-BY-NAME"].map(|word| packed(&["SENTINEL", word, name]));
        let sentinels = sentinels.into_iter().map(sentinel).collect();
        Sentinels { sentinels, questions, servers, state: Mutex::default(), changes }
    }

    /// The primary. The sentinels have half of `patience`, a connection to it the other.
    pub async fn primary(&self, patience: Duration) -> Result<Client, TransportError> {
        Ok(self.word(patience / 2, true).await?.primary)
    }

    /// Closes the connections to them.
    pub fn close(&self) {
        self.sentinels.iter().for_each(|sentinel| sentinel.close());
    }

    /// Commands are sent there from now on, as was asked for at that time: to connect may have taken long.
    pub fn reached(&self, primary: &Client, asked: Micros) {
        let mut state = self.state();
        (state.reached, state.asked, state.looked) = (Some(at(primary).clone()), asked, asked);
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
    /// there to have made it one. Nobody knows while one that was there is being connected to, or one that takes longer is asked.
    pub async fn moved(&self, patience: Duration) -> Result<bool, TransportError> {
        // The next look is over before it is overdue since this one began, or commands would ask, and wait, too.
        let patience = (patience / 2).min(LOOK * 4 / 5);
        let word = loop {
            let began = boot_time();
            let word = self.word(patience, false).await;
            // Else the process stood still meanwhile: what was said is old, and who did not answer may be there.
            if boot_time().saturating_sub(began) <= OVERDUE / 2 {
                break word;
            }
        };
        if word.is_err() && self.sentinels.iter().any(|sentinel| sentinel.may_be_there(patience)) {
            return Err(said("it is still being connected to, or takes long to answer"));
        }
        let mut state = self.state();
        let Ok(word) = word else {
            state.looked = boot_time();
            return Ok(false);
        };
        state.looked = state.looked.max(word.began);
        let is_other = state.reached.as_ref().is_some_and(|reached| reached != at(&word.primary));
        Ok(word.epoch >= state.epoch && is_other)
    }

    /// The word of most of those that know the latest. All are asked at once; more than half of one opinion are not behind for
    /// long, and the others are not waited for. Those that know less than is known already are believed only if they are more than
    /// half: then they were set up anew, or the primary that others had made was undone. `falls` has what is known fall to theirs, and
    /// nothing count that was asked before; it falls too when they have named where commands are sent for longer than [`LAG`].
    async fn word(&self, patience: Duration, falls: bool) -> Result<Word, TransportError> {
        let (known, began) = (self.state().epoch, boot_time());
        let mut asked: FuturesUnordered<_> =
            (0..).zip(&self.sentinels).map(|(from, sentinel)| self.ask(from, sentinel, began)).collect();
        let (mut words, mut failure) = (Vec::new(), None);
        let are_enough = |words: &[Word]| {
            words.iter().any(|word| word.epoch >= known) && 2 * agreed(words) > self.sentinels.len()
        };
        let hear = async {
            while let Some(answer) = asked.next().await {
                match answer {
                    Ok(word) => words.push(word),
                    Err(error) => failure = Some(error),
                }
                if are_enough(&words) {
                    break;
                }
            }
        };
        // What was said in time counts.
        let _ = tokio::time::timeout(patience, hear).await;
        // Who answers now is believed alone where those who answered before are not there any more.
        let oldest = |words: &[Word]| words.iter().map(|word| word.began).min();
        let mut asked_at = oldest(&words);
        if !falls && !are_enough(&words) {
            words.extend(self.kept(known, &words));
            asked_at = asked_at.or_else(|| oldest(&words));
        }
        let failure = failure.unwrap_or_else(|| said("it did not answer in time"));
        let word = self.heard(words, known, falls).unwrap_or(Err(failure))?;
        Ok(Word { began: asked_at.unwrap_or(began), ..word })
    }

    /// What others than these said last, when nobody waited for it any more. It counts unless it is old, was asked before commands were
    /// sent where they are, or knows less.
    fn kept(&self, known: u64, words: &[Word]) -> Vec<Word> {
        let since = self.state().asked.max(boot_time().saturating_sub(OVERDUE));
        let kept = |(from, sentinel): (usize, &Arc<Sentinel>)| {
            let last = unpoisoned(&sentinel.last);
            let Last { began, answers, .. } = last.as_ref().filter(|last| last.began >= since)?;
            self.understood(from, *began, answers.clone()).ok().filter(|word| word.epoch >= known)
        };
        let others =
            (0..).zip(&self.sentinels).filter(|(from, _)| words.iter().all(|word| word.from != *from));
        others.filter_map(kept).collect()
    }

    /// What is believed of these words, which were asked for when `known` was the latest epoch; nothing if there are none.
    fn heard(&self, words: Vec<Word>, known: u64, falls: bool) -> Option<Result<Word, TransportError>> {
        let (count, of) = (words.len(), self.sentinels.len());
        let mut state = self.state();
        let is_used = |word: &Word| state.reached.as_ref() == Some(at(&word.primary));
        let use_it = words.iter().filter(|word| is_used(word)).count();
        let word = most_credible(words, state.turn, of)?;
        let forgot = word.epoch < state.epoch && is_used(&word) && 2 * use_it > of;
        let now = boot_time();
        state.forgot = forgot.then(|| state.forgot.unwrap_or(now));
        if word.epoch < state.epoch && (2 * count <= of || known < state.epoch) {
            return Some(Err(said("it knows less than was known before, and few others answer")));
        }
        // Else the next primary, which they number anew, would be taken for one of before.
        let is_forgotten = state.forgot.is_some_and(|since| now.saturating_sub(since) > LAG);
        if falls || is_forgotten || word.epoch > state.epoch {
            (state.epoch, state.forgot) = (word.epoch, None);
        }
        Some(Ok(word))
    }

    /// What a sentinel says that is asked from then on.
    async fn ask(
        &self,
        from: usize,
        sentinel: &Arc<Sentinel>,
        began: Micros,
    ) -> Result<Word, TransportError> {
        let answers = sentinel.ask(&self.questions, began).await.map_err(of_sentinel)?;
        self.understood(from, began, answers)
    }

    fn understood(
        &self,
        from: usize,
        began: Micros,
        (known, address): (Resp, Resp),
    ) -> Result<Word, TransportError> {
        let primary = match address {
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
        Ok(Word { from, began, epoch: epoch(&known), primary })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        unpoisoned(&self.state)
    }
}

impl Sentinel {
    fn new(client: Client, patience: Duration) -> Self {
        let server = Arc::new(Server::new(Place::Sentinel(client), patience));
        Sentinel { server, asking: Mutex::default(), last: Mutex::default(), failed: AtomicU64::new(0) }
    }

    /// What it answers to these questions, if they were begun then or later.
    async fn ask(self: &Arc<Self>, questions: &[Cmd; 2], since: Micros) -> Answers {
        loop {
            let (began, answers) = self.asking(questions, since);
            // Its task may not be over yet, and would be found under way again at once.
            let Ok(answers) = answers.await else { return Err(not_sent("it is asked no more")) };
            // Else they were under way, and are to be asked anew: what was said may be old.
            if began >= since {
                return answers;
            }
        }
    }

    /// Those that are under way: one that hangs would have more and more of them. Or new ones.
    fn asking(
        self: &Arc<Self>,
        questions: &[Cmd; 2],
        since: Micros,
    ) -> (Micros, Shared<oneshot::Receiver<Answers>>) {
        let mut kept = unpoisoned(&self.asking);
        if let Some(asking) = &*kept
            && (asking.began >= since || !asking.task.is_finished())
        {
            return (asking.began, asking.answers.clone());
        }
        let (tell, answers) = oneshot::channel();
        let (sentinel, [first, second]) = (self.clone(), questions.clone());
        let (began, answers) = (boot_time(), answers.shared());
        let task = tokio::spawn(async move {
            let answers = sentinel.server.ask(&first, &second).await;
            let now = boot_time();
            sentinel.failed.store(if answers.is_ok() { 0 } else { now }, Relaxed);
            if let Ok(answers) = answers.clone() {
                let took = now.saturating_sub(began);
                *unpoisoned(&sentinel.last) = Some(Last { began, took, answers });
            }
            let _ = tell.send(answers);
        });
        *kept = Some(Asking { began, answers: answers.clone(), task: task.abort_handle() });
        (began, answers)
    }

    /// Whether it is being connected to, or has not answered for long and took longer than this when it did, and was not found to be
    /// away a moment ago.
    fn may_be_there(&self, patience: Duration) -> bool {
        let (now, failed) = (boot_time(), self.failed.load(Relaxed));
        let is_away = failed != 0 && now.saturating_sub(failed) <= 2 * OVERDUE;
        let is_slow = |last: &Last| {
            now.saturating_sub(last.began) > OVERDUE && u128::from(last.took) > patience.as_micros()
        };
        !is_away && (self.server.is_unconnected() || unpoisoned(&self.last).as_ref().is_some_and(is_slow))
    }

    fn close(&self) {
        if let Some(asking) = unpoisoned(&self.asking).take() {
            asking.task.abort();
        }
        self.server.close();
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
