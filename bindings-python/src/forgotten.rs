//! What its holder dropped without giving it back.
//!
//! Python drops an object with the last name for it: that of a function's local variable as the function returns. This says
//! nothing of the work under a lease, as who took `slot` and `nonce` out of it may still be at work. So what is dropped is not
//! given back: it is renewed no more, and ends at its deadline. But what an exception drops that nobody has asked anything of yet
//! never came to its caller, as where Ctrl-C is heard between a call that acquires and what is done with what it gives: nobody works
//! under that.

use std::ffi::CString;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use pyo3::exceptions::PyResourceWarning;
use pyo3::prelude::*;

use crate::face::{CoreLease, CoreLocked, CoreSelection};
use crate::process::Homebound;
use crate::runtime;

/// What somebody holds until it is given back.
pub trait Holding {
    /// What it is, if it is still held.
    fn held(&self) -> Option<String>;

    /// However it ends from now on, it runs to its deadline.
    fn lapse(&self);

    /// Its caller has not seen it: it is given back as it is dropped, or here.
    fn unseen(&self) {}
}

impl Holding for CoreLease {
    fn held(&self) -> Option<String> {
        self.is_held().then(|| format!("lease of {}", self.slot()))
    }

    fn lapse(&self) {
        Self::lapse(self);
    }

    fn unseen(&self) {
        Self::unseen(self);
    }
}

impl Holding for CoreLocked {
    fn held(&self) -> Option<String> {
        self.is_held().then(|| format!("lock of {}", self.names().collect::<Vec<_>>().join(", ")))
    }

    fn lapse(&self) {
        Self::lapse(self);
    }
}

impl Holding for CoreSelection {
    fn held(&self) -> Option<String> {
        // One of no token has nothing that could be given back.
        let count = self.tokens().len();
        (count > 0 && self.is_held()).then(|| format!("selection of {count} token(s)"))
    }

    fn lapse(&self) {
        Self::lapse(self);
    }
}

/// The object that had it is dropped: a destructor's part. Its thread has the interpreter.
pub fn forgotten<T: Holding>(core: &Homebound<Arc<T>>) {
    let unseen = never_came(core);
    // At the exit nobody is at work any more: what is held then is given back. A forked child had nothing to forget.
    let Some(core) = core.here().filter(|_| !runtime::ends()) else { return };
    // A destructor has nobody to tell of a panic.
    let _ = catch_unwind(AssertUnwindSafe(|| {
        if unseen {
            return core.unseen();
        }
        let held = core.held();
        core.lapse();
        held.into_iter().for_each(|thing| complain(&thing));
    }));
}

/// Whether an exception drops it before its caller had it.
pub fn never_came<T>(core: &Homebound<T>) -> bool {
    core.is_unseen() && Python::try_attach(PyErr::occurred).unwrap_or_default()
}

/// As Python does of files that nobody closed: heard in its development mode, and under test.
#[cold]
fn complain(thing: &str) {
    let text = format!(
        "the {thing} was dropped without being given back; it ends at its deadline: use `with`, or release()"
    );
    // A name of a lock may have any character.
    let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
    Python::try_attach(|py| {
        // An exception may be on its way, which dropped the object as it left the function.
        let raised = PyErr::take(py);
        if let Err(refused) = PyErr::warn(py, &py.get_type::<PyResourceWarning>(), &text, 1) {
            refused.write_unraisable(py, None);
        }
        if let Some(raised) = raised {
            raised.restore(py);
        }
    });
}
