//! How a server is to be started.

use crate::Certificate;
use crate::certificate::{AUTHORITY_FILE, CERTIFICATE_FILE, KEY_FILE};

/// Settings of one server; the default is an empty one in memory, without persistence and without a password.
#[derive(Clone, Debug, Default)]
pub struct RedisOptions {
    /// Keep an append-only file, so that the data outlives `kill` and `restart`.
    pub appendonly: bool,
    /// The limit of memory, as Redis reads it: `10mb`.
    pub maxmemory: Option<String>,
    /// What to do at the limit: `noeviction`, `allkeys-lru`, ...
    pub maxmemory_policy: Option<String>,
    /// The password of the default user.
    pub password: Option<String>,
    /// Run as a node of a cluster.
    pub cluster: bool,
    /// Run as a sentinel that begins with this configuration file; of the options above, it has the password only.
    pub sentinel: Option<String>,
    /// Speak TLS to clients, replicas and other nodes, at a port of its own, and show this.
    pub tls: Option<Certificate>,
    /// Further arguments of the command line.
    pub arguments: Vec<String>,
}

/// A sentinel's configuration, in its server's directory; it writes there what it learns.
pub(crate) const SENTINEL_FILE: &str = "sentinel.conf";

impl RedisOptions {
    /// The arguments for a server on this port, and on that one for TLS.
    pub(crate) fn command_line(&self, port: u16, tls: Option<u16>) -> Vec<String> {
        let mut line = self.plain(&port.to_string());
        if let Some(port) = tls {
            let port = port.to_string();
            let files = [("cert", CERTIFICATE_FILE), ("key", KEY_FILE), ("ca-cert", AUTHORITY_FILE)];
            line.extend(["--tls-port".to_owned(), port]);
            line.extend(
                files.iter().flat_map(|(what, file)| [format!("--tls-{what}-file"), (*file).to_owned()]),
            );
            line.extend(["--tls-auth-clients", "no", "--tls-replication", "yes"].map(str::to_owned));
            if self.cluster {
                line.extend(["--tls-cluster", "yes"].map(str::to_owned));
            }
        }
        line
    }

    fn plain(&self, port: &str) -> Vec<String> {
        if self.sentinel.is_some() {
            let mut line = vec![SENTINEL_FILE, "--sentinel", "--port", port, "--bind", "127.0.0.1"];
            if let Some(password) = &self.password {
                line.extend(["--requirepass", password]);
            }
            return line.into_iter().map(str::to_owned).collect();
        }
        let mut line: Vec<&str> =
            vec!["--port", port, "--bind", "127.0.0.1", "--save", "", "--daemonize", "no"];
        // A replica of a test must not wait for others to come.
        line.extend(["--repl-diskless-sync-delay", "0"]);
        if self.appendonly {
            line.extend(["--appendonly", "yes", "--appendfsync", "everysec"]);
        }
        if let Some(limit) = &self.maxmemory {
            line.extend(["--maxmemory", limit]);
        }
        if let Some(policy) = &self.maxmemory_policy {
            line.extend(["--maxmemory-policy", policy]);
        }
        if let Some(password) = &self.password {
            line.extend(["--requirepass", password, "--masterauth", password]);
        }
        if self.cluster {
            line.extend(["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]);
        }
        line.extend(self.arguments.iter().map(String::as_str));
        line.into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persistence_is_off_unless_asked_for() {
        let line = RedisOptions::default().command_line(7, None).join(" ");
        assert!(line.starts_with("--port 7 --bind 127.0.0.1 --save  "));
        assert!(!line.contains("appendonly") && !line.contains("tls"));
    }

    #[test]
    fn every_option_reaches_the_command_line() {
        let options = RedisOptions {
            appendonly: true,
            maxmemory: Some("1mb".to_owned()),
            maxmemory_policy: Some("allkeys-lru".to_owned()),
            password: Some("secret".to_owned()),
            cluster: true,
            sentinel: None,
            tls: None,
            arguments: vec!["--hz".to_owned(), "50".to_owned()],
        };
        let line = options.command_line(7, Some(8)).join(" ");
        for part in [
            "--tls-port 8",
            "--tls-cluster yes",
            "--appendonly yes",
            "--maxmemory 1mb",
            "--maxmemory-policy allkeys-lru",
            "--hz 50",
        ] {
            assert!(line.contains(part), "{part}");
        }
        assert!(line.contains("--requirepass secret --masterauth secret"));
        assert!(line.contains("--cluster-enabled yes"));
    }
}
