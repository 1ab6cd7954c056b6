//! Calls of a host whose code runs on one thread, in turns of an event loop: Node, asyncio.
//!
//! Their futures are polled on that thread, so that a call needs no task of its own and no way to one and
//! back. What wakes them is noted, and only the first note rings for the host. What they have to send sets out
//! when the turn ends, or when the host says so before: what waits until then travels together.

#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Wake, Waker};
use std::thread;

use rustc_hash::FxHashMap;
use tokio::runtime::Handle;

use super::BoxedFuture;
use super::alertness::{Alertness, is_brief};
use super::boot_time;
use super::host::{Host, Watched, Watcher};
use super::tasks::{holding, let_go};
use crate::Micros;
use crate::poison::unpoisoned;

/// How long one looks before the host's loop sees to all else.
const SLICE: Micros = 100;

/// The calls of one thread that are under way.
pub struct Calls<T> {
    handle: Handle,
    /// Whose turns these are, if its event loop watches sockets.
    host: Option<Host>,
    inbox: Arc<Inbox>,
    /// By number. A call that is being polled, further up on the stack, is not in its place.
    places: Mutex<FxHashMap<u64, Option<Call<T>>>>,
    begun: AtomicU64,
    alertness: Alertness,
    /// The call that is looked for.
    asked: Mutex<Option<Asked>>,
    /// The one that was polled last, and waits.
    asks: Mutex<Option<u64>>,
}

/// A call that had something sent, and has not been woken since.
struct Asked {
    number: u64,
    since: Micros,
    /// Whether the host's loop goes round for it.
    looked_for: bool,
}

/// How a call began.
#[derive(Debug)]
pub enum Begun<T> {
    /// It ended at once.
    Ended(T),
    /// It ends in a later turn. No other call ever has its number.
    UnderWay(u64),
}

/// What comes of a socket that could be read.
#[derive(Clone, Copy, Debug)]
pub struct Heard {
    /// Whether it is to be watched any longer.
    pub open: bool,
    /// Whether [`Calls::turn`] is to be called, at once: nothing rings for that.
    pub turn: bool,
}

struct Call<T> {
    future: BoxedFuture<'static, T>,
    knock: Arc<Knock>,
}

/// Wakes one call.
struct Knock {
    number: u64,
    noted: AtomicBool,
    inbox: Arc<Inbox>,
}

/// Where it is noted which calls are to be polled, from any thread.
struct Inbox {
    noted: Mutex<Noted>,
    ring: Box<dyn Fn() + Send + Sync>,
}

#[derive(Default)]
struct Noted {
    numbers: Vec<u64>,
    /// Whether a turn is under way, which looks for more before it ends.
    turning: bool,
}

impl<T: 'static> Calls<T> {
    /// Polls within the runtime of `handle`. `ring` has the host call [`Self::turn`] soon; it comes from any
    /// thread.
    pub fn new(handle: Handle, ring: impl Fn() + Send + Sync + 'static) -> Self {
        let inbox = Arc::new(Inbox { noted: Mutex::default(), ring: Box::new(ring) });
        Calls {
            handle,
            host: None,
            inbox,
            places: Mutex::default(),
            begun: AtomicU64::new(0),
            alertness: Alertness::new(),
            asked: Mutex::default(),
            asks: Mutex::default(),
        }
    }

    /// Has what these calls send answered in this thread, whose event loop watches sockets. [`Self::hear`] tells of them.
    pub fn watching(self, watcher: Arc<dyn Watcher>) -> Self {
        Calls { host: Some(Host::new(watcher)), ..self }
    }

    /// Begins a call, which must not panic. If it is under way, [`Self::turn`] is to be called before the
    /// host's turn ends.
    pub fn begin(&self, call: impl Future<Output = T> + Send + 'static) -> Begun<T> {
        let mut future: BoxedFuture<'static, T> = Box::pin(call);
        // Calls in memory end at once: what wakes a call is made for the others only, which are polled once more.
        if let Poll::Ready(output) = self.enter(&mut future, Waker::noop()) {
            self.let_go();
            return Begun::Ended(output);
        }
        let number = self.begun.fetch_add(1, Relaxed);
        let knock = Knock { number, noted: AtomicBool::new(false), inbox: self.inbox.clone() };
        self.places().insert(number, None);
        match self.poll(Call { future, knock: Arc::new(knock) }) {
            Some(output) => {
                // No turn need follow.
                self.let_go();
                Begun::Ended(output)
            }
            None => Begun::UnderWay(number),
        }
    }

    /// Polls the calls that were woken, until none is, and lets go what they have to send. Gives those that
    /// ended, by their numbers.
    pub fn turn(&self) -> Vec<(u64, T)> {
        let mut ended = Vec::new();
        let mut missed = Vec::new();
        let _turning = Turning(&self.inbox);
        loop {
            let numbers = self.inbox.next();
            if numbers.is_empty() {
                break;
            }
            for number in numbers {
                let asked = unpoisoned(&self.asked).take_if(|asked| asked.number == number);
                if let Some(asked) = asked {
                    self.alertness.waited(asked.since);
                }
                let call = self.places().get_mut(&number).map(Option::take);
                match call {
                    Some(Some(call)) => {
                        call.knock.noted.store(false, SeqCst);
                        ended.extend(self.poll(call).map(|output| (number, output)));
                    }
                    Some(None) => missed.push(number),
                    None => {}
                }
            }
        }
        // They were woken while they were polled, and are in their places later.
        missed.into_iter().for_each(|number| self.inbox.note(number));
        self.let_go();
        ended
    }

    /// Whether the host's loop is to begin to go round without sleep, as an answer may be there in a moment. Asked at the end of a turn.
    pub fn begins_to_look(&self) -> bool {
        let mut asked = unpoisoned(&self.asked);
        let Some(asked) = asked.as_mut().filter(|asked| !asked.looked_for) else { return false };
        asked.looked_for = self.alertness.is_high();
        asked.looked_for
    }

    /// Whether a loop that goes round for that is to do so again.
    pub fn looks(&self) -> bool {
        unpoisoned(&self.asked).as_ref().is_some_and(|asked| asked.looked_for && is_brief(asked.since))
    }

    /// Looks, where each round of the host's loop would take long: until a socket can be read, which this gives, until a call is woken,
    /// or until the loop is to see to all else; once only, if that is busy.
    pub fn look<'a>(&self, sockets: &'a [Arc<dyn Watched>], busy: bool) -> Option<&'a dyn Watched> {
        let end = if busy { 0 } else { boot_time() + SLICE };
        while self.looks() && unpoisoned(&self.inbox.noted).numbers.is_empty() {
            if let Some(socket) = sockets.iter().find(|socket| socket.has_come()) {
                return Some(&**socket);
            }
            if boot_time() >= end {
                return None;
            }
            // Whoever shares the processor, the store perhaps.
            thread::yield_now();
        }
        None
    }

    /// A socket that is watched can be read.
    pub fn hear(&self, socket: &dyn Watched) -> Heard {
        unpoisoned(&self.inbox.noted).turning = true;
        let turning = Turning(&self.inbox);
        let open = socket.readable();
        let mut noted = unpoisoned(&self.inbox.noted);
        noted.turning = !noted.numbers.is_empty();
        // The turn that follows ends it.
        std::mem::forget(turning);
        Heard { open, turn: noted.turning }
    }

    /// Lets go what calls have to send. A turn ends with that; for one that is alone nobody need wait for its end.
    pub fn let_go(&self) {
        let asks = unpoisoned(&self.asks).take();
        if let (true, Some(number)) = (Host::turn(self.host.as_ref(), let_go), asks) {
            let mut asked = unpoisoned(&self.asked);
            // Of many that ask one tells enough.
            if let Some(before) = asked.take_if(|asked| !is_brief(asked.since)) {
                self.alertness.waited(before.since);
            }
            asked.get_or_insert_with(|| Asked { number, since: boot_time(), looked_for: false });
        }
    }

    /// Drops a call; false if it has ended already.
    pub fn give_up(&self, number: u64) -> bool {
        let call = self.places().remove(&number);
        let is_under_way = call.is_some();
        // Not under the lock: a drop runs code.
        drop(call);
        if is_under_way {
            self.asks_no_more(number);
            unpoisoned(&self.asked).take_if(|asked| asked.number == number);
            self.let_go();
        }
        is_under_way
    }

    /// How many calls are under way.
    pub fn len(&self) -> usize {
        self.places().len()
    }

    /// Whether no call is under way.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn poll(&self, mut call: Call<T>) -> Option<T> {
        let number = call.knock.number;
        let waker = Waker::from(call.knock.clone());
        let polled = self.enter(&mut call.future, &waker);
        let mut places = self.places();
        match polled {
            Poll::Ready(output) => {
                let given_up = places.remove(&number).is_none();
                drop(places);
                self.asks_no_more(number);
                (!given_up).then_some(output)
            }
            Poll::Pending => {
                let given_up = match places.get_mut(&number) {
                    Some(place) => place.replace(call),
                    None => Some(call),
                };
                drop(places);
                if given_up.is_none() {
                    *unpoisoned(&self.asks) = Some(number);
                }
                drop(given_up);
                None
            }
        }
    }

    fn enter(&self, future: &mut BoxedFuture<'static, T>, waker: &Waker) -> Poll<T> {
        let _entered = self.handle.enter();
        let poll = || holding(|| future.as_mut().poll(&mut Context::from_waker(waker)));
        Host::turn(self.host.as_ref(), poll)
    }

    fn asks_no_more(&self, number: u64) {
        unpoisoned(&self.asks).take_if(|asks| *asks == number);
    }

    fn places(&self) -> MutexGuard<'_, FxHashMap<u64, Option<Call<T>>>> {
        unpoisoned(&self.places)
    }
}

impl<T> fmt::Debug for Calls<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Calls")
    }
}

impl Wake for Knock {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.noted.swap(true, SeqCst) {
            self.inbox.note(self.number);
        }
    }
}

impl Inbox {
    fn note(&self, number: u64) {
        let mut noted = unpoisoned(&self.noted);
        noted.numbers.push(number);
        let rings = noted.numbers.len() == 1 && !noted.turning;
        drop(noted);
        if rings {
            (self.ring)();
        }
    }

    /// What was noted; the turn ends if that is nothing.
    fn next(&self) -> Vec<u64> {
        let mut noted = unpoisoned(&self.noted);
        noted.turning = !noted.numbers.is_empty();
        std::mem::take(&mut noted.numbers)
    }
}

/// Ends a turn that is left by a panic: another is to see to what was noted in it.
struct Turning<'a>(&'a Inbox);

impl Drop for Turning<'_> {
    fn drop(&mut self) {
        let mut noted = unpoisoned(&self.0.noted);
        let left = std::mem::replace(&mut noted.turning, false) && !noted.numbers.is_empty();
        drop(noted);
        if left {
            (self.0.ring)();
        }
    }
}
