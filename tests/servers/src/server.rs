//! One real server.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::certificate::AUTHORITY_FILE;
use crate::options::SENTINEL_FILE;
use crate::port::Port;
use crate::process::Process;
use crate::workdir::Workdir;
use crate::{Certificate, RedisOptions, Resp, RespConnection};

/// A Redis or Valkey server on a loopback port, gone with this value.
#[derive(Debug)]
pub struct RedisServer {
    options: RedisOptions,
    // Dropped in this order: the process first, then what it uses.
    process: Mutex<Option<Process>>,
    port: Port,
    tls: Option<Port>,
    workdir: Workdir,
}

/// How long a server may take to answer its first PING, and a replica to have its first copy.
const START: Duration = Duration::from_secs(20);
const REPLY: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(5);
/// Ports tried before giving up; ours are claimed, but strangers may listen where they like.
const PORTS: usize = 10;
const LOG: &str = "server.log";

impl RedisServer {
    /// Starts a server and waits until it answers.
    pub fn start(options: RedisOptions) -> io::Result<Self> {
        let mut last = io::Error::other("no port was tried");
        for _ in 0..PORTS {
            let (port, workdir) = (Port::claim()?, Workdir::create()?);
            let tls = options.tls.as_ref().map(|_| Port::claim()).transpose()?;
            let server = Self { options: options.clone(), process: Mutex::new(None), port, tls, workdir };
            match server.launch() {
                Ok(()) => return Ok(server),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    /// The address as clients take it, with the password if there is one.
    pub fn url(&self) -> String {
        let login = self.options.password.as_ref().map_or(String::new(), |password| format!(":{password}@"));
        format!("{}://{login}127.0.0.1:{}", self.scheme(), self.entry())
    }

    /// How its address begins.
    pub(crate) fn scheme(&self) -> &str {
        if self.tls.is_some() { "rediss" } else { "redis" }
    }

    /// The port for clients and replicas: that for TLS if it speaks that.
    pub fn entry(&self) -> u16 {
        self.tls.as_ref().unwrap_or(&self.port).number()
    }

    /// The file of the authority by which its certificate is, for `SSL_CERT_FILE`.
    pub fn authority(&self) -> PathBuf {
        self.workdir.path().join(AUTHORITY_FILE)
    }

    /// What it shows to its clients.
    pub(crate) fn certificate(&self) -> Option<&Certificate> {
        self.options.tls.as_ref()
    }

    /// The password of the default user.
    pub fn password(&self) -> Option<&str> {
        self.options.password.as_deref()
    }

    /// The port without TLS, which stays the same over restarts.
    pub fn port(&self) -> u16 {
        self.port.number()
    }

    /// The process, if it runs.
    pub fn pid(&self) -> Option<u32> {
        self.lock().as_ref().map(Process::id)
    }

    /// Stops the process where it stands (SIGSTOP); its connections stay open and silent.
    pub fn pause(&self) -> io::Result<()> {
        self.running(|process| process.pause())
    }

    /// Lets a paused process go on.
    pub fn resume(&self) -> io::Result<()> {
        self.running(|process| process.resume())
    }

    /// Kills the process (SIGKILL) and reaps it.
    pub fn kill(&self) -> io::Result<()> {
        self.lock().take().map_or(Ok(()), Process::kill)
    }

    /// Ends the process in order (SIGTERM) and reaps it.
    pub fn stop(&self) -> io::Result<()> {
        self.lock().take().map_or(Ok(()), Process::stop)
    }

    /// Starts it again on the same port and directory, ending it in order first if it runs, and waits until it
    /// answers.
    pub fn restart(&self) -> io::Result<()> {
        self.stop()?;
        self.launch()
    }

    /// A new connection, logged in.
    pub fn connect(&self) -> io::Result<RespConnection> {
        let mut connection = RespConnection::connect(self.port(), REPLY)?;
        if let Some(password) = &self.options.password {
            let reply = connection.command(&["AUTH", password])?;
            if reply != Resp::ok() {
                return Err(io::Error::other(format!("the server refuses the password: {reply:?}")));
            }
        }
        Ok(connection)
    }

    /// Runs one command on a connection of its own.
    pub fn command(&self, args: &[&str]) -> io::Result<Resp> {
        self.connect()?.command(args)
    }

    /// Makes this server a replica of another one and waits until it has a copy of the data.
    pub fn replicate(&self, other: &Self) -> io::Result<()> {
        if let Some(password) = &other.options.password {
            self.expect_ok(&["CONFIG", "SET", "masterauth", password])?;
        }
        self.replicate_through(other.entry())
    }

    /// As `replicate`, through a port: a proxy there can cut the link.
    pub fn replicate_through(&self, port: u16) -> io::Result<()> {
        self.expect_ok(&["REPLICAOF", "127.0.0.1", &port.to_string()])?;
        self.wait_until("the replica has no link to its master", |server| {
            let info = server.command(&["INFO", "replication"])?;
            Ok(info.as_text().is_some_and(|text| text.contains("master_link_status:up")))
        })
    }

    /// Makes a replica a master.
    pub fn promote(&self) -> io::Result<()> {
        self.expect_ok(&["REPLICAOF", "NO", "ONE"])
    }

    /// What the server has logged, for the message of a test that fails.
    pub fn log(&self) -> String {
        let bytes = fs::read(self.workdir.path().join(LOG)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn running(&self, act: impl FnOnce(&Process) -> io::Result<()>) -> io::Result<()> {
        match self.lock().as_ref() {
            Some(process) => act(process),
            None => Err(io::Error::other("the server does not run")),
        }
    }

    pub(crate) fn expect_ok(&self, args: &[&str]) -> io::Result<()> {
        match self.command(args)? {
            Resp::Simple(_) => Ok(()),
            reply => Err(io::Error::other(format!("{} was answered with {reply:?}", args[0]))),
        }
    }

    fn launch(&self) -> io::Result<()> {
        let log = File::create(self.workdir.path().join(LOG))?;
        let known = self.workdir.path().join(SENTINEL_FILE);
        if let (Some(config), false) = (&self.options.sentinel, known.exists()) {
            fs::write(known, config)?;
        }
        if let Some(certificate) = &self.options.tls {
            certificate.write(self.workdir.path())?;
        }
        let binary =
            std::env::var_os("LEASEHOLD_REDIS_SERVER").unwrap_or_else(|| OsString::from("redis-server"));
        let mut command = Command::new(&binary);
        command.args(self.options.command_line(self.port(), self.tls.as_ref().map(Port::number)));
        command.current_dir(self.workdir.path()).stdin(std::process::Stdio::null());
        command.stdout(log.try_clone()?).stderr(log);
        let process = Process::start(command).map_err(|error| {
            let binary = binary.display();
            let advice =
                "install it with `apt-get install redis-server`, or name one in LEASEHOLD_REDIS_SERVER";
            io::Error::new(error.kind(), format!("{binary} does not start ({error}); {advice}"))
        })?;
        *self.lock() = Some(process);
        self.wait_until("the server does not answer", |server| {
            let ended = server.lock().as_mut().and_then(Process::ended);
            if let Some(status) = ended {
                return Err(server.failure(&status.to_string()));
            }
            Ok(server.is_ours())
        })
    }

    /// Whether the answer on our port comes from our own process, and not from a stranger who was faster.
    fn is_ours(&self) -> bool {
        let ready = self.command(&["PING"]).is_ok_and(|reply| reply.as_text() == Some("PONG"));
        let info = if ready { self.command(&["INFO", "server"]).ok() } else { None };
        let id = self.pid().map(|id| format!("process_id:{id}\r\n"));
        let text = info.as_ref().and_then(Resp::as_text);
        matches!((id, text), (Some(id), Some(text)) if text.contains(&id))
    }

    fn failure(&self, status: &str) -> io::Error {
        let log = self.log();
        let in_use = log.contains("Address already in use") || log.contains("bind: ");
        let kind = if in_use { io::ErrorKind::AddrInUse } else { io::ErrorKind::Other };
        let tail: Vec<&str> = log.lines().rev().take(10).collect();
        let tail: Vec<&str> = tail.into_iter().rev().collect();
        io::Error::new(kind, format!("the server ended with {status}:\n{}", tail.join("\n")))
    }

    pub(crate) fn wait_until(
        &self,
        failure: &str,
        mut done: impl FnMut(&Self) -> io::Result<bool>,
    ) -> io::Result<()> {
        let begun = Instant::now();
        while !done(self)? {
            if begun.elapsed() > START {
                return Err(io::Error::new(io::ErrorKind::TimedOut, format!("{failure}:\n{}", self.log())));
            }
            thread::sleep(POLL);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(options: RedisOptions) -> RedisServer {
        RedisServer::start(options).expect("started")
    }

    #[test]
    fn a_server_leaves_nothing_behind_after_a_panic() {
        let (sender, receiver) = std::sync::mpsc::channel();
        let result = thread::spawn(move || {
            let server = start(RedisOptions::default());
            sender.send((server.workdir.path().to_owned(), server.pid().expect("runs"))).expect("sent");
            panic!("as a failed test does");
        })
        .join();
        assert!(result.is_err());
        let (path, id) = receiver.recv().expect("sent");
        assert!(!path.exists());
        assert!(!fs::exists(format!("/proc/{id}")).expect("looked"));
    }

    #[test]
    fn servers_start_side_by_side() {
        let starts: Vec<_> = (0..4).map(|_| thread::spawn(|| start(RedisOptions::default()))).collect();
        let servers: Vec<_> = starts.into_iter().map(|start| start.join().expect("no panic")).collect();
        for (index, server) in servers.iter().enumerate() {
            server.command(&["SET", "me", &index.to_string()]).expect("set");
        }
        for (index, server) in servers.iter().enumerate() {
            assert_eq!(server.command(&["GET", "me"]).expect("read"), Resp::bulk(index.to_string()));
        }
    }

    #[test]
    fn an_append_only_file_outlives_a_kill() {
        let server = start(RedisOptions { appendonly: true, ..RedisOptions::default() });
        let (port, id) = (server.port(), server.pid());
        server.command(&["SET", "a", "1"]).expect("set");
        server.kill().expect("killed");
        assert_eq!(server.pid(), None);
        assert!(server.command(&["PING"]).is_err());
        assert!(server.pause().is_err());
        server.restart().expect("restarted");
        assert_eq!(server.command(&["GET", "a"]).expect("read"), Resp::bulk("1"));
        assert_eq!(server.port(), port);
        assert_ne!(server.pid(), id);
    }

    #[test]
    fn a_restart_without_persistence_is_empty() {
        let server = start(RedisOptions::default());
        server.command(&["SET", "a", "1"]).expect("set");
        server.restart().expect("restarted");
        assert_eq!(server.command(&["DBSIZE"]).expect("read"), Resp::Int(0));
    }

    #[test]
    fn a_paused_server_is_silent_until_it_goes_on() {
        let server = start(RedisOptions::default());
        let mut connection = server.connect().expect("connected");
        server.pause().expect("paused");
        connection.set_timeout(Duration::from_millis(100)).expect("set");
        connection.send(&["PING"]).expect("sent");
        assert!(connection.receive().is_err());
        server.resume().expect("resumed");
        connection.set_timeout(REPLY).expect("set");
        assert_eq!(connection.receive().expect("a reply").as_text(), Some("PONG"));
    }

    #[test]
    fn options_reach_the_server() {
        let server = start(RedisOptions {
            password: Some("secret".to_owned()),
            maxmemory: Some("7mb".to_owned()),
            maxmemory_policy: Some("allkeys-lru".to_owned()),
            ..RedisOptions::default()
        });
        assert!(server.url().starts_with("redis://:secret@127.0.0.1:"));
        let policy = server.command(&["CONFIG", "GET", "maxmemory-policy"]).expect("read");
        assert_eq!(policy.as_array().and_then(|pair| pair[1].as_text()), Some("allkeys-lru"));
        let mut stranger = RespConnection::connect(server.port(), REPLY).expect("connected");
        assert_eq!(stranger.command(&["PING"]).expect("a reply").error_code(), Some("NOAUTH"));
    }

    #[test]
    fn a_replica_follows_and_is_promoted() {
        let master = start(RedisOptions { password: Some("p".to_owned()), ..RedisOptions::default() });
        master.command(&["SET", "a", "1"]).expect("set");
        let replica = start(RedisOptions::default());
        replica.replicate(&master).expect("replicates");
        assert_eq!(replica.command(&["GET", "a"]).expect("read"), Resp::bulk("1"));
        assert_eq!(replica.command(&["SET", "a", "2"]).expect("refused").error_code(), Some("READONLY"));
        replica.promote().expect("promoted");
        assert_eq!(replica.command(&["SET", "a", "2"]).expect("set"), Resp::ok());
    }

    #[test]
    fn a_server_that_refuses_its_options_says_why() {
        let options =
            RedisOptions { arguments: vec!["--nosuchoption".to_owned()], ..RedisOptions::default() };
        let error = RedisServer::start(options).expect_err("refused");
        assert!(error.to_string().contains("nosuchoption"), "{error}");
    }
}
