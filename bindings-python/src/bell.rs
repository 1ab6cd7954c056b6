//! What wakes an event loop from another thread.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;

/// One for each event loop, which watches its socket. It may ring more often than needed, never less. Both ends are of one owner,
/// so that neither finds the other one closed.
pub struct Bell {
    ear: UnixStream,
    mouth: UnixStream,
}

impl Bell {
    /// A new bell.
    pub fn new() -> io::Result<Self> {
        let (ear, mouth) = UnixStream::pair()?;
        ear.set_nonblocking(true)?;
        mouth.set_nonblocking(true)?;
        Ok(Self { ear, mouth })
    }

    /// The socket to be watched.
    pub fn ear(&self) -> RawFd {
        self.ear.as_raw_fd()
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
