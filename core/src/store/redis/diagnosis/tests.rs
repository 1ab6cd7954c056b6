#[cfg(feature = "limits")]
use std::collections::BTreeSet;

use super::*;
use crate::SECOND;
use crate::store::finding::{Check, Verdict};
use crate::store::redis::fit;
#[cfg(feature = "limits")]
use crate::store::redis::{LIMITS_SCRIPT, SCRIPT};
use crate::value::Value;

/// An ordinary server, as it says of itself.
const WELL: [(&str, &str); 10] = [
    ("redis_version", "7.0.15"),
    ("used_memory", "1000000"),
    ("maxmemory", "0"),
    ("maxmemory_policy", "noeviction"),
    ("aof_enabled", "1"),
    ("rdb_last_bgsave_status", "ok"),
    ("aof_last_write_status", "ok"),
    ("role", "master"),
    ("connected_slaves", "0"),
    ("cluster_enabled", "0"),
];
const DENIED: &str = "NOPERM this user has no permissions to run the command";

fn text(text: &str) -> Resp {
    Resp::Text(text.to_owned())
}

fn error(text: &str) -> Resp {
    Resp::Error(text.to_owned())
}

fn setting(name: &str, value: &str) -> Resp {
    Resp::List(vec![text(name), text(value)])
}

/// What a server says of itself where this differs.
fn info(changes: &[(&str, &str)]) -> Resp {
    let unchanged = WELL.iter().filter(|(name, _)| changes.iter().all(|(changed, _)| changed != name));
    let lines = unchanged.chain(changes).filter(|(_, value)| !value.is_empty());
    text(&lines.map(|(name, value)| format!("{name}:{value}\r\n")).collect::<String>())
}

/// The tries of a user who may not call these, as a server says it in these words.
fn tries(missing: &[&str], words: &str) -> Resp {
    let said = TRIES.map(|(command, ..)| match command {
        _ if missing.contains(&command) => text(words),
        "HSET" => text("ERR wrong number of arguments for 'hset' command"),
        _ => text(""),
    });
    Resp::List(said.into())
}

fn well() -> Said {
    Said {
        namespace: "eth%3A1".to_owned(),
        script: error("NOSCRIPT No matching script. Please use EVAL."),
        tries: tries(&[], ""),
        info: info(&[]),
        policy: setting("maxmemory-policy", "noeviction"),
        save: setting("save", "3600 1 300 100 60 10000"),
        time: Resp::List(vec![text("1700000000"), text("0")]),
        wall: (1_700_000_000 * SECOND, 1_700_000_000 * SECOND),
        cluster: None,
        push: Push::Heard,
    }
}

/// A node of a cluster, and what scripts of other slots are answered with.
fn node([slots, epoch]: [Resp; 2], elsewhere: Resp) -> Said {
    Said { cluster: Some([slots, epoch, elsewhere.clone(), elsewhere]), ..well() }
}

/// The verdict on one thing, whose message has these words.
#[track_caller]
fn holds(said: &Said, check: Check, verdict: Verdict, words: &str) {
    let found = said.findings();
    let finding = found.iter().find(|finding| finding.check == check).unwrap();
    assert_eq!(finding.verdict, verdict, "{finding}");
    assert!(finding.message.contains(words), "{finding}");
}

#[test]
fn of_a_server_that_is_well_everything_is_ok_in_a_fixed_order() {
    let found = well().findings();
    let words = found.iter().map(|finding| (finding.check.as_str(), finding.verdict.as_str()));
    let checks = ["version", "policy", "persistence", "role", "clock", "rights", "push"];
    assert!(words.eq(checks.map(|check| (check, "ok"))), "{found:?}");
}

#[test]
fn what_a_server_says_of_itself_is_judged() {
    use Check::*;
    use Verdict::{Error, Ok, Unknown, Warning};
    let replica = |state, lag| format!("ip=127.0.0.1,port=6380,state={state},offset=42,lag={lag}");
    let (near, far, new) = (replica("online", 0), replica("online", 60), replica("wait_bgsave", 0));
    for (changes, check, verdict, words) in [
        (&[("redis_version", "6.2.0")][..], Version, Ok, "Redis 6.2.0"),
        (&[("redis_version", "6.0.16")], Version, Error, "take 6.2 or later"),
        (&[("redis_version", "5.0.7")], Version, Error, "Redis 5.0.7"),
        (&[("redis_version", "10.0.0")], Version, Ok, "Redis 10.0.0"),
        (&[("redis_version", "7.2.4"), ("valkey_version", "8.1.3")], Version, Ok, "Valkey 8.1.3"),
        (&[("redis_version", "")], Version, Unknown, "does not say which version"),
        (&[("maxmemory", "1000000000"), ("used_memory", "890000000")], Policy, Ok, "noeviction"),
        (
            &[("maxmemory", "1000000000"), ("used_memory", "910000000")],
            Policy,
            Warning,
            "raise its maxmemory",
        ),
        (&[("aof_enabled", "0")], Persistence, Ok, "snapshots are kept (save 3600 1"),
        (&[("aof_enabled", "")], Persistence, Ok, "snapshots"),
        (&[("rdb_last_bgsave_status", "err")], Persistence, Warning, "see its log"),
        (&[("aof_last_write_status", "err")], Persistence, Warning, "see its log"),
        (&[("role", "slave"), ("slave_read_only", "1")], Role, Error, "cannot be written to"),
        (&[("role", "slave"), ("slave_read_only", "0")], Role, Error, "its primary does not know"),
        (&[("role", "")], Role, Unknown, "see that it is one"),
        (&[("connected_slaves", "1"), ("slave0", &near)], Role, Ok, "with 1 replica; after a failover"),
        (
            &[("connected_slaves", "3"), ("slave0", &near), ("slave1", &far), ("slave2", &new)],
            Role,
            Warning,
            "with 3 replicas, of which 2",
        ),
    ] {
        holds(&Said { info: info(changes), ..well() }, check, verdict, words);
    }
}

#[test]
fn a_policy_that_evicts_is_refused_wherever_it_is_said() {
    let evicts = "its maxmemory-policy is allkeys-lru, which deletes leases";
    let said = Said { policy: setting("maxmemory-policy", "allkeys-lru"), ..well() };
    holds(&said, Check::Policy, Verdict::Error, evicts);
    let changes = [("maxmemory_policy", "allkeys-lru"), ("maxmemory", "100")];
    let managed = Said { policy: error("ERR unknown command 'CONFIG'"), info: info(&changes), ..well() };
    holds(&managed, Check::Policy, Verdict::Error, evicts);
    let silent = Said { info: error(DENIED), policy: error(DENIED), ..well() };
    holds(&silent, Check::Policy, Verdict::Unknown, "see that its maxmemory-policy is noeviction");
}

#[test]
fn a_server_that_was_refused_for_its_policy_is_looked_at_no_further() {
    let refusal = fit(&setting("maxmemory-policy", "volatile-ttl")).unwrap_err().cause;
    let found = evicting(&refusal).unwrap();
    assert_eq!(found.len(), well().findings().len());
    for finding in &found {
        let is_policy = finding.check == Check::Policy;
        assert_eq!(finding.verdict, if is_policy { Verdict::Error } else { Verdict::Unknown });
        assert_eq!(finding.message.contains("volatile-ttl"), is_policy);
    }
    assert_eq!(evicting("NOAUTH Authentication required."), None);
}

#[test]
fn who_remembers_nothing_is_warned_of_what_a_restart_costs() {
    let neither = Said { info: info(&[("aof_enabled", "0")]), save: setting("save", ""), ..well() };
    holds(&neither, Check::Persistence, Verdict::Warning, "leases that are held, which are then lost");
    let half = Said { info: info(&[("aof_enabled", "0")]), save: error(DENIED), ..well() };
    holds(&half, Check::Persistence, Verdict::Unknown, "whether snapshots are kept (NOPERM");
    let silent = Said { info: error(DENIED), save: setting("save", ""), ..well() };
    holds(&silent, Check::Persistence, Verdict::Unknown, "see its appendonly and save");
}

// It was said that it refuses writes, which it does only where snapshots are asked for.
#[test]
fn a_snapshot_that_failed_is_nothing_where_none_are_kept() {
    let failed = Said { info: info(&[("rdb_last_bgsave_status", "err")]), ..well() };
    for (save, verdict, words) in [
        (setting("save", ""), Verdict::Ok, "an append-only file is kept"),
        (setting("save", "60 1"), Verdict::Warning, "see its log"),
        (error(DENIED), Verdict::Warning, "see its log"),
    ] {
        holds(&Said { save, ..failed.clone() }, Check::Persistence, verdict, words);
    }
    let full = Said { info: info(&[("aof_last_write_status", "err")]), save: setting("save", ""), ..well() };
    holds(&full, Check::Persistence, Verdict::Warning, "see its log");
}

// It was found fit.
#[test]
fn a_server_that_refuses_every_write_is_not_fit() {
    let writes = ["SET", "DEL", "PEXPIRE", "HSET", "HDEL", "ZADD", "ZREM", "ZREMRANGEBYSCORE"];
    // As Redis 6.2 says it too.
    for (words, check, told) in [
        ("NOREPLICAS Not enough good replicas to write.", Check::Role, "min-replicas-to-write"),
        ("MISCONF Redis is configured to save RDB snapshots", Check::Persistence, "see its log"),
        ("@user_script: 1: -MISCONF Errors writing to the AOF file", Check::Persistence, "see its log"),
        ("OOM command not allowed when used memory > 'maxmemory'.", Check::Policy, "raise its maxmemory"),
        ("@user_script: 1: -OOM command not allowed", Check::Policy, "raise its maxmemory"),
    ] {
        let said = Said { tries: tries(&writes, words), ..well() };
        holds(&said, check, Verdict::Error, told);
        holds(&said, Check::Rights, Verdict::Ok, "may do all");
    }
}

// Pools of all other slots could not be opened, and no error was found.
#[test]
fn a_node_whose_cluster_is_not_followed_is_not_fit() {
    let fine = || [text(""), text("cluster_state:ok")];
    let moved = "MOVED 16383 127.0.0.1:7002 (a node of a cluster, which redis+cluster:// follows)";
    holds(&node(fine(), error(moved)), Check::Role, Verdict::Error, moved);
    for followed in [well().script, error("NOPERM No permissions to access a key"), Resp::Nil] {
        holds(&node(fine(), followed), Check::Role, Verdict::Ok, "a primary");
    }
}

// It was said that nothing works.
#[test]
fn who_may_use_only_the_keys_of_its_pools_is_not_told_that_nothing_works() {
    for words in [
        "NOPERM No permissions to access a key",
        "NOPERM User relayer has no permissions to access the 'eth%3A1:{06S}:doctor' key",
        "NOPERM this user has no permissions to access one of the keys used as arguments",
    ] {
        let said = Said { script: error(words), tries: error(words), ..well() };
        holds(&said, Check::Rights, Verdict::Unknown, "no rights to all keys of this namespace");
    }
    for words in [
        "NOPERM No permissions to access a channel",
        "NOPERM this user has no permissions to access one of the channels used as arguments",
    ] {
        let said = Said { push: Push::Failed(words.to_owned()), ..well() };
        holds(&said, Check::Push, Verdict::Unknown, "no rights to all channels of this namespace");
    }
    let said = Said {
        script: error("NOPERM User accesskey has no permissions to run the 'evalsha' command"),
        ..well()
    };
    holds(&said, Check::Rights, Verdict::Error, "nothing works");
}

// It was sent to the README, which has it for another namespace.
#[test]
fn who_has_too_few_rights_is_told_which_to_grant_in_its_own_namespace() {
    let grant = "ACL SETUSER … ~eth%3A1:* &eth%3A1:* +@read +@write +@scripting +@pubsub +@connection +info +time +config|get";
    let denied = || Said { tries: tries(&["ZADD"], DENIED), ..well() };
    holds(&denied(), Check::Rights, Verdict::Error, &format!("{grant})"));
    holds(&Said { tries: error(DENIED), ..well() }, Check::Rights, Verdict::Error, grant);
    holds(&Said { push: Push::Failed(DENIED.to_owned()), ..well() }, Check::Push, Verdict::Warning, grant);
    let node = node([error(DENIED), text("")], well().script);
    holds(&node, Check::Rights, Verdict::Warning, &format!("{grant} +cluster|slots +cluster|info"));
    // What has a meaning in patterns is a letter of the name.
    let odd = Said { namespace: r"a*[b]?\".to_owned(), ..denied() };
    holds(&odd, Check::Rights, Verdict::Error, r"~a\*\[b\]\?\\:* &a");
}

#[test]
fn clocks_are_compared_but_for_the_time_that_the_answer_took() {
    let at = |seconds: u64, micros: &str| Resp::List(vec![text(&seconds.to_string()), text(micros)]);
    let (now, second) = (1_700_000_000, SECOND);
    for (time, took, verdict, words) in [
        (at(now + 5, "0"), 0, Verdict::Ok, "agree"),
        (at(now + 5, "300000"), 0, Verdict::Warning, "5.3 s ahead of this process's"),
        (at(now + 8, "0"), 4 * second, Verdict::Ok, "agree"),
        (at(now - 5, "0"), 60 * second, Verdict::Ok, "agree"),
        (at(now - 3_600, "0"), 0, Verdict::Warning, "3600.0 s behind this process's"),
        (Resp::List(vec![Resp::Integer(now as i64), Resp::Integer(7)]), 0, Verdict::Ok, "agree"),
        (error(DENIED), 0, Verdict::Unknown, "what time it is there (NOPERM"),
        (Resp::List(vec![Resp::Integer(-1), text("x")]), 0, Verdict::Unknown, "clock"),
    ] {
        let wall = (now * second, now * second + took);
        holds(&Said { time, wall, ..well() }, Check::Clock, verdict, words);
    }
}

#[test]
fn rights_that_are_missing_are_named_with_what_is_lost() {
    // As Redis 6.2 and 7.0 say it, later ones, one where the command was renamed, and Redis 7 of a key.
    for words in [
        "ERR The user executing the script can't run this command or subcommand",
        "ERR ACL failure in script: User 'relayer' has no permissions to run the 'zadd' command",
        "@user_script: 1: Unknown Redis command called from Lua script",
        "NOPERM this user has no permissions to access one of the keys used as arguments",
    ] {
        let said = Said { tries: tries(&["ZADD", "TIME", "GET"], words), ..well() };
        holds(
            &said,
            Check::Rights,
            Verdict::Error,
            "TIME, without which pools, locks, tokens and limits fail",
        );
        holds(&said, Check::Rights, Verdict::Error, "GET, ZADD, without which pools, locks and tokens fail");
    }
    let said = Said { tries: tries(&[PUBLISH], "ERR ACL failure in script"), ..well() };
    holds(
        &said,
        Check::Rights,
        Verdict::Warning,
        "PUBLISH, without which who waits in another process is not called",
    );
    let said = Said { policy: error(DENIED), ..well() };
    holds(&said, Check::Rights, Verdict::Warning, "CONFIG GET, without which it is not seen");
    let node = |slots: &Resp, epoch: &Resp| node([slots.clone(), epoch.clone()], well().script);
    let (fine, denied) = (text("cluster_state:ok"), error(DENIED));
    holds(&node(&fine, &fine), Check::Rights, Verdict::Ok, "all that leasehold asks for");
    holds(&node(&fine, &fine), Check::Version, Verdict::Ok, "a node of a cluster");
    holds(&node(&denied, &fine), Check::Rights, Verdict::Warning, "CLUSTER SLOTS, without which");
    holds(&node(&fine, &denied), Check::Rights, Verdict::Warning, "CLUSTER INFO, without which");
    for said in [Said { script: error(DENIED), ..well() }, Said { tries: error(DENIED), ..well() }] {
        holds(&said, Check::Rights, Verdict::Error, "may run no scripts, and nothing works (NOPERM");
    }
    let said = Said { tries: error("BUSY Redis is busy running a script."), ..well() };
    holds(&said, Check::Rights, Verdict::Unknown, "(BUSY");
}

#[test]
fn what_fails_for_another_reason_is_not_missing() {
    let replica = tries(&["SET", "ZADD"], "READONLY You can't write against a read only replica.");
    holds(&Said { tries: replica, ..well() }, Check::Rights, Verdict::Ok, "may do all");
    let full = tries(&["SET"], "OOM command not allowed when used memory > 'maxmemory'.");
    holds(&Said { tries: full, ..well() }, Check::Rights, Verdict::Ok, "may do all");
}

#[test]
fn it_is_told_what_becomes_of_messages() {
    for (push, verdict, words) in [
        (Push::Unable, Verdict::Warning, "this transport cannot subscribe"),
        (Push::Failed("NOPERM no channel".to_owned()), Verdict::Warning, "(NOPERM no channel)"),
        (Push::Unheard, Verdict::Warning, "did not come in time"),
        (Push::Unsent, Verdict::Unknown, "see what is said of rights"),
    ] {
        holds(&Said { push, ..well() }, Check::Push, verdict, words);
    }
    assert!(is_refused(&error(DENIED), PUBLISH) && is_refused(&tries(&[PUBLISH], DENIED), PUBLISH));
    assert!(!is_refused(&tries(&["SET"], DENIED), PUBLISH));
}

#[cfg(feature = "limits")]
#[test]
fn every_command_of_the_scripts_is_tried_and_who_calls_it_is_known() {
    let calls = |script: &'static str| -> BTreeSet<&str> {
        script.split("call('").skip(1).filter_map(|call| call.split('\'').next()).collect()
    };
    let (slots, limits) = (calls(SCRIPT), calls(LIMITS_SCRIPT));
    assert!(limits.is_subset(&slots));
    let called = slots.iter().map(|command| (*command, if limits.contains(command) { BOTH } else { POOLS }));
    let tried = TRIES.map(|(command, _, users)| (command, users));
    assert_eq!(called.collect::<BTreeSet<_>>(), tried.into());
}

#[test]
fn a_finding_is_a_plain_record() {
    let finding = Finding::new(Check::Role, Verdict::Error, "a replica");
    assert_eq!(finding.to_string(), "role: error: a replica");
    let of_server = Finding { server: Some(2), ..finding };
    assert_eq!(of_server.to_string(), "servers[2] role: error: a replica");
    let Value::Map(entries) = of_server.to_value() else { panic!() };
    assert!(entries.iter().map(|(key, _)| key.as_str()).eq(["server", "check", "verdict", "message"]));
}
