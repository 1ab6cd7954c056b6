//! Sockets that Node's own event loop watches, which is libuv's, and how it looks for what they bring without sleep. What is used of
//! libuv is looked for in the running process: a host that has none leaves the sockets to the runtime.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, OnceLock};

use leasehold::runtime::{Watched, Watcher};
use libloading::os::unix::{Library, Symbol};
use napi::{Env, Result, check_status, sys};

/// Has the event loop of this environment watch sockets; none if it cannot. `hear` is called when one can be read, and says whether
/// it is to be watched any longer; `looks` is called each time that the loop goes round after [`look`], and says whether it is to do so
/// again without sleep.
#[allow(unsafe_code, reason = "the end of an environment is told through a C interface")]
pub fn watcher(env: &Env, hear: Hear, looks: Looks) -> Result<Option<Arc<dyn Watcher>>> {
    let Some(uv) = Uv::here() else { return Ok(None) };
    let event_loop: EventLoop = env.get_uv_event_loop()?.cast();
    let mut hook = ptr::null_mut();
    // SAFETY: the hook needs nothing that could be gone by then.
    let status =
        unsafe { sys::napi_add_async_cleanup_hook(env.raw(), Some(end), ptr::null_mut(), &mut hook) };
    check_status!(status)?;
    let mut open = Open::default();
    // SAFETY: on the thread of the loop.
    open.round =
        unsafe { open.begin(uv, IDLE, Use::Round(looks), |handle| (uv.idle_init)(event_loop, handle)) };
    OPEN.set(Some(open));
    Ok(Some(Arc::new(Eye { event_loop, uv, hear })))
}

/// Has the event loop of this thread go round without sleep, and see to all that is ready, for as long as `looks` says.
#[allow(unsafe_code, reason = "libuv is a C library")]
pub fn look() {
    OPEN.with_borrow(|open| {
        let round = open.as_ref().filter(|open| open.end.is_none()).and_then(|open| open.round);
        if let (Some(round), Some(uv)) = (round, Uv::here()) {
            // SAFETY: it is open. Without effect if it goes round already.
            unsafe { (uv.idle_start)(round, goes_round) };
        }
    });
}

/// What is called when a socket can be read.
type Hear = fn(&dyn Watched) -> bool;
/// What is called each time that a loop goes round.
type Looks = fn() -> bool;
/// A loop of libuv.
type EventLoop = *mut c_void;

/// The event loop of an environment.
struct Eye {
    event_loop: EventLoop,
    uv: &'static Uv,
    hear: Hear,
}

// SAFETY: the loop is used by `watch` only, which comes on its thread.
#[allow(unsafe_code, reason = "a pointer that only one thread follows")]
unsafe impl Send for Eye {}
// SAFETY: as above.
#[allow(unsafe_code, reason = "as above")]
unsafe impl Sync for Eye {}

/// A handle of libuv.
type Handle = *mut c_void;

/// What a handle is for, with the memory that libuv has for that.
struct Held {
    memory: Box<[u128]>,
    usage: Use,
}

#[derive(Clone)]
enum Use {
    /// A socket that is watched.
    Socket(Arc<dyn Watched>, Hear),
    /// The rounds of the loop.
    Round(Looks),
}

/// The handles of this thread, whose memory libuv uses until it says that it does no more.
#[derive(Default)]
struct Open {
    handles: Vec<Handle>,
    closing: usize,
    /// The one of them that has the loop go round.
    round: Option<Handle>,
    /// What is to be told when none is left.
    end: Option<sys::napi_async_cleanup_hook_handle>,
}

thread_local! {
    /// None before there is a watcher.
    static OPEN: RefCell<Option<Open>> = const { RefCell::new(None) };
}

#[allow(unsafe_code, reason = "libuv is a C library")]
impl Watcher for Eye {
    fn watch(&self, socket: Arc<dyn Watched>) -> bool {
        let Eye { event_loop, uv, hear } = *self;
        let fd = socket.fd();
        OPEN.with_borrow_mut(|open| {
            let Some(open) = open.as_mut().filter(|open| open.end.is_none()) else { return false };
            // SAFETY: on the thread of the loop. The socket is kept until the handle is closed.
            unsafe {
                let init = |handle| (uv.poll_init)(event_loop, handle, fd);
                let Some(handle) = open.begin(uv, POLL, Use::Socket(socket, hear), init) else {
                    return false;
                };
                let started = (uv.poll_start)(handle, READABLE, readable) == 0;
                if !started {
                    open.close(handle, uv);
                }
                started
            }
        })
    }
}

#[allow(unsafe_code, reason = "libuv is a C library")]
impl Open {
    /// A new handle, which does not keep the loop alive; none if libuv has none.
    ///
    /// SAFETY: on the thread of the loop, with a type of handle and what makes one of that type.
    unsafe fn begin(
        &mut self,
        uv: &Uv,
        kind: c_int,
        usage: Use,
        init: impl FnOnce(Handle) -> c_int,
    ) -> Option<Handle> {
        // SAFETY: the memory is of the size that libuv asks for, and is kept until the handle is closed.
        unsafe {
            let size = (uv.handle_size)(kind);
            let mut held = Box::new(Held { memory: vec![0; size.div_ceil(size_of::<u128>())].into(), usage });
            let handle: Handle = held.memory.as_mut_ptr().cast();
            if init(handle) != 0 {
                return None;
            }
            (uv.set_data)(handle, Box::into_raw(held).cast());
            (uv.unref)(handle);
            self.handles.push(handle);
            Some(handle)
        }
    }

    /// SAFETY: the handle is one of those that are open.
    unsafe fn close(&mut self, handle: Handle, uv: &Uv) {
        self.handles.retain(|open| *open != handle);
        self.closing += 1;
        // SAFETY: it is closed once, as it is not among them any more.
        unsafe { (uv.close)(handle, closed) };
    }
}

/// What a handle is for.
///
/// SAFETY: it is open, or about to be closed.
#[allow(unsafe_code, reason = "libuv is a C library")]
unsafe fn usage(uv: &Uv, handle: Handle) -> Use {
    // SAFETY: `begin` set it, and `closed` takes it.
    unsafe { (*(uv.data)(handle).cast::<Held>()).usage.clone() }
}

/// The loop is about to go round once more.
#[allow(unsafe_code, reason = "called by libuv")]
unsafe extern "C" fn goes_round(handle: Handle) {
    let Some(uv) = Uv::here() else { return };
    // SAFETY: libuv calls this for a handle that is open, on the thread of its loop.
    unsafe {
        let Use::Round(looks) = usage(uv, handle) else { return };
        if !catch_unwind(looks).unwrap_or(false) {
            (uv.idle_stop)(handle);
        }
    }
}

/// A socket can be read, or has an error, which reading tells.
#[allow(unsafe_code, reason = "called by libuv")]
unsafe extern "C" fn readable(handle: Handle, status: c_int, _events: c_int) {
    let Some(uv) = Uv::here() else { return };
    // SAFETY: libuv calls this for a handle that is open.
    let Use::Socket(socket, hear) = (unsafe { usage(uv, handle) }) else { return };
    let goes_on = catch_unwind(AssertUnwindSafe(|| hear(&*socket))).unwrap_or(false);
    OPEN.with_borrow_mut(|open| {
        // What was called may have ended the environment.
        let Some(open) = open.as_mut().filter(|open| open.handles.contains(&handle)) else { return };
        // SAFETY: it is open.
        unsafe {
            // After an error libuv watches no more by itself.
            if !goes_on || (status < 0 && (uv.poll_start)(handle, READABLE, readable) != 0) {
                open.close(handle, uv);
            }
        }
    });
}

/// libuv uses the memory no more.
#[allow(unsafe_code, reason = "called by libuv")]
unsafe extern "C" fn closed(handle: Handle) {
    let Some(uv) = Uv::here() else { return };
    // SAFETY: `begin` made it so, and this is called once.
    let held = unsafe { Box::from_raw((uv.data)(handle).cast::<Held>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(held)));
    OPEN.with_borrow_mut(|open| {
        if let Some(open) = open {
            open.closing -= 1;
            open.tell_end();
        }
    });
}

/// The environment ends, and its loop must not be left with handles.
#[allow(unsafe_code, reason = "called by Node")]
unsafe extern "C" fn end(hook: sys::napi_async_cleanup_hook_handle, _: *mut c_void) {
    let Some(uv) = Uv::here() else { return };
    OPEN.with_borrow_mut(|open| {
        let open = open.get_or_insert_default();
        open.end = Some(hook);
        for handle in open.handles.clone() {
            // SAFETY: it is open.
            unsafe { open.close(handle, uv) };
        }
        open.tell_end();
    });
}

impl Open {
    #[allow(unsafe_code, reason = "a C interface of Node")]
    fn tell_end(&mut self) {
        if let Some(hook) = self.end.filter(|_| self.closing == 0) {
            // SAFETY: Node gave it to `end`, and waits for this, which comes once, as the last handle is closed or if there was none.
            unsafe { sys::napi_remove_async_cleanup_hook(hook) };
        }
    }
}

/// What is used of libuv.
struct Uv {
    handle_size: Symbol<unsafe extern "C" fn(c_int) -> usize>,
    poll_init: Symbol<unsafe extern "C" fn(EventLoop, Handle, c_int) -> c_int>,
    poll_start: Symbol<unsafe extern "C" fn(Handle, c_int, OnReadable) -> c_int>,
    idle_init: Symbol<unsafe extern "C" fn(EventLoop, Handle) -> c_int>,
    idle_start: Symbol<unsafe extern "C" fn(Handle, unsafe extern "C" fn(Handle)) -> c_int>,
    idle_stop: Symbol<unsafe extern "C" fn(Handle) -> c_int>,
    set_data: Symbol<unsafe extern "C" fn(Handle, *mut c_void)>,
    data: Symbol<unsafe extern "C" fn(Handle) -> *mut c_void>,
    unref: Symbol<unsafe extern "C" fn(Handle)>,
    close: Symbol<unsafe extern "C" fn(Handle, unsafe extern "C" fn(Handle))>,
}

type OnReadable = unsafe extern "C" fn(Handle, c_int, c_int);

/// `UV_IDLE` and `UV_POLL` of its `uv_handle_type`.
const IDLE: c_int = 6;
const POLL: c_int = 8;
/// `UV_READABLE` of its `uv_poll_event`.
const READABLE: c_int = 1;

impl Uv {
    fn here() -> Option<&'static Self> {
        static UV: OnceLock<Option<Uv>> = OnceLock::new();
        UV.get_or_init(Self::find).as_ref()
    }

    #[allow(unsafe_code, reason = "functions of C have the types that their header says")]
    fn find() -> Option<Self> {
        let process = Library::this();
        // SAFETY: the types are those of uv.h, which are the same in all of libuv 1.
        unsafe {
            Some(Uv {
                handle_size: process.get(b"uv_handle_size\0").ok()?,
                poll_init: process.get(b"uv_poll_init\0").ok()?,
                poll_start: process.get(b"uv_poll_start\0").ok()?,
                idle_init: process.get(b"uv_idle_init\0").ok()?,
                idle_start: process.get(b"uv_idle_start\0").ok()?,
                idle_stop: process.get(b"uv_idle_stop\0").ok()?,
                set_data: process.get(b"uv_handle_set_data\0").ok()?,
                data: process.get(b"uv_handle_get_data\0").ok()?,
                unref: process.get(b"uv_unref\0").ok()?,
                close: process.get(b"uv_close\0").ok()?,
            })
        }
    }
}
