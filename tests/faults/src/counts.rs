//! What a server has counted.

use leasehold_servers::RedisServer;

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

fn field(text: &str, name: &str) -> Option<u64> {
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}
