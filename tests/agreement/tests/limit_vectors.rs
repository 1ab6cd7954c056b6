//! The transcripts of limits that every language replays: up to date, and replayed by the machine, by the store in memory
//! and by the script, inside the process and on a real server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use futures_util::FutureExt;
use leasehold::limits::transcript::{self, Step};
use leasehold::store::redis::RedisStore;
use leasehold::store::{LimitStore, MemoryStore, StoreLedger};
use leasehold_agreement::scenarios::{folder_of_limits, of_limits};
use leasehold_agreement::{Dated, Embedded, Real, pool_name, to_json, to_value};
use leasehold_embedded::EmbeddedRedis;
use leasehold_servers::{RedisOptions, RedisServer};
use serde_json::Value as Json;

/// The name and the content of every transcript that is kept.
fn vectors() -> Vec<(String, Json)> {
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(&path).expect("readable");
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, serde_json::from_str(&text).expect("JSON"))
    };
    std::fs::read_dir(folder_of_limits()).expect("the folder").map(read).collect()
}

fn steps(vector: &Json) -> Vec<Step> {
    transcript::read(&to_value(&vector["steps"])).expect("steps")
}

/// Has a ledger answer every step, at its time and on its server.
fn replay(name: &str, vector: &Json, ledger: &impl StoreLedger, set: impl Fn(&Step)) {
    for (at, step) in steps(vector).iter().enumerate() {
        set(step);
        let answer = ledger.charge(&step.envelope).now_or_never().expect("at once").expect("an answer");
        assert_eq!(
            to_json(&transcript::answer(&answer)),
            vector["answers"][at],
            "{name}, step {at}: {step:?}"
        );
    }
}

#[test]
fn they_are_what_the_scenarios_tell() {
    let advice = "run: cargo run -p leasehold-agreement --bin vectors -- --write";
    let (told, kept) = (of_limits(), vectors());
    assert_eq!(kept.len(), told.len(), "{advice}");
    for scenario in told {
        let path = folder_of_limits().join(format!("{}.json", scenario.name()));
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(kept == scenario.text(), "{} is not up to date; {advice}", scenario.name());
    }
}

#[test]
fn the_machine_replays_them() {
    for (name, vector) in vectors() {
        assert_eq!(vector["name"], name);
        let answers = transcript::replay(&to_value(&vector["steps"])).expect("steps");
        assert_eq!(to_json(&answers), vector["answers"], "{name}");
    }
}

#[test]
fn the_store_in_memory_replays_them() {
    // It has no other servers.
    let of_one_server = |step: &Step| step.incarnation == "-";
    for (name, vector) in vectors() {
        if !steps(&vector).iter().all(of_one_server) {
            continue;
        }
        let wall = Arc::new(AtomicU64::new(0));
        let clock = wall.clone();
        let store = MemoryStore::new(Arc::new(move || clock.load(Relaxed)));
        replay(&name, &vector, &store.ledger(&pool_name("limits")), |step| wall.store(step.wall, Relaxed));
    }
}

#[test]
fn the_script_replays_them() {
    for (name, vector) in vectors() {
        let transport = Embedded::new(EmbeddedRedis::new(steps(&vector)[0].wall));
        let ledger = RedisStore::new(transport.clone()).ledger(&pool_name("limits"));
        replay(&name, &vector, &ledger, |step| {
            transport.redis().set_time(step.wall);
            transport.redis().set_replication_id(&step.incarnation);
        });
    }
}

#[test]
fn a_real_server_replays_them() {
    let server = RedisServer::start(RedisOptions::default()).expect("started");
    for (name, vector) in vectors() {
        let transport = Dated::new(Real::new(server.connect().expect("connected")), 0);
        let ledger = RedisStore::new(transport.clone()).ledger(&pool_name(&name));
        replay(&name, &vector, &ledger, |step| {
            transport.set_wall(step.wall);
            transport.set_incarnation(&step.incarnation);
        });
    }
}

/// Of each kind of limit, each act and each reply there is one at least.
#[test]
fn they_leave_nothing_out() {
    fn words(json: &Json, found: &mut std::collections::BTreeSet<String>) {
        match json {
            Json::Object(entries) => entries.iter().for_each(|(key, value)| {
                if let ("kind" | "request" | "reply" | "answer", Json::String(word)) = (&**key, value) {
                    found.insert(format!("{key} {word}"));
                }
                words(value, found);
            }),
            Json::Array(items) => items.iter().for_each(|item| words(item, found)),
            Json::Number(number) => panic!("{number} is not text"),
            _ => {}
        }
    }
    let mut found = std::collections::BTreeSet::new();
    vectors().iter().for_each(|(_, vector)| words(vector, &mut found));
    for (key, all) in [
        ("kind", &["each", "refill", "gcra", "rolling", "lifetime", "budget", "in_flight"][..]),
        ("request", &["take", "peek", "refund", "reset", "reserve", "commit", "give_back"]),
        ("reply", &["allowed", "refused", "settled", "before", "gone"]),
        ("answer", &["performed", "stale"]),
    ] {
        for word in all {
            assert!(found.contains(&format!("{key} {word}")), "no vector has the {key} {word}");
        }
    }
}
