//! What is found of a server by what it said.

use super::super::fit;
use super::super::transport::Resp;
use super::{BOTH, POOLS, PUBLISH, TRIES};
use crate::store::finding::{Check, Finding, Verdict};
use crate::{Micros, SECOND};

/// The oldest Redis whose commands the scripts know.
const OLDEST: (u32, u32) = (6, 2);
/// Clocks that are set by the network are nearer to each other than this.
const APART: Micros = 5 * SECOND;
/// The part of its memory above which a server is almost full, in hundredths.
const ALMOST_FULL: u64 = 90;
/// How many seconds a replica may be behind that does not lag.
const BEHIND: u64 = 5;

/// What is true of each restart.
const RESTART: &str = "after any restart nothing is granted for one ttl, and nonces are asked of the chain";

/// What is found of one thing.
type Look = fn(&Said) -> (Verdict, String);
/// What is looked at, in the order of [`Check`].
const CHECKS: [(Check, Look); 7] = [
    (Check::Version, Said::version),
    (Check::Policy, Said::policy),
    (Check::Persistence, Said::persistence),
    (Check::Role, Said::role),
    (Check::Clock, Said::clock),
    (Check::Rights, Said::rights),
    (Check::Push, Said::push),
];

/// What a server said.
#[derive(Clone, Debug)]
pub(super) struct Said {
    /// Not said by it: of whose pools, as it stands in keys.
    pub(super) namespace: String,
    /// To a script that it does not know.
    pub(super) script: Resp,
    /// To the script that tries commands.
    pub(super) tries: Resp,
    pub(super) info: Resp,
    pub(super) policy: Resp,
    pub(super) save: Resp,
    pub(super) time: Resp,
    /// This process's time before and after it said its own.
    pub(super) wall: (Micros, Micros),
    /// To the questions to a node, if it is one, and to a script that it does not know in slots that may be another's.
    pub(super) cluster: Option<[Resp; 4]>,
    pub(super) push: Push,
}

/// What became of a message to oneself.
#[derive(Clone, Debug)]
pub(super) enum Push {
    Heard,
    /// It did not come in time.
    Unheard,
    /// Nothing could be sent.
    Unsent,
    /// The transport knows no messages.
    Unable,
    /// It was not possible to subscribe.
    Failed(String),
}

impl Said {
    /// What is found by it, in the order of [`Check`].
    pub(super) fn findings(&self) -> Vec<Finding> {
        let finding = |(check, look): (Check, Look)| {
            let (verdict, message) = look(self);
            Finding::new(check, verdict, message)
        };
        CHECKS.map(finding).into()
    }

    fn field(&self, name: &str) -> Option<&str> {
        field(&self.info, name)
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.field(name)?.parse().ok()
    }

    /// Whether a command was refused with this code word. Redis 6.2 puts words before it.
    fn refuses(&self, code: &str) -> bool {
        let Resp::List(tries) = &self.tries else { return false };
        let refused = |text: &str| text.split(' ').any(|word| word.trim_start_matches('-') == code);
        tries.iter().any(|said| matches!(said, Resp::Text(text) if refused(text)))
    }

    /// What lets a user do all that is asked for.
    fn grant(&self) -> String {
        // What has a meaning in patterns is a letter of the name.
        let literal = |letter| [Some('\\').filter(|_| r"\*?[]".contains(letter)), Some(letter)];
        let namespace: String = self.namespace.chars().flat_map(literal).flatten().collect();
        let of_nodes = if self.cluster.is_some() { " +cluster|slots +cluster|info" } else { "" };
        format!(
            "grant its user what it needs (ACL SETUSER … ~{namespace}:* &{namespace}:* +@read +@write +@scripting +@pubsub +@connection +info \
             +time +config|get{of_nodes})"
        )
    }

    /// The value of a setting, if the server tells it.
    fn setting(answer: &Resp) -> Option<&str> {
        match answer {
            Resp::List(pair) => match pair.as_slice() {
                [_, Resp::Text(value)] => Some(value),
                _ => None,
            },
            _ => None,
        }
    }

    fn version(&self) -> (Verdict, String) {
        let node =
            if self.cluster.is_some() { ", a node of a cluster: what follows is about this one" } else { "" };
        if let Some(version) = self.field("valkey_version") {
            return (Verdict::Ok, format!("Valkey {version}{node}"));
        }
        let Some(version) = self.field("redis_version") else {
            return (
                Verdict::Unknown,
                unseen("which version it is", &self.info, "see that it is Redis 6.2 or Valkey 8, or later"),
            );
        };
        let mut parts = version.split('.').map(|part| part.parse().unwrap_or(0));
        if (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) < OLDEST {
            let message = format!(
                "Redis {version}{node}; its scripts lack commands that leasehold calls: take 6.2 or later"
            );
            return (Verdict::Error, message);
        }
        (Verdict::Ok, format!("Redis {version}{node}"))
    }

    fn policy(&self) -> (Verdict, String) {
        let Some(policy) = Self::setting(&self.policy).or_else(|| self.field("maxmemory_policy")) else {
            let message = unseen(
                "what it does when memory is full",
                &self.policy,
                "see that its maxmemory-policy is noeviction",
            );
            return (Verdict::Unknown, message);
        };
        let said = Resp::List(vec![Resp::Nil, Resp::Text(policy.to_owned())]);
        if let Err(error) = fit(&said) {
            let yet = if self.number("maxmemory") == Some(0) { "; it has no maxmemory yet" } else { "" };
            let refused =
                if Self::setting(&self.policy).is_some() { "; who connects anew is refused" } else { "" };
            return (Verdict::Error, format!("{}{yet}{refused}", error.cause));
        }
        if self.refuses("OOM") {
            let message =
                "noeviction, and it is full: it refuses what is acquired and given back; raise its maxmemory";
            return (Verdict::Error, message.to_owned());
        }
        match (self.number("used_memory"), self.number("maxmemory")) {
            (Some(used), Some(most)) if most > 0 && used / ALMOST_FULL >= most / 100 => {
                let message = format!(
                    "noeviction, and {used} of {most} bytes are in use: a server that is full refuses what is acquired and given back; \
                     raise its maxmemory"
                );
                (Verdict::Warning, message)
            }
            _ => (Verdict::Ok, "noeviction: nothing is deleted when memory is full".to_owned()),
        }
    }

    fn persistence(&self) -> (Verdict, String) {
        if self.refuses("MISCONF") {
            let message =
                "it could not write to its disk, and refuses what is acquired and given back: see its log";
            return (Verdict::Error, message.to_owned());
        }
        let failed = |name| self.field(name) == Some("err");
        let saves = Self::setting(&self.save) != Some("");
        if saves && failed("rdb_last_bgsave_status") || failed("aof_last_write_status") {
            let message = "it could not write to its disk when it last tried, and refuses what is acquired and given back until it can, \
                           unless it is set to go on: see its log";
            return (Verdict::Warning, message.to_owned());
        }
        let aof = self.field("aof_enabled");
        let save = Self::setting(&self.save);
        match (aof, save) {
            (Some("1"), _) => (Verdict::Ok, format!("an append-only file is kept; {RESTART}")),
            (_, Some(save)) if !save.is_empty() => (
                Verdict::Ok,
                format!(
                    "snapshots are kept (save {save}): a restart forgets what came after the last; {RESTART}"
                ),
            ),
            (Some(_), Some(_)) => {
                let message = format!(
                    "neither an append-only file nor snapshots are kept: a restart forgets leases that are held, which are then lost, \
                     slots that were disabled or quarantined, the records of nonces, and what was used of limits; {RESTART}. Set \
                     appendonly to yes if any of that matters"
                );
                (Verdict::Warning, message)
            }
            (None, _) => (
                Verdict::Unknown,
                unseen("what it remembers after a restart", &self.info, "see its appendonly and save"),
            ),
            (_, None) => {
                let message =
                    unseen("whether snapshots are kept", &self.save, "see its save: no append-only file is");
                (Verdict::Unknown, message)
            }
        }
    }

    fn role(&self) -> (Verdict, String) {
        match self.field("role") {
            Some("master") => self.replicas(),
            Some("slave") => {
                let cannot = match self.field("slave_read_only") {
                    Some("0") => "what it is told its primary does not know, and may undo",
                    _ => "it cannot be written to, and nothing can be acquired",
                };
                (
                    Verdict::Error,
                    format!("a replica: {cannot}; give the address of its primary, or of its sentinels"),
                )
            }
            _ => (Verdict::Unknown, unseen("whether it is a primary", &self.info, "see that it is one")),
        }
    }

    fn replicas(&self) -> (Verdict, String) {
        if let Some([_, _, elsewhere @ ..]) = &self.cluster
            && let Some(text) = elsewhere.iter().find_map(|answer| match answer {
                Resp::Error(text) if text.starts_with("MOVED ") => Some(text),
                _ => None,
            })
        {
            let message = format!(
                "one node of a cluster, which is not followed: pools whose slots other nodes have cannot be opened ({text}); give an \
                 address of redis+cluster://, or a client of the cluster"
            );
            return (Verdict::Error, message);
        }
        if self.refuses("NOREPLICAS") {
            let message = "a primary that has fewer replicas in time than its min-replicas-to-write: nothing can be acquired or given \
                           back; see where they are";
            return (Verdict::Error, message.to_owned());
        }
        let count = self.number("connected_slaves").unwrap_or(0);
        if count == 0 {
            let message = "a primary without replicas; the first that is attached looks like a restart, after which nothing is granted for one ttl";
            return (Verdict::Ok, message.to_owned());
        }
        let lags = |replica: &str| {
            let part = |name| replica.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
            part("state") != Some("online")
                || part("lag").and_then(|lag| lag.parse().ok()).is_none_or(|lag: u64| lag > BEHIND)
        };
        let lagging = (0..count).filter(|at| self.field(&format!("slave{at}")).is_none_or(lags)).count();
        let replicas = format!("a primary with {count} {}", if count == 1 { "replica" } else { "replicas" });
        let failover = "after a failover nothing is granted for one ttl";
        match lagging {
            0 => (Verdict::Ok, format!("{replicas}; {failover}")),
            _ => {
                let message = format!(
                    "{replicas}, of which {lagging} not up to date: what such a one has not heard of is forgotten if it is promoted, \
                     leases that are held and what was used of limits among it; {failover}. See why it lags"
                );
                (Verdict::Warning, message)
            }
        }
    }

    fn clock(&self) -> (Verdict, String) {
        let number = |resp: &Resp| match resp {
            Resp::Integer(number) => u64::try_from(*number).ok(),
            Resp::Text(text) => text.parse().ok(),
            _ => None,
        };
        let said = match &self.time {
            Resp::List(parts) => match parts.as_slice() {
                [seconds, micros] => number(seconds).zip(number(micros)),
                _ => None,
            },
            _ => None,
        };
        let Some((seconds, micros)) = said else {
            return (
                Verdict::Unknown,
                unseen("what time it is there", &self.time, "see that its clock is set by the network"),
            );
        };
        let theirs = seconds.saturating_mul(SECOND).saturating_add(micros);
        let (before, after) = self.wall;
        // It was read at some moment between the two.
        let (apart, ahead) = match (before.saturating_sub(theirs), theirs.saturating_sub(after)) {
            (behind, 0) => (behind, "behind"),
            (_, ahead) => (ahead, "ahead of"),
        };
        if apart <= APART {
            let message = "its clock and this process's agree".to_owned();
            return (Verdict::Ok, message);
        }
        let tenths = apart / (SECOND / 10);
        let message = format!(
            "its clock is {}.{} s {ahead} this process's. Leases end as they should, as all times are counted by the server's. But budgets \
             begin their periods by it, fences of a quorum are in order only while its servers' clocks agree, and a step that sets it \
             right may look like a loss, after which nothing is granted for one ttl: have both set by the network, gradually",
            tenths / 10,
            tenths % 10
        );
        (Verdict::Warning, message)
    }

    fn rights(&self) -> (Verdict, String) {
        let grant = self.grant();
        for refusal in [&self.script, &self.tries] {
            if let Resp::Error(text) = refusal
                && is_denied(text)
            {
                if is_beyond(text) {
                    let message = format!(
                        "its user has no rights to all keys of this namespace ({text}), and what it may do with those of its pools was not \
                         seen; {grant} to see it"
                    );
                    return (Verdict::Unknown, message);
                }
                let message = format!("its user may run no scripts, and nothing works ({text}); {grant}");
                return (Verdict::Error, message);
            }
        }
        let Resp::List(tries) = &self.tries else {
            return (Verdict::Unknown, unseen("what its user may do", &self.tries, &grant));
        };
        let missing = TRIES.iter().zip(tries).filter_map(|((command, _, users), said)| match said {
            Resp::Text(text) if is_denied(text) => Some((*command, *users)),
            _ => None,
        });
        let (vital, called): (Vec<_>, Vec<_>) = missing.partition(|(command, _)| *command != PUBLISH);
        let mut lost: Vec<String> = Vec::new();
        for users in [BOTH, POOLS] {
            let commands: Vec<&str> =
                vital.iter().filter(|(_, of)| *of == users).map(|(command, _)| *command).collect();
            if !commands.is_empty() {
                lost.push(format!("{}, without which {users} fail", commands.join(", ")));
            }
        }
        if !called.is_empty() {
            lost.push(format!("{PUBLISH}, without which who waits in another process is not called, and looks again after some seconds"));
        }
        let refused = |answer: &Resp| matches!(answer, Resp::Error(text) if is_denied(text));
        if refused(&self.policy) {
            lost.push(
                "CONFIG GET, without which it is not seen as it is connected to whether it evicts keys"
                    .to_owned(),
            );
        }
        if let Some([slots, epoch, ..]) = &self.cluster {
            if refused(slots) {
                lost.push("CLUSTER SLOTS, without which only the nodes of the address are known, and those that others name".to_owned());
            }
            if refused(epoch) {
                lost.push(
                    "CLUSTER INFO, without which nodes that disagree after a failover are believed by their number, and not by what they know"
                        .to_owned(),
                );
            }
        }
        let verdict = match (vital.is_empty(), lost.is_empty()) {
            (false, _) => Verdict::Error,
            (true, false) => Verdict::Warning,
            (true, true) => return (Verdict::Ok, "its user may do all that leasehold asks for".to_owned()),
        };
        (verdict, format!("its user may not call {}; {grant}", lost.join("; ")))
    }

    fn push(&self) -> (Verdict, String) {
        let unheard =
            "who waits for what another process has looks again several times a second, and is not called";
        match &self.push {
            Push::Heard => {
                (Verdict::Ok, "its messages are heard: who waits is called when it is its turn".to_owned())
            }
            Push::Unsent => {
                let message = "it was subscribed, but no message could be sent to see whether it is heard: see what is said of rights";
                (Verdict::Unknown, message.to_owned())
            }
            Push::Unheard => {
                let message = "it was subscribed, but a message did not come in time: who waits for what another process has is not called, \
                               and looks again after some seconds; see what stands between";
                (Verdict::Warning, message.to_owned())
            }
            Push::Unable => (Verdict::Warning, format!("this transport cannot subscribe: {unheard}")),
            Push::Failed(cause) if is_beyond(cause) => (
                Verdict::Unknown,
                format!(
                    "its user has no rights to all channels of this namespace ({cause}), and whether it hears those of its pools was not \
                     seen; {} to see it",
                    self.grant()
                ),
            ),
            Push::Failed(cause) => (
                Verdict::Warning,
                format!("it could not be subscribed ({cause}): {unheard}; {}", self.grant()),
            ),
        }
    }
}

/// What is found of a server to which nothing was sent, as it evicts keys; nothing if this text says something else.
pub(super) fn evicting(text: &str) -> Option<Vec<Finding>> {
    let evicts = text.starts_with("its maxmemory-policy is ");
    evicts.then(|| {
        let finding = |(check, _)| match check {
            Check::Policy => Finding::new(check, Verdict::Error, format!("{text}; until then it is refused")),
            _ => Finding::new(
                check,
                Verdict::Unknown,
                "not looked at, as the server is refused for its maxmemory-policy",
            ),
        };
        CHECKS.map(finding).into()
    })
}

/// Whether an error says that the user may not do it, or that there is no such command, as where it was renamed. What a script meets
/// with has no code word for that.
fn is_denied(text: &str) -> bool {
    text.starts_with("NOPERM")
        || [
            "user executing the script can't",
            "ACL failure",
            "nknown Redis command",
            "nknown command",
            "nknown subcommand",
        ]
        .iter()
        .any(|words| text.contains(words))
}

/// Whether an error says that the user may do it, but not with this key or channel, which are no pool's.
fn is_beyond(text: &str) -> bool {
    text.starts_with("NOPERM") && text.contains(" to access ")
}

/// What a server says of itself under this name.
pub(super) fn field<'a>(info: &'a Resp, name: &str) -> Option<&'a str> {
    let Resp::Text(text) = info else { return None };
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_end)
}

/// It could not be seen, as the server said this instead.
fn unseen(what: &str, answer: &Resp, advice: &str) -> String {
    match answer {
        Resp::Error(text) => format!("it does not say {what} ({text}): {advice}"),
        _ => format!("it does not say {what}: {advice}"),
    }
}
