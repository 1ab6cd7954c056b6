//! A small cluster.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::port::BUS_OFFSET;
use crate::{RedisOptions, RedisServer, Resp};

/// Three masters that share the 16,384 slots, each with a replica if that is wanted.
#[derive(Debug)]
pub struct Cluster {
    /// The masters in the order of their slots, then their replicas in the same order.
    servers: Vec<RedisServer>,
}

const NODES: usize = 3;
const SLOTS: usize = 16_384;
const START: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

impl Cluster {
    /// Starts the nodes and waits until each of them sees the whole cluster.
    pub fn start() -> io::Result<Self> {
        Self::with_options(&RedisOptions::default())
    }

    /// As `start`, with these options for every node.
    pub fn with_options(options: &RedisOptions) -> io::Result<Self> {
        Self::assembled(options, NODES)
    }

    /// As `with_options`, each node with a replica that has a copy of its data.
    pub fn with_replicas(options: &RedisOptions) -> io::Result<Self> {
        Self::assembled(options, 2 * NODES)
    }

    fn assembled(options: &RedisOptions, count: usize) -> io::Result<Self> {
        let options = RedisOptions { cluster: true, ..options.clone() };
        let starts: Vec<_> = (0..count)
            .map(|_| {
                let options = options.clone();
                thread::spawn(move || RedisServer::start(options))
            })
            .collect();
        let joined = |start: thread::JoinHandle<io::Result<RedisServer>>| {
            start.join().unwrap_or_else(|_| Err(io::Error::other("starting a node panicked")))
        };
        let cluster = Self { servers: starts.into_iter().map(joined).collect::<io::Result<_>>()? };
        cluster.assemble()?;
        Ok(cluster)
    }

    /// The nodes that were masters at the start, in the order of their slots.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.servers[..NODES]
    }

    /// Their replicas at the start, in the same order.
    pub fn replicas(&self) -> &[RedisServer] {
        &self.servers[NODES..]
    }

    /// The addresses of the nodes, each as a server of its own.
    pub fn urls(&self) -> Vec<String> {
        self.nodes().iter().map(RedisServer::url).collect()
    }

    /// The address of the cluster, entered at one of these nodes.
    pub fn url(&self, entries: &[usize]) -> String {
        let urls = entries.iter().map(|&node| self.nodes()[node].url());
        let places: Vec<String> =
            urls.map(|url| url.rsplit(['/', '@']).next().unwrap_or("").to_owned()).collect();
        let login = self.nodes()[0].password().map_or(String::new(), |password| format!(":{password}@"));
        format!("{}+cluster://{login}{}", self.nodes()[0].scheme(), places.join(","))
    }

    /// The slot of a key.
    pub fn slot(&self, key: &str) -> io::Result<u16> {
        let reply = self.servers[0].command(&["CLUSTER", "KEYSLOT", key])?;
        let slot = reply.as_int().and_then(|slot| u16::try_from(slot).ok());
        slot.ok_or_else(|| io::Error::other(format!("no slot: {reply:?}")))
    }

    /// The node that had the slot at the start.
    pub fn node_of(&self, slot: u16) -> usize {
        (0..NODES).find(|&node| slots_of(node).contains(&usize::from(slot))).unwrap_or(NODES)
    }

    /// Cuts the link between a node and its replica, which both stay in the cluster. They must have a password.
    pub fn cut_link(&self, node: usize) -> io::Result<()> {
        self.replicas()[node].expect_ok(&["CONFIG", "SET", "masterauth", "cut"])?;
        self.nodes()[node].command(&["CLIENT", "KILL", "TYPE", "replica"])?;
        self.replicas()[node].wait_until("the replica is still linked", |replica| {
            Ok(info(replica)?.contains("master_link_status:down"))
        })
    }

    /// Makes a node a cluster of its own, without slots, of which the others know nothing any more.
    pub fn remove(&self, node: usize) -> io::Result<()> {
        let gone = id(&self.nodes()[node])?;
        for (_, other) in self.nodes().iter().enumerate().filter(|&(place, _)| place != node) {
            other.expect_ok(&["CLUSTER", "FORGET", &gone])?;
        }
        self.nodes()[node].expect_ok(&["CLUSTER", "RESET"])
    }

    /// Moves a slot to another node, key by key, as an administrator does; `meanwhile` happens when the first half of the
    /// keys is there.
    pub fn migrate(&self, slot: u16, from: usize, to: usize, meanwhile: impl FnOnce()) -> io::Result<()> {
        let (source, target) = (&self.nodes()[from], &self.nodes()[to]);
        let (slot, its_id, new_id) = (slot.to_string(), id(source)?, id(target)?);
        target.expect_ok(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &its_id])?;
        source.expect_ok(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &new_id])?;
        let (keys, port) = (keys(source, &slot)?, target.entry().to_string());
        let move_keys = |keys: &[String]| -> io::Result<()> {
            for key in keys {
                let mut words = vec!["MIGRATE", "127.0.0.1", &port, key, "0", "5000"];
                words.extend(target.password().iter().flat_map(|password| ["AUTH", password]));
                source.expect_ok(&words)?;
            }
            Ok(())
        };
        let (first, second) = keys.split_at(keys.len() / 2);
        move_keys(first)?;
        meanwhile();
        move_keys(second)?;
        for node in [target, source].into_iter().chain(self.nodes()) {
            node.expect_ok(&["CLUSTER", "SETSLOT", &slot, "NODE", &new_id])?;
        }
        Ok(())
    }

    fn assemble(&self) -> io::Result<()> {
        for (index, node) in self.servers.iter().enumerate() {
            // Epochs are settled here, as nodes with equal ones would argue about it later.
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()])?;
        }
        for (index, node) in self.nodes().iter().enumerate() {
            let slots: Vec<String> = slots_of(index).map(|slot| slot.to_string()).collect();
            let mut words = vec!["CLUSTER", "ADDSLOTS"];
            words.extend(slots.iter().map(String::as_str));
            node.expect_ok(&words)?;
        }
        for other in &self.servers[1..] {
            let (port, bus) = (other.entry().to_string(), (other.entry() + BUS_OFFSET).to_string());
            self.servers[0].command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus])?;
        }
        let begun = Instant::now();
        let until = |done: &dyn Fn() -> io::Result<bool>| loop {
            if done()? {
                return Ok(());
            }
            if begun.elapsed() > START {
                let log = self.servers[0].log();
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no cluster:\n{log}")));
            }
            thread::sleep(POLL);
        };
        let known = format!("cluster_known_nodes:{}", self.servers.len());
        until(&|| Ok(self.servers.iter().all(|node| is_complete(node, &known))))?;
        for (node, replica) in self.nodes().iter().zip(self.replicas()) {
            replica.expect_ok(&["CLUSTER", "REPLICATE", &id(node)?])?;
        }
        for replica in self.replicas() {
            until(&|| Ok(info(replica)?.contains("master_link_status:up")))?;
        }
        // Each knows by then who follows whom, and would elect nobody else.
        let replicas = self.replicas().len();
        let follows = |node: &RedisServer| {
            let nodes = node.command(&["CLUSTER", "NODES"])?;
            Ok::<_, io::Error>(nodes.as_text().unwrap_or_default().matches("slave ").count() == replicas)
        };
        until(&|| self.servers.iter().map(follows).try_fold(true, |all, one| Ok(all && one?)))
    }
}

fn slots_of(node: usize) -> std::ops::Range<usize> {
    SLOTS * node / NODES..SLOTS * (node + 1) / NODES
}

fn id(node: &RedisServer) -> io::Result<String> {
    let reply = node.command(&["CLUSTER", "MYID"])?;
    reply.as_text().map(str::to_owned).ok_or_else(|| io::Error::other(format!("no id: {reply:?}")))
}

fn info(node: &RedisServer) -> io::Result<String> {
    Ok(node.command(&["INFO", "replication"])?.as_text().unwrap_or_default().to_owned())
}

fn keys(node: &RedisServer, slot: &str) -> io::Result<Vec<String>> {
    let reply = node.command(&["CLUSTER", "GETKEYSINSLOT", slot, "1000"])?;
    let keys = reply.as_array().unwrap_or_default().iter();
    Ok(keys.filter_map(Resp::as_text).map(str::to_owned).collect())
}

fn is_complete(node: &RedisServer, known: &str) -> bool {
    let wanted = ["cluster_state:ok", "cluster_slots_assigned:16384", known, "cluster_size:3"];
    let info = node.command(&["CLUSTER", "INFO"]);
    info.is_ok_and(|info| info.as_text().is_some_and(|text| wanted.iter().all(|line| text.contains(line))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replies(cluster: &Cluster, words: &[&str]) -> Vec<Resp> {
        cluster.nodes().iter().map(|node| node.command(words).expect("a reply")).collect()
    }

    #[test]
    fn a_cluster_serves_each_slot_at_one_node() {
        let cluster = Cluster::start().expect("started");
        assert_eq!(cluster.urls().len(), NODES);
        for key in ["a", "b", "{pool}:x", "{pool}:y"] {
            let replies = replies(&cluster, &["SET", key, "1"]);
            assert_eq!(replies.iter().filter(|reply| **reply == Resp::ok()).count(), 1);
            assert_eq!(replies.iter().filter(|reply| reply.error_code() == Some("MOVED")).count(), NODES - 1);
            let node = cluster.node_of(cluster.slot(key).expect("a slot"));
            assert_eq!(replies[node], Resp::ok(), "{key}");
        }
    }

    #[test]
    fn a_slot_moves_with_its_keys() {
        let cluster = Cluster::start().expect("started");
        let slot = cluster.slot("{pool}:x").expect("a slot");
        let (from, to) = (cluster.node_of(slot), (cluster.node_of(slot) + 1) % NODES);
        for key in ["{pool}:x", "{pool}:y"] {
            assert_eq!(cluster.nodes()[from].command(&["SET", key, "1"]).expect("a reply"), Resp::ok());
        }
        let mut between = Vec::new();
        let half = || between = replies(&cluster, &["MGET", "{pool}:x", "{pool}:y"]);
        cluster.migrate(slot, from, to, half).expect("moved");
        assert!(matches!(between[from].error_code(), Some("ASK" | "TRYAGAIN")), "{between:?}");
        let after = replies(&cluster, &["MGET", "{pool}:x", "{pool}:y"]);
        assert_eq!(after[to].as_array().map(<[Resp]>::len), Some(2), "{after:?}");
        assert_eq!(after[from].error_code(), Some("MOVED"));
    }

    #[test]
    fn a_replica_takes_over_what_it_had_when_its_link_was_cut() {
        let options = RedisOptions { password: Some("p".to_owned()), ..RedisOptions::default() };
        let cluster = Cluster::with_replicas(&options).expect("started");
        let key = (0..)
            .map(|n| format!("k{n}"))
            .find(|key| cluster.node_of(cluster.slot(key).expect("a slot")) == 0);
        let (key, node, replica) = (key.expect("one"), &cluster.nodes()[0], &cluster.replicas()[0]);
        assert_eq!(node.command(&["SET", &key, "before"]).expect("a reply"), Resp::ok());
        node.wait_until("the replica is not in step", |node| {
            Ok(node.command(&["WAIT", "1", "200"])?.as_int() == Some(1))
        })
        .expect("in step");
        cluster.cut_link(0).expect("cut");
        assert_eq!(node.command(&["SET", &key, "after"]).expect("a reply"), Resp::ok());
        node.kill().expect("killed");
        replica
            .wait_until("the replica is not elected", |replica| {
                Ok(replica.command(&["GET", &key])?.as_text() == Some("before"))
            })
            .expect("elected");
    }

    #[test]
    fn the_nodes_share_all_slots() {
        let slots: Vec<usize> = (0..NODES).flat_map(slots_of).collect();
        assert_eq!(slots, (0..SLOTS).collect::<Vec<_>>());
    }
}
