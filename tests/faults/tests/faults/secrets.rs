//! A password is in no error, no debug text and no panic.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use leasehold::client::native::open;
use leasehold::client::{OpenOptions, SeedConfig, Target, Unit};
use leasehold::store::redis::RedisUrl;
use leasehold::value::Value;
use leasehold_faults::{handle_with, options, patient, soon};
use leasehold_servers::{RedisOptions, RedisServer};

const CANARY: &str = "canary-7c1f93";

fn clean(what: &str, text: &str) {
    assert!(!text.contains(CANARY), "{what} tells the password: {text}");
}

fn clean_debug(what: &str, value: &impl Debug) {
    clean(what, &format!("{value:?} {value:#?}"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_password_is_never_told() {
    let panics: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = panics.clone();
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        heard.lock().expect("unharmed").push(panic.to_string());
        usual(panic);
    }));
    for (set, given) in [(CANARY, CANARY), ("another", CANARY), (CANARY, "wrong")] {
        let server =
            RedisServer::start(RedisOptions { password: Some(set.to_owned()), ..RedisOptions::default() })
                .expect("starts");
        let url = format!("redis://:{given}@127.0.0.1:{}", server.port());
        let handle = handle_with(&url, "faults", 300.0).expect("a good address");
        clean_debug("a handle", &handle);
        let bound = Duration::from_secs(15);
        match soon(bound, "opening", handle.pool_with("relayers", options(&["a"]), None)).await.0 {
            Ok(pool) => {
                assert_eq!(set, given);
                clean_debug("a pool", &pool);
                let lease = pool.acquire_with(patient()).await.expect("granted");
                clean_debug("a lease", &lease);
                clean_debug("statistics", &pool.statistics());
                // The password is changed, then the server goes: two more ways to fail.
                let mut admin = server.connect().expect("connected");
                admin.command(&["CONFIG", "SET", "requirepass", "third"]).expect("a reply");
                admin.command(&["CLIENT", "KILL", "TYPE", "normal"]).expect("a reply");
                for _ in 0..2 {
                    let error = lease.renew().await.expect_err("cut off");
                    clean_debug("an error", &error);
                    clean("an error", &error.to_string());
                    server.kill().expect("killed");
                }
            }
            Err(error) => {
                assert_ne!(set, given, "{error}");
                clean_debug("an error", &error);
                clean("an error", &error.to_string());
            }
        }
    }
    for panic in panics.lock().expect("unharmed").iter() {
        clean("a panic", panic);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_is_never_told() {
    let good = format!("redis://user:{CANARY}@127.0.0.1:1/0");
    let target = Target::read(&good.as_str().into()).expect("a good address");
    clean_debug("a target", &target);
    let endpoint = Value::map([("endpoint", good.as_str().into())]);
    let block = Value::map([("mode", "shared".into()), ("redis", endpoint)]);
    clean_debug("a configuration", &SeedConfig::read(&block).expect("a good block"));
    clean_debug("a target", &Target::read(&block).expect("a good block"));
    clean_debug("an address", &RedisUrl::new(&good).expect("a good address"));
    let secure = format!("rediss://user:{CANARY}@127.0.0.1:1/0");
    clean_debug("an address", &RedisUrl::new(&secure).expect("a good address"));
    for several in [
        format!("rediss+cluster://user:{CANARY}@127.0.0.1:1,127.0.0.1:2"),
        format!("rediss+sentinel://user:{CANARY}@127.0.0.1:1/name/0?sentinel_password={CANARY}"),
    ] {
        clean_debug("an address", &RedisUrl::new(&several).expect("a good address"));
        clean_debug("a target", &Target::read(&several.as_str().into()).expect("a good address"));
    }
    clean_debug("options", &OpenOptions::default());
    for wrong in [
        format!("redis://user:{CANARY}@[::1/0"),
        format!("redis://user:{CANARY}@127.0.0.1:99999999/0"),
        format!("redis://user:{CANARY}@127.0.0.1:1/notanumber"),
        format!("http://user:{CANARY}@127.0.0.1:1/0"),
        format!("redis+cluster://user:{CANARY}@127.0.0.1:1,user:{CANARY}@127.0.0.1:2"),
        format!("redis+cluster://user:{CANARY}@127.0.0.1:1/1"),
        format!("redis+sentinel://user:{CANARY}@127.0.0.1:1"),
        format!("redis+sentinel://127.0.0.1:1/name?sentinel_password=/{CANARY}"),
        CANARY.to_owned(),
        format!(" redis://user:{CANARY}@127.0.0.1:1"),
    ] {
        let handle = tokio::runtime::Handle::current();
        let error = open(&wrong.as_str().into(), &Value::Null, Unit::Milliseconds, handle);
        let error = error.expect_err("no good address");
        clean_debug("an error", &error);
        clean("an error", &error.to_string());
    }
    let options = Value::map([("namespace", "x".into()), (CANARY, "y".into())]);
    let handle = tokio::runtime::Handle::current();
    open(&good.as_str().into(), &options, Unit::Milliseconds, handle).expect_err("no such option");
}
