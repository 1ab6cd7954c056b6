//! States in which a server refuses commands, and how it words the refusal.

use crate::command::Traits;
use crate::error_reply::ErrorReply;

/// A state of the server that makes it refuse commands.
///
/// The refusals come where those of a real server come: `Loading` before anything has run, `ReadOnly` and
/// `OutOfMemory` inside a script at its first write, `Moved` only for commands with keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The data set is being read from disk.
    Loading,
    /// Another client's script has run for too long.
    Busy,
    /// The server has become a replica; every write is refused, also inside scripts.
    ReadOnly,
    /// The memory is used up; what adds data is refused, in a script only before its first write.
    OutOfMemory,
    /// Too few replicas are connected for writes.
    NoReplicas,
    /// The append-only file cannot be written.
    DiskError,
    /// A replica without its master that may not serve stale data.
    MasterDown,
    /// The client has not logged in.
    NoAuth,
    /// A cluster without all its slots.
    ClusterDown,
    /// The slot is being moved and some of its keys have gone.
    TryAgain,
    /// The slot has moved to another node, given as `host:port`.
    Moved(u16, String),
    /// The slot is moving to another node, given as `host:port`.
    Ask(u16, String),
    /// The user has no right to this command; what has the right to run scripts is refused in the midst of one.
    NoRight(&'static str),
    /// Every command gets this error reply.
    Reply(String),
}

impl Fault {
    /// The refusal of a command that a client sent.
    pub(crate) fn refuses(&self, name: &str, traits: Traits, has_keys: bool) -> Option<ErrorReply> {
        let refused = match self {
            Self::Busy | Self::Reply(_) | Self::NoAuth => true,
            Self::Loading | Self::MasterDown => !traits.while_loading,
            Self::ReadOnly | Self::NoReplicas | Self::DiskError => traits.writes,
            Self::OutOfMemory => traits.grows,
            Self::ClusterDown | Self::TryAgain | Self::Moved(..) | Self::Ask(..) => has_keys,
            Self::NoRight(command) => command.eq_ignore_ascii_case(name),
        };
        refused.then(|| self.reply())
    }

    /// The refusal of a command that a script called; `dirty` says that the script has written.
    pub(crate) fn refuses_in_script(&self, name: &str, traits: Traits, dirty: bool) -> Option<ErrorReply> {
        let refused = match self {
            Self::ReadOnly | Self::NoReplicas | Self::DiskError => traits.writes,
            Self::OutOfMemory => traits.grows && !dirty,
            Self::NoRight(command) => command.eq_ignore_ascii_case(name),
            _ => false,
        };
        refused.then(|| self.reply())
    }

    fn reply(&self) -> ErrorReply {
        ErrorReply::new(match self {
            Self::Loading => "LOADING Redis is loading the dataset in memory".to_owned(),
            Self::Busy => "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN \
                           NOSAVE."
                .to_owned(),
            Self::ReadOnly => "READONLY You can't write against a read only replica.".to_owned(),
            Self::OutOfMemory => "OOM command not allowed when used memory > 'maxmemory'.".to_owned(),
            Self::NoReplicas => "NOREPLICAS Not enough good replicas to write.".to_owned(),
            Self::DiskError => "MISCONF Errors writing to the AOF file: No space left on device".to_owned(),
            Self::MasterDown => {
                "MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.".to_owned()
            }
            Self::NoAuth => "NOAUTH Authentication required.".to_owned(),
            Self::ClusterDown => "CLUSTERDOWN The cluster is down".to_owned(),
            Self::TryAgain => "TRYAGAIN Multiple keys request during rehashing of slot".to_owned(),
            Self::Moved(slot, node) => format!("MOVED {slot} {node}"),
            Self::Ask(slot, node) => format!("ASK {slot} {node}"),
            Self::NoRight(command) => {
                format!(
                    "NOPERM User default has no permissions to run the '{}' command",
                    command.to_lowercase()
                )
            }
            Self::Reply(text) => text.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ: Traits = Traits { writes: false, grows: false, while_loading: false, in_scripts: true };
    const WRITE: Traits = Traits { writes: true, grows: true, ..READ };

    #[test]
    fn a_script_that_has_written_goes_on_when_memory_is_out() {
        assert!(Fault::OutOfMemory.refuses_in_script("SET", WRITE, false).is_some());
        assert!(Fault::OutOfMemory.refuses_in_script("SET", WRITE, true).is_none());
        assert!(Fault::OutOfMemory.refuses_in_script("SET", READ, false).is_none());
        assert!(Fault::ReadOnly.refuses_in_script("SET", WRITE, true).is_some());
    }

    #[test]
    fn a_redirection_needs_a_key() {
        let moved = Fault::Moved(7, "127.0.0.1:1".to_owned());
        assert_eq!(moved.refuses("SET", READ, true).expect("refused").text(), "MOVED 7 127.0.0.1:1");
        assert!(moved.refuses("SET", READ, false).is_none());
    }

    #[test]
    fn loading_lets_some_commands_through() {
        assert!(Fault::Loading.refuses("SET", READ, false).is_some());
        assert!(Fault::Loading.refuses("SET", Traits { while_loading: true, ..READ }, false).is_none());
        assert!(Fault::Busy.refuses("SET", Traits { while_loading: true, ..READ }, false).is_some());
    }

    #[test]
    fn a_right_that_is_missing_is_that_to_one_command() {
        let fault = Fault::NoRight("HSET");
        assert!(fault.refuses_in_script("hset", WRITE, true).is_some());
        assert!(fault.refuses_in_script("ZADD", WRITE, true).is_none());
        assert!(fault.refuses("HSET", WRITE, true).is_some());
    }
}
