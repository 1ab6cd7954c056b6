//! The nodes of a cluster that are known, and who of them is asked.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use ::redis::{Client, ConnectionAddr};

use super::server::{Place, Server};
use super::{addressed, at};
use crate::runtime::boot_time;
use crate::{Micros, SECOND};

/// How long a node that was left is not gone back to at its own word alone while nobody has said since when another has its slot: one
/// that was cut off serves for half a `cluster-node-timeout` after it was replaced, which is 7.5 seconds unless it is set.
const UNKNOWN: Micros = 10 * SECOND;

pub(super) struct Nodes {
    /// Who is asked for what is not known begins the list; who failed stands at its end.
    list: Vec<Arc<Node>>,
    /// The nodes of slots, 16,384 at most.
    slots: HashMap<u16, Arc<Node>>,
    /// Who had a slot and was left for another that has it: who is behind still names it.
    left: HashMap<u16, Left>,
    patience: Duration,
}

struct Left {
    place: ConnectionAddr,
    /// The latest in which anybody is known to have the slot; 0 if none is known.
    epoch: u64,
    /// Whether it is one in which another than this has it.
    is_known: bool,
    since: Micros,
}

pub(super) struct Node {
    pub client: Client,
    pub server: Arc<Server>,
    /// Whether it was named by the user, and is kept whatever happens.
    is_entry: bool,
    /// Whether it is in the cluster, as far as the last said that was asked who is.
    is_listed: AtomicBool,
    /// Whether a connection to it failed, and none has answered since.
    failed: AtomicBool,
    /// Whether it said that it cannot serve.
    is_down: AtomicBool,
    /// When that was sent to which it, or another that named it, answered last.
    heard: AtomicU64,
}

impl Nodes {
    pub fn new(entries: Vec<Client>, patience: Duration) -> Self {
        let list = entries.into_iter().map(|entry| Node::new(entry, patience, true)).collect();
        Nodes { list, slots: HashMap::new(), left: HashMap::new(), patience }
    }

    pub fn list(&self) -> &[Arc<Node>] {
        &self.list
    }

    pub fn at(&self, place: &ConnectionAddr) -> Option<Arc<Node>> {
        self.list.iter().find(|node| at(&node.client) == place).cloned()
    }

    /// Who is asked for this slot; nobody that was left for another.
    pub fn of(&self, slot: u16) -> Option<Arc<Node>> {
        let not_left = || self.list.iter().find(|node| !self.is_left(slot, at(&node.client)));
        self.slots.get(&slot).or_else(not_left).cloned()
    }

    /// Who was left for another, where nobody else may have the slot that is known to be there.
    pub fn last_left(&self, slot: u16) -> Option<Arc<Node>> {
        let mut others = self.list.iter().filter(|node| !self.is_left(slot, at(&node.client)));
        let is_last = !self.slots.contains_key(&slot) && others.all(|node| node.is_unwell());
        is_last.then(|| self.at(&self.left.get(&slot)?.place)).flatten()
    }

    /// Who had this slot and was left for another, and the latest epoch in which another is known to have it; 0 if none is.
    pub fn left_for_another(&self, slot: u16) -> Option<(&ConnectionAddr, u64)> {
        self.left.get(&slot).map(|left| (&left.place, if left.is_known { left.epoch } else { 0 }))
    }

    /// Whether who was left for another may have this slot again, as it says itself in this epoch.
    pub fn may_be_back(&self, slot: u16, epoch: u64, now: Micros) -> bool {
        self.left.get(&slot).is_none_or(|left| {
            epoch >= left.epoch && (left.is_known || now.saturating_sub(left.since) > UNKNOWN)
        })
    }

    /// As if long had passed since somebody was left.
    #[cfg(test)]
    pub fn left_long_ago(&mut self, slot: u16) {
        self.left.get_mut(&slot).unwrap().since = 0;
    }

    /// In this epoch the slot is said to be at this place.
    pub fn said(&mut self, slot: u16, place: &ConnectionAddr, epoch: u64) {
        if let Some(left) = self.left.get_mut(&slot).filter(|left| left.place != *place) {
            // Who is behind names one of before.
            left.is_known |= epoch > 0 && epoch >= left.epoch;
            left.epoch = left.epoch.max(epoch);
        }
    }

    /// The node that is said to have the slot, if it was left for another, and who says so is not that.
    pub fn doubted(&mut self, slot: u16, named: Client, from: &Node) -> Option<Arc<Node>> {
        let serves = self.slots.get(&slot).is_some_and(|serves| at(&serves.client) == at(&from.client));
        (!serves && self.is_left(slot, at(&named))).then(|| self.known(named))
    }

    /// One that serves slots, and is not at this place.
    pub fn another(&self, place: &ConnectionAddr) -> Option<Arc<Node>> {
        self.slots.values().find(|node| at(&node.client) != place).cloned()
    }

    /// Who is asked of this slot besides the node that has it, those first that are there. Not who was left for another: it may
    /// not know yet.
    pub fn besides(&self, node: &Arc<Node>, slot: u16) -> Vec<Arc<Node>> {
        let mut others: Vec<_> = self
            .list
            .iter()
            .filter(|other| !Arc::ptr_eq(other, node) && !self.is_left(slot, at(&other.client)))
            .cloned()
            .collect();
        others.sort_by_key(|other| other.rank());
        others
    }

    /// It serves the slot, unless it was dropped meanwhile.
    pub fn heard(&mut self, slot: u16, node: &Arc<Node>) {
        if !self.slots.contains_key(&slot) && self.list.iter().any(|known| Arc::ptr_eq(known, node)) {
            self.slots.insert(slot, node.clone());
        }
    }

    /// The slot is at this address. Whoever had it is dropped, if nothing else is known of it.
    pub fn moved(&mut self, slot: u16, to: Client) -> Arc<Node> {
        let node = self.known(to);
        let before = self.slots.insert(slot, node.clone());
        if let Some(before) = before
            && !Arc::ptr_eq(&before, &node)
        {
            let epoch = self.left.get(&slot).map_or(0, |left| left.epoch);
            let place = at(&before.client).clone();
            self.left.insert(slot, Left { place, epoch, is_known: false, since: boot_time() });
            let slots = &self.slots;
            self.list
                .retain(|known| known.is_kept() || slots.values().any(|serves| Arc::ptr_eq(serves, known)));
        }
        node
    }

    /// These are in the cluster, and who else was learnt is dropped. A node that is in none has no list, and is not
    /// believed.
    pub fn adopt(&mut self, clients: Vec<Client>) {
        if clients.is_empty() {
            return;
        }
        let listed: Vec<Arc<Node>> = clients.into_iter().map(|client| self.known(client)).collect();
        for node in &self.list {
            node.is_listed.store(listed.iter().any(|listed| Arc::ptr_eq(listed, node)), Relaxed);
        }
        self.list.retain(|node| node.is_kept());
        self.slots.retain(|_, node| node.is_kept());
    }

    /// Others are asked before this one, and it is forgotten if it failed and nothing else is known of it. Not while it is connected
    /// to: to one that is far that may take longer than a command, and each that is sent there would begin it anew.
    pub fn pass_over(&mut self, node: &Arc<Node>) {
        self.slots.retain(|_, serves| !Arc::ptr_eq(serves, node));
        let Some(place) = self.list.iter().position(|known| Arc::ptr_eq(known, node)) else { return };
        let node = self.list.remove(place);
        if node.is_kept() || !node.failed.load(Relaxed) || node.server.is_connecting() {
            self.list.push(node);
        }
    }

    /// Where to listen: a message reaches every node that is in the cluster, also where no command goes.
    pub fn listens_at(&self) -> Option<Arc<Node>> {
        self.list.iter().min_by_key(|node| node.rank()).cloned()
    }

    /// Whether the node at this place failed, is none any more, or is worse to listen at than another.
    pub fn left(&self, place: &ConnectionAddr) -> bool {
        let best = self.listens_at().map(|node| node.rank());
        self.at(place)
            .is_none_or(|node| node.failed.load(Relaxed) || best.is_some_and(|best| best < node.rank()))
    }

    fn is_left(&self, slot: u16, place: &ConnectionAddr) -> bool {
        self.left.get(&slot).is_some_and(|left| left.place == *place)
    }

    fn known(&mut self, client: Client) -> Arc<Node> {
        self.at(at(&client)).unwrap_or_else(|| {
            let node = Node::new(client, self.patience, false);
            self.list.push(node.clone());
            node
        })
    }
}

impl Node {
    fn new(client: Client, patience: Duration, is_entry: bool) -> Arc<Self> {
        let server = Arc::new(Server::new(Place::node(client.clone()), patience));
        let [is_listed, failed, is_down] = [(); 3].map(|()| AtomicBool::new(false));
        Arc::new(Node { client, server, is_entry, is_listed, failed, is_down, heard: AtomicU64::new(0) })
    }

    /// The client of what this node names; without a host it is another port of its own. `?` has a name, which it was not told.
    pub fn names(&self, host: &str, port: u16) -> Option<Client> {
        let host = match (host, at(&self.client)) {
            ("?", _) => return None,
            ("", ConnectionAddr::Tcp(host, _) | ConnectionAddr::TcpTls { host, .. }) => host,
            (host, _) => host,
        };
        addressed(&self.client, host.to_owned(), port)
    }

    /// The client of the node that it names with `MOVED slot host:port`.
    pub fn moved(&self, text: &str) -> Option<Client> {
        let (host, port) = text.split(' ').nth(2)?.rsplit_once(':')?;
        self.names(host, port.parse().ok()?)
    }

    /// A connection to it failed.
    pub fn fails(&self) {
        self.failed.store(true, Relaxed);
    }

    /// A connection to it was made.
    pub fn is_there(&self) {
        self.failed.store(false, Relaxed);
    }

    /// It said that it cannot serve.
    pub fn is_down(&self) {
        self.is_down.store(true, Relaxed);
    }

    /// It answered. Whether that is news.
    pub fn is_well(&self) -> bool {
        // Almost always it was well before, and many say so at once.
        let news = self.is_unwell();
        if news {
            self.failed.store(false, Relaxed);
            self.is_down.store(false, Relaxed);
        }
        news
    }

    /// What was sent then was answered with a word of it.
    pub fn is_heard(&self, sent: Micros) {
        self.heard.fetch_max(sent, Relaxed);
    }

    pub fn heard(&self) -> Micros {
        self.heard.load(Relaxed)
    }

    /// As if long had passed since.
    #[cfg(test)]
    pub fn forget_heard(&self) {
        self.heard.store(0, Relaxed);
    }

    fn is_unwell(&self) -> bool {
        self.failed.load(Relaxed) || self.is_down.load(Relaxed)
    }

    fn is_kept(&self) -> bool {
        self.is_entry || self.is_listed.load(Relaxed)
    }

    /// How bad it is to listen there. An entry that is not listed may have left the cluster, or is listed by another name.
    fn rank(&self) -> (bool, bool) {
        (self.is_unwell(), !self.is_listed.load(Relaxed))
    }
}
