//! Another process that holds a lease.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The process of `src/bin/holder.rs`, gone with this value.
pub struct Holder {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The fence of its lease.
    pub fence: u64,
    /// The nonce of its lease.
    pub nonce: u64,
}

impl Holder {
    /// Starts it, and waits until it has leased the slot.
    ///
    /// # Panics
    /// If it does not come to that.
    pub fn start(program: &str, url: &str, slot: &str, ttl: u64) -> Self {
        Self::run(Command::new(program), url, slot, ttl).unwrap_or_else(|said| panic!("{said}"))
    }

    /// The same of a program that may have been told more, or what it says instead.
    ///
    /// # Panics
    /// If it ends without a word.
    pub fn run(mut command: Command, url: &str, slot: &str, ttl: u64) -> Result<Self, String> {
        command.args([url, slot, &ttl.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let input = child.stdin.take().expect("piped");
        let output = BufReader::new(child.stdout.take().expect("piped"));
        let mut holder = Holder { child, input, output, fence: 0, nonce: 0 };
        let line = holder.line();
        let words: Vec<&str> = line.split(' ').collect();
        if words.first() != Some(&slot) {
            return Err(line);
        }
        let number = |at: usize| words.get(at).and_then(|word| word.parse().ok()).expect("a number");
        (holder.fence, holder.nonce) = (number(1), number(2));
        Ok(holder)
    }

    /// Its process id.
    pub fn id(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a process id")
    }

    /// Says a word to it, and returns what it answers.
    ///
    /// # Panics
    /// If it is gone.
    pub fn ask(&mut self, word: &str) -> String {
        writeln!(self.input, "{word}").expect("it listens");
        self.line()
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        assert!(line.ends_with('\n'), "the holder ended");
        line.trim_end().to_owned()
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        // It fails only if the process is gone already; a stopped one is killed as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
