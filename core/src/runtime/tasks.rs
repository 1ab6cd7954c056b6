//! Tasks, and the thread that runs them: the runtime's, or a host's that ends a turn of its event loop.
//!
//! To wake another thread takes longer than most of what tasks do between two waits. What a turn has to send therefore leaves on
//! the thread that made it: [`let_go`] runs the tasks that the turn began, and whatever they wake, until all of them wait.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::thread;

use async_task::{Runnable, Task};
use futures_util::FutureExt;
use tokio::runtime::Handle;

use super::BoxedFuture;

/// The most steps that a thread does of tasks at the end of a turn; what is left is the runtime's.
const STEPS: usize = 1_000;

thread_local! {
    /// Whether tasks of this thread are held.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
    /// Those that are.
    static HELD: RefCell<Held> = const { RefCell::new(Held { tasks: Vec::new(), process: 0 }) };
    /// What was woken by tasks that this thread runs, while it does.
    static WOKEN: RefCell<Option<VecDeque<(Handle, Runnable)>>> = const { RefCell::new(None) };
}

/// Tasks that set out when this is dropped: at the latest as the thread ends.
#[derive(Default)]
struct Held {
    tasks: Vec<(Handle, BoxedFuture<'static, ()>)>,
    /// Which process they are of. In a fork they are the parent's, which has them too: who ran them there would write to the
    /// connection that both have.
    process: u32,
}

impl Held {
    fn hold(&mut self, handle: &Handle, task: BoxedFuture<'static, ()>) {
        let process = std::process::id();
        if self.process != process {
            self.forget();
            self.process = process;
        }
        self.tasks.push((handle.clone(), task));
    }

    fn forget(&mut self) {
        std::mem::forget(std::mem::take(&mut self.tasks));
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if !self.tasks.is_empty() && self.process != std::process::id() {
            self.forget();
        }
        self.tasks.drain(..).for_each(|(handle, task)| drop(handle.spawn(task)));
    }
}

/// Does work whose tasks set out only when this thread calls [`let_go`].
pub fn holding<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            HOLDS.set(self.0);
        }
    }
    let _before = Before(HOLDS.replace(true));
    work()
}

/// Lets the tasks go that [`holding`] held on this thread: runs them here until they wait for what others do. Says whether there were
/// any.
pub fn let_go() -> bool {
    let mut held = HELD.with_borrow_mut(std::mem::take);
    // Those of another process are forgotten as this is dropped.
    if held.tasks.is_empty() || held.process != std::process::id() {
        return false;
    }
    run(|| {
        for (handle, task) in held.tasks.drain(..) {
            begin(&handle, task).detach();
        }
    });
    true
}

/// Does what wakes tasks, and runs these here until they wait for what others do.
pub(crate) fn run(work: impl FnOnce()) {
    // A task that runs here may call the host, whose code may have begun this: then the outer one runs these too.
    let running = Running::begin();
    work();
    if let Some(running) = running {
        running.run();
    }
}

/// Spawns a task; at the end of the turn, if a call of this thread does it. A thread that ends has no turn any more.
pub(crate) fn spawn(handle: &Handle, task: impl Future<Output = ()> + Send + 'static) {
    if HOLDS.get() {
        HELD.with_borrow_mut(|held| held.hold(handle, Box::pin(task)));
    } else if WOKEN.try_with(|woken| woken.borrow().is_some()).unwrap_or_default() {
        begin(handle, task).detach();
    } else {
        handle.spawn(task);
    }
}

/// Begins a task that is run by the thread that wakes it, if that runs tasks, and else by the runtime. It ends when what this gives
/// is dropped, unless that is detached. A panic ends it, and nothing else.
pub(crate) fn begin(handle: &Handle, task: impl Future<Output = ()> + Send + 'static) -> Task<()> {
    let handle = handle.clone();
    // The hook of panics has told of it.
    let task = AssertUnwindSafe(task).catch_unwind().map(drop);
    let (runnable, task) = async_task::spawn(task, move |runnable| step(&handle, runnable));
    runnable.schedule();
    task
}

/// Has the next step of a task done.
fn step(handle: &Handle, runnable: Runnable) {
    let mut runnable = Some(runnable);
    // As the thread ends, these may be gone.
    let _ = WOKEN.try_with(|woken| {
        if let Some(woken) = woken.borrow_mut().as_mut() {
            woken.extend(runnable.take().map(|runnable| (handle.clone(), runnable)));
        }
    });
    if let Some(runnable) = runnable {
        let mut next = Next(Some(runnable));
        handle.spawn(async move { next.run() });
    }
}

/// The next step of a task, which may be dropped instead as its runtime has ended.
struct Next(Option<Runnable>);

impl Next {
    fn run(&mut self) {
        self.0.take().map(Runnable::run);
    }
}

impl Drop for Next {
    /// Not here: who wakes the task may hold what its end has to lock.
    fn drop(&mut self) {
        if let Some(left) = self.0.take() {
            let _ = thread::Builder::new().spawn(move || drop(left));
        }
    }
}

/// This thread runs tasks.
struct Running;

impl Running {
    /// None if it does already.
    fn begin() -> Option<Self> {
        WOKEN.with_borrow_mut(|woken| {
            let begins = woken.is_none();
            woken.get_or_insert_default();
            begins.then(|| Running)
        })
    }

    fn run(self) {
        for _ in 0..STEPS {
            let next = WOKEN.with_borrow_mut(|woken| woken.as_mut().and_then(VecDeque::pop_front));
            let Some((handle, next)) = next else { return };
            let _entered = handle.enter();
            next.run();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        for (handle, left) in WOKEN.take().into_iter().flatten() {
            step(&handle, left);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::thread::ThreadId;
    use std::time::Duration;

    use futures_channel::oneshot;

    use super::*;
    use crate::runtime::{Begun, Calls, others_first};

    async fn in_time<T>(work: impl Future<Output = T>) -> T {
        tokio::time::timeout(Duration::from_secs(20), work).await.expect("in time")
    }

    // What a call spawns that ends at once, such as the task that keeps its lease alive, waits for no other turn.
    #[tokio::test]
    async fn what_a_call_leaves_behind_that_ends_at_once_sets_out() {
        let handle = Handle::current();
        let calls = Calls::new(handle.clone(), || {});
        let (done, hears) = oneshot::channel();
        let begun = calls.begin(async move {
            spawn(&handle, async move { assert!(done.send(()).is_ok()) });
            7
        });
        assert!(matches!(begun, Begun::Ended(7)));
        in_time(hears).await.expect("done");
    }

    /// Each way to another thread took a third of what a lone caller waits for the answer of a near store.
    #[tokio::test(flavor = "multi_thread")]
    async fn what_a_turn_sends_leaves_on_its_thread_with_all_that_this_wakes() {
        let handle = Handle::current();
        let (ask, asked) = oneshot::channel::<()>();
        let (sent, mut arrives) = oneshot::channel::<ThreadId>();
        // It waits for what is to be sent, as what drives a connection does.
        holding(|| {
            spawn(&handle, async move {
                asked.await.expect("asked");
                sent.send(thread::current().id()).expect("somebody waits");
            });
        });
        let_go();
        holding(|| {
            spawn(&handle, async move {
                others_first().await;
                ask.send(()).expect("it waits");
            });
        });
        assert_eq!(arrives.try_recv(), Ok(None), "the turn has not ended");
        let_go();
        assert_eq!(arrives.try_recv(), Ok(Some(thread::current().id())));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_task_that_never_waits_or_panics_does_not_hold_a_turn_up() {
        let handle = Handle::current();
        let steps = Arc::new(AtomicUsize::new(0));
        let counted = steps.clone();
        let (done, hears) = oneshot::channel();
        holding(|| {
            spawn(&handle, async { panic!("on purpose") });
            let here = thread::current().id();
            spawn(&handle, async move {
                for _ in 0..2 * STEPS {
                    others_first().await;
                    counted.fetch_add(usize::from(thread::current().id() == here), SeqCst);
                }
                assert!(done.send(()).is_ok());
            });
        });
        let_go();
        assert!((1..=STEPS).contains(&steps.load(SeqCst)), "here, and no more");
        in_time(hears).await.expect("the runtime does the rest");
    }

    /// The code of the host, which a task called, begins and ends calls of its own.
    #[tokio::test]
    async fn a_turn_within_a_task_of_a_turn_leaves_its_tasks_to_the_outer_one() {
        let handle = Handle::current();
        let (done, mut hears) = oneshot::channel();
        holding(|| {
            let inner = handle.clone();
            spawn(&handle, async move {
                holding(|| spawn(&inner, async move { assert!(done.send(()).is_ok()) }));
                let_go();
            });
        });
        let_go();
        assert_eq!(hears.try_recv(), Ok(Some(())));
    }

    /// A process that was forked in the middle of a turn ran what its parent was about to send, over the connection of both.
    #[tokio::test]
    async fn what_is_of_another_process_is_run_by_nobody() {
        let handle = Handle::current();
        for next in [false, true] {
            let (done, mut hears) = oneshot::channel::<()>();
            holding(|| spawn(&handle, async move { assert!(done.send(()).is_ok()) }));
            // As in a fork.
            HELD.with_borrow_mut(|held| held.process += 1);
            if next {
                holding(|| spawn(&handle, async {}));
            }
            let_go();
            others_first().await;
            assert_eq!(hears.try_recv(), Ok(None));
        }
    }

    #[tokio::test]
    async fn each_task_runs_within_its_own_runtime() {
        let other = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let runtimes = [Handle::current(), other.handle().clone()];
        let seen = Arc::new(std::sync::Mutex::new(Vec::new()));
        for handle in &runtimes {
            let seen = seen.clone();
            holding(|| {
                spawn(handle, async move {
                    others_first().await;
                    seen.lock().expect("no panic").push(Handle::current().id());
                });
            });
        }
        let_go();
        assert_eq!(*seen.lock().expect("no panic"), runtimes.map(|handle| handle.id()));
        other.shutdown_background();
    }

    /// A lock that wakes the next one who waits for it, as it is given back, was locked anew by the end of the task that waited.
    #[test]
    fn a_task_whose_runtime_has_ended_ends_elsewhere_than_where_it_is_woken() {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().expect("a runtime");
        let lock = Arc::new(futures_util::lock::Mutex::new(()));
        let held = lock.clone().try_lock_owned().expect("nobody has it");
        let (alive, gone) = std::sync::mpsc::channel::<()>();
        let (waits, begins) = std::sync::mpsc::channel();
        let waiting = lock.clone();
        let task = async move {
            let _alive = alive;
            let mut turn = waiting.lock();
            std::future::poll_fn(|context| {
                let poll = turn.poll_unpin(context).map(drop);
                let _ = waits.send(());
                poll
            })
            .await;
        };
        begin(runtime.handle(), task).detach();
        begins.recv().expect("it waits");
        runtime.shutdown_background();
        let (returned, returns) = std::sync::mpsc::channel();
        thread::spawn(move || {
            drop(held);
            returned.send(()).expect("somebody waits");
        });
        returns.recv_timeout(Duration::from_secs(20)).expect("it waits for itself");
        assert_eq!(
            gone.recv_timeout(Duration::from_secs(20)),
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected)
        );
    }

    #[tokio::test]
    async fn a_task_whose_handle_is_dropped_ends() {
        let (alive, gone) = oneshot::channel::<()>();
        let task = begin(&Handle::current(), async move {
            let _alive = alive;
            std::future::pending().await
        });
        drop(task);
        assert!(in_time(gone).await.is_err());
    }
}
