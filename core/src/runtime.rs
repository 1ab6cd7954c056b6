//! What the client and the stores need of their surroundings: time, tasks and randomness; and how they have them from Tokio, from
//! threads that block and from the event loops of other languages.

#[cfg(feature = "tokio")]
pub(crate) mod alarms;
#[cfg(feature = "tokio")]
mod alertness;
#[cfg(feature = "tokio")]
mod calls;
#[cfg(feature = "tokio")]
mod engine;
#[cfg(feature = "tokio")]
#[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "only what has sockets asks whose turn it is"))]
pub(crate) mod host;
#[cfg(feature = "tokio")]
mod native;
mod send;
#[cfg(feature = "tokio")]
pub(crate) mod tasks;
#[cfg(test)]
#[cfg(feature = "tokio")]
pub(crate) mod warped;

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::Poll;

#[cfg(feature = "tokio")]
pub use alertness::is_parallel;
#[cfg(feature = "tokio")]
pub use calls::{Begun, Calls, Heard};
#[cfg(feature = "tokio")]
pub use engine::Engine;
#[cfg(feature = "tokio")]
pub use host::{Watched, Watcher};
#[cfg(feature = "tokio")]
pub use native::TokioRuntime;
#[cfg(feature = "tokio")]
pub(crate) use native::boot_time;
#[cfg(test)]
pub(crate) use native::idle;
pub use send::{BoxedFuture, MaybeSend, MaybeSync};
#[cfg(feature = "tokio")]
pub use tasks::{holding, let_go};

use crate::Micros;

/// Reads the store's time: microseconds since the Unix epoch, never backwards.
pub type StoreClock = std::sync::Arc<dyn Fn() -> Micros + Send + Sync>;

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
pub(crate) fn before<T>(
    mut end: impl Future<Output = ()> + Unpin,
    mut work: impl Future<Output = T> + Unpin,
) -> impl Future<Output = Option<T>> {
    poll_fn(move |context| match Pin::new(&mut work).poll(context) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Pin::new(&mut end).poll(context).map(|()| None),
    })
}

/// Lets others who are ready go first.
pub(crate) async fn others_first() {
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
pub(crate) fn or_left(work: impl Future<Output = ()>, left: impl FnOnce()) -> impl Future<Output = ()> {
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
pub(crate) async fn within<R: Runtime, T>(
    runtime: R,
    time: Option<Micros>,
    work: impl Future<Output = Option<T>>,
) -> Option<T> {
    let Some(time) = time else { return work.await };
    by(&runtime, runtime.now().saturating_add(time), pin!(work)).await.flatten()
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
