//! A small cluster.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::port::BUS_OFFSET;
use crate::{RedisOptions, RedisServer};

/// Three masters that share the 16,384 slots, without replicas.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<RedisServer>,
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
        let options = RedisOptions { cluster: true, ..options.clone() };
        let starts: Vec<_> = (0..NODES)
            .map(|_| {
                let options = options.clone();
                thread::spawn(move || RedisServer::start(options))
            })
            .collect();
        let joined = |start: thread::JoinHandle<io::Result<RedisServer>>| {
            start.join().unwrap_or_else(|_| Err(io::Error::other("starting a node panicked")))
        };
        let cluster = Self { nodes: starts.into_iter().map(joined).collect::<io::Result<_>>()? };
        cluster.assemble()?;
        Ok(cluster)
    }

    /// The nodes, in the order of their slots.
    pub fn nodes(&self) -> &[RedisServer] {
        &self.nodes
    }

    /// The addresses of the nodes.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(RedisServer::url).collect()
    }

    fn assemble(&self) -> io::Result<()> {
        for (index, node) in self.nodes.iter().enumerate() {
            // Epochs are settled here, as nodes with equal ones would argue about it later.
            node.command(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()])?;
            let slots: Vec<String> = slots_of(index).map(|slot| slot.to_string()).collect();
            let mut words = vec!["CLUSTER", "ADDSLOTS"];
            words.extend(slots.iter().map(String::as_str));
            let reply = node.command(&words)?;
            if let Some(error) = reply.as_error() {
                return Err(io::Error::other(error.to_owned()));
            }
        }
        for other in &self.nodes[1..] {
            let (port, bus) = (other.port().to_string(), (other.port() + BUS_OFFSET).to_string());
            self.nodes[0].command(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus])?;
        }
        let begun = Instant::now();
        while !self.nodes.iter().all(is_complete) {
            if begun.elapsed() > START {
                let log = self.nodes[0].log();
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no cluster:\n{log}")));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

fn slots_of(node: usize) -> std::ops::Range<usize> {
    SLOTS * node / NODES..SLOTS * (node + 1) / NODES
}

fn is_complete(node: &RedisServer) -> bool {
    let wanted =
        ["cluster_state:ok", "cluster_slots_assigned:16384", "cluster_known_nodes:3", "cluster_size:3"];
    let info = node.command(&["CLUSTER", "INFO"]);
    info.is_ok_and(|info| info.as_text().is_some_and(|text| wanted.iter().all(|line| text.contains(line))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Resp;

    #[test]
    fn a_cluster_serves_each_slot_at_one_node() {
        let cluster = Cluster::start().expect("started");
        assert_eq!(cluster.urls().len(), NODES);
        for key in ["a", "b", "{pool}:x", "{pool}:y"] {
            let replies: Vec<Resp> = cluster
                .nodes()
                .iter()
                .map(|node| node.command(&["SET", key, "1"]).expect("a reply"))
                .collect();
            assert_eq!(replies.iter().filter(|reply| **reply == Resp::ok()).count(), 1);
            assert_eq!(replies.iter().filter(|reply| reply.error_code() == Some("MOVED")).count(), NODES - 1);
        }
    }

    #[test]
    fn the_nodes_share_all_slots() {
        let slots: Vec<usize> = (0..NODES).flat_map(slots_of).collect();
        assert_eq!(slots, (0..SLOTS).collect::<Vec<_>>());
    }
}
