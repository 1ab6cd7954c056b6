//! Commands about the server itself.

use std::fmt::Write;

use super::integer;
use crate::Resp;
use crate::error_reply::{Answer, ErrorReply};
use crate::server::Server;

/// The version that is emulated.
pub(crate) const VERSION: &str = "7.0.15";

pub(crate) fn ping(_: &mut Server, args: &[&[u8]]) -> Answer {
    match args {
        [_] => Ok(Resp::Simple("PONG".to_owned())),
        [_, message] => Ok(Resp::bulk(*message)),
        _ => Err(ErrorReply::arity("ping")),
    }
}

pub(crate) fn echo(_: &mut Server, args: &[&[u8]]) -> Answer {
    Ok(Resp::bulk(args[1]))
}

pub(crate) fn time(server: &mut Server, _: &[&[u8]]) -> Answer {
    let part = |value: u64| Resp::bulk(value.to_string());
    Ok(Resp::Array(vec![part(server.time_us / 1_000_000), part(server.time_us % 1_000_000)]))
}

pub(crate) fn dbsize(server: &mut Server, _: &[&[u8]]) -> Answer {
    Ok(server.keyspace.len().into())
}

/// Nobody is connected, so a message reaches no subscriber; the test reads what was sent.
pub(crate) fn publish(server: &mut Server, args: &[&[u8]]) -> Answer {
    server.published.push((String::from_utf8_lossy(args[1]).into_owned(), args[2].to_vec()));
    Ok(Resp::Int(0))
}

pub(crate) fn wait(server: &mut Server, args: &[&[u8]]) -> Answer {
    integer(args[1])?;
    let timeout = crate::number::parse_integer(args[2])
        .ok_or(const { ErrorReply::fixed("ERR timeout is not an integer or out of range") })?;
    if timeout < 0 {
        return Err(ErrorReply::fixed("ERR timeout is negative"));
    }
    Ok(Resp::Int(server.wait_reply))
}

pub(crate) fn config(server: &mut Server, args: &[&[u8]]) -> Answer {
    let text = |arg: &[u8]| String::from_utf8_lossy(arg).to_ascii_lowercase();
    match (text(args[1]).as_str(), &args[2..]) {
        ("get", []) => Err(ErrorReply::arity("config|get")),
        ("get", names) => {
            let names: Vec<String> = names.iter().map(|name| text(name)).collect();
            let asked = |name: &str| names.iter().any(|asked| asked == "*" || asked == name);
            let found = server.config.iter().filter(|(name, _)| asked(name));
            let pairs =
                found.flat_map(|(name, value)| [Resp::bulk(name.as_str()), Resp::bulk(value.as_str())]);
            Ok(Resp::Array(pairs.collect()))
        }
        ("set", pairs) if !pairs.is_empty() && pairs.len() % 2 == 0 => {
            for pair in pairs.chunks_exact(2) {
                server.config.insert(text(pair[0]), String::from_utf8_lossy(pair[1]).into_owned());
            }
            Ok(Resp::ok())
        }
        ("set", _) => Err(ErrorReply::arity("config|set")),
        _ => {
            let name = String::from_utf8_lossy(args[1]);
            Err(ErrorReply::new(format!("ERR unknown subcommand '{name}'. Try CONFIG HELP.")))
        }
    }
}

pub(crate) fn info(server: &mut Server, args: &[&[u8]]) -> Answer {
    let wanted: Vec<String> =
        args[1..].iter().map(|arg| String::from_utf8_lossy(arg).to_ascii_lowercase()).collect();
    let everything = ["default", "all", "everything"];
    let asked = |section: &str| {
        wanted.is_empty()
            || wanted
                .iter()
                .any(|name| name.eq_ignore_ascii_case(section) || everything.contains(&name.as_str()))
    };
    let mut text = String::new();
    for (section, lines) in sections(server) {
        if asked(section) {
            if !text.is_empty() {
                text.push_str("\r\n");
            }
            let _ = write!(text, "# {section}\r\n");
            for (name, value) in lines {
                let _ = write!(text, "{name}:{value}\r\n");
            }
        }
    }
    Ok(Resp::bulk(text))
}

type Section = (&'static str, Vec<(&'static str, String)>);

fn sections(server: &Server) -> [Section; 5] {
    // A clock set back makes the uptime negative, as it does in Redis.
    let uptime = (server.time_us / 1_000_000) as i64 - (server.started_us / 1_000_000) as i64;
    let config = |name: &str| server.config.get(name).cloned().unwrap_or_default();
    let appending = if config("appendonly") == "yes" { "1" } else { "0" };
    let mut replication = vec![
        ("role", "master".to_owned()),
        ("connected_slaves", "0".to_owned()),
        ("master_replid", server.replication_id.hex()),
        ("master_repl_offset", "0".to_owned()),
    ];
    // There are never any replicas; Redis tells of that only where some are wanted.
    if config("min-replicas-to-write").parse().unwrap_or(0u64) > 0 {
        replication.insert(2, ("min_slaves_good_slaves", "0".to_owned()));
    }
    // What is served as Redis, and is not, need not say who it is.
    if config("master-replid") == "untold" {
        replication.retain(|(name, _)| *name != "master_replid");
    }
    [
        (
            "Server",
            vec![
                ("redis_version", VERSION.to_owned()),
                ("redis_mode", "standalone".to_owned()),
                ("server_time_usec", server.time_us.to_string()),
                ("uptime_in_seconds", uptime.to_string()),
            ],
        ),
        (
            "Memory",
            vec![("maxmemory", config("maxmemory")), ("maxmemory_policy", config("maxmemory-policy"))],
        ),
        ("Persistence", vec![("loading", "0".to_owned()), ("aof_enabled", appending.to_owned())]),
        ("Replication", replication),
        ("Cluster", vec![("cluster_enabled", "0".to_owned())]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> Server {
        Server::new(5_000_000, 0)
    }

    fn text(answer: Answer) -> String {
        answer.expect("answered").as_text().expect("text").to_owned()
    }

    #[test]
    fn time_is_in_seconds_and_microseconds() {
        let mut server = server();
        server.time_us = 7_000_012;
        assert_eq!(server.run(&[b"TIME"]), Ok(Resp::Array(vec![Resp::bulk("7"), Resp::bulk("12")])));
    }

    #[test]
    fn info_tells_sections() {
        let mut server = server();
        server.time_us = 3_000_000;
        let replication = text(server.run(&[b"INFO", b"replication"]));
        assert!(replication.starts_with("# Replication\r\nrole:master\r\n"));
        let id = replication.split("master_replid:").nth(1).expect("there").lines().next().expect("a line");
        assert_eq!(id.len(), 40);
        assert!(text(server.run(&[b"INFO", b"server"])).contains("\r\nuptime_in_seconds:-2\r\n"));
        assert_eq!(text(server.run(&[b"INFO", b"nosuch"])), "");
        assert!(text(server.run(&[b"INFO"])).contains("\r\n\r\n# Memory\r\n"));
    }

    #[test]
    fn configuration_is_read_and_set() {
        let mut server = server();
        let policy: [&[u8]; 3] = [b"CONFIG", b"GET", b"maxmemory-policy"];
        let pair = |value: &str| Ok(Resp::Array(vec![Resp::bulk("maxmemory-policy"), Resp::bulk(value)]));
        assert_eq!(server.run(&policy), pair("noeviction"));
        assert_eq!(server.run(&[b"CONFIG", b"SET", b"Maxmemory-Policy", b"allkeys-lru"]), Ok(Resp::ok()));
        assert_eq!(server.run(&policy), pair("allkeys-lru"));
        assert_eq!(server.run(&[b"CONFIG", b"GET", b"nosuch"]), Ok(Resp::Array(vec![])));
        assert!(server.run(&[b"CONFIG", b"GET"]).is_err());
        assert!(server.run(&[b"CONFIG", b"REWRITE"]).is_err());
    }

    #[test]
    fn waiting_answers_what_was_set() {
        let mut server = server();
        server.wait_reply = 2;
        assert_eq!(server.run(&[b"WAIT", b"1", b"50"]), Ok(Resp::Int(2)));
        assert!(server.run(&[b"WAIT", b"1", b"-1"]).is_err());
        assert!(server.run(&[b"WAIT", b"x", b"1"]).is_err());
    }

    #[test]
    fn messages_are_kept_for_the_test() {
        let mut server = server();
        assert_eq!(server.run(&[b"PUBLISH", b"c", b"m"]), Ok(Resp::Int(0)));
        assert_eq!(server.published, [("c".to_owned(), b"m".to_vec())]);
        assert_eq!(server.run(&[b"PING"]), Ok(Resp::Simple("PONG".to_owned())));
        assert_eq!(server.run(&[b"PING", b"x"]), Ok(Resp::bulk("x")));
        assert!(server.run(&[b"PING", b"x", b"y"]).is_err());
    }
}
