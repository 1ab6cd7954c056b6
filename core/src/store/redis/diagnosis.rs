//! What a server says to who looks whether it is fit, and what is found by that. In a cluster it is one node, which serves the
//! first slot: what is asked without a key goes there too.

mod said;
#[cfg(test)]
mod tests;

use std::pin::pin;
use std::sync::{Arc, Mutex};

use futures_channel::oneshot;

use self::said::{Push, Said, evicting, field};
use super::transport::{Resp, Transport, classify};
use super::{POLICY, RedisStore};
use crate::Micros;
use crate::id::Name;
use crate::poison::unpoisoned;
use crate::runtime::{self, Runtime};
use crate::store::{Certainty, Finding, Listener, StoreError, Watch};

/// The hash tag of what is asked about. It is in slot 0, as are commands without a key by the reckoning of who follows a cluster.
const TAG: &str = "{06S}";
/// Tags of slots in the middle and at the end: where a node that has the first has not all, those are another's.
const ELSEWHERE: [&str; 2] = ["{8YG}", "{6ZJ}"];
/// A digest that no script has.
const NO_SCRIPT: &str = "0000000000000000000000000000000000000000";
/// Tries commands, and says what each fails with.
const TRY: &str = "local said = {} \
    for place, words in ipairs(ARGV) do \
        local command = {} \
        for word in string.gmatch(words, '%S+') do command[#command + 1] = word == '*' and KEYS[1] or word end \
        local reply = redis.pcall(unpack(command)) \
        said[place] = type(reply) == 'table' and reply.err or '' \
    end \
    return said";
/// What the scripts call, as it is tried on a key that is not there: nothing is written, where need be as there is a word too many; and
/// what fails without it. A wasm module does not have the scripts, to look there.
const TRIES: [(&str, &str, &str); 21] = [
    ("GET", "", POOLS),
    ("MGET", "", BOTH),
    ("SET", "0 XX", BOTH),
    ("DEL", "", BOTH),
    ("PEXPIRE", "1", POOLS),
    ("HGET", "0", POOLS),
    ("HMGET", "0", POOLS),
    ("HKEYS", "", POOLS),
    ("HLEN", "", POOLS),
    ("HSET", "0 0 0", POOLS),
    ("HDEL", "0", POOLS),
    ("ZCOUNT", "0 0", POOLS),
    ("ZRANGE", "0 0", POOLS),
    ("ZRANGEBYLEX", "- +", POOLS),
    ("ZRANGEBYSCORE", "0 0", POOLS),
    ("ZADD", "XX 0 0", POOLS),
    ("ZREM", "0", POOLS),
    ("ZREMRANGEBYSCORE", "0 0", POOLS),
    (TIME, "", BOTH),
    (INFO, "", BOTH),
    (PUBLISH, NOBODY, POOLS),
];
/// What fails without a command.
const BOTH: &str = "pools, locks, tokens and limits";
const POOLS: &str = "pools, locks and tokens";
const TIME: &str = "TIME";
const INFO: &str = "INFO";
const PUBLISH: &str = "PUBLISH";
/// A message that calls nobody.
const NOBODY: &str = "0";
/// Ask what a server remembers after a restart, and, as clusters are followed, for the nodes and the epoch.
const SAVE: [&str; 3] = ["CONFIG", "GET", "save"];
const CLUSTER: [[&str; 2]; 2] = [["CLUSTER", "SLOTS"], ["CLUSTER", "INFO"]];

/// Who asks a server.
struct Examination<'a, T, R> {
    transport: &'a T,
    runtime: &'a R,
    /// How long an answer may take.
    patience: Micros,
    /// As it stands in keys.
    namespace: String,
}

impl<T: Transport> RedisStore<T> {
    /// Looks whether the server is fit for pools of this namespace.
    pub(super) async fn look<R: Runtime>(
        &self,
        runtime: &R,
        namespace: &Name,
        patience: Micros,
    ) -> Result<Vec<Finding>, StoreError> {
        let namespace = namespace.encoded();
        let examination = Examination { transport: &self.transport, runtime, patience, namespace };
        examination.findings().await
    }
}

impl<T: Transport, R: Runtime> Examination<'_, T, R> {
    async fn findings(self) -> Result<Vec<Finding>, StoreError> {
        let key = &self.key(TAG);
        let script = self.ask(&["EVALSHA", NO_SCRIPT, "1", key]).await?;
        if let Resp::Error(text) = &script {
            match text.split(' ').next().unwrap_or_default() {
                "NOSCRIPT" | "NOPERM" | "ERR" => {}
                _ => return evicting(text).ok_or_else(|| classify(text)),
            }
        }
        let (heard, hears) = oneshot::channel();
        let subscribed = self.subscribe(key, heard).await;
        let tries: Vec<String> = TRIES.iter().map(|(command, rest, _)| tried(command, rest, key)).collect();
        let mut words = vec!["EVAL", TRY, "1", key];
        words.extend(tries.iter().map(String::as_str));
        let tries = self.ask(&words).await?;
        let push = match subscribed {
            Ok(None) => Push::Unable,
            Err(cause) => Push::Failed(cause),
            Ok(Some(_)) if is_refused(&tries, PUBLISH) => Push::Unsent,
            // The watch is kept until then.
            Ok(Some(_watch)) => match self.within(hears).await {
                Some(Ok(())) => Push::Heard,
                _ => Push::Unheard,
            },
        };
        let info = self.ask(&[INFO]).await?;
        let policy = self.ask(&POLICY).await?;
        let save = self.ask(&SAVE).await?;
        let before = self.runtime.wall();
        let time = self.ask(&[TIME]).await?;
        let wall = (before, self.runtime.wall());
        let cluster = match field(&info, "cluster_enabled") {
            Some("1") => {
                let [slots, epoch] = CLUSTER;
                let [middle, last] = ELSEWHERE.map(|tag| self.key(tag));
                // Another node may be gone, which is nothing of this one.
                let far =
                    async |key: &str| self.ask(&["EVALSHA", NO_SCRIPT, "1", key]).await.unwrap_or(Resp::Nil);
                Some([self.ask(&slots).await?, self.ask(&epoch).await?, far(&middle).await, far(&last).await])
            }
            _ => None,
        };
        let Examination { namespace, .. } = self;
        Ok(Said { namespace, script, tries, info, policy, save, time, wall, cluster, push }.findings())
    }

    /// The key of a slot that is asked about.
    fn key(&self, tag: &str) -> String {
        format!("{}:{tag}:doctor", self.namespace)
    }

    async fn ask(&self, words: &[&str]) -> Result<Resp, StoreError> {
        let command = words.iter().map(|&word| word.to_owned()).collect();
        match self.within(self.transport.send(command)).await {
            Some(answer) => Ok(answer?),
            None => Err(StoreError::new(Certainty::Unknown, "no answer in time")),
        }
    }

    /// Has a message of this channel told; what went wrong, in words.
    async fn subscribe(&self, channel: &str, told: oneshot::Sender<()>) -> Result<Option<Watch>, String> {
        let told = Mutex::new(Some(told));
        let listener: Listener = Arc::new(move |calls| {
            // Without calls it is said only that messages may have been lost.
            if calls.is_some()
                && let Some(told) = unpoisoned(&told).take()
            {
                let _ = told.send(());
            }
        });
        match self.within(self.transport.subscribe(channel.to_owned(), listener)).await {
            Some(watch) => {
                watch.map_err(|error| StoreError::from(error).cause.trim_start_matches(": ").to_owned())
            }
            None => Err("no answer in time".to_owned()),
        }
    }

    async fn within<U>(&self, work: impl Future<Output = U>) -> Option<U> {
        runtime::by(self.runtime, self.runtime.now() + self.patience, pin!(work)).await
    }
}

/// A command as it is tried.
fn tried(command: &str, rest: &str, channel: &str) -> String {
    match command {
        TIME | INFO => command.to_owned(),
        PUBLISH => format!("{command} {channel} {rest}"),
        // The key as the script is given it: a client may put something before it.
        _ => format!("{command} * {rest}"),
    }
}

/// Whether this command was refused, or all of them.
fn is_refused(tries: &Resp, command: &str) -> bool {
    let Resp::List(said) = tries else { return true };
    let place = TRIES.iter().position(|(tried, ..)| *tried == command);
    matches!(place.and_then(|place| said.get(place)), Some(Resp::Text(text)) if !text.is_empty())
}
