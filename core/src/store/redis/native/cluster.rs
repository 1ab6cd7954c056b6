//! A cluster: a node answers for some slots of the keys, and says which other one it is where it does not.
//!
//! Where a slot is was learnt by asking for it; who there is, by asking each node as it is connected to. The driver's own
//! client, even with its retries off, checks its connections to all nodes when a slot has moved, and lets no command of
//! anybody through meanwhile: a node that hangs would hold up the pools of all.

#[cfg(test)]
mod tests;
mod words;

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ::redis::{Client, Cmd, ConnectionAddr};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinHandle};

use self::words::{INFO, Word, Words, epoch};
use super::at;
use super::nodes::{Node, Nodes};
use super::server::{Reply, SILENT, not_sent, packed};
use super::topology::{self, NO_NODE, SLOTS};
use crate::poison::unpoisoned;
use crate::runtime::alarms::Alarms;
use crate::runtime::boot_time;
use crate::store::redis::transport::{Resp, TransportError};
use crate::{Micros, SECOND};

/// A node of which nothing was heard for so long may have hung, longer than it takes to replace it. One that goes on answers what
/// it finds before it hears of that, and grants what others have from the next. It is trusted for as long at the word of others too:
/// so long after another took its place commands may still reach it.
pub(super) const OVERDUE: Micros = 2 * SECOND;
/// So many others are then asked who serves: one of them may be that node by another name.
const OTHERS: usize = 2;

#[derive(Clone)]
pub(super) struct Cluster {
    known: Arc<Mutex<Nodes>>,
    patience: Duration,
    alarms: Alarms,
    changes: watch::Sender<()>,
    /// Those who ask others: they outlive who waits for them.
    asks: Arc<Mutex<Vec<AbortHandle>>>,
}

/// The node that a command is at.
struct Hand {
    node: Arc<Node>,
    /// Whether the command may have been sent there.
    is_sent: bool,
}

impl Cluster {
    pub fn new(entries: Vec<Client>, patience: Duration, alarms: Alarms, changes: watch::Sender<()>) -> Self {
        let known = Arc::new(Mutex::new(Nodes::new(entries, patience)));
        Cluster { known, patience, alarms, changes, asks: Arc::default() }
    }

    /// Sends a command to the node of its keys: to the one that answered for them last, and then, because nothing was
    /// performed, to the one that this may name. That which has not answered when the time is over is left.
    pub async fn send(&self, words: &[String]) -> Reply {
        let mut hand = None;
        let patience = self.patience.as_micros() as Micros;
        let reply = self.alarms.within(patience, self.sent(words, &mut hand)).await;
        reply.unwrap_or_else(|| match hand {
            Some(Hand { node, is_sent }) => {
                node.server.drop_kept();
                self.leave(&node);
                // It may still have been connected to, which takes long where it is far, or hangs.
                if is_sent { Err(TransportError::NoReply(SILENT.to_owned())) } else { Err(not_sent(SILENT)) }
            }
            None => Err(not_sent("the nodes of the cluster did not say in time who serves")),
        })
    }

    /// The same in any time. `hand` is that which has not answered yet.
    async fn sent(&self, words: &[String], hand: &mut Option<Hand>) -> Reply {
        let (slot, command) = (slot(words), packed(words));
        let Some(mut node) = self.first(slot, key(words)).await else {
            return Err(not_sent("no node of the cluster is known that has the keys"));
        };
        while boot_time().saturating_sub(node.heard()) > OVERDUE {
            let began = boot_time();
            // In a box: it is seldom.
            node = Box::pin(self.confirmed(slot, key(words), node)).await;
            // Else the process stood still meanwhile, and what was said is old.
            if boot_time().saturating_sub(began) <= OVERDUE {
                break;
            }
        }
        let mut redirected = false;
        loop {
            let sent = boot_time();
            let Hand { is_sent, .. } = hand.insert(Hand { node: node.clone(), is_sent: false });
            let reply = self.answered(&node, node.server.send_noting(&command, is_sent).await);
            *hand = None;
            let next = match &reply {
                Err(_) => None,
                Ok(Resp::Error(text)) => match text.split(' ').next() {
                    Some("MOVED") => self.follow(words, text, &node, sent).await,
                    // Others may see a cluster that works.
                    Some("CLUSTERDOWN") => {
                        self.shun(&node);
                        None
                    }
                    _ if text == NO_NODE => {
                        self.shun(&node);
                        None
                    }
                    _ => None,
                },
                Ok(_) => {
                    self.heard(slot, &node, sent);
                    None
                }
            };
            match next {
                Some(next) if !redirected => (node, redirected) = (next, true),
                _ => return reply,
            }
        }
    }

    /// Where to listen.
    pub fn listens_at(&self) -> Option<Client> {
        self.lock().listens_at().map(|node| node.client.clone())
    }

    /// It is listened there.
    pub fn reached(&self, place: &ConnectionAddr) {
        if let Some(node) = self.lock().at(place) {
            node.is_there();
        }
    }

    /// It could not be listened there, or not any more.
    pub fn fail(&self, place: &ConnectionAddr) {
        let node = self.lock().at(place);
        node.iter().for_each(|node| self.leave(node));
    }

    /// Whether it is to be listened elsewhere than at this place.
    pub fn left(&self, place: &ConnectionAddr) -> bool {
        self.lock().left(place)
    }

    /// Asks another node than the one at this place who is in the cluster: that one may not be, and answers all the same.
    pub async fn look(&self, place: &ConnectionAddr) {
        let another = self.lock().another(place);
        if let Some(node) = another
            && let Ok(answer) = self.asked(&node, &packed(&SLOTS)).await
        {
            self.adopt(topology::nodes(&answer), &node);
        }
    }

    pub fn close(&self) {
        unpoisoned(&self.asks).drain(..).for_each(|ask| ask.abort());
        self.lock().list().iter().for_each(|node| node.server.close());
    }

    fn lock(&self) -> MutexGuard<'_, Nodes> {
        unpoisoned(&self.known)
    }

    /// Who is asked first. Who was left for another only when it has said itself that it is back: nobody else may be there to say so.
    async fn first(&self, slot: u16, key: &str) -> Option<Arc<Node>> {
        let (node, last_left) = {
            let known = self.lock();
            (known.of(slot), known.last_left(slot))
        };
        match last_left {
            // In a box: it is seldom.
            Some(left) => Box::pin(self.is_back(slot, key, &left)).await.or(node),
            None => node,
        }
    }

    /// Who serves the slot of this key, as others say than the node that did. That node if no other says: then none of them may
    /// be there to have replaced it.
    async fn confirmed(&self, slot: u16, key: &str, node: Arc<Node>) -> Arc<Node> {
        self.said(slot, key, &node).await.unwrap_or(node)
    }

    /// Who serves the slot of this key, as others say than this node, if they are believed.
    async fn said(&self, slot: u16, key: &str, node: &Arc<Node>) -> Option<Arc<Node>> {
        let began = boot_time();
        let patience = self.patience.min(Duration::from_micros(OVERDUE)) / 2;
        let (mut others, left) = {
            let known = self.lock();
            let left = known.left_for_another(slot).map(|(place, _)| place.clone());
            (known.besides(node, slot).into_iter(), left)
        };
        let (mut words, mut answers) = (Words::new(at(&node.client).clone(), left), FuturesUnordered::new());
        let hear = async {
            let mut more = OTHERS;
            while words.lack(OTHERS) > 0 {
                answers.extend(others.by_ref().take(more).map(|other| self.ask(other, slot, key)));
                more = match tokio::time::timeout(patience / 2, answers.next()).await {
                    Ok(None) => break,
                    Ok(Some(word)) => {
                        word.ok().flatten().into_iter().for_each(|word| words.hear(word));
                        words.lack(OTHERS).saturating_sub(answers.len())
                    }
                    // They may hang all that are asked.
                    Err(_) => OTHERS,
                };
            }
        };
        // What was said in time counts.
        let _ = tokio::time::timeout(patience, hear).await;
        let Word { epoch, serves, .. } = words.most_credible()?;
        Some(self.follows(slot, serves, *epoch, began))
    }

    /// Who serves the slot of this key of which a node was left for another, and is named again, or is the last that may be there: as
    /// others say, or as it says itself. It is not back if it knows less than was known since. A small cluster has nobody else who
    /// could say so.
    async fn is_back(&self, slot: u16, key: &str, node: &Arc<Node>) -> Option<Arc<Node>> {
        let (began, itself) = (boot_time(), self.ask(node.clone(), slot, key));
        if let Some(serves) = self.said(slot, key, node).await {
            return Some(serves);
        }
        let patience = self.patience.min(Duration::from_micros(OVERDUE)) / 4;
        let word = tokio::time::timeout(patience, itself).await.ok()?.ok()??;
        let is_another_or_back = !word.of_itself || self.lock().may_be_back(slot, word.epoch, boot_time());
        is_another_or_back.then(|| self.follows(slot, &word.serves, word.epoch, began))
    }

    /// The node that serves the slot, as was said in this epoch in answer to what was asked then.
    fn follows(&self, slot: u16, serves: &Client, epoch: u64, asked: Micros) -> Arc<Node> {
        let mut known = self.lock();
        let node = known.moved(slot, serves.clone());
        known.said(slot, at(serves), epoch);
        node.is_heard(asked);
        node
    }

    /// Asks a node in a task of its own: to connect to one that is far may take longer than is waited for it, and is of use to
    /// the next who asks.
    fn ask(&self, other: Arc<Node>, slot: u16, key: &str) -> JoinHandle<Option<Word>> {
        let (cluster, question) = (self.clone(), packed(&["EXISTS", key]));
        let task = tokio::spawn(async move {
            let info = packed(&INFO);
            // The epoch first: nobody is named that is older than the epoch that is said with it.
            let (info, answer) = match other.server.ask(&info, &question).await {
                Ok((info, answer)) => (Some(info), Ok(answer)),
                Err(error) => (None, Err(error)),
            };
            let answer = cluster.answered(&other, answer).ok()?;
            let word = cluster.word(epoch(&info?), &answer, &other)?;
            cluster.lock().said(slot, at(&word.serves), word.epoch);
            Some(word)
        });
        let mut asks = unpoisoned(&self.asks);
        asks.retain(|ask| !ask.is_finished());
        asks.push(task.abort_handle());
        task
    }

    /// What this answer of a node says of who serves a slot.
    fn word(&self, epoch: u64, answer: &Resp, from: &Node) -> Option<Word> {
        let (serves, of_itself) = match answer {
            Resp::Error(text) if text.starts_with("MOVED ") => (from.moved(text)?, false),
            Resp::Integer(_) => (from.client.clone(), true),
            _ => return None,
        };
        self.recover(from);
        Some(Word { epoch, serves, of_itself })
    }

    /// What a node answers.
    async fn asked(&self, node: &Arc<Node>, command: &Cmd) -> Reply {
        self.answered(node, node.server.send(command).await)
    }

    /// That was a node's answer. As it is connected to it says who else is there.
    fn answered(&self, node: &Arc<Node>, reply: Reply) -> Reply {
        if let Some(named) = node.server.named() {
            self.adopt(named, node);
        }
        if reply.is_err() {
            self.leave(node);
        }
        reply
    }

    fn adopt(&self, named: Vec<(String, u16)>, from: &Node) {
        let named = named.into_iter().filter_map(|(host, port)| from.names(&host, port)).collect();
        self.lock().adopt(named);
        // Who listens may do so where nobody is any more.
        self.changes.send_replace(());
    }

    /// A node that answered serves the slot.
    fn heard(&self, slot: u16, node: &Arc<Node>, sent: Micros) {
        node.is_heard(sent);
        self.recover(node);
        self.lock().heard(slot, node);
    }

    /// The node that `MOVED` names in answer to this command, which was sent then; or, if that was left for another and who names it
    /// may be behind, who others say, or it itself.
    async fn follow(&self, words: &[String], moved: &str, from: &Node, sent: Micros) -> Option<Arc<Node>> {
        self.recover(from);
        let (slot, key) = (slot(words), key(words));
        let doubted = self.lock().doubted(slot, from.moved(moved)?, from);
        if let Some(node) = doubted {
            return Box::pin(self.is_back(slot, key, &node)).await;
        }
        let node = self.learn(slot, moved, from, sent)?;
        // Who was left for it may be named again: to judge that, its epoch is to be known.
        if self.lock().left_for_another(slot).is_some_and(|(_, epoch)| epoch == 0) {
            drop(self.ask(node.clone(), slot, key));
        }
        Some(node)
    }

    /// The node that `MOVED slot host:port` names, in answer to what was sent then.
    fn learn(&self, slot: u16, moved: &str, from: &Node, sent: Micros) -> Option<Arc<Node>> {
        Some(self.follows(slot, &from.moved(moved)?, 0, sent))
    }

    fn recover(&self, node: &Node) {
        if node.is_well() {
            self.changes.send_replace(());
        }
    }

    /// Its connection failed: another may serve its slots by now, and who listens there hears nothing.
    fn leave(&self, node: &Arc<Node>) {
        node.fails();
        self.lock().pass_over(node);
        self.changes.send_replace(());
    }

    /// It said that it cannot serve: it may be cut off from the others, and from what they tell.
    fn shun(&self, node: &Arc<Node>) {
        node.is_down();
        self.lock().pass_over(node);
        self.changes.send_replace(());
    }
}

/// The first key of a script's call.
fn key(command: &[String]) -> &str {
    command.get(3).map_or("", String::as_str)
}

/// The slot of a command's keys, which all have one hash tag: of a script, the first of those that it names.
fn slot(command: &[String]) -> u16 {
    let key = key(command);
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(tag, _)| tag);
    let tag = tag.filter(|tag| !tag.is_empty()).unwrap_or(key);
    // CRC-16/XMODEM, as the specification of clusters has it.
    let sum = tag.bytes().fold(0u16, |sum, byte| {
        (0..8).fold(sum ^ u16::from(byte) << 8, |sum, _| (sum << 1) ^ if sum >> 15 == 1 { 0x1021 } else { 0 })
    });
    sum % 16_384
}
