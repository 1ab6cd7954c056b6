//! What wakes an event loop from another thread.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use pyo3::exceptions::PyNotImplementedError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tokio::runtime::Handle;

use crate::runtime;

/// One for each event loop. It may ring more often than needed, never less.
pub enum Bell {
    /// The loop watches the socket. Both ends are of one owner, so that neither finds the other one closed.
    Socket { ear: UnixStream, mouth: UnixStream },
    /// For loops that watch no sockets, as Windows' own: the ringing thread has to enter the interpreter.
    Call { caller: Arc<Caller>, tokio: Handle },
}

/// A loop and what it is to call.
pub struct Caller {
    event_loop: Py<PyAny>,
    answer: PyOnceLock<Py<PyAny>>,
}

impl Bell {
    /// A bell that suits the loop.
    pub fn new(event_loop: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = event_loop.py();
        let (ear, mouth) = UnixStream::pair()?;
        ear.set_nonblocking(true)?;
        mouth.set_nonblocking(true)?;
        match event_loop.call_method1(intern!(py, "remove_reader"), (ear.as_raw_fd(),)) {
            Err(error) if error.is_instance_of::<PyNotImplementedError>(py) => {
                let caller = Caller { event_loop: event_loop.clone().unbind(), answer: PyOnceLock::new() };
                let tokio = runtime::local(py)?.tokio.handle().clone();
                Ok(Self::Call { caller: Arc::new(caller), tokio })
            }
            Err(error) => Err(error),
            Ok(_) => Ok(Self::Socket { ear, mouth }),
        }
    }

    /// Names who answers.
    pub fn answer_with(&self, event_loop: &Bound<'_, PyAny>, call: Bound<'_, PyAny>) -> PyResult<()> {
        let py = event_loop.py();
        match self {
            Self::Socket { ear, .. } => {
                event_loop.call_method1(intern!(py, "add_reader"), (ear.as_raw_fd(), call))?;
            }
            Self::Call { caller, .. } => {
                caller.answer.get_or_init(py, || call.unbind());
            }
        }
        Ok(())
    }

    /// Wakes the loop.
    pub fn ring(&self) {
        match self {
            // A full socket has rung already.
            Self::Socket { mouth, .. } => drop((&*mouth).write(&[1])),
            Self::Call { caller, tokio } => {
                let caller = caller.clone();
                tokio.spawn_blocking(move || caller.call());
            }
        }
    }

    /// Ends the ringing.
    pub fn silence(&self) {
        if let Self::Socket { ear, .. } = self {
            while (&*ear).read(&mut [0; 64]).is_ok_and(|read| read == 64) {}
        }
    }
}

impl Caller {
    fn call(&self) {
        // No interpreter if it is ending; and a closed loop refuses, but then nobody waits for it any more.
        Python::try_attach(|py| {
            let answer = self.answer.get(py)?;
            self.event_loop.call_method1(py, intern!(py, "call_soon_threadsafe"), (answer,)).ok()
        });
    }
}
