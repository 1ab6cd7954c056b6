//! What wakes an event loop from another thread.

use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;

use pyo3::intern;
use pyo3::prelude::*;

/// One for each event loop, which watches its socket. It may ring more often than needed, never less. Both ends are of one owner,
/// so that neither finds the other one closed.
pub struct Bell {
    ear: UnixStream,
    mouth: UnixStream,
}

impl Bell {
    /// A new bell.
    pub fn new() -> PyResult<Self> {
        let (ear, mouth) = UnixStream::pair()?;
        ear.set_nonblocking(true)?;
        mouth.set_nonblocking(true)?;
        Ok(Self { ear, mouth })
    }

    /// Names who answers.
    pub fn answer_with(&self, event_loop: &Bound<'_, PyAny>, call: Bound<'_, PyAny>) -> PyResult<()> {
        let py = event_loop.py();
        event_loop.call_method1(intern!(py, "add_reader"), (self.ear.as_raw_fd(), call))?;
        Ok(())
    }

    /// Wakes the loop.
    pub fn ring(&self) {
        // A full socket has rung already.
        drop((&self.mouth).write(&[1]));
    }

    /// Ends the ringing.
    pub fn silence(&self) {
        while (&self.ear).read(&mut [0; 64]).is_ok_and(|read| read == 64) {}
    }
}
