//! How many scripts a second the embedded server runs: `cargo run --release -p leasehold-embedded --example speed`.

use std::time::Instant;

use leasehold_embedded::EmbeddedRedis;

const RUNS: u32 = 500_000;

/// Scripts from the smallest one to one as long as a claim of a lease.
const SCRIPTS: [(&str, &str, u64); 4] = [
    ("nothing", "return 1", 0),
    ("get and set", "local v = redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], ARGV[1]) return v", 2),
    (
        "renew a lease",
        "local held = redis.call('HMGET', KEYS[1], 'fence', 'until')
         local time = redis.call('TIME')
         local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
         if held[1] and held[1] ~= ARGV[1] then return {'lost'} end
         redis.call('HSET', KEYS[1], 'fence', ARGV[1], 'until', string.format('%.0f', now + 30000000))
         return {'renewed', tostring(now)}",
        3,
    ),
    (
        "claim and release",
        "local time = redis.call('TIME')
         local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
         local free = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 1)
         local slot = free[1] or ARGV[1]
         redis.call('HSET', KEYS[1], 'holder', ARGV[1], 'slot', slot, 'fence', string.format('%.0f', now))
         redis.call('ZADD', KEYS[2], now + 30000000, slot)
         redis.call('PEXPIRE', KEYS[1], 30000)
         redis.call('ZADD', KEYS[2], now, slot)
         return {slot, redis.call('HGET', KEYS[1], 'fence')}",
        7,
    ),
];

fn main() {
    for (name, source, calls) in SCRIPTS {
        let mut redis = EmbeddedRedis::new(1_700_000_000_000_000);
        let sha = redis.command(&[b"SCRIPT", b"LOAD", source.as_bytes()]);
        let sha = sha.as_bytes().expect("a digest").to_vec();
        let begun = Instant::now();
        for run in 0..RUNS {
            redis.set_time(1_700_000_000_000_000 + u64::from(run) * 100);
            let reply = redis.command(&[b"EVALSHA", &sha, b"2", b"{p}:a", b"{p}:b", b"12345678"]);
            assert!(reply.as_error().is_none(), "{reply:?}");
        }
        assert_eq!(redis.last_script_calls(), calls);
        let rate = f64::from(RUNS) / begun.elapsed().as_secs_f64();
        println!("{name}: {:.0} thousand scripts a second, {calls} commands each", rate / 1_000.0);
    }
}
