//! Sockets that Node's own event loop watches, which is libuv's. What is used of libuv is looked for in the running process: a host
//! that has none leaves the sockets to the runtime.

use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Arc, OnceLock};

use leasehold::client::{Watched, Watcher};
use libloading::os::unix::{Library, Symbol};
use napi::{Env, Result, check_status, sys};

/// Has the event loop of this environment watch sockets; none if it cannot. `hear` is called when one can be read, and says whether
/// it is to be watched any longer.
#[allow(unsafe_code, reason = "the end of an environment is told through a C interface")]
pub fn watcher(env: &Env, hear: Hear) -> Result<Option<Arc<dyn Watcher>>> {
    let Some(uv) = Uv::here() else { return Ok(None) };
    let event_loop = env.get_uv_event_loop()?.cast();
    let mut hook = ptr::null_mut();
    // SAFETY: the hook needs nothing that could be gone by then.
    let status =
        unsafe { sys::napi_add_async_cleanup_hook(env.raw(), Some(end), ptr::null_mut(), &mut hook) };
    check_status!(status)?;
    OPEN.set(Some(Open::default()));
    Ok(Some(Arc::new(Eye { event_loop, uv, hear })))
}

/// What is called when a socket can be read.
type Hear = fn(&dyn Watched) -> bool;

/// The event loop of an environment.
struct Eye {
    event_loop: *mut c_void,
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

/// A socket that is watched, with the memory that libuv has for that.
struct Watch {
    memory: Box<[u128]>,
    socket: Arc<dyn Watched>,
    hear: Hear,
}

/// The handles of this thread, whose memory libuv uses until it says that it does no more.
#[derive(Default)]
struct Open {
    watched: Vec<Handle>,
    closing: usize,
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
        // SAFETY: as libuv documents it.
        let size = unsafe { (uv.handle_size)(POLL) };
        let mut watch =
            Box::new(Watch { memory: vec![0; size.div_ceil(size_of::<u128>())].into(), socket, hear });
        let (handle, fd) = (watch.memory.as_mut_ptr().cast(), watch.socket.fd());
        OPEN.with_borrow_mut(|open| {
            let Some(open) = open.as_mut().filter(|open| open.end.is_none()) else { return false };
            // SAFETY: on the thread of the loop, with memory of the size that libuv asks for, which is kept until the handle is
            // closed, as the socket is.
            unsafe {
                if (uv.poll_init)(event_loop, handle, fd) != 0 {
                    return false;
                }
                (uv.set_data)(handle, Box::into_raw(watch).cast());
                (uv.unref)(handle);
                open.watched.push(handle);
                if (uv.poll_start)(handle, READABLE, readable) != 0 {
                    open.close(handle, uv);
                    return false;
                }
            }
            true
        })
    }
}

#[allow(unsafe_code, reason = "libuv is a C library")]
impl Open {
    /// SAFETY: the handle is one of those that are watched.
    unsafe fn close(&mut self, handle: Handle, uv: &Uv) {
        self.watched.retain(|watched| *watched != handle);
        self.closing += 1;
        // SAFETY: it is closed once, as it is not among them any more.
        unsafe { (uv.close)(handle, closed) };
    }
}

/// A socket can be read, or has an error, which reading tells.
#[allow(unsafe_code, reason = "called by libuv")]
unsafe extern "C" fn readable(handle: Handle, status: c_int, _events: c_int) {
    let Some(uv) = Uv::here() else { return };
    // SAFETY: `watch` set it, and `closed` takes it.
    let (hear, socket) = unsafe {
        let watch = &*(uv.data)(handle).cast::<Watch>();
        (watch.hear, watch.socket.clone())
    };
    let goes_on = catch_unwind(AssertUnwindSafe(|| hear(&*socket))).unwrap_or(false);
    OPEN.with_borrow_mut(|open| {
        // What was called may have ended the environment.
        let Some(open) = open.as_mut().filter(|open| open.watched.contains(&handle)) else { return };
        // SAFETY: it is watched.
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
    // SAFETY: `watch` made it so, and this is called once.
    let watch = unsafe { Box::from_raw((uv.data)(handle).cast::<Watch>()) };
    let _ = catch_unwind(AssertUnwindSafe(|| drop(watch)));
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
        for handle in open.watched.clone() {
            // SAFETY: it is watched.
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
    poll_init: Symbol<unsafe extern "C" fn(*mut c_void, Handle, c_int) -> c_int>,
    poll_start: Symbol<unsafe extern "C" fn(Handle, c_int, OnReadable) -> c_int>,
    set_data: Symbol<unsafe extern "C" fn(Handle, *mut c_void)>,
    data: Symbol<unsafe extern "C" fn(Handle) -> *mut c_void>,
    unref: Symbol<unsafe extern "C" fn(Handle)>,
    close: Symbol<unsafe extern "C" fn(Handle, unsafe extern "C" fn(Handle))>,
}

type OnReadable = unsafe extern "C" fn(Handle, c_int, c_int);

/// `UV_POLL` of its `uv_handle_type`.
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
                set_data: process.get(b"uv_handle_set_data\0").ok()?,
                data: process.get(b"uv_handle_get_data\0").ok()?,
                unref: process.get(b"uv_unref\0").ok()?,
                close: process.get(b"uv_close\0").ok()?,
            })
        }
    }
}
