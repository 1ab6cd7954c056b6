//! How a server is to be started.

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
    /// Further arguments of the command line.
    pub arguments: Vec<String>,
}

/// A sentinel's configuration, in its server's directory; it writes there what it learns.
pub(crate) const SENTINEL_FILE: &str = "sentinel.conf";

impl RedisOptions {
    /// The arguments for a server on this port.
    pub(crate) fn command_line(&self, port: u16) -> Vec<String> {
        let port = port.to_string();
        if self.sentinel.is_some() {
            let mut line = vec![SENTINEL_FILE, "--sentinel", "--port", &port, "--bind", "127.0.0.1"];
            if let Some(password) = &self.password {
                line.extend(["--requirepass", password]);
            }
            return line.into_iter().map(str::to_owned).collect();
        }
        let mut line: Vec<&str> =
            vec!["--port", &port, "--bind", "127.0.0.1", "--save", "", "--daemonize", "no"];
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
        let line = RedisOptions::default().command_line(7).join(" ");
        assert!(line.starts_with("--port 7 --bind 127.0.0.1 --save  "));
        assert!(!line.contains("appendonly"));
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
            arguments: vec!["--hz".to_owned(), "50".to_owned()],
        };
        let line = options.command_line(7).join(" ");
        for part in ["--appendonly yes", "--maxmemory 1mb", "--maxmemory-policy allkeys-lru", "--hz 50"] {
            assert!(line.contains(part), "{part}");
        }
        assert!(line.contains("--requirepass secret --masterauth secret"));
        assert!(line.contains("--cluster-enabled yes"));
    }
}
