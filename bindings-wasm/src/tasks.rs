//! Futures, run in turns that the face gives, and woken by timers and promises that the face watches.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use js_sys::Promise;
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::failure::Failure;
use crate::host;

/// The promise of a future's result.
pub fn promise<T: Into<JsValue>>(work: impl Future<Output = Result<T, Failure>> + 'static) -> Promise {
    let mut work = Some(work);
    Promise::new(&mut |resolve, reject| {
        if let Some(work) = work.take() {
            spawn(async move {
                let (call, result) = match work.await {
                    Ok(value) => (resolve, value.into()),
                    Err(failure) => (reject, failure.into()),
                };
                // To settle a promise cannot fail.
                let _ = call.call1(&JsValue::UNDEFINED, &result);
            });
        }
    })
}

/// Runs a future that nobody waits for.
pub fn spawn(work: impl Future<Output = ()> + 'static) {
    TASKS.with(|tasks| {
        let number = tasks.last.get() + 1;
        tasks.last.set(number);
        tasks.futures.borrow_mut().insert(number, Box::pin(work));
        tasks.wake(number);
    });
}

/// Waits on the host's clock; in the background, so that the process may end meanwhile.
pub async fn sleep(milliseconds: f64, background: bool) {
    let deadline = host::now() + milliseconds;
    // A timer may ring early, and none can be set for more than 24 days.
    loop {
        let left = deadline - host::now();
        if left <= 0.0 {
            return;
        }
        let _ = Watch::new(host::set_timer(left, background)).await;
    }
}

/// What becomes of a promise, or of any other value at once.
pub async fn settled(promise: &JsValue) -> Result<JsValue, JsValue> {
    Watch::new(host::watch(promise)).await
}

/// Gives every task that was woken one turn. Called by the face.
#[wasm_bindgen(js_name = runTasks)]
pub fn run_tasks() {
    TASKS.with(|tasks| {
        tasks.deferred.set(false);
        // Those woken meanwhile wait for the next time, so that the host gets its turn too.
        let woken = std::mem::take(&mut *tasks.woken.borrow_mut());
        for number in woken {
            let Some(mut future) = tasks.futures.borrow_mut().remove(&number) else { continue };
            let waker = Waker::from(Arc::new(Bell(number)));
            if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
                tasks.futures.borrow_mut().insert(number, future);
            }
        }
    });
}

/// Tells what became of a timer or a promise. Called by the face.
#[wasm_bindgen]
pub fn settle(number: u32, fulfilled: bool, value: JsValue) {
    WATCHES.with_borrow_mut(|watches| {
        if let Some(entry) = watches.get_mut(&number) {
            let result = if fulfilled { Ok(value) } else { Err(value) };
            if let Entry::Waiting(waker) = std::mem::replace(entry, Entry::Settled(result)) {
                waker.wake();
            }
        }
    });
}

thread_local! {
    static TASKS: Tasks = const { Tasks {
        last: Cell::new(0),
        futures: RefCell::new(BTreeMap::new()),
        woken: RefCell::new(BTreeSet::new()),
        deferred: Cell::new(false),
    } };
    static WATCHES: RefCell<BTreeMap<u32, Entry>> = const { RefCell::new(BTreeMap::new()) };
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

struct Tasks {
    last: Cell<u64>,
    futures: RefCell<BTreeMap<u64, Task>>,
    woken: RefCell<BTreeSet<u64>>,
    deferred: Cell<bool>,
}

impl Tasks {
    fn wake(&self, number: u64) {
        self.woken.borrow_mut().insert(number);
        if !self.deferred.replace(true) {
            host::defer();
        }
    }
}

/// Wakes a task by its number, because a waker must be sendable and a task here is not.
struct Bell(u64);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        TASKS.with(|tasks| tasks.wake(self.0));
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
    fn new(number: u32) -> Self {
        WATCHES.with_borrow_mut(|watches| watches.insert(number, Entry::New));
        Watch(number)
    }
}

impl Future for Watch {
    type Output = Result<JsValue, JsValue>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        WATCHES.with_borrow_mut(|watches| match watches.remove(&self.0) {
            Some(Entry::Settled(result)) => Poll::Ready(result),
            _ => {
                watches.insert(self.0, Entry::Waiting(context.waker().clone()));
                Poll::Pending
            }
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        WATCHES.with_borrow_mut(|watches| watches.remove(&self.0));
        host::forget(self.0);
    }
}
