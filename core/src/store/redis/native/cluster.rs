//! A cluster: a node answers for some slots of the keys, and says which other one it is where it does not.
//!
//! Where a slot is was learnt by asking for it; who there is, by asking each node as it is connected to. The driver's own
//! client, even with its retries off, checks its connections to all nodes when a slot has moved, and lets no command of
//! anybody through meanwhile: a node that hangs would hold up the pools of all.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::redis::{Client, Cmd, ConnectionAddr};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::sync::watch;

use super::nodes::{Node, Nodes};
use super::server::{Reply, packed};
use super::topology::{self, NO_NODE, SLOTS};
use crate::client::runtime::boot_time;
use crate::store::redis::transport::{Resp, TransportError};
use crate::{Micros, SECOND};

/// A node of which nothing was heard for so long may have hung, longer than it takes to replace it. One that goes on answers what
/// it finds before it hears of that, and grants what others have from the next.
const OVERDUE: Micros = 2 * SECOND;
/// So many others are then asked who serves: one of them may be that node by another name.
const OTHERS: usize = 2;

pub(super) struct Cluster {
    known: Mutex<Nodes>,
    patience: Duration,
    changes: watch::Sender<()>,
}

impl Cluster {
    pub fn new(entries: Vec<Client>, patience: Duration, changes: watch::Sender<()>) -> Self {
        Cluster { known: Mutex::new(Nodes::new(entries, patience)), patience, changes }
    }

    /// Sends a command to the node of its keys: to the one that answered for them last, and then, because nothing was
    /// performed, to the one that this may name.
    pub async fn send(&self, words: &[String]) -> Reply {
        let (slot, command) = (slot(words), packed(words));
        let Some(mut node) = self.lock().of(slot) else {
            return Err(TransportError::NotSent("no node of the cluster is known".to_owned()));
        };
        if boot_time().saturating_sub(node.heard()) > OVERDUE {
            // In a box: it is seldom.
            node = Box::pin(self.confirmed(slot, key(words), node)).await;
        }
        let mut redirected = false;
        loop {
            let sent = boot_time();
            let reply = self.asked(&node, &command).await;
            let next = match &reply {
                Err(_) => None,
                Ok(Resp::Error(text)) => match text.split(' ').next() {
                    Some("MOVED") => self.learn(slot, text, &node, sent),
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
        self.lock().list().iter().for_each(|node| node.server.close());
    }

    fn lock(&self) -> MutexGuard<'_, Nodes> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Who serves the slot of this key, as others say than the node that did. That node if no other says: then none of them may
    /// be there to have replaced it.
    async fn confirmed(&self, slot: u16, key: &str, node: Arc<Node>) -> Arc<Node> {
        let (began, question) = (boot_time(), packed(&["EXISTS", key]));
        let others = self.lock().besides(&node, OTHERS);
        let ask = async |other: Arc<Node>| {
            let answer = tokio::time::timeout(self.patience / 2, self.asked(&other, &question)).await;
            if answer.is_err() {
                self.leave(&other);
            }
            (answer, other)
        };
        let mut answers: FuturesUnordered<_> = others.into_iter().map(ask).collect();
        let mut serves = None;
        while let Some((answer, other)) = answers.next().await {
            match answer {
                Ok(Ok(Resp::Error(text))) if text.starts_with("MOVED ") => {
                    if let Some(named) = self.learn(slot, &text, &other, began) {
                        return named;
                    }
                }
                Ok(Ok(Resp::Integer(_))) => serves = Some(other),
                _ => {}
            }
        }
        let node = serves.map_or(node, |other| self.lock().moved(slot, other.client.clone()));
        node.is_heard(began);
        node
    }

    /// What a node answers. As it is connected to it says who else is there.
    async fn asked(&self, node: &Arc<Node>, command: &Cmd) -> Reply {
        let reply = node.server.send(command).await;
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

    /// The node that `MOVED slot host:port` names, in answer to what was sent then.
    fn learn(&self, slot: u16, moved: &str, from: &Node, sent: Micros) -> Option<Arc<Node>> {
        self.recover(from);
        let (host, port) = moved.split(' ').nth(2)?.rsplit_once(':')?;
        let client = from.names(host, port.parse().ok()?)?;
        let node = self.lock().moved(slot, client);
        node.is_heard(sent);
        Some(node)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::redis::RedisUrl;
    use crate::store::redis::native::at;
    use crate::store::redis::native::fake::Fake;
    use crate::store::redis::native::url::Kind;

    fn slot_of(key: &str) -> u16 {
        slot(&["EVALSHA", "digest", "1", key].map(str::to_owned))
    }

    fn cluster() -> Cluster {
        let Kind::Cluster(nodes) = RedisUrl::new("redis+cluster://:word@a:1,b:2").unwrap().kind else {
            panic!()
        };
        Cluster::new(nodes, Duration::from_secs(1), watch::Sender::new(()))
    }

    fn place(node: &Node) -> String {
        at(&node.client).to_string()
    }

    /// As `CLUSTER KEYSLOT` says.
    #[test]
    fn the_slot_is_that_of_the_hash_tag() {
        for (key, slot) in [
            ("123456789", 12_739),
            ("foo", 12_182),
            ("x:{foo}:meta", 12_182),
            ("{bar}", 5_061),
            ("foo{}", 5_542),
            ("", 0),
        ] {
            assert_eq!(slot_of(key), slot, "{key}");
        }
        assert_eq!(slot(&["PING".to_owned()]), 0);
    }

    #[test]
    fn a_node_that_another_names_is_known_from_then_on() {
        let cluster = cluster();
        let first = cluster.lock().of(7).unwrap();
        assert_eq!(place(&first), "a:1");
        for (moved, there) in [
            ("MOVED 7 10.0.0.1:7000", "10.0.0.1:7000"),
            ("MOVED 7 ::1:7001", "::1:7001"),
            ("MOVED 7 :7002", "a:7002"),
            ("MOVED 7 b:2", "b:2"),
        ] {
            let node = cluster.learn(7, moved, &first, 0).unwrap();
            assert_eq!(
                (place(&node), place(&cluster.lock().of(7).unwrap())),
                (there.to_owned(), there.to_owned())
            );
            assert_eq!(node.client.get_connection_info().redis_settings().password(), Some("word"));
            assert!(
                at(&node.client) == at(&first.client)
                    || node.client.get_connection_info().tcp_settings().nodelay()
            );
        }
        assert_eq!(cluster.lock().list().len(), 2, "an entry is known already, and who had the slot is none");
        for nonsense in ["MOVED", "MOVED 7", "MOVED 7 a", "MOVED 7 a:b", "MOVED 7 a:99999"] {
            assert!(cluster.learn(7, nonsense, &first, 0).is_none(), "{nonsense}");
        }
    }

    #[test]
    fn a_node_that_failed_is_asked_last_or_forgotten() {
        let cluster = cluster();
        let entry = cluster.lock().of(7).unwrap();
        let other = cluster.learn(7, "MOVED 7 c:3", &entry, 0).unwrap();
        cluster.leave(&other);
        assert_eq!(place(&cluster.lock().of(7).unwrap()), "a:1");
        assert!(cluster.left(at(&other.client)) && !cluster.left(at(&entry.client)));
        cluster.leave(&entry);
        assert_eq!(place(&cluster.lock().of(7).unwrap()), "b:2");
        assert_eq!(cluster.listens_at().map(|client| at(&client).to_string()).as_deref(), Some("b:2"));
        cluster.heard(7, &entry, 0);
        assert!(!cluster.left(at(&entry.client)));
        assert_eq!(cluster.lock().list().len(), 2);
    }

    // One that hung and was replaced meanwhile does not know it yet as it goes on.
    #[tokio::test]
    async fn others_are_asked_before_anything_is_sent_to_a_node_of_which_nothing_was_heard_for_long() {
        let nodes = [Fake::start().await, Fake::start().await, Fake::start().await];
        let [before, next, other] = &nodes;
        let url = format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", before.port, other.port);
        let Kind::Cluster(entries) = RedisUrl::new(&url).unwrap().kind else { panic!() };
        let cluster = Cluster::new(entries, Duration::from_secs(1), watch::Sender::new(()));
        let words = ["EVALSHA", "digest", "1", "x:{foo}:meta"].map(str::to_owned);
        let write = async || assert_eq!(cluster.send(&words).await, Ok(Resp::Integer(0)));
        let writes = || [&nodes[0], &nodes[1], &nodes[2]].map(Fake::writes);
        let stand_still = || {
            let known = cluster.lock().list().to_vec();
            known.iter().for_each(|node| node.forget_heard());
        };
        other.names(before);
        write().await;
        other.names(next);
        write().await;
        assert_eq!(writes(), [2, 0, 0], "it answered a moment ago");
        stand_still();
        write().await;
        assert_eq!(writes(), [2, 1, 0]);
        // Its successor is one of those who are asked.
        stand_still();
        before.names(other);
        other.serves();
        write().await;
        assert_eq!(writes(), [2, 1, 1]);
    }

    // Then none of them may be there to have replaced it.
    #[tokio::test]
    async fn a_node_is_kept_if_no_other_answers() {
        let (node, other) = (Fake::start().await, Fake::start().await);
        let url = format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", node.port, other.port);
        let Kind::Cluster(entries) = RedisUrl::new(&url).unwrap().kind else { panic!() };
        let cluster = Cluster::new(entries, Duration::from_secs(1), watch::Sender::new(()));
        other.shared.answers.forget_permits(tokio::sync::Semaphore::MAX_PERMITS);
        let words = ["EVALSHA", "digest", "1", "x:{foo}:meta"].map(str::to_owned);
        for count in [1, 2] {
            assert_eq!(cluster.send(&words).await, Ok(Resp::Integer(0)));
            assert_eq!((node.writes(), other.writes()), (count, 0));
        }
    }
}
