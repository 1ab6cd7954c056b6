//! Where a Redis is, as the user says it.

use std::fmt;

use ::redis::io::tcp::TcpSettings;
use ::redis::io::tcp::socket2::TcpKeepalive;
use ::redis::{Client, ErrorKind, IntoConnectionInfo, RedisConnectionInfo, RedisError};

use super::KEEPALIVE;
use crate::error::{Error, Result};
use crate::{MILLISECOND, Micros, SECOND};

/// The longest that may be said of a server which goes on beside its successor: a day.
const MAX_LAG: Micros = 86_400 * SECOND;

/// The address of a Redis, with its password if it has one; neither is ever shown.
#[derive(Clone)]
pub struct RedisUrl {
    pub(super) kind: Kind,
    /// How long after another server took the place of one that may go on to serve, as far as only the user can know: the least
    /// [lag](crate::store::StorePool::lag).
    pub(super) lag: Micros,
}

/// What there is at an address.
#[derive(Clone)]
pub(super) enum Kind {
    One(Client),
    /// Nodes of a cluster, each of which knows the others.
    Cluster(Vec<Client>),
    /// Sentinels, and the name by which they know the primary; `servers` says how it is spoken to, at whatever address.
    Sentinel {
        sentinels: Vec<Client>,
        name: String,
        servers: Client,
    },
}

/// An address of several servers, in its parts.
struct Parts<'a> {
    scheme: &'a str,
    /// With the sign that ends it.
    login: &'a str,
    hosts: Vec<&'a str>,
    path: &'a str,
    query: Vec<&'a str>,
}

impl RedisUrl {
    /// Reads the URL of one server (`redis://`, `rediss://`, `redis+unix://`), of nodes of a cluster
    /// (`redis+cluster://host:port,host:port`), or of sentinels (`redis+sentinel://host:port,host:port/name/database`), both
    /// also with `rediss`. `?lag=30s` (or `500ms`, up to a day) says for how long a server may go on to serve beside the one that
    /// took its place there: so much longer a pool waits that may have lost leases.
    ///
    /// # Errors
    /// `invalid_argument` if it is not one, or names a user without a password (an empty one is written `user:@`); the message does
    /// not repeat it.
    pub fn new(url: &str) -> Result<Self> {
        let scheme = url.split(':').next().unwrap_or_default();
        let kind = match scheme {
            "redis" | "rediss" | "valkey" | "valkeys" => {
                check(url, &["protocol", "lag"], " (and the database is the path)")?;
                Kind::One(client(url, "redis://user:password@host:port/database")?)
            }
            "redis+unix" | "unix" => {
                check(url, &["db", "user", "pass", "protocol", "lag"], "")?;
                Kind::One(client(url, "redis+unix:///path?db=0")?)
            }
            "redis+cluster" | "rediss+cluster" => {
                check(url, &["protocol", "lag"], "")?;
                cluster(&Parts::of(url))?
            }
            "redis+sentinel" | "rediss+sentinel" => {
                check(
                    url,
                    &["protocol", "sentinel_password", "lag"],
                    " (and the database is the path's last part)",
                )?;
                sentinel(&Parts::of(url))?
            }
            _ => {
                let known =
                    "must begin with memory:, redis://, rediss://, redis+cluster:// or redis+sentinel://";
                return Err(Error::invalid("url", known));
            }
        };
        Ok(RedisUrl { kind, lag: lag(url)? })
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RedisUrl(…)")
    }
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Self {
        let (scheme, rest) = url.split_once("://").unwrap_or((url, ""));
        let scheme = scheme.split('+').next().unwrap_or_default();
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (login, hosts) = authority.split_at(authority.find('@').map_or(0, |at| at + 1));
        Parts { scheme, login, hosts: hosts.split(',').collect(), path, query: query.split('&').collect() }
    }

    /// The client of one of its hosts alone.
    fn single(&self, login: &str, host: &str, path: &str, form: &str) -> Result<Client> {
        // A login goes before all hosts, or the driver would take what stands between for a password.
        if host.contains('@') {
            return Err(malformed(form));
        }
        let protocol = self.query.iter().find(|pair| pair.starts_with("protocol="));
        let query = protocol.map_or(String::new(), |pair| format!("?{pair}"));
        client(&format!("{}://{login}{host}/{path}{query}", self.scheme), form)
    }
}

fn cluster(parts: &Parts<'_>) -> Result<Kind> {
    let form = "redis+cluster://user:password@host:port,host:port";
    let nodes = parts.hosts.iter().map(|host| parts.single(parts.login, host, "", form));
    let nodes = nodes.collect::<Result<_>>()?;
    if !parts.path.is_empty() {
        return Err(Error::invalid("url", "has a path, and a cluster no databases to choose from"));
    }
    Ok(Kind::Cluster(nodes))
}

fn sentinel(parts: &Parts<'_>) -> Result<Kind> {
    let form = "redis+sentinel://user:password@host:port,host:port/name-of-the-primary/database";
    let password = parts.query.iter().find_map(|pair| pair.strip_prefix("sentinel_password="));
    let login = password.map_or(String::new(), |password| format!(":{password}@"));
    let sentinel = |host: &&str| {
        let has_port = host.rsplit(']').next().is_some_and(|end| end.contains(':'));
        let host = if has_port || host.is_empty() { (*host).to_owned() } else { format!("{host}:26379") };
        parts.single(&login, &host, "", form)
    };
    let sentinels = parts.hosts.iter().map(sentinel).collect::<Result<_>>()?;
    let (name, database) = parts.path.split_once('/').unwrap_or((parts.path, ""));
    if name.is_empty() {
        return Err(Error::invalid("url", format_args!("names no primary; it is of the form {form}")));
    }
    let any = parts.hosts.first().copied().unwrap_or_default();
    let servers = parts.single(parts.login, any, database, form)?;
    Ok(Kind::Sentinel { sentinels, name: name.to_owned(), servers })
}

/// The driver passes over what it does not know, and a database named so would be another one than was meant.
fn check(url: &str, known: &[&str], besides: &str) -> Result<()> {
    if url.contains('#') {
        return Err(Error::invalid(
            "url",
            "has a #: in a password it is written %23, and nothing may follow it",
        ));
    }
    let pairs = parameters(url).filter(|pair| !pair.is_empty());
    let mut keys = pairs.map(|pair| pair.split_once('=').map_or(pair, |(key, _)| key));
    if keys.all(|key| known.contains(&key)) {
        return Ok(());
    }
    let known = known.join(", ");
    Err(Error::invalid("url", format_args!("has a parameter that is not known; there are: {known}{besides}")))
}

/// What stands behind the question mark, pair by pair.
fn parameters(url: &str) -> impl Iterator<Item = &str> {
    url.split_once('?').map_or("", |(_, query)| query).split('&')
}

/// What the URL says that a server may go on to serve beside its successor.
fn lag(url: &str) -> Result<Micros> {
    let mut said = parameters(url).filter_map(|pair| pair.strip_prefix("lag"));
    let Some(text) = said.next() else { return Ok(0) };
    let text = text.strip_prefix('=').unwrap_or_default();
    let units = [("ms", MILLISECOND), ("s", SECOND)];
    let span = units.iter().find_map(|(unit, micros)| {
        let number = text.strip_suffix(unit)?;
        let digits = number.bytes().all(|letter| letter.is_ascii_digit());
        number.parse::<Micros>().ok().filter(|_| digits)?.checked_mul(*micros)
    });
    match span {
        Some(span) if span <= MAX_LAG && said.next().is_none() => Ok(span),
        _ => Err(Error::invalid(
            "url",
            "has a lag that is none: write it once, with its unit, as lag=30s or lag=500ms, up to a day",
        )),
    }
}

/// The driver's client of one server, which connects only when it is told to.
fn client(url: &str, form: &str) -> Result<Client> {
    let (silence, pause) = KEEPALIVE;
    let keepalive = TcpKeepalive::new().with_time(silence).with_interval(pause);
    // An envelope must not wait until the one before it has arrived.
    let settings = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
    // The driver's own message could repeat the URL, and with it the password.
    let refusal = |error: RedisError| match error.kind() {
        ErrorKind::InvalidClientConfig
            if (url.starts_with("rediss:") || url.starts_with("valkeys:")) && cfg!(not(feature = "tls")) =>
        {
            Error::invalid("url", "needs TLS, and this build has none")
        }
        _ => malformed(form),
    };
    let info = url.into_connection_info().map_err(refusal)?;
    let login = with_password(info.redis_settings().clone(), url)?;
    Client::open(info.set_redis_settings(login).set_tcp_settings(settings)).map_err(refusal)
}

/// The driver sends no login without a password, and takes an empty one for none: the server would take it for the user `default`.
fn with_password(login: RedisConnectionInfo, url: &str) -> Result<RedisConnectionInfo> {
    if login.username().is_none() || login.password().is_some() {
        return Ok(login);
    }
    if url.split('/').nth(2).is_some_and(|authority| authority.contains(":@")) {
        return Ok(login.set_password(""));
    }
    let written = "a password alone is written :password@, and that of a user who needs none is empty, user:@ (or &pass=)";
    Err(Error::invalid("url", format_args!("names a user without a password; {written}")))
}

fn malformed(form: &str) -> Error {
    let so = "with a password that is encoded by percents and an IPv6 address in brackets";
    Error::invalid("url", format_args!("is not a URL of the form {form}, {so}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(clients: &[Client]) -> Vec<String> {
        clients.iter().map(|client| client.get_connection_info().addr().to_string()).collect()
    }

    /// The driver sets neither by itself: the second envelope to a far server waited until the first had come back.
    #[test]
    fn what_is_sent_waits_for_nothing_and_a_silent_connection_is_looked_after() {
        for url in ["rediss://a", "rediss+cluster://a", "rediss+sentinel://a/b"] {
            let clients = match RedisUrl::new(url).unwrap().kind {
                Kind::One(client) => vec![client],
                Kind::Cluster(nodes) => nodes,
                Kind::Sentinel { mut sentinels, servers, .. } => {
                    sentinels.push(servers);
                    sentinels
                }
            };
            for client in clients {
                let info = client.get_connection_info();
                assert!(info.tcp_settings().nodelay() && info.tcp_settings().keepalive().is_some(), "{url}");
                assert!(
                    matches!(info.addr(), ::redis::ConnectionAddr::TcpTls { insecure: false, .. }),
                    "{url}"
                );
            }
        }
    }

    /// redis-py and ioredis read `?db=2`; the driver would use database 0, and another pool than was meant.
    #[test]
    fn a_parameter_that_would_be_passed_over_is_refused() {
        for good in [
            "redis://a",
            "redis://user:word@a:1/2",
            "redis://a?protocol=resp3",
            "redis://a/?",
            "redis+unix:///run/redis.sock?db=2&user=u&pass=p&protocol=resp3",
        ] {
            assert!(RedisUrl::new(good).is_ok(), "{good}");
        }
        for wrong in [
            "redis://a?db=2",
            "redis://a/2?protocol=resp3&ssl_cert_reqs=none",
            "redis://a?response_timeout=5",
            "redis+unix:///run/redis.sock?database=2",
            "redis://:wo?rd@a",
            "redis+cluster://a?db=0",
            "redis+cluster://a?sentinel_password=word",
            "redis+cluster://:wo?rd@a",
            "redis+sentinel://a/b?password=rd@",
        ] {
            let error = RedisUrl::new(wrong).unwrap_err();
            assert_eq!(error.field(), Some("url"));
            assert!(error.message().contains("there are: "), "{wrong}: {error}");
            assert!(!error.message().contains("rd@"), "{error}");
        }
        // The driver would find this out with each command.
        for (wrong, hint) in
            [("rediss://a#insecure", "%23"), ("redis://:wo#rd@a", "%23"), ("redis://::1:6379", "brackets")]
        {
            let error = RedisUrl::new(wrong).unwrap_err();
            assert_eq!(error.field(), Some("url"));
            assert!(error.message().contains(hint) && !error.message().contains("wo#"), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_lag_is_said_with_its_unit() {
        for (url, lag) in [
            ("redis://a", 0),
            ("redis://a?lag=0s", 0),
            ("redis://a/2?protocol=resp3&lag=30s", 30 * SECOND),
            ("redis+unix:///run/redis.sock?lag=500ms&db=2", 500 * MILLISECOND),
            ("rediss+cluster://a,b?lag=86400s", MAX_LAG),
            ("redis+sentinel://a,b/name?lag=86400000ms&sentinel_password=word", MAX_LAG),
        ] {
            assert_eq!(RedisUrl::new(url).expect(url).lag, lag, "{url}");
        }
        for wrong in [
            "",
            "s",
            "ms",
            "30",
            "-1s",
            "+1s",
            "1.5s",
            "1 s",
            "1m",
            "86401s",
            "99999999999999999999s",
            "1s&lag=1s",
        ] {
            let error = RedisUrl::new(&format!("redis://a?lag={wrong}")).expect_err(wrong);
            assert_eq!(error.field(), Some("url"), "{wrong}");
            assert!(error.message().contains("lag=30s"), "{wrong}: {error}");
        }
        for wrong in ["redis://a?lag", "redis://a?lag&protocol=resp3"] {
            assert!(RedisUrl::new(wrong).expect_err(wrong).message().contains("lag=30s"), "{wrong}");
        }
    }

    // No login was sent, and the process had the rights of the user `default`.
    #[test]
    fn a_user_without_a_password_is_refused_and_an_empty_one_is_sent() {
        for wrong in [
            "redis://canary@a",
            "rediss://canary@a:1/2?protocol=resp3",
            "redis+unix:///run/redis.sock?user=canary",
            "redis+cluster://canary@a,b",
            "redis+sentinel://canary@a,b/name?sentinel_password=word",
        ] {
            let error = RedisUrl::new(wrong).expect_err(wrong);
            assert_eq!(error.field(), Some("url"), "{wrong}");
            assert!(error.message().contains(":password@"), "{wrong}: {error}");
            assert!(!error.to_string().contains("canary"), "{wrong}: {error}");
        }
        for url in [
            "redis://relayer:@a",
            "redis+unix:///run/redis.sock?user=relayer&pass=",
            "redis+cluster://relayer:@a",
            "redis+sentinel://relayer:@a/name",
        ] {
            let client = match RedisUrl::new(url).unwrap().kind {
                Kind::One(client) | Kind::Sentinel { servers: client, .. } => client,
                Kind::Cluster(mut nodes) => nodes.remove(0),
            };
            let settings = client.get_connection_info().redis_settings();
            assert_eq!((settings.username(), settings.password()), (Some("relayer"), Some("")), "{url}");
        }
    }

    #[test]
    fn a_cluster_is_named_by_some_of_its_nodes() {
        for (url, nodes) in [
            ("redis+cluster://a", vec!["a:6379"]),
            ("redis+cluster://a/", vec!["a:6379"]),
            ("rediss+cluster://user:w,o%40rd@a:1,b,[::1]:2?protocol=resp3", vec!["a:1", "b:6379", "::1:2"]),
        ] {
            let Kind::Cluster(clients) = RedisUrl::new(url).unwrap().kind else {
                panic!("{url} is no cluster")
            };
            assert_eq!(addresses(&clients), nodes);
            if url.contains('@') {
                for client in clients {
                    let settings = client.get_connection_info().redis_settings();
                    assert_eq!((settings.username(), settings.password()), (Some("user"), Some("w,o@rd")));
                    assert_eq!(settings.protocol(), ::redis::ProtocolVersion::RESP3);
                }
            }
        }
    }

    #[test]
    fn a_primary_is_named_by_its_sentinels() {
        let url =
            "redis+sentinel://user:word@a,b:1,[::1]/relayers/3?sentinel_password=ot%40her&protocol=resp3";
        let Kind::Sentinel { sentinels, name, servers } = RedisUrl::new(url).unwrap().kind else { panic!() };
        assert_eq!(addresses(&sentinels), ["a:26379", "b:1", "::1:26379"]);
        assert_eq!(name, "relayers");
        let settings = servers.get_connection_info().redis_settings();
        assert_eq!(
            (settings.username(), settings.password(), settings.db()),
            (Some("user"), Some("word"), 3)
        );
        for client in sentinels {
            let settings = client.get_connection_info().redis_settings();
            assert_eq!((settings.username(), settings.password(), settings.db()), (None, Some("ot@her"), 0));
        }
        let Kind::Sentinel { sentinels, servers, .. } =
            RedisUrl::new("redis+sentinel://:word@a/b").unwrap().kind
        else {
            panic!()
        };
        assert_eq!(servers.get_connection_info().redis_settings().password(), Some("word"));
        assert_eq!(
            sentinels[0].get_connection_info().redis_settings().password(),
            None,
            "it is the servers'"
        );
    }

    #[test]
    fn a_wrong_address_of_several_servers_is_not_repeated() {
        for (wrong, hint) in [
            ("redis+cluster://", "redis+cluster://user"),
            ("redis+cluster:a", "redis+cluster://user"),
            ("redis+cluster://:canary@", "redis+cluster://user"),
            ("redis+cluster://:canary@a,,b", "redis+cluster://user"),
            ("redis+cluster://:canary@a,b:port", "redis+cluster://user"),
            ("redis+cluster://:canary@a,::1:6379", "brackets"),
            ("redis+cluster://:canary@a,:canary@b", "redis+cluster://user"),
            ("redis+cluster://:can/ary@a", "redis+cluster://user"),
            ("redis+cluster://:canary@a/0", "databases"),
            ("redis+cluster://:canary@a,b/2", "databases"),
            ("redis+sentinel://:canary@a", "names no primary"),
            ("redis+sentinel://:canary@a/", "names no primary"),
            ("redis+sentinel://:canary@a//2", "names no primary"),
            ("redis+sentinel://:canary@a,/name", "redis+sentinel://user"),
            ("redis+sentinel://:canary@a/name/canary", "redis+sentinel://user"),
            ("redis+sentinel://:canary@a/name/1/2", "redis+sentinel://user"),
            ("redis+sentinel://a/name?sentinel_password=can/ary", "redis+sentinel://user"),
            ("valkey+cluster://:canary@a", "must begin with"),
        ] {
            let error = RedisUrl::new(wrong).expect_err(wrong);
            assert_eq!(error.field(), Some("url"), "{wrong}");
            assert!(error.message().contains(hint), "{wrong}: {error}");
            assert!(!error.to_string().contains("can"), "{wrong}: {error}");
        }
    }
}
