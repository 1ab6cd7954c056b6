//! A runtime for tests, whose clock and timers do as they are told.

use std::sync::Arc;

use super::{MaybeSend, Runtime, TokioRuntime};
use crate::Micros;

type Change = Arc<dyn Fn(Micros) -> Micros + Send + Sync>;

/// Tokio's, but for what is told.
#[derive(Clone)]
pub(crate) struct Warped {
    runtime: TokioRuntime,
    clock: Change,
    timers: Change,
}

impl Warped {
    /// That of the test, as it is.
    pub(crate) fn new() -> Self {
        let runtime = TokioRuntime::new(tokio::runtime::Handle::current());
        Warped { runtime, clock: Arc::new(|time| time), timers: Arc::new(|time| time) }
    }

    /// The clock shows this at a time.
    pub(crate) fn clock(self, clock: impl Fn(Micros) -> Micros + Send + Sync + 'static) -> Self {
        Warped { clock: Arc::new(clock), ..self }
    }

    /// Who is to sleep for some time sleeps for so long.
    pub(crate) fn timers(self, timers: impl Fn(Micros) -> Micros + Send + Sync + 'static) -> Self {
        Warped { timers: Arc::new(timers), ..self }
    }
}

impl Runtime for Warped {
    fn now(&self) -> Micros {
        (self.clock)(self.runtime.now())
    }

    fn wall(&self) -> Micros {
        self.runtime.wall()
    }

    fn sleep(&self, time: Micros) -> impl Future<Output = ()> + MaybeSend {
        self.runtime.sleep((self.timers)(time))
    }

    fn spawn(&self, task: impl Future<Output = ()> + MaybeSend + 'static) {
        self.runtime.spawn(task);
    }

    fn random(&self) -> u64 {
        self.runtime.random()
    }
}
