//! A sentinel that watches a primary and its replicas.

use std::io;

use crate::{RedisOptions, RedisServer};

/// One sentinel, which decides alone and is quick to do so.
#[derive(Debug)]
pub struct Sentinel {
    server: RedisServer,
    /// The password of the servers that it watches.
    password: Option<String>,
}

/// The name by which it knows the primary.
const NAME: &str = "relayers";

impl Sentinel {
    /// Starts a sentinel of this primary, whose replicas must follow it already, and waits until it knows one.
    pub fn start(primary: &RedisServer) -> io::Result<Self> {
        Self::with_password(primary, None)
    }

    /// As `start`, with a password of its own.
    pub fn with_password(primary: &RedisServer, own: Option<&str>) -> io::Result<Self> {
        let mut config = format!("sentinel monitor {NAME} 127.0.0.1 {} 1\n", primary.entry());
        for setting in ["down-after-milliseconds NAME 400", "failover-timeout NAME 3000"] {
            config.push_str(&format!("sentinel {}\n", setting.replace("NAME", NAME)));
        }
        let password = primary.password().map(str::to_owned);
        if let Some(password) = &password {
            config.push_str(&format!("sentinel auth-pass {NAME} {password}\n"));
        }
        let options = RedisOptions {
            sentinel: Some(config),
            password: own.map(str::to_owned),
            tls: primary.certificate().cloned(),
            ..RedisOptions::default()
        };
        let sentinel = Self { server: RedisServer::start(options)?, password };
        sentinel.server.wait_until("the sentinel knows no replica", |server| {
            let replicas = server.command(&["SENTINEL", "REPLICAS", NAME])?;
            Ok(replicas.as_array().is_some_and(|replicas| !replicas.is_empty()))
        })?;
        Ok(sentinel)
    }

    /// The address as clients take it, with the password of the servers if they have one; asked first are the sentinels at
    /// these ports of this machine.
    pub fn url(&self, before: &[u16]) -> String {
        let login = self.password.as_ref().map_or(String::new(), |password| format!(":{password}@"));
        let own = self.server.password().map_or(String::new(), |own| format!("?sentinel_password={own}"));
        let ports = before.iter().copied().chain([self.server.entry()]);
        let hosts: Vec<String> = ports.map(|port| format!("127.0.0.1:{port}")).collect();
        format!("{}+sentinel://{login}{}/{NAME}{own}", self.server.scheme(), hosts.join(","))
    }

    /// The port of the server that is the primary, as far as the sentinel knows.
    pub fn primary(&self) -> io::Result<u16> {
        let reply = self.server.command(&["SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME])?;
        let port = reply.as_array().and_then(|address| address.get(1)?.as_text()?.parse().ok());
        port.ok_or_else(|| io::Error::other(format!("no primary: {reply:?}")))
    }

    /// Has a replica promoted, and the primary follow it some ten seconds later.
    pub fn fail_over(&self) -> io::Result<()> {
        // It looks every ten seconds, and leaves alone whoever it held to be down in the last eight.
        self.bear_silence()?;
        self.server.expect_ok(&["SENTINEL", "FAILOVER", NAME])
    }

    /// Has a server held to be down after ten seconds of silence only: on a busy machine, 400 ms are nothing.
    pub fn bear_silence(&self) -> io::Result<()> {
        self.server.expect_ok(&["SENTINEL", "SET", NAME, "down-after-milliseconds", "10000"])
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;
    use crate::Resp;

    #[test]
    fn a_sentinel_promotes_a_replica_when_the_primary_is_gone() {
        let start = || RedisServer::start(RedisOptions::default()).expect("started");
        let (primary, replica) = (start(), start());
        replica.replicate(&primary).expect("replicates");
        let sentinel = Sentinel::start(&primary).expect("started");
        assert_eq!(sentinel.primary().expect("known"), primary.port());
        primary.kill().expect("killed");
        let begun = Instant::now();
        // As it is promoted, it closes its connections.
        while replica.command(&["SET", "a", "1"]).ok() != Some(Resp::ok()) {
            assert!(begun.elapsed() < Duration::from_secs(20), "it is not promoted");
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(
            sentinel.url(&[1]),
            format!("redis+sentinel://127.0.0.1:1,127.0.0.1:{}/relayers", sentinel.server.port())
        );
    }
}
