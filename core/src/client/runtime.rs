//! What the client needs of its surroundings.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

use super::MaybeSend;
use crate::Micros;

/// Time, tasks and randomness.
pub trait Runtime: Clone + Send + Sync + 'static {
    /// A monotonic clock that also runs while the machine sleeps.
    fn now(&self) -> Micros;

    /// Microseconds since the Unix epoch, by a clock that runs forward only: the time of the calendar, where no store says it.
    fn wall(&self) -> Micros;

    /// Ends after so long.
    fn sleep(&self, time: Micros) -> impl Future<Output = ()> + MaybeSend;

    /// Runs a task to its end.
    fn spawn(&self, task: impl Future<Output = ()> + MaybeSend + 'static);

    /// The same of one on which others rely than who spawns it: at once, also where what a host's turn spawns is held to its end.
    fn spawn_at_once(&self, task: impl Future<Output = ()> + MaybeSend + 'static) {
        self.spawn(task);
    }

    /// Random bits that nobody can guess.
    fn random(&self) -> u64;

    /// 128 random bits.
    fn random_id(&self) -> u128 {
        u128::from(self.random()) << 64 | u128::from(self.random())
    }

    /// A random time from half of `time` to `time`, so that many do not act at once.
    fn jitter(&self, time: Micros) -> Micros {
        time - self.random() % (time / 2 + 1)
    }
}

/// The output of `work`, or `None` if it is not there by `deadline`. The work stays where it is pinned: moved in
/// here, it would take its place in memory once more.
pub(crate) async fn by<R: Runtime, T>(
    runtime: &R,
    deadline: Micros,
    work: impl Future<Output = T> + Unpin,
) -> Option<T> {
    let left = deadline.saturating_sub(runtime.now());
    before(pin!(runtime.sleep(left)), work).await
}

/// The output of `work`, or `None` if `end` comes first.
pub(super) fn before<T>(
    mut end: impl Future<Output = ()> + Unpin,
    mut work: impl Future<Output = T> + Unpin,
) -> impl Future<Output = Option<T>> {
    poll_fn(move |context| match Pin::new(&mut work).poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Pin::new(&mut end).poll(context).map(|()| None),
    })
}

/// Lets others who are ready go first.
pub(super) async fn others_first() {
    let mut waited = false;
    poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Does `work`, and `left` where it is dropped before its end, as its runtime ends, or where it panics.
#[cfg(not(target_family = "wasm"))]
pub(super) fn or_left(work: impl Future<Output = ()>, left: impl FnOnce()) -> impl Future<Output = ()> {
    struct Left<F: FnOnce()>(Option<F>);
    impl<F: FnOnce()> Drop for Left<F> {
        fn drop(&mut self) {
            if let Some(left) = self.0.take() {
                left();
            }
        }
    }
    // From here on, as it may be dropped before it begins.
    let left = Left(Some(left));
    async move {
        let mut left = left;
        work.await;
        left.0.take();
    }
}

/// What `work` gives, or nothing if it gives that or has not ended after `time`; for ever without one.
pub(super) async fn within<R: Runtime, T>(
    runtime: R,
    time: Option<Micros>,
    work: impl Future<Output = Option<T>>,
) -> Option<T> {
    let Some(time) = time else { return work.await };
    by(&runtime, runtime.now().saturating_add(time), pin!(work)).await.flatten()
}

#[cfg(feature = "tokio")]
pub use native::TokioRuntime;
#[cfg(feature = "tokio")]
pub(crate) use native::boot_time;

#[cfg(feature = "tokio")]
mod native {
    use super::super::alarms::Alarms;
    use super::super::tasks;
    use super::{Future, MaybeSend, Micros, Runtime};

    /// Tokio's tasks and timers, the system's boot-time clock and randomness.
    #[derive(Clone, Debug)]
    pub struct TokioRuntime {
        handle: tokio::runtime::Handle,
        alarms: Alarms,
    }

    impl TokioRuntime {
        /// Uses the runtime of this handle.
        pub fn new(handle: tokio::runtime::Handle) -> Self {
            TokioRuntime { alarms: Alarms::new(handle.clone()), handle }
        }

        /// The time of a store in this process's memory: microseconds since the Unix epoch, read once and
        /// carried on by the monotonic clock.
        pub fn store_clock() -> crate::store::memory::StoreClock {
            std::sync::Arc::new(wall_time)
        }
    }

    impl Runtime for TokioRuntime {
        fn now(&self) -> Micros {
            boot_time()
        }

        fn wall(&self) -> Micros {
            wall_time()
        }

        fn sleep(&self, time: Micros) -> impl Future<Output = ()> + MaybeSend {
            self.alarms.after(time)
        }

        fn spawn(&self, task: impl Future<Output = ()> + MaybeSend + 'static) {
            tasks::spawn(&self.handle, task);
        }

        fn spawn_at_once(&self, task: impl Future<Output = ()> + MaybeSend + 'static) {
            self.handle.spawn(task);
        }

        #[expect(clippy::disallowed_methods, reason = "this is where all others have it from")]
        fn random(&self) -> u64 {
            // The system's randomness fails only before the system is up; the clock then has to do.
            getrandom::u64().unwrap_or_else(|_| boot_time().wrapping_mul(0x9E37_79B9_7F4A_7C15))
        }
    }

    /// Microseconds since the Unix epoch, read once and carried on by the boot-time clock.
    fn wall_time() -> Micros {
        static ORIGIN: std::sync::OnceLock<Micros> = std::sync::OnceLock::new();
        let origin = ORIGIN.get_or_init(|| {
            let since = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
            (since.as_micros() as Micros).saturating_sub(boot_time())
        });
        origin + boot_time()
    }

    /// The boot-time clock: monotonic, and running while the machine sleeps.
    pub(crate) fn boot_time() -> Micros {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        time.tv_sec as Micros * crate::SECOND + time.tv_nsec as Micros / 1_000
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::future::pending;

    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn only_work_that_does_not_come_to_its_end_is_left() {
        let count = Cell::new(0);
        let left = || count.set(count.get() + 1);
        assert_eq!(or_left(others_first(), left).now_or_never(), None);
        assert_eq!(count.get(), 1);
        drop(or_left(pending(), left));
        assert_eq!(count.get(), 2, "it had not begun");
        assert_eq!(or_left(async {}, left).now_or_never(), Some(()));
        let panics = or_left(async { panic!("on purpose") }, left);
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| panics.now_or_never())).unwrap_err();
        // Nobody else would be sent out beside it for ever.
        assert_eq!(count.get(), 3);
    }
}
