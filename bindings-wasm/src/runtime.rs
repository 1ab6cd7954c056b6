//! Time, tasks and randomness of the host.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use leasehold::client::Runtime;
use leasehold::store::memory::StoreClock;
use leasehold::{Code, MILLISECOND, Micros};

use crate::failure::Failure;
use crate::{host, tasks};

/// The host's event loop.
#[derive(Clone, Copy, Debug)]
pub struct HostRuntime;

impl Runtime for HostRuntime {
    fn now(&self) -> Micros {
        micros(now())
    }

    async fn sleep(&self, time: Micros) {
        tasks::sleep(time as f64 / MILLISECOND as f64).await;
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        tasks::spawn(task);
    }

    #[allow(clippy::expect_used, reason = "whoever has had randomness once is not refused any more")]
    fn random(&self) -> u64 {
        draw().expect("randomness")
    }
}

/// The time of a store in memory.
pub fn store_clock() -> StoreClock {
    let origin = host::origin();
    Arc::new(move || micros(origin + now()))
}

/// Has the clock read anew. It is read once for each way in and each task's turn, which are short: to ask the host
/// takes longer than what is to be timed. So a moment is never later than it is.
pub fn tick() {
    READ.set(None);
}

thread_local! {
    static READ: Cell<Option<f64>> = const { Cell::new(None) };
}

fn now() -> f64 {
    READ.get().unwrap_or_else(|| {
        let now = host::now();
        READ.set(Some(now));
        now
    })
}

/// Makes sure that there is randomness, which workers refuse outside of requests.
pub fn prepare() -> Result<(), Failure> {
    draw().map(drop)
}

fn micros(milliseconds: f64) -> Micros {
    (milliseconds * MILLISECOND as f64) as Micros
}

fn draw() -> Result<u64, Failure> {
    thread_local! {
        static DRAWN: RefCell<Vec<[u8; 8]>> = const { RefCell::new(Vec::new()) };
    }
    DRAWN.with_borrow_mut(|drawn| {
        if drawn.is_empty() {
            let mut bytes = [0; 256];
            host::entropy(&mut bytes).map_err(|_| {
                let advice = "the host gives no randomness here; a worker does so within a request only: call from there";
                Failure::new(Code::InvalidArgument, advice)
            })?;
            drawn.extend(bytes.as_chunks().0);
        }
        Ok(drawn.pop().map_or(0, u64::from_le_bytes))
    })
}
