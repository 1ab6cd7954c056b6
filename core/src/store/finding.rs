//! What was found of a store by looking at it, for who operates it.

use std::fmt;

use crate::value::Value;

/// One thing that was found of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// Which of a quorum's servers it is about, from 0 on, in the order in which they were given. Nothing for one store.
    pub server: Option<usize>,
    /// What was looked at.
    pub check: Check,
    /// Whether it is as leasehold needs it.
    pub verdict: Verdict,
    /// What was found and what to do, in one or two sentences; never a password.
    pub message: String,
}

/// What is looked at. The texts are stable: programs may compare them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// The store itself: one that is no Redis, or a server of a quorum that does not answer.
    Store,
    /// Which server it is, in which version.
    Version,
    /// What it does when its memory is full.
    Policy,
    /// What it remembers after a restart.
    Persistence,
    /// Whether it is a primary, and which replicas it has.
    Role,
    /// Its clock beside this process's.
    Clock,
    /// What its user may do.
    Rights,
    /// Whether its messages are heard.
    Push,
}

/// What a [`Finding`] comes to. The texts are stable: programs may compare them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// It is as it should be.
    Ok,
    /// It works, and something is lost by it: the message says what.
    Warning,
    /// Something is refused by it, or not safe.
    Error,
    /// It could not be seen.
    Unknown,
}

impl Check {
    /// The stable text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Check::Store => "store",
            Check::Version => "version",
            Check::Policy => "policy",
            Check::Persistence => "persistence",
            Check::Role => "role",
            Check::Clock => "clock",
            Check::Rights => "rights",
            Check::Push => "push",
        }
    }
}

impl Verdict {
    /// The stable text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Warning => "warning",
            Verdict::Error => "error",
            Verdict::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { server, check, verdict, message } = self;
        match server {
            Some(server) => write!(f, "servers[{server}] {check}: {verdict}: {message}"),
            None => write!(f, "{check}: {verdict}: {message}"),
        }
    }
}

impl Finding {
    /// A finding of one store.
    pub fn new(check: Check, verdict: Verdict, message: impl Into<String>) -> Self {
        Finding { server: None, check, verdict, message: message.into() }
    }

    /// It as a value; `server` is there for a quorum only.
    #[doc(hidden)]
    pub fn to_value(&self) -> Value {
        let said = |key: &str, text: &str| (key.to_owned(), text.into());
        let server = self.server.map(|server| ("server".to_owned(), Value::Integer(server as i128)));
        let words = [
            said("check", self.check.as_str()),
            said("verdict", self.verdict.as_str()),
            said("message", &self.message),
        ];
        Value::Map(server.into_iter().chain(words).collect())
    }

    /// Many of them as a value.
    #[doc(hidden)]
    pub fn list(findings: &[Finding]) -> Value {
        Value::List(findings.iter().map(Finding::to_value).collect())
    }
}
