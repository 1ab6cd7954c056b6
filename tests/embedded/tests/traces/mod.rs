//! Random commands from a seed.

/// A sequence of commands on few keys and few members, so that they meet.
pub struct Trace {
    state: u64,
}

const KEYS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const SIMPLE: [&str; 21] = [
    "GET",
    "GETDEL",
    "STRLEN",
    "INCR",
    "DECR",
    "DEL",
    "UNLINK",
    "EXISTS",
    "TYPE",
    "PERSIST",
    "PTTL",
    "TTL",
    "PEXPIRETIME",
    "HLEN",
    "HGETALL",
    "HKEYS",
    "LLEN",
    "SCARD",
    "SMEMBERS",
    "ZCARD",
    "ZPOPMIN",
];
const MEMBERED: [&str; 12] = [
    "HGET",
    "HEXISTS",
    "HDEL",
    "HMGET",
    "SISMEMBER",
    "SADD",
    "SREM",
    "ZSCORE",
    "ZRANK",
    "ZREVRANK",
    "ZREM",
    "ZMSCORE",
];
const SCRIPTS: [&str; 4] = [
    "return redis.call(unpack(ARGV))",
    "return redis.pcall(unpack(ARGV))",
    "local ok, r = pcall(redis.call, unpack(ARGV)) return {tostring(ok), type(r), r}",
    "local r = redis.pcall(unpack(ARGV)) if type(r) == 'table' and r.err then return {'failed', r.err} end return {r, r}",
];

impl Trace {
    /// A trace that is the same for the same seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1 }
    }

    /// The next command; one in three goes through a script.
    pub fn command(&mut self) -> Vec<String> {
        let args = self.plain();
        if self.below(3) > 0 {
            return args;
        }
        let script = SCRIPTS[self.below(SCRIPTS.len())];
        let mut wrapped = vec!["EVAL", script, "6"];
        wrapped.extend(KEYS);
        wrapped.into_iter().map(str::to_owned).chain(args).collect()
    }

    /// A number as a program might write it, of any size.
    pub fn number(&mut self) -> String {
        match self.below(6) {
            0 => self.below(1_000).to_string(),
            1 => (self.next() as i64).to_string(),
            2 => format!("{}", f64::from_bits(self.next())).replace("NaN", "1.5"),
            3 => format!("{:e}", (self.next() >> 11) as f64 / 1e9),
            4 => format!("-{}.{}", self.below(10_000), self.below(10_000)),
            _ => format!("1{}", "0".repeat(self.below(25))),
        }
    }

    fn plain(&mut self) -> Vec<String> {
        let mut words: Vec<String> = Vec::new();
        let key = KEYS[self.below(KEYS.len())].to_owned();
        match self.below(17) {
            0 | 1 => words.extend([self.pick(&SIMPLE), key]),
            2 | 3 => {
                words.extend([self.pick(&MEMBERED), key, self.member()]);
                if self.below(2) == 0
                    && ["HMGET", "HDEL", "SADD", "SREM", "ZREM", "ZMSCORE"].contains(&&*words[0])
                {
                    words.push(self.member());
                }
            }
            4 => {
                words.extend(["SET".to_owned(), key, self.value()]);
                for option in ["NX", "XX", "GET", "KEEPTTL"] {
                    if self.below(5) == 0 {
                        words.push(option.to_owned());
                    }
                }
                if self.below(4) == 0 {
                    words.extend(["px".to_owned(), "10000000".to_owned()]);
                }
            }
            5 => words.extend([self.pick(&["INCRBY", "DECRBY"]), key, self.value()]),
            6 => words.extend(["HINCRBY".to_owned(), key, self.member(), self.value()]),
            7 | 8 => {
                words.extend(["HSET".to_owned(), key]);
                for _ in 0..=self.below(3) {
                    words.extend([self.member(), self.value()]);
                }
            }
            9 | 10 => {
                words.extend(["ZADD".to_owned(), key]);
                for option in ["NX", "XX", "GT", "LT", "CH", "INCR"] {
                    if self.below(8) == 0 {
                        words.push(option.to_owned());
                    }
                }
                for _ in 0..=self.below(3) {
                    words.extend([self.score(), self.member()]);
                }
            }
            11 => {
                words.extend([self.pick(&["ZRANGE", "ZREVRANGE"]), key, self.index(), self.index()]);
                self.maybe(&mut words, "WITHSCORES");
            }
            12 => {
                words.extend([
                    self.pick(&["ZRANGEBYSCORE", "ZREVRANGEBYSCORE"]),
                    key,
                    self.bound(),
                    self.bound(),
                ]);
                self.maybe(&mut words, "WITHSCORES");
                if self.below(2) == 0 {
                    words.extend(["LIMIT".to_owned(), self.index(), self.index()]);
                }
            }
            13 => words.extend([self.pick(&["ZCOUNT", "ZREMRANGEBYSCORE"]), key, self.bound(), self.bound()]),
            14 => match self.below(4) {
                0 => words.extend(["ZINCRBY".to_owned(), key, self.score(), self.member()]),
                1 => words.extend(["ZREMRANGEBYRANK".to_owned(), key, self.index(), self.index()]),
                2 => words.extend([self.pick(&["ZPOPMIN", "ZPOPMAX", "LPOP", "RPOP"]), key, self.index()]),
                _ => words.extend(["MGET".to_owned(), key, self.pick(&KEYS)]),
            },
            15 => match self.below(3) {
                0 => words.extend([self.pick(&["LRANGE", "LTRIM"]), key, self.index(), self.index()]),
                _ => words.extend([self.pick(&["LPUSH", "RPUSH"]), key, self.value(), self.value()]),
            },
            _ => {
                let at = self.pick(&["99999999999999", "88888888888888", "1", "x"]);
                words.extend(["PEXPIREAT".to_owned(), key, at]);
                for option in ["NX", "XX", "GT", "LT"] {
                    if self.below(5) == 0 {
                        words.push(option.to_owned());
                    }
                }
            }
        }
        words
    }

    fn maybe(&mut self, words: &mut Vec<String>, word: &str) {
        if self.below(2) == 0 {
            words.push(word.to_owned());
        }
    }

    fn member(&mut self) -> String {
        self.pick(&["m", "n", "o", "mm", "1", "", "é"])
    }

    fn value(&mut self) -> String {
        self.pick(&[
            "0",
            "1",
            "-7",
            "9223372036854775807",
            "-9223372036854775808",
            "x",
            "",
            "1.5",
            "01",
            "12345",
        ])
    }

    fn score(&mut self) -> String {
        self.pick(&[
            "0",
            "-0",
            "1",
            "1.5",
            "2",
            "-3",
            "inf",
            "-inf",
            "1e17",
            "0.1",
            "123456789012345678",
            "x",
            "1e400",
        ])
    }

    fn bound(&mut self) -> String {
        self.pick(&[
            "-inf", "+inf", "inf", "0", "(0", "1", "(1", "1.5", "(2", "-3", "(", "(-inf", "(inf", "x", "1e17",
        ])
    }

    fn index(&mut self) -> String {
        self.pick(&["0", "1", "2", "-1", "-2", "5", "-9", "100"])
    }

    fn pick(&mut self, words: &[&str]) -> String {
        words[self.below(words.len())].to_owned()
    }

    fn below(&mut self, bound: usize) -> usize {
        ((self.next() >> 33) as usize) % bound
    }

    /// The xorshift* generator.
    fn next(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}
