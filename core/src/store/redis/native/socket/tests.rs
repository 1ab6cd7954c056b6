use std::sync::Mutex;
use std::thread::{self, ThreadId};
use std::time::Duration;

use futures_channel::oneshot;
use tokio::runtime::Handle;

use super::*;
use crate::poison::unpoisoned;
use crate::runtime::{Begun, Calls, Watcher};
use crate::store::redis::native::fake::Fake;
use crate::store::redis::native::sentinels::Sentinels;
use crate::store::redis::native::server::{Place, Server, packed};

/// A host whose turns come when a test says so.
struct Turns {
    calls: Calls<()>,
    eye: Arc<Eye>,
}

#[derive(Default)]
struct Eye(Mutex<Vec<Arc<dyn Watched>>>);

impl Watcher for Eye {
    fn watch(&self, socket: Arc<dyn Watched>) -> bool {
        unpoisoned(&self.0).push(socket);
        true
    }
}

impl Turns {
    fn new() -> Self {
        let eye = Arc::new(Eye::default());
        Turns { calls: Calls::new(Handle::current(), || {}).watching(eye.clone()), eye }
    }

    /// Has a task of a turn ask the server. What hears in which thread it went on then.
    fn ask(&self, server: &Arc<Server>) -> oneshot::Receiver<ThreadId> {
        let (tell, hears) = oneshot::channel();
        let (server, handle) = (server.clone(), Handle::current());
        let begun = self.calls.begin(async move {
            tasks::spawn(&handle, async move {
                assert!(server.send(&packed(&["PING"])).await.is_ok());
                let _ = tell.send(thread::current().id());
            });
        });
        assert!(matches!(begun, Begun::Ended(())));
        hears
    }

    fn sockets(&self) -> Vec<Arc<dyn Watched>> {
        unpoisoned(&self.eye.0).clone()
    }

    /// In which thread it went on, while the loop looks at its sockets again and again.
    async fn answered(&self, mut hears: oneshot::Receiver<ThreadId>) -> ThreadId {
        in_time(async {
            loop {
                if let Ok(Some(thread)) = hears.try_recv() {
                    return thread;
                }
                self.look();
                tokio::task::yield_now().await;
            }
        })
        .await
    }

    /// The loop finds that its sockets can be read.
    fn look(&self) {
        for socket in self.sockets() {
            if !self.calls.hear(&*socket).open {
                unpoisoned(&self.eye.0).retain(|watched| watched.fd() != socket.fd());
            }
        }
    }
}

async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("in time")
}

async fn server() -> (Fake, Arc<Server>) {
    let fake = Fake::start().await;
    let place = Place::There(fake.client());
    (fake, Arc::new(Server::new(place, Duration::from_secs(10))))
}

/// Each answer was read by the runtime's thread, which then had to wake the host's.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_turn_asks_is_answered_in_its_thread() {
    let (fake, server) = server().await;
    let turns = Turns::new();
    // The first makes the connection, and on a machine that has much to do another thread may look first.
    let mut asked = 0;
    while turns.answered(turns.ask(&server)).await != thread::current().id() {
        asked += 1;
        assert!(asked < 1_000);
    }
    // What others ask goes over another, which is there as soon.
    assert_eq!((turns.sockets().len(), fake.connections()), (1, 2));
    assert!(server.send(&packed(&["PING"])).await.is_ok());
    assert_eq!((turns.sockets().len(), fake.connections()), (1, 2));
}

/// Keepalive and grants waited for a loop that was busy.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn what_a_busy_loop_does_not_read_is_read_elsewhere() {
    let (_fake, server) = server().await;
    let turns = Turns::new();
    turns.answered(turns.ask(&server)).await;
    while turns.sockets().is_empty() {
        turns.answered(turns.ask(&server)).await;
    }
    for _ in 0..3 {
        assert_ne!(in_time(turns.ask(&server)).await, Ok(thread::current().id()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_connection_that_ends_is_watched_no_more_and_another_takes_its_place() {
    let (fake, server) = server().await;
    let turns = Turns::new();
    while turns.sockets().is_empty() {
        turns.answered(turns.ask(&server)).await;
    }
    // By the server.
    fake.hangs_up();
    in_time(async {
        while !turns.sockets().is_empty() {
            turns.look();
            tokio::task::yield_now().await;
        }
    })
    .await;
    // The first command that found it closed failed, and waited for its turn to be repeated.
    let before = fake.connections();
    turns.answered(turns.ask(&server)).await;
    assert!(fake.connections() > before);
}
// Of two connections one was made anew, by a name that led elsewhere by then, and two servers granted.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_connection_that_fails_takes_that_of_all_else_with_it() {
    let fake = Fake::start().await;
    let server = Arc::new(Server::new(Place::There(fake.client()), Duration::from_secs(2)));
    let turns = Turns::new();
    while turns.sockets().is_empty() {
        turns.answered(turns.ask(&server)).await;
    }
    fake.takes(Duration::ZERO, Duration::from_secs(60));
    assert!(server.send(&packed(&["PING"])).await.is_err());
    fake.takes(Duration::ZERO, Duration::ZERO);
    let before = fake.connections();
    turns.answered(turns.ask(&server)).await;
    assert!(fake.connections() > before);
}

// One of them could go on to the primary of before, which nobody asked about.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn to_a_primary_that_sentinels_name_there_is_one_connection() {
    let (fake, sentinel) = (Fake::start().await, Fake::start().await);
    sentinel.says(1, &fake);
    let patience = Duration::from_secs(10);
    let changes = tokio::sync::watch::Sender::new(());
    let sentinels = Sentinels::new(vec![sentinel.client()], "relayers", fake.client(), patience, changes);
    let server = Arc::new(Server::new(Place::Primary(Box::new(sentinels)), patience));
    let turns = Turns::new();
    turns.answered(turns.ask(&server)).await;
    assert!(server.send(&packed(&["PING"])).await.is_ok());
    assert_eq!((turns.sockets().len(), fake.connections()), (0, 1));
}
