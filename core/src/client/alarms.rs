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

use super::calls::unpoisoned;
use super::runtime::boot_time;
use crate::Micros;

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
    /// The runtime has ended, and no time comes any more.
    stopped: bool,
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
        let (mut work, mut end) = (std::pin::pin!(work), self.after(time));
        std::future::poll_fn(|context| match work.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending => Pin::new(&mut end).poll(context).map(|()| None),
        })
        .await
    }
}

impl Future for Alarm {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.time <= boot_time() {
            return Poll::Ready(());
        }
        let mut face = self.clock.face();
        if face.stopped {
            return Poll::Ready(());
        }
        let number = self.number.unwrap_or_else(|| {
            face.last += 1;
            face.last
        });
        face.waiting
            .entry((self.time, number))
            .and_modify(|waker| waker.clone_from(context.waker()))
            .or_insert_with(|| context.waker().clone());
        let is_set = face.set(self.time);
        drop(face);
        if !is_set {
            // At once, whatever the thread holds: who else waits relies on it.
            drop(self.clock.handle.spawn(Running(self.clock.clone()).run()));
        }
        self.number = Some(number);
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            // Not under the lock: the drop of a waker runs code.
            let waker = self.clock.face().waiting.remove(&(self.time, number));
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
    fn set(&mut self, time: Micros) -> bool {
        match &mut self.timer {
            Some(timer) => {
                if time < timer.time {
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

/// The task that waits for the timer. Where it is dropped with the runtime, all who wait are told.
struct Running(Arc<Clock>);

impl Running {
    async fn run(self) {
        loop {
            let next = {
                let mut face = self.0.face();
                let now = boot_time();
                let due = face.due(now);
                let next = face.next().map(|(time, rung)| (time.saturating_sub(now), rung));
                drop(face);
                due.into_iter().for_each(Waker::wake);
                next
            };
            let Some((pause, rung)) = next else { return };
            let _ = tokio::time::timeout(Duration::from_micros(pause), rung).await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let mut face = self.0.face();
        if face.timer.take().is_some() {
            face.stopped = true;
            let waiting = std::mem::take(&mut face.waiting);
            drop(face);
            waiting.into_values().for_each(Waker::wake);
        }
    }
}
