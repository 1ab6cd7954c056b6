//! Worlds from seeds; see the crate's own page. `LEASEHOLD_SEED=n` replays one and tells everything,
//! `LEASEHOLD_SEEDS=n` plays so many.

use std::fmt::{Debug, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use leasehold_simulation::ballots::{Vote, vote};
use leasehold_simulation::census::Census;
use leasehold_simulation::duel::duel;
use leasehold_simulation::history::Event;
use leasehold_simulation::plan::Scene;
use leasehold_simulation::planted::{self, Planted};
use leasehold_simulation::run::{Run, run};
use leasehold_simulation::world::unpoisoned;

/// How many seeds are played without being told how many.
const SEEDS: u64 = 220;
/// The same of worlds in which names are locked.
const SEEDS_OF_LOCKS: u64 = 100;
/// The same of worlds in which thieves do not wait for the end of leases.
const SEEDS_OF_THEFTS: u64 = 60;
/// The same of worlds in which such thieves take accounts.
const SEEDS_OF_ROBBERIES: u64 = 60;
/// The same of worlds in which a majority of servers grants locks.
const SEEDS_OF_QUORUMS: u64 = 40;
/// The same of worlds in which limits are charged.
const SEEDS_OF_LIMITS: u64 = 80;
/// The same of worlds in which tokens are selected.
const SEEDS_OF_TOKENS: u64 = 60;
/// How many seeds a planted bug may take to be found.
const PATIENCE: u64 = 120;
/// How many events are told before the one that broke a rule.
const TOLD: usize = 60;

/// What must have happened at least once, or the worlds prove nothing.
const KINDS: [&str; 51] = [
    "BUSY",
    "CLUSTERDOWN",
    "LOADING",
    "MASTERDOWN",
    "NOAUTH",
    "OOM",
    "READONLY",
    "acquire dropped",
    "administration",
    "blackout",
    "clock set back",
    "clock set forward",
    "command waited for a hung server",
    "connection refused",
    "crash",
    "deletion of keys told of",
    "keys deleted",
    "lease broken",
    "lease granted by a store that cannot know",
    "lease granted by a store that has not heard of the longest",
    "lease kept",
    "leases",
    "leases yielded",
    "nonce read behind",
    "nonce read failed",
    "nonce signed again",
    "offers",
    "outage",
    "partition",
    "pause",
    "promotion",
    "push doubled",
    "push late",
    "push lost",
    "renewals",
    "reply lost",
    "request doubled",
    "request late",
    "request lost",
    "restart",
    "restart without data",
    "script flush",
    "slot added",
    "slot removed",
    "told of a claimant",
    "told of a loss",
    "server hung",
    "transaction doubled",
    "transaction lost",
    "transaction unanswered",
    "transactions refused",
];

/// The same of worlds in which names are locked.
const KINDS_OF_LOCKS: [&str; 19] = [
    "clock set back",
    "clock set forward",
    "crash",
    "deletion of keys told of",
    "keys deleted",
    "lease granted by a store that cannot know",
    "lease granted by a store that has not heard of the longest",
    "lock claimed",
    "lock dropped",
    "lock joined",
    "lock kept",
    "lock lost",
    "lock yielded",
    "locks",
    "locks of several names",
    "offers",
    "pause",
    "promotion",
    "restart without data",
];

/// The same of worlds in which thieves do not wait for the end of leases.
const KINDS_OF_THEFTS: [&str; 10] = [
    "clock set back",
    "crash",
    "late write refused",
    "lease robbed",
    "lock claimed",
    "lock lost",
    "lock yielded",
    "promotion",
    "restart without data",
    TWO_AT_ONCE,
];
/// The same of worlds in which such thieves take accounts.
const KINDS_OF_ROBBERIES: [&str; 12] = [
    "clock set back",
    "crash",
    "late write refused",
    "lease robbed",
    "leases yielded",
    "nonce refused at the gate",
    "nonce signed again",
    "promotion",
    "restart without data",
    "told of a claimant",
    "transaction refused at the gate",
    TWO_AT_ONCE,
];
/// What only happens where thieves do not wait for the end of leases.
const TWO_AT_ONCE: &str = "two hold a name";

/// The same of worlds in which limits are charged.
const KINDS_OF_LIMITS: [&str; 27] = [
    "clock set back",
    "clock set forward",
    "crash",
    "limit allowed",
    "limit allowed in an outage",
    "limit call dropped",
    "limit never allows",
    "limit refunded",
    "limit refused",
    "limit refused by memory",
    "limit refused in an outage",
    "limit reset",
    "limit unknown",
    "limit waited for in vain",
    "promotion",
    "reservation committed",
    "reservation committed in part",
    "reservation committed late",
    "reservation dropped",
    "reservation given back",
    "reservation given back by another",
    "reservation not given back by another",
    "reservation left to itself",
    "reservation not renewed",
    "reservation renewed",
    "reservation renewed too late",
    "restart without data",
];

#[test]
fn worlds_break_no_rule() {
    play(Scene::Pools, SEEDS, &KINDS);
}

#[test]
fn worlds_of_locks_break_no_rule() {
    play(Scene::Locks, SEEDS_OF_LOCKS, &KINDS_OF_LOCKS);
}

#[test]
fn worlds_of_hasty_thieves_break_no_rule_and_two_hold_a_name_in_them() {
    play(Scene::Thefts, SEEDS_OF_THEFTS, &KINDS_OF_THEFTS);
}

#[test]
fn worlds_of_robbed_accounts_break_no_rule_and_two_hold_one_in_them() {
    play(Scene::Robberies, SEEDS_OF_ROBBERIES, &KINDS_OF_ROBBERIES);
}

/// The same of worlds in which tokens are selected.
const KINDS_OF_TOKENS: [&str; 16] = [
    "clock set back",
    "clock set forward",
    "crash",
    "promotion",
    "restart without data",
    "selection dropped",
    "selection insufficient",
    "selection kept",
    "selection locked",
    "selection lost",
    "selection spent",
    "selection timed out",
    "selection without fit",
    "selection without source",
    "selections",
    "spend heard of",
];

#[test]
fn worlds_of_tokens_break_no_rule() {
    play(Scene::Tokens, SEEDS_OF_TOKENS, &KINDS_OF_TOKENS);
}

#[test]
fn worlds_of_limits_break_no_rule() {
    play(Scene::Limits, SEEDS_OF_LIMITS, &KINDS_OF_LIMITS);
}

#[test]
fn of_two_spenders_of_4_and_two_tokens_of_3_one_wins() {
    let (next, failed) = (AtomicU64::new(0), Mutex::new(Vec::new()));
    in_parallel(|| {
        while let Some(seed) = Some(next.fetch_add(1, Relaxed)).filter(|&seed| seed < 1_000) {
            let ends = duel(seed, seed % 2 == 0);
            let won: Vec<u64> =
                ends.iter().filter(|(_, end)| *end == Ok(6)).map(|(after, _)| *after).collect();
            let lost = |end: &str| {
                // A claim that is under way as the time runs out is not answered in time.
                ["locked_until", "contended", "timed_out", "store_unavailable"].contains(&end)
            };
            let others = ends.iter().filter(|(_, end)| end.as_ref().is_err_and(|code| lost(code))).count();
            if won.len() != 1 || others != 1 || won[0] > 1_500_000 {
                unpoisoned(&failed).push((seed, ends));
            }
        }
    });
    let failed = unpoisoned(&failed);
    assert!(failed.is_empty(), "{} seeds: {:?}", failed.len(), failed.first());
}

/// The same of worlds in which a majority of servers grants locks.
const KINDS_OF_QUORUMS: [&str; 25] = [
    "all servers restarted one by one",
    "clock nudged",
    "clock set back",
    "clock set forward",
    "crash",
    "fences out of their order",
    "keys deleted",
    "lease of a majority outlived its ttl",
    "lock kept",
    "lock lost",
    "locks by majority",
    "majority not reached",
    "more than a bare majority",
    "partition",
    "pause",
    "promotion",
    "reply lost",
    "request doubled",
    "request late",
    "restart",
    "restart without data",
    "server cut off",
    "server hung",
    "server silent",
    "vote split",
];

#[test]
fn worlds_of_several_servers_break_no_rule() {
    let only = number("LEASEHOLD_SEED");
    let seeds = only.map_or(0..number("LEASEHOLD_SEEDS").unwrap_or(SEEDS_OF_QUORUMS), |seed| seed..seed + 1);
    let (census, began) = (Census::default(), std::time::Instant::now());
    let (next, lasted, found) = (AtomicU64::new(seeds.start), AtomicU64::new(0), Mutex::new(Vec::new()));
    in_parallel(|| {
        let census_here = Census::default();
        while let Some(seed) = Some(next.fetch_add(1, Relaxed)).filter(|&seed| seed < seeds.end) {
            let vote = vote(seed, None, &census_here);
            lasted.fetch_add(vote.lasted, Relaxed);
            if only.is_some() || vote.violation.is_some() {
                let text = tell_vote(seed, &vote, if only.is_some() { usize::MAX } else { TOLD });
                unpoisoned(&found).push((seed, text, vote.violation.is_some()));
            }
        }
        census.merge(&census_here);
    });
    let hours = lasted.load(Relaxed) as f64 / 3.6e9;
    println!("{hours:.1} h of virtual time in {:?}\n{census}", began.elapsed());
    let mut found = std::mem::take(&mut *unpoisoned(&found));
    found.sort();
    found.iter().filter(|_| only.is_some()).for_each(|(_, text, _)| println!("{text}"));
    found.retain(|(.., broken)| *broken);
    let heads: Vec<_> = found.iter().filter_map(|(_, text, _)| text.lines().next()).collect();
    assert!(found.is_empty(), "{} worlds broke a rule\n{}\n{}", found.len(), heads.join("\n"), found[0].1);
    if seeds.end - seeds.start >= SEEDS_OF_QUORUMS {
        let missing: Vec<_> = KINDS_OF_QUORUMS.iter().filter(|kind| census.of(kind) == 0).collect();
        assert!(missing.is_empty(), "never happened: {missing:?}");
    }
}

fn play(scene: Scene, usual: u64, kinds: &[&str]) {
    let only = number("LEASEHOLD_SEED");
    let seeds = only.map_or(0..number("LEASEHOLD_SEEDS").unwrap_or(usual), |seed| seed..seed + 1);
    let (census, began) = (Census::default(), std::time::Instant::now());
    let (next, lasted, found) = (AtomicU64::new(seeds.start), AtomicU64::new(0), Mutex::new(Vec::new()));
    let count = seeds.end - seeds.start;
    in_parallel(|| {
        let census_here = Census::default();
        while let Some(seed) = Some(next.fetch_add(1, Relaxed)).filter(|&seed| seed < seeds.end) {
            for redis in [false, true] {
                let run = run(seed, scene, redis, None, &census_here);
                lasted.fetch_add(run.lasted, Relaxed);
                if only.is_some() || run.violation.is_some() {
                    let text = tell(seed, redis, &run, if only.is_some() { usize::MAX } else { TOLD });
                    match only {
                        Some(_) => println!("{text}"),
                        None => unpoisoned(&found).push((seed, text)),
                    }
                }
                if run.violation.is_some() && only.is_some() {
                    unpoisoned(&found).push((seed, String::from("see above")));
                }
            }
        }
        census.merge(&census_here);
    });
    let hours = lasted.load(Relaxed) as f64 / 3.6e9;
    println!(
        "{count} seeds over both stores, {hours:.1} h of virtual time in {:?}\n{census}",
        began.elapsed()
    );
    let mut found = std::mem::take(&mut *unpoisoned(&found));
    found.sort();
    let heads: String =
        found.iter().filter_map(|(_, text)| text.lines().next()).fold(String::new(), |mut all, line| {
            let _ = writeln!(all, "{line}");
            all
        });
    assert!(found.is_empty(), "{} worlds broke a rule\n{heads}\n{}", found.len(), found[0].1);
    let hasty = matches!(scene, Scene::Thefts | Scene::Robberies);
    assert!(hasty || census.of(TWO_AT_ONCE) == 0, "two hold a name at once");
    if count >= usual {
        let missing: Vec<_> = kinds.iter().filter(|kind| census.of(kind) == 0).collect();
        assert!(missing.is_empty(), "never happened: {missing:?}");
    }
}

#[test]
fn a_seed_gives_one_world() {
    for scene in [Scene::Pools, Scene::Locks, Scene::Thefts, Scene::Robberies, Scene::Limits, Scene::Tokens] {
        for redis in [false, true] {
            let events = || run(7, scene, redis, None, &Census::default()).events;
            are_equal(&format!("{scene:?}, redis: {redis}"), events(), events());
        }
    }
    let events = || vote(7, None, &Census::default()).events;
    are_equal("votes", events(), events());
}

/// Panics with what differs first in two worlds from one seed.
fn are_equal<E: Debug>(of: &str, one: Vec<E>, other: Vec<E>) {
    let told = |events: Vec<E>| events.into_iter().map(|event| format!("{event:?}")).collect::<Vec<_>>();
    let (one, other) = (told(one), told(other));
    if let Some(at) = (0..one.len().max(other.len())).find(|&at| one.get(at) != other.get(at)) {
        let around = at.saturating_sub(3)..=at;
        panic!(
            "{of}: two worlds from one seed, from event {at} on\n{:#?}\n{:#?}",
            around.clone().map(|at| one.get(at)).collect::<Vec<_>>(),
            around.map(|at| other.get(at)).collect::<Vec<_>>()
        );
    }
}

#[test]
fn planted_bugs_are_found() {
    let next = AtomicU64::new(0);
    let missed = Mutex::new(Vec::new());
    let pools = planted::OF_POOLS.map(|bug| (Some(Scene::Pools), bug));
    let locks = planted::OF_LOCKS.map(|bug| (Some(Scene::Locks), bug));
    let thefts = planted::OF_THEFTS.map(|bug| (Some(Scene::Thefts), bug));
    let robberies = planted::OF_ROBBERIES.map(|bug| (Some(Scene::Robberies), bug));
    let limits = planted::OF_LIMITS.map(|bug| (Some(Scene::Limits), bug));
    let tokens = planted::OF_TOKENS.map(|bug| (Some(Scene::Tokens), bug));
    let quorums = planted::OF_QUORUMS.map(|bug| (None, bug));
    let bugs = [&pools[..], &locks, &thefts, &robberies, &limits, &tokens, &quorums].concat();
    in_parallel(|| {
        while let Some(&(scene, bug)) = bugs.get(next.fetch_add(1, Relaxed) as usize) {
            match hunt(scene, bug) {
                Some(report) => println!("{report}"),
                None => unpoisoned(&missed).push(bug.name),
            }
        }
    });
    let missed = unpoisoned(&missed);
    assert!(missed.is_empty(), "not found in {PATIENCE} seeds: {missed:?}");
}

/// Without a scene, in worlds of several servers.
fn hunt(scene: Option<Scene>, bug: Planted) -> Option<String> {
    let (mut spent, census) = (0, Census::default());
    for seed in 0..PATIENCE {
        let (violation, lasted) = match scene {
            Some(scene) => {
                let run = run(seed, scene, true, Some(bug), &census);
                (run.violation, run.lasted)
            }
            None => {
                let vote = vote(seed, Some(bug), &census);
                (vote.violation, vote.lasted)
            }
        };
        if let Some(violation) = &violation {
            let virtual_time = (spent + violation.at) as f64 / 1e6;
            let text = violation.text.clone();
            return Some(format!(
                "{:<50} {:>3} seeds, {virtual_time:>7.0} s: {} ({text})",
                bug.name,
                seed + 1,
                violation.rule
            ));
        }
        spent += lasted;
    }
    None
}

fn in_parallel(work: impl Fn() + Sync) {
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(&work);
        }
    });
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn tell(seed: u64, redis: bool, run: &Run, last: usize) -> String {
    let store = if redis { "redis" } else { "memory" };
    let mut text = match &run.violation {
        Some(violation) => format!("seed {seed} over {store}: {violation}\n"),
        None => format!("seed {seed} over {store}: no rule is broken\n"),
    };
    let _ = writeln!(text, "{:?}", run.plan);
    let end =
        run.violation.as_ref().map_or(usize::MAX, |violation| violation.event + 1).min(run.events.len());
    run.events[end.saturating_sub(last)..end].iter().for_each(|event| write_event(&mut text, None, event));
    text
}

fn tell_vote(seed: u64, vote: &Vote, last: usize) -> String {
    let mut text = match &vote.violation {
        Some(violation) => format!("seed {seed} over several servers: {violation}\n"),
        None => format!("seed {seed} over several servers: no rule is broken\n"),
    };
    let _ = writeln!(text, "{:?}", vote.plan);
    let until = vote.violation.as_ref().map_or(u64::MAX, |violation| violation.at);
    let end = vote.events.partition_point(|(_, event)| event.at <= until);
    for (server, event) in &vote.events[end.saturating_sub(last)..end] {
        write_event(&mut text, *server, event);
    }
    text
}

fn write_event(text: &mut String, server: Option<usize>, event: &Event) {
    let server = server.map(|server| format!("server {server} ")).unwrap_or_default();
    let _ = writeln!(text, "{:>12.6} {:>3} {server}{:?}", event.at as f64 / 1e6, event.process, event.what);
}
