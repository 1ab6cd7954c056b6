//! What runs the library's tasks where the host's threads block: the one that waits for them, or else one that is
//! there for it.
//!
//! A thread that waits for an answer of a store drives the tasks itself, so that nothing has to wake it. When no
//! thread waits, or calls of an event loop are under way, the keeper does: a thread of this library.

use std::fmt;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Notify;

use super::alertness::{Alertness, is_brief};
use super::{before, boot_time, others_first};
use crate::Micros;
use crate::poison::unpoisoned;

/// The runtime of one process, which lives as long as that does.
pub struct Engine {
    tokio: Runtime,
    /// Whether the keeper drives, and how it is asked to let another do it.
    keeping: AtomicBool,
    leave: Notify,
    /// Threads that wait, and how many there were so far.
    waiting: AtomicUsize,
    waited: AtomicUsize,
    /// Calls that are under way and for which no thread waits.
    calls: AtomicUsize,
    alertness: Alertness,
    /// Whether the keeper wants to hear that no thread waits any more.
    listens: AtomicBool,
    wanted: Mutex<bool>,
    call: Condvar,
}

impl Engine {
    /// Starts the keeper.
    ///
    /// # Errors
    /// Of the system, which has no thread left.
    pub fn start() -> io::Result<&'static Self> {
        let engine: &'static Self = Box::leak(Box::new(Self {
            tokio: Builder::new_current_thread().enable_all().build()?,
            keeping: AtomicBool::new(true),
            leave: Notify::new(),
            waiting: AtomicUsize::new(0),
            waited: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            alertness: Alertness::new(),
            listens: AtomicBool::new(false),
            wanted: Mutex::new(false),
            call: Condvar::new(),
        }));
        thread::Builder::new().name("leasehold".to_owned()).spawn(|| engine.keep())?;
        Ok(engine)
    }

    /// Where tasks are spawned.
    pub fn handle(&self) -> &Handle {
        self.tokio.handle()
    }

    /// Waits for the future on this thread.
    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.waited.fetch_add(1, SeqCst);
        let alone = self.waiting.fetch_add(1, SeqCst) == 0;
        // Of several threads that wait, each would hand the tasks on to the next.
        if alone && self.keeping.load(SeqCst) && self.calls.load(SeqCst) == 0 {
            self.leave.notify_one();
        }
        let _waiting = Waiting(self);
        let began = boot_time();
        // The keeper, if it drives, has the sockets.
        let output = match alone && self.alertness.is_high() && !self.keeping.load(SeqCst) {
            true => self.tokio.block_on(looking(began, future)),
            false => self.tokio.block_on(future),
        };
        self.alertness.waited(began);
        output
    }

    /// A call begins for which no thread waits: that of an event loop.
    pub fn begin_call(&self) {
        self.calls.fetch_add(1, SeqCst);
        if !self.keeping.load(SeqCst) && self.waiting.load(SeqCst) == 0 {
            self.fetch();
        }
    }

    /// So many have ended.
    pub fn end_calls(&self, count: usize) {
        self.calls.fetch_sub(count, SeqCst);
    }

    fn keep(&self) {
        loop {
            self.keeping.store(true, SeqCst);
            self.tokio.block_on(self.leave.notified());
            self.keeping.store(false, SeqCst);
            self.rest();
        }
    }

    /// Until no thread has waited for a while, or the keeper is wanted.
    fn rest(&self) {
        let mut wanted = self.wanted();
        let mut before = usize::MAX;
        loop {
            let waited = self.waited.load(SeqCst);
            let idle = waited == before;
            if *wanted || (idle && self.waiting.load(SeqCst) == 0) {
                *wanted = false;
                return;
            }
            before = waited;
            // Some wait long: the last one then says so.
            self.listens.store(idle, SeqCst);
            let long = idle && self.waiting.load(SeqCst) > 0;
            let pause = if long { LONG } else { PAUSE };
            let woken = self.call.wait_timeout(wanted, pause);
            wanted = woken.unwrap_or_else(PoisonError::into_inner).0;
            self.listens.store(false, SeqCst);
        }
    }

    /// Has the keeper drive.
    fn fetch(&self) {
        *self.wanted() = true;
        self.call.notify_one();
    }

    fn wanted(&self) -> MutexGuard<'_, bool> {
        unpoisoned(&self.wanted)
    }
}

/// Waits for the future without sleep for a moment.
async fn looking<T>(began: Micros, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let looking = async {
        while is_brief(began) {
            // Whoever shares the processor, the store perhaps.
            thread::yield_now();
            others_first().await;
        }
    };
    match before(pin!(looking), future.as_mut()).await {
        Some(output) => output,
        None => future.await,
    }
}

/// How long the tasks may rest after a thread that waited: a program that waits in a loop is back by then.
const PAUSE: Duration = Duration::from_millis(2);
/// How often the keeper looks while a thread waits long.
const LONG: Duration = Duration::from_secs(1);

struct Waiting<'a>(&'a Engine);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let last = self.0.waiting.fetch_sub(1, SeqCst) == 1;
        if last && (self.0.listens.load(SeqCst) || self.0.calls.load(SeqCst) > 0) {
            self.0.fetch();
        }
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Engine {{ keeping: {:?}, waiting: {:?} }}", self.keeping, self.waiting)
    }
}

#[cfg(test)]
mod tests {
    use futures_channel::oneshot;

    use super::*;
    use crate::runtime::alertness::is_parallel;

    /// The thread slept, and was woken, which took longer than a near store to answer.
    #[test]
    fn a_thread_looks_for_an_answer_before_it_sleeps() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        let hour = boot_time() + 3_600 * crate::SECOND;
        // Who answers is a task of the same thread: it has turns while this looks.
        let (tell, hears) = oneshot::channel();
        runtime.spawn(async move {
            others_first().await;
            tell.send(7).expect("it waits");
        });
        assert_eq!(runtime.block_on(looking(hour, hears)), Ok(7));
        // And while it sleeps.
        let (tell, hears) = oneshot::channel();
        let answers = thread::spawn(move || tell.send(7));
        assert_eq!(runtime.block_on(looking(0, hears)), Ok(7));
        assert_eq!(answers.join().expect("no panic"), Ok(()));
    }

    #[test]
    fn what_threads_waited_tells_whether_the_next_one_looks() {
        let engine = Engine::start().expect("a thread");
        assert!(!engine.alertness.is_high());
        // On a machine that has much to do the first ones may be long.
        while is_parallel() && !engine.alertness.is_high() {
            engine.wait(async {});
        }
        engine.wait(async { thread::sleep(Duration::from_millis(1)) });
        assert!(!engine.alertness.is_high());
    }
}
