//! The embedded server as a test holds it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashSet;
use sha1_smol::Sha1;

use crate::error_reply::{Answer, ErrorReply};
use crate::interpreter::{Interpreter, NO_SCRIPT};
use crate::number::parse_integer;
use crate::server::Server;
use crate::{Fault, Resp, Snapshot};

/// A Redis inside the process, on a clock that the test sets.
///
/// It has no ambient time and no randomness: equal calls give equal replies.
#[derive(Debug)]
pub struct EmbeddedRedis {
    server: Arc<Mutex<Server>>,
    interpreter: Interpreter,
    /// The digests that EVALSHA finds. What has been compiled stays compiled, so that a flush costs nothing.
    known: FxHashSet<String>,
}

/// The length of a digest; EVALSHA looks at it before anything else.
const DIGEST: usize = 40;

impl EmbeddedRedis {
    /// An empty server whose wall clock stands at this time.
    pub fn new(start_us: u64) -> Self {
        Self::with_seed(start_us, 0)
    }

    /// As `new`, with replication ids of its own: for several servers in one simulation.
    pub fn with_seed(start_us: u64, seed: u64) -> Self {
        let server = Arc::new(Mutex::new(Server::new(start_us, seed)));
        let interpreter = Interpreter::new(&server);
        Self { server, interpreter, known: FxHashSet::default() }
    }

    /// Sets the server's wall clock, also backwards. Keys expire at the next command.
    pub fn set_time(&mut self, us: u64) {
        self.lock().time_us = us;
    }

    /// The server's wall clock, in microseconds of the epoch.
    pub fn time(&self) -> u64 {
        self.lock().time_us
    }

    /// Runs one command as a client would send it.
    pub fn command(&mut self, args: &[&[u8]]) -> Resp {
        let name = args.first().copied().unwrap_or(b"");
        let answer = if name.eq_ignore_ascii_case(b"EVALSHA") {
            self.eval(args, Self::find_script)
        } else if name.eq_ignore_ascii_case(b"EVAL") {
            self.eval(args, Self::load_script)
        } else if name.eq_ignore_ascii_case(b"SCRIPT") {
            self.script(args)
        } else {
            self.lock().run(args)
        };
        answer.unwrap_or_else(Resp::from)
    }

    /// Forgets the scripts, so that EVALSHA answers NOSCRIPT.
    pub fn flush_scripts(&mut self) {
        self.known.clear();
    }

    /// Restarts the server without persistence: no data, no scripts, another replication id, uptime zero.
    pub fn wipe(&mut self) {
        self.lock().keyspace.clear();
        self.restart();
    }

    /// Restarts the server with its data kept (AOF): no scripts, another replication id, uptime zero.
    pub fn restart(&mut self) {
        self.forget();
        let mut server = self.lock();
        server.started_us = server.time_us;
    }

    /// A copy of the data, such as a replica may hold.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::of(&self.lock().keyspace)
    }

    /// Fails over to a replica that holds this data: no scripts, another replication id, the uptime of one that
    /// was up all the time. What was written after the snapshot is lost.
    pub fn promote(&mut self, lagging: Snapshot) {
        self.lock().keyspace = lagging.into_keyspace();
        self.forget();
    }

    /// Puts the server in a state that refuses commands, or out of it.
    pub fn set_fault(&mut self, fault: Option<Fault>) {
        self.lock().fault = fault;
    }

    /// The state that refuses commands, if it is in one.
    pub fn fault(&self) -> Option<Fault> {
        self.lock().fault.clone()
    }

    /// What WAIT answers from now on.
    pub fn set_wait_reply(&mut self, replicas: i64) {
        self.lock().wait_reply = replicas;
    }

    /// Sets what CONFIG GET and INFO tell, such as `maxmemory-policy`.
    pub fn set_config(&mut self, name: &str, value: &str) {
        self.lock().config.insert(name.to_owned(), value.to_owned());
    }

    /// The messages published since the last call, each with its channel.
    pub fn published(&mut self) -> Vec<(String, Vec<u8>)> {
        std::mem::take(&mut self.lock().published)
    }

    /// Drops every key whose last millisecond has begun, as Redis 8 does at times, and earlier ones do only when it is over.
    pub fn sweep_early(&mut self) {
        let mut server = self.lock();
        let now = server.now_ms();
        server.keyspace.expire(now + 1);
    }

    /// The number of live keys.
    pub fn key_count(&self) -> usize {
        let mut server = self.lock();
        let now = server.now_ms();
        server.keyspace.expire(now);
        server.keyspace.len()
    }

    /// How many commands the last script called: its cost.
    pub fn last_script_calls(&self) -> u64 {
        self.lock().script.calls
    }

    /// The id by which scripts see that the server's history has changed.
    pub fn replication_id(&self) -> String {
        self.lock().replication_id.hex()
    }

    /// Sets that id, until the server's history changes again.
    pub fn set_replication_id(&mut self, id: &str) {
        self.lock().replication_id.tell(id);
    }

    fn lock(&self) -> MutexGuard<'_, Server> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn forget(&mut self) {
        self.known.clear();
        self.interpreter.restart();
        self.lock().turn_over();
    }

    fn eval(
        &mut self,
        args: &[&[u8]],
        resolve: fn(&mut Self, &[u8]) -> Result<String, ErrorReply>,
    ) -> Answer {
        self.lock().admit(args)?;
        if args[0].len() > "EVAL".len() && args[1].len() != DIGEST {
            return Err(ErrorReply::fixed(NO_SCRIPT));
        }
        let count = parse_integer(args[2]).ok_or(ErrorReply::NOT_AN_INTEGER)?;
        let given = &args[3..];
        if count > given.len() as i64 {
            return Err(ErrorReply::fixed("ERR Number of keys can't be greater than number of args"));
        }
        let count = usize::try_from(count)
            .map_err(|_| const { ErrorReply::fixed("ERR Number of keys can't be negative") })?;
        let (keys, argv) = given.split_at(count);
        let sha = resolve(self, args[1])?;
        self.lock().begin_script(keys);
        Ok(self.interpreter.call(&sha, keys, argv))
    }

    fn find_script(&mut self, sha: &[u8]) -> Result<String, ErrorReply> {
        let sha = String::from_utf8_lossy(sha).to_ascii_lowercase();
        if self.known.contains(&sha) { Ok(sha) } else { Err(ErrorReply::fixed(NO_SCRIPT)) }
    }

    fn load_script(&mut self, source: &[u8]) -> Result<String, ErrorReply> {
        let sha = Sha1::from(source).digest().to_string();
        self.interpreter.compile(&sha, source)?;
        self.known.insert(sha.clone());
        Ok(sha)
    }

    fn script(&mut self, args: &[&[u8]]) -> Answer {
        self.lock().admit(args)?;
        match (args[1].to_ascii_uppercase().as_slice(), &args[2..]) {
            (b"LOAD", [source]) => self.load_script(source).map(Resp::bulk),
            (b"LOAD", _) => Err(ErrorReply::arity("script|load")),
            (b"EXISTS", []) => Err(ErrorReply::arity("script|exists")),
            (b"EXISTS", digests) => {
                let known = |sha: &&[u8]| {
                    self.known.contains(&String::from_utf8_lossy(sha).to_ascii_lowercase()).into()
                };
                Ok(Resp::Array(digests.iter().map(known).collect()))
            }
            (b"FLUSH", [] | [_]) => {
                self.flush_scripts();
                Ok(Resp::ok())
            }
            (b"FLUSH", _) => Err(ErrorReply::arity("script|flush")),
            _ => {
                let name = String::from_utf8_lossy(args[1]);
                Err(ErrorReply::new(format!("ERR unknown subcommand '{name}'. Try SCRIPT HELP.")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(redis: &mut EmbeddedRedis, args: &[&str]) -> Resp {
        let args: Vec<&[u8]> = args.iter().map(|arg| arg.as_bytes()).collect();
        redis.command(&args)
    }

    fn is_send<T: Send>(_: &T) {}

    #[test]
    fn it_may_move_between_threads() {
        is_send(&EmbeddedRedis::new(0));
    }

    #[test]
    fn scripts_are_loaded_found_and_forgotten() {
        let mut redis = EmbeddedRedis::new(0);
        let sha = run(&mut redis, &["SCRIPT", "LOAD", "return KEYS[1]"]);
        let sha = sha.as_text().expect("a digest").to_owned();
        assert_eq!(run(&mut redis, &["EVALSHA", &sha.to_uppercase(), "1", "k"]), Resp::bulk("k"));
        let exists = ["SCRIPT", "EXISTS", &sha, "other"];
        assert_eq!(run(&mut redis, &exists), Resp::Array(vec![Resp::Int(1), Resp::Int(0)]));
        redis.flush_scripts();
        assert_eq!(run(&mut redis, &["EVALSHA", &sha, "1", "k"]).error_code(), Some("NOSCRIPT"));
        assert_eq!(run(&mut redis, &["EVAL", "return KEYS[1]", "1", "k"]), Resp::bulk("k"));
        assert_eq!(run(&mut redis, &["EVALSHA", &sha, "1", "k"]), Resp::bulk("k"));
        assert_eq!(run(&mut redis, &["SCRIPT", "FLUSH"]), Resp::ok());
        assert_eq!(run(&mut redis, &["EVALSHA", &sha, "1", "k"]).error_code(), Some("NOSCRIPT"));
    }

    #[test]
    fn the_number_of_keys_is_checked() {
        let mut redis = EmbeddedRedis::new(0);
        for (count, text) in [
            ("-1", "ERR Number of keys can't be negative"),
            ("2", "ERR Number of keys can't be greater than number of args"),
            ("x", "ERR value is not an integer or out of range"),
        ] {
            assert_eq!(run(&mut redis, &["EVAL", "return 1", count, "k"]).as_error(), Some(text));
        }
    }

    #[test]
    fn a_restart_keeps_the_data_and_a_wipe_does_not() {
        let mut redis = EmbeddedRedis::new(10_000_000);
        run(&mut redis, &["SET", "a", "1"]);
        let first = redis.replication_id();
        redis.set_time(20_000_000);
        redis.restart();
        assert_eq!(redis.key_count(), 1);
        assert_ne!(redis.replication_id(), first);
        let info = run(&mut redis, &["INFO", "server"]);
        assert!(info.as_text().expect("text").contains("uptime_in_seconds:0\r\n"));
        let second = redis.replication_id();
        redis.wipe();
        assert_eq!(redis.key_count(), 0);
        assert_ne!(redis.replication_id(), second);
    }

    #[test]
    fn a_promotion_loses_what_the_replica_had_not() {
        let mut redis = EmbeddedRedis::new(0);
        run(&mut redis, &["SET", "a", "1"]);
        let lagging = redis.snapshot();
        run(&mut redis, &["SET", "a", "2"]);
        let before = redis.replication_id();
        redis.promote(lagging);
        assert_eq!(run(&mut redis, &["GET", "a"]), Resp::bulk("1"));
        assert_ne!(redis.replication_id(), before);
    }

    #[test]
    fn faults_come_where_the_real_ones_come() {
        let mut redis = EmbeddedRedis::new(0);
        let script = "local v = redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], 'x') return v";
        redis.set_fault(Some(Fault::ReadOnly));
        let refusal = run(&mut redis, &["EVAL", script, "1", "k"]);
        let text = refusal.as_error().expect("refused");
        assert!(text.starts_with("READONLY You can't write against a read only replica. script: "), "{text}");
        assert_eq!(redis.last_script_calls(), 2);
        assert_eq!(run(&mut redis, &["GET", "k"]), Resp::Nil);
        redis.set_fault(Some(Fault::Loading));
        assert_eq!(run(&mut redis, &["EVAL", script, "1", "k"]).error_code(), Some("LOADING"));
        assert!(run(&mut redis, &["INFO"]).as_text().is_some());
        redis.set_fault(Some(Fault::Moved(9, "h:1".to_owned())));
        assert_eq!(run(&mut redis, &["EVAL", script, "1", "k"]).as_error(), Some("MOVED 9 h:1"));
        assert_eq!(run(&mut redis, &["EVAL", "return 1", "0"]), Resp::Int(1));
        redis.set_fault(None);
        assert_eq!(run(&mut redis, &["EVAL", script, "1", "k"]), Resp::Nil);
        assert_eq!(redis.fault(), None);
    }

    #[test]
    fn an_error_after_a_write_undoes_nothing() {
        let mut redis = EmbeddedRedis::new(0);
        let script = "redis.call('SET', KEYS[1], '1') return redis.call('HGET', KEYS[1], 'f')";
        assert_eq!(run(&mut redis, &["EVAL", script, "1", "k"]).error_code(), Some("WRONGTYPE"));
        assert_eq!(run(&mut redis, &["GET", "k"]), Resp::bulk("1"));
    }

    #[test]
    fn messages_are_drained() {
        let mut redis = EmbeddedRedis::new(0);
        run(&mut redis, &["EVAL", "return redis.call('PUBLISH', ARGV[1], 'm')", "0", "c"]);
        assert_eq!(redis.published(), [("c".to_owned(), b"m".to_vec())]);
        assert!(redis.published().is_empty());
    }
}
