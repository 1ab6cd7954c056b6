//! The table of commands.

use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::commands::{hashes, introspection, keys, lists, sets, sorted_sets, strings};
use crate::error_reply::{Answer, ErrorReply};
use crate::server::Server;

/// One command: how many arguments it takes, where its keys are, and what runs it.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) name: &'static str,
    /// The number of arguments with the name; negative for "at least".
    arity: i32,
    keys: Keys,
    pub(crate) traits: Traits,
    pub(crate) run: fn(&mut Server, &[&[u8]]) -> Answer,
}

/// What decides when a command is refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    pub(crate) writes: bool,
    /// It may add data, so it is refused when memory is out.
    pub(crate) grows: bool,
    pub(crate) while_loading: bool,
    pub(crate) in_scripts: bool,
}

#[derive(Clone, Copy, Debug)]
enum Keys {
    None,
    First,
    All,
    /// As many as the argument before them says.
    Counted,
}

impl Command {
    /// Finds a command by its name, in whatever case.
    pub(crate) fn find(name: &[u8]) -> Option<&'static Self> {
        let mut upper = [0_u8; 24];
        let upper = upper.get_mut(..name.len())?;
        upper.copy_from_slice(name);
        upper.make_ascii_uppercase();
        TABLE.get(&*upper).copied()
    }

    pub(crate) fn takes(&self, arguments: usize) -> bool {
        let bound = self.arity.unsigned_abs() as usize;
        if self.arity < 0 { arguments >= bound } else { arguments == bound }
    }

    /// The keys among the arguments.
    pub(crate) fn keys<'a, 'b>(&self, args: &'a [&'b [u8]]) -> &'a [&'b [u8]] {
        match self.keys {
            Keys::None => &[],
            Keys::First => args.get(1..2).unwrap_or(&[]),
            Keys::All => args.get(1..).unwrap_or(&[]),
            Keys::Counted => {
                let count = args.get(2).and_then(|count| std::str::from_utf8(count).ok()?.parse().ok());
                args.get(3..3_usize.saturating_add(count.unwrap_or(0))).unwrap_or(&[])
            }
        }
    }
}

const READS: Traits = Traits { writes: false, grows: false, while_loading: false, in_scripts: true };
const GROWS: Traits = Traits { writes: true, grows: true, ..READS };
const SHRINKS: Traits = Traits { grows: false, ..GROWS };
const TELLS: Traits = Traits { while_loading: true, ..READS };
const SCRIPTS: Traits = Traits { in_scripts: false, ..READS };
const ADMINISTERS: Traits = Traits { in_scripts: false, ..TELLS };

macro_rules! commands {
    ($($name:literal $arity:literal $keys:ident $traits:ident $run:path;)*) => {
        static COMMANDS: &[Command] = &[$(Command {
            name: $name, arity: $arity, keys: Keys::$keys, traits: $traits, run: $run,
        }),*];
    };
}

commands! {
    "EVAL" -3 Counted SCRIPTS only_from_clients;
    "EVALSHA" -3 Counted SCRIPTS only_from_clients;
    "SCRIPT" -2 None SCRIPTS only_from_clients;

    "CONFIG" -2 None ADMINISTERS introspection::config;
    "DBSIZE" 1 None READS introspection::dbsize;
    "ECHO" 2 None READS introspection::echo;
    "INFO" -1 None TELLS introspection::info;
    "PING" -1 None READS introspection::ping;
    "PUBLISH" 3 None TELLS introspection::publish;
    "TIME" 1 None TELLS introspection::time;
    "WAIT" 3 None SCRIPTS introspection::wait;

    "DEL" -2 All SHRINKS keys::del;
    "EXISTS" -2 All READS keys::exists;
    "EXPIRE" -3 First SHRINKS keys::expire;
    "EXPIREAT" -3 First SHRINKS keys::expireat;
    "FLUSHALL" -1 None SHRINKS keys::flush;
    "FLUSHDB" -1 None SHRINKS keys::flush;
    "PERSIST" 2 First SHRINKS keys::persist;
    "PEXPIRE" -3 First SHRINKS keys::pexpire;
    "PEXPIREAT" -3 First SHRINKS keys::pexpireat;
    "PEXPIRETIME" 2 First READS keys::pexpiretime;
    "PTTL" 2 First READS keys::pttl;
    "TTL" 2 First READS keys::ttl;
    "TYPE" 2 First READS keys::kind;
    "UNLINK" -2 All SHRINKS keys::del;

    "DECR" 2 First GROWS strings::decr;
    "DECRBY" 3 First GROWS strings::decrby;
    "GET" 2 First READS strings::get;
    "GETDEL" 2 First SHRINKS strings::getdel;
    "GETRANGE" 4 First READS strings::getrange;
    "INCR" 2 First GROWS strings::incr;
    "INCRBY" 3 First GROWS strings::incrby;
    "MGET" -2 All READS strings::mget;
    "SET" -3 First GROWS strings::set;
    "STRLEN" 2 First READS strings::strlen;

    "HDEL" -3 First SHRINKS hashes::hdel;
    "HEXISTS" 3 First READS hashes::hexists;
    "HGET" 3 First READS hashes::hget;
    "HGETALL" 2 First READS hashes::hgetall;
    "HINCRBY" 4 First GROWS hashes::hincrby;
    "HKEYS" 2 First READS hashes::hkeys;
    "HLEN" 2 First READS hashes::hlen;
    "HMGET" -3 First READS hashes::hmget;
    "HSET" -4 First GROWS hashes::hset;
    "HSETNX" 4 First GROWS hashes::hsetnx;

    "LLEN" 2 First READS lists::llen;
    "LPOP" -2 First SHRINKS lists::lpop;
    "LPUSH" -3 First GROWS lists::lpush;
    "LRANGE" 4 First READS lists::lrange;
    "LTRIM" 4 First SHRINKS lists::ltrim;
    "RPOP" -2 First SHRINKS lists::rpop;
    "RPUSH" -3 First GROWS lists::rpush;

    "SADD" -3 First GROWS sets::sadd;
    "SCARD" 2 First READS sets::scard;
    "SISMEMBER" 3 First READS sets::sismember;
    "SMEMBERS" 2 First READS sets::smembers;
    "SREM" -3 First SHRINKS sets::srem;

    "ZADD" -4 First GROWS sorted_sets::zadd;
    "ZCARD" 2 First READS sorted_sets::zcard;
    "ZCOUNT" 4 First READS sorted_sets::zcount;
    "ZINCRBY" 4 First GROWS sorted_sets::zincrby;
    "ZMSCORE" -3 First READS sorted_sets::zmscore;
    "ZPOPMAX" -2 First SHRINKS sorted_sets::zpopmax;
    "ZPOPMIN" -2 First SHRINKS sorted_sets::zpopmin;
    "ZRANGE" -4 First READS sorted_sets::zrange;
    "ZRANGEBYLEX" -4 First READS sorted_sets::zrangebylex;
    "ZRANGEBYSCORE" -4 First READS sorted_sets::zrangebyscore;
    "ZRANK" 3 First READS sorted_sets::zrank;
    "ZREM" -3 First SHRINKS sorted_sets::zrem;
    "ZREMRANGEBYRANK" 4 First SHRINKS sorted_sets::zremrangebyrank;
    "ZREMRANGEBYSCORE" 4 First SHRINKS sorted_sets::zremrangebyscore;
    "ZREVRANGE" -4 First READS sorted_sets::zrevrange;
    "ZREVRANGEBYSCORE" -4 First READS sorted_sets::zrevrangebyscore;
    "ZREVRANK" 3 First READS sorted_sets::zrevrank;
    "ZSCORE" 3 First READS sorted_sets::zscore;
}

static TABLE: LazyLock<FxHashMap<&'static [u8], &'static Command>> =
    LazyLock::new(|| COMMANDS.iter().map(|command| (command.name.as_bytes(), command)).collect());

/// Scripts are run a layer above the data set, which has no Lua of its own.
fn only_from_clients(_: &mut Server, _: &[&[u8]]) -> Answer {
    Err(ErrorReply::fixed("ERR This Redis command is not allowed from script"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_in_any_case() {
        assert_eq!(Command::find(b"zAdd").expect("there").name, "ZADD");
        assert!(Command::find(b"NOSUCH").is_none());
        assert!(Command::find(&[b'x'; 100]).is_none());
    }

    #[test]
    fn arity_counts_the_name() {
        let get = Command::find(b"get").expect("there");
        assert!(get.takes(2) && !get.takes(1) && !get.takes(3));
        let del = Command::find(b"del").expect("there");
        assert!(del.takes(2) && del.takes(9) && !del.takes(1));
    }

    #[test]
    fn keys_stand_where_the_table_says() {
        let args: [&[u8]; 5] = [b"EVAL", b"return 1", b"1", b"k", b"a"];
        assert_eq!(Command::find(b"eval").expect("there").keys(&args), &[b"k"]);
        let args: [&[u8]; 3] = [b"DEL", b"a", b"b"];
        assert_eq!(Command::find(b"del").expect("there").keys(&args), &args[1..]);
        assert!(Command::find(b"ping").expect("there").keys(&args[..1]).is_empty());
    }
}
