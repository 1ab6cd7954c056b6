//! Servers that answer, but refuse: the caller is told the server's own word, and all goes on when it is
//! mended.

use std::time::Duration;

use leasehold::client::{AcquireOptions, PoolOptions};
use leasehold::{Code, MILLISECOND, SECOND};
use leasehold_faults::{
    Arrivals, Place, Pool, Prize, calls, cannot_be_used, eventually, goes_on, handle, handle_with, opened,
    options, patient, soon, within,
};
use leasehold_servers::{Proxy, RedisOptions, RedisServer, Resp};

const RESPONSE: u64 = 500;

async fn pool_at(url: &str) -> Pool {
    pool_with(url, options(&["a", "b"])).await
}

async fn pool_with(url: &str, options: PoolOptions) -> Pool {
    let handle = handle_with(url, "faults", RESPONSE as f64).expect("a good address");
    let pool = opened(&handle, options, None).await;
    drop(pool.acquire_many_with(AcquireOptions { count: Some(2), ..patient() }).await.expect("granted"));
    eventually("both are ready", async || pool.census().await.expect("a count").ready == 2).await;
    pool
}

/// Requests that reach a refusing server while callers wait for two seconds.
async fn requests_while_refusing(pool: &Pool, proxy: &Proxy) -> u64 {
    let before = proxy.request_chunks();
    let callers: Vec<_> = (0..32)
        .map(|_| {
            let pool = pool.clone();
            tokio::spawn(async move { pool.acquire_with(within(2_000)).await.map(drop) })
        })
        .collect();
    for caller in callers {
        let (outcome, _) = soon(Duration::from_secs(4), "a caller", caller).await;
        assert_eq!(outcome.expect("no panic").expect_err("refused").code(), Code::StoreUnavailable);
    }
    proxy.request_chunks() - before
}

fn set(server: &RedisServer, name: &str, value: &str) {
    assert_eq!(server.command(&["CONFIG", "SET", name, value]).expect("a reply"), Resp::ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_replica_says_readonly() {
    let (master, place) = (Place::redis(), Place::redis());
    let proxy = Proxy::start(place.server().port()).expect("a proxy");
    let pool = pool_at(&proxy.url()).await;
    place.server().replicate(master.server()).expect("it follows");
    cannot_be_used(&pool, "READONLY", RESPONSE).await;
    let requests = requests_while_refusing(&pool, &proxy).await;
    println!("READONLY: 32 callers sent {requests} requests in 2 s");
    assert!(requests <= 80, "{requests} requests in 2 s");
    place.server().promote().expect("promoted");
    goes_on(&pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_full_server_says_oom() {
    let place = Place::redis();
    let server = place.server();
    let proxy = Proxy::start(server.port()).expect("a proxy");
    let pool = pool_at(&proxy.url()).await;
    let held = pool.acquire_with(patient()).await.expect("granted");
    set(server, "maxmemory", "1mb");
    // The release frees memory before it takes any, or is refused before it has changed anything.
    match held.release_with(Default::default()).await {
        Ok(()) => {}
        Err(error) => assert_eq!(error.code(), Code::StoreUnavailable, "{error}"),
    }
    // A claim frees memory, too: either it is granted as always, or refused with the server's own word.
    for _ in 0..10 {
        match pool.acquire_with(within(300)).await {
            Ok(lease) => {
                lease.unused().expect("held");
                let _ = lease.release_with(Default::default()).await;
            }
            Err(error) => {
                assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
                assert!(error.message().contains("OOM"), "{error}");
            }
        }
    }
    // What only takes memory is refused: new slots, and the record of a look.
    let before = proxy.request_chunks();
    for _ in 0..2 {
        let (outcome, _) = soon(Duration::from_secs(2), "adding", pool.add(["c"])).await;
        let error = outcome.expect_err("no memory");
        assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
        assert!(error.message().contains("OOM"), "{error}");
    }
    let requests = proxy.request_chunks() - before;
    println!("OOM: two callers in a row sent {requests} requests in about 1 s");
    assert!(requests <= 30, "{requests} requests");
    set(server, "maxmemory", "0");
    assert_eq!(pool.list().await.expect("ids"), ["a", "b"]);
    goes_on(&pool).await;
}

// An endless script of somebody else.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_busy_server_says_busy() {
    let arguments = vec!["--lua-time-limit".to_owned(), "50".to_owned()];
    let server = RedisServer::start(RedisOptions { arguments, ..RedisOptions::default() }).expect("starts");
    let proxy = Proxy::start(server.port()).expect("a proxy");
    let pool = pool_at(&proxy.url()).await;
    let mut endless = server.connect().expect("connected");
    endless.send(&["EVAL", "while true do end", "0"]).expect("sent");
    eventually("it is busy", async || {
        server.command(&["GET", "x"]).expect("a reply").error_code() == Some("BUSY")
    })
    .await;
    cannot_be_used(&pool, "BUSY", RESPONSE).await;
    let requests = requests_while_refusing(&pool, &proxy).await;
    println!("BUSY: 32 callers sent {requests} requests in 2 s");
    assert!(requests <= 80, "{requests} requests in 2 s");
    assert_eq!(server.command(&["SCRIPT", "KILL"]).expect("a reply"), Resp::ok());
    goes_on(&pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_loads_says_so() {
    // A server that loads answers once in 1,024 keys: well within the time that it has for it.
    let server = RedisServer::start(RedisOptions {
        appendonly: true,
        arguments: ["--key-load-delay", "60", "--aof-use-rdb-preamble", "no"].map(str::to_owned).to_vec(),
        ..RedisOptions::default()
    })
    .expect("starts");
    let mut connection = server.connect().expect("connected");
    for n in 0..30_000 {
        connection.send(&["SET", &format!("k{n}"), "v"]).expect("sent");
        if n % 100 == 99 {
            (0..100).for_each(|_| assert_eq!(connection.receive().expect("a reply"), Resp::ok()));
        }
    }
    // Its quiet time outlasts whoever is told of it: of one that is over the words are others.
    let pool = pool_with(&server.url(), PoolOptions { ttl: 3 * SECOND, ..options(&["a", "b"]) }).await;
    server.stop().expect("stopped");
    std::thread::scope(|scope| {
        let restart = scope.spawn(|| server.restart());
        let (handle, pool) = (tokio::runtime::Handle::current(), &pool);
        let told = scope.spawn(move || {
            handle.block_on(async {
                let mut seen = false;
                for _ in 0..200 {
                    match pool.acquire_with(within(600)).await {
                        Ok(_) => break,
                        Err(error) if error.code() == Code::StoreUnavailable => {
                            seen |= error.message().contains("LOADING");
                        }
                        // The quiet time after the restart.
                        Err(error) => {
                            assert!(error.message().contains("may have lost"), "{error}");
                            break;
                        }
                    }
                }
                seen
            })
        });
        restart.join().expect("no panic").expect("restarted");
        assert!(told.join().expect("no panic"), "LOADING was never told");
    });
    goes_on(&pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_wants_a_password_says_noauth() {
    let options_ = RedisOptions { password: Some("right".to_owned()), ..RedisOptions::default() };
    let server = RedisServer::start(options_).expect("starts");
    for (url, cause) in [
        (format!("redis://127.0.0.1:{}", server.port()), "NOAUTH"),
        (format!("redis://:wrong@127.0.0.1:{}", server.port()), "authentication failed"),
    ] {
        let handle = handle_with(&url, "faults", RESPONSE as f64).expect("a good address");
        let (outcome, _) =
            soon(Duration::from_secs(3), "opening", handle.pool_with("relayers", options(&["a"]), None))
                .await;
        let error = outcome.expect_err("no rights");
        assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
        assert!(error.message().contains(cause) && error.message().contains("nothing was done"), "{error}");
    }
    goes_on(&handle(&server.url()).pool_with("relayers", options(&["a"]), None).await.expect("opens")).await;
    // The password is changed while the pool is open, and its connection lost.
    let proxy = Proxy::start(server.port()).expect("a proxy");
    let url = format!("redis://:right@127.0.0.1:{}", proxy.port());
    let pool = pool_at(&url).await;
    set(&server, "requirepass", "other");
    proxy.disconnect();
    cannot_be_used(&pool, "authentication failed", RESPONSE).await;
    let requests = requests_while_refusing(&pool, &proxy).await;
    println!("WRONGPASS: 32 callers sent {requests} requests in 2 s");
    assert!(requests <= 120, "{requests} requests in 2 s");
    let mut admin =
        leasehold_servers::RespConnection::connect(server.port(), Duration::from_secs(5)).expect("connected");
    assert_eq!(admin.command(&["AUTH", "other"]).expect("a reply"), Resp::ok());
    assert_eq!(admin.command(&["CONFIG", "SET", "requirepass", "right"]).expect("a reply"), Resp::ok());
    goes_on(&pool).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_user_without_rights_is_told_noperm() {
    let place = Place::redis();
    let server = place.server();
    let user = ["ACL", "SETUSER", "worker", "on", ">pw", "~*", "&*", "+@all"];
    assert_eq!(server.command(&user).expect("a reply"), Resp::ok());
    let pool = pool_at(&format!("redis://worker:pw@127.0.0.1:{}", server.port())).await;
    for rule in ["-eval -evalsha", "-zadd", "-hset", "-set", "resetkeys"] {
        let mut words = vec!["ACL", "SETUSER", "worker"];
        words.extend(rule.split(' '));
        assert_eq!(server.command(&words).expect("a reply"), Resp::ok());
        let (outcome, _) =
            soon(Duration::from_secs(2), "an acquisition", pool.acquire_with(within(1_000))).await;
        let error = outcome.expect_err("no rights");
        assert_eq!(error.code(), Code::StoreUnavailable, "{rule}: {error}");
        let words = ["NOPERM", "permission", "can't run"];
        assert!(words.iter().any(|word| error.message().contains(word)), "{rule}: {error}");
        assert_eq!(server.command(&user).expect("a reply"), Resp::ok());
        goes_on(&pool).await;
    }
}

// The script writes the order of places first and the records behind it. If a right to the second is taken away, the
// order says that a slot is leased and its record that it is not.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_script_that_dies_between_its_writes_grants_nothing_twice() {
    let place = Place::redis();
    let server = place.server();
    let user = ["ACL", "SETUSER", "worker", "on", ">pw", "~*", "&*", "+@all"];
    assert_eq!(server.command(&user).expect("a reply"), Resp::ok());
    let store = handle(&format!("redis://worker:pw@127.0.0.1:{}", server.port()));
    let ttl = Duration::from_millis(1_500).as_micros() as u64;
    let settings = leasehold::client::PoolOptions { ttl, ..options(&["a", "b", "c"]) };
    let pool = store.pool_with("relayers", settings, None).await.expect("opens");
    let held = pool.acquire_with(patient()).await.expect("granted");
    let without = ["ACL", "SETUSER", "worker", "-hset"];
    assert_eq!(server.command(&without).expect("a reply"), Resp::ok());
    // Until the server has said so: what is still under way would be told to those who come next.
    let error = pool.acquire_with(patient()).await.expect_err("no rights");
    assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
    assert_eq!(server.command(&user).expect("a reply"), Resp::ok());
    // What was under way as the right was away is told to whoever comes next.
    eventually("its trouble is over", async || pool.census().await.is_ok()).await;
    // The held slot is the next in the order, and not granted for that.
    while held.remaining_micros() > 100_000 {
        match pool.acquire_with(within(0)).await {
            Ok(lease) => assert_ne!(lease.slot(), held.slot(), "granted twice"),
            Err(error) => assert_eq!(error.code(), Code::Exhausted, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // What was moved comes back when it would have come due.
    held.release_with(Default::default()).await.expect("released");
    let mut leases = Vec::new();
    for _ in 0..3 {
        leases.push(pool.acquire_with(patient()).await.expect("all are there again"));
    }
    let mut slots: Vec<_> = leases.iter().map(|lease| lease.slot()).collect();
    slots.sort_unstable();
    assert_eq!(slots, ["a", "b", "c"]);
}

// Least privilege closes the channels: no messages, but everything else.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_user_without_channels_works_by_polling() {
    let place = Place::redis();
    let server = place.server();
    let user = ["ACL", "SETUSER", "worker", "on", ">pw", "~*", "resetchannels", "+@all"];
    assert_eq!(server.command(&user).expect("a reply"), Resp::ok());
    let pool = pool_at(&format!("redis://worker:pw@127.0.0.1:{}", server.port())).await;
    for _ in 0..4 {
        let held =
            pool.acquire_many_with(AcquireOptions { count: Some(2), ..patient() }).await.expect("granted");
        let waiter = {
            let pool = pool.clone();
            tokio::spawn(async move { pool.acquire_with(patient()).await.map(drop) })
        };
        eventually("it waits", async || pool.statistics().waiting == 1).await;
        for lease in held {
            lease.unused().expect("held");
            lease.release_with(Default::default()).await.expect("a release is no message");
        }
        let (outcome, _) = soon(Duration::from_secs(4), "polling", waiter).await;
        outcome.expect("no panic").expect("granted");
    }
    goes_on(&pool).await;
}

// Nobody can be called: who is first asks for its offer before that lapses, whichever process it is in.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn users_without_channels_are_served_in_line() {
    let place = Place::redis();
    let server = place.server();
    let user = ["ACL", "SETUSER", "worker", "on", ">pw", "~*", "resetchannels", "+@all"];
    assert_eq!(server.command(&user).expect("a reply"), Resp::ok());
    let url = format!("redis://worker:pw@127.0.0.1:{}", server.port());
    let prizes = [Prize::slot(&handle(&url)).await, Prize::slot(&handle(&url)).await];
    let won = prizes[0].win().await.expect("granted");
    let mut arrivals = Arrivals::default();
    for number in 0..20 {
        arrivals.come(&prizes[number % 2], 0).await;
    }
    let before = calls(server, "evalsha");
    won.give_back().await.expect("its own");
    let (order, took) = soon(Duration::from_secs(20), "the line", arrivals.in_order()).await;
    assert_eq!(order, Vec::from_iter(0..20));
    let asked = calls(server, "evalsha") - before;
    println!("without channels: 20 served in {took:?} with {asked} requests");
    // Two requests for each, and what those who wait ask four times a second.
    assert!(asked < 200 + took.as_millis() as u64 / 10, "{asked} requests in {took:?}");
}

/// What an acquisition is told while something else stands where the pool's record was. It is left there, and all goes on without it.
async fn refused_beside(put: &str, value: &str, take: &str) -> String {
    let place = Place::redis();
    let server = place.server();
    let pool = pool_at(place.url()).await;
    let (meta, kept) = ("faults:{relayers}:meta", "faults:{relayers}:kept");
    server.command(&["RENAME", meta, kept]).expect("the pool's record");
    server.command(&[put, meta, value]).expect("put there");
    let (outcome, _) = soon(Duration::from_secs(2), "an acquisition", pool.acquire_with(patient())).await;
    let error = outcome.expect_err("it is no record");
    assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
    assert_eq!(server.command(&[take, meta]).expect("a reply"), Resp::bulk(value), "it is still there");
    server.command(&["RENAME", kept, meta]).expect("renamed");
    goes_on(&pool).await;
    error.message().to_owned()
}

// A rolling deployment: newer processes have written what this one cannot read.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_newer_schema_is_told() {
    let told = refused_beside("SET", "99 in whatever way it is written", "GET").await;
    assert!(told.contains("SCHEMA") && told.contains("99"), "{told}");
}

// It was overwritten with a pool.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn somebody_elses_key_is_left_alone() {
    let told = refused_beside("RPUSH", "theirs", "LPOP").await;
    assert!(told.contains("WRONGTYPE"), "{told}");
}

// No room for one more connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_with_too_many_clients_says_so() {
    let place = Place::redis();
    let server = place.server();
    let proxy = Proxy::start(server.port()).expect("a proxy");
    let pool = pool_at(&proxy.url()).await;
    let mut admin = server.connect().expect("connected");
    assert_eq!(admin.command(&["CONFIG", "SET", "maxclients", "1"]).expect("a reply"), Resp::ok());
    proxy.disconnect();
    let (outcome, _) = soon(Duration::from_secs(2), "an acquisition", pool.acquire_with(within(900))).await;
    let error = outcome.expect_err("full");
    assert_eq!(error.code(), Code::StoreUnavailable, "{error}");
    assert_eq!(admin.command(&["CONFIG", "SET", "maxclients", "1000"]).expect("a reply"), Resp::ok());
    goes_on(&pool).await;
}

// A store that answers "none free" is not to be taken for one that fails.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_true_answer_is_told_as_such() {
    let place = Place::redis();
    let pool = pool_at(place.url()).await;
    let held = pool.acquire_many_with(AcquireOptions { count: Some(2), ..patient() }).await.expect("granted");
    assert_eq!(pool.acquire_with(within(0)).await.expect_err("held").code(), Code::Exhausted);
    for timeout in [1, 5, 20, 60, 100] {
        let error = pool.acquire_with(within(timeout)).await.expect_err("held");
        assert!(matches!(error.code(), Code::TimedOut | Code::StoreUnavailable), "{error}");
        assert!(timeout < 20 || error.code() == Code::TimedOut, "{timeout} ms: {error}");
    }
    assert!(held[0].remaining_micros() > 50 * MILLISECOND, "the machine is too slow for this test");
}
