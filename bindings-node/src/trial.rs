//! Exports for the tests only: one of each kind that the real API has, able to panic, and able to be timed.

use std::cell::RefCell;
use std::time::Duration;

use napi::bindgen_prelude::{BigUint64Array, BigUint64ArraySlice, Function, Promise, spawn};
use napi::threadsafe_function::ThreadsafeFunction;
use napi::{Env, Error, Result, Status};
use napi_derive::napi;
use tokio::time::sleep;

use crate::answer::{Answer, Failure};
use crate::cancel::Cancel;
use crate::kept::Kept;
use crate::value::Value;

/// There and back.
#[napi(catch_unwind)]
pub fn echo(value: Value) -> Value {
    value
}

/// An error with a code of ours, which napi carries for synchronous exports only.
#[napi(catch_unwind)]
pub fn fail() -> Result<u32, &'static str> {
    Err(Error::new("busy", "ask again in 5 ms"))
}

#[napi(catch_unwind)]
pub fn panic_sync() -> u32 {
    panic!("on purpose")
}

#[napi(catch_unwind)]
pub async fn panic_async() -> Answer<u32> {
    sleep(Duration::from_millis(1)).await;
    panic!("on purpose")
}

/// Panics while its argument is converted, before there is a future.
#[napi(catch_unwind)]
pub async fn panic_argument(_trap: Trap) -> Answer<u32> {
    Answer(Ok(1))
}

/// Panics while its result is converted, after the future has ended.
#[napi(catch_unwind)]
pub async fn panic_result() -> Answer<Trap> {
    Answer(Ok(Trap))
}

/// Panics in a task that nobody waits for, then answers.
#[napi(catch_unwind)]
pub async fn panic_task() -> Answer<bool> {
    Answer(Ok(spawn(async { panic!("on purpose") }).await.is_err()))
}

/// Resolves after `ms`, fails at once when `ms` is odd, or stops at the caller's wish.
#[napi(catch_unwind)]
pub async fn wait(ms: u32, cancel: Option<&Cancel>) -> Answer<u32> {
    let work = async move {
        if ms % 2 == 1 {
            return Err(Failure { code: "timed_out", message: "no slot became free".into() });
        }
        sleep(Duration::from_millis(ms.into())).await;
        Ok(ms)
    };
    Answer(match cancel {
        Some(cancel) => cancel.guard(work).await,
        None => work.await,
    })
}

/// A task that outlives every call, as a keepalive does.
#[napi(catch_unwind)]
pub fn run_forever() {
    spawn(async {
        loop {
            sleep(Duration::from_millis(5)).await;
        }
    });
}

/// `(address) => Promise<bigint | number>`: weak, so it does not keep the process alive, and not
/// error-first. The face makes it of the user's function, so that it always returns a promise.
type ReadNonce = ThreadsafeFunction<Value, Promise<Value>, Value, Status, false, true>;

/// Asks the host for a nonce, from another thread, and waits for its promise.
#[napi(catch_unwind)]
pub async fn ask(read_nonce: ReadNonce, address: String) -> Answer<Value> {
    // `call_async_catch`: plain `call_async` ends the process when the callback throws.
    let read = async { read_nonce.call_async_catch(Value::Text(address)).await?.await };
    Answer(
        read.await
            .map_err(|error: Error| Failure { code: "invalid_argument", message: error.reason.to_string() }),
    )
}

/// Keeps the host's function for ever, and asks it now and then, as a pool does.
#[napi(catch_unwind)]
pub fn keep_asking(read_nonce: ReadNonce) {
    spawn(async move {
        loop {
            let _ = read_nonce.call_async_catch(Value::Null).await;
            sleep(Duration::from_millis(5)).await;
        }
    });
}

/// Calls back at once, on the same thread, then panics if asked to.
#[napi(catch_unwind)]
pub fn call_back(callback: Function<'_, u32, u32>, panics: bool) -> Result<u32> {
    let answer = callback.call(7)?;
    assert!(!panics, "on purpose");
    Ok(answer)
}

/// A function made in Rust, called by JavaScript.
#[napi(catch_unwind)]
pub fn panicking_function(env: &Env) -> Result<Function<'_, (), u32>> {
    env.create_function_from_closure("panicking", |_| -> Result<u32> { panic!("on purpose") })
}

/// Panics whichever way it is converted.
pub struct Trap;

#[allow(unsafe_code, reason = "napi declares the conversions unsafe; these only panic")]
mod trap {
    use super::Trap;
    use napi::Result;
    use napi::bindgen_prelude::{FromNapiValue, ToNapiValue, sys};

    impl FromNapiValue for Trap {
        unsafe fn from_napi_value(_: sys::napi_env, _: sys::napi_value) -> Result<Self> {
            panic!("on purpose")
        }
    }

    impl ToNapiValue for Trap {
        unsafe fn to_napi_value(_: sys::napi_env, _: Self) -> Result<sys::napi_value> {
            panic!("on purpose")
        }
    }
}

/// Each way into a class.
#[napi]
pub struct Mine {
    count: u32,
}

#[napi]
impl Mine {
    #[napi(constructor, catch_unwind)]
    pub fn new(panics: bool) -> Self {
        assert!(!panics, "on purpose");
        Mine { count: 0 }
    }

    #[napi(factory, catch_unwind)]
    pub fn open(panics: bool) -> Self {
        Mine::new(panics)
    }

    #[napi(getter, catch_unwind)]
    pub fn depth(&self) -> u32 {
        panic!("on purpose")
    }

    #[napi(setter, catch_unwind)]
    pub fn set_depth(&mut self, _depth: u32) {
        panic!("on purpose")
    }

    #[napi(getter, catch_unwind)]
    pub fn count(&self) -> u32 {
        self.count
    }

    #[napi(catch_unwind)]
    pub fn dig(&mut self, panics: bool) -> u32 {
        self.count += 1;
        assert!(!panics, "on purpose");
        self.count
    }

    #[napi(catch_unwind)]
    pub async fn dig_later(&self) -> Answer<u32> {
        panic!("on purpose")
    }
}

/// Dropped by the garbage collector, where no JavaScript waits for an error.
#[napi]
pub struct Mortal {
    _will: Kept<Will>,
}

struct Will;

impl Drop for Will {
    fn drop(&mut self) {
        panic!("on purpose")
    }
}

#[napi]
impl Mortal {
    #[napi(constructor, catch_unwind)]
    #[allow(clippy::new_without_default, reason = "only JavaScript makes one")]
    pub fn new() -> Self {
        Mortal { _will: Kept::new(Will) }
    }
}

/// The shapes that a grant could have, to be timed.
#[napi(object)]
pub struct Plain {
    pub slot: u32,
    pub fence: f64,
    pub deadline: f64,
    pub nonce: f64,
    pub doubt: bool,
}

#[napi]
pub struct Instance {
    pub fence: f64,
}

#[napi]
pub struct Shapes {
    count: u64,
    cells: BigUint64Array,
}

#[napi]
impl Shapes {
    #[napi(constructor, catch_unwind)]
    pub fn new(cells: BigUint64Array) -> Self {
        Shapes { count: 0, cells }
    }

    #[napi(catch_unwind)]
    pub fn number(&mut self, ttl: f64, priority: u32) -> f64 {
        self.count += 1;
        self.count as f64 + ttl + f64::from(priority)
    }

    #[napi(catch_unwind)]
    pub fn text(&mut self, _ttl: f64, _priority: u32) -> &'static str {
        self.count += 1;
        "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"
    }

    #[napi(catch_unwind)]
    pub fn plain(&mut self, ttl: f64, _priority: u32) -> Plain {
        self.count += 1;
        let count = self.count as f64;
        Plain { slot: 1, fence: count, deadline: ttl, nonce: count, doubt: false }
    }

    #[napi(catch_unwind)]
    pub fn instance(&mut self, _ttl: f64, _priority: u32) -> Instance {
        self.count += 1;
        Instance { fence: self.count as f64 }
    }

    #[napi(catch_unwind)]
    pub fn value(&mut self, ttl: f64, _priority: u32) -> Value {
        self.count += 1;
        let count = self.count as f64;
        Value::Map(vec![
            ("slot".into(), Value::Number(1.0)),
            ("fence".into(), Value::Number(count)),
            ("deadline".into(), Value::Number(ttl)),
            ("nonce".into(), Value::Number(count)),
            ("doubt".into(), Value::Bool(false)),
        ])
    }

    /// Writes the grant where JavaScript reads it, into cells that were handed over once.
    #[allow(
        unsafe_code,
        reason = "the face keeps the array to itself, so nothing else reads it during the call"
    )]
    #[napi(catch_unwind)]
    pub fn held_cells(&mut self, ttl: f64, _priority: u32) -> u32 {
        self.count += 1;
        // SAFETY: the array is only touched by this thread, and never detached.
        fill(unsafe { self.cells.as_mut() }, self.count, ttl)
    }

    /// The same into cells that are handed over with each call.
    #[allow(
        unsafe_code,
        reason = "the face keeps the array to itself, so nothing else reads it during the call"
    )]
    #[napi(catch_unwind)]
    pub fn passed_cells(&mut self, ttl: f64, _priority: u32, mut cells: BigUint64ArraySlice<'_>) -> u32 {
        self.count += 1;
        // SAFETY: the array is only touched by this thread during the call.
        fill(unsafe { cells.as_mut() }, self.count, ttl)
    }
}

/// The same without a class.
#[napi(catch_unwind)]
pub fn bare_number(ttl: f64, priority: u32) -> f64 {
    ttl + f64::from(priority)
}

#[napi(catch_unwind)]
pub fn bare_nothing() {}

thread_local! {
    static COUNTS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
}

/// A pool by its number in a table of this thread, which is this environment's: no class in between.
#[napi(catch_unwind)]
pub fn open_handle() -> u32 {
    COUNTS.with_borrow_mut(|counts| {
        counts.push(0);
        (counts.len() - 1) as u32
    })
}

#[allow(unsafe_code, reason = "the face keeps the array to itself, so nothing else reads it during the call")]
#[napi(catch_unwind)]
pub fn handle_cells(handle: u32, ttl: f64, _priority: u32, mut cells: BigUint64ArraySlice<'_>) -> u32 {
    COUNTS.with_borrow_mut(|counts| {
        let Some(count) = counts.get_mut(handle as usize) else { return 0 };
        *count += 1;
        // SAFETY: the array is only touched by this thread during the call.
        fill(unsafe { cells.as_mut() }, *count, ttl)
    })
}

fn fill(cells: &mut [u64], count: u64, ttl: f64) -> u32 {
    for (cell, value) in cells.iter_mut().zip([1, count, ttl as u64, count, 0]) {
        *cell = value;
    }
    1
}
