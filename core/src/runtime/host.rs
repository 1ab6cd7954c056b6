//! A host whose event loop waits for sockets itself.
//!
//! An answer that the runtime's thread reads has to wake the host's, which takes longer than most of what there is to do
//! with it. So what a host's turn asks goes over a connection whose socket the host's own loop watches, and is answered in
//! its thread. All else goes over another: a loop may be busy for long.

use std::cell::RefCell;
use std::ffi::c_int;
use std::sync::{Arc, Weak};

/// Has a host's event loop watch sockets. It is there for as long as the loop is.
pub trait Watcher: Send + Sync {
    /// Has [`Watched::readable`] called on the thread of the loop, each time that the socket can be read, until that gives false.
    /// Comes on the same thread. False if the loop cannot do it.
    fn watch(&self, socket: Arc<dyn Watched>) -> bool;
}

/// A socket, which is open for as long as somebody has this.
pub trait Watched: Send + Sync {
    /// Its file descriptor.
    fn fd(&self) -> c_int;

    /// It can be read: what waits for that runs on this thread. False if it is to be watched no more.
    fn readable(&self) -> bool;

    /// Whether it can be read.
    fn has_come(&self) -> bool;
}

thread_local! {
    /// Whose turn it is.
    static HOST: RefCell<Option<Host>> = const { RefCell::new(None) };
}

/// One event loop.
#[derive(Clone)]
pub(crate) struct Host(Arc<dyn Watcher>);

/// The same, for whoever does not keep it there.
#[derive(Clone)]
pub(crate) struct Guest(Weak<dyn Watcher>);

impl Host {
    pub fn new(watcher: Arc<dyn Watcher>) -> Self {
        Host(watcher)
    }

    /// The host of whose turn this is a part.
    pub fn current() -> Option<Self> {
        // As the thread ends it may be gone.
        HOST.try_with(|host| host.borrow().clone()).ok().flatten()
    }

    /// Does work that is a part of a turn of this host, if there is one.
    pub fn turn<T>(host: Option<&Self>, work: impl FnOnce() -> T) -> T {
        struct Before(Option<Host>);
        impl Drop for Before {
            fn drop(&mut self) {
                let before = self.0.take();
                // Dropped when it is no longer borrowed: that runs code.
                drop(HOST.try_with(|host| host.replace(before)));
            }
        }
        let _before = Before(HOST.replace(host.cloned()));
        work()
    }

    /// Has the loop watch a socket, in a turn of its.
    pub fn watch(&self, socket: Arc<dyn Watched>) -> bool {
        self.0.watch(socket)
    }

    pub fn guest(&self) -> Guest {
        Guest(Arc::downgrade(&self.0))
    }
}

impl Guest {
    /// Of none.
    pub fn nobody() -> Self {
        struct Nobody;
        impl Watcher for Nobody {
            fn watch(&self, _: Arc<dyn Watched>) -> bool {
                false
            }
        }
        Guest(Weak::<Nobody>::new())
    }

    /// The host, while it is there.
    pub fn host(&self) -> Option<Host> {
        self.0.upgrade().map(Host)
    }

    pub fn is_of(&self, host: &Host) -> bool {
        self.0.as_ptr().addr() == Arc::as_ptr(&host.0).addr()
    }
}
