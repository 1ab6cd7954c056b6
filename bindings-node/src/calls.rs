//! Calls that wait for a store. They are polled on the thread of their environment, and all that have ended
//! reach JavaScript in one call: a promise of N-API for each would cost more than all the rest.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::panic::AssertUnwindSafe;
#[cfg(unix)]
use std::ptr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
#[cfg(unix)]
use std::thread;

use futures_util::FutureExt;
use leasehold::error::Result as CoreResult;
#[cfg(unix)]
use leasehold::runtime::Watched;
use leasehold::runtime::{Begun, Calls};
use leasehold::{Code, Error};
use napi::bindgen_prelude::{
    Array, Function, JsObjectValue, Object, ObjectRef, ToNapiValue, panic_to_error, sys,
};
use napi::threadsafe_function::{ThreadsafeFunction, ThreadsafeFunctionCallMode};
use napi::{Env, JsValue, Result, Status, check_status};
use napi_derive::napi;

use crate::answer::{Answer, misused};
use crate::granted::Granted;
use crate::hit;
use crate::kept::Kept;
use crate::registers;
use crate::runtime;
#[cfg(unix)]
use crate::sockets;

/// A call that has begun.
pub enum Soon<T> {
    /// Its answer.
    Now(Answer<T>),
    /// The number by which [`turn`] will name it, and [`give_up`] drops it.
    Later(u64),
}

#[allow(unsafe_code, reason = "napi declares this conversion unsafe; it passes one on")]
impl<T: ToNapiValue> ToNapiValue for Soon<T> {
    unsafe fn to_napi_value(env: sys::napi_env, soon: Self) -> Result<sys::napi_value> {
        // SAFETY: the value is made in the environment of this call.
        unsafe {
            match soon {
                Soon::Now(answer) => Answer::to_napi_value(env, answer),
                Soon::Later(number) => f64::to_napi_value(env, number as f64),
            }
        }
    }
}

/// The calls of an environment. What a call gives, if not nothing, was granted.
struct Desk {
    calls: Calls<CoreResult<Option<Granted>>>,
    bell: Arc<Bell>,
    /// How many of the calls do not keep the process alive.
    aside: Arc<AtomicUsize>,
    /// Whether the bell keeps the process alive: as long as any other call is under way.
    kept: Cell<bool>,
    env: Env,
    face: ObjectRef<false>,
}

/// `() => void`: has the face call [`turn`]. Weak, so that it does not keep the process alive by itself.
type Bell = ThreadsafeFunction<(), (), (), Status, false, true>;

thread_local! {
    static DESK: RefCell<Option<Rc<Kept<Desk>>>> = const { RefCell::new(None) };
}

/// The face says, as it is loaded, how it is told of calls that ended, and what memory it shares. Answers the first that did in this
/// thread, and hears no other: test runners and servers load modules anew, and all copies of the face are to share what
/// they say here.
#[napi(catch_unwind)]
pub fn attend<'env>(env: &'env Env, face: Object<'env>) -> Result<Object<'env>> {
    hit("attend");
    // Before the desk is looked for: what a thread has is dropped in the other order, and calls end within the runtime.
    let handle = runtime::handle().map_err(|error| napi::Error::from_reason(error.message()))?;
    drop(handle.enter());
    if let Ok(desk) = desk() {
        return desk.face.get_value(env);
    }
    registers::lend(face.get_named_property("cells")?);
    let bell: Function<(), ()> = face.get_named_property("bell")?;
    let bell: Bell = bell.build_threadsafe_function().weak::<true>().callee_handled::<false>().build()?;
    let bell = Arc::new(bell);
    let ringer = bell.clone();
    let mut calls = Calls::new(handle, move || {
        // At the end of the environment there is nobody to be told.
        ringer.call((), ThreadsafeFunctionCallMode::NonBlocking);
    });
    #[cfg(unix)]
    if face.get_named_property("libuv")?
        && let Some(watcher) = sockets::watcher(env, hear, looks)?
    {
        calls = calls.watching(watcher);
    }
    let (aside, kept) = (Arc::default(), Cell::new(false));
    let desk = Desk { calls, bell, aside, kept, env: *env, face: face.create_ref()? };
    DESK.set(Some(Rc::new(Kept::new(desk))));
    Ok(face)
}

/// The calls that have ended: the number of each, then its answer. What calls have to send sets out.
#[napi(catch_unwind)]
pub fn turn(env: &Env) -> Result<Array<'_>> {
    hit("turn");
    let desk = desk()?;
    let ended = desk.calls.turn();
    desk.keep(env)?;
    #[cfg(unix)]
    if desk.calls.begins_to_look() {
        sockets::look();
    }
    let mut answers = env.create_array(2 * ended.len() as u32)?;
    for ((number, outcome), at) in ended.into_iter().zip(0..) {
        answers.set(2 * at, number as f64)?;
        answers.set(2 * at + 1, Answer(outcome))?;
    }
    Ok(answers)
}

/// Drops a call that is under way, which leaves nothing behind; false if it has ended.
#[napi(catch_unwind)]
pub fn give_up(env: &Env, call: f64) -> Result<bool> {
    hit("give_up");
    let desk = desk()?;
    let is_under_way = desk.calls.give_up(call as u64);
    desk.keep(env)?;
    Ok(is_under_way)
}

/// Begins a call.
pub fn begin(
    env: &Env,
    call: impl Future<Output = CoreResult<Option<Granted>>> + Send + 'static,
) -> Result<Soon<Option<Granted>>> {
    let call = AssertUnwindSafe(call).catch_unwind().map(|outcome| match outcome {
        Ok(outcome) => outcome,
        Err(panic) => Err(Error::new(Code::Internal, panic_to_error(panic).reason)),
    });
    let desk = desk()?;
    match desk.calls.begin(call) {
        Begun::Ended(outcome) => Ok(Soon::Now(Answer(outcome))),
        Begun::UnderWay(number) => {
            desk.keep(env)?;
            Ok(Soon::Later(number))
        }
    }
}

/// Begins to wait for what a holder may be told: then the call fails. The process need not wait for that. It is asked
/// before, as a task that watches leases is not to wait for the end of the turn; and the call must not hold what is
/// held, which would never be collected.
pub fn told(
    env: &Env,
    word: impl Future<Output = Option<Error>> + Send + 'static,
) -> Result<Soon<Option<Granted>>> {
    let aside = Aside::new(desk()?.aside.clone());
    begin(env, async move {
        let _aside = aside;
        word.await.map_or(Ok(None), Err)
    })
}

/// A socket that is watched can be read. Says whether it is to be watched any longer.
#[cfg(unix)]
fn hear(socket: &dyn Watched) -> bool {
    // The desk is there for as long as anything is watched.
    let Ok(desk) = desk() else { return false };
    let heard = desk.calls.hear(socket);
    if heard.turn && desk.have_turn().is_err() {
        desk.bell.call((), ThreadsafeFunctionCallMode::NonBlocking);
    }
    heard.open
}

/// Whether the loop is to go round without sleep.
#[cfg(unix)]
fn looks() -> bool {
    hit("looks");
    let looks = desk().is_ok_and(|desk| desk.calls.looks());
    if looks {
        // Whoever shares the processor, the store perhaps.
        thread::yield_now();
    }
    looks
}

/// How many calls are under way.
#[cfg(feature = "trial")]
pub fn under_way() -> Result<u32> {
    Ok(desk()?.calls.len() as u32)
}

/// Counts a call for as long as it is under way.
struct Aside(Arc<AtomicUsize>);

impl Aside {
    fn new(count: Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Relaxed);
        Aside(count)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

fn desk() -> Result<Rc<Kept<Desk>>> {
    DESK.with_borrow(Clone::clone).ok_or_else(|| {
        napi::Error::from_reason(misused("calls before the face was there to attend to them").message())
    })
}

impl Desk {
    /// Has the face call [`turn`] now, outside of any call of JavaScript's. An error if it may not have been called.
    #[cfg(unix)]
    #[allow(unsafe_code, reason = "napi has no safe way into JavaScript from where it was not left")]
    fn have_turn(&self) -> Result<()> {
        let env = self.env.raw();
        let mut scope = ptr::null_mut();
        // SAFETY: on the thread of the environment, which is there as it calls this; the scope is closed in each case.
        unsafe {
            check_status!(sys::napi_open_handle_scope(env, &mut scope))?;
            let called = self.face.get_value(&self.env).and_then(|face| {
                let bell: Function<(), ()> = face.get_named_property("bell")?;
                called(env, &face, &bell)
            });
            check_status!(sys::napi_close_handle_scope(env, scope))?;
            called
        }
    }

    #[allow(unsafe_code, reason = "napi has no safe way for a threadsafe function that is shared")]
    fn keep(&self, env: &Env) -> Result<()> {
        let keeps = self.calls.len() > self.aside.load(Relaxed);
        if self.kept.replace(keeps) == keeps || self.bell.aborted() {
            return Ok(());
        }
        // SAFETY: on the thread of the environment, which has not ended the function.
        let status = unsafe {
            match keeps {
                true => sys::napi_ref_threadsafe_function(env.raw(), self.bell.raw()),
                false => sys::napi_unref_threadsafe_function(env.raw(), self.bell.raw()),
            }
        };
        match Status::from(status) {
            Status::Ok => Ok(()),
            status => Err(napi::Error::new(status, "the bell cannot be kept")),
        }
    }
}

/// Calls a method as an event loop does: what waits for the promises that it settles runs before this ends, and what is thrown
/// there is nobody's here, but is to reach whoever listens to `uncaughtException`.
///
/// SAFETY: on the thread of the environment, within a scope.
#[cfg(unix)]
#[allow(unsafe_code, reason = "as above")]
unsafe fn called(env: sys::napi_env, face: &Object, method: &Function<(), ()>) -> Result<()> {
    let (none, nothing, mut result, mut thrown) =
        (ptr::null_mut(), ptr::null(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: as this function's.
    unsafe {
        let status = sys::napi_make_callback(env, none, face.raw(), method.raw(), 0, nothing, &mut result);
        if status != sys::Status::napi_pending_exception {
            return check_status!(status);
        }
        check_status!(sys::napi_get_and_clear_last_exception(env, &mut thrown))?;
        check_status!(sys::napi_fatal_exception(env, thrown))?;
        // Where it was thrown before, nothing was called.
        Err(napi::Error::from_status(Status::PendingException))
    }
}
