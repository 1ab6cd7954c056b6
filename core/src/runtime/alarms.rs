//! Times that are waited for, most of which never come: the answer does.
//!
//! A timer of the runtime that is nearer than all others wakes the thread that waits for them, and with one request after the
//! other each is nearer. Here one timer stands for all, and stays set when what it was set for is no longer waited for: it is
//! set anew only for an earlier time, or when it has run out.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use futures_channel::oneshot;
use tokio::runtime::Handle;

use super::boot_time;
use crate::poison::unpoisoned;
use crate::{Micros, SECOND};

/// How often the timer is looked at: a machine that sleeps stops it, and not the clock.
const LOOK: Micros = 5 * SECOND;

/// The alarms of one runtime.
#[derive(Clone, Debug)]
pub(crate) struct Alarms {
    clock: Arc<Clock>,
}

/// Ends at its time.
#[derive(Debug)]
pub(crate) struct Alarm {
    clock: Arc<Clock>,
    time: Micros,
    /// Its number among those who wait, once it does.
    number: Option<u64>,
}

#[derive(Debug)]
struct Clock {
    handle: Handle,
    face: Mutex<Face>,
}

#[derive(Debug, Default)]
struct Face {
    /// Who waits, by time.
    waiting: BTreeMap<(Micros, u64), Waker>,
    last: u64,
    timer: Option<Timer>,
    /// The runtime has ended: whoever waits is told at once, and each time.
    ended: bool,
}

/// The one that is set.
#[derive(Debug)]
struct Timer {
    time: Micros,
    /// Has it set anew.
    bell: Option<oneshot::Sender<()>>,
}

impl Alarms {
    pub fn new(handle: Handle) -> Self {
        Alarms { clock: Arc::new(Clock { handle, face: Mutex::default() }) }
    }

    /// Ends after so long.
    pub fn after(&self, time: Micros) -> Alarm {
        Alarm { clock: self.clock.clone(), time: boot_time().saturating_add(time), number: None }
    }

    /// What `work` gives, if that is before `time` has passed.
    #[cfg(feature = "redis")]
    pub async fn within<T>(&self, time: Micros, work: impl Future<Output = T>) -> Option<T> {
        super::before(self.after(time), std::pin::pin!(work)).await
    }
}

impl Future for Alarm {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let now = boot_time();
        let mut face = self.clock.face();
        // Others have their turn first, even where no time is to pass.
        if self.number.is_some() && (self.time <= now || face.ended) {
            return Poll::Ready(());
        }
        let number = self.number.unwrap_or_else(|| {
            face.last += 1;
            face.last
        });
        let before = face.waiting.insert((self.time, number), context.waker().clone());
        let is_set = face.set(self.time, now);
        // Not under the lock: the drop of a waker runs code.
        drop(face);
        drop(before);
        if !is_set {
            // At once, whatever the thread holds: who else waits relies on it.
            drop(self.clock.handle.spawn(Running(Some(self.clock.clone())).run()));
        }
        self.number = Some(number);
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let waker = self.clock.face().waiting.remove(&(self.time, number));
            // As above.
            drop(waker);
        }
    }
}

impl Clock {
    fn face(&self) -> MutexGuard<'_, Face> {
        unpoisoned(&self.face)
    }
}

impl Face {
    /// Has the timer run out by this time; false if there is none that could.
    fn set(&mut self, time: Micros, now: Micros) -> bool {
        match &mut self.timer {
            Some(timer) => {
                // One whose time has passed was stopped as the machine slept.
                if time < timer.time || timer.time <= now {
                    timer.time = time;
                    // Who is rung for looks when it is to be.
                    if let Some(bell) = timer.bell.take() {
                        let _ = bell.send(());
                    }
                }
                true
            }
            None => {
                self.timer = Some(Timer { time, bell: None });
                false
            }
        }
    }

    /// Those whose time has come.
    fn due(&mut self, now: Micros) -> Vec<Waker> {
        let later = self.waiting.split_off(&(now + 1, 0));
        std::mem::replace(&mut self.waiting, later).into_values().collect()
    }

    /// Sets the timer for the first who waits: until when, and what rings if that is to be earlier. None if nobody waits.
    fn next(&mut self) -> Option<(Micros, oneshot::Receiver<()>)> {
        let Some((&(time, _), _)) = self.waiting.first_key_value() else {
            self.timer = None;
            return None;
        };
        let (bell, rung) = oneshot::channel();
        self.timer = Some(Timer { time, bell: Some(bell) });
        Some((time, rung))
    }
}

/// The task that waits for the timer, as long as it has one.
struct Running(Option<Arc<Clock>>);

impl Running {
    async fn run(mut self) {
        while let Some((pause, rung)) = self.turn() {
            let _ = tokio::time::timeout(Duration::from_micros(pause), rung).await;
        }
    }

    /// Wakes those whose time has come. How long to wait for the next, and what rings if that is to be less; None if nobody waits:
    /// then it is over, and who comes from here on begins another.
    fn turn(&mut self) -> Option<(Micros, oneshot::Receiver<()>)> {
        let clock = self.0.clone()?;
        let mut face = clock.face();
        let now = boot_time();
        let due = face.due(now);
        let next = face.next();
        if next.is_none() {
            self.0 = None;
        }
        drop(face);
        due.into_iter().for_each(Waker::wake);
        next.map(|(time, rung)| (time.saturating_sub(now).min(LOOK), rung))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // With the runtime, before it was over.
        let Some(clock) = &self.0 else { return };
        let mut face = clock.face();
        (face.ended, face.timer) = (true, None);
        let waiting = std::mem::take(&mut face.waiting);
        drop(face);
        waiting.into_values().for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;

    use super::*;
    use crate::{MILLISECOND, SECOND};

    fn waits(alarm: &mut Alarm) -> bool {
        Pin::new(alarm).poll(&mut Context::from_waker(Waker::noop())).is_pending()
    }

    async fn in_time<T>(work: impl Future<Output = T>) -> T {
        tokio::time::timeout(Duration::from_secs(20), work).await.expect("in time")
    }

    #[tokio::test]
    async fn each_ends_at_its_own_time_and_not_before() {
        let alarms = Alarms::new(Handle::current());
        let began = boot_time();
        let timed = |time: Micros| {
            let alarm = alarms.after(time * MILLISECOND);
            async move {
                alarm.await;
                let passed = boot_time() - began;
                assert!(passed >= time * MILLISECOND, "{time}: {passed}");
            }
        };
        let mut far = alarms.after(60 * SECOND);
        assert!(waits(&mut far));
        // The later ones first, so that the timer is set anew, and again as it runs out. On a busy machine all are due at once, and
        // any may be the first.
        in_time(join_all([40, 20, 30, 0].map(timed))).await;
        assert!(waits(&mut far));
    }

    #[tokio::test]
    async fn others_have_their_turn_even_where_no_time_is_to_pass() {
        let mut alarm = Alarms::new(Handle::current()).after(0);
        assert!(waits(&mut alarm));
        in_time(alarm).await;
    }

    /// With one request after the other, each timer was nearer than all others, and woke the thread that waits for them: twice for a
    /// request that was answered within a tenth of a millisecond.
    #[tokio::test]
    async fn the_timer_is_set_once_for_many_that_are_not_waited_for_to_the_end() {
        let alarms = Alarms::new(Handle::current());
        let timer = || alarms.clock.face().timer.as_ref().map(|timer| (timer.time, timer.bell.is_some()));
        assert!(waits(&mut alarms.after(9 * SECOND)));
        let first = timer().expect("it is set").0;
        // The task that waits for it begins.
        while timer() == Some((first, false)) {
            tokio::task::yield_now().await;
        }
        // Nobody waits any more: it may be gone.
        assert_eq!(alarms.clock.face().waiting.len(), 0);
        let mut kept = alarms.after(8 * SECOND);
        assert!(waits(&mut kept));
        while timer().is_none_or(|(_, waits)| !waits) {
            tokio::task::yield_now().await;
        }
        let set = timer();
        for _ in 0..100 {
            assert!(waits(&mut alarms.after(9 * SECOND)));
            assert_eq!(timer(), set);
        }
        drop(kept);
        assert_eq!(timer(), set, "it runs out for nobody");
        assert_eq!(
            in_time(alarms.within(MILLISECOND, std::future::pending::<()>())).await,
            None,
            "an earlier time"
        );
        assert_eq!(in_time(alarms.within(SECOND, async { 7 })).await, Some(7));
    }

    /// The task that had nothing left to wait for, and was about to end, took those who came meanwhile for its own, and forgot them.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn who_comes_as_the_last_one_goes_is_not_forgotten() {
        let alarms = Alarms::new(Handle::current());
        let comes = |number: Micros| {
            let alarms = alarms.clone();
            tokio::spawn(async move {
                for time in 0..300 {
                    alarms.after((number * time) % 7 * 100).await;
                }
            })
        };
        for ended in in_time(join_all((0..8).map(comes))).await {
            ended.expect("no panic");
        }
    }

    /// Its time had long passed, and all that came later waited for the rest of it.
    #[tokio::test]
    async fn a_timer_that_was_stopped_as_the_machine_slept_holds_up_nobody() {
        let alarms = Alarms::new(Handle::current());
        let mut far = alarms.after(3_600 * SECOND);
        assert!(waits(&mut far));
        while alarms.clock.face().timer.as_ref().is_none_or(|timer| timer.bell.is_none()) {
            tokio::task::yield_now().await;
        }
        // What it looks like then.
        alarms.clock.face().timer.as_mut().expect("it is set").time = boot_time();
        in_time(alarms.after(MILLISECOND)).await;
    }

    #[test]
    fn who_waits_in_a_runtime_that_has_ended_is_told() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let alarms = Alarms::new(runtime.handle().clone());
        let mut alarm = alarms.after(3_600 * SECOND);
        assert!(waits(&mut alarm));
        drop(runtime);
        assert_eq!(alarms.clock.face().waiting.len(), 0);
        assert!(!waits(&mut alarm));
        let elsewhere =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        assert_eq!(
            elsewhere.block_on(in_time(alarms.within(3_600 * SECOND, std::future::pending::<()>()))),
            None
        );
    }
}
