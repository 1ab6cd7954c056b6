//! What a server has counted.

use leasehold_servers::{RedisServer, Resp};

/// A section of `INFO` as text.
pub fn info(server: &RedisServer, section: &str) -> String {
    let reply = server.command(&["INFO", section]).expect("the server answers");
    reply.as_text().expect("text").to_owned()
}

/// How often a command was called, refused calls not counted.
pub fn calls(server: &RedisServer, command: &str) -> u64 {
    field(&info(server, "commandstats"), &format!("cmdstat_{command}:calls=")).unwrap_or(0)
}

/// Connections that the server has taken so far.
pub fn connections(server: &RedisServer) -> u64 {
    field(&info(server, "stats"), "total_connections_received:").unwrap_or(0)
}

/// How many tickets there are in all pools, or places in their lines if those are more.
///
/// # Panics
/// If the server does not answer.
pub fn tickets(server: &RedisServer) -> usize {
    size(server, "*:tickets", "HLEN").max(size(server, "*:line", "ZCARD"))
}

/// The keys of a server that fit a pattern.
///
/// # Panics
/// If the server does not answer.
pub fn keys(server: &RedisServer, pattern: &str) -> Vec<String> {
    let Resp::Array(keys) = server.command(&["KEYS", pattern]).expect("a reply") else { panic!("no keys") };
    keys.iter().map(|key| key.as_text().expect("text").to_owned()).collect()
}

fn size(server: &RedisServer, pattern: &str, command: &str) -> usize {
    let sizes = keys(server, pattern).into_iter().map(|key| {
        match server.command(&[command, &key]).expect("a reply") {
            Resp::Int(size) => usize::try_from(size).expect("a size"),
            other => panic!("{other:?}"),
        }
    });
    sizes.sum()
}

fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}
