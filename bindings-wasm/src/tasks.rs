//! Futures, run in turns that the face gives, and woken by timers and promises that the face watches.

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use js_sys::Array;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::lease::Granted;
#[cfg(feature = "full")]
use crate::limit::Reserved;
use crate::lock::facts;
use crate::shelf::Shelf;
use crate::things::HostLocked;
#[cfg(feature = "full")]
use crate::things::HostSelection;
#[cfg(feature = "full")]
use crate::tokens;
use crate::{entered, host};

/// What a call resolves to. Becomes a JavaScript value only when it is sure that the caller takes it.
pub enum Answer {
    Nothing,
    Number(u32),
    Value(JsValue),
    Lease(Granted),
    Leases(Vec<Granted>),
    Lock(HostLocked),
    #[cfg(feature = "full")]
    Reservation(Reserved),
    #[cfg(feature = "full")]
    Selection(HostSelection),
}

/// The work of a call that the face knows by a number.
pub type Work = Pin<Box<dyn Future<Output = Result<Answer, Failure>>>>;

/// Runs a call, which the face is told the end of; the number of its task, for `cancel`.
pub fn call(number: u32, work: Work) -> u32 {
    run(Box::pin(async move {
        let result = work.await;
        // What comes to a call that was given up is dropped unconverted, which gives it back.
        if TASKS.with(|tasks| tasks.given_up.get()) {
            return;
        }
        match result {
            Ok(answer) => host::answer(number, true, &answer.into()),
            Err(failure) => host::answer(number, false, &failure.into()),
        }
    }))
}

/// Runs a future that nobody waits for.
pub fn spawn(work: impl Future<Output = ()> + 'static) {
    run(Box::pin(work));
}

/// How many tasks have not ended.
#[cfg(feature = "trial")]
pub fn under_way() -> u32 {
    TASKS.with(|tasks| tasks.futures.len())
}

/// Gives up a call that has not ended. Called by the face.
#[wasm_bindgen]
pub fn cancel(task: u32) {
    entered();
    TASKS.with(|tasks| {
        if tasks.current.get() == Some(task) {
            // It has its turn just now, and called the caller's own code; it is dropped at its end.
            tasks.given_up.set(true);
        } else if let Some(future) = tasks.futures.take(task) {
            // Its end may begin other tasks.
            drop(future);
        }
    });
}

/// Waits on the host's clock, in the background: the process may end meanwhile.
pub async fn sleep(milliseconds: f64) {
    let deadline = host::now() + milliseconds;
    // A timer may ring early, and none can be set for more than 24 days.
    loop {
        let left = deadline - host::now();
        if left <= 0.0 {
            return;
        }
        let watch = Watch::new();
        host::set_timer(watch.0, left);
        let _ = watch.await;
    }
}

/// What becomes of a promise, or of any other value at once.
pub async fn settled(promise: &JsValue) -> Result<JsValue, JsValue> {
    let watch = Watch::new();
    host::watch(watch.0, promise);
    watch.await
}

/// Gives a task that was woken one turn; true if it has ended. Called by the face.
#[wasm_bindgen(js_name = runTask)]
pub fn run_task(number: u32) -> bool {
    entered();
    TASKS.with(|tasks| {
        let Some(mut future) = tasks.futures.lift(number) else { return true };
        let waker = Waker::from(Arc::new(Bell(number)));
        tasks.current.set(Some(number));
        let pending = future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending();
        tasks.current.set(None);
        let ended = tasks.given_up.take() || !pending;
        if ended {
            tasks.futures.free(number);
        } else {
            tasks.futures.lay(number, future);
        }
        ended
    })
}

/// Tells what became of a timer or a promise. Called by the face.
#[wasm_bindgen]
pub fn settle(number: u32, fulfilled: bool, value: JsValue) {
    entered();
    let result = if fulfilled { Ok(value) } else { Err(value) };
    WATCHES.with(|watches| {
        if let Some(entry) = watches.lift(number) {
            watches.lay(number, Entry::Settled(result));
            if let Entry::Waiting(waker) = entry {
                waker.wake();
            }
        }
    });
}

thread_local! {
    static TASKS: Tasks = const { Tasks {
        futures: Shelf::new(),
        current: Cell::new(None),
        given_up: Cell::new(false),
    } };
    static WATCHES: Shelf<Entry> = const { Shelf::new() };
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

struct Tasks {
    futures: Shelf<Task>,
    /// The task that has its turn, and whether it was given up meanwhile.
    current: Cell<Option<u32>>,
    given_up: Cell<bool>,
}

fn run(work: Task) -> u32 {
    TASKS.with(|tasks| {
        let number = tasks.futures.put(work);
        host::wake(number, true);
        number
    })
}

/// Wakes a task by its number, because a waker must be sendable and a task here is not. If the number is
/// another's by now, that has a turn for nothing.
struct Bell(u32);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        host::wake(self.0, false);
    }
}

enum Entry {
    New,
    Waiting(Waker),
    Settled(Result<JsValue, JsValue>),
}

/// A timer or a promise that the host watches; taken back when it is dropped.
struct Watch(u32);

impl Watch {
    fn new() -> Self {
        Watch(WATCHES.with(|watches| watches.put(Entry::New)))
    }
}

impl Future for Watch {
    type Output = Result<JsValue, JsValue>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        WATCHES.with(|watches| match watches.lift(self.0) {
            Some(Entry::Settled(result)) => Poll::Ready(result),
            _ => {
                watches.lay(self.0, Entry::Waiting(context.waker().clone()));
                Poll::Pending
            }
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        host::forget(self.0);
        WATCHES.with(|watches| {
            drop(watches.lift(self.0));
            watches.free(self.0);
        });
    }
}

impl From<Answer> for JsValue {
    fn from(answer: Answer) -> JsValue {
        match answer {
            Answer::Nothing => JsValue::UNDEFINED,
            Answer::Number(number) => number.into(),
            Answer::Value(value) => value,
            Answer::Lease(granted) => granted.into(),
            Answer::Lock(locked) => facts(locked),
            #[cfg(feature = "full")]
            Answer::Reservation(reserved) => reserved.into(),
            #[cfg(feature = "full")]
            Answer::Selection(selection) => tokens::facts(selection),
            Answer::Leases(granted) => granted.into_iter().map(JsValue::from).collect::<Array>().into(),
        }
    }
}
