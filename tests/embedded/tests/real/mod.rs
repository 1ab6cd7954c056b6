//! An embedded and a real server side by side.

use leasehold_embedded::{EmbeddedRedis, Resp};
use leasehold_servers::{RedisOptions, RedisServer, RespConnection};

/// Two servers that get the same commands.
pub struct Pair {
    pub embedded: EmbeddedRedis,
    pub server: RedisServer,
    connection: RespConnection,
}

impl Pair {
    /// Starts both, their clocks within the same second.
    pub fn start() -> Self {
        let server = RedisServer::start(RedisOptions::default()).expect("started");
        let mut connection = server.connect().expect("connected");
        let time = connection.command(&["TIME"]).expect("a reply");
        let parts: Vec<u64> = time
            .as_array()
            .expect("an array")
            .iter()
            .map(|part| part.as_text().expect("text").parse().expect("a number"))
            .collect();
        Self { embedded: EmbeddedRedis::new(parts[0] * 1_000_000 + parts[1]), server, connection }
    }

    /// Empties both.
    pub fn clear(&mut self) {
        self.command(&["FLUSHALL".to_owned()]);
    }

    /// The replies of both to one command, without what may differ.
    pub fn command(&mut self, args: &[String]) -> (Resp, Resp) {
        let bytes: Vec<&[u8]> = args.iter().map(String::as_bytes).collect();
        let embedded = self.embedded.command(&bytes);
        let real = convert(self.connection.command(args).expect("a reply"));
        (level(args, embedded), level(args, real))
    }
}

fn convert(reply: leasehold_servers::Resp) -> Resp {
    use leasehold_servers::Resp as Real;
    match reply {
        Real::Nil => Resp::Nil,
        Real::Int(value) => Resp::Int(value),
        Real::Bulk(bytes) => Resp::Bulk(bytes),
        Real::Simple(text) => Resp::Simple(text),
        Real::Array(items) => Resp::Array(items.into_iter().map(convert).collect()),
        Real::Error(text) => Resp::Error(text),
    }
}

/// Sets promise no order, and the real clock goes on while the other stands still.
fn level(args: &[String], reply: Resp) -> Resp {
    let names = |name: &str| args.iter().any(|arg| arg == name);
    match reply {
        Resp::Array(mut items) if names("SMEMBERS") => {
            // A script may have put them one level deeper.
            items = items.into_iter().map(|item| level(args, item)).collect();
            items.sort_by_key(|item| item.as_bytes().map(<[u8]>::to_vec));
            Resp::Array(items)
        }
        Resp::Array(items) => Resp::Array(items.into_iter().map(|item| level(args, item)).collect()),
        Resp::Int(value) if (names("PTTL") || names("TTL")) && value > 0 => Resp::Int(1),
        // Times far ahead were given as such; nearer ones were counted from now.
        Resp::Int(value) if names("PEXPIRETIME") && (1..20_000_000_000_000).contains(&value) => Resp::Int(1),
        other => other,
    }
}
