//! How a command reaches a Redis, and what its errors mean.

use std::future::Future;

#[cfg(feature = "redis")]
use super::native::NO_NODE;
use crate::Micros;
use crate::runtime::{MaybeSend, MaybeSync};
use crate::store::{Certainty, Listener, StoreError, Watch};

/// Sends commands to a Redis. Must not repeat a command by itself: what is repeated, and when, is said by
/// the client, which knows each envelope's number.
pub trait Transport: Clone + MaybeSend + MaybeSync + 'static {
    /// Whether it asks each server, as it connects to it, if it is fit to keep leases. Of others one is asked, once.
    const VETS: bool = false;

    /// Sends one command and waits for its reply. A reply that is an error of the server is `Ok`.
    fn send(&self, command: Vec<String>) -> impl Future<Output = Result<Resp, TransportError>> + MaybeSend;

    /// How long after another server took the place of one commands may still be sent to that, in microseconds: it may go on to
    /// serve them, and what it grants is to have ended before the other grants anything.
    fn lag(&self) -> Micros {
        0
    }

    /// No more is wanted of it than what is under way, and what ends it: what it keeps open for others to come is closed.
    fn close(&self) {}

    /// The text of the script that Redis knows by this digest, for a server that does not have it yet. A host may keep the
    /// texts where they are fetched only when they are needed.
    fn script(&self, digest: &str) -> String {
        super::script(digest).to_owned()
    }

    /// Tells the listener what the messages of a channel say, as [`super::heard`] reads it, from the future's end until
    /// the watch is dropped. `None` where the transport cannot.
    fn subscribe(
        &self,
        channel: String,
        listener: Listener,
    ) -> impl Future<Output = Result<Option<Watch>, TransportError>> + MaybeSend;
}

/// A reply of a Redis, as far as leasehold needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resp {
    /// No value.
    Nil,
    /// A whole number.
    Integer(i64),
    /// A text: bulk or simple string.
    Text(String),
    /// A list.
    List(Vec<Resp>),
    /// An error of the server: its code word, then its text.
    Error(String),
}

impl Resp {
    /// What the reply is, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Resp::Nil => "nothing",
            Resp::Integer(_) => "a number",
            Resp::Text(_) => "text",
            Resp::List(_) => "a list",
            Resp::Error(_) => "an error",
        }
    }
}

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportError {
    /// The command was not sent: no connection could be had.
    NotSent(String),
    /// The command may have reached the server.
    NoReply(String),
}

impl From<TransportError> for StoreError {
    fn from(error: TransportError) -> Self {
        match error {
            TransportError::NotSent(cause) => StoreError::new(Certainty::NotPerformed, cause),
            TransportError::NoReply(cause) => StoreError::new(Certainty::Unknown, cause),
        }
    }
}

/// What an error says that a script met with. Redis 6.2 puts words around it: `ERR Error running script (call to f_…):
/// @user_script:1: @user_script: 1: -READONLY You can't write against a read only replica.`
#[cfg(not(target_family = "wasm"))]
pub(super) fn inner(text: &str) -> &str {
    let of_script = text.strip_prefix("ERR Error running script ");
    let said = of_script.and_then(|text| text.split_once(": -")).map(|(_, said)| said);
    said.filter(|said| said.starts_with(|letter: char| letter.is_ascii_uppercase())).unwrap_or(text)
}

/// What an error reply says of the script that it answers. Of servers only the code word counts: their texts differ. What the
/// native transport says itself of a server that it does not use has none. `BUSY` may come while an earlier copy of the
/// envelope still runs; and what a script meets with may come behind its first write where a user's rights lack a command.
pub(super) fn classify(text: &str) -> StoreError {
    // In wasm the package's own half does it, as the module is judged by its size.
    #[cfg(not(target_family = "wasm"))]
    let text = inner(text);
    let word = text.split(' ').next().unwrap_or_default();
    let certainty = match word {
        "BUSY" | "UNKILLABLE" => Certainty::Unknown,
        "MOVED" | "ASK" | "READONLY" | "LOADING" | "MASTERDOWN" | "CLUSTERDOWN" | "TRYAGAIN" | "NOSCRIPT"
        | "OOM" | "NOREPLICAS" | "MISCONF" => Certainty::NotPerformed,
        // Said of whoever may do nothing yet, by our scripts before they write, and of a server that is no good before it is asked.
        #[cfg(feature = "crowds")]
        "NOAUTH" | "WRONGPASS" | "SCHEMA" | "CLOCK" | "NOREPLID" => Certainty::Barred,
        #[cfg(feature = "redis")]
        // In the words of `fit`: of one that evicts no more is known than these.
        _ if text.starts_with("its maxmemory-policy is ") || text == NO_NODE => Certainty::BARRED,
        _ => Certainty::Refused,
    };
    StoreError::new(certainty, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(feature = "redis")]
    #[test]
    fn what_a_server_is_not_used_for_was_not_done() {
        let policy = ["maxmemory-policy", "allkeys-lru"].map(|text| Resp::Text(text.to_owned()));
        let evicts = super::super::fit(&Resp::List(policy.to_vec())).unwrap_err();
        for cause in [&*evicts.cause, NO_NODE] {
            assert_eq!(classify(cause).certainty, Certainty::BARRED, "{cause}");
        }
    }

    #[test]
    fn replies_are_told_apart_by_their_code_word() {
        for (text, certainty) in [
            ("BUSY Redis is busy running a script", Certainty::Unknown),
            ("LOADING Valkey is loading the dataset in memory", Certainty::NotPerformed),
            ("READONLY You can't write against a read only replica.", Certainty::NotPerformed),
            ("OOM command not allowed when used memory > 'maxmemory'.", Certainty::NotPerformed),
            ("NOAUTH Authentication required.", Certainty::BARRED),
            ("SCHEMA this pool has schema 99 of leasehold", Certainty::BARRED),
            ("NOPERM this user has no permissions", Certainty::Refused),
            ("WRONGTYPE Operation against a key", Certainty::Refused),
            // As a transport of a program's own passes it on that Redis 6.2 said.
            (
                "ERR Error running script (call to f_897a): @user_script:4: @user_script: 4: -OOM command not allowed",
                Certainty::NotPerformed,
            ),
            ("ERR Error running script (call to f_897a): @user_script:4: x", Certainty::Refused),
            ("", Certainty::Refused),
        ] {
            assert_eq!(classify(text).certainty, certainty, "{text}");
        }
    }
}
