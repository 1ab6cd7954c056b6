//! Messages of the server: one connection for all channels of a transport, made when the first is wanted.

use std::collections::HashMap;
use std::sync::atomic::{
    AtomicBool, Ordering::AcqRel, Ordering::Acquire, Ordering::Release, Ordering::SeqCst,
};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use ::redis::aio::{PubSubSink, PubSubStream};
use ::redis::{Client, ConnectionAddr, Msg, Value};
use futures_util::StreamExt;
use futures_util::future::select;
use tokio::sync::Mutex as AsyncMutex;
use tokio::task::AbortHandle;

use super::server::describe;
use super::{Servers, at};
use crate::client::BoxedFuture;
use crate::poison::unpoisoned;
use crate::store::redis::transport::TransportError;
use crate::store::redis::wire::heard;
use crate::store::{Listener, Watch};

/// The longest pause before a lost connection is made anew.
const PAUSE: Duration = Duration::from_secs(1);
/// How long making a connection or subscribing may take.
const LIMIT: Duration = Duration::from_secs(2);
/// How often it is asked whether the server at the other end is there, and how long it may take to say so: of one that hangs
/// the system goes on to acknowledge what it is sent. One that was busy for a while is not left for that.
const BEAT: Duration = Duration::from_secs(5);
/// After how many such questions another node is asked whether the one at the other end is in the cluster.
const LOOK: u32 = 6;

pub(super) struct Subscriptions {
    shared: Arc<Shared>,
}

struct Shared {
    servers: Arc<Servers>,
    handle: tokio::runtime::Handle,
    channels: Mutex<HashMap<String, Vec<(u64, Listener)>>>,
    next: Mutex<u64>,
    link: AsyncMutex<Option<Link>>,
    /// Whether somebody makes a lost connection anew: one is enough, however many find it lost.
    reconnects: AtomicBool,
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
        unpoisoned(&shared.channels).entry(channel.clone()).or_default().push((number, listener));
        // From here on the listener goes when the subscription does, whatever fails.
        let subscription = Subscription { shared: shared.clone(), channel: channel.clone(), number };
        let mut link = shared.link.lock().await;
        let done = match link.as_mut().filter(|link| !link.is_over()) {
            Some(link) => within(link.sink.subscribe(&channel)).await,
            None => shared.connect().await.map(|made| *link = Some(made)),
        };
        if done.is_err() {
            *link = None;
            // Nobody would notice that the others' connection is gone with this one.
            shared.handle.spawn(reconnect(Arc::downgrade(shared)));
        }
        done.map(|()| Watch::new(subscription))
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

    /// Makes the connection, subscribes to every channel that is wanted, and starts to listen.
    async fn connect(self: &Arc<Self>) -> Result<Link, TransportError> {
        let changes = self.servers.changes.subscribe();
        let client = self.servers.listens_at().await?;
        let (sink, stream) = match self.listen(&client).await {
            Ok(listening) => {
                self.servers.reached(at(&client));
                listening
            }
            Err(error) => {
                self.servers.fail(at(&client));
                return Err(error);
            }
        };
        // A server that hangs closes nothing.
        let left = self.servers.clone().is_left(at(&client).clone(), changes);
        let silent = falls_silent(self.servers.clone(), at(&client).clone(), sink.clone());
        let mut stream = stream.take_until(select(Box::pin(left), Box::pin(silent)));
        let (shared, over) = (Arc::downgrade(self), Arc::new(AtomicBool::new(false)));
        let (handle, lost) = (self.handle.clone(), over.clone());
        let listener = self.handle.spawn(async move {
            while let Some(message) = stream.next().await {
                let Some(shared) = shared.upgrade() else { return };
                shared.tell(&message);
            }
            // A task of its own: this one ends with the link that is replaced.
            lost.store(true, Release);
            handle.spawn(reconnect(shared));
        });
        Ok(Link { sink, listener: listener.abort_handle(), over })
    }

    async fn listen(&self, client: &Client) -> Result<(PubSubSink, PubSubStream), TransportError> {
        let (mut sink, stream) = within(client.get_async_pubsub()).await?.split();
        let channels: Vec<String> = unpoisoned(&self.channels).keys().cloned().collect();
        for channel in &channels {
            within(sink.subscribe(channel)).await?;
        }
        Ok((sink, stream))
    }

    fn tell(&self, message: &Msg) {
        let calls = heard(&message.get_payload::<String>().unwrap_or_default());
        let listeners: Vec<Listener> = {
            let channels = unpoisoned(&self.channels);
            let listeners = channels.get(message.get_channel_name()).into_iter().flatten();
            listeners.map(|(_, listener)| listener.clone()).collect()
        };
        listeners.iter().for_each(|listener| listener(calls.as_ref()));
    }

    fn tell_all(&self) {
        let listeners: Vec<Listener> =
            unpoisoned(&self.channels).values().flatten().map(|(_, listener)| listener.clone()).collect();
        listeners.iter().for_each(|listener| listener(None));
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
        let mut pause = Duration::from_millis(20);
        if shared.upgrade().is_none_or(|shared| shared.reconnects.swap(true, AcqRel)) {
            return;
        }
        while let Some(shared) = shared.upgrade() {
            let mut link = shared.link.lock().await;
            // Unless a new subscriber was faster.
            if link.as_ref().is_none_or(Link::is_over) {
                *link = None;
                if !unpoisoned(&shared.channels).is_empty() {
                    *link = shared.connect().await.ok();
                }
            }
            if link.is_some() || unpoisoned(&shared.channels).is_empty() {
                shared.reconnects.store(false, Release);
                // Whoever found it lost before that left it to this one.
                let lost = link.as_ref().is_some_and(Link::is_over);
                drop(link);
                if lost {
                    shared.handle.spawn(reconnect(Arc::downgrade(&shared)));
                }
                // Messages were lost with the connection.
                return shared.tell_all();
            }
            drop(link);
            drop(shared);
            tokio::time::sleep(pause).await;
            pause = PAUSE.min(pause * 2);
        }
    })
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
            let Some(listeners) = channels.get_mut(&self.channel) else { return };
            listeners.retain(|(number, _)| *number != self.number);
            listeners.is_empty() && channels.remove(&self.channel).is_some()
        };
        if emptied {
            let (shared, channel) = (self.shared.clone(), std::mem::take(&mut self.channel));
            self.shared.handle.spawn(async move {
                let mut link = shared.link.lock().await;
                let wanted = unpoisoned(&shared.channels).contains_key(&channel);
                if let (Some(open), false) = (&mut *link, wanted) {
                    // A connection that is lost has no subscriptions either, but others are to have theirs.
                    if within(open.sink.unsubscribe(&channel)).await.is_err() {
                        *link = None;
                        shared.handle.spawn(reconnect(Arc::downgrade(&shared)));
                    }
                }
                shared.rest(&mut link);
            });
        }
    }
}

async fn within<T>(work: impl Future<Output = ::redis::RedisResult<T>>) -> Result<T, TransportError> {
    match tokio::time::timeout(LIMIT, work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(TransportError::NotSent(describe(&error))),
        Err(_) => Err(TransportError::NotSent("the server did not answer in time".to_owned())),
    }
}
