//! Time, tasks and randomness of the host.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use leasehold::runtime::{Runtime, StoreClock};
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

    fn wall(&self) -> Micros {
        micros(host::origin() + now())
    }

    fn sleep(&self, time: Micros) -> impl Future<Output = ()> {
        tasks::sleep(time as f64 / MILLISECOND as f64)
    }

    fn spawn(&self, task: impl Future<Output = ()> + 'static) {
        tasks::spawn(task);
    }

    /// Whoever opened a pool has had its secrets from the host ([`prepare`]). What comes later only chooses and
    /// spreads: a host that refuses it by then has its last draw carried on.
    fn random(&self) -> u64 {
        let drawn = DRAWN.with_borrow_mut(|drawn| {
            if drawn.is_empty() {
                let _ = draw(drawn);
            }
            drawn.pop()
        });
        LAST.set(drawn.unwrap_or_else(|| {
            LAST.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407)
        }));
        LAST.get()
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

/// Makes sure that there is randomness for a pool's secrets, which workers refuse outside of requests.
pub fn prepare() -> Result<(), Failure> {
    DRAWN.with_borrow_mut(|drawn| if drawn.len() < SECRETS { draw(drawn) } else { Ok(()) })
}

/// How many draws a pool, or a scope of limits, takes as it is opened, at most.
const SECRETS: usize = 5;

fn micros(milliseconds: f64) -> Micros {
    (milliseconds * MILLISECOND as f64) as Micros
}

thread_local! {
    /// What the host gave and nobody took yet; what was taken last.
    static DRAWN: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    static LAST: Cell<u64> = const { Cell::new(0) };
}

fn draw(drawn: &mut Vec<u64>) -> Result<(), Failure> {
    let mut bytes = [0; 256];
    host::entropy(&mut bytes).map_err(|_| {
        let advice = "the host gives no randomness here; call within a request only";
        Failure::new(Code::InvalidArgument, advice)
    })?;
    drawn.extend(bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes));
    Ok(())
}
