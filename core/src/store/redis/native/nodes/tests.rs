use super::*;
use crate::store::redis::RedisUrl;
use crate::store::redis::native::url::Kind;

fn nodes() -> Nodes {
    let Kind::Cluster(entries) = RedisUrl::new("redis+cluster://a:1,b:2").unwrap().kind else { panic!() };
    Nodes::new(entries, Duration::from_secs(1))
}

fn client(place: &str) -> Client {
    Client::open(format!("redis://{place}")).unwrap()
}

fn place(node: &Node) -> String {
    at(&node.client).to_string()
}

fn places(nodes: &Nodes) -> Vec<String> {
    nodes.list.iter().map(|node| place(node)).collect()
}

fn leave(nodes: &mut Nodes, node: &Arc<Node>) {
    node.fails();
    nodes.pass_over(node);
}

// Each was kept for ever, and asked before those who live.
#[test]
fn who_had_a_slot_before_is_not_asked_when_others_fail() {
    let mut nodes = nodes();
    let entry = nodes.of(7).unwrap();
    for number in 0..10 {
        nodes.moved(7, client(&format!("10.0.0.{number}:6379")));
    }
    let last = nodes.of(7).unwrap();
    assert_eq!(place(&last), "10.0.0.9:6379");
    leave(&mut nodes, &entry);
    leave(&mut nodes, &last);
    assert_eq!(places(&nodes), ["b:2", "a:1"]);
    // Who has another slot goes on to have it.
    nodes.moved(7, client("c:3"));
    nodes.moved(8, client("c:3"));
    nodes.moved(7, client("d:4"));
    assert_eq!(places(&nodes), ["b:2", "a:1", "c:3", "d:4"]);
}

#[test]
fn the_nodes_are_those_of_the_last_list_and_who_was_named_since() {
    let mut nodes = nodes();
    nodes.adopt(vec![client("c:3"), client("a:1")]);
    nodes.moved(7, client("d:4"));
    assert_eq!(places(&nodes), ["a:1", "b:2", "c:3", "d:4"]);
    nodes.adopt(vec![client("a:1"), client("e:5")]);
    assert_eq!(places(&nodes), ["a:1", "b:2", "e:5"]);
    assert_eq!(place(&nodes.of(7).unwrap()), "a:1", "nobody knows where it is");
    // That of a node that was reset.
    nodes.adopt(Vec::new());
    assert_eq!(places(&nodes), ["a:1", "b:2", "e:5"]);
    // All fail in an outage, and are there again.
    for node in nodes.list.clone() {
        leave(&mut nodes, &node);
    }
    assert_eq!(places(&nodes), ["a:1", "b:2", "e:5"]);
}

#[test]
fn who_was_dropped_does_not_come_back_with_a_late_answer() {
    let mut nodes = nodes();
    let old = nodes.moved(7, client("c:3"));
    nodes.moved(7, client("d:4"));
    nodes.pass_over(&nodes.of(7).unwrap());
    nodes.heard(7, &old);
    assert_ne!(place(&nodes.of(7).unwrap()), "c:3");
}

// It was forgotten with each node that was left.
#[test]
fn the_latest_epoch_of_a_slot_is_remembered_when_it_moves_on() {
    let mut nodes = nodes();
    let now = boot_time() + 2 * UNKNOWN;
    nodes.moved(7, client("a:1"));
    nodes.moved(7, client("b:2"));
    nodes.said(7, at(&client("b:2")), 6);
    assert!(nodes.may_be_back(7, 6, boot_time()) && !nodes.may_be_back(7, 5, now));
    nodes.moved(7, client("c:3"));
    assert!(!nodes.may_be_back(7, 5, now) && nodes.may_be_back(7, 6, now));
    assert!(!nodes.may_be_back(7, 6, boot_time()), "it was in that epoch that it had the slot");
    // Who is behind says nothing of the next.
    nodes.said(7, at(&client("a:1")), 5);
    assert!(!nodes.may_be_back(7, 6, boot_time()));
    nodes.said(7, at(&client("c:3")), 7);
    assert!(!nodes.may_be_back(7, 6, now) && nodes.may_be_back(7, 7, boot_time()));
}

#[test]
fn it_is_listened_where_the_cluster_is() {
    let mut nodes = nodes();
    let at_now = |nodes: &Nodes| place(&nodes.listens_at().unwrap());
    let left = |nodes: &Nodes, place: &str| nodes.left(at(&client(place)));
    assert_eq!(at_now(&nodes), "a:1");
    assert!(!left(&nodes, "a:1") && !left(&nodes, "b:2") && left(&nodes, "x:1"));
    nodes.adopt(vec![client("b:2"), client("c:3")]);
    assert_eq!(at_now(&nodes), "b:2");
    assert!(left(&nodes, "a:1") && !left(&nodes, "c:3"));
    let [a, b, c] = ["a:1", "b:2", "c:3"].map(|place| nodes.at(at(&client(place))).unwrap());
    b.is_down();
    nodes.pass_over(&b);
    assert_eq!(at_now(&nodes), "c:3");
    assert!(left(&nodes, "b:2") && !left(&nodes, "c:3"));
    leave(&mut nodes, &c);
    assert_eq!(at_now(&nodes), "a:1");
    a.is_down();
    // None is better, and those who say that they are down are there.
    assert!(!left(&nodes, "b:2") && left(&nodes, "a:1") && left(&nodes, "c:3"));
    assert!(c.is_well() && !c.is_well());
    assert!(left(&nodes, "b:2") && !left(&nodes, "c:3"));
}
