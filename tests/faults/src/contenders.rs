//! Another process, in which many contend.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tokio::sync::mpsc::UnboundedSender;

/// The process of `src/bin/contender.rs`, gone with this value.
pub struct Contenders(Child);

/// Something that a process said: its number, what happened, and the fence or the code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The number that the process was given.
    pub process: usize,
    /// As `src/bin/contender.rs` has it; `ended` when the process is gone.
    pub what: String,
    /// What it is about.
    pub of: String,
}

/// How processes contend.
pub struct Contest<'a> {
    /// The program.
    pub program: &'a str,
    /// The store.
    pub url: &'a str,
    /// `slot`, or the name of a lock.
    pub prize: &'a str,
    /// A file that all pass.
    pub gate: &'a Path,
    /// How long each of them holds the prize, in milliseconds.
    pub hold: u32,
}

impl Contenders {
    /// Starts a process of so many callers; what it says is told.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start(contest: &Contest<'_>, process: usize, callers: u32, told: UnboundedSender<Said>) -> Self {
        let mut command = Command::new(contest.program);
        command.args([contest.url, contest.prize, &callers.to_string()]).arg(contest.gate);
        command.arg(contest.hold.to_string()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let (what, of) = line.split_once(' ').unwrap_or((&line, ""));
                // A test that has failed hears no more.
                let _ = told.send(Said { process, what: what.to_owned(), of: of.to_owned() });
            }
            let _ = told.send(Said { process, what: "ended".to_owned(), of: String::new() });
        });
        Contenders(child)
    }

    /// Its process id.
    pub fn id(&self) -> i32 {
        i32::try_from(self.0.id()).expect("a process id")
    }

    /// Kills it, wherever it is.
    ///
    /// # Panics
    /// If it has been reaped.
    pub fn kill(&mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("reaped");
    }
}

impl Drop for Contenders {
    fn drop(&mut self) {
        // It fails only if the process is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
