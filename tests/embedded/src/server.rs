//! The server below Lua: its data, its clock, its state, and how a command is admitted.

use std::collections::BTreeMap;

use crate::Fault;
use crate::command::Command;
use crate::error_reply::{Answer, ErrorReply};
use crate::keyspace::Keyspace;
use crate::replication_id::ReplicationId;

/// All of a server but its scripts.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) keyspace: Keyspace,
    pub(crate) time_us: u64,
    pub(crate) started_us: u64,
    pub(crate) replication_id: ReplicationId,
    pub(crate) config: BTreeMap<String, String>,
    pub(crate) fault: Option<Fault>,
    pub(crate) wait_reply: i64,
    pub(crate) published: Vec<(String, Vec<u8>)>,
    pub(crate) script: ScriptRun,
}

/// What is known of the running script, or of the last one.
#[derive(Debug, Default)]
pub(crate) struct ScriptRun {
    /// The keys in KEYS, sorted.
    declared: Vec<Vec<u8>>,
    /// Whether it has written, after which an error no longer leaves the data as it was.
    dirty: bool,
    pub(crate) calls: u64,
}

impl Server {
    pub(crate) fn new(start_us: u64, seed: u64) -> Self {
        let config =
            [("appendonly", "no"), ("maxmemory", "0"), ("maxmemory-policy", "noeviction"), ("save", "")];
        Self {
            keyspace: Keyspace::default(),
            time_us: start_us,
            started_us: start_us,
            replication_id: ReplicationId::new(seed),
            config: config.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            fault: None,
            wait_reply: 0,
            published: Vec::new(),
            script: ScriptRun::default(),
        }
    }

    pub(crate) fn now_ms(&self) -> i64 {
        (self.time_us / 1_000) as i64
    }

    /// Runs a command that a client sent.
    pub(crate) fn run(&mut self, args: &[&[u8]]) -> Answer {
        let command = self.admit(args)?;
        (command.run)(self, args)
    }

    /// Finds a client's command, lets what has expired go, and refuses what this state of the server refuses.
    pub(crate) fn admit(&mut self, args: &[&[u8]]) -> Result<&'static Command, ErrorReply> {
        let name = args.first().copied().unwrap_or(b"");
        let command = Command::find(name).ok_or_else(|| unknown_command(args))?;
        if !command.takes(args.len()) {
            return Err(ErrorReply::arity(command.name));
        }
        if let Some(fault) = &self.fault
            && let Some(error) = fault.refuses(command.name, command.traits, !command.keys(args).is_empty())
        {
            return Err(error);
        }
        self.keyspace.expire(self.now_ms());
        Ok(command)
    }

    /// Begins a script with these keys. From here to its end neither time nor expiry moves.
    pub(crate) fn begin_script(&mut self, keys: &[&[u8]]) {
        let script = &mut self.script;
        script.declared.clear();
        script.declared.extend(keys.iter().map(|key| key.to_vec()));
        script.declared.sort_unstable();
        script.dirty = false;
        script.calls = 0;
    }

    /// Runs a command that the script called.
    pub(crate) fn run_in_script(&mut self, args: &[&[u8]]) -> Answer {
        self.script.calls += 1;
        let name = args.first().copied().unwrap_or(b"");
        let command = Command::find(name)
            .ok_or(const { ErrorReply::fixed("ERR Unknown Redis command called from script") })?;
        if !command.takes(args.len()) {
            return Err(ErrorReply::fixed("ERR Wrong number of args calling Redis command from script"));
        }
        if !command.traits.in_scripts {
            return Err(ErrorReply::fixed("ERR This Redis command is not allowed from script"));
        }
        for key in command.keys(args) {
            if self.script.declared.binary_search_by(|declared| declared.as_slice().cmp(key)).is_err() {
                let key = String::from_utf8_lossy(key);
                return Err(ErrorReply::new(format!("ERR undeclared key '{key}'")));
            }
        }
        if let Some(fault) = &self.fault
            && let Some(error) = fault.refuses_in_script(command.name, command.traits, self.script.dirty)
        {
            return Err(error);
        }
        self.script.dirty |= command.traits.writes;
        (command.run)(self, args)
    }

    /// A new history: replicas and scripts see another replication id.
    pub(crate) fn turn_over(&mut self) {
        self.replication_id.advance();
    }
}

fn unknown_command(args: &[&[u8]]) -> ErrorReply {
    let quoted = |arg: &&[u8]| format!("'{}' ", String::from_utf8_lossy(arg));
    let name = String::from_utf8_lossy(args.first().copied().unwrap_or(b"")).into_owned();
    let rest: String = args.iter().skip(1).map(quoted).collect();
    ErrorReply::new(format!("ERR unknown command '{name}', with args beginning with: {rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Resp;

    fn server() -> Server {
        Server::new(1_000_000, 0)
    }

    #[test]
    fn unknown_and_misshapen_commands_are_refused() {
        let mut server = server();
        let error = server.run(&[b"FOO", b"bar"]).expect_err("unknown");
        assert_eq!(error.text(), "ERR unknown command 'FOO', with args beginning with: 'bar' ");
        assert_eq!(server.run(&[b"GET"]).expect_err("arity"), ErrorReply::arity("get"));
        assert!(server.run(&[]).is_err());
    }

    #[test]
    fn a_script_reaches_only_its_keys() {
        let mut server = server();
        server.begin_script(&[b"b", b"a"]);
        assert_eq!(server.run_in_script(&[b"SET", b"a", b"1"]), Ok(Resp::ok()));
        let error = server.run_in_script(&[b"GET", b"c"]).expect_err("not declared");
        assert_eq!(error.text(), "ERR undeclared key 'c'");
        assert!(server.run_in_script(&[b"DEL", b"a", b"c"]).is_err());
        assert_eq!(server.script.calls, 3);
    }

    #[test]
    fn memory_that_runs_out_stops_a_script_only_before_its_first_write() {
        let mut server = server();
        server.fault = Some(Fault::OutOfMemory);
        server.begin_script(&[b"a"]);
        assert!(server.run_in_script(&[b"SET", b"a", b"1"]).is_err());
        assert_eq!(server.run_in_script(&[b"DEL", b"a"]), Ok(Resp::Int(0)));
        assert_eq!(server.run_in_script(&[b"SET", b"a", b"1"]), Ok(Resp::ok()));
    }

    #[test]
    fn nothing_expires_while_a_script_runs() {
        let mut server = server();
        server.run(&[b"SET", b"a", b"1", b"PX", b"10"]).expect("set");
        server.begin_script(&[b"a"]);
        server.time_us += 1_000_000;
        assert_eq!(server.run_in_script(&[b"GET", b"a"]), Ok(Resp::bulk("1")));
        assert_eq!(server.run(&[b"GET", b"a"]), Ok(Resp::Nil));
    }
}
