//! Tokio, and the clocks and the randomness of the system.

use super::alarms::Alarms;
use super::{MaybeSend, Runtime, StoreClock, tasks};
use crate::Micros;

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
    pub fn store_clock() -> StoreClock {
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

/// Goes on when nobody has anything to do, in a test whose clock stands until then.
#[cfg(test)]
pub(crate) async fn idle() {
    tokio::time::sleep(std::time::Duration::from_millis(1)).await;
}

/// The clock of a test, which stands where `start_paused` has tokio hold it: then it goes on, to the next that is waited for, only
/// when nobody has anything to do. Elsewhere it is as monotonic, from about the same time. It began an hour ago, as that of a machine
/// that is up: what is long overdue then lies in its past.
#[cfg(test)]
pub(crate) fn boot_time() -> Micros {
    static ORIGIN: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    let now = tokio::time::Instant::now().into_std();
    let since = now.saturating_duration_since(*ORIGIN.get_or_init(|| now));
    3_600 * crate::SECOND + since.as_micros() as Micros
}

/// The boot-time clock: monotonic, and running while the machine sleeps.
#[cfg(not(test))]
pub(crate) fn boot_time() -> Micros {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    time.tv_sec as Micros * crate::SECOND + time.tv_nsec as Micros / 1_000
}
