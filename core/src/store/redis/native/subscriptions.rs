//! Messages of the server: one connection for all channels of a transport, made when the first is wanted.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::{
    AtomicBool, AtomicU32, Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed, Ordering::Release,
    Ordering::SeqCst,
};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use ::redis::aio::{PubSubSink, PubSubStream};
use ::redis::{Client, ConnectionAddr, Msg, RedisError, RedisResult, Value};
use futures_util::StreamExt;
use futures_util::future::{join_all, poll_immediate, select};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard};
use tokio::task::AbortHandle;
use tokio::time::error::Elapsed;

use super::connection::messages;
use super::server::{LIMIT, SILENT, describe};
use super::{Servers, at};
use crate::poison::unpoisoned;
use crate::runtime::{BoxedFuture, boot_time};
use crate::store::redis::transport::TransportError;
use crate::store::redis::wire::heard;
use crate::store::{Listener, Watch};

/// The first and the longest pause before a lost connection is made anew where that fails. One that did not last for the longest is made
/// anew after up to eight times the first.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));
/// How often it is asked whether the server at the other end is there, and how long it may take to say so: of one that hangs
/// the system goes on to acknowledge what it is sent. One that was busy for a while is not left for that.
const BEAT: Duration = Duration::from_secs(5);
/// How many channels are subscribed to by one command: a server does nothing else meanwhile.
const CHANNELS: usize = 500;
/// After how many such questions another node is asked whether the one at the other end is in the cluster.
const LOOK: u32 = 6;

pub(super) struct Subscriptions {
    shared: Arc<Shared>,
}

struct Shared {
    servers: Arc<Servers>,
    handle: tokio::runtime::Handle,
    channels: Mutex<HashMap<String, Channel>>,
    next: Mutex<u64>,
    link: AsyncMutex<Option<Link>>,
    /// Whether somebody makes a lost connection anew: one is enough, however many find it lost.
    reconnects: AtomicBool,
    /// How many connections in a row did not last: each that is made has all who listen ask their store anew.
    brief: AtomicU32,
}

/// What is wanted of a channel.
#[derive(Default)]
struct Channel {
    listeners: Vec<(u64, Listener)>,
    /// Whether what is sent there is heard, or will be as soon as a connection that was lost just now is made anew.
    hears: Arc<AtomicBool>,
}

/// The connection; it ends with this value.
struct Link {
    sink: PubSubSink,
    listener: AbortHandle,
    /// Whether the connection was lost, or is of no use any more.
    over: Arc<AtomicBool>,
}

struct Subscription {
    shared: Arc<Shared>,
    channel: String,
    number: u64,
}

impl Subscriptions {
    pub fn new(servers: Arc<Servers>, handle: tokio::runtime::Handle) -> Self {
        let (channels, next) = (Mutex::default(), Mutex::default());
        Subscriptions {
            shared: Arc::new(Shared {
                servers,
                handle,
                channels,
                next,
                link: AsyncMutex::default(),
                reconnects: AtomicBool::new(false),
                brief: AtomicU32::new(0),
            }),
        }
    }

    pub async fn subscribe(&self, channel: String, listener: Listener) -> Result<Watch, TransportError> {
        let shared = &self.shared;
        let number = {
            let mut next = unpoisoned(&shared.next);
            *next += 1;
            *next
        };
        let hears = {
            let mut channels = unpoisoned(&shared.channels);
            let wanted = channels.entry(channel.clone()).or_default();
            wanted.listeners.push((number, listener));
            wanted.hears.clone()
        };
        // From here on the listener goes when the subscription does, whatever fails.
        let subscription = Subscription { shared: shared.clone(), channel: channel.clone(), number };
        let gone = || TransportError::NotSent("the connection for messages is made no more".to_owned());
        let mut link = shared.link.lock().await;
        if link.as_ref().is_none_or(Link::is_over) {
            drop(link);
            // In a task of its own: to connect to one that is far may take longer than is waited for it, and is of use to the next
            // who asks. It subscribes to all channels that are wanted, which this one is by now.
            let task = shared.handle.spawn(shared.clone().join());
            task.await.unwrap_or_else(|_| Err(gone()))?;
            if hears.load(Acquire) {
                return Ok(Watch::new(subscription).while_it_hears(hears));
            }
            // This one was refused, and the server says why.
            link = shared.link.lock().await;
        }
        let open = link.as_ref().ok_or_else(gone)?;
        let (mut sink, over) = (open.sink.clone(), open.over.clone());
        shared.ask(link, &over, sink.subscribe(&channel)).await?;
        hears.store(true, Release);
        Ok(Watch::new(subscription).while_it_hears(hears))
    }

    /// Closes the connection, if nobody wants a channel any more.
    pub fn close(&self) {
        let shared = self.shared.clone();
        self.shared.handle.spawn(async move { shared.rest(&mut *shared.link.lock().await) });
    }
}

impl Shared {
    /// Closes a connection of which nobody is to want a channel any more.
    fn rest(&self, link: &mut Option<Link>) {
        if self.servers.closed.load(SeqCst) && unpoisoned(&self.channels).is_empty() {
            *link = None;
        }
    }

    /// Sends this over the link, in the order in which who asks has it, and waits for the answer without keeping others from it.
    /// Without one the link is lost; that the server refuses it is one.
    async fn ask(
        self: &Arc<Self>,
        link: MutexGuard<'_, Option<Link>>,
        over: &AtomicBool,
        question: impl Future<Output = RedisResult<()>>,
    ) -> Result<(), TransportError> {
        let mut answer = pin!(tokio::time::timeout(LIMIT, question));
        // The first step sends it.
        let begun = poll_immediate(answer.as_mut()).await;
        drop(link);
        let answer = match begun {
            Some(answer) => answer,
            None => answer.await,
        };
        let refused = matches!(&answer, Ok(Err(error)) if is_refusal(error));
        in_time(answer).inspect_err(|_| {
            if !refused {
                over.store(true, Release);
                self.mend();
            }
        })
    }

    /// Has a lost connection made anew.
    fn mend(self: &Arc<Self>) {
        self.handle.spawn(reconnect(Arc::downgrade(self)));
    }

    /// Has a connection, which somebody may have made meanwhile.
    async fn join(self: Arc<Self>) -> Result<(), TransportError> {
        let mut link = self.link.lock().await;
        if link.as_ref().is_none_or(Link::is_over) {
            // Nobody would notice that the others' connection is gone with this one.
            *link = Some(self.connect().await.inspect_err(|_| self.mend())?);
        }
        Ok(())
    }

    /// Makes the connection, subscribes to every channel that is wanted, and starts to listen.
    async fn connect(self: &Arc<Self>) -> Result<Link, TransportError> {
        let changes = self.servers.changes.subscribe();
        let client = self.servers.listens_at().await?;
        let listening = self.listen(&client).await.inspect_err(|_| self.servers.fail(at(&client)))?;
        self.servers.reached(at(&client));
        let (sink, stream) = in_time(Ok(listening))?;
        // A server that hangs closes nothing.
        let left = self.servers.clone().is_left(at(&client).clone(), changes);
        let silent = falls_silent(self.servers.clone(), at(&client).clone(), sink.clone());
        let mut stream = stream.take_until(select(Box::pin(left), Box::pin(silent)));
        let (shared, over) = (Arc::downgrade(self), Arc::new(AtomicBool::new(false)));
        let (handle, lost, began) = (self.handle.clone(), over.clone(), boot_time());
        let listener = self.handle.spawn(async move {
            while let Some(message) = stream.next().await {
                let Some(shared) = shared.upgrade() else { return };
                shared.tell(&message);
            }
            if let Some(shared) = shared.upgrade() {
                let brief = Duration::from_micros(boot_time() - began) < PAUSES.1;
                shared.brief.store(if brief { shared.brief.load(Relaxed) + 1 } else { 0 }, Relaxed);
            }
            // A task of its own: this one ends with the link that is replaced.
            lost.store(true, Release);
            handle.spawn(reconnect(shared));
        });
        Ok(Link { sink, listener: listener.abort_handle(), over })
    }

    /// Listens there to whatever it is not refused, or is refused all: a server that says so is there, and serves.
    async fn listen(
        &self,
        client: &Client,
    ) -> Result<RedisResult<(PubSubSink, PubSubStream)>, TransportError> {
        let (sink, stream) = within(messages(client)).await?.split();
        let channels: Vec<String> = unpoisoned(&self.channels).keys().cloned().collect();
        let (mut hears, mut refusal) = (false, None);
        for some in channels.chunks(CHANNELS) {
            for (channel, answer) in some.iter().zip(ask_for(&sink, some).await?) {
                self.note_heard(channel, answer.is_ok());
                match answer {
                    Ok(()) => hears = true,
                    Err(error) => refusal = Some(error),
                }
            }
        }
        Ok(match refusal {
            Some(refusal) if !hears => Err(refusal),
            _ => Ok((sink, stream)),
        })
    }

    /// Whether what is sent to this channel is heard from now on.
    fn note_heard(&self, channel: &str, hears: bool) {
        if let Some(channel) = unpoisoned(&self.channels).get(channel) {
            channel.hears.store(hears, Release);
        }
    }

    fn tell(&self, message: &Msg) {
        let calls = heard(&message.get_payload::<String>().unwrap_or_default());
        let listeners: Vec<Listener> = {
            let channels = unpoisoned(&self.channels);
            let wanted = channels.get(message.get_channel_name());
            wanted.into_iter().flat_map(Channel::listeners).collect()
        };
        listeners.iter().for_each(|listener| listener(calls.as_ref()));
    }

    /// Tells those of these channels that messages may have been lost.
    fn tell_those(&self, of: impl Fn(&Channel) -> bool) {
        let listeners: Vec<Listener> = {
            let channels = unpoisoned(&self.channels);
            channels.values().filter(|channel| of(channel)).flat_map(Channel::listeners).collect()
        };
        listeners.iter().for_each(|listener| listener(None));
    }

    /// The connection could not be made anew: who goes on to wait for messages would miss what they say, and asks instead. They are told
    /// so once.
    fn fall_deaf(&self) {
        self.tell_those(|channel| channel.hears.swap(false, AcqRel));
    }
}

/// Ends when the server at the other end does not say any more that it is there.
async fn falls_silent(servers: Arc<Servers>, place: ConnectionAddr, mut sink: PubSubSink) {
    for beat in 1u32.. {
        tokio::time::sleep(BEAT).await;
        // An error is an answer too; if it is that of the connection, this ends by itself.
        if tokio::time::timeout(BEAT, sink.ping::<Value>()).await.is_err() {
            break;
        }
        if beat % LOOK == 0 {
            servers.look(&place).await;
        }
    }
    servers.fail(&place);
}

/// Makes a lost connection anew, for as long as somebody wants a channel; unless another does so already.
fn reconnect(shared: Weak<Shared>) -> BoxedFuture<'static, ()> {
    Box::pin(async move {
        let (mut pause, longest) = PAUSES;
        let brief = match shared.upgrade() {
            Some(shared) if !shared.reconnects.swap(true, AcqRel) => shared.brief.load(Relaxed),
            _ => return,
        };
        if brief > 0 {
            pause *= 1 << brief.min(3);
            tokio::time::sleep(pause).await;
        }
        while let Some(shared) = shared.upgrade() {
            let mut link = shared.link.lock().await;
            // Unless a new subscriber was faster.
            if link.as_ref().is_none_or(Link::is_over) {
                *link = None;
                if !unpoisoned(&shared.channels).is_empty() {
                    *link = shared.connect().await.ok();
                }
                if link.is_none() {
                    shared.fall_deaf();
                }
            }
            if link.is_some() || unpoisoned(&shared.channels).is_empty() {
                // Whoever found it lost before that left it to this one, which is to see what that has seen.
                shared.reconnects.swap(false, AcqRel);
                let lost = link.as_ref().is_some_and(Link::is_over);
                drop(link);
                if lost {
                    shared.mend();
                }
                // Messages were lost with the connection.
                return shared.tell_those(|_| true);
            }
            drop(link);
            drop(shared);
            tokio::time::sleep(pause).await;
            pause = longest.min(pause * 2);
        }
    })
}

impl Channel {
    fn listeners(&self) -> impl Iterator<Item = Listener> {
        self.listeners.iter().map(|(_, listener)| listener.clone())
    }
}

impl Link {
    fn is_over(&self) -> bool {
        self.over.load(Acquire)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        // The connection lives as long as its listener, whoever has its other end.
        self.listener.abort();
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let emptied = {
            let mut channels = unpoisoned(&self.shared.channels);
            let Some(Channel { listeners, .. }) = channels.get_mut(&self.channel) else { return };
            listeners.retain(|(number, _)| *number != self.number);
            listeners.is_empty() && channels.remove(&self.channel).is_some()
        };
        if emptied {
            let (shared, channel) = (self.shared.clone(), std::mem::take(&mut self.channel));
            self.shared.handle.spawn(async move {
                let mut link = shared.link.lock().await;
                shared.rest(&mut link);
                let wanted = unpoisoned(&shared.channels).contains_key(&channel);
                if let (Some(open), false) = (&*link, wanted) {
                    let (mut sink, over) = (open.sink.clone(), open.over.clone());
                    // A connection that is lost has no subscriptions either, but others are to have theirs.
                    let _ = shared.ask(link, &over, sink.unsubscribe(&channel)).await;
                }
            });
        }
    }
}

/// Subscribes to these channels. Gives what the server says to each: nothing, or that it refuses it.
async fn ask_for(sink: &PubSubSink, channels: &[String]) -> Result<Vec<RedisResult<()>>, TransportError> {
    let together = tokio::time::timeout(LIMIT, sink.clone().subscribe(channels)).await;
    if !matches!(&together, Ok(Err(error)) if is_refusal(error)) {
        in_time(together)?;
        return Ok(channels.iter().map(|_| Ok(())).collect());
    }
    // Of several one may be refused, and the others are not to go without for that.
    let each = channels.iter().map(|channel| {
        let mut sink = sink.clone();
        async move { sink.subscribe(channel).await }
    });
    let answers = in_time(tokio::time::timeout(LIMIT, join_all(each)).await.map(Ok))?;
    let said = |answer| match answer {
        Err(error) if is_refusal(&error) => Ok(Err(error)),
        answer => in_time(Ok(answer)).map(Ok),
    };
    answers.into_iter().map(said).collect()
}

/// Whether that is what the server itself says.
fn is_refusal(error: &RedisError) -> bool {
    error.code().is_some()
}

async fn within<T>(work: impl Future<Output = RedisResult<T>>) -> Result<T, TransportError> {
    in_time(tokio::time::timeout(LIMIT, work).await)
}

fn in_time<T>(answer: Result<RedisResult<T>, Elapsed>) -> Result<T, TransportError> {
    match answer {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(TransportError::NotSent(describe(&error))),
        Err(_) => Err(TransportError::NotSent(SILENT.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::try_join;
    use tokio::runtime::Handle;
    use tokio::sync::Notify;

    use super::*;
    use crate::SECOND;
    use crate::store::redis::native::fake::Fake;
    use crate::store::redis::native::{NativeTransport, RedisUrl, Way};
    use crate::store::redis::transport::{Resp, Transport};

    async fn transport() -> (Fake, NativeTransport) {
        let fake = Fake::start().await;
        let url = RedisUrl::new(&format!("redis://127.0.0.1:{}", fake.port)).unwrap();
        (fake, NativeTransport::new(url, Handle::current(), 10 * SECOND))
    }

    /// Somebody listens, who rings this.
    async fn told_of(transport: &NativeTransport) -> (Arc<Notify>, Watch) {
        let told = Arc::new(Notify::new());
        let listener = told.clone();
        let watch = transport.subscribe("pool".to_owned(), Arc::new(move |_| listener.notify_one())).await;
        (told, watch.unwrap().expect("it is heard"))
    }

    /// A command of a slot.
    async fn write(transport: &NativeTransport) -> Result<Resp, TransportError> {
        transport.send(["EVALSHA", "digest", "1", "key"].map(str::to_owned).to_vec()).await
    }

    async fn is_refused(transport: &NativeTransport, channel: &str) {
        let refused = transport.subscribe(channel.to_owned(), Arc::new(|_| ())).await.map(drop);
        assert!(
            matches!(&refused, Err(TransportError::NotSent(text)) if text.contains("NOPERM")),
            "{refused:?}"
        );
    }

    // It was dropped with whoever waited for it no longer, and begun anew by the next for ever.
    #[tokio::test]
    async fn a_connection_that_takes_longer_than_it_is_waited_for_is_there_for_the_next() {
        let (fake, transport) = transport().await;
        fake.takes(Duration::from_secs(1), Duration::ZERO);
        let mut given_up = 0;
        let watch = loop {
            let subscribed = transport.subscribe("pool".to_owned(), Arc::new(|_| {}));
            match tokio::time::timeout(Duration::from_millis(500), subscribed).await {
                Ok(watch) => break watch,
                Err(_) => given_up += 1,
            }
            assert!(given_up < 9);
        };
        assert!(watch.unwrap().is_some());
        assert!(given_up > 0, "nobody waits for longer");
        assert_eq!(fake.connections(), 1);
    }

    // Each channel took a round trip, and nobody else could subscribe before the last.
    #[tokio::test]
    async fn all_channels_of_a_lost_connection_are_subscribed_to_at_once() {
        let (fake, transport) = transport().await;
        let told = Arc::new(Notify::new());
        let listens = |channel: usize| {
            let told = told.clone();
            transport.subscribe(channel.to_string(), Arc::new(move |_| told.notify_one()))
        };
        let watches = join_all((0..9).map(listens)).await;
        assert!(watches.iter().all(|watch| matches!(watch, Ok(Some(_)))));
        let before = fake.subscribes();
        fake.hangs_up();
        tokio::time::timeout(Duration::from_secs(20), told.notified()).await.expect("a new connection");
        assert_eq!(fake.subscribes() - before, 1);
    }

    // Who waited for the answer kept all others from asking, and pools gave up in the queue.
    #[tokio::test]
    async fn who_subscribes_waits_for_the_answer_to_nobody_else() {
        let (fake, transport) = transport().await;
        let subscribe = async |channel: &str| transport.subscribe(channel.to_owned(), Arc::new(|_| ())).await;
        let first = subscribe("a").await.unwrap();
        fake.confirms_after(3);
        drop(first);
        assert!(try_join(subscribe("b"), subscribe("c")).await.is_ok());
    }

    // It was taken for a lost connection: all others heard nothing until there was another.
    #[tokio::test]
    async fn a_channel_that_is_refused_costs_the_others_nothing() {
        let (fake, transport) = transport().await;
        let subscribe = async |channel: &str| transport.subscribe(channel.to_owned(), Arc::new(|_| ())).await;
        let _first = subscribe("a").await.unwrap();
        let before = fake.connections();
        is_refused(&transport, "denied").await;
        let _second = subscribe("b").await.unwrap();
        assert_eq!(fake.connections(), before);
    }

    // None of them was heard: they are subscribed to together, and one more was refused than before.
    #[tokio::test]
    async fn a_channel_that_is_refused_later_leaves_the_others_heard() {
        let (fake, transport) = transport().await;
        let told = Arc::new(Notify::new());
        let listen = async |channel: &str| {
            let told = told.clone();
            let listener: Listener = Arc::new(move |_| told.notify_one());
            transport.subscribe(channel.to_owned(), listener).await.unwrap().unwrap()
        };
        let (one, other) = (listen("a").await, listen("b").await);
        fake.denies("b");
        fake.hangs_up();
        // First perhaps that there is none.
        let heard = async {
            while !one.hears() || other.hears() {
                told.notified().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), heard).await.expect("a new connection");
        is_refused(&transport, "b").await;
        fake.denies("nothing");
        let again = listen("b").await;
        assert!(one.hears() && other.hears() && again.hears());
    }

    // Whoever makes the connection for all of them took it for heard.
    #[tokio::test]
    async fn who_is_refused_a_channel_as_it_makes_the_connection_for_all_is_told_so() {
        let (fake, transport) = transport().await;
        let _one = transport.subscribe("a".to_owned(), Arc::new(|_| ())).await.unwrap().unwrap();
        *transport.shared.subscriptions.shared.link.lock().await = None;
        fake.denies("b");
        is_refused(&transport, "b").await;
    }

    // It was taken for a failed node, and whoever had no channels sent each command of its pool elsewhere first.
    #[tokio::test]
    async fn a_node_that_refuses_a_channel_goes_on_to_be_asked() {
        let nodes = [Fake::start().await, Fake::start().await];
        nodes[1].names(&nodes[0]);
        let url = format!("redis+cluster://127.0.0.1:{},127.0.0.1:{}", nodes[0].port, nodes[1].port);
        let transport = NativeTransport::new(RedisUrl::new(&url).unwrap(), Handle::current(), 10 * SECOND);
        let write = || write(&transport);
        write().await.unwrap();
        is_refused(&transport, "denied").await;
        let Way::Cluster(cluster) = &transport.shared.servers.way else { panic!() };
        assert!(!cluster.left(at(&nodes[0].client())), "it serves");
        write().await.unwrap();
        assert_eq!([nodes[0].writes(), nodes[1].writes()], [2, 0]);
    }

    // Nobody noticed: who waited for messages missed each until there was a connection again.
    #[tokio::test]
    async fn who_listens_is_told_once_that_a_lost_connection_cannot_be_made_anew_and_when_it_is() {
        let (fake, transport) = transport().await;
        let (told, times) = (Arc::new(Notify::new()), Arc::new(AtomicU32::new(0)));
        let (listener, counts) = (told.clone(), times.clone());
        let listener: Listener = Arc::new(move |_| {
            counts.fetch_add(1, Relaxed);
            listener.notify_one();
        });
        let watch = transport.subscribe("pool".to_owned(), listener).await.unwrap().unwrap();
        assert!(watch.hears());
        let before = fake.connections();
        fake.goes();
        tokio::time::timeout(Duration::from_secs(20), told.notified()).await.expect("it is told");
        assert!(!watch.hears());
        // It is tried again, and again in vain.
        while fake.turned_away() < 3 {
            tokio::task::yield_now().await;
        }
        assert_eq!((times.load(Relaxed), fake.connections()), (1, before));
        fake.comes_back();
        tokio::time::timeout(Duration::from_secs(20), told.notified()).await.expect("it is told");
        assert!(watch.hears());
        assert_eq!(times.load(Relaxed), 2);
    }

    // It was made anew as fast as a server could close it, and each time all who waited asked their store.
    #[tokio::test]
    async fn a_connection_that_is_closed_each_time_is_made_less_and_less_often() {
        let (fake, transport) = transport().await;
        let closes = fake.clone();
        let watch = transport.subscribe("pool".to_owned(), Arc::new(move |_| closes.hangs_up())).await;
        assert!(matches!(watch, Ok(Some(_))));
        fake.hangs_up();
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        let connections = fake.connections();
        assert!((2..20).contains(&connections), "{connections}");
    }

    // Messages of the server that was left were listened to for ever: it may have been cut off from the next.
    #[tokio::test]
    async fn where_an_address_leads_elsewhere_it_is_listened_anew_once_that_serves() {
        let (fake, transport) = transport().await;
        let (told, _watch) = told_of(&transport).await;
        let write = || write(&transport);
        write().await.unwrap();
        let before = fake.subscribes();
        fake.refuses("READONLY You can't write against a read only replica.");
        for _ in 0..3 {
            assert!(matches!(write().await, Ok(Resp::Error(_))));
        }
        assert_eq!(fake.subscribes(), before, "nobody serves there yet");
        fake.refuses_no_more();
        write().await.unwrap();
        tokio::time::timeout(Duration::from_secs(20), told.notified()).await.expect("a new connection");
        assert_eq!(fake.subscribes() - before, 1);
        write().await.unwrap();
        assert_eq!(fake.subscribes() - before, 1, "once is enough");
    }

    // Only an answer that told of it was heeded. Whoever had the address before may go on to serve, or not, and its messages were listened
    // to while commands went to the next.
    #[tokio::test]
    async fn where_the_connection_for_commands_was_closed_it_is_listened_anew_as_the_next_serves() {
        let (fake, transport) = transport().await;
        let (told, _watch) = told_of(&transport).await;
        let write = || write(&transport);
        for _ in 0..3 {
            write().await.unwrap();
            let before = fake.subscribes();
            transport.send(vec!["QUIT".to_owned()]).await.unwrap();
            // It may not be known yet that it is closed.
            while write().await.is_err() {}
            tokio::time::timeout(Duration::from_secs(20), told.notified()).await.expect("a new connection");
            assert_eq!(fake.subscribes() - before, 1);
        }
    }
}
