//! One running server process.

use std::fs;
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use crate::spawner::spawn;

/// A child process, killed and reaped on drop.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
}

const PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(2);

impl Process {
    pub(crate) fn start(command: Command) -> io::Result<Self> {
        Ok(Self { child: spawn(command)? })
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended by itself.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// Stops it (SIGSTOP) and waits until the kernel has done so.
    pub(crate) fn pause(&self) -> io::Result<()> {
        self.signal(libc::SIGSTOP)?;
        let begun = Instant::now();
        while self.state() != Some('T') {
            if begun.elapsed() > PATIENCE {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "the server does not stop"));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    pub(crate) fn resume(&self) -> io::Result<()> {
        self.signal(libc::SIGCONT)
    }

    /// Kills it (SIGKILL) and reaps it.
    pub(crate) fn kill(mut self) -> io::Result<()> {
        self.child.kill()?;
        self.child.wait().map(drop)
    }

    /// Asks it to end (SIGTERM) and reaps it; one that does not is killed.
    pub(crate) fn stop(mut self) -> io::Result<()> {
        self.signal(libc::SIGTERM)?;
        // A stopped process does not see the request before it goes on.
        self.resume()?;
        let begun = Instant::now();
        while self.child.try_wait()?.is_none() {
            if begun.elapsed() > PATIENCE {
                return self.kill();
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// The letter by which the kernel tells the state of a process.
    fn state(&self) -> Option<char> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.id())).ok()?;
        stat.rsplit(") ").next()?.chars().next()
    }

    #[allow(unsafe_code, reason = "the standard library sends no signal but SIGKILL")]
    fn signal(&self, signal: i32) -> io::Result<()> {
        let id = libc::pid_t::try_from(self.id()).map_err(io::Error::other)?;
        // SAFETY: the child has not been reaped while `self` lives, so that the id is still its own.
        let result = unsafe { libc::kill(id, signal) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only for a process that has been reaped already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper() -> Process {
        let mut command = Command::new("sleep");
        command.arg("1000");
        Process::start(command).expect("started")
    }

    fn exists(id: u32) -> bool {
        fs::exists(format!("/proc/{id}")).expect("looked")
    }

    #[test]
    fn a_process_pauses_and_goes_on() {
        let mut process = sleeper();
        process.pause().expect("paused");
        assert_eq!(process.state(), Some('T'));
        process.resume().expect("resumed");
        let begun = Instant::now();
        while process.state() == Some('T') && begun.elapsed() < PATIENCE {
            thread::sleep(POLL);
        }
        assert_ne!(process.state(), Some('T'));
        assert!(process.ended().is_none());
    }

    #[test]
    fn a_process_ends_and_is_reaped() {
        for end in [Process::kill, Process::stop] {
            let process = sleeper();
            let id = process.id();
            process.pause().expect("paused");
            end(process).expect("ended");
            assert!(!exists(id));
        }
        let process = sleeper();
        let id = process.id();
        drop(process);
        assert!(!exists(id));
    }
}
