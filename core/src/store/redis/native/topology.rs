//! What a node says of its cluster as it is connected to: who else is in it, and whether it is a node at all.

use std::collections::HashSet;

use crate::store::redis::transport::Resp;

/// Asks for the nodes, and their slots. It is answered by nodes alone.
pub(super) const SLOTS: [&str; 2] = ["CLUSTER", "SLOTS"];
/// Asks who does not answer that whether it is a node.
pub(super) const SECTION: [&str; 2] = ["INFO", "cluster"];

/// What is said of a server that is none: which of several was asked would depend on the order in which they are named, and
/// each would grant what another has granted.
pub(in crate::store::redis) const NO_NODE: &str = "it is a server by itself (cluster_enabled:0) and no node of a cluster: give a server's own \
    address (redis://) to use it alone, or the addresses of nodes of one cluster";

/// Whether this answer to [`SECTION`] is a server's that is no node. What may not be seen is not refused.
pub(super) fn is_no_node(section: &Resp) -> bool {
    matches!(section, Resp::Text(text) if text.contains("cluster_enabled:0"))
}

/// The hosts and ports that an answer to [`SLOTS`] names, those who serve slots before their replicas; without a host it is
/// who says so. None if it makes no sense, or there are none.
pub(super) fn nodes(slots: &Resp) -> Vec<(String, u16)> {
    let ranges: Vec<&[Resp]> =
        list(slots).iter().map(|range| list(range).get(2..).unwrap_or_default()).collect();
    let serving = ranges.iter().filter_map(|nodes| nodes.first());
    let replicas = ranges.iter().flat_map(|nodes| nodes.get(1..).unwrap_or_default());
    let mut seen = HashSet::new();
    serving.chain(replicas).filter_map(address).filter(|address| seen.insert(address.clone())).collect()
}

fn address(node: &Resp) -> Option<(String, u16)> {
    let [host, Resp::Integer(port), ..] = list(node) else { return None };
    let host = match host {
        Resp::Nil => "",
        Resp::Text(host) => host,
        _ => return None,
    };
    // A node that serves no encryption has no port for who comes with it.
    let port = u16::try_from(*port).ok().filter(|port| *port > 0)?;
    Some((host.to_owned(), port))
}

fn list(resp: &Resp) -> &[Resp] {
    match resp {
        Resp::List(list) => list,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Resp {
        Resp::Text(text.to_owned())
    }

    fn node(host: Resp, port: i64) -> Resp {
        Resp::List(vec![host, Resp::Integer(port), text("07c37df"), Resp::List(Vec::new())])
    }

    fn range(from: i64, nodes: Vec<Resp>) -> Resp {
        let mut range = vec![Resp::Integer(from), Resp::Integer(from + 9)];
        range.extend(nodes);
        Resp::List(range)
    }

    #[test]
    fn the_nodes_are_those_of_all_slots_once_and_replicas_come_last() {
        let slots = Resp::List(vec![
            range(0, vec![node(text("a"), 1), node(text("x"), 9), node(Resp::Nil, 8)]),
            range(10, vec![node(text(""), 2)]),
            range(
                20,
                vec![node(text("a"), 1), node(text("?"), 4), node(text("b"), 0), node(text("b"), 70_000)],
            ),
        ]);
        let expected =
            [("a", 1), ("", 2), ("x", 9), ("", 8), ("?", 4)].map(|(host, port)| (host.to_owned(), port));
        assert_eq!(nodes(&slots), expected);
    }

    #[test]
    fn an_answer_that_makes_no_sense_names_nobody() {
        let short =
            Resp::List(vec![Resp::List(vec![Resp::Integer(1)]), Resp::Nil, range(1, vec![text("a")])]);
        for answer in [Resp::Nil, Resp::Error("NOPERM no".to_owned()), Resp::List(Vec::new()), short] {
            assert_eq!(nodes(&answer), []);
        }
    }

    #[test]
    fn only_who_says_that_it_is_none_is_no_node() {
        assert!(is_no_node(&text("# Cluster\r\ncluster_enabled:0\r\n")));
        for other in
            [text("# Cluster\r\ncluster_enabled:1\r\n"), text(""), Resp::Error("NOPERM no".to_owned())]
        {
            assert!(!is_no_node(&other));
        }
    }
}
