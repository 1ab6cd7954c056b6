//! The embedded server against a real one: the same commands, reply by reply.

mod real;
mod traces;

use leasehold_embedded::{EmbeddedRedis, Resp};

use real::Pair;
use traces::Trace;

const TRACES: u64 = 400;
const COMMANDS: usize = 80;

#[test]
fn random_commands_get_equal_replies() {
    let mut pair = Pair::start();
    for seed in 1..=TRACES {
        pair.clear();
        let mut trace = Trace::new(seed);
        let mut history = Vec::new();
        for _ in 0..COMMANDS {
            let args = trace.command();
            history.push(args.join(" "));
            let (embedded, real) = pair.command(&args);
            assert_eq!(embedded, real, "seed {seed}, embedded left, real right:\n{}", history.join("\n"));
        }
    }
}

#[test]
fn random_numbers_are_stored_and_scored_alike() {
    let mut pair = Pair::start();
    let mut trace = Trace::new(77);
    let store = "redis.call('SET', KEYS[1], tonumber(ARGV[1])) return redis.call('GET', KEYS[1])";
    let score =
        "redis.call('ZADD', KEYS[2], tonumber(ARGV[1]), 'm') return redis.call('ZSCORE', KEYS[2], 'm')";
    let back = "return tonumber(ARGV[1])";
    let text =
        "return tostring(tonumber(ARGV[1])) .. string.format(' %.0f %s', tonumber(ARGV[1]), ARGV[1] + 1)";
    for _ in 0..2_000 {
        let number = trace.number();
        for script in [store, score, back, text] {
            let args = ["EVAL", script, "2", "k", "z", &number].map(str::to_owned);
            let (embedded, real) = pair.command(&args);
            assert_eq!(embedded, real, "{number} in {script}");
        }
    }
}

#[test]
fn scripts_behave_alike() {
    let mut pair = Pair::start();
    for script in SCRIPTS {
        pair.clear();
        let args = ["EVAL", script, "3", "a", "b", "c", "one", "2", "3.5"].map(str::to_owned);
        let (embedded, real) = pair.command(&args);
        assert_eq!(embedded, real, "{script}");
    }
}

#[test]
fn misused_commands_are_refused_alike() {
    let mut pair = Pair::start();
    for line in MISUSES {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let (embedded, real) = pair.command(&args);
        assert_eq!(embedded, real, "{line}");
        assert!(matches!(real, Resp::Error(_)), "{line} is no misuse: {real:?}");
    }
}

#[test]
fn refusals_of_a_full_or_read_only_server_are_worded_alike() {
    use leasehold_embedded::Fault;

    let scripts = [
        "return redis.call('SET', KEYS[1], '1')",
        "redis.call('DEL', KEYS[1]) return redis.call('SET', KEYS[1], '1')",
        "return redis.pcall('SET', KEYS[1], '1')",
        "return redis.call('GET', KEYS[1])",
        "redis.call('GET', KEYS[1])\nlocal r = redis.pcall('HSET', KEYS[1], 'f', '1') return r.err or r",
    ];
    let faults: [(Fault, &[&str], &[&str]); 3] = [
        (Fault::OutOfMemory, &["CONFIG", "SET", "maxmemory", "1"], &["CONFIG", "SET", "maxmemory", "0"]),
        (Fault::ReadOnly, &["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"]),
        (
            Fault::NoReplicas,
            &["CONFIG", "SET", "min-replicas-to-write", "1"],
            &["CONFIG", "SET", "min-replicas-to-write", "0"],
        ),
    ];
    let mut pair = Pair::start();
    for (fault, begin, end) in faults {
        pair.clear();
        pair.server.command(begin).expect("set");
        pair.embedded.set_fault(Some(fault.clone()));
        for script in scripts {
            let args = ["EVAL", script, "1", "k"].map(str::to_owned);
            let (embedded, real) = pair.command(&args);
            assert_eq!(embedded, real, "{fault:?}: {script}");
        }
        for line in ["SET k 1", "GET k", "DEL k", "PING"] {
            let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let (embedded, real) = pair.command(&args);
            assert_eq!(embedded, real, "{fault:?}: {line}");
        }
        pair.server.command(end).expect("set");
        pair.embedded.set_fault(None);
    }
}

#[test]
fn equal_calls_give_equal_replies() {
    let run = || {
        let mut redis = EmbeddedRedis::new(5);
        let mut trace = Trace::new(3);
        let mut replies = Vec::new();
        for _ in 0..500 {
            let args = trace.command();
            let args: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
            replies.push(redis.command(&args));
        }
        (replies, redis.replication_id(), redis.key_count())
    };
    assert_eq!(run(), run());
}

const SCRIPTS: &[&str] = &[
    "return redis.call('FOO')",
    "return redis.call('GET')",
    "return redis.call()",
    "return redis.pcall()",
    "return redis.pcall('GET', {})",
    "return redis.call('GET', true)",
    "return redis.error_reply('MYERR')",
    "return redis.error_reply('MYERR some text')",
    "return redis.error_reply('-MYERR some')",
    "return redis.error_reply()",
    "return redis.error_reply('a', 'b')",
    "return redis.status_reply('HI')",
    "return redis.status_reply(1)",
    "return {err='X y'}",
    "return {err='a\\r\\nb'}",
    "return {ok='a\\r\\nb'}",
    "error('boo')",
    "error('X', 0)",
    "error('X', 2)",
    "error()",
    "error({err='MY err'})",
    "return foo",
    "x = 1",
    "redis.foo = 1",
    "string.foo = 1",
    "KEYS = {}",
    "return redis.call('EVAL', 'return 1', '0')",
    "return redis.call('SCRIPT', 'FLUSH')",
    "return redis.call('WAIT', '0', '0')",
    "return redis.call('CONFIG', 'GET', 'x')",
    "local ok, e = pcall(redis.call, 'INCRBY', KEYS[1], 'x') return {tostring(ok), type(e), e}",
    "local ok, e = pcall(function() return redis.call('HGET', KEYS[1]) end) return e",
    "local e = redis.pcall('INCRBY', KEYS[1], 'x') return {type(e), e.err}",
    "return {1, 2, nil, 4}",
    "return {1.9, -1.9, 'a', true, false, 3}",
    "return {{}, {1, {2}}, redis.status_reply('x'), {err='E in'}}",
    "return {1, 2, {err='x'}, 3}",
    "return setmetatable({}, {__index = function() return 1 end})",
    "return function() end",
    "return",
    "return 1e300",
    "return 0/0",
    "return -1/0",
    "return 9007199254740993",
    "local x = 1 + nil",
    "return 'a' .. nil",
    "return #nil",
    "return nil .. {}",
    "return KEYS[9]",
    "return {KEYS[1], ARGV[1], ARGV[2] + 1, ARGV[3] * 2, #KEYS, #ARGV}",
    "return redis.sha1hex('a')",
    "return redis.sha1hex(1)",
    "return redis.sha1hex()",
    "return redis.sha1hex('a', 'b')",
    "return {redis.REDIS_VERSION, redis.REDIS_VERSION_NUM}",
    "return redis.log(redis.LOG_NOTICE, 'x')",
    "return redis.log('x')",
    "return redis.replicate_commands()",
    "return redis.set_repl(redis.REPL_ALL)",
    "return redis.setresp(2)",
    "return print('x')",
    "return type(os)",
    "return redis.call('SET', KEYS[1], 100000000000000000) and redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], 1/0) and redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], 0/0) and redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], -0) and redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], 0.1) and redis.call('GET', KEYS[1])",
    "return redis.call('SET', KEYS[1], 'v', 'PX', 0)",
    "return redis.call('SET', KEYS[1], 'v', 'NX') and redis.call('SET', KEYS[1], 'w', 'NX')",
    "redis.call('SET', KEYS[1], '1') redis.call('HSET', KEYS[1], 'b', 'c')",
    "redis.call('SET', KEYS[1], '1') return redis.call('INCRBY', KEYS[1], 9007199254740993)",
    "redis.call('SET', KEYS[1], '9007199254740993') return redis.call('INCRBY', KEYS[1], 0)",
    "redis.call('SET', KEYS[1], '9007199254740993') return tostring(redis.call('INCRBY', KEYS[1], 0))",
    "return redis.call('PING')['ok']",
    "return redis.call('PING')",
    "return redis.call('ping', 'x')",
    "return {tostring(redis.call('GET', KEYS[1])), tostring(redis.call('LPOP', KEYS[1], '2'))}",
    "return redis.call('HMGET', KEYS[1], 'a', 'b')",
    "redis.call('HSET', KEYS[1], 'a', '1', 'b', 2) return redis.call('HMGET', KEYS[1], 'a', 'x', 'b')",
    "redis.call('HSET', KEYS[1], 'a', '1', 'b', 2) return redis.call('HGETALL', KEYS[1])",
    "return redis.call('HSET', KEYS[1], 'v', '1', '2')",
    "redis.call('ZADD', KEYS[1], 'inf', 'p', '-0', 'q', 1e17, 'n', '0.1', 'm')
     return redis.call('ZRANGE', KEYS[1], 0, -1, 'WITHSCORES')",
    "redis.call('ZADD', KEYS[1], 1, 'p', 2, 'q', 3, 'r')
     return redis.call('ZRANGEBYSCORE', KEYS[1], '(1', '+inf', 'WITHSCORES', 'LIMIT', 0, 1)",
    "redis.call('ZADD', KEYS[1], 1, 'p') return redis.call('ZPOPMIN', KEYS[1])",
    "return redis.call('ZADD', KEYS[1], 'NaN', 'm')",
    "return redis.call('ZADD', KEYS[1], 0/0, 'm')",
    "return redis.call('PUBLISH', 'c', 'm')",
    "return redis.call('PEXPIRE', KEYS[1], 1.5)",
    "redis.call('SET', KEYS[1], '1') return redis.call('PEXPIRE', KEYS[1], 1e17)",
    "redis.call('SET', KEYS[1], '1') redis.call('PEXPIRE', KEYS[1], 0) return redis.call('EXISTS', KEYS[1])",
    "local a = 1\nlocal function f() error('in f') end\nf()",
    "local a = 1\nreturn redis.call('x')",
    "local t = {} for i = 1, 300 do t[i] = i end return t",
    "local t = {} for i = 1, 300 do t[i] = 'm' .. i end redis.call('SADD', KEYS[1], unpack(t))
     return redis.call('SCARD', KEYS[1])",
    "return {tostring(nil), tostring(true), tonumber('0x10'), tonumber('1e2'), tostring(tonumber('x'))}",
    "return {string.format('%.0f', 123456789012345), string.format('%d', 7), ('x'):rep(3), ('abc'):sub(-2)}",
    "return {table.concat({1, 2, 3}, ','), select('#', 1, 2), unpack({7, 8})}",
    "return struct.pack('<sc1c3dds', '', 'e', 'abcd', 0, -1, 17)",
    "return struct.pack('<ddddd', 0.5, -0.1, 1e300, 9007199254740992, '1700000000000000')",
    "return struct.pack('<s', ('x'):rep(300))",
    "local back = {struct.unpack('<c1sdsd', struct.pack('<c1sdsd', 'e', 'abc', 1700000000000001, '', -0.25))}
     return {back[1], back[2], string.format('%d', back[3]), back[4], tostring(back[5]), back[6]}",
    "redis.call('SET', KEYS[1], 'hello') return {redis.call('GETRANGE', KEYS[1], 0, 2),
       redis.call('GETRANGE', KEYS[1], -3, -1), redis.call('GETRANGE', KEYS[1], 3, 99),
       redis.call('GETRANGE', KEYS[1], 4, 1), redis.call('GETRANGE', KEYS[1], -99, 0)}",
    "return redis.call('GETRANGE', KEYS[1], 0, 40)",
    "local c = coroutine.wrap(function() coroutine.yield(redis.call('PING').ok) end) return c()",
    "return xpcall(function() error('x') end, function(e) return 'handled ' .. e end) and 1 or 0",
    "local ok, e = pcall(error, {code = 7}) return {tostring(ok), e.code}",
    "return {tostring(pcall(rawset, _G, 'x', 1)), _VERSION, type(_G.redis), math.floor(2.5)}",
];

const MISUSES: &[&str] = &[
    "FOO bar baz",
    "GET",
    "SET a",
    "SET a 1 XX NX",
    "SET a 1 EX 9223372036854775807",
    "SET a 1 PX 0",
    "SET a 1 PX x",
    "SET a 1 EX 1 PX 1",
    "SET a 1 KEEPTTL EX 1",
    "PING a b",
    "EVAL 1",
    "EVAL return x",
    "EVAL return -1",
    "EVAL return 3",
    "EVALSHA abc 0",
    "EVALSHA abc 5",
    "EVALSHA 0123456789012345678901234567890123456789 0",
    "SCRIPT",
    "SCRIPT FOO",
    "SCRIPT EXISTS",
    "SCRIPT LOAD",
    "SCRIPT LOAD )",
    "CONFIG GET",
    "CONFIG FOO",
    "WAIT x 0",
    "WAIT 0 x",
    "WAIT 0 -1",
    "ZADD z NX XX 1 a",
    "ZADD z GT LT 1 a",
    "ZADD z INCR 1 a 2 b",
    "ZADD z 1 a 2",
    "ZADD z x a",
    "ZADD z nan a",
    "ZADD z 1e400 a",
    "ZRANGE z 0 1 FOO",
    "ZRANGE z x 1",
    "ZRANGE z 0 1 LIMIT 0 1",
    "ZRANGEBYSCORE z 0 1 LIMIT 0",
    "ZRANGEBYSCORE z a b",
    "ZCOUNT z ((1 2",
    "ZPOPMIN z -1",
    "ZPOPMIN z x",
    "ZPOPMIN z 1 2",
    "LPOP z -1",
    "LRANGE z a b",
    "EXPIRE z 9223372036854775807",
    "PEXPIRE z 9223372036854775807",
    "EXPIRE z x",
    "PEXPIRE z 1 NX XX",
    "PEXPIRE z 1 foo",
    "EXPIRE z 1 GT LT",
    "HMGET h",
    "HSET h",
    "HSET h a",
    "HSET h a 1 b",
    "HINCRBY h a x",
    "INCRBY a 9223372036854775808",
    "DECRBY a -9223372036854775808",
];
