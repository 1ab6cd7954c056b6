//! Who is asked in a cluster, and who is believed.

use tokio::runtime::Handle;

use super::*;
use crate::store::redis::native::at;
use crate::store::redis::native::fake::Fake;
use crate::store::redis::native::url::Kind;
use crate::store::redis::native::{NativeTransport, RedisUrl};
use crate::store::redis::transport::Transport;

fn slot_of(key: &str) -> u16 {
    slot(&["EVALSHA", "digest", "1", key].map(str::to_owned))
}

fn alarms() -> Alarms {
    Alarms::new(Handle::current())
}

fn cluster() -> Cluster {
    let Kind::Cluster(nodes) = RedisUrl::new("redis+cluster://:word@a:1,b:2").unwrap().kind else { panic!() };
    Cluster::new(nodes, Duration::from_secs(1), alarms(), watch::Sender::new(()))
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

#[tokio::test]
async fn a_node_that_another_names_is_known_from_then_on() {
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
    for nonsense in ["MOVED", "MOVED 7", "MOVED 7 a", "MOVED 7 a:b", "MOVED 7 a:99999", "MOVED 7 ?:7003"] {
        assert!(cluster.learn(7, nonsense, &first, 0).is_none(), "{nonsense}");
    }
}

#[tokio::test]
async fn a_node_that_failed_is_asked_last_or_forgotten() {
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
    let cluster = Cluster::new(entries, Duration::from_secs(1), alarms(), watch::Sender::new(()));
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
    let cluster = Cluster::new(entries, Duration::from_secs(1), alarms(), watch::Sender::new(()));
    other.hangs();
    let words = ["EVALSHA", "digest", "1", "x:{foo}:meta"].map(str::to_owned);
    for count in [1, 2] {
        assert_eq!(cluster.send(&words).await, Ok(Resp::Integer(0)));
        assert_eq!((node.writes(), other.writes()), (count, 0));
    }
}

/// Four nodes, the first of which serves, as the others say; and who enters the cluster at all of them, in this order.
struct Scene {
    nodes: [Fake; 4],
    cluster: Cluster,
}

impl Scene {
    async fn new() -> Self {
        Self::of(Duration::from_secs(1)).await
    }

    async fn of(patience: Duration) -> Self {
        let nodes = [Fake::start().await, Fake::start().await, Fake::start().await, Fake::start().await];
        nodes.iter().skip(1).for_each(|node| node.names(&nodes[0]));
        let entries: Vec<_> = nodes.iter().map(|node| format!("127.0.0.1:{}", node.port)).collect();
        let Kind::Cluster(entries) =
            RedisUrl::new(&format!("redis+cluster://{}", entries.join(","))).unwrap().kind
        else {
            panic!()
        };
        Scene { nodes, cluster: Cluster::new(entries, patience, alarms(), watch::Sender::new(())) }
    }

    /// The last took the place of the first, as the others say, and was followed.
    async fn replaced() -> Self {
        Self::replaced_in(0).await
    }

    /// The same in this epoch.
    async fn replaced_in(epoch: usize) -> Self {
        let scene = Self::new().await;
        scene.write().await.unwrap();
        scene.say([(1, 3, epoch), (2, 3, epoch)]);
        scene.nodes[3].serves();
        scene.stand_still();
        scene.write().await.unwrap();
        scene
    }

    async fn write(&self) -> Reply {
        self.cluster.send(&["EVALSHA", "digest", "1", "x:{foo}:meta"].map(str::to_owned)).await
    }

    /// As if so much time had passed in which nothing was heard of anybody.
    fn stand_still(&self) {
        self.cluster.lock().list().iter().for_each(|node| node.forget_heard());
    }

    /// These two, of those that are asked, say that this one serves, of the epoch of each.
    fn say(&self, words: [(usize, usize, usize); 2]) {
        for (node, serves, epoch) in words {
            self.nodes[node].names(&self.nodes[serves]);
            self.nodes[node].is_in(epoch);
        }
    }

    /// How much was written to each node.
    fn written(&self) -> [usize; 4] {
        [0, 1, 2, 3].map(|node| self.nodes[node].writes())
    }
}

// Nobody had answered, then, and one that had hung and was replaced was kept.
#[tokio::test]
async fn others_that_closed_their_connections_meanwhile_are_connected_to_anew() {
    let scene = Scene::new().await;
    scene.write().await.unwrap();
    for node in &scene.nodes[1..] {
        node.hangs_up();
        node.names(&scene.nodes[3]);
    }
    scene.nodes[3].serves();
    scene.stand_still();
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [1, 0, 0, 1]);
}

#[tokio::test]
async fn further_ones_are_asked_if_the_first_do_not_answer() {
    for is_silent in [false, true] {
        let scene = Scene::of(Duration::from_secs(2)).await;
        scene.write().await.unwrap();
        for node in &scene.nodes[1..3] {
            node.hangs_up();
            if is_silent {
                node.hangs();
            } else {
                node.goes();
            }
        }
        scene.nodes[3].serves();
        scene.stand_still();
        scene.write().await.unwrap();
        assert_eq!(scene.written(), [1, 0, 0, 1], "silent: {is_silent}");
    }
}

// A node that stood on the same side as one that was cut off answered first.
#[tokio::test]
async fn of_others_that_disagree_the_latest_epoch_counts() {
    for [first, second] in [[11, 12], [12, 11]] {
        let scene = Scene::new().await;
        scene.write().await.unwrap();
        scene.say([(1, 0, first), (2, 3, second)]);
        scene.nodes[3].serves();
        // It is connected to anew, so that it answers last.
        scene.nodes[2].hangs_up();
        scene.stand_still();
        scene.write().await.unwrap();
        let follows = usize::from(second > first);
        assert_eq!(scene.written(), [2 - follows, 0, 0, follows]);
    }
}

#[tokio::test]
async fn of_others_that_disagree_and_may_not_say_their_epochs_two_are_followed() {
    let scene = Scene::new().await;
    scene.write().await.unwrap();
    scene.say([(1, 0, 0), (2, 3, 0)]);
    scene.nodes[3].serves();
    scene.stand_still();
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [1, 0, 0, 1]);
}

// It goes on to serve for a while if it was cut off, and others with it say so.
#[tokio::test]
async fn a_node_that_was_left_for_another_is_not_gone_back_to_for_one_that_says_so() {
    let scene = Scene::replaced().await;
    assert_eq!(scene.written(), [1, 0, 0, 1]);
    scene.say([(1, 0, 0), (2, 3, 0)]);
    scene.stand_still();
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [1, 0, 0, 2]);
    scene.say([(1, 0, 0), (2, 0, 0)]);
    scene.stand_still();
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [2, 0, 0, 2]);
}

// Its successor failed, and where the slot is was to be learnt anew.
#[tokio::test]
async fn nor_when_its_successor_fails() {
    let scene = Scene::replaced().await;
    scene.say([(1, 0, 0), (2, 3, 0)]);
    scene.nodes[3].hangs_up();
    assert!(scene.write().await.is_err());
    // It answers for other slots.
    let place = ConnectionAddr::Tcp("127.0.0.1".to_owned(), scene.nodes[1].port);
    scene.cluster.lock().at(&place).unwrap().is_heard(boot_time());
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [1, 0, 0, 2]);
}

/// Of all nodes the first is there, and one that says that it serves; this is what their cluster's epoch is.
async fn only_one_names_who_was_left(scene: &Scene, epoch: usize) {
    scene.nodes[2..].iter().for_each(Fake::goes);
    scene.say([(0, 1, epoch), (1, 0, epoch)]);
    scene.nodes[0].serves();
    for _ in 0..10 {
        let _ = scene.write().await;
    }
}

// It was gone back to as nobody else answered, and granted what others had from the next.
#[tokio::test]
async fn nor_when_it_knows_less_itself_than_was_known() {
    let scene = Scene::replaced_in(6).await;
    only_one_names_who_was_left(&scene, 5).await;
    assert_eq!(scene.written(), [1, 0, 0, 1]);
    // It serves again indeed.
    scene.say([(0, 1, 7), (1, 0, 7)]);
    scene.nodes[0].serves();
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [2, 0, 0, 1]);
}

#[tokio::test]
async fn nor_when_the_node_that_was_left_named_the_next_itself() {
    let scene = Scene::new().await;
    scene.write().await.unwrap();
    scene.nodes[0].names(&scene.nodes[3]);
    scene.nodes[3].serves();
    scene.nodes[3].is_in(6);
    scene.write().await.unwrap();
    let is_known =
        || scene.cluster.lock().left_for_another(slot_of("foo")).is_some_and(|(_, epoch)| epoch == 6);
    while !is_known() {
        tokio::task::yield_now().await;
    }
    only_one_names_who_was_left(&scene, 5).await;
    assert_eq!(scene.written(), [1, 0, 0, 1]);
}

/// The first named the last itself, which goes before it says its epoch, and was followed.
async fn replaced_in_an_unknown_epoch() -> Scene {
    let scene = Scene::new().await;
    scene.write().await.unwrap();
    scene.nodes[0].names(&scene.nodes[3]);
    scene.nodes[3].serves();
    scene.write().await.unwrap();
    scene
}

// What nobody had said counted as less than all that it says.
#[tokio::test]
async fn nor_at_its_own_word_while_nobody_has_said_since_when_it_has_another() {
    let scene = replaced_in_an_unknown_epoch().await;
    only_one_names_who_was_left(&scene, 5).await;
    assert_eq!(scene.written(), [1, 0, 0, 1]);
    // Not for ever: it may serve again indeed.
    scene.cluster.lock().left_long_ago(slot_of("foo"));
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [2, 0, 0, 1]);
}

// It was never asked again, whatever became of the other.
#[tokio::test]
async fn of_two_nodes_the_one_that_was_left_is_gone_back_to_if_the_other_is_away() {
    let nodes = [Fake::start().await, Fake::start().await];
    let [one, two] = &nodes;
    let url = format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", one.port, two.port);
    let Kind::Cluster(entries) = RedisUrl::new(&url).unwrap().kind else { panic!() };
    let cluster = Cluster::new(entries, Duration::from_secs(1), alarms(), watch::Sender::new(()));
    let words = ["EVALSHA", "digest", "1", "x:{foo}:meta"].map(str::to_owned);
    let written = || [one.writes(), two.writes()];
    two.names(one);
    cluster.send(&words).await.unwrap();
    one.names(two);
    two.serves();
    two.is_in(6);
    cluster.send(&words).await.unwrap();
    let is_known = || cluster.lock().left_for_another(slot_of("foo")).is_some_and(|(_, epoch)| epoch == 6);
    while !is_known() {
        tokio::task::yield_now().await;
    }
    assert_eq!(written(), [1, 1]);
    two.goes();
    one.serves();
    one.is_in(5);
    for _ in 0..3 {
        assert!(cluster.send(&words).await.is_err(), "it knows less than was known");
    }
    assert_eq!(written(), [1, 1]);
    one.is_in(7);
    cluster.send(&words).await.unwrap();
    assert_eq!(written(), [2, 1]);
}

// A small cluster would be of no use for as long as a third node is away.
#[tokio::test]
async fn who_was_left_is_gone_back_to_where_epochs_may_not_be_said() {
    let scene = Scene::replaced().await;
    scene.cluster.lock().left_long_ago(slot_of("foo"));
    only_one_names_who_was_left(&scene, 0).await;
    let [before, .., next] = scene.written();
    assert!(before > 1 && next == 1);
}

// It was begun anew by each who asked, and never made.
#[tokio::test]
async fn a_connection_to_another_is_made_even_if_that_takes_longer_than_it_may_answer() {
    let scene = Scene::new().await;
    let others = &scene.nodes[1..];
    others.iter().for_each(Fake::hangs);
    scene.write().await.unwrap();
    others.iter().for_each(|node| node.shared.answers.add_permits(9));
    scene.nodes[3].serves();
    scene.say([(1, 3, 0), (2, 3, 0)]);
    scene.stand_still();
    scene.write().await.unwrap();
    assert_eq!(scene.written(), [1, 0, 0, 1]);
    assert_eq!([0, 1, 2, 3].map(|node| scene.nodes[node].connections()), [1; 4]);
}

#[tokio::test]
async fn a_command_takes_no_longer_than_it_may_whoever_hangs_and_that_node_is_left() {
    let scene = Scene::of(Duration::from_secs(3)).await;
    scene.nodes.iter().for_each(Fake::hangs);
    let began = boot_time();
    // It was said to be unknown what became of it.
    let reply = scene.write().await;
    assert!(matches!(&reply, Err(TransportError::NotSent(text)) if text == SILENT), "{reply:?}");
    let took = boot_time() - began;
    assert!(took < 4 * SECOND, "{took}");
    let next = scene.cluster.lock().of(7).unwrap();
    assert_ne!(at(&next.client), &ConnectionAddr::Tcp("127.0.0.1".to_owned(), scene.nodes[0].port));
}

#[tokio::test]
async fn what_becomes_of_a_command_that_was_sent_and_is_not_answered_in_time_is_unknown() {
    let scene = Scene::of(Duration::from_secs(1)).await;
    scene.write().await.unwrap();
    scene.nodes.iter().for_each(|node| node.takes(Duration::ZERO, Duration::from_secs(60)));
    let reply = scene.cluster.send(&["PING".to_owned()]).await;
    assert_eq!(reply, Err(TransportError::NoReply(SILENT.to_owned())));
}

// What had been said before was taken for news of the moment at which it went on.
#[tokio::test]
async fn nothing_is_sent_at_the_word_of_others_that_is_old() {
    let scene = Scene::of(Duration::from_secs(9)).await;
    scene.write().await.unwrap();
    scene.nodes[2].hangs_up();
    scene.nodes[2].hangs();
    scene.stand_still();
    let meanwhile = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        scene.nodes[1].names(&scene.nodes[3]);
        scene.nodes[3].serves();
        std::thread::sleep(Duration::from_micros(OVERDUE + OVERDUE / 4));
    };
    let (first, ()) = tokio::join!(scene.write(), meanwhile);
    first.unwrap();
    assert_eq!(scene.written(), [1, 0, 0, 1]);
}

// What others say of it is trusted for as long.
#[tokio::test]
async fn a_pool_of_a_cluster_waits_for_those_who_have_not_heard_yet_of_the_next_node() {
    let url = RedisUrl::new("redis+cluster://a:1,b:2").unwrap();
    let transport = NativeTransport::new(url, tokio::runtime::Handle::current(), SECOND);
    assert_eq!(transport.lag(), OVERDUE);
}
