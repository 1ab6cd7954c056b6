//! Children that do not outlive the test process.

use std::io;
use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread;

type Order = (Command, Sender<io::Result<Child>>);

static ORDERS: OnceLock<Mutex<Sender<Order>>> = OnceLock::new();

/// Starts a child that the kernel kills when this process ends, even by SIGKILL.
///
/// The kernel sends that signal when the *thread* that started the child ends, and a test's thread ends with the
/// test; so one thread, which lasts as long as the process, starts them all.
pub(crate) fn spawn(mut command: Command) -> io::Result<Child> {
    die_with_parent(&mut command);
    let orders = ORDERS.get_or_init(|| {
        let (sender, receiver) = channel::<Order>();
        thread::spawn(move || {
            for (mut command, answer) in receiver {
                let _ = answer.send(command.spawn());
            }
        });
        Mutex::new(sender)
    });
    let (answer, result) = channel();
    let gone = |_| io::Error::other("the thread that starts servers has ended");
    orders.lock().unwrap_or_else(PoisonError::into_inner).send((command, answer)).map_err(|_| gone(()))?;
    result.recv().map_err(|_| gone(()))?
}

#[allow(unsafe_code, reason = "only a hook between fork and exec can ask for a signal at the parent's death")]
fn die_with_parent(command: &mut Command) {
    use std::os::unix::process::CommandExt;

    let parent = std::process::id();
    let hook = move || {
        // SAFETY: both calls are async-signal-safe and touch no memory of the parent.
        let orphaned = unsafe {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(io::Error::last_os_error());
            }
            libc::getppid().unsigned_abs() != parent
        };
        // The parent may have died before the request was made.
        if orphaned { Err(io::Error::from_raw_os_error(libc::ESRCH)) } else { Ok(()) }
    };
    // SAFETY: the hook allocates nothing and takes no lock, as is asked of code between fork and exec.
    unsafe { command.pre_exec(hook) };
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::path::PathBuf;
    use std::process::Stdio;
    use std::time::{Duration, Instant};

    use super::*;

    fn sleeper() -> Child {
        let mut command = Command::new("sleep");
        command.arg("1000");
        spawn(command).expect("started")
    }

    #[test]
    fn a_child_outlives_the_thread_that_asked_for_it() {
        let mut child = thread::spawn(sleeper).join().expect("no panic");
        thread::sleep(Duration::from_millis(100));
        assert!(child.try_wait().expect("waited").is_none());
        child.kill().expect("killed");
        child.wait().expect("reaped");
    }

    #[test]
    #[ignore = "run by the test below, in a process of its own"]
    fn process_that_is_killed() {
        println!("child {}.", sleeper().id());
        thread::sleep(Duration::from_secs(60));
    }

    #[test]
    fn a_child_dies_with_the_process() {
        let mut process = Command::new(std::env::current_exe().expect("known"))
            .args(["--exact", "spawner::tests::process_that_is_killed", "--ignored", "--nocapture"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("started");
        let lines = BufReader::new(process.stdout.take().expect("piped")).lines();
        let line = lines.map_while(Result::ok).find(|line| line.contains("child ")).expect("a line");
        let id = line.split("child ").nth(1).and_then(|rest| rest.split('.').next()).expect("an id");
        let state = PathBuf::from(format!("/proc/{id}/stat"));
        assert!(state.exists());
        process.kill().expect("killed");
        process.wait().expect("reaped");
        // Whoever inherits the dead child may take its time to reap it.
        let gone = || std::fs::read_to_string(&state).map_or(true, |stat| stat.contains(") Z "));
        let begun = Instant::now();
        while !gone() {
            assert!(begun.elapsed() < Duration::from_secs(5), "the child lives on");
            thread::sleep(Duration::from_millis(10));
        }
    }
}
